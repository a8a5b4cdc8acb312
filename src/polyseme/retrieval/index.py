"""`SearchIndex`: search in a corpus with explanations, and its file format.

An index file is one safetensors file with a JSON header; it contains no pickle and no code. It has everything except
the vectorizer: the counts, the postings with the weights of bm25, and the models. When a file is read, the header and
the counts are checked. The arrays are memory-mapped, so that a large index opens at once and processes share its
memory. There is no digest, because computing it would read all arrays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from polyseme.errors import InputError, ModelFileError
from polyseme.io.checks import COUNT, OBJECT, TEXT, check_fields, list_of, mapping_to, number, parse_json
from polyseme.io.tensors import map_safetensors, write_safetensors
from polyseme.kernels import Array, Floats
from polyseme.metrics.words import WordAmounts
from polyseme.retrieval.queries import (
    Hit,
    Results,
    WordScore,
    best_rows,
    checked_counts,
    merge_word_scores,
    query_counts,
    sparse_row,
)
from polyseme.retrieval.scores import (
    SIZES,
    MethodSettings,
    Scoring,
    SingularSpace,
    TermScores,
    TopicSpace,
    fit_topic_space,
    method_settings,
    topic_space,
)
from polyseme.retrieval.senses import (
    RelatedWord,
    Sense,
    find_related_words,
    find_senses,
    topic_tokens,
    word_documents,
    word_topic_tokens,
)
from polyseme.utils import check_integer

_QUERIES_AT_ONCE = 64
_NO_WORDS = "The query has no words that the index knows."
_NO_MATCH = "No document matches the query."

FORMAT_VERSION = 1
_METADATA_KEY = "polyseme_index"
_SPACES = ("model", "average")
_SPACE_ARRAYS = ("topic_word", "documents", "topic_weights", "background_word")
_SPACE_NUMBERS = ("sizes", "temperatures", "background_shares")
_HEADER_FIELDS = {
    "format_version": COUNT,
    "library_version": TEXT,
    "shape": list_of(COUNT, most=2),
    "ids": list_of(TEXT),
    "titles": list_of(TEXT),
    "vocabulary": list_of(TEXT),
    "spaces": mapping_to(OBJECT),
    "lsi": OBJECT,
}
_SPACE_FIELDS = {
    "sizes": list_of(COUNT),
    "temperatures": list_of(number(0, 1e6)),
    "background_shares": list_of(number(0, 1)),
}


class SearchIndex:
    """Index of a corpus for search.

    The methods "tf", "tfidf" and "bm25" need no model. `set_model` adds "plsi-q" and "plsi-u", `fit_models` adds
    "plsi*", and `fit_lsi` adds "lsi". `polyseme.retrieval.scores` has the formulas.

    Parameters
    ----------
    counts : array-like or sparse matrix of shape (n_documents, n_words)
        Counts of the corpus.
    vocabulary : list of str
        The word of each column.
    ids : list, default=None
        Ids of the documents. None uses the numbers of the rows.
    titles : list of str, default=None
        Titles of the documents. None uses empty strings.
    vectorizer : object with a method transform, default=None
        Vectorizer with the same vocabulary, which converts queries to counts. None splits queries as CountVectorizer of
        scikit-learn does.

    Attributes
    ----------
    counts : sparse array of shape (n_documents, n_words)
        Counts of the corpus (CSR, float64).
    vocabulary : list of str
        The word of each column.
    ids : list of str
        Ids of the documents.
    titles : list of str
        Titles of the documents.
    vectorizer : object or None
        The given vectorizer.
    scoring : Scoring
        Term scores and latent spaces.
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
        """Set the attributes of a new or loaded index."""
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

    def set_model(self, model: Any, doc_topic: Any = None, *, n_jobs: int | None = None) -> Self:
        """Set the model of the methods "plsi-q" and "plsi-u", and of senses, related words and topic documents.

        The weights P(z|d) of the documents are those that the model infers, such as the mean of the posterior for LDA.
        Queries are folded in by likelihood for every model, also for LDA and a correlated topic model: with its
        temperature and background, but without its prior, because a query has so few words that the prior would
        dominate. The temperature is 1, and there is no background, except for PLSA.

        Parameters
        ----------
        model : estimator or FittedTopics
            Fitted PLSA, NMF, LDA, HierarchicalPLSA or CorrelatedTopicModel with the same vocabulary, or its `fitted_`.
            The topics of a tree are its leaves.
        doc_topic : array-like of shape (n_documents, K), default=None
            P(z|d) of the documents of the index, if they are known, such as `doc_topic_` of a model that was fitted to
            them. None: the documents are folded in.
        n_jobs : int, default=None
            Number of threads. None uses all cores that this process may use.

        Returns
        -------
        SearchIndex
            This object.
        """
        self.scoring.model = topic_space(model, self.counts, doc_topic, n_jobs=n_jobs)
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
        """Fit the models of the method "plsi*", one for each number of topics.

        Parameters
        ----------
        n_components : list of int, default=(32, 48, 64, 80, 128)
            Numbers of topics.
        random_state : int, default=0
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
            self.counts, n_components, random_state=random_state, n_jobs=n_jobs, verbose=verbose
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

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        method: str = "plsi*",
        term: str | None = None,
        term_weight: float | None = None,
    ) -> Results:
        """Return the k best documents for a query.

        Parameters
        ----------
        query : str or array-like
            A text, or one row of counts.
        k : int, default=10
            Number of documents.
        method : str, default="plsi*"
            Method: "tf", "tfidf", "bm25", "lsi", "plsi-u", "plsi-q" or "plsi*".
        term : {"tf", "tfidf", "bm25"}, default=None
            Term score of an LSI or PLSI method. None uses the default of the method.
        term_weight : float, default=None
            Weight of the term score, from 0 to 1. None uses the default of the method.

        Returns
        -------
        Results
            The documents with positive scores, best first.
        """
        counts = self.query_counts(query)
        if counts.shape[0] != 1:
            raise InputError(f"search takes one query, got {counts.shape[0]}: use search_many.")
        return next(self._search(counts, k, method, method_settings(method, term, term_weight)))

    def search_many(
        self,
        queries: Any,
        k: int = 10,
        *,
        method: str = "plsi*",
        term: str | None = None,
        term_weight: float | None = None,
    ) -> list[Results]:
        """Return the k best documents for each of several queries.

        Parameters
        ----------
        queries : list of str or array-like
            Texts, or rows of counts.
        k : int, default=10
            Number of documents for each query.
        method : str, default="plsi*"
            Method, as in `search`.
        term : {"tf", "tfidf", "bm25"}, default=None
            Term score, as in `search`.
        term_weight : float, default=None
            Weight of the term score, as in `search`.

        Returns
        -------
        list of Results
            The results of each query.
        """
        counts = self.query_counts(queries)
        return list(self._search(counts, k, method, method_settings(method, term, term_weight)))

    def similar_documents(
        self,
        document: Any,
        k: int = 10,
        *,
        method: str = "plsi*",
        term: str | None = None,
        term_weight: float | None = None,
    ) -> Results:
        """Return the k documents that are most similar to a document.

        Parameters
        ----------
        document : str
            Id of the document.
        k : int, default=10
            Number of documents.
        method : str, default="plsi*"
            Method, as in `search`.
        term : {"tf", "tfidf", "bm25"}, default=None
            Term score, as in `search`.
        term_weight : float, default=None
            Weight of the term score, as in `search`.

        Returns
        -------
        Results
            Other documents, best first.
        """
        row = self.row_of(document)
        settings = method_settings(method, term, term_weight)
        return next(self._search(self.counts[[row]], k, method, settings, excluded=row))

    def topic_documents(self, topic: int, k: int = 10) -> list[Hit]:
        """Return the k documents with the largest expected number of tokens n_d P(z|d) of a topic.

        The words of a hit have the expected numbers of their tokens. They add up to the score of a model without prior
        on documents; a prior shifts P(z|d), and so the score, by a few tokens.

        Parameters
        ----------
        topic : int
            Topic of the model given to `set_model`, or of the largest fitted model.
        k : int, default=10
            Number of documents.

        Returns
        -------
        list of Hit
            The documents, best first.
        """
        space = self.scoring.topics()
        if check_integer("topic", topic, least=0) >= space.sizes[0]:
            raise InputError(f"topic must be a number from 0 to {space.sizes[0] - 1}, got {topic!r}.")

        def explain(row: int) -> list[WordScore]:
            counts = sparse_row(self.counts, row)
            tokens = word_topic_tokens(space, counts, row)[:, topic]
            return merge_word_scores([(counts.indices, tokens)], self.vocabulary, np.empty(0, int), counts.indices)

        tokens = topic_tokens(space, self.counts, topic)
        best = best_rows(tokens, check_integer("k", k, least=1))
        return [self._hit(rank, int(row), {"latent": float(tokens[row])}, explain) for rank, row in enumerate(best, 1)]

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
        """
        space, column = self.scoring.topics(), self.column_of(word)
        if self._word_documents is None:
            self._word_documents = word_documents(space, self.counts)
        found = find_senses(
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

    def related_words(self, word: str, k: int = 10) -> list[RelatedWord]:
        """Return words that the topics of a word predict more than the whole corpus does.

        Parameters
        ----------
        word : str
            The word.
        k : int, default=10
            Number of words.

        Returns
        -------
        list of RelatedWord
            The words, largest weight first.
        """
        space = self.scoring.topics()
        words, weights = find_related_words(space, self.column_of(word), self.counts, check_integer("k", k, least=1))
        return [RelatedWord(self.vocabulary[w], float(weight)) for w, weight in zip(words, weights, strict=True)]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index and its models, without the vectorizer, to one file.

        If writing fails, an existing file does not change.

        Parameters
        ----------
        path : str or path
            Name of the file.
        """
        write_index(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, vectorizer: Any = None) -> SearchIndex:
        """Read an index that `save` wrote. Its arrays are memory-mapped.

        Parameters
        ----------
        path : str or path
            Name of the file.
        vectorizer : object with a method transform, default=None
            Vectorizer for queries, as in the constructor.

        Returns
        -------
        SearchIndex
            The index.
        """
        return read_index(cls, path, vectorizer)

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
        return query_counts(queries, self._query_vectorizer, len(self.vocabulary))

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
        if str(document) not in self._rows:
            raise InputError(f"There is no document with the id {str(document)!r} in the index.")
        return self._rows[str(document)]

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
        if word not in self._columns:
            raise InputError(f"The index does not know the word {word!r}.")
        return self._columns[word]

    def scores(
        self, queries: Any, *, method: str = "plsi*", term: str | None = None, term_weight: float | None = None
    ) -> Floats:
        """Return the scores of all documents.

        Parameters
        ----------
        queries : str, list of str or array-like
            One text, several texts, or counts.
        method : str, default="plsi*"
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
        parts = self.scoring.parts(self.query_counts(queries), method_settings(method, term, term_weight))
        return np.asarray(sum(parts.values()))

    @cached_property
    def _query_vectorizer(self) -> Any:
        return CountVectorizer(vocabulary=self._columns) if self.vectorizer is None else self.vectorizer

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {word: column for column, word in enumerate(self.vocabulary)}

    def _search(
        self, queries: Any, k: int, method: str, settings: MethodSettings, excluded: int | None = None
    ) -> Iterator[Results]:
        k = check_integer("k", k, least=1)
        for start in range(0, queries.shape[0], _QUERIES_AT_ONCE):
            batch = queries[start : start + _QUERIES_AT_ONCE] if queries.shape[0] > 1 else queries
            parts = self.scoring.parts(batch, settings)
            totals = np.asarray(sum(parts.values()))
            if excluded is not None:
                totals[:, excluded] = 0
            for i in range(batch.shape[0]):
                query = batch[[i]] if batch.shape[0] > 1 else batch
                query_parts = {name: part[i] for name, part in parts.items()}
                yield self._results(query, method, settings, query_parts, totals[i], k)

    def _results(
        self, query: Any, method: str, settings: MethodSettings, parts: dict[str, Floats], scores: Floats, k: int
    ) -> Results:
        explainer = cache(lambda: self.scoring.explainer(query, settings))

        def explain(row: int) -> list[WordScore]:
            document_words = sparse_row(self.counts, row).indices
            return merge_word_scores(explainer()(row), self.vocabulary, query.indices, document_words)

        best = best_rows(scores, k)
        hits = (
            self._hit(rank, int(row), {name: float(part[row]) for name, part in parts.items()}, explain)
            for rank, row in enumerate(best, start=1)
        )
        return Results(method, tuple(hits), "" if best.size else _NO_MATCH if query.nnz else _NO_WORDS)

    def _hit(self, rank: int, row: int, parts: dict[str, float], explain: Any) -> Hit:
        return Hit(rank, self.ids[row], self.titles[row], sum(parts.values()), parts, row, explain)


def write_index(index: SearchIndex, path: str | PathLike[str]) -> None:
    """Write an index to a file. A crash or a full disk leaves an existing file as it was."""
    if not Path(path).parent.is_dir():
        raise InputError(f"There is no folder {Path(path).parent} to save the index in: make it first.")
    scoring = index.scoring
    terms = scoring.terms
    tensors = {"bm25": terms.bm25_values, "idf": terms.idf}
    tensors |= {f"length.{name}": values for name, values in terms.lengths.items()}
    tensors |= _csr_arrays("counts", index.counts) | _csr_arrays("postings", terms.postings)
    header: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "library_version": version("polyseme"),
        "shape": list(index.counts.shape),
        "ids": index.ids,
        "titles": index.titles,
        "vocabulary": index.vocabulary,
        "spaces": {},
    }
    for name in _SPACES:
        space = getattr(scoring, name)
        if space is not None:
            tensors |= {f"{name}.{part}": getattr(space, part) for part in _SPACE_ARRAYS}
            header["spaces"][name] = {part: list(getattr(space, part)) for part in _SPACE_NUMBERS}
    if scoring.lsi is not None:
        tensors |= {"lsi.basis": scoring.lsi.basis, "lsi.documents": scoring.lsi.documents}
        header["lsi"] = {"weighting": scoring.lsi.weighting}
    write_safetensors(path, tensors, {_METADATA_KEY: json.dumps(header)})


def read_index(index_class: type[SearchIndex], path: str | PathLike[str], vectorizer: Any) -> SearchIndex:
    """Return the index in a file, with memory-mapped arrays."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no index file {path}.")
    header, tensors = _read_arrays(path)
    try:
        return _restore_index(index_class, header, tensors, vectorizer)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: its parts do not fit together ({error}).") from None


def _read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays by name."""
    try:
        metadata, tensors = map_safetensors(path)
        text = metadata.get(_METADATA_KEY)
        if text is None:
            raise ModelFileError(f"{path} is not a polyseme index.")
        header = parse_json(text)
        check_fields(header, {"format_version": COUNT}, required=("format_version",), others=True)
    except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ModelFileError(f"{path} is damaged or is not a polyseme index ({error}).") from None
    if header["format_version"] > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by polyseme {header.get('library_version')} in a newer format: "
            "update polyseme to read it."
        )
    return header, tensors


def _restore_index(
    index_class: type[SearchIndex], header: dict[str, Any], tensors: dict[str, Array], vectorizer: Any
) -> SearchIndex:
    """Return the index of a header and arrays. Raises an exception if they contradict each other."""
    check_fields(header, _HEADER_FIELDS, required=("shape", "ids", "titles", "vocabulary", "spaces"))
    n_docs, n_words = header["shape"]
    index = index_class.__new__(index_class)
    counts = _restore_matrix("counts", tensors, (n_docs, n_words))
    postings = _restore_matrix("postings", tensors, (n_words, n_docs))
    lengths = {name: _check_size(tensors[f"length.{name}"], n_docs) for name in ("tf", "tfidf")}
    bm25_values, idf = _check_size(tensors["bm25"], postings.nnz), _check_size(tensors["idf"], n_words)
    terms = TermScores(postings, bm25_values, idf, lengths)
    lists = (header["vocabulary"], n_words), (header["ids"], n_docs), (header["titles"], n_docs)
    vocabulary, ids, titles = (_check_size(values, size) for values, size in lists)
    index._fill(counts, terms, vocabulary, ids, titles, vectorizer)
    for name, settings in header["spaces"].items():
        if name in _SPACES:
            setattr(index.scoring, name, _restore_space(name, settings, tensors, n_docs, n_words))
    if "lsi" in header:
        basis, documents = tensors["lsi.basis"], tensors["lsi.documents"]
        _check_size(basis, n_words), _check_size(documents.T, n_docs)
        check_fields(header["lsi"], {"weighting": TEXT}, required=("weighting",))
        index.scoring.lsi = SingularSpace(basis, documents, header["lsi"]["weighting"])
    return index


def _restore_space(name: str, settings: Any, tensors: dict[str, Array], n_docs: int, n_words: int) -> TopicSpace:
    check_fields(settings, _SPACE_FIELDS, required=_SPACE_NUMBERS)
    sizes = tuple(settings["sizes"])
    temperatures, shares = (tuple(map(float, settings[part])) for part in ("temperatures", "background_shares"))
    topic_word, documents, topic_weights, background = (tensors[f"{name}.{part}"] for part in _SPACE_ARRAYS)
    width, n_models = sum(sizes), len(sizes)
    shapes = (topic_word.shape, documents.shape, topic_weights.shape, background.shape)
    wanted = ((n_words, width), (width, n_docs), (width,), (n_words, n_models))
    if shapes != wanted or (len(temperatures), len(shares)) != (n_models, n_models):
        raise ValueError(f"the arrays of {name} have other shapes than the header says")
    return TopicSpace(topic_word, documents, sizes, temperatures, topic_weights, shares, background)


def _csr_arrays(name: str, matrix: Any) -> dict[str, Array]:
    return {f"{name}.{part}": getattr(matrix, part) for part in ("indptr", "indices", "data")}


def _restore_matrix(name: str, tensors: dict[str, Array], shape: tuple[int, int]) -> Any:
    """Return a CSR array. Its indices are checked here, because a wrong one would read foreign memory."""
    indptr, indices, data = (tensors[f"{name}.{part}"] for part in ("indptr", "indices", "data"))
    matrix = sp.csr_array((data, indices, indptr), shape=shape, copy=False)
    matrix.check_format(full_check=True)
    return checked_counts(matrix, shape[1], name)


def _check_size(values: Any, size: int) -> Any:
    """Return the values. Raises ValueError if their number is not `size`."""
    if len(values) != size:
        raise ValueError(f"{len(values)} entries instead of {size}")
    return values
