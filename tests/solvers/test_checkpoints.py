"""A killed fit resumes from its checkpoint with the same bits."""

import numpy as np
import pytest
import scipy.sparse as sp

import polyseme
from polyseme import PLSA, InputError, ModelFileError, UnsupportedError
from polyseme.priors import Decorrelation, Dirichlet
from polyseme.solvers.checkpoints import Checkpoint, CheckpointContent, read_checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return sp.csr_array(rng.poisson(0.4, (80, 50)))


class Killed(Exception):
    pass


def killed_at(iteration):
    def callback(entry):
        if entry["iteration"] == iteration:
            raise Killed

    return callback


CASES = {
    "scd": {},
    "em": {"solver": "em", "topic_word_prior": Dirichlet(1.1)},
    "not monotone": {"topic_word_prior": Decorrelation(0.5)},
    "background": {"background": 0.3},
    "tempered": {"solver": "tempered"},
    "online": {"solver": "online"},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("iteration", [1, 2, 9, 20])
def test_a_killed_fit_resumes_with_the_same_bits(name, iteration, X, tmp_path):
    settings = {"n_components": 4, "random_state": 3, "max_iter": 25, "tol": 0.0, **CASES[name]}
    with pytest.warns(match="max_iter"):
        whole = PLSA(**settings).fit(X)
    path = tmp_path / "fit.safetensors"
    with pytest.raises(Killed):
        PLSA(**settings, checkpoint=Checkpoint(path, 0), callback=killed_at(iteration)).fit(X)
    assert path.exists() == (iteration > 1)
    seen = []
    with pytest.warns(match="max_iter"):
        resumed = PLSA(
            **settings, checkpoint=Checkpoint(path, 0), callback=lambda entry: seen.append(entry["iteration"])
        ).fit(X)
    assert seen[0] == max(iteration - 1, 0) + (iteration > 1)  # the first iteration after the checkpoint
    for attribute in ("components_", "doc_topic_", "topic_weights_"):
        np.testing.assert_array_equal(getattr(resumed, attribute), getattr(whole, attribute))
    assert resumed.n_iter_ == whole.n_iter_
    for column in ("iteration", "objective", "log_likelihood", "residual"):
        np.testing.assert_array_equal(resumed.history_[column], whole.history_[column])
    assert (np.diff(resumed.history_["seconds"]) >= 0).all()


def test_a_finished_fit_does_not_iterate_again(X, tmp_path):
    path = tmp_path / "fit.safetensors"
    first = PLSA(3, random_state=0, checkpoint=Checkpoint(path, 0), max_iter=500).fit(X)
    seen = []
    again = PLSA(3, random_state=0, checkpoint=Checkpoint(path, 0), max_iter=500, callback=seen.append).fit(X)
    assert not seen
    assert again.converged_
    np.testing.assert_array_equal(first.components_, again.components_)


def test_the_checkpoint_of_another_fit_is_refused(X, tmp_path):
    path = tmp_path / "fit.safetensors"
    PLSA(3, random_state=0, checkpoint=Checkpoint(path, 0), max_iter=500).fit(X)
    for other, data in (
        (PLSA(4, random_state=0, checkpoint=Checkpoint(path, 0)), X),
        (PLSA(3, random_state=0, checkpoint=Checkpoint(path, 0)), X[1:]),
    ):
        with pytest.raises(InputError, match="another fit"):
            other.fit(data)
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="digest"):
        PLSA(3, random_state=0, checkpoint=Checkpoint(path, 0), max_iter=500).fit(X)
    path.write_bytes(content[:50])
    with pytest.raises(ModelFileError, match="damaged"):
        PLSA(3, random_state=0, checkpoint=Checkpoint(path, 0), max_iter=500).fit(X)


@pytest.mark.parametrize("wrong", [{"n_init": 2}, {"random_state": None}])
def test_a_fit_that_cannot_be_repeated_cannot_have_a_checkpoint(wrong, X, tmp_path):
    with pytest.raises(InputError, match="one fit"):
        PLSA(3, **{"random_state": 0, **wrong}, checkpoint=tmp_path / "x").fit(X)


def test_a_solver_that_cannot_be_resumed_refuses_a_checkpoint(X, tmp_path):
    able = "auto, em, accelerated-em, scd, online, tempered"
    for settings, message in (
        ({"solver": "plsi"}, f"checkpoint: solver='plsi' cannot be resumed. Solvers that can: {able}."),
        (
            {"early_stopping": True},
            f"checkpoint: early_stopping cannot be resumed. Solvers that can, without early_stopping: {able}.",
        ),
    ):
        with pytest.raises(UnsupportedError) as error:
            PLSA(3, **settings, random_state=0, checkpoint=tmp_path / "x").fit(X)
        assert str(error.value) == message


def test_a_model_file_does_not_contain_the_path_of_the_checkpoint(X, tmp_path):
    PLSA(3, random_state=0, checkpoint=tmp_path / "x", max_iter=500).fit(X).save(tmp_path / "m.safetensors")
    assert polyseme.load(tmp_path / "m.safetensors").checkpoint is None


@pytest.mark.parametrize("folder", ["../elsewhere", "/elsewhere", "a/b", ".."])
def test_a_checkpoint_refers_only_to_folders_beside_it(tmp_path, folder):
    path = tmp_path / "checkpoint.safetensors"
    numbers = {"numbers": {"passes": np.array(1.0)}}
    write_checkpoint(path, "fit", CheckpointContent(numbers, {"theta": "theta-x"}))
    assert read_checkpoint(path, "fit").folders == {"theta": "theta-x"}
    write_checkpoint(path, "fit", CheckpointContent(numbers, {"theta": folder}))
    with pytest.raises(ModelFileError, match="contains invalid folder names"):
        read_checkpoint(path, "fit")
