"""Write docs/names.md: all public names with the first sentence of their docstrings.

Usage: python tools/public_names.py [--check]

With --check nothing is written, and the exit code is 1 if the page is not up to date.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

from public_packages import EXTENDING, PACKAGES, RESULT_CLASSES

PAGE = Path(__file__).parents[1] / "docs" / "names.md"


def summary(value: object) -> str:
    """Return the first line of the docstring of a class or function; constants have none."""
    documented = inspect.isclass(value) or callable(value)
    return (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|") if documented else "Constant."


def names_of(package: str) -> dict[str, object]:
    """Return the public names of a package and their values."""
    module = importlib.import_module(package)
    return {name: getattr(module, name) for name in sorted(module.__all__, key=str.lower)}


def public_names() -> dict[str, dict[str, object]]:
    """Return the public names of each package; a name that several packages have is listed where it is first."""
    seen: set[int] = set()
    packages = {}
    for package in PACKAGES:
        packages[package] = {name: value for name, value in names_of(package).items() if id(value) not in seen}
        seen.update(map(id, packages[package].values()))
    return packages


def page() -> str:
    """Return the page."""
    public = public_names()
    parts = {**public, RESULT_CLASSES: names_of(RESULT_CLASSES), EXTENDING: names_of(EXTENDING)}
    count = sum(map(len, public.values()))
    sections = []
    for package, names in parts.items():
        rows = "\n".join(f"| `{name}` | {summary(value)} |" for name, value in names.items())
        sections.append(f"## {package}\n\n| name | |\n|---|---|\n{rows}\n")
    intro = (
        f"# Public names\n\nAll {count} public names, the {len(parts[RESULT_CLASSES])} classes of results "
        f"(`{RESULT_CLASSES}`), and the {len(parts[EXTENDING])} names for people who write a prior,\na loss or a "
        f"solver (`{EXTENDING}`). `python tools/public_names.py` writes this page."
    )
    return "\n".join([f"{intro}\n", *sections])


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        return int(not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
