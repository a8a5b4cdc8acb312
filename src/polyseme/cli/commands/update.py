"""``polyseme update``: adds documents to a run."""

from __future__ import annotations

from typing import Annotated

import typer

from polyseme.cli import options
from polyseme.cli.console import Console, timestamp


def update(
    run: options.RunFolder,
    inputs: options.Inputs,
    refine: Annotated[
        bool,
        typer.Option("--refine", help="Fit the topics again to all documents. By default the topics do not change."),
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
    """Add documents to a run and compute their topic weights.

    The vocabulary does not change: words that the run does not contain are not counted. Documents that are already in
    the run (same id in the same file) are left out.

    Examples:

      polyseme update letters-run letters-of-1872/

      polyseme update news-run today.jsonl --refine
    """
    options.check_inputs(inputs)

    from polyseme.cli.fitting import exit_if_interrupted, update_in_memory, update_shards
    from polyseme.runs import open_run
    from polyseme.runs.run import ShardedRun
    from polyseme.text import read

    screen, notes = Console(), Console(stderr=True)
    opened = open_run(run, trust_pattern=trust_pattern)
    reader = read(
        inputs, format=format, text=text, id=id, title=title, label=label, time=time, encoding=encoding,
        uncategorized=uncategorized,
    )  # fmt: skip
    entry = {"when": timestamp(), "inputs": inputs, "refine": refine}
    if isinstance(opened, ShardedRun):
        interrupted = update_shards(opened, reader, entry, screen, notes, quiet=quiet)
    else:
        interrupted = update_in_memory(opened, reader, entry, screen, notes, quiet=quiet)
    exit_if_interrupted(interrupted, notes)
