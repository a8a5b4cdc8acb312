"""
Topics of a folder of texts
===========================

One call reads a folder, counts words, fits topics and names them. The texts are docstrings of scikit-learn.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import polyseme
from polyseme import datasets
from polyseme.plots import plot_document_map

corpus = datasets.docstrings(["sklearn"], standard_library=False)
folder = TemporaryDirectory()
for number, text in enumerate(corpus.texts[::2]):
    Path(folder.name, f"{number:04}.txt").write_text(text, encoding="utf-8")

run = polyseme.fit(folder.name, 8, levels="none", page=False)
print(run.topics())

# %%
# The map places documents with similar topics beside each other. ``run.explore("page.html")`` writes it as an
# interactive page.

plot_document_map(run)

# %%
# New texts are explained by the same topics.

new = run.transform(["Colors of a scatter plot", "The learning rate of gradient descent"])
print(new["name"].to_list())
