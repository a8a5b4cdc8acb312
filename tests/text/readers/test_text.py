"""Readers of text files, folders, lines and compressed files."""

import bz2
import gzip
import io
import lzma
import os
import sys
from itertools import islice
from pathlib import Path
from threading import active_count

import pytest

from polyseme.errors import InputError, MissingExtraError
from polyseme.text import Limits, read
from polyseme.text.readers import decoding, inputs
from polyseme.text.readers import text as plain
from polyseme.text.readers.decoding import detect, line_blocks
from polyseme.text.readers.inputs import MAX_EXAMPLES, Problems

FINNISH = "Hän näki tämän pöydän äärellä työtä tekevän miehen, jonka ääni häiritsi yötä. " * 3
RUSSIAN = "Латентный семантический анализ текста помогает находить темы в документах. " * 3


def texts(reader):
    return [document.text for document in reader]


def test_folders_that_all_files_share_are_no_labels(tmp_path):
    for name in ("news/news/sport/1.txt", "news/news/sport/golf/2.txt", "news/news/politics/3.txt", "news/.git/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a text", encoding="utf-8")
    assert [d.label for d in read(tmp_path)] == ["politics", "sport", "sport"]
    assert [d.label for d in read(tmp_path / "news" / "news" / "politics")] == [None]


def test_a_folder_is_read_in_order_with_labels_and_without_hidden_files(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.txt").write_text("second text", encoding="utf-8")
    (tmp_path / "a.md").write_text("first text", encoding="utf-8")
    (tmp_path / ".hidden").write_text("no", encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("no", encoding="utf-8")
    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
    reader = read(tmp_path)
    documents = list(reader)
    assert [d.text for d in documents] == ["first text", "second text"]
    assert [d.label for d in documents] == [None, "b"]
    assert [d.title for d in documents] == ["first text", "two"]  # the name "a" is generic
    assert [d.id for d in documents] == ["a.md", str(Path("b", "two.txt"))]
    assert reader.dropped == {"empty file": 1}
    assert not reader.problems
    assert reader.documents == 2
    assert reader.bytes_read == reader.total_bytes == len("first textsecond text \n")
    assert list(reader) == documents


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("491", "\n  Stocks fall in London \nMore.", "Stocks fall in London"),
        ("001.txt", "--- 12 ---\nA real line", "A real line"),
        ("doc_0017.txt", "Rain and harvest", "Rain and harvest"),
        ("harvest-17.txt", "Rain", "harvest-17"),
        ("1871/june.txt", "Rain", "june"),
        ("UK.txt", "Rain", "UK"),
        ("7", "From: a@b.c\nSubject: Re: Hard drives\nLines: 3\n\nText", "Re: Hard drives"),
        ("7", "Note: this is text\nwithout headers\nSubject: no", "Note: this is text"),
        ("7", "12 34\n56", "7"),
        ("7", "word " * 40, "word " * 14 + "word…"),
        ("東京", "雨", "東京"),
    ],
)
def test_the_title_is_the_first_line_if_the_file_name_is_generic(name, text, title):
    assert plain.title_of(name, text) == title


def test_files_of_several_folders_have_different_ids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("north", "south"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.txt").write_text(f"from the {folder}", encoding="utf-8")
    assert [document.id for document in read(["north", "south"])] == [str(Path(f, "1.txt")) for f in ("north", "south")]
    assert [document.id for document in read("north")] == ["1.txt"]


def test_binary_and_unreadable_files_are_skipped_and_reported(tmp_path):
    (tmp_path / "good.txt").write_text("words", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    (tmp_path / "odd.bin").write_bytes(bytes(range(1, 32)) * 20)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    reader = read(tmp_path)
    assert texts(reader) == ["words"]
    assert reader.problems.counts == {"binary file": 2, "unreadable file": 2}
    assert {problem.where for problem in reader.problems} == {"picture.png", "odd.bin", "pipe", "nowhere"}
    assert "picture.png" in str(reader.problems)


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("a.rtf", rb"{\rtf1\ansi\deff0 {\fonttbl {\f0 Courier;}} Words}", "RTF file: save it as .docx"),
        ("a.odt", b"PK\x03\x04\x14\0\0\0", "office file: unpack it, or save it as .docx"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "old Office file: save it as .docx"),
    ],
)
def test_other_documents_are_not_read_as_text(tmp_path, name, content, advice):
    (tmp_path / name).write_bytes(content)
    (tmp_path / "b.txt").write_text("words", encoding="utf-8")
    reader = read(tmp_path)
    assert texts(reader) == ["words"]
    assert reader.problems.counts == {"binary file": 1}
    assert advice in str(reader.problems)
    with pytest.raises(InputError, match=advice):
        list(read(tmp_path / name))


def test_files_that_cannot_be_opened_are_reported(tmp_path, monkeypatch):
    for name in ("a.txt", "b.pdf", "c.docx", "d.parquet", "e.csv", "good.txt"):
        (tmp_path / name).write_text("words", encoding="utf-8")
    real = Path.open

    def forbidden(path, *arguments, **named):
        if path.name != "good.txt":
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", forbidden)
    reader = read(tmp_path)
    assert texts(reader) == ["words"]
    assert reader.problems.counts["unreadable file"] == 5


def test_a_file_that_is_removed_is_reported(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("words", encoding="utf-8")
    reader = read([tmp_path / "a.txt", tmp_path / "b.txt"])
    (tmp_path / "a.txt").unlink()
    assert texts(reader) == ["words"]
    assert reader.problems.counts == {"unreadable file": 1}


def test_file_names_that_cannot_be_decoded_can_be_printed(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("words", encoding="utf-8")
    (document,) = read(tmp_path)
    assert document.id == "caf?.txt"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", RUSSIAN),
        ("utf-8-sig", RUSSIAN),
        ("utf-16", FINNISH),
        ("utf-16-le", FINNISH),
        ("utf-16-be", FINNISH),
        ("utf-32", FINNISH),
        ("cp1252", FINNISH + "“quoted” — €50"),
    ],
)
def test_encodings_are_detected(tmp_path, encoding, text):
    (tmp_path / "text").write_bytes(text.encode(encoding))
    reader = read([tmp_path])
    assert texts(reader) == [text]
    assert reader.problems.counts == ({"guessed encoding": 1} if encoding == "cp1252" else {})


@pytest.mark.parametrize(("encoding", "text"), [("cp1251", RUSSIAN), ("koi8-r", RUSSIAN), ("latin-1", FINNISH)])
def test_8_bit_encodings_are_detected_by_chardet(tmp_path, encoding, text):
    pytest.importorskip("chardet", reason="the extra 'text' is not installed")
    (tmp_path / "text").write_bytes(text.encode(encoding))
    reader = read([tmp_path])
    assert texts(reader) == [text]
    assert reader.problems.counts == {"guessed encoding": 1}


def test_8_bit_files_are_read_as_cp1252_without_chardet(monkeypatch):
    monkeypatch.setitem(sys.modules, "chardet", None)
    assert detect("täällä".encode("latin-1")) == ("cp1252", True)


def test_a_given_encoding_is_used_and_bad_bytes_are_counted(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("yö\n".encode() + b"\xff\xfe x\n" + "äö\n".encode())
    reader = read(path, encoding="utf-8")
    assert texts(reader) == ["yö", "\ufffd\ufffd x", "äö"]
    assert reader.problems.counts == {"undecodable bytes": 2}
    assert next(iter(reader.problems)).where.endswith("text.txt, line 2")
    path.write_bytes("ab\n".encode("utf-16-le"))
    assert texts(read(path, encoding="utf-16")) == ["ab"]


def test_a_character_may_be_split_between_two_chunks(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("x" * (2**16 - 1) + "ä" * 70000 + "\nsecond", encoding="utf-8")
    reader = read(path)
    assert texts(reader) == ["x" * (2**16 - 1) + "ä" * 70000, "second"]
    assert not reader.problems


def test_a_single_file_has_one_document_per_line(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_bytes(b"first\r\n\n second \nthird\x0b\x1c\xe2\x80\xa8still third")
    two.write_bytes(b"a\nb")
    reader = read(one)
    documents = list(reader)
    assert [d.text for d in documents] == ["first", "second", "third\x0b\x1c\u2028still third"]
    assert [d.id for d in documents] == ["1", "3", "4"]
    assert reader.dropped == {"blank line": 1}
    assert texts(read([one, two])) == [one.read_bytes().decode(), "a\nb"]
    assert texts(read([one, two], format="lines")) == [*texts(reader), "a", "b"]
    assert texts(read(one, format="files")) == [one.read_bytes().decode()]


def test_standard_input_is_read_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    reader = read("-")
    assert reader.total_bytes is None
    assert texts(reader) == ["one", "two"]
    with pytest.raises(InputError, match="only once"):
        iter(reader)


def test_bad_arguments_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    for arguments, message in [
        ({"paths": tmp_path / "absent"}, "There is no file or folder"),
        ({"paths": []}, "nothing to read"),
        ({"paths": "a\0b"}, "cannot be read"),
        ({"paths": tmp_path, "format": "xls"}, "There is no format 'xls'"),
        ({"paths": tmp_path, "encoding": "klingon"}, "no text encoding called 'klingon'"),
        ({"paths": tmp_path, "encoding": "rot13"}, "no text encoding"),
        ({"paths": tmp_path, "encoding": "unicode_escape"}, "no text encoding"),
        ({"paths": tmp_path, "sample": -1}, "sample= must be a whole number"),
        ({"paths": tmp_path, "noise": 3}, "name categories with categories="),
        ({"paths": tmp_path, "categories": [" "]}, "names no category"),
        ({"paths": tmp_path, "categories": []}, "names no category"),
        ({"paths": tmp_path, "text": []}, "names no column"),
    ]:
        with pytest.raises(InputError, match=message):
            read(**arguments)
    with pytest.raises(InputError, match="ratio must be above 0"):
        Limits(ratio=0)


def test_an_input_without_documents_is_an_error_with_the_reason(tmp_path):
    with pytest.raises(InputError, match="there is nothing in it"):
        list(read(tmp_path))
    (tmp_path / "a").write_bytes(b"\0" * 99)
    (tmp_path / "b").write_bytes(b"")
    with pytest.raises(InputError, match=r"empty file \(1\); binary file, a: it is not text"):
        list(read(tmp_path))


def zstd_compress(content):
    return pytest.importorskip("backports.zstd", reason="the extra 'text' is not installed").compress(content)


def xz_compress(content):
    return lzma.compress(content, preset=0)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, xz_compress, zstd_compress])
class TestCompressed:
    content = b"".join(b"line number %d of the file\n" % i for i in range(20000))

    def test_several_streams_and_any_file_name(self, tmp_path, compress):
        path = tmp_path / "lines"
        half = len(self.content) // 2
        path.write_bytes(compress(self.content[:half]) + compress(b"") + compress(self.content[half:]) + b"\0" * 10)
        reader = read(path)
        assert texts(reader) == self.content.decode().splitlines()
        assert not reader.problems
        assert reader.bytes_read == reader.total_bytes

    def test_lines_before_the_damage_are_read(self, tmp_path, compress):
        path = tmp_path / "lines"
        whole, cut = compress(self.content), compress(self.content[::-1])
        for content in (whole + cut[: len(cut) // 2], whole + b"garbage"):
            path.write_bytes(content)
            reader = read(path)
            assert texts(reader)[:20000] == self.content.decode().splitlines()
            assert reader.problems.counts["damaged file"] == 1

    def test_a_bomb_is_refused(self, tmp_path, monkeypatch, compress):
        monkeypatch.setattr(decoding, "RATIO_JUDGED_FROM", 2**20)
        path = tmp_path / "bomb"
        path.write_bytes(compress((b"a" * 63 + b"\n") * 2**17))
        reader = read(path, limits=Limits(ratio=50))
        assert 0 < len(texts(reader)) < 2**17
        assert reader.problems.counts == {"refused file": 1}
        assert "beyond `limits`" in str(reader.problems)
        reader = read(path, limits=Limits(ratio=1e9, expanded=2**22))
        assert 0 < len(texts(reader)) <= 2**16
        assert reader.problems.counts == {"refused file": 1}


@pytest.mark.parametrize("threads", [True, False])
def test_large_compressed_files_are_decompressed_in_a_thread(tmp_path, monkeypatch, threads):
    monkeypatch.setattr(inputs, "_WORTH_A_THREAD", 0 if threads else 2**40)
    path = tmp_path / "lines.gz"
    lines = [f"line {i} " + "x" * (i % 500) + "." for i in range(40_000)]
    content = gzip.compress("\n".join(lines).encode(), compresslevel=1)
    path.write_bytes(content)
    reader = read(path)
    assert texts(reader) == lines
    assert reader.bytes_read == reader.total_bytes
    before = active_count()
    taken = list(islice(reader, 3))
    assert [document.text for document in taken] == lines[:3]
    assert active_count() == before  # the thread ends with the iteration
    path.write_bytes(content[:-1000])
    assert 0 < len(texts(reader)) < len(lines)
    assert reader.problems.counts == {"damaged file": 1}


def test_zstd_without_its_extra_names_the_extra(tmp_path, monkeypatch):
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "a.zst").write_bytes(b"\x28\xb5\x2f\xfd1234")
    with pytest.raises(MissingExtraError, match=r"polyseme\[text\]"):
        list(read(tmp_path / "a.zst"))


def test_too_long_lines_and_files_are_refused(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"short\n" + b"x" * 300_000 + b"\nshort too\n" + b"y" * 200_001)
    reader = read(path, limits=Limits(document=200_000))
    assert texts(reader) == ["short", "short too"]
    assert [problem.where.rpartition(" ")[2] for problem in reader.problems] == ["2", "4"]
    with pytest.raises(InputError, match="larger than 200000 bytes"):
        list(read([tmp_path], limits=Limits(document=200_000)))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_lines_do_not_depend_on_the_division_into_pieces(size):
    text = "one\n\n\r\ntwo three\nfour\n\nlong long line\nend"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    long = []
    found = [
        (first + place, line)
        for first, block in line_blocks(pieces, 11, long.append)
        for place, line in enumerate(block)
    ]
    expected = [(i, line) for i, line in enumerate(text.splitlines(keepends=True), 1)]
    assert found == [(i, line if len(line) <= 11 else "") for i, line in expected]
    assert long == [7]


def test_problems_need_limited_memory():
    problems = Problems()
    assert str(problems) == "no problems"
    for i in range(1000):
        problems.add("damaged row", f"line {i}", "x" * 10_000)
    assert len(problems) == 1000
    assert len(list(problems)) == MAX_EXAMPLES
    assert len(str(problems)) < 10_000
    assert str(problems).endswith("...")


@pytest.mark.parametrize("name", ["business_007.txt", "tech-012.txt", "sport0123.txt"])
def test_a_numbered_file_has_its_first_line_as_title(tmp_path, name):
    (tmp_path / name).write_text("Bank cuts rates\n\nThe bank has cut its rates.", encoding="utf-8")
    (document,) = read(tmp_path)
    assert (document.id, document.title) == (name, "Bank cuts rates")
