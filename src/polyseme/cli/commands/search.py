"""``polyseme search``: finds documents of a run, and the words that explain each hit."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from polyseme.cli import options
from polyseme.cli.console import print_json, screen_reporter
from polyseme.terminal import Console

if TYPE_CHECKING:
    from polyseme.retrieval.queries import Hit, Results

WORDS_SHOWN = 6
EXCERPT_WIDTH = 140


def search(
    run: options.RunFolder,
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS...", help="Words to search for or, with --like, the id of a document.")
    ],
    number: Annotated[
        int, typer.Option("-n", "--number", min=1, metavar="N", help="Number of documents to show.")
    ] = 10,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="bm25+topics (words first, then the run's topics), bm25, tfidf, tf, plsi-q or plsi-u (the run's "
            "topics), lsi, or plsi* (fits its own models on first use and stores them in the run).",
        ),
    ] = "bm25+topics",
    like: Annotated[bool, typer.Option("--like", help="Find documents similar to the one with this id.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
) -> None:
    """Search the documents of a run.

    Each hit lists the words that explain its score. Words of the query are bold; words in (parentheses) do not occur
    in the document but are likely given its topics.

    Examples:

      polyseme search letters-run harvest and weather

      polyseme search letters-run 1871/june.txt --like --json
    """
    from polyseme.runs.searching import search_run

    results = search_run(
        Path(run), " ".join(words), number, method=method, like=like, report=screen_reporter(quiet=quiet),
        trust_pattern=trust_pattern,
    )  # fmt: skip
    if as_json:
        print_json(results.to_dict())
    elif len(results):
        Console().print(_hit_table(results))
    else:
        Console().print(results.note)


def _hit_table(results: Results) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", justify="right", style="cyan")
    table.add_column("score", justify="right")
    table.add_column("document, words that explain the score, beginning", overflow="fold")
    for hit in results:
        content = Text(hit.title or hit.id, style="bold")
        content.append(f"  {hit.id}\n" if hit.title and hit.title != hit.id else "\n", style="not bold dim")
        content.append_text(_words(hit))
        content.append(f"\n{shorten(hit.excerpt, EXCERPT_WIDTH, placeholder=' …')}", style="not bold dim")
        table.add_row(str(hit.rank), f"{hit.score:.3f}", content)
    return table


def _words(hit: Hit) -> Text:
    text = Text()
    for found in hit.words[:WORDS_SHOWN]:
        word = found.word if found.in_document else f"({found.word})"
        text.append(f"{word} ", style="bold green" if found.in_query else "not bold green")
    return text
