"""Effects of rating and day on the topics of poliblog5k, and coverage on a planted corpus of its shape, beside topica.

    python benchmarks/effects_peers.py [--topics 20] [--resamples 100] [--repetitions 5] [--documents 5000]

topica (PyPI) has R's structural topic model and its regression of posterior draws (`estimate_effect`, 25 draws). Its
fit starts from the topics of `PLSA`, so that topics have the same numbers. The first part prints how often the signs of
both effects agree, among all topics and among those significant for both, and the rank correlation of the effects.
The planted corpora have the lengths, ratings and days of the blogs, and topics fitted to them; P(z|d) has a Dirichlet
distribution with concentration 0.1 K whose mean depends linearly on rating and day. Both fits start from the true
topics. The figure is the share of 95% intervals that contain the true coefficients. Times are seconds of CPU, one
thread.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np
import scipy.sparse as sp
from scipy.stats import norm, spearmanr

from common import DATA, can_import, describe_machine, load_counts, report_figure, report_left_out, report_ratio
from polyseme import PLSA
from polyseme.datasets import draw_tokens
from polyseme.uncertainty import effects

DRAWS = 25


def ours(X, topics, table, n_resamples: int):
    """Return coefficients of rating and day (2 x K), their errors, and seconds."""
    started = process_time()
    model = PLSA(len(topics), init=(None, topics), n_jobs=1).fit(X)
    found = effects(model, X, "~ rating + day", table, n_resamples=n_resamples, n_jobs=1).coefficients[1:]
    return found.estimate, (found.low, found.high), found.p_values, process_time() - started


def theirs(X, topics, table):
    import topica

    started = process_time()
    names = np.array([f"w{word}" for word in range(X.shape[1])])
    X = sp.csr_array(X)
    documents = [
        np.repeat(names[X.indices[a:b]], X.data[a:b].astype(int)).tolist()
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    design = np.column_stack([table["rating"], table["day"]]).astype(float)
    model = topica.STM(len(topics), init="random")
    start = topics[:, order_of(documents, names)]
    model.fit(documents, design, beta_init=(start + 1e-8) / (start + 1e-8).sum(axis=1, keepdims=True), num_threads=1)
    found = topica.stm.estimate_effect(model, design, nsims=DRAWS)
    estimate, error = coefficients(found)
    half = norm.ppf(0.975) * error
    p_values = 2 * norm.sf(np.abs(estimate / error))
    return estimate, (estimate - half, estimate + half), p_values, process_time() - started


def order_of(documents, names):
    """Return the columns of words in the order of their first occurrence, which is topica's."""
    seen = dict.fromkeys(word for document in documents for word in document)
    place = {name: number for number, name in enumerate(names.tolist())}
    return [place[word] for word in seen]


def coefficients(found):
    """Return estimates and errors of rating and day (2 x K)."""
    estimate, error = (np.array([getattr(topic, part) for topic in found]).T[1:3] for part in ("coef", "se"))
    return estimate, error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--documents", type=int, default=5000)
    arguments = parser.parse_args()
    describe_machine()
    peer = can_import("topica")
    if not peer:
        report_left_out("topica", "it is not installed")
    counts = load_counts(DATA / "counts" / "poliblog5k.npz")
    lines = (DATA / "counts" / "poliblog5k.documents.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = np.random.default_rng(0).permutation(len(lines))[: arguments.documents]
    X, lines = counts[rows], [lines[row].split("\t") for row in rows]
    X = X[:, np.asarray(X.sum(axis=0)).ravel() > 0]
    table = {
        "rating": np.array([float(line[0] == "Liberal") for line in lines]),
        "day": np.array([float(line[1]) / 366 for line in lines]),
    }
    K = arguments.topics
    model = PLSA(K, random_state=0, n_jobs=1).fit(X)
    estimate, _, p_values, seconds = ours(X, model.components_, table, arguments.resamples)
    if peer:
        other, _, other_p, other_seconds = theirs(X, model.components_.astype(float), table)
        report_ratio("effects of rating and day, poliblog5k", "topica STM", seconds, other_seconds)
        for row, name in enumerate(("rating", "day")):
            same = np.sign(estimate[row]) == np.sign(other[row])
            sure = (p_values[row] < 0.05) & (other_p[row] < 0.05)
            report_figure(f"signs of {name} that agree", f"{same.sum()} of {K}")
            report_figure(f"those significant for both, {name}", f"{(same & sure).sum()} of {sure.sum()}", "all")
            rank = spearmanr(estimate[row], other[row]).statistic
            report_figure(f"rank correlation of the effects of {name}", f"{rank:.3f}")
    slopes = np.clip(estimate, -0.04, 0.04)
    weights = np.asarray(X.sum(axis=1)).ravel()
    lengths = np.maximum(weights.astype(int), 1)
    base = np.full(K, 1 / K)
    slopes = slopes * 0.5 * (1 / K) / np.abs(slopes).max()
    slopes -= slopes.mean(axis=1, keepdims=True)
    design = np.column_stack([table["rating"], table["day"]])
    means = base + (design - design.mean(axis=0)) @ slopes
    topics = model.components_.astype(float)
    covered, spent = {"polyseme": [], "topica": []}, {"polyseme": 0.0, "topica": 0.0}
    for number in range(arguments.repetitions):
        rng = np.random.default_rng([number, 4])
        theta = rng.standard_gamma(0.1 * K * means) + 1e-300
        theta /= theta.sum(axis=1, keepdims=True)
        documents, words = draw_tokens(rng, lengths, theta, topics)
        drawn = sp.csr_array(sp.coo_array((np.ones(len(words)), (documents, words)), shape=X.shape))
        results = {"polyseme": ours(drawn, topics, table, arguments.resamples)}
        if peer:
            results["topica"] = theirs(drawn, topics, table)
        for name, (_, (low, high), _, seconds) in results.items():
            covered[name].append(((low <= slopes) & (slopes <= high)).mean(axis=1))
            spent[name] += seconds / arguments.repetitions
            shown = ", ".join(f"{share:.3f}" for share in np.mean(covered[name], axis=0))
            print(f"{name}: {number + 1} corpora, coverage of rating and day: {shown}", flush=True)
    for name, values in covered.items():
        if values:
            error = np.std([value.mean() for value in values]) / np.sqrt(len(values))
            figure = f"{np.mean(values):.3f} (standard error {error:.3f}, {len(values)} corpora)"
            report_figure(f"coverage of planted effects, {name}", figure, "0.92 to 0.98")
            report_figure(f"seconds of CPU per corpus, {name}", f"{spent[name]:.1f}")


if __name__ == "__main__":
    main()
