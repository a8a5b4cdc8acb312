"""The parameters of a Dirichlet prior that variational Bayes integrates over: given, or learned from the fit.

Unlike the members of this room they are no part of an M-step: q(theta_d) is Dirichlet with parameters alpha + expected
counts. Learning them is Minka's maximum likelihood of a Dirichlet ("Estimating a Dirichlet distribution", 2000), with
E log theta in the place of log theta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, polygamma, psi

from polyseme.kernels import Floats

_LEAST, _MOST = 1e-6, 1e6
_MAX_STEPS, _HALVINGS = 100, 40

GIVEN, SYMMETRIC, ASYMMETRIC = "given", "symmetric", "asymmetric"


@dataclass(frozen=True)
class Concentration:
    """alpha (m numbers) of a Dirichlet over m columns; `kind` says how it is learned, if at all."""

    values: Floats
    kind: str = GIVEN

    @property
    def learned(self) -> bool:
        return self.kind != GIVEN

    def improved(self, log_sums: Floats, rows: float) -> Concentration:
        """The alpha that maximises rows (lgamma(sum alpha) - sum lgamma(alpha)) + sum alpha log_sums.

        `log_sums` are sums over so many rows of E log f (m numbers). The function is concave: Newton's steps, halved
        until they rise. A given alpha stays; a symmetric one stays symmetric. Never lower than before.
        """
        if not self.learned or self.values.size == 1:
            return self
        alpha = self.values
        value = _log_density(alpha, log_sums, rows)
        for _ in range(_MAX_STEPS):
            step = _symmetric_step(alpha, log_sums, rows) if self.kind == SYMMETRIC else _step(alpha, log_sums, rows)
            for _ in range(_HALVINGS):
                tried = np.clip(alpha + step, _LEAST, _MOST)
                new = _log_density(tried, log_sums, rows)
                if new > value:
                    break
                step = step / 2
            else:
                break
            small = new - value <= 1e-9 * rows
            alpha, value = tried, new
            if small:
                break
        return replace(self, values=alpha)


def _log_density(alpha: Floats, log_sums: Floats, rows: float) -> float:
    return float(rows * (gammaln(alpha.sum()) - gammaln(alpha).sum()) + (alpha * log_sums).sum())


def _step(alpha: Floats, log_sums: Floats, rows: float) -> Floats:
    """Newton's step; the Hessian is a diagonal plus a constant, so that its inverse takes time m."""
    gradient = rows * (psi(alpha.sum()) - psi(alpha)) + log_sums
    diagonal = -rows * polygamma(1, alpha)
    constant = rows * float(polygamma(1, alpha.sum()))
    shared = (gradient / diagonal).sum() / (1 / constant + (1 / diagonal).sum())
    return np.asarray(-(gradient - shared) / diagonal)


def _symmetric_step(alpha: Floats, log_sums: Floats, rows: float) -> Floats:
    """Newton's step along (1, ..., 1)."""
    m, a = alpha.size, float(alpha[0])
    gradient = rows * m * (psi(m * a) - psi(a)) + log_sums.sum()
    curvature = rows * m * (m * polygamma(1, m * a) - polygamma(1, a))
    return np.full(m, -gradient / curvature if curvature < 0 else 0.0)
