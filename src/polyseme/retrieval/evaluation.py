"""Evaluation of search results with judged queries.

MAP, P@10, nDCG@10 and R@100 are computed by ir-measures (a development dependency, imported only here). The 9-point and
11-point averages are means of the interpolated precision at recall 0.1 ... 0.9 and 0.0 ... 1.0: the highest precision
at that recall or a higher one.
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
    """Measures of search results, as means over queries.

    `evaluation[name]` is `evaluation.measures[name]`.

    Attributes
    ----------
    measures : dict
        Means of "MAP", "P@10", "nDCG@10", "R@100", "9-point" and "11-point" over the queries, between 0 and 1.
    by_query : dict
        The measures of each query.
    n_queries : int
        Number of queries with at least one relevant document. Other queries are ignored.
    unjudged_queries : list of str
        Queries without a relevant document.
    unknown_queries : list of str
        Judged queries that are not among the queries.
    unknown_documents : list of str
        Relevant documents that are not in the index. They count as not found, as in trec_eval.
    """

    measures: dict[str, float]
    by_query: dict[str, dict[str, float]]
    n_queries: int
    unjudged_queries: list[str]
    unknown_queries: list[str]
    unknown_documents: list[str]

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
    """Rank all documents for each judged query, and evaluate the rankings.

    Parameters
    ----------
    index : SearchIndex
        The index.
    queries : mapping
        Texts of queries by id.
    qrels : mapping
        Relevance by query id and document id. A document is relevant if the number is above 0.
    method : str, default="plsi*"
        Method of the search.
    term : {"tf", "tfidf", "bm25"}, default=None
        Term score of an LSI or PLSI method. None uses the default of the method.
    term_weight : float, default=None
        Weight of the term score, from 0 to 1. None uses the default of the method.

    Returns
    -------
    SearchEvaluation
        The measures.
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
    by_query = _standard_measures(rankings, {name: judged[name] for name in counted})
    for name, ranking in rankings.items():
        places = np.flatnonzero([doc in relevant[name] for doc in ranking]) + 1
        for measure, levels in (("9-point", NINE_POINTS), ("11-point", ELEVEN_POINTS)):
            by_query[name][measure] = float(interpolated_precision(places, len(relevant[name]), levels).mean())
    measures = by_query[counted[0]]
    known = set(index.ids)
    return SearchEvaluation(
        {measure: float(np.mean([by_query[name][measure] for name in counted])) for measure in measures},
        by_query,
        len(counted),
        [name for name in texts if not relevant.get(name)],
        [name for name in judged if name not in texts],
        sorted({doc for name in counted for doc in relevant[name]} - known),
    )


def whole_ranking(scores: Array) -> Array:
    """Return all documents with a score other than zero, best first, ties in the order of the corpus."""
    scored = np.flatnonzero(scores)
    return scored[np.argsort(-scores[scored], kind="stable")]


def interpolated_precision(places: Array, n_relevant: int, levels: Floats) -> Floats:
    """Return the interpolated precision at levels of recall.

    `places` are the ranks of the relevant documents that were found, in increasing order. The precision at a level is
    the largest i / places[i - 1] with i / n_relevant at or above the level, and 0 if the recall never reaches it.
    """
    if not n_relevant > 0:
        raise InputError("Recall needs at least one relevant document.")
    found = len(places)
    precisions = np.arange(1, found + 1) / places
    best_from = np.maximum.accumulate(precisions[::-1])[::-1] if found else precisions
    needed = np.maximum(np.ceil(levels * n_relevant - 1e-9).astype(int), 1)
    return np.array([best_from[i - 1] if i <= found else 0.0 for i in needed])


def _standard_measures(rankings: Mapping[str, Sequence[str]], judged: Judgments) -> dict[str, dict[str, float]]:
    """Return the measures of ir-measures for each query. Scores are made from ranks, so that ties have no effect."""
    try:
        import ir_measures
        from ir_measures import AP, P, R, nDCG
    except ModuleNotFoundError:
        raise ImportError("evaluate_search needs the package ir-measures: pip install ir-measures.") from None
    names: dict[Any, str] = {AP: "MAP", P @ 10: "P@10", nDCG @ 10: "nDCG@10", R @ 100: "R@100"}
    run = {
        name: {doc: float(len(ranking) - place) for place, doc in enumerate(ranking)}
        for name, ranking in rankings.items()
    }
    by_query = {name: dict.fromkeys(names.values(), 0.0) for name in rankings}
    # negative judgments mean not relevant, but nDCG would use them as gains
    gains = {name: {doc: max(rel, 0) for doc, rel in docs.items()} for name, docs in judged.items()}
    for value in ir_measures.iter_calc(list(names), gains, run):
        by_query[value.query_id][names[value.measure]] = float(value.value)
    return by_query
