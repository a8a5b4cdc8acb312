"""Priors and regularizers on P(z|d) and P(w|z).

A factor is an n x m matrix whose rows sum to one: P(z|d) as documents x topics, or P(w|z) as topics x words. The M-step
of every prior finds the rows f that maximize sum (counts + pseudo_counts) log f + beta sum f log f. A prior defines the
pseudo-counts and beta, so priors can be added. docs/how-to/add_a_prior.md shows how to write a new one.

| prior | log density | the M-step is | monotone |
|---|---|---|---|
| `Dirichlet(alpha)` | sum (alpha - 1) log f | the maximum, closed form | alpha >= 1 |
| `Smoothing(strength, target)` | strength sum target log f | the maximum, closed form | yes |
| `Sparsing(strength, target)` | -strength sum target log f | the maximum, as long as no entry becomes zero | no |
| `SeedWords(seeds)` | strength sum log f over the seeds | the maximum, closed form | yes |
| `Entropic(beta)` | beta sum f log f | beta < 0: the maximum; beta > 0: a local maximum, no worse than before | yes |
| `Decorrelation(strength)` | -strength sum_(k<l) f_k . f_l | one step of a fixed-point iteration | no |
| `TopicSelection(strength)` | -strength (N / K) sum log p(topic) | one step of a fixed-point iteration | no |

Monotone means that no EM step lowers the likelihood plus the log density. Every prior is monotone at its neutral value.
"""

from polyseme.priors.base import DOCUMENTS, TOPICS, Prior, PriorSum, combine
from polyseme.priors.members import (
    Decorrelation,
    Dirichlet,
    Entropic,
    SeedWords,
    Smoothing,
    Sparsing,
    TopicSelection,
    as_prior,
)

MEMBERS: tuple[type[Prior], ...] = (
    Decorrelation,
    Dirichlet,
    Entropic,
    SeedWords,
    Smoothing,
    Sparsing,
    PriorSum,
    TopicSelection,
)
"""All priors, by whose class names model files refer to them."""

__all__ = [
    "DOCUMENTS",
    "MEMBERS",
    "TOPICS",
    "Decorrelation",
    "Dirichlet",
    "Entropic",
    "Prior",
    "PriorSum",
    "SeedWords",
    "Smoothing",
    "Sparsing",
    "TopicSelection",
    "as_prior",
    "combine",
]
