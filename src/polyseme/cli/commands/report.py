"""``polyseme report``: writes a report of a run to hand over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from polyseme.cli.console import Console, print_written
from polyseme.cli.options import JSON, QUIET, RunFolder, open_level, takes
from polyseme.options import LEVEL, OUTPUT, RUN_OUTPUT, Option


@takes(
    LEVEL,
    replace(RUN_OUTPUT, help="File to write: .docx, .html or .md.", metavar="FILE", default=...),
    Option("title", "Title, such as the question that the report answers.  [default: that of the run]", OUTPUT),
    JSON,
    QUIET,
)
def report(run: RunFolder, output: Path, level: int | None, title: str | None, as_json: bool, quiet: bool) -> None:
    """Write a report of a run: a Word document, a web page or Markdown.

    It describes the documents, shows a chart of the topics, and for each topic its name, words, share and two quotes,
    then the topics of labels and over time, how the number of topics was chosen, and what to cite.

    Examples:

      polyseme report letters-run -o letters.docx

      polyseme report letters-run -o letters.html --title "What did settlers write home about?"
    """
    from polyseme.explore.report import check_report

    check_report(output)
    open_level(run, level).report(output, title=title)
    if as_json:
        print_written("report", output)
    elif not quiet:
        Console().print(f"Written to {output}.", soft_wrap=True)
