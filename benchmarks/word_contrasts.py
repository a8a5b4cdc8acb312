"""How often the local false sign rates and the intervals of `polyseme.uncertainty.word_contrasts` are right.

Documents are drawn from known topics (1,000 words with Zipf's law, P(z|d) from a Dirichlet distribution with
parameters 0.1); the fit starts from the known topics. A row of the table has the words (of all topics) with a local
false sign rate of at most 0.05, the share of them whose true log ratio has another sign, their mean rate (the share
that is promised), and the share of 95% intervals that contain the true log ratio, for words with more than 50 tokens
and true ratios of at most 20.

    python benchmarks/word_contrasts.py [--topics 5 20] [--documents 500] [--lengths 30 100 300] [--repetitions 20]
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

from common import describe_machine, report_figure
from polyseme import PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.uncertainty import word_contrasts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", nargs="+", type=int, default=[5, 20])
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--lengths", nargs="+", type=int, default=[30, 100, 300])
    parser.add_argument("--repetitions", type=int, default=20)
    arguments = parser.parse_args()
    describe_machine()
    print("| topics | documents | tokens | repetitions | words | wrong signs | promised | intervals |")
    print("|" + "---|" * 8, flush=True)
    for n_topics, length in product(arguments.topics, arguments.lengths):
        words, wrong, promised, covered = 0, 0, 0.0, []
        for seed in range(arguments.repetitions):
            corpus = synthetic_corpus(
                arguments.documents, n_topics=n_topics, n_words=1000, length=length, random_state=3000 + seed
            )
            X, topics = corpus.counts(), corpus.topic_word
            model = PLSA(n_topics, init=(None, topics), n_jobs=1).fit(X)
            found = word_contrasts(model, X)
            weights = corpus.doc_topic().mean(axis=0)[:, np.newaxis] * topics
            others = (weights.sum(axis=0) - weights) / (1 - weights.sum(axis=1, keepdims=True))
            truth = np.log(topics / others)
            sure = found.sign_rate <= 0.05
            words += int(sure.sum())
            wrong += int((np.sign(found.estimate) != np.sign(truth))[sure].sum())
            promised += float(found.sign_rate[sure].sum())
            used = (np.asarray(X.sum(axis=0)).ravel() > 50) & (np.abs(truth) < np.log(20))
            covered.append(((found.low <= truth) & (truth <= found.high))[used].mean())
        cells = (n_topics, arguments.documents, length, arguments.repetitions, words, f"{wrong / words:.4f}")
        print(f"| {' | '.join(map(str, cells))} | {promised / words:.4f} | {np.mean(covered):.3f} |", flush=True)
        report_figure(f"wrong signs, K = {n_topics}, {length} tokens", f"{wrong / words:.4f}", "at most 0.05")


if __name__ == "__main__":
    main()
