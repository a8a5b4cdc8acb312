"""Hierarchical PLSA as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyseme.core.factors import rows_to_one
from polyseme.core.shard import row_batches
from polyseme.core.tree import Tree, as_tree, node_weights
from polyseme.data.corpus import MemoryCorpus, training_corpora
from polyseme.errors import InputError
from polyseme.estimators.base import CountDecomposition, TopicScores, clear_fit, factor_dtype, training_data
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.tables import frame, names_of_words, words_of_amounts
from polyseme.kernels import Array, SparseCounts, padded, single_threaded_blas
from polyseme.kernels.threads import effective_threads
from polyseme.metrics.words import WordAmounts, WordDocuments, token_amounts
from polyseme.solvers.base import FitEnd, best_fit, finish_fit, generators
from polyseme.solvers.tree import STARTS, TreeGrowth, TreePoint, TreeRun, begin, grow, leaf_topics
from polyseme.utils import check_n_jobs, check_nonnegative, check_whole_number

SOLVERS = ("accelerated-em", "em")


class HierarchicalPLSA(TopicScores, CountDecomposition):
    """PLSA with topics in a tree: P(d,w) = sum_a P(a) P(d|a) sum_v P(v|a) P(w|v), v from the root to the leaf a.

    A document is a mixture of leaves. A word of leaf a is written by a itself or by a node above it, so words that the
    leaves below a node share can rise to it: the words of the whole language to the root.

    Parameters
    ----------
    tree : the parent of each node, -1 for the root ([-1, 0, 0, 1, 1]); or nested mappings with names, the last of them
        lists: {"all": {"science": ["space", "medicine"], "sport": ["hockey", "baseball"]}}; None for a regular tree.
    depth, branching : of the regular tree: levels below the root, and children of a node (a number, or one a level).
    silent : numbers or names of nodes that write no words.
    growth : None; or a number of leaves, or a `polyseme.solvers.Growth`: leaves of the tree are split in two, the
        heaviest first, while held-out tokens become more likely, up to that number.
    init : "plsa" (topics of a short fit of PLSA, ordered by likeness) or "random".
    solver : "accelerated-em" or "em".
    n_init, max_iter, tol, n_jobs, dtype, random_state, verbose, callback : as in PLSA.

    Attributes
    ----------
    parents_ : the parent of each node, -1 for the root.
    leaves_ : the nodes without children, in the order of the columns of doc_topic_.
    node_names_, silent_ : names of the nodes (None without) and the numbers of the silent ones.
    node_word_ : P(w|node), nodes x words; rows sum to one (of a silent node, to zero).
    leaf_node_ : P(node|leaf), leaves x nodes; rows sum to one.
    node_weights_ : P(node), the share of all words that each node writes.
    components_ : leaf_node_ @ node_word_, leaves x words: all the words of each leaf.
    doc_topic_ : P(leaf|d) of the training documents, by the same folding in as `transform`.
    active_topics_ : which leaves have documents.
    labels_ : the likeliest leaf (its position in leaves_) of each training document.
    held_out_ : with growth, the held-out log-likelihood a token of each tree on the way.
    node_word_documents_ : nodes x words, the expected number of documents that contain a word and have it from a node.
    topic_weights_, doc_weights_, topic_doc_, unigram_, log_likelihood_, history_, vocabulary_, word_documents_,
    topic_documents_, document_frequency_, n_tokens_, n_iter_, converged_, n_features_in_, feature_names_in_ : as in
    PLSA, with leaves as topics.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import HierarchicalPLSA
    >>> X = np.array([[9, 4, 3, 0, 0], [8, 5, 2, 0, 1], [9, 0, 0, 3, 4], [7, 0, 1, 2, 6]])
    >>> model = HierarchicalPLSA(depth=1, branching=2, random_state=0).fit(X)
    >>> model.node_word_.shape, model.transform(X).shape
    ((3, 5), (4, 2))
    """

    def __init__(
        self,
        tree: Any = None,
        *,
        depth: int = 2,
        branching: Any = 3,
        silent: Any = (),
        growth: Any = None,
        init: str = "plsa",
        solver: str = "accelerated-em",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-2,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
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
        """Fits the tree's topics to counts X (documents x words, dense or sparse).

        A document of weight v counts as v equal documents. Ctrl-C keeps the best model so far in the estimator and
        then raises KeyboardInterrupt.
        """
        tree = as_tree(self.tree, self.depth, self.branching, self.silent)
        growth = _growth(self.growth, tree)
        for name, value, known in (("init", self.init, tuple(STARTS)), ("solver", self.solver, SOLVERS)):
            if not isinstance(value, str) or value not in known:
                raise InputError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}.")
        n_init = check_whole_number("n_init", self.n_init, least=1)
        max_iter = check_whole_number("max_iter", self.max_iter, least=1)
        tol = check_nonnegative("tol", self.tol)
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        X, weights = training_data(self, X, sample_weight, feature_names=feature_names)
        dtype = factor_dtype(self.dtype, X)
        whole, corpus, _ = training_corpora(X, dtype, weights, n_threads)
        grown: dict[int, tuple[Tree, list[float]]] = {}
        beginnings = self._beginnings(corpus, tree, growth, n_init, grown)
        best, interrupted = best_fit(self, beginnings, max_iter=max_iter, tol=tol)
        tree, scores = grown[id(best.run)]
        self._keep_tree(best, tree, scores, corpus)
        self.doc_weights_ = whole.weighted_totals / whole.tokens
        del best, grown  # the documents are folded in with the memory of the fit given back
        corpus.release()
        self._keep_documents(X, whole)
        finish_fit(self, interrupted, max_iter, tol)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Array:
        """`fit`, and P(leaf|d) of the same documents: what `transform(X)` would give."""
        return self.fit(X, y, sample_weight, feature_names).doc_topic_

    def transform(self, X: Any) -> Array:
        """P(leaf|d) (documents x leaves, rows sum to one) by folding in: tree fixed, each document to convergence."""
        check_is_fitted(self)
        return self._as_plsa().transform(X)

    def predict(self, X: Any) -> Array:
        """The likeliest leaf of each document, as its position in leaves_: hard clusters."""
        return np.asarray(self.transform(X).argmax(axis=1))

    def nodes(self, vocabulary: Any = None, *, n_words: int = 10) -> Any:
        """A frame (polars or pandas) with a row for each node: id, parent, name, level, weight, top words."""
        check_is_fitted(self)
        tree, words = self.tree_, self._node_words(vocabulary, n_words)
        levels = dict(tree.by_depth_first())
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
        """The tree as text, a line for each node: its name, its share of all words, its top words."""
        check_is_fitted(self)
        words = self._node_words(vocabulary, n_words)
        lines = []
        for node, level in self.tree_.by_depth_first():
            said = ", ".join(words[node]) if words[node] else "(silent)"
            lines.append(f"{'  ' * level}{self.tree_.label(node)} ({100 * self.node_weights_[node]:.1f}%): {said}")
        return "\n".join(lines)

    @property
    def tree_(self) -> Tree:
        """The fitted tree (`polyseme.core.tree.Tree`)."""
        names = None if self.node_names_ is None else tuple(self.node_names_)
        return Tree(tuple(int(parent) for parent in self.parents_), names, tuple(int(node) for node in self.silent_))

    def _node_words(self, vocabulary: Sequence[str] | None, n_words: int) -> list[list[str]]:
        """The words shown for each node; none of a silent one."""
        names = names_of_words(self, vocabulary)
        return words_of_amounts(self._node_amounts(), names, check_whole_number("n_words", n_words, least=1))

    def _node_amounts(self) -> WordAmounts:
        """What the words of the nodes are ranked by."""
        documents = getattr(self, "node_word_documents_", None)
        if documents is None:
            return token_amounts(self.node_word_, self.node_weights_, self.unigram_, self.n_tokens_)
        sizes = np.einsum("k,kv->v", self.topic_documents_, self.leaf_node_, dtype=np.float64)
        return WordAmounts("documents", documents, sizes, self.document_frequency_, self.node_word_)

    def _beginnings(
        self,
        corpus: MemoryCorpus,
        tree: Tree,
        growth: TreeGrowth | None,
        n_init: int,
        grown: dict[int, tuple[Tree, list[float]]],
    ) -> Iterator[Callable[[], TreeRun]]:
        """Functions that begin a run, one for each start; they note each run's tree and how it grew."""
        for rng in generators(self.random_state, n_init):

            def start(rng: np.random.Generator = rng) -> TreeRun:
                final, point, scores = tree, STARTS[self.init](corpus, tree, rng), list[float]()
                if growth is not None:
                    result = grow(growth, corpus, tree, point, rng)
                    final, point, scores = result.tree, result.point, result.scores
                run = begin(corpus, final, point, extrapolate=self.solver == SOLVERS[0])
                grown[id(run)] = final, scores
                return run

            yield start

    def _keep_tree(self, fit: FitEnd[TreeRun], tree: Tree, scores: list[float], corpus: MemoryCorpus) -> None:
        """Sets the attributes that come from the end of a fit."""
        clear_fit(self)
        point: TreePoint = fit.run.point
        n_leaves, n_nodes = len(tree.leaves), len(tree.parents)
        self.parents_ = np.array(tree.parents, dtype=np.int64)
        self.leaves_ = np.array(tree.leaves, dtype=np.int64)
        self.node_names_ = None if tree.names is None else list(tree.names)
        self.silent_ = np.array(tree.silent, dtype=np.int64)
        self.node_word_ = np.ascontiguousarray(point.node_word[:, :n_nodes].T)
        self.leaf_node_ = np.ascontiguousarray(point.leaf_node[:n_leaves, :n_nodes])
        self.components_ = np.ascontiguousarray(leaf_topics(point)[:, :n_leaves].T)
        self.unigram_ = corpus.unigram
        self.active_topics_ = point.theta[:, :n_leaves].max(axis=0) > 0
        lost = tree.speakers.any(axis=0) & (self.node_word_.sum(axis=1) == 0)
        self.node_word_[lost] = self.unigram_
        if not self.active_topics_.all():  # a leaf that lost all its documents, and so perhaps words of its own
            self.components_ = rows_to_one(self.components_)
        self.n_tokens_ = corpus.tokens
        self.history_ = fit.history
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        if self.growth is not None:
            self.held_out_ = np.array(scores)

    def _keep_documents(self, X: Any, corpus: MemoryCorpus) -> None:
        """Sets the attributes that come from folding the training documents in."""
        plsa = self._as_plsa()
        plsa.doc_weights_ = self.doc_weights_
        plsa._keep_documents(X, corpus)
        for name in ("doc_topic_", "topic_weights_", "word_documents_", "topic_documents_", "document_frequency_"):
            setattr(self, name, getattr(plsa, name))
        self.node_word_documents_ = self._node_documents(X, corpus)
        self.log_likelihood_ = plsa.log_likelihood_
        self.labels_ = self.doc_topic_.argmax(axis=1)
        self.node_weights_ = node_weights(self.leaf_node_, self.topic_weights_)

    def _node_documents(self, X: Any, corpus: MemoryCorpus) -> Array:
        """n_vw of every node v: a document is a mixture of nodes, too, P(v|d) = sum_a P(a|d) P(v|a)."""
        dtype, start = self.components_.dtype, 0
        found = WordDocuments(corpus.weights, corpus.n_threads)
        for counts in row_batches(X, dtype):
            with single_threaded_blas():
                doc_node = self.doc_topic_[start : start + counts.n_docs] @ self.leaf_node_
            found.add(counts, (padded(doc_node, dtype), padded(self.node_word_.T, dtype)), doc_node)
            start += counts.n_docs
        return found.topic_words(len(self.node_word_))

    def _as_plsa(self) -> PLSA:
        """The fitted PLSA whose topics are the leaves, with all their words."""
        plsa = PLSA(len(self.components_), n_jobs=self.n_jobs)
        plsa.temperature_ = 1.0
        for name in (
            "components_",
            "active_topics_",
            "topic_weights_",
            "n_features_in_",
            "feature_names_in_",
            "vocabulary_",
            "unigram_",
        ):
            if hasattr(self, name):
                setattr(plsa, name, getattr(self, name))
        return plsa

    def _token_probabilities(self, observed: SparseCounts, scored: SparseCounts) -> Array:
        return self._as_plsa()._token_probabilities(observed, scored)


def _growth(growth: Any, tree: Tree) -> TreeGrowth | None:
    """The settings of growth from None, a number of leaves, or settings."""
    if growth is None:
        return None
    settings = growth if isinstance(growth, TreeGrowth) else TreeGrowth(check_whole_number("growth", growth, least=2))
    if settings.max_leaves < len(tree.leaves):
        raise InputError(
            f"growth goes up to {settings.max_leaves} leaves, but the tree has {len(tree.leaves)} already: raise it."
        )
    return settings
