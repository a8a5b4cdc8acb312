"""
Gene programs of single cells
=============================

Cells are documents, genes are words, molecules are tokens, and a topic is a gene program. The 600 cells are simulated:
three types, and a program (such as the cell cycle) that is active in some cells of each type.
"""

import matplotlib.pyplot as plt
import numpy as np

from polyseme.cells import variable_genes
from polyseme.metrics import align
from polyseme.plots import plot_consensus
from polyseme.selection import consensus

rng = np.random.default_rng(0)
programs = rng.dirichlet(np.full(500, 0.05), 4)
programs[:, 250:] = programs.mean(axis=0)[250:]  # genes that are the same in all cells
programs /= programs.sum(axis=1, keepdims=True)
cycle = np.where(rng.random(600) < 0.3, rng.uniform(0.2, 0.6, 600), 0)
types = rng.integers(3, size=600)
usage = np.column_stack([np.eye(3)[types] * (1 - cycle[:, np.newaxis]), cycle])
molecules = rng.lognormal(np.log(1500), 0.8, 600).astype(int)
X = np.array([rng.multinomial(n, p) for n, p in zip(molecules, usage @ programs, strict=True)])

# %%
# Choose the genes that vary, then the number of programs that fits to resampled cells agree on. No normalization and no
# logarithm are needed.

genes = variable_genes(X, 100)
found = consensus(X[:, genes], range(2, 7), n_fits=8)
plot_consensus(found)

# %%
# The usage of the fourth program, found and true:

true = programs[:, genes] / programs[:, genes].sum(axis=1, keepdims=True)
order, distance = align(true, found.model.components_)
print("total variation between true and found programs:", distance.round(3))

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.scatter(cycle, found.model.doc_topic_[:, order[3]], c=[f"C{kind}" for kind in types], s=8)
ax.set(xlabel="true share of the program", ylabel="found share", title="One color for each type of cell")
