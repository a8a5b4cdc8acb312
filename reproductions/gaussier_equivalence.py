"""Gaussier and Goutte 2005, section 2: PLSA is NMF with KL divergence. Part of gaussier_goutte_2005.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import formulas
from formulas import Array, Pair, product, scaled, sums, t
from polyseme import PLSA
from polyseme.data.corpus import MemoryCorpus
from polyseme.estimators.nmf import PLSAParameters, nmf_to_plsa, plsa_to_nmf
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import Solver
from polyseme.solvers.multiplicative import MultiplicativeNMF
from support import (
    EXACT,
    Finding,
    as_corpus,
    begin,
    distance,
    error,
    few,
    joint,
    planted_corpus,
    point,
    problems,
    random_start,
    random_triple,
    run_solver,
    show,
    verdict,
)

SOLVERS: dict[str, Solver] = {"EM": EM(), "NMF": MultiplicativeNMF()}


def dense_factors(n: int, n_words: int, n_docs: int, K: int, seed: int) -> tuple[Array, Array]:
    """Return stacks W (words x K) and H (K x documents) of positive numbers of any scale."""
    rng = np.random.default_rng([seed, 7])
    return rng.exponential(size=(n, n_words, K)) + 0.1, rng.exponential(size=(n, K, n_docs)) + 0.1


def scaling(n: int) -> Finding:
    """Check the conversion of random factors and of a fitted model to A, B and P(c), and back."""
    W, H = dense_factors(n, 12, 15, 4, seed=0)
    there = sums = back = 0.0
    for w, h in zip(W, H, strict=True):
        p = nmf_to_plsa(h.T, w.T)  # in the package, documents are rows
        there = max(there, error(p.total * _joint_of(p), (w @ h).T))
        sums = max(sums, *(float(np.abs(s - 1).max()) for s in _sums_of(p)))
        again = nmf_to_plsa(*plsa_to_nmf(p))
        back = max(back, *(error(np.asarray(a), np.asarray(b)) for a, b in zip(again, p, strict=True)))
    fit = _model_round_trip()
    show("Scaling (W, H) to P(c), P(w|c), P(d|c)", ("", "largest error"),
         [("W H = total sum P(c) P(d|c) P(w|c)", few(there)), ("P(c), P(w|c), P(d|c) sum to one", few(sums)),
          ("to NMF and back", few(back)), ("a fitted PLSA: to_nmf().to_plsa()", few(fit))])  # fmt: skip
    return Finding(
        "Scaling A, B", "W H = (W A^-1) (A B) (B^-1 H): P(w|c), P(c), P(d|c)",
        f"same product to {few(there)}, sums of one to {few(sums)}; to NMF and back {few(back)}",
        verdict("true", there <= EXACT, sums <= EXACT, back <= EXACT, fit <= EXACT),
    )  # fmt: skip


def _joint_of(p: PLSAParameters) -> Array:
    return (p.topic_doc.T * p.topic_weights) @ p.topic_word


def _sums_of(p: PLSAParameters) -> tuple[Any, Any, Any]:
    return p.topic_weights.sum(), p.topic_doc.sum(axis=1), p.topic_word.sum(axis=1)


def _model_round_trip() -> float:
    """Return the error of P(z|d) and P(w|z) of a fitted PLSA after conversion to NMF and back."""
    model = PLSA(5, dtype=np.float64, random_state=0, n_jobs=1).fit(planted_corpus(60, 40, 5, 50, seed=0))
    back = model.to_nmf().to_plsa()
    return max(error(back.doc_topic_, model.doc_topic_), error(back.components_, model.components_))


def same_objective(n: int) -> Finding:
    """Check that KL divergence + likelihood is a constant of V; a wrong total adds c - 1 - log c."""
    V = problems("noise", n, 12, 15, 4, seed=1)
    P = product(random_triple(n, 12, 15, 4, seed=1))
    constant = (V * np.log(V)).sum(axis=(-1, -2))
    likelihood = (V * np.log(P)).sum(axis=(-1, -2))
    D = formulas.divergence(V, P)
    exact = error(D + likelihood, constant)
    scale = max(error(formulas.divergence(V, c * P) - D, np.full_like(D, c - 1 - np.log(c))) for c in (0.5, 2.0))
    show("One objective", ("", "largest error"), [
        ("D(V | W H) + log-likelihood = sum V log V, if W H sums to one", few(exact)),
        ("D(V | c W H) - D(V | W H) = c - 1 - log c", few(scale)),
    ])  # fmt: skip
    return Finding(
        "Property", "a maximum-likelihood solution of PLSA is a solution of NMF with KL divergence, and vice versa",
        f"divergence plus likelihood is constant (error {few(exact)}), a total c costs c - 1 - log c "
        f"(error {few(scale)}), so the optima are the same",
        verdict("true", exact <= EXACT, scale <= EXACT),
    )  # fmt: skip


def proof_rules(n: int) -> Finding:
    """Compare the rules for W' and H' in the proof with EM, and the rule for H in eq. 3."""
    V = problems("noise", n, 12, 15, 4, seed=2)
    now = random_triple(n, 12, 15, 4, seed=2)
    R = formulas.ratio(V, product(now))
    old = scaled(now.C, now.S)
    W = old * (R @ now.H)
    H = scaled(now.H * (t(R) @ old), 1 / sums(W))
    after = formulas.posterior_em(V, now)
    exact = max(error(W, scaled(after.C, after.S)), error(H, after.H))
    eq3 = sums(formulas.new_G(V, Pair(old, now.H)))
    show("Rules of the proof", ("", ""), [
        ("W' and H' rules against EM with the posterior written out: error", few(exact)),
        ("column sums of H after eq. 3's rule, which divides by the old W'", f"{eq3.min():.2f} to {eq3.max():.2f}"),
    ])  # fmt: skip
    return Finding(
        "Update rules", "EM's rules are almost identical to NMF's: H' is divided by the new W'",
        f"the printed rules are EM's (error {few(exact)}); dividing by the old W', as eq. 3 does, gives columns of H "
        f"that sum to {eq3.min():.2f} to {eq3.max():.2f}",
        verdict("true", exact <= EXACT, eq3.max() > 1.01),
    )  # fmt: skip


def moves(corpus: MemoryCorpus, at: tuple[Array, Array]) -> dict[str, float]:
    """Return how far one step of each algorithm moves the product, in total variation."""
    here = joint(corpus, *at)
    return {
        name: float(distance(joint(corpus, *point(run_solver(s, corpus, at, 1))), here)) for name, s in SOLVERS.items()
    }


def fixed_points(iterations: int, ap_iterations: int, ap: Any) -> Finding:
    """Run one step of each solver at the end of a fit by the other."""
    exact = random_triple(1, 12, 15, 3, seed=3)
    counts = product(exact)[0].T
    corpus = as_corpus(counts)
    theta = exact.H[0] * exact.S[0]
    cases = [("exact factorization", "neither", moves(corpus, (theta / theta.sum(axis=1, keepdims=True), exact.C[0])))]
    data = {"planted": (planted_corpus(60, 40, 4, 100, seed=3), iterations)}
    if ap is not None:
        data["AP"] = (ap, ap_iterations)
    for name, (X, steps) in data.items():
        corpus = as_corpus(X)
        for ran, solver in SOLVERS.items():
            end = point(run_solver(solver, corpus, random_start(corpus, 4, 0), steps))
            cases.append((f"{name}, after {steps} iterations", ran, moves(corpus, end)))
    show("Fixed points: how far one step moves the product (total variation)",
         ("data", "ran", "a step of EM", "a step of NMF"),
         [(name, ran, few(move["EM"]), few(move["NMF"])) for name, ran, move in cases])  # fmt: skip
    planted = [max(move.values()) for name, _, move in cases if name.startswith("planted")]
    return Finding(
        "Fixed points", "any fixed point of EM is one of the NMF rules, and conversely",
        f"at an exact factorization both move by {few(max(cases[0][2].values()))}; after {iterations} "
        f"iterations of EM on planted data a step of NMF moves by {few(cases[1][2]['NMF'])}, of NMF a step of EM by "
        f"{few(cases[2][2]['EM'])}",
        verdict("true", max(cases[0][2].values()) <= EXACT, max(planted) <= 1e-6),
    )  # fmt: skip


def saddle(iterations: int) -> Finding:
    """Check that topics equal to the unigram are a fixed point of both algorithms and not a maximum."""
    X = planted_corpus(60, 40, 4, 100, seed=3)
    corpus = as_corpus(X)
    flat = np.full((len(X), 4), 0.25), np.tile(corpus.unigram[:, np.newaxis], 4)
    moved = moves(corpus, flat)
    there = begin(EM(), corpus, flat).report.log_likelihood
    nudged = flat[1] * (1 + 1e-3 * np.random.default_rng(0).standard_normal(flat[1].shape))
    beyond = run_solver(EM(), corpus, (flat[0], nudged / nudged.sum(axis=0)), iterations).report.log_likelihood
    show("A fixed point that is not a maximum: all topics equal", ("", ""), [
        ("a step of EM / of NMF moves by", f"{few(moved['EM'])} / {few(moved['NMF'])}"),
        ("likelihood there, nats per token", f"{there:.3f}"),
        ("likelihood of EM from a nudge of 1e-3", f"{beyond:.3f}"),
    ])  # fmt: skip
    return Finding(
        "The fixed-point argument", "solutions are the fixed points of the rules",
        f"with all topics equal both stay (they move by {few(max(moved.values()))}), yet a nudge of 1e-3 leads from "
        f"{there:.3f} to {beyond:.3f} nats per token: a fixed point need not be an optimum",
        verdict("true for optima, not for all fixed points", max(moved.values()) <= EXACT, beyond > there + 0.1),
    )  # fmt: skip
