"""Reports of runs as Word documents, web pages and Markdown."""

import builtins
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import polyseme
from explorer_corpora import HOSTILE
from polyseme import InputError
from polyseme.errors import MissingExtraError
from polyseme.explore.report import Bars, Heading, Paragraph, Quote, Table, check_report, report_blocks

pl = pytest.importorskip("polars", reason="needs polyseme[text]")

SEA = "The ship left the {} harbor with a cargo of salt for the sailor."
SOUP = "She cooked a {} soup of butter, onion and garlic for all of us."
PLACES = ["northern", "southern", "western", "eastern", "golden", "quiet", "winter", "summer", "royal", "little"]
FORMATS = ("docx", "html", "md")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a run with hostile titles and labels, dates with a gap of two years, and texts without a date."""
    texts = [sentence.format(place) + " Nobody knows why." for sentence in (SEA, SOUP) for place in PLACES]
    frame = pl.DataFrame(
        {
            "text": texts,
            "title": [*HOSTILE, *(f"\x1b[31m{name}\u202e" for name in HOSTILE)],
            "label": [*HOSTILE[:1] * 10, *HOSTILE[1:2] * 9, None],
            "time": [*["2001-05-02"] * 12, *["2004-07-01"] * 6, None, ""],
        }
    )
    place = tmp_path_factory.mktemp("report") / "run"
    return polyseme.fit(frame, 2, output=place, label="label", time="time", title="title", min_df=1, levels="none")


@pytest.fixture(scope="module")
def blocks(run):
    return report_blocks(run.view, "Where do ships go?")


def of(blocks, kind):
    return [block for block in blocks if isinstance(block, kind)]


def section(blocks, name):
    """Return the blocks below a heading."""
    start = blocks.index(Heading(name)) + 1
    ends = [place for place, block in enumerate(blocks) if isinstance(block, Heading) and place >= start]
    return blocks[start : ends[0] if ends else None]


def test_the_report_shows_documents_topics_and_quotes(run, blocks):
    assert blocks[0] == Heading("Where do ships go?", 0)
    facts = dict(section(blocks, "Documents")[0].rows)
    assert facts["documents"] == "20"
    assert facts["dates"] == "2001-05-02 to 2004-07-01"
    assert facts["documents without a date"] == "2"
    weights = run.model._fitted.topic_weights
    order = np.argsort(-weights)
    assert of(blocks, Bars)[0].shares == pytest.approx(weights[order].tolist())
    typical = run.typical_documents(2)
    expected = [Quote(document.quote, document.title) for topic in order for document in typical[topic]]
    assert of(blocks, Quote) == expected
    words = run.topic_words(10)
    described = [block.text for block in of(blocks, Paragraph) if "Words:" in block.text]
    for topic, text in zip(order, described, strict=True):
        assert ", ".join(words[topic]) in text
        assert f"Share {weights[topic]:.1%}" in text


def test_groups_and_periods_have_counts_and_gaps(run, blocks):
    groups = section(blocks, "Labels")[1]
    assert [row[0] for row in groups.rows] == [*HOSTILE[:2]]
    assert [row[-1] for row in groups.rows] == ["10", "9"]
    assert "100%" in groups.rows[0][1]
    note, table = section(blocks, "Time")
    assert "2 documents without a date" in note.text
    assert table.rows[0][:2] == ("2001 Q2", "12")
    assert table.rows[-1][:2] == ("2004 Q3", "6")
    assert {row[1:] for row in table.rows[1:-1]} == {("0", "–", "–")}
    shares = np.array([[float(cell.rstrip("%")) for cell in row[2:]] for row in table.rows if row[1] != "0"])
    np.testing.assert_allclose(shares.sum(axis=1), 100, atol=0.11)


def test_the_report_says_how_the_number_was_chosen_and_what_to_cite(blocks):
    assert section(blocks, "How the number of topics was chosen") == [Paragraph("2 topics: the number was given.")]
    cited = section(blocks, "How to cite and repeat this")
    citation = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r'^title: "(.*)"', citation, re.MULTILINE)[1] in cited[0].text
    assert "Hofmann" in cited[1].text
    assert dict(cited[2].rows)["seed"] == "0"


def test_a_report_without_labels_and_dates_has_no_such_sections():
    bare = polyseme.fit([SEA.format(place) for place in PLACES] + [SOUP.format(place) for place in PLACES], 2, min_df=1)
    headings = [block.text for block in of(report_blocks(bare.view), Heading)]
    assert "Labels" not in headings
    assert "Time" not in headings


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def test_hostile_texts_are_inert_in_html(run, tmp_path):
    page = run.report(tmp_path / "report.html").read_text(encoding="utf-8")
    found = Tags()
    found.feed(page)
    allowed = "html head meta title style body h1 h2 h3 p blockquote cite div table tr th td pre svg text rect"
    assert found.tags <= set(allowed.split())
    assert not {name for name in found.attributes if name.startswith("on") or name in ("href", "src", "style")}
    assert "default-src 'none'" in page
    assert HOSTILE[0] in found.text
    assert r"\x1b[31m" in found.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page)


def test_hostile_texts_are_inert_in_markdown(run, tmp_path):
    text = run.report(tmp_path / "report.md").read_text(encoding="utf-8")
    assert not re.search(r"(?<!\\)[<\[\]`*]", text)
    assert not re.search(r"^(\\\\)*(?!#{1,3} |> |\| |>$|    |$)[-+=#]|^\d+[.)]", text, re.MULTILINE)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    header = ("| label ", "| period ", "| topic ")
    for row in rows:
        if row.startswith(header):
            columns = len(re.findall(r"(?<!\\)\|", row))
            assert columns == len(re.findall(r"(?<!\\)\|", rows[rows.index(row) + 2]))


@pytest.mark.parametrize("start", ["- item", "1. item", "12) item", "+ item", "# head", "> quote", "=== x", "    code"])
def test_a_text_does_not_begin_a_markdown_block(start):
    from polyseme.explore.report import _escape_markdown

    assert not re.match(r"\s*([-+*>#=]|\d+[.)])|\s{4}", _escape_markdown(start))


@pytest.mark.parametrize("plots", [True, False])
def test_a_word_document(run, blocks, tmp_path, plots, monkeypatch):
    docx = pytest.importorskip("docx", reason="needs polyseme[report]")
    if not plots:
        hide(monkeypatch, "matplotlib")
    document = docx.Document(run.report(tmp_path / "report.docx", title="Where do ships go?"))
    paragraphs = [paragraph.text for paragraph in document.paragraphs]
    assert paragraphs[0] == "Where do ships go?"
    assert all(quote.text in paragraphs for quote in of(blocks, Quote))
    tables = len(of(blocks, Table))
    assert (len(document.inline_shapes), len(document.tables)) == ((1, tables) if plots else (0, tables + 1))
    labels = next(table for table in document.tables if table.cell(0, 0).text == "label")
    assert labels.cell(1, 0).text == HOSTILE[0]
    assert not any(relation.is_external for relation in document.part.rels.values())
    if not plots:
        drawn = next(table for table in document.tables if table.cell(0, 0).text == "topic")
        assert set(drawn.cell(1, 1).text) == {"█"}


def hide(monkeypatch, name):
    """Let the import of a package fail."""
    kept = builtins.__import__

    def fail(module, *arguments, **more):
        if module.partition(".")[0] == name:
            raise ModuleNotFoundError(name)
        return kept(module, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", fail)


def test_other_formats_are_refused_and_files_are_not_touched(run, tmp_path, monkeypatch):
    for name in ("report.pdf", "report", "report.md.txt"):
        with pytest.raises(InputError, match=r"must end with .docx, .html or .md"):
            run.report(tmp_path / name)
    hide(monkeypatch, "docx")
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'polyseme[report]'")):
        run.report(tmp_path / "report.docx")
    check_report("REPORT.HTML")
    assert list(tmp_path.iterdir()) == []


def test_a_level_and_a_sample_have_reports(tmp_path, run):
    sample = run.sample(8).report(tmp_path / "sample.md").read_text(encoding="utf-8")
    assert "run (8 of 20 documents)" in sample
    assert "2 topics in 8 documents." in sample
