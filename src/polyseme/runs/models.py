"""The models that ``polyseme fit --model`` offers, and the seed words of named topics.

`MODELS` declares the options of each model and whether it can be fitted from shards; `make_model` returns its
estimator. The number of topics of a tree is the number of its leaves.

Seed words guide the first topics. In PLSA a prior (`polyseme.priors.SeedWords`) counts every seed word as if it had
occurred more often in its topic, and the fit starts from the seed words; NMF has no prior, so it only starts from them.
LDA takes no seed words, because it needs a better start: with 20 topics on 20 Newsgroups, nine of them named by three
words each, the named topics of LDA covered 0.20 of their groups, and those of NMF from the same start 0.63.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from polyseme.core.tree import MAX_NODES
from polyseme.errors import InputError
from polyseme.estimators import (
    LDA,
    NMF,
    PLSA,
    CorrelatedTopicModel,
    HierarchicalPLSA,
    MultinomialMixture,
    TopicClassifier,
)
from polyseme.estimators.base import FittedDecomposition
from polyseme.kernels import normalize_rows
from polyseme.options import named
from polyseme.runs.seed_words import seed_prior
from polyseme.solvers.base import generators
from polyseme.utils import check_integer, check_n_topics

MIXTURE_STARTS = 5
"""Number of starts of a mixture; the best is kept."""
DEPTH = 2
"""Levels below the root of a tree, unless it has fewer than four leaves."""


# models


@dataclass(frozen=True)
class TextModel:
    """A model of texts, as the command line offers it."""

    name: str
    """Name of the model on the command line."""
    title: str
    """Name of the model in words."""
    estimator: type[FittedDecomposition]
    options: tuple[str, ...] = ()
    """Options of `make_model` that not every model takes."""
    from_shards: bool = True
    """Whether the model can be fitted from shards on disk; otherwise it needs all counts in memory."""
    has_levels: bool = False
    """Whether finer levels can be made below the topics (`polyseme.selection.levels`)."""

    @property
    def takes_checkpoint(self) -> bool:
        """Whether a fit can store its state in a given folder. A fit from shards stores its state beside the shards."""
        return "checkpoint" in self.options


MODELS = {
    model.name: model
    for model in (
        TextModel(
            "plsa",
            "probabilistic latent semantic analysis",
            PLSA,
            ("background", "seeds", "start", "checkpoint"),
            has_levels=True,
        ),
        TextModel("lda", "latent Dirichlet allocation", LDA, ("start",)),
        TextModel("nmf", "non-negative matrix factorization", NMF, ("seeds", "start")),
        TextModel("hierarchical", "PLSA with topics in a tree", HierarchicalPLSA, ("depth", "branching", "start")),
        TextModel("ctm", "correlated topic model", CorrelatedTopicModel, ("start",), from_shards=False),
        TextModel("mixture", "mixture with one topic per document", MultinomialMixture, from_shards=False),
        TextModel("labels", "PLSA with topics tied to labels", TopicClassifier, ("labels",), from_shards=False),
    )
}
"""The models by name."""


def make_model(
    name: str,
    n_topics: int | None,
    *,
    background: float = 0.0,
    max_iter: int | None = None,
    random_state: int | None = 0,
    depth: int | None = None,
    branching: int | Sequence[int] | None = None,
    seeds: Mapping[str, Sequence[int]] | None = None,
    word_totals: Any = None,
    start: Any = None,
    labels: Sequence[str | None] | None = None,
    checkpoint: Any = None,
    n_jobs: int | None = None,
) -> Any:
    """Return the unfitted estimator of a model of the command line.

    Raises InputError if there is no such model, an option does not belong to it, or options contradict each other.

    n_topics : of a tree, the number of leaves; None: `branching` determines the tree. depth : levels below the root;
    None: 2, or 1 if the tree has fewer than four leaves. branching : children of a node, one number or one for each
    level; None: about the same number in all levels. seeds : columns of the seed words of each named topic, which come
    first. word_totals : number of tokens of each word, for `seeds`. start : P(w|z) from which the fit starts. labels :
    label of each document, or None.
    """
    model = text_model(name)
    given = {
        "background": background or None,
        "depth": depth,
        "branching": branching,
        "seeds": seeds or None,
        "start": start,
        "labels": labels,
        "checkpoint": checkpoint,
    }
    for option, value in given.items():
        if value is not None and option not in model.options:
            owners = " or ".join(named("model", other.name) for other in MODELS.values() if option in other.options)
            raise InputError(
                f"{named(option)} is not an option of {named('model', name)}: leave it out, or use {owners}."
            )
    settings: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs}
    if max_iter is not None:
        settings["max_iter"] = check_integer("max_iter", max_iter, least=1)
    if start is not None:
        settings["init"] = (None, start)
    make: _Maker = _MAKERS.get(name, _plain)
    return make(model, n_topics, settings, {**given, "word_totals": word_totals})


def text_model(name: str) -> TextModel:
    """Return the model of this name. Raise InputError if there is none."""
    if name not in MODELS:
        raise InputError(f"{named('model')} must be one of {', '.join(MODELS)}, got {name!r}.")
    return MODELS[name]


def fits_shards(estimator: Any) -> bool:
    """Return whether an estimator can be fitted from shards on disk; otherwise it needs all counts in memory."""
    return any(model.from_shards for model in MODELS.values() if model.estimator is type(estimator))


def _plain(model: TextModel, n_topics: int | None, settings: dict[str, Any], options: dict[str, Any]) -> Any:
    return cast(Any, model.estimator)(check_n_topics(n_topics), **settings)


def _plsa(model: TextModel, n_topics: int | None, settings: dict[str, Any], options: dict[str, Any]) -> PLSA:
    K, seeds = check_n_topics(n_topics), options["seeds"]
    if seeds is not None:
        settings = {**settings, "topic_word_prior": seed_prior(seeds, K, options["word_totals"])}
    return PLSA(K, background=options["background"] or 0.0, checkpoint=options["checkpoint"], **settings)


def _nmf(model: TextModel, n_topics: int | None, settings: dict[str, Any], options: dict[str, Any]) -> NMF:
    K, seeds, totals = check_n_topics(n_topics), options["seeds"], options["word_totals"]
    if seeds is not None:
        prior = seed_prior(seeds, K, totals)
        (rng,) = generators(settings["random_state"], 1)
        start = normalize_rows(rng.standard_exponential((K, len(totals))) * np.asarray(totals, dtype=np.float64))
        settings = {**settings, "init": (None, prior.adapt_start(start))}
    return NMF(K, **settings)


def _hierarchical(
    model: TextModel, n_topics: int | None, settings: dict[str, Any], options: dict[str, Any]
) -> HierarchicalPLSA:
    depth, branching = options["depth"], options["branching"]
    if branching is None:
        if n_topics is None:
            raise InputError(
                f"{named('n_topics')} is missing: give the number of leaves of the tree, or {named('branching')}."
            )
        return HierarchicalPLSA(tree=even_tree(check_n_topics(n_topics), depth), **settings)
    per_level = _children_per_level(depth, branching)
    leaves = math.prod(per_level)
    if n_topics is not None and check_n_topics(n_topics) != leaves:
        raise InputError(
            f"{named('n_topics', n_topics)} and {named('branching')} contradict each other: the tree has {leaves} "
            "leaves."
        )
    return HierarchicalPLSA(depth=len(per_level), branching=per_level, **settings)


def _mixture(
    model: TextModel, n_topics: int | None, settings: dict[str, Any], options: dict[str, Any]
) -> MultinomialMixture:
    return MultinomialMixture(check_n_topics(n_topics), n_init=MIXTURE_STARTS, **settings)


def _labels(
    model: TextModel, n_topics: int | None, settings: dict[str, Any], options: dict[str, Any]
) -> TopicClassifier:
    tied = n_label_topics(options["labels"])
    if n_topics is not None and n_topics < tied:
        raise InputError(
            f"{named('n_topics', n_topics)} is too small: the labels need at least {tied} topics: raise it, or leave "
            "it out."
        )
    n_shared = int(any(label is None for label in options["labels"]))
    return TopicClassifier(n_shared=n_shared, n_free=0 if n_topics is None else n_topics - tied, **settings)


def n_label_topics(labels: Sequence[str | None] | None) -> int:
    """Return the number of topics for labels: one for each, and a shared one if a document has none (None)."""
    if labels is None:
        raise InputError(
            f"{named('model', 'labels')} needs labels: give {named('labels_from')}, the column that has them."
        )
    distinct = {label for label in labels if label is not None}
    if not distinct:
        raise InputError(f"{named('labels_from')}: no document has a label: name the column that has the labels.")
    if len(distinct) < 2:
        raise InputError(
            f"{named('labels_from')}: all labels are {distinct.pop()!r}: give documents of at least two labels, or "
            "leave it out."
        )
    return len(distinct) + any(label is None for label in labels)


_Maker = Callable[[TextModel, int | None, dict[str, Any], dict[str, Any]], Any]
_MAKERS: dict[str, _Maker] = {
    "plsa": _plsa,
    "nmf": _nmf,
    "hierarchical": _hierarchical,
    "mixture": _mixture,
    "labels": _labels,
}


def _children_per_level(depth: int | None, branching: int | Sequence[int]) -> list[int]:
    """Return the number of children of a node at each level of a regular tree."""
    if isinstance(branching, int):
        branching = [branching] * check_integer("depth", DEPTH if depth is None else depth, least=1)
    per_level = [check_integer("branching", children, least=1) for children in branching]
    if not per_level or (depth is not None and len(per_level) != depth):
        raise InputError(
            f"{named('depth', depth)} and {named('branching')} contradict each other: give one number of children, or "
            "one for each level."
        )
    if math.prod(per_level) > MAX_NODES:
        raise InputError(f"{named('branching')} makes a tree of more than {MAX_NODES} nodes: choose smaller numbers.")
    return per_level


def even_tree(n_leaves: int, depth: int | None = None) -> list[int]:
    """Return the parent of each node, -1 for the root, of a tree whose leaves are spread evenly.

    Level i of `depth` levels has about n_leaves^(i / depth) nodes, so nodes of all levels have about the same number of
    children. Within a level these numbers differ by at most one. The default depth is 2, or 1 for fewer than four
    leaves.
    """
    if depth is None:
        depth = DEPTH if n_leaves >= 2**DEPTH else 1
    depth = check_integer("depth", depth, least=1)
    if depth > 1 and n_leaves < 2 ** min(depth, 64):
        raise InputError(
            f"{named('depth', depth)} needs at least 2^{depth} topics: choose a smaller {named('depth')} or a larger "
            f"{named('n_topics')}."
        )
    if 2 * n_leaves > MAX_NODES:
        raise InputError(f"{named('n_topics')} is too large for a tree: choose at most {MAX_NODES // 2}.")
    parents, level = [-1], [0]
    for number in range(1, depth + 1):
        size = max(round(n_leaves ** (number / depth)), 2 * len(level)) if number < depth else n_leaves
        nodes = list(range(len(parents), len(parents) + size))
        parents.extend(level[position * len(level) // size] for position in range(size))
        level = nodes
    return parents
