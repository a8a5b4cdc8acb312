"""Corpora larger than memory: disk against memory, one pass online against batch sweeps and peers, Dask workers.

    python benchmarks/scale.py corpus            write the shards (once; the other parts use them)
    python benchmarks/scale.py disk              speed per non-zero against memory, anonymous memory, growth
    python benchmarks/scale.py online            one pass against 20 sweeps; --peers adds BigARTM and gensim
    python benchmarks/scale.py dask              one worker, two workers, memory with two threads
    python benchmarks/scale.py plan              a simulation of larger clusters from the rates measured here

Sizes are a fiftieth of the full ones by default; the full ones: --documents 2000000 (dask: 1000000; online: 100000).
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

from common import describe_machine, installed
from polyseme import PLSA
from polyseme.initialise import named_start
from polyseme.model import Model
from polyseme.sampling import sample_chunks
from polyseme.scale import Shards, open_shards, write_shards
from polyseme.solvers import EM, Online
from polyseme.solvers.online import START_VARIANCE
from polyseme.sources.memory import MemorySource, counts_of

warnings.filterwarnings("ignore")

FLOAT32 = np.dtype(np.float32)
HELD_OUT = 1000
SEED = 0


def chunks(arguments: argparse.Namespace, documents: int) -> Iterator[sp.csr_array]:
    """The corpus, a thousand documents at a time."""
    zipf = 1 / (np.arange(arguments.words) + 2.7)
    prior = 100 * zipf / zipf.sum()
    for chunk in sample_chunks(documents, arguments.words, arguments.topics, topic_word_prior=prior, seed=SEED):
        yield chunk.counts.astype(np.float32)


def shards_of(arguments: argparse.Namespace, documents: int) -> Shards:
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


def _first(shards: Shards, documents: int) -> Iterator[sp.csr_array]:
    for matrix in shards:
        yield matrix[:documents]
        documents -= min(documents, matrix.shape[0])
        if not documents:
            return


def matrix_of(arguments: argparse.Namespace, documents: int) -> sp.csr_array:
    return sp.csr_array(sp.vstack(list(shards_of(arguments, documents)), format="csr"))


def seconds_a_sweep(source: Any, K: int, sweeps: int) -> float:
    """Wall clock of one iteration of EM, after a first one."""
    model = Model(K)
    theta, phi = named_start("random", source, model, np.random.default_rng(SEED))
    run = EM().begin(model, source, theta, source.at_hand(phi) if hasattr(source, "at_hand") else phi)
    started = time.perf_counter()
    for _ in range(sweeps):
        run.advance()
    return (time.perf_counter() - started) / sweeps


class AnonymousMemory(threading.Thread):
    """The most RssAnon of this process, looked at fifty times a second (Linux)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0

    def run(self) -> None:
        while True:
            lines = Path("/proc/self/status").read_text().splitlines()
            self.most = max(self.most, 1024 * int(next(x.split()[1] for x in lines if x.startswith("RssAnon"))))
            time.sleep(0.02)


def measure_one(arguments: argparse.Namespace) -> None:
    """In a process of its own: one source, its seconds a sweep and its anonymous memory, as JSON."""
    watch = AnonymousMemory()
    watch.start()
    shards = shards_of(arguments, arguments.documents)
    nonzeros = sum(entry.nonzeros for entry in shards.manifest.shards)
    if arguments.part == "_memory":
        source: Any = MemorySource(
            counts_of(matrix_of(arguments, arguments.documents), FLOAT32), None, arguments.threads
        )
    else:
        source = shards.source(FLOAT32, arguments.threads).working_in("benchmark")
    seconds = seconds_a_sweep(source, arguments.topics, arguments.sweeps)
    if arguments.part == "_disk":
        source.forget()
    print(json.dumps({"seconds": seconds, "nonzeros": nonzeros, "anonymous": watch.most}))


def measured(arguments: argparse.Namespace, part: str, documents: int) -> dict[str, float]:
    options = {
        "documents": documents, "words": arguments.words, "topics": arguments.topics, "folder": arguments.folder,
        "threads": arguments.threads, "sweeps": arguments.sweeps,
    }  # fmt: skip
    words = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    done = subprocess.run([sys.executable, __file__, part, *words], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{part.strip('_'):8} {documents:>10,} documents {found['nonzeros']:>13,} non-zeros: "
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
    print(f"disk at {speeds[1] / speeds[0]:.0%} of the speed of memory per non-zero (at least 60%)")
    print(f"exponent of the time in documents, {sizes[0]:,} to {sizes[-1]:,}: {growth:.2f} (at most 1.1)")


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
    source, model = MemorySource(counts_of(train, FLOAT32), None, arguments.threads), Model(K)
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
    run = Online().begin(model, source, theta, phi)
    run.advance()
    ours = shown("one pass online", time.perf_counter() - started, run.phi[:, :K].T)
    print(
        f"online: perplexity {ours[1] / batch[1]:.3f} of the batch's (at most 1.03), "
        f"time {ours[0] / batch[0]:.2f} of it (below 0.33)"
    )
    if arguments.peers:
        for name, by_peer, bar in (("BigARTM", by_bigartm, 3), ("gensim LdaMulticore", by_gensim, 20)):
            try:
                found = by_peer(train, K)
            except ModuleNotFoundError as error:
                print(f"  {name} is left out: {error.name} is not installed")
                continue
            theirs = shown(f"{name} {installed(name.split()[0].lower())}", *found)
            print(
                f"  documents per second, ours over {name}'s: {theirs[0] / ours[0]:.1f} (at least {bar}); "
                f"perplexity, ours over theirs: {ours[1] / theirs[1]:.3f} (at most 1)"
            )


def by_bigartm(X: sp.csr_array, K: int) -> tuple[float, np.ndarray]:
    """Seconds of one online pass, 2 processors, ten passes of each document; its batches are made before."""
    import artm

    folder = Path(tempfile.mkdtemp())
    try:
        logging = artm.messages.ConfigureLoggingArgs()
        logging.log_dir = str(folder)
        artm.wrapper.LibArtm(logging_config=logging)
        coo = X.tocoo()
        rows = np.c_[coo.row + 1, coo.col + 1, coo.data].astype(int)
        head = f"{X.shape[0]}\n{X.shape[1]}\n{X.nnz}"
        np.savetxt(folder / "docword.x.txt", rows, "%d", header=head, comments="")
        words = [f"w{word}" for word in range(X.shape[1])]
        (folder / "vocab.x.txt").write_text("\n".join(words) + "\n")
        batches = artm.BatchVectorizer(
            data_path=str(folder), data_format="bow_uci", collection_name="x", target_folder=str(folder)
        )
        model = artm.ARTM(
            num_topics=K, dictionary=batches.dictionary, num_processors=2, num_document_passes=10, seed=SEED,
            cache_theta=False,
        )  # fmt: skip
        started = time.perf_counter()
        model.fit_online(batches, update_every=2)
        seconds = time.perf_counter() - started
        phi = model.phi_.reindex(words).fillna(0).to_numpy().T
    finally:
        shutil.rmtree(folder)
    return seconds, phi / np.maximum(phi.sum(axis=1, keepdims=True), 1e-30)


def by_gensim(X: sp.csr_array, K: int) -> tuple[float, np.ndarray]:
    """Seconds of one pass with 2 workers and gensim's other defaults."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaMulticore

    corpus = list(Sparse2Corpus(sp.csr_matrix(X), documents_columns=False))
    words = {word: str(word) for word in range(X.shape[1])}
    started = time.perf_counter()
    model = LdaMulticore(corpus, num_topics=K, id2word=words, workers=2, passes=1, random_state=SEED)
    return time.perf_counter() - started, model.get_topics()


def dask(arguments: argparse.Namespace) -> None:
    import distributed

    from polyseme.sources.dask import ClusterShards

    shards = shards_of(arguments, arguments.documents)
    found = {}
    for workers in (1, 2):
        cluster = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        )
        with cluster, distributed.Client(cluster) as client:
            at_workers = ClusterShards(shards.folder, client, checkpoint_every=5)
            with at_workers.only_writer():
                source = at_workers.source(FLOAT32, 1).working_in("benchmark")
                found[workers] = seconds_a_sweep(source, arguments.topics, arguments.sweeps)
                source.forget()
        print(f"dask, {workers} worker(s) of one thread: {found[workers]:.2f} s a sweep", flush=True)
    memory = measured(arguments, "_memory", arguments.documents)["seconds"]
    print(f"two workers over one: {found[1] / found[2]:.2f} (at least 1.4)")
    print(f"two workers against memory with 2 threads: {found[2] / memory - 1:+.0%} (at most +40%)")


def plan(arguments: argparse.Namespace) -> None:
    """Seconds an iteration for 10^9 documents: visits as long as measured, sums and topics over the network."""
    K, W, documents = arguments.topics, arguments.words, arguments.plan_documents
    nonzeros = documents * arguments.nonzeros_a_document
    width = -(-K // 16) * 16
    word_bytes, topic_bytes = 8 * W * width, 4 * W * width
    shard_nonzeros = arguments.shard_nonzeros
    shards = -(-nonzeros // shard_nonzeros)
    shard_documents = shard_nonzeros / arguments.nonzeros_a_document
    visit = shard_nonzeros * arguments.nanoseconds * 1e-9
    print(
        f"{documents:.0e} documents: {16 * nonzeros / 1e12:.1f} TB of shards, {4 * width * documents / 1e12:.2f} TB of "
        f"theta, {shards:,} shards of {shard_documents:,.0f} documents; sums of a shard {word_bytes / 1e6:.0f} MB"
    )
    rng = np.random.default_rng(SEED)
    for workers in (16, 64, 256, 1024):
        ends = np.zeros(workers)
        each = rng.lognormal(np.log(visit), arguments.spread, shards)
        for number in range(shards):  # neighbours at one worker, in their order
            ends[number * workers // shards] += each[number]
        merge = 3 * word_bytes / arguments.memory_rate
        ends += merge * shards / workers
        levels = int(np.ceil(np.log(workers) / np.log(4)))
        tree = levels * 3 * (word_bytes / arguments.network_rate + merge)
        spread = int(np.ceil(np.log2(workers))) * topic_bytes / arguments.network_rate
        total = ends.max() + tree + spread
        memory = 2 * 4 * width * documents / workers + 16 * shard_nonzeros + 5 * word_bytes + topic_bytes
        print(
            f"{workers:5} workers: {total:8.1f} s an iteration (visits {ends.max():.1f}, tree of sums {tree:.1f}, "
            f"topics out {spread:.1f}), {memory / 1e9:.1f} GB a worker, efficiency {ends.mean() / total:.0%}"
        )


PARTS = {"disk": disk, "online": online, "dask": dask, "plan": plan, "_disk": measure_one, "_memory": measure_one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["corpus", *PARTS])
    parser.add_argument("--documents", type=int, default=40_000)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--memory-documents", type=int, default=1_000_000, help="most for the fit in memory")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "polyseme-scale")
    group = parser.add_argument_group("plan")
    group.add_argument("--plan-documents", type=int, default=10**9)
    group.add_argument("--nonzeros-a-document", type=int, default=85)
    group.add_argument("--shard-nonzeros", type=int, default=32_000_000)
    group.add_argument("--nanoseconds", type=float, default=100.0, help="of one thread for a non-zero, as measured")
    group.add_argument("--spread", type=float, default=0.1, help="of the workers' speeds (sigma of their logs)")
    group.add_argument("--network-rate", type=float, default=1e9, help="bytes a second")
    group.add_argument("--memory-rate", type=float, default=8e9, help="bytes a second of one thread")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if not arguments.part.startswith("_"):
        describe_machine(*(("dask", "distributed") if arguments.part == "dask" else ()))
    if arguments.part == "corpus":
        shards_of(arguments, arguments.documents)
    else:
        PARTS[arguments.part](arguments)


if __name__ == "__main__":
    main()
