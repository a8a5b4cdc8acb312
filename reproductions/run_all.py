"""Run all reproductions, two at a time, and compare their verdicts with README.md.

Run: .venv/bin/python reproductions/run_all.py [--quick] [--readme] (options of the scripts)
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from support import HERE, table

SCRIPTS = (
    "hofmann_1999",
    "shashanka_2009",
    "saastamoinen_2016",
    "newsgroups",
    "saastamoinen_claims",
    "hong_2012",
    "zhang_ding_tang",
    "gaussier_goutte_2005",
)
"""Scripts, the slowest ones first."""


class Done(NamedTuple):
    name: str
    seconds: float
    code: int
    last: str


def run(name: str, options: Sequence[str]) -> Done:
    """Run one script in its own process, and print its output when it ends."""
    started = time.perf_counter()
    command = [sys.executable, str(HERE / f"{name}.py"), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = done.stdout.rstrip().splitlines() or [""]
    print("\n".join([f"\n== {name} {' '.join(options)}", *lines]), flush=True)
    return Done(name, time.perf_counter() - started, done.returncode, lines[-1])


def main(options: Sequence[str]) -> int:
    """Return the number of scripts that failed. With --readme they run one by one, because they write one file."""
    at_once = 1 if "--readme" in options else min(2, os.cpu_count() or 1)
    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda name: run(name, options), SCRIPTS))
    rows = [(done.name, f"{done.seconds:.0f}", "as expected" if done.code == 0 else "FAILED", done.last)
            for done in results]  # fmt: skip
    print(f"\n== All, in {time.perf_counter() - started:.0f} s, {at_once} at a time")
    print(table(("script", "seconds", "", "its last line"), rows))
    return sum(done.code != 0 for done in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
