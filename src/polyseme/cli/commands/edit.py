"""``polyseme edit``: names, merges and removes topics of a run, and removes words."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from polyseme.cli import options
from polyseme.cli.console import Console, print_topics, timestamp, topic_rows
from polyseme.errors import InputError


def edit(
    run: options.RunFolder,
    rename: Annotated[
        list[str] | None,
        typer.Option("--rename", metavar="TOPIC=NAME", help='Name a topic: "3=Space flight".'),
    ] = None,
    merge: Annotated[
        list[str] | None, typer.Option("--merge", metavar="TOPICS", help="Merge topics into one: --merge 4,7.")
    ] = None,
    drop: Annotated[list[int] | None, typer.Option("--drop", metavar="TOPIC", help="Remove a topic.")] = None,
    ban: Annotated[
        list[str] | None, typer.Option("--ban", metavar="WORD", help="Remove a word from all topics and documents.")
    ] = None,
    refine: Annotated[
        bool, typer.Option("--refine", help="Afterwards fit again, starting from the edited topics.")
    ] = False,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
) -> None:
    """Name, merge or remove topics of a run, or remove words.

    --rename, --merge, --drop and --ban can be repeated. Topics are given by their numbers before the edit; merging and
    removing topics changes the numbers of the topics after them. The edited run replaces the run; run.json lists all
    edits.

    Examples:

      polyseme edit letters-run --rename "3=Harvest" --rename "5=Family"

      polyseme edit letters-run --merge 4,7 --drop 9 --ban sincerely --refine
    """
    from sklearn.base import clone

    from polyseme.cli.fitting import exit_if_interrupted, fit_with_bar, rewrite_run
    from polyseme.runs import open_run
    from polyseme.runs.edits import Edits, apply_edits

    opened, notes = open_run(run, trust_pattern=trust_pattern), Console(stderr=True)
    edits = Edits(
        dict(_parse_name(text) for text in rename or ()),
        [_parse_topics(text) for text in merge or ()],
        drop or (),
        ban or (),
    )
    if not (edits.to_dict() or refine):
        raise InputError("Nothing to edit: use --rename, --merge, --drop, --ban or --refine.")
    model = opened.model
    edited = apply_edits(
        edits, model.components_, model.topic_weights_, opened.counts, opened.vocabulary, opened.topic_names
    )
    interrupted = False
    if edits.changes_topics:
        model = model.with_topics(edited.components, edited.counts)
    if refine:
        start = (model.doc_topic_, model.components_)
        model = clone(model).set_params(n_components=len(edited.components), init=start)
        interrupted, _ = fit_with_bar(model, edited.counts, notes, quiet=quiet)
    entry: dict[str, Any] = {"when": timestamp(), **edits.to_dict(), **({"refine": True} if refine else {})}
    about = {
        **opened.about,
        "topic_names": {str(topic): name for topic, name in edited.names.items()},
        "edits": [*opened.about.get("edits", []), entry],
    }
    rewrite_run(opened, model, replace(opened.counted, counts=edited.counts), about, opened.texts, notes, quiet=quiet)
    if not quiet:
        rows = topic_rows(model, [edited.counts], opened.vocabulary, opened.names, opened.label_numbers, edited.names)
        print_topics(rows, Console(), opened.path)
    exit_if_interrupted(interrupted, notes)


def _parse_name(text: str) -> tuple[int, str]:
    topic, equals, name = text.partition("=")
    if not equals or not _is_topic(topic):
        raise InputError(f'--rename must be a topic and a name, such as --rename "3=Space flight", got {text!r}.')
    return int(topic), name.strip()


def _is_topic(text: str) -> bool:
    """Return whether int() accepts the text; str.isdigit accepts "²", too, which int() does not."""
    return text.strip().isdecimal() and len(text.strip()) < 10


def _parse_topics(text: str) -> list[int]:
    parts = text.split(",")
    if not all(map(_is_topic, parts)):
        raise InputError(f"--merge must be topics separated by commas, such as --merge 4,7, got {text!r}.")
    return [int(part) for part in parts]
