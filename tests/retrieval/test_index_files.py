"""Index files: round trips, memory mapping, and damaged files."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import retrieval_corpus
from polyseme import PLSA, InputError, ModelFileError
from polyseme.retrieval import SearchIndex
from polyseme.retrieval.scores import METHODS

QUERIES = ["car engine", "jaguar", "money time", "zebra"]


@pytest.fixture(scope="module")
def index():
    return retrieval_corpus.full_index()


@pytest.fixture
def path(index, tmp_path):
    index.save(tmp_path / "search.index")
    return tmp_path / "search.index"


def rewrite(path, change):
    """Rewrite the file after `change(header, tensors)`."""
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["polyseme_index"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(header, tensors)
    save_file(tensors, path, metadata={"polyseme_index": json.dumps(header)})


@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_index_has_the_same_scores(index, path, method):
    loaded = SearchIndex.load(path)
    np.testing.assert_array_equal(loaded.scores(QUERIES, method=method), index.scores(QUERIES, method=method))
    assert loaded.search("car", 3, method=method).to_dict() == index.search("car", 3, method=method).to_dict()


def test_a_loaded_index_has_the_same_senses_and_names(index, path):
    loaded = SearchIndex.load(path)
    assert (loaded.ids, loaded.titles, loaded.vocabulary) == (index.ids, index.titles, index.vocabulary)
    assert loaded.senses("jaguar") == index.senses("jaguar")
    assert loaded.related_words("car") == index.related_words("car")
    assert loaded.similar_documents("d1").to_dict() == index.similar_documents("d1").to_dict()


def test_arrays_are_memory_mapped_and_read_only(path):
    loaded = SearchIndex.load(path)
    for array in (
        loaded.counts.data,
        loaded.scoring.terms.postings.indices,
        loaded.scoring.terms.bm25_values,
        loaded.scoring.average.documents,
        loaded.scoring.model.topic_word,
        loaded.scoring.lsi.basis,
    ):
        assert is_mapped(array)
        assert not array.flags.writeable


def is_mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def test_an_index_without_models_is_loaded_without_models(tmp_path):
    retrieval_corpus.index().save(tmp_path / "plain.index")
    loaded = SearchIndex.load(tmp_path / "plain.index")
    assert loaded.scoring.average is loaded.scoring.model is loaded.scoring.lsi is None
    assert loaded.search("car", method="bm25")


def test_saving_over_an_index_in_use_does_not_change_it(index, path):
    """The old file exists until the last reader closes it."""
    loaded = SearchIndex.load(path)
    before = loaded.scores(QUERIES)
    retrieval_corpus.index().save(path)
    np.testing.assert_array_equal(loaded.scores(QUERIES), before)
    assert SearchIndex.load(path).scoring.average is None
    loaded = SearchIndex.load(path)
    before = loaded.scores(QUERIES, method="bm25")
    PLSA(1, random_state=0).fit(np.eye(3)).save(path)
    np.testing.assert_array_equal(loaded.scores(QUERIES, method="bm25"), before)


def test_a_failed_write_leaves_the_old_file(index, path, monkeypatch):
    content = path.read_bytes()

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space left"):
        index.save(path)
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == ["search.index"]


def test_another_process_can_load_the_index(path):
    program = (
        "import sys; from polyseme.retrieval import SearchIndex;"
        "print(SearchIndex.load(sys.argv[1]).search('car', 1)[0].id, 'ir_measures' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [SearchIndex.load(path).search("car", 1)[0].id, "False"]


def test_missing_file_and_missing_folder(index, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no index file"):
        SearchIndex.load(tmp_path / "none.index")
    with pytest.raises(InputError, match="There is no folder"):
        index.save(tmp_path / "none" / "search.index")


@pytest.mark.parametrize("size", [0, 5, 100, 5_000, -1])
def test_a_truncated_file_is_refused(path, size):
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ModelFileError, match=r"damaged|not a polyseme index"):
        SearchIndex.load(path)


def test_a_file_of_another_kind_is_refused(path, index):
    save_file({"a": np.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="not a polyseme index"):
        SearchIndex.load(path)
    path.write_text("hello, world, this is a text")
    with pytest.raises(ModelFileError, match="damaged or is not a polyseme index"):
        SearchIndex.load(path)


def test_a_newer_format_is_refused(path):
    rewrite(path, lambda header, tensors: header.update(format_version=2))
    with pytest.raises(ModelFileError, match="newer format: update polyseme"):
        SearchIndex.load(path)


def _without_ids(header, tensors):
    del header["ids"]


def _fewer_titles(header, tensors):
    header["titles"].pop()


def _same_ids(header, tensors):
    header["ids"][1] = header["ids"][0]


def _wide_model(header, tensors):
    header["spaces"]["average"]["sizes"] = [3, 5]


def _wrong_shape(header, tensors):
    header["shape"][0] += 1


def _index_outside(header, tensors):
    tensors["postings.indices"] = np.full_like(tensors["postings.indices"], 10**6)


def _falling_pointers(header, tensors):
    tensors["counts.indptr"] = np.ascontiguousarray(tensors["counts.indptr"][::-1])


def _without_bm25(header, tensors):
    del tensors["bm25"]


def _short_bm25(header, tensors):
    tensors["bm25"] = tensors["bm25"][:-1].copy()


def _negative_counts(header, tensors):
    tensors["counts.data"] = -tensors["counts.data"]


def _no_dictionary(header, tensors):
    header["spaces"] = 3


@pytest.mark.parametrize(
    "change",
    [
        _without_ids, _fewer_titles, _same_ids, _wide_model, _wrong_shape, _index_outside, _falling_pointers,
        _without_bm25, _short_bm25, _negative_counts, _no_dictionary,
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_together_are_refused(path, change):
    rewrite(path, change)
    with pytest.raises(ModelFileError, match="do not fit together"):
        SearchIndex.load(path)
