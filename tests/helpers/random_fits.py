"""Random settings of PLSA on small or odd counts, and the properties that every fit must have."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme import PLSA, Background, JointBackground
from polyseme.losses import Beta
from polyseme.priors import (
    Decorrelation,
    Dirichlet,
    Entropic,
    KnownTopics,
    SeedWords,
    Smoothing,
    Sparsing,
    TopicSelection,
)
from polyseme.priors.members import as_prior
from polyseme.solvers import Annealed, EarlyStopping, HeldOutTempered, StepwiseEM, Tempered
from polyseme.solvers.coordinate import SCD

BETAS = (1e-6, 0.1, 0.5, 0.9, 1.5, 3.0, 10.0)
STRENGTHS = (1e-9, 0.01, 1.0, 30.0, 1e6)
SHARES = (1e-6, 0.1, 0.3, 0.5, 0.9, 0.999, 0.999999)
ROUNDING = 200
"""Largest fall of the objective, in units of the precision times tokens and pseudo-counts; fits show up to 2, and those
by multiplicative updates up to 70."""
DISTRIBUTIONS = ("components_", "doc_topic_", "topic_weights_", "doc_weights_", "topic_doc_", "unigram_")
BITS = ("components_", "doc_topic_", "topic_weights_", "doc_background_")
CHANGING = (StepwiseEM, HeldOutTempered, Annealed)
"""Solvers whose objective changes from one iteration to the next."""
LOSSES = ("squared", "itakura-saito", "chi-square", "absolute", Beta(1.5), Beta(-1.0), Beta(3.0))


class Case(NamedTuple):
    """Parameters of a PLSA, and the data to fit."""

    parameters: dict
    X: object
    weights: np.ndarray | None

    def fit(self, n_jobs=1):
        return PLSA(**self.parameters, n_jobs=n_jobs).fit(self.X, sample_weight=self.weights)

    @property
    def priors(self):
        """Priors on P(z|d) and P(w|z); None where there is none."""
        return [as_prior(self.parameters.get(name)) for name in ("doc_topic_prior", "topic_word_prior")]

    @property
    def beta(self):
        """Largest beta of the solver."""
        solver = self.parameters.get("solver")
        return max(getattr(solver, "beta", 1.0), getattr(solver, "start", 1.0), getattr(solver, "stop", 1.0))


def drawn(seed):
    """Return the case of a seed."""
    rng = np.random.default_rng(seed)
    n_docs, n_words = (int(rng.choice([1, 2, 3, 5, 8], p=[0.1, 0.2, 0.2, 0.3, 0.2])) for _ in range(2))
    n_topics = int(rng.integers(1, 9))
    dtype = str(rng.choice(["float32", "float64"]))
    X = counts(rng, n_docs, n_words, dtype)
    parameters = {"n_components": n_topics, "dtype": dtype, "random_state": int(rng.integers(100))}
    parameters["max_iter"] = int(rng.choice([1, 3, 10, 40]))
    parameters["tol"] = float(rng.choice([0.0, 1e-6, 0.01]))
    parameters["init"] = start(rng, n_docs, n_words, n_topics)
    if rng.random() < 0.1:
        parameters["loss"] = LOSSES[rng.integers(len(LOSSES))]
    else:
        parameters["background"] = background(rng, n_words)
        joint = isinstance(parameters["background"], JointBackground)
        if rng.random() < 0.5 and not joint:
            parameters["doc_topic_prior"] = doc_prior(rng, n_docs, n_topics)
        if rng.random() < 0.4:
            parameters["topic_word_prior"] = word_prior(rng, n_topics, n_words)
        if joint and parameters["init"][0] is None:
            parameters["init"] = "random"
        parameters["solver"] = solver(rng, parameters)
        if rng.random() < 0.1:
            parameters["early_stopping"] = EarlyStopping(folds=2)
    weights = None
    if rng.random() < 0.2:
        weights = rng.choice([0.0, 1e-3, 1.0, 2.5, 1e3], n_docs)
        weights[rng.integers(n_docs)] = 1.0
    return Case(parameters, sp.csr_array(X) if rng.random() < 0.5 else X, weights)


def counts(rng, n_docs, n_words, dtype):
    shape = (n_docs, n_words)
    kind = rng.integers(8)
    if kind < 3:
        X = rng.poisson(rng.choice([0.5, 3.0, 50.0]), shape).astype(np.float64)
    elif kind == 3:
        X = rng.gamma(0.3, 2.0, shape)
    elif kind == 4:
        X = np.zeros(shape)
        X[rng.integers(n_docs), rng.integers(n_words)] = rng.choice([1e-3, 1.0, 7.0])
    elif kind == 5:
        X = np.tile(rng.poisson(2.0, n_words), (n_docs, 1)).astype(np.float64)
    elif kind == 6:
        X = rng.poisson(1.0, shape) * 10.0 ** rng.uniform(-4, 4, shape)
    else:
        X = rng.poisson(1.0, shape) * 10.0 ** (
            rng.uniform(-9, 9, shape) if dtype == "float32" else rng.uniform(-28, 28, shape)
        )
    if kind < 7:
        reach = 5 if dtype == "float32" else 24
        X = X * (10.0 ** rng.uniform(-reach, reach) if rng.random() < 0.3 else 1.0)
    if rng.random() < 0.3:
        X[rng.integers(n_docs)] = 0
    if rng.random() < 0.3:
        X[:, rng.integers(n_words)] = 0
    if not X.any():
        X[0, 0] = 1
    return X


def start(rng, n_docs, n_words, n_topics):
    kind = rng.integers(6)
    if kind < 3:
        return ("random", "nndsvd", "lsa")[kind]
    phi = rng.dirichlet(np.full(n_words, rng.choice([0.3, 5.0])), n_topics) + 1e-12
    theta = rng.dirichlet(np.full(n_topics, rng.choice([0.3, 5.0])), n_docs)
    return "random" if kind == 3 else (None, phi) if kind == 4 else (theta, phi)


def solver(rng, parameters):
    """Return a solver of the model that the parameters describe."""
    betas = rng.choice(BETAS, 2)
    kinds = [
        "auto", "em", *map(Tempered, betas.tolist()), HeldOutTempered(held_out=float(rng.choice([0.1, 0.5]))),
        Annealed(steps=2, stages=3), Annealed(start=1.0, stop=3.0, steps=3, stages=2),
    ]  # fmt: skip
    priors = Case(parameters, None, None).priors
    joint = isinstance(parameters["background"], JointBackground)
    if all(prior is None or prior.monotone for prior in priors):
        kinds += ["accelerated-em", "accelerated-em"]
    if priors[1] is None and not joint:
        kinds += ["online", StepwiseEM(batch_size=2)]
    if priors == [None, None] and not parameters["background"]:
        kinds += ["scd", "nmf", "normalized-nmf", "plsi", SCD(multiplicative_steps=3)]
    return kinds[rng.integers(len(kinds))]


def background(rng, n_words):
    kind = rng.integers(6)
    share = float(rng.choice(SHARES))
    given = rng.dirichlet(np.ones(n_words)) + 1e-9 if rng.random() < 0.3 else None
    return 0.0 if kind < 2 else Background(share, given) if kind < 4 else JointBackground(share, given)


def prior(rng, n_columns):
    """Return a prior that acts on each row of a factor."""
    strength = float(rng.choice(STRENGTHS))
    target = rng.choice([0.0, 0.5, 1.0], n_columns)
    target[rng.integers(n_columns)] = 1.0
    alphas = np.exp(rng.normal(0, 1, n_columns))
    kinds = [
        Dirichlet(float(rng.choice([1e-6, 0.1, 0.9, 1.0, 1.1, 2.0, 1e4]))), Dirichlet(alphas), Dirichlet(1 + alphas),
        Smoothing(strength), Smoothing(strength, target), Sparsing(strength), Sparsing(strength, target),
        Entropic(strength), Entropic(-strength),
    ]  # fmt: skip
    return kinds[rng.integers(len(kinds))]


def doc_prior(rng, n_docs, n_topics):
    known = [None if rng.random() < 0.5 else int(rng.integers(n_topics)) for _ in range(n_docs)]
    strength = float(rng.choice(STRENGTHS))
    others = [TopicSelection(strength), KnownTopics(known), KnownTopics(known, strength)]
    return priors(rng, n_topics, others)


def word_prior(rng, n_topics, n_words):
    strength = float(rng.choice(STRENGTHS))
    seeds = {int(rng.integers(n_topics)): [int(rng.integers(n_words))]}
    return priors(rng, n_words, [Decorrelation(strength), SeedWords(seeds, strength=strength)])


def priors(rng, n_columns, others):
    """Return a prior on rows, one of the others, or a sum of two."""
    kind = rng.integers(4)
    other = others[rng.integers(len(others))]
    if kind < 2:
        return prior(rng, n_columns)
    return other if kind == 2 else [prior(rng, n_columns), other if rng.random() < 0.5 else prior(rng, n_columns)]


def problems(case):
    """Yield what is wrong with the fit of a case."""
    model = case.fit()
    weights = model.transform(case.X)
    for name in DISTRIBUTIONS:
        yield from not_distributions(name, getattr(model, name))
    yield from not_distributions("transform", weights)
    for name in ("word_documents_", "topic_documents_", "doc_background_", "word_background_"):
        if not np.isfinite(getattr(model, name)).all():
            yield f"{name} is not finite"
    doc_prior = case.priors[0]
    restricted = doc_prior is not None and doc_prior.support(weights.shape) is not None
    if "loss" not in case.parameters and not restricted and case.beta <= 1 and not np.isfinite(model.log_likelihood_):
        yield "log_likelihood_ is not finite"
    known = doc_prior is not None and doc_prior.for_training_documents() is not None
    if model._fitted.inference.has_one_maximum and not known and not np.array_equal(weights, model.doc_topic_):
        yield f"transform differs from doc_topic_ by {np.abs(weights - model.doc_topic_).max():g}"
    yield from falls(case, model)
    remaining = model.history_["remaining"][-1]
    by_tokens = model.solver_ == "held-out-tempered" or "early_stopping" in case.parameters
    if model.converged_ and not by_tokens and not remaining < case.parameters["tol"]:
        yield f"converged_ with {remaining:g} still to be gained"
    other = case.fit(n_jobs=2)
    for name in BITS:
        if getattr(model, name).tobytes() != getattr(other, name).tobytes():
            yield f"{name} depends on the number of threads"


def not_distributions(name, values):
    if not np.isfinite(values).all() or (values < 0).any():
        yield f"{name} is not finite or negative"
    elif np.abs(values.sum(axis=-1) - 1).max() > 1e-5:
        yield f"{name} does not sum to one"


def falls(case, model):
    """Yield where the objective of a fit falls by more than rounding, if no step may lower it."""
    monotone, solver = all(prior is None or prior.monotone for prior in case.priors), case.parameters.get("solver")
    if not monotone or case.beta > 1 or solver == "online" or isinstance(solver, CHANGING):
        return
    objective = model.history_["objective"]
    if np.isnan(objective).any():
        yield "the objective is not a number"
    eps, least = np.finfo(case.parameters["dtype"]).eps, np.finfo(np.float64).eps
    scale = np.abs(objective[np.isfinite(objective)]).max(initial=1.0)
    if "loss" in case.parameters:
        bound = ROUNDING * eps * scale
    else:
        beta = getattr(solver, "beta", 1.0)
        bound = ROUNDING * (eps * (1 / beta + pseudo_counts(case) / model.n_tokens_) + least * scale)
    with np.errstate(invalid="ignore"):  # from -inf to -inf
        fall = np.nanmax(objective[:-1] - objective[1:], initial=0.0)
    if fall > bound:
        yield f"the objective falls by {fall:g} nats per token, {fall / bound:g} times the bound"


def pseudo_counts(case):
    """Return the sum of the pseudo-counts of all priors, entropic ones included."""
    n_docs, n_words = case.X.shape
    n_topics, total = case.parameters["n_components"], 0.0
    for prior, shape, weights in zip(
        case.priors, [(n_docs, n_topics), (n_topics, n_words)], [case.weights, None], strict=True
    ):
        if prior is not None:
            rows = np.abs(prior.pseudo_counts(np.zeros(shape), np.full(shape, 1 / shape[1]))).sum(axis=1)
            rows += abs(prior.entropic_weight) * max(1.0, np.log(shape[1]))
            total += float((rows if weights is None else rows * weights).sum())
    return total
