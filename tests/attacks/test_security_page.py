"""SECURITY.md names an existing test for each threat, and every file of tests."""

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = (FOLDER.parents[1] / "SECURITY.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (T\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`([^`]+)`")
ROWS = ROW.findall(PAGE)


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_threats_are_numbered_without_gaps():
    assert len(ROWS) == len(re.findall(r"^\| T", PAGE, re.MULTILINE)) - PAGE.count("| Threat |")
    assert [number for number, _, _ in ROWS] == [f"T{number}" for number in range(1, len(ROWS) + 1)]
    assert len({threat for _, threat, _ in ROWS}) == len(ROWS)


def test_every_named_test_exists():
    for number, _, names in ROWS:
        found = TEST.findall(names)
        assert found, f"{number} names no test"
        for name in found:
            file, _, test = name.partition("::")
            assert (FOLDER / file).is_file(), f"{number} names {file}, which does not exist"
            assert test in functions_of(FOLDER / file), f"{number} names {name}, which does not exist"


def test_every_file_of_tests_is_named():
    named = {name.partition("::")[0] for _, _, names in ROWS for name in TEST.findall(names)}
    assert {path.name for path in FOLDER.glob("test_*.py")} == named
