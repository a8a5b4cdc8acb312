"""Classification of 20 Newsgroups by date: TopicClassifier against naive Bayes and logistic regression.

All methods get the same counts (scikit-learn's CountVectorizer, words of at least three training documents) and the
same labels: those of all training documents, or of ten documents of each group, in several random draws. With few
labels, TopicClassifier also reads the unlabeled training documents; so do naive Bayes and logistic regression with
scikit-learn's self-training. Settings are defaults; docs/labels.md says how they were chosen. Naive Bayes is shown with
several values of alpha; a comparison with the best one favors it.

    python benchmarks/labels.py [--labels 10] [--draws 5] [--documents 18846] [--cross-validate]

--cross-validate compares settings on training documents only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import SelfTrainingClassifier

from common import NEWS_TEXTS, THREADS, describe_machine, load_lines, report_figure
from polyseme import TopicClassifier

ALPHAS = (1.0, 0.1, 0.01)
MARGIN = 0.10
"""Required lead over both methods without unlabeled documents."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"doc_smoothing": 0.5},
    {"doc_smoothing": 4.0},
    {"topic_smoothing": 100.0},
    {"background": 0.0},
    {"background": 0.5},
    {"n_shared": 0},
    {"n_shared": 1},
    {"topics_per_class": 2},
    {"unlabeled_weight": 0.3},
)


def ours(**settings: Any) -> TopicClassifier:
    return TopicClassifier(random_state=0, n_jobs=THREADS, **settings)


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=300)


class Corpus:
    """Counts and labels of the training and test documents."""

    def __init__(self, n_documents: int) -> None:
        lines = load_lines(NEWS_TEXTS)
        chosen = np.sort(np.random.default_rng(0).permutation(len(lines))[:n_documents])
        rows = [lines[row] for row in chosen]
        train, test = ([row for row in rows if row["split"] == split] for split in ("train", "test"))
        vectorizer = CountVectorizer(min_df=3)
        self.X = vectorizer.fit_transform(row["text"] for row in train)
        self.X_test = vectorizer.transform(row["text"] for row in test)
        self.y, self.y_test = (np.array([row["label"] for row in part]) for part in (train, test))
        print(f"{len(train)} training and {len(test)} test documents, {self.X.shape[1]} words")

    def draw(self, n_labels: int, seed: int, rows: Any = slice(None)) -> Any:
        """Return the training labels with -1 for all but `n_labels` documents of each group."""
        rng, y = np.random.default_rng(seed), self.y[rows]
        kept = np.concatenate([rng.permutation(np.flatnonzero(y == group))[:n_labels] for group in np.unique(y)])
        labels = np.full(len(y), -1, dtype=object)
        labels[kept] = y[kept]
        return labels

    def accuracy(self, model: Any) -> float:
        return float((model.predict(self.X_test) == self.y_test).mean())


def all_labels(corpus: Corpus) -> None:
    model = ours().fit(corpus.X, corpus.y)
    bayes = {alpha: corpus.accuracy(MultinomialNB(alpha=alpha).fit(corpus.X, corpus.y)) for alpha in ALPHAS}
    loss = log_loss(corpus.y_test, model.predict_proba(corpus.X_test), labels=model.classes_)
    print("\n| all labels | accuracy |\n|---|---|")
    print(f"| TopicClassifier | {corpus.accuracy(model):.4f} |")
    for alpha, accuracy in bayes.items():
        print(f"| naive Bayes, alpha = {alpha:g} | {accuracy:.4f} |")
    print(f"log loss of TopicClassifier: {loss:.3f}")
    report_figure(
        "accuracy with all labels, above naive Bayes (best alpha)",
        f"{100 * (corpus.accuracy(model) - max(bayes.values())):.1f} points",
        "at least 0",
    )


def few_labels(corpus: Corpus, n_labels: int, draws: int) -> None:
    methods: dict[str, Callable[[Any], Any]] = {
        "TopicClassifier": lambda y: ours().fit(corpus.X, y),
        "TopicClassifier without unlabeled documents": lambda y: labeled_only(ours(), corpus.X, y),
        **{
            f"naive Bayes, alpha = {alpha:g}": lambda y, alpha=alpha: labeled_only(
                MultinomialNB(alpha=alpha), corpus.X, y
            )
            for alpha in ALPHAS
        },
        "naive Bayes with self-training": lambda y: self_training(MultinomialNB(alpha=0.01), corpus.X, y),
        "logistic regression": lambda y: labeled_only(logistic(), corpus.X, y),
        "logistic regression with self-training": lambda y: self_training(logistic(), corpus.X, y),
    }
    found = {
        name: [corpus.accuracy(fit(corpus.draw(n_labels, seed))) for seed in range(draws)]
        for name, fit in methods.items()
    }
    print(f"\n| {n_labels} labels per group, {draws} draws | mean accuracy | least | largest |\n|---|---|---|---|")
    for name, accuracies in found.items():
        print(f"| {name} | {np.mean(accuracies):.4f} | {min(accuracies):.4f} | {max(accuracies):.4f} |", flush=True)
    others = [name for name in found if name.startswith(("naive", "logistic")) and "self-training" not in name]
    leads = np.min([np.subtract(found["TopicClassifier"], found[name]) for name in others], axis=0)
    report_figure(
        f"accuracy with {n_labels} labels per group, least lead over naive Bayes and logistic regression",
        f"{100 * leads.min():.1f} points",
        f"at least {100 * MARGIN:.0f}",
    )


def labeled_only(model: Any, X: Any, y: Any) -> Any:
    rows = np.flatnonzero(y != -1)
    return model.fit(X[rows], y[rows].astype(str))


def self_training(model: Any, X: Any, y: Any) -> Any:
    return SelfTrainingClassifier(model, max_iter=3).fit(X, y)


def cross_validate(corpus: Corpus, n_labels: int) -> None:
    """Print the accuracy of settings on a quarter of the training documents that the fits do not use."""
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    train, held_out = next(iter(folds.split(corpus.X, corpus.y)))
    print(f"\n| settings | all labels | {n_labels} labels, two draws |\n|---|---|---|")
    for settings in SETTINGS:
        score = [
            (ours(**settings).fit(corpus.X[train], y).predict(corpus.X[held_out]) == corpus.y[held_out]).mean()
            for y in (corpus.y[train], corpus.draw(n_labels, 100, train), corpus.draw(n_labels, 101, train))
        ]
        print(f"| {settings or 'default'} | {score[0]:.4f} | {score[1]:.4f}, {score[2]:.4f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--documents", type=int, default=18846)
    parser.add_argument("--cross-validate", action="store_true")
    args = parser.parse_args()
    describe_machine()
    corpus = Corpus(args.documents)
    if args.cross_validate:
        cross_validate(corpus, args.labels)
        return
    all_labels(corpus)
    few_labels(corpus, args.labels, args.draws)


if __name__ == "__main__":
    main()
