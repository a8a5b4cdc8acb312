"""Readers of tables: CSV, TSV, JSON Lines and Parquet, complete and damaged."""

import csv
import json
import sys
from datetime import date

import polars
import pytest

from document_files import ods, xlsx
from polyseme.errors import InputError, MissingExtraError
from polyseme.text import Limits, read
from polyseme.text.readers import tables

ROWS = [
    {"id": "a", "text": 'Say "hello", twice\nand go', "title": "One", "label": "x", "date": "2020-01-01"},
    {"id": "b", "text": "plain words", "title": "", "label": "", "date": ""},
    {"id": "c", "text": "", "title": "Three", "label": "y", "date": "2021"},
]


def write_csv(path, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_parquet(path, rows):
    pytest.importorskip("polars", reason="the extra 'cli' is not installed").DataFrame(rows).write_parquet(path)


def write(path, rows):
    if path.suffix in (".csv", ".tsv"):
        write_csv(path, rows, "\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".jsonl":
        write_jsonl(path, rows)
    else:
        write_parquet(path, rows)


def texts(reader):
    return [document.text for document in reader]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
class TestEveryTable:
    def test_well_known_column_names(self, tmp_path, suffix):
        path = tmp_path / f"table.{suffix}"
        write(path, ROWS)
        reader = read(path)
        documents = list(reader)
        assert [d.text for d in documents] == [row["text"] for row in ROWS]
        assert [d.id for d in documents] == ["a", "b", "c"]
        assert [d.title for d in documents] == ["One", None, "Three"]
        assert [d.labels for d in documents] == [("x",), (), ("y",)]
        assert [d.time for d in documents] == ["2020-01-01", None, "2021"]
        assert {d.source for d in documents} == {str(path)}
        assert not reader.problems
        assert reader.bytes_read == reader.total_bytes
        assert list(reader) == documents

    def test_named_columns_and_several_texts(self, tmp_path, suffix):
        path = tmp_path / f"table.{suffix}"
        write(path, ROWS)
        documents = list(read(path, text=["title", "text"], id="date", title="id", label="title", time="label"))
        assert [d.text for d in documents] == ["One\n\n" + ROWS[0]["text"], "plain words", "Three"]
        assert [d.id for d in documents] == ["2020-01-01", documents[1].id, "2021"]
        assert documents[1].id.isdecimal()
        assert [d.title for d in documents] == ["a", "b", "c"]
        assert [d.labels for d in documents] == [("One",), (), ("Three",)]
        assert [d.time for d in documents] == ["x", None, "y"]
        with pytest.raises(InputError, match=r"no column 'speech' in .*: it has 'id', 'text', 'title'"):
            list(read(path, text="speech"))

    def test_the_longest_column_is_the_text_if_that_is_clear(self, tmp_path, suffix):
        path = tmp_path / f"table.{suffix}"
        write(path, [{"speaker": "A. Person", "speech": "many words in a row " * 5}] * 3)
        assert texts(read(path)) == ["many words in a row " * 5] * 3
        write(path, [{"english": "many words in a row " * 5, "finnish": "monta sanaa peräkkäin " * 4}] * 3)
        with pytest.raises(
            InputError, match=r"not clear which column .* name it with text=; it has 'english', 'finnish'"
        ):
            list(read(path))
        write(path, [{"only": "w"}])
        assert texts(read(path)) == ["w"]

    def test_thousands_of_rows(self, tmp_path, suffix):
        path = tmp_path / f"table.{suffix}"
        rows = [{"id": str(i), "text": f"text\nnumber {i} " * (i % 40)} for i in range(5000)]
        write(path, rows)
        assert [(d.id, d.text) for d in read(path)] == [(row["id"], row["text"]) for row in rows]


def test_other_separators_and_headers(tmp_path):
    for separator in ";|\t":
        path = tmp_path / "table.csv"
        write_csv(path, ROWS, separator)
        assert texts(read(path)) == [row["text"] for row in ROWS]
    path.write_bytes(b"\n\n\xef\xbb\xbf Text ,ID\r\nword one,1\r\n\r\nword two,2\r\n"[2:])
    assert [(d.text, d.id) for d in read(path)] == [("word one", "1"), ("word two", "2")]


def test_damaged_rows_are_reported_and_other_rows_are_read(tmp_path):
    path = tmp_path / "table.csv"
    lines = ["id,text,label", "1,one,a", "2,too,many,values", "3", '4,"never closed,b', '5,"five",c', "6,six,d"]
    lines += ['7,"bad"quote,e', '8,"eight\nlines",f', '9,"open again', "10,ten,g", "11,eleven,h", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    reader = read(path)
    assert [(d.id, d.text) for d in reader] == [
        ("1", "one"),
        ("5", "five"),
        ("6", "six"),
        ("8", "eight\nlines"),
        ("10", "ten"),
        ("11", "eleven"),
    ]
    assert reader.problems.counts == {"damaged row": 5}
    assert [problem.where.rpartition(" ")[2] for problem in reader.problems] == ["3", "4", "5", "8", "11"]
    assert "it has 4 values, the header 3" in str(reader.problems)


def test_a_tab_separated_row_may_contain_single_quote_characters(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text('text\tid\n"Oh", she said\t1\n"open\t2\n"whole\tfield"\t3\nlast\t4\n', encoding="utf-8")
    reader = read(path)
    assert [(d.text, d.id) for d in reader] == [
        ('"Oh", she said', "1"),
        ('"open', "2"),
        ("whole\tfield", "3"),
        ("last", "4"),
    ]
    assert not reader.problems


def test_open_quotes_do_not_need_quadratic_time(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_REREAD_CHARACTERS", 1000)
    path = tmp_path / "table.csv"
    path.write_text("text,id\nfirst,1\n" + 'a","b\n' * 200_000, encoding="utf-8")
    reader = read(path)
    assert texts(reader) == ["first"]
    assert reader.problems.counts["damaged row"] < 20


def test_a_row_longer_than_the_limit_is_skipped(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('text,id\nfirst,1\n"' + "never closed\n" * 100_000 + "last,2\n", encoding="utf-8")
    reader = read(path, limits=Limits(document=200_000))
    assert texts(reader) == ["first", "last"]
    assert reader.problems.counts["damaged row"] == 100_000


def test_damaged_json_lines(tmp_path):
    path = tmp_path / "table.jsonl"
    lines = [
        '{"text": "one"}',
        '{"text": "tw',
        "",
        "[1]",
        '{"other": "x"}',
        '{"text": null}',
        '{"text": 5}',
        "[" * 100_000,
    ]
    lines += [
        '{"text": "half \\ud800 smile \\ud83d\\ude00"}',
        '{"text": ["a", "b"], "labels": ["x", "y", 3]}',
        '{"text": "cut',
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    reader = read(path)
    documents = list(reader)
    assert [d.text for d in documents] == ["one", "", "5", "half \ufffd smile 😀", "a\nb"]
    assert documents[-1].labels == ("x", "y", "3")
    assert sorted(int(problem.where.rpartition(" ")[2]) for problem in reader.problems) == [2, 4, 5, 8, 11]
    assert reader.problems.counts == {"damaged row": 5}


def test_a_json_array(tmp_path):
    path = tmp_path / "table.json"
    path.write_text(
        json.dumps([{"text": "one \ud800", "x": {"y": "\ud800"}}, 5, {"text": "two"}], indent=1), encoding="utf-8"
    )
    reader = read(path)
    assert [(d.id, d.text) for d in reader] == [("1", "one \ufffd"), ("3", "two")]
    assert reader.problems.counts == {"damaged row": 1}
    with pytest.raises(InputError, match="write each object on its own line"):
        list(read(path, limits=Limits(document=30)))
    path.write_text('[{"text": "cut', encoding="utf-8")
    with pytest.raises(InputError, match="neither a JSON array nor JSON lines"):
        list(read(path))


def test_dates_and_lists_of_parquet(tmp_path):
    polars = pytest.importorskip("polars", reason="the extra 'cli' is not installed")
    path = tmp_path / "table.parquet"
    frame = {"text": ["words"], "date": [date(2020, 2, 3)], "labels": [["a", "b"]], "id": [7]}
    polars.DataFrame(frame).write_parquet(path)
    (document,) = read(path)
    assert (document.id, document.time, document.labels) == ("7", "2020-02-03", ("a", "b"))


def test_damaged_parquet_is_reported(tmp_path):
    path = tmp_path / "table.parquet"
    write_parquet(path, [{"text": f"words {i}"} for i in range(100)])
    (tmp_path / "good.jsonl").write_text('{"text": "good"}\n', encoding="utf-8")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    reader = read(tmp_path)
    assert texts(reader) == ["good"]
    assert reader.problems.counts == {"damaged file": 1}


def test_parquet_without_its_extra_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("polyseme.text.readers.reader.ISOLATED", frozenset())
    monkeypatch.setitem(sys.modules, "polars", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"polyseme\[text\]"):
        list(read(tmp_path))


def test_samples_are_random_reproducible_and_in_order(tmp_path):
    path = tmp_path / "table.jsonl"
    write_jsonl(path, [{"id": i, "text": "x", "label": "odd" if i % 2 else "even"} for i in range(1000)])

    def sampled(**arguments):
        reader = read(path, **arguments)
        return [int(d.id) for d in reader], reader

    first, reader = sampled(sample=50, random_state=1)
    assert first == sampled(sample=50, random_state=1)[0] == sorted(first)
    assert len(set(first)) == 50
    assert reader.dropped == {"not in the sample": 950}
    assert first != sampled(sample=50, random_state=2)[0]
    means = [sum(sampled(sample=50, random_state=seed)[0]) / 50 for seed in range(40)]
    assert abs(sum(means) / 40 - 499.5) < 4 * 289 / (50 * 40) ** 0.5
    assert sampled(sample=5000)[0] == list(range(1000))

    chosen, reader = sampled(categories=["ODD"], sample=10, noise=20)
    assert sum(i % 2 for i in chosen) == 10
    assert len(chosen) == 30
    assert reader.dropped == {"not in the sample": 490, "not of the categories": 480}
    assert sampled(categories="even")[0] == list(range(0, 1000, 2))
    with pytest.raises(InputError, match="No documents"):
        sampled(categories=["od"])


def test_rows_before_the_damage_are_read(tmp_path, monkeypatch):
    """The pages of the last row groups are overwritten; the metadata at the end is intact."""
    polars = pytest.importorskip("polars", reason="the extra 'cli' is not installed")
    monkeypatch.setattr("polyseme.text.readers.reader.ISOLATED", frozenset())
    monkeypatch.setattr("polyseme.text.readers.tables._FIRST_ROWS", 100)
    monkeypatch.setattr("polyseme.text.readers.tables._BYTES_AT_A_TIME", 1000)
    path = tmp_path / "table.parquet"
    rows = [f"words of document {i} {i * 7919 % 1000}" for i in range(1000)]
    polars.DataFrame({"text": rows}).write_parquet(path, row_group_size=100, compression="zstd", statistics=False)
    content = bytearray(path.read_bytes())
    middle, end = len(content) // 2, int(len(content) * 0.8)
    content[middle:end] = b"\xff" * (end - middle)
    path.write_bytes(content)
    reader = read(path)
    found = texts(reader)
    assert 100 <= len(found) < 1000
    assert found == rows[: len(found)]
    assert f"rows {len(found) + 1} to 1000 cannot be read" in str(reader.problems)


# columns that are said, and spreadsheets


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_the_columns_are_said(tmp_path, suffix):
    frame = polars.DataFrame({"subject": ["a"], "body": ["b"], "Group": ["c"], "date": ["2020"], "votes": ["1"]})
    path = tmp_path / f"table{suffix}"
    {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}[suffix](path)
    reader = read(path)
    assert [document.label for document in reader] == ["c"]
    read_as = "Columns: text 'body', title 'subject', label 'Group', time 'date'; ignored: 'votes'"
    assert list(reader.notes) == [read_as]


def test_several_columns_with_texts_are_offered(tmp_path):
    (tmp_path / "a.csv").write_text("text,why\nI like it,because it is so very good\n", encoding="utf-8")
    reader = read(tmp_path / "a.csv")
    list(reader)
    (note,) = reader.notes
    assert "Texts are also in 'why': text= chooses a column or joins several" in note
    (tmp_path / "b.csv").write_text("good,bad\nall the food was good,all the rooms were bad\n", encoding="utf-8")
    with pytest.raises(InputError, match="those with texts, 'good', 'bad', can be joined"):
        list(read(tmp_path / "b.csv"))


SURVEY = [
    ["Survey"],
    ["No", "Answer", "Date"],
    [1, "all the food was good", "26-FEB-1987"],
    [2, "all the rooms were bad", 541350061],
]


@pytest.mark.parametrize("content", [xlsx([], SURVEY, [["x", "y"]]), ods(SURVEY)], ids=["xlsx", "ods"])
def test_spreadsheets(tmp_path, content):
    pytest.importorskip("python_calamine")
    path = tmp_path / ("a.xlsx" if b"xl/" in content else "a.ods")
    path.write_bytes(content)
    reader = read(path, id="No")
    found = [(document.id, document.text, document.time) for document in reader]
    assert found == [("1", "all the food was good", "1987-02-26"), ("2", "all the rooms were bad", "1987-02-26")]
    assert any("Only the sheet 'Sheet2' is read" in note for note in reader.notes) == (path.suffix == ".xlsx")


def test_a_spreadsheet_that_expands_beyond_the_limits(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "a.xlsx").write_bytes(xlsx([["id", "text"], ["1", "a" * 3_000_000]]))
    (tmp_path / "b.xlsx").write_bytes(xlsx([["id", "text"], ["1", "one two three"]])[:-40])
    (tmp_path / "c.txt").write_text("words", encoding="utf-8")
    reader = read(tmp_path, limits=Limits(expanded=1_000_000))
    assert [document.text for document in reader] == ["words"]
    assert reader.problems.counts == {"refused file": 1, "damaged file": 1}
