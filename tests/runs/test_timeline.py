"""Topics of a run over time, in Python and on the command line."""

import json

import matplotlib as mpl
import numpy as np
import pytest

from cli_runner import run
from polyseme import InputError
from polyseme.plots import plot_over_time
from polyseme.runs import open_run
from polyseme.runs.periods import periods_of_days

mpl.use("Agg")
FRUIT, METAL = ([f"{name}{letter}" for letter in "bcdfghjklm"] for name in ("fruit", "metal"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a run: fruit falls from 90% to 10% over 2020, "fruitb" becomes "fruitc"; none in May."""
    folder, rng = tmp_path_factory.mktemp("time"), np.random.default_rng(0)
    lines = []
    for number in range(220):
        month = (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12)[number % 11]
        words = []
        for _ in range(40):
            word = rng.choice(FRUIT if rng.random() < 1 - month / 12.5 else METAL)
            if word == "fruitb" and month > 6 and rng.random() < 0.9:
                word = "fruitc"
            words.append(word)
        time = "" if number >= 215 else f"2020-{month:02d}-{1 + number % 28:02d}"
        lines.append({"id": str(number), "text": " ".join(words), "time": time})
    (folder / "documents.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    fitted = run("fit", "documents.jsonl", "-k", "2", "-o", "run", "--no-page", "--max-df", "1", "-q", cwd=folder)
    assert fitted.exit_code == 0, fitted.output
    return folder


@pytest.fixture(scope="module")
def found(place):
    return open_run(place / "run").over_time("month", n_resamples=20)


def test_shares_follow_the_documents_and_empty_periods_are_gaps(found):
    assert found.periods == [f"2020-{month:02d}" for month in range(1, 13)]
    assert found.documents[4] == 0
    assert found.left_out == 5
    assert np.isnan(found.shares.estimate[4]).all()
    fruit = int(found.earlier.estimate.argmax())
    months = np.array([1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12])
    shares = found.shares[months - 1, fruit]
    np.testing.assert_allclose(shares.estimate, 1 - months / 12.5, atol=0.12)
    assert ((shares.low <= 1 - months / 12.5) & (1 - months / 12.5 <= shares.high)).mean() > 0.7
    assert found.mark(fruit) == "-"
    assert found.mark(1 - fruit) == "+"


def test_words_that_rise_and_fall_are_found(found):
    fruit = int(found.earlier.estimate.argmax())
    rising, falling = found.changing_words(fruit)
    assert rising[:1] == ["fruitc"]
    assert falling[:1] == ["fruitb"]
    column = list(found.vocabulary).index("fruitb")
    shares = found.word_shares(fruit)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    assert shares[0, column] > 2 * shares[-1, column]
    assert "fruitc" in found.topic_words(fruit, 3)[-1]


def test_the_table_has_a_row_for_each_period_and_topic(found):
    table = found.to_polars()
    assert table.shape == (24, 7)
    assert table["documents"].to_list()[8:10] == [0, 0]
    assert len(repr(found).splitlines()) == 3


def test_the_command_prints_bars_and_json(place, found):
    shown = run("time", "run", "--every", "month", "--resamples", "5", "-q", cwd=place)
    assert shown.exit_code == 0, shown.output
    bars = [line for line in shown.stdout.splitlines() if "█" in line]
    assert len(bars) == 2
    assert all(line[max(line.find(bar) for bar in "▁▂▃▄▅▆▇█") :] for line in bars)
    assert "fruitc" in shown.stdout
    assert "5 documents have no date" in shown.stdout
    content = json.loads(run("time", "run", "--every", "month", "--resamples", "20", "--json", cwd=place).stdout)
    assert content["shares"][8]["share"] is None
    assert [row["share"] for row in content["shares"][:8]] == found.to_dict()["share"][:8]


def test_runs_without_dates_and_too_many_periods_are_errors(place, tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join(["apples pears", "iron copper"] * 20), encoding="utf-8")
    assert run("fit", "lines.txt", "-k", "2", "-o", "run", "--no-page", "-q", cwd=tmp_path).exit_code == 0
    result = run("time", "run", cwd=tmp_path)
    assert result.exit_code == 1
    assert "at least 20 documents with different dates" in " ".join(result.stderr.split())
    with pytest.raises(InputError, match="every"):
        open_run(place / "run").over_time("fortnight")
    with pytest.raises(InputError, match="use a longer one"):
        periods_of_days(np.array([1, 700_000]), "day")


def test_the_plot_breaks_at_periods_without_documents(found):
    ax = plot_over_time(found, topics=[0])
    values = ax.lines[0].get_ydata()
    assert np.isnan(values[4])
    assert np.isfinite(np.delete(values, 4)).all()
    assert [bar.get_height() > 0 for bar in ax.patches] == [count > 0 for count in found.documents]
    with pytest.raises(InputError, match="topics is empty"):
        plot_over_time(found, topics=[])
