"""The methods of a search: a term score, a latent score, or both by a weight.

    score = (1 - term_weight) latent + term_weight term

as Hofmann (1999) combines PLSI with the cosine of term vectors. bm25, which has no upper bound, is divided by its
largest value for the query first. In PLSI-U the two are mixed within the document (smoothed_scores.py).

What the weights and the models follow: K = 32, 48, 64, 80, 128 with equal weights and term_weight = 1/2 are Hofmann's;
beta and the end of a fit are decided by held-out tokens of the corpus. No query has a say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyseme.errors import InputError
from polyseme.estimators import PLSA
from polyseme.estimators.validation import share, whole_number
from polyseme.retrieval.latent_scores import TopicSpace
from polyseme.retrieval.term_scores import WEIGHTINGS
from polyseme.solvers.look_further import LookFurther

SIZES = (32, 48, 64, 80, 128)
"""Hofmann's numbers of topics"""
_MOST_ITERATIONS = 3000


@dataclass(frozen=True)
class Recipe:
    """What a method is made of."""

    latent: str | None
    """the index's attribute with the latent space; None for term scores alone"""
    term: str
    """tf, tfidf or bm25"""
    term_weight: float
    smoothed: bool = False
    """whether the latent part smooths the documents (PLSI-U)"""


METHODS = {
    "tf": Recipe(None, "tf", 1.0),
    "tfidf": Recipe(None, "tfidf", 1.0),
    "bm25": Recipe(None, "bm25", 1.0),
    "lsi": Recipe("lsi", "tfidf", 0.0),
    "plsi-u": Recipe("model", "tfidf", 0.5, smoothed=True),
    "plsi-q": Recipe("model", "tfidf", 0.5),
    "plsi*": Recipe("average", "tfidf", 0.5),
}

_FIRST = {"lsi": "fit_lsi()", "model": "use_model(model)", "average": "fit_models()"}
"""the call that gives an index each of its spaces"""


def recipe_of(method: str, term: str | None, term_weight: float | None) -> Recipe:
    """The recipe of a method, with another term score or weight where they are given."""
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}.")
    recipe = METHODS[method]
    if recipe.latent is None and (term is not None or term_weight is not None):
        raise InputError(f"{method!r} is a term score itself: term and term_weight are for lsi and plsi methods.")
    if term is not None and term not in WEIGHTINGS:
        raise InputError(f"term must be one of {', '.join(map(repr, WEIGHTINGS))}, got {term!r}.")
    if recipe.smoothed and term == "bm25":
        raise InputError("'plsi-u' smooths the counts of words: its term must be 'tf' or 'tfidf'.")
    weight = recipe.term_weight if term_weight is None else share("term_weight", term_weight)
    return Recipe(recipe.latent, term or recipe.term, weight, recipe.smoothed)


def how_to_get(latent: str) -> str:
    """The call that makes a space that an index does not have yet."""
    return _FIRST[latent]


def fitted_models(
    counts: Any, sizes: Sequence[int], *, random_state: int, n_jobs: int | None, verbose: int
) -> TopicSpace:
    """A model for each number of topics, by tempered EM with tokens held out."""
    if not sizes:
        raise InputError("n_components must name at least one number of topics.")
    checked = [whole_number("n_components", size, least=1) for size in sizes]
    models = [
        PLSA(
            size, solver=LookFurther(), max_iter=_MOST_ITERATIONS, n_jobs=n_jobs, dtype="float32",
            random_state=random_state, verbose=verbose,
        ).fit(counts)
        for size in checked
    ]  # fmt: skip
    return TopicSpace.of(models, counts)
