"""TREC files: judgments ("qrels") and rankings ("runs").

A line of qrels is `query 0 document relevance`, a line of a run `query Q0 document rank score tag`; the fields are
separated by white space, so an id cannot contain any. Files are UTF-8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any, TypeVar

from polyseme.errors import InputError
from polyseme.io.files import write_atomically

_QRELS = ("query", "iteration", "document", "relevance")
_RUN = ("query", "Q0", "document", "rank", "score", "tag")

Number = TypeVar("Number", int, float)


def read_qrels(path: str | PathLike[str]) -> dict[str, dict[str, int]]:
    """Read judgments from a TREC file.

    Parameters
    ----------
    path : path
        File with a line `query 0 document relevance` for each judgment.

    Returns
    -------
    dict
        Relevance by query id and document id.
    """
    qrels: dict[str, dict[str, int]] = {}
    for place, (query, _, document, relevance) in _lines(path, _QRELS):
        number = _number(int, relevance, f"{place}: the relevance must be a whole number, got {relevance!r}.")
        _add(qrels, query, document, number, place)
    return qrels


def write_qrels(qrels: Mapping[str, Mapping[str, int]], path: str | PathLike[str]) -> None:
    """Write judgments to a TREC file, completely or not at all.

    Parameters
    ----------
    qrels : mapping
        Relevance by query id and document id.
    path : path
        The file.
    """
    lines = [
        f"{_field('A query id', query)} 0 {_field('A document id', document)} {int(relevance)}\n"
        for query, documents in qrels.items()
        for document, relevance in documents.items()
    ]
    write_atomically(path, "".join(lines).encode())


def read_trec_run(path: str | PathLike[str]) -> dict[str, dict[str, float]]:
    """Read rankings from a TREC file.

    Parameters
    ----------
    path : path
        File with a line `query Q0 document rank score tag` for each document that was found.

    Returns
    -------
    dict
        Scores by query id and document id, best first; documents of one score are in the order of their ranks.
    """
    scores: dict[str, dict[str, float]] = {}
    ranks: dict[str, dict[str, int]] = {}
    for place, (query, _, document, rank, score, _) in _lines(path, _RUN):
        number = _number(float, score, f"{place}: the score must be a finite number, got {score!r}.")
        order = _number(int, rank, f"{place}: the rank must be a whole number, got {rank!r}.")
        _add(scores, query, document, number, place)
        ranks.setdefault(query, {})[document] = order
    return {
        query: dict(sorted(found.items(), key=lambda pair, query=query: (-pair[1], ranks[query][pair[0]])))  # type: ignore[misc]
        for query, found in scores.items()
    }


def write_trec_run(
    rankings: Mapping[str, Mapping[str, float]], path: str | PathLike[str], *, tag: str = "polyseme"
) -> None:
    """Write rankings to a TREC file, completely or not at all.

    Parameters
    ----------
    rankings : mapping
        Scores by query id and document id, as `rank_documents` returns them. The ranks follow from the scores.
    path : path
        The file.
    tag : str, default="polyseme"
        Name of the method, the last field of each line.
    """
    name = _field("tag", tag)
    lines = [
        f"{_field('A query id', query)} Q0 {_field('A document id', document)} {rank} {float(score)!r} {name}\n"
        for query, found in rankings.items()
        for rank, (document, score) in enumerate(sorted(found.items(), key=lambda pair: -pair[1]), start=1)
    ]
    write_atomically(path, "".join(lines).encode())


def _lines(path: str | PathLike[str], names: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield the place and the fields of each line that is not blank."""
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    with file:
        for number, line in enumerate(file, start=1):
            place = f"{path}, line {number}"
            try:
                fields = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
            except UnicodeDecodeError:
                raise InputError(f"{place}: the line is not UTF-8.") from None
            if fields and len(fields) != len(names):
                raise InputError(f"{place}: expected the {len(names)} fields {' '.join(names)}, got {len(fields)}.")
            if fields:
                yield place, fields


def _number(kind: Callable[[str], Number], text: str, message: str) -> Number:
    """Return a number. Raise InputError if the text is not one, or is not finite."""
    try:
        number = kind(text)
    except ValueError:
        raise InputError(message) from None
    if not math.isfinite(number):
        raise InputError(message)
    return number


def _add(found: dict[str, dict[str, Number]], query: str, document: str, number: Number, place: str) -> None:
    documents = found.setdefault(query, {})
    if document in documents:
        raise InputError(f"{place}: the document {document!r} occurs twice for the query {query!r}.")
    documents[document] = number


def _field(what: str, value: Any) -> str:
    """Return a value as one field. Raise InputError if it would not be read as one."""
    text = str(value)
    if len(text.split()) != 1 or text != text.strip():
        raise InputError(f"{what} in a TREC file must be one word without white space, got {text!r}.")
    return text
