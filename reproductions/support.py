"""Shared code of the reproductions: problems, runs of the solvers, tables, verdicts and paths."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from formulas import Array, Pair, Triple, t
from polyseme.core.model import Model
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.solvers.base import FitProblem, Solver, SolverRun
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.initialize import random_topics

HERE = Path(__file__).resolve().parent
README = HERE / "README.md"
DATA = Path(os.environ.get("POLYSEME_DATA", HERE / ".." / ".." / "shared" / "data"))
AP = "counts/ap_blei.npz"

EXACT = 1e-12
"""Tolerance of identities."""


@dataclass(frozen=True)
class Finding:
    """One row of the verdict table."""

    claim: str
    paper: str
    """Statement of the paper; empty in all rows if its figures could not be checked."""
    ours: str
    verdict: str


def verdict(words: str, *checks: Any) -> str:
    """Return `words` if all checks hold, else "not reproduced"."""
    return words if all(bool(check) for check in checks) else "not reproduced"


def make_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every script; a script adds its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller problems, or one seed; no picture")
    parser.add_argument("--pictures", type=Path, help="folder for the picture (build/reproductions)")
    parser.add_argument("--readme", action="store_true", help="write tables and picture to this folder")
    return parser


def parse_options(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a run. Only `--readme` changes files of the repository, including the picture."""
    options = parser.parse_args(argv)
    if options.pictures is None and not options.quick:
        options.pictures = HERE / "pictures" if options.readme else HERE.parent / "build" / "reproductions"
    return options


def arguments(description: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a script that has no options of its own."""
    return parse_options(make_parser(description), argv)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def show(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    print(f"\n## {title}\n{table(header, rows)}", flush=True)


def conclude(name: str | None, findings: Sequence[Finding], options: argparse.Namespace) -> None:
    """Print the verdict table, and write it to README.md with --readme, or else compare it with the table there.

    A full run whose verdicts differ from README.md ends with an error. Other differences are only listed, because they
    can result from rounding on another instruction set. Without a name (data of the user), the table is only printed.
    """
    if any(f.paper for f in findings):
        header = ("claim", "the paper", "ours", "verdict")
        text = table(header, [(f.claim, f.paper, f.ours, f.verdict) for f in findings])
    else:
        text = table(("comparison", "ours", "in our runs"), [(f.claim, f.ours, f.verdict) for f in findings])
    print(f"\n## Verdicts\n{text}\n", flush=True)
    if name is not None and options.readme:
        write_section(name, text)
    elif name is not None:
        print(_compare(_rows(section(name)), _rows(text), options.quick), flush=True)


def _compare(recorded: dict[str, list[str]], found: dict[str, list[str]], quick: bool) -> str:
    other = [claim for claim in {**recorded, **found} if recorded.get(claim, [])[-1:] != found.get(claim, [])[-1:]]
    if other and not quick:
        raise SystemExit(f"README.md has another verdict on: {'; '.join(other)}.")
    if other:
        return f"This short form has other verdicts than README.md on: {'; '.join(other)}."
    moved = [] if quick else [claim for claim in found if found[claim] != recorded[claim]]
    if moved:
        return f"README.md has these verdicts, and other figures for: {'; '.join(moved)}."
    return "README.md has these verdicts." if quick else "README.md has this table."


def _rows(markdown: str) -> dict[str, list[str]]:
    """Return {claim: other cells} of a verdict table."""
    rows = [line.strip("| ").split(" | ") for line in markdown.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def section(name: str) -> str:
    """Return the text between the marks of a name in README.md."""
    return _parts(name)[1]


def write_section(name: str, text: str) -> None:
    """Write text between the marks of a name in README.md."""
    before, _, after = _parts(name)
    README.write_text(before + text + after, encoding="utf-8")


def _parts(name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, rest = README.read_text(encoding="utf-8").split(begin)
    text, after = rest.split(end)
    return before + begin, text, end + after


def few(value: float) -> str:
    """Return a number with two digits."""
    return "0" if value == 0 else f"{value:.1e}"


def error(actual: Array, expected: Array) -> float:
    """Return the largest difference, relative to the largest value."""
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def distance(P: Array, Q: Array) -> Array:
    """Return the total variation between distributions over (d, w): half the sum of absolute differences."""
    return np.asarray(np.abs(P - Q).sum(axis=(-1, -2)) / 2)


# Problems. Stacks have the orientation of the papers, words x documents, and sum to one.

KINDS = ("noise", "sparse counts", "planted topics")


def problems(kind: str, n: int, n_words: int, n_docs: int, K: int, seed: int) -> Array:
    """Return a stack of n problems: uniform noise, sparse counts without structure, or counts drawn from K topics."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    shape = (n, n_words, n_docs)
    if kind == "noise":
        X = rng.random(shape)
    elif kind == "sparse counts":
        X = rng.integers(1, 10, shape) * (rng.random(shape) < 0.3)
    else:
        topics, weights = rng.dirichlet(np.full(n_words, 0.1), (n, K)), rng.dirichlet(np.full(K, 0.2), (n, n_docs))
        X = rng.poisson(100 * t(weights @ topics))
    return X / X.sum(axis=(-1, -2), keepdims=True)


def random_triple(n: int, n_words: int, n_docs: int, K: int, seed: int) -> Triple:
    """Return a stack of n starts for `problems`."""
    rng = np.random.default_rng([seed, 99])
    C, H = t(rng.dirichlet(np.ones(n_words), (n, K))), t(rng.dirichlet(np.ones(n_docs), (n, K)))
    return Triple(C, rng.dirichlet(np.full(K, 5.0), n), H)


def planted_corpus(n_docs: int, n_words: int, K: int, tokens: int, seed: int) -> Array:
    """Return counts (documents x words) drawn from K sparse topics, a few of them in each document."""
    rng = np.random.default_rng(seed)
    topics, weights = rng.dirichlet(np.full(n_words, 0.05), K), rng.dirichlet(np.full(K, 0.1), n_docs)
    return np.array([rng.multinomial(tokens, p) for p in weights @ topics], dtype=np.float64)


def ap_subset(n_docs: int, least: int) -> sp.csr_array | None:
    """Return the first documents of AP and the words of at least `least` of them, or None without the file."""
    path = DATA / AP
    if not path.is_file():
        print(f"\nskipped: Associated Press, there is no {path} (set POLYSEME_DATA to the data folder)")
        return None
    X = sp.csr_array(sp.load_npz(path))[:n_docs]
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    return sp.csr_array(X[:, np.flatnonzero(frequency >= least)])


# Runs of the solvers of the package, on counts documents x words.


def as_corpus(X: Any) -> MemoryCorpus:
    return MemoryCorpus(as_counts(sp.csr_array(X), np.dtype(np.float64)))


def random_start(corpus: MemoryCorpus, K: int, seed: int) -> tuple[Array, Array]:
    """Return uniform theta (documents x K) and the random phi (words x K) of the package."""
    phi = random_topics(corpus, K, np.random.default_rng(seed))
    return np.full((corpus.counts.n_docs, K), 1.0 / K), phi


def begin(solver: Solver, corpus: MemoryCorpus, start: tuple[Array, Array], model: Model | None = None) -> SolverRun:
    """Return a run from theta (documents x K) and phi (words x K), of plain PLSA or of a given model."""
    theta, phi = start
    model = model or Model(phi.shape[1])
    width = model.n_columns
    return solver.begin(FitProblem(model, corpus), padded(theta, np.float64, width), padded(phi, np.float64, width))


def run_solver(solver: Solver, corpus: MemoryCorpus, start: tuple[Array, Array], iterations: int) -> SolverRun:
    """Run a solver for a number of iterations, or until no gain is possible."""
    run = begin(solver, corpus, start)
    for _ in range(iterations):
        run.advance()
        if run.exhausted:
            break
    return run


def point(run: SolverRun) -> tuple[Array, Array]:
    """Return theta and phi (words x K) of a run without the padding."""
    K = run.model.n_topics
    return run.theta[:, :K], run.phi[:, :K]


def joint(corpus: MemoryCorpus, theta: Array, phi: Array) -> Array:
    """Return P(d,w) with P(d) = n_d / N, documents x words."""
    return (theta * (corpus.totals / corpus.tokens)[:, np.newaxis]) @ phi.T


def asymmetric(pair: Pair) -> tuple[Array, Array]:
    """Return theta = P(z|d) and phi = P(w|z) for factors F (words x K) and G (documents x K)."""
    scale = pair.F.sum(axis=0)
    theta = pair.G * scale
    mass = theta.sum(axis=1, keepdims=True)  # zero for an empty document
    return theta / np.where(mass > 0, mass, 1), pair.F / np.where(scale > 0, scale, 1)


def polished(corpus: MemoryCorpus, start: tuple[Array, Array], iterations: int) -> tuple[Array, Array]:
    """Return the optimum that plain coordinate ascent (no extrapolation) reaches from a point."""
    run = begin(SCD(extrapolate=False), corpus, start)
    for _ in range(iterations):
        run.advance()
        if run.exhausted or run.report.residual <= 1e-10:
            break
    return point(run)
