"""EM for a mixture of multinomials, in which all words of a document come from one topic (Nigam et al. 2000).

The objective is the log posterior density of the parameters, with beta pseudo-counts of every word in every topic and
one pseudo-document in every topic:

    sum_d log sum_z pi_z prod_w phi_zw^x_dw + beta sum_zw log phi_zw + sum_z log pi_z.

The posterior of a document is nearly one-hot after a few words, so EM from a random start ends in a poor maximum. A
start is therefore annealed: the log joint probabilities are multiplied by an inverse temperature that rises to 1 (Ueda
and Nakano 1998). From there on, every iteration raises the objective.

References
----------
K. Nigam, A. McCallum, S. Thrun and T. Mitchell. Text classification from labeled and unlabeled documents using EM.
    Machine Learning 39, 2000.
N. Ueda and R. Nakano. Deterministic annealing EM algorithm. Neural Networks 11, 1998.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.mixture import log_joint, log_sums
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import Floats
from polyseme.solvers.ascent import Ascent, EvaluatedPoint
from polyseme.solvers.dirichlet import BoundReport

_FIRST_BETA, _BETA_STEP = 0.2, 0.005
"""Inverse temperature of the first iteration of annealing, and its increase in every iteration."""
_PSEUDO_DOCUMENTS = 1.0
"""Documents that are added to every topic."""


class MixturePoint(NamedTuple):
    """Parameters of a mixture."""

    phi: Floats
    """P(w|z), words x K."""
    shares: Floats
    """P(z), the share of the documents of each topic."""


MixtureRun = Ascent[MixturePoint]


def begin_mixture(corpus: MemoryCorpus, phi: Floats, pseudo_counts: float, *, anneal: bool) -> MixtureRun:
    """Start a fit from topics (words x K), after annealing if asked for."""
    evaluate = _MixtureEvaluation(corpus, pseudo_counts)
    point = MixturePoint(phi, np.full(phi.shape[1], 1 / phi.shape[1]))
    for beta in np.arange(_FIRST_BETA, 1.0, _BETA_STEP).tolist() if anneal else [1.0]:
        posterior, _ = log_sums(beta * log_joint(evaluate.matrix, *point))
        point = evaluate.m_step(posterior)  # without zeros
    return Ascent(evaluate, point)


class _MixtureEvaluation:
    """Function that evaluates the points of a fit, one after the other."""

    def __init__(self, corpus: MemoryCorpus, pseudo_counts: float) -> None:
        self.matrix = sp.csr_array(corpus.counts.matrix()).astype(np.float64)
        self._by_word = sp.csr_array(self.matrix.T)
        weights = np.ones(corpus.n_docs) if corpus.weights is None else corpus.weights
        self._weights = np.where(corpus.totals > 0, weights, 0.0)
        self._tokens, self._pseudo_counts = corpus.tokens, pseudo_counts

    def m_step(self, posterior: Floats) -> MixturePoint:
        """Return the parameters that maximize the objective for these posteriors of the documents."""
        weighted = posterior * self._weights[:, np.newaxis]
        counts = self._by_word @ weighted + self._pseudo_counts
        documents = weighted.sum(axis=0) + _PSEUDO_DOCUMENTS
        return MixturePoint(counts / counts.sum(axis=0), documents / documents.sum())

    def __call__(self, point: MixturePoint) -> EvaluatedPoint[MixturePoint]:
        """Return the objective at a point, and the step from there."""
        posterior, logs = log_sums(log_joint(self.matrix, *point))
        prior = self._pseudo_counts * np.log(point.phi).sum() + _PSEUDO_DOCUMENTS * np.log(point.shares).sum()
        objective = float((logs * self._weights).sum() + prior) / self._tokens
        return EvaluatedPoint(point, BoundReport(objective), self.m_step(posterior))
