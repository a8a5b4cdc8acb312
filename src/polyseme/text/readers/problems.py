"""What a reader could not read: counted by kind, and named, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

EXAMPLES_KEPT = 10
"""Problems of one kind that are kept by name; the others are counted."""

LONGEST_DESCRIPTION = 300

REMARKS = frozenset({"guessed encoding", "undecodable bytes"})
"""Kinds of problems of files that were read all the same."""


class Problem(NamedTuple):
    """One thing that could not be read."""

    kind: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Problems:
    """All problems of one pass over the input: ``counts`` by kind, and the first few of each kind by name.

    ``len`` is the number of all problems; iterating gives those that were kept by name.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._kept: dict[str, list[Problem]] = {}

    def add(self, kind: str, where: str, what: str, times: int = 1) -> None:
        self.counts[kind] += times
        kept = self._kept.setdefault(kind, [])
        if len(kept) < EXAMPLES_KEPT:
            kept.append(Problem(kind, where, what[:LONGEST_DESCRIPTION]))

    @classmethod
    def of(cls, counts: Mapping[str, int], kept: Iterable[Problem]) -> Problems:
        """From what `counts` and iterating give."""
        problems = cls()
        for problem in kept:
            problems.add(*problem, times=0)
        problems.counts = Counter(counts)
        return problems

    def merge(self, other: Problems) -> None:
        """Adds the problems of another reader."""
        for problem in other:
            self.add(*problem, times=0)
        self.counts.update(other.counts)

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[Problem]:
        return (problem for kept in self._kept.values() for problem in kept)

    def __str__(self) -> str:
        lines = []
        for kind, count in self.counts.items():
            kept = self._kept.get(kind, [])
            more = " ..." if count > len(kept) else ""
            lines.append(f"{kind} ({count}): " + "; ".join(map(str, kept)) + more)
        return "\n".join(lines) or "no problems"

    def __repr__(self) -> str:
        return f"<Problems {dict(self.counts)}>"
