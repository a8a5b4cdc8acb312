"""Layers of the package: imports point down. (test_import.py checks that importing polyseme loads little.)"""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "polyseme"

LAYERS = (
    {"errors", "progress", "_native"},
    {"options", "printing"},
    {"kernels"},
    {"utils", "sklearn_bases"},
    {"priors", "losses"},
    {"core"},
    {"io"},
    {"data"},
    {"solvers"},
    {"metrics", "simplex", "layout"},
    {"text", "estimators", "scale"},
    {"selection", "retrieval", "datasets"},
    {"uncertainty"},
    {"runs", "plots", "signatures", "cells"},
    {"explore"},
    {"typing", "extending"},
    {"__init__"},
    {"cli"},
)
"""Packages and modules of polyseme, the lowest layer first: each may import from its own layer and from lower ones."""

UPWARDS = {("runs", "explore", "runs/view.py"), ("runs", "explore", "runs/run.py")}
"""The only imports that point up: `TopicView.explore` imports the page inside the function, and `Run` its type."""

COMPILED_FROM = {"_kernels": "_native"}
"""Extension modules, which have no Python file, and the folder of their sources."""

LAYER_OF = {package: layer for layer, packages in enumerate(LAYERS) for package in packages}


def package_of(path: Path) -> str:
    """Return the top-level package or module of polyseme that a file belongs to."""
    return path.relative_to(SOURCES).parts[0].removesuffix(".py")


def imported_packages(path: Path) -> Iterator[str]:
    """Yield the packages that a file imports from, anywhere in the file."""
    parent = ["polyseme", *path.relative_to(SOURCES).parent.parts]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = parent[: len(parent) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, *rest = name.split(".")
            if top == "polyseme":
                package = COMPILED_FROM.get(rest[0], rest[0]) if rest else "__init__"
                yield package if exists(package) else "__init__"


def exists(package: str) -> bool:
    """Return whether polyseme has a package or module of this name."""
    return (SOURCES / package).is_dir() or (SOURCES / f"{package}.py").exists()


FILES = sorted(path for path in SOURCES.rglob("*.py"))
IMPORTS = {
    (package_of(path), imported, str(path.relative_to(SOURCES)))
    for path in FILES
    for imported in imported_packages(path)
    if imported != package_of(path)
} - UPWARDS
"""(importing package, imported package, importing file)"""


def test_every_file_has_a_layer() -> None:
    missing = {package_of(path) for path in FILES} - set(LAYER_OF)
    assert not missing, f"Add these packages to LAYERS: {sorted(missing)}"
    assert IMPORTS, "No imports were found, so nothing was checked"


def test_no_package_imports_from_a_higher_layer() -> None:
    upwards = [
        f"{path} imports {imported}"
        for package, imported, path in sorted(IMPORTS)
        if LAYER_OF[imported] > LAYER_OF[package]
    ]
    assert not upwards


def test_only_the_lowest_packages_import_the_native_code() -> None:
    assert {package for package, imported, _ in IMPORTS if imported == "_native"} <= {"kernels", "core"}


def test_packages_do_not_import_each_other_in_circles() -> None:
    below = {package: {imported for other, imported, _ in IMPORTS if other == package} for package in LAYER_OF}
    while below:
        free = {package for package, imported in below.items() if not imported & set(below)}
        assert free, f"These packages import each other in a circle: {sorted(below)}"
        below = {package: imported for package, imported in below.items() if package not in free}


def test_solvers_declare_what_they_can_and_are_not_probed():
    """Code uses the declarations of solvers and runs, and does not check whether an attribute exists."""
    files = [*(SOURCES / "solvers").glob("*.py"), *(SOURCES / "core").glob("*.py")]
    called = [node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    assert len(called) > 1000
    assert not {node.func.id for node in called if isinstance(node.func, ast.Name)} & {"hasattr", "getattr"}
