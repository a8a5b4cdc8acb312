"""Fit topics to the raw texts of 20 Newsgroups and compare them with the newsgroups.

Run: .venv/bin/python examples/newsgroups.py [FILE] [-k 20] [--pictures FOLDER]
FILE is a table with texts and labels (.jsonl, .csv ..., optionally compressed). By default the script uses the file in
POLYSEME_DATA. The fit does not use the labels. A background model explains words that occur everywhere, in addition to
the stop words of the language.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyseme import PLSA
from polyseme.metrics import label_agreement
from polyseme.metrics.clustering import Agreement
from polyseme.text import Vectorizer, read

DATA = Path(os.environ.get("POLYSEME_DATA", Path(__file__).parents[2] / "shared" / "data"))


def shares_of(doc_topic: np.ndarray, labels: list[str]) -> tuple[list[str], np.ndarray]:
    """Return the label names and the mean P(z|d) of the documents of each label (labels x topics)."""
    names = sorted(set(labels))
    label_index = np.array([names.index(label) for label in labels])
    return names, np.array([doc_topic[label_index == number].mean(axis=0) for number in range(len(names))])


def picture(path: Path, names: list[str], shares: np.ndarray, words: list[str]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    order = np.argsort(shares.argmax(axis=0), kind="stable")  # topics along the diagonal
    figure, ax = plt.subplots(figsize=(9, 7), layout="constrained")
    image = ax.imshow(shares[:, order], cmap="Blues", vmin=0)
    ax.set_yticks(range(len(names)), names)
    ax.set_xticks(range(len(order)), [words[topic] for topic in order], rotation=60, ha="right", fontsize=8)
    ax.set_title("P(topic | newsgroup)")
    figure.colorbar(image, ax=ax, shrink=0.7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> tuple[Any, Agreement]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, default=DATA / "text" / "news20.jsonl.gz")
    parser.add_argument("-k", type=int, default=20, help="number of topics (20)")
    parser.add_argument("--min-df", type=int, default=10, help="leave out words that occur in fewer documents (10)")
    parser.add_argument("--background", type=float, default=0.5, help="share of common language in each text (0.5)")
    parser.add_argument("--pictures", type=Path, default=Path("pictures"), help="folder for the picture (pictures)")
    options = parser.parse_args(argv)
    if not options.file.is_file():
        raise SystemExit(
            f"There is no {options.file}: pass a file, or set POLYSEME_DATA to the folder with the "
            "data (docs/benchmarks.md says where they are)."
        )
    documents = list(read(options.file))
    vectorizer = Vectorizer(language="english", min_df=options.min_df, max_df=0.5)
    X = vectorizer.fit_transform(document.text for document in documents)
    print(f"{X.shape[0]} documents, {X.shape[1]} words, {int(X.sum())} tokens")
    model = PLSA(options.k, background=options.background, random_state=0, tol=0.05, max_iter=300).fit(X)
    vocabulary = vectorizer.get_feature_names_out()
    top = np.argsort(-model.components_, axis=1, kind="stable")[:, :8]
    for topic in np.argsort(-model.topic_weights_):
        print(f"{model.topic_weights_[topic]:6.1%}  {' '.join(vocabulary[top[topic]])}")
    labels = [document.label or "" for document in documents]
    found = label_agreement(model.doc_topic_, labels)
    print(f"agreement with the labels: NMI {found.nmi:.3f}, ARI {found.ari:.3f}, purity {found.purity:.3f}")
    names, shares = shares_of(model.doc_topic_, labels)
    picture(options.pictures / "newsgroups.png", names, shares, [" ".join(vocabulary[row[:3]]) for row in top])
    return model, found


if __name__ == "__main__":
    main()
