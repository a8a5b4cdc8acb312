"""Odd texts and settings of the Vectorizer give the counts of CountVectorizer, and never a crash."""

import string
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import Stemmer
from sklearn.feature_extraction.text import CountVectorizer

from fuzz.driver import Case, WrongResult
from polyseme.errors import InputError
from polyseme.text import LANGUAGES, Vectorizer

IMPORTED_BEFORE_THE_FORK = (Stemmer,)

TOKENIZERS: dict[str, Callable[[str], Any]] = {
    "at spaces": lambda text: text.split(" "),
    "words": str.split,
    "characters": list,
    "lines": str.splitlines,
    "nothing": lambda text: [],
    "empty words": lambda text: ["", "", text],
    "tuple": lambda text: tuple(text.split()),
    "generator": lambda text: (word for word in text.split()),
}
PREPROCESSORS: dict[str, Callable[[str], str]] = {
    "upper": str.upper,
    "empty": lambda text: "",
    "reversed": lambda text: text[::-1],
    "doubled": lambda text: text + " " + text,
}
PATTERNS = [
    *(r"(?u)\b\w\w+\b", r"\w+", r"\w*", r"", r"\b"),
    *(r"[a-z]+", r"[^\W\d_]+", r"\b[a-z]{3,}\b", r"(\w)\w+", r"(?:ab)+", r"\S+"),
    *(r".", r"(?s).", r"\d+", r"[^ ]*", r"(?i)[a-z]+"),
    *(r"\w+(?=s)", r"x*", r"[\u0400-\u04ff]+", r"\b\w{2,4}\b", r"(?u)\w\w+"),
]  # fmt: skip
PIECES = [
    *("ship", "sail", "the", "a", "", " ", "  ", "\n", "\t", "\0", "_"),
    *("-", "'", "ß", "İ", "ı", "ſ", "ς", "Σ", "ǅ", "K", "Å", "é"),
    *("e\u0301", "\u0301", "\u200d", "\u202e", "\ufeff", "\ud800", "\U0001f600"),
    *("👩‍👩‍👧", "日本語", "的", "ไทย", "हिन्दी", "हिं", "한국어", "العربية"),
    *("new york", "New_York", "1", "²", "½", "٣", "x" * 300, "\x1b[2J"),
    *("\x85", "\u2028", "ﬁ", "ŉ", "ΰ", "don't", "A.B.C.", "co-op", "\uffff"),
]  # fmt: skip


def _text(random: Random) -> str:
    kind = random.random()
    if kind < 0.1:
        return ""
    if kind < 0.2:
        return "".join(
            chr(random.choice((random.randrange(0x250), random.randrange(0x110000))))
            for _ in range(random.randrange(30))
        )
    words = random.choices(PIECES, k=random.randrange(1, 40))
    if kind < 0.5:
        words = random.choices(PIECES[:10], k=random.randrange(1, 60))
    if kind > 0.9:
        words += ["".join(random.choices(string.ascii_letters, k=random.randrange(12))) for _ in range(5)]
    return random.choice((" ", " ", " ", "", "\n", ", ")).join(words)


OPTIONS: dict[str, tuple[Any, ...]] = {
    "token_pattern": tuple(PATTERNS),
    "tokenizer": tuple(TOKENIZERS),
    "preprocessor": tuple(PREPROCESSORS),
    "lowercase": (False,),
    "strip_accents": ("unicode", "ascii"),
    "stop_words": ("english", ["the", "a"], [], [""], ["ship", "new york"]),
    "ngram_range": ([1, 2], [2, 2], [1, 3], [2, 5], [5, 5], [0, 1], [2, 1], [1, 100]),
    "analyzer": ("char", "char_wb"),
    "max_df": (0.5, 1, 2, 0.0),
    "min_df": (2, 0.1, 3, 0),
    "max_features": (1, 3, 10**9),
    "vocabulary": (
        ["ship", "sail"],
        [],
        ["", "ship"],
        {"ship": 1, "sail": 0},
        {"ship": 0, "sail": 5},
        ["ship", "ship"],
    ),
    "binary": (True,),
    "dtype": ("int32", "float32", "float64", "int8"),
}
OWN: dict[str, tuple[Any, ...]] = {
    "language": (*sorted(LANGUAGES), "auto", "x"),
    "stem": (False,),
    "phrases": (True, 0.0, 0.1, 1.0, 0.5),
    "n_jobs": (1, 2, 3, -1, 0, 1000),
}


class Texts:
    """Fuzzer that counts odd texts with the Vectorizer."""

    name = "text"
    cases = 100_000
    seconds = 10.0
    memory = 2 * 2**30
    batch = 500
    folder: Path

    def prepare(self, cases: Sequence[Case] | None) -> None:
        """Do nothing."""

    def check(self) -> None:
        """Do nothing, because nothing is mutated."""

    def draw(self, random: Random) -> Case:
        """Return texts to learn from, others to count, and some settings."""
        texts = [_text(random) for _ in range(random.choice((1, 2, 3, 5, 30)))]
        names = random.sample(sorted(OPTIONS), random.choice((0, 1, 1, 2, 3)))
        parameters = {name: random.choice(OPTIONS[name]) for name in names}
        own = random.sample(sorted(OWN), random.choice((0, 0, 1, 2, 3)))
        parameters |= {name: random.choice(OWN[name]) for name in own}
        return {"texts": texts, "new": [_text(random) for _ in range(random.randrange(3))], "parameters": parameters}

    def run(self, case: Case) -> str:
        """Count the texts, and compare the counts with those of CountVectorizer."""
        parameters = dict(case["parameters"])
        for name, functions in (("tokenizer", TOKENIZERS), ("preprocessor", PREPROCESSORS)):
            if name in parameters:
                parameters[name] = functions[parameters[name]]
        if "ngram_range" in parameters:
            parameters["ngram_range"] = tuple(parameters["ngram_range"])
        if "dtype" in parameters:
            parameters["dtype"] = np.dtype(parameters["dtype"]).type
        theirs_too = not set(parameters) & (set(OWN) - {"n_jobs"})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = _counted(Vectorizer(**parameters), case)
            if not theirs_too:
                return f"own: {'refused' if isinstance(ours, Exception) else 'counted'}"
            parameters.pop("n_jobs", None)
            theirs = _counted(CountVectorizer(**parameters), case)
        if isinstance(ours, Exception) and isinstance(theirs, Exception):
            return "as CountVectorizer: refused"
        if isinstance(ours, InputError) and "n_jobs" in case["parameters"]:
            return "as CountVectorizer: n_jobs refused"
        if isinstance(theirs, TypeError) and parameters.get("tokenizer") is TOKENIZERS["generator"]:
            return "CountVectorizer refuses generators with n-grams: counted"
        if isinstance(ours, Exception) or isinstance(theirs, Exception):
            raise WrongResult(f"one refuses: ours {ours!r}, theirs {theirs!r}"[:300])
        for what, one, other in zip(("words", "counts", "new counts"), ours, theirs, strict=True):
            if not (one == other if what == "words" else _same(one, other)):
                raise WrongResult(f"other {what} than CountVectorizer")
        return "as CountVectorizer: counted"


def _counted(vectorizer: Any, case: Case) -> Any:
    """Return the vocabulary, the counts, and the counts of new texts; or the error that refuses the settings."""
    try:
        counts = vectorizer.fit_transform(case["texts"])
        new = vectorizer.transform(case["new"]) if case["new"] else counts[:0]
    except (ValueError, TypeError, AttributeError, UnicodeError) as error:
        if isinstance(vectorizer, Vectorizer) and isinstance(error, InputError) and "\n" in str(error):
            raise WrongResult(f"a message of several lines: {error}") from error
        return error
    if isinstance(vectorizer, Vectorizer):
        for matrix in (counts, new):
            matrix.check_format()
            if matrix.nnz and (matrix.data <= 0).any() and matrix.dtype.kind != "b" and matrix.dtype.itemsize > 1:
                raise WrongResult("a count that is not positive")
        if list(vectorizer.vocabulary_.values()) and counts.shape[1] <= max(vectorizer.vocabulary_.values()):
            raise WrongResult("a word without a column")
    return vectorizer.vocabulary_, counts, new


def _same(one: Any, other: Any) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and (one != other).nnz == 0


fuzzer = Texts()
