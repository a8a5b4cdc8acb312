"""The three algorithms of Zhang, Ding and Tang: NMF with KL divergence, normalized NMF, and PLSI.

Algorithms 1 and 3 are KL-NMF with multiplicative updates (Lee and Seung 1999), in Gauss-Seidel order: the second
factor is updated with the new first factor. As printed, both updates use the old factors, and the likelihood can
decrease.

Algorithm 2 is PLSI. It updates C = P(w|z), then S = P(z), then H = P(d|z). With R = X / (C S H') recomputed before each
line:
    C <- C o (R H) / diag(C' R H),   S <- S diag(C' R H),   H <- H o (R' C) / diag(C' R H).
As printed, the denominator of H uses the old C, and its columns do not sum to one.

References
----------
Z.-Y. Zhang, C. Ding and J. Tang. Note on algorithm differences between nonnegative matrix factorization and
    probabilistic latent semantic indexing.
D. D. Lee and H. S. Seung. Learning the parts of objects by non-negative matrix factorization. Nature 401, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from polyseme.core.model import Report
from polyseme.data.corpus import MemoryCorpus
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, Want
from polyseme.solvers.base import FitProblem, Requirement, Solver, SolverRun
from polyseme.solvers.coordinate import (
    Unnormalized,
    column_sums,
    duality_gap,
    from_plsa,
    log_likelihood,
    poisson_objective,
)

Order = Literal["words-first", "documents-first"]
_REQUIRES = frozenset({Requirement.PLAIN_LIKELIHOOD, Requirement.IN_MEMORY})


@dataclass(frozen=True)
class MultiplicativeNMF(Solver):
    """NMF with KL divergence and multiplicative updates (Algorithm 1).

    words_wk *= sum_d v r docs_dk / sum_d v docs_dk and docs_dk *= sum_w r words_wk / sum_w words_wk, with r = x / p.

    Parameters
    ----------
    order : {"words-first", "documents-first"}, default="words-first"
        Factor that is updated first. The paper starts with the words, scikit-learn with the documents.
    """

    name: ClassVar[str] = "nmf"
    requires: ClassVar[frozenset[Requirement]] = _REQUIRES
    normalizes: ClassVar[bool] = False
    order: Order = "words-first"

    def check(self) -> None:
        if self.order not in ("words-first", "documents-first"):
            raise InputError(f"order must be 'words-first' or 'documents-first', got {self.order!r}.")

    def begin(self, problem: FitProblem, theta: Array, phi: Array) -> SolverRun:
        return MultiplicativeRun(problem, from_plsa(problem.corpus, theta, phi), self.order, self.normalizes)


@dataclass(frozen=True)
class NormalizedNMF(MultiplicativeNMF):
    """NMF with normalized columns (Algorithm 3).

    The updates of Algorithm 1, with each factor's columns normalized after its update and the scale stored as S = P(z).
    The product of the factors is that of Algorithm 1 at every iteration, because normalizing only moves scale from one
    factor to the other.

    Parameters
    ----------
    order : {"words-first", "documents-first"}, default="words-first"
        Factor that is updated first.
    """

    name: ClassVar[str] = "normalized-nmf"
    normalizes: ClassVar[bool] = True


@dataclass(frozen=True)
class PLSI(Solver):
    """PLSI (Algorithm 2): P(d,w) = sum_z P(z) P(d|z) P(w|z), the factors updated in turn and always normalized."""

    name: ClassVar[str] = "plsi"
    requires: ClassVar[frozenset[Requirement]] = _REQUIRES

    def begin(self, problem: FitProblem, theta: Array, phi: Array) -> SolverRun:
        return PLSIRun(problem, from_plsa(problem.corpus, theta, phi))


class MultiplicativeRun(SolverRun):
    """A fit by Algorithm 1, or with `normalize` by Algorithm 3."""

    _corpus: MemoryCorpus
    _word_gain = _doc_gain = float("inf")

    def __init__(self, problem: FitProblem, point: Unnormalized, order: Order, normalize: bool) -> None:
        self.model, self._corpus = problem
        self._words_first = order == "words-first"
        self._normalize = normalize
        self._evaluate(point)

    @property
    def theta(self) -> Array:
        return self.point.theta

    @property
    def phi(self) -> Array:
        return self.point.phi

    def advance(self) -> None:
        first, second = (self._new_words, self._new_docs) if self._words_first else (self._new_docs, self._new_words)
        point = first(self.point, self._sums)
        sums = self._corpus.sums(*point, Want.ROWS if self._words_first else Want.WORDS)
        self._evaluate(second(point, sums.row_sums if self._words_first else sums.word_sums))

    def _evaluate(self, point: Unnormalized) -> None:
        """Set the report at a point, and the sums for the first update of the next iteration."""
        self.point = point
        sums = self._corpus.sums(*point, Want.LOGS | (Want.WORDS if self._words_first else Want.ROWS))
        self._sums: Array = sums.word_sums if self._words_first else sums.row_sums
        log_sum = self._corpus.total_log(sums.logs)
        self.report = Report(
            poisson_objective(self._corpus, log_sum, point),
            log_likelihood(self._corpus, log_sum, point),
            self._gain(),
        )

    def _new_words(self, point: Unnormalized, sums: Array) -> Unnormalized:
        u = column_sums(point.docs, self._corpus.weights)
        self._word_gain = float(duality_gap(sums, u, point.words, self._corpus.word_totals).sum())
        return self._normalized(Unnormalized(point.docs, _scaled(point.words, sums, u)))

    def _new_docs(self, point: Unnormalized, sums: Array) -> Unnormalized:
        u = column_sums(point.words)
        self._doc_gain = self._corpus.total_log(duality_gap(sums, u, point.docs, self._corpus.totals))
        return self._normalized(Unnormalized(_scaled(point.docs, sums, u), point.words))

    def _normalized(self, point: Unnormalized) -> Unnormalized:
        """Return the point with columns of words that sum to one, if Algorithm 3 runs; docs get the scale."""
        return point.rescaled(self._corpus.n_threads) if self._normalize else point

    def _gain(self) -> float:
        """Return the duality gaps of both updates, per token."""
        return max(self._word_gain + self._doc_gain, 0.0) / self._corpus.tokens


class PLSIRun(SolverRun):
    """A fit by Algorithm 2: C (words x width), S (width) and H (documents x width).

    A document of weight v has v copies of its row of H.
    """

    _corpus: MemoryCorpus

    def __init__(self, problem: FitProblem, start: Unnormalized) -> None:
        self.model, self._corpus = problem
        scale = column_sums(start.docs, self._corpus.weights)
        self.C = start.words
        self.S = scale / self._corpus.tokens
        self.H = (start.docs / np.where(scale > 0, scale, 1)).astype(start.docs.dtype)
        self._gain = float("inf")
        self._evaluate()

    @property
    def theta(self) -> Array:
        return self._point().theta

    @property
    def phi(self) -> Array:
        return self.C

    def advance(self) -> None:
        corpus = self._corpus
        C = _columns_to_one(self.C * self._word_sums).astype(self.C.dtype)
        row_sums = corpus.sums(self._docs(self.S, self.H), C, Want.ROWS).row_sums
        S = self.S * column_sums(self.H * row_sums.astype(np.float64), corpus.weights)
        docs = self._docs(S, self.H)
        row_sums = corpus.sums(docs, C, Want.ROWS).row_sums
        gaps = duality_gap(row_sums, column_sums(C), docs, corpus.totals)
        H = _columns_to_one(self.H * row_sums.astype(np.float64), corpus.weights)
        self.C, self.S, self.H = C, S, H.astype(self.H.dtype)
        self._gain = (corpus.total_log(gaps) + self._word_gap) / corpus.tokens
        self._evaluate()

    def _docs(self, S: Floats, H: Array) -> Array:
        """Return N S_k H_dk, the documents' factor at the scale of the counts."""
        return (H * (self._corpus.tokens * S)).astype(H.dtype)

    def _point(self) -> Unnormalized:
        return Unnormalized(self._docs(self.S, self.H), self.C)

    def _evaluate(self) -> None:
        point = self._point()
        _, self._word_sums, logs = self._corpus.sums(*point, Want.WORDS | Want.LOGS)
        log_sum = self._corpus.total_log(logs)
        mass = column_sums(point.docs, self._corpus.weights)
        self._word_gap = float(duality_gap(self._word_sums, mass, self.C, self._corpus.word_totals).sum())
        self.report = Report(
            poisson_objective(self._corpus, log_sum, point),
            log_likelihood(self._corpus, log_sum, point),
            max(self._gain, 0.0),
        )


def _scaled(factor: Array, sums: Array, u: Floats) -> Array:
    """Return factor * sums / u; the column of a topic with u = 0 becomes zero."""
    inverse = np.divide(1.0, u, out=np.zeros_like(u), where=u > 0)
    return (factor * (sums * inverse)).astype(factor.dtype)


def _columns_to_one(factor: Array, weights: Floats | None = None) -> Array:
    sums = column_sums(factor, weights)
    return factor / np.where(sums > 0, sums, 1)
