"""A fit under a progress bar, as commands do it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from math import exp
from typing import Any

import typer
from sklearn.exceptions import ConvergenceWarning

from polyseme.cli import exit_codes
from polyseme.cli.bars import bar
from polyseme.cli.console import Console, in_words


def fit_with_bar(model: Any, counts: Any, notes: Console, *, quiet: bool = False) -> tuple[bool, float]:
    """Fits; returns whether Ctrl-C cut it short, and the seconds.

    After Ctrl-C the estimator holds the best model so far, or none, and then the interrupt goes on.
    """
    start = time.perf_counter()
    interrupted = False
    with bar(notes, "Fitting topics", unit="iterations", quiet=quiet) as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said in the command line's own words

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
        finally:
            model.set_params(callback=None)
    return interrupted, time.perf_counter() - start


def end_if(interrupted: bool, notes: Console) -> None:
    """After Ctrl-C: says what was written, and ends with the code of an interrupt."""
    if interrupted:
        notes.print("Stopped early: these are the topics as far as they were fitted.")
        raise typer.Exit(exit_codes.INTERRUPTED)


def sizes_and_time(documents: int, words: int, tokens: float, iterations: int, seconds: float) -> str:
    """One line about a fit."""
    sizes = ", ".join((in_words(documents, "document"), in_words(words, "word"), in_words(round(tokens), "token")))
    return f"{sizes}, {in_words(iterations, 'iteration')} in {seconds:.1f} seconds."


def fit_summary(model: Any, counts: Any, seconds: float) -> str:
    """Two lines: sizes and time, and perplexities."""
    documents, words = counts.shape
    report = model.perplexity_report(counts)
    return (
        f"{sizes_and_time(documents, words, report.tokens, model.n_iter_, seconds)}\n"
        f"Perplexity {report.perplexity:.1f}; without topics {report.unigram_perplexity:.1f}."
    )
