"""Index files: round trips, memory mapping, and damaged files."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

import retrieval_corpus
from polyseme import InputError, ModelFileError
from polyseme.io.arrays import checked_parts, map_checked, string_arrays
from polyseme.io.files import write_atomically
from polyseme.retrieval import SearchIndex
from polyseme.retrieval.files import FORMAT_VERSION
from polyseme.retrieval.scores import METHODS
from polyseme.text import Vectorizer
from polyseme.text.words import read_word_rules

QUERIES = ["car engine", "jaguar", "money time", "zebra"]


@pytest.fixture(scope="module")
def index():
    return retrieval_corpus.full_index()


@pytest.fixture
def path(index, tmp_path):
    index.save(tmp_path / "search.index")
    return tmp_path / "search.index"


def rewrite(path, change):
    """Rewrite the file, with new checksums, after `change(header, arrays)`."""
    metadata, mapped = map_checked(path)
    header, arrays = json.loads(metadata["polyseme_index"]), {name: array[:].copy() for name, array in mapped.items()}
    change(header, arrays)
    write_atomically(path, checked_parts(arrays, {"polyseme_index": json.dumps(header)}))


@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_index_has_the_same_scores(index, path, method):
    loaded = SearchIndex.load(path)
    np.testing.assert_array_equal(loaded.scores(QUERIES, method=method), index.scores(QUERIES, method=method))
    assert loaded.search("car", 3, method=method).to_dict() == index.search("car", 3, method=method).to_dict()


def test_a_loaded_index_has_the_same_senses_and_names(index, path):
    loaded = SearchIndex.load(path)
    for name in ("ids", "titles", "excerpts", "vocabulary"):
        assert list(getattr(loaded, name)) == getattr(index, name)
    assert [loaded.row_of(name) for name in index.ids] == list(range(60))
    assert [loaded.column_of(word) for word in index.vocabulary] == list(range(len(index.vocabulary)))
    assert loaded.senses("jaguar") == index.senses("jaguar")
    assert loaded.related_words("car") == index.related_words("car")
    assert loaded.similar_documents("d1").to_dict() == index.similar_documents("d1").to_dict()


def test_arrays_are_memory_mapped_and_read_only(path):
    loaded = SearchIndex.load(path)
    for array in (
        loaded.scoring.counts.data,
        loaded.scoring.terms.postings.documents,
        loaded.scoring.terms.totals,
        loaded.scoring.average.documents,
        loaded.scoring.model.topic_word,
        loaded.scoring.lsi.basis,
    ):
        assert is_mapped(array[:])
        assert not array[:].flags.writeable


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


def test_the_file_is_valid_for_safetensors(path):
    with safe_open(path, framework="np") as file:
        assert {"checksums", "ids.bytes", "postings.indptr"} <= set(file.keys())


# names and rules in the file


def test_names_of_any_kind_are_stored(tmp_path):
    names = ["", "a", "\u00e9\u4e2d\U0001f600", "a\0b", "\ud800", "x" * 100_000]
    words = ["", "b", "\u00df", "\0", "c\n", "\U0010ffff"]
    SearchIndex(np.eye(6), words, ids=names, titles=names, excerpts=names[::-1]).save(tmp_path / "index")
    loaded = SearchIndex.load(tmp_path / "index")
    assert (list(loaded.ids), list(loaded.titles), list(loaded.excerpts)) == (names, names, names[::-1])
    assert [loaded.row_of(name) for name in names] == list(range(6))
    assert loaded.search([0, 1, 0, 0, 0, 0], method="tf")[0].excerpt == "\ud800"
    for unknown in ("y", "\udfff", "aa"):
        with pytest.raises(InputError, match="no document with the id"):
            loaded.row_of(unknown)


def test_an_empty_corpus_is_stored(tmp_path):
    SearchIndex(np.zeros((0, 2)), ["a", "b"]).save(tmp_path / "index")
    loaded = SearchIndex.load(tmp_path / "index")
    assert not loaded.search("a", method="bm25")
    assert loaded.counts.shape == (0, 2)


def test_counts_that_float32_does_not_hold_stay_as_they_are(tmp_path):
    counts = np.array([[1 / 3, 2.0**40 + 1], [0, 1]])
    SearchIndex(counts, ["aa", "bb"]).save(tmp_path / "index")
    np.testing.assert_array_equal(SearchIndex.load(tmp_path / "index").counts.toarray(), counts)


TEXTS = ["The cats sat in San Francisco"] * 12 + ["A dog runs; the dogs ran", "no cat in the dog house"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"language": "english"},
        {"language": "english", "phrases": True, "ngram_range": (1, 2)},
        {"stop_words": "english", "strip_accents": "unicode", "binary": True},
        {"analyzer": "char_wb", "ngram_range": (2, 3), "lowercase": False},
        {"token_pattern": "[a-z]{3,}"},
    ],
)
def test_the_rules_of_a_vectorizer_are_stored(tmp_path, options):
    vectorizer = Vectorizer(n_jobs=1, **options)
    counts = vectorizer.fit_transform(TEXTS)
    words = vectorizer.get_feature_names_out()
    rules = read_word_rules(json.loads(json.dumps(vectorizer.to_dict())))
    SearchIndex(counts, words, vectorizer=rules).save(tmp_path / "index")
    loaded = SearchIndex.load(tmp_path / "index")
    queries = [*TEXTS, "CATS and dogs of San Francisco", "\u00e9t\u00e9 in SAN francisco", "", "zebra"]
    expected = vectorizer.transform(queries)
    np.testing.assert_array_equal(loaded.query_counts(queries).toarray(), expected.toarray())
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "index").read_bytes()


def test_a_pattern_that_must_be_trusted_is_not_stored(tmp_path):
    vectorizer = Vectorizer(token_pattern=r"(?:a|b)+c", n_jobs=1)
    counts = vectorizer.fit_transform(["abc", "bc"])
    rules = read_word_rules(vectorizer.to_dict(), trust_pattern=True)
    SearchIndex(counts, vectorizer.get_feature_names_out(), vectorizer=rules).save(tmp_path / "index")
    assert SearchIndex.load(tmp_path / "index").vectorizer is None
    assert SearchIndex.load(tmp_path / "index", vectorizer=rules).search("abc", method="tf")[0].id == "0"


# damaged and hostile files


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
    write_atomically(path, checked_parts({"a": np.zeros(3)}, {}))
    with pytest.raises(ModelFileError, match="no index header"):
        SearchIndex.load(path)


def test_other_formats_are_refused(path):
    rewrite(path, lambda header, arrays: header.update(format_version=FORMAT_VERSION + 1))
    with pytest.raises(ModelFileError, match="newer format: update polyseme"):
        SearchIndex.load(path)
    rewrite(path, lambda header, arrays: header.update(format_version=1))
    with pytest.raises(ModelFileError, match="older polyseme: build the index again"):
        SearchIndex.load(path)


def test_an_index_of_another_state_is_refused(index, path):
    index.save(path, identity="abc")
    assert SearchIndex.load(path, identity="abc").search("car", 1)
    assert SearchIndex.load(path).search("car", 1)
    with pytest.raises(ModelFileError, match="belongs to another run, or to an older state"):
        SearchIndex.load(path, identity="xyz")


@pytest.fixture(scope="module")
def content(index, tmp_path_factory):
    path = tmp_path_factory.mktemp("flipped") / "index"
    retrieval_index = retrieval_corpus.full_index()
    retrieval_index.vectorizer = read_word_rules(Vectorizer(vocabulary=index.vocabulary).fit(["a"]).to_dict())
    retrieval_index.save(path)
    return path.read_bytes()


def answers(index):
    """Return the answers of all search methods, with all explanations."""
    found = [index.search(query, 5, method=method).to_dict(100) for method in METHODS for query in QUERIES[:2]]
    return found, index.similar_documents("d7", 4, method="plsi-q").to_dict(100)


@pytest.fixture(scope="module")
def expected(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "index"
    path.write_bytes(content)
    return answers(SearchIndex.load(path))


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=300, deadline=None)
def test_a_flipped_bit_is_found_or_changes_nothing(content, expected, tmp_path_factory, place, bit):
    damaged = bytearray(content)
    damaged[int(place * len(content))] ^= 1 << bit
    path = tmp_path_factory.getbasetemp() / "flipped.index"
    path.write_bytes(damaged)
    try:
        found = answers(SearchIndex.load(path))
    except ModelFileError:
        return
    assert found == expected


def test_every_flipped_bit_of_the_header_is_found(content, tmp_path):
    length = 8 + int.from_bytes(content[:8], "little")
    for place in range(0, length, 7):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        (tmp_path / "index").write_bytes(damaged)
        with pytest.raises(ModelFileError):
            SearchIndex.load(tmp_path / "index")


def _fewer_titles(header, arrays):
    arrays |= string_arrays("titles", ["a"])


def _without_hashes(header, arrays):
    del arrays["ids.hashes"]


def _wide_model(header, arrays):
    header["spaces"]["average"]["sizes"] = [3, 5]


def _no_models(header, arrays):
    header["spaces"]["average"] = {"sizes": [], "temperatures": [], "background_shares": []}


def _wrong_shape(header, arrays):
    header["shape"][0] += 1


def _without_impacts(header, arrays):
    del arrays["postings.impacts"]


def _short_totals(header, arrays):
    arrays["totals"] = arrays["totals"][:-1].copy()


def _other_type(header, arrays):
    arrays["postings.documents"] = arrays["postings.documents"].astype(np.int64)


def _flat_model(header, arrays):
    arrays["model.topic_word"] = arrays["model.topic_word"].ravel()


def _no_dictionary(header, arrays):
    header["spaces"] = 3


def _without_shape(header, arrays):
    del header["shape"]


def _other_space(header, arrays):
    header["spaces"]["other"] = header["spaces"]["model"]


def _other_rules(header, arrays):
    header["rules"] = {"settings": {}}


@pytest.mark.parametrize(
    "change",
    [
        _fewer_titles, _without_hashes, _wide_model, _no_models, _wrong_shape, _without_impacts, _short_totals,
        _other_type, _flat_model, _no_dictionary, _without_shape, _other_space, _other_rules,
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_together_are_refused(path, change):
    rewrite(path, change)
    with pytest.raises(ModelFileError, match="do not fit together"):
        SearchIndex.load(path)


def _index_outside(header, arrays):
    arrays["postings.documents"][:] = 10**6


def _negative_index(header, arrays):
    arrays["postings.documents"][:] = -1


def _repeated_index(header, arrays):
    arrays["postings.documents"][:] = 3


def _falling_pointers(header, arrays):
    arrays["postings.indptr"] = np.ascontiguousarray(arrays["postings.indptr"][::-1])


def _pointers_outside(header, arrays):
    arrays["postings.indptr"] += 10**9


def _words_outside(header, arrays):
    arrays["counts.indices"] += 100


def _not_finite(header, arrays):
    arrays["postings.impacts"][:] = np.nan


def _typical_outside(header, arrays):
    arrays["model.typical"][:] = 10**6


def _infinite_topics(header, arrays):
    arrays["model.documents"][0, 0] = np.inf


def _strings_overlap(header, arrays):
    arrays["ids.starts"] = np.ascontiguousarray(arrays["ids.starts"][::-1])


def _strings_outside(header, arrays):
    arrays["titles.starts"] += 10**6


def _no_unicode(header, arrays):
    arrays["vocabulary.bytes"][:] = 0xFF


@pytest.mark.parametrize(
    "change",
    [
        _index_outside, _negative_index, _repeated_index, _falling_pointers, _pointers_outside, _words_outside,
        _not_finite, _typical_outside, _infinite_topics, _strings_overlap, _strings_outside, _no_unicode,
    ],
)  # fmt: skip
def test_contents_that_could_do_harm_are_refused_when_they_are_used(path, change):
    rewrite(path, change)
    with pytest.raises(ModelFileError, match="is damaged"):
        answers(SearchIndex.load(path))


def test_numbers_of_a_hostile_table_of_ids_are_checked(path):
    def outside(header, arrays):
        arrays["ids.order"] += 1000

    rewrite(path, outside)
    with pytest.raises(ModelFileError, match="is damaged"):
        SearchIndex.load(path).row_of("d1")
