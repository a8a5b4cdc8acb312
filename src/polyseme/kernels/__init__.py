"""Python interface of the compiled kernels, and the same sums for dense counts by BLAS.

All models use one operation, a sweep over the non-zero counts x. With operands A (documents x K) and B (words x K), let
q = A_d . B_w and r = x / q for every non-zero. The sums are

    row_sums_d  = sum_w r B_w                (documents x K)
    word_sums_w = sum_d weight_d r A_d       (words x K, float64)
    logs_d      = sum_w x log q              (documents, float64)

Multiplied by A and B, the sums are the expected counts of EM. Operands are padded with columns of zeros to a width
that the kernels support (`padded_width`); the sums have the same width.
"""

from polyseme.kernels.counts import (
    FOLD_IN_STEPS,
    FOLD_IN_TOLERANCE,
    Array,
    Counts,
    DenseCounts,
    Floats,
    ReciprocalSums,
    SparseCounts,
    Sums,
    add_rows,
    aligned_empty,
    check_operands,
    check_sparse,
    check_topics,
    em_rows,
    em_words,
    entropic_rows,
    find_counts_error,
    gram,
    inner,
    least_squares_rows,
    map_in_threads,
    normalize_columns,
    normalize_rows,
    padded,
    padded_width,
    row_blocks,
    single_threaded_blas,
    sum_in_order,
    take_rows,
    weighted_sum,
    with_weights,
    without_negligible,
)

__all__ = [
    "FOLD_IN_STEPS",
    "FOLD_IN_TOLERANCE",
    "Array",
    "Counts",
    "DenseCounts",
    "Floats",
    "ReciprocalSums",
    "SparseCounts",
    "Sums",
    "add_rows",
    "aligned_empty",
    "check_operands",
    "check_sparse",
    "check_topics",
    "em_rows",
    "em_words",
    "entropic_rows",
    "find_counts_error",
    "gram",
    "inner",
    "least_squares_rows",
    "map_in_threads",
    "normalize_columns",
    "normalize_rows",
    "padded",
    "padded_width",
    "row_blocks",
    "single_threaded_blas",
    "sum_in_order",
    "take_rows",
    "weighted_sum",
    "with_weights",
    "without_negligible",
]
