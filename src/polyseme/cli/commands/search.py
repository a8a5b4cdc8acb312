"""``polyseme search``: finds documents of a run, and the words that explain each hit."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from polyseme.cli import options
from polyseme.cli.console import Console, print_json
from polyseme.errors import ModelFileError

if TYPE_CHECKING:
    from polyseme.retrieval import SearchIndex
    from polyseme.retrieval.queries import Hit, Results
    from polyseme.runs import Run


INDEX_FILE = "search.safetensors"
"""File in the run folder that stores the models of plsi*."""
WORDS_SHOWN = 6
EXCERPT_WIDTH = 140
LSI_DIMENSIONS = 128
"""Largest number of dimensions of lsi."""


def search(
    run: options.RunFolder,
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS...", help="Words to search for or, with --like, the id of a document.")
    ],
    number: Annotated[int, typer.Option("-n", "--number", min=1, metavar="N", help="Documents shown.")] = 10,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="plsi-q or plsi-u (the run's topics), bm25, tfidf, tf, lsi, or plsi* (most accurate; fits its own "
            "models on first use and stores them in the run).",
        ),
    ] = "plsi-q",
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
    from polyseme.runs import open_run

    opened = open_run(run, trust_pattern=trust_pattern)
    index = index_of(opened, method, Console(stderr=True, quiet=quiet))
    query = " ".join(words)
    results = (
        index.similar_documents(query, number, method=method) if like else index.search(query, number, method=method)
    )
    if as_json:
        print_json(results.to_dict())
    elif len(results):
        Console().print(_hit_table(results, opened))
    else:
        Console().print(results.note)


def index_of(run: Run, method: str, notes: Console) -> SearchIndex:
    """Return the index of a run's documents, with the models that the method needs."""
    from polyseme.retrieval import SearchIndex

    saved = run.path / INDEX_FILE
    if method == "plsi*" and saved.is_file():
        return _saved_index(saved, run)
    index = SearchIndex(run.counts, run.vocabulary, ids=run.ids, titles=run.names, vectorizer=run.vectorizer)
    index.set_model(run.model, run.model.doc_topic_)
    if method == "lsi":
        index.fit_lsi(min(LSI_DIMENSIONS, max(1, min(run.counts.shape) - 1)))
    if method == "plsi*":
        notes.print("Fitting the models of plsi*, once for this run ...")
        index.fit_models(verbose=int(notes.is_terminal and not notes.quiet))
        try:
            index.save(saved)
        except OSError as error:  # a run that is read-only, or a full disk
            reason = error.strerror or str(error)
            notes.print(f"The models could not be stored in the run ({reason}): the next search fits them again.")
    return index


def _saved_index(path: Path, run: Run) -> SearchIndex:
    """Load the index that an earlier search stored in the run."""
    from polyseme.retrieval import SearchIndex

    index = SearchIndex.load(path, vectorizer=run.vectorizer)
    if index.vocabulary != run.vocabulary or len(index.ids) != len(run.documents):
        raise ModelFileError(f"{path} belongs to another run: remove it, and the next search writes a new one.")
    return index.set_model(run.model, run.model.doc_topic_)


def _hit_table(results: Results, run: Run) -> Table:
    excerpts: list[Any] = run.documents["excerpt"].to_list()
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", justify="right", style="cyan")
    table.add_column("score", justify="right")
    table.add_column("document, words that explain the score, beginning", overflow="fold")
    for hit in results:
        content = Text(hit.title or hit.id, style="bold")
        content.append(f"  {hit.id}\n" if hit.title and hit.title != hit.id else "\n", style="not bold dim")
        content.append_text(_words(hit))
        content.append(f"\n{shorten(excerpts[hit.row] or '', EXCERPT_WIDTH, placeholder=' …')}", style="not bold dim")
        table.add_row(str(hit.rank), f"{hit.score:.3f}", content)
    return table


def _words(hit: Hit) -> Text:
    text = Text()
    for found in hit.words[:WORDS_SHOWN]:
        word = found.word if found.in_document else f"({found.word})"
        text.append(f"{word} ", style="bold green" if found.in_query else "not bold green")
    return text
