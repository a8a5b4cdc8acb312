"""Build the documentation site with Sphinx. Warnings, such as those of links without a target, are errors.

Usage: python tools/build_site.py FOLDER

The pages are those of docs/, pages from elsewhere in the repository, a gallery that runs the scripts in
examples/gallery, and the reference, one page for each name of docs/names.md. docs/contents.toml has the navigation.
"""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ELSEWHERE = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "reproductions/README.md", "benchmarks/RESULTS.md")
"""Pages outside docs/ that belong to the site, with the pictures in the folders beside them."""
LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")
NAME = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def reference() -> dict[str, list[str]]:
    """Return the public names of each module that docs/names.md lists."""
    return {module: NAME.findall(section) for module, section in _sections()[1]}


def _sections() -> tuple[str, list[tuple[str, str]]]:
    """Return the text of docs/names.md before the first module, and the name and the text of each module."""
    intro, *sections = (DOCS / "names.md").read_text(encoding="utf-8").split("\n## ")
    return intro, [(section.partition("\n")[0], section) for section in sections]


def _toctree(pages: Iterable[str], option: str) -> str:
    return "\n".join(["\n```{toctree}", ":maxdepth: 1", option, "", *pages, "```\n"])


def _name_page(module: str, name: str) -> str:
    """Return the page of a name, which autodoc fills."""
    value = getattr(importlib.import_module(module), name)
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    members = "   :members:\n   :inherited-members:\n" if kind == "class" else ""
    return f"# {name}\n\n```{{eval-rst}}\n.. auto{kind}:: {module}.{name}\n{members}```\n"


def reference_pages() -> dict[str, str]:
    """Return the pages of the reference: docs/names.md with links, one for each module, one for each name."""
    intro, sections = _sections()
    pages = {}
    for module, section in sections:
        names = NAME.findall(section)
        pages |= {f"reference/{module}.{name}.md": _name_page(module, name) for name in names}
        table = NAME.sub(rf"| [`\1`]({module}.\1.md) |", section.partition("\n")[2])
        text = f"# {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n```\n{table}"
        pages[f"reference/{module}.md"] = text + _toctree((f"{module}.{name}" for name in names), ":hidden:")
    linked = [NAME.sub(rf"| [`\1`](reference/{module}.\1.md) |", section) for module, section in sections]
    modules = _toctree((f"reference/{module}" for module, _ in sections), ":hidden:")
    return {"names.md": "\n## ".join([intro, *linked]) + modules, **pages}


def _on_site(path: Path, here: str) -> str:
    """Return a page at `here` on the site, with links between files of the repository as links between pages."""
    folder = posixpath.dirname(path.relative_to(ROOT).as_posix())

    def target(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(folder, link.group()))
        return posixpath.relpath(place.removeprefix("docs/"), posixpath.dirname(here) or ".")

    return LINK.sub(target, path.read_text(encoding="utf-8"))


def collect(folder: Path) -> None:
    """Write all pages except those of the gallery to a new folder."""
    shutil.copytree(DOCS, folder)
    for page in ELSEWHERE:
        pictures = (ROOT / page).parent / "pictures"
        if "/" in page and pictures.is_dir():
            shutil.copytree(pictures, (folder / page).parent / "pictures")
    places = {path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*.md")}
    places |= {page: ROOT / page for page in ELSEWHERE}
    texts = {here: _on_site(path, here) for here, path in places.items()} | reference_pages()
    for section, groups in tomllib.loads((DOCS / "contents.toml").read_text(encoding="utf-8")).items():
        lists = [_toctree(pages, f":caption: {group}") for group, pages in groups.items()]
        texts[f"{section.lower()}.md"] = f"# {section}\n" + "".join(lists)
    texts["index.md"] += _toctree(["guides", "gallery/index", "models", "Reference <names>", "project"], ":hidden:")
    for here, text in texts.items():
        (folder / here).parent.mkdir(parents=True, exist_ok=True)
        (folder / here).write_text(text, encoding="utf-8")


def main() -> int:
    from sphinx.cmd.build import build_main

    with TemporaryDirectory() as folder:
        pages = Path(folder) / "pages"
        collect(pages)
        options = ["--quiet", "--fail-on-warning", "--jobs", "auto", "--conf-dir", str(DOCS)]
        return build_main([*options, "--doctree-dir", f"{folder}/trees", str(pages), sys.argv[1]])


if __name__ == "__main__":
    sys.exit(main())
