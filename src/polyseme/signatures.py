"""Mutational signatures: reading spectra of mutations, extraction, comparison with a reference, and exposures.

A spectrum counts the mutations of a sample by type, and a signature is P(type | process): samples are documents, types
of mutations words, and signatures topics. `extract` is the consensus of fits to Poisson resamples; `refine` finds the
signatures near them that explain the samples by few exposures; `match` compares signatures with those of a table, such
as a download of COSMIC; `assign` explains samples by few of the signatures.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy
from scipy.stats import chi2, norm
from sklearn.exceptions import ConvergenceWarning

from polyseme.errors import InputError
from polyseme.estimators.plsa import PLSA
from polyseme.kernels import Floats, single_threaded_blas
from polyseme.metrics.words import frame
from polyseme.priors import MinimumVolume
from polyseme.selection.consensus import Consensus, consensus
from polyseme.utils import RandomStateLike, check_share

__all__ = ["assign", "extract", "match", "read_spectra", "refine"]

SUBSTITUTIONS = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
"""Substitutions of single bases, in the order in which spectra are drawn."""
_TYPE = re.compile(r"([ACGT])\[([CT]>[ACGT])\]([ACGT])")
_OTHER_TYPE = re.compile(r"[ACGT]{2}>[ACGTN]{2}|\w+:(?:Del|Ins):\w+:\d+", re.IGNORECASE)
"""Names of doublets (78 types), and of insertions and deletions (83 types)."""
_EM_STEPS, _EM_ROUND = 2000, 20
_EM_GAIN = 1e-3
"""Gain of `_EM_ROUND` steps in nats at which the exposures of a sample are final."""
_FIRST_SHARE = 1e-3
"""Share of a sample's mutations with which a signature is tried."""
_REFINE_GAIN = 2.0
"""Least gain in nats of an exposure in `refine`, about that of the test at a level of 0.05. Signatures that are fitted
only to exposures that the stricter test of `assign` needs take up those that are too small for it."""
_LIMITS = (200, 200, 25, 25, 3, 3, _REFINE_GAIN, _REFINE_GAIN)
"""Least gains of exposures with which `refine` fits the signatures anew, one after the other."""
_SMALLEST_LIMITS = _LIMITS[4:]
"""The same for signatures of small volume, with which few exposures are false."""
_REFINE_STEPS = 30
_UNSEEN_SHARE = 1e-4
"""Weight of all mutations in a signature that is fitted anew, because EM cannot increase a zero."""


class Spectra(NamedTuple):
    """Mutations of samples by type, or signatures.

    Attributes
    ----------
    values : array of shape (n_samples, n_types)
        Numbers of mutations, or probabilities.
    samples : list of str
        Name of each row.
    types : list of str
        Name of each column, such as ``A[C>T]G``.
    """

    values: Floats
    samples: list[str]
    types: list[str]


class Match(NamedTuple):
    """The signature of a reference that is most similar to a signature.

    Attributes
    ----------
    name : str
        Name in the reference.
    cosine : float
        Cosine of the two.
    """

    name: str
    cosine: float


@dataclass(frozen=True, eq=False)
class Exposures:
    """Result of `assign`.

    Attributes
    ----------
    values : array of shape (n_samples, n_signatures)
        Number of mutations of a sample that each signature explains; zero for signatures that a sample does not need.
    lower, upper : arrays of shape (n_samples, n_signatures)
        Limits of the interval of each number.
    names : list of str
        Name of each signature.
    samples : list of str
        Name of each sample.
    """

    values: Floats
    lower: Floats
    upper: Floats
    names: list[str] = field(repr=False)
    samples: list[str] = field(repr=False)

    @property
    def table(self) -> Any:
        """A row for each sample and signature it needs, as a polars or pandas data frame."""
        rows, columns = np.nonzero(self.values)
        return frame(
            {
                "sample": [self.samples[row] for row in rows],
                "signature": [self.names[column] for column in columns],
                "mutations": self.values[rows, columns].tolist(),
                "lower": self.lower[rows, columns].tolist(),
                "upper": self.upper[rows, columns].tolist(),
            }
        )


def read_spectra(path: str | PathLike[str]) -> Spectra:
    """Read a table of mutations or signatures by type, separated by tabs or commas.

    One side of the table has the types: ``A[C>T]G`` in one column or in the header, or the substitution (``C>T``) and
    the context (``ACG``) in two columns; or types of doublets, insertions and deletions. Types of single bases are put
    into the usual order, others keep theirs.

    Parameters
    ----------
    path : path-like
        A text file.

    Returns
    -------
    Spectra
        The numbers, with a row for each sample or signature.

    Examples
    --------
    >>> from pathlib import Path
    >>> from polyseme.signatures import read_spectra
    >>> text = Path("counts.tsv").write_text("Type\\tP1\\tP2\\nA[C>A]A\\t4\\t0\\nA[C>A]C\\t1\\t3\\n")
    >>> spectra = read_spectra("counts.tsv")
    >>> spectra.samples, spectra.values.tolist()
    (['P1', 'P2'], [[4.0, 1.0], [0.0, 3.0]])
    """
    lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    rows = [row for row in csv.reader(lines, delimiter="\t" if "\t" in (lines or [""])[0] else ",") if any(row)]
    name = Path(path).name
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        raise InputError(
            f"{name} is not a table: its lines must have equally many columns, separated by tabs or commas."
        )
    if all(map(_is_type, rows[0][1:])):
        rows = [list(column) for column in zip(*rows, strict=True)]
    head, *body = rows
    first = 1
    types = [row[0].strip() for row in body]
    if not all(map(_is_type, types)) and len(head) > 2:
        first, types = 2, [_joined_type(row[0].strip(), row[1].strip()) for row in body]
    wrong = next((label for label in types if not _is_type(label)), None)
    if wrong is not None:
        raise InputError(f"{name}: {wrong!r} is no type of mutation: name types like A[C>T]G, AC>TG or 1:Del:C:0.")
    if len(set(types)) < len(types):
        raise InputError(f"{name}: the type {max(types, key=types.count)} has more than one row.")
    try:
        values = np.array([row[first:] for row in body], dtype=np.float64).T
    except ValueError:
        raise InputError(f"{name}: all columns after the types must be numbers.") from None
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError(f"{name}: all numbers must be finite and non-negative.")
    order = sorted(range(len(types)), key=lambda column: _place(types[column], column))
    return Spectra(values[:, order], [label.strip() for label in head[first:]], [types[column] for column in order])


def extract(
    counts: Any,
    n_signatures: int | Iterable[int] = range(1, 11),
    *,
    n_fits: int = 100,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    progress: Callable[[int, int, str], Any] | None = None,
) -> Consensus:
    """Find the signatures that fits to Poisson resamples of the counts share, and their number.

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_types)
        Numbers of mutations.
    n_signatures : int or iterable of int, default=range(1, 11)
        Number of signatures, or numbers to compare.
    n_fits : int, default=100
        Number of resamples for each number of signatures.
    n_jobs : int, default=None
        Number of threads; None uses all cores. Results do not depend on it.
    random_state : int, RandomState or Generator, default=0
        Seed of the resamples and the starts.
    progress : callable, default=None
        Called with (fits done, number of fits, description).

    Returns
    -------
    Consensus
        ``model.components_`` has the signatures, ``best.reproducibility`` how often each was found.

    Examples
    --------
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.signatures import extract
    >>> counts = synthetic_corpus(100, n_topics=3, n_words=60, length=500, random_state=0).counts()
    >>> found = extract(counts, [2, 3, 4], n_fits=10)
    >>> found.chosen
    3
    """
    return consensus(
        counts, n_signatures, n_fits=n_fits, resample="counts", n_jobs=n_jobs, random_state=random_state,
        progress=progress,
    )  # fmt: skip


def match(signatures: Any, reference: Spectra) -> list[Match]:
    """Return the most similar signature of a reference for each signature.

    Parameters
    ----------
    signatures : array-like of shape (n_signatures, n_types)
        Signatures with the types of the reference, such as ``extract(...).model.components_``.
    reference : Spectra
        Signatures with names, from `read_spectra`.

    Returns
    -------
    list of Match
        Name and cosine.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.signatures import match
    >>> from polyseme.typing import Spectra
    >>> reference = Spectra(np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]), ["A", "B"], ["C>A", "C>G", "C>T"])
    >>> [found.name for found in match([[0.1, 0.1, 0.8]], reference)]
    ['B']
    """
    rows, others = _unit_rows(signatures, reference.types), _unit_rows(reference.values, reference.types)
    cosines = rows @ others.T
    return [
        Match(reference.samples[best], float(row[best]))
        for row, best in zip(cosines, cosines.argmax(axis=1), strict=True)
    ]


def assign(
    counts: Any,
    signatures: Any,
    *,
    names: Sequence[str] | None = None,
    samples: Sequence[str] | None = None,
    significance: float = 0.01,
    level: float = 0.95,
) -> Exposures:
    """Explain each sample by as few signatures as its likelihood allows.

    A sample starts with all signatures of its maximum likelihood. The one whose removal costs least is removed as long
    as the likelihood ratio test does not speak against it. Then signatures that improve the likelihood significantly
    are added, and the removal is repeated. Intervals are those of the normal approximation with the signatures that
    remain.

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_types)
        Numbers of mutations.
    signatures : array-like of shape (n_signatures, n_types)
        Signatures; rows are scaled to sum to one.
    names, samples : sequences of str, default=None
        Names of the signatures and of the samples. None: numbers.
    significance : float, default=0.01
        Level of the likelihood ratio test with one degree of freedom.
    level : float, default=0.95
        Level of the intervals.

    Returns
    -------
    Exposures
        Mutations of each sample and signature, with intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.signatures import assign
    >>> signatures = np.array([[0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6], [0.25, 0.25, 0.25, 0.25]])
    >>> counts = np.array([[600, 300, 100, 0], [300, 200, 200, 300]])
    >>> exposures = assign(counts, signatures, names=["A", "B", "flat"])
    >>> (exposures.values > 0).tolist()
    [[True, False, False], [True, True, False]]
    """
    X, S = _checked(counts, signatures)
    least_gain = float(chi2.isf(check_share("significance", significance), df=1) / 2)
    with single_threaded_blas():
        E = _few_exposures(X, S, least_gain)
        margin = norm.isf((1 - check_share("level", level)) / 2) * _standard_errors(S, E)
    return Exposures(
        E, np.maximum(E - margin, 0), E + margin, _labels(names, len(S), "names"), _labels(samples, len(X), "samples")
    )


def refine(counts: Any, signatures: Any) -> Floats:
    """Return signatures near the given ones that explain the samples by fewer exposures.

    The likelihood often has a ridge: where most samples with a signature have another one too, mixtures of the two fit
    them as well, and the samples without the other one get false exposures. Two solutions are tried. The first one
    chooses the exposures of each sample by a high limit of the gain in likelihood, and fits the signatures to them,
    again and again while the limit falls; it is best where many samples lack a signature. The second one starts from
    the signatures of `MinimumVolume` of strength 1 and a low limit; it is best where signatures are similar and nearly
    every sample has most of them. Of these two and the given signatures, the ones with the largest log-likelihood minus
    two for each exposure are returned.

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_types)
        Numbers of mutations.
    signatures : array-like of shape (n_signatures, n_types)
        Signatures to start from, such as ``extract(...).model.components_``.

    Returns
    -------
    ndarray of shape (n_signatures, n_types)
        The signatures, in their order; the given ones if no others are better.

    Examples
    --------
    Signatures that are more different than the true ones give each sample a little of both:

    >>> import numpy as np
    >>> from polyseme.signatures import assign, refine
    >>> true = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
    >>> exposures = np.array([[1000, 0], [0, 1000], [500, 500]]).repeat(10, axis=0)
    >>> counts = np.random.default_rng(0).poisson(exposures @ true)
    >>> found = np.array([[0.45, 0.31, 0.18, 0.06], [0.06, 0.18, 0.31, 0.45]])
    >>> [int((assign(counts, each).values > 0).sum()) for each in (found, refine(counts, found), true)]
    [60, 40, 40]
    """
    X, given = _checked(counts, signatures)
    X = X[X.any(axis=1)]
    if not X.size:
        return given

    def criterion(S: Floats) -> float:
        E = _few_exposures(X, S, _REFINE_GAIN)
        return float(_log_likelihoods(X, S, E).sum() - _REFINE_GAIN * np.count_nonzero(E))

    with single_threaded_blas():
        solutions = given, _fitted_to_few(X, given, _LIMITS), _fitted_to_few(X, _smallest(X, given), _SMALLEST_LIMITS)
        return max(solutions, key=criterion)


def _smallest(X: Floats, S: Floats) -> Floats:
    """Return signatures of small volume near the given ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # they are only a start
        model = PLSA(
            len(S), init=(None, _with_all_types(X, S)), topic_word_prior=MinimumVolume(1.0), max_iter=600, tol=1e-6,
            dtype=np.float64, n_jobs=1,
        ).fit(X)  # fmt: skip
    return np.asarray(model.components_)


def _fitted_to_few(X: Floats, S: Floats, limits: Sequence[float]) -> Floats:
    """Return signatures fitted to exposures that gain at least each of the limits, one after the other."""
    for limit in limits:
        E, S = _few_exposures(X, S, limit), _with_all_types(X, S)
        for _ in range(_REFINE_STEPS):
            ratio = _ratio(X, E @ S)
            expected = S * (E.T @ ratio)
            E *= ratio @ S.T
            sums = expected.sum(axis=1, keepdims=True)
            S = np.divide(expected, sums, out=S.copy(), where=sums > 0)
    return S


def _with_all_types(X: Floats, S: Floats) -> Floats:
    totals = X.sum(axis=0)
    return (1 - _UNSEEN_SHARE) * S + _UNSEEN_SHARE * totals / totals.sum()


def _checked(counts: Any, signatures: Any) -> tuple[Floats, Floats]:
    """Return counts, and signatures whose rows sum to one."""
    X, S = (np.asarray(table, dtype=np.float64) for table in (counts, signatures))
    if X.ndim != 2 or S.ndim != 2 or X.shape[1] != S.shape[1]:
        raise InputError(
            f"counts and signatures must have the same types as columns, got shapes {X.shape} and {S.shape}."
        )
    for label, table in (("counts", X), ("signatures", S)):
        if not np.isfinite(table).all() or (table < 0).any():
            raise InputError(f"{label} must be finite and non-negative.")
    if (S.sum(axis=1) <= 0).any():
        raise InputError("signatures must have no row of zeros.")
    S = S / S.sum(axis=1, keepdims=True)
    if (X[:, S.sum(axis=0) <= 0] > 0).any():
        raise InputError("counts has mutations of a type that no signature has: add a signature with this type.")
    return X, S


def _few_exposures(X: Floats, S: Floats, least_gain: float) -> Floats:
    """Return exposures of which each gains at least `least_gain` nats."""
    totals = X.sum(axis=1, keepdims=True)
    E = _fitted(X, S, np.repeat(totals / len(S), len(S), axis=1))
    E[E / np.maximum(totals, 1) < _FIRST_SHARE] = 0
    E = _without_needless(X, S, _fitted(X, S, _covering(X, S, E)), least_gain)
    return _without_needless(X, S, _with_useful(X, S, E, least_gain), least_gain)


def _labels(labels: Sequence[str] | None, size: int, name: str) -> list[str]:
    if labels is None:
        return [str(number) for number in range(size)]
    if len(labels) != size:
        raise InputError(f"{name} must have {size} entries, got {len(labels)}.")
    return [str(label) for label in labels]


def _is_type(label: str) -> bool:
    return bool(_TYPE.fullmatch(label.strip()) or _OTHER_TYPE.fullmatch(label.strip()))


def _joined_type(substitution: str, context: str) -> str:
    """Return a type from two columns, in either order."""
    if len(context) == 3 and len(substitution) == 3 and ">" in context:
        substitution, context = context, substitution
    if len(context) == 3 and ">" in substitution and context[1] == substitution[0]:
        return f"{context[0]}[{substitution}]{context[2]}"
    return substitution


def _place(label: str, column: int) -> tuple[Any, ...]:
    """Return the key by which types are sorted: substitution, then context; other types by their column."""
    found = _TYPE.fullmatch(label)
    return (1, column) if found is None else (0, SUBSTITUTIONS.index(found[2]), found[1], found[3])


def _unit_rows(table: Any, types: Sequence[str]) -> Floats:
    rows = np.asarray(table, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(types):
        raise InputError(f"signatures must have a column for each of the {len(types)} types, got shape {rows.shape}.")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _log_likelihoods(X: Floats, S: Floats, E: Floats) -> Floats:
    """Return the Poisson log-likelihood of each sample, up to a constant."""
    expected = E @ S
    return np.asarray((xlogy(X, expected) - expected).sum(axis=1))


def _ratio(X: Floats, expected: Floats) -> Floats:
    return np.divide(X, expected, out=np.zeros_like(expected), where=expected > 0)


def _fitted(X: Floats, S: Floats, E: Floats) -> Floats:
    """Return the exposures of largest likelihood, by EM, which keeps zeros."""
    E = E.copy()
    moving = np.arange(len(X))
    last = _log_likelihoods(X, S, E)
    for step in range(1, _EM_STEPS + 1):
        expected = E[moving] @ S
        E[moving] *= _ratio(X[moving], expected) @ S.T
        if step % _EM_ROUND == 0:
            now = _log_likelihoods(X[moving], S, E[moving])
            more = now - last > _EM_GAIN
            moving, last = moving[more], now[more]
            if not moving.size:
                break
    return E


def _covering(X: Floats, S: Floats, E: Floats) -> Floats:
    """Return exposures that give every mutation of a sample a positive probability."""
    bare = ((E @ S <= 0) & (X > 0)).any(axis=1)
    E[bare] = np.maximum(E[bare], _FIRST_SHARE * X[bare].sum(axis=1, keepdims=True))
    return E


def _without_needless(X: Floats, S: Floats, E: Floats, least_gain: float) -> Floats:
    """Return exposures without signatures whose removal costs less than `least_gain`, one after the other."""
    E = E.copy()
    value = _log_likelihoods(X, S, E)
    open_rows = np.flatnonzero((E > 0).sum(axis=1) > 1)
    while open_rows.size:
        at, removed = np.nonzero(E[open_rows] > 0)
        rows = open_rows[at]
        tried = E[rows]
        tried[np.arange(rows.size), removed] = 0
        possible = ~((tried @ S <= 0) & (X[rows] > 0)).any(axis=1)
        tried[possible] = _fitted(X[rows[possible]], S, tried[possible])
        values = np.where(possible, _log_likelihoods(X[rows], S, tried), -np.inf)
        still = []
        for number, row in enumerate(open_rows):
            candidates = np.flatnonzero(at == number)
            best = candidates[values[candidates].argmax()]
            if value[row] - values[best] < least_gain:
                E[row], value[row] = tried[best], values[best]
                if np.count_nonzero(E[row]) > 1:
                    still.append(row)
        open_rows = np.array(still, dtype=np.intp)
    return E


def _with_useful(X: Floats, S: Floats, E: Floats, least_gain: float) -> Floats:
    """Return exposures with the signatures whose addition gains at least `least_gain`, one after the other."""
    E = E.copy()
    value = _log_likelihoods(X, S, E)
    open_rows = np.flatnonzero(X.sum(axis=1) > 0)
    while open_rows.size:
        expected = E[open_rows] @ S
        slope = _ratio(X[open_rows], expected) @ S.T
        at, added = np.nonzero((E[open_rows] == 0) & (slope > 1))
        if not at.size:
            break
        rows = open_rows[at]
        tried = E[rows]
        tried[np.arange(rows.size), added] = _FIRST_SHARE * X[rows].sum(axis=1)
        tried = _fitted(X[rows], S, tried)
        values = _log_likelihoods(X[rows], S, tried)
        still = []
        for number in np.unique(at):
            candidates, row = np.flatnonzero(at == number), open_rows[number]
            best = candidates[values[candidates].argmax()]
            if values[best] - value[row] >= least_gain:
                E[row], value[row] = tried[best], values[best]
                still.append(row)
        open_rows = np.array(still, dtype=np.intp)
    return E


def _standard_errors(S: Floats, E: Floats) -> Floats:
    """Return the roots of the inverse Fisher information of the signatures that each sample has."""
    errors = np.zeros_like(E)
    for row, exposures in enumerate(E):
        used = np.flatnonzero(exposures)
        expected = exposures @ S
        seen = expected > 0
        information = (S[used][:, seen] / expected[seen]) @ S[used][:, seen].T
        errors[row, used] = np.sqrt(np.maximum(np.diag(np.linalg.pinv(information)), 0))
    return errors
