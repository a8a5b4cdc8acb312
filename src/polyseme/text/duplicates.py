"""Near-duplicates among texts, found while the texts are read, in linear time.

A text is represented by the set of its shingles, the sequences of SHINGLE_WORDS adjacent words in lower case. Two texts
are near-duplicates if the Jaccard similarity of their sets, |A ∩ B| / |A ∪ B|, is at least MIN_SIMILARITY; this
includes equal texts. Each text is compared with a limited number of earlier texts, those that share a band of MinHash
values with it (Broder, 1997). A pair of similarity 0.85 shares a band with probability 0.997, a pair of similarity 0.95
with probability 0.99999. The similarity of the pair is then computed from the shingles themselves, or from a random
sample of them if a text has more than 1,024 shingles. The memory is about 130 bytes for each text. The shingles are
stored in a temporary file.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Self

from polyseme.text._counting import NearDuplicates as CompiledNearDuplicates
from polyseme.text.languages import OTHER
from polyseme.utils import check_n_jobs, effective_threads

SHINGLE_WORDS = 3
MIN_SIMILARITY = 0.85


class NearDuplicates:
    """Finder of near-duplicates among texts that are added in batches, whose sizes do not change the result.

    path : temporary file of the shingles, which `close` removes; None: a file in the temporary folder of the system.
    n_jobs : number of threads; None: all cores that this process may use.
    """

    def __init__(self, path: Path | None = None, *, n_jobs: int | None = None) -> None:
        if path is None:
            number, name = tempfile.mkstemp(prefix="polyseme-")
            os.close(number)
            path = Path(name)
        self._path, self._n_threads = path, effective_threads(check_n_jobs(n_jobs))
        try:
            self._compiled = CompiledNearDuplicates(
                OTHER.characters(lowercase=True).table, SHINGLE_WORDS, MIN_SIMILARITY, os.fsencode(path)
            )
        except RuntimeError as error:
            raise OSError(f"{path}: {error}") from None

    def add(self, texts: list[str]) -> list[int | None]:
        """Add texts; return, for each, the number of the text of which it is a near-duplicate, or None.

        Texts are numbered from 0 in the order in which they are added. The returned text is not a near-duplicate of
        another text. A text without words is never a near-duplicate.
        """
        try:
            firsts: list[int] = self._compiled.add(texts, self._n_threads)
        except RuntimeError as error:
            raise OSError(f"{self._path}: {error}") from None
        return [None if first < 0 else first for first in firsts]

    def skip(self, n_texts: int) -> None:
        """Add texts whose content is not known. No other text is a near-duplicate of them."""
        self._compiled.skip(n_texts)

    @property
    def n_compared(self) -> int:
        """Number of pairs of texts whose similarity was computed."""
        compared: int = self._compiled.compared
        return compared

    def close(self) -> None:
        """Remove the temporary file."""
        self._compiled.close()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
