"""The map of documents, beside openTSNE and UMAP: how well the plane keeps neighbors, and CPU seconds of one thread.

    python benchmarks/map.py [--corpora "20 Newsgroups" packages docstrings] [--documents 2000] [--peers]

Texts are fitted as by `polyseme fit`. Trustworthiness (scikit-learn, 12 neighbors, at most 5,000 documents, drawn at
random) is measured against the Hellinger distance of the topic weights at the finest level that the map uses, and
against the cosine of tf-idf. The accuracy of labels is that of the most frequent label among 10 neighbors in the
plane, and the purity the share of 10 neighbors with the same main topic at the reading level. A name is in its region
if its topic is the most frequent main topic of the 20 documents around it, or of as many as the topic has. Dots are
close if another one is nearer than half of the distance to which the map spreads them. The peers get the square roots
of the topic weights of the finest level, whose Euclidean distance is the Hellinger distance, their default settings,
and one thread.

Packages are those that `apt-cache dumpavail` prints, with their sections as labels. Their long descriptions are in the
English translations of apt, which `apt-get update -o Acquire::Languages=en` fetches; without them there is only one
line of each package, and the bars, which are for long descriptions, are left out.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

import polyseme
from common import NEWS_TEXTS, ROOT, can_import, describe_machine, load_lines, report_figure, report_left_out
from polyseme.datasets import docstrings
from polyseme.layout.names import KERNEL, KERNEL_OF_LARGE_TOPICS, topic_places
from polyseme.layout.places import LARGEST, SPREAD_DISTANCE, document_layout, layout_level

APT_HELPER = "/usr/lib/apt/apt-helper"
LONG_TEXT = 15
"""Counted words per document of the packages that the bars are for, at least."""
MEASURED = 5_000
"""Largest number of documents for trustworthiness, whose memory grows with the square."""


def news() -> pl.DataFrame | None:
    rows = load_lines(NEWS_TEXTS)
    return pl.DataFrame({"text": [row["text"] for row in rows], "label": [row["label"] for row in rows]})


def packages() -> pl.DataFrame | None:
    if shutil.which("apt-cache") is None:
        report_left_out("packages", "there is no apt-cache")
        return None
    translations = [str(path) for path in sorted(Path("/var/lib/apt/lists").glob("*_i18n_Translation-en*"))]
    long_texts = (
        {
            fields["Description-md5"]: fields["Description-en"]
            for fields in control_fields([APT_HELPER, "cat-file", *translations])
            if "Description-md5" in fields and "Description-en" in fields
        }
        if translations
        else {}
    )
    found: dict[str, tuple[str, str]] = {}
    for fields in control_fields(["apt-cache", "dumpavail"]):
        if "Package" in fields:
            text = long_texts.get(fields.get("Description-md5", "")) or fields.get("Description", "")
            found.setdefault(fields["Package"], (text, fields.get("Section", "").rpartition("/")[2]))
    texts, labels = zip(*found.values(), strict=True)
    return pl.DataFrame({"text": texts, "label": labels})


def control_fields(command: list[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of each paragraph that a command prints in the format of Debian's control files."""
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for block in printed.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line.startswith((" ", "\t")) and name:
                fields[name] += "\n" + line.strip()
            elif ":" in line:
                name, _, fields[name] = (part.strip() for part in line.partition(":"))
        yield fields


def of_installed_packages() -> pl.DataFrame | None:
    corpus = docstrings()
    return pl.DataFrame({"text": list(corpus.texts), "label": list(corpus.labels)})


@dataclass(frozen=True)
class Bars:
    """What a map of a corpus has to reach."""

    hellinger: float
    tfidf: float
    labels: float
    seconds: float
    purity: float | None = None


CORPORA: dict[str, tuple[Callable[[], pl.DataFrame | None], Bars | None]] = {
    "20 Newsgroups": (news, Bars(0.98, 0.805, 0.78, 2.5, 0.91)),
    "packages": (packages, Bars(0.955, 0.83, 0.505, 10)),
    "docstrings": (of_installed_packages, None),
}


class Measures:
    """Measures of any places of the documents of a run."""

    def __init__(self, levels: list[Any], counts: Any, labels: list[str]) -> None:
        self._main = np.asarray(levels[0]).argmax(axis=1)
        n_documents = len(self._main)
        self.finest = levels[layout_level(n_documents, [level.shape[1] for level in levels])]
        self._labels = np.unique(labels, return_inverse=True)[1]
        self._rows = np.sort(np.random.default_rng(0).choice(n_documents, min(n_documents, MEASURED), replace=False))
        frequency = np.bincount(counts.indices, minlength=counts.shape[1])
        words = counts.astype(np.float64)
        words.data = (1 + np.log(words.data)) * (1 + np.log(n_documents / frequency[words.indices]))
        words = normalize(words[self._rows])
        self._cosines = np.maximum(1 - (words @ words.T).toarray(), 0)
        np.fill_diagonal(self._cosines, 0)

    def report(self, what: str, places: Any, seconds: float, bars: Bars | None) -> None:
        """Print all measures of a map."""
        places = np.asarray(places, dtype=np.float64)
        near = NearestNeighbors(n_neighbors=11).fit(places).kneighbors(places)[1][:, 1:]
        votes = np.zeros((len(places), self._labels.max() + 1), dtype=np.int32)
        np.add.at(votes, (np.arange(len(places))[:, None], self._labels[near]), 1)
        drawn = places[self._rows]
        units = np.sqrt(np.asarray(self.finest[self._rows], dtype=np.float64))
        for name, value, bar in (
            ("trustworthiness, Hellinger", trustworthiness(units, drawn, n_neighbors=12), bars and bars.hellinger),
            (
                "trustworthiness, tf-idf",
                trustworthiness(self._cosines, drawn, n_neighbors=12, metric="precomputed"),
                bars and bars.tfidf,
            ),
            ("accuracy of labels", (votes.argmax(axis=1) == self._labels).mean(), bars and bars.labels),
            ("purity of the reading level", (self._main[near] == self._main[:, None]).mean(), bars and bars.purity),
        ):
            report_figure(f"{what}: {name}", f"{value:.3f}", "" if bar is None else f"at least {bar}")
        report_figure(f"{what}: CPU seconds", f"{seconds:.2f}", "" if bars is None else f"at most {bars.seconds}")


def report_names(name: str, places: Any, levels: list[Any]) -> None:
    tree = NearestNeighbors(n_neighbors=min(20, len(places))).fit(places.astype(np.float64))
    n_levels = layout_level(len(places), [weights.shape[1] for weights in levels]) + 1
    for number, weights in enumerate(levels[:n_levels]):
        found = topic_places(places, weights, kernel=KERNEL if number else KERNEL_OF_LARGE_TOPICS).places
        main, near = weights.argmax(axis=1), tree.kneighbors(found)[1]
        used, sizes = np.unique(main, return_counts=True)  # a topic that is nowhere the main topic has no region
        around = (main[near[topic, :size]] for topic, size in zip(used, sizes, strict=True))
        own = np.mean([np.bincount(topics).argmax() == topic for topic, topics in zip(used, around, strict=True)])
        report_figure(f"{name}: names of {weights.shape[1]} topics in their region", f"{own:.0%}", "at least 90%")


def report_close(name: str, places: Any) -> None:
    points = places.astype(np.float64)
    nearest = NearestNeighbors(n_neighbors=2).fit(points).kneighbors(points)[0][:, 1]
    close = (nearest < 0.5 * SPREAD_DISTANCE * LARGEST / np.sqrt(len(points))).mean()
    report_figure(f"{name}: close dots", f"{close:.1%}", "at most 0.3%")


def report_instruction_sets(name: str, run: polyseme.Run) -> None:
    """Print how many places differ between processes that are limited to each instruction set of this machine."""
    program = (
        "import sys, numpy; from polyseme import open_run; from polyseme.layout.places import document_layout; "
        "run = open_run(sys.argv[1]); "
        "numpy.save(sys.argv[2], document_layout(run.view.layout_weights(), run.counts, n_jobs=1))"
    )
    environments = runpy.run_path(str(ROOT / "tools" / "each_instruction_set.py"))["environments"]()
    found: dict[str, Any] = {}
    with TemporaryDirectory() as folder:
        for instructions, settings in environments.items():
            file = Path(folder) / f"{instructions}.npy"
            command = [sys.executable, "-W", "ignore", "-c", program, str(run.path), str(file)]
            subprocess.run(command, check=True, env=os.environ | settings)
            found[instructions] = np.load(file).astype(int)
    (first, places), *others = found.items()
    for other, moved in others:
        near = (np.abs(places - moved).max(axis=1) <= 1).mean()
        report_figure(f"{name}: places within a unit of 16 bits, {first} and {other}", f"{near:.2%}", "at least 99%")


def cpu_seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    return work(), time.process_time() - started


def measure(name: str, frame: pl.DataFrame, bars: Bars | None, peers: bool) -> None:
    run = polyseme.fit(frame, text="text", label="label")
    levels = [np.asarray(run.level(n_topics).doc_topic) for n_topics in run.levels]
    counts = run.counts
    print(f"\n{name}: {counts.shape[0]:,} documents, levels of {', '.join(map(str, run.levels))} topics", flush=True)
    if name == "packages" and counts.sum() < LONG_TEXT * counts.shape[0]:
        report_left_out("bars of packages", "apt has no long descriptions")
        bars = None
    measures = Measures(levels, counts, run.view.corpus.labels)
    places, seconds = cpu_seconds(lambda: document_layout(levels, counts, n_jobs=1))
    measures.report(name, places, seconds, bars)
    report_names(name, places, levels)
    report_close(name, places)
    changed = (document_layout(levels, counts, n_jobs=2) != places).sum()
    report_figure(f"{name}: coordinates that differ with two threads", str(changed), "0")
    report_instruction_sets(name, run)
    if not peers:
        return
    units = np.sqrt(measures.finest)
    if can_import("openTSNE"):
        from openTSNE import TSNE

        found, seconds = cpu_seconds(lambda: np.asarray(TSNE(n_jobs=1, random_state=0).fit(units)))
        measures.report(f"{name}, openTSNE", found, seconds, None)
    if can_import("umap", "umap-learn"):
        from umap import UMAP

        UMAP(n_epochs=2, random_state=0).fit_transform(units[:200])  # compiles it
        found, seconds = cpu_seconds(lambda: UMAP(random_state=0, n_jobs=1).fit_transform(units))
        measures.report(f"{name}, UMAP", found, seconds, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", choices=list(CORPORA), default=list(CORPORA))
    parser.add_argument("--documents", type=int, help="documents of each corpus, drawn at random; the bars are for all")
    parser.add_argument("--peers", action="store_true", help="also openTSNE and UMAP, which take minutes")
    arguments = parser.parse_args()
    describe_machine("openTSNE", "umap-learn")
    for name in arguments.corpora:
        load, bars = CORPORA[name]
        frame = load()
        if frame is None:
            continue
        if arguments.documents is not None and arguments.documents < len(frame):
            frame, bars = frame.sample(arguments.documents, seed=0), None
        measure(name, frame, bars, arguments.peers)


if __name__ == "__main__":
    main()
