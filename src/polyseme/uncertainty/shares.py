"""Shares of the topics in groups of documents, from fits to resampled documents.

The share of a topic in a group of documents is the mean of P(z|d) over the documents, each with the same weight. It is
the weight with which the topics explain the mean document of the group, sum_d x_d / n_d: given the topics, the
expectation of this document has no error from the shortness of documents, which a mean of estimated weights would have.

These mean documents are sums over all documents, which are added part by part for several resamples at a time, so the
documents need not be in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.shard import sparse_counts
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.metrics.clustering import label_numbers
from polyseme.uncertainty.intervals import Differences, Intervals, Sampling, differences_of, share_intervals
from polyseme.uncertainty.resampling import Resampled, Resampling

_ROUNDING = 1e-9
"""Tokens of a word in the mean document of a group, relative to its length, that are rounding errors."""
_NUMBERS = 1 << 25
"""Weights of documents, and probabilities of words, of the resamples whose sums are added at the same time."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the topics in groups of documents.

    Attributes
    ----------
    names : list
        The groups.
    documents : array of int of shape (n_groups,)
        Number of documents with words in each group.
    shares : Intervals of shape (n_groups, K)
        Mean of P(z|d) over the documents of each group.
    others : Intervals of shape (n_groups, K)
        The same for all other documents that are in a group.
    draws : array of shape (n_resamples, 2 n_groups, K)
        Shares in the groups, then in the others, in every resample; NaN if a topic did not come back.
    biases : array of shape (n_simulations, 2 n_groups, K)
        Errors of these shares in documents drawn from the model. Their mean is subtracted from the estimates.
    sampling : Sampling
        Level and degrees of freedom of the intervals.
    """

    names: list[Any]
    documents: Array
    shares: Intervals
    others: Intervals
    draws: Floats = field(repr=False)
    biases: Floats = field(repr=False)
    sampling: Sampling = field(repr=False)

    def compare(self, first: Any, second: Any = None) -> Differences:
        """Return how much more of each topic a group has than another one.

        Parameters
        ----------
        first : object
            Name of a group.
        second : object, default=None
            Name of another group. None: all documents of the other groups.

        Returns
        -------
        Differences
            Share in the first group minus share in the second, one number per topic.
        """
        row = self._row(first)
        other = row + len(self.names) if second is None else self._row(second)
        return self._differences(np.array([row]), np.array([other]))[0]

    def compare_all(self) -> Differences:
        """Return the differences between every group and all documents of the other groups.

        Returns
        -------
        Differences
            Arrays of shape (n_groups, K). False discovery rates are over all of them.
        """
        rows = np.arange(len(self.names))
        return self._differences(rows, rows + len(rows))

    def _row(self, name: Any) -> int:
        if name not in self.names:
            raise InputError(f"There is no group {name!r}: the groups are {', '.join(map(repr, self.names))}.")
        return self.names.index(name)

    def _differences(self, first: Array, second: Array) -> Differences:
        both = np.concatenate([self.shares.estimate, self.others.estimate])
        spread = self.sampling.error(self.draws[:, first] - self.draws[:, second])
        bias = self.sampling.bias(self.biases[:, first] - self.biases[:, second])
        error = np.sqrt(spread**2 + bias.variance)
        return differences_of(both[first] - both[second], error, self.sampling.level, self.sampling.df)


class FoundShares(NamedTuple):
    """Result of `shares_of`."""

    plain_weights: Floats
    """P(z) of the fit without correction."""
    topic_weights: Intervals
    groups: Shares


def shares_of(fits: Resampling, groups: Any, resamples: Iterable[Resampled]) -> FoundShares:
    """Return P(z) and the shares of the topics in groups. `resamples` are those of the fits."""
    names, membership = _membership(groups, fits.n_documents)
    tables = _Tables(fits.parts, membership)
    shares = next(tables.shares([(fits.topics, np.ones(fits.n_documents))]))
    remaining, draws = iter(resamples), []
    at_once = max(1, min(16, _NUMBERS // max(fits.n_documents, fits.topics.size)))
    while batch := list(islice(remaining, at_once)):
        found = tables.shares([(matched.topics, weights) for weights, matched in batch])
        draws += [np.where(one.matched.returned, own, np.nan) for one, own in zip(batch, found, strict=True)]
    drawn: list[Floats] = []
    true: list[Floats] = []
    simulated_groups = membership if fits.rows is None else membership[:, fits.rows]
    for theta, sample, _, matched in fits.simulations(shares[0]):
        own_tables = _Tables(partial(list, [sample]), simulated_groups)
        drawn += own_tables.shares([(matched.topics, np.ones(sample.n_docs))])
        true.append(own_tables.means(theta))
    sampling, share_draws = fits.sampling, np.array(draws)
    simulated, expected = (np.reshape(values, (len(drawn), *shares.shape)) for values in (drawn, true))
    biases = np.nan_to_num(simulated - expected)
    root_bias = sampling.bias(np.nan_to_num(np.sqrt(simulated) - np.sqrt(expected)))
    error = np.sqrt(sampling.error(np.sqrt(share_draws)) ** 2 + root_bias.variance)
    corrected = np.clip(shares - sampling.bias(biases).mean, 0, 1)
    parts, n = share_intervals(corrected, error, sampling.level, sampling.df), len(names)
    return FoundShares(
        shares[0],
        parts[0],
        Shares(
            names, tables.n_documents, parts[1 : n + 1], parts[n + 1 :], share_draws[:, 1:], biases[:, 1:], sampling
        ),
    )  # fmt: skip


def _membership(groups: Any, n_documents: int) -> tuple[list[Any], sp.csr_array]:
    """Return the names of groups, and the weights of the documents in them (groups x documents)."""
    if groups is None:
        return [], sp.csr_array((0, n_documents))
    if sp.issparse(groups):
        if groups.shape[1] != n_documents:
            raise InputError(f"groups must have a column for each of the {n_documents} documents.")
        return list(range(groups.shape[0])), sp.csr_array(groups, dtype=np.float64)
    names, numbers = label_numbers(groups, n_documents)
    known = np.flatnonzero(numbers >= 0)
    shape = (len(names), n_documents)
    return names, sp.csr_array((np.ones(known.size), (numbers[known], known)), shape=shape)


class _Tables:
    """Tokens of words in the corpus and in groups, for any weights of documents.

    `parts` returns the counts of all documents, part by part.
    """

    def __init__(self, parts: Callable[[], Iterable[SparseCounts]], membership: sp.csr_array) -> None:
        self._parts, self._membership = parts, membership
        inside = sp.csr_array(membership > 0, dtype=np.float64)
        every = sp.csr_array(np.asarray(inside.sum(axis=0) > 0, dtype=np.float64).reshape(1, -1))
        weighted = bool((membership.data != 1).any())
        self._rows = sp.csc_array(sp.vstack([membership, *([inside] if weighted else []), every]))
        """Documents of each group with their weights, the same without weights if these differ, and of any group."""
        self._lengths = np.concatenate([part.totals for part in parts()])
        self._mean_length = self._lengths.mean()
        self._inverse = np.divide(1, self._lengths, out=np.zeros(self._lengths.size), where=self._lengths > 0)

    def _groups_and_others(self, sums: Any) -> list[Any]:
        """Return the rows of groups, and those of all other documents of groups, from sums of the rows `_rows`."""
        n = self._membership.shape[0]
        inside = sums[n:-1] if sums.shape[0] > n + 1 else sums[:n]
        every = sums[-1:]
        return [sums[:n], (sp.vstack([every] * n) if sp.issparse(sums) else every) - inside]

    @property
    def n_documents(self) -> Array:
        """Number of documents with words in each group."""
        return np.asarray((self._membership > 0) @ (self._lengths > 0).astype(np.int64))

    def _sums(self, weights: list[Floats]) -> list[sp.csr_array]:
        """Return the tokens of words in all documents and in the rows of groups, for each of the weights."""
        total, begin = None, 0
        with_groups = self._membership.shape[0] > 0
        for part in self._parts():
            own, rows = slice(begin, begin + part.n_docs), []
            scale = self._inverse[own] * self._mean_length
            for drawn in weights:
                rows.append(sp.csr_array(drawn[np.newaxis, own], dtype=np.float64))
                if with_groups:
                    rows.append(sp.csr_array(self._rows[:, own] * (drawn[own] * scale)))
            sums = sp.csr_array(sp.csr_array(sp.vstack(rows)) @ part.matrix())
            total = sums if total is None else sp.csr_array(total + sums)
            begin += part.n_docs
        assert total is not None
        n = 1 + (self._rows.shape[0] if with_groups else 0)
        return [total[first : first + n] for first in range(0, total.shape[0], n)]

    def shares(self, fits: list[tuple[Floats, Floats]]) -> Iterator[Floats]:
        """Yield P(z), the shares of the topics in each group, and in all other documents of groups.

        `fits` are pairs of topics and weights of the documents.
        """
        sums = self._sums([weights for _, weights in fits])
        for (topics, _), pooled in zip(fits, sums, strict=True):
            if self._membership.shape[0]:
                pooled = sp.csr_array(sp.vstack([pooled[:1], *self._groups_and_others(pooled[1:])]))
                pooled.data[pooled.data < _ROUNDING * self._mean_length] = 0
            counts = sparse_counts(pooled, np.dtype(np.float32))
            found = MaximumLikelihood().weights(counts, topics.astype(np.float32), None, n_threads=1).doc_topic
            yield np.where(counts.totals[:, np.newaxis] > 0, found, np.nan)

    def means(self, theta: Floats) -> Floats:
        """Return what `shares` estimates if the weights of the documents are `theta`."""
        values = np.column_stack([theta, np.ones(len(theta))])
        sums = (self._lengths @ values)[np.newaxis]
        if self._membership.shape[0]:
            of_rows = np.asarray(self._rows @ ((self._lengths > 0)[:, np.newaxis] * values))
            sums = np.concatenate([sums, *self._groups_and_others(of_rows)])
        sizes = sums[:, -1:]
        return np.divide(sums[:, :-1], sizes, out=np.full((len(sums), theta.shape[1]), np.nan), where=sizes > 0.5)
