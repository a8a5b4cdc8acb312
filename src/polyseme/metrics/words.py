"""Words that speak for a topic or a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, checked_sparse
from polyseme.metrics.labels import label_numbers


def top_words(scores: Array, n_words: int = 10) -> Array:
    """The columns of the n_words largest numbers in each row, largest first; of equal ones the first.

    `scores` is topics x words (such as `components_`, or what `frex` gives); returns topics x n_words, fewer if there
    are fewer words.
    """
    if n_words < 1:
        raise InputError(f"n_words must be at least 1, got {n_words}.")
    return np.argsort(-np.asarray(scores), axis=1, kind="stable")[:, :n_words]


def words_apart(counts: Any, labels: Any, *, prior: float = 0.01) -> tuple[list[Any], Floats]:
    """How much each word sets each label apart from the other documents: the labels, and labels x words scores.

    The score is the log of the ratio between the word's odds in the label's documents and its odds in all the others,
    divided by its standard error (Monroe, Colaresi and Quinn 2008), so that neither rare words nor common ones crowd
    the top: above 2 a word is unlikely to be there by chance. With y the counts of a word, n the tokens, and prior
    counts a_w = prior * (words seen) * P(w), which sum to a:
    log[(y + a_w) / (n + a - y - a_w)], inside minus outside, over sqrt(1 / (y_in + a_w) + 1 / (y_out + a_w)).

    Documents without a label (None, NaN or "") are left out. Words that never occur, and a label that is the only
    one, score zero.
    """
    if not prior > 0:
        raise InputError(f"prior must be above 0, got {prior}.")
    X = sp.csr_array(checked_sparse(counts, "counts"))
    names, numbers = label_numbers(labels, X.shape[0])
    known = np.flatnonzero(numbers >= 0)
    membership = sp.csr_array(
        (np.ones(known.size), (numbers[known], known)), shape=(len(names), X.shape[0]), dtype=np.float64
    )
    inside = np.asarray((membership @ X.astype(np.float64)).toarray())
    totals = inside.sum(axis=0)
    if len(names) < 2 or totals.sum() == 0:
        return names, np.zeros(inside.shape)
    pseudo = prior * np.count_nonzero(totals) * totals / totals.sum()
    outside = totals - inside

    def log_odds(y: Floats) -> Floats:
        whole = (y + pseudo).sum(axis=1, keepdims=True)
        rest = np.maximum(whole - y - pseudo, np.finfo(float).tiny)
        return np.asarray(np.log(np.where(totals > 0, (y + pseudo) / rest, 1.0)))

    seen = np.where(totals > 0, pseudo, 1.0)
    error = np.sqrt(1 / (inside + seen) + 1 / (outside + seen))
    return names, np.asarray((log_odds(inside) - log_odds(outside)) / error)
