"""Each prior compared with its formula, a grid, or a fit of a small corpus; and errors for invalid priors."""

from typing import ClassVar

import numpy as np
import pytest

from polyseme.errors import InputError
from polyseme.priors import (
    Decorrelation,
    Dirichlet,
    Entropic,
    KnownTopics,
    SeedWords,
    Smoothing,
    Sparsing,
    TopicSelection,
)
from polyseme.priors.base import PriorSum
from polyseme.priors.members import as_prior
from prior_cases import COLUMNS, ROWS, TOTALS, counts, em, factor, mixed_counts, plain


class TestDirichlet:
    def test_closed_form(self):
        np.testing.assert_allclose(
            Dirichlet(3).maximize(np.array([[1.0, 0, 5]]), np.eye(3)[:1]), [[0.25, 1 / 6, 7 / 12]]
        )

    def test_alpha_below_one_creates_zeros(self):
        f = Dirichlet(0.5).maximize(np.array([[1.5, 0.2, 0, 3.5]]), np.full((1, 4), 0.25))
        np.testing.assert_allclose(f, [[0.25, 0, 0, 0.75]])

    def test_a_row_keeps_its_largest_entry(self):
        f = Dirichlet(0.1).maximize(
            np.array([[0.5, 0.3, 0.2], [0.4, 0.1, 0.4]]), np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])
        )
        np.testing.assert_allclose(f, [[1, 0, 0], [0.75, 0, 0.25]])

    def test_a_row_without_counts(self):
        """A symmetric alpha below one keeps the row; a larger alpha or a vector has a preferred row."""
        n, f = np.zeros((1, 3)), np.array([[0.2, 0.3, 0.5]])
        np.testing.assert_allclose(Dirichlet(0.1).maximize(n, f), f)
        np.testing.assert_allclose(Dirichlet(2).maximize(n, f), [[1 / 3, 1 / 3, 1 / 3]])
        np.testing.assert_allclose(Dirichlet([0.2, 0.9, 0.5]).maximize(n, f), [[0, 1, 0]])

    def test_log_density_at_zeros(self):
        corner = np.array([[0.0, 0.5, 0.5]])
        assert Dirichlet(2).log_density(corner) == -np.inf
        assert Dirichlet(0.5).log_density(corner) == pytest.approx(np.log(2))

    def test_uniform_smoothing_and_sparsing_equal_a_dirichlet_prior(self):
        n, f = counts(), factor()
        for other, prior in [(Smoothing(6), Dirichlet(2)), (Sparsing(3), Dirichlet(0.5))]:
            np.testing.assert_allclose(prior.maximize(n, f), other.maximize(n, f), rtol=1e-14)
            assert prior.log_density(f) == pytest.approx(other.log_density(f), rel=1e-14)

    def test_a_target_is_normalized(self):
        n, f = counts(), factor()
        np.testing.assert_allclose(
            Smoothing(6, np.arange(6)).maximize(n, f), Smoothing(6, np.arange(6) / 15).maximize(n, f), rtol=1e-14
        )


def grid(n, beta):
    """Return the maximum of sum n log f + beta sum f log f on a grid of the simplex (2 or 3 entries), and its f."""
    ticks = (np.arange(100_000) + 0.5) / 100_000 if len(n) == 2 else (np.arange(1000) + 0.5) / 1000
    if len(n) == 2:
        f = np.stack([ticks, 1 - ticks], axis=1)
    else:
        a, b = np.meshgrid(ticks, ticks)
        f = np.stack([a, b, 1 - a - b], axis=-1).reshape(-1, 3)
        f = f[f[:, 2] > 1e-9]
    values = (np.asarray(n) * np.log(f) + beta * f * np.log(f)).sum(axis=1)
    return values.max(), f[values.argmax()]


class TestEntropic:
    @pytest.mark.parametrize("beta", [-1000, -20, -1, 0.5, 3, 8, 11, 14, 20, 40, 100, 1000])
    @pytest.mark.parametrize("n", [(3, 7), (5, 5), (1, 10), (4, 4.5, 5), (1, 2, 8), (4, 4, 4)], ids=str)
    def test_reaches_the_best_value_on_a_grid(self, n, beta):
        """Includes cases where Lambert's W_-1 is undefined (the best f exceeds n / beta), and equal counts."""
        best, where = grid(n, beta)
        rng = np.random.default_rng(0)
        starts = np.vstack([plain(np.array([n], dtype=float)), rng.dirichlet(np.ones(len(n)), 10)])
        rows = np.tile(np.array(n, dtype=float), (len(starts), 1))
        found = Entropic(beta).maximize(rows, starts)
        values = (rows * np.log(found) + beta * found * np.log(found)).sum(axis=1)
        assert values.min() >= best - 1e-9 * abs(best)
        if len(set(n)) == len(n):
            np.testing.assert_allclose(found, np.tile(where, (len(starts), 1)), atol=0.02)

    @pytest.mark.parametrize("seed", range(5))
    def test_no_start_leads_to_a_better_maximum(self, seed):
        """The counts are nearly equal, so that flat and peaked maxima have similar values."""
        rng = np.random.default_rng(seed)
        n = rng.gamma(50, size=(40, 8))
        beta = n.max() * 8 * rng.uniform(0.3, 1.5)
        found = Entropic(beta).maximize(n, plain(n))
        f = rng.dirichlet(np.full(8, 0.3), 40) + 1e-9
        f[:20] = np.eye(8)[rng.integers(8, size=20)] + 1e-3
        for _ in range(150):
            costs = -beta * np.log(plain(f))
            low, high = -costs.min(axis=1, keepdims=True), np.full((40, 1), n.sum())
            for _ in range(60):
                middle = (low + high) / 2
                above = (n / np.maximum(middle + costs, 1e-300)).sum(axis=1, keepdims=True) > 1
                low, high = np.where(above, middle, low), np.where(above, high, middle)
            f = plain(n / (high + costs))
        for row, best, other in zip(n, found, f, strict=True):
            value = [(row * np.log(g) + beta * g * np.log(g)).sum() for g in (best, other)]
            assert value[0] >= value[1] - 1e-10 * abs(value[1])

    def test_positive_beta_makes_rows_sparse_and_negative_beta_flat(self):
        n, f = counts(), factor()
        largest = [Entropic(beta).maximize(n, f).max(axis=1).mean() for beta in (-1e6, -100, -1, 0, 1, 100, 1e6)]
        assert (np.diff(largest) > 0).all()
        assert largest[0] == pytest.approx(1 / COLUMNS, abs=1e-4)
        assert largest[-1] == pytest.approx(1, abs=1e-3)

    def test_a_tiny_beta_has_nearly_no_effect(self):
        for beta in (-1e-6, 1e-6):
            np.testing.assert_allclose(Entropic(beta).maximize(counts(), factor()), plain(counts()), atol=1e-6)

    def test_a_row_without_counts(self):
        n, f = np.zeros((2, 3)), np.array([[0.2, 0.3, 0.5], [0.4, 0.2, 0.4]])
        np.testing.assert_allclose(Entropic(-1).maximize(n, f), np.full((2, 3), 1 / 3))
        np.testing.assert_allclose(Entropic(1).maximize(n, f), [[0, 0, 1], [0.5, 0, 0.5]])

    def test_entries_without_counts_become_zero_for_positive_beta_only(self):
        n, f = np.array([[0.0, 3, 1]]), np.array([[0.9, 0.05, 0.05]])
        assert Entropic(5).maximize(n, f)[0, 0] == 0
        assert Entropic(-5).maximize(n, f)[0, 0] > 0.1

    def test_entropic_weights_are_added_in_a_sum(self):
        n, f = counts(), factor()
        both = PriorSum((Entropic(20), Dirichlet(2), Entropic(-5)))
        np.testing.assert_allclose(both.maximize(n, f), Entropic(15).maximize(n + 1, f), rtol=1e-14)
        assert both.log_density(f) == pytest.approx(Entropic(15).log_density(f) + Dirichlet(2).log_density(f))


class TestPriorsOnAllRows:
    def test_decorrelation_formula(self):
        """BigARTM: n_wt - tau phi_wt sum over s != t of phi_ws."""
        n, f = counts(), factor()
        expected = np.empty_like(n)
        for k, w in np.ndindex(n.shape):
            expected[k, w] = n[k, w] - 7 * f[k, w] * sum(f[other, w] for other in range(ROWS) if other != k)
        np.testing.assert_allclose(Decorrelation(7).maximize(n, f), plain(np.maximum(expected, 0)), rtol=1e-13)
        pairs = sum(f[k] @ f[other] for k in range(ROWS) for other in range(k))
        assert Decorrelation(7).log_density(f) == pytest.approx(-7 * pairs)

    def test_decorrelation_makes_topics_share_fewer_words(self):
        def overlap(phi):
            return (phi @ phi.T).sum() - (phi**2).sum()

        X = mixed_counts()
        (*_, (_, plain_phi)), (*_, (_, phi)) = em(X, 4)[1], em(X, 4, word_prior=Decorrelation(300))[1]
        assert overlap(phi) < 0.8 * overlap(plain_phi)

    def test_strong_decorrelation_keeps_a_word_that_the_topic_had(self):
        n = np.array([[5.0, 3, 0], [0, 6, 0]])
        f = np.array([[0.5, 0.5, 0], [0.4, 0.6, 0]])
        after = Decorrelation(1e6).maximize(n, f)
        np.testing.assert_array_equal(after, [[1, 0, 0], [1, 0, 0]])

    def test_topic_selection_formula(self):
        n, f = counts(), factor()
        shares = TOTALS @ f / TOTALS.sum()
        expected = n - 0.3 / COLUMNS * TOTALS[:, np.newaxis] * f / shares
        prior = TopicSelection(0.3).with_row_totals(TOTALS)
        np.testing.assert_allclose(prior.maximize(n, f), plain(np.maximum(expected, 0)), rtol=1e-12)
        np.testing.assert_allclose(TopicSelection(0.3).maximize(n, f), prior.maximize(n, f), rtol=1e-12)
        assert prior.log_density(f) == pytest.approx(-0.3 / COLUMNS * TOTALS.sum() * np.log(shares).sum())

    @pytest.mark.parametrize("strength", [0.1, 0.3, 0.6])
    def test_topic_selection_removes_superfluous_topics(self, strength):
        X = mixed_counts(n_topics=3)
        prior = TopicSelection(strength).with_row_totals(X.sum(axis=1))
        _, points = em(X, 8, doc_prior=prior, iterations=300)
        assert (points[-1][0].sum(axis=0) > 0).sum() == 3
        assert (em(X, 8, iterations=300)[1][-1][0].sum(axis=0) > 1).sum() > 3

    def test_topic_selection_treats_weight_two_as_a_repeated_row(self):
        n, f = counts(), factor()
        twice = [0, 1, 1, 2, 3]
        weighted = TopicSelection(0.3).with_row_totals(TOTALS, np.array([1.0, 2, 1, 1]))
        repeated = TopicSelection(0.3).with_row_totals(TOTALS[twice])
        np.testing.assert_allclose(weighted.maximize(n, f)[twice], repeated.maximize(n[twice], f[twice]), rtol=1e-13)
        density = weighted.row_log_density(f) @ [1, 2, 1, 1]
        assert density == pytest.approx(repeated.log_density(f[twice]), rel=1e-13)


class TestKnownTopics:
    KNOWN: ClassVar = [2, None, [0, 5], -1]

    def test_other_topics_are_zero_and_free_documents_are_not_affected(self):
        n = counts()
        n[2] = 0
        rows = KnownTopics(self.KNOWN).maximize(n, factor())
        np.testing.assert_array_equal(rows[0], np.eye(6)[2])
        np.testing.assert_array_equal(rows[2] > 0, [True, False, False, False, False, True])
        np.testing.assert_array_equal(rows[[1, 3]], plain(n[[1, 3]]))

    def test_a_strength_is_shared_by_the_known_topics(self):
        n = counts()
        added = np.zeros_like(n)
        added[0, 2], added[2, 0], added[2, 5] = 8, 4, 4
        total = n + added
        rows = KnownTopics(self.KNOWN, strength=8).maximize(n, factor())
        np.testing.assert_allclose(rows, plain(total), rtol=1e-14)

    @pytest.mark.parametrize("entropy", [-20.0, 20.0])
    def test_another_prior_acts_inside_the_known_topics(self, entropy):
        """The row of a document with two topics is that of a problem with these two columns."""
        n, f = counts(), factor()
        prior = PriorSum((KnownTopics(self.KNOWN), Dirichlet(1.5), Entropic(entropy)))
        alone = PriorSum((Dirichlet(1.5), Entropic(entropy)))
        pair = alone.maximize(n[2:3, [0, 5]], f[2:3, [0, 5]] / f[2, [0, 5]].sum())
        rows = prior.maximize(n, f)
        np.testing.assert_allclose(rows[2, [0, 5]], pair[0], rtol=1e-9)
        assert rows[2, [1, 2, 3, 4]].max() == 0
        expected = alone.row_log_density(rows[2:3, [0, 5]])[0]
        assert prior.row_log_density(rows)[2] == pytest.approx(expected, rel=1e-12)

    def test_a_sum_of_priors_has_the_support_of_all_of_them(self):
        known, others = KnownTopics(self.KNOWN), KnownTopics([(0, 1)] * len(self.KNOWN))
        shape = factor().shape
        expected = known.support(shape)
        np.testing.assert_array_equal(PriorSum((known, Dirichlet(1.5))).support(shape), expected)
        np.testing.assert_array_equal(PriorSum((known, others)).support(shape), expected & others.support(shape))
        assert PriorSum((Dirichlet(1.5), Dirichlet(2))).support(shape) is None

    def test_a_start_has_known_topics_only(self):
        start = KnownTopics(self.KNOWN).adapt_start(factor())
        np.testing.assert_allclose(start.sum(axis=1), 1, rtol=1e-14)
        np.testing.assert_array_equal(np.flatnonzero(start[2]), [0, 5])
        np.testing.assert_allclose(start[2, 0] / start[2, 5], factor()[2, 0] / factor()[2, 5])

    def test_rows_and_columns_follow_the_documents_and_topics(self):
        prior = KnownTopics(self.KNOWN)
        assert prior.with_rows(np.array([2, 0])) == KnownTopics([[0, 5], 2])
        assert prior.with_rows(slice(1, 3)) == KnownTopics([None, [0, 5]])
        assert prior.with_merged_columns([[5, 1], [0], [3]]) == KnownTopics([None, None, [0, 1], None])

    def test_new_documents_have_no_known_topics(self):
        prior = KnownTopics(self.KNOWN)
        assert prior.for_new_documents() is None
        assert prior.for_training_documents().for_new_documents() == prior
        assert PriorSum((prior, Dirichlet(2))).for_new_documents() == Dirichlet(2)
        assert PriorSum((Dirichlet(2), Entropic(1))).for_training_documents() is None


@pytest.mark.parametrize("priors", [(Sparsing(6.0), Smoothing(0.6)), (Dirichlet(0.9), Smoothing(0.01))])
def test_the_density_of_a_sum_omits_zeros_that_the_sum_prefers(priors):
    """The pseudo-counts of the sum are negative, as those of a single sparse prior."""
    f = np.array([[0.5, 0.5, 0, 0, 0, 0], [0.4, 0.3, 0.3, 0, 0, 0]])
    pseudo_counts = sum(prior.pseudo_counts(f, f) for prior in priors)
    expected = (pseudo_counts * np.log(np.where(f > 0, f, 1))).sum(axis=1)
    np.testing.assert_allclose(PriorSum(priors).row_log_density(f), expected, rtol=1e-12)
    assert PriorSum((Smoothing(6.1), *priors)).log_density(f) == -np.inf


class TestSeedWords:
    VOCABULARY = ("court", "judge", "game", "team", "law", "score")

    def test_a_guided_topic_starts_from_its_seed_words_and_the_mean_topic(self):
        factor = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.2, 0.1, 0.7]])
        start = SeedWords({1: [0, 2], 2: []}).adapt_start(factor)
        np.testing.assert_allclose(start, [factor[0], [0.45, 0.15, 0.4], factor[2]])
        np.testing.assert_allclose(start.sum(axis=1), 1)

    def test_merged_topics_share_their_seed_words(self):
        seeds = SeedWords({0: [4, 1], 2: [3], 3: [1]}, strength=9)
        assert seeds.with_merged_rows([[2, 0], [1], [3]], [4]) == SeedWords({0: [3, 1], 2: [1]}, strength=9)
        assert seeds.with_merged_rows([[1]]) is None

    def test_names_become_columns(self):
        seeds = SeedWords({0: ["law", "judge"], 2: ["team", 5]}, strength=9)
        expected = SeedWords({0: [4, 1], 2: [3, 5]}, strength=9)
        assert seeds.resolve(self.VOCABULARY) == expected
        assert seeds.resolve(np.array(self.VOCABULARY, dtype=object)) == expected
        assert seeds.resolve({word: column for column, word in enumerate(self.VOCABULARY)}) == expected
        assert SeedWords({0: ["law", "judge"], 2: ["team", 5]}, self.VOCABULARY, 9) == expected
        assert expected.resolve(self.VOCABULARY) == expected
        assert PriorSum((seeds, Dirichlet(2))).resolve(self.VOCABULARY) == PriorSum((expected, Dirichlet(2)))

    def test_pseudo_counts(self):
        n = counts()
        seeds = SeedWords({0: [4, 1, 4], 2: np.array([3])}, strength=9)
        n[0, [1, 4]] += 9
        n[2, 3] += 9
        np.testing.assert_allclose(seeds.maximize(counts(), factor()), plain(n), rtol=1e-14)

    def test_guided_topics_are_in_the_order_of_the_seeds(self):
        X = mixed_counts()
        _, points = em(X, 3)
        words = points[-1][1].argsort(axis=1)[:, -3:]
        for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
            prior = SeedWords({topic: words[other] for topic, other in enumerate(order)}, strength=300)
            phi = em(X, 3, word_prior=prior, seed=5)[1][-1][1]
            similarity = phi @ points[-1][1].T
            assert similarity.argmax(axis=1).tolist() == order


def check_of(prior):
    return lambda: prior.check((ROWS, COLUMNS))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Dirichlet(0), "Dirichlet: alpha must be greater than zero, got 0."),
        (lambda: Dirichlet([1, -2.5]), "Dirichlet: alpha must be greater than zero, got -2.5."),
        (lambda: Dirichlet(np.nan), "Dirichlet: alpha must be a finite number, got nan."),
        (lambda: Dirichlet("1"), "Dirichlet: alpha must be a finite number, got '1'."),
        (lambda: Dirichlet([1, np.inf]), "Dirichlet: alpha must be finite numbers in one dimension, got [1, inf]."),
        (
            lambda: Dirichlet([[1, 2]]),
            "Dirichlet: alpha must be finite numbers in one dimension, got an array of shape (1, 2).",
        ),
        (lambda: Dirichlet([]), "Dirichlet: alpha must be finite numbers in one dimension, got []."),
        (lambda: Dirichlet(["a"]), "Dirichlet: alpha must be finite numbers in one dimension, got ['a']."),
        (lambda: Entropic(np.inf), "Entropic: beta must be a finite number, got inf."),
        (lambda: Entropic(None), "Entropic: beta must be a finite number, got None."),
        (lambda: Smoothing(-1), "Smoothing: strength must not be negative, got -1."),
        (lambda: Smoothing(True), "Smoothing: strength must be a finite number, got True."),
        (lambda: Sparsing(1, [1.5, -0.5]), "Sparsing: target must have no negative entry and a positive sum."),
        (lambda: Sparsing(1, [0, 0]), "Sparsing: target must have no negative entry and a positive sum."),
        (lambda: Decorrelation(-2), "Decorrelation: strength must not be negative, got -2."),
        (lambda: TopicSelection("much"), "TopicSelection: strength must be a finite number, got 'much'."),
        (
            lambda: TopicSelection(1).log_density(factor()),
            "TopicSelection needs the lengths of the documents for its log density: use with_row_totals.",
        ),
        (lambda: KnownTopics(3), "KnownTopics: topics must have one entry per document, got 3."),
        (lambda: KnownTopics([0], strength=-1), "KnownTopics: strength must not be negative, got -1."),
        (lambda: KnownTopics(["a"]), "KnownTopics: a topic must be a whole number from 0 on, got 'a'."),
        (lambda: KnownTopics([-2]), "KnownTopics: a topic must be a whole number from 0 on, got -2."),
        (lambda: KnownTopics([[0, 1.5]]), "KnownTopics: a topic must be a whole number from 0 on, got 1.5."),
        (
            lambda: KnownTopics([[]]),
            "KnownTopics: a document has an empty list of topics: give None if its topics are not known.",
        ),
        (
            lambda: KnownTopics([0, 1]).maximize(counts(), factor()),
            "KnownTopics: there are 2 entries, but 4 documents: give one per document.",
        ),
        (
            lambda: KnownTopics([0, 1, 2, 6]).maximize(counts(), factor()),
            "KnownTopics: topic 6 is known, but topics end at 5.",
        ),
        (lambda: SeedWords({0: ["a"]}, strength=-1), "SeedWords: strength must not be negative, got -1."),
        (lambda: SeedWords([["a"]]), "SeedWords: seeds must map topic numbers to lists of words, got [['a']]."),
        (lambda: SeedWords({}), "SeedWords: seeds must map topic numbers to lists of words, got {}."),
        (lambda: SeedWords({"law": ["a"]}), "SeedWords: a topic must be a whole number from 0 on, got 'law'."),
        (lambda: SeedWords({-1: ["a"]}), "SeedWords: a topic must be a whole number from 0 on, got -1."),
        (lambda: SeedWords({0: "law"}), "SeedWords: the words of topic 0 must be a list, got 'law'."),
        (lambda: SeedWords({0: [1.5]}), "SeedWords: a word must be a name or a column from 0 on, got 1.5."),
        (
            lambda: SeedWords({0: ["law", "lwa"], 1: ["gmae"]}, ["law", "game"]),
            "SeedWords: the vocabulary does not have 'lwa', 'gmae'.",
        ),
        (
            lambda: SeedWords({0: ["law"]}).maximize(counts(), factor()),
            "SeedWords needs the vocabulary to find the columns of 'law': give vocabulary, or columns instead.",
        ),
        (check_of(SeedWords({4: [1]})), "SeedWords: there are seeds for topic 4, but topics end at 3."),
        (check_of(SeedWords({1: [2, 6]})), "SeedWords: column 6 is a seed word, but columns end at 5."),
        (
            check_of(Dirichlet([1, 2])),
            "Dirichlet: alpha has 2 entries, but the rows it acts on have 6: give one per column.",
        ),
        (
            check_of(PriorSum((Entropic(1), Smoothing(1, np.ones(7))))),
            "Smoothing: target has 7 entries, but the rows it acts on have 6: give one per column.",
        ),
        (
            check_of(TopicSelection(1).with_row_totals(np.ones(3))),
            "TopicSelection: there are 3 row totals, but 4 rows: give one per row.",
        ),
        (
            lambda: as_prior("flat"),
            "A prior must be None, a number (Dirichlet alpha), a Prior or a list of Priors, got 'flat'.",
        ),
        (
            lambda: as_prior(True),
            "A prior must be None, a number (Dirichlet alpha), a Prior or a list of Priors, got True.",
        ),
        (
            lambda: as_prior([0.1, 0.2]),
            "A list of priors may contain priors only, got 0.1: write a vector as Dirichlet([...]).",
        ),
    ],
)  # fmt: skip
def test_invalid_input_raises_an_error(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message
