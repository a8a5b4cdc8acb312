"""``polyseme topics``: the topics of a run."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from polyseme.cli import options
from polyseme.cli.topic_table import topic_rows, topic_table
from polyseme.metrics import coherence, top_words
from polyseme.runs import open_run


def topics(
    run: options.RunFolder,
    words: Annotated[int, typer.Option("--words", "-w", min=1, help="Words shown of each topic.")] = 10,
    documents: Annotated[int, typer.Option("--documents", "-d", min=0, help="Documents shown of each topic.")] = 2,
    as_json: options.Json = False,
) -> None:
    """Show the topics of a run: weight, fit, coherence (NPMI), words, and the most typical documents.

    Examples:

      polyseme topics letters-run

      polyseme topics letters-run --words 20 --json
    """
    opened = open_run(run)
    rows = topic_rows(
        opened.model,
        opened.vocabulary,
        opened.names,
        opened.labels,
        opened.topic_names,
        n_words=words,
        n_documents=documents,
        coherence=coherence(top_words(opened.model.components_), opened.counts).topics,
    )
    if as_json:
        typer.echo(json.dumps([row.as_dict() for row in rows], ensure_ascii=False, indent=2))
    else:
        Console().print(topic_table(rows))
