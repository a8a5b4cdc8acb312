"""Random samples in one pass, and chosen categories with noise around them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from polyseme.text.readers.documents import Document


class Reservoir:
    """A uniform sample of ``size`` of the documents offered, by Vitter's Algorithm R; None keeps all of them."""

    def __init__(self, size: int | None, seed: str) -> None:
        self._size = size
        self._random = random.Random(seed)
        self._offered = 0
        self._kept: list[tuple[int, Document]] = []

    def offer(self, order: int, document: Document) -> bool:
        """Whether no document had to go, neither this one nor one that it replaces."""
        self._offered += 1
        if self._size is None or len(self._kept) < self._size:
            self._kept.append((order, document))
            return True
        place = self._random.randrange(self._offered)
        if place < self._size:
            self._kept[place] = (order, document)
        return False

    def __iter__(self) -> Iterator[tuple[int, Document]]:
        return iter(self._kept)


def sample(
    documents: Iterable[Document],
    size: int | None,
    categories: Sequence[str] | None,
    noise: int,
    seed: int,
    on_drop: Callable[[str], None],
) -> Iterator[Document]:
    """``size`` random documents; with ``categories``, that many of these, and ``noise`` of the others.

    The result does not depend on the file's chunks or on time, and comes in the order of the input.
    """
    if size is None and categories is None:
        yield from documents
        return
    belongs = _matcher(categories)
    chosen, others = Reservoir(size, f"chosen {seed}"), Reservoir(noise, f"noise {seed}")
    for order, document in enumerate(documents):
        if belongs(document):
            if not chosen.offer(order, document):
                on_drop("not in the sample")
        elif not others.offer(order, document):
            on_drop("not of the categories")
    for _, document in sorted([*chosen, *others]):
        yield document


def _matcher(categories: Sequence[str] | None) -> Callable[[Document], bool]:
    """Whether one of a document's labels holds one of the names as whole words, in any case."""
    if categories is None:
        return lambda document: True
    names = "|".join(re.escape(name) for name in categories)
    pattern = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE)
    return lambda document: any(map(pattern.search, document.labels))
