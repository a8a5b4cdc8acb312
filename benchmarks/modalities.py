"""Documents in two languages: finding the translation of a document by topics alone.

A planted corpus has topics with words in two languages, which share no word. Half of the training documents are in both
languages, the others in one of them. A thousand new documents are in both. The P(z|d) of each is computed from either
language alone, and its partner is searched among the thousand by the Hellinger distance of P(z|d). `Modalities` is
compared with PLSA of the same matrix, whose topics may have different shares of the languages, and with the planted
topics.

    python benchmarks/modalities.py [--corpora 5]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from common import describe_machine, report_figure
from polyseme import PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.priors import Modalities

TOPICS, WORDS, LENGTH, ALPHA = 40, (3000, 2500), 300, 0.1
TRAINING, NEW = 4000, 1000


def corpus(seed: int) -> tuple[list[Any], list[Any]]:
    """Return the topics of each language, and the counts of all documents in it."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(TOPICS, ALPHA), TRAINING + NEW)
    topics = [
        synthetic_corpus(1, n_topics=TOPICS, n_words=size, random_state=2 * seed + place).topic_word
        for place, size in enumerate(WORDS)
    ]
    counts = [np.array([rng.multinomial(LENGTH, p / p.sum()) for p in theta @ phi]) for phi in topics]
    return topics, counts


def found(model: Any, languages: Modalities, english: Any, italian: Any) -> float:
    """Return the share of documents whose partner is the nearest document in the other language, of both directions."""
    one, other = (
        np.sqrt(model.transform(languages.stack(en=english))),
        np.sqrt(model.transform(languages.stack(it=italian))),
    )
    affinity = one @ other.T
    partner = np.arange(len(one))
    return float(((affinity.argmax(axis=1) == partner).mean() + (affinity.argmax(axis=0) == partner).mean()) / 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpora", type=int, default=5)
    options = parser.parse_args()
    describe_machine()
    languages = Modalities({"en": WORDS[0], "it": WORDS[1]})
    shares: dict[str, list[float]] = {"Modalities": [], "PLSA of all columns": [], "planted topics": []}
    print("| corpus | Modalities | PLSA of all columns | planted topics |\n|---|---|---|---|")
    for seed in range(options.corpora):
        topics, (english, italian) = corpus(seed)
        new = english[TRAINING:], italian[TRAINING:]
        english, italian = english[:TRAINING].copy(), italian[:TRAINING].copy()
        english[TRAINING // 2 : 3 * TRAINING // 4] = 0  # these documents are in Italian only
        italian[3 * TRAINING // 4 :] = 0
        X = languages.stack(en=english, it=italian)
        models = {
            "Modalities": PLSA(TOPICS, topic_word_prior=languages, random_state=seed).fit(X),
            "PLSA of all columns": PLSA(TOPICS, random_state=seed).fit(X),
            "planted topics": PLSA.from_topics(np.hstack([topic / 2 for topic in topics])),
        }
        row = []
        for name, model in models.items():
            shares[name].append(found(model, languages, *new))
            row.append(f"{shares[name][-1]:.1%}")
        print(f"| {seed} | {' | '.join(row)} |", flush=True)
    for name, values in shares.items():
        bar = "90%" if name == "Modalities" else ""
        report_figure(
            f"partner found, rank 1 of {NEW:,}, {name}", f"{np.mean(values):.1%} (worst {min(values):.1%})", bar
        )


if __name__ == "__main__":
    main()
