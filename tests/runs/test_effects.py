"""Effects of metadata on a run, in Python and on the command line."""

import json

import numpy as np
import pytest

from cli_runner import run
from polyseme import InputError
from polyseme.runs import open_run
from polyseme.runs.effects import read_metadata

pytest.importorskip("formulaic")
FRUIT, METAL = ([f"{kind}{letter}" for letter in "bcdfghjklm"] for kind in ("fruit", "metal"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a run of 160 documents, and a table with ages, which make documents write of fruit."""
    folder, rng = tmp_path_factory.mktemp("effects"), np.random.default_rng(0)
    lines, rows = [], ["id;age;team"]
    for number in range(160):
        label, age = ("farm", "mine")[number % 2], rng.uniform(20, 60)
        share = 0.2 + 0.6 * (label == "farm") + 0.01 * (age - 40)
        words = [rng.choice(FRUIT if rng.random() < share else METAL) for _ in range(40)]
        day = f"{2010 + number % 10}-07-02"
        lines.append({"id": f"a{number}", "text": " ".join(words), "label": label, "time": day})
        if number != 5:
            rows.append(f"a{number};{'' if number == 7 else age};t{number % 16}")
    (folder / "documents.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (folder / "table.csv").write_text("\n".join(rows), encoding="utf-8")
    fitted = run("fit", "documents.jsonl", "-k", "2", "-o", "run", "--no-page", "--max-df", "1", "-q", cwd=folder)
    assert fitted.exit_code == 0, fitted.output
    return folder


def test_columns_of_the_run_and_of_a_table_are_joined(place):
    opened = open_run(place / "run")
    table = read_metadata(place / "table.csv")
    found = opened.effects("label + age + s(time)", table, clusters="team", n_resamples=20)
    fruit = next(k for k, words in enumerate(opened.topic_words()) if words[0].startswith("fruit"))
    assert abs(found.coefficients.estimate[2, fruit] - 0.01) < 0.003
    assert abs(found.coefficients.estimate[1, fruit] + 0.6) < 0.08
    assert found.missing == {"age": 2}
    assert found.n_documents == 158
    assert 2010.4 < min(found.predict("time").values) < 2010.6
    assert found.topic_names == opened.topic_titles


def test_a_table_without_ids_has_a_row_for_each_document(place):
    opened = open_run(place / "run")
    found = opened.effects("noise", {"noise": np.arange(160.0)}, n_resamples=3)
    assert found.n_documents == 160
    for data, message in (
        ({"noise": [1.0, 2.0]}, "a row for each of the 160"),
        ({"id": ["a1", "a1"], "noise": [1.0, 2.0]}, "must be different"),
        ({"id": ["x", "y"], "noise": [1.0, 2.0]}, "no id of the table"),
        ({"other": [1.0] * 160}, "no column 'noise'"),
    ):
        with pytest.raises(InputError, match=message):
            opened.effects("noise", data, n_resamples=3)


def test_the_command_prints_a_table_and_json(place):
    options = ("effects", "run", "~ label + s(age)", "--data", "table.csv", "--resamples", "10")
    shown = run(*options, "-q", cwd=place)
    assert shown.exit_code == 0, shown.output
    assert "label[mine]" in shown.stdout
    assert "2 documents without 'age' are left out." in shown.stdout
    content = json.loads(run(*options, "--json", cwd=place).stdout)
    assert {row["coefficient"] for row in content["coefficients"]} >= {"Intercept", "label[mine]", "s(age)[1]"}
    assert len(content["terms"]) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("~ color",), "There is no column 'color': give a table with --data"),
        (("open('x')",), "is not allowed"),
        (("label", "--data", "none.csv"), "none.csv cannot be read"),
        (("label", "--data", "uneven.csv"), "every row needs 2 values"),
    ],
)
def test_wrong_formulas_and_tables_are_errors(place, options, message):
    (place / "uneven.csv").write_text("id,x\n1,2,3\n", encoding="utf-8")
    result = run("effects", "run", *options, cwd=place)
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())
