"""Sentences of texts, parts of long texts, and beginnings of texts."""

import pytest

from polyseme.text.sentences import cut_at_word, shortened, split_parts, split_sentences

CASES = {
    "abbreviations": (
        "Dr. Smith of the U.S. Army met J. R. Jones at 3.5 p.m. in St. Louis. They left, e.g. by car.",
        ["Dr. Smith of the U.S. Army met J. R. Jones at 3.5 p.m. in St. Louis.", "They left, e.g. by car."],
    ),
    "wrapped lines": (
        "The harbor was closed for the whole winter because of\nthe ice. It opened again in the first days of\nMarch.",
        [
            "The harbor was closed for the whole winter because of the ice.",
            "It opened again in the first days of March.",
        ],
    ),
    "heading": (
        "The harbor\nShips waited in the bay for many days.",
        ["The harbor", "Ships waited in the bay for many days."],
    ),
    "quoted message": (
        "Jane writes:\n> Ships are slow.\n>> Are they?\nI think that they are fast.",
        ["Jane writes:", "I think that they are fast."],
    ),
    "only quoted": ("> Ships are slow, and so are trains.", ["> Ships are slow, and so are trains."]),
    "list": (
        "We sell\n- apples from the north\n- pears\n1. First we wash them.",
        ["We sell", "apples from the north", "pears", "First we wash them."],
    ),
    "table": ("Ship      Tons      Port\nAnna      120       Riga.", ["Ship Tons Port", "Anna 120 Riga."]),
    "lower case": ("the flow is laminar . the wall is hot .", ["the flow is laminar .", "the wall is hot ."]),
    "mark before lower case": ("Is it there? he asked. Nobody knew.", ["Is it there? he asked.", "Nobody knew."]),
    "Japanese": (
        "吾輩は猫である。名前はまだ\n無い！「どこで」",
        ["吾輩は猫である。", "名前はまだ無い！", "「どこで」"],
    ),
    "Hindi": ("यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"]),
    "no marks": ("just some words", ["just some words"]),
    "empty": (" \n---\n", []),
}


@pytest.mark.parametrize("name", CASES)
def test_split_sentences(name):
    text, expected = CASES[name]
    assert [sentence.text for sentence in split_sentences(text)] == expected


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("The harbor was closed for the winter.", True),
        ("« Le port était fermé pendant tout l'hiver. »", True),
        ("どこで生れたかとんと見当がつかぬ。", True),
        ("यह एक बहुत लंबा और सुंदर वाक्य है।", True),
        ("the harbor was closed for the winter.", True),
        ("Closed.", False),
        ("Ships of the northern harbor in winter", False),
        ("5, Hartford, Nylander 11 (Zalapski, Sanderson) 9:38.", False),
        ("Write to Jane Roe at jane@example.org about the ships.", False),
        ("Anna      120 tons      sails to the port of Riga.", False),
    ],
)
def test_only_prose_is_complete(text, complete):
    assert [sentence.complete for sentence in split_sentences(text)] == [complete]


def test_marks_of_items_are_left_out_only_at_the_start_of_a_line():
    text = "The sizes of 1024 (or 1536, and 1792) may stay - so the standard says.\n- Call f(dtype, other(s)) for them."
    assert [sentence.text for sentence in split_sentences(text)] == [
        "The sizes of 1024 (or 1536, and 1792) may stay - so the standard says.",
        "Call f(dtype, other(s)) for them.",
    ]


def test_a_sentence_that_begins_in_lower_case_is_incomplete():
    text = "and so on. The harbor was closed for the winter. Ships waited in the bay for many days."
    assert [sentence.complete for sentence in split_sentences(text)] == [False, True, True]


@pytest.mark.parametrize("text", ["word " * 300, "港は冬の間ずっと閉ざされていた" * 40, "x" * 700])
def test_parts_cover_a_text_and_are_cut_at_words(text):
    text = text.strip()
    parts = split_parts(text, 100)
    assert max(map(len, parts)) <= 100
    bare = [part.strip("… ") for part in parts]
    assert all(part in text for part in bare)
    assert text.startswith(bare[0])
    assert text.endswith(bare[-1])
    assert parts[0].endswith("…")
    assert parts[-1].startswith("… ")
    if " " in text:
        assert {word for part in bare for word in part.split()} == {"word"}
    assert split_parts("short", 100) == ["short"]


def test_beginnings_end_at_a_sentence_or_a_word():
    text = "The harbor was closed for the winter. Ships waited in the bay."
    assert shortened(text, 100) == text
    assert shortened(text, 50) == "The harbor was closed for the winter."
    assert shortened(text, 30) == "The harbor was closed for the winter."  # at most half more than 30
    assert shortened(text, 20) == "The harbor was …"
    assert shortened("the harbor was closed. ships waited in the bay. the ice melted.", 30) == "the harbor was closed."
    assert shortened("The tide rose by 3.5 meters in the bay", 12) == "The tide …"
    assert shortened("Mr. Smith went to the harbor of Riga", 10) == "Mr. …"
    assert cut_at_word("港は冬の間ずっと閉ざされていた", 8) == "港は冬の間ず…"


def test_long_texts_without_sentence_ends_are_fast():
    text = "a.b. " * 20_000 + "x   y " * 10_000
    assert split_sentences(text)
