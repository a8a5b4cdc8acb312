"""The end of counting, as scikit-learn does it: which words are kept, and what kind of matrix comes out."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.text.tokens import Integers

_YEARS = range(1000, 2100)


def is_number(word: str) -> bool:
    """Whether a word consists of decimal digits alone and is not a year."""
    return word.isdecimal() and not (len(word) == 4 and int(word) in _YEARS)


def frequent(settings: Any, tokens: Integers, documents: Integers, n_documents: int, *, allowed: Any) -> Any:
    """A mask of the allowed words that max_df, min_df and max_features of a CountVectorizer keep.

    tokens, documents : how often each word occurs, and in how many of the n_documents.
    """
    highest = settings.max_df * (1 if isinstance(settings.max_df, Integral) else n_documents)
    lowest = settings.min_df * (1 if isinstance(settings.min_df, Integral) else n_documents)
    if not allowed.any():
        raise ValueError("empty vocabulary; the documents only contain numbers and stop words")
    if highest < lowest:
        raise ValueError("max_df corresponds to < documents than min_df")
    kept = allowed & (documents <= highest) & (documents >= lowest)
    if settings.max_features is not None and kept.sum() > settings.max_features:
        totals = documents if settings.binary else tokens
        totals = totals.astype(sp.csr_array((1, 1), dtype=settings.dtype).sum(axis=0).dtype)
        top = np.flatnonzero(kept)[(-totals[kept]).argsort()[: settings.max_features]]
        kept = np.zeros(len(kept), dtype=bool)
        kept[top] = True
    if not kept.any():
        raise ValueError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
    return kept


def with_sorted_rows(counts: Any) -> Any:
    """The same CSR matrix; each row's columns in order."""
    counts.sort_indices()
    return counts


def as_scikit_learn_returns_it(counts: sp.csr_array) -> Any:
    """A sparse array or a sparse matrix, as the installed scikit-learn is configured."""
    try:
        from sklearn.utils._sparse import _align_api_if_sparse
    except ImportError:
        return sp.csr_matrix(counts)
    return _align_api_if_sparse(counts)
