"""Commands on a run: ``transform``, ``update``, ``edit``, ``explore`` and ``compare``."""

import csv
import io
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli_runner import FRUIT, METAL, run, tree_texts, write_folder
from polyseme import PLSA, InputError
from polyseme.runs import open_run
from polyseme.runs.view import EMPTY_TEXT, NO_KNOWN_WORD


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = write_folder(tmp_path_factory.mktemp("runs"))
    assert run("fit", "docs", "-k", "3", "-o", "run", "--max-df", "1", "-q", cwd=place).exit_code == 0
    return place


@pytest.fixture
def place(once: Path, tmp_path: Path) -> Path:
    shutil.copytree(once, tmp_path / "copy")
    return tmp_path / "copy"


def new_lines(place: Path) -> None:
    (place / "new.txt").write_text(f"{METAL}\n{FRUIT} plums\nnothing known\n", encoding="utf-8")


# transform


def test_transform_gives_the_topics_of_the_python_method(place: Path) -> None:
    new_lines(place)
    result = run("transform", "run", "new.txt", "-o", "topics.parquet", cwd=place)
    assert result.exit_code == 0, result.output
    frame = pl.read_parquet(place / "topics.parquet")
    opened = open_run(place / "run")
    counts = opened.vectorizer.transform([METAL, FRUIT + " plums"])
    expected = opened.model.fold_in(counts, inference="posterior").doc_topic
    names = [f"{topic} {title}" for topic, title in enumerate(opened.topic_titles)]
    assert frame.columns[-3:] == names
    np.testing.assert_array_equal(frame[:2].select(names).to_numpy(), expected)
    assert 0 < expected.min() < expected.max() < 1
    assert frame["id"].to_list() == ["1", "2", "3"]
    assert frame["tokens"].dtype == pl.Int64
    assert frame["tokens"].to_list()[2] == 0
    assert frame["topic"].to_list() == [*expected.argmax(axis=1).tolist(), None]
    assert frame["name"].to_list()[:2] == [opened.topic_titles[topic] for topic in expected.argmax(axis=1)]
    assert frame[2].select("topic", "name", "share", *names).row(0) == (None,) * 6
    assert frame["reason"].to_list() == [None, None, NO_KNOWN_WORD]
    empty = opened.transform(["", METAL, " \n"])
    assert empty["reason"].to_list() == [EMPTY_TEXT, None, EMPTY_TEXT]
    assert empty["share"].null_count() == 2


def test_the_weights_of_new_documents_have_the_names_of_the_topics(place: Path) -> None:
    opened = open_run(place / "run").edit(rename={1: "=Metals, and more"})
    assert opened.transform([METAL]).columns[-2] == "1 =Metals, and more"
    (place / "new.txt").write_text(METAL + "\n", encoding="utf-8")
    printed = run("transform", "run", "new.txt", "-q", cwd=place).stdout
    header, row = csv.reader(io.StringIO(printed))
    assert header[-2] == "1 =Metals, and more"
    assert row[header.index("name")] in ("'=Metals, and more", *opened.topic_titles)


def test_topics_of_new_documents_as_csv_and_as_json_lines(place: Path) -> None:
    (place / "new.jsonl").write_text(json.dumps({"id": "=1+1", "text": METAL}) + "\n", encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(run("transform", "run", "new.jsonl", "-q", cwd=place).stdout)))
    assert rows[0]["id"] == "'=1+1"
    line = json.loads(run("transform", "run", "new.jsonl", "-q", "--json", cwd=place).stdout)
    assert line["id"] == "=1+1"
    assert line[f"{line['topic']} {line['name']}"] == line["share"] == pytest.approx(float(rows[0]["share"]))
    wrong = run("transform", "run", "new.jsonl", "-o", "x.txt", cwd=place)
    assert wrong.exit_code == 1
    assert "must end with .csv, .parquet, .jsonl or .xlsx" in wrong.stderr


# export


def test_export_writes_the_documents_of_python(place: Path) -> None:
    expected = open_run(place / "run").documents
    for name in ("a.parquet", "a.csv", "a.jsonl"):
        assert run("export", "run", "-o", name, cwd=place).stdout == f"30 documents written to {name}.\n"
    assert pl.read_parquet(place / "a.parquet").equals(expected)
    assert pl.read_csv(place / "a.csv")["topic_0"].to_list() == pytest.approx(expected["topic_0"].to_list())
    assert pl.read_ndjson(place / "a.jsonl")["excerpt"].equals(expected["excerpt"])
    assert "must end with .csv" in run("export", "run", "-o", "a.txt", cwd=place).stderr


@pytest.mark.parametrize(("command", "name"), [("export", "a.csv"), ("report", "a.md"), ("explore", "a.html")])
def test_the_folder_of_an_output_is_made(once: Path, tmp_path: Path, command: str, name: str) -> None:
    file = tmp_path / "new" / "folder" / name
    done = run(command, "run", "-o", str(file), "-q", cwd=once)
    assert done.exit_code == 0, done.output
    assert file.stat().st_size > 0
    failed = run(command, "run", "-o", str(file / name), "-q", cwd=once)
    assert failed.exit_code == 1
    assert (
        failed.stderr
        == f"polyseme: {file / name} cannot be written, because {file} is not a folder: choose another file.\n"
    )


def test_export_to_excel_has_the_names_of_topics(place: Path) -> None:
    pytest.importorskip("xlsxwriter", reason="needs polyseme[report]")
    calamine = pytest.importorskip("python_calamine", reason="needs polyseme[text]")
    assert run("export", "run", "-o", "a.xlsx", "-q", cwd=place).exit_code == 0
    header, *rows = calamine.CalamineWorkbook.from_path(place / "a.xlsx").get_sheet_by_index(0).to_python()
    opened = open_run(place / "run")
    assert len(rows) == 30
    for row, topic, share in zip(rows, opened.documents["topic"], opened.documents["share"], strict=True):
        cells = dict(zip(header, row, strict=True))
        assert (cells["topic"], cells["name"]) == (topic, opened.topic_titles[topic])
        assert cells["share"] == pytest.approx(share, abs=1e-9)


def test_export_to_excel_names_the_extra(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    result = run("export", "run", "-o", "b.xlsx", "-q", cwd=place)
    assert result.exit_code == 1
    assert "A table in .xlsx needs the extra 'report': pip install 'polyseme[report]'" in result.stderr
    assert not (place / "b.xlsx").exists()


# report


def test_a_report_is_written_in_the_format_of_its_name(place: Path) -> None:
    result = run("report", "run", "-o", "report.md", "--title", "What is in them?", cwd=place)
    assert result.stdout == "Written to report.md.\n"
    content = (place / "report.md").read_text(encoding="utf-8")
    assert content.startswith("# What is in them?\n")
    assert all(f"### {rank}. " in content for rank in (1, 2, 3))
    wrong = run("report", "run", "-o", "report.pdf", cwd=place)
    assert wrong.exit_code == 1
    assert wrong.stderr == (
        "polyseme: report.pdf must end with .docx, .html or .md: these are the formats of a report.\n"
    )


# update


def test_an_update_adds_documents_and_keeps_the_topics(place: Path) -> None:
    new_lines(place)
    before = open_run(place / "run")
    components, documents, texts = before.model.components_, before.documents, before.texts
    result = run("update", "run", "new.txt", cwd=place)
    assert result.exit_code == 0, result.output
    assert "3 documents added" in result.stdout
    after = open_run(place / "run")
    np.testing.assert_array_equal(after.model.components_, components)
    assert after.counts.shape[0] == after.documents.height == len(after.texts) == 33
    assert after.documents[:30].drop("share", "topic").equals(documents.drop("share", "topic"))
    assert after.texts[:30] == texts
    assert after.texts[30] == METAL
    assert after.info.documents == 33
    assert after.info.updates[0].documents == 3
    np.testing.assert_array_equal(after.model.transform(after.counts), after.model.doc_topic_)
    again = run("update", "run", "new.txt", cwd=place)
    assert "nothing has changed" in again.stdout
    assert open_run(place / "run").counts.shape[0] == 33


def test_update_with_refit_fits_again(place: Path) -> None:
    new_lines(place)
    before = open_run(place / "run").model
    assert run("update", "run", "new.txt", "--refit", "-q", cwd=place).exit_code == 0
    after = open_run(place / "run").model
    assert after.doc_topic_.shape[0] == 33
    start = before.with_topics(before.components_, open_run(place / "run").counts)
    assert after.log_likelihood_ >= start.log_likelihood_ - 1e-6


# edit


def test_names_are_stored_and_shown(place: Path) -> None:
    assert run("edit", "run", "--rename", "1=Space flight", "-q", cwd=place).exit_code == 0
    assert run("edit", "run", "--rename", "0= =SUM(A1)", "-q", cwd=place).exit_code == 0
    opened = open_run(place / "run")
    assert opened.info.topic_names == {1: "Space flight", 0: "=SUM(A1)"}
    assert [entry.rename for entry in opened.info.edits] == [{1: "Space flight"}, {0: "=SUM(A1)"}]
    assert "Space flight" in run("topics", "run", cwd=place).stdout
    rows = {row["topic"]: row for row in json.loads(run("topics", "run", "--json", cwd=place).stdout)["topics"]}
    assert rows[1]["name"] == "Space flight"
    with (place / "run" / "topics.csv").open(encoding="utf-8", newline="") as file:
        names = {row["name"] for row in csv.DictReader(file)}
    assert names == {"Space flight", "'=SUM(A1)", opened.topic_titles[2]}
    assert run("edit", "run", "--rename", "1=", "-q", cwd=place).exit_code == 0
    assert open_run(place / "run").info.topic_names == {0: "=SUM(A1)"}


def test_topics_are_merged_and_removed_and_words_are_removed(place: Path) -> None:
    before = open_run(place / "run")
    banned, plums = map(before.vocabulary.index, ("fruit", "plums"))
    kept = int(before.model.components_[:, plums].argmax())
    merged = ",".join(str(topic) for topic in range(3) if topic != kept)
    result = run("edit", "run", "--rename", f"{kept}=Last", "--merge", merged, "--ban", "fruit", "--refit", cwd=place)
    assert result.exit_code == 0, result.output
    after = open_run(place / "run")
    assert after.model.components_.shape[0] == after.model.n_components == 2
    assert after.info.topic_names == {int(after.model.components_[:, plums].argmax()): "Last"}
    assert (after.model.components_[:, banned] == 0).all()
    assert after.counts[:, [banned]].nnz == 0
    topics = json.loads(run("topics", "run", "--json", cwd=place).stdout)["topics"]
    assert all("fruit" not in topic["words"] for topic in topics)
    np.testing.assert_array_equal(after.model.transform(after.counts), after.model.doc_topic_)
    assert np.isfinite(after.model.log_likelihood_)
    assert run("edit", "run", "--delete", "0", "--refit", "-q", cwd=place).exit_code == 0
    assert open_run(place / "run").model.components_.shape[0] == 1
    assert run("search", "run", "copper", cwd=place).exit_code == 0


def test_the_answer_to_a_prompt_names_topics(place: Path) -> None:
    prompt = run("topics", "run", "--prompt", "--documents", "1", cwd=place).stdout
    assert sorted(line.split()[1] for line in prompt.splitlines() if line.startswith("Topic ")) == ["0", "1", "2"]
    assert prompt.count("Document: ") == 3
    (place / "answer.txt").write_text("Sure:\n1: Ores\n2: =Fruit\n", encoding="utf-8")
    assert run("edit", "run", "--names", "answer.txt", "--rename", "2=Garden", "-q", cwd=place).exit_code == 0
    assert open_run(place / "run").info.topic_names == {1: "Ores", 2: "Garden"}
    (place / "answer.txt").write_text("7: Ores", encoding="utf-8")
    for arguments, sentence in (
        (("--names", "answer.txt"), "There is no topic 7: the run has topics 0 to 2."),
        (("--names", "missing.txt"), "--names: missing.txt cannot be read: No such file or directory."),
    ):
        result = run("edit", "run", *arguments, cwd=place)
        assert result.exit_code == 1
        assert sentence in " ".join(result.stderr.split()), result.stderr
    assert open_run(place / "run").info.topic_names == {1: "Ores", 2: "Garden"}


def test_a_word_without_a_topic_gets_its_share() -> None:
    X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    model = PLSA(2, random_state=0, max_iter=500).fit(X)
    kept = int(model.components_[:, 0].argmax())
    alone = model.with_topics(model.components_[[kept]] * [1, 1, 0, 0], X)
    assert np.isfinite(alone.log_likelihood_)
    np.testing.assert_allclose(alone.components_[0, 2] / alone.components_[0, 3], 5 / 11, rtol=1e-5)
    for wrong in (np.ones((2, 3)), [[1, -1, 0, 0]], [[0, 0, 0, 0]], [1, 2, 3, 4]):
        with pytest.raises(InputError, match="components"):
            model.with_topics(wrong, X)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Nothing to edit"),
        (("--rename", "Space"), "--rename must be a topic and a name"),
        (("--rename", "7=Space"), "There is no topic 7: the run has topics 0 to 2."),
        (("--merge", "1"), "--merge needs at least two topics"),
        (("--merge", "a,b"), "--merge must be topics separated by commas"),
        (("--merge", "0,1", "--delete", "1"), "Topic 1 appears more than once in --merge and --delete"),
        (("--delete", "0", "--delete", "1", "--delete", "2"), "--delete would remove all topics"),
        (("--ban", "nonsense"), "has no word 'nonsense'"),
        (("--undo",), "Nothing to undo"),
        (("--undo", "--rename", "0=Fruit"), "--undo restores the run before the last edit: give it without other"),
    ],
)
def test_errors_of_edit_are_one_line(arguments: tuple[str, ...], sentence: str, once: Path) -> None:
    before = (once / "run" / "run.json").read_bytes()
    result = run("edit", "run", *arguments, cwd=once)
    assert result.exit_code == 1, result.output
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert (once / "run" / "run.json").read_bytes() == before


# explore


@pytest.mark.parametrize(("name", "start"), [("map.png", b"\x89PNG"), ("map.svg", b"<?xml"), ("map.PDF", b"%PDF")])
def test_the_map_is_drawn_as_a_picture(once: Path, tmp_path: Path, name: str, start: bytes) -> None:
    done = run("explore", "run", "--picture", str(tmp_path / name), cwd=once)
    assert done.exit_code == 0, done.output
    assert (tmp_path / name).read_bytes().startswith(start)


def test_other_pictures_are_refused(once: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (["--picture", "map.gif"], "end the name with .png, .svg, .pdf"),
        (["--picture", "map.png", "-o", "page.html"], "give it without other options of the page"),
    ):
        done = run("explore", str(once / "run"), *arguments, cwd=tmp_path)
        assert done.exit_code == 1
        assert message in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())


def test_explore_writes_the_page_again(place: Path) -> None:
    first = (place / "run" / "explorer.html").read_text(encoding="utf-8")
    assert "<title>run" in first
    assert run("edit", "run", "--rename", "0=Ore & metal", "-q", cwd=place).exit_code == 0
    assert (place / "run" / "explorer.html").read_text(encoding="utf-8") != first
    result = run("explore", "run", "--text", "none", "-o", "page.html", cwd=place)
    assert result.exit_code == 0, result.output
    assert "Written to page.html" in result.stdout
    assert len((place / "page.html").read_bytes()) < len(first)
    assert run("explore", "run", "--text", "some", cwd=place).exit_code == 2


def test_explore_shows_intervals_on_request(place: Path) -> None:
    page = place / "run" / "explorer.html"
    section = 'id="intervals"'
    assert section not in page.read_text(encoding="utf-8")
    assert run("explore", "run", "--intervals", "2", "-q", cwd=place).exit_code == 0
    assert section in page.read_text(encoding="utf-8")
    assert run("edit", "run", "--rename", "0=Ore", "-q", cwd=place).exit_code == 0  # writes the page again
    assert section not in page.read_text(encoding="utf-8")
    assert run("explore", "run", "--intervals", "2", "--picture", "map.png", cwd=place).exit_code == 1


def test_a_run_keeps_the_title_of_its_page(place: Path) -> None:
    assert run("explore", "run", "--title", "Ore & <fruit>", "-q", cwd=place).exit_code == 0
    assert "<title>Ore &amp; &lt;fruit&gt;</title>" in (place / "run" / "explorer.html").read_text(encoding="utf-8")
    assert run("edit", "run", "--rename", "0=Ore", "-q", cwd=place).exit_code == 0
    assert run("explore", "run", "-o", "page.html", "-q", cwd=place).exit_code == 0
    for page in (place / "run" / "explorer.html", place / "page.html"):
        assert "<title>Ore &amp; &lt;fruit&gt;</title>" in page.read_text(encoding="utf-8")
    done = run("explore", "run", "--title", " ", cwd=place)
    assert done.exit_code == 1
    assert "--title is empty" in done.output


def test_the_stability_of_topics_is_stored_until_they_change(place: Path) -> None:
    assert run("explore", "run", "--stability", "2", "-q", cwd=place).exit_code == 0
    found = open_run(place / "run").info.stability
    assert len(found) == 3
    assert all(0 <= value <= 1 for value in found)
    assert run("edit", "run", "--delete", "2", "-q", cwd=place).exit_code == 0
    assert not open_run(place / "run").info.stability


def test_a_consensus_shows_how_many_fits_have_each_topic(once: Path) -> None:
    fitted = run("fit", "docs", "-k", "2", "-o", "shared", "--consensus", "--no-page", cwd=once)
    assert fitted.exit_code == 0
    assert "In fits: share of fits to resampled documents" in fitted.stdout
    found = open_run(once / "shared").info.reproducibility
    shown = run("topics", "shared", cwd=once).stdout
    for row in found:
        interval = f"{row.share:.0%} ({100 * row.least:.0f} to {100 * row.most:.0f})"
        assert interval in shown
        assert interval in fitted.stdout
    listed = json.loads(run("topics", "shared", "--json", cwd=once).stdout)["topics"]
    assert [row["reproducibility"] for row in listed] == [vars(found[row["topic"]]) for row in listed]
    assert run("edit", "shared", "--merge", "0,1", "-q", cwd=once).exit_code == 0
    assert not open_run(once / "shared").info.reproducibility


def test_a_fit_with_no_texts_and_no_page_writes_neither(once: Path) -> None:
    assert run("fit", "docs", "-k", "2", "-o", "bare", "--no-texts", "--no-page", "-q", cwd=once).exit_code == 0
    opened = open_run(once / "bare")
    assert opened.texts is None
    assert not (once / "bare" / "explorer.html").exists()
    assert run("update", "bare", "docs", "-q", cwd=once).exit_code == 0


# compare


def test_a_run_compared_with_itself_does_not_differ(once: Path) -> None:
    found = json.loads(run("compare", "run", "run", "--json", cwd=once).stdout)
    assert [pair["first"] for pair in found["pairs"]] == [pair["second"] for pair in found["pairs"]]
    assert all(pair["overlap"] == pytest.approx(1) for pair in found["pairs"])
    assert found["moved"] == []
    assert found["shared_documents"] == 30


def test_two_runs_are_aligned(once: Path) -> None:
    assert run("fit", "docs", "-k", "2", "-o", "two", "--max-df", "1", "-q", cwd=once).exit_code == 0
    found = json.loads(run("compare", "run", "two", "--json", cwd=once).stdout)
    alone = next(pair for pair in found["pairs"] if pair["second"] is None)
    assert sum(pair["second"] is None for pair in found["pairs"]) == 1 < len(found["pairs"]) == 3
    assert alone["overlap"] == alone["second_weight"] == 0 < alone["first_weight"]
    assert found["shared_words"] == found["first_words"] == found["second_words"]
    table = run("compare", "two", "run", cwd=once)
    assert table.exit_code == 0
    assert "30 documents in both" in table.stdout
    (once / "greek.txt").write_text("\u03b1\u03b2\u03b3 \u03b4\u03b5\u03b6\n" * 2, encoding="utf-8")
    assert run("fit", "greek.txt", "-k", "1", "-o", "greek", "-q", cwd=once).exit_code == 0
    disjoint = run("compare", "run", "greek", cwd=once)
    assert disjoint.exit_code == 1
    assert "no word in common" in disjoint.stderr


# levels


@pytest.fixture(scope="module")
def with_levels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("levels")
    (place / "lines.txt").write_text("\n".join(tree_texts()), encoding="utf-8")
    fitted = run("fit", "lines.txt", "-k", "2", "-o", "run", "--no-page", cwd=place)
    assert fitted.exit_code == 0, fitted.output
    assert "Levels of 2, 4 topics: polyseme topics run --level 4" in fitted.output
    return place


def test_topics_are_shown_as_a_tree_or_at_one_level(with_levels: Path) -> None:
    opened = open_run(with_levels / "run")
    parents = opened.level(4).parents
    assert parents is not None
    tree = run("topics", "run", "-d", "0", cwd=with_levels).output
    assert "Levels of 2, 4 topics: polyseme topics run --level 4" in tree
    found = [int(topic) for topic in re.findall(r"^ +4/(\d) [\d.]+% [\w ]+, \w+", tree, flags=re.MULTILINE)]
    assert sorted(found) == [0, 1, 2, 3]
    above = [int(parents.topics[topic]) for topic in found]
    assert above == sorted(above, key=above.index)  # below their parents
    (with_levels / "answer.txt").write_text("2: Ships", encoding="utf-8")
    assert run("edit", "run", "--names", "answer.txt", "--level", "4", "-q", cwd=with_levels).exit_code == 0
    assert "Ships" in run("topics", "run", "-d", "0", cwd=with_levels).output
    assert open_run(with_levels / "run").level(4).topic_names == {2: "Ships"}
    prompt = run("topics", "run", "--level", "4", "--prompt", cwd=with_levels).output
    assert f"Part of: {opened.topic_titles[int(parents.topics[2])]}" in prompt
    level = run("topics", "run", "--level", "4", "--json", cwd=with_levels)
    rows = json.loads(level.output)["topics"]
    assert sorted(row["topic"] for row in rows) == [0, 1, 2, 3]
    assert [row["parent"] for row in rows] == [int(parents.topics[row["topic"]]) for row in rows]
    above = opened.topic_titles
    assert [row["parent_name"] for row in rows] == [above[row["parent"]] for row in rows]
    assert all(row["parent_share"] > 0.9 and row["level"] == 4 and row["children"] == [] for row in rows)
    reading = json.loads(run("topics", "run", "--json", cwd=with_levels).output)["topics"]
    assert [[child["level"] for child in row["children"]] for row in reading] == [[4, 4], [4, 4]]
    assert [child["topic"] for row in reading for child in row["children"]] == found
    shown = run("topics", "run", "--level", "4", "-d", "0", cwd=with_levels).output
    assert "Levels of 2, 4 topics: polyseme topics run --level 2" in shown
    assert "4/" not in shown
    assert [int(topic) for topic in re.findall(r"^ +part of (\d) ", shown, flags=re.MULTILINE)] == [
        row["parent"] for row in rows
    ]
    brief = run("topics", "run", "--level", "4", cwd=with_levels).output.splitlines()
    names = {topic: f"{topic} {title}" for topic, title in enumerate(above)}
    assert [line.strip() for line in brief if line.strip() in names.values()] == [
        names[parent] for parent in dict.fromkeys(row["parent"] for row in rows)
    ]
    assert len(brief) == 1 + 2 + 4 + 1  # heading, parents, topics, levels


def test_transform_search_and_explore_use_a_level(with_levels: Path) -> None:
    (with_levels / "new.txt").write_text("fruitb fruitc fruitd gardenb\n", encoding="utf-8")
    table = run("transform", "run", "new.txt", "--level", "4", "-q", cwd=with_levels).output
    rows = list(csv.DictReader(io.StringIO(table)))
    titles = open_run(with_levels / "run").level(4).topic_titles
    assert list(rows[0])[-4:] == [f"{topic} {title}" for topic, title in enumerate(titles)]
    found = run("search", "run", "gardenb", "--level", "4", "--topic", "3", "--json", "-q", cwd=with_levels)
    assert found.exit_code == 0, found.output
    wrong = run("search", "run", "gardenb", "--topic", "3", cwd=with_levels)
    assert "--topic: the run has the topics 0 to 1, got 3" in wrong.stderr
    page = run("explore", "run", "--level", "4", cwd=with_levels)
    assert "Written to run/explorer_4.html" in page.output
    assert (with_levels / "run" / "explorer_4.html").stat().st_size > 10_000
    assert not (with_levels / "run" / "explorer.html").exists()
    both = run("explore", "run", "--level", "4", "--stability", "1", cwd=with_levels)
    assert "--stability is measured for the reading level: leave --level out" in both.stderr
    other = run("explore", "run", "--level", "2", "-o", "page.html", cwd=with_levels)
    assert "Written to page.html" in other.output


@pytest.mark.parametrize("command", [("topics",), ("transform", "lines.txt"), ("search", "gardenb"), ("explore",)])
def test_a_level_that_does_not_exist_is_refused(with_levels: Path, command: tuple[str, ...]) -> None:
    name, *rest = command
    result = run(name, "run", *rest, "--level", "3", cwd=with_levels)
    assert result.exit_code == 1
    assert "polyseme: --level must be one of the levels of the run, 2, 4, got 3." in result.stderr


def test_levels_are_an_option_of_plsa(with_levels: Path) -> None:
    result = run("fit", "lines.txt", "-k", "2", "--model", "nmf", "--levels", "auto", "-o", "nmf", cwd=with_levels)
    assert "--levels auto is for --model plsa; --model nmf has one level: leave --levels out." in result.stderr
    none = run("fit", "lines.txt", "-k", "2", "--levels", "none", "-o", "none", "-q", "--no-page", cwd=with_levels)
    assert none.exit_code == 0, none.output
    assert open_run(with_levels / "none").levels == [2]
    assert "Levels" not in run("topics", "none", cwd=with_levels).output


def test_edit_renames_topics_of_a_level(with_levels: Path) -> None:
    shutil.copytree(with_levels / "run", with_levels / "named")
    done = run("edit", "named", "--level", "4", "--rename", "2=Ships", cwd=with_levels)
    assert done.exit_code == 0, done.output
    assert "Ships" in done.output
    assert re.search(r"4/2 [\d.]+% Ships", run("topics", "named", cwd=with_levels).output)
    other = run("edit", "named", "--level", "4", "--delete", "2", cwd=with_levels)
    assert "--level: topics of a finer level can only be renamed" in other.stderr
