"""Latency of a query and time to build an index, with one thread, compared with bm25s and gensim's LSI.

    python benchmarks/search.py                       20 Newsgroups
    python benchmarks/search.py --documents 200000    documents of shuffled sentences of 20 Newsgroups

All searches alternate in one process, and medians are compared; only ratios within a run are meaningful. A query has
six words of one document. Term methods start from the words (bm25s: tokens) and end with the numbers and scores of the
ten best documents. LSI starts from the text and ends with the ten best, as gensim does: MatrixSimilarity in memory,
float32, num_best=10. `search` is the whole call, from a text to hits with ids and titles.

More than 18,846 documents are made from the sentences of all texts, repeated and shuffled; each document has as many
tokens as one of 20 Newsgroups. Both indexes are built from the same token ids. The topics of the default method are
random, because its time does not depend on their quality. BLAS and bm25s have one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from common import NEWS_TEXTS, can_import, describe_machine, load_lines, report_figure, report_ratio
from polyseme.core.fitted import FittedTopics
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.retrieval import SearchIndex
from polyseme.retrieval.scores import METHODS
from polyseme.text import Vectorizer

TOPICS = 50
LSI = 128
SENTENCE = 12
"""Tokens that are moved together."""


def make_tokens(n_docs: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the word of every token, the start of each document, and the words."""
    texts = [row["text"] for row in load_lines(NEWS_TEXTS)]
    vectorizer = Vectorizer(language="en", min_df=2, max_df=0.5)
    counts = vectorizer.fit_transform(texts)
    tokens = np.repeat(counts.indices, counts.data.astype(np.int64)).astype(np.int32)
    lengths = np.asarray(counts.sum(axis=1)).ravel().astype(np.int64)
    words = list(vectorizer.get_feature_names_out())
    if n_docs > len(texts):
        rng = np.random.default_rng(0)
        lengths = rng.choice(lengths, n_docs)
        whole = len(tokens) // SENTENCE * SENTENCE
        sentences = tokens[:whole].reshape(-1, SENTENCE)
        chosen = rng.integers(len(sentences), size=int(lengths.sum()) // SENTENCE + 1)
        tokens = sentences[chosen].ravel()[: int(lengths.sum())]
    return tokens, np.append(0, np.cumsum(lengths)), words


def with_random_topics(index: SearchIndex, rng: np.random.Generator) -> None:
    """Set a model with random topics."""
    n_docs, n_words = index.scoring.terms.postings.n_docs, len(index.vocabulary)
    fitted = FittedTopics(
        topic_word=rng.dirichlet(np.full(n_words, 0.1), size=TOPICS).astype(np.float32),
        topic_weights=np.full(TOPICS, 1 / TOPICS), unigram=np.full(n_words, 1 / n_words),
        active=np.ones(TOPICS, dtype=bool), n_tokens=1.0, n_documents=n_docs, inference=MaximumLikelihood(),
    )  # fmt: skip
    index.set_model(fitted, rng.dirichlet(np.full(TOPICS, 0.1), size=n_docs).astype(np.float32))


def seconds_of(call) -> tuple[float, object]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def bm25s_index(tokens, starts, words, backend: str):
    import bm25s

    documents = [tokens[a:b].tolist() for a, b in pairwise(starts)]
    ids = {word: number for number, word in enumerate(words)}
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend=backend)
    seconds, _ = seconds_of(lambda: retriever.index((documents, ids), show_progress=False))
    return seconds, lambda query: retriever.retrieve([query.split()], k=10, show_progress=False, n_threads=0)


def gensim_search(counts, words):
    """Return a function from a text to the ten best documents by gensim's LSI."""
    from gensim.corpora import Dictionary
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LsiModel
    from gensim.similarities import MatrixSimilarity

    corpus = Sparse2Corpus(counts.astype(np.float64), documents_columns=False)
    dictionary = Dictionary()
    dictionary.token2id = {word: column for column, word in enumerate(words)}
    model = LsiModel(corpus, num_topics=LSI, id2word=dict(enumerate(words)), onepass=True)
    similar = MatrixSimilarity(model[corpus], num_best=10, num_features=LSI)
    return lambda text: similar[model[dictionary.doc2bow(text.split())]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=18_846)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--length", type=int, default=6, help="words of a query")
    parser.add_argument("--no-lsi", action="store_true", help="leave out LSI, whose model takes the longest time")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    describe_machine("bm25s", "numba", "gensim")
    with threadpool_limits(1):
        compare(options)


def compare(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(1)
    tokens, starts, words = make_tokens(options.documents)
    name = f"{options.documents:,} documents"
    raw = sp.csr_array((np.ones(len(tokens), np.float32), tokens, starts), shape=(len(starts) - 1, len(words)))
    build, index = min((seconds_of(lambda: SearchIndex(raw, words)) for _ in range(3)), key=lambda found: found[0])
    print(f"{name}, {len(words)} words, {len(tokens)} tokens")
    peers = {}
    if can_import("bm25s"):
        for backend in ("numba", "numpy"):
            if backend == "numba" and not can_import("numba"):
                continue
            seconds, peers[backend] = bm25s_index(tokens, starts, words, backend)
            report_ratio(f"building an index of {name}", f"bm25s ({backend})", build, seconds)
    with_random_topics(index, rng)
    counts, queries = index.counts, []
    for row in rng.choice(np.flatnonzero(np.diff(counts.indptr) > options.length), options.queries, replace=False):
        chosen = rng.choice(counts.indices[slice(*counts.indptr[row : row + 2])], options.length, replace=False)
        queries.append(" ".join(words[word] for word in chosen))
    rows = {text: index._query_rows(text) for text in queries}
    searches = {
        "bm25": lambda text: next(index.scoring.rank(rows[text], METHODS["bm25"], 10)),
        "bm25+topics": lambda text: next(index.scoring.rank(rows[text], METHODS["bm25+topics"], 10)),
        "search, bm25+topics": index.search,
        **{f"bm25s ({backend})": search for backend, search in peers.items()},
    }
    if not options.no_lsi:
        index.fit_lsi(LSI)
        searches["lsi"] = lambda text: next(index.scoring.rank(index._query_rows(text), METHODS["lsi"], 10))
        searches["search, lsi"] = lambda text: index.search(text, method="lsi")
        if can_import("gensim"):
            searches["gensim LSI"] = gensim_search(counts, words)
    seconds: dict[str, list[float]] = {each: [] for each in searches}
    for text in queries[:3]:
        for search in searches.values():
            search(text)
    for text in queries:
        for each, search in searches.items():
            seconds[each].append(seconds_of(lambda search=search, text=text: search(text))[0])
    print(f"\n{len(queries)} queries of {options.length} words, 10 best, one thread: median (90th percentile)")
    for each, values in seconds.items():
        middle, high = np.percentile(values, [50, 90]) * 1e3
        print(f"  {each:24} {middle:8.3f} ms ({high:.3f})")
    medians = {each: float(np.median(values)) for each, values in seconds.items()}
    for ours, theirs, least in (
        ("bm25", "bm25s (numba)", "at least 1.5"), ("bm25", "bm25s (numpy)", ""),
        ("bm25+topics", "bm25s (numba)", "at least 1"), ("lsi", "gensim LSI", "at least 1.5"),
    ):  # fmt: skip
        if ours in medians and theirs in medians:
            report_ratio(f"a query by {ours}, {name}", theirs, medians[ours], medians[theirs])
            if least:
                report_figure(f"speed of {ours} over {theirs}, {name}", f"{medians[theirs] / medians[ours]:.2f}", least)


if __name__ == "__main__":
    main()
