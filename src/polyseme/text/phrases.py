"""Phrases of a corpus as they are written, for the names of topics.

Candidates are two or three different adjacent words, without punctuation between them. They begin and end with a word
of the vocabulary; stop words may only be inside. `NameWords` decides which words a noun phrase can have where. Forms of
one stem are one word, and a phrase is written as it is most often written in the texts. E-mail addresses and URLs are
not words. A phrase must

- occur often enough, in several documents (`least_occurrences`);
- have an NPMI of at least MIN_NPMI; for three words, this is the smaller NPMI of the two divisions into two parts;
- have different words around it: the number of its distinct contexts (the word before and the word after) is at least
  MIN_CONTEXTS of the number of its occurrences. A signature or a heading has the same context everywhere;
- if it is written with capitals, be part of sentences: have a stop word next to it or one word further at least
  MIN_IN_SENTENCES times as often as other phrases;
- not be part of one longer phrase in MAX_FRAGMENT of its occurrences, as "Salt Lake" is part of "Salt Lake City".

Names of authors are in signatures and in lines that say whose words follow. The words of a line with an e-mail address
therefore have no neighbors. A word that is hardly ever part of sentences, or that has few distinct contexts, compared
with other words, is no name by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.kernels import Array
from polyseme.text.languages import OTHER, npmi
from polyseme.text.nouns import MIN_DETERMINED, MIN_TOKENS, NameWords, determiners
from polyseme.text.tokens import Columns, Integers, Mask, TokenRules, WordSequences, batches, phrase_characters
from polyseme.text.words import WordRules

MIN_NPMI = 0.25
MIN_CONTEXTS = 0.3
MIN_IN_SENTENCES = 0.25
MAX_FRAGMENT = 0.7
_FEW_TOKENS = 5
"""Fewer occurrences of a word do not show whether it is part of sentences."""
_CONTEXTS = 200
"""Largest number of occurrences of a phrase whose contexts are compared; more occurrences have few new contexts."""
_BREAKS = re.compile(r"[\w.+%-]{1,64}@\S+|\bhttps?://\S+|\n[ \t\r]*\n|\b(\w{1,64}(?:\.\w{1,64})+)")
"""Text across which no phrase extends: e-mail addresses, URLs, the ends of paragraphs, and names with dots such as
those of hosts and modules. Their words are words without neighbors. The limits make the search linear in the length of
a text."""
_WORDS = re.compile(r"\w+")
_ADDRESS_LINE = re.compile(r"^[^\n@]{0,100}[\w.+%-] ?@ ?\w[^\n]{0,100}$", re.MULTILINE)
"""A line with an e-mail address, also one like "Jane Doe @ Zoology", that is not a paragraph."""


@dataclass(frozen=True)
class Phrases:
    """Phrases of some documents, and how words are written in them."""

    names: list[str]
    """The phrases as they are written most often."""
    occurrences: Integers
    """How often each phrase occurs."""
    documents: Any
    """Phrases x documents, CSR: 1 where a document contains the phrase."""
    columns: Any
    """Phrases x words, CSR: 1 where the phrase contains the word."""
    words: dict[int, str]
    """How a word is written if it usually has capitals, by its column."""
    word_tokens: Integers
    """How often each word occurs in these documents."""
    bare: frozenset[str] = frozenset()
    """Words that hardly ever follow a determiner, in a language in which nouns do."""
    apart: frozenset[str] = frozenset()
    """Words that are hardly ever part of sentences, or have few distinct contexts, compared with other words."""


def no_phrases(n_words: int) -> Phrases:
    """Return the phrases of no documents."""
    none = np.zeros(0, dtype=np.int64)
    return Phrases([], none, sp.csr_array((0, 0)), sp.csr_array((0, n_words)), {}, np.zeros(n_words, dtype=np.int64))


def least_occurrences(n_documents: int) -> tuple[int, int]:
    """Return how often a phrase must occur, and in how many documents: 8 and 5, less for fewer than 900 documents."""
    documents = min(5, max(2, int(np.sqrt(n_documents) / 6)))
    return round(1.6 * documents), documents


def find_topic_phrases(rules: WordRules, texts: Iterable[str], excluded: frozenset[str] = frozenset()) -> Phrases:
    """Return the phrases of texts whose words are counted by these rules.

    excluded : words that phrases must not contain.
    """
    tokens = _Tokens.of(rules, texts, excluded)
    least, least_documents = least_occurrences(tokens.n_documents)
    candidates = _Candidates.of(tokens, least)
    candidates = candidates.where(candidates.n_documents >= least_documents)
    candidates = candidates.where(candidates.npmi >= MIN_NPMI)
    candidates = candidates.where(candidates.distinct_contexts() >= MIN_CONTEXTS)
    in_sentences = candidates.near_stop_words()
    often = MIN_IN_SENTENCES * np.median(in_sentences) if len(candidates) else 0.0
    candidates = candidates.where((in_sentences >= often) | ~candidates.has_capitals())
    candidates = candidates.where(candidates.largest_extension() < MAX_FRAGMENT)
    names = candidates.names(tokens.written)
    columns = _binary(rules.count(iter([names])).matrix()) if names else sp.csr_array((0, len(rules.columns)))
    words = {rules.columns.get(word, -1): form for word, form in tokens.written.items()}
    words.pop(-1, None)
    documents, apart = candidates.documents(), tokens.apart()
    return Phrases(names, candidates.counts, documents, columns, words, tokens.word_tokens, tokens.bare, apart)


class _Tokens:
    """The words of documents in order, with upper and lower case, and the properties of each word."""

    def __init__(self, rules: WordRules, sequences: WordSequences, excluded: frozenset[str]) -> None:
        language = rules.language or OTHER
        self.forms = sequences.words()
        numbers, starts = sequences.numbers(barriers=True)
        self.n_documents = len(starts) - 1
        document = np.repeat(np.arange(self.n_documents, dtype=np.int32), np.diff(starts))
        kept = np.flatnonzero(numbers >= 0)
        self.form, self.document = numbers[kept], document[kept]
        self.joined: Mask = np.zeros(len(kept), dtype=bool)
        """Whether a phrase may extend from a word to the next one."""
        self.joined[:-1] = (np.diff(kept) == 1) & (np.diff(self.document) == 0)
        self.lower = [language.normalize(form).lower() for form in self.forms]
        stems = rules.stems(self.lower)
        place = {stem: number for number, stem in enumerate(dict.fromkeys(stems))}
        self._key_of_form: Columns = np.fromiter((place[stem] for stem in stems), dtype=np.int32, count=len(stems))
        self.n_keys = len(place)
        self.key: Columns = self._key_of_form[self.form]
        """Number of the stem of each word."""
        self.columns = _binary(rules.count(iter([self.forms])).matrix())
        """Forms x words of the vocabulary."""
        counted = np.bincount(self.form, minlength=len(self.forms))
        self.word_tokens: Integers = np.asarray(self.columns.T @ counted, dtype=np.int64).ravel()
        self.written = self._words_with_capitals()
        """How words are written that usually have capitals, by their lower case."""
        self._is_known: Mask = np.diff(self.columns.indptr) > 0
        known = {self.lower[number] for number in np.flatnonzero(self._is_known).tolist()}
        self.bare = self._bare_words(determiners(language))
        self.is_stop: Mask = self._mask(form in rules.tokens.stops for form in self.lower)
        self.follows_stop, self.precedes_stop = self._near_stop_words()
        """Whether one of the two words before, or after, is a stop word of the same sentence."""
        self.name_words = NameWords(language, self.written, known, self.bare)
        self.has_capital: Mask = self._mask(form in self.written for form in self.lower)
        """Whether the word usually has capitals."""
        self._stops, joined = rules.tokens.stops, len(rules.phrases) > 0  # then a word may be counted only in phrases
        content = [
            (counted or joined) and form not in self._stops
            for form, counted in zip(self.lower, self._is_known.tolist(), strict=True)
        ]
        self.is_content: Mask = self._mask(content)
        """Whether the word is in the vocabulary and no stop word."""
        self.can_start: Mask = self.is_content & self._mask(map(self.name_words.can_start, self.lower))
        """Whether a phrase may begin with the word."""
        self.can_end: Mask = self.is_content & self._mask(map(self.name_words.can_end, self.lower))
        """Whether a phrase may end with the word."""
        left_out = {language.normalize(word).lower() for word in excluded}
        left_out |= set(rules.stems(sorted(left_out)))
        allowed = (form not in left_out and stem not in left_out for form, stem in zip(self.lower, stems, strict=True))
        self.allowed: Mask = self._mask(allowed)
        """Whether a phrase may contain the word."""

    def _mask(self, of_forms: Iterable[bool]) -> Mask:
        """Return a property of each form as a mask of the words."""
        return np.fromiter(of_forms, dtype=bool, count=len(self.forms))[self.form]

    def links(self, first: int, inside: int) -> bool:
        """Return whether the form `inside` may be in the middle of a phrase that begins with the form `first`."""
        word = self.lower[inside]
        return self.name_words.can_link(word, self.lower[first], stop=word in self._stops)

    def _words_with_capitals(self) -> dict[str, str]:
        """Return how words are written, by their lower case, if they usually have capitals inside sentences."""
        inside = np.bincount(self.form[~self.starts_sentence], minlength=len(self.forms))
        counted = inside + 0.01 * np.bincount(self.form, minlength=len(self.forms))
        best: dict[str, int] = {}
        for number, lower in enumerate(self.lower):
            if lower not in best or counted[number] > counted[best[lower]]:
                best[lower] = number
        return {lower: self.forms[number] for lower, number in best.items() if self.forms[number] != lower}

    def _bare_words(self, determiners: Collection[str]) -> frozenset[str]:
        """Return the frequent words, in lower case, that hardly ever follow a determiner; none without determiners."""
        if not determiners:
            return frozenset()
        place = {word: number for number, word in enumerate(dict.fromkeys(self.lower))}
        words = np.fromiter((place[word] for word in self.lower), dtype=np.int64, count=len(self.lower))[self.form]
        follows = np.zeros(len(words), dtype=bool)
        follows[1:] = self._mask(word in determiners for word in self.lower)[:-1] & (np.diff(self.document) == 0)
        counted = np.bincount(words, minlength=len(place))
        share = np.bincount(words, follows, len(place)) / np.maximum(counted, 1)
        bare = (share < MIN_DETERMINED) & (counted >= MIN_TOKENS)
        return frozenset(word for word, number in place.items() if bare[number])

    def _near_stop_words(self) -> tuple[Mask, Mask]:
        follows = np.append(False, self.joined[:-1] & self.is_stop[:-1])
        precedes = np.append(self.joined[:-1] & self.is_stop[1:], False)
        before, after = follows.copy(), precedes.copy()
        before[1:] |= self.joined[:-1] & follows[:-1]
        after[:-1] |= self.joined[:-1] & precedes[1:]
        return before, after

    def apart(self) -> frozenset[str]:
        """Return the words, in lower case, that are hardly ever part of sentences or have few distinct contexts."""
        counts, order = np.bincount(self.key, minlength=self.n_keys), np.argsort(self.key, kind="stable")
        near = np.bincount(self.key, self.follows_stop | self.precedes_stop, self.n_keys) / np.maximum(counts, 1)
        places = order[_sampled(self.key[order], counts)]
        ones = np.ones(len(places), dtype=np.int32)
        words = _Candidates(self, self.key[places].astype(np.int64), places, ones, np.zeros(self.n_keys))
        return self._smaller(near, MIN_IN_SENTENCES) | self._smaller(words.distinct_contexts(), MIN_CONTEXTS)

    def _smaller(self, values: Array, least: float) -> frozenset[str]:
        """Return the words, in lower case, whose value is smaller than `least` times the usual one.

        values : one for each stem.
        """
        judged = np.bincount(self.key, minlength=self.n_keys) >= _FEW_TOKENS
        usual = judged & (np.bincount(self._key_of_form, self._is_known, self.n_keys) > 0)
        smaller = judged & (values < least * (np.median(values[usual]) if usual.any() else 0.0))
        return frozenset(self.lower[form] for form in np.flatnonzero(smaller[self._key_of_form]).tolist())

    @classmethod
    def of(cls, rules: WordRules, texts: Iterable[str], excluded: frozenset[str]) -> _Tokens:
        language = rules.language or OTHER

        def prepare(text: str) -> str:
            if "@" in text:
                text = _ADDRESS_LINE.sub(_broken, text)
            return language.normalize(_BREAKS.sub(_broken, text), lowercase=False)

        characters = phrase_characters(language.joiners, language.pairs)
        sequences = WordSequences(TokenRules(characters, prepare=prepare), n_threads=rules.n_threads)
        for batch in batches(texts, str):
            sequences.add(batch)
        return cls(rules, sequences, excluded)

    @property
    def starts_sentence(self) -> Mask:
        """Whether no phrase can contain a word and the one before it, as at the start of a sentence."""
        starts = np.ones(len(self.joined), dtype=bool)
        starts[1:] = ~self.joined[:-1]
        return starts


@dataclass(frozen=True)
class _Candidates:
    """Occurrences of candidates, sorted by candidate."""

    tokens: _Tokens
    phrase: Integers
    """Number of the candidate of each occurrence."""
    first: Integers
    """Its first word, as a position in the tokens."""
    length: Columns
    """Number of its words: 2 or 3."""
    npmi: Array
    """NPMI of each candidate."""

    @classmethod
    def of(cls, tokens: _Tokens, least: int) -> _Candidates:
        """Find candidates that occur at least `least` times."""
        totals = np.bincount(tokens.key, minlength=tokens.n_keys)
        n_tokens = max(len(tokens.key), 1)
        frequent = (totals[tokens.key] >= least) & tokens.allowed
        key, width = tokens.key.astype(np.int64), np.int64(tokens.n_keys)
        places = np.flatnonzero(tokens.joined[:-1] & frequent[:-1] & frequent[1:] & (key[:-1] != key[1:]))
        pair = np.full(len(key), -1, dtype=np.int64)  # the frequent pair that begins at each position
        pair[places], pair_counts, _ = _numbered(key[places] * width + key[places + 1], places, least)
        at = np.flatnonzero((pair[:-1] >= 0) & tokens.can_start[:-1] & tokens.can_end[1:])
        twos, counts, first = _numbered(pair[at], at, least)
        score = npmi(counts, totals[key[first]], totals[key[first + 1]], n_tokens)
        is_three = (pair[:-2] >= 0) & (pair[1:-1] >= 0) & (key[:-2] != key[2:])
        at3 = np.flatnonzero(is_three & tokens.can_start[:-2] & tokens.can_end[2:])
        links = {pair: tokens.links(*pair) for pair in set(zip(tokens.form[at3], tokens.form[at3 + 1], strict=True))}
        at3 = at3[[links[pair] for pair in zip(tokens.form[at3], tokens.form[at3 + 1], strict=True)]]
        threes, counts3, first = _numbered(pair[at3] * width + key[at3 + 2], at3, least)
        score3 = np.minimum(
            npmi(counts3, pair_counts[pair[first]], totals[key[first + 2]], n_tokens),
            npmi(counts3, totals[key[first]], pair_counts[pair[first + 1]], n_tokens),
        )
        threes[threes >= 0] += len(counts)
        phrase, places = np.concatenate([twos, threes]), np.concatenate([at, at3])
        length = np.repeat(np.array([2, 3], dtype=np.int32), [len(at), len(at3)])
        kept = np.flatnonzero(phrase >= 0)
        kept = kept[np.argsort(phrase[kept], kind="stable")]
        return cls(tokens, phrase[kept], places[kept], length[kept], np.concatenate([score, score3]))

    def where(self, mask: Array) -> _Candidates:
        """Return some of the candidates."""
        kept = mask[self.phrase]
        number = np.cumsum(mask) - 1
        return _Candidates(self.tokens, number[self.phrase[kept]], self.first[kept], self.length[kept], self.npmi[mask])

    def __len__(self) -> int:
        return len(self.npmi)

    @property
    def counts(self) -> Integers:
        """How often each candidate occurs."""
        return np.bincount(self.phrase, minlength=len(self))

    def documents(self) -> Any:
        """Return candidates x documents, CSR, with ones."""
        shape = len(self), self.tokens.n_documents
        ones = np.ones(len(self.phrase), dtype=np.float32)
        return _binary(sp.csr_array((ones, (self.phrase, self.tokens.document[self.first])), shape=shape))

    @property
    def n_documents(self) -> Array:
        """In how many documents each candidate occurs."""
        return np.diff(self.documents().indptr)

    def distinct_contexts(self) -> Array:
        """Return the number of distinct contexts of each candidate, as a share of its occurrences."""
        sampled = _sampled(self.phrase, self.counts)
        before, after = self._neighbors(sampled)
        contexts = _distinct_rows(self.phrase[sampled], before, after)[0]
        taken = np.bincount(self.phrase[sampled], minlength=len(self))
        return np.bincount(contexts, minlength=len(self)) / np.maximum(taken, 1)

    def near_stop_words(self) -> Array:
        """Return the share of the occurrences of each candidate with a stop word among two words before or after."""
        last = self.first + self.length - 1
        near = self.tokens.follows_stop[self.first] | self.tokens.precedes_stop[last]
        return np.bincount(self.phrase, near, len(self)) / np.maximum(self.counts, 1)

    def has_capitals(self) -> Array:
        """Return whether most occurrences of each candidate begin and end with words that usually have capitals."""
        has = self.tokens.has_capital[self.first] & self.tokens.has_capital[self.first + self.length - 1]
        return 2 * np.bincount(self.phrase, has, len(self)) > self.counts

    def largest_extension(self) -> Array:
        """Return the largest share of the occurrences of each candidate that have the same word before, or after."""
        tokens, everything = self.tokens, np.arange(len(self.phrase))
        last = self.first + self.length - 1
        before, after = self._neighbors(everything)
        # A stop word beside a phrase does not extend it.
        extends_before = ~tokens.starts_sentence[self.first] & tokens.is_content[np.maximum(self.first - 1, 0)]
        extends_after = tokens.joined[last] & tokens.is_content[np.minimum(last + 1, len(tokens.key) - 1)]
        largest = np.zeros(len(self))
        for neighbor, extends in ((before, extends_before), (after, extends_after)):
            phrase, _, count = _distinct_rows(self.phrase[extends], neighbor[extends])
            np.maximum.at(largest, phrase, count / self.counts[phrase])
        return largest

    def _neighbors(self, occurrences: Integers) -> tuple[Array, Array]:
        """Return the words before and after some occurrences; -1 at the ends of a document."""
        tokens, n = self.tokens, len(self.tokens.key)
        first = self.first[occurrences]
        after = first + self.length[occurrences]
        inside = np.minimum(after, n - 1)
        same_before = (first > 0) & (tokens.document[first - 1] == tokens.document[first])
        same_after = (after < n) & (tokens.document[inside] == tokens.document[first])
        return np.where(same_before, tokens.key[first - 1], -1), np.where(same_after, tokens.key[inside], -1)

    def names(self, written: Mapping[str, str]) -> list[str]:
        """Return each candidate as it is written most often; `written` has the words that usually have capitals.

        At the start of a sentence every word has a capital, so these occurrences count only if there are hardly any
        others. A capital at the start of a phrase is kept only if the first word usually has one or another word of the
        phrase has one.
        """
        form, forms, names = self.tokens.form, self.tokens.forms, [""] * len(self)
        third = np.where(self.length == 3, form[np.minimum(self.first + 2, len(form) - 1)], -1)
        weight = np.where(self.tokens.starts_sentence[self.first], 0.01, 1.0)
        rows = (self.phrase, form[self.first], form[self.first + 1], third)
        phrase, a, b, c, weights = _distinct_rows(*rows, weights=weight)
        for row in np.lexsort((c, b, a, weights)).tolist():  # the largest weight comes last
            parts = [forms[part] for part in (a[row], b[row], c[row]) if part >= 0]
            lowered, rest = self.tokens.lower[a[row]], " ".join(parts[1:])
            first = lowered if rest == rest.lower() and written.get(lowered) is None else parts[0]
            names[phrase[row]] = f"{first} {rest}"
        return names


def _broken(match: re.Match[str]) -> str:
    """Return the words of a text without neighbors, so that they are in no phrase and in no sentence."""
    return "\n.\n".join(["", *_WORDS.findall(match[0]), ""])


def _sampled(sorted_numbers: Array, counts: Integers) -> Integers:
    """Return the positions of at most _CONTEXTS occurrences of each number, evenly spaced."""
    rank, of = np.arange(len(sorted_numbers)) - (np.cumsum(counts) - counts)[sorted_numbers], counts[sorted_numbers]
    return np.flatnonzero((of <= _CONTEXTS) | (rank * _CONTEXTS // of != (rank - 1) * _CONTEXTS // of))


def _numbered(keys: Integers, places: Integers, least: int) -> tuple[Integers, Integers, Integers]:
    """Number the keys that occur at least `least` times.

    Returns the number of each key (-1 for rare keys), how often each number occurs, and its first position.
    """
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    kept = counts >= least
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    return number[inverse], counts[kept], places[first[kept]]


def _distinct_rows(*columns: Array, weights: Array | None = None) -> list[Array]:
    """Return the distinct rows of some columns, and the sum of the weights of each (None: their number)."""
    order = np.lexsort(columns[::-1])
    ordered = [np.asarray(column)[order] for column in columns]
    new = np.ones(len(order), dtype=bool)
    if len(order):
        new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in ordered])
    number = np.cumsum(new) - 1
    sums = np.bincount(number, None if weights is None else weights[order], int(new.sum()))
    return [*(column[new] for column in ordered), sums]


def _binary(matrix: Any) -> Any:
    """Return a CSR array with ones where the matrix is not zero."""
    csr = sp.csr_array(matrix)
    csr.sum_duplicates()
    return sp.csr_array((np.ones(len(csr.data), dtype=np.float32), csr.indices, csr.indptr), csr.shape)
