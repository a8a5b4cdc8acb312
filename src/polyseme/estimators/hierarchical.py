"""PLSA with topics in a tree, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyseme.core.fitted import (
    DocumentSums,
    FoldedTraining,
    StoredArray,
    document_sums,
    fold_in_training,
    with_missing_words,
)
from polyseme.core.fold_in import MaximumLikelihood, fold_in_shard
from polyseme.core.model import Model
from polyseme.core.shard import Shard, row_batches
from polyseme.core.tree import Tree, as_tree, node_weights
from polyseme.data.corpus import Corpus, accumulated
from polyseme.errors import InputError
from polyseme.estimators.base import TopicEstimator, fit_starts
from polyseme.estimators.validation import Training, init_parts, training_corpus
from polyseme.io.files import NULL, TEXT, either, list_of
from polyseme.io.models import INTEGERS, StoredAttributes, StoredValue
from polyseme.kernels import Array, Floats, normalize_rows, padded, single_threaded_blas
from polyseme.metrics.words import WordAmounts, frame, names_of_words, words_of_amounts
from polyseme.solvers.base import FitSummary, best_fit, finish_fit, seeds
from polyseme.solvers.initialize import check_init, given_topics, is_topics_only
from polyseme.solvers.tree import STARTS, TreeGrowth, TreeRun, arranged_start, corpus_rows, grow, leaf_topics
from polyseme.utils import (
    FitCallback,
    RandomStateLike,
    check_integer,
    check_n_jobs,
    check_nonnegative,
    effective_threads,
)

SOLVERS = ("accelerated-em", "em")


class HierarchicalPLSA(TopicEstimator):
    """PLSA with topics in a tree, fitted by maximum likelihood.

    A document is a mixture of leaves a, and a word of a leaf comes from a node v on the path from the root to it::

        P(d, w) = sum_a P(a) P(d|a) sum_v P(v|a) P(w|v)

    Words that the leaves below a node have in common can move to the node, and words of the whole corpus to the root.

    Parameters
    ----------
    tree : sequence of int or nested mapping, default=None
        The parent of each node, with -1 for the root ([-1, 0, 0, 1, 1]); or nested mappings of names with lists at the
        end: {"all": {"science": ["space", "medicine"], "sport": ["hockey", "baseball"]}}. None uses a regular tree.
    depth : int, default=2
        Number of levels below the root of the regular tree.
    branching : int or sequence of int, default=3
        Number of children of a node of the regular tree: one number, or one for each level.
    silent : sequence of int or str, default=()
        Indices or names of nodes that produce no words.
    growth : int or TreeGrowth, default=None
        Maximum number of leaves, or a `polyseme.solvers.TreeGrowth`: leaves are split in two, those of largest weight
        first, as long as held-out tokens become more probable. With None, the tree does not grow.
    init : {"plsa", "random"} or (None, array), default="plsa"
        Start of the fit. "plsa" arranges the topics of a short fit of PLSA in the tree by similarity, and
        (None, P(w|z)) the given topics (leaves x words).
    solver : {"accelerated-em", "em"}, default="accelerated-em"
        EM with or without extrapolation.
    n_init : int, default=1
        Number of starts. The fit with the best objective is kept.
    max_iter : int, default=200
        Maximum number of iterations of a start.
    tol : float, default=0.001
        A fit stops when an estimate of what it can still gain is below `tol` nats per token, as in PLSA.
    n_jobs : int, default=None
        Number of threads; None uses all cores that the process may use. Results do not depend on it.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None uses float64 for float64 data, else float32.
    random_state : int, RandomState or Generator, default=None
        Seed of the start.
    verbose : int, default=0
        1 shows a progress bar, 2 also leaves it on the screen.
    callback : callable, default=None
        Called after each iteration with a dict: iteration, seconds, log_likelihood, objective, residual, remaining.

    Attributes
    ----------
    parents_ : array of shape (n_nodes,)
        The parent of each node, -1 for the root.
    leaves_ : array of shape (n_leaves,)
        The nodes without children, in the order of the columns of `doc_topic_`.
    node_names_ : list of str or None
        Names of the nodes.
    silent_ : array of int
        Nodes that produce no words.
    tree_ : Tree
        The fitted tree.
    node_word_ : array of shape (n_nodes, n_words)
        P(w|node); rows sum to one, except that rows of silent nodes are zero.
    leaf_node_ : array of shape (n_leaves, n_nodes)
        P(node|leaf); rows sum to one.
    node_weights_ : array of shape (n_nodes,)
        P(node), the share of all tokens that each node produces.
    components_ : array of shape (n_leaves, n_words)
        P(w|leaf) = leaf_node_ @ node_word_.
    doc_topic_ : array of shape (n_documents, n_leaves)
        P(leaf|d) of the training documents, equal to `transform(X)`.
    labels_ : array of shape (n_documents,)
        The most probable leaf of each training document, as its position in `leaves_`.
    active_topics_ : array of bool of shape (n_leaves,)
        Leaves that have documents.
    held_out_ : array
        With `growth`: mean log-probability of a held-out token for each tree that was tried.
    node_word_documents_ : array of shape (n_nodes, n_words)
        Expected number of documents that contain a word produced by a node.
    topic_weights_ : array of shape (n_leaves,)
        P(leaf).
    doc_weights_ : array of shape (n_documents,)
        P(d).
    topic_doc_ : array of shape (n_leaves, n_documents)
        P(d|leaf); rows sum to one.
    unigram_ : array of shape (n_words,)
        P(w) of the training documents.
    log_likelihood_ : float
        Mean log P(w|d) of a training token (natural logarithm).
    history_ : dict of arrays
        Values of each iteration as in PLSA.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether the fit stopped by `tol`.
    solver_ : str
        Name of the solver that fitted the model.
    n_tokens_ : float
        Number of training tokens, multiplied by the weights of their documents.
    vocabulary_ : array of str or None
        The word of each column.
    word_documents_ : array of shape (n_leaves, n_words)
        Expected number of documents that contain a word and use it in a leaf.
    topic_documents_ : array of shape (n_leaves,)
        Sum of P(leaf|d) over the training documents.
    document_frequency_ : array of shape (n_words,)
        Number of training documents that contain each word.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : array of str
        Names of the columns, if X is a data frame.

    References
    ----------
    - Gaussier, E., Goutte, C., Popat, K., and Chen, F. (2002). A hierarchical model for clustering and categorising
      documents. ECIR.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import HierarchicalPLSA
    >>> X = np.array([[9, 4, 3, 0, 0], [8, 5, 2, 0, 1], [9, 0, 0, 3, 4], [7, 0, 1, 2, 6]])
    >>> model = HierarchicalPLSA(depth=1, branching=2, random_state=0).fit(X)
    >>> model.node_word_.shape, model.transform(X).shape
    ((3, 5), (4, 2))
    """

    _stored: ClassVar[StoredAttributes] = {
        **TopicEstimator._stored,
        "parents_": StoredArray("N", INTEGERS),
        "leaves_": StoredArray("K", INTEGERS),
        "silent_": StoredArray("S", INTEGERS),
        "node_names_": StoredValue(either(NULL, list_of(TEXT))),
        "node_word_": StoredArray("NW"),
        "leaf_node_": StoredArray("KN"),
        "node_weights_": StoredArray("N"),
        "node_word_documents_": StoredArray("NW"),
        "labels_": StoredArray("D", INTEGERS, required=False),
    }
    node_word_: Array
    leaf_node_: Array
    node_weights_: Floats
    node_word_documents_: Floats
    labels_: Array
    held_out_: Floats

    def __init__(
        self,
        tree: Any = None,
        *,
        depth: int = 2,
        branching: Any = 3,
        silent: Any = (),
        growth: Any = None,
        init: Any = "plsa",
        solver: str = "accelerated-em",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        callback: FitCallback = None,
    ) -> None:
        self.tree = tree
        self.depth = depth
        self.branching = branching
        self.silent = silent
        self.growth = growth
        self.init = init
        self.solver = solver
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Self:
        """Fit the topics of the tree to counts.

        Ctrl-C stores the best model so far in the estimator and then raises KeyboardInterrupt.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk (`polyseme.scale.open_shards`).
        y : Ignored, default=None
            Present for compatibility with scikit-learn. Paths of classes ("sport/tennis") are refused, because the
            tree is fitted without labels.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents. A document of weight v counts as v equal documents.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X. None uses the column names of a data frame.

        Returns
        -------
        Self
            The fitted estimator.
        """
        labels = () if y is None else np.asarray(y).ravel()
        paths = [label for label in labels if isinstance(label, str) and "/" in label]
        if paths:
            raise InputError(
                f"HierarchicalPLSA fits its tree without labels, but y has the path {str(paths[0])!r}: leave y out, or "
                "fit TopicClassifier(separator='/') to predict paths."
            )
        tree = as_tree(self.tree, self.depth, self.branching, self.silent)
        growth = _growth(self.growth, tree)
        check_init(self.init, STARTS, topics_only=True)
        if not isinstance(self.solver, str) or self.solver not in SOLVERS:
            raise InputError(f"solver must be one of {', '.join(map(repr, SOLVERS))}, got {self.solver!r}.")
        n_init = check_integer("n_init", self.n_init, least=1)
        max_iter = check_integer("max_iter", self.max_iter, least=1)
        tol = check_nonnegative("tol", self.tol)
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        with training_corpus(self, X, sample_weight, feature_names, n_threads) as training:
            corpus, folder = training.corpus, fit_starts(training.corpus, self.random_state)
            starts = folder.starts(
                corpus,
                (tree, growth, *init_parts(self.init), self.solver, max_iter, tol, corpus.dtype),
                seeds(self.random_state, 1 if is_topics_only(self.init) else n_init),
                partial(self._begin, tree, growth),
                lambda corpus, state: TreeRun.resumed(corpus, tree, state, extrapolate=self.solver == SOLVERS[0]),
            )
            best, interrupted = best_fit(self, starts, max_iter=max_iter, tol=tol)
            arrays, end = _TreeArrays.of(best.run), FitSummary.of(best, interrupted, self.solver)
            del best, starts  # frees the memory of the fit before the documents are folded in
            corpus.release()
            self._set_fit(arrays, end, training)
            if not interrupted:
                folder.finish()
        finish_fit(end, self.components_.dtype, max_iter, tol)
        return self

    def predict(self, X: Any) -> Array:
        """Return the most probable leaf of each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        array of shape (n_documents,)
            Positions in `leaves_`.
        """
        return np.asarray(self.transform(X).argmax(axis=1))

    def nodes(self, vocabulary: Any = None, *, n_words: int = 10) -> Any:
        """Return a data frame with one row per node: id, parent, name, level, weight and most relevant words.

        Parameters
        ----------
        vocabulary : sequence of str or fitted vectorizer, default=None
            The word of each column. None uses the names that the model knows.
        n_words : int, default=10
            Number of words per node.

        Returns
        -------
        polars.DataFrame or pandas.DataFrame
            The nodes, as a pandas data frame if polars is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import HierarchicalPLSA
        >>> X = np.array([[4, 3, 0, 0, 5], [5, 2, 0, 1, 6], [0, 0, 3, 4, 5], [0, 1, 2, 6, 6]])
        >>> model = HierarchicalPLSA([-1, 0, 0], random_state=0).fit(X)
        >>> model.nodes(n_words=2)["level"].to_list()
        [0, 1, 1]
        """
        check_is_fitted(self)
        tree, words = self.tree_, self._node_words(vocabulary, n_words)
        levels = dict(tree.depth_first())
        ids = list(range(len(tree.parents)))
        return frame(
            {
                "id": ids,
                "parent": list(tree.parents),
                "name": [tree.label(node) for node in ids],
                "level": [levels[node] for node in ids],
                "weight": [float(weight) for weight in self.node_weights_],
                "words": [", ".join(row) for row in words],
            }
        )

    def tree_text(self, vocabulary: Any = None, *, n_words: int = 8) -> str:
        """Return the tree as text, with one line per node: name, share of all tokens and most relevant words.

        Parameters
        ----------
        vocabulary : sequence of str or fitted vectorizer, default=None
            The word of each column. None uses the names that the model knows.
        n_words : int, default=8
            Number of words per node.

        Returns
        -------
        str
            Lines, indented by level.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import HierarchicalPLSA
        >>> X = np.array([[4, 3, 0, 0, 5], [5, 2, 0, 1, 6], [0, 0, 3, 4, 5], [0, 1, 2, 6, 6]])
        >>> model = HierarchicalPLSA([-1, 0, 0], random_state=0).fit(X)
        >>> len(model.tree_text(n_words=2).splitlines())
        3
        """
        check_is_fitted(self)
        words = self._node_words(vocabulary, n_words)
        lines = []
        for node, level in self.tree_.depth_first():
            text = ", ".join(words[node]) if words[node] else "(silent)"
            lines.append(f"{'  ' * level}{self.tree_.label(node)} ({100 * self.node_weights_[node]:.1f}%): {text}")
        return "\n".join(lines)

    @property
    def active_topics_(self) -> Array:
        """Leaves that have documents, bool of shape (n_leaves,)."""
        return self._topics.active

    @property
    def tree_(self) -> Tree:
        """The fitted tree, a `polyseme.core.tree.Tree`."""
        names = None if self.node_names_ is None else tuple(self.node_names_)
        return Tree(tuple(int(parent) for parent in self.parents_), names, tuple(int(node) for node in self.silent_))

    def _check_stored(self) -> None:
        tree = as_tree(self.parents_, 0, 0, [int(node) for node in self.silent_])
        if self.leaves_.tolist() != list(tree.leaves):
            raise ValueError("leaves_ are not the leaves of the tree")
        if len(getattr(self, "node_names_", None) or tree.parents) != len(tree.parents):
            raise ValueError("node_names_ does not have one name for each node")

    def _node_words(self, vocabulary: Sequence[str] | None, n_words: int) -> list[list[str]]:
        """Return the words shown for each node; silent nodes have none."""
        names = names_of_words(self, vocabulary)
        return words_of_amounts(node_amounts(self), names, check_integer("n_words", n_words, least=1))

    def _begin(self, tree: Tree, growth: TreeGrowth | None, corpus: Corpus, rng: np.random.Generator) -> TreeRun:
        """Begin a fit. The start and the growth of the tree use all documents, or a sample that fits in memory."""
        memory, is_complete = corpus.load(rng)
        scores = None
        if is_topics_only(self.init):
            model = Model(len(tree.leaves))
            phi = given_topics(self.init[1], memory, model)
            point = arranged_start(memory, tree, fold_in_shard(model, memory, phi), phi)
        else:
            point = STARTS[self.init](memory, tree, rng)
        if growth is not None:
            grown = grow(growth, memory, tree, point, rng)
            tree, point, scores = grown.tree, grown.point, grown.scores
        point = corpus_rows(corpus, tree, point, is_complete)
        return TreeRun(corpus, tree, point, extrapolate=self.solver == SOLVERS[0], scores=scores)

    def _set_fit(self, arrays: _TreeArrays, end: FitSummary, training: Training) -> None:
        """Fold in the documents with the leaves as topics, and set all attributes of the fit."""
        corpus, tree = training.corpus, arrays.tree
        folded = fold_in_training(
            corpus.all_documents, arrays.topic_word, MaximumLikelihood(), active=arrays.active,
            unigram=corpus.unigram, n_tokens=corpus.tokens, n_documents=corpus.documents,
            vocabulary=training.vocabulary,
        )  # fmt: skip
        attributes = node_attributes(arrays.node_word, arrays.leaf_node, folded, corpus.all_documents)
        self._set_fitted(folded, end, {**attributes, "node_word_": arrays.node_word, "leaf_node_": arrays.leaf_node})
        self.parents_ = np.array(tree.parents, dtype=np.int64)
        self.leaves_ = np.array(tree.leaves, dtype=np.int64)
        self.node_names_ = None if tree.names is None else list(tree.names)
        self.silent_ = np.array(tree.silent, dtype=np.int64)

    def _complete_topics(self, unigram: Floats) -> None:
        missing = self._fitted.missing_words(unigram)
        # A leaf is a mixture of nodes, so changing all nodes changes the leaves as the inherited method does.
        self.node_word_ = with_missing_words(self.node_word_, missing, unigram)
        super()._complete_topics(unigram)

    def _of_documents(self, folded: FoldedTraining, corpus: Corpus) -> dict[str, Any]:
        return node_attributes(self.node_word_, self.leaf_node_, folded, corpus)


def node_amounts(model: HierarchicalPLSA) -> WordAmounts:
    """Return the expected counts by which the words of the nodes are ranked."""
    sizes = np.einsum("k,kv->v", model.topic_documents_, model.leaf_node_, dtype=np.float64)
    return WordAmounts(
        "documents", model.node_word_documents_, sizes, model.document_frequency_, model.node_word_
    )  # fmt: skip


def node_attributes(node_word: Array, leaf_node: Array, folded: FoldedTraining, corpus: Corpus) -> dict[str, Any]:
    """Return the attributes of the nodes that follow from the documents, from P(w|node) and P(node|leaf)."""
    doc_topic = folded.documents.doc_topic
    sums = corpus.total(node_documents, corpus.split(doc_topic), (node_word, leaf_node))
    return {
        "node_word_documents_": sums.by_topic().amounts,
        "labels_": doc_topic.argmax(axis=1),
        "node_weights_": node_weights(leaf_node, folded.fitted.topic_weights),
    }


def node_documents(shard: Shard, doc_topic: Array, node_word: Array, leaf_node: Array) -> DocumentSums:
    """Return the expected number of documents per node and word, with P(v|d) = sum_a P(a|d) P(v|a)."""
    dtype, start, total = node_word.dtype, 0, None
    words = padded(node_word.T, dtype)
    for counts in row_batches(shard.counts.matrix(), dtype):
        rows = slice(start, start + counts.n_docs)
        with single_threaded_blas():
            doc_node = doc_topic[rows] @ leaf_node
        weights = None if shard.weights is None else shard.weights[rows]
        sums = document_sums(counts, (padded(doc_node, dtype), words), doc_node, weights, n_threads=shard.n_threads)
        total = accumulated(total, sums)
        start = rows.stop
    assert total is not None
    return total


class _TreeArrays(NamedTuple):
    """A tree and its arrays at the end of a fit, without padding."""

    tree: Tree
    node_word: Array
    """P(w|node), nodes x words."""
    leaf_node: Array
    """P(node|leaf), leaves x nodes."""
    topic_word: Array
    """P(w|leaf), leaves x words."""
    active: Array
    """Which leaves have documents."""

    @classmethod
    def of(cls, run: TreeRun) -> _TreeArrays:
        tree, point = run.tree, run.parameters
        n_leaves, n_nodes = len(tree.leaves), len(tree.parents)
        node_word = np.ascontiguousarray(point.node_word[:, :n_nodes].T)
        leaf_node = np.ascontiguousarray(point.leaf_node[:n_leaves, :n_nodes])
        topic_word = np.ascontiguousarray(leaf_topics(point.node_word, point.leaf_node)[:, :n_leaves].T)
        active = np.max(run.corpus.map(_largest_weights, point.theta), axis=0)[:n_leaves] > 0
        empty = tree.emitting_nodes.any(axis=0) & (node_word.sum(axis=1) == 0)
        node_word[empty] = run.corpus.unigram
        if not active.all():  # a leaf without documents may have no words
            topic_word = normalize_rows(topic_word)
        return cls(tree, node_word, leaf_node, topic_word, active)


def _largest_weights(shard: Shard, theta: Array) -> Array:
    """Return the largest weight that each leaf has in any document."""
    return np.asarray(theta.max(axis=0, initial=0))


def _growth(growth: Any, tree: Tree) -> TreeGrowth | None:
    """Return the settings of growth from None, a number of leaves, or settings."""
    if growth is None:
        return None
    settings = growth if isinstance(growth, TreeGrowth) else TreeGrowth(check_integer("growth", growth, least=2))
    if settings.max_leaves < len(tree.leaves):
        raise InputError(
            f"growth allows at most {settings.max_leaves} leaves, but the tree has {len(tree.leaves)}: raise growth."
        )
    return settings
