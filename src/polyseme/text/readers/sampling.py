"""Random samples of documents, and documents of some categories."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from polyseme.errors import InputError
from polyseme.options import RANDOM_STATE, SAMPLING, checked, named
from polyseme.text.readers.inputs import Document

Choose = Callable[[Iterator[Document], Callable[[str], None]], Iterator[Document]]
"""Function from all documents to the chosen ones. It calls its second argument with the reason for each drop."""


def choice(sample: int | None, categories: Sequence[str] | None, noise: int, random_state: Any) -> Choose:
    """Return the function that draws the sample. Raises InputError for options that contradict each other."""
    given = {"sample": sample, "noise": noise, "random_state": random_state}
    seed = checked(given, (*SAMPLING, RANDOM_STATE))["random_state"]
    if noise and categories is None:
        raise InputError(
            f"{named('noise')} is the number of documents of other categories: name categories with "
            f"{named('categories')}."
        )
    names = [categories] if isinstance(categories, str) else categories
    if names is not None and not (names and all(name.strip() for name in names)):
        raise InputError(f"{named('categories')} names no category: name one or more, or leave it out.")

    def choose(documents: Iterator[Document], on_drop: Callable[[str], None]) -> Iterator[Document]:
        return _sample_documents(documents, sample, names, noise, seed, on_drop)

    return choose


def _sample_documents(
    documents: Iterable[Document],
    size: int | None,
    categories: Sequence[str] | None,
    noise: int,
    seed: int,
    on_drop: Callable[[str], None],
) -> Iterator[Document]:
    """Yield `size` random documents of the categories, and `noise` random other documents, in the order of the input.

    `categories=None` means all documents. `on_drop` is called with the reason for each document that is not chosen.
    """
    if size is None and categories is None:
        yield from documents
        return
    belongs = _category_filter(categories)
    chosen, others = _Reservoir(size, f"chosen {seed}"), _Reservoir(noise, f"noise {seed}")
    for order, document in enumerate(documents):
        if belongs(document):
            if not chosen.add(order, document):
                on_drop("not in the sample")
        elif not others.add(order, document):
            on_drop("not of the categories")
    for _, document in sorted([*chosen, *others]):
        yield document


class _Reservoir:
    """A uniform sample of `size` of the added documents, by Vitter's Algorithm R. None stores all of them."""

    def __init__(self, size: int | None, seed: str) -> None:
        self._size = size
        self._random = random.Random(seed)
        self._n_added = 0
        self._sample: list[tuple[int, Document]] = []

    def add(self, order: int, document: Document) -> bool:
        """Add a document, and return whether the sample grew. If not, this document or an older one was dropped."""
        self._n_added += 1
        if self._size is None or len(self._sample) < self._size:
            self._sample.append((order, document))
            return True
        place = self._random.randrange(self._n_added)
        if place < self._size:
            self._sample[place] = (order, document)
        return False

    def __iter__(self) -> Iterator[tuple[int, Document]]:
        return iter(self._sample)


def _category_filter(categories: Sequence[str] | None) -> Callable[[Document], bool]:
    """Return whether a label of a document contains one of the names as whole words, ignoring case."""
    if categories is None:
        return lambda document: True
    names = "|".join(re.escape(name) for name in categories)
    pattern = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE)
    return lambda document: any(map(pattern.search, document.labels))
