"""A corpus that fits in memory.

A real corpus that every install already has: the docstrings of the packages polyseme runs on.

The sources are found and parsed, never imported: reading them runs none of their code and needs no network.

Real corpora: a Wikipedia dump on the disk, and 20 Newsgroups from the network.
"""

from __future__ import annotations

import ast
import os
import sysconfig
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePath

from polyseme.errors import InputError
from polyseme.text.readers import Reader, read
from polyseme.text.readers.inputs import Paths


@dataclass(frozen=True)
class TextCorpus:
    """Documents with their titles and labels; ``skipped`` counts the files that could not be read."""

    texts: list[str]
    titles: list[str]
    labels: list[str]
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.texts)


STANDARD_LIBRARY_LABEL = "python"

_TESTS = {"test", "tests", "idle_test"}
_COPIES_OF_OTHER_PACKAGES = {"externals", "_external", "_vendor", "_vendored"}
_SKIPPED_DIRECTORIES = _TESTS | _COPIES_OF_OTHER_PACKAGES | {"idlelib", "lib2to3", "__pycache__"}
_UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


@dataclass(frozen=True)
class _SourceFile:
    """A Python file and the dotted name of the module it holds."""

    path: Path
    module: str


def docstrings(
    packages: Sequence[str] = ("numpy", "scipy", "sklearn"),
    *,
    standard_library: bool = True,
    min_words: int = 20,
    progress: Callable[[int, int], None] | None = None,
) -> TextCorpus:
    """Collect the docstrings of installed packages, one document for each module, class and function.

    Parameters
    ----------
    packages : names of top-level packages or modules, which are located but not imported.
    standard_library : whether to read Python's own library too, labeled "python".
    min_words : shorter docstrings are left out; words are what white space separates.
    progress : called as ``progress(files_done, files_in_all)`` after each file.

    Returns
    -------
    Corpus
        Titles are dotted qualified names, labels the names of the packages. The order is fixed: the standard
        library, then the packages as given, each sorted by title. Of identical docstrings one is kept.
    """
    names = (packages,) if isinstance(packages, str) else tuple(packages)
    files_of = {STANDARD_LIBRARY_LABEL: _standard_library_files()} if standard_library else {}
    files_of |= {name: _package_files(name) for name in names}

    total = sum(len(files) for files in files_of.values())
    done = skipped = 0
    texts: list[str] = []
    titles: list[str] = []
    labels: list[str] = []
    seen: set[str] = set()
    for label, files in files_of.items():
        found: list[tuple[str, str]] = []
        for file in files:
            try:
                found.extend(_docstrings_of(file))
            except _UNREADABLE:
                skipped += 1
            done += 1
            if progress is not None:
                progress(done, total)
        for title, text in sorted(found):
            if text not in seen and len(text.split()) >= min_words:
                seen.add(text)
                texts.append(text)
                titles.append(title)
                labels.append(label)
    return TextCorpus(texts, titles, labels, skipped)


def _standard_library_files() -> list[_SourceFile]:
    return list(_walk(Path(sysconfig.get_path("stdlib")), prefix=""))


def _package_files(name: str) -> list[_SourceFile]:
    """The source files of a top-level package, without importing it."""
    if not name.isidentifier():
        raise InputError(f"{name!r} is not the name of a top-level package: give one such as 'json'.")
    try:
        spec = find_spec(name)
    except ValueError:  # a module in memory that was not loaded from anywhere
        spec = None
    if spec is None:
        raise ModuleNotFoundError(f"No package called {name!r} is installed: install it, or name another.", name=name)
    if spec.submodule_search_locations is not None:
        files = [file for place in spec.submodule_search_locations for file in _walk(Path(place), f"{name}.")]
    elif spec.origin is not None and spec.origin.endswith(".py"):
        files = [_SourceFile(Path(spec.origin), name)]
    else:
        files = []
    if not files:
        raise InputError(f"The package {name!r} has no Python sources to read: name another.")
    return files


def _walk(root: Path, prefix: str) -> Iterator[_SourceFile]:
    """The modules below a directory, sorted.

    Only identifiers can be imported: other names (site-packages, config-3.13-..., scripts) are no modules.
    """
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = sorted(d for d in subdirectories if d.isidentifier() and d not in _SKIPPED_DIRECTORIES)
        package = prefix + "".join(f"{part}." for part in Path(directory).relative_to(root).parts)
        for name in sorted(names):
            stem, suffix = os.path.splitext(name)
            if suffix == ".py" and stem.isidentifier():
                module = package.rstrip(".") if stem == "__init__" else package + stem
                yield _SourceFile(Path(directory, name), module)


def _docstrings_of(file: _SourceFile) -> Iterable[tuple[str, str]]:
    """Pairs of qualified name and docstring of everything documented in one file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's invalid escapes are not our user's concern
        tree = ast.parse(file.path.read_bytes())
    return [(name, text) for name, node in _documentable(tree, file.module) if (text := ast.get_docstring(node))]


def _documentable(tree: ast.Module, module: str) -> Iterator[tuple[str, _Documented]]:
    """Each module, class and function with its qualified name; a stack, since branches can nest deeply."""
    waiting: list[tuple[str, ast.AST]] = [(module, tree)]
    while waiting:
        scope, node = waiting.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            scope = f"{scope}.{node.name}"
        if isinstance(node, _Documented):
            yield scope, node
        for block in _BLOCKS:
            waiting.extend((scope, child) for child in getattr(node, block, ()))


def wikipedia(
    path: Paths,
    *,
    sample: int | None = None,
    categories: Sequence[str] | None = None,
    noise: int = 0,
    seed: int = 0,
    uncategorized: bool = False,
) -> Reader:
    """The articles of one or more MediaWiki dumps: ``read`` with the format "wiki".

    Redirects, pages of other namespaces, empty pages and, unless ``uncategorized``, articles without a category are
    left out and counted. ``wikipedia(dump, categories=["mathematics"], sample=200, noise=300)`` draws 200 articles of
    categories with this word in their name and 300 others.
    """
    return read(
        path,
        format="wiki",
        sample=sample,
        categories=categories,
        noise=noise,
        seed=seed,
        uncategorized=uncategorized,
    )


def newsgroups(subset: str = "all", *, remove: Sequence[str] = ()) -> TextCorpus:
    """20 Newsgroups, by scikit-learn, which fetches it from the network once and keeps it.

    Parameters
    ----------
    subset : "train", "test" (by date) or "all".
    remove : any of "headers", "footers", "quotes".
    """
    from sklearn.datasets import fetch_20newsgroups

    try:
        bunch = fetch_20newsgroups(subset=subset, remove=tuple(remove), shuffle=False)
    except OSError as error:
        raise InputError(f"20 Newsgroups could not be fetched ({error}): connect to the network, once.") from error
    return TextCorpus(
        texts=list(bunch.data),
        titles=["/".join(PurePath(name).parts[-2:]) for name in bunch.filenames],
        labels=[bunch.target_names[target] for target in bunch.target],
    )
