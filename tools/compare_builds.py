"""Build two commits, run the same cases with each, and report every difference bit for bit.

Usage: .venv/bin/python tools/compare_builds.py OLD NEW [--only PATTERN] [--jobs N]
       .venv/bin/python tools/compare_builds.py --list

OLD and NEW are commits: HEAD~3, a branch, a hash. `$(git stash create)` stands for the changes that are not committed.
Builds use the packages of this environment and stay in build/compare, so a second comparison is fast. The cases are in
tools/comparison; `names.py` there lists the public names that differ between two commits.

The report has one line for each group of equal cases and one for each case that differs, with its values below.
Differences in texts for people, such as error messages, and values that only the new build has, such as a new
attribute, are listed and do not count. The exit code is 1 if anything differs. POLYSEME_ISA selects the instruction
set, as everywhere.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

from comparison.compare import Comparison, Outcome, compare_outcomes
from comparison.registry import all_cases
from comparison.values import read_outcomes

ROOT = Path(__file__).resolve().parent.parent
BUILDS = ROOT / "build" / "compare"
TOOLS = Path(__file__).resolve().parent
# Sums in BLAS depend on its number of threads, sets of strings on the seed of their hashes.
SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}


def commit_hash(name: str) -> str:
    """Return the hash of a commit."""
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], cwd=ROOT, capture_output=True, text=True
    )
    if found.returncode:
        raise SystemExit(f"{name!r} is not a commit of this repository.")
    return found.stdout.strip()


def build(commit: str) -> Path:
    """Install a commit, without its dependencies, into a separate folder, and return the folder."""
    folder = BUILDS / f"{commit}-{sys.implementation.cache_tag}"
    if folder.is_dir():
        return folder
    print(f"building {commit}", file=sys.stderr)
    BUILDS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILDS) as place:
        source, packages = Path(place) / "source", Path(place) / "packages"
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(source, filter="data")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
        if all(find_spec(name) for name in ("scikit_build_core", "nanobind")):
            command.append("--no-build-isolation")
        done = subprocess.run([*command, "--target", packages, source], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{commit} does not build:\n{done.stdout}{done.stderr}")
        # The folder appears when it is complete, so an interrupted build is not mistaken for a finished one.
        packages.rename(folder)
    return folder


def run_cases(packages: Path, names: Sequence[str], output: Path) -> dict[str, Outcome]:
    """Run cases with one build in a separate process."""
    environment = {**os.environ, **SETTINGS, "PYTHONPATH": os.pathsep.join([str(packages), str(TOOLS)])}
    done = subprocess.run(
        [sys.executable, "-m", "comparison", output, packages, *names],
        cwd=output.parent,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        lines = "\n".join(done.stderr.splitlines()[-30:])
        raise SystemExit(f"The cases of {packages.name} ended with code {done.returncode}:\n{lines}")
    return read_outcomes(output)


def run_builds(builds: Sequence[Path], names: Sequence[str], jobs: int) -> list[dict[str, Outcome]]:
    """Run all cases with each build, in `jobs` processes at a time."""
    parts = max(1, jobs // len(builds))
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(jobs) as pool:
        running = [
            [
                pool.submit(run_cases, packages, names[part::parts], Path(place) / f"{number}-{part}")
                for part in range(min(parts, len(names)))
            ]
            for number, packages in enumerate(builds)
        ]
        return [{name: found for part in parts_of for name, found in part.result().items()} for parts_of in running]


def report(comparisons: Mapping[str, Comparison]) -> int:
    """Print the comparison of all cases, and return the exit code."""
    groups: dict[str, list[str]] = {}
    for name in comparisons:
        groups.setdefault("/".join(name.split("/")[:2]), []).append(name)
    for group, names in groups.items():
        equal = [comparisons[name] for name in names if not comparisons[name].differences]
        if equal:
            print(f"{group:40} {_counted(equal)}")
        for name in names:
            if comparisons[name].differences:
                print(f"{name}  DIFFERS")
                print("".join(f"    {line}\n" for line in comparisons[name].differences), end="")
    _list_messages(comparisons)
    _list_added(comparisons)
    differing = sum(bool(found.differences) for found in comparisons.values())
    n_values = sum(found.n_values for found in comparisons.values())
    n_differences = sum(len(found.differences) for found in comparisons.values())
    total = f"{len(comparisons)} cases, {n_values} values"
    print(f"{total}: {differing} cases with {n_differences} values differ" if differing else f"{total}: all equal")
    return int(differing > 0)


def _counted(equal: Sequence[Comparison]) -> str:
    """Return a description of cases that are equal."""
    n_values = sum(found.n_values for found in equal)
    words = f"{len(equal):4} {'case ' if len(equal) == 1 else 'cases'} {n_values:7} values  equal"
    refused, skipped = sum(bool(found.error) for found in equal), {found.skipped for found in equal if found.skipped}
    if refused:
        words += f", {refused} raise the same error"
    return words + "".join(f", skipped: {reason}" for reason in sorted(skipped))


def _list_messages(comparisons: Mapping[str, Comparison]) -> None:
    """Print the texts that differ, each pair once."""
    pairs = Counter(pair for found in comparisons.values() for pair in found.messages)
    if pairs:
        print(f"messages: {len(pairs)} texts differ (this does not count)")
    for (old, new), times in pairs.most_common():
        print(f"    in {times} cases\n      old: {old}\n      new: {new}")


def _list_added(comparisons: Mapping[str, Comparison]) -> None:
    """Print the names of the values that only the new build has."""
    names = Counter(name for found in comparisons.values() for name in found.added)
    if names:
        print(f"added: {len(names)} values are in the new build only (this does not count)")
    for name, times in names.most_common():
        print(f"    {name} in {times} cases")


def selected(patterns: Sequence[str]) -> list[str]:
    """Return the names of cases that contain or match one of the patterns; all without patterns."""
    names = list(all_cases())
    if not patterns:
        return names
    return [name for name in names if any(pattern in name or fnmatch(name, pattern) for pattern in patterns)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare the results of two commits bit for bit.")
    parser.add_argument("old", nargs="?", help="commit to compare with")
    parser.add_argument("new", nargs="?", help="commit to check")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="cases to run; can be repeated")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes at a time (default: 2)")
    options = parser.parse_args(arguments)
    names = selected(options.only)
    if options.list:
        print("\n".join(names))
        return 0
    if options.old is None or options.new is None:
        parser.error("pass two commits: OLD NEW")
    if not names:
        parser.error(f"no case matches {', '.join(options.only)}; --list shows all")
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    commits = [commit_hash(options.old), commit_hash(options.new)]
    with ThreadPoolExecutor(options.jobs) as pool:
        built = dict(zip(set(commits), pool.map(build, set(commits)), strict=True))
    print(f"running {len(names)} cases with each build", file=sys.stderr)
    old, new = run_builds([built[commit] for commit in commits], names, options.jobs)
    return report({name: compare_outcomes(old.get(name), new.get(name)) for name in names})


if __name__ == "__main__":
    sys.exit(main())
