"""``polyseme demo``: topics of a corpus that every install already has."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import exp
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer

from polyseme import PLSA
from polyseme.cli import exit_codes
from polyseme.cli.topic_table import topic_rows, topic_table
from polyseme.datasets import Corpus, docstrings

WORDS_OF_LETTERS = r"\b[^\W\d_]{3,}\b"
MOST_DOCUMENTS_WITH_A_WORD = 0.3

NEXT_STEPS = """\
from sklearn.feature_extraction.text import CountVectorizer
from polyseme import PLSA
from polyseme.datasets import docstrings

corpus = docstrings()
counter = CountVectorizer(stop_words="english", min_df=5, max_df=0.3)
X = counter.fit_transform(corpus.texts)
model = PLSA(n_components={k}, random_state={seed}).fit(X)
print(model.topics(counter.get_feature_names_out()))
print(model.transform(counter.transform(["solve a sparse linear system"])))
"""


def demo(
    k: Annotated[int, typer.Option("-k", min=1, help="Number of topics.")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the random start.")] = 0,
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="Most iterations of the fit.", show_default="the estimator's")
    ] = None,
) -> None:
    """Fit topics on the docstrings of Python, numpy, scipy and scikit-learn, and print them."""
    output, notes = Console(), Console(stderr=True)
    limit = {} if max_iter is None else {"max_iter": max_iter}
    model = PLSA(n_components=k, random_state=seed, **limit)
    corpus = _read(notes)
    counter = _counter()
    counts = counter.fit_transform(corpus.texts)
    interrupted, seconds = _fit(model, counts, notes)
    rows = topic_rows(model, counter.get_feature_names_out(), corpus.titles, corpus.labels)
    output.print(topic_table(rows))
    output.print(_summary(model, counts, seconds), highlight=False)
    if interrupted:
        notes.print("Stopped early: these are the topics as far as they were fitted.")
        raise typer.Exit(exit_codes.INTERRUPTED)
    if not model.converged_:
        notes.print(f"Cut at {model.n_iter_} iterations; a larger --max-iter makes the topics sharper.")
    _print_next_steps(output, k, seed)


def _read(notes: Console) -> Corpus:
    with _bar(notes, "Reading docstrings") as update:
        corpus = docstrings(progress=lambda done, total: update(done, total, f"{done} of {total} files"))
    if corpus.skipped:
        notes.print(f"Files that could not be parsed and were left out: {corpus.skipped}.")
    return corpus


def _counter() -> CountVectorizer:
    """Words of three letters and more, neither rare nor everywhere: what names a topic."""
    return CountVectorizer(
        stop_words="english", min_df=5, max_df=MOST_DOCUMENTS_WITH_A_WORD, token_pattern=WORDS_OF_LETTERS
    )


def _fit(model: PLSA, counts: Any, notes: Console) -> tuple[bool, float]:
    """Fit with a bar; returns whether Ctrl-C cut it short, and the seconds.

    After Ctrl-C the estimator holds the best model so far, or none, and then the interrupt goes on.
    """
    start = time.perf_counter()
    interrupted = False
    with _bar(notes, "Fitting topics") as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said in the command line's own words, by demo()

        def show(entry: Mapping[str, float]) -> None:
            iteration, perplexity = entry["iteration"], exp(-entry["log_likelihood"])
            update(iteration, model.max_iter, f"iteration {iteration:.0f}, perplexity {perplexity:.1f}")

        model.set_params(callback=show)
        try:
            model.fit(counts)
        except KeyboardInterrupt:
            if not hasattr(model, "components_"):
                raise
            interrupted = True
    return interrupted, time.perf_counter() - start


def _summary(model: PLSA, counts: Any, seconds: float) -> str:
    documents, words = counts.shape
    report = model.perplexity_report(counts)
    return (
        f"{documents:,} documents, {words:,} words, {report.tokens:,.0f} tokens, "
        f"{model.n_iter_} iterations in {seconds:.1f} seconds.\n"
        f"Perplexity {report.perplexity:.1f}; without topics {report.unigram_perplexity:.1f}."
    )


def _print_next_steps(output: Console, k: int, seed: int) -> None:
    output.print("\n[bold]Try next[/bold]")
    another_seed = (seed + 1) % 2**32
    output.print(f"polyseme demo -k {2 * k}    polyseme demo -k {k} --seed {another_seed}    polyseme demo --help")
    output.print("\nor in Python:\n")
    output.print(escape(NEXT_STEPS.format(k=k, seed=seed)), highlight=False, soft_wrap=True)


@contextmanager
def _bar(console: Console, name: str) -> Iterator[Callable[[float, float, str], None]]:
    """A progress bar that vanishes when done, in a log a line; gives ``update(completed, total, detail)``."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
    )
    if not console.is_terminal:
        console.print(f"{name} ...")
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None, detail="")
        yield lambda completed, total, detail: progress.update(task, completed=completed, total=total, detail=detail)
