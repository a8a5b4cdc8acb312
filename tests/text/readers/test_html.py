"""Reader of HTML files."""

import re
from collections import Counter

import pytest

import web_pages
from polyseme.text import read

pytest.importorskip("lxml", reason="the extra 'text' is not installed")


def read_page(tmp_path, page, name="1.html"):
    (tmp_path / name).write_text(page, encoding="utf-8")
    (document,) = read(tmp_path / name)
    return document


def words(text):
    return Counter(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize("page", web_pages.PAGES.values(), ids=web_pages.PAGES)
def test_the_text_is_the_main_text_of_a_page(tmp_path, page):
    markup, text = page()
    assert words(read_page(tmp_path, markup).text) == words(text)


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title>Rain | The Daily</title><meta property='og:title' content='Rain at last'>", "Rain at last"),
        ("<title>Rain and wind | The Daily</title>", "Rain and wind"),
        ("<title>The Daily</title>", "The Daily"),
        ("<title>Untitled Document</title>", "Rain and wind"),
        ("", "Rain and wind"),
    ],
)
def test_the_title(tmp_path, head, title):
    page = (
        f"<html><head>{head}</head><body><p>First line</p><h1>Rain <i>and</i> wind</h1><h1>Another one</h1><p>Text</p>"
    )
    assert read_page(tmp_path, page).title == title
    assert read_page(tmp_path, "<p>First line</p><p>Text").title == "First line"


@pytest.mark.parametrize(
    "page",
    [
        "<nav>All of the text is in here</nav>",
        "<noscript><p>All of the text is in here</p>",
        "<div>" * 3000 + "All of the text is in here",
        "<form><p>All of the text is in here</p></form>",
        "<div class='comments sidebar'><p>All of the text is in here</p></div>",
        "<main></main><div>All of the text is in here</div><nav></nav>",
        "<ul class='menu'><li><a>All</a><li><a>of the text</a><li><a>is in</a><li><a>here</a></ul>",
        "<title>t</title>All of the text</div></p> is in here",
    ],
)
def test_text_is_not_lost_to_odd_markup(tmp_path, page):
    assert read_page(tmp_path, page).text.split() == ["All", "of", "the", "text", "is", "in", "here"]


def test_lines_of_the_markup_are_not_lines_of_the_text(tmp_path):
    page = "<p>A paragraph\nof two\r\n  lines</p><pre>first\nsecond</pre>"
    assert read_page(tmp_path, page).text == "A paragraph of two lines\nfirst\nsecond"


def test_html(tmp_path):
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
    (tmp_path / "a.html").write_bytes(b"<meta charset=utf-8><p>caf\xe9 words</p>")
    (tmp_path / "b.html").write_bytes("<meta charset=martian><p>täällä on sanoja</p>".encode())
    reader = read(tmp_path)
    assert [document.text for document in reader] == ["caf\ufffd words", "täällä on sanoja"]
    assert reader.problems.counts == {"undecodable bytes": 1}
    assert "a.html: bytes that are not utf-8 were replaced by U+FFFD" in str(reader.problems)
