"""ARCHITECTURE.md and the other pages describe the source tree as it is."""

import ast
import re
from pathlib import Path

import pytest

from polyseme.solvers import SOLVERS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "polyseme"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
UNLISTED = ("__init__.py", "__main__.py", "commands", "assets", "stopwords", "_native")
"""Names that the tree of modules leaves out: one line describes the folder, or the name says enough."""

PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "reproductions" / "README.md",
]


def listed_paths():
    """Return the paths in the tree of modules, relative to src/polyseme."""
    tree = re.search(r"^```\nsrc/polyseme/\n(.*?)^```$", ARCHITECTURE.read_text(encoding="utf-8"), re.M | re.S)
    paths, parents = [], []
    for line in filter(str.strip, tree[1].splitlines()):
        indent, name = re.match(r"( +)(\S+)", line).groups()
        parents = [*parents[: len(indent) // 2 - 1], name.rstrip("/")]
        paths.append("/".join(parents))
    return paths


def test_the_tree_lists_every_file():
    listed = set(listed_paths())
    files = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    wanted = {file.as_posix() for file in files if not set(file.parts) & set(UNLISTED)}
    assert sorted(wanted - listed) == []


def test_the_tree_lists_existing_files_only():
    paths = listed_paths()
    assert len(paths) == len(set(paths))
    assert [path for path in paths if not (PACKAGE / path).exists()] == []


def test_the_diagram_has_the_layers_of_the_layers_test():
    tests = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    value = next(
        node.value
        for node in tests.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "LAYERS"
    )
    layers = [{"polyseme" if name == "__init__" else name for name in layer} for layer in ast.literal_eval(value)]
    diagram = re.search(r"^```\n(polyseme fit.*?)^```$", ARCHITECTURE.read_text(encoding="utf-8"), re.M | re.S)[1]
    lines = [re.match(r"\w+(?:, \w+)*", line) for line in diagram.splitlines()[1:]]
    assert [set(line[0].split(", ")) for line in lines if line] == layers[::-1]


def test_the_table_of_solvers_is_complete():
    table = re.search(r"^\| name \| algorithm .*?\n\n", ARCHITECTURE.read_text(encoding="utf-8"), re.M | re.S)[0]
    first_cells = "".join(line.split("|")[1] for line in table.strip().splitlines()[2:])
    assert set(re.findall(r"`([\w-]+)`", first_cells)) == set(SOLVERS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_named_source_files_exist(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    named = re.findall(r"`((?:\w+/)+\w+\.(?:py|hpp|cpp))`", text)
    places = (ROOT, PACKAGE, page.parent)
    assert [name for name in named if not any((place / name).exists() for place in places)] == []
