"""What the documentation site has beside docs/: reference pages, and pages that live elsewhere in the repository.

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

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "polyseme"

INTERNAL = {
    "cli", "dirichlet", "estimators", "files", "kernels", "locks", "logistic_normal", "model", "progress", "sources",
    "stats", "tree",
}  # fmt: skip
"""rooms without a reference page: `polyseme` itself has what is public of them, or their callers are rooms alone"""

RESULTS = "benchmarks/RESULTS.md"
"""what `make bench` has written, if it has"""
ELSEWHERE = (
    "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "reproductions/README.md",
    *([RESULTS] if (ROOT / RESULTS).is_file() else []),
)  # fmt: skip
"""pages outside docs/ that belong to the site, with the pictures in the folders beside them"""

LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")


def public_modules() -> list[str]:
    """The modules that have a page in the reference: `polyseme`, and every room that is not internal."""
    rooms = {path.name if path.is_dir() else path.stem for path in PACKAGE.iterdir() if _is_module(path)}
    return ["polyseme", *(f"polyseme.{room}" for room in sorted(rooms - INTERNAL))]


def _is_module(path: Path) -> bool:
    if path.name.startswith("_"):
        return False
    return path.suffix == ".py" or (path / "__init__.py").is_file()


def reference_page(module: str) -> str:
    """The page of a module: its docstring and public names, as mkdocstrings fills them in."""
    hidden = [
        f"::: {name}\n    options: {{show_root_heading: true, show_root_toc_entry: true}}\n" for name in _hidden(module)
    ]
    return "\n".join([f"# {module}\n\n::: {module}\n", *hidden])


def _hidden(module: str) -> list[str]:
    """Names that a package takes from a file of the same name: only the file can be reached by its short address."""
    path = ROOT / "src" / Path(*module.split(".")) / "__init__.py"
    if not path.is_file():
        return []
    taken = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    names = [(node.module or "", alias.name) for node in taken for alias in node.names]
    return [f"{home}.{name}" for home, name in names if home == f"{module}.{name}"]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the reference pages in the navigation, and the benchmarks' results."""
    reference = [{module: f"reference/{module}.md"} for module in public_modules()]
    nav: list[Any] = config.nav or []
    measured = [{"Benchmark results": RESULTS}] if RESULTS in ELSEWHERE else []
    config.nav = [*nav, *measured, {"Reference": reference}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the reference pages and those from elsewhere."""
    for module in public_modules():
        files.append(File.generated(config, f"reference/{module}.md", content=reference_page(module)))
    for page in ELSEWHERE:
        files.append(File.generated(config, page, abs_src_path=str(ROOT / page)))
        folder = posixpath.dirname(page)
        for picture in sorted((ROOT / folder / "pictures").glob("*.png")) if folder else ():
            files.append(File.generated(config, f"{folder}/pictures/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turns links between files of the repository into links between pages of the site."""
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
