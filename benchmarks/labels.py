"""Classification of 20 Newsgroups by date: TopicClassifier against naive Bayes and logistic regression.

All methods get the same counts (scikit-learn's CountVectorizer, words of at least three training documents) and the
same labels: those of all training documents, or of ten documents of each group, in several random draws. With few
labels, TopicClassifier also reads the unlabeled training documents; so do naive Bayes and logistic regression with
scikit-learn's self-training. Settings are defaults; docs/labels.md says how they were chosen. Naive Bayes is shown with
several values of alpha; a comparison with the best one favors it.

    python benchmarks/labels.py [--labels 10] [--draws 5] [--documents 18846] [--cross-validate | --unbalanced | --tree]

--cross-validate compares settings on training documents only. --unbalanced compares uses of unlabeled documents where
classes have unequal sizes, with the same number of labels for each class and with labels drawn in proportion; alphas
are the best ones on the test documents. The newswire is in the files r8-train-all-terms.txt and r8-test-all-terms.txt
(lines of class, tab, text; the eight largest classes of Reuters-21578) in the folder text of POLYSEME_DATA, and is left
out if there are none. --tree takes the names of newsgroups as paths (comp.graphics); half of the documents that have no
label of a leaf have that of an inner node (comp) if there are several leaves below it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import SelfTrainingClassifier

from common import DATA, NEWS_TEXTS, THREADS, describe_machine, load_counts, load_lines, report_figure, require_file
from polyseme import TopicClassifier
from polyseme.datasets import synthetic_corpus

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

EIGHT_GROUPS = {
    "rec.sport.hockey": 1.0, "sci.med": 0.4, "talk.politics.guns": 0.2, "rec.autos": 0.12, "misc.forsale": 0.1,
    "sci.space": 0.08, "soc.religion.christian": 0.07, "comp.graphics": 0.07,
}  # fmt: skip
"""Groups and the share of their documents that is kept: the largest class has half of the documents."""
LIKE_NEWSWIRE = {
    "comp": 1.0, "rec.sport": 1.0, "sci.med": 0.43, "talk.politics.guns": 0.4, "rec.autos": 0.36, "misc.forsale": 0.33,
    "sci.space": 0.2, "alt.atheism": 0.1,
}  # fmt: skip
"""Groups that begin with a name, with shares similar to those of the eight largest classes of Reuters-21578."""
NEWSWIRE = [DATA / "text" / f"r8-{part}-all-terms.txt" for part in ("train", "test")]
NEAR = 0.01
"""Accuracy that a mean may lose to the fit without unlabeled documents."""


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

    def accuracy(self, model: Any) -> float:
        return float((model.predict(self.X_test) == self.y_test).mean())


def draw_labels(y: Any, n_labels: int, seed: int) -> Any:
    """Return the labels with -1 for all but `n_labels` documents of each class."""
    rng = np.random.default_rng(seed)
    return only_labels(
        y, np.concatenate([rng.permutation(np.flatnonzero(y == name))[:n_labels] for name in np.unique(y)])
    )


def draw_in_proportion(y: Any, n_labels: int, seed: int) -> Any:
    """Return the labels with -1 for all but `n_labels` documents per class, drawn at random, at least one of each."""
    order = np.random.default_rng(seed).permutation(len(y))
    first = [order[y[order] == name][:1] for name in np.unique(y)]
    return only_labels(y, np.concatenate([*first, order[: n_labels * len(first)]]))


def only_labels(y: Any, kept: Any) -> Any:
    labels = np.full(len(y), -1, dtype=object)
    labels[kept] = y[kept]
    return labels


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
        name: [corpus.accuracy(fit(draw_labels(corpus.y, n_labels, seed))) for seed in range(draws)]
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


def unbalanced_news(kept: dict[str, float]) -> tuple[Any, Any, Any, Any]:
    """Return counts and classes of training and test documents of which a share of each class is kept."""
    lines, rng = load_lines(NEWS_TEXTS), np.random.default_rng(0)
    parts = []
    for split in ("train", "test"):
        rows = [row for row in lines if row["split"] == split]
        part = []
        for name, share in kept.items():
            members = [row["text"] for row in rows if row["label"].startswith(name)]
            part += [(members[i], name) for i in rng.permutation(len(members))[: round(share * len(members))]]
        parts.append(part)
    vectorizer = CountVectorizer(min_df=3, dtype=np.float32)
    X = vectorizer.fit_transform(text for text, _ in parts[0])
    X_test = vectorizer.transform(text for text, _ in parts[1])
    return X, X_test, *(np.array([name for _, name in part]) for part in parts)


def newswire() -> tuple[Any, Any, Any, Any]:
    """Return counts and classes of the eight largest classes of Reuters-21578."""
    parts = [[line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()] for path in NEWSWIRE]
    vectorizer = CountVectorizer(min_df=3, dtype=np.float32)
    X = vectorizer.fit_transform(text for _, text in parts[0])
    X_test = vectorizer.transform(text for _, text in parts[1])
    return X, X_test, *(np.array([name for name, _ in part]) for part in parts)


def counts_with_labels(name: str, table: str, column: str) -> tuple[Any, Any, Any, Any]:
    """Return counts and classes of training and test documents, split at random."""
    header, *rows = (line.split("\t") for line in require_file(DATA / "counts" / table).read_text().splitlines())
    y = np.array([row[header.index(column)] for row in rows])
    return tuple(train_test_split(load_counts(DATA / "counts" / name), y, test_size=0.4, random_state=0))


def synthetic() -> tuple[Any, Any, Any, Any]:
    """Return a corpus drawn from LDA whose classes are the largest topics of documents, with halving shares."""
    prior = 2.0 * np.maximum(0.5 ** np.arange(8), 0.03)
    drawn = synthetic_corpus(
        3000,
        n_words=1000,
        n_topics=8,
        length=60.0,
        doc_topic_prior=prior / prior.sum(),
        topic_word_prior=0.05,
        random_state=0,
    )
    y = np.array([f"topic {topic}" for topic in drawn.doc_topic().argmax(axis=1)])
    return tuple(train_test_split(drawn.counts(), y, test_size=0.4, random_state=0))


def unbalanced(n_labels: int, draws: int) -> None:
    """Print accuracy and macro F1 with classes of unequal sizes, and the most that unlabeled documents cost."""
    corpora: dict[str, Callable[[], tuple[Any, Any, Any, Any]]] = {
        "8 groups, the largest has half": lambda: unbalanced_news(EIGHT_GROUPS),
        "newsgroups, sizes as in newswire": lambda: unbalanced_news(LIKE_NEWSWIRE),
        "cell types": lambda: counts_with_labels("pbmc_facs.npz", "pbmc_facs.labels.tsv", "celltype"),
        "weblogs": lambda: counts_with_labels("poliblog5k.npz", "poliblog5k.documents.tsv", "blog"),
        "synthetic": synthetic,
    }
    if all(path.is_file() for path in NEWSWIRE):
        corpora = {"newswire": newswire, **corpora}
    else:
        print(f"newswire is left out: there is no {NEWSWIRE[0]} or {NEWSWIRE[1]}")
    methods: dict[str, list[Callable[[Any, Any], Any]]] = {
        "auto": [lambda X, y: ours().fit(X, y)],
        "any": [lambda X, y: ours(unlabeled="any").fit(X, y)],
        "none": [lambda X, y: ours(unlabeled="none").fit(X, y)],
        "naive Bayes": [lambda X, y, a=a: labeled_only(MultinomialNB(alpha=a), X, y) for a in ALPHAS],
        "self-training": [lambda X, y, a=a: self_training(MultinomialNB(alpha=a), X, y) for a in ALPHAS],
    }
    print(f"\nmean accuracy / macro F1 of {draws} draws of labels")
    print("| documents | labels | auto | any | none | naive Bayes | self-training | auto chose |\n" + "|---" * 8 + "|")
    losses = []
    for name, load in corpora.items():
        X, X_test, y, y_test = load()
        for kind in ("per class", "in proportion"):
            found: dict[str, list[Any]] = {method: [] for method in methods}
            chosen = []
            for seed in range(draws):
                labels = (draw_labels if kind == "per class" else draw_in_proportion)(y, n_labels, seed)
                for method, fits in methods.items():
                    models = [fit(X, labels) for fit in fits]
                    if method == "auto":
                        chosen.append(models[0].unlabeled_)
                    predicted = [model.predict(X_test) for model in models]
                    scores = [((p == y_test).mean(), f1_score(y_test, p, average="macro")) for p in predicted]
                    found[method].append(max(scores))
            means = {method: np.mean(scores, axis=0) for method, scores in found.items()}
            losses.append(means["none"][0] - means["auto"][0])
            cells = " | ".join(f"{accuracy:.3f} / {f1:.3f}" for accuracy, f1 in means.values())
            print(f"| {name} | {n_labels} {kind} | {cells} | {', '.join(chosen)} |", flush=True)
    report_figure(
        "accuracy that unlabeled documents cost with unequal classes, most of all rows (mean)",
        f"{100 * max(losses):.1f} points ({100 * np.mean(losses):.1f})",
        f"at most {100 * NEAR:.0f}",
    )


def tree(corpus: Corpus, n_labels: int, draws: int) -> None:
    """Print accuracies of leaves and of their first parts with labels of leaves, and with labels of inner nodes too."""
    y, y_test = corpus.y, corpus.y_test
    firsts = [first_part(leaf) for leaf in np.unique(y)]
    methods: dict[str, Callable[[Any, Any], Any]] = {
        "TopicClassifier, leaves only": lambda leaves, _: ours().fit(corpus.X, leaves).predict(corpus.X_test),
        "TopicClassifier, inner nodes too": lambda _, paths: (
            ours(separator=".").fit(corpus.X, paths).predict(corpus.X_test)
        ),
        "naive Bayes, leaves only": lambda leaves, _: best_bayes(corpus, leaves, None),
        "naive Bayes by levels, inner nodes too": lambda leaves, paths: best_bayes(corpus, leaves, paths),
    }
    found: dict[str, list[Any]] = {method: [] for method in methods}
    for seed in range(draws):
        leaves = draw_labels(y, n_labels, seed)
        others = np.random.default_rng(seed).permutation(np.flatnonzero(leaves == -1))
        paths = leaves.copy()
        for row in others[: len(others) // 2]:
            if firsts.count(first_part(y[row])) > 1:
                paths[row] = first_part(y[row])
        for method, predict in methods.items():
            predicted = predict(leaves, paths)
            same_first = [first_part(path) == first_part(truth) for path, truth in zip(predicted, y_test, strict=True)]
            found[method].append([(predicted == y_test).mean(), np.mean(same_first)])
    print(f"\n| {n_labels} leaves per group, {draws} draws | accuracy of leaves | of first parts |\n|---|---|---|")
    for method, scores in found.items():
        leaf, first = np.mean(scores, axis=0)
        print(f"| {method} | {leaf:.3f} | {first:.3f} |", flush=True)
    gains = np.subtract(found["TopicClassifier, inner nodes too"], found["TopicClassifier, leaves only"])
    report_figure(
        f"accuracy with {n_labels} leaves per group, least gain by labels of inner nodes",
        f"{100 * gains[:, 0].min():.1f} points",
        "at least 0",
    )


def first_part(path: str) -> str:
    return path.split(".")[0]


def best_bayes(corpus: Corpus, leaves: Any, paths: Any) -> Any:
    """Return the leaves that naive Bayes predicts, with the best alpha; with paths, below the first part it predicts.

    Labels of inner nodes are missing where there is one leaf, so their shares are no prior.
    """
    predictions = []
    for alpha in ALPHAS:
        model = labeled_only(MultinomialNB(alpha=alpha), corpus.X, leaves)
        scores = model.predict_joint_log_proba(corpus.X_test)
        if paths is not None:
            y = np.array([path if path == -1 else first_part(path) for path in paths], dtype=object)
            first = labeled_only(MultinomialNB(alpha=alpha, fit_prior=False), corpus.X, y).predict(corpus.X_test)
            below = np.array([first_part(leaf) for leaf in model.classes_]) == first[:, np.newaxis]
            scores = np.where(below, scores, -np.inf)
        predictions.append(model.classes_[scores.argmax(axis=1)])
    return max(predictions, key=lambda predicted: (predicted == corpus.y_test).mean())


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
            for y in (
                corpus.y[train],
                draw_labels(corpus.y[train], n_labels, 100),
                draw_labels(corpus.y[train], n_labels, 101),
            )
        ]
        print(f"| {settings or 'default'} | {score[0]:.4f} | {score[1]:.4f}, {score[2]:.4f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--documents", type=int, default=18846)
    for option in ("--cross-validate", "--unbalanced", "--tree"):
        parser.add_argument(option, action="store_true")
    args = parser.parse_args()
    describe_machine()
    if args.unbalanced:
        unbalanced(args.labels, args.draws)
        return
    corpus = Corpus(args.documents)
    if args.cross_validate:
        cross_validate(corpus, args.labels)
        return
    if args.tree:
        tree(corpus, args.labels, args.draws)
        return
    all_labels(corpus)
    few_labels(corpus, args.labels, args.draws)


if __name__ == "__main__":
    main()
