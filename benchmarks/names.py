"""Names of all topics of fits with 20 topics, and checks of the rules for names.

    python benchmarks/names.py [--corpora "20 Newsgroups" docstrings "Italian dump" AP] [--quick]

The texts are fitted as by `polyseme fit -k 20`. A name must be unique, contain no e-mail address, and consist of words
and phrases that the texts contain as they are written in the name (lower case in the name may be upper case in the
text), so that no part is a stem. No part may be a month, a number, a unit or another word that names no subject. AP has
only counts; its names are three words of its vocabulary.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence

import numpy as np

import polyseme
from common import AP, DATA, NEWS_TEXTS, describe_machine, load_counts, load_lines, report_figure, require_file
from polyseme import PLSA
from polyseme.datasets import docstrings
from polyseme.text import read
from polyseme.text.languages import get_language
from polyseme.text.nouns import NameWords

TOPICS = 20
QUICK_DOCUMENTS = 1500
DUMP = DATA / "wiki" / "itwiki_small.xml.bz2"
AP_WORDS = DATA / "counts" / "ap_blei.vocab.txt"
TEXTS: dict[str, Callable[[], list[str]]] = {
    "20 Newsgroups": lambda: [row["text"] for row in load_lines(NEWS_TEXTS)],
    "docstrings": lambda: list(docstrings().texts),
    "Italian dump": lambda: [document.text for document in read([str(require_file(DUMP))])],
}


def print_names(name: str, weights: Sequence[float], names: Sequence[str], words: Sequence[Sequence[str]]) -> None:
    print(f"\n{name}\n\n| topic | weight | name | words |\n|---|---|---|---|")
    for topic in np.argsort(-np.asarray(weights), kind="stable").tolist():
        print(f"| {topic} | {weights[topic]:.1%} | {names[topic]} | {' '.join(words[topic])} |", flush=True)


def not_in_texts(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return the parts of names that no text contains, with any white space between the words of a phrase."""
    missing = []
    for part in sorted({part for name in names for part in name.split(", ")}):
        flags = re.IGNORECASE if part == part.lower() else 0
        pattern = re.compile(r"(?<!\w)" + r"\s+".join(map(re.escape, part.split())) + r"(?!\w)", flags)
        if not any(pattern.search(text) for text in texts):
            missing.append(part)
    return missing


def report(name: str, names: Sequence[str], missing: Sequence[str] | None) -> None:
    repeated = len(names) - len({found.casefold() for found in names})
    addresses = sum("@" in found for found in names)
    report_figure(f"names that another topic of {name} also has", str(repeated), "0")
    report_figure(f"e-mail addresses in the names of {name}", str(addresses), "0")
    if missing is not None:
        report_figure(f"parts of names that the texts of {name} do not have", ", ".join(missing) or "0", "0")


def fit_texts(name: str, texts: list[str]) -> None:
    run = polyseme.fit(texts, TOPICS, levels="none")
    names = run.topic_titles
    print_names(name, run.model._fitted.topic_weights.tolist(), names, run.topic_words(6))
    report(name, names, not_in_texts(names, texts))
    rules = NameWords(get_language(run.vectorizer.language_ or "other"), {}, run.vectorizer.vocabulary_)
    words = {part.lower() for found in names for part in found.split(", ") if part == part.lower()}
    unfit = sorted(word for word in words if " " not in word and not rules.can_name(word))
    report_figure(f"words in names of {name} that name no subject", ", ".join(unfit) or "0", "0")


def fit_counts() -> None:
    words = require_file(AP_WORDS).read_text(encoding="utf-8").split()
    model = PLSA(TOPICS, random_state=0).fit(load_counts(AP)).set_vocabulary(words)
    table = model.topics()
    names = [", ".join(topic.words[:3]) for topic in table]
    print_names("AP", table["weight"], names, [topic.words[:6] for topic in table])
    report("AP", names, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", choices=[*TEXTS, "AP"], default=[*TEXTS, "AP"])
    parser.add_argument("--quick", action="store_true", help="the first documents of each corpus")
    arguments = parser.parse_args()
    describe_machine()
    for name in arguments.corpora:
        if name == "AP":
            fit_counts()
        else:
            texts = TEXTS[name]()
            fit_texts(name, texts[:QUICK_DOCUMENTS] if arguments.quick else texts)


if __name__ == "__main__":
    main()
