"""Small counts and texts, drawn with NumPy, the same in every process. Do not change what a function returns."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

K = 4


def mixed_counts(seed: int, n_docs: int, n_words: int, n_topics: int, tokens: int = 60) -> Any:
    """Draw counts from a mixture of topics."""
    rng = np.random.default_rng(seed)
    doc_topic = rng.dirichlet(np.full(n_topics, 0.3), n_docs)
    topic_word = rng.dirichlet(np.full(n_words, 0.2), n_topics)
    lengths = rng.poisson(tokens, n_docs)
    return np.array([rng.multinomial(n, p) for n, p in zip(lengths, doc_topic @ topic_word, strict=True)])


@cache
def counts() -> Any:
    """Return 60 documents of 45 words, two of the documents empty and two of the words absent."""
    X = mixed_counts(0, 60, 45, K)
    X[[0, 17]] = 0
    X[:, [3, 44]] = 0
    return sp.csr_array(X.astype(np.float64))


@cache
def new_documents() -> Any:
    """Return 20 documents of the same words, one empty and one with a word that `counts` does not have."""
    X = mixed_counts(1, 20, 45, K, 25)
    X[4] = 0
    X[7, 3] = 5
    return sp.csr_array(X.astype(np.float64))


@cache
def more_counts() -> Any:
    """Return 700 documents of 400 words: enough for several threads."""
    return sp.csr_array(mixed_counts(2, 700, 400, 8, 80).astype(np.float64))


def sample_weights() -> Any:
    """Return a weight for each row of `counts`, some of them zero."""
    weights = np.random.default_rng(3).uniform(0.2, 3.0, counts().shape[0])
    weights[5:9] = 0
    return weights


def words(n: int = 45) -> list[str]:
    """Return a vocabulary."""
    return [f"word{number:03d}" for number in range(n)]


@cache
def tensor() -> Any:
    """Return counts of three modes, 25 x 20 x 8."""
    rng = np.random.default_rng(4)
    modes = [rng.dirichlet(np.full(size, 0.3), 3) for size in (25, 20, 8)]
    p = np.einsum("z,za,zb,zc->abc", rng.dirichlet(np.ones(3)), *modes)
    return rng.multinomial(4000, p.ravel()).reshape(p.shape).astype(np.float64)


@cache
def real_data() -> Any:
    """Return 80 points of four real variables, mixtures of three corners."""
    corners = np.array([[-2.0, 0.0, 1.0, 4.0], [1.0, 3.0, -1.0, 0.0], [1.0, -1.0, 2.0, -3.0]])
    rng = np.random.default_rng(5)
    return rng.dirichlet([0.5] * 3, 80) @ corners + rng.normal(0, 0.02, (80, 4))


THEMES = {
    "orchard": "apple apples pear pears cherry cherries plum farmer farmers picking picked tree trees orchard autumn",
    "harbor": "ship ships sail sails sailor sailors cargo grain harbor harbors wind winds loading loaded dawn",
    "kitchen": "butter onion onions garlic soup soups stir stirred spoon spoons pan pans cook cooks cooking",
}
COMMON = ["the", "and", "of", "with", "year", "years", "people", "time", "many", "found", "new", "work"]

LANGUAGES = {
    "english": "The farmers were picking apples in New York, and the ships sailed from San Francisco in 1906.",
    "italian": "I contadini raccoglievano le mele nella campagna, e le navi partivano dal porto all'alba.",
    "german": "Die Bauern pflückten Äpfel im Obstgarten, und die Schiffe verließen den Hafen im Morgengrauen.",
    "russian": "Крестьяне собирали яблоки в саду, и корабли уходили из гавани на рассвете.",
    "chinese": "农民在果园里摘苹果，船在黎明时离开港口。",
    "hindi": "किसान बाग में सेब तोड़ रहे थे और जहाज भोर में बंदरगाह से निकले।",
}


@cache
def texts() -> tuple[list[str], list[str]]:
    """Return 60 English texts of three themes, and the theme of each."""
    rng = np.random.default_rng(6)
    labels = [list(THEMES)[number % 3] for number in range(60)]
    found = []
    for number, label in enumerate(labels):
        theme_words = rng.choice(THEMES[label].split(), 22)
        common = rng.choice(COMMON, 12)
        tokens = rng.permutation([*theme_words, *common])
        found.append(f"{' '.join(tokens)}, San Francisco {1900 + number}. Note {number}!")
    return found, labels
