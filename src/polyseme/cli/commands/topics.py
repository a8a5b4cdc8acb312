"""``polyseme topics``: shows the topics of a run."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.cli.console import (
    Console,
    levels_note,
    node_tree,
    print_data,
    print_json,
    print_junk,
    print_topic_details,
    print_topics,
    topic_rows,
)
from polyseme.cli.options import JSON, RunFolder, open_level, takes
from polyseme.errors import InputError
from polyseme.options import LEVEL, Option
from polyseme.progress import print_line

if TYPE_CHECKING:
    from polyseme.kernels import Array
    from polyseme.metrics.coherence import Cooccurrence
    from polyseme.runs.view import TopicView


@takes(
    Option("words", "Number of words of each topic to show.", None, int, 10, ("--words", "-w"), least=1),
    Option(
        "documents",
        "Number of documents of each topic to show: 2 by default, at a finer level one line for each topic.",
        None,
        int,
        None,
        ("--documents", "-d"),
        least=0,
    ),
    LEVEL,
    Option("prompt", "Print a prompt that asks a language model for names of the topics.", None, bool, False),
    JSON,
)
def topics(run: RunFolder, words: int, documents: int | None, level: int | None, prompt: bool, as_json: bool) -> None:
    """Show the topics of a run.

    Each topic has its weight, fit, coherence (NPMI), words, labels, its most typical documents with a quote (the
    sentence that the topic explains best), and the topics of the next finer level that belong to it. --level shows the
    topics of another level, grouped by parent, with one line each unless --documents is given. --prompt prints a text
    to paste into a chat; save the answer to a file, which polyseme edit letters-run --names FILE reads.

    Examples:

      polyseme topics letters-run

      polyseme topics letters-run --level 40

      polyseme topics letters-run --words 20 --json

      polyseme topics letters-run --prompt > prompt.txt
    """
    from polyseme.metrics import top_words
    from polyseme.metrics.coherence import coherence_of

    opened = open_level(run, level)
    brief, documents = documents is None and opened.parents is not None, 2 if documents is None else documents
    if prompt:
        if as_json:
            raise InputError("--prompt prints a text: leave --json out.")
        print_data(opened.naming_prompt(words, documents))
        return
    screen = Console()
    if brief and not as_json:
        print_topics(topic_rows(opened, n_words=words), screen, Path(run))
        print_line(screen, levels_note(opened, run))
        return
    coherence = coherence_of(_cooccurrence(opened, top_words(opened.word_amounts))).topics
    rows = topic_rows(opened, n_words=words, n_documents=documents, coherence=coherence)
    if as_json:
        print_json("topics", {"topics": [asdict(row) for row in rows]})
    else:
        print_topic_details(rows, screen)
        if tree := node_tree(opened, words):
            screen.print("\nTree of topics, with the words that they share", tree, sep="\n")
        print_junk(opened, screen, run)
        if note := levels_note(opened, run):
            print_line(screen, note)


def _cooccurrence(view: TopicView, topic_words: Array) -> Cooccurrence:
    """Count the documents of the run that contain each pair of top words of a topic, over all parts of the counts."""
    from polyseme.metrics.coherence import cooccurrence_in_documents

    first, *others = (cooccurrence_in_documents(topic_words, counts) for counts in view.corpus.count_parts())
    for other in others:
        first = replace(first, together=first.together + other.together, n_windows=first.n_windows + other.n_windows)
    return first
