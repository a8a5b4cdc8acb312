"""`TopicView`: the topics of one level of a run, with all of its documents or a sample of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload
from weakref import WeakValueDictionary

import numpy as np

from polyseme.core.dirichlet import with_posterior
from polyseme.core.fitted import FittedTopics, TrainingDocuments
from polyseme.core.shard import row_batches
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.layout.document_map import DocumentMap, MapLevel
from polyseme.layout.places import Places, document_layout, layout_level
from polyseme.metrics.words import Topic, TopicTable, WordAmounts, without_columns, word_amounts, words_of_amounts
from polyseme.options import named
from polyseme.progress import SilentReporter, reporter
from polyseme.runs.corpus import RunCorpus
from polyseme.runs.documents import COLUMNS
from polyseme.runs.info import LevelInfo, Mark, Reproducibility, RunInfo
from polyseme.runs.junk import junk_notes
from polyseme.runs.names import naming_prompt
from polyseme.runs.quotes import TypicalDocument, find_quotes
from polyseme.runs.reading import count_words, main_labels
from polyseme.runs.store import RunStore
from polyseme.runs.typical import N_RANKED, TopicDocuments, topic_documents
from polyseme.text.readers.sources import open_source
from polyseme.utils import as_seed, effective_threads

if TYPE_CHECKING:
    import polars as pl

    from polyseme.estimators import NMF
    from polyseme.estimators.base import TopicEstimator
    from polyseme.explore.page import NotebookPage
    from polyseme.metrics.evaluation import Evaluation
    from polyseme.retrieval.queries import Results
    from polyseme.uncertainty.bootstrap import Bootstrap
    from polyseme.uncertainty.effects import Effects
    from polyseme.uncertainty.groups import GroupComparison
    from polyseme.uncertainty.time import Timeline

SAMPLE_SIZE = 10_000
"""Number of documents in the sample of a run that is too large for memory."""
EMPTY_TEXT, NO_KNOWN_WORD = "the text is empty", "no word of the text is in the run's vocabulary"
"""Reasons why a new document has no topic weights."""
_TEXT_COLUMNS = COLUMNS[:-1]
"""Text columns of the table that `transform` returns; columns of numbers follow."""


class TopicView:
    """Topics of a level of a run. What `Run` also has is described there.

    finer : number of topics of a finer level; None: the reading level, the level of the fit. opened : the views of the
    same documents that are in use, so that no model is read twice. Their values stay valid, because the files of a run
    never change in place; names, which do change, are looked up in the facts about the run.
    """

    def __init__(self, corpus: RunCorpus, finer: int | None = None, opened: OpenViews | None = None) -> None:
        self.corpus, self.finer = corpus, finer
        self._opened = WeakValueDictionary() if opened is None else opened
        self._opened[finer] = self

    def __repr__(self) -> str:
        return f"{self._heading()}\n{self.topics()}"

    def _repr_html_(self) -> str:
        return f"<p>{self._heading()}</p>{self.topics()._repr_html_()}"

    def _heading(self) -> str:
        model, n_documents = self.store.info.model.estimator, self.corpus.n_documents
        return f"{model} with {self.fitted.n_topics} topics of {n_documents:,} documents"

    @property
    def store(self) -> RunStore:
        """The open run."""
        return self.corpus.store

    # levels and samples

    @property
    def levels(self) -> list[int]:
        """Numbers of topics of all levels: the reading level first, then the finer ones."""
        return [self.store.info.model.n_topics, *sorted(self.store.info.levels or ())]

    def level(self, n_topics: int) -> TopicView:
        """Return the topics of another level, with the same documents."""
        levels = self.levels
        if n_topics not in levels:
            listed = ", ".join(map(str, levels))
            raise InputError(f"{named('level')} must be one of the levels of the run, {listed}, got {n_topics!r}.")
        finer = None if n_topics == levels[0] else n_topics
        return self._opened.get(finer) or TopicView(self.corpus, finer, self._opened)

    def sample(self, size: int, random_state: Any = 0) -> TopicView:
        """Return the same topics with some of the documents, drawn at random."""
        return TopicView(self.corpus.sample(size, as_seed(random_state)), self.finer)

    def in_memory(self) -> TopicView:
        """Return this view, or a random sample of it if it is too large for memory."""
        return self if self.corpus.fits_in_memory(self.fitted.n_topics) else self.sample(SAMPLE_SIZE)

    @property
    def level_info(self) -> RunInfo | LevelInfo:
        """Facts about this level."""
        return self.store.info if self.finer is None else (self.store.info.levels or {})[self.finer]

    @cached_property
    def parents(self) -> TopicParents | None:
        """The topic of the level above to which each topic belongs; None at the reading level."""
        stored = self.level_info
        if not isinstance(stored, LevelInfo):
            return None
        topics, shares = np.array(stored.parents, dtype=np.intp), np.array(stored.nesting, dtype=np.float64)
        return TopicParents(self.levels[self.levels.index(len(topics)) - 1], topics, shares)

    def finer_topics(self, n_words: int = 10) -> list[list[FinerTopic]]:
        """Return the topics of the next finer level that belong to each topic, with their own finer topics.

        The finer topics of a topic are in the order of decreasing weight.
        """
        n_topics = self.fitted.n_topics
        children: list[list[FinerTopic]] = [[] for _ in range(n_topics)]
        finer = self.levels[self.levels.index(n_topics) + 1 :]
        if finer:
            level = self.level(finer[0])
            assert level.parents is not None
            below, words = level.finer_topics(n_words), level.topic_words(n_words)
            weights, titles = level.fitted.topic_weights.tolist(), level.topic_titles
            for k in sorted(range(finer[0]), key=lambda topic: -weights[topic]):
                share = float(level.parents.shares[k])
                topic = FinerTopic(finer[0], k, titles[k], weights[k], share, words[k], below[k])
                children[level.parents.topics[k]].append(topic)
        return children

    # model

    @cached_property
    def model(self) -> TopicEstimator | NMF:
        """Fitted estimator. Arrays with a row per document may be memory-mapped."""
        model = self.store.model if self.finer is None else self.store.load_model(self.finer)
        if self.corpus.rows is not None:
            model = copy(model)
            model._training = model._training.take(self.corpus.rows)
        return model

    @property
    def fitted(self) -> FittedTopics:
        """Topics and inference of the model."""
        return self.model._fitted

    @property
    def training(self) -> TrainingDocuments:
        """Fitted attributes with one row per document."""
        documents = self.model._training
        assert documents is not None  # checked when the model was read
        return documents

    @property
    def doc_topic(self) -> Array:
        """P(z|d) of the documents."""
        return self.training.doc_topic

    # names and words

    @property
    def topic_names(self) -> dict[int, str]:
        """Names that users have given to topics."""
        return self.level_info.topic_names

    @property
    def topic_titles(self) -> list[str]:
        """Name of each topic: the given one, or the one made of phrases and words of the documents."""
        return [self.topic_names.get(topic) or name for topic, name in enumerate(self.level_info.automatic_names)]

    @property
    def junk(self) -> dict[int, Mark]:
        """Topics that do not describe a subject, such as mail headers and boilerplate, with the reason; listed last."""
        return (self.store.info.junk or {}) if self.finer is None else {}

    @property
    def reproducibility(self) -> tuple[Reproducibility, ...]:
        """How often fits to resampled documents have each topic; empty without a consensus, and at a finer level."""
        return self.store.info.reproducibility if self.finer is None else ()

    @property
    def hidden_topics(self) -> frozenset[int]:
        """Topics that an edit has hidden from lists, maps and names; at a finer level, the topics below them."""
        if self.parents is None:
            return frozenset(self.store.info.hidden_topics)
        above = self.level(self.parents.level).hidden_topics
        return frozenset(topic for topic, parent in enumerate(self.parents.topics.tolist()) if parent in above)

    @property
    def hidden_columns(self) -> list[int]:
        """Columns of the words that an edit has hidden or removed; a prior gives removed words a probability."""
        hidden = {*self.store.info.hidden_words, *self.store.info.banned_words}
        return [column for column, word in enumerate(self.store.vocabulary) if word in hidden] if hidden else []

    @cached_property
    def word_amounts(self) -> WordAmounts:
        """Amounts of words in topics, by which the words of topics are ranked, without hidden words."""
        return without_columns(word_amounts(self.model), self.hidden_columns)

    def topic_words(self, n_words: int = 10) -> list[list[str]]:
        """Return the words shown for each topic, the best first, without hidden words."""
        return words_of_amounts(self.word_amounts, self.store.vocabulary, n_words)

    def topics(self, n_words: int = 10) -> TopicTable:
        """Return a table of the topics: id, name, weight, fit and words."""
        words = self.topic_words(n_words)
        rows = zip(self.topic_titles, self.fitted.topic_weights.tolist(), self.typical.fit.tolist(), words, strict=True)
        hidden = self.hidden_topics
        notes = junk_notes({topic: mark for topic, mark in self.junk.items() if topic not in hidden})
        if hidden:
            notes.append(f"Hidden topics: {', '.join(map(str, sorted(hidden)))}.")
        table = tuple(Topic(k, *row) for k, row in enumerate(rows))
        return TopicTable(table, tuple(notes), frozenset(self.junk), hidden)

    def naming_prompt(self, n_words: int = 10, n_documents: int = 3) -> str:
        """Return a prompt that asks a language model for names of the topics."""
        return naming_prompt(self, n_words, n_documents)

    # documents

    @cached_property
    def typical(self) -> TopicDocuments:
        """Fit, most typical documents and label shares of each topic."""
        return self.topic_documents(N_RANKED)

    def topic_documents(self, n_documents: int) -> TopicDocuments:
        """Return the fit, this many of the most typical documents, and the label shares of each topic."""
        corpus = self.corpus
        return topic_documents(
            self.fitted,
            self.training,
            corpus.count_parts(),
            n_documents,
            corpus.label_numbers,
            corpus.groups,
        )

    def typical_documents(self, n_documents: int = 2) -> list[list[TypicalDocument]]:
        """Return the most typical documents of each topic, each with the sentence that the topic explains best."""
        typical = self.typical if n_documents <= N_RANKED else self.topic_documents(n_documents)
        corpus, documents = self.corpus, self.store.documents
        texts = documents.texts if documents.has_texts else documents.column("excerpt")
        places = range(corpus.n_documents) if corpus.rows is None else corpus.rows.tolist()
        rows = [found[:n_documents] for found in typical.documents]
        quotes = find_quotes(
            self.fitted, self.training, rows, lambda row: texts[places[row]], corpus.names,
            self.store.vectorizer.transform, self.hidden_columns,
        )  # fmt: skip
        return [
            [
                TypicalDocument(row, corpus.ids[row], corpus.names[row], float(self.doc_topic[row, topic]), quote)
                for row, quote in zip(found, quotes[topic], strict=True)
            ]
            for topic, found in enumerate(rows)
        ]

    @cached_property
    def documents(self) -> pl.DataFrame:
        """Polars frame with metadata (id, title, ...), tokens, topic, name, share, topic_0, topic_1 ..."""
        import polars as pl

        self.corpus.check_fits_in_memory(self.fitted.n_topics)
        columns = {name: self.corpus.column(name) for name in COLUMNS}
        firsts = [None if first == row else first for row, first in enumerate(self.corpus.groups.tolist())]
        frame = pl.DataFrame(
            {
                **columns,
                "duplicate_of": [None if first is None else columns["id"][first] for first in firsts],
                "duplicate_row": firsts,
            },
            schema={**dict.fromkeys((*COLUMNS, "duplicate_of"), pl.String), "duplicate_row": pl.Int64},
        )
        frame = _with_topics(frame, self.corpus.counts, self.doc_topic)
        titles = pl.Series("name", [self.topic_titles[topic] for topic in frame["topic"]], dtype=pl.String)
        frame = frame.insert_column(frame.columns.index("topic") + 1, titles)
        finer = self.levels[1:] if self.finer is None else []
        main = {f"level_{n_topics}": self.level(n_topics).doc_topic.argmax(axis=1) for n_topics in finer}
        return frame.with_columns(pl.Series(name, topics, dtype=pl.Int32) for name, topics in main.items())

    @cached_property
    def places(self) -> Places:
        """Coordinates of the documents on the map; computed if the run does not store them."""
        stored, rows = self.store.places, self.corpus.rows
        if stored is not None:
            return np.asarray(stored if rows is None else stored[rows])
        return document_layout(self.layout_weights(), self.corpus.counts)

    def layout_weights(self) -> list[Array]:
        """Return P(z|d) at the levels that the map of the documents is computed from."""
        used = layout_level(self.corpus.n_documents, self.levels)
        return [self.level(n_topics).doc_topic for n_topics in dict.fromkeys((self.levels[0], self.levels[used]))]

    @cached_property
    def document_map(self) -> DocumentMap:
        """The map of the documents, with the names of the topics of this level and of the finer ones."""
        n_topics, hidden = self.fitted.n_topics, self.hidden_topics
        levels, tops = [MapLevel(self.doc_topic, self.topic_titles, range(n_topics))], np.arange(n_topics)
        for finer in self.levels[self.levels.index(n_topics) + 1 :]:
            level = self.level(finer)
            assert level.parents is not None
            tops = tops[level.parents.topics]
            levels.append(MapLevel(level.doc_topic, level.topic_titles, tops.tolist()))
        return DocumentMap.of(levels, self.corpus.counts, self.places, gray=hidden | {*self.junk}, unnamed=hidden)

    def transform(self, source: Any, *, verbose: int = 0, **reading: Any) -> pl.DataFrame:
        """Return the topic weights of new documents."""
        return self.weigh(*count_words(self.store, open_source(source, **reading), reporter(verbose)))

    def weigh(self, frame: pl.DataFrame, counts: Any) -> pl.DataFrame:
        """Return the table of `transform` for the metadata and the counts of documents."""
        import polars as pl

        fitted, n_threads = with_posterior(self.fitted), effective_threads(None)
        batches = row_batches(counts, fitted.topic_word.dtype)
        folded = [fitted.fold_in(part, n_threads=n_threads) for part in batches]
        weights = np.concatenate([part.doc_topic for part in folded])
        unknown = np.concatenate([np.diff(part.counts.indptr) == 0 for part in folded])
        titles = self.topic_titles
        main = weights.argmax(axis=1)
        main_titles = [None if none else titles[topic] for topic, none in zip(main, unknown, strict=True)]
        reasons = [
            (NO_KNOWN_WORD if excerpt else EMPTY_TEXT) if none else None
            for excerpt, none in zip(frame["excerpt"], unknown, strict=True)
        ]
        names = [f"{k} {title}" for k, title in enumerate(titles)]
        table = _with_topics(frame.select(_TEXT_COLUMNS), counts, weights, names)
        table = table.with_columns(**self.model._predicted(weights))
        columns = [name for name in table.columns if name not in (*_TEXT_COLUMNS, "tokens")]
        known = pl.lit(pl.Series(~unknown))
        table = table.with_columns(pl.when(known).then(pl.col(name)).otherwise(None).alias(name) for name in columns)
        position = table.columns.index("topic") + 1
        table = table.insert_column(position, pl.Series("name", main_titles, dtype=pl.String))
        return table.insert_column(position + 2, pl.Series("reason", reasons, dtype=pl.String))

    def search(self, query: str, n_documents: int = 10, **options: Any) -> Results:
        """Return the best documents of the run for a query, with the options of `Run.search`.

        Topics of this level complement the words. If the run has changed in its folder, the changed run is searched.
        """
        from polyseme.runs.searching import search_run

        store, view = self.store.current(), None
        if self.finer is not None:
            is_whole = store is self.store and self.corpus.rows is None
            view = self if is_whole else TopicView(RunCorpus(store)).level(self.finer)
        return search_run(store, query, n_documents, view=view, report=SilentReporter(), **options)

    def evaluate(
        self, source: Any = None, *, n_words: int = 10, smoothing: float = 0.01, verbose: int = 0, **reading: Any
    ) -> Evaluation:
        """Measure the quality of the topics: perplexity, coherence, diversity, fit, agreement with labels."""
        from polyseme.metrics.evaluation import evaluate

        if source is None:
            view = self.in_memory()
            counts, labels = view.corpus.counts, view.corpus.labels
        else:
            view = self
            frame, counts = count_words(self.store, open_source(source, **reading), reporter(verbose))
            labels = frame["label"].to_list()
        return evaluate(view.model, counts, main_labels(labels), n_words=n_words, smoothing=smoothing)

    def bootstrap(
        self,
        n_resamples: int = 100,
        *,
        clusters: Any = None,
        level: float = 0.95,
        random_state: int = 0,
        verbose: int = 0,
        **options: Any,
    ) -> Bootstrap:
        """Return intervals for the topics, their words and their weights, from fits to resampled documents."""
        from polyseme.runs.groups import cluster_numbers
        from polyseme.uncertainty import bootstrap

        clusters = cluster_numbers(self, clusters)
        with reporter(verbose).stage("Fitting resamples") as update:
            return bootstrap(
                self.model, self.corpus.counts, n_resamples, clusters=clusters, level=level, random_state=random_state,
                progress=lambda done, total: update(done, total, ""), **options,
            )  # fmt: skip

    def compare_groups(self, by: Any = "label", *, verbose: int = 0, **options: Any) -> GroupComparison:
        """Return the shares of the topics in groups of documents, with the options of `Run.compare_groups`."""
        from polyseme.runs.groups import compare_groups

        with reporter(verbose).stage("Fitting resamples") as update:
            return compare_groups(self, by, progress=lambda done, total: update(done, total, ""), **options)

    def effects(self, formula: str, data: Any = None, *, verbose: int = 0, **options: Any) -> Effects:
        """Return how the shares of topics depend on metadata, with the options of `Run.effects`."""
        from polyseme.runs.effects import run_effects

        with reporter(verbose).stage("Fitting resamples") as update:
            return run_effects(self, formula, data, progress=lambda done, total: update(done, total, ""), **options)

    def over_time(self, every: str | None = None, *, verbose: int = 0, **options: Any) -> Timeline:
        """Return the shares of the topics by calendar period, with the options of `Run.over_time`."""
        from polyseme.runs.timeline import over_time

        with reporter(verbose).stage("Fitting resamples") as update:
            return over_time(self, every, progress=lambda done, total: update(done, total, ""), **options)

    @property
    def title(self) -> str | None:
        """Title of the explorer page."""
        info, rows = self.store.info, self.corpus.rows
        if rows is None:
            return info.title
        return f"{info.title or self.store.path.name} ({len(rows):,} of {info.documents:,} documents)"

    @overload
    def explore(self, path: None = None, *, text: str = "auto", intervals: int = 0) -> NotebookPage: ...
    @overload
    def explore(self, path: str | PathLike[str], *, text: str = "auto", intervals: int = 0) -> Path: ...
    def explore(
        self, path: str | PathLike[str] | None = None, *, text: str = "auto", intervals: int = 0
    ) -> Path | NotebookPage:
        """Write the explorer page of this level, or return it for display in a notebook."""
        from polyseme.explore import write_page

        return write_page(self.in_memory(), path, text, intervals=intervals)

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write a report of this level to a .docx, .html or .md file."""
        from polyseme.explore.report import write_report

        write_report(self.in_memory(), path, title)
        return Path(path)


OpenViews: TypeAlias = WeakValueDictionary[int | None, TopicView]
"""Views of the levels of a run by their numbers of topics, None for the reading level, as long as they are used."""


class TopicParents(NamedTuple):
    """Parents of the topics of a level, in the level above."""

    level: int
    """Number of topics of the level above."""
    topics: Array
    """For each topic, its parent: the topic of the level above that has most of its tokens."""
    shares: Floats
    """Share of the tokens of each topic that its parent has."""


@dataclass(frozen=True)
class FinerTopic:
    """A topic of a finer level, below another topic."""

    level: int
    """Number of topics of its level."""
    topic: int
    name: str
    weight: float
    """P(z)."""
    parent_share: float
    """Share of its tokens that the topic above it has."""
    words: list[str]
    children: list[FinerTopic]
    """Topics of the next finer level that belong to it."""


def _with_topics(documents: Any, counts: Any, doc_topic: Array, names: Sequence[str] | None = None) -> Any:
    """Add columns to a polars frame of documents: tokens, main topic, its share, and P(z|d) of every topic.

    `names` are the names of the columns of P(z|d); None: topic_0, topic_1 ...
    """
    import polars as pl

    names = names or [f"topic_{k}" for k in range(doc_topic.shape[1])]
    main = doc_topic.argmax(axis=1)
    return documents.with_columns(
        pl.Series("tokens", np.asarray(counts.sum(axis=1), dtype=np.float64).ravel().astype(np.int64)),
        pl.Series("topic", main.astype(np.int32)),
        pl.Series("share", doc_topic[np.arange(len(main)), main]),
        *[pl.Series(name, np.ascontiguousarray(doc_topic[:, k])) for k, name in enumerate(names)],
    )
