"""Mutated files of every format: a reader gives documents, counts problems or raises InputError, and nothing else."""

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyseme.errors import InputError
from polyseme.text import Document, Limits, read
from polyseme.text.readers import FORMATS
from test_read_office import WORD, pdf
from test_wiki import PAGES, dump

LIMITS = Limits(document=100_000, expanded=2_000_000, ratio=100)

TOKENS = [
    *(
        b"\0",
        b"\xff",
        b"\xfe\xff",
        b'"',
        b",",
        b"\n",
        b"\r",
        b"\t",
        b"{",
        b"}",
        b"[" * 50,
        b"]]",
        b"|}",
        b"\\ud800",
        b"\\",
    ),
    *(
        b"<page>",
        b"</page>",
        b"<text>",
        b"</mediawiki>",
        b"<!--",
        b"&lt;",
        b"&#x0;",
        b"<ref>",
        b"{{",
        b"}}",
        b"[[",
        b"<",
    ),
    *(
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b"\x1f\x8b\x08\0",
        b"BZh9",
        b"\x28\xb5\x2f\xfd",
        b"PK\x03\x04",
        b"9" * 30,
        b"-1",
    ),
    *(
        b'<?xml version="1.0" encoding="shift_jis"?>',
        b"<meta charset=gb2312>",
        b"\xef\xbb\xbf",
        b"<title>",
        b"<p>" * 300,
    ),
    *(b"endstream", b"endobj", b"1 0 R", b"<<", b">>", b"PAR1", b"\xc3", b"\xed\xa0\x80", "ö☃😀".encode("utf-16")),
]


def csv_table(separator):
    rows = io.StringIO()
    writer = csv.writer(rows, delimiter=separator)
    writer.writerows([["id", "text", "label"], [1, 'one, "two"', "a"], [2, "three\nlines\n", "b"], [3, "ö" * 30, "c"]])
    return rows.getvalue().encode()


def docx():
    body = "<w:p><w:r><w:t>Words &amp; more</w:t><w:tab/></w:r></w:p>" * 3
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>')
    return content.getvalue()


def parquet():
    polars = pytest.importorskip("polars", reason="the extra 'cli' is not installed")
    content = io.BytesIO()
    polars.DataFrame({"text": ["one two", "three", "ö"] * 5, "id": range(15)}).write_parquet(content)
    return content.getvalue()


def seeds():
    """A whole file of each format; those whose extra is not installed are left out."""
    jsonl = "".join(
        json.dumps({"text": f"words {i} ö\n", "labels": ["a", i], "id": i}) + "\n" for i in range(5)
    ).encode()
    table, wiki = csv_table(","), dump(*PAGES).encode()
    found = {
        "files": ["plain text\nof a file ö".encode(), "täällä".encode("latin-1"), "täällä".encode("utf-16")],
        "lines": ["one\ntwo ö\n\nthree".encode(), gzip.compress(table), bz2.compress(table), lzma.compress(table)],
        "csv": [table, csv_table(";"), gzip.compress(table)],
        "tsv": [csv_table("\t")],
        "jsonl": [
            jsonl,
            b"[" + jsonl.strip().replace(b"\n", b",\n") + b"]",
            bz2.compress(jsonl),
            jsonl.decode().encode("utf-16"),
        ],
        "parquet": [parquet()],
        "wiki": [
            wiki,
            b'<?xml version="1.0" encoding="koi8-r"?>' + wiki,
            dump(*PAGES).encode("utf-16"),
            bz2.compress(wiki),
            wiki.replace(b"><", b">\n <"),
        ],
        "docx": [docx()],
    }
    for package, name, content in [
        ("pypdf", "pdf", [pdf("Words of a page"), pdf("Words", compress=False)]),
        ("lxml", "html", [b"<html><head><title>T</title></head><body><p>Words <b>more</b>&nbsp;<script>x</script>"]),
    ]:
        try:
            __import__(package)
        except ImportError:
            continue
        found[name] = content
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


SEEDS = seeds()
CASES = [(format, content) for format, contents in SEEDS.items() for content in contents]

places = st.integers(0, 2**16)
mutation = st.one_of(
    st.tuples(st.just("replace"), places, st.integers(0, 8), st.sampled_from(TOKENS)),
    st.tuples(st.just("replace"), places, st.integers(0, 8), st.binary(max_size=8)),
    st.tuples(st.just("repeat"), places, st.integers(1, 60), st.integers(2, 300)),
    st.tuples(st.just("cut"), places, st.integers(0, 200), st.none()),
    st.tuples(st.just("flip"), places, st.integers(0, 7), st.none()),
)


def mutated(content, mutations):
    for kind, place, length, what in mutations:
        at = place % (len(content) + 1)
        before, piece, after = content[:at], content[at : at + length], content[at + length :]
        if kind == "replace":
            content = before + what + after
        elif kind == "repeat":
            content = before + piece * what + after
        elif kind == "cut":
            content = before + (after if length < 100 else b"")
        elif content[at:]:
            content = before + bytes([content[at] ^ (1 << length)]) + content[at + 1 :]
    return content[:50_000]


def check(folder, case, mutations):
    format, content = case
    path = folder / "input"
    path.write_bytes(mutated(content, mutations))
    reader = read(path, format=format, limits=LIMITS)
    try:
        documents = list(reader)
    except InputError:
        return
    assert len(documents) == reader.documents
    for document in documents:
        assert isinstance(document, Document)
        assert len(document.text.encode("utf-8")) <= 4 * LIMITS.document
    assert str(reader.problems)
    assert "it cannot be read (" not in str(reader.problems)  # an error that no reader expects
    assert reader.bytes_read == reader.total_bytes or reader.problems


def test_the_files_are_whole_before_they_are_mutated(folder):
    assert set(SEEDS) <= set(FORMATS)
    for format, content in CASES:
        path = folder / "input"
        path.write_bytes(content)
        reader = read(path, format=format)
        assert list(reader)
        assert set(reader.problems.counts) <= {"guessed encoding"}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=st.sampled_from(CASES), mutations=st.lists(mutation, min_size=1, max_size=6))
def test_mutated_files(folder, case, mutations):
    check(folder, case, mutations)


def random_mutations(random):
    """The same kinds of mutations, drawn a hundred times faster."""
    for _ in range(random.randint(1, 8)):
        place = random.randrange(2**16)
        kind = random.choice(["replace", "replace", "replace", "repeat", "cut", "flip", "flip", "flip"])
        if kind == "replace":
            what = random.choice(TOKENS) if random.random() < 0.7 else random.randbytes(random.randrange(9))
            yield kind, place, random.randint(0, 8), what
        elif kind == "repeat":
            yield kind, place, random.randint(1, 60), random.randint(2, 300)
        else:
            yield kind, place, random.randrange(200 if kind == "cut" else 8), None


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_hundred_thousand_mutated_files(folder, part):
    for number in range(10_000 * part, 10_000 * (part + 1)):
        random = Random(number)
        case, mutations = random.choice(CASES), list(random_mutations(random))
        try:
            check(folder, case, mutations)
        except Exception as error:
            error.add_note(f"input {number}: a {case[0]} file, mutated by {mutations}")
            raise
