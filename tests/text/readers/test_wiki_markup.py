"""Conversion of wikitext to plain text."""

import pytest

from polyseme.text.readers.wiki import Wikitext

PROSE = [
    ("plain words", "plain words"),
    ("'''bold''' and ''italic''", "bold and italic"),
    ("[[Target]] [[Target|shown]] [[Main#Part|part]]s", "Target shown parts"),
    ("a{{template}}b{{nested|{{inner|x}}|y}}c", "abc"),
    ("open {{never closed [[link|text]]", "open never closed text"),
    ("closed}} too", "closed too"),
    ("before\n{| class=wikitable\n| cell {{t}}\n|-\n{|\n| inner\n|}\n|}\nafter", "before\n\nafter"),
    ("x<ref>cite</ref>y<ref name=a />z<ref name='b'>{{cite|url=http://a.b}}</ref>", "xyz"),
    ("x<!-- hidden [[link]] -->y", "xy"),
    ("formula <math>a < b</math> ends", "formula ends"),
    ("[[File:A.jpg|thumb|left|A [[caption|note]] with [http://x.y web] and [1890s]]] text", "text"),
    ("[[Bild:A.png|thumb|unknown name of a file]]text", "text"),
    ("== Heading ==\ntext\n=== Sub ===", "Heading \ntext\n Sub"),
    ("* one\n# two\n: three\n; four", "one\n two\n three\n four"),
    (
        "see [http://example.org the site] or [http://example.org] or http://example.org/a?b=c now",
        "see the site or or now",
    ),
    ("a&nbsp;b &ndash; c&amp;d &unknown; AT&T &#233;", "a b – c&d &unknown; AT&T é"),
    ("one<br/>two<div class='x'>three</div><span>fo</span>ur", "one two three four"),
    ("<nowiki>[[not a link]] {{nor this</nowiki> }} after", "not a link nor this after"),
    ("[[de:Anderes]] [[:de:Anderes|seen]] [[zh-min-nan:X]]", "seen"),
    ("[[:Category:Seen]]", "Category:Seen"),
    ("__NOTOC__text__TOC__", "text"),
    ("{{{parameter|default}}} x", "} x"),
    ("if <5 and >3", "if <5 and >3"),
    ("", ""),
]


@pytest.mark.parametrize(("source", "expected"), PROSE)
def test_prose(source, expected):
    assert Wikitext().prose(source).text == expected


def test_categories_are_found_by_the_names_of_the_wiki():
    markup = Wikitext(["categoria"], ["immagine"])
    source = "[[Categoria:Gatti neri|*]] [[category:Cani_piccoli]] [[ CATEGORIA : Gatti neri]] x [[Immagine:A|b]]"
    source += " [[Kategorie:Y]]"
    prose = markup.prose(source)
    assert prose.categories == ("Gatti neri", "Cani piccoli")
    assert prose.text == "x Kategorie:Y"


PIECES = [
    *(
        "{{",
        "}}",
        "[[",
        "]]",
        "[[a|",
        "[[a]]",
        "<ref>",
        "</ref>",
        "<ref",
        "<!--",
        "-->",
        "<nowiki>",
        "<pre>",
        "''",
        "==",
    ),
    *("=", "[http://", "[//", "http://", "&amp;", "&", "<", ">", "<a", "__A", "_", "[", "]", "{", "|", "}", "{|", "|}"),
    *("*", "#", "\n", " ", "{|\n", "\n|}", "\n*", "\n|", "[//x "),
]


@pytest.mark.parametrize("piece", PIECES)
def test_the_time_is_linear(piece):
    """128 KiB of each kind of markup; a quadratic step would take minutes."""
    for repeated in (piece, f"x{piece}"):
        text = Wikitext().prose(repeated * (2**17 // len(repeated)) + "y").text
        assert not any(markup in text for markup in ("[[", "]]", "{{", "}}", "''"))
