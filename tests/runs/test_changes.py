"""Edits: bans hold everywhere."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import polyseme

WORDS = {
    "hard drive": ["disk", "controller", "monitor", "keyboard", "printer", "cable", "screen", "cartridge"],
    "Prime Minister": ["election", "vote", "party", "parliament", "senate", "law", "budget", "campaign"],
    "San Francisco": ["garden", "tree", "flower", "soil", "bridge", "water", "plant", "leaf"],
    "rock music": ["guitar", "drum", "bass", "song", "band", "stage", "concert", "melody"],
}
"""Words of subjects by their phrases."""


def text_of(phrase: str, number: int) -> str:
    a, b, c, d = np.random.default_rng(number).choice(WORDS[phrase], 4)
    return f"The {a} {phrase} {b}. A {c} {phrase} and the {d}."


TEXTS = [text_of(phrase, number) for number in range(60) for phrase in WORDS]


# bans


def shown(run: polyseme.Run) -> str:
    """Return all names and words of all levels."""
    levels = [run.level(n_topics) for n_topics in run.levels]
    lists = [part for level in levels for part in (*level.topic_titles, *map(" ".join, level.topic_words(50)))]
    return " ".join(lists).lower()


def states(run: polyseme.Run, ban: list[str]) -> Iterator[tuple[str, polyseme.Run]]:
    """Yield the run after a ban and after what can follow it."""
    yield "ban", run.edit(ban=ban)
    yield "update", polyseme.open_run(run.path).update(["A San Francisco hard drive of the garden"])
    yield "update with a refit", polyseme.open_run(run.path).update(["A hard drive in San Francisco"], refit=True)
    yield "refit", polyseme.open_run(run.path).edit(refit=True)
    yield "update after it", polyseme.open_run(run.path).update(["San Francisco has the hard drive"])
    yield "refit after it", polyseme.open_run(run.path).update(["The hard drive of San Francisco"], refit=True)


@pytest.mark.parametrize("options", [{}, {"phrases": True}, {"model": "lda", "max_iter": 20}])
def test_a_banned_word_is_in_no_name_phrase_and_level(options: dict[str, object], tmp_path: Path) -> None:
    run = polyseme.fit(TEXTS, 2, output=tmp_path / "run", max_df=1.0, page=False, **options)
    assert "francisco" in shown(run)
    assert "drive" in shown(run)
    for state, banned in states(run, ["Francisco", "drive"]):
        assert "francisco" not in shown(banned), state
        assert "drive" not in shown(banned), state
