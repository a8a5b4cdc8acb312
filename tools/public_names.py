"""Write docs/names.md: all public names with the first sentence of their docstrings.

Usage: python tools/public_names.py [--check]

With --check nothing is written, and the exit code is 1 if the page is not up to date.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

from public_packages import PACKAGES

PAGE = Path(__file__).parents[1] / "docs" / "names.md"


def summary(value: object) -> str:
    """Return the first line of the docstring of a class or function; constants have none."""
    documented = inspect.isclass(value) or callable(value)
    return (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|") if documented else "Constant."


def page() -> str:
    """Return the page; a name that several modules have is listed where it is first."""
    seen: set[int] = set()
    sections = []
    for package in PACKAGES:
        module = importlib.import_module(package)
        values = {name: getattr(module, name) for name in sorted(module.__all__, key=str.lower)}
        new = {name: value for name, value in values.items() if id(value) not in seen}
        seen.update(map(id, new.values()))
        rows = "\n".join(f"| `{name}` | {summary(value)} |" for name, value in new.items())
        sections.append(f"## {package}\n\n| name | |\n|---|---|\n{rows}\n")
    intro = f"# Public names\n\nAll {len(seen)} public names. `python tools/public_names.py` writes this page."
    return "\n".join([f"{intro}\n", *sections])


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        return int(not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
