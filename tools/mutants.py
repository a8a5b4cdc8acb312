"""Mutation tests: change one operator, number or statement at a time, and check that a test fails.

A change that no test notices ("survived") is a missing test or has no effect on any result. Mutants are drawn at random
from the packages with a seed. Each runs in a copy of the package, with the tests that execute its line, the fastest
first. The map of tests to lines comes from a run of the tests with coverage, which `map` stores.

    python tools/mutants.py map tests/core tests/metrics       run tests and store which lines each one executes
    python tools/mutants.py run core metrics --n 100 --seed 1  draw mutants of packages and run their tests
    python tools/mutants.py run core --n 100 --only 7 31       run single mutants of the same draw again
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np  # noqa: F401, imported before the fork
import pytest
import scipy.optimize
import scipy.sparse
import scipy.stats  # noqa: F401
import sklearn.decomposition
import sklearn.utils.estimator_checks  # noqa: F401

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "mutants"
PACKAGE = ROOT / "src" / "polyseme"

_POLL_SECONDS = 0.05
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in",
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {"maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max", "argmax": "argmin", "any": "all",
         "all": "any"}  # fmt: skip


class Mutant(NamedTuple):
    """A change of one piece of a source file."""

    file: Path
    line: int
    start: int
    stop: int
    new: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.stop :]

    def shown(self, source: bytes) -> str:
        old = " ".join(source[self.start : self.stop].decode().split())
        return f"{self.file.relative_to(PACKAGE)}:{self.line}: {old[:100]}  ->  {self.new[:100]}"


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    source = file.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def mutant(node: ast.AST, new: str) -> Mutant:
        start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        stop = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return Mutant(file, node.lineno, start, stop, new)  # type: ignore[attr-defined]

    for node in _code_nodes(ast.parse(source)):
        for new in _replacements(node):
            yield mutant(node, new)


def _code_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node that compute something; skip annotations, docstrings, imports and error messages."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Import | ast.ImportFrom | ast.Raise):
                continue
            docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if docstring or isinstance(child, ast.JoinedStr):
                continue
            yield child
            yield from _code_nodes(child)


def _replacements(node: ast.AST) -> Iterator[str]:
    """Yield the sources that replace a node."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in COMPARISONS:
            yield f"({ast.unparse(left)}) {COMPARISONS[type(operator)]} ({ast.unparse(right)})"
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            yield f"({ast.unparse(ast.BinOp(left, OPERATORS[type(operator)](), right))})"
        case ast.BoolOp(operator, values):
            yield f"({ast.unparse(ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values))})"
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield f"({ast.unparse(operand)})"
        case ast.Constant(bool() as value):
            yield repr(not value)
        case ast.Constant(int() as value):
            yield repr(value + 1)
        case ast.Constant(float() as value):
            yield repr(2 * value if value else 1.0)
        case ast.Attribute(value, name) if name in NAMES:
            yield f"{ast.unparse(value)}.{NAMES[name]}"
        case ast.Name(name) if name in NAMES:
            yield NAMES[name]
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break():
            yield "pass"
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield "pass"


def draw(packages: list[str], n: int, seed: int) -> list[Mutant]:
    """Draw different mutants of packages or modules at random."""
    files: set[Path] = set()
    for place in (PACKAGE / name for name in packages):
        files |= {place.with_suffix(".py")} if not place.is_dir() else set(place.rglob("*.py"))
    found = [mutant for file in sorted(files) for mutant in mutants_of(file)]
    return random.Random(seed).sample(found, min(n, len(found)))


class TestMap:
    """Which tests execute a line, and how long each takes."""

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self._data = CoverageData(str(folder / "coverage"))
        self._data.read()
        self._seconds = {
            _node_id(case.attrib): float(case.attrib["time"])
            for case in ET.parse(folder / "times.xml").getroot().iter("testcase")
        }

    def tests(self, file: Path, line: int, seconds: float) -> tuple[list[str], float]:
        """Return the tests of a line, the fastest first, up to a total time, and that time."""
        by_line = self._data.contexts_by_lineno(str(file))
        names = {context.split("|")[0] for context in by_line.get(line, [])} - {""}
        if not names:  # the line runs at import: all tests of the file
            names = {context.split("|")[0] for contexts in by_line.values() for context in contexts} - {""}
        chosen, total = [], 0.0
        for name in sorted(names, key=lambda name: (self._seconds.get(_key(name), 1.0), name)):
            time = self._seconds.get(_key(name), 1.0)
            if chosen and total + time > seconds:
                break
            chosen.append(name)
            total += time
        return chosen, total


def _node_id(attributes: dict[str, str]) -> str:
    return f"{attributes['classname']}.{attributes['name']}"


def _key(node_id: str) -> str:
    path, _, name = node_id.partition("::")
    return f"{path.removesuffix('.py').replace('/', '.')}.{name}"


def run(mutant: Mutant, source: bytes, copy: Path, tests: list[str], limit: float) -> str:
    """Return the outcome: killed, timeout or survived.

    The child is forked, so that it does not have to import unchanged packages. It imports the mutated package.
    """
    target = copy / "polyseme" / mutant.file.relative_to(PACKAGE)
    target.write_bytes(mutant.apply(source))
    child = os.fork()
    if child == 0:
        _run_tests(copy, tests)
    try:
        for _ in range(int(limit / _POLL_SECONDS)):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return "survived" if status == 0 else "killed"
            time.sleep(_POLL_SECONDS)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "timeout"
    finally:
        target.write_bytes(source)


def _run_tests(copy: Path, tests: list[str]) -> NoReturn:
    """Run tests on the copy of the package and exit with the code of pytest."""
    output = os.open(copy / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.path.insert(0, str(copy))
    code = 3
    try:
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
    finally:
        os._exit(code)


def make_map(tests: list[str]) -> None:
    """Run tests with coverage and store which lines each test executes."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "COVERAGE_FILE": str(FOLDER / "coverage")}
    options = [
        "--cov=polyseme",
        "--cov-context=test",
        "--cov-report=",
        "--cov-fail-under=0",
        f"--junitxml={FOLDER / 'times.xml'}",
    ]
    command = [sys.executable, "-m", "pytest", "-m", "not slow", *options, *tests]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    mapping = commands.add_parser("map")
    mapping.add_argument("tests", nargs="+")
    running = commands.add_parser("run")
    running.add_argument("packages", nargs="+")
    running.add_argument("--n", type=int, default=100)
    running.add_argument("--seed", type=int, default=0)
    running.add_argument("--seconds", type=float, default=60, help="tests of a mutant take at most this long")
    running.add_argument("--only", type=int, nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "map":
        make_map(arguments.tests)
        return
    os.chdir(ROOT)
    sys.dont_write_bytecode = True
    found = find_spec("polyseme")
    if found is None or found.origin is None:
        sys.exit("polyseme is not installed: run make first.")
    tests_of = TestMap(FOLDER)
    drawn = draw(arguments.packages, arguments.n, arguments.seed)
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(Path(found.origin).parent, copy / "polyseme")
        for number, mutant in enumerate(drawn):
            if arguments.only and number not in arguments.only:
                continue
            source = mutant.file.read_bytes()
            tests, seconds = tests_of.tests(mutant.file, mutant.line, arguments.seconds)
            outcome = run(mutant, source, copy, tests, 60 + 10 * seconds) if tests else "no test"
            counts[outcome] = counts.get(outcome, 0) + 1
            print(f"{number:4d} {outcome:9s} {len(tests):4d} tests  {mutant.shown(source)}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
