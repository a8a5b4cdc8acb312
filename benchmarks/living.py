"""New topics of updates: planted streams, and groups of 20 Newsgroups that appear later.

Planted: 600 documents of six topics are fitted, and ten updates of 150 documents each follow. In half of the streams
two topics appear, in updates 3 and 7, and one topic of the fit ends after update 5; in the others nothing is new, but
the topic ends as well. `polyseme.Run.update(new_topics="auto")` must find what was planted: one topic in update 3 and
one in update 7, each near its planted topic, and none in other updates. A topic has faded if an update from the
sixth on says so.

20 Newsgroups, by date: the documents of the first part without four groups are fitted, and all documents of the second
part added. A new topic's purity is the share of its documents (those with this main topic) of the withheld groups that
belong to its largest group. The agreement of main topics and groups is compared with that of a fit of both parts with
as many topics.

The settings were chosen on corpora of the same generator with other seeds, on the days of the political weblogs of
2008, and on these Newsgroups, so the figures of the Newsgroups are not those of unseen data.

    python benchmarks/living.py [--corpora 20] [--only planted newsgroups]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import polyseme
from common import NEWS_TEXTS, describe_machine, load_lines, report_figure, require_file
from polyseme.datasets import synthetic_corpus
from polyseme.metrics import label_agreement

PARTS = ("planted", "newsgroups")
SEED = 1000
"""First seed of the corpora: not those with which settings were chosen."""
N_TOPICS, N_OLD, N_NEW, UPDATES = 6, 600, 150, 10
APPEAR, LAST_OF_FADING = {3: 6, 7: 7}, 5
LENGTH, WORDS = 80.0, 1500
WITHHELD = ("sci.space", "rec.autos", "talk.politics.guns", "comp.graphics")
NEAR = 0.5
"""Largest total variation distance of a topic that was found from the planted one, with which a refit keeps names."""


def texts_of(topic_word: Any, n_documents: int, seed: int) -> list[str]:
    corpus = synthetic_corpus(
        n_documents, topic_word=topic_word, length=LENGTH, doc_topic_prior=0.15, random_state=seed
    )
    return [document.text for document in corpus]


def distance(run: polyseme.Run, topic: int, planted: Any, words: list[str]) -> float:
    """Return the total variation distance of a topic of a run from a planted one; words that are not counted differ."""
    column = {word: number for number, word in enumerate(words)}
    found = np.zeros(len(words))
    found[[column[word] for word in run.vocabulary]] = run.model.components_[topic]
    return float(np.abs(found - planted).sum() / 2)


def stream(seed: int, *, new: bool) -> dict[str, Any]:
    """Fit a run and update it ten times. Return the topics that each update has added, and what is wrong."""
    corpus = synthetic_corpus(1, n_topics=N_TOPICS + len(APPEAR), n_words=WORDS, random_state=seed)
    planted, words = corpus.topic_word, corpus.words
    run = polyseme.fit(texts_of(planted[:N_TOPICS], N_OLD, seed), N_TOPICS, language=None, random_state=seed)
    ends = int(np.argmin([distance(run, topic, planted[0], words) for topic in range(N_TOPICS)]))
    added, distances, changed, faded = [], [], False, set[int]()
    for number in range(1, UPDATES + 1):
        present = [topic for topic in range(N_TOPICS) if topic > 0 or number <= LAST_OF_FADING]
        present += [topic for start, topic in APPEAR.items() if new and number >= start]
        before, titles = run.model.components_, run.topic_titles
        run = run.update(texts_of(planted[present], N_NEW, 1000 * (seed + 1) + number), new_topics="auto")
        changed |= not np.array_equal(run.model.components_[: len(before)], before)
        changed |= run.topic_titles[: len(titles)] != titles
        update = run.info.updates[-1]
        added.append(len(update.new_topics))
        faded |= set(update.faded)
        if number in APPEAR and update.new_topics:
            distances.append(distance(run, update.new_topics[0].topic, planted[APPEAR[number]], words))
    return {"added": added, "distances": distances, "changed": changed, "faded": faded == {ends}}


def planted_streams(n_corpora: int) -> None:
    wanted = [int(number in APPEAR) for number in range(1, UPDATES + 1)]
    print("| corpus | new topics | added by update | distances | old topics changed | only the right one faded |")
    print("|---|---|---|---|---|---|")
    right, silent, faded, changed = 0, 0, 0, 0
    for new in (True, False):
        for seed in range(SEED, SEED + n_corpora):
            found = stream(seed, new=new)
            shown = ", ".join(f"{value:.2f}" for value in found["distances"])
            print(
                f"| {seed} | {'yes' if new else 'no'} | {' '.join(map(str, found['added']))} | {shown} "
                f"| {'yes' if found['changed'] else 'no'} | {'yes' if found['faded'] else 'no'} |",
                flush=True,
            )
            near = len(found["distances"]) == len(APPEAR) and max(found["distances"]) <= NEAR
            right += new and found["added"] == wanted and near
            silent += not new and not any(found["added"])
            faded += found["faded"]
            changed += found["changed"]
    report_figure("streams in which both topics are found in their updates", f"{right} of {n_corpora}", "18 of 20")
    report_figure("streams without a new topic that get none", f"{silent} of {n_corpora}", "19 of 20")
    report_figure("streams in which only the topic that ends fades", f"{faded} of {2 * n_corpora}")
    report_figure("streams in which an old topic or name changes", f"{changed} of {2 * n_corpora}", "0")


def newsgroups(n_topics: int) -> None:
    rows = load_lines(require_file(NEWS_TEXTS))
    old = [row for row in rows if row["split"] == "train" and row["label"] not in WITHHELD]
    new = [row for row in rows if row["split"] != "train"]
    started = time.perf_counter()
    run = polyseme.fit([row["text"] for row in old], n_topics)
    fitted = time.perf_counter()
    before, titles = run.model.components_, run.topic_titles
    run = run.update([row["text"] for row in new], new_topics="auto")
    updated = time.perf_counter()
    labels = np.array([row["label"] for row in [*old, *new]])
    main = run.doc_topic.argmax(axis=1)
    withheld = np.isin(labels, WITHHELD)
    print(
        "| new topic | documents | of withheld groups | largest group | its share | name |\n|---|---|---|---|---|---|"
    )
    largest = 0
    for entry in run.info.updates[-1].new_topics:
        of_topic = labels[(main == entry.topic) & withheld]
        names, sizes = np.unique(of_topic, return_counts=True)
        largest += int(sizes.max(initial=0))
        name, share = (names[sizes.argmax()], sizes.max() / sizes.sum()) if sizes.size else ("", 0.0)
        print(
            f"| {entry.topic} | {int((main == entry.topic).sum())} | {of_topic.size} | {name} | {share:.2f} "
            f"| {run.topic_titles[entry.topic]} |"
        )
    in_new = main >= n_topics
    refit = polyseme.fit([row["text"] for row in [*old, *new]], run.model.n_components)
    ours, theirs = (label_agreement(fit.doc_topic, labels) for fit in (run, refit))
    kept = np.array_equal(run.model.components_[:n_topics], before) and run.topic_titles[:n_topics] == titles
    covered = len(
        {
            str(
                np.unique(labels[(main == entry.topic) & withheld], return_counts=True)[0][
                    np.unique(labels[(main == entry.topic) & withheld], return_counts=True)[1].argmax()
                ]
            )
            for entry in run.info.updates[-1].new_topics
        }
    )
    report_figure("withheld groups that are the largest of a new topic", f"{covered} of {len(WITHHELD)}", "4 of 4")
    report_figure(
        "purity of new topics, documents of withheld groups",
        f"{largest / max((in_new & withheld).sum(), 1):.2f}",
        "0.6",
    )
    report_figure(
        "documents of withheld groups with a new main topic", f"{(in_new & withheld).sum() / withheld.sum():.0%}"
    )
    report_figure(
        "documents of other groups with a new main topic", f"{(in_new & ~withheld).sum() / (~withheld).sum():.0%}"
    )
    report_figure(
        "NMI of main topics and groups", f"{ours.nmi:.3f}; refit {theirs.nmi:.3f} ({ours.nmi / theirs.nmi:.0%})", "95%"
    )
    report_figure("old topics and names unchanged", "yes" if kept else "no", "yes")
    report_figure("seconds", f"fit {fitted - started:.0f}, update {updated - fitted:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpora", type=int, default=20)
    parser.add_argument("--topics", type=int, default=16, help="topics of the first Newsgroups")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    describe_machine()
    if "planted" in options.only:
        planted_streams(options.corpora)
    if "newsgroups" in options.only:
        newsgroups(options.topics)


if __name__ == "__main__":
    main()
