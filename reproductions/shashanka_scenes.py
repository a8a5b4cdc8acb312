"""Unmix hyperspectral scenes with RealTopicModel and with VCA + FCLS, and choose the margin on synthetic scenes.

Run: .venv/bin/python reproductions/shashanka_scenes.py [--margins | --corners] [--scenes N] [--vca-seeds N] [--first N]
Without an option it compares RealTopicModel, with and without its constraint, and VCA + FCLS on synthetic scenes and on
the scenes in POLYSEME_DATA. With --margins it compares margins on the synthetic scenes only. With --corners it compares
the corners of the default, of margin=0 and of VCA on real scenes, these synthetic scenes and scenes with dark materials
and outliers, where pixels are not divided by their sums; seeds of scenes begin at --first.

A scene has K materials with spectra E, proportions A of the area of a pixel, and pixels Y of different brightness with
noise. Spectra are divided by their sums, and the sums are the weights of the pixels. Weights of corners are then
proportions of the light; the reference proportions are A_k sum(E_k), normalized.

References
----------
J. Nascimento and J. Bioucas-Dias (2005). Vertex component analysis: a fast algorithm to unmix hyperspectral data. IEEE
Transactions on Geoscience and Remote Sensing 43(4), 898-910.
D. Heinz and C.-I. Chang (2001). Fully constrained least squares linear spectral mixture analysis method for material
quantification in hyperspectral imagery. IEEE Transactions on Geoscience and Remote Sensing 39(3), 529-545.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter, gaussian_filter1d
from scipy.optimize import linear_sum_assignment, nnls

from formulas import Array
from polyseme import PLSA, RealTopicModel
from support import DATA, Finding, show, verdict

KINDS = ("smooth", "correlated", "peaks", "sparse", "dark")
MARGINS = (0.005, 0.01, 0.02, 0.05, 0.1)
REAL_SCENES = {"Samson": "nontext/hsi_samson.npz", "Moffett": "nontext/hsi_moffett.npz"}
SIDE = 28
"""Pixels in a row of a synthetic scene."""


class Scene(NamedTuple):
    pixels: Array
    """Shape n x bands, non-negative."""
    abundances: Array
    """Proportions of the area, n x K, rows sum to one."""
    spectra: Array
    """Shape K x bands."""

    @property
    def light(self) -> Array:
        """Proportions of the light, n x K, rows sum to one."""
        return to_one(self.abundances * self.spectra.sum(axis=1))


class Scores(NamedTuple):
    angle: float
    """Mean angle between matched spectra, degrees."""
    error: float
    """Root-mean-square error of the proportions of light."""
    given: float
    """The same for the given proportions, by light or by area, whichever is better."""
    negative: float
    """Largest share of negative bands in a corner."""


def to_one(rows: Array) -> Array:
    return rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12)


def synthetic_scene(seed: int) -> Scene:
    """Draw a scene of 3 to 8 materials with noise of 20 to 40 dB.

    The kind of the spectra, the largest proportion and the variation of spectra between pixels change with the seed.
    """
    rng = np.random.default_rng([seed, 26])
    K, bands = int(rng.integers(3, 9)), int(rng.integers(60, 200))
    kind = KINDS[seed % len(KINDS)]
    spectra = _spectra(rng, kind, K, bands)
    purest = 1.0 if kind == "dark" else (1.0, 0.85, 0.7)[seed // 2 % 3]  # a dark material is seen in pure pixels only
    abundances = _patches(rng, K, purest) if kind == "dark" or seed % 2 else _mixtures(rng, K, purest)
    shadow, variation = (0.0, 0.5, 0.8)[int(rng.integers(3))], (0.0, 0.05, 0.1)[seed // 3 % 3]
    clean = rng.uniform(1 - shadow, 1, (len(abundances), 1)) * (abundances @ spectra)
    clean *= np.exp(variation * _standard(gaussian_filter1d(rng.normal(size=clean.shape), bands / 10, axis=1)))
    noise = np.sqrt((clean**2).mean() / 10 ** rng.uniform(2, 4))
    return Scene(np.maximum(clean + noise * rng.normal(size=clean.shape), 0), abundances, spectra)


def dark_scene(seed: int) -> Scene:
    """Draw a scene of five materials and 64 bands, one or two of them dark, with noise of 20 to 40 dB.

    Outliers, which are other spectra or a very bright band, are up to 1 % of the pixels, without abundances.
    """
    rng = np.random.default_rng([seed, 7])
    n, bands, K = 2500, 64, 5
    n_dark, decibels, outliers, is_pure, shadow, concentration = (
        choices[int(rng.integers(len(choices)))]
        for choices in ((1, 2), (20, 30, 40), (0, 0.002, 0.01), (True, False), (0, 0.3, 0.7), (0.3, 0.6, 1.0))
    )
    smooth = _standard(gaussian_filter1d(rng.normal(size=(K, bands)), bands / 12, axis=1, mode="reflect"))
    spectra = 0.05 + 0.9 / (1 + np.exp(-1.5 * smooth))
    light = spectra.sum(axis=1, keepdims=True)
    spectra[:n_dark] *= rng.uniform(0.05, 0.2, (n_dark, 1)) * light.mean() / light[:n_dark]
    abundances = rng.dirichlet(np.full(K, concentration), 8 * n)
    abundances = abundances[is_pure | (abundances.max(axis=1) < 0.85)][:n]
    if is_pure:
        abundances[: 2 * K] = np.tile(np.eye(K), (2, 1))
    clean = rng.uniform(1 - shadow, 1, (n, 1)) * (abundances @ spectra)
    pixels = clean + np.sqrt((clean**2).mean() / 10 ** (decibels / 10)) * rng.normal(size=clean.shape)
    odd = rng.permutation(n)[: round(outliers * n)]
    shapes = _standard(gaussian_filter1d(rng.normal(size=(len(odd), bands)), bands / 20, axis=1, mode="reflect"))
    pixels[odd] = spectra.max() * rng.uniform(0.5, 2, (len(odd), 1)) / (1 + np.exp(-2 * shapes))
    pixels[odd[: len(odd) // 2], rng.integers(bands, size=len(odd) // 2)] += 5 * spectra.max()
    abundances[odd] = np.nan
    return Scene(np.maximum(pixels, 0), abundances, spectra)


def _spectra(rng: np.random.Generator, kind: str, K: int, bands: int) -> Array:
    places = np.linspace(0, 1, bands)
    if kind in ("peaks", "sparse"):
        floor, most = (0.03, 6) if kind == "peaks" else (0.0, 4)
        spectra = np.full((K, bands), floor)
        for spectrum in spectra:
            for _ in range(int(rng.integers(1 if kind == "sparse" else 2, most))):
                spectrum += rng.uniform(0.2, 0.8) * np.exp(-(((places - rng.random()) / rng.uniform(0.03, 0.15)) ** 2))
        return spectra
    smooth = _standard(gaussian_filter1d(rng.normal(size=(K, bands)), bands / 12, axis=1, mode="reflect"))
    if kind == "correlated":
        common = _standard(gaussian_filter1d(rng.normal(size=(1, bands)), bands / 8, axis=1, mode="reflect"))
        return 0.05 + 0.8 / (1 + np.exp(-1.2 * common - 0.7 * smooth))
    spectra = 0.05 + 0.9 / (1 + np.exp(-1.5 * smooth))
    if kind == "dark":  # one material is as dark as water and has no light in most bands
        spectra[0] = 0.001 + rng.uniform(0.05, 0.15) * np.exp(-(((places - 0.05) / rng.uniform(0.08, 0.3)) ** 2))
    return spectra


def _standard(rows: Array) -> Array:
    return rows / rows.std(axis=1, keepdims=True)


def _mixtures(rng: np.random.Generator, K: int, purest: float) -> Array:
    """Return proportions without order in space, none of them above `purest`."""
    concentration, n = rng.uniform(0.3, 1.0), SIDE * SIDE
    kept = np.empty((0, K))
    while len(kept) < n:
        drawn = rng.dirichlet(np.full(K, concentration), 4 * n)
        kept = np.concatenate([kept, drawn[drawn.max(axis=1) <= purest]])
    return kept[:n]


def _patches(rng: np.random.Generator, K: int, purest: float) -> Array:
    """Return proportions that form patches in space. Purer pixels are mixed with all materials until they fit."""
    fields = gaussian_filter(rng.normal(size=(K, SIDE, SIDE)), (0, SIDE / 12, SIDE / 12))
    fields /= fields.std(axis=(1, 2), keepdims=True)
    abundances = to_one(np.exp(rng.uniform(2.5, 6) * fields.reshape(K, -1)).T)
    largest = abundances.max(axis=1, keepdims=True)
    share = np.where(largest > purest, (purest - 1 / K) / (largest - 1 / K), 1)
    return share * abundances + (1 - share) / K


def vca(Y: Array, K: int, seed: int) -> Array:
    """Return K endmembers by vertex component analysis: pixels that are extreme in random directions."""
    rng = np.random.default_rng([seed, 5])
    n, bands = Y.shape
    mean = Y.mean(axis=0)
    directions = np.linalg.svd((Y - mean).T @ (Y - mean) / n)[0][:, :K]
    centered = (Y - mean) @ directions
    power, kept = (Y**2).sum() / n, (centered**2).sum() / n + (mean**2).sum()
    ratio = 10 * np.log10(max(kept - K / bands * power, 1e-300) / max(power - kept, 1e-300))
    if ratio < 15 + 10 * np.log10(K):
        low = centered[:, : K - 1]
        points = np.column_stack([low, np.full(n, np.sqrt((low**2).sum(axis=1).max()))])
        pixels = low @ directions[:, : K - 1].T + mean
    else:
        directions = np.linalg.svd(Y.T @ Y / n)[0][:, :K]
        low = Y @ directions
        points = low / (low @ low.mean(axis=0))[:, np.newaxis]
        pixels = low @ directions.T
    found = np.zeros((K, K))
    found[-1, 0] = 1
    chosen = []
    for k in range(K):
        direction = rng.normal(size=K)
        direction -= found @ (np.linalg.pinv(found) @ direction)
        chosen.append(int(np.abs(points @ direction).argmax()))
        found[:, k] = points[chosen[-1]]
    return np.maximum(pixels[chosen], 1e-12)


def fcls(Y: Array, spectra: Array) -> Array:
    """Return non-negative weights with a sum of one: least squares with a heavy equation for the sum."""
    heavy = 1e4 * float(np.abs(spectra).max())
    system = np.vstack([spectra.T, np.full(len(spectra), heavy)])
    return to_one(np.array([nnls(system, np.append(y, heavy))[0] for y in Y]))


def match(scene: Scene, spectra: Array) -> tuple[Array, Array]:
    """Return the angles between the materials and their spectra, matched by these angles, and the order of spectra."""
    lengths = np.outer(np.linalg.norm(scene.spectra, axis=1), np.linalg.norm(spectra, axis=1))
    angles = np.degrees(np.arccos(np.clip(scene.spectra @ spectra.T / lengths, -1, 1)))
    rows, order = linear_sum_assignment(angles)
    return angles[rows, order], order


def scores(scene: Scene, spectra: Array, light: Array, area: Array) -> Scores:
    """Return the scores after matching materials by the angles of their spectra."""
    angles, order = match(scene, spectra)

    def error(found: Array, reference: Array) -> float:
        return float(np.sqrt(((found[:, order] - reference) ** 2).mean()))

    given = min(error(light, scene.abundances), error(area, scene.abundances))
    return Scores(float(angles.mean()), error(light, scene.light), given,
                  float((spectra < 0).mean(axis=1).max()))  # fmt: skip


def by_vca(scene: Scene, seeds: int) -> Scores:
    """Return the median scores of VCA + FCLS over seeds, on normalized spectra for light and on pixels for area."""
    found = []
    for seed in range(seeds):
        spectra = vca(scene.pixels, len(scene.spectra), seed)
        light, area = fcls(to_one(scene.pixels), to_one(spectra)), fcls(scene.pixels, spectra)
        found.append(scores(scene, spectra, light, area))
    return Scores(*(float(value) for value in np.median(found, axis=0)))


def by_real(scene: Scene, *, with_area: bool = False, **settings: float | bool) -> Scores:
    """Return the scores of Real-PLSA; the brightness of a material, for areas, is that of its purest pixels."""
    brightness = scene.pixels.sum(axis=1)
    plsa = PLSA(len(scene.spectra), solver="em")
    model = RealTopicModel(plsa, **settings).fit(to_one(scene.pixels), sample_weight=brightness)
    area = model.doc_topic_
    if with_area:
        purest = np.argsort(-model.doc_topic_, axis=0, kind="stable")[: max(1, len(brightness) // 100)]
        area = fcls(scene.pixels, model.components_ * brightness[purest].mean(axis=0)[:, np.newaxis])
    return scores(scene, model.components_, model.doc_topic_, area)


def real_scenes() -> dict[str, Scene]:
    """Return the scenes in POLYSEME_DATA, and print the names of missing ones."""
    found = {}
    for name, file in REAL_SCENES.items():
        if not (DATA / file).is_file():
            print(f"\nskipped: {name}, there is no {DATA / file} (set POLYSEME_DATA to the data folder)")
            continue
        with np.load(DATA / file) as arrays:
            found[name] = Scene(*(np.asarray(arrays[key], dtype=np.float64) for key in "YAE"))
    return found


def compare_margins(n_scenes: int) -> None:
    """Print the mean scores of every margin on the synthetic scenes, by kind of spectra."""
    rows = []
    for margin in MARGINS:
        found = np.array([by_real(synthetic_scene(seed), margin=margin)[:2] for seed in range(n_scenes)])
        kinds = [f"{found[start :: len(KINDS), 0].mean():.2f}" for start in range(len(KINDS))]
        rows.append((margin, *(f"{value:.4g}" for value in found.mean(axis=0)), *kinds))
        print(rows[-1], flush=True)
    show(f"Margins on {n_scenes} synthetic scenes", ("margin", "mean angle", "mean error", *KINDS), rows)


def compare_corners(n_scenes: int, vca_seeds: int, first: int) -> None:
    """Print mean and largest angles of corners by kind of scene; for VCA the median of its seeds."""
    groups: dict[str, list[Scene]] = {name: [scene] for name, scene in real_scenes().items()}
    for seed in range(first, first + n_scenes):
        groups.setdefault("synthetic", []).append(synthetic_scene(seed))
        dark = dark_scene(seed)
        share = np.isnan(dark.abundances[:, 0]).mean()
        groups.setdefault(f"dark, outliers {share:.1%}", []).append(dark)

    def real(scene: Scene, **settings: float) -> list[Array]:
        return [RealTopicModel(PLSA(len(scene.spectra), solver="em"), **settings).fit(scene.pixels).components_]

    def normalized(scene: Scene) -> list[Array]:
        model = RealTopicModel(PLSA(len(scene.spectra), solver="em"))
        return [model.fit(to_one(scene.pixels), sample_weight=scene.pixels.sum(axis=1)).components_]

    methods: dict[str, Callable[[Scene], list[Array]]] = {
        "default": real,
        "default, normalized": normalized,
        "margin=0": lambda scene: real(scene, margin=0),
        "VCA": lambda scene: [vca(scene.pixels, len(scene.spectra), seed) for seed in range(vca_seeds)],
    }
    rows = []
    for group, scenes in sorted(groups.items()):
        found = {}
        for name, method in methods.items():
            angles = [[match(scene, spectra)[0] for spectra in method(scene)] for scene in scenes]
            found[name] = np.array([np.median([(a.mean(), a.max()) for a in tries], axis=0) for tries in angles])
        for name, (means, largest) in ((name, f.T) for name, f in found.items()):
            beyond = (means - found["VCA"][:, 0]).max()
            rows.append((group, len(scenes), name, *(f"{x:.1f}" for x in (means.mean(), largest.mean(), means.max(),
                                                                         beyond))))  # fmt: skip
    show(f"Angles of corners, seeds from {first}; VCA: median of {vca_seeds} seeds", ("scenes", "number", "method",
         "mean", "mean of largest", "worst mean", "most above VCA"), rows)  # fmt: skip


def scene_findings(n_scenes: int, vca_seeds: int, *, real: bool = True) -> list[Finding]:
    """Compare the constraint and VCA + FCLS on synthetic scenes and, if asked, on those in POLYSEME_DATA."""
    methods = {
        "Real-PLSA": lambda scene: by_real(scene),
        "without the constraint": lambda scene: by_real(scene, non_negative=False),
        "VCA + FCLS": lambda scene: by_vca(scene, vca_seeds),
    }
    scenes = [synthetic_scene(seed) for seed in range(n_scenes)]
    found = {name: np.array([method(scene) for scene in scenes]) for name, method in methods.items()}
    rows = [(name, *(f"{value:.4g}" for value in (*np.mean(f, axis=0)[[0, 1]], *np.median(f, axis=0)[[0, 1]],
                                                 f[:, 3].max()))) for name, f in found.items()]  # fmt: skip
    show(f"{n_scenes} synthetic scenes", ("method", "mean angle", "mean error", "median angle", "median error",
                                          "negative bands"), rows)  # fmt: skip
    ours, free, other = (found[name] for name in methods)
    worst = int(free[:, 3].argmax())
    wins = (ours[:, :2] < other[:, :2]).mean(axis=0)
    text = (f"{n_scenes} synthetic scenes: mean angle {ours[:, 0].mean():.2f} degrees and error "
            f"{ours[:, 1].mean():.3f}, VCA + FCLS {other[:, 0].mean():.2f} and {other[:, 1].mean():.3f} (lower in "
            f"{wins[0]:.0%} and {wins[1]:.0%} of scenes)")  # fmt: skip
    checks = [(ours[:, :2].mean(axis=0) < other[:, :2].mean(axis=0)).all()]
    table = []
    for name, scene in (real_scenes() if real else {}).items():
        best, against = by_real(scene, with_area=True), by_vca(scene, vca_seeds)
        table += [(name, method, *(f"{value:.4g}" for value in score[:3]))
                  for method, score in (("Real-PLSA", best), ("VCA + FCLS", against))]  # fmt: skip
        text += (f"; {name}: {best.angle:.2f} and {best.error:.4f}, VCA + FCLS {against.angle:.2f} and "
                 f"{against.error:.4f}")  # fmt: skip
        checks.append(all(a < b for a, b in zip(best[:3], against[:3], strict=True)))
    if table:
        show(f"Real scenes, VCA: median of {vca_seeds} seeds", ("scene", "method", "angle", "error", "as given"), table)
    return [
        Finding("Non-negative data (sect. 4)", "Real topic models can be applied to non-negative data too", text,
                verdict("true; better than VCA + FCLS", *checks)),
        Finding("Corners of non-negative data (ours)", "(not in the paper; its bases may be negative)",
                f"without the constraint a corner has up to {free[:, 3].max():.0%} negative bands (there the mean "
                f"angle is {free[worst, 0]:.1f} degrees, with it {ours[worst, 0]:.1f}), with it none; mean angle "
                f"{free[:, 0].mean():.2f} without, {ours[:, 0].mean():.2f} with it; mean error "
                f"{free[:, 1].mean():.3f} and {ours[:, 1].mean():.3f}",
                verdict("the constraint helps", ours[:, 3].max() == 0, free[:, 3].max() > 0.2,
                        (ours[:, :2].mean(axis=0) <= free[:, :2].mean(axis=0)).all())),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--margins", action="store_true", help="compare margins")
    parser.add_argument("--corners", action="store_true", help="compare corners, with dark materials and outliers")
    parser.add_argument("--first", type=int, default=1000, help="first seed of the scenes of --corners (1000)")
    parser.add_argument("--scenes", type=int, default=30, help="number of synthetic scenes (30)")
    parser.add_argument("--vca-seeds", type=int, default=5, help="seeds of VCA (5)")
    options = parser.parse_args(argv)
    if options.margins:
        compare_margins(options.scenes)
        return
    if options.corners:
        compare_corners(options.scenes, options.vca_seeds, options.first)
        return
    for finding in scene_findings(options.scenes, options.vca_seeds):
        print(f"\n{finding.claim}: {finding.ours}. Verdict: {finding.verdict}.")


if __name__ == "__main__":
    main()
