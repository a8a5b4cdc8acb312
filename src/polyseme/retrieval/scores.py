"""Scores of documents for queries: term scores, latent scores, and methods that combine them.

Notation: x_dw are the counts of the corpus, n_d the length of document d, q_w the counts of the query, N the number of
documents, and df_w the number of documents that contain word w.

Term scores (`TermScores`) come from the words that the query and the document share:

    tf      cos(q, x_d)
    tfidf   cos(q idf, x_d idf) with idf_w = log((1 + N) / (1 + df_w)) + 1, as scikit-learn's TfidfTransformer
    bm25    sum_w q_w log(1 + (N - df_w + 1/2) / (df_w + 1/2)) x_dw / (x_dw + k1 (1 - b + b n_d / mean n))

BM25 is the variant of Lucene, whose idf is never negative. Each score is the product of a weighted query and a words x
documents matrix, times a factor for each document, so the contributions of the words add up to the score.

Latent scores do not need a shared word:

    PLSI-Q (`TopicSpace`)      cos(P(z|q), P(z|d)), with the query folded in by likelihood at the temperature of the
                               fit; the mean if there are several models
    LSI (`SingularSpace`)      cos(q V, x_d V), with V the leading right singular vectors of the weighted counts

P(z|q) is a sum over the words of the query, sum_w (q_w / |q|) P(z|q,w) with |q| = sum_w q_w, and P(z|d) is such a sum
over the words of the document; q V and x_d V are sums over words as well. To explain a score, one half is distributed
over the words of the query and one half over the words of the document. Words that only one of the two contains
therefore have a contribution, too.

PLSI-U (`SmoothedScores`) is term matching with documents that are smoothed by a model:

    P(w|d) = lambda x_dw / n_d + (1 - lambda) sum_z P(z|d) P(w|z),      score = cos(q g, P(.|d) g)

with word weights g (1 for tf, idf for tfidf). No array of documents x words is needed: with Q = q g^2 the product is
lambda Q . x_d / n_d + (1 - lambda) (Q P(w|z)) . P(z|d), and the squared length of a document is
lambda^2 a_d + 2 lambda (1 - lambda) b_d + (1 - lambda)^2 c_d, where

    a = |x_d g|^2 / n_d^2,   b = sum_w g_w^2 (x_dw / n_d) sum_z P(z|d) P(w|z),   c = P(z|d)' G P(z|d)

and G = P(w|z)' g^2 P(w|z) is K x K. a, b and c are stored, so that lambda can change with each query.

The other methods combine a latent and a term score as Hofmann (1999) does:

    score = (1 - term_weight) latent + term_weight term

bm25 has no upper bound, so it is first divided by its largest value for the query. Hofmann uses models with 32, 48, 64,
80 and 128 topics, which have equal weights, and term_weight = 1/2. Held-out tokens of the corpus determine the
temperature of a fit and when it stops. Nothing is tuned on queries.

The arrays of a stored index are in a mapped file. They are read by rows (`array[words]`) or completely (`array[:]`),
and each access checks what it reads. Only functions that fit models import estimators and scipy; a search does not.

References
----------
- Hofmann (1999). Probabilistic latent semantic indexing. Proceedings of SIGIR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import (
    FOLD_IN_STEPS,
    FOLD_IN_TOLERANCE,
    Array,
    Floats,
    SparseCounts,
    padded,
    single_threaded_blas,
)
from polyseme.retrieval.postings import (
    WEIGHT,
    Feedback,
    Postings,
    QueryWords,
    Ranking,
    VectorCodes,
    best_scores,
    penalties,
    rank_combined,
    typical_table,
)
from polyseme.retrieval.queries import Allocate, SparseRow, SparseRows, in_memory, times_dense, used_columns
from polyseme.utils import check_integer, check_n_jobs, check_range, check_share, effective_threads

if TYPE_CHECKING:
    from polyseme.core.fitted import FittedTopics

WEIGHTINGS = ("tf", "tfidf", "bm25")
SIZES = (32, 48, 64, 80, 128)
"""Hofmann's numbers of topics."""

_NUMBERS_AT_ONCE = 1 << 22
_DOCUMENTS_PER_HIT = 8
"""LSI finds the best documents by codes if the index has more documents per hit than this, else by all scores."""
_LSA_WEIGHTS = {"tf": "counts", "tfidf": "tf-idf"}
_ROUNDING = float(np.sqrt(np.finfo(np.float64).eps))
"""Share of the largest singular value, or of the terms of a sum, up to which a value counts as a rounding error."""
_ROUNDED_COSINE = 1e-6
"""A cosine in float32 of at most this size counts as zero."""
_REQUIRED_CALLS = {"lsi": "fit_lsi()", "model": "set_model(model)", "average": "fit_models()"}
"""The call that adds each latent space to an index."""

Explainer = Callable[[SparseRow, int], tuple[Array, Array]]
"""Function from the words and counts of a document, and its row, to words and their contributions."""


@dataclass(frozen=True)
class MethodSettings:
    """Settings of a search method."""

    latent: str | None
    """Latent space of `Scoring`: "lsi", "model" or "average"; None for a term score alone."""
    term: str
    """Term score: "tf", "tfidf" or "bm25"."""
    term_weight: float
    smoothed: bool = False
    """Whether the latent space smooths the documents (PLSI-U)."""
    combined: bool = False
    """Whether topics complement bm25 (`polyseme.retrieval.postings`), if there is a model."""

    @property
    def from_lists(self) -> bool:
        """Whether the best documents are found in posting lists, without the scores of all documents."""
        return self.combined or (self.latent is None and self.term == "bm25")

    @property
    def from_vectors(self) -> bool:
        """Whether the score is only a product of LSI vectors, so that the best documents can be found by codes."""
        return self.latent == "lsi" and self.term_weight == 0


DEFAULT_METHOD = "bm25+topics"
METHODS = {
    DEFAULT_METHOD: MethodSettings("model", "bm25", 1.0, combined=True),
    "tf": MethodSettings(None, "tf", 1.0),
    "tfidf": MethodSettings(None, "tfidf", 1.0),
    "bm25": MethodSettings(None, "bm25", 1.0),
    "lsi": MethodSettings("lsi", "tfidf", 0.0),
    "plsi-u": MethodSettings("model", "tfidf", 0.5, smoothed=True),
    "plsi-q": MethodSettings("model", "tfidf", 0.5),
    "plsi*": MethodSettings("average", "tfidf", 0.5),
}


def method_settings(method: str, term: str | None, term_weight: float | None) -> MethodSettings:
    """Return the settings of a method, with another term score or weight if they are given."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}.")
    settings = METHODS[method]
    if (settings.latent is None or settings.combined) and (term is not None or term_weight is not None):
        raise InputError(f"{method!r} has its own term score: term and term_weight are for lsi and plsi methods.")
    if term is not None and term not in WEIGHTINGS:
        raise InputError(f"term must be one of {', '.join(map(repr, WEIGHTINGS))}, got {term!r}.")
    if settings.smoothed and term == "bm25":
        raise InputError("'plsi-u' smooths the counts of words: its term must be 'tf' or 'tfidf'.")
    weight = settings.term_weight if term_weight is None else check_share("term_weight", term_weight)
    return replace(settings, term=term or settings.term, term_weight=weight)


class Scoring:
    """Term scores of a corpus, and its latent spaces. A space is None until it is fitted."""

    def __init__(self, counts: SparseRows | None, terms: TermScores) -> None:
        """Construct the scoring. If `counts` is None, they are made from the posting lists when they are needed."""
        self.terms = terms
        self._counts = counts
        self.lsi: SingularSpace | None = None
        self.average: TopicSpace | None = None
        self._model: TopicSpace | None = None
        self._smoothed: dict[str, SmoothedScores] = {}

    @property
    def counts(self) -> SparseRows:
        """Counts (documents x words)."""
        if self._counts is None:
            self._counts = SparseRows.of(self.terms.postings.by_document())
        return self._counts

    @property
    def model(self) -> TopicSpace | None:
        """The model of `bm25+topics`, `plsi-q` and `plsi-u`."""
        return self._model

    @model.setter
    def model(self, space: TopicSpace | None) -> None:
        self._model, self._smoothed = space, {}

    def topics(self) -> TopicSpace:
        """Return the model of `plsi-q`, or the largest model of `plsi*`."""
        space = self.average if self._model is None else self._model
        if space is None:
            raise UnsupportedError("This index has no topics: call set_model(model) or fit_models() first.")
        return space.only(int(np.argmax(space.sizes)))

    def rank(
        self, queries: Any, method: MethodSettings, k: int, allowed: Any = None, document: int | None = None
    ) -> Iterator[Ranking]:
        """Yield the k best documents for each query.

        Parameters
        ----------
        queries : SparseRows
            Counts of the queries.
        method : MethodSettings
            The method.
        k : int
            Number of documents.
        allowed : array of bool, default=None
            Documents that may be returned. None allows all.
        document : int, default=None
            Row of the document that is the only query. None if the queries are texts.
        """
        if method.from_lists:
            space = self.model if method.combined else None
            feedback = None if space is None else Feedback(space.documents, space.typical)
            topics = None if space is None or document is None else space.weights_of(document).astype(np.float64)
            for i in range(queries.shape[0]):
                query = self.terms.query_words(queries, i)
                yield rank_combined(self.terms.postings, query, feedback, k, allowed, topics)
            return
        if method.from_vectors and _DOCUMENTS_PER_HIT * k < self.terms.postings.n_docs:
            space = self._space("lsi")
            for vector in space.query_vectors(queries):
                rows, scores = space.nearest(vector, k, allowed)
                yield Ranking(rows, {"latent": scores})
            return
        parts = self.parts(queries, method)
        for i in range(queries.shape[0]):
            total = np.asarray(sum(part[i] for part in parts.values()), dtype=np.float32)
            best, _ = best_scores(total, k, allowed)
            yield Ranking(best, {name: part[i, best] for name, part in parts.items()})

    def parts(self, queries: Any, method: MethodSettings) -> dict[str, Floats]:
        """Return arrays (queries x documents) whose sum is the score: "latent" and "term", or one of them."""
        if method.from_lists:
            n_docs = self.terms.postings.n_docs
            shape = (queries.shape[0], n_docs)
            names = ("latent", "term") if method.combined and self.model is not None else ("term",)
            parts: dict[str, Floats] = {name: np.zeros(shape) for name in names}
            for i, ranking in enumerate(self.rank(queries, method, n_docs)):
                for name, values in ranking.parts.items():
                    parts[name][i, ranking.rows] = values
            return parts
        if method.latent is None:
            return {"term": self.terms.scores(queries, method.term)}
        weight = method.term_weight
        if method.smoothed:
            latent, term = self._smoothed_scores(method.term).parts(queries, weight)
            return {"latent": latent, "term": term}
        latent = (1 - weight) * self._space(method.latent).scores(queries)
        if weight == 0:
            return {"latent": latent}
        term = self.terms.scores(queries, method.term)
        return {"latent": latent, "term": term * (weight / _term_scale(term, method.term))}

    def explainer(
        self, query: Any, method: MethodSettings, ranking: Ranking
    ) -> Callable[[int], list[tuple[Array, Array]]]:
        """Return a function from a document to pairs (words, weights) whose weights add up to the score.

        A word may occur in several pairs. This method computes everything that depends only on the query. The returned
        function accepts documents of the ranking.
        """
        weight = method.term_weight
        if method.combined:
            return self._combined_explainer(query, ranking)
        if method.smoothed:
            smoothed = self._smoothed_scores(method.term)
            return lambda document: [smoothed.word_parts(query, self.counts.row(document), document, weight)]
        latent = None if method.latent is None else self._space(method.latent).explainer(query)
        scale = weight
        if latent is not None and method.term == "bm25":
            scale = weight / float(_term_scale(self.terms.scores(query, method.term), method.term)[0, 0])

        def explain(document: int) -> list[tuple[Array, Array]]:
            pairs, row = [], self.counts.row(document)
            if latent is not None:
                words, weights = latent(row, document)
                pairs.append((words, (1 - weight) * weights))
            if weight > 0:
                words, weights = self.terms.word_parts(query, row, document, method.term)
                pairs.append((words, scale * weights))
            return pairs

        return explain

    def _combined_explainer(self, query: Any, ranking: Ranking) -> Callable[[int], list[tuple[Array, Array]]]:
        """Return the explainer of "bm25+topics".

        The weight of a query word that the document contains is its summand in the term part. One half of the latent
        part is distributed over the query words that the document lacks, in proportion to i_w, and one half over the
        words of the document, in proportion to their shares in P(z|d).
        """
        latent_parts = ranking.parts.get("latent", np.zeros(len(ranking.rows)))
        latent_of = dict(zip(ranking.rows.tolist(), latent_parts.tolist(), strict=True))
        topics = ranking.topics

        def explain(document: int) -> list[tuple[Array, Array]]:
            row = self.counts.row(document)
            words, impacts, amounts = self.terms.query_impacts(query, row, document)
            missing = np.where(impacts > 0, 0, amounts)
            space = self.model
            weight = 0.0 if space is None else WEIGHT
            pairs = [(words, np.where(impacts > 0, impacts + weight * amounts, 0))]
            latent = latent_of[document]
            if space is None or topics is None or latent == 0:
                return pairs
            shares = space.word_shares(row, space.weights_of(document)) @ (topics * space.documents[document])
            pairs.append((words, 0.5 * latent * missing / missing.sum()))
            pairs.append((row.indices, 0.5 * latent * shares / max(shares.sum(), np.finfo(float).tiny)))
            return pairs

        return explain

    def supports(self, method: MethodSettings) -> bool:
        """Return whether the index has the latent space of a method, or the method works without it."""
        return method.latent is None or method.combined or self._spaces()[method.latent] is not None

    def _spaces(self) -> dict[str, Any]:
        return {"lsi": self.lsi, "model": self.model, "average": self.average}

    def _space(self, name: str) -> Any:
        space = self._spaces()[name]
        if space is None:
            raise UnsupportedError(f"The index has no model for this method: call {_REQUIRED_CALLS[name]} first.")
        return space

    def _smoothed_scores(self, weighting: str) -> SmoothedScores:
        """Return the smoothed scores of the model, computed once."""
        if weighting not in self._smoothed:
            space = self._space("model")
            squares = smoothed_squares(self.terms, space, self.counts, weighting)
            self.set_squares(weighting, squares)
        return self._smoothed[weighting]

    def is_ready(self, method: MethodSettings) -> bool:
        """Return whether everything that a search needs, apart from the query, has been computed."""
        return self.supports(method) and (not method.smoothed or self.has_squares(method.term))

    def has_squares(self, weighting: str) -> bool:
        """Return whether the result of `smoothed_squares` for the model is known."""
        return weighting in self._smoothed

    def squares(self, weighting: str) -> Floats:
        """Return the result of `smoothed_squares` for the model."""
        return np.asarray(self._smoothed_scores(weighting).squares[:])

    def set_squares(self, weighting: str, squares: Any) -> None:
        """Set the result of `smoothed_squares` for the model, for example from an index file."""
        self._smoothed[weighting] = SmoothedScores(self.terms, self._space("model"), weighting, squares)


class TermScores:
    """Term scores, computed from posting lists, so that a query reads only the lists of its words."""

    def __init__(self, postings: Postings, totals: Any, lengths: dict[str, Any] | None = None) -> None:
        self.postings = postings
        self.totals = totals
        """n_d."""
        self._lengths: dict[str, Any] = lengths or {}
        self._scales: dict[str, Floats] = {}

    @cached_property
    def frequencies(self) -> Array:
        """df_w, the number of documents that contain each word."""
        return self.postings.frequencies()

    @cached_property
    def idf(self) -> Floats:
        """The factor of each word in tfidf."""
        return np.asarray(np.log((1 + self.postings.n_docs) / (1 + self.frequencies)) + 1)

    @cached_property
    def rarity(self) -> Floats:
        """The factor of each word in bm25."""
        n_docs, frequencies = self.postings.n_docs, self.frequencies
        return np.asarray(np.log1p((n_docs - frequencies + 0.5) / (frequencies + 0.5)))

    @cached_property
    def word_totals(self) -> Floats:
        """Number of tokens of each word."""
        totals = np.zeros(len(self.frequencies))
        for first, words, _, x in self.postings.parts():
            sums = np.bincount(words, x)
            totals[first : first + len(sums)] += sums
        return totals

    def lengths(self, weighting: str) -> Floats:
        """Return the lengths of the documents: |x_d| for tf, |x_d idf| for tfidf."""
        if weighting not in self._lengths:
            squares = np.zeros(self.postings.n_docs)
            factors = self.idf**2 if weighting == "tfidf" else np.ones(len(self.frequencies))
            for first, words, documents, x in self.postings.parts():
                squares += np.bincount(documents, x**2 * factors[first + words], minlength=len(squares))
            self._lengths[weighting] = np.sqrt(squares)
        return np.asarray(self._lengths[weighting][:])

    def query_words(self, queries: Any, i: int) -> QueryWords:
        """Return the words of query i."""
        start, end = queries.indptr[i : i + 2].tolist()
        words = np.asarray(queries.indices[start:end], dtype=np.int32)
        return QueryWords(self.rarity, words, queries.data[start:end])

    def scores(self, queries: Any, weighting: str) -> Floats:
        """Return the scores (queries x documents) of queries given as counts (queries x words, CSR, float64)."""
        weights = self._query_weights(queries, weighting)
        scores = self._products(queries, weights, weighting)
        scores *= self._scale(weighting)
        return scores

    def query_impacts(self, query: Any, row: SparseRow, document: int) -> tuple[Array, Floats, Floats]:
        """Return the words of a query that occur in the corpus, their summands of bm25, and i_w."""
        known = self.frequencies[query.indices] > 0
        words = query.indices[known]
        weights = query.data[known] * self.rarity[words]
        x = _values_of(row, words)
        return words, weights * x / (x + self._penalty[document]), weights

    def counted(self, queries: Any, weights: Floats) -> Floats:
        """Return the products of the queries, with `weights` as their values, and the counts (queries x documents)."""
        return self._products(queries, weights, "tf")

    def word_parts(self, query: Any, row: SparseRow, document: int, weighting: str) -> tuple[Array, Floats]:
        """Return the words of the query and their contributions to the score of a document, whose counts are `row`."""
        words = query.indices
        values = _values_of(row, words)
        if weighting == "bm25":
            values = self.rarity[words] * values / (values + self._penalty[document])
        return words, self._query_weights(query, weighting) * values * self._scale(weighting)[document]

    def word_weights(self, words: Array, weighting: str) -> Floats:
        """Return the factors of the counts in the vector space of `weighting`: 1 for tf, idf for tfidf."""
        if weighting not in _LSA_WEIGHTS:
            raise InputError(f"weighting must be one of {', '.join(map(repr, _LSA_WEIGHTS))}, got {weighting!r}.")
        return np.asarray(self.idf[words]) if weighting == "tfidf" else np.ones(len(words))

    @cached_property
    def _penalty(self) -> Floats:
        """The summand of each document in the denominator of bm25."""
        return penalties(self.totals[:])

    def _scale(self, weighting: str) -> Floats:
        """Return the factor of each document in its score."""
        if weighting not in self._scales:
            bm25 = weighting == "bm25"
            self._scales[weighting] = np.ones(self.postings.n_docs) if bm25 else _inverse(self.lengths(weighting))
        return self._scales[weighting]

    def _query_weights(self, queries: Any, weighting: str) -> Floats:
        """Return the weights of the words of the queries, one for each entry of `queries`."""
        if weighting == "bm25":
            return np.asarray(queries.data)
        if weighting not in _LSA_WEIGHTS:
            raise InputError(f"A term score must be one of {', '.join(map(repr, WEIGHTINGS))}, got {weighting!r}.")
        weights = self.word_weights(queries.indices, weighting)
        norms = _sums_by_row(queries, (queries.data * weights) ** 2)
        return np.asarray(queries.data * weights**2 * np.repeat(_inverse(np.sqrt(norms)), np.diff(queries.indptr)))

    def _list(self, word: int, weighting: str) -> SparseRow:
        """Return the documents that contain a word, and its weights in them: counts, or the summands of bm25."""
        documents, x = self.postings.row(word)
        if weighting == "bm25":
            x = self.rarity[word] * x / (x + self._penalty[documents])
        return SparseRow(documents, x)

    def _products(self, queries: Any, weights: Floats, weighting: str) -> Floats:
        """Return sums of posting lists (queries x documents). A list that several queries need is read once."""
        products = np.zeros((queries.shape[0], self.postings.n_docs))
        read = cache(lambda word: self._list(word, weighting))
        words = queries.indices.tolist()
        for i, product in enumerate(products):
            for place in range(*queries.indptr[i : i + 2].tolist()):
                documents, values = read(words[place])
                product[documents] += weights[place] * values
        return products


@dataclass(frozen=True)
class TopicSpace:
    """Topics of one or more models of a corpus. The columns of the models are side by side."""

    topic_word: Array
    """P(w|z) (words x sum of K, float32)."""
    documents: Array
    """P(z|d) of each model, scaled to length one (documents x sum of K, float32); zero for documents without words."""
    sizes: tuple[int, ...]
    """K of each model."""
    temperatures: tuple[float, ...]
    topic_weights: Floats
    """P(z) of each model."""
    background_shares: tuple[float, ...]
    """Share of the background of each model; 0 without a background."""
    background_word: Array
    """P(w|B) of each model (words x models, float32)."""

    @classmethod
    def of(
        cls, models: Sequence[FittedTopics], doc_topic: Sequence[Array], counts: Any, allocate: Allocate = in_memory
    ) -> TopicSpace:
        """Construct the space from fitted models and the weights P(z|d) of the rows of `counts` under each of them.

        Queries are folded in by likelihood, with the background and the temperature of a model, but without its prior
        on documents: a query has so few words that the prior would dominate.
        """
        empty, width = np.diff(counts.indptr[:]) == 0, sum(model.n_topics for model in models)
        documents = allocate("documents", np.float32, len(empty) * width).reshape(len(empty), width)
        step, first = max(1, _NUMBERS_AT_ONCE // max(1, width)), 0
        for weights in doc_topic:
            columns = slice(first, first + weights.shape[1])
            for start in range(0, len(empty), step):
                rows = slice(start, start + step)
                documents[rows, columns] = _normalize_rows(np.asarray(weights[rows], dtype=np.float32))
            first = columns.stop
        documents[empty] = 0
        backgrounds = [model.inference.background for model in models]
        n_words = counts.shape[1]
        return cls(
            np.ascontiguousarray(np.concatenate([model.topic_word for model in models]).T, dtype=np.float32),
            documents,
            tuple(model.n_topics for model in models),
            tuple(float(model.inference.temperature) for model in models),
            np.concatenate([np.asarray(model.topic_weights, dtype=np.float64) for model in models]),
            tuple(0.0 if background is None else background.share for background in backgrounds),
            np.stack(
                [
                    np.zeros(n_words) if background is None else background.word_probabilities
                    for background in backgrounds
                ],
                axis=1,
            ).astype(np.float32),
        )

    @cached_property
    def typical(self) -> Any:
        """The documents with the largest cosine to each topic."""
        return typical_table(self.documents)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Columns of each model."""
        ends = np.cumsum(self.sizes)
        return tuple(slice(int(end) - size, int(end)) for end, size in zip(ends, self.sizes, strict=True))

    def only(self, chosen: int) -> TopicSpace:
        """Return the space of one of the models."""
        block = self.blocks[chosen]
        return TopicSpace(
            self.topic_word[:, block],
            np.ascontiguousarray(self.documents[:, block]),
            (self.sizes[chosen],),
            (self.temperatures[chosen],),
            self.topic_weights[block],
            (self.background_shares[chosen],),
            self.background_word[:, [chosen]],
        )

    def fold(self, queries: Any) -> Array:
        """Return P(z|q) of each model (queries x sum of K, float32); zeros for a query without known words."""
        words, compact = used_columns(queries)
        topic_word = self.topic_word[words]
        counts = SparseCounts(
            compact.indptr.astype(np.int32),
            compact.indices.astype(np.int32),
            compact.data.astype(np.float32),
            compact.shape[0],
            len(words) + 1,
        )
        folded = np.empty((queries.shape[0], self.topic_word.shape[1]), dtype=np.float32)
        settings = zip(
            self.blocks, self.temperatures, self.background_shares, self.background_word[words].T, strict=True
        )
        for block, beta, share, background in settings:
            folded[:, block] = _fold_in(counts, topic_word[:, block], beta, share, background)
        return folded

    def scores(self, queries: Any) -> Array:
        """Return the scores (queries x documents)."""
        with single_threaded_blas():
            return np.asarray(self._query_vectors(self.fold(queries)) @ self.documents[:].T)

    def explainer(self, query: Any) -> Explainer:
        """Return a function from a document to its words and those of the query, with their contributions."""
        folded = self.fold(query)
        vector = 0.5 * self._query_vectors(folded)[0]
        query_shares = self.word_shares(query, folded[0])

        def explain(row: SparseRow, document: int) -> tuple[Array, Array]:
            by_topic = vector * self.documents[document]
            document_shares = self.word_shares(row, self.weights_of(document))
            words = np.concatenate([query.indices, row.indices])
            return words, np.concatenate([query_shares @ by_topic, document_shares @ by_topic])

        return explain

    def weights_of(self, document: int) -> Array:
        """Return P(z|d) of each model, scaled to add up to one."""
        row = np.array(self.documents[document])
        for block in self.blocks:
            row[block] /= max(row[block].sum(), np.finfo(np.float32).tiny)
        return row

    def _query_vectors(self, folded: Array) -> Array:
        """Return P(z|q) scaled such that the product with `documents` is the mean of the cosines of all models."""
        vectors = np.concatenate([_normalize_rows(folded[:, block]) for block in self.blocks], axis=1)
        return vectors / np.float32(len(self.sizes))

    def word_shares(self, row: Any, weights: Array) -> Array:
        """Return the share of each word of a row in the weight of each topic (words x sum of K).

        The share is n_w P(z|w) / sum_w n_w P(z|w), where n_w are the counts of the row, and P(z|w) is proportional to
        (P(z) P(w|z))^beta with `weights` as P(z). A background is one more topic in P(z|w). Columns add up to one.
        """
        shares = self.topic_word[row.indices]
        backgrounds = self.background_word[row.indices].T
        settings = zip(self.blocks, self.temperatures, self.background_shares, backgrounds, strict=True)
        for block, beta, share, background in settings:
            joint = (np.float32(1 - share) * weights[block] * shares[:, block]) ** np.float32(beta)
            total = joint.sum(axis=1) + (np.float32(share) * background) ** np.float32(beta)
            posterior = joint / np.maximum(total, np.finfo(np.float32).tiny)[:, np.newaxis]
            counted = row.data[:, np.newaxis].astype(np.float32) * posterior
            shares[:, block] = counted / np.maximum(counted.sum(axis=0), np.finfo(np.float32).tiny)
        return shares


@dataclass(frozen=True)
class SingularSpace:
    """LSI: the leading right singular vectors of the counts with word weights (tf or tfidf)."""

    basis: Any
    """V with each row multiplied by the weight of its word (words x K, float64)."""
    units: Any
    """x_d V, scaled to length one (K x documents, float32).

    Dimensions are rows, because BLAS then multiplies a vector by this matrix three times as fast."""
    lengths: Any
    """|x_d V| (float64)."""
    weighting: str

    @classmethod
    def of(cls, counts: Any, weighting: str, n_components: int) -> SingularSpace:
        """Compute the singular vectors. Their signs and rotations do not change a score."""
        if weighting not in _LSA_WEIGHTS:
            raise InputError(f"weighting must be one of {', '.join(map(repr, _LSA_WEIGHTS))}, got {weighting!r}.")
        largest = min(counts.shape) - 1
        if not 1 <= n_components <= largest:
            raise InputError(f"n_components of LSI must be from 1 to {largest} for this corpus, got {n_components!r}.")
        from polyseme.estimators.lsa import LSA

        lsa = LSA(n_components, weights=_LSA_WEIGHTS[weighting], dtype="float64").fit(counts)
        # The vectors of singular values that are zero up to rounding are arbitrary.
        used = lsa.singular_values_ > _ROUNDING * lsa.singular_values_.max(initial=0)
        basis = np.ascontiguousarray(lsa.components_[used].T) * lsa.word_weights_[:, np.newaxis]
        # rounding leaves tiny values for words that do not occur
        basis[np.bincount(counts.indices, minlength=counts.shape[1]) == 0] = 0
        documents = _without_rounding(lsa.doc_vectors_[:, used], counts, basis)
        return cls.of_vectors(basis, documents, weighting)

    @classmethod
    def of_vectors(cls, basis: Floats, documents: Floats, weighting: str) -> SingularSpace:
        """Construct the space from the vectors x_d V of the documents (documents x K)."""
        lengths = np.sqrt(np.einsum("ik,ik->i", documents, documents))
        return cls(basis, np.ascontiguousarray(_normalize_rows(documents).T, dtype=np.float32), lengths, weighting)

    def truncated(self, n_components: int) -> SingularSpace:
        """Return the space of the first dimensions, which equals one that was fitted with fewer components."""
        documents = (self.units[:n_components] * self.lengths[:]).T
        return SingularSpace.of_vectors(self.basis[:, :n_components], documents, self.weighting)

    def query_vectors(self, queries: Any) -> Array:
        """Return q V, scaled to length one (queries x K, float32)."""
        words, compact = used_columns(queries)
        basis = self.basis[words]
        vectors = _without_rounding(times_dense(compact, basis), compact, basis)
        return _normalize_rows(vectors).astype(np.float32)

    def scores(self, queries: Any) -> Floats:
        """Return the scores (queries x documents)."""
        with single_threaded_blas():
            scores = np.asarray(self.query_vectors(queries) @ self.units[:])
        scores[np.abs(scores) <= _ROUNDED_COSINE] = 0
        return scores

    def nearest(self, vector: Array, k: int, allowed: Any = None) -> tuple[Array, Array]:
        """Return the k documents with the largest positive scores for a query vector, and their scores (float32)."""
        documents, scores = self._codes.nearest(self.units[:], vector, k, allowed)
        hits = scores > _ROUNDED_COSINE
        return documents[hits], scores[hits]

    @cached_property
    def _codes(self) -> VectorCodes:
        """The documents in eight bits."""
        return VectorCodes.of(self.units[:])

    def explainer(self, query: Any) -> Explainer:
        """Return a function from a document to its words and those of the query, with their contributions."""
        tiny = np.finfo(float).tiny
        vector = times_dense(query, self.basis)[0]
        length = max(float(np.linalg.norm(vector)), tiny)

        def explain(row: SparseRow, document: int) -> tuple[Array, Array]:
            document_length = max(float(self.lengths[document]), tiny)
            along_query = query.data * (self.basis[query.indices] @ self.units[:, document])
            along_document = row.data * (self.basis[row.indices] @ vector) / document_length
            words = np.concatenate([query.indices, row.indices])
            return words, np.concatenate([along_query, along_document]) / (2 * length)

        return explain


@dataclass(frozen=True)
class SmoothedScores:
    """PLSI-U: scores with documents smoothed by one model, for one weighting of words."""

    terms: TermScores
    space: TopicSpace
    weighting: str
    squares: Any
    """a, b and c of the squared lengths (3 x documents, float64): see `smoothed_squares`."""

    @cached_property
    def _doc_topic(self) -> Array:
        """P(z|d) (documents x K, float32)."""
        return _doc_topic(self.space)

    def parts(self, queries: Any, term_weight: float) -> tuple[Floats, Floats]:
        """Return the latent and the term part of the scores (queries x documents each)."""
        scale, weights = self._scales(term_weight), self._query_weights(queries)
        words, compact = used_columns(queries)
        by_topic = times_dense(replace(compact, data=weights), self.space.topic_word[words].astype(np.float64))
        with single_threaded_blas():
            latent = (1 - term_weight) * scale * (by_topic.astype(np.float32) @ self._doc_topic.T)
        counted = self.terms.counted(queries, weights)
        return latent, term_weight * scale * counted / np.maximum(self.terms.totals[:], 1)

    def word_parts(self, query: Any, row: SparseRow, document: int, term_weight: float) -> tuple[Array, Floats]:
        """Return the words of the query and their contributions, whether the document contains them or not."""
        words = query.indices
        smoothed = self.space.topic_word[words] @ self._doc_topic[document]
        observed = _values_of(row, words) / max(self.terms.totals[document], 1)
        mixed = (1 - term_weight) * smoothed + term_weight * observed
        return words, self._scales(term_weight)[document] * self._query_weights(query) * mixed

    def _scales(self, term_weight: float) -> Floats:
        """Return one over the lengths of the documents."""
        mixture = np.array([term_weight**2, 2 * term_weight * (1 - term_weight), (1 - term_weight) ** 2])
        return _inverse(np.sqrt(np.maximum(mixture @ self.squares[:], 0)))

    def _query_weights(self, queries: Any) -> Floats:
        """Return the values of the queries times g^2, divided by the lengths of the queries."""
        weights = self.terms.word_weights(queries.indices, self.weighting)
        norms = np.maximum(np.sqrt(_sums_by_row(queries, queries.data**2 * weights**2)), 1e-300)
        return np.asarray(queries.data * weights**2 / np.repeat(norms, np.diff(queries.indptr)))


def smoothed_squares(terms: TermScores, space: TopicSpace, counts: SparseRows, weighting: str) -> Floats:
    """Return a, b and c of the squared lengths of smoothed documents (3 x documents)."""
    doc_topic, totals = _doc_topic(space), np.maximum(terms.totals[:], 1)
    squared = (terms.word_weights(np.arange(counts.shape[1]), weighting) ** 2)[:, np.newaxis]
    topic_word = np.asarray(space.topic_word[:], dtype=np.float64)
    with single_threaded_blas():
        gram = topic_word.T @ (squared * topic_word)
        c = np.einsum("dk,dk->d", doc_topic @ gram, doc_topic, dtype=np.float64)
    weighted, b = squared * topic_word, np.zeros(len(totals))
    for rows, block in counts.blocks():
        b[rows] = np.einsum("dk,dk->d", np.asarray(block @ weighted), doc_topic[rows]) / totals[rows]
    a = (terms.lengths(weighting) / totals) ** 2
    return np.stack([a, b, c])


def topic_space(
    model: Any, counts: SparseRows, doc_topic: Any, *, n_jobs: int | None, allocate: Allocate = in_memory
) -> TopicSpace:
    """Return the space of a fitted model. If `doc_topic`, P(z|d) of the documents, is None, fold in the documents."""
    from polyseme.core.shard import sparse_counts
    from polyseme.metrics.words import fitted_topics

    fitted = fitted_topics(model)
    if fitted is None:
        raise InputError(
            "Search needs a fitted PLSA, NMF, LDA, HierarchicalPLSA or CorrelatedTopicModel, "
            f"got {type(model).__name__}."
        )
    (n_docs, n_words), dtype = counts.shape, fitted.topic_word.dtype
    if fitted.topic_word.shape[1] != n_words:
        raise InputError(
            f"The model has {fitted.topic_word.shape[1]} words, but the index has {n_words}: "
            "both must come from the same vocabulary."
        )
    if doc_topic is None:
        n_threads = effective_threads(check_n_jobs(n_jobs))
        folded = np.empty((n_docs, fitted.n_topics), dtype=dtype)
        for rows, block in counts.blocks():
            check_range("Every count", block.data, dtype)
            folded[rows] = fitted.fold_in(sparse_counts(block, dtype), n_threads=n_threads).doc_topic
        return TopicSpace.of([fitted], [folded], counts, allocate)
    weights = np.asanyarray(doc_topic)
    if weights.shape != (n_docs, fitted.n_topics):
        raise InputError(
            f"doc_topic must have a row for each of the {n_docs} documents of the index and a column for each of the "
            f"{fitted.n_topics} topics, got the shape {weights.shape}."
        )
    if weights.dtype.kind not in "fiu" or (weights.size and not (weights.min() >= 0 and weights.max() < np.inf)):
        raise InputError("doc_topic must contain P(z|d) of each document: finite numbers of at least 0.")
    return TopicSpace.of([fitted], [weights], counts, allocate)


def fit_topic_space(
    counts: Any, sizes: Sequence[int], *, random_state: int, n_jobs: int | None, verbose: int
) -> TopicSpace:
    """Fit a model for each number of topics, by tempered EM with held-out tokens, and return their space."""
    from polyseme.estimators import PLSA
    from polyseme.solvers import HeldOutTempered

    if not sizes:
        raise InputError("n_components must contain at least one number of topics.")
    checked = [check_integer("n_components", size, least=1) for size in sizes]
    models = [
        PLSA(
            size, solver=HeldOutTempered(patience=10, tries=2), n_jobs=n_jobs,
            dtype="float32", random_state=random_state, verbose=verbose,
        ).fit(counts)
        for size in checked
    ]  # fmt: skip
    return TopicSpace.of([model.fitted_ for model in models], [model.doc_topic_ for model in models], counts)


def _doc_topic(space: TopicSpace) -> Array:
    """Return P(z|d) of a space of one model (documents x K, float32)."""
    documents = space.documents[:]
    return np.asarray(documents / np.maximum(documents.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny))


def _values_of(row: SparseRow, words: Array) -> Floats:
    """Return the values of some words in a row; 0 for words that it does not contain."""
    values = np.zeros(len(words))
    positions = np.searchsorted(row.indices, words)
    inside = np.flatnonzero(positions < len(row.indices))
    present = inside[row.indices[positions[inside]] == words[inside]]
    values[present] = row.data[positions[present]]
    return values


def _sums_by_row(rows: Any, values: Floats) -> Floats:
    """Return the sums of values, one for each entry, over the rows of a sparse matrix."""
    row_indices = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.asarray(np.bincount(row_indices, values, minlength=rows.shape[0]), dtype=np.float64)


def _inverse(lengths: Floats) -> Floats:
    """Return 1 / lengths, and 0 for lengths of zero."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _without_rounding(vectors: Floats, counts: Any, basis: Floats) -> Floats:
    """Return products of counts and a basis, with zeros for sums that are zero up to rounding.

    Otherwise a document that shares no direction with a query would be a hit by a rounding error.
    """
    lengths = np.sqrt(np.einsum("wk,wk->w", basis, basis))
    sizes = _sums_by_row(counts, counts.data * lengths[counts.indices])
    return np.where(np.abs(vectors) > _ROUNDING * sizes[:, np.newaxis], vectors, 0.0)


def _normalize_rows(rows: Array) -> Array:
    """Scale rows to length one; a row of zeros does not change."""
    lengths = np.sqrt(np.einsum("ik,ik->i", rows, rows))[:, np.newaxis]
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _fold_in(counts: SparseCounts, topic_word: Array, beta: float, share: float, background: Array) -> Array:
    """Return P(z|q) of the rows. `topic_word` and `background` have P(w|z) and P(w|B) only for words of the rows.

    The kernel needs the total probability of all other words by topic, so one more row is added for them.
    """
    n_topics = topic_word.shape[1]
    columns = topic_word if share == 0 else np.column_stack([topic_word, background])
    known = np.asarray(columns.any(axis=1))
    if not known.all():
        counts = counts.with_values(np.where(known[counts.indices], counts.values, 0))
    rest = np.maximum(1 - columns.sum(axis=0, dtype=np.float64), 0)
    operand = np.vstack([columns if beta == 1 else columns**beta, rest])
    folded, _ = counts.fold_in(
        padded(operand, np.float32), n_topics, empty=np.zeros(n_topics), tol=FOLD_IN_TOLERANCE, max_iter=FOLD_IN_STEPS,
        n_threads=1, background=share, temperature=beta,
    )  # fmt: skip
    return folded


def _term_scale(scores: Floats, term: str) -> Floats:
    """Return the divisor of term scores in a sum with cosines (queries x 1): 1, or the largest value of bm25."""
    if term != "bm25":
        return np.ones((scores.shape[0], 1))
    largest = scores.max(axis=1, keepdims=True)
    return np.where(largest > 0, largest, 1.0)
