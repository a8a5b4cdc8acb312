"""Plot the topics of a corpus with three words in a triangle, to show that a good fit need not find the true topics.

Run: .venv/bin/python examples/triangle.py [--documents 500] [--pictures FOLDER]
With three words, documents and topics are points in a triangle. Three topics span a smaller triangle that contains the
documents. Every triangle around the documents fits equally well: PLSA finds different ones from different starts, with
the same likelihood. The smallest triangle has the true topics as corners if some documents are nearly pure.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from polyseme import PLSA, RealTopicModel
from polyseme.metrics import align

TOPICS = np.array([[0.7, 0.2, 0.1], [0.15, 0.65, 0.2], [0.2, 0.15, 0.65]])
TOKENS = 20_000


class Found(NamedTuple):
    """Topics, and the largest total variation distance to the true topics."""

    name: str
    topics: np.ndarray
    worst: float


def corners(points: np.ndarray) -> np.ndarray:
    """Return the positions of distributions over three words in the plane."""
    return points @ np.array([[0, 0], [1, 0], [0.5, 3**0.5 / 2]])


def picture(path: Path, shares: np.ndarray, found: list[Found]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.5, 5.5), layout="constrained")

    def outline(points: np.ndarray, label: str, **style: object) -> None:
        around = corners(points)[[0, 1, 2, 0]]
        ax.plot(*around.T, label=label, **style)

    outline(np.eye(3), "all documents of three words", color="black", linewidth=1)
    ax.plot(*corners(shares).T, ".", color="gray", markersize=3, alpha=0.5)
    outline(TOPICS, "the truth", color="black", linestyle=":", linewidth=2.5)
    for number, each in enumerate(found):
        outline(each.topics, f"{each.name}: off by {each.worst:.2f}", color=f"C{number}")
    ax.axis("equal")
    ax.axis("off")
    ax.legend(frameon=False, loc="upper left", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> tuple[list[Found], np.ndarray]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--pictures", type=Path, default=Path("pictures"), help="folder for the picture (pictures)")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    X = rng.multinomial(TOKENS, rng.dirichlet(np.full(3, 0.6), options.documents) @ TOPICS)
    shares = X / TOKENS
    fits = [PLSA(3, random_state=seed, tol=1e-6, max_iter=2000, dtype="float64").fit(X) for seed in range(3)]
    smallest = RealTopicModel(PLSA(3)).fit(shares)
    named = [(f"PLSA, seed {seed}", fit.components_) for seed, fit in enumerate(fits)]
    named.append(("smallest triangle", smallest.components_))
    found = [Found(name, topics, float(align(TOPICS, topics)[1].max())) for name, topics in named]
    likelihoods = np.array([fit.log_likelihood_ for fit in fits])
    print(f"{options.documents} documents of {TOKENS} tokens")
    print("log-likelihood of PLSA, nats per token:", ", ".join(f"{value:.7f}" for value in likelihoods))
    for each in found:
        print(f"{each.name:20s} worst topic off by {each.worst:.3f} (total variation)")
    picture(options.pictures / "triangle.png", shares, found)
    return found, likelihoods


if __name__ == "__main__":
    main()
