"""Lines that several texts have, such as signatures, disclaimers, fields of forms and quoted passages.

The words of such a line occur together in many texts, so models find topics of them that describe no subject.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MIN_LENGTH = 20
"""Characters of the shortest line that is compared with others."""
MAX_SHARE = 0.5
"""A text keeps all its lines if a larger share of it is in earlier texts: it is a copy, or quotes them."""
MAX_LINES = 1 << 22
"""Number of different lines that are remembered, the first ones, at about 70 bytes each."""


class DistinctLines:
    """Filter of texts, given one after the other, that leaves out the lines which an earlier text has, too."""

    def __init__(self) -> None:
        self._seen = set[int]()
        self.n_lines = self.n_left_out = 0
        """Numbers of lines, and of those that were left out."""

    def of(self, text: str) -> str:
        """Return a text without the lines of earlier texts."""
        lines = text.split("\n")
        self.n_lines += len(lines)
        if len(lines) == 1:
            return text
        keys = [hash(line) if len(line) >= MIN_LENGTH else None for line in map(str.strip, lines)]
        new = [line for line, key in zip(lines, keys, strict=True) if key not in self._seen]
        if len(self._seen) < MAX_LINES:
            self._seen.update(key for key in keys if key is not None)
        kept = "\n".join(new)
        if len(kept) < (1 - MAX_SHARE) * len(text):
            return text
        self.n_left_out += len(lines) - len(new)
        return kept


def texts_to_count(texts: Iterable[str], *, once: bool) -> Iterator[str]:
    """Return texts, with `once` without the lines of earlier ones."""
    return map(DistinctLines().of, texts) if once else iter(texts)
