"""The command line of the fuzzers."""

import argparse
import subprocess
import sys
import time
from importlib import import_module

from fuzz.driver import run_fuzzer
from fuzz.guided import run_guided

SHARES = {"runs": 0.4, "readers": 0.3, "guided": 0.05, "estimators": 0.15, "text": 0.1}
"""Fuzzers, and their shares of the time if all run."""


def main() -> int:
    """Run one fuzzer or all of them, and return 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description="Run random cases, in forked processes.")
    parser.add_argument("fuzzer", choices=[*SHARES, "all"], help="which one")
    parser.add_argument("--cases", type=int, help="how many cases (default: the fuzzer's full number)")
    parser.add_argument("--seconds", type=float, help="stop after this time (default: never)")
    parser.add_argument("--seed", type=int, default=0, help="choose other cases (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default: %(default)s)")
    parser.add_argument("--replay", nargs="*", metavar="FILE", help="run stored cases: files, or else the whole corpus")
    options = parser.parse_args()
    if options.fuzzer == "all":
        return _all(options.seconds, sys.argv[2:])
    if options.fuzzer == "guided":
        return run_guided(options)
    fuzzer = import_module(f"fuzz.{options.fuzzer}").fuzzer
    return run_fuzzer(fuzzer, options)


def _all(seconds: float | None, arguments: list[str]) -> int:
    """Run each fuzzer in its own interpreter; unused time goes to the next ones."""
    codes, left, start = [], 1.0, time.monotonic()
    for name, share in SHARES.items():
        budget = [] if seconds is None else ["--seconds", str((seconds - (time.monotonic() - start)) * share / left)]
        left -= share
        codes.append(subprocess.call([sys.executable, sys.argv[0], name, *arguments, *budget]))
    return max(codes)
