"""The reduction tree of sufficient statistics."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyseme.core.shard import FAN_IN, ReductionTree, SufficientStatistics, document_hashes, merged, sparse_counts


@pytest.mark.parametrize("n", [1, 3, 4, 5, 16, 17, 70])
def test_adding_shards_one_by_one_gives_the_same_bits_as_level_by_level(n):
    rng = np.random.default_rng(n)
    leaves = [SufficientStatistics(rng.random((3, 2)), *rng.random(3), rng.random(2), *rng.random(2)) for _ in range(n)]
    level = leaves
    while len(level) > 1:
        level = [merged(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    tree = ReductionTree()
    n_allocated = 0
    for leaf in leaves:
        spare = tree.spare()
        n_allocated += spare is None
        memory = np.empty((3, 2)) if spare is None else spare
        memory[:] = leaf.word_sums
        tree.add(SufficientStatistics(memory, *list(vars(leaf).values())[1:]))
    assert n_allocated <= 2 + np.log(n) / np.log(FAN_IN)  # one per level, and one for the current shard
    for name, value in vars(tree.total()).items():
        assert np.array_equal(value, getattr(level[0], name)), name


def test_hashes_differ_for_different_documents():
    X = sp.random_array((3000, 50), density=0.05, format="csr", rng=np.random.default_rng(0))
    X.data = np.ceil(3 * X.data)
    hashes = document_hashes(sparse_counts(X, np.dtype(np.float64)))
    rows = np.unique(X.toarray(), axis=0)
    assert len(np.unique(hashes)) == len(rows) < 3000
    np.testing.assert_array_equal(hashes[::-1], document_hashes(sparse_counts(X[::-1], np.dtype(np.float64))))
