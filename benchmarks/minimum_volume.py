"""Topics of small volume against maximum likelihood, by the distance to the true topics.

Planted mixtures without pure documents, whose topics share all words; two synthetic sets of mutational signatures; and
a hyperspectral scene with reference spectra. The distance is the mean total variation between matched topics. The
default strength, 0.25, was chosen with seeds 0 and 1 of the planted mixtures, every fifth pixel of the scene, and both
sets of signatures; the seeds below are others.

    python benchmarks/minimum_volume.py [--seeds 3] [--strengths 0.1 0.25 0.5 1]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from common import DATA, THREADS, describe_machine, require_file
from polyseme import PLSA
from polyseme.metrics import align
from polyseme.priors import MinimumVolume

SEED = 100
PLANTED = (
    {"n_topics": 4, "n_docs": 300, "tokens": 5000, "purest": 0.75, "evenness": 3.0},
    {"n_topics": 4, "n_docs": 600, "tokens": 300, "purest": 0.8, "evenness": 3.0},
    {"n_topics": 8, "n_docs": 400, "tokens": 2000, "purest": 0.8, "evenness": 1.0},
    {"n_topics": 4, "n_docs": 300, "tokens": 2000, "purest": 1.0, "evenness": 1.0},
)


def planted(seed: int, n_topics: int, n_docs: int, tokens: int, purest: float, evenness: float) -> tuple[Any, Any]:
    """Return counts of 60 words and their topics."""
    rng = np.random.default_rng(SEED + seed)
    topics = rng.dirichlet(np.full(60, evenness), n_topics)
    weights = rng.dirichlet(np.full(n_topics, 0.5), 20 * n_docs)
    weights = weights[weights.max(axis=1) <= purest][:n_docs]
    return rng.poisson(tokens * weights @ topics), topics


def signatures(name: str) -> tuple[Any, Any]:
    with np.load(require_file(DATA / "signatures" / f"{name}.npz"), allow_pickle=False) as data:
        return data["counts"], data["signatures"]


def scene() -> tuple[Any, Any]:
    """Return pixels x bands of the Samson scene, and the spectra of its materials."""
    with np.load(require_file(DATA / "nontext" / "hsi_samson.npz"), allow_pickle=False) as data:
        return 100 * np.maximum(data["Y"][2::5], 0), data["E"]


def distances(X: Any, topics: Any, strengths: list[float]) -> list[float]:
    """Return the distance without a prior, and that at each strength."""
    topics = topics / topics.sum(axis=1, keepdims=True)
    found = []
    for prior in (None, *map(MinimumVolume, strengths)):
        model = PLSA(len(topics), topic_word_prior=prior, random_state=0, tol=1e-7, max_iter=2000, n_jobs=THREADS)
        found.append(float(align(topics, model.fit(X).components_)[1].mean()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strengths", type=float, nargs="+", default=[0.1, 0.25, 0.5, 1.0])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    describe_machine()
    print(f"| data | likelihood | {' | '.join(map(str, arguments.strengths))} |")
    print("|---" * (len(arguments.strengths) + 2) + "|")
    for number, kind in enumerate(PLANTED):
        rows = [distances(*planted(seed, **kind), arguments.strengths) for seed in range(arguments.seeds)]
        print(f"| planted {number} | {' | '.join(f'{value:.4f}' for value in np.mean(rows, axis=0))} |", flush=True)
    for name, data in (("SP_5", signatures("SP_5")), ("scenario8", signatures("scenario8")), ("Samson", scene())):
        values = distances(*data, arguments.strengths)
        print(f"| {name} | {' | '.join(f'{value:.4f}' for value in values)} |", flush=True)


if __name__ == "__main__":
    main()
