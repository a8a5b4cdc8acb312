"""Intervals of shares by label and over time: the numbers of `Run.compare_groups` and `Run.over_time`."""

import json

import numpy as np
import pytest

import polyseme
from explorer_corpora import themed_texts

RESAMPLES = 8


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    texts, _, labels, times = themed_texts(160)
    rows = [
        {"text": text, "label": "; ".join(names), "time": time}
        for text, names, time in zip(texts, labels, times, strict=True)
    ]
    folder = tmp_path_factory.mktemp("intervals")
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    columns = {"text": "text", "label": "label", "time": "time"}
    return polyseme.fit(
        folder / "texts.jsonl", 4, output=folder / "run", language="english", max_df=1.0, page=False, **columns
    )


@pytest.fixture
def page(opened, run, tmp_path):
    page = opened(run.explore(tmp_path / "page.html", intervals=RESAMPLES), "#/labels")
    yield page
    assert page.complaints == []
    assert page.requests == [page.address]


def test_shares_of_labels_are_those_of_python(page, run):
    expected = run.compare_groups("label", most=20, n_resamples=RESAMPLES)
    table = page.page.get_by_role("group", name="Shares with intervals")
    names = table.locator("thead th a").all_text_contents()
    assert names == expected.groups.names
    topics = table.locator("tbody th a").evaluate_all("links => links.map((a) => Number(a.hash.split('/').pop()))")
    assert sorted(topics) == list(range(4))
    cells = table.locator("td").all_inner_texts()
    marked = 0
    for row, topic in enumerate(topics):
        for group in range(len(names)):
            share, low, high, sign = parsed(cells[row * len(names) + group])
            found = expected.groups.shares[group, topic]
            np.testing.assert_allclose([share, low, high], [found.estimate, found.low, found.high], atol=5.1e-4)
            more = expected.differences.estimate[group, topic] > 0
            assert sign == (("+" if more else "−") if expected.differences.q_values[group, topic] < 0.05 else "")
            marked += bool(sign)
    assert marked > 0
    page.go("#/labels?label=music")  # intervals are of all documents
    assert table.count() == 0


def parsed(cell):
    first, ends = cell.split("\n")
    share, _, sign = first.partition("%")
    return [float(share) / 100, *(float(end) / 100 for end in ends.split("–")), sign.strip()]


def test_lines_over_time_have_bands(page, run):
    expected = run.over_time(n_resamples=RESAMPLES)
    page.go("#/time")
    page.wait("document.querySelectorAll('path.band').length === 4")
    with page.page.expect_download() as download:
        page.page.locator(".card").first.get_by_role("button", name="CSV").click()
    header, *rows = [line.split(",") for line in download.value.path().read_text(encoding="utf-8-sig").splitlines()]
    columns = {name.strip('"'): place for place, name in enumerate(header)}
    assert [row[0].strip('"') for row in rows] == expected.periods
    for period, row in enumerate(rows):
        assert int(row[1]) == expected.documents[period]
        for topic in range(4):
            names = (f"topic {topic}", f"topic {topic} low", f"topic {topic} high")
            found = expected.shares[period, topic]
            shown = [float(row[columns[name]] or "nan") for name in names]
            np.testing.assert_allclose(shown, [found.estimate, found.low, found.high], atol=1e-6)


def test_a_page_without_labels_and_times_has_no_intervals(tmp_path):
    texts, *_ = themed_texts(30)
    run = polyseme.fit(texts, 2, output=tmp_path / "run", language="english", max_df=1.0, page=False)
    with pytest.raises(polyseme.InputError, match="neither labels nor times"):
        run.explore(tmp_path / "page.html", intervals=RESAMPLES)
