"""PLSA of a corpus on disk: fitting shards, and folding them in.

The solvers are those of a fit in memory. The topic weights of the documents are written to a file beside the shards and
mapped to memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from polyseme.core.fitted import (
    DocumentSums,
    DocumentWeights,
    FittedTopics,
    FoldedTraining,
    TrainingDocuments,
    active_rows,
    document_sums,
    posterior_operands,
)
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.data.disk import DiskCorpus, remove_unused
from polyseme.data.shard_files import MappedShard
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import (
    FitSummary,
    LikelihoodFit,
    LikelihoodSettings,
    LikelihoodTopics,
    factor_dtype,
    model_from_parameters,
    names_or_none,
)
from polyseme.io.files import umask
from polyseme.io.tensors import bytes_of, npy_header
from polyseme.kernels import Array, Floats, weighted_sum
from polyseme.progress import fit_progress
from polyseme.solvers.base import FitProblem, FitResult, advance_to_end, best_of, check_solver, resume_run
from polyseme.solvers.checkpoints import ShardCheckpointStore, ShardSettings, as_checkpoint, shard_fit_digest
from polyseme.utils import effective_threads

if TYPE_CHECKING:
    from polyseme.estimators.plsa import PLSA

DOC_TOPIC = "doc_topic.npy"


def check_shards(estimator: PLSA, shards: DiskCorpus, sample_weight: Any = None) -> None:
    """Check that the parameters allow a fit to shards, and set the features of the estimator."""
    if sample_weight is not None:
        raise UnsupportedError(
            "Shards have no weights: leave sample_weight out, or repeat the documents when you write the shards."
        )
    if estimator.checkpoint is not None and as_checkpoint(estimator.checkpoint).path is not None:
        raise UnsupportedError(
            "checkpoint: a fit of shards is stored beside them. Leave checkpoint out, or use Checkpoint(None, seconds)."
        )
    if shards.shape[0] == 0 or not shards.manifest.tokens > 0:
        raise InputError("There is nothing to fit: the shards have no words.")
    estimator.n_features_in_ = shards.shape[1]
    if "feature_names_in_" in vars(estimator):
        del estimator.feature_names_in_


def fit_shards(
    estimator: PLSA, settings: LikelihoodSettings, shards: DiskCorpus, sample_weight: Any, feature_names: Any
) -> LikelihoodFit:
    """Fit shards with the parameters of an estimator.

    An interrupted fit resumes from its last state on disk when it is called again.
    """
    check_shards(estimator, shards, sample_weight)
    vocabulary = names_or_none(shards.vocabulary if feature_names is None else feature_names, shards.shape[1])
    K, n_init, max_iter, tol, solver, n_threads = settings
    dtype = factor_dtype(estimator.dtype, shards)
    stored = ShardSettings(shards.manifest.digest, max_iter, tol)
    seconds = None if estimator.checkpoint is None else estimator.checkpoint.seconds
    with shards.only_writer():
        corpus = shards.corpus(dtype, n_threads)
        model = model_from_parameters(estimator, K, corpus, vocabulary)
        if not model.is_separable:
            raise UnsupportedError(
                "Shards are read one at a time: no JointBackground, and no prior that compares documents."
            )
        chosen = check_solver(solver, FitProblem(model, corpus), checkpoint=estimator.checkpoint is not None)
        with fit_progress(estimator.verbose, max_iter, type(estimator).__name__, estimator.callback) as listeners:

            def fit_from(theta: Any, phi: Array) -> FitResult | None:
                name = shard_fit_digest(chosen, model, phi, stored)
                place = corpus.with_work_folder(name)
                store = ShardCheckpointStore(place, name, shards.checkpoint_every, seconds)
                start = FitProblem(model, place), theta, place.resident(phi)
                return advance_to_end(
                    partial(chosen.begin, *start),
                    partial(resume_run, chosen, *start),
                    max_iter=max_iter,
                    tol=tol,
                    listeners=listeners,
                    store=store,
                )

            starts = estimator._starts(corpus, model, n_init, None)
            best, interrupted = best_of(fit_from(theta, phi) for theta, phi in starts)
        end, topics = FitSummary.of(best, interrupted), LikelihoodTopics.of(best.run, corpus)
        del best
        folded = fold_in_shards(shards, corpus, vocabulary=vocabulary, **topics.fields)
        if not interrupted:
            corpus.forget()
        remove_unused()
    return LikelihoodFit(folded, end, topics.word_background)


def transform_shards(estimator: PLSA, shards: DiskCorpus) -> Array:
    """Return P(z|d) of all documents (documents x K), mapped from a file beside the shards."""
    if shards.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"The shards have {shards.shape[1]} words, but the model has {estimator.n_features_in_}: "
            "write the shards with the vocabulary of the model."
        )
    fitted = estimator.fitted_
    with shards.only_writer():
        corpus = shards.corpus(fitted.topic_word.dtype, effective_threads(estimator.n_jobs))
        return _fold_shards(shards, corpus, fitted.active_topics, estimator._inference, fitted.topic_weights).doc_topic


def fold_in_shards(
    shards: DiskCorpus,
    corpus: Any,
    topic_word: Array,
    inference: MaximumLikelihood,
    *,
    active: Array | None = None,
    **fields: Any,
) -> FoldedTraining:
    """Fold in the training documents, as `core.fitted.fold_in_training` does, shard by shard."""
    active = np.ones(len(topic_word), dtype=bool) if active is None else active
    folded = _fold_shards(shards, corpus, active_rows(topic_word, active), inference, None)
    assert folded.sums is not None
    share = 0.0 if inference.background is None else inference.background.share
    return FoldedTraining(
        FittedTopics(
            topic_word, folded.topic_weights, active=active, inference=inference,
            word_documents=folded.sums.by_topic(), **fields,
        ),
        TrainingDocuments(
            corpus.totals / corpus.tokens, folded.doc_topic, np.broadcast_to(np.float64(share), (corpus.n_docs,))
        ),
        folded.log_likelihood,
        None,
    )  # fmt: skip


class FoldedShards(NamedTuple):
    """Result of folding in all shards."""

    doc_topic: Array
    log_likelihood: float
    """Mean log P(w|d) of a token."""
    topic_weights: Floats
    sums: DocumentSums | None
    """Expected numbers of documents by topic and word; None if topic_weights was given."""


def _fold_shards(
    shards: DiskCorpus, corpus: Any, topic_word: Array, inference: MaximumLikelihood, topic_weights: Floats | None
) -> FoldedShards:
    """Fold in every shard and write the weights to one file. Documents without known words get P(z).

    `topic_weights` is P(z), or None for the training documents, whose expected numbers per topic and word are then
    computed too. The topics are written to a file, because they are too large to be sent with every task.
    """
    dtype, K = topic_word.dtype, len(topic_word)
    out, topics = shards.folder / f"{DOC_TOPIC}.part", shards.folder / "topics.npy.part"
    try:
        with topics.open("wb") as file:
            np.save(file, topic_word)
        header = npy_header(np.broadcast_to(np.zeros(1, dtype=dtype), (shards.shape[0], K)))
        with out.open("wb") as file:
            file.write(header)
            file.truncate(len(header) + shards.shape[0] * K * dtype.itemsize)
        job = _FoldJob(inference, topics, out, len(header), _first_rows(shards), topic_weights)
        parts: list[_FoldedShard] = corpus.map(fold_shard, job)
        sums = corpus.total(count_shard, job) if topic_weights is None else None
        totals = np.sum([part.mass for part in parts], axis=0)
        weights = totals / totals.sum() if totals.sum() > 0 else np.full(K, 1.0 / K)
        if topic_weights is None:
            _fill(out, len(header), [part.unknown for part in parts], weights.astype(dtype))
        os.chmod(out, 0o666 & ~umask())
        os.replace(out, shards.folder / DOC_TOPIC)
    finally:
        out.unlink(missing_ok=True)
        topics.unlink(missing_ok=True)
    doc_topic = np.load(shards.folder / DOC_TOPIC, mmap_mode="r").view(np.ndarray)
    return FoldedShards(doc_topic, sum(part.log_sum for part in parts) / corpus.tokens, weights, sums)


@dataclass(frozen=True)
class _FoldJob:
    """Arguments of `fold_shard`; small, because it may be sent to a worker."""

    inference: MaximumLikelihood
    topics: Path
    out: Path
    offset: int
    """Bytes before the first document in `out`."""
    first_rows: list[int]
    topic_weights: Floats | None


class _FoldedShard(NamedTuple):
    """Result of folding in one shard."""

    log_sum: float
    mass: Floats
    """sum_d n_d P(z|d)."""
    unknown: Array
    """Documents without known words."""


def fold_shard(number: int, shard: MappedShard, job: _FoldJob) -> _FoldedShard:
    """Fold in one shard and write its rows of the file."""
    topic_word = np.load(job.topics, mmap_mode="r")
    counts = shard.by_doc
    folded = job.inference.weights(counts, topic_word, job.topic_weights, n_threads=shard.n_threads)
    first = job.first_rows[number]
    with job.out.open("r+b") as file:
        file.seek(job.offset + first * folded.doc_topic[:1].nbytes)
        file.write(bytes_of(folded.doc_topic))
    logs = folded.counts.logs(*job.inference.operands(folded, topic_word), n_threads=shard.n_threads)
    unknown = np.flatnonzero(np.diff(folded.counts.indptr) == 0)
    totals = np.where(np.diff(folded.counts.indptr) == 0, 0.0, shard.totals)
    mass = weighted_sum(totals, folded.doc_topic, n_threads=shard.n_threads)
    return _FoldedShard(float(logs.sum()), mass, first + unknown)


def count_shard(number: int, shard: MappedShard, job: _FoldJob, memory: Floats | None = None) -> DocumentSums:
    """Return the expected numbers of documents of a shard that `fold_shard` has folded in."""
    topic_word = np.load(job.topics, mmap_mode="r")
    theta = np.memmap(
        job.out, dtype=topic_word.dtype, mode="r", shape=(shard.n_docs, len(topic_word)),
        offset=job.offset + job.first_rows[number] * len(topic_word) * topic_word.itemsize,
    ).view(np.ndarray)  # fmt: skip
    shares = job.inference.model(len(topic_word)).background_shares(theta)  # no JointBackground with shards
    operands = job.inference.operands(DocumentWeights(theta, shares, shard.by_doc), topic_word)
    operands = posterior_operands(operands, job.inference.temperature)
    return document_sums(shard.by_doc, operands, theta, n_threads=shard.n_threads, memory=memory)


def _first_rows(shards: DiskCorpus) -> list[int]:
    sizes = [entry.documents for entry in shards.manifest.shards]
    return [0, *np.cumsum(sizes).tolist()[:-1]]


def _fill(path: Path, offset: int, unknown: list[Array], row: Array) -> None:
    """Write `row` in the place of the documents without known words."""
    content = row.tobytes()
    with path.open("r+b") as file:
        for number in np.concatenate(unknown).tolist():
            file.seek(offset + number * len(content))
            file.write(content)
