"""Tools of ``polyseme mcp``: read-only functions of runs, with limits, whose results are data of unknown authors.

Every answer is ``{"notice": NOTICE, "data": ...}``, and every error ``{"notice": NOTICE, "error": ...}``, because
errors quote labels, names and ids. The module does not import the SDK.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from polyseme.cli import schemas
from polyseme.cli.commands.mcp import NOTICE
from polyseme.cli.console import TopicRow, finite, topic_rows
from polyseme.errors import InputError, MissingExtraError, ModelFileError, ShardError
from polyseme.options import naming_flags
from polyseme.progress import UNSAFE, SilentReporter, visible
from polyseme.runs.run import Run, open_run
from polyseme.runs.search_index import RunIndex
from polyseme.runs.searching import read_index, search_run
from polyseme.runs.store import RunStore
from polyseme.runs.view import TopicView

MAX_ANSWER, MAX_STRING, MAX_TEXT, MAX_TEXTS = 200_000, 1_000, 20_000, 20
"""Characters of an answer in JSON, of a string in it, and of the text of a document; and texts of a call."""
_MAX_ERROR = 300
_MAX_LABELS = 20
_LEAST_SHARE = 0.01

RunName = Annotated[str | None, {"description": "Name of the run; not needed if there is only one."}]
Level = Annotated[int | None, {"description": "Number of topics of a finer level. null: the reading level."}]
DocumentId = Annotated[str, {"description": "Id of a document, as search returns it."}]
Resamples = Annotated[int, {"minimum": 10, "maximum": 200, "description": "Fits to resampled documents."}]


def count(most: int, least: int = 1) -> dict[str, int]:
    return {"minimum": least, "maximum": most}


class ServedRun:
    """A run, opened again when another process has replaced it."""

    def __init__(self, path: Path) -> None:
        self.path, self.run = path, open_run(path)

    def current(self) -> ServedRun:
        return self if RunStore.open(self.path).digest == self.run.store.digest else ServedRun(self.path)

    @cached_property
    def index(self) -> RunIndex:
        return read_index(self.run.store)

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row of each document by its id."""
        return {name: row for row, name in enumerate(self.run.view.corpus.ids)}


class Tools:
    """Tools for some runs, by their names."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._runs = {name: ServedRun(path) for name, path in paths.items()}

    def descriptions(self) -> list[dict[str, Any]]:
        """Return the name, the description and the schemas of each tool."""
        return [
            {
                "name": name, "description": tool.__doc__, "input_schema": input_schema(tool),
                "output_schema": output_schema(tool),
            }
            for name, tool in TOOLS.items()
        ]  # fmt: skip

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str, bool]:
        """Return the answer of a tool, the same as one line of JSON, and whether it is an error."""
        try:
            with naming_flags(False):  # errors name arguments, not options of commands
                answer, failed = {"notice": NOTICE, "data": self._answer(name, arguments)}, False
        except (InputError, ModelFileError, ShardError, MissingExtraError, OSError, MemoryError) as error:
            message = visible(str(error) or type(error).__name__, one_line=True)
            answer, failed = {"notice": NOTICE, "error": cut(message, _MAX_ERROR)}, True
        text = json.dumps(answer, ensure_ascii=False)
        return answer, UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text), failed

    def _answer(self, name: str, arguments: Mapping[str, Any]) -> Any:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match

        if name not in TOOLS:
            raise InputError(f"There is no tool {name!r}: there are {', '.join(TOOLS)}.")
        problem = best_match(Draft202012Validator(input_schema(TOOLS[name])).iter_errors(dict(arguments)))
        if problem is not None:
            raise InputError(f"{'.'.join(map(str, problem.path)) or name}: {problem.message}.")
        most = MAX_TEXT if name == "document" else MAX_STRING
        answer = bounded(finite(TOOLS[name](self, **arguments)), most)
        size = len(json.dumps(answer, ensure_ascii=False))
        if size > MAX_ANSWER:
            raise InputError(f"The answer has {size:,} characters, more than {MAX_ANSWER:,}: ask for less.")
        return answer

    def _served(self, name: str | None) -> ServedRun:
        if name is None and len(self._runs) == 1:
            (name,) = self._runs
        if name not in self._runs:
            raise InputError(f"run must be one of {', '.join(self._runs)}.")
        self._runs[name] = self._runs[name].current()
        return self._runs[name]

    def _view(self, run: str | None, level: int | None) -> TopicView:
        opened: Run = self._served(run).run
        return opened.view if level is None else opened.level(level)

    def topics(self, run: RunName = None, level: Level = None, words: Annotated[int, count(30)] = 10) -> schemas.Topics:
        """List the topics of a run: number, name, weight, words, labels, and finer topics below them."""
        return {"topics": [_few_labels(row) for row in topic_rows(self._view(run, level), n_words=words)]}

    def topic(
        self,
        topic: Annotated[int, {"minimum": 0}],
        run: RunName = None,
        level: Level = None,
        words: Annotated[int, count(50)] = 20,
        documents: Annotated[int, count(10, 0)] = 3,
    ) -> TopicRow:
        """Describe one topic: words, labels, and its most typical documents with quotes."""
        rows = topic_rows(self._view(run, level), n_words=words, n_documents=documents)
        found = next((row for row in rows if row.topic == topic), None)
        if found is None:
            raise InputError(f"There is no topic {topic}: the run has topics 0 to {len(rows) - 1}.")
        return _few_labels(found)

    def search(
        self,
        query: Annotated[str, {"minLength": 1, "maxLength": MAX_STRING}],
        run: RunName = None,
        number: Annotated[int, count(50)] = 10,
        label: str | None = None,
        topic: int | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> schemas.Search:
        """Find documents by words and topics. "new york" is a phrase, comput* all endings, -word excludes a word."""
        filters = {"label": label, "topic": topic, "since": since, "until": until}
        return self._found(run, query, number, **filters)

    def similar(self, id: DocumentId, run: RunName = None, number: Annotated[int, count(50)] = 10) -> schemas.Search:
        """Find documents similar to a document of the run."""
        return self._found(run, id, number, like=True)

    def _found(self, run: str | None, query: str, number: int, **options: Any) -> Any:
        served = self._served(run)
        return search_run(
            served.run.store, query, number, index=served.index, report=SilentReporter(), **options
        ).to_dict()

    def document(
        self,
        id: DocumentId,
        run: RunName = None,
        start: Annotated[int, {"minimum": 0, "description": "First character of the text to return."}] = 0,
        characters: Annotated[int, count(MAX_TEXT)] = 4_000,
    ) -> schemas.Document:
        """Read a document: title, label, time, topics, and a part of its text."""
        served = self._served(run)
        if id not in served.rows:
            raise InputError(f"There is no document {id!r}.")
        view, row = served.run.view, served.rows[id]
        stored = view.store.documents
        text = (stored.texts if stored.has_texts else stored.column("excerpt"))[row]
        first = int(view.corpus.groups[row])
        return {
            "id": id,
            **{name: stored.column(name)[row] for name in ("title", "label", "time", "source")},  # type: ignore[typeddict-item]
            "duplicate_of": None if first == row else view.corpus.ids[first],
            "topics": shares_of(view, view.doc_topic[row].tolist()),
            "text": text[start : start + characters],
            "start": start,
            "length": len(text),
        }

    def transform(
        self,
        texts: Annotated[list[Annotated[str, {"maxLength": MAX_TEXT}]], {"minItems": 1, "maxItems": MAX_TEXTS}],
        run: RunName = None,
        level: Level = None,
    ) -> schemas.NewDocuments:
        """Compute the topics of new texts. The run does not change."""
        view = self._view(run, level)
        table = view.transform(texts)
        columns = [f"{k} {title}" for k, title in enumerate(view.topic_titles)]
        weights = table.select(columns).rows()
        return {
            "documents": [
                {"topics": [] if reason else shares_of(view, shares), "tokens": tokens, "reason": reason}
                for shares, tokens, reason in zip(weights, table["tokens"], table["reason"], strict=True)
            ]
        }

    def groups(
        self,
        run: RunName = None,
        by: Annotated[str, {"enum": ["label", "source"]}] = "label",
        most: Annotated[int, count(12, 2)] = 6,
        resamples: Resamples = 50,
    ) -> schemas.Groups:
        """Compare the topics of groups of documents, with 95% intervals and false discovery rates."""
        from polyseme.cli.commands.groups import groups_as_dict

        return groups_as_dict(self._view(run, None).compare_groups(by, most=most, n_resamples=resamples))

    def time(
        self,
        run: RunName = None,
        every: Annotated[str | None, {"enum": [None, "decade", "year", "quarter", "month", "week", "day"]}] = None,
        resamples: Resamples = 50,
    ) -> schemas.Time:
        """Show the topics over time, and which rise and fall."""
        from polyseme.cli.commands.time import timeline_as_dict

        return timeline_as_dict(self._view(run, None).over_time(every, n_resamples=resamples))

    def evaluate(self, run: RunName = None) -> schemas.Evaluation:
        """Measure the quality of the topics: perplexity, coherence, diversity, agreement with labels."""
        from polyseme.cli.commands.evaluate import evaluation_as_dict

        view = self._view(run, None)
        loaded = view.in_memory()
        return evaluation_as_dict(
            loaded.evaluate(), view.store.vocabulary, loaded.corpus.ids, loaded.corpus.names, fitted=True
        )


TOOLS: dict[str, Callable[..., Any]] = {
    tool.__name__: tool
    for tool in (
        Tools.topics, Tools.topic, Tools.search, Tools.document, Tools.similar, Tools.transform, Tools.groups,
        Tools.time, Tools.evaluate,
    )
}  # fmt: skip


def input_schema(tool: Callable[..., Any]) -> dict[str, Any]:
    """Return the JSON Schema of the arguments of a tool."""
    hints = get_type_hints(tool, include_extras=True)
    parameters = [each for each in signature(tool).parameters.values() if each.name != "self"]
    properties = {
        each.name: {
            **schemas.schema_of(hints[each.name], {}),
            **({} if each.default is each.empty else {"default": each.default}),
        }
        for each in parameters
    }
    required = [each.name for each in parameters if each.default is each.empty]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def output_schema(tool: Callable[..., Any]) -> dict[str, Any]:
    """Return the JSON Schema of the answer of a tool."""
    parts: dict[str, Any] = {}
    data = schemas.schema_of(get_type_hints(tool, include_extras=True)["return"], parts)
    properties = {"notice": {"const": NOTICE}, "data": data}
    return {"type": "object", "properties": properties, "required": list(properties), "$defs": parts}


def bounded(value: Any, most: int) -> Any:
    """Return a JSON value with all strings cut to this many characters."""
    if isinstance(value, dict):
        return {cut(name, most): bounded(part, most) for name, part in value.items()}
    if isinstance(value, list):
        return [bounded(part, most) for part in value]
    return cut(value, most) if isinstance(value, str) else value


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shares_of(view: TopicView, weights: Sequence[float]) -> list[schemas.TopicShare]:
    """Return the topics with at least 1% of a document, the largest first."""
    order = sorted(range(len(weights)), key=lambda k: -weights[k])
    titles = view.topic_titles
    return [{"topic": k, "name": titles[k], "share": weights[k]} for k in order if weights[k] >= _LEAST_SHARE]


def _few_labels(row: TopicRow) -> Any:
    return asdict(replace(row, shares=dict(list(row.shares.items())[:_MAX_LABELS])))
