"""``polyseme evaluate``: measures the quality of the topics of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from polyseme.cli.console import Console, print_json, screen_reporter
from polyseme.cli.options import JSON, QUIET, RunFolder, check_inputs, open_level, takes
from polyseme.errors import InputError
from polyseme.options import RANDOM_STATE, READING, SAMPLING, Option
from polyseme.progress import print_line

if TYPE_CHECKING:
    from polyseme.metrics.evaluation import Evaluation, PerplexityReport


STEPS = 6
MIN_SHARED_WORDS = 0.3
"""The most similar topic is shown if it has at least this share of the top words in common."""
WORDS_SHOWN = 8


@takes(
    Option("words", "Number of top words of each topic to evaluate.", None, int, 10, ("--words", "-w"), least=2),
    Option("smoothing", "Weight of the unigram in the completion perplexity.", None, float, 0.01, least=0.0, most=1.0),
    Option(
        "windows", "Count co-occurrences in windows (c_v: 110 words, npmi: 10), not in documents.", None, bool, False
    ),
    *READING,
    *SAMPLING,
    RANDOM_STATE,
    JSON,
    QUIET,
)
def evaluate(
    run: RunFolder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="INPUT", help="Documents to evaluate on, as for fit. By default those of the run."),
    ] = None,
    *,
    words: int,
    smoothing: float,
    windows: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Measure the quality of the topics of a run.

    The measures are perplexity, coherence, diversity, fit and, with labels, the agreement with them. Below the tables
    stands why the fit chose this number of topics.

    Without INPUT the documents of the run are used. The model was fitted to them, so their perplexities are too low;
    give other documents as INPUT to avoid this. If a document has several labels, the most frequent label counts.

    Examples:

      polyseme evaluate letters-run

      polyseme evaluate letters-run new-letters/ --json
    """
    if inputs:
        check_inputs(inputs)

    from polyseme.metrics.evaluation import evaluate as evaluate_topics
    from polyseme.runs.reading import count_words, main_labels
    from polyseme.text.readers.reader import read

    report = screen_reporter(quiet=quiet)
    full_run = open_level(run, None)
    opened = full_run if inputs else full_run.in_memory()
    if windows and ("-" in inputs if inputs else opened.corpus.texts is None):
        raise InputError("--windows needs texts: give files as INPUT, or a run that was fitted without --no-texts.")
    if inputs:
        frame, counts = count_words(opened.store, read(inputs, **reading), report)
        labels = frame["label"].to_list()
    elif any(value for name, value in reading.items() if name != "random_state"):
        raise InputError("Options such as --text describe INPUT, but no INPUT is given: add it, or omit these options.")
    else:
        counts, labels = opened.corpus.counts, opened.corpus.labels
        if opened is not full_run:
            report.note(f"Evaluated on {opened.corpus.n_documents:,} of the run's documents, drawn at random.")
    in_order = None
    if windows:
        texts = (document.text for document in read(inputs, **reading)) if inputs else opened.corpus.texts
        in_order = opened.store.vectorizer.sequences(texts or ())
    with report.stage("Evaluating") as update:
        done = iter(range(STEPS))
        evaluation = evaluate_topics(
            opened.model, counts, main_labels(labels), n_words=words, smoothing=smoothing, texts=in_order,
            step=lambda what: update(next(done), STEPS, what),
        )  # fmt: skip
    if as_json:
        print_json(_as_dict(evaluation, opened.store.vocabulary, fitted=not inputs))
        return
    screen = Console()
    screen.print(figures_table(evaluation, fitted=not inputs))
    screen.print(topics_table(evaluation, opened.store.vocabulary))
    if choice := opened.store.info.selection:
        print_line(screen, f"Chosen by the fit: {choice.reason}")


def figures_table(evaluation: Evaluation, *, fitted: bool) -> Table:
    """Return the table of the measures of the model."""
    table = Table(header_style="bold", title=_title(evaluation, fitted), title_justify="left", title_style="")
    table.add_column("figure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("", style="dim", overflow="fold")
    for row in figure_rows(evaluation):
        table.add_row(*row)
    return table


def _title(evaluation: Evaluation, fitted: bool) -> str:
    which = "those of the fit, so perplexities are too low" if fitted else "given as INPUT"
    return f"Evaluated on {evaluation.n_documents:,} documents ({which})"


def figure_rows(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    """Return the name, value and explanation of each measure."""
    folded, completion = evaluation.perplexity, evaluation.completion
    unseen = f"; {folded.unseen_tokens:,.0f} tokens of unseen words left out" if folded.unseen_tokens else ""
    n_topics, n_words = evaluation.topic_words.shape
    rows = [
        (
            "perplexity, folded in",
            with_error(folded),
            f"without topics {folded.unigram_perplexity:,.1f}{unseen}",
        ),
        (
            "perplexity, completion",
            with_error(completion),
            f"without topics {completion.unigram_perplexity:,.1f}; ± standard error; half of each document from the "
            "other half; "
            f"{completion.smoothed_share:.1%} of the tokens get their probability mostly from the smoothing",
        ),
    ]
    for measure, coherence in evaluation.coherence.items():
        absent = f"; {coherence.absent_words} of them in no document" if coherence.absent_words else ""
        where = "whole documents" if coherence.window is None else f"windows of {coherence.window} words"
        detail = f"of {n_words} words, in {where}{absent}"
        rows.append((f"coherence, {measure}", f"{coherence.mean:.3f}", detail))
    fit = evaluation.fit
    rows += [
        ("diversity", f"{evaluation.diversity:.1%}", "different words among all top words"),
        (
            "redundancy",
            f"{evaluation.redundancy.topics.mean():.1%}",
            "of the top words of a topic are in the most similar topic",
        ),
        ("exclusivity", f"{evaluation.exclusivity.mean():.3f}", "mean FREX of the top words"),
        (
            "fitting topics",
            f"{fit.n_fitting} of {n_topics}",
            f"make up more than {fit.threshold:.0%} of their documents; together {fit.fitting_weight:.1%} of all",
        ),
        ("topics of a document", f"{evaluation.effective_topics.mean():.2f}", "effective number, mean"),
    ]
    if evaluation.explained is not None:
        explained = evaluation.explained
        detail = "of the deviance of a model without topics; 100% would repeat the documents"
        rows.append(("explained", f"{explained.total:.1%}", detail))
        detail = "variance of a word's counts around the topics' expectation, over Poisson's; median"
        rows.append(("dispersion", f"{explained.median_dispersion:.2f}", detail))
    if evaluation.agreement is not None:
        agreement = evaluation.agreement
        detail = f"with {agreement.n_labels} labels of {agreement.n_documents:,} documents; soft "
        for name, hard, soft in (
            ("NMI", agreement.nmi, agreement.soft_nmi),
            ("ARI", agreement.ari, agreement.soft_ari),
            ("purity", agreement.purity, agreement.soft_purity),
        ):
            rows.append((f"agreement, {name}", f"{hard:.3f}", f"{detail}{soft:.3f}"))
    return rows


def with_error(report: PerplexityReport) -> str:
    """Return the perplexity and its standard error, if there is one."""
    error = "" if math.isnan(report.standard_error) else f" ± {report.standard_error:,.1f}"
    return f"{report.perplexity:,.1f}{error}"


def topics_table(evaluation: Evaluation, vocabulary: Sequence[str]) -> Table:
    """Return the table of the topics, the most coherent first."""
    npmi = evaluation.coherence["npmi"].topics
    table = Table(header_style="bold")
    for name in ("topic", "weight", "fit", "npmi", "frex"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("words, and the most similar topic", overflow="fold")
    for topic in sorted(range(len(npmi)), key=lambda k: -npmi[k]):
        words = " ".join(vocabulary[word] for word in evaluation.topic_words[topic][:WORDS_SHOWN])
        shared = evaluation.redundancy.topics[topic]
        similar = f" ({shared:.0%} in {evaluation.redundancy.twins[topic]})" if shared >= MIN_SHARED_WORDS else ""
        table.add_row(
            str(topic),
            f"{evaluation.topic_weights[topic]:.1%}",
            f"{evaluation.fit.fit[topic]:.0%}",
            f"{npmi[topic]:.2f}",
            f"{evaluation.exclusivity[topic]:.2f}",
            f"{words}{similar}",
        )
    return table


def _as_dict(evaluation: Evaluation, vocabulary: Sequence[str], *, fitted: bool) -> dict[str, Any]:
    content = {"by": "documents of the run" if fitted else "documents given", **evaluation.to_dict()}
    for topic in content["topics"]:
        topic["words"] = [vocabulary[word] for word in evaluation.topic_words[topic["topic"]]]
    return content
