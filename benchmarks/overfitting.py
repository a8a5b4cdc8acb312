"""Overfitting of plain EM and tempered EM: completion perplexity of held-out documents by iteration.

Plain EM ends when re-optimizing can gain at most 0.01 nats per token, or after --most iterations. Tempered EM follows
Hofmann's schedule (`HeldOutTempered`): a tenth of the training tokens is held out; beta is lowered when five iterations
have not made them more probable by 1e-4 nats, and the fit ends when a lower beta does not help either. A fifth of the
documents is not used by either fit. Both are scored on the held-out halves of these documents with the same smoothing
(0.01), also during the fits.

    python benchmarks/overfitting.py [--data ap newsgroups] [--k 64 128] [--most 500] [--json FILE] [--picture FILE]
    python benchmarks/overfitting.py --from FILE... --picture FILE      draw the results of earlier calls
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from common import AP, NEWSGROUPS, describe_machine, load_counts, report_figure
from polyseme.core.fold_in import fold_in
from polyseme.core.model import Model
from polyseme.core.shard import sparse_counts, split_tokens
from polyseme.data.corpus import MemoryCorpus
from polyseme.selection.cross_validation import scores_of_probabilities
from polyseme.solvers import HeldOutTempered
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import FitProblem
from polyseme.solvers.initialize import named_start
from polyseme.utils import effective_threads

DATA = {"ap": ("Associated Press", AP), "newsgroups": ("20 Newsgroups", NEWSGROUPS)}
SMOOTHING, TOL = 0.01, 1e-2
SCORED_ITERATIONS = [1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 500, 750, 1000]
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "overfitting.png"


class Evaluator:
    """Computes the completion perplexity of the documents that no fit uses."""

    def __init__(self, test: Any, corpus: MemoryCorpus) -> None:
        counts = sparse_counts(test, np.dtype(np.float32))
        self._observed, self._scored = (counts.with_values(part) for part in split_tokens(counts, 0))
        self._unigram, self._threads = corpus.unigram, corpus.n_threads

    def __call__(self, run: Any) -> float:
        topics = np.ascontiguousarray(run.phi[:, : run.model.n_topics].T)
        folded = fold_in(run.model, self._observed, topics, None, n_threads=self._threads)
        operands = run.model.token_operands(folded.doc_topic, topics, folded.background)
        p = self._scored.products(*operands, n_threads=self._threads)
        return scores_of_probabilities("completion", self._scored, p, self._unigram, SMOOTHING).perplexity

    def unigram(self) -> float:
        p = self._unigram[self._scored.indices]
        return scores_of_probabilities("completion", self._scored, p, self._unigram, SMOOTHING).perplexity


def evaluate(name: str, n_topics: int, most: int) -> dict[str, Any]:
    """Run both fits and return their curves."""
    X = load_counts(DATA[name][1])
    order = np.random.default_rng(0).permutation(X.shape[0])
    held_out = order[: X.shape[0] // 5]
    training = np.setdiff1d(order, held_out)
    corpus = MemoryCorpus(sparse_counts(X[training], np.dtype(np.float32)), None, effective_threads(None))
    evaluator = Evaluator(X[np.sort(held_out)], corpus)
    theta, phi = named_start("random", corpus, Model(n_topics), np.random.default_rng(0))
    result: dict[str, Any] = {"data": name, "k": n_topics, "unigram": evaluator.unigram()}
    for label, solver in (("tempered", HeldOutTempered()), ("plain", EM())):
        run = solver.begin(FitProblem(Model(n_topics), corpus), theta, phi)
        curve: list[tuple[int, float]] = []
        for iteration in range(1, most + 1):
            run.advance()
            done = iteration == most or run.exhausted or run.report.residual <= TOL
            if iteration in SCORED_ITERATIONS or done:
                curve.append((iteration, evaluator(run)))
            if done:
                break
        ended = "by itself" if iteration < most else "cut"
        result[label] = {"curve": curve, "end": curve[-1], "ended": ended, "beta": run.model.temperature}
        print(f"{name} K={n_topics} {label} ({ended}): {[(i, round(p, 1)) for i, p in curve]}", flush=True)
    return result


def print_table(results: list[dict[str, Any]]) -> None:
    print("| data | K | unigram | plain EM: best on the way | plain EM, at the end | tempered EM by held-out words |")
    print("|---|---|---|---|---|---|")
    for result in results:
        best = min(result["plain"]["curve"], key=lambda point: point[1])
        end, tempered = result["plain"]["end"], result["tempered"]
        print(
            f"| {DATA[result['data']][0]} | {result['k']} | {result['unigram']:.0f} "
            f"| {best[1]:.0f} (iteration {best[0]}) | {end[1]:.0f} ({end[0]} iterations) "
            f"| {tempered['end'][1]:.0f} ({tempered['end'][0]} iterations, beta {tempered['beta']:.2f}, "
            f"ended {tempered['ended']}) |"
        )
        what = f"held-out perplexity, {DATA[result['data']][0]}, K = {result['k']}: tempered EM, plain EM"
        report_figure(what, f"{tempered['end'][1]:.0f}, {end[1]:.0f}", "less")


def draw(results: list[dict[str, Any]], picture: Path) -> None:
    from matplotlib.figure import Figure

    columns = min(2, len(results))
    rows = -(-len(results) // columns)
    canvas = Figure(figsize=(4.5 * columns, 3.4 * rows), layout="constrained")
    axes = canvas.subplots(rows, columns, squeeze=False).ravel()
    for ax, result in zip(axes, results, strict=False):
        for label, color, text in (
            ("plain", "tab:red", "plain EM"),
            ("tempered", "tab:blue", "tempered EM by held-out words"),
        ):
            ax.plot(
                *zip(*result[label]["curve"], strict=True), "o-", color=color, markersize=3, linewidth=1, label=text
            )
        ax.plot(*result["tempered"]["end"], "*", color="tab:blue", markersize=14)
        ax.axhline(result["unigram"], color="gray", linestyle=":", label="unigram")
        ax.set_xscale("log")
        ax.set_title(f"{DATA[result['data']][0]}, {result['k']} topics", fontsize=10)
        ax.set_xlabel("iteration")
        ax.set_ylabel("completion perplexity")
    axes[0].legend(fontsize=8)
    for ax in axes[len(results) :]:
        ax.set_axis_off()
    picture.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(picture, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--k", nargs="+", type=int, default=[64, 128])
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--from", nargs="+", type=Path, dest="earlier", default=[])
    parser.add_argument("--picture", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    if arguments.earlier:
        results = [result for file in arguments.earlier for result in json.loads(file.read_text())]
    else:
        describe_machine()
        results = [evaluate(name, n_topics, arguments.most) for name in arguments.data for n_topics in arguments.k]
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(results))
    print_table(results)
    if arguments.json is None:
        draw(results, arguments.picture)


if __name__ == "__main__":
    main()
