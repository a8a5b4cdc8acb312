"""TopicClassifier, and PLSA with known topics: classes, unlabeled documents, several classes, files and errors."""

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyseme import PLSA, InputError, TopicClassifier, UnsupportedError, load
from polyseme.datasets import synthetic_corpus
from polyseme.priors import Dirichlet, KnownTopics
from polyseme.scale import write_shards
from sentences import sentence


def unlabeled_minus_one(estimator):
    """Return the checks in which -1 is a class: scikit-learn exempts its own semi-supervised classifiers by name."""
    return {"check_classifiers_classes": "It uses -1 as the label of a class."}


@parametrize_with_checks([TopicClassifier()], expected_failed_checks=unlabeled_minus_one)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def corpus(seed=0, n_docs=240, n_words=60, n_classes=4, per_doc=1, tokens=60):
    """Return counts and the classes of documents: half of the words of a document come from its classes' topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), n_classes)
    common = rng.dirichlet(np.full(n_words, 0.3))
    classes = np.stack([rng.permutation(n_classes)[:per_doc] for _ in range(n_docs)])
    p = 0.5 * common + 0.5 * topics[classes].mean(axis=1)
    return np.stack([rng.multinomial(tokens, row) for row in p]), classes


X, CLASSES = corpus()
Y = CLASSES[:, 0]
NAMES = np.array(["ant", "bee", "cat", "dog"])
FEW = np.where(np.arange(len(Y)) < 20, Y, -1)


class TestOneClass:
    @pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_matrix])
    def test_held_out_documents_are_classified(self, layout):
        data, y = layout(X), NAMES[Y]
        model = TopicClassifier().fit(layout(X[:160]), y[:160])
        assert model.score(layout(X[160:]), y[160:]) > 0.95
        assert set(model.predict(data)) == set(NAMES)
        probabilities = model.predict_proba(data)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(data))
        np.testing.assert_array_equal(model.class_probabilities(model.transform(data)), probabilities)

    def test_labeled_documents_have_their_topics_only(self):
        model = TopicClassifier(2, n_shared=1, n_free=1, random_state=0).fit(X, FEW)
        assert model.topic_classes_.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, -1, -2]
        assert model.topic_names_[:2] == ["0 1", "0 2"]
        assert model.topic_names_[-2:] == ["shared", "free"]
        assert [row.name for row in sorted(model.topics(), key=lambda row: row.id)] == model.topic_names_
        for weights, label in zip(model.doc_topic_, FEW, strict=True):
            allowed = np.isin(model.topic_classes_, (label, -1) if label >= 0 else (0, 1, 2, 3, -1, -2))
            assert weights[~allowed].max(initial=0) == 0
        np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1, rtol=1e-5)
        assert (np.count_nonzero(model.transform(X), axis=1) == 10).all()

    def test_unlabeled_documents_help(self):
        """Three labels per class; the least gain over seeds 0 to 9 was 0.05, the mean 0.09."""
        data, classes = corpus(n_docs=800, n_words=400, tokens=25)
        truth = classes[:, 0]
        labeled = np.concatenate([np.flatnonzero(truth[:600] == c)[:3] for c in range(4)])
        y = np.full(600, -1)
        y[labeled] = truth[labeled]
        alone, bayes = (
            model.fit(data[labeled], truth[labeled]).score(data[600:], truth[600:])
            for model in (TopicClassifier(), MultinomialNB())
        )
        together = TopicClassifier().fit(data[:600], y).score(data[600:], truth[600:])
        assert together > max(alone, bayes) + 0.03
        unused = TopicClassifier(unlabeled_weight=0, n_shared=0).fit(data[:600], y)
        assert unused.score(data[600:], truth[600:]) == alone

    @pytest.mark.parametrize("seed", [1, 2])
    def test_unlabeled_documents_do_not_harm_classes_of_unequal_size(self, seed):
        """Labels are balanced, but seven of ten documents have one class: their words would enter all topics."""
        rng = np.random.default_rng(seed)
        truth = np.concatenate([np.repeat(np.arange(4), 5), rng.choice(4, 780, p=[0.7, 0.15, 0.1, 0.05])])
        topics, common = rng.dirichlet(np.full(300, 0.05), 4), rng.dirichlet(np.full(300, 0.2), 3)
        p = 0.35 * topics[truth] + 0.65 * rng.dirichlet(np.full(3, 0.3), 800) @ common
        data, y = np.stack([rng.multinomial(60, row) for row in p]), np.where(np.arange(500) < 20, truth[:500], -1)
        without, anything, best = (
            TopicClassifier(unlabeled=use, n_jobs=1).fit(data[:500], y).score(data[500:], truth[500:])
            for use in ("none", "any", "auto")
        )
        assert best >= without > anything

    @pytest.mark.parametrize("seed", [3, 12])
    def test_a_gain_within_its_standard_error_does_not_choose_unlabeled_documents(self, seed):
        """Classes are the largest topics of mixtures; of twenty held-out labels, one more is right by chance."""
        prior = 2 * np.array([10, 5, 2.5, 1.5]) / 19
        drawn = synthetic_corpus(
            300, n_words=150, n_topics=4, length=40.0, doc_topic_prior=prior, topic_word_prior=0.05, random_state=seed
        )
        truth, y = drawn.doc_topic().argmax(axis=1), np.full(300, -1)
        for c in range(4):
            y[np.flatnonzero(truth == c)[:5]] = c
        assert TopicClassifier(n_jobs=1).fit(drawn.counts(), y).unlabeled_ == "none"

    @pytest.mark.parametrize("use", ["guided", "any", "none"])
    def test_the_use_of_unlabeled_documents_can_be_chosen(self, use, tmp_path):
        model = TopicClassifier(2, unlabeled=use, random_state=0).fit(X, FEW)
        assert model.unlabeled_ == use
        assert len(model.topic_classes_) == 8 + (use != "none")
        assert model.score(X[20:], Y[20:]) > 0.9
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), model.predict_proba(X))

    def test_without_unlabeled_documents_the_fit_is_that_to_the_labeled_ones(self):
        alone = TopicClassifier().fit(X[:20], FEW[:20])
        assert alone.unlabeled_ == "none"
        np.testing.assert_array_equal(TopicClassifier(unlabeled="none").fit(X, FEW).predict(X), alone.predict(X))

    @pytest.mark.parametrize("n_labels", [1, 2])
    def test_classes_with_few_labels(self, n_labels):
        """A class with one label cannot be held out."""
        y = np.full(len(Y), -1)
        for c in range(4):
            y[np.flatnonzero(c == Y)[: n_labels if c else 1]] = c
        assert TopicClassifier(n_free=n_labels - 1, random_state=0).fit(X, y).unlabeled_ in ("guided", "any", "none")

    def test_free_topics_take_subjects_without_a_class(self):
        """Documents of the class 3 are never labeled."""
        y = np.where(Y == 3, -1, Y)
        model = TopicClassifier(n_free=1, random_state=0, background=0.0).fit(X, y)
        of_others, of_three = (model.transform(X[mask])[:, -1].mean() for mask in (Y < 3, Y == 3))
        assert of_three > 3 * of_others

    @pytest.mark.parametrize("use", ["guided", "any", "none"])
    def test_sample_weights_repeat_documents(self, use):
        weights = np.arange(len(X)) % 3
        rows = np.repeat(np.arange(len(X)), weights)
        one = TopicClassifier(unlabeled=use).fit(X.astype(float), FEW, sample_weight=weights)
        other = TopicClassifier(unlabeled=use).fit(X[rows].astype(float), FEW[rows])
        np.testing.assert_allclose(one.components_, other.components_, atol=1e-9)

    def test_a_document_without_words_has_the_topics_of_its_class(self):
        data = X.copy()
        data[:2] = 0
        model = TopicClassifier().fit(data, Y)
        np.testing.assert_array_equal(model.doc_topic_[:2], np.eye(4)[Y[:2]])
        assert np.isfinite(model.predict_proba(data[:1])).all()

    @pytest.mark.parametrize(
        ("y", "classes"),
        [
            (NAMES[Y], list(NAMES)),
            (NAMES[Y].astype(object), list(NAMES)),
            (np.where(Y == 0, None, NAMES[Y]), list(NAMES[1:])),
            (np.where(Y == 0, -1, NAMES[Y].astype(object)), list(NAMES[1:])),
            (np.where(Y == 0, float("nan"), NAMES[Y].astype(object)), list(NAMES[1:])),
            (np.where(Y == 0, "-1", NAMES[Y]), list(NAMES[1:])),
            (np.where(Y == 0, -1, Y * 2), [2, 4, 6]),
            (np.where(Y == 0, -1.0, Y), [1.0, 2.0, 3.0]),
            (Y > 1, [False, True]),
        ],
        ids=["text", "objects", "none", "minus-one", "nan", "minus-one-text", "numbers", "floats", "bool"],
    )
    def test_labels_of_every_type(self, y, classes, tmp_path):
        model = TopicClassifier(unlabeled="any").fit(X, y)
        assert model.classes_.tolist() == classes
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert loaded.classes_.tolist() == classes
        assert loaded.classes_.dtype.kind == model.classes_.dtype.kind
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))

    def test_pipeline_and_grid_search(self):
        texts = [" ".join(f"w{word}" for word in np.repeat(np.arange(60), row)) for row in X]
        pipeline = make_pipeline(CountVectorizer(), TopicClassifier())
        search = GridSearchCV(pipeline, {"topicclassifier__doc_smoothing": [0.5, 2.0]}, cv=3).fit(texts, NAMES[Y])
        assert search.best_score_ > 0.95
        assert search.predict(texts[:5]).tolist() == NAMES[Y[:5]].tolist()


class TestPaths:
    """Six leaves in a tree: a document has words of its leaf, of a node above it, and of all documents."""

    LEAVES = np.array(["art/film", "art/music", "news", "sport/ball/golf", "sport/ball/polo", "sport/run"])

    @staticmethod
    def planted(n_docs, seed=0):
        """Return counts and the leaf of each document."""
        rng = np.random.default_rng(seed)
        nodes = rng.dirichlet(np.full(300, 0.05), 10)
        leaf = rng.integers(6, size=n_docs)
        above = np.array([6, 6, 7, 8, 8, 9])[leaf]
        p = 0.15 * nodes[leaf] + 0.1 * nodes[above] + 0.75 * rng.dirichlet(np.full(300, 0.2))
        return np.stack([rng.multinomial(40, row) for row in p]), leaf

    def test_labels_of_inner_nodes_restrict_topics_to_those_below(self):
        data, leaf = self.planted(60)
        paths = self.LEAVES[leaf].astype(object)
        paths[10:20] = [path.split("/")[0] for path in paths[10:20]]
        paths[20:30] = ["/".join(path.split("/")[:2]) for path in paths[20:30]]
        paths[30:40] = -1
        model = TopicClassifier(separator="/", n_free=1, random_state=0, unlabeled="any").fit(data, paths)
        assert model.classes_.tolist() == self.LEAVES.tolist()
        assert model.topic_names_ == [*self.LEAVES, "shared", "free"]
        for weights, path in zip(model.doc_topic_, paths, strict=True):
            below = [path == -1 or f"{name}/".startswith(f"{path}/") for name in self.LEAVES]
            np.testing.assert_array_equal(weights > 0, [*below, True, path == -1])

    def test_labels_of_inner_nodes_help(self, tmp_path):
        """Two documents per leaf have its label, others the first part; the least gain over seeds 0 to 7 was 0.1."""
        data, leaf = self.planted(500)
        names = self.LEAVES[leaf]
        paths = np.array([name.split("/")[0] for name in names], dtype=object)
        known = np.concatenate([np.flatnonzero(leaf[:300] == c)[:2] for c in range(6)])
        paths[known] = names[known]
        leaves = np.full(500, -1, dtype=object)
        leaves[known] = names[known]
        one = TopicClassifier(separator="/", unlabeled="any", n_jobs=1).fit(data[:300], paths[:300])
        other = TopicClassifier(unlabeled="any", n_jobs=1).fit(data[:300], leaves[:300])
        assert one.score(data[300:], names[300:]) > other.score(data[300:], names[300:]) + 0.05
        one.save(tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").predict(data), one.predict(data))

    def test_leaves_alone_give_the_fit_without_a_tree(self):
        """Without a separator, paths are names, and so is a label that is a part of another."""
        data, leaf = self.planted(60)
        names = self.LEAVES[leaf]
        one, other = (TopicClassifier(separator=given).fit(data, names) for given in ("/", None))
        np.testing.assert_array_equal(one.components_, other.components_)
        np.testing.assert_array_equal(one.predict_proba(data), other.predict_proba(data))
        shorter = np.where(leaf == 0, "art", names)
        assert "art" in TopicClassifier().fit(data, shorter).classes_
        assert "art" not in TopicClassifier(separator="/").fit(data, shorter).classes_

    def test_an_inner_node_with_one_leaf_is_the_leaf(self):
        data, leaf = self.planted(60)
        names = self.LEAVES[leaf]
        chain = np.where((leaf == 5) & (np.arange(60) % 2 > 0), "run", np.where(leaf == 5, "run/far", names))
        model = TopicClassifier(separator="/").fit(data, chain)
        assert (model.doc_topic_[leaf == 5] == (model.classes_ == "run/far")).all()

    @pytest.mark.parametrize(
        ("separator", "y", "message"),
        [
            ("", NAMES[Y], "separator must be None or a string such as '/', got ''"),
            (1, NAMES[Y], "separator must be None or a string such as '/', got 1"),
            ("/", Y, "separator='/' needs labels that are strings, got 0"),
            ("/", np.eye(4, dtype=int)[Y], "separator='/' needs one path per document in y, got 4 columns"),
            ("/", np.where(Y == 0, "a/", "b"), "The label 'a/' has an empty part: write paths as 'a/b'"),
            (".", np.where(Y == 0, "a.b", "a"), "y has only one leaf, 'a.b'"),
        ],
        ids=["empty", "number", "numbers", "matrix", "part", "one"],
    )
    def test_wrong_paths_raise(self, separator, y, message):
        with pytest.raises(InputError, match=message) as error:
            TopicClassifier(separator=separator).fit(X, y)
        assert sentence(error)


class TestSeveralClasses:
    DATA, PAIRS = corpus(seed=1, per_doc=2, tokens=120)
    INDICATOR = np.zeros((240, 4), dtype=int)
    INDICATOR[np.arange(240)[:, np.newaxis], PAIRS] = 1

    def f1(self, predicted, truth):
        return 2 * (predicted & truth).sum() / (predicted.sum() + truth.sum())

    @pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
    def test_held_out_documents_are_classified(self, layout, tmp_path):
        model = TopicClassifier().fit(self.DATA[:160], layout(self.INDICATOR[:160]))
        predicted = model.predict(self.DATA[160:])
        assert predicted.shape == (80, 4)
        assert self.f1(predicted, self.INDICATOR[160:]) > 0.95
        np.testing.assert_array_equal(predicted, model.predict_proba(self.DATA[160:]) > 0.5)
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").predict(self.DATA[160:]), predicted)

    def test_unlabeled_documents_and_documents_without_a_class(self):
        y = self.INDICATOR.copy()
        y[60:] = -1
        y[50:60] = 0
        model = TopicClassifier().fit(self.DATA, y)
        assert (model.doc_topic_[50:60, :4] == 0).all()
        assert self.f1(model.predict(self.DATA[60:]), self.INDICATOR[60:]) > 0.8
        left_out = TopicClassifier(n_shared=0).fit(self.DATA, y)
        assert left_out.n_tokens_ == self.DATA[:50].sum() + self.DATA[60:].sum()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[:-1], r"y has inconsistent numbers of samples: 239 labels, but X has 240 documents\."),
        (np.full(240, -1), r"All documents are unlabeled \(-1\): give the classes of some documents in y\."),
        (np.full((240, 2), -1), r"All documents are unlabeled \(-1\): give the classes of some documents in y\."),
        (
            np.where(Y == 1, 1, -1),
            r"y has only one class, 1, because -1 marks unlabeled documents: if -1 is a class, write",
        ),
        (np.where(Y == 1, 1.0, -1.0), r"y has only one class, 1\.0, because -1 marks unlabeled documents: .* write 0"),
        (np.where(Y == 1, "1", "-1"), r"y has only one class, '1', because -1 marks unlabeled documents: .* write 0"),
        (np.ones(240), r"y has only one class, 1\.0; a classifier needs documents of at least two classes\."),
        (np.column_stack([Y == 1, Y == 9]), r"The class 1 has no labeled document with a positive weight: give it"),
        (np.column_stack([Y, Y]), "y with several columns must be a matrix of zeros and ones"),
        (np.where(Y == 1, np.inf, Y), "Input y contains NaN or infinity: mark unlabeled documents by -1"),
        (None, "TopicClassifier requires y to be passed, but the target y is None"),
    ],
    ids=[
        "length",
        "unlabeled",
        "unlabeled-rows",
        "one",
        "one-float",
        "one-name",
        "one-labeled",
        "empty",
        "numbers",
        "infinite",
        "none",
    ],
)
def test_wrong_labels_raise(y, message):
    with pytest.raises(InputError, match=message) as error:
        TopicClassifier().fit(X, y)
    assert sentence(error)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"topics_per_class": 0}, "topics_per_class must be"),
        ({"n_shared": -1}, "n_shared must be"),
        ({"n_free": 1.5}, "n_free must be"),
        ({"background": "some"}, "background must be 'auto' or a number, got 'some'"),
        ({"background": 1.5}, "background must be"),
        ({"doc_smoothing": -1}, "doc_smoothing must"),
        ({"topic_smoothing": np.nan}, "topic_smoothing must"),
        ({"unlabeled_weight": -1}, "unlabeled_weight must"),
        ({"unlabeled": "all"}, "unlabeled must be 'auto', 'guided', 'any' or 'none', got 'all'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_parameters_raise(parameters, message):
    with pytest.raises(InputError, match=message) as error:
        TopicClassifier(**parameters).fit(X, FEW)
    assert sentence(error)


def test_guesses_need_one_class_per_document():
    indicator = np.where(np.arange(240)[:, np.newaxis] < 20, np.eye(4, dtype=int)[Y], -1)
    with pytest.raises(InputError, match="unlabeled='guided' needs one class per document"):
        TopicClassifier(unlabeled="guided").fit(X, indicator)


def test_a_class_whose_documents_have_no_weight_raises():
    with pytest.raises(InputError, match="The class 2 has no labeled document with a positive weight"):
        TopicClassifier().fit(X, Y, sample_weight=Y != 2)


def test_shards_edits_and_refits_are_refused(tmp_path):
    shards = write_shards([X], tmp_path / "shards")
    with pytest.raises(UnsupportedError, match="takes no shards"):
        TopicClassifier().fit(shards, Y)
    model = TopicClassifier().fit(X, Y)
    with pytest.raises(UnsupportedError, match="TopicClassifier depend on each other"):
        model._check_edits_topics()
    with pytest.raises(UnsupportedError, match="TopicClassifier cannot start from given topics"):
        model.refitting(X)
    np.testing.assert_allclose(model.with_documents(X[:9]).doc_topic_, model.transform(X[:9]))


class TestKnownTopicsInPLSA:
    KNOWN: ClassVar = [int(label) if label >= 0 else None for label in FEW]

    @pytest.mark.parametrize("solver", ["auto", "em", "tempered", "annealed", "held-out-tempered"])
    def test_every_solver_with_priors_keeps_them(self, solver):
        prior = [KnownTopics(self.KNOWN), Dirichlet(1.2)]
        model = PLSA(4, doc_topic_prior=prior, solver=solver, random_state=0, tol=0.1).fit(X)
        for weights, topic in zip(model.doc_topic_, self.KNOWN, strict=True):
            if topic is not None:
                np.testing.assert_array_equal(weights, np.eye(4)[topic])
        assert np.isfinite(model.history_["objective"]).all()
        assert model._inference.prior == Dirichlet(1.2)
        if solver in ("auto", "em", "tempered"):
            assert np.diff(model.history_["objective"]).min(initial=0) > -1e-12

    def test_a_strength_favors_topics(self):
        weights = [
            PLSA(4, doc_topic_prior=KnownTopics(self.KNOWN, strength), max_iter=1000, random_state=0).fit(X).doc_topic_
            for strength in (1.0, 1000.0)
        ]
        weak, strong = ([w[d, topic] for d, topic in enumerate(self.KNOWN) if topic is not None] for w in weights)
        assert np.mean(weak) < np.mean(strong)
        assert np.min(strong) > 0.9
        assert np.max(strong) < 1

    def test_transform_ignores_them_and_files_store_them(self, tmp_path):
        model = PLSA(4, doc_topic_prior=KnownTopics(self.KNOWN), random_state=0).fit(X)
        assert model._inference.prior is None
        assert (np.count_nonzero(model.transform(X[:20]), axis=1) > 1).any()
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert loaded.doc_topic_prior == KnownTopics(self.KNOWN)
        np.testing.assert_array_equal(loaded.doc_topic_, model.doc_topic_)

    def test_documents_of_weight_zero_have_known_topics_too(self):
        weights = np.ones(len(X))
        weights[:3] = 0
        model = PLSA(4, doc_topic_prior=KnownTopics(self.KNOWN), random_state=0).fit(X, sample_weight=weights)
        np.testing.assert_array_equal(model.doc_topic_[:20], np.eye(4)[FEW[:20]])

    def test_shards_streams_and_other_documents_are_refused(self, tmp_path):
        estimator = PLSA(4, doc_topic_prior=KnownTopics(self.KNOWN), random_state=0)
        with pytest.raises(UnsupportedError, match="no prior that compares or names documents"):
            estimator.fit(write_shards([X], tmp_path / "shards"))
        assert not hasattr(estimator, "partial_fit")
        with pytest.raises(UnsupportedError, match="solver='online'"):
            PLSA(4, doc_topic_prior=KnownTopics(self.KNOWN), solver="online").fit(X)
        with pytest.raises(InputError, match="there are 240 entries, but 9 documents"):
            estimator.fit(X[:9])
        with pytest.raises(InputError, match="topic 3 is known, but topics end at 2"):
            PLSA(3, doc_topic_prior=KnownTopics(self.KNOWN)).fit(X)
        with pytest.raises(InputError, match="KnownTopics acts on"):
            PLSA(4, topic_word_prior=KnownTopics(self.KNOWN)).fit(X)
