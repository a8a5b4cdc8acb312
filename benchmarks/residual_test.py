"""How often `polyseme.uncertainty.residual_test` says that there are too few topics.

Documents are drawn from known topics (1,000 words with Zipf's law, P(z|d) from a Dirichlet distribution with
parameters 0.1, `polyseme.datasets.synthetic_corpus`) and fitted with different numbers of topics by `PLSA`, with the
default start. A row of the table has the share of p-values of at most 0.05: false alarms where the number is right or
too large, and power where it is too small.

    python benchmarks/residual_test.py [--known 5] [--documents 500] [--lengths 30 100] [--repetitions 100]
"""

from __future__ import annotations

import argparse

import numpy as np

from common import describe_machine, report_figure
from polyseme import PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.uncertainty import residual_test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--known", type=int, default=5)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--lengths", nargs="+", type=int, default=[30, 100])
    parser.add_argument("--repetitions", type=int, default=100)
    arguments = parser.parse_args()
    describe_machine()
    known = arguments.known
    print("| topics | documents | tokens | fitted | repetitions | p <= .05 | median ratio |")
    print("|" + "---|" * 7, flush=True)
    for length in arguments.lengths:
        for n_topics in (known - 1, known, known + 1):
            found = []
            for seed in range(arguments.repetitions):
                corpus = synthetic_corpus(
                    arguments.documents, n_topics=known, n_words=1000, length=length, random_state=2000 + seed
                )
                X = corpus.counts()
                model = PLSA(n_topics, random_state=seed, n_jobs=1).fit(X)
                test = residual_test(model, X, n_jobs=1, random_state=seed)
                found.append((test.p_value <= 0.05, test.ratio))
            share, ratio = np.mean([found_one for found_one, _ in found]), np.median([ratio for _, ratio in found])
            cells = (known, arguments.documents, length, n_topics, len(found), f"{share:.3f}", f"{ratio:.2f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
            if n_topics == known:
                report_figure(f"false alarms, {length} tokens", f"{share:.3f}", "at most 0.05")


if __name__ == "__main__":
    main()
