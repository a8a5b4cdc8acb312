"""Near-duplicates among texts, found while the texts are read, in linear time.

A text is the set of its shingles, the sequences of SHINGLE_WORDS adjacent words in lower case. Two texts are
near-duplicates if the Jaccard similarity of their sets, |A ∩ B| / |A ∪ B|, is at least MIN_SIMILARITY; equal texts are
a case of it. Each text is compared with a limited number of texts before it, those that share a band of MinHash values
with it (Broder, 1997). Pairs of similarity 0.85 share one with probability 0.997, those of 0.95 with 0.99999. The
similarity of the pair is then computed from the shingles themselves; of a text with more than 1,024 shingles a random
sample of these is used. The memory is about 130 bytes for each text. The shingles are in a temporary file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Self

from polyseme.text._counting import NearDuplicates as CompiledNearDuplicates
from polyseme.text.languages import OTHER

SHINGLE_WORDS = 3
MIN_SIMILARITY = 0.85
_FILE = "shingles"


class NearDuplicates:
    """Finder of near-duplicates among texts that are added one by one.

    folder : where a temporary folder is made for the shingles; None: the default of the system.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=".duplicates-", dir=folder, ignore_cleanup_errors=True)
        table = OTHER.characters(lowercase=True).table
        path = str(Path(self._folder.name) / _FILE)
        self._compiled = CompiledNearDuplicates(table, SHINGLE_WORDS, MIN_SIMILARITY, path)

    def add(self, text: str) -> int | None:
        """Add a text; return the number of the text that it is a near-duplicate of, or None.

        Texts are numbered from 0 in the order in which they are added. The text that is returned is no near-duplicate
        of another one. A text without words is no near-duplicate.
        """
        try:
            found: int = self._compiled.add(text)
        except RuntimeError as error:
            raise OSError(str(error)) from None
        return None if found < 0 else found

    def skip(self, n_texts: int) -> None:
        """Add texts that are not at hand. No other text is a near-duplicate of them."""
        self._compiled.skip(n_texts)

    @property
    def n_compared(self) -> int:
        """Number of pairs of texts whose similarity was computed."""
        compared: int = self._compiled.compared
        return compared

    def close(self) -> None:
        """Remove the temporary file."""
        self._compiled.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
