"""Decompose images of faces into parts with PLSA: pixels are words, and brightness is a count.

Run: .venv/bin/python examples/faces.py [FACES.npz] [-k 40] [--pictures FOLDER]
The file contains X (images x pixels, square non-negative images) and y (the person). By default the script uses the
file in POLYSEME_DATA.

An image is a mixture of K images. The mixture weights describe a face. They are evaluated by nearest-neighbor
recognition of the person, and compared with pixels and principal components.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances

from polyseme import PLSA

DATA = Path(os.environ.get("POLYSEME_DATA", Path(__file__).parents[2] / "shared" / "data"))


def recognition_rate(vectors: np.ndarray, people: np.ndarray) -> float:
    """Return the share of images whose nearest neighbor shows the same person."""
    distances = pairwise_distances(vectors)
    np.fill_diagonal(distances, np.inf)
    return float((people[distances.argmin(axis=1)] == people).mean())


def picture(path: Path, faces: np.ndarray, rebuilt: np.ndarray, parts: np.ndarray, order: str) -> None:
    """Plot two faces with their reconstructions, and the parts."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    side = round(faces.shape[1] ** 0.5)
    shown = [faces[0], rebuilt[0], faces[-1], rebuilt[-1], *parts[:20]]
    titles = ["a face", "rebuilt", "a face", "rebuilt", *(f"part {number}" for number in range(len(parts[:20])))]
    figure, axes = plt.subplots(4, 6, figsize=(8, 6), layout="constrained")
    for ax in axes.flat:
        ax.axis("off")
    for ax, pixels, title in zip(axes.flat, shown, titles, strict=False):
        ax.imshow(pixels.reshape((side, side), order=order), cmap="gray")
        ax.set_title(title, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, default=DATA / "nontext" / "olivetti.npz")
    parser.add_argument("-k", type=int, default=40, help="number of parts (40)")
    parser.add_argument("--order", choices=("C", "F"), default="F", help="pixels by rows (C) or columns (F, default)")
    parser.add_argument("--pictures", type=Path, default=Path("pictures"), help="folder for the picture (pictures)")
    options = parser.parse_args(argv)
    if not options.file.is_file():
        raise SystemExit(
            f"There is no {options.file}: pass a file, or set POLYSEME_DATA to the folder with the "
            "data (docs/benchmarks.md says where they are)."
        )
    with np.load(options.file) as file:
        X, people = np.asarray(file["X"], dtype=np.float32), np.asarray(file["y"])
    model = PLSA(options.k, random_state=0, tol=2e-3).fit(X)
    rebuilt = model.doc_topic_ @ model.components_ * X.sum(axis=1, keepdims=True)
    result = {
        "pixels": recognition_rate(X, people),
        "PLSA": recognition_rate(np.sqrt(model.doc_topic_), people),  # Hellinger distance between distributions
        "principal components": recognition_rate(PCA(options.k, random_state=0).fit_transform(X), people),
        "error": float(((X - rebuilt) ** 2).sum() / (X**2).sum()),
    }
    print(f"{X.shape[0]} pictures of {len(set(people.tolist()))} people, {options.k} parts")
    for name in ("pixels", "PLSA", "principal components"):
        print(f"{name:22s} {result[name]:.1%} of the pictures recognized by their nearest neighbor")
    print(f"{result['error']:.2%} of the energy is not rebuilt")
    picture(options.pictures / "faces.png", X, rebuilt, model.components_, options.order)
    return result


if __name__ == "__main__":
    main()
