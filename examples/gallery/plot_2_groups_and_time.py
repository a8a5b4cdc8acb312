"""
Groups of documents and time
============================

Which groups write about a topic, does it rise or fall, and how sure is that? The 900 texts are drawn at random: farmers
write more about fruit than miners do, and everybody writes less about it and more about ships every month.
"""

import numpy as np
import polars as pl

import polyseme
from polyseme.plots import plot_groups, plot_over_time

fruit = ["apple", "pear", "plum", "peach", "cherry", "grape", "melon", "orchard", "harvest", "tree", "juice", "basket"]
metal = ["iron", "tin", "gold", "copper", "zinc", "lead", "nickel", "mine", "ore", "furnace", "alloy", "wire"]
ships = ["sail", "anchor", "hull", "mast", "tide", "crew", "harbor", "deck", "cabin", "rope", "keel", "sailor"]
rng, rows = np.random.default_rng(0), []
for _ in range(900):
    month, author = rng.integers(1, 13), rng.choice(["farmer", "miner", "trader"])
    likes = {"farmer": [6, 1, 1], "miner": [1, 5, 1], "trader": [2, 2, 3]}[author] * np.array([15 - month, 8, month])
    subjects = rng.dirichlet(likes / likes.sum())
    text = " ".join(rng.choice([fruit, metal, ships][rng.choice(3, p=subjects)]) for _ in range(40))
    rows.append({"text": text, "label": author, "time": f"2020-{month:02d}-15"})

run = polyseme.fit(pl.DataFrame(rows), 3, max_df=1.0, levels="none", page=False)
groups = run.compare_groups("label", n_resamples=30)
print(groups)

# %%
# The intervals contain the uncertainty of the topics, because topics are fitted again to resampled documents.

plot_groups(groups)

# %%
# The same by month, with bands of 95%:

plot_over_time(run.over_time("month", n_resamples=30))
