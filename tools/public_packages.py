"""The packages whose names are public: their docstrings are checked, and each has a page in the reference."""

PACKAGES = (
    "polyseme", "polyseme.datasets", "polyseme.explore", "polyseme.layout", "polyseme.losses", "polyseme.metrics",
    "polyseme.plots", "polyseme.priors", "polyseme.retrieval", "polyseme.scale", "polyseme.selection",
    "polyseme.simplex", "polyseme.solvers", "polyseme.text", "polyseme.uncertainty",
)  # fmt: skip
