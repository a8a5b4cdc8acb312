"""``polyseme export``: writes the documents of a run with their topics to a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from polyseme.cli.console import Console, print_written
from polyseme.cli.options import JSON, QUIET, RunFolder, open_level, takes
from polyseme.cli.tables import TABLE_HELP, check_table, encode_table
from polyseme.io.files import write_output
from polyseme.options import LEVEL, RUN_OUTPUT
from polyseme.progress import pluralize


@takes(LEVEL, replace(RUN_OUTPUT, help=TABLE_HELP, metavar="FILE", default=...), JSON, QUIET)
def export(run: RunFolder, output: Path, level: int | None, as_json: bool, quiet: bool) -> None:
    """Write the documents of a run with their topics to a table.

    Columns: id, title, label, time, source, excerpt, duplicate_of and duplicate_row (the first document of a group of
    near-duplicates), tokens, topic (the main topic), name, share (its weight), the weight of each topic as topic_0,
    topic_1 ..., and the main topic at each finer level, such as level_40.

    Examples:

      polyseme export letters-run -o letters.xlsx

      polyseme export letters-run --level 40 -o letters.parquet
    """
    kind = check_table(output)
    documents = open_level(run, level).documents
    write_output(output, encode_table(documents, kind))
    if as_json:
        print_written("export", output)
    elif not quiet:
        Console().print(f"{pluralize(len(documents), 'document')} written to {output}.")
