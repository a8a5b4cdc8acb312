"""Retrieval by term matching, LSI, PLSI and PLSI*, the methods of Hofmann (1999), compared on judged queries.

Run: .venv/bin/python reproductions/hofmann_1999.py --data FOLDER --collections med cran
FOLDER (default: ir in POLYSEME_DATA) has one folder per collection: docs.jsonl.gz and queries.jsonl with lines
{"id", "text"}, and qrels.tsv with the columns query_id, doc_id and rel. Every judgment other than 0 counts as relevant.
In CRAN the code -1 occurs once per query and marks the document that the question came from. The script needs the
extra "search-evaluation".

The full text of the paper was not available, so its figures are neither shown nor checked: the script compares our own
implementations with each other. Judged queries are used to choose the dimension of LSI (32 to 512 in steps of 8) and,
in the rows "best K", the K of PLSI. Both choices favor the methods that PLSI* is compared with.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from polyseme.io.files import write_atomically
from polyseme.retrieval import SearchIndex, evaluate_search
from polyseme.retrieval.evaluation import NINE_POINTS, interpolated_precision, whole_ranking
from polyseme.retrieval.spaces import SIZES
from support import DATA, Finding, conclude, make_parser, parse_options, table, write_section

DIMENSIONS = range(32, 513, 8)
"""Dimensions of LSI."""

COLLECTIONS = ("med", "cran", "cacm", "cisi")
RECORDED = ("med", "cran")
"""Collections with a table in README.md."""


@dataclass(frozen=True)
class Collection:
    name: str
    index: SearchIndex
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]


@dataclass(frozen=True)
class Figures:
    """Precision figures in percent."""

    nine_points: float
    mean_average_precision: float
    note: str = ""


def read_collection(folder: Path) -> Collection:
    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
        docs = [json.loads(line) for line in file]
    with (folder / "queries.jsonl").open(encoding="utf-8") as file:
        queries = {str(row["id"]): row["text"] for row in map(json.loads, file)}
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            qrels.setdefault(row["query_id"], {})[row["doc_id"]] = int(int(row["rel"]) != 0)
    vectorizer = CountVectorizer(stop_words=list(ENGLISH_STOP_WORDS))
    counts = vectorizer.fit_transform([doc["text"] for doc in docs])
    index = SearchIndex(
        counts, vectorizer.get_feature_names_out(), ids=[doc["id"] for doc in docs], vectorizer=vectorizer
    )
    return Collection(folder.name, index, queries, qrels)


def measured(data: Collection, method: str, **options: object) -> Figures:
    result = evaluate_search(data.index, data.queries, data.qrels, method=method, **options)
    return Figures(100 * result["9-point"], 100 * result["MAP"])


def nine_points(data: Collection, scores: np.ndarray, names: Sequence[str]) -> float:
    """Return 9-point precision only, because LSI is tried with many dimensions."""
    values = []
    for name, row in zip(names, scores, strict=True):
        relevant = [data.index.row_of(doc) for doc, rel in data.qrels[name].items() if rel]
        places = np.flatnonzero(np.isin(whole_ranking(row), relevant)) + 1
        values.append(interpolated_precision(places, len(relevant), NINE_POINTS).mean())
    return float(np.mean(values))


def best_lsi(data: Collection, weighting: str) -> dict[str, Figures]:
    """Return LSI alone and with the term score, each at the dimension with the best 9-point precision."""
    most = min(DIMENSIONS[-1], min(data.index.counts.shape) - 1)
    scoring = data.index.fit_lsi(most, weighting=weighting).scoring
    whole = scoring.lsi
    names = [name for name in data.queries if any(data.qrels.get(name, {}).values())]
    queries = data.index.query_counts([data.queries[name] for name in names])
    terms = scoring.terms.scores(queries, weighting)
    titles = {0.0: f"LSI ({weighting}) alone, best dimension", 0.5: f"LSI + {weighting}, best dimension"}
    rows = {}
    for term_weight, title in titles.items():
        found = {
            dimension: nine_points(
                data, (1 - term_weight) * whole.truncated(dimension).scores(queries) + term_weight * terms, names
            )
            for dimension in [d for d in DIMENSIONS if d <= most] or [most]
        }
        best = max(found, key=lambda dimension: found[dimension])
        scoring.lsi = whole.truncated(best)
        figures = measured(data, "lsi", term=weighting, term_weight=term_weight)
        rows[title] = Figures(figures.nine_points, figures.mean_average_precision, f"K = {best}")
    return rows


def without_seed(data: Collection) -> dict[str, Figures]:
    rows = {}
    for weighting in ("tf", "tfidf"):
        rows[f"cos + {weighting}"] = measured(data, weighting)
        rows |= best_lsi(data, weighting)
    rows["BM25"] = measured(data, "bm25")
    return rows


def with_seed(data: Collection, seed: int) -> dict[str, Figures]:
    """Fit all models once and evaluate the methods that use them."""
    started = time.perf_counter()
    scoring = data.index.fit_models(random_state=seed).scoring
    betas = ", ".join(f"{beta:.2f}" for beta in scoring.average.temperatures)
    print(f"{data.name}, seed {seed}: fitted in {time.perf_counter() - started:.0f} s, beta {betas}", flush=True)
    rows = {}
    for weighting in ("tf", "tfidf"):
        single = {}
        for chosen, size in enumerate(SIZES):
            scoring.model = scoring.average.only(chosen)
            single[size] = measured(data, "plsi-q", term=weighting)
        largest = max(SIZES)
        best = max(single, key=lambda size: single[size].nine_points)
        rows[f"PLSI-U + {weighting}, K = {largest}"] = measured(data, "plsi-u", term=weighting)
        rows[f"PLSI + {weighting}, K = {largest}"] = single[largest]
        rows[f"PLSI + {weighting}, best K"] = single[best]
        rows[f"PLSI* + {weighting}"] = measured(data, "plsi*", term=weighting)
    rows["PLSI* alone"] = measured(data, "plsi*", term_weight=0.0)
    rows["PLSI* + BM25"] = measured(data, "plsi*", term="bm25")
    return rows


ORDER = (
    "cos + {0}",
    "LSI ({0}) alone, best dimension",
    "LSI + {0}, best dimension",
    "PLSI-U + {0}, K = 128",
    "PLSI + {0}, K = 128",
    "PLSI + {0}, best K",
    "PLSI* + {0}",
)
ROWS = [
    *(row.format("tf") for row in ORDER),
    *(row.format("tfidf") for row in ORDER),
    "PLSI* alone",
    "BM25",
    "PLSI* + BM25",
]


def spread(values: Sequence[float]) -> str:
    """Return the median, and the range if there is one."""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{np.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def all_runs(data: Collection, seeds: Sequence[int], stored: Path | None) -> dict[str, list[Figures]]:
    """Return the figures of each row for each seed; figures in the file `stored` are not computed again."""
    done = json.loads(stored.read_text()) if stored is not None and stored.is_file() else {}
    runs: dict[str, list[Figures]] = {}
    for key, work in [("no seed", lambda: without_seed(data))] + [
        (f"seed {seed}", lambda seed=seed: with_seed(data, seed)) for seed in seeds
    ]:
        full_key = f"{data.name}, {key}"
        if full_key not in done:
            done[full_key] = {name: asdict(figures) for name, figures in work().items()}
            if stored is not None:
                write_atomically(stored, json.dumps(done, indent=1).encode())
        for name, figures in done[full_key].items():
            runs.setdefault(name, []).append(Figures(**figures))
    return runs


def report(data: Collection, runs: dict[str, list[Figures]]) -> str:
    """Return the table of one collection."""
    lines = [
        [
            " ".join([name, *(f"({figures.note})" for figures in runs[name] if figures.note)]),
            spread([figures.nine_points for figures in runs[name]]),
            spread([figures.mean_average_precision for figures in runs[name]]),
        ]
        for name in ROWS
    ]
    counts = data.index.counts
    return (
        f"### {data.name}: {counts.shape[0]} documents, {counts.shape[1]} words, {len(data.queries)} queries\n\n"
        f"{table(('method', '9-point precision', 'MAP'), lines)}\n\n{differences(runs)}"
    )


def differences(runs: dict[str, list[Figures]]) -> str:
    """Return the differences between the medians of the methods, in points."""

    def median(name: str, of: Callable[[Figures], float] = lambda figures: figures.nine_points) -> float:
        return float(np.median([of(figures) for figures in runs[name]]))

    sentences = []
    for weighting in ("tf", "tfidf"):
        lsi = [f"LSI ({weighting}) alone, best dimension", f"LSI + {weighting}, best dimension"]
        best = max(median(name) for name in lsi)
        gain = median(f"PLSI* + {weighting}") - best
        sentences.append(f"PLSI* + {weighting} differs by {gain:+.1f} points from the better LSI row with {weighting}.")
    by_map = lambda figures: figures.mean_average_precision  # noqa: E731
    gain = median("PLSI* + BM25", by_map) - median("BM25", by_map)
    sentences.append(f"PLSI* + BM25 differs by {gain:+.1f} points of MAP from BM25.")
    return " ".join(sentences)


def findings(collections: dict[str, dict[str, list[Figures]]]) -> list[Finding]:
    """Return which method is better, by the medians of 9-point precision. No figure of the paper is used."""

    def medians(name: str) -> list[float]:
        return [float(np.median([figures.nine_points for figures in runs[name]])) for runs in collections.values()]

    def compared(claim: str, better: str, than: str) -> Finding:
        figures, held = [], {}
        for term in TERMS:
            pairs = list(zip(*(medians(f"{one} + {term}{_BEST[one]}") for one in (better, than)), strict=True))
            shown = (f"{name} {a:.1f} against {b:.1f}" for name, (a, b) in zip(collections, pairs, strict=True))
            figures.append(f"{term}: {', '.join(shown)}")
            wins = [a > b for a, b in pairs]
            held[term] = "yes" if all(wins) else "not always" if any(wins) else "no"
        alike = len(set(held.values())) == 1
        answer = held["tf"] if alike else ", ".join(f"{word} with {term}" for term, word in held.items())
        return Finding(claim, "", "; ".join(figures), answer)

    return [
        compared("PLSI* beats term matching", "PLSI*", "cos"),
        compared("PLSI* beats LSI", "PLSI*", "LSI"),
        compared("PLSI* beats the best single PLSI", "PLSI*", "PLSI"),
        compared("The best single PLSI beats LSI", "PLSI", "LSI"),
        compared("LSI beats term matching", "LSI", "cos"),
    ]


TERMS = ("tf", "tfidf")
_BEST = {"PLSI*": "", "cos": "", "LSI": ", best dimension", "PLSI": ", best K"}


def picture(folder: Path, collections: dict[str, dict[str, list[Figures]]]) -> None:
    """Plot the median and the range of 9-point precision over seeds for each row."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (4.2 * len(collections) + 2.2, 4.6)
    figure, axes = plt.subplots(1, len(collections), figsize=size, layout="constrained", sharey=True, squeeze=False)
    places = np.arange(len(ROWS))[::-1]
    for ax, (name, runs) in zip(axes[0], collections.items(), strict=True):
        seen = [[figures.nine_points for figures in runs[row]] for row in ROWS]
        ax.hlines(places, [min(values) for values in seen], [max(values) for values in seen], color="C0")
        ax.plot([np.median(values) for values in seen], places, "o", color="C0", label="median and range over seeds")
        ax.set(title=name, xlabel="9-point precision, percent")
        ax.set_yticks(places, ROWS)
        ax.grid(axis="y", linewidth=0.3)
    axes[0, 0].legend(loc="upper right", fontsize=8)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "hofmann_1999.png", dpi=110)
    plt.close(figure)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser(__doc__ or "")
    parser.add_argument("--data", type=Path, default=DATA / "ir", help="folder with a folder for each collection")
    parser.add_argument("--collections", nargs="+", metavar="NAME", help="default: all in the folder")
    parser.add_argument("--seeds", type=int, nargs="+", help="default: 0 to 4; 0 with --quick")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="JSON file with the finished figures, from which a later call continues",
    )
    options = parse_options(parser, argv)
    options.seeds = options.seeds or ([0] if options.quick else [0, 1, 2, 3, 4])
    if options.collections is None:
        options.collections = sorted((path.parent.name for path in options.data.glob("*/docs.jsonl.gz")), key=_place)
    missing = [name for name in options.collections if not (options.data / name / "docs.jsonl.gz").is_file()]
    if missing:
        wanted = ", ".join(missing)
        parser.error(f"there is no {wanted} in {options.data}: give --data, or set POLYSEME_DATA to the data folder")
    if not options.collections:
        print(f"skipped: all, there is no collection in {options.data} (set POLYSEME_DATA to the data folder)")
    return options


def _place(name: str) -> tuple[int, str]:
    return (COLLECTIONS.index(name) if name in COLLECTIONS else len(COLLECTIONS), name)


def main(argv: Sequence[str] | None = None) -> list[Finding]:
    options = arguments(argv)
    runs = {}
    for name in options.collections:
        data = read_collection(options.data / name)
        runs[name] = all_runs(data, options.seeds, options.keep)
        text = report(data, runs[name])
        print(f"\n{text}\n", flush=True)
        if options.readme:
            write_section(f"hofmann_1999 {name}", text)
    if not runs:
        return []
    found = findings(runs)
    if options.pictures is not None:
        picture(options.pictures, runs)
    conclude("hofmann_1999" if tuple(runs) == RECORDED else None, found, options)
    return found


if __name__ == "__main__":
    main()
