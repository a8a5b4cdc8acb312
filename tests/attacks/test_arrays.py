"""Arrays whose indices do not fit their shape are refused before compiled code reads memory by them."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from cli_runner import run, write_folder
from polyseme import LDA, LSA, NMF, PLSA, CorrelatedTopicModel, HierarchicalPLSA, InputError, TensorPLSA, _kernels
from polyseme.core.dirichlet import improve_documents
from polyseme.core.shard import sparse_counts
from polyseme.data.shard_files import MANIFEST
from polyseme.errors import ShardError
from polyseme.estimators.lsa import angles
from polyseme.kernels import SparseCounts, find_counts_error, padded
from polyseme.metrics import coherence, top_words
from polyseme.retrieval import SearchIndex
from polyseme.runs import open_run
from polyseme.scale import open_shards, write_shards
from polyseme.selection import select_n_topics
from polyseme.selection.cross_validation import score_documents
from polyseme.text import _counting
from sealed_files import change_array, seal, seal_shards, write_with_own_digest

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.6, (30, 12)) + (np.arange(12) == np.arange(30)[:, np.newaxis] % 12)


def counts(kind="csr"):
    return sp.csr_matrix(COUNTS, dtype=np.float32).asformat(kind)


def changed(name, kind="csr"):
    """Return valid counts with one fault that the constructors of scipy do not detect."""
    X = counts(kind)
    if name == "index too large":
        X.indices[0] = 10**6
    elif name == "index negative":
        X.indices[5] = -1
    elif name == "indptr decreasing":
        X.indptr[3] = X.indptr[4] + 10**6
    elif name == "indptr negative":
        X.indptr[3] = -(10**6)
    elif name == "indptr beyond the data":
        X.indptr[-1] += 10**6
    elif name == "indptr from 1 on":
        X.indptr[0] = 1
    elif name == "indptr too short":
        X.indptr = X.indptr[:-3]
    elif name == "fewer values than indices":
        X.data = X.data[:-2]
    return X


FAULTS = (
    "index too large",
    "index negative",
    "indptr decreasing",
    "indptr negative",
    "indptr beyond the data",
    "indptr from 1 on",
    "indptr too short",
    "fewer values than indices",
)
FITTED = {
    "PLSA": PLSA(2, random_state=0, max_iter=3),
    "LDA": LDA(2, random_state=0, max_iter=3),
    "NMF": NMF(2, random_state=0, max_iter=3),
    "NMF squared": NMF(2, loss="squared", random_state=0, max_iter=3),
    "LSA": LSA(2),
    "CorrelatedTopicModel": CorrelatedTopicModel(2, random_state=0, max_iter=3),
    "HierarchicalPLSA": HierarchicalPLSA(random_state=0, max_iter=3),
}


@pytest.fixture(scope="module", params=FITTED)
def fitted(request):
    return FITTED[request.param].fit(counts())


@pytest.mark.parametrize("fault", FAULTS)
def test_every_estimator_refuses_wrong_indices(fitted, fault):
    for call in (fitted.transform, fitted.fit):
        with pytest.raises(InputError, match="X is not a valid sparse matrix"):
            call(changed(fault))


@pytest.mark.parametrize("kind", ["csc", "bsr"])
@pytest.mark.parametrize("fault", ["index too large", "index negative", "indptr decreasing"])
def test_other_compressed_formats_are_checked_before_scipy_converts_them(fault, kind):
    with pytest.raises(InputError, match="X is not a valid sparse matrix"):
        PLSA(2).fit(changed(fault, kind))


@pytest.mark.parametrize("index", [10**6, -1])
def test_coordinates_are_checked(index):
    X = counts("coo")
    X.row[3] = index
    with pytest.raises(InputError, match=rf"the index {index} is outside 0\.\.29"):
        PLSA(2).fit(X)
    with pytest.raises(InputError, match=rf"the index {index} is outside 0\.\.29"):
        TensorPLSA(2).fit(X)


def test_formats_that_scipy_converts_itself_are_checked_afterwards():
    X = counts("lil")
    X.rows[2][-1] = 10**6
    with pytest.raises(InputError, match=r"the index 1000000 is outside 0\.\.11"):
        PLSA(2).fit(X)


def test_public_functions_refuse_wrong_indices(tmp_path):
    model = PLSA(2, random_state=0, max_iter=3).fit(counts())
    words = [f"word{number}" for number in range(12)]
    calls = [
        lambda X: score_documents(model, X),
        lambda X: select_n_topics(X, [2], folds_run=1, max_documents=20),
        lambda X: write_shards([X], tmp_path / "shards"),
        lambda X: SearchIndex(X, words),
        lambda X: coherence(top_words(model.components_, 5), X),
        lambda X: model.perplexity(X),
        lambda X: model.partial_fit(X),
        angles,
    ]
    for call in calls:
        with pytest.raises(InputError, match="is not a valid sparse matrix"):
            call(changed("index too large"))
    index = SearchIndex(counts(), words)
    query = counts()[:1]
    query.indices[0] = 10**6
    with pytest.raises(InputError, match="A query is not a valid sparse matrix"):
        index.search(query, method="bm25")


def test_unsorted_duplicate_and_unused_entries_change_nothing():
    X = counts()
    expected = PLSA(2, random_state=0, max_iter=20).fit(X)
    order = np.concatenate([RNG.permutation(np.arange(*X.indptr[row : row + 2])) for row in range(30)])
    unsorted = sp.csr_matrix((X.data[order], X.indices[order], X.indptr), X.shape)
    half = sp.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape
    )  # every count twice, as two halves
    longer = sp.csr_matrix((X.data, X.indices, X.indptr), X.shape)
    longer.data = np.append(X.data, np.float32([np.nan, -1]))
    longer.indices = np.append(X.indices, np.int32([10**6, -1]))
    for same in (unsorted, half, longer):
        found = PLSA(2, random_state=0, max_iter=20).fit(same)
        np.testing.assert_array_equal(found.components_, expected.components_)
        np.testing.assert_array_equal(found.transform(same), expected.transform(X))


def test_a_stale_flag_of_scipy_is_not_trusted():
    X = counts()
    assert X.has_canonical_format  # scipy caches this flag
    X.indices[:2] = X.indices[1::-1].copy()
    assert (np.diff(sparse_counts(X, np.dtype(np.float32)).indices[: X.indptr[1]]) > 0).all()


@pytest.mark.parametrize("name", ["PLSA", "LDA", "NMF", "CorrelatedTopicModel"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_topics_that_are_not_finite_are_refused(name, value):
    model = FITTED[name].fit(counts())
    topics = model.topic_word_dirichlet_ if name == "LDA" else model.components_
    topics[1, 3] = value
    with pytest.raises(InputError, match="contain NaN or infinity"):
        model.transform(counts())


# compiled functions


def kernel_arguments():
    csr = sparse_counts(counts(), np.dtype(np.float32))
    A, B = (padded(RNG.random((n, 3)), np.float32) for n in (30, 12))
    csc = csr.transposed(None)
    arrays = [csr.indptr, csr.indices, csr.values]
    by_word = [csc.indptr, csc.indices, csc.values]
    of_docs, of_words, wide = np.ones(30), np.ones(12), np.ones(16)
    steps, rows = np.empty(30, dtype=np.int32), np.arange(12)
    return {
        "sweep_rows": ([*arrays, A, B, A.copy(), of_docs], {"n_threads": 2}),
        "sweep_words": ([*by_word, A, B, B.astype(np.float64)], {"n_threads": 2}),
        "products": ([*arrays, A, B, csr.values.copy()], {"n_threads": 2}),
        "coordinate": (
            [*arrays, B, np.ones(3), A.copy(), of_docs, of_docs.copy()],
            {"passes": 1, "enough": 1e-3, "negligible": 0.0, "n_threads": 2},
        ),
        "fold_in": (
            [*arrays, B, np.ones(3), np.ones(3, np.float32), np.ones((30, 3), np.float32), steps],
            {"background": 0.0, "temperature": 1.0, "tol": 1e-3, "max_iter": 5, "by_coordinates": True, "n_threads": 2},
        ),
        "improve_gamma": (
            [*arrays, B, wide, of_docs, of_docs, A.copy(), A.copy(), of_docs.copy(), wide.copy(), steps],
            {"topics": 3, "steps": 2, "tol": 1e-3, "n_threads": 2},
        ),
        "word_operands": (
            [B, of_words[:, np.newaxis].copy(), wide, 3, B.copy(), of_words.copy(), of_words.copy(), of_words.copy()],
            {"n_threads": 2},
        ),
        "finish_rows": ([A, A.copy(), of_docs, of_docs.copy()], {"n_threads": 2}),
        "finish_words": ([B, B.astype(np.float64), wide, of_words, B.copy(), of_words.copy()], {"n_threads": 2}),
        "weighted_sum": ([of_docs, A, wide], {"n_threads": 2}),
        "take_rows": ([B, rows, wide.astype(np.float32), B.copy()], {"n_threads": 2}),
        "add_rows": ([B.copy(), rows, B, B.astype(np.float64), 1.0, wide.copy()], {"columns": 3, "n_threads": 2}),
    }  # fmt: skip


@pytest.mark.parametrize("name", kernel_arguments())
def test_kernels_check_the_size_of_every_array(name):
    kernel = getattr(_kernels, name)
    arguments, settings = kernel_arguments()[name]
    kernel(*arguments, **settings)
    # the next test checks the number of rows of these; u of `coordinate` defines the number of topics
    read_by_index = {"sweep_rows": [4], "products": [4], "coordinate": [3, 4], "fold_in": [3], "improve_gamma": [3],
                     "sweep_words": [3]}  # fmt: skip
    for place, array in enumerate(arguments):
        if isinstance(array, np.ndarray):
            wrong = list(arguments)
            if place not in read_by_index.get(name, []):
                wrong[place] = np.ascontiguousarray(array[:-1])
                with pytest.raises(ValueError, match=r"indptr must start|fit together"):
                    kernel(*wrong, **settings)
            if array.ndim == 2:
                wrong[place] = np.ascontiguousarray(array[:, :-1])
                with pytest.raises(ValueError, match=r"padded to|fit together"):
                    kernel(*wrong, **settings)


def test_operands_with_too_few_rows_for_the_indices_are_refused():
    X = sparse_counts(counts(), np.dtype(np.float32))
    A, B = (padded(RNG.random((n, 3)), np.float32) for n in (30, 12))
    fold = {"empty": np.ones(3), "tol": 1e-3, "max_iter": 5, "n_threads": 1}
    improve = {"totals": X.totals, "steps": 2, "tol": 1e-3, "n_threads": 1}
    calls = [
        lambda A, B: X.sums(A, B, n_threads=1),
        lambda A, B: X.products(A, B, n_threads=1),
        lambda A, B: X.improve_rows(A, B, np.ones(3), passes=1, n_threads=1),
        lambda A, B: X.fold_in(B, 3, **fold),
        lambda A, B: X.em_steps(B, 3, 2, n_threads=1),
        lambda A, B: improve_documents(X, B, np.ones(3), A, **improve),
    ]
    for call in calls:
        call(A.copy(), B)
        with pytest.raises(TypeError, match="does not fit counts"):
            call(A.copy(), B[:-1])


@pytest.mark.parametrize("name", ["take_rows", "add_rows"])
@pytest.mark.parametrize("row", [-1, 12])
def test_rows_outside_a_table_are_refused(name, row):
    arguments, settings = kernel_arguments()[name]
    arguments[1][3] = row
    with pytest.raises(ValueError, match="do not fit together"):
        getattr(_kernels, name)(*arguments, **settings)


def test_kernels_check_where_indptr_starts_and_ends():
    arguments, settings = kernel_arguments()["sweep_rows"]
    for place, value in ((0, 1), (-1, 10**6), (-1, -1)):
        indptr = arguments[0].copy()
        indptr[place] = value
        with pytest.raises(ValueError, match="indptr must start at 0 and end at"):
            _kernels.sweep_rows(indptr, *arguments[1:], **settings)


def test_counting_checks_the_size_of_every_array():
    characters = np.zeros(0x110000, dtype=np.uint32)
    with pytest.raises(ValueError, match="table of characters"):
        _counting.Counter(characters[:128], [], 0, 1, 1, 1, [], True)
    with pytest.raises(ValueError, match="table of characters"):
        _counting.Sequences(characters[:128], [], 1, [])
    counter = _counting.Counter(characters, [], 0, 1, 1, 1, [], True)
    counter.add_words([["a", "b"], ["b", "c"]], 2)
    assert counter.words(2) == ["a", "b", "c"]
    short, enough = np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64)
    with pytest.raises(ValueError, match="an entry for each word"):
        counter.totals(short, enough)
    with pytest.raises(ValueError, match="a number for each word"):
        counter.renumber(np.zeros(2, dtype=np.int32), 2)
    counter.renumber(np.array([0, 7, 2], dtype=np.int32), 2)
    with pytest.raises(ValueError, match="an entry for each word"):
        counter.totals(enough, enough.copy())
    with pytest.raises(ValueError, match="do not fit the counts"):
        counter.write(enough, np.zeros(3, dtype=np.int32), np.zeros(4, dtype=np.int32), 2)
    sequences = _counting.Sequences(characters, [], 1, [])
    sequences.add_words([["a", "b"], ["b", "c"]], 2)
    sequences.words(2)
    with pytest.raises(ValueError, match="an entry for each word"):
        sequences.totals(short)
    with pytest.raises(ValueError, match="a number for each word"):
        sequences.renumber(np.zeros(2, dtype=np.int32), 2)
    with pytest.raises(ValueError, match="differ in length"):
        sequences.join(*(np.zeros(n, dtype=np.int32) for n in (2, 1, 2)), 2)
    with pytest.raises(ValueError, match="do not fit the documents"):
        sequences.write(np.zeros(4, dtype=np.int32), np.zeros(2, dtype=np.int64), False)
    with pytest.raises(ValueError, match="name for each word"):
        sequences.count_into(counter, ["a", "b"], 2)


# counts in files


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = write_folder(tmp_path_factory.mktemp("run"))
    outcome = run("fit", "docs", "-o", "out", "-k", "2", "--quiet", cwd=folder)
    assert outcome.exit_code == 0, outcome.output
    return folder / "out"


SHARD = "shards/shard-000000.safetensors"
DAMAGE = {
    "index too large": ("indices", 0, 10**6),
    "index negative": ("indices", 2, -5),
    "indptr decreasing": ("indptr", 2, 10**9),
    "indptr beyond": ("indptr", -1, 10**9),
    "negative count": ("values", 1, -3),
    "word too large": ("word_indices", 0, 10**6),
    "word indptr beyond": ("word_indptr", -1, 10**9),
}


@pytest.fixture
def copied(run_folder, tmp_path):
    return shutil.copytree(run_folder, tmp_path / "out")


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_counts_of_a_run_are_refused(damage, copied):
    change_array(copied / SHARD, *DAMAGE[damage])
    with pytest.raises(ShardError, match="is damaged: its digest differs"):
        assert open_run(copied).counts.nnz
    seal(copied)
    with pytest.raises(ShardError, match="is not a shard"):
        assert open_run(copied).counts.nnz


def test_every_flipped_bit_of_a_runs_indices_is_an_error_or_still_counts(copied):
    content, valid = (copied / SHARD).read_bytes(), 0
    shutil.copyfile(copied / "shards" / MANIFEST, copied / "manifest")
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(RNG.integers(8))
        (copied / SHARD).write_bytes(flipped)
        with pytest.raises(ShardError, match="its digest differs"):
            list(open_shards(copied / "shards"))
        seal_shards(copied / "shards")
        try:
            found = sp.vstack(list(open_shards(copied / "shards")), format="csr")
        except ShardError:
            continue
        finally:
            shutil.copyfile(copied / "manifest", copied / "shards" / MANIFEST)
        valid += 1
        assert find_counts_error(found.indptr, found.indices, found.data, found.shape) is None
    assert valid


def test_search_in_a_damaged_run_is_a_clear_error(copied):
    change_array(copied / SHARD, "indices", 0, 1 << 30)
    for _ in range(2):
        outcome = run("search", "out", "fruit", "-q", cwd=copied.parent)
        assert outcome.exit_code == 1
        assert "shard-000000.safetensors is" in outcome.stderr
        seal(copied)  # the second time with correct digests


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("indices", 0, 10**6),
        ("indices", 3, -1),
        ("indptr", 2, 10**6),
        ("indptr", 0, 1),
        ("word_indices", 0, 10**6),
        ("word_indptr", 1, -7),
        ("values", 0, np.nan),
        ("word_values", 0, -np.inf),
        ("totals", 0, np.nan),
    ],
)
def test_damaged_shards_are_refused_also_with_a_matching_digest(name, place, value, tmp_path):
    shards = write_shards([counts()], tmp_path / "shards")
    change_array(shards.folder / "shard-000000.safetensors", name, place, value)
    seal_shards(shards.folder)
    with pytest.raises(ShardError, match=r"shard-000000.safetensors is not a shard .*write the shards again"):
        PLSA(2, random_state=0, max_iter=2).fit(open_shards(shards.folder))


@pytest.mark.parametrize(
    ("key", "value"),
    [("words", -1), ("words", 12.5), ("words", "12"), ("words", 10**30), ("documents", -3), ("nonzeros", None),
     ("tokens", float("nan")), ("tokens", "many")],
)  # fmt: skip
def test_sizes_in_a_manifest_are_checked(key, value, tmp_path):
    shards = write_shards([counts()], tmp_path / "shards")
    manifest = json.loads((shards.folder / MANIFEST).read_text())
    (manifest if key == "words" else manifest["shards"][0])[key] = value
    write_with_own_digest(shards.folder / MANIFEST, manifest)
    with pytest.raises(ShardError, match=r"manifest.json is damaged"):
        open_shards(shards.folder)


def test_counts_of_more_rows_than_32_bits_have_64_bit_indices():
    empty = sp.csr_array((1, 2**31 + 5), dtype=np.float32)
    made = sparse_counts(empty, np.dtype(np.float32))
    assert made.indptr.dtype == made.indices.dtype == np.int64
    assert isinstance(made, SparseCounts)


ATTACK = """
import numpy as np, scipy.sparse as sp
from polyseme import LDA, NMF, PLSA
X = sp.csr_matrix(np.random.default_rng(0).poisson(1.0, (40, 30)))
models = [LDA(3, max_iter=5).fit(X), NMF(3, loss="squared", max_iter=5).fit(X), PLSA(3, max_iter=5).fit(X)]
X.indices[0] = 10**9
for model in models:
    for call in (model.transform, model.fit):
        try:
            call(X)
        except ValueError as error:
            assert type(error).__name__ == "InputError", error
        else:
            raise AssertionError("no error")
print("refused")
"""


def test_no_process_dies_of_a_wrong_index():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ATTACK], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "refused\n", (done.returncode, done.stderr[-2000:])
