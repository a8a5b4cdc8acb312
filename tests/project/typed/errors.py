"""Code of a user with an error in each line that ends with a comment `error`."""

from __future__ import annotations

import numpy as np

import polyseme
from polyseme import LDA, NMF, PLSA, Plsa, TopicClassifier, load, open_run  # noqa: F401  # error
from polyseme.metrics import evaluate
from polyseme.priors import Dirichlet
from polyseme.retrieval import SearchIndex
from polyseme.selection import select_n_topics
from polyseme.solvers.ascent import EM
from polyseme.text import Vectorizer

counts = np.eye(5)

PLSA(n_component=5)  # error
PLSA("five")  # error
polyseme.PLSA(5, max_iter="many")  # error
PLSA(5).fit(counts).topic_words()  # error
PLSA(5).topics(words=3)  # error
PLSA(5).perplexity()  # error
perplexity: str = PLSA(5).perplexity(counts)  # error
EM(steps=3)  # error
topics_words = PLSA(5).fit(counts).component_  # error
PLSA(5, random_state="zero")  # error
PLSA(5, loss=2)  # error
weights: list[float] = PLSA(5).fit(counts).topic_weights_  # error
other: LDA = PLSA(5).fit(counts)  # error
LDA(5, alpha=0.1)  # error
bound = LDA(5).fit(counts).bounds_  # error
NMF(5, alpha_w=0.1)  # error
PLSA(5, doc_topic_prior="sparse")  # error
loss = PLSA(5).fit(counts).to_nmf().reconstruction_error_  # error
Vectorizer(min_count=2)  # error
SearchIndex(counts, ["a", "b"]).find("price")  # error
polyseme.fit("folder", topics=5)  # error
classes = TopicClassifier().fit(counts, [0, 0, 1, 1, 1]).class_  # error
Dirichlet()  # error
Dirichlet(alpha=1.0, weight=2.0)  # error
polyseme.lda(5)  # error
polyseme.metrics.perplexities(counts)  # error

load()  # error
load("model").perplexities(counts)  # error

run = open_run("folder")
run.search("oil", n_results=3)  # error
title = run.search("oil")[0].titles  # error
run.documents.filtered()  # error
topics = run.transform(["A text."]).topics  # error
run.model.transforms(counts)  # error
run.vocabulary()  # error
run.level("5")  # error
run.edit(rename=["Oil"])  # error
run.topics().to_frame()  # error

perplexities = evaluate(PLSA(5), counts).perplexities  # error
chosen = select_n_topics(counts, [2, 3]).chosen  # error
