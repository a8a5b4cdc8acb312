"""Index files: one safetensors file with a JSON header. No pickle, nothing executed.

All of an index but its vectorizer is in the file: the counts, the postings with bm25's weights, and the models. On
loading the header and the counts are checked; the arrays are memory-mapped, so that a large index opens at once and
processes share its memory. There is no digest, which would have to read them all.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from polyseme.errors import InputError, ModelFileError
from polyseme.files import write_atomically
from polyseme.kernels import Array
from polyseme.retrieval.latent_scores import SingularSpace, TopicSpace
from polyseme.retrieval.queries import checked_counts
from polyseme.retrieval.term_scores import TermScores
from polyseme.untrusted import COUNT, OBJECT, TEXT, check_fields, list_of, mapping_to, number, parse_json

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
