"""Real corpora: the docstrings of installed packages, and 20 Newsgroups.

The sources of packages are found and parsed but never imported: reading them runs none of their code and needs no
network.
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

STANDARD_LIBRARY_LABEL = "python"
_TESTS = {"test", "tests", "idle_test"}
_VENDORED_PACKAGES = {"externals", "_external", "_vendor", "_vendored"}
_SKIPPED_DIRECTORIES = _TESTS | _VENDORED_PACKAGES | {"idlelib", "lib2to3", "__pycache__"}
_UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


@dataclass(frozen=True)
class TextCorpus:
    """Documents with titles and labels.

    Attributes
    ----------
    texts : list of str
        Texts of the documents.
    titles : list of str
        Titles of the documents.
    labels : list of str
        Label of each document.
    skipped : int
        Number of files that could not be read.
    """

    texts: list[str]
    titles: list[str]
    labels: list[str]
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.texts)


def docstrings(
    packages: Sequence[str] = ("numpy", "scipy", "sklearn"),
    *,
    standard_library: bool = True,
    min_words: int = 20,
    progress: Callable[[int, int], None] | None = None,
) -> TextCorpus:
    """Return the docstrings of installed packages, one document for each module, class and function.

    The order is fixed: the standard library, then the packages as given, each sorted by title. Of identical docstrings
    only the first is included.

    Parameters
    ----------
    packages : sequence of str or str, default=("numpy", "scipy", "sklearn")
        Names of top-level packages or modules, which are located but not imported.
    standard_library : bool, default=True
        Whether to read the standard library of Python too, with the label "python".
    min_words : int, default=20
        Shorter docstrings are not included. Words are separated by white space.
    progress : callable, default=None
        Called with (files done, number of files) after each file.

    Returns
    -------
    TextCorpus
        Titles are dotted qualified names, labels the names of the packages.
    """
    names = (packages,) if isinstance(packages, str) else tuple(packages)
    files_by_label = {STANDARD_LIBRARY_LABEL: _standard_library_files()} if standard_library else {}
    files_by_label |= {name: _package_files(name) for name in names}

    total = sum(len(files) for files in files_by_label.values())
    done = skipped = 0
    texts: list[str] = []
    titles: list[str] = []
    labels: list[str] = []
    seen: set[str] = set()
    for label, files in files_by_label.items():
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


def newsgroups(subset: str = "all", *, remove: Sequence[str] = ()) -> TextCorpus:
    """Return the 20 Newsgroups corpus.

    scikit-learn downloads it once and stores it in its data folder.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        Which documents; training and test documents are split by date.
    remove : sequence of str, default=()
        Parts of the documents to remove: any of "headers", "footers" and "quotes".

    Returns
    -------
    TextCorpus
        Labels are the names of the newsgroups.
    """
    from sklearn.datasets import fetch_20newsgroups

    try:
        bunch = fetch_20newsgroups(subset=subset, remove=tuple(remove), shuffle=False)
    except OSError as error:
        raise InputError(f"20 Newsgroups could not be downloaded ({error}): connect to the network, once.") from error
    return TextCorpus(
        texts=list(bunch.data),
        titles=["/".join(PurePath(name).parts[-2:]) for name in bunch.filenames],
        labels=[bunch.target_names[target] for target in bunch.target],
    )


@dataclass(frozen=True)
class _SourceFile:
    """A Python file and the dotted name of its module."""

    path: Path
    module: str


def _standard_library_files() -> list[_SourceFile]:
    return list(_modules_below(Path(sysconfig.get_path("stdlib")), prefix=""))


def _package_files(name: str) -> list[_SourceFile]:
    """Return the source files of a top-level package, without importing it."""
    if not name.isidentifier():
        raise InputError(f"{name!r} is not the name of a top-level package: give one such as 'json'.")
    try:
        spec = find_spec(name)
    except ValueError:  # a module that was created in memory
        spec = None
    if spec is None:
        raise ModuleNotFoundError(f"No package called {name!r} is installed: install it, or name another.", name=name)
    if spec.submodule_search_locations is not None:
        files = [file for place in spec.submodule_search_locations for file in _modules_below(Path(place), f"{name}.")]
    elif spec.origin is not None and spec.origin.endswith(".py"):
        files = [_SourceFile(Path(spec.origin), name)]
    else:
        files = []
    if not files:
        raise InputError(f"The package {name!r} has no Python sources to read: name another.")
    return files


def _modules_below(root: Path, prefix: str) -> Iterator[_SourceFile]:
    """Yield the modules below a directory, sorted.

    Names that are not identifiers (site-packages, config-3.13-..., scripts) cannot be imported and are skipped.
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
    """Return pairs of qualified name and docstring of everything documented in one file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other packages do not concern the user
        tree = ast.parse(file.path.read_bytes())
    return [(name, text) for name, node in _documentable(tree, file.module) if (text := ast.get_docstring(node))]


def _documentable(tree: ast.Module, module: str) -> Iterator[tuple[str, _Documented]]:
    """Yield each module, class and function with its qualified name; by a stack, because branches can nest deeply."""
    stack: list[tuple[str, ast.AST]] = [(module, tree)]
    while stack:
        scope, node = stack.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            scope = f"{scope}.{node.name}"
        if isinstance(node, _Documented):
            yield scope, node
        for block in _BLOCKS:
            stack.extend((scope, child) for child in getattr(node, block, ()))
