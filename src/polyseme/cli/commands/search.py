"""``polyseme search``: finds documents of a run, with a snippet and the words that explain each hit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from polyseme.cli import options
from polyseme.cli.console import Console, print_json, screen_reporter
from polyseme.progress import pluralize

if TYPE_CHECKING:
    from polyseme.retrieval.queries import Hit, Results

WORDS_SHOWN = 6
UNKNOWN_SHOWN = 12
MARKED = "bold green"
_EXCLUDED = re.compile(r"-(?!n\d)[^\W\d_][^\s=]+")


def search(
    run: options.RunFolder,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS...",
            help="Words to search for or, with --like, the id of a document. comput* stands for all words that begin "
            "so; -word or NOT word excludes documents with the word; documents must contain a phrase in double "
            "quotation marks exactly. In a shell write '\"new york\" comput*'.",
        ),
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
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="LABEL", help="Only documents with this label. Repeatable.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC", help="Only documents of this main topic: number or name. Repeatable."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="Only documents from this year, month or day on.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="Only documents up to this year, month or day.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--not", metavar="WORD", help="Only documents without this word. Repeatable.")
    ] = None,
    level: options.Level = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
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

    store, view = RunStore.open(Path(run), trust_pattern=trust_pattern), None
    if level is not None and level != store.info.model.n_topics:
        from polyseme.runs.run import Run

        view = Run(store).level(level)
    results = search_run(
        store, " ".join(words), number, method=method, like=like, label=label, topic=topic, since=since, until=until,
        exclude=exclude, view=view, report=screen_reporter(quiet=quiet),
    )  # fmt: skip
    if as_json:
        print_json(results.to_dict())
        return
    if results.unknown:
        Console().print(Text(_unknown_words(results)))
    if len(results):
        Console().print(_hit_table(results))
    else:
        Console().print(results.note)


class SearchCommand(TyperCommand):
    """The command with -word as an argument, although it looks like an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments. A space before the dash makes an excluded word an argument."""
        return super().parse_args(ctx, [f" {arg}" if _EXCLUDED.fullmatch(arg) else arg for arg in args])


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
