"""Fits by other packages for benchmarks/solvers.py, as traces of (seconds, log-likelihood per token).

All have 2 threads. Their likelihoods are computed by the same function, outside of the timed sections.

- scikit-learn mu: the only solver of NMF for this loss, from the start of polyseme, float32, without its test of
  convergence. A call runs ten iterations, because each call first computes the loss.
- scikit-learn mu, nndsvda: the same from its default start, whose time is included.
- scikit-learn MiniBatchNMF: recommended by its documentation for larger data; from the start of polyseme, with its
  default batches (1024) and forgetting factor (0.7), on shuffled documents, because the file sorts them by newsgroup.
  Its document weights lag behind its topics, so polyseme folds in the documents, which is not timed.
- enstop: PLSA with its random start, without its tests of convergence, after its compilation. It cannot continue a fit,
  so each point is a separate fit.
- BigARTM: offline EM with reuse_theta and one pass over a document in each pass over the collection, which is plain EM;
  and its default, ten passes over a document.
- poismf: Poisson factorization without a penalty, by conjugate gradients with its default of five steps for each row,
  from its own start; of its methods the fastest one whose result is not changed by the penalty. Each point is a
  separate fit.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import MiniBatchNMF, non_negative_factorization

from common import THREADS, can_import
from polyseme.core.fold_in import fold_in
from polyseme.core.model import Model
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import Want, padded

Trace = list[tuple[float, float]]
Factors = tuple[np.ndarray, np.ndarray]
"""theta (documents x K) and phi (words x K)."""


def as_corpus(X: sp.csr_array) -> MemoryCorpus:
    return MemoryCorpus(as_counts(X, np.dtype(np.float32)), None, THREADS)


def log_likelihood(corpus: MemoryCorpus, theta: np.ndarray, phi: np.ndarray) -> float:
    """Normalize theta (documents x K) and phi (words x K) and return their log-likelihood per token."""
    theta = theta / np.maximum(theta.sum(axis=1, keepdims=True), 1e-300)
    phi = phi / np.maximum(phi.sum(axis=0, keepdims=True), 1e-300)
    logs = corpus.sums(padded(theta, np.float32), padded(phi, np.float32), Want.LOGS).logs
    return corpus.total_log(logs) / corpus.tokens


def trace_sklearn(X: sp.csr_array, K: int, factors: Factors | None, limit: float) -> Trace:
    """Run multiplicative updates from the factors, or from the default start of scikit-learn."""
    corpus, trace, used = as_corpus(X), [], 0.0
    W, H, init = None, None, "nndsvda"
    if factors:
        totals = np.asarray(X.sum(axis=1)).reshape(-1, 1)
        W = np.maximum(factors[0] * totals, 1e-8).astype(np.float32)
        H, init = np.ascontiguousarray(factors[1].T, dtype=np.float32), "custom"
    while used < limit:
        started = time.perf_counter()
        W, H, _ = non_negative_factorization(
            X, W, H, n_components=K, init=init, solver="mu", beta_loss="kullback-leibler", tol=0, max_iter=10
        )
        used, init = used + time.perf_counter() - started, "custom"
        trace.append((used, log_likelihood(corpus, W * H.sum(axis=1), H.T)))
    return trace


class RecordingNMF(MiniBatchNMF):
    """MiniBatchNMF that records its topics after growing numbers of batches and stops at its time limit."""

    def record(self, limit: float) -> list[tuple[float, np.ndarray]]:
        """Return the list that `fit` fills with (seconds, topics)."""
        self.limit_, self.points_, self.used_, self.next_ = limit, [], 0.0, 10
        self.started_ = time.perf_counter()
        return self.points_

    def _minibatch_convergence(self, X, batch_cost, H, H_buffer, n_samples, step, n_steps):
        seconds = self.used_ + time.perf_counter() - self.started_
        over = seconds > self.limit_
        if step + 1 >= self.next_ or over:
            self.points_.append((seconds, H.copy()))
            self.next_ = 2 * (step + 1)
        self.used_, self.started_ = seconds, time.perf_counter()
        return over


def trace_sklearn_minibatch(X: sp.csr_array, K: int, factors: Factors, limit: float) -> Trace:
    corpus, order = as_corpus(X), np.random.default_rng(0).permutation(X.shape[0])
    totals = np.asarray(X.sum(axis=1)).reshape(-1, 1)
    W = np.maximum(factors[0] * totals, 1e-8).astype(np.float32)[order]
    shuffled = sp.csr_array(X[order])
    model = RecordingNMF(K, init="custom", beta_loss="kullback-leibler", tol=0, max_no_improvement=None, max_iter=10**4)
    points = model.record(limit)
    model._fit_transform(shuffled, W=W, H=np.ascontiguousarray(factors[1].T, dtype=np.float32))
    trace = []
    for seconds, H in points:
        topics = H / np.maximum(H.sum(axis=1, keepdims=True), 1e-30)
        theta = fold_in(Model(K), corpus.counts, topics, None, n_threads=THREADS).doc_topic
        trace.append((seconds, log_likelihood(corpus, theta, topics.T)))
    return trace


def trace_enstop(X: sp.csr_array, K: int, seed: int, limit: float) -> Trace:
    from enstop import PLSA

    corpus, matrix, trace = as_corpus(X), sp.csr_matrix(X), []
    PLSA(n_components=K, n_iter=1, random_state=seed).fit(matrix)
    for iterations in (10, 20, 40, 80, 160, 320):
        model = PLSA(n_components=K, n_iter=iterations, n_iter_per_test=10**9, tolerance=0, random_state=seed)
        started = time.perf_counter()
        model.fit(matrix)
        used = time.perf_counter() - started
        trace.append((used, log_likelihood(corpus, model.embedding_, model.components_.T)))
        if used > limit / 2:
            break
    return trace


@cache
def _quiet_bigartm() -> None:
    """Write the log files of BigARTM to the temporary folder; the setting can be made once per process."""
    import artm

    logging = artm.messages.ConfigureLoggingArgs()
    logging.log_dir = tempfile.gettempdir()
    artm.wrapper.LibArtm(logging_config=logging)


def trace_bigartm(X: sp.csr_array, K: int, seed: int, limit: float, passes: int) -> Trace:
    """Run offline EM with this number of passes over a document in each pass over the collection."""
    import artm

    corpus, trace, used = as_corpus(X), [], 0.0
    folder = tempfile.mkdtemp()
    _quiet_bigartm()
    try:
        words = [f"w{word}" for word in range(X.shape[1])]
        coo = X.tocoo()
        rows = np.c_[coo.row + 1, coo.col + 1, coo.data].astype(int)
        head = f"{X.shape[0]}\n{X.shape[1]}\n{X.nnz}"
        np.savetxt(Path(folder, "docword.x.txt"), rows, "%d", header=head, comments="")
        Path(folder, "vocab.x.txt").write_text("\n".join(words) + "\n")
        batches = artm.BatchVectorizer(
            data_path=folder, data_format="bow_uci", collection_name="x", target_folder=folder
        )
        model = artm.ARTM(
            num_topics=K, dictionary=batches.dictionary, num_processors=THREADS, cache_theta=True, reuse_theta=True,
            num_document_passes=passes, seed=seed,
        )  # fmt: skip
        while used < limit:
            started = time.perf_counter()
            model.fit_offline(batches, num_collection_passes=max(1, 5 // passes))
            used += time.perf_counter() - started
            theta = model.get_theta().T
            theta.index = theta.index.astype(int)
            theta = theta.reindex(range(1, X.shape[0] + 1)).fillna(1 / K).to_numpy()
            trace.append((used, log_likelihood(corpus, theta, model.phi_.reindex(words).fillna(0).to_numpy())))
    finally:
        shutil.rmtree(folder)
    return trace


def trace_poismf(X: sp.csr_array, K: int, seed: int, limit: float) -> Trace:
    from poismf import PoisMF

    corpus, counts, trace = as_corpus(X), sp.coo_matrix(X), []
    for iterations in (5, 15, 50):
        model = PoisMF(
            K, method="cg", l2_reg=0.0, l1_reg=0.0, niter=iterations, reindex=False, random_state=seed, nthreads=THREADS
        )
        started = time.perf_counter()
        model.fit(counts)
        used = time.perf_counter() - started
        trace.append((used, log_likelihood(corpus, model.A * model.B.sum(axis=0), model.B)))
        if used > limit / 3:
            break
    return trace


PEERS = ("scikit-learn", "enstop", "bigartm", "poismf")


def available(wanted: list[str]) -> list[str]:
    """Return the wanted packages that can be imported, and print which ones cannot."""
    modules = {"scikit-learn": "sklearn", "bigartm": "artm"}
    return [name for name in PEERS if name in wanted and can_import(modules.get(name, name), name)]


def peers(
    X: sp.csr_array, K: int, seed: int, factors: Factors, limit: float, packages: list[str]
) -> dict[str, Callable[[], Trace]]:
    """Return a function for each method of the packages, by name."""
    methods: dict[str, dict[str, Callable[[], Trace]]] = {
        "scikit-learn": {
            "scikit-learn mu": lambda: trace_sklearn(X, K, factors, limit),
            "scikit-learn mu, nndsvda": lambda: trace_sklearn(X, K, None, limit),
            "scikit-learn MiniBatchNMF": lambda: trace_sklearn_minibatch(X, K, factors, limit),
        },
        "poismf": {"poismf": lambda: trace_poismf(X, K, seed, limit)},
        "enstop": {"enstop PLSA": lambda: trace_enstop(X, K, seed, limit)},
        "bigartm": {
            "BigARTM, 1 pass": lambda: trace_bigartm(X, K, seed, limit, 1),
            "BigARTM, 10 passes": lambda: trace_bigartm(X, K, seed, limit, 10),
        },
    }
    return {name: run for package in packages for name, run in methods[package].items()}
