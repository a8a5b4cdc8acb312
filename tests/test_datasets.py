"""The corpus of docstrings is complete, in a fixed order, and read without running the code of the packages."""

import sys
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest

from document_files import PAGES, dump
from polyseme import datasets
from polyseme.datasets import TextCorpus, docstrings, newsgroups
from polyseme.errors import InputError
from polyseme.text import read

SENTENCE = "word " * 20 + "of a made-up docstring, number "


@pytest.fixture(scope="module")
def corpus() -> TextCorpus:
    return docstrings()


def make_package(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def documented(number: int) -> str:
    return f'"""{SENTENCE}{number}."""'


def test_thousands_of_documents_from_each_package(corpus: TextCorpus) -> None:
    sizes = Counter(corpus.labels)
    assert set(sizes) == {"python", "numpy", "scipy", "sklearn"}
    assert min(sizes.values()) > 500
    assert len(corpus) == len(corpus.texts) == len(corpus.titles) == len(corpus.labels) > 4000


def test_titles_are_qualified_names(corpus: TextCorpus) -> None:
    label_of = dict(zip(corpus.titles, corpus.labels, strict=True))
    assert label_of["json.dumps"] == "python"
    assert label_of["numpy.linalg._linalg.svd"] == "numpy"
    assert label_of["sklearn.base.BaseEstimator.get_params"] == "sklearn"


def test_the_order_is_fixed_and_no_document_is_repeated(corpus: TextCorpus) -> None:
    assert list(dict.fromkeys(corpus.labels)) == ["python", "numpy", "scipy", "sklearn"]
    for label in set(corpus.labels):
        titles = [t for t, other in zip(corpus.titles, corpus.labels, strict=True) if other == label]
        assert titles == sorted(titles)
    assert len(set(corpus.texts)) == len(corpus.texts)
    assert min(len(text.split()) for text in corpus.texts) >= 20


def test_tests_and_vendored_packages_are_not_read(corpus: TextCorpus) -> None:
    parts = {part for title in corpus.titles for part in title.split(".")}
    assert parts.isdisjoint({"tests", "idlelib", "lib2to3", "site-packages"})


def test_modules_classes_functions_and_branches_are_read_without_importing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"""{documented(0)}
class Outer:
    {documented(1)}
    async def method(self):
        {documented(2)}
        def inner():
            {documented(3)}
try:
    import nothing
except ImportError:
    if True:
        def fallback():
            {documented(4)}
def short():
    "Too short."
def copy():
    {documented(4)}
raise AssertionError("this module was imported")
"""
    make_package(tmp_path, {"made_up/__init__.py": documented(5), "made_up/part.py": source})
    monkeypatch.syspath_prepend(tmp_path)

    corpus = docstrings(("made_up",), standard_library=False)

    assert corpus.titles == [
        "made_up",
        "made_up.part",
        "made_up.part.Outer",
        "made_up.part.Outer.method",
        "made_up.part.Outer.method.inner",
        "made_up.part.copy",
    ]
    assert corpus.labels == ["made_up"] * 6
    assert corpus.texts[0] == f"{SENTENCE}5."
    assert "made_up" not in sys.modules


def test_unreadable_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_package(
        tmp_path,
        {
            "damaged/__init__.py": documented(0),
            "damaged/not_python.py": "def (:",
            "damaged/not_text.py": b'"\xff\xfe"',
            "damaged/null.py": b"a = 1\x00",
            "damaged/odd_escape.py": f'{documented(1)}\na = "\\d"',
            "damaged/too_deep.py": "a = " + "-" * 200_000 + "1",
            "damaged/not-a-module.py": documented(2),
            "damaged/tests/test_it.py": documented(3),
        },
    )
    monkeypatch.syspath_prepend(tmp_path)
    calls: list[tuple[int, int]] = []

    corpus = docstrings(("damaged",), standard_library=False, progress=lambda done, total: calls.append((done, total)))

    assert corpus.titles == ["damaged", "damaged.odd_escape"]
    assert corpus.skipped == 4
    assert calls == [(done, 6) for done in range(1, 7)]


def test_packages_may_be_a_single_module_or_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_package(tmp_path, {"alone.py": documented(0)})
    monkeypatch.syspath_prepend(tmp_path)
    assert docstrings("alone", standard_library=False, min_words=5).titles == ["alone"]
    assert docstrings("alone", standard_library=False, min_words=500).titles == []


def test_packages_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No package called 'no_such_package' is installed: install it"):
        docstrings(("no_such_package",))
    with pytest.raises(InputError, match=r"'scipy\.stats' is not the name of a top-level package: give one"):
        docstrings(("scipy.stats",))
    monkeypatch.setattr(datasets, "find_spec", lambda name: ModuleSpec(name, None, origin="built-in"))
    with pytest.raises(InputError, match=r"The package 'compiled' has no Python sources to read: name another\."):
        docstrings(("compiled",))


def test_a_dump_of_any_name_is_read_with_the_format_wiki(tmp_path):
    (tmp_path / "dump").write_text(dump(*PAGES), encoding="utf-8")
    assert [d.title for d in read(tmp_path / "dump", format="wiki")] == ["Gatto", "Cane"]
    assert [d.title for d in read(tmp_path / "dump", format="wiki", categories=["felini"])] == ["Gatto"]


def test_newsgroups_come_from_scikit_learn(monkeypatch):
    bunch = SimpleNamespace(data=["x", "y"], filenames=["/a/sci.space/1", "/a/rec.autos/2"], target=[1, 0])
    bunch.target_names = ["rec.autos", "sci.space"]
    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", lambda **_: bunch)
    corpus = newsgroups()
    assert (corpus.texts, corpus.titles) == (["x", "y"], ["sci.space/1", "rec.autos/2"])
    assert corpus.labels == ["sci.space", "rec.autos"]

    def offline(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", offline)
    with pytest.raises(InputError, match="connect to the network and try again"):
        newsgroups()
