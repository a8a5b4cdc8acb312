"""Topics with seed words: how well they agree with the documents of their words, and which get their names.

    python benchmarks/seeds.py [--corpora news med cran] [--topics 10 20]

Half of the lists of words are of subjects that a corpus has, half of subjects that it does not have. For each topic the
table shows how many documents contain a seed word, the correlation of the topic with these documents, whether the topic
gets the name, and its words. news: 3,000 texts of 20 Newsgroups; all corpora are in POLYSEME_DATA.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import polyseme
from common import DATA, load_lines
from polyseme.runs.seed_words import seed_columns
from polyseme.runs.seeds import seed_documents

N_NEWS = 3000
SEEDS = {
    "news": {
        "present": "Hockey: hockey, goalie; Space: orbit, shuttle; Health: health, hospital, doctor; Cars: car, "
        "engine; Religion: god, jesus, church; Guns: gun, firearms, weapons; Encryption: encryption, clipper, key",
        "absent": "Cooking: recipe, oven, butter; Economy: market, prices, bank, growth; Farming: crop, soil, harvest; "
        "Cinema: film, actor, director; Travel: hotel, flight, tourist; Weather: rain, storm, snow; Fashion: dress, "
        "shoes, designer",
    },
    "med": {
        "present": "Heart: cardiac, heart, ventricular; Kidney: renal, kidney; Autism: autistic, children; "
        "Lens: lens, crystallin",
        "absent": "Dentistry: dental, teeth; Sport: exercise, muscle; Economy: cost, hospital; Weather: temperature, "
        "season",
    },
    "cran": {
        "present": "Buckling: buckling, shells; Heat: heat, thermal; Wings: wing, lift; Sound: noise, sound",
        "absent": "Medicine: heart, response; Finance: cost, economic; Law: rules, law; School: school, study",
    },
}


def texts_of(corpus: str) -> list[str]:
    path = "text/news20.jsonl.gz" if corpus == "news" else f"ir/{corpus}/docs.jsonl.gz"
    texts = [row["text"] for row in load_lines(DATA / path)]
    return [texts[row] for row in np.random.default_rng(0).permutation(len(texts))[:N_NEWS]]


def parsed(lists: str) -> dict[str, list[str]]:
    pairs = (part.split(":") for part in lists.split(";"))
    return {name.strip(): [word.strip() for word in words.split(",")] for name, words in pairs}


def show(corpus: str, texts: list[str], n_topics: int) -> None:
    for kind, lists in SEEDS[corpus].items():
        seeds = parsed(lists)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", polyseme.SeedWarning)
            run = polyseme.fit(texts, n_topics, seeds=seeds, levels="none")
        found = seed_documents(seed_columns(seeds, run.vectorizer).columns, run.doc_topic, run.view.corpus)
        print(f"{corpus}, {n_topics} topics, subjects that are {kind}")
        for topic, name in enumerate(seeds):
            print(
                f"  {name:<10} {found.of_topic[topic]:4} documents, correlation {found.correlation[topic]:5.2f} "
                f"{'named' if topic in run.info.topic_names else '     '}  {' '.join(run.topic_words(8)[topic])}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", choices=[*SEEDS], default=[*SEEDS])
    parser.add_argument("--topics", nargs="+", type=int, default=[10, 20])
    given = parser.parse_args()
    for corpus in given.corpora:
        texts = texts_of(corpus)
        for n_topics in given.topics:
            show(corpus, texts, n_topics)


if __name__ == "__main__":
    main()
