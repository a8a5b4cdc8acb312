"""How a fit ended: what every estimator does last."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning


def end_of_fit(estimator: Any, interrupted: bool, max_iter: int, tol: float) -> None:
    """Raises KeyboardInterrupt after Ctrl-C, now that the best model so far is kept; warns of a fit that is not done.

    Called by `fit` itself: the warning names the line that called it.
    """
    if interrupted:
        raise KeyboardInterrupt
    if estimator.converged_:
        return
    residuals = estimator.history_.get("residual")
    if residuals is None:
        why = f"before one added as little as tol={tol:g} nats per token to the bound"
    else:
        why = f"where re-optimising could still gain up to {residuals[-1]:.2g} nats per token (tol={tol:g})"
    warnings.warn(
        f"The fit stopped after max_iter={max_iter} iterations, {why}: raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )
