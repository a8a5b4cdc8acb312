"""Latency of a query on 20 Newsgroups with one thread, compared with gensim's LsiModel and MatrixSimilarity.

    python benchmarks/search.py

Queries of both alternate in one process, and medians are compared; only ratios within a run are meaningful. A query is
a text of a few words from one document, and its time includes everything from the text to the ten best documents. The
models of plsi* have their normal sizes, but a fixed beta and number of iterations (--beta, --iterations), because the
time of a query hardly depends on their quality. --index stores the index with its models for later calls.

The index of gensim is in memory (MatrixSimilarity, which its documentation calls the fast one), float32, with
num_best=10, so that it sorts no more than necessary. LsiModel has 128 topics, as in polyseme. BLAS has one thread.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from common import DATA, can_import, describe_machine, load_counts, report_figure, report_ratio, require_file, time_call
from polyseme import PLSA
from polyseme.retrieval import SearchIndex
from polyseme.retrieval.scores import METHODS, SIZES, TopicSpace
from polyseme.solvers import Tempered

COUNTS = DATA / "counts" / "newsgroups_fasttopics.npz"
GENSIM = "gensim LsiModel + MatrixSimilarity, 128"
VOCABULARY = DATA / "counts" / "newsgroups_fasttopics.vocab.txt"


def make_queries(counts, vocabulary, n: int, length: int) -> list[str]:
    """Return queries of `length` words from one document each."""
    rng = np.random.default_rng(0)
    found = []
    for row in rng.choice(np.flatnonzero(np.diff(counts.indptr) > length), n, replace=False):
        document = counts[[row]]
        words = rng.choice(document.indices, length, replace=False, p=document.data / document.data.sum())
        found.append(" ".join(vocabulary[word] for word in words))
    return found


def gensim_search(counts, vocabulary, n_topics: int):
    """Return a function from a text to the ten best documents."""
    from gensim.corpora import Dictionary
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LsiModel
    from gensim.similarities import MatrixSimilarity

    names = dict(enumerate(vocabulary))
    corpus = Sparse2Corpus(counts.astype(np.float64), documents_columns=False)
    dictionary = Dictionary()
    dictionary.token2id = {word: column for column, word in names.items()}
    model = LsiModel(corpus, num_topics=n_topics, id2word=names)
    similar = MatrixSimilarity(model[corpus], num_best=10, num_features=n_topics)
    return lambda text: similar[model[dictionary.doc2bow(text.split())]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--length", type=int, default=6, help="words of a query")
    parser.add_argument("--beta", type=float, default=0.8)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--index", type=Path, help="file of the index; written if it does not exist")
    parser.add_argument("--no-gensim", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    describe_machine("gensim")
    counts, vocabulary = load_counts(COUNTS), require_file(VOCABULARY).read_text(encoding="utf-8").split()
    print(f"20 Newsgroups: {counts.shape[0]} documents, {counts.shape[1]} words, {counts.nnz} non-zeros")
    started = time.perf_counter()
    SearchIndex(counts, vocabulary)
    print(f"building the index without models: {time.perf_counter() - started:.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        path = options.index or Path(folder) / "news.index"
        if not path.is_file():
            build_index(counts, vocabulary, options.beta, options.iterations).save(path)
        started = time.perf_counter()
        index = SearchIndex.load(path)
        print(f"loading {path.stat().st_size / 2**20:.0f} MB, mapped: {time.perf_counter() - started:.2f} s")
        with threadpool_limits(1):
            compare(
                index, counts, vocabulary, make_queries(counts, vocabulary, options.queries, options.length), options
            )


def build_index(counts, vocabulary, beta: float, iterations: int) -> SearchIndex:
    """Return an index with all methods."""
    started = time.perf_counter()
    models = [
        PLSA(size, solver=Tempered(beta), max_iter=iterations, random_state=0, dtype="float32").fit(counts)
        for size in SIZES
    ]
    print(f"models of {', '.join(map(str, SIZES))} topics, {iterations} steps: {time.perf_counter() - started:.1f} s")
    index = SearchIndex(counts, vocabulary)
    fitted, doc_topic = [model.fitted_ for model in models], [model.doc_topic_ for model in models]
    index.scoring.average = TopicSpace.of(fitted, doc_topic, index.counts)
    index.set_model(models[-1])
    print(f"singular vectors (128): {time_call(lambda: index.fit_lsi(128)):.1f} s")
    return index


def compare(index: SearchIndex, counts, vocabulary, queries: list[str], options) -> None:
    searches = {method: (lambda text, method=method: index.search(text, method=method)) for method in METHODS}
    searches["plsi* with the scores of words"] = lambda text: index.search(text).to_dict()
    searches["folding in, all models of plsi*"] = fold_only(index, queries)
    if not options.no_gensim and can_import("gensim"):
        searches[GENSIM] = gensim_search(counts, vocabulary, 128)
    seconds: dict[str, list[float]] = {name: [] for name in searches}
    for search in searches.values():
        search(queries[0])
    for text in queries:
        for name, search in searches.items():
            seconds[name].append(time_call(lambda search=search, text=text: search(text)))
    batch = time_call(lambda: index.search_many(queries))
    print(f"\n{len(queries)} queries of {options.length} words, 10 best, one thread: median (90th percentile)")
    for name, values in seconds.items():
        middle, high = np.percentile(values, [50, 90]) * 1e3
        print(f"  {name:42} {middle:7.2f} ms ({high:.2f})")
    if GENSIM in seconds:
        theirs = float(np.median(seconds[GENSIM]))
        for name in ("lsi", "plsi-q", "plsi*"):
            report_ratio(f"a query by {name}, one thread", "gensim LsiModel", float(np.median(seconds[name])), theirs)
    report_figure("a query by plsi*, all in one batch, one thread", f"{batch / len(queries) * 1e3:.2f} ms")


def fold_only(index: SearchIndex, queries: list[str]):
    rows = {text: index.query_counts(text) for text in queries}
    return lambda text: index.scoring.average.fold(rows[text])


if __name__ == "__main__":
    main()
