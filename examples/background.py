"""A background language model takes the function words out of the topics: 20 Newsgroups without a stop list.

    python examples/background.py [--share 0.9] [--topics 20]

It needs the counts (counts/newsgroups_fasttopics.npz and .vocab.txt) in the folder that POLYSEME_DATA names. Function
words are those of scikit-learn's English stop list; the fits do not see it.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from polyseme import PLSA

DATA = Path(os.environ.get("POLYSEME_DATA", Path(__file__).parents[1] / ".." / "shared" / "data")) / "counts"
N_TOP = 10


def top_words(model: PLSA, vocabulary: np.ndarray) -> list[list[str]]:
    """The likeliest words of each topic, the largest topic first."""
    order = np.argsort(-model.topic_weights_)
    return [list(vocabulary[np.argsort(-topic, kind="stable")[:N_TOP]]) for topic in model.components_[order]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.9, help="lambda, the background's share of every document")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--max-iter", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counts = DATA / "newsgroups_fasttopics.npz"
    if not counts.is_file():
        raise SystemExit(f"There is no {counts}: set POLYSEME_DATA to the folder that holds the data.")
    X = sp.csr_array(sp.load_npz(counts))
    vocabulary = np.array(counts.with_suffix(".vocab.txt").read_text(encoding="utf-8").split("\n")[: X.shape[1]])
    for share in (0.0, arguments.share):
        model = PLSA(
            arguments.topics,
            background=share,
            random_state=arguments.seed,
            max_iter=arguments.max_iter,
            tol=1e-3,
        ).fit(X.astype(np.float32))
        topics = top_words(model, vocabulary)
        function_words = [sum(word in ENGLISH_STOP_WORDS for word in words) for words in topics]
        print(f"background = {share:g}: {sum(function_words)} of {N_TOP * len(topics)} top words are function words")
        for words in topics:
            print("   ", " ".join(words))
        if share > 0:
            often = np.flatnonzero(model.unigram_ > 5e-3)
            print("share of a frequent word's occurrences that the background explains:")
            for word in often[np.argsort(-model.background_share_[often])][:8]:
                print(f"    {vocabulary[word]:10s} {model.background_share_[word]:.2f}")


if __name__ == "__main__":
    main()
