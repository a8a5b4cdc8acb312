"""Corpora larger than memory: disk against memory, one pass online against batch sweeps and peers, Dask workers.

    python benchmarks/scale.py corpus            write the shards (once; the other parts use them)
    python benchmarks/scale.py disk              speed per non-zero against memory, anonymous memory, growth
    python benchmarks/scale.py online            one pass against 20 sweeps; --peers adds BigARTM and gensim
    python benchmarks/scale.py dask              one worker, two workers, memory with two threads
    python benchmarks/scale.py plan              the rates of this machine, and larger clusters simulated with them

Sizes are small by default; the full ones: --documents 2000000 (dask and plan: 1000000; online: 100000).
Documents have about 100 tokens of 100,000 words, drawn from 100 topics whose words follow Zipf's law.
"""

from __future__ import annotations

import argparse
import json
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
from common import THREADS, anonymous_memory, can_import, compared, describe_machine, figure, installed, seconds_of
from polyseme import PLSA
from polyseme.core.model import Model
from polyseme.core.shard import counts_of
from polyseme.data.corpus import MemoryCorpus
from polyseme.data.dask import DaskSource, connected
from polyseme.datasets.synthetic import sample_chunks
from polyseme.scale import DiskCorpus, open_shards, write_shards
from polyseme.solvers import EM, StepwiseEM
from polyseme.solvers.initialize import named_start
from polyseme.solvers.online import START_VARIANCE
from scale_peers import by_bigartm, by_gensim

warnings.filterwarnings("ignore")

FLOAT32 = np.dtype(np.float32)
FULL = {"disk": 2_000_000, "online": 100_000, "dask": 1_000_000, "plan": 1_000_000}
"""documents; the bars are for these"""
HELD_OUT = 1000
PEERS = (("BigARTM", "artm", by_bigartm, 3), ("gensim LdaMulticore", "gensim", by_gensim, 20))
SEED = 0


def chunks(arguments: argparse.Namespace, documents: int) -> Iterator[sp.csr_array]:
    """The corpus, a thousand documents at a time."""
    zipf = 1 / (np.arange(arguments.words) + 2.7)
    prior = 100 * zipf / zipf.sum()
    for chunk in sample_chunks(documents, arguments.words, arguments.topics, topic_word_prior=prior, seed=SEED):
        yield chunk.counts.astype(np.float32)


def shards_of(arguments: argparse.Namespace, documents: int) -> DiskCorpus:
    """The first so many documents of the corpus, written when they are first asked for."""
    folder = arguments.folder / f"{documents}"
    if (folder / "manifest.json").exists() and json.loads((folder / "manifest.json").read_text())["complete"]:
        return open_shards(folder, checkpoint_every=1000)
    started = time.perf_counter()
    larger = sorted(int(path.name) for path in arguments.folder.glob("*") if path.name.isdigit())
    larger = [size for size in larger if size > documents]
    stream = (
        _first(open_shards(arguments.folder / f"{larger[0]}"), documents) if larger else chunks(arguments, documents)
    )
    shards = write_shards(stream, folder, checkpoint_every=1000)
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


def matrix_of(arguments: argparse.Namespace, documents: int) -> sp.csr_array:
    return sp.csr_array(sp.vstack(list(shards_of(arguments, documents)), format="csr"))


def begun(source: Any, K: int) -> Any:
    """A run of EM after its first iteration."""
    model = Model(K)
    theta, phi = named_start("random", source, model, np.random.default_rng(SEED))
    return EM().begin(model, source, theta, source.resident(phi) if hasattr(source, "resident") else phi)


def seconds_a_sweep(source: Any, K: int, sweeps: int) -> float:
    """Wall clock of one iteration of EM, after a first one."""
    run = begun(source, K)
    return seconds_of(lambda: [run.advance() for _ in range(sweeps)]) / sweeps


class AnonymousMemory(threading.Thread):
    """The most RssAnon of this process, looked at fifty times a second (Linux)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0

    def run(self) -> None:
        while True:
            self.most = max(self.most, anonymous_memory())
            time.sleep(0.02)


def measure_one(arguments: argparse.Namespace) -> None:
    """In a process of its own: one source, its seconds a sweep and its anonymous memory, as JSON."""
    watch = AnonymousMemory()
    watch.start()
    shards = shards_of(arguments, arguments.documents)
    nonzeros = sum(entry.nonzeros for entry in shards.manifest.shards)
    if arguments.part == "_memory":
        source: Any = MemoryCorpus(
            counts_of(matrix_of(arguments, arguments.documents), FLOAT32), None, arguments.threads
        )
    else:
        source = shards.source(FLOAT32, arguments.threads).working_in("benchmark")
    seconds = seconds_a_sweep(source, arguments.topics, arguments.sweeps)
    if arguments.part == "_disk":
        source.forget()
    print(json.dumps({"seconds": seconds, "nonzeros": nonzeros, "anonymous": watch.most}))


def measured(arguments: argparse.Namespace, part: str, documents: int, threads: int = THREADS) -> dict[str, float]:
    options = {
        "documents": documents, "words": arguments.words, "topics": arguments.topics, "folder": arguments.folder,
        "threads": threads, "sweeps": arguments.sweeps,
    }  # fmt: skip
    words = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    done = subprocess.run([sys.executable, __file__, part, *words], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{part.strip('_'):6} {threads} threads {documents:>10,} documents {found['nonzeros']:>13,} non-zeros: "
        f"{found['seconds']:7.2f} s a sweep, {1e9 * found['seconds'] / found['nonzeros']:6.1f} ns a non-zero, "
        f"RssAnon at most {found['anonymous'] / 1e9:.2f} GB",
        flush=True,
    )
    return found


def disk(arguments: argparse.Namespace) -> None:
    sizes = [arguments.documents // 20, arguments.documents // 4, arguments.documents]
    for size in reversed(sizes):
        shards_of(arguments, size)
    found = [measured(arguments, "_disk", size) for size in sizes]
    in_memory = measured(arguments, "_memory", min(arguments.documents, arguments.memory_documents))
    speeds = [run["nonzeros"] / run["seconds"] for run in (in_memory, found[-1])]
    growth = np.log(found[-1]["seconds"] / found[0]["seconds"]) / np.log(sizes[-1] / sizes[0])
    held(arguments, "from disk, of the speed of memory per non-zero", f"{speeds[1] / speeds[0]:.0%}", "at least 60%")
    held(
        arguments,
        f"anonymous memory, {sizes[-1]:,} documents",
        f"{found[-1]['anonymous'] / 1e9:.2f} GB",
        "at most 2 GB",
    )
    held(arguments, f"exponent of the time, {sizes[0]:,} to {sizes[-1]:,} documents", f"{growth:.2f}", "at most 1.1")


def held(arguments: argparse.Namespace, what: str, value: str, bar: str) -> None:
    """A figure, and its bar where the corpus has its full size."""
    figure(what, value, bar if arguments.documents >= FULL[arguments.part] else "")


def judge(arguments: argparse.Namespace, test: sp.csr_array, unigram: np.ndarray, topic_word: np.ndarray) -> float:
    """Completion perplexity of held-out documents by these topics (K x words): the same measure for all."""
    model = PLSA(len(topic_word), random_state=SEED)
    model.components_ = np.ascontiguousarray(topic_word, dtype=np.float32)
    model.n_features_in_, model.unigram_, model.temperature_ = test.shape[1], unigram, 1.0
    model.topic_weights_ = np.full(len(topic_word), 1 / len(topic_word))
    return model.completion_perplexity(test)


def online(arguments: argparse.Namespace) -> None:
    K = arguments.topics
    X = matrix_of(arguments, arguments.documents + HELD_OUT)
    test, train = X[:HELD_OUT], X[HELD_OUT:]
    unigram = np.asarray(train.sum(axis=0), dtype=np.float64).ravel() / train.sum()
    source, model = MemoryCorpus(counts_of(train, FLOAT32), None, arguments.threads), Model(K)
    theta, phi = named_start("random", source, model, np.random.default_rng(SEED), variance=START_VARIANCE)

    def shown(name: str, seconds: float, topic_word: np.ndarray) -> tuple[float, float]:
        perplexity = judge(arguments, test, unigram, topic_word)
        speed = train.shape[0] / seconds
        print(
            f"{name:24} {seconds:8.2f} s {speed:>10,.0f} documents/s  held-out perplexity {perplexity:8.1f}", flush=True
        )
        return seconds, perplexity

    print(f"held-out perplexity of the unigram {judge(arguments, test, unigram, np.tile(unigram, (K, 1))):.1f}")
    source.by_doc.transposed(None)
    started = time.perf_counter()
    run = EM().begin(model, source, theta, phi)
    for _ in range(20):
        run.advance()
    batch = shown("20 batch sweeps", time.perf_counter() - started, run.phi[:, :K].T)
    started = time.perf_counter()
    run = StepwiseEM().begin(model, source, theta, phi)
    run.advance()
    ours = shown("one pass online", time.perf_counter() - started, run.phi[:, :K].T)
    held(arguments, "one pass online, perplexity over that of 20 sweeps", f"{ours[1] / batch[1]:.3f}", "at most 1.03")
    held(arguments, "one pass online, time over that of 20 sweeps", f"{ours[0] / batch[0]:.2f}", "below 0.33")
    for name, module, by_peer, bar in PEERS if arguments.peers else ():
        if can_import(module, name):
            theirs = shown(f"{name} {installed(name.split()[0].lower())}", *by_peer(train, K))
            speeds = [train.shape[0] / run[0] for run in (ours, theirs)]
            compared(f"one pass online, {train.shape[0]:,} documents", name, *speeds, "documents/s")
            held(arguments, f"speed, ours over {name}'s", f"{speeds[0] / speeds[1]:.1f}", f"at least {bar}")
            held(arguments, f"perplexity, ours over {name}'s", f"{ours[1] / theirs[1]:.3f}", "at most 1")


def dask(arguments: argparse.Namespace) -> None:
    """Sweeps of all alternate, so that a machine that is slower for a while is so for all; medians are compared."""
    shards, K = shards_of(arguments, arguments.documents), arguments.topics
    counts = counts_of(matrix_of(arguments, arguments.documents), FLOAT32)
    with connected(1) as one, connected(2) as two:
        sources: dict[str, Any] = {
            "dask, 1 worker": at_workers(shards, one),
            "dask, 2 workers": at_workers(shards, two),
            "memory, 1 thread": MemoryCorpus(counts, None, 1),
            "memory, 2 threads": MemoryCorpus(counts, None, 2),
        }
        runs = {name: begun(source, K) for name, source in sources.items()}
        rounds = [{name: seconds_of(run.advance) for name, run in runs.items()} for _ in range(arguments.sweeps)]
        sources["dask, 1 worker"].forget()
    found = {name: float(np.median([seconds[name] for seconds in rounds])) for name in runs}
    for name, seconds in found.items():
        each = " ".join(f"{seconds[name]:.2f}" for seconds in rounds)
        print(f"{name:18} {seconds:6.2f} s a sweep ({each}), {1e9 * seconds / counts.values.size:5.1f} ns a non-zero")
    one_worker, two_workers, one_thread, two_threads = found.values()
    held(arguments, "two workers over one", f"{one_worker / two_workers:.2f}", "at least 1.4")
    figure("two threads over one in memory: what this machine gives", f"{one_thread / two_threads:.2f}")
    held(
        arguments,
        "two workers against memory with two threads",
        f"{two_workers / two_threads - 1:+.0%}",
        "at most +40%",
    )


def at_workers(shards: DiskCorpus, client: Any) -> DaskSource:
    return DaskSource(shards, FLOAT32, 1, client=client).working_in("benchmark")


def plan(arguments: argparse.Namespace) -> None:
    """The rates of this machine; what they predict for one and two workers of it, and for larger clusters."""
    shards = shards_of(arguments, arguments.documents)
    rates = cluster_plan.measured_rates(shards, arguments.topics, SEED)
    print(rates.told())
    entries = shards.manifest.shards
    for workers in (1, 2):
        with connected(workers) as client:
            found = seconds_a_sweep(at_workers(shards, client), arguments.topics, arguments.sweeps)
        size = cluster_plan.Size(arguments.topics, arguments.words, arguments.documents, [e.nonzeros for e in entries])
        predicted = cluster_plan.iteration(size, workers, rates, rates.transfer).seconds
        figure(f"{workers} worker(s) here, predicted over measured", f"{predicted / found:.2f}")
    cluster_plan.tell_plan(arguments, rates)


PARTS = {"disk": disk, "online": online, "dask": dask, "plan": plan, "_disk": measure_one, "_memory": measure_one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["corpus", *PARTS])
    parser.add_argument("--documents", type=int, default=40_000)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--memory-documents", type=int, default=1_000_000, help="most for the fit in memory")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "polyseme-scale")
    group = parser.add_argument_group("plan")
    group.add_argument("--plan-documents", type=int, default=10**9)
    group.add_argument("--nonzeros-a-document", type=int, default=85)
    group.add_argument("--shard-nonzeros", type=int, default=32_000_000)
    group.add_argument("--network-rate", type=float, default=1e9, help="bytes a second, at most")
    group.add_argument("--spread", type=float, default=0.1, help="of the workers' speeds (sigma of their logs)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if not arguments.part.startswith("_"):
        describe_machine(*(("dask", "distributed") if arguments.part in ("dask", "plan") else ()))
    if arguments.part == "corpus":
        shards_of(arguments, arguments.documents)
    else:
        PARTS[arguments.part](arguments)


if __name__ == "__main__":
    main()
