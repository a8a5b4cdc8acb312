"""Documents of a run: metadata and texts, and the Parquet files that store them.

The metadata is one file documents.parquet, or a folder of that name with one file for every DOCUMENTS_PER_PIECE
documents. The texts are files of some megabytes in texts/. While a run is written, its metadata is in the folder
metadata/, without topics.

Documents of a topic are ranked by the nats per token that the topic explains in them,

    sum_w n_dw P(z|d,w) log[P(w|z) / P(w)] / n_d.

Documents shorter than half the median length are left out, and so are near-duplicates of a listed document and copies
with equal counts. A document is listed for at most three topics: the topics that explain most of it.
"""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import DocumentWeights, FittedTopics, TrainingDocuments, posterior_operands
from polyseme.core.shard import sparse_counts
from polyseme.errors import ModelFileError
from polyseme.io import files
from polyseme.io.files import Check, FileManifest, write_atomically
from polyseme.io.parquet import read_frames
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.metrics.words import largest
from polyseme.runs.folder import VECTORIZER_FILE, damage_error
from polyseme.text.readers.inputs import LABEL_SEPARATOR, Document
from polyseme.text.vectorizer import Vectorizer
from polyseme.utils import effective_threads

DOCUMENTS_FILE, TEXTS_FOLDER, METADATA_FOLDER = "documents.parquet", "texts", "metadata"
COLUMNS = ("id", "title", "label", "time", "source", "excerpt")
"""Metadata of each document."""
DUPLICATE_ROW, DUPLICATE_OF = "duplicate_row", "duplicate_of"
"""Columns with the row and the id of the earlier document of which a document is a near-duplicate; null for other
documents. Tables of earlier versions do not have these columns."""
EXCERPT_LENGTH = 300
DOCUMENTS_PER_PIECE = 1 << 16
_CACHED_PIECES = 8
_CHARACTERS_PER_FILE = 2**25

Part = TypeVar("Part")


def document_names(titles: Sequence[str | None], ids: Sequence[str]) -> list[str]:
    """Return the name of each document: its title, or its id if it has no title."""
    return [title or name for title, name in zip(titles, ids, strict=True)]


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    return " ".join(text[: 2 * EXCERPT_LENGTH].split())[:EXCERPT_LENGTH]


def metadata(document: Document) -> tuple[Any, ...]:
    """Return the values of COLUMNS of a document."""
    label = LABEL_SEPARATOR.join(document.labels) or None
    return document.id, document.title, label, document.time, document.source, excerpt(document.text)


def unique_ids(ids: list[str], sources: list[str | None]) -> list[str]:
    """Return the ids; if some of them repeat, put the names of their files before all ids.

    An id that repeats within one file gets a number: a:7, a:7#2.
    """
    if len(set(ids)) == len(ids):
        return ids
    named = [name if name == source else f"{source or ''}:{name}" for source, name in zip(sources, ids, strict=True)]
    seen: Counter[str] = Counter()
    unique = []
    for name in named:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return unique


def column_frame(rows: Sequence[Sequence[Any]]) -> Any:
    """Return rows of metadata as a polars frame of strings, even if a column is empty."""
    import polars as pl

    columns = {name: [row[column] for row in rows] for column, name in enumerate(COLUMNS)}
    return pl.DataFrame(columns, schema=dict.fromkeys(COLUMNS, pl.String))


def with_duplicate_rows(frame: Any, rows: Sequence[int | None] | None = None) -> Any:
    """Return the columns COLUMNS and DUPLICATE_ROW of a frame.

    rows : values of DUPLICATE_ROW; None: those of the frame, or null if the frame does not have this column.
    """
    import polars as pl

    if rows is not None or DUPLICATE_ROW not in frame.columns:
        frame = frame.with_columns(pl.Series(DUPLICATE_ROW, rows or [None] * len(frame), dtype=pl.Int64))
    return frame.select(*COLUMNS, DUPLICATE_ROW)


def groups_of(duplicate_rows: Iterable[int | None]) -> Array:
    """Return the row of the first document in each document's group. Raise ValueError if the rows are inconsistent.

    A document without near-duplicates is a group of its own.
    """
    first_rows = [number if row is None else row for number, row in enumerate(duplicate_rows)]
    groups = np.array(first_rows, dtype=np.int64)
    if (groups < 0).any() or (groups > np.arange(len(groups))).any() or (groups[groups] != groups).any():
        raise ValueError(f"{DUPLICATE_ROW} does not name the first document of a group")
    return groups


def groups_within(groups: Array) -> Array:
    """Return the groups of a sample: for each document, the row in the sample of the first document in its group."""
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(first[numbers.ravel()])


def check_documents(frame: Any, columns: Sequence[str]) -> Any:
    """Return the frame; raise ValueError if one of these columns is missing or has another type."""
    import polars as pl

    for name in columns:
        kinds = (pl.Int64, pl.Null) if name == DUPLICATE_ROW else (pl.String, pl.Null)
        if name not in frame.columns or frame.schema[name] not in kinds:
            raise ValueError(f"it has no column {name!r} of {'numbers' if name == DUPLICATE_ROW else 'strings'}")
    if "id" in columns and frame["id"].null_count():
        raise ValueError("a document has no id")
    return frame


def write_vectorizer(folder: Path, vectorizer: Vectorizer) -> None:
    write_atomically(folder / VECTORIZER_FILE, json.dumps(vectorizer.to_dict()).encode())


def read_vectorizer(path: Path, *, trust_pattern: bool = False) -> Vectorizer:
    content = read_json(path)
    try:
        return Vectorizer.from_dict(content, trust_pattern=trust_pattern)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def read_json(path: Path, table: Mapping[str, Check] | None = None, *, required: Collection[str] = ()) -> Any:
    """Return the object in a JSON file of a run. `table` has the checks of fields; other fields are not checked."""
    try:
        content = files.read_json(path)
        files.check_fields(content, table or {}, required=required, others=True)
    except (OSError, ValueError) as error:
        raise damage_error(path, error) from None
    return content


class FrameWriter:
    """Writer of a table in pieces of DOCUMENTS_PER_PIECE rows. `close` writes the last piece.

    A table of one piece becomes a file with the name of the folder, unless `always_folder` is set.
    """

    def __init__(self, folder: Path, *, always_folder: bool = False) -> None:
        # An interrupted call may have left a file or a folder.
        folder.unlink() if folder.is_file() else shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self._folder, self._always_folder = folder, always_folder
        self._frames: list[Any] = []
        self._rows = self._files = 0

    def add(self, frame: Any) -> None:
        """Add a frame of at most DOCUMENTS_PER_PIECE rows."""
        space = DOCUMENTS_PER_PIECE - self._rows
        self._frames.append(frame[:space])
        self._rows += len(self._frames[-1])
        if self._rows == DOCUMENTS_PER_PIECE:
            self._write()
        if len(frame) > space:
            self.add(frame[space:])

    def close(self) -> None:
        if self._rows:
            self._write()
        if self._files == 1 and not self._always_folder:
            single = self._folder.with_name(f"{self._folder.name}.part")
            (self._folder / _piece_name(0)).replace(single)
            self._folder.rmdir()
            single.replace(self._folder)

    def _write(self) -> None:
        import polars as pl

        write_frame(self._folder / _piece_name(self._files), pl.concat(self._frames), flush=False)
        self._files, self._frames, self._rows = self._files + 1, [], 0


class MetadataWriter:
    """Writer of metadata to the folder metadata/, one document at a time.

    keep : whether to keep the frames in memory as well.
    """

    def __init__(self, folder: Path, *, keep: bool = False) -> None:
        self._frames = FrameWriter(folder / METADATA_FOLDER, always_folder=True)
        self._rows: list[Sequence[Any]] = []
        self._duplicate_rows: list[int | None] = []
        self.kept: list[Any] | None = [] if keep else None

    def add(self, row: Sequence[Any], duplicate_row: int | None = None) -> None:
        """Add one value for each of COLUMNS, and the row of the document of which this one is a near-duplicate."""
        self._rows.append(row)
        self._duplicate_rows.append(duplicate_row)
        if len(self._rows) == DOCUMENTS_PER_PIECE:
            self._flush()

    def add_frame(self, frame: Any) -> None:
        """Add the documents of a frame with the columns COLUMNS and DUPLICATE_ROW."""
        self._flush()
        self._add(frame)

    def close(self) -> None:
        self._flush()
        self._frames.close()

    def _flush(self) -> None:
        if self._rows:
            self._add(with_duplicate_rows(column_frame(self._rows), self._duplicate_rows))
            self._rows, self._duplicate_rows = [], []

    def _add(self, frame: Any) -> None:
        self._frames.add(frame)
        if self.kept is not None:
            self.kept.append(frame)


def _piece_name(number: int) -> str:
    return f"{number:06d}.parquet"


class DocumentTable:
    """Metadata of documents in Parquet files that are checked against the manifest, one frame per file.

    name : documents.parquet (a file or a folder) or metadata.
    """

    def __init__(self, files: FileManifest, name: str = DOCUMENTS_FILE) -> None:
        self._files = files
        self.path = files.folder / name
        self._names = sorted(file for file in files.entries if file == name or file.startswith(f"{name}/"))
        if not self._names:
            raise ModelFileError(f"{self.path} is missing or empty: restore it, or fit again.")

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the frames, with all columns."""
        return self._frames(self._names, None)

    def frame(self, number: int, columns: Sequence[str] | None = None) -> Any:
        """Return one piece, with these columns (None: all)."""
        return next(self._frames([self._names[number]], columns))

    def column(self, name: str) -> Iterator[Any]:
        """Iterate over the values of a column of all documents."""
        for frame in self._frames(self._names, [name]):
            yield from frame[name].to_list()

    def keys(self) -> Iterator[tuple[str | None, str]]:
        """Iterate over the source and the id of each document, which identify it."""
        return self.values("source", "id")

    def values(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Iterate over the values of some columns of each document."""
        for frame in self._frames(self._names, names):
            yield from frame.select(names).iter_rows()

    def take(self, rows: Sequence[int]) -> Any:
        """Return one frame with these documents; `rows` must be increasing."""
        import polars as pl

        return pl.concat([frame[here.tolist()] for frame, here in split_rows(self, rows)])

    def _frames(self, names: Sequence[str], columns: Sequence[str] | None) -> Iterator[Any]:
        paths = [self._files.path(name) for name in names]
        frames, schema = read_frames(paths, columns), None
        for path in paths:
            try:
                frame = next(frames)
                check_documents(frame, columns or [*COLUMNS, *({DUPLICATE_ROW} & set(frame.columns))])
                if schema not in (None, frame.schema):
                    raise ValueError("its columns differ from those of the other files")
                schema = frame.schema
            except (ValueError, OSError) as error:
                raise damage_error(path, error) from None
            yield frame


def split_rows(parts: Iterable[Part], rows: Any) -> Iterator[tuple[Part, Array]]:
    """Yield each part with the rows that lie in it, relative to its first row; `rows` must be increasing."""
    numbers = np.asarray(rows, dtype=np.int64)
    start = 0
    for part in parts:
        sized: Any = part
        end = start + (sized.shape[0] if hasattr(sized, "shape") else len(sized))
        first, last = np.searchsorted(numbers, [start, end])
        yield part, numbers[first:last] - start
        start = end


class DocumentNames(Sequence[str]):
    """Names of documents, read from the table on demand."""

    def __init__(self, table: DocumentTable, n_documents: int) -> None:
        self._table = table
        self._n_documents = n_documents
        self._cache: dict[int, list[str]] = {}

    def __len__(self) -> int:
        return self._n_documents

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if not 0 <= row < len(self):
            raise IndexError(row)
        number, place = divmod(row, DOCUMENTS_PER_PIECE)
        if number >= len(self._table):
            raise self._missing()
        if number not in self._cache:
            if len(self._cache) == _CACHED_PIECES:
                del self._cache[next(iter(self._cache))]
            frame = self._table.frame(number, ["title", "id"])
            self._cache[number] = document_names(frame["title"].to_list(), frame["id"].to_list())
        if place >= len(self._cache[number]):
            raise self._missing()
        return self._cache[number][place]

    def _missing(self) -> ModelFileError:
        return damage_error(self._table.path, ValueError("documents are missing"))


class TextWriter:
    """Writer of texts to texts/. `flush` writes a file; further texts go to the next one.

    append : whether to continue after the texts that are already in the folder.
    """

    def __init__(self, folder: Path, *, append: bool = False) -> None:
        self._folder = folder / TEXTS_FOLDER
        if not append:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir()
        self._texts: list[str] = []
        self._characters = 0
        self._files = len(list(self._folder.glob("*.parquet")))

    @property
    def paths(self) -> list[Path]:
        """Files that were written."""
        return sorted(self._folder.glob("*.parquet"))

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._characters += len(text)
        if self._characters >= _CHARACTERS_PER_FILE:
            self.flush()

    def flush(self) -> None:
        import polars as pl

        if self._texts or not self._files:
            frame = pl.DataFrame({"text": self._texts}, schema={"text": pl.String})
            path = self._folder / f"{self._files:05d}.parquet"
            write_frame(path, frame, flush=False, compression="zstd", compression_level=3)
            self._files += 1
        self._texts, self._characters = [], 0


def read_texts(paths: Sequence[Path]) -> Iterator[list[str]]:
    """Yield the texts of each file as a list."""
    frames = read_frames(paths, ["text"])
    for path in paths:
        try:
            frame = check_documents(next(frames), ["text"])
            if frame["text"].null_count():
                raise ValueError("a text is missing")
        except (ValueError, OSError) as error:
            raise damage_error(path, error) from None
        yield frame["text"].to_list()


class Texts:
    """Texts of a run in the order of the documents, in files that are checked against the manifest."""

    def __init__(self, files: FileManifest) -> None:
        self._files = files
        self._names = sorted(name for name in files.entries if name.startswith(f"{TEXTS_FOLDER}/"))

    def __bool__(self) -> bool:
        """Return whether the run has texts."""
        return bool(self._names)

    def __iter__(self) -> Iterator[str]:
        for part in self.parts():
            yield from part

    def take(self, rows: Sequence[int]) -> list[str]:
        """Return the texts of these documents; `rows` must be increasing."""
        return list(self.some(rows))

    def some(self, rows: Any) -> Iterator[str]:
        """Iterate over the texts of these documents; `rows` must be increasing."""
        missing = len(rows)
        for part, here in split_rows(self.parts(), rows):
            yield from (part[row] for row in here.tolist())
            missing -= len(here)
        if missing:
            raise damage_error(self._files.folder / TEXTS_FOLDER, ValueError("texts of documents are missing"))

    def parts(self) -> Iterator[list[str]]:
        """Iterate over the texts of each file."""
        return self._parts(self._names)

    @property
    def n_files(self) -> int:
        """Number of files."""
        return len(self._names)

    def after(self, n_files: int) -> Iterator[str]:
        """Iterate over the texts after the first `n_files` files."""
        for part in self._parts(self._names[n_files:]):
            yield from part

    def _parts(self, names: Sequence[str]) -> Iterator[list[str]]:
        return read_texts([self._files.path(name) for name in names])


def write_frame(path: Path, frame: Any, *, flush: bool = True, **options: Any) -> None:
    """Write a polars frame to a Parquet file, atomically. Unlike polars, raise OSError if the disk is full."""
    content = io.BytesIO()
    frame.write_parquet(content, **options)
    write_atomically(path, [content.getbuffer()], flush=flush)


# documents of topics

MAX_TOPICS = 3
"""Number of topics for which a document may be listed."""
MIN_RELATIVE_LENGTH = 0.5
"""Minimum length of a listed document, as a share of the median length."""
N_RANKED = 10
"""Documents of a topic that are always ranked, so that a shorter list is the beginning of a longer one."""
_NUMBERS_PER_BLOCK = 1 << 20
_COPIES = 8
"""Number of temporary arrays as large as the counts of a block."""
_ROUNDING = 1e-12
"""Relative rounding error of a length, so that a document of exactly the minimum length is listed."""


class Labels(NamedTuple):
    """Labels of documents as numbers."""

    names: list[str]
    """Sorted names; "" for no label."""
    numbers: Array
    """Number of the label of each document."""

    @classmethod
    def of(cls, labels: Iterable[str | None]) -> Labels:
        """Number the labels of documents; None and "" mean no label."""
        seen: dict[str, int] = {}
        in_order_seen = np.fromiter((seen.setdefault(label or "", len(seen)) for label in labels), dtype=np.int32)
        names = sorted(seen)
        sorted_number = np.empty(len(names), dtype=np.int32)
        sorted_number[[seen[name] for name in names]] = np.arange(len(names))
        return cls(names, sorted_number[in_order_seen])


class TopicDocuments(NamedTuple):
    """Result of `topic_documents`, with one entry for each topic."""

    fit: Floats
    """Mean weight of the topic in its own documents: sum_d P(d|z) P(z|d)."""
    documents: list[list[int]]
    """Rows of its documents, the best first; fewer if too few documents have the topic."""
    scores: list[list[float]]
    """Nats per token that the topic explains in these documents."""
    shares: Floats
    """Topics x labels: the sum of P(d|z) over the documents of each label."""


def topic_documents(
    fitted: FittedTopics,
    documents: TrainingDocuments,
    counts: Iterable[Any],
    n_documents: int,
    labels: Labels | None = None,
    groups: Array | None = None,
) -> TopicDocuments:
    """Return the fit, the documents and the label shares of each topic.

    documents : P(d) must be proportional to the number of tokens, so all sample weights must be equal.
    counts : documents x words, CSR, in one or more parts, in the order of the documents.
    groups : result of `groups_of`; only one document of each group of near-duplicates is listed.
    """
    K = fitted.n_topics
    doc_weights = documents.doc_weights / documents.doc_weights.sum()
    weights, fit = np.zeros(K), np.zeros(K)
    by_label = np.zeros((K + 1, 0 if labels is None else len(labels.names)))
    for part in _blocks(len(documents.doc_topic), K):
        theta = np.asarray(documents.doc_topic[part], dtype=np.float64)
        joint = np.column_stack([theta * doc_weights[part, np.newaxis], doc_weights[part]])
        weights += joint[:, :K].sum(axis=0)
        fit += (joint[:, :K] * theta).sum(axis=0)
        if labels is not None:
            for topic in range(K + 1):
                by_label[topic] += np.bincount(labels.numbers[part], joint[:, topic], by_label.shape[1])
    used = weights > 0
    scale = np.where(used, weights, 1.0)
    rows, scores = _best_documents(fitted, documents, counts, n_documents, groups)
    return TopicDocuments(
        np.where(used, fit / scale, 0.0),
        rows,
        scores,
        np.where(used[:, np.newaxis], by_label[:K] / scale[:, np.newaxis], by_label[K]),
    )


def _best_documents(
    fitted: FittedTopics, documents: TrainingDocuments, counts: Iterable[Any], n_documents: int, groups: Array | None
) -> tuple[list[list[int]], list[list[float]]]:
    """Return the best documents of each topic, and the nats per token that it explains in them."""
    K = fitted.n_topics
    if n_documents == 0:
        return [[] for _ in range(K)], [[] for _ in range(K)]
    ranked = max(n_documents, N_RANKED)
    # Other topics take at most ranked * K / MAX_TOPICS documents, so this many more leave enough for each topic.
    best = [_TopRows(ranked + ranked * K // MAX_TOPICS) for _ in range(K)]
    lengths = np.asarray(documents.doc_weights)
    min_length = MIN_RELATIVE_LENGTH * float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 0.0
    min_length *= 1 - _ROUNDING
    alike = None if groups is None else np.bincount(groups)[groups] > 1
    start, scorer = 0, DocumentScorer(fitted, documents)
    for part in counts:
        for block in _blocks(part.shape[0], max(K, _COPIES * part.nnz // max(part.shape[0], 1))):
            counted = sp.csr_array(part[block])
            rows = slice(start, start + counted.shape[0])
            scores = np.where((lengths[rows] >= min_length)[:, np.newaxis], scorer.scores(counted, rows), 0.0)
            hashes = row_hashes(counted)
            if groups is not None and alike is not None:
                hashes = np.where(alike[rows], _mix(groups[rows].astype(np.uint64)), hashes)
            for topic, top_rows in enumerate(best):
                top_rows.update(scores[:, topic], hashes, start)
            start = rows.stop
    return _assign_documents(best, ranked, n_documents)


class DocumentScorer:
    """Scorer of documents by the nats per token that each topic explains in them."""

    def __init__(self, fitted: FittedTopics, documents: TrainingDocuments) -> None:
        self._documents, self._inference = documents, fitted.inference
        self._dtype = np.dtype(np.float64 if fitted.topic_word.dtype == np.float64 else np.float32)
        self._topic_word = np.asarray(fitted.topic_word, dtype=self._dtype)
        n_topics, n_words = fitted.topic_word.shape
        _, B = self._operands(slice(0, 0), sparse_counts(sp.csr_array((0, n_words)), self._dtype))
        self._gains: Floats = np.empty((n_words, n_topics))
        """B_wz log[P(w|z) / P(w)], words x K, with the word operand B of P(z|d,w)."""
        for words in _blocks(n_words, n_topics):
            phi = fitted.topic_word[:, words].T.astype(np.float64)
            p = fitted.unigram[words, np.newaxis]
            ratio = np.divide(phi, p, out=np.ones_like(phi), where=(phi > 0) & (p > 0))
            self._gains[words] = B[words, :n_topics] * np.log(ratio)

    def scores(self, counts: Any, rows: slice) -> Floats:
        """Return the scores, documents x K, of these rows with their counts (CSR); zeros for empty documents."""
        sparse = sparse_counts(counts, self._dtype)
        A, B = self._operands(rows, sparse)
        q = sparse.products(A, B, n_threads=effective_threads(None)).astype(np.float64)
        ratio = np.divide(sparse.values, q, out=np.zeros_like(q), where=q > 0)
        sums = sp.csr_array((ratio, sparse.indices, sparse.indptr), counts.shape) @ self._gains
        totals = np.maximum(sparse.totals, np.finfo(np.float64).tiny)
        return np.asarray(A[:, : sums.shape[1]] * sums / totals[:, np.newaxis])

    def _operands(self, rows: slice, counts: SparseCounts) -> tuple[Array, Array]:
        """Return the operands of P(z|d,w) for these documents."""
        doc_topic = np.asarray(self._documents.doc_topic[rows])
        weights = DocumentWeights(doc_topic, self._documents.background[rows], counts)
        operands = self._inference.operands(weights, self._topic_word)
        return posterior_operands(operands, self._inference.temperature)


def row_hashes(counts: Any) -> Array:
    """Return a 64-bit hash of each row (CSR without duplicates); rows with equal counts have equal hashes."""
    bits = np.asarray(counts.data, dtype=np.float64).view(np.uint64)
    mixed = _mix(counts.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + bits)
    sums = np.zeros(counts.shape[0], dtype=np.uint64)
    filled = np.flatnonzero(np.diff(counts.indptr))
    if filled.size:
        sums[filled] = np.add.reduceat(mixed, counts.indptr[filled])
    return sums


def _mix(numbers: Array) -> Array:
    """Return a hash of each number, by the mixing steps of splitmix64."""
    mixed = numbers
    for multiplier in (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(30))) * multiplier
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _blocks(n_rows: int, numbers_per_row: int) -> Iterator[slice]:
    """Yield slices of at least 64 rows, and of about _NUMBERS_PER_BLOCK numbers if that is more."""
    rows_per_block = max(64, _NUMBERS_PER_BLOCK // numbers_per_row)
    for start in range(0, n_rows, rows_per_block):
        yield slice(start, min(start + rows_per_block, n_rows))


def _assign_documents(best: list[_TopRows], ranked: int, n_documents: int) -> tuple[list[list[int]], list[list[float]]]:
    """Assign documents in order of their scores, at most MAX_TOPICS topics per document and `ranked` per topic."""
    pairs = sorted(
        (-value, topic, row)
        for topic, top_rows in enumerate(best)
        for value, row in zip(top_rows.values.tolist(), top_rows.rows.tolist(), strict=True)
    )
    documents: list[list[int]] = [[] for _ in best]
    scores: list[list[float]] = [[] for _ in best]
    taken: dict[int, int] = {}
    for value, topic, row in pairs:
        if len(documents[topic]) < ranked and taken.get(row, 0) < MAX_TOPICS:
            documents[topic].append(row)
            scores[topic].append(-value)
            taken[row] = taken.get(row, 0) + 1
    return [rows[:n_documents] for rows in documents], [values[:n_documents] for values in scores]


class _TopRows:
    """The rows with the largest positive values, in decreasing order; of rows with equal hashes only the first."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.values = np.empty(0)
        self.rows = np.empty(0, dtype=np.int64)
        self._hashes = np.empty(0, dtype=np.uint64)

    def update(self, values: Floats, hashes: Array, start: int) -> None:
        threshold = self.values[-1] if len(self.rows) == self._count else 0.0
        larger = np.flatnonzero(values > threshold)
        if not larger.size:
            return
        candidates = np.concatenate([self.values, values[larger]])
        rows = np.concatenate([self.rows, start + larger])
        keys = np.concatenate([self._hashes, hashes[larger]])
        order = np.array(largest(candidates, len(candidates)))
        order = order[np.sort(np.unique(keys[order], return_index=True)[1])][: self._count]
        self.values, self.rows, self._hashes = candidates[order], rows[order], keys[order]
