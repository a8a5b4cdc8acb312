"""Losses of NMF compared with scikit-learn: seconds of an iteration, and the loss after the same number of iterations;
folding in with an entropic prior.

    python benchmarks/losses.py [--rounds 5] [--k 50] [--quick]

Iterations of polyseme and of scikit-learn alternate in one process, and medians are compared; only ratios within a run
are meaningful. The time of an iteration of scikit-learn is the difference of a longer and a shorter fit, without the
start; tol=0 disables its test of convergence. Both have the same data, type and start.

- Kullback-Leibler on 20 Newsgroups: EM against NMF(solver="mu").
- Squared loss on 20 Newsgroups: coordinate descent against NMF(solver="cd") and "mu".
- Itakura-Saito on a spectrogram of a trumpet, plus 1e-3: majorization-minimization against NMF(solver="mu").
- The other losses: seconds of an iteration, without a peer.
- Losses after 100 iterations from five common starts: three losses on the trumpet; Kullback-Leibler, as NMF fits it by
  default, also on faces, a scene, counts of words and three synthetic tables. --losses runs this part only.
- Fits with default settings from ten random starts, on eight data sets: the loss of beta divergences over that of
  NMF(solver="mu", init="random") of scikit-learn; chi-square over its own long fit (tol = 1e-7, at most 5,000
  iterations); the absolute loss over the absolute error of the squared fit. --defaults runs this part only.
- Folding in 20 Newsgroups with an Entropic prior against folding in without a prior (CPU seconds). --folding-in runs
  this part only.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
from sklearn.decomposition import NMF as SklearnNMF

from common import (
    DATA,
    NEWSGROUPS,
    THREADS,
    describe_machine,
    format_quantity,
    load_counts,
    report_figure,
    report_ratio,
    require_file,
    time_call,
)
from polyseme import NMF, PLSA
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.model import Model
from polyseme.core.shard import as_counts, sparse_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.estimators.nmf import MULTIPLICATIVE_STEPS
from polyseme.kernels import padded
from polyseme.losses import KULLBACK_LEIBLER, LOSSES, Beta
from polyseme.losses.base import Loss
from polyseme.priors import Entropic
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import Auto, FitProblem, Solver

warnings.filterwarnings("ignore")
_SETTLE = 0.1
"""Seconds after which threads of BLAS, which wait in a loop for more work, have left the cores."""
TRUMPET = DATA / "nontext" / "audio_trumpet.npz"


def start_of(X: Any, K: int, dtype: type, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return W and H, with the scale of the data."""
    rng = np.random.default_rng(seed)
    scale = np.sqrt(X.mean() / K)
    return tuple((scale * rng.uniform(0.5, 1.5, shape)).astype(dtype) for shape in ((X.shape[0], K), (K, X.shape[1])))


def begin(X: Any, K: int, loss: Loss, dtype: type, solver: Solver | None = None, seed: int = 0) -> Any:
    """Return a run of a solver (None: the one that `auto` chooses) at the common start."""
    corpus = MemoryCorpus(as_counts(X, np.dtype(dtype)), None, THREADS)
    W, H = start_of(X, K, dtype, seed)
    if loss.is_likelihood:
        theta = W * H.sum(axis=1)
        factors = theta / theta.sum(axis=1, keepdims=True), H / H.sum(axis=1, keepdims=True)
        problem = FitProblem(Model(K), corpus)
    else:
        factors, problem = (W, H), FitProblem(Model(K, loss=loss, free_scale=True), corpus)
    chosen = (solver or Auto(multiplicative_steps=MULTIPLICATIVE_STEPS)).choose(problem)
    return chosen.begin(problem, padded(factors[0], dtype), padded(factors[1].T, dtype))


def their_fit(
    X: Any, K: int, beta: float, solver: str, dtype: type, iterations: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return W and H of scikit-learn after some iterations from the common start."""
    W, H = start_of(X, K, dtype, seed)
    model = SklearnNMF(K, init="custom", solver=solver, beta_loss=beta, max_iter=iterations, tol=0)
    return model.fit_transform(X, W=W, H=H), model.components_


def their_seconds(X: Any, K: int, beta: float, solver: str, dtype: type, iterations: int) -> Callable[[], float]:
    """Return a function that measures one iteration of scikit-learn."""

    def seconds() -> float:
        long, short = (time_call(lambda n=n: their_fit(X, K, beta, solver, dtype, n)) for n in (1 + iterations, 1))
        return (long - short) / iterations

    return seconds


def compare_sweeps(
    name: str, X: Any, K: int, loss: Beta, dtype: type, args: Any, ours: Solver | None, peers: tuple[str, ...]
) -> None:
    """Print the ratio of the medians of alternating iterations."""
    run = begin(X, K, loss, dtype, ours)
    run.advance()
    their = {peer: their_seconds(X, K, loss.beta, peer, dtype, args.iterations) for peer in peers}
    our_seconds: list[float] = []
    theirs: dict[str, list[float]] = {peer: [] for peer in peers}
    for _ in range(args.rounds):
        time.sleep(_SETTLE)
        our_seconds.append(median(time_call(run.advance) for _ in range(3)))
        for peer in peers:
            theirs[peer].append(their[peer]())
    for peer in peers:
        what = f"{name}: one iteration, K = {K}, {np.dtype(dtype).name}"
        report_ratio(what, f"scikit-learn NMF {peer}", median(our_seconds), median(theirs[peer]))


def compare_losses(name: str, X: np.ndarray, K: int, loss: Beta, iterations: int, seeds: int) -> None:
    """Print the median losses of several common starts after the same number of iterations, and the worst ratio."""
    our_losses, their_losses = [], []
    for seed in range(seeds):
        run = begin(X, K, loss, np.float64, seed=seed)
        for _ in range(iterations):
            if not run.exhausted:
                run.advance()
        if loss.is_likelihood:
            Q = X.sum(axis=1, keepdims=True) * (run.theta @ run.phi.T)
        else:
            Q = run.point.docs @ run.point.words.T
        theirs = np.matmul(*their_fit(X, K, loss.beta, "mu", np.float64, iterations, seed))
        for losses, product in ((our_losses, Q), (their_losses, theirs)):
            losses.append(loss.values(X, np.maximum(product, 1e-300)).sum())
    what = f"{name}: loss after {iterations} iterations, K = {K}, median of {seeds} starts"
    report_ratio(what, "scikit-learn NMF mu", median(our_losses), median(their_losses), "")
    ratios = sorted(ours / theirs for ours, theirs in zip(our_losses, their_losses, strict=True))
    report_figure(f"{name}: our loss over that of scikit-learn, each start", " ".join(f"{r:.4f}" for r in ratios))


def dense_data() -> dict[str, np.ndarray]:
    """Return data of several kinds for NMF with the Kullback-Leibler loss: files (large ones are thinned out) and
    tables drawn from known factors.
    """
    faces, scene = (np.load(require_file(DATA / "nontext" / name)) for name in ("olivetti.npz", "hsi_samson.npz"))
    news = load_counts(NEWSGROUPS).tocsr()[::20].astype(np.float64)
    news = news[:, (news > 0).sum(axis=0) >= 5]
    rng = np.random.default_rng(7)
    weights = rng.gamma(0.2, 1.0, (500, 12))
    weights *= 60 / weights.sum(axis=1, keepdims=True)
    sounds, notes = np.arange(400.0), np.arange(300.0)
    spectra, onsets = np.zeros((12, 400)), np.zeros((300, 12))
    for k in range(12):
        pitch, slope = rng.uniform(6, 40), rng.uniform(0.5, 2)
        for harmonic in range(1, 30):
            spectra[k] += np.exp(-0.5 * ((sounds - harmonic * pitch) / 1.2) ** 2) / harmonic**slope
        for start in rng.integers(0, 300, 4):
            after = np.maximum(notes - start, 0)
            onsets[:, k] += np.where(notes >= start, np.exp(-after / rng.uniform(10, 60)), 0) * rng.uniform(0.2, 3)
    bands = np.linspace(0, 1, 200)
    bumps = np.stack([np.exp(-0.5 * ((bands - center) / 0.08) ** 2) for center in np.linspace(0.05, 0.95, 8)])
    return {
        "Olivetti faces": _rows_of(faces, 400)[::2, ::4],
        "Samson": _rows_of(scene, 9025)[::20],
        "newsgroups": np.asarray(news[news.sum(axis=1) > 0].todense()),
        "synthetic counts": rng.poisson(weights @ rng.dirichlet(np.full(700, 0.05), 12)).astype(np.float64),
        "synthetic spectrogram": onsets @ spectra * rng.gamma(1.0, 1.0, (300, 400)) + 1e-4,
        "synthetic smooth bands": rng.dirichlet(np.full(8, 0.7), 400) @ bumps * rng.uniform(0.97, 1.03, (400, 200)),
    }


def default_data() -> dict[str, np.ndarray]:
    """Return the eight tables of the comparison with default settings; those from files are thinned out."""
    rng = np.random.default_rng(0)
    factors = rng.gamma(0.5, 1.0, (200, 6)) @ rng.gamma(0.5, 1.0, (6, 60))
    rates = 3 * rng.gamma(0.3, 1.0, (200, 6)) @ rng.gamma(0.3, 1.0, (6, 60))
    noisy = rng.uniform(0, 1, (200, 6)) @ rng.uniform(0, 1, (6, 60)) + 0.05 * rng.normal(size=(200, 60))
    files = {name: require_file(DATA / "nontext" / name) for name in ("hsi_samson.npz", "hsi_moffett.npz")}
    samson, moffett = (np.load(path)["Y"].astype(np.float64) for path in files.values())
    faces = _rows_of(np.load(require_file(DATA / "nontext" / "olivetti.npz")), 400)
    news = load_counts(NEWSGROUPS).tocsr()[::80].astype(np.float64)
    news = news[:, np.asarray((news > 0).sum(axis=0)).ravel() >= 8]
    return {
        "gamma": (factors + 0.01) * rng.gamma(2.0, 0.5, (200, 60)),
        "Poisson": rng.poisson(rates).astype(np.float64),
        "low rank": np.maximum(noisy, 1e-3),
        "Samson": np.maximum(samson[::20], 1e-6),
        "Moffett": np.maximum(moffett[::8], 1e-6),
        "trumpet": np.load(require_file(TRUMPET))["S"].astype(np.float64)[::4, ::4] + 1e-3,
        "faces": np.maximum(faces[::4, ::16], 1e-3),
        "newsgroups": np.asarray(news[np.asarray(news.sum(axis=1)).ravel() > 0].todense()),
    }


def compare_defaults(seeds: int, K: int = 10) -> None:
    """Print how fits with default settings compare with scikit-learn, with a long fit, and with the squared fit."""
    for name, data in default_data().items():
        for loss in (Beta(-0.5), Beta(0), Beta(0.5), Beta(1.5), Beta(2), Beta(3)):
            X = data + 0.01 * data.mean() if loss.needs_positive and (data == 0).any() else data
            ours, theirs = [], []
            for seed in range(seeds):
                ours.append(NMF(K, loss=loss, random_state=seed).fit(X).reconstruction_err_)
                model = SklearnNMF(K, solver="mu", beta_loss=loss.beta, init="random", random_state=seed)
                Q = model.fit_transform(X) @ model.components_
                theirs.append(loss.values(X, np.maximum(Q, 1e-12 * np.maximum(X, X.mean()))).sum())
            what = f"{name}, {loss.name}: default loss over scikit-learn mu, medians of {seeds} seeds"
            report_figure(what, f"{median(ours) / median(theirs):.3f}", "at most 1.01")
        fits = [NMF(K, loss="chi-square", random_state=seed).fit(data).reconstruction_err_ for seed in range(seeds)]
        long = NMF(K, loss="chi-square", random_state=0, tol=1e-7, max_iter=5000).fit(data).reconstruction_err_
        report_figure(f"{name}, chi-square: median default loss over a long fit", f"{median(fits) / long:.3f}")
        ratios = []
        for seed in range(seeds):
            squared = NMF(K, loss="squared", random_state=seed).fit(data)
            error = np.abs(data - squared.doc_factor_ @ squared.components_).sum()
            ratios.append(NMF(K, loss="absolute", random_state=seed).fit(data).reconstruction_err_ / error)
        report_figure(f"{name}, absolute: largest loss over that of the squared fit", f"{max(ratios):.3f}", "at most 1")


def _rows_of(file: Any, n_rows: int) -> np.ndarray:
    """Return the largest array of a file as a table with `n_rows` rows, without negative numbers."""
    array = max((file[name] for name in file.files), key=lambda one: one.size).astype(np.float64)
    table = array.reshape(n_rows, -1) if len(array) == n_rows or array.ndim == 3 else array.T
    return np.maximum(table, 0)


def compare_folding_in(X: Any, K: int, rounds: int) -> None:
    """Print the ratio of CPU seconds of folding in with and without an entropic prior, alternating."""
    fitted = PLSA(K, random_state=0, max_iter=20).fit(X)._fitted
    counts = sparse_counts(X, np.dtype(np.float32))

    def seconds(prior: Entropic | None) -> float:
        topics = replace(fitted, inference=MaximumLikelihood(prior=prior))
        started = time.process_time()
        topics.fold_in(counts, n_threads=THREADS)
        return time.process_time() - started

    for beta in (-2.0, 0.5, 5.0, 60.0):
        pairs = [(seconds(Entropic(beta)), seconds(None)) for _ in range(rounds)]
        slower, plain = (median(column) for column in zip(*pairs, strict=True))
        what = f"newsgroups: folding in with Entropic({beta:g}) over folding in without a prior, K = {K}, CPU seconds"
        report_figure(what, f"{slower / plain:.1f} times ({format_quantity(slower, 's')})", "at most 20")


def compare_all_losses(S: np.ndarray, quick: bool) -> None:
    """Print the losses after the same number of iterations: of three losses on the trumpet, of one on all data."""
    iterations, seeds = (20, 1) if quick else (100, 5)
    for loss in (Beta(0), Beta(1), Beta(2)):
        compare_losses(f"trumpet, {loss.name}", S, 10, loss, iterations, seeds)
    for name, X in dense_data().items():
        compare_losses(f"{name}, {KULLBACK_LEIBLER.name}", X, 10, KULLBACK_LEIBLER, iterations, seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=5, help="iterations of scikit-learn in one measurement")
    parser.add_argument("--k", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--quick", action="store_true", help="two rounds, the first K only")
    parser.add_argument("--losses", action="store_true", help="only the losses after the same number of iterations")
    parser.add_argument("--defaults", action="store_true", help="only the fits with default settings")
    parser.add_argument("--folding-in", action="store_true", help="only the part on folding in")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.iterations, args.k = 2, 2, args.k[:1]
    describe_machine()
    if args.defaults:
        compare_defaults(2 if args.quick else 10)
        return
    S = np.load(require_file(TRUMPET))["S"].astype(np.float64) + 1e-3
    if args.losses:
        compare_all_losses(S, args.quick)
        return
    X = load_counts(NEWSGROUPS).astype(np.float32)
    compare_folding_in(X, args.k[0], args.rounds)
    if args.folding_in:
        return
    for K in args.k:
        compare_sweeps("newsgroups, Kullback-Leibler", X, K, Beta(1), np.float32, args, EM(), ("mu",))
        compare_sweeps("newsgroups, squared", X, K, Beta(2), np.float32, args, None, ("cd", "mu"))
        for name in ("chi-square", "absolute"):
            run = begin(X, K, LOSSES[name], np.float32)
            run.advance()
            seconds = format_quantity(median(time_call(run.advance) for _ in range(3)), "s")
            report_figure(f"newsgroups, {name}: one iteration, K = {K}, float32", seconds)
    for K in (10, 50)[: 1 if args.quick else 2]:
        for dtype in (np.float32, np.float64):
            args.iterations = 20
            compare_sweeps("trumpet, Itakura-Saito", S.astype(dtype), K, Beta(0), dtype, args, None, ("mu",))
        compare_sweeps("trumpet, beta = 1.5", S, K, Beta(1.5), np.float64, args, None, ("mu",))
    compare_all_losses(S, args.quick)
    compare_defaults(2 if args.quick else 10)


if __name__ == "__main__":
    main()
