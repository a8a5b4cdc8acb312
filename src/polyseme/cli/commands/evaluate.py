"""``polyseme evaluate``: how good the topics of a run are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from polyseme.cli import options
from polyseme.cli.console import Console, bar, print_json
from polyseme.errors import InputError

if TYPE_CHECKING:
    from polyseme.metrics.evaluation import Evaluation


STEPS = 6
SHARED_SHOWN = 0.3
"""from this share of words on, a topic that repeats another is shown with it"""
WORDS_SHOWN = 8


def evaluate(
    run: options.RunFolder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="INPUT", help="Documents to judge by, as for fit; else the run's own."),
    ] = None,
    words: Annotated[int, typer.Option("--words", "-w", min=2, help="Top words of a topic that are judged.")] = 10,
    smoothing: Annotated[
        float, typer.Option("--smoothing", min=0.0, max=1.0, help="Share of the unigram in the completion perplexity.")
    ] = 0.01,
    windows: Annotated[
        bool,
        typer.Option("--windows", help="Coherence in windows of text (c_v: 110 words, npmi: 10), not whole documents."),
    ] = False,
    format: options.Format = None,
    text: options.Text = None,
    id: options.Id = None,
    title: options.Title = None,
    label: options.Label = None,
    time: options.Time = None,
    encoding: options.Encoding = None,
    sample: options.Sample = None,
    category: options.Category = None,
    noise: options.Noise = 0,
    uncategorized: options.Uncategorized = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
) -> None:
    """Judge the topics of a run: perplexity, coherence, diversity, fit, agreement with labels.

    Without INPUT by the documents that the topics were fitted to, which flatters the perplexities; better by others.
    A document with several labels counts with the one that most documents have.

    Examples:

      polyseme evaluate letters-run

      polyseme evaluate letters-run new-letters/ --json
    """
    if inputs:
        options.check_inputs(inputs)

    from polyseme.cli.reading import count_as_before
    from polyseme.metrics.evaluation import evaluate as evaluate_model
    from polyseme.runs import open_run
    from polyseme.text import read

    notes = Console(stderr=True, quiet=quiet)
    whole = open_run(run, trust_pattern=trust_pattern)
    opened = whole if inputs else whole.in_memory()
    reading: dict[str, Any] = {
        "format": format, "text": text, "id": id, "title": title, "label": label, "time": time, "encoding": encoding,
        "sample": sample, "categories": category, "noise": noise, "uncategorized": uncategorized,
    }  # fmt: skip
    if windows and ("-" in inputs if inputs else opened.texts is None):
        raise InputError("Windows need texts: give files as INPUT, or a run that was fitted without --no-texts.")
    if inputs:
        documents = count_as_before(read(inputs, **reading, seed=seed), opened.vectorizer, notes, quiet=quiet)
    elif any(reading.values()):
        raise InputError("Options such as --text say how to read INPUT, and there is none: name it, or leave them out.")
    else:
        documents = opened.counted
        if opened is not whole:
            notes.print(f"Judged by {len(documents.names):,} of the run's documents, drawn at random.")
    in_order = None
    if windows:
        texts = (document.text for document in read(inputs, **reading, seed=seed)) if inputs else opened.texts
        in_order = opened.vectorizer.sequences(texts or ())
    with bar(notes, "Judging", quiet=quiet) as update:
        done = iter(range(STEPS))
        judged = evaluate_model(
            opened.model,
            documents.counts,
            main_labels(documents.labels),
            n_words=words,
            smoothing=smoothing,
            texts=in_order,
            step=lambda what: update(next(done), STEPS, what),
        )
    if as_json:
        print_json(_as_dict(judged, opened.vocabulary, fitted=not inputs))
        return
    screen = Console()
    screen.print(figures_table(judged, fitted=not inputs))
    screen.print(topics_table(judged, opened.vocabulary))


def main_labels(labels: Sequence[str]) -> list[str]:
    """One label of each document: of several ("a; b"), the one that most documents have, then the first of them."""
    each = [[part for part in label.split("; ") if part] for label in labels]
    documents = Counter(part for parts in each for part in set(parts))
    return [max(parts, key=lambda part: documents[part]) if parts else "" for parts in each]


def figures_table(judged: Evaluation, *, fitted: bool) -> Table:
    """The figures of the whole model, each with what it rests on."""
    table = Table(header_style="bold", title=_title(judged, fitted), title_justify="left", title_style="")
    table.add_column("figure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("", style="dim", overflow="fold")
    for row in figure_rows(judged):
        table.add_row(*row)
    return table


def _title(judged: Evaluation, fitted: bool) -> str:
    which = "the run's own, which flatters the perplexities" if fitted else "given"
    return f"By {judged.n_documents:,} documents ({which})"


def figure_rows(judged: Evaluation) -> list[tuple[str, str, str]]:
    """Name, value, and what it rests on."""
    folded, completion = judged.perplexity, judged.completion
    unseen = f"; {folded.unseen_tokens:,.0f} tokens of unseen words left out" if folded.unseen_tokens else ""
    n_topics, n_words = judged.topic_words.shape
    rows = [
        (
            "perplexity, folded in",
            f"{folded.perplexity:,.1f}",
            f"without topics {folded.unigram_perplexity:,.1f}{unseen}",
        ),
        (
            "perplexity, completion",
            f"{completion.perplexity:,.1f}",
            f"without topics {completion.unigram_perplexity:,.1f}; half of each document from the other half; "
            f"{completion.smoothed_share:.1%} of the tokens lean on the smoothing",
        ),
    ]
    for measure, found in judged.coherence.items():
        absent = f"; {found.absent_words} of them in no document" if found.absent_words else ""
        where = "whole documents" if found.window is None else f"windows of {found.window} words"
        says = f"of {n_words} words, in {where}{absent}"
        rows.append((f"coherence, {measure}", f"{found.mean:.3f}", says))
    fit = judged.fit
    rows += [
        ("diversity", f"{judged.diversity:.1%}", "different words among all top words"),
        (
            "redundancy",
            f"{judged.redundancy.topics.mean():.1%}",
            "of its top words a topic shares with its twin",
        ),
        ("exclusivity", f"{judged.exclusivity.mean():.3f}", "mean FREX of the top words"),
        (
            "fitting topics",
            f"{fit.n_fitting} of {n_topics}",
            f"carry more than {fit.threshold:.0%} of their documents; together {fit.fitting_weight:.1%} of all",
        ),
        ("topics of a document", f"{judged.effective_topics.mean():.2f}", "effective number, mean"),
    ]
    if judged.agreement is not None:
        found_labels = judged.agreement
        says = f"with {found_labels.n_labels} labels of {found_labels.n_documents:,} documents; soft "
        for name, hard, soft in (
            ("NMI", found_labels.nmi, found_labels.soft_nmi),
            ("ARI", found_labels.ari, found_labels.soft_ari),
            ("purity", found_labels.purity, found_labels.soft_purity),
        ):
            rows.append((f"agreement, {name}", f"{hard:.3f}", f"{says}{soft:.3f}"))
    return rows


def topics_table(judged: Evaluation, vocabulary: Sequence[str]) -> Table:
    """The topics, the most coherent first."""
    npmi = judged.coherence["npmi"].topics
    table = Table(header_style="bold")
    for name in ("topic", "weight", "fit", "npmi", "frex"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("words, and the topic that repeats them", overflow="fold")
    for topic in sorted(range(len(npmi)), key=lambda k: -npmi[k]):
        says = " ".join(vocabulary[word] for word in judged.topic_words[topic][:WORDS_SHOWN])
        shared = judged.redundancy.topics[topic]
        twin = f" ({shared:.0%} in {judged.redundancy.twins[topic]})" if shared >= SHARED_SHOWN else ""
        table.add_row(
            str(topic), f"{judged.topic_weights[topic]:.1%}", f"{judged.fit.fit[topic]:.0%}", f"{npmi[topic]:.2f}",
            f"{judged.exclusivity[topic]:.2f}", f"{says}{twin}",
        )  # fmt: skip
    return table


def _as_dict(judged: Evaluation, vocabulary: Sequence[str], *, fitted: bool) -> dict[str, Any]:
    content = {"by": "documents of the run" if fitted else "documents given", **judged.to_dict()}
    for topic in content["topics"]:
        topic["words"] = [vocabulary[word] for word in judged.topic_words[topic["topic"]]]
    return content
