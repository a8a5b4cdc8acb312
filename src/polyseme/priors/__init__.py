"""Priors and regularizers on P(z|d) and P(w|z).

A factor is an n x m matrix whose rows sum to one: P(z|d) as documents x topics, or P(w|z) as topics x words. The M-step
of every prior finds the rows f that maximize sum (counts + pseudo_counts) log f + beta sum f log f. A prior defines the
pseudo-counts and beta, so priors can be added. docs/how-to/add_a_prior.md shows how to write a new one. Model files can
contain every prior in `__all__`. The priors and their log densities:

`Dirichlet(alpha)`
    sum (alpha - 1) log f. The M-step is the maximum, closed form; monotone: alpha >= 1.
`Smoothing(strength, target)`
    strength sum target log f. The M-step is the maximum, closed form; monotone: yes.
`Sparsing(strength, target)`
    -strength sum target log f. The M-step is the maximum, as long as no entry becomes zero; monotone: no.
`SeedWords(seeds)`
    strength sum log f over the seeds. The M-step is the maximum, closed form; monotone: yes.
`KnownTopics(topics)`
    0 if a document has its known topics only, else -inf. The M-step is the maximum, closed form; monotone: yes.
`KnownTopics(topics, strength)`
    strength / n sum log f over the n known topics. The M-step is the maximum, closed form; monotone: yes.
`Modalities(sizes)`
    0 if all topics have the same share of each block, else -inf. The M-step is the maximum, closed form; monotone: yes.
`Entropic(beta)`
    beta sum f log f. The M-step is the maximum for beta < 0 and a local maximum, no worse than before,
    for beta > 0; monotone: yes.
`Decorrelation(strength)`
    -strength sum_(k<l) f_k . f_l. The M-step is one step of a fixed-point iteration; monotone: no.
`TopicSelection(strength)`
    -strength (N / K) sum log p(topic). The M-step is one step of a fixed-point iteration; monotone: no.
`MinimumVolume(strength)`
    -strength D / 2 log det(W F F' + delta I). The M-step is the maximum of a lower bound; monotone: yes.

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
from polyseme.priors.modalities import Modalities
from polyseme.priors.volume import MinimumVolume

__all__ = [
    "Decorrelation",
    "Dirichlet",
    "Entropic",
    "KnownTopics",
    "MinimumVolume",
    "Modalities",
    "SeedWords",
    "Smoothing",
    "Sparsing",
    "TopicSelection",
]

MEMBERS: tuple[type[Prior], ...] = (PriorSum, *(globals()[name] for name in __all__))
"""All priors, by whose class names model files refer to them."""
