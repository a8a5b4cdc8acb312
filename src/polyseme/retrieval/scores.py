"""Scores from the words that a query and a document share: tf, tfidf and bm25.

With x_dw the counts, q_w the query's, N documents and df_w of them with the word:

    tf      cos(q, x_d)
    tfidf   cos(q idf, x_d idf), idf_w = log((1 + N) / (1 + df_w)) + 1 (scikit-learn's TfidfTransformer)
    bm25    sum_w q_w log(1 + (N - df_w + 1/2) / (df_w + 1/2)) x / (x + k1 (1 - b + b n_d / mean n))

The last is BM25 as Lucene has it (its idf is never negative). Each is a product of the weighted query with a
words x documents matrix, times a number for each document; so the parts of the words add up to the score.

Scores from topics and from singular vectors: a query and a document may match without a word in common.

`TopicSpace` (PLSI-Q): cos(P(z|q), P(z|d)), the query folded in at the beta of the fit; over several models, the mean.
`SingularSpace` (LSI): cos(q V, x_d V), V the leading right singular vectors of the weighted counts.

Both split a score over words. P(z|q) is itself a sum over the query's words, sum_w (q_w / |q|) P(z|q,w), and P(z|d) one
over the document's; q V and x_d V are sums, too. Half of a score is split along the query, half along the document: so
words count that only one of the two contains.

PLSI-U: term matching with documents whose word frequencies a model has smoothed.

    P(w|d) = lambda x_dw / n_d + (1 - lambda) sum_z P(z|d) P(w|z),      score = cos(q g, P(.|d) g)

with g the weights of words (1 for tf, idf for tfidf). No array of documents x words is made: with Q = q g^2 the product
is lambda Q . x_d / n_d + (1 - lambda) (Q P(w|z)) . P(z|d), and the squared length of a document is
lambda^2 a_d + 2 lambda (1 - lambda) b_d + (1 - lambda)^2 c_d, where

    a = |x_d g|^2 / n_d^2,   b = sum_w g_w^2 (x_dw / n_d) sum_z P(z|d) P(w|z),   c = P(z|d)' G P(z|d)

and G = P(w|z)' g^2 P(w|z) is K x K. They are kept, so that lambda can be chosen with the query.

The methods of a search: a term score, a latent score, or both by a weight.

    score = (1 - term_weight) latent + term_weight term

as Hofmann (1999) combines PLSI with the cosine of term vectors. bm25, which has no upper bound, is divided by its
largest value for the query first. In PLSI-U the two are mixed within the document (smoothed_scores.py).

What the weights and the models follow: K = 32, 48, 64, 80, 128 with equal weights and term_weight = 1/2 are Hofmann's;
beta and the end of a fit are decided by held-out tokens of the corpus. No query has a say.

Scores of queries, and the words behind them: recipes (combined.py) put to work on a corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.fold_in import MAX_STEPS, TOLERANCE
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators import PLSA
from polyseme.estimators.lsa import LSA
from polyseme.kernels import Array, Floats, SparseCounts, padded, single_threaded_blas
from polyseme.retrieval.queries import QueryRow, own_words, row_of
from polyseme.solvers.tempered import LookFurther
from polyseme.utils import check_share, check_whole_number

WEIGHTINGS = ("tf", "tfidf", "bm25")
K1, B = 1.2, 0.75
"""BM25's usual constants (Lucene's defaults)"""


class TermScores:
    """Postings of a corpus: words x documents, so that a query reads the lists of its own words alone."""

    def __init__(self, postings: Any, bm25_values: Floats, idf: Floats, lengths: dict[str, Floats]) -> None:
        self.postings = postings
        """counts, words x documents, CSR, float64"""
        self.bm25_values = bm25_values
        """bm25's weight of each of the postings"""
        self.idf = idf
        self.lengths = lengths
        """{"tf": |x_d|, "tfidf": |x_d idf|}"""
        self._ones = np.ones(postings.shape[1])
        self._scales = {name: _inverse(values) for name, values in lengths.items()}
        self._bm25 = sp.csr_array((bm25_values, postings.indices, postings.indptr), shape=postings.shape)

    @classmethod
    def of(cls, counts: Any) -> TermScores:
        """The postings of counts (documents x words, canonical CSR, float64)."""
        n_docs, n_words = counts.shape
        postings = sp.csr_array(counts.T.tocsr())
        frequency = np.diff(postings.indptr)
        idf = np.log((1 + n_docs) / (1 + frequency)) + 1
        lengths = {name: _row_norms(counts, weights) for name, weights in (("tf", np.ones(n_words)), ("tfidf", idf))}
        totals = np.asarray(counts.sum(axis=1)).ravel()
        mean = totals.mean() if totals.sum() > 0 else 1.0
        penalty = K1 * (1 - B + B * totals / mean)
        rarity = np.log1p((n_docs - frequency + 0.5) / (frequency + 0.5))
        x = postings.data
        bm25 = np.repeat(rarity, frequency) * x / (x + penalty[postings.indices])
        return cls(postings, bm25, idf, lengths)

    def scores(self, queries: Any, weighting: str) -> Floats:
        """Queries x documents, for queries as counts (queries x words, CSR, float64)."""
        weighted = self._weighted(queries, weighting)
        return np.asarray((weighted.queries @ weighted.postings).toarray()) * weighted.scale

    def word_parts(self, query: Any, document: int, weighting: str) -> tuple[Array, Floats]:
        """The query's words, and what each adds to the document's score."""
        weighted = self._weighted(query, weighting)
        words = weighted.queries.indices
        values = posted(weighted.postings, words, document)
        return words, weighted.queries.data * values * weighted.scale[document]

    def _weighted(self, queries: Any, weighting: str) -> _Weighted:
        if weighting == "bm25":
            return _Weighted(queries, self._bm25, self._ones)
        if weighting not in self.lengths:
            raise InputError(f"A term score must be one of {', '.join(map(repr, WEIGHTINGS))}, got {weighting!r}.")
        weights = idf_weights(self, weighting)
        norms = np.repeat(_inverse(_row_norms(queries, weights)), np.diff(queries.indptr))
        data = queries.data * weights[queries.indices] ** 2 * norms
        return _Weighted(
            sp.csr_array((data, queries.indices, queries.indptr), shape=queries.shape),
            self.postings,
            self._scales[weighting],
        )


class _Weighted(NamedTuple):
    """score = scale * (queries @ postings)"""

    queries: Any
    postings: Any
    scale: Floats


def posted(postings: Any, words: Array, document: int) -> Floats:
    """A document's entries in the lists of some words; 0 where it is not in a list."""
    values = np.zeros(len(words))
    for i, word in enumerate(words):
        documents, entries = row_of(postings, word)
        place = int(np.searchsorted(documents, document))
        if place < len(documents) and documents[place] == document:
            values[i] = entries[place]
    return values


def idf_weights(terms: TermScores, weighting: str) -> Floats:
    """What multiplies a word's count in the vector space of `weighting`, tf or tfidf."""
    if weighting not in terms.lengths:
        raise InputError(f"The weights of words are {', '.join(map(repr, terms.lengths))}, got {weighting!r}.")
    return terms.idf if weighting == "tfidf" else np.ones_like(terms.idf)


def _row_norms(matrix: Any, weights: Floats) -> Floats:
    """Lengths of the rows of a CSR matrix whose columns are multiplied by weights."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = (matrix.data * weights[matrix.indices]) ** 2
    return np.sqrt(np.bincount(rows, squares, minlength=matrix.shape[0]))


def _inverse(lengths: Floats) -> Floats:
    """1 / lengths, and 0 where there is nothing."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


Explainer = Callable[[QueryRow, int], tuple[Array, Array]]
"""(words and counts of a document, its number) -> (words, weights)"""


@dataclass(frozen=True)
class TopicSpace:
    """One or more models of a corpus, side by side: their K columns follow each other."""

    topic_word: Array
    """P(w|z), words x sum of K, float32"""
    documents: Array
    """P(z|d) of each model at length one, sum of K x documents, float32; zero for a document without words.

    By topic, since BLAS multiplies one vector by rows of documents three times as fast as by rows of topics."""
    sizes: tuple[int, ...]
    """K of each model"""
    temperatures: tuple[float, ...]
    topic_weights: Floats
    """P(z) of each model"""
    background_shares: tuple[float, ...]
    """lambda of each model, 0 without a background"""
    background_word: Array
    """P(w|B) of each model, words x models, float32"""

    @classmethod
    def of(cls, models: Sequence[Any], counts: Any) -> TopicSpace:
        """Of fitted estimators such as PLSA, with the documents folded in.

        Queries are folded in with the model's background and temperature, but without its prior on documents: a query
        is not one of the documents, and has few words to stand up to it.
        """
        for model in models:
            if model.components_.shape[1] != counts.shape[1]:
                raise InputError(
                    f"The model knows {model.components_.shape[1]} words, but the index has {counts.shape[1]}: "
                    "both must come from the same vocabulary."
                )
        empty = np.diff(counts.indptr) == 0
        blocks = []
        for model in models:
            block = _unit(np.asarray(model.transform(counts), dtype=np.float32))
            block[empty] = 0
            blocks.append(block)
        return cls(
            np.ascontiguousarray(np.concatenate([model.components_ for model in models]).T, dtype=np.float32),
            np.ascontiguousarray(np.concatenate(blocks, axis=1).T),
            tuple(int(model.components_.shape[0]) for model in models),
            tuple(float(model.temperature_) for model in models),
            np.concatenate([np.asarray(model.topic_weights_, dtype=np.float64) for model in models]),
            tuple(float(getattr(model, "background_weight_", 0.0)) for model in models),
            np.stack([_background_of(model) for model in models], axis=1),
        )

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """The columns of each model."""
        ends = np.cumsum(self.sizes)
        return tuple(slice(int(end) - size, int(end)) for end, size in zip(ends, self.sizes, strict=True))

    def only(self, chosen: int) -> TopicSpace:
        """One of the models, alone."""
        block = self.blocks[chosen]
        return TopicSpace(
            self.topic_word[:, block],
            self.documents[block],
            (self.sizes[chosen],),
            (self.temperatures[chosen],),
            self.topic_weights[block],
            (self.background_shares[chosen],),
            self.background_word[:, [chosen]],
        )

    def fold(self, queries: Any) -> Array:
        """P(z|q) of each model (queries x sum of K, float32); zeros for a query without known words."""
        words, compact = own_words(queries)
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
            folded[:, block] = _folded(counts, topic_word[:, block], beta, share, background)
        return folded

    def scores(self, queries: Any) -> Array:
        """Queries x documents."""
        with single_threaded_blas():
            return np.asarray(self._query_vectors(self.fold(queries)) @ self.documents)

    def explainer(self, query: Any) -> Explainer:
        """What gives, for a document, the words of the query and of the document, and what each adds to the score."""
        folded = self.fold(query)
        vector = 0.5 * self._query_vectors(folded)[0]
        query_evidence = self._evidence(query, folded[0])

        def explain(row: QueryRow, document: int) -> tuple[Array, Array]:
            by_topic = vector * self.documents[:, document]
            document_evidence = self._evidence(row, self.weights_of(document))
            words = np.concatenate([query.indices, row.indices])
            return words, np.concatenate([query_evidence @ by_topic, document_evidence @ by_topic])

        return explain

    def weights_of(self, document: int) -> Array:
        """P(z|d) of each model, which sums to one again."""
        row = np.array(self.documents[:, document])
        for block in self.blocks:
            row[block] /= max(row[block].sum(), np.finfo(np.float32).tiny)
        return row

    def _query_vectors(self, folded: Array) -> Array:
        """At length one for each model, divided by the number of models: a product with `documents` is the mean."""
        return np.concatenate([_unit(folded[:, block]) for block in self.blocks], axis=1) / np.float32(len(self.sizes))

    def _evidence(self, row: Any, weights: Array) -> Array:
        """Share of each of the row's words in each topic's weight (words x sum of K): columns sum to one.

        n_w P(z|w) / sum_w n_w P(z|w), with P(z|w) ∝ (P(z) P(w|z))^beta of the row, beside a background if there is one.
        """
        evidence = self.topic_word[row.indices]
        backgrounds = self.background_word[row.indices].T
        settings = zip(self.blocks, self.temperatures, self.background_shares, backgrounds, strict=True)
        for block, beta, share, background in settings:
            joint = (np.float32(1 - share) * weights[block] * evidence[:, block]) ** np.float32(beta)
            total = joint.sum(axis=1) + (np.float32(share) * background) ** np.float32(beta)
            posterior = joint / np.maximum(total, np.finfo(np.float32).tiny)[:, np.newaxis]
            counted = row.data[:, np.newaxis].astype(np.float32) * posterior
            evidence[:, block] = counted / np.maximum(counted.sum(axis=0), np.finfo(np.float32).tiny)
        return evidence


def _background_of(model: Any) -> Array:
    """P(w|B) of a fitted estimator, zeros without one."""
    background = getattr(model, "background_", None)
    return np.asarray(np.zeros(model.components_.shape[1]) if background is None else background, dtype=np.float32)


def _folded(counts: SparseCounts, topic_word: Array, beta: float, share: float, background: Array) -> Array:
    """The rows folded in; topic_word and background hold P(w|z) and P(w|B) of their words alone.

    One row more stands for all other words: the kernel wants to know what the topics give to them.
    """
    n_topics = topic_word.shape[1]
    columns = topic_word if share == 0 else np.column_stack([topic_word, background])
    known = np.asarray(columns.any(axis=1))
    if not known.all():
        counts = counts.with_values(np.where(known[counts.indices], counts.values, 0))
    rest = np.maximum(1 - columns.sum(axis=0, dtype=np.float64), 0)
    operand = np.vstack([columns if beta == 1 else columns**beta, rest])
    folded, _ = counts.fold_in(
        padded(operand, np.float32), n_topics, empty=np.zeros(n_topics), tol=TOLERANCE, max_iter=MAX_STEPS,
        n_threads=1, background=share, temperature=beta,
    )  # fmt: skip
    return folded


_LSA_WEIGHTS = {"tf": "counts", "tfidf": "tf-idf"}


@dataclass(frozen=True)
class SingularSpace:
    """LSI: the leading right singular vectors of the counts, whose columns are multiplied by weights (tf or tfidf)."""

    basis: Floats
    """V, words x K, each row already times its word's weight"""
    documents: Floats
    """x_d V, K x documents"""
    weighting: str

    @classmethod
    def of(cls, counts: Any, weighting: str, n_components: int) -> SingularSpace:
        """The exact decomposition; signs and rotations change no score."""
        if weighting not in _LSA_WEIGHTS:
            raise InputError(f"weighting must be one of {', '.join(map(repr, _LSA_WEIGHTS))}, got {weighting!r}.")
        most = min(counts.shape) - 1
        if not 1 <= n_components <= most:
            raise InputError(f"n_components of LSI must be from 1 to {most} for this corpus, got {n_components!r}.")
        lsa = LSA(n_components, weights=_LSA_WEIGHTS[weighting], dtype="float64").fit(counts)
        basis = np.ascontiguousarray(lsa.components_.T) * lsa.word_weights_[:, np.newaxis]
        basis[np.bincount(counts.indices, minlength=counts.shape[1]) == 0] = 0  # not quite, by rounding
        return cls(basis, np.ascontiguousarray(lsa.doc_vectors_.T), weighting)

    def truncated(self, n_components: int) -> SingularSpace:
        """The first dimensions alone: what fewer components would have given."""
        return SingularSpace(self.basis[:, :n_components], self.documents[:n_components], self.weighting)

    @cached_property
    def _units(self) -> Floats:
        """The documents at length one."""
        return np.ascontiguousarray(_unit(self.documents.T).T)

    def scores(self, queries: Any) -> Floats:
        """Queries x documents."""
        with single_threaded_blas():
            return np.asarray(_unit(queries @ self.basis) @ self._units)

    def explainer(self, query: Any) -> Explainer:
        """As TopicSpace.explainer."""
        tiny = np.finfo(float).tiny
        vector = np.asarray(query @ self.basis)[0]
        length = max(float(np.linalg.norm(vector)), tiny)

        def explain(row: QueryRow, document: int) -> tuple[Array, Array]:
            own = max(float(np.linalg.norm(self.documents[:, document])), tiny)
            along_query = query.data * (self.basis[query.indices] @ self.documents[:, document])
            along_document = row.data * (self.basis[row.indices] @ vector)
            words = np.concatenate([query.indices, row.indices])
            return words, np.concatenate([along_query, along_document]) / (2 * length * own)

        return explain


def _unit(rows: Array) -> Array:
    """Rows of length one; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ik,ik->i", rows, rows))[:, np.newaxis]
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


@dataclass(frozen=True)
class SmoothedScores:
    """One model's smoothing of a corpus, for one weighting of words."""

    terms: TermScores
    space: TopicSpace
    weighting: str
    doc_topic: Array
    """P(z|d), K x documents, float32"""
    totals: Floats
    """n_d"""
    squares: Floats
    """a, b, c: 3 x documents"""

    @classmethod
    def of(cls, terms: TermScores, space: TopicSpace, counts: Any, weighting: str) -> SmoothedScores:
        sums = np.maximum(space.documents.sum(axis=0), np.finfo(np.float32).tiny)
        doc_topic = space.documents / sums
        totals = np.asarray(counts.sum(axis=1)).ravel()
        filled = np.maximum(totals, 1)
        squared = (idf_weights(terms, weighting) ** 2)[:, np.newaxis]
        topic_word = np.asarray(space.topic_word, dtype=np.float64)
        with single_threaded_blas():
            gram = topic_word.T @ (squared * topic_word)
            c = np.einsum("kd,kd->d", gram @ doc_topic, doc_topic, dtype=np.float64)
        b = np.einsum("dk,kd->d", np.asarray(counts @ (squared * topic_word)), doc_topic) / filled
        a = (terms.lengths[weighting] / filled) ** 2
        return cls(terms, space, weighting, doc_topic, totals, np.stack([a, b, c]))

    def parts(self, queries: Any, term_weight: float) -> tuple[Floats, Floats]:
        """(from the model, from the words themselves), queries x documents each; the score is their sum."""
        scale, weighted = self._scaled(queries, term_weight)
        words, compact = own_words(weighted)
        by_topic = (compact @ self.space.topic_word[words].astype(np.float64)).astype(np.float32)
        with single_threaded_blas():
            latent = (1 - term_weight) * scale * (by_topic @ self.doc_topic)
        counted = np.asarray((weighted @ self.terms.postings).toarray())
        return latent, term_weight * scale * counted / np.maximum(self.totals, 1)

    def word_parts(self, query: Any, document: int, term_weight: float) -> tuple[Array, Floats]:
        """The query's words, and what each adds to the score of a document, whether that contains it or not."""
        scale, weighted = self._scaled(query, term_weight)
        smoothed = self.space.topic_word[weighted.indices] @ self.doc_topic[:, document]
        own = posted(self.terms.postings, weighted.indices, document) / max(self.totals[document], 1)
        mixed = (1 - term_weight) * smoothed + term_weight * own
        return weighted.indices, scale[document] * weighted.data * mixed

    def _scaled(self, queries: Any, term_weight: float) -> tuple[Floats, Any]:
        """One over the documents' lengths, and the queries times g^2 over theirs."""
        mixture = np.array([term_weight**2, 2 * term_weight * (1 - term_weight), (1 - term_weight) ** 2])
        lengths = np.sqrt(np.maximum(mixture @ self.squares, 0))
        weights = idf_weights(self.terms, self.weighting)
        own = np.sqrt(np.asarray(queries.power(2) @ weights**2))
        data = (
            queries.data * weights[queries.indices] ** 2 / np.repeat(np.maximum(own, 1e-300), np.diff(queries.indptr))
        )
        weighted = type(queries)((data, queries.indices, queries.indptr), shape=queries.shape)
        return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0), weighted


SIZES = (32, 48, 64, 80, 128)
"""Hofmann's numbers of topics"""
_MOST_ITERATIONS = 3000


@dataclass(frozen=True)
class Recipe:
    """What a method is made of."""

    latent: str | None
    """the index's attribute with the latent space; None for term scores alone"""
    term: str
    """tf, tfidf or bm25"""
    term_weight: float
    smoothed: bool = False
    """whether the latent part smooths the documents (PLSI-U)"""


METHODS = {
    "tf": Recipe(None, "tf", 1.0),
    "tfidf": Recipe(None, "tfidf", 1.0),
    "bm25": Recipe(None, "bm25", 1.0),
    "lsi": Recipe("lsi", "tfidf", 0.0),
    "plsi-u": Recipe("model", "tfidf", 0.5, smoothed=True),
    "plsi-q": Recipe("model", "tfidf", 0.5),
    "plsi*": Recipe("average", "tfidf", 0.5),
}

_FIRST = {"lsi": "fit_lsi()", "model": "use_model(model)", "average": "fit_models()"}
"""the call that gives an index each of its spaces"""


def recipe_of(method: str, term: str | None, term_weight: float | None) -> Recipe:
    """The recipe of a method, with another term score or weight where they are given."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}.")
    recipe = METHODS[method]
    if recipe.latent is None and (term is not None or term_weight is not None):
        raise InputError(f"{method!r} is a term score itself: term and term_weight are for lsi and plsi methods.")
    if term is not None and term not in WEIGHTINGS:
        raise InputError(f"term must be one of {', '.join(map(repr, WEIGHTINGS))}, got {term!r}.")
    if recipe.smoothed and term == "bm25":
        raise InputError("'plsi-u' smooths the counts of words: its term must be 'tf' or 'tfidf'.")
    weight = recipe.term_weight if term_weight is None else check_share("term_weight", term_weight)
    return Recipe(recipe.latent, term or recipe.term, weight, recipe.smoothed)


def how_to_get(latent: str) -> str:
    """The call that makes a space that an index does not have yet."""
    return _FIRST[latent]


def fitted_models(
    counts: Any, sizes: Sequence[int], *, random_state: int, n_jobs: int | None, verbose: int
) -> TopicSpace:
    """A model for each number of topics, by tempered EM with tokens held out."""
    if not sizes:
        raise InputError("n_components must name at least one number of topics.")
    checked = [check_whole_number("n_components", size, least=1) for size in sizes]
    models = [
        PLSA(
            size, solver=LookFurther(), max_iter=_MOST_ITERATIONS, n_jobs=n_jobs, dtype="float32",
            random_state=random_state, verbose=verbose,
        ).fit(counts)
        for size in checked
    ]  # fmt: skip
    return TopicSpace.of(models, counts)


class Scoring:
    """The postings of a corpus, and the latent spaces it has so far (None: not yet)."""

    def __init__(self, counts: Any, terms: TermScores) -> None:
        self.counts = counts
        self.terms = terms
        self.lsi: SingularSpace | None = None
        self.average: TopicSpace | None = None
        self._model: TopicSpace | None = None
        self._smoothed: dict[str, SmoothedScores] = {}

    @property
    def model(self) -> TopicSpace | None:
        """The one model of `plsi-q` and `plsi-u`."""
        return self._model

    @model.setter
    def model(self, space: TopicSpace | None) -> None:
        self._model, self._smoothed = space, {}

    def topics(self) -> TopicSpace:
        """The given model, or the largest of those of `plsi*`."""
        space = self.average if self._model is None else self._model
        if space is None:
            raise UnsupportedError("This index has no topics: call use_model(model) or fit_models() first.")
        return space.only(int(np.argmax(space.sizes)))

    def parts(self, queries: Any, recipe: Recipe) -> dict[str, Floats]:
        """Arrays queries x documents, whose sum is the score: "latent" and "term", or one of them."""
        if recipe.latent is None:
            return {"term": self.terms.scores(queries, recipe.term)}
        weight = recipe.term_weight
        if recipe.smoothed:
            latent, term = self._smoothing(recipe.term).parts(queries, weight)
            return {"latent": latent, "term": term}
        latent = (1 - weight) * self._space(recipe.latent).scores(queries)
        if weight == 0:
            return {"latent": latent}
        term = self.terms.scores(queries, recipe.term)
        return {"latent": latent, "term": term * (weight / _bound(term, recipe.term))}

    def explainer(self, query: Any, recipe: Recipe) -> Callable[[int], list[tuple[Array, Array]]]:
        """What gives, for a document, pairs (words, weights); all weights together are its score.

        A word may come more than once. What only depends on the query is computed here.
        """
        weight = recipe.term_weight
        if recipe.smoothed:
            smoothing = self._smoothing(recipe.term)
            return lambda document: [smoothing.word_parts(query, document, weight)]
        latent = None if recipe.latent is None else self._space(recipe.latent).explainer(query)
        scale = weight
        if latent is not None and recipe.term == "bm25":
            scale = weight / float(_bound(self.terms.scores(query, recipe.term), recipe.term)[0, 0])

        def explain(document: int) -> list[tuple[Array, Array]]:
            found = []
            if latent is not None:
                words, weights = latent(row_of(self.counts, document), document)
                found.append((words, (1 - weight) * weights))
            if weight > 0:
                words, weights = self.terms.word_parts(query, document, recipe.term)
                found.append((words, scale * weights))
            return found

        return explain

    def _space(self, name: str) -> Any:
        space = getattr(self, name)
        if space is None:
            raise UnsupportedError(f"This index cannot do that yet: call {how_to_get(name)} first.")
        return space

    def _smoothing(self, weighting: str) -> SmoothedScores:
        """Made when it is first asked for, and kept."""
        if weighting not in self._smoothed:
            self._smoothed[weighting] = SmoothedScores.of(self.terms, self._space("model"), self.counts, weighting)
        return self._smoothed[weighting]


def _bound(scores: Floats, term: str) -> Floats:
    """What a query's term scores are divided by beside a cosine (queries x 1): 1, or bm25's largest value."""
    if term != "bm25":
        return np.ones((scores.shape[0], 1))
    largest = scores.max(axis=1, keepdims=True)
    return np.where(largest > 0, largest, 1.0)
