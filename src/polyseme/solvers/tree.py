"""EM for hierarchical PLSA, starts of a tree, and growth of a tree from the root.

P(w|d) = sum_a P(a|d) sum_v P(v|a) P(w|v), with a leaf a and the nodes v on the path from the root to a. With
psi_aw = sum_v P(v|a) P(w|v) this is PLSA with the leaves as topics, and the kernel gives S_wa = sum_d x theta_da /
P(w|d). The expected counts of leaf a, node v and word w are P(v|a) P(w|v) S_wa, because the split of a leaf's word over
its ancestors does not depend on the document. So

    P(w|v) ∝ P(w|v) sum_a P(v|a) S_wa        P(v|a) ∝ P(v|a) sum_w P(w|v) S_wa

are two products of small dense matrices (words x leaves x nodes) outside the kernel. This is exact EM and monotone.

The likelihood hardly changes if a word that all leaves share moves from the root to every leaf, so the start decides.
A start orders the topics of the leaves by a dendrogram, so that neighbors are similar, and sets every node to the mean
of the leaves below it. Below the first node of a path that emits words, it damps words that occur in most documents, so
that these words stay above.

References
----------
E. Gaussier, C. Goutte, K. Popat and F. Chen. A hierarchical model for clustering and categorising documents. ECIR 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import pdist

from polyseme.core.fold_in import fold_in_shard
from polyseme.core.model import EStepResult, Extrapolate, Model, Report, WordTotals, e_step
from polyseme.core.shard import Shard, SufficientStatistics, split_tokens
from polyseme.core.tree import Tree
from polyseme.data.corpus import Corpus, MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import (
    Array,
    Floats,
    em_words,
    normalize_columns,
    normalize_rows,
    padded,
    padded_width,
    single_threaded_blas,
    weighted_sum,
)
from polyseme.solvers.ascent import StepRun, shared_arrays
from polyseme.solvers.base import Snapshot, advance_to_end
from polyseme.solvers.coordinate import fitted_factors
from polyseme.solvers.early_stopping import without_tokens
from polyseme.solvers.initialize import named_start
from polyseme.utils import as_seed

_START_SMOOTHING = 0.1
"""Weight of the uniform distribution and of the unigram in a start from PLSA. EM cannot increase a zero."""
_FIRST_SHARE = 0.5
"""P(node|leaf) of the first node on the path of a leaf that emits words."""
_DAMPING, _DAMPING_OFFSET = 3, 1.05
_DISTANCE_DIGITS = 6
"""Digits to which distances between topics are compared."""
_CHILDREN = 2
"""Leaves that replace a leaf when it is split."""
_SMOOTHING = 0.01
"""Weight of the unigram in the score of held-out tokens and in a start from a sample, and of the uniform distribution
after the growth."""


@dataclass(frozen=True)
class TreeGrowth:
    """Settings for growing a tree: leaves are split in two while that makes held-out tokens more probable.

    Parameters
    ----------
    max_leaves : int
        Most leaves of the tree.
    held_out : float, default=0.1
        Share of the tokens of every document that decides about a split.
    steps : int, default=20
        EM iterations after each split.
    patience : int, default=3
        Growth ends when this many leaves in a row, the largest first, gained nothing by a split.
    random_state : int, RandomState or Generator, default=0
        Seed of the choice of held-out tokens.

    Examples
    --------
    >>> from polyseme import HierarchicalPLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.solvers import TreeGrowth
    >>> X = synthetic_corpus(200, n_topics=4, n_words=50, random_state=0).counts()
    >>> model = HierarchicalPLSA(branching=2, growth=TreeGrowth(max_leaves=6), random_state=0, tol=0.1).fit(X)
    >>> model.components_.shape[0] <= 6 + 2 + 1
    True
    """

    max_leaves: int
    held_out: float = 0.1
    steps: int = 20
    patience: int = 3
    random_state: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "random_state", as_seed(self.random_state))
        if not (self.max_leaves >= 2 and self.steps >= 1 and self.patience >= 1 and 0 < self.held_out < 1):
            raise InputError(
                "TreeGrowth: max_leaves must be at least 2, steps and patience at least 1, held_out between 0 and 1."
            )


class TreePoint(NamedTuple):
    """Parameters of a tree, padded (see `kernels`)."""

    theta: Any
    """P(leaf|d), documents x width of the leaves, in the form that the corpus uses."""
    node_word: Array
    """P(w|node), words x width of the nodes; the column of a silent node is zero."""
    leaf_node: Floats
    """P(node|leaf), width of the leaves x width of the nodes; zero for nodes that are not on the path."""


def leaf_topics(node_word: Array, leaf_node: Floats) -> Array:
    """Return psi (words x width of the leaves), the distribution of words in each leaf."""
    with single_threaded_blas():
        return node_word @ leaf_node.astype(node_word.dtype).T


class _PreparedTree(NamedTuple):
    """Shared parameters, and the topics of the leaves that follow."""

    node_word: Array
    leaf_node: Floats
    topics: Array


@dataclass(frozen=True)
class TreeStep:
    """One iteration of EM for a tree. Rows are P(leaf|d), shared parameters (P(w|node), P(node|leaf))."""

    n_leaves: int

    def prepare(self, shared: tuple[Array, Floats], n_threads: int) -> _PreparedTree:
        return _PreparedTree(*shared, leaf_topics(*shared))

    def e_step(self, shard: Shard, rows: Array, prepared: _PreparedTree, memory: Floats | None = None) -> EStepResult:
        return e_step(Model(self.n_leaves), shard, rows, prepared.topics, memory)

    def m_step(
        self, words: WordTotals, prepared: _PreparedTree, stats: SufficientStatistics
    ) -> tuple[tuple[Array, Floats], Report]:
        """Return the next parameters of the nodes, and the report of the point that the statistics describe.

        The residual adds three bounds: those of theta and P(w|v) as in PLSA, with the nodes as topics, and, by Jensen's
        inequality, N log sum_a max_v G_av / N for P(v|a), with G_av = sum_w P(w|v) S_wa.
        """
        node_word, leaf_node, _ = prepared
        with single_threaded_blas():
            node_sums = stats.word_sums @ leaf_node
            slopes = stats.word_sums.T @ node_word.astype(np.float64, copy=False)
        node_mass = (stats.topic_mass[:, np.newaxis] * leaf_node).sum(axis=0)
        next_words, gains = em_words(node_word, node_sums, node_mass, words.word_totals, n_threads=words.n_threads)
        counts = leaf_node * slopes
        totals = counts.sum(axis=1, keepdims=True)
        next_nodes = np.divide(counts, totals, out=leaf_node.copy(), where=totals > 0)
        best = np.where(leaf_node > 0, slopes, 0).max(axis=1).sum()
        gain = stats.doc_gain + gains.sum() + stats.tokens * np.log(max(best / stats.tokens, 1.0))
        finite = np.isfinite(stats.log_operands)
        value = stats.log_likelihood / stats.tokens
        report = Report(value, value, max(float(gain), 0.0) / stats.tokens if finite else float("inf"))
        return (next_words, next_nodes), report

    def extrapolate_rows(self, extrapolate: Extrapolate, new: Array, old: Array, shard: Shard) -> Array:
        rows = extrapolate(new, old)
        return rows if rows is new else normalize_rows(rows)

    def extrapolate_shared(
        self, extrapolate: Extrapolate, new: tuple[Array, Floats], old: tuple[Array, Floats]
    ) -> tuple[Array, Floats]:
        words, nodes = map(extrapolate, new, old)
        return words if words is new[0] else normalize_columns(words), nodes if nodes is new[1] else normalize_rows(
            nodes
        )


class TreeRun(StepRun):
    """A fit of a tree.

    scores : mean log-probability of a held-out token for each tree that growth accepted; None without growth.
    """

    def __init__(
        self, corpus: Corpus, tree: Tree, start: TreePoint, *, extrapolate: bool, scores: list[float] | None = None
    ) -> None:
        theta, *shared = start
        self.tree, self._scores = tree, scores
        point = theta, corpus.share(tuple(shared))
        super().__init__(corpus, TreeStep(len(tree.leaves)), point, extrapolate=extrapolate)

    @classmethod
    def resumed(cls, corpus: Corpus, tree: Tree, state: Snapshot, *, extrapolate: bool) -> TreeRun:
        """Return the run that made a snapshot, of a fit that began with `tree` and may have grown it."""
        parents = tuple(state.words["parents"].ravel().astype(np.int64).tolist())
        while len(tree.parents) < len(parents) and parents[len(tree.parents)] in tree.leaves:
            tree = tree.with_split(parents[len(tree.parents)], _CHILDREN)
        if tree.parents != parents:
            raise ValueError("parents is another tree")
        scores = state.words["scores"].tolist() if "scores" in state.words else None
        leaves, nodes = padded_width(len(tree.leaves)), padded_width(len(tree.parents))
        forms = ((corpus.n_words, nodes), corpus.dtype), ((leaves, nodes), np.float64)
        point = TreePoint(state.docs["point"], *shared_arrays(state, "point", forms))
        run = cls(corpus, tree, point, extrapolate=extrapolate, scores=scores)
        run.restore_snapshot(state)
        return run

    @property
    def attributes(self) -> dict[str, Array]:
        return {} if self._scores is None else {"held_out_": np.array(self._scores)}

    @property
    def parameters(self) -> TreePoint:
        """Return the parameters at the point."""
        return TreePoint(self.rows, *self.shared)

    def snapshot(self) -> Snapshot:
        state = super().snapshot()
        tree = {"parents": np.array(self.tree.parents)}
        if self._scores is not None:
            tree["scores"] = np.array(self._scores)
        return state._replace(words={**state.words, **tree})


def random_start(corpus: MemoryCorpus, tree: Tree, rng: np.random.Generator) -> TreePoint:
    """Return a start whose leaves are the topics of a random start of PLSA."""
    theta, phi = named_start("random", corpus, Model(len(tree.leaves)), rng)
    return point_of_topics(corpus, tree, theta, phi)


def plsa_start(corpus: MemoryCorpus, tree: Tree, rng: np.random.Generator) -> TreePoint:
    """Return a start whose leaves are the topics of a short fit of PLSA, ordered by similarity."""
    return arranged_start(corpus, tree, *fitted_factors(corpus, len(tree.leaves), rng))


def arranged_start(corpus: MemoryCorpus, tree: Tree, theta: Array, phi: Array) -> TreePoint:
    """Return a start whose leaves are these topics, ordered by similarity. `theta` and `phi` are padded."""
    K = len(tree.leaves)
    phi = phi[:, :K].astype(np.float64)
    order = _similarity_order(phi, tree)
    theta, phi = theta[:, order], phi[:, order]
    theta = (1 - _START_SMOOTHING) * theta + _START_SMOOTHING / K
    phi = (1 - _START_SMOOTHING) * phi + _START_SMOOTHING * corpus.unigram[:, np.newaxis]
    dtype = corpus.counts.dtype
    return point_of_topics(corpus, tree, padded(theta, dtype), padded(phi, dtype))


def corpus_rows(corpus: Corpus, tree: Tree, start: TreePoint, whole: bool) -> TreePoint:
    """Return a start that was computed in memory as a start of a corpus.

    whole : whether the start has all documents of the corpus. Otherwise these are folded in.
    """
    if whole:
        return start._replace(theta=corpus.split(start.theta))
    # A word that does not occur in the sample must not have probability zero. Silent nodes have no words.
    words, emitting = start.node_word, tree.emitting_nodes.any(axis=0)
    unigram = corpus.unigram[:, np.newaxis].astype(words.dtype)
    words[:, : emitting.size] = (1 - _SMOOTHING) * words[:, : emitting.size] + _SMOOTHING * unigram * emitting
    fold_in = partial(fold_in_shard, Model(len(tree.leaves)))
    return start._replace(theta=corpus.rows(fold_in, (leaf_topics(words, start.leaf_node),)))


STARTS = {"plsa": plsa_start, "random": random_start}
"""Starts of a tree by the name that `init=` takes."""


def _similarity_order(topics: Floats, tree: Tree) -> Array:
    """Return the topic (column) of each leaf, so that neighbors in a dendrogram (Hellinger) are neighboring leaves."""
    leaves = tree.leaves
    if len(leaves) < 3:
        return np.arange(len(leaves))
    positions = {leaf: position for position, leaf in enumerate(leaves)}
    from_left = [positions[node] for node, _ in tree.depth_first() if node in positions]
    order = np.empty(len(leaves), dtype=np.intp)
    # Rounded, because the order of topics at the same distance must not depend on rounding errors of the fit.
    distances = np.round(pdist(np.sqrt(topics.T)), _DISTANCE_DIGITS)
    order[from_left] = leaves_list(linkage(distances, method="average"))
    return order


def point_of_topics(corpus: MemoryCorpus, tree: Tree, theta: Array, phi: Array) -> TreePoint:
    """Return the point with these weights and topics of the leaves (both padded)."""
    leaves, n_nodes = tree.leaves, len(tree.parents)
    mass = weighted_sum(corpus.weighted_totals, theta, n_threads=corpus.n_threads)[: len(leaves)]
    damping = _damping(corpus)
    words = np.zeros((corpus.counts.n_words, n_nodes))
    emitting = set(np.flatnonzero(tree.emitting_nodes.any(axis=0)).tolist())
    for node in emitting:
        below = tree.leaves_below(node)
        topic = (phi[:, below] * mass[below]).sum(axis=1, dtype=np.float64)
        if emitting.intersection(tree.path(node)[:-1]):
            topic *= damping
        words[:, node] = normalize_columns(topic[:, np.newaxis])[:, 0]
    shares = np.zeros((padded_width(len(leaves)), padded_width(n_nodes)))
    for row, leaf in zip(shares, leaves, strict=False):
        first, *others = [node for node in tree.path(leaf) if node in emitting]
        row[first] = _FIRST_SHARE if others else 1.0
        row[others] = (1 - _FIRST_SHARE) / max(1, len(others))
    return TreePoint(theta, padded(words, theta.dtype), shares)


def _damping(corpus: MemoryCorpus) -> Floats:
    """Return log(1.05 documents / documents with the word) to the third power; documents are weighted."""
    matrix, weights = corpus.counts.matrix(), corpus.weights
    if weights is None:
        weights = np.ones(corpus.n_docs)
    if sp.issparse(matrix):
        rows = np.repeat(weights, np.diff(matrix.indptr))
        frequency = np.asarray(np.bincount(matrix.indices, rows, minlength=corpus.counts.n_words), dtype=np.float64)
    else:
        frequency = weighted_sum(weights, (matrix > 0).astype(np.float32))
    share: Floats = np.where(frequency > 0, frequency / weights.sum(), 1.0)
    return np.asarray(np.log(_DAMPING_OFFSET / share) ** _DAMPING)


class GrownTree:
    """A tree, its parameters, and the mean log-probability of a held-out token after each accepted split."""

    def __init__(self, tree: Tree, point: TreePoint) -> None:
        self.tree, self.point = tree, point
        self.scores: list[float] = []


def grow(
    settings: TreeGrowth, corpus: MemoryCorpus, tree: Tree, start: TreePoint, rng: np.random.Generator
) -> GrownTree:
    """Fit to a part of the tokens and split leaves; the held-out tokens decide which splits are accepted.

    The tree does not grow if there are too few tokens to hold some out.
    """
    held_out = split_tokens(corpus.by_doc, settings.random_state, settings.held_out)[1]
    try:
        training, mean_log = without_tokens(corpus, held_out, _SMOOTHING)
    except UnsupportedError:
        return GrownTree(tree, start)

    def fitted(tree: Tree, start: TreePoint) -> TreePoint:
        ended = advance_to_end(
            lambda: TreeRun(training, tree, start, extrapolate=True), max_iter=settings.steps, tol=0.0, listeners=[]
        )
        if ended is None or ended.interrupted:
            raise KeyboardInterrupt
        return ended.run.parameters

    def score(point: TreePoint) -> float:
        return mean_log(point.theta, leaf_topics(*point[1:]))

    point = fitted(tree, start)
    grown = GrownTree(tree, point)
    grown.scores.append(score(point))
    rejected: set[int] = set()
    failures = 0
    while len(grown.tree.leaves) + _CHILDREN - 1 <= settings.max_leaves and failures < settings.patience:
        masses = weighted_sum(training.weighted_totals, grown.point.theta)
        candidates = [leaf for leaf in grown.tree.leaves if leaf not in rejected]
        if not candidates:
            break
        leaf = max(candidates, key=lambda leaf: masses[grown.tree.leaves.index(leaf)])
        tree = grown.tree.with_split(leaf, _CHILDREN)
        point = fitted(tree, _split(grown.tree, tree, leaf, grown.point, rng))
        value = score(point)
        if value > grown.scores[-1]:
            grown.tree, grown.point = tree, point
            grown.scores.append(value)
            failures = 0
        else:
            rejected.add(leaf)
            failures += 1
    grown.point = _smooth_start(grown.point, grown.tree, corpus)
    return grown


def _smooth_start(point: TreePoint, tree: Tree, corpus: MemoryCorpus) -> TreePoint:
    """Mix a little of every leaf and word into a point, where words that were only held out have probability zero."""
    theta, words = point.theta * (1 - _SMOOTHING), point.node_word * (1 - _SMOOTHING)
    theta[:, : len(tree.leaves)] += _SMOOTHING / len(tree.leaves)
    emitting = np.flatnonzero(tree.emitting_nodes.any(axis=0))
    words[:, emitting] += (_SMOOTHING * corpus.unigram)[:, np.newaxis].astype(words.dtype)
    return TreePoint(theta, normalize_columns(words), point.leaf_node)


def _split(old: Tree, new: Tree, leaf: int, point: TreePoint, rng: np.random.Generator) -> TreePoint:
    """Return the point after a split: new leaves share the weights of the old one and emit half of the words."""
    new_leaves = [node for node in new.leaves if node >= len(old.parents)]
    origin = [old.leaves.index(leaf if node in new_leaves else node) for node in new.leaves]
    theta = point.theta[:, origin]
    shares = np.zeros((padded_width(len(new.leaves)), padded_width(len(new.parents))))
    shares[: len(origin), : len(old.parents)] = point.leaf_node[origin, : len(old.parents)]
    words = np.zeros((point.node_word.shape[0], len(new.parents)))
    words[:, : len(old.parents)] = point.node_word[:, : len(old.parents)]
    own: Array = words[:, leaf] if leaf not in new.silent else words[:, old.path(leaf)].sum(axis=1)
    for position, node in enumerate(new.leaves):
        if node in new_leaves:
            theta[:, position] /= len(new_leaves)
            words[:, node] = normalize_columns((own * rng.standard_exponential(own.size))[:, np.newaxis])[:, 0]
            shares[position] /= 2
            shares[position, node] = 0.5
    return TreePoint(padded(theta, point.theta.dtype), padded(words, point.node_word.dtype), shares)
