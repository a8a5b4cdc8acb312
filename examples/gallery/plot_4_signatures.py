"""
Mutational signatures
=====================

Samples are documents, the 96 types of single-base substitutions are words, and a signature is a topic. The 80 samples
are drawn from three signatures.
"""

import numpy as np

from polyseme.metrics import align
from polyseme.plots import plot_signatures
from polyseme.signatures import SUBSTITUTIONS, assign, extract

rng = np.random.default_rng(0)
types = [f"{a}[{change}]{b}" for change in SUBSTITUTIONS for a in "ACGT" for b in "ACGT"]
true = rng.dirichlet(np.full(96, 0.1), 3)
counts = rng.poisson(1500 * rng.dirichlet(np.full(3, 0.4), 80) @ true)

# %%
# Find the number of signatures and the signatures themselves. Real analyses use 100 fits for each number.

found = extract(counts, range(2, 6), n_fits=10)
print(found.reason)
order, distance = align(true, found.model.components_)
print("total variation between true and found signatures:", distance.round(3))
plot_signatures(found.model.components_, types)

# %%
# Explain each sample by as few signatures as its likelihood allows, with intervals.

exposures = assign(counts, found.model.components_)
print(exposures.table.head())
