"""Classification of documents by topics that are tied to classes.

The model is PLSA with known topics (`polyseme.priors.KnownTopics`): a labeled document has only the topics of its
classes and the shared topics, an unlabeled document may have all topics. The weights of all topics of a new document
are estimated jointly, and the class with the largest weight is predicted.

References
----------
D. Ramage, D. Hall, R. Nallapati and C. D. Manning (2009). Labeled LDA: a supervised topic model for credit attribution
in multi-labeled corpora. EMNLP, 248-256.

K. Nigam, A. McCallum, S. Thrun and T. Mitchell (2000). Text classification from labeled and unlabeled documents using
EM. Machine Learning 39, 103-134.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, column_or_1d

from polyseme.core.fitted import StoredArray
from polyseme.errors import InputError
from polyseme.estimators.base import TopicEstimator
from polyseme.estimators.likelihood import LikelihoodSettings, fit_likelihood
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.validation import Training, check_not_shards, training_corpus
from polyseme.io.files import FLAG, NOT_A_NUMBER, TEXT, either, number
from polyseme.io.models import INTEGERS, StoredAttributes, StoredValue
from polyseme.kernels import Array, Floats, normalize_rows
from polyseme.priors import Dirichlet, KnownTopics, Smoothing
from polyseme.sklearn_bases import ClassifierMixin
from polyseme.solvers.base import finish_fit, generators
from polyseme.utils import (
    FitCallback,
    RandomStateLike,
    check_integer,
    check_n_jobs,
    check_nonnegative,
    check_share,
    effective_threads,
)

SHARED, FREE = -1, -2
"""Entries of `topic_classes_` for topics that are not tied to a class."""
_BACKGROUND = 0.9
"""Share of the background in a fit to unlabeled documents only; `background="auto"` multiplies it by the share of
unlabeled documents.

With unlabeled documents, topics drift toward differences in style, which show in words that occur everywhere. With
labels for all documents, these words help. The shares 0.9 without labels and 0 with labels for all documents were
chosen on the training part of 20 Newsgroups (docs/labels.md)."""
USES = ("none", "guided", "any")
"""Values of `unlabeled`; "auto" keeps the first one unless another is clearly better."""
_FOLDS = 3
"""Parts of the labels in the comparison by `unlabeled="auto"`."""
_GUESS, _CLASS_PRIOR = 0.5, 0.25
"""With `unlabeled="guided"`: pseudo-counts of the guessed class of a document, and of all classes by their shares, both
in units of `doc_smoothing` per class. They were chosen on unbalanced parts of 20 Newsgroups (docs/labels.md)."""
_SHARPNESS = 4.0
"""Power of the weights of classes that gives their probabilities. It calibrates the probabilities of held-out training
documents of 20 Newsgroups (docs/labels.md)."""


_CLASS_DTYPES = (
    "str", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64",
)  # fmt: skip
"""Dtypes of `classes_` in a model file."""


class TopicClassifier(ClassifierMixin, TopicEstimator):
    """Classifier whose classes are topics: PLSA in which labeled documents have only the topics of their classes.

    Each class has its own `topics_per_class` topics. Shared topics are available to all documents, free topics only to
    unlabeled documents, for subjects without a class. Unlabeled documents (label -1) help to find the words of the
    topics. A document may have several classes (an indicator matrix as y), or its label may be an inner node of a tree
    of classes (`separator`).

    Parameters
    ----------
    topics_per_class : int, default=1
        Number of topics that are tied to each class.
    separator : str, default=None
        Separator in labels that are paths in a tree: with "/", the label "sport/tennis" is a leaf below "sport". The
        classes are the leaves. A document with the label of an inner node ("sport") may have the topics of all classes
        below it; otherwise it is treated as an unlabeled document. None takes every label as the name of a class.
    n_shared : int, default=None
        Number of topics that the documents of all classes may use. None uses one if there are unlabeled documents, for
        the words that they have in common, and none otherwise.
    n_free : int, default=0
        Number of topics that only unlabeled documents and new documents may use.
    background : float or "auto", default="auto"
        Weight lambda of the unigram distribution in every document, as in `PLSA`. "auto" is 0.9 times the share of
        unlabeled documents: without labels, words that occur everywhere would divide the documents by their style.
    doc_smoothing : float, default=2.0
        Number of pseudo-counts of every topic in a document that is not labeled. Larger values distribute the weights
        of a document over more topics, so that a single word decides less.
    topic_smoothing : float, default=10.0
        Number of pseudo-counts per topic, distributed as the words of all documents.
    unlabeled : {"auto", "guided", "any", "none"}, default="auto"
        Use of unlabeled documents. "any" lets them have all topics with equal prior weights, which suits classes of
        equal size: the topic of a rare class can be drawn into documents of a frequent one. "guided" favors the class
        that a fit to the labeled documents predicts, and learns the shares of the classes from these predictions.
        "none" leaves unlabeled documents out. "auto" takes the one that predicts held-out labels best, by three-fold
        cross-validation weighted by the predicted shares of the classes, and "none" unless another gains more than the
        standard error of its gain (about twelve more fits; "none" is not tried with free topics, and "guided" is taken
        if no class has two labels). With an indicator matrix, "auto" is "any".
    unlabeled_weight : float, default=1.0
        Weight of an unlabeled document; 1 counts it as much as a labeled one.
    solver : str or Solver, default="em"
        Solver of the fit, as in `PLSA`.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=0.05
        A fit stops when an estimate of what it can still gain is below `tol` nats per token, as in PLSA. Many
        iterations make unlabeled documents depend less on the labels.
    n_jobs : int, default=None
        Number of threads; None uses all cores that the process may use. Results do not depend on it.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None uses float64 for float64 data, else float32.
    random_state : int, RandomState or Generator, default=None
        Seed of the start, which is random with several topics per class, several shared topics or free topics.
    verbose : int, default=0
        1 shows a progress bar, 2 also leaves it on the screen.
    callback : callable, default=None
        Called after each iteration with a dict: iteration, seconds, log_likelihood, objective, residual, remaining.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels of the classes; paths of the leaves if labels are paths, column indices if y is an indicator matrix.
    topic_classes_ : array of shape (K,)
        The class of each topic, as an index of `classes_`; -1 for shared topics, -2 for free topics.
    topic_names_ : list of str
        The name of each topic: that of its class, "shared" or "free", with a number if there are several.
    unlabeled_ : {"guided", "any", "none"}
        Use of unlabeled documents in the fit; "none" also if there are none.
    multilabel_ : bool
        Whether y was an indicator matrix.
    threshold_ : float
        With several classes per document: weight above which a class is predicted, chosen by F1 on the labeled training
        documents. NaN otherwise.
    components_ : array of shape (K, n_words)
        P(w|z); rows sum to one.
    doc_topic_ : array of shape (n_documents, K)
        P(z|d) of the training documents. A labeled document has only the topics of its classes and shared topics;
        `transform` does not use labels.
    topic_weights_ : array of shape (K,)
        P(z).
    log_likelihood_ : float
        Mean log P(w|d) of a training token (natural logarithm).
    history_ : dict of arrays
        Values of each iteration: iteration, seconds, log_likelihood, objective, residual, remaining.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the fit stopped by `tol`.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : array of str
        Names of the columns, if X is a data frame.

    References
    ----------
    - Ramage, D., Hall, D., Nallapati, R., and Manning, C. D. (2009). Labeled LDA: a supervised topic model for credit
      attribution in multi-labeled corpora. EMNLP.
    - Nigam, K., McCallum, A., Thrun, S., and Mitchell, T. (2000). Text classification from labeled and unlabeled
      documents using EM. Machine Learning 39, 103-134.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import TopicClassifier
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = TopicClassifier().fit(X, ["rain", -1, "sun", -1])
    >>> model.predict([[2, 1, 0, 0], [0, 0, 1, 1]]).tolist()
    ['rain', 'sun']
    """

    classes_: Array
    topic_classes_: Array
    unlabeled_: str
    multilabel_: bool
    threshold_: float

    _stored: ClassVar[StoredAttributes] = {
        **TopicEstimator._stored,
        "classes_": StoredArray("C", _CLASS_DTYPES),
        "multilabel_": StoredValue(FLAG, required=True),
        "unlabeled_": StoredValue(TEXT),
        "topic_classes_": StoredArray("K", INTEGERS),
        "threshold_": StoredValue(either(number(0, 1), NOT_A_NUMBER), required=True),
    }

    def __init__(
        self,
        topics_per_class: int = 1,
        *,
        separator: str | None = None,
        n_shared: int | None = None,
        n_free: int = 0,
        background: Any = "auto",
        doc_smoothing: float = 2.0,
        topic_smoothing: float = 10.0,
        unlabeled: str = "auto",
        unlabeled_weight: float = 1.0,
        solver: Any = "em",
        max_iter: int = 100,
        tol: float = 0.05,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        callback: FitCallback = None,
    ) -> None:
        self.topics_per_class = topics_per_class
        self.separator = separator
        self.n_shared = n_shared
        self.n_free = n_free
        self.background = background
        self.doc_smoothing = doc_smoothing
        self.topic_smoothing = topic_smoothing
        self.unlabeled = unlabeled
        self.unlabeled_weight = unlabeled_weight
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.poor_score = True  # as MultinomialNB: the data of the check are not counts
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Self:
        """Fit the topics to labeled and unlabeled documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        y : array-like of shape (n_documents,) or (n_documents, n_classes)
            The label of each document; -1 (also None and NaN in arrays of objects) marks unlabeled documents. With
            `separator`, labels are paths in a tree. A matrix of zeros and ones has a column for each class; rows of -1
            are unlabeled documents.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents. A document of weight v counts as v equal documents.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X. None uses the column names of a data frame.

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import TopicClassifier
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = TopicClassifier(unlabeled="none", random_state=0).fit(X, ["pets", "pets", "money", "money"])
        >>> model.topic_names_
        ['money', 'pets']
        """
        check_not_shards(self, X)
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give a label for each "
                "document, -1 for unlabeled ones."
            )
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        with training_corpus(self, X, sample_weight, feature_names, n_threads) as training:
            labels = ClassLabels.of(y, training.corpus.all_documents.n_docs, self.separator)
        given = np.ones(len(labels.labeled)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        labels.check_weights(given)
        return self._fit_labels(X, labels, given, feature_names)

    def _fit_labels(self, X: Any, labels: ClassLabels, given: Floats, feature_names: Any = None) -> Self:
        """Fit the topics to documents with the weights `given`."""
        layout = (
            check_integer("topics_per_class", self.topics_per_class, least=1),
            0 if self.n_shared is None else check_integer("n_shared", self.n_shared, least=0),
            check_integer("n_free", self.n_free, least=0),
        )
        rows = X.tocsr() if sp.issparse(X) else np.asarray(X)
        use, guessed = self._use_of_unlabeled(rows, labels, given)
        if self.n_shared is None and use != "none":
            layout = (layout[0], 1, layout[2])
        weights = self._weights(labels, given, use, layout)
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        with training_corpus(self, X, weights, feature_names, n_threads) as training:
            plsa = self._plsa(labels, layout, weights, training, guessed)
            fit = fit_likelihood(LikelihoodSettings.of(plsa), training)
        self._set_fitted(fit.folded, fit.end)
        self.classes_, self.multilabel_, self.unlabeled_ = labels.classes, labels.several, use
        self.topic_classes_ = _topic_classes(labels.n_classes, *layout)
        self.threshold_ = float("nan")
        if labels.several:
            used = np.flatnonzero(labels.labeled & (weights > 0))
            of_class = self._sums_by_class(self.transform(rows[used]).astype(np.float64))
            self.threshold_ = _best_threshold(of_class, labels.indicator[used])
        finish_fit(fit.end, self.components_.dtype, self.max_iter, self.tol)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Array:
        """Fit the model and return the topic weights of the same documents, as if they had no labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        y : array-like of shape (n_documents,) or (n_documents, n_classes)
            Labels, as in `fit`.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column.

        Returns
        -------
        array of shape (n_documents, n_topics)
            P(z|d), equal to `transform(X)`. `doc_topic_` are the weights with the labels.
        """
        return self.fit(X, y, sample_weight, feature_names).transform(X)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes of documents.

        The weights of all topics of a document are estimated jointly. With one class per document, the
        probabilities are proportional to the fourth power of the weights of the classes, because the weights themselves
        are shares of tokens, which say too little about a document as a whole. With several, each class has its own
        probability, 1/2 at the weight `threshold_`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        array of shape (n_documents, n_classes)
            Probabilities. With one class per document the rows sum to one.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import TopicClassifier
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = TopicClassifier(unlabeled="none", random_state=0).fit(X, ["pets", "pets", "money", "money"])
        >>> model.classes_, model.predict_proba([[1, 1, 0, 0], [0, 0, 1, 1]]).argmax(axis=1)
        (array(['money', 'pets'], dtype='<U5'), array([1, 0]))
        """
        check_is_fitted(self)
        return self.class_probabilities(self.transform(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        array of shape (n_documents,) or (n_documents, n_classes)
            Labels; paths of leaves if labels are paths. With several classes per document, a matrix of zeros and ones.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import TopicClassifier
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = TopicClassifier(unlabeled="none", random_state=0).fit(X, ["pets", "pets", "money", "money"])
        >>> model.predict([[1, 1, 0, 0], [0, 0, 1, 1]])
        array(['pets', 'money'], dtype='<U5')
        """
        probabilities = self.predict_proba(X)
        if self.multilabel_:
            return (probabilities > 0.5).astype(np.int64)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def class_probabilities(self, doc_topic: Any) -> Floats:
        """Return the probabilities of the classes of documents whose topic weights are known.

        Parameters
        ----------
        doc_topic : array-like of shape (n_documents, K)
            P(z|d), as `transform` returns it.

        Returns
        -------
        array of shape (n_documents, n_classes)
            Probabilities, as `predict_proba` returns them.
        """
        check_is_fitted(self)
        powers = self._sums_by_class(np.asarray(doc_topic, dtype=np.float64)) ** _SHARPNESS
        if self.multilabel_:
            return np.asarray(powers / (powers + self.threshold_**_SHARPNESS))
        return normalize_rows(np.where(powers.sum(axis=1, keepdims=True) > 0, powers, 1.0))

    @property
    def topic_names_(self) -> list[str]:
        """Name of each topic: that of its class, "shared" or "free", with a number if there are several."""
        check_is_fitted(self)
        names = [
            "free" if c == FREE else "shared" if c == SHARED else str(self.classes_[c]) for c in self.topic_classes_
        ]
        return [
            name if names.count(name) == 1 else f"{name} {names[: topic + 1].count(name)}"
            for topic, name in enumerate(names)
        ]

    @property
    def _own_topic_names(self) -> Sequence[str]:
        return self.topic_names_

    def _predicted(self, doc_topic: Array) -> dict[str, Any]:
        """Return the columns `predicted` and `probability`; none if documents have several classes."""
        if self.multilabel_:
            return {}
        probabilities = self.class_probabilities(doc_topic)
        labels = [str(self.classes_[c]) for c in probabilities.argmax(axis=1)]
        return {"predicted": np.array(labels, dtype=object), "probability": probabilities.max(axis=1)}

    def _check_stored(self) -> None:
        if (
            not len(self.classes_)
            or self.topic_classes_.min() < FREE
            or self.topic_classes_.max() >= len(self.classes_)
        ):
            raise ValueError("topic_classes_ has an index that is not one of a class")

    def _sums_by_class(self, doc_topic: Floats) -> Floats:
        """Return the weight of each class, the sum of the weights of its topics."""
        return doc_topic @ (self.topic_classes_[:, np.newaxis] == np.arange(len(self.classes_))).astype(np.float64)

    def _use_of_unlabeled(self, X: Any, labels: ClassLabels, given: Floats) -> tuple[str, Array | None]:
        """Return the use of unlabeled documents, and the class that the labeled ones predict for each document.

        given : weights of the documents.
        """
        if not isinstance(self.unlabeled, str) or self.unlabeled not in ("auto", *USES):
            raise InputError(f"unlabeled must be 'auto', 'guided', 'any' or 'none', got {self.unlabeled!r}.")
        if labels.several and self.unlabeled == "guided":
            raise InputError("unlabeled='guided' needs one class per document: use 'any' or 'none' with a matrix y.")
        use, unlabeled = self.unlabeled, ~labels.labeled & (given > 0)
        if check_nonnegative("unlabeled_weight", self.unlabeled_weight) == 0 or not unlabeled.any():
            return "none", None
        if use in ("none", "any") or labels.several:
            return ("any" if use == "auto" else use), None
        possible = labels.indicator | ~labels.indicator.any(axis=1, keepdims=True)
        alone = self._with_use("none")._fit_labels(X, labels, given)
        guessed = np.where(possible, alone.predict_proba(X), -1.0).argmax(axis=1)
        if use == "auto":
            use = self._best_use(X, labels, given, _shares(guessed, np.where(unlabeled, given, 0.0), labels.n_classes))
        return use, np.where(unlabeled, guessed, -1) if use == "guided" else None

    def _with_use(self, use: str) -> TopicClassifier:
        """Return an estimator with the same parameters and a fixed use of unlabeled documents."""
        free = 0 if use == "none" else self.n_free
        fixed: TopicClassifier = clone(self)
        return fixed.set_params(unlabeled=use, n_free=free, verbose=0, callback=None)

    def _best_use(self, X: Any, labels: ClassLabels, given: Floats, shares: Floats) -> str:
        """Return the use of unlabeled documents that predicts held-out labels best.

        The score is the mean recall of the classes, weighted by their shares among the unlabeled documents: labels need
        not have the same shares. "none" is kept unless another gains more than the standard error of its gain.
        """
        codes = np.where(labels.labeled, labels.indicator.argmax(axis=1), -1)
        folds = np.full(len(codes), -1)
        for c in range(len(shares)):
            members = np.flatnonzero((codes == c) & (given > 0))
            if len(members) > 1:
                folds[members] = np.arange(len(members)) % _FOLDS
        held_out = np.flatnonzero(folds >= 0)
        if not held_out.size:
            return "guided"
        worth = (shares / np.maximum(np.bincount(codes[held_out], minlength=len(shares)), 1))[codes]
        first, *others = USES[1:] if self.n_free else USES
        scores = {use: np.zeros(len(codes)) for use in (first, *others)}
        for use, score in scores.items():
            for fold in np.unique(folds[held_out]):
                held = folds == fold
                model = self._with_use(use)._fit_labels(X, labels.without(held), np.where(held, 0.0, given))
                score[held] = worth[held] * (model.predict_proba(X[np.flatnonzero(held)]).argmax(axis=1) == codes[held])
        gains = {use: scores[use] - scores[first] for use in others}
        # The factor keeps the gain of a single document, which equals its standard error, from passing by rounding.
        clear = {use: gain.sum() for use, gain in gains.items() if gain.sum() > 1.000001 * np.sqrt((gain**2).sum())}
        return max(clear, key=lambda use: clear[use], default=first)

    def _weights(self, labels: ClassLabels, given: Floats, use: str, layout: tuple[int, int, int]) -> Floats:
        """Return the weights of the documents in the fit."""
        weights = given * np.where(labels.labeled, 1.0, 0.0 if use == "none" else self.unlabeled_weight)
        if layout[1:] == (0, 0):  # no topic is left for a document that has none of the classes
            weights[labels.labeled & ~labels.indicator.any(axis=1)] = 0
        return weights

    def _plsa(
        self,
        labels: ClassLabels,
        layout: tuple[int, int, int],
        weights: Floats,
        training: Training,
        guessed: Array | None,
    ) -> PLSA:
        """Return the PLSA with known topics to fit."""
        corpus, tied = training.corpus, _topic_classes(labels.n_classes, *layout)
        smoothing = check_nonnegative("topic_smoothing", self.topic_smoothing)
        unigram = corpus.unigram
        start = self._start(labels, tied, weights, corpus, smoothing)
        return PLSA(
            len(tied),
            solver=self.solver,
            init=(None, start),
            max_iter=self.max_iter,
            tol=self.tol,
            background=self._background_share(labels, weights),
            doc_topic_prior=[KnownTopics(_known_topics(labels, tied)), *self._doc_priors(tied, weights, guessed)],
            topic_word_prior=Smoothing(smoothing, tuple(unigram)),
            n_jobs=self.n_jobs,
            dtype=self.dtype,
            random_state=self.random_state,
            verbose=self.verbose,
            callback=self.callback,
        )

    def _doc_priors(self, tied: Array, weights: Floats, guessed: Array | None) -> list[Any]:
        """Return the priors of documents without a label: equal for all topics, or by guessed classes."""
        smoothing = check_nonnegative("doc_smoothing", self.doc_smoothing)
        if guessed is None:
            return [Dirichlet(1 + smoothing)]
        topics_per_class = np.bincount(tied[tied >= 0])
        n_classes = len(topics_per_class)
        shares = _shares(guessed[guessed >= 0], weights[guessed >= 0], n_classes)
        counts = smoothing * _CLASS_PRIOR * n_classes * shares / topics_per_class
        topics = [tuple(np.flatnonzero(tied == c).tolist()) if c >= 0 else None for c in guessed]
        return [
            KnownTopics(topics, strength=smoothing * _GUESS * n_classes),
            Dirichlet(tuple(1 + (counts[c] if c >= 0 else smoothing) for c in tied)),
        ]

    def _background_share(self, labels: ClassLabels, weights: Floats) -> float:
        if isinstance(self.background, str):
            if self.background != "auto":
                raise InputError(f"background must be 'auto' or a number, got {self.background!r}.")
            return _BACKGROUND * float(weights[~labels.labeled].sum() / weights.sum())
        return check_share("background", self.background)

    def _start(self, labels: ClassLabels, tied: Array, weights: Floats, corpus: Any, smoothing: float) -> Floats:
        """Return topics to start from: the words of the labeled documents of a class, with noise for several topics.

        Every word that occurs has a positive probability, because EM cannot change a zero.
        """
        kept = slice(None) if corpus.kept is None else corpus.kept
        of_labeled = weights * labels.labeled
        members = np.ascontiguousarray((labels.indicator[kept] * of_labeled[kept][:, np.newaxis]).T)
        counts = np.stack([corpus.counts.word_totals(of_class) for of_class in members])
        unigram = corpus.unigram
        of_class = normalize_rows(counts + max(smoothing, 1.0) * unigram)
        topics = np.stack([of_class[c] if c >= 0 else unigram for c in tied])
        (rng,) = generators(self.random_state, 1)
        for topic, c in enumerate(tied):
            if np.count_nonzero(tied == c) > 1 or c == FREE:
                topics[topic] *= rng.standard_gamma(1.0, len(unigram))
        return normalize_rows(topics)


@dataclass(frozen=True)
class ClassLabels:
    """Labels of documents: one class each, or several; or an inner node of a tree whose leaves are the classes."""

    classes: Array
    indicator: Array
    """Documents x classes: whether a document has the class, or has the label of an inner node above it."""
    labeled: Array
    """Which documents are labeled by classes, not by an inner node."""
    several: bool
    """Whether a document can have several classes."""

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @classmethod
    def of(cls, y: Any, n_documents: int, separator: str | None) -> ClassLabels:
        """Return the checked labels of `n_documents` documents; with a separator they are paths in a tree."""
        if separator is not None and not (isinstance(separator, str) and separator):
            raise InputError(f"separator must be None or a string such as '/', got {separator!r}.")
        given = y.toarray() if sp.issparse(y) else np.asarray(y)
        if given.ndim > 0 and len(given) != n_documents:
            raise InputError(
                f"y has inconsistent numbers of samples: {len(given)} labels, but X has {n_documents} documents."
            )
        several = given.ndim == 2 and given.shape[1] > 1
        if several and separator is not None:
            raise InputError(f"separator={separator!r} needs one path per document in y, got {given.shape[1]} columns.")
        labels = cls._of_matrix(given) if several else cls._of_column(given)
        return labels if separator is None else labels._in_tree(separator)

    @classmethod
    def _of_column(cls, given: Array) -> ClassLabels:
        from sklearn.utils.multiclass import check_classification_targets  # makes the import of polyseme faster

        column = column_or_1d(given, warn=True)
        labeled = ~_unlabeled(column)
        known = column[labeled]
        if column.dtype.kind == "O":
            known = np.asarray(known.tolist())
        if not known.size:
            raise InputError("All documents are unlabeled (-1): give the classes of some documents in y.")
        if known.dtype.kind == "f" and not np.isfinite(known).all():
            raise InputError("Input y contains NaN or infinity: mark unlabeled documents by -1.")
        check_classification_targets(known)
        classes, codes = np.unique(known, return_inverse=True)
        if len(classes) < 2:
            only = f"y has only one class, {classes.tolist()[0]!r}"
            if not labeled.all():
                only += ", because -1 marks unlabeled documents: if -1 is a class, write 0 instead"
            raise InputError(f"{only}; a classifier needs documents of at least two classes.")
        indicator = np.zeros((len(column), len(classes)), dtype=bool)
        indicator[np.flatnonzero(labeled), codes] = True
        return cls(classes, indicator, labeled, False)

    @classmethod
    def _of_matrix(cls, given: Array) -> ClassLabels:
        try:
            numbers = given.astype(np.float64)
        except (TypeError, ValueError):
            numbers = np.full(given.shape, np.nan)
        labeled = ~(numbers == -1).all(axis=1)
        if not np.isin(numbers[labeled], (0, 1)).all():
            raise InputError(
                "y with several columns must be a matrix of zeros and ones, one column for each class; a row of -1 is "
                "an unlabeled document."
            )
        if not labeled.any():
            raise InputError("All documents are unlabeled (-1): give the classes of some documents in y.")
        return cls(np.arange(given.shape[1]), (numbers > 0), labeled, True)

    def _in_tree(self, separator: str) -> ClassLabels:
        """Return labels that are paths as sets of the leaves below them."""
        if self.classes.dtype.kind != "U":
            raise InputError(
                f"separator={separator!r} needs labels that are strings, got {self.classes.tolist()[0]!r}."
            )
        labels = self.classes.tolist()
        paths = [label.split(separator) for label in labels]
        for label, path in zip(labels, paths, strict=True):
            if not all(path):
                raise InputError(f"The label {label!r} has an empty part: write paths as 'a{separator}b'.")
        inner = {tuple(path[:depth]) for path in paths for depth in range(len(path))}
        leaves = [path for path in paths if tuple(path) not in inner]
        if len(leaves) < 2:
            raise InputError(
                f"y has only one leaf, {separator.join(leaves[0])!r}: a classifier needs documents of at least two."
            )
        below = np.array([[leaf[: len(path)] == path for leaf in leaves] for path in paths])
        indicator = self.indicator @ below
        return ClassLabels(
            np.array([separator.join(leaf) for leaf in leaves]), indicator, indicator.sum(axis=1) == 1, False
        )

    def without(self, held_out: Array) -> ClassLabels:
        """Return the labels with some documents unlabeled."""
        return replace(self, indicator=self.indicator & ~held_out[:, np.newaxis], labeled=self.labeled & ~held_out)

    def check_weights(self, weights: Floats) -> None:
        """Raise InputError if a class has no document with a positive weight."""
        counted = self.labeled & (weights > 0)
        empty = np.flatnonzero(~self.indicator[counted].any(axis=0))
        if empty.size:
            name = str(self.classes[empty[0]])
            raise InputError(
                f"The class {name} has no labeled document with a positive weight: give it one, or leave the class out."
            )


def _unlabeled(column: Array) -> Array:
    """Return which labels mark unlabeled documents."""
    if column.dtype.kind in "US":
        return np.asarray(column == "-1") if column.dtype.kind == "U" else np.asarray(column == b"-1")
    if column.dtype.kind == "O":
        return np.array([label is None or _is_minus_one(label) or label != label for label in column], dtype=bool)
    return np.asarray(column == -1) if column.dtype.kind in "if" else np.zeros(len(column), dtype=bool)


def _is_minus_one(label: Any) -> bool:
    return not isinstance(label, str | bytes) and bool(label == -1)


def _topic_classes(n_classes: int, per_class: int, n_shared: int, n_free: int) -> Array:
    """Return the class of each topic; SHARED or FREE for topics without a class."""
    tied = np.repeat(np.arange(n_classes), per_class)
    return np.concatenate([tied, np.full(n_shared, SHARED), np.full(n_free, FREE)]).astype(np.int64)


def _known_topics(labels: ClassLabels, tied: Array) -> list[tuple[int, ...] | None]:
    """Return the topics of each document with a label; None for others."""
    shared, free = np.flatnonzero(tied == SHARED).tolist(), np.flatnonzero(tied == FREE).tolist()
    of_class = [np.flatnonzero(tied == c).tolist() for c in range(labels.n_classes)]
    known: list[tuple[int, ...] | None] = []
    for row, labeled in zip(labels.indicator, labels.labeled, strict=True):
        topics = [topic for c in np.flatnonzero(row) for topic in of_class[c]]
        # A document of weight zero may have none of the classes and no other topics.
        known.append((*topics, *shared, *(() if topics else free)) or None if labeled or topics else None)
    return known


def _shares(codes: Array, weights: Floats, n_classes: int) -> Floats:
    """Return the shares of classes among documents with weights; one more document of each keeps them positive."""
    counts = np.bincount(codes, weights, n_classes) + 1.0
    return np.asarray(counts / counts.sum())


def _best_threshold(weights: Floats, indicator: Array) -> float:
    """Return the weight of a class above which predicting it has the best F1 over all documents and classes."""
    order = np.argsort(-weights, axis=None)
    n_correct = np.cumsum(indicator.ravel()[order])
    f1 = 2 * n_correct / (np.arange(1, order.size + 1) + indicator.sum())
    best = int(f1.argmax())
    values = weights.ravel()[order]
    return float((values[best] + values[min(best + 1, order.size - 1)]) / 2)
