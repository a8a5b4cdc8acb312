"""`polyseme.fit`: every kind of source, every model, seed words, bad input, and the same run as the command line."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import oracles
import polyseme
from cli_runner import FRUIT, METAL, TEXTS, run, write_folder
from polyseme import InputError, UnsupportedError
from polyseme.datasets import synthetic_corpus
from polyseme.progress import SilentReporter
from polyseme.runs import choosing, counting, fitting
from polyseme.runs import store as folder
from polyseme.runs.reading import reader_notes
from polyseme.runs.tables import topics_csv
from polyseme.selection import consensus, reading_topics
from polyseme.selection.reading import shared_topics
from polyseme.selection.short_texts import compare_mixture
from polyseme.text import Document, read
from polyseme.text.readers import Problems

SETTINGS = {"max_df": 1.0}


@pytest.fixture(scope="module")
def fitted() -> polyseme.Run:
    return polyseme.fit(TEXTS, 2, **SETTINGS)


def generated():
    yield from TEXTS


SOURCES = {
    "list": lambda place: TEXTS,
    "tuple": lambda place: tuple(TEXTS),
    "generator": lambda place: generated(),
    "array": lambda place: np.array(TEXTS),
    "polars": lambda place: pl.DataFrame({"body": TEXTS, "n": range(30)}),
    "documents": lambda place: [Document(str(row), text) for row, text in enumerate(TEXTS)],
    "file": lambda place: place / "lines.txt",
    "file name": lambda place: str(place / "lines.txt"),
    "files": lambda place: [place / "a.csv", place / "b.csv"],
    "reader": lambda place: read(place / "lines.txt"),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_gives_the_same_topics(kind: str, fitted: polyseme.Run, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    for name, rows in (("a", TEXTS[:10]), ("b", TEXTS[10:])):
        pl.DataFrame({"text": rows}).write_csv(tmp_path / f"{name}.csv")
    found = polyseme.fit(SOURCES[kind](tmp_path), 2, **SETTINGS)
    np.testing.assert_array_equal(found.model.components_, fitted.model.components_)
    assert found.info.documents == 30
    assert found.texts == TEXTS


def test_a_pandas_frame(fitted: polyseme.Run) -> None:
    pandas = pytest.importorskip("pandas")
    found = polyseme.fit(pandas.DataFrame({"text": TEXTS, "label": ["a", "b"] * 15}), 2, **SETTINGS)
    np.testing.assert_array_equal(found.model.components_, fitted.model.components_)
    assert found.view.corpus.labels[:3] == ["a", "b", "a"]


def test_the_call_gives_the_run_of_the_command(tmp_path: Path) -> None:
    write_folder(tmp_path)
    assert run("fit", "docs", "-k", "2", "-o", "command", "--max-df", "1", cwd=tmp_path).exit_code == 0
    found = polyseme.fit(tmp_path / "docs", 2, output=tmp_path / "call", **SETTINGS)
    other = polyseme.open_run(tmp_path / "command")
    assert {path.name for path in found.path.iterdir()} == {path.name for path in other.path.iterdir()}
    assert found.documents.equals(other.documents)
    np.testing.assert_array_equal(found.model.components_, other.model.components_)
    names = ("documents.index", "documents.blocks", "vectorizer.json", "topics.csv", "doc_topic.npy")
    for name in (*names, "shards/manifest.json"):
        assert (found.path / name).read_bytes() == (other.path / name).read_bytes()


def test_five_lines_from_texts_to_a_page(tmp_path: Path) -> None:
    found = polyseme.fit(TEXTS, 2, **SETTINGS)
    found.explore(tmp_path / "page.html")
    found.save(tmp_path / "run")
    again = polyseme.open_run(tmp_path / "run")
    assert "<title>Topics" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert str(again.topics()) == str(found.topics())


def test_nothing_is_read_back_or_folded_in_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The page, the tables and the printed topics come from values in memory."""
    for name in ("polyseme.estimators.base.load", "polyseme.runs.write.load"):
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("a file of the run was read"))
    calls = []
    fold_in = polyseme.core.fitted.FoldIn.__call__
    monkeypatch.setattr(
        polyseme.core.fitted.FoldIn, "__call__", lambda *arguments: (calls.append(1), fold_in(*arguments))[1]
    )
    result = run("fit", str(write_folder(tmp_path) / "docs"), "-k", "2", "--max-df", "1", cwd=tmp_path)
    assert result.exit_code == 0, result.output
    assert "orchard 100%" in result.stdout
    assert len(calls) == 1


def test_a_chosen_number_starts_from_the_typical_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice((METAL, FRUIT)[number % 2].split(), 8)) for number in range(40)]
    run = polyseme.fit(texts, output=tmp_path / "run", **SETTINGS)
    choice = run.info.selection
    start = reading_topics(run.counts, choice.n_topics, choice.typical_fit)
    expected = polyseme.PLSA(choice.n_topics, init=(None, start), random_state=0).fit(run.counts)
    np.testing.assert_array_equal(run.model.components_, expected.components_)

    def kill(*arguments):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(fitting, "fit_with_progress", kill)  # after the choice
        with pytest.raises(RuntimeError):
            polyseme.fit(texts, output=tmp_path / "resumed", **SETTINGS)
    resumed = polyseme.fit(texts, output=tmp_path / "resumed", resume=True, **SETTINGS)
    np.testing.assert_array_equal(resumed.model.components_, run.model.components_)


@pytest.mark.parametrize(
    ("model", "estimator"),
    [
        ("plsa", polyseme.PLSA(3)),
        ("lda", polyseme.LDA(3)),
        ("nmf", polyseme.NMF(3)),
        ("ctm", polyseme.CorrelatedTopicModel(3)),
        ("hierarchical", polyseme.HierarchicalPLSA([-1, 0, 0, 0])),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_given_number_starts_from_the_topics_that_several_fits_share(model: str, estimator: Any) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice((METAL, FRUIT)[number % 2].split(), 8)) for number in range(40)]
    run = polyseme.fit(texts, 3, model=model, levels="none", random_state=4, max_iter=5, **SETTINGS)
    start = shared_topics(run.counts, 3, random_state=4)
    expected = estimator.set_params(init=(None, start), random_state=4, max_iter=5).fit(run.counts)
    np.testing.assert_array_equal(run.model.components_, expected.components_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_consensus_gives_the_start_and_the_reproducibility_of_topics() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice((METAL, FRUIT)[number % 2].split(), 8)) for number in range(40)]
    run = polyseme.fit(texts, 2, consensus=True, levels="none", random_state=4, max_iter=5, **SETTINGS)
    shared = consensus(run.counts, 2, n_fits=fitting.CONSENSUS_FITS, random_state=4).best
    start = 0.999 * shared.model.components_ + 0.001 / len(run.vocabulary)
    expected = polyseme.PLSA(2, init=(None, start), random_state=4, max_iter=5).fit(run.counts)
    np.testing.assert_allclose(run.model.components_, expected.components_, rtol=1e-4, atol=1e-7)
    assert [row.share for row in run.info.reproducibility] == shared.reproducibility.tolist() == [1, 1]
    assert [row.least for row in run.info.reproducibility] == shared.interval[:, 0].tolist()
    header, first, *_ = topics_csv(run.view).splitlines()
    assert header.endswith("junk,reproducibility,reproducibility_least,reproducibility_most")
    assert first.endswith(",1.0000,0.7225,1.0000")


def test_a_topic_that_leaves_the_consensus_is_found_by_none() -> None:
    X = synthetic_corpus(80, n_topics=2, n_words=40, random_state=0).counts()
    shared = consensus(X, 2, n_fits=5).best
    other = polyseme.PLSA.from_topics(np.roll(shared.model.components_[[0, 1]], 20, axis=1) + 1e-9)
    assert [row.share for row in fitting._reproducibility(shared, shared.model)] == shared.reproducibility.tolist()
    assert [row.share for row in fitting._reproducibility(shared, other)] == [0, 0]


def test_a_tree_that_needs_more_topics_than_were_chosen_gets_them() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice((METAL, FRUIT)[number % 2].split(), 8)) for number in range(120)]
    run = polyseme.fit(texts, model="hierarchical", depth=5, max_iter=2, **SETTINGS)
    assert len(run.model.leaves_) == run.info.selection.n_topics == 32
    assert run.info.selection.typical_fit is None


def short_texts(n_documents: int) -> list[str]:
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(120, 0.15), 4)
    words = np.array([f"w{''.join('abcdefghij'[int(digit)] for digit in str(number))}x" for number in range(120)])
    return [" ".join(rng.choice(words, 4, p=topics[number % 4])) for number in range(n_documents)]


def test_short_texts_get_one_topic_per_document_if_that_predicts_better(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(choosing, "LEAST_COMPARED", 200)
    texts = short_texts(200)
    run = polyseme.fit(texts, 4, output=tmp_path / "run", page=False, language=None, verbose=1)
    note = r"Model: model=mixture, .* predicts held-out words .* \(perplexity \d+; model=plsa: \d+\)\."
    assert re.search(note, " ".join(capsys.readouterr().err.split()))
    assert isinstance(run.model, polyseme.MultinomialMixture)
    assert (run.info.model.name, run.info.model.estimator, run.levels) == ("mixture", "MultinomialMixture", [4])
    same = polyseme.fit(texts, 4, model="mixture", language=None)
    np.testing.assert_array_equal(run.model.components_, same.model.components_)
    with monkeypatch.context() as patched:
        patched.setattr(fitting, "fit_with_progress", lambda *_: 1 / 0)  # after the choice
        with pytest.raises(ZeroDivisionError):
            polyseme.fit(texts, 4, output=tmp_path / "resumed", page=False, language=None)
    resumed = polyseme.fit(texts, 4, output=tmp_path / "resumed", page=False, language=None, resume=True)
    np.testing.assert_array_equal(run.model.components_, resumed.model.components_)


@pytest.mark.parametrize("given", [{"model": "plsa"}, {"background": 0.1}, {"levels": "auto"}, {"shards": True}, {}])
def test_other_fits_get_plsa(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if given:
        monkeypatch.setattr(choosing, "LEAST_COMPARED", 200)
    assert isinstance(polyseme.fit(short_texts(200), 4, language=None, **given).model, polyseme.PLSA)


def test_plsa_is_kept_if_a_mixture_predicts_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "LEAST_COMPARED", 200)
    mixture, plsa = compare_mixture(polyseme.fit(short_texts(200), 4, model="plsa", language=None).counts, 4)
    assert mixture.perplexity < plsa.perplexity
    monkeypatch.setattr(choosing, "compare_mixture", lambda *_, **__: (plsa, mixture))
    assert isinstance(polyseme.fit(short_texts(200), 4, language=None).model, polyseme.PLSA)


def test_a_temporary_run_is_removed_with_the_object() -> None:
    found = polyseme.fit(TEXTS, 2, **SETTINGS)
    folder = found.path
    assert folder.is_dir()
    edited = found.edit(rename={0: "First"})
    del found
    assert edited.path == folder
    assert edited.topics()[0].name == "First"
    del edited
    assert not folder.exists()


# models


@pytest.mark.parametrize("model", ["plsa", "lda", "ctm", "hierarchical", "nmf", "mixture"])
def test_every_model_makes_a_run(model: str, tmp_path: Path) -> None:
    found = polyseme.fit(TEXTS, 2, model=model, output=tmp_path / "run", **SETTINGS)
    again = polyseme.open_run(tmp_path / "run")
    assert again.info.model.name == model
    np.testing.assert_array_equal(again.doc_topic, found.doc_topic)
    np.testing.assert_allclose(again.doc_topic.sum(axis=1), 1, rtol=1e-5)
    frame = again.transform([FRUIT, METAL])
    assert frame["topic"].to_list() == [again.doc_topic[1].argmax(), again.doc_topic[0].argmax()]
    updated = again.update([FRUIT, METAL, "nothing known"])
    assert updated.info.documents == 33
    np.testing.assert_allclose(updated.doc_topic[:30], found.doc_topic, atol=1e-5)
    np.testing.assert_array_equal(updated.model.components_, again.model.components_)
    assert updated.edit(rename={1: "Second"}).topics()[1].name == "Second"
    assert [(hit.row, hit.n_duplicates) for hit in updated.search("plums", 3)][:1] == [(1, 20)]
    updated.explore(tmp_path / "page.html")
    if model == "nmf":
        with pytest.raises(UnsupportedError, match="NMF"):
            updated.evaluate()
    else:
        assert updated.evaluate().n_documents == 33


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "gpt"}, "model= must be plsa, lda, ctm"),
        ({"model": "lda", "background": 0.1}, "background= is not an option of model=lda"),
        ({"model": "lda", "consensus": True}, "consensus= is for model=plsa without seeds= and background="),
        ({"background": 0.1, "consensus": True}, "consensus= is for model=plsa without seeds= and background="),
        ({"model": "plsa", "depth": 2}, "depth= is not an option of model=plsa"),
        ({"model": "ctm", "seeds": {"a": ["plums"]}}, "seeds= is not an option of model=ctm"),
        ({"model": "ctm", "shards": True}, "model=ctm cannot be fitted from shards"),
        ({"n_topics": 0}, "n_topics= must be"),
        ({"n_topics": 31}, "too few for 31 topics"),
        ({"language": "klingon"}, "klingon"),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(options, message, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        polyseme.fit(TEXTS, output=tmp_path / "run", **{"n_topics": 2, **options})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ([], {}, "The list is empty"),
        (["", "  "], {}, "no text|empty"),
        (["only one document"], {}, "There is only one document"),
        (["the", "and of"], {"language": "english"}, "no words to count"),
        (["iron ore", "ore"], {"stop_words": ["iron", "Ores"], "language": "english"}, "words out of stop_words="),
        (["a text", 3], {}, "int"),
        (["a text", b"bytes"], {}, "bytes"),
        (pl.DataFrame({"text": TEXTS}), {"text": "body"}, "There is no column 'body'"),
        (pl.DataFrame({"number": [1, 2]}), {}, "text"),
        ({"a": 1}, {}, "dict"),
        (7, {}, "int"),
        ("no such file.txt", {}, "no such file|There is no file"),
        (TEXTS, {"text": "body"}, "text="),
    ],
)
def test_bad_sources_are_refused_and_nothing_is_written(source, options, message, tmp_path: Path) -> None:
    with pytest.raises((InputError, FileNotFoundError), match=message):
        polyseme.fit(source, 2, output=tmp_path / "run", **options)
    assert list(tmp_path.iterdir()) == []


# seed words


SEEDS = {"Ore": ("iron", "zinc"), "Food": ("Plums",)}


def test_named_topics_come_first_in_their_order(tmp_path: Path) -> None:
    found = polyseme.fit(TEXTS, 3, seeds=SEEDS, output=tmp_path / "run", **SETTINGS)
    assert [topic.name for topic in found.topics()] == ["Ore", "Food", found.info.automatic_names[2]]
    assert "copper" in found.topics()[0].words[:5]
    assert "cherries" in found.topics()[1].words[:5]
    again = polyseme.open_run(tmp_path / "run")
    assert again.info.topic_names == {0: "Ore", 1: "Food"}
    assert again.info.model.seeds == {"Ore": ("iron", "zinc"), "Food": ("Plums",)}


@pytest.mark.parametrize(
    "content", ["# topics\nOre: iron, zinc\n\nFood: Plums\n", json.dumps(SEEDS)], ids=["lines", "json"]
)
def test_seeds_from_a_file(content: str, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "seeds").write_text(content, encoding="utf-8")
    result = run("fit", "lines.txt", "--seeds", "seeds", "-k", "3", "--max-df", "1", cwd=tmp_path)
    assert result.exit_code == 0, result.output
    assert "Ore: " in result.stdout
    assert polyseme.open_run(tmp_path / "lines-run").info.topic_names == {0: "Ore", 1: "Food"}


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ({"A": ["unicorn"]}, "none of the words of 'A'"),
        ({"A": ["plums"], "B": ["plums"]}, "'plums' is given for 'A' and for 'B'"),
        ({"A": "plums"}, "must be a list of strings"),
        (["plums"], "must be names with their words"),
        ({"A": ["plums"], "B": ["iron"], "C": ["zinc"]}, "names 3 topics, but n_topics=2"),
    ],
)
def test_wrong_seeds(seeds, message, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        polyseme.fit(TEXTS, 2, seeds=seeds, output=tmp_path / "run", **SETTINGS)
    assert not (tmp_path / "run").exists()


# shards


def test_long_texts_are_counted_from_shards_automatically(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = polyseme.fit(TEXTS, 2, **SETTINGS)
    monkeypatch.setattr(counting, "MAX_CHARACTERS", 700)
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    result = run("fit", "lines.txt", "-k", "2", "--max-df", "1", cwd=tmp_path)
    assert result.exit_code == 0, result.output
    assert "more than 700 characters: they are counted and fitted from shards on disk (--in-memory" in result.stderr
    found = polyseme.open_run(tmp_path / "lines-run")
    assert found.info.in_memory is False
    assert found.texts == TEXTS
    assert found.vocabulary == plain.vocabulary
    assert (found.counts != plain.counts).nnz == 0
    np.testing.assert_array_equal(found.model.components_, plain.model.components_)
    forced = run("fit", "lines.txt", "-k", "2", "--max-df", "1", "--in-memory", "-o", "forced", cwd=tmp_path)
    assert "shards" not in forced.stderr
    assert polyseme.open_run(tmp_path / "forced").info.in_memory is True


def test_ctrl_c_returns_what_is_fitted_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    original = polyseme.PLSA.fit

    def interrupted(self, *arguments, **options):
        original(self, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(polyseme.PLSA, "fit", interrupted)
    with pytest.warns(UserWarning, match="Stopped by Ctrl-C"):
        found = polyseme.fit(TEXTS, 2, **SETTINGS)
    assert found.info.interrupted is True


def test_files_that_cannot_be_read_give_a_warning(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "docs" / "broken.pdf").write_bytes(b"no pdf")
    with pytest.warns(UserWarning, match="1 problem while reading"):
        found = polyseme.fit(tmp_path / "docs", 2, **SETTINGS)
    assert sum(found.info.problems.values()) == 1


def test_a_killed_call_is_resumed_with_the_same_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = polyseme.fit(TEXTS, 2, **SETTINGS)

    def broken(*_, **__):
        raise OSError(5, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "fit_with_progress", broken)
        with pytest.raises(OSError, match="repeat the call with resume=True"):
            polyseme.fit(TEXTS, 2, output=tmp_path / "run", **SETTINGS)
    with pytest.raises(InputError, match=r"resume: .*n_topics= was 2, now 3"):
        polyseme.fit(TEXTS, 3, output=tmp_path / "run", resume=True, **SETTINGS)
    found = polyseme.fit(TEXTS, 2, output=tmp_path / "run", resume=True, **SETTINGS)
    np.testing.assert_array_equal(found.model.components_, wanted.model.components_)
    assert math.isclose(found.model.log_likelihood_, wanted.model.log_likelihood_)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(("max_iter", "advice"), [(2, "a larger max_iter= makes topics sharper"), (2000, "rounding")])
def test_the_note_of_a_fit_that_has_not_converged_says_what_ended_it(max_iter, advice):
    notes = []
    report = SilentReporter()
    report.note = notes.append
    model = polyseme.PLSA(3, tol=0, max_iter=max_iter, dtype="float32", random_state=0)
    fitting.fit_with_progress(model, oracles.mixed_counts(0, 30, 20, 4), report)
    assert not model.converged_
    assert len(notes) == 1
    assert advice in notes[0]


def test_a_resumed_fit_has_the_title_of_an_uninterrupted_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fit that was killed before the last rename is complete, but its folder may have another name by now."""

    def killed(*_):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(folder, "_publish", killed)
        with pytest.raises(RuntimeError):
            polyseme.fit(TEXTS, 2, output=tmp_path / "first", **SETTINGS)
    folder.work_folder(tmp_path / "first").rename(folder.work_folder(tmp_path / "second"))
    resumed = polyseme.fit(TEXTS, 2, output=tmp_path / "second", resume=True, **SETTINGS)
    wanted = polyseme.fit(TEXTS, 2, output=tmp_path / "other" / "second", **SETTINGS)
    assert replace(resumed.info, written=wanted.info.written, seconds=wanted.info.seconds) == wanted.info
    assert polyseme.open_run(resumed.path).info == resumed.info
    assert "<title>second" in (resumed.path / "explorer.html").read_text(encoding="utf-8")
    assert resumed.store.files.path("explorer.html").is_file()


def test_few_and_short_documents_are_said_to_be_so(capsys: pytest.CaptureFixture[str]) -> None:
    long = [f"{text} {' '.join(f'of{row}x{n}' for n in range(20))}" for row, text in enumerate(TEXTS[:5])]
    polyseme.fit(long, 2, verbose=1, **SETTINGS)
    printed = capsys.readouterr().err
    assert "5 documents: read them." in printed
    assert "too few to tell" not in printed
    polyseme.fit([f"rain {text.split()[0]} in{row}" for row, text in enumerate(TEXTS)], 2, verbose=1, **SETTINGS)
    printed = " ".join(capsys.readouterr().err.split())
    assert "read them." not in printed
    assert "counted words per document are too few to tell its topics" in printed


def test_notes_count_the_files_that_they_are_about():
    notes = Counter({"Dates are day first": 2, "Columns: text": 1})
    reader = SimpleNamespace(notes=notes, dropped={}, encoded=(0, 0), problems=Problems())
    assert list(reader_notes(reader)) == ["Dates are day first (2 files).", "Columns: text."]
