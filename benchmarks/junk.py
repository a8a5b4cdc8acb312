"""Near-duplicates and junk topics of real corpora, and the time to find them.

    python benchmarks/junk.py [--corpora news headers docstrings italian ap] [--topics 20 40] [--found N]

news: 20 Newsgroups in POLYSEME_DATA, with the similarity of near-duplicates and the number of pairs in which one text
is a reply that quotes the other; headers: 2,500 of these texts, half of them with the lines of a mail header;
docstrings: 5,000 of the installed packages; italian: a dump of Wikipedia; ap: counts
only, for which the number of documents of a topic is the only measure. --found also prints how well each topic is
found again in fits to N bootstrap samples.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import polyseme
from polyseme.datasets import docstrings
from polyseme.metrics import bootstrap_stability
from polyseme.runs.junk import MAX_FEW, effective_documents, junk_topics, token_shares
from polyseme.text import Vectorizer
from polyseme.text.duplicates import NearDuplicates

DATA = Path(os.environ.get("POLYSEME_DATA", "../shared/data"))
QUOTE = re.compile(r"\s*((?:[>|:#}]\s?)*)")
N_HEADERS, N_DOCSTRINGS = 2500, 5000


def news() -> list[str]:
    with gzip.open(DATA / "text/news20.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def with_headers() -> list[str]:
    """Return texts, half of which begin with a header whose values are drawn at random."""
    rng, sites = np.random.default_rng(0), ["cs.uiuc", "andrew.cmu", "athena.mit", "cc.purdue", "math.rutgers"]
    texts = news()
    for row in (rows := rng.permutation(len(texts))[:N_HEADERS])[::2]:
        sender, host = (f"{rng.choice(sites)}.edu" for _ in range(2))
        texts[row] = (
            f"From: user@{sender}\nOrganization: {rng.choice(sites)} University\nLines: {rng.integers(90)}\n"
            f"NNTP-Posting-Host: {host}\nDistribution: world\nReply-To: user@{sender}\n\n{texts[row]}"
        )
    return [texts[row] for row in rows]


def some_docstrings() -> list[str]:
    texts = list(docstrings().texts)
    return [texts[row] for row in np.random.default_rng(0).permutation(len(texts))[:N_DOCSTRINGS]]


SOURCES: dict[str, Any] = {
    "news": news, "headers": with_headers, "docstrings": some_docstrings,
    "italian": lambda: str(DATA / "wiki/itwiki_small.xml.bz2"),
}  # fmt: skip


def shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[^\W_]+", text.lower())
    return {tuple(words[i : i + 3]) for i in range(len(words) - 2)} or {tuple(words)}


def quotes(text: str) -> float:
    """Return the mean number of quotation marks before a line."""
    lines = [line for line in text.splitlines() if line.strip()]
    marks = (QUOTE.match(line) for line in lines)
    return sum(len(found[1].replace(" ", "")) for found in marks if found) / max(1, len(lines))


def compare_duplicates(texts: list[str]) -> None:
    """Print the similarity of near-duplicates, and the time to find them beside the time to count words."""
    started = time.process_time()
    with NearDuplicates(n_jobs=1) as finder:
        found = finder.add(texts)
        compared = finder.n_compared
    seconds = time.process_time() - started
    started = time.process_time()
    Vectorizer(language="english", min_df=2, max_df=0.5, n_jobs=1).fit_transform(texts)
    counting = time.process_time() - started
    print(f"  {compared:,} pairs compared; {seconds:.2f} s, and {counting:.2f} s for counting on one thread")
    table: dict[float, list[int]] = {}
    for row, first in enumerate(found):
        if first is not None:
            a, b = shingles(texts[row]), shingles(texts[first])
            bin_start = min(0.95, int(20 * len(a & b) / len(a | b)) / 20)
            table.setdefault(bin_start, [0, 0])[abs(quotes(texts[row]) - quotes(texts[first])) > 0.5] += 1
    for bin_start in sorted(table):
        copies, replies = table[bin_start]
        print(f"  similarity from {bin_start:.2f}: {copies} copies and revisions, {replies} replies that quote")


def show_run(name: str, source: Any, n_topics: int, n_samples: int) -> None:
    run = polyseme.fit(source, n_topics, random_state=0, levels="none")
    started = time.process_time()
    junk_topics(run.view)
    seconds = time.process_time() - started
    shares = token_shares(run.view, run.view.corpus.token_sample)
    documents = effective_documents(run.doc_topic, run.model._training.doc_weights)
    found, n_documents = run.info.duplicates.found, run.info.documents
    print(f"{name}, {n_topics} topics: {found} of {n_documents:,} documents are near-duplicates")
    words, found_again = run.topic_words(8), [""] * n_topics
    if n_samples:
        stability = bootstrap_stability(run.model, run.counts, n_samples=n_samples).topics
        found_again = [f" found again {value:.2f} (rank {(stability > value).sum() + 1})" for value in stability]
    for topic in range(n_topics):
        mark = f"  <- {run.junk[topic].kind}" if topic in run.junk else ""
        print(
            f"  {topic:>3} place {shares.distance[topic]:.2f} (chance {shares.chance[topic]:.2f}) repeated "
            f"{shares.repeated[topic]:.2f} documents {documents[topic]:7.1f}{found_again[topic]}  "
            f"{' '.join(words[topic])}{mark}"
        )
    print(f"  {len(run.junk)} marked; looking for them took {seconds:.1f} s of {run.info.seconds['fitting']:.1f}")


def show_counts(n_topics: int) -> None:
    counts = sp.load_npz(DATA / "counts/ap_blei.npz").tocsr()
    model = polyseme.PLSA(n_topics, random_state=0).fit(counts)
    documents = effective_documents(model.doc_topic_, model._training.doc_weights)
    few = int((documents < MAX_FEW * counts.shape[0] / n_topics).sum())
    print(f"AP, {n_topics} topics: at least {documents.min():.1f} documents per topic, {few} marked")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", choices=[*SOURCES, "ap"], default=[*SOURCES, "ap"])
    parser.add_argument("--topics", nargs="+", type=int, default=[20, 40])
    parser.add_argument("--found", type=int, default=0, metavar="N")
    given = parser.parse_args()
    for name in given.corpora:
        source = None if name == "ap" else SOURCES[name]()
        for n_topics in given.topics:
            show_counts(n_topics) if name == "ap" else show_run(name, source, n_topics, given.found)
        if name == "news":
            compare_duplicates(source)


if __name__ == "__main__":
    main()
