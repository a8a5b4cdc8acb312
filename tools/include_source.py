"""Copy the source of classes and functions into the how-to pages.

    python tools/include_source.py            update the pages
    python tools/include_source.py --check    exit with status 1 if a page differs from the sources

A page names what it includes in a comment before a code block:

    <!-- source: src/polyseme/solvers/ascent.py EM EMRun -->
    ```py
    (the source of EM and EMRun)
    ```

The pages contain a copy, not a directive of Sphinx, because GitHub shows directives as plain text. The language of the
block is `py`, because the tests execute `python` blocks. tests/project/test_docs.py runs the check.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
INCLUDE = re.compile(r"^<!-- source: (\S+) (.+?) -->\n```py\n.*?^```$", re.MULTILINE | re.DOTALL)


def source_of(path: Path, name: str) -> str:
    """Return the source of a top-level class or function with its decorators.

    Raises
    ------
    LookupError
        If the file has no top-level class or function of this name.
    """
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise LookupError(f"{path.relative_to(ROOT)} has no top-level class or function {name}.")


def updated(page: str) -> str:
    """Return the text of a page with its included sources as they are now."""

    def block(found: re.Match[str]) -> str:
        file, names = found[1], found[2]
        sources = "\n\n\n".join(source_of(ROOT / file, name) for name in names.split())
        return f"<!-- source: {file} {names} -->\n```py\n{sources}\n```"

    return INCLUDE.sub(block, page)


def main(argv: Sequence[str] | None = None) -> int:
    """Update or check all pages and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; report pages that are out of date")
    options = parser.parse_args(argv)
    outdated = [page for page in PAGES if updated(text := page.read_text(encoding="utf-8")) != text]
    for page in outdated:
        if options.check:
            print(f"{page.relative_to(ROOT)} is out of date: run python tools/include_source.py.")
        else:
            page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
            print(f"Updated {page.relative_to(ROOT)}.")
    return int(options.check and bool(outdated))


if __name__ == "__main__":
    sys.exit(main())
