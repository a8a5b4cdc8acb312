"""Mutated files of every format: a reader yields documents, reports problems or raises InputError."""

import csv
import io
import json
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import backports.zstd
import chardet
import lxml.html
import pypdfium2

from document_files import PAGES, WORD, dump, ods, pdf, xlsx
from fuzz.driver import Case, WrongResult
from fuzz.mutations import compress, mutate, mutate_bytes
from polyseme.errors import InputError
from polyseme.text import Document, Limits, read
from polyseme.text.readers import FORMATS

IMPORTED_BEFORE_THE_FORK = (backports.zstd, chardet, lxml.html, pypdfium2)

LIMITS = Limits(document=100_000, expanded=2_000_000, ratio=100)
ENCODINGS = (
    "utf-8",
    "utf-16",
    "utf-16-le",
    "utf-32",
    "latin-1",
    "cp1252",
    "shift_jis",
    "gb18030",
    "koi8-r",
    "utf-7",
    "idna",
)
SUFFIXES = ("gz", "bz2", "xz", "zst")


def table(separator: str) -> bytes:
    """Return a small CSV file."""
    rows = io.StringIO()
    writer = csv.writer(rows, delimiter=separator)
    writer.writerows(
        [["id", "text", "label", "date"], [1, 'one, "two"', "a", "2020-01-01"], [2, "three\nlines\n", "b", ""]]
    )
    writer.writerows([[3, "ö" * 30, "c", "1999"]])
    return rows.getvalue().encode()


def docx(way: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a small Word file."""
    body = "<w:p><w:r><w:t>Words &amp; more</w:t><w:tab/></w:r></w:p>" * 3
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", way) as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>')
        archive.writestr(
            "docProps/core.xml", "<cp><dc:title xmlns:dc='http://purl.org/dc/elements/1.1/'>T</dc:title></cp>"
        )
    return content.getvalue()


@cache
def parquet(kind: str) -> bytes:
    """Return a small Parquet file. Only for forked children, because polars starts threads."""
    import polars

    columns: dict[str, Any] = {"text": ["one two", "three", "ö"] * 5, "id": range(15)}
    if kind == "rich":
        columns |= {
            "time": [1_600_000_000_000_000] * 15,
            "label": [["a"], [], ["b", "c"]] * 5,
            "title": ["t", None, ""] * 5,
        }
    frame = polars.DataFrame(columns)
    if kind == "rich":
        frame = frame.with_columns(polars.col("time").cast(polars.Datetime("us")))
    content = io.BytesIO()
    frame.write_parquet(content, row_group_size=6)
    return content.getvalue()


def _jsonl() -> bytes:
    rows = [{"text": f"words {i} ö\n", "labels": ["a", i], "id": i, "time": None} for i in range(5)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


TABLE = [["id", "text", "date"], ["a", "one two", "2020-01-01"], ["b", "three ö", 2021]]
MAIL = (
    b"From: =?utf-8?q?J=C3=B6rg?= <j@b.c>\nSubject: Ships\nDate: Thu, 26 Feb 1987 15:01:01 +0000\nMIME-Version: 1.0\n"
    b'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/plain; charset="utf-8"\n'
    b"Content-Transfer-Encoding: quoted-printable\n\nWords=20of a mail\n> quoted\n-- \nJ\n--x\n"
    b'Content-Type: text/html\nContent-Disposition: attachment; filename="a.html"\n\n<p>More</p>\n--x--\n'
)
WIKI = dump(*PAGES).encode()
SEEDS: dict[str, list[tuple[str, bytes]]] = {
    "files": [
        (".txt", "plain text\nof a file ö".encode()),
        (".txt", "täällä".encode("latin-1")),
        (".txt", "täällä".encode("utf-16")),
        (".txt", "これは文書です".encode("shift_jis")),
    ],
    "lines": [(".txt", "one\ntwo ö\n\nthree".encode()), (".txt", "один\nдва".encode("koi8-r"))],
    "csv": [(".csv", table(",")), (".csv", table(";")), (".csv", table(",").decode().encode("utf-16"))],
    "tsv": [(".tsv", table("\t"))],
    "jsonl": [
        (".jsonl", _jsonl()),
        (".json", b"[" + _jsonl().strip().replace(b"\n", b",\n") + b"]"),
        (".jsonl", _jsonl().decode().encode("utf-16")),
    ],
    "parquet": [],
    "spreadsheet": [(".xlsx", xlsx(TABLE)), (".ods", ods(TABLE))],
    "wiki": [
        (".xml", WIKI),
        (".xml", b'<?xml version="1.0" encoding="koi8-r"?>' + WIKI),
        (".xml", dump(*PAGES).encode("utf-16")),
        (".xml", WIKI.replace(b"><", b">\n <")),
    ],
    "docx": [(".docx", docx()), (".docx", docx(zipfile.ZIP_STORED))],
    "pdf": [(".pdf", pdf("Words of a page")), (".pdf", pdf("Words", compress=False))],
    "eml": [(".eml", MAIL)],
    "mbox": [(".mbox", 2 * (b"From a Thu Feb 26 23:01:01 1987\n" + MAIL + b"\n"))],
    "html": [(".html", b"<html><head><title>T</title></head><body><p>Words <b>more</b>&nbsp;<script>x</script>")],
}  # fmt: skip
"""Valid files of each format with their suffix; children make those of Parquet."""


def seeds(format: str) -> list[tuple[str, bytes]]:
    """Return valid files of a format."""
    return [(".parquet", parquet("plain")), (".parquet", parquet("rich"))] if format == "parquet" else SEEDS[format]


class Readers:
    """Fuzzer that reads mutated files."""

    name = "readers"
    cases = 1_000_000
    seconds = 10.0
    memory = 2 * 2**30
    batch = 5000
    folder: Path

    def prepare(self, cases: Sequence[Case] | None) -> None:
        """Do nothing."""

    def check(self) -> None:
        """Raise if a format has no file, or a file is not valid before mutation."""
        if set(SEEDS) != set(FORMATS):
            raise WrongResult(f"there are no files of {set(FORMATS) - set(SEEDS)}")
        for format in FORMATS:
            for suffix, content in seeds(format):
                if self._read({"name": "whole" + suffix, "format": format, "content": content}) != "read":
                    raise WrongResult(f"a whole {format} file is not read")

    def draw(self, random: Random) -> Case:
        """Return a mutated file, sometimes compressed, and sometimes read as another format."""
        format = random.choice(sorted(SEEDS))
        suffix, content = random.choice(seeds(format))
        content = mutate(content, suffix, random)
        name: str = "input" + suffix
        if format != "docx" and random.random() < 0.15:
            how = random.choice(SUFFIXES)
            content, name = compress(content, how), f"{name}.{how}"
            if random.random() < 0.5:
                content = mutate_bytes(content, random)
        if random.random() < 0.02:
            format = random.choice(sorted(SEEDS))
        options: dict[str, Any] = {}
        if random.random() < 0.1:
            options["encoding"] = random.choice(ENCODINGS)
        if random.random() < 0.05:
            options["text"] = random.choice((["text"], ["id"], ["text", "label"], ["x"]))
        if random.random() < 0.05:
            options["sample"] = 2
        return {"name": name, "format": format, "content": content, "options": options}

    def run(self, case: Case) -> str:
        """Read a file, and check documents and problems."""
        return f"{case['format']}: {self._read(case)}"

    def _read(self, case: Case) -> str:
        path = Path(case["name"])
        path.write_bytes(case["content"])
        try:
            reader = read(path, format=case["format"], limits=LIMITS, **case.get("options", {}))
            documents = list(reader)
        except InputError as error:
            if "\n" in str(error):
                raise WrongResult(f"a message of several lines: {error}") from error
            if "it cannot be read (" in str(error):
                raise WrongResult(f"an error that no reader expects: {error}"[:300]) from error
            return "refused, and the process ended" if "the process that read it ended" in str(error) else "refused"
        if len(documents) != reader.documents or not documents:
            raise WrongResult(f"{len(documents)} documents were given and {reader.documents} counted")
        for document in documents:
            if not isinstance(document, Document) or not isinstance(document.text, str):
                raise WrongResult(f"no document: {document!r}")
            if len(document.text.encode("utf-8")) > 4 * LIMITS.document:
                raise WrongResult("a document is larger than the limit")
        if not reader.problems and reader.bytes_read != reader.total_bytes:
            raise WrongResult("a part of the file was not read, and no problem is reported")
        text = str(reader.problems)
        if "it cannot be read (" in text:
            raise WrongResult(f"an error that no reader expects: {text}"[:300])
        if "the process that read it ended" in text:
            return "read, and the process ended"
        problems = set(reader.problems.counts) - {"guessed encoding"}
        return "read, with problems" if problems else "read"


fuzzer = Readers()
