"""Search in a run.

The first search stores an index in the run. Later searches read only the index and the rules of the vectorizer; they
import neither scikit-learn nor polars. The index is derived from the other files and has its own digests, so run.json
does not list it: an index that is missing, damaged or of another state of the run is built again. Texts, labels, dates
and near-duplicates come from the `DocumentStore`, of which a search reads only the blocks of its hits.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from numbers import Integral
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

import numpy as np

from polyseme.errors import InputError, ModelFileError
from polyseme.kernels import Array
from polyseme.options import named
from polyseme.progress import Reporter
from polyseme.retrieval.index import SearchIndex
from polyseme.retrieval.queries import Hit, Results
from polyseme.retrieval.scores import DEFAULT_METHOD, method_settings
from polyseme.retrieval.snippets import QueryText, parse_query
from polyseme.retrieval.spaces import TopicSpace, UnitRows
from polyseme.runs.documents import TEXT, DocumentStore
from polyseme.runs.search_index import INDEX_FILE, RunIndex, main_topics, read_run_index, write_run_index
from polyseme.runs.store import RunStore, output_only_files
from polyseme.text.dates import Days, days_of

if TYPE_CHECKING:
    from polyseme.runs.view import TopicView
_PHRASE_CANDIDATES = 64
"""Documents whose texts are read first when a query has a phrase."""
LSI_DIMENSIONS = 128
"""Largest number of dimensions of lsi."""


class SearchFilters(NamedTuple):
    """Filters of a search. A document must pass all filters that are given."""

    labels: tuple[str, ...] = ()
    """Documents with one of these labels."""
    topics: tuple[int | str, ...] = ()
    """Documents whose main topic is one of these, by number or by name."""
    since: Days | None = None
    until: Days | None = None
    """Documents from the first day of `since` to the last day of `until`."""
    excluded: tuple[tuple[str, str], ...] = ()
    """Documents without these words. Each word stands after its name in messages."""

    @classmethod
    def of(
        cls, label: Any, topic: Any, since: Any, until: Any, exclude: Any, asked: tuple[str, ...] = ()
    ) -> SearchFilters:
        """Check the arguments of `Run.search`: each may be one value or several. The query excludes words as well."""
        labels = _several("label", label, (str,), "a label")
        topics = _several("topic", topic, (str, Integral), "the number or the name of a topic")
        excluded = _several("exclude", exclude, (str,), "a word")
        first, last = _check_day("since", since), _check_day("until", until)
        if first is not None and last is not None and last.last < first.first:
            raise InputError(f"{named('since')} must not be after {named('until')}, got {since!r} and {until!r}.")
        without = (*((named("exclude"), word) for word in excluded), *((f"-{word}", word) for word in asked))
        return cls(labels, topics, first, last, without)

    def allowed(
        self, index: SearchIndex, documents: DocumentStore, names: Mapping[int, str], main: Callable[[], Array]
    ) -> Array | None:
        """Return a mask of the documents that pass all filters; None if there is no filter.

        main : returns the main topic of each document.
        """
        masks = []
        if self.labels:
            masks.append(documents.with_labels(self.labels))
        if self.topics:
            n_topics = index.scoring.topics().sizes[0]
            wanted = [_topic_number(topic, names, n_topics) for topic in self.topics]
            masks.append(np.isin(main(), wanted))
        if self.since is not None or self.until is not None:
            masks.append(documents.between(self.since, self.until))
        for name, word in self.excluded:
            with_word = index.documents_with(word)
            if not with_word:
                nearest = [near for unknown in index.unknown_words(word.rstrip("*")) for near in unknown.nearest]
                instead = f" (nearest: {', '.join(nearest)})" if nearest else ""
                raise InputError(
                    f"{name}: the run does not count {word!r}: it is unknown, rare or a stop word{instead}."
                )
            masks += [~mask for mask in with_word]
        return np.logical_and.reduce(masks) if masks else None


def search_run(
    store: RunStore,
    query: str,
    n_documents: int = 10,
    *,
    method: str = DEFAULT_METHOD,
    like: bool = False,
    label: Any = None,
    topic: Any = None,
    since: Any = None,
    until: Any = None,
    exclude: Any = None,
    view: TopicView | None = None,
    index: RunIndex | None = None,
    report: Reporter,
) -> Results:
    """Return the best documents of a run for a query or, with `like`, those similar to the document of this id.

    view : topics of a finer level; None: those of the reading level, which the index has. index : the index of the run
    from `read_index`, with which nothing is stored. The other arguments are those of `Run.search`.
    """
    method_settings(method, None, None)  # raises for an unknown method before an index is built
    asked = QueryText(query) if like else parse_query(query)
    filters = SearchFilters.of(label, topic, since, until, exclude, asked.excluded)

    def answer(found: RunIndex) -> Results:
        index, documents, main, empty = found
        names = {**dict(enumerate(store.info.automatic_names)), **store.info.topic_names}
        if view is not None:
            units = UnitRows(view.doc_topic, empty)
            index.scoring.model = TopicSpace.of_units([view.fitted], units, len(index.vocabulary))
            names = dict(enumerate(view.topic_titles))
        index.texts = documents.column(TEXT) if documents.has_texts else None

        def main_topic() -> Array:
            return np.asarray(main[:]) if view is None else main_topics(view.doc_topic, len(documents))

        allowed = filters.allowed(index, documents, names, main_topic)

        def best(size: int) -> Results:
            if like:
                return index.similar_documents(query, size, method=method, allowed=allowed)
            if asked.phrases:
                return _with_phrases(index, asked, size, method, allowed)
            return index.search(asked, size, method=method, allowed=allowed)

        results = _one_of_each(best, n_documents, documents.arrays["firsts"])
        if not results and allowed is not None:
            note = results.note if allowed.any() else "No document passes the filters."
            results = replace(results, note=note.replace("the query.", "the query and the filters."))
        if not like:
            results = replace(results, unknown=index.unknown_words(asked))
        for hit in results:
            _ = hit.words, hit.snippet  # reads the documents of the hits, so that a damaged file is noticed here
        return results

    if index is not None:
        return answer(index)
    results = _stored_answer(store, method, answer, report)
    if results is None:
        store.files.check_sizes(skip=output_only_files(store.files))
        found = _new_index(store, report)
        if not found.words.scoring.is_ready(method_settings(method, None, None)):
            _add_models(found.words, method, report)
            if (store.path / INDEX_FILE).is_file():
                _store(found.words, store, report)
        results = answer(found)
    return results


def read_index(store: RunStore) -> RunIndex:
    """Return the index of a run for the default method, and write nothing to the run."""
    try:
        return read_run_index(store, store.path / INDEX_FILE)
    except (OSError, ValueError, ModelFileError):
        pass  # as in `_stored_answer`
    store.files.check_sizes(skip=output_only_files(store.files))
    from polyseme.runs.corpus import RunCorpus

    if not RunCorpus(store).fits_in_memory(store.info.model.n_topics):
        raise InputError(f"{store.path} is large and has no search index: polyseme search {store.path} WORD makes one.")
    return _memory_index(store)


def _memory_index(store: RunStore) -> RunIndex:
    """Build the index of a run in memory."""
    from polyseme.runs.corpus import RunCorpus

    corpus, weights = RunCorpus(store), store.model._training.doc_topic
    index = SearchIndex(
        corpus.counts, store.vocabulary, ids=corpus.ids, titles=corpus.names, excerpts=corpus.column("excerpt"),
        vectorizer=store.vectorizer,
    ).set_model(store.model, weights)  # fmt: skip
    empty = np.flatnonzero(index.scoring.terms.totals == 0)
    return RunIndex(index, store.documents, main_topics(weights, corpus.n_documents), empty)


def _one_of_each(best: Callable[[int], Results], k: int, groups: Array) -> Results:
    """Return the k best documents, with only the best of each group of near-duplicates.

    best : function that returns the best documents, as many as its argument.
    """
    if not groups.size:
        return best(k)
    sizes = np.bincount(groups)
    size = k
    while True:
        results = best(size)
        first: dict[int, Hit] = {}
        for hit in results:
            first.setdefault(int(groups[hit.row]), hit)
        if len(first) >= k or len(results) < size:
            break
        size *= 4
    hits = (
        replace(hit, rank=rank, n_duplicates=int(sizes[group]) - 1)
        for rank, (group, hit) in enumerate(islice(first.items(), k), start=1)
    )
    return replace(results, hits=tuple(hits))


def store_index(store: RunStore, report: Reporter) -> None:
    """Build and store the index of a run for the next search. The next search itself builds that of a large run."""
    from polyseme.runs.corpus import RunCorpus

    if not RunCorpus(store).fits_in_memory(store.info.model.n_topics):
        report.note("The next search builds the search index again.")
        return
    with report.stage("Building the search index, once for this run"):
        try:
            write_run_index(store, store.path / INDEX_FILE)
        except OSError as error:
            _note_unwritable(error, report)


def _new_index(store: RunStore, report: Reporter) -> RunIndex:
    """Build the index of a run, and store it in the run if possible."""
    with report.stage("Building the search index, once for this run"):  # after all checks of the run
        try:
            write_run_index(store, store.path / INDEX_FILE)
            return read_run_index(store, store.path / INDEX_FILE)
        except OSError as error:  # a run that is read-only, or a full disk
            _note_unwritable(error, report)
        from polyseme.runs.corpus import RunCorpus

        fits = RunCorpus(store).fits_in_memory(store.info.model.n_topics)
        return _memory_index(store) if fits else _temporary_index(store)


def _temporary_index(store: RunStore) -> RunIndex:
    """Build the index of a run in a folder that is removed with it."""
    folder = Path(mkdtemp(prefix="polyseme-"))
    try:
        write_run_index(store, folder / INDEX_FILE)
        found = read_run_index(store, folder / INDEX_FILE)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finalize(found.words, shutil.rmtree, folder, ignore_errors=True)
    return found


def _note_unwritable(error: OSError, report: Reporter) -> None:
    reason = error.strerror or str(error)
    report.note(f"The index could not be stored in the run ({reason}): the next search builds it again.")


def _with_phrases(index: SearchIndex, asked: QueryText, k: int, method: str, allowed: Array | None) -> Results:
    """Return the best documents that contain all phrases.

    The candidates are the documents with all words of the phrases, in the order of their scores. Their texts are read
    until k of them have the phrases.
    """
    if index.texts is None:
        raise InputError(
            "The run does not store texts, which a search for a phrase needs: search without the quotation marks."
        )
    masks = [mask for phrase in asked.phrases for mask in index.documents_with(phrase)]
    candidates = np.logical_and.reduce(masks + ([] if allowed is None else [allowed])) if masks else allowed
    finder = index.finder([asked.words], asked.phrases)
    n_candidates = len(index.ids) if candidates is None else int(candidates.sum())
    hits: list[Hit] = []
    size, seen = max(_PHRASE_CANDIDATES, 4 * k), 0
    while True:
        results = index.search(asked, size, method=method, allowed=candidates)
        for hit in results.hits[seen:]:
            if len(hits) < k and finder.has_phrases(index.texts[hit.row]):
                hits.append(replace(hit, rank=len(hits) + 1, _find=lambda row: finder.snippet(index.texts[row])))
        if len(hits) == k or len(results) < size or size >= n_candidates:
            break
        seen, size = size, 8 * size
    note = results.note or ("" if hits else "No document contains the phrase and matches the query.")
    return Results(results.method, tuple(hits), note)


def _several(name: str, value: Any, kinds: tuple[type, ...], what: str) -> tuple[Any, ...]:
    """Return the argument `name`, one value or several, as a tuple. Raise InputError if a value has another type."""
    if value is None:
        return ()
    values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
    for one in values:
        if isinstance(one, bool) or not isinstance(one, kinds):
            raise InputError(f"{named(name)} must be {what}, or several of them in a list, got {one!r}.")
    return values


def _check_day(name: str, value: Any) -> Days | None:
    """Return the days of `since` or `until`. Raise InputError if the value is not a date."""
    if value is None:
        return None
    days = days_of(value)
    if days is None:
        raise InputError(f"{named(name)} must be a year or a date such as 1871, 1871-06 or 1871-06-30, got {value!r}.")
    return days


def _topic_number(topic: int | str, names: Mapping[int, str], n_topics: int) -> int:
    """Return the number of a topic that is given by its number or its name."""
    for number, name in names.items():
        if isinstance(topic, str) and name.casefold() == topic.casefold():
            return number
    if not isinstance(topic, str) or topic.isdecimal():
        if 0 <= int(topic) < n_topics:
            return int(topic)
        raise InputError(f"{named('topic')}: the run has the topics 0 to {n_topics - 1}, got {topic}.")
    known = f"; there are {', '.join(map(repr, names.values()))}" if names else "; give its number"
    raise InputError(f"{named('topic')}: no topic has the name {topic!r}{known}.")


def _stored_answer(
    store: RunStore, method: str, answer: Callable[[RunIndex], Results], report: Reporter
) -> Results | None:
    """Return the answer from the index that an earlier search stored; None if it is missing, damaged or out of date."""
    try:
        found = read_run_index(store, store.path / INDEX_FILE)
        if not found.words.scoring.is_ready(method_settings(method, None, None)):
            _add_models(found.words, method, report)
            _store(found.words, store, report)
        return answer(found)
    except InputError:
        raise
    except (OSError, ValueError, ModelFileError):  # the caller opens the run, which reports what is wrong with it
        return None


def _add_models(index: SearchIndex, method: str, report: Reporter) -> None:
    """Compute what a method needs besides the model of the run."""
    if method == "plsi-u":
        with report.stage("Computing the lengths of smoothed documents, once for this run"):
            index.scoring.squares(method_settings(method, None, None).term)
    if method == "lsi":
        with report.stage("Computing the dimensions of lsi, once for this run"):
            index.fit_lsi(min(LSI_DIMENSIONS, max(1, min(index.counts.shape) - 1)))
    if method == "plsi*":
        with report.stage("Fitting the models of plsi*, once for this run"):
            index.fit_models()


def _store(index: SearchIndex, store: RunStore, report: Reporter) -> None:
    try:
        index.save(store.path / INDEX_FILE, identity=store.digest)
    except OSError as error:
        _note_unwritable(error, report)
