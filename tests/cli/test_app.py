"""The command line: ``polyseme demo``, interrupts, and errors of one line."""

import json
import sys
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import polyseme
from cli_runner import here
from polyseme.cli import console
from polyseme.cli.app import main
from polyseme.cli.commands import demo
from polyseme.core.fitted import FittedTopics, TrainingDocuments
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.datasets import TextCorpus, docstrings
from polyseme.io.files import FileManifest
from polyseme.runs.corpus import RunCorpus
from polyseme.runs.documents import Labels
from polyseme.runs.info import ModelInfo, RunInfo
from polyseme.runs.store import RunStore
from polyseme.runs.view import TopicView

SMALL_CORPUS = TextCorpus(
    texts=["apples pears plums fruit"] * 12 + ["iron copper zinc metal"] * 18,
    titles=[f"orchard.tree{i}" for i in range(12)] + [f"mine.shaft{i}" for i in range(18)],
    labels=["orchard"] * 12 + ["mine"] * 18,
)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the corpus of the demo by a small one."""
    monkeypatch.setattr("polyseme.datasets.docstrings", lambda progress: SMALL_CORPUS)
    monkeypatch.setattr(demo, "MAX_DF", 1.0)


def test_demo_on_real_docstrings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo reads more packages, and takes half a minute; tests/test_datasets.py reads them all."""
    two = partial(docstrings, ("numpy", "sklearn"), standard_library=False)
    monkeypatch.setattr("polyseme.datasets.docstrings", two)
    result = here("demo", "-k", "3", "--max-iter", "2")
    assert result.exit_code == 0, result.output
    for part in ("sklearn", "topic  weight", "documents,", "tokens", "Perplexity", "Try next"):
        assert part in result.stdout
    assert result.stdout.endswith(f"Page to explore: {Path('polyseme-demo', 'explorer.html')}\n")
    assert "Stopped after 2 iterations" in result.stderr


def test_demo_is_repeatable(small_corpus: None) -> None:
    def topics() -> str:
        output: str = here("demo", "-k", "2", "--seed", "3").stdout
        return output.partition("30 documents")[0]

    assert topics() == topics()


def test_demo_finds_the_two_themes(small_corpus: None) -> None:
    result = here("demo", "-k", "2", "--seed", "1")
    assert result.exit_code == 0, result.output
    assert "mine 100%" in result.stdout
    assert "orchard 100%" in result.stdout
    assert "60.0%" in result.stdout
    assert "30 documents, 8 words, 120 tokens" in result.stdout
    assert "Perplexity of these documents 4.0" in result.stdout


def test_demo_leaves_a_run_that_can_be_searched(small_corpus: None) -> None:
    assert here("demo", "-k", "2").exit_code == 0
    assert here("demo", "-k", "2", "-o", "polyseme-demo").exit_code == 0  # its own run may be replaced
    result = here("search", "polyseme-demo", "copper", "-n", "2", "--json")
    assert result.exit_code == 0, result.output
    hits = json.loads(result.stdout)["hits"]
    assert [hit["n_duplicates"] for hit in hits] == [17]
    assert all(hit["id"].startswith("mine.") for hit in hits)


def test_an_interrupted_demo_shows_the_topics_so_far(small_corpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = polyseme.PLSA.fit

    def interrupted_fit(self: Any, *args: Any, **kwargs: Any) -> None:
        fit(self, *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(polyseme.PLSA, "fit", interrupted_fit)
    result = here("demo", "-k", "2")
    assert result.exit_code == 130
    assert "mine 100%" in result.stdout
    assert "topics of the last completed iteration" in result.stderr
    assert "Try next" not in result.stdout


def test_an_interrupt_inside_the_fit_keeps_the_model(small_corpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt_at_the_second_iteration(entry: Any) -> str:
        iterations.append(entry)
        if len(iterations) == 2:
            raise KeyboardInterrupt
        return ""

    iterations: list[Any] = []
    monkeypatch.setattr("polyseme.runs.fitting.perplexity_shown", interrupt_at_the_second_iteration)
    result = here("demo", "-k", "2")
    assert result.exit_code == 130
    assert "topic  weight" in result.stdout


def test_an_interrupt_before_the_fit_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(progress: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("polyseme.datasets.docstrings", interrupted)
    result = here("demo")
    assert result.exit_code == 130
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo", "-k", "0"),
        ("demo", "-k", "many"),
        ("demo", "--seed", "-1"),
        ("demo", "--max-iter", "0"),
        ("demo", "--no-such-option"),
        ("demo", "surplus"),
        ("no-such-command",),
    ],
)
def test_wrong_arguments_are_reported_in_one_line(arguments: tuple[str, ...]) -> None:
    result = here(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("polyseme: ")
    assert result.stderr.endswith(".\n")
    assert result.stderr.count("\n") == 1


def test_version() -> None:
    result = here("--version")
    assert (result.exit_code, result.stdout) == (0, f"polyseme {version('polyseme')}\n")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("demo", "--help")])
def test_help(arguments: tuple[str, ...]) -> None:
    result = here(*arguments)
    assert result.exit_code == 0
    assert "Usage: polyseme" in result.stdout
    assert "demo" in result.stdout


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_missing_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python prints the message of SystemExit on standard error and ends with code 1."""
    for name in [name for name in sys.modules if name.startswith("polyseme.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as stop:
        import_module("polyseme.cli.app")
    assert (
        stop.value.code
        == "The command line needs the extra 'cli': pip install 'polyseme[cli]' (in a checkout: pip install '.[cli]')."
    )


def test_main_runs_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["polyseme", "--version"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("polyseme ")


def test_topic_rows_summarize_the_model() -> None:
    fitted = FittedTopics(
        np.array([[0.1, 0.7, 0.2], [0.6, 0.1, 0.3]]), np.array([0.25, 0.75]), np.array([0.475, 0.25, 0.275]),
        np.ones(2, dtype=bool), 16.0, 3.0, MaximumLikelihood(),
    )  # fmt: skip
    doc_weights = np.array([0.125, 0.375, 0.5])  # P(d|z): 0.5, 0.3, 0.2 and 0, 0.4, 0.6
    documents = TrainingDocuments(doc_weights, np.array([[1.0, 0.0], [0.2, 0.8], [0.1, 0.9]]), np.zeros(3))
    info = RunInfo(ModelInfo("PLSA", "plsa", 2), 3, 3, automatic_names=("bee, cow, ant", "ant, cow, bee"))
    corpus = RunCorpus(RunStore(Path(), info, FileManifest(Path())))
    corpus.store.vocabulary = ["ant", "bee", "cow"]
    corpus.store.model = SimpleNamespace(_fitted=fitted, _training=documents)
    corpus.counts = sp.csr_array([[0, 2, 0], [3, 1, 2], [5, 0, 3]])
    corpus.groups, corpus.names = np.arange(3), ["one", "two", "three"]
    corpus.label_numbers = Labels(["x", "y"], np.array([0, 1, 1]))
    rows = console.topic_rows(TopicView(corpus), n_words=2)
    assert [row.topic for row in rows] == [1, 0]
    assert [row.weight for row in rows] == [0.75, 0.25]
    assert [row.fit for row in rows] == pytest.approx([0.4 * 0.8 + 0.6 * 0.9, 0.5 + 0.3 * 0.2 + 0.2 * 0.1])
    assert [row.words for row in rows] == [["ant", "cow"], ["bee", "cow"]]
    assert TopicView(corpus).typical.documents == [[1], [2, 1]]  # document 0 is too short
    assert list(rows[0].shares) == ["y", "x"]
    assert list(rows[0].shares.values()) == pytest.approx([1.0, 0.0])


def test_the_commands_that_the_demo_suggests_run(small_corpus: None) -> None:
    assert here("demo", "-k", "2").exit_code == 0
    for command in demo.next_steps(Path("polyseme-demo")):
        program, *arguments = command.split()
        assert program == "polyseme"
        assert here(*arguments).exit_code == 0, command
