"""Hostile files are reported with a reason, and the other files are read, in bounded memory and time."""

import gzip
import io
import json
import lzma
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
import zlib

import pytest

from document_files import PAGES, WORD, dump, pdf, write_docx
from polyseme.errors import InputError
from polyseme.text import Limits, read
from polyseme.text.readers import decoding, isolation
from polyseme.text.readers import reader as reader_module
from polyseme.text.readers.inputs import BAD_DATE

polars = pytest.importorskip("polars", reason="the extra 'cli' is not installed")
pytest.importorskip("pypdfium2", reason="the extra 'text' is not installed")

needs_resource = pytest.mark.skipif(isolation.resource is None, reason="the system has no limits on a process")


def read_among_good_files(folder, **arguments):
    """Return the problems reported for a hostile file; check that the good files before and after it are read."""
    write_docx(folder / "0.docx", "<w:p><w:t>first</w:t></w:p>")
    write_docx(folder / "z.docx", "<w:p><w:t>last</w:t></w:p>")
    reader = read(folder, **arguments)
    found = [document.text for document in reader]
    assert found[0] == "first"
    assert found[-1] == "last"
    return found[1:-1], list(reader.problems)


def only(problems):
    """Return the one problem, which must concern the file "hostile"."""
    (problem,) = problems
    assert problem.where.startswith("hostile")
    return problem


# JSON lines


@pytest.mark.parametrize("array", [False, True])
def test_deeply_nested_json_with_a_lone_surrogate(tmp_path, array):
    bad = '{"text": ' + "[" * 600 + r'"\ud800"' + "]" * 600 + "}"
    good = '{"text": "good"}'
    (tmp_path / "hostile.json").write_text(f"[{bad},\n{good}]" if array else f"{bad}\n{good}\n", encoding="utf-8")
    recursion = sys.getrecursionlimit()
    sys.setrecursionlimit(500)
    try:
        found, problems = read_among_good_files(tmp_path)
    finally:
        sys.setrecursionlimit(recursion)
    assert found == ([] if array else ["good"])
    assert "recursion" in only(problems).what


# compressed files


def xz_with_dictionary(content, size_code):
    """Return an .xz file that declares a larger dictionary than it needs (40 means 4 GiB)."""
    packed = bytearray(lzma.compress(content))
    block = 12
    end = block + 4 * (packed[block] + 1)
    assert packed[block + 2] == 0x21  # LZMA2
    packed[block + 4] = size_code
    packed[end - 4 : end] = struct.pack("<I", zlib.crc32(packed[block : end - 4]))
    return bytes(packed)


def test_xz_with_a_dictionary_of_4_gib(tmp_path):
    (tmp_path / "hostile.txt.xz").write_bytes(xz_with_dictionary(b"words", 40))
    (tmp_path / "largest preset.txt.xz").write_bytes(xz_with_dictionary(b"words", 28))  # 64 MiB
    found, problems = read_among_good_files(tmp_path)
    assert found == ["words"]
    assert "Memory usage limit exceeded" in only(problems).what


# Word files


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("damaged", [False, True])
def test_docx_compressed_by_another_method(tmp_path, method, damaged):
    path = tmp_path / "hostile.docx"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:t>words</w:t></w:document>')
    if damaged:
        content = bytearray(path.read_bytes())
        start = 30 + len("word/document.xml") + 12
        content[start : start + 20] = b"\xff" * 20
        path.write_bytes(content)
    found, problems = read_among_good_files(tmp_path)
    assert found == []
    assert "compressed by a method that Word files do not use" in only(problems).what


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('<?xml version="1.0" encoding="martian"?><d/>', "unknown encoding: martian"),
        ('<?xml version="1.0" encoding="rot13"?><d/>', "encoding"),
        (f'<w:document xmlns:w="{WORD}" a="' + "x" * 2**25 + '"/>', "a tag or a comment is longer than"),
        (f'<w:document xmlns:w="{WORD}"><!--' + "x" * 2**25 + "--></w:document>", "a tag or a comment is longer than"),
        ("<a>" * 100_000, "nested deeper than"),
        ('<!DOCTYPE d [<!ENTITY a "ha">]><d>&a;</d>', "declares a document type"),
    ],
    ids=["unknown encoding", "no encoding of text", "attribute", "comment", "nested", "entities"],
)
def test_docx_with_hostile_xml(tmp_path, content, reason):
    with zipfile.ZipFile(tmp_path / "hostile.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", content)
    found, problems = read_among_good_files(tmp_path)
    assert found == []
    assert reason in only(problems).what


def with_sizes(path, packed, whole):
    """Write sizes into the header and the directory of a zip archive with one member."""
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):
        at = content.rindex(signature) + place
        content[at : at + 8] = struct.pack("<II", packed, whole)
    path.write_bytes(content)


@pytest.mark.parametrize(("packed", "whole"), [(2**31, 2**31), (None, 2**31), (None, 10), (5, None)])
def test_docx_with_false_sizes(tmp_path, packed, whole):
    """100 MB in 100 kB are refused, also if the archive declares that the compressed part is large."""
    path = tmp_path / "hostile.docx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}">' + " " * 10**8 + "</w:document>")
        info = archive.infolist()[0]
    with_sizes(path, info.compress_size if packed is None else packed, info.file_size if whole is None else whole)
    found, problems = read_among_good_files(tmp_path)
    assert found == []
    assert only(problems).kind in ("refused file", "damaged file")


def test_docx_of_tabs_is_as_long_as_its_text(tmp_path):
    write_docx(tmp_path / "hostile.docx", "<w:tab/>" * 2000)
    found, problems = read_among_good_files(tmp_path, limits=Limits(document=1000))
    assert found == []
    assert "longer than 1000 characters" in only(problems).what


# dumps


@pytest.mark.parametrize(
    "start", ["<!--", "<page a='", "<?p ", "<![CDATA["], ids=["comment", "tag", "instruction", "text"]
)
def test_a_long_token_in_a_dump(tmp_path, start):
    """Text may be long; a long tag or comment is refused, because expat before 2.6 takes quadratic time for it."""
    content = dump(*PAGES).replace("</mediawiki>", start + "x" * 3 * 2**20)
    (tmp_path / "hostile.xml").write_text(content, encoding="utf-8")
    found, problems = read_among_good_files(tmp_path)
    assert found
    if start == "<![CDATA[":
        assert "ends early" in only(problems).what
    else:
        assert "a tag or a comment is longer than 1048576 bytes" in only(problems).what


def test_a_dump_that_is_nested_deeply(tmp_path):
    (tmp_path / "hostile.xml").write_text("<mediawiki>" + "<page>" * 100_000, encoding="utf-8")
    found, problems = read_among_good_files(tmp_path)
    assert found == []
    assert "nested deeper than 500" in only(problems).what


# Parquet


@pytest.mark.parametrize(
    ("kind", "largest"),
    [
        (polars.Date, 10**7),
        (polars.Datetime("us"), 2**62),
        (polars.Datetime("ms", "Europe/Rome"), 2**60),
        (polars.Duration("ms"), 2**62),
    ],
    ids=str,
)
def test_parquet_with_dates_beyond_the_year_9999(tmp_path, kind, largest):
    times = polars.Series([1, largest, 2], dtype=polars.Int64).cast(
        polars.Int32 if kind == polars.Date else polars.Int64
    )
    table = polars.DataFrame({"text": ["one", "two", "three"], "date": times.cast(kind)})
    table.write_parquet(tmp_path / "hostile.parquet")
    found, problems = read_among_good_files(tmp_path)
    assert found == ["one", "three"]
    problem = only([problem for problem in problems if problem.kind != BAD_DATE])  # a duration is not a date
    assert (problem.kind, problem.where) == ("damaged row", "hostile.parquet, line 2")


def test_a_parquet_row_longer_than_a_document(tmp_path):
    polars.DataFrame({"text": ["one", "a" * 2000, "three"]}).write_parquet(tmp_path / "hostile.parquet")
    found, problems = read_among_good_files(tmp_path, limits=Limits(document=1000))
    assert found == ["one", "three"]
    assert "longer than 1000 characters" in only(problems).what


@pytest.mark.parametrize("length", [0, 10_000])
def test_a_small_parquet_file_of_endless_rows(tmp_path, monkeypatch, length):
    monkeypatch.setattr(reader_module, "ISOLATED", frozenset())
    monkeypatch.setattr(decoding, "RATIO_JUDGED_FROM", 2**20)
    rows = polars.repeat("a" * length, 10**7 // (length + 1), eager=True).alias("text")
    rows.to_frame().write_parquet(tmp_path / "hostile.parquet")
    file_size = (tmp_path / "hostile.parquet").stat().st_size
    assert file_size < 2**18
    reader = read(tmp_path, limits=Limits(ratio=10))
    size = sum(len(document.text) + 1 for document in reader)
    assert size < 2**20 + 10 * file_size
    (problem,) = reader.problems
    assert problem.kind == "refused file"
    assert "beyond `limits`" in problem.what


@needs_resource
def test_a_small_parquet_file_that_takes_a_lot_of_memory(tmp_path):
    row = polars.select(polars.repeat("some words", 10**7, dtype=polars.String).implode().alias("text"))
    row.write_parquet(tmp_path / "hostile.parquet")
    assert (tmp_path / "hostile.parquet").stat().st_size < 2**18
    found, problems = read_among_good_files(tmp_path, limits=Limits(memory=2**29))
    assert found == []
    problem = only(problems)
    assert problem.kind == "refused file"
    assert "more than 512 MiB of memory" in problem.what


# the reading process


def slow_docx(path):
    """Return a Word file that takes the reader several seconds."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        body = "<w:p/>" * 2_000_000
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:t>words</w:t>{body}</w:document>')


def test_a_file_that_takes_too_long(tmp_path):
    slow_docx(tmp_path / "hostile.docx")
    found, problems = read_among_good_files(tmp_path, limits=Limits(seconds=0.1))
    assert found == []
    assert only(problems).what == "reading it takes more than 0.1 seconds"


def test_one_process_reads_many_files(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}.pdf").write_bytes(pdf(f"page {number}"))
    list(read(tmp_path))
    process = isolation._spare._child
    assert len(list(read(tmp_path))) == 20
    assert process is not None
    assert isolation._spare._child is process


def test_a_process_without_work_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation, "_IDLE_SECONDS", 0.1)
    (tmp_path / "a.pdf").write_bytes(pdf("words"))
    spare = isolation._Spare()
    monkeypatch.setattr(isolation, "_spare", spare)
    list(read(tmp_path))
    process = spare._child
    for _ in range(600):
        if spare._child is None:
            break
        time.sleep(0.1)
    assert spare._child is None
    assert process is None or process._process.wait(60) is not None
    assert len(list(read(tmp_path))) == 1


def test_a_reader_that_is_left_ends_the_process(tmp_path):
    polars.DataFrame({"text": ["some words " * 100] * 3000}).write_parquet(tmp_path / "a.parquet")
    documents = iter(read(tmp_path))
    assert next(documents).text.startswith("some words")
    documents.close()
    assert isolation._spare._child is None
    assert next(iter(read(tmp_path))).text.startswith("some words")


def test_two_readers_at_once(tmp_path):
    for name in "ab":
        polars.DataFrame({"text": [f"{name}{i} " * 20 for i in range(10_000)]}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    pairs = zip(read(tmp_path / "a.parquet"), read(tmp_path / "b.parquet"), strict=True)
    assert all(first.text == second.text.replace("b", "a") for first, second in pairs)


def test_compressed_and_piped_files(tmp_path, monkeypatch):
    content = io.BytesIO()
    polars.DataFrame({"text": ["one", "two"]}).write_parquet(content)
    (tmp_path / "a.parquet.gz").write_bytes(gzip.compress(content.getvalue()))
    reader = read(tmp_path / "a.parquet.gz")
    assert [document.text for document in reader] == ["one", "two"]
    assert reader.bytes_read == reader.total_bytes
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.getvalue())))
    assert [document.text for document in read("-", format="parquet")] == ["one", "two"]


def test_file_names_that_are_not_text(tmp_path):
    write_docx(tmp_path / os.fsdecode(b"caf\xe9.docx"), "<w:p><w:t>words</w:t></w:p>")
    (document,) = read(tmp_path)
    assert (document.id, document.text, document.source) == ("caf?.docx", "words", "caf?.docx")


DOCUMENTS = {"id": ["1", "2"], "title": [None, "t"], "labels": [["l"], []], "time": ["2020", None], "length": [5, 0]}
ANSWER = {
    "documents": DOCUMENTS,
    "problems": [["damaged row", "a, line 1", "why"]],
    "counts": {"damaged row": 5},
    "notes": {},
    "dropped": {"empty": 2},
    "bytes_read": 10,
    "raised": None,
    "end": True,
    "again": True,
}


def test_an_answer_is_checked():
    answer = isolation._Answer.of(json.dumps(ANSWER).encode(), b"words", "a")
    assert answer.documents == [("1", "words", None, ("l",), "2020", "a"), ("2", "", "t", (), None, "a")]
    assert str(answer.problems) == "damaged row (5): a, line 1: why ..."


@pytest.mark.parametrize(
    "changed",
    [
        *(
            {"documents": {**DOCUMENTS, **columns}}
            for columns in (
                {"id": ["1", 2]},
                {"id": ["1"]},
                {"title": [0, None]},
                {"labels": [[None], []]},
                {"labels": ["l", []]},
                {"time": [1.5, None]},
                {"length": [5]},
                {"length": [6, 0]},
                {"length": [6, -1]},
                {"length": [5.0, 0]},
            )
        ),
        {"documents": 7},
        {"problems": [["kind"]]},
        {"counts": []},
        {"counts": {"kind": "many"}},
        {"bytes_read": None},
        {"raised": ["extra"]},
    ],
    ids=str,
)
def test_an_invalid_answer_is_refused(changed):
    with pytest.raises(isolation._Ended, match="unknown answer"):
        isolation._Answer.of(json.dumps({**ANSWER, **changed}).encode(), b"words", "a")


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"[" * 100_000, b"{}"])
def test_an_answer_that_is_not_an_object_is_refused(content):
    with pytest.raises(isolation._Ended, match="unknown answer"):
        isolation._Answer.of(content, b"", "a")


@pytest.mark.skipif(shutil.which("false") is None, reason="there is no program `false`")
def test_a_process_that_cannot_be_started(tmp_path, monkeypatch):
    isolation._spare.end()
    (tmp_path / "a.pdf").write_bytes(pdf("words"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
    with pytest.raises(InputError, match="are read in a separate process, which cannot be started"):
        list(read(tmp_path / "a.pdf"))
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(InputError, match=r"cannot be started: .*false ended with code 1"):
        list(read(tmp_path / "a.pdf"))


@needs_resource
def test_memory_is_watched_where_the_system_sets_no_limit():
    code = (
        "import time; from polyseme.text.readers import isolation; isolation._data_size = lambda: None;"
        "memory = isolation._Memory(); memory.allow(2**26); held = b'x' * 2**28; time.sleep(600)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == isolation.NO_MEMORY


def run_in(folder, code, **options):
    """Run a program with the package under test in a folder of documents."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}
    return subprocess.Popen([sys.executable, "-P", "-c", code], cwd=folder, env=environment, **options)


def test_modules_beside_the_documents_are_not_run(tmp_path):
    for name in ("json", "signal", "polars", "pypdfium2", "polyseme"):
        (tmp_path / f"{name}.py").write_text("open('harmed', 'w')", encoding="utf-8")
    (tmp_path / "a.pdf").write_bytes(pdf("words"))
    with run_in(tmp_path, "from polyseme.text import read; print(*read('a.pdf'))", stdout=subprocess.PIPE) as program:
        assert b"words" in program.communicate()[0]
    assert not (tmp_path / "harmed").exists()


@pytest.mark.skipif(os.name != "posix", reason="sends signals to a group of processes")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_a_kill_end_the_process_too(tmp_path, sent):
    """Ctrl-C reaches all processes of a terminal; SIGKILL only the program."""
    (tmp_path / "a.pdf").write_bytes(pdf("words"))
    slow_docx(tmp_path / "b.docx")
    code = "from polyseme.text import read\nfor document in read('.'): print('read', flush=True)"
    with run_in(tmp_path, code, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout.readline() == b"read\n"
        time.sleep(0.3)  # the program now waits for the slow file
        os.killpg(program.pid, sent) if sent == signal.SIGINT else program.send_signal(sent)
        _, errors = program.communicate()
    assert program.returncode == -sent
    assert errors.count(b"Traceback") == (sent == signal.SIGINT), errors
    for _ in range(100):
        try:
            os.killpg(program.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the process that reads is still there")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_program_has_its_own_process(tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf("words"))
    code = (
        "import os; from polyseme.text import read; from polyseme.text.readers import isolation\n"
        "list(read('.')); process = isolation._spare._child\n"
        "if os.fork() == 0:\n"
        "    assert isolation._spare._child is None; assert len(list(read('.'))) == 1; raise SystemExit(0)\n"
        "assert os.wait()[1] == 0; assert len(list(read('.'))) == 1; assert isolation._spare._child is process\n"
    )
    with run_in(tmp_path, code, stderr=subprocess.PIPE) as program:
        errors = program.communicate()[1]
    assert program.returncode == 0, errors


# tables whose columns are not clear


def test_a_table_without_a_clear_column_does_not_end_a_job(tmp_path):
    (tmp_path / "hostile.csv").write_text("a,b\nx,y\n", encoding="utf-8")
    polars.DataFrame({"a": ["x"], "b": ["y"]}).write_parquet(tmp_path / "hostile.parquet")
    found, problems = read_among_good_files(tmp_path)
    assert found == []
    assert [problem.where for problem in problems] == ["hostile.csv", "hostile.parquet"]
    assert all("not clear which column" in problem.what for problem in problems)
    for name in ("hostile.csv", "hostile.parquet"):
        with pytest.raises(InputError, match="It is not clear which column"):
            list(read(tmp_path / name))
