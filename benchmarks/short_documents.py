"""Whether `polyseme.uncertainty` notices that documents are too short for the number of topics.

Topics of short documents are blurred, by more than documents drawn from the model show, so intervals are too short.
`Resampling.shortness` is the concentration of the weights of documents, divided by the number of tokens. For planted
corpora of many shapes (other than those of `interval_coverage.py`), a row has it, the coverage of 95% intervals of
P(w|z) above 0.001, P(z), shares of groups and their differences without and with what it adds to the bias, the slope
of the estimated differences on the true ones, and the share of the corpora with a note.

    python benchmarks/short_documents.py [--repetitions 3] [--cells 16]
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp

from common import describe_machine
from interval_coverage import KeptFits, covered, draw
from polyseme import PLSA
from polyseme.uncertainty.bootstrap import intervals_of

CELLS = (
    (15, 4000, 25), (10, 8000, 80), (30, 4000, 40), (10, 8000, 40), (10, 8000, 20), (15, 4000, 50), (30, 1000, 60),
    (10, 2000, 30), (30, 4000, 80), (10, 2000, 60), (15, 1000, 25), (8, 3000, 20), (3, 3000, 20), (12, 1500, 40),
    (15, 4000, 100), (30, 2000, 150),
)  # fmt: skip
"""Topics, documents and tokens."""


def figures(n_topics: int, n_documents: int, length: int, seed: int) -> list[float]:
    """Return the figures of one corpus."""
    data = draw(n_topics, n_documents, length, 0, seed)
    topics, means = data["topics"], data["means"]
    model = PLSA(n_topics, init=(None, topics), n_jobs=1).fit(data["X"])
    groups = sp.csr_array(np.array([data["group"] == 0, data["group"] == 1], dtype=float))
    fits = KeptFits(
        model, data["X"], 20, clusters=None, level=0.95, n_simulations=12, random_state=seed, n_jobs=1, progress=None
    )
    found, true_difference = [fits.shortness], means[0] - means[1]
    for shortness in (0.0, fits.shortness):
        fits.__dict__["shortness"] = shortness
        result = intervals_of(fits, model, groups, 10)
        assert result.groups is not None
        difference = result.groups.compare(0, 1)
        found += [
            covered(result.topic_word, topics)[topics > 1e-3].mean(),
            covered(result.topic_weights, means.mean(axis=0)).mean(),
            covered(result.groups.shares, means).mean(),
            covered(difference, true_difference).mean(),
        ]
    return [*found, np.polyfit(true_difference, difference.estimate, 1)[0], len(result.notes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--cells", type=int, default=len(CELLS), help="number of shapes of corpora")
    arguments = parser.parse_args()
    describe_machine()
    columns = [f"{name}{suffix}" for suffix in ("", ", wider") for name in ("P(w|z)", "P(z)", "shares", "differences")]
    print(f"| K | documents | tokens | shortness | {' | '.join(columns)} | slope | noted |\n|{'---|' * 14}")
    for cell in CELLS[: arguments.cells]:
        mean = np.mean([figures(*cell, 6300 + number) for number in range(arguments.repetitions)], axis=0)
        print(f"| {' | '.join(map(str, cell))} | {' | '.join(f'{value:.2f}' for value in mean)} |", flush=True)


if __name__ == "__main__":
    main()
