"""Whether short texts are predicted better by one topic per document than by a mixture of topics in every document."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polyseme.estimators.mixture import MultinomialMixture
from polyseme.estimators.plsa import PLSA
from polyseme.metrics.evaluation import PerplexityReport
from polyseme.selection.reading import shared_topics

_HELD_OUT = 0.2
"""Share of the documents that the fits do not use."""


def compare_mixture(
    X: Any, n_topics: int, *, n_jobs: int | None = None, random_state: int = 0
) -> tuple[PerplexityReport, PerplexityReport]:
    """Return the held-out perplexities of a mixture with one topic per document, and of PLSA.

    Both are fitted to the same four fifths of the documents. In the others, they predict one half of the words of each
    document from the other half; the weights of PLSA are means of a posterior with a learned prior.
    """
    held_out = np.random.default_rng(random_state).random(X.shape[0]) < _HELD_OUT
    training = X[np.flatnonzero(~held_out)]
    start = shared_topics(training, n_topics, n_jobs=n_jobs, random_state=random_state)
    common: dict[str, Any] = {"n_jobs": n_jobs, "random_state": random_state}
    plsa = PLSA(n_topics, init="random" if start is None else (None, start), **common)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [model.fit(training) for model in (MultinomialMixture(n_topics, **common), plsa)]
    mixture, other = (
        model.completion_report(X[np.flatnonzero(held_out)], random_state=random_state) for model in models
    )
    return mixture, other
