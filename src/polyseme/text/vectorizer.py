"""The end of counting, as scikit-learn does it: which words are kept, and what kind of matrix comes out.

`Vectorizer`: scikit-learn's CountVectorizer, with its counts, compiled; and with languages and phrases.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils._param_validation import Interval, RealNotInt

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels.threads import effective_threads
from polyseme.metrics.coherence import TokenSequences
from polyseme.text import saving
from polyseme.text.languages import (
    DEFAULT_THRESHOLD,
    OTHER,
    Language,
    Pair,
    Totals,
    TotalsByStem,
    detect_language,
    find_phrases,
    join_phrases,
    language_of,
    named,
    splitting_of_language,
    splitting_of_scikit_learn,
    stems_of,
    takes_any_type,
)
from polyseme.text.tokens import Columns, Integers, Sequences, Splitting, Tally, batches, refuse_one_string
from polyseme.utils import check_n_jobs

_YEARS = range(1000, 2100)


def is_number(word: str) -> bool:
    """Whether a word consists of decimal digits alone and is not a year."""
    return word.isdecimal() and not (len(word) == 4 and int(word) in _YEARS)


def frequent(settings: Any, tokens: Integers, documents: Integers, n_documents: int, *, allowed: Any) -> Any:
    """A mask of the allowed words that max_df, min_df and max_features of a CountVectorizer keep.

    tokens, documents : how often each word occurs, and in how many of the n_documents.
    """
    highest = settings.max_df * (1 if isinstance(settings.max_df, Integral) else n_documents)
    lowest = settings.min_df * (1 if isinstance(settings.min_df, Integral) else n_documents)
    if not allowed.any():
        raise ValueError("empty vocabulary; the documents only contain numbers and stop words")
    if highest < lowest:
        raise ValueError("max_df corresponds to < documents than min_df")
    kept = allowed & (documents <= highest) & (documents >= lowest)
    if settings.max_features is not None and kept.sum() > settings.max_features:
        totals = documents if settings.binary else tokens
        totals = totals.astype(sp.csr_array((1, 1), dtype=settings.dtype).sum(axis=0).dtype)
        top = np.flatnonzero(kept)[(-totals[kept]).argsort()[: settings.max_features]]
        kept = np.zeros(len(kept), dtype=bool)
        kept[top] = True
    if not kept.any():
        raise ValueError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
    return kept


def with_sorted_rows(counts: Any) -> Any:
    """The same CSR matrix; each row's columns in order."""
    counts.sort_indices()
    return counts


def as_scikit_learn_returns_it(counts: sp.csr_array) -> Any:
    """A sparse array or a sparse matrix, as the installed scikit-learn is configured."""
    try:
        from sklearn.utils._sparse import _align_api_if_sparse
    except ImportError:
        return sp.csr_matrix(counts)
    return _align_api_if_sparse(counts)


_DEFAULT_PATTERN = CountVectorizer().token_pattern
_FITTED = ("language_", "forms_", "shown_", "phrases_")


class Vectorizer(CountVectorizer):
    r"""Counts of words (documents x words), as scikit-learn's CountVectorizer gives them, many times as fast.

    With the default arguments, and with any that CountVectorizer has, the counts, the vocabulary and its order are
    exactly CountVectorizer's. All is compiled and threaded for the default `token_pattern` and others of one set of
    characters (such as `\b[a-z]{3,}\b` or `[^\W\d_]+`), and for the analyzers "char" and "char_wb". A `tokenizer`, a
    `preprocessor`, `strip_accents` or another pattern runs in Python, before the compiled counting; a callable
    `analyzer` is left to scikit-learn.

    Documents may be any iterable; a stream is read a few megabytes at a time. A document is a string (or bytes, a file
    or its name: see `input`), or any object that the `preprocessor` or, with `lowercase=False`, the `tokenizer` takes.

    Parameters
    ----------
    language : None, a language of `polyseme.text.LANGUAGES` by name or ISO code, or "auto" to guess it from the first
        documents. With a language, words are whole with their combining marks (also Thai and Indic ones); Chinese and
        Japanese are counted by pairs of characters, unless there is a `tokenizer`; the language's stop words are left
        out (unless `stop_words` says otherwise: [] for none) and its Snowball stemmer is applied.
    stem : whether words of a language are stemmed. Each stem is shown by its most frequent form.
    phrases : True, or a threshold between 0 and 1: neighbors whose NPMI reaches it (True: 0.5), and that occur ten
        times, become one word, such as "san_francisco".
    keep_numbers : whether words of digits alone are counted. None counts them without a language and leaves them out
        with one. Years from 1000 to 2099 are always counted.
    extra_stop_words : words to leave out besides `stop_words`, or None. With stems, a word leaves out all forms of its
        stem.
    n_jobs : threads; None for all cores this process may use. Results do not depend on it.
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, stop_words, token_pattern,
    ngram_range, analyzer, max_df, min_df, max_features, vocabulary, binary, dtype : as CountVectorizer's.

    Attributes
    ----------
    vocabulary_ : column of each word.
    fixed_vocabulary_ : whether the vocabulary was given.
    language_ : name of the language that was used, None without one.
    forms_ : stem of each form that was met, and shown_ : form that each stem is shown by (with a language).
    phrases_ : the pairs that were joined, a list for each of two rounds.
    """

    shown_: dict[str, str]
    forms_: dict[str, str]
    phrases_: list[list[Pair]]

    _parameter_constraints = {  # noqa: RUF012
        **CountVectorizer._parameter_constraints,
        "language": [str, None],
        "stem": ["boolean"],
        "phrases": ["boolean", Interval(RealNotInt, 0, 1, closed="both")],
        "keep_numbers": ["boolean", None],
        "extra_stop_words": ["array-like", set, frozenset, None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        input: str = "content",
        encoding: str = "utf-8",
        decode_error: str = "strict",
        strip_accents: Any = None,
        lowercase: bool = True,
        preprocessor: Any = None,
        tokenizer: Any = None,
        stop_words: Any = None,
        token_pattern: str | None = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: Any = "word",
        max_df: float = 1.0,
        min_df: float = 1,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        dtype: Any = np.int64,
        language: str | None = None,
        stem: bool = True,
        phrases: bool | float = False,
        keep_numbers: bool | None = None,
        extra_stop_words: Iterable[str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            input=input, encoding=encoding, decode_error=decode_error, strip_accents=strip_accents, lowercase=lowercase,
            preprocessor=preprocessor, tokenizer=tokenizer, stop_words=stop_words, token_pattern=token_pattern,
            ngram_range=ngram_range, analyzer=analyzer, max_df=max_df, min_df=min_df, max_features=max_features,
            vocabulary=vocabulary, binary=binary, dtype=dtype,
        )  # fmt: skip
        self.language = language
        self.stem = stem
        self.phrases = phrases
        self.keep_numbers = keep_numbers
        self.extra_stop_words = extra_stop_words
        self.n_jobs = n_jobs

    def fit(self, raw_documents: Iterable[Any], y: Any = None) -> Self:
        """Learns the vocabulary of the documents; their counts are not kept."""
        self._learn_whole_or_not(raw_documents, keep=False)
        return self

    def fit_transform(self, raw_documents: Iterable[Any], y: Any = None) -> Any:
        """Learns the vocabulary, and returns the counts (documents x words, CSR, sorted)."""
        return self._learn_whole_or_not(raw_documents, keep=True)

    def transform(self, raw_documents: Iterable[Any]) -> Any:
        """The counts (documents x words) of the words that the vocabulary has."""
        refuse_one_string(raw_documents)
        self._check_vocabulary()
        if self._is_left_to_scikit_learn():
            return with_sorted_rows(super().transform(raw_documents))
        language = self._fitted_language()
        splitting = self._splitting(language)
        documents = self._batches(raw_documents)
        words: Sequence[str | None]
        if self._needs_order(language):
            sequences, names = self._in_order(documents, splitting, language)
            tally = sequences.tally(names, self.ngram_range, keep=True)
            words = tally.words()
        else:
            tally = self._tally(documents, splitting, keep=True)
            words = self._known_forms(tally.words(), language)
        return self._known_counts(tally, words)

    def sequences(self, raw_documents: Iterable[Any]) -> TokenSequences:
        """The words of each document in their order, as columns of the vocabulary: for coherence in windows of text.

        A word outside the vocabulary keeps its place, as -1; stop words have none.
        """
        refuse_one_string(raw_documents)
        if self.analyzer != "word" or tuple(self.ngram_range) != (1, 1):
            raise UnsupportedError("Sequences are of single words: leave analyzer='word' and ngram_range=(1, 1).")
        self._check_vocabulary()
        language = self._fitted_language()
        documents = self._batches(raw_documents)
        sequences, names = self._in_order(documents, self._splitting(language), language)
        return sequences.columns(np.array([self.vocabulary_.get(name, -1) for name in names], dtype=np.int32))

    def build_analyzer(self) -> Any:
        """A function from a document to its words, as in scikit-learn; not with a language or phrases."""
        if self.language is not None or self.phrases is not False:
            raise UnsupportedError("With language or phrases there is no analyzer of single documents: use transform.")
        return super().build_analyzer()

    def to_dict(self) -> dict[str, Any]:
        """The fitted vectorizer as plain data for JSON: parameters, vocabulary, forms, phrases."""
        self._check_vocabulary()
        return saving.to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, trust_pattern: bool = False) -> Vectorizer:
        """The vectorizer that `to_dict` described: it counts the same.

        Every field is checked, so that the data may come from a file of somebody else.

        trust_pattern : whether to accept any `token_pattern`. A regular expression can take exponential time, so one
            that is not a run of one set of characters (such as the default) is an error otherwise.
        """
        return saving.from_dict(cls, data, trust_pattern=trust_pattern)

    # the three ways to count

    def _learn_whole_or_not(self, raw_documents: Iterable[Any], *, keep: bool) -> Any:
        """A fit that fails leaves the vectorizer as it was."""
        before = dict(self.__dict__)
        try:
            return self._learn(raw_documents, keep=keep)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _learn(self, raw_documents: Iterable[Any], *, keep: bool) -> Any:
        refuse_one_string(raw_documents)
        self._validate_params()
        self._refuse_what_does_not_fit_together()
        for name in _FITTED:
            self.__dict__.pop(name, None)
        if self._is_left_to_scikit_learn():
            return with_sorted_rows(super().fit_transform(raw_documents))
        self._validate_ngram_range()
        self._warn_for_unused_params()
        self._validate_vocabulary()
        self._warn_of_upper_case()
        documents = self._batches(raw_documents)
        language, documents = self._chosen_language(documents)
        splitting = self._splitting(language)
        self.language_ = None if language is None else language.name
        words: Sequence[str | None]
        tally: Totals
        if self._needs_order(language):
            tally, words = self._learn_in_order(self._sequences(documents, splitting), language, keep)
        elif language is None:
            tally = self._tally(documents, splitting, keep=keep)
            words = tally.words()
        elif keep or self.fixed_vocabulary_:
            tally, words = self._learn_stems(self._tally(documents, splitting, keep=True), language)
        else:
            tally, words = self._learn_stems_by_parts(documents, splitting, language)
        return self._kept_counts(tally, words, keep)

    def _learn_stems_by_parts(
        self, documents: Iterator[list[str]], splitting: Splitting, language: Language
    ) -> tuple[Totals, Sequence[str]]:
        """The same without counts of all documents: a batch is counted, added up and let go."""
        totals = TotalsByStem(partial(stems_of, language=language) if self.stem else list)
        for batch in documents:
            totals.add(self._tally(iter([batch]), splitting, keep=True))
        names, self.shown_, self.forms_ = totals.named()
        return totals, names

    def _learn_stems(self, tally: Tally, language: Language) -> tuple[Tally, Sequence[str | None]]:
        """Words counted by their stems; a document with two forms of a stem has it once, with both counts."""
        forms = tally.words()
        stems = self._stems(forms, language)
        if self.fixed_vocabulary_:
            self._name_fixed_vocabulary(language)
            self.forms_ = {form: stem for form, stem in zip(forms, stems, strict=True) if stem in self.shown_}
            return tally, [self.shown_.get(stem) for stem in stems]
        names, numbers, stems_of_names = named(forms, tally.totals(len(forms))[0], stems)
        self.shown_ = dict(zip(stems_of_names, names, strict=True))
        self.forms_ = dict(zip(forms, stems, strict=True))
        tally.renumber(numbers)
        return tally, names

    def _learn_in_order(self, sequences: Sequences, language: Language | None, keep: bool) -> tuple[Tally, list[str]]:
        """Stems first, then phrases, then runs of words."""
        names = sequences.words()
        if language is not None:
            stems = self._stems(names, language)
            self.forms_ = dict(zip(names, stems, strict=True))
            names, numbers, stems_of_names = named(names, sequences.totals(len(names)), stems)
            self.shown_ = dict(zip(stems_of_names, names, strict=True))
            sequences.renumber(numbers)
        self.phrases_ = []
        if self.phrases is not False:
            threshold = DEFAULT_THRESHOLD if self.phrases is True else float(self.phrases)
            names, self.phrases_ = find_phrases(sequences, names, threshold)
        tally = sequences.tally(names, self.ngram_range, keep=keep)
        return tally, tally.words()

    def _name_fixed_vocabulary(self, language: Language) -> None:
        terms = list(self.vocabulary_)
        self.shown_ = dict(zip(self._stems(terms, language), terms, strict=True))
        if len(self.shown_) < len(terms):
            twins = sorted(set(terms) - set(self.shown_.values()))
            raise InputError(f"vocabulary has several forms of one stem, such as {twins[0]!r}: keep one of them.")

    def _known_forms(self, forms: list[str], language: Language | None) -> Sequence[str | None]:
        """The name that each form counts for; None where its stem is not known."""
        if language is None:
            return forms
        return [self.shown_.get(stem) for stem in self._stems(forms, language)]

    def _in_order(
        self, documents: Iterator[list[str]], splitting: Splitting, language: Language | None
    ) -> tuple[Sequences, list[str]]:
        """The words of the documents in their order, and the name of each number."""
        sequences = self._sequences(documents, splitting)
        names = self._known_names(sequences, language)
        for pairs in getattr(self, "phrases_", ()):
            names = join_phrases(sequences, names, pairs)
        return sequences, names

    def _known_names(self, sequences: Sequences, language: Language | None) -> list[str]:
        """The names of the sequences' words, with forms of one stem made one; an unknown word keeps its own name."""
        forms = sequences.words()
        if language is None:
            return forms
        stems = self._stems(forms, language)
        named_forms = [self.shown_.get(stem, form) for form, stem in zip(forms, stems, strict=True)]
        names = sorted(set(named_forms))
        place = {name: number for number, name in enumerate(names)}
        sequences.renumber(np.fromiter((place[name] for name in named_forms), dtype=np.int32, count=len(forms)))
        return names

    def _stems(self, forms: list[str], language: Language) -> list[str]:
        """The stem of each form; those that the fit has met need no stemmer."""
        if not self.stem:
            return forms
        known = getattr(self, "forms_", None)
        if not known:
            return stems_of(forms, language)
        new = [form for form in forms if form not in known]
        stems = dict(zip(new, stems_of(new, language), strict=True))
        return [known[form] if form in known else stems[form] for form in forms]

    # matrices

    def _kept_counts(self, tally: Any, words: Sequence[Any], keep: bool) -> Any:
        """The counts without the words that are too rare or too common, as scikit-learn leaves them out."""
        if self.fixed_vocabulary_:
            return self._known_counts(tally, words) if keep else None
        if not words:
            raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
        tokens, documents = tally.totals(len(words))
        kept = frequent(self, tokens, documents, tally.n_documents, allowed=self._allowed(words))
        columns: Columns = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        names = words if kept.all() else [words[word] for word in np.flatnonzero(kept).tolist()]
        self.vocabulary_ = dict(zip(names, range(len(names)), strict=True))
        if hasattr(self, "forms_") and not hasattr(self, "phrases_") and not kept.all():
            self.shown_ = {stem: name for stem, name in self.shown_.items() if name in self.vocabulary_}
            self.forms_ = {form: stem for form, stem in self.forms_.items() if stem in self.shown_}
        return self._matrix(tally, columns) if keep else None

    def _allowed(self, words: Sequence[str]) -> Any:
        """A mask of the words that are neither numbers to leave out nor extra stop words."""
        allowed = np.ones(len(words), dtype=bool)
        if self.keep_numbers is False or (self.keep_numbers is None and self.language_ is not None):
            allowed &= np.fromiter((not is_number(word) for word in words), dtype=bool, count=len(words))
        if self.extra_stop_words is not None:
            language = None if self.language_ is None else language_of(self.language_)
            stops = [word.lower() if self.lowercase else word for word in self.extra_stop_words]
            if language is not None:
                stems = self._stems([language.prepared(word, self.lowercase) for word in stops], language)
                stops += [self.shown_[stem] for stem in stems if stem in self.shown_]
            left_out = frozenset(stops)
            allowed &= np.fromiter((word not in left_out for word in words), dtype=bool, count=len(words))
        return allowed

    def _known_counts(self, tally: Tally, words: Sequence[str | None]) -> Any:
        columns = (self.vocabulary_.get(word, -1) for word in words)
        return self._matrix(tally, np.fromiter(columns, dtype=np.int32, count=len(words)))

    def _matrix(self, tally: Tally, columns: Columns) -> Any:
        tally.renumber(columns)
        counts = tally.matrix(len(self.vocabulary_), self.dtype)
        if self.binary:
            counts.data.fill(1)
        return as_scikit_learn_returns_it(counts)

    # how documents become words

    def _batches(self, raw_documents: Iterable[Any]) -> Iterator[list[Any]]:
        return batches(
            raw_documents, self.decode, strings_are_texts=self.input == "content", any_type=takes_any_type(self)
        )

    def _is_left_to_scikit_learn(self) -> bool:
        return callable(self.analyzer) or self.ngram_range[0] < 1

    def _needs_order(self, language: Language | None) -> bool:
        """Whether the words' order must be kept until their stems or phrases are known."""
        return self.phrases is not False or (language is not None and tuple(self.ngram_range) != (1, 1))

    def _tally(self, documents: Iterator[list[str]], splitting: Splitting, *, keep: bool) -> Tally:
        tally = Tally(splitting, self.ngram_range, keep=keep, n_threads=effective_threads(check_n_jobs(self.n_jobs)))
        for batch in documents:
            tally.add(batch)
        return tally

    def _sequences(self, documents: Iterator[list[str]], splitting: Splitting) -> Sequences:
        sequences = Sequences(splitting, n_threads=effective_threads(check_n_jobs(self.n_jobs)))
        for batch in documents:
            sequences.add(batch)
        return sequences

    def _splitting(self, language: Language | None) -> Splitting:
        if language is not None:
            return splitting_of_language(self, language)
        super().build_analyzer()  # scikit-learn's own checks of the pattern and the stop words
        return splitting_of_scikit_learn(self)

    def _fitted_language(self) -> Language | None:
        if self.language is None and self.phrases is False:
            return None
        if not hasattr(self, "language_"):
            raise NotFittedError("With language or phrases a Vectorizer must be fitted first: call fit.")
        return None if self.language_ is None else language_of(self.language_)

    def _chosen_language(self, documents: Iterator[list[str]]) -> tuple[Language | None, Iterator[list[str]]]:
        """The language to count by, and all the documents, of which some may have been looked at."""
        if self.language is None:
            return None, documents
        if self.language != "auto":
            return language_of(self.language), documents
        first = list(islice(documents, 1))
        return detect_language(list(chain.from_iterable(first))), chain(first, documents)

    # checks

    def _refuse_what_does_not_fit_together(self) -> None:
        if self.keep_numbers is False or self.extra_stop_words is not None:
            if self.analyzer != "word":
                raise UnsupportedError("keep_numbers and extra_stop_words are for words: leave analyzer='word'.")
            if self.vocabulary is not None:
                raise InputError("keep_numbers and extra_stop_words change the vocabulary: do not give one as well.")
            given = self.extra_stop_words
            if isinstance(given, str) or not all(isinstance(word, str) for word in given or ()):
                raise InputError("extra_stop_words must be a list of strings.")
        if self.language is None and self.phrases is False:
            return
        if self.analyzer != "word":
            raise UnsupportedError("language and phrases are for words: leave analyzer='word'.")
        if self.language is None:
            return
        if self.language != "auto":
            language_of(self.language)
        if self.tokenizer is None and self.token_pattern != _DEFAULT_PATTERN:
            raise UnsupportedError("A language has its own words: leave token_pattern as it is, or give a tokenizer.")
        if self.vocabulary is not None and self._needs_order(OTHER):
            raise UnsupportedError(
                "With a language, a given vocabulary is for single words: leave ngram_range=(1, 1) and phrases=False."
            )

    def _warn_of_upper_case(self) -> None:
        if self.fixed_vocabulary_ and self.lowercase and any(any(map(str.isupper, term)) for term in self.vocabulary):
            warnings.warn(
                "Upper case characters found in vocabulary while 'lowercase' is True. "
                "These entries will not be matched with any documents",
                stacklevel=5,
            )
