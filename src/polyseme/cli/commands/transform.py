"""``polyseme transform``: computes the topics of new documents with the topics of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli import options
from polyseme.cli.console import Console, print_data, screen_reporter
from polyseme.cli.tables import check_table, encode_table
from polyseme.io.files import write_atomically
from polyseme.progress import pluralize


def transform(
    run: options.RunFolder,
    inputs: options.Inputs,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write: .csv, .parquet, .jsonl or .xlsx. By default CSV is printed.",
        ),
    ] = None,
    format: options.Format = None,
    text: options.Text = None,
    id: options.Id = None,
    title: options.Title = None,
    label: options.Label = None,
    time: options.Time = None,
    encoding: options.Encoding = None,
    uncategorized: options.Uncategorized = False,
    level: options.Level = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
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
    options.check_inputs(inputs)
    kind = check_table(output) if output is not None else "jsonl" if as_json else "csv"

    from polyseme.runs.reading import count_words
    from polyseme.text.readers.reader import read

    opened = options.open_level(run, level, trust_pattern=trust_pattern)
    reader = read(inputs, **options.reading(format, text, id, title, label, time, encoding, uncategorized))
    frame = opened.weigh(*count_words(opened.store, reader, screen_reporter(quiet=quiet)))
    content = encode_table(frame, kind)
    if output is None:
        print_data(content.decode())
        return
    write_atomically(output, content)
    if not quiet:
        Console().print(f"{pluralize(len(frame), 'document')} written to {output}.")
