"""Check statements of the papers about topics as clusters, as a model of new documents and as features.

Run: .venv/bin/python reproductions/newsgroups.py [--quick] [--documents N] [--seeds N]
The texts are text/news20.jsonl.gz in POLYSEME_DATA (by-date split): words of at least ten of the training documents,
without scikit-learn's English stop words. Clusters and groups are matched by the best assignment. Standard learners
and TopicClassifier get the same counts. The script draws no plot.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from polyseme import LDA, LSA, NMF, PLSA, TopicClassifier
from polyseme.kernels import normalize_rows
from polyseme.priors import Dirichlet, KnownTopics, Smoothing
from polyseme.solvers import EarlyStopping
from support import DATA, Finding, conclude, make_parser, parse_options, show, verdict

TEXTS = DATA / "text" / "news20.jsonl.gz"
K_CLUSTERS, K_TOPICS = 20, 50
POSTERIOR = "PLSA, folded in by the posterior"
LABELS = 5
"""Labels per group in the comparison of leaves and inner nodes."""


class News(NamedTuple):
    """Counts and groups of training and test documents, and the words of the columns."""

    X: Any
    X_test: Any
    y: Any
    y_test: Any
    words: Any


class Cluster(NamedTuple):
    accuracy: float
    nmi: float


def load_news(n_documents: int) -> News:
    """Return a random sample of the training documents, and half as many test documents."""
    with gzip.open(TEXTS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rng = np.random.default_rng(0)
    train, test = ([row for row in rows if row["split"] == split] for split in ("train", "test"))
    train, test = (
        [part[i] for i in rng.permutation(len(part))[:size]]
        for part, size in ((train, n_documents), (test, n_documents // 2))
    )
    vectorizer = CountVectorizer(stop_words="english", min_df=10)
    X, X_test = (
        vectorizer.fit_transform(row["text"] for row in train),
        vectorizer.transform(row["text"] for row in test),
    )
    kept, kept_test = (np.flatnonzero(np.asarray(part.sum(axis=1)).ravel()) for part in (X, X_test))
    y, y_test = (np.array([row["label"] for row in part]) for part in (train, test))
    return News(X[kept], X_test[kept_test], y[kept], y_test[kept_test], vectorizer.get_feature_names_out())


def cluster_scores(clusters: Any, groups: Any) -> Cluster:
    """Return the share of documents in the group of their cluster, by the best assignment, and the NMI."""
    names, numbers = np.unique(groups, return_inverse=True)
    table = np.zeros((K_CLUSTERS, len(names)))
    np.add.at(table, (clusters, numbers), 1)
    rows, columns = linear_sum_assignment(-table)
    return Cluster(
        float(table[rows, columns].sum() / len(groups)), float(normalized_mutual_info_score(groups, clusters))
    )


def clusterings(news: News, seeds: Sequence[int]) -> dict[str, list[Cluster]]:
    """Return the scores of every method and seed."""
    tfidf = TfidfTransformer(sublinear_tf=True).fit_transform(news.X)
    k_means = {"n_clusters": K_CLUSTERS, "n_init": 3}
    methods: dict[str, Callable[[int], Any]] = {
        "PLSA": lambda seed: PLSA(K_CLUSTERS, random_state=seed).fit_transform(news.X).argmax(axis=1),
        "NMF, KL": lambda seed: NMF(K_CLUSTERS, solver="nmf", random_state=seed).fit_transform(news.X).argmax(axis=1),
        "NMF, squared, tf-idf": lambda seed: (
            NMF(K_CLUSTERS, loss="squared", random_state=seed).fit_transform(tfidf).argmax(axis=1)
        ),
        "LSI + k-means, tf-idf": lambda seed: KMeans(**k_means, random_state=seed).fit_predict(
            make_pipeline(LSA(K_CLUSTERS), Normalizer()).fit_transform(news.X)
        ),
        "k-means, counts": lambda seed: KMeans(**k_means, random_state=seed).fit_predict(
            Normalizer().transform(news.X)
        ),
        "k-means, tf-idf": lambda seed: KMeans(**k_means, random_state=seed).fit_predict(tfidf),
    }
    return {name: [cluster_scores(fit(seed), news.y) for seed in seeds] for name, fit in methods.items()}


def held_out(news: News, seeds: Sequence[int]) -> dict[str, list[float]]:
    """Return the completion perplexities of the test documents, folded in by the inference of each model.

    That of PLSA is maximum likelihood, as in the papers. The posterior under a learned prior, the default of
    `completion_perplexity`, would hide the overfitting of P(z|d) that the papers describe; it has its own entry.
    """
    learned = {"doc_topic_prior": "asymmetric-learned", "topic_word_prior": "symmetric-learned"}
    models: dict[str, Callable[[int], Any]] = {
        "PLSA": lambda seed: PLSA(K_TOPICS, random_state=seed, max_iter=500),
        POSTERIOR: lambda seed: PLSA(K_TOPICS, random_state=seed, max_iter=500),
        "PLSA, early stopping": lambda seed: PLSA(K_TOPICS, random_state=seed, early_stopping=EarlyStopping()),
        "PLSA, regularized": lambda seed: PLSA(
            K_TOPICS, random_state=seed, doc_topic_prior=1.2, topic_word_prior=Smoothing(0.02 * news.X.shape[1])
        ),
        "LDA, priors 1/K": lambda seed: LDA(K_TOPICS, random_state=seed),
        "LDA, learned priors": lambda seed: LDA(K_TOPICS, random_state=seed, **learned),
    }
    return {
        name: [
            float(
                make(seed)
                .fit(news.X)
                .completion_perplexity(news.X_test, inference="posterior" if name == POSTERIOR else "model")
            )
            for seed in seeds
        ]
        for name, make in models.items()
    }


def classifiers(news: News, seeds: Sequence[int]) -> dict[str, list[float]]:
    """Return the accuracies on the test documents."""
    logistic = LogisticRegression(max_iter=500, C=10)
    tfidf = make_pipeline(TfidfTransformer(sublinear_tf=True), logistic)
    found: dict[str, list[float]] = {
        "naive Bayes": [MultinomialNB(alpha=a).fit(news.X, news.y).score(news.X_test, news.y_test) for a in (1, 0.1)],
        "logistic regression, tf-idf": [tfidf.fit(news.X, news.y).score(news.X_test, news.y_test)],
        "TopicClassifier": [TopicClassifier().fit(news.X, news.y).score(news.X_test, news.y_test)],
        "logistic regression, P(z|d)": [],
    }
    for seed in seeds:
        topics = PLSA(K_TOPICS, random_state=seed, early_stopping=EarlyStopping()).fit(news.X)
        model = logistic.fit(topics.doc_topic_, news.y)
        found["logistic regression, P(z|d)"].append(model.score(topics.transform(news.X_test), news.y_test))
    return found


class Hierarchies(NamedTuple):
    """The tree of the names of groups (comp.graphics below comp) in three uses."""

    gap: float
    """Nats per token by which classes with mixtures of nodes are less likely than the frequencies of their words."""
    topics: float
    """Accuracy of topics for all nodes, all documents labeled."""
    leaves: list[float]
    """Accuracies with a few labels of leaves."""
    inner: list[float]
    """Accuracies with labels of inner nodes in addition, for half of the other documents."""


def hierarchies(news: News, seeds: Sequence[int]) -> Hierarchies:
    """Fit P(w|a) = sum_v P(v|a) P(w|v) over the nodes v above class a, topics for all nodes, and TopicClassifier."""
    leaves, classes = np.unique(news.y, return_inverse=True)
    parts = [tuple(leaf.split(".")) for leaf in leaves]
    nodes = sorted({part[:depth] for part in parts for depth in range(len(part))})
    above = np.array([[part[: len(node)] == node for node in nodes] for part in parts])
    above = above[:, above.sum(axis=0) > 1]
    path = [(a, *(len(leaves) + np.flatnonzero(row)).tolist()) for a, row in enumerate(above)]
    n_topics = len(leaves) + above.shape[1]

    counts = np.eye(len(leaves))[classes].T @ news.X
    mixed = PLSA(n_topics, doc_topic_prior=KnownTopics(path), solver="em", max_iter=5000, tol=1e-6, random_state=0)
    mixed.fit(counts)
    frequencies = normalize_rows(counts)[counts > 0]
    ratio = np.log(frequencies / (mixed.doc_topic_ @ mixed.components_)[counts > 0])
    gap = float((counts[counts > 0] * ratio).sum() / counts.sum())

    unigram = counts.sum(axis=0) / counts.sum()
    topics = PLSA(  # as TopicClassifier, with topics for inner nodes in addition
        n_topics,
        doc_topic_prior=[KnownTopics([path[a] for a in classes]), Dirichlet(3.0)],
        topic_word_prior=Smoothing(10.0, tuple(unigram)),
        init=(None, normalize_rows(np.vstack([counts, above.T @ counts]) + 10 * unigram)),
        solver="em",
        tol=0.05,
    ).fit(news.X)
    weights, inner = np.split(topics.transform(news.X_test), [len(leaves)], axis=1)
    weights = weights * (1 + (inner / (weights @ above)) @ above.T)  # a node's weight belongs to the leaves below it
    accuracy = float((leaves[weights.argmax(axis=1)] == news.y_test).mean())

    found: dict[str, list[float]] = {"leaves": [], "inner": []}
    first = [part[0] for part in parts]
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(classes))
        known = np.concatenate([order[classes[order] == a][:LABELS] for a in range(len(leaves))])
        y = np.full(len(classes), -1, dtype=object)
        y[known] = news.y[known]
        found["leaves"].append(TopicClassifier(random_state=0).fit(news.X, y).score(news.X_test, news.y_test))
        others = order[~np.isin(order, known)]
        for d in others[: len(others) // 2]:
            if first.count(first[classes[d]]) > 1:
                y[d] = first[classes[d]]
        model = TopicClassifier(separator=".", random_state=0).fit(news.X, y)
        found["inner"].append(model.score(news.X_test, news.y_test))
    return Hierarchies(gap, accuracy, **found)


def interval(values: Sequence[float], digits: int = 2) -> str:
    """Return the mean, and the least and largest value if there are several."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def judge_clusters(found: dict[str, list[Cluster]]) -> list[Finding]:
    nmi = {name: float(np.mean([score.nmi for score in scores])) for name, scores in found.items()}
    accuracy = {name: float(np.mean([score.accuracy for score in scores])) for name, scores in found.items()}
    text = {
        name: f"{name} {interval([s.accuracy for s in scores])}, NMI {interval([s.nmi for s in scores])}"
        for name, scores in found.items()
    }
    topics, lsi = ("PLSA", "NMF, KL"), "LSI + k-means, tf-idf"
    ahead = all(accuracy[name] > accuracy[lsi] and nmi[name] > nmi[lsi] for name in topics)
    behind = all(accuracy[name] < accuracy[lsi] and nmi[name] < nmi[lsi] for name in topics)
    beats = min(nmi["PLSA"], nmi["NMF, KL"], nmi["NMF, squared, tf-idf"]) > nmi["k-means, counts"]
    return [
        Finding(
            "PLSA and NMF cluster documents better than LSI (Gaussier and Goutte)",
            "NMF and PLSA outperform LSI in document clustering",
            "; ".join(text[name] for name in (*topics, "NMF, squared, tf-idf", lsi)),
            "true" if ahead else "false" if behind else "not always",
        ),
        Finding(
            "NMF clusters better than k-means (Zhang, Ding and Tang)",
            "NMF is successful in clustering, compared with k-means",
            "; ".join(text[name] for name in ("k-means, counts", "k-means, tf-idf")),
            verdict("true with the same weights of words", beats, nmi["NMF, squared, tf-idf"] > nmi["k-means, tf-idf"]),
        ),
    ]  # fmt: skip


def judge_held_out(found: dict[str, list[float]]) -> list[Finding]:
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    text = "; ".join(f"{name} {interval(values, 0)}" for name, values in found.items())
    fixed, learned = mean["LDA, priors 1/K"] / mean["PLSA"], mean["LDA, learned priors"] / mean["PLSA"]
    return [
        Finding(
            "LDA is better than PLSA (Saastamoinen)",
            "LDA avoids PLSA's overfitting and gives better results",
            f"completion perplexity of test documents: {text}",
            verdict("with priors of 1/K hardly, with learned priors clearly", 0.97 <= fixed < 1.03, learned < 0.97,
                    max(found["LDA, learned priors"]) < min(found["PLSA"])),
        ),
        Finding(
            "Regularized PLSA is as rich as LDA (Saastamoinen)",
            "regularization improves PLSA significantly",
            f"a smoothing prior on both factors, not tuned: {mean['PLSA, regularized']:.0f}; LDA with learned priors "
            f"{mean['LDA, learned priors']:.0f}",
            verdict("true, lower perplexity than LDA here", mean["PLSA, regularized"] < mean["LDA, learned priors"]),
        ),
    ]  # fmt: skip


def judge_classifiers(found: dict[str, list[float]], tree: Hierarchies) -> list[Finding]:
    text = "; ".join(f"{name} {interval(values)}" for name, values in found.items())
    features, words = max(found["logistic regression, P(z|d)"]), found["logistic regression, tf-idf"][0]
    return [
        Finding(
            "Topics as features for classification (Shashanka, Gaussier and Goutte)",
            "to be compared with standard machine learning algorithms",
            f"accuracy: {text}",
            verdict("50 topics lose to words", features < words),
        ),
        Finding(
            "Hierarchies for categorization (Gaussier and Goutte)",
            "hierarchical extensions are convenient for categorization, because classes are often in a tree",
            "all labels: mixtures of the nodes above each class are the frequencies of its words, which a flat model "
            f"has too (to {tree.gap:.1e} nats per token); accuracy with topics for all nodes {tree.topics:.2f}, for "
            f"classes only {found['TopicClassifier'][0]:.2f}; {LABELS} labels per class: {interval(tree.leaves)}, with "
            f"labels of inner nodes for half of the other documents {interval(tree.inner)}",
            verdict(
                "no gain if all leaves are known; labels of inner nodes help",
                tree.gap < 1e-3,
                tree.topics < found["TopicClassifier"][0] + 0.01,
                np.mean(tree.inner) > np.mean(tree.leaves),
            ),
        ),
        Finding(
            "Topics tied to classes (ours)",
            "(not in the papers)",
            f"TopicClassifier {found['TopicClassifier'][0]:.3f}, naive Bayes {max(found['naive Bayes']):.3f}",
            verdict("at least naive Bayes", found["TopicClassifier"][0] >= max(found["naive Bayes"]) - 0.005),
        ),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__ or "")
    parser.add_argument("--documents", type=int, help="number of training documents (1500; with --quick 800)")
    parser.add_argument("--seeds", type=int, help="number of seeds (3; with --quick 1)")
    options = parse_options(parser, argv)
    if not TEXTS.is_file():
        print(f"Skipped: there is no {TEXTS}; set POLYSEME_DATA.")
        return
    news = load_news(options.documents or (800 if options.quick else 1500))
    seeds = range(options.seeds or (1 if options.quick else 3))
    clusters = clusterings(news, seeds)
    show(
        f"Clusters of {len(news.y)} documents",
        ("method", "accuracy", "NMI"),
        [(n, interval([s.accuracy for s in v]), interval([s.nmi for s in v])) for n, v in clusters.items()],
    )
    perplexities, accuracies = held_out(news, seeds), classifiers(news, seeds)
    findings = [
        *judge_clusters(clusters),
        *judge_held_out(perplexities),
        *judge_classifiers(accuracies, hierarchies(news, seeds)),
    ]
    conclude("newsgroups", findings, options)


if __name__ == "__main__":
    main()
