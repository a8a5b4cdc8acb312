"""Documents of a run, written while they are counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from polyseme.runs.documents import STORE, TEXTS, DocumentWriter
from polyseme.runs.info import Duplicates
from polyseme.runs.run import Run
from polyseme.text.duplicates import NearDuplicates
from polyseme.text.lines import DistinctLines, texts_to_count
from polyseme.text.readers.inputs import Document
from polyseme.text.tokens import batches

_CHARACTERS_AT_ONCE = 1 << 20
"""Characters of the documents that are compared with earlier ones at once."""
_COST_OF_A_DOCUMENT = 64


class DocumentRecorder:
    """Writer of documents while they are counted, which also finds near-duplicates.

    texts : whether the run stores the texts. drop : whether to leave out near-duplicates. once : whether lines of
    several documents are counted in the first one only. after : run whose documents come first; new documents are
    compared with its texts, if it has them.
    """

    def __init__(
        self,
        folder: Path,
        finder: NearDuplicates,
        *,
        texts: bool,
        drop: bool,
        once: bool,
        after: Run | None,
    ) -> None:
        self._finder, self._drop, self._characters = finder, drop, 0
        self._once = once
        self.lines = DistinctLines()
        """Lines of the texts; without `once`, those that it would leave out are counted here and in the fit."""
        self.n_read = self.n_duplicates = 0
        """Numbers of documents that were read, and of near-duplicates among them."""
        if after is None:
            self._writer = DocumentWriter(folder, texts=texts)
            self._texts = self._writer if texts else DocumentWriter(folder, name=TEXTS)
        else:
            after.store.files.path(f"{STORE}.blocks")  # checked completely, because all blocks are copied
            self._writer = self._texts = DocumentWriter(folder, texts=texts, after=after.store.documents)
            if texts:
                for texts_before in batches(after.store.documents.texts, str):
                    finder.add(texts_before)
                    if once:
                        deque(map(self.lines.of, texts_before), maxlen=0)
            else:
                finder.skip(after.info.documents)

    def record(self, documents: Iterable[Document], limit: int | None = None) -> Iterator[str]:
        """Record each document, then yield the text to count. Raise TooManyCharacters after `limit` characters."""
        for batch in _batches(documents):
            for document, first in zip(batch, self._finder.add([document.text for document in batch]), strict=True):
                self.n_read += 1
                self.n_duplicates += first is not None
                if first is not None and self._drop:
                    continue
                self._writer.add(document, first)
                if self._texts is not self._writer:
                    self._texts.add(document)
                self._characters += len(document.text)
                distinct = self.lines.of(document.text)
                yield distinct if self._once else document.text
            if limit is not None and self._characters > limit:
                raise TooManyCharacters

    @property
    def duplicates(self) -> Duplicates:
        """Near-duplicates among the documents that were read."""
        return Duplicates("drop" if self._drop else "keep", self.n_duplicates, self.n_read)

    def texts(self) -> Iterable[str]:
        """Return the texts to count of the documents that were recorded."""
        return texts_to_count(self._texts.written().texts, once=self._once)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        for writer in {self._writer, self._texts}:
            writer.__exit__(*error)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield the documents in lists of about a megabyte."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document.text) + _COST_OF_A_DOCUMENT
        if size >= _CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class TooManyCharacters(Exception):
    """Raised when the texts are too long to be counted in memory."""
