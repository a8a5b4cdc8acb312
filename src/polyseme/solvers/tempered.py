"""Tempered EM: posteriors raised to a power beta.

P(z|d,w) ∝ (theta_dz phi_zw)^beta, followed by the usual M-step. At a fixed beta the free energy
F_beta = (1/beta) sum x log sum_z (theta phi)^beta never decreases. The likelihood, which is reported too, can decrease.
Folding in uses the beta of the fit.

References
----------
T. Hofmann. Probabilistic latent semantic indexing. SIGIR 1999.
E. Gaussier and C. Goutte. Relation between PLSA and NMF and implications. SIGIR 2005. Section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array
from polyseme.solvers.ascent import EMRun
from polyseme.solvers.base import FitProblem, MakeStart, Requirement, Snapshot, Solver, SolverRun
from polyseme.solvers.early_stopping import hold_out_tokens
from polyseme.utils import as_seed

_SAME_TOPIC = 0.05
"""Topics at a total variation distance of at most this count as equal."""


@dataclass(frozen=True)
class Tempered(Solver):
    """EM at one beta.

    Parameters
    ----------
    beta : float, default=0.9
        Power of the posteriors. Values below 1 smooth, 1 is plain EM. Above 1 the weights of a document have several
        maxima, so that `doc_topic_` starts from the weights of the fit and `transform` from uniform weights; and powers
        of small probabilities may be zero in the dtype of the fit, where the objective is -inf: use float64.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.solvers import Tempered
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, solver=Tempered(0.9), random_state=0, tol=0.1).fit(X)
    >>> model.temperature_
    0.9
    """

    name: ClassVar[str] = "tempered"
    init: ClassVar[str] = "random"
    resumable: ClassVar[bool] = True
    beta: float = 0.9

    def check(self) -> None:
        _check_beta(self.beta)

    def begin(self, problem: FitProblem, theta: Any, phi: Any) -> SolverRun:
        return EMRun(_at(problem, self.beta), theta, phi)

    def resume(self, problem: FitProblem, state: Snapshot) -> SolverRun:
        return EMRun.resumed(_at(problem, self.beta), state)


@dataclass(frozen=True)
class HeldOutTempered(Solver):
    """Tempered EM with Hofmann's schedule: beta decreases when held-out tokens stop becoming more probable.

    EM runs at beta = 1 on the tokens that are not held out, until `patience` iterations have not made a held-out token
    more probable by `least_gain`. Then it continues from the best point at `shrink` * beta, and so on. The schedule
    ends at the first beta without such a gain. The result is the best point after the start; the start itself was
    computed from the frequencies of all words, the held-out ones included. The schedule ends by itself, so the limit of
    iterations is higher than in other solvers: 3000, unless the estimator has a `max_iter`.

    Parameters
    ----------
    held_out : float, default=0.1
        Share of the tokens of every document that is held out.
    shrink : float, default=0.9
        Factor from one beta to the next.
    smoothing : float, default=0.01
        Weight of the unigram in the held-out probability. Without it a single zero would decide the score.
    patience : int, default=5
        Iterations without a gain after which beta decreases. A random start may need 10: its score improves only after
        a few iterations.
    random_state : int, RandomState or Generator, default=0
        Seed of the choice of held-out tokens.
    least_gain : float, default=1e-4
        Smallest gain that counts, in nats per held-out token.
    tries : int, default=0
        How often the schedule continues after its end, from the best point and with two betas below all earlier ones.
        The fit ends when this many continuations in a row have not improved the best point. Many topics for few tokens
        need it: beta = 0.9 can still overfit where 0.6 does not. 0 is Hofmann's schedule.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.solvers import HeldOutTempered
    >>> X = synthetic_corpus(100, n_topics=3, n_words=50, random_state=0).counts()
    >>> PLSA(3, solver=HeldOutTempered(shrink=0.8, patience=2), random_state=0).fit(X).solver_
    'held-out-tempered'
    """

    name: ClassVar[str] = "held-out-tempered"
    init: ClassVar[str] = "random"
    requires: ClassVar[frozenset[Requirement]] = frozenset({Requirement.IN_MEMORY})
    holds_out: ClassVar[bool] = True
    max_iter: ClassVar[int] = 3000
    held_out: float = 0.1
    shrink: float = 0.9
    smoothing: float = 0.01
    patience: int = 5
    random_state: int = 0
    least_gain: float = 1e-4
    tries: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "random_state", as_seed(self.random_state))

    def check(self) -> None:
        if not 0 < self.held_out < 1 or not 0 < self.shrink < 1 or not 0 < self.smoothing < 1:
            raise InputError("HeldOutTempered: held_out, shrink and smoothing must each be between 0 and 1.")
        if self.patience < 1 or not self.least_gain >= 0:
            raise InputError("HeldOutTempered: patience must be at least 1, and least_gain at least 0.")
        if self.tries < 0:
            raise InputError(f"HeldOutTempered: tries must be at least 0, got {self.tries!r}.")

    def begin(self, problem: FitProblem, theta: Array, phi: Array) -> SolverRun:
        return HeldOutRun(self, problem, lambda *_: (theta, phi))

    def begin_from(self, problem: FitProblem, start: MakeStart) -> SolverRun:
        return HeldOutRun(self, problem, start)


@dataclass(frozen=True)
class Annealed(Solver):
    """EM along a sequence of betas, then at the last one.

    Increasing betas are deterministic annealing: at a low beta topics become equal, and as beta increases they
    separate. The number of different topics at the end of each stage, in the attribute `annealing_` of the estimator,
    suggests a number of components. Decreasing betas are inverse annealing.

    Parameters
    ----------
    start : float, default=0.6
        First beta.
    stop : float, default=1.0
        Last beta.
    stages : int, default=9
        Number of betas, evenly spaced.
    steps : int, default=10
        Iterations per beta.
    noise : float, default=0.01
        Relative noise on the topics at the start of a stage, so that equal topics can separate.
    random_state : int, RandomState or Generator, default=0
        Seed of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.solvers import Annealed
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, solver=Annealed(stages=3, random_state=0), random_state=0, tol=0.1).fit(X)
    >>> model.solver_
    'annealed'
    """

    name: ClassVar[str] = "annealed"
    init: ClassVar[str] = "random"
    requires: ClassVar[frozenset[Requirement]] = frozenset({Requirement.IN_MEMORY})
    start: float = 0.6
    stop: float = 1.0
    stages: int = 9
    steps: int = 10
    noise: float = 0.01
    random_state: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "random_state", as_seed(self.random_state))

    def check(self) -> None:
        if self.stages < 1 or self.steps < 1 or not 0 <= self.noise < 1:
            raise InputError("Annealed: stages and steps must be at least 1, and noise at least 0 and below 1.")
        _check_beta(self.start)
        _check_beta(self.stop)

    def begin(self, problem: FitProblem, theta: Array, phi: Array) -> SolverRun:
        return AnnealedRun(self, problem, theta, phi)


class _ScheduledRun(SolverRun):
    """A run whose point is that of the current EM run."""

    _inner: EMRun

    def _set_inner(self, inner: EMRun) -> None:
        """Set the EM run, and the model, which has its beta."""
        self._inner, self.model = inner, inner.model

    @property
    def theta(self) -> Array:
        return self._inner.theta

    @property
    def phi(self) -> Array:
        return self._inner.phi


class HeldOutRun(_ScheduledRun):
    """A fit with `HeldOutTempered`: one descent of beta, and further ones as `tries` allows."""

    _descent_best: EMRun
    _descent_score: float
    _reference: float
    _improved_at_this_beta: bool
    _waited: int

    def __init__(self, settings: HeldOutTempered, problem: FitProblem, start: MakeStart) -> None:
        self._settings = settings
        tokens = hold_out_tokens(problem.corpus, settings.held_out, settings.random_state, settings.smoothing)
        self._problem, self._token_score = problem._replace(corpus=tokens.corpus), tokens.score
        self._best: EMRun | None = None  # of the earlier descents
        self._best_score = -np.inf
        self._failures = 0
        self._lowest_beta = 1.0
        self._descend(1.0, *start(tokens.corpus, None))
        self._descent_score = self._reference = -np.inf  # the start is not a candidate: it was computed from all words
        self.report = self._inner.report._replace(residual=float("inf"))

    @property
    def score(self) -> float:
        """Return the best held-out score. The free energies of different betas cannot be compared."""
        return max(self._best_score, self._descent_score)

    def remaining(self, values: Sequence[float]) -> float:
        """Return -infinity once the schedule has ended; there is no tolerance."""
        return float("-inf") if self.exhausted else float("inf")

    def advance(self) -> None:
        inner = EMRun(self._problem._replace(model=self.model), *self._inner.next_factors)
        score = self._token_score(inner)
        self._waited += 1
        if score > self._descent_score:
            self._descent_best, self._descent_score = inner, score
        if score > self._reference + self._settings.least_gain:
            self._reference, self._improved_at_this_beta, self._waited = score, True, 0
            self._set_inner(inner)
        elif self._waited < self._settings.patience:
            self._set_inner(inner)
        elif self._improved_at_this_beta:
            beta = self.model.temperature * self._settings.shrink
            self._set_inner(self._at_beta(beta, self._descent_best.theta, self._descent_best.phi))
            self._reference, self._improved_at_this_beta, self._waited = self._descent_score, False, 0
        else:
            self._end_descent()
        self.report = self._inner.report._replace(residual=float("inf"))

    def _descend(self, beta: float, theta: Array, phi: Array) -> None:
        """Start at this beta; a lower one follows even if this one brings no gain."""
        self._set_inner(self._at_beta(beta, theta, phi))
        self._descent_best, self._descent_score = self._inner, self._token_score(self._inner)
        self._reference = self._descent_score
        self._improved_at_this_beta = True
        self._waited = 0

    def _end_descent(self) -> None:
        """Start the next descent from the best point, or end the fit there."""
        if self._best is None or self._descent_score > self._best_score:
            self._best, self._best_score, self._failures = self._descent_best, self._descent_score, 0
        else:
            self._failures += 1
        if self._failures >= self._settings.tries:
            self._set_inner(self._best)
            self.exhausted = True
        else:
            self._descend(self._lowest_beta * self._settings.shrink, self._best.theta, self._best.phi)

    def _at_beta(self, beta: float, theta: Array, phi: Array) -> EMRun:
        self._lowest_beta = min(self._lowest_beta, beta)
        return EMRun(_at(self._problem, beta), theta, phi)


class AnnealedRun(_ScheduledRun):
    """A fit with `Annealed`."""

    def __init__(self, settings: Annealed, problem: FitProblem, theta: Array, phi: Array) -> None:
        self._settings, self._problem = settings, problem
        self._rng = np.random.default_rng(settings.random_state)
        self._betas = [float(beta) for beta in np.linspace(settings.start, settings.stop, settings.stages)]
        self._iteration = 0
        self.stages: list[tuple[float, int]] = []
        """(beta, number of different topics) at the end of each stage."""
        self._set_inner(EMRun(_at(problem, self._betas[0]), theta, phi))
        self.report = self._inner.report._replace(residual=float("inf"))

    @property
    def attributes(self) -> dict[str, Array]:
        return {"annealing_": np.array(self.stages, dtype=np.float64).reshape(-1, 2)}

    def advance(self) -> None:
        self._iteration += 1
        stage, within = divmod(self._iteration, self._settings.steps)
        theta, phi = self._inner.next_factors
        if within == 0 and stage <= len(self._betas):
            self.stages.append((self.model.temperature, distinct_topics(phi[:, : self.model.n_topics].T)))
        if within == 0 and stage < len(self._betas):
            self._set_inner(EMRun(_at(self._problem, self._betas[stage]), theta, self._with_noise(phi)))
        else:
            self._inner.advance()
        still_annealing = stage < len(self._betas)
        self.report = self._inner.report._replace(
            residual=float("inf") if still_annealing else self._inner.report.residual
        )

    def remaining(self, values: Sequence[float]) -> float:
        """Return what the fit can still gain at the last beta."""
        return super().remaining(values[self._settings.steps * len(self._betas) :])

    def _with_noise(self, phi: Array) -> Array:
        noisy = phi * self._rng.uniform(1 - self._settings.noise, 1 + self._settings.noise, phi.shape)
        sums = noisy.sum(axis=0)
        return (noisy / np.where(sums > 0, sums, 1)).astype(phi.dtype)


def distinct_topics(topics: Array) -> int:
    """Return the number of topics (rows) that differ from all topics before them."""
    different: list[Array] = []
    for topic in topics:
        if all(0.5 * np.abs(topic - other).sum() > _SAME_TOPIC for other in different):
            different.append(topic)
    return len(different)


def _check_beta(beta: float) -> None:
    if not 0 < beta < float("inf"):
        raise InputError(f"beta must be a finite number above 0, got {beta!r}.")


def _at(problem: FitProblem, beta: float) -> FitProblem:
    """Return the problem at a temperature."""
    return problem._replace(model=replace(problem.model, temperature=beta))
