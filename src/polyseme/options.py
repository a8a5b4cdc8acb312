"""The options of `polyseme.fit`, `polyseme.text.read`, `Run` and the commands, each declared once.

An `Option` has a name in Python and flags on the command line. `polyseme.cli.options.takes` makes the options of a
command from declarations; `checked` checks the arguments of a Python function with them; `named` writes the name of an
option in a message, in the words of the interface that is used. The signatures of public functions repeat the names and
the defaults for readers and type checkers, and a test compares them with the declarations.

Commands import this module before they check their input, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from polyseme.errors import InputError

INPUT, WORDS, TOPICS, OUTPUT, LONG_FITS = GROUPS = ("Input", "Words", "Topics", "Output", "Long fits")
"""Sections of the help text of a command, in their order."""


@dataclass(frozen=True)
class Option:
    """An option of a Python function and of commands."""

    name: str
    """Name of the argument in Python."""
    help: str
    group: str | None = None
    type: type = str
    """Type of the value on the command line: of each value, if there can be several."""
    default: Any = None
    flags: tuple[str, ...] = ()
    """Names on the command line, by default --name. A Boolean option may have a flag for each value: --a/--b."""
    metavar: str | None = None
    several: bool = False
    """Whether the option can be repeated."""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    convert: Callable[[Any], Any] | None = None
    """Function that is applied to the value in Python before it is checked."""

    @property
    def declared_flags(self) -> tuple[str, ...]:
        return self.flags or (f"--{self.name.replace('_', '-')}",)

    def named(self, value: Any = None) -> str:
        """Return the option, with a value if it is given, in the words of the interface that is used."""
        if not _flags_used:
            return f"{self.name}={'' if value is None else value}"
        flag, _, opposite = self.declared_flags[0].partition("/")
        if value is None or value is True:
            return flag
        return opposite if value is False else f"{flag} {value}"

    def check(self, value: Any) -> Any:
        """Return a number in its declared type. Raise InputError if it is not a declared number or choice."""
        if self.convert is not None:
            value = self.convert(value)
        if value is None and self.default is None:
            return None
        if self.choices and value not in self.choices:
            choices = f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
            raise InputError(f"{self.named()} must be {choices}, got {value!r}.")
        if self.type not in (int, float):
            return value
        kind: Any = Integral if self.type is int else Real
        if (
            isinstance(value, bool)
            or not isinstance(value, kind)
            or (self.least is not None and not value >= self.least)
            or (self.most is not None and not value <= self.most)
        ):
            noun = "whole number" if self.type is int else "number"
            limits = f"of at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"
            raise InputError(f"{self.named()} must be a {noun} {limits}, got {value!r}.")
        return self.type(value)


def drawn_seed(random_state: Any) -> Any:
    """Return a number drawn from a RandomState or Generator of numpy, and any other value as it is."""
    if type(random_state).__module__.partition(".")[0] != "numpy":
        return random_state
    draw = getattr(random_state, "integers", None) or getattr(random_state, "randint", None)
    return random_state if draw is None else int(draw(2**32, dtype="int64"))


def column(name: str, help: str, **others: Any) -> Option:
    """Return an option that names a column of a table."""
    return Option(name, help, INPUT, metavar="COLUMN", **others)


# fmt: off
COLUMNS = (
    column("text", "Column with the text. Repeat it to join several.", several=True),
    column("title", "Column with the title."),
    column("label", "Column with a label, such as a category."),
    column("time", "Column with a date or time."),
    column("id", "Column with the id of a document."),
)
FILES = (
    Option("format", "Format of all files, regardless of their names: lines, csv, jsonl, wiki, ...", INPUT),
    Option("encoding", "Encoding of text files. By default it is detected for each file.", INPUT),
    Option("uncategorized", "Also read wiki articles that have no category.", INPUT, bool, False),
)
READING = (*COLUMNS, *FILES)
"""Options that describe the input: arguments of `polyseme.text.read`."""

SAMPLING = (
    Option("sample", "Draw N documents at random.", INPUT, int, metavar="N", least=1),
    Option("categories", "Read only documents with a label that contains these words. Repeat it for several.", INPUT,
           flags=("--category",), metavar="LABEL", several=True),
    Option("noise", "With --category: add N random other documents.", INPUT, int, 0, metavar="N", least=0),
)
"""Options that choose documents: arguments of `polyseme.text.read`."""

RANDOM_STATE = Option("random_state", "Seed of the random numbers.", TOPICS, int, 0, ("--seed",), metavar="N", least=0,
                      most=2**32 - 1, convert=drawn_seed)

LANGUAGES = Option("languages", "Documents to fit, if they are in several languages: all, majority (without those of "
                   "other languages), split (a run for each language: RUN-en, RUN-it), or those of a language.", INPUT,
                   default="all", metavar="all|majority|split|LANGUAGE")
COUNTING = (
    Option("language", "Language of the texts: a name, an ISO code, several of them (en+it), auto (detected) or "
           "none.", WORDS, default="auto"),
    Option("stop_words", "Text file with words to leave out, besides those of the language.", WORDS, Path,
           metavar="FILE"),
    Option("phrases", "Join words that form a phrase: san_francisco.", WORDS, bool, False),
    Option("keep_numbers", "Count numbers as words. Years are always counted; so are all numbers with --language none.",
           WORDS, bool),
    Option("min_df", "Leave out words that occur in fewer than N documents. Not applied to fewer than 20 documents.",
           WORDS, int, 2, metavar="N", least=1),
    Option("max_df", "Leave out words that occur in a larger share of the documents. Not applied to fewer than 20 "
           "documents.", WORDS, float, 0.5, metavar="SHARE", least=0.0, most=1.0),
)
"""Options of the words: arguments of `polyseme.text.Vectorizer`, where `stop_words` is `extra_stop_words`."""

N_TOPICS = Option("n_topics", "Number of topics, by default chosen for readable topics.", TOPICS, int, flags=("-k",),
                  metavar="N", least=1)
LABELS_FROM = Option("labels_from", "Column with labels: every label gets a topic with its name, and transform "
                     "predicts labels.", TOPICS, metavar="COLUMN")
MAX_ITER = Option("max_iter", "Maximum number of iterations.", TOPICS, int, metavar="N", least=1)

FITTING = (
    N_TOPICS,
    Option("model", "Model: PLSA, LDA, a correlated topic model (ctm), a tree of topics, NMF, or one topic per text "
           "(mixture).  [default: plsa, or mixture for short texts that it predicts better]", TOPICS,
           choices=("plsa", "lda", "ctm", "hierarchical", "nmf", "mixture")),
    Option("seeds", 'Predefined topics: lines such as "Sport: match, team", or a JSON object from names to words. '
           "These topics come first.", TOPICS, Path, metavar="FILE"),
    Option("levels", "Make finer levels of topics below these, as long as they predict better (plsa), or none.  "
           "[default: auto for plsa]", TOPICS, choices=("auto", "none")),
    Option("consensus", "Start from the topics that fits to resampled documents share, and show how many of them have "
           "each topic (plsa).", TOPICS, bool, False),
    RANDOM_STATE,
    MAX_ITER,
    Option("background", "Share of each text that a background of common words explains (plsa).", TOPICS, float, 0.0,
           metavar="SHARE", least=0.0, most=0.99),
    Option("depth", "Levels of topics below the root (hierarchical).", TOPICS, int, metavar="N", least=1),
    Option("branching", "Children of each topic above the leaves (hierarchical).", TOPICS, int, metavar="N", least=2),
)
"""Options of the model: arguments of `runs.models.make_model`, the number of topics, and the finer levels."""

DUPLICATES = Option("duplicates", "Keep documents that are near-duplicates of others in the fit, or leave them out.",
                    INPUT, default="keep", choices=("keep", "drop"))
REPEATED_LINES = Option("repeated_lines", "Count lines that several documents have, such as signatures, in all of them "
                        "or once.", INPUT, default="all", choices=("all", "once"))
PAGE_TEXT = Option("page_text", "How much of each document's text the page contains; auto: all of a corpus below 5 MB, "
                   "else excerpts.", OUTPUT, default="auto", choices=("auto", "full", "excerpt", "none"))
RUN_OUTPUT = Option("output", "Folder to write, by default INPUT-run.", OUTPUT, Path, flags=("-o", "--output"),
                    metavar="RUN")
WRITING = (
    RUN_OUTPUT,
    Option("overwrite", "Replace an existing run.", OUTPUT, bool, False),
    Option("page", "Write the explorer page.", OUTPUT, bool, True, ("--page/--no-page",)),
    PAGE_TEXT,
    Option("keep_texts", "Store the texts in the run, for the explorer page.", OUTPUT, bool, True,
           ("--texts/--no-texts",)),
    Option("resume", "Resume the same command after it was killed, with the same result.", LONG_FITS, bool, False),
    Option("shards", "Count and fit from files, or in memory. By default files are used for texts of more than 2^30 "
           "characters.", LONG_FITS, bool, flags=("--shards/--in-memory",)),
    Option("checkpoint", "Seconds between two checkpoints.", LONG_FITS, float, 10.0, metavar="SECONDS", least=0.0),
)
FIT = (
    *COLUMNS, *SAMPLING, DUPLICATES, REPEATED_LINES, LANGUAGES, *FILES, *COUNTING, *FITTING[:3], LABELS_FROM,
    *FITTING[3:], *WRITING,
)
"""Options of `polyseme.fit`."""

LEVEL = Option("level", "Use the level with N topics, by default the reading level.", None, int, metavar="N", least=1)
SEARCHING = (
    Option("method", "bm25+topics (words first, then the run's topics), bm25, tfidf, tf, plsi-q or plsi-u (the run's "
           "topics), lsi, or plsi* (fits its own models on first use and stores them in the run).",
           default="bm25+topics"),
    Option("like", "Find documents similar to the one with this id.", None, bool, False),
    Option("label", "Only documents with this label. Repeatable.", metavar="LABEL", several=True),
    Option("topic", "Only documents of this main topic: number or name. Repeatable.", metavar="TOPIC", several=True),
    Option("since", "Only documents from this year, month or day on.", metavar="DATE"),
    Option("until", "Only documents up to this year, month or day.", metavar="DATE"),
    Option("exclude", "Only documents without this word. Repeatable.", flags=("--not",), metavar="WORD", several=True),
)
"""Options of `Run.search`."""

EDITING = (
    Option("rename", 'Name a topic: "3=Space flight".', metavar="TOPIC=NAME", several=True),
    Option("merge", "Merge topics into one: --merge 4,7.", metavar="TOPICS", several=True),
    Option("delete", "Delete a topic.", None, int, metavar="TOPIC", several=True),
    Option("hide", "Leave a topic out of all lists, maps and pictures; the model keeps it.", None, int, metavar="TOPIC",
           several=True),
    Option("ban", "Hide words from all lists and names: --ban article,writes.", metavar="WORDS", several=True),
    Option("refit", "Afterwards fit again without the banned words, starting from the edited topics.", None, bool,
           False),
    Option("file", "Apply the edits that the explorer page has exported to a file.", flags=("--from",), metavar="FILE"),
    Option("dry_run", "Show what would change, and leave the run as it is.", None, bool, False),
)
"""Options of `Run.edit`."""

NEW_TOPICS = Option("new_topics", "Add topics for what the topics of the run do not explain in the new documents: N, "
                    "or auto (a test decides whether there are any).", TOPICS, metavar="auto|N")
NAMER = Option("namer", "Ask a language model for the names of topics: a model of the package llm (extra llm), local "
               "or remote. It gets words of topics and beginnings of documents.", TOPICS, metavar="MODEL")
GROUPING = (
    Option("by", "Column with the group of each document: label or source.", default="label", metavar="COLUMN"),
    Option("most", "Compare the N groups with the most documents.", None, int, 6, metavar="N", least=2),
)
"""Options of `Run.compare_groups`."""
METADATA = Option("data", "CSV or TSV table with more columns: with a column id, or a row for each document.", None,
                  Path, metavar="FILE")
EVERY = Option("every", "Length of the periods.  [default: the longest one that gives at least 12 periods]",
               choices=("decade", "year", "quarter", "month", "week", "day"))
RESAMPLING = (
    Option("clusters", "Column that says which documents belong together, such as source; they are drawn together.",
           metavar="COLUMN"),
    Option("n_resamples", "Number of fits to resampled documents.", None, int, 100, ("--resamples",), metavar="N",
           least=2),
)
"""Options of `Run.bootstrap`."""
N_FOLDS = Option("n_folds", "Number of folds of the documents.", TOPICS, int, 5, ("--folds",), metavar="N", least=2)
# fmt: on

_OF_RUNS = (*SEARCHING, *EDITING, *GROUPING, METADATA, EVERY, *RESAMPLING, LEVEL, NEW_TOPICS)
OPTIONS = {option.name: option for option in (*_OF_RUNS, NAMER, N_FOLDS, *FIT)}
"""The options by name. Options of the same name have the same flag."""


def named(name: str, value: Any = None) -> str:
    """Return an option for a message: `n_topics=` or -k, and with a value `n_topics=7` or -k 7.

    An argument that is no option of a command, such as `limits`, has only its Python name.
    """
    return OPTIONS[name].named(value) if name in OPTIONS else f"{name}="


def checked(given: Mapping[str, Any], options: Iterable[Option]) -> dict[str, Any]:
    """Return the values of options, checked and by their names; options that are not given have their defaults."""
    return {option.name: option.check(given.get(option.name, option.default)) for option in options}


_flags_used = False
"""Whether messages name options by their flags. Not a context variable, because threads of a command write messages."""


def flags_used() -> bool:
    """Return whether messages name options as the command line does."""
    return _flags_used


@contextmanager
def naming_flags(use: bool = True) -> Iterator[None]:
    """Name options in messages as the command line does."""
    global _flags_used
    before, _flags_used = _flags_used, use
    try:
        yield
    finally:
        _flags_used = before
