"""From texts to a page, with as many documents as one machine can hold: time and memory of every stage (Linux).

    python benchmarks/twenty_million.py --documents 200000 [--topics 100] [--folder /tmp] [--keep] [--format parquet]
    python benchmarks/twenty_million.py --documents 20000000 --folder /big/disk --keep

The corpus is made here: documents of 60 words (on average) that look like words, with a date and one of 30 labels. Four
fifths of the words come from one to three of `--topics` planted topics, the others from all words. The stages are the
commands of `polyseme`: fit --shards, search (the first one builds the index), explore (of a sample), transform and
update (of one hundredth as many new documents). Each is a process of its own. Anonymous and resident memory of the
process with its children are sampled twenty times per second; resident memory includes mapped files that the system may
drop. The parts of `fit` are those of its `stages.json`. The last lines compare the topics with the planted ones: the
affinity (sum of sqrt(p q)) of each planted topic with the fitted topic that is assigned to it.

--stages names the stages to run, on the corpus and the run in --folder. --fit-option=--checkpoint=100000 stores no
state of the fit, which takes a third copy of the weights of all documents on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.optimize import linear_sum_assignment

from common import PROC, describe_machine, report_figure, skip

Array = npt.NDArray[Any]
WORDS, LENGTH = 50_000, 60
LABELS = 30
_BLOCK = 50_000
_SYLLABLES = [a + b for a in ("br", *"bdfgklmnprstvz") for b in "aiou"]
_FIRST_DAY = np.datetime64("2015-01-01")


def make_words(n: int) -> list[str]:
    """Return distinct words of two to four syllables."""
    rng = np.random.default_rng(1)
    words: dict[str, None] = {}
    while len(words) < n:
        for count in rng.integers(2, 5, n):
            words["".join(_SYLLABLES[i] for i in rng.integers(0, len(_SYLLABLES), count))] = None
    return list(words)[:n]


def planted_topics(n_topics: int, n_words: int = WORDS) -> Array:
    """Return P(w|z): every topic has its own order of the words, with probabilities that fall as rank^-1.1."""
    rng = np.random.default_rng(2)
    shares = 1 / np.arange(1.0, n_words + 1) ** 1.1
    topics = np.empty((n_topics, n_words))
    for topic in topics:
        topic[rng.permutation(n_words)] = shares / shares.sum()
    return topics


class Corpus:
    """Texts with planted topics; block i depends on i only."""

    def __init__(self, n_topics: int) -> None:
        self.words = np.array(make_words(WORDS), dtype=object)
        self.topics = planted_topics(n_topics)
        shares = 1 / np.arange(1.0, WORDS + 1)
        self._drawn = [_quantiles(topic) for topic in [*self.topics, shares / shares.sum()]]

    def block(self, number: int, size: int) -> Iterator[tuple[str, str, str]]:
        """Yield text, label and date of the documents of a block."""
        rng = np.random.default_rng([3, number])
        n_topics = len(self.topics)
        lengths = rng.poisson(LENGTH, size).clip(min=5)
        total = int(lengths.sum())
        of_document = rng.integers(0, n_topics, (size, 3))
        which = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2])[rng.integers(0, 10, total)]
        topic = of_document[np.repeat(np.arange(size), lengths), which]
        topic[rng.random(total, dtype=np.float32) < 0.2] = n_topics
        table = np.stack(self._drawn)
        tokens = table[topic, rng.integers(0, table.shape[1], total)]
        words, ends = self.words[tokens].tolist(), np.cumsum(lengths).tolist()
        labels = (of_document[:, 0] % LABELS).tolist()
        days = (_FIRST_DAY + rng.integers(0, 3650, size)).astype(str).tolist()
        start = 0
        for end, label, day in zip(ends, labels, days, strict=True):
            yield " ".join(words[start:end]), f"group {label}", day
            start = end


def _quantiles(shares: Array, n: int = 1 << 18) -> npt.NDArray[np.int32]:
    """Return n words, each as often as its share says, from which words are drawn uniformly."""
    return np.searchsorted(np.cumsum(shares), (np.arange(n) + 0.5) / n).clip(max=len(shares) - 1).astype(np.int32)


def write_corpus(path: Path, n_documents: int, n_topics: int, first_block: int = 0) -> None:
    corpus = Corpus(n_topics)
    if path.suffix == ".parquet":
        path.mkdir()  # a folder of files
    for start in range(0, n_documents, _BLOCK):
        number, size = first_block + start // _BLOCK, min(_BLOCK, n_documents - start)
        rows = [(f"d{number}x{row}", *document) for row, document in enumerate(corpus.block(number, size))]
        if path.suffix == ".parquet":
            names = ("id", "text", "label", "date")
            pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row").write_parquet(
                path / f"part-{number:08d}.parquet"
            )
        else:
            with path.open("a", encoding="ascii") as file:
                file.writelines(
                    f'{{"id": "{name}", "text": "{text}", "label": "{label}", "date": "{day}"}}\n'
                    for name, text, label, day in rows
                )


def memory_of(process: int) -> tuple[int, int]:
    """Return anonymous and resident memory of a process and its children, in bytes."""
    anonymous = resident = 0
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has ended
        return 0, 0
    for line in lines:
        anonymous += int(line.split()[1]) * 1024 if line.startswith("RssAnon") else 0
        resident += int(line.split()[1]) * 1024 if line.startswith("VmRSS") else 0
    for child in children:
        more = memory_of(int(child))
        anonymous, resident = anonymous + more[0], resident + more[1]
    return anonymous, resident


def stages_done(output: Path) -> int:
    """Return how many stages an unfinished fit has stored."""
    for path in output.parent.glob(f".{output.name}.*/stages.json"):
        try:
            return len(json.loads(path.read_bytes())["stages"])
        except (OSError, ValueError, KeyError):  # it is being replaced
            return -1
    return 0


PARTS = ("fit", "search", "explore", "transform", "update")
STAGES = ("read", "counted", "chosen", "fitted", "levels", "written")


def run_stage(name: str, command: list[str], folder: Path, output: Path | None = None) -> None:
    """Run a process, and print its time and peaks of memory; those of the stages of a fit, if it writes `output`."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    stage, begun, peaks = 0, start, [0, 0]
    most, disk = [0, 0], 0
    tick = 0
    while process.poll() is None:
        peaks = [max(pair) for pair in zip(peaks, memory_of(process.pid), strict=True)]
        if output is not None and tick % 4 == 0:
            done = stages_done(output)
            if done > stage:
                print_line(f"{name}: {STAGES[stage]}", time.perf_counter() - begun, peaks)
                most = [max(pair) for pair in zip(most, peaks, strict=True)]
                stage, begun, peaks = done, time.perf_counter(), [0, 0]
        if tick % 100 == 0:
            disk = max(disk, disk_use(folder))
        tick += 1
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed.")
    if stage:
        print_line(f"{name}: {STAGES[stage]}", time.perf_counter() - begun, peaks)
    print_line(name, time.perf_counter() - start, [max(pair) for pair in zip(most, peaks, strict=True)], disk)


def print_line(name: str, seconds: float, peaks: list[int], disk: int = 0) -> None:
    more = f" {disk / 1e9:8.2f} GB" if disk else ""
    print(f"{name:<24}{seconds:9.1f} s {peaks[0] / 1e9:8.2f} GB {peaks[1] / 1e9:8.2f} GB{more}", flush=True)


def disk_use(folder: Path) -> int:
    """Return the size of all files below a folder; a file with several links counts once."""
    sizes: dict[int, int] = {}
    for root, _, names in os.walk(folder):
        for file in names:
            try:
                status = os.stat(os.path.join(root, file))
            except OSError:  # it was removed
                continue
            sizes[status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


def print_quality(path: Path, n_topics: int) -> None:
    """Print how near the topics of a run are to the planted ones."""
    import polyseme

    run = polyseme.open_run(path)
    column = {word: place for place, word in enumerate(make_words(WORDS))}
    fitted = np.zeros((run.model.components_.shape[0], WORDS))
    for place, word in enumerate(run.vocabulary):
        if word in column:
            fitted[:, column[word]] += run.model.components_[:, place]
    affinity = np.sqrt(planted_topics(n_topics)) @ np.sqrt(fitted).T
    found = affinity[linear_sum_assignment(-affinity)]
    report_figure("planted topics with affinity of at least 0.8", f"{(found >= 0.8).sum()} of {n_topics}")
    report_figure("mean affinity", f"{found.mean():.3f}")
    info = run.info
    report_figure("solver, iterations", f"{info.solver}, {info.iterations}")
    report_figure("documents, words, tokens", f"{info.documents:,}, {info.words:,}, {info.tokens:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--format", choices=["jsonl", "parquet"], default="jsonl")
    parser.add_argument("--folder", type=Path, help="folder for the files; a temporary one without it")
    parser.add_argument("--keep", action="store_true", help="keep the corpus and the run, and use a corpus that exists")
    parser.add_argument("--stages", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--fit-option", action="append", default=[], help="further option of polyseme fit")
    parser.add_argument("--write", type=Path, help="write a corpus and end")
    parser.add_argument("--first-block", type=int, default=0)
    options = parser.parse_args()
    if options.write:
        write_corpus(options.write, options.documents, options.topics, options.first_block)
        return
    if not PROC.exists():
        skip(f"Memory is read from {PROC}, which exists on Linux only.")
    describe_machine("polars")
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        measure(options, folder.resolve())
    finally:
        if not options.keep:
            shutil.rmtree(folder)


def measure(options: argparse.Namespace, folder: Path) -> None:
    python = [sys.executable, "-m", "polyseme.cli"]
    corpus, new = folder / f"corpus.{options.format}", folder / f"new.{options.format}"
    made = [sys.executable, __file__, "--topics", str(options.topics)]
    print(f"{'stage':<24}{'time':>11} {'anonymous':>11} {'resident':>11} {'disk':>11}")
    if not corpus.exists():
        run_stage("corpus", [*made, "--documents", str(options.documents), "--write", str(corpus)], folder)
    n_new = max(options.documents // 100, 100)
    shutil.rmtree(new) if new.is_dir() else new.unlink(missing_ok=True)
    subprocess.run(
        [*made, "--documents", str(n_new), "--first-block", "1000000", "--write", str(new)], check=True, cwd=folder
    )
    size = disk_use(corpus) if corpus.is_dir() else corpus.stat().st_size
    report_figure("size of the corpus", f"{size / 1e6:,.0f} MB")
    run, query = folder / "run", " ".join(make_words(WORDS)[:2])
    fit = ["fit", str(corpus), "--shards", "-k", str(options.topics), "-o", str(run), "--no-page", "--overwrite"]
    commands = {
        "fit": [*fit, *options.fit_option],
        "search": ["search", str(run), query],
        "explore": ["explore", str(run), "-o", str(folder / "page.html")],
        "transform": ["transform", str(run), str(new), "-o", str(folder / "new-topics.csv")],
        "update": ["update", str(run), str(new)],
    }
    for name in options.stages:
        run_stage(name, [*python, *commands[name]], folder, run if name == "fit" else None)
        if name == "search":
            run_stage("search again", [*python, *commands[name]], folder)
        report_figure(f"size of the run after {name}", f"{disk_use(run) / 1e6:,.0f} MB")
    print_quality(run, options.topics)


if __name__ == "__main__":
    main()
