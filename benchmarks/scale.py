"""Corpora larger than memory: disk against memory, one pass online against batch sweeps and peers, Dask workers.

    python benchmarks/scale.py corpus            write the shards, which the other parts use
    python benchmarks/scale.py disk              speed per non-zero against memory, anonymous memory, growth
    python benchmarks/scale.py online            one pass against 20 sweeps; --peers adds BigARTM and gensim
    python benchmarks/scale.py lda               one pass of online LDA over shards; --peers adds gensim
    python benchmarks/scale.py dask              one worker, two workers, memory with two threads
    python benchmarks/scale.py plan              the rates of this machine, and a simulation of larger clusters

Sizes are small by default; the full ones: --documents 2000000 (lda, dask and plan: 1000000; online: 100000).
gensim needs half an hour for a million documents: --peer-documents gives it fewer.
Documents have about 100 tokens of 100,000 words, drawn from 100 topics whose words follow Zipf's law.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import cluster_plan
from common import (
    THREADS,
    anonymous_memory,
    can_import,
    describe_machine,
    installed_version,
    report_figure,
    report_ratio,
    time_call,
)
from polyseme import LDA, PLSA
from polyseme.core.fitted import FittedTopics
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.model import Model
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.data.dask import DaskShards, connected, kernel_threads
from polyseme.data.disk import DiskCorpus, LocalShards
from polyseme.datasets import synthetic_corpus
from polyseme.scale import open_shards, write_shards
from polyseme.solvers import StepwiseEM
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import FitProblem
from polyseme.solvers.initialize import named_start
from scale_peers import run_bigartm, run_gensim

warnings.filterwarnings("ignore")

FLOAT32 = np.dtype(np.float32)
FULL = {"disk": 2_000_000, "online": 100_000, "lda": 1_000_000, "dask": 1_000_000, "plan": 1_000_000}
"""Numbers of documents for which the required values hold."""
HELD_OUT = 1000
PEERS = (("BigARTM", "artm", run_bigartm, 3), ("gensim LdaMulticore", "gensim", run_gensim, 20))
SEED = 0


def chunks(arguments: argparse.Namespace, documents: int) -> Iterator[sp.csr_array]:
    """Yield the corpus, a few hundred documents at a time."""
    zipf = 1 / (np.arange(arguments.words) + 2.7)
    prior = 100 * zipf / zipf.sum()
    corpus = synthetic_corpus(
        documents, n_words=arguments.words, n_topics=arguments.topics, topic_word_prior=prior, random_state=SEED
    )
    for _, counts in corpus.blocks():
        yield counts.astype(np.float32)


def open_corpus(arguments: argparse.Namespace, documents: int) -> DiskCorpus:
    """Return the first documents of the corpus as shards; write them on first use."""
    folder = arguments.folder / f"{documents}"
    if (folder / "manifest.json").exists() and json.loads((folder / "manifest.json").read_text())["complete"]:
        return open_shards(folder)
    started = time.perf_counter()
    larger = sorted(int(path.name) for path in arguments.folder.glob("*") if path.name.isdigit())
    larger = [size for size in larger if size > documents]
    stream = (
        _first(open_shards(arguments.folder / f"{larger[0]}"), documents) if larger else chunks(arguments, documents)
    )
    shards = write_shards(stream, folder)
    entries = shards.manifest.shards
    print(
        f"wrote {documents:,} documents in {len(entries)} shards, {sum(e.size for e in entries) / 1e9:.2f} GB, "
        f"in {time.perf_counter() - started:.0f} s"
    )
    return shards


def _first(shards: DiskCorpus, documents: int) -> Iterator[sp.csr_array]:
    for matrix in shards:
        yield matrix[:documents]
        documents -= min(documents, matrix.shape[0])
        if not documents:
            return


def load_matrix(arguments: argparse.Namespace, documents: int) -> sp.csr_array:
    return sp.csr_array(sp.vstack(list(open_corpus(arguments, documents)), format="csr"))


def start_run(corpus: Any, K: int) -> Any:
    """Return a run of EM after its first iteration."""
    model = Model(K)
    theta, phi = named_start("random", corpus, model, np.random.default_rng(SEED))
    return EM().begin(FitProblem(model, corpus), theta, phi)


def seconds_per_sweep(corpus: Any, K: int, sweeps: int) -> float:
    """Return the time of one iteration of EM, without the first one."""
    run = start_run(corpus, K)
    return time_call(lambda: [run.advance() for _ in range(sweeps)]) / sweeps


class MemoryMonitor(threading.Thread):
    """Samples RssAnon of this process fifty times per second (Linux); `peak` is the maximum."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, anonymous_memory())
            time.sleep(0.02)


def measure_one(arguments: argparse.Namespace) -> None:
    """Print the seconds per sweep and the anonymous memory of one corpus as JSON; runs in its own process."""
    monitor = MemoryMonitor()
    monitor.start()
    shards = open_corpus(arguments, arguments.documents)
    nonzeros = sum(entry.nonzeros for entry in shards.manifest.shards)
    if arguments.part == "_memory":
        corpus: Any = MemoryCorpus(
            as_counts(load_matrix(arguments, arguments.documents), FLOAT32), None, arguments.threads
        )
    else:
        corpus = LocalShards(shards, FLOAT32, arguments.threads, Path(tempfile.mkdtemp(dir=arguments.folder)))
    seconds = seconds_per_sweep(corpus, arguments.topics, arguments.sweeps)
    if arguments.part == "_disk":
        shutil.rmtree(corpus.work)
    print(json.dumps({"seconds": seconds, "nonzeros": nonzeros, "anonymous": monitor.peak}))


def run_measurement(
    arguments: argparse.Namespace, part: str, documents: int, threads: int = THREADS
) -> dict[str, float]:
    options = {
        "documents": documents, "words": arguments.words, "topics": arguments.topics, "folder": arguments.folder,
        "threads": threads, "sweeps": arguments.sweeps,
    }  # fmt: skip
    words = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    done = subprocess.run([sys.executable, __file__, part, *words], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{part.strip('_'):6} {threads} threads {documents:>10,} documents {found['nonzeros']:>13,} non-zeros: "
        f"{found['seconds']:7.2f} s per sweep, {1e9 * found['seconds'] / found['nonzeros']:6.1f} ns per non-zero, "
        f"RssAnon at most {found['anonymous'] / 1e9:.2f} GB",
        flush=True,
    )
    return found


def disk(arguments: argparse.Namespace) -> None:
    sizes = [arguments.documents // 20, arguments.documents // 4, arguments.documents]
    for size in reversed(sizes):
        open_corpus(arguments, size)
    found = [run_measurement(arguments, "_disk", size) for size in sizes]
    in_memory = run_measurement(arguments, "_memory", min(arguments.documents, arguments.memory_documents))
    speeds = [run["nonzeros"] / run["seconds"] for run in (in_memory, found[-1])]
    growth = np.log(found[-1]["seconds"] / found[0]["seconds"]) / np.log(sizes[-1] / sizes[0])
    report_required(
        arguments, "from disk, of the speed of memory per non-zero", f"{speeds[1] / speeds[0]:.0%}", "at least 75%"
    )
    report_required(
        arguments,
        f"anonymous memory, {sizes[-1]:,} documents",
        f"{found[-1]['anonymous'] / 1e9:.2f} GB",
        "at most 1 GB",
    )
    report_required(
        arguments, f"exponent of the time, {sizes[0]:,} to {sizes[-1]:,} documents", f"{growth:.2f}", "at most 1.1"
    )


def report_required(arguments: argparse.Namespace, what: str, value: str, required: str) -> None:
    """Print a figure, with the required value if the corpus has its full size."""
    report_figure(what, value, required if arguments.documents >= FULL[arguments.part] else "")


def completion_perplexity(test: sp.csr_array, unigram: np.ndarray, topic_word: np.ndarray) -> float:
    """Return the completion perplexity of held-out documents for any topics (K x words)."""
    K = len(topic_word)
    model = PLSA(K, random_state=SEED)
    model.n_features_in_ = test.shape[1]
    model._fitted = FittedTopics(
        np.ascontiguousarray(topic_word, dtype=np.float32),
        np.full(K, 1 / K),
        unigram,
        active=np.ones(K, dtype=bool),
        n_tokens=1.0,
        n_documents=1.0,
        inference=MaximumLikelihood(),
    )
    return model.completion_perplexity(test)


def online(arguments: argparse.Namespace) -> None:
    K = arguments.topics
    X = load_matrix(arguments, arguments.documents + HELD_OUT)
    test, train = X[:HELD_OUT], X[HELD_OUT:]
    unigram = np.asarray(train.sum(axis=0), dtype=np.float64).ravel() / train.sum()
    corpus, model = MemoryCorpus(as_counts(train, FLOAT32), None, arguments.threads), Model(K)
    theta, phi = named_start("random", corpus, model, np.random.default_rng(SEED), variance=StepwiseEM.start_variance)

    def report(name: str, seconds: float, topic_word: np.ndarray) -> tuple[float, float]:
        perplexity = completion_perplexity(test, unigram, topic_word)
        speed = train.shape[0] / seconds
        print(
            f"{name:24} {seconds:8.2f} s {speed:>10,.0f} documents/s  held-out perplexity {perplexity:8.1f}", flush=True
        )
        return seconds, perplexity

    print(f"held-out perplexity of the unigram {completion_perplexity(test, unigram, np.tile(unigram, (K, 1))):.1f}")
    corpus.by_doc.transposed(None)
    started = time.perf_counter()
    run = EM().begin(FitProblem(model, corpus), theta, phi)
    for _ in range(20):
        run.advance()
    batch = report("20 batch sweeps", time.perf_counter() - started, run.phi[:, :K].T)
    started = time.perf_counter()
    run = StepwiseEM().begin(FitProblem(model, corpus), theta, phi)
    run.advance()
    ours = report("one pass online", time.perf_counter() - started, run.phi[:, :K].T)
    report_required(
        arguments, "one pass online, perplexity over that of 20 sweeps", f"{ours[1] / batch[1]:.3f}", "at most 1.03"
    )
    report_required(
        arguments, "one pass online, time over that of 20 sweeps", f"{ours[0] / batch[0]:.2f}", "below 0.33"
    )
    for name, module, run_peer, required in PEERS if arguments.peers else ():
        if can_import(module, name):
            theirs = report(f"{name} {installed_version(name.split()[0].lower())}", *run_peer(train, K))
            speeds = [train.shape[0] / run[0] for run in (ours, theirs)]
            report_ratio(f"one pass online, {train.shape[0]:,} documents", name, *speeds, "documents/s")
            report_required(
                arguments, f"speed, ours over {name}'s", f"{speeds[0] / speeds[1]:.1f}", f"at least {required}"
            )
            report_required(arguments, f"perplexity, ours over {name}'s", f"{ours[1] / theirs[1]:.3f}", "at most 1")


def lda(arguments: argparse.Namespace) -> None:
    """Compare one pass of online LDA over shards with one pass of gensim over a list of documents in memory."""
    K, every = arguments.topics, arguments.documents + HELD_OUT
    shards = open_corpus(arguments, every)
    test = next(iter(shards))[:HELD_OUT]
    folder = arguments.folder / f"{arguments.documents}-without-test"
    train = open_shards(folder) if (folder / "manifest.json").exists() else write_shards(_rest(shards), folder)
    perplexities = {}

    def report(name: str, documents: int, seconds: float, perplexity: float) -> float:
        speed, perplexities[name] = documents / seconds, perplexity
        print(
            f"{name:24} {documents:>10,} documents {seconds:8.1f} s {speed:>10,.0f} documents/s  "
            f"held-out perplexity {perplexity:8.1f}",
            flush=True,
        )
        return speed

    started = time.perf_counter()
    model = LDA(K, solver="online", max_iter=1, tol=0, random_state=SEED, n_jobs=arguments.threads).fit(train)
    total = time.perf_counter() - started
    perplexity = model.completion_perplexity(test)
    ours = report("online LDA from shards", arguments.documents, model.history_["seconds"][-1], perplexity)
    speed = arguments.documents / total
    print(f"with the weights of all documents after the pass: {total:.1f} s, {speed:,.0f} documents/s")
    unigram = model.unigram_
    if arguments.peers and can_import("gensim", "gensim LdaMulticore"):
        documents = arguments.peer_documents or arguments.documents
        X = sp.csr_array(sp.vstack(list(_first(train, documents)), format="csr"))
        seconds, topic_word = run_gensim(X, K)
        name = f"gensim {installed_version('gensim')} LdaMulticore"
        theirs = report(name, documents, seconds, completion_perplexity(test, unigram, topic_word))
        by_means = completion_perplexity(test, unigram, model.components_)
        report_ratio(f"one pass of online LDA, {documents:,} documents", name, ours, theirs, "documents/s")
        report_required(arguments, "documents per second, ours over gensim's", f"{ours / theirs:.1f}", "at least 10")
        report_required(
            arguments, "held-out perplexity by the same measure, ours over gensim's",
            f"{by_means / perplexities[name]:.3f}", "at most 1",
        )  # fmt: skip


def _rest(shards: DiskCorpus) -> Iterator[sp.csr_array]:
    """Yield the counts of all documents except the first ones, which are held out."""
    skip = HELD_OUT
    for matrix in shards:
        yield matrix[skip:]
        skip = 0


def dask(arguments: argparse.Namespace) -> None:
    """Compare medians of sweeps that alternate, so that a slow phase of the machine affects all of them."""
    shards, K = open_corpus(arguments, arguments.documents), arguments.topics
    counts = as_counts(load_matrix(arguments, arguments.documents), FLOAT32)
    with connected(1) as one, connected(2) as two, tempfile.TemporaryDirectory(dir=arguments.folder) as work:
        corpora: dict[str, Any] = {
            "dask, 1 worker": dask_corpus(shards, one, Path(work) / "one"),
            "dask, 2 workers": dask_corpus(shards, two, Path(work) / "two"),
            "memory, 1 thread": MemoryCorpus(counts, None, 1),
            "memory, 2 threads": MemoryCorpus(counts, None, 2),
        }
        runs = {name: start_run(corpus, K) for name, corpus in corpora.items()}
        rounds = [{name: time_call(run.advance) for name, run in runs.items()} for _ in range(arguments.sweeps)]
    found = {name: float(np.median([seconds[name] for seconds in rounds])) for name in runs}
    for name, seconds in found.items():
        each = " ".join(f"{seconds[name]:.2f}" for seconds in rounds)
        print(
            f"{name:18} {seconds:6.2f} s per sweep ({each}), {1e9 * seconds / counts.values.size:5.1f} ns per non-zero"
        )
    one_worker, two_workers, one_thread, two_threads = found.values()
    report_required(arguments, "two workers over one", f"{one_worker / two_workers:.2f}", "at least 1.4")
    report_figure("two threads over one in memory, on this machine", f"{one_thread / two_threads:.2f}")
    report_required(
        arguments,
        "two workers against memory with two threads",
        f"{two_workers / two_threads - 1:+.0%}",
        "at most +25%" if arguments.documents >= FULL["dask"] else "",
    )


def dask_corpus(shards: DiskCorpus, client: Any, work: Path) -> DaskShards:
    work.mkdir(exist_ok=True)
    return DaskShards(
        shards, FLOAT32, 1, work, client=client, threads=kernel_threads(client, len(shards.manifest.shards), here=True)
    )


def plan(arguments: argparse.Namespace) -> None:
    """Print the rates of this machine, and the predictions for one and two workers and for larger clusters."""
    shards = open_corpus(arguments, arguments.documents)
    rates = cluster_plan.measure_rates(shards, arguments.topics, SEED)
    print(rates.summary())
    entries = shards.manifest.shards
    for workers in (1, 2):
        with connected(workers) as client, tempfile.TemporaryDirectory(dir=arguments.folder) as work:
            found = seconds_per_sweep(dask_corpus(shards, client, Path(work)), arguments.topics, arguments.sweeps)
        size = cluster_plan.Size(arguments.topics, arguments.words, arguments.documents, [e.nonzeros for e in entries])
        predicted = cluster_plan.iteration(size, workers, rates, rates.transfer).seconds
        report_figure(f"{workers} worker(s) here, predicted over measured", f"{predicted / found:.2f}")
    cluster_plan.print_plan(arguments, rates)


PARTS = {
    "disk": disk,
    "online": online,
    "lda": lda,
    "dask": dask,
    "plan": plan,
    "_disk": measure_one,
    "_memory": measure_one,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["corpus", *PARTS])
    parser.add_argument("--documents", type=int, default=40_000)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--memory-documents", type=int, default=1_000_000, help="maximum for the fit in memory")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--peer-documents", type=int, help="documents of gensim in the part lda (default: all)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "polyseme-scale")
    group = parser.add_argument_group("plan")
    group.add_argument("--plan-documents", type=int, default=10**9)
    group.add_argument("--nonzeros-a-document", type=int, default=85)
    group.add_argument("--shard-nonzeros", type=int, default=32_000_000)
    group.add_argument("--network-rate", type=float, default=1e9, help="maximum bytes per second")
    group.add_argument(
        "--spread", type=float, default=0.1, help="standard deviation of the log of the speeds of workers"
    )
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if not arguments.part.startswith("_"):
        describe_machine(*(("dask", "distributed") if arguments.part in ("dask", "plan") else ()))
    if arguments.part == "corpus":
        open_corpus(arguments, arguments.documents)
    else:
        PARTS[arguments.part](arguments)


if __name__ == "__main__":
    main()
