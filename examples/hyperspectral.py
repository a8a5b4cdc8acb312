"""Unmix a hyperspectral scene: estimate the materials and their proportions in every pixel.

Run: .venv/bin/python examples/hyperspectral.py [SCENE.npz ...] [--pictures FOLDER]
A scene is a file with Y (pixels x bands), the reference A (pixels x materials, rows sum to one) and E (materials x
bands), and `shape` (rows, columns) for the plot. By default the script uses the scenes in POLYSEME_DATA.

Brightness varies between pixels because of slopes and shadows. Every spectrum is therefore divided by its sum, and the
sum is the weight of the pixel, because dark pixels are mostly noise. Weights are then proportions of light, and they
are compared with the reference abundances in the same form: A_k sum(E_k), normalized.

In some scenes abundances are areas (a dark material counts as much as a bright one), in others proportions of light,
and the files do not say which. Every method therefore computes both, and the better one is shown in the column "as
given". Areas need the brightness of a material, which is taken from its purest pixels. The spectral angle does not
depend on scale.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from polyseme import PLSA, RealTopicModel
from polyseme.simplex import Hull
from polyseme.simplex.corners import Plane, farthest_points

DATA = Path(os.environ.get("POLYSEME_DATA", Path(__file__).parents[2] / "shared" / "data"))
SCENES = ("hsi_samson.npz", "hsi_moffett.npz")


class Unmixed(NamedTuple):
    """Proportions of the light and of the area (pixels x K, rows sum to one), and spectra (K x bands)."""

    light: np.ndarray
    area: np.ndarray
    spectra: np.ndarray


class Scores(NamedTuple):
    by_light: float
    """root-mean-square error of the proportions of light"""
    as_given: float
    """the same for the given abundances, by light or by area, whichever is better"""
    angle: float
    """mean angle between matched spectra, degrees"""


def to_one(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12)


def smallest_simplex(Y: np.ndarray, K: int, *, non_negative: bool | str = "auto") -> Unmixed:
    """Fit RealTopicModel with its defaults: the smallest simplex with its soft margin, then EM."""
    brightness = Y.sum(axis=1)
    model = RealTopicModel(PLSA(K, solver="em"), non_negative=non_negative)
    model.fit(to_one(Y), sample_weight=brightness)
    purest = np.argsort(-model.doc_topic_, axis=0, kind="stable")[: max(1, len(Y) // 100)]
    spectra = model.components_ * brightness[purest].mean(axis=0)[:, np.newaxis]
    return Unmixed(model.doc_topic_, Hull(spectra).weights(Y), spectra)


def pure_pixels(Y: np.ndarray, K: int) -> np.ndarray:
    """Return the pixels farthest from each other in the plane of the normalized spectra (vertex method, SPA)."""
    Z = to_one(Y)
    return farthest_points(Plane.of(Z, np.ones(len(Z)), K - 1).coordinates(Z), K)


def vertex(Y: np.ndarray, K: int) -> Unmixed:
    """Find pure pixels, then solve least squares with weights of sum one, on normalized and on original spectra."""
    pure = Y[pure_pixels(Y, K)]
    return Unmixed(Hull(to_one(pure)).weights(to_one(Y)), Hull(pure).weights(Y), pure)


def vertex_cone(Y: np.ndarray, K: int) -> Unmixed:
    """Find pure pixels, then solve non-negative least squares."""
    pure = Y[pure_pixels(Y, K)]
    amounts = np.array([nnls(pure.T, y)[0] for y in Y])
    return Unmixed(to_one(amounts * pure.sum(axis=1)), to_one(amounts), pure)


def factorized(loss: str, solver: str, Y: np.ndarray, K: int) -> Unmixed:
    nmf = NMF(K, beta_loss=loss, solver=solver, max_iter=1000, random_state=0)
    W = nmf.fit_transform(Y)
    return Unmixed(to_one(W * nmf.components_.sum(axis=1)), to_one(W), nmf.components_)


METHODS = {
    "RealTopicModel": smallest_simplex,
    "without the constraint": lambda Y, K: smallest_simplex(Y, K, non_negative=False),
    "pure pixels, sum to one": vertex,
    "pure pixels, non-negative": vertex_cone,
    "scikit-learn NMF": lambda Y, K: factorized("frobenius", "cd", Y, K),
    "scikit-learn NMF, KL": lambda Y, K: factorized("kullback-leibler", "mu", Y, K),
}


def scores(found: Unmixed, A: np.ndarray, E: np.ndarray) -> tuple[Scores, np.ndarray]:
    """Return the scores after matching materials by the angles of their spectra only, and the order."""
    cosine = (found.spectra @ E.T) / np.outer(np.linalg.norm(found.spectra, axis=1), np.linalg.norm(E, axis=1))
    angles = np.degrees(np.arccos(np.clip(cosine, -1, 1))).T
    rows, order = linear_sum_assignment(angles)

    def error(weights: np.ndarray, reference: np.ndarray) -> float:
        return float(np.sqrt(((weights[:, order] - reference) ** 2).mean()))

    by_light = error(found.light, to_one(A * E.sum(axis=1)))
    as_given = min(error(found.light, A), error(found.area, A))
    return Scores(by_light, as_given, float(angles[rows, order].mean())), order


def picture(path: Path, title: str, shape: Sequence[int], maps: dict[str, np.ndarray]) -> None:
    """Plot one row per method and one column per material."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    K = next(iter(maps.values())).shape[1]
    figure, axes = plt.subplots(
        len(maps), K, figsize=(2.2 * K + 1.5, 2.2 * len(maps)), layout="constrained", squeeze=False
    )
    for row, (name, proportions) in zip(axes, maps.items(), strict=True):
        for k, ax in enumerate(row):
            ax.imshow(proportions[:, k].reshape(shape, order="F"), vmin=0, vmax=1, cmap="viridis")
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(name, fontsize=8)
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def unmix(path: Path, pictures: Path | None) -> dict[str, Scores]:
    with np.load(path) as scene:
        Y, A, E = (np.asarray(scene[name], dtype=np.float64) for name in "YAE")
        shape = tuple(scene["shape"]) if "shape" in scene else (1, len(Y))
    K = A.shape[1]
    print(f"\n## {path.stem}: {len(Y)} pixels, {Y.shape[1]} bands, {K} materials")
    print("| method | abundance RMSE | as given | spectral angle | seconds |\n| --- | --- | --- | --- | --- |")
    result, maps = {}, {"reference": to_one(A * E.sum(axis=1))}
    for name, method in METHODS.items():
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = method(Y, K)
        seconds = time.perf_counter() - started
        result[name], order = scores(found, A, E)
        by_light, as_given, angle = result[name]
        print(f"| {name} | {by_light:.4f} | {as_given:.4f} | {angle:.1f} | {seconds:.1f} |", flush=True)
        maps[name] = found.light[:, order]
    if pictures is not None:
        shown = {
            name: maps[name] for name in ("reference", "RealTopicModel", "pure pixels, sum to one", "scikit-learn NMF")
        }
        picture(pictures / f"{path.stem}.png", f"{path.stem}: proportions of the light", shape, shown)
    return result


def main(argv: Sequence[str] | None = None) -> dict[str, dict[str, Scores]]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenes", nargs="*", type=Path)
    parser.add_argument("--pictures", type=Path, default=Path("pictures"), help="folder for the pictures (pictures)")
    options = parser.parse_args(argv)
    scenes = options.scenes or [DATA / "nontext" / name for name in SCENES]
    missing = [str(path) for path in scenes if not path.is_file()]
    if missing:
        raise SystemExit(
            f"There is no {missing[0]}: pass a scene, or set POLYSEME_DATA to the folder with the "
            "data (docs/benchmarks.md says where they are)."
        )
    return {path.stem: unmix(path, options.pictures) for path in scenes}


if __name__ == "__main__":
    main()
