"""Check the identities of Zhang, Ding and Tang: theorems, corollaries, algorithms as printed, sums.

Part of zhang_ding_tang.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls

import formulas
from formulas import Array, Pair, Triple, divergence, product, scaled, sums, t, to_one
from polyseme import NMF, PLSA
from polyseme.simplex import Hull
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import Solver
from polyseme.solvers.multiplicative import PLSI, MultiplicativeNMF, NormalizedNMF
from support import (
    EXACT,
    KINDS,
    Finding,
    as_corpus,
    asymmetric,
    begin,
    distance,
    error,
    few,
    point,
    problems,
    random_triple,
    show,
    verdict,
)

N_WORDS, N_DOCS, K = 12, 15, 3


class Setting(NamedTuple):
    """A stack of problems and a start for each."""

    X: Array
    start: Triple


def setting(n: int, seed: int = 0, kinds: Sequence[str] = KINDS) -> Setting:
    """Return n problems of each kind in one stack."""
    X = np.concatenate([problems(kind, n, N_WORDS, N_DOCS, K, seed) for kind in kinds])
    return Setting(X, random_triple(len(X), N_WORDS, N_DOCS, K, seed))


def as_pair(now: Triple) -> Pair:
    """Return F = C S and G = H."""
    return Pair(scaled(now.C, now.S), now.H)


def times(pair: Pair) -> Array:
    """Return F G'."""
    return pair.F @ t(pair.G)


# The solvers


def solver_finding() -> Finding:
    """Compare the solvers of the package with the formulas for 50 iterations."""
    X, start = setting(1, seed=5)
    triples = {"em": (EM(), formulas.em), "plsi": (PLSI(), formulas.plsi)}
    found = {name: max(_iterates(X[i], _one(start, i), *two) for i in range(len(X))) for name, two in triples.items()}
    for solver in (MultiplicativeNMF(), NormalizedNMF()):
        found[solver.name] = max(_iterates(X[i], _one(start, i), solver, _nmf_of_triple) for i in range(len(X)))
    show("The package's solvers have these iterates", ("solver", "largest error of 50 products"),
         [(name, few(value)) for name, value in found.items()])  # fmt: skip
    worst = max(found.values())
    return Finding(
        "The package's solvers", "(not in the paper)",
        f"`nmf`, `normalized-nmf`, `plsi` and `em` have these algorithms' iterates (50 products, error {few(worst)})",
        verdict("same", worst <= 1e-10),
    )  # fmt: skip


def _one(start: Triple, i: int) -> Triple:
    return Triple(*(part[i] for part in start))


def _nmf_of_triple(X: Array, now: Triple) -> Triple:
    return formulas.normalized(formulas.nmf(X, as_pair(now)))


def _iterates(X: Array, start: Triple, solver: Solver, step: Callable[[Array, Triple], Triple]) -> float:
    """Return the largest error of P(w|d) of a solver that starts with the P(d) of the data."""
    corpus = as_corpus(X.T)
    theta, phi = asymmetric(as_pair(start))
    now = formulas.normalized(Pair(phi, theta * X.sum(axis=0)[:, np.newaxis]))
    run = begin(solver, corpus, (theta, phi))
    largest = 0.0
    for _ in range(50):
        run.advance()
        now = step(X, now)
        theirs, ours = asymmetric(as_pair(now)), point(run)
        largest = max(largest, error(ours[0] @ ours[1].T, theirs[0] @ theirs[1].T))
    return largest


# Theorems and corollaries


def theorem_errors(X: Array, now: Triple) -> dict[str, float]:
    """Return the error of every identity at one point, under the condition in its name."""
    C, S, H = formulas.em(X, now)
    both = {"F = CS, G = H": as_pair(now), "F = C, G = HS": Pair(now.C, scaled(now.H, now.S))}
    change = S / now.S
    found: dict[str, float] = {}
    for case, pair in both.items():
        F, G = formulas.new_F(X, pair), formulas.new_G(X, pair)
        found[f"Theorem 1, {case}: F(t) = C(t) S(t)"] = error(F, scaled(C, S))
        found[f"Corollary 3, {case}: G(t) = H(t) S(t)"] = error(G, scaled(H, S))
        found[f"Theorem 5, {case}"] = error(formulas.plsi(X, now).C, to_one(F))
        found[f"Corollary 6, {case}, all from old values"] = error(H, to_one(G))
        if case.startswith("F = CS"):
            found[f"Corollary 3, {case}: G(t) = H(t) S(t) / S(t-1)"] = error(G, scaled(H, change))
        else:
            found[f"Theorem 1, {case}: F(t) = C(t) S(t) / S(t-1)"] = error(F, scaled(C, change))
    found["Corollary 2, sum X = 1"] = max(error(sums(C), np.ones_like(S)), error(S.sum(axis=-1), np.ones(S.shape[:-1])))
    weights = formulas.em(1000 * X, now).S.sum(axis=-1)
    found["Corollary 2, sum X = 1000: sum S = 1"] = error(weights, np.ones(len(X)))
    found["Corollary 2, sum X = 1000: sum S = 1000"] = error(weights, np.full(len(X), 1000.0))
    found["Corollary 6, Algorithms 1 and 2 with their newest values"] = error(
        formulas.plsi(X, now).H, to_one(formulas.nmf(X, as_pair(now)).G)
    )
    return found


def theorems(n: int, ap: Any) -> dict[str, float]:
    """Check every identity on random problems and AP, at the start and after a few steps."""
    X, now = setting(n)
    stacks = [(X, now), (X, after(formulas.em, X, now, 5))]
    if ap is not None:
        dense = ap[:40].toarray().T.astype(np.float64)
        dense = dense[dense.sum(axis=1) > 0] / dense.sum()
        stacks.append((dense[np.newaxis], random_triple(1, *dense.shape, 5, seed=1)))
    each = [theorem_errors(*stack) for stack in stacks]
    worst = {name: max(found[name] for found in each) for name in each[0]}
    show(
        f"Theorems 1 and 5, Corollaries 2, 3 and 6 ({len(X)} problems{'' if ap is None else ' and AP'})",
        ("statement, condition", "largest relative error", "holds"),
        [(name, few(value), "yes" if value <= EXACT else "no") for name, value in worst.items()],
    )
    return worst


def theorem_findings(worst: dict[str, float]) -> list[Finding]:
    cs, c = "F = CS, G = H", "F = C, G = HS"
    t1, t1c = worst[f"Theorem 1, {cs}: F(t) = C(t) S(t)"], worst[f"Theorem 1, {c}: F(t) = C(t) S(t)"]
    t1r = worst[f"Theorem 1, {c}: F(t) = C(t) S(t) / S(t-1)"]
    c2, c2n = worst["Corollary 2, sum X = 1"], worst["Corollary 2, sum X = 1000: sum S = 1000"]
    c3, c3c = worst[f"Corollary 3, {c}: G(t) = H(t) S(t)"], worst[f"Corollary 3, {cs}: G(t) = H(t) S(t)"]
    c3r = worst[f"Corollary 3, {cs}: G(t) = H(t) S(t) / S(t-1)"]
    t5 = [worst[f"Theorem 5, {case}"] for case in (cs, c)]
    c6 = [worst[f"Corollary 6, {case}, all from old values"] for case in (cs, c)]
    c6n = worst["Corollary 6, Algorithms 1 and 2 with their newest values"]
    return [
        Finding("Theorem 1", "F(t) = C(t) S(t) from F = CS, G = H, or from F = C, G = HS",
                f"error {few(t1)} from F = CS; {few(t1c)} from F = C, where F(t) = C(t) S(t) / S(t-1) "
                f"(error {few(t1r)})",
                verdict("true from F = CS, false from F = C", t1 <= EXACT, t1r <= EXACT, t1c > 1e-3)),
        Finding("Corollary 2", "columns of C and the diagonal of S sum to one",
                f"error {few(c2)} with sum X = 1; in general sum S = sum X (error {few(c2n)} with sum X = 1000)",
                verdict("true if sum X = 1", c2 <= EXACT, c2n <= EXACT)),
        Finding("Corollary 3", "G(t) = H(t) S(t) from either start",
                f"error {few(c3)} from G = HS; {few(c3c)} from G = H, where G(t) = H(t) S(t) / S(t-1) "
                f"(error {few(c3r)})",
                verdict("true from G = HS, false from G = H", c3 <= EXACT, c3r <= EXACT, c3c > 1e-3)),
        Finding("Theorem 5", "C(t) of PLSI is F(t) of NMF with its columns normalized",
                f"error {few(max(t5))}, both starts", verdict("true", max(t5) <= EXACT)),
        Finding("Corollary 6", "H(t) of PLSI is G(t) of NMF with its columns normalized",
                f"error {few(max(c6))} if all come from old values; {few(c6n)} for the working Algorithms 1 and 2",
                verdict("true from old values only", max(c6) <= EXACT, c6n > 1e-3)),
    ]  # fmt: skip


# Algorithms as printed


def after(step: Callable[[Array, Any], Any], X: Array, now: Any, iterations: int) -> Any:
    for _ in range(iterations):
        now = step(X, now)
    return now


def rises(values: Sequence[Array]) -> Array:
    """Return how often the divergence increases (beyond rounding) during a run, for each problem."""
    D = np.array(values)
    return (D[1:] > D[:-1] * (1 + 1e-12) + 1e-15).sum(axis=0)


def algorithm_1(n: int) -> Finding:
    """Check that Algorithm 1 as printed overshoots: a topic weight is multiplied by q^2, and by q in EM."""
    X, start = setting(n, seed=1)
    printed = working = as_pair(start)
    D1, D2, masses = [divergence(X, times(printed))], [divergence(X, times(working))], []
    for _ in range(300):
        printed, working = formulas.nmf_printed(X, printed), formulas.nmf(X, working)
        D1.append(divergence(X, times(printed)))
        D2.append(divergence(X, times(working)))
        masses.append(times(printed).sum(axis=(-1, -2)))
    old = formulas.normalized(printed)
    new = formulas.em(X, old)
    squared = Triple(new.C, new.S**2 / old.S, new.H)
    identity = error(times(formulas.nmf_printed(X, printed)), product(squared))
    cycle = float(np.abs(masses[-1] * masses[-2] - 1).max())
    swing = float(np.abs(np.log(masses[-1])).max())
    n1, n2 = int((rises(D1) > 0).sum()), int((rises(D2) > 0).sum())
    ends = f"c and 1/c (their product is 1 to {few(cycle)}), c up to {np.exp(swing):.3f}"
    show("Algorithm 1, 300 iterations", ("", "problems whose divergence rises", "sum F G' in the last two iterations"),
         [("as printed", f"{n1} of {len(X)}", ends), ("Gauss-Seidel", f"{n2} of {len(X)}", "1")])  # fmt: skip
    return Finding(
        "Algorithm 1 as printed", "both factors from the old ones, to a local solution",
        f"the divergence rises in {n1} of {len(X)} problems; sum F G' ends alternating between c and 1/c, c up to "
        f"{np.exp(swing):.3f}, because P(z) is multiplied by q^2 where EM has q (error {few(identity)}); "
        f"with G from the new F it rises in {n2}",
        verdict("false as printed, true as Gauss-Seidel", n1 > 0, n2 == 0, identity <= EXACT, swing > 1e-3),
    )  # fmt: skip


def algorithm_2(n: int) -> Finding:
    """Compare the columns of H in the first iterations, as printed and corrected."""
    X, start = setting(n, seed=2)
    printed = corrected = start
    rows, D = [], [divergence(X, product(start))]
    for iteration in range(1, 101):
        printed, corrected = formulas.plsi_printed(X, printed), formulas.plsi(X, corrected)
        D.append(divergence(X, product(corrected)))
        if iteration in (1, 2, 10, 100):
            a, b = sums(printed.H), np.abs(sums(corrected.H) - 1).max()
            rows.append((iteration, f"{a.min():.3f} to {a.max():.3f}", f"1, error {few(b)}"))
    show("Algorithm 2: column sums of H", ("iteration", "as printed", "corrected"), rows)
    rising = int((rises(D) > 0).sum())
    return Finding(
        "Algorithm 2 as printed", "columns of H sum to one at each step",
        f"they sum to {rows[0][1]} after one iteration, {rows[1][1]} after two; corrected to one, and the divergence "
        f"rises in {rising} of {len(X)} problems",
        verdict("false as printed, true corrected", rows[1][1] != "1.000 to 1.000", rising == 0),
    )  # fmt: skip


def algorithm_3(n: int) -> list[Finding]:
    """Check that Algorithm 3 is EM as printed, and has the product of Algorithm 1 in Gauss-Seidel order."""
    X, start = setting(n, seed=3)
    X = X + 1e-6 / X[0].size  # eq. 2 has no posterior at zeros
    X = X / X.sum(axis=(-1, -2), keepdims=True)
    printed, third, first = start, start, as_pair(start)
    as_em = same = constraints = 0.0
    for _ in range(200):
        by_posterior = formulas.posterior_em(X, printed)
        printed = formulas.normalized_nmf_printed(X, printed)
        third, first = formulas.normalized_nmf(X, third), formulas.nmf(X, first)
        as_em = max(as_em, *(error(a, b) for a, b in zip(printed, by_posterior, strict=True)))
        same = max(same, error(product(third), times(first)))
        constraints = max(constraints, *(float(np.abs(part - 1).max()) for part in _constraint_sums(third)))
    show("Algorithm 3, 200 iterations", ("", "largest error"),
         [("as printed: a step of EM (eq. 1 and 2) from the same point", few(as_em)),
          ("Gauss-Seidel: product of Algorithm 1", few(same)),
          ("Gauss-Seidel: sums of C, S and H are one", few(constraints))])  # fmt: skip
    return [
        Finding("Algorithm 3 (sect. 4)", "normalized NMF converges to a different local optimum than NMF",
                f"in Gauss-Seidel order both have the same product at each of 200 iterations (error {few(same)})",
                verdict("false", same <= 1e-10)),
        Finding("Algorithm 3 (sect. 5, 6)", "NMF with normalization at each step cannot replace PLSI",
                f"as printed it is the EM of PLSI (200 steps, error {few(as_em)}); in Gauss-Seidel order it keeps "
                f"PLSI's constraints (error {few(constraints)})",
                verdict("false", as_em <= EXACT, constraints <= EXACT)),
    ]  # fmt: skip


def _constraint_sums(now: Triple) -> tuple[Array, Array, Array]:
    return sums(now.C), now.S.sum(axis=-1), sums(now.H)


# Stationary points, sums


def stationary_points(n: int, iterations: int) -> Finding:
    """Run one step of each algorithm at exact factorizations and at the results of the others."""
    _, exact = setting(n, seed=4)
    steps: dict[str, Callable[[Array, Triple], Triple]] = {
        "Algorithm 1": _nmf_of_triple,
        "Algorithm 2": formulas.plsi,
        "Algorithm 3": formulas.normalized_nmf,
        "EM": formulas.em,
    }
    X = product(exact)
    at_exact = {name: error(product(step(X, exact)), X) for name, step in steps.items()}
    noise, start = setting(n, seed=4, kinds=KINDS[:1])
    rows, ratios = [], []
    for ran, run in steps.items():
        end = after(run, noise, start, iterations)
        changes = {name: float(distance(product(step(noise, end)), product(end)).max()) for name, step in steps.items()}
        ratios += [changes[name] / changes[ran] for name in steps]
        rows.append((ran, *map(few, changes.values())))
    show(f"Stationary points: change of the product (total variation) by one step, after {iterations} of one",
         ("ran", *steps), [("exact factorization", *map(few, at_exact.values())), *rows])  # fmt: skip
    worst = max(at_exact.values())
    return Finding(
        "Theorem 4 and its converse", "stationary points of Algorithm 3 are those of Algorithm 1, and vice versa",
        f"at exact factorizations no algorithm moves (error {few(worst)}); where one has nearly converged, the step of "
        f"another is {min(ratios):.1f} to {max(ratios):.1f} times its own",
        verdict("true", worst <= EXACT, max(ratios) < 10),
    )  # fmt: skip


def fixed_sums(n: int, at: Sequence[int]) -> Finding:
    """Return the distance of row and column sums of the product to those of X during a run."""
    X, start = setting(n, seed=6, kinds=KINDS[:1])
    steps = {"EM": formulas.em, "Algorithm 1": _nmf_of_triple, "Algorithm 2": formulas.plsi}
    rows, ends, first = [], [], {}
    for name, step in steps.items():
        now, cells = start, []
        for iteration in range(1, at[-1] + 1):
            now = step(X, now)
            if iteration in at:
                P = product(now)
                gaps = [float(np.abs(P.sum(axis=a) / X.sum(axis=a) - 1).max()) for a in (-1, -2)]
                cells.append(" / ".join(map(few, gaps)))
                first.setdefault(name, gaps)
        ends.append(max(gaps))
        rows.append((name, *cells))
    show("Largest relative error of word sums / document sums after an iteration",
         ("", *map(str, at)), rows)  # fmt: skip
    em, nmf, plsi = (first[name] for name in steps)
    return Finding(
        "Fixed row and column sums", "at convergence the product has the sums of X",
        f"after {at[-1]} iterations to {few(max(ends))}; EM has both after every iteration "
        f"({few(max(em))}), Algorithm 1 those of the factor updated last (documents {few(nmf[1])}, words {few(nmf[0])} "
        f"after one), Algorithm 2 neither before the end ({few(max(plsi))} after one)",
        verdict("true", max(ends) <= 1e-2, max(em) <= EXACT, nmf[1] <= EXACT, nmf[0] > 1e-3, max(plsi) > 1e-3),
    )  # fmt: skip


def posterior_normalization(n_docs: int) -> Finding:
    """Cluster planted documents by raw factors of NMF, in random scales, and by posterior probabilities.

    The posterior is P(z|d) = G_dz sum_w F_wz, divided by its sum over z. With the squared loss it is the constraint
    that rows of G sum to one (Ding, Li, Luo and Peng 2008).
    """
    rng = np.random.default_rng(18)
    K, n_words = 4, 60
    labels = rng.integers(K, size=n_docs)
    shares = 0.6 * np.eye(K)[labels] + 0.4 * rng.dirichlet(np.ones(K), n_docs)
    topics = rng.dirichlet(np.full(n_words, 0.3), K)
    counts = np.array([rng.multinomial(int(length), p) for length, p in
                       zip(rng.integers(50, 400, n_docs), shares @ topics, strict=True)], dtype=np.float64)  # fmt: skip
    nmf = NMF(K, random_state=0, tol=1e-8, max_iter=5000)
    G = nmf.fit_transform(counts)
    F = nmf.components_.T
    raw, same, moved, posterior = [], 0.0, 0.0, to_one(t(G * F.sum(axis=0)))
    for _ in range(50):
        scale = np.exp(rng.normal(size=K))
        f, g = F / scale, G * scale
        raw.append(_accuracy(g.argmax(axis=1), labels))
        normalized = to_one(t(g * f.sum(axis=0)))
        moved = max(moved, float(np.abs(normalized - posterior).max()))
        same = max(same, error((t(normalized) * g.dot(f.sum(axis=0))[:, np.newaxis]) @ to_one(f).T, G @ F.T))
    plsa = PLSA(K, random_state=0, tol=1e-8, max_iter=5000, init=(t(posterior), to_one(F).T)).fit(counts)
    as_plsa = float(np.abs(plsa.doc_topic_ - t(posterior)).max())
    accuracy = _accuracy(posterior.argmax(axis=0), labels)
    rows = counts / counts.sum(axis=1, keepdims=True)
    free = NMF(K, loss="squared", random_state=0, tol=1e-8, max_iter=5000).fit(rows)
    corners, loss = free.components_, np.inf
    for _ in range(20):
        weights = Hull(corners).weights(rows)
        corners = np.array([nnls(weights, word)[0] for word in rows.T]).T
        loss = float(((rows - weights @ corners) ** 2).sum() / 2)
    squared = _accuracy(weights.argmax(axis=1), labels)
    show("Posterior probability normalization: share of documents in the right cluster", ("labels", "accuracy"),
         [("largest entry of G, 50 scales of one product", f"{min(raw):.3f} to {max(raw):.3f}"),
          ("largest posterior", f"{accuracy:.3f}"),
          ("squared loss, rows of G sum to one", f"{squared:.3f}")])  # fmt: skip
    return Finding(
        "Posterior probability normalization (sect. 6)", "NMF with it is more explainable",
        f"{n_docs} planted documents: the largest entry of G finds {min(raw):.0%} to {max(raw):.0%} of the clusters, "
        f"depending on the scale of F; the posterior {accuracy:.0%} in every scale (it moves by {few(moved)}, the "
        f"product by {few(same)}) and is PLSA's P(z|d) (to {few(as_plsa)}); with the squared loss it is a constraint "
        f"that raises the loss by {loss / free.reconstruction_err_ - 1:.1%} and finds {squared:.0%}",
        verdict("true", same <= EXACT, moved <= EXACT, accuracy >= max(raw) - 0.02, min(raw) < accuracy - 0.05,
                as_plsa < 0.01, squared > min(raw), loss >= free.reconstruction_err_ * (1 - 1e-9)),
    )  # fmt: skip


def _accuracy(found: Array, labels: Array) -> float:
    """Return the share of documents whose cluster is assigned to their label."""
    table = np.zeros((labels.max() + 1, found.max() + 1))
    np.add.at(table, (labels, found), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(labels))
