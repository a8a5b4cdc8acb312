"""`SearchIndex`: search in a corpus with explanations.

A search in a stored index imports neither scikit-learn nor scipy nor the estimators. The methods that fit a model or
read all counts import them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.retrieval.files import IndexParts, read_index, write_index
from polyseme.retrieval.nearest import nearest_words
from polyseme.retrieval.postings import Postings, Ranking
from polyseme.retrieval.queries import (
    Hit,
    Results,
    SparseRows,
    UnknownWord,
    WordScore,
    best_rows,
    merge_word_scores,
    query_counts,
    query_rows,
)
from polyseme.retrieval.scores import DEFAULT_METHOD, MethodSettings, Scoring, method_settings
from polyseme.retrieval.snippets import QueryFinder, QueryText, Snippet
from polyseme.retrieval.spaces import SIZES, SingularSpace, fit_topic_space, topic_space
from polyseme.retrieval.terms import TermScores
from polyseme.text.languages import PHRASE_SEPARATOR
from polyseme.text.words import WordRules, plain_rules
from polyseme.utils import RandomStateLike, as_seed, check_integer, checked_counts, valid_counts

if TYPE_CHECKING:
    from polyseme.metrics.words import WordAmounts
    from polyseme.retrieval.senses import RelatedWord, Sense

_QUERIES_AT_ONCE = 64
_WORDS_MARKED = 20
"""Largest number of words that a snippet marks. Of a longer query, these are the words that add most to the score."""
_MOST_NEAREST = 12
"""Number of unknown words of a query for which the nearest words are searched."""
_NO_WORDS = "The query has no words that the index knows."
_NO_MATCH = "No document matches the query."


class SearchIndex:
    """Index of a corpus for search.

    The default method "bm25+topics" ranks documents by the words that they share with the query, and uses topics as a
    complement. It needs a model (`set_model`); without one it is "bm25". It never ranks a document above one that
    contains all words of the query and has a higher score by "bm25" (`polyseme.retrieval.postings`). "tf", "tfidf" and
    "bm25" need no model.
    `set_model` adds "plsi-q" and "plsi-u", `fit_models` adds "plsi*", and `fit_lsi` adds "lsi";
    `polyseme.retrieval.spaces` has their formulas.

    Parameters
    ----------
    counts : array-like or sparse matrix of shape (n_documents, n_words)
        Counts of the corpus.
    vocabulary : list of str
        The word of each column.
    ids : list, default=None
        Ids of the documents. None uses the row indices.
    titles : list of str, default=None
        Titles of the documents. None uses empty strings.
    excerpts : list of str, default=None
        Beginnings of the documents, which hits show. None uses empty strings.
    texts : sequence of str, default=None
        Texts of the documents, in which hits find their snippets. They are not saved. None uses the excerpts.
    vectorizer : object with a method transform, default=None
        Vectorizer with the same vocabulary, which converts queries to counts. None splits queries as CountVectorizer of
        scikit-learn does.

    Attributes
    ----------
    counts : sparse array of shape (n_documents, n_words)
        Counts of the corpus (CSR, float64).
    vocabulary : sequence of str
        The word of each column.
    ids : sequence of str
        Ids of the documents.
    titles : sequence of str
        Titles of the documents.
    excerpts : sequence of str
        Beginnings of the documents.
    texts : sequence of str or None
        Texts of the documents.
    vectorizer : object or None
        The given vectorizer.
    scoring : Scoring
        Term scores and latent spaces.

    Examples
    --------
    >>> from polyseme.retrieval import SearchIndex
    >>> from polyseme.text import Vectorizer
    >>> words = Vectorizer()
    >>> counts = words.fit_transform(["red fish", "blue fish", "fast car"])
    >>> index = SearchIndex(counts, words.get_feature_names_out())
    >>> [hit.row for hit in index.search("car", 1)]
    [2]
    """

    texts: Any

    def __init__(
        self,
        counts: Any,
        vocabulary: Sequence[str],
        *,
        ids: Sequence[Any] | None = None,
        titles: Sequence[str] | None = None,
        excerpts: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        vectorizer: Any = None,
    ) -> None:
        names = [str(word) for word in vocabulary]
        if len(set(names)) != len(names):
            raise InputError("vocabulary must not contain a word twice.")
        matrix = valid_counts(counts, len(names), "The corpus")
        canonical = matrix.has_canonical_format and (not matrix.nnz or bool(matrix.data.min() > 0))
        scoring = Scoring(SparseRows.of(matrix) if canonical else None, TermScores(*Postings.of(matrix)))
        self._begin(scoring, names, ids, titles, excerpts, texts, vectorizer)

    def _begin(
        self, scoring: Scoring, names: Sequence[str], ids: Any, titles: Any, excerpts: Any, texts: Any, vectorizer: Any
    ) -> None:
        """Set the attributes of a new index."""
        n_docs = scoring.terms.postings.n_docs
        strings = {
            "ids": [str(name) for name in (range(n_docs) if ids is None else ids)],
            "titles": [""] * n_docs if titles is None else [str(title) for title in titles],
            "excerpts": [""] * n_docs if excerpts is None else [str(excerpt) for excerpt in excerpts],
        }
        for name, values in (*strings.items(), ("texts", texts)):
            if values is not None and len(values) != n_docs:
                raise InputError(f"{name} must have one entry for each of the {n_docs} documents, got {len(values)}.")
        rows = {name: row for row, name in enumerate(strings["ids"])}
        if len(rows) != n_docs:
            raise InputError("ids must differ from each other.")
        columns = {word: column for column, word in enumerate(names)}
        self._fill(
            IndexParts(scoring, names, strings["ids"], strings["titles"], strings["excerpts"], None),
            rows,
            columns,
            vectorizer,
        )
        self.texts = texts

    def _fill(self, parts: IndexParts, rows: Any, columns: Any, vectorizer: Any) -> None:
        """Set the attributes of a new or loaded index.

        `rows` maps ids to rows, and `columns` maps words to columns. Both have the method `get` of a dict.
        """
        self.scoring, self.vocabulary, self.ids, self.titles, self.excerpts, rules, self._run = parts
        self.vectorizer = rules if vectorizer is None else vectorizer
        self.texts = None
        self._rows, self._columns = rows, columns
        self._word_documents: WordAmounts | None = None

    @cached_property
    def counts(self) -> Any:
        """Counts of the corpus (CSR, float64). A loaded index reads them when they are first used."""
        return checked_counts(self.scoring.counts.matrix(), len(self.vocabulary), "The corpus")

    def set_model(self, model: Any, doc_topic: Any = None, *, n_jobs: int | None = None) -> Self:
        """Set the model of "bm25+topics", "plsi-q" and "plsi-u", and of senses, related words and topic documents.

        The weights P(z|d) of the documents are those that the model infers, such as the mean of the posterior for LDA.
        Queries are folded in by likelihood for every model, including LDA and the correlated topic model. This uses the
        temperature and the background of the model, but not its prior, because a query has so few words that the prior
        would dominate. Only PLSA can have a background or a temperature other than 1.

        Parameters
        ----------
        model : estimator or FittedTopics
            Fitted PLSA, NMF, LDA, HierarchicalPLSA or CorrelatedTopicModel with the same vocabulary.
            The topics of a tree are its leaves.
        doc_topic : array-like of shape (n_documents, K), default=None
            P(z|d) of the documents of the index, if it is known, such as `doc_topic_` of a model that was fitted to
            them. None folds in the documents.
        n_jobs : int, default=None
            Number of threads. None uses all cores that this process may use.

        Returns
        -------
        SearchIndex
            This object.

        Examples
        --------
        >>> from polyseme import PLSA
        >>> from polyseme.retrieval import SearchIndex
        >>> from polyseme.text import Vectorizer
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> counter = Vectorizer()
        >>> counts = counter.fit_transform(texts)
        >>> index = SearchIndex(counts, counter.get_feature_names_out(), texts=texts)
        >>> index = index.set_model(PLSA(2, random_state=0).fit(counts))
        >>> [hit.row for hit in index.search("bass guitar", n_documents=2)]
        [3, 2]
        """
        self.scoring.model = topic_space(model, self.scoring.counts, doc_topic, n_jobs=n_jobs)
        self._word_documents = None
        return self

    def fit_models(
        self,
        n_components: Sequence[int] = SIZES,
        *,
        random_state: RandomStateLike = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Self:
        """Fit the models of the method "plsi*", one for each number of topics.

        Parameters
        ----------
        n_components : list of int, default=(32, 48, 64, 80, 128)
            Numbers of topics.
        random_state : int, RandomState or Generator, default=0
            Seed.
        n_jobs : int, default=None
            Number of threads. None uses all cores that this process may use.
        verbose : int, default=0
            Verbosity of the fits.

        Returns
        -------
        SearchIndex
            This object.
        """
        self._word_documents = None
        self.scoring.average = fit_topic_space(
            self.counts, n_components, random_state=as_seed(random_state), n_jobs=n_jobs, verbose=verbose
        )
        return self

    def fit_lsi(self, n_components: int = 128, *, weighting: str = "tfidf") -> Self:
        """Compute the singular vectors of the method "lsi".

        Parameters
        ----------
        n_components : int, default=128
            Number of dimensions.
        weighting : {"tf", "tfidf"}, default="tfidf"
            Weights of the words.

        Returns
        -------
        SearchIndex
            This object.
        """
        size = check_integer("n_components", n_components, least=1)
        self.scoring.lsi = SingularSpace.of(self.counts, weighting, size)
        return self

    def supports(self, method: str) -> bool:
        """Return whether the index has the models of a method.

        Parameters
        ----------
        method : str
            Method, as in `search`.

        Returns
        -------
        bool
            Whether `search` can use the method.
        """
        return self.scoring.supports(method_settings(method, None, None))

    def search(
        self,
        query: Any,
        n_documents: int = 10,
        *,
        method: str = DEFAULT_METHOD,
        allowed: Any = None,
        term: str | None = None,
        term_weight: float | None = None,
    ) -> Results:
        """Return the best documents for a query.

        Parameters
        ----------
        query : str, QueryText or array-like
            A text, the parts of one (`polyseme.retrieval.snippets.parse_query`) whose words and prefixes are counted,
            or one row of counts.
        n_documents : int, default=10
            Number of documents.
        method : str, default="bm25+topics"
            Method: "bm25+topics", "bm25", "tf", "tfidf", "lsi", "plsi-u", "plsi-q" or "plsi*".
        allowed : array-like, default=None
            Documents that the search may return: a mask with a bool for each document, or row indices. None allows all.
        term : {"tf", "tfidf", "bm25"}, default=None
            Term score of an LSI or PLSI method. None uses the default of the method.
        term_weight : float, default=None
            Weight of the term score, from 0 to 1. None uses the default of the method.

        Returns
        -------
        Results
            The documents with positive scores, best first.

        Examples
        --------
        >>> from polyseme.retrieval import SearchIndex
        >>> from polyseme.text import Vectorizer
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> counter = Vectorizer()
        >>> counts = counter.fit_transform(texts)
        >>> index = SearchIndex(counts, counter.get_feature_names_out(), texts=texts)
        >>> [(hit.row, round(hit.score, 2)) for hit in index.search("bass guitar", n_documents=2)]
        [(3, 0.81), (2, 0.33)]
        """
        counts = self._query_rows(query)
        if counts.shape[0] != 1:
            raise InputError(f"search takes one query, got {counts.shape[0]}: use search_many.")
        settings, mask = method_settings(method, term, term_weight), self._mask(allowed)
        return next(self._search(counts, n_documents, method, settings, mask))

    def search_many(
        self,
        queries: Any,
        n_documents: int = 10,
        *,
        method: str = DEFAULT_METHOD,
        allowed: Any = None,
        term: str | None = None,
        term_weight: float | None = None,
    ) -> list[Results]:
        """Return the best documents for each of several queries.

        Parameters
        ----------
        queries : list of str or array-like
            Texts, or rows of counts.
        n_documents : int, default=10
            Number of documents for each query.
        method : str, default="bm25+topics"
            Method, as in `search`.
        allowed : array-like, default=None
            Documents that the search may return, as in `search`.
        term : {"tf", "tfidf", "bm25"}, default=None
            Term score, as in `search`.
        term_weight : float, default=None
            Weight of the term score, as in `search`.

        Returns
        -------
        list of Results
            The results of each query.

        Examples
        --------
        >>> from polyseme.retrieval import SearchIndex
        >>> from polyseme.text import Vectorizer
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> counter = Vectorizer()
        >>> counts = counter.fit_transform(texts)
        >>> index = SearchIndex(counts, counter.get_feature_names_out(), texts=texts)
        >>> [[hit.row for hit in found] for found in index.search_many(["wine", "bass"], n_documents=1)]
        [[0], [3]]
        """
        counts = self._query_rows(queries)
        settings, mask = method_settings(method, term, term_weight), self._mask(allowed)
        return list(self._search(counts, n_documents, method, settings, mask))

    def similar_documents(
        self,
        document: Any,
        n_documents: int = 10,
        *,
        method: str = DEFAULT_METHOD,
        allowed: Any = None,
        term: str | None = None,
        term_weight: float | None = None,
    ) -> Results:
        """Return the documents that are most similar to a document.

        Parameters
        ----------
        document : str
            Id of the document.
        n_documents : int, default=10
            Number of documents.
        method : str, default="bm25+topics"
            Method, as in `search`.
        allowed : array-like, default=None
            Documents that the search may return, as in `search`.
        term : {"tf", "tfidf", "bm25"}, default=None
            Term score, as in `search`.
        term_weight : float, default=None
            Weight of the term score, as in `search`.

        Returns
        -------
        Results
            Other documents, best first.

        Examples
        --------
        >>> from polyseme.retrieval import SearchIndex
        >>> from polyseme.text import Vectorizer
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> counter = Vectorizer()
        >>> counts = counter.fit_transform(texts)
        >>> index = SearchIndex(counts, counter.get_feature_names_out(), texts=texts)
        >>> [hit.row for hit in index.similar_documents("3", n_documents=1)]
        [2]
        """
        row = self.row_of(document)
        settings = method_settings(method, term, term_weight)
        mask = self._mask(allowed)
        mask = np.ones(len(self.ids), dtype=bool) if mask is None else mask.copy()
        mask[row] = False
        return next(self._search(self._document(row), n_documents, method, settings, mask, row))

    def topic_documents(self, topic: int, n_documents: int = 10) -> list[Hit]:
        """Return the documents with the largest expected number of tokens of a topic.

        This number is n_d P(z|d), with n_d the length of the document. The weight of a word of a hit is the expected
        number of its tokens. If the model has no prior on documents, these weights add up to the score; a prior shifts
        P(z|d), and therefore the score, by a few tokens.

        Parameters
        ----------
        topic : int
            Topic of the model given to `set_model`, or of the largest fitted model.
        n_documents : int, default=10
            Number of documents.

        Returns
        -------
        list of Hit
            The documents, best first.

        Examples
        --------
        >>> from polyseme import PLSA
        >>> from polyseme.retrieval import SearchIndex
        >>> from polyseme.text import Vectorizer
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> counter = Vectorizer()
        >>> counts = counter.fit_transform(texts)
        >>> index = SearchIndex(counts, counter.get_feature_names_out(), texts=texts)
        >>> index = index.set_model(PLSA(2, random_state=0).fit(counts))
        >>> sorted(len(index.topic_documents(topic, 2)) for topic in (0, 1))
        [2, 2]
        """
        from polyseme.retrieval.senses import topic_tokens, word_topic_tokens

        space = self.scoring.topics()
        if check_integer("topic", topic, least=0) >= space.sizes[0]:
            raise InputError(f"topic must be a number from 0 to {space.sizes[0] - 1}, got {topic!r}.")

        def explain(row: int) -> list[WordScore]:
            counts = self.scoring.counts.row(row)
            tokens = word_topic_tokens(space, counts, row)[:, topic]
            return merge_word_scores([(counts.indices, tokens)], self.vocabulary, np.empty(0, int), counts.indices)

        tokens = topic_tokens(space, self.scoring.terms.totals[:], topic)
        best = best_rows(tokens, check_integer("n_documents", n_documents, least=1))
        words = np.empty(0, dtype=int)
        return [
            self._hit(rank, int(row), {"latent": float(tokens[row])}, explain, words)
            for rank, row in enumerate(best, 1)
        ]

    def senses(self, word: str, *, least: float = 0.1, n_words: int = 10, n_documents: int = 3) -> list[Sense]:
        """Return the senses of a word: the topics in which it is used.

        Parameters
        ----------
        word : str
            The word.
        least : float, default=0.1
            Smallest share P(z|w) of a sense.
        n_words : int, default=10
            Number of words for each sense.
        n_documents : int, default=3
            Number of documents for each sense.

        Returns
        -------
        list of Sense
            The senses, largest share first.

        Examples
        --------
        >>> from polyseme import PLSA
        >>> from polyseme.retrieval import SearchIndex
        >>> from polyseme.text import Vectorizer
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> counter = Vectorizer()
        >>> counts = counter.fit_transform(texts)
        >>> index = SearchIndex(counts, counter.get_feature_names_out(), texts=texts)
        >>> index = index.set_model(PLSA(2, random_state=0).fit(counts))
        >>> [round(sense.share, 2) for sense in index.senses("guitar")]
        [1.0]
        """
        from polyseme.retrieval.senses import Sense, find_senses, word_documents

        space, column = self.scoring.topics(), self.column_of(word)
        if self._word_documents is None:
            self._word_documents = word_documents(space, self.scoring.counts)
        senses = find_senses(
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
            for sense in senses
        ]

    def related_words(self, word: str, n_words: int = 10) -> list[RelatedWord]:
        """Return words that are more probable under the topics of a word than in the whole corpus.

        Parameters
        ----------
        word : str
            The word.
        n_words : int, default=10
            Number of words.

        Returns
        -------
        list of RelatedWord
            The words, largest weight first.

        Examples
        --------
        >>> from polyseme import PLSA
        >>> from polyseme.retrieval import SearchIndex
        >>> from polyseme.text import Vectorizer
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> counter = Vectorizer()
        >>> counts = counter.fit_transform(texts)
        >>> index = SearchIndex(counts, counter.get_feature_names_out(), texts=texts)
        >>> index = index.set_model(PLSA(2, random_state=0).fit(counts))
        >>> [related.word for related in index.related_words("guitar", 2)]
        ['drums', 'bass']
        """
        from polyseme.retrieval.senses import RelatedWord, find_related_words

        space = self.scoring.topics()
        words, weights = find_related_words(
            space, self.column_of(word), self.scoring.terms.word_totals, check_integer("n_words", n_words, least=1)
        )
        return [RelatedWord(self.vocabulary[w], float(weight)) for w, weight in zip(words, weights, strict=True)]

    def save(self, path: str | PathLike[str], *, identity: str = "") -> None:
        """Write the index and its models to one file.

        The file contains the vectorizer only if it is a WordRules (`polyseme.text.words.read_word_rules`); pass any
        other vectorizer to `load` again. If writing fails, an existing file does not change.

        Parameters
        ----------
        path : str or path
            Name of the file.
        identity : str, default=""
            String that identifies the state of the corpus and the model, such as a digest of both.

        Examples
        --------
        >>> from polyseme.retrieval import SearchIndex
        >>> from polyseme.text import Vectorizer
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> counter = Vectorizer()
        >>> counts = counter.fit_transform(texts)
        >>> index = SearchIndex(counts, counter.get_feature_names_out(), texts=texts)
        >>> index.save("search.index")
        >>> [hit.row for hit in SearchIndex.load("search.index").search("bass", n_documents=1)]
        [3]
        """
        rules = self.vectorizer if isinstance(self.vectorizer, WordRules) else None
        parts = IndexParts(self.scoring, self.vocabulary, self.ids, self.titles, self.excerpts, rules, self._run)
        write_index(parts, Path(path), identity)

    @classmethod
    def load(cls, path: str | PathLike[str], *, vectorizer: Any = None, identity: str | None = None) -> SearchIndex:
        """Read an index that `save` wrote. Its arrays are memory-mapped, and checked when they are first used.

        A method raises ModelFileError if it reads a damaged part of the file.

        Parameters
        ----------
        path : str or path
            Name of the file.
        vectorizer : object with a method transform, default=None
            Vectorizer for queries, as in the constructor. None uses the WordRules of the file, if it has them.
        identity : str, default=None
            Identity that was given to `save`. A file with another identity is refused. None accepts every file.

        Returns
        -------
        SearchIndex
            The index.
        """
        return cls._of_parts(read_index(Path(path), identity), vectorizer)

    @classmethod
    def _of_parts(cls, parts: IndexParts, vectorizer: Any = None) -> SearchIndex:
        """Return the index of a file."""
        index = cls.__new__(cls)
        index._fill(parts, parts.ids, parts.vocabulary, vectorizer)
        return index

    def query_counts(self, queries: Any) -> Any:
        """Convert queries to counts.

        Parameters
        ----------
        queries : str, list of str or array-like
            One text, several texts, or counts.

        Returns
        -------
        sparse array of shape (n_queries, n_words)
            The counts.
        """
        return self._query_rows(queries).matrix()

    def row_of(self, document: Any) -> int:
        """Return the row of a document.

        Parameters
        ----------
        document : str
            Id of the document.

        Returns
        -------
        int
            The row.
        """
        row: int = self._rows.get(str(document), -1)
        if row < 0:
            raise InputError(f"There is no document with the id {str(document)!r} in the index.")
        return row

    def column_of(self, word: str) -> int:
        """Return the column of a word.

        Parameters
        ----------
        word : str
            The word.

        Returns
        -------
        int
            The column.
        """
        column: int = self._columns.get(word, -1)
        if column < 0:
            raise InputError(f"The index does not know the word {word!r}.")
        return column

    def scores(
        self, queries: Any, *, method: str = DEFAULT_METHOD, term: str | None = None, term_weight: float | None = None
    ) -> Floats:
        """Return the scores of all documents.

        Parameters
        ----------
        queries : str, list of str or array-like
            One text, several texts, or counts.
        method : str, default="bm25+topics"
            Method, as in `search`.
        term : {"tf", "tfidf", "bm25"}, default=None
            Term score, as in `search`.
        term_weight : float, default=None
            Weight of the term score, as in `search`.

        Returns
        -------
        array of shape (n_queries, n_documents)
            The scores.
        """
        parts = self.scoring.parts(self._query_rows(queries), method_settings(method, term, term_weight))
        return np.asarray(sum(parts.values()))

    def finder(self, words: Sequence[str], phrases: Sequence[str] = ()) -> QueryFinder:
        """Return an object that finds words, in all their forms, and exact phrases in texts.

        Parameters
        ----------
        words : list of str
            Words, or texts with several words.
        phrases : list of str, default=()
            Phrases.

        Returns
        -------
        QueryFinder
            Its method `snippet(text)` returns the part of a text with the most of these words, and `has_phrases(text)`
            returns whether a text contains all phrases.
        """
        return QueryFinder(words, phrases, self._query_vectorizer)

    def documents_with(self, words: str) -> list[Array]:
        """Return for each word of a text the documents that contain it, in any form that was counted as this word.

        Parameters
        ----------
        words : str
            The words. Stop words and words that the index does not know are ignored. A single word that ends with *
            stands for all words that begin with it.

        Returns
        -------
        list of array
            A mask of the documents for each word that the index knows.
        """
        masks = []
        for columns in self._columns_with(words):
            mask = np.zeros(len(self.ids), dtype=bool)
            for column in columns:
                documents, _ = self.scoring.terms.postings.row(column)
                mask[documents] = True
            masks.append(mask)
        return masks

    def _columns_with(self, text: str) -> list[list[int]]:
        """Return for each known word of a text the columns of the word and of the joined phrases that contain it."""
        rules = self._query_vectorizer
        if text.endswith("*"):
            return [columns] if (columns := self._columns_of_prefix(text)) else []
        if not (isinstance(rules, WordRules) and rules.phrases):
            return [[column] for column in self._query_rows(text).indices.tolist()]
        names = {rules.shown.get(key, key) for key in rules.word_keys([text])[0]}
        parts = [word.split(PHRASE_SEPARATOR) for word in self.vocabulary]
        by_name = ([column for column, words in enumerate(parts) if name in words] for name in sorted(names))
        return [columns for columns in by_name if columns]

    def _columns_of_prefix(self, prefix: str) -> list[int]:
        """Return the columns of the words that begin with a text that ends with *, and of the text as a word.

        A joined phrase begins with the text if one of its words does.
        """
        rules, text = self._query_vectorizer, prefix.rstrip("*")
        prepare = rules.tokens.prepare if isinstance(rules, WordRules) else str.lower
        start = text if prepare is None else prepare(text)
        columns = set(self._query_rows(text).indices.tolist())
        for column, name in enumerate(self.vocabulary):
            if name.startswith(start) or f"{PHRASE_SEPARATOR}{start}" in name:
                columns.add(column)
        return sorted(columns)

    def unknown_words(self, query: str | QueryText) -> tuple[UnknownWord, ...]:
        """Return the words of a query that the index does not know, with the nearest known ones.

        Parameters
        ----------
        query : str or QueryText
            The query. Its stop words are ignored.

        Returns
        -------
        tuple of UnknownWord
            The words in the order of the query; those after the twelfth without the nearest ones.

        Examples
        --------
        >>> from polyseme.retrieval import SearchIndex
        >>> from polyseme.text import Vectorizer
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> counter = Vectorizer()
        >>> counts = counter.fit_transform(texts)
        >>> index = SearchIndex(counts, counter.get_feature_names_out(), texts=texts)
        >>> [(word.word, word.nearest) for word in index.unknown_words("red whine")]
        [('whine', ('wine',))]
        """
        asked = QueryText(query) if isinstance(query, str) else query
        rules = self._query_vectorizer
        if hasattr(rules, "_word_rules"):  # a Vectorizer of this package
            rules = rules._word_rules()
        if isinstance(rules, WordRules):
            rules, prepared = rules.of_short_texts([asked.words])
            sequences, names = rules.known_sequences(iter([prepared]))
            words = [names[number] for number in sequences.numbers()[0]]
        else:
            words = rules.build_analyzer()(asked.words) if hasattr(rules, "build_analyzer") else []
        unknown = [word for word in dict.fromkeys(words) if self._columns.get(word, -1) < 0]
        unknown += [prefix for prefix in dict.fromkeys(asked.prefixes) if not self._columns_of_prefix(prefix)]
        if not unknown:
            return ()
        frequencies = self.scoring.terms.postings.frequencies()
        return tuple(
            UnknownWord(
                word,
                nearest_words(word.rstrip("*"), self.vocabulary, frequencies) if number < _MOST_NEAREST else (),
            )
            for number, word in enumerate(unknown)
        )

    @cached_property
    def _query_vectorizer(self) -> Any:
        return plain_rules(self._columns) if self.vectorizer is None else self.vectorizer

    def _query_rows(self, queries: Any) -> SparseRows:
        if not isinstance(queries, QueryText):
            return query_counts(queries, self._query_vectorizer, len(self.vocabulary))
        rows = self._query_rows(queries.words)
        added = {column for prefix in queries.prefixes for column in self._columns_of_prefix(prefix)}
        values = dict.fromkeys(added, 1.0) | dict(zip(rows.indices.tolist(), rows.data.tolist(), strict=True))
        columns = sorted(values)
        return SparseRows(
            np.array([0, len(columns)], dtype=np.int32), np.array(columns, dtype=np.int32),
            np.array([values[column] for column in columns]), rows.shape,
        )  # fmt: skip

    def _document(self, row: int) -> SparseRows:
        """Return the counts of a document as a query."""
        indices, data = self.scoring.counts.row(row)
        return SparseRows(np.array([0, len(indices)]), indices, data, (1, len(self.vocabulary)))

    def _mask(self, allowed: Any) -> Array | None:
        """Return `allowed` as a mask of the documents, or None if all are allowed."""
        if allowed is None:
            return None
        n_docs = len(self.ids)
        given = np.asarray(allowed)
        if given.dtype == bool and given.shape == (n_docs,):
            return given
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise InputError(f"allowed must be a mask with a bool for each of the {n_docs} documents, or row indices.")
        if given.size and not (given.min() >= 0 and given.max() < n_docs):
            raise InputError(f"allowed must be row indices from 0 to {n_docs - 1}.")
        mask = np.zeros(n_docs, dtype=bool)
        mask[given.astype(np.int64)] = True
        return mask

    def _search(
        self,
        queries: SparseRows,
        n_documents: int,
        method: str,
        settings: MethodSettings,
        allowed: Array | None = None,
        document: int | None = None,
    ) -> Iterator[Results]:
        n_documents = check_integer("n_documents", n_documents, least=1)
        for start in range(0, queries.shape[0], _QUERIES_AT_ONCE):
            batch = query_rows(queries, start, min(start + _QUERIES_AT_ONCE, queries.shape[0]))
            for i, ranking in enumerate(self.scoring.rank(batch, settings, n_documents, allowed, document)):
                yield self._results(query_rows(batch, i, i + 1), method, settings, ranking)

    def _results(self, query: SparseRows, method: str, settings: MethodSettings, ranking: Ranking) -> Results:
        explainer = cache(lambda: self.scoring.explainer(query, settings, ranking))

        def explain(row: int) -> list[WordScore]:
            document_words = self.scoring.counts.row(row).indices
            return merge_word_scores(explainer()(row), self.vocabulary, query.indices, document_words)

        hits = tuple(
            self._hit(
                place + 1,
                int(row),
                {name: float(part[place]) for name, part in ranking.parts.items()},
                explain,
                query.indices,
            )
            for place, row in enumerate(ranking.rows)
        )
        return Results(method, hits, "" if hits else _NO_MATCH if len(query.indices) else _NO_WORDS)

    def _hit(self, rank: int, row: int, parts: dict[str, float], explain: Any, words: Array) -> Hit:
        def find(row: int) -> Snippet:
            names = [self.vocabulary[word] for word in words[: _WORDS_MARKED + 1]]
            if len(names) > _WORDS_MARKED:  # for example if the query is a document
                names = [score.word for score in explain(row) if score.in_query and score.in_document][:_WORDS_MARKED]
            return self.finder(names).snippet(self.excerpts[row] if self.texts is None else self.texts[row])

        score = sum(parts.values())
        return Hit(rank, self.ids[row], self.titles[row], score, parts, row, self.excerpts[row], explain, find)
