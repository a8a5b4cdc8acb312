"""Corpora for experiments: docstrings of installed packages, 20 Newsgroups, and synthetic documents.

The sources of packages are found and parsed but never imported: reading them runs none of their code and needs no
network.

Synthetic corpora are drawn from a known PLSA or LDA model. Documents are drawn in blocks, each with its own random
numbers. A corpus does not depend on how many documents are read, and any number of documents needs the memory of one
block.
"""

from __future__ import annotations

import ast
import os
import sysconfig
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from polyseme.errors import InputError
from polyseme.kernels import Floats
from polyseme.text.readers import Document
from polyseme.utils import RandomStateLike, as_seed, check_integer

__all__ = [
    "docstrings",
    "newsgroups",
    "synthetic_corpus",
]

STANDARD_LIBRARY_LABEL = "python"
_TESTS = {"test", "tests", "idle_test"}
_VENDORED_PACKAGES = {"externals", "_external", "_vendor", "_vendored"}
_SKIPPED_DIRECTORIES = _TESTS | _VENDORED_PACKAGES | {"idlelib", "lib2to3", "__pycache__"}
_UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


@dataclass(frozen=True)
class TextCorpus:
    """Documents with titles and labels.

    Attributes
    ----------
    texts : list of str
        Texts of the documents.
    titles : list of str
        Titles of the documents.
    labels : list of str
        Label of each document.
    skipped : int
        Number of files that could not be read.
    """

    texts: list[str]
    titles: list[str]
    labels: list[str]
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.texts)


def docstrings(
    packages: Sequence[str] = ("numpy", "scipy", "sklearn"),
    *,
    standard_library: bool = True,
    min_words: int = 20,
    progress: Callable[[int, int], None] | None = None,
) -> TextCorpus:
    """Return the docstrings of installed packages, one document for each module, class and function.

    The order is fixed: the standard library, then the packages as given, each sorted by title. Of identical docstrings
    only the first is included.

    Parameters
    ----------
    packages : sequence of str or str, default=("numpy", "scipy", "sklearn")
        Names of top-level packages or modules, which are located but not imported.
    standard_library : bool, default=True
        Whether to also read the standard library of Python, with the label "python".
    min_words : int, default=20
        Shorter docstrings are not included. Words are separated by white space.
    progress : callable, default=None
        Called with (files done, number of files) after each file.

    Returns
    -------
    TextCorpus
        Titles are dotted qualified names, labels the names of the packages.

    Examples
    --------
    >>> from polyseme.datasets import docstrings
    >>> corpus = docstrings(["numpy"], standard_library=False)
    >>> set(corpus.labels)
    {'numpy'}
    """
    names = (packages,) if isinstance(packages, str) else tuple(packages)
    files_by_label: dict[str, list[_SourceFile]] = {}
    if standard_library:
        files_by_label[STANDARD_LIBRARY_LABEL] = list(_modules_below(Path(sysconfig.get_path("stdlib")), prefix=""))
    files_by_label |= {name: _package_files(name) for name in names}

    total = sum(len(files) for files in files_by_label.values())
    done = skipped = 0
    texts: list[str] = []
    titles: list[str] = []
    labels: list[str] = []
    seen: set[str] = set()
    for label, files in files_by_label.items():
        titled_texts: list[tuple[str, str]] = []
        for file in files:
            try:
                titled_texts.extend(_docstrings_of(file))
            except _UNREADABLE:
                skipped += 1
            done += 1
            if progress is not None:
                progress(done, total)
        for title, text in sorted(titled_texts):
            if text not in seen and len(text.split()) >= min_words:
                seen.add(text)
                texts.append(text)
                titles.append(title)
                labels.append(label)
    return TextCorpus(texts, titles, labels, skipped)


def newsgroups(subset: str = "all", *, remove: Sequence[str] = ()) -> TextCorpus:
    """Return the 20 Newsgroups corpus.

    scikit-learn downloads it once and stores it in its data folder.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        Which documents to return; training and test documents are split by date.
    remove : sequence of str, default=()
        Parts of the documents to remove: any of "headers", "footers" and "quotes".

    Returns
    -------
    TextCorpus
        Labels are the names of the newsgroups.

    Examples
    --------
    >>> from polyseme.datasets import newsgroups
    >>> corpus = newsgroups("train", remove=["headers", "footers", "quotes"])  # doctest: +SKIP
    """
    from sklearn.datasets import fetch_20newsgroups

    try:
        bunch = fetch_20newsgroups(subset=subset, remove=tuple(remove), shuffle=False)
    except OSError as error:
        raise InputError(
            f"20 Newsgroups could not be downloaded ({error}): connect to the network and try again."
        ) from error
    return TextCorpus(
        texts=list(bunch.data),
        titles=["/".join(PurePath(name).parts[-2:]) for name in bunch.filenames],
        labels=[bunch.target_names[target] for target in bunch.target],
    )


@dataclass(frozen=True)
class _SourceFile:
    """A Python file and the dotted name of its module."""

    path: Path
    module: str


def _package_files(name: str) -> list[_SourceFile]:
    """Return the source files of a top-level package, without importing it."""
    if not name.isidentifier():
        raise InputError(f"{name!r} is not the name of a top-level package: give one such as 'json'.")
    try:
        spec = find_spec(name)
    except ValueError:  # a module that was created in memory
        spec = None
    if spec is None:
        raise ModuleNotFoundError(f"No package called {name!r} is installed: install it, or name another.", name=name)
    if spec.submodule_search_locations is not None:
        files = [file for place in spec.submodule_search_locations for file in _modules_below(Path(place), f"{name}.")]
    elif spec.origin is not None and spec.origin.endswith(".py"):
        files = [_SourceFile(Path(spec.origin), name)]
    else:
        files = []
    if not files:
        raise InputError(f"The package {name!r} has no Python sources to read: name another.")
    return files


def _modules_below(root: Path, prefix: str) -> Iterator[_SourceFile]:
    """Yield the modules below a directory, sorted.

    Names that are not identifiers (site-packages, config-3.13-..., scripts) cannot be imported and are skipped.
    """
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = sorted(d for d in subdirectories if d.isidentifier() and d not in _SKIPPED_DIRECTORIES)
        package = prefix + "".join(f"{part}." for part in Path(directory).relative_to(root).parts)
        for name in sorted(names):
            stem, suffix = os.path.splitext(name)
            if suffix == ".py" and stem.isidentifier():
                module = package.rstrip(".") if stem == "__init__" else package + stem
                yield _SourceFile(Path(directory, name), module)


def _docstrings_of(file: _SourceFile) -> Iterable[tuple[str, str]]:
    """Return pairs of qualified name and docstring of everything documented in one file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other packages do not concern the user
        tree = ast.parse(file.path.read_bytes())
    return [(name, text) for name, node in _documentable(tree, file.module) if (text := ast.get_docstring(node))]


def _documentable(tree: ast.Module, module: str) -> Iterator[tuple[str, _Documented]]:
    """Yield each module, class and function with its qualified name. No recursion, because branches can nest deeply."""
    stack: list[tuple[str, ast.AST]] = [(module, tree)]
    while stack:
        scope, node = stack.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            scope = f"{scope}.{node.name}"
        if isinstance(node, _Documented):
            yield scope, node
        for block in _BLOCKS:
            stack.extend((scope, child) for child in getattr(node, block, ()))


# synthetic corpora


_BLOCK_DOCUMENTS = 512
"""Documents drawn together; each block has its own generator."""
_ZIPF_SHIFT = 2.7
"""Shift of the rank in the Zipf-Mandelbrot law."""
_TOPIC_SHAPE = 0.2
"""Shape of the gamma variables that distinguish topics."""
_LENGTH_SPREAD = 0.5
"""Standard deviation of the logarithm of P(d) in the PLSA model."""
_SYLLABLES = [consonant + vowel for consonant in "bdfghjklmnprtvz" for vowel in "aou"]


@dataclass(frozen=True)
class SyntheticCorpus:
    """A model and the documents drawn from it; only the topics are stored in memory.

    Iterating yields the documents as `Document` objects; `blocks` yields their counts.

    Attributes
    ----------
    topic_word : array of shape (n_topics, n_words)
        P(w|z).
    words : list of str
        Names of the words, most frequent first.
    n_documents : int
        Number of documents.
    length : float
        Mean number of tokens of a document.
    doc_topic_prior : array of shape (n_topics,)
        Parameters of the Dirichlet distribution of P(z|d) in LDA.
    model : str
        "lda" or "plsa".
    random_state : int
        Seed of the random numbers.
    """

    topic_word: NDArray[np.float64]
    words: list[str]
    n_documents: int
    length: float
    doc_topic_prior: NDArray[np.float64]
    model: str
    random_state: int

    def __len__(self) -> int:
        return self.n_documents

    def __iter__(self) -> Iterator[Document]:
        words = np.array(self.words, dtype=object)
        for start, drawn in self._blocks():
            order = np.lexsort((drawn.order, drawn.documents))
            pieces = np.split(words[drawn.tokens[order]], np.cumsum(np.bincount(drawn.documents))[:-1])
            for number, (tokens, theta) in enumerate(zip(pieces, drawn.doc_topic, strict=True), start):
                yield Document(str(number), " ".join(tokens), None, (f"topic {theta.argmax()}",), None, "synthetic")

    def blocks(self) -> Iterator[tuple[NDArray[np.float64], Any]]:
        """Yield P(z|d) and counts of a few hundred documents at a time.

        Yields
        ------
        doc_topic : array of shape (n_block, n_topics)
            P(z|d).
        counts : sparse array of shape (n_block, n_words)
            Counts, int32 CSR.
        """
        for _, drawn in self._blocks():
            n, w = len(drawn.doc_topic), self.topic_word.shape[1]
            ones = np.ones(len(drawn.tokens), dtype=np.int32)
            yield drawn.doc_topic, sp.csr_array(sp.coo_array((ones, (drawn.documents, drawn.tokens)), shape=(n, w)))

    def counts(self) -> Any:
        """Return all counts.

        Returns
        -------
        sparse matrix of shape (n_documents, n_words)
            Counts, int32 CSR.
        """
        return sp.vstack([counts for _, counts in self.blocks()], format="csr")

    def doc_topic(self) -> NDArray[np.float64]:
        """Return P(z|d) of all documents.

        Returns
        -------
        array of shape (n_documents, n_topics)
            P(z|d).
        """
        return np.vstack([theta for theta, _ in self.blocks()])

    def _blocks(self) -> Iterator[tuple[int, _Drawn]]:
        for start in range(0, self.n_documents, _BLOCK_DOCUMENTS):
            yield start, self._draw(start // _BLOCK_DOCUMENTS).first(self.n_documents - start)

    def _draw(self, block: int) -> _Drawn:
        """Draw a block, always a complete one, so that a longer corpus begins like a shorter one."""
        random = np.random.default_rng([self.random_state, 1, block])
        theta, lengths = _MODELS[self.model](random, self.doc_topic_prior, self.length)
        documents, tokens = draw_tokens(random, lengths, theta, self.topic_word)
        return _Drawn(theta, documents, tokens, random.random(len(documents)))


def synthetic_corpus(
    n_documents: int = 1000,
    *,
    n_topics: int = 10,
    n_words: int = 5000,
    length: float = 100.0,
    model: str = "lda",
    doc_topic_prior: ArrayLike = 0.1,
    topic_word_prior: ArrayLike | None = None,
    zipf: float = 1.0,
    topic_word: ArrayLike | None = None,
    random_state: RandomStateLike = 0,
) -> SyntheticCorpus:
    """Return a corpus of any size, drawn from a known model.

    Parameters
    ----------
    n_documents : int, default=1000
        Number of documents.
    n_topics : int, default=10
        Number of topics.
    n_words : int, default=5000
        Number of words.
    length : float, default=100.0
        Mean number of tokens of a document.
    model : {"lda", "plsa"}, default="lda"
        "lda": P(z|d) has a Dirichlet distribution. "plsa": a document has one to three topics, and P(d) varies.
    doc_topic_prior : float or array-like of shape (n_topics,), default=0.1
        Parameters of the Dirichlet distribution of P(z|d) in LDA.
    topic_word_prior : float or array-like of shape (n_words,), default=None
        Parameters of the Dirichlet distribution of P(w|z). With None, P(w|z) is proportional to (rank + 2.7)^-zipf
        times a gamma variable, so that the words of the corpus follow Zipf's law.
    zipf : float, default=1.0
        Exponent of Zipf's law.
    topic_word : array-like of shape (n_topics, n_words), default=None
        P(w|z) to use instead of drawn topics, such as `components_` of a fitted model. Its shape replaces `n_topics`
        and `n_words`.
    random_state : int, RandomState or Generator, default=0
        Seed. A longer corpus with the same seed begins like a shorter one.

    Returns
    -------
    SyntheticCorpus
        The model; its documents are drawn when they are read.

    Examples
    --------
    >>> from polyseme.datasets import synthetic_corpus
    >>> corpus = synthetic_corpus(100, n_topics=3, n_words=50, length=20, random_state=0)
    >>> corpus.counts().shape
    (100, 50)
    """
    if model not in _MODELS:
        raise InputError(f"model must be 'lda' or 'plsa', got {model!r}.")
    for name, value in (("n_documents", n_documents), ("n_topics", n_topics), ("n_words", n_words)):
        check_integer(name, value, least=1)
    if not 0 < length < float("inf"):
        raise InputError(f"length must be a finite number above 0, got {length!r}.")
    seed = as_seed(random_state)
    if topic_word is not None:
        topics = np.asarray(topic_word, dtype=np.float64)
        if topics.ndim != 2 or not np.all(topics >= 0) or not np.allclose(topics.sum(axis=1), 1.0, atol=1e-5):
            raise InputError("topic_word must be topics x words, non-negative, with rows that sum to one.")
    elif topic_word_prior is None:
        topics = _zipf_topics(n_topics, n_words, zipf, seed)
    else:
        eta = _dirichlet_parameters("topic_word_prior", topic_word_prior, n_words)
        topics = _dirichlet(np.random.default_rng([seed, 0]), eta, n_topics)
    alpha = _dirichlet_parameters("doc_topic_prior", doc_topic_prior, len(topics))
    words = [_word_name(rank) for rank in range(topics.shape[1])]
    return SyntheticCorpus(topics, words, n_documents, float(length), alpha, model, seed)


def draw_tokens(rng: np.random.Generator, lengths: Any, theta: Floats, phi: Floats) -> tuple[Any, Any]:
    """Return the document and the word of every token, ordered by topic.

    Each token of a document draws its topic from theta (documents x K) and its word from phi (K x words); `lengths` are
    the numbers of tokens of the documents.
    """
    by_topic = rng.multinomial(lengths, theta)
    documents, words = [], []
    for n_tokens, topic in zip(by_topic.T, phi, strict=True):
        cumulative = np.cumsum(topic)
        drawn = rng.random(n_tokens.sum()) * cumulative[-1]
        order = np.argsort(drawn)  # neighbors are found faster, because they are near each other in memory
        found = np.empty(drawn.size, dtype=np.intp)
        found[order] = np.searchsorted(cumulative, drawn[order], side="right")
        words.append(found)
        documents.append(np.repeat(np.arange(len(theta)), n_tokens))
    return np.concatenate(documents), np.concatenate(words)


def _dirichlet(rng: np.random.Generator, parameters: Floats, n: int) -> Floats:
    """Return n draws. If all numbers of a draw underflow, because the parameters are small, one of them becomes 1."""
    drawn = rng.standard_gamma(parameters, (n, parameters.size))
    empty = np.flatnonzero(drawn.sum(axis=1) <= 0)
    drawn[empty, rng.choice(parameters.size, empty.size, p=parameters / parameters.sum())] = 1
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def _dirichlet_parameters(name: str, value: Any, size: int) -> Floats:
    values = np.asarray(value, dtype=np.float64)
    if values.ndim > 1 or (values.ndim == 1 and values.size != size):
        raise InputError(f"{name} must be one number or {size} numbers.")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise InputError(f"{name} must be finite and greater than 0.")
    return np.array(np.broadcast_to(values, size))


@dataclass(frozen=True)
class _Drawn:
    """Tokens of a block: their documents, their words, and random numbers that order them."""

    doc_topic: NDArray[np.float64]
    documents: NDArray[np.int64]
    tokens: NDArray[np.int64]
    order: NDArray[np.float64]

    def first(self, n: int) -> _Drawn:
        if n >= len(self.doc_topic):
            return self
        keep = self.documents < n
        return _Drawn(self.doc_topic[:n], self.documents[keep], self.tokens[keep], self.order[keep])


def _lda_documents(random: np.random.Generator, alpha: Floats, length: float) -> tuple[Any, Any]:
    """Return theta ~ Dirichlet(alpha) and lengths ~ Poisson(length)."""
    return _dirichlet(random, alpha, _BLOCK_DOCUMENTS), random.poisson(length, size=_BLOCK_DOCUMENTS)


def _plsa_documents(random: np.random.Generator, alpha: Floats, length: float) -> tuple[Any, Any]:
    """Return theta and lengths for PLSA, which has no distribution of theta.

    A document has one to three topics and zeros for the others, and P(d) varies.
    """
    k = len(alpha)
    theta = np.zeros((_BLOCK_DOCUMENTS, k))
    for row in theta:
        topics = random.choice(k, size=min(int(random.integers(1, 4)), k), replace=False)
        row[topics] = random.dirichlet(np.ones(len(topics)))
    weight = np.exp(_LENGTH_SPREAD * random.standard_normal(_BLOCK_DOCUMENTS) - _LENGTH_SPREAD**2 / 2)
    return theta, random.poisson(length * weight)


_MODELS = {"lda": _lda_documents, "plsa": _plsa_documents}


def _zipf_topics(n_topics: int, n_words: int, exponent: float, seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng([seed, 0])
    topics = random.gamma(_TOPIC_SHAPE, size=(n_topics, n_words)) + np.finfo(float).tiny
    topics *= (np.arange(n_words) + 1 + _ZIPF_SHIFT) ** -exponent
    return topics / topics.sum(axis=1, keepdims=True)


def _word_name(rank: int) -> str:
    """Return a word of at least two syllables that no stemmer changes; small ranks have short words."""
    base = len(_SYLLABLES)
    syllables = 2
    while rank >= base**syllables:
        rank -= base**syllables
        syllables += 1
    digits = [rank // base**place % base for place in range(syllables)]
    return "".join(_SYLLABLES[digit] for digit in reversed(digits))
