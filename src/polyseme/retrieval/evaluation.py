"""Evaluation of search results with judged queries, and TREC files of judgments ("qrels") and rankings ("runs").

MAP, P@10, nDCG@10 and R@100 are computed by ir-measures (the extra `search-evaluation`, imported only here). The
9-point and 11-point averages are means of the interpolated precision at recall 0.1 ... 0.9 and 0.0 ... 1.0: the highest
precision at that recall or a higher one.

Queries are a sample, so a mean over them has a confidence interval: the percentiles of the means of queries drawn with
replacement (bootstrap). Two methods are compared on the same queries with the randomization test: if they were equally
good, each difference could just as well have the opposite sign. The p-value is the share of all combinations of signs
whose mean difference is at least as far from zero. The test needs no assumption about the distribution, and Smucker,
Allan and Carterette (2007) recommend it for these measures over the Wilcoxon test and the sign test.

A line of qrels is `query 0 document relevance`; a line of a run is `query Q0 document rank score tag`. The fields are
separated by white space, so an id cannot contain white space. Files are UTF-8.

References
----------
- Sakai (2006). Evaluating evaluation metrics based on the bootstrap. Proceedings of SIGIR.
- Smucker, Allan and Carterette (2007). A comparison of statistical significance tests for information retrieval
  evaluation. Proceedings of CIKM.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, TypeVar

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.io.files import write_atomically
from polyseme.kernels import Array, Floats, row_blocks
from polyseme.retrieval.scores import DEFAULT_METHOD
from polyseme.utils import RandomStateLike, as_seed, check_integer, check_share

NINE_POINTS = np.arange(1, 10) / 10
ELEVEN_POINTS = np.arange(11) / 10
CONFIDENCE = 0.95
RESAMPLES = 10_000
"""Number of samples of queries for an interval."""
SIGNS = 100_000
"""Number of random combinations of signs in the test, if there are more than this many combinations."""
_NUMBERS_AT_ONCE = 1 << 24
"""Largest number of scores, or of random numbers, in memory."""

_QRELS = ("query", "iteration", "document", "relevance")
_RUN = ("query", "Q0", "document", "rank", "score", "tag")

Number = TypeVar("Number", int, float)

Judgments = Mapping[str, Mapping[str, int]]
Rankings = Mapping[str, Mapping[str, float]]


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class SearchEvaluation:
    """Measures of search results, as means over queries.

    `evaluation[name]` is `evaluation.measures[name]`. Printed, it is a table with confidence intervals.

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
        Relevant documents that are not in the index. They count as not retrieved, as in trec_eval.
    method : str
        Method of the search, or the name given to the rankings.
    """

    measures: dict[str, float]
    by_query: dict[str, dict[str, float]]
    n_queries: int
    unjudged_queries: list[str]
    unknown_queries: list[str]
    unknown_documents: list[str]
    method: str = ""

    def __getitem__(self, name: str) -> float:
        return self.measures[name]

    def __str__(self) -> str:
        lines = [f"{self.method or 'search':<10} {'mean':>6}  {CONFIDENCE:.0%} interval over {self.n_queries} queries"]
        for name, (low, high) in self.intervals().items():
            lines.append(f"{name:<10} {self.measures[name]:6.3f}  {_shown_interval(low, high, '.3f')}")
        return "\n".join(lines)

    def intervals(self, confidence: float = CONFIDENCE, *, random_state: RandomStateLike = 0) -> dict[str, Interval]:
        """Return a confidence interval of each measure over queries, by the bootstrap.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level, between 0 and 1.
        random_state : int, RandomState or Generator, default=0
            Seed of the samples.

        Returns
        -------
        dict
            Lowest and highest value by measure; NaN for a single query.
        """
        values = self._values(list(self.by_query))
        return dict(zip(self.measures, _bootstrap(values, confidence, random_state), strict=True))

    def compare(
        self, other: SearchEvaluation, *, confidence: float = CONFIDENCE, random_state: RandomStateLike = 0
    ) -> SearchComparison:
        """Compare with another method on the same queries.

        Parameters
        ----------
        other : SearchEvaluation
            Evaluation of the other method with the same queries and judgments.
        confidence : float, default=0.95
            Confidence level of the intervals, between 0 and 1.
        random_state : int, RandomState or Generator, default=0
            Seed of the intervals and of the test.

        Returns
        -------
        SearchComparison
            For each measure the difference `other - self`, its interval and a p-value.
        """
        if not isinstance(other, SearchEvaluation):
            raise InputError(f"compare takes another SearchEvaluation, got {type(other).__name__}.")
        if set(self.by_query) != set(other.by_query):
            raise InputError("Both evaluations must have the same queries: evaluate both methods with the same qrels.")
        queries = list(self.by_query)
        differences = other._values(queries) - self._values(queries)
        intervals = _bootstrap(differences, confidence, random_state)
        rows = {
            name: PairedDifference(
                self.measures[name],
                other.measures[name],
                float(column.mean()),
                interval,
                randomization_test(column, random_state=random_state),
                int((column > 0).sum()),
                int((column < 0).sum()),
            )
            for name, column, interval in zip(self.measures, differences.T, intervals, strict=True)
        }
        return SearchComparison((self.method or "first", other.method or "second"), rows, len(queries), confidence)

    def _values(self, queries: Sequence[str]) -> Floats:
        """Return the measures (queries x measures)."""
        return np.array([[self.by_query[query][name] for name in self.measures] for query in queries])


class PairedDifference(NamedTuple):
    """One measure of two methods on the same queries."""

    first: float
    second: float
    difference: float
    """Mean of second - first."""
    interval: Interval
    p_value: float
    """Two-sided p-value of the randomization test."""
    higher: int
    """Number of queries for which the second method is better."""
    lower: int
    """Number of queries for which the second method is worse."""


@dataclass(frozen=True)
class SearchComparison:
    """Comparison of two methods on the same queries; printed, it is a table.

    `comparison[name]` is `comparison.measures[name]`.

    Attributes
    ----------
    methods : tuple of str
        Names of the two methods.
    measures : dict
        A PairedDifference for each measure: first, second, difference, interval, p_value, higher, lower.
    n_queries : int
        Number of queries.
    confidence : float
        Confidence level of the intervals.
    """

    methods: tuple[str, str]
    measures: dict[str, PairedDifference]
    n_queries: int
    confidence: float = CONFIDENCE

    def __getitem__(self, name: str) -> PairedDifference:
        return self.measures[name]

    def __str__(self) -> str:
        widths = [max(6, len(name)) for name in self.methods]
        first, second = (f"{name:>{width}}" for name, width in zip(self.methods, widths, strict=True))
        title = f"{self.n_queries} queries"
        lines = [f"{title:<12} {first}  {second}  difference  {f'{self.confidence:.0%} interval':<16}  {'p':>6}  +/-"]
        for name, row in self.measures.items():
            values = f"{row.first:>{widths[0]}.3f}  {row.second:>{widths[1]}.3f}  {row.difference:>+10.3f}"
            p = f"{row.p_value:6.4f}" if row.p_value >= 0.0001 else "<.0001"
            interval = _shown_interval(*row.interval, "+.3f")
            lines.append(f"{name:<12} {values}  {interval:<16}  {p}  {row.higher}/{row.lower}")
        return "\n".join(lines)


def evaluate_search(
    index: Any,
    queries: Mapping[str, str],
    qrels: Judgments | str | PathLike[str],
    *,
    method: str = DEFAULT_METHOD,
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
    qrels : mapping or path
        Relevance by query id and document id, or a TREC file. A document is relevant if its relevance is above 0.
    method : str, default="bm25+topics"
        Method of the search.
    term : {"tf", "tfidf", "bm25"}, default=None
        Term score of an LSI or PLSI method. None uses the default of the method.
    term_weight : float, default=None
        Weight of the term score, from 0 to 1. None uses the default of the method.

    Returns
    -------
    SearchEvaluation
        The measures.

    Examples
    --------
    >>> from polyseme.retrieval import SearchIndex, evaluate_search
    >>> from polyseme.text import Vectorizer
    >>> words = Vectorizer()
    >>> counts = words.fit_transform(["red fish", "blue fish", "fast car"])
    >>> index = SearchIndex(counts, words.get_feature_names_out(), ids=["d1", "d2", "d3"])
    >>> result = evaluate_search(index, {"q1": "car"}, {"q1": {"d3": 1}}, method="bm25")
    >>> result["MAP"]
    1.0
    """
    texts = {str(name): text for name, text in queries.items()}
    judged = _judgments(qrels)
    relevant = _relevant(judged)
    evaluated = {name: text for name, text in texts.items() if name in relevant}
    if not evaluated:
        raise InputError("No query has a relevant document: the ids of queries and qrels must be the same.")
    rankings = rank_documents(index, evaluated, method=method, term=term, term_weight=term_weight, depth=None)
    by_query = _measures({name: list(scores) for name, scores in rankings.items()}, judged, relevant)
    return SearchEvaluation(
        _means(by_query),
        by_query,
        len(evaluated),
        [name for name in texts if name not in relevant],
        [name for name in judged if name not in texts],
        sorted({doc for name in evaluated for doc in relevant[name]} - set(index.ids)),
        method,
    )


def evaluate_rankings(
    rankings: Rankings | str | PathLike[str], qrels: Judgments | str | PathLike[str], *, method: str = ""
) -> SearchEvaluation:
    """Evaluate rankings that were made before or by another program.

    Parameters
    ----------
    rankings : mapping or path
        Scores by query id and document id, or a TREC file. Documents with equal scores are ranked in the order of the
        mapping or of the ranks in the file.
    qrels : mapping or path
        Relevance by query id and document id, or a TREC file. A document is relevant if its relevance is above 0.
    method : str, default=""
        Name for tables.

    Returns
    -------
    SearchEvaluation
        The measures over all queries with a relevant document. The measures of a query without a ranking are 0, as with
        the option -c of trec_eval, and `unknown_queries` lists it.

    Examples
    --------
    >>> from polyseme.retrieval import evaluate_rankings
    >>> rankings = {"q1": {"d3": 2.5, "d1": 1.5}}
    >>> result = evaluate_rankings(rankings, {"q1": {"d3": 1}})
    >>> result["MAP"]
    1.0
    """
    judged = _judgments(qrels)
    relevant = _relevant(judged)
    if isinstance(rankings, str | PathLike):
        rankings = read_trec_run(rankings)
    by_name = {str(name): scores for name, scores in rankings.items()}
    if not relevant.keys() & by_name.keys():
        raise InputError("No query has a relevant document: the ids of rankings and qrels must be the same.")
    ranked = {
        name: [str(doc) for doc, _ in sorted(by_name.get(name, {}).items(), key=lambda pair: -pair[1])]
        for name in relevant
    }
    by_query = _measures(ranked, judged, relevant)
    return SearchEvaluation(
        _means(by_query),
        by_query,
        len(ranked),
        [name for name in by_name if name not in relevant],
        [name for name in judged if name not in by_name],
        [],
        method,
    )


def rank_documents(
    index: Any,
    queries: Mapping[str, str],
    *,
    method: str = DEFAULT_METHOD,
    term: str | None = None,
    term_weight: float | None = None,
    depth: int | None = 1000,
) -> dict[str, dict[str, float]]:
    """Rank the documents of an index for several queries, for `evaluate_rankings` and `write_trec_run`.

    Parameters
    ----------
    index : SearchIndex
        The index.
    queries : mapping
        Texts of queries by id.
    method : str, default="bm25+topics"
        Method of the search.
    term : {"tf", "tfidf", "bm25"}, default=None
        Term score of an LSI or PLSI method. None uses the default of the method.
    term_weight : float, default=None
        Weight of the term score, from 0 to 1. None uses the default of the method.
    depth : int, default=1000
        Largest number of documents for each query. None ranks all documents with a score other than 0.

    Returns
    -------
    dict
        Scores by query id and document id, best first.

    Examples
    --------
    >>> from polyseme.retrieval import SearchIndex, rank_documents
    >>> from polyseme.text import Vectorizer
    >>> words = Vectorizer()
    >>> counts = words.fit_transform(["red fish", "blue fish", "fast car"])
    >>> index = SearchIndex(counts, words.get_feature_names_out(), ids=["d1", "d2", "d3"])
    >>> list(rank_documents(index, {"q1": "blue fish"}, method="bm25")["q1"])
    ['d2', 'd1']
    """
    if depth is not None:
        check_integer("depth", depth, least=1)
    names, rankings = [str(name) for name in queries], {}
    texts = list(queries.values())
    for part in row_blocks(len(texts), len(index.ids), _NUMBERS_AT_ONCE):
        scores = index.scores(texts[part], method=method, term=term, term_weight=term_weight)
        for name, row in zip(names[part], scores, strict=True):
            best = whole_ranking(row)[:depth]
            rankings[name] = {index.ids[doc]: float(row[doc]) for doc in best}
    return rankings


def randomization_test(differences: Any, *, random_state: RandomStateLike = 0) -> float:
    """Return the two-sided p-value of paired differences, by random signs.

    Parameters
    ----------
    differences : array-like of shape (n,)
        Difference of two methods for each query.
    random_state : int, RandomState or Generator, default=0
        Seed of the signs.

    Returns
    -------
    float
        Share of the combinations of signs whose mean difference is at least as far from 0. For up to 16 differences
        other than 0 these are all combinations; for more they are 100,000 random ones and the given signs.
    """
    values = np.asarray(differences, dtype=np.float64).ravel()
    if not np.isfinite(values).all():
        raise InputError("differences must be finite numbers.")
    values = values[values != 0]
    n = len(values)
    if n == 0:
        return 1.0
    least = abs(values.sum()) * (1 - 1e-9)  # sums of the same differences in another order count as equal
    exact = 2**n <= SIGNS
    total = 2**n if exact else SIGNS
    rng = np.random.default_rng(as_seed(random_state))
    extreme = 0
    for part in row_blocks(total, n, _NUMBERS_AT_ONCE // 8):
        if exact:
            negative = (np.arange(part.start, part.stop)[:, None] >> np.arange(n)) & 1
        else:
            negative = rng.integers(0, 2, size=(part.stop - part.start, n), dtype=np.int8)
        sums = np.where(negative, -values, values).sum(axis=1)
        extreme += int((np.abs(sums) >= least).sum())
    return extreme / total if exact else (extreme + 1) / (total + 1)


def _bootstrap(values: Floats, confidence: float, random_state: RandomStateLike) -> list[Interval]:
    """Return an interval of the mean of each column; all columns use the same samples of rows."""
    confidence = check_share("confidence", confidence)
    n, n_columns = values.shape
    if n < 2:
        return [Interval(np.nan, np.nan)] * n_columns
    rng = np.random.default_rng(as_seed(random_state))
    means = np.concatenate(
        [
            values[rng.integers(0, n, size=(part.stop - part.start, n))].mean(axis=1)
            for part in row_blocks(RESAMPLES, n * n_columns, _NUMBERS_AT_ONCE // 8)
        ]
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _shown_interval(low: float, high: float, form: str) -> str:
    return "needs two queries" if np.isnan(low) else f"{low:{form}} to {high:{form}}"


def _judgments(qrels: Judgments | str | PathLike[str]) -> dict[str, dict[str, int]]:
    if isinstance(qrels, str | PathLike):
        return read_qrels(qrels)
    return {str(name): {str(doc): int(rel) for doc, rel in docs.items()} for name, docs in qrels.items()}


def _relevant(judged: Judgments) -> dict[str, set[str]]:
    """Return the relevant documents of each query that has any."""
    relevant = {name: {doc for doc, rel in docs.items() if rel > 0} for name, docs in judged.items()}
    return {name: docs for name, docs in relevant.items() if docs}


def _measures(
    rankings: Mapping[str, Sequence[str]], judged: Judgments, relevant: Mapping[str, set[str]]
) -> dict[str, dict[str, float]]:
    """Return all measures of each query."""
    by_query = _standard_measures(rankings, {name: judged[name] for name in rankings})
    for name, ranking in rankings.items():
        places = np.flatnonzero([doc in relevant[name] for doc in ranking]) + 1
        for measure, levels in (("9-point", NINE_POINTS), ("11-point", ELEVEN_POINTS)):
            by_query[name][measure] = float(interpolated_precision(places, len(relevant[name]), levels).mean())
    return by_query


def _means(by_query: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    names = next(iter(by_query.values()))
    return {name: float(np.mean([values[name] for values in by_query.values()])) for name in names}


def whole_ranking(scores: Array) -> Array:
    """Return all documents with a score other than zero, best first, ties in the order of the corpus."""
    scored = np.flatnonzero(scores)
    return scored[np.argsort(-scores[scored], kind="stable")]


def interpolated_precision(places: Array, n_relevant: int, levels: Floats) -> Floats:
    """Return the interpolated precision at levels of recall.

    `places` are the ranks of the relevant documents in the ranking, in increasing order. The precision at a level is
    the largest i / places[i - 1] with i / n_relevant at or above the level, and 0 if the recall never reaches it.
    """
    if not n_relevant > 0:
        raise InputError("Recall needs at least one relevant document.")
    n_ranked = len(places)
    precisions = np.arange(1, n_ranked + 1) / places
    best_from = np.maximum.accumulate(precisions[::-1])[::-1] if n_ranked else precisions
    needed = np.maximum(np.ceil(levels * n_relevant - 1e-9).astype(int), 1)
    return np.array([best_from[i - 1] if i <= n_ranked else 0.0 for i in needed])


def _standard_measures(rankings: Mapping[str, Sequence[str]], judged: Judgments) -> dict[str, dict[str, float]]:
    """Return the measures of ir-measures for each query. Scores are made from ranks, so that ties have no effect."""
    try:
        import ir_measures
        from ir_measures import AP, P, R, nDCG
    except ModuleNotFoundError:
        raise MissingExtraError("The evaluation of a search", "search-evaluation") from None
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

    Examples
    --------
    >>> from polyseme.retrieval import read_qrels, write_qrels
    >>> write_qrels({"q1": {"d3": 1}}, "qrels.txt")
    >>> read_qrels("qrels.txt")
    {'q1': {'d3': 1}}
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

    Examples
    --------
    >>> from pathlib import Path
    >>> from polyseme.retrieval import write_qrels
    >>> write_qrels({"q1": {"d3": 1}}, "qrels.txt")
    >>> Path("qrels.txt").read_text()
    'q1 0 d3 1\\n'
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
        File with a line `query Q0 document rank score tag` for each ranked document.

    Returns
    -------
    dict
        Scores by query id and document id, best first; documents with equal scores are in the order of their ranks.

    Examples
    --------
    >>> from polyseme.retrieval import read_trec_run, write_trec_run
    >>> write_trec_run({"q1": {"d3": 2.5, "d1": 1.5}}, "run.txt")
    >>> read_trec_run("run.txt")
    {'q1': {'d3': 2.5, 'd1': 1.5}}
    """
    scores: dict[str, dict[str, float]] = {}
    ranks: dict[str, dict[str, int]] = {}
    for place, (query, _, document, rank, score, _) in _lines(path, _RUN):
        number = _number(float, score, f"{place}: the score must be a finite number, got {score!r}.")
        order = _number(int, rank, f"{place}: the rank must be a whole number, got {rank!r}.")
        _add(scores, query, document, number, place)
        ranks.setdefault(query, {})[document] = order
    return {
        query: dict(sorted(docs.items(), key=lambda pair, query=query: (-pair[1], ranks[query][pair[0]])))  # type: ignore[misc]
        for query, docs in scores.items()
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

    Examples
    --------
    >>> from pathlib import Path
    >>> from polyseme.retrieval import write_trec_run
    >>> write_trec_run({"q1": {"d3": 2.5}}, "run.txt")
    >>> Path("run.txt").read_text()
    'q1 Q0 d3 1 2.5 polyseme\\n'
    """
    name = _field("tag", tag)
    lines = [
        f"{_field('A query id', query)} Q0 {_field('A document id', document)} {rank} {float(score)!r} {name}\n"
        for query, scores in rankings.items()
        for rank, (document, score) in enumerate(sorted(scores.items(), key=lambda pair: -pair[1]), start=1)
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
    """Convert a text to a number. Raise InputError if it is not a finite number."""
    try:
        number = kind(text)
    except ValueError:
        raise InputError(message) from None
    if not math.isfinite(number):
        raise InputError(message)
    return number


def _add(numbers: dict[str, dict[str, Number]], query: str, document: str, number: Number, place: str) -> None:
    documents = numbers.setdefault(query, {})
    if document in documents:
        raise InputError(f"{place}: the document {document!r} occurs twice for the query {query!r}.")
    documents[document] = number


def _field(what: str, value: Any) -> str:
    """Return a value as a string. Raise InputError if a reader would not read it as one field."""
    text = str(value)
    if len(text.split()) != 1 or text != text.strip():
        raise InputError(f"{what} in a TREC file must be one word without white space, got {text!r}.")
    return text
