"""``polyseme search``: finds documents of a run, and the words that explain each hit.

The first search stores an index in the run. Later ones read the index and the rules of the vectorizer only; they import
neither scikit-learn nor polars.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from polyseme.cli import options
from polyseme.cli.console import Console, print_json
from polyseme.errors import InputError, ModelFileError, UnsupportedError
from polyseme.io.checks import check_fields, read_json
from polyseme.runs.folder import RUN_FIELDS, RUN_FILE

if TYPE_CHECKING:
    from polyseme.retrieval import SearchIndex
    from polyseme.retrieval.queries import Hit, Results
    from polyseme.text.words import WordRules


INDEX_FILE = "search.safetensors"
"""File in the run folder that stores the index, with the models of lsi and plsi* after their first use."""
_VECTORIZER_FILE = "vectorizer.json"
_SMALL_FILES = (RUN_FILE, _VECTORIZER_FILE)
_LARGE_FILES = ("model.safetensors", "counts.safetensors", "documents.parquet", "shards/manifest.json")
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
    from polyseme.retrieval.scores import method_settings

    method_settings(method, None, None)  # raises for an unknown method before an index is built
    query, folder = " ".join(words), Path(run)
    notes = Console(stderr=True, quiet=quiet)

    def answer(index: SearchIndex) -> Results:
        ask = index.similar_documents if like else index.search
        results = ask(query, number, method=method)
        for hit in results:
            _ = hit.words  # reads the documents of the hits, so that a damaged file is noticed here
        return results

    results = _stored_answer(folder, method, answer, notes, trust_pattern)
    if results is None:
        identity = run_identity(folder)
        index = index_of_run(folder, notes, trust_pattern=trust_pattern)
        _add_models(index, method, notes)
        _store(index, folder, identity, notes)
        results = answer(index)
    if as_json:
        print_json(results.to_dict())
    elif len(results):
        Console().print(_hit_table(results))
    else:
        Console().print(results.note)


def index_of_run(folder: Path, notes: Console, *, trust_pattern: bool) -> SearchIndex:
    """Return a new index of a run's documents, with its model. This is the only part that opens the whole run."""
    from polyseme.retrieval import SearchIndex
    from polyseme.runs import open_run

    run = open_run(folder, trust_pattern=trust_pattern)
    counts, vocabulary, ids, titles, model = run.counts, run.vocabulary, run.ids, run.names, run.model
    excerpts = [text or "" for text in run.column("excerpt")]
    try:
        vectorizer: Any = word_rules_of_run(folder, trust_pattern=trust_pattern)
    except UnsupportedError:
        vectorizer = run.vectorizer
    notes.print("Building the search index, once for this run ...")  # after all that can be wrong with the run
    index = SearchIndex(counts, vocabulary, ids=ids, titles=titles, excerpts=excerpts, vectorizer=vectorizer)
    return index.set_model(model.fitted_, model.doc_topic_)


def word_rules_of_run(folder: Path, *, trust_pattern: bool) -> WordRules:
    """Return the rules that count a query, from the vectorizer of a run."""
    from polyseme.text.saving import read_word_rules

    path = folder / _VECTORIZER_FILE
    try:
        return read_word_rules(read_json(path), trust_pattern=trust_pattern)
    except UnsupportedError:
        raise
    except (OSError, ValueError, ModelFileError) as error:
        raise ModelFileError(f"{path}: {error}") from None


def run_identity(folder: Path) -> str:
    """Return a digest that changes with the model, the counts or the documents of a run, without reading them."""
    digest = sha256()
    for name in _SMALL_FILES:
        digest.update((folder / name).read_bytes())
    for name in _LARGE_FILES:
        path = folder / name
        digest.update(f"{name} {path.stat().st_size if path.is_file() else ''}\n".encode())
    return digest.hexdigest()


def _stored_answer(
    folder: Path, method: str, answer: Callable[[SearchIndex], Results], notes: Console, trust_pattern: bool
) -> Results | None:
    """Return the answer of the index that an earlier search stored; None if it is missing, damaged or out of date."""
    from polyseme.retrieval import SearchIndex

    try:
        check_fields(read_json(folder / RUN_FILE), RUN_FIELDS, others=True)
        identity = run_identity(folder)
        index = SearchIndex.load(folder / INDEX_FILE, identity=identity)
        if index.vectorizer is None:  # the run has a pattern that must be trusted
            index.vectorizer = word_rules_of_run(folder, trust_pattern=trust_pattern)
        if not index.supports(method):
            _add_models(index, method, notes)
            _store(index, folder, identity, notes)
        return answer(index)
    except UnsupportedError:  # the vectorizer needs scikit-learn
        return None
    except InputError:
        raise
    except (OSError, ValueError, ModelFileError):  # opening the whole run reports what is wrong with it
        return None


def _add_models(index: SearchIndex, method: str, notes: Console) -> None:
    """Fit the models that a method needs beside the model of the run."""
    if method == "lsi":
        notes.print("Computing the dimensions of lsi, once for this run ...")
        index.fit_lsi(min(LSI_DIMENSIONS, max(1, min(index.counts.shape) - 1)))
    if method == "plsi*":
        notes.print("Fitting the models of plsi*, once for this run ...")
        index.fit_models(verbose=int(notes.is_terminal and not notes.quiet))


def _store(index: SearchIndex, folder: Path, identity: str, notes: Console) -> None:
    try:
        index.save(folder / INDEX_FILE, identity=identity)
    except OSError as error:  # a run that is read-only, or a full disk
        reason = error.strerror or str(error)
        notes.print(f"The index could not be stored in the run ({reason}): the next search builds it again.")


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
