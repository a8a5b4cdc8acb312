"""Texts in scikit-learn: `Vectorizer` counts their words, `make_pipeline` passes counts and words to a model.

`Vectorizer` is CountVectorizer with compiled counting, languages and phrases. Its `fit` and `transform` count in one of
three ways:

- Without a language and phrases, the compiled `WordCounter` counts the tokens that scikit-learn would find.
- With a language, tokens are counted first, and the counts of all forms of a stem are added.
- With phrases, or with a language and n-grams, `WordSequences` stores the words of all documents in order, because
  stems and phrases must be known before n-grams can be counted.

A callable `analyzer` and n-grams of length zero are left to CountVectorizer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from numbers import Integral
from os import PathLike
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn import pipeline
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils.validation import check_is_fitted

from polyseme.errors import InputError, UnsupportedError
from polyseme.io import models
from polyseme.io.files import OBJECT, TEXT, Check, check_fields, list_of
from polyseme.kernels import SparseCounts
from polyseme.metrics.coherence import TokenSequences
from polyseme.text.languages import (
    DEFAULT_PHRASE_THRESHOLD,
    DETECTION_SIZE,
    OTHER,
    Language,
    Pair,
    StemTotals,
    VocabularyTotals,
    accepts_any_type,
    detect_language,
    find_phrases,
    get_language,
    language_token_rules,
    name_stems,
    scikit_learn_token_rules,
    stem_words,
)
from polyseme.text.phrases import Phrases, find_topic_phrases
from polyseme.text.sklearn_pipeline import Pipeline
from polyseme.text.tokens import (
    Columns,
    Integers,
    TokenRules,
    WordCounter,
    WordSequences,
    batches,
    check_not_one_string,
)
from polyseme.text.words import DEFAULT_PATTERN, WordRules, from_dict, is_plain_pattern, known_stems, to_dict
from polyseme.utils import check_n_jobs, effective_threads

_YEARS = range(1000, 2100)
_FITTED_ATTRIBUTES = ("language_", "languages_", "forms_", "shown_", "phrases_")


class Vectorizer(CountVectorizer):
    r"""Word counts (documents x words) that equal those of scikit-learn's CountVectorizer, computed much faster.

    With the parameters of CountVectorizer, the counts, the vocabulary and its order are exactly those of
    CountVectorizer. Tokens are found by compiled, threaded code for the default `token_pattern`, for other patterns
    that repeat one set of characters (such as `\b[a-z]{3,}\b` or `[^\W\d_]+`), and for the analyzers "char" and
    "char_wb". A `tokenizer`, a `preprocessor`, `strip_accents` or another pattern runs in Python before the compiled
    counting. A callable `analyzer` is left to scikit-learn.

    Documents may be any iterable; a stream is read a few megabytes at a time. A document is a string (or bytes, a file
    or a file name: see `input`), or any object that the `preprocessor` or, with `lowercase=False`, the `tokenizer`
    accepts.

    Parameters
    ----------
    input : {"filename", "file", "content"}, default="content"
        What a document is: the name of a file, an open file, or its content.
    encoding : str, default="utf-8"
        Encoding of documents that are bytes or files.
    decode_error : {"strict", "ignore", "replace"}, default="strict"
        What to do with bytes that cannot be decoded.
    strip_accents : {"ascii", "unicode"} or callable, default=None
        Remove accents before words are split.
    lowercase : bool, default=True
        Whether to convert documents to lower case.
    preprocessor : callable, default=None
        Function that replaces `strip_accents` and `lowercase`.
    tokenizer : callable, default=None
        Function from a document to its words.
    stop_words : {"english"} or list, default=None
        Words that are not counted. With None, a `language` uses its own list, and [] counts all words.
    token_pattern : str, default=r"(?u)\b\w\w+\b"
        Regular expression of a word.
    ngram_range : tuple (min_n, max_n), default=(1, 1)
        Lengths of the n-grams that are counted.
    analyzer : {"word", "char", "char_wb"} or callable, default="word"
        Whether to count words or n-grams of characters.
    max_df : float or int, default=1.0
        Ignore words that occur in more documents than this share (float) or number (int).
    min_df : float or int, default=1
        Ignore words that occur in fewer documents than this share (float) or number (int).
    max_features : int, default=None
        Keep only this many words: those with the most tokens.
    vocabulary : mapping or iterable, default=None
        The words to count. None learns them from the documents.
    binary : bool, default=False
        Whether to set all counts that are not zero to one.
    dtype : dtype, default=np.int64
        Type of the counts.
    language : str, default=None
        A name or ISO code of `polyseme.text.LANGUAGES`, several joined by "+" ("english+italian": the rules of English,
        the stop words of both), or "auto" to detect the languages of the documents. With a
        language, combining marks belong to words (also in Thai and Indic scripts), Chinese and Japanese text is counted
        in pairs of characters unless there is a `tokenizer`, the stop words of the language are not counted (see
        `stop_words`), and its Snowball stemmer is applied.
    stem : bool, default=True
        Whether to count all forms of a stem as one word, if there is a language. The most frequent form is shown.
    phrases : bool or float, default=False
        Threshold between 0 and 1 (True: 0.5). Two adjacent words whose NPMI reaches the threshold and that occur
        together at least ten times are counted as one word, such as "san_francisco".
    keep_numbers : bool, default=None
        Whether to count words that consist of digits. None counts them only without a language. Years from 1000 to 2099
        are always counted.
    extra_stop_words : iterable of str, default=None
        Words that are not counted, in addition to `stop_words`. With stems, all forms of the word's stem are removed.
    n_jobs : int, default=None
        Number of threads. None uses all cores that this process may use. Results do not depend on it.

    Attributes
    ----------
    vocabulary_ : dict
        Column of each word.
    fixed_vocabulary_ : bool
        Whether the vocabulary was given by the user.
    language_ : str or None
        Name of the language that was used. "english+italian" has the rules of English and the stop words of both.
    languages_ : dict of str to float
        Shares of documents by language, with "other" for unknown ones, in a sample. Only if the language was detected.
    forms_ : dict
        Stem of each form in the documents. Only with a language.
    shown_ : dict
        The form by which each stem is shown. Only with a language.
    phrases_ : list of lists of tuples
        The pairs of words that were joined in each of the two rounds.

    Examples
    --------
    >>> from polyseme.text import Vectorizer
    >>> words = Vectorizer()
    >>> words.fit_transform(["red fish", "blue fish"]).toarray()
    array([[0, 1, 1],
           [1, 1, 0]])
    >>> words.get_feature_names_out().tolist()
    ['blue', 'fish', 'red']
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
        """Learn the vocabulary of the documents without storing their counts.

        Parameters
        ----------
        raw_documents : iterable
            The documents.
        y : None
            Ignored.

        Returns
        -------
        Vectorizer
            This object.

        Examples
        --------
        >>> from polyseme.text import Vectorizer
        >>> texts = ["The cats sleep.", "A cat and a dog", "The dog barks."]
        >>> Vectorizer(language="english").fit(texts).get_feature_names_out()
        array(['barks', 'cat', 'dog', 'sleep'], dtype=object)
        """
        self._fit_or_restore(raw_documents, return_counts=False)
        return self

    def fit_transform(self, raw_documents: Iterable[Any], y: Any = None) -> Any:
        """Learn the vocabulary of the documents and return their counts.

        Parameters
        ----------
        raw_documents : iterable
            The documents.
        y : None
            Ignored.

        Returns
        -------
        sparse matrix of shape (n_documents, n_words)
            Counts in CSR format with sorted columns.

        Examples
        --------
        >>> from polyseme.text import Vectorizer
        >>> texts = ["The cats sleep.", "A cat and a dog", "The dog barks."]
        >>> counter = Vectorizer()
        >>> X = counter.fit_transform(texts)
        >>> X.shape, int(X.sum())
        ((3, 7), 9)
        """
        return self._fit_or_restore(raw_documents, return_counts=True)

    def transform(self, raw_documents: Iterable[Any]) -> Any:
        """Count the words of the vocabulary in documents.

        Parameters
        ----------
        raw_documents : iterable
            The documents.

        Returns
        -------
        sparse matrix of shape (n_documents, n_words)
            Counts in CSR format with sorted columns. Unknown words are not counted.

        Examples
        --------
        >>> from polyseme.text import Vectorizer
        >>> texts = ["The cats sleep.", "A cat and a dog", "The dog barks."]
        >>> counter = Vectorizer(language="english").fit(texts)
        >>> counter.transform(["Dogs and dogs"]).toarray()
        array([[0, 0, 2, 0]])
        """
        check_not_one_string(raw_documents)
        self._check_vocabulary()
        if self._uses_scikit_learn():
            return _sort_rows(super().transform(raw_documents))
        return _as_scikit_learn_sparse(self._word_rules().count(self._batches(raw_documents)))

    def sequences(self, raw_documents: Iterable[Any]) -> TokenSequences:
        """Return the words of each document in order, for coherence in windows of text.

        Parameters
        ----------
        raw_documents : iterable
            The documents.

        Returns
        -------
        TokenSequences
            Columns of the vocabulary. A word outside the vocabulary is -1; stop words are removed.
        """
        check_not_one_string(raw_documents)
        if self.analyzer != "word" or tuple(self.ngram_range) != (1, 1):
            raise UnsupportedError("Sequences consist of single words: keep analyzer='word' and ngram_range=(1, 1).")
        self._check_vocabulary()
        sequences, names = self._word_rules().known_sequences(self._batches(raw_documents))
        return sequences.columns(np.array([self.vocabulary_.get(name, -1) for name in names], dtype=np.int32))

    def find_phrases(self, raw_documents: Iterable[str]) -> Phrases:
        """Return the phrases of documents as they are written, for the names of topics.

        Parameters
        ----------
        raw_documents : iterable of str
            The documents.

        Returns
        -------
        Phrases
            Phrases of two or three words, the documents that contain them, and the words of the vocabulary in them.
        """
        check_not_one_string(raw_documents)
        if self.analyzer != "word":
            raise UnsupportedError("Phrases consist of words: keep analyzer='word'.")
        self._check_vocabulary()
        return find_topic_phrases(self._word_rules(), raw_documents, frozenset(self.extra_stop_words or ()))

    def build_analyzer(self) -> Any:
        """Return scikit-learn's function from a document to its words.

        Returns
        -------
        callable
            The analyzer.

        Raises
        ------
        UnsupportedError
            With a language or phrases, which depend on all documents.
        """
        if self.language is not None or self.phrases is not False:
            raise UnsupportedError("With language or phrases there is no analyzer of single documents: use transform.")
        return super().build_analyzer()

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted vectorizer as plain data for JSON.

        Returns
        -------
        dict
            Parameters, vocabulary, forms and phrases.

        Examples
        --------
        >>> from polyseme.text import Vectorizer
        >>> texts = ["The cats sleep.", "A cat and a dog", "The dog barks."]
        >>> import json
        >>> counter = Vectorizer().fit(texts)
        >>> rules = json.loads(json.dumps(counter.to_dict()))
        >>> Vectorizer.from_dict(rules).vocabulary_ == counter.vocabulary_
        True
        """
        self._check_vocabulary()
        return to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, trust_pattern: bool = False) -> Vectorizer:
        """Rebuild a vectorizer from the result of `to_dict`.

        Every field is checked, so the data may come from a file that somebody else wrote.

        Parameters
        ----------
        data : dict
            The result of `to_dict`.
        trust_pattern : bool, default=False
            Whether to accept any `token_pattern`. A regular expression can take exponential time, so by default a
            pattern must repeat one set of characters, as the default pattern does.

        Returns
        -------
        Vectorizer
            A fitted vectorizer that returns the same counts.

        Examples
        --------
        >>> from polyseme.text import Vectorizer
        >>> texts = ["The cats sleep.", "A cat and a dog", "The dog barks."]
        >>> counter = Vectorizer().fit(texts)
        >>> Vectorizer.from_dict(counter.to_dict()).get_feature_names_out()
        array(['and', 'barks', 'cat', 'cats', 'dog', 'sleep', 'the'], dtype=object)
        """
        return from_dict(cls, data, trust_pattern=trust_pattern)

    def _fit_or_restore(self, raw_documents: Iterable[Any], *, return_counts: bool) -> Any:
        """Fit, and restore all attributes if that fails."""
        before = dict(self.__dict__)
        try:
            return self._fit(raw_documents, return_counts=return_counts)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, raw_documents: Iterable[Any], *, return_counts: bool) -> Any:
        check_not_one_string(raw_documents)
        self._validate_params()
        self._check_combinations()
        for name in _FITTED_ATTRIBUTES:
            self.__dict__.pop(name, None)
        if self._uses_scikit_learn():
            return _sort_rows(super().fit_transform(raw_documents))
        self._validate_ngram_range()
        self._warn_for_unused_params()
        self._validate_vocabulary()
        self._warn_of_upper_case()
        documents = self._batches(raw_documents)
        language, documents = self._choose_language(documents)
        rules = self._token_rules(language)
        self.language_ = None if language is None else language.name
        words: Sequence[str | None]
        totals: VocabularyTotals
        if self._needs_order(language):
            totals, words = self._fit_sequences(self._sequences(documents, rules), language, return_counts)
        elif language is None:
            totals = counter = self._count(documents, rules, per_document=return_counts)
            words = counter.words()
        elif return_counts or self.fixed_vocabulary_:
            totals, words = self._fit_stems(self._count(documents, rules, per_document=True), language)
        else:
            totals, words = self._fit_stems_by_batch(documents, rules, language)
        return self._prune(totals, words, return_counts)

    def _fit_stems(self, counter: WordCounter, language: Language) -> tuple[WordCounter, Sequence[str | None]]:
        """Learn the stems of all counted words, and add up the counts of the forms of a stem in each document."""
        forms = counter.words()
        stems = self._stems(forms, language)
        if self.fixed_vocabulary_:
            self._name_fixed_vocabulary(language)
            self.forms_ = {form: stem for form, stem in zip(forms, stems, strict=True) if stem in self.shown_}
            return counter, [self.shown_.get(stem) for stem in stems]
        names, numbers, stems_of_names = name_stems(forms, counter.totals(len(forms))[0], stems)
        self.shown_ = dict(zip(stems_of_names, names, strict=True))
        self.forms_ = dict(zip(forms, stems, strict=True))
        counter.renumber(numbers)
        return counter, names

    def _fit_stems_by_batch(
        self, documents: Iterator[list[str]], rules: TokenRules, language: Language
    ) -> tuple[VocabularyTotals, Sequence[str]]:
        """Learn the same stems as `_fit_stems`, but store only the counts of one batch at a time."""
        totals = StemTotals(partial(stem_words, language=language) if self.stem else list)
        for batch in documents:
            totals.add(self._count(iter([batch]), rules, per_document=True))
        names, self.shown_, self.forms_ = totals.name_stems()
        return totals, names

    def _fit_sequences(
        self, sequences: WordSequences, language: Language | None, per_document: bool
    ) -> tuple[WordCounter, list[str]]:
        """Learn stems, then phrases, then count n-grams."""
        names = sequences.words()
        if language is not None:
            stems = self._stems(names, language)
            self.forms_ = dict(zip(names, stems, strict=True))
            names, numbers, stems_of_names = name_stems(names, sequences.totals(len(names)), stems)
            self.shown_ = dict(zip(stems_of_names, names, strict=True))
            sequences.renumber(numbers)
        self.phrases_ = []
        if self.phrases is not False:
            threshold = DEFAULT_PHRASE_THRESHOLD if self.phrases is True else float(self.phrases)
            names, self.phrases_ = find_phrases(sequences, names, threshold)
        counter = sequences.count(names, self.ngram_range, per_document=per_document)
        return counter, counter.words()

    def _name_fixed_vocabulary(self, language: Language) -> None:
        terms = list(self.vocabulary_)
        self.shown_ = dict(zip(self._stems(terms, language), terms, strict=True))
        if len(self.shown_) < len(terms):
            repeated = sorted(set(terms) - set(self.shown_.values()))
            raise InputError(f"vocabulary has several forms of one stem, such as {repeated[0]!r}: keep one of them.")

    def _stems(self, forms: list[str], language: Language) -> list[str]:
        """Return the stem of each form. Only forms that were not in the fit need the stemmer."""
        if not self.stem:
            return forms
        return known_stems(forms, language, getattr(self, "forms_", {}))

    def _prune(self, totals: Any, words: Sequence[Any], return_counts: bool) -> Any:
        """Choose the vocabulary by max_df, min_df and max_features, and return the counts of its words."""
        if self.fixed_vocabulary_:
            return self._counts_of_vocabulary(totals, words) if return_counts else None
        if not words:
            raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
        tokens, documents = totals.totals(len(words))
        chosen = _frequency_mask(self, tokens, documents, totals.n_documents, allowed=self._allowed_mask(words))
        columns: Columns = np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32)
        names = words if chosen.all() else [words[word] for word in np.flatnonzero(chosen).tolist()]
        self.vocabulary_ = dict(zip(names, range(len(names)), strict=True))
        if hasattr(self, "forms_") and not hasattr(self, "phrases_") and not chosen.all():
            self.shown_ = {stem: name for stem, name in self.shown_.items() if name in self.vocabulary_}
            self.forms_ = {form: stem for form, stem in self.forms_.items() if stem in self.shown_}
        return self._matrix(totals, columns) if return_counts else None

    def _allowed_mask(self, words: Sequence[str]) -> Any:
        """Return a mask of the words that `keep_numbers` and `extra_stop_words` allow."""
        allowed = np.ones(len(words), dtype=bool)
        if self.keep_numbers is False or (self.keep_numbers is None and self.language_ is not None):
            allowed &= np.fromiter((not _is_number(word) for word in words), dtype=bool, count=len(words))
        if self.extra_stop_words is not None:
            language = None if self.language_ is None else get_language(self.language_)
            stops = [word.lower() if self.lowercase else word for word in self.extra_stop_words]
            if language is not None:
                stems = self._stems([language.normalize(word, self.lowercase) for word in stops], language)
                stops += [self.shown_[stem] for stem in stems if stem in self.shown_]
            excluded = frozenset(stops)
            allowed &= np.fromiter((word not in excluded for word in words), dtype=bool, count=len(words))
        return allowed

    def _counts_of_vocabulary(self, counter: WordCounter, words: Sequence[str | None]) -> Any:
        columns = (self.vocabulary_.get(word, -1) for word in words)
        return self._matrix(counter, np.fromiter(columns, dtype=np.int32, count=len(words)))

    def _matrix(self, counter: WordCounter, columns: Columns) -> Any:
        counter.renumber(columns)
        return _as_scikit_learn_sparse(counter.counts(len(self.vocabulary_), self.dtype, binary=self.binary))

    def _batches(self, raw_documents: Iterable[Any]) -> Iterator[list[Any]]:
        return batches(
            raw_documents, self.decode, strings_are_texts=self.input == "content", any_type=accepts_any_type(self)
        )

    def _uses_scikit_learn(self) -> bool:
        return callable(self.analyzer) or self.ngram_range[0] < 1

    def _needs_order(self, language: Language | None) -> bool:
        """Return whether the order of the words must be stored until stems or phrases are known."""
        return self.phrases is not False or (language is not None and tuple(self.ngram_range) != (1, 1))

    def _count(self, documents: Iterator[list[str]], rules: TokenRules, *, per_document: bool) -> WordCounter:
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        counter = WordCounter(rules, self.ngram_range, per_document=per_document, n_threads=n_threads)
        for batch in documents:
            counter.add(batch)
        return counter

    def _sequences(self, documents: Iterator[list[str]], rules: TokenRules) -> WordSequences:
        sequences = WordSequences(rules, n_threads=effective_threads(check_n_jobs(self.n_jobs)))
        for batch in documents:
            sequences.add(batch)
        return sequences

    def _token_rules(self, language: Language | None) -> TokenRules:
        if language is not None:
            return language_token_rules(self, language)
        super().build_analyzer()  # runs scikit-learn's own checks of the pattern and the stop words
        return scikit_learn_token_rules(self)

    def _word_rules(self) -> WordRules:
        """Return the rules that are known after a fit, or from a given vocabulary."""
        language = self._fitted_language()
        return WordRules(
            self._token_rules(language), self.vocabulary_, self.ngram_range, language, self.stem,
            getattr(self, "forms_", {}), getattr(self, "shown_", {}), getattr(self, "phrases_", ()),
            ordered=self._needs_order(language), binary=self.binary, dtype=self.dtype,
            n_threads=effective_threads(check_n_jobs(self.n_jobs)),
        )  # fmt: skip

    def _fitted_language(self) -> Language | None:
        if self.language is None and self.phrases is False:
            return None
        if not hasattr(self, "language_"):
            raise NotFittedError("With language or phrases a Vectorizer must be fitted first: call fit.")
        return None if self.language_ is None else get_language(self.language_)

    def _choose_language(self, documents: Iterator[list[str]]) -> tuple[Language | None, Iterator[list[str]]]:
        """Return the given or detected language, and an iterator over all documents."""
        if self.language is None:
            return None, documents
        if self.language != "auto":
            return get_language(self.language), documents
        first, size = list[list[str]](), 0
        for batch in documents:
            first.append(batch)
            size += sum(map(len, batch))
            if size >= DETECTION_SIZE:
                break
        language, self.languages_ = detect_language(list(chain.from_iterable(first)))
        return language, chain(first, documents)

    def _check_combinations(self) -> None:
        """Raise an error for parameters that cannot be combined."""
        if self.keep_numbers is False or self.extra_stop_words is not None:
            if self.analyzer != "word":
                raise UnsupportedError("keep_numbers and extra_stop_words are for words: keep analyzer='word'.")
            if self.vocabulary is not None:
                raise InputError("keep_numbers and extra_stop_words change the vocabulary: leave vocabulary out.")
            given = self.extra_stop_words
            if isinstance(given, str) or not all(isinstance(word, str) for word in given or ()):
                raise InputError("extra_stop_words must be a list of strings.")
        if self.language is None and self.phrases is False:
            return
        if self.analyzer != "word":
            raise UnsupportedError("language and phrases are for words: keep analyzer='word'.")
        if self.language is None:
            return
        if self.language != "auto":
            get_language(self.language)
        if self.tokenizer is None and self.token_pattern != DEFAULT_PATTERN:
            raise UnsupportedError(
                "A language has its own rules for words: leave token_pattern out, or give a tokenizer."
            )
        if self.vocabulary is not None and self._needs_order(OTHER):
            raise UnsupportedError(
                "With a language, a given vocabulary is for single words: keep ngram_range=(1, 1) and phrases=False."
            )

    def _warn_of_upper_case(self) -> None:
        if self.fixed_vocabulary_ and self.lowercase and any(any(map(str.isupper, term)) for term in self.vocabulary):
            warnings.warn(
                "Upper case characters found in vocabulary while 'lowercase' is True. "
                "These entries will not be matched with any documents",
                stacklevel=5,
            )


class TopicPipeline(Pipeline):
    """Pipeline of scikit-learn that also passes the words of the columns to its last step.

    A Pipeline passes counts from step to step, but not the words of their columns. After a fit, this class calls
    `set_vocabulary` of the last step with the result of `get_feature_names_out` of the steps before it. Then
    `pipeline[-1].topics()` shows words, and they are saved with the model. A pipeline of a Vectorizer and a model can
    be saved to one file.

    The parameters are those of Pipeline.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.text import Vectorizer, make_pipeline
    >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
    >>> pipe = make_pipeline(Vectorizer(), PLSA(2, random_state=0)).fit(texts)
    >>> list(pipe[-1].vocabulary_)
    ['and', 'bass', 'bread', 'cheese', 'drums', 'guitar', 'red', 'wine']
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit all steps, and pass the words to the last one.

        Parameters
        ----------
        X : iterable
            Input of the first step, such as texts.
        y : array-like, default=None
            Target of all steps.
        **params : dict
            Parameters of the steps, as in Pipeline.

        Returns
        -------
        TopicPipeline
            This object.
        """
        super().fit(X, y, **params)
        self._set_vocabulary()
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit all steps, pass the words to the last one, and return its result.

        Parameters
        ----------
        X : iterable
            Input of the first step, such as texts.
        y : array-like, default=None
            Target of all steps.
        **params : dict
            Parameters of the steps, as in Pipeline.

        Returns
        -------
        array of shape (n_documents, n_topics)
            Result of the last step.
        """
        transformed = super().fit_transform(X, y, **params)
        self._set_vocabulary()
        return transformed

    def set_output(self, *, transform: Any = None) -> Self:
        """Set what `transform` returns. Only the last step is set: counts of words stay sparse between the steps.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            Container of the result. None changes nothing.

        Returns
        -------
        TopicPipeline
            This object.
        """
        self[-1].set_output(transform=transform)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Save a fitted pipeline of a Vectorizer and a model to one file that `polyseme.load` reads.

        The file is written completely or not at all. `memory` and `verbose` are not saved.

        Parameters
        ----------
        path : str or path-like
            File to write. An existing file is replaced.

        Raises
        ------
        UnsupportedError
            If the steps are not a Vectorizer and a model of polyseme, or if `token_pattern` is a regular expression
            that could take exponential time, so that `load` would refuse it.
        """
        vectorizer, model = self.steps[0][1], self.steps[-1][1]
        if len(self.steps) != 2 or type(vectorizer) is not Vectorizer or not hasattr(model, "_stored"):
            raise UnsupportedError("Only a pipeline of two steps can be saved: a Vectorizer and a model of polyseme.")
        check_is_fitted(model)
        described = vectorizer.to_dict()
        if not (vectorizer.token_pattern is None or is_plain_pattern(vectorizer.token_pattern)):
            raise UnsupportedError(
                f"token_pattern={vectorizer.token_pattern!r} cannot be saved with a pipeline, because it is not known "
                "to be fast on every text: repeat one set of characters, as the default pattern does."
            )
        models.save(model, path, pipeline={"names": [name for name, _ in self.steps], "vectorizer": described})

    @classmethod
    def _of_description(cls, model: Any, description: Any) -> TopicPipeline:
        """Return the pipeline that `save` described. Raise ValueError or ModelFileError if it is not valid."""
        fields = {"names": Check(_is_pair_of_names, "the names of two steps"), "vectorizer": OBJECT}
        check_fields(description, fields, required=fields)
        vectorizer = Vectorizer.from_dict(description["vectorizer"])
        if len(vectorizer.vocabulary_) != model.n_features_in_:
            raise ValueError("the vectorizer and the model have different numbers of words")
        return cls(list(zip(description["names"], (vectorizer, model), strict=True)))

    def _set_vocabulary(self) -> None:
        if len(self.steps) > 1 and hasattr(self[-1], "set_vocabulary"):
            self[-1].set_vocabulary(self[:-1].get_feature_names_out())


def make_pipeline(*steps: Any, memory: Any = None, verbose: bool = False) -> TopicPipeline:
    """Construct a TopicPipeline whose steps are named after their types.

    Parameters
    ----------
    *steps : estimators
        The steps.
    memory : str or object with the joblib.Memory interface, default=None
        Cache of fitted transformers.
    verbose : bool, default=False
        Whether to print the time of each step.

    Returns
    -------
    TopicPipeline
        The pipeline.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.text import Vectorizer, make_pipeline
    >>> texts = ["red fish", "blue fish", "a fast car", "a slow car"]
    >>> make_pipeline(Vectorizer(), PLSA(2, random_state=0)).fit_transform(texts).shape
    (4, 2)
    """
    return TopicPipeline(pipeline.make_pipeline(*steps).steps, memory=memory, verbose=verbose)


def _is_pair_of_names(value: Any) -> bool:
    return list_of(TEXT, distinct=True).holds(value) and len(value) == 2


def _is_number(word: str) -> bool:
    """Return whether a word consists of decimal digits and is not a year."""
    return word.isdecimal() and not (len(word) == 4 and int(word) in _YEARS)


def _frequency_mask(
    vectorizer: Vectorizer, tokens: Integers, documents: Integers, n_documents: int, *, allowed: Any
) -> Any:
    """Return a mask of the allowed words that max_df, min_df and max_features keep, as CountVectorizer does.

    `tokens` and `documents` say how often each word occurs, and in how many of the `n_documents` documents.
    """
    highest = vectorizer.max_df * (1 if isinstance(vectorizer.max_df, Integral) else n_documents)
    lowest = vectorizer.min_df * (1 if isinstance(vectorizer.min_df, Integral) else n_documents)
    if not allowed.any():
        raise ValueError("empty vocabulary; the documents only contain numbers and stop words")
    if highest < lowest:
        raise ValueError("max_df corresponds to < documents than min_df")
    mask = allowed & (documents <= highest) & (documents >= lowest)
    if vectorizer.max_features is not None and mask.sum() > vectorizer.max_features:
        totals = documents if vectorizer.binary else tokens
        # CountVectorizer adds counts of the requested dtype, which may overflow: ties must be broken equally
        totals = totals.astype(sp.csr_array((1, 1), dtype=vectorizer.dtype).sum(axis=0).dtype)
        top = np.flatnonzero(mask)[(-totals[mask]).argsort()[: vectorizer.max_features]]
        mask = np.zeros(len(mask), dtype=bool)
        mask[top] = True
    if not mask.any():
        raise ValueError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
    return mask


def _sort_rows(counts: Any) -> Any:
    """Sort the columns of each row of a CSR matrix in place, and return the matrix."""
    counts.sort_indices()
    return counts


def _as_scikit_learn_sparse(counts: SparseCounts) -> Any:
    """Return a sparse array or a sparse matrix, as the installed scikit-learn is configured."""
    matrix = counts.matrix()
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    try:
        from sklearn.utils._sparse import _align_api_if_sparse
    except ImportError:
        return sp.csr_matrix(matrix)
    return _align_api_if_sparse(matrix)
