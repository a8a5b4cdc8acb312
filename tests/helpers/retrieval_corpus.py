"""A small corpus for the tests of search: subjects with specific words, synonyms, and a word with two meanings."""

import numpy as np
import scipy.sparse as sp

from polyseme import PLSA
from polyseme.retrieval import SearchIndex

THEMES = {
    "car": ["car", "automobile", "engine", "wheel", "driver", "road", "jaguar", "brake"],
    "animal": ["cat", "jaguar", "prey", "forest", "fur", "hunt", "animal", "paw"],
    "money": ["bank", "loan", "interest", "credit", "money", "account", "debt", "rate"],
}
COMMON = ["time", "year", "people"]
VOCABULARY = sorted({word for words in THEMES.values() for word in words} | set(COMMON) | {"neverseen"})


def counts(n_docs=60, length=30, seed=0):
    """Return documents of one subject each; `car` and `automobile` never co-occur, and the last document is empty."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n_docs, len(VOCABULARY)), dtype=np.int64)
    subjects = list(THEMES.values())
    for row in range(n_docs - 1):
        words = [*subjects[row % len(subjects)], *COMMON]
        if row % len(subjects) == 0:
            words.remove("car" if row % 2 else "automobile")
        for word in rng.choice(words, length):
            X[row, VOCABULARY.index(word)] += 1
    return sp.csr_array(X)


def theme_of(row):
    return list(THEMES)[int(row) % len(THEMES)]


def index(**options):
    X = counts()
    names = [f"d{row}" for row in range(X.shape[0])]
    return SearchIndex(X, VOCABULARY, ids=names, titles=[f"Title {row}" for row in range(X.shape[0])], **options)


def full_index():
    """Return an index with all methods and small models."""
    built = index().fit_lsi(5).fit_models((3, 4), random_state=0, n_jobs=1)
    return built.set_model(PLSA(3, random_state=0, n_init=5, n_jobs=1, tol=1e-3).fit(built.counts))
