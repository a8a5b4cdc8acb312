"""``polyseme update``: adds documents to a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyseme.cli.console import Console, exit_if_interrupted, screen_reporter
from polyseme.cli.options import QUIET, Inputs, RunFolder, check_inputs, takes
from polyseme.options import READING, Option
from polyseme.progress import pluralize

_UNKNOWN_SHARE = 0.1
"""A new fit is recommended if a larger share of the new documents has no known word."""


@takes(
    Option("refit", "Fit the topics again to all documents. By default the topics do not change.", None, bool, False),
    *READING,
    QUIET,
)
def update(run: RunFolder, inputs: Inputs, refit: bool, quiet: bool, **reading: Any) -> None:
    """Add documents to a run.

    Their topic weights are computed with the topics of the run. The vocabulary does not change: words that the run does
    not contain are not counted. Documents that are already in the run (same id in the same file) are skipped. Names of
    topics and removed words stay as they are.

    Examples:

      polyseme update letters-run letters-of-1872/

      polyseme update news-run today.jsonl --refit
    """
    check_inputs(inputs)

    from polyseme.runs.update import update_run
    from polyseme.text.readers.reader import read
    from polyseme.utils import perplexity_of

    reader = read(inputs, **reading)
    done = update_run(Path(run), reader, refit=refit, report=screen_reporter(quiet=quiet))
    screen = Console()
    if not done.n_added:
        screen.print("All of these documents are already in the run: nothing has changed.")
    elif not quiet:
        screen.print(f"{pluralize(done.n_added, 'document')} added; {done.n_read - done.n_added:,} already in the run.")
        screen.print(
            f"Perplexity of the new documents: {done.perplexity:.1f}; of all documents: "
            f"{perplexity_of(done.run.model.log_likelihood_):.1f}."
        )
        if done.without_words > _UNKNOWN_SHARE * done.n_added:
            without = pluralize(done.without_words, "new document")
            screen.print(f"{without} without any word of the run: a new polyseme fit learns their words.")
    exit_if_interrupted(done.interrupted)
