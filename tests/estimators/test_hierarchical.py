"""Hierarchical PLSA: against the formulas, special cases, recovery, and the estimator interface."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from estimator_cases import X_WITH_GAPS, X
from polyseme import PLSA, HierarchicalPLSA, InputError, load
from polyseme.core.shard import as_counts
from polyseme.core.tree import as_tree
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.metrics import align
from polyseme.solvers import TreeGrowth
from polyseme.solvers.tree import TreePoint, TreeStep, corpus_rows, point_of_topics, random_start
from sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
TREES = {
    "regular": as_tree(None, 2, (2, 2), ()),
    "uneven": as_tree([-1, 0, 0, 1, 1, 3, 3, 0], 0, 0, ()),
    "silent": as_tree([-1, 0, 0, 1, 1, 2, 2], 0, 0, [0, 2]),
}


@parametrize_with_checks([HierarchicalPLSA()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([HierarchicalPLSA(depth=1, branching=2, growth=4)])
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


def fitted(data=X, /, **parameters):
    weights = parameters.pop("sample_weight", None)
    settings = {"branching": 2, "random_state": 0, "max_iter": 30, **parameters}
    return HierarchicalPLSA(**settings).fit(data, sample_weight=weights)


# the model


def evaluate(corpus, n_leaves, point):
    """Return the report at a point and the step of EM from it."""
    found = corpus.run(TreeStep(n_leaves), point.theta, point[1:])
    return found.report, TreePoint(found.next_rows, *found.next_shared)


def naive_step(data, theta, leaf_node, node_word, weights):
    """Run EM with the posterior P(leaf, node | d, w) of every cell: theta D x L, leaf_node L x V, node_word V x W."""
    joint = np.einsum("da,av,vw->davw", theta, leaf_node, node_word)
    total = joint.sum(axis=(1, 2), keepdims=True)
    expected = data[:, np.newaxis, np.newaxis, :] * np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    counted = weights[:, np.newaxis, np.newaxis, np.newaxis] * expected
    return (
        oracles.normalized(expected.sum(axis=(2, 3))),
        oracles.normalized(counted.sum(axis=(0, 3))),
        oracles.normalized(counted.sum(axis=(0, 1))),
    )


# starts


@LAYOUTS
@pytest.mark.parametrize("weights", [None, np.array([2.0, 1.0, 1.0, 0.0])])
def test_a_start_damps_common_words_below_the_first_node(layout, weights):
    """A node has the mean topic of its leaves; below the root, words are damped by log(1.05 / share of documents)^3."""
    data = np.array([[3.0, 1, 0, 2, 0], [2, 0, 1, 0, 0], [4, 0, 2, 0, 0], [1, 5, 0, 0, 0]])
    corpus = MemoryCorpus(as_counts(layout(data), np.dtype(np.float64)), weights)
    theta, phi = oracles.random_factors(5, 4, 5, 4)
    tree = TREES["regular"]
    start = point_of_topics(corpus, tree, padded(theta, np.float64), padded(phi.T, np.float64))
    rows = np.ones(4) if weights is None else weights
    mass = (rows * data.sum(axis=1)) @ theta
    seen = rows @ (data > 0) / rows.sum()
    damping = np.log(1.05 / np.where(seen > 0, seen, 1.0)) ** 3
    for node in range(7):
        below = tree.leaves_below(node)
        topic = (phi[below] * mass[below, np.newaxis]).sum(axis=0) * (damping if node else 1.0)
        np.testing.assert_allclose(start.node_word[:, node], topic / topic.sum(), rtol=1e-12)
    shares = start.leaf_node[:4, :7]
    np.testing.assert_array_equal(shares[:, 0], 0.5)
    np.testing.assert_array_equal(shares[:, 1:], 0.25 * tree.emitting_nodes[:, 1:])


def test_a_start_from_a_sample_gives_every_word_and_no_silent_node_a_probability():
    corpus = MemoryCorpus(as_counts(sp.csr_array(X), np.dtype(np.float64)))
    tree = TREES["silent"]
    start = random_start(corpus, tree, np.random.default_rng(0))
    missing = start._replace(node_word=np.where(np.arange(corpus.n_words)[:, np.newaxis] == 3, 0.0, start.node_word))
    before = missing.node_word.copy()
    found = corpus_rows(corpus, tree, missing, whole=False)
    emitting = tree.emitting_nodes.any(axis=0)
    expected = 0.99 * before[:, :7] + 0.01 * corpus.unigram[:, np.newaxis] * emitting
    np.testing.assert_allclose(found.node_word[:, :7], expected, rtol=1e-12)
    assert not found.node_word[:, :7][:, ~emitting].any()
    np.testing.assert_allclose(found.theta[:, :4].sum(axis=1), 1)


@LAYOUTS
@pytest.mark.parametrize("name", TREES)
def test_an_em_step_equals_the_formulas(layout, name):
    tree = TREES[name]
    L, V = tree.emitting_nodes.shape
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 4, len(X)).astype(np.float64)
    theta = rng.dirichlet(np.ones(L), len(X))
    leaf_node = oracles.normalized(rng.random((L, V)) * tree.emitting_nodes)
    node_word = rng.dirichlet(np.ones(X.shape[1]), V) * tree.emitting_nodes.any(axis=0)[:, np.newaxis]
    wide = padded(np.zeros((1, L)), float).shape[1]
    shares = np.zeros((wide, padded(np.zeros((1, V)), float).shape[1]))
    shares[:L, :V] = leaf_node
    source = MemoryCorpus(as_counts(layout(X), np.dtype(float)), weights, 2)
    report, step = evaluate(source, L, TreePoint(padded(theta, float), padded(node_word.T, float), shares))
    wanted = naive_step(X, theta, leaf_node, node_word, weights)
    np.testing.assert_allclose(step.theta[:, :L], wanted[0], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(step.leaf_node[:L, :V], wanted[1], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(step.node_word[:, :V].T, wanted[2], rtol=1e-11, atol=1e-14)
    likelihood = oracles.log_likelihood(X, theta, leaf_node @ node_word, weights)
    assert report.log_likelihood == pytest.approx(likelihood / (weights @ X.sum(axis=1)), rel=1e-12)


@LAYOUTS
@pytest.mark.parametrize("solver", ["em", "accelerated-em"])
def test_a_star_with_a_silent_root_is_plsa(layout, solver):
    star = fitted(layout(X), tree=[-1, 0, 0, 0, 0], silent=[0], init="random", solver=solver, tol=0)
    plain = PLSA(4, solver=solver, init="random", random_state=0, max_iter=30, tol=0).fit(layout(X))
    np.testing.assert_allclose(star.components_, plain.components_, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(star.node_word_[1:], plain.components_, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(star.doc_topic_, plain.doc_topic_, rtol=1e-10, atol=1e-14)
    for column in ("log_likelihood", "residual"):
        np.testing.assert_allclose(star.history_[column], plain.history_[column], rtol=1e-10, atol=1e-13)
    assert not star.node_word_[0].any()


@LAYOUTS
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("solver", ["em", "accelerated-em"])
@pytest.mark.parametrize("init", ["plsa", "random"])
def test_the_likelihood_never_decreases(layout, name, solver, init):
    tree = TREES[name]
    model = fitted(
        layout(X_WITH_GAPS), tree=tree.parents, silent=tree.silent, solver=solver, init=init, tol=0, max_iter=80
    )
    objective = model.history_["objective"]
    assert (np.diff(objective) >= -1e-12 * np.abs(objective[:-1])).all()
    assert objective[-1] > objective[0]


def test_the_residual_bounds_the_remaining_gain():
    """Any point, one factor re-optimized at a time by many steps: the gains stay below the residual."""
    tree = TREES["regular"]
    source = MemoryCorpus(as_counts(X, np.dtype(float)), None, 1)
    point = random_start(source, tree, np.random.default_rng(0))
    first, _ = evaluate(source, 4, point)
    for changed in ("theta", "node_word", "leaf_node"):
        moving = point
        for _ in range(60):
            moving = moving._replace(**{changed: getattr(evaluate(source, 4, moving)[1], changed)})
        gain = evaluate(source, 4, moving)[0].objective - first.objective
        assert 0 < gain < first.residual


def test_attributes_are_consistent_distributions():
    model = fitted(X_WITH_GAPS, tree=TREES["silent"].parents, silent=[0, 2], max_iter=100)
    speaking = np.ones(7, dtype=bool)
    speaking[[0, 2]] = False
    np.testing.assert_allclose(model.node_word_[speaking].sum(axis=1), 1)
    np.testing.assert_allclose(model.leaf_node_.sum(axis=1), 1)
    np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1)
    np.testing.assert_allclose(model.components_, model.leaf_node_ @ model.node_word_, atol=1e-14)
    assert not model.leaf_node_[~model.tree_.emitting_nodes].any()
    assert model.node_weights_.sum() == pytest.approx(1)
    assert model.leaves_.tolist() == [3, 4, 5, 6]
    likelihood = oracles.log_likelihood(X_WITH_GAPS, model.doc_topic_, model.components_) / X_WITH_GAPS.sum()
    assert model.log_likelihood_ == pytest.approx(likelihood, rel=1e-12)
    assert model.labels_.tolist() == model.doc_topic_.argmax(axis=1).tolist() == model.predict(X_WITH_GAPS).tolist()


def planted(seed, n_docs=400, length=120):
    """Draw from four leaves in two groups: half of the words from the root, a quarter each from group and leaf."""
    rng = np.random.default_rng(seed)
    W = 140
    nodes = np.zeros((7, W))
    for node in range(7):
        own = np.arange(20 * node, 20 * node + 20)
        nodes[node, own] = rng.dirichlet(np.full(20, 2.0))
    parents = [-1, 0, 0, 1, 1, 2, 2]
    shares = np.zeros((4, 7))
    for row, leaf in enumerate((3, 4, 5, 6)):
        shares[row, [0, parents[leaf], leaf]] = 0.5, 0.25, 0.25
    theta = rng.dirichlet(np.full(4, 0.15), n_docs)
    counts = np.array([rng.multinomial(length, p) for p in theta @ shares @ nodes])
    return sp.csr_array(counts), nodes, parents


def test_common_words_move_to_the_root_and_topics_are_found_better_than_by_plsa():
    """Medians of 5 seeds: shares of the root and the leaves, and distances of the leaves' topics from the truth."""
    root, ours, theirs = [], [], []
    for seed in range(5):
        counts, nodes, parents = planted(seed)
        model = HierarchicalPLSA(parents, random_state=seed, max_iter=400, tol=1e-4).fit(counts)
        root.append(model.node_word_[0, :20].sum())
        ours.append(align(nodes[3:], model.node_word_[3:])[1].mean())
        plain = PLSA(4, random_state=seed, max_iter=400, tol=1e-4).fit(counts)
        theirs.append(align(nodes[3:], plain.components_)[1].mean())
    assert np.median(root) > 0.7
    assert np.median(ours) < 0.8 * np.median(theirs)


def test_names_are_shown_in_the_printed_tree():
    tree = {"all": {"left": ["a", "b"], "right": {"c": None, "d": []}}}
    model = fitted(tree=tree, silent="right")
    assert model.node_names_ == ["all", "left", "right", "a", "b", "c", "d"]
    assert model.parents_.tolist() == [-1, 0, 0, 1, 1, 2, 2]
    lines = model.tree_text(n_words=3).split("\n")
    assert [line.split(" (")[0] for line in lines] == ["all", "  left", "    a", "    b", "  right", "    c", "    d"]
    assert lines[4].endswith("(silent)")
    assert lines[2].endswith(f": {model.nodes(n_words=3)['words'][3]}")
    table = model.nodes(n_words=2)
    assert list(table.columns) == ["id", "parent", "name", "level", "weight", "words"]
    assert list(table["level"]) == [0, 1, 1, 2, 2, 2, 2]
    with pytest.raises(InputError, match="one name for each of the 45 words"):
        model.tree_text(["only"])


# growth


def test_growth_adds_leaves_and_raises_the_score():
    counts, *_ = planted(0)
    start = {"tree": [-1, 0, 0], "random_state": 0, "max_iter": 200}
    model = HierarchicalPLSA(**start, growth=8).fit(counts)
    small = HierarchicalPLSA(**start).fit(counts)
    assert 4 <= len(model.leaves_) <= 8
    assert (np.diff(model.held_out_) > 0).all()
    assert len(model.held_out_) == len(model.leaves_) - 1
    assert model.log_likelihood_ > small.log_likelihood_
    assert model.score(counts) > small.score(counts)
    assert np.isfinite(model.history_["objective"]).all()


def test_growth_ends_with_the_largest_number_of_leaves():
    counts, *_ = planted(0)
    model = HierarchicalPLSA([-1, 0, 0], growth=3, random_state=0, max_iter=200).fit(counts)
    assert len(model.leaves_) == 3


def test_growth_works_with_words_that_only_held_out_tokens_have():
    data = np.vstack([X, np.eye(X.shape[1])[:40]])
    data = np.hstack([data, np.eye(len(data))])  # one unique word for every document
    model = HierarchicalPLSA([-1, 0, 0], growth=4, random_state=0, max_iter=20).fit(data)
    assert np.isfinite(model.history_["objective"]).all()


def test_growth_stops_without_structure():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(60, rng.dirichlet(np.ones(30)), 200)
    model = HierarchicalPLSA([-1, 0, 0], growth=TreeGrowth(16, patience=2), random_state=0).fit(counts)
    assert len(model.leaves_) <= 3


# the estimator interface


def test_empty_documents_get_the_leaves_weights():
    model = fitted(X_WITH_GAPS)
    np.testing.assert_allclose(model.doc_topic_[0], model.topic_weights_, rtol=1e-12)


def test_float32_is_close_to_float64():
    single, double = (fitted(X.astype(dtype), init="random") for dtype in (np.float32, np.float64))
    assert single.log_likelihood_ == pytest.approx(double.log_likelihood_, abs=2e-3)


@pytest.mark.parametrize("parameters", [{}, {"tree": {"all": ["a", "b"]}, "growth": TreeGrowth(4)}, {"silent": [0]}])
def test_a_saved_model_is_loaded_unchanged(parameters, tmp_path):
    model = fitted(**parameters)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.transform(X), model.doc_topic_)
    assert again.tree_text() == model.tree_text()
    assert again.tree_ == model.tree_
    assert np.array_equal(again.fit(X).components_, model.components_)


def test_a_leaf_without_documents_has_a_valid_distribution():
    data = np.array([[5.0, 1, 0], [4, 2, 0], [6, 1, 0]])
    model = HierarchicalPLSA(depth=2, branching=3, random_state=0, max_iter=300).fit(data)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    assert np.isfinite(model.score(data))


# wrong input


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"tree": [-1, 2, 1]}, "cycle"),
        ({"tree": [1, 2, 0]}, "cycle"),
        ({"tree": [-1, 0, 7]}, "orphan: its parent 7"),
        ({"tree": [-1, 0, -2]}, "orphan: its parent -2"),
        ({"tree": [-1]}, "at least two nodes"),
        ({"tree": {"all": []}}, "at least two nodes"),
        ({"tree": []}, "list with the parent"),
        ({"tree": [-1, 0, -1]}, "node 2 is a second root"),
        ({"tree": [-1.0, 0.5]}, "list with the parent"),
        ({"tree": [[1, 2], [3]]}, "list with the parent"),
        ({"tree": "oak"}, "list with the parent"),
        ({"tree": {"a": ["b"], "c": ["d"]}}, "must have one root"),
        ({"tree": {"a": ["b", "b"]}}, "name 'b'"),
        ({"tree": {"a": {"b": 3}}}, "below 'b'"),
        ({"depth": 0}, "depth must be"),
        ({"branching": 0}, "branching must be"),
        ({"branching": (2, 2, 2)}, "one for each of the 2 levels"),
        ({"silent": [9]}, "the node 9"),
        ({"silent": ["root"]}, "the node 'root'"),
        ({"tree": [-1, 0, 0], "silent": [0, 1]}, "leaf 1"),
        ({"growth": 1}, "growth must be a whole number of at least 2"),
        ({"growth": 2}, "growth allows at most 2 leaves, but the tree has 4"),
        ({"init": "oracle"}, "init must be one of 'plsa', 'random' or (None, topic_word)"),
        ({"init": (np.ones((3, 4)), np.ones((4, 3)))}, "(None, topic_word), got tuple."),
        ({"init": (None, np.ones((3, 3)))}, "topic_word must be an array of shape"),
        ({"solver": "scd"}, "solver must be one of"),
    ],
)
def test_wrong_parameters_raise(parameters, words):
    with pytest.raises(InputError) as error:
        fitted(**parameters)
    assert words in sentence(error)


def test_a_fit_from_given_topics_orders_them_by_similarity():
    start = fitted(max_iter=1).components_
    first, second = (fitted(init=(None, topics), random_state=seed) for seed, topics in ((0, start), (1, start[::-1])))
    np.testing.assert_allclose(first.log_likelihood_, second.log_likelihood_, rtol=1e-4)
    assert not np.allclose(first.log_likelihood_, fitted(init="random").log_likelihood_, rtol=1e-4)


def test_wrong_settings_of_growth_raise():
    with pytest.raises(InputError, match="max_leaves"):
        TreeGrowth(1)


def test_the_depth_of_a_tree_is_its_largest_number_of_edges():
    assert {name: tree.depth for name, tree in TREES.items()} == {"regular": 2, "uneven": 3, "silent": 2}


def test_paths_of_classes_are_not_dropped_in_silence():
    """Other labels are ignored, as in every scikit-learn transformer in a pipeline."""
    with pytest.raises(InputError, match="y has the path 'sport/tennis'") as error:
        HierarchicalPLSA(branching=2).fit(X, ["sport", *["sport/tennis"] * (len(X) - 1)])
    assert sentence(error)
    HierarchicalPLSA(branching=2, max_iter=2, tol=10.0).fit(X, ["sport"] * len(X))
