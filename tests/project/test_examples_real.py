"""The examples of unmixing, on small synthetic scenes and, if the data exist, on real ones."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

pytest.importorskip("matplotlib")


def example(name):
    """Return the functions of an example."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def scene(path, *, K, seed=0):
    """Return smooth spectra mixed in pixels of very different brightness, with noise."""
    rng = np.random.default_rng(seed)
    bands = np.linspace(0, 1, 40)
    E = np.array([0.2 + np.exp(-(((bands - center) / 0.2) ** 2)) for center in np.linspace(0.1, 0.9, K)])
    A = rng.dirichlet(np.full(K, 0.4), 600)
    Y = rng.uniform(0.2, 1.0, (600, 1)) * (A @ E) + 0.005 * rng.normal(size=(600, 40))
    np.savez(path, Y=np.maximum(Y, 0), A=A, E=E, shape=(20, 30))
    return path


@pytest.mark.parametrize("K", [3, 5])
def test_new_scenes_are_unmixed_as_well_as_by_pure_pixels_and_better_than_by_nmf(tmp_path, K, capsys):
    """Errors are 0.44 to 1.22 times those of methods that search for pure pixels, which exist here (six scenes)."""
    path = scene(tmp_path / "made.npz", K=K)
    scores = example("hyperspectral")["main"]([str(path), "--pictures", str(tmp_path)])["made"]
    ours = scores.pop("RealTopicModel")
    assert ours.by_light < 0.02
    assert ours.by_light <= 1.5 * min(other.by_light for other in scores.values())
    assert ours.by_light < 0.2 * min(other.by_light for name, other in scores.items() if "NMF" in name)
    assert ours.angle < 5
    assert (tmp_path / "made.png").stat().st_size > 1000
    assert capsys.readouterr().out.count("\n|") == 8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hsi_samson", "hsi_moffett"])
def test_real_scenes(name, tmp_path, real_file):
    path = real_file(f"nontext/{name}.npz")
    scores = example("hyperspectral")["main"]([str(path), "--pictures", str(tmp_path)])[name]
    ours = scores.pop("RealTopicModel")
    for score in ("by_light", "as_given", "angle"):
        assert getattr(ours, score) <= min(getattr(other, score) for other in scores.values())


def test_a_spectrogram_is_separated(tmp_path, capsys):
    rng = np.random.default_rng(0)
    notes = np.zeros((3, 129))
    for k, step in enumerate((7, 9, 11)):
        notes[k, ::step] = 1 / (1 + np.arange(len(notes[k, ::step])))
    loudness = np.repeat(np.eye(4)[[0, 1, 2, 3, 1, 0]][:, :3], 20, axis=0) * rng.uniform(0.5, 1, (120, 1))
    np.savez(tmp_path / "notes.npz", S=loudness @ notes * 10 + 0.01 * rng.random((120, 129)), sr=8000)
    result = example("trumpet")["main"]([str(tmp_path / "notes.npz"), "-k", "4", "--pictures", str(tmp_path)])
    error, used = result["RealTopicModel"]
    assert error < 0.05
    assert used < 2
    assert (tmp_path / "notes.png").is_file()
    assert "RealTopicModel" in capsys.readouterr().out


def test_real_models_find_the_cultivars(capsys):
    """Measured: 0.972 for the three models, 0.966 for k-means, 0.961 for the mixture."""
    accuracy = example("real_models")["main"]([])
    assert min(accuracy[name] for name in ("Real-PLSA", "Real-LDA", "Real-CTM")) > 0.94
    assert accuracy["k-means"] > 0.9
    assert "proline" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["hyperspectral", "trumpet"])
def test_a_missing_file_is_named(name, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name, "nowhere.npz"])
    with pytest.raises(SystemExit, match=r"There is no nowhere\.npz"):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
