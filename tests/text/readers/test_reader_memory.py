"""Texts, documents and data frames as sources, compared with the same data in files."""

import csv
import io
from collections import UserList, deque
from datetime import date
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import InputError
from polyseme.text import Document, Limits, open_source, read
from polyseme.text.readers import Reader

TEXTS = ["The cat sleeps.", "Ein zweiter Text über Wörter.", "Third\nof three"]
ROWS = [
    {"id": "a", "text": 'Say "hello", twice\nand go', "title": "One", "label": "x", "date": "2020-01-01"},
    {"id": "b", "text": "plain words", "title": "", "label": "", "date": ""},
    {"id": "c", "text": "", "title": "Three", "label": "y", "date": "2021"},
]


def frame_of(library, data):
    """Return a frame of the library; skip the test if the library is not installed."""
    return pytest.importorskip(library).DataFrame(data)


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def texts(reader):
    return [document.text for document in reader]


def without_source(documents):
    return [document._replace(source="") for document in documents]


def write_csv(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def keys(reader):
    """Return the keys by which an update recognizes documents."""
    return {(document.source, document.id) for document in reader}


class TestPaths:
    def test_a_path_is_read_as_read_reads_it(self, tmp_path):
        path = tmp_path / "some texts.txt"
        path.write_text("one line\nanother line\n", encoding="utf-8")
        for source in (path, str(path)):
            reader = open_source(source)
            assert list(reader) == list(read(path))
            assert (reader.names, reader.rereadable) == ([str(path)], True)
            assert reader.bytes_read == reader.total_bytes == path.stat().st_size

    def test_a_list_of_path_objects_is_several_files(self, tmp_path):
        paths = [tmp_path / name for name in ("a.txt", "b.txt")]
        for path in paths:
            path.write_text(f"text of {path.name}", encoding="utf-8")
        for source in (paths, tuple(paths)):
            reader = open_source(source)
            assert texts(reader) == ["text of a.txt", "text of b.txt"]
            assert reader.names == list(map(str, paths))

    def test_the_options_of_read_are_passed_on(self, tmp_path):
        path = tmp_path / "table.data"
        write_csv(path, ROWS)
        options = {"format": "csv", "text": "title", "label": "date", "encoding": "utf-8", "categories": ["2021"]}
        documents = list(open_source(path, **options, noise=1, random_state=3, limits=Limits(document=1000)))
        assert documents == list(read(path, **options, noise=1, random_state=3))
        assert len(documents) == 2

    def test_standard_input(self, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
        reader = open_source("-")
        assert (reader.names, reader.rereadable, reader.total_bytes) == (["-"], False, None)
        assert texts(reader) == ["one", "two"]
        with pytest.raises(InputError, match="only once"):
            iter(reader)

    @pytest.mark.parametrize("source", ["The cat sleeps on the stove.", "word\n", "x" * 300, "two words.txt"])
    def test_a_text_instead_of_a_path(self, source):
        with pytest.raises(InputError, match=r"There is no file or folder .*; if it is a text, pass a list of texts"):
            open_source(source)

    def test_a_path_that_does_not_exist(self, tmp_path):
        for source in (tmp_path / "none.txt", [tmp_path / "none.txt"], "none.txt"):
            with pytest.raises(InputError, match="There is no file or folder") as error:
                open_source(source)
            assert "list of texts" not in str(error.value)

    def test_names_of_files_are_not_texts(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in ("a.txt", "b.txt"):
            Path(name).write_text("text", encoding="utf-8")
        for source in (["a.txt", "b.txt"], ("a.txt",), np.array(["a.txt", "b.txt"])):
            with pytest.raises(InputError, match=r"\('a.txt' ...\) are names of files: pass pathlib.Path objects"):
                open_source(source)
        assert texts(open_source(["a.txt", "a text"])) == ["a.txt", "a text"]

    def test_paths_and_texts_are_not_mixed(self, tmp_path):
        with pytest.raises(InputError, match="1 of the 2 items are paths: pass only paths, or only texts"):
            open_source([tmp_path, "a text"])

    def test_a_generator_of_paths(self, tmp_path):
        (tmp_path / "a.txt").write_text("text", encoding="utf-8")
        with pytest.raises(InputError, match=r"Item 1 is a .*Path, not a text: put paths in a list"):
            list(open_source(tmp_path.glob("*.txt")))


class TestTexts:
    @pytest.mark.parametrize(
        "make", [list, tuple, deque, UserList, np.array, lambda items: np.array(items, object)],
        ids=["list", "tuple", "deque", "UserList", "array", "array of objects"],
    )  # fmt: skip
    def test_texts_in_a_container(self, make):
        reader = open_source(make(TEXTS))
        documents = list(reader)
        assert [(document.id, document.text) for document in documents] == list(zip("123", TEXTS, strict=True))
        assert {type(document.text) for document in documents} == {str}
        assert (reader.documents, reader.rereadable, len(reader.problems), reader.dropped) == (3, True, 0, {})
        assert reader.bytes_read == reader.total_bytes == len("".join(TEXTS).encode())
        assert list(reader) == documents
        assert reader.names == [f"{type(make(TEXTS)).__name__} of 3"]

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_a_series(self, library):
        series = frame_of(library, {"text": [*TEXTS, None]})["text"]
        reader = open_source(series)
        assert texts(reader) == [*TEXTS, ""]
        assert reader.names == ["Series of 4"]

    def test_a_generator_is_read_once(self):
        reader = open_source(text for text in TEXTS)
        assert (reader.rereadable, reader.total_bytes, reader.names) == (False, None, ["generator"])
        assert texts(reader) == TEXTS
        assert reader.total_bytes is None
        assert reader.bytes_read == len("".join(TEXTS).encode())
        with pytest.raises(InputError, match="generators can be read only once: use a file or a list"):
            iter(reader)

    def test_a_generator_is_not_read_ahead(self):
        def endless():
            while True:
                yield "word"

        documents = iter(open_source(endless()))
        assert [next(documents).id for _ in range(3)] == ["1", "2", "3"]

    def test_an_iterable_that_starts_again(self):
        class Corpus:
            def __iter__(self):
                return iter(TEXTS)

        reader = open_source(Corpus())
        assert texts(reader) == texts(reader) == TEXTS
        assert (reader.names, reader.rereadable) == (["Corpus"], True)

    def test_an_open_file_has_a_text_in_each_line(self, tmp_path):
        (tmp_path / "lines.txt").write_text("one\ntwo\n", encoding="utf-8")
        with (tmp_path / "lines.txt").open(encoding="utf-8") as file:
            assert texts(open_source(file)) == ["one\n", "two\n"]

    @pytest.mark.parametrize("missing", [None, float("nan"), np.nan, "", " \t"])
    def test_a_missing_or_empty_text_is_an_empty_document(self, missing):
        documents = list(open_source(["one", missing, "three"]))
        assert [document.id for document in documents] == ["1", "2", "3"]
        assert not documents[1].text.strip()

    def test_missing_values_of_pandas(self):
        pandas = pytest.importorskip("pandas")
        assert texts(open_source(["one", pandas.NA, pandas.NaT])) == ["one", "", ""]

    @pytest.mark.parametrize("source", [["", " \n"], [None], iter(["", "\t"])])
    def test_only_empty_texts(self, source):
        with pytest.raises(InputError, match=r"All texts of the list(_iterator)? are empty \(\d documents\)"):
            list(open_source(source))

    def test_one_text_is_read(self):
        assert texts(open_source(["one text"])) == ["one text"]

    def test_lone_surrogates_are_replaced_as_in_json(self):
        broken = Document("i\ud800", "t\udfff", "t\ud800", ("l\ud800", "m"), source="s")
        assert list(open_source([broken])) == [Document("i�", "t�", "t�", ("l�", "m"), source="s")]
        assert texts(open_source(["bad \ud800 text", "pair 😀"])) == ["bad � text", "pair 😀"]

    @given(st.lists(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1).map("a{}".format), min_size=1))
    def test_texts_are_equal_to_the_lines_of_a_file(self, tmp_path_factory, lines):  # "/" alone is the name of a file
        path = tmp_path_factory.mktemp("lines") / "texts.txt"
        path.write_bytes("\n".join(lines).encode())
        for options in ({}, {"sample": 2, "random_state": 5}):
            reader, lines_of_file = open_source(lines, **options), read(path, encoding="utf-8", **options)
            assert without_source(reader) == without_source(lines_of_file)
            assert (reader.documents, reader.dropped) == (lines_of_file.documents, lines_of_file.dropped)


class TestIdentity:
    """A run treats two documents with equal source and id as the same."""

    def test_other_texts_with_the_same_numbers_are_other_documents(self):
        first, second = keys(open_source(TEXTS)), keys(open_source(["other", "texts", "here"]))
        assert len(first) == len(second) == 3
        assert not first & second

    def test_the_same_list_and_a_longer_one_have_the_same_documents(self):
        assert keys(open_source(TEXTS)) == keys(open_source(iter(TEXTS))) < keys(open_source([*TEXTS, "new"]))

    def test_equal_texts_of_one_list_are_two_documents(self):
        assert len(keys(open_source(["same", "same"]))) == 2

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_rows_without_ids(self, library):
        frame = frame_of(library, {"text": TEXTS})
        assert keys(open_source(frame)) == keys(open_source(TEXTS))
        partly = frame_of(library, {"text": TEXTS, "id": ["a", "", None]})
        sources = [(document.id, bool(document.source)) for document in open_source(partly)]
        assert sources == [("a", False), ("2", True), ("3", True)]


class TestDocuments:
    def test_documents_are_read_as_they_are(self):
        documents = [Document("a", "one text", "One", ("x", "y"), "2020", "file.txt"), Document("b", "")]
        assert list(open_source(documents)) == documents
        assert list(open_source(iter(documents))) == documents

    def test_categories_and_noise(self):
        documents = [
            Document(str(number), "text", labels=("even" if number % 2 == 0 else "odd",)) for number in range(20)
        ]
        reader = open_source(documents, categories=["even"], sample=4, noise=2)
        labels = [document.label for document in reader]
        assert (labels.count("even"), labels.count("odd")) == (4, 2)
        assert reader.dropped == {"not in the sample": 6, "not of the categories": 8}

    def test_a_reader_is_returned_as_it_is(self, tmp_path):
        (tmp_path / "lines.txt").write_text("one\n", encoding="utf-8")
        reader = read(tmp_path / "lines.txt")
        assert open_source(reader) is reader
        for options in ({"sample": 3}, {"text": "x"}, {"encoding": "utf-8"}, {"noise": 1}):
            with pytest.raises(InputError, match=f"{next(iter(options))}= does not apply to a Reader"):
                open_source(reader, **options)

    @pytest.mark.parametrize(
        ("document", "message"),
        [
            (Document(7, "text"), "Item 2: id of a Document must be a str, not an int"),
            (Document("a", None), "Item 2: text of a Document must be a str, not a NoneType"),
            (Document("a", "text", title=3.5), "Item 2: title of a Document must be a str, not a float"),
            (Document("a", "text", labels="x"), "Item 2: labels of a Document must be a tuple of str, not 'x'"),
            (Document("a", "text", labels=(1,)), "Item 2: labels of a Document"),
        ],
    )
    def test_a_field_of_another_type(self, document, message):
        with pytest.raises(InputError, match=message):
            list(open_source([Document("b", "text"), document]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
class TestFrames:
    def test_a_frame_is_equal_to_the_same_table_on_disk(self, tmp_path, library):
        path = tmp_path / "table.csv"
        write_csv(path, ROWS)
        reader = open_source(frame_of(library, columns_of(ROWS)))
        assert list(reader) == without_source(read(path))
        assert list(reader) == list(reader)
        assert (reader.documents, reader.rereadable, len(reader.problems)) == (3, True, 0)
        assert reader.bytes_read == reader.total_bytes == sum(len(row["text"]) for row in ROWS)
        assert reader.names == [f"{library} DataFrame of 3"]

    @given(
        rows=st.lists(
            st.fixed_dictionaries({
                "id": st.text("abc", min_size=1, max_size=3),
                "body": st.text("abcdefgh ,;\"'äß\t", min_size=1).filter(str.strip),
                "label": st.sampled_from(["", "cats", "dogs", "cats and dogs"]),
            }),
            min_size=1,
            max_size=30,
        )
    )  # fmt: skip
    def test_any_frame_is_equal_to_the_same_csv(self, tmp_path_factory, library, rows):
        path = tmp_path_factory.mktemp("tables") / "table.csv"
        write_csv(path, rows)
        frame = frame_of(library, columns_of(rows))
        cases = [{}, {"sample": 5, "random_state": 1}, {"text": ["id", "body"], "title": "label"}]
        if any("cats" in row["label"] for row in rows):
            cases.append({"categories": ["cats"], "noise": 2, "sample": 3})
        for options in cases:
            reader, table = open_source(frame, **options), read(path, encoding="utf-8", **options)
            assert list(reader) == without_source(table)
            assert reader.dropped == table.dropped

    def test_missing_values(self, tmp_path, library):
        data = {"id": ["a", None], "text": ["one", None], "title": [None, "Two"], "label": [None, "x"]}
        documents = without_source(open_source(frame_of(library, data)))
        assert documents == [Document("a", "one"), Document("2", "", "Two", ("x",))]

    def test_typed_columns(self, library):
        data = {
            "text": ["one", "two"],
            "id": [7, 8],
            "label": [["x", "y"], []],
            "date": [date(2020, 1, 31), None],
        }
        documents = list(open_source(frame_of(library, data)))
        assert documents == [Document("7", "one", None, ("x", "y"), "2020-01-31"), Document("8", "two")]

    def test_the_longest_column_is_the_text(self, library):
        data = {"who": ["Ada", "Bob"], "said": ["a long sentence about topics", "another long sentence"], "n": [1, 2]}
        assert texts(open_source(frame_of(library, data))) == data["said"]
        with pytest.raises(InputError, match=r"which column of the data frame contains the text: .*it has 'who', 'n'"):
            open_source(frame_of(library, {"who": ["Ada"], "n": [1]}))

    def test_several_text_columns(self, library):
        frame = frame_of(library, {"head": ["One"], "body": ["text"]})
        assert texts(open_source(frame, text=["head", "body"])) == ["One\n\ntext"]

    @pytest.mark.parametrize("option", ["text", "id", "title", "label", "time"])
    def test_a_column_that_does_not_exist(self, library, option):
        with pytest.raises(InputError, match="There is no column 'x' in the data frame: it has 'text', 'n'"):
            open_source(frame_of(library, {"text": ["one"], "n": [1]}), **{option: "x"})

    @pytest.mark.parametrize("values", [[1, 2], [1.5, 2.5], [True, False], [b"x", b"y"], [[1], [2]]])
    def test_a_text_column_without_texts(self, library, values):
        with pytest.raises(InputError, match=r"Column 'text' contains an? .* in row 1, not a text: name a column"):
            list(open_source(frame_of(library, {"text": values})))

    def test_more_rows_than_are_converted_at_a_time(self, library):
        many = [f"text {number}" for number in range(1500)]
        documents = list(open_source(frame_of(library, {"text": many})))
        assert [document.text for document in documents] == many
        assert [document.id for document in documents] == [str(number) for number in range(1, 1501)]

    def test_frames_without_rows_or_texts(self, library):
        with pytest.raises(InputError, match="The data frame has no rows"):
            open_source(frame_of(library, {"text": []}))
        with pytest.raises(InputError, match=r"All texts of the data frame are empty \(2 documents\)"):
            list(open_source(frame_of(library, {"text": ["", None]})))

    @pytest.mark.parametrize(
        "options", [{"format": "csv"}, {"encoding": "utf-8"}, {"uncategorized": True}, {"limits": Limits()}]
    )
    def test_options_of_files(self, library, options):
        with pytest.raises(InputError, match=f"{next(iter(options))}= does not apply to data in memory"):
            open_source(frame_of(library, {"text": ["one"]}), **options)


class TestPandas:
    @pytest.mark.parametrize("index", [[7, 3], [0.5, 1.5], ["x", "y"]])
    def test_the_index_is_not_used(self, index):
        frame = pytest.importorskip("pandas").DataFrame({"text": ["one", "two"]}, index=index)
        assert [(document.id, document.text) for document in open_source(frame)] == [("1", "one"), ("2", "two")]

    def test_names_of_columns_that_are_not_strings_or_repeat(self):
        pandas = pytest.importorskip("pandas")
        assert texts(open_source(pandas.DataFrame([["one", 1], ["two", 2]]), text="0")) == ["one", "two"]
        with pytest.raises(InputError, match="The data frame has 2 columns 'text': rename them"):
            open_source(pandas.DataFrame([["one", "two"]], columns=["text", "text"]))

    def test_categorical_and_array_values(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(
            {
                "text": pandas.Categorical(["one", None]),
                "label": [np.array(["x", "y"]), ("z", None)],
                "time": pandas.to_datetime(["2020-01-31 12:00", None]),
            }
        )
        documents = without_source(open_source(frame))
        assert documents == [
            Document("1", "one", None, ("x", "y"), "2020-01-31T12:00:00"),
            Document("2", "", None, ("z",)),
        ]

    def test_a_subclass(self):
        class Special(pytest.importorskip("pandas").DataFrame):
            pass

        assert texts(open_source(Special({"text": TEXTS}))) == TEXTS


class TestPolars:
    def test_a_lazy_frame(self):
        with pytest.raises(InputError, match=r"polars LazyFrame: pass source.collect\(\)"):
            open_source(frame_of("polars", {"text": TEXTS}).lazy())

    def test_a_row_that_python_cannot_represent_is_a_problem(self):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({"text": ["one", "two"], "date": [0, 2**31 - 1]}).cast({"date": polars.Date})
        reader = open_source(frame)
        assert texts(reader) == ["one"]
        assert reader.problems.counts == {"damaged row": 1}
        assert "row 2" in str(reader.problems)


class Table:
    """A table of another library: iterating it yields the names of its columns."""

    def __iter__(self):
        return iter(["text", "id"])


class Splits(dict):
    """Tables by name, with an attribute of Hugging Face's DatasetDict."""

    column_names = MappingProxyType({"train": ["text"]})


class TestBadSources:
    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ([], "The list is empty: pass a path"),
            ((), "The tuple is empty: pass a path"),
            (np.array([], str), "The ndarray is empty: pass a path"),
            (b"text", "The source is bytes: decode it, and pass a list of texts"),
            ({"a": "text"}, r"The source is a dict: pass its texts, list\(source.values\(\)\), or a data frame"),
            (Splits(train=["a"]), r"a Splits: pass one of its tables, source\['train'\]"),
            ({"one", "two"}, "The source is a set, which has no order: pass a sorted list"),
            (None, "Documents cannot be read from a NoneType: pass a path"),
            (3, "Documents cannot be read from an int: pass a path"),
            (Document("a", "text"), "The source is one Document: pass a list of documents"),
            (np.ones((2, 3)), "The source is a ndarray with 2 dimensions: pass texts; word counts are"),
            (np.array("text"), "The source is a ndarray with 0 dimensions"),
            (sp.csr_array(np.ones((2, 3))), "The source is a csr_array with 2 dimensions: .*polyseme.PLSA"),
            (sp.csr_matrix(np.ones((2, 3))), "The source is a csr_matrix with 2 dimensions: .*polyseme.PLSA"),
            (Table(), "A Table of .*test_reader_memory cannot be read: convert it to pandas or polars"),
        ],
    )  # fmt: skip
    def test_the_source_is_refused(self, source, message):
        with pytest.raises(InputError, match=message) as error:
            open_source(source)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("item", "message"),
        [
            (3, r"Item 3 is an int, not a text: pass texts \(str\)"),
            (2.5, "Item 3 is a float, not a text"),
            (b"text", "Item 3 is a bytes, not a text: decode it"),
            (["some", "words"], "Item 3 is a list, not a text: pass each document as one str"),
            ({"text": "one"}, "Item 3 is a dict, not a text: pass a data frame"),
            (np.float32(2), "Item 3 is a float32, not a text: pass texts; word counts"),
        ],
    )
    def test_an_item_is_refused(self, item, message):
        for source in (["one", None, item, "four"], iter(["one", None, item])):
            with pytest.raises(InputError, match=message):
                list(open_source(source))

    def test_an_array_of_numbers(self):
        with pytest.raises(InputError, match="Item 1 is a float64, not a text: pass texts; word counts"):
            list(open_source(np.ones(3)))

    def test_a_generator_that_is_used_up(self):
        used = (text for text in TEXTS)
        list(used)
        with pytest.raises(InputError, match="The generator yields nothing; if it was used before, make a new one"):
            list(open_source(used))

    def test_an_empty_iterable(self):
        class Nothing:
            def __iter__(self):
                return iter([])

        with pytest.raises(InputError, match="No documents were found in the Nothing: there is nothing in it"):
            list(open_source(Nothing()))

    @pytest.mark.parametrize("option", ["text", "id", "title", "label", "time"])
    def test_columns_of_texts(self, option):
        with pytest.raises(InputError, match=f"{option}= does not apply to texts and documents: leave it out, or pass"):
            open_source(TEXTS, **{option: "x"})

    @pytest.mark.parametrize(
        "options",
        [{"format": "lines"}, {"encoding": "utf-8"}, {"uncategorized": True}, {"limits": Limits()}, {"format": ""}],
    )
    def test_options_of_files(self, options):
        with pytest.raises(InputError, match=f"{next(iter(options))}= does not apply to data in memory: leave it out"):
            open_source(TEXTS, **options)

    def test_options_of_samples_are_checked_as_for_files(self):
        with pytest.raises(InputError, match="sample= must be a whole number"):
            open_source(TEXTS, sample=-1)
        with pytest.raises(InputError, match="noise= is the number of documents of other categories"):
            open_source(TEXTS, noise=2)
        with pytest.raises(InputError, match=r"No documents were found in the list: not of the categories \(3\)"):
            list(open_source(TEXTS, categories=["cats"]))

    def test_a_column_that_is_not_a_name(self):
        with pytest.raises(InputError, match="text= must be the name of a column, not 0"):
            open_source(frame_of("polars", {"text": TEXTS}), text=[0])


def test_the_result_is_a_reader():
    assert isinstance(open_source(TEXTS), Reader)


TABLE = {"text": ["one fish", "two fish", None], "title": ["x", "y", "z"]}


class ArrowTable:
    """Table of another library with the stream protocol of Arrow."""

    schema = None

    def __init__(self, rows):
        self._frame = frame_of("polars", rows)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)


def made_by(library, rows):
    if library == "the protocol":
        return ArrowTable(rows)
    if library == "pyarrow":
        return pytest.importorskip("pyarrow").table(rows)
    return pytest.importorskip("datasets").Dataset.from_dict(rows)


@pytest.mark.parametrize("library", ["the protocol", "pyarrow", "datasets"])
def test_tables_of_arrow_and_datasets_are_read_like_frames(library):
    table = made_by(library, TABLE)
    assert list(open_source(table)) == list(open_source(frame_of("polars", TABLE)))
    with pytest.raises(InputError, match="title"):
        open_source(table, title="missing")
    if library == "datasets":
        chosen = list(open_source(table.select([1, 0])))
        assert [document.text for document in chosen] == ["two fish", "one fish"]
