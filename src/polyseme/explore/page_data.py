"""Data of an explorer page, collected from a fitted model or a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import (
    DocumentWeights,
    FittedTopics,
    Inference,
    TrainingDocuments,
    WordDocuments,
    document_sums,
    posterior_operands,
    symmetric_view,
)
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.shard import row_batches, sparse_counts
from polyseme.errors import InputError
from polyseme.estimators import HierarchicalPLSA
from polyseme.estimators.base import FittedDecomposition
from polyseme.estimators.hierarchical import node_amounts
from polyseme.explore.other_models import topics_of_gensim, topics_of_sklearn
from polyseme.kernels import Array, Floats, normalize_rows
from polyseme.layout.document_map import DocumentMap, MapLevel
from polyseme.metrics.deviance import ExplainedDeviance, explained_deviance
from polyseme.metrics.words import (
    WordAmounts,
    column_words,
    fitted_topics,
    top_words,
    without_columns,
    word_amounts,
    words_of_amounts,
)
from polyseme.runs import Run
from polyseme.runs.edit_files import topics_digest
from polyseme.runs.quotes import find_quotes
from polyseme.runs.typical import N_RANKED, TopicDocuments, topic_documents
from polyseme.runs.view import FinerTopic, TopicView
from polyseme.text.readers.inputs import LABEL_SEPARATOR
from polyseme.text.words import plain_rules
from polyseme.uncertainty.groups import GroupComparison
from polyseme.uncertainty.time import Timeline
from polyseme.utils import check_range, checked_counts, effective_threads, perplexity_of

_NODE_WORDS = 12
"""Words of each node of a topic tree."""
_GROUPS = 20
"""Most frequent labels whose shares have intervals."""
_FINER_DOCUMENTS = 5
"""Typical documents of each topic of a finer level."""


@dataclass(frozen=True)
class PageData:
    """Topics and documents that a page shows, with consistent shapes.

    `PageData.from_arrays` builds it from the arrays of any topic model.

    Parameters
    ----------
    fitted : FittedTopics
        The topics with their vocabulary, and how the page computes P(z|d) of a new text.
    documents : TrainingDocuments
        P(d), P(z|d) and the share of the background in each document.
    counts : sparse array of shape (n_documents, n_words)
        Word counts, CSR.
    model_name : str, default="topics"
        Name of the model's class.
    title : str, default="Topics"
        Title of the page.
    folding_note : str, default=""
        How folding in on the page differs from the model's ``transform``. If empty, the page says which parts of the
        model's inference it leaves out.
    vectorizer : CountVectorizer or None, default=None
        Vectorizer of the counts; the page counts new texts with its rules.
    ids : list of str or None, default=None
        Id of each document.
    titles : list of str or None, default=None
        Title of each document.
    labels : list of list of str or None, default=None
        Labels of each document.
    times : list or None, default=None
        Date or time of each document.
    texts : list of str or None, default=None
        Full text of each document.
    excerpts : list of str or None, default=None
        Beginning of each text; taken from `texts` if None.
    topic_names : mapping of int to str
        Names of topics.
    history : mapping of str to array
        Values per iteration, such as ``history_`` of an estimator.
    facts : mapping of str to value
        Facts about the fit by name, shown as they are.
    selection : sequence of mapping, default=()
        Results of the choice of the number of topics: k, agreement (or perplexity) and error.
    selection_reason : str, default=""
        Sentence that explains the choice.
    chosen_size : int or None, default=None
        Number of topics that was chosen.
    measures : mapping of str to ndarray of shape (n_topics,)
        More measures of the topics, such as stability.
    tree : sequence of mapping, default=()
        Nodes of a topic tree: name, parent (-1 for the root), topic (of a leaf), weight and columns of words.
    finer : sequence of sequence of mapping, default=()
        For each topic, the topics of finer levels below it: level, topic, name, weight, parent_share, words, children,
        and documents (rows of typical ones).
    level_weights : sequence of array, default=()
        P(z|d) of each finer level, the coarsest first.
    text_bytes : int, default=0
        Size of the texts of a run, which may be left out of `texts`.
    typical : TopicDocuments or None, default=None
        Most typical documents of each topic, if they are known.
    quotes : sequence of sequence of str or None, default=None
        A sentence of each of the typical documents of each topic; taken from the texts if None.
    hidden : sequence of int, default=()
        Columns of words that no list shows.
    groups : array of int or None, default=None
        For each document, the row of the first document in its group of near-duplicates; lists show one document of
        each group.
    junk : mapping of int to str
        Topics that may not describe a subject, with the reason; lists show them last.
    hidden_topics : collection of int
        Topics that lists and the map do not show.
    editing : Editing or None, default=None
        How edits in the page can be applied to a run; None: the page offers no edits.
    map : DocumentMap or None, default=None
        Places of the documents in the plane, and names of regions. None: computed from `documents` and `counts`.
    comparison : GroupComparison or None, default=None
        Shares of the topics in the documents of labels, with intervals.
    timeline : Timeline or None, default=None
        Shares of the topics by period, with intervals.
    """

    fitted: FittedTopics
    documents: TrainingDocuments
    counts: Any
    model_name: str = "topics"
    title: str = "Topics"
    folding_note: str = ""
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
    selection: Sequence[Mapping[str, float]] = ()
    selection_reason: str = ""
    chosen_size: int | None = None
    measures: Mapping[str, Floats] = field(default_factory=dict)
    tree: Sequence[Mapping[str, Any]] = ()
    finer: Sequence[Sequence[Mapping[str, Any]]] = ()
    level_weights: Sequence[Array] = ()
    text_bytes: int = 0
    typical: TopicDocuments | None = None
    quotes: Sequence[Sequence[str]] | None = None
    hidden: Sequence[int] = ()
    groups: Array | None = None
    junk: Mapping[int, str] = field(default_factory=dict)
    hidden_topics: Collection[int] = ()
    editing: Editing | None = None
    map: DocumentMap | None = None
    comparison: GroupComparison | None = None
    timeline: Timeline | None = None

    def __post_init__(self) -> None:
        n_topics, n_words = self.fitted.topic_word.shape
        n_docs = self.counts.shape[0]
        _check_shape(self.doc_topic, n_docs, n_topics)
        _check_vocabulary(self.fitted.vocabulary, n_words)
        for name in ("ids", "titles", "labels", "times", "texts", "excerpts", "groups"):
            values = getattr(self, name)
            if values is not None and len(values) != n_docs:
                raise InputError(f"{name} must have one entry for each of the {n_docs} documents, got {len(values)}.")
        stored = {weights.shape for weights in self.level_weights}
        wanted = {(n_docs, int(node["level"])) for nodes in self.finer for node in _nodes(nodes)}
        if missing := wanted - stored:
            raise InputError(
                f"level_weights must have arrays of the shapes {sorted(missing)}, for the levels of finer."
            )

    @classmethod
    def from_arrays(
        cls,
        topic_word: Any,
        doc_topic: Any,
        counts: Any,
        vocabulary: Sequence[str],
        *,
        inference: Inference | None = None,
        **fields: Any,
    ) -> PageData:
        """Return the data of a page from the arrays of a topic model.

        Parameters
        ----------
        topic_word : array-like of shape (n_topics, n_words)
            P(w|z), or weights of words; the rows are divided by their sums.
        doc_topic : array-like of shape (n_documents, n_topics)
            P(z|d).
        counts : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts.
        vocabulary : sequence of str
            Word of each column.
        inference : Inference or None, default=None
            How the page computes P(z|d) of a new text. None: by maximum likelihood, as PLSA does.
        **fields : object
            Other fields of PageData.

        Returns
        -------
        PageData
            Data of the page.
        """
        topics, doc_topic = normalize_rows(np.asarray(topic_word, dtype=np.float64)), np.asarray(doc_topic)
        matrix = checked_counts(counts, topics.shape[1], "counts")
        _check_shape(doc_topic, matrix.shape[0], len(topics))
        doc_weights = _doc_weights(matrix)
        fitted = FittedTopics(
            topics, symmetric_view(doc_topic, doc_weights).topic_weights, _unigram(matrix),
            np.ones(len(topics), dtype=bool), float(matrix.sum()), float(matrix.shape[0]),
            MaximumLikelihood() if inference is None else inference, np.asarray(vocabulary, dtype=object),
        )  # fmt: skip
        background = fitted.inference.background
        shares = np.full(len(doc_topic), 0.0 if background is None else background.share)
        return cls(fitted, TrainingDocuments(doc_weights, doc_topic, shares), matrix, **fields)

    @property
    def topic_word(self) -> Array:
        """P(w|z), topics x words."""
        return self.fitted.topic_word

    @property
    def doc_topic(self) -> Array:
        """P(z|d), documents x topics."""
        return self.documents.doc_topic

    @property
    def doc_weights(self) -> Floats:
        """P(d), proportional to the number of tokens."""
        return self.documents.doc_weights

    @cached_property
    def vocabulary(self) -> list[str]:
        """Word of each column."""
        assert self.fitted.vocabulary is not None
        return [str(word) for word in self.fitted.vocabulary]

    @property
    def tokens(self) -> Floats:
        """Number of tokens n_d of each document."""
        return _tokens(self.counts)

    @property
    def topic_weights(self) -> Floats:
        """P(z) of these documents."""
        return self.fitted.symmetric_view(self.documents).topic_weights

    @cached_property
    def word_documents(self) -> WordAmounts:
        """Expected numbers of documents per topic and word, without hidden words.

        They are those of the model, or computed from `counts`.
        """
        if self.fitted.word_documents is not None:
            return without_columns(word_amounts(self.fitted), self.hidden)
        counts = sparse_counts(self.counts, self.topic_word.dtype)
        weights = DocumentWeights(np.asarray(self.doc_topic), self.documents.background, counts)
        inference = self.fitted.inference
        operands = posterior_operands(inference.operands(weights, self.topic_word), inference.temperature)
        sums = document_sums(counts, operands, weights.doc_topic, n_threads=effective_threads(None))
        return without_columns(word_amounts(replace(self.fitted, word_documents=sums.by_topic())), self.hidden)

    @cached_property
    def explained(self) -> ExplainedDeviance:
        """How much of the documents and words the topics explain."""
        counts = sparse_counts(self.counts, self.topic_word.dtype)
        return explained_deviance(self.fitted, DocumentWeights(self.doc_topic, self.documents.background, counts))

    @cached_property
    def document_map(self) -> DocumentMap:
        """The map of documents."""
        if self.map is not None:
            return self.map
        words = words_of_amounts(self.word_documents, self.vocabulary, 3)
        names = [self.topic_names.get(topic) or ", ".join(first) for topic, first in enumerate(words)]
        levels = [MapLevel(self.doc_topic, names, range(len(names)))]
        for weights in self.level_weights:
            found = {
                node["topic"]: (node["name"], top)
                for top, nodes in enumerate(self.finer)
                for node in _nodes(nodes)
                if node["level"] == weights.shape[1]
            }
            finer = [found[topic] for topic in range(weights.shape[1])]
            levels.append(MapLevel(weights, [name for name, _ in finer], [top for _, top in finer]))
        return DocumentMap.of(levels, self.counts, gray=frozenset(self.junk))

    def topic_documents(self, n_documents: int) -> TopicDocuments:
        """Return the fit and the most typical documents of each topic.

        Parameters
        ----------
        n_documents : int
            Number of documents per topic.

        Returns
        -------
        TopicDocuments
            Result of `polyseme.runs.typical.topic_documents`.
        """
        if self.typical is not None and n_documents <= N_RANKED:
            return self.typical
        return topic_documents(self._counted, self.documents, [self.counts], n_documents, groups=self.groups)

    def document_quotes(self, shown: TopicDocuments) -> Sequence[Sequence[str]] | None:
        """Return a sentence of each of the typical documents of each topic.

        Parameters
        ----------
        shown : TopicDocuments
            Typical documents, the result of `topic_documents`.

        Returns
        -------
        list of lists of str or None
            Quotes in the order of the documents; None if there are no texts.
        """
        texts = self.texts if self.texts is not None else self.excerpts
        if self.quotes is not None or texts is None:
            return self.quotes
        transform = self._count_known_words if self.vectorizer is None else self.vectorizer.transform
        titles = self.titles or [""] * len(texts)
        return find_quotes(
            self._counted, self.documents, shown.documents, texts.__getitem__, titles, transform, self.hidden
        )

    @cached_property
    def _counted(self) -> FittedTopics:
        """The topics with the frequencies of the words in these documents."""
        amounts = WordDocuments(*self.word_documents[1:4])
        return replace(self.fitted, unigram=_unigram(self.counts), word_documents=amounts)

    def _count_known_words(self, texts: list[str]) -> Any:
        """Count the words of texts, split as CountVectorizer does, that are in the vocabulary."""
        counts = plain_rules({word: column for column, word in enumerate(self.vocabulary)}).transform(texts)
        return sp.csr_array((counts.values, counts.indices, counts.indptr), (len(texts), len(self.vocabulary)))


@dataclass(frozen=True)
class Editing:
    """What a page must know of a run to export edits of its topics (`polyseme.runs.edit_files`)."""

    topics: str
    """Digest of the topics."""
    level: int | None
    """Number of topics of a finer level; None is the reading level."""
    merges: bool
    """Whether topics can be merged and deleted."""
    hides: bool
    """Whether topics and words can be hidden."""
    phrases: bool
    """Whether a banned word also hides the phrases that contain it."""
    named: tuple[int, ...]
    """Topics with a name that users have given."""

    @classmethod
    def of(cls, view: TopicView) -> Editing:
        """Return what the page of a run or of one of its levels must know."""
        top, phrases = view.finer is None, bool(view.store.vectorizer.phrases)
        merges = top and view.model._edits_topics and view.fitted.inference.is_likelihood
        named = tuple(sorted(view.topic_names))
        return cls(topics_digest(view.fitted.topic_word), view.finer, merges, top, phrases, named)


def page_data(
    model: Any,
    counts: Any = None,
    vocabulary: Sequence[str] | None = None,
    *,
    vectorizer: Any = None,
    ids: Sequence[Any] | None = None,
    titles: Sequence[Any] | None = None,
    labels: Sequence[Any] | None = None,
    times: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    title: str | None = None,
    **fields: Any,
) -> PageData:
    """Collect the data of a page from a fitted model and its counts, or from a run.

    model : estimator of polyseme, model of scikit-learn or gensim, Run or one of its views, or PageData, which is
    returned unchanged. The other arguments are those of `write_page`, for models only; `fields` are fields of PageData.
    """
    given = {
        "counts": counts, "vocabulary": vocabulary, "vectorizer": vectorizer, "ids": ids, "titles": titles,
        "labels": labels, "times": times, "texts": texts, "title": title, **fields,
    }  # fmt: skip
    if isinstance(model, Run | TopicView | PageData):
        names = [name for name, value in given.items() if value is not None]
        if names:
            raise InputError(f"{', '.join(names)}: only for a fitted model; a Run or PageData already contains them.")
        return model if isinstance(model, PageData) else run_page_data(model)
    if counts is None:
        raise InputError("A page of a fitted model needs documents: give counts=, and vocabulary= or vectorizer=.")
    fields |= {
        "model_name": type(model).__name__, "title": "Topics" if title is None else title, "vectorizer": vectorizer,
        "ids": _as_strings(ids), "titles": _as_strings(titles), "labels": _as_label_lists(labels),
        "times": None if times is None else list(times), "texts": _as_strings(texts),
    }  # fmt: skip
    fitted = fitted_topics(model)
    if fitted is None or not isinstance(model, FittedDecomposition):
        topics_of_other = topics_of_gensim if hasattr(model, "id2word") else topics_of_sklearn
        return PageData.from_arrays(**topics_of_other(model, counts, vocabulary, vectorizer), **fields)
    words = column_words(model, vocabulary, vectorizer)
    _check_vocabulary(words, fitted.topic_word.shape[1])
    matrix = checked_counts(counts, len(words), "counts")
    # float64, because the positions of the topics depend on small differences
    topics = normalize_rows(np.asarray(fitted.topic_word, dtype=np.float64))
    return PageData(
        replace(fitted, topic_word=topics, vocabulary=np.asarray(words, dtype=object)), _documents_of(model, matrix),
        matrix, history=vars(model).get("history_", {}), facts=_model_facts(model, fitted),
        tree=_tree_nodes(model) if isinstance(model, HierarchicalPLSA) else (), **fields,
    )  # fmt: skip


def run_page_data(run: Run | TopicView, *, most_bytes: int | None = None, intervals: int = 0) -> PageData:
    """Collect the data of a page from a run, with the full texts if it stores them and they have less than this size.

    most_bytes : None: texts of any size; 0: no texts. intervals : number of resamples of intervals, 0 for none.
    """
    view = run.view if isinstance(run, Run) else run
    comparison, timeline = _with_intervals(view, intervals) if intervals else (None, None)
    finer = [view.level(n_topics) for n_topics in view.levels[view.levels.index(view.fitted.n_topics) + 1 :]]
    text_bytes = view.corpus.text_bytes if most_bytes else 0
    texts = most_bytes is None or text_bytes < most_bytes
    corpus, info, times = view.corpus, view.store.info, view.corpus.column("time")
    data = page_data(
        view.model, corpus.counts, view.store.vocabulary, vectorizer=view.store.vectorizer, ids=corpus.ids,
        titles=list(corpus.names), labels=corpus.column("label"), times=times if any(times) else None,
        texts=corpus.texts if texts else None, text_bytes=text_bytes, typical=view.typical, groups=corpus.groups,
        junk={topic: mark.reason for topic, mark in view.junk.items()},
        title=view.title or "Topics",
    )  # fmt: skip
    K, chosen = data.fitted.n_topics, info.selection if view.finer is None else None
    rows = () if chosen is None else chosen.rows
    facts = {"seed": info.model.random_state, "language": info.language, "interrupted": info.interrupted or None}
    return replace(
        data,
        excerpts=corpus.column("excerpt"),
        hidden_topics=view.hidden_topics,
        editing=Editing.of(view),
        quotes=[[document.quote for document in found] for found in view.typical_documents(N_RANKED)],
        topic_names=dict(enumerate(view.topic_titles)),
        hidden=view.hidden_columns,
        selection=[{"k": row.n_topics, "agreement": row.agreement, "error": row.agreement_error} for row in rows],
        selection_reason="" if chosen is None else chosen.reason,
        chosen_size=K,
        facts={**data.facts, **{name: value for name, value in facts.items() if value is not None}},
        finer=_finer_topics(view, finer),
        level_weights=[level.doc_topic for level in finer],
        measures=_run_measures(view),
        map=view.document_map,
        comparison=comparison,
        timeline=timeline,
    )


def _run_measures(view: TopicView) -> dict[str, Floats]:
    """Return the stability and the reproducibility of the topics, if they are known."""
    found: dict[str, Floats] = {}
    if view.finer is None and view.store.info.stability:
        found["stability"] = np.asarray(view.store.info.stability)
    if rows := view.reproducibility:
        found["reproducibility"] = np.array([row.share for row in rows])
        found["reproducibility_least"] = np.array([row.least for row in rows])
        found["reproducibility_most"] = np.array([row.most for row in rows])
    return found


def _with_intervals(view: TopicView, n_resamples: int) -> tuple[GroupComparison | None, Timeline | None]:
    """Return the comparison of labels and the shares over time, None for what these documents do not have."""
    comparison = timeline = None
    problems = []
    try:
        comparison = view.compare_groups("label", most=_GROUPS, n_resamples=n_resamples)
    except InputError as error:
        problems.append(str(error))
    try:
        timeline = view.over_time(n_resamples=n_resamples)
    except InputError as error:
        problems.append(str(error))
    if len(problems) > 1:
        raise InputError(f"There are neither labels nor times to show with intervals: {' '.join(problems)}")
    return comparison, timeline


def _finer_topics(view: TopicView, finer: Sequence[TopicView]) -> list[list[dict[str, Any]]]:
    """Return the topics of finer levels below each topic, with rows of typical documents."""
    typical = {level.fitted.n_topics: level.typical.documents for level in finer}

    def described(topic: FinerTopic) -> dict[str, Any]:
        documents = typical[topic.level][topic.topic][:_FINER_DOCUMENTS]
        return {**vars(topic), "documents": documents, "children": [described(child) for child in topic.children]}

    return [[described(topic) for topic in topics] for topics in view.finer_topics(_NODE_WORDS)]


def _as_strings(values: Sequence[Any] | None) -> list[str] | None:
    return None if values is None else ["" if value is None else str(value) for value in values]


def _as_label_lists(labels: Sequence[Any] | None) -> list[list[str]] | None:
    """Return a list of labels for each document, two for "a; b" as in runs. Return None if there are no labels."""
    if labels is None:
        return None
    lists = [
        [] if value is None
        else [str(name) for name in value] if isinstance(value, list | tuple | set)
        else [name for name in str(value).split(LABEL_SEPARATOR) if name]
        for value in labels
    ]  # fmt: skip
    return lists if any(lists) else None


def _nodes(nodes: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Iterate over finer topics and those below them."""
    for node in nodes:
        yield node
        yield from _nodes(node["children"])


def _check_shape(doc_topic: Array, n_docs: int, n_topics: int) -> None:
    if doc_topic.shape != (n_docs, n_topics):
        raise InputError(
            f"doc_topic has shape {doc_topic.shape}, but there are {n_docs} documents and {n_topics} topics: give the "
            "counts that the model was fitted to."
        )


def _check_vocabulary(vocabulary: Any, n_words: int) -> None:
    if vocabulary is None or len(vocabulary) != n_words:
        raise InputError(f"vocabulary must have one name for each of the {n_words} words.")


def _tokens(counts: Any) -> Floats:
    """Return n_d of each document."""
    return np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()


def _doc_weights(counts: Any) -> Floats:
    """Return P(d), proportional to the number of tokens."""
    tokens = _tokens(counts)
    return tokens / tokens.sum() if tokens.sum() > 0 else np.full(tokens.size, 1 / max(tokens.size, 1))


def _unigram(counts: Any) -> Floats:
    """Return P(w) of documents."""
    totals = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    return np.asarray(totals / max(totals.sum(), 1.0))


def _documents_of(model: Any, counts: Any) -> TrainingDocuments:
    """Return the training documents if `counts` has as many rows, else the documents of `counts`, folded in."""
    documents, fitted, doc_weights = model._training, model._fitted, _doc_weights(counts)
    if documents is not None and len(documents.doc_topic) == counts.shape[0]:
        return TrainingDocuments(doc_weights, documents.doc_topic, documents.background)
    dtype, n_threads = fitted.topic_word.dtype, effective_threads(None)
    check_range("Every count", counts.data, dtype)
    folded = [fitted.fold_in(part, n_threads=n_threads) for part in row_batches(counts, dtype)]
    return TrainingDocuments(
        doc_weights,
        np.concatenate([weights.doc_topic for weights in folded]),
        np.concatenate([weights.background for weights in folded]),
    )


def _tree_nodes(model: HierarchicalPLSA) -> list[dict[str, Any]]:
    """Return the nodes of a topic tree."""
    tree = model.tree_
    shown = top_words(node_amounts(model), _NODE_WORDS)
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


def _model_facts(model: Any, fitted: FittedTopics) -> dict[str, Any]:
    """Return the facts of a fit. A fit to a stream has no iterations, and a fit of least squares has no likelihood."""
    results = vars(model)
    facts: dict[str, Any] = {}
    if "n_iter_" in results:
        facts["iterations"] = int(model.n_iter_)
        facts["converged"] = bool(model.converged_)
    if "log_likelihood_" in results:
        facts["training perplexity"] = perplexity_of(model.log_likelihood_)
    p = np.asarray(fitted.unigram, dtype=np.float64)
    p = p[p > 0]
    facts["perplexity without topics"] = perplexity_of((p * np.log(p)).sum())
    return facts
