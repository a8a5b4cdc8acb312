"""`RunCorpus`: the documents of a run, or a sample of them, with their counts and texts.

Values are read when they are first used, and are the same for the topics of all levels. Counts and texts are read piece
by piece where that is possible. Methods that need all of them at once work up to MAX_NUMBERS_IN_MEMORY counts and
weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.data.disk import DiskCorpus
from polyseme.errors import InputError, ShardError
from polyseme.kernels import Array
from polyseme.runs.documents import Labels, unique_ids
from polyseme.runs.junk import SAMPLE, TokenSample
from polyseme.runs.names import MAX_DOCUMENTS, RunPhrases
from polyseme.runs.store import RunStore
from polyseme.text.lines import texts_to_count
from polyseme.utils import sample_rows

MAX_NUMBERS_IN_MEMORY = 1 << 27
"""Largest number of non-zero counts and topic weights that are loaded into memory at once."""
MAX_LABELS = 1000
"""Number of labels of a large run; less frequent labels are ignored."""


class RunCorpus:
    """Documents of an open run.

    rows : the documents of a sample, in increasing order; None: all documents.
    """

    def __init__(self, store: RunStore, rows: Array | None = None) -> None:
        self.store, self.rows = store, rows

    def sample(self, size: int, seed: int = 0) -> RunCorpus:
        """Return some of the documents, drawn at random."""
        rows = sample_rows(self.n_documents, size, seed)
        return RunCorpus(self.store, rows if self.rows is None else self.rows[rows])

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.store.shards.shape[0] if self.rows is None else len(self.rows)

    # counts

    @cached_property
    def counts(self) -> Any:
        """Counts of the words (documents x words, CSR)."""
        self.check_fits_in_memory(self.store.info.model.n_topics)
        return take_counts(self.store.shards, self.rows)

    @property
    def is_loaded(self) -> bool:
        """Whether the counts are in memory."""
        return "counts" in vars(self)

    def count_parts(self) -> Iterator[Any]:
        """Iterate over the counts in parts (CSR), in the order of the documents."""
        return iter([self.counts] if self.is_loaded or self.rows is not None else self.store.shards)

    def fits_in_memory(self, n_topics: int) -> bool:
        """Return whether the counts and the weights of `n_topics` topics are few enough to load all of them."""
        if self.rows is not None or self.is_loaded:
            return True
        nonzeros = sum(entry.nonzeros for entry in self.store.shards.manifest.shards)
        return nonzeros + self.n_documents * n_topics <= MAX_NUMBERS_IN_MEMORY

    def check_fits_in_memory(self, n_topics: int) -> None:
        """Raise InputError unless `fits_in_memory`."""
        if not self.fits_in_memory(n_topics):
            raise InputError(
                f"{self.store.path} has {self.n_documents:,} documents, too many to load into memory at once: use a "
                "sample (polyseme fit --sample, or Run.sample)."
            )

    # metadata

    def column(self, name: str) -> list[Any]:
        """Return the values of a column of the metadata, one for each document."""
        values = self.store.documents.column(name)
        return list(values) if self.rows is None else values.take(self.rows)

    @cached_property
    def ids(self) -> list[str]:
        """Id of each document; if ids repeat, each id follows the name of its file."""
        return unique_ids(self.column("id"), self.column("source"))

    @cached_property
    def names(self) -> Sequence[str]:
        """Name of each document: its title, or its id if it has no title."""
        names = self.store.documents.names
        return names if self.rows is None else [names[row] for row in self.rows.tolist()]

    @cached_property
    def labels(self) -> list[str]:
        """Label of each document; "" if it has none."""
        return [label or "" for label in self.column("label")]

    @cached_property
    def label_numbers(self) -> Labels:
        """Labels as numbers. A large run has only its MAX_LABELS most frequent labels."""
        fits = self.fits_in_memory(self.store.info.model.n_topics)
        labels = self.store.documents.labels(None if fits else MAX_LABELS)
        return labels if self.rows is None else Labels.of(labels.names, labels.numbers[self.rows])

    @property
    def days(self) -> Array:
        """Day of each document as the ordinal of its date, 0 if it has no date."""
        days = self.store.documents.arrays["days"]
        days = days if len(days) else np.zeros(len(self.store.documents), dtype=np.int32)
        return days if self.rows is None else days[self.rows]

    @cached_property
    def groups(self) -> Array:
        """For each document, the row of the first document in its group of near-duplicates."""
        if self.rows is None:
            found = self.store.info.duplicates.found
            return self.store.documents.groups if found else np.arange(self.n_documents)
        _, first, numbers = np.unique(self.store.documents.groups[self.rows], return_index=True, return_inverse=True)
        return np.asarray(first[numbers.ravel()])

    # texts

    @cached_property
    def texts(self) -> list[str] | None:
        """Full texts, or None if the run does not store texts."""
        stored = self.store.texts
        if stored is None:
            return None
        self.check_fits_in_memory(self.store.info.model.n_topics)
        return list(stored) if self.rows is None else stored.take(self.rows)

    @property
    def text_bytes(self) -> int:
        """Size of the texts in UTF-8; 0 if the run does not store texts."""
        stored = self.store.texts
        texts = () if stored is None else stored if self.rows is None else map(stored.__getitem__, self.rows.tolist())
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)

    def sampled_texts(self, size: int) -> tuple[Array, Iterator[str]]:
        """Return the rows and the texts of documents that are drawn at random; none without texts."""
        stored = self.store.texts
        rows = sample_rows(0 if stored is None else self.n_documents, size, 0)
        places = rows if self.rows is None else self.rows[rows]
        texts = (stored[row] for row in places.tolist())
        return rows, texts_to_count(texts, once=self.store.info.repeated_lines == "once")

    @cached_property
    def phrases(self) -> RunPhrases:
        """Phrases of the texts, from which the names of topics are made; none without texts.

        They come from at most 20,000 documents, drawn at random, and only from the beginnings of long documents.
        """
        return RunPhrases.of(self.store.vectorizer, *self.sampled_texts(MAX_DOCUMENTS))

    @cached_property
    def token_sample(self) -> TokenSample:
        """Words of a sample of documents, in the order of the texts; none without texts."""
        return TokenSample.of(self.store.vectorizer, *self.sampled_texts(SAMPLE))


def take_counts(shards: DiskCorpus, rows: Array | None = None) -> Any:
    """Return the counts of some documents as integers, CSR. `rows` must be increasing; None: all documents."""
    if rows is None:
        rows = np.arange(shards.shape[0])
    parts, start = [], 0
    for part in shards:
        first, last = np.searchsorted(rows, [start, start + part.shape[0]])
        taken = sp.csr_array(part)[rows[first:last] - start]
        if taken.nnz and taken.data.max() > np.iinfo(np.int32).max:
            raise ShardError(f"{shards.folder} is damaged: a word cannot occur {taken.data.max():.3g} times.")
        parts.append(sp.csr_array((taken.data.astype(np.int32), taken.indices, taken.indptr), taken.shape))
        start += part.shape[0]
    return sp.csr_array(sp.vstack(parts, format="csr"))
