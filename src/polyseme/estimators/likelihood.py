"""Fits by maximum likelihood, which PLSA, NMF, LDA with solver="map" and TopicClassifier share.

The parameters of such a fit are those of a `PLSA`. An estimator of another class describes its fit by an unfitted PLSA.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from polyseme.core.edits import TopicEdit, merged_topics
from polyseme.core.fitted import FittedTopics, FoldedTraining, Inference, fold_in_training
from polyseme.core.fold_in import LeastLoss, MaximumLikelihood, fold_in_by_loss, fold_in_shard
from polyseme.core.mixture import MixturePosterior
from polyseme.core.model import Model, as_loss, topic_use
from polyseme.data.corpus import LOADED_NONZEROS, Corpus
from polyseme.errors import InputError
from polyseme.estimators.base import fit_starts
from polyseme.estimators.validation import (
    Training,
    as_solver,
    check_has_words,
    init_parts,
    model_from_parameters,
    with_early_stopping,
)
from polyseme.kernels import Array, padded
from polyseme.losses.base import Loss
from polyseme.losses.penalized import Penalized, Penalties
from polyseme.priors.members import as_prior
from polyseme.solvers.base import (
    FitProblem,
    FitSummary,
    Requirement,
    Snapshot,
    Solver,
    SolverRun,
    best_fit,
    check_solver,
    end_of_preliminary_fit,
    seeds,
)
from polyseme.solvers.initialize import (
    FACTORS,
    check_named_start,
    given_pair,
    given_topics,
    is_topics_only,
    named_start,
)
from polyseme.solvers.majorize import scaled_start
from polyseme.utils import check_integer, check_n_jobs, check_n_topics, check_nonnegative, effective_threads

if TYPE_CHECKING:
    from polyseme.estimators.plsa import PLSA

_TOLERANCE, _LOSS_TOLERANCE = 1e-3, 1e-2
"""Defaults of `tol`, in nats per token, and in percent of another loss."""

_SAMPLED_WEIGHTS = 1 << 25
"""Topic weights of the sample to which topics are fitted before the fit of a corpus that is too large for memory."""
_UNSEEN_SHARE = 1e-3


class LikelihoodSettings(NamedTuple):
    """Parameters of a fit by maximum likelihood."""

    parameters: PLSA
    """All parameters, as given."""
    n_topics: int
    n_init: int
    max_iter: int
    tol: float
    solver: Solver
    n_threads: int
    factors: tuple[str, str] = FACTORS
    """Names of the factors in messages about `init`."""

    @classmethod
    def of(cls, parameters: PLSA) -> LikelihoodSettings:
        """Return the settings after checks of everything that does not depend on the data."""
        solver = with_early_stopping(parameters.early_stopping, as_solver(parameters.solver))
        max_iter, tol = parameters.max_iter, parameters.tol
        if tol is None:
            tol = _TOLERANCE if as_loss(parameters.loss).is_likelihood else _LOSS_TOLERANCE
        return cls(
            parameters,
            check_n_topics(parameters.n_components),
            check_integer("n_init", parameters.n_init, least=1),
            solver.max_iter if max_iter is None else check_integer("max_iter", max_iter, least=1),
            check_nonnegative("tol", tol),
            solver,
            effective_threads(check_n_jobs(parameters.n_jobs)),
        )


class LikelihoodFit(NamedTuple):
    """Result of a fit by maximum likelihood."""

    folded: FoldedTraining
    end: FitSummary


def fit_likelihood(
    settings: LikelihoodSettings, training: Training, *, free_scale: bool = False, penalties: Penalties | None = None
) -> LikelihoodFit:
    """Fit a corpus, and fold in its documents.

    `free_scale` says whether the scale of documents is free with a loss other than Kullback-Leibler, as in NMF.
    `penalties` are added to the loss; then the scale is free.
    """
    (corpus, vocabulary), given = training, settings.parameters
    if given.checkpoint is not None and not isinstance(given.random_state, int | np.integer):
        raise InputError("checkpoint: set random_state to an int, so that the same call finds the state of its fit.")
    model = model_from_parameters(given, settings.n_topics, corpus, vocabulary, free_scale=free_scale)
    if penalties is not None:
        model = replace(model, loss=Penalized(model.loss, *penalties), free_scale=True)
    solver = check_solver(settings.solver, FitProblem(model, corpus), checkpoint=given.checkpoint is not None)
    problem = FitProblem(model, corpus).placed_for(solver)
    check_has_words(problem.corpus)  # a manifest may promise words that damaged shards do not have
    if not model.loss.is_likelihood:
        model.loss.check_data(problem.corpus.counts)
    folder = fit_starts(corpus, given.random_state, given.checkpoint)

    def begin(corpus: Any, rng: np.random.Generator) -> SolverRun:
        def start(seen: Any, rows: Array | None) -> tuple[Any, Array]:
            kept = corpus.kept
            used = rows if kept is None else kept if rows is None else kept[rows]
            return _start(settings, seen, model, deepcopy(rng), used)

        return solver.begin_from(FitProblem(model, corpus), start)

    def resume(corpus: Any, state: Snapshot) -> SolverRun:
        return solver.resume(FitProblem(model, corpus), state)

    starts = folder.starts(
        problem.corpus,
        (solver, model, *init_parts(given.init), settings.max_iter, settings.tol, corpus.dtype),
        seeds(given.random_state, settings.n_init if isinstance(given.init, str) else 1),
        begin,
        resume if solver.resumable else None,
    )
    best, interrupted = best_fit(given, starts, max_iter=settings.max_iter, tol=settings.tol)
    end, topics = FitSummary.of(best, interrupted, solver.name), _topics_of_run(best.run, problem.corpus)
    rows = None
    if not topics["inference"].has_one_maximum:
        rows = best.run.inferred if problem.corpus is corpus else corpus.split(best.run.inferred)
        if corpus.kept is not None:  # zeros for documents that the fit did not use
            used, rows = rows, np.zeros((corpus.all_documents.n_docs, rows.shape[1]), dtype=rows.dtype)
            rows[corpus.kept] = used
    problem.corpus.release()
    del best, problem, starts  # frees the memory of the fit before the documents are folded in
    doc_prior = as_prior(given.doc_topic_prior)
    prior = None if doc_prior is None or doc_prior.neutral else doc_prior.for_training_documents()
    folded = fold_in_training(corpus.all_documents, vocabulary=vocabulary, rows=rows, prior=prior, **topics)
    if not interrupted:
        folder.finish()
    return LikelihoodFit(folded, end)


def edited_likelihood(fitted: FittedTopics, edit: TopicEdit) -> FittedTopics:
    """Return the edited topics of a model whose inference can be edited, not folded in yet."""
    return replace(
        fitted,
        topic_word=merged_topics(fitted.topic_word, fitted.topic_weights, edit),
        topic_weights=edit.sums(fitted.topic_weights),
        active=edit.active(fitted.active),
        inference=cast(MaximumLikelihood | MixturePosterior, fitted.inference).edited(edit),
    )


def _start(
    settings: LikelihoodSettings, corpus: Any, model: Model, rng: np.random.Generator, rows: Array | None
) -> tuple[Any, Array]:
    """Return theta, in the form that the corpus uses, and phi, both padded. With another loss, return n_d theta.

    `rows` are the documents of the user that the corpus has; None for all.
    """
    theta, phi = _unshaped_start(settings, corpus, model, rng, rows)
    samples = as_solver(settings.parameters.solver).starts_from_sample and model.loss.is_likelihood
    if samples and not Requirement.IN_MEMORY.holds(FitProblem(model, corpus)):
        phi = _fitted_to_sample(settings, corpus, model, rng, phi)
        theta = corpus.rows(partial(fold_in_shard, model), (phi,))
    if model.doc_prior is not None and model.doc_prior.for_training_documents() is not None:  # a corpus in memory
        rows = theta[:, : model.n_topics].astype(np.float64)
        theta = padded(model.doc_prior.adapt_start(rows), theta.dtype, model.n_columns)
    return theta, phi


def _unshaped_start(
    settings: LikelihoodSettings, corpus: Any, model: Model, rng: np.random.Generator, rows: Array | None
) -> tuple[Any, Array]:
    """Return the start before the prior on P(z|d) sets weights to zero."""
    init = settings.parameters.init
    if is_topics_only(init):
        phi = given_topics(init[1], corpus, model, settings.factors[1])
        fold_in = fold_in_shard if model.loss.is_likelihood else fold_in_by_loss
        return corpus.rows(partial(fold_in, model), (phi,)), phi
    if isinstance(init, str):
        check_named_start(init)
        solver = as_solver(settings.parameters.solver)
        name = init
        if init == "auto":  # a start from documents would give named topics other subjects
            name = "random" if model.names_topics else solver.init
        theta, phi = named_start(name, corpus, model, rng, variance=solver.start_variance)
    else:
        theta, phi = given_pair(init, corpus, model, rows, settings.factors)
        if model.free_scale:
            return theta, phi
    prior = model.word_prior
    if model.loss.is_likelihood:
        if prior is None or not prior.starts_at_likelihood or not isinstance(init, str):
            return theta, phi
        end = _preliminary_fit(settings, FitProblem(replace(model, word_prior=None), corpus), theta, phi)
        topics = prior.adapt_start(end.phi[:, : model.n_topics].T.astype(np.float64))
        return end.theta, padded(topics.T, phi.dtype, model.n_columns)
    docs, first = scaled_start(corpus, theta), model.loss.first_stage
    if first is None or not isinstance(init, str):
        return docs, phi
    end = _preliminary_fit(settings, FitProblem(replace(model, loss=first), corpus), docs, phi)
    return end.inferred, end.phi


def _preliminary_fit(settings: LikelihoodSettings, problem: FitProblem, docs: Any, phi: Array) -> SolverRun:
    """Return the end of a fit that is the start of another one."""
    solver = check_solver(as_solver("auto"), problem, checkpoint=False)
    return end_of_preliminary_fit(lambda: solver.begin(problem, docs, phi), max_iter=solver.max_iter, tol=settings.tol)


def _fitted_to_sample(
    settings: LikelihoodSettings, corpus: Any, model: Model, rng: np.random.Generator, phi: Array
) -> Array:
    """Return topics that are fitted to documents drawn at random, so that the fit of all documents is short.

    They give every word the probability _UNSEEN_SHARE of the unigram at least, because EM cannot increase a zero.
    """
    documents = max(_SAMPLED_WEIGHTS // model.n_columns, 10 * model.n_topics)
    most = min(LOADED_NONZEROS, documents * corpus.n_nonzeros // corpus.n_docs)
    sample, _ = corpus.load(rng, most)
    end = _preliminary_fit(settings, FitProblem(model, sample), fold_in_shard(model, sample, phi), phi)
    topics = end.phi[:, : model.n_topics].astype(np.float64)
    topics = (1 - _UNSEEN_SHARE) * topics + _UNSEEN_SHARE * corpus.unigram[:, np.newaxis]
    if model.word_prior is not None:
        topics = model.word_prior.adapt_start(topics.T).T
    return padded(topics, phi.dtype, model.n_columns)


def _with_scales(loss: Loss, run: SolverRun, corpus: Any) -> Loss:
    """Return the loss of a document for the topics P(w|z), where a penalty is one of W and H = scale * P(w|z)."""
    penalized = loss.penalized
    if penalized is None:
        return loss
    scale = penalized.best_scales(run.inferred, run.phi, corpus.weights)[: run.model.n_topics]
    scales = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    return replace(penalized, docs=replace(penalized.docs, scales=tuple(scales.tolist())))


def _topics_of_run(run: SolverRun, corpus: Corpus) -> dict[str, Any]:
    """Return the fields of FittedTopics that the fit determines, without folding in."""
    model, unigram, wide = run.model, corpus.unigram, run.phi
    use = corpus.map(partial(topic_use, model), run.theta, (wide,))
    phi = wide[:, : model.n_topics]
    topic_word = np.ascontiguousarray(phi.T)
    topic_word[topic_word.sum(axis=1) == 0] = unigram  # a topic without documents
    topic_share = None
    if model.background is not None and model.background.joint:
        topic_share = 1.0 - sum(shard.background for shard in use) / corpus.tokens
    prior = model.doc_prior
    if prior is not None and prior.for_training_documents() is not None:  # it depends on the training documents
        prior = prior.for_new_documents()
    inference: Inference = MaximumLikelihood(model.temperature, model.background, prior, topic_share)
    if not model.loss.is_likelihood:
        inference = LeastLoss(_with_scales(model.loss, run, corpus), model.free_scale)
    return {
        "topic_word": topic_word,
        "active": (np.max([shard.largest for shard in use], axis=0)[: model.n_topics] > 0) & (phi.max(axis=0) > 0),
        "inference": inference,
        "unigram": unigram,
        "n_tokens": corpus.tokens,
        "n_documents": corpus.documents,
    }
