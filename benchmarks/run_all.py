"""Runs all benchmarks one after the other, and writes what they print, with machine and versions, to RESULTS.md.

    make bench                                 the small form, in an environment of its own with the peers
    make bench BENCH_OPTIONS=--full            the full form
    python benchmarks/run_all.py [--full] [--only sweep text] [--output benchmarks/RESULTS.md]

The small form takes some minutes, and is there to see that all runs and what the ratios are about; quote figures of the
full form, from a machine that does nothing else. Peers get their best documented settings and as many threads. A
benchmark that lacks its data or its peer says so, and the others go on.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parent
RATIO = re.compile(r"(?<![\w.])\d+(?:\.\d+)?x(?!\w)")


@dataclass(frozen=True)
class Benchmark:
    """A script of this folder, and its arguments in either form."""

    title: str
    small: str
    full: str = ""
    script: str = ""
    """without .py; empty: the benchmark's own name"""

    def path(self, name: str) -> str:
        return f"benchmarks/{self.script or name}.py"

    def command(self, name: str, full: bool) -> list[str]:
        """As it is run from the repository's folder."""
        return [self.path(name), *(self.full if full else self.small).split()]


SMALL_SCALE = "--documents 4000 --words 20000 --topics 20 --folder build/scale"
FULL_SCALE = "--folder build/scale"
PICTURE = "--picture benchmarks/pictures/convergence.png"

BENCHMARKS = {
    "sweep": Benchmark("One EM iteration", "--rounds 2 --k 20", "--rounds 5"),
    "solvers": Benchmark(
        "Seconds to a likelihood",
        f"--k 20 --seeds 1 --limit 8 --peer-limit 15 {PICTURE}",
        f"--k 20 50 --seeds 5 --limit 25 --peer-limit 75 {PICTURE}",
    ),
    "lda": Benchmark("LDA by variational Bayes", "--k 20 --passes 1 --iterations 6", "--passes 5 --iterations 16"),
    "text": Benchmark("Counting words", "--rounds 1", "--rounds 3 --more"),
    "dumps": Benchmark("Reading Wikipedia dumps", "--megabytes 15", "--megabytes 150 --parser"),
    "reading_memory": Benchmark("Memory of reading", "--gigabytes 0.1", "--gigabytes 2"),
    "fit_memory": Benchmark("Memory of a fit", "--documents 20000 --topics 20 --max-iter 2", ""),
    "search": Benchmark("A query", "--queries 40 --iterations 3", "--queries 200"),
    "coherence": Benchmark("Coherence", "--documents 500 --topics 20", ""),
    "hierarchy": Benchmark("Topics in a tree", "--speed-only --branching 2 2", ""),
    "tensor": Benchmark("Counts of three ways", "--largest 200000", ""),
    "real": Benchmark("Real-valued data", "--points 20000 40000", ""),
    "planted_topics": Benchmark("The number of topics", "--kinds separated --numbers 5 --seeds 1", ""),
    "overfitting": Benchmark(
        "Overfitting shown and cured",
        "--data ap --k 64 --picture benchmarks/pictures/overfitting.png",
        "--picture benchmarks/pictures/overfitting.png",
    ),
    "correlated": Benchmark("Correlated topics", "--k 5 --iterations 10", ""),
    **{
        f"scale-{part}": Benchmark(title, f"{part} {SMALL_SCALE}", f"{part} {FULL_SCALE}", "scale")
        for part, title in (
            ("corpus", "Writing a corpus to disk"),
            ("disk", "A fit from disk"),
            ("online", "One pass online"),
            ("dask", "Workers of a cluster"),
            ("plan", "Larger clusters, simulated"),
        )
    },
    "explorer": Benchmark("The explorer page", "--corpus synthetic --documents 2000 --iterations 5", ""),
}


@dataclass(frozen=True)
class Outcome:
    """What came of a benchmark."""

    name: str
    command: list[str]
    output: str
    seconds: float
    failure: str

    @property
    def skipped(self) -> bool:
        """Whether it lacked its data or a package, and else did not fail."""
        return "POLYSEME_DATA" in self.failure or "No module named" in self.failure

    def section(self) -> str:
        """Its part of RESULTS.md."""
        told = f"{'Skipped' if self.skipped else 'Failed'}: {self.failure}\n\n" if self.failure else ""
        output = f"```\n{self.output.strip()}\n```\n" if self.output.strip() else ""
        head = f"## {BENCHMARKS[self.name].title}\n`python {' '.join(self.command)}`, {self.seconds:.0f} seconds.\n\n"
        return head + told + output


def run(name: str, full: bool, limit: float) -> Outcome:
    """Runs a benchmark; its errors become a line of the report."""
    command = BENCHMARKS[name].command(name, full)
    print(f"== python {' '.join(command)}", flush=True)
    if any("benchmarks/pictures" in part for part in command):
        (HERE / "pictures").mkdir(exist_ok=True)
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, *command], cwd=HERE.parent, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        return Outcome(name, command, output, limit, f"it was stopped after {limit:.0f} seconds")
    seconds = time.perf_counter() - started
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    print(done.stdout, flush=True)
    if done.returncode:
        print(last, flush=True)
    return Outcome(name, command, done.stdout, seconds, last if done.returncode else "")


def peers() -> list[str]:
    """The peers of requirements.txt with their versions, or that they are not installed."""
    lines = (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    names = [re.split(r"[=<>!~ ]", line)[0] for line in lines if line and not line.startswith("#")]
    return [f"{name} {_version(name)}" for name in ["scikit-learn", *names]]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def ratios(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """(benchmark, line) of every line that prints a ratio such as 12.3x."""
    return [
        (outcome.name, line.strip())
        for outcome in outcomes
        for line in outcome.output.splitlines()
        if RATIO.search(line)
    ]


def report(outcomes: Sequence[Outcome], full: bool) -> str:
    """RESULTS.md: machine and versions, the ratios, and all that was printed."""
    form = "full" if full else "small"
    parts = [
        "# Results of the benchmarks",
        f"Written by `make bench{' BENCH_OPTIONS=--full' if full else ''}` (the {form} form) on "
        f"{time.strftime('%Y-%m-%d')}. Only ratios within one run mean much. Sections name their machine and versions.",
        f"Peers: {', '.join(peers())}.",
    ]
    found = ratios(outcomes)
    if found:
        parts.append("## Ratios")
        cells = [(name, line.strip("|").strip().replace("|", ",")) for name, line in found]
        parts.append("\n".join(["| benchmark | printed |", "|---|---|", *(f"| {a} | {b} |" for a, b in cells)]))
    picture = HERE / "pictures" / "convergence.png"
    if any(outcome.name == "solvers" and not outcome.failure for outcome in outcomes) and picture.is_file():
        parts.append("![Likelihood gap against seconds](pictures/convergence.png)")
    return "\n\n".join([*parts, *(outcome.section() for outcome in outcomes)]) + "\n"


def main(argv: Sequence[str] | None = None) -> list[Outcome]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the full form (an hour or more)")
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), help="some of them")
    parser.add_argument("--limit", type=float, help="seconds for each (150 in the small form, 3600 in the full one)")
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args(argv)
    limit = options.limit or (3600.0 if options.full else 150.0)
    outcomes = []
    for name in options.only or BENCHMARKS:
        outcomes.append(run(name, options.full, limit))
        options.output.write_text(report(outcomes, options.full), encoding="utf-8")  # also if a later one is stopped
    skipped = [outcome.name for outcome in outcomes if outcome.skipped]
    failed = [outcome.name for outcome in outcomes if outcome.failure and not outcome.skipped]
    told = [f" {word}: {', '.join(names)}." for word, names in (("Skipped", skipped), ("Failed", failed)) if names]
    print(f"Written to {options.output}." + "".join(told))
    return outcomes


if __name__ == "__main__":
    sys.exit(any(outcome.failure and not outcome.skipped for outcome in main()))
