"""Lines that several documents have, counted once: in memory, from shards, in updates and in names."""

from pathlib import Path

import numpy as np
import pytest

import polyseme
from cli_runner import here

SIGNATURE = "Charles Babbage, difference engines and analytical engines"
SUBJECTS = ("captain sailed ships over stormy oceans", "baker mixed flour yeast and salt")
SETTINGS = {"language": "english", "random_state": 0, "levels": "none"}


def letters(n: int = 24) -> list[str]:
    """Return letters with different texts, of which every third has a signature."""
    rng = np.random.default_rng(0)
    texts = []
    for number in range(n):
        words = SUBJECTS[number % 2].split()
        body = " ".join(words[place] for place in rng.integers(len(words), size=20))
        texts.append(
            f"{body}\nletter{number} was written by hand {number} times" + f"\n{SIGNATURE}" * (number % 3 == 0)
        )
    return texts


def count_of(run: polyseme.Run, word: str) -> int:
    column = list(run.vocabulary).index(word)
    return int(sum(np.asarray(part[:, [column]].sum()) for part in run.store.shards))


@pytest.mark.parametrize("shards", [False, True])
def test_words_of_repeated_lines_are_counted_once(shards: bool) -> None:
    texts = letters()
    run = polyseme.fit(texts, 2, shards=shards, min_df=1, repeated_lines="once", **SETTINGS)
    assert count_of(run, "engines") == 2
    assert run.texts == texts
    assert not any("Babbage" in topic.name for topic in run.topics())
    everywhere = polyseme.fit(texts, 2, shards=shards, min_df=1, **SETTINGS)
    assert count_of(everywhere, "engines") == 2 * 8


@pytest.mark.parametrize(("repeated_lines", "count"), [("once", 2), ("all", 2 * 9)])
def test_an_update_counts_as_the_fit_does(repeated_lines: str, count: int) -> None:
    run = polyseme.fit(letters(), 2, min_df=1, repeated_lines=repeated_lines, **SETTINGS)
    body = "a new captain and new ships left the harbor at night, with salt and flour on board"
    updated = run.update([f"{body}\n{SIGNATURE}"])
    assert updated.info.documents == 25
    assert count_of(updated, "engines") == count


def test_the_command_says_how_many_lines_it_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    folder.mkdir()
    for number, text in enumerate(letters()):
        (folder / f"{number:02}.txt").write_text(text)
    options = ["fit", str(folder), "-k", "2", "--no-page", "-o"]
    repeated = "7 of 56 lines repeat those of earlier documents"
    once = here(*options, str(tmp_path / "run"), "--repeated-lines", "once").stderr
    assert f"{repeated}: not counted again." in " ".join(once.split())
    shown = here(*options, str(tmp_path / "all")).stderr
    assert f"{repeated}, such as signatures: counted (--repeated-lines once" in " ".join(shown.split())
