"""Search in a run.

The first search stores an index in the run. Later searches read only the index and the rules of the vectorizer; they
import neither scikit-learn nor polars. The index is derived from the other files and has its own digests, so run.json
does not list it: an index that is missing, damaged or of another state of the run is built again.

The first search also stores a copy of the texts, and of the values that filters use (`SearchDocuments`), which is
derived and built again in the same way. Parquet files are made to be read completely and need polars; the copy is
mapped and read block by block. Texts are compressed in blocks of at least TEXT_BLOCK bytes, and a search reads only the
blocks of its hits.

    topics       main topic of each document
    days         day of each document as the ordinal of its date; 0 if it has no date
    labels       number of the label of each document; label_names has the labels
    groups       row of the first document in each document's group of near-duplicates; empty if there are none
    text_starts  first byte of each text among all texts
    first_texts  first text of each block
    block_starts first byte of each block among the compressed blocks
    blocks       compressed blocks
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from difflib import get_close_matches
from itertools import chain, islice
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from polyseme.errors import InputError, ModelFileError, UnsupportedError
from polyseme.io.arrays import StringTable, checked_parts, map_checked, string_arrays
from polyseme.io.files import TEXT, FileManifest, check_fields, parse_json, read_json, whole_number, write_atomically
from polyseme.kernels import Array
from polyseme.progress import Reporter
from polyseme.retrieval.queries import Hit, Results
from polyseme.retrieval.scores import DEFAULT_METHOD, method_settings
from polyseme.retrieval.snippets import QueryText, parse_query
from polyseme.runs.folder import VECTORIZER_FILE, check_is_run, read_info
from polyseme.text.readers.inputs import LABEL_SEPARATOR, Days, days_of

if TYPE_CHECKING:
    from polyseme.retrieval import SearchIndex
    from polyseme.runs.run import Run
    from polyseme.text.words import WordRules

INDEX_FILE = "search.safetensors"
"""File in the run folder that stores the index, with the models of lsi and plsi* after their first use."""
_PHRASE_CANDIDATES = 64
"""Documents whose texts are read first when a query has a phrase."""
LSI_DIMENSIONS = 128
"""Largest number of dimensions of lsi."""


class SearchFilters(NamedTuple):
    """Filters of a search. A document must pass all filters that are given."""

    labels: tuple[str, ...] = ()
    """Documents with one of these labels."""
    topics: tuple[int | str, ...] = ()
    """Documents whose main topic is one of these, by number or by name."""
    since: Days | None = None
    until: Days | None = None
    """Documents from the first day of `since` to the last day of `until`."""
    excluded: tuple[str, ...] = ()
    """Documents without these words."""

    @classmethod
    def of(cls, label: Any, topic: Any, since: Any, until: Any, exclude: Any) -> SearchFilters:
        """Check the arguments of `Run.search`: each may be one value or several."""
        labels = _several("label", label, (str,), "a label")
        topics = _several("topic", topic, (str, Integral), "the number or the name of a topic")
        excluded = _several("exclude", exclude, (str,), "a word")
        first, last = _check_day("since", since), _check_day("until", until)
        if first is not None and last is not None and last.last < first.first:
            raise InputError(f"since= must not be after until=, got {since!r} and {until!r}.")
        return cls(labels, topics, first, last, excluded)

    def allowed(self, index: SearchIndex, documents: SearchDocuments, names: Mapping[int, str]) -> Array | None:
        """Return a mask of the documents that pass all filters; None if there is no filter."""
        masks = []
        if self.labels:
            masks.append(documents.with_labels(self.labels))
        if self.topics:
            n_topics = index.scoring.topics().sizes[0]
            masks.append(documents.with_topics([_topic_number(topic, names, n_topics) for topic in self.topics]))
        if self.since is not None or self.until is not None:
            masks.append(documents.between(self.since, self.until))
        for word in self.excluded:
            with_word = index.documents_with(word)
            if not with_word:
                raise InputError(f"exclude=: the run does not count {word!r}: it is unknown, rare or a stop word.")
            masks += [~mask for mask in with_word]
        return np.logical_and.reduce(masks) if masks else None


def search_run(
    folder: Path,
    query: str,
    k: int = 10,
    *,
    method: str = DEFAULT_METHOD,
    like: bool = False,
    label: Any = None,
    topic: Any = None,
    since: Any = None,
    until: Any = None,
    exclude: Any = None,
    level: int | None = None,
    report: Reporter,
    trust_pattern: bool = False,
) -> Results:
    """Return the best documents of a run for a query or, with `like`, those similar to the document of this id.

    level : number of topics of the level to use; None is the reading level, whose topics the index has. The other
    arguments are those of `Run.search`.
    """
    method_settings(method, None, None)  # raises for an unknown method before an index is built
    asked = QueryText(query, ()) if like else parse_query(query)
    filters = SearchFilters.of(label, topic, since, until, exclude)
    check_is_run(folder)
    finer = _finer_level(folder, level, trust_pattern=trust_pattern)

    def answer(index: SearchIndex, documents: SearchDocuments) -> Results:
        info, _, _ = read_info(folder)
        names = {**dict(enumerate(info.automatic_names)), **info.topic_names}
        if finer is not None:
            index.set_model(finer.fitted, finer.doc_topic)
            documents, names = documents.with_weights(finer.doc_topic), dict(enumerate(finer.topic_titles))
        index.texts = documents if documents.has_texts else None
        allowed = filters.allowed(index, documents, names)

        def best(size: int) -> Results:
            if like:
                return index.similar_documents(query, size, method=method, allowed=allowed)
            if asked.phrases:
                return _with_phrases(index, asked, size, method, allowed)
            return index.search(asked.words, size, method=method, allowed=allowed)

        results = _one_of_each(best, k, documents.groups())
        if not results and allowed is not None:
            note = results.note if allowed.any() else "No document passes the filters."
            results = replace(results, note=note.replace("the query.", "the query and the filters."))
        for hit in results:
            _ = hit.words, hit.snippet  # reads the documents of the hits, so that a damaged file is noticed here
        return results

    results = _stored_answer(folder, method, answer, report, trust_pattern)
    if results is None:
        with _scratch_folder(folder) as scratch:
            _, _, identity = read_info(folder)
            run = _open(folder, trust_pattern)
            index = _new_index(run, scratch, report)
            _add_models(index, method, report)
            _store(index, folder, identity, report)
            documents = _stored_documents(folder, identity, report, lambda: run)
            try:
                results = answer(index, documents)
            except ModelFileError:  # the index is new, so the copy of the texts is damaged
                results = answer(index, _new_documents(run, identity, report))
    return results


def _finer_level(folder: Path, level: int | None, *, trust_pattern: bool) -> Run | None:
    """Return the run at a finer level; None for the reading level, whose model the index has."""
    if level is None:
        return None
    from polyseme.runs import open_run

    run = open_run(folder, trust_pattern=trust_pattern).level(level)
    return None if run.reading is None else run


def _one_of_each(best: Callable[[int], Results], k: int, groups: Array) -> Results:
    """Return the k best documents, with only the best of each group of near-duplicates.

    best : function that returns the best documents, as many as its argument.
    """
    if not groups.size:
        return best(k)
    sizes = np.bincount(groups)
    size = k
    while True:
        results = best(size)
        first: dict[int, Hit] = {}
        for hit in results:
            first.setdefault(int(groups[hit.row]), hit)
        if len(first) >= k or len(results) < size:
            break
        size *= 4
    hits = (
        replace(hit, rank=rank, n_duplicates=int(sizes[group]) - 1)
        for rank, (group, hit) in enumerate(islice(first.items(), k), start=1)
    )
    return replace(results, hits=tuple(hits))


class EarlierTexts(NamedTuple):
    """The texts of a run before documents were added."""

    identity: str
    """Digest of the run, which is stored in the copy of its texts."""
    n_files: int
    """Number of files of texts."""


def store_index(
    folder: Path, report: Reporter, *, earlier: EarlierTexts | None = None, trust_pattern: bool = False
) -> None:
    """Build and store the index of a run and the copy of its texts, so that the first search does not have to.

    earlier : the state of the run whose copy of the texts is in the folder. Its compressed blocks are reused.
    """
    _, _, identity = read_info(folder)
    run = _open(folder, trust_pattern)
    with _scratch_folder(folder) as scratch:
        index = _new_index(run, scratch, report)
        _store(index, folder, identity, report)
    _new_documents(run, identity, report, earlier)


@contextmanager
def _scratch_folder(folder: Path) -> Iterator[Path]:
    """Make a temporary folder for arrays that are too large for memory, if possible on the disk of the run."""
    options: dict[str, Any] = {"prefix": f".{folder.name}-index-", "ignore_cleanup_errors": True}
    try:
        made = TemporaryDirectory(dir=folder.parent, **options)
    except OSError:
        made = TemporaryDirectory(**options)
    with made as name:
        yield Path(name)


def _with_phrases(index: SearchIndex, asked: QueryText, k: int, method: str, allowed: Array | None) -> Results:
    """Return the best documents that contain all phrases.

    The candidates are the documents with all words of the phrases, in the order of their scores. Their texts are read
    until k of them have the phrases.
    """
    if index.texts is None:
        raise InputError(
            "The run does not store texts, which a search for a phrase needs: search without the quotation marks."
        )
    masks = [mask for phrase in asked.phrases for mask in index.documents_with(phrase)]
    candidates = np.logical_and.reduce(masks + ([] if allowed is None else [allowed])) if masks else allowed
    finder = index.finder([asked.words], asked.phrases)
    n_candidates = len(index.ids) if candidates is None else int(candidates.sum())
    hits: list[Hit] = []
    size, seen = max(_PHRASE_CANDIDATES, 4 * k), 0
    while True:
        results = index.search(asked.words, size, method=method, allowed=candidates)
        for hit in results.hits[seen:]:
            if len(hits) < k and finder.has_phrases(index.texts[hit.row]):
                hits.append(replace(hit, rank=len(hits) + 1, _find=lambda row: finder.snippet(index.texts[row])))
        if len(hits) == k or len(results) < size or size >= n_candidates:
            break
        seen, size = size, 8 * size
    note = results.note or ("" if hits else "No document contains the phrase and matches the query.")
    return Results(results.method, tuple(hits), note)


def _several(name: str, value: Any, kinds: tuple[type, ...], what: str) -> tuple[Any, ...]:
    """Return the argument `name`, one value or several, as a tuple. Raise InputError if a value has another type."""
    if value is None:
        return ()
    values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
    for one in values:
        if isinstance(one, bool) or not isinstance(one, kinds):
            raise InputError(f"{name}= must be {what}, or several of them in a list, got {one!r}.")
    return values


def _check_day(name: str, value: Any) -> Days | None:
    """Return the days of `since` or `until`. Raise InputError if the value is not a date."""
    if value is None:
        return None
    days = days_of(value)
    if days is None:
        raise InputError(f"{name}= must be a year or a date such as 1871, 1871-06 or 1871-06-30, got {value!r}.")
    return days


def _topic_number(topic: int | str, names: Mapping[int, str], n_topics: int) -> int:
    """Return the number of a topic that is given by its number or its name."""
    for number, name in names.items():
        if isinstance(topic, str) and name.casefold() == topic.casefold():
            return number
    if not isinstance(topic, str) or topic.isdecimal():
        if 0 <= int(topic) < n_topics:
            return int(topic)
        raise InputError(f"topic=: the run has the topics 0 to {n_topics - 1}, got {topic}.")
    known = f"; there are {', '.join(map(repr, names.values()))}" if names else "; give its number"
    raise InputError(f"topic=: no topic has the name {topic!r}{known}.")


def _open(folder: Path, trust_pattern: bool) -> Run:
    from polyseme.runs import open_run

    return open_run(folder, trust_pattern=trust_pattern)


def _new_documents(run: Run, identity: str, report: Reporter, earlier: EarlierTexts | None = None) -> SearchDocuments:
    """Copy the parts of the documents that a search needs, store the copy in the run, and return it."""
    path, documents = run.path / DOCUMENTS_FILE, None
    with report.stage("Copying the texts for search, once for this run"):
        if earlier is not None:
            with suppress(OSError, ValueError, ModelFileError):  # missing, damaged or of another state
                documents = SearchDocuments.of_run(run, SearchDocuments.load(path, earlier.identity), earlier.n_files)
        if documents is None:
            documents = SearchDocuments.of_run(run)
    _write(lambda: documents.save(path, identity), "The texts", report)
    return documents


def _stored_documents(folder: Path, identity: str, report: Reporter, run: Callable[[], Run]) -> SearchDocuments:
    """Return the copy that an earlier search stored, or a new one if it is missing, damaged or out of date."""
    try:
        return SearchDocuments.load(folder / DOCUMENTS_FILE, identity)
    except (OSError, ValueError, ModelFileError):
        return _new_documents(run(), identity, report)


def _new_index(run: Run, scratch: Path, report: Reporter) -> SearchIndex:
    """Return a new index of a run's documents, with its model.

    Counts are read from one shard at a time. The arrays of a large run are mapped from files in `scratch`.
    """
    from polyseme.retrieval import SearchIndex
    from polyseme.retrieval.queries import in_files, in_memory
    from polyseme.runs.documents import document_names, unique_ids

    vectorizer: Any
    try:
        vectorizer = _word_rules(run.files, trust_pattern=run.trust_pattern)
        run.vocabulary = vectorizer.columns  # before the run reads its vectorizer, whose dict of words is large
    except UnsupportedError:
        vectorizer = run.vectorizer
    rows = list(run.table.values("id", "source", "title", "excerpt"))
    ids, sources, titles, excerpts = zip(*rows, strict=True) if rows else ((), (), (), ())
    if len(ids) != run.n_documents:
        raise run.damaged("documents are missing")
    fitted, doc_topic = run.fitted, run.doc_topic
    with report.stage("Building the search index, once for this run"):  # after all checks of the run
        index = SearchIndex.of_parts(
            run.shards, run.vocabulary, ids=unique_ids(list(ids), list(sources)), titles=document_names(titles, ids),
            excerpts=[text or "" for text in excerpts], vectorizer=vectorizer,
            allocate=in_memory if run.fits_in_memory else in_files(scratch),
        )  # fmt: skip
        return index.set_model(fitted, doc_topic)


def _word_rules(files: FileManifest, *, trust_pattern: bool) -> WordRules:
    """Return the rules that count a query. Raise UnsupportedError if they need scikit-learn."""
    from polyseme.text.words import read_word_rules

    path = files.path(VECTORIZER_FILE)
    try:
        return read_word_rules(read_json(path), trust_pattern=trust_pattern)
    except UnsupportedError:
        raise
    except (OSError, ValueError, ModelFileError) as error:
        raise ModelFileError(f"{path}: {error}") from None


def _stored_answer(
    folder: Path,
    method: str,
    answer: Callable[[SearchIndex, SearchDocuments], Results],
    report: Reporter,
    trust_pattern: bool,
) -> Results | None:
    """Return the answer from the index that an earlier search stored; None if it is missing, damaged or out of date."""
    from polyseme.retrieval import SearchIndex

    try:
        _, files, identity = read_info(folder)
        index = SearchIndex.load(folder / INDEX_FILE, identity=identity)
        if index.vectorizer is None:  # the run has a pattern that must be trusted
            index.vectorizer = _word_rules(files, trust_pattern=trust_pattern)
        if not index.scoring.is_ready(method_settings(method, None, None)):
            _add_models(index, method, report)
            _store(index, folder, identity, report)
        return answer(index, _stored_documents(folder, identity, report, lambda: _open(folder, trust_pattern)))
    except UnsupportedError:  # the vectorizer needs scikit-learn
        return None
    except InputError:
        raise
    except (OSError, ValueError, ModelFileError):  # the caller opens the run, which reports what is wrong with it
        return None


def _add_models(index: SearchIndex, method: str, report: Reporter) -> None:
    """Compute what a method needs besides the model of the run."""
    if method == "plsi-u":
        with report.stage("Computing the lengths of smoothed documents, once for this run"):
            index.scoring.squares(method_settings(method, None, None).term)
    if method == "lsi":
        with report.stage("Computing the dimensions of lsi, once for this run"):
            index.fit_lsi(min(LSI_DIMENSIONS, max(1, min(index.counts.shape) - 1)))
    if method == "plsi*":
        with report.stage("Fitting the models of plsi*, once for this run"):
            index.fit_models()


def _store(index: SearchIndex, folder: Path, identity: str, report: Reporter) -> None:
    _write(lambda: index.save(folder / INDEX_FILE, identity=identity), "The index", report)


def _write(save: Callable[[], None], what: str, report: Reporter) -> None:
    try:
        save()
    except OSError as error:  # a run that is read-only, or a full disk
        reason = error.strerror or str(error)
        report.note(f"{what} could not be stored in the run ({reason}): the next search builds it again.")


# the copy of the documents


DOCUMENTS_FILE = "search_documents.safetensors"
"""File in the run folder that stores the copy."""
TEXT_BLOCK = 1 << 16
_ROWS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 1 << 22
_LABELS_SHOWN = 8
_FORMAT_VERSION = 2
_METADATA_KEY = "polyseme_search_documents"
_HEADER_FIELDS = {"format_version": whole_number(_FORMAT_VERSION, _FORMAT_VERSION), "identity": TEXT}
_TEXT_ARRAYS = ("text_starts", "first_texts", "block_starts", "blocks")


class SearchDocuments:
    """Texts, labels, days and main topics of the documents of a run."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        """Check that the sizes of the arrays fit together. Raises KeyError or ValueError if they do not."""
        self._arrays = dict(arrays)
        self.n_documents = len(arrays["topics"])
        for name, kind in (("topics", np.int32), ("labels", np.int32), ("days", np.int32), ("groups", np.int64)):
            sizes = (0, self.n_documents) if name == "groups" else (self.n_documents,)
            if len(arrays[name].shape) != 1 or arrays[name].shape[0] not in sizes or arrays[name].dtype != kind:
                raise ValueError(f"{name} has another type or size")
        self.label_names = StringTable(arrays, "label_names")
        self.has_texts = _TEXT_ARRAYS[0] in arrays
        self._first_texts: Array | None = None
        if self.has_texts:
            texts, firsts, starts, blocks = (arrays[name] for name in _TEXT_ARRAYS)
            if blocks.dtype != np.uint8 or any(array.dtype != np.int64 for array in (texts, firsts, starts)):
                raise ValueError("the texts have arrays of other types")
            if texts.shape != (self.n_documents + 1,) or firsts.shape != starts.shape or len(blocks.shape) != 1:
                raise ValueError("the texts have arrays of other sizes")

    def __len__(self) -> int:
        return self.n_documents

    def __getitem__(self, row: int) -> str:
        """Return the text of a document. Raise ModelFileError if the file is damaged."""
        if self._first_texts is None:
            self._first_texts = np.asarray(self._arrays["first_texts"][:])
        block = int(np.searchsorted(self._first_texts, row, side="right")) - 1
        bounds = self._first_texts[block : block + 2].tolist()
        if block < 0 or len(bounds) < 2 or not 0 <= bounds[0] <= row < bounds[1] <= self.n_documents:
            raise self._damage("a text has no block")
        first, last = bounds
        places = np.asarray(self._arrays["text_starts"][first : last + 1])
        start, end = self._arrays["block_starts"][block : block + 2].tolist()
        size = int(places[-1] - places[0])
        if not 0 <= start <= end <= len(self._arrays["blocks"]) or (np.diff(places) < 0).any():
            raise self._damage("a block is outside its array")
        try:
            content = zlib.decompressobj().decompress(self._arrays["blocks"][start:end].tobytes(), size + 1)
            a, b = (places[row - first : row - first + 2] - places[0]).tolist()
            if len(content) != size:
                raise ValueError
            return content[a:b].decode("utf-8", "surrogatepass")
        except (zlib.error, ValueError):
            raise self._damage("a block cannot be read") from None

    def with_labels(self, labels: Sequence[str]) -> Array:
        """Return a mask of the documents that have one of some labels."""
        names = list(self.label_names)
        parts = [{name, *name.split(LABEL_SEPARATOR)} for name in names]
        known = sorted({part for name in names for part in name.split(LABEL_SEPARATOR)} - {""})
        if not known:
            raise InputError("label=: the documents of this run have no labels; a fit reads them with label=COLUMN.")
        for label in labels:
            if label not in known and label not in names:
                near = get_close_matches(label, known, _LABELS_SHOWN) or known[:_LABELS_SHOWN]
                listed = ", ".join(map(repr, near))
                raise InputError(f"label=: no document has the label {label!r}; the run has labels such as {listed}.")
        wanted = np.array([not names_of_label.isdisjoint(labels) for names_of_label in parts], dtype=bool)
        numbers = np.asarray(self._arrays["labels"][:])
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(names):
            raise self._damage("a label has no name")
        return wanted[numbers]

    def with_topics(self, topics: Sequence[int]) -> Array:
        """Return a mask of the documents whose main topic is one of these."""
        main = np.asarray(self._arrays["topics"][:])
        mask = np.zeros(len(main), dtype=bool)
        for topic in topics:
            mask |= main == topic
        return mask

    def with_weights(self, doc_topic: Array) -> SearchDocuments:
        """Return the same documents with the main topics of other P(z|d)."""
        return SearchDocuments({**self._arrays, "topics": _main_topics(doc_topic)})

    def between(self, since: Days | None = None, until: Days | None = None) -> Array:
        """Return a mask of the documents from the first day of `since` to the last day of `until`."""
        days = np.asarray(self._arrays["days"][:])
        mask = days > 0
        if not mask.any():
            name = "until=" if since is None else "since="
            raise InputError(f"{name}: no document of this run has a date; a fit reads dates with time=COLUMN.")
        if since is not None:
            mask &= days >= since.first.toordinal()
        if until is not None:
            mask &= days <= until.last.toordinal()
        return mask

    def groups(self) -> Array:
        """Return the row of the first document in each document's group of near-duplicates; empty if there are none."""
        groups = np.asarray(self._arrays["groups"][:])
        if groups.size and not 0 <= groups.min() <= groups.max() < len(groups):
            raise self._damage("a group has no document")
        return groups

    def save(self, path: Path, identity: str) -> None:
        """Write a file, atomically. `identity` identifies the state of the run."""
        header = json.dumps({"format_version": _FORMAT_VERSION, "identity": identity})
        write_atomically(path, checked_parts(self._arrays, {_METADATA_KEY: header}))

    @classmethod
    def load(cls, path: Path, identity: str) -> SearchDocuments:
        """Map a file. Raise OSError, ValueError or ModelFileError if it does not belong to this state of the run."""
        metadata, arrays = map_checked(path)
        if _METADATA_KEY not in metadata:
            raise ValueError("it has no header of documents")
        header = parse_json(metadata[_METADATA_KEY])
        check_fields(header, _HEADER_FIELDS, required=_HEADER_FIELDS)
        if header["identity"] != identity:
            raise ValueError("it belongs to another state of the run")
        try:
            return cls(arrays)
        except KeyError as error:
            raise ValueError(f"it has no {error}") from None

    @classmethod
    def of_run(cls, run: Any, before: SearchDocuments | None = None, n_files: int = 0) -> SearchDocuments:
        """Read the documents of a run, one file at a time; the compressed texts are in a temporary file.

        before : the copy of an earlier state of the run, before documents were added. Its blocks are copied, and only
        the texts after the first `n_files` files are read and compressed. The result is the same.
        """
        from polyseme.runs.documents import Labels

        days: list[int] = []

        def labels_of_documents() -> Iterator[str]:
            for label, time in run.table.values("label", "time"):
                days.append(_ordinal(time))
                yield label

        labels = Labels.of(labels_of_documents())
        weights = run.doc_topic
        groups = run.groups
        arrays: dict[str, Array] = {
            "topics": _main_topics(weights),
            "days": np.array(days, dtype=np.int32),
            "labels": labels.numbers.astype(np.int32),
            "groups": groups.astype(np.int64) if (groups < np.arange(len(groups))).any() else np.empty(0, np.int64),
            **string_arrays("label_names", labels.names),
        }
        if not len(days) == len(weights) == run.n_documents:
            raise run.damaged("documents are missing")
        stored = run.stored_texts
        if not stored:
            return cls(arrays)
        with tempfile.TemporaryFile() as file:
            if before is not None and before.has_texts:
                positions = _write_blocks(stored.after(n_files), file, before)
            else:
                positions = _write_blocks(stored, file)
            if len(positions[0]) - 1 != len(days):
                raise run.damaged("texts of documents are missing")
            size = positions[-1][-1]
            blocks = np.memmap(file, dtype=np.uint8, mode="r", shape=(size,)) if size else np.empty(0, np.uint8)
        arrays |= {
            name: np.array(values, dtype=np.int64) for name, values in zip(_TEXT_ARRAYS[:-1], positions, strict=True)
        }
        return cls({**arrays, _TEXT_ARRAYS[-1]: blocks})

    def copy_full_blocks(self, file: Any) -> tuple[tuple[list[int], list[int], list[int]], list[str]]:
        """Write the blocks to a file, except a last one that has room for more texts.

        Returns the starts of texts, the first texts and the starts of these blocks, and the texts of the last one.
        """
        texts, firsts, starts = (np.asarray(self._arrays[name][:]) for name in _TEXT_ARRAYS[:-1])
        blocks, n_blocks = self._arrays[_TEXT_ARRAYS[-1]], len(firsts) - 1
        increase = all(places[0] == 0 and (np.diff(places) >= 0).all() for places in (texts, firsts, starts))
        if not increase or firsts[-1] != self.n_documents or starts[-1] != len(blocks):
            raise self._damage("the starts of texts and blocks are inconsistent")
        if n_blocks and texts[firsts[n_blocks]] - texts[firsts[n_blocks - 1]] < TEXT_BLOCK:
            n_blocks -= 1
        size = int(starts[n_blocks])
        for start in range(0, size, _BYTES_AT_ONCE):
            file.write(blocks[start : min(start + _BYTES_AT_ONCE, size)].data)
        first = int(firsts[n_blocks])
        places = texts[: first + 1].tolist(), firsts[: n_blocks + 1].tolist(), starts[: n_blocks + 1].tolist()
        return places, [self[row] for row in range(first, self.n_documents)]

    def _damage(self, problem: str) -> ModelFileError:
        return ModelFileError(f"{DOCUMENTS_FILE} is damaged ({problem}): remove it; the next search makes a new one.")


def _main_topics(doc_topic: Array) -> Array:
    """Return the topic with the largest weight of each document; the weights may be mapped."""
    parts = [
        np.asarray(doc_topic[start : start + _ROWS_AT_ONCE]).argmax(axis=1)
        for start in range(0, len(doc_topic), _ROWS_AT_ONCE)
    ]
    return np.concatenate(parts).astype(np.int32)


def _write_blocks(
    texts: Iterable[str], file: Any, before: SearchDocuments | None = None
) -> tuple[list[int], list[int], list[int]]:
    """Write compressed blocks of texts to a file, and return the starts of texts, first texts and starts of blocks.

    before : copy with the texts that come first; its full blocks are copied.
    """
    text_starts, first_texts, block_starts = [0], [0], [0]
    if before is not None:
        (text_starts, first_texts, block_starts), rest = before.copy_full_blocks(file)
        texts = chain(rest, texts)
    waiting: list[bytes] = []
    size = 0

    def write() -> None:
        content = zlib.compress(b"".join(waiting), 1)
        file.write(content)
        first_texts.append(len(text_starts) - 1)
        block_starts.append(block_starts[-1] + len(content))
        waiting.clear()

    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        text_starts.append(text_starts[-1] + len(content))
        waiting.append(content)
        size += len(content)
        if size >= TEXT_BLOCK:
            write()
            size = 0
    if waiting:
        write()
    file.flush()
    return text_starts, first_texts, block_starts


def _ordinal(time: Any) -> int:
    days = days_of(time)
    return 0 if days is None else days.first.toordinal()
