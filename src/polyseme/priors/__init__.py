"""Priors and regularizers on P(z|d) and P(w|z).

A factor is an n x m matrix whose rows sum to one: P(z|d) as documents x topics, or P(w|z) as topics x words. The M-step
of every prior finds the rows f that maximize sum (counts + pseudo_counts) log f + beta sum f log f. A prior defines the
pseudo-counts and beta, so priors can be added. docs/how-to/add_a_prior.md shows how to write a new one. Model files can
contain every prior in `__all__`.

| prior | log density | the M-step is | monotone |
|---|---|---|---|
| `Dirichlet(alpha)` | sum (alpha - 1) log f | the maximum, closed form | alpha >= 1 |
| `Smoothing(strength, target)` | strength sum target log f | the maximum, closed form | yes |
| `Sparsing(strength, target)` | -strength sum target log f | the maximum, as long as no entry becomes zero | no |
| `SeedWords(seeds)` | strength sum log f over the seeds | the maximum, closed form | yes |
| `KnownTopics(topics)` | 0 if a document has its known topics only, else -inf | the maximum, closed form | yes |
| `KnownTopics(topics, strength)` | strength / n sum log f over the n known topics | the maximum, closed form | yes |
| `Entropic(beta)` | beta sum f log f | beta < 0: the maximum; beta > 0: a local maximum, no worse than before | yes |
| `Decorrelation(strength)` | -strength sum_(k<l) f_k . f_l | one step of a fixed-point iteration | no |
| `TopicSelection(strength)` | -strength (N / K) sum log p(topic) | one step of a fixed-point iteration | no |
| `MinimumVolume(strength)` | -strength D / 2 log det(W F F' + delta I) | the maximum of a lower bound | yes |

Monotone means that no EM step lowers the likelihood plus the log density. Every prior is monotone at its neutral value.
"""

from polyseme.priors.base import Prior, PriorSum
from polyseme.priors.members import (
    Decorrelation,
    Dirichlet,
    Entropic,
    KnownTopics,
    SeedWords,
    Smoothing,
    Sparsing,
    TopicSelection,
)
from polyseme.priors.volume import MinimumVolume

__all__ = [
    "Decorrelation",
    "Dirichlet",
    "Entropic",
    "KnownTopics",
    "MinimumVolume",
    "SeedWords",
    "Smoothing",
    "Sparsing",
    "TopicSelection",
]

MEMBERS: tuple[type[Prior], ...] = (PriorSum, *(globals()[name] for name in __all__))
"""All priors, by whose class names model files refer to them."""
