"""FittedTopics: the parameters of a fitted topic model. Estimators, search, pages, selection and runs hold one.

How the weights of a document are found with the topics fixed is its `inference`, one of four: maximum likelihood
(`core.fold_in`), a Dirichlet posterior (`core.dirichlet`), a logistic-normal posterior (`core.logistic_normal`) or the
minimum of another loss (`core.fold_in`).

The words shown for a topic are ranked by expected numbers of documents (`WordDocuments`): the sum of P(z|d,w) over the
training documents that contain a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from polyseme.core.shard import Additive, Shard, sample_documents
from polyseme.kernels import Array, Floats, SparseCounts, Want, normalize_rows, padded, weighted_sum
from polyseme.losses.entry_weights import EntryWeights
from polyseme.priors.base import Prior

if TYPE_CHECKING:
    from polyseme.core.model import Background


_SAMPLE_NUMBERS, _SAMPLE_NONZEROS = 1 << 22, (1 << 13, 1 << 15)
"""Size of the arrays from which a prior is learned, and the limits of their number of non-zeros."""
_SAMPLE_RESERVE = 4
"""A shard contributes this many times its share of the sample, because the number of its documents in the sample is
random."""


class DocumentWeights(NamedTuple):
    """Topic weights of documents, and the counts they were computed from.

    Attributes
    ----------
    doc_topic : array of shape (n_documents, K)
        P(z|d).
    background : array of shape (n_documents,)
        Share of the background in each document; zeros without a background.
    counts : SparseCounts
        The counts without unknown words.
    unseen_tokens : float
        Number of tokens of unknown words.
    bounds : array of shape (n_documents,) or None
        Contribution of each document to the variational bound; None if the weights maximize the likelihood.
    parameters : mapping of str to array
        Other parameters of each document, by name: those of its posterior, or W of NMF with another loss.
    """

    doc_topic: Array
    background: Floats
    counts: SparseCounts
    unseen_tokens: float = 0.0
    bounds: Floats | None = None
    parameters: Mapping[str, Array] = {}


class GivenDocuments(NamedTuple):
    """What folding in uses of documents in addition to their counts."""

    start: Array | None = None
    """Weights to start from (documents x width). None: uniform weights."""
    entries: EntryWeights | None = None
    """Weights v of the entries, where the counts are v x. None: all are one."""


class StoredArray(NamedTuple):
    """Declaration of an array that a model file stores."""

    axes: str
    """A letter for each axis: documents D, topics (or leaves) K, words W, others as the class needs. Axes with the same
    letter have the same size; * is any size. | separates possible axes."""
    dtypes: tuple[str, ...] = ("float32", "float64")
    """Allowed dtypes; "object" and "str" are lists of strings in the file."""
    required: bool = True


class Inference(Protocol):
    """How the weights of a document are found with the topics fixed."""

    kind: ClassVar[str]
    """Name in files and pages."""
    is_likelihood: ClassVar[bool]
    """Whether documents have a likelihood, so that held-out words can be scored."""
    has_prior_mean: ClassVar[bool]
    """Whether a document without known words gets weights from the inference itself, and not P(z)."""
    learns_prior: ClassVar[bool]
    """Whether a prior on P(z|d) is learned from training documents (`LearnedPrior`), because the inference has none."""

    @property
    def has_one_maximum(self) -> bool:
        """Whether the weights of a document do not depend on where the inference starts."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters of a document in `DocumentWeights.parameters`, in their order."""

    @property
    def temperature(self) -> float:
        """Exponent beta of P(z|d,w), proportional to (P(z|d) P(w|z))^beta."""

    @property
    def background(self) -> Background | None:
        """Background with its distribution; None without one."""

    def weights(
        self, counts: SparseCounts, topic_word: Array, topic_weights: Floats | None, *, n_threads: int,
        given: GivenDocuments | None = None,
    ) -> DocumentWeights:  # fmt: skip
        """Return the weights of every row of `counts`. A topic whose row in `topic_word` (K x words) is zero is off.

        An inference with several maxima starts from `given.start`; others ignore it.
        """

    def operands(self, weights: DocumentWeights, topic_word: Array) -> tuple[Array, Array]:
        """Return operands (documents x width, words x width) whose products are P(w|d)."""

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Arrays of words x topics, which are too large to be sent to a worker with every task."""

    def without_arrays(self) -> Self:
        """Return the inference without these arrays."""

    def with_arrays(self, arrays: tuple[Array, ...]) -> Self:
        """Return the inference with these arrays again."""


class NoLargeArrays:
    """Methods of an inference without arrays of words x topics."""

    @property
    def arrays(self) -> tuple[Array, ...]:
        return ()

    def without_arrays(self) -> Self:
        return self

    def with_arrays(self, arrays: tuple[Array, ...]) -> Self:
        return self


class OwnPrior:
    """Facts and operands of an inference with a prior of its own on the weights of a document."""

    is_likelihood: ClassVar[bool] = True
    has_prior_mean: ClassVar[bool] = True
    has_one_maximum: ClassVar[bool] = True
    learns_prior: ClassVar[bool] = False
    temperature: ClassVar[float] = 1.0

    def operands(self, weights: DocumentWeights, topic_word: Array) -> tuple[Array, Array]:
        return mean_operands(weights, topic_word)


def mean_operands(weights: DocumentWeights, topic_word: Array) -> tuple[Array, Array]:
    """Return the operands of P(w|d) = sum_z P(z|d) P(w|z)."""
    return padded(weights.doc_topic, topic_word.dtype), padded(topic_word.T, topic_word.dtype)


def posterior_operands(operands: tuple[Array, Array], temperature: float) -> tuple[Array, Array]:
    """Return operands for which A_dz B_wz / (A_d . B_w) is P(z|d,w), from those whose products are P(w|d)."""
    A, B = operands
    return (A, B) if temperature == 1.0 else (A**temperature, B**temperature)


@dataclass(frozen=True)
class DocumentSums(Additive):
    """Expected numbers of documents, weighted, by which the words shown for a topic are ranked."""

    word_sums: Floats
    """n_zw, the sum of P(z|d,w) over the documents that contain w (words x width; use the columns of topics only)."""
    topics: Floats
    """D_z, the sum of P(z|d) over the documents with at least one word of the model, shape (K,)."""
    words: Floats
    """df_w, the number of documents that contain w."""

    def by_topic(self) -> WordDocuments:
        """Return the sums as topics x words."""
        # float32 is precise enough to rank words
        rows = np.ascontiguousarray(self.word_sums[:, : self.topics.size].T, dtype=np.float32)
        return WordDocuments(rows, self.topics, self.words)


def document_sums(
    counts: SparseCounts,
    operands: tuple[Array, Array],
    doc_topic: Array,
    weights: Floats | None = None,
    *,
    n_threads: int = 1,
    memory: Floats | None = None,
) -> DocumentSums:
    """Return the expected numbers of documents per topic and word, by one sweep with every count set to 1.

    P(z|d,w) = A_dz B_wz / (A_d . B_w) is summed over the documents. `operands` are A (documents x width) and B (words x
    width); their first columns are the topics, and one more may be a background. `doc_topic` is P(z|d) (documents x K).
    """
    A, B = operands
    present = counts.presence()
    sums = present.sums(A, B, Want.WORDS, n_threads=n_threads, weights=weights, memory=memory).word_sums
    sums *= B
    if weights is None:
        words = np.diff(present.transposed(None).indptr).astype(np.float64)
    else:
        words = present.word_totals(weights)
    del present  # and its transpose, which is as large as the counts
    known = np.asarray((B > 0).any(axis=1))
    counted = counts.reduce_rows(np.logical_or, known[counts.indices], bool)
    per_document = np.where(counted, 1.0 if weights is None else weights, 0.0)
    topics = weighted_sum(per_document, doc_topic, n_threads=n_threads)
    return DocumentSums(sums, topics, words)


class WordDocuments(NamedTuple):
    """Expected numbers of documents of a corpus."""

    amounts: Array
    """n_zw, K x words: documents that contain a word and use it in a topic."""
    topics: Floats
    """D_z, the sum of P(z|d) over the documents, shape (K,)."""
    words: Floats
    """df_w, the number of documents that contain each word."""


@dataclass(frozen=True, eq=False)
class FittedTopics:
    """A fitted topic model."""

    stored: ClassVar[Mapping[str, StoredArray]] = {
        "topic_word": StoredArray("KW"),
        "topic_weights": StoredArray("K"),
        "unigram": StoredArray("W"),
        "active": StoredArray("K", ("bool",)),
    }
    stored_words: ClassVar[Mapping[str, StoredArray]] = {
        "amounts": StoredArray("KW"),
        "topics": StoredArray("K"),
        "words": StoredArray("W"),
    }
    """Arrays of `word_documents`."""
    topic_word: Array
    """P(w|z), K x words; rows sum to one."""
    topic_weights: Floats
    """P(z), shape (K,)."""
    unigram: Floats
    """P(w) of the training documents."""
    active: Array
    """Which topics are used when documents are folded in, shape (K,). A topic without documents is not."""
    n_tokens: float
    """Number of training tokens, weighted."""
    n_documents: float
    """Number of training documents."""
    inference: Inference
    """How the weights of a document are found."""
    vocabulary: Array | None = None
    """The word of each column."""
    word_documents: WordDocuments | None = None
    """Ranks the words shown; None if the training documents were not folded in (`partial_fit`)."""
    learned_prior: LearnedPrior | None = None
    """Prior on P(z|d); None if the inference has its own, or the training documents were not folded in."""

    @property
    def n_topics(self) -> int:
        """Number of topics K."""
        return int(self.topic_word.shape[0])

    @property
    def document_prior(self) -> Floats | None:
        """Parameters of the learned prior: one per topic, then one for the background if there is one."""
        return None if self.learned_prior is None else self.learned_prior.values

    def fold_in(
        self, counts: SparseCounts, *, n_threads: int = 1, entries: EntryWeights | None = None
    ) -> DocumentWeights:
        """Return the topic weights of every row of `counts`, with the topics fixed.

        With weights v of the entries, the counts are v x.
        """
        given = None if entries is None else GivenDocuments(entries=entries)
        return self.inference.weights(counts, self.active_topics, self.topic_weights, n_threads=n_threads, given=given)

    def token_probabilities(self, weights: DocumentWeights, scored: SparseCounts, *, n_threads: int = 1) -> Array:
        """Return P(w|d) of every non-zero of `scored`, whose rows are the documents of `weights`."""
        return scored.products(*self.inference.operands(weights, self.topic_word), n_threads=n_threads)

    @property
    def active_topics(self) -> Array:
        """P(w|z) with zeros for inactive topics."""
        return active_rows(self.topic_word, self.active)

    def symmetric_view(self, documents: TrainingDocuments) -> SymmetricView:
        """Return P(z) and P(d|z) of the training documents; with a joint background, of the topics' part of them."""
        background, weights = self.inference.background, documents.doc_weights
        if background is not None and background.joint:
            scaled = weights * background.topic_scales(documents.background)
            weights = scaled / scaled.sum() if scaled.sum() > 0 else weights
        return symmetric_view(documents.doc_topic, weights)

    def missing_words(self, unigram: Floats) -> Array:
        """Return a mask of the words with a positive frequency that have probability zero in every active topic."""
        return (self.active_topics.sum(axis=0) == 0) & (unigram > 0)


def topic_scales(inference: Inference, shares: Floats) -> Floats | float:
    """Return s_d = sum_z P(z) P(d|z) / P(d) of documents with these shares of the background; 1 unless it is joint."""
    return 1.0 if inference.background is None else inference.background.topic_scales(shares)


def observed_shares(doc_topic: Array, topic_word: Array, entries: EntryWeights, *, n_threads: int = 1) -> Floats:
    """Return sum_w v_dw P(w|d) of each document, by which sum v x is divided to estimate its total without weights."""
    sums = entries.over_words(padded(topic_word.T, topic_word.dtype), n_threads=n_threads)
    return np.einsum("dk,dk->d", doc_topic, sums[:, : doc_topic.shape[1]], dtype=np.float64)


def active_rows(topic_word: Array, active: Array) -> Array:
    """Return P(w|z) with zeros for inactive topics; the array itself if all are active."""
    return topic_word if active.all() else topic_word * active[:, np.newaxis]


def with_missing_words(rows: Array, missing: Array, unigram: Floats) -> Array:
    """Return distributions of words in which each missing word (a mask) has its unigram probability, normalized again.

    Rows of zeros (silent nodes of a tree) remain zero. Without missing words the result is the array itself.
    """
    if not missing.any():
        return rows
    completed = rows.astype(np.float64)
    filled = completed.sum(axis=1) > 0
    completed[filled] = normalize_rows(normalize_rows(completed[filled]) + np.where(missing, unigram, 0.0))
    return completed.astype(rows.dtype)


@dataclass(frozen=True, eq=False)
class TrainingDocuments:
    """Parameters of the training documents of a fitted model."""

    stored: ClassVar[Mapping[str, StoredArray]] = {
        "doc_weights": StoredArray("D"),
        "doc_topic": StoredArray("DK"),
        "background": StoredArray("D"),
    }
    doc_weights: Floats
    """P(d)."""
    doc_topic: Array
    """P(z|d), documents x K."""
    background: Floats
    """Share of the background in each document."""
    parameters: Mapping[str, Array] = field(default_factory=dict)
    """Other parameters of each document, by name."""

    def take(self, rows: Array) -> TrainingDocuments:
        """Return some of the documents, in memory."""
        weights = np.asarray(self.doc_weights[rows])
        return TrainingDocuments(
            weights / weights.sum() if weights.sum() > 0 else weights,
            np.asarray(self.doc_topic[rows]),
            np.asarray(self.background[rows]),
            {name: np.asarray(array[rows]) for name, array in self.parameters.items()},
        )


class FoldedTraining(NamedTuple):
    """A fitted model, with its training documents folded in."""

    fitted: FittedTopics
    documents: TrainingDocuments
    log_likelihood: float
    """Mean log P(w|d) of a training token."""
    bound: float
    """Sum of the documents' contributions to the variational bound; 0 if the weights maximize the likelihood."""


@dataclass(frozen=True, eq=False)
class FoldIn:
    """The task of folding in the documents of a shard: small, because it may be sent to a worker.

    The large arrays, (P(w|z), *inference.arrays), are passed beside it. If `topic_weights` is None, the documents are
    the training documents: P(z) follows from them, and their expected numbers per topic and word are counted.
    """

    inference: Inference
    """Inference without its arrays."""
    active: Array
    """Which topics are used, shape (K,)."""
    tokens: float
    """Number of tokens of the corpus, weighted."""
    topic_weights: Floats | None = None
    prior: Prior | None = None
    """Prior with terms for training documents (`Prior.for_training_documents`). It replaces that of the inference."""

    def of_rows(self, rows: slice) -> FoldIn:
        """Return the task for some of the documents. With a prior for individual documents, they must be in memory."""
        if self.prior is None:
            return self
        known: Any = self.inference  # MaximumLikelihood, the only inference with priors
        return replace(self, inference=replace(known, prior=self.prior.with_rows(rows)))

    @property
    def training(self) -> bool:
        """Return whether the documents are the training documents."""
        return self.topic_weights is None

    def __call__(
        self, counts: SparseCounts, weights: Floats | None, totals: Floats, arrays: tuple[Array, ...], n_threads: int,
        given: GivenDocuments | None = None, memory: Floats | None = None,
    ) -> tuple[FoldedPart, DocumentSums | None]:  # fmt: skip
        """Fold in some documents. `weights` are those of the documents (None: one), `totals` their weighted lengths.

        `memory` is reused for the word sums.
        """
        topic_word, *others = arrays
        inference = self.inference.with_arrays(tuple(others))
        topics = active_rows(topic_word, self.active)
        folded = inference.weights(counts, topics, self.topic_weights, n_threads=n_threads, given=given)
        rows = {"doc_topic": folded.doc_topic}
        if not self.training:
            return FoldedPart(rows, np.empty(0, dtype=np.intp)), None
        background = inference.background
        if background is not None and background.joint:
            rows["background"] = folded.background
        operands = inference.operands(folded, topic_word)
        sums = document_sums(
            folded.counts, posterior_operands(operands, inference.temperature), folded.doc_topic, weights,
            n_threads=n_threads, memory=memory,
        )  # fmt: skip
        logs = folded.counts.sums(*operands, Want.LOGS, n_threads=n_threads).logs
        if given is not None and given.entries is not None:  # condition on the observed entries
            observed = observed_shares(folded.doc_topic, topics, given.entries, n_threads=n_threads)
            logs = logs - folded.counts.totals * np.log(np.where(observed > 0, observed, 1))
        documents = Shard(counts, weights, n_threads)
        unknown = np.diff(folded.counts.indptr) == 0
        part = FoldedPart(
            {**rows, **folded.parameters},
            np.flatnonzero(unknown & (not inference.has_prior_mean)),
            documents.total_log(logs),
            0.0 if folded.bounds is None else documents.total_log(folded.bounds),
            weighted_sum(totals / self.tokens * topic_scales(inference, folded.background), folded.doc_topic),
            self._sample(folded, weights, float(totals.sum())) if inference.learns_prior else None,
        )
        return part, sums

    def _sample(self, folded: DocumentWeights, weights: Floats | None, tokens: float) -> DocumentSample:
        """Return the documents from which a prior is learned, roughly in proportion to the tokens of the shard."""
        size = sample_size(folded.doc_topic.shape[1])
        part = min(size, int(_SAMPLE_RESERVE * size * tokens / self.tokens) + 1)
        weights = np.ones(folded.counts.n_docs) if weights is None else weights
        rows = sample_documents(folded.counts, part, weights > 0)
        known = DocumentWeights(folded.doc_topic[rows], folded.background[rows], folded.counts.take(rows))
        return DocumentSample(known, weights[rows])


class FoldedPart(NamedTuple):
    """Result of folding in some documents."""

    rows: dict[str, Array]
    """Arrays with one row per document, by name; empty after they were written to files."""
    unknown: Array
    """Documents without known words, which get P(z)."""
    log_sum: float = 0.0
    """sum x log P(w|d), weighted."""
    bound: float = 0.0
    """Contribution of the documents to the variational bound; 0 if the weights maximize the likelihood."""
    topic_weights: Floats | float = 0.0
    """sum_d P(d) P(z|d), with a joint background times s_d (`Background.topic_scales`)."""
    sample: DocumentSample | None = None
    """Training documents from which a prior is learned; None if the inference learns none."""


class DocumentSample(NamedTuple):
    """Some training documents."""

    folded: DocumentWeights
    """Their topic weights and counts."""
    weights: Floats
    """Their weights in the fit."""


class PriorEvidence(NamedTuple):
    """Data from which a prior on P(z|d) is learned."""

    fitted: FittedTopics
    """The fitted model. Its `word_documents`, a large array, is not used."""
    topic_sums: Floats
    """D_z, the sum of P(z|d) over all training documents."""
    samples: list[DocumentSample]
    """Documents of each shard."""


class LearnedPrior:
    """Dirichlet prior on P(z|d), learned from a sample of the training documents when it is first used.

    Learning can take as long as a small fit, and many models never need it. The sample is released afterwards.
    """

    def __init__(self, values: Floats | None = None, evidence: PriorEvidence | None = None) -> None:
        self._values, self._evidence = values, evidence

    @property
    def values(self) -> Floats:
        """Parameters of the prior: one per topic, then one for the background if there is one."""
        evidence = self._evidence  # another thread may learn the same values meanwhile
        if evidence is not None:
            from polyseme.core.dirichlet import learn_prior  # which imports this module

            self._values = learn_prior(evidence)
            self._evidence = None
        assert self._values is not None
        return self._values


def sample_size(n_topics: int) -> int:
    """Return the number of non-zeros of the documents from which a prior is learned, in arrays of non-zeros x K."""
    return int(np.clip(_SAMPLE_NUMBERS // n_topics, *_SAMPLE_NONZEROS))


class Foldable(Protocol):
    """The part of a corpus (`data.corpus.Corpus`) that folding in uses."""

    @property
    def n_docs(self) -> int: ...
    @property
    def tokens(self) -> float: ...
    @property
    def doc_weights(self) -> Floats: ...
    def fold_in(self, job: FoldIn, arrays: tuple[Array, ...], rows: Any = None) -> FoldedDocuments: ...


@dataclass
class FoldedDocuments:
    """All documents of a corpus after folding in."""

    parts: list[FoldedPart]
    """Results of each shard, without the rows."""
    sums: DocumentSums | None
    """Expected numbers of documents; None unless these are the training documents."""
    arrays: dict[str, Array]
    """Arrays with one row per document, in memory or mapped, by name."""


def topic_weights_of(parts: Sequence[FoldedPart]) -> Floats:
    """Return P(z) of all training documents. The weights are equal if a joint background explains all tokens."""
    weights = np.asarray(sum(part.topic_weights for part in parts))
    return weights / weights.sum() if weights.sum() > 0 else np.full(weights.size, 1 / weights.size)


def fold_in_training(
    corpus: Foldable, topic_word: Array, inference: Inference, *, active: Array | None = None, rows: Any = None,
    prior: Prior | None = None, **fields: Any,
) -> FoldedTraining:  # fmt: skip
    """Fold in the training documents, and return the fitted model with the P(z) that follows.

    `active` are the topics that are used (None: all), `rows` the weights to start from, in the form that the corpus
    uses (None: uniform weights), `prior` a prior for individual documents, and `fields` the fields of FittedTopics that
    the documents do not determine.
    """
    active = np.ones(len(topic_word), dtype=bool) if active is None else active
    job = FoldIn(inference.without_arrays(), active, corpus.tokens, prior=prior)
    folded = corpus.fold_in(job, (topic_word, *inference.arrays), rows)
    assert folded.sums is not None
    background = inference.background
    arrays = dict(folded.arrays)
    doc_topic = arrays.pop("doc_topic")
    shares = arrays.pop("background", None)
    if shares is None:
        shares = np.broadcast_to(np.float64(0.0 if background is None else background.share), (corpus.n_docs,))
    fitted = FittedTopics(topic_word, topic_weights_of(folded.parts), active=active, inference=inference, **fields)
    samples = [part.sample for part in folded.parts if part.sample is not None]
    learned = LearnedPrior(evidence=PriorEvidence(fitted, folded.sums.topics, samples)) if samples else None
    return FoldedTraining(
        replace(fitted, word_documents=folded.sums.by_topic(), learned_prior=learned),
        TrainingDocuments(corpus.doc_weights, doc_topic, shares, arrays),
        sum(part.log_sum for part in folded.parts) / corpus.tokens,
        sum(part.bound for part in folded.parts),
    )


class SymmetricView(NamedTuple):
    """Parameters of the symmetric form P(d,w) = sum_z P(z) P(d|z) P(w|z), without P(w|z)."""

    topic_weights: Floats
    """P(z), shape (K,)."""
    topic_doc: Floats
    """P(d|z), K x documents; rows sum to one."""


def symmetric_view(doc_topic: Array, doc_weights: Floats) -> SymmetricView:
    """Convert P(z|d) and P(d) to P(z) and P(d|z).

    By Bayes' rule, P(z) = sum_d P(d) P(z|d) and P(d|z) = P(d) P(z|d) / P(z). A topic of weight zero gets
    P(d|z) = P(d).
    """
    joint = doc_topic.astype(np.float64).T * doc_weights
    weights = joint.sum(axis=1)
    topic_doc = np.tile(doc_weights, (joint.shape[0], 1))
    np.divide(joint, weights[:, np.newaxis], out=topic_doc, where=weights[:, np.newaxis] > 0)
    return SymmetricView(weights, topic_doc)
