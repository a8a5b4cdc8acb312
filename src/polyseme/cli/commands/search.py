"""``polyseme search``: finds documents of a run, with a snippet and the words that explain each hit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from polyseme.cli.console import Console, print_json, screen_reporter
from polyseme.cli.options import JSON, QUIET, RunFolder, takes
from polyseme.options import LEVEL, SEARCHING, Option
from polyseme.progress import pluralize

if TYPE_CHECKING:
    from polyseme.retrieval.queries import Hit, Results

WORDS_SHOWN = 6
UNKNOWN_SHOWN = 12
MARKED = "bold green"
EXCLUDED_WORD = re.compile(r"-(?!n\d)[^\W\d_][^\s=]+")


@takes(
    Option("number", "Number of documents to show.", None, int, 10, ("-n", "--number"), metavar="N", least=1),
    *SEARCHING,
    LEVEL,
    JSON,
    QUIET,
)
def search(
    run: RunFolder,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS...",
            help="Words to search for or, with --like, the id of a document. comput* stands for all words that begin "
            "so; -word or NOT word excludes documents with the word; documents must contain a phrase in double "
            "quotation marks exactly. In a shell write '\"new york\" comput*'.",
        ),
    ],
    *,
    number: int,
    level: int | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Search the documents of a run.

    Each hit shows a part of the text with the words of the query in bold, and the words that explain its score. Words
    in (parentheses) do not occur in the document but are likely given its topics.

    Examples:

      polyseme search letters-run harvest and weather

      polyseme search letters-run '"harvest moon" rain*' -winter --since 1871-06

      polyseme search letters-run 1871/june.txt --like --json
    """
    from polyseme.runs.searching import search_run
    from polyseme.runs.store import RunStore

    store, view = RunStore.open(Path(run)), None
    if level is not None and level != store.info.model.n_topics:
        from polyseme.runs.run import Run

        view = Run(store).level(level)
    results = search_run(store, " ".join(words), number, view=view, report=screen_reporter(quiet=quiet), **given)
    if as_json:
        print_json("search", results.to_dict())
        return
    if results.unknown:
        Console().print(Text(_unknown_words(results)))
    if len(results):
        Console().print(_hit_table(results))
    else:
        Console().print(results.note)


def _unknown_words(results: Results) -> str:
    words = [f"{word} (nearest: {', '.join(nearest)})" if nearest else word for word, nearest in results.unknown]
    more = f" and {len(words) - UNKNOWN_SHOWN} more" if len(words) > UNKNOWN_SHOWN else ""
    return f"Not in the vocabulary: {', '.join(words[:UNKNOWN_SHOWN])}{more}."


def _hit_table(results: Results) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", justify="right", style="cyan")
    table.add_column("score", justify="right")
    table.add_column("document, snippet, words that explain the score", overflow="fold")
    for hit in results:
        content = Text(hit.title or hit.id, style="bold")
        content.append(f"  {hit.id}\n" if hit.title and hit.title != hit.id else "\n", style="not bold dim")
        if hit.n_duplicates:
            content.append(f"and {pluralize(hit.n_duplicates, 'near-duplicate')}\n", style="not bold dim")
        if hit.snippet.text:
            content.append_text(_snippet(hit)).append("\n")
        content.append_text(_words(hit))
        table.add_row(str(hit.rank), f"{hit.score:.3f}", content)
    return table


def _snippet(hit: Hit) -> Text:
    text = Text(hit.snippet.text, style="not bold")
    for start, end in hit.snippet.marks:
        text.stylize(MARKED, start, end)
    return text


def _words(hit: Hit) -> Text:
    text = Text(style="not bold dim")
    for score in hit.words[:WORDS_SHOWN]:
        word = score.word if score.in_document else f"({score.word})"
        text.append(f"{word} ", style="not dim green" if score.in_query else "")
    return text
