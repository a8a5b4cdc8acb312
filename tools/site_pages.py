"""Pages of the documentation site that are not in docs/: the reference, and pages from elsewhere in the repository.

MkDocs calls the functions whose names begin with `on_` (mkdocs.yml, `hooks`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
NAMES = ROOT / "docs" / "names.md"
NAME = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
RESULTS = "benchmarks/RESULTS.md"
"""Results that `make bench` writes; the page exists only if they do."""

ELSEWHERE = (
    "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "reproductions/README.md",
    *([RESULTS] if (ROOT / RESULTS).is_file() else []),
)  # fmt: skip
"""Pages outside docs/ that belong to the site, with the pictures in the folders beside them."""

LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")


@cache
def reference() -> dict[str, dict[str, str]]:
    """Return the pages of the reference by module: the page of the module, and one for each name of docs/names.md."""
    _, *sections = NAMES.read_text(encoding="utf-8").split("\n## ")
    modules = {section.partition("\n")[0]: dict(NAME.findall(section)) for section in sections}
    return {
        module: {"Overview": _module_page(module, names), **{name: _name_page(module, name) for name in names}}
        for module, names in modules.items()
    }


def reference_file(module: str, name: str) -> str:
    """Return the file of a page of the reference."""
    return f"reference/{module}.md" if name == "Overview" else f"reference/{module}.{name}.md"


def _module_page(module: str, names: Mapping[str, str]) -> str:
    """Return the page of a module: its docstring, and its names with one line each."""
    rows = "\n".join(f"| [`{name}`]({module}.{name}.md) | {line} |" for name, line in names.items())
    return f"# {module}\n\n::: {module}\n    options: {{members: false}}\n\n| name | |\n|---|---|\n{rows}\n"


def _name_page(module: str, name: str) -> str:
    """Return the page of a name, which mkdocstrings fills."""
    own_module = (SOURCES / Path(*module.split(".")) / f"{name}.py").is_file()  # then the short name means that module
    place = f"{module}.{name}.{name}" if own_module else f"{module}.{name}"
    return f"# {name}\n\n::: {place}\n    options: {{show_root_heading: true, show_root_full_path: true}}\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the reference pages and the results of the benchmarks to the navigation."""
    modules = [
        {module: [{name: reference_file(module, name)} for name in pages]} for module, pages in reference().items()
    ]
    nav: list[Any] = config.nav or []
    measured = [{"Benchmark results": RESULTS}] if RESULTS in ELSEWHERE else []
    config.nav = [*nav, *measured, {"Reference": modules}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference pages and those from elsewhere in the repository."""
    for module, pages in reference().items():
        for name, content in pages.items():
            files.append(File.generated(config, reference_file(module, name), content=content))
    for page in ELSEWHERE:
        files.append(File.generated(config, page, abs_src_path=str(ROOT / page)))
        folder = posixpath.dirname(page)
        for picture in sorted((ROOT / folder / "pictures").glob("*.png")) if folder else ():
            files.append(File.generated(config, f"{folder}/pictures/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    here = page.file.src_uri
    in_repository = here if here in ELSEWHERE else f"docs/{here}"

    def on_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository), link.group()))
        if target.startswith("docs/"):
            target = target.removeprefix("docs/")
        elif target not in ELSEWHERE and not target.startswith(("reproductions/pictures/", "benchmarks/pictures/")):
            return link.group()
        return posixpath.relpath(target, posixpath.dirname(here) or ".")

    return LINK.sub(on_site, markdown)
