"""Times of documents, as they come, in a few equal periods.

From parts to a plain summary: JSON-able values and typed arrays, in the sections that a page loads one by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polyseme.core.factors import symmetric_view
from polyseme.errors import InputError
from polyseme.explore.packing import LOG_STEP, SHARES, packed_counts, packed_topics, packed_weights, varints
from polyseme.explore.page_data import PageData
from polyseme.explore.word_rules import word_rules
from polyseme.kernels import Array, single_threaded_blas
from polyseme.metrics import coherence, distances, shown_words, topic_fit
from polyseme.metrics.distances import classical_scaling
from polyseme.metrics.words import LEAST_AMOUNT, RELEVANCE, WordAmounts
from polyseme.runs.documents import excerpt

MOST_PERIODS = 60
_UNITS = (("Y", 10), ("Y", 1), ("M", 3), ("M", 1), ("D", 7), ("D", 1))
"""decades, years, quarters, months, weeks, days"""
_FEW = 6
_ISO = re.compile(r"\s*(\d{4})(?:[-/](\d{1,2})(?:[-/](\d{1,2}))?)?(?:[T\s].*)?$")


class Periods(NamedTuple):
    """`names` of the periods in order, none left out; `of`: that of each document, -1 without a time."""

    names: list[str]
    of: npt.NDArray[np.int32]


def periods(times: Sequence[Any]) -> Periods | None:
    """Documents by periods of the finest unit that gives at most MOST_PERIODS; None if no time can be read."""
    days = [_day(time) for time in times]
    known = np.array([day is not None for day in days], dtype=bool)
    if not known.any():
        return None
    stamps = np.array([day for day in days if day is not None], dtype="datetime64[D]")
    numbers, unit, step = _numbers(stamps)
    first = int(numbers.min())
    of = np.full(len(days), -1, dtype=np.int32)
    of[known] = numbers - first
    last = int(numbers.max())
    return Periods([_name(number, unit, step) for number in range(first, last + 1)], of)


def _numbers(stamps: Any) -> tuple[Any, str, int]:
    """The period of each day, with the finest unit that is coarse enough; years alone stay years."""
    whole_years = bool((stamps == stamps.astype("datetime64[Y]").astype("datetime64[D]")).all())
    units = _UNITS[:2] if whole_years else _UNITS
    best = None
    for unit, step in units:
        numbers = stamps.astype(f"datetime64[{unit}]").astype(np.int64) // step
        size = int(numbers.max() - numbers.min()) + 1
        if best is not None and size > MOST_PERIODS:
            break
        best = numbers, unit, step
        if size >= 2 * _FEW and not (unit == "Y" and step == 10):
            break
    assert best is not None
    return best


def _name(number: int, unit: str, step: int) -> str:
    start = str(np.array(number * step).astype(f"datetime64[{unit}]"))
    if (unit, step) == ("Y", 10):
        return f"{start}s"
    if (unit, step) == ("M", 3):
        return f"{start[:4]} Q{(int(start[5:7]) + 2) // 3}"
    return start


def _day(time: Any) -> date | None:
    """The day of a date, of a year as a number, or of a text that begins as ISO 8601 does."""
    if isinstance(time, datetime):
        return time.date()
    if isinstance(time, date):
        return time
    if isinstance(time, np.datetime64):
        return _day(time.astype("datetime64[D]").item())
    if isinstance(time, int | float | np.number) and not isinstance(time, bool):
        time = f"{time:.0f}" if np.isfinite(time) else ""
    found = _ISO.match(time) if isinstance(time, str) else None
    if found is None:
        return None
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        return date(year, month, day)
    except ValueError:
        return None


FORMAT_VERSION = 1
TEXTS = ("excerpt", "full", "none")
MOST_LABELS = 200
CANDIDATES, LAMBDAS = 30, 21
"""words of a topic that the page shows, and steps of its slider for lambda"""
TYPICAL = 10
"""documents of a topic"""
_CHARACTERS_IN_A_CHUNK = 400_000


@dataclass(frozen=True)
class Section:
    """A part of the page that is loaded as one."""

    values: dict[str, Any]
    arrays: dict[str, Array]


def summarize(parts: PageData, text: str = "excerpt") -> dict[str, Section]:
    """The sections of a page.

    core : topics, words, how the fit went; all that the first view shows.
    documents : names, labels, times and P(z|d). counts : all counts. rules : how texts become words.
    texts0 ... : the texts, some at a time, with the number of each section's first document in core.
    """
    if text not in TEXTS:
        raise InputError(f"text must be one of {', '.join(map(repr, TEXTS))}, got {text!r}.")
    texts = _texts(parts, text)
    firsts = _chunks(texts)
    sections = {
        "core": _core(parts, text, firsts),
        "documents": _documents(parts),
        "counts": Section({}, packed_counts(parts.counts)),
        "rules": Section(*word_rules(parts.vectorizer, parts.vocabulary)),
    }
    for number, (start, end) in enumerate(pairwise([*firsts, len(texts)])):
        sections[f"texts{number}"] = Section({"texts": texts[start:end]}, {})
    return sections


def _core(parts: PageData, text: str, firsts: list[int]) -> Section:
    view = symmetric_view(parts.doc_topic, parts.doc_weights)
    with single_threaded_blas():
        between = distances(parts.topic_word)
    measures = {"coherence": coherence(shown_words(parts.word_documents), parts.counts).topics, **parts.measures}
    inference = parts.inference
    n_docs, n_words = parts.counts.shape
    values = {
        "format": FORMAT_VERSION,
        "title": parts.title,
        "model": parts.model_name,
        "n_documents": n_docs,
        "n_words": n_words,
        "n_topics": parts.topic_word.shape[0],
        "n_tokens": float(parts.tokens.sum()),
        "log_step": LOG_STEP,
        "shares": SHARES,
        "words": parts.vocabulary,
        "relevance": RELEVANCE,
        "least_documents": LEAST_AMOUNT,
        "topic_names": {str(topic): str(name) for topic, name in parts.topic_names.items()},
        "measures": {name: numbers(values) for name, values in measures.items()},
        "text": text,
        "text_starts": firsts,
        "history": {name: numbers(values) for name, values in parts.history.items()},
        "facts": {name: plain(value) for name, value in parts.facts.items()},
        "selection": [dict(row) for row in parts.selection],
        "selection_reason": parts.selection_reason,
        "chosen": parts.chosen_size,
        "tree": [dict(node) for node in parts.tree],
        "inference": {
            "kind": inference.kind,
            "temperature": inference.temperature,
            "background": inference.background_share,
            "note": inference.note,
        },
    }
    arrays = {
        "weights": view.topic_weights,
        "fit": topic_fit(parts.doc_topic, view.topic_doc),
        "places": classical_scaling(between).astype(np.float32),
        "distances": between.astype(np.float32),
        "word_totals": np.asarray(parts.counts.sum(axis=0), dtype=np.float64).ravel(),
        **packed_topics(parts.topic_word),
        **_candidates(parts.word_documents),
    }
    for name in ("background", "alpha", "totals"):
        array = getattr(inference, name)
        if array is not None:
            arrays[name] = np.asarray(array, dtype=np.float64)
    return Section(values, {name: np.ascontiguousarray(array).ravel() for name, array in arrays.items()})


def _candidates(amounts: WordAmounts) -> dict[str, Array]:
    """The words of each topic that are among the first at some lambda of the page's slider, with their documents."""
    topics: list[Array] = []
    lambdas = np.linspace(0, 1, LAMBDAS)
    at_lambda = [shown_words(amounts, CANDIDATES, relevance=value) for value in lambdas]
    for topic, row in enumerate(amounts.topic_word):
        found = np.unique(np.concatenate([words[topic] for words in at_lambda]))
        topics.append(found[row[found] > 0])
    numbers = np.repeat(np.arange(len(topics)), [len(words) for words in topics])
    words = np.concatenate(topics)
    return {
        "topic_documents": amounts.topics,
        "candidates_of_topic": varints(np.array([len(found) for found in topics])),
        "candidate_words": words.astype(np.uint32),
        "candidate_documents": np.asarray(amounts.amounts)[numbers, words].astype(np.float32),
        "candidate_frequency": amounts.words[words].astype(np.float32),
    }


def _documents(parts: PageData) -> Section:
    n_docs = parts.counts.shape[0]
    ids = parts.ids or [str(number) for number in range(n_docs)]
    titles = parts.titles or ids
    values: dict[str, Any] = {"titles": [title or name for title, name in zip(titles, ids, strict=True)]}
    if parts.ids is not None and values["titles"] != parts.ids:
        values["ids"] = parts.ids
    typical = parts.typical_documents(TYPICAL)
    arrays = {
        **packed_weights(parts.doc_topic),
        "typical_of_topic": varints(np.array([len(rows) for rows in typical.documents])),
        "typical_documents": np.array([row for rows in typical.documents for row in rows], dtype=np.uint32),
        "typical_nats": np.array([nats for row in typical.scores for nats in row], dtype=np.float32),
    }
    if parts.labels is not None:
        values["labels"], arrays["labels_of_document"], arrays["document_labels"] = _labels(parts.labels)
    found = None if parts.times is None else periods(parts.times)
    if found is not None:
        values["periods"] = found.names
        values["times"] = [None if time is None else str(time) for time in parts.times or ()]
        arrays["document_periods"] = found.of
    return Section(values, arrays)


def _labels(labels: list[list[str]]) -> tuple[list[str], Array, Array]:
    """The most frequent labels, sorted, and those of each document by their numbers."""
    tally: dict[str, int] = {}
    for names in labels:
        for name in dict.fromkeys(names):
            tally[name] = tally.get(name, 0) + 1
    frequent = sorted(tally, key=lambda name: (-tally[name], name))[:MOST_LABELS]
    place = {name: number for number, name in enumerate(sorted(frequent))}
    of = [[place[name] for name in dict.fromkeys(names) if name in place] for names in labels]
    sizes = np.array([len(numbers) for numbers in of], dtype=np.int32)
    return sorted(frequent), sizes, np.array([number for numbers in of for number in numbers], dtype=np.int32)


def _texts(parts: PageData, text: str) -> list[str]:
    if text == "none":
        return []
    if text == "full":
        if parts.texts is None:
            raise InputError("There are no full texts to put into the page: choose text='excerpt'.")
        return parts.texts
    if parts.excerpts is not None:
        return parts.excerpts
    return [excerpt(full) for full in parts.texts or ()]


def _chunks(texts: list[str]) -> list[int]:
    """The first document of each chunk of texts."""
    firsts, size = [], _CHARACTERS_IN_A_CHUNK
    for number, text in enumerate(texts):
        if size >= _CHARACTERS_IN_A_CHUNK:
            firsts.append(number)
            size = 0
        size += len(text) + 1
    return firsts


def numbers(values: Any) -> list[float | None]:
    """Numbers for JSON, which knows no NaN."""
    array = np.asarray(values, dtype=np.float64).ravel()
    return [float(f"{value:.7g}") if np.isfinite(value) else None for value in array]


def plain(value: Any) -> Any:
    """A value for JSON."""
    if isinstance(value, bool | str) or value is None:
        return value
    number = float(value)
    return (int(number) if number.is_integer() else number) if np.isfinite(number) else None
