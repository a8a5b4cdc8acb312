"""Run all benchmarks and write their output, with the machine and the versions, to RESULTS.md.

    make bench                                 the small form, in an environment with the other packages
    make bench BENCH_OPTIONS=--full            the full form
    python benchmarks/run_all.py [--full] [--only sweep text] [--output benchmarks/RESULTS.md]

The small form takes about fourteen minutes on two cores. It checks that everything runs and shows the magnitude
of the ratios. To quote figures, use the full form (estimated at two hours) on an otherwise idle machine. Other packages
use their best documented settings, which the docstring of each script lists, and the same number of threads. The runner
restricts everything to two cores. Benchmarks without their data or browser are listed as skipped, and packages that
cannot be installed or imported as left out.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import ROOT, THREADS
from report import Outcome, draw_ratios, ratios, report

HERE = Path(__file__).parent
LIMITED = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB")


@dataclass(frozen=True)
class Benchmark:
    """A script of this folder and its arguments in both forms; {pictures} is the folder of the plots."""

    title: str
    small: str
    full: str = ""
    script: str = ""
    """File name without .py; if empty, the name of the benchmark."""

    def path(self, name: str) -> str:
        return f"benchmarks/{self.script or name}.py"

    def command(self, name: str, full: bool, pictures: Path) -> list[str]:
        """Return the command, to be run in the folder of the repository."""
        folder = pictures.relative_to(ROOT).as_posix() if pictures.is_relative_to(ROOT) else str(pictures)
        arguments = (self.full if full else self.small).split()
        return [self.path(name), *(word.replace("{pictures}", folder) for word in arguments)]


SMALL_SCALE = "--documents 4000 --words 20000 --topics 20 --folder build/scale-small"
FULL_SCALE = "--folder build/scale-full"

BENCHMARKS = {
    "tools": Benchmark(
        "Complete fits",
        "--documents 1000 --k 10 --picture {pictures}/tools.png",
        "--picture {pictures}/tools.png",
    ),
    "sweep": Benchmark(
        "One EM iteration",
        "--rounds 1 --k 50 --picture {pictures}/sweep.png",
        "--rounds 5 --picture {pictures}/sweep.png",
    ),
    "losses": Benchmark("Losses of NMF", "--quick", ""),
    "solvers": Benchmark(
        "Seconds to a likelihood",
        "--k 20 --seeds 1 --limit 6 --peer-limit 6 --picture {pictures}/convergence.png",
        "--k 20 50 --seeds 5 --limit 25 --peer-limit 75 --picture {pictures}/convergence.png",
    ),
    "lda": Benchmark("LDA by variational Bayes", "--k 10 --passes 1 --iterations 6", "--passes 5 --iterations 16"),
    "samplers": Benchmark("Completion perplexity", "--data poliblog --documents 1000 --limit 6", ""),
    "batch": Benchmark("Many small fits", "--fits 4 --single 2", ""),
    "text": Benchmark("Counting words", "--rounds 1", "--rounds 3 --more"),
    "dumps": Benchmark("Reading Wikipedia dumps", "--megabytes 15", "--megabytes 150 --parser"),
    "documents": Benchmark("Words of PDF and HTML files", "--articles 1", ""),
    "junk": Benchmark("Topics that do not describe a subject", "--corpora italian", ""),
    "seeds": Benchmark("Topics with seed words", "--corpora med --topics 10", ""),
    "reading_memory": Benchmark("Memory of reading", "--gigabytes 0.1", "--gigabytes 2"),
    "fit_memory": Benchmark(
        "Memory of a fit", "--documents 20000 --topics 20 --max-iter 2 --rows 20000 --words 5000 --vocabulary 50000", ""
    ),
    "many_topics": Benchmark("Thousands of topics", "--k 100 400 --iterations 2", ""),
    "search": Benchmark("Search queries", "--queries 100", ""),
    "search-large": Benchmark(
        "Search queries, 200,000 documents", "--documents 40000 --no-lsi", "--documents 200000", "search"
    ),
    "search_quality": Benchmark("Quality of search", "--judged-only", ""),
    "run_scale": Benchmark("A run of a million documents", "--documents 20000", ""),
    "twenty_million": Benchmark(
        "From texts to a page, every stage", "--documents 20000 --topics 20", "--documents 2000000"
    ),
    "search_scale": Benchmark("Search in a million documents", "--documents 50000 --queries 20", ""),
    "search_start": Benchmark("Start of a search", "--documents 2000 --topics 5 --searches 3", ""),
    "coherence": Benchmark("Coherence", "--documents 500 --topics 20", ""),
    "distinctive": Benchmark("Words that distinguish labels, at random labels", "--repetitions 1", ""),
    "shown_words": Benchmark("Words shown and typical documents", "--k 20 --seeds 1", ""),
    "names": Benchmark("Names of topics", "--corpora docstrings --quick", ""),
    "map": Benchmark("Map of documents", "--corpora docstrings --documents 1500", "--peers"),
    "languages": Benchmark("Languages of documents", "", ""),
    "hierarchy": Benchmark("Hierarchical topics", "--speed-only", ""),
    "tensor": Benchmark("Three-way counts", "--largest 200000", ""),
    "real": Benchmark("Real-valued data", "--points 20000 40000", ""),
    "planted_topics": Benchmark("The number of topics", "--kinds separated --numbers 5 --seeds 1", ""),
    "reading": Benchmark("Topics to read", "--parts planted unigrams levels --quick", ""),
    "starts": Benchmark("Starts of a given number of topics", "--quick", ""),
    "interval_coverage": Benchmark(
        "Coverage of intervals", "--topics 5 --documents 200 --lengths 100 --repetitions 2 --resamples 10", ""
    ),
    "resamples": Benchmark("Resamples of 20 Newsgroups", "--documents 500 --resamples 3 --topics 5", ""),
    "short_documents": Benchmark("Documents that are too short", "--repetitions 1 --cells 1", ""),
    "word_contrasts": Benchmark("Signs of word contrasts", "--topics 5 --lengths 100 --repetitions 1", ""),
    "blogs": Benchmark("Groups, effects and time of weblogs", "--topics 5 --resamples 5", ""),
    "effects_peers": Benchmark(
        "Effects of metadata", "--topics 5 --documents 500 --resamples 5 --repetitions 1", "--repetitions 20"
    ),
    "residual_test": Benchmark("Test for missing topics", "--documents 200 --lengths 30 --repetitions 1", ""),
    "living": Benchmark("New topics in updates", "--only planted --corpora 1", ""),
    "modalities": Benchmark("Documents in two languages", "--corpora 1", ""),
    "minimum_volume": Benchmark("Topics of small volume", "--seeds 1 --strengths 0.25", ""),
    "cells": Benchmark("Programs of blood cells", "--numbers 5 5 --fits 2 --only ours", ""),
    "consensus": Benchmark("Topics that many fits share", "--only planted", ""),
    "short_texts": Benchmark("Short texts", "--quick", ""),
    "judging": Benchmark("Held-out scores and choices based on them", "--quick", ""),
    "overfitting": Benchmark(
        "Overfitting of plain and tempered EM",
        "--data ap --k 64 --picture {pictures}/overfitting.png",
        "--picture {pictures}/overfitting.png",
    ),
    "labels": Benchmark("Classification with few labels", "--documents 3000 --draws 1", ""),
    "correlated": Benchmark("Correlated topics", "--k 5 --iterations 10", ""),
    **{
        f"scale-{part}": Benchmark(title, f"{part} {SMALL_SCALE}{more}", f"{part} {full} {FULL_SCALE}{more}", "scale")
        for part, title, full, more in (
            ("corpus", "Writing a corpus to disk", "--documents 2000000", ""),
            ("disk", "A fit from disk", "--documents 2000000", ""),
            ("online", "One online pass", "--documents 100000", " --peers"),
            ("lda", "One pass of online LDA", "--documents 1000000 --peer-documents 100000", " --peers"),
            ("dask", "Workers of a cluster", "--documents 1000000", ""),
            ("plan", "Simulation of larger clusters", "--documents 1000000", ""),
        )
    },
    "dask_overhead": Benchmark(
        "Time of an iteration on workers", SMALL_SCALE, f"--documents 20000 1000000 {FULL_SCALE}"
    ),
    "explorer": Benchmark("Explorer page", "--corpus synthetic --documents 2000 --iterations 5", ""),
}


def run(name: str, full: bool, limit: float, pictures: Path) -> Outcome:
    """Run a benchmark and return its output; an error becomes a line of the report."""
    benchmark = BENCHMARKS[name]
    command = benchmark.command(name, full, pictures)
    print(f"== python {' '.join(command)}", flush=True)
    environment = os.environ | {f"{library}_NUM_THREADS": str(THREADS) for library in LIMITED}
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=environment, text=True, encoding="utf-8", errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            output, errors = child.communicate(timeout=limit)
            message = (errors.strip().splitlines() or ["no message"])[-1] if child.returncode else ""
        except subprocess.TimeoutExpired:
            _end(child)
            output, message = child.communicate()[0], f"it was stopped after {limit:.0f} seconds"
        except BaseException:
            _end(child)
            raise
    seconds = time.perf_counter() - started
    print(output + message, f"({seconds:.0f} seconds)", flush=True)
    return Outcome(name, benchmark.title, " ".join(command), output, seconds, child.returncode, message)


def _end(child: subprocess.Popen[str]) -> None:
    """End a benchmark and the processes that it started."""
    if hasattr(os, "killpg"):
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()


def peers() -> list[str]:
    """Return the packages in requirements.txt."""
    lines = (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [re.split(r"[=<>!~ ]", line)[0] for line in lines if line and not line.startswith("#")]


def write_report(outcomes: Sequence[Outcome], full: bool, output: Path) -> None:
    """Write RESULTS.md and its pictures, for this run only."""
    pictures = output.parent / "pictures"
    drawn = [Path(word).name for one in outcomes if not one.code for word in one.command.split() if ".png" in word]
    if found := ratios(outcomes):
        draw_ratios(found, pictures / "ratios.png")
        drawn.append("ratios.png")
    output.write_text(report(outcomes, full, peers(), drawn), encoding="utf-8")


def limit_cores(cores: int) -> None:
    """Restrict this process and its children to a number of cores, if the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def main(argv: Sequence[str] | None = None) -> list[Outcome]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the full form (about two hours)")
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), help="run these benchmarks only")
    parser.add_argument("--limit", type=float, help="seconds for each (300 in the small form, 3600 in the full one)")
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args(argv)
    limit = options.limit or (3600.0 if options.full else 300.0)
    output = options.output.resolve()
    outcomes = []
    for name in options.only or BENCHMARKS:
        outcomes.append(run(name, options.full, limit, output.parent / "pictures"))
        write_report(outcomes, options.full, output)  # after each benchmark, because a later one may be stopped
    skipped = [outcome.name for outcome in outcomes if outcome.skipped]
    failed = [outcome.name for outcome in outcomes if outcome.failed]
    lists = [f" {title}: {', '.join(names)}." for title, names in (("Skipped", skipped), ("Failed", failed)) if names]
    minutes = sum(outcome.seconds for outcome in outcomes) / 60
    print(f"Written to {options.output} after {minutes:.1f} minutes." + "".join(lists))
    return outcomes


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a benchmark ends with this process
    limit_cores(THREADS)
    sys.exit(any(outcome.failed for outcome in main()))
