"""Pictures of groups, effects, time and distinctive words, from political weblogs of 2008 (poliblog5k).

    python benchmarks/blogs.py [--topics 12] [--resamples 100] [--pictures docs/pictures]

The blogs are stemmed counts, so their texts are words in the order of the vocabulary.
"""

from __future__ import annotations

import argparse
from datetime import date, timedelta
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import polars as pl

import polyseme
from common import DATA, describe_machine, load_counts, report_figure, require_file
from polyseme import plots
from polyseme.uncertainty import word_contrasts


def blogs() -> pl.DataFrame:
    """Return a row for each post: text, label (rating), time, blog."""
    X = load_counts(DATA / "counts" / "poliblog5k.npz")
    folder = DATA / "counts"
    vocabulary = require_file(folder / "poliblog5k.vocab.txt").read_text(encoding="utf-8").split()
    lines = require_file(folder / "poliblog5k.documents.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = []
    for number, line in enumerate(lines):
        rating, day, blog = line.split("\t")
        part = slice(X.indptr[number], X.indptr[number + 1])
        words = [vocabulary[w] for w, n in zip(X.indices[part], X.data[part], strict=True) for _ in range(int(n))]
        time = str(date(2007, 12, 31) + timedelta(int(day)))
        rows.append({"id": str(number), "text": " ".join(words), "label": rating, "time": time, "source": blog})
    return pl.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=12)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--pictures", type=Path, help="folder for the pictures")
    arguments = parser.parse_args()
    describe_machine()
    run = polyseme.fit(
        blogs(), arguments.topics, language=None, levels="none", duplicates="keep", page=False, max_df=1.0,
        random_state=0,
    )  # fmt: skip
    options = {"n_resamples": arguments.resamples}
    groups = run.compare_groups("label", **options)
    effects = run.effects("~ label + s(time)", **options)
    months = run.over_time("month", **options)
    contrasts = word_contrasts(run)
    print(groups, effects, months, sep="\n\n")
    for topic in months.order[:5]:
        print(topic, *months.changing_words(topic))
    if arguments.pictures:
        for name, axes in (
            ("groups", plots.plot_groups(groups)),
            ("effects", plots.plot_effects(effects, "time", by="label")),
            ("time", plots.plot_over_time(months)),
            ("volcano", plots.plot_volcano(contrasts, months.order[0])),
        ):
            axes.figure.savefig(arguments.pictures / f"{name}.png", dpi=100)
    report_figure("gain of words by month on held-out posts", f"{months.shrinkage.gain:.4f} nats per token")


if __name__ == "__main__":
    main()
