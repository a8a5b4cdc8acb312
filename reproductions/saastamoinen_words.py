"""Synonyms and polysemy (Saastamoinen, section 3.1): LSA and PLSA of the same dimension on words with known senses.

A synonym is made by splitting a word into two halves at random: by tokens, so that documents may contain both halves,
or by documents, so that none does. A polysemic word is made by merging two words of different subjects into one. Part
of saastamoinen_claims.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.cluster import KMeans

from formulas import Array
from polyseme import LSA, PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.retrieval import SearchIndex
from support import Finding, show, verdict

FEWEST, MOST = 40, 300
"""Numbers of documents between which the words of the experiments occur."""
NEIGHBORS = 10
FAMILIES = {
    "drive": ("comp.", ("rec.autos", "rec.motorcycles")),
    "driver": ("comp.", ("rec.autos", "rec.motorcycles")),
    "space": ("sci.space", "comp."),
    "run": ("comp.", "rec.sport"),
    "hit": ("rec.sport", ("rec.autos", "rec.motorcycles")),
    "shot": ("talk.politics", "rec.sport"),
}
"""Words of 20 Newsgroups with two senses, and the beginnings of the names of the groups that use each sense."""


class Words(NamedTuple):
    """A corpus, the subject of each word, and the share of the documents of a word that have this subject."""

    name: str
    X: sp.csr_array
    K: int
    subject: Array
    share: Array

    @property
    def frequent(self) -> Array:
        documents = np.bincount(self.X.indices, minlength=self.X.shape[1])
        return np.flatnonzero((documents >= FEWEST) & (documents <= MOST))


def planted_words(n_docs: int) -> Words:
    """Return documents drawn from ten topics, which are the subjects of their words."""
    corpus = synthetic_corpus(n_docs, n_words=500, n_topics=10, length=80, topic_word_prior=0.05, random_state=0)
    share = corpus.topic_word / corpus.topic_word.sum(axis=0)
    counts = sp.csr_array(corpus.counts()).astype(np.float64)
    return Words("planted topics", counts, 10, share.argmax(axis=0), share.max(axis=0))


def news_words(X: Any, groups: Array) -> Words:
    """Return 20 Newsgroups with the most frequent group of each word as its subject."""
    names, numbers = np.unique(groups, return_inverse=True)
    X = sp.csr_array(X).astype(np.float64)
    uses = np.array([(X[numbers == number] > 0).sum(axis=0) for number in range(len(names))])
    return Words("20 Newsgroups", X, 50, uses.argmax(axis=0), uses.max(axis=0) / uses.sum(axis=0))


def replaced(X: sp.csr_array, words: Array, columns: Sequence[Array]) -> sp.csr_array:
    """Return the counts without some words and with new columns behind the others."""
    rest = np.setdiff1d(np.arange(X.shape[1]), words)
    return sp.csr_array(sp.hstack([X[:, rest], sp.csr_array(np.stack(columns, axis=1))]))


def column(X: sp.csr_array, word: int) -> Array:
    return np.asarray(X[:, [word]].toarray().ravel())


def unit_rows(A: Array) -> Array:
    return A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300)


def topics_of_words(model: PLSA) -> Array:
    """Return P(z|w), words x K."""
    joint = model.components_.T * model.topic_weights_
    return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300))


# Synonyms


class Synonyms(NamedTuple):
    """Median rank of the other half among all words, and mean AUC of the documents with the other half only."""

    rank: dict[str, float]
    auc: dict[str, float]


def split_words(X: sp.csr_array, words: Array, by: str, seed: int) -> sp.csr_array:
    """Return the counts with first and then second halves of some words as the last columns."""
    rng = np.random.default_rng(seed)
    whole = [column(X, word) for word in words]
    if by == "tokens":
        first = [rng.binomial(x.astype(int), 0.5).astype(np.float64) for x in whole]
    else:
        first = [np.where(rng.random(len(x)) < 0.5, x, 0) for x in whole]
    return replaced(X, words, [*first, *(x - half for x, half in zip(whole, first, strict=True))])


def ranks(vectors: Array, words: Array, others: Array) -> Array:
    """Return the place of the other word among all words in the order of their cosine with a word, from 1."""
    cosines = unit_rows(vectors)[words] @ unit_rows(vectors).T
    cosines[np.arange(len(words)), words] = -np.inf
    return np.asarray(1 + (cosines > cosines[np.arange(len(words)), others][:, np.newaxis]).sum(axis=1))


def auc(scores: Array, relevant: Array) -> float:
    """Return the probability that a relevant document has a higher score than another one."""
    n = np.count_nonzero(relevant)
    return float((rankdata(scores)[relevant].sum() - n * (n + 1) / 2) / (n * np.count_nonzero(~relevant)))


def find_synonyms(corpus: Words, by: str, n_words: int, seed: int) -> Synonyms:
    """Search for one half of each word with the other half: among words, and among documents without this half."""
    rng = np.random.default_rng(seed)
    words = np.sort(rng.choice(corpus.frequent, min(n_words, len(corpus.frequent)), replace=False))
    X = split_words(corpus.X, words, by, seed)
    halves = X[:, -2 * len(words) :].toarray()
    first = np.arange(X.shape[1] - 2 * len(words), X.shape[1] - len(words))
    lsa, plsa = LSA(corpus.K).fit(X), PLSA(corpus.K, random_state=seed).fit(X)
    documents = unit_rows(lsa.doc_vectors_)
    scores = {  # documents x words of the first half
        "LSA": documents @ lsa.word_vectors_[first].T,
        "PLSA": plsa.doc_topic_ @ plsa.components_[:, first],
    }
    areas: dict[str, list[float]] = {name: [] for name in scores}
    for place in range(len(words)):
        without = halves[:, place] == 0
        relevant = halves[without, len(words) + place] > 0
        if relevant.any():
            for name, values in scores.items():
                areas[name].append(auc(values[without, place], relevant))
    vectors = {"vector space": X.T.toarray(), "LSA": lsa.word_vectors_, "PLSA": np.sqrt(topics_of_words(plsa))}
    return Synonyms(
        {name: float(np.median(ranks(value, first, first + len(words)))) for name, value in vectors.items()},
        {name: float(np.mean(values)) for name, values in areas.items()},
    )


def synonyms(corpora: Sequence[Words], n_words: int, seeds: int) -> Finding:
    """Judge whether LSA connects synonyms, and whether they need documents that contain both."""
    rows, texts, checks = [], [], []
    for corpus in corpora:
        mean = {}
        for by in ("tokens", "documents"):
            runs = [find_synonyms(corpus, by, n_words, seed) for seed in range(seeds)]
            mean[by] = Synonyms(*({name: float(np.mean([part[name] for part in parts])) for name in parts[0]}
                                  for parts in zip(*runs, strict=True)))  # fmt: skip
            rows.append((corpus.name, by, *(f"{value:.0f}" for value in mean[by].rank.values()),
                         *(f"{value:.2f}" for value in mean[by].auc.values())))  # fmt: skip
        both, none, n = mean["tokens"], mean["documents"], corpus.X.shape[1]
        texts.append(
            f"{corpus.name}: rank of the other half among {n} words LSA {both.rank['LSA']:.0f}, PLSA "
            f"{both.rank['PLSA']:.0f}, and {none.rank['LSA']:.0f} and {none.rank['PLSA']:.0f} if no document has both; "
            f"AUC of documents with the other half only {both.auc['LSA']:.2f} and {both.auc['PLSA']:.2f}, "
            f"{none.auc['LSA']:.2f} and {none.auc['PLSA']:.2f} if no document has both"
        )
        checks += [both.rank["LSA"] < n / 20, none.rank["LSA"] > 2 * both.rank["LSA"],
                   none.rank["PLSA"] < none.rank["LSA"], min(both.auc.values()) > 0.6]  # fmt: skip
    show(f"Synonyms: halves of words, split by tokens or by documents, {seeds} seeds",
         ("corpus", "split by", "rank: vector space", "LSA", "PLSA", "AUC: LSA", "PLSA"), rows)  # fmt: skip
    return Finding(
        "Synonyms (sect. 3.1)",
        "LSA connects synonyms if there are documents that contain both, and finds documents with a synonym only",
        "; ".join(texts),
        verdict("true; without such documents PLSA is closer", *checks),
    )


# Polysemy


class Polysemy(NamedTuple):
    """Results for one pseudo-word or one real word; means over words are of the same form."""

    senses: float
    both: float
    """1 if both words have a sense, by the majority of its documents"""
    plsa: float
    """share of documents that `senses` assigns to the right word"""
    lsa: float
    """the same for k-means of the documents' LSA vectors, with as many clusters"""
    largest: float
    """share of documents of the more frequent word"""


class Point(NamedTuple):
    """The vector of a pseudo-word in LSA."""

    parts: float
    """cosine with the vectors of the two words, the lower of the two"""
    between: float
    """cosine of these two with each other"""


def word_pairs(corpus: Words, n_pairs: int, seed: int) -> list[tuple[int, int]]:
    """Return pairs of words of different subjects that occur in about as many documents."""
    documents = np.bincount(corpus.X.indices, minlength=corpus.X.shape[1])
    clear = corpus.frequent[corpus.share[corpus.frequent] >= 0.5]
    words = list(np.random.default_rng(seed).permutation(clear))
    pairs = []
    while words and len(pairs) < n_pairs:
        u = words.pop()
        partners = [v for v in words if corpus.subject[u] != corpus.subject[v]
                    and max(documents[[u, v]]) <= 1.5 * min(documents[[u, v]])]  # fmt: skip
        if partners:
            words.remove(partners[0])
            pairs.append((int(u), int(partners[0])))
    return pairs


def right_share(labels: Array, truth: Array) -> tuple[float, bool]:
    """Return the share of documents whose label stands for their word, and whether both words have a label.

    A label stands for the word that most of its documents contain.
    """
    groups = [truth[labels == label] for label in np.unique(labels)]
    right = sum(max(np.count_nonzero(group), np.count_nonzero(~group)) for group in groups)
    return right / len(truth), len({2 * np.count_nonzero(group) > len(group) for group in groups}) == 2


class Fits(NamedTuple):
    """LSA and PLSA of one corpus."""

    X: sp.csr_array
    lsa: LSA
    plsa: PLSA
    index: SearchIndex

    @classmethod
    def of(cls, X: sp.csr_array, K: int, seed: int) -> Fits:
        plsa = PLSA(K, random_state=seed).fit(X)
        index = SearchIndex(X, [str(word) for word in range(X.shape[1])]).set_model(plsa, plsa.doc_topic_)
        return cls(X, LSA(K).fit(X), plsa, index)

    def tell_apart(self, word: int, documents: Array, truth: Array, least: float) -> Polysemy:
        """Assign the documents of a word to its senses, and by LSA to as many clusters, but at least two."""
        topics = [sense.topic for sense in self.index.senses(str(word), least=least, n_documents=0)]
        posteriors = self.plsa.doc_topic_[documents] * self.plsa.components_[:, word]
        plsa, both = right_share(posteriors[:, topics].argmax(axis=1), truth)
        means = KMeans(max(2, len(topics)), n_init=3, random_state=0)
        lsa, _ = right_share(means.fit_predict(unit_rows(self.lsa.doc_vectors_[documents])), truth)
        return Polysemy(len(topics), both, plsa, lsa, max(truth.mean(), 1 - truth.mean()))

    def point(self, word: int, parts: Sequence[Array]) -> Point:
        """Compare the LSA vector of a pseudo-word with those of its two words in the same space."""
        left = self.lsa.doc_vectors_ / self.lsa.singular_values_
        u, v = unit_rows(np.log1p(np.stack(parts)) @ left)
        whole = unit_rows(self.lsa.word_vectors_[[word]])[0]
        return Point(float(min(whole @ u, whole @ v)), float(u @ v))


class Case(NamedTuple):
    """A word with two senses: its column, documents with one sense each, and whether it is the first sense."""

    name: str
    word: int
    documents: Array
    truth: Array


def pseudo_words(corpus: Words, n_pairs: int, seed: int) -> tuple[Fits, list[Case], list[Point]]:
    """Merge pairs of words. The documents of a case contain one word of the pair, not both."""
    pairs = word_pairs(corpus, n_pairs, seed)
    parts = [(column(corpus.X, u), column(corpus.X, v)) for u, v in pairs]
    fits = Fits.of(replaced(corpus.X, np.ravel(pairs), [u + v for u, v in parts]), corpus.K, seed)
    cases = []
    for word, (u, v) in enumerate(parts, start=fits.X.shape[1] - len(pairs)):
        documents = np.flatnonzero((u > 0) ^ (v > 0))
        cases.append(Case("", word, documents, u[documents] > 0))
    return fits, cases, [fits.point(case.word, part) for case, part in zip(cases, parts, strict=True)]


def real_words(corpus: Words, news: Any) -> list[Case]:
    """Return the words of `FAMILIES`. The documents of a case belong to groups that use one sense."""
    places, cases = {name: place for place, name in enumerate(news.words)}, []
    for name, families in FAMILIES.items():
        used = np.flatnonzero(column(corpus.X, places[name]))
        one, other = (np.array([str(group).startswith(family) for group in news.y[used]]) for family in families)
        cases.append(Case(name, places[name], used[one | other], one[one | other]))
    return cases


def mean_of(parts: Sequence[Any]) -> Any:
    return type(parts[0])(*np.mean(parts, axis=0).tolist())


def at_both_thresholds(fits: Fits, cases: Sequence[Case]) -> list[tuple[Polysemy, Polysemy]]:
    """Return the results with the default of `senses` and with senses of at least 2%."""
    return [(fits.tell_apart(*case[1:], 0.1), fits.tell_apart(*case[1:], 0.02)) for case in cases]


def polysemy(corpora: Sequence[Words], n_pairs: int, seeds: int, news: Any = None) -> Finding:
    """Judge whether LSA handles polysemy, and whether `senses` does; `news` has the words of the last corpus."""
    points: list[Point] = []
    found: dict[str, list[tuple[Polysemy, Polysemy]]] = {}
    for corpus in corpora:
        merged = [pseudo_words(corpus, n_pairs, seed) for seed in range(seeds)]
        points += [point for *_, part in merged for point in part]
        results = [one for fits, cases, _ in merged for one in at_both_thresholds(fits, cases)]
        found[f"{corpus.name}, {len(merged[0][1])} merged pairs"] = results
    if news is not None:
        cases = real_words(corpora[-1], news)
        runs = [at_both_thresholds(Fits.of(corpora[-1].X, corpora[-1].K, seed), cases) for seed in range(seeds)]
        found |= {case.name: list(results) for case, *results in zip(cases, *runs, strict=True)}
        found[f"{len(cases)} real words"] = [one for run in runs for one in run]
    rows, texts, checks = [], [], []
    for name, results in found.items():
        wide, fine = map(mean_of, zip(*results, strict=True))
        for least, mean in ((0.1, wide), (0.02, fine)):
            rows.append((name, least, f"{mean.senses:.1f}", f"{mean.both:.0%}",
                         *(f"{x:.2f}" for x in (mean.plsa, mean.lsa, mean.largest))))  # fmt: skip
        if name not in FAMILIES:
            texts.append(
                f"{name}: both senses found for {wide.both:.0%} ({fine.both:.0%} with `least=0.02`), {wide.plsa:.2f} "
                f"({fine.plsa:.2f}) of documents right, as many clusters of LSA's document vectors {wide.lsa:.2f} "
                f"({fine.lsa:.2f}), the more frequent sense {wide.largest:.2f}"
            )
        if "merged" in name:
            checks += [wide.both > 0.7, min(wide.plsa, wide.lsa) > wide.largest + 0.1]
    show(f"Polysemy: documents of a word with two senses, {seeds} seeds",
         ("words", "least", "senses", "both found", "right: PLSA", "LSA clusters", "more frequent"), rows)  # fmt: skip
    parts, between = (float(np.median([point[field] for point in points])) for field in (0, 1))
    return Finding(
        "Polysemy (sect. 3.1)",
        "LSA cannot handle polysemy: a word is one point, in an arbitrary place between its clusters",
        f"median cosine of a merged word with its two words at least {parts:.2f}, of these with each other "
        f"{between:.2f}: the point is between them. `senses`; {'; '.join(texts)}",
        verdict("true for its words, not for its document vectors", parts > between + 0.2, *checks),
    )  # fmt: skip
