"""The priors, and `as_prior`, which converts what estimators accept as a prior.

The rows of a factor are independent under `Dirichlet`, `Smoothing`, `Sparsing`, `Entropic`, `SeedWords` and
`KnownTopics`.
`Decorrelation` and `TopicSelection` act on all rows together; they are regularizers of Vorontsov and Potapenko (2015),
with the M-step of BigARTM.

References
----------
M. Shashanka, B. Raj and P. Smaragdis (2007). Sparse overcomplete latent variable decomposition of counts data. Advances
in Neural Information Processing Systems 20.

K. Vorontsov and A. Potapenko (2015). Additive regularization of topic models. Machine Learning 101, 303-323.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import entr

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, weighted_sum
from polyseme.priors.base import (
    DOCUMENTS,
    TOPICS,
    Prior,
    Vocabulary,
    WeightedPrior,
    check_finite,
    check_length,
    check_strength,
    check_vector,
    combine,
    weighted_logs,
)

_MIN_ALPHA = 1e-6
"""Smallest alpha of merged columns, whose pseudo-counts alpha - 1 may add up to less than -1."""


@dataclass(frozen=True)
class Dirichlet(Prior):
    """Dirichlet prior with log density sum (alpha - 1) log f.

    The M-step is max(counts + alpha - 1, 0), normalized. alpha = 1 is neutral. alpha < 1 makes rows sparse: the density
    is unbounded at zeros, so it is summed over positive entries, and the objective falls when an entry becomes zero.

    Parameters
    ----------
    alpha : float or sequence of float
        Concentration, greater than zero: one number, or one per column.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import Dirichlet
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, topic_word_prior=Dirichlet(1.1), random_state=0, tol=0.1).fit(X)
    >>> bool((model.components_ > 0).all())
    True
    """

    alpha: float | Sequence[float]

    def __post_init__(self) -> None:
        if np.ndim(self.alpha) == 0:
            alpha: float | tuple[float, ...] = check_finite("Dirichlet", "alpha", self.alpha)
        else:
            alpha = check_vector("Dirichlet", "alpha", self.alpha)
        if np.min(alpha) <= 0:
            raise InputError(f"Dirichlet: alpha must be greater than zero, got {np.min(alpha):g}.")
        object.__setattr__(self, "alpha", alpha)

    @property
    def _excess(self) -> Floats:
        """alpha - 1, the pseudo-counts."""
        return np.asarray(self.alpha, dtype=np.float64) - 1

    @property
    def neutral(self) -> bool:
        return not self._excess.any()

    @property
    def monotone(self) -> bool:
        return bool((self._excess >= 0).all())

    def check(self, shape: tuple[int, ...]) -> None:
        check_length("Dirichlet", "alpha", self.alpha, shape)

    def with_merged_columns(self, groups: Sequence[Sequence[int]]) -> Dirichlet:
        if np.ndim(self.alpha) == 0:
            return self
        merged = [1 + self._excess[list(group)].sum() for group in groups]
        return Dirichlet(tuple(max(alpha, _MIN_ALPHA) for alpha in merged))

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        return np.broadcast_to(self._excess, counts.shape)

    def row_log_density(self, factor: Floats) -> Floats:
        self.check(factor.shape)
        return weighted_logs(self._excess, factor)


@dataclass(frozen=True)
class _TargetPrior(WeightedPrior):
    """Prior with `strength` pseudo-counts per row, distributed over its columns as in `target`."""

    _sign: ClassVar[int]
    """1 if the prior moves rows toward the target, -1 if it moves them away."""
    target: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target is not None:
            name = type(self).__name__
            target = check_vector(name, "target", self.target)
            if min(target) < 0 or sum(target) == 0:
                raise InputError(f"{name}: target must have no negative entry and a positive sum.")
            object.__setattr__(self, "target", target)

    @property
    def _shares(self) -> Floats | None:
        """The target, normalized."""
        return None if self.target is None else np.asarray(self.target) / sum(self.target)

    def _weights(self, n_columns: int) -> Floats:
        """Return the pseudo-counts of a row."""
        shares = np.full(n_columns, 1 / n_columns) if self._shares is None else self._shares
        return self._sign * self.strength * shares

    @property
    def monotone(self) -> bool:
        return self._sign > 0 or self.neutral

    def check(self, shape: tuple[int, ...]) -> None:
        check_length(type(self).__name__, "target", self.target, shape)

    def with_merged_columns(self, groups: Sequence[Sequence[int]]) -> Self:
        if self._shares is None:
            return self
        merged = np.array([self._shares[list(group)].sum() for group in groups])
        left = float(merged.sum())
        return replace(self, strength=self.strength * left, target=tuple(merged.tolist()) if left > 0 else None)

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        return np.broadcast_to(self._weights(counts.shape[1]), counts.shape)

    def row_log_density(self, factor: Floats) -> Floats:
        self.check(factor.shape)
        return weighted_logs(self._weights(factor.shape[1]), factor)


@dataclass(frozen=True)
class Smoothing(_TargetPrior):
    """Prior with log density strength sum target log f, which moves rows toward `target`.

    Up to a constant, the log density is -strength times the Kullback-Leibler divergence from the target to the row. It
    acts like `strength` additional tokens with the frequencies of the target.

    Parameters
    ----------
    strength : float
        Number of pseudo-counts per row, at least zero. 0 is neutral.
    target : sequence of float, default=None
        One non-negative number per column. None is the uniform distribution.

    References
    ----------
    K. Vorontsov and A. Potapenko (2015). Additive regularization of topic models. Machine Learning 101, 303-323.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import Smoothing
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, topic_word_prior=Smoothing(0.5), random_state=0, tol=0.1).fit(X)
    >>> bool((model.components_ > 0).all())
    True
    """

    _sign: ClassVar[int] = 1


@dataclass(frozen=True)
class Sparsing(_TargetPrior):
    """Prior with log density -strength sum target log f, which moves rows away from `target` and creates zeros.

    The opposite of `Smoothing`. Zeros are handled as by `Dirichlet` with alpha < 1.

    Parameters
    ----------
    strength : float
        Number of counts that are subtracted per row, at least zero. 0 is neutral.
    target : sequence of float, default=None
        One non-negative number per column. None is the uniform distribution.

    References
    ----------
    K. Vorontsov and A. Potapenko (2015). Additive regularization of topic models. Machine Learning 101, 303-323.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import Sparsing
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, doc_topic_prior=Sparsing(0.5), random_state=0, tol=0.1).fit(X)
    >>> model.doc_topic_.shape
    (4, 2)
    """

    _sign: ClassVar[int] = -1


@dataclass(frozen=True)
class Entropic(Prior):
    """Entropic prior with log density beta sum f log f, that is, -beta times the entropy.

    With beta > 0 this is the sparse PLSA of Shashanka, Raj and Smaragdis (2007).

    Parameters
    ----------
    beta : float
        Positive values make rows sparse, negative ones make them flat, 0 is neutral. The effect is relative to the
        number of tokens of a row.

    References
    ----------
    M. Shashanka, B. Raj and P. Smaragdis (2007). Sparse overcomplete latent variable decomposition of counts data.
    Advances in Neural Information Processing Systems 20.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import Entropic
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, topic_word_prior=Entropic(0.1), random_state=0, tol=0.1).fit(X)
    >>> model.components_.shape
    (2, 4)
    """

    beta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", check_finite("Entropic", "beta", self.beta))

    @property
    def neutral(self) -> bool:
        return self.beta == 0

    @property
    def monotone(self) -> bool:
        return True

    @property
    def entropic_weight(self) -> float:
        return self.beta

    def row_log_density(self, factor: Floats) -> Floats:
        return np.asarray(-self.beta * entr(factor).sum(axis=1))


@dataclass(frozen=True)
class Decorrelation(WeightedPrior):
    """Prior on topics x words with log density -strength sum_(k<l) f_k . f_l, for topics that share few words.

    The M-step is max(counts - strength f_k sum_(l != k) f_l, 0), normalized. It is one step of a fixed-point iteration,
    which can overshoot, so the objective may fall.

    Parameters
    ----------
    strength : float
        Weight of the prior, at least zero. 0 is neutral.

    References
    ----------
    K. Vorontsov and A. Potapenko (2015). Additive regularization of topic models. Machine Learning 101, 303-323.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import Decorrelation
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, topic_word_prior=Decorrelation(1.0), random_state=0, tol=0.1).fit(X)
    >>> model.components_.shape
    (2, 4)
    """

    acts_on: ClassVar[tuple[str, ...]] = (TOPICS,)

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        others = np.maximum(factor.sum(axis=0) - factor, 0)
        return -self.strength * factor * others

    def row_log_density(self, factor: Floats) -> Floats:
        # The term of a row is half of every pair that contains it.
        others = np.maximum(factor.sum(axis=0) - factor, 0)
        return np.asarray(-self.strength / 2 * (factor * others).sum(axis=1))


@dataclass(frozen=True)
class TopicSelection(WeightedPrior):
    """Prior on documents x topics with log density -strength (N / K) sum_t log p(t), which removes small topics.

    p(t) = sum_d n_d f_dt / N is the share of topic t in all N tokens. In every document a topic loses the share
    strength / (K p(t)) of its tokens. So a topic with less than strength / K of all tokens cannot make up a document,
    and at strengths above 1 at most K / strength topics remain. Removed topics do not enter the log density.

    The M-step is max(counts - strength n_d f_dt / (K p(t)), 0), normalized. It is one step of a fixed-point iteration,
    so the objective may fall.

    Parameters
    ----------
    strength : float
        Weight of the prior, at least zero. 0 is neutral.
    row_totals : ndarray of shape (n_docs,), default=None
        Number of tokens n_d of each document, set by `with_row_totals`. None uses the sums of the counts.
    row_weights : ndarray of shape (n_docs,), default=None
        Weight of each document, set by `with_row_totals`. None means that all weights are one.

    References
    ----------
    K. Vorontsov and A. Potapenko (2015). Additive regularization of topic models. Machine Learning 101, 303-323.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import TopicSelection
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, doc_topic_prior=TopicSelection(0.1), random_state=0, tol=0.1).fit(X)
    >>> model.doc_topic_.shape
    (4, 2)
    """

    acts_on: ClassVar[tuple[str, ...]] = (DOCUMENTS,)
    row_totals: Floats | None = field(default=None, repr=False, compare=False)
    row_weights: Floats | None = field(default=None, repr=False, compare=False)

    def for_new_documents(self) -> None:
        return None  # all documents together determine which topics are removed

    def with_row_totals(self, totals: Floats, weights: Floats | None = None) -> TopicSelection:
        return replace(self, row_totals=totals, row_weights=weights)

    def check(self, shape: tuple[int, ...]) -> None:
        if self.row_totals is not None and len(self.row_totals) != shape[0]:
            raise InputError(
                f"TopicSelection: there are {len(self.row_totals)} row totals, but {shape[0]} rows: give one per row."
            )

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        totals = counts.sum(axis=1) if self.row_totals is None else self.row_totals
        tokens = self._weighted_totals(totals)
        topic_tokens = weighted_sum(tokens, factor)
        shares = np.zeros(counts.shape)
        np.divide(totals[:, np.newaxis] * factor, topic_tokens, out=shares, where=topic_tokens > 0)
        return -self.strength * tokens.sum() / counts.shape[1] * shares

    def row_log_density(self, factor: Floats) -> Floats:
        # The term of a document is in proportion to its number of tokens.
        self.check(factor.shape)
        if self.row_totals is None:
            raise InputError(
                "TopicSelection needs the lengths of the documents for its log density: use with_row_totals."
            )
        tokens = self._weighted_totals(self.row_totals)
        topic_tokens = weighted_sum(tokens, factor)
        logs = np.log(topic_tokens[topic_tokens > 0]) - np.log(max(tokens.sum(), np.finfo(np.float64).tiny))
        return np.asarray(-self.strength / factor.shape[1] * logs.sum() * self.row_totals)

    def _weighted_totals(self, totals: Floats) -> Floats:
        """Return the number of tokens of each document times its weight."""
        return totals if self.row_weights is None else totals * self.row_weights


@dataclass(frozen=True)
class SeedWords(Prior):
    """Prior on topics x words with log density strength sum log f_kw over the seed words w of each topic k.

    Every seed word counts as if it had occurred `strength` more times in its topic. Other topics and other words are
    not affected.

    Parameters
    ----------
    seeds : mapping of int to sequence of str or int
        Seed words of each guided topic, as names or columns.
    vocabulary : sequence of str or mapping of str to int, default=None
        The words in the order of the columns, or the column of each word. None leaves names to `resolve`, which the
        estimator calls with its own vocabulary.
    strength : float, default=100.0
        Number of pseudo-counts per seed word, at least zero. 0 is neutral.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import SeedWords
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, topic_word_prior=SeedWords({0: [2, 3]}), random_state=0, tol=0.1).fit(X)
    >>> bool(model.components_[0, 3] > model.components_[1, 3])
    True
    """

    acts_on: ClassVar[tuple[str, ...]] = (TOPICS,)
    names_topics: ClassVar[bool] = True
    seeds: Mapping[int, Sequence[str | int]]
    vocabulary: InitVar[Vocabulary | None] = None
    strength: float = 100.0

    def __post_init__(self, vocabulary: Vocabulary | None) -> None:
        object.__setattr__(self, "strength", check_strength("SeedWords", self.strength))
        if not isinstance(self.seeds, Mapping) or not self.seeds:
            raise InputError(f"SeedWords: seeds must map topic numbers to lists of words, got {self.seeds!r}.")
        seeds = {_check_topic(topic): _check_words(topic, words) for topic, words in self.seeds.items()}
        object.__setattr__(self, "seeds", seeds if vocabulary is None else _resolve_seeds(seeds, vocabulary))

    @property
    def neutral(self) -> bool:
        return self.strength == 0

    @property
    def monotone(self) -> bool:
        return True

    def resolve(self, vocabulary: Vocabulary) -> SeedWords:
        return SeedWords(self.seeds, vocabulary, self.strength)

    def with_merged_rows(self, groups: Sequence[Sequence[int]], banned: Sequence[int] = ()) -> SeedWords | None:
        # A new topic has the seed words of all old ones.
        merged = {
            topic: [word for part in group for word in self.seeds.get(part, ()) if word not in banned]
            for topic, group in enumerate(groups)
        }
        left = {topic: words for topic, words in merged.items() if words}
        return SeedWords(left, None, self.strength) if left else None

    def check(self, shape: tuple[int, ...]) -> None:
        names = [word for words in self.seeds.values() for word in words if isinstance(word, str)]
        if names:
            raise InputError(
                f"SeedWords needs the vocabulary to find the columns of {_quoted(names)}: give vocabulary, or columns "
                "instead."
            )
        for topic, columns in self.seeds.items():
            if topic >= shape[0]:
                raise InputError(f"SeedWords: there are seeds for topic {topic}, but topics end at {shape[0] - 1}.")
            out_of_range = [column for column in columns if int(column) >= shape[1]]
            if out_of_range:
                raise InputError(
                    f"SeedWords: column {out_of_range[0]} is a seed word, but columns end at {shape[1] - 1}."
                )

    def adapt_start(self, factor: Floats) -> Floats:
        # A guided topic has half of its probability on its seed words; the other half is the mean of all topics. With a
        # random half, it could start nearer to some other subject than every free topic, and lose its documents to it.
        mean, factor = factor.mean(axis=0), factor.copy()
        for topic, columns in self.seeds.items():
            if columns:
                factor[topic] = mean / 2
                factor[topic, [int(column) for column in columns]] += 0.5 / len(columns)
        return factor

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        self.check(counts.shape)
        added = np.zeros(counts.shape)
        for topic, columns in self.seeds.items():
            added[topic, [int(column) for column in columns]] = self.strength
        return added

    def row_log_density(self, factor: Floats) -> Floats:
        return weighted_logs(self.pseudo_counts(factor, factor), factor)


@dataclass(frozen=True)
class KnownTopics(Prior):
    """Prior on documents x topics for training documents whose topics are known, such as labeled documents.

    Without a strength, a document with known topics has no others: their weights are zero. With a strength, its known
    topics share that many additional tokens: the log density is strength / n sum log f over the n known topics. Other
    documents are free. The entries belong to the training documents, in their order. `doc_topic_` follows them;
    `transform` does not, because a new document has no known topics. A prior for individual documents cannot be used
    with shards or `partial_fit`.

    Parameters
    ----------
    topics : sequence
        One entry per training document: the number of a topic, a sequence of such numbers, or None or -1 for a document
        whose topics are not known.
    strength : float, default=None
        Number of pseudo-counts per document, at least zero. 0 is neutral. None: other topics have weight zero.
    in_training : bool, default=False
        Set by `for_training_documents`: the documents that are folded in are the training documents.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import KnownTopics
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, doc_topic_prior=KnownTopics([0, None, 1, None]), random_state=0, tol=0.1).fit(X)
    >>> model.doc_topic_[[0, 2]].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    acts_on: ClassVar[tuple[str, ...]] = (DOCUMENTS,)
    names_topics: ClassVar[bool] = True
    topics: Sequence[int | Sequence[int] | None]
    strength: float | None = None
    in_training: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.strength is not None:
            object.__setattr__(self, "strength", check_strength("KnownTopics", self.strength))
        if isinstance(self.topics, str | Mapping) or not np.iterable(self.topics):
            raise InputError(f"KnownTopics: topics must have one entry per document, got {self.topics!r}.")
        object.__setattr__(self, "topics", tuple(_check_known(entry) for entry in self.topics))

    @cached_property
    def _entries(self) -> tuple[Array, Array]:
        """Rows and columns of the known topics."""
        rows = [row for row, known in enumerate(self.topics) for _ in known or ()]  # type: ignore[union-attr]
        columns = [topic for known in self.topics for topic in known or ()]  # type: ignore[union-attr]
        return np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp)

    @property
    def neutral(self) -> bool:
        return self.strength == 0 or not self._entries[0].size

    @property
    def monotone(self) -> bool:
        return True

    def check(self, shape: tuple[int, ...]) -> None:
        if len(self.topics) != shape[0]:
            raise InputError(
                f"KnownTopics: there are {len(self.topics)} entries, but {shape[0]} documents: give one per document."
            )
        columns = self._entries[1]
        if columns.size and columns.max() >= shape[1]:
            raise InputError(f"KnownTopics: topic {columns.max()} is known, but topics end at {shape[1] - 1}.")

    def support(self, shape: tuple[int, ...]) -> Array | None:
        if self.strength is not None:
            return None
        rows, columns = self._entries
        mask = np.ones(shape, dtype=bool)
        mask[rows] = False
        mask[rows, columns] = True
        return mask

    def adapt_start(self, factor: Floats) -> Floats:
        support = self.support(factor.shape)
        if support is None:
            return factor
        # A document has weight in its known topics only; without any weight there, equal weights.
        inside = np.where(support, factor, 0)
        inside += support * (inside.sum(axis=1, keepdims=True) <= 0)
        return np.asarray(inside / inside.sum(axis=1, keepdims=True))

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        added = np.zeros(counts.shape)
        if self.strength is not None:
            rows, columns = self._entries
            added[rows, columns] = self.strength / np.bincount(rows, minlength=len(counts))[rows]
        return added

    def row_log_density(self, factor: Floats) -> Floats:
        self.check(factor.shape)
        support = self.support(factor.shape)
        if support is not None:
            return np.where(np.where(support, 0, factor).sum(axis=1) > 0, -np.inf, 0.0)
        return weighted_logs(self.pseudo_counts(factor, factor), factor)

    def with_rows(self, rows: Any) -> KnownTopics:
        chosen = np.arange(len(self.topics))[rows]
        return replace(self, topics=tuple(self.topics[row] for row in chosen))

    def for_training_documents(self) -> KnownTopics:
        return replace(self, in_training=True)

    def for_new_documents(self) -> KnownTopics | None:
        return self if self.in_training else None  # the topics of a new document are not known

    def with_merged_columns(self, groups: Sequence[Sequence[int]]) -> KnownTopics:
        new = {old: topic for topic, group in enumerate(groups) for old in group}
        known = ([new[topic] for topic in entry or () if topic in new] for entry in self.topics)  # type: ignore[union-attr]
        return replace(self, topics=tuple(sorted(set(entry)) or None for entry in known))


def as_prior(value: Any) -> Prior | None:
    """Convert what estimators accept as a prior to one prior: None, the alpha of a Dirichlet, a prior, or a list."""
    if value is None or isinstance(value, Prior):
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        return Dirichlet(float(value))
    if isinstance(value, list | tuple):
        return combine(value)
    got = repr(value)
    if isinstance(value, np.ndarray):
        got = f"an array of shape {value.shape}: write a vector as Dirichlet([...])"
    raise InputError(f"A prior must be None, a number (Dirichlet alpha), a Prior or a list of Priors, got {got}.")


def _check_topic(topic: Any) -> int:
    if not isinstance(topic, Integral) or isinstance(topic, bool) or topic < 0:
        raise InputError(f"SeedWords: a topic must be a whole number from 0 on, got {topic!r}.")
    return int(topic)


def _check_known(entry: Any) -> tuple[int, ...] | None:
    """Return the known topics of a document; None if there are none."""
    if entry is None or (isinstance(entry, Integral) and not isinstance(entry, bool) and entry == -1):
        return None
    topics = tuple(entry) if np.iterable(entry) and not isinstance(entry, str) else (entry,)
    for topic in topics:
        if not isinstance(topic, Integral) or isinstance(topic, bool) or topic < 0:
            raise InputError(f"KnownTopics: a topic must be a whole number from 0 on, got {topic!r}.")
    if not topics:
        raise InputError("KnownTopics: a document has an empty list of topics: give None if its topics are not known.")
    return tuple(dict.fromkeys(int(topic) for topic in topics))


def _check_words(topic: Any, words: Any) -> tuple[str | int, ...]:
    if isinstance(words, str) or not np.iterable(words):
        raise InputError(f"SeedWords: the words of topic {topic} must be a list, got {words!r}.")
    return tuple(dict.fromkeys(_check_word(word) for word in words))


def _check_word(word: Any) -> str | int:
    if isinstance(word, str):
        return str(word)
    if not isinstance(word, Integral) or isinstance(word, bool) or word < 0:
        raise InputError(f"SeedWords: a word must be a name or a column from 0 on, got {word!r}.")
    return int(word)


def _resolve_seeds(seeds: dict[int, tuple[str | int, ...]], vocabulary: Vocabulary) -> dict[int, tuple[int, ...]]:
    if isinstance(vocabulary, Mapping):
        column_of = {str(word): int(column) for word, column in vocabulary.items()}
    else:
        column_of = {str(word): column for column, word in enumerate(vocabulary)}
    names = [word for words in seeds.values() for word in words if isinstance(word, str)]
    missing = [word for word in names if word not in column_of]
    if missing:
        raise InputError(f"SeedWords: the vocabulary does not have {_quoted(missing)}.")
    return {
        topic: tuple(dict.fromkeys(column_of[word] if isinstance(word, str) else word for word in words))
        for topic, words in seeds.items()
    }


def _quoted(names: list[str]) -> str:
    return ", ".join(repr(name) for name in dict.fromkeys(names))
