"""Quality of the default search method, compared with BM25, and the choice of its constants.

    python benchmarks/search_quality.py
    python benchmarks/search_quality.py --choose

Five collections, counted by Vectorizer(language="english") with its defaults:

    MED, CRAN       judged queries (CRAN's code -1 counts as not relevant)
    AP              known items: three or six words drawn from a document, which is the only relevant one
    20 Newsgroups   subjects of threads, which the texts do not contain: all posts of the thread are relevant; and
                    halves of distinctive sentences as known items
    docstrings      known items: the summary of a docstring, which is removed from the document

The measure is the mean average precision (MAP) over the whole ranking, in points; for known items it is the mean
reciprocal rank. A collection counts once: its gain is the mean over its sets of queries. The models are PLSA with 20
and 64 topics. The share of BM25's first five documents that are among the first ten of the default is printed as kept.

--choose does this for all pairs of WEIGHT and FEEDBACK below (`polyseme.retrieval.postings`). For each collection it
takes the pair with the largest mean gain on the other four, and prints the gain on the one that was left out. --models
keeps fitted models in a folder, for a second call.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import polyseme
from common import AP, DATA, NEWS_TEXTS, describe_machine, load_counts, load_lines, report_figure, require_file
from polyseme import PLSA, datasets
from polyseme.retrieval import SearchIndex, postings
from polyseme.retrieval.queries import SparseRows
from polyseme.retrieval.scores import DEFAULT_METHOD, method_settings
from polyseme.text import Vectorizer

SIZES = (20, 64)
QUERIES = 500
WEIGHTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
FEEDBACKS = (5, 10, 20)


class QuerySet(NamedTuple):
    """Queries with their relevant documents."""

    name: str
    counts: sp.csr_array
    relevant: list[np.ndarray]


class Collection(NamedTuple):
    """Documents and sets of queries."""

    name: str
    index: SearchIndex
    sets: list[QuerySet]


def text_index(texts: list[str], ids: list[str] | None = None) -> SearchIndex:
    vectorizer = Vectorizer(language="english")
    counts = vectorizer.fit_transform(texts)
    return SearchIndex(counts, list(vectorizer.get_feature_names_out()), ids=ids, vectorizer=vectorizer)


def judged(name: str) -> Collection:
    folder = DATA / "ir" / name
    documents = load_lines(folder / "docs.jsonl.gz")
    index = text_index([doc["text"] for doc in documents], [doc["id"] for doc in documents])
    with (folder / "queries.jsonl").open(encoding="utf-8") as file:
        texts = {str(row["id"]): row["text"] for row in map(json.loads, file)}
    relevant: dict[str, list[int]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["rel"]) > 0:
                relevant.setdefault(row["query_id"], []).append(index.row_of(row["doc_id"]))
    used = {texts[name]: rows for name, rows in relevant.items()}
    return Collection(name.upper(), index, [text_set("questions", index, used)])


def text_set(name: str, index: SearchIndex, queries: dict[str, list[int]]) -> QuerySet:
    counts = index.query_counts(list(queries))
    return QuerySet(name, counts, [np.array(rows) for rows in queries.values()])


def associated_press(rng: np.random.Generator) -> Collection:
    counts = load_counts(AP)
    words = require_file(AP.with_name("ap_blei.vocab.txt")).read_text(encoding="utf-8").split()
    sets = []
    for length in (3, 6):
        rows = rng.choice(np.flatnonzero(np.diff(counts.indptr) >= 20), QUERIES, replace=False)
        queries = np.zeros((QUERIES, counts.shape[1]))
        for query, row in zip(queries, rows, strict=True):
            part = slice(*counts.indptr[row : row + 2])
            shares = counts.data[part] / counts.data[part].sum(dtype=float)
            query[rng.choice(counts.indices[part], length, replace=False, p=shares)] = 1
        sets.append(QuerySet(f"{length} words of a document", sp.csr_array(queries), list(rows[:, np.newaxis])))
    return Collection("AP", SearchIndex(counts, words), sets)


def newsgroups(rng: np.random.Generator) -> Collection:
    rows = load_lines(NEWS_TEXTS)
    index = text_index([row["text"] for row in rows])
    rarity = np.asarray(index.scoring.terms.rarity[:])
    threads: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        subject = re.sub(r"^(\s*re\s*:)+", "", row.get("subject") or "", flags=re.IGNORECASE)
        threads.setdefault(" ".join(subject.lower().split()), []).append(number)
    long = [subject for subject, posts in threads.items() if 5 <= len(posts) <= 50]
    drawn = {long[i]: threads[long[i]] for i in rng.permutation(len(long))[:QUERIES]}
    halves: dict[str, list[int]] = {}
    for row in rng.permutation(len(rows)).tolist():
        sentence = distinctive_sentence(index, rows[row]["text"], rarity)
        if sentence:
            words = sentence.split()
            halves.setdefault(" ".join(words[: len(words) // 2]), [row])
        if len(halves) == QUERIES:
            break
    sets = [text_set("subjects of threads", index, drawn), text_set("half-sentences", index, halves)]
    return Collection("20 Newsgroups", index, sets)


def distinctive_sentence(index: SearchIndex, text: str, rarity: np.ndarray) -> str | None:
    """Return the sentence of 8 to 25 words whose known words are rarest on average."""
    sentences = [s.strip() for s in re.split(r"(?<=[.!?])\s+|\n\s*\n", text)]
    fitting = [" ".join(s.split()) for s in sentences if 8 <= len(s.split()) <= 25]
    if not fitting:
        return None
    counts = index.query_counts(fitting)
    known = np.diff(counts.indptr)
    weights = counts @ rarity / np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1)
    weights[known < 4] = 0
    return fitting[int(np.argmax(weights))] if weights.max() > 0 else None


def docstrings(rng: np.random.Generator) -> Collection:
    parts = [text.split("\n\n", 1) for text in datasets.docstrings().texts]
    fitting = [(*part, number) for number, part in enumerate(p for p in parts if len(p) == 2)]
    index = text_index([rest for _, rest, _ in fitting])
    summaries: dict[str, list[int]] = {}
    for i in rng.permutation(len(fitting)):
        summary, rest, row = fitting[i]
        if 4 <= len(summary.split()) <= 25 and len(rest.split()) >= 20 and len(summaries) < QUERIES:
            summaries.setdefault(summary, [row])
    return Collection("docstrings", index, [text_set("summaries", index, summaries)])


def collections(*, judged_only: bool) -> Iterator[Collection]:
    yield judged("med")
    yield judged("cran")
    if judged_only:
        return
    yield associated_press(np.random.default_rng(0))
    yield newsgroups(np.random.default_rng(0))
    yield docstrings(np.random.default_rng(0))


def set_model(collection: Collection, size: int, folder: Path | None) -> None:
    """Set the model of an index: from the folder, or fitted and then stored there."""
    path = None if folder is None else folder / f"{collection.name.lower().replace(' ', '_')}_{size}"
    if path is not None and path.is_file():
        model = polyseme.load(path)
    else:
        model = PLSA(size, random_state=0).fit(collection.index.counts)
        if path is not None:
            model.save(path)
    collection.index.set_model(model, model.doc_topic_)


def precisions(index: SearchIndex, queries: QuerySet, method: str) -> np.ndarray:
    """Return the average precision of each query, in points."""
    settings, found = method_settings(method, None, None), []
    rankings = index.scoring.rank(SparseRows.of(queries.counts), settings, len(index.ids))
    for ranking, relevant in zip(rankings, queries.relevant, strict=True):
        found.append(average_precision(ranking.rows, relevant))
    return np.array(found)


def average_precision(rows: np.ndarray, relevant: np.ndarray) -> float:
    places = np.flatnonzero(np.isin(rows, relevant)) + 1
    return 100 * float((np.arange(1, len(places) + 1) / places).sum() / len(relevant))


def kept(index: SearchIndex, queries: QuerySet) -> float:
    """Return the share of BM25's first 5 documents that are among the first 10 of the default method."""
    rows = SparseRows.of(queries.counts)
    bm25, default = (method_settings(method, None, None) for method in ("bm25", DEFAULT_METHOD))
    rankings = index.scoring.rank(rows, bm25, 5), index.scoring.rank(rows, default, 10)
    shares = [np.isin(first.rows, found.rows).mean() for first, found in zip(*rankings, strict=True) if len(first.rows)]
    return float(np.mean(shares))


def collection_gain(collection: Collection, first: list[np.ndarray]) -> tuple[float, float]:
    """Return the mean gain of the default over the precisions of BM25, and its standard error over the queries."""
    differences = [
        precisions(collection.index, queries, DEFAULT_METHOD) - before
        for queries, before in zip(collection.sets, first, strict=True)
    ]
    variances = [difference.var() / len(difference) for difference in differences]
    return float(np.mean([d.mean() for d in differences])), float(np.sqrt(np.sum(variances)) / len(variances))


def print_gains(collection: Collection, first: list[np.ndarray], folder: Path | None) -> list[float]:
    """Print and return the gains of the default, one for each number of topics."""
    gains = []
    for size in SIZES:
        set_model(collection, size, folder)
        gain, error = collection_gain(collection, first)
        gains.append(gain)
        shares = ", ".join(f"{kept(collection.index, queries):.3f} ({queries.name})" for queries in collection.sets)
        before = np.mean([values.mean() for values in first])
        print(
            f"{collection.name:14} {size} topics: MAP bm25 {before:.2f}, {DEFAULT_METHOD} {gain:+.2f} +- {error:.2f}; "
            f"kept {shares}",
            flush=True,
        )
    return gains


def grid_gains(collection: Collection, first: list[np.ndarray], folder: Path | None) -> np.ndarray:
    """Return the gains for all pairs of constants (pairs x numbers of topics)."""
    gains = []
    for size in SIZES:
        set_model(collection, size, folder)
        found = []
        for pair in product(WEIGHTS, FEEDBACKS):
            postings.WEIGHT, postings.FEEDBACK = pair
            found.append(collection_gain(collection, first)[0])
        gains.append(found)
    return np.array(gains).T


def print_choice(names: list[str], gains: np.ndarray) -> None:
    """Print the gains of all pairs, and what the pair chosen on the other collections gains on each.

    gains : collections x pairs x numbers of topics.
    """
    pairs = list(product(WEIGHTS, FEEDBACKS))
    for (weight, feedback), found in zip(pairs, gains.swapaxes(0, 1), strict=True):
        each = "  ".join(f"{name} {a:+.2f} {b:+.2f}" for name, (a, b) in zip(names, found, strict=True))
        print(f"weight {weight} feedback {feedback:2}: {each}  mean {found.mean():+.2f} worst {found.min():+.2f}")
    left_out = []
    for i, name in enumerate(names):
        best = int(np.delete(gains, i, axis=0).mean(axis=(0, 2)).argmax())
        left_out.append(gains[i, best])
        print(f"without {name}: weight {pairs[best][0]} feedback {pairs[best][1]}: {left_out[-1].round(2)} on {name}")
    report_figure("points of MAP above BM25 with constants from the other collections", f"{np.mean(left_out):+.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choose", action="store_true", help="compare all pairs of constants")
    parser.add_argument("--judged-only", action="store_true", help="only MED and CRAN")
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="folder that keeps fitted models")
    options = parser.parse_args()
    describe_machine()
    if options.models is not None:
        options.models.mkdir(parents=True, exist_ok=True)
    names, gains = [], []
    for collection in collections(judged_only=options.judged_only):
        first = [precisions(collection.index, queries, "bm25") for queries in collection.sets]
        names.append(collection.name)
        if options.choose:
            gains.append(grid_gains(collection, first, options.models))
        else:
            gains.append(print_gains(collection, first, options.models))
    if options.choose:
        print_choice(names, np.array(gains))
    else:
        for size, found in zip(SIZES, np.array(gains).T, strict=True):
            what = f"points of MAP above BM25, {size} topics"
            report_figure(f"{what}, mean of {len(names)} collections", f"{found.mean():+.2f}", "above 0")
            report_figure(f"{what}, worst of {len(names)} collections", f"{found.min():+.2f}", "")


if __name__ == "__main__":
    main()
