"""Coherence: whether the top words of a topic stand together in a reference corpus.

All figures depend on the reference and on the window, so a report names both. With P the share of the reference's
windows (or documents) that have a word, or both words, and e = 1e-12 (Röder, Both and Hinneburg 2015):

"umass"  mean over i > j of log((P(i,j) + e) / P(j)): at most about 0; words in order, most probable first
"uci"    mean over pairs of the PMI, log((P(i,j) + e) / (P(i) P(j)))
"npmi"   mean over pairs of the NPMI, PMI / -log(P(i,j) + e): from -1 (never together) over 0 (as by chance) to 1
"c_v"    mean over words of the cosine between the word's NPMIs with all the topic's words, and their sum over words

Every case has a value. A word that the reference never has says nothing: its pairs count 0 (in UMass: those that are
conditioned on it). Words that stand in all windows are together as by chance, 0. A topic of fewer than two words has
coherence 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.metrics.cooccurrence import (
    Cooccurrence,
    TokenSequences,
    cooccurrence_in_documents,
    cooccurrence_in_windows,
)

WINDOWS = {"umass": None, "uci": 10, "npmi": 10, "c_v": 110}
"""tokens in a window, as usual for each measure; None for whole documents"""

_EPSILON = 1e-12


@dataclass(frozen=True)
class CoherenceReport:
    """The coherence of topics, and what it rests on."""

    measure: str
    topics: Floats
    """of each topic"""
    mean: float
    reference: str
    """"documents" or "windows\""""
    window: int | None
    """tokens in a window; None for whole documents"""
    n_windows: int
    """of the reference"""
    absent_words: int
    """top words that the reference never has, each topic's counted"""


def coherence(
    topic_words: Array, reference: Any, measure: str = "npmi", *, window: int | None = None
) -> CoherenceReport:
    """The coherence of each topic's top words (topics x n word numbers, most probable first: `top_words`).

    reference : counts (documents x words; whole documents are the windows), or TokenSequences, with windows of
        `window` tokens (default: 10 for uci and npmi, 110 for c_v, whole documents for umass).
    """
    if measure not in WINDOWS:
        raise InputError(f"measure must be one of {', '.join(WINDOWS)}, got {measure!r}.")
    if not isinstance(reference, TokenSequences):
        if window is not None:
            raise InputError("Counts have no order, so no window: give TokenSequences, or leave window out.")
        return coherence_of(cooccurrence_in_documents(topic_words, reference), measure)
    window = WINDOWS[measure] if window is None else window
    if window is not None:
        return coherence_of(cooccurrence_in_windows(topic_words, reference, window), measure)
    longest = int(np.diff(reference.indptr).max(initial=1))
    whole = cooccurrence_in_windows(topic_words, reference, longest)
    return coherence_of(Cooccurrence(whole.together, whole.n_windows, "documents", None), measure)


def coherence_of(counted: Cooccurrence, measure: str = "npmi") -> CoherenceReport:
    """The coherence of topics whose words have been counted: several measures of one counting."""
    if measure not in WINDOWS:
        raise InputError(f"measure must be one of {', '.join(WINDOWS)}, got {measure!r}.")
    n_topics, n_words = counted.together.shape[:2]
    P = counted.together / max(counted.n_windows, 1)
    p = np.einsum("kii->ki", P)
    if n_words < 2:
        values = np.zeros(n_topics)
    elif measure == "c_v":
        values = _indirect_cosine(_npmi(P, p))
    else:
        values = {"umass": _log_conditional, "uci": _pmi, "npmi": _npmi}[measure](P, p)
        below = np.tril_indices(n_words, -1)
        values = values[:, below[0], below[1]].mean(axis=1)
    mean = float(values.mean()) if n_topics else 0.0
    absent = int(np.count_nonzero(p == 0))
    return CoherenceReport(measure, values, mean, counted.reference, counted.window, counted.n_windows, absent)


def _log_conditional(P: Floats, p: Floats) -> Floats:
    condition = np.broadcast_to(p[:, np.newaxis, :], P.shape)
    ratio = np.divide(P + _EPSILON, condition, out=np.ones_like(P), where=condition > 0)
    return np.asarray(np.log(ratio))


def _pmi(P: Floats, p: Floats) -> Floats:
    apart = p[:, :, np.newaxis] * p[:, np.newaxis, :]
    return np.asarray(np.log(np.divide(P + _EPSILON, apart, out=np.ones_like(P), where=apart > 0)))


def _npmi(P: Floats, p: Floats) -> Floats:
    least = -np.log(P + _EPSILON)
    return np.divide(_pmi(P, p), least, out=np.zeros_like(P), where=P < 1)


def _indirect_cosine(npmi: Floats) -> Floats:
    whole = npmi.sum(axis=1)
    lengths = np.linalg.norm(npmi, axis=2) * np.linalg.norm(whole, axis=1)[:, np.newaxis]
    products = np.einsum("kij,kj->ki", npmi, whole)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0).mean(axis=1)
