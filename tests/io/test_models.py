"""Model files: loading restores everything, damage is noticed, and a failed write keeps the old file."""

import json
import os
import stat
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save_file

import oracles
import polyseme
from estimator_cases import MEMBERS, NMF_LOSSES, PLSA_LOSSES, X_WITH_GAPS, fitted_attributes
from polyseme import PLSA, Background, JointBackground, ModelFileError, TensorPLSA, solvers
from polyseme.io import arrays as arrays_module
from polyseme.io import models as storage
from polyseme.io.arrays import read_safetensors
from polyseme.solvers.base import SOLVERS
from sealed_files import rewrite_model
from solver_problems import LIKELIHOOD

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 12, 9, 2)
X[4] = 0
WORDS = ["ant", "bee", "über", "水", 'quote"d', "back\\slash", "a b", "", "zinc"]


@pytest.fixture(scope="module")
def model():
    """Return a small model with numbers that JSON writes with an exponent, and with words beyond ASCII."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=WORDS)
    return PLSA(2, random_state=0, max_iter=5, tol=1e-9).fit(table)


@pytest.fixture
def path(model, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    return path


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other


# round trip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_loading_restores_everything(tmp_path, dtype, layout):
    data = layout(X.astype(dtype))
    model = PLSA(2, random_state=np.int64(3), tol=np.float64(0.01), dtype=dtype).fit(data)
    model.save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    assert type(loaded) is PLSA
    assert set(vars(loaded)) == set(vars(model))
    before, after = fitted_attributes(model), fitted_attributes(loaded)
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert same(after[name], value), name
    assert np.array_equal(loaded.transform(data), model.doc_topic_)
    assert np.array_equal(loaded.topic_doc_, model.topic_doc_)
    assert loaded.score(data) == model.score(data)
    assert loaded.get_params() == {**model.get_params(), "dtype": np.dtype(dtype).name}


def test_loading_restores_feature_names(model, path):
    loaded = polyseme.load(path)
    assert list(loaded.feature_names_in_) == WORDS
    assert loaded.feature_names_in_.dtype == object
    assert list(loaded.topics()["words"]) == list(model.topics()["words"])


def test_the_columns_of_the_history_keep_their_order(model, path):
    assert list(polyseme.load(path).history_) == list(model.history_)


def test_a_loaded_model_can_be_saved_and_fitted_again(model, path, tmp_path):
    loaded = polyseme.load(path)
    loaded.save(str(tmp_path / "again"))
    assert np.array_equal(polyseme.load(str(tmp_path / "again")).components_, model.components_)
    loaded.fit(X)
    assert np.array_equal(loaded.components_, model.components_)


def test_parameters_without_a_json_form_are_omitted(tmp_path):
    start = oracles.random_factors(1, *X.shape, 2)
    model = PLSA(2, init=start, random_state=np.random.RandomState(0), callback=lambda entry: None, max_iter=3).fit(X)
    model.save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    assert (loaded.init, loaded.random_state, loaded.callback) == ("random", None, None)
    assert np.array_equal(loaded.transform(X), model.doc_topic_)


@pytest.mark.parametrize("name", LIKELIHOOD)
def test_a_model_of_a_solver_object_can_be_saved(tmp_path, name):
    model = PLSA(2, solver=SOLVERS[name](), random_state=0, max_iter=3).fit(X)
    model.save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    assert loaded.solver == model.solver
    assert np.array_equal(loaded.components_, model.components_)
    assert np.array_equal(loaded.transform(X), model.doc_topic_)


def test_an_interrupted_model_can_be_saved(tmp_path):
    def interrupt(entry):
        if entry["iteration"] == 2:
            raise KeyboardInterrupt

    model = PLSA(2, random_state=0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    model.save(tmp_path / "model")
    assert polyseme.load(tmp_path / "model").n_iter_ == 2


def test_the_file_has_the_permissions_of_any_new_file(path, tmp_path):
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


# damage


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as error:
        polyseme.load(path)
    return str(error.value)


def header_length(content):
    return 8 + int.from_bytes(content[:8], "little")


def test_a_flipped_bit_anywhere_is_noticed(path):
    content = path.read_bytes()
    rng = np.random.default_rng(2)
    for position in rng.integers(len(content), size=50):
        damaged = bytearray(content)
        damaged[position] ^= 1 << rng.integers(8)
        assert str(path) in refused(path, bytes(damaged))


def test_a_flipped_bit_in_any_byte_of_the_header_is_noticed(path):
    """Also bits that change only the spelling: bit 5 turns 1e-09 into 1E-09, bit 0 changes the last of 17 digits."""
    content = path.read_bytes()
    assert b"1e-09" in content
    unnoticed = []
    for position in range(header_length(content)):
        for bit in (0, 1, 5):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                polyseme.load(path)
            except ModelFileError:
                continue
            unnoticed.append((position, content[position - 5 : position + 5], chr(damaged[position])))
    assert not unnoticed


def test_a_flipped_bit_in_the_arrays_is_reported_as_damage(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    assert "damaged: its digest does not match" in refused(path, bytes(content))


def test_a_truncated_file_is_noticed(path):
    content = path.read_bytes()
    header = header_length(content)
    for length in (0, 1, 7, 8, 9, 100, header - 1, header, header + 1, len(content) - 8, len(content) - 1):
        assert "damaged" in refused(path, content[:length])


def test_a_file_with_extra_bytes_is_noticed(path):
    assert "damaged" in refused(path, path.read_bytes() + b"\0")


def test_random_bytes_are_refused(tmp_path):
    rng = np.random.default_rng(3)
    for length in (10, 100, 5000):
        assert "not a polyseme model" in refused(tmp_path / "noise", rng.bytes(length))
    assert "not a polyseme model" in refused(tmp_path / "text", b"Dear reader, this is a letter.\n" * 20)


FOREIGN_TEXTS = ["no JSON", "[1, 2]", "3", "null", "{}", '{"digest": "x"}', '{"digest": null}']


@pytest.mark.parametrize("metadata", [None, {}, {"other": "thing"}, *({"polyseme": text} for text in FOREIGN_TEXTS)])
def test_other_safetensors_files_are_refused(tmp_path, metadata):
    save_file({"components_": np.ones((2, 3))}, tmp_path / "foreign", metadata=metadata)
    with pytest.raises(ModelFileError, match=r"foreign .*(is not a polyseme model|damaged)"):
        polyseme.load(tmp_path / "foreign")


def test_a_newer_format_is_refused_with_advice_to_update(model, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "FORMAT_VERSION", storage.FORMAT_VERSION + 1)
    model.save(tmp_path / "newer")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=rf"by polyseme {polyseme.__version__} in a newer format: update polyseme"):
        polyseme.load(tmp_path / "newer")


def test_an_unknown_class_is_named(tmp_path):
    class DeepPLSA(PLSA):
        pass

    DeepPLSA(2, max_iter=2).fit(X).save(tmp_path / "deep")
    with pytest.raises(ModelFileError, match="holds a DeepPLSA, which this version of polyseme does not have: use"):
        polyseme.load(tmp_path / "deep")


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no model file .*absent"):
        polyseme.load(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="There is no model file"):
        polyseme.load(tmp_path)


def test_a_file_contains_no_pickle(path):
    """A pickle starts with its protocol; this file has a JSON header and numbers."""
    content = path.read_bytes()
    header = json.loads(content[8 : header_length(content)])
    parts = json.loads(header.pop("__metadata__")["polyseme"])
    assert parts["format_version"] == 2
    assert parts["library_version"] == polyseme.__version__
    assert parts["parameters"]["n_components"] == 2
    assert {tensor["dtype"] for tensor in header.values()} <= {"F32", "F64", "I64", "BOOL"}


# atomic writes


@pytest.mark.parametrize("function", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, monkeypatch, function, error):
    def fail(*args, **kwargs):
        raise error

    before = path.read_bytes()
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)):
        PLSA(3, random_state=1, max_iter=2).fit(X).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failed_first_write_leaves_nothing(model, tmp_path, monkeypatch, function):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="No space left"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_complete_file_replaces_the_old_one(path):
    PLSA(3, random_state=1, max_iter=2).fit(X).save(path)
    assert polyseme.load(path).n_components == 3
    assert list(path.parent.iterdir()) == [path]


def test_saving_in_a_folder_that_does_not_exist(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "nowhere" / "model")


# training documents beside the model file


@pytest.fixture(scope="module")
def fitted_members():
    """Return a function that returns a small fitted model of each kind, fitted once."""
    known = {}

    def fit(name):
        if name not in known:
            known[name] = MEMBERS[name].make(random_state=0, n_jobs=1).fit(X_WITH_GAPS)
        return known[name]

    return fit


FILES = {
    "PLSA": {"doc_topic.npy", "doc_weights.npy"},
    "NMF": {"doc_topic.npy", "doc_weights.npy", "doc_totals.npy"},
    **{f"NMF-{loss}": {"doc_topic.npy", "doc_weights.npy", "factor.npy"} for loss in NMF_LOSSES},
    **{f"PLSA-{loss}": {"doc_topic.npy", "doc_weights.npy"} for loss in PLSA_LOSSES},
    "LDA": {"doc_topic.npy", "doc_weights.npy", "gamma.npy"},
    "LDA-map": {"doc_topic.npy", "doc_weights.npy"},
    "HierarchicalPLSA": {"doc_topic.npy", "doc_weights.npy", "labels.npy"},
    "MultinomialMixture": {"doc_topic.npy", "doc_weights.npy"},
    "CorrelatedTopicModel": {"doc_topic.npy", "doc_weights.npy", "mean.npy", "variance.npy"},
}


@pytest.mark.parametrize("name", FILES)
def test_the_arrays_of_the_documents_are_files_beside_the_model(name, fitted_members, tmp_path):
    model = fitted_members(name)
    storage.save(model, tmp_path / "model.safetensors", documents_beside=True)
    assert {path.name for path in tmp_path.iterdir()} == {"model.safetensors", *FILES[name]}
    metadata, tensors = read_safetensors(tmp_path / "model.safetensors")
    assert len(X_WITH_GAPS) not in {size for array in tensors.values() for size in array.shape}
    assert set(json.loads(metadata["polyseme"])["beside"]) > {"documents_.doc_topic", "documents_.doc_weights"}
    for options in ({}, {"check_documents": False}):
        loaded = polyseme.load(tmp_path / "model.safetensors", **options)
        assert vars(loaded).keys() == vars(model).keys()
        found = fitted_attributes(loaded)
        for attribute, value in fitted_attributes(model).items():
            assert same(found[attribute], value), attribute
        rows = loaded._training.doc_topic
        assert not rows.flags.writeable
        assert isinstance(rows.base, np.memmap)
        assert np.array_equal(loaded.transform(X_WITH_GAPS), model.transform(X_WITH_GAPS))
        loaded.with_documents(X_WITH_GAPS)


def test_a_share_of_the_background_that_differs_between_documents_is_a_file(tmp_path):
    shares = {}
    for kind in (Background, JointBackground):
        model = PLSA(2, random_state=0, max_iter=5, background=kind(0.2)).fit(X)
        folder = tmp_path / kind.__name__
        folder.mkdir()
        storage.save(model, folder / "model", documents_beside=True)
        shares[kind] = (folder / "background.npy").exists()
        assert np.array_equal(polyseme.load(folder / "model").doc_background_, model.doc_background_)
    assert shares == {Background: False, JointBackground: True}


def test_a_model_without_documents_has_no_files_beside_it(tmp_path):
    model = PLSA(2, random_state=0).partial_fit(X)
    storage.save(model, tmp_path / "model", documents_beside=True)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert polyseme.load(tmp_path / "model")._training is None


def test_a_file_with_the_same_content_is_not_written(model, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    storage.save(model, path, documents_beside=True)
    loaded, before = polyseme.load(path), (tmp_path / "doc_topic.npy").stat()
    storage.save(loaded, path, documents_beside=True)
    assert os.path.samestat(before, (tmp_path / "doc_topic.npy").stat())
    other = PLSA(2, random_state=1, max_iter=1).fit(X)  # of the same size
    storage.save(other, path, documents_beside=True)
    assert not os.path.samestat(before, (tmp_path / "doc_topic.npy").stat())
    assert np.array_equal(polyseme.load(path).doc_topic_, other.doc_topic_)
    assert np.array_equal(loaded.doc_topic_, model.doc_topic_)  # still mapped from the old file
    storage.save(loaded, path, documents_beside=True)  # mapped from a file of this name that is not this file
    assert np.array_equal(polyseme.load(path).doc_topic_, model.doc_topic_)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_written_and_checked_in_blocks(model, tmp_path, monkeypatch, order):
    monkeypatch.setattr(arrays_module, "_WRITTEN_AT_ONCE", 50)
    sizes = []
    written = arrays_module.bytes_of
    monkeypatch.setattr(arrays_module, "bytes_of", lambda rows: (sizes.append(rows.nbytes), written(rows))[1])
    turned = copy(model)
    turned._training = replace(model._training, doc_topic=np.asarray(model.doc_topic_, order=order))
    storage.save(turned, tmp_path / "model", documents_beside=True)
    assert len(sizes) > 4
    assert max(sizes) <= 50
    assert np.array_equal(polyseme.load(tmp_path / "model").doc_topic_, model.doc_topic_)
    assert np.array_equal(np.load(tmp_path / "doc_topic.npy"), model.doc_topic_)


def test_a_mapped_array_is_copied_to_another_folder(model, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    storage.save(model, tmp_path / "a" / "model", documents_beside=True)
    storage.save(polyseme.load(tmp_path / "a" / "model"), tmp_path / "b" / "model", documents_beside=True)
    for file in ("doc_topic.npy", "doc_weights.npy"):  # safetensors writes metadata in any order
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_of_an_array_leaves_no_half_file(model, tmp_path, monkeypatch, error):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)):
        storage.save(model, tmp_path / "model", documents_beside=True)
    assert list(tmp_path.iterdir()) == []


# declarations


def test_an_attribute_that_the_class_does_not_declare_is_refused(path):
    rewrite_model(path, lambda header, _: header["attributes"].update(secret_=1) and None)
    with pytest.raises(ModelFileError, match="'secret_' is not an attribute of a fitted PLSA"):
        polyseme.load(path)


def test_the_attributes_that_solvers_set_are_restored(tmp_path):
    for settings in ({"solver": "annealed"}, {"early_stopping": solvers.EarlyStopping(folds=2)}):
        model = PLSA(2, random_state=0, max_iter=5, **settings).fit(X)
        model.save(tmp_path / "model")
        loaded = polyseme.load(tmp_path / "model")
        for name in {"annealing_", "held_out_"} & vars(model).keys():
            assert np.array_equal(getattr(loaded, name), getattr(model, name))
        assert vars(loaded).keys() == vars(model).keys()


def test_factors_of_a_tensor_that_contradict_its_shape_are_refused(tmp_path):
    TensorPLSA(2, random_state=0).fit(X.reshape(len(X), 3, -1)).save(tmp_path / "model")
    rewrite_model(tmp_path / "model", lambda _, tensors: tensors.update(factor_1_=tensors["factor_1_"][:, :2].copy()))
    with pytest.raises(ModelFileError, match="the factors do not have the sizes in shape_"):
        polyseme.load(tmp_path / "model")
