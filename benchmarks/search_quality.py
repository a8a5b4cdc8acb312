"""Quality of the default search method, compared with BM25: judged queries, known items, hits of BM25 that stay.

    python benchmarks/search_quality.py

Judged queries: MED and CRAN, MAP over all documents. (CRAN's code -1 counts as not relevant.) Known items: 500 queries
in each of five sets, made from one document, which is the only relevant one; MRR. The sets are subjects, distinctive
sentences and halves of these from 20 Newsgroups, and three and six words drawn from a document of AP, which has counts
only. A query that is a part of a text is counted like the texts. --weight, --rest, --pool, --typical, --leading and
--feedback change the constants of the method (`polyseme.retrieval.postings`).

It also prints the gain with the topics of several levels of a run: --level-topics (20) topics, all finer levels that
are kept, and the mean of the latent parts of all levels, which the package does not use.

The constants were chosen on these sets with 50 topics (docs/decisions.md), so the gains are optimistic.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from common import AP, DATA, NEWS_TEXTS, describe_machine, load_counts, load_lines, report_figure, require_file
from polyseme import PLSA
from polyseme.retrieval import SearchIndex, postings
from polyseme.retrieval.queries import SparseRows
from polyseme.retrieval.scores import method_settings
from polyseme.selection.levels import make_levels
from polyseme.text import Vectorizer

METHODS = ("bm25", "bm25+topics")
QUERIES = 500
CONSTANTS = ("weight", "rest", "pool", "typical", "leading", "feedback")


class Items(NamedTuple):
    """A set of known-item queries."""

    name: str
    index: SearchIndex
    queries: list
    rows: np.ndarray


def text_index(texts: list[str], ids: list[str], topics: int, max_iter: int) -> SearchIndex:
    vectorizer = Vectorizer(language="en", min_df=2, max_df=0.5)
    counts = vectorizer.fit_transform(texts)
    return with_model(
        SearchIndex(counts, list(vectorizer.get_feature_names_out()), ids=ids, vectorizer=vectorizer), topics, max_iter
    )


def with_model(index: SearchIndex, topics: int, max_iter: int) -> SearchIndex:
    model = PLSA(topics, random_state=0, dtype="float32", max_iter=max_iter).fit(index.counts)
    return index.set_model(model, model.doc_topic_)


def average_precision(scores: np.ndarray, relevant: np.ndarray) -> float:
    """Return the average precision of the documents with a score above zero."""
    order = np.flatnonzero(scores > 0)
    order = order[np.argsort(-scores[order], kind="stable")]
    places = np.flatnonzero(relevant[order]) + 1
    return float((np.arange(1, len(places) + 1) / places).sum() / relevant.sum())


def print_levels(name: str, index: SearchIndex, queries: list, measure: Callable, topics: int, max_iter: int) -> None:
    """Print the gain over BM25 with the topics of each level below a model, and with the mean of their latent parts."""
    rows, counted = np.arange(index.counts.shape[0]), index.query_counts(queries)
    model = PLSA(topics, random_state=0, dtype="float32", max_iter=max_iter).fit(index.counts)
    models = [model, *(level.model for level in make_levels(model, index.counts, rows, index.counts))]
    first, gains, latent = measure(index.scores(counted, method="bm25")), {}, 0.0
    for level in models:
        index.set_model(level, level.doc_topic_)
        parts = index.scoring.parts(SparseRows.of(counted), method_settings("bm25+topics", None, None))
        gains[f"{level.fitted_.n_topics} topics"] = measure(sum(parts.values())) - first
        latent = latent + parts["latent"] / len(models)
    gains["mean of the levels"] = measure(parts["term"] + latent) - first
    print(f"{name:30} levels: " + "  ".join(f"{level} {gain:+.2f}" for level, gain in gains.items()))


def judged(name: str, options: argparse.Namespace) -> tuple[dict[str, float], float]:
    """Return MAP of the methods, and the share of BM25's first 5 in the first 10 of the default."""
    topics, max_iter = options.topics, options.iterations
    folder = DATA / "ir" / name
    with gzip.open(require_file(folder / "docs.jsonl.gz"), "rt", encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    index = text_index([doc["text"] for doc in documents], [doc["id"] for doc in documents], topics, max_iter)
    with (folder / "queries.jsonl").open(encoding="utf-8") as file:
        texts = {str(row["id"]): row["text"] for row in map(json.loads, file)}
    relevant = {name: np.zeros(len(documents), dtype=bool) for name in texts}
    with (folder / "qrels.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["rel"]) > 0:
                relevant[row["query_id"]][index.row_of(row["doc_id"])] = True
    used = [name for name in texts if relevant[name].any()]
    queries = [texts[name] for name in used]

    def mean_precision(scores: np.ndarray) -> float:
        return 100 * float(np.mean([average_precision(s, relevant[n]) for s, n in zip(scores, used, strict=True)]))

    found = {method: mean_precision(index.scores(queries, method=method)) for method in METHODS}
    share = kept(index, queries)
    print_levels(name, index, queries, mean_precision, options.level_topics, max_iter)
    return found, share


def kept(index: SearchIndex, queries: list) -> float:
    """Return the share of BM25's first 5 documents that are among the first 10 of the default method."""
    shares = []
    for query in queries:
        best = {hit.row for hit in index.search(query, 5, method="bm25")}
        if best:
            shares.append(len(best & {hit.row for hit in index.search(query, 10)}) / len(best))
    return float(np.mean(shares))


def news_items(topics: int, max_iter: int, rng: np.random.Generator) -> list[Items]:
    """Return the three sets of 20 Newsgroups."""
    rows = load_lines(NEWS_TEXTS)
    texts = [row["text"] for row in rows]
    index = text_index(texts, [str(number) for number in range(len(rows))], topics, max_iter)
    rarity = np.asarray(index.scoring.terms.rarity[:])
    subjects, sentences = {}, {}
    for row in rng.permutation(len(rows)).tolist():
        title = rows[row].get("subject") or ""
        if len(subjects) < QUERIES and title and not title.lower().startswith("re:"):
            subjects.setdefault(title, row)
        if len(sentences) < QUERIES:
            best = distinctive_sentence(index, texts[row], rarity)
            if best:
                sentences.setdefault(best, row)
    halves = {" ".join(text.split()[: len(text.split()) // 2]): row for text, row in sentences.items()}
    sets = {"20 Newsgroups, subjects": subjects, "sentences": sentences, "half-sentences": halves}
    return [Items(name, index, list(found), np.array(list(found.values()))) for name, found in sets.items()]


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


def ap_items(topics: int, max_iter: int, rng: np.random.Generator) -> list[Items]:
    """Return the two sets of AP."""
    counts = load_counts(AP)
    words = require_file(AP.with_name("ap_blei.vocab.txt")).read_text(encoding="utf-8").split()
    index = with_model(SearchIndex(counts, words), topics, max_iter)
    sets = []
    for length in (3, 6):
        rows = rng.choice(np.flatnonzero(np.diff(counts.indptr) >= 20), QUERIES, replace=False)
        queries = []
        for row in rows:
            part = slice(*counts.indptr[row : row + 2])
            drawn = rng.choice(
                counts.indices[part], length, replace=False, p=counts.data[part] / counts.data[part].sum(dtype=float)
            )
            query = np.zeros(counts.shape[1])
            query[drawn] = 1
            queries.append(query)
        sets.append(Items(f"AP, {length} words of a document", index, queries, rows))
    return sets


def reciprocal_ranks(items: Items, method: str) -> np.ndarray:
    """Return one over the rank of the known document, for each query; 0 after rank 100."""
    found = np.zeros(len(items.queries))
    for number, (query, row) in enumerate(zip(items.queries, items.rows.tolist(), strict=True)):
        for hit in items.index.search(query, 100, method=method):
            if hit.row == row:
                found[number] = 1 / hit.rank
                break
    return found


def mean_reciprocal_rank(items: Items) -> Callable[[np.ndarray], float]:
    """Return a function from scores (queries x documents) to MRR, times 100."""

    def measure(scores: np.ndarray) -> float:
        known_scores = scores[np.arange(len(scores)), items.rows][:, np.newaxis]
        before = (scores == known_scores) & (np.arange(scores.shape[1]) < items.rows[:, np.newaxis])
        ranks = 1 + (scores > known_scores).sum(axis=1) + before.sum(axis=1)
        return 100 * float(np.where((ranks <= 100) & (known_scores[:, 0] > 0), 1 / ranks, 0).mean())

    return measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=300, help="largest number of iterations of a fit")
    for name in CONSTANTS:
        value = getattr(postings, name.upper())
        parser.add_argument(f"--{name}", type=type(value), default=value, help="constant of the method")
    parser.add_argument("--level-topics", type=int, default=20, help="topics of the coarsest level")
    parser.add_argument("--judged-only", action="store_true")
    options = parser.parse_args()
    describe_machine()
    for name in CONSTANTS:
        setattr(postings, name.upper(), getattr(options, name))
    shares = []
    for name, least in (("med", 4.0), ("cran", 2.0)):
        found, share = judged(name, options)
        shares.append(share)
        gain = found["bm25+topics"] - found["bm25"]
        print(f"{name:30} MAP bm25 {found['bm25']:.2f}  bm25+topics {found['bm25+topics']:.2f}  kept {share:.3f}")
        report_figure(f"MAP on {name.upper()} above BM25, points", f"{gain:+.2f}", f"at least +{least:.0f}")
    if not options.judged_only:
        rng = np.random.default_rng(0)
        sets = [
            *news_items(options.topics, options.iterations, rng), *ap_items(options.topics, options.iterations, rng)
        ]  # fmt: skip
        differences = []
        for items in sets:
            ranks = {method: reciprocal_ranks(items, method) for method in METHODS}
            difference = 100 * (ranks["bm25+topics"] - ranks["bm25"])
            differences.append(difference)
            shares.append(kept(items.index, items.queries))
            error = difference.std() / np.sqrt(len(difference))
            print(
                f"{items.name:30} MRR bm25 {100 * ranks['bm25'].mean():.2f}  bm25+topics "
                f"{100 * ranks['bm25+topics'].mean():.2f}  difference {difference.mean():+.2f} +- {error:.2f}  "
                f"kept {shares[-1]:.3f}"
            )
            report_figure(f"MRR, {items.name}, points above BM25", f"{difference.mean():+.2f}", "at least -0.5")
        for items in sets[3:]:  # only AP, because the sets of 20 Newsgroups take minutes
            measure = mean_reciprocal_rank(items)
            print_levels(
                items.name, items.index, np.array(items.queries), measure, options.level_topics, options.iterations
            )
        total = float(np.concatenate(differences).mean())
        report_figure("MRR of all known items, points above BM25", f"{total:+.2f}", "at least 0")
    report_figure("BM25's first 5 in the first 10, lowest of all sets", f"{min(shares):.1%}", "at least 95%")


if __name__ == "__main__":
    main()
