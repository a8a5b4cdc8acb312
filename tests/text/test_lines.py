"""Lines that several texts have are counted once, and copies of texts keep theirs."""

import pytest

from polyseme.text import lines
from polyseme.text.lines import DistinctLines, texts_to_count

SIGNATURE = "Ada Lovelace -- the engine weaves algebraic patterns"
BODIES = [
    f"Letter number {number} is about {subject}, and about much else besides.\n"
    for number, subject in enumerate(["wool and looms", "music for machines", "a journey to Turin"])
]


def test_a_line_stays_in_the_first_text_only() -> None:
    finder = DistinctLines()
    assert finder.of(BODIES[0] + SIGNATURE) == BODIES[0] + SIGNATURE
    assert finder.of(BODIES[1] + f"  {SIGNATURE}\r\n") == BODIES[1]
    assert finder.of(f"{SIGNATURE}\n" + BODIES[2]) == BODIES[2]
    assert finder.n_left_out == 2


def test_short_lines_and_lines_of_one_text_stay() -> None:
    refrain = BODIES[0] + "see also\n" + BODIES[0]
    assert list(texts_to_count([refrain, BODIES[1] + "see also\n"], once=True)) == [refrain, BODIES[1] + "see also\n"]


def test_copies_and_texts_that_mostly_quote_stay() -> None:
    quote = f"{SIGNATURE}\nI agree.\n"
    texts = [BODIES[0] + SIGNATURE, BODIES[0] + SIGNATURE, quote, SIGNATURE]
    assert list(texts_to_count(texts, once=True)) == texts
    assert list(texts_to_count(texts, once=False)) == texts


def test_lines_beyond_the_limit_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINES", 1)
    texts = [BODIES[0] + SIGNATURE, BODIES[1] + "Another ending of some letters", BODIES[2] + SIGNATURE]
    more = [BODIES[0][::-1] + "Another ending of some letters"]
    assert list(texts_to_count(texts + more, once=True)) == [*texts[:2], BODIES[2].strip(), *more]
