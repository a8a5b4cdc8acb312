"""Remove function words from topics with a background language model, on 20 Newsgroups without stop words.

Run: .venv/bin/python examples/background.py [COUNTS.npz] [--share 0.9] [-k 20] [--pictures FOLDER]
COUNTS.npz is a sparse matrix (documents x words) with its vocabulary in COUNTS.vocab.txt. By default the script uses
the file in POLYSEME_DATA. Function words are scikit-learn's English stop words, which the fits do not use.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from polyseme import PLSA

DATA = Path(os.environ.get("POLYSEME_DATA", Path(__file__).parents[2] / "shared" / "data"))
N_TOP = 10


def top_words(model: PLSA, vocabulary: np.ndarray) -> list[list[str]]:
    """Return the most probable words of each topic, starting with the largest topic."""
    order = np.argsort(-model.topic_weights_)
    return [list(vocabulary[np.argsort(-topic, kind="stable")[:N_TOP]]) for topic in model.components_[order]]


def picture(path: Path, function_words: dict[float, list[int]]) -> None:
    """Plot the number of function words among the top words of every topic, without and with the background."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    width = 0.8 / len(function_words)
    for place, (share, counts) in enumerate(function_words.items()):
        ax.bar(
            np.arange(len(counts)) + place * width, sorted(counts, reverse=True), width, label=f"background {share:g}"
        )
    ax.set(xlabel="topics, those with the most function words first", ylabel=f"of {N_TOP} top words")
    ax.set(title="Function words among the top words", xticks=[], ylim=(0, N_TOP + 2))
    ax.legend(frameon=False, loc="upper right", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> dict[float, list[int]]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("counts", nargs="?", type=Path, default=DATA / "counts" / "newsgroups_fasttopics.npz")
    parser.add_argument(
        "--share", type=float, default=0.9, help="lambda, the background's share of each document (0.9)"
    )
    parser.add_argument("-k", type=int, default=20, help="number of topics (20)")
    parser.add_argument("--pictures", type=Path, default=Path("pictures"), help="folder for the picture (pictures)")
    options = parser.parse_args(argv)
    if not options.counts.is_file():
        raise SystemExit(
            f"There is no {options.counts}: pass a file, or set POLYSEME_DATA to the folder with the "
            "data (docs/benchmarks.md says where they are)."
        )
    X = sp.csr_array(sp.load_npz(options.counts)).astype(np.float32)
    names = options.counts.with_suffix(".vocab.txt").read_text(encoding="utf-8").split("\n")
    vocabulary = np.array(names[: X.shape[1]])
    function_words = {}
    for share in (0.0, options.share):
        model = PLSA(options.k, background=share, random_state=0, max_iter=200, tol=1e-3).fit(X)
        topics = top_words(model, vocabulary)
        function_words[share] = [sum(word in ENGLISH_STOP_WORDS for word in words) for words in topics]
        found = sum(function_words[share])
        print(f"background = {share:g}: {found} of {N_TOP * len(topics)} top words are function words")
        for words in topics:
            print("   ", " ".join(words))
    often = np.flatnonzero(model.unigram_ > 5e-3)
    print("share of a frequent word's occurrences that the background explains:")
    for word in often[np.argsort(-model.word_background_[often])][:8]:
        print(f"    {vocabulary[word]:10s} {model.word_background_[word]:.2f}")
    picture(options.pictures / "background.png", function_words)
    return function_words


if __name__ == "__main__":
    main()
