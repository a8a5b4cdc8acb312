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
from polyseme.core.shard import counts_of
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.solvers import SCD, Solver
from polyseme.solvers.base import SolverRun
from polyseme.solvers.initialize import random_topics

HERE = Path(__file__).resolve().parent
README = HERE / "README.md"
DATA = Path(os.environ.get("POLYSEME_DATA", HERE / ".." / ".." / "shared" / "data"))
AP = "counts/ap_blei.npz"

EXACT = 1e-12
"""an identity holds if it holds to this"""


@dataclass(frozen=True)
class Finding:
    """One row of the verdict table."""

    claim: str
    paper: str
    """what the paper says; empty in all rows where its figures could not be checked"""
    ours: str
    verdict: str


def verdict(words: str, *checks: Any) -> str:
    """`words` if all checks hold, else that the run does not bear them out."""
    return words if all(bool(check) for check in checks) else "not reproduced"


def parser_of(description: str) -> argparse.ArgumentParser:
    """The options that every script has; a script adds its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller problems, or one seed; no picture")
    parser.add_argument("--pictures", type=Path, help="folder for the picture (build/reproductions)")
    parser.add_argument("--readme", action="store_true", help="write tables and picture into this folder, too")
    return parser


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a run. Only `--readme` changes files of the repository, by its picture too."""
    options = parser.parse_args(argv)
    if options.pictures is None and not options.quick:
        options.pictures = HERE / "pictures" if options.readme else HERE.parent / "build" / "reproductions"
    return options


def arguments(description: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The same, for a script without options of its own."""
    return parsed(parser_of(description), argv)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def show(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    print(f"\n## {title}\n{table(header, rows)}", flush=True)


def conclude(name: str | None, findings: Sequence[Finding], options: argparse.Namespace) -> None:
    """Prints the verdict table; writes it into README.md if asked to, or else compares it with the one there.

    A full run with another verdict than README.md ends with an error; other figures are named only, since on another
    instruction set rounding may change them. Without a name (data of the user's own) it is printed alone.
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
        print(_compared(_rows(section(name)), _rows(text), options.quick), flush=True)


def _compared(recorded: dict[str, list[str]], found: dict[str, list[str]], quick: bool) -> str:
    other = [claim for claim in {**recorded, **found} if recorded.get(claim, [])[-1:] != found.get(claim, [])[-1:]]
    if other and not quick:
        raise SystemExit(f"README.md has another verdict on: {'; '.join(other)}.")
    if other:
        return f"In this short form other verdicts than in README.md on: {'; '.join(other)}."
    moved = [] if quick else [claim for claim in found if found[claim] != recorded[claim]]
    if moved:
        return f"README.md has these verdicts, and other figures for: {'; '.join(moved)}."
    return "README.md has these verdicts." if quick else "README.md has this table."


def _rows(markdown: str) -> dict[str, list[str]]:
    """{claim: the other cells} of a verdict table."""
    rows = [line.strip("| ").split(" | ") for line in markdown.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def section(name: str) -> str:
    """What stands between the marks of a name in README.md."""
    return _parts(name)[1]


def write_section(name: str, text: str) -> None:
    """Puts text between the marks of a name in README.md."""
    before, _, after = _parts(name)
    README.write_text(before + text + after, encoding="utf-8")


def _parts(name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, rest = README.read_text(encoding="utf-8").split(begin)
    text, after = rest.split(end)
    return before + begin, text, end + after


def few(value: float) -> str:
    """A number in two digits, as errors are printed."""
    return "0" if value == 0 else f"{value:.1e}"


def error(actual: Array, expected: Array) -> float:
    """The largest difference, relative to the largest number."""
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def distance(P: Array, Q: Array) -> Array:
    """Total variation between distributions over (d, w): half the sum of absolute differences."""
    return np.asarray(np.abs(P - Q).sum(axis=(-1, -2)) / 2)


# Problems. Stacks are in the papers' orientation, words x documents, and sum to one.

KINDS = ("noise", "sparse counts", "planted topics")


def problems(kind: str, n: int, n_words: int, n_docs: int, K: int, seed: int) -> Array:
    """A stack of n problems: uniform noise, sparse counts without structure, or counts drawn from K topics."""
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
    """A stack of n starts for `problems`."""
    rng = np.random.default_rng([seed, 99])
    C, H = t(rng.dirichlet(np.ones(n_words), (n, K))), t(rng.dirichlet(np.ones(n_docs), (n, K)))
    return Triple(C, rng.dirichlet(np.full(K, 5.0), n), H)


def planted_corpus(n_docs: int, n_words: int, K: int, tokens: int, seed: int) -> Array:
    """Counts (documents x words) drawn from K sparse topics, a few of them in each document."""
    rng = np.random.default_rng(seed)
    topics, weights = rng.dirichlet(np.full(n_words, 0.05), K), rng.dirichlet(np.full(K, 0.1), n_docs)
    return np.array([rng.multinomial(tokens, p) for p in weights @ topics], dtype=np.float64)


def ap_subset(n_docs: int, least: int) -> sp.csr_array | None:
    """The first documents of the Associated Press corpus, words in at least `least` of them; None without the file."""
    path = DATA / AP
    if not path.is_file():
        print(f"\nskipped: Associated Press, there is no {path} (set POLYSEME_DATA to the data folder)")
        return None
    X = sp.csr_array(sp.load_npz(path))[:n_docs]
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    return sp.csr_array(X[:, np.flatnonzero(frequency >= least)])


# Runs of the package's solvers, on counts documents x words.


def corpus_of(X: Any) -> MemoryCorpus:
    return MemoryCorpus(counts_of(sp.csr_array(X), np.dtype(np.float64)))


def random_start(source: MemoryCorpus, K: int, seed: int) -> tuple[Array, Array]:
    """theta (documents x K) uniform, phi (words x K) around the unigram: the package's own start."""
    phi = random_topics(source, K, np.random.default_rng(seed))
    return np.full((source.counts.n_docs, K), 1.0 / K), phi


def begin(solver: Solver, source: MemoryCorpus, start: tuple[Array, Array], model: Model | None = None) -> SolverRun:
    """A run from theta (documents x K) and phi (words x K); plain PLSA unless a model is given."""
    theta, phi = start
    model = model or Model(phi.shape[1])
    width = model.n_columns
    return solver.begin(model, source, padded(theta, np.float64, width), padded(phi, np.float64, width))


def fitted(solver: Solver, source: MemoryCorpus, start: tuple[Array, Array], iterations: int) -> SolverRun:
    run = begin(solver, source, start)
    for _ in range(iterations):
        run.advance()
        if run.exhausted:
            break
    return run


def point(run: SolverRun) -> tuple[Array, Array]:
    """theta and phi (words x K) of a run, without the padding: a start for another."""
    K = run.model.n_topics
    return run.theta[:, :K], run.phi[:, :K]


def joint(source: MemoryCorpus, theta: Array, phi: Array) -> Array:
    """P(d,w) with P(d) = n_d / N, documents x words."""
    return (theta * (source.totals / source.tokens)[:, np.newaxis]) @ phi.T


def asymmetric(pair: Pair) -> tuple[Array, Array]:
    """theta = P(z|d) and phi = P(w|z) of factors F (words x K) and G (documents x K)."""
    scale = pair.F.sum(axis=0)
    theta = pair.G * scale
    mass = theta.sum(axis=1, keepdims=True)  # zero for an empty document
    return theta / np.where(mass > 0, mass, 1), pair.F / np.where(scale > 0, scale, 1)


def polished(source: MemoryCorpus, start: tuple[Array, Array], iterations: int) -> tuple[Array, Array]:
    """Where plain coordinate ascent (no extrapolation) leads from a point: the optimum that it lies below."""
    run = begin(SCD(extrapolate=False), source, start)
    for _ in range(iterations):
        run.advance()
        if run.exhausted or run.report.residual <= 1e-10:
            break
    return point(run)
