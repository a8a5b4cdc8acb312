"""Trees of topics: parents, leaves, and the nodes on the path to each leaf.

Each node of a tree can be a topic. A silent node emits no words; at least one node on the path to every leaf must not
be silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats

ROOT = -1
"""Parent of the root."""
MAX_NODES = 1_000_000
"""Maximum number of nodes of a tree that is given by its depth."""


@dataclass(frozen=True)
class Tree:
    """Rooted tree with nodes 0, 1, ..."""

    parents: tuple[int, ...]
    """Parent of each node, -1 for the root."""
    names: tuple[str, ...] | None = None
    """Name of each node."""
    silent: tuple[int, ...] = ()
    """Nodes that emit no words."""

    @cached_property
    def children(self) -> list[list[int]]:
        """The children of each node."""
        children: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                children[parent].append(node)
        return children

    @cached_property
    def root(self) -> int:
        """The node without a parent."""
        return self.parents.index(ROOT)

    @cached_property
    def leaves(self) -> list[int]:
        """The nodes without children, in increasing order."""
        return [node for node, children in enumerate(self.children) if not children]

    def path(self, node: int) -> list[int]:
        """Return the nodes from the root to `node`."""
        path = [node]
        while self.parents[path[-1]] != ROOT:
            path.append(self.parents[path[-1]])
        return path[::-1]

    @property
    def depth(self) -> int:
        """Largest number of edges from the root to a leaf."""
        return max(len(self.path(leaf)) for leaf in self.leaves) - 1

    @cached_property
    def emitting_nodes(self) -> Array:
        """Which nodes can emit words for each leaf: those on its path that are not silent (leaves x nodes)."""
        emits = np.zeros((len(self.leaves), len(self.parents)), dtype=bool)
        for row, leaf in zip(emits, self.leaves, strict=True):
            row[self.path(leaf)] = True
        emits[:, list(self.silent)] = False
        return emits

    def leaves_below(self, node: int) -> list[int]:
        """Return the positions in `leaves` of the leaves below `node`, or of `node` itself if it is a leaf."""
        return [position for position, leaf in enumerate(self.leaves) if node in self.path(leaf)]

    def depth_first(self) -> Iterable[tuple[int, int]]:
        """Yield the nodes in depth-first order, each with its distance from the root."""
        stack = [(self.root, 0)]
        while stack:
            node, level = stack.pop()
            yield node, level
            stack.extend((child, level + 1) for child in reversed(self.children[node]))

    def with_split(self, leaf: int, ways: int) -> Tree:
        """Return the tree with `ways` new leaves below a leaf. The new nodes have the highest numbers."""
        names = None
        if self.names is not None:
            names = self.names + tuple(f"{self.names[leaf]}.{number}" for number in range(ways))
        return Tree(self.parents + (leaf,) * ways, names, self.silent)

    def label(self, node: int) -> str:
        """Return the name of a node, or its number if the tree has no names."""
        return str(node) if self.names is None else self.names[node]


def as_tree(tree: Any, depth: int, branching: Any, silent: Any) -> Tree:
    """Return the tree that the arguments of HierarchicalPLSA describe.

    `tree` is a list with the parent of each node (-1 for the root), or a nested mapping {name: children}, where
    `children` is a mapping again or a list of names of leaves. None gives a regular tree of `depth` levels below the
    root, in which each node has `branching` children (one number, or one per level). `silent` lists numbers or names of
    nodes that emit no words.
    """
    if tree is None:
        parents, names = _regular_parents(depth, branching), None
    elif isinstance(tree, Mapping):
        parents, names = _parents_of_mapping(tree)
    else:
        parents, names = _check_parents(tree), None
    if len(parents) < 2:
        raise InputError("tree must have at least two nodes: a root and a leaf below it.")
    result = Tree(tuple(parents), names)
    result = replace(result, silent=_node_numbers(silent, result))
    empty = [leaf for leaf, emits in zip(result.leaves, result.emitting_nodes, strict=True) if not emits.any()]
    if empty:
        raise InputError(
            f"silent leaves no node that could emit the words of leaf {result.label(empty[0])}: list fewer nodes."
        )
    return result


def node_weights(leaf_node: Floats, leaf_weights: Floats) -> Floats:
    """Return P(node), the share of all tokens from each node, given P(node|leaf) (leaves x nodes) and P(leaf)."""
    return np.asarray((leaf_weights[:, np.newaxis] * leaf_node).sum(axis=0))


def _regular_parents(depth: Any, branching: Any) -> list[int]:
    if isinstance(depth, bool) or not isinstance(depth, Integral) or depth < 1:
        raise InputError(f"depth must be a whole number of at least 1, got {depth!r}.")
    if int(depth) > MAX_NODES:
        raise InputError(f"A tree of depth {depth} has more than {MAX_NODES} nodes: choose a smaller depth.")
    per_level = [branching] * int(depth) if isinstance(branching, Integral) else branching
    if not isinstance(per_level, Sequence | np.ndarray) or isinstance(per_level, str) or len(per_level) != depth:
        raise InputError(f"branching must be one number, or one for each of the {depth} levels, got {branching!r}.")
    for n_children in per_level:
        if isinstance(n_children, bool) or not isinstance(n_children, Integral) or n_children < 1:
            raise InputError(f"branching must be whole numbers of at least 1, got {branching!r}.")
    parents, level = [ROOT], [0]
    for n_children in per_level:
        if len(parents) + len(level) * int(n_children) > MAX_NODES:
            raise InputError(f"The tree has more than {MAX_NODES} nodes: choose a smaller depth or branching.")
        new_parents = [node for node in level for _ in range(int(n_children))]
        level = list(range(len(parents), len(parents) + len(new_parents)))
        parents.extend(new_parents)
    return parents


def _check_parents(tree: Any) -> list[int]:
    """Return a list of parents, or raise InputError if it does not describe a tree."""
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
        raise InputError(f"tree: node {node} is an orphan: its parent {parents[node]} does not exist.")
    if len(roots) > 1:
        raise InputError(f"tree: node {roots[1]} is a second root: give all but one node a parent.")
    for start in range(len(parents)):
        node, steps = start, 0
        while parents[node] != ROOT:
            node, steps = parents[node], steps + 1
            if steps > len(parents):
                raise InputError(f"tree: node {start} is in or below a cycle, so it has no path to a root.")
    return parents


def _parents_of_mapping(tree: Mapping[Any, Any]) -> tuple[list[int], tuple[str, ...]]:
    """Return the parents and names of the nodes of a nested mapping, in breadth-first order."""
    if len(tree) != 1:
        raise InputError(f"tree must have one root, so the outer mapping must have one name, got {len(tree)}.")
    parents: list[int] = []
    names: list[str] = []
    queue: list[tuple[Any, Any, int]] = [(name, children, ROOT) for name, children in tree.items()]
    while queue:
        name, children, parent = queue.pop(0)
        node = len(parents)
        parents.append(parent)
        names.append(str(name))
        if isinstance(children, Mapping):
            queue.extend((child, grandchildren, node) for child, grandchildren in children.items())
        elif isinstance(children, Sequence) and not isinstance(children, str):
            queue.extend((child, (), node) for child in children)
        elif children is not None:
            raise InputError(f"tree: below {name!r} must be a mapping or a list of names, got {children!r}.")
    duplicates = [name for name in names if names.count(name) > 1]
    if duplicates:
        raise InputError(f"tree has two nodes with the name {duplicates[0]!r}: give every node a different name.")
    return parents, tuple(names)


def _node_numbers(nodes: Any, tree: Tree) -> tuple[int, ...]:
    """Return the sorted numbers of nodes given by number or name."""
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
