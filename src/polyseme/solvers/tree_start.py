"""Where a fit of a tree starts.

The likelihood hardly cares whether a word that all leaves share is written by the root or by every leaf, so the start
decides. Topics for the leaves are put in the order of a dendrogram, so that neighbours are alike; a node is the mean of
the leaves below it; and below the first node that speaks, words that most documents have are damped. Such words can
only come from above, and stay there.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import leaves_list, linkage

from polyseme.factors import columns_to_one
from polyseme.initialise import named_start
from polyseme.kernels import Array, Floats, padded, padded_width, weighted_sum
from polyseme.model import Model
from polyseme.solvers.hierarchical import TreePoint
from polyseme.solvers.plsa_start import fitted_factors
from polyseme.sources.memory import MemorySource
from polyseme.tree import Tree

_LOOSENING = 0.1
"""how much of the uniform weights and of the unigram a start from PLSA gets: EM cannot revive a zero"""
_FIRST_SHARE = 0.5
"""P(node|leaf) of the first node on a leaf's path that speaks"""
_DAMPING, _ROOM = 3, 1.05


def random_start(source: MemorySource, tree: Tree, rng: np.random.Generator) -> TreePoint:
    """Leaves as the topics of a random start of PLSA, weights uniform."""
    theta, phi = named_start("random", source, Model(len(tree.leaves)), rng)
    return _placed(source, tree, theta, phi)


def likely_start(source: MemorySource, tree: Tree, rng: np.random.Generator) -> TreePoint:
    """Leaves from a short fit of PLSA, ordered by likeness."""
    K = len(tree.leaves)
    theta, phi = fitted_factors(source, K, rng)
    phi = phi[:, :K].astype(np.float64)
    order = _by_likeness(phi, tree)
    theta, phi = theta[:, order], phi[:, order]
    theta = (1 - _LOOSENING) * theta + _LOOSENING / K
    phi = (1 - _LOOSENING) * phi + _LOOSENING * source.unigram[:, np.newaxis]
    dtype = source.counts.dtype
    return _placed(source, tree, padded(theta, dtype), padded(phi, dtype))


STARTS = {"plsa": likely_start, "random": random_start}


def _by_likeness(topics: Floats, tree: Tree) -> Array:
    """Which topic (words x K) each leaf gets: neighbours in a dendrogram (Hellinger distance) become neighbours."""
    leaves = tree.leaves
    if len(leaves) < 3:
        return np.arange(len(leaves))
    positions = {leaf: position for position, leaf in enumerate(leaves)}
    from_left = [positions[node] for node, _ in tree.by_depth_first() if node in positions]
    order = np.empty(len(leaves), dtype=np.intp)
    order[from_left] = leaves_list(linkage(np.sqrt(topics.T), method="average"))
    return order


def _placed(source: MemorySource, tree: Tree, theta: Array, phi: Array) -> TreePoint:
    """The point with these leaf weights and leaf topics (both padded)."""
    leaves, n_nodes = tree.leaves, len(tree.parents)
    mass = weighted_sum(source.weighted_totals, theta, n_threads=source.n_threads)[: len(leaves)]
    damping = _damping(source)
    words = np.zeros((source.counts.n_words, n_nodes))
    speaking = set(np.flatnonzero(tree.speakers.any(axis=0)).tolist())
    for node in speaking:
        below = tree.leaves_below(node)
        topic = (phi[:, below] * mass[below]).sum(axis=1, dtype=np.float64)
        if speaking.intersection(tree.path(node)[:-1]):
            topic *= damping
        words[:, node] = columns_to_one(topic[:, np.newaxis])[:, 0]
    shares = np.zeros((padded_width(len(leaves)), padded_width(n_nodes)))
    for row, leaf in zip(shares, leaves, strict=False):
        first, *others = [node for node in tree.path(leaf) if node in speaking]
        row[first] = _FIRST_SHARE if others else 1.0
        row[others] = (1 - _FIRST_SHARE) / max(1, len(others))
    return TreePoint(theta, padded(words, theta.dtype), shares)


def _damping(source: MemorySource) -> Floats:
    """log(1.05 documents / documents that have the word) to the third power, by the documents' weights."""
    matrix, weights = source.counts.matrix(), source.weights
    if weights is None:
        weights = np.ones(source.counts.n_docs)
    if sp.issparse(matrix):
        rows = np.repeat(weights, np.diff(matrix.indptr))
        having = np.asarray(np.bincount(matrix.indices, rows, minlength=source.counts.n_words), dtype=np.float64)
    else:
        having = weighted_sum(weights, (matrix > 0).astype(np.float32))
    share: Floats = np.where(having > 0, having / weights.sum(), 1.0)
    return np.asarray(np.log(_ROOM / share) ** _DAMPING)
