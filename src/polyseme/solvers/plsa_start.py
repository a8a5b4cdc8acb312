"""Topics of a short fit of PLSA, for models that a start near a good likelihood saves from poor optima."""

from __future__ import annotations

import numpy as np

from polyseme.initialise import named_start
from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.loop import run_to_end
from polyseme.sources.memory import MemorySource

_ITERATIONS, _TOLERANCE = 30, 1e-2


def fitted_factors(source: MemorySource, n_topics: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """theta and phi (padded) of a fit from a random start."""
    model = Model(n_topics)
    fit = run_to_end(
        SCD(), model, source, *named_start("random", source, model, rng),
        max_iter=_ITERATIONS, tol=_TOLERANCE, listeners=[],
    )  # fmt: skip
    if fit is None or fit.interrupted:
        raise KeyboardInterrupt
    return fit.run.theta, fit.run.phi
