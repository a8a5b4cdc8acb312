"""
Search by words and by topics
=============================

A search index ranks documents by the words of the query (BM25), and topics add documents about the same subject. The
documents are docstrings of SciPy.
"""

import matplotlib.pyplot as plt
import numpy as np

from polyseme import PLSA, datasets
from polyseme.retrieval import SearchIndex
from polyseme.text import Vectorizer

corpus = datasets.docstrings(["scipy"], standard_library=False)
words = Vectorizer(language="english", min_df=3, max_df=0.3)
X = words.fit_transform(corpus.texts)
vocabulary = words.get_feature_names_out()
model = PLSA(12, random_state=0).fit(X)

index = SearchIndex(X, vocabulary, titles=corpus.titles, texts=corpus.texts, vectorizer=words)
index.set_model(model)
hits = index.search("smooth a noisy signal", 8)
print(hits)

# %%
# The topics of the hits say what they have in common.

shares = model.doc_topic_[[hit.row for hit in hits]]
shown = np.flatnonzero(shares.max(axis=0) > 0.1)
names = [" ".join(vocabulary[topic.argsort()[::-1][:3]]) for topic in model.components_[shown]]
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.imshow(shares[:, shown], cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.set_yticks(range(len(hits)), [hit.title.split(".")[-1] for hit in hits])
ax.set_xticks(range(len(shown)), names, rotation=30, ha="right")
ax.set_title('P(topic | document) of the hits for "smooth a noisy signal"', fontsize=10)
