"""What an explorer page is made of, whichever library the topics come from.

Topics of other libraries as parts of a page, and a page's parts as pyLDAvis takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.factors import rows_to_one, symmetric_view
from polyseme.core.model import FixedBackground, Model
from polyseme.core.shard import sparse_counts
from polyseme.core.statistics import document_sums
from polyseme.errors import InputError
from polyseme.estimators.tables import column_words
from polyseme.kernels import Array, Floats
from polyseme.kernels.threads import effective_threads
from polyseme.metrics.words import WordAmounts, shown_words, tempered, topic_words, word_amounts
from polyseme.retrieval.queries import checked_counts
from polyseme.runs.topic_documents import TopicModel, Typical, topic_documents

_NODE_WORDS = 12


@dataclass(frozen=True)
class Inference:
    """How the page finds P(z|d) of a new text, with the topics fixed."""

    kind: str = "likelihood"
    """"likelihood" (folding in, as PLSA does) or "variational" (LDA)"""
    temperature: float = 1.0
    background_share: float = 0.0
    background: Floats | None = None
    """P(w|B), one number a word"""
    alpha: Floats | None = None
    """of LDA's Dirichlet prior, K numbers"""
    totals: Floats | None = None
    """of LDA's topics: sum_w lambda_kw, K numbers"""
    note: str = ""
    """what the page does otherwise than the model's own transform"""


@dataclass(frozen=True)
class PageData:
    """Topics and documents: arrays and lists, checked to fit together.

    topic_word : P(w|z), K x words. doc_topic : P(z|d), documents x K. counts : documents x words, CSR.
    Lists that describe documents are as long as counts has rows, or None.
    """

    topic_word: Floats
    doc_topic: Array
    counts: Any
    vocabulary: list[str]
    model_name: str = "topics"
    title: str = "Topics"
    inference: Inference = field(default_factory=Inference)
    vectorizer: Any = None
    ids: list[str] | None = None
    titles: list[str] | None = None
    labels: list[list[str]] | None = None
    times: list[Any] | None = None
    texts: list[str] | None = None
    excerpts: list[str] | None = None
    topic_names: Mapping[int, str] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """figures of the fit by their names, for people to read"""
    selection: Sequence[Mapping[str, float]] = ()
    """the choice of K: rows with k, perplexity and, if known, error"""
    selection_reason: str = ""
    chosen_size: int | None = None
    measures: Mapping[str, Floats] = field(default_factory=dict)
    """more about each topic, K numbers by name, such as coherence and stability"""
    tree: Sequence[Mapping[str, Any]] = ()
    """of topics in a tree: for each node its name, parent (-1: root), topic (of a leaf), weight and the columns of its
    words"""
    amounts: WordAmounts | None = None
    """expected documents by topic and word, which words are ranked by; None counts these documents"""

    def __post_init__(self) -> None:
        n_topics, n_words = self.topic_word.shape
        n_docs = self.counts.shape[0]
        if self.doc_topic.shape != (n_docs, n_topics):
            raise InputError(
                f"The model has P(z|d) of shape {self.doc_topic.shape}, but {n_docs} documents and {n_topics} topics: "
                "give the counts that it was fitted to."
            )
        if len(self.vocabulary) != n_words:
            raise InputError(f"vocabulary must have one name for each of the {n_words} words.")
        for name in ("ids", "titles", "labels", "times", "texts", "excerpts"):
            values = getattr(self, name)
            if values is not None and len(values) != n_docs:
                raise InputError(f"{name} must have one entry for each of the {n_docs} documents, got {len(values)}.")

    @property
    def tokens(self) -> Floats:
        """n_d, the length of each document."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64).ravel()

    @property
    def doc_weights(self) -> Floats:
        """P(d), by length."""
        tokens = self.tokens
        return tokens / tokens.sum() if tokens.sum() > 0 else np.full(tokens.size, 1 / max(tokens.size, 1))

    @cached_property
    def word_documents(self) -> WordAmounts:
        """What the words of the topics are ranked by: the model's own counts of documents, or those of this page."""
        if self.amounts is not None:
            return self.amounts
        counts = sparse_counts(self.counts, np.dtype(np.float64))
        model = Model(self.topic_word.shape[0], background=self._background)
        shares = np.full(counts.n_docs, self.inference.background_share)
        operands = model.token_operands(np.asarray(self.doc_topic), self.topic_word, shares)
        operands = tempered(operands, self.inference.temperature)
        sums = document_sums(counts, operands, np.asarray(self.doc_topic), n_threads=effective_threads(None))
        return WordAmounts(
            "documents", topic_words(sums, len(self.topic_word)), sums.topics, sums.words, self.topic_word
        )  # fmt: skip

    def typical_documents(self, n_documents: int) -> Typical:
        """See runs/typical.py."""
        background = self.inference.background
        model = TopicModel(
            self.topic_word, np.asarray(self.counts.sum(axis=0)).ravel() / max(self.tokens.sum(), 1.0), self.doc_topic,
            self.tokens, self.inference.temperature, background,
            None if background is None else np.full(len(self.doc_topic), self.inference.background_share),
        )  # fmt: skip
        return topic_documents(model, [self.counts], n_documents)

    @property
    def _background(self) -> FixedBackground | None:
        found = self.inference.background
        return None if found is None else FixedBackground(self.inference.background_share, found, False)

    @property
    def topic_weights(self) -> Floats:
        """P(z) of these documents."""
        return symmetric_view(self.doc_topic, self.doc_weights).topic_weights


def page_data(
    model: Any,
    counts: Any,
    vocabulary: Sequence[str] | None = None,
    *,
    vectorizer: Any = None,
    ids: Sequence[Any] | None = None,
    titles: Sequence[Any] | None = None,
    labels: Sequence[Any] | None = None,
    times: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    title: str = "Topics",
    **more: Any,
) -> PageData:
    """Parts of a fitted polyseme model and the counts it was fitted to (or others of the same words).

    vocabulary : the word of each column; by default those of the vectorizer or of the model.
    vectorizer : what made the counts; with it the page counts new texts in the same way.
    labels : a name for each document, several in a list, or None.
    more : other fields of `Parts`.
    """
    words = column_words(model, vocabulary, vectorizer)
    matrix = checked_counts(counts, len(words), "counts")
    topics, doc_topic, inference = _opened(model, matrix)
    return PageData(
        topics, doc_topic, matrix, words, type(model).__name__, title, inference, vectorizer,
        ids=strings(ids), titles=strings(titles), labels=label_lists(labels),
        times=None if times is None else list(times), texts=strings(texts),
        history=getattr(model, "history_", {}), facts=_facts(model), tree=_tree(model), amounts=_amounts(model), **more,
    )  # fmt: skip


def run_page_data(run: Any, *, texts: bool = True) -> PageData:
    """Parts of a run folder (`polyseme.runs.open_run`), with the whole texts if it keeps them and they are wanted."""
    frame, about = run.documents, run.about
    times = frame["time"].to_list()
    parts = page_data(
        run.model, run.counts, run.vocabulary, vectorizer=run.vectorizer, ids=run.ids,
        titles=run.names, labels=frame["label"].to_list(), times=times if any(times) else None,
        texts=run.texts if texts else None,
        title=str(about.get("title") or run.path.resolve().name),
    )  # fmt: skip
    selection = about.get("selection") or {}
    K = parts.topic_word.shape[0]
    found = selection_rows(selection)
    held_out = next((row["perplexity"] for row in found if row["k"] == K), None)
    stability = about.get("stability")
    return replace(
        parts,
        excerpts=[excerpt or "" for excerpt in frame["excerpt"].to_list()],
        topic_names=run.topic_names,
        selection=found,
        selection_reason=str(selection.get("reason", "")) if isinstance(selection, Mapping) else "",
        chosen_size=K,
        facts={**parts.facts, **({"held-out perplexity": held_out} if held_out else {}), **_run_facts(about)},
        measures={"stability": np.asarray(stability)} if isinstance(stability, list) and len(stability) == K else {},
    )


def strings(values: Sequence[Any] | None) -> list[str] | None:
    return None if values is None else ["" if value is None else str(value) for value in values]


def label_lists(labels: Sequence[Any] | None) -> list[list[str]] | None:
    """The labels of each document; "a; b", as a run keeps them, are two. None where no document has one."""
    if labels is None:
        return None
    lists = [
        [str(name) for name in value] if isinstance(value, list | tuple | set) else _names_in(value) for value in labels
    ]
    return lists if any(lists) else None


def _names_in(value: Any) -> list[str]:
    return [] if value is None else [name for name in str(value).split("; ") if name]


def selection_rows(selection: Any) -> list[dict[str, float]]:
    """The rows of a choice of K, as `Selection.as_dict` has them, with k, perplexity and error.

    The error is one standard error of the difference to the best number.
    """
    rows = selection.get("rows", ()) if isinstance(selection, Mapping) else selection or ()
    found = []
    for row in rows:
        k = row.get("n_topics", row.get("k")) if isinstance(row, Mapping) else None
        perplexity = row.get("perplexity") if isinstance(row, Mapping) else None
        if k is not None and perplexity is not None:
            error = row.get("error", (row.get("behind_error") or 0.0) * perplexity)
            found.append({"k": int(k), "perplexity": float(perplexity), "error": float(error or 0.0)})
    return sorted(found, key=lambda row: row["k"])


def _opened(model: Any, counts: Any) -> tuple[Floats, Array, Inference]:
    """P(w|z), P(z|d) of the counts, and how new texts are folded in."""
    if not hasattr(model, "components_"):
        raise InputError(f"{type(model).__name__} is not fitted: call fit first.")
    if hasattr(model, "doc_factor_"):  # NMF
        if hasattr(model, "history_"):
            model = model.to_plsa()
        else:
            W = model.transform(counts)
            return of_nonnegative_factors(W, model.components_, "Texts are folded in by likelihood (KL).")
    if not hasattr(model, "doc_topic_") or not hasattr(model, "topic_weights_"):
        raise InputError(f"A {type(model).__name__} has no topics of words: the page is for PLSA, NMF and LDA.")
    doc_topic = model.doc_topic_ if len(model.doc_topic_) == counts.shape[0] else model.transform(counts)
    topics = rows_to_one(np.asarray(model.components_, dtype=np.float64))
    if hasattr(model, "topic_word_dirichlet_"):
        totals = np.asarray(model.topic_word_dirichlet_.sum(axis=1, dtype=np.float64))
        return topics, doc_topic, Inference("variational", alpha=np.asarray(model.doc_topic_prior_), totals=totals)
    background = getattr(model, "background_", None)
    prior = getattr(model, "doc_topic_prior_", None)
    flat = prior is None or (isinstance(prior, np.ndarray) and bool((prior == 1).all()))
    note = "" if flat else "New texts are folded in without the model's prior on documents."
    if not hasattr(model, "temperature_"):
        note = "New texts are folded in by likelihood, not by this model's own transform."
    return topics, doc_topic, Inference(
        temperature=float(getattr(model, "temperature_", 1.0)),
        background_share=0.0 if background is None else float(model.background_weight_),
        background=None if background is None else np.asarray(background, dtype=np.float64),
        note=note,
    )  # fmt: skip


def of_nonnegative_factors(W: Array, H: Array, note: str) -> tuple[Floats, Floats, Inference]:
    """W (documents x K) and H (K x words) as P(w|z) and P(z|d): rows of H to one, their sums moved into W."""
    H = np.asarray(H, dtype=np.float64)
    sums = H.sum(axis=1)
    H = np.where(sums[:, np.newaxis] > 0, H, 1.0)
    mass = np.asarray(W, dtype=np.float64) * sums
    empty = mass.sum(axis=1) == 0
    mass[empty] = mass.sum(axis=0) if mass.sum() > 0 else 1.0
    return rows_to_one(H), rows_to_one(mass), Inference(note=note)


def _tree(model: Any) -> list[dict[str, Any]]:
    """The nodes of a tree of topics; none for a model without one."""
    if not hasattr(model, "node_word_"):
        return []
    tree = model.tree_
    shown = shown_words(model._node_amounts(), _NODE_WORDS)
    topic_of = {leaf: topic for topic, leaf in enumerate(tree.leaves)}
    return [
        {
            "name": tree.label(node),
            "parent": parent,
            "topic": topic_of.get(node),
            "weight": float(model.node_weights_[node]),
            "words": [int(word) for word in shown[node] if model.node_word_[node, word] > 0],
        }
        for node, parent in enumerate(tree.parents)
    ]


def _amounts(model: Any) -> WordAmounts | None:
    """The document counts that the model keeps of its fit; None if it keeps none."""
    found = word_amounts(model)
    return found if found.unit == "documents" else None


def _facts(model: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if hasattr(model, "n_iter_"):
        facts["iterations"] = int(model.n_iter_)
    if hasattr(model, "converged_"):
        facts["converged"] = bool(model.converged_)
    if hasattr(model, "log_likelihood_"):
        facts["training perplexity"] = float(np.exp(-model.log_likelihood_))
    unigram = getattr(model, "unigram_", None)
    if unigram is not None:
        p = np.asarray(unigram, dtype=np.float64)
        p = p[p > 0]
        facts["perplexity without topics"] = float(np.exp(-(p * np.log(p)).sum()))
    return facts


def _run_facts(about: Mapping[str, Any]) -> dict[str, Any]:
    """What run.json says that a reader of the page would ask for."""
    facts: dict[str, Any] = {}
    model = about.get("model")
    for corpus in (model if isinstance(model, Mapping) else {}, about):
        for key, name in (
            ("seed", "seed"), ("language", "language"), ("version", "polyseme"), ("polyseme", "polyseme"),
            ("held_out_perplexity", "held-out perplexity"), ("interrupted", "interrupted"),
        ):  # fmt: skip
            value = corpus.get(key)
            if isinstance(value, str | int | float) and value is not False:
                facts[name] = value
    counting = about.get("counting")
    if isinstance(counting, Mapping) and counting.get("language"):
        facts["language"] = str(counting["language"])
    return facts


def sparse_counts_of(corpus: Any, n_words: int) -> Any:
    """Counts (documents x words) of a gensim corpus: lists of (word, count)."""
    indptr, indices, data = [0], [], []
    for document in corpus:
        for word, count in document:
            indices.append(int(word))
            data.append(float(count))
        indptr.append(len(indices))
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_words))


def from_sklearn(
    model: Any,
    counts: Any,
    vectorizer: Any = None,
    *,
    vocabulary: Sequence[str] | None = None,
    titles: Sequence[Any] | None = None,
    labels: Sequence[Any] | None = None,
    times: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    title: str = "Topics",
) -> PageData:
    """Parts of a fitted LatentDirichletAllocation, NMF or MiniBatchNMF of scikit-learn and its counts.

    NMF's factors are rescaled: rows of H to sum one, their sums moved into W (Gaussier and Goutte 2005).
    """
    if not hasattr(model, "components_"):
        raise InputError(f"{type(model).__name__} is not fitted: call fit first.")
    words = column_words(model, vocabulary, vectorizer)
    matrix = checked_counts(counts, len(words), "counts")
    weights = np.asarray(model.transform(counts))
    if hasattr(model, "doc_topic_prior_"):  # LatentDirichletAllocation
        lambda_ = np.asarray(model.components_, dtype=np.float64)
        alpha = np.full(len(lambda_), float(model.doc_topic_prior_))
        inference = Inference("variational", alpha=alpha, totals=lambda_.sum(axis=1))
        topics, doc_topic = rows_to_one(lambda_), rows_to_one(weights)
    elif np.min(model.components_) >= 0:
        note = "New texts are folded in by likelihood (KL), not by this NMF's own transform."
        topics, doc_topic, inference = of_nonnegative_factors(weights, model.components_, note)
    else:
        raise InputError(f"A {type(model).__name__} has negative weights of words: the page is for topic models.")
    facts = {"iterations": int(model.n_iter_)} if hasattr(model, "n_iter_") else {}
    return PageData(
        topics, doc_topic, matrix, words, type(model).__name__, title, inference, vectorizer, titles=strings(titles),
        labels=label_lists(labels), times=None if times is None else list(times), texts=strings(texts), facts=facts,
    )  # fmt: skip


def from_gensim(
    model: Any,
    corpus: Any,
    *,
    titles: Sequence[Any] | None = None,
    labels: Sequence[Any] | None = None,
    times: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    title: str = "Topics",
) -> PageData:
    """Parts of a gensim LdaModel and its corpus (an iterable of lists of (word, count))."""
    lambda_ = np.asarray(model.state.get_lambda(), dtype=np.float64)
    words = [str(model.id2word[word]) for word in range(lambda_.shape[1])]
    documents = [list(document) for document in corpus]
    matrix = checked_counts(sparse_counts_of(documents, len(words)), len(words), "corpus")
    gamma, _ = model.inference(documents)
    inference = Inference("variational", alpha=np.asarray(model.alpha, dtype=np.float64), totals=lambda_.sum(axis=1))
    return PageData(
        rows_to_one(lambda_), rows_to_one(np.asarray(gamma)), matrix, words, type(model).__name__, title, inference,
        titles=strings(titles), labels=label_lists(labels), times=None if times is None else list(times),
        texts=strings(texts),
    )  # fmt: skip


def pyldavis_arguments(model: Any, counts: Any = None, vocabulary: Sequence[str] | None = None) -> dict[str, Any]:
    """The arguments of `pyLDAvis.prepare`: topic_term_dists, doc_topic_dists, doc_lengths, vocab, term_frequency.

    model : a fitted model with its counts and vocabulary, or `Parts`. Documents without words are left out, since
    pyLDAvis fails on them. Give `sort_topics=False` beside these, to keep the model's own topic numbers.
    """
    parts = model if isinstance(model, PageData) else page_data(model, counts, vocabulary)
    kept = parts.tokens > 0
    return {
        "topic_term_dists": rows_to_one(parts.topic_word),
        "doc_topic_dists": rows_to_one(np.asarray(parts.doc_topic[kept], dtype=np.float64)),
        "doc_lengths": parts.tokens[kept],
        "vocab": list(parts.vocabulary),
        "term_frequency": np.asarray(parts.counts.sum(axis=0), dtype=np.float64).ravel(),
    }
