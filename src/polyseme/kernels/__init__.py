"""The Python face of the compiled kernels, and the dense form by BLAS.

One operation serves the whole family. With operands A (documents x K), B (words x K, word-major) and counts x,
for every non-zero: q = A_d . B_w and r = x / q; then

    row_sums_d  = sum_w r B_w                (documents x K)
    word_sums_w = sum_d weight_d r A_d       (words x K, float64)
    logs_d      = sum_w x log q              (documents, float64)

Multiplying the sums by A and by B gives the expected counts of EM. Operands are padded with zero columns to a
width the kernels know (`padded_width`); sums come back just as wide.
"""

from polyseme.kernels.counts import (
    Array,
    Counts,
    DenseCounts,
    Floats,
    SparseCounts,
    Sums,
    add_rows,
    aligned_empty,
    check_operands,
    check_topics,
    checked_sparse,
    counts_fault,
    em_rows,
    em_words,
    inner,
    padded,
    padded_width,
    take_rows,
    weighted_sum,
    without_negligible,
)
from polyseme.kernels.threads import openmp_threads, side_by_side, single_threaded_blas

__all__ = [
    "Array",
    "Counts",
    "DenseCounts",
    "Floats",
    "SparseCounts",
    "Sums",
    "add_rows",
    "aligned_empty",
    "check_operands",
    "check_topics",
    "checked_sparse",
    "counts_fault",
    "em_rows",
    "em_words",
    "inner",
    "openmp_threads",
    "padded",
    "padded_width",
    "side_by_side",
    "single_threaded_blas",
    "take_rows",
    "weighted_sum",
    "without_negligible",
]
