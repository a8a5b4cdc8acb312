"""``polyseme update``: adds documents to a run."""

from __future__ import annotations

from typing import Annotated

import typer

from polyseme.cli import options
from polyseme.cli.console import Console, now


def update(
    run: options.RunFolder,
    inputs: options.Inputs,
    refine: Annotated[
        bool, typer.Option("--refine", help="Fit on with all documents; else the topics stay as they are.")
    ] = False,
    format: options.Format = None,
    text: options.Text = None,
    id: options.Id = None,
    title: options.Title = None,
    label: options.Label = None,
    time: options.Time = None,
    encoding: options.Encoding = None,
    uncategorized: options.Uncategorized = False,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
) -> None:
    """Add documents to a run: their topics are found, and the run's own topics stay, or are refined.

    The words stay those of the run: words that it does not have are not counted, and a document that is in the run
    already (the same id from the same file) is left out.

    Examples:

      polyseme update letters-run letters-of-1872/

      polyseme update news-run today.jsonl --refine
    """
    options.check_inputs(inputs)

    from polyseme.cli.fitting import end_if
    from polyseme.cli.updating import update_in_memory, update_shards
    from polyseme.runs import open_run
    from polyseme.runs.run import ShardedRun
    from polyseme.text import read

    screen, notes = Console(), Console(stderr=True)
    opened = open_run(run, trust_pattern=trust_pattern)
    reader = read(
        inputs, format=format, text=text, id=id, title=title, label=label, time=time, encoding=encoding,
        uncategorized=uncategorized,
    )  # fmt: skip
    entry = {"when": now(), "inputs": inputs, "refine": refine}
    if isinstance(opened, ShardedRun):
        interrupted = update_shards(opened, reader, entry, screen, notes, quiet=quiet)
    else:
        interrupted = update_in_memory(opened, reader, entry, screen, notes, quiet=quiet)
    end_if(interrupted, notes)
