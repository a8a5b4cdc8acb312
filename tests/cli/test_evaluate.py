"""``polyseme evaluate``: measures on the documents of the run and on other documents."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from polyseme.cli.app import app
from polyseme.cli.commands.evaluate import STEPS
from polyseme.metrics import coherence, evaluate, label_agreement, top_words, topic_diversity
from polyseme.metrics.topics import fit_report
from polyseme.runs import open_run
from polyseme.runs.reading import main_labels
from polyseme.uncertainty import residual_test

FRUIT = ["apples", "pears", "plums", "cherries", "grapes", "orchard"]
METAL = ["iron", "copper", "zinc", "tin", "silver", "mine"]


def run(*arguments: str, **environment: str) -> Any:
    environment = {"COLUMNS": "140", "TERM": "dumb", **environment}
    return CliRunner().invoke(app, arguments, prog_name="polyseme", env=environment)


def lines(seed: int, n: int) -> list[str]:
    """Return texts of two themes, with some words of the other theme."""
    rng = np.random.default_rng(seed)
    texts = []
    for number in range(n):
        own, other = (FRUIT, METAL) if number % 2 else (METAL, FRUIT)
        texts.append(" ".join([*rng.choice(own, 12), rng.choice(other)]))
    return texts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of sixty labeled documents, and other documents."""
    folder = tmp_path_factory.mktemp("evaluate")
    for name, seed, n in (("training", 0, 60), ("other", 1, 30)):
        rows = [f"{'fruit' if i % 2 else 'metal'},{line}" for i, line in enumerate(lines(seed, n))]
        (folder / f"{name}.csv").write_text("\n".join(["kind,body", *rows]), encoding="utf-8")
    (folder / "foreign.txt").write_text("nothing of this\nis known there", encoding="utf-8")
    reading = ("--text", "body", "--label", "kind", "--language", "none", "--max-df", "1", "-q")
    done = run("fit", str(folder / "training.csv"), "-k", "2", "-o", str(folder / "run"), *reading)
    assert done.exit_code == 0, done.output
    return folder


def as_json(*arguments: str) -> dict[str, Any]:
    result = run("evaluate", *arguments, "--json", "-q")
    assert result.exit_code == 0, result.output
    assert not result.stderr
    return json.loads(result.stdout)


def test_the_measures_are_those_of_the_python_functions(folder: Path) -> None:
    found, opened = as_json(str(folder / "run")), open_run(folder / "run")
    model, counts = opened.model, opened.counts
    words = top_words(model, 10)
    assert found["by"] == "documents of the run"
    assert found["documents"] == 60
    assert found["perplexity"]["perplexity"] == pytest.approx(model.perplexity(counts))
    assert found["perplexity"]["unigram_perplexity"] > 1.5 * found["perplexity"]["perplexity"]
    completion = model.completion_report(counts)
    assert found["completion"]["perplexity"] == pytest.approx(completion.perplexity)
    assert found["completion"]["standard_error"] == pytest.approx(completion.standard_error)
    assert list(found["coherence"]) == ["npmi", "c_v", "uci"]
    for measure in found["coherence"]:
        report = coherence(words, counts, measure)
        assert found["coherence"][measure]["mean"] == pytest.approx(report.mean)
        assert [topic["coherence"][measure] for topic in found["topics"]] == pytest.approx(list(report.topics))
        assert found["coherence"][measure]["reference"] == "documents"
    assert found["diversity"] == topic_diversity(words)
    fit = fit_report(model.doc_topic_, model.doc_weights_)
    assert [topic["fit"] for topic in found["topics"]] == pytest.approx(list(fit.fit), rel=1e-5)
    assert found["fit"]["n_fitting"] == 2
    wanted = label_agreement(model.doc_topic_, opened.view.corpus.labels)
    assert found["agreement"]["nmi"] == pytest.approx(wanted.nmi) == pytest.approx(1)
    assert found["agreement"]["n_labels"] == 2
    assert [topic["weight"] for topic in found["topics"]] == pytest.approx(list(model.topic_weights_), rel=1e-4)
    assert found["topics"][0]["words"] == [opened.vocabulary[word] for word in words[0]]


def test_documents_and_words_that_are_explained_worst(folder: Path) -> None:
    texts = [" ".join(pair) for pair in zip(lines(2, 30), lines(3, 30), strict=True)]
    rows = [f"{number},title {number},{text}" for number, text in enumerate(["iron tin", *texts])]
    (folder / "long.csv").write_text("\n".join(["id,title,body", *rows]), encoding="utf-8")
    arguments = (str(folder / "run"), str(folder / "long.csv"), "--text", "body")
    opened, found = open_run(folder / "run"), as_json(*arguments)["explained"]
    explained = evaluate(opened.model, opened.vectorizer.transform(["iron tin", *texts])).explained
    assert explained is not None
    worst = (1 + np.argsort(explained.documents[1:], kind="stable"))[:5]
    assert [document["id"] for document in found["documents"]] == [str(row) for row in worst]
    assert [document["explained"] for document in found["documents"]] == pytest.approx(explained.documents[worst])
    columns = [opened.vocabulary.index(word["word"]) for word in found["words"]]
    assert [word["explained"] for word in found["words"]] == pytest.approx(np.sort(explained.words)[:10])
    assert [word["dispersion"] for word in found["words"]] == pytest.approx(explained.dispersion[columns])
    shown = run("evaluate", *arguments).stdout
    assert "explained worst, 20 tokens or more" in shown
    assert re.search(rf"{explained.documents[worst[0]]:.1%} │ +26 │ title {worst[0]} ", shown)
    assert f"{found['words'][0]['word']} {found['words'][0]['explained']:.1%}" in shown
    short = run("evaluate", str(folder / "run")).stdout
    assert "explained worst, 20 tokens or more" not in short
    assert as_json(str(folder / "run"))["explained"]["documents"] == []


def test_the_residual_test_is_made_on_request(folder: Path) -> None:
    opened, found = open_run(folder / "run"), as_json(str(folder / "run"), "--residuals")["residuals"]
    test = residual_test(opened)
    assert (found["p_value"], found["ratio"]) == (test.p_value, test.ratio)
    assert found["too_few"] == (test.p_value <= 0.05)
    assert found["words"] == [opened.vocabulary[word] for word in test.words]
    assert f"(p = {test.p_value:.2g}, residuals" in run("evaluate", str(folder / "run"), "--residuals").stdout
    assert as_json(str(folder / "run"))["residuals"] is None


def test_evaluation_on_other_documents(folder: Path) -> None:
    own = as_json(str(folder / "run"))
    found = as_json(str(folder / "run"), str(folder / "other.csv"), "--text", "body", "--label", "kind")
    assert (found["by"], found["documents"]) == ("documents given", 30)
    assert found["agreement"]["purity"] == 1
    assert found["perplexity"]["perplexity"] != own["perplexity"]["perplexity"]
    assert found["perplexity"]["perplexity"] < found["perplexity"]["unigram_perplexity"]
    unlabeled = as_json(str(folder / "run"), str(folder / "other.csv"), "--text", "body")
    assert unlabeled["agreement"] is None
    assert unlabeled["perplexity"] == found["perplexity"]


def test_tables(folder: Path) -> None:
    result = run("evaluate", str(folder / "run"), "--words", "4")
    assert result.exit_code == 0, result.output
    for text in (
        "Evaluated on 60 documents (those of the fit, so perplexities are too low)", "perplexity, completion",
        "without topics",
        "coherence, c_v", "of 4 words, in whole documents", "fitting topics", "2 of 2", "agreement, NMI", "1.000",
    ):  # fmt: skip
        assert text in result.stdout
    for kind in ("folded in", "completion"):
        assert re.search(rf"perplexity, {kind} +\S +[\d.]+ ± [\d.]+", result.stdout)
    assert "Evaluating ..." in result.stderr
    quiet = run("evaluate", str(folder / "run"), "-q")
    assert not quiet.stderr


def test_topics_show_their_coherence(folder: Path) -> None:
    rows = json.loads(run("topics", str(folder / "run"), "--json").stdout)["topics"]
    found = as_json(str(folder / "run"))
    for row in rows:
        assert row["coherence"] == pytest.approx(found["topics"][row["topic"]]["coherence"]["npmi"])
    assert "npmi" in run("topics", str(folder / "run")).stdout


def test_coherence_in_windows(folder: Path) -> None:
    opened = open_run(folder / "run")
    words = top_words(opened.model, 10)
    sequences = opened.vectorizer.sequences(opened.texts)
    own = as_json(str(folder / "run"), "--windows")
    for measure, window in (("uci", 10), ("npmi", 10), ("c_v", 110)):
        assert own["coherence"][measure]["mean"] == pytest.approx(coherence(words, sequences, measure).mean)
        assert own["coherence"][measure]["window"] == window
    other = as_json(str(folder / "run"), str(folder / "other.csv"), "--text", "body", "--windows")
    assert other["coherence"]["npmi"]["n_windows"] == 30 * (13 - 10 + 1)
    assert "in windows of 110 words" in run("evaluate", str(folder / "run"), "--windows").stdout
    training = str(folder / "training.csv")
    done = run("fit", training, "-k", "2", "-o", str(folder / "bare"), "--text", "body", "--no-texts", "-q")
    assert done.exit_code == 0, done.output
    refused = run("evaluate", str(folder / "bare"), "--windows", "-q")
    assert refused.exit_code == 1
    assert "--windows needs texts" in refused.stderr


def test_smoothing_is_the_weight_of_the_unigram(folder: Path) -> None:
    found = as_json(str(folder / "run"), "--smoothing", "1")
    assert found["completion"]["perplexity"] == pytest.approx(found["completion"]["unigram_perplexity"])


def test_the_progress_bar_gets_every_step(folder: Path) -> None:
    opened, steps = open_run(folder / "run"), []
    evaluate(opened.model, opened.counts, step=steps.append)
    assert len(steps) == STEPS == len(set(steps))


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("nowhere",), 1, "nowhere is not a run"),
        (("{run}", "{folder}/foreign.txt"), 1, "The documents have none of the words that the model knows"),
        (("{run}", "{folder}/missing.csv"), 1, "missing.csv"),
        (("{run}", "--text", "body"), 1, "describe INPUT, but no INPUT is given: add it, or omit these options."),
        (("{run}", "--words", "1"), 2, "--words"),
        (("{run}", "{folder}/foreign.txt", "--residuals"), 1, "on the documents of the run: omit INPUT."),
        (("{run}", "-", "--windows"), 1, "--windows needs texts: give files as INPUT"),
    ],
)
def test_errors_are_one_line(folder: Path, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    given = [argument.format(run=folder / "run", folder=folder) for argument in arguments]
    result = run("evaluate", *given, "-q")
    assert result.exit_code == code, result.output
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_of_several_labels_the_most_frequent_one_counts() -> None:
    assert main_labels(["a; b", "b", "", "c; a", "a"]) == ["a", "b", "", "a", "a"]
    assert main_labels([]) == []


def test_umass_is_computed_only_if_it_is_named(folder: Path) -> None:
    opened = open_run(folder / "run")
    found = evaluate(opened.model, opened.counts, measures=["umass"]).coherence
    assert found["umass"].mean == coherence(top_words(opened.model, 10), opened.counts, "umass").mean
    assert list(found) == ["umass"]


def test_measures_must_be_known(folder: Path) -> None:
    opened = open_run(folder / "run")
    with pytest.raises(ValueError, match="measures must be among umass, uci, npmi, c_v, got 'cv'"):
        evaluate(opened.model, opened.counts, measures=["cv"])
    with pytest.raises(ValueError, match="labels must have one entry for each of the 60 documents, got 1"):
        evaluate(opened.model, opened.counts, ["fruit"])
