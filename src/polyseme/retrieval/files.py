"""The file of a `SearchIndex`: written atomically, mapped when it is read.

An index file is a safetensors file with a JSON header and checksums of all blocks (`polyseme.io.arrays`); it
contains no pickle and no code. It has everything that a search needs: the counts by document and by word, the models,
the words and the rules that count a query (if they are WordRules), and the ids, titles and excerpts as tables of
strings. Opening a file checks its header and the sizes of all parts. A part is read and checked when a search first
needs it.

The index of a run has only what no other file of the run has (`RunTables`). It takes the counts by document, P(z|d),
ids, titles and excerpts from the files of the run.

`identity` names the state of the corpus and the model that the index was made from, for example a digest of both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyseme.errors import InputError, ModelFileError
from polyseme.io.arrays import ArrayParts, StringTable, checked_parts, map_checked, row_blocks, string_arrays
from polyseme.io.files import (
    COUNT,
    OBJECT,
    TEXT,
    check_fields,
    list_of,
    mapping_to,
    number,
    parse_json,
    write_atomically,
)
from polyseme.kernels import Array
from polyseme.retrieval.postings import MAX_DOCUMENTS, TYPICAL, Postings
from polyseme.retrieval.queries import SparseRows
from polyseme.retrieval.scores import Scoring
from polyseme.retrieval.spaces import SingularSpace, TopicSpace
from polyseme.retrieval.terms import TermScores
from polyseme.text.words import WordRules, rules_from_arrays, rules_to_arrays

FORMAT_VERSION = 4
_METADATA_KEY = "polyseme_index"
_SPACES = ("model", "average")
_SPACE_ARRAYS = ("topic_word", "documents", "topic_weights", "background_word")
_SPACE_NUMBERS = ("sizes", "temperatures", "background_shares")
_LENGTHS = ("tf", "tfidf")
_RUN = "run."
"""Start of the names of the arrays of the tables of a run."""
_RULES = "rules."
"""Start of the names of the arrays of the rules that count queries."""
_SQUARES = "tfidf"
"""Weighting of plsi-u for which the file has the lengths of documents. For others they are computed when needed."""
_MOST_TOPICS = 2**31 - 1
_HEADER_FIELDS = {
    "format_version": COUNT,
    "library_version": TEXT,
    "identity": TEXT,
    "shape": list_of(COUNT, most=2),
    "mean_length": number(0, 1e300),
    "run": OBJECT,
    "spaces": mapping_to(OBJECT),
    "lsi": OBJECT,
    "rules": OBJECT,
}
_SPACE_FIELDS = {
    "sizes": list_of(COUNT),
    "temperatures": list_of(number(0, 1e6)),
    "background_shares": list_of(number(0, 1)),
}


class RunTables(NamedTuple):
    """What the index of a run has to find its documents in the other files of the run."""

    settings: dict[str, Any]
    arrays: dict[str, Any]


class RunFiles(NamedTuple):
    """What the index of a run takes from the other files of the run."""

    counts: Any
    totals: Any
    units: Any
    """P(z|d), scaled to length one."""
    ids: Any
    titles: Any
    excerpts: Any


class IndexParts(NamedTuple):
    """The parts of an index."""

    scoring: Scoring
    vocabulary: Any
    ids: Any
    titles: Any
    excerpts: Any
    rules: WordRules | None
    """Rules that count queries, if the file has them."""
    run: RunTables | None = None
    """Tables of the index of a run, which has no counts by document, no P(z|d), no ids, no titles and no excerpts."""


def write_index(parts: IndexParts, path: Path, identity: str) -> None:
    """Write an index to a file. A crash or a full disk leaves an existing file as it was."""
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to save the index in: create it first.")
    from importlib.metadata import version

    scoring = parts.scoring
    terms = scoring.terms
    arrays: dict[str, Any] = {f"length.{name}": terms.lengths(name) for name in _LENGTHS}
    arrays |= {f"postings.{name}": getattr(terms.postings, name) for name in ("indptr", "documents", "impacts")}
    counts = terms.postings.counts
    arrays["postings.counts"] = counts if isinstance(counts, ArrayParts) else _compact(counts[:])
    words = parts.vocabulary
    arrays |= (
        words.arrays("vocabulary") if isinstance(words, StringTable) else string_arrays("vocabulary", words, find=True)
    )
    if parts.run is None:
        arrays |= {"totals": terms.totals, **_matrix_arrays("counts", scoring.counts)}
        arrays |= string_arrays("ids", list(parts.ids), find=True)
        arrays |= string_arrays("titles", list(parts.titles)) | string_arrays("excerpts", list(parts.excerpts))
    else:
        arrays |= {f"{_RUN}{name}": array for name, array in parts.run.arrays.items()}
    header: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "library_version": version("polyseme"),
        "identity": identity,
        "shape": [terms.postings.n_docs, len(parts.vocabulary)],
        "mean_length": terms.mean,
        "spaces": {},
    }
    if parts.run is not None:
        header["run"] = parts.run.settings
    for name, space in (("model", scoring.model), ("average", scoring.average)):
        if space is not None:
            values = (space.topic_word, space.documents, space.topic_weights, space.background_word)
            space_arrays = dict(zip(_SPACE_ARRAYS, values, strict=True))
            if parts.run is not None and name == "model":
                del space_arrays["documents"]
            arrays |= {f"{name}.{part}": array for part, array in space_arrays.items()}
            numbers = (space.sizes, space.temperatures, space.background_shares)
            arrays[f"{name}.typical"] = space.typical
            header["spaces"][name] = dict(zip(_SPACE_NUMBERS, map(list, numbers), strict=True))
    if scoring.has_squares(_SQUARES):
        arrays["model.squares"] = scoring.squares(_SQUARES)
    if scoring.lsi is not None:
        lsi = scoring.lsi
        arrays |= {"lsi.basis": lsi.basis, "lsi.units": lsi.units, "lsi.lengths": lsi.lengths}
        header["lsi"] = {"weighting": lsi.weighting}
    if parts.rules is not None and (stored := rules_to_arrays(parts.rules)) is not None:
        header["rules"], rule_arrays = stored
        arrays |= {f"{_RULES}{name}": array for name, array in rule_arrays.items()}
    written = {
        name: array if isinstance(array, ArrayParts) else np.ascontiguousarray(array[:])
        for name, array in arrays.items()
    }
    write_atomically(path, checked_parts(written, {_METADATA_KEY: json.dumps(header)}))


def read_index(path: Path, identity: str | None, open_run: Callable[[RunTables], RunFiles] | None = None) -> IndexParts:
    """Return the parts of the index in a file, with mapped arrays. If `identity` is None, accept every file.

    open_run : function that opens the other files of a run, for the index of a run.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no index file {path}.")
    header, arrays = _open(path)
    try:
        check_fields(header, _HEADER_FIELDS, required=("shape", "spaces", "identity", "mean_length"))
        if identity is not None and header["identity"] != identity:
            raise ModelFileError(f"{path} belongs to another run, or to an older state of it: build the index again.")
        if ("run" in header) != (open_run is not None):
            kind = "of a run: search the run" if "run" in header else "not of a run: build the index again"
            raise ModelFileError(f"{path} is the index {kind}.")
        return _restore(header, arrays, str(path), open_run)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise ModelFileError(f"{path} is damaged: its parts do not fit together ({error}).") from None


def _open(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays by name."""
    try:
        metadata, arrays = map_checked(path)
        if _METADATA_KEY not in metadata:
            raise ValueError("it has no index header")
        header = parse_json(metadata[_METADATA_KEY])
        check_fields(header, {"format_version": COUNT}, required=("format_version",), others=True)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged or is not a polyseme index ({error}): build it again.") from None
    if header["format_version"] > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by polyseme {header.get('library_version')} in a newer format: "
            "update polyseme to read it."
        )
    if header["format_version"] < FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by an older polyseme: build the index again.")
    return header, arrays


def _restore(
    header: dict[str, Any], arrays: dict[str, Any], path: str, open_run: Callable[[RunTables], RunFiles] | None
) -> IndexParts:
    """Return the parts of an index from its header and arrays. Raise an exception if their sizes do not match."""
    n_docs, n_words = header["shape"]
    run = files = None
    if open_run is not None:
        run = RunTables(header["run"], _with_prefix(arrays, _RUN))
        files = open_run(run)
        if files.counts.shape != (n_docs, n_words) or {n_docs} != {len(part) for part in files}:
            raise ValueError("it does not have the documents of the run")
        counts, totals = files.counts, files.totals
    else:
        counts = _restore_matrix("counts", arrays, (n_docs, n_words), path)
        totals = _sized(arrays, "totals", np.float64, n_docs)
    floats, n_entries = np.float64, len(arrays["postings.documents"])
    if arrays["postings.counts"].dtype not in (np.uint8, np.float32) or n_docs > MAX_DOCUMENTS:
        raise ValueError("postings.counts is neither uint8 nor float32, or there are too many documents")
    postings = Postings(
        _sized(arrays, "postings.indptr", np.int64, n_words + 1),
        _sized(arrays, "postings.documents", np.int32, n_entries),
        _sized(arrays, "postings.counts", arrays["postings.counts"].dtype, n_entries),
        _sized(arrays, "postings.impacts", np.float32, n_entries),
        n_docs,
        path,
    )
    terms = TermScores(
        postings,
        totals,
        {name: _sized(arrays, f"length.{name}", floats, n_docs) for name in _LENGTHS},
        header["mean_length"],
    )
    scoring = Scoring(counts, terms)
    for name, settings in header["spaces"].items():
        documents = files.units if files is not None and name == "model" else None
        space = _restore_space(name, settings, arrays, n_docs, n_words, documents)
        if name == "model":
            scoring.model = space
            if "model.squares" in arrays:
                scoring.set_squares(_SQUARES, _sized(arrays, "model.squares", floats, 3, n_docs))
        elif name == "average":
            scoring.average = space
    if "lsi" in header:
        check_fields(header["lsi"], {"weighting": TEXT}, required=("weighting",))
        size = arrays["lsi.basis"].shape[-1]
        scoring.lsi = SingularSpace(
            _sized(arrays, "lsi.basis", floats, n_words, size),
            _sized(arrays, "lsi.units", np.float32, size, n_docs),
            _sized(arrays, "lsi.lengths", floats, n_docs),
            header["lsi"]["weighting"],
        )
    vocabulary = _restore_strings("vocabulary", arrays, n_words, find=True)
    if files is not None:
        ids, titles, excerpts = files.ids, files.titles, files.excerpts
    else:
        ids = _restore_strings("ids", arrays, n_docs, find=True)
        titles, excerpts = (_restore_strings(name, arrays, n_docs, find=False) for name in ("titles", "excerpts"))
    rules = None
    if "rules" in header:
        rules = rules_from_arrays(header["rules"], _with_prefix(arrays, _RULES), vocabulary)
    return IndexParts(scoring, vocabulary, ids, titles, excerpts, rules, run)


def _with_prefix(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the arrays whose names begin with a prefix, by their names without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _restore_space(
    name: str, settings: Any, arrays: dict[str, Any], n_docs: int, n_words: int, documents: Any
) -> TopicSpace:
    if name not in _SPACES:
        raise ValueError(f"{name} is not a model of an index")
    check_fields(settings, _SPACE_FIELDS, required=_SPACE_NUMBERS)
    sizes = tuple(settings["sizes"])
    temperatures, shares = (tuple(map(float, settings[part])) for part in ("temperatures", "background_shares"))
    width, n_models = sum(sizes), len(sizes)
    if not n_models or min(sizes) < 1 or width > _MOST_TOPICS or {len(temperatures), len(shares)} != {n_models}:
        raise ValueError(f"the models of {name} have no topics, or settings are missing")
    if documents is None:
        documents = _sized(arrays, f"{name}.documents", np.float32, n_docs, width)
    elif documents.shape != (n_docs, width):
        raise ValueError("the model of the run has a different number of topics")
    space = TopicSpace(
        _sized(arrays, f"{name}.topic_word", np.float32, n_words, width),
        documents,
        sizes,
        temperatures,
        _sized(arrays, f"{name}.topic_weights", np.float64, width),
        shares,
        _sized(arrays, f"{name}.background_word", np.float32, n_words, n_models),
    )
    vars(space)["typical"] = _sized(arrays, f"{name}.typical", np.int32, width, TYPICAL)
    return space


def _restore_matrix(name: str, arrays: dict[str, Any], shape: tuple[int, int], path: str) -> SparseRows:
    indices, data = arrays[f"{name}.indices"], arrays[f"{name}.data"]
    if data.dtype.kind not in "fu" or indices.dtype.kind != "i" or indices.shape != data.shape or len(data.shape) != 1:
        raise ValueError(f"{name} does not have the types and sizes of a sparse matrix")
    return SparseRows(_sized(arrays, f"{name}.indptr", np.int64, shape[0] + 1), indices, data, shape, path)


def _restore_strings(name: str, arrays: dict[str, Any], size: int, find: bool) -> StringTable:
    table = StringTable(arrays, name, find=find)
    if len(table) != size:
        raise ValueError(f"there are {len(table)} {name} instead of {size}")
    return table


def _sized(arrays: dict[str, Any], name: str, dtype: Any, *shape: int) -> Any:
    """Return an array. Raise ValueError if it has another type or shape."""
    array = arrays[name]
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"{name} does not have the type and shape that the header requires")
    return array


def _matrix_arrays(name: str, matrix: SparseRows) -> dict[str, Any]:
    """Return the arrays of a matrix."""
    return {
        f"{name}.indptr": np.asarray(matrix.indptr[:], dtype=np.int64),
        f"{name}.indices": matrix.indices,
        f"{name}.data": _compact(matrix.data[:]),
    }


def _compact(values: Array) -> Array:
    """Return counts in the smallest type that holds all of them exactly: uint8, float32 or the given one."""
    if all(bool(((part <= 255) & (part == np.floor(part))).all()) for part in row_blocks(values)):
        return values.astype(np.uint8, copy=False)
    with np.errstate(over="ignore"):
        exact = all(np.array_equal(part.astype(np.float32), part) for part in row_blocks(values))
    return values.astype(np.float32, copy=False) if exact else values
