"""The house plan: imports point one way. (That importing polyseme stays light: test_import.py.)"""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "polyseme"

FLOORS = (
    {"errors", "files", "locks", "parquet", "untrusted"},
    {"_native"},
    {"kernels", "dirichlet", "logistic_normal"},
    {"factors", "sampling", "stats", "split", "masks", "priors", "simplex", "tree"},
    {"background", "model", "sources", "initialise"},
    {"solvers"},
    {"metrics", "storage", "progress"},
    {"checkpoints"},
    {"estimators", "selection", "retrieval", "text", "datasets", "scale"},
    {"__init__"},
    {"explore", "runs", "cli"},
)
"""From the ground up: a room may import from its own floor and from those below it."""

COMPILED_FROM = {"_kernels": "_native"}
"""Extension modules, which have no Python file, and the room of their sources."""

FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCES).parts[0].removesuffix(".py")


def rooms_imported(path: Path) -> Iterator[str]:
    """The rooms that a file imports from, wherever in the file the import stands."""
    package = ["polyseme", *path.relative_to(SOURCES).parent.parts]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, *rest = name.split(".")
            if top == "polyseme":
                room = COMPILED_FROM.get(rest[0], rest[0]) if rest else "__init__"
                yield room if exists(room) else "__init__"


def exists(room: str) -> bool:
    return (SOURCES / room).is_dir() or (SOURCES / f"{room}.py").exists()


FILES = sorted(path for path in SOURCES.rglob("*.py"))
DOORS = {
    (room_of(path), room, str(path.relative_to(SOURCES)))
    for path in FILES
    for room in rooms_imported(path)
    if room != room_of(path)
}


def test_every_file_has_a_room() -> None:
    unplaced = {room_of(path) for path in FILES} - set(FLOOR_OF)
    assert not unplaced, f"Give these rooms a floor in FLOORS: {sorted(unplaced)}"
    assert DOORS, "No imports were found, so nothing was checked"


def test_no_room_imports_from_a_higher_floor() -> None:
    upwards = [
        f"{path} imports {higher}"
        for lower, higher, path in sorted(DOORS)
        if lower != "__init__" and FLOOR_OF[higher] > FLOOR_OF[lower]
    ]
    assert not upwards


def test_the_front_door_opens_on_no_higher_floor() -> None:
    assert not {room for door, room, _ in DOORS if door == "__init__"} & {"explore", "runs", "cli"}


def test_only_kernels_touch_the_native_code() -> None:
    assert {room for room, imported, _ in DOORS if imported == "_native"} <= {"kernels", "dirichlet"}


def test_rooms_do_not_import_each_other_in_circles() -> None:
    below = {room: {imported for other, imported, _ in DOORS if other == room} for room in FLOOR_OF}
    while below:
        free = {room for room, imported in below.items() if not imported & set(below)}
        assert free, f"These rooms import each other in a circle: {sorted(below)}"
        below = {room: imported for room, imported in below.items() if room not in free}
