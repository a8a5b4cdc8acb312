"""Search in a run.

The first search stores an index in the run. Later ones read the index and the rules of the vectorizer only; they import
neither scikit-learn nor polars. The index is derived from the other files and has its own digests, so run.json does not
list it: an index that is missing, damaged or of another state of the run is built again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from polyseme.errors import InputError, ModelFileError, UnsupportedError
from polyseme.io.checks import FileManifest, read_json
from polyseme.progress import Reporter
from polyseme.retrieval.scores import DEFAULT_METHOD, method_settings
from polyseme.runs.folder import VECTORIZER_FILE, check_is_run, read_about

if TYPE_CHECKING:
    from polyseme.retrieval import SearchIndex
    from polyseme.retrieval.queries import Results
    from polyseme.text.words import WordRules

INDEX_FILE = "search.safetensors"
"""File in the run folder that stores the index, with the models of lsi and plsi* after their first use."""
LSI_DIMENSIONS = 128
"""Largest number of dimensions of lsi."""


def search_run(
    folder: Path,
    query: str,
    k: int = 10,
    *,
    method: str = DEFAULT_METHOD,
    like: bool = False,
    report: Reporter,
    trust_pattern: bool = False,
) -> Results:
    """Return the best documents of a run for a query or, with `like`, those similar to the document of this id."""
    method_settings(method, None, None)  # raises for an unknown method before an index is built
    check_is_run(folder)

    def answer(index: SearchIndex) -> Results:
        ask = index.similar_documents if like else index.search
        results = ask(query, k, method=method)
        for hit in results:
            _ = hit.words  # reads the documents of the hits, so that a damaged file is noticed here
        return results

    results = _stored_answer(folder, method, answer, report, trust_pattern)
    if results is None:
        with _scratch_folder(folder) as scratch:
            index = _new_index(folder, scratch, report, trust_pattern=trust_pattern)
            _add_models(index, method, report)
            _store(index, folder, read_about(folder)[0]["digest"], report)
            results = answer(index)
    return results


def store_index(folder: Path, report: Reporter, *, trust_pattern: bool = False) -> None:
    """Build the index of a run and store it, so that the first search need not."""
    with _scratch_folder(folder) as scratch:
        index = _new_index(folder, scratch, report, trust_pattern=trust_pattern)
        _store(index, folder, read_about(folder)[0]["digest"], report)


@contextmanager
def _scratch_folder(folder: Path) -> Iterator[Path]:
    """Make a folder for arrays that are too large for memory: beside the run, where an index has room, if possible."""
    options: dict[str, Any] = {"prefix": f".{folder.name}-index-", "ignore_cleanup_errors": True}
    try:
        made = TemporaryDirectory(dir=folder.parent, **options)
    except OSError:
        made = TemporaryDirectory(**options)
    with made as name:
        yield Path(name)


def _new_index(folder: Path, scratch: Path, report: Reporter, *, trust_pattern: bool) -> SearchIndex:
    """Return a new index of a run's documents, with its model. This is the only part that opens the whole run.

    Counts are read from one shard at a time. The arrays of a large run are mapped from files in `scratch`.
    """
    from polyseme.retrieval import SearchIndex
    from polyseme.retrieval.queries import in_files, in_memory
    from polyseme.runs import open_run

    run = open_run(folder, trust_pattern=trust_pattern)
    vocabulary, ids, titles = run.vocabulary, run.ids, run.names
    excerpts = [text or "" for text in run.column("excerpt")]
    fitted, doc_topic = run.fitted, run.doc_topic
    try:
        vectorizer: Any = _word_rules(run.files, trust_pattern=trust_pattern)
    except UnsupportedError:
        vectorizer = run.vectorizer
    with report.stage("Building the search index, once for this run"):  # after all that can be wrong with the run
        index = SearchIndex.of_parts(
            run.shards, vocabulary, ids=ids, titles=titles, excerpts=excerpts, vectorizer=vectorizer,
            allocate=in_memory if run.fits_in_memory else in_files(scratch),
        )  # fmt: skip
        return index.set_model(fitted, doc_topic)


def _word_rules(files: FileManifest, *, trust_pattern: bool) -> WordRules:
    """Return the rules that count a query. Raise UnsupportedError if they need scikit-learn."""
    from polyseme.text.words import read_word_rules

    path = files.path(VECTORIZER_FILE)
    try:
        return read_word_rules(read_json(path), trust_pattern=trust_pattern)
    except UnsupportedError:
        raise
    except (OSError, ValueError, ModelFileError) as error:
        raise ModelFileError(f"{path}: {error}") from None


def _stored_answer(
    folder: Path, method: str, answer: Callable[[SearchIndex], Results], report: Reporter, trust_pattern: bool
) -> Results | None:
    """Return the answer of the index that an earlier search stored; None if it is missing, damaged or out of date."""
    from polyseme.retrieval import SearchIndex

    try:
        about, files = read_about(folder)
        index = SearchIndex.load(folder / INDEX_FILE, identity=about["digest"])
        if index.vectorizer is None:  # the run has a pattern that must be trusted
            index.vectorizer = _word_rules(files, trust_pattern=trust_pattern)
        if not index.scoring.is_ready(method_settings(method, None, None)):
            _add_models(index, method, report)
            _store(index, folder, about["digest"], report)
        return answer(index)
    except UnsupportedError:  # the vectorizer needs scikit-learn
        return None
    except InputError:
        raise
    except (OSError, ValueError, ModelFileError):  # opening the whole run reports what is wrong with it
        return None


def _add_models(index: SearchIndex, method: str, report: Reporter) -> None:
    """Compute what a method needs beside the model of the run."""
    if method == "plsi-u":
        with report.stage("Computing the lengths of smoothed documents, once for this run"):
            index.scoring.squares(method_settings(method, None, None).term)
    if method == "lsi":
        with report.stage("Computing the dimensions of lsi, once for this run"):
            index.fit_lsi(min(LSI_DIMENSIONS, max(1, min(index.counts.shape) - 1)))
    if method == "plsi*":
        with report.stage("Fitting the models of plsi*, once for this run"):
            index.fit_models()


def _store(index: SearchIndex, folder: Path, identity: str, report: Reporter) -> None:
    try:
        index.save(folder / INDEX_FILE, identity=identity)
    except OSError as error:  # a run that is read-only, or a full disk
        reason = error.strerror or str(error)
        report.note(f"The index could not be stored in the run ({reason}): the next search builds it again.")
