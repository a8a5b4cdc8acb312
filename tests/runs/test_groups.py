"""Groups of the documents of a run, in Python and on the command line."""

import json

import matplotlib as mpl
import numpy as np
import pytest

from cli_runner import run
from polyseme import InputError
from polyseme.plots import plot_groups
from polyseme.runs import open_run
from shard_runs import make_small

mpl.use("Agg")
WORDS = {
    "fruit": [f"fruit{letter}" for letter in "bcdfghjklm"],
    "metal": [f"metal{letter}" for letter in "bcdfghjklm"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a run of 120 documents: "farm" writes of fruit, "mine" of metal, "town" of both."""
    folder, rng = tmp_path_factory.mktemp("groups"), np.random.default_rng(0)
    lines = []
    for number in range(120):
        label = ("farm", "mine", "town")[number % 3]
        share = {"farm": 0.9, "mine": 0.1, "town": 0.5}[label]
        words = [rng.choice(WORDS["fruit" if rng.random() < share else "metal"]) for _ in range(40)]
        lines.append({"id": str(number), "text": " ".join(words), "label": "" if number >= 117 else label})
    (folder / "documents.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    fitted = run("fit", "documents.jsonl", "-k", "2", "-o", "run", "--no-page", "--max-df", "1", "-q", cwd=folder)
    assert fitted.exit_code == 0, fitted.output
    return folder


@pytest.fixture(scope="module")
def found(place):
    return open_run(place / "run").compare_groups(n_resamples=20)


def test_shares_follow_the_documents(found):
    assert found.groups.names == ["farm", "mine", "town"]
    assert found.groups.documents.tolist() == [39, 39, 39]
    assert found.left_out == 3
    fruit = int(found.groups.shares.estimate[0].argmax())
    np.testing.assert_allclose(found.groups.shares.estimate[:, fruit], [0.9, 0.1, 0.5], atol=0.06)
    assert found.differences.q_values[0, fruit] < 0.001
    assert found.cell(0, fruit).split()[1] == "+"
    assert found.cell(1, fruit).split()[1] == "-"
    assert found.differences.q_values[2, fruit] > 0.05


def test_the_table_has_a_row_for_each_group_and_topic(found):
    frame = found.to_polars()
    assert frame.shape == (6, 14)
    assert frame["group"].to_list() == ["farm", "farm", "mine", "mine", "town", "town"]
    np.testing.assert_allclose(frame["difference"], frame["share"] - frame["others"])
    np.testing.assert_allclose(frame["ratio"], frame["share"] / frame["others"])
    assert len(repr(found).splitlines()) == 3


def test_groups_may_be_given_and_clusters_widen_the_intervals(place):
    opened = open_run(place / "run")
    groups = ["a" if number % 3 else None for number in range(60)] + ["b"] * 60
    assert opened.compare_groups(groups, n_resamples=3).groups.documents.tolist() == [40, 60]
    clusters = [str(number % 3) for number in range(120)]
    single = opened.bootstrap(20).topic_weights.error
    assert (opened.bootstrap(20, clusters=clusters).topic_weights.error > 2 * single).all()


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    """Return a run of 900 documents in several shards: "farm" writes of fruit, "mine" of metal, alternating."""
    folder, rng = tmp_path_factory.mktemp("sharded"), np.random.default_rng(1)
    lines = []
    for number in range(900):
        share = rng.beta(*((0.8, 0.2), (0.3, 0.7))[number % 2])
        words = [rng.choice(WORDS["fruit" if rng.random() < share else "metal"]) for _ in range(30)]
        month = 1 + number // 75
        lines.append({"text": " ".join(words), "label": ("farm", "mine")[number % 2], "time": f"2020-{month:02d}-11"})
    (folder / "documents.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        options = ("-k", "2", "-o", "run", "--no-page", "--max-df", "1", "--shards", "-q")
        fitted = run("fit", "documents.jsonl", *options, cwd=folder)
    assert fitted.exit_code == 0, fitted.output
    assert len(open_run(folder / "run").store.shards.manifest.shards) > 2
    return folder


@pytest.mark.parametrize("compare", ["compare_groups", "over_time"])
def test_runs_beyond_memory_are_read_shard_by_shard(sharded, compare, monkeypatch):
    def result():
        return getattr(open_run(sharded / "run"), compare)(n_resamples=40)

    def shares(found):
        return found.groups.shares if compare == "compare_groups" else found.shares

    whole = result()
    monkeypatch.setattr("polyseme.runs.corpus.MAX_NUMBERS_IN_MEMORY", 10)
    monkeypatch.setattr("polyseme.runs.groups.MOST_DOCUMENTS", 400)
    parts = result()
    np.testing.assert_allclose(shares(parts).estimate, shares(whole).estimate, atol=0.02)
    assert 0.7 < np.median(shares(parts).error / shares(whole).error) < 1.5
    again = result()
    np.testing.assert_array_equal(shares(again).low, shares(parts).low)
    if compare == "compare_groups":
        assert parts.groups.documents.tolist() == [450, 450]
        assert (parts.differences.q_values < 0.01).all()
        clustered = open_run(sharded / "run").compare_groups(clusters=[n // 30 for n in range(900)], n_resamples=10)
        assert clustered.groups.shares.error.shape == (2, 2)
    else:
        assert parts.documents.tolist() == [75] * 12
        assert parts.word_shares(0).shape == (12, 20)


def test_the_command_prints_shares_and_json(place, found):
    shown = run("groups", "run", "--resamples", "20", "-q", cwd=place)
    assert shown.exit_code == 0, shown.output
    assert "farm" in shown.stdout
    assert "3 documents are in none of these groups" in shown.stdout
    content = json.loads(run("groups", "run", "--resamples", "20", "--json", cwd=place).stdout)
    assert [row["share"] for row in content["shares"]] == found.to_dict()["share"]
    assert content["left_out"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "id"), "--by: 'id' must divide the documents into at least two groups"),
        (("--by", "color"), "--by must be one of id, title, label, time, source"),
        (("--clusters", "color"), "--clusters must be one of"),
    ],
)
def test_columns_that_do_not_fit_are_errors(place, options, message):
    result = run("groups", "run", *options, cwd=place)
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())


def test_a_wrong_number_of_groups_is_an_error(place):
    with pytest.raises(InputError, match="a value for each of the 120 documents"):
        open_run(place / "run").compare_groups(["a"])


def test_the_plot_has_an_interval_for_each_group_and_topic(found):
    ax = plot_groups(found)
    lines = [segment for part in ax.collections if hasattr(part, "get_segments") for segment in part.get_segments()]
    assert len(lines) == 6
    ends = sorted(segment[0, 0] for segment in lines)
    np.testing.assert_allclose(ends, sorted(found.groups.shares.low.ravel()))
