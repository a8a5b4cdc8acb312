"""``polyseme fit`` and ``polyseme topics``: runs from every kind of input, and the choice of the number of topics."""

import csv
import gzip
import json
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme
from cli_runner import FRUIT, TEXTS, run, write_folder, write_texts
from explorer_corpora import themed_page_data
from polyseme import open_run
from polyseme.datasets import synthetic_corpus
from polyseme.progress import SilentReporter, _rate
from polyseme.runs import choosing, counting, fitting
from polyseme.runs.choosing import choose_n_topics
from polyseme.runs.store import atomic_folder
from polyseme.runs.tables import FORMULA_STARTS, escape_formula


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


@pytest.fixture
def finished(folder: Path) -> Path:
    result = run("fit", "docs", "-k", "2", "-o", "out", "--max-df", "1", cwd=folder)
    assert result.exit_code == 0, result.output
    return folder / "out"


def test_a_folder_becomes_a_run(finished: Path) -> None:
    names = {path.name for path in finished.iterdir()}
    assert names == {
        "model.safetensors", "doc_topic.npy", "doc_weights.npy", "vectorizer.json", "shards", "topics.csv",
        "documents.index", "documents.blocks", "places.npy", "run.json", "explorer.html",
    }  # fmt: skip
    about = json.loads((finished / "run.json").read_text(encoding="utf-8"))
    assert about["documents"] == 30
    assert about["language"] == "english"
    assert about["command"][:2] == ["polyseme", "fit"]
    assert about["versions"]["polyseme"] == polyseme.__version__
    documents = open_run(finished).documents
    assert documents.columns == [
        "id", "title", "label", "time", "source", "excerpt", "duplicate_of", "duplicate_row", "tokens", "topic",
        "name", "share", "topic_0", "topic_1",
    ]  # fmt: skip
    assert documents["label"].value_counts().sort("count")["count"].to_list() == [10, 20]
    np.testing.assert_allclose(documents["topic_0"] + documents["topic_1"], 1, atol=1e-5)
    # the two themes are the two topics
    assert documents.group_by("label").agg(pl.col("topic").n_unique())["topic"].to_list() == [1, 1]
    assert not [path for path in finished.parent.iterdir() if path.suffix in (".part", ".old")]


def test_open_run_returns_what_was_fitted(finished: Path) -> None:
    opened = open_run(finished)
    assert opened.counts.shape == (30, len(opened.vocabulary))
    again = opened.vectorizer.transform(
        [Path(finished.parent / "docs" / name).read_text(encoding="utf-8") for name in opened.documents["id"]]
    )
    assert (again != opened.counts).nnz == 0
    np.testing.assert_array_equal(opened.model.transform(opened.counts), opened.model.doc_topic_)
    np.testing.assert_array_equal(
        opened.documents.select("topic_0", "topic_1").to_numpy(), opened.model.doc_topic_.astype(np.float32)
    )


def test_without_k_the_number_is_chosen_and_the_reason_is_stored(folder: Path) -> None:
    result = run("fit", "docs", "-o", "out", "--max-df", "1", cwd=folder)
    assert result.exit_code == 0, result.output
    info = open_run(folder / "out").info
    assert info.model.n_topics == info.selection.n_topics == 2
    assert f"{info.selection.reason.rstrip('.')} (-k sets another).\n" in result.stderr
    assert info.selection.reason.startswith("Number of topics: 2, because 4 different documents are too few")
    assert not (folder / "out" / "stages.json").exists()


def test_a_few_documents_get_a_quarter_as_many_topics(tmp_path: Path) -> None:
    texts = [f"{FRUIT} {word}" for word in ("plum", "pear", "fig")] + ["iron and copper", "copper and zinc", "iron"]
    texts += [f"{FRUIT} {color}" for color in ("red", "blue", "green")] + [
        "zinc and lead",
        "lead and tin",
        "tin and iron",
    ]
    (tmp_path / "few.txt").write_text("\n".join(texts), encoding="utf-8")
    result = run("fit", "few.txt", cwd=tmp_path)
    assert result.exit_code == 0, result.output
    reason = "Number of topics: 3, because 12 documents are too few to compare fits on parts of them"
    assert reason in " ".join(result.stderr.split())
    assert open_run(tmp_path / "few-run").model.n_components == 3


def test_the_same_command_gives_the_same_model(finished: Path, folder: Path) -> None:
    assert run("fit", "docs", "-k", "2", "-o", "twin", "--max-df", "1", cwd=folder).exit_code == 0
    first, second = open_run(finished).model, open_run(folder / "twin").model
    np.testing.assert_array_equal(first.components_, second.components_)


def test_topics_as_a_table_as_json_and_as_csv(finished: Path) -> None:
    table = run("topics", "out", cwd=finished.parent)
    assert table.exit_code == 0, table.output
    assert "fruit" in table.stdout
    assert "metal" in table.stdout
    assert "orchard 100%" in table.stdout
    rows = json.loads(run("topics", "out", "--json", "--words", "3", "-d", "1", cwd=finished.parent).stdout)["topics"]
    assert [len(row["words"]) for row in rows] == [3, 3]
    assert [len(row["documents"]) for row in rows] == [1, 1]
    assert rows[0]["weight"] > rows[1]["weight"]
    assert rows[0]["fit"] > 0.9
    with (finished / "topics.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["topic"]) for line in lines] == [row["topic"] for row in rows]
    assert lines[0]["words"].split()[:3] == rows[0]["words"]


def as_csv(path: Path) -> list[str]:
    with path.open("w", encoding="utf-16", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "body"])
        writer.writerows(enumerate(TEXTS))
    return ["--text", "body", "--id", "number"]


def as_jsonl_gz(path: Path) -> list[str]:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for text in TEXTS:
            file.write(json.dumps({"text": text, "label": text[:4]}) + "\n")
    return []


def as_parquet(path: Path) -> list[str]:
    pl.DataFrame({"text": TEXTS}).write_parquet(path)
    return []


def as_lines(path: Path) -> list[str]:
    path.write_text("\n".join(TEXTS), encoding="utf-8")
    return []


@pytest.mark.parametrize(
    ("name", "write"),
    [("in.csv", as_csv), ("in.jsonl.gz", as_jsonl_gz), ("in.parquet", as_parquet), ("in.txt", as_lines)],
)
def test_tables_and_lines(name: str, write: Any, tmp_path: Path) -> None:
    options = write(tmp_path / name)
    result = run("fit", name, "-k", "2", *options, cwd=tmp_path)
    assert result.exit_code == 0, result.output
    assert open_run(tmp_path / "in-run").counts.shape[0] == 30


def test_standard_input_has_one_document_per_line(tmp_path: Path) -> None:
    result = run("fit", "-", "-k", "2", "-q", cwd=tmp_path, stdin="\n".join(TEXTS))
    assert result.exit_code == 0, result.output
    assert result.stdout == "Run: polyseme-run\n"


def test_one_document_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(FRUIT, encoding="utf-8")
    result = run("fit", "one.txt", "-k", "1", cwd=tmp_path)
    assert result.exit_code == 1
    assert "There is only one document" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["one.txt"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("fit", "nowhere"), "nowhere"),
        (("fit", "empty"), "No documents were found in empty"),
        (("fit", "stop.txt"), "The documents have no words to count"),
        (("fit", "docs", "-o", "docs"), "docs exists and is not a run"),
        (("topics", "docs"), "docs is not a run: make one with polyseme fit."),
        (("fit", "docs", "--language", "klingon"), "klingon"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], sentence: str, folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "stop.txt").write_text("the and of", encoding="utf-8")
    result = run(*arguments, cwd=folder)
    assert result.exit_code == 1, result.output
    assert sentence in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("polyseme:")]
    assert len(lines) == 1


def test_a_run_is_overwritten_only_with_overwrite(finished: Path, folder: Path) -> None:
    before = (finished / "run.json").read_bytes()
    refused = run("fit", "docs", "-k", "3", "-o", "out", cwd=folder)
    assert refused.exit_code == 1
    assert "--overwrite" in refused.stderr
    assert (finished / "run.json").read_bytes() == before
    assert run("fit", "docs", "-k", "3", "-o", "out", "--overwrite", cwd=folder).exit_code == 0
    assert open_run(finished).model.n_components == 3


def test_ctrl_c_writes_what_is_fitted_so_far(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = polyseme.PLSA.fit

    def interrupted(self: Any, *args: Any, **kwargs: Any) -> None:
        fitted(self, *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(polyseme.PLSA, "fit", interrupted)
    result = run("fit", "docs", "-k", "2", "-o", "out", cwd=folder)
    assert result.exit_code == 130
    assert open_run(folder / "out").info.interrupted is True


def test_a_full_disk_keeps_only_work_that_can_be_resumed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polyseme.runs.write.topics_csv", full)
    result = run("fit", "docs", "-k", "2", "-o", "out", cwd=folder)
    assert result.exit_code == 1
    assert "No space left on device; the work so far is stored: repeat the call with --resume" in result.stderr

    def half_written() -> None:
        with atomic_folder(folder / "other") as new:
            (new / "half").write_text("half", encoding="utf-8")
            full()

    with pytest.raises(OSError, match="No space"):
        half_written()
    assert sorted(path.name for path in folder.iterdir()) == [".out.part", "docs"]


FILES = [
    "documents.index",
    "documents.blocks",
    "shards/shard-000000.safetensors",
    "vectorizer.json",
    "model.safetensors",
    "doc_topic.npy",
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", [lambda content: content[:40], lambda content: content[:-1] + b"~"])
def test_a_damaged_run_is_named(name: str, change: Any, finished: Path) -> None:
    (finished / name).write_bytes(change((finished / name).read_bytes()))

    def read() -> None:
        opened = open_run(finished)
        _ = (opened.documents, opened.counts, opened.vectorizer, opened.model)

    with pytest.raises((polyseme.ModelFileError, polyseme.ShardError), match=name.split("/")[-1].split(".")[0]):
        read()


def test_a_newer_or_broken_run_is_refused(finished: Path) -> None:
    path = finished / "run.json"
    about = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**about, "format_version": 99}), encoding="utf-8")
    with pytest.raises(polyseme.ModelFileError, match="newer polyseme"):
        open_run(finished)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(polyseme.ModelFileError, match="damaged"):
        open_run(finished)


def test_cells_that_look_like_formulas_are_escaped() -> None:
    assert [escape_formula(cell) for cell in ("=1+1", "+1", "-1", "@x", "plain")] == [
        "'=1+1",
        "'+1",
        "'-1",
        "'@x",
        "plain",
    ]


def test_the_page_escapes_the_same_cells_as_the_tables() -> None:
    source = files("polyseme").joinpath("explore", "assets", "export.js").read_text(encoding="utf-8")
    found = re.search(r"/\^(\[.+?\])/", source)
    assert found is not None
    assert all(re.match(found[1], start) for start in FORMULA_STARTS)
    assert not re.match(found[1], "plain")


def test_a_run_can_be_moved(finished: Path, tmp_path: Path) -> None:
    shutil.move(finished, tmp_path / "elsewhere")
    assert run("topics", "elsewhere", cwd=tmp_path).exit_code == 0


# Choice of the number of topics, and the progress bar


def test_the_number_of_topics_is_one_that_is_good_to_read():
    choice = choose_n_topics(themed_page_data().counts, SilentReporter(), 0)
    assert choice.n_topics > 1
    assert choice.structured
    assert choice.reason.startswith(f"{choice.n_topics} topics to read, the most ")


def test_the_rows_of_the_choice_are_stored(tmp_path: Path) -> None:
    write_texts(tmp_path, 40)
    result = run("fit", "lines.txt", "-o", "out", cwd=tmp_path)
    assert result.exit_code == 0, result.output
    info = open_run(tmp_path / "out").info
    assert info.model.n_topics == info.selection.n_topics
    assert [row.n_topics for row in info.selection.rows] == list(range(2, 11))
    summary, _, rest = info.selection.reason.partition(". ")
    assert rest
    assert f"\n{summary} (-k sets another).\n" in result.stderr
    shown = run("evaluate", "out", "-q", cwd=tmp_path).stdout
    assert f"Chosen by the fit: {info.selection.reason}" in shown


def test_topics_of_a_corpus_without_structure_may_be_chance():
    unigram = np.random.default_rng(2).dirichlet(np.full(200, 0.3), 1)
    X = synthetic_corpus(150, topic_word=unigram, length=30, random_state=2).counts()
    choice = choose_n_topics(X, SilentReporter(), 0)
    assert (choice.n_topics, choice.structured) == (5, False)
    assert choice.reason.startswith("5 topics, which may be due to chance. No structure: ")


def test_the_number_of_topics_is_not_chosen_again_on_resume(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("fit", "docs", "-o", "out", "--max-df", "1")
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "fit_with_progress", lambda *_: (_ for _ in ()).throw(OSError(5, "broken")))
        assert run(*command, cwd=folder).exit_code == 1
    monkeypatch.setattr(choosing, "reading_n_topics", lambda *_, **__: pytest.fail("chosen a second time"))
    monkeypatch.setattr(counting, "learn_words", lambda *_, **__: pytest.fail("read a second time"))
    result = run(*command, "--resume", cwd=folder)
    assert result.exit_code == 0, result.output
    assert open_run(folder / "out").info.selection.n_topics == 2


@pytest.mark.parametrize(
    ("options", "n_topics", "why"),
    [
        ({"seeds": {"Fruit": ["plums"], "Metal": ["iron"], "Mine": ["zinc"]}}, 3, "that many have seed words"),
        ({"model": "hierarchical", "depth": 2}, 4, "a tree of depth 2 needs that many"),
        ({"model": "hierarchical"}, 2, None),
    ],
)
def test_options_that_need_more_topics_raise_the_number(options: Any, n_topics: int, why: str | None) -> None:
    selection = polyseme.fit(TEXTS, max_df=1.0, max_iter=3, page=False, **options).info.selection
    assert selection.n_topics == n_topics
    reason = "Number of topics: 2, because 2 different documents are too few to compare fits on parts of them."
    assert selection.reason == (f"{n_topics} topics, because {why}. " if why else "") + reason


def test_equal_documents_get_one_topic(tmp_path: Path) -> None:
    (tmp_path / "same.txt").write_text("\n".join([FRUIT] * 25), encoding="utf-8")
    result = run("fit", "same.txt", "--max-df", "1", cwd=tmp_path)
    assert result.exit_code == 0, result.output
    reason = "Number of topics: 1, because all 25 documents have the same words"
    assert reason in " ".join(result.stderr.split())
    opened = open_run(tmp_path / "same-run")
    assert opened.info.selection.reason == f"{reason}."
    assert opened.model.n_components == 1


@pytest.mark.parametrize(
    ("unit", "speed", "shown"), [("MB", 2.5e6, "2.5 MB/s"), ("MB", None, ""), ("", 2.5e6, "")]
)  # fmt: skip
def test_a_rate_is_shown_if_it_is_known_and_has_a_unit(unit, speed, shown):
    assert _rate(speed, unit, 1e6) == shown
