"""EM for hierarchical PLSA (Gaussier, Goutte, Popat and Chen 2002) on the shared kernel.

P(w|d) = sum_a P(a|d) sum_v P(v|a) P(w|v), a leaf, v on the path from the root to a. With psi_aw = sum_v P(v|a) P(w|v)
this is PLSA with the leaves as topics, and the kernel gives S_wa = sum_d x theta_da / P(w|d). The expected counts of
leaf a, node v and word w are P(v|a) P(w|v) S_wa: how a leaf's word is split over its ancestors does not depend on the
document. So

    P(w|v) ∝ P(w|v) sum_a P(v|a) S_wa        P(v|a) ∝ P(v|a) sum_w P(w|v) S_wa

are two products of small dense matrices, words x leaves x nodes, outside the kernel: exact EM, monotone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.factors import columns_to_one, rows_to_one
from polyseme.kernels import Array, Floats, em_words, single_threaded_blas
from polyseme.model import Model, visit
from polyseme.solvers.loop import Report
from polyseme.solvers.points import Look, PointRun
from polyseme.sources.memory import MemorySource
from polyseme.tree import Tree


class TreePoint(NamedTuple):
    """The parameters, padded (see `kernels`)."""

    theta: Array
    """P(leaf|d), documents x width of the leaves"""
    node_word: Array
    """P(w|node), words x width of the nodes; a silent node's column is zero"""
    leaf_node: Floats
    """P(node|leaf), width of the leaves x width of the nodes; zero off the paths"""


TreeRun = PointRun[TreePoint]


def leaf_topics(point: TreePoint) -> Array:
    """psi (words x width of the leaves): what the words of each leaf are."""
    with single_threaded_blas():
        return point.node_word @ point.leaf_node.astype(point.node_word.dtype).T


def look(source: MemorySource, n_leaves: int, point: TreePoint) -> Look:
    """The E-step at a point, and the M-step from there.

    The residual adds three bounds: theta's and P(w|v)'s as in PLSA (with the nodes as topics), and, by Jensen,
    N log sum_a max_v G_av / N for P(v|a), G_av = sum_w P(w|v) S_wa.
    """
    theta, next_theta, stats = visit(Model(n_leaves), source, point.theta, leaf_topics(point))
    with single_threaded_blas():
        node_sums = stats.word_sums @ point.leaf_node
        slopes = stats.word_sums.T @ point.node_word.astype(np.float64, copy=False)
    node_mass = (stats.topic_mass[:, np.newaxis] * point.leaf_node).sum(axis=0)
    next_words, gains = em_words(point.node_word, node_sums, node_mass, source.word_totals, n_threads=source.n_threads)
    counts = point.leaf_node * slopes
    totals = counts.sum(axis=1, keepdims=True)
    next_nodes = np.divide(counts, totals, out=point.leaf_node.copy(), where=totals > 0)
    best = np.where(point.leaf_node > 0, slopes, 0).max(axis=1).sum()
    gain = stats.doc_gain + gains.sum() + stats.tokens * np.log(max(best / stats.tokens, 1.0))
    finite = np.isfinite(stats.log_operands)
    value = stats.log_likelihood / stats.tokens
    report = Report(value, value, max(float(gain), 0.0) / stats.tokens if finite else float("inf"))
    return Look(
        TreePoint(theta, point.node_word, point.leaf_node), report, TreePoint(next_theta, next_words, next_nodes)
    )


def normalised(point: TreePoint) -> TreePoint:
    return TreePoint(*(f(factor) for f, factor in zip((rows_to_one, columns_to_one, rows_to_one), point, strict=True)))


def begin(source: MemorySource, tree: Tree, start: TreePoint, *, extrapolate: bool) -> TreeRun:
    n_leaves = len(tree.leaves)
    return PointRun(lambda point: look(source, n_leaves, point), start, normalised if extrapolate else None)
