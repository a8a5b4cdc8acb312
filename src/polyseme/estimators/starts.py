"""Several starts of a fit, of which the best is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from polyseme.estimators.validation import random_state_of
from polyseme.progress import fit_progress
from polyseme.solvers.loop import Advancing, Ended, advance_to_end, best_of

R = TypeVar("R", bound=Advancing)


def generators(random_state: Any, n_starts: int) -> Iterator[np.random.Generator]:
    """Random numbers for each start, from a seed as scikit-learn takes it."""
    state = random_state_of(random_state)
    return (np.random.default_rng(state.randint(np.iinfo(np.int32).max)) for _ in range(n_starts))


def best_fit(
    estimator: Any, beginnings: Iterable[Callable[[], R]], *, max_iter: int, tol: float
) -> tuple[Ended[R], bool]:
    """The best of the runs that these functions begin, and whether Ctrl-C ended it; the estimator's listeners hear."""
    with fit_progress(estimator.verbose, max_iter, type(estimator).__name__, estimator.callback) as listeners:
        return best_of(advance_to_end(begin, max_iter=max_iter, tol=tol, listeners=listeners) for begin in beginnings)
