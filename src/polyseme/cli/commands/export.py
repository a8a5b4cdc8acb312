"""``polyseme export``: writes the documents of a run with their topics to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli import options
from polyseme.cli.console import Console
from polyseme.cli.tables import check_table, encode_table
from polyseme.io.files import write_atomically
from polyseme.progress import pluralize


def export(
    run: options.RunFolder,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File to write: .csv, .parquet, .jsonl or .xlsx.")
    ],
    level: options.Level = None,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
) -> None:
    """Write the documents of a run with their topics to a table.

    Columns: id, title, label, time, source, excerpt, duplicate_of and duplicate_row (the first document of a group of
    near-duplicates), tokens, topic (the main topic), share (its weight), the weight of each topic as topic_0, topic_1
    ..., and the main topic at each finer level, such as level_40.

    Examples:

      polyseme export letters-run -o letters.csv

      polyseme export letters-run --level 40 -o letters.parquet
    """
    kind = check_table(output)
    documents = options.open_level(run, level, trust_pattern=trust_pattern).documents
    write_atomically(output, encode_table(documents, kind))
    if not quiet:
        Console().print(f"{pluralize(len(documents), 'document')} written to {output}.")
