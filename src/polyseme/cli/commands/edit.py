"""``polyseme edit``: names, merges, deletes and hides topics of a run, and hides words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.cli.console import (
    Console,
    exit_if_interrupted,
    name_by_model,
    print_json,
    print_topics,
    screen_reporter,
    topic_rows,
    topics_as_dicts,
)
from polyseme.cli.options import JSON, QUIET, RunFolder, takes
from polyseme.errors import InputError
from polyseme.options import EDITING, LEVEL, NAMER, Option
from polyseme.progress import Reporter

if TYPE_CHECKING:
    from polyseme.runs import Run


@takes(
    EDITING[0],
    Option("names", 'Name topics with the lines of a file: "3: Space flight".', metavar="FILE"),
    *EDITING[1:],
    replace(NAMER, group=None),
    Option("undo", "Restore the run as it was before the last edit.", None, bool, False),
    LEVEL,
    JSON,
    QUIET,
)
def edit(
    run: RunFolder,
    rename: list[str] | None,
    names: str | None,
    merge: list[str] | None,
    delete: list[int] | None,
    hide: list[int] | None,
    ban: list[str] | None,
    refit: bool,
    file: str | None,
    dry_run: bool,
    undo: bool,
    namer: str | None,
    level: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Name, merge, delete or hide topics of a run, or hide words.

    --rename, --merge, --delete, --hide and --ban can be repeated. Topics are given by their numbers before the edit;
    merging and deleting topics changes the numbers of later topics. Banned words stay in the model unless --refit fits
    it again without them. With --level, --rename and --names name topics of a finer level. --from applies the edits
    that the explorer page exports. The edited run replaces the run; run.json lists all edits. --undo restores the run
    before the last edit, until the next update. --dry-run makes the edit in a temporary folder, which takes as long,
    and prints what it changes.

    Examples:

      polyseme edit letters-run --rename "3=Harvest" --rename "5=Family"

      polyseme edit letters-run --merge 4,7 --delete 9 --ban sincerely --refit

      polyseme topics letters-run --prompt > prompt.txt

      polyseme edit letters-run --names answer.txt

      polyseme edit letters-run --namer gpt-4o-mini

      polyseme edit letters-run --from edits.json

      polyseme edit letters-run --undo
    """
    from polyseme.runs import open_run
    from polyseme.runs.edit import edit_changes, edit_run, undo_run
    from polyseme.runs.edit_files import read_edits
    from polyseme.runs.info import Edit
    from polyseme.runs.language_model import language_model_namer

    report, screen, before = screen_reporter(quiet=quiet or as_json), Console(), open_run(run)

    def show(edited: Run, level: int | None, made: list[str], *, interrupted: bool = False) -> None:
        view = edited.level(level or edited.levels[0])
        if as_json:
            state = {"run": run, "changes": made, "dry_run": dry_run, "interrupted": interrupted}
            print_json("edit", {**state, "topics": topics_as_dicts(view)})
            return
        for change in made if dry_run else ():
            screen.print(change, soft_wrap=True)
        if not quiet:
            print_topics(topic_rows(view), screen, Path(run))

    edits = rename or names or merge or delete or hide or ban
    changes = edits or refit or file or dry_run
    if undo:
        if changes or namer is not None:
            raise InputError("--undo restores the run before the last edit: give it without other changes.")
        show(undo_run(Path(run), report=report), level, ["The last edit is undone."])
        return
    if namer is not None:
        if changes:
            raise InputError("--namer names topics: use it without other edits.")
        named = name_by_model(Path(run), language_model_namer(namer), level, quiet=quiet or as_json)
        show(named, level, [])
        return
    edit = Edit.of(
        {
            **({} if names is None else _read_names(names, report)),
            **dict(_parse_name(text) for text in rename or ()),
        },
        [_parse_topics(text) for text in merge or ()],
        delete or (),
        [word for text in ban or () for word in text.replace(",", " ").split()],
        hide=hide or (),
        refit=refit,
        level=level,
    )
    made_for = None
    if file is not None:
        if edits or level is not None:
            raise InputError("--from FILE contains the edits: give no others, or make them in a second command.")
        edit, made_for = read_edits(file, refit=refit)
    done = edit_run(Path(run), edit, made_for=made_for, dry_run=dry_run, report=report)
    made = edit_changes(before, done.run) if dry_run or as_json else []
    show(done.run, edit.level, made, interrupted=done.interrupted)
    if dry_run and not as_json:
        screen.print(f"{run} has not changed: leave --dry-run out to make the edit.", soft_wrap=True)
    exit_if_interrupted(done.interrupted)


def _read_names(file: str, report: Reporter) -> dict[int, str]:
    """Return the names in a file, or in standard input, and report which of its lines have names."""
    from polyseme.runs.names import read_names
    from polyseme.text.readers.inputs import standard_input

    try:
        text = (standard_input().read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"--names: {file} cannot be read: {reason}.") from None
    answer = read_names(text)
    for note in answer.notes("standard input" if file == "-" else file):
        report.note(note)
    return answer.names


def _parse_name(text: str) -> tuple[int, str]:
    topic, equals, name = text.partition("=")
    if not equals or not _is_topic(topic):
        raise InputError(f'--rename must be a topic and a name, such as --rename "3=Space flight", got {text!r}.')
    return int(topic), name.strip()


def _is_topic(text: str) -> bool:
    """Return whether int() accepts the text as a topic. str.isdigit is wrong here: it also accepts "²"."""
    return text.strip().isdecimal() and len(text.strip()) < 10


def _parse_topics(text: str) -> list[int]:
    parts = text.split(",")
    if not all(map(_is_topic, parts)):
        raise InputError(f"--merge must be topics separated by commas, such as --merge 4,7, got {text!r}.")
    return [int(part) for part in parts]
