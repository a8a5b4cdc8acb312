"""Effects of metadata: shares of topics regressed on a formula of columns.

With theta_d the weights of the topics in document d and a_d its row of the design, the coefficients are those of least
squares, B = (sum_d a_d a_d^T)^-1 sum_d a_d theta_d^T. Every document has the same weight, whatever its length. Here
theta_d is replaced by its linear estimate, the mean of the scores l_w over the tokens of the document. Given the
topics, its expectation is theta_d for a document of any length. Weights that are estimated for each document on its own
attenuate effects (posterior draws) or have errors that depend on the length (maximum likelihood).

Errors come from fits to resampled documents or clusters, which change the topics and the documents of the regression
together, so that they contain the uncertainty of the topics and are robust against unequal variances and dependence
within clusters. The bias of the topics of short documents is measured and corrected as for shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import f as f_distribution
from scipy.stats import false_discovery_control

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.metrics import top_words
from polyseme.metrics.words import frame, word_amounts
from polyseme.uncertainty.formula import Design
from polyseme.uncertainty.intervals import Differences, Intervals, Sampling, differences_of, normal_intervals
from polyseme.uncertainty.resampling import N_SIMULATIONS, Resampling, linear_scores
from polyseme.utils import RandomStateLike

_POINTS = 50
"""Values of a column of numbers for which shares are predicted."""
_LEAST_RANK = 1e-8
"""Smallest eigenvalue of the cross products of a resample that is used, relative to those of all documents."""


class Predictions(NamedTuple):
    """Predicted shares of the topics.

    Attributes
    ----------
    column : str
        The column of the metadata.
    values : list
        Its values.
    shares : Intervals of shape (n_values, K)
        Mean share of each topic if all documents had this value.
    """

    column: str
    values: list[Any]
    shares: Intervals


@dataclass(frozen=True, eq=False, repr=False)
class Effects:
    """Shares of topics regressed on metadata.

    Attributes
    ----------
    formula : str
        The formula.
    names : list of str
        Name of each coefficient: "Intercept", "rating[Liberal]" (against the first group), "s(day)[1]".
    coefficients : Differences of shape (n_coefficients, K)
        Coefficients with intervals and p-values. False discovery rates are over all but the constant.
    terms : list of str
        Terms of the formula without the constant.
    p_values : array of shape (n_terms, K)
        Probability that all coefficients of a term are at least as large if it has no effect (Wald test).
    q_values : array of shape (n_terms, K)
        False discovery rates over all terms and topics (Benjamini and Hochberg).
    topic_weights : array of shape (K,)
        P(z).
    topic_names : list of str
        Name of each topic.
    returned : array of shape (K,)
        Share of the resamples in which each topic came back.
    n_documents : int
        Number of documents in the regression.
    without_words : int
        Number of documents that are left out because they have no words.
    missing : dict of str to int
        Number of documents that are left out because a column has no value, by column.
    estimable : float
        Share of the resamples in which the coefficients could be computed; below 1 if a group has few clusters.
    """

    formula: str
    names: list[str]
    coefficients: Differences
    terms: list[str]
    p_values: Floats
    q_values: Floats
    topic_weights: Floats
    topic_names: list[str]
    returned: Floats
    n_documents: int
    without_words: int
    missing: dict[str, int]
    estimable: float
    _cautions: list[str] = field(repr=False)
    _design: Design = field(repr=False)
    _draws: Floats = field(repr=False)
    _biases: Floats = field(repr=False)
    _sampling: Sampling = field(repr=False)

    @property
    def columns(self) -> list[str]:
        """Columns of the metadata that the formula names."""
        return list(self._design.columns)

    @property
    def parts(self) -> dict[str, slice]:
        """Coefficients of each term."""
        return self._design.terms

    @property
    def level(self) -> float:
        """Level of the intervals."""
        return self._sampling.level

    @property
    def order(self) -> list[int]:
        """Topics by decreasing weight."""
        return np.argsort(-self.topic_weights, kind="stable").tolist()

    def groups(self, column: str) -> list[str]:
        """Return the groups of a column; an empty list for a column of numbers.

        Parameters
        ----------
        column : str
            A column of the formula.

        Returns
        -------
        list of str
            The groups.
        """
        self._design.values(column)
        return list(self._design.levels.get(column, []))

    def surest(self, column: str) -> list[int]:
        """Return the topics, those first on which terms with a column have the surest effect.

        Parameters
        ----------
        column : str
            A column of the formula.

        Returns
        -------
        list of int
            The topics.
        """
        self._design.values(column)
        return np.argsort(self.p_values[self._design.terms_with(column)].min(axis=0), kind="stable").tolist()

    def predict(self, column: str, values: Any = None, *, at: Mapping[str, Any] | None = None) -> Predictions:
        """Return the mean shares of the topics if all documents had a value in a column.

        Other columns keep their values. Means are over at most 2,000 documents, evenly spaced.

        Parameters
        ----------
        column : str
            A column of the formula.
        values : sequence, default=None
            Its values. None: all groups, or 50 numbers from the smallest to the largest one.
        at : mapping of str to object, default=None
            Values of other columns that all documents are given, such as {"rating": "Liberal"}.

        Returns
        -------
        Predictions
            Shares with intervals for each value.
        """
        if values is None:
            own = self._design.values(column)
            values = self.groups(column) or np.linspace(own.min(), own.max(), _POINTS).tolist()
        values = list(values)
        rows = np.array([self._design.mean_row({**(at or {}), column: value}) for value in values])
        found = normal_intervals(*self._combined(rows), self.level, self._sampling.df)
        return Predictions(
            column, values, Intervals(found.estimate, np.maximum(found.low, 0), np.minimum(found.high, 1), found.error)
        )

    def compare(self, column: str, first: Any, second: Any, *, at: Mapping[str, Any] | None = None) -> Differences:
        """Return how much more of each topic documents have with one value of a column than with another one.

        Parameters
        ----------
        column : str
            A column of the formula.
        first : object
            A value.
        second : object
            Another value.
        at : mapping of str to object, default=None
            Values of other columns that all documents are given.

        Returns
        -------
        Differences
            Mean share with the first value minus mean share with the second, one number per topic.
        """
        first_row, second_row = (self._design.mean_row({**(at or {}), column: value}) for value in (first, second))
        estimate, error = self._combined((first_row - second_row)[np.newaxis])
        return differences_of(estimate[0], error[0], self.level, self._sampling.df)

    def _combined(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return combinations of the coefficients (rows x K), and their standard errors."""
        bias = self._sampling.bias(rows @ self._biases)
        return rows @ self.coefficients.estimate, np.sqrt(self._sampling.error(rows @ self._draws) ** 2 + bias.variance)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return a row for each coefficient and topic, as columns by name.

        Returns
        -------
        dict
            Columns topic, name, coefficient, estimate, low, high, error, p_value and q_value.
        """
        n, K = self.coefficients.estimate.shape
        parts = {"estimate": "estimate", "low": "low", "high": "high", "error": "error"}
        parts |= {"p_value": "p_values", "q_value": "q_values"}
        return {
            "topic": list(range(K)) * n,
            "name": self.topic_names * n,
            "coefficient": [name for name in self.names for _ in range(K)],
            **{name: getattr(self.coefficients, part).ravel().tolist() for name, part in parts.items()},
        }

    def to_polars(self) -> Any:
        """Return the rows of `to_dict` as a polars data frame.

        Returns
        -------
        polars.DataFrame
            The rows.
        """
        return frame(self.to_dict())

    def cell(self, term: int, topic: int) -> str:
        """Return the effect of a term on a topic as text.

        Parameters
        ----------
        term : int
            Number of the term.
        topic : int
            The topic.

        Returns
        -------
        str
            The coefficient with its interval in percent, such as ``+3.10% (1.20 to 5.00) *``, or, for a term of several
            coefficients, the p-value, such as ``p = 0.003 *``. A star marks a false discovery rate below 0.05.
        """
        mark = " *" if self.q_values[term, topic] < 0.05 else ""
        part = self.parts[self.terms[term]]
        if part.stop - part.start > 1:
            p = self.p_values[term, topic]
            return f"p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}{mark}"
        found = self.coefficients[part.start, topic]
        return f"{found.estimate:+.2%} ({100 * found.low:.2f} to {100 * found.high:.2f}){mark}"

    @property
    def notes(self) -> list[str]:
        """What was left out, and what limits the result, one sentence each."""
        lines = [f"{self.n_documents:,} documents."]
        lines += [f"{n:,} documents without {name!r} are left out." for name, n in self.missing.items()]
        if self.without_words:
            lines.append(f"{self.without_words:,} documents without words are left out.")
        if self.estimable < 1:
            lines.append(
                f"In {1 - self.estimable:.0%} of the resamples the coefficients could not be computed: a group has few "
                "clusters, so the intervals are too short."
            )
        lost = [f"{k} ({share:.0%})" for k, share in enumerate(self.returned.tolist()) if share < 0.9]
        if lost:
            lines.append(f"Topics that came back in few of the resamples: {', '.join(lost)}.")
        return lines + self._cautions

    def __repr__(self) -> str:
        lines = [f"{self.formula}", " ".join([f"{'topic':<30}", *(f"{term[:30]:>30}" for term in self.terms)])]
        for k in self.order:
            cells = [f"{self.cell(term, k):>30}" for term in range(len(self.terms))]
            lines.append(" ".join([f"{k:>3} {self.topic_names[k][:26]:<26}", *cells]))
        return "\n".join([*lines, *self.notes])


class _Regression:
    """Least squares of the weights of documents on a design, for any weights of documents."""

    def __init__(self, design: Design) -> None:
        self._rows = design.rows
        self._basis, self._triangle = np.linalg.qr(design.matrix)

    def operator(self, weights: Floats) -> Floats | None:
        """Return the matrix (coefficients x documents) that multiplies the weights of topics, or None without rank."""
        weighted = self._basis * weights[self._rows, np.newaxis]
        cross = self._basis.T @ weighted
        if np.linalg.eigvalsh(cross)[0] < _LEAST_RANK:
            return None
        return np.asarray(np.linalg.solve(self._triangle, np.linalg.solve(cross, weighted.T)))

    def coefficients(self, weights: Floats, counts: SparseCounts, topics: Floats, totals: Floats) -> Floats:
        """Return the coefficients (n x K); NaN if the documents do not determine them."""
        operator = self.operator(weights)
        if operator is None:
            return np.full((self._basis.shape[1], len(topics)), np.nan)
        own = sp.csr_array(counts.matrix())[self._rows]
        lengths = np.maximum(counts.totals[self._rows], 1)
        words = (own.T @ (operator / lengths).T).T
        return np.asarray(words @ linear_scores(topics, totals).T)


def effects(
    model: Any,
    X: Any,
    formula: str,
    data: Any,
    *,
    clusters: Any = None,
    n_resamples: int = 100,
    level: float = 0.95,
    n_simulations: int = N_SIMULATIONS,
    topic_names: Sequence[str] | None = None,
    random_state: RandomStateLike = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Effects:
    """Return how the shares of topics depend on metadata, with errors from fits to resampled documents.

    A formula such as ``~ rating + s(day)`` has names of columns, combined by + (and), : (product), * (both and their
    product), - (without) and parentheses; s(x) is a natural cubic spline, s(x, df=5) one of five columns, log(x) the
    natural logarithm, and C(x) makes groups of numbers. Names that are no words are in backticks. Texts are groups.

    Parameters
    ----------
    model : estimator
        A model fitted by maximum likelihood without priors and without a background.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        The training documents.
    formula : str
        The formula.
    data : polars or pandas data frame, or mapping of str to sequence
        Metadata, with a value for each document.
    clusters : sequence, default=None
        The cluster of each document, such as its author, as in `bootstrap`.
    n_resamples : int, default=100
        Number of resamples.
    level : float, default=0.95
        Level of the intervals.
    n_simulations : int, default=12
        Number of fits to documents drawn from the model, which measure the bias of short documents.
    topic_names : sequence of str, default=None
        Name of each topic. None: its three most characteristic words.
    random_state : int, RandomState or Generator, default=0
        Seed of the random numbers.
    n_jobs : int, default=None
        Number of threads; None uses all cores. Results do not depend on it.
    progress : callable, default=None
        Called with (fits done, number of fits).

    Returns
    -------
    Effects
        Coefficients, tests, predicted shares and comparisons. Documents with a missing value are left out of the
        regression, not of the topics, and counted.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.uncertainty import effects
    >>> X = synthetic_corpus(100, n_topics=2, n_words=50, random_state=0).counts()
    >>> found = effects(PLSA(2, random_state=0).fit(X), X, "year", {"year": np.arange(100) // 10}, n_resamples=10)
    >>> found.names
    ['Intercept', 'year']
    """
    fits = Resampling(
        model, X, n_resamples, clusters=clusters, level=level, n_simulations=n_simulations, random_state=random_state,
        n_jobs=n_jobs, progress=progress,
    )  # fmt: skip
    return effects_of(fits, model, formula, data, topic_names)


def effects_of(fits: Resampling, model: Any, formula: str, data: Any, topic_names: Sequence[str] | None) -> Effects:
    """Return the result of `effects` from its fits."""
    counts = fits.counts
    design = Design.of(formula, data, counts.totals > 0)
    regression, totals = _Regression(design), counts.word_totals(None)
    ones = np.ones(counts.n_docs)
    estimate = regression.coefficients(ones, counts, fits.topics, totals)
    weights = np.maximum(linear_scores(fits.topics, totals) @ totals / totals.sum(), 0)
    draws = np.array(
        [
            np.where(matched.returned, regression.coefficients(drawn, counts, matched.topics, totals), np.nan)
            for drawn, matched in fits.resamples()
        ]
    )
    estimable = np.isfinite(draws).any(axis=(1, 2))
    if estimable.sum() < 2:
        raise InputError(
            f"Formula {formula!r}: too few resamples determine the coefficients: give more documents or clusters."
        )
    own = design if fits.rows is None else design.of_documents(fits.rows)
    simulated = _Regression(own)
    operator = simulated.operator(np.ones(counts.n_docs if fits.rows is None else fits.rows.size))
    if operator is None:
        raise InputError(f"Formula {formula!r}: a sample of the documents does not determine the coefficients.")
    found = []
    for theta, sample, _, matched in fits.simulations(weights):
        estimated = simulated.coefficients(np.ones(sample.n_docs), sample, matched.topics, sample.word_totals(None))
        found.append(estimated - operator @ theta[own.rows])
    biases = np.reshape(found, (len(found), *estimate.shape))
    sampling = fits.sampling
    bias = sampling.bias(biases)
    estimate = estimate - bias.mean
    error = np.sqrt(sampling.error(draws) ** 2 + bias.variance)
    every = differences_of(estimate, error, sampling.level, sampling.df)
    is_constant = np.array([name == "Intercept" for name in design.names])
    q_values = np.full(estimate.shape, np.nan)
    tested = every.p_values[~is_constant]
    q_values[~is_constant] = false_discovery_control(tested, axis=None).reshape(tested.shape)
    p_values = np.array(
        [_wald(estimate[part], draws[:, part], biases[:, part], sampling) for part in design.terms.values()]
    )
    if topic_names is None:
        words = top_words(word_amounts(model), 3)
        shown = fits.fitted.vocabulary
        topic_names = [", ".join(str(w) if shown is None else str(shown[w]) for w in row) for row in words]
    return Effects(
        formula,
        design.names,
        Differences(every.estimate, every.low, every.high, every.error, every.p_values, q_values),
        list(design.terms),
        p_values,
        false_discovery_control(p_values, axis=None).reshape(p_values.shape),
        weights / weights.sum(),
        list(topic_names),
        fits.returned,
        len(design.rows),
        int((counts.totals == 0).sum()),
        design.missing,
        float(estimable.mean()),
        fits.notes,
        design,
        draws,
        biases,
        sampling,
    )


def _wald(estimate: Floats, draws: Floats, biases: Floats, sampling: Sampling) -> Array:
    """Return a p-value for each topic: are all coefficients zero?

    `draws` are the coefficients in resamples, and `biases` their errors in drawn documents (both: draws x n x K).
    """
    n, K = estimate.shape
    unseen = np.sqrt(sampling.bias(biases).variance) * np.sign(biases.sum(axis=0))
    found = np.ones(K)
    for k in range(K):
        own = draws[np.isfinite(draws[:, :, k]).all(axis=1), :, k]
        df = min(sampling.df, len(own) - 1) - n + 1
        if df < 1:
            continue
        covariance = sampling.inflation**2 * np.atleast_2d(np.cov(own, rowvar=False))
        covariance = covariance + np.outer(unseen[:, k], unseen[:, k])
        statistic = estimate[:, k] @ np.linalg.pinv(covariance, hermitian=True) @ estimate[:, k]
        found[k] = f_distribution.sf(statistic * df / (n * (df + n - 1)), n, df)
    return found
