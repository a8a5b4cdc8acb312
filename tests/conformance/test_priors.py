"""Conformance suite of all priors; tests/priors/test_members.py tests the effect of each prior.

The M-step is checked against the log density alone (numerical gradients, random neighbors, grids), never against the
formulas of the code.
"""

import copy
import pickle
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from polyseme.errors import InputError
from polyseme.priors import (
    Decorrelation,
    Dirichlet,
    Entropic,
    KnownTopics,
    MinimumVolume,
    SeedWords,
    Smoothing,
    Sparsing,
    TopicSelection,
)
from polyseme.priors.base import Prior, PriorSum, combine
from polyseme.priors.members import as_prior
from prior_cases import COLUMNS, ROWS, TOTALS, counts, em, factor, likelihood, mixed_counts, plain

TARGET = [0.1, 0.1, 0.2, 0.2, 0.3, 0.1]
KNOWN = [1, -1, [0, 2, 4], None]

AT_STRENGTH = {
    "dirichlet": lambda s: Dirichlet(s),
    "dirichlet-vector": lambda s: Dirichlet([s, 1, s, 1, 2, 0.5]),
    "smoothing": lambda s: Smoothing(s),
    "smoothing-target": lambda s: Smoothing(s, TARGET),
    "sparsing": lambda s: Sparsing(s),
    "sparsing-target": lambda s: Sparsing(s, TARGET),
    "sparse-entropic": lambda s: Entropic(s),
    "flat-entropic": lambda s: Entropic(-s),
    "decorrelation": lambda s: Decorrelation(s),
    "topic-selection": lambda s: TopicSelection(s).with_row_totals(TOTALS),
    "topic-selection-of-counts": lambda s: TopicSelection(s),
    "seed-words": lambda s: SeedWords({0: [1, 2], 3: [5]}, strength=s),
    "minimum-volume": lambda s: MinimumVolume(s),
    "thin-minimum-volume": lambda s: MinimumVolume(s, delta=1e-3),
    "known-topics": lambda s: KnownTopics(KNOWN),
    "favored-topics": lambda s: KnownTopics(KNOWN, strength=s),
    "sum-with-known-topics": lambda s: PriorSum((KnownTopics(KNOWN), Dirichlet(1 + s), Entropic(-s))),
    "sum-of-additive": lambda s: PriorSum((Dirichlet(0.5), Decorrelation(s), Smoothing(s, TARGET))),
    "sum-with-sparse-entropic": lambda s: PriorSum((Smoothing(3), Entropic(s), Sparsing(s))),
    "sum-with-flat-entropic": lambda s: PriorSum((Dirichlet(1.5), Entropic(-s), SeedWords({1: [0]}, strength=s))),
}
"""Every member at a strength from 1e-6 to 1e6."""

NEUTRAL = {
    "dirichlet": Dirichlet(1),
    "dirichlet-vector": Dirichlet(np.ones(COLUMNS)),
    "smoothing": Smoothing(0),
    "sparsing": Sparsing(0, TARGET),
    "entropic": Entropic(0),
    "decorrelation": Decorrelation(0),
    "topic-selection": TopicSelection(0).with_row_totals(TOTALS),
    "minimum-volume": MinimumVolume(0),
    "seed-words": SeedWords({0: [1]}, strength=0),
    "known-topics": KnownTopics([None] * ROWS),
    "favored-topics": KnownTopics(KNOWN, strength=0),
    "sum": PriorSum((Dirichlet(1), Entropic(0), Smoothing(0))),
}

MAXIMIZERS = {
    "dirichlet": Dirichlet(1.7),
    "dirichlet-vector": Dirichlet([1, 2, 30, 1.5, 1, 4]),
    "dirichlet-below-one": Dirichlet(0.4),
    "smoothing": Smoothing(30),
    "smoothing-target": Smoothing(30, TARGET),
    "sparsing": Sparsing(3),
    "sparsing-target": Sparsing(3, TARGET),
    "seed-words": SeedWords({0: [1, 2], 3: [5]}, strength=7),
    "favored-topics": KnownTopics(KNOWN, strength=7),
    "entropic": Entropic(0.5),
    "entropic-at-the-scale-of-counts": Entropic(30),
    "entropic-above-all-counts": Entropic(200),
    "flat-entropic": Entropic(-3),
    "flat-entropic-above-all-counts": Entropic(-500),
    "sum-of-additive": PriorSum((Dirichlet(0.5), Smoothing(20, TARGET), SeedWords({1: [4]}))),
    "sum-with-entropic": PriorSum((Dirichlet(1.5), Entropic(25), Entropic(5))),
    "sum-with-flat-entropic": PriorSum((Sparsing(2), Entropic(-10))),
}
"""Priors whose `maximize` is a maximum, at strengths that leave every entry of `counts()` above zero."""

STEPS = {
    "decorrelation": Decorrelation(8),
    "topic-selection": TopicSelection(0.2).with_row_totals(TOTALS),
    "topic-selection-of-counts": TopicSelection(0.2),
    "minimum-volume": MinimumVolume(20),
    "sum-with-decorrelation": PriorSum((Decorrelation(8), Dirichlet(1.5), Entropic(4))),
}
"""Priors whose `maximize` is one step of an iteration, at strengths where the iteration converges."""


def over(members):
    return pytest.mark.parametrize("prior", members.values(), ids=members.keys())


def objective(prior, n, f):
    return likelihood(n, f) + prior.log_density(f)


def scale(prior, n, f):
    """Return the magnitude of the terms of the objective, as a scale for rounding."""
    seen = f > 0
    return float((np.abs(n[seen] * np.log(f[seen]))).sum()) + abs(prior.log_density(f)) + 1


def unevenness(prior, n, f):
    """Return how much the numerical gradient of the objective varies within the rows (in tokens)."""
    gradient = np.empty_like(f)
    for at in np.ndindex(f.shape):
        step = np.zeros_like(f)
        step[at] = 1e-5 * f[at]
        gradient[at] = (objective(prior, n, f + step) - objective(prior, n, f - step)) / (2 * step[at])
    mean = (f * gradient).sum(axis=1, keepdims=True)
    return float(np.abs(f * (gradient - mean)).max())


def with_totals(prior):
    """Return a copy that knows the row totals, so that it has a log density."""
    return prior.with_row_totals(TOTALS)


class TestConformance:
    @over(MAXIMIZERS)
    def test_m_step_is_stationary(self, prior):
        n = counts()
        best = prior.maximize(n, factor())
        assert best.min() > 0
        assert unevenness(prior, n, best) < 1e-5

    @over(MAXIMIZERS)
    def test_m_step_is_no_worse_than_1000_random_neighbors(self, prior):
        n = counts()
        best = prior.maximize(n, factor())
        reached = objective(prior, n, best)
        rng = np.random.default_rng(2)
        for size in 10 ** rng.uniform(-4, 0.5, 1000):
            other = plain(best * np.exp(size * rng.standard_normal(best.shape)))
            assert objective(prior, n, other) <= reached + 1e-10 * abs(reached)

    @over(STEPS)
    def test_steps_lead_to_a_stationary_point(self, prior):
        n, f = counts(), factor()
        for _ in range(1000):
            f = prior.maximize(n, f)
        assert np.abs(prior.maximize(n, f) - f).max() < 1e-10
        assert f.min() > 0
        assert unevenness(with_totals(prior), n, f) < 1e-5

    @over(NEUTRAL)
    def test_neutral_strength_is_plain(self, prior):
        n, f = counts(), factor()
        np.testing.assert_array_equal(prior.maximize(n, f), plain(n))
        assert prior.neutral
        assert prior.monotone
        assert prior.log_density(f) == 0

    @over(NEUTRAL)
    def test_neutral_strength_keeps_a_row_without_counts(self, prior):
        n, f = counts(), factor()
        n[1] = 0
        np.testing.assert_allclose(prior.maximize(n, f)[1], f[1], rtol=1e-14)

    @over(MAXIMIZERS | STEPS)
    def test_other_strengths_are_not_neutral(self, prior):
        assert not prior.neutral

    @over(MAXIMIZERS | STEPS)
    def test_rows_add_up_to_the_log_density(self, prior):
        prior = with_totals(prior)
        rows = prior.row_log_density(factor())
        assert rows.shape == (ROWS,)
        assert rows.sum() == pytest.approx(prior.log_density(factor()), rel=1e-13)

    @over(MAXIMIZERS | STEPS)
    def test_arguments_are_not_changed(self, prior):
        n, f = counts(), factor()
        prior.maximize(n, f)
        np.testing.assert_array_equal(n, counts())
        np.testing.assert_array_equal(f, factor())

    @over(MAXIMIZERS | STEPS)
    def test_copies_and_pickles_are_equal(self, prior):
        for other in (copy.deepcopy(prior), pickle.loads(pickle.dumps(prior))):
            assert other == prior
            assert repr(other) == repr(prior)
            np.testing.assert_array_equal(other.maximize(counts(), factor()), prior.maximize(counts(), factor()))

    @settings(max_examples=100, deadline=None)
    @given(data=st.data(), exponent=st.floats(-6, 6))
    def test_any_strength_and_counts(self, data, exponent):
        """All members use the same numbers, because drawing them takes longer than all M-steps."""
        number = st.one_of(st.just(0.0), st.floats(0, 1e9), st.floats(-9, 9).map(lambda power: 10**power))
        n = np.array(data.draw(st.lists(number, min_size=ROWS * COLUMNS, max_size=ROWS * COLUMNS)))
        power = st.one_of(st.floats(-12, 0), st.just(-300.0), st.just(-np.inf))
        f = 10 ** np.array(data.draw(st.lists(power, min_size=ROWS * COLUMNS, max_size=ROWS * COLUMNS)))
        f = f.reshape(ROWS, COLUMNS)
        f[f.sum(axis=1) == 0] = 1
        for member, at_strength in AT_STRENGTH.items():
            note(member)
            self._is_proper(at_strength(10**exponent), n.reshape(ROWS, COLUMNS).copy(), plain(f))

    @staticmethod
    def _is_proper(prior, n, f):
        """Return whether rows and log density are proper, and a monotone prior does not decrease the objective."""
        after = prior.maximize(n, f)
        assert (after >= 0).all()
        np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-12)
        prior = with_totals(prior)
        for point in (f, after):
            density = prior.log_density(point)
            assert density < np.inf
            assert not np.isnan(density)
        n[n < 1e-90] = 0  # Entropic treats such counts as zero
        if prior.monotone and np.isfinite(objective(prior, n, f)):
            rounding = 1e-12 * max(scale(prior, n, f), scale(prior, n, after))
            assert objective(prior, n, after) >= objective(prior, n, f) - rounding

    @pytest.mark.parametrize("member", AT_STRENGTH)
    @pytest.mark.parametrize("strength", [1e-6, 1.0, 1e6])
    @pytest.mark.parametrize("size", [0.0, 5e-324, 1e-300, 1e-9, 1e9])
    def test_extremes(self, member, strength, size):
        n, f = size * (counts() > 10), factor()
        n[0] = 0
        f[:, 2] = 0
        f = plain(f)
        f[3] = np.eye(COLUMNS)[4]
        after = AT_STRENGTH[member](strength).maximize(n, f)
        assert (after >= 0).all()
        np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-12)


def falls(objectives):
    """Return where the objective decreases by more than rounding."""
    return np.diff(objectives) < -1e-12 * np.abs(objectives[:-1])


class TestMonotone:
    """Which priors never decrease the objective of EM."""

    @pytest.mark.parametrize(
        ("doc_prior", "word_prior"),
        [
            (Dirichlet(1.5), Dirichlet(1.01)),
            (Smoothing(3), Smoothing(50, np.arange(1, 31))),
            (None, SeedWords({0: [1, 2], 2: [7]}, strength=30)),
            (None, MinimumVolume(30)),
            (Dirichlet(1.5), MinimumVolume(1000, delta=1e-3)),
            (KnownTopics([0, [1, 2], None] * 20), None),
            (PriorSum((KnownTopics([3, None] * 30), Dirichlet(1.5), Entropic(-2))), None),
            (Entropic(2), None),
            (Entropic(100), Entropic(30)),
            (Entropic(-5), Entropic(-50)),
            (PriorSum((Dirichlet(1.2), Entropic(5))), PriorSum((Entropic(20), SeedWords({1: [3]}), Smoothing(2)))),
        ],
        ids=lambda prior: "none" if prior is None else type(prior).__name__,
    )
    def test_monotone_priors_never_lower_the_objective(self, doc_prior, word_prior):
        assert all(prior.monotone for prior in (doc_prior, word_prior) if prior)
        objectives, _ = em(mixed_counts(), 4, doc_prior, word_prior)
        assert np.isfinite(objectives).all()
        assert not falls(objectives).any()
        assert objectives[-1] > objectives[0]

    @pytest.mark.parametrize("prior", [Dirichlet(0.3), Sparsing(2)])
    def test_sparse_priors_lower_it_only_where_an_entry_reaches_zero(self, prior):
        assert not prior.monotone
        objectives, points = em(mixed_counts(), 4, doc_prior=prior)
        supports = [theta > 0 for theta, _ in points]
        changed = np.array([(a != b).any() for a, b in pairwise(supports)])
        assert falls(objectives).any()
        assert not (falls(objectives) & ~changed).any()
        assert (~changed).sum() > 10

    @pytest.mark.parametrize(
        ("doc_prior", "word_prior"),
        [(None, Decorrelation(3000)), (TopicSelection(0.6).with_row_totals(np.full(60, 80.0)), None)],
        ids=["decorrelation", "topic-selection"],
    )
    def test_one_step_priors_may_lower_it(self, doc_prior, word_prior):
        assert not (doc_prior or word_prior).monotone
        objectives, _ = em(mixed_counts(), 8, doc_prior, word_prior)
        assert falls(objectives).any()

    def test_decorrelation_lowers_it_while_no_entry_is_clipped(self):
        """The step overshoots for two topics with equal counts, although no entry is near zero."""
        prior, n = Decorrelation(95), np.array([[50.0, 50.0], [50.0, 50.0]])
        before = np.array([[0.52, 0.48], [0.52, 0.48]])
        after = prior.maximize(n, before)
        after_two = prior.maximize(n, after)
        assert min(after.min(), after_two.min()) > 0
        values = [objective(prior, n, f) for f in (before, after, after_two)]
        assert min(np.diff(values)) < 0

    def test_a_sum_is_monotone_if_all_its_members_are(self):
        assert PriorSum((Dirichlet(2), Entropic(3))).monotone
        assert not PriorSum((Dirichlet(2), Decorrelation(3))).monotone


class TestCombining:
    def test_a_list_adds_up(self):
        n, f = counts(), factor()
        priors = (Dirichlet(1.5), Decorrelation(4), Smoothing(6, TARGET))
        total = sum(prior.pseudo_counts(n, f) for prior in priors)
        together = combine(priors)
        np.testing.assert_allclose(together.maximize(n, f), plain(n + total), rtol=1e-14)
        assert together.log_density(f) == pytest.approx(sum(prior.log_density(f) for prior in priors))

    def test_opposites_cancel(self):
        """Pseudo-counts are clipped after adding, so entries below half a token survive."""
        n = counts() / 100
        prior = combine([Dirichlet(0.5), Dirichlet(1.5)])
        np.testing.assert_allclose(prior.maximize(n, factor()), plain(n), rtol=1e-12)

    def test_what_estimators_accept(self):
        prior = Entropic(2)
        assert as_prior(None) is None
        assert as_prior(prior) is prior
        assert as_prior(0.5) == as_prior(np.float32(0.5)) == Dirichlet(0.5)
        assert as_prior([]) is None
        assert as_prior([prior]) is prior
        assert as_prior((prior, Dirichlet(2))) == PriorSum((prior, Dirichlet(2)))
        assert as_prior([prior, PriorSum((Dirichlet(2), Smoothing(1)))]).entropic_weight == 2

    def test_a_prior_with_its_own_m_step_cannot_be_added(self):
        @dataclass(frozen=True)
        class Own(Prior):
            neutral = False
            monotone = True

            def row_log_density(self, factor):
                return np.zeros(len(factor))

            def maximize(self, counts, factor):
                return factor

        assert as_prior(Own()) == Own()
        with pytest.raises(InputError, match="Own has its own M-step"):
            as_prior([Own(), Dirichlet(2)])


@over(MAXIMIZERS)
def test_a_prior_of_the_wrong_length_is_refused_by_the_m_step_too(prior):
    """`maximize` refuses what `check` refuses, instead of a message about broadcasting."""
    shape = (ROWS, COLUMNS + 1)
    try:
        prior.check(shape)
    except InputError:
        with pytest.raises(InputError):
            prior.maximize(np.ones(shape), np.full(shape, 1 / shape[1]))
        with pytest.raises(InputError):
            prior.log_density(np.full(shape, 1 / shape[1]))
