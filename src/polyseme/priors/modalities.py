"""Documents in several vocabularies: words, authors, tags, or two languages, which share P(z|d)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Floats
from polyseme.priors.base import TOPICS, Prior
from polyseme.utils import check_integer


@dataclass(frozen=True)
class Modalities(Prior):
    """Several vocabularies (modalities) of the same documents, as blocks of columns of one matrix of counts.

    Every modality m has its own P(w|z,m), which sums to one, and all share P(z|d). The fit maximizes
    sum_m weight_m sum_dw x log sum_z P(z|d) P(w|z,m). As a prior, `Modalities` lets all topics have the same share
    P(m) of each modality: P(w|z) = P(m) P(w|z,m). So a document without a modality has the weights that its other
    modalities give it.

    Parameters
    ----------
    sizes : mapping of str to int
        Number of words of each modality by its name, in the order of the columns.
    weights : mapping of str to float, default=None
        Factor of the counts of each modality, above 0. None: 1 for all.

    Notes
    -----
    The M-step has a closed form, and EM never lowers the likelihood. Solvers that take `topic_word_prior` fit it; the
    others refuse. It cannot be combined with other priors on P(w|z).

    References
    ----------
    K. Vorontsov, O. Frei, M. Apishev, P. Romov and M. Suvorova (2015). Non-Bayesian additive regularization for
    multimodal topic modeling of large collections. Workshop on Topic Models, CIKM.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.priors import Modalities
    >>> english = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6], [0, 0, 0, 0]])
    >>> italian = np.array([[2, 0], [3, 0], [0, 5], [0, 0], [0, 3]])
    >>> languages = Modalities({"en": 4, "it": 2})
    >>> model = PLSA(2, topic_word_prior=languages, random_state=0).fit(languages.stack(en=english, it=italian))
    >>> languages.split(model.components_)["it"].sum(axis=1).round(3).tolist()
    [1.0, 1.0]
    >>> same = model.predict(languages.stack(it=[[7, 0]])) == model.predict(languages.stack(en=[[6, 3, 0, 0]]))
    >>> bool(same[0])
    True
    """

    acts_on: ClassVar[tuple[str, ...]] = (TOPICS,)
    sizes: Mapping[str, int]
    weights: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, Mapping) or not self.sizes:
            raise InputError(f"Modalities: sizes must map names to numbers of words, got {self.sizes!r}.")
        sizes = {str(name): check_integer(f"Modalities: {name}", size, least=1) for name, size in self.sizes.items()}
        object.__setattr__(self, "sizes", sizes)
        if self.weights is None:
            return
        if not isinstance(self.weights, Mapping) or set(self.weights) != set(sizes):
            raise InputError(f"Modalities: weights must have a number for each of {', '.join(sizes)}.")
        for name, weight in self.weights.items():
            number = isinstance(weight, Real) and not isinstance(weight, bool)
            if not number or not 0 < float(weight) < float("inf"):
                raise InputError(f"Modalities: the weight of {name} must be a number above 0, got {weight!r}.")
        object.__setattr__(self, "weights", {name: float(self.weights[name]) for name in sizes})

    @property
    def columns(self) -> dict[str, slice]:
        """Columns of each modality."""
        ends = np.cumsum([0, *self.sizes.values()]).tolist()
        return {name: slice(*ends[place : place + 2]) for place, name in enumerate(self.sizes)}

    def stack(self, **counts: Any) -> sp.csr_array:
        """Return the counts of documents in some or all modalities as one matrix, times the weights.

        Parameters
        ----------
        **counts : array-like or sparse matrix of shape (n_documents, n_words of the modality)
            Counts by the name of the modality, with the same documents. A modality that is not given has no counts.

        Returns
        -------
        csr_array of shape (n_documents, n_words of all modalities)
            Counts for `fit`, `transform` and other methods.

        Raises
        ------
        InputError
            If there is no such modality, or the shapes do not fit.
        """
        if not counts:
            raise InputError(f"stack: give the counts of at least one of {', '.join(self.sizes)}.")
        blocks: dict[str, Any] = {}
        for name, given in counts.items():
            if name not in self.sizes:
                raise InputError(f"There is no modality {name!r}: there are {', '.join(self.sizes)}.")
            block = sp.csr_array(given)
            n_documents = next(iter(blocks.values()), block).shape[0]
            if block.shape != (n_documents, self.sizes[name]):
                raise InputError(
                    f"stack: the counts of {name} must have the shape {(n_documents, self.sizes[name])}, got "
                    f"{block.shape}."
                )
            weight = 1.0 if self.weights is None else self.weights[name]
            blocks[name] = block if weight == 1 else block * weight
        n_documents = next(iter(blocks.values())).shape[0]
        parts = [blocks.get(name, sp.csr_array((n_documents, size))) for name, size in self.sizes.items()]
        return sp.csr_array(sp.hstack(parts, format="csr"))

    def split(self, topic_word: Any) -> dict[str, Floats]:
        """Return P(w|z,m) of each modality.

        Parameters
        ----------
        topic_word : array-like of shape (n_topics, n_words of all modalities)
            P(w|z), such as `components_`.

        Returns
        -------
        dict of str to ndarray of shape (n_topics, n_words of the modality)
            Rows sum to one.
        """
        topics = np.asarray(topic_word, dtype=np.float64)
        self.check(topics.shape)
        return {
            name: topics[:, part] / topics[:, part].sum(axis=1, keepdims=True) for name, part in self.columns.items()
        }

    def perplexity(
        self, model: Any, counts: Mapping[str, Any], given: Mapping[str, Any] | None = None
    ) -> dict[str, float]:
        """Return the perplexity of documents in each modality, exp(-mean log P(w|d,m)).

        Parameters
        ----------
        model : estimator
            Model that was fitted with this prior.
        counts : mapping of str to array-like
            Counts to score, by modality.
        given : mapping of str to array-like, default=None
            Counts from which P(z|d) is estimated, such as those of another language. None: those that are scored.

        Returns
        -------
        dict of str to float
            The perplexity of each modality in `counts`; words that the training documents do not have are not scored.
        """
        weights = model.fold_in(self.stack(**(counts if given is None else given)))
        topics, found = np.asarray(model.components_, dtype=np.float64), dict[str, float]()
        for name, scored in counts.items():
            share = float(topics[:, self.columns[name]].sum(axis=1).mean())
            found[name] = model.perplexity_report(self.stack(**{name: scored}), weights=weights).perplexity * share
        return found

    @property
    def neutral(self) -> bool:
        return len(self.sizes) == 1

    @property
    def monotone(self) -> bool:
        return True

    def check(self, shape: tuple[int, ...]) -> None:
        if sum(self.sizes.values()) != shape[1]:
            raise InputError(
                f"Modalities: the modalities have {sum(self.sizes.values())} words, but there are {shape[1]} columns: "
                "make the counts with stack."
            )

    def row_log_density(self, factor: Floats) -> Floats:
        return np.zeros(len(factor))

    def adapt_start(self, factor: Floats) -> Floats:
        return self.restrict(factor)

    def restrict(self, factor: Floats) -> Floats:
        """Return the topics with the same share of each modality, the mean of their shares.

        Parameters
        ----------
        factor : ndarray of shape (n_topics, n_words)
            Rows that sum to one.

        Returns
        -------
        ndarray of shape (n_topics, n_words)
            Rows that sum to one.
        """
        self.check(factor.shape)
        return self._with_shares(factor, factor, factor)

    def maximize(self, counts: Floats, factor: Floats) -> Floats:
        """Return the M-step: counts, normalized in each modality, times its share of all counts.

        Parameters
        ----------
        counts : ndarray of shape (n_topics, n_words)
            Expected counts of the E-step.
        factor : ndarray of shape (n_topics, n_words)
            Current topics.

        Returns
        -------
        ndarray of shape (n_topics, n_words)
            New topics; rows sum to one. Where a topic has no counts of a modality, it keeps its words.
        """
        self.check(counts.shape)
        return self._with_shares(counts, counts, factor)

    def _with_shares(self, totals: Floats, rows: Floats, otherwise: Floats) -> Floats:
        """Return rows, normalized in each modality, times its share of `totals`; `otherwise` where a row has none."""
        result, total = np.empty(rows.shape), totals.sum()
        for part in self.columns.values():
            share = totals[:, part].sum() / total if total > 0 else otherwise[:, part].sum() / otherwise.sum()
            sums = rows[:, part].sum(axis=1, keepdims=True)
            block = np.where(sums > 0, rows[:, part], otherwise[:, part])
            sums = block.sum(axis=1, keepdims=True)
            even = np.full(block.shape, 1 / block.shape[1])
            result[:, part] = share * np.divide(block, sums, out=even, where=np.broadcast_to(sums > 0, block.shape))
        return result
