"""``polyseme edit``: names, merges and deletes topics of a run, and hides words."""

from __future__ import annotations

from pathlib import Path

from polyseme.cli.console import Console, exit_if_interrupted, print_topics, screen_reporter, topic_rows
from polyseme.cli.options import QUIET, RunFolder, takes
from polyseme.errors import InputError
from polyseme.options import EDITING, LEVEL, Option


@takes(
    EDITING[0],
    Option("names", 'Name topics with the lines of a file: "3: Space flight".', metavar="FILE"),
    *EDITING[1:],
    LEVEL,
    QUIET,
)
def edit(
    run: RunFolder,
    rename: list[str] | None,
    names: str | None,
    merge: list[str] | None,
    delete: list[int] | None,
    ban: list[str] | None,
    refit: bool,
    level: int | None,
    quiet: bool,
) -> None:
    """Name, merge or delete topics of a run, or hide words.

    --rename, --merge, --delete and --ban can be repeated. Topics are given by their numbers before the edit; merging
    and deleting topics changes the numbers of later topics. Banned words stay in the model unless --refit fits it again
    without them. With --level, --rename and --names name topics of a finer level. The edited run replaces the run;
    run.json lists all edits.

    Examples:

      polyseme edit letters-run --rename "3=Harvest" --rename "5=Family"

      polyseme edit letters-run --merge 4,7 --delete 9 --ban sincerely --refit

      polyseme topics letters-run --prompt > prompt.txt

      polyseme edit letters-run --names answer.txt
    """
    from polyseme.runs.changes import edit_run
    from polyseme.runs.info import Edit

    edit = Edit.of(
        {**({} if names is None else _read_names(names)), **dict(_parse_name(text) for text in rename or ())},
        [_parse_topics(text) for text in merge or ()],
        delete or (),
        [word for text in ban or () for word in text.replace(",", " ").split()],
        refit=refit,
        level=level,
    )
    report = screen_reporter(quiet=quiet)
    done = edit_run(Path(run), edit, report=report)
    if not quiet:
        print_topics(topic_rows(done.run.level(level or done.run.levels[0])), Console(), Path(run))
    exit_if_interrupted(done.interrupted)


def _read_names(file: str) -> dict[int, str]:
    """Return the names in a file, or in standard input."""
    from polyseme.runs.names import parse_names
    from polyseme.text.readers.inputs import standard_input

    try:
        text = (standard_input().read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"--names: {file} cannot be read: {reason}.") from None
    return parse_names(text)


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
