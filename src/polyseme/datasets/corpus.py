"""A corpus that fits in memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Corpus:
    """Documents with their titles and labels; ``skipped`` counts the files that could not be read."""

    texts: list[str]
    titles: list[str]
    labels: list[str]
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.texts)
