"""Tests of held-out scores and of choices that are based on them: errors of version 0.1, before and after.

split       covariance of the halves of the completion split on 20 Newsgroups, and the best number of topics by it;
            "before" held out floor(x / 2) tokens of every count x, "naive" tosses a coin for every token
errors      standard error of the completion perplexity of samples of 20 Newsgroups, with one split and with ten; how
            much another seed of the split changes the perplexity; and how often two standard errors contain the
            perplexity of all documents
early       completion perplexity of new documents after complete fits and after early stopping: "before" held out a
            tenth of the tokens of every training document, "now" holds out documents in five folds; and the iterations
            of `HeldOutTempered`, which "before" ended after 200
shrink      probability of the second half of documents of 3 to 100 tokens given the first: weights by maximum
            likelihood ("before"), and by the posterior under the prior learned from the training documents
short       completion perplexity of short texts (subjects and first sentences of 20 Newsgroups, drawn documents of 5
            to 20 tokens): PLSA by folding in ("before") and by the posterior, LDA with learned priors, the correlated
            topic model, and the unigram
starts      spread of held-out scores over starts at one number of topics, and the standard errors of `select_n_topics`
            without this spread ("before") and with it
planted     how often `select_n_topics` finds the number of topics of a corpus, or that there are none; the seeds were
            not used to choose its settings

    python benchmarks/judging.py [--parts split errors shrink short starts planted early] [--quick]
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations, cycle, pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from common import AP, NEWS_TEXTS, NEWSGROUPS, describe_machine, load_counts, load_lines, report_figure
from polyseme import LDA, PLSA, CorrelatedTopicModel
from polyseme.core.shard import sparse_counts, split_tokens
from polyseme.datasets import synthetic_corpus
from polyseme.kernels import Floats, SparseCounts
from polyseme.metrics.evaluation import mean_and_error
from polyseme.metrics.words import fitted_topics
from polyseme.selection import select_n_topics
from polyseme.selection.cross_validation import COMPLETION, score_documents, score_held_out
from polyseme.selection.n_topics import default_estimator
from polyseme.solvers import EarlyStopping, HeldOutTempered
from polyseme.text import Vectorizer

Split = Callable[[SparseCounts, int], Floats]
"""Returns the held-out part of every count, for a seed."""
N_SPLITS = 5


# The completion split.


def split_before(counts: SparseCounts, seed: int) -> Floats:
    """Hold out floor(x / 2) tokens of every count, and one more of odd counts with probability 1/2."""
    x = counts.values.astype(np.float64)
    more = np.random.default_rng(seed).random(x.size) < 0.5
    return np.floor(x / 2) + np.where(x % 2 == 1, more, 0.0)


def split_now(counts: SparseCounts, seed: int) -> Floats:
    return split_tokens(counts, seed)[1]


def split_naively(counts: SparseCounts, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    tokens = np.repeat(np.arange(counts.values.size), counts.values.astype(np.int64))
    return np.bincount(tokens, weights=rng.random(tokens.size) < 0.5, minlength=counts.values.size)


SPLITS: dict[str, Split] = {"before": split_before, "now": split_now, "naive": split_naively}


class Covariance(NamedTuple):
    """Covariance of the sides (0 or 1) of two tokens, with the standard error that independent tokens would have."""

    value: float
    error: float


def same_word(x: Floats, side: Floats) -> Covariance:
    """Return the covariance of two tokens of one word in one document. `side` is the held-out count minus x / 2."""
    pairs = x * (x - 1)
    total = pairs.sum()
    # the sum over pairs of (s_i - 1/2)(s_j - 1/2) has variance n (n - 1) / 8 for n tokens
    return Covariance(float((side**2 - x / 4).sum() / total), float(np.sqrt((2 * pairs / 16).sum()) / total))


def grouped(x: Floats, side: Floats, groups: np.ndarray) -> Covariance:
    """Return the covariance of two tokens of one group that belong to different counts."""
    sums, inside = (np.bincount(groups, weights=values) for values in (side, side**2))
    sizes, squares = (np.bincount(groups, weights=values) for values in (x, x**2))
    pairs = sizes**2 - squares
    total = pairs.sum()
    return Covariance(float((sums**2 - inside).sum() / total), float(np.sqrt((2 * pairs / 16).sum()) / total))


def covariances(counts: SparseCounts, split: Split) -> dict[str, Covariance]:
    x = counts.values.astype(np.float64)
    side = split(counts, 0) - x / 2
    rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
    found = {f"same word and document, {n} tokens": same_word(x[x == n], side[x == n]) for n in (2, 3, 4, 5)}
    return {
        **found,
        "same word and document, 6 tokens or more": same_word(x[x >= 6], side[x >= 6]),
        "two words of a document": grouped(x, side, rows),
        "a word in two documents": grouped(x, side, counts.indices),
    }


def part_split(quick: bool) -> None:
    X = load_counts(NEWSGROUPS)
    counts = sparse_counts(X, np.dtype(np.float32))
    found = {name: covariances(counts, split) for name, split in SPLITS.items()}
    print("Covariance of the sides of two tokens (at most 0.25 in absolute value), and in standard errors")
    print("| tokens | " + " | ".join(SPLITS) + " |")
    print("|---" * (len(SPLITS) + 1) + "|")
    for what in found["now"]:
        cells = [f"{found[name][what].value:+.5f} ({_errors(found[name][what]):+.1f})" for name in SPLITS]
        print(f"| {what} | {' | '.join(cells)} |", flush=True)
    for name in SPLITS:
        worst = max(found[name].values(), key=lambda covariance: abs(_errors(covariance)))
        report_figure(
            f"largest covariance of the halves, {name}, 20 Newsgroups",
            f"{worst.value:+.5f}, {abs(_errors(worst)):.1f} standard errors",
            "at most 3.5 standard errors" if name == "now" else "",
        )
    _best_number(X, quick)


def _errors(covariance: Covariance) -> float:
    return covariance.value / covariance.error


def _best_number(X: sp.csr_array, quick: bool) -> None:
    rows = np.random.default_rng(0).permutation(X.shape[0])[: 1500 if quick else 5000]
    cut = len(rows) * 4 // 5
    train, test = X[rows[:cut]], X[rows[cut:]]
    numbers = (5, 10, 20, 40) if quick else (5, 10, 20, 40, 80, 160)
    counts = sparse_counts(test, np.dtype(np.float32))
    print(f"\nCompletion perplexity of PLSA with folding in, mean of {N_SPLITS} splits of each kind (standard error)")
    print("| topics | " + " | ".join(SPLITS) + " | before / naive |")
    print("|---" * (len(SPLITS) + 2) + "|")
    table = []
    for n_topics in numbers:
        fitted = fitted_topics(PLSA(n_topics, random_state=0).fit(train))
        assert fitted is not None
        scores = np.empty((len(SPLITS), N_SPLITS))
        for row, split in enumerate(SPLITS.values()):
            for seed in range(N_SPLITS):
                held_out = split(counts, seed)
                observed, scored = counts.with_values(counts.values - held_out), counts.with_values(held_out)
                found = score_held_out(fitted, COMPLETION, observed, scored, 0.01, n_threads=2)
                scores[row, seed] = found.perplexity
        means, errors = scores.mean(axis=1), scores.std(axis=1, ddof=1) / N_SPLITS**0.5
        table.append(means)
        cells = " | ".join(f"{mean:.0f} ({error:.0f})" for mean, error in zip(means, errors, strict=True))
        print(f"| {n_topics} | {cells} | {means[0] / means[2]:.3f} |", flush=True)
    best = [numbers[int(np.argmin(column))] for column in np.transpose(table)]
    report_figure("best number of topics by split: " + ", ".join(SPLITS), ", ".join(map(str, best)))


# The standard error.


def part_errors(quick: bool) -> None:
    X = load_counts(NEWSGROUPS)
    rows = np.random.default_rng(0).permutation(X.shape[0])[: 4000 if quick else None]
    training, new = X[rows[:2000]], X[rows[2000:]]
    model = PLSA(20, random_state=0).fit(training)
    rng = np.random.default_rng(1)
    print("| documents | splits | standard error | over seeds of the split | within two standard errors |")
    print("|---|---|---|---|---|")
    for n_splits in (1, 10):
        reports = [model.completion_report(new, random_state=seed, n_splits=n_splits) for seed in range(N_SPLITS)]
        for n_documents in (100, 600):
            errors, spreads, covered = [], [], []
            for _ in range(1000):
                sample = rng.choice(new.shape[0], n_documents, replace=False)
                found = [mean_and_error(one.document_logs[sample], one.document_tokens[sample]) for one in reports]
                mean, error = found[0]
                errors.append(error)
                spreads.append(np.std([one[0] for one in found], ddof=1))
                covered.append(abs(mean + np.log(reports[0].perplexity)) < 2 * error)
            share = f"{np.mean(covered):.1%}"
            print(
                f"| {n_documents} | {n_splits} | {np.mean(errors):.2%} | {np.mean(spreads):.2%} | {share} |", flush=True
            )
            what = f"two standard errors contain the perplexity, {n_documents} documents, splits: {n_splits}"
            report_figure(what, share, "93% to 97%" if n_documents == 600 else "")


# Early stopping.

STOPPING = {"complete": None, "before": EarlyStopping(folds=1, by="words"), "now": EarlyStopping()}


def sampled_corpora(seed: int, n_docs: int) -> dict[str, sp.csr_array]:
    """Return documents of three corpora, with words that occur in at least three of them."""
    corpora = {"Associated Press": load_counts(AP), "20 Newsgroups": load_counts(NEWSGROUPS)}
    found = {}
    for name, X in corpora.items():
        rows = X[np.random.default_rng(seed).permutation(X.shape[0])[:n_docs]]
        found[name] = rows[:, np.bincount(rows.indices, minlength=rows.shape[1]) >= 3]
    drawn = synthetic_corpus(
        n_docs, n_words=2000, n_topics=20, length=80, topic_word_prior=0.05, random_state=seed
    ).counts()
    return {**found, "synthetic, 20 topics": sp.csr_array(drawn)}


def part_early(quick: bool) -> None:
    n_docs, seeds = (300, range(2)) if quick else (1200, range(5))
    found: dict[tuple[str, int], list[list[float]]] = {}
    schedules: dict[tuple[str, int], list[PLSA]] = {}
    for seed in seeds:
        for name, X in sampled_corpora(seed, n_docs).items():
            cut = X.shape[0] * 4 // 5
            for n_topics in (20, 50):
                settings = {"random_state": seed, "dtype": "float32"}
                fits = [PLSA(n_topics, early_stopping=rule, **settings).fit(X[:cut]) for rule in STOPPING.values()]
                scores = [fit.completion_perplexity(X[cut:]) for fit in fits]
                found.setdefault((name, n_topics), []).append(scores)
                if seed == 0:
                    limits = (200, None)
                    schedules[name, n_topics] = [
                        PLSA(n_topics, solver=HeldOutTempered(), max_iter=limit, **settings).fit(X[:cut])
                        for limit in limits
                    ]
    print(f"Completion perplexity of new documents, mean of {len(seeds)} seeds ({n_docs * 4 // 5} training documents)")
    print("| corpus | topics | " + " | ".join(STOPPING) + " | now / complete, per seed |")
    print("|---" * (len(STOPPING) + 3) + "|")
    for (name, n_topics), rows in found.items():
        table = np.array(rows)
        ratios = " ".join(f"{ratio:.3f}" for ratio in table[:, 2] / table[:, 0])
        cells = " | ".join(f"{mean:.0f}" for mean in table.mean(axis=0))
        print(f"| {name} | {n_topics} | {cells} | {ratios} |", flush=True)
        means = ", ".join(f"{mean:.0f}" for mean in table.mean(axis=0))
        report_figure(f"perplexity, {name}, K = {n_topics}: " + ", ".join(STOPPING), means)
    print("\nIterations of HeldOutTempered: before, now (whether it ended by itself)")
    for (name, n_topics), fits in schedules.items():
        cells = ", ".join(f"{fit.n_iter_} ({'yes' if fit.converged_ else 'no'})" for fit in fits)
        print(f"{name}, {n_topics} topics: {cells}", flush=True)


# Weights of short documents.

LENGTHS = (3, 10, 30, 100)


def cut_documents(X: sp.csr_array, length: int, seed: int) -> sp.csr_array:
    """Return `length` random tokens of every document that has at least as many."""
    rng = np.random.default_rng(seed)
    rows = []
    for start, stop in pairwise(X.indptr):
        tokens = np.repeat(X.indices[start:stop], X.data[start:stop].astype(np.int64))
        if tokens.size >= length:
            chosen, counts = np.unique(rng.choice(tokens, length, replace=False), return_counts=True)
            rows.append(sp.csr_array((counts, (np.zeros(chosen.size, dtype=np.int64), chosen)), (1, X.shape[1])))
    return sp.csr_array(sp.vstack(rows, format="csr")).astype(np.float32)


def part_shrink(quick: bool) -> None:
    X = load_counts(NEWSGROUPS)
    rows = np.random.default_rng(0).permutation(X.shape[0])
    train, test = X[rows[: 1500 if quick else 4000]], X[rows[4000 : 4300 if quick else 5500]]
    print("Nats per token of the second half of a document over the unigram, given its first half (1% of the unigram)")
    print("| topics | tokens | before: maximum likelihood | now: posterior | concentration |")
    print("|---|---|---|---|---|")
    worst = np.inf
    for n_topics in (20,) if quick else (20, 60):
        model = PLSA(n_topics, random_state=0).fit(train)
        for length in LENGTHS:
            new = cut_documents(test, length, length)
            before, now = (gain_over_unigram(model, new, inference) for inference in ("model", "posterior"))
            worst = min(worst, now - before)
            prior = model._fitted.document_prior.sum()
            print(f"| {n_topics} | {length} | {before:+.3f} | {now:+.3f} | {prior:.2g} |", flush=True)
            report_figure(f"posterior over likelihood, {length} tokens, K = {n_topics}", f"{now - before:+.3f} nats")
    report_figure("posterior over likelihood, the least", f"{worst:+.3f} nats", "at least 0")


def gain_over_unigram(model: PLSA, X: sp.csr_array, inference: str) -> float:
    """Return the mean gain of completion over the unigram, over N_SPLITS splits."""
    gains = []
    for seed in range(N_SPLITS):
        scores = score_documents(model, X, seed=seed, inference=inference)
        gains.append(scores.gain_over_unigram()[0])
    return float(np.mean(gains))


# Short texts.

N_SHORT_TOPICS = (10, 30)


def short_corpora(n_docs: int) -> Iterator[tuple[str, sp.csr_array]]:
    """Yield names and counts of corpora of short documents, each with at least two counted words."""
    lines = load_lines(NEWS_TEXTS)
    rows = np.random.default_rng(0).permutation(len(lines))[:n_docs]
    subjects = [re.sub(r"^(re|fwd?): *", "", lines[row]["subject"], flags=re.I) for row in rows]
    sentences = [_first_sentence(lines[row]["text"]) for row in rows]
    for name, texts in (("subjects", subjects), ("first sentences", sentences)):
        X = sp.csr_array(Vectorizer(language="english", min_df=5, max_df=0.5).fit_transform(texts))
        yield name, X[X.sum(axis=1) >= 2]
    for length in (5, 10, 20):
        drawn = synthetic_corpus(n_docs // 2, n_topics=10, n_words=500, length=length, random_state=length)
        yield f"drawn, {length} tokens", drawn.counts()


def _first_sentence(text: str) -> str:
    """Return the first sentence of the body of a message, without quotations."""
    body = text.partition("\n\n")[2] or text
    prose = " ".join(line for line in body.splitlines() if not re.match(r" *[>:|]|.* (writes|wrote):", line))
    return re.split(r"(?<=[.?!]) ", prose.strip(), maxsplit=1)[0][:300]


def part_short(quick: bool) -> None:
    print("Completion perplexity of new documents")
    print("| corpus | tokens | topics | unigram | before: PLSA | now: PLSA | LDA, learned priors | correlated |")
    print("|---" * 8 + "|")
    for name, X in short_corpora(2000 if quick else 8000):
        cut = X.shape[0] * 4 // 5
        train, new = X[:cut], X[cut:]
        for n_topics in N_SHORT_TOPICS[: 1 if quick else None]:
            models = (
                PLSA(n_topics, random_state=0),
                LDA(
                    n_topics, doc_topic_prior="asymmetric-learned", topic_word_prior="symmetric-learned", random_state=0
                ),
                CorrelatedTopicModel(n_topics, random_state=0),
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                plsa, lda, correlated = (model.fit(train) for model in models)
            report = plsa.completion_report(new)
            scores = [
                report.unigram_perplexity, plsa.completion_perplexity(new, inference="model"), report.perplexity,
                lda.completion_perplexity(new), correlated.completion_perplexity(new),
            ]  # fmt: skip
            cells = " | ".join(f"{score:.0f}" for score in scores)
            print(f"| {name} | {X.sum() / X.shape[0]:.1f} | {n_topics} | {cells} |", flush=True)
            best = min(scores[3:]) / scores[2]
            report_figure(f"best of LDA and correlated topics over PLSA, {name}, K = {n_topics}", f"{best:.3f}")


# The number of topics.

PLANTED = (5, 8)
"""Numbers of topics of the planted corpora, in turn."""


def planted_corpus(n_topics: int, length: int, seed: int) -> sp.csr_array:
    """Return 600 documents of topics that share few of 600 words."""
    topics = np.random.default_rng([seed, 7]).dirichlet(np.full(600, 0.05), n_topics)
    return synthetic_corpus(600, topic_word=topics, length=length, random_state=seed).counts()


def part_planted(quick: bool) -> None:
    n_seeds = 3 if quick else 20
    print("| tokens per document | planted number found | chosen, where it was not |")
    print("|---|---|---|")
    for length in (10, 30, 100, 300):
        wrong = []
        for seed in range(n_seeds):
            n_topics = PLANTED[seed % 2]
            chosen = select_n_topics(
                planted_corpus(n_topics, length, seed), range(2, 25), reading=False
            ).chosen_to_predict
            if chosen != n_topics:
                wrong.append(f"{chosen} instead of {n_topics}")
        found = f"{n_seeds - len(wrong)} of {n_seeds}"
        print(f"| {length} | {found} | {', '.join(wrong)} |", flush=True)
        least = {30: 18 / 20, 100: 1.0, 300: 1.0}.get(length)
        report_figure(
            f"planted number of topics found, {length} tokens per document", found,
            "" if least is None else f"at least {round(least * n_seeds)} of {n_seeds}",
        )  # fmt: skip
    none = sum(
        select_n_topics(planted_corpus(1, length, seed), range(2, 25), reading=False).chosen_to_predict == 1
        for seed, length in zip(range(n_seeds), cycle((10, 30, 100, 300)), strict=False)
    )
    recognized = f"{none} of {n_seeds}"
    report_figure("corpora without structure that are recognized", recognized, f"at least {round(0.95 * n_seeds)}")


def part_starts(quick: bool) -> None:
    X = load_counts(NEWSGROUPS)
    rows = np.random.default_rng(0).permutation(X.shape[0])[: 1000 if quick else 4000]
    cut = len(rows) * 4 // 5
    train, test = X[rows[:cut]], X[rows[cut:]]
    scores = [
        score_documents(default_estimator(None, seed).set_params(n_components=20).fit(train), test)
        for seed in range(3 if quick else 6)
    ]
    spread = float(np.std([one.mean for one in scores], ddof=1))
    documents = float(np.mean([a.gain_over(b)[1] for a, b in combinations(scores, 2)]))
    print("One number of topics (20), fits from several starts, scored on the same documents, nats per token:")
    print(f"standard deviation over starts {spread:.4f}, standard error of a difference over documents {documents:.4f}")
    found = select_n_topics(X[rows], (10, 14, 20, 28, 40), refine=False, reading=False)
    print("| topics | behind the best | before: standard error over documents | now: over documents and starts |")
    print("|---|---|---|---|")
    top = found.fits[found.best].scores
    for row in found.rows:
        before = top.gain_over(found.fits[row.n_topics].scores)[1]
        print(f"| {row.n_topics} | {row.behind:.4f} | {before:.4f} | {row.behind_error:.4f} |")
    report_figure("spread of held-out scores over starts, 20 topics", f"{spread:.4f} nats")


PARTS: dict[str, Callable[[bool], None]] = {
    "split": part_split, "errors": part_errors, "shrink": part_shrink, "short": part_short, "starts": part_starts,
    "planted": part_planted, "early": part_early,
}  # fmt: skip
"""Parts by name; each prints its tables and figures, in a short form if it is called with True."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="smaller corpora, fewer seeds")
    arguments = parser.parse_args()
    describe_machine()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in arguments.parts:
        print(f"\n## {name}", flush=True)
        PARTS[name](arguments.quick)


if __name__ == "__main__":
    main()
