"""The search index of a run: the file INDEX_FILE, and how it finds its documents in the other files of the run.

The index has the posting lists, lengths of documents, typical documents and main topics, and the rules that count a
query. Counts by document come from the shards, P(z|d) from WEIGHTS_FILE, and ids, titles, excerpts and texts from the
`DocumentStore`. So that a search does not have to check the digests of whole files, the index has checksums of their
blocks, which are made when the index is built from files whose digests are right. To find a document by its id, the
index has a sorted hash of each id with its row.

The index is built from one shard, one block of documents or one range of words at a time, and its file is written from
start to end. Memory holds some numbers for each document, and LISTS_AT_ONCE entries of posting lists.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from polyseme.errors import ModelFileError, UnsupportedError
from polyseme.io.arrays import (
    ArrayParts,
    checksums_of,
    map_checked,
    map_checked_npy,
    npy_checksums,
    text_hashes,
)
from polyseme.io.files import COUNT, FLAG, TEXT, check_fields, list_of, read_json
from polyseme.kernels import Array, row_blocks
from polyseme.retrieval.files import IndexParts, RunFiles, RunTables, read_index, write_index
from polyseme.retrieval.index import SearchIndex
from polyseme.retrieval.postings import Postings, StoredLists, check_documents, mean_length, penalties
from polyseme.retrieval.queries import SparseRow, SparseRows
from polyseme.retrieval.scores import Scoring
from polyseme.retrieval.spaces import TopicSpace, UnitRows
from polyseme.retrieval.terms import TermScores
from polyseme.runs.documents import STORE, DocumentStore, id_with_source
from polyseme.runs.store import SHARDS_FOLDER, VECTORIZER_FILE, RunStore

if TYPE_CHECKING:
    from polyseme.text.words import WordRules

INDEX_FILE = "search.safetensors"
"""File in the run folder that stores the index, with the models of lsi and plsi* after their first use."""
WEIGHTS_FILE = "doc_topic.npy"
"""File beside the model with P(z|d)."""
_DOCUMENTS_FILE = f"{STORE}.index"
_NUMBERS_AT_ONCE = 1 << 22
_SETTINGS = {"shards": list_of(TEXT), "documents": list_of(COUNT), "with_sources": FLAG}


class RunIndex(NamedTuple):
    """The index of a run, opened for a search."""

    words: SearchIndex
    documents: DocumentStore
    main: Any
    """Topic with the largest weight of each document."""
    empty: Array
    """Documents without words."""


def read_run_index(store: RunStore, path: Path) -> RunIndex:
    """Return the index of a run in a file. Raise ModelFileError or ValueError if it does not belong to the run."""
    opened: list[tuple[DocumentStore, RunTables]] = []

    def open_run(tables: RunTables) -> RunFiles:
        documents = vars(store).get("documents")  # checked completely, if it is already open
        if documents is None:
            documents = DocumentStore.open(store.files, table=tables.arrays["documents"][:])
        opened.append((documents, tables))
        return _run_files(store, tables, documents)

    index = SearchIndex._of_parts(read_index(path, store.digest, open_run))
    if index.vectorizer is None:
        try:
            index.vectorizer = word_rules(store)
        except UnsupportedError:
            index.vectorizer = store.vectorizer
    ((documents, tables),) = opened
    return RunIndex(index, documents, tables.arrays["main"], tables.arrays["empty"][:])


def word_rules(store: RunStore) -> WordRules:
    """Return the rules that count a query. Raise UnsupportedError if they need scikit-learn."""
    from polyseme.text.words import read_word_rules

    path = store.files.path(VECTORIZER_FILE)
    try:
        return read_word_rules(read_json(path))
    except UnsupportedError:
        raise
    except (OSError, ValueError, ModelFileError) as error:
        raise ModelFileError(f"{path}: {error}") from None


def _run_files(store: RunStore, tables: RunTables, documents: DocumentStore) -> RunFiles:
    """Open the files of a run that its index needs."""
    settings, arrays = tables
    check_fields(settings, _SETTINGS, required=_SETTINGS)
    if arrays["main"].shape != (len(documents),):
        raise ValueError("it does not have the main topic of each document")
    weights = map_checked_npy(store.files.sized(WEIGHTS_FILE), arrays["weights"][:])
    counts = ShardCounts(store.path / SHARDS_FOLDER, settings, arrays)
    ids = RunIds(documents, arrays["hashes"], arrays["rows"], settings["with_sources"])
    units = UnitRows(weights, arrays["empty"][:])
    return RunFiles(counts, ShardTotals(counts), units, ids, documents.names, documents.column("excerpt"))


class ShardCounts:
    """Counts of the documents of a run in its shards, of which only the blocks that are needed are read and checked."""

    def __init__(self, folder: Path, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        self._folder, self._names, self._arrays = folder, settings["shards"], arrays
        self._firsts = [0, *np.cumsum(settings["documents"], dtype=np.int64).tolist()]
        self._opened: dict[int, tuple[SparseRows, Any]] = {}
        if any(Path(name).name != name for name in self._names) or len(self._names) != len(settings["documents"]):
            raise ValueError("the names of its shards are wrong")
        self.shape = self._firsts[-1], int(arrays["words"][0])

    def __len__(self) -> int:
        return self.shape[0]

    def row(self, i: int) -> SparseRow:
        """Return row i, with values in float64."""
        number = bisect_right(self._firsts, i) - 1
        return self._shard(number)[0].row(i - self._firsts[number])

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield consecutive blocks of rows: the slice of the rows, and a CSR array of scipy in memory."""
        for number, first in enumerate(self._firsts[:-1]):
            for rows, block in self._shard(number)[0].blocks():
                yield slice(first + rows.start, first + rows.stop), block

    def matrix(self) -> Any:
        """Return a CSR array of scipy, in memory."""
        import scipy.sparse as sp

        return sp.csr_array(sp.vstack([block for _, block in self.blocks()], format="csr"))

    def totals(self, number: int) -> Any:
        """Return the lengths of the documents of a shard."""
        return self._shard(number)[1]

    def total(self, i: int) -> float:
        """Return the length of a document."""
        number = bisect_right(self._firsts, i) - 1
        return float(self.totals(number)[i - self._firsts[number]])

    @property
    def n_shards(self) -> int:
        return len(self._names)

    def _shard(self, number: int) -> tuple[SparseRows, Any]:
        """Return the counts and the lengths of the documents of a shard."""
        if number not in self._opened:
            path, ends = self._folder / self._names[number], [0, *self._arrays["shard_ends"][:].tolist()]
            try:
                arrays = map_checked(path, self._arrays["shards"][ends[number] : ends[number + 1]])[1]
                indptr, indices, values, totals = (arrays[name] for name in ("indptr", "indices", "values", "totals"))
                shape = (self._firsts[number + 1] - self._firsts[number], self.shape[1])
                if indptr.shape != (shape[0] + 1,) or totals.shape != shape[:1] or indices.shape != values.shape:
                    raise ValueError("its arrays do not fit the index")
            except (OSError, ValueError, KeyError) as error:
                raise ModelFileError(f"{path} is damaged ({error}): restore it, or fit again.") from None
            self._opened[number] = SparseRows(indptr, indices, values, shape, str(path)), totals
        return self._opened[number]


class ShardTotals:
    """Lengths of the documents of a run, n_d, which its shards have."""

    def __init__(self, counts: ShardCounts) -> None:
        self._counts = counts

    def __len__(self) -> int:
        return len(self._counts)

    def __getitem__(self, rows: Any) -> Any:
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            return self._counts.total(int(rows))
        parts = [self._counts.totals(number)[:] for number in range(self._counts.n_shards)]
        return np.concatenate([*parts, np.empty(0)])[rows]


class RunIds(Sequence[str]):
    """Ids of the documents of a run as `unique_ids` makes them, and their rows, without a list of all ids.

    hashes, rows : sorted hashes of the ids, with the row of each. with_sources : whether the names of files stand
    before the ids.
    """

    def __init__(self, documents: DocumentStore, hashes: Any, rows: Any, with_sources: bool) -> None:
        self._ids, self._sources = documents.column("id"), documents.column("source")
        self._hashes, self._rows, self._with_sources = hashes, rows, with_sources
        if hashes.shape != rows.shape or len(hashes) != len(self._ids):
            raise ValueError("it does not have the ids of all documents")

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        name = self._name(int(row))
        before = self._rows_of(name).index(row) if self._with_sources else 0
        return f"{name}#{before + 1}" if before else name

    def get(self, text: str, default: int) -> int:
        """Return the row of the document with an id, or the default."""
        if rows := self._rows_of(text):
            return rows[0]
        name, _, number = text.rpartition("#")  # a later document with the same name, such as a:7#2
        place = int(number) if self._with_sources and number.isdecimal() and not number.startswith("0") else 0
        return rows[place - 1] if 1 < place <= len(rows := self._rows_of(name)) else default

    def _name(self, row: int) -> str:
        name: str = self._ids[row]
        return id_with_source(name, self._sources[row]) if self._with_sources else name

    def _rows_of(self, name: str) -> list[int]:
        """Return the rows of the documents with a name, in increasing order."""
        key = int(_hashes_of([name])[0])
        first = bisect_left(self._hashes, key)
        rows = sorted(self._rows[first : bisect_right(self._hashes, key, first)].tolist())
        return [row for row in rows if 0 <= row < len(self) and self._name(row) == name]


def _hashes_of(names: Sequence[str]) -> Array:
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    return text_hashes(b"".join(encoded), np.array(list(map(len, encoded)))).view(np.int64)


def _id_table(documents: DocumentStore) -> tuple[Array, Array, bool]:
    """Return the arguments of `RunIds`."""
    hashes = documents.column("id").hashes().view(np.int64)
    order = np.argsort(hashes, kind="stable")
    with_sources = _repeat(documents.column("id"), hashes[order], order)
    if with_sources:
        names = map(id_with_source, documents.column("id"), documents.column("source"))
        hashes = np.fromiter((int(_hashes_of([name])[0]) for name in names), np.int64, len(documents))
        order = np.argsort(hashes, kind="stable")
    return hashes[order], order.astype(np.int32), with_sources


def _repeat(ids: Sequence[str], hashes: Array, rows: Array) -> bool:
    """Return whether two documents have the same id. `hashes` are sorted."""
    found: dict[int, set[str]] = {}
    for place in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
        known = found.setdefault(int(hashes[place]), {ids[rows[place]]})
        if ids[rows[place + 1]] in known:
            return True
        known.add(ids[rows[place + 1]])
    return False


def write_run_index(store: RunStore, path: Path) -> None:
    """Build the index of a run, and write it to a file."""
    vectorizer: Any
    try:
        vectorizer = word_rules(store)
        store.vocabulary = vectorizer.columns  # before its vectorizer is read, whose dict of words is large
    except UnsupportedError:
        vectorizer = None
    shards, documents, fitted = store.shards, store.documents, store.model._fitted
    n_docs, n_words = shards.shape
    check_documents(n_docs)
    lists, lengths, tables, first = [], np.empty(n_docs), [], 0
    for number, entry in enumerate(shards.manifest.shards):
        shard = shards.shard(number, np.dtype(np.float32), 1)
        lists.append((first, shard.by_doc.transposed(None)))
        lengths[first : first + shard.n_docs] = shard.totals
        tables.append(checksums_of(shards.folder / entry.name))
        first += shard.n_docs
    mean = mean_length(lengths)
    stored = StoredLists(lists, n_words, penalties(lengths, mean))
    n_entries = (int(stored.starts[-1]),)
    postings = Postings(
        stored.starts,
        ArrayParts(np.dtype(np.int32), n_entries, stored.documents),
        ArrayParts(stored.counts_type, n_entries, stored.counts),
        ArrayParts(np.dtype(np.float32), n_entries, stored.impacts),
        n_docs,
    )
    terms = TermScores(postings, lengths, mean=mean)
    by_weighting = {name: np.zeros(n_docs) for name in ("tf", "tfidf")}
    factors = {"tf": np.ones(n_words), "tfidf": terms.idf**2}
    for number, (first, _) in enumerate(lists):
        matrix = shards.shard(number, np.dtype(np.float32), 1).counts.matrix().astype(np.float64)
        matrix.data **= 2
        for name, squares in by_weighting.items():
            squares[first : first + matrix.shape[0]] = np.sqrt(matrix @ factors[name])
    scoring = Scoring(None, TermScores(postings, lengths, by_weighting, mean))
    empty, weights = np.flatnonzero(lengths == 0), store.model._training.doc_topic
    scoring.model = TopicSpace.of_units([fitted], UnitRows(weights, empty), n_words)
    hashes, rows, with_sources = _id_table(documents)
    arrays = {
        "words": np.array([n_words]),
        "shards": np.concatenate([*tables, np.empty(0, np.uint8)]),
        "shard_ends": np.cumsum([len(table) for table in tables], dtype=np.int64),
        "weights": npy_checksums(store.files.path(WEIGHTS_FILE)),
        "documents": checksums_of(store.files.path(_DOCUMENTS_FILE)),
        "hashes": hashes,
        "rows": rows,
        "main": main_topics(weights, n_docs),
        "empty": empty,
    }
    settings = {
        "shards": [entry.name for entry in shards.manifest.shards],
        "documents": [entry.documents for entry in shards.manifest.shards],
        "with_sources": with_sources,
    }
    run = RunTables(settings, arrays)
    write_index(IndexParts(scoring, store.vocabulary, None, None, None, vectorizer, run), path, store.digest)


def main_topics(doc_topic: Array, n_documents: int) -> Array:
    """Return the topic with the largest weight of each document; the weights may be mapped."""
    if doc_topic.ndim != 2 or len(doc_topic) != n_documents:
        raise ModelFileError(f"{WEIGHTS_FILE} is damaged (it has another size): restore it, or fit again.")
    main = np.empty(n_documents, dtype=np.uint8 if doc_topic.shape[1] <= 256 else np.int32)
    for rows in row_blocks(n_documents, doc_topic.shape[1], _NUMBERS_AT_ONCE):
        main[rows] = np.asarray(doc_topic[rows]).argmax(axis=1)
    return main
