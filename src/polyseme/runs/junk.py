"""Topics that do not describe a subject: mail headers, signatures, boilerplate, encoded files, copies of one document.

A topic is marked as junk by the first of these tests that its tokens, weighted by P(z|d,w), pass:

    place     their positions in the documents, each divided into ten parts, differ from those of all tokens: headers at
              the beginning, signatures at the end. The total variation distance is at least MIN_DISTANCE plus the
              distance that chance gives for as many documents. Short texts have no headers: documents of at least
              _MIN_TOKENS tokens must have MIN_PLACED of all tokens
    repeated  a share of at least MIN_REPEATED, and MIN_RATIO times the share of all tokens, is in sequences of five
              words that occur in many documents. Technical terms such as "laminar boundary layer" are shorter
    copies    a share of at least MIN_COPIES, and MIN_RATIO times the share of all tokens, is in near-duplicates
    few       almost all of them are in very few documents: 1 / sum_d P(d|z)^2, the effective number of documents, is
              less than MAX_FEW times the number of documents per topic

The first two tests need a sample of the texts, the third needs the groups of near-duplicates. The last test needs only
the weights P(z|d).

A topic that matches a label describes a subject: it is not marked if, over all documents, the correlation of "this is
the document's main topic" and "the document has this label" is at least MIN_MATCH for a label of MIN_DOCUMENTS. Whether
other fits find a topic again is not used: headers and encoded files are found again as well as subjects (``python
benchmarks/junk.py --corpora news headers --found 4``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.kernels import Array, Floats, row_blocks
from polyseme.metrics.coherence import TokenSequences
from polyseme.runs.info import Mark
from polyseme.text.readers.inputs import LABEL_SEPARATOR

if TYPE_CHECKING:
    from polyseme.runs.view import TopicView
    from polyseme.text.vectorizer import Vectorizer

MIN_DISTANCE = 0.1
MIN_PLACED = 0.5
MIN_REPEATED = 0.25
MIN_COPIES = 0.5
MIN_RATIO = 2.5
MIN_MATCH = 0.5
MAX_FEW = 0.03
SAMPLE, SAMPLE_TOKENS = 10_000, 1 << 20
"""Largest numbers of documents and of tokens in the sample of texts."""
REPEATED_SHARE, MIN_DOCUMENTS = 0.0005, 5
"""A sequence is repeated if it occurs in this share of the documents, and in this many. A label with fewer documents
than this number is not compared with topics."""
_PARTS = 10
_MIN_TOKENS = 2 * _PARTS
"""Number of tokens of the shortest document whose positions are used."""
_NGRAM = 5
_NUMBERS_AT_ONCE = 1 << 22


class TokenSample(NamedTuple):
    """Words of a sample of documents, in the order of the texts."""

    rows: Array
    """Rows of the documents."""
    sequences: TokenSequences

    @classmethod
    def of(cls, vectorizer: Vectorizer, rows: Array, texts: Iterable[str]) -> TokenSample:
        """Look up the words of the texts of these documents. Drop the last documents if there are too many words."""
        if not len(rows):
            return cls(rows, TokenSequences(np.empty(0, np.int32), np.zeros(1, np.int64)))
        read = vectorizer.sequences(texts)
        n = max(1, int(np.searchsorted(read.indptr, SAMPLE_TOKENS, side="right")) - 1)
        return cls(rows[:n], TokenSequences(read.tokens[: read.indptr[n]], read.indptr[: n + 1]))


KINDS = ("place", "repeated", "copies", "few")


def junk_topics(run: TopicView) -> dict[int, Mark]:
    """Return the topics that do not describe a subject, by number."""
    doc_topic, doc_weights, n_topics = run.doc_topic, run.training.doc_weights, run.fitted.n_topics
    marks: dict[int, Mark] = {}
    if n_topics < 2:
        return marks
    copies, in_copies = _share_of(np.bincount(run.corpus.groups)[run.corpus.groups] > 1, doc_topic, doc_weights)
    documents = effective_documents(doc_topic, doc_weights)
    shares = token_shares(run, run.corpus.token_sample) if len(run.corpus.token_sample.rows) else None
    for topic in range(n_topics):
        if shares is not None and shares.distance[topic] >= MIN_DISTANCE + shares.chance[topic]:
            reason = "its words occur at the same positions in documents, as in headers or signatures"
            marks[topic] = Mark("place", reason)
        elif shares is not None and shares.repeated[topic] >= max(MIN_REPEATED, MIN_RATIO * shares.overall):
            share = f"{shares.repeated[topic]:.0%} of its words are"
            marks[topic] = Mark("repeated", f"{share} in passages that many documents repeat")
        elif copies[topic] >= max(MIN_COPIES, MIN_RATIO * in_copies):
            marks[topic] = Mark("copies", f"{copies[topic]:.0%} of its words are in near-duplicate documents")
        elif documents[topic] < MAX_FEW * len(doc_topic) / n_topics:
            number = max(1, round(float(documents[topic])))
            where = "one document" if number == 1 else f"about {number} documents"
            marks[topic] = Mark("few", f"almost all of its words are in {where}")
    if not marks:
        return marks
    matches = label_matches(run)
    return {topic: mark for topic, mark in marks.items() if matches[topic] < MIN_MATCH}


def label_matches(run: TopicView) -> Floats:
    """Return the largest correlation of each topic, as the main topic of documents, with a label."""
    labels, doc_topic, n_topics = run.corpus.label_numbers, run.doc_topic, run.fitted.n_topics
    numbers: dict[str, int] = {}
    groups = [  # a document can have several labels, "a; b"
        (group, numbers.setdefault(label, len(numbers)))
        for group, name in enumerate(labels.names)
        for label in set(name.split(LABEL_SEPARATOR)) - {""}
    ]
    has_label = _ones(np.array(groups, dtype=np.intp).reshape(-1, 2), (len(labels.names), len(numbers)))
    counted = sp.csr_array((n_topics, len(labels.names)))
    for part in _blocks(doc_topic):
        main = np.asarray(doc_topic[part]).argmax(axis=1)
        counted = counted + _ones(np.column_stack([main, labels.numbers[part]]), counted.shape)
    joint = (counted @ has_label).tocoo()
    n, of_label = float(len(doc_topic)), np.asarray(joint.sum(axis=0)).ravel()[joint.col]
    of_topic = np.asarray(counted.sum(axis=1)).ravel()[joint.row]
    spread = np.sqrt(of_topic * (n - of_topic) * of_label * (n - of_label))
    gain = (n * joint.data - of_topic * of_label) * (of_label >= MIN_DOCUMENTS)
    best = np.zeros(n_topics)
    np.maximum.at(best, joint.row, np.divide(gain, spread, out=np.zeros_like(gain), where=spread > 0))
    return best


def _ones(pairs: Array, shape: tuple[int, int]) -> Any:
    """Return the number of times that each pair of a row and a column occurs, CSR."""
    return sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=shape).tocsr()


class TokenShares(NamedTuple):
    """Positions and repetition of the tokens of each topic."""

    distance: Floats
    """Total variation distance between the positions of its tokens and those of all tokens; 0 for short texts."""
    chance: Floats
    """Distance expected by chance, if each document contributes one position."""
    repeated: Floats
    """Share of its tokens in sequences that occur in many documents."""
    overall: float
    """Share of all tokens in such sequences."""


def token_shares(run: TopicView, sample: TokenSample) -> TokenShares:
    """Measure positions and repetition of the tokens of each topic in a sample of the documents."""
    tokens, indptr = np.asarray(sample.sequences.tokens), np.asarray(sample.sequences.indptr)
    lengths = np.diff(indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    places = (_PARTS * (np.arange(len(tokens)) - indptr[rows])) // np.maximum(lengths[rows], 1)
    places[lengths[rows] < _MIN_TOKENS] = _PARTS
    repeated = _repeated(tokens, rows, indptr, run.corpus.groups[sample.rows])
    theta = np.asarray(run.doc_topic[sample.rows], dtype=np.float64)
    phi = np.asarray(run.fitted.topic_word, dtype=np.float64).T
    n_topics = theta.shape[1]
    at_places, in_repeated, of_documents = np.zeros((_PARTS + 1, n_topics)), np.zeros(n_topics), np.zeros_like(theta)
    known = np.flatnonzero(tokens >= 0)
    step = max(1, _NUMBERS_AT_ONCE // n_topics)
    for start in range(0, len(known), step):
        part = known[start : start + step]
        weights = theta[rows[part]] * phi[tokens[part]]
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        at_places += _group_sums(weights, places[part], _PARTS + 1)
        in_repeated += repeated[part].astype(np.float64) @ weights
        firsts = np.flatnonzero(np.diff(rows[part], prepend=-1))
        of_documents[rows[part[firsts]]] += np.add.reduceat(weights, firsts, axis=0)
    totals = np.maximum(at_places.sum(axis=0), np.finfo(np.float64).tiny)
    placed = at_places[:_PARTS]
    placed = placed * (placed.sum() >= MIN_PLACED * at_places.sum())
    overall = placed.sum(axis=1) / max(placed.sum(), 1.0)
    by_topic = placed / np.maximum(placed.sum(axis=0), 1.0)
    documents = np.maximum(of_documents.sum(axis=0) ** 2 / np.maximum((of_documents**2).sum(axis=0), 1e-300), 1.0)
    chance = np.sqrt(2 / np.pi) / 2 * np.sqrt(overall).sum() / np.sqrt(documents)
    return TokenShares(
        0.5 * np.abs(by_topic - overall[:, np.newaxis]).sum(axis=0) * (placed.sum(axis=0) > 0),
        chance,
        in_repeated / totals,
        float(in_repeated.sum() / totals.sum()),
    )


def _group_sums(values: Floats, groups: Array, n_groups: int) -> Floats:
    """Return the sum of the rows of `values` in each group; `groups` has the group of each row."""
    ones = np.ones(len(groups))
    indicator = sp.csc_array((ones, groups, np.arange(len(groups) + 1)), shape=(n_groups, len(groups)))
    return np.asarray(indicator @ values)


def _repeated(tokens: Array, rows: Array, indptr: Array, groups: Array) -> Array:
    """Return a mask of the tokens in sequences of known words that occur in many documents; copies count once."""
    n = len(tokens) - _NGRAM + 1
    mask = np.zeros(len(tokens), dtype=bool)
    if n < 1:
        return mask
    keys, is_sequence = np.zeros(n, dtype=np.uint64), rows[:n] == rows[_NGRAM - 1 :]
    for shift in range(_NGRAM):
        part = tokens[shift : shift + n]
        is_sequence = is_sequence & (part >= 0)
        keys = keys * np.uint64(0x9E3779B97F4A7C15) + part.astype(np.uint64)
        keys ^= keys >> np.uint64(29)
    starts = np.flatnonzero(is_sequence)
    if not starts.size:
        return mask
    _, numbers = np.unique(keys[starts], return_inverse=True)
    pairs = np.unique(np.column_stack([numbers.ravel(), groups[rows[starts]]]), axis=0)
    documents = np.bincount(pairs[:, 0])[numbers.ravel()]
    least = max(MIN_DOCUMENTS, int(np.ceil(REPEATED_SHARE * (len(indptr) - 1))))
    for shift in range(_NGRAM):
        mask[starts[documents >= least] + shift] = True
    return mask


def effective_documents(doc_topic: Array, doc_weights: Array) -> Floats:
    """Return 1 / sum_d P(d|z)^2 for each topic."""
    sums, squares = np.zeros(doc_topic.shape[1]), np.zeros(doc_topic.shape[1])
    for part in _blocks(doc_topic):
        joint = np.asarray(doc_topic[part], dtype=np.float64) * np.asarray(doc_weights[part])[:, np.newaxis]
        sums += joint.sum(axis=0)
        squares += (joint**2).sum(axis=0)
    return np.asarray(np.divide(sums**2, squares, out=np.full(len(sums), np.inf), where=squares > 0))


def _share_of(documents: Array, doc_topic: Array, doc_weights: Array) -> tuple[Floats, float]:
    """Return the share of each topic's tokens, and of all tokens, that are in some documents (a mask)."""
    weights = np.asarray(doc_weights, dtype=np.float64)
    of_both = np.stack([weights * documents, weights])
    sums = np.zeros((2, doc_topic.shape[1]))
    for part in _blocks(doc_topic):
        sums += of_both[:, part] @ np.asarray(doc_topic[part], dtype=np.float64)
    inside, totals = sums
    return inside / np.maximum(totals, np.finfo(np.float64).tiny), float(of_both[0].sum() / weights.sum())


def _blocks(doc_topic: Array) -> list[slice]:
    return row_blocks(len(doc_topic), doc_topic.shape[1], _NUMBERS_AT_ONCE)


def junk_notes(junk: Mapping[int, Mark], folder: str | None = None) -> list[str]:
    """Return a sentence about each marked topic, and the calls that remove words, copies or topics.

    The words to remove are left to the reader: a marked topic may also have words that others need.

    folder : folder of the run, for commands; None: Python calls.
    """
    notes = [f"Topic {topic} may not describe a subject: {mark.reason}." for topic, mark in sorted(junk.items())]
    of_kind = {kind: [topic for topic, mark in sorted(junk.items()) if mark.kind == kind] for kind in KINDS}
    if of_kind["place"] or of_kind["repeated"]:
        command = f"polyseme edit {folder} --ban WORD,WORD --refit" if folder else "run.edit(ban=[...], refit=True)"
        notes.append(f"To remove words that are not about a subject: {command}")
    if of_kind["repeated"]:
        argument = "--repeated-lines once" if folder else "repeated_lines='once'"
        notes.append(f"To count lines that repeat, such as signatures, only once: fit with {argument}")
    if of_kind["copies"]:
        argument = "--duplicates drop" if folder else "duplicates='drop'"
        notes.append(f"To leave out copies: fit with {argument}")
    if few := of_kind["few"]:
        command = f"polyseme edit {folder} {' '.join(f'--delete {topic}' for topic in few)}"
        notes.append(f"To remove topics of few documents: {command if folder else f'run.edit(delete={few})'}")
    return notes
