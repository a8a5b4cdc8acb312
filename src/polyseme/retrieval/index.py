"""An index over a corpus: ask in words, get documents and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from polyseme.errors import InputError
from polyseme.estimators.validation import whole_number
from polyseme.kernels import Floats
from polyseme.metrics.words import WordAmounts
from polyseme.retrieval import senses as _senses
from polyseme.retrieval import store
from polyseme.retrieval.combined import SIZES, Recipe, fitted_models, recipe_of
from polyseme.retrieval.latent_scores import SingularSpace, TopicSpace
from polyseme.retrieval.queries import checked_counts, query_counts, row_of
from polyseme.retrieval.results import Hit, Reason, Results, best_rows, merged_reasons
from polyseme.retrieval.scoring import Scoring
from polyseme.retrieval.senses import Neighbour, Sense
from polyseme.retrieval.term_scores import TermScores

_QUERIES_AT_ONCE = 64
_NO_WORDS = "The query has no words that the index knows."
_NO_MATCH = "No document matches the query."


class SearchIndex:
    """Search over counts (documents x words).

    Ready at once are the methods `tf`, `tfidf` and `bm25`; `use_model` adds `plsi-q` and `plsi-u`, `fit_models` adds
    `plsi*`, `fit_lsi` adds `lsi`. See `polyseme.retrieval.combined` for what each of them computes.

    Parameters
    ----------
    counts : documents x words, dense or any scipy sparse.
    vocabulary : the word of each column.
    ids, titles : one for each document, if there are any; ids default to the numbers of the rows.
    vectorizer : turns texts into counts: an object with `transform`, fitted to the same vocabulary. None splits texts
        as scikit-learn's CountVectorizer does, and looks the words up in the vocabulary.
    """

    def __init__(
        self,
        counts: Any,
        vocabulary: Sequence[str],
        *,
        ids: Sequence[Any] | None = None,
        titles: Sequence[str] | None = None,
        vectorizer: Any = None,
    ) -> None:
        names = [str(word) for word in vocabulary]
        if len(set(names)) != len(names):
            raise InputError("vocabulary must not have a word twice.")
        matrix = checked_counts(counts, len(names), "The corpus")
        n_docs = matrix.shape[0]
        self._fill(
            matrix,
            TermScores.of(matrix),
            names,
            [str(name) for name in (range(n_docs) if ids is None else ids)],
            [""] * n_docs if titles is None else [str(title) for title in titles],
            vectorizer,
        )

    def _fill(
        self, counts: Any, terms: TermScores, vocabulary: list[str], ids: list[str], titles: list[str], vectorizer: Any
    ) -> None:
        """Sets what every index has, new or loaded."""
        n_docs = counts.shape[0]
        for name, values in (("ids", ids), ("titles", titles)):
            if len(values) != n_docs:
                raise InputError(f"{name} must have one entry for each of the {n_docs} documents, got {len(values)}.")
        self.counts, self.vocabulary, self.ids, self.titles = counts, vocabulary, ids, titles
        self.scoring = Scoring(counts, terms)
        self.vectorizer = vectorizer
        self._word_documents: WordAmounts | None = None
        self._rows = {name: row for row, name in enumerate(ids)}
        if len(self._rows) != n_docs:
            raise InputError("ids must differ from each other.")

    def use_model(self, model: Any) -> Self:
        """Takes a fitted PLSA of the same vocabulary for `plsi-q`, `plsi-u`, `senses`, `neighbours` and `of_topic`."""
        self.scoring.model = TopicSpace.of([model], self.counts)
        self._word_documents = None
        return self

    def fit_models(
        self,
        n_components: Sequence[int] = SIZES,
        *,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Self:
        """Fits the models of `plsi*`, one for each number of topics."""
        self._word_documents = None
        self.scoring.average = fitted_models(
            self.counts, n_components, random_state=random_state, n_jobs=n_jobs, verbose=verbose
        )
        return self

    def fit_lsi(self, n_components: int = 128, *, weighting: str = "tfidf") -> Self:
        """Computes the singular vectors of `lsi`; weighting is tf or tfidf."""
        size = whole_number("n_components", n_components, least=1)
        self.scoring.lsi = SingularSpace.of(self.counts, weighting, size)
        return self

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        method: str = "plsi*",
        term: str | None = None,
        term_weight: float | None = None,
    ) -> Results:
        """The k best documents for a query: a text, or counts of the index's words (one row).

        `term` (tf, tfidf, bm25) and `term_weight` (0 to 1) change what an lsi or plsi method adds to its latent score.
        """
        counts = self.query_counts(query)
        if counts.shape[0] != 1:
            raise InputError(f"search takes one query, got {counts.shape[0]}: use search_many.")
        return next(self._search(counts, k, method, recipe_of(method, term, term_weight)))

    def search_many(
        self,
        queries: Any,
        k: int = 10,
        *,
        method: str = "plsi*",
        term: str | None = None,
        term_weight: float | None = None,
    ) -> list[Results]:
        """`search` for each of several texts, or each row of counts."""
        counts = self.query_counts(queries)
        return list(self._search(counts, k, method, recipe_of(method, term, term_weight)))

    def like(
        self,
        document: Any,
        k: int = 10,
        *,
        method: str = "plsi*",
        term: str | None = None,
        term_weight: float | None = None,
    ) -> Results:
        """The k documents most like the one with this id, which itself is left out."""
        row = self.row_of(document)
        recipe = recipe_of(method, term, term_weight)
        return next(self._search(self.counts[[row]], k, method, recipe, without=row))

    def of_topic(self, topic: int, k: int = 10) -> list[Hit]:
        """The k documents that have most of a topic of the model, by the expected number of its tokens n_d P(z|d)."""
        space = self.scoring.topics()
        if whole_number("topic", topic, least=0) >= space.sizes[0]:
            raise InputError(f"topic must be a number from 0 to {space.sizes[0] - 1}, got {topic!r}.")

        def explain(row: int) -> list[Reason]:
            counts = row_of(self.counts, row)
            tokens = _senses.topic_tokens(space, counts, row)[:, topic]
            return merged_reasons([(counts.indices, tokens)], self.vocabulary, np.empty(0, int), counts.indices)

        tokens = _senses.tokens_of_topic(space, self.counts, topic)
        best = best_rows(tokens, whole_number("k", k, least=1))
        return [self._hit(rank, int(row), {"latent": float(tokens[row])}, explain) for rank, row in enumerate(best, 1)]

    def senses(self, word: str, *, least: float = 0.1, n_words: int = 10, n_documents: int = 3) -> list[Sense]:
        """The topics that a word lives in, each with its share P(z|w) of at least `least`: see retrieval/senses.py."""
        space, column = self.scoring.topics(), self.column_of(word)
        if self._word_documents is None:
            self._word_documents = _senses.word_documents(space, self.counts)
        found = _senses.senses(
            space, column, self._word_documents, self.scoring.terms.postings,
            least=least, n_words=n_words, n_documents=n_documents,
        )  # fmt: skip
        return [
            Sense(
                sense.topic,
                sense.share,
                [self.vocabulary[column] for column in sense.words],
                [(self.ids[row], self.titles[row]) for row in sense.documents],
            )
            for sense in found
        ]

    def neighbours(self, word: str, k: int = 10) -> list[Neighbour]:
        """Words that the topics of a word expect beside it, most telling first: see retrieval/senses.py."""
        space = self.scoring.topics()
        words, weights = _senses.neighbours(space, self.column_of(word), self.counts, whole_number("k", k, least=1))
        return [Neighbour(self.vocabulary[w], float(weight)) for w, weight in zip(words, weights, strict=True)]

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the index and its models to one file; it appears whole or not at all. The vectorizer is not kept."""
        store.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, vectorizer: Any = None) -> SearchIndex:
        """The index that `save` wrote. Its arrays stay on disk until they are read (memory-mapped)."""
        return store.load(cls, path, vectorizer)

    def query_counts(self, queries: Any) -> Any:
        """Counts (queries x words) of one text, a list of texts, or counts as they are."""
        return query_counts(queries, self._words, len(self.vocabulary))

    def row_of(self, document: Any) -> int:
        """The row of the document with this id."""
        if str(document) not in self._rows:
            raise InputError(f"There is no document with the id {str(document)!r} in the index.")
        return self._rows[str(document)]

    def column_of(self, word: str) -> int:
        """The column of a word."""
        if word not in self._columns:
            raise InputError(f"The index does not know the word {word!r}.")
        return self._columns[word]

    def scores(
        self, queries: Any, *, method: str = "plsi*", term: str | None = None, term_weight: float | None = None
    ) -> Floats:
        """The scores of all documents (queries x documents), for texts or counts."""
        parts = self.scoring.parts(self.query_counts(queries), recipe_of(method, term, term_weight))
        return np.asarray(sum(parts.values()))

    @cached_property
    def _words(self) -> Any:
        """What turns texts into counts."""
        return CountVectorizer(vocabulary=self._columns) if self.vectorizer is None else self.vectorizer

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {word: column for column, word in enumerate(self.vocabulary)}

    def _search(
        self, queries: Any, k: int, method: str, recipe: Recipe, without: int | None = None
    ) -> Iterator[Results]:
        k = whole_number("k", k, least=1)
        for start in range(0, queries.shape[0], _QUERIES_AT_ONCE):
            batch = queries[start : start + _QUERIES_AT_ONCE] if queries.shape[0] > 1 else queries
            parts = self.scoring.parts(batch, recipe)
            totals = np.asarray(sum(parts.values()))
            if without is not None:
                totals[:, without] = 0
            for i in range(batch.shape[0]):
                query = batch[[i]] if batch.shape[0] > 1 else batch
                own_parts = {name: part[i] for name, part in parts.items()}
                yield self._results(query, method, recipe, own_parts, totals[i], k)

    def _results(
        self, query: Any, method: str, recipe: Recipe, parts: dict[str, Floats], scores: Floats, k: int
    ) -> Results:
        explainer = cache(lambda: self.scoring.explainer(query, recipe))

        def explain(row: int) -> list[Reason]:
            return merged_reasons(explainer()(row), self.vocabulary, query.indices, row_of(self.counts, row).indices)

        best = best_rows(scores, k)
        hits = (
            self._hit(rank, int(row), {name: float(part[row]) for name, part in parts.items()}, explain)
            for rank, row in enumerate(best, start=1)
        )
        return Results(method, tuple(hits), "" if best.size else _NO_MATCH if query.nnz else _NO_WORDS)

    def _hit(self, rank: int, row: int, parts: dict[str, float], explain: Any) -> Hit:
        return Hit(rank, self.ids[row], self.titles[row], sum(parts.values()), parts, row, explain)
