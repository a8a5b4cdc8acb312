"""The interface of a loss.

A loss is a sum over all entries of a matrix X of a function of x and its approximation q = W_d . H_w. A solver lowers
it by a majorizer: a function of a factor F that lies above the loss, touches it at the current F, and is a sum over the
entries of F. With t the factor by which an entry of F changes, the slope of the majorizer is

    denominator t^rise - numerator t^-fall

where `numerator` and `denominator` are sums of two ratios of x and q, weighted with the other factor. Its root,
t = (numerator / denominator)^(1 / (rise + fall)), is the multiplicative update.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Counts, Floats, ReciprocalSums

if TYPE_CHECKING:
    from polyseme.losses.penalized import Penalized


class Zeros(Enum):
    """Form of the loss at x = 0, which determines how such entries enter the sums, and the cost of sparse data."""

    LINEAR = "linear"
    """The loss of x = 0 is q, so that sums of the factors suffice. Only non-zeros are read."""
    SQUARED = "squared"
    """The loss of x = 0 is q^2 / 2, so that the Gram matrices of the factors suffice. Only non-zeros are read."""
    DENSE = "dense"
    """Every entry is read. Blocks of rows of sparse data become dense, one block per thread at a time."""


class Powers(NamedTuple):
    """Powers of the change t of an entry in the slope of the majorizer."""

    rise: float
    fall: float

    @property
    def exponent(self) -> float:
        """Exponent of the multiplicative update."""
        return 1 / (self.rise + self.fall)


class Loss(ABC):
    """Function of an entry x of the data and its approximation q, zero at q = x and positive elsewhere.

    Subclasses are frozen dataclasses.
    """

    is_likelihood: bool = False
    """Whether the minimum of the loss is the maximum of a likelihood of counts."""
    weighs_entries: bool = False
    """Whether entries can have weights (`losses.entry_weights`)."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name that `loss=` accepts, or that describes the loss if it has parameters."""

    @property
    @abstractmethod
    def zeros(self) -> Zeros:
        """How entries with x = 0 enter the sums."""

    @property
    @abstractmethod
    def powers(self) -> Powers:
        """Powers of the majorizer."""

    @property
    def is_convex(self) -> bool:
        """Whether the loss is strictly convex in q, so that each factor has one minimum while the other is fixed."""
        return True

    @property
    def needs_positive(self) -> bool:
        """Whether the loss is infinite at x = 0."""
        return False

    @property
    def compiled(self) -> type[ReciprocalSums] | None:
        """Compiled sums over dense rows; None if the sums are computed from `values` and `ratios`."""
        return None

    @property
    def first_stage(self) -> Loss | None:
        """The loss whose fit is the start of a fit from random topics; None if there is none."""
        return None

    @property
    def next_stage(self) -> Loss | None:
        """The same loss with a closer majorizer, for a fit that no longer improves; None if there is none."""
        return None

    @property
    def penalized(self) -> Penalized | None:
        """The loss with the penalties of the factors that a fit adds to it; None without penalties."""
        return None

    @abstractmethod
    def values(self, x: Array, q: Array) -> Array:
        """Return the loss of each entry.

        Parameters
        ----------
        x : ndarray
            Entries of the data.
        q : ndarray
            Their approximations, positive.

        Returns
        -------
        ndarray
            Losses, with the shape of x.
        """

    @abstractmethod
    def ratios(self, x: Array, q: Array) -> tuple[Array, Array]:
        """Return the ratios whose weighted sums are the numerators and the denominators of the update.

        Parameters
        ----------
        x : ndarray
            Entries of the data.
        q : ndarray
            Their approximations, positive.

        Returns
        -------
        tuple of ndarray
            Ratios of the numerator and of the denominator, with the shape of x.
        """

    def row_constants(self, x: Array) -> Floats | None:
        """Return what each row of x adds to the loss whatever q is, or None if that is not computed separately.

        Parameters
        ----------
        x : ndarray of shape (n_rows, n_columns)
            Rows of the data.

        Returns
        -------
        ndarray of shape (n_rows,), or None
            Sums in float64.
        """
        return None

    def row_values(self, x: Array, q: Array, denominators: Array, constants: Floats | None) -> Floats:
        """Return the loss of each row.

        Parameters
        ----------
        x, q : ndarray of shape (n_rows, n_columns)
            Rows of the data and their approximations.
        denominators : ndarray of shape (n_rows, n_columns)
            The second result of `ratios`.
        constants : ndarray of shape (n_rows,), or None
            Result of `row_constants`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Sums in float64.
        """
        return np.asarray(self.values(x, q).sum(axis=1, dtype=np.float64))

    def check_data(self, counts: Counts) -> None:
        """Check that the loss is finite for data.

        Parameters
        ----------
        counts : Counts
            Data.

        Raises
        ------
        InputError
            If an entry is zero and the loss of zero is infinite.
        """
        if self.needs_positive and counts.n_positive < counts.n_docs * counts.n_words:
            raise InputError(
                f"loss={self.name!r} is infinite where X is zero: add a small number to X, remove its empty rows and "
                "columns, or use a loss such as 'kullback-leibler'."
            )
