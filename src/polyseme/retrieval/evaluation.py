"""How well an index answers judged queries: the field's measures, and the classic papers' interpolated precision.

The measures come from ir-measures (a development dependency, imported only here). The 9- and 11-point averages are of
the precision at recall 0.1 ... 0.9 and 0.0 ... 1.0, each the best precision at that recall or a higher one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats

NINE_POINTS = np.arange(1, 10) / 10
ELEVEN_POINTS = np.arange(11) / 10

Judgments = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class SearchEvaluation:
    """Means over the judged queries, between 0 and 1."""

    measures: dict[str, float]
    """MAP, P@10, nDCG@10, R@100, 9-point, 11-point"""
    by_query: dict[str, dict[str, float]]
    n_queries: int
    """queries with at least one relevant document, which the means are over"""
    unjudged_queries: list[str]
    """queries without a relevant document: they are left out"""
    unknown_queries: list[str]
    """judged, but not among the queries: they are left out"""
    unknown_documents: list[str]
    """judged relevant, but not in the index: they count as not found, as in trec_eval"""

    def __getitem__(self, name: str) -> float:
        return self.measures[name]


def evaluate_search(
    index: Any,
    queries: Mapping[str, str],
    qrels: Judgments,
    *,
    method: str = "plsi*",
    term: str | None = None,
    term_weight: float | None = None,
) -> SearchEvaluation:
    """Ranks all documents for each judged query and measures the rankings.

    `queries` are texts by id; `qrels` are {query id: {document id: relevance}}, where above 0 is relevant.
    """
    texts = {str(name): text for name, text in queries.items()}
    judged = {str(name): {str(doc): int(rel) for doc, rel in docs.items()} for name, docs in qrels.items()}
    relevant = {name: {doc for doc, rel in docs.items() if rel > 0} for name, docs in judged.items()}
    counted = [name for name in texts if relevant.get(name)]
    if not counted:
        raise InputError("No query has a relevant document: the ids of queries and qrels must be the same.")
    scores = index.scores([texts[name] for name in counted], method=method, term=term, term_weight=term_weight)
    rankings = {
        name: [index.ids[row] for row in whole_ranking(row_scores)]
        for name, row_scores in zip(counted, scores, strict=True)
    }
    by_query = _field_measures(rankings, {name: judged[name] for name in counted})
    for name, ranking in rankings.items():
        places = np.flatnonzero([doc in relevant[name] for doc in ranking]) + 1
        for title, levels in (("9-point", NINE_POINTS), ("11-point", ELEVEN_POINTS)):
            by_query[name][title] = float(interpolated_precision(places, len(relevant[name]), levels).mean())
    titles = by_query[counted[0]]
    known = set(index.ids)
    return SearchEvaluation(
        {title: float(np.mean([by_query[name][title] for name in counted])) for title in titles},
        by_query,
        len(counted),
        [name for name in texts if not relevant.get(name)],
        [name for name in judged if name not in texts],
        sorted({doc for name in counted for doc in relevant[name]} - known),
    )


def whole_ranking(scores: Array) -> Array:
    """All documents with a score, best first, equal ones in the order of the corpus; a cosine below zero is a score."""
    scored = np.flatnonzero(scores)
    return scored[np.argsort(-scores[scored], kind="stable")]


def interpolated_precision(places: Array, n_relevant: int, levels: Floats) -> Floats:
    """Precision at levels of recall, from the places (from 1, rising) of the relevant documents that were found.

    At a level it is the best i / place_i of those i with i / n_relevant at or above the level; 0 if recall ends before.
    """
    if not n_relevant > 0:
        raise InputError("Recall needs at least one relevant document.")
    found = len(places)
    precisions = np.arange(1, found + 1) / places
    best_from = np.maximum.accumulate(precisions[::-1])[::-1] if found else precisions
    needed = np.maximum(np.ceil(levels * n_relevant - 1e-9).astype(int), 1)
    return np.array([best_from[i - 1] if i <= found else 0.0 for i in needed])


def _field_measures(rankings: Mapping[str, Sequence[str]], judged: Judgments) -> dict[str, dict[str, float]]:
    """ir-measures of each query. The ranks are its scores, so that ties keep the order users see."""
    try:
        import ir_measures
        from ir_measures import AP, P, R, nDCG
    except ModuleNotFoundError:
        raise ImportError("evaluate needs the package ir-measures: pip install ir-measures.") from None
    names: dict[Any, str] = {AP: "MAP", P @ 10: "P@10", nDCG @ 10: "nDCG@10", R @ 100: "R@100"}
    run = {
        name: {doc: float(len(ranking) - place) for place, doc in enumerate(ranking)}
        for name, ranking in rankings.items()
    }
    by_query = {name: dict.fromkeys(names.values(), 0.0) for name in rankings}
    # negative judgments mean not relevant; to nDCG they would be gains
    gains = {name: {doc: max(rel, 0) for doc, rel in docs.items()} for name, docs in judged.items()}
    for value in ir_measures.iter_calc(list(names), gains, run):
        by_query[value.query_id][names[value.measure]] = float(value.value)
    return by_query
