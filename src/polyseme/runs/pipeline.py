"""`polyseme.fit`, the same call as the command ``polyseme fit``: read, count, choose, fit, write."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from polyseme.errors import InputError, SeedWarning
from polyseme.progress import Reporter, pluralize, reporter
from polyseme.runs.choosing import choose_model, choose_topics
from polyseme.runs.corpus import take_counts
from polyseme.runs.counting import read_documents, write_counts
from polyseme.runs.fitting import fit_levels, fit_model
from polyseme.runs.info import RunInfo
from polyseme.runs.names import Namer, check_namer
from polyseme.runs.run import Run
from polyseme.runs.settings import FitSettings
from polyseme.runs.store import CHECKPOINT_FOLDER
from polyseme.runs.write import new_run, version_info
from polyseme.solvers import Checkpoint
from polyseme.text.readers.reader import Reader
from polyseme.text.readers.sources import open_source
from polyseme.utils import RandomStateLike


def fit(
    source: Any,
    n_topics: int | None = None,
    *,
    output: str | PathLike[str] | None = None,
    model: str | None = None,
    seeds: Mapping[str, Sequence[str]] | None = None,
    labels_from: str | None = None,
    background: float = 0.0,
    depth: int | None = None,
    branching: int | None = None,
    levels: str | None = None,
    consensus: bool = False,
    max_iter: int | None = None,
    random_state: RandomStateLike = 0,
    language: str | None = "auto",
    languages: str = "all",
    phrases: bool = False,
    keep_numbers: bool | None = None,
    stop_words: Sequence[str] | None = None,
    min_df: int = 2,
    max_df: float = 0.5,
    text: str | Sequence[str] | None = None,
    id: str | None = None,
    title: str | None = None,
    label: str | None = None,
    time: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    sample: int | None = None,
    categories: Sequence[str] | None = None,
    noise: int = 0,
    uncategorized: bool = False,
    duplicates: str = "keep",
    repeated_lines: str = "all",
    keep_texts: bool = True,
    namer: Namer | None = None,
    page: bool = True,
    page_text: str = "auto",
    shards: bool | None = None,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint: float = 10.0,
    verbose: int = 0,
) -> Run:
    """Fit topics to texts: read and count them, choose the number of topics, fit, and write a run.

    Parameters
    ----------
    source : list of str, data frame, path, or other source
        Texts (a list, a generator), a polars or pandas data frame, a file or folder (str or Path), several of them (a
        list of Path), or documents of `polyseme.text.read`.
    n_topics : int or None, default=None
        Number of topics. None: chosen between 5 and 25 for readable topics (`polyseme.selection.reading_n_topics`).
    output : str, PathLike or None, default=None
        Folder of the run. None: a temporary folder, which is removed with the returned object; `Run.save` copies it to
        another folder.
    model : {"plsa", "lda", "ctm", "hierarchical", "nmf", "mixture"} or None, default=None
        Model to fit. "mixture" has one topic per document. None: "plsa", or "mixture" for at least 500 texts of fewer
        than 8 words on average if it predicts held-out words better; not with `seeds`, `background` or
        ``levels="auto"``.
    seeds : mapping of str to sequence of str or None, default=None
        Words of predefined topics by name: ``{"Sport": ["match", "team"]}``. These topics come first, in this order,
        under these names; the other topics are free. A topic that is not about its words does not get the name, and
        there is a `SeedWarning`, as for words that the documents do not have.
    labels_from : str or None, default=None
        Column with labels to tie topics to (`polyseme.TopicClassifier`): each label gets a topic with its name, a
        document without a label may use all topics, and `Run.transform` predicts labels. `n_topics` larger than the
        number of labels adds free topics.
    background : float, default=0.0
        Share of each text that a background of common words explains (PLSA only).
    depth : int or None, default=None
        Depth of the tree of a hierarchical model.
    branching : int or None, default=None
        Number of children of each node of a hierarchical model.
    levels : {"auto", "none"} or None, default=None
        Whether to make finer levels below these topics: twice as many topics each, up to 160, as long as they predict
        held-out documents better (`Run.levels`, `Run.level`). None makes them for PLSA; other models have one level.
    consensus : bool, default=False
        Whether to start from the topics that 10 fits to resampled documents share (`polyseme.selection.consensus`),
        with at most 5,000 documents, drawn at random (PLSA only). The tables and the page then show how many of these
        fits have each topic.
    max_iter : int or None, default=None
        Maximum number of iterations. None: the default of the estimator.
    random_state : int, RandomState or Generator, default=0
        Seed of the random numbers.
    language : str or None, default="auto"
        Language of the texts: a name, an ISO code, several of them ("en+it": the rules of the first, the stop words of
        all), "auto" (detected) or None.
    languages : str, default="all"
        Documents to fit, if they are in several languages: "all", "majority" (without those of other languages than the
        most frequent one) or those of a language.
    phrases : bool, default=False
        Whether to join words that form a phrase.
    keep_numbers : bool or None, default=None
        Whether to count numbers as words. None counts them only without a language. Years are always counted.
    stop_words : sequence of str or None, default=None
        Words to leave out, besides those of the language.
    min_df : int, default=2
        Leave out words that occur in fewer documents. Not applied to fewer than 20 documents.
    max_df : float, default=0.5
        Leave out words that occur in a larger share of the documents. Not applied to fewer than 20 documents.
    text : str, sequence of str or None, default=None
        Column of a table with the texts, or several columns to join. None: detected by its name or length.
    id : str or None, default=None
        Column with the id of a document.
    title : str or None, default=None
        Column with the title.
    label : str or None, default=None
        Column with a label, such as a category.
    time : str or None, default=None
        Column with a date or time.
    format : str or None, default=None
        Format of all files. None: by their names.
    encoding : str or None, default=None
        Encoding of text files. None: detected for each file.
    sample : int or None, default=None
        Number of documents to draw at random. None: all.
    categories : sequence of str or None, default=None
        Read only documents with one of these labels. None: all documents.
    noise : int, default=0
        Number of other documents to add at random if `categories` is given.
    uncategorized : bool, default=False
        Whether to keep articles of a MediaWiki dump without a category.
    duplicates : {"keep", "drop"}, default="keep"
        What to do with near-duplicates: documents that share at least 85% of their sequences of three words with an
        earlier document. "keep" counts them in the fit; lists of documents show only one of them. "drop" leaves them
        out.
    repeated_lines : {"all", "once"}, default="all"
        Where to count lines of at least 20 characters that several documents have, such as signatures, disclaimers and
        quotes: in all of them, or in the first one only. With "once", a document of which more than half repeats
        earlier ones keeps all its lines. The texts of the run do not change.
    keep_texts : bool, default=True
        Whether the run stores the texts.
    namer : callable, mapping of int to str, sequence of str or None, default=None
        Function that names the topics after the fit, or names, as in `Run.name_topics`. None: phrases and words of the
        documents.
    page : bool, default=True
        Whether to write the explorer page into `output`.
    page_text : {"auto", "full", "excerpt", "none"}, default="auto"
        How much of each document's text the page contains: "auto" is "full" if all texts have less than 5 MB, else
        "excerpt".
    shards : bool or None, default=None
        Whether to count and fit from files instead of memory. None: if the texts have more than 2^30 characters.
    overwrite : bool, default=False
        Whether to replace an existing run.
    resume : bool, default=False
        Whether to continue the same call after it was killed, with the same result. The source must be the same.
    checkpoint : float, default=10.0
        Seconds between two checkpoints of the fit if `output` is given.
    verbose : int, default=0
        Whether to show progress and notes.

    Returns
    -------
    Run
        Topics and documents. After Ctrl-C during the fit, the topics are those of the last completed iteration, and
        there is a warning.

    Examples
    --------
    >>> import polyseme
    >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
    >>> run = polyseme.fit(texts, 2, language="english")
    >>> sorted(run.topics()[0].words + run.topics()[1].words)
    ['bass', 'bread', 'cheese', 'drums', 'guitar', 'red', 'wine']
    """
    settings = FitSettings.of(locals())
    if namer is not None:
        check_namer(namer, n_topics if labels_from is None else None)
    reader = open_source(source, **settings.reading)
    run = fit_run(
        lambda: reader, reader.names, settings, output=None if output is None else Path(output), overwrite=overwrite,
        resume=resume, checkpoint=checkpoint, page=page_text if page and output is not None else None,
        report=reporter(verbose),
    )  # fmt: skip
    problems = sum(run.info.problems.values())
    if problems:
        warnings.warn(
            f"{pluralize(problems, 'problem')} while reading: see info.problems, or use verbose=1.", stacklevel=2
        )
    if run.info.duplicates.n_distinct == 1:
        warnings.warn(run.info.duplicates.note, stacklevel=2)
    for problem in run.info.seed_problems:
        warnings.warn(problem, SeedWarning, stacklevel=2)
    if run.info.interrupted:
        warnings.warn("Stopped by Ctrl-C: the topics are those of the last completed iteration.", stacklevel=2)
    if namer is not None:
        try:
            run = run.name_topics(namer, verbose=verbose)
        except InputError as error:  # the number of topics was not known before the fit
            warnings.warn(f"The topics keep their automatic names: {error}", stacklevel=2)
    return run


def fit_run(
    open_reader: Callable[[], Reader],
    inputs: list[str],
    settings: FitSettings,
    *,
    output: Path | None,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint: float = 10.0,
    page: str | None = None,
    title: str | None = None,
    command: Sequence[str] = (),
    report: Reporter,
) -> Run:
    """Fit topics to documents and write a run.

    open_reader : returns the documents; not called if an interrupted call has read them. inputs : their names. page :
    how much of each text the explorer page contains; None writes no page. title : title of the page; None uses the name
    of the folder. command : the words of the command line, for run.json.
    """
    settings.check()
    stored = {**settings.to_json(), "inputs": inputs}
    info = RunInfo(settings.model_info(), documents=0, words=0)
    with new_run(output, info, stored, report, overwrite=overwrite, resume=resume) as draft:
        draft.stage("read", lambda: read_documents(draft, open_reader(), settings))
        draft.stage("counted", lambda: write_counts(draft))
        if draft.info.in_memory and not draft.corpus.is_loaded:  # counted by an interrupted call
            draft.corpus.counts = take_counts(draft.run.store.shards)
        draft.stage("chosen", lambda: choose_model(draft, choose_topics(draft, settings), settings))
        settings = replace(settings, fitting={**settings.fitting, "model": draft.info.model.name})
        place = None if output is None else Checkpoint(draft.folder / CHECKPOINT_FOLDER, checkpoint)
        draft.stage("fitted", lambda: fit_model(draft, settings, place))
        if settings.makes_levels:
            draft.stage("levels", lambda: fit_levels(draft))
        if title is None and output is not None:
            title = output.resolve().name
        call: Any = {"title": title, "page_text": page or "auto", "command": tuple(command), **version_info()}
        draft.finish(replace(draft.info, **call), page=page)
    return draft.run
