"""Code of a user with an error in each line that ends with a comment `error`.

mypy knows no attribute of scikit-learn's classes, so only pyright finds wrong names of methods of estimators.
"""

from __future__ import annotations

import numpy as np

import polyseme
from polyseme import PLSA, Plsa, load, open_run  # noqa: F401  # error
from polyseme.metrics import evaluate
from polyseme.priors import Dirichlet
from polyseme.selection import select_n_topics
from polyseme.solvers.ascent import EM

counts = np.eye(5)

PLSA(n_component=5)  # error
PLSA("five")  # error
polyseme.PLSA(5, max_iter="many")  # error
PLSA(5).fit(counts).topic_words()  # error for pyright
PLSA(5).topics(words=3)  # error
PLSA(5).perplexity()  # error
perplexity: str = PLSA(5).perplexity(counts)  # error
EM(steps=3)  # error
Dirichlet()  # error
Dirichlet(alpha=1.0, weight=2.0)  # error
polyseme.lda(5)  # error
polyseme.metrics.perplexities(counts)  # error

load()  # error
load("model").perplexities(counts)  # error for pyright

run = open_run("folder")
run.search("oil", n_results=3)  # error
title = run.search("oil")[0].titles  # error
run.documents.filtered()  # error
topics = run.transform(["A text."]).topics  # error
run.model.transforms(counts)  # error for pyright
run.vocabulary()  # error
run.level("5")  # error
run.edit(rename=["Oil"])  # error
run.topics().to_frame()  # error

perplexities = evaluate(PLSA(5), counts).perplexities  # error
chosen = select_n_topics(counts, [2, 3]).chosen  # error
