"""From texts to counts: speed of Vectorizer and of scikit-learn's CountVectorizer on 20 Newsgroups.

    python benchmarks/text.py [--rounds 3] [--more]

--more adds n-grams, phrases, many small documents, one long document, and the memory that a stream needs.

CountVectorizer has its defaults, for which both give the same counts (checked first). It uses one thread; Vectorizer is
measured with one and with two. For stems, CountVectorizer uses an analyzer, as its documentation recommends, which
calls PyStemmer for all words of a document at once, with its cache. HashingVectorizer is not compared, because it has
no vocabulary.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import Stemmer
from sklearn.feature_extraction.text import CountVectorizer

from common import (
    NEWS_TEXTS,
    THREADS,
    anonymous_memory,
    describe_machine,
    load_lines,
    report_figure,
    report_ratio,
    time_call,
)
from polyseme.text import Vectorizer

Runs = dict[str, Callable[[], Any]]
PEER = "scikit-learn CountVectorizer"


def stemmed_analyzer() -> Callable[[str], list[str]]:
    """Return an analyzer that stems the words of CountVectorizer with PyStemmer, which caches ten thousand words."""
    words, stemmer = CountVectorizer().build_analyzer(), Stemmer.Stemmer("english")
    return lambda text: stemmer.stemWords(words(text))


def measure(what: str, runs: Runs, megabytes: float, rounds: int, *, baseline: str = "") -> None:
    """Run all of them alternately and print medians, and ratios to the speed of the peer (`baseline`)."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(time_call(run))
    print(f"\n{what}")
    speeds = {name: megabytes / median(seconds) for name, seconds in times.items()}
    for name, speed in speeds.items():
        print(f"  {name:<60} {megabytes / speed:7.3f} s  {speed:7.1f} MB/s")
    for name, speed in speeds.items():
        if baseline and name != baseline:
            threads = name.rpartition("n_jobs=")[2].rstrip(")") if "n_jobs=" in name else str(THREADS)
            report_ratio(f"{what}, {threads} thread{'s' * (threads != '1')}", PEER, speed, speeds[baseline], "MB/s")


def compare_defaults(texts: list[str], megabytes: float, rounds: int) -> None:
    theirs, ours = CountVectorizer(), Vectorizer()
    expected, counts = theirs.fit_transform(texts), ours.fit_transform(texts)  # also fills the tables of characters
    equal = ours.vocabulary_ == theirs.vocabulary_ and (counts != expected).nnz == 0
    print(f"counts {counts.shape[0]} x {counts.shape[1]}, {counts.nnz} non-zeros")
    report_figure("counts equal to CountVectorizer's", "yes" if equal else "no", "yes")

    def fit(**parameters: Any) -> Callable[[], Any]:
        return lambda: Vectorizer(**parameters).fit_transform(texts)

    plain: Runs = {"CountVectorizer()": lambda: CountVectorizer().fit_transform(texts)}
    plain |= {f"Vectorizer(n_jobs={n})": fit(n_jobs=n) for n in (1, 2)}
    measure("counting words", plain, megabytes, rounds, baseline="CountVectorizer()")

    analyzer = stemmed_analyzer()
    peer = "CountVectorizer(analyzer=words stemmed by PyStemmer)"
    stemmed: Runs = {peer: lambda: CountVectorizer(analyzer=analyzer).fit_transform(texts)}
    stemmed |= {
        f"Vectorizer(language='english', stop_words=[], n_jobs={n})": fit(language="english", stop_words=[], n_jobs=n)
        for n in (1, 2)
    }
    measure("counting stems", stemmed, megabytes, rounds, baseline=peer)


def compare_settings(texts: list[str], megabytes: float) -> None:
    def pair(**parameters: Any) -> Runs:
        return {
            "CountVectorizer": lambda: CountVectorizer(**parameters).fit_transform(texts),
            "Vectorizer": lambda: Vectorizer(**parameters, n_jobs=THREADS).fit_transform(texts),
        }

    for parameters in (
        {"ngram_range": (1, 2)},
        {"analyzer": "char_wb", "ngram_range": (3, 3)},
        {"token_pattern": r"\S+?\b"},
    ):
        measure(_arguments(parameters), pair(**parameters), megabytes, 1, baseline="CountVectorizer")
    phrases = Vectorizer(language="auto", phrases=True, n_jobs=THREADS)
    measure("phrases", {"Vectorizer": lambda: phrases.fit_transform(texts)}, megabytes, 1)

    tiny = [line for text in texts for line in text.splitlines()][:500_000]
    long = ["\n".join(texts * 4)[:100_000_000]]
    for name, documents in (("half a million lines", tiny), ("one document of 100 MB", long)):
        size = sum(map(len, documents)) / 1e6
        runs = {
            "CountVectorizer": lambda documents=documents: CountVectorizer().fit_transform(documents),
            "Vectorizer": lambda documents=documents: Vectorizer(n_jobs=THREADS).fit_transform(documents),
        }
        measure(name, runs, size, 1, baseline="CountVectorizer")
    stream_memory(texts)


def stream_memory(texts: list[str]) -> None:
    """Print the memory beyond the counts for the corpus and for a stream of ten times its size."""

    def stream(times: int) -> Iterator[str]:
        for _ in range(times):
            for text in texts:
                yield text + " "  # a new string without other references

    print("\npeak memory of a stream, beyond the counts")
    for times in (1, 10):
        for name in ("fit_transform", "fit"):
            peak, result_size = peak_beyond_result(
                lambda name=name, times=times: getattr(Vectorizer(), name)(stream(times))
            )
            print(
                f"  {name}, {times} x the corpus: {peak / 2**20:.0f} MB beyond {result_size / 2**20:.0f} MB of counts"
            )


def peak_beyond_result(call: Callable[[], Any]) -> tuple[int, int]:
    """Return the peak anonymous memory of a call beyond the arrays that it returns, and the size of these."""
    before, most, done = anonymous_memory(), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.005):
            most = max(most, anonymous_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    counts = call()
    done.set()
    watcher.join()
    result_size = sum(getattr(counts, part).nbytes for part in ("data", "indices", "indptr") if hasattr(counts, part))
    return most - before - result_size, result_size


def _arguments(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--more", action="store_true")
    arguments = parser.parse_args()
    describe_machine("PyStemmer")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    texts = [row["text"] for row in load_lines(NEWS_TEXTS)]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"20 Newsgroups: {len(texts)} documents, {megabytes:.1f} MB; {cores} cores available")
    compare_defaults(texts, megabytes, arguments.rounds)
    if arguments.more:
        compare_settings(texts, megabytes)


if __name__ == "__main__":
    main()
