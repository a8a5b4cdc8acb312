"""The Python face of the compiled Dirichlet functions: the operands of variational Bayes, and their parts of the bound.

A factor with Dirichlet parameters g (rows g_i) enters the kernel as exp(E log f) with E log f_ik = psi(g_ik) -
psi(sum_k g_ik), scaled by the largest number of a document's or a word's K: the scale cancels in the expected counts,
and without it float32 would underflow from K = 100 on. The logs of the scales are part of the bound. An operand is at
least 1e-18 of its largest (float64: 1e-200), so that a word is never without a topic.

The parameters of a Dirichlet prior that variational Bayes integrates over: given, or learned from the fit.

Unlike the members of this room they are no part of an M-step: q(theta_d) is Dirichlet with parameters alpha + expected
counts. Learning them is Minka's maximum likelihood of a Dirichlet ("Estimating a Dirichlet distribution", 2000), with
E log theta in the place of log theta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, polygamma, psi

from polyseme import _kernels
from polyseme.kernels import Array, Floats, SparseCounts, aligned_empty, check_operands


class DocumentSide(NamedTuple):
    """q(theta_d) = Dirichlet(alpha + n_d) of every document, as the kernel and the bound need it."""

    operand: Array
    """exp(E log theta), scaled (documents x width)"""
    terms: Floats
    """what each document adds to the bound, beside sum x log q of the scaled operands"""
    log_sums: Floats
    """sum_d weight_d E log theta_dk (K numbers)"""
    steps: npt.NDArray[np.int32]
    """steps taken by each document; negative if the limit came first"""


class WordSide(NamedTuple):
    """q(phi_k) = Dirichlet(lambda_k) of every topic, as the kernel and the bound need it."""

    operand: Array
    """exp(E log phi), scaled (words x width)"""
    scales: Floats
    """the log of each word's scale"""
    terms: Floats
    """sum_k [lgamma(lambda_kw) + (eta_w - lambda_kw) E log phi_kw] of each word: see topics_term"""
    log_sums: Floats
    """sum_k E log phi_kw (words)"""


def improve_documents(
    counts: SparseCounts,
    B: Array,
    alpha: Floats,
    expected: Array,
    *,
    totals: Floats,
    steps: int,
    tol: float,
    n_threads: int,
    weights: Floats | None = None,
    isa: str | None = None,
) -> DocumentSide:
    """Improves the expected counts n (documents x width, in place) with B fixed, each document on its own.

    A step is n_dk <- a_k sum_w x b_wk / (a . b_w) with a = exp(psi(alpha + n_d)). A document stops when a step moves at
    most the share `tol` of its tokens, or after `steps`.
    """
    check_operands(counts, expected, B, weights)
    operand = aligned_empty(expected.shape, expected.dtype)
    terms, log_sums = np.empty(counts.n_docs), np.empty(expected.shape[1])
    taken = np.empty(counts.n_docs, dtype=np.int32)
    wide_alpha = np.ones(expected.shape[1])
    wide_alpha[: alpha.size] = alpha
    _kernels.improve_gamma(
        counts.indptr, counts.indices, counts.values, B, wide_alpha, totals, weights, expected, operand, terms,
        log_sums, taken, topics=alpha.size, steps=steps, tol=tol, n_threads=n_threads, isa=isa,
    )  # fmt: skip
    terms += gammaln(alpha.sum()) - gammaln(alpha).sum()
    return DocumentSide(operand, terms, log_sums[: alpha.size], taken)


def topic_sums(lambda_: Array, n_topics: int) -> Floats:
    """sum_w lambda_kw (K numbers)"""
    return np.asarray(lambda_[:, :n_topics].sum(axis=0, dtype=np.float64))


def word_operands(lambda_: Array, eta: Floats, sums: Floats, *, n_threads: int, isa: str | None = None) -> WordSide:
    """The operands of lambda (words x width) under the prior eta (one number a word).

    `sums` are the topics' sums of lambda, over all words: these rows may be a few of them.
    """
    (n_words, width), n_topics = lambda_.shape, sums.size
    shift = np.zeros(width)
    shift[:n_topics] = psi(sums)
    B = aligned_empty(lambda_.shape, lambda_.dtype)
    scales, terms, log_sums = np.empty(n_words), np.empty(n_words), np.empty(n_words)
    _kernels.word_operands(
        lambda_, eta, shift, n_topics, B, scales, terms, log_sums, n_threads=n_threads, isa=isa,
    )  # fmt: skip
    return WordSide(B, scales, terms, log_sums)


def topics_term(words: WordSide, eta: Floats, sums: Floats) -> float:
    """What the topics add to the bound, minus sum_k KL(q(phi_k) || p(phi_k)), from all words."""
    constants = sums.size * (gammaln(eta.sum()) - gammaln(eta).sum()) - gammaln(sums).sum()
    return float(words.terms.sum() + constants)


def dirichlet_means(parameters: Array) -> Array:
    """The means of Dirichlet distributions, one a row."""
    return np.asarray(parameters / parameters.sum(axis=1, dtype=np.float64, keepdims=True), dtype=parameters.dtype)


_LEAST, _MOST = 1e-6, 1e6
_MAX_STEPS, _HALVINGS = 100, 40

GIVEN, SYMMETRIC, ASYMMETRIC = "given", "symmetric", "asymmetric"


@dataclass(frozen=True)
class Concentration:
    """alpha (m numbers) of a Dirichlet over m columns; `kind` says how it is learned, if at all."""

    values: Floats
    kind: str = GIVEN

    @property
    def learned(self) -> bool:
        return self.kind != GIVEN

    def improved(self, log_sums: Floats, rows: float) -> Concentration:
        """The alpha that maximizes rows (lgamma(sum alpha) - sum lgamma(alpha)) + sum alpha log_sums.

        `log_sums` are sums over so many rows of E log f (m numbers). The function is concave: Newton's steps, halved
        until they rise. A given alpha stays; a symmetric one stays symmetric. Never lower than before.
        """
        if not self.learned or self.values.size == 1:
            return self
        alpha = self.values
        value = _log_density(alpha, log_sums, rows)
        for _ in range(_MAX_STEPS):
            step = _symmetric_step(alpha, log_sums, rows) if self.kind == SYMMETRIC else _step(alpha, log_sums, rows)
            for _ in range(_HALVINGS):
                tried = np.clip(alpha + step, _LEAST, _MOST)
                new = _log_density(tried, log_sums, rows)
                if new > value:
                    break
                step = step / 2
            else:
                break
            small = new - value <= 1e-9 * rows
            alpha, value = tried, new
            if small:
                break
        return replace(self, values=alpha)


def _log_density(alpha: Floats, log_sums: Floats, rows: float) -> float:
    return float(rows * (gammaln(alpha.sum()) - gammaln(alpha).sum()) + (alpha * log_sums).sum())


def _step(alpha: Floats, log_sums: Floats, rows: float) -> Floats:
    """Newton's step; the Hessian is a diagonal plus a constant, so that its inverse takes time m."""
    gradient = rows * (psi(alpha.sum()) - psi(alpha)) + log_sums
    diagonal = -rows * polygamma(1, alpha)
    constant = rows * float(polygamma(1, alpha.sum()))
    shared = (gradient / diagonal).sum() / (1 / constant + (1 / diagonal).sum())
    return np.asarray(-(gradient - shared) / diagonal)


def _symmetric_step(alpha: Floats, log_sums: Floats, rows: float) -> Floats:
    """Newton's step along (1, ..., 1)."""
    m, a = alpha.size, float(alpha[0])
    gradient = rows * m * (psi(m * a) - psi(a)) + log_sums.sum()
    curvature = rows * m * (m * polygamma(1, m * a) - polygamma(1, a))
    return np.full(m, -gradient / curvature if curvature < 0 else 0.0)
