"""`Run`: a folder with topics and documents, which `polyseme.fit` and ``polyseme fit`` write.

Files are read when they are first used, and checked against the manifest in run.json. The topics of the reading level,
the level of the fit, are those of `Run.view`; `Run.level` and `Run.sample` return other views of the same open run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from polyseme.errors import InputError
from polyseme.kernels import Array
from polyseme.layout.places import Places
from polyseme.metrics.words import TopicTable
from polyseme.progress import reporter
from polyseme.runs.corpus import RunCorpus
from polyseme.runs.info import Edit, Mark, RunInfo
from polyseme.runs.names import Namer
from polyseme.runs.quotes import TypicalDocument
from polyseme.runs.store import RunStore, output_only_files
from polyseme.runs.view import TopicView
from polyseme.text.readers.sources import open_source
from polyseme.text.vectorizer import Vectorizer

if TYPE_CHECKING:
    import polars as pl
    import scipy.sparse as sp

    from polyseme.estimators import NMF
    from polyseme.estimators.base import TopicEstimator
    from polyseme.explore.page import NotebookPage
    from polyseme.metrics.evaluation import Evaluation
    from polyseme.retrieval.queries import Results
    from polyseme.uncertainty.bootstrap import Bootstrap
    from polyseme.uncertainty.effects import Effects
    from polyseme.uncertainty.groups import GroupComparison
    from polyseme.uncertainty.time import Timeline


class Run:
    """Topics and documents in a folder: the result of `polyseme.fit` and of `polyseme.open_run`.

    Parameters
    ----------
    store : RunStore
        The open folder. A run that was fitted without an output has a temporary folder, which is removed with the
        object; `save` writes it to another folder.

    Examples
    --------
    >>> import polyseme
    >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
    >>> run = polyseme.fit(texts, 2, language="english")
    >>> run.transform(["a bass guitar"]).height
    1
    >>> [hit.row for hit in run.search("bass guitar", 1)]
    [3]
    """

    def __init__(self, store: RunStore) -> None:
        self.store, self.view = store, TopicView(RunCorpus(store))

    def __repr__(self) -> str:
        return repr(self.view)

    def _repr_html_(self) -> str:
        return self.view._repr_html_()

    @property
    def path(self) -> Path:
        """Folder of the run."""
        return self.store.path

    @property
    def info(self) -> RunInfo:
        """Settings, versions, seed, timings, names of topics, edits: the content of run.json."""
        return self.store.info

    # documents

    @property
    def documents(self) -> pl.DataFrame:
        """Polars frame with metadata (id, title, ...), tokens, topic, name, share, topic_0, topic_1 ..."""
        return self.view.documents

    @property
    def counts(self) -> sp.csr_array:
        """Counts that the model was fitted to (documents x words, CSR)."""
        return self.view.corpus.counts

    @property
    def texts(self) -> list[str] | None:
        """Full texts, or None if the run does not store texts."""
        return self.view.corpus.texts

    @property
    def vectorizer(self) -> Vectorizer:
        """Vectorizer that counted the documents."""
        return self.store.vectorizer

    @property
    def vocabulary(self) -> Sequence[str]:
        """The word of each column."""
        return self.store.vocabulary

    # topics

    @property
    def model(self) -> TopicEstimator | NMF:
        """Fitted estimator. Arrays with a row per document may be memory-mapped."""
        return self.view.model

    @property
    def doc_topic(self) -> Array:
        """P(z|d) of the documents."""
        return self.view.doc_topic

    @property
    def places(self) -> Places:
        """Coordinates of the documents on the map (documents x 2), from 0 to 65535.

        Documents with similar topics and words are close. `update` does not move documents.
        """
        return self.view.places

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

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> len(run.topics(3)), sorted(run.topics(3).to_polars().columns)
        (2, ['fit', 'id', 'name', 'weight', 'words'])
        """
        return self.view.topics(n_words)

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

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> sorted(words[0] for words in run.topic_words(1))
        ['cheese', 'drums']
        """
        return self.view.topic_words(n_words)

    def typical_documents(self, n_documents: int = 2) -> list[list[TypicalDocument]]:
        """Return the most typical documents of each topic, with quotes.

        Parameters
        ----------
        n_documents : int, default=2
            Number of documents of each topic.

        Returns
        -------
        list of lists of TypicalDocument
            Documents of each topic, the most typical first, with row, id, title, share and quote: the sentence that
            the topic explains best. Fewer if too few documents have the topic.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> [[document.row for document in documents] for documents in run.typical_documents(1)]
        [[2], [1]]
        """
        return self.view.typical_documents(n_documents)

    @property
    def topic_titles(self) -> list[str]:
        """Name of each topic: the given one, or the one made of phrases and words of the documents."""
        return self.view.topic_titles

    @property
    def junk(self) -> dict[int, Mark]:
        """Topics that do not describe a subject, such as mail headers and boilerplate, with the reason; listed last."""
        return self.view.junk

    @property
    def hidden_topics(self) -> frozenset[int]:
        """Topics that an edit has hidden from lists, maps and names."""
        return self.view.hidden_topics

    @property
    def levels(self) -> list[int]:
        """Numbers of topics of all levels: the reading level first, then the finer ones."""
        return self.view.levels

    def level(self, n_topics: int) -> TopicView:
        """Return the topics of one of the levels; documents and counts are the same.

        Parameters
        ----------
        n_topics : int
            Number of topics of the level, one of `levels`.

        Returns
        -------
        TopicView
            The topics of this level. Its attributes and methods `model`, `doc_topic`, `topics`, `topic_words`,
            `topic_titles`, `typical_documents`, `documents`, `transform`, `search`, `evaluate`, `explore`,
            `report` and `naming_prompt` are those of a run; `parents` has the topic of the level above to which each
            topic belongs, `corpus` the counts and texts.

        Raises
        ------
        InputError
            If there is no such level.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> run.level(run.levels[0]).doc_topic.shape
        (4, 2)
        """
        return self.view.level(n_topics)

    def sample(self, size: int, random_state: Any = 0) -> TopicView:
        """Return the same topics with some of the documents, drawn at random.

        Parameters
        ----------
        size : int
            Number of documents.
        random_state : int, RandomState or Generator, default=0
            Seed of the random numbers.

        Returns
        -------
        TopicView
            The topics with fewer documents, as `level` returns them.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> run.sample(3).documents.height
        3
        """
        return self.view.sample(size, random_state)

    # use

    def transform(self, source: Any, *, verbose: int = 0, **reading: Any) -> pl.DataFrame:
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

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> table = run.transform(["bread and wine", "zzz"])
        >>> table["tokens"].to_list(), table["reason"].to_list()
        ([2, 0], [None, "no word of the text is in the run's vocabulary"])
        """
        return self.view.transform(source, verbose=verbose, **reading)

    def search(
        self,
        query: str,
        n_documents: int = 10,
        *,
        method: str = "bm25+topics",
        like: bool = False,
        label: Any = None,
        topic: Any = None,
        since: Any = None,
        until: Any = None,
        exclude: Any = None,
    ) -> Results:
        """Return the best documents for a query. The first search stores an index in the folder of the run.

        Parameters
        ----------
        query : str
            Words to search for or, with `like`, the id of a document. A document must contain the parts of the query in
            quotation marks exactly, apart from upper and lower case; this needs the texts of the run. `comput*` stands
            for all words that begin so, and `-word` or `NOT word` excludes documents with the word.
        n_documents : int, default=10
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
        polyseme.typing.Results
            Documents with scores, snippets, and the words that explain the scores.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> [hit.title for hit in run.search("guitar -bass")]
        ['3']
        """
        return self.view.search(
            query,
            n_documents,
            method=method,
            like=like,
            label=label,
            topic=topic,
            since=since,
            until=until,
            exclude=exclude,
        )

    def evaluate(
        self, source: Any = None, *, n_words: int = 10, smoothing: float = 0.01, verbose: int = 0, **reading: Any
    ) -> Evaluation:
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
        polyseme.typing.Evaluation
            All measures.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> evaluation = run.evaluate()
        >>> bool(evaluation.perplexity.perplexity < evaluation.perplexity.unigram_perplexity)
        True
        """
        return self.view.evaluate(source, n_words=n_words, smoothing=smoothing, verbose=verbose, **reading)

    def bootstrap(
        self,
        n_resamples: int = 100,
        *,
        clusters: Any = None,
        level: float = 0.95,
        random_state: int = 0,
        verbose: int = 0,
    ) -> Bootstrap:
        """Return intervals for the topics, their words and their weights, from fits to resampled documents.

        Parameters
        ----------
        n_resamples : int, default=100
            Number of resamples.
        clusters : str or sequence, default=None
            Column of the run ("label", "source" ...) or values that say which documents belong together. Whole clusters
            are drawn; a document without a value is a cluster of its own. None: every document is drawn on its own.
        level : float, default=0.95
            Level of the intervals.
        random_state : int, default=0
            Seed of the random numbers.
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        polyseme.typing.Bootstrap
            Intervals; see `polyseme.uncertainty.bootstrap`.
        """
        return self.view.bootstrap(
            n_resamples, clusters=clusters, level=level, random_state=random_state, verbose=verbose
        )

    def over_time(
        self,
        every: str | None = None,
        *,
        clusters: Any = None,
        n_resamples: int = 100,
        level: float = 0.95,
        random_state: int = 0,
        verbose: int = 0,
    ) -> Timeline:
        """Return the shares of the topics by calendar period, with intervals, and how the words of topics change.

        Parameters
        ----------
        every : {"decade", "year", "quarter", "month", "week", "day"} or None, default=None
            Length of the periods. None: the longest one that gives at least twelve periods.
        clusters : str or sequence, default=None
            Documents that belong together, as in `bootstrap`.
        n_resamples : int, default=100
            Number of resamples.
        level : float, default=0.95
            Level of the intervals.
        random_state : int, default=0
            Seed of the random numbers.
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        polyseme.typing.Timeline
            Shares with intervals, changes between the earlier and the later half of the documents, and words.
        """
        return self.view.over_time(
            every, clusters=clusters, n_resamples=n_resamples, level=level, random_state=random_state, verbose=verbose
        )

    def compare_groups(
        self,
        by: Any = "label",
        *,
        most: int = 6,
        clusters: Any = None,
        n_resamples: int = 100,
        level: float = 0.95,
        random_state: int = 0,
        verbose: int = 0,
    ) -> GroupComparison:
        """Compare groups of documents: how much of each topic they have, and which words they use within a topic.

        Parameters
        ----------
        by : str or sequence, default="label"
            Column of the run ("label", "source" ...), or the group of each document; None, NaN or "" is no group. A
            document with several labels is in several groups.
        most : int, default=6
            Compare the groups with the most documents, at most this many; each needs at least ten documents.
        clusters : str or sequence, default=None
            Documents that belong together, as in `bootstrap`.
        n_resamples : int, default=100
            Number of resamples.
        level : float, default=0.95
            Level of the intervals.
        random_state : int, default=0
            Seed of the random numbers.
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        polyseme.typing.GroupComparison
            Shares with intervals, differences with p-values and false discovery rates, and words.
        """
        return self.view.compare_groups(
            by, most=most, clusters=clusters, n_resamples=n_resamples, level=level, random_state=random_state,
            verbose=verbose,
        )  # fmt: skip

    def effects(
        self,
        formula: str,
        data: Any = None,
        *,
        clusters: Any = None,
        n_resamples: int = 100,
        level: float = 0.95,
        random_state: int = 0,
        verbose: int = 0,
    ) -> Effects:
        """Return how the shares of topics depend on metadata: a regression with a formula.

        Parameters
        ----------
        formula : str
            Formula such as "~ label + s(time)"; see `polyseme.uncertainty.effects`. Columns of the run are label, time
            (in years, such as 2008.5), source, id, title and tokens.
        data : polars or pandas data frame, mapping of str to sequence, or None, default=None
            Other columns: a table with the column id, or with a row for each document.
        clusters : str or sequence, default=None
            Column, or values, that say which documents belong together, as in `bootstrap`.
        n_resamples : int, default=100
            Number of resamples.
        level : float, default=0.95
            Level of the intervals.
        random_state : int, default=0
            Seed of the random numbers.
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        polyseme.typing.Effects
            Coefficients with intervals, tests of the terms, predicted shares and comparisons.
        """
        return self.view.effects(
            formula, data, clusters=clusters, n_resamples=n_resamples, level=level, random_state=random_state,
            verbose=verbose,
        )  # fmt: skip

    @overload
    def explore(self, path: None = None, *, text: str = "auto", intervals: int = 0) -> NotebookPage: ...
    @overload
    def explore(self, path: str | PathLike[str], *, text: str = "auto", intervals: int = 0) -> Path: ...
    def explore(
        self, path: str | PathLike[str] | None = None, *, text: str = "auto", intervals: int = 0
    ) -> Path | NotebookPage:
        """Write the explorer page: one HTML file that needs no server and no network.

        Parameters
        ----------
        path : str, PathLike or None, default=None
            File to write. None: nothing is written, and the page is returned for display in a notebook.
        text : {"auto", "full", "excerpt", "none"}, default="auto"
            How much of each document's text the page contains: "auto" is "full" if all texts have less than 5 MB, else
            "excerpt". The page always contains the word counts, and quotes of typical documents except with "none".
        intervals : int, default=0
            Number of fits to resampled documents from which the page shows 95% intervals of shares by label and over
            time, as `compare_groups` and `over_time` compute them; 0 for none.

        Returns
        -------
        Path or NotebookPage
            The file, or the page.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> page = run.explore("page.html")
        """
        return self.view.explore(path, text=text, intervals=intervals)

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write a report to hand over: the documents, a chart, the topics with quotes, labels, time, what to cite.

        Parameters
        ----------
        path : str or PathLike
            File to write: .docx (needs the extra ``report``), .html or .md.
        title : str or None, default=None
            Title, such as the question that the report answers. None: the title of the run.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> run.report("report.md")
        PosixPath('report.md')
        """
        return self.view.report(path, title=title)

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
            The prompt. ``polyseme edit RUN --names FILE`` and `name_topics` read the answer.
        """
        return self.view.naming_prompt(n_words, n_documents)

    # changes

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

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> saved = run.save("food-and-music")
        >>> polyseme.open_run("food-and-music").doc_topic.shape
        (4, 2)
        """
        from polyseme.runs.write import copy_run

        return copy_run(self, Path(folder), overwrite=overwrite)

    def update(
        self, source: Any, *, refit: bool = False, new_topics: str | int | None = None, verbose: int = 0, **reading: Any
    ) -> Run:
        """Add documents to the run and compute their topic weights.

        The vocabulary does not change. Documents that are already in the run (same id in the same file) are skipped.

        Parameters
        ----------
        source : list of str, data frame, path, or other source
            Documents, as in `polyseme.fit`.
        refit : bool, default=False
            Whether to fit the topics again to all documents. By default the topics do not change.
        new_topics : "auto", int or None, default=None
            Number of topics to add for what the topics of the run do not explain in the new documents. "auto" tests
            whether there is anything new, and chooses the number; the test finds a topic in documents without a new
            one with a probability of at most 0.001. The other topics keep their numbers, names and words.
            `info.updates[-1]` says which topics were added, from which documents, and which topics have faded.
        verbose : int, default=0
            Whether to show progress.
        **reading : object
            Columns and format of the source, as in `polyseme.fit`.

        Returns
        -------
        Run
            The run with the new documents, in the same folder. This object still describes the run before the update.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> run = run.update(["wine and bread"])
        >>> run.documents.height
        5
        """
        from polyseme.runs.update import update_run

        reader = open_source(source, **reading)
        return update_run(
            self.path, reader, refit=refit, new_topics=new_topics, report=reporter(verbose), caller=self
        ).run

    def edit(
        self,
        *,
        rename: Mapping[int, str] | None = None,
        merge: Sequence[Sequence[int]] = (),
        delete: Sequence[int] = (),
        hide: Sequence[int] = (),
        ban: Sequence[str] = (),
        refit: bool = False,
        level: int | None = None,
        file: str | PathLike[str] | None = None,
        dry_run: bool = False,
        verbose: int = 0,
    ) -> Run:
        """Name, merge, delete or hide topics, or hide words. `undo` restores the run.

        Topics are given by their numbers before the edit. Merging and deleting topics changes the numbers of later
        topics. Topics of a finer level can only be renamed. run.json lists all edits.

        Parameters
        ----------
        rename : mapping of int to str or None, default=None
            Names by topic; an empty name removes the name.
        merge : sequence of sequences of int, default=()
            Groups of topics to merge into one. If some of them have given names, and not all the same one, `rename`
            must name one of them, and the merged topic gets this name.
        delete : sequence of int, default=()
            Topics to delete.
        hide : sequence of int, default=()
            Topics to leave out of lists, maps, pictures, reports and the explorer page. The model keeps them.
        ban : sequence of str, default=()
            Words to hide in all lists of words and all names. They stay in the counts and in the model unless `refit`
            is set.
        refit : bool, default=False
            Whether to fit again afterwards, starting from the edited topics, and without the words that were banned in
            this edit or before. A name moves to the new topic with the most similar words.
        level : int or None, default=None
            Number of topics of the finer level whose topics are renamed. None: the reading level.
        file : str, PathLike or None, default=None
            File with edits that the explorer page has exported; `refit`, `dry_run` and `verbose` can be added to it.
        dry_run : bool, default=False
            Whether to leave the run as it is, and return the edited run in a temporary folder.
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        Run
            The edited run, in the same folder. This object still describes the run before the edit.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> run = run.edit(rename={0: "first", 1: "second"})
        >>> run.topic_titles
        ['first', 'second']
        """
        from polyseme.runs.edit import edit_run
        from polyseme.runs.edit_files import read_edits

        edit, made_for = Edit.of(rename, merge, delete, ban, hide=hide, refit=refit, level=level), None
        if file is not None:
            if edit != Edit(refit=refit):
                raise InputError("file= contains the edits: give no others, or make them in a second call.")
            edit, made_for = read_edits(file, refit=refit)
        return edit_run(self.path, edit, made_for=made_for, dry_run=dry_run, report=reporter(verbose), caller=self).run

    def undo(self, *, verbose: int = 0) -> Run:
        """Restore the run as it was before the last edit, or before the last call of `name_topics`.

        Parameters
        ----------
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        Run
            The run before the edit, in the same folder.

        Raises
        ------
        InputError
            If there is nothing to undo: only the last edit can be undone, and only until the next update.

        Examples
        --------
        >>> import polyseme
        >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
        >>> run = polyseme.fit(texts, 2, language="english")
        >>> names = run.topic_titles
        >>> run = run.edit(rename={0: "first"}).undo()
        >>> run.topic_titles == names
        True
        """
        from polyseme.runs.edit import undo_run

        return undo_run(self.path, report=reporter(verbose), caller=self)

    def name_topics(
        self, namer: Namer | str, *, overwrite: bool = False, level: int | None = None, verbose: int = 0
    ) -> Run:
        """Name topics with a function, a dict or a list, for example a function that calls a language model.

        Each name that a function returns is stored in run.json at once, so Ctrl-C does not lose it; the same call then
        continues with the topics that have no given name. If the function raises an exception for a topic, or returns
        anything but a name (one line of at most 80 characters without markup), there is a warning and the topic keeps
        its old name.

        Parameters
        ----------
        namer : callable, mapping of int to str, sequence of str, or str
            A function ``namer(words, documents, *, parent, siblings) -> str`` of the topic's ten words, the beginnings
            of its three most typical documents, the name of the topic above it (None at the reading level) and the
            names of the other topics below that one. Or names by topic; or one name for each topic, None to keep its
            old name. An empty name in a mapping or sequence removes the name that was given before. Or the answer of a
            language model to `naming_prompt`: lines such as "0: Space flight", or a JSON object from topics to names.
        overwrite : bool, default=False
            Whether to call a function also for topics that have a given name.
        level : int or None, default=None
            Number of topics of the finer level whose topics are named. None: the reading level.
        verbose : int, default=0
            Whether to show progress.

        Returns
        -------
        Run
            The run with the names, in the same folder. This object still has the old names.
        """
        from polyseme.runs.naming import name_run

        return name_run(self.path, namer, overwrite=overwrite, level=level, report=reporter(verbose), caller=self)


def open_run(path: str | PathLike[str]) -> Run:
    """Open a run folder.

    Parameters
    ----------
    path : str or PathLike
        Folder that `polyseme.fit` or ``polyseme fit`` wrote.

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

    Examples
    --------
    >>> import polyseme
    >>> run = polyseme.fit(["red wine and cheese", "cheese and bread", "bread and red wine"], 1, language="english")
    >>> copy = run.save("wine-run")
    >>> polyseme.open_run("wine-run").documents.height
    3
    """
    path = Path(path)
    store = RunStore.open(path)
    store.files.check_sizes(skip=output_only_files(store.files))
    return Run(store)
