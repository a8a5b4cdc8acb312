"""The stages "read" and "counted" of a fit: documents are stored, and their words learned and counted.

A corpus of at most MAX_CHARACTERS characters is counted in memory while it is read. A longer one is counted from its
stored texts into shards, and fitted from the shards. Both write the same files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any, TypeVar

from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_files import MANIFEST, read_manifest
from polyseme.data.shard_writer import write_shards
from polyseme.errors import InputError
from polyseme.io.files import write_atomically
from polyseme.options import named
from polyseme.progress import Reporter, pluralize
from polyseme.runs.info import RunInfo
from polyseme.runs.languages import LanguageFilter, language_note
from polyseme.runs.reading import reader_notes, reading_progress
from polyseme.runs.recorder import DocumentRecorder, TooManyCharacters
from polyseme.runs.settings import FitSettings
from polyseme.runs.store import SHARDS_FOLDER, VECTORIZER_FILE
from polyseme.runs.write import RunDraft
from polyseme.selection.reading import FEW_DOCUMENTS
from polyseme.text.lines import texts_to_count
from polyseme.text.readers.inputs import Document
from polyseme.text.readers.reader import Reader
from polyseme.text.vectorizer import Vectorizer

T = TypeVar("T")

MAX_CHARACTERS = 2**30
"""Characters of the longest corpus that is counted in memory, unless `shards` is given."""
SHORT_DOCUMENT = 8
"""With fewer counted words per document on average, a note says that they are too few."""
REPEATED_LINES = 0.02
"""If a larger share of the lines repeats those of earlier documents, a note says that they can be counted once."""
_UPDATE_EVERY = 512
"""Documents between two updates of the progress bar of counting."""


def read_documents(draft: RunDraft, reader: Reader, settings: FitSettings) -> RunInfo:
    """Write the texts and metadata of the documents, and learn their words; in memory, also count the words."""
    start = time.perf_counter()
    vectorizer = Vectorizer(**settings.counting)
    drop = settings.duplicates == "drop"
    chosen = LanguageFilter(settings.languages)
    once = settings.repeated_lines == "once"
    with draft.recorder(texts=settings.keep_texts, drop=drop, once=once) as recorder:
        try:
            in_memory = learn_words(
                reader,
                vectorizer,
                draft.report,
                lambda documents: _learn(draft, vectorizer, recorder, chosen.choose(documents), settings.shards),
            )
        except InputError:  # equal documents leave no words, because words of all documents are dropped; say so instead
            recorder.duplicates.check_distinct()
            raise
    duplicates = recorder.duplicates
    if reader.documents < 2:
        raise InputError("There is only one document, but topics need at least two: give more documents.")
    if drop:
        duplicates.check_distinct()
    if duplicates.found:
        draft.report.note(duplicates.note)
    lines = recorder.lines
    repeated = f"{lines.n_left_out:,} of {pluralize(lines.n_lines, 'line')} repeat those of earlier documents"
    if once and lines.n_left_out:
        draft.report.note(f"{repeated}: not counted again.")
    elif lines.n_left_out > REPEATED_LINES * lines.n_lines:
        draft.report.note(
            f"{repeated}, such as signatures: counted ({named('repeated_lines', 'once')} counts each line once)."
        )
    write_atomically(draft.folder / VECTORIZER_FILE, json.dumps(vectorizer.to_dict()).encode())
    draft.run.store.vectorizer = vectorizer
    if vectorizer.language_ is not None and settings.counting["language"] == "auto":
        draft.report.note(language_note(vectorizer.language_, vectorizer.languages_))
    stored = settings.to_json()
    return replace(
        draft.info,
        inputs=tuple(reader.names),
        reading=stored["reading"],
        counting=stored["counting"],
        language=vectorizer.language_,
        languages=vars(vectorizer).get("languages_", {}),
        documents=reader.documents - chosen.left_out - duplicates.found * drop,
        duplicates=duplicates,
        repeated_lines=stored["repeated_lines"],
        words=len(vectorizer.vocabulary_),
        left_out={
            **reader.dropped,
            **({"other languages": chosen.left_out} if chosen.left_out else {}),
            **({"near-duplicates": duplicates.found} if drop else {}),
        },
        problems=dict(reader.problems.counts),
        in_memory=in_memory,
        seconds={"reading": round(time.perf_counter() - start, 3)},
    )


def learn_words(
    reader: Reader, vectorizer: Vectorizer, report: Reporter, learn: Callable[[Iterator[Document]], T]
) -> T:
    """Read the documents and return the result of `learn`, which learns their words.

    With fewer than FEW_DOCUMENTS documents all words are counted, regardless of `min_df` and `max_df`.
    """
    with report.stage("Reading and counting", unit="MB", size=1e6) as update:
        documents = reading_progress(reader, update)
        first = list(islice(documents, FEW_DOCUMENTS))
        if len(first) < FEW_DOCUMENTS:
            vectorizer.set_params(min_df=1, max_df=1.0)
        try:
            learned = learn(chain(first, documents))
        except InputError:
            raise
        except ValueError as error:  # scikit-learn raises it when no word is left
            reason = str(error).rstrip(".")
            stopped = vectorizer.extra_stop_words and "stop words" in reason
            hint = (
                f"leave some words out of {named('stop_words')}"
                if stopped
                else f"try {named('min_df', 1)} and {named('max_df', 1)}"
            )
            raise InputError(f"The documents have no words to count: {reason}; {hint}.") from None
    for note in reader_notes(reader):
        report.note(note)
    return learned


def count_documents(reader: Reader, vectorizer: Vectorizer, report: Reporter) -> Any:
    """Read documents, learn their words and return their counts."""
    return learn_words(
        reader, vectorizer, report, lambda documents: vectorizer.fit_transform(document.text for document in documents)
    )


def _learn(
    draft: RunDraft, vectorizer: Vectorizer, recorder: DocumentRecorder, documents: Iterator[Any], shards: bool | None
) -> bool:
    """Learn the words of the documents; return whether the words were also counted, in memory."""
    if not shards:
        limit = MAX_CHARACTERS if shards is None else None
        try:
            draft.corpus.counts = vectorizer.fit_transform(recorder.record(documents, limit))
        except TooManyCharacters:
            draft.report.note(
                f"The texts have more than {MAX_CHARACTERS:,} characters: they are counted and fitted from shards on "
                f"disk ({named('shards', False)} forces memory)."
            )
        else:
            return True
    vectorizer.fit(chain(recorder.texts(), recorder.record(documents)))
    return False


def write_counts(draft: RunDraft) -> RunInfo:
    """Write the counts to shards. After an interruption this continues after the last complete shard."""
    folder, store, corpus = draft.folder / SHARDS_FOLDER, draft.run.store, draft.corpus
    if not ((folder / MANIFEST).exists() and read_manifest(folder).complete):
        if corpus.is_loaded:
            write_shards([corpus.counts], folder, vocabulary=store.vocabulary)
        else:
            with draft.report.stage("Writing shards", unit="documents") as update:
                texts = texts_to_count(store.texts, once=draft.info.repeated_lines == "once")
                texts = _with_progress(texts, draft.info.documents, update)
                write_shards(texts, folder, vectorizer=store.vectorizer)
    manifest, n_documents = DiskCorpus(folder).manifest, draft.info.documents
    if n_documents < FEW_DOCUMENTS:
        draft.report.note(
            f"{pluralize(n_documents, 'document')}: read them. Topics of so few change from fit to fit; long documents "
            "can be cut into parts, such as sections."
        )
    if manifest.tokens < SHORT_DOCUMENT * n_documents:
        draft.report.note(
            f"{manifest.tokens / n_documents:.1f} counted words per document are too few to tell its topics: join "
            "short texts, such as those of one author, day or group, or add longer ones."
        )
    return replace(draft.info, tokens=int(manifest.tokens), shards=len(manifest.shards))


def _with_progress(texts: Iterable[str], n_documents: int, update: Any) -> Iterator[str]:
    for number, text in enumerate(texts, start=1):
        if number % _UPDATE_EVERY == 0:
            update(number, n_documents, f"{number:,} of {n_documents:,} documents")
        yield text
