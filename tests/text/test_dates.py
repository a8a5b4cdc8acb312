"""Dates in the forms of files, and the order of day and month of a column."""

from datetime import date, datetime

import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme import fit
from polyseme.text import Document, read
from polyseme.text.dates import DateOrder, Days, days_of, iso_date
from polyseme.text.readers import open_source


@pytest.mark.parametrize(
    "text",
    [
        "1987-02-26", "1987/2/26", "1987.02.26", "26-FEB-1987 15:01:01.79", "26 February 1987", "Feb. 26th, 1987",
        "February 26, 1987 at 3:01 PM EST", "Thursday, February 26, 1987", "Thu, 26 Feb 1987 15:01:01 +0000 (UTC)",
        "Thu Feb 26 15:01:01 1987", "Thu Feb 26 1987 15:01:01 GMT+0000 (Coordinated Universal Time)", "26-Feb-87",
        "26. Februar 1987", "26 février 1987", "26 de febrero de 1987", "1987年2月26日", "19870226", "541350061",
        "541350061000", "541350061.25", 541350061, date(1987, 2, 26),
    ],
)  # fmt: skip
def test_forms_of_one_day(text):
    assert iso_date(text) == "1987-02-26"


def test_months_years_and_times_of_day():
    assert [iso_date(text) for text in ("1987", "1987.0", 1987, "Feb 1987", "Feb-87")] == [
        "1987", "1987", "1987", "1987-02", "1987-02",
    ]  # fmt: skip
    assert iso_date("1987-02-26T15:01:01Z") == "1987-02-26T15:01:01Z"
    assert iso_date(datetime(1987, 2, 26, 15)) == "1987-02-26T15:00:00"
    assert days_of("Feb 1987") == Days(date(1987, 2, 1), date(1987, 2, 28))


@pytest.mark.parametrize(
    "text",
    ["", "n/a", "May 5", "12 monkeys 1995", "1984 was a good year", "1987-13-01", "31 Feb 1987", "10:32", "x" * 999],
)
def test_other_texts_are_not_dates(text):
    assert iso_date(text) is None


@given(st.text(max_size=120))
def test_every_text_is_a_valid_date_or_none(text):
    for order in (DateOrder(), DateOrder(True), DateOrder(False)):
        assert (days_of(text, order) is None) == (iso_date(text, order) is None)


def test_the_order_of_day_and_month():
    american = DateOrder.of(["3/4/1987", "", "3/13/1987"])
    assert iso_date("3/4/1987", american) == "1987-03-04"
    assert american.note == "month/day/year, as in 3/13"
    european = DateOrder.of(["3/4/1987", "13/3/1987 10:00"])
    assert iso_date("3/4/1987", european) == "1987-04-03"
    assert iso_date("3/13/1987", european) is None
    monthly = DateOrder.of(["1/1/1987", "1/2/1987", "1/3/1987"])
    assert iso_date("1/3/1987", monthly) == "1987-03-01"
    assert "guess" in DateOrder.of(["3.4.1987", "5.6.1987"]).note
    assert iso_date("3.4.1987", DateOrder.of(["3.4.1987", "5.6.1987"])) == "1987-04-03"
    assert DateOrder.of(["1987-02-26", None, 3]) == DateOrder()
    assert iso_date("3/4/1987") is None


def write_table(path, dates, name="date"):
    frame = polars.DataFrame({"text": [f"words of row {n}" for n in range(len(dates))], name: dates})
    {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}[path.suffix](path)
    return frame


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", "polars", "pandas", "documents"])
def test_readers_decide_the_order_from_the_whole_column(tmp_path, suffix):
    dates = ["3/4/1987"] * 150 + ["13/4/1987", "soon", ""]
    frame = write_table(tmp_path / f"table{suffix if suffix[0] == '.' else '.csv'}", dates)
    source = {
        "polars": lambda: frame,
        "pandas": lambda: pandas.DataFrame(frame.to_dict(as_series=False)),
        "documents": lambda: [Document(str(n), "text", time=time) for n, time in enumerate(dates)],
    }.get(suffix, lambda: tmp_path / f"table{suffix}")()
    reader = open_source(source)
    times = [document.time for document in reader]
    assert times[0] == "1987-04-03"
    assert times[150:152] == ["1987-04-13", "soon"]
    assert not times[152]
    assert reader.problems.counts == {"unknown form of date": 1}
    assert "'soon'" in str(reader.problems)
    assert any("day/month/year, as in 13/4" in note for note in reader.notes)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Date of review", ["26-FEB-1987", "27-FEB-1987"]),
        ("unixReviewTime", ["541350061", "541350061"]),
        ("when", ["March 5, 2020", "April 6, 2021"]),
    ],
)
def test_a_column_whose_name_or_values_say_date_is_found(tmp_path, name, values):
    write_table(tmp_path / "table.csv", values, name)
    assert all(document.time[4] == "-" for document in read(tmp_path / "table.csv"))


def test_a_column_of_numbers_is_not_a_column_of_dates(tmp_path):
    write_table(tmp_path / "table.csv", ["541350061", "19870226"], "votes")
    assert [document.time for document in read(tmp_path / "table.csv")] == [None, None]


def test_a_run_finds_documents_by_dates_of_any_form():
    texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
    dates = ["26-FEB-1987", "27-FEB-1987", "3-MAR-1987", "4-MAR-1987"]
    run = fit(pandas.DataFrame({"text": texts, "date": dates}), 2)
    assert {hit.id for hit in run.search("cheese guitar", since="1987-03")} == {"3", "4"}
