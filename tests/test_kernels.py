"""The kernels compared with naive sums, for all widths, layouts, instruction sets and numbers of threads."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from polyseme import _kernels
from polyseme.core.model import Model, e_step, m_step_words
from polyseme.core.shard import sparse_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import (
    DenseCounts,
    SparseCounts,
    Want,
    em_rows,
    em_words,
    extrapolated,
    padded,
    padded_width,
    rescaled_columns,
)

WIDTHS = [1, 15, 16, 17, 31, 40, 48, 64, 80, 96, 97, 112, 113, 128, 129, 200, 256, 257, 400, 1000]
INSTRUCTION_SETS = ["baseline", "avx2", "avx512"]
RUNNABLE = INSTRUCTION_SETS[: INSTRUCTION_SETS.index(_kernels.best_isa()) + 1]


def sparse(X, dtype=np.float64, index=np.int32):
    matrix = sp.csr_array(X)
    return SparseCounts(
        matrix.indptr.astype(index), matrix.indices.astype(index), matrix.data.astype(dtype), *matrix.shape
    )


def dense(X, dtype=np.float64):
    return DenseCounts(np.ascontiguousarray(X, dtype=dtype))


def operands(seed, X, K, dtype=np.float64):
    theta, phi = oracles.random_factors(seed, *X.shape, K)
    return padded(theta, dtype), padded(phi.T, dtype)


def close(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def assert_sums(sums, expected, tolerance=1e-12):
    for actual, wanted in zip(sums, expected, strict=True):
        close(actual, wanted, tolerance)


def same_bits(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def counts():
    """Return counts with empty rows and words. Most other rows and words have more than one block of non-zeros."""
    return oracles.random_counts(0, 13, 90, density=0.6, empty_rows=(0, 5, 12), empty_words=(0, 44, 89))


@pytest.mark.parametrize("layout", [sparse, dense])
@pytest.mark.parametrize("K", WIDTHS)
def test_sweep_is_the_naive_posterior_sum(counts, layout, K):
    A, B = operands(1, counts, K)
    assert A.shape[1] == padded_width(K)
    assert_sums(layout(counts).sums(A, B, n_threads=2), oracles.sweep(counts, A, B))


@pytest.mark.parametrize("layout", [sparse, dense])
def test_sums_times_operands_are_the_expected_counts_of_em(counts, layout):
    theta, phi = oracles.random_factors(2, *counts.shape, 5)
    sums = layout(counts).sums(padded(theta, np.float64), padded(phi.T, np.float64), n_threads=1)
    expected = counts[:, :, np.newaxis] * oracles.posterior(theta, phi)
    close(theta * sums.row_sums[:, :5], expected.sum(axis=1))
    close(phi.T * sums.word_sums[:, :5], expected.sum(axis=0))
    assert not sums.row_sums[:, 5:].any()
    assert not sums.word_sums[:, 5:].any()


@pytest.mark.parametrize("layout", [sparse, dense])
@pytest.mark.parametrize("weighted", [False, True])
def test_single_sums_equal_those_of_the_whole_sweep(counts, layout, weighted):
    A, B = operands(3, counts, 20)
    weights = np.random.default_rng(4).random(len(counts)) if weighted else None
    source = layout(counts)
    every = source.sums(A, B, n_threads=2, weights=weights)
    parts = (Want.ROWS, Want.WORDS, Want.LOGS)  # in the order of the fields of Sums
    for want in (*parts, Want.ROWS | Want.LOGS, Want.WORDS | Want.LOGS, Want.ROWS | Want.WORDS):
        some = source.sums(A, B, want, n_threads=2, weights=weights)
        for part, found, expected in zip(parts, some, every, strict=True):
            assert np.array_equal(found, expected) if part in want else found is None


@pytest.mark.parametrize("layout", [sparse, dense])
@pytest.mark.parametrize("K", [3, 40, 150])
def test_weights_change_the_word_sums_only(counts, layout, K):
    A, B = operands(4, counts, K)
    weights = np.random.default_rng(5).exponential(size=len(counts))
    weights[3] = 0
    sums = layout(counts).sums(A, B, n_threads=2, weights=weights)
    assert_sums(sums, oracles.sweep(counts, A, B, weights))
    plain = layout(counts).sums(A, B, n_threads=2)
    assert np.array_equal(sums.row_sums, plain.row_sums)
    assert np.array_equal(sums.logs, plain.logs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_index_width_does_not_change_a_bit(counts, dtype):
    A, B = operands(6, counts, 33, dtype)
    narrow = sparse(counts, dtype, np.int32).sums(A, B, n_threads=2)
    wide = sparse(counts, dtype, np.int64).sums(A, B, n_threads=2)
    assert same_bits(narrow, wide)


def test_read_only_arrays(counts):
    A, B = operands(7, counts, 10)
    expected = oracles.sweep(counts, A, B)
    source = sparse(counts)
    values = counts.copy()
    for array in (source.indptr, source.indices, source.values, A, B, values):
        array.flags.writeable = False
    assert_sums(source.sums(A, B, n_threads=2), expected)
    assert_sums(DenseCounts(values).sums(A, B, n_threads=2), expected)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_memory_mapped_arrays(counts, tmp_path, index):
    def mapped(name, array):
        np.save(tmp_path / name, array)
        return np.load(tmp_path / f"{name}.npy", mmap_mode="r")

    A, B = operands(8, counts, 10)
    expected = oracles.sweep(counts, A, B)
    whole = sparse(counts, index=index)
    source = SparseCounts(
        mapped("indptr", whole.indptr), mapped("indices", whole.indices), mapped("values", whole.values), *counts.shape
    )
    assert_sums(source.sums(mapped("A", A), mapped("B", B), n_threads=2), expected)
    assert_sums(DenseCounts(mapped("dense", counts)).sums(A, B, n_threads=2), expected)


def test_words_with_more_documents_than_a_block_of_the_word_pass():
    X = oracles.random_counts(9, 2500, 3, density=0.9)
    A, B = operands(10, X, 3)
    expected = oracles.sweep(X, A, B)
    assert_sums(sparse(X).sums(A, B, n_threads=2), expected)
    assert_sums(dense(X).sums(A, B, n_threads=2), expected)


@pytest.mark.parametrize(("shape", "K"), [((22_000, 7), 100), ((45_000, 3), 40), ((5, 12_000), 100)])
def test_operands_larger_than_the_cache(shape, K):
    """Above 16 MB the word pass processes tiles of documents; the last case has many words."""
    X = oracles.random_counts(12, *shape, density=0.7, empty_rows=(1,), empty_words=(2,))
    A, B = operands(13, X, K)
    weights = np.random.default_rng(14).random(len(X))
    one = sparse(X).sums(A, B, n_threads=1, weights=weights)
    assert_sums(one, oracles.sweep(X, A, B, weights), 1e-11)
    for n_threads in (2, 5):
        assert same_bits(one, sparse(X).sums(A, B, n_threads=n_threads, weights=weights))


@pytest.mark.parametrize("layout", [sparse, dense])
def test_word_sums_are_stored_in_the_given_memory(counts, layout):
    A, B = operands(17, counts, 5)
    memory = np.full(B.shape, np.nan)
    sums = layout(counts).sums(A, B, n_threads=2, memory=memory)
    assert sums.word_sums is memory
    assert same_bits(sums, layout(counts).sums(A, B, n_threads=2))
    with pytest.raises(TypeError, match="does not fit"):
        layout(counts).sums(A, B, n_threads=2, memory=memory[1:])


@pytest.mark.parametrize("layout", [sparse, dense])
def test_empty_documents_have_sums_of_zero(layout):
    X = np.zeros((4, 6))
    A, B = operands(11, X, 3)
    sums = layout(X).sums(A, B, n_threads=3)
    assert not any(part.any() for part in sums)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 12), st.integers(1, 50), st.integers(1, 40), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_sparse_dense_and_naive_agree_on_any_shape(n_docs, n_words, K, density, seed):
    X = oracles.random_counts(seed, n_docs, n_words, density) * np.random.default_rng(seed).exponential()
    A, B = operands(seed, X, K)
    expected = oracles.sweep(X, A, B)
    assert_sums(sparse(X).sums(A, B, n_threads=2), expected)
    assert_sums(dense(X).sums(A, B, n_threads=2), expected)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("K", WIDTHS)
def test_every_instruction_set_agrees(counts, isa, K):
    if isa not in RUNNABLE:
        pytest.skip(f"this processor cannot run {isa}")
    A, B = operands(12, counts, K)
    weights = np.random.default_rng(13).random(len(counts))
    expected = oracles.sweep(counts, A, B, weights)
    assert_sums(sparse(counts).sums(A, B, n_threads=1, weights=weights, isa=isa), expected)
    single = sparse(counts, np.float32).sums(
        A.astype(np.float32), B.astype(np.float32), n_threads=1, weights=weights, isa=isa
    )
    assert_sums(single, expected, 3e-6)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("K", [16, 48, 64, 200, 300])
def test_documents_of_any_number_of_words(isa, K):
    """The sweep takes four words at a time, adds logarithms of 64, and reads ahead by 8 or 16."""
    if isa not in RUNNABLE:
        pytest.skip(f"this processor cannot run {isa}")
    lengths = np.arange(140)
    X = (lengths[:-1] < lengths[:, np.newaxis]) * np.random.default_rng(1).integers(1, 9, (140, 139)).astype(float)
    A, B = operands(2, X, K)
    expected = oracles.sweep(X, A, B)
    assert_sums(sparse(X).sums(A, B, n_threads=1, isa=isa), expected)
    single = sparse(X, np.float32).sums(A.astype(np.float32), B.astype(np.float32), n_threads=1, isa=isa)
    assert_sums(single, expected, 3e-6)


def test_an_unknown_instruction_set_raises_an_error(counts):
    A, B = operands(12, counts, 4)
    with pytest.raises(ValueError, match="instruction set"):
        sparse(counts).sums(A, B, n_threads=1, isa="sse9")


def imported_with(isa):
    """Run a new process with POLYSEME_ISA set that prints its instruction set."""
    code = "import polyseme.kernels; print(polyseme.kernels._kernels.chosen_isa())"
    environment = {**os.environ, "POLYSEME_ISA": isa}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("isa", RUNNABLE)
def test_the_environment_chooses_the_instruction_set(isa):
    assert imported_with(isa).stdout.strip() == isa


def test_an_unknown_instruction_set_in_the_environment_raises_an_error():
    process = imported_with("sse9")
    assert process.returncode == 1
    error = process.stderr.splitlines()[-1]
    assert error.startswith("polyseme.errors.InputError: POLYSEME_ISA: instruction set 'sse9'")
    assert "choose from baseline" in error


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
def test_logarithms_over_the_whole_range(isa):
    """With one word per document and one topic, the log is that of the product."""
    if isa not in RUNNABLE:
        pytest.skip(f"this processor cannot run {isa}")
    q = np.concatenate([np.logspace(-270, 270, 301), 1 + np.linspace(-1e-9, 1e-9, 21), np.linspace(0.5, 2, 101)])
    source = sparse(np.ones((len(q), 1)))
    sums = source.sums(padded(q[:, np.newaxis], np.float64), padded(np.ones((1, 1)), np.float64), n_threads=1, isa=isa)
    np.testing.assert_allclose(sums.logs, np.log(q), rtol=1e-15, atol=1e-24)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("K", [5, 40, 150, 300])
def test_threads_do_not_change_a_bit_sparse(dtype, K):
    X = oracles.random_counts(14, 700, 300, density=0.1, empty_rows=range(100, 200))
    A, B = operands(15, X, K, dtype)
    weights = np.random.default_rng(16).random(len(X))
    source = sparse(X, dtype)
    one = source.sums(A, B, n_threads=1, weights=weights)
    q = source.products(A, B, n_threads=1)
    rows = em_rows(A, one.row_sums.copy(), source.totals, n_threads=1)
    mass = source.totals @ A
    words = em_words(B, one.word_sums, mass, source.word_totals(None), n_threads=1)
    for n_threads in (2, 3, 8):
        assert same_bits(one, source.sums(A, B, n_threads=n_threads, weights=weights))
        assert np.array_equal(q, source.products(A, B, n_threads=n_threads))
        assert same_bits(rows, em_rows(A, one.row_sums.copy(), source.totals, n_threads=n_threads))
        assert same_bits(words, em_words(B, one.word_sums, mass, source.word_totals(None), n_threads=n_threads))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit_dense(dtype):
    """The counts are large enough for several blocks, and for BLAS to use its own threads."""
    X = oracles.random_counts(17, 800, 4000, density=0.1)
    A, B = operands(18, X, 20, dtype)
    weights = np.random.default_rng(19).random(len(X))
    source = dense(X, dtype)
    one = source.sums(A, B, n_threads=1, weights=weights)
    for n_threads in (2, 3, 8):
        assert same_bits(one, source.sums(A, B, n_threads=n_threads, weights=weights))


@pytest.mark.parametrize("layout", [sparse, dense])
@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_of_two_shards_add_up_to_those_of_the_whole(layout, weighted):
    X = oracles.random_counts(20, 60, 40, empty_rows=(3,))
    theta, phi = operands(21, X, 6)
    weights = np.random.default_rng(22).random(len(X)) if weighted else None
    model = Model(6)

    def shard(part):
        return MemoryCorpus(layout(X[part]), None if weights is None else weights[part], n_threads=2)

    halves = [slice(0, 23), slice(23, 60)]
    results = [e_step(model, shard(part), theta[part], phi) for part in halves]
    _, next_theta, whole = e_step(model, shard(slice(None)), theta, phi)
    merged = results[0].stats.merge(results[1].stats)
    for name in ("word_sums", "log_operands", "log_likelihood", "tokens", "topic_mass", "doc_gain"):
        close(getattr(merged, name), getattr(whole, name))
    close(np.concatenate([result.next_rows for result in results]), next_theta)
    for actual, wanted in zip(
        m_step_words(model, shard(slice(None)), phi, merged),
        m_step_words(model, shard(slice(None)), phi, whole),
        strict=True,
    ):
        close(actual, wanted)


@pytest.mark.parametrize("layout", [sparse, dense])
def test_denormal_operands_stay_finite(counts, layout):
    """They may count as zero, because the M-step sets probabilities below 1e-30 to zero."""
    A, B = operands(23, counts, 8)
    A[:, 1:4] = 1e-40
    B[:, 2:6] = 1e-40
    sums = layout(counts, np.float32).sums(A.astype(np.float32), B.astype(np.float32), n_threads=2)
    for part, wanted in zip(sums, oracles.sweep(counts, A, B), strict=True):
        assert np.isfinite(part).all()
        np.testing.assert_allclose(part, wanted, rtol=3e-6, atol=1e-30)


@pytest.mark.parametrize("layout", [sparse, dense])
def test_a_product_that_underflows_leaves_the_sums_finite(counts, layout):
    A, B = operands(24, counts, 8, np.float32)
    A[:] = np.float32(1e-40)
    sums = layout(counts, np.float32).sums(A, B, n_threads=2)
    assert np.isfinite(sums.row_sums).all()
    assert np.isfinite(sums.word_sums).all()


def test_the_sweep_restores_the_denormal_mode_of_the_caller(counts):
    A, B = operands(25, counts, 8, np.float32)
    sparse(counts, np.float32).sums(A, B, n_threads=1)
    assert np.float32(1e-40) * np.float32(0.5) > 0


@pytest.mark.parametrize("K", WIDTHS)
def test_products_are_the_dense_product_at_the_non_zeros(counts, K):
    A, B = operands(26, counts, K)
    close(sparse(counts).products(A, B, n_threads=2), (A @ B.T)[np.nonzero(counts)])


@pytest.mark.parametrize("K", [3, 150])
def test_the_m_steps_match_the_formulas(counts, K):
    theta, phi = oracles.random_factors(27, *counts.shape, K)
    A, B = padded(theta, np.float64), padded(phi.T, np.float64)
    row_sums, word_sums, _ = oracles.sweep(counts, A, B)
    n_d, n_w, mass = counts.sum(axis=1), counts.sum(axis=0), counts.sum(axis=1) @ A
    next_theta, doc_gains = em_rows(A, row_sums.copy(), n_d, n_threads=2)
    next_phi, word_gains = em_words(B, word_sums, mass, n_w, n_threads=2)
    wanted_theta, wanted_phi = oracles.em_step(counts, theta, phi)
    close(next_theta[:, :K], wanted_theta)
    close(next_phi[:, :K], wanted_phi.T)
    for d in range(len(counts)):
        close(doc_gains[d], n_d[d] * np.log(row_sums[d].max() / n_d[d]) if n_d[d] > 0 else 0)
    for w in range(counts.shape[1]):
        close(word_gains[w], n_w[w] * np.log((word_sums[w, :K] / mass[:K]).max()) if n_w[w] > 0 else 0)


@pytest.mark.parametrize("layout", [sparse, dense])
def test_totals_match_the_formulas(counts, layout):
    weights = np.random.default_rng(28).random(len(counts))
    source = layout(counts)
    close(source.totals, counts.sum(axis=1))
    close(source.word_totals(None), counts.sum(axis=0))
    close(source.word_totals(weights), weights @ counts)


def test_totals_of_many_tokens_are_exact_in_float32():
    """In float32, 2^24 + 1 is 2^24."""
    values = np.full(5, 2.0**24, dtype=np.float32)
    values[1:] = 1
    assert sparse(values[np.newaxis], np.float32).totals[0] == 2**24 + 4
    assert dense(values[np.newaxis], np.float32).totals[0] == 2**24 + 4
    assert sparse(values[:, np.newaxis], np.float32).word_totals(None)[0] == 2**24 + 4
    assert dense(values[:, np.newaxis], np.float32).word_totals(None)[0] == 2**24 + 4


def test_word_sums_of_many_documents_are_merged_in_float64():
    """In float32, 2^24 + 1 is 2^24: the sum would miss the small ratios."""
    n_docs = 1 << 15
    X = np.ones((n_docs, 1))
    X[:1024] = 2.0**24
    ones = padded(np.ones((n_docs, 1)), np.float32)
    word_sums = sparse(X, np.float32).sums(ones, padded(np.ones((1, 1)), np.float32), n_threads=2).word_sums
    assert word_sums[0, 0] == 1024 * 2.0**24 + n_docs - 1024


@pytest.mark.parametrize("layout", [sparse, dense])
def test_operands_that_do_not_fit_raise_an_error(counts, layout):
    A, B = operands(29, counts, 20)
    wider = padded(B, np.float64).repeat(2, axis=1)
    for a, b in ((A[:-1], B), (A, B[:-1]), (A.astype(np.float32), B), (A[:, :20].copy(), B[:, :20].copy()), (A, wider)):
        with pytest.raises(TypeError, match="does not fit"):
            layout(counts).sums(a, b, n_threads=1)
    with pytest.raises(TypeError, match="weights"):
        layout(counts).sums(A, B, n_threads=1, weights=np.ones(len(counts) - 1))


def test_sparse_counts_are_in_canonical_form():
    """Duplicates are summed, stored zeros removed and words sorted, without changing the caller's matrix."""
    matrix = sp.csr_array((np.array([1, 2, 0, 4]), np.array([3, 1, 2, 3]), np.array([0, 4, 4])), shape=(2, 5))
    before = matrix.data.copy(), matrix.indices.copy()
    counts = sparse_counts(matrix, np.dtype(np.float64))
    assert counts.indices.tolist() == [1, 3]
    assert counts.values.tolist() == [2, 5]
    assert counts.indptr.tolist() == [0, 2, 2]
    assert np.array_equal(matrix.data, before[0])
    assert np.array_equal(matrix.indices, before[1])


@pytest.mark.parametrize("isa", RUNNABLE)
@pytest.mark.parametrize(("K", "dtype", "index"), [(3, np.float64, np.int32), (40, np.float32, np.int64)])
@pytest.mark.parametrize("passes", [1, 4])
def test_least_squares_of_counts_are_those_of_their_products(counts, isa, K, dtype, index, passes):
    """For few rows, for more than one block of rows, and for words with more documents than a block of a sum."""
    tall = np.tile(counts, (90, 1))
    for X in (counts, counts.T, tall, tall.T):
        A, B = operands(3, X, K, dtype)
        G = B.astype(np.float64).T @ B
        both = sparse(X, dtype, index)
        settings = {"passes": passes, "enough": 0.0}
        crosses, others = np.empty((2, len(X)))
        new = both.least_squares(A, B, G, K, **settings, n_threads=1, isa=isa, crosses=crosses)
        again = both.least_squares(A, B, G, K, **settings, n_threads=3, isa=isa, crosses=others)
        assert same_bits((new, crosses), (again, others))
        assert np.array_equal(both.least_squares(A, B, G, K, **settings, n_threads=1, isa=isa), new)
        products = X @ B.astype(np.float64)
        tolerance = 1e-12 if dtype == np.float64 else 1e-5
        close(crosses, (A * products).sum(axis=1), tolerance)
        expected = A.astype(np.float64)
        for _ in range(passes):
            for k in range(K):
                slopes = products[:, k] - expected @ G[:, k]
                expected[:, k] = np.maximum(expected[:, k] + slopes / G[k, k], 0)
        scale = max(1.0, expected.max())
        close(new / scale, expected / scale, 1e3 * tolerance)


def test_least_squares_of_arrays_that_do_not_fit_raise_an_error(counts):
    A, B = operands(3, counts, 5)
    X, G = sparse(counts), np.eye(16)
    with pytest.raises(TypeError, match="does not fit counts"):
        X.least_squares(A[1:], B, G, 5, passes=1, enough=0.0, n_threads=1)
    with pytest.raises(ValueError, match="do not fit together"):
        X.least_squares(A, B, G[:5, :5], 5, passes=1, enough=0.0, n_threads=1)
    with pytest.raises(ValueError, match="do not fit together"):
        X.least_squares(A, B, G, 17, passes=1, enough=0.0, n_threads=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (7,), (5000, 16), (3, 4, 5)])
def test_extrapolation_is_that_of_its_formula(dtype, shape):
    rng = np.random.default_rng(0)
    new, old = rng.random(shape).astype(dtype), rng.random(shape).astype(dtype)
    size, keep = dtype(0.7), dtype(0.25)
    expected = np.maximum((new - old) * size + new, keep * new)  # the same operations, so the same bits
    for n_threads in (1, 3):
        np.testing.assert_array_equal(extrapolated(new, old, 0.7, 0.25, n_threads=n_threads), expected)
    if new.size > 2:
        new.flat[1] = np.nan
        assert np.isnan(extrapolated(new, old, 0.7, 0.25)).sum() == 1
        with pytest.raises(ValueError, match="do not fit together"):
            extrapolated(new, old[:-1], 0.7, 0.25)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_rescaled(dtype):
    rng = np.random.default_rng(0)
    factor, scales = rng.random((5000, 16)).astype(dtype), rng.random(16) + 0.5
    for n_threads in (1, 3):
        times = rescaled_columns(factor, scales, n_threads=n_threads)
        over = rescaled_columns(factor, scales, divide=True, n_threads=n_threads)
        np.testing.assert_array_equal(times, factor * scales.astype(dtype))
        np.testing.assert_array_equal(over, factor / scales.astype(dtype))
    with pytest.raises(ValueError, match="do not fit together"):
        rescaled_columns(factor, scales[:-1])
