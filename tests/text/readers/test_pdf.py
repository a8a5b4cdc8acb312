"""Reader of PDF files."""

import pytest

from document_files import SCAN, pdf, pdf_line, pdf_pages
from polyseme.errors import InputError
from polyseme.text import Limits, read
from polyseme.text.readers import reader as reader_module

pytest.importorskip("pypdfium2", reason="the extra 'text' is not installed")


def read_one(tmp_path, content, name="a.pdf"):
    (tmp_path / name).write_bytes(content)
    (document,) = read(tmp_path / name)
    return document


def column(*lines, x=72, y=700):
    """Return lines of a page, one below the other."""
    return [(x, y - 14 * number, line) for number, line in enumerate(lines)]


def test_pdf(tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf("Words of a page"))
    (tmp_path / "damaged.pdf").write_bytes(b"%PDF-1.4 nothing")
    reader = read(tmp_path)
    (document,) = reader
    assert document.text == "Words of a page"
    assert document.title == "A title"
    assert document.id == "a.pdf"
    assert reader.problems.counts == {"damaged file": 1}
    assert "damaged.pdf: PDFium cannot read it" in str(reader.problems)


def test_words_are_divided_by_gaps(tmp_path):
    """Programs move within words, leave out spaces, and move back over spaces."""
    line = "[(o) 20 (wners of) -350 (Y) 40 (ukos) -280 (unit de) 15 (v) 15 ( ) 293 (eloped) -250 (it)]"
    assert read_one(tmp_path, pdf(line)).text == "owners of Yukos unit developed it"


def test_ligatures_are_letters(tmp_path):
    content = pdf_pages(["BT /F2 12 Tf 72 700 Td <0102> Tj ET"])
    font = (
        b"/F2 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /FirstChar 1 /LastChar 2 /Widths [500 500]"
        b" /Encoding << /Type /Encoding /Differences [1 /fi /fl] >> >> "
    )
    assert read_one(tmp_path, content.replace(b"/F1 3 0 R", b"/F1 3 0 R " + font)).text == "fifl"


def test_lines_are_joined_to_paragraphs(tmp_path):
    """A line continues the line before if its first word had no room there; a list stays a list."""
    lines = column(
        "The reader joins lines where a word had no room, so that a",
        "paragraph is one line of text. It ends here.",
        "Next paragraph of this page, which is about the same width",
        "as the first one.",
        "Apples",
        "Pears",
    )
    text = read_one(tmp_path, pdf_pages([lines])).text
    assert text.split("\n\n") == [
        "The reader joins lines where a word had no room, so that a paragraph is one line of text. It ends here.",
        "Next paragraph of this page, which is about the same width as the first one.",
        "Apples",
        "Pears",
    ]


def test_divided_words_are_joined(tmp_path):
    """The document shows which hyphens belong to words; otherwise capital letters and known words do."""
    lines = column(
        "Institutions of the state are well-known here, and they gov-",
        "ern a single country, whose gene pool is of a new, insti-",
        "tutional kind: it is a study of that country, and a well-",
        "known one by Anglo-",
        "Saxons of a single-",
        "gene trait, which go on to the next page with the same insti-",
    )
    more = column("tutions as before.")
    text = read_one(tmp_path, pdf_pages([lines, more])).text
    assert " govern " in text
    assert "new, institutional kind" in text
    assert "a well-known one by Anglo-Saxons of a single-gene trait" in text
    assert text.endswith("with the same institutions as before.")


def test_columns(tmp_path):
    left = column("The first column has some lines that", "are joined, and its last line contin-")
    right = column("ues in the second column, which ends", "here.", x=320)
    title = [(200, 740, "A title over both of the columns")]
    text = read_one(tmp_path, pdf_pages([title + left + right])).text
    assert text == (
        "A title over both of the columns\n\nThe first column has some lines that are joined, and its last line "
        "continues in the second column, which ends here."
    )


def test_page_headers_and_footers_are_removed(tmp_path):
    """Odd and even pages may have different ones, and the first page none."""
    texts = [f"Text about {animal}s." for animal in ("cat", "dog", "bird", "fish", "bear", "frog")]
    same = "No. 1 is in all texts, but not at an edge."
    pages = [
        [
            *([(400, 760, "Animals" if number % 2 else "A. Writer")] * (number > 1)),
            *column(text, same, *["Words " * number] * 4),
            (300, 30, f"Page {number} of 6"),
        ]
        for number, text in enumerate(texts, 1)
    ]
    text = read_one(tmp_path, pdf_pages(pages)).text
    assert all(each in text for each in texts)
    assert text.count(same) == 6
    assert not any(head in text for head in ("Page", "A. Writer", "Animals"))


def test_pages_that_are_all_alike_are_kept(tmp_path):
    assert read_one(tmp_path, pdf_pages([column("Receipt 17")] * 3)).text == "Receipt 17\n\nReceipt 17\n\nReceipt 17"


def test_scanned_pages_are_reported(tmp_path):
    (tmp_path / "scan_0012.pdf").write_bytes(pdf_pages([SCAN, column("Words"), SCAN, "", SCAN]))
    (tmp_path / "scan_0013.pdf").write_bytes(pdf_pages([SCAN, SCAN]))
    stamp = [(72, 20, "Downloaded from a library")]
    stamped = ["\n".join((SCAN, pdf_line(*stamp[0])))] * 2
    (tmp_path / "scan_0014.pdf").write_bytes(pdf_pages([*stamped, [(72, 700, "Text"), *stamp]]))
    (tmp_path / "scan_0015.pdf").write_bytes(pdf_pages([SCAN]))
    (tmp_path / "empty.pdf").write_bytes(pdf_pages([""]))
    reader = read(tmp_path)
    assert [document.text for document in reader] == ["Words", "Text"]
    assert reader.dropped == {"empty file": 1}
    assert reader.problems.counts == {"pages without text": 2, "scanned file": 2}
    advice = "(scanned images; recognize them with an OCR program, for example ocrmypdf)"
    assert [str(problem) for problem in reader.problems] == [
        f"scan_0012.pdf: 3 of 5 pages have no text {advice}",
        f"scan_0014.pdf: 2 of 3 pages have no text {advice}",
        f"scan_0013.pdf: none of its 2 pages has text {advice}",
        f"scan_0015.pdf: its only page has no text {advice}",
    ]


@pytest.mark.parametrize(
    ("name", "stated", "title"),
    [
        ("scan_0012.pdf", "The annual report", "The annual report"),
        ("scan_0012.pdf", "Microsoft Word - report.doc", "Words of a page"),
        ("scan_0012.pdf", "untitled", "Words of a page"),
        ("scan_0012.pdf", "draft-7.indd", "Words of a page"),
        ("scan_0012.pdf", "", "Words of a page"),
        ("harvest.pdf", "The annual report", "harvest"),
    ],
)
def test_the_title(tmp_path, name, stated, title):
    content = pdf_pages([[(72, 720, "Words of a page")]], stated)
    assert read_one(tmp_path, content, name).title == title


def test_a_pdf_without_a_root_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(reader_module, "ISOLATED", frozenset())
    damaged = pdf("words").replace(b"/Size 7 /Root 1 0 R", b"/Size 1000000 /Root 9 0 R")
    (tmp_path / "damaged.pdf").write_bytes(damaged.replace(b"/Catalog", b"/Catalug"))
    (tmp_path / "good.txt").write_text("good", encoding="utf-8")
    reader = read(tmp_path)
    assert [document.text for document in reader] == ["good"]
    (problem,) = reader.problems
    assert problem.kind == "damaged file"


def test_a_pdf_that_is_locked_or_too_long_is_refused(tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf("Words of a page"))
    with pytest.raises(InputError, match="longer than 5 characters"):
        list(read(tmp_path, limits=Limits(document=5)))
    password = "/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{0}> /U <{0}> >> ".format("00" * 32)
    (tmp_path / "a.pdf").write_bytes(pdf_pages([[(72, 720, "Words of a page")]], trailer=password))
    with pytest.raises(InputError, match="locked by a password"):
        list(read(tmp_path))
