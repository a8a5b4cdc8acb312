"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.runs.folder import check_is_run
from polyseme.text.readers.files import places


def _existing_run(folder: str) -> str:
    check_is_run(Path(folder))
    return folder


def _existing_inputs(paths: list[str] | None) -> list[str] | None:
    """Checked here, before a command imports what it computes with, so that a typing error is reported at once."""
    if paths:
        places(paths)
    return paths


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        help="Folders of text files, .csv .tsv .jsonl .parquet, MediaWiki dumps .xml[.bz2|.gz], .pdf .docx .html; "
        "a text file alone, and - for standard input, hold one document a line.",
        callback=_existing_inputs,
    ),
]
RunFolder = Annotated[
    str, typer.Argument(metavar="RUN", help="A folder that polyseme fit wrote.", callback=_existing_run)
]
Format = Annotated[
    str | None, typer.Option("--format", help="Read every file so, whatever its name: lines, csv, jsonl, wiki ...")
]
Text = Annotated[list[str] | None, typer.Option("--text", help="Column with the text; repeat it to join several.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that names a document.")]
Title = Annotated[str | None, typer.Option("--title", help="Column with the title.")]
Label = Annotated[str | None, typer.Option("--label", help="Column with a label, such as a category.")]
Time = Annotated[str | None, typer.Option("--time", help="Column with a date or time.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Of text files; else detected in each file.")]
Sample = Annotated[int | None, typer.Option("--sample", min=1, help="So many documents, drawn at random.")]
Category = Annotated[
    list[str] | None, typer.Option("--category", help="Only documents with this label; repeat it for several.")
]
Noise = Annotated[int, typer.Option("--noise", min=0, help="With --category: so many random other documents too.")]
Uncategorised = Annotated[bool, typer.Option("--uncategorised", help="Keep articles of a dump without a category.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of all random choices.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result and errors.")]
Language = Annotated[str, typer.Option("--language", help="Language of the texts: a name or ISO code, auto, or none.")]
Phrases = Annotated[bool, typer.Option("--phrases", help="Join words that belong together: san_francisco.")]
MinDf = Annotated[
    int, typer.Option("--min-df", min=1, help="Leave out words of fewer documents (of 20 documents and more).")
]
MaxDf = Annotated[
    float, typer.Option("--max-df", min=0.0, max=1.0, help="Leave out words of a larger share of the documents.")
]
