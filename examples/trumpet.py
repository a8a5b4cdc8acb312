"""Separate the spectrogram of a trumpet into notes and their activations.

Run: .venv/bin/python examples/trumpet.py [SPECTROGRAM.npz] [-k 6] [--pictures FOLDER]
The file contains S (frames x frequencies, magnitudes) and sr (samples per second). By default the script uses the file
in POLYSEME_DATA.

PLSA models the shape of the spectrum of each frame, whether the frame is silent or loud. RealTopicModel models the
frames themselves (section 4 of Shashanka, 2009, "Simplex decompositions for real-valued datasets"), so silence becomes
a corner and the weights measure loudness. The file has no reference. The script prints how well each method
reconstructs the spectrogram from K spectra, and how concentrated the weights of a frame are.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import entr
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from polyseme import PLSA, RealTopicModel
from polyseme.simplex import Hull
from polyseme.simplex.corners import Plane, farthest_points

DATA = Path(os.environ.get("POLYSEME_DATA", Path(__file__).parents[2] / "shared" / "data"))


class Separated(NamedTuple):
    """Frames ~ amounts @ spectra."""

    amounts: np.ndarray
    """frames x K"""
    spectra: np.ndarray
    """K x frequencies"""


def real(S: np.ndarray, K: int) -> Separated:
    model = RealTopicModel(PLSA(K, solver="em")).fit(S)
    return Separated(model.doc_topic_, model.components_)


def plsa(S: np.ndarray, K: int) -> Separated:
    model = PLSA(K, random_state=0, tol=1e-3).fit(S)
    return Separated(model.doc_topic_ * S.sum(axis=1, keepdims=True), model.components_)


def nmf(S: np.ndarray, K: int) -> Separated:
    model = NMF(K, max_iter=1000, random_state=0)
    return Separated(model.fit_transform(S), model.components_)


def farthest_frames(S: np.ndarray, K: int) -> Separated:
    """Take frames far from each other as spectra (vertex method), and solve least squares with weights of sum one."""
    spectra = S[farthest_points(Plane.of(S, np.ones(len(S)), K - 1).coordinates(S), K)]
    return Separated(Hull(spectra).weights(S), spectra)


METHODS = {"RealTopicModel": real, "farthest frames": farthest_frames, "PLSA": plsa, "scikit-learn NMF": nmf}


def loudest_note(spectrum: np.ndarray, sr: float) -> float:
    """Return the frequency (Hz) of the largest value of a spectrum."""
    return float(spectrum.argmax() * sr / (2 * (len(spectrum) - 1)))


def picture(path: Path, S: np.ndarray, sr: float, found: Separated) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    highest = min(S.shape[1], int(6000 * 2 * (S.shape[1] - 1) / sr))
    kilohertz = np.arange(highest) * sr / (2 * (S.shape[1] - 1)) / 1000
    extent = (0, len(S), 0, kilohertz[-1])
    axes[0].imshow(np.log1p(S[:, :highest]).T, origin="lower", aspect="auto", cmap="magma", extent=extent)
    axes[0].set(title="spectrogram", xlabel="frame", ylabel="kHz")
    offset = np.abs(found.spectra[:, :highest]).max() * 0.6
    for k, (spectrum, amount) in enumerate(zip(found.spectra, found.amounts.T, strict=True)):
        axes[1].plot(kilohertz, spectrum[:highest] + k * offset, color=f"C{k}", linewidth=0.8)
        axes[2].plot(amount + 1.1 * k, color=f"C{k}", linewidth=0.8)
    axes[1].set(title="corners: spectra", xlabel="kHz", yticks=[])
    axes[2].set(title="weights", xlabel="frame", yticks=[])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> dict[str, tuple[float, float]]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("spectrogram", nargs="?", type=Path, default=DATA / "nontext" / "audio_trumpet.npz")
    parser.add_argument("-k", type=int, default=6, help="number of spectra (6)")
    parser.add_argument("--pictures", type=Path, default=Path("pictures"), help="folder for the picture (pictures)")
    options = parser.parse_args(argv)
    if not options.spectrogram.is_file():
        raise SystemExit(
            f"There is no {options.spectrogram}: pass a file, or set POLYSEME_DATA to the folder with the "
            "data (docs/benchmarks.md says where they are)."
        )
    with np.load(options.spectrogram) as file:
        S, sr = np.asarray(file["S"], dtype=np.float64), float(file["sr"])
    print(f"{S.shape[0]} frames x {S.shape[1]} frequencies, {options.k} spectra")
    print("| method | error (share of the energy) | spectra per frame | loudest frequency of each spectrum, Hz |")
    print("| --- | --- | --- | --- |")
    result = {}
    for name, method in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = method(S, options.k)
        error = float(((S - found.amounts @ found.spectra) ** 2).sum() / (S**2).sum())
        light = found.amounts * np.abs(found.spectra).sum(axis=1)
        shares = light / np.maximum(light.sum(axis=1, keepdims=True), 1e-12)
        used = float(np.exp(entr(shares).sum(axis=1)).mean())
        notes = sorted(round(loudest_note(spectrum, sr)) for spectrum in found.spectra)
        print(f"| {name} | {error:.3f} | {used:.2f} | {', '.join(map(str, notes))} |", flush=True)
        result[name] = (error, used)
        if name == "RealTopicModel":
            picture(options.pictures / f"{options.spectrogram.stem}.png", S, sr, found)
    return result


if __name__ == "__main__":
    main()
