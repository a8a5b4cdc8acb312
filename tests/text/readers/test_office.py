"""Reader of Word files, and readers without their extra."""

import re
import sys
import zipfile

import pytest

from document_files import WORD, write_docx
from polyseme.errors import MissingExtraError
from polyseme.text import read
from polyseme.text.readers import decoding
from polyseme.text.readers import reader as reader_module


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


@pytest.mark.parametrize(
    ("name", "stated", "title"),
    [
        ("scan_0012.docx", "The annual report", "The annual report"),
        ("scan_0012.docx", "Microsoft Word - draft.doc", "A heading"),
        ("scan_0012.docx", None, "A heading"),
        ("harvest.docx", "The annual report", "harvest"),
    ],
)
def test_the_title_of_docx(tmp_path, name, stated, title):
    body = (
        "<w:p><w:r><w:t>To whom it may concern</w:t></w:r></w:p>"
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>A </w:t></w:r><w:r><w:t>heading</w:t></w:r></w:p>'
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Another one</w:t></w:r></w:p>'
    )
    core = '<p:coreProperties xmlns:p="p" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:creator>Ada</dc:creator>'
    core += "<dc:title/>" if stated is None else f"<dc:title>{stated}</dc:title>"
    write_docx(tmp_path / name, body, {"docProps/core.xml": core + "</p:coreProperties>"})
    (document,) = read(tmp_path)
    assert document.title == title
    assert document.text == "To whom it may concern\nA heading\nAnother one"


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
    assert [document.text for document in reader] == ["good"]
    assert reader.problems.counts == {"damaged file": 4, "refused file": 1}
    assert re.search(r"bomb\.docx: \d+ bytes expand to \d+ and more, beyond `limits`", str(reader.problems))
    assert "laughs.docx: it is not a complete Word file (it declares a document type" in str(reader.problems)


@pytest.mark.parametrize(("package", "name"), [("pypdfium2", "a.pdf"), ("lxml", "a.html")])
def test_without_the_extra_the_message_names_it(tmp_path, monkeypatch, package, name):
    monkeypatch.setattr(reader_module, "ISOLATED", frozenset())
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(MissingExtraError, match=r"polyseme\[text\]"):
        list(read(tmp_path))
