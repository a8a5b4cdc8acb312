"""JSON that commands print with ``--json``: one type for each command, from which its JSON Schema is made.

`print_json` puts the name of the schema first: ``"schema": "topics/1"``. The number, `console.SCHEMA_VERSION`, grows if
a field is removed or gets another meaning; new fields may be added without a new number.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Literal, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

from polyseme.cli.console import SCHEMA_VERSION, TopicRow
from polyseme.metrics.clustering import Agreement
from polyseme.runs.comparison import Comparison
from polyseme.runs.info import Reproducibility
from polyseme.runs.quotes import TypicalDocument
from polyseme.runs.view import FinerTopic
from polyseme.selection.n_topics import SelectionRow

Number = float | None
"""A number that may be undefined."""
_NAMES = {part.__name__: part for part in (Reproducibility, TypicalDocument, FinerTopic)}
"""Types that modules import only for type checkers."""


class Topics(TypedDict):
    """Topics of a level, the largest first, and those that do not describe a subject last."""

    topics: list[TopicRow]


class WordShare(TypedDict):
    """A word and its part of a score."""

    word: str
    weight: float
    in_query: bool
    in_document: bool


class Snippet(TypedDict):
    """Part of a text; marks are the first and last position, exclusive, of matched words."""

    text: str
    marks: list[list[int]]


class FoundDocument(TypedDict):
    """A document that a search found."""

    rank: int
    id: str
    title: str
    score: float
    parts: dict[str, float]
    excerpt: str
    n_duplicates: int
    snippet: Snippet
    words: list[WordShare]


class Unknown(TypedDict):
    """A word of the query that the run does not have, and words like it."""

    word: str
    nearest: list[str]


class Search(TypedDict):
    """Documents that a search found, the best first."""

    method: str
    note: str
    unknown: list[Unknown]
    hits: list[FoundDocument]


class Perplexity(TypedDict):
    """Perplexity of documents."""

    kind: str
    perplexity: Number
    standard_error: Number
    unigram_perplexity: Number
    tokens: float
    unseen_tokens: float
    smoothed_share: Number


class Coherence(TypedDict):
    """Coherence of the top words; window is None for whole documents."""

    mean: Number
    reference: str
    window: int | None
    n_windows: int
    absent_words: int


class Fit(TypedDict):
    """How much topics make up of their documents."""

    threshold: float
    n_fitting: int
    fitting_weight: float


class ExplainedDocument(TypedDict):
    """Share of a document that the topics explain."""

    id: str
    title: str
    tokens: float
    explained: float


class ExplainedWord(TypedDict):
    """Share of a word that the topics explain, and its dispersion."""

    word: str
    tokens: float
    explained: float
    dispersion: Number


class Explained(TypedDict):
    """Share of the deviance that the topics explain, and dispersion of the counts."""

    total: Number
    median_dispersion: Number
    least_tokens: Annotated[int, "shorter documents and rarer words are not in the lists"]
    documents: Annotated[list[ExplainedDocument], "explained worst"]
    words: Annotated[list[ExplainedWord], "explained worst"]


class Residuals(TypedDict):
    """Test whether there are too few topics."""

    too_few: bool
    p_value: float
    ratio: Annotated[float, "residuals, as a multiple of those expected"]
    words: Annotated[list[str], "words that occur together although no topic says so"]


class EffectiveTopics(TypedDict):
    """Effective number of topics of a document."""

    mean: float
    median: float


class EvaluatedTopic(TypedDict):
    """Measures of a topic; twin is the most similar topic."""

    topic: int
    weight: float
    fit: Number
    carried: Number
    exclusivity: Number
    redundancy: float
    twin: int | None
    coherence: dict[str, Number]
    words: list[str]


class NamedTopic(TypedDict):
    """Number and name of a topic."""

    topic: int
    name: str


class ChangedTopic(NamedTopic):
    """Mean weight of a topic in documents of the run and in new ones."""

    old: float
    new: float
    difference: float
    difference_low: Number
    difference_high: Number
    q_value: Number


class Drift(TypedDict):
    """How new documents differ from those of the run."""

    documents: int
    perplexity: float
    old_perplexity: float
    ratio: Annotated[list[Number], "95% interval of perplexity / old_perplexity"]
    unknown: Annotated[Number, "share of tokens whose words the run does not have"]
    new_words: list[str]
    topics: list[ChangedTopic]
    p_value: Number
    new_topics: int
    advice: Annotated[str, "update, new topics or fit again"]


class Evaluation(TypedDict):
    """Quality of the topics of a run; drift only with new documents."""

    by: str
    documents: int
    perplexity: Perplexity
    completion: Perplexity
    coherence: dict[str, Coherence]
    top_words: int
    diversity: float
    redundancy: float
    exclusivity: Number
    fit: Fit
    explained: Explained | None
    residuals: Annotated[Residuals | None, "only with --residuals"]
    effective_topics: EffectiveTopics
    agreement: Agreement | None
    topics: list[EvaluatedTopic]
    drift: Drift | None


class MeanShare(NamedTopic):
    """Mean share of a topic in some documents."""

    documents: int
    share: Number
    low: Number
    high: Number


class GroupShare(MeanShare):
    """Mean share of a topic in a group, and in all other documents."""

    group: str
    others: Number
    difference: Number
    difference_low: Number
    difference_high: Number
    ratio: Number
    p_value: Number
    q_value: Number


class ChangingWord(TypedDict):
    """A word that a topic uses more or less in the later half."""

    topic: int
    word: str
    log_ratio: float
    error: float
    q_value: float


class GroupWord(ChangingWord):
    """A word that a group uses more or less than the others within a topic."""

    group: str


class Groups(TypedDict):
    """Topics of groups of documents."""

    by: str
    shares: list[GroupShare]
    words: list[GroupWord]
    left_out: Annotated[int, "documents in none of the groups"]
    notes: Annotated[list[str], "what makes the intervals too short"]


class PeriodShare(MeanShare):
    """Mean share of a topic in a period."""

    period: str


class Trend(NamedTopic):
    """Shares of a topic in the earlier and the later half of the documents."""

    earlier: Number
    later: Number
    difference: Number
    difference_low: Number
    difference_high: Number
    p_value: Number
    q_value: Number


class Time(TypedDict):
    """Topics over time."""

    every: str
    shares: list[PeriodShare]
    topics: list[Trend]
    words: list[ChangingWord]
    left_out: Annotated[int, "documents without a date"]
    notes: Annotated[list[str], "what makes the intervals too short"]


class Coefficient(NamedTopic):
    """Change of the share of a topic."""

    coefficient: str
    estimate: Number
    low: Number
    high: Number
    error: Number
    p_value: Number
    q_value: Number


class Term(TypedDict):
    """Test of all coefficients of a term."""

    term: str
    topic: int
    p_value: Number
    q_value: Number


class Effects(TypedDict):
    """Shares of topics regressed on metadata."""

    formula: str
    coefficients: list[Coefficient]
    terms: list[Term]
    notes: list[str]


class Selection(TypedDict):
    """Numbers of topics that were compared."""

    chosen_to_read: int | None
    chosen_to_predict: int
    best: int
    structured: bool
    reason_to_read: str | None
    reason_to_predict: str
    interval_to_read: list[int] | None
    unigram_perplexity: Number
    rows: list[SelectionRow]
    plot: Annotated[str, "file of the plot"]


class NewTopic(NamedTopic):
    """A topic that an update has added; typical are ids of documents."""

    documents: int
    typical: list[str]


class Update(TypedDict):
    """Documents that were added to a run."""

    read: int
    added: int
    without_words: int
    perplexity: Number
    perplexity_of_all: Number
    p_value: Annotated[Number, "of the test for new topics; null without a test"]
    new_topics: list[NewTopic]
    faded: list[NamedTopic]
    interrupted: bool


class TopicShare(NamedTopic):
    """A topic and its share of a document."""

    share: float


class Document(TypedDict):
    """A document of a run; text is the part that starts at a character, or an excerpt if the run has no texts."""

    id: str
    title: str | None
    label: str | None
    time: str | None
    source: str | None
    duplicate_of: Annotated[str | None, "id of the first near-duplicate"]
    topics: list[TopicShare]
    text: str
    start: int
    length: Annotated[int, "characters of the whole text, or of the excerpt"]


class NewDocument(TypedDict):
    """Topics of a new text; reason says why it has none."""

    topics: list[TopicShare]
    tokens: Annotated[int, "words that the run knows"]
    reason: str | None


class NewDocuments(TypedDict):
    """Topics of new texts, in their order."""

    documents: list[NewDocument]


class FittedRun(TypedDict):
    """A run that was written; page is the file of the explorer page."""

    run: str
    page: str | None
    documents: int
    words: int
    tokens: int
    iterations: int
    converged: bool
    seconds: float
    perplexity: Number
    left_out: Annotated[dict[str, int], "documents that were not used, by reason"]
    problems: Annotated[dict[str, int], "problems while reading, by kind"]
    interrupted: bool
    topics: list[TopicRow]


class MergedRun(FittedRun):
    """A run that was merged from others."""

    joined: Annotated[int, "topics of several runs"]
    repeated: Annotated[int, "documents of several runs, which are kept once"]


class Runs(TypedDict):
    """Runs that were fitted: one, or one for each language."""

    runs: list[FittedRun]


class Edited(TypedDict):
    """An edit, with a sentence for each change, and the topics after it."""

    run: str
    changes: list[str]
    dry_run: bool
    interrupted: bool
    topics: list[TopicRow]


class Written(TypedDict):
    """A file that was written."""

    file: str
    bytes: int


COMMANDS: dict[str, Any] = {
    "compare": Comparison,
    "demo": Runs,
    "edit": Edited,
    "effects": Effects,
    "evaluate": Evaluation,
    "explore": Written,
    "export": Written,
    "fit": Runs,
    "groups": Groups,
    "merge": MergedRun,
    "report": Written,
    "search": Search,
    "select": Selection,
    "time": Time,
    "topics": Topics,
    "transform": Written,
    "update": Update,
}
"""The type of what each command prints with --json. ``transform`` prints this only if it writes a file."""


def command_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of what a command prints with --json."""
    title = f"{name}/{SCHEMA_VERSION}"
    parts: dict[str, Any] = {}
    schema_of(COMMANDS[name], parts)
    schema = parts.pop(COMMANDS[name].__name__)
    schema["properties"] = {"schema": {"const": title}, **schema["properties"]}
    schema["required"] = ["schema", *schema["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema, "$defs": parts}


def schema_of(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a type. The schemas of types with names are added to `parts`, the later $defs.

    A type may be a TypedDict, a dataclass or simple, or consist of these. Annotated has a description or keywords.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind) or is_dataclass(kind):
        name = kind.__name__
        if name not in parts:
            parts[name] = {}  # a type may contain itself
            parts[name] = _object_schema(kind, parts)
        return {"$ref": f"#/$defs/{name}"}
    if origin is Annotated:
        note = {"description": arguments[1]} if isinstance(arguments[1], str) else arguments[1]
        return {**schema_of(arguments[0], parts), **(note if isinstance(note, dict) else {})}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(part, parts) for part in arguments]}
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(arguments[0], parts)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], parts)}
    return {} if kind is Any else {"type": _SIMPLE[kind]}


def _object_schema(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, localns=_NAMES, include_extras=True)
    undefined = {part.name for part in fields(kind) if _is_nan(part.default)} if is_dataclass(kind) else set()
    properties = {name: schema_of(hint | None if name in undefined else hint, parts) for name, hint in hints.items()}
    description = (kind.__doc__ or "").partition("\n")[0]
    return {"type": "object", "description": description, "properties": properties, "required": list(properties)}


_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
