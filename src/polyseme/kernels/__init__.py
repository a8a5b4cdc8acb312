"""Python interface of the compiled kernels, and the same sums for dense counts by BLAS."""

from polyseme import _kernels
from polyseme.errors import InputError
from polyseme.kernels.checks import check_sparse as check_sparse
from polyseme.kernels.checks import find_counts_error as find_counts_error
from polyseme.kernels.counts import FOLD_IN_STEPS as FOLD_IN_STEPS
from polyseme.kernels.counts import FOLD_IN_TOLERANCE as FOLD_IN_TOLERANCE
from polyseme.kernels.counts import Counts as Counts
from polyseme.kernels.counts import DenseCounts as DenseCounts
from polyseme.kernels.counts import SparseCounts as SparseCounts
from polyseme.kernels.counts import Sums as Sums
from polyseme.kernels.counts import Want as Want
from polyseme.kernels.counts import check_operands as check_operands
from polyseme.kernels.counts import check_topics as check_topics
from polyseme.kernels.factors import NUMBERS_AT_ONCE as NUMBERS_AT_ONCE
from polyseme.kernels.factors import Array as Array
from polyseme.kernels.factors import Floats as Floats
from polyseme.kernels.factors import ReciprocalSums as ReciprocalSums
from polyseme.kernels.factors import add_rows as add_rows
from polyseme.kernels.factors import aligned_copy as aligned_copy
from polyseme.kernels.factors import aligned_empty as aligned_empty
from polyseme.kernels.factors import em_rows as em_rows
from polyseme.kernels.factors import em_words as em_words
from polyseme.kernels.factors import entropic_rows as entropic_rows
from polyseme.kernels.factors import extrapolated as extrapolated
from polyseme.kernels.factors import gram as gram
from polyseme.kernels.factors import inner as inner
from polyseme.kernels.factors import least_squares_rows as least_squares_rows
from polyseme.kernels.factors import normalize_columns as normalize_columns
from polyseme.kernels.factors import normalize_rows as normalize_rows
from polyseme.kernels.factors import padded as padded
from polyseme.kernels.factors import padded_width as padded_width
from polyseme.kernels.factors import rescaled_columns as rescaled_columns
from polyseme.kernels.factors import row_blocks as row_blocks
from polyseme.kernels.factors import sum_in_order as sum_in_order
from polyseme.kernels.factors import take_rows as take_rows
from polyseme.kernels.factors import times_ratio as times_ratio
from polyseme.kernels.factors import weighted_sum as weighted_sum
from polyseme.kernels.factors import with_weights as with_weights
from polyseme.kernels.factors import without_negligible as without_negligible
from polyseme.kernels.fits import CoordinateFit as CoordinateFit
from polyseme.kernels.fits import FitCounts as FitCounts
from polyseme.kernels.fits import remaining_gain as remaining_gain
from polyseme.kernels.threads import Item as Item
from polyseme.kernels.threads import Result as Result
from polyseme.kernels.threads import map_in_threads as map_in_threads
from polyseme.kernels.threads import single_threaded_blas as single_threaded_blas

try:
    _kernels.chosen_isa()
except ValueError as error:  # POLYSEME_ISA names an instruction set that the processor lacks
    raise InputError(f"{error}.") from None
