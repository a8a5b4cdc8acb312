"""EM for hierarchical PLSA (Gaussier, Goutte, Popat and Chen 2002) on the shared kernel.

P(w|d) = sum_a P(a|d) sum_v P(v|a) P(w|v), a leaf, v on the path from the root to a. With psi_aw = sum_v P(v|a) P(w|v)
this is PLSA with the leaves as topics, and the kernel gives S_wa = sum_d x theta_da / P(w|d). The expected counts of
leaf a, node v and word w are P(v|a) P(w|v) S_wa: how a leaf's word is split over its ancestors does not depend on the
document. So

    P(w|v) ∝ P(w|v) sum_a P(v|a) S_wa        P(v|a) ∝ P(v|a) sum_w P(w|v) S_wa

are two products of small dense matrices, words x leaves x nodes, outside the kernel: exact EM, monotone.

Where a fit of a tree starts.

The likelihood hardly cares whether a word that all leaves share is written by the root or by every leaf, so the start
decides. Topics for the leaves are put in the order of a dendrogram, so that neighbors are alike; a node is the mean of
the leaves below it; and below the first node that speaks, words that most documents have are damped. Such words can
only come from above, and stay there.

Growth of a tree from the top: leaves are split in two while that makes held-out tokens more likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import leaves_list, linkage

from polyseme.core.factors import columns_to_one, rows_to_one
from polyseme.core.holdout import split_tokens
from polyseme.core.model import Model, e_step
from polyseme.core.tree import Tree
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, em_words, padded, padded_width, single_threaded_blas, weighted_sum
from polyseme.solvers.ascent import EvaluatedPoint, PointRun
from polyseme.solvers.base import Report, advance_to_end
from polyseme.solvers.coordinate import fitted_factors
from polyseme.solvers.early_stopping import parted_tokens
from polyseme.solvers.initialize import named_start


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


def evaluate(corpus: MemoryCorpus, n_leaves: int, point: TreePoint) -> EvaluatedPoint:
    """The E-step at a point, and the M-step from there.

    The residual adds three bounds: theta's and P(w|v)'s as in PLSA (with the nodes as topics), and, by Jensen,
    N log sum_a max_v G_av / N for P(v|a), G_av = sum_w P(w|v) S_wa.
    """
    theta, next_theta, stats = e_step(Model(n_leaves), corpus, point.theta, leaf_topics(point))
    with single_threaded_blas():
        node_sums = stats.word_sums @ point.leaf_node
        slopes = stats.word_sums.T @ point.node_word.astype(np.float64, copy=False)
    node_mass = (stats.topic_mass[:, np.newaxis] * point.leaf_node).sum(axis=0)
    next_words, gains = em_words(point.node_word, node_sums, node_mass, corpus.word_totals, n_threads=corpus.n_threads)
    counts = point.leaf_node * slopes
    totals = counts.sum(axis=1, keepdims=True)
    next_nodes = np.divide(counts, totals, out=point.leaf_node.copy(), where=totals > 0)
    best = np.where(point.leaf_node > 0, slopes, 0).max(axis=1).sum()
    gain = stats.doc_gain + gains.sum() + stats.tokens * np.log(max(best / stats.tokens, 1.0))
    finite = np.isfinite(stats.log_operands)
    value = stats.log_likelihood / stats.tokens
    report = Report(value, value, max(float(gain), 0.0) / stats.tokens if finite else float("inf"))
    return EvaluatedPoint(
        TreePoint(theta, point.node_word, point.leaf_node), report, TreePoint(next_theta, next_words, next_nodes)
    )


def normalized(point: TreePoint) -> TreePoint:
    return TreePoint(*(f(factor) for f, factor in zip((rows_to_one, columns_to_one, rows_to_one), point, strict=True)))


def begin(corpus: MemoryCorpus, tree: Tree, start: TreePoint, *, extrapolate: bool) -> TreeRun:
    n_leaves = len(tree.leaves)
    return PointRun(lambda point: evaluate(corpus, n_leaves, point), start, normalized if extrapolate else None)


_START_SMOOTHING = 0.1
"""how much of the uniform weights and of the unigram a start from PLSA gets: EM cannot revive a zero"""
_FIRST_SHARE = 0.5
"""P(node|leaf) of the first node on a leaf's path that speaks"""
_DAMPING, _ROOM = 3, 1.05


def random_start(corpus: MemoryCorpus, tree: Tree, rng: np.random.Generator) -> TreePoint:
    """Leaves as the topics of a random start of PLSA, weights uniform."""
    theta, phi = named_start("random", corpus, Model(len(tree.leaves)), rng)
    return _placed(corpus, tree, theta, phi)


def likely_start(corpus: MemoryCorpus, tree: Tree, rng: np.random.Generator) -> TreePoint:
    """Leaves from a short fit of PLSA, ordered by likeness."""
    K = len(tree.leaves)
    theta, phi = fitted_factors(corpus, K, rng)
    phi = phi[:, :K].astype(np.float64)
    order = _by_likeness(phi, tree)
    theta, phi = theta[:, order], phi[:, order]
    theta = (1 - _START_SMOOTHING) * theta + _START_SMOOTHING / K
    phi = (1 - _START_SMOOTHING) * phi + _START_SMOOTHING * corpus.unigram[:, np.newaxis]
    dtype = corpus.counts.dtype
    return _placed(corpus, tree, padded(theta, dtype), padded(phi, dtype))


STARTS = {"plsa": likely_start, "random": random_start}


def _by_likeness(topics: Floats, tree: Tree) -> Array:
    """Which topic (words x K) each leaf gets: neighbors in a dendrogram (Hellinger distance) become neighbors."""
    leaves = tree.leaves
    if len(leaves) < 3:
        return np.arange(len(leaves))
    positions = {leaf: position for position, leaf in enumerate(leaves)}
    from_left = [positions[node] for node, _ in tree.by_depth_first() if node in positions]
    order = np.empty(len(leaves), dtype=np.intp)
    order[from_left] = leaves_list(linkage(np.sqrt(topics.T), method="average"))
    return order


def _placed(corpus: MemoryCorpus, tree: Tree, theta: Array, phi: Array) -> TreePoint:
    """The point with these leaf weights and leaf topics (both padded)."""
    leaves, n_nodes = tree.leaves, len(tree.parents)
    mass = weighted_sum(corpus.weighted_totals, theta, n_threads=corpus.n_threads)[: len(leaves)]
    damping = _damping(corpus)
    words = np.zeros((corpus.counts.n_words, n_nodes))
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


def _damping(corpus: MemoryCorpus) -> Floats:
    """log(1.05 documents / documents that have the word) to the third power, by the documents' weights."""
    matrix, weights = corpus.counts.matrix(), corpus.weights
    if weights is None:
        weights = np.ones(corpus.counts.n_docs)
    if sp.issparse(matrix):
        rows = np.repeat(weights, np.diff(matrix.indptr))
        having = np.asarray(np.bincount(matrix.indices, rows, minlength=corpus.counts.n_words), dtype=np.float64)
    else:
        having = weighted_sum(weights, (matrix > 0).astype(np.float32))
    share: Floats = np.where(having > 0, having / weights.sum(), 1.0)
    return np.asarray(np.log(_ROOM / share) ** _DAMPING)


_WAYS = 2
_SMOOTHING = _SPLIT_SMOOTHING = 0.01


@dataclass(frozen=True)
class TreeGrowth:
    """Settings of growth.

    max_leaves : the tree has at most so many leaves.
    held_out : the share of every document's tokens that judges a split; the split depends on `seed` and the content.
    steps : EM iterations after each split.
    patience : growth ends when so many leaves in a row, the heaviest first, gained nothing by a split.
    """

    max_leaves: int
    held_out: float = 0.1
    steps: int = 20
    patience: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.max_leaves >= 2 and self.steps >= 1 and self.patience >= 1 and 0 < self.held_out < 1):
            raise InputError(
                "Growth: max_leaves must be at least 2, steps and patience at least 1, and held_out between 0 and 1."
            )


class Grown:
    """A tree, a point for it, and the held-out log-likelihood a token of each tree on the way."""

    def __init__(self, tree: Tree, point: TreePoint) -> None:
        self.tree, self.point = tree, point
        self.scores: list[float] = []


def grow(settings: TreeGrowth, corpus: MemoryCorpus, tree: Tree, start: TreePoint, rng: np.random.Generator) -> Grown:
    """Fits to a part of the tokens and splits leaves; the other tokens decide which splits stay.

    Where there are too few tokens to hold any out, nothing speaks for a split, and the tree stays as it is.
    """
    held_out = split_tokens(corpus.by_doc, settings.seed, settings.held_out)[1]
    try:
        training, mean_log = parted_tokens(corpus, held_out, _SMOOTHING)
    except UnsupportedError:
        return Grown(tree, start)

    def fitted(tree: Tree, start: TreePoint) -> TreePoint:
        ended = advance_to_end(
            lambda: begin(training, tree, start, extrapolate=True), max_iter=settings.steps, tol=0.0, listeners=[]
        )
        if ended is None or ended.interrupted:
            raise KeyboardInterrupt
        return ended.run.point

    def score(point: TreePoint) -> float:
        return mean_log(point.theta, leaf_topics(point))

    point = fitted(tree, start)
    grown = Grown(tree, point)
    grown.scores.append(score(point))
    refused: set[int] = set()
    in_a_row = 0
    while len(grown.tree.leaves) + _WAYS - 1 <= settings.max_leaves and in_a_row < settings.patience:
        masses = weighted_sum(training.weighted_totals, grown.point.theta)
        open_leaves = [leaf for leaf in grown.tree.leaves if leaf not in refused]
        if not open_leaves:
            break
        leaf = max(open_leaves, key=lambda leaf: masses[grown.tree.leaves.index(leaf)])
        tree = grown.tree.with_split(leaf, _WAYS)
        point = fitted(tree, _split(grown.tree, tree, leaf, grown.point, rng))
        value = score(point)
        if value > grown.scores[-1]:
            grown.tree, grown.point = tree, point
            grown.scores.append(value)
            in_a_row = 0
        else:
            refused.add(leaf)
            in_a_row += 1
    grown.point = _loosened(grown.point, grown.tree, corpus)
    return grown


def _loosened(point: TreePoint, tree: Tree, corpus: MemoryCorpus) -> TreePoint:
    """The point with a little of every leaf and of every word: a word that was only held out has none yet."""
    theta, words = point.theta * (1 - _SPLIT_SMOOTHING), point.node_word * (1 - _SPLIT_SMOOTHING)
    theta[:, : len(tree.leaves)] += _SPLIT_SMOOTHING / len(tree.leaves)
    speaking = np.flatnonzero(tree.speakers.any(axis=0))
    words[:, speaking] += (_SPLIT_SMOOTHING * corpus.unigram)[:, np.newaxis].astype(words.dtype)
    return TreePoint(theta, columns_to_one(words), point.leaf_node)


def _split(old: Tree, new: Tree, leaf: int, point: TreePoint, rng: np.random.Generator) -> TreePoint:
    """The point of the tree with new leaves: equal parts of the old one's weights, half of its words."""
    born = [node for node in new.leaves if node >= len(old.parents)]
    origin = [old.leaves.index(leaf if node in born else node) for node in new.leaves]
    theta = point.theta[:, origin]
    shares = np.zeros((padded_width(len(new.leaves)), padded_width(len(new.parents))))
    shares[: len(origin), : len(old.parents)] = point.leaf_node[origin, : len(old.parents)]
    words = np.zeros((point.node_word.shape[0], len(new.parents)))
    words[:, : len(old.parents)] = point.node_word[:, : len(old.parents)]
    own: Array = words[:, leaf] if leaf not in new.silent else words[:, old.path(leaf)].sum(axis=1)
    for position, node in enumerate(new.leaves):
        if node in born:
            theta[:, position] /= len(born)
            words[:, node] = columns_to_one((own * rng.standard_exponential(own.size))[:, np.newaxis])[:, 0]
            shares[position] /= 2
            shares[position, node] = 0.5
    return TreePoint(padded(theta, point.theta.dtype), padded(words, point.node_word.dtype), shares)
