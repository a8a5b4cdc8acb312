"""The packages whose names are public: their docstrings are checked, and each name has a page in the reference."""

PACKAGES = (
    "polyseme", "polyseme.cells", "polyseme.datasets", "polyseme.explore", "polyseme.losses", "polyseme.metrics",
    "polyseme.plots", "polyseme.priors", "polyseme.retrieval", "polyseme.runs", "polyseme.scale", "polyseme.selection",
    "polyseme.signatures", "polyseme.simplex", "polyseme.solvers", "polyseme.text", "polyseme.uncertainty",
)  # fmt: skip
RESULT_CLASSES = "polyseme.typing"
"""Classes of results, which users see and annotate, but do not construct."""
EXTENDING = "polyseme.extending"
"""The interface for priors, losses and solvers of others."""
