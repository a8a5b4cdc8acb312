"""Growth of a tree from the top: leaves are split in two while that makes held-out tokens more likely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.errors import InputError, UnsupportedError
from polyseme.factors import columns_to_one
from polyseme.kernels import Array, padded, padded_width, weighted_sum
from polyseme.solvers.held_out import parted_tokens
from polyseme.solvers.hierarchical import TreePoint, begin, leaf_topics
from polyseme.solvers.loop import advance_to_end
from polyseme.sources.memory import MemorySource
from polyseme.split import split_tokens
from polyseme.tree import Tree

_WAYS = 2
_SMOOTHING = _LOOSENING = 0.01


@dataclass(frozen=True)
class Growth:
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


def grow(settings: Growth, source: MemorySource, tree: Tree, start: TreePoint, rng: np.random.Generator) -> Grown:
    """Fits to a part of the tokens and splits leaves; the other tokens decide which splits stay.

    Where there are too few tokens to hold any out, nothing speaks for a split, and the tree stays as it is.
    """
    held_out = split_tokens(source.by_doc, settings.seed, settings.held_out)[1]
    try:
        training, mean_log = parted_tokens(source, held_out, _SMOOTHING)
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
    grown.point = _loosened(grown.point, grown.tree, source)
    return grown


def _loosened(point: TreePoint, tree: Tree, source: MemorySource) -> TreePoint:
    """The point with a little of every leaf and of every word: a word that was only held out has none yet."""
    theta, words = point.theta * (1 - _LOOSENING), point.node_word * (1 - _LOOSENING)
    theta[:, : len(tree.leaves)] += _LOOSENING / len(tree.leaves)
    speaking = np.flatnonzero(tree.speakers.any(axis=0))
    words[:, speaking] += (_LOOSENING * source.unigram)[:, np.newaxis].astype(words.dtype)
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
