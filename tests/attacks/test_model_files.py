"""Files with the training documents of a model that are damaged or hostile are one clear error."""

import os
import re

import numpy as np
import pytest

import oracles
import polyseme
from polyseme import LDA, ModelFileError
from polyseme.io import models
from polyseme.io.arrays import digest_of, read_safetensors, write_safetensors
from polyseme.io.files import digest_of_file
from sealed_files import rewrite_model

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = oracles.mixed_counts(0, 12, 9, 2)


@pytest.fixture
def path(tmp_path):
    model = LDA(2, random_state=0, max_iter=5).fit(X)
    (tmp_path / "run").mkdir()
    models.save(model, tmp_path / "run" / "model.safetensors", documents_beside=True)
    return tmp_path / "run" / "model.safetensors"


def changed(path, change):
    """Change the entries of the arrays beside a model file, and write a digest that matches."""
    rewrite_model(path, lambda header, _: change(header["beside"]) and None)


def replaced(path, array):
    """Write another array to doc_topic.npy, with a digest, shape and type that match."""
    file = path.with_name("doc_topic.npy")
    np.save(file, array)
    given = {"shape": list(array.shape), "dtype": array.dtype.name, "sha256": digest_of_file(file)}
    changed(path, lambda beside: beside["documents_.doc_topic"].update(given))


def refused(path, *parts, **options):
    with pytest.raises(ModelFileError) as error:
        polyseme.load(path, **options)
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


NAMES = [
    "../doc_topic.npy", "/etc/passwd", "sub/doc_topic.npy", "..", ".", "", "doc_weights.npy", "doc_topic.npy\0",
    "C:\\doc_topic.npy", "..\\doc_topic.npy", "~/doc_topic.npy", "doc_topic", 5, None, ["doc_topic.npy"],
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", [True, False])
def test_only_the_name_of_the_array_is_read(path, name, check):
    (path.parent.parent / "doc_topic.npy").write_bytes(path.with_name("doc_topic.npy").read_bytes())
    changed(path, lambda beside: beside["documents_.doc_topic"].update(file=name))
    refused(path, "model.safetensors", "file", check_documents=check)


@pytest.mark.parametrize(
    "name", ["documents_", "fitted_.topic_word", "../x", "history_.gain", "documents_.doc_topic.x", ""]
)
def test_only_arrays_of_documents_can_be_beside_the_model(path, name):
    changed(path, lambda beside: beside.update({name: beside["documents_.doc_topic"]}))
    refused(path, "the name of an array of the documents")


WRONG = [
    {"shape": [12, 3]}, {"shape": [24]}, {"shape": []}, {"shape": [-1, 2]}, {"shape": [12, 2, 1]}, {"shape": "12"},
    {"shape": [10**30, 2]}, {"dtype": "float32"}, {"dtype": "object"}, {"dtype": "V8"}, {"dtype": None},
    {"sha256": ""}, {"sha256": None}, {"sha256": "0" * 64}, {"more": 1},
]  # fmt: skip


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_an_entry_that_does_not_match_its_file_is_refused(path, change):
    changed(path, lambda beside: beside["documents_.doc_topic"].update(change))
    refused(path)


@pytest.mark.parametrize("entry", [None, 5, [], "doc_topic.npy", {}, {"value": 0.5}])
def test_an_entry_of_another_type_is_refused(path, entry):
    changed(path, lambda beside: beside.update({"documents_.doc_topic": entry}))
    refused(path)


@pytest.mark.parametrize("value", [-1, 2, None, "0.1", True, 10**400])
def test_a_constant_that_is_not_a_share_is_refused(path, value):
    changed(path, lambda beside: beside.update({"documents_.background": {"value": value}}))
    refused(path)


def test_a_constant_needs_the_documents(path):
    changed(path, lambda beside: beside.pop("documents_.doc_weights"))
    refused(path, "documents_.doc_weights")


@pytest.mark.parametrize("name", ["documents_.doc_topic", "documents_.background", "documents_.doc_weights"])
def test_a_missing_entry_is_refused(path, name):
    changed(path, lambda beside: beside.pop(name))
    refused(path)


def test_an_array_cannot_be_in_both_files(path):
    metadata, tensors = read_safetensors(path)
    tensors = {**tensors, "documents_.doc_topic": np.full((12, 2), 0.5)}
    text = metadata["polyseme"]
    write_safetensors(path, tensors, {"polyseme": text, "digest": digest_of(text, tensors)})
    refused(path, "twice")


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(path, value, check):
    rows = np.full((12, 2), 0.5)
    rows[11, 1] = value
    replaced(path, rows)
    refused(path, "documents_.doc_topic is not finite", check_documents=check)


@pytest.mark.parametrize(
    "rows",
    [np.full((11, 2), 0.5), np.full((12, 3), 0.3), np.full((12, 2), 1), np.full(12, 0.5), np.empty((0, 2))],
    ids=lambda rows: f"{rows.dtype} {rows.shape}",
)
def test_rows_that_do_not_fit_the_model_are_refused(path, rows):
    replaced(path, rows)
    refused(path)


def test_objects_are_refused(path):
    file = path.with_name("doc_topic.npy")
    np.save(file, np.full((12, 2), None), allow_pickle=True)
    changed(path, lambda beside: beside["documents_.doc_topic"].update(sha256=digest_of_file(file)))
    refused(path, "doc_topic.npy", "not a .npy file of numbers")


def test_a_missing_file_is_named(path):
    path.with_name("gamma.npy").unlink()
    refused(path, "gamma.npy is missing or damaged")


def test_a_flipped_bit_is_noticed(path):
    file = path.with_name("doc_topic.npy")
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    refused(path, "doc_topic.npy is missing or damaged: its digest")
    assert polyseme.load(path, check_documents=False).doc_topic_.shape == (12, 2)


@pytest.mark.parametrize("size", [0, 10, 100, 319])
def test_a_file_that_ends_early_is_noticed(path, size):
    file = path.with_name("doc_topic.npy")
    file.write_bytes(file.read_bytes()[:size])
    refused(path, "doc_topic.npy is missing or damaged", check_documents=False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_block(path):
    file = path.with_name("doc_topic.npy")
    file.unlink()
    os.mkfifo(file)
    refused(path, "doc_topic.npy is missing or damaged: it is not a regular file")


@pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
class TestLinks:
    def test_a_link_shows_nothing_of_another_file(self, path, tmp_path):
        secret = tmp_path / "secret.txt"
        secret.write_text("the password is swordfish")
        file = path.with_name("doc_topic.npy")
        file.unlink()
        file.symlink_to(secret)
        refused(path, "doc_topic.npy is missing or damaged", check_documents=False)
        with pytest.raises(ModelFileError) as error:
            polyseme.load(path)
        assert not re.search("swordfish|secret", str(error.value))

    @pytest.mark.parametrize("target", ["doc_topic.npy", "nowhere", ".", "/dev/zero"])
    def test_a_link_without_an_array_is_refused(self, path, target):
        file = path.with_name("doc_topic.npy")
        file.unlink()
        file.symlink_to(target)
        refused(path, "doc_topic.npy is missing or damaged")

    def test_saving_replaces_a_link_and_not_its_target(self, path, tmp_path):
        model, target, file = polyseme.load(path), tmp_path / "target.npy", path.with_name("doc_topic.npy")
        os.replace(file, target)
        before = target.read_bytes()
        file.symlink_to(target)
        assert np.array_equal(polyseme.load(path).doc_topic_, model.doc_topic_)  # the same content
        other = LDA(2, random_state=1, max_iter=1).fit(X)
        for saved in (model, other):
            file.unlink()
            file.symlink_to(target)
            models.save(saved, path, documents_beside=True)
            assert not file.is_symlink()
            assert target.read_bytes() == before
            assert np.array_equal(polyseme.load(path).doc_topic_, saved.doc_topic_)
