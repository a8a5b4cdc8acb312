"""Readers of PDF, Word and HTML files."""

import re
import sys
import zipfile

import pytest

from document_files import WORD, pdf, write_docx
from polyseme.errors import InputError, MissingExtraError
from polyseme.text import Limits, read
from polyseme.text.readers import decoding
from polyseme.text.readers import reader as reader_module


def test_pdf(tmp_path):
    pytest.importorskip("pypdf", reason="the extra 'files' is not installed")
    (tmp_path / "a.pdf").write_bytes(pdf("Words of a page"))
    (tmp_path / "damaged.pdf").write_bytes(b"%PDF-1.4 nothing")
    reader = read(tmp_path)
    (document,) = reader
    assert document.text == "Words of a page"
    assert document.title == "A title"
    assert document.id == "a.pdf"
    assert reader.problems.counts == {"damaged file": 1}
    assert "damaged.pdf: pypdf cannot read it" in str(reader.problems)


def test_the_search_for_the_root_of_a_damaged_pdf_is_limited(tmp_path, monkeypatch):
    """A tiny file that claims to have a million objects took ten seconds."""
    pypdf = pytest.importorskip("pypdf", reason="the extra 'files' is not installed")
    monkeypatch.setattr(reader_module, "ISOLATED", frozenset())
    get_object, numbers = pypdf.PdfReader.get_object, []

    def counted(self, number):
        numbers.append(number)
        return get_object(self, number)

    monkeypatch.setattr(pypdf.PdfReader, "get_object", counted)
    damaged = (
        pdf("words").replace(b"/Size 7 /Root 1 0 R", b"/Size 1000000 /Root 9 0 R").replace(b"/Catalog", b"/Catalug")
    )
    (tmp_path / "damaged.pdf").write_bytes(damaged)
    (tmp_path / "good.txt").write_text("good", encoding="utf-8")
    reader = read(tmp_path)
    assert [document.text for document in reader] == ["good"]
    (problem,) = reader.problems
    assert problem.kind == "damaged file"
    assert problem.what.startswith("pypdf cannot read it")
    assert len(numbers) < 2000


def test_a_pdf_that_is_locked_or_too_long_is_refused(tmp_path):
    pypdf = pytest.importorskip("pypdf", reason="the extra 'files' is not installed")
    (tmp_path / "a.pdf").write_bytes(pdf("Words of a page"))
    with pytest.raises(InputError, match="longer than 5 characters"):
        list(read(tmp_path, limits=Limits(document=5)))
    writer = pypdf.PdfWriter(tmp_path / "a.pdf")
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "a.pdf")
    with pytest.raises(InputError, match="locked by a password"):
        list(read(tmp_path))


def test_docx(tmp_path):
    body = (
        "<w:p><w:r><w:t>First </w:t></w:r><w:r><w:t>paragraph</w:t><w:delText>gone</w:delText></w:r></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t><w:tab/><w:t>&amp; more</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
        "<mc:AlternateContent><mc:Choice><w:p><w:t>shown</w:t></w:p></mc:Choice>"
        "<mc:Fallback><w:p><w:t>shown</w:t></w:p></mc:Fallback></mc:AlternateContent>"
    )
    notes = f'<w:footnotes xmlns:w="{WORD}"><w:p><w:t>A note</w:t></w:p></w:footnotes>'
    write_docx(tmp_path / "a.docx", body, {"word/footnotes.xml": notes})
    (document,) = read(tmp_path)
    assert document.text == "First paragraph\ncell\t& more\nshown\n\n\nA note"
    assert document.title == "First paragraph"


def test_damaged_and_hostile_docx_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(reader_module, "ISOLATED", frozenset())
    monkeypatch.setattr(decoding, "RATIO_JUDGED_FROM", 2**20)
    (tmp_path / "good.txt").write_text("good", encoding="utf-8")
    (tmp_path / "none.docx").write_bytes(b"PK nothing")
    write_docx(tmp_path / "cut.docx", "<w:p><w:r>")
    write_docx(tmp_path / "bomb.docx", "<w:p><w:t>" + "a" * 2**23 + "</w:t></w:p>")
    laughs = '<!DOCTYPE d [<!ENTITY a "ha">]><d>&a;</d>'
    write_docx(tmp_path / "laughs.docx", "", {"word/endnotes.xml": laughs})
    with zipfile.ZipFile(tmp_path / "other.docx", "w") as archive:
        archive.writestr("x", "y")
    reader = read(tmp_path)
    assert [d.text for d in reader] == ["good"]
    assert reader.problems.counts == {"damaged file": 4, "refused file": 1}
    assert re.search(r"bomb\.docx: \d+ bytes expand to \d+ and more, beyond `limits`", str(reader.problems))
    assert "laughs.docx: it is not a complete Word file (it declares a document type" in str(reader.problems)


def test_html(tmp_path):
    pytest.importorskip("lxml", reason="the extra 'files' is not installed")
    page = (
        "<!doctype html><html><head><title>A  title</title><style>p {}</style></head><body><h1>Head</h1>"
        "<p>A p<b>ar</b>agraph&nbsp;&amp; more<p>Next<br>line<script>var x</script>"
        "<table><tr><td>one</td><td>two</td></tr></table>täällä<!-- comment --></body></html>"
    )
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    declared = page.replace("<style>", '<meta http-equiv="x" content="text/html; charset=windows-1252"><style>')
    (tmp_path / "b.htm").write_bytes(declared.encode("cp1252"))
    (tmp_path / "b2.htm").write_text(declared.replace("windows-1252", "utf-16"), encoding="utf-8")
    (tmp_path / "b3.htm").write_text(declared, encoding="utf-8-sig")
    (tmp_path / "c.html").write_text("<script>only</script>", encoding="utf-8")
    reader = read(tmp_path)
    first, *others = reader
    assert {document.text for document in others} == {first.text}
    assert first.text == "Head\nA paragraph & more\nNext\nline\none\ntwo\ntäällä"
    assert first.title == "A title"
    assert reader.dropped == {"empty file": 1}
    assert not reader.problems


def test_html_with_a_wrong_encoding(tmp_path):
    """Bytes that are invalid in the declared encoding are counted; an unknown encoding is ignored."""
    pytest.importorskip("lxml", reason="the extra 'files' is not installed")
    (tmp_path / "a.html").write_bytes(b"<meta charset=utf-8><p>caf\xe9 words</p>")
    (tmp_path / "b.html").write_bytes("<meta charset=martian><p>täällä on sanoja</p>".encode())
    reader = read(tmp_path)
    assert [document.text for document in reader] == ["caf\ufffd words", "täällä on sanoja"]
    assert reader.problems.counts == {"undecodable bytes": 1}
    assert "a.html: bytes that are not utf-8 were replaced by U+FFFD" in str(reader.problems)


@pytest.mark.parametrize(("package", "name"), [("pypdf", "a.pdf"), ("lxml", "a.html")])
def test_without_the_extra_the_message_names_it(tmp_path, monkeypatch, package, name):
    monkeypatch.setattr(reader_module, "ISOLATED", frozenset())
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(MissingExtraError, match=r"polyseme\[files\]"):
        list(read(tmp_path))
