"""Counts as a dense array, swept by BLAS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.kernels.operands import NUMBERS_AT_ONCE, Array, Floats, Sums, check_operands, sums_in, weighted_sum
from polyseme.kernels.sparse import SparseCounts
from polyseme.kernels.threads import side_by_side


@dataclass(frozen=True)
class DenseCounts:
    """The same counts as a dense array: the same sums by BLAS, in blocks of rows fixed by the shape."""

    values: Array

    @property
    def n_docs(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_words(self) -> int:
        return int(self.values.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def totals(self) -> Floats:
        return np.asarray(self.values.sum(axis=1, dtype=np.float64))

    def release(self) -> None:
        """Nothing is kept."""

    def sparse(self) -> SparseCounts:
        matrix = sp.csr_array(self.values)
        return SparseCounts(
            matrix.indptr.astype(matrix.indices.dtype), matrix.indices, matrix.data, self.n_docs, self.n_words
        )

    def matrix(self) -> Any:
        return self.values

    def word_totals(self, weights: Floats | None) -> Floats:
        if weights is None:
            return np.asarray(self.values.sum(axis=0, dtype=np.float64))
        return weighted_sum(weights, self.values)

    def sweep(
        self,
        A: Array,
        B: Array,
        *,
        n_threads: int,
        weights: Floats | None = None,
        rows: bool = True,
        words: bool = True,
        logs: bool = True,
        memory: Floats | None = None,
    ) -> Sums:
        check_operands(self, A, B, weights)
        row_sums = np.empty_like(A) if rows else None
        word_sums = sums_in(memory, B) if words else None
        if word_sums is not None:
            word_sums.fill(0)
        log_sums = np.empty(self.n_docs) if logs else None
        step = max(1, NUMBERS_AT_ONCE // max(1, self.n_words))
        blocks = [slice(start, min(start + step, self.n_docs)) for start in range(0, self.n_docs, step)]

        def one_block(block: slice) -> Array | None:
            x, a = self.values[block], A[block]
            q = a @ B.T
            present = x > 0
            if log_sums is not None:
                log_q = np.log(q, out=np.zeros(q.shape), where=present & (q > 0))
                log_q[present & (q <= 0)] = -np.inf
                log_sums[block] = np.einsum("dw,dw->d", x, log_q, dtype=np.float64)
            if row_sums is None and word_sums is None:
                return None
            r = np.divide(x, q, out=np.zeros_like(q), where=present & (q > _unexplained(q.dtype)))
            if row_sums is not None:
                row_sums[block] = r @ B
            if word_sums is None:
                return None
            if weights is not None:
                a = a * weights[block, np.newaxis].astype(a.dtype)
            return np.asarray(r.T @ a)

        for block_sums in side_by_side(one_block, blocks, n_threads):
            if word_sums is not None and block_sums is not None:
                word_sums += block_sums
        return Sums(row_sums, word_sums, log_sums)


def _unexplained(dtype: np.dtype[Any]) -> float:
    """A word whose q is at most this is not explained by any topic: it adds nothing to the sums."""
    return 1e-24 if dtype == np.float32 else 1e-280
