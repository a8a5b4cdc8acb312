"""Repeat the experiment of Saastamoinen (2016), "Statistical clustering of text documents with PLSA", chapter 6.

Run: .venv/bin/python reproductions/saastamoinen_2016.py [DUMP --language L --categories A B ...] [--quick]
Without DUMP, the script uses the dumps in POLYSEME_DATA. It drops articles without content or category, draws a sample,
removes markup and stop words, stems words (Porter 2, or the Snowball stemmer of the language), and drops words that
occur in one article only. It fits 30 topics with plain EM and stops by the perplexity of ten-fold cross-validation
(folding in, eq. 4.5). It prints tables 6.1 and 6.2 in the form of the thesis and saves a plot in build/reproductions.

The thesis does not state the stopping rule. Here EM stops after five iterations in a row that decrease the perplexity
by less than 1% each, which is closest to the tables of the thesis. The results of other rules are printed as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

import support
from formulas import Array
from polyseme.core.fold_in import fold_in
from polyseme.core.shard import sparse_counts
from polyseme.kernels import padded
from polyseme.metrics import coherence, top_words
from polyseme.metrics.evaluation import PerplexityReport, score_tokens
from polyseme.metrics.topics import FitReport, fit_report
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import SolverRun
from polyseme.text import Vectorizer, read
from support import DATA, Finding, as_corpus, begin, conclude, point, random_start, run_solver, show, verdict

THESIS_CHOSEN, THESIS_NOISE = 235, 365
"""Number of articles of the second experiment."""
THESIS_CATEGORIES = ("mathematics", "statistics", "biology", "literature", "entertainment")
VERY = 0.75
"""Topics with a larger fit count as fitting very well; the thesis gives no number."""
TOLERANCES = (0.01, 0.001)
"""EM stops if an iteration decreases the perplexity by less than this share; the first value is the rule."""
PATIENCE = 5


@dataclass(frozen=True)
class Case:
    """A dump, its language and the categories to select."""

    path: Path
    language: str
    categories: tuple[str, ...] = THESIS_CATEGORIES

    @property
    def name(self) -> str:
        return self.path.name.split(".")[0]


CASES = (
    Case(DATA / "wiki/itwiki_small.xml.bz2", "italian", ("elementi", "comuni", "film", "uccelli", "commercio equo")),
    Case(
        DATA / "wiki/enwik8_head.xml.bz2", "english", ("film", "elements", "angola", "atlas shrugged", "philosophers")
    ),
    Case(DATA / "wiki/enwiki_gensim.xml.bz2", "english", ("countries", "philosophers", "angola", "fiction", "science")),
)


@dataclass(frozen=True)
class Size:
    """Sizes of the experiments."""

    topics: int = 30
    articles: int = 596
    folds: int = 10
    iterations: int = 100
    starts: int = 5


QUICK = Size(topics=6, folds=3, iterations=20, starts=2)


@dataclass(frozen=True)
class Corpus:
    """Counts and labels of articles."""

    X: sp.csr_array
    stems: list[str]
    all_words: int
    """Number of words before words of one article were dropped."""
    labels: list[tuple[str, ...]]

    @property
    def documents(self) -> int:
        return int(self.X.shape[0])


def articles_of(case: Case, sample: int | None, *, chosen: bool = False, noise: int = 0) -> Corpus:
    """Return a random sample of articles with a category, or a sample of the case's categories with other articles."""
    selection = {"categories": list(case.categories), "noise": noise} if chosen else {}
    articles = list(read([str(case.path)], sample=sample, random_state=0, **selection))
    vectorizer = Vectorizer(language=case.language)
    counts = sp.csr_array(vectorizer.fit_transform([article.text for article in articles])).astype(np.float64)
    frequent = np.bincount(counts.indices, minlength=counts.shape[1]) > 1
    stem_of = {form: stem for stem, form in vectorizer.shown_.items()}
    stems = [stem_of[form] for form, known in zip(vectorizer.get_feature_names_out(), frequent, strict=True) if known]
    return Corpus(
        sp.csr_array(counts[:, np.flatnonzero(frequent)]), stems, counts.shape[1], [tuple(a.labels) for a in articles]
    )


# Ten-fold cross-validated perplexity by iteration of EM.


@dataclass
class Fold:
    """A fit by EM to nine parts, and the held-out part."""

    run: SolverRun
    unigram: Array
    held_out: sp.csr_array

    @classmethod
    def of(cls, X: sp.csr_array, training: Array, test: Array, topics: int) -> Fold:
        corpus = as_corpus(X[training])
        unigram = np.asarray(X[training].sum(axis=0)).ravel()
        return cls(begin(EM(), corpus, random_start(corpus, topics, 0)), unigram / unigram.sum(), X[test])

    def perplexity(self) -> PerplexityReport:
        """Return the perplexity of the held-out articles after folding in (eq. 4.5), without unknown words."""
        counts = sparse_counts(self.held_out, np.dtype(np.float64))
        _, phi = point(self.run)
        theta = fold_in(self.run.model, counts, phi.T, None, n_threads=1).doc_topic
        p = counts.products(padded(theta, np.float64), padded(phi, np.float64), n_threads=1)
        return score_tokens("folded in", counts, p, self.unigram)


@dataclass(frozen=True)
class Curve:
    """Cross-validated perplexity after each iteration of EM, and that of the unigram."""

    perplexity: list[float]
    unigram: float

    def stop(self, tolerance: float) -> int:
        """Return the first of PATIENCE iterations that decrease the perplexity by less, or the last one."""
        slow = -np.diff(np.log(self.perplexity)) < tolerance
        enough = np.flatnonzero(np.convolve(slow, np.ones(PATIENCE), "valid") == PATIENCE)
        return int(enough[0]) + 1 if enough.size else len(self.perplexity) - 1

    @property
    def lowest(self) -> int:
        return int(np.argmin(self.perplexity))


def cross_validated(corpus: Corpus, size: Size, *, until: float = 0.0) -> Curve:
    """Run all folds in parallel until the relative decrease of the perplexity is below `until`."""
    parts = KFold(size.folds, shuffle=True, random_state=0).split(np.arange(corpus.documents))
    folds = [Fold.of(corpus.X, training, test, size.topics) for training, test in parts]
    curve = Curve([], 0.0)
    for iteration in range(size.iterations + 1):
        if iteration:
            for fold in folds:
                fold.run.advance()
        report = PerplexityReport.pool(fold.perplexity() for fold in folds)
        curve = Curve([*curve.perplexity, report.perplexity], report.unigram_perplexity)
        if until and iteration >= PATIENCE and curve.stop(until) < iteration:
            break
    return curve


# One experiment.


@dataclass(frozen=True)
class Fit:
    """Plain EM on all articles, stopped after some iterations."""

    iterations: int
    fit: FitReport
    topic_doc: Array
    topic_words: Array
    npmi: Array
    spread: list[int] = field(default_factory=list)
    """fitting topics from every start"""

    @property
    def very(self) -> int:
        return int(np.count_nonzero(self.fit.fit > VERY))


def fit_of(corpus: Corpus, size: Size, iterations: int) -> Fit:
    """Fit from the first start; the number of fitting topics is from all starts."""
    counts = as_corpus(corpus.X)
    weights = counts.totals / counts.tokens
    fits = []
    for seed in range(size.starts):
        theta, phi = point(run_solver(EM(), counts, random_start(counts, size.topics, seed), iterations))
        joint = weights[:, np.newaxis] * theta
        words = top_words(phi.T)
        fits.append(
            Fit(iterations, fit_report(theta, weights), (joint / joint.sum(axis=0)).T, words,
                coherence(words, corpus.X).topics)
        )  # fmt: skip
    return replace(fits[0], spread=sorted(one.fit.n_fitting for one in fits))


def counts_of_fits(found: Fit) -> str:
    few, many = found.spread[0], found.spread[-1]
    starts = "" if few == many else f" ({few} to {many} over {len(found.spread)} starts)"
    return f"{found.fit.n_fitting} fitting{starts}, {found.very} very fitting"


def show_topics(title: str, corpus: Corpus, found: Fit, columns: int) -> None:
    """Print tables 6.1 and 6.2: the most important words of the best-fitting topics, and their weights."""
    best = found.fit.ranking[:columns]
    rows = [[corpus.stems[found.topic_words[topic][place]] for topic in best] for place in range(10)]
    rows.append([f"fit {found.fit.fit[topic]:.2f}" for topic in best])
    show(title, [f"topic {number + 1}" for number in range(len(best))], rows)
    print(f"{counts_of_fits(found)} of {len(found.npmi)} topics, after {found.iterations} iterations")


def categories_found(case: Case, corpus: Corpus, found: Fit) -> list[tuple[str, int, float, float]]:
    """Return category, number of articles, their share, and their largest share of the weight of a topic."""
    rows = []
    for category in case.categories:
        has = np.array([_belongs(labels, category) for labels in corpus.labels])
        rows.append((category, int(has.sum()), float(has.mean()), float((found.topic_doc @ has).max())))
    return rows


def _belongs(labels: tuple[str, ...], category: str) -> bool:
    return any(f" {category} " in f" {label.lower()} " for label in labels)


@dataclass(frozen=True)
class Result:
    """Results for one dump."""

    case: Case
    random: Corpus
    curve: Curve
    random_fits: list[Fit]
    """at each of TOLERANCES, and at the end"""
    chosen: Corpus
    chosen_fit: Fit
    alike: Corpus
    """random articles, as many as in `chosen`"""
    alike_fit: Fit
    found: list[tuple[str, int, float, float]]


def experiments(case: Case, size: Size) -> Result:
    corpus = articles_of(case, size.articles)
    print(f"\n# {case.name} ({case.language}): {corpus.documents} articles, {corpus.all_words} words, "
          f"{len(corpus.stems)} of them in more than one article", flush=True)  # fmt: skip
    curve = cross_validated(corpus, size)
    stops = [*(curve.stop(tolerance) for tolerance in TOLERANCES), size.iterations]
    fits = [fit_of(corpus, size, stop) for stop in stops]
    show_topics(f"Table 6.1: the most fitting topics. Data: {corpus.documents} random articles", corpus, fits[0], 3)
    rules = [*(f"iterations lower it by less than {tolerance:.1%}" for tolerance in TOLERANCES), "never"]
    show(
        f"Stopping by the perplexity of {size.folds}-fold cross-validation (unigram {curve.unigram:.0f})",
        ("stop when", "iterations", "perplexity", "topics"),
        [(rule, f.iterations, f"{curve.perplexity[f.iterations]:.0f}", counts_of_fits(f))
         for rule, f in zip(rules, fits, strict=True)],
    )  # fmt: skip

    alone = articles_of(case, THESIS_CHOSEN, chosen=True).documents
    chosen = articles_of(case, THESIS_CHOSEN, chosen=True, noise=round(alone * THESIS_NOISE / THESIS_CHOSEN))
    alike = articles_of(case, chosen.documents)
    chosen_fit, alike_fit = (
        fit_of(some, size, cross_validated(some, size, until=TOLERANCES[0]).stop(TOLERANCES[0]))
        for some in (chosen, alike)
    )
    others = chosen.documents - alone
    show_topics(
        f"Table 6.2: the most fitting topics. Data: {chosen.documents} articles, {others} of other categories",
        chosen, chosen_fit, 4,
    )  # fmt: skip
    found = categories_found(case, chosen, chosen_fit)
    show("Categories", ("category", "articles", "share of all", "largest share of a topic"),
         [(name, n, f"{all_:.0%}", f"{most:.0%}") for name, n, all_, most in found])  # fmt: skip
    print(f"random articles, as many: {counts_of_fits(alike_fit)}, after {alike_fit.iterations} iterations")
    return Result(case, corpus, curve, fits, chosen, chosen_fit, alike, alike_fit, found)


def findings(results: Sequence[Result], size: Size) -> list[Finding]:
    def each(text: str, *values: Sequence[object]) -> str:
        rows = zip(results, *values, strict=True)
        return "; ".join(f"{result.case.name}: {text.format(*row)}" for result, *row in rows)

    left = [len(r.random.stems) / r.random.all_words for r in results]
    drops = [r.curve.perplexity[r.curve.lowest] / r.curve.unigram for r in results]
    rises = [max(r.curve.perplexity[r.curve.lowest :]) / min(r.curve.perplexity) - 1 for r in results]
    early, late = [r.random_fits[0] for r in results], [r.random_fits[-1] for r in results]
    chosen, alike = [r.chosen_fit for r in results], [r.alike_fit for r in results]
    hits = [sum(most > 0.5 for *_, most in r.found) for r in results]
    best = [f.npmi[f.fit.ranking[:3]].mean() for f in early]
    mean = [f.npmi.mean() for f in early]
    readable = [first > every + 0.05 for first, every in zip(best, mean, strict=True)]
    clearer = [sum(c.spread) > sum(a.spread) for c, a in zip(chosen, alike, strict=True)]
    return [
        Finding("Words of one article", "7931 of 24019 words are left without them, about one third",
                each("{:.0%} of {}", left, [r.random.all_words for r in results]),
                verdict("of the same size", min(left) > 0.25, max(left) < 0.5)),
        Finding("Perplexity as stopping rule", f"{size.folds}-fold cross-validation guards against overfitting",
                each("falls to {:.0%} of the unigram's, lowest after {} of {} iterations, then rises by at most "
                     "{:.2%}", drops, [r.curve.lowest for r in results], [size.iterations] * len(results), rises),
                verdict("no stopping rule: folded in on all words, articles show no overfitting",
                        max(rises) < 0.005, max(drops) < 1)),
        Finding("Random articles (table 6.1)", "a large part of the 30 topics lie between the documents, some fit",
                each("{} at the stop, {} after {} iterations", [counts_of_fits(f) for f in early],
                     [counts_of_fits(f) for f in late], [f.iterations for f in late]),
                verdict("true at an early stop; all topics fit if EM continues",
                        all(f.spread[-1] > 0 and f.spread[0] < size.topics for f in early),
                        all(f.spread[0] > 0.9 * size.topics for f in late))),
        Finding("The best topics can be read", "the most fitting topics are fairly understandable",
                each("NPMI of the three most fitting {:.2f}, of all {:.2f}", best, mean),
                "true" if all(readable) else "on some dumps" if any(readable) else "hardly better than the others"),
        Finding("Chosen categories (table 6.2)", "half of the topics somewhat fit, four very much",
                each("{}", [counts_of_fits(f) for f in chosen]),
                verdict("fewer fit", all(0 < f.spread[-1] < size.topics / 2 for f in chosen))),
        Finding("Categories are found", "all five chosen categories have topics",
                each("{} of {} have a topic of which they are more than half", hits,
                     [len(r.found) for r in results]),
                verdict("true for most", sum(hits) > 0.5 * sum(len(r.found) for r in results))),
        Finding("Clearer data fits better", "more topics fit when categories are chosen",
                each("{} against {} with as many random articles (all starts)",
                     [sum(f.spread) for f in chosen], [sum(f.spread) for f in alike]),
                "true" if all(clearer) else "not always" if any(clearer) else "not here"),
    ]  # fmt: skip


def picture(folder: Path, results: Sequence[Result]) -> None:
    """Plot cross-validated perplexity relative to the unigram by iteration, and the stopping points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for result in results:
        share = np.array(result.curve.perplexity) / result.curve.unigram
        (line,) = axis.plot(share, label=f"{result.case.name}, {result.random.documents} articles")
        for found, marker in zip(result.random_fits, "os", strict=False):
            axis.plot(found.iterations, share[found.iterations], marker, color=line.get_color())
            axis.annotate(str(found.fit.n_fitting), (found.iterations, share[found.iterations]), (2, 4),
                          textcoords="offset points", fontsize=8)  # fmt: skip
    axis.set(xlabel="iterations of EM", ylabel="perplexity / unigram's")
    axis.set_title(
        "Ten-fold cross-validation; dots and squares: stops at 1% and 0.1%,\nwith the number of fitting topics"
    )
    axis.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "saastamoinen_2016.png", dpi=110)
    plt.close(figure)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = support.make_parser(__doc__ or "")
    parser.add_argument("dump", nargs="?", type=Path, help="default: the dumps in POLYSEME_DATA")
    parser.add_argument("--language", default="english")
    parser.add_argument("--categories", nargs="+", default=THESIS_CATEGORIES, metavar="NAME")
    parser.add_argument("--articles", type=int, default=Size.articles, help="number of articles in the random sample")
    parser.add_argument("--topics", type=int, default=Size.topics)
    options = support.parse_options(parser, argv)
    if options.dump is not None and not options.dump.is_file():
        parser.error(f"there is no {options.dump}")
    return options


def main(argv: Sequence[str] | None = None) -> list[Finding]:
    options = arguments(argv)
    size = QUICK if options.quick else replace(Size(), topics=options.topics, articles=options.articles)
    cases: Sequence[Case] = CASES
    if options.dump is not None:
        cases = [Case(options.dump, options.language, tuple(options.categories))]
    results = []
    for case in cases:
        if case.path.is_file():
            results.append(experiments(case, size))
        else:
            print(f"\nskipped: {case.name}, there is no {case.path} (set POLYSEME_DATA to the data folder)")
    if not results:
        return []
    found = findings(results, size)
    if options.pictures is not None:
        picture(options.pictures, results)
    conclude("saastamoinen_2016" if cases is CASES else None, found, options)
    return found


if __name__ == "__main__":
    main()
