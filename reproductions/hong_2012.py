"""Check the statements of Hong (2012), "Probabilistic Latent Semantic Analysis" (a tutorial).

Run: .venv/bin/python reproductions/hong_2012.py [--quick]
The script prints tables and saves a plot in build/reproductions. Documents are rows. Equation numbers are those of the
tutorial: 13-14 is EM by terms, 39 is the background.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from formulas import Array
from hong_em import (
    Asymmetric,
    Symmetric,
    as_symmetric,
    by_terms,
    by_tokens,
    joint_of,
    log_likelihood,
    normalize_rows,
    posterior,
    start,
    symmetric_step,
    weighted,
)
from hong_equivalences import lda_under_a_uniform_prior, tensors
from polyseme.core.model import Background, JointBackground, Model
from polyseme.solvers.ascent import EM
from support import (
    EXACT,
    Finding,
    ap_subset,
    arguments,
    as_corpus,
    begin,
    conclude,
    error,
    few,
    planted_corpus,
    show,
    verdict,
)


@dataclass(frozen=True)
class Size:
    """Sizes of the experiments."""

    docs: int = 120
    words: int = 60
    topics: int = 4
    tokens: int = 80
    iterations: int = 300
    starts: int = 20
    random_bounds: int = 1000
    ap_docs: int = 200
    tensors: int = 10
    tensor_iterations: int = 1000


QUICK = Size(
    docs=40,
    words=30,
    topics=3,
    tokens=50,
    iterations=60,
    starts=6,
    random_bounds=200,
    ap_docs=40,
    tensors=2,
    tensor_iterations=300,
)

SHARE = 0.5
"""lambda_B in all parts with a background."""


# Sections 2 to 5


def tokens_and_terms(X: Array, size: Size) -> Finding:
    tokens = terms = start(X, size.topics, seed=0)
    worst = 0.0
    for _ in range(5):
        tokens, terms = by_tokens(X, tokens), by_terms(X, terms)
        worst = max(worst, error(tokens.theta, terms.theta), error(tokens.phi, terms.phi))
    return Finding(
        "EM by tokens and by terms (eq. 8-14)",
        "positions with the same term have the same E-step, so one per term is enough",
        f"theta and phi agree over 5 iterations (error {few(worst)})", verdict("true", worst <= EXACT),
    )  # fmt: skip


def package_step(X: Array, size: Size) -> Finding:
    now, worst = start(X, size.topics, seed=0), 0.0
    run = begin(EM(), as_corpus(X), (now.theta, now.phi.T))
    for _ in range(50):
        now = by_terms(X, now)
        run.advance()
        worst = max(worst, error(run.theta[:, : size.topics], now.theta), error(run.phi[:, : size.topics].T, now.phi))
    return Finding(
        "The package's EM", "(not in the tutorial)", f"`em` has these iterates (50, error {few(worst)})",
        verdict("same", worst <= EXACT),
    )  # fmt: skip


def bound(X: Array, now: Asymmetric, q: Array) -> float:
    """Return equation 17 without its R, summed over tokens: sum n sum_k q log(phi theta / q)."""
    p = now.theta[:, np.newaxis, :] * now.phi.T
    return weighted(X, (xlogy(q, p) - xlogy(q, q)).sum(axis=2))


def jensen(X: Array, size: Size) -> list[Finding]:
    """Check the bound, its distance from the likelihood, and the q that raises it most."""
    now = start(X, size.topics, seed=1)
    L, R = log_likelihood(X, now.theta @ now.phi), posterior(now)
    rng = np.random.default_rng(1)
    gap, identity = np.inf, 0.0
    for _ in range(size.random_bounds):
        q = rng.dirichlet(np.ones(size.topics), X.shape)
        value = bound(X, now, q)
        missing = weighted(X, (xlogy(q, q) - xlogy(q, R)).sum(axis=2))
        gap, identity = min(gap, L - value), max(identity, abs(L - missing - value) / abs(L))
    tight = abs(L - bound(X, now, R)) / abs(L)
    return [
        Finding("Jensen's bound (eq. 15-18)", "E_q[log(R phi theta / q)] bounds the log-likelihood from below",
                f"below it by at least {gap:.0f} nats for {size.random_bounds} random q; with R, an indicator that "
                "is 0 for all topics except one, it would be -inf",
                verdict("true without the R", gap > 0)),
        Finding("The best q (eq. 19-20)", "the posterior, so the E-step raises the bound to the likelihood",
                f"there bound and likelihood agree (error {few(tight)}); with R in eq. 19 q would be one topic",
                verdict("true without the R", tight <= EXACT)),
        Finding("What the bound lacks (sect. 5)", "log P(X) - KL(q || posterior)",
                f"error {few(identity)} for the random q", verdict("true", identity <= EXACT)),
    ]  # fmt: skip


def q_function(X: Array, size: Size) -> Finding:
    """Check L(b) >= L(a) + Q(b; a) - Q(a; a) for random pairs of points."""
    least = np.inf
    for seed in range(50):
        a, b = start(X, size.topics, seed), start(X, size.topics, seed + 1000)
        R = posterior(a)
        Q = [weighted(X, (R * np.log(at.theta[:, np.newaxis, :] * at.phi.T)).sum(axis=2)) for at in (a, b)]
        rise = log_likelihood(X, b.theta @ b.phi) - log_likelihood(X, a.theta @ a.phi)
        least = min(least, rise - (Q[1] - Q[0]))
    return Finding(
        "The Q-function (eq. 32)", "the likelihood rises by at least as much as Q",
        f"by {least:.0f} nats more, at least, in 50 random pairs of points", verdict("true", least >= 0),
    )  # fmt: skip


class Climb(NamedTuple):
    """EM from one start: the likelihood, and the bound at the posterior of the iteration before."""

    likelihoods: Array
    bounds: Array


def climb(X: Array, size: Size, seed: int) -> Climb:
    now = start(X, size.topics, seed)
    likelihoods, bounds = [], []
    for _ in range(size.iterations):
        before, now = now, by_terms(X, now)
        likelihoods.append(log_likelihood(X, now.theta @ now.phi))
        bounds.append(bound(X, now, posterior(before)))
    return Climb(np.array(likelihoods), np.array(bounds))


def ascent(X: Array, size: Size) -> tuple[Climb, Finding]:
    climbs = [climb(X, size, seed) for seed in range(size.starts)]
    falls = min(float(np.diff(c.likelihoods).min()) for c in climbs) / abs(climbs[0].likelihoods[-1])
    ends = np.array([c.likelihoods[-1] for c in climbs]) / X.sum()
    show(f"EM, {size.iterations} iterations from {size.starts} starts: log-likelihood (nats per token)",
         ("worst", "median", "best"), [[f"{value:.4f}" for value in np.quantile(ends, (0, 0.5, 1))]])  # fmt: skip
    return climbs[0], Finding(
        "EM finds a local optimum (sect. 5)", "only a local one is guaranteed",
        f"the likelihood never falls (least change {few(falls)} of it); {size.starts} starts end up to "
        f"{np.ptp(ends):.4f} nats per token apart", verdict("true", falls >= -EXACT, np.ptp(ends) > 1e-3),
    )  # fmt: skip


def formulations(X: Array, size: Size) -> list[Finding]:
    one = start(X, size.topics, seed=2)
    two = as_symmetric(X, one)
    P = (X.sum(axis=1) / X.sum())[:, np.newaxis]
    same = error(joint_of(two), P * (one.theta @ one.phi))
    iterates, shares = 0.0, 0.0
    for _ in range(100):
        one, two = by_terms(X, one), symmetric_step(X, two)
        iterates = max(iterates, error(joint_of(two), P * (one.theta @ one.phi)), error(two.phi, one.phi))
        shares = max(shares, error((two.weights * two.docs.T).sum(axis=1, keepdims=True), P))
    return [
        Finding("Both formulations (eq. 21, 22)", "the same P(d,w), by Bayes' rule", f"error {few(same)}",
                verdict("true", same <= EXACT)),
        Finding("Their EM (eq. 33-38)", "equivalent, but may lead to a different inference process",
                f"100 iterations of both have the same P(d,w) and P(w|z) (error {few(iterates)}); formulation 2 finds "
                f"P(d) = n(d) / N by itself (error {few(shares)})",
                verdict("the same process", iterates <= EXACT, shares <= EXACT)),
    ]  # fmt: skip


# Section 6: the background


def printed_background(X: Array, now: Asymmetric, B: Array) -> tuple[Asymmetric, float]:
    """Run one EM step of equation 39 as printed; return also the share of tokens that the topics explain."""
    P = (X.sum(axis=1) / X.sum())[:, np.newaxis]
    topics = (1 - SHARE) * P * (now.theta @ now.phi)
    background = SHARE * B / (SHARE * B + topics)
    expected = (X * (1 - background))[:, :, np.newaxis] * posterior(now)
    step = Asymmetric(normalize_rows(expected.sum(axis=1)), normalize_rows(expected.sum(axis=0).T))
    return step, float(expected.sum() / X.sum())


def proper_background(X: Array, now: Asymmetric, B: Array) -> Asymmetric:
    """Run EM for P(d,w) = P(d) [lambda P(w|B) + (1 - lambda) sum_z P(w|z) P(z|d)], where P(d) cancels."""
    background = SHARE * B / (SHARE * B + (1 - SHARE) * now.theta @ now.phi)
    expected = (X * (1 - background))[:, :, np.newaxis] * posterior(now)
    return Asymmetric(normalize_rows(expected.sum(axis=1)), normalize_rows(expected.sum(axis=0).T))


def joint_background(X: Array, now: Symmetric, B: Array) -> Symmetric:
    """Run the steps of formulation 2, with the P(d) that its background term lacks."""
    P = (X.sum(axis=1) / X.sum())[:, np.newaxis]
    topics = (1 - SHARE) * joint_of(now)
    background = SHARE * P * B / (SHARE * P * B + topics)
    expected = (X * (1 - background))[:, :, np.newaxis] * posterior(Asymmetric(now.weights * now.docs.T, now.phi))
    mass = expected.sum(axis=(0, 1))
    return Symmetric(mass / mass.sum(), normalize_rows(expected.sum(axis=1).T), normalize_rows(expected.sum(axis=0).T))


class Shares(NamedTuple):
    """The share of every document that the background writes, at the end of a fit."""

    lengths: Array
    printed: Array
    proper: Array
    joint: Array


def backgrounds(X: Array, size: Size) -> tuple[Shares, list[Finding]]:
    """Compare the three models that the paper calls one, from one start."""
    K, B = size.topics, X.sum(axis=0) / X.sum()
    P = (X.sum(axis=1) / X.sum())[:, np.newaxis]
    first = start(X, K, seed=3)
    printed, proper, joint = first, first, as_symmetric(X, first)
    total = float((SHARE * B + (1 - SHARE) * P * (first.theta @ first.phi)).sum())
    corpus = as_corpus(X)
    fixed = {"proper": Background(SHARE, B), "joint": JointBackground(SHARE, B)}
    run = {
        form: begin(EM(), corpus, (first.theta, first.phi.T), Model(K, background=background))
        for form, background in fixed.items()
    }
    worst = {"proper": 0.0, "joint": 0.0}
    likelihoods: dict[str, list[float]] = {"proper": [], "joint": []}
    left = 0.0
    for _ in range(size.iterations):
        printed, left = printed_background(X, printed, B)
        proper, joint = proper_background(X, proper, B), joint_background(X, joint, B)
        for form, phi in (("proper", proper.phi), ("joint", joint.phi)):
            run[form].advance()
            worst[form] = max(worst[form], error(run[form].phi[:, :K].T, phi))
        likelihoods["proper"].append(log_likelihood(X, P * (SHARE * B + (1 - SHARE) * proper.theta @ proper.phi)))
        likelihoods["joint"].append(log_likelihood(X, SHARE * P * B + (1 - SHARE) * joint_of(joint)))
    falls = {form: float(np.diff(values).min()) / abs(values[-1]) for form, values in likelihoods.items()}
    sizes = (joint.weights * joint.docs.T).sum(axis=1) / P[:, 0]  # s_d
    doc_shares = SHARE / (SHARE + (1 - SHARE) * sizes)
    shares = SHARE / (SHARE + (1 - SHARE) * P[:, 0])
    gain = (likelihoods["joint"][-1] - likelihoods["proper"][-1]) / X.sum()
    rows = {
        "eq. 39 as printed": shares,
        "eq. 39 with P(d)": np.full(len(X), SHARE),
        "formulation 2 with P(d)": doc_shares,
    }
    show(
        f"Share of each document that the background writes, lambda = {SHARE}, after {size.iterations} iterations",
        ("form", "least", "median", "largest"),
        [(name, *(f"{value:.3f}" for value in np.quantile(values, (0, 0.5, 1)))) for name, values in rows.items()],
    )
    return Shares(X.sum(axis=1), *rows.values()), [
        Finding("Eq. 39 is a distribution", "P(d,w) = lambda P(w|B) + (1 - lambda) sum P(w|z) P(z|d) P(d)",
                f"it sums to {total:.1f} over {len(X)} documents, lambda D + 1 - lambda: the first term lacks P(d)",
                verdict("false as printed", abs(total - (SHARE * len(X) + 1 - SHARE)) < 1e-9)),
        Finding("lambda is the background's share", "a known share of all words is background",
                f"as printed the background writes {shares.min():.3f} to {shares.max():.3f} of a document, more if "
                f"there are more documents, and leaves {left:.1%} of the tokens to the topics; with P(d) it is {SHARE} "
                "in each",
                verdict("true with P(d) only", shares.min() > 0.8, left < 0.2)),
        Finding("EM with a background", "E- and M-steps of section 6",
                f"with P(d), `Background` has these iterates ({size.iterations}, error {few(worst['proper'])}), and "
                f"the likelihood never falls (least change {few(falls['proper'])} of it)",
                verdict("true", worst["proper"] <= 1e-9, falls["proper"] >= -EXACT)),
        Finding("The background in formulation 2", "the same model in other symbols",
                f"P(d|z) is free, so documents have shares of {doc_shares.min():.3f} to {doc_shares.max():.3f}; "
                f"the likelihood ends {gain:.4f} nats per token higher; `JointBackground` has its iterates "
                f"(error {few(worst['joint'])})",
                verdict("another model", np.ptp(doc_shares) > 0.01, gain > 0, worst["joint"] <= 1e-9)),
    ]  # fmt: skip


def on_real_text(X: Array | None, size: Size) -> None:
    """Print the same tables for the Associated Press corpus, if the file exists."""
    if X is not None:
        print("\nAssociated Press:")
        backgrounds(X[X.sum(axis=1) > 0], size)


def picture(path: Path, climbed: Climb, shares: Shares, tokens: float) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    steps = np.arange(1, len(climbed.bounds) + 1)
    axes[0].plot(steps, climbed.likelihoods / tokens, label="log-likelihood")
    axes[0].plot(steps, climbed.bounds / tokens, linestyle="--", label="bound, q of the step before")
    axes[0].set(xscale="log", xlabel="iteration of EM", ylabel="nats per token", title="EM raises a bound")
    axes[0].legend(frameon=False)
    for label, values in (("eq. 39 as printed", shares.printed), ("with P(d)", shares.proper),
                          ("formulation 2 with P(d)", shares.joint)):  # fmt: skip
        axes[1].plot(shares.lengths, values, ".", markersize=4, label=label)
    axes[1].set(ylim=(0, 1.05), xlabel="tokens of the document", ylabel="share of the background",
                title=f"One lambda ({SHARE}), three models")  # fmt: skip
    axes[1].legend(frameon=False)
    path.mkdir(parents=True, exist_ok=True)
    figure.savefig(path / "hong_2012.png", dpi=90)


def corpus(size: Size) -> Array:
    """Return counts with planted topics, a common word in every document, and documents of different lengths."""
    rng = np.random.default_rng(12)
    X = planted_corpus(size.docs, size.words, 2 * size.topics, size.tokens, seed=12)
    X[:, 0] += rng.poisson(size.tokens / 4, size.docs)
    X = rng.binomial(X.astype(int), rng.uniform(0.2, 1, (size.docs, 1))).astype(np.float64)
    return X[X.sum(axis=1) > 0][:, X.sum(axis=0) > 0]


def main(argv: Sequence[str] | None = None) -> None:
    options = arguments((__doc__ or "").splitlines()[0], argv)
    size = QUICK if options.quick else Size()
    X = corpus(size)
    ap = ap_subset(size.ap_docs, 5)
    climbed, local = ascent(X, size)
    shares, background_findings = backgrounds(X, size)
    on_real_text(None if ap is None else ap.toarray().astype(np.float64), size)
    findings = [
        tokens_and_terms(X, size), package_step(X, size), *jensen(X, size), q_function(X, size), local,
        *formulations(X, size), *background_findings, lda_under_a_uniform_prior(X, size.topics, points=20),
        tensors(size.tensors, size.tensor_iterations),
    ]  # fmt: skip
    if options.pictures is not None:
        picture(options.pictures, climbed, shares, float(X.sum()))
    conclude("hong_2012", findings, options)


if __name__ == "__main__":
    main()
