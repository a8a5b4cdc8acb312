"""Pages of the documentation site that are not in docs/: the reference, and pages from elsewhere in the repository.

MkDocs calls the functions whose names begin with `on_` (mkdocs.yml, `hooks`).
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from public_packages import EXTENDING, PACKAGES, RESULT_CLASSES

ROOT = Path(__file__).parents[1]
RESULTS = "benchmarks/RESULTS.md"
"""Results that `make bench` writes; the page exists only if they do."""

ELSEWHERE = (
    "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "reproductions/README.md",
    *([RESULTS] if (ROOT / RESULTS).is_file() else []),
)  # fmt: skip
"""Pages outside docs/ that belong to the site, with the pictures in the folders beside them."""

LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")


def public_modules() -> list[str]:
    """Return the modules that have a page in the reference."""
    return [*PACKAGES, RESULT_CLASSES, EXTENDING]


def reference_page(module: str) -> str:
    """Return the page of a module: its docstring and public names, which mkdocstrings inserts."""
    hidden = [
        f"::: {name}\n    options: {{show_root_heading: true, show_root_toc_entry: true}}\n" for name in _hidden(module)
    ]
    return "\n".join([f"# {module}\n\n::: {module}\n", *hidden])


def _hidden(module: str) -> list[str]:
    """Return names that a package imports from a module of the same name, because the short name means the module."""
    path = ROOT / "src" / Path(*module.split(".")) / "__init__.py"
    if not path.is_file():
        return []
    imports = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    names = [(node.module or "", alias.name) for node in imports for alias in node.names]
    return [f"{module_name}.{name}" for module_name, name in names if module_name == f"{module}.{name}"]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the reference pages and the results of the benchmarks to the navigation."""
    reference = [{module: f"reference/{module}.md"} for module in public_modules()]
    nav: list[Any] = config.nav or []
    measured = [{"Benchmark results": RESULTS}] if RESULTS in ELSEWHERE else []
    config.nav = [*nav, *measured, {"Reference": reference}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference pages and those from elsewhere in the repository."""
    for module in public_modules():
        files.append(File.generated(config, f"reference/{module}.md", content=reference_page(module)))
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
