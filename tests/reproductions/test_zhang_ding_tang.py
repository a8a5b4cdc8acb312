"""Statements of Zhang, Ding and Tang, checked with dense formulas: the true ones hold, the false ones fail.

For the notation see zhang_formulas.py.
"""

import numpy as np
import pytest

import oracles
from polyseme.solvers.ascent import EM
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.multiplicative import PLSI, MultiplicativeNMF, NormalizedNMF
from solver_problems import advanced, begin, factors
from zhang_formulas import (
    C_S_H,
    F_and_G,
    K,
    algorithm_2,
    algorithm_2_as_scanned,
    algorithm_3,
    algorithm_3_as_printed,
    close,
    corollary_3,
    dense,
    divergence,
    joint,
    new_F,
    new_G,
    nmf_run,
    plsa_start,
    plsi_run,
    product,
    sparse,
    theorem_1,
    to_one,
    triple,
)


@pytest.fixture(params=["dense", "sparse", "real"])
def X(request, real_counts):
    """Return words x documents with sum one: random, random with empty rows, and 150 documents of AP with 250 words."""
    if request.param != "real":
        return {"dense": dense, "sparse": sparse}[request.param]()
    counts = real_counts("counts/ap_blei.npz")[:150].toarray().astype(np.float64)
    common = np.argsort(-counts.sum(axis=0), kind="stable")[:250]
    return joint(counts[:, common].T)


# the algorithms are the dense ones


@pytest.mark.parametrize("order", ["words-first", "documents-first"])
def test_algorithm_1_is_the_formula(X, order):
    C, S, H = triple(X)
    F, G = C * S, H
    run = nmf_run(X, F, G, order)
    for _ in range(20):
        run.advance()
        if order == "words-first":
            F = new_F(X, F, G)
            G = new_G(X, F, G)
        else:
            G = new_G(X, F, G)
            F = new_F(X, F, G)
        close(F_and_G(run)[0], F)
        close(F_and_G(run)[1], G)


def test_algorithm_2_is_the_formula(X):
    C, S, H = triple(X)
    run = plsi_run(X, C, S, H)
    for _ in range(20):
        run.advance()
        C, S, H = algorithm_2(X, C, S, H)
        for ours, naive in zip(C_S_H(run), (C, S, H), strict=True):
            close(ours, naive)
        for factor in (C, H, S):
            close(factor.sum(axis=0), 1)


@pytest.mark.parametrize("order", ["words-first", "documents-first"])
def test_algorithm_3_is_the_formula(X, order):
    C, S, H = triple(X)
    run = nmf_run(X, C, H * S, order, normalize=True)
    for _ in range(20):
        run.advance()
        if order == "words-first":
            C, S, H = algorithm_3(X, C, S, H)
        else:
            H, S = corollary_3(X, C, S, H)
            C, S = theorem_1(X, C, S, H)
        ours_C, ours_HS = F_and_G(run)
        close(ours_C, C)
        close(ours_HS, H * S)


def test_the_solvers_start_where_plsa_does(X):
    """Solvers by name, from theta and phi, are the algorithms above; P(d,w) has the P(d) of the documents."""
    start, (C, S, H) = plsa_start(X)
    nmf, normalized, plsi, em = (
        begin(solver, X.T, start) for solver in (MultiplicativeNMF(), NormalizedNMF(), PLSI(), EM())
    )
    F, G = C, H * S
    C2, S2, H2 = C, S, H
    C3, S3, H3 = C, S, H
    C0, S0, H0 = C, S, H
    P_d = X.sum(axis=0)[:, np.newaxis]
    for _ in range(10):
        for run in (nmf, normalized, plsi, em):
            run.advance()
        F = new_F(X, F, G)
        G = new_G(X, F, G)
        C2, S2, H2 = algorithm_2(X, C2, S2, H2)
        C3, S3, H3 = algorithm_3(X, C3, S3, H3)
        C0, S0, H0 = algorithm_3_as_printed(X, C0, S0, H0)
        for run, words, docs in ((nmf, F, G), (normalized, C3, H3 * S3), (plsi, C2, H2 * S2), (em, C0, H0 * S0)):
            theta, phi = factors(run)
            close(phi.T, to_one(words))
            close((P_d * theta).T, oracles.normalized(docs * words.sum(axis=0)).T * P_d.T)


# true


def test_theorem_1(X):
    """F = C S, G = H: the next F is the next C times the next S."""
    C, S, H = triple(X)
    run = nmf_run(X, C * S, H)
    run.advance()
    next_C, next_S = theorem_1(X, C, S, H)
    F, _ = F_and_G(run)
    close(F, next_C * next_S)
    close(to_one(F), next_C)
    close(F.sum(axis=0), next_S)


def test_theorem_1_for_the_other_scaling(X):
    """F = C, G = H S: the next F is the next C, but its scale is S(t) / S(t-1), not S(t)."""
    C, S, H = triple(X)
    run = nmf_run(X, C, H * S)
    run.advance()
    next_C, next_S = theorem_1(X, C, S, H)
    F, _ = F_and_G(run)
    close(F, next_C * next_S / S)
    assert np.abs(F - next_C * next_S).max() > 1e-3


def test_corollary_2(X):
    """C's columns sum to one, and S to one given that X does."""
    C, S, H = triple(X)
    run = nmf_run(X, C * S, H)
    for _ in range(10):
        run.advance()
        F, G = F_and_G(run)
        close((F.sum(axis=0) * G.sum(axis=0)).sum(), 1)
        next_C, next_S = theorem_1(X, C, S, H)
        close(next_C.sum(axis=0), 1)
        close(next_S.sum(), 1)
        C, S, H = algorithm_3(X, C, S, H)


def test_corollary_2_needs_sum_one():
    C, S, H = triple(dense())
    _, S_of_more = theorem_1(3 * dense(), C, S, H)
    close(S_of_more.sum(), 3)


def test_corollary_3(X):
    """F = C, G = H S: the next G is the next H times the next S; for F = C S, G = H up to S(t) / S(t-1)."""
    C, S, H = triple(X)
    next_H, next_S = corollary_3(X, C, S, H)
    run = nmf_run(X, C, H * S, "documents-first")
    run.advance()
    close(F_and_G(run)[1], next_H * next_S)
    other = nmf_run(X, C * S, H, "documents-first")
    other.advance()
    close(F_and_G(other)[1], next_H * next_S / S)


@pytest.mark.parametrize("scale_on", ["words", "documents"])
def test_theorem_5(X, scale_on):
    """One step of C in PLSI is one normalized step of F in NMF, for any position of S."""
    C, S, H = triple(X)
    nmf = nmf_run(X, *((C * S, H) if scale_on == "words" else (C, H * S)))
    plsi = plsi_run(X, C, S, H)
    nmf.advance()
    plsi.advance()
    close(to_one(F_and_G(nmf)[0]), C_S_H(plsi)[0])


@pytest.mark.parametrize("scale_on", ["words", "documents"])
def test_corollary_6(X, scale_on):
    """The same holds for H and G if all updates use the old values, but not with the new C, as in PLSI."""
    C, S, H = triple(X)
    nmf = nmf_run(X, *((C * S, H) if scale_on == "words" else (C, H * S)), "documents-first")
    nmf.advance()
    from_old = to_one(F_and_G(nmf)[1])
    close(from_old, corollary_3(X, C, S, H)[0])
    close(from_old, algorithm_3_as_printed(X, C, S, H)[2])
    plsi = plsi_run(X, C, S, H)
    plsi.advance()
    assert np.abs(C_S_H(plsi)[2] - from_old).max() > 1e-5


def exactly_factorable(zeros):
    """Return X = C S H', with or without zeros in the factors."""
    rng = np.random.default_rng(3)
    C, S, H = rng.dirichlet(np.ones(14), K).T, rng.dirichlet(np.full(K, 3.0)), rng.dirichlet(np.ones(18), K).T
    if zeros:
        C[rng.random(C.shape) < 0.3] = 0
        H[rng.random(H.shape) < 0.3] = 0
        C, H = to_one(C), to_one(H)
    return C * S @ H.T, (C, S, H)


@pytest.mark.parametrize("zeros", [False, True])
def test_theorem_4_and_its_converse(zeros):
    """Where X = C S H', the triple is stationary for Algorithm 3, for 1, for 2 and for EM, in every scaling."""
    X, (C, S, H) = exactly_factorable(zeros)
    for F, G in ((C * S, H), (C, H * S), (C * 7, H * S / 7)):
        for order in ("words-first", "documents-first"):
            for normalize in (False, True):
                run = nmf_run(X, F, G, order, normalize)
                for _ in range(5):
                    run.advance()
                close(F_and_G(run)[0], C if normalize else F)
                close(F_and_G(run)[1], H * S if normalize else G)
    for algorithm in (algorithm_3, algorithm_3_as_printed, algorithm_2):
        for ours, before in zip(algorithm(X, C, S, H), (C, S, H), strict=True):
            close(ours, before)
    plsi = plsi_run(X, C, S, H)
    plsi.advance()
    for ours, before in zip(C_S_H(plsi), (C, S, H), strict=True):
        close(ours, before)
    theta = oracles.normalized(H * S)
    em = begin(EM(), X.T, (theta, C.T))
    em.advance()
    close(factors(em)[0], theta)
    close(factors(em)[1], C.T)


def test_a_point_that_moves_for_one_moves_for_all():
    X = dense()
    C, S, H = triple(X)
    F, G = new_F(X, C * S, H), new_G(X, C * S, H)
    assert np.abs(to_one(F) - C).max() > 1e-3
    assert np.abs(to_one(G) - H).max() > 1e-3
    for algorithm in (algorithm_2, algorithm_3, algorithm_3_as_printed):
        moved = algorithm(X, C, S, H)
        assert np.abs(moved[0] - C).max() > 1e-3
        assert np.abs(moved[2] - H).max() > 1e-3


def test_where_one_algorithm_ends_the_others_stay():
    """A fixed point of one is a fixed point of the other, also if X is not factorable (Gaussier and Goutte)."""
    X = joint(oracles.mixed_counts(3, 20, 14, 2).T)
    start = oracles.random_factors(4, 20, 14, 2)
    for solver in (MultiplicativeNMF(), NormalizedNMF(), PLSI(), EM(), SCD()):
        ended = factors(advanced(begin(solver, X.T, start), 1000))
        assert divergence(X, (X.sum(axis=0)[:, np.newaxis] * (ended[0] @ ended[1])).T) > 0.01
        for other in (MultiplicativeNMF(), NormalizedNMF(), PLSI(), EM(), MultiplicativeNMF("documents-first")):
            run = begin(other, X.T, ended)
            run.advance()
            for ours, before in zip(factors(run), ended, strict=True):
                np.testing.assert_allclose(ours, before, atol=1e-5)


def test_algorithms_1_and_3_have_the_same_product_at_every_iteration(X):
    """So "the normalization version will converge to a different local optimum" is false."""
    C, S, H = triple(X)
    for order in ("words-first", "documents-first"):
        one, three = (nmf_run(X, C * S, H, order, normalize) for normalize in (False, True))
        for _ in range(60):
            one.advance()
            three.advance()
            products = [F @ G.T for F, G in (F_and_G(one), F_and_G(three))]
            np.testing.assert_allclose(products[0], products[1], rtol=1e-12, atol=1e-15)
            assert one.report.objective == pytest.approx(three.report.objective, rel=1e-12)
        close(to_one(F_and_G(one)[0]), F_and_G(three)[0])


def test_algorithm_3_as_printed_is_plain_em(X):
    start, (C, S, H) = plsa_start(X)
    em = begin(EM(), X.T, start)
    for _ in range(30):
        em.advance()
        C, S, H = algorithm_3_as_printed(X, C, S, H)
        theta, phi = factors(em)
        close(phi.T, C)
        close(X.sum(axis=0)[:, np.newaxis] * theta, H * S)


def test_rows_and_columns_of_the_product_sum_to_those_of_the_counts(X):
    """After each half-step one margin is exact, at a fixed point both are (Ho and Van Dooren)."""
    C, S, H = triple(X)
    run = nmf_run(X, C * S, H)
    for _ in range(5):
        run.advance()
        F, G = F_and_G(run)
        close((F @ G.T).sum(axis=0), X.sum(axis=0))
    words_last = nmf_run(X, C * S, H, "documents-first")
    for _ in range(5):
        words_last.advance()
        F, G = F_and_G(words_last)
        close((F @ G.T).sum(axis=1), X.sum(axis=1))


# false


def test_algorithm_1_as_printed_is_not_monotone():
    """With both factors from the old ones the divergence can increase, in Gauss-Seidel order never."""
    largest_rise = []
    for seed in range(10):
        X = joint(oracles.random_counts(seed, 10, 8, 0.3).T)
        C, S, H = triple(X, seed)
        F, G = C * S, H
        run = nmf_run(X, F, G)
        printed, working = [divergence(X, F @ G.T)], [divergence(X, F @ G.T)]
        for _ in range(30):
            F, G = new_F(X, F, G), new_G(X, F, G)
            printed.append(divergence(X, F @ G.T))
            run.advance()
            ours = F_and_G(run)
            working.append(divergence(X, ours[0] @ ours[1].T))
        largest_rise.append(np.diff(printed).max())
        assert np.diff(working).max() <= 1e-14
    assert max(largest_rise) > 1e-4


def test_algorithm_1_as_printed_may_oscillate():
    """With one component and a product of total two, the total alternates between 1/2 and 2; Gauss-Seidel converges."""
    X = dense()
    F, G = 2 * X.sum(axis=1, keepdims=True), X.sum(axis=0)[:, np.newaxis]
    totals = []
    for _ in range(6):
        F, G = new_F(X, F, G), new_G(X, F, G)
        totals.append((F @ G.T).sum())
    close(totals, [0.5, 2.0] * 3)
    F = new_F(X, F, G)
    close((F @ new_G(X, F, G).T).sum(), 1)


def test_algorithm_2_as_scanned_leaves_the_simplex():
    """The column sums of H differ from one by percents, but not if R and C are recomputed."""
    X = dense()
    C, S, H = triple(X)
    _, _, scanned = algorithm_2_as_scanned(X, C, S, H)
    assert np.abs(scanned.sum(axis=0) - 1).max() > 1e-2
    run = plsi_run(X, C, S, H)
    for _ in range(5):
        run.advance()
        close(C_S_H(run)[2].sum(axis=0), 1)


@pytest.mark.parametrize(
    ("seed", "n_topics", "same"), [(2, 2, True), (5, 2, True), (6, 2, False), (9, 3, False)], ids=str
)
def test_equation_10_does_not_hold_in_general(seed, n_topics, same):
    """ "Their solution values are always identical" holds on some problems; on others NMF, PLSI and EM differ widely.

    The seeds are examples of both. In float64, all three have the same iterates on every machine.
    """
    X = joint(np.random.default_rng(seed).uniform(0, 1, (10, 12)))
    start = oracles.random_factors(seed + 100, 12, 10, n_topics)
    ends, still_moving = [], 0.0
    for solver in (MultiplicativeNMF(), PLSI(), EM()):
        run = advanced(begin(solver, X.T, start), 1000)
        ends.append(product(X, run))
        still_moving = max(still_moving, np.abs(product(X, advanced(run, 100)) - ends[-1]).max())
    gap = max(np.abs(end - ends[0]).max() for end in ends[1:])
    if same:
        assert gap < 1e-9 * X.max()
    else:
        assert gap > 1e-3 * X.max()
        assert gap > 20 * still_moving
