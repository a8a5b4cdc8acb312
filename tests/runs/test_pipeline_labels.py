"""Runs whose topics are tied to labels: fit, transform, and the other calls and commands on such a run."""

import csv

import numpy as np
import polars as pl
import pytest

import cli_runner
import polyseme
from polyseme import InputError, UnsupportedError

WORDS = {
    "food": "cheese bread wine soup recipe kitchen oven butter salt dinner",
    "music": "guitar song album band concert piano melody drum singer tune",
    "=sport": "match team goal player season league coach ball win score",
}


def frame(n_documents=60, n_labeled=24):
    rng, names = np.random.default_rng(0), list(WORDS)
    truth = [names[c] for c in rng.integers(3, size=n_documents)]
    texts = [" ".join(rng.choice(WORDS[name].split(), 15)) for name in truth]
    labels = [name if row < n_labeled else "" for row, name in enumerate(truth)]
    ids = [f"d{row}" for row in range(n_documents)]
    return pl.DataFrame({"id": ids, "body": texts, "folder": labels}), truth


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    documents, _ = frame()
    folder = tmp_path_factory.mktemp("labels") / "run"
    return polyseme.fit(documents, text="body", labels_from="folder", output=folder, page=False)


def test_topics_have_the_names_of_labels_and_documents_are_classified(run):
    documents, truth = frame()
    assert run.info.topic_names == {0: "=sport", 1: "food", 2: "music", 3: "shared"}
    assert [row.name for row in sorted(run.topics(), key=lambda row: row.id)] == list(run.info.topic_names.values())
    table = run.transform(documents, text="body")
    assert table["predicted"].to_list() == truth
    assert table["probability"].min() > 1 / 3
    assert run.view.corpus.labels[:24] == truth[:24]
    opened = polyseme.open_run(run.path)
    assert opened.transform(["guitar and piano", "soup and bread"])["predicted"].to_list() == ["music", "food"]


def test_other_calls_work_or_say_why_not(run, tmp_path):
    documents, _ = frame()
    copy = run.save(tmp_path / "copy")
    assert copy.search("guitar concert").hits
    assert copy.evaluate() is not None
    assert copy.explore(tmp_path / "page.html").is_file()
    renamed = copy.edit(rename={1: "Essen"})
    assert renamed.info.topic_names[1] == "Essen"
    with pytest.raises(UnsupportedError, match="rename them"):
        renamed.edit(merge=[[0, 1]])
    new = documents.head(5).with_columns(pl.lit("new").alias("id"))
    with pytest.raises(UnsupportedError, match="cannot start from given topics"):
        renamed.update(new, text="body", refit=True)
    assert renamed.update(new.head(1), text="body").info.documents == 61


def test_the_commands(tmp_path):
    documents, truth = frame()
    documents.write_csv(tmp_path / "mails.csv")
    fit = ("fit", "mails.csv", "--text", "body", "--labels-from", "folder", "-k", "5", "-o", "run", "--no-page")
    for command in (fit, ("transform", "run", "mails.csv", "--text", "body", "-o", "out.csv")):
        assert cli_runner.run(*command, cwd=tmp_path).exit_code == 0
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["predicted"].lstrip("'") for row in rows] == truth
    assert not any(row["predicted"].startswith("=") for row in rows)
    names = polyseme.open_run(tmp_path / "run").info.topic_names
    assert names[4] == "free"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels_from": "nothing"}, "There is no column 'nothing' in"),
        ({"labels_from": "folder", "model": "lda"}, "labels_from= is for model=plsa: leave model=lda out."),
        ({"labels_from": "folder", "label": "id"}, "label= and labels_from= name two columns, 'id' and 'folder'"),
        ({"labels_from": "folder", "n_topics": 3}, "n_topics=3 is too small: the labels need at least 4 topics"),
        ({"labels_from": "empty"}, "labels_from=: no document has a label: name the column that has the labels."),
        ({"labels_from": "one"}, "labels_from=: all labels are 'a': give documents of at least two labels"),
        ({"labels_from": "folder", "shards": True}, "model=labels cannot be fitted from shards"),
        ({"model": "labels"}, "model= must be plsa, lda, ctm, hierarchical, nmf or mixture, got 'labels'."),
    ],
    ids=["column", "model", "label", "k", "empty", "one", "shards", "no-labels"],
)
def test_wrong_arguments_raise(arguments, message):
    documents, _ = frame()
    documents = documents.with_columns(pl.lit("").alias("empty"), pl.lit("a").alias("one"))
    with pytest.raises(InputError) as error:
        polyseme.fit(documents, text="body", **arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")
