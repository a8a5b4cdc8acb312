"""Words that distinguish topics, with errors and local false sign rates.

Each word w has a Poisson model with the documents' weights fixed: x_dw ~ Poisson(n_d sum_k theta_dk f_kw). With the
responsibilities r_dk = P(z=k|d,w), the information on log f_kw is J = sum_d x_dw r_d r_d^T (K x K), and the inverse of
J, plus half a token for each topic, is the covariance of the logarithms. The covariance of the scores over documents,
J^-1 B J^-1 with B = sum_d (x r - n theta f)(x r - n theta f)^T, allows for words that come in bursts; a contrast has
the larger one of both variances. The weights are not known but fitted, which adds a variance to the logarithms of a
topic. It is measured in fits to documents drawn from the model, as the mean squared error of log P(w|z) beyond that of
Poisson counts, over words with more than five expected tokens.

The log ratios of a topic are shrunk together: their true values are a mixture of normal distributions around zero, and
zero itself, whose weights maximize the likelihood (adaptive shrinkage). The local false sign rate of a word is the
posterior probability that its true log ratio does not have the sign of the estimate.

References
----------
- Carbonetto, P., Luo, K., Sarkar, A., et al. (2023). GoM DE: interpreting structure in sequence count data with
  differential expression analysis allowing for grades of membership. Genome Biology 24, 236.
- Stephens, M. (2017). False discovery rates: a new deal. Biostatistics 18, 275-294.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from polyseme.core.fold_in import MaximumLikelihood
from polyseme.errors import InputError
from polyseme.kernels import Floats
from polyseme.uncertainty.resampling import Resampling
from polyseme.utils import RandomStateLike

_PSEUDO = 0.5
"""Tokens that are added for each word and topic."""
_LEAST_DOCUMENTS = 5
"""Effective number of documents with a word, (sum of tokens)^2 / sum of squares, from which it is compared."""
_LEAST_TOKENS = 5
"""Expected number of tokens in a topic of the words that show how much the fitted weights add to errors."""
_STEP, _PENALTY = 2**0.5, 10.0
"""Ratio of the standard deviations of the mixture, and pseudo-count of its point mass at zero."""
_PASSES, _TOL = 2000, 1e-6


@dataclass(frozen=True, eq=False)
class WordContrasts:
    """Log ratios of words between topics.

    Attributes
    ----------
    log_ratio : array of shape (K, n_words)
        Natural logarithm of P(w|z) over P(w) in the topics that it is compared with, not shrunk.
    error : array of shape (K, n_words)
        Its standard error.
    estimate : array of shape (K, n_words)
        Posterior mean after shrinkage.
    low, high : arrays of shape (K, n_words)
        95% intervals, log_ratio plus and minus 1.96 errors. They are not shrunk: a shrunken interval holds for a word
        only if its ratio is like those of the other words.
    sign_rate : array of shape (K, n_words)
        Local false sign rate: probability that the true log ratio does not have the sign of the estimate. It is 1 for
        words of too few documents, whose estimate is zero with an infinite interval.
    vocabulary : array of str or None
        The word of each column.
    """

    log_ratio: Floats
    error: Floats
    estimate: Floats
    low: Floats
    high: Floats
    sign_rate: Floats
    vocabulary: Any

    def words(self, topic: int, n_words: int = 10, *, max_sign_rate: float = 0.01) -> list[Any]:
        """Return the words that a topic has more than those that it is compared with, the largest ratios first.

        Parameters
        ----------
        topic : int
            The topic.
        n_words : int, default=10
            Largest number of words.
        max_sign_rate : float, default=0.01
            Largest local false sign rate of a word.

        Returns
        -------
        list
            Words, or numbers of columns without a vocabulary.
        """
        sure = (self.sign_rate[topic] <= max_sign_rate) & (self.estimate[topic] > 0)
        order = np.argsort(-np.where(sure, self.estimate[topic], -np.inf), kind="stable")[: min(n_words, sure.sum())]
        return order.tolist() if self.vocabulary is None else [str(self.vocabulary[word]) for word in order]


def word_contrasts(
    model: Any,
    X: Any = None,
    *,
    against: str = "others",
    n_simulations: int = 10,
    random_state: RandomStateLike = 0,
    n_jobs: int | None = None,
) -> WordContrasts:
    """Return by how much each topic has more, or less, of each word than other topics, and how sure that is.

    Parameters
    ----------
    model : estimator or Run
        A model fitted by maximum likelihood without priors and without a background, or a run with such a model.
    X : array-like or sparse matrix of shape (n_documents, n_words), default=None
        The training documents. None: those of the run.
    against : {"others", "next"}, default="others"
        "others": all other topics, weighted by P(z). "next": the other topic in which the word is most probable.
    n_simulations : int, default=10
        Number of fits to documents drawn from the model, which show how much errors grow because the weights of the
        documents are fitted, too. 0: the weights are taken as known.
    random_state : int, RandomState or Generator, default=0
        Seed of the drawn documents.
    n_jobs : int, default=None
        Number of threads; None uses all cores. Results do not depend on it.

    Returns
    -------
    WordContrasts
        Log ratios, shrunken estimates and local false sign rates.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.uncertainty import word_contrasts
    >>> X = np.kron(np.eye(2), np.full((10, 3), 5))  # two groups of documents without a common word
    >>> contrasts = word_contrasts(PLSA(2, random_state=0).fit(X), X)
    >>> contrasts.estimate.shape
    (2, 6)
    """
    if against not in ("others", "next"):
        raise InputError(f"against must be 'others' or 'next', got {against!r}.")
    if X is None:
        model, X = model.model, model.counts
    fits = Resampling(model, X, 2, n_simulations=n_simulations, random_state=random_state, n_jobs=n_jobs)
    fitted, counts = fits.fitted, fits.counts
    topics = fitted.topic_word.astype(np.float64)
    theta = MaximumLikelihood().weights(counts, fitted.topic_word, None, n_threads=1).doc_topic.astype(np.float64)
    amounts = theta * counts.totals[:, np.newaxis]
    sizes, products = amounts.sum(axis=0), amounts.T @ amounts
    X = counts.matrix()
    rates, models, robust = _information(X.tocsc(), theta, amounts, topics, sizes, products)
    word_totals, squares = counts.word_totals(None), np.asarray(X.astype(np.float64).power(2).sum(axis=0)).ravel()
    compared = np.flatnonzero(word_totals**2 >= _LEAST_DOCUMENTS * np.maximum(squares, 1))
    weights = sizes / sizes.sum()
    added = _added_variance(fits, weights)
    shape = topics.shape
    log_ratio, error = np.empty(shape), np.empty(shape)
    shrunken = np.zeros(shape), np.full(shape, np.inf), np.ones(shape)
    for topic in range(len(topics)):
        others = np.delete(np.arange(len(topics)), topic)
        if not others.size:
            raise InputError("Topics can only be compared with other topics: the model has one.")
        gradient = np.zeros((shape[1], shape[0]))
        gradient[:, topic] = 1
        if against == "others":
            parts = rates[:, others] * weights[others]
            base = parts.sum(axis=1)
            gradient[:, others] = -parts / base[:, np.newaxis]
            base = base / weights[others].sum()
        else:
            nearest = others[rates[:, others].argmax(axis=1)]
            gradient[np.arange(shape[1]), nearest] = -1
            base = rates[np.arange(shape[1]), nearest]
        log_ratio[topic] = np.log(rates[:, topic] / base)
        variances = [np.einsum("wk,wkl,wl->w", gradient, covariance, gradient) for covariance in (models, robust)]
        error[topic] = np.sqrt(added[topic] + np.maximum(*variances))
        for array, values in zip(shrunken, shrink(log_ratio[topic, compared], error[topic, compared]), strict=True):
            array[topic, compared] = values
    estimate, deviation, sign_rate = shrunken
    half = np.where(np.isinf(deviation), np.inf, 1.96 * error)
    return WordContrasts(log_ratio, error, estimate, log_ratio - half, log_ratio + half, sign_rate, fitted.vocabulary)


def _added_variance(fits: Resampling, weights: Floats) -> Floats:
    """Return the variance of log P(w|z) of each topic beyond that of Poisson counts, from drawn documents."""
    for _ in fits.simulations(weights):
        pass
    bias, n = fits.bias, max(fits.n_simulations, 1)
    expected = bias.topics * weights[:, np.newaxis] * fits.counts.totals.sum() * fits.share
    errors = bias.variance + np.maximum(bias.mean**2 - bias.variance / n, 0)
    used = expected > _LEAST_TOKENS
    beyond = np.divide(errors, bias.topics**2, out=np.zeros(used.shape), where=used) * expected - used
    return np.asarray(np.maximum(beyond.sum(axis=1) / np.maximum(np.where(used, expected, 0).sum(axis=1), 1), 0))


def _information(
    by_word: Any, theta: Floats, amounts: Floats, topics: Floats, sizes: Floats, products: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return rates of words (words x K), and two covariances of their logarithms (words x K x K)."""
    K, n_words = topics.shape
    rates, models, robust = np.empty((n_words, K)), np.empty((n_words, K, K)), np.empty((n_words, K, K))
    for word in range(n_words):
        part = slice(by_word.indptr[word], by_word.indptr[word + 1])
        rows, x = by_word.indices[part], by_word.data[part].astype(np.float64)[:, np.newaxis]
        parts = theta[rows] * topics[:, word]
        shares = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300)
        tokens = x * shares
        rates[word] = (tokens.sum(axis=0) + _PSEUDO) / (sizes + _PSEUDO)
        inverse = np.linalg.inv(tokens.T @ shares + _PSEUDO * np.eye(K))
        crossed = tokens.T @ (amounts[rows] * topics[:, word])
        scores = tokens.T @ tokens - crossed - crossed.T + products * np.outer(topics[:, word], topics[:, word])
        models[word], robust[word] = inverse, inverse @ scores @ inverse
    return rates, models, robust


def shrink(values: Floats, errors: Floats) -> tuple[Floats, Floats, Floats]:
    """Return posterior means, standard deviations and local false sign rates of values with normal errors.

    Parameters
    ----------
    values : array of shape (n,)
        Estimates.
    errors : array of shape (n,)
        Their standard errors.

    Returns
    -------
    tuple of three arrays of shape (n,)
        Means, deviations and rates.
    """
    if not values.size:
        return values, errors, values
    least = errors.min() / 10
    most = max(2 * np.sqrt(np.maximum(values**2 - errors**2, 0).max()), 2 * least)
    steps = int(np.ceil(np.log(most / least) / np.log(_STEP)))
    deviations = np.concatenate([[0.0], least * _STEP ** np.arange(steps + 1)])
    totals = np.sqrt(deviations**2 + errors[:, np.newaxis] ** 2)
    logs = norm.logpdf(values[:, np.newaxis], scale=totals)
    densities = np.exp(logs - logs.max(axis=1, keepdims=True))
    penalties = np.zeros(deviations.size)
    penalties[0] = _PENALTY
    weights = np.full(deviations.size, 1 / deviations.size)
    for _ in range(_PASSES):
        shares = densities * weights
        shares /= shares.sum(axis=1, keepdims=True)
        updated = shares.sum(axis=0) + penalties
        updated /= updated.sum()
        done = np.abs(updated - weights).max() < _TOL
        weights = updated
        if done:
            break
    shares = densities * weights
    shares /= shares.sum(axis=1, keepdims=True)
    factors = (deviations / totals) ** 2
    means, sds = factors * values[:, np.newaxis], np.sqrt(factors) * errors[:, np.newaxis]
    mean = (shares * means).sum(axis=1)
    variance = (shares * (sds**2 + means**2)).sum(axis=1) - mean**2
    below = (shares[:, 1:] * norm.cdf(0, means[:, 1:], np.maximum(sds[:, 1:], 1e-300))).sum(axis=1)
    return mean, np.sqrt(np.maximum(variance, 0)), shares[:, 0] + np.minimum(below, 1 - shares[:, 0] - below)
