"""Index files: one safetensors file with a JSON header. No pickle, nothing executed.

All of an index but its vectorizer is in the file: the counts, the postings with bm25's weights, and the models. On
loading the header and the counts are checked; the arrays are memory-mapped, so that a large index opens at once and
processes share its memory. There is no digest, which would have to read them all.

An index over a corpus: ask in words, get documents and reasons.
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
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors
from sklearn.feature_extraction.text import CountVectorizer

from polyseme.errors import InputError, ModelFileError
from polyseme.io.checks import COUNT, OBJECT, TEXT, check_fields, list_of, mapping_to, number, parse_json
from polyseme.io.files import write_atomically
from polyseme.kernels import Array, Floats
from polyseme.metrics.words import WordAmounts
from polyseme.retrieval import senses as _senses
from polyseme.retrieval.queries import (
    Hit,
    Results,
    WordScore,
    best_rows,
    checked_counts,
    merged_reasons,
    query_counts,
    row_of,
)
from polyseme.retrieval.scores import (
    SIZES,
    Recipe,
    Scoring,
    SingularSpace,
    TermScores,
    TopicSpace,
    fitted_models,
    recipe_of,
)
from polyseme.retrieval.senses import RelatedWord, Sense
from polyseme.utils import check_whole_number

FORMAT_VERSION = 1
_KEY = "polyseme_index"
_DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
_SPACES = ("model", "average")
_ARRAYS = ("topic_word", "documents", "topic_weights", "background_word")
_NUMBERS = ("sizes", "temperatures", "background_shares")
_HEADER = {
    "format_version": COUNT,
    "library_version": TEXT,
    "shape": list_of(COUNT, most=2),
    "ids": list_of(TEXT),
    "titles": list_of(TEXT),
    "vocabulary": list_of(TEXT),
    "spaces": mapping_to(OBJECT),
    "lsi": OBJECT,
}
_SPACE = {
    "sizes": list_of(COUNT),
    "temperatures": list_of(number(0, 1e6)),
    "background_shares": list_of(number(0, 1)),
}


def save(index: Any, path: str | PathLike[str]) -> None:
    """Writes an index to `path`, atomically: a crash or a full disk leaves the old file as it was."""
    if not Path(path).parent.is_dir():
        raise InputError(f"There is no folder {Path(path).parent} to save the index in: make it first.")
    scoring = index.scoring
    terms = scoring.terms
    tensors = {"bm25": terms.bm25_values, "idf": terms.idf}
    tensors |= {f"length.{name}": values for name, values in terms.lengths.items()}
    tensors |= _csr("counts", index.counts) | _csr("postings", terms.postings)
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
            tensors |= {f"{name}.{part}": getattr(space, part) for part in _ARRAYS}
            header["spaces"][name] = {part: list(getattr(space, part)) for part in _NUMBERS}
    if scoring.lsi is not None:
        tensors |= {"lsi.basis": scoring.lsi.basis, "lsi.documents": scoring.lsi.documents}
        header["lsi"] = {"weighting": scoring.lsi.weighting}
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    write_atomically(path, to_safetensors(contiguous, metadata={_KEY: json.dumps(header)}))


def load(index_class: Any, path: str | PathLike[str], vectorizer: Any) -> Any:
    """The index in a file, its arrays memory-mapped."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no index file {path}.")
    header, tensors = _read(path)
    try:
        return _restored(index_class, header, tensors, vectorizer)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged: its parts do not fit together ({error}).") from None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header, and the arrays by name; safetensors checks sizes and offsets before anything is mapped."""
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(_KEY)
        if text is None:
            raise ModelFileError(f"{path} is not a polyseme index.")
        header = parse_json(text)
        check_fields(header, {"format_version": COUNT}, required=("format_version",), others=True)
        tensors = _mapped(path)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ModelFileError(f"{path} is damaged or is not a polyseme index ({error}).") from None
    if header["format_version"] > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by polyseme {header.get('library_version')} in a newer format: "
            "update polyseme to read it."
        )
    return header, tensors


def _mapped(path: Path) -> dict[str, Array]:
    """Each array of a safetensors file (8 bytes with the length of a JSON table, the table, the data), read-only."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        table = parse_json(file.read(length))
    table.pop("__metadata__", None)
    memory = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)
    tensors = {}
    for name, entry in table.items():
        start, end = entry["data_offsets"]
        tensors[name] = memory[start:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def _restored(index_class: Any, header: dict[str, Any], tensors: dict[str, Array], vectorizer: Any) -> Any:
    check_fields(header, _HEADER, required=("shape", "ids", "titles", "vocabulary", "spaces"))
    n_docs, n_words = header["shape"]
    index = index_class.__new__(index_class)
    counts = _matrix("counts", tensors, (n_docs, n_words))
    postings = _matrix("postings", tensors, (n_words, n_docs))
    lengths = {name: _sized(tensors[f"length.{name}"], n_docs) for name in ("tf", "tfidf")}
    terms = TermScores(postings, _sized(tensors["bm25"], postings.nnz), _sized(tensors["idf"], n_words), lengths)
    lists = (header["vocabulary"], n_words), (header["ids"], n_docs), (header["titles"], n_docs)
    vocabulary, ids, titles = (_sized(values, size) for values, size in lists)
    index._fill(counts, terms, vocabulary, ids, titles, vectorizer)
    for name, settings in header["spaces"].items():
        if name in _SPACES:
            setattr(index.scoring, name, _space(name, settings, tensors, n_docs, n_words))
    if "lsi" in header:
        basis, documents = tensors["lsi.basis"], tensors["lsi.documents"]
        _sized(basis, n_words), _sized(documents.T, n_docs)
        check_fields(header["lsi"], {"weighting": TEXT}, required=("weighting",))
        index.scoring.lsi = SingularSpace(basis, documents, header["lsi"]["weighting"])
    return index


def _space(name: str, settings: Any, tensors: dict[str, Array], n_docs: int, n_words: int) -> TopicSpace:
    check_fields(settings, _SPACE, required=_NUMBERS)
    sizes = tuple(settings["sizes"])
    temperatures, shares = (tuple(map(float, settings[part])) for part in ("temperatures", "background_shares"))
    topic_word, documents, topic_weights, background = (tensors[f"{name}.{part}"] for part in _ARRAYS)
    width, n_models = sum(sizes), len(sizes)
    shapes = (topic_word.shape, documents.shape, topic_weights.shape, background.shape)
    wanted = ((n_words, width), (width, n_docs), (width,), (n_words, n_models))
    if shapes != wanted or (len(temperatures), len(shares)) != (n_models, n_models):
        raise ValueError(f"the arrays of {name} have other shapes than the header says")
    return TopicSpace(topic_word, documents, sizes, temperatures, topic_weights, shares, background)


def _csr(name: str, matrix: Any) -> dict[str, Array]:
    return {f"{name}.{part}": getattr(matrix, part) for part in ("indptr", "indices", "data")}


def _matrix(name: str, tensors: dict[str, Array], shape: tuple[int, int]) -> Any:
    """A CSR array whose indices are checked once: a wrong one would read foreign memory."""
    indptr, indices, data = (tensors[f"{name}.{part}"] for part in ("indptr", "indices", "data"))
    matrix = sp.csr_array((data, indices, indptr), shape=shape, copy=False)
    matrix.check_format(full_check=True)
    return checked_counts(matrix, shape[1], name)


def _sized(values: Any, size: int) -> Any:
    if len(values) != size:
        raise ValueError(f"{len(values)} entries where {size} belong")
    return values


_QUERIES_AT_ONCE = 64
_NO_WORDS = "The query has no words that the index knows."
_NO_MATCH = "No document matches the query."


class SearchIndex:
    """Search over counts (documents x words).

    Ready at once are the methods `tf`, `tfidf` and `bm25`; `use_model` adds `plsi-q` and `plsi-u`, `fit_models` adds
    `plsi*`, `fit_lsi` adds `lsi`. See `polyseme.retrieval.scores` for what each of them computes.

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

    def set_model(self, model: Any) -> Self:
        """Takes a fitted PLSA of the same vocabulary for `plsi-q`, `plsi-u`, `senses`, `neighbors` and `of_topic`."""
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
        size = check_whole_number("n_components", n_components, least=1)
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

    def similar_documents(
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

    def topic_documents(self, topic: int, k: int = 10) -> list[Hit]:
        """The k documents that have most of a topic of the model, by the expected number of its tokens n_d P(z|d)."""
        space = self.scoring.topics()
        if check_whole_number("topic", topic, least=0) >= space.sizes[0]:
            raise InputError(f"topic must be a number from 0 to {space.sizes[0] - 1}, got {topic!r}.")

        def explain(row: int) -> list[WordScore]:
            counts = row_of(self.counts, row)
            tokens = _senses.topic_tokens(space, counts, row)[:, topic]
            return merged_reasons([(counts.indices, tokens)], self.vocabulary, np.empty(0, int), counts.indices)

        tokens = _senses.tokens_of_topic(space, self.counts, topic)
        best = best_rows(tokens, check_whole_number("k", k, least=1))
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

    def related_words(self, word: str, k: int = 10) -> list[RelatedWord]:
        """Words that the topics of a word expect beside it, most telling first: see retrieval/senses.py."""
        space = self.scoring.topics()
        words, weights = _senses.related_words(
            space, self.column_of(word), self.counts, check_whole_number("k", k, least=1)
        )
        return [RelatedWord(self.vocabulary[w], float(weight)) for w, weight in zip(words, weights, strict=True)]

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the index and its models to one file; it appears whole or not at all. The vectorizer is not kept."""
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, vectorizer: Any = None) -> SearchIndex:
        """The index that `save` wrote. Its arrays stay on disk until they are read (memory-mapped)."""
        return load(cls, path, vectorizer)

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
        k = check_whole_number("k", k, least=1)
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

        def explain(row: int) -> list[WordScore]:
            return merged_reasons(explainer()(row), self.vocabulary, query.indices, row_of(self.counts, row).indices)

        best = best_rows(scores, k)
        hits = (
            self._hit(rank, int(row), {name: float(part[row]) for name, part in parts.items()}, explain)
            for rank, row in enumerate(best, start=1)
        )
        return Results(method, tuple(hits), "" if best.size else _NO_MATCH if query.nnz else _NO_WORDS)

    def _hit(self, rank: int, row: int, parts: dict[str, float], explain: Any) -> Hit:
        return Hit(rank, self.ids[row], self.titles[row], sum(parts.values()), parts, row, explain)
