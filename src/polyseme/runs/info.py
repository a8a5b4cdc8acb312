"""Facts about a run, as run.json and stages.json store them.

The dataclasses declare the fields; `read_as` checks JSON values against the types of the fields, and `as_json` is its
inverse. A field without a default is required, and a field that has its default is not written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from polyseme.errors import InputError
from polyseme.io.files import COUNT, FLAG, OBJECT, TEXT, Check, number, one_of, shortened
from polyseme.options import named

Share = Annotated[float, number(0, 1)]
_LEAVES = {int: COUNT, float: number(-1e300, 1e300), bool: FLAG, str: TEXT}
_LIST = Check(lambda value: isinstance(value, list), "a list")
_MAX_DIGITS = 9
"""Digits of the largest number of a topic or level in the name of a field."""


@dataclass(frozen=True)
class ModelInfo:
    """The model of a run and the arguments of its fit."""

    estimator: str
    """Class of the estimator."""
    name: str
    """Name of the model in `polyseme.runs.models.MODELS`."""
    n_topics: int = 0
    """Number of topics; 0 before it is chosen."""
    random_state: int = 0
    seeds: dict[str, tuple[str, ...]] | None = None
    """Seed words by topic."""
    options: dict[str, Any] = field(default_factory=dict)
    """Other arguments of the fit."""


@dataclass(frozen=True)
class SelectionRow:
    """Agreement of fits with a number of topics, as in `polyseme.typing.ReadingRow`."""

    n_topics: int
    agreement: float
    agreement_error: float


@dataclass(frozen=True)
class Selection:
    """Choice of the number of topics, as in `polyseme.typing.ReadingChoice`."""

    n_topics: int
    reason: str
    rows: tuple[SelectionRow, ...] = ()
    interval: tuple[int, ...] = ()
    structured: bool = True
    flat: bool = False
    n_documents: int = 0
    typical_fit: int | None = None


@dataclass(frozen=True)
class LevelInfo:
    """A finer level of topics."""

    parents: tuple[int, ...]
    """Topic of the level above to which each topic belongs."""
    nesting: tuple[Share, ...]
    """Share of the tokens of each topic that its parent has."""
    topic_names: dict[int, str] = field(default_factory=dict)
    automatic_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.nesting) != len(self.parents):
            raise ValueError("levels must have as many entries of nesting as parents")


@dataclass(frozen=True)
class Reproducibility:
    """Share of the fits to resampled documents that have a topic, with Wilson's 95% interval."""

    share: Share
    least: Share
    most: Share


@dataclass(frozen=True)
class Mark:
    """Reason why a topic may not describe a subject."""

    kind: Literal["place", "repeated", "copies", "few"]
    reason: str


@dataclass(frozen=True)
class Edit:
    """Changes of topics, which are given by their numbers before the edit."""

    rename: dict[int, str] = field(default_factory=dict)
    """Names by topic; an empty name removes the name."""
    merge: tuple[tuple[int, ...], ...] = ()
    """Groups of topics to merge into the one with the smallest number."""
    delete: tuple[int, ...] = ()
    """Topics to delete."""
    hide: tuple[int, ...] = ()
    """Topics to leave out of lists, maps and names; the model still contains them."""
    ban: tuple[str, ...] = ()
    """Words to hide and, with a refit, to remove."""
    refit: bool = False
    level: int | None = None
    """Number of topics of a finer level; None is the reading level."""
    when: str = ""

    @property
    def changes_model(self) -> bool:
        """Whether the model changes, and not only names and hidden words."""
        return bool(self.merge or self.delete or self.refit)

    @classmethod
    def of(
        cls,
        rename: Mapping[int, str] | None = None,
        merge: Sequence[Sequence[int]] = (),
        delete: Sequence[int] = (),
        ban: Sequence[str] = (),
        *,
        hide: Sequence[int] = (),
        refit: bool = False,
        level: int | None = None,
    ) -> Edit:
        """Return an edit from the arguments of `Run.edit`."""
        groups = tuple(tuple(group) for group in merge)
        return cls(dict(rename or {}), groups, tuple(delete), tuple(hide), tuple(ban), refit, level)

    def origin(self, n_topics: int) -> list[list[int]]:
        """Return the old topics that each new topic is made of. Raise InputError for topics that do not exist."""
        merged = [topic for group in self.merge for topic in set(group)]
        for topic in [*self.rename, *merged, *self.delete, *self.hide]:
            if not 0 <= topic < n_topics:
                raise InputError(f"There is no topic {topic}: the run has topics 0 to {n_topics - 1}.")
        if any(len(set(group)) < 2 for group in self.merge):
            raise InputError(f"{named('merge')} needs at least two topics in a group.")
        repeated = [topic for topic in {*merged, *self.delete} if merged.count(topic) + (topic in self.delete) > 1]
        if repeated:
            raise InputError(
                f"Topic {repeated[0]} appears more than once in {named('merge')} and {named('delete')}: give it once."
            )
        if both := {*self.hide} & {*self.delete}:
            raise InputError(f"Topic {min(both)} appears in {named('hide')} and {named('delete')}: give it once.")
        groups = {min(group): sorted(set(group)) for group in self.merge}
        removed = {topic for group in groups.values() for topic in group[1:]} | set(self.delete)
        origin = [groups.get(topic, [topic]) for topic in range(n_topics) if topic not in removed]
        if not origin:
            raise InputError(f"{named('delete')} would remove all topics: delete fewer.")
        return origin

    def names(self, origin: list[list[int]], names: Mapping[int, str]) -> dict[int, str]:
        """Return the names of the new topics. Raise InputError if topics with different names are merged without one.

        names : given names of the old topics. A topic without a given name differs from a topic with one.
        """
        named_topics = {topic: self._name(group, names) for topic, group in enumerate(origin)}
        return {topic: name for topic, name in named_topics.items() if name}

    def hidden(self, origin: list[list[int]], before: Collection[int]) -> tuple[int, ...]:
        """Return the new topics that are hidden: those made of a topic to hide, or only of topics hidden before."""
        found = tuple(topic for topic, group in enumerate(origin) if {*group} & {*self.hide} or {*group} <= {*before})
        if len(found) == len(origin):
            raise InputError(f"{named('hide')} would leave no topic to show: hide fewer.")
        return found

    def _name(self, group: list[int], names: Mapping[int, str]) -> str:
        """Return the name of a new topic that is made of the topics `group`; "" if it has no given name."""
        if any(topic in self.rename for topic in group):
            return next((name for name in map(self.rename.get, group) if name), "")
        if len({names.get(topic) for topic in group}) > 1:
            listed = ", ".join(f"{topic} {names[topic]!r}" if topic in names else f"{topic} none" for topic in group)
            raise InputError(
                f"{named('merge')}: the topics have different names ({listed}): name topic {group[0]} with "
                f"{named('rename')} in the same edit."
            )
        return names.get(group[0], "")


@dataclass(frozen=True)
class Duplicates:
    """Numbers of near-duplicates that were found among documents."""

    mode: Literal["keep", "drop"] = "keep"
    """Whether near-duplicates are kept or left out."""
    found: int = 0
    documents: int = 0
    """Number of documents, with all near-duplicates."""

    @property
    def n_distinct(self) -> int:
        """Number of documents that are not near-duplicates of others."""
        return self.documents - self.found

    def check_distinct(self) -> None:
        """Raise InputError if all documents are near-duplicates of the first one."""
        if self.documents > 1 and self.n_distinct == 1:
            raise InputError(
                f"All {self.documents:,} documents are near-duplicates of the first one, so topics cannot tell them "
                "apart: give other documents."
            )

    @property
    def note(self) -> str:
        """A sentence about near-duplicates."""
        are = "is a near-duplicate" if self.found == 1 else "are near-duplicates"
        of = f"{self.found:,} of {self.documents:,} documents {are}"
        if self.mode == "drop":
            return f"{of} of others: left out ({named('duplicates', 'keep')} counts them)."
        if self.n_distinct == 1:
            all_of = f"All {self.documents:,} documents are near-duplicates of the first one"
            return f"{all_of}: topics cannot tell them apart."
        drop = named("duplicates", "drop")
        return f"{of} of others: shown once in lists, kept in the fit ({drop} leaves them out)."


@dataclass(frozen=True)
class NewTopic:
    """A topic that an update has added."""

    topic: int
    documents: int
    """Number of new documents with this main topic."""
    typical: tuple[str, ...]
    """Ids of the new documents that have most of its tokens."""


@dataclass(frozen=True)
class Update:
    """Documents that were added to a run."""

    when: str
    inputs: tuple[str, ...]
    documents: int
    refit: bool = False
    new_topics: tuple[NewTopic, ...] = ()
    p_value: float | None = None
    """Probability of what was found in these documents if there is no new topic; None if it was not tested."""
    faded: tuple[int, ...] = ()
    """Topics that are much less frequent in these documents than before."""


@dataclass(frozen=True)
class RunInfo:
    """Facts about a run: settings, versions, sizes, timings, names of topics, edits."""

    model: ModelInfo
    documents: int
    words: int
    tokens: int = 0
    shards: int = 0
    inputs: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    """Arguments of `polyseme.text.read`."""
    counting: dict[str, Any] = field(default_factory=dict)
    """Arguments of `Vectorizer`."""
    language: str | None = None
    """Language of the texts, given or detected."""
    in_memory: bool = True
    """Whether the words were counted and the model was fitted in memory."""
    duplicates: Duplicates = field(default_factory=Duplicates)
    repeated_lines: Literal["all", "once"] = "all"
    """Whether lines that several documents have are counted in all of them, or in the first one only."""
    languages: dict[str, float] = field(default_factory=dict)
    """Shares of documents by language, "other" for unknown ones, if the languages were detected."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Numbers of documents that were not used, by reason."""
    problems: dict[str, int] = field(default_factory=dict)
    """Numbers of problems while reading, by kind."""
    seconds: dict[str, float] = field(default_factory=dict)
    selection: Selection | None = None
    """How the number of topics was chosen; None if it was given."""
    solver: str = ""
    iterations: int = 0
    converged: bool = False
    interrupted: bool = False
    """Whether Ctrl-C stopped the fit."""
    topic_names: dict[int, str] = field(default_factory=dict)
    """Names that users have given to topics."""
    automatic_names: tuple[str, ...] = ()
    """Names made of phrases and words of the documents; "" for a name that has to be made."""
    seed_problems: tuple[str, ...] = ()
    """Sentences about seed words that the documents do not have, and about topics that have drifted from them."""
    levels: dict[int, LevelInfo] | None = None
    """Finer levels by number of topics; None if the fit made no levels."""
    junk: dict[int, Mark] | None = None
    """Topics that may not describe a subject; None before they are looked for."""
    stability: tuple[float, ...] = ()
    reproducibility: tuple[Reproducibility, ...] = ()
    """How often fits to resampled documents have each topic; empty without a consensus."""
    banned_words: tuple[str, ...] = ()
    """Words that a refit after an edit has removed from the counts and the model."""
    hidden_words: tuple[str, ...] = ()
    """Words that an edit has hidden from all lists and names; the model still contains them."""
    hidden_topics: tuple[int, ...] = ()
    """Topics that an edit has hidden from lists, maps and names; the model still contains them."""
    edits: tuple[Edit, ...] = ()
    before: RunInfo | None = None
    """Facts about the run before the last edit, to undo it; None if there is nothing to undo."""
    updates: tuple[Update, ...] = ()
    fitted_to: tuple[tuple[int, ...], ...] = ()
    """First and last row, exclusive, of the documents that each topic was fitted to; empty if these are all."""
    title: str | None = None
    page_text: Literal["auto", "full", "excerpt", "none"] = "auto"
    """How much of each document's text the explorer page contains."""
    command: tuple[str, ...] = ()
    written: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError if the facts contradict each other."""
        levels: dict[int, Any] = {self.model.n_topics: self, **(self.levels or {})}
        above = 0
        for n_topics, level in sorted(levels.items()):
            where = "" if level is self else f"levels.{n_topics}."
            if isinstance(level, LevelInfo) and len(level.parents) != n_topics:
                raise ValueError(f"{where}parents must be one for each topic")
            if isinstance(level, LevelInfo) and max(level.parents, default=0) >= above:
                raise ValueError(f"{where}parents must be topics of the level above")
            if len(level.automatic_names) not in (0, n_topics):
                raise ValueError(f"{where}automatic_names must be one for each topic")
            if max(level.topic_names, default=-1) >= n_topics:
                raise ValueError(f"{where}topic_names must be of topics that exist")
            above = n_topics
        if len(self.reproducibility) not in (0, self.model.n_topics):
            raise ValueError("reproducibility must be one for each topic")
        if len(self.fitted_to) not in (0, self.model.n_topics):
            raise ValueError("fitted_to must be one for each topic")
        if any(len(rows) != 2 or not rows[0] < rows[1] <= self.documents for rows in self.fitted_to):
            raise ValueError("fitted_to must be ranges of the documents")
        if self.before is not None and (self.before.before or self.before.edits != self.edits[:-1] or not self.edits):
            raise ValueError("before must be the run before the last of its edits")
        for name, topics in (("junk", self.junk or ()), ("hidden_topics", self.hidden_topics)):
            if max(topics, default=-1) >= self.model.n_topics:
                raise ValueError(f"{name} must be topics that exist")


@dataclass(frozen=True)
class Progress:
    """State of an unfinished run, the content of stages.json."""

    settings: dict[str, Any]
    """Settings of the call, which must be the same when it is resumed."""
    stages: tuple[str, ...]
    """Stages that are complete."""
    info: RunInfo


def read_as(kind: Any, value: Any, name: str = "") -> Any:
    """Return a JSON value as a type of the fields above. Raise ValueError with the name of a field that is wrong."""
    if kind is Any:
        return value
    if kind in _LEAVES:
        _LEAVES[kind].require(name, value)
        return value
    if is_dataclass(kind):
        return _read_fields(kind, value, name)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        arguments[1].require(name, value)
        return value
    if origin is Literal:
        one_of(*arguments).require(name, value)
        return value
    if origin in (UnionType, Union):
        return None if value is None else read_as(arguments[0], value, name)
    if origin is tuple:
        _LIST.require(name, value)
        return tuple(read_as(arguments[0], part, f"{name}[{place}]") for place, part in enumerate(value))
    OBJECT.require(name, value)
    if arguments[0] is int and not all(map(_is_number, value)):
        raise ValueError(f"{name} must be an object with whole numbers as names, got {shortened(value)}")
    return {arguments[0](key): read_as(arguments[1], part, f"{name}.{shortened(key)}") for key, part in value.items()}


def _read_fields(kind: Any, value: Any, name: str) -> Any:
    """Return a JSON object as a dataclass."""
    OBJECT.require(name, value)
    kinds, prefix = _kinds(kind), f"{name}." if name else ""
    unknown = [key for key in value if key not in kinds]
    if unknown:
        raise ValueError(f"{prefix}{shortened(unknown[0])} is not a known field")
    for part in fields(kind):
        if part.name not in value and part.default is MISSING and part.default_factory is MISSING:
            raise ValueError(f"{prefix}{part.name} is missing")
    return kind(**{key: read_as(kinds[key], part, f"{prefix}{key}") for key, part in value.items()})


@cache
def _kinds(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def as_json(value: Any) -> Any:
    """Return a dataclass, and all values in it, as JSON values."""
    if is_dataclass(value):
        parts = ((part, getattr(value, part.name)) for part in fields(value))
        return {part.name: as_json(content) for part, content in parts if not _is_default(part, content)}
    if isinstance(value, Mapping):
        return {str(key): as_json(part) for key, part in value.items()}
    return [as_json(part) for part in value] if isinstance(value, list | tuple) else value


def _is_default(part: Any, content: Any) -> bool:
    default = part.default if part.default_factory is MISSING else part.default_factory()
    return bool(content == default) and type(content) is type(default)


def _is_number(name: str) -> bool:
    """Return whether a string is a whole number as `str` writes it."""
    return name.isdecimal() and len(name) <= _MAX_DIGITS and str(int(name)) == name
