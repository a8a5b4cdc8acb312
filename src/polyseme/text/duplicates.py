"""Near-duplicates among texts, found while the texts are read, in linear time.

A text is the set of its shingles, the sequences of SHINGLE_WORDS adjacent words in lower case. Two texts are
near-duplicates if the Jaccard similarity of their sets, |A ∩ B| / |A ∪ B|, is at least MIN_SIMILARITY; equal texts are
a case of it. Each text is compared with a limited number of texts before it, those that share a band of MinHash values
with it (Broder, 1997). Pairs of similarity 0.85 share one with probability 0.997, those of 0.95 with 0.99999. The
similarity of the pair is then computed from the shingles themselves; of a text with more than 1,024 shingles a random
sample of these is used. The memory is about 130 bytes for each text. The shingles are in a temporary file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from polyseme.errors import InputError
from polyseme.text._counting import NearDuplicates as CompiledNearDuplicates
from polyseme.text.languages import OTHER

SHINGLE_WORDS = 3
MIN_SIMILARITY = 0.85


class NearDuplicates:
    """Finder of near-duplicates among texts that are added one by one.

    path : temporary file of the shingles, which `close` removes; None: one in the folder of the system for these.
    """

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            number, name = tempfile.mkstemp(prefix="polyseme-")
            os.close(number)
            path = Path(name)
        self._path = path
        try:
            self._compiled = CompiledNearDuplicates(
                OTHER.characters(lowercase=True).table, SHINGLE_WORDS, MIN_SIMILARITY, str(path)
            )
        except RuntimeError as error:
            raise OSError(f"{path}: {error}") from None

    def add(self, text: str) -> int | None:
        """Add a text; return the number of the text that it is a near-duplicate of, or None.

        Texts are numbered from 0 in the order in which they are added. The text that is returned is no near-duplicate
        of another one. A text without words is no near-duplicate.
        """
        try:
            found: int = self._compiled.add(text)
        except RuntimeError as error:
            raise OSError(f"{self._path}: {error}") from None
        return None if found < 0 else found

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


def n_distinct(duplicates: Mapping[str, Any]) -> int:
    """Return the number of documents that are no near-duplicates of others."""
    return int(duplicates["documents"] - duplicates["found"])


def check_distinct(duplicates: Mapping[str, Any]) -> None:
    """Raise InputError if all documents are near-duplicates of the first one."""
    if duplicates["documents"] > 1 and n_distinct(duplicates) == 1:
        raise InputError(
            f"All {duplicates['documents']:,} documents are near-duplicates of the first one, so there is nothing to "
            "tell apart: give other documents."
        )


def duplicates_note(duplicates: Mapping[str, Any]) -> str:
    """Return a sentence about near-duplicates."""
    found, n_documents = duplicates["found"], duplicates["documents"]
    of = f"{found:,} of {n_documents:,} documents {'is a near-duplicate' if found == 1 else 'are near-duplicates'}"
    if duplicates["mode"] == "drop":
        return f"{of} of others: left out (duplicates=keep counts them)."
    if n_distinct(duplicates) == 1:
        return f"All {n_documents:,} documents are near-duplicates of the first one: topics cannot tell them apart."
    return f"{of} of others: shown once in lists, kept in the fit (duplicates=drop leaves them out)."
