"""`Run`: a folder with topics and documents, which `polyseme.fit` and ``polyseme fit`` write.

Files are read when they are first used, and checked against the manifest in run.json. Documents and counts are read
piece by piece where that is possible. Methods that need all of them at once work up to MAX_NUMBERS_IN_MEMORY counts and
weights; `in_memory` returns a random sample of a larger run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.dirichlet import with_posterior
from polyseme.core.fitted import FittedTopics
from polyseme.core.shard import row_batches, without_words
from polyseme.data.disk import DiskCorpus
from polyseme.errors import InputError
from polyseme.estimators.base import FittedDecomposition, load
from polyseme.kernels import Array, Floats
from polyseme.metrics.words import Topic, TopicTable, WordAmounts, without_columns, word_amounts, words_of_amounts
from polyseme.progress import Reporter, SilentReporter, TerminalReporter
from polyseme.runs.documents import COLUMNS, Labels, metadata, unique_ids
from polyseme.runs.info import Edit, LevelInfo, Mark, RunInfo
from polyseme.runs.junk import SAMPLE, WORDS_REMOVED, TokenSample, junk_notes
from polyseme.runs.names import MAX_DOCUMENTS, Namer, RunPhrases, naming_prompt
from polyseme.runs.store import RunStore, output_only_files
from polyseme.runs.typical import N_RANKED, TopicDocuments, topic_documents
from polyseme.text.readers.inputs import REMARKS
from polyseme.text.readers.reader import Reader, open_source
from polyseme.text.vectorizer import Vectorizer
from polyseme.utils import effective_threads

MODEL_FILE = "model.safetensors"
LEVELS_FOLDER = "levels"
"""Folder with the models of finer levels, each in a subfolder named after its number of topics."""
MAX_NUMBERS_IN_MEMORY = 1 << 27
"""Largest number of non-zero counts and topic weights that are loaded into memory at once."""
SAMPLE_SIZE = 10_000
"""Number of documents in the sample of a run that is too large for memory."""
MAX_LABELS = 1000
"""Number of labels of a large run; less frequent labels are ignored."""
_UPDATE_EVERY = 64
"""Documents between two updates of the progress bar."""
_EXAMPLES = 3
EMPTY_TEXT, NO_KNOWN_WORD = "the text is empty", "no word of the text is in the run's vocabulary"
"""Reasons why a new document has no topic weights."""
_TEXT_COLUMNS = COLUMNS[:-1]
"""Text columns of the table that `transform` returns; columns of numbers follow."""


class _shared(cached_property[Any]):
    """Property that is the same at every level: it is computed once, at the reading level."""

    def __get__(self, run: Any, owner: Any = None) -> Any:
        if run is not None and run.reading is not None:
            return getattr(run.reading, self.attrname)  # type: ignore[arg-type]
        return super().__get__(run, owner)


class Run:
    """Topics and documents in a folder: the result of `polyseme.fit` and of `polyseme.open_run`.

    Parameters
    ----------
    store : RunStore
        The open folder. A run that was fitted without an output has a temporary folder, which is removed with the
        object; `save` writes it to another folder.
    rows : array of int or None, default=None
        The documents of a sample, in increasing order. None: all documents.
    level : int or None, default=None
        Number of topics of a finer level. None: the reading level, the level of the fit.
    reading : Run or None, default=None
        The run at the reading level, if this object has the topics of a finer level.
    """

    def __init__(
        self, store: RunStore, *, rows: Array | None = None, level: int | None = None, reading: Run | None = None
    ) -> None:
        self.store, self.rows, self.reading, self._level = store, rows, reading, level

    def __repr__(self) -> str:
        return f"{self._heading()}\n{self.topics()}"

    def _repr_html_(self) -> str:
        return f"<p>{self._heading()}</p>{self.topics()._repr_html_()}"

    def _heading(self) -> str:
        return f"{self.info.model.estimator} with {self.fitted.n_topics} topics of {self.n_documents:,} documents"

    # content of the files

    @cached_property
    def model(self) -> Any:
        """Fitted estimator. Arrays with a row per document may be memory-mapped."""
        folder = "" if self._level is None else level_folder(self._level)
        model = load(self.store.files.path(f"{folder}{MODEL_FILE}"))
        self.store.require(
            isinstance(model, FittedDecomposition),
            f"its model is of the class {type(model).__name__}, which has no topics",
        )
        self.store.require("log_likelihood_" in vars(model), "its model has no log_likelihood_")
        n_topics, n_words = model.fitted_.topic_word.shape
        self.store.require(
            n_topics == (self._level or self.info.model.n_topics), "its model has a different number of topics"
        )
        self.store.require(n_words == len(self.vocabulary), "its model has a different number of words")
        self.store.require(model.documents_ is not None, "its model has no training documents")
        n_documents = len(model.documents_.doc_topic)
        self.store.require(n_documents == self.shards.shape[0], "its model has a different number of documents")
        return model if self.rows is None else _of_documents(model, self.rows)

    @property
    def fitted(self) -> FittedTopics:
        """Topics and inference of the model."""
        return self.model.fitted_

    @property
    def doc_topic(self) -> Array:
        """P(z|d) of the documents."""
        return self.model.documents_.doc_topic

    @property
    def path(self) -> Path:
        """Folder of the run."""
        return self.store.path

    @property
    def info(self) -> RunInfo:
        """Settings, versions, seed, timings, names of topics, edits: the content of run.json."""
        return self.store.info

    @property
    def vectorizer(self) -> Vectorizer:
        """Vectorizer that counted the documents."""
        return self.store.vectorizer

    @property
    def vocabulary(self) -> Sequence[str]:
        """The word of each column."""
        return self.store.vocabulary

    @property
    def shards(self) -> DiskCorpus:
        """Counts of all documents on disk."""
        return self.store.shards

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.shards.shape[0] if self.rows is None else len(self.rows)

    @_shared
    def counts(self) -> Any:
        """Counts that the model was fitted to (documents x words, CSR)."""
        self._check_fits_in_memory()
        return take_counts(self.shards, self.rows)

    def count_parts(self) -> Iterator[Any]:
        """Iterate over the counts in parts, in the order of the documents.

        Returns
        -------
        iterator of sparse array
            The counts of each part, CSR.
        """
        return iter([self.counts] if "counts" in vars(self.reading or self) or self.rows is not None else self.shards)

    @cached_property
    def documents(self) -> Any:
        """Polars frame with metadata (id, title, ..., duplicate_of), tokens, topic, share, topic_0, topic_1 ..."""
        import polars as pl

        self._check_fits_in_memory()
        names = self.column("id")
        firsts = [None if first == row else first for row, first in enumerate(self.groups.tolist())]
        frame = pl.DataFrame(
            {
                **{name: self.column(name) for name in COLUMNS},
                "duplicate_of": [None if first is None else names[first] for first in firsts],
                "duplicate_row": firsts,
            },
            schema={**dict.fromkeys((*COLUMNS, "duplicate_of"), pl.String), "duplicate_row": pl.Int64},
        )
        frame = add_topic_columns(frame, _tokens(self.counts), self.doc_topic)
        finer = self.levels[1:] if self.reading is None else []
        main = {f"level_{n_topics}": self.level(n_topics).doc_topic.argmax(axis=1) for n_topics in finer}
        return frame.with_columns(pl.Series(name, topics, dtype=pl.Int32) for name, topics in main.items())

    def column(self, name: str) -> list[Any]:
        """Return the values of a column of the metadata.

        Parameters
        ----------
        name : str
            The column.

        Returns
        -------
        list
            One value for each document.
        """
        values = self.store.documents.column(name)
        return list(values) if self.rows is None else values.take(self.rows)

    @_shared
    def ids(self) -> list[str]:
        """Id of each document; if ids repeat, each id follows the name of its file."""
        return unique_ids(self.column("id"), self.column("source"))

    @_shared
    def names(self) -> Sequence[str]:
        """Name of each document: its title, or its id if it has no title."""
        names = self.store.documents.names
        return names if self.rows is None else [names[row] for row in self.rows.tolist()]

    @_shared
    def labels(self) -> list[str]:
        """Label of each document; "" if it has none."""
        return [label or "" for label in self.column("label")]

    @_shared
    def label_numbers(self) -> Labels:
        """Labels as numbers. A large run has only its MAX_LABELS most frequent labels."""
        if "labels" in vars(self):
            return Labels.of(self.labels, np.arange(len(self.labels)))
        labels = self.store.documents.labels(None if self.fits_in_memory else MAX_LABELS)
        return labels if self.rows is None else Labels.of(labels.names, labels.numbers[self.rows])

    @_shared
    def groups(self) -> Array:
        """For each document, the row of the first document in its group of near-duplicates."""
        if self.rows is None:
            return self.store.documents.groups if self.info.duplicates.found else np.arange(len(self.doc_topic))
        _, first, numbers = np.unique(self.store.documents.groups[self.rows], return_index=True, return_inverse=True)
        return np.asarray(first[numbers.ravel()])

    @_shared
    def texts(self) -> list[str] | None:
        """Full texts, or None if the run does not store texts."""
        stored = self.store.texts
        if stored is None:
            return None
        self._check_fits_in_memory()
        return list(stored) if self.rows is None else stored.take(self.rows)

    def sampled_texts(self, size: int) -> tuple[Array, Iterator[str]]:
        """Return the rows and the texts of documents that are drawn at random; none without texts.

        Parameters
        ----------
        size : int
            Number of documents.

        Returns
        -------
        tuple of array of int and iterator of str
            Rows in increasing order, and texts.
        """
        stored = self.store.texts
        rows = sample_rows(0 if stored is None else self.n_documents, size, 0)
        places = rows if self.rows is None else self.rows[rows]
        return rows, (stored[row] for row in places.tolist())

    @property
    def level_info(self) -> RunInfo | LevelInfo:
        """Facts about this level."""
        return self.info if self._level is None else (self.info.levels or {})[self._level]

    @property
    def title(self) -> str | None:
        """Title of the explorer page."""
        if self.rows is None:
            return self.info.title
        return f"{self.info.title or self.path.name} ({len(self.rows):,} of {self.info.documents:,} documents)"

    @property
    def topic_names(self) -> dict[int, str]:
        """Names that users have given to topics."""
        return self.level_info.topic_names

    @property
    def topic_titles(self) -> list[str]:
        """Name of each topic: the given one, or the one made of phrases and words of the documents."""
        return [self.topic_names.get(topic) or name for topic, name in enumerate(self.level_info.automatic_names)]

    @_shared
    def phrases(self) -> RunPhrases:
        """Phrases of the texts, from which the names of topics are made; none without texts.

        They come from at most 20,000 documents, drawn at random, and only from the beginnings of long documents.
        """
        return RunPhrases.of(self.vectorizer, *self.sampled_texts(MAX_DOCUMENTS))

    @_shared
    def token_sample(self) -> TokenSample:
        """Words of a sample of documents, in the order of the texts; none without texts."""
        return TokenSample.of(self.vectorizer, *self.sampled_texts(SAMPLE))

    @property
    def junk(self) -> dict[int, Mark]:
        """Topics that do not describe a subject, such as mail headers and boilerplate, with the reason; listed last."""
        return (self.info.junk or {}) if self._level is None else {}

    @cached_property
    def word_amounts(self) -> WordAmounts:
        """Amounts of words in topics, by which the words of topics are ranked, without hidden words."""
        return without_columns(word_amounts(self.model), self.hidden_columns)

    def topic_words(self, n_words: int = 10) -> list[list[str]]:
        """Return the words shown for each topic, without hidden words.

        Parameters
        ----------
        n_words : int, default=10
            Number of words of each topic.

        Returns
        -------
        list of lists of str
            Words, the best first.
        """
        return words_of_amounts(self.word_amounts, self.vocabulary, n_words)

    @property
    def levels(self) -> list[int]:
        """Numbers of topics of all levels: the reading level first, then the finer ones."""
        return [self.info.model.n_topics, *sorted(self.info.levels or ())]

    def level(self, n_topics: int) -> Run:
        """Return the run with the topics of one of its levels; documents and counts are the same.

        Parameters
        ----------
        n_topics : int
            Number of topics of the level, one of `levels`.

        Returns
        -------
        Run
            The run at this level. Its folder is the same.

        Raises
        ------
        InputError
            If there is no such level.
        """
        run, levels = self.reading or self, self.levels
        if n_topics not in levels:
            listed = ", ".join(map(str, levels))
            raise InputError(f"level= must be one of the levels of the run, {listed}, got {n_topics!r}.")
        if n_topics == levels[0]:
            return run
        return Run(self.store, rows=self.rows, level=n_topics, reading=run)

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

        Parameters
        ----------
        n_words : int, default=10
            Number of words of each topic.

        Returns
        -------
        list of list of FinerTopic
            The finer topics of each topic, in the order of decreasing weight.
        """
        children: list[list[FinerTopic]] = [[] for _ in range(self.fitted.n_topics)]
        finer = self.levels[1 if self.reading is None else self.levels.index(self.fitted.n_topics) + 1 :]
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

    @property
    def hidden_columns(self) -> list[int]:
        """Columns of the hidden words."""
        hidden = set(self.info.hidden_words)
        return [column for column, word in enumerate(self.vocabulary) if word in hidden] if hidden else []

    @cached_property
    def typical(self) -> TopicDocuments:
        """Fit, most typical documents and label shares of each topic."""
        return self.topic_documents(N_RANKED)

    def topic_documents(self, n_documents: int) -> TopicDocuments:
        """Return the fit, the most typical documents and the label shares of each topic.

        Parameters
        ----------
        n_documents : int
            Number of documents per topic.

        Returns
        -------
        TopicDocuments
            One entry for each topic.
        """
        documents, parts = self.model.documents_, self.count_parts()
        return topic_documents(self.fitted, documents, parts, n_documents, self.label_numbers, self.groups)

    # methods for users

    def topics(self, n_words: int = 10) -> TopicTable:
        """Return a table of the topics: id, name, weight, fit and words.

        Parameters
        ----------
        n_words : int, default=10
            Number of words of each topic.

        Returns
        -------
        TopicTable
            One row per topic; `to_polars()` and `to_pandas()` convert it.
        """
        words = self.topic_words(n_words)
        rows = zip(self.topic_titles, self.fitted.topic_weights.tolist(), self.typical.fit.tolist(), words, strict=True)
        notes = junk_notes(self.junk, self.topic_words(WORDS_REMOVED)) if self.junk else []
        return TopicTable(tuple(Topic(k, *row) for k, row in enumerate(rows)), tuple(notes), frozenset(self.junk))

    def transform(self, source: Any, *, verbose: int = 0, **reading: Any) -> Any:
        """Return the topic weights of new documents. The run does not change.

        Parameters
        ----------
        source : list of str, data frame, path, or other source
            Documents, as in `polyseme.fit`.
        verbose : int, default=0
            Whether to show progress.
        **reading : object
            Columns and format of the source, as in `polyseme.fit`: text, id, title, label, time, format, encoding,
            sample, categories, noise, uncategorized.

        Returns
        -------
        polars.DataFrame
            Columns id, title, label, time, source, tokens (number of words that the run knows), topic (the main topic),
            name (its name, or its first words), share (its weight), reason, and the weight of each topic, such as
            "0 game, team, season". The weights are those of the posterior under the prior of P(z|d) that the model has
            learned, so a few words do not make a topic certain. A text without any known word has no topic and no
            weights, and `reason` says why. With topics tied to labels (`labels_from`), the column predicted has the
            predicted label and the column probability its probability.
        """
        frame, counts = self.count(open_source(source, **reading), reporter(verbose))
        return self.weigh(frame, counts)

    def weigh(self, frame: Any, counts: Any) -> Any:
        """Return the table of `transform` for documents that `count` has counted.

        Parameters
        ----------
        frame : polars.DataFrame
            Metadata.
        counts : sparse array
            Counts.

        Returns
        -------
        polars.DataFrame
            Metadata and topic weights.
        """
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
        table = add_topic_columns(
            frame.select(_TEXT_COLUMNS), _tokens(counts), weights, [f"{k} {title}" for k, title in enumerate(titles)]
        )
        table = table.with_columns(**self.model.predicted(weights))
        columns = [name for name in table.columns if name not in (*_TEXT_COLUMNS, "tokens")]
        known = pl.lit(pl.Series(~unknown))
        table = table.with_columns(pl.when(known).then(pl.col(name)).otherwise(None).alias(name) for name in columns)
        position = table.columns.index("topic") + 1
        table = table.insert_column(position, pl.Series("name", main_titles, dtype=pl.String))
        return table.insert_column(position + 2, pl.Series("reason", reasons, dtype=pl.String))

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        method: str = "bm25+topics",
        like: bool = False,
        label: Any = None,
        topic: Any = None,
        since: Any = None,
        until: Any = None,
        exclude: Any = None,
    ) -> Any:
        """Return the best documents for a query. The first search stores an index in the folder of the run.

        At a finer level (`level`) the topics of this level complement the words, and `topic` is one of them.

        Parameters
        ----------
        query : str
            Words to search for or, with `like`, the id of a document. A document must contain the parts of the query in
            quotation marks exactly, apart from upper and lower case; this needs the texts of the run.
        k : int, default=10
            Number of documents. Filters are applied before the best documents are chosen.
        method : str, default="bm25+topics"
            Method of `polyseme.retrieval.SearchIndex.search`.
        like : bool, default=False
            Whether `query` is the id of a document, to find documents similar to it.
        label : str or list of str, default=None
            Find only documents with this label, or with one of these labels.
        topic : int, str or a list of them, default=None
            Find only documents with this main topic, or with one of these topics, given by number or name.
        since : str, int or date, default=None
            Find only documents from the first day of this date on: a year, "1871-06" or "1871-06-30". The time of a
            document is read in the same way, so a document with only a year is dated January 1. Times of day and time
            zones are ignored.
        until : str, int or date, default=None
            Find only documents up to the last day of this date.
        exclude : str or list of str, default=None
            Find only documents without these words, in any of their forms.

        Returns
        -------
        polyseme.retrieval.Results
            Documents with scores, snippets, and the words that explain the scores.
        """
        from polyseme.runs.searching import search_run

        return search_run(
            self.path, query, k, method=method, like=like, label=label, topic=topic, since=since, until=until,
            exclude=exclude, level=None if self.reading is None else self.fitted.n_topics, report=SilentReporter(),
            trust_pattern=self.store.trust_pattern,
        )  # fmt: skip

    def evaluate(
        self, source: Any = None, *, n_words: int = 10, smoothing: float = 0.01, verbose: int = 0, **reading: Any
    ) -> Any:
        """Measure the quality of the topics: perplexity, coherence, diversity, fit, agreement with labels.

        Parameters
        ----------
        source : list of str, data frame, path, other source or None, default=None
            Documents to evaluate on, as in `polyseme.fit`. None: the documents of the run. The model was fitted to
            them, so their perplexities are too low.
        n_words : int, default=10
            Number of top words of each topic.
        smoothing : float, default=0.01
            Weight of the unigram in the completion perplexity.
        verbose : int, default=0
            Whether to show progress.
        **reading : object
            Columns and format of the source, as in `polyseme.fit`.

        Returns
        -------
        polyseme.metrics.Evaluation
            All measures.
        """
        if source is None:
            run = self.in_memory()
            return run.measure(run.counts, run.labels, n_words=n_words, smoothing=smoothing)
        frame, counts = self.count(open_source(source, **reading), reporter(verbose))
        labels = [label or "" for label in frame["label"].to_list()]
        return self.measure(counts, labels, n_words=n_words, smoothing=smoothing)

    def measure(self, counts: Any, labels: Sequence[str], **settings: Any) -> Any:
        """Return the evaluation on documents that `count` has counted.

        Parameters
        ----------
        counts : sparse array
            Counts.
        labels : sequence of str
            Label of each document; "" if it has none.
        **settings : object
            Other arguments of `polyseme.metrics.evaluate`.

        Returns
        -------
        polyseme.metrics.Evaluation
            All measures.
        """
        from polyseme.metrics.evaluation import evaluate

        return evaluate(self.model, counts, main_labels(labels), **settings)

    def explore(self, path: str | PathLike[str] | None = None, *, text: str = "excerpt") -> Any:
        """Write the explorer page: one HTML file that needs no server and no network.

        Parameters
        ----------
        path : str, PathLike or None, default=None
            File to write. None: nothing is written, and the page is returned for display in a notebook.
        text : {"excerpt", "full", "none"}, default="excerpt"
            How much of each document's text the page contains. It always contains the word counts.

        Returns
        -------
        Path or NotebookPage
            The file, or the page.
        """
        from polyseme.explore import show_page, write_page

        if path is None:
            return show_page(self.in_memory(), text=text)
        write_page(self.in_memory(), path, text)
        return Path(path)

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> Run:
        """Write a copy of the run to a folder, atomically.

        Parameters
        ----------
        folder : str or PathLike
            Folder to write.
        overwrite : bool, default=False
            Whether to replace an existing run.

        Returns
        -------
        Run
            The copy.
        """
        from polyseme.runs.write import copy_run

        return copy_run(self, Path(folder), overwrite=overwrite)

    def update(self, source: Any, *, refit: bool = False, verbose: int = 0, **reading: Any) -> Run:
        """Add documents to the run and compute their topic weights.

        The vocabulary does not change. Documents that are already in the run (same id in the same file) are skipped.

        Parameters
        ----------
        source : list of str, data frame, path, or other source
            Documents, as in `polyseme.fit`.
        refit : bool, default=False
            Whether to fit the topics again to all documents. By default the topics do not change.
        verbose : int, default=0
            Whether to show progress.
        **reading : object
            Columns and format of the source, as in `polyseme.fit`.

        Returns
        -------
        Run
            The run with the new documents, in the same folder. This object still describes the run before the update.
        """
        from polyseme.runs.changes import update_run

        if self.reading is not None:
            raise InputError(f"update changes all levels of a run: call it for run.level({self.levels[0]}).")
        reader = open_source(source, **reading)
        return update_run(self.path, reader, refit=refit, report=reporter(verbose), like=self).run

    def edit(
        self,
        *,
        rename: Mapping[int, str] | None = None,
        merge: Sequence[Sequence[int]] = (),
        delete: Sequence[int] = (),
        ban: Sequence[str] = (),
        refit: bool = False,
        verbose: int = 0,
    ) -> Run:
        """Name, merge or delete topics, or hide words.

        Topics are given by their numbers before the edit. Merging and deleting topics changes the numbers of later
        topics. Topics of a finer level can only be renamed. run.json lists all edits.

        Parameters
        ----------
        rename : mapping of int to str or None, default=None
            Names by topic; an empty name removes the name.
        merge : sequence of sequences of int, default=()
            Groups of topics to merge into one.
        delete : sequence of int, default=()
            Topics to delete.
        ban : sequence of str, default=()
            Words to hide in all lists of words and all names. They stay in the counts and in the model unless `refit`
            is set.
        refit : bool, default=False
            Whether to fit again afterwards, starting from the edited topics, and without the words that were banned in
            this edit or before. A name moves to the new topic with the most similar words.
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        Run
            The edited run, in the same folder. This object still describes the run before the edit.
        """
        from polyseme.runs.changes import edit_run

        level = None if self.reading is None else self.fitted.n_topics
        edit = Edit.of(rename, merge, delete, ban, refit=refit, level=level)
        run = edit_run(self.path, edit, report=reporter(verbose), like=self.reading or self).run
        return run if level is None else run.level(level)

    def name_topics(self, namer: Namer, *, overwrite: bool = False, verbose: int = 0) -> Run:
        """Name topics with a function, a dict or a list, for example a function that calls a language model.

        Each name that a function returns is stored in run.json at once, so Ctrl-C does not lose it; the same call then
        continues with the topics that have no given name. If the function raises an exception for a topic, or returns
        anything but a name (one line of at most 80 characters without markup), there is a warning and the topic keeps
        its old name.

        Parameters
        ----------
        namer : callable, mapping of int to str, or sequence of str
            A function ``namer(words, documents, *, parent, siblings) -> str`` of the topic's ten words, the beginnings
            of its three most typical documents, the name of the topic above it (None at the reading level) and the
            names of the other topics below that one. Or names by topic; or one name for each topic, None to keep its
            old name. An empty name in a mapping or sequence removes the name that was given before.
        overwrite : bool, default=False
            Whether to call a function also for topics that have a given name.
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        Run
            The run with the names, in the same folder. This object still has the old names.
        """
        from polyseme.runs.changes import name_run

        level = None if self.reading is None else self.fitted.n_topics
        return name_run(
            self.path, namer, level=level, overwrite=overwrite, report=reporter(verbose), like=self.reading or self
        )

    def naming_prompt(self, n_words: int = 10, n_documents: int = 3) -> str:
        """Return a prompt that asks a language model for names of the topics.

        Parameters
        ----------
        n_words : int, default=10
            Number of words of each topic.
        n_documents : int, default=3
            Number of typical documents of each topic. The prompt contains their beginnings.

        Returns
        -------
        str
            The prompt. ``polyseme edit RUN --names FILE`` and `polyseme.runs.parse_names` read the answer.
        """
        return naming_prompt(self, n_words, n_documents)

    # methods for other modules

    def count(self, reader: Reader, report: Reporter | None = None) -> tuple[Any, Any]:
        """Read documents and count the words of the run in them.

        Parameters
        ----------
        reader : Reader
            The documents.
        report : Reporter or None, default=None
            Receiver of the progress and of notes about documents that could not be read.

        Returns
        -------
        tuple of polars.DataFrame and sparse array
            Metadata and counts of the documents.
        """
        report = report or SilentReporter()
        rows: list[Any] = []

        def texts() -> Iterator[str]:
            for document in reading_progress(reader, update):
                rows.append(metadata(document))
                yield document.text

        with report.stage("Reading and counting", unit="MB", size=1e6) as update:
            counts = self.vectorizer.transform(texts())
        for note in reader_notes(reader):
            report.note(note)
        import polars as pl

        frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
        return frame, self.without_banned(counts)

    def without_banned(self, counts: Any) -> Any:
        """Return counts without the words that were removed with `edit`.

        Parameters
        ----------
        counts : sparse array
            Counts.

        Returns
        -------
        sparse array
            Counts with zeros for these words.
        """
        banned = columns_of(self.info.banned_words, self.vocabulary)
        return without_words(counts, np.asarray(banned)) if banned else counts

    def in_memory(self) -> Run:
        """Return this run, or a random sample of it if it is too large for memory.

        Returns
        -------
        Run
            This object, or a sample.
        """
        return self if self.fits_in_memory else self.sample(SAMPLE_SIZE)

    def sample(self, size: int, seed: int = 0) -> Run:
        """Return a run of some documents, drawn at random.

        Parameters
        ----------
        size : int
            Number of documents.
        seed : int, default=0
            Seed of the random numbers.

        Returns
        -------
        Run
            The same topics with fewer documents, in memory.
        """
        if self.reading is not None:
            return self.reading.sample(size, seed).level(self.fitted.n_topics)
        rows = sample_rows(self.n_documents, size, seed)
        return Run(self.store, rows=rows if self.rows is None else self.rows[rows])

    @property
    def fits_in_memory(self) -> bool:
        """Whether the counts and topic weights are few enough to load all of them."""
        if self.rows is not None or "counts" in vars(self.reading or self):
            return True
        nonzeros = sum(entry.nonzeros for entry in self.shards.manifest.shards)
        return nonzeros + self.n_documents * self.fitted.n_topics <= MAX_NUMBERS_IN_MEMORY

    def _check_fits_in_memory(self) -> None:
        if not self.fits_in_memory:
            raise InputError(
                f"{self.path} has {self.n_documents:,} documents, too many to load into memory at once: use a sample "
                "(polyseme fit --sample, or Run.sample)."
            )


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
    """A topic of a finer level, below another topic.

    Attributes
    ----------
    level : int
        Number of topics of its level.
    topic : int
        Its number at this level.
    name : str
        Its name.
    weight : float
        P(z).
    parent_share : float
        Share of its tokens that the topic above it has.
    words : list of str
        Its words.
    children : list of FinerTopic
        Topics of the next finer level that belong to it.
    """

    level: int
    topic: int
    name: str
    weight: float
    parent_share: float
    words: list[str]
    children: list[FinerTopic]


def level_folder(n_topics: int) -> str:
    """Return the folder of a finer level in a run, with a slash at the end."""
    return f"{LEVELS_FOLDER}/{n_topics}/"


def level_table(n_topics: int) -> str:
    """Return the name of the table of the topics of a finer level."""
    return f"topics_{n_topics}.csv"


def open_run(path: str | PathLike[str], *, trust_pattern: bool = False) -> Run:
    """Open a run folder.

    Parameters
    ----------
    path : str or PathLike
        Folder that `polyseme.fit` or ``polyseme fit`` wrote.
    trust_pattern : bool, default=False
        Whether the token pattern of the run may be any regular expression, which can take exponential time (see
        `Vectorizer.from_dict`). Use True only for runs that you trust.

    Returns
    -------
    Run
        The run; its files are read when they are first used.

    Raises
    ------
    InputError
        If the folder is not a run.
    ModelFileError
        If a file is missing or damaged, or if the run was written by another version of polyseme.
    """
    path = Path(path)
    store = RunStore.open(path, trust_pattern=trust_pattern)
    store.files.check_sizes(skip=output_only_files(store.files))
    return Run(store)


def reporter(verbose: int) -> Reporter:
    """Return the reporter of a call with this verbosity."""
    if not verbose:
        return SilentReporter()
    from rich.console import Console

    return TerminalReporter(Console(stderr=True, markup=False, emoji=False, highlight=False))


def reading_progress(reader: Reader, update: Any) -> Iterator[Any]:
    """Iterate over the documents of a reader, and update a progress bar."""
    total = reader.total_bytes
    for number, document in enumerate(reader, start=1):
        if number % _UPDATE_EVERY == 0:
            update(reader.bytes_read, total, f"{number:,} documents, {reader.bytes_read / 1e6:,.0f} MB")
        yield document


def reader_notes(reader: Reader) -> Iterator[str]:
    """Yield sentences about how documents were read, left out, not read, or read with a warning, with examples."""
    for note, count in reader.notes.most_common(_EXAMPLES):
        yield f"{note}." if count == 1 else f"{note} ({count:,} files)."
    if len(reader.notes) > _EXAMPLES:
        yield f"Files of {len(reader.notes) - _EXAMPLES:,} other kinds were read."
    if reader.dropped:
        dropped = ", ".join(f"{reason} ({count:,})" for reason, count in reader.dropped.items())
        yield f"Left out: {dropped}."
    for kind, count in reader.problems.counts.items():
        examples = [problem for problem in reader.problems if problem.kind == kind][:_EXAMPLES]
        heading = "Read with a warning" if kind in REMARKS else "Not read"
        yield f"{heading}: {kind} ({count:,})"
        yield from (f"  {problem}" for problem in examples)
        if count > len(examples):
            yield f"  and {count - len(examples):,} more"


def main_labels(labels: Sequence[str]) -> list[str]:
    """Return one label per document. Of several labels ("a; b") choose the most frequent one, of ties the first."""
    split = [[part for part in label.split("; ") if part] for label in labels]
    documents = Counter(part for parts in split for part in set(parts))
    return [max(parts, key=lambda part: documents[part]) if parts else "" for parts in split]


def sample_rows(n_documents: int, size: int, seed: int) -> Array:
    """Draw `size` rows without replacement and sort them. Return all rows if there are at most `size`."""
    if n_documents <= size:
        return np.arange(n_documents)
    return np.sort(np.random.default_rng(seed).choice(n_documents, size, replace=False, shuffle=False))


def take_counts(shards: DiskCorpus, rows: Array | None = None) -> Any:
    """Return the counts of some documents as integers, CSR. `rows` must be increasing; None: all documents."""
    if rows is None:
        rows = np.arange(shards.shape[0])
    parts, start = [], 0
    for part in shards:
        first, last = np.searchsorted(rows, [start, start + part.shape[0]])
        parts.append(_as_integers(sp.csr_array(part)[rows[first:last] - start]))
        start += part.shape[0]
    return sp.csr_array(sp.vstack(parts, format="csr"))


def add_topic_columns(documents: Any, tokens: Floats, doc_topic: Array, names: Sequence[str] | None = None) -> Any:
    """Add columns to a polars frame of documents: tokens, main topic, its share, and P(z|d) of every topic.

    `names` are the names of the columns of P(z|d); None: topic_0, topic_1 ...
    """
    import polars as pl

    names = names or [f"topic_{k}" for k in range(doc_topic.shape[1])]
    main = doc_topic.argmax(axis=1)
    return documents.with_columns(
        pl.Series("tokens", tokens.astype(np.int64)),
        pl.Series("topic", main.astype(np.int32)),
        pl.Series("share", doc_topic[np.arange(len(main)), main]),
        *[pl.Series(name, np.ascontiguousarray(doc_topic[:, k])) for k, name in enumerate(names)],
    )


def columns_of(words: Sequence[str], vocabulary: Sequence[str]) -> list[int]:
    """Return the columns of words. Raise InputError if the vocabulary does not have one of them."""
    column_of = {word: column for column, word in enumerate(vocabulary)} if words else {}
    unknown = [word for word in words if word not in column_of]
    if unknown:
        raise InputError(f"ban=: the run has no word {unknown[0]!r}; write words as its topics show them.")
    return sorted({column_of[word] for word in words})


def _tokens(counts: Any) -> Floats:
    return np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()


def _of_documents(model: Any, rows: Array) -> Any:
    """Return a copy of the model with some of its training documents."""
    model = copy(model)
    model.documents_ = model.documents_.take(rows)
    return model


def _as_integers(counts: Any) -> Any:
    return sp.csr_array((counts.data.astype(np.int32), counts.indices, counts.indptr), counts.shape)
