"""A killed fit resumes from its state in a folder with the same bits."""

import gc
import json
import os
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import polyseme
from polyseme import LDA, NMF, PLSA, HierarchicalPLSA, InputError, ModelFileError, UnsupportedError
from polyseme.data.rows import remove_unused
from polyseme.errors import ShardError
from polyseme.io import files
from polyseme.io.files import FileEntry, FileManifest
from polyseme.priors import Decorrelation, Dirichlet
from polyseme.scale import write_shards
from polyseme.solvers import EarlyStopping, OnlineVariational
from polyseme.solvers.base import SOLVERS
from polyseme.solvers.checkpoints import (
    CHECKPOINT_FILE,
    Checkpoint,
    CheckpointContent,
    read_checkpoint,
    write_checkpoint,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = sp.csr_array(np.random.default_rng(0).poisson(0.4, (80, 50)))
LIMITS = {"random_state": 3, "max_iter": 25, "tol": 0.0}
SETTINGS = {"n_components": 4, **LIMITS}


class Killed(Exception):
    pass


def killed_at(iteration, start=0):
    """Return a callback that ends the fit in an iteration of a start, before its state is stored."""
    starts = []

    def callback(entry):
        starts.extend([None] * (entry["iteration"] == 0))
        if entry["iteration"] == iteration and len(starts) > start:
            raise Killed

    return callback


def assert_same_fit(resumed, whole):
    for attribute in ("components_", "doc_topic_", "topic_weights_"):
        np.testing.assert_array_equal(getattr(resumed, attribute), getattr(whole, attribute))
    assert_same_history(resumed, whole)


def assert_same_history(resumed, whole):
    assert resumed.n_iter_ == whole.n_iter_
    assert set(resumed.history_) == set(whole.history_)
    for column in set(whole.history_) - {"seconds"}:
        np.testing.assert_array_equal(resumed.history_[column], whole.history_[column])
    assert (np.diff(resumed.history_["seconds"]) >= 0).all()


def files_of(folder):
    """Return the checkpoint files of the fits in a folder."""
    return sorted(folder.glob(f"*/{CHECKPOINT_FILE}"))


CASES = {
    "auto": {},
    "em": {"solver": "em", "topic_word_prior": Dirichlet(1.1)},
    "accelerated-em": {"solver": "accelerated-em"},
    "scd": {"solver": "scd"},
    "not monotone": {"topic_word_prior": Decorrelation(0.5)},
    "background": {"background": 0.3},
    "tempered": {"solver": "tempered"},
    "online": {"solver": "online"},
}


def test_every_solver_that_can_be_resumed_has_a_case():
    resumable = {name for name, solver in SOLVERS.items() if solver.resumable}
    assert resumable <= set(CASES)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("iteration", [1, 2, 9, 20])
def test_a_killed_fit_resumes_with_the_same_bits(name, iteration, tmp_path):
    settings = {**SETTINGS, **CASES[name]}
    whole = PLSA(**settings).fit(X)
    store = Checkpoint(tmp_path, 0)
    with pytest.raises(Killed):
        PLSA(**settings, checkpoint=store, callback=killed_at(iteration)).fit(X)
    assert len(files_of(tmp_path)) == (iteration > 1)
    seen = []
    resumed = PLSA(**settings, checkpoint=store, callback=lambda entry: seen.append(entry["iteration"])).fit(X)
    assert seen[0] == (iteration if iteration > 1 else 0)  # the first iteration after the stored one
    assert_same_fit(resumed, whole)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("iteration", [2, 13])
def test_a_killed_fit_from_shards_resumes_with_the_same_bits(name, iteration, tmp_path):
    shards = write_shards([X], tmp_path / "shards", shard_nonzeros=300)
    assert len(shards.manifest.shards) > 3
    settings = {**SETTINGS, **CASES[name]}
    whole = PLSA(**settings).fit(shards)
    store = Checkpoint(tmp_path / "states", 0)
    with pytest.raises(Killed):
        PLSA(**settings, checkpoint=store, callback=killed_at(iteration)).fit(shards)
    seen = []
    resumed = PLSA(**settings, checkpoint=store, callback=lambda entry: seen.append(entry["iteration"])).fit(shards)
    assert seen[0] == iteration
    assert_same_fit(resumed, whole)


@pytest.mark.parametrize("every", [1, 2, 3, 5])
@pytest.mark.parametrize("solver", ["em", "accelerated-em"])
def test_a_fit_from_shards_that_is_killed_again_and_again_has_the_same_bits(solver, every, tmp_path):
    """Also where an extrapolated step is rejected just after a resumption."""
    shards = write_shards([X], tmp_path / "shards", shard_nonzeros=300)
    settings = {**SETTINGS, "solver": solver, "max_iter": 60}
    whole = PLSA(**settings).fit(shards)
    assert (np.diff(whole.history_["objective"]) == 0).any() == (solver == "accelerated-em")
    model = PLSA(**settings, checkpoint=Checkpoint(tmp_path / "states", 0))
    for iteration in range(1 + every, 61, every):

        def callback(entry, iteration=iteration):
            if entry["iteration"] == iteration:
                raise Killed

        with pytest.raises(Killed):
            model.set_params(callback=callback).fit(shards)
    assert_same_fit(model.set_params(callback=None).fit(shards), whole)


LEARNED = {"doc_topic_prior": "asymmetric-learned", "topic_word_prior": "symmetric-learned"}
BATCHES = OnlineVariational(batch_size=7)
MODELS = {
    "NMF": NMF(4, solver="accelerated-em", **LIMITS),
    "LDA": LDA(4, **LIMITS),
    "LDA, learned priors": LDA(4, **LEARNED, **LIMITS),
    "LDA, online": LDA(4, solver=BATCHES, **LIMITS),
    "LDA, online, learned priors": LDA(4, solver=BATCHES, **LEARNED, **LIMITS),
    "LDA, map": LDA(4, solver="map", **LIMITS),
    "tree": HierarchicalPLSA(depth=2, branching=2, **LIMITS),
    "tree, em": HierarchicalPLSA(depth=2, branching=2, solver="em", **LIMITS),
    "grown tree": HierarchicalPLSA([-1, 0, 0], growth=5, **LIMITS),
}


@pytest.fixture
def stored_always(monkeypatch):
    """Write a state after every iteration, also in the default place, where it is written every ten seconds."""
    monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("iteration", [2, 12])
def test_models_store_their_state_beside_the_shards(name, iteration, tmp_path, stored_always):
    shards = write_shards([X], tmp_path, shard_nonzeros=300)
    whole, model = (clone(MODELS[name]) for _ in range(2))
    whole.fit(shards)
    expected = {attribute: np.array(getattr(whole, attribute)) for attribute in ("components_", "topic_weights_")}
    assert not (tmp_path / "fit").exists()
    with pytest.raises(Killed):
        model.set_params(callback=killed_at(iteration)).fit(shards)
    assert len(files_of(tmp_path / "fit")) == 1
    seen = []
    model.set_params(callback=lambda entry: seen.append(entry["iteration"])).fit(shards)
    assert seen[0] == iteration
    for attribute, value in expected.items():
        np.testing.assert_array_equal(getattr(model, attribute), value)
    assert_same_history(model, whole)
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("solver", ["scd", "em"])
@pytest.mark.parametrize("sharded", [False, True])
def test_each_of_several_starts_resumes(sharded, solver, start, tmp_path):
    data = write_shards([X], tmp_path / "shards", shard_nonzeros=300) if sharded else X
    settings = {**SETTINGS, "solver": solver, "n_init": 2}
    whole = PLSA(**settings).fit(data)
    store = Checkpoint(tmp_path / "states", 0)
    with pytest.raises(Killed):
        PLSA(**settings, checkpoint=store, callback=killed_at(7, start)).fit(data)
    assert len(files_of(tmp_path / "states")) == start + 1
    seen = []
    resumed = PLSA(**settings, checkpoint=store, callback=lambda entry: seen.append(entry["iteration"])).fit(data)
    other = [*range(26)] if start == 0 else []  # a start after the killed one begins, a finished one does nothing
    assert seen == [*range(7, 26), *other]
    assert_same_fit(resumed, whole)
    assert len(files_of(tmp_path / "states")) == 2


@pytest.mark.parametrize(("sharded", "with_documents"), [(False, True), (False, False), (True, False)])
def test_a_fit_from_a_given_start_resumes(sharded, with_documents, tmp_path):
    data = write_shards([X], tmp_path / "shards", shard_nonzeros=300) if sharded else X
    rng = np.random.default_rng(5)
    starts = [
        (rng.dirichlet(np.ones(4), 80) if with_documents else None, rng.dirichlet(np.ones(50), 4)) for _ in range(2)
    ]
    settings = {**SETTINGS, "solver": "accelerated-em"}
    store = Checkpoint(tmp_path / "states", 0)
    for init in starts:
        with pytest.raises(Killed):
            PLSA(**settings, init=init, checkpoint=store, callback=killed_at(7)).fit(data)
    assert len(files_of(tmp_path / "states")) == 2
    for init in starts:
        seen = []
        again = PLSA(
            **settings, init=init, checkpoint=store, callback=lambda entry, seen=seen: seen.append(entry["iteration"])
        ).fit(data)
        assert seen[0] == 7
        assert_same_fit(again, PLSA(**settings, init=init).fit(data))


def test_a_finished_fit_does_not_iterate_again(tmp_path):
    settings = {"random_state": 0, "checkpoint": Checkpoint(tmp_path, 0), "max_iter": 500}
    first = PLSA(3, **settings).fit(X)
    (file,) = files_of(tmp_path)
    seen = []
    again = PLSA(3, **settings, callback=seen.append).fit(X)
    assert not seen
    assert again.converged_
    assert files_of(tmp_path) == [file]
    assert_same_fit(again, first)


def test_other_fits_use_the_same_folder_without_disturbing_each_other(tmp_path):
    store = Checkpoint(tmp_path / "states", 0)
    shards = write_shards([X], tmp_path / "shards", shard_nonzeros=300)
    fits = [
        ({}, X),
        ({}, X[1:]),
        ({"solver": "em"}, X),
        ({"solver": "em"}, shards),
        ({"n_components": 5}, X),
        ({"random_state": 4}, X),
        ({"max_iter": 24}, X),
        ({"tol": 1e-9}, X),
        ({"background": 0.3}, X),
        ({"doc_topic_prior": 1.5}, X),
        ({"dtype": "float64"}, X),
        ({"init": "nndsvd"}, X),
    ]
    for number, (settings, data) in enumerate(fits):
        with pytest.raises(Killed):
            PLSA(**{**SETTINGS, **settings}, checkpoint=store, callback=killed_at(9)).fit(data)
        assert len(files_of(store.folder)) == number + 1
    for settings, data in fits:
        seen = []
        resumed = PLSA(
            **{**SETTINGS, **settings},
            checkpoint=store,
            callback=lambda entry, seen=seen: seen.append(entry["iteration"]),
        ).fit(data)
        assert seen[0] == 9
        assert_same_fit(resumed, PLSA(**{**SETTINGS, **settings}).fit(data))


def test_weights_of_documents_identify_a_fit_and_threads_do_not(tmp_path):
    settings = {**SETTINGS, "checkpoint": Checkpoint(tmp_path, 0)}
    PLSA(**settings, n_jobs=1).fit(X)
    PLSA(**settings, n_jobs=2).fit(X)
    assert len(files_of(tmp_path)) == 1
    PLSA(**settings).fit(X, sample_weight=np.linspace(1, 2, 80))
    assert len(files_of(tmp_path)) == 2


def test_shards_that_are_loaded_resume_the_fit_of_the_same_counts_in_memory(tmp_path):
    store = Checkpoint(tmp_path / "states", 0)
    with pytest.raises(Killed):
        PLSA(**SETTINGS, checkpoint=store, callback=killed_at(9)).fit(X)
    shards, seen = write_shards([X], tmp_path / "shards", shard_nonzeros=300), []
    resumed = PLSA(**SETTINGS, checkpoint=store, callback=lambda entry: seen.append(entry["iteration"])).fit(shards)
    assert seen[0] == 9
    assert_same_fit(resumed, PLSA(**SETTINGS).fit(shards))
    assert_same_history(resumed, PLSA(**SETTINGS).fit(X))


def test_states_stay_in_a_given_folder_and_not_beside_the_shards(tmp_path, stored_always):
    shards = write_shards([X], tmp_path / "shards", shard_nonzeros=300)
    settings = {**SETTINGS, "solver": "em"}
    PLSA(**settings, checkpoint=tmp_path / "states").fit(shards)
    (file,) = files_of(tmp_path / "states")
    assert sorted(path.name for path in file.parent.iterdir())[0] == CHECKPOINT_FILE
    assert not (tmp_path / "shards" / "fit").exists()
    seen = []
    PLSA(**settings, callback=lambda entry: seen.append(len(files_of(tmp_path / "shards" / "fit")))).fit(shards)
    assert seen[-1] == 1  # during the fit
    assert not (tmp_path / "shards" / "fit").exists()


def test_a_fit_in_memory_stores_nothing_by_default(tmp_path, monkeypatch, stored_always):
    monkeypatch.chdir(tmp_path)
    PLSA(**SETTINGS).fit(X)
    assert not [*tmp_path.iterdir()]


def test_files_that_a_killed_process_left_are_removed(tmp_path):
    store = Checkpoint(tmp_path / "states", 0)
    shards = write_shards([X], tmp_path / "shards", shard_nonzeros=300)
    settings = {**SETTINGS, "solver": "em", "checkpoint": store}
    with pytest.raises(Killed):
        PLSA(**settings, callback=killed_at(9)).fit(shards)
    (file,) = files_of(store.folder)
    shutil.copytree(next(file.parent.glob("theta-*")), file.parent / "theta-left")
    (file.parent / ".checkpoint.tmp").write_bytes(b"part")
    PLSA(**settings).fit(shards)
    names = sorted(path.name for path in file.parent.iterdir())
    assert "theta-left" not in names
    assert ".checkpoint.tmp" not in names


def test_a_fit_that_cannot_be_repeated_cannot_have_a_checkpoint(tmp_path):
    for random_state in (None, np.random.RandomState(0)):
        with pytest.raises(InputError, match="set random_state to an int"):
            PLSA(3, random_state=random_state, checkpoint=tmp_path / "x").fit(X)
    assert not (tmp_path / "x").exists()
    PLSA(3, random_state=np.int64(0), checkpoint=tmp_path / "x").fit(X)


def test_a_checkpoint_is_a_folder():
    with pytest.raises(InputError, match="must be None, a folder or a polyseme"):
        PLSA(3, random_state=0, checkpoint=5).fit(X)


def test_a_solver_that_cannot_be_resumed_refuses_a_checkpoint(tmp_path):
    able = "auto, em, accelerated-em, scd, online, tempered"
    for settings, message in (
        ({"solver": "plsi"}, f"checkpoint: solver='plsi' cannot be resumed. Solvers that can: {able}."),
        (
            {"early_stopping": EarlyStopping()},
            f"checkpoint: early_stopping cannot be resumed. Solvers that can, without early_stopping: {able}.",
        ),
    ):
        with pytest.raises(UnsupportedError) as error:
            PLSA(3, **settings, random_state=0, checkpoint=tmp_path / "x").fit(X)
        assert str(error.value) == message


def test_a_model_file_does_not_contain_the_path_of_the_checkpoint(tmp_path):
    PLSA(3, random_state=0, checkpoint=tmp_path / "x", max_iter=500).fit(X).save(tmp_path / "m.safetensors")
    assert polyseme.load(tmp_path / "m.safetensors").checkpoint is None


# damaged and forged files


def interrupted(folder, /, **settings):
    """Return the estimator of an interrupted fit, and its checkpoint file."""
    model = PLSA(**{**SETTINGS, **settings}, checkpoint=Checkpoint(folder, 0))
    with pytest.raises(Killed):
        model.set_params(callback=killed_at(9)).fit(X)
    (file,) = files_of(folder)
    return model.set_params(callback=None), file


def assert_refused(model, file, words):
    with pytest.raises(ModelFileError) as refused:
        model.fit(X)
    message = str(refused.value)
    assert message.startswith(f"{file} ")
    assert words in message
    assert message.endswith("remove it to start again.")
    assert "\n" not in message


def test_damaged_files_are_refused(tmp_path):
    model, file = interrupted(tmp_path)
    content = file.read_bytes()
    changed = bytearray(content)
    changed[-9] ^= 1
    file.write_bytes(changed)
    assert_refused(model, file, "digest does not match")
    file.write_bytes(content[:50])
    assert_refused(model, file, "damaged")
    file.write_bytes(b"")
    assert_refused(model, file, "damaged")
    file.unlink()
    model.fit(X)


def interrupted_on_shards(place, **settings):
    """Return the shards, the estimator of a fit from them that was interrupted, and its checkpoint file."""
    shards = write_shards([X], place / "shards", shard_nonzeros=300)
    store = Checkpoint(place / "states", 0)
    model = PLSA(**{**SETTINGS, "solver": "accelerated-em", **settings}, checkpoint=store, callback=killed_at(9))
    with pytest.raises(Killed):
        model.fit(shards)
    (file,) = files_of(place / "states")
    return shards, model.set_params(callback=None), file


def set_to_nan(content):
    content[-4:] = np.float32(np.nan).tobytes()


def flip_a_bit(content):
    content[-3] ^= 1


def cut(content):
    del content[-1:]


@pytest.mark.parametrize("damage", [set_to_nan, flip_a_bit, cut])
@pytest.mark.parametrize("rows", ["point", "last"])
@pytest.mark.parametrize("number", [0, -1])
def test_damaged_files_of_rows_are_refused(tmp_path, damage, rows, number):
    shards, model, file = interrupted_on_shards(tmp_path)
    folder = read_checkpoint(file, file.parent.name).files[rows].folder
    path = sorted(folder.glob("*.npy"))[number]
    content = bytearray(path.read_bytes())
    damage(content)
    path.write_bytes(content)
    seen = []
    for _ in range(2):  # nothing is removed
        with pytest.raises(ModelFileError) as refused:
            model.set_params(callback=seen.append).fit(shards)
        message = str(refused.value)
        assert message.startswith(f"{path} is damaged: ")
        assert message.endswith(f"checkpoint.safetensors; remove the folder {file.parent} to start again.") or (
            damage is cut and message.endswith(f"; remove the folder {file.parent} to start again.")
        )
    assert not seen, "the fit went on"
    shutil.rmtree(file.parent)
    model.fit(shards)
    assert seen[0]["iteration"] == 0


def test_missing_files_of_rows_are_refused(tmp_path):
    shards, model, file = interrupted_on_shards(tmp_path)
    for folder in file.parent.glob("theta-*"):
        shutil.rmtree(folder)
    with pytest.raises(ModelFileError, match=r"000000.npy is missing .* remove the folder .* to start again\.$"):
        model.fit(shards)


FORGED_ROWS = {
    "wider": lambda rows: np.tile(rows, 2),
    "narrower": lambda rows: rows[:, :-1].copy(),
    "fewer": lambda rows: rows[1:].copy(),
    "a vector": lambda rows: rows[:, 0].copy(),
    "another type": lambda rows: rows.astype(np.float64),
    "NaN": lambda rows: np.full_like(rows, np.nan),
    "not an array": lambda rows: None,
}


@pytest.mark.parametrize("change", FORGED_ROWS)
@pytest.mark.parametrize("names", [("point",), ("last",), ("point", "last")])
@pytest.mark.parametrize("every", [True, False])
def test_forged_files_of_rows_with_correct_digests_are_refused(tmp_path, change, names, every):
    shards, model, file = interrupted_on_shards(tmp_path)
    found = read_checkpoint(file, file.parent.name)
    for name in names:
        files = found.files[name]
        for entry in sorted(files.entries) if every else ["000002.npy"]:
            forged = FORGED_ROWS[change](np.load(files.folder / entry))
            if forged is None:
                (files.folder / entry).write_bytes(b"no array")
            else:
                np.save(files.folder / entry, forged)
            files.add(entry)
    write_checkpoint(file, file.parent.name, found)
    with pytest.raises(ModelFileError, match=r"does not belong to this fit .* to start again\.$"):
        model.fit(shards)


def test_a_file_of_rows_that_the_checkpoint_does_not_list_is_refused(tmp_path):
    shards, model, file = interrupted_on_shards(tmp_path)
    found = read_checkpoint(file, file.parent.name)
    del found.files["point"].entries["000001.npy"]
    write_checkpoint(file, file.parent.name, found)
    with pytest.raises(ModelFileError, match=r"000001.npy is not listed in checkpoint.safetensors; remove the folder"):
        model.fit(shards)


def test_rows_that_are_stored_again_are_not_hashed_again(tmp_path, monkeypatch):
    """The step before the last one was the last step of the checkpoint before."""
    hashed, digest = [], files.file_digest
    monkeypatch.setattr(files, "file_digest", lambda file: hashed.append(file.name) or digest(file))
    interrupted_on_shards(tmp_path, solver="em")
    rows = [name for name in map(str, hashed) if "theta-" in name]
    assert len(rows) > 10
    assert len(set(rows)) == len(rows)


def test_the_file_of_another_fit_is_refused(tmp_path):
    model, file = interrupted(tmp_path / "one")
    _, other = interrupted(tmp_path / "other", n_components=5)
    shutil.copy(other, file)
    assert_refused(model, file, "another fit")


def forge(file, change):
    """Change the content of a checkpoint file, with a correct digest."""
    found = read_checkpoint(file, file.parent.name)
    change(found.arrays)
    write_checkpoint(file, file.parent.name, found)


FORGED = {
    "fewer documents": lambda part: part["docs"].update({"point": part["docs"]["point"][1:].copy()}),
    "wider documents": lambda part: part["docs"].update({"point": np.tile(part["docs"]["point"], 2)}),
    "wider documents of a step": lambda part: part["docs"].update({"last": np.tile(part["docs"]["last"], 2)}),
    "documents of a vector": lambda part: part["docs"].update({"point": part["docs"]["point"][:, 0].copy()}),
    "documents of another type": lambda part: part["docs"].update({"point": part["docs"]["point"].astype(np.int64)}),
    "NaN in documents": lambda part: part["docs"].update({"last": np.full_like(part["docs"]["last"], np.nan)}),
    "no documents": lambda part: part["docs"].pop("point"),
    "fewer words": lambda part: part["words"].update({"point0": part["words"]["point0"][1:].copy()}),
    "wider words": lambda part: part["words"].update({"point0": np.tile(part["words"]["point0"], 2)}),
    "wider words of a step": lambda part: part["words"].update({"last0": np.tile(part["words"]["last0"], 2)}),
    "words of another type": lambda part: part["words"].update({"point0": part["words"]["point0"].astype(np.float64)}),
    "NaN in words": lambda part: part["words"].update({"point0": np.full_like(part["words"]["point0"], np.nan)}),
    "one NaN in words": lambda part: part["words"]["point0"].put(7, np.nan),
    "infinity in a step": lambda part: part["words"].update({"last0": np.full_like(part["words"]["last0"], np.inf)}),
    "no words": lambda part: part["words"].pop("point0"),
    "no words of a step": lambda part: part["words"].pop("last0"),
    "no numbers": lambda part: part.pop("numbers"),
    "numbers of an array": lambda part: part["numbers"].update({"size": np.ones(3)}),
    "no history": lambda part: part.pop("history"),
    "an empty history": lambda part: part["history"].update({name: np.empty(0) for name in part["history"]}),
    "an uneven history": lambda part: part["history"].update({"seconds": np.zeros(99)}),
    "a history of a matrix": lambda part: part["history"].update({name: np.ones((2, 2)) for name in part["history"]}),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_content_is_refused(name, tmp_path):
    model, file = interrupted(tmp_path, solver="accelerated-em")
    forge(file, FORGED[name])
    assert_refused(model, file, "")


@pytest.mark.parametrize("solver", ["scd", "online", "em", "tempered"])
@pytest.mark.parametrize("part", ["docs", "words"])
@pytest.mark.parametrize("change", ["shape", "width", "type", "NaN", "missing"])
def test_forged_arrays_of_every_solver_are_refused(solver, part, change, tmp_path):
    model, file = interrupted(tmp_path, solver=solver)
    names = read_checkpoint(file, file.parent.name).arrays.get(part, {})
    if not names:
        assert (solver, part) == ("online", "docs")
        return

    def changed(arrays):
        for name in names:
            array = arrays[part][name]
            if change == "missing":
                del arrays[part][name]
            else:
                arrays[part][name] = {
                    "shape": array[1:].copy(),
                    "width": np.tile(array, 2),
                    "type": array.astype(np.float64),
                    "NaN": np.full_like(array, np.nan),
                }[change]

    forge(file, changed)
    assert_refused(model, file, "")


FORGED_MODELS = {
    "LDA": ["point0", "point1", "point2"],
    "LDA, online": ["counts", "mean_logs", "alpha", "eta"],
    "grown tree": ["point0", "point1", "parents"],
}


@pytest.mark.parametrize(
    ("name", "array", "change"),
    [
        (name, array, change)
        for name, arrays in FORGED_MODELS.items()
        for array in arrays
        for change in ("shape", "type", "missing")
        if (array, change) != ("parents", "type")  # integers of any type are the same tree
    ],
)
def test_forged_arrays_of_other_models_are_refused(name, array, change, tmp_path, stored_always):
    shards = write_shards([X], tmp_path, shard_nonzeros=300)
    model = clone(MODELS[name]).set_params(callback=killed_at(9))
    with pytest.raises(Killed):
        model.fit(shards)
    (file,) = files_of(tmp_path / "fit")

    def changed(arrays):
        value = arrays["words"].pop(array)
        if change == "shape":
            arrays["words"][array] = value[1:].copy()
        elif change == "type":
            arrays["words"][array] = value.astype(np.float16)

    forge(file, changed)
    with pytest.raises(ModelFileError, match="remove it to start again") as refused:
        model.set_params(callback=None).fit(shards)
    assert str(refused.value).startswith(f"{file} ")


@pytest.mark.parametrize("parents", [[-1, 0, 0, 9, 9], [-1, 0, 0, 0, 0], [-1, 0, 0, 1], [-1, 0, 0, 1, 2], [0, 0, 0]])
def test_a_forged_tree_is_refused(parents, tmp_path, stored_always):
    shards = write_shards([X], tmp_path, shard_nonzeros=300)
    model = clone(MODELS["grown tree"]).set_params(callback=killed_at(9))
    with pytest.raises(Killed):
        model.fit(shards)
    (file,) = files_of(tmp_path / "fit")
    forge(file, lambda arrays: arrays["words"].update(parents=np.array(parents)))
    with pytest.raises(ModelFileError, match="parents is another tree"):
        model.set_params(callback=None).fit(shards)


@pytest.mark.parametrize("folder", ["../elsewhere", "/elsewhere", "a/b", "..", ".", "", "a\\b"])
def test_a_checkpoint_refers_only_to_folders_beside_it(tmp_path, folder, monkeypatch):
    path = tmp_path / CHECKPOINT_FILE
    numbers = {"numbers": {"passes": np.array(1.0)}}
    files = FileManifest(tmp_path / "theta-x", {"000000.npy": FileEntry(3, "0" * 64)})
    write_checkpoint(path, "fit", CheckpointContent(numbers, {"theta": files}))
    (found,) = read_checkpoint(path, "fit").files.values()
    assert (found.folder, found.entries) == (files.folder, files.entries)
    text = json.dumps({"theta": {"folder": folder, "files": files.to_json()}})
    monkeypatch.setattr("polyseme.solvers.checkpoints.json.dumps", lambda _: text)
    write_checkpoint(path, "fit", CheckpointContent(numbers, {"theta": files}))
    with pytest.raises(ModelFileError, match=r"is damaged .*the name of a folder"):
        read_checkpoint(path, "fit")


# files of other fits


def test_a_fit_that_ends_leaves_the_checkpoint_of_a_killed_one(tmp_path, stored_always):
    shards = write_shards([X], tmp_path, shard_nonzeros=300)
    settings = {**SETTINGS, "solver": "em"}
    whole = PLSA(**settings).fit(shards)
    expected = np.array(whole.doc_topic_)
    with pytest.raises(Killed):
        PLSA(**settings, callback=killed_at(9)).fit(shards)
    (file,) = files_of(tmp_path / "fit")
    before = content_of(file.parent)
    for other in (PLSA(**{**settings, "n_components": 3}), clone(MODELS["LDA"]), clone(MODELS["tree"])):
        other.fit(shards)
        other.transform(shards)
        assert content_of(file.parent) == before
        assert files_of(tmp_path / "fit") == [file]
    with pytest.raises(Killed):
        PLSA(**{**settings, "n_components": 3}, callback=killed_at(9)).fit(shards)
    assert content_of(file.parent) == before
    seen = []
    resumed = PLSA(**settings, callback=lambda entry: seen.append(entry["iteration"])).fit(shards)
    assert seen[0] == 9
    np.testing.assert_array_equal(resumed.doc_topic_, expected)


def test_transform_with_another_model_touches_no_other_file(tmp_path, stored_always):
    shards = write_shards([X], tmp_path, shard_nonzeros=300)
    model, other = (PLSA(**{**SETTINGS, "n_components": K}).fit(X) for K in (4, 5))
    fitted = PLSA(**SETTINGS).fit(shards)
    with pytest.raises(Killed):
        PLSA(**SETTINGS, solver="em", callback=killed_at(9)).fit(shards)
    before, doc_topic = content_of(tmp_path), np.array(fitted.doc_topic_)
    first = model.transform(shards)
    values = np.array(first)
    assert other.transform(shards).shape == (80, 5)
    np.testing.assert_array_equal(first, values)
    np.testing.assert_array_equal(fitted.doc_topic_, doc_topic)
    after = content_of(tmp_path)
    assert after.keys() - before.keys() == {"transformed.npy"}
    assert {name: after[name] for name in before} == before


def content_of(folder):
    """Return the content of all files below a folder, without the rows that no fit of this process uses any more."""
    gc.collect()
    remove_unused()
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_saving_over_files_in_use_does_not_change_mapped_arrays(tmp_path):
    """A new file gets the name, and the old one exists until the last reader closes it."""
    shards = write_shards([X], tmp_path / "shards", shard_nonzeros=300)
    model = PLSA(**SETTINGS).fit(shards)
    expected = {"doc_topic": np.array(model.doc_topic_), "counts": [part.toarray() for part in shards]}
    mapped = list(shards)
    for path in [*(tmp_path / "shards").glob("*.safetensors"), *(tmp_path / "shards").glob("*.npy")]:
        PLSA(**SETTINGS).fit(X).save(path)
    np.testing.assert_array_equal(model.doc_topic_, expected["doc_topic"])
    for part, values in zip(mapped, expected["counts"], strict=True):
        np.testing.assert_array_equal(part.toarray(), values)
    with pytest.raises(ShardError, match="where the manifest says"):
        list(shards)
    # The rows of a model are mapped from the file that the model, or another fit, is saved to.
    target = tmp_path / "shards" / "doc_topic.npy"
    model.save(target)
    np.testing.assert_array_equal(polyseme.load(target).doc_topic_, expected["doc_topic"])
    np.testing.assert_array_equal(model.doc_topic_, expected["doc_topic"])


def test_a_fit_to_the_same_shards_does_not_change_arrays_of_the_one_before(tmp_path):
    shards = write_shards([X], tmp_path, shard_nonzeros=300)
    first = PLSA(**SETTINGS).fit(shards)
    values = np.array(first.doc_topic_)
    PLSA(**{**SETTINGS, "random_state": 9}).fit(shards)
    np.testing.assert_array_equal(first.doc_topic_, values)


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_a_planted_link_in_place_of_a_new_file_is_not_followed(tmp_path):
    shards = write_shards([X], tmp_path / "shards", shard_nonzeros=300)
    (tmp_path / "victim").write_bytes(b"content")
    (tmp_path / "shards" / "doc_topic.npy.part").symlink_to(tmp_path / "victim")
    PLSA(**SETTINGS).fit(shards)
    assert (tmp_path / "victim").read_bytes() == b"content"
    assert not (tmp_path / "shards" / "doc_topic.npy").is_symlink()
