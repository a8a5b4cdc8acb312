"""``polyseme select``: compares numbers of topics by how well they predict and how good they are to read."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from polyseme.cli.console import Console, print_json, screen_reporter
from polyseme.cli.options import JSON, QUIET, Inputs, check_inputs, takes
from polyseme.errors import InputError
from polyseme.io.files import write_output
from polyseme.options import COUNTING, N_FOLDS, OUTPUT, RANDOM_STATE, READING, SAMPLING, TOPICS, Option, checked

if TYPE_CHECKING:
    from polyseme.selection.n_topics import Selection


_PLOT_FORMATS = ("png", "svg", "pdf")
_RANGE = re.compile(r"(\d{1,9}):(\d{1,9})(?::(\d{1,9}))?")
_LIST = re.compile(r"\s*\d{1,9}(\s*,\s*\d{1,9})*\s*")
_MAX_NUMBERS = 1000


@takes(
    Option(
        "k",
        "Numbers to predict with: 5:60 (about ten of them), 5:60:5 (with a step), or 5,10,20. By default 2 to about "
        "twice the square root of the number of documents.",
        TOPICS,
        flags=("-k",),
        metavar="RANGE",
    ),
    N_FOLDS,
    Option("runs", "Number of folds that are held out in turn.", TOPICS, int, 2, metavar="N", least=1),
    Option("refine", "Also try numbers between those given.", TOPICS, bool, True, ("--refine/--no-refine",)),
    *READING,
    *SAMPLING,
    *COUNTING,
    RANDOM_STATE,
    Option("plot", "Plot to write, by default INPUT-topics.png.", OUTPUT, Path, metavar="FILE"),
    JSON,
    QUIET,
)
def select(
    inputs: Inputs,
    k: str | None,
    n_folds: int,
    runs: int,
    refine: bool,
    plot: Path | None,
    random_state: int,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Compare numbers of topics: which predicts best, and which is good to read.

    Prints a table of how well each number of topics predicts held-out documents, and how well repeated fits agree about
    the topics of documents, and writes a plot of both. The number to read is chosen between 5 and 25, regardless of -k.

    Examples:

      polyseme select letters/ -k 5:60

      polyseme select news.csv --text body -k 10:100:10 --runs 5

      polyseme select itwiki.xml.bz2 --sample 2000 --language italian --json
    """
    check_inputs(inputs)

    from polyseme.plots import plot_selection
    from polyseme.runs.choosing import check_n_documents
    from polyseme.runs.counting import count_documents
    from polyseme.runs.settings import counting_of
    from polyseme.selection import select_n_topics
    from polyseme.text.readers.reader import read
    from polyseme.text.vectorizer import Vectorizer

    screen, report = Console(), screen_reporter(quiet=quiet)
    numbers = parse_n_topics(k)
    path = plot or default_plot(inputs)
    kind = path.suffix.removeprefix(".").lower()
    if kind not in _PLOT_FORMATS:
        raise InputError(f"--plot cannot write the format {kind!r}: use .png, .svg or .pdf.")
    if not path.parent.is_dir():
        raise InputError(f"--plot: the folder {path.parent} does not exist.")
    reader = read(inputs, random_state=random_state, **checked(given, (*READING, *SAMPLING)))
    vectorizer = Vectorizer(**counting_of(given))
    counts = count_documents(reader, vectorizer, report)
    if numbers is not None:
        check_n_documents(counts.shape[0], max(numbers))
    with report.stage("Choosing the number of topics") as update:
        selection = select_n_topics(
            counts, numbers, n_folds=n_folds, folds_run=runs, refine=refine, random_state=random_state, progress=update
        )
    image = io.BytesIO()
    plot_selection(selection).figure.savefig(image, format=kind, dpi=150)
    write_output(path, image.getvalue())
    if as_json:
        print_json("select", {**selection.as_dict(), "plot": str(path)})
        return
    screen.print(selection_table(selection))
    screen.print(f"{selection.reason}\nPlot: {path}")


def parse_n_topics(text: str | None) -> list[int] | None:
    """Return the numbers of topics in the value of -k: about ten for a:b, all for a:b:step, or a list a,b,c."""
    from polyseme.selection.n_topics import spread_values

    if text is None:
        return None
    match = _RANGE.fullmatch(text.strip())
    if match is None and not _LIST.fullmatch(text):
        raise InputError(f"-k must be a range such as 5:60 or 5:60:5, or numbers such as 5,10,20, got {text!r}.")
    if match is None:
        numbers = [int(part) for part in text.split(",")]
    elif match[3] is None:
        return spread_values(int(match[1]), int(match[2]))
    elif int(match[3]) == 0:
        raise InputError("The step of -k must be at least 1.")
    else:
        steps = range(int(match[1]), int(match[2]) + 1, int(match[3]))
        if len(steps) > _MAX_NUMBERS:
            raise InputError(f"-k {text} contains {len(steps):,} numbers: choose a larger step, or leave the step out.")
        numbers = list(steps)
    if not numbers or min(numbers) < 1:
        raise InputError(f"-k {text}: give numbers of at least 1, and ranges that increase, such as 5:60:5.")
    return numbers


def default_plot(inputs: list[str]) -> Path:
    """Return the file named after the first input: news.csv.gz gives news-topics.png, in the working directory."""
    name = "" if inputs[0] == "-" else Path(inputs[0]).resolve().name
    return Path(f"{name.split('.')[0] or 'polyseme'}-topics.png")


def selection_table(selection: Selection) -> Table:
    """Return a table with a row for each number of topics and the chosen numbers marked.

    `behind` is the difference from the best number in nats per token. A number that was tried only for reading or only
    for prediction has no figures for the other purpose. The other columns of `Selection.table` are in the JSON output.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("topics", "agreement", "perplexity", "±", "behind", "±", "npmi"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    chosen = {"read": selection.chosen_to_read, "predict": selection.chosen_to_predict}

    def shown(value: float, form: str) -> str:
        return "-" if value != value else f"{value:{form}}"

    for row in selection.rows:
        purposes = " and ".join(purpose for purpose, number in chosen.items() if number == row.n_topics)
        table.add_row(
            f"{'> ' if purposes else ''}{row.n_topics}", shown(row.agreement, ".2f"), shown(row.perplexity, ".1f"),
            shown(row.standard_error, ".1f"), shown(row.behind, ".3f"), shown(row.behind_error, ".3f"),
            shown(row.coherence, ".2f"), f"to {purposes}" if purposes else "", style="bold" if purposes else "",
        )  # fmt: skip
    return table
