"""Objective and EM steps of a model with priors and a background, compared with naive formulas."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from family_cases import (
    BACKGROUND,
    DOC_CASES,
    N_WORDS,
    PHI,
    THETA,
    WEIGHTS,
    WORD_CASES,
    K,
    X,
    begin,
    expected_counts,
    fitted,
    log_likelihood,
    model_of,
    over,
    same_fit,
)
from polyseme import Background, JointBackground
from polyseme.priors import Decorrelation, Dirichlet, Entropic, SeedWords, Smoothing, Sparsing, TopicSelection
from polyseme.solvers import Tempered
from polyseme.solvers.ascent import EM, AcceleratedEM
from polyseme.solvers.base import Auto
from solver_problems import advanced, factors

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class TestSteps:
    """The objective at a point, and the EM step from it."""

    @over("case", DOC_CASES)
    @pytest.mark.parametrize("share", [0.0, 0.3])
    @pytest.mark.parametrize("beta", [1.0, 0.7])
    @pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
    def test_document_prior(self, case, share, beta, weights):
        counted = np.ones(20) if weights is None else weights
        run = begin(Tempered(beta), model_of(case.prior, share=share), weights=weights)
        row_totals = (X.sum(axis=1), counted)
        expected = self._value(share, beta, weights) + counted @ case.log_density(THETA, *row_totals)
        assert run.report.objective * (counted @ X.sum(axis=1)) == pytest.approx(expected, rel=1e-12)
        if case.pseudo_counts is not None:
            n, _, _ = expected_counts(X, THETA, PHI, share, BACKGROUND, beta)
            run.advance()
            by_hand = oracles.normalized(np.maximum(n + case.pseudo_counts(THETA, *row_totals), 0))
            np.testing.assert_allclose(factors(run)[0], by_hand, rtol=0, atol=1e-12)

    @over("case", WORD_CASES)
    @pytest.mark.parametrize("share", [0.0, 0.3])
    @pytest.mark.parametrize("beta", [1.0, 0.7])
    @pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
    def test_word_prior(self, case, share, beta, weights):
        run = begin(Tempered(beta), model_of(None, case.prior, share=share), weights=weights)
        tokens = X.sum() if weights is None else weights @ X.sum(axis=1)
        expected = self._value(share, beta, weights) + case.log_density(PHI).sum()
        assert run.report.objective * tokens == pytest.approx(expected, rel=1e-12)
        if case.pseudo_counts is not None:
            _, n, _ = expected_counts(X, THETA, PHI, share, BACKGROUND, beta, weights)
            run.advance()
            by_hand = oracles.normalized(np.maximum(n + case.pseudo_counts(PHI), 0))
            np.testing.assert_allclose(factors(run)[1], by_hand, rtol=0, atol=1e-12)

    @staticmethod
    def _value(share, beta, weights):
        """Return F_beta by loops: (1 / beta) sum x log sum_z (a b)^beta, with the background as one of the z."""
        counted = np.ones(20) if weights is None else weights
        total = 0.0
        for d, w in zip(*np.nonzero(X), strict=True):
            parts = [((1 - share) * THETA[d, k] * PHI[k, w]) ** beta for k in range(K)]
            parts.append((share * BACKGROUND[w]) ** beta)
            total += counted[d] * X[d, w] * np.log(sum(parts)) / beta
        return total

    def test_the_reported_likelihood_is_that_of_the_mixture(self):
        for beta in (1.0, 0.7):
            run = begin(Tempered(beta), model_of(1.2, 1.1, share=0.3))
            by_hand = log_likelihood(X, THETA, PHI, 0.3, BACKGROUND)
            assert run.report.log_likelihood * X.sum() == pytest.approx(by_hand, rel=1e-12)

    @over("case", {name: case for name, case in DOC_CASES.items() if case.pseudo_counts is None})
    def test_an_entropic_step_is_a_maximum(self, case):
        """None of a thousand other points has a higher sum n log f + log density."""
        n, _, _ = expected_counts(X, THETA, PHI)
        found = factors(advanced(begin(EM(), model_of(case.prior)), 1))[0]

        def value(f):
            logs = np.log(f, out=np.zeros_like(f), where=f > 0)
            return (n * logs).sum(axis=1) + case.log_density(f)

        best, rng = value(found), np.random.default_rng(0)
        for size in np.geomspace(1e-4, 1, 1000):
            assert (value((1 - size) * found + size * rng.dirichlet(np.ones(K), 20)) <= best + 1e-9).all()


class TestNeutral:
    @pytest.mark.parametrize("solver", ["auto", "em", "accelerated-em", "tempered", "scd", "nmf", "plsi"])
    @pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
    def test_a_neutral_prior_does_not_change_a_bit(self, solver, weights):
        plain = fitted(solver=solver, sample_weight=weights)
        for doc_prior in (1, 1.0, Dirichlet(np.ones(K)), Smoothing(0), Sparsing(0), Entropic(0), TopicSelection(0), []):
            same_fit(fitted(solver=solver, sample_weight=weights, doc_topic_prior=doc_prior), plain)
        for word_prior in (
            1,
            Dirichlet(np.ones(N_WORDS)),
            Decorrelation(0),
            SeedWords({0: [1]}, strength=0),
            [Entropic(0)],
        ):
            same_fit(fitted(solver=solver, sample_weight=weights, topic_word_prior=word_prior), plain)
        for background in (None, 0, 0.0, Background(0), JointBackground(0)):
            same_fit(fitted(solver=solver, sample_weight=weights, background=background), plain)

    @pytest.mark.parametrize("prior", [Dirichlet(1 + 1e-14), Entropic(1e-14), Entropic(-1e-14), Smoothing(1e-14)])
    def test_a_nearly_neutral_prior_gives_nearly_the_same_point(self, prior):
        plain = advanced(begin(EM(), model_of()), 10)
        assert not prior.neutral
        for model in (model_of(prior), model_of(None, prior)):
            run = advanced(begin(EM(), model), 10)
            for ours, theirs in zip(factors(run), factors(plain), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
            assert run.report.objective == pytest.approx(plain.report.objective, rel=1e-12)

    @pytest.mark.parametrize("joint", [False, True])
    def test_a_tiny_background_gives_nearly_plain_em(self, joint):
        plain = advanced(begin(EM(), model_of()), 10)
        run = advanced(begin(EM(), model_of(share=1e-15, joint=joint)), 10)
        for ours, theirs in zip(factors(run), factors(plain), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


DOC_PRIORS = st.one_of(
    st.none(),
    st.floats(1e-6, 1e3).map(lambda excess: Dirichlet(1 + excess)),
    st.floats(1e-6, 1e3).map(Smoothing),
    st.floats(-1e3, 1e3).map(Entropic),
    st.tuples(st.floats(1e-6, 10), st.floats(-50, 50)).map(lambda pair: [Smoothing(pair[0]), Entropic(pair[1])]),
)


@st.composite
def problems(draw):
    """Draw a solver, a model with monotone priors, counts and a start."""
    n_docs, n_words, n_topics = draw(st.integers(1, 8)), draw(st.integers(2, 9)), draw(st.integers(1, 4))
    seed = draw(st.integers(0, 10**6))
    data = oracles.random_counts(seed, n_docs, n_words, density=draw(st.sampled_from([0.2, 0.6, 1.0])))
    data[draw(st.integers(0, n_docs - 1)), draw(st.integers(0, n_words - 1))] = 3
    word_prior = draw(
        st.one_of(DOC_PRIORS, st.floats(1e-6, 1e3).map(lambda strength: SeedWords({0: [0, 1]}, strength=strength)))
    )
    share = draw(st.sampled_from([0.0, 0.01, 0.3, 0.95]))
    joint = share > 0 and draw(st.booleans())
    model = model_of(
        None if joint else draw(DOC_PRIORS), word_prior, share=share, n_topics=n_topics, joint=joint,
        background=(data.sum(axis=0) + 0.01) / (data.sum(axis=0) + 0.01).sum(),
    )  # fmt: skip
    solver = draw(st.sampled_from([EM(), AcceleratedEM(), Auto(), Tempered(0.6), Tempered(1.3)]))
    weights = draw(st.sampled_from([None, np.random.default_rng(seed).exponential(size=n_docs)]))
    start = oracles.random_factors(seed + 1, n_docs, n_words, n_topics)
    return solver, model, data, start, weights, draw(st.sampled_from([np.asarray, sp.csr_array]))


class TestMonotone:
    @settings(max_examples=60, deadline=None)
    @given(problems())
    def test_the_objective_never_falls(self, problem):
        solver, model, data, start, weights, layout = problem
        assert model.is_monotone
        run = begin(solver, model, data, start, layout=layout, weights=weights)
        last = run.report.objective
        assert np.isfinite(last)
        for _ in range(15):
            run.advance()
            assert run.report.objective >= last - 1e-12 * max(abs(last), 1)
            last = run.report.objective
            if run.exhausted:
                break

    def test_a_word_can_move_from_all_topics_to_the_background(self):
        """Restoring it in one topic would lower the objective."""
        data, background, weights = np.array([[5.0, 0], [0, 3]]), np.array([0.62, 0.38]), np.array([1.07, 0.31])
        model = model_of(None, Entropic(0), share=0.3, background=background, n_topics=1, joint=True)
        run = begin(EM(), model, data, (np.ones((2, 1)), np.array([[0.42, 0.58]])), weights=weights)
        for _ in range(60):
            before = run.report.objective
            run.advance()
            assert run.report.objective >= before - 1e-12
        assert factors(run)[1].min() == 0

    @pytest.mark.parametrize(
        ("doc_prior", "word_prior"),
        [(TopicSelection(0.5), None), (None, Decorrelation(1)), (0.9, None), (None, Sparsing(1))],
    )
    def test_priors_that_are_not_monotone_get_plain_em(self, doc_prior, word_prior):
        model = model_of(doc_prior, word_prior)
        assert not model.is_monotone
        assert type(begin(Auto(), model)) is type(begin(EM(), model))
        with pytest.raises(Exception, match=r"Solvers that fit this model: auto, em, .*tempered") as error:
            begin(AcceleratedEM(), model)
        assert type(error.value).__name__ == "UnsupportedError"


def strengths(s):
    return [
        {"doc_topic_prior": Dirichlet(s), "topic_word_prior": Dirichlet(s)},
        {"doc_topic_prior": Smoothing(s), "topic_word_prior": Sparsing(s)},
        {"doc_topic_prior": Sparsing(s), "topic_word_prior": Smoothing(s)},
        {"doc_topic_prior": Entropic(s), "topic_word_prior": Entropic(-s)},
        {"doc_topic_prior": Entropic(-s), "topic_word_prior": Entropic(s)},
        {"doc_topic_prior": TopicSelection(s), "topic_word_prior": Decorrelation(s)},
        {"doc_topic_prior": [TopicSelection(s), Dirichlet(1.1)], "topic_word_prior": SeedWords({0: [1]}, strength=s)},
    ]


class TestExtremes:
    @pytest.mark.parametrize("strength", [1e-6, 1e-3, 1.0, 1e3, 1e6])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("background", [0.0, 0.5])
    def test_factors_and_likelihoods_are_finite(self, strength, dtype, background):
        data = X.copy()
        data[0], data[1], data[:, 5] = 0, 0, 0
        data[1, 2], data[2, 3], data[3] = 1e9, 1e9, data[3] * 1e7
        for priors in strengths(strength):
            model = fitted(data.astype(dtype), background=background, max_iter=8, **priors)
            self._check(model, data)

    @staticmethod
    def _check(model, data):
        for name in ("components_", "doc_topic_"):
            rows = getattr(model, name)
            assert np.isfinite(rows).all()
            assert rows.min() >= 0
            np.testing.assert_allclose(rows.sum(axis=1, dtype=np.float64), 1, atol=1e-5)
        assert np.isfinite(model.log_likelihood_)
        assert not np.isnan(model.history_["objective"]).any()
        assert np.isfinite(model.history_["log_likelihood"]).all()
        assert np.isfinite(model.perplexity(data))
        assert np.isfinite(model.score(data))
