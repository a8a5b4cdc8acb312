"""``polyseme transform``: computes the topics of new documents with the topics of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from polyseme.cli.console import Console, print_data, print_written, screen_reporter
from polyseme.cli.options import JSON, QUIET, Inputs, RunFolder, check_inputs, open_level, takes
from polyseme.cli.tables import TABLE_HELP, check_table, encode_table
from polyseme.io.files import write_output
from polyseme.options import LEVEL, READING, RUN_OUTPUT
from polyseme.progress import pluralize


@takes(
    *READING,
    LEVEL,
    replace(RUN_OUTPUT, help=f"{TABLE_HELP} By default CSV is printed.", metavar="FILE"),
    JSON,
    QUIET,
)
def transform(
    run: RunFolder,
    inputs: Inputs,
    output: Path | None,
    level: int | None,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Compute the topics of new documents.

    The run does not change. Columns of the table: id, title, label, time, source, tokens (number of words that the run
    knows), topic (the main topic), name, share (its weight), reason, and the weight of each topic under its number and
    name. A short text gets weights near those of the mean document. A text without any known word has empty cells, and
    the column reason says why. A run with topics tied to labels (--labels-from) adds predicted (the label) and
    probability.

    Examples:

      polyseme transform letters-run new-letters/ -o topics.parquet

      polyseme transform letters-run new.csv --text body > topics.csv
    """
    check_inputs(inputs)
    kind = check_table(output) if output is not None else "jsonl" if as_json else "csv"

    from polyseme.runs.reading import count_words
    from polyseme.text.readers.reader import read

    opened = open_level(run, level)
    reader = read(inputs, **reading)
    frame = opened.weigh(*count_words(opened.store, reader, screen_reporter(quiet=quiet)))
    content = encode_table(frame, kind)
    if output is None:
        print_data(content.decode())
        return
    write_output(output, content)
    if as_json:
        print_written("transform", output)
    elif not quiet:
        Console().print(f"{pluralize(len(frame), 'document')} written to {output}.")
