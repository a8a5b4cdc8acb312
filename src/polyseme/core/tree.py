"""Trees of topics: who is whose parent, which nodes are leaves, and which nodes stand above each leaf.

A node that is silent writes no words. Every leaf needs a node on its path that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats

ROOT = -1
"""the parent of the root"""
MOST_NODES = 1_000_000
"""of a tree that is given by its depth"""


@dataclass(frozen=True)
class Tree:
    """Nodes 0, 1, ...; `parents` has the parent of each, -1 for the root."""

    parents: tuple[int, ...]
    names: tuple[str, ...] | None = None
    silent: tuple[int, ...] = ()

    @cached_property
    def children(self) -> list[list[int]]:
        below: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                below[parent].append(node)
        return below

    @cached_property
    def root(self) -> int:
        return self.parents.index(ROOT)

    @cached_property
    def leaves(self) -> list[int]:
        """The nodes without children, by number."""
        return [node for node, below in enumerate(self.children) if not below]

    def path(self, node: int) -> list[int]:
        """The nodes from the root down to `node`."""
        path = [node]
        while self.parents[path[-1]] != ROOT:
            path.append(self.parents[path[-1]])
        return path[::-1]

    @property
    def depth(self) -> int:
        """Most steps from the root to a leaf."""
        return max(len(self.path(leaf)) for leaf in self.leaves) - 1

    @cached_property
    def speakers(self) -> Array:
        """Which nodes may write the words of which leaf (leaves x nodes)."""
        may = np.zeros((len(self.leaves), len(self.parents)), dtype=bool)
        for row, leaf in zip(may, self.leaves, strict=True):
            row[self.path(leaf)] = True
        may[:, list(self.silent)] = False
        return may

    def leaves_below(self, node: int) -> list[int]:
        """The positions, among the leaves, of those below `node` (of itself, if it is one)."""
        return [position for position, leaf in enumerate(self.leaves) if node in self.path(leaf)]

    def by_depth_first(self) -> Iterable[tuple[int, int]]:
        """Nodes from the root down, each before those below it, with their distance from the root."""
        waiting = [(self.root, 0)]
        while waiting:
            node, level = waiting.pop()
            yield node, level
            waiting.extend((child, level + 1) for child in reversed(self.children[node]))

    def with_split(self, leaf: int, ways: int) -> Tree:
        """The tree with `ways` new leaves below a leaf, numbered behind all others."""
        names = None
        if self.names is not None:
            names = self.names + tuple(f"{self.names[leaf]}.{number}" for number in range(ways))
        return Tree(self.parents + (leaf,) * ways, names, self.silent)

    def label(self, node: int) -> str:
        return str(node) if self.names is None else self.names[node]


def as_tree(tree: Any, depth: int, branching: Any, silent: Any) -> Tree:
    """The tree that a user describes.

    tree : the parent of each node (-1 for the root); or nested mappings {name: below}, `below` a mapping again, or a
        list of the leaves' names; None for a regular tree of so many levels below the root, each node with `branching`
        children (one number, or one for each level).
    silent : numbers or names of the nodes that write no words.
    """
    if tree is None:
        parents, names = _regular(depth, branching), None
    elif isinstance(tree, Mapping):
        parents, names = _nested(tree)
    else:
        parents, names = _listed(tree), None
    if len(parents) < 2:
        raise InputError("tree must have at least two nodes: a root and a leaf below it.")
    made = Tree(tuple(parents), names)
    made = Tree(made.parents, names, _numbers(silent, made))
    lost = [leaf for leaf, may in zip(made.leaves, made.speakers, strict=True) if not may.any()]
    if lost:
        raise InputError(f"silent leaves no node that could write the words of leaf {made.label(lost[0])}: name fewer.")
    return made


def _regular(depth: Any, branching: Any) -> list[int]:
    if isinstance(depth, bool) or not isinstance(depth, Integral) or depth < 1:
        raise InputError(f"depth must be a whole number of at least 1, got {depth!r}.")
    if int(depth) > MOST_NODES:
        raise InputError(f"A tree of depth {depth} has more than {MOST_NODES} nodes: choose a smaller depth.")
    numbers = [branching] * int(depth) if isinstance(branching, Integral) else branching
    if not isinstance(numbers, Sequence | np.ndarray) or isinstance(numbers, str) or len(numbers) != depth:
        raise InputError(f"branching must be one number, or one for each of the {depth} levels, got {branching!r}.")
    for many in numbers:
        if isinstance(many, bool) or not isinstance(many, Integral) or many < 1:
            raise InputError(f"branching must be whole numbers of at least 1, got {branching!r}.")
    parents, level = [ROOT], [0]
    for many in numbers:
        if len(parents) + len(level) * int(many) > MOST_NODES:
            raise InputError(f"The tree has more than {MOST_NODES} nodes: choose a smaller depth or branching.")
        below = [node for node in level for _ in range(int(many))]
        level = list(range(len(parents), len(parents) + len(below)))
        parents.extend(below)
    return parents


def _listed(tree: Any) -> list[int]:
    """A list of parents, checked."""
    try:
        given = np.asarray(tree)
    except ValueError:
        given = np.empty((0, 0))
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError(
            "tree must be None, a list with the parent of each node (-1 for the root), or nested mappings."
        )
    parents = [int(parent) for parent in given]
    roots = [node for node, parent in enumerate(parents) if parent == ROOT]
    orphans = [node for node, parent in enumerate(parents) if not ROOT <= parent < len(parents)]
    if orphans:
        node = orphans[0]
        raise InputError(f"tree: node {node} is an orphan: its parent {parents[node]} is not there.")
    if len(roots) > 1:
        raise InputError(f"tree: node {roots[1]} is a second root: give all but one node a parent.")
    for start in range(len(parents)):
        node, steps = start, 0
        while parents[node] != ROOT:
            node, steps = parents[node], steps + 1
            if steps > len(parents):
                raise InputError(f"tree: node {start} is in or below a cycle, so no way leads from it to a root.")
    return parents


def _nested(tree: Mapping[Any, Any]) -> tuple[list[int], tuple[str, ...]]:
    """Parents and names, breadth first."""
    if len(tree) != 1:
        raise InputError(f"tree must have one root, so the outer mapping must have one name, got {len(tree)}.")
    parents: list[int] = []
    names: list[str] = []
    waiting: list[tuple[Any, Any, int]] = [(name, below, ROOT) for name, below in tree.items()]
    while waiting:
        name, below, parent = waiting.pop(0)
        node = len(parents)
        parents.append(parent)
        names.append(str(name))
        if isinstance(below, Mapping):
            waiting.extend((child, further, node) for child, further in below.items())
        elif isinstance(below, Sequence) and not isinstance(below, str):
            waiting.extend((child, (), node) for child in below)
        elif below is not None:
            raise InputError(f"tree: below {name!r} must be a mapping or a list of names, got {below!r}.")
    twins = [name for name in names if names.count(name) > 1]
    if twins:
        raise InputError(f"tree has two nodes with the name {twins[0]!r}: give every node a name of its own.")
    return parents, tuple(names)


def _numbers(nodes: Any, tree: Tree) -> tuple[int, ...]:
    """Nodes by number or name as sorted numbers."""
    if isinstance(nodes, str | Integral):
        nodes = [nodes]
    found = set()
    for node in nodes:
        if isinstance(node, str) and tree.names is not None and node in tree.names:
            found.add(tree.names.index(node))
        elif isinstance(node, Integral) and 0 <= int(node) < len(tree.parents):
            found.add(int(node))
        else:
            raise InputError(f"silent names the node {node!r}, which the tree does not have.")
    return tuple(sorted(found))


def node_weights(leaf_node: Floats, leaf_weights: Floats) -> Floats:
    """P(node): the share of all words that each node writes, from P(node|leaf) (leaves x nodes) and P(leaf)."""
    return np.asarray((leaf_weights[:, np.newaxis] * leaf_node).sum(axis=0))
