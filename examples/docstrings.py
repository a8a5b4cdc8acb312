"""Fit topics to the docstrings of installed packages and plot how much each package uses each topic.

Run: .venv/bin/python examples/docstrings.py [PACKAGE ...] [-k 20] [--pictures FOLDER]
Packages are read, not imported. The default is the standard library, NumPy, SciPy and scikit-learn.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polyseme import PLSA, datasets
from polyseme.text import Vectorizer


def picture(path: Path, packages: list[str], shares: np.ndarray, words: list[str]) -> None:
    """Plot the topics as bars, divided by the packages that their tokens come from."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    order = np.argsort(shares.sum(axis=1))
    figure, ax = plt.subplots(figsize=(9, 0.3 * len(order) + 1.2), layout="constrained")
    left = np.zeros(len(order))
    for number, package in enumerate(packages):
        ax.barh(range(len(order)), shares[order, number], left=left, label=package)
        left += shares[order, number]
    ax.set_yticks(range(len(order)), [words[topic] for topic in order], fontsize=8)
    ax.set(xlabel="share of all tokens", title="Topics of docstrings")
    ax.legend(frameon=False, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> tuple[list[str], np.ndarray]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("packages", nargs="*", help="installed packages (the standard library, numpy, scipy, sklearn)")
    parser.add_argument("-k", type=int, default=20, help="number of topics (20)")
    parser.add_argument("--pictures", type=Path, default=Path("pictures"), help="folder for the picture (pictures)")
    options = parser.parse_args(argv)
    if options.packages:
        corpus = datasets.docstrings(options.packages, standard_library=False)
    else:
        corpus = datasets.docstrings()
    vectorizer = Vectorizer(language="english", min_df=5, max_df=0.3)
    X = vectorizer.fit_transform(corpus.texts)
    model = PLSA(options.k, random_state=0).fit(X)
    vocabulary = vectorizer.get_feature_names_out()
    words = [" ".join(vocabulary[row[:5]]) for row in np.argsort(-model.components_, axis=1, kind="stable")]
    packages = sorted(set(corpus.labels))
    mass = model.doc_topic_ * model.doc_weights_[:, np.newaxis]  # P(d,z)
    of = np.array([packages.index(label) for label in corpus.labels])
    shares = np.array([mass[of == number].sum(axis=0) for number in range(len(packages))]).T
    print(f"{X.shape[0]} docstrings, {X.shape[1]} words")
    for topic in np.argsort(-shares.sum(axis=1)):
        largest = packages[shares[topic].argmax()]
        purity = shares[topic].max() / shares[topic].sum()
        print(f"{shares[topic].sum():6.1%}  {words[topic]:50s} {purity:.0%} {largest}")
    picture(options.pictures / "docstrings.png", packages, shares, words)
    return packages, shares


if __name__ == "__main__":
    main()
