"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polyseme.errors import InputError
from polyseme.runs.store import check_is_run
from polyseme.text.readers.inputs import places

if TYPE_CHECKING:
    from polyseme.runs.view import TopicView


def _existing_run(folder: str) -> str:
    check_is_run(Path(folder))
    return folder


def check_inputs(paths: list[str]) -> None:
    """Raise InputError if an input does not exist. Commands call this before their slow imports."""
    places(paths)


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        help="Folders of text files, .csv .tsv .jsonl .parquet tables, MediaWiki dumps .xml[.bz2|.gz], .pdf .docx "
        ".html .eml .mbox files. A single text file and - (standard input) contain one document per line.",
    ),
]
RunFolder = Annotated[
    str, typer.Argument(metavar="RUN", help="A folder written by polyseme fit.", callback=_existing_run)
]
TrustPattern = Annotated[
    bool,
    typer.Option("--trust-pattern", help="Use the token pattern of the run without checks. Only for runs you trust."),
]
Level = Annotated[
    int | None,
    typer.Option(
        "--level", min=1, metavar="N", help="Use the level with N topics, by default the reading level.",
        show_default=False,
    ),
]  # fmt: skip
PageText = Literal["excerpt", "full", "none"]
Format = Annotated[
    str | None,
    typer.Option("--format", help="Format of all files, regardless of their names: lines, csv, jsonl, wiki, ..."),
]
Text = Annotated[
    list[str] | None, typer.Option("--text", metavar="COLUMN", help="Column with the text. Repeat it to join several.")
]
Id = Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Column with the id of a document.")]
Title = Annotated[str | None, typer.Option("--title", metavar="COLUMN", help="Column with the title.")]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="Column with a label, such as a category.")
]
Time = Annotated[str | None, typer.Option("--time", metavar="COLUMN", help="Column with a date or time.")]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of text files. By default it is detected for each file.")
]
Sample = Annotated[int | None, typer.Option("--sample", min=1, metavar="N", help="Draw N documents at random.")]
Category = Annotated[
    list[str] | None,
    typer.Option(
        "--category",
        metavar="LABEL",
        help="Read only documents with a label that contains these words. Repeat it for several.",
    ),
]
Noise = Annotated[
    int, typer.Option("--noise", min=0, metavar="N", help="With --category: add N random other documents.")
]
Uncategorized = Annotated[bool, typer.Option("--uncategorized", help="Also read wiki articles that have no category.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, metavar="N", help="Seed of the random numbers.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result and errors.")]
Language = Annotated[
    str, typer.Option("--language", help="Language of the texts: a name, an ISO code, auto (detected) or none.")
]
Phrases = Annotated[bool, typer.Option("--phrases", help="Join words that form a phrase: san_francisco.")]
KeepNumbers = Annotated[
    bool,
    typer.Option(
        "--keep-numbers",
        help="Count numbers as words. Years are always counted; so are all numbers with --language none.",
    ),
]
StopWords = Annotated[
    Path | None,
    typer.Option(
        "--stop-words", metavar="FILE", help="Text file with words to leave out, besides those of the language."
    ),
]
MinDf = Annotated[
    int,
    typer.Option(
        "--min-df",
        min=1,
        metavar="N",
        help="Leave out words that occur in fewer than N documents. Not applied to fewer than 20 documents.",
    ),
]
MaxDf = Annotated[
    float,
    typer.Option(
        "--max-df",
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="Leave out words that occur in a larger share of the documents. Not applied to fewer than 20 documents.",
    ),
]
MaxIter = Annotated[
    int | None, typer.Option("--max-iter", min=1, metavar="N", help="Maximum number of iterations.", show_default=False)
]


def open_level(run: str, level: int | None, *, trust_pattern: bool) -> TopicView:
    """Open a run, and return the topics of a level; None is the reading level."""
    from polyseme.runs import open_run

    opened = open_run(run, trust_pattern=trust_pattern)
    return opened.view if level is None else opened.level(level)


def reading(
    format: str | None,
    text: list[str] | None,
    id: str | None,
    title: str | None,
    label: str | None,
    time: str | None,
    encoding: str | None,
    uncategorized: bool,
) -> dict[str, Any]:
    """Return the arguments of `polyseme.text.read` that describe the input."""
    return {
        "format": format, "text": text, "id": id, "title": title, "label": label, "time": time, "encoding": encoding,
        "uncategorized": uncategorized,
    }  # fmt: skip


def sampling(sample: int | None, category: list[str] | None, noise: int, seed: int) -> dict[str, Any]:
    """Return the arguments of `polyseme.text.read` that choose documents."""
    return {"sample": sample, "categories": category, "noise": noise, "seed": seed}


def counting(
    language: str, phrases: bool, keep_numbers: bool, stop_words: list[str] | None, min_df: int, max_df: float
) -> dict[str, Any]:
    """Return the arguments of Vectorizer that the options set, as JSON values."""
    return {
        "language": None if language == "none" else language,
        "phrases": phrases,
        "keep_numbers": True if keep_numbers else None,
        "extra_stop_words": stop_words,
        "min_df": min_df,
        "max_df": max_df,
    }


def read_stop_words(path: Path | None) -> list[str] | None:
    """Return the words of a UTF-8 text file, separated by white space; None without a file."""
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8-sig").split()
    except OSError as error:
        raise InputError(f"--stop-words: {path} cannot be read ({error.strerror or error}).") from None
    except UnicodeDecodeError:
        raise InputError(f"--stop-words: {path} is not UTF-8: save the file as UTF-8.") from None
