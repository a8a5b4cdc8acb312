"""Priors and regularizers on either factor: `maximize(counts, factor)` and `log_density(factor)`.

A factor is n x m with rows that sum to one: P(z|d) as documents x topics, P(w|z) as topics x words. Every member is
one formula, the rows that maximize sum (counts + pseudo_counts) log f + beta sum f log f, with pseudo-counts and beta
of its own; so a list of priors adds up. docs/how-to/add_a_prior.md shows how to write another.

| prior | log density | an M-step is | monotone |
|---|---|---|---|
| `Dirichlet(alpha)` | sum (alpha - 1) log f | the maximum, closed form | alpha >= 1 |
| `Smoothing(strength, target)` | strength sum target log f | the maximum, closed form | yes |
| `Sparsing(strength, target)` | -strength sum target log f | the maximum while no entry reaches zero | no |
| `SeedWords(seeds)` | strength sum log f over the seeds | the maximum, closed form | yes |
| `Entropic(beta)` | beta sum f log f | beta < 0: the maximum; beta > 0: a local one, no worse than before | yes |
| `Decorrelation(strength)` | -strength sum over pairs f_k . f_l | one step of a fixed-point iteration | no |
| `TopicSelection(strength)` | -strength (N / K) sum log p(topic) | one step of a fixed-point iteration | no |

Monotone: EM never lowers the likelihood plus the log density. "No" says that it may, at strengths other than neutral.
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
"""every prior, as model files name them"""

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
