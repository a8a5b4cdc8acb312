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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

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
from polyseme.io.files import TEXT, check_regular, list_of, mapping_to, parse_json
from polyseme.kernels import normalize_rows
from polyseme.options import named
from polyseme.priors import SeedWords
from polyseme.solvers.base import generators
from polyseme.utils import check_integer, check_n_topics

SEED_SHARE = 0.01
"""Pseudo-counts of a seed word, as a share of the tokens of an average topic.

One word in a hundred is the frequency of the most frequent words of a topic, so a seed word counts as much as these
words in a corpus of any size. On a third of 20 Newsgroups (20 topics, three seed words for each of nine groups, mean of
four seeds), the share of the named group in its topic and the share of the group that the topic covers were 0.71 and
0.69 without the prior, 0.75 and 0.65 with this value, and 0.82 and 0.54 with three times this value.
"""
MAX_SEED_FILE = 1 << 24
"""Largest file of seed words, in bytes."""
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

    @property
    def edits_topics(self) -> bool:
        """Whether topics can be merged and deleted, and words banned."""
        return self.estimator.edits_topics

    @property
    def refits(self) -> bool:
        """Whether a fit can start from the present topics."""
        return self.estimator.refits


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

    Parameters
    ----------
    name : str
        A key of `MODELS`.
    n_topics : int or None
        Number of topics; of a tree, the number of leaves. None: `branching` determines the tree.
    background : float, default=0.0
        Share of the background (PLSA only).
    max_iter : int, default=None
        Maximum number of iterations. None: the default of the model.
    random_state : int, default=0
        Seed of the start.
    depth : int, default=None
        Levels of a tree below its root. None: 2, or 1 if the tree has fewer than four leaves.
    branching : int or sequence of int, default=None
        Number of children of a node of a tree, one number or one for each level. None: the leaves are spread evenly, so
        that nodes of all levels have about the same number of children.
    seeds : mapping of str to sequence of int, default=None
        Columns of the seed words of each named topic (`seed_columns`). The named topics come first, in this order; the
        other topics are free.
    word_totals : array of shape (n_words,), default=None
        Number of tokens of each word in the documents; `seeds` needs them.
    start : array of shape (n_topics, n_words), default=None
        P(w|z) from which the fit starts. None: the start of the estimator's default.
    labels : sequence of str or None, default=None
        Label of each document; None if it has none (model "labels" only).
    checkpoint : path-like or Checkpoint, default=None
        Where the state of the fit is stored (models with `takes_checkpoint` only).
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    estimator
        The estimator.

    Raises
    ------
    InputError
        If there is no such model, an option does not belong to it, or options contradict each other.
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
    """Return the model of this name.

    Parameters
    ----------
    name : str
        A key of `MODELS`.

    Returns
    -------
    TextModel
        The model.
    """
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
    """Return the number of topics for labels: one for each, and a shared one if some documents have no label.

    Parameters
    ----------
    labels : sequence of str or None
        Label of each document; None if it has none.

    Returns
    -------
    int
        Number of topics.
    """
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
    """Return the parents of the nodes of a tree whose leaves are spread evenly.

    Level i of `depth` levels has about n_leaves^(i / depth) nodes, so nodes of all levels have about the same number of
    children. Within a level these numbers differ by at most one.

    Parameters
    ----------
    n_leaves : int
        Number of leaves.
    depth : int, default=None
        Number of levels below the root. None: 2, or 1 for fewer than four leaves.

    Returns
    -------
    list of int
        The parent of each node, -1 for the root.
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


# seed words


class SeedColumns(NamedTuple):
    """Seed words as columns of a vocabulary."""

    columns: dict[str, list[int]]
    """Columns of the seed words of each named topic."""
    unknown: dict[str, list[str]]
    """Seed words of named topics that the vocabulary does not have."""

    @property
    def notes(self) -> list[str]:
        """A sentence about each topic with unknown words."""
        rules = f"{named('min_df')}, {named('max_df')}, stop words"
        return [
            f"{named('seeds')}: the documents do not have these words of {name!r}, or they are not counted ({rules}): "
            f"{', '.join(words)}."
            for name, words in self.unknown.items()
        ]


def checked_seeds(seeds: Any) -> dict[str, list[str]] | None:
    """Return the argument `seeds` of `polyseme.fit` as JSON values.

    Parameters
    ----------
    seeds : mapping of str to sequence of str or None
        Seed words of each named topic.

    Returns
    -------
    dict of str to list of str, or None
        The same words.

    Raises
    ------
    InputError
        If `seeds` has another type.
    """
    if seeds is None:
        return None
    if not isinstance(seeds, Mapping):
        raise InputError(
            f'{named("seeds")} must be names with their words, {{"Sport": ["match", "team"]}}, got {seeds!r}.'
        )
    for name, words in seeds.items():
        wrong = isinstance(words, str) or not isinstance(words, Iterable)
        if wrong or not isinstance(name, str) or not all(isinstance(word, str) for word in words):
            raise InputError(f"{named('seeds')}: the words of {name!r} must be a list of strings, got {words!r}.")
    return {name: list(words) for name, words in seeds.items()}


def seed_columns(seeds: Mapping[str, Sequence[str]], vectorizer: Any) -> SeedColumns:
    """Find the seed words of named topics in the vocabulary of a vectorizer.

    The vectorizer counts a seed word like a document, with the same case, language, stems and phrases. If a seed of
    several words is not a phrase of the vocabulary, each of its words is a seed word.

    Parameters
    ----------
    seeds : mapping of str to sequence of str
        Seed words of each named topic, in the order of the topics.
    vectorizer : fitted vectorizer
        The vectorizer that counted the documents.

    Returns
    -------
    SeedColumns
        Columns of the words of each topic, and its words that are unknown.

    Raises
    ------
    InputError
        If a topic has no known word, or two topics have the same word.
    """
    if not seeds:
        raise InputError(f"{named('seeds')} has no topics: give at least one name with its words.")
    words = [(name, word) for name, given in seeds.items() for word in given]
    counts = vectorizer.transform([word for _, word in words])
    columns: dict[str, list[int]] = {name: [] for name in seeds}
    owners: dict[int, tuple[str, str]] = {}
    unknown: dict[str, list[str]] = {}
    for row, (name, word) in enumerate(words):
        word_columns = counts[[row]].indices.tolist()
        if not word_columns:
            unknown.setdefault(name, []).append(word)
        for column in word_columns:
            other, earlier = owners.setdefault(column, (name, word))
            if other != name:
                same = repr(word) if word == earlier else f"{word!r} (counted as the same word as {earlier!r})"
                raise InputError(
                    f"{named('seeds')}: {same} is given for {other!r} and for {name!r}: give it for one topic."
                )
            if column not in columns[name]:
                columns[name].append(column)
    empty = [name for name, known in columns.items() if not known]
    if empty:
        given = ", ".join(seeds[empty[0]]) or "no words"
        raise InputError(
            f"{named('seeds')}: none of the words of {empty[0]!r} ({given}) occurs in the documents: give other words."
        )
    return SeedColumns(columns, unknown)


def seed_prior(seeds: Mapping[str, Sequence[int]], n_topics: int, word_totals: Any) -> SeedWords:
    """Return the prior that guides the first topics by their seed words.

    Parameters
    ----------
    seeds : mapping of str to sequence of int
        Columns of the seed words of each named topic.
    n_topics : int
        Number of topics.
    word_totals : array of shape (n_words,)
        Number of tokens of each word in the documents.

    Returns
    -------
    SeedWords
        The prior, with `SEED_SHARE` of the tokens of an average topic for each seed word.
    """
    if len(seeds) > n_topics:
        raise InputError(
            f"{named('seeds')} names {len(seeds)} topics, but {named('n_topics', n_topics)}: raise {named('n_topics')}."
        )
    if word_totals is None:
        raise InputError(f"{named('seeds')} needs word_totals, the number of tokens of each word.")
    strength = SEED_SHARE * float(np.sum(word_totals)) / n_topics
    return SeedWords({topic: list(columns) for topic, columns in enumerate(seeds.values())}, None, strength)


def read_seeds(path: str | PathLike[str]) -> dict[str, list[str]]:
    """Read the seed words of named topics from a file.

    The file is a JSON object, {"Sport": ["match", "team"]}, or UTF-8 text with a line for each topic, "Sport: match,
    team". Empty lines and lines that start with # are ignored.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict of str to list of str
        Seed words of each topic, in the order of the file.

    Raises
    ------
    InputError
        If the file cannot be read, or a line is wrong; the message names the line.
    """
    path = Path(path)
    try:
        check_regular(path)
        if path.stat().st_size > MAX_SEED_FILE:
            raise ValueError(f"it is larger than {MAX_SEED_FILE >> 20} MiB")
        text = path.read_bytes().decode("utf-8-sig")
        seeds = _seeds_of_json(text) if text.lstrip().startswith("{") else _seeds_of_lines(text)
    except OSError as error:
        raise InputError(f"{named('seeds')}: {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise InputError(f"{named('seeds')}: line {line} of {path} is not UTF-8: save the file as UTF-8.") from None
    except ValueError as error:
        raise InputError(f"{named('seeds')}: {path} is not a file of seed words: {error}.") from None
    if not seeds:
        raise InputError(f"{named('seeds')}: {path} has no topics: write lines such as Sport: match, team.")
    return seeds


def _seeds_of_json(text: str) -> dict[str, list[str]]:
    content = parse_json(text)
    mapping_to(list_of(TEXT)).require("the file", content)
    seeds = {name.strip(): [word.strip() for word in words if word.strip()] for name, words in content.items()}
    if len(seeds) < len(content):
        raise ValueError("a name occurs twice")
    for name, words in seeds.items():
        if not name or not words:
            raise ValueError(f"the topic {name!r} needs a name and at least one word")
    return seeds


def _seeds_of_lines(text: str) -> dict[str, list[str]]:
    seeds: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, rest = line.partition(":")
        name, words = name.strip(), [word.strip() for word in rest.split(",") if word.strip()]
        if not (colon and name and words):
            raise ValueError(f"line {number} must be a name, a colon and words, such as Sport: match, team")
        if name in seeds:
            raise ValueError(f"line {number} repeats the topic {name!r}")
        seeds[name] = words
    return seeds
