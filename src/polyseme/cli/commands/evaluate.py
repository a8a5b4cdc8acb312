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
from polyseme.progress import pluralize, print_line

if TYPE_CHECKING:
    from polyseme.cli import schemas
    from polyseme.metrics.deviance import ExplainedDeviance
    from polyseme.metrics.evaluation import Evaluation, PerplexityReport
    from polyseme.runs.drift import Drift
    from polyseme.uncertainty.residuals import ResidualTest


STEPS = 6
MIN_SHARED_WORDS = 0.3
"""The most similar topic is shown if it has at least this share of the top words in common."""
WORDS_SHOWN = 8
TOO_FEW = 0.05
"""Largest p-value of the residual test with which there are too few topics."""


@takes(
    Option("words", "Number of top words of each topic to evaluate.", None, int, 10, ("--words", "-w"), least=2),
    Option("smoothing", "Weight of the unigram in the completion perplexity.", None, float, 0.01, least=0.0, most=1.0),
    Option(
        "windows", "Count co-occurrences in windows (c_v: 110 words, npmi: 10), not in documents.", None, bool, False
    ),
    Option(
        "residuals",
        "Test whether there are too few topics, with 39 fits to documents drawn from them.",
        None,
        bool,
        False,
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
    residuals: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Measure the quality of the topics of a run.

    The measures are perplexity, coherence, diversity, fit and, with labels, the agreement with them. Below the tables
    stands why the fit chose this number of topics. With --residuals, a sentence says whether words occur together more
    often than the topics explain, because there are too few topics.

    Without INPUT the documents of the run are used. The model was fitted to them, so their perplexities are too low;
    give other documents as INPUT to avoid this. If a document has several labels, the most frequent label counts.

    With INPUT, the last lines compare it with documents of the run, scored with topics that were not fitted to them:
    perplexity, words that the run does not have, topics that grow or fade, and whether there are new topics. They
    recommend polyseme update, with or without --new-topics, or a new polyseme fit (PLSA).

    Examples:

      polyseme evaluate letters-run

      polyseme evaluate letters-run --residuals

      polyseme evaluate letters-run new-letters/ --json
    """
    if inputs:
        check_inputs(inputs)
        if residuals:
            raise InputError("--residuals tests the topics on the documents of the run: omit INPUT.")

    from polyseme.metrics.evaluation import evaluate as evaluate_topics
    from polyseme.runs.reading import count_words, main_labels
    from polyseme.text.readers.reader import read

    report = screen_reporter(quiet=quiet)
    full_run = open_level(run, None)
    opened = full_run if inputs else full_run.in_memory()
    if windows and ("-" in inputs if inputs else opened.corpus.texts is None):
        raise InputError("--windows needs texts: give files as INPUT, or a run that was fitted without --no-texts.")
    ids: Sequence[str]
    names: Sequence[str]
    if inputs:
        frame, counts = count_words(opened.store, read(inputs, **reading), report)
        labels, ids = frame["label"].to_list(), frame["id"].to_list()
        names = [title or name for title, name in zip(frame["title"], ids, strict=True)]
    elif any(value for name, value in reading.items() if name != "random_state"):
        raise InputError("Options such as --text describe INPUT, but no INPUT is given: add it, or omit these options.")
    else:
        counts, labels = opened.corpus.counts, opened.corpus.labels
        ids, names = opened.corpus.ids, opened.corpus.names
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
    test = None
    if residuals:
        from polyseme.uncertainty import residual_test

        with report.stage("Fitting documents drawn from the topics") as update:
            test = residual_test(
                opened.model, counts, random_state=reading["random_state"],
                progress=lambda done, total: update(done, total, ""),
            )  # fmt: skip
    drift = None
    if inputs:
        from polyseme.runs import open_run
        from polyseme.runs.drift import drift_of

        texts = None if "-" in inputs else (document.text for document in read(inputs, **reading))
        with report.stage("Comparing with the documents of the run"):
            drift = drift_of(open_run(run), counts, texts)
    if as_json:
        content = evaluation_as_dict(evaluation, opened.store.vocabulary, ids, names, fitted=not inputs)
        if test is not None:
            content["residuals"] = {
                "too_few": test.p_value <= TOO_FEW, "p_value": test.p_value, "ratio": test.ratio,
                "words": [opened.store.vocabulary[word] for word in test.words],
            }  # fmt: skip
        if drift is not None:
            content["drift"] = _drift_as_dict(drift, opened.topic_titles)
        print_json("evaluate", content)
        return
    screen = Console()
    screen.print(figures_table(evaluation, fitted=not inputs))
    screen.print(topics_table(evaluation, opened.store.vocabulary))
    if evaluation.explained is not None:
        if (table := worst_documents_table(evaluation.explained, names, screen.width)).row_count:
            screen.print(table)
        screen.print(worst_words_line(evaluation.explained, opened.store.vocabulary))
    if test is not None:
        print_line(screen, residuals_line(test, opened.fitted.n_topics, opened.store.vocabulary))
    if drift is not None:
        for line in drift_lines(drift, opened.topic_titles, run):
            print_line(screen, line)
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


def worst_documents_table(explained: ExplainedDeviance, names: Sequence[str], width: int) -> Table:
    """Return the table of the documents that the topics explain worst."""
    table = Table(header_style="bold")
    for name in ("explained", "tokens"):
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
        width -= len(name) + 3
    heading = f"explained worst, {explained.least_tokens} tokens or more"
    table.add_column(heading, overflow="ellipsis", no_wrap=True, max_width=max(width - 4, 9))
    for row in explained.worst_documents().tolist():
        share, tokens = explained.documents[row], explained.document_tokens[row]
        table.add_row(f"{share:.1%}", f"{tokens:,.0f}", names[row])
    return table


def worst_words_line(explained: ExplainedDeviance, vocabulary: Sequence[str]) -> str:
    """Return a sentence about the words that the topics explain worst, with their explained shares."""
    words = (f"{vocabulary[word]} {explained.words[word]:.1%}" for word in explained.worst_words().tolist())
    listed = ", ".join(words) or "none"
    return f"Words explained worst, of those with at least {explained.least_tokens} tokens: {listed}."


def residuals_line(test: ResidualTest, n_topics: int, vocabulary: Sequence[str]) -> str:
    """Return a sentence that says whether there are too few topics."""
    figures = f"p = {test.p_value:.2g}, residuals {test.ratio:.1f} times those expected"
    if test.p_value > TOO_FEW:
        return f"Nothing says that {pluralize(n_topics, 'topic')} are too few ({figures})."
    words = ", ".join(vocabulary[word] for word in test.words[:WORDS_SHOWN].tolist())
    return (
        f"{pluralize(n_topics, 'topic')} do not explain all words that occur together ({figures}), such as {words}: "
        "more topics may."
    )


def evaluation_as_dict(
    evaluation: Evaluation, vocabulary: Sequence[str], ids: Sequence[str], names: Sequence[str], *, fitted: bool
) -> schemas.Evaluation:
    """Return the evaluation as JSON values."""
    by = "documents of the run" if fitted else "documents given"
    content: Any = {"by": by, **evaluation.to_dict(), "residuals": None, "drift": None}
    if (found := evaluation.explained) is not None:
        content["explained"] |= {
            "least_tokens": found.least_tokens,
            "documents": [
                {
                    "id": ids[row], "title": names[row], "tokens": found.document_tokens[row],
                    "explained": found.documents[row],
                }
                for row in found.worst_documents().tolist()
            ],
            "words": [
                {
                    "word": vocabulary[word], "tokens": found.word_tokens[word], "explained": found.words[word],
                    "dispersion": found.dispersion[word],
                }
                for word in found.worst_words().tolist()
            ],
        }  # fmt: skip
    for topic in content["topics"]:
        topic["words"] = [vocabulary[word] for word in evaluation.topic_words[topic["topic"]]]
    return content


def drift_lines(drift: Drift, titles: Sequence[str], run: str) -> list[str]:
    """Return sentences about how documents differ from those of a run, and what to do with them."""
    from polyseme.runs.drift import FIT, NEW_TOPICS, UPDATE

    low, high = drift.ratio
    lines = [
        f"Perplexity {drift.perplexity:,.1f}; of documents of the run, with topics that were not fitted to them, "
        f"{drift.old_perplexity:,.1f} (ratio {low:.2f} to {high:.2f})."
    ]
    if drift.unknown is not None:
        words = f", such as {', '.join(drift.new_words[:WORDS_SHOWN])}" if drift.new_words else ""
        lines.append(f"{drift.unknown:.1%} of the tokens are words that the run does not have{words}.")
    for verb, sign in (("grow", 1), ("fade", -1)):
        changed = [topic for topic in drift.changed_topics if sign * drift.shares.difference.estimate[topic] > 0]
        if changed:
            shown = (f"{k} {titles[k]} ({drift.shares.old[k]:.1%} to {drift.shares.new[k]:.1%})" for k in changed)
            lines.append(f"Topics that {verb}: {'; '.join(shown)}.")
    if drift.p_value is not None:
        lines.append(f"New topics: {drift.n_new or 'none'} (p = {drift.p_value:.2g}).")
    advice = {
        UPDATE: f"polyseme update {run}, because the topics explain these documents",
        NEW_TOPICS: f"polyseme update {run} --new-topics auto",
        FIT: "a new polyseme fit with all documents, because the run explains these documents badly",
    }
    return [*lines, f"Recommended: {advice[drift.advice]}."]


def _drift_as_dict(drift: Drift, titles: Sequence[str]) -> schemas.Drift:
    difference = drift.shares.difference
    topics: list[schemas.ChangedTopic] = [
        {
            "topic": k, "name": name, "old": float(drift.shares.old[k]), "new": float(drift.shares.new[k]),
            "difference": float(difference.estimate[k]), "difference_low": float(difference.low[k]),
            "difference_high": float(difference.high[k]), "q_value": float(difference.q_values[k]),
        }
        for k, name in enumerate(titles)
    ]  # fmt: skip
    return {
        "documents": drift.n_documents,
        "perplexity": drift.perplexity,
        "old_perplexity": drift.old_perplexity,
        "ratio": list(drift.ratio),
        "unknown": drift.unknown,
        "new_words": list(drift.new_words),
        "topics": topics,
        "p_value": drift.p_value,
        "new_topics": drift.n_new,
        "advice": drift.advice,
    }
