"""Options of commands, made from the declarations in `polyseme.options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from polyseme.errors import InputError
from polyseme.options import OUTPUT, Option
from polyseme.runs.store import check_is_run
from polyseme.text.readers.inputs import files_of, places

if TYPE_CHECKING:
    from polyseme.runs.view import TopicView

Command = TypeVar("Command", bound=Callable[..., None])


def _existing_run(folder: str) -> str:
    check_is_run(Path(folder))
    return folder


def check_inputs(paths: list[str]) -> None:
    """Raise InputError if an input does not exist or has no files. Commands call this before their slow imports."""
    problems: list[str] = []
    for place in (given := places(paths)):
        if problems or next(files_of(place, lambda *problem: problems.append(problem[-1])), None) is not None:
            return
    name = given[0].name if len(given) == 1 else f"{given[0].name} and {len(given) - 1} more"
    if not problems:
        raise InputError(f"No documents were found in {name}: there is nothing in it.")


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        help="Folders of text files, .csv .tsv .jsonl .parquet .xlsx .ods tables, MediaWiki dumps .xml[.bz2|.gz], "
        ".pdf .docx .html .eml .mbox files. A single text file and - (standard input) contain one document per line.",
    ),
]
RunFolder = Annotated[
    str, typer.Argument(metavar="RUN", help="A folder written by polyseme fit.", callback=_existing_run)
]
JSON = Option("as_json", "Print JSON instead of a table.", OUTPUT, bool, False, ("--json",))
QUIET = Option("quiet", "Print only the result and errors.", OUTPUT, bool, False, ("--quiet", "-q"))


def takes(*options: Option) -> Callable[[Command], Command]:
    """Add options to a command, which gets their values as keyword arguments by their Python names."""

    def decorate(command: Command) -> Command:
        added = {option.name: _parameter(option) for option in options}
        own = inspect.signature(command, eval_str=True).parameters.values()
        arguments = [each for each in own if each.name not in added and each.kind is not each.VAR_KEYWORD]
        parameters = sorted([*arguments, *added.values()], key=lambda each: each.kind)
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(option: Option) -> inspect.Parameter:
    """Return an option as typer reads it from the signature of a command."""
    kind: Any = Literal[option.choices] if option.choices else option.type
    if option.several:
        kind = list[kind]
    settings = typer.Option(
        *option.declared_flags, help=option.help, metavar=option.metavar, min=option.least, max=option.most,
        rich_help_panel=option.group, callback=_CONVERSIONS.get(option.name),
    )  # fmt: skip
    if option.default is None:
        kind = kind | None
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=Annotated[kind, settings]
    )


def open_level(run: str, level: int | None) -> TopicView:
    """Open a run, and return the topics of a level; None is the reading level."""
    from polyseme.runs import open_run

    opened = open_run(run)
    return opened.view if level is None else opened.level(level)


def _read_stop_words(path: Path | None) -> list[str] | None:
    """Return the words of a UTF-8 text file, separated by white space; None without a file."""
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8-sig").split()
    except OSError as error:
        raise InputError(f"--stop-words: {path} cannot be read ({error.strerror or error}).") from None
    except UnicodeDecodeError:
        raise InputError(f"--stop-words: {path} is not UTF-8: save the file as UTF-8.") from None


def _read_seeds(path: Path | None) -> dict[str, list[str]] | None:
    if path is None:
        return None
    from polyseme.runs.seed_words import read_seeds

    return read_seeds(path)


def _number_or_auto(value: str | None) -> str | int | None:
    return int(value) if value is not None and value.isdecimal() else value


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "language": lambda language: None if language == "none" else language,
    "stop_words": _read_stop_words,
    "seeds": _read_seeds,
    "new_topics": _number_or_auto,
}
"""Functions from values on the command line to those in Python."""
