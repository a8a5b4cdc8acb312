"""Both forms of the background compared with naive EM, and fitted models that have a background."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from family_cases import expected_counts, log_likelihood
from polyseme import PLSA, Background, JointBackground, UnsupportedError, load
from polyseme.core.fold_in import fold_in
from polyseme.core.model import Model
from polyseme.core.shard import sparse_counts, split_tokens
from polyseme.kernels import padded
from polyseme.scale import write_shards
from polyseme.solvers import EarlyStopping, HeldOutTempered, Tempered
from polyseme.solvers.ascent import EM, AcceleratedEM
from polyseme.solvers.base import FitProblem
from solver_problems import advanced, begin_problem, factors, make_corpus

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_DOCS, N_WORDS, K, LAMBDA = 25, 18, 3, 0.4
X = oracles.mixed_counts(0, N_DOCS, N_WORDS, K, tokens=40)
X[:, 3] = 0
X[7] = 0
X[2] *= 5
UNIGRAM, P_D = X.sum(axis=0) / X.sum(), X.sum(axis=1) / X.sum()
THETA, PHI = oracles.random_factors(1, N_DOCS, N_WORDS, K)
MODELS = pytest.mark.parametrize("kind", [Background, JointBackground])


def begin(solver, *, joint, layout=sp.csr_array, weights=None):
    model = Model(K, background=(JointBackground if joint else Background)(LAMBDA, UNIGRAM))
    return begin_problem(
        solver,
        FitProblem(model, make_corpus(X, layout=layout, weights=weights)),
        padded(THETA, np.float64, K + 1),
        padded(PHI.T, np.float64, K + 1),
    )


def fitted(background, counts=X, **parameters):
    return PLSA(K, **{"background": background, "random_state": 0, "max_iter": 60, **parameters}).fit(counts)


def probabilities(model, weights, shares):
    """Return P(w|d) of a fitted model by its formula."""
    shares = np.asarray(shares)[:, np.newaxis]
    return shares * model.background_ + (1 - shares) * weights @ model.components_


class TestBackground:
    """P(w|d) = lambda P(w|B) + (1 - lambda) sum_z P(z|d) P(w|z)."""

    @pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_iterates_are_those_of_the_formulas(self, layout, weighted):
        weights = np.random.default_rng(2).exponential(size=N_DOCS) if weighted else None
        tokens = X.sum() if weights is None else weights @ X.sum(axis=1)
        run, theta, phi = begin(EM(), joint=False, layout=layout, weights=weights), THETA, PHI
        for _ in range(30):
            value = log_likelihood(X, theta, phi, LAMBDA, UNIGRAM, weights) / tokens
            assert run.report.log_likelihood == pytest.approx(value, rel=1e-12)
            assert run.report.objective == run.report.log_likelihood
            run.advance()
            by_doc, by_word, _ = expected_counts(X, theta, phi, LAMBDA, UNIGRAM, weights=weights)
            theta, phi = oracles.normalized(by_doc), oracles.normalized(by_word)
            ours = factors(run)
            seen = X.sum(axis=1) > 0
            np.testing.assert_allclose(ours[0][seen], theta[seen], rtol=0, atol=1e-12)
            np.testing.assert_allclose(ours[1], phi, rtol=0, atol=1e-12)

    def test_hongs_equation_39_does_not_sum_to_one(self):
        """P(d) is missing in the first term; with it the sum over documents and words is one."""
        topics = P_D[:, np.newaxis] * (THETA @ PHI)
        printed = LAMBDA * np.tile(UNIGRAM, (N_DOCS, 1)) + (1 - LAMBDA) * topics
        proper = LAMBDA * np.outer(P_D, UNIGRAM) + (1 - LAMBDA) * topics
        assert printed.sum() == pytest.approx(LAMBDA * N_DOCS + 1 - LAMBDA)
        assert proper.sum() == pytest.approx(1)

    def test_the_background_equals_one_more_fixed_topic(self):
        """K + 1 topics, the last one fixed with weight lambda in every document, have the same likelihood."""
        model = fitted(LAMBDA)
        theta = np.hstack([(1 - LAMBDA) * model.doc_topic_, np.full((N_DOCS, 1), LAMBDA)])
        phi = np.vstack([model.components_, model.background_])
        assert model.log_likelihood_ == pytest.approx(oracles.log_likelihood(X, theta, phi) / X.sum(), rel=1e-12)

    def test_the_residual_bounds_the_remaining_gain(self):
        """A long fit of theta alone gains at most the residual."""
        run = advanced(begin(EM(), joint=False), 5)
        theta, phi = factors(run)
        before = log_likelihood(X, theta, phi, LAMBDA, UNIGRAM)
        for _ in range(3000):
            theta = oracles.normalized(expected_counts(X, theta, phi, LAMBDA, UNIGRAM)[0])
        assert log_likelihood(X, theta, phi, LAMBDA, UNIGRAM) - before <= run.report.residual * X.sum()


def joint_step(topic_weights, topic_doc, topic_word):
    """Return P(z), P(d|z), P(w|z) after one EM step of formulation 2 of Hong (2012)."""
    topics = topic_weights[:, np.newaxis, np.newaxis] * topic_doc[:, :, np.newaxis] * topic_word[:, np.newaxis, :]
    total = LAMBDA * np.outer(P_D, UNIGRAM) + (1 - LAMBDA) * topics.sum(axis=0)
    share = np.divide((1 - LAMBDA) * topics, total, out=np.zeros_like(topics), where=total > 0)
    counted = X * share
    by_topic = counted.sum(axis=(1, 2))
    return by_topic / by_topic.sum(), oracles.normalized(counted.sum(axis=2)), oracles.normalized(counted.sum(axis=1))


def joint_probabilities(topic_weights, topic_doc, topic_word):
    return LAMBDA * np.outer(P_D, UNIGRAM) + (1 - LAMBDA) * (topic_doc.T * topic_weights) @ topic_word


class TestJointBackground:
    """P(d,w) = lambda P(d) P(w|B) + (1 - lambda) sum_z P(z) P(d|z) P(w|z), with P(d|z) free."""

    def test_iterates_are_those_of_the_formulas(self):
        run, point = begin(EM(), joint=True), oracles.symmetric_of(THETA, PHI, P_D)
        seen = X > 0
        for _ in range(30):
            joint = joint_probabilities(*point)
            assert joint.sum() == pytest.approx(1, rel=1e-12)
            # the objective is without P(d), and the likelihood is that of w given d
            by_hand = (X[seen] * np.log((joint / np.where(P_D > 0, P_D, 1)[:, np.newaxis])[seen])).sum() / X.sum()
            given = np.divide(joint, joint.sum(axis=1, keepdims=True), out=np.ones_like(joint), where=seen)
            assert run.report.objective == pytest.approx(by_hand, rel=1e-12)
            assert run.report.log_likelihood == pytest.approx((X[seen] * np.log(given[seen])).sum() / X.sum())
            run.advance()
            point = joint_step(*point)
            theta, phi = factors(run)
            np.testing.assert_allclose(P_D[:, np.newaxis] * theta, (point[1] * point[0][:, np.newaxis]).T, atol=1e-12)
            np.testing.assert_allclose(phi, point[2], atol=1e-12)

    @pytest.mark.parametrize("solver", [EM(), AcceleratedEM()], ids=lambda solver: solver.name)
    def test_the_objective_rises_and_the_joint_distribution_sums_to_one(self, solver):
        run = begin(solver, joint=True)
        for _ in range(60):
            before = run.report.objective
            run.advance()
            assert run.report.objective >= before - 1e-12
            theta, phi = factors(run)
            joint = P_D[:, np.newaxis] * (LAMBDA * UNIGRAM + (1 - LAMBDA) * theta @ phi)
            assert joint.sum() == pytest.approx(1, rel=1e-10)

    def test_it_differs_from_background(self):
        """Each document has its own share, and the optimum of Background is not an optimum of JointBackground."""
        proper, joint = fitted(LAMBDA, max_iter=300, tol=1e-6), fitted(JointBackground(LAMBDA), max_iter=300, tol=1e-6)
        assert np.ptp(joint.doc_background_) > 0.05
        assert np.ptp(proper.doc_background_) == 0
        assert abs(joint.log_likelihood_ - proper.log_likelihood_) > 1e-3
        point = oracles.symmetric_of(proper.doc_topic_, proper.components_, P_D)
        before = joint_probabilities(*point)
        for _ in range(100):
            point = joint_step(*point)
        seen = X > 0
        assert (X[seen] * np.log(joint_probabilities(*point)[seen] / before[seen])).sum() > 1

    def test_background_shares_of_documents(self):
        """Document d has lambda / (lambda + (1 - lambda) s_d), and over all documents the share is lambda."""
        run = advanced(begin(EM(), joint=True), 20)
        shares = run.model.background_shares(run.theta)
        theta, _ = factors(run)
        s = theta.sum(axis=1)
        assert P_D @ s == pytest.approx(1, rel=1e-12)
        np.testing.assert_allclose(shares, LAMBDA / (LAMBDA + (1 - LAMBDA) * s), rtol=1e-12)
        p_of_d = P_D * (LAMBDA + (1 - LAMBDA) * s)
        assert p_of_d @ shares == pytest.approx(LAMBDA, rel=1e-12)

    @pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_topic_weights_and_topic_doc_are_those_of_hong(self, layout):
        """A naive EM of formulation 2 that runs to its end has the P(z), P(d|z) and P(w|z) of the fitted model."""
        model = PLSA(
            K, background=JointBackground(LAMBDA), init=(THETA, PHI), solver="em", max_iter=3000, tol=0, dtype="float64"
        ).fit(layout(X))
        point = oracles.symmetric_of(THETA, PHI, P_D)
        for _ in range(3000):
            point = joint_step(*point)
        np.testing.assert_allclose(model.components_, point[2], atol=1e-9)
        # documents are folded in with a tolerance
        np.testing.assert_allclose(model.topic_weights_, point[0], atol=2e-3)
        np.testing.assert_allclose(model.topic_doc_, point[1], atol=2e-3)
        assert model.topic_weights_.sum() == pytest.approx(1, rel=1e-12)
        np.testing.assert_allclose(model.topic_doc_.sum(axis=1), 1, rtol=1e-12)
        by_mean = P_D @ model.doc_topic_  # P(z|d), averaged over the documents: another number in this model
        assert np.abs(by_mean - point[0]).max() > 0.02

    def test_folding_in_matches_naive_steps(self):
        """The naive steps start from uniform weights and use the fitted P(w|z) and share of the topics."""
        model = fitted(JointBackground(LAMBDA))
        theta = np.full((N_DOCS, K), 1 / K)
        totals = np.maximum(X.sum(axis=1, keepdims=True), 1)
        for _ in range(5000):
            joint = LAMBDA * UNIGRAM + (1 - LAMBDA) * theta @ model.components_
            ratio = np.divide(X, joint, out=np.zeros_like(X), where=X > 0)
            theta = (1 - LAMBDA) * theta * (ratio @ model.components_.T) / (totals * model._inference.topic_share)
        counts = sparse_counts(X, np.dtype(np.float64))
        folded = fold_in(model._fitted.inference.model(K), counts, model.components_, None, n_threads=1, tol=1e-9)
        seen = X.sum(axis=1) > 0
        np.testing.assert_allclose(folded.doc_topic[seen], oracles.normalized(theta)[seen], atol=1e-3)
        shares = LAMBDA / (LAMBDA + (1 - LAMBDA) * theta.sum(axis=1))
        np.testing.assert_allclose(folded.background[seen], shares[seen], atol=1e-3)
        np.testing.assert_allclose(model.doc_background_[seen], shares[seen], atol=0.02)

    @pytest.mark.parametrize("beta", [0.5, 0.8, 1.5])
    def test_documents_of_a_tempered_fit_have_a_mean_scale_of_one(self, beta):
        """Folding in uses the share of the topics in the tempered M-step, so that s_d of the fit has the mean one."""
        model = fitted(JointBackground(LAMBDA), solver=Tempered(beta), max_iter=400, tol=0, dtype="float64")
        shares = model.doc_background_
        scales = LAMBDA * (1 - shares) / ((1 - LAMBDA) * shares)
        assert P_D @ scales == pytest.approx(1, abs=2e-3)
        assert model.log_likelihood_ == pytest.approx(model.history_["log_likelihood"][-1], abs=2e-4)

    @pytest.mark.parametrize("beta", [1.5, 3.0, 10.0])
    def test_fits_of_few_tokens_at_a_beta_above_one_are_normalized(self, beta):
        counts = np.random.default_rng(0).poisson(0.5, (7, 7))
        model = PLSA(K, background=JointBackground(0.999), solver=Tempered(beta), max_iter=3, random_state=0).fit(
            counts
        )
        for distributions in (model.doc_topic_, model.topic_weights_, model.topic_doc_):
            np.testing.assert_allclose(distributions.sum(axis=-1), 1, rtol=1e-6)

    def test_topics_have_equal_weights_where_the_background_explains_all_tokens(self):
        """Powers of the topics' probabilities are zero in float32."""
        model = fitted(JointBackground(0.999), np.ones((3, 4)), solver=Tempered(20.0), max_iter=3, dtype="float32")
        np.testing.assert_array_equal(model.doc_background_, 1)
        for weights in (model.topic_weights_, model.doc_topic_, model.topic_doc_):
            np.testing.assert_allclose(weights, 1 / K)

    def test_topics_without_documents_have_distributions_of_documents(self):
        model = PLSA(
            3, background=JointBackground(0.4), init=(np.eye(3)[[0] * N_DOCS] + [0, 1e-30, 1e-30], PHI), max_iter=40,
            solver=Tempered(1.5), random_state=0, dtype="float64",
        ).fit(X)  # fmt: skip
        assert (model.topic_weights_ == 0).any()
        np.testing.assert_allclose(model.topic_doc_.sum(axis=1), 1, rtol=1e-12)
        view = model._fitted.symmetric_view(model._training)
        np.testing.assert_allclose(view.topic_weights, model.topic_weights_, atol=1e-12)

    def test_held_out_documents_without_observed_tokens_are_scored(self):
        """They are folded in with the share of the topics in the fit, not in documents without tokens."""
        stopping = EarlyStopping(folds=2)
        model = PLSA(1, background=JointBackground(0.3), early_stopping=stopping, max_iter=3).fit(np.full((4, 1), 0.25))
        assert np.isfinite(model.held_out_).all()


class TestFittedModel:
    @MODELS
    def test_shards_are_folded_in_as_arrays_are(self, kind, tmp_path):
        model = fitted(kind(LAMBDA))
        shards = write_shards([sp.csr_array(X)], tmp_path, shard_nonzeros=60)
        assert len(shards.manifest.shards) > 3
        np.testing.assert_array_equal(model.transform(shards), model.transform(X))
        if kind is JointBackground:
            with pytest.raises(UnsupportedError, match="JointBackground cannot be shards"):
                model.with_topics(model.components_, shards)
        else:
            again, whole = (model.with_topics(model.components_, data) for data in (shards, X))
            filled = X.sum(axis=1) > 0  # an empty document gets P(z), a sum over shards
            np.testing.assert_array_equal(again.doc_topic_[filled], whole.doc_topic_[filled])
            np.testing.assert_allclose(again.doc_topic_, whole.doc_topic_, rtol=1e-12)
            np.testing.assert_array_equal(again.doc_background_, whole.doc_background_)

    @MODELS
    def test_p_of_w_given_d_sums_to_one(self, kind):
        model = fitted(kind(LAMBDA))
        rows = probabilities(model, model.doc_topic_, model.doc_background_).sum(axis=1)
        np.testing.assert_allclose(rows, 1, rtol=1e-12)
        inference = model._fitted.inference
        operands = inference.model(K).token_operands(model.doc_topic_, model.components_, model.doc_background_)
        np.testing.assert_allclose((operands[0] @ operands[1].T).sum(axis=1), 1, rtol=1e-12)

    @MODELS
    def test_likelihood_and_perplexity_are_of_that_distribution(self, kind):
        model = fitted(kind(LAMBDA))
        p = probabilities(model, model.doc_topic_, model.doc_background_)
        assert model.training_perplexity_ == pytest.approx(oracles.perplexity(X, p), rel=1e-12)
        assert model.perplexity(X) == pytest.approx(oracles.perplexity(X, p), rel=1e-12)
        assert model.perplexity_report(X).unigram_perplexity == pytest.approx(
            oracles.perplexity(X, np.tile(UNIGRAM, (N_DOCS, 1)))
        )

    def test_completion_perplexity(self):
        """Weights come from one half of the tokens and the score from the other, both with the background."""
        model = fitted(LAMBDA)
        counts = sparse_counts(X, np.dtype(np.float64))
        observed, held_out = (counts.with_values(part).matrix().toarray() for part in split_tokens(counts, 0))
        for inference in ("model", "posterior"):
            folded = model.fold_in(observed, inference=inference)
            p = probabilities(model, folded.doc_topic, folded.background)
            by_hand = oracles.perplexity(held_out, 0.99 * p + 0.01 * UNIGRAM)
            assert model.completion_perplexity(X, inference=inference) == pytest.approx(by_hand, rel=1e-12)
        assert model.score(X) == pytest.approx(-np.log(by_hand))

    def test_word_background_is_the_posterior_of_each_word(self):
        model = fitted(LAMBDA, max_iter=2000, tol=1e-9)
        _, _, by_background = expected_counts(X, model.doc_topic_, model.components_, LAMBDA, UNIGRAM)
        seen = UNIGRAM > 0
        by_hand = by_background[seen] / X.sum(axis=0)[seen]
        np.testing.assert_allclose(model.word_background_[seen], by_hand, atol=1e-3)
        assert (model.word_background_[~seen] == 0).all()
        assert np.array_equal(model.background_, UNIGRAM)
        assert model.background_weight_ == LAMBDA

    def test_a_word_of_every_document_goes_to_the_background(self):
        """Two topics without a common word, and one word that occurs in every document.

        Its share of a topic is 0.46 to 0.51 without a background and 0.01 to 0.12 with one (twelve seeds).
        """
        rng = np.random.default_rng(3)
        data = np.zeros((40, 9))
        data[:20, 1:5], data[20:, 5:] = rng.poisson(5, (20, 4)), rng.poisson(5, (20, 4))
        data[:, 0] = rng.poisson(20, 40)
        plain = PLSA(2, random_state=0).fit(data)
        model = PLSA(2, random_state=0, background=0.8).fit(data)
        assert plain.components_[:, 0].min() > 0.4
        assert model.components_[:, 0].max() < 0.2
        assert model.word_background_.argmax() == 0

    def test_the_background_can_contain_a_word_unseen_in_training(self):
        """Folding in counts a word that only the given distribution contains."""
        given = np.full(N_WORDS, 1 / N_WORDS)
        model = fitted(Background(LAMBDA, given))
        new = np.zeros((1, N_WORDS))
        new[0, 3] = 5
        theta = model.transform(new)
        assert theta.sum() == pytest.approx(1)
        new[0, 0] = 5
        assert np.isfinite(model.perplexity(new))

    @MODELS
    def test_saving_and_loading(self, kind, tmp_path):
        model = fitted(kind(LAMBDA, UNIGRAM + 0.01))
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert type(loaded.background) is kind
        assert loaded.background.share == LAMBDA
        np.testing.assert_allclose(loaded.background.distribution, UNIGRAM + 0.01, rtol=1e-15)
        for name in ("background_", "word_background_", "doc_background_", "doc_topic_", "components_"):
            assert np.array_equal(getattr(loaded, name), getattr(model, name))
        assert loaded._inference.topic_share == model._inference.topic_share
        assert np.array_equal(loaded.transform(X), model.doc_topic_)
        assert loaded.score(X) == model.score(X)

    def test_attributes_without_a_background(self):
        model = PLSA(K, random_state=0).fit(X)
        assert model.background_ is None
        assert model.background_weight_ == 0
        assert not model.word_background_.any()
        assert not model.doc_background_.any()

    def test_a_given_distribution_is_normalized(self):
        one, other = fitted(Background(LAMBDA, UNIGRAM + 0.1)), fitted(Background(LAMBDA, (UNIGRAM + 0.1) * 70))
        np.testing.assert_allclose(one.components_, other.components_, atol=1e-9)
        assert one.background_.sum() == pytest.approx(1)


UNSUPPORTED = ["scd", "plsi", "nmf", "normalized-nmf"]


@pytest.mark.parametrize("solver", UNSUPPORTED)
@pytest.mark.parametrize(
    "parameters",
    [{"background": 0.2}, {"background": JointBackground(0.2)}, {"doc_topic_prior": 1.1}, {"topic_word_prior": 0.9}],
    ids=["background", "joint", "doc-prior", "word-prior"],
)
def test_solvers_without_support_raise_an_error(solver, parameters):
    with pytest.raises(UnsupportedError, match=f"solver='{solver}'") as error:
        PLSA(2, solver=solver, **parameters).fit(X)
    message = str(error.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert ". Solvers that fit this model: auto, em, " in message


@MODELS
def test_a_model_with_a_background_has_no_nmf(kind):
    with pytest.raises(UnsupportedError, match="is not a product of two factors"):
        fitted(kind(LAMBDA)).to_nmf()


def test_a_joint_background_refuses_a_document_prior():
    with pytest.raises(UnsupportedError, match="use Background"):
        PLSA(2, background=JointBackground(0.2), doc_topic_prior=1.1).fit(X)


@pytest.mark.parametrize("joint", [False, True])
def test_held_out_tempering_scores_with_the_background(joint):
    run = begin(HeldOutTempered(), joint=joint)
    counts = sparse_counts(X, np.dtype(np.float64))
    observed, held_out = (counts.with_values(part).matrix().toarray() for part in split_tokens(counts, 0, 0.1))
    p = LAMBDA * UNIGRAM + (1 - LAMBDA) * THETA @ PHI
    seen = observed.sum(axis=0) > 0
    mixed = 0.99 * p[:, seen] + 0.01 * (observed.sum(axis=0) / observed.sum())[seen]
    by_hand = (held_out[:, seen] * np.log(mixed)).sum() / held_out[:, seen].sum()
    assert run._token_score(run) == pytest.approx(by_hand, rel=1e-12)


def test_a_model_with_a_prior_has_an_nmf():
    model = PLSA(K, doc_topic_prior=1.2, random_state=0).fit(X)
    back = model.to_nmf().to_plsa()
    np.testing.assert_allclose(back.doc_topic_, model.doc_topic_, atol=1e-12)
    np.testing.assert_allclose(back.transform(X), model.transform(X), atol=1e-12)


@MODELS
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_probabilities_of_all_words_sum_to_one(kind, temperature):
    """The weights of documents with a joint background do not sum to one."""
    model = Model(K, background=kind(LAMBDA, UNIGRAM), temperature=temperature)
    theta = padded(THETA * np.linspace(0.2, 3, N_DOCS)[:, np.newaxis] if kind is JointBackground else THETA, np.float64)
    A, B = model.probability_operands(padded(theta[:, :K], np.float64, K + 1), padded(PHI.T, np.float64, K + 1))
    np.testing.assert_allclose((A @ B.T).sum(axis=1), 1, rtol=1e-12)


@MODELS
def test_the_likelihood_of_a_report_is_that_of_its_probabilities(kind):
    for temperature in (1.0, 0.6):
        run = begin(Tempered(temperature), joint=kind is JointBackground)
        run.advance()
        A, B = run.model.probability_operands(run.theta, run.phi)
        logs = (X * np.log(np.where(X > 0, A @ B.T, 1))).sum() / X.sum()
        assert run.report.log_likelihood == pytest.approx(logs, rel=1e-10)


@MODELS
@pytest.mark.parametrize("beta", [1.0, 0.6])
def test_the_share_of_the_background_in_a_word_is_taken_at_temperature_one(kind, beta):
    """The temperature flattens posteriors of the fit; the share is that of the model's probabilities."""
    model = fitted(kind(LAMBDA), solver=Tempered(beta))
    shares = model.doc_background_[:, np.newaxis]
    tokens = X * shares * model.background_ / np.where(X > 0, probabilities(model, model.doc_topic_, shares[:, 0]), 1)
    occurs = X.any(axis=0)
    np.testing.assert_allclose(model.word_background_[occurs], tokens.sum(axis=0)[occurs] / X.sum(axis=0)[occurs], 1e-4)
