"""Quotes: the sentence of a document that a topic explains best.

A sentence s of document d with n words, known or not, has the score

    sum_{w in s} P(z|d,w) log r_zw / (n + SHRINKAGE),

where each word counts once, and r_zw is that of the rank of typical documents (`polyseme.runs.typical`). SHRINKAGE
keeps fragments of three words from winning, the division by n long sentences. A sentence that repeats the title is left
out, and so is one that another document of the topic is quoted with. Of a sentence that is longer than MAX_LENGTH the
best part is quoted, and so is that of a text without sentences, such as a list. Tables and encoded
data are not quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import FittedTopics, TrainingDocuments
from polyseme.runs.typical import DocumentScorer
from polyseme.text.sentences import count_words, is_readable, split_parts, split_sentences

MAX_LENGTH = 280
"""Characters of a quote."""
SHRINKAGE = 10.0
"""Words without gain that are added to each sentence."""
_MAX_CHARACTERS = 100_000
"""Characters at the beginning of a text of which a quote is taken."""
_TITLE_LENGTH = 2.0
"""A sentence that contains the title is a title as well, unless it is longer than the title by this factor."""


@dataclass(frozen=True)
class TypicalDocument:
    """A typical document of a topic."""

    row: int
    """Its row in the counts."""
    id: str
    title: str
    """Its title, or its id if it has no title."""
    share: float
    """P(z|d)."""
    quote: str
    """The sentence that the topic explains best, on one line; "" if the text has none, or only repeats the title."""


def find_quotes(
    fitted: FittedTopics,
    documents: TrainingDocuments,
    rows: Sequence[Sequence[int]],
    texts: Callable[[int], str],
    titles: Sequence[str],
    transform: Callable[[list[str]], Any],
    hidden: Sequence[int] = (),
) -> list[list[str]]:
    """Return a quote of each of some documents of each topic.

    rows : for each topic, its documents. texts : returns the text of a document. transform : counts words of texts.
    hidden : columns of words that do not count.
    """
    distinct = sorted(set(chain.from_iterable(rows)))
    if not distinct:
        return [[] for _ in rows]
    passages = {row: _passages(texts(row)[:_MAX_CHARACTERS], titles[row]) for row in distinct}
    every = list(chain.from_iterable(passages.values()))
    counts = sp.csr_array(transform(every)).astype(np.float64)
    counts.data = np.where(np.isin(counts.indices, list(hidden)), 0.0, 1.0)
    counts.eliminate_zeros()
    sizes = [len(found) for found in passages.values()]
    scorer = DocumentScorer(fitted, documents.take(np.repeat(distinct, sizes)))
    n_words = np.array([count_words(passage) for passage in every])
    scores = scorer.scores(counts, slice(0, len(every))) * (np.diff(counts.indptr) / (n_words + SHRINKAGE))[:, None]
    first = dict(zip(distinct, np.cumsum([0, *sizes]).tolist(), strict=False))

    quotes: list[list[str]] = [[] for _ in rows]
    for topic, of_topic in enumerate(rows):
        for row in of_topic:
            found = passages[row]
            ranked = [found[i] for i in np.argsort(-scores[first[row] :, topic][: len(found)], kind="stable")]
            quotes[topic].append(next((passage for passage in ranked if passage not in quotes[topic]), ranked[0]))
    return quotes


def _passages(text: str, title: str) -> list[str]:
    """Return the parts of a text that may be quoted; one "" if it has nothing to read or only repeats the title."""
    letters = _letters(title)
    found = [sentence for sentence in split_sentences(text) if not _repeats(sentence.text, letters)]
    passages = [sentence.text for sentence in found if sentence.complete]
    passages = passages or [" ".join(sentence.text for sentence in found)]
    return [part for passage in passages for part in split_parts(passage, MAX_LENGTH) if is_readable(part)] or [""]


def _repeats(sentence: str, title: str) -> bool:
    """Return whether a sentence is a title, given by its letters."""
    letters = _letters(sentence)
    return letters in title or (title in letters and len(letters) < _TITLE_LENGTH * len(title))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
