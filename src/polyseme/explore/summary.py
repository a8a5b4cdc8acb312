"""Sections of the page: JSON values and typed arrays that the page loads one by one.

Also groups the times of documents into equal periods.
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
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.errors import InputError
from polyseme.explore.packing import LOG_STEP, SHARE_STEPS, encode_varints, pack_counts, pack_topics, pack_weights
from polyseme.explore.page_data import PageData
from polyseme.explore.word_rules import word_rules
from polyseme.kernels import Array, single_threaded_blas
from polyseme.metrics import coherence, distances, shown_words, topic_fit
from polyseme.metrics.distances import classical_scaling
from polyseme.metrics.words import LEAST_AMOUNT, RELEVANCE, WordAmounts
from polyseme.runs.documents import excerpt

FORMAT_VERSION = 1
TEXTS = ("excerpt", "full", "none")
MAX_LABELS = 200
CANDIDATES, LAMBDAS = 30, 21
"""Words of a topic that the page shows, and steps of its slider for lambda."""
DOCUMENTS_SHOWN = 10
"""Documents of each topic that the page lists."""
_CHUNK_CHARACTERS = 400_000
MAX_PERIODS = 60
_UNITS = (("Y", 10), ("Y", 1), ("M", 3), ("M", 1), ("D", 7), ("D", 1))
"""Decades, years, quarters, months, weeks and days."""
_MIN_PERIODS = 12
"""A unit with at least this many periods is fine enough."""
_ISO = re.compile(r"\s*(\d{4})(?:[-/](\d{1,2})(?:[-/](\d{1,2}))?)?(?:[T\s].*)?$")


@dataclass(frozen=True)
class Section:
    """Part of the page that is loaded at once."""

    values: dict[str, Any]
    arrays: dict[str, Array]


def summarize(data: PageData, text: str = "excerpt") -> dict[str, Section]:
    """Return the sections of a page.

    core : topics, words and facts about the fit; all that the first view shows.
    documents : names, labels, times and P(z|d). counts : all counts. rules : how texts are split into words.
    texts0, texts1, ... : the texts in chunks; core has the number of the first document of each chunk.
    """
    if text not in TEXTS:
        raise InputError(f"text must be one of {', '.join(map(repr, TEXTS))}, got {text!r}.")
    texts = _texts(data, text)
    firsts = _chunks(texts)
    sections = {
        "core": _core(data, text, firsts),
        "documents": _documents(data),
        "counts": Section({}, pack_counts(data.counts)),
        "rules": Section(*word_rules(data.vectorizer, data.vocabulary)),
    }
    for number, (start, end) in enumerate(pairwise([*firsts, len(texts)])):
        sections[f"texts{number}"] = Section({"texts": texts[start:end]}, {})
    return sections


class Periods(NamedTuple):
    """Consecutive periods of time and the period of each document."""

    names: list[str]
    """Names of all periods from the first to the last."""
    numbers: npt.NDArray[np.int32]
    """Period of each document, -1 without a time."""


def periods(times: Sequence[Any]) -> Periods | None:
    """Group documents by periods; return None if no time can be parsed.

    Starts with decades and tries finer units until there are _MIN_PERIODS periods, but never more than MAX_PERIODS.
    """
    days = [_as_date(time) for time in times]
    known = np.array([day is not None for day in days], dtype=bool)
    if not known.any():
        return None
    stamps = np.array([day for day in days if day is not None], dtype="datetime64[D]")
    numbers, unit, step = _period_numbers(stamps)
    first = int(numbers.min())
    of_documents = np.full(len(days), -1, dtype=np.int32)
    of_documents[known] = numbers - first
    last = int(numbers.max())
    return Periods([_period_name(number, unit, step) for number in range(first, last + 1)], of_documents)


def _core(data: PageData, text: str, firsts: list[int]) -> Section:
    view = symmetric_view(data.doc_topic, data.doc_weights)
    with single_threaded_blas():
        between = distances(data.topic_word)
    measures = {"coherence": coherence(shown_words(data.word_documents), data.counts).topics, **data.measures}
    inference, inference_arrays = _inference(data)
    n_docs, n_words = data.counts.shape
    values = {
        "format": FORMAT_VERSION,
        "title": data.title,
        "model": data.model_name,
        "n_documents": n_docs,
        "n_words": n_words,
        "n_topics": data.fitted.n_topics,
        "n_tokens": float(data.tokens.sum()),
        "log_step": LOG_STEP,
        "shares": SHARE_STEPS,
        "words": data.vocabulary,
        "relevance": RELEVANCE,
        "least_documents": LEAST_AMOUNT,
        "topic_names": {str(topic): str(name) for topic, name in data.topic_names.items()},
        "measures": {name: _json_numbers(values) for name, values in measures.items()},
        "text": text,
        "text_starts": firsts,
        "history": {name: _json_numbers(values) for name, values in data.history.items()},
        "facts": {name: _json_value(value) for name, value in data.facts.items()},
        "selection": [dict(row) for row in data.selection],
        "selection_reason": data.selection_reason,
        "chosen": data.chosen_size,
        "tree": [dict(node) for node in data.tree],
        "inference": inference,
    }
    arrays = {
        "weights": view.topic_weights,
        "fit": topic_fit(data.doc_topic, view.topic_doc),
        "places": classical_scaling(between).astype(np.float32),
        "distances": between.astype(np.float32),
        "word_totals": np.asarray(data.counts.sum(axis=0), dtype=np.float64).ravel(),
        **pack_topics(data.topic_word),
        **_candidates(data.word_documents),
        **inference_arrays,
    }
    return Section(values, {name: np.ascontiguousarray(array).ravel() for name, array in arrays.items()})


def _inference(data: PageData) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return how the page folds in new texts (folding.js): JSON values and arrays."""
    inference, background = data.fitted.inference, data.fitted.inference.background
    note, arrays = _INFERENCES[inference.kind](inference)
    if background is not None:
        arrays["background"] = np.asarray(background.word_probabilities, dtype=np.float64)
    inactive = np.flatnonzero(~data.fitted.active)
    if inactive.size:
        arrays["inactive"] = inactive.astype(np.uint32)
    values = {
        "kind": inference.kind if inference.is_likelihood else MaximumLikelihood.kind,
        "temperature": inference.temperature,
        "background": 0.0 if background is None else background.share,
        "note": data.folding_note or note,
    }
    return values, arrays


def _likelihood(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return what the page leaves out when it folds in by likelihood."""
    if inference.prior is not None:
        return "New texts are folded in without the model's prior on documents.", {}
    joint = inference.background is not None and inference.background.joint
    return "New texts are folded in with the same share of the background for every text." if joint else "", {}


def _dirichlet(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return alpha, and the sums of lambda over the words."""
    totals = np.asarray(inference.topic_word.sum(axis=1, dtype=np.float64))
    return "", {"alpha": np.asarray(inference.alpha, dtype=np.float64), "totals": totals}


def _logistic_normal(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return mean and precision of the prior of eta."""
    return "", {"mean": inference.prior.mean, "precision": inference.prior.precision}


def _loss(inference: Any) -> tuple[str, dict[str, Array]]:
    """Return that the page folds in by likelihood."""
    return f"New texts are folded in by likelihood, not by the model's loss ({inference.loss.name}).", {}


_INFERENCES = {
    "likelihood": _likelihood, "dirichlet": _dirichlet, "logistic-normal": _logistic_normal, "loss": _loss,
}  # fmt: skip
"""By the kind of an inference: how the page differs from it, and the arrays that the page needs."""


def _candidates(amounts: WordAmounts) -> dict[str, Array]:
    """Return the words of each topic that rank high for some lambda of the slider, with their document numbers."""
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
        "candidates_of_topic": encode_varints(np.array([len(found) for found in topics])),
        "candidate_words": words.astype(np.uint32),
        "candidate_documents": np.asarray(amounts.amounts)[numbers, words].astype(np.float32),
        "candidate_frequency": amounts.words[words].astype(np.float32),
    }


def _documents(data: PageData) -> Section:
    n_docs = data.counts.shape[0]
    ids = data.ids or [str(number) for number in range(n_docs)]
    titles = data.titles or ids
    values: dict[str, Any] = {"titles": [title or name for title, name in zip(titles, ids, strict=True)]}
    if data.ids is not None and values["titles"] != data.ids:
        values["ids"] = data.ids
    shown = data.topic_documents(DOCUMENTS_SHOWN)
    arrays = {
        **pack_weights(data.doc_topic),
        "typical_of_topic": encode_varints(np.array([len(rows) for rows in shown.documents])),
        "typical_documents": np.array([row for rows in shown.documents for row in rows], dtype=np.uint32),
        "typical_nats": np.array([nats for row in shown.scores for nats in row], dtype=np.float32),
    }
    if data.labels is not None:
        values["labels"], arrays["labels_of_document"], arrays["document_labels"] = _labels(data.labels)
    found = None if data.times is None else periods(data.times)
    if found is not None:
        values["periods"] = found.names
        values["times"] = [None if time is None else str(time) for time in data.times or ()]
        arrays["document_periods"] = found.numbers
    return Section(values, arrays)


def _labels(labels: list[list[str]]) -> tuple[list[str], Array, Array]:
    """Return the most frequent labels, sorted, and the numbers of the labels of each document."""
    tally: dict[str, int] = {}
    for names in labels:
        for name in dict.fromkeys(names):
            tally[name] = tally.get(name, 0) + 1
    frequent = sorted(tally, key=lambda name: (-tally[name], name))[:MAX_LABELS]
    number_of = {name: number for number, name in enumerate(sorted(frequent))}
    rows = [[number_of[name] for name in dict.fromkeys(names) if name in number_of] for names in labels]
    sizes = np.array([len(row) for row in rows], dtype=np.int32)
    return sorted(frequent), sizes, np.array([number for row in rows for number in row], dtype=np.int32)


def _texts(data: PageData, text: str) -> list[str]:
    if text == "none":
        return []
    if text == "full":
        if data.texts is None:
            raise InputError("text='full': there are no full texts; give texts=, or use text='excerpt'.")
        return data.texts
    if data.excerpts is not None:
        return data.excerpts
    return [excerpt(full) for full in data.texts or ()]


def _chunks(texts: list[str]) -> list[int]:
    """Return the number of the first document of each chunk of texts."""
    firsts, size = [], _CHUNK_CHARACTERS
    for number, text in enumerate(texts):
        if size >= _CHUNK_CHARACTERS:
            firsts.append(number)
            size = 0
        size += len(text) + 1
    return firsts


def _json_numbers(values: Any) -> list[float | None]:
    """Return floats for JSON, with None for NaN and infinity, which JSON does not have."""
    array = np.asarray(values, dtype=np.float64).ravel()
    return [float(f"{value:.7g}") if np.isfinite(value) else None for value in array]


def _json_value(value: Any) -> Any:
    """Return a value for JSON; NaN and infinity become None."""
    if isinstance(value, bool | str) or value is None:
        return value
    number = float(value)
    return (int(number) if number.is_integer() else number) if np.isfinite(number) else None


def _period_numbers(stamps: Any) -> tuple[Any, str, int]:
    """Return the number of the period of each day, the unit and the step. Dates that are all years stay years."""
    whole_years = bool((stamps == stamps.astype("datetime64[Y]").astype("datetime64[D]")).all())
    units = _UNITS[:2] if whole_years else _UNITS
    best = None
    for unit, step in units:
        numbers = stamps.astype(f"datetime64[{unit}]").astype(np.int64) // step
        size = int(numbers.max() - numbers.min()) + 1
        if best is not None and size > MAX_PERIODS:
            break
        best = numbers, unit, step
        if size >= _MIN_PERIODS and not (unit == "Y" and step == 10):
            break
    assert best is not None
    return best


def _period_name(number: int, unit: str, step: int) -> str:
    start = str(np.array(number * step).astype(f"datetime64[{unit}]"))
    if (unit, step) == ("Y", 10):
        return f"{start}s"
    if (unit, step) == ("M", 3):
        return f"{start[:4]} Q{(int(start[5:7]) + 2) // 3}"
    return start


def _as_date(time: Any) -> date | None:
    """Return the day of a date, of a year given as a number, or of a text that starts with an ISO 8601 date."""
    if isinstance(time, datetime):
        return time.date()
    if isinstance(time, date):
        return time
    if isinstance(time, np.datetime64):
        return _as_date(time.astype("datetime64[D]").item())
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
