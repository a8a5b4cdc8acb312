"""Tables of the topics of a run."""

from __future__ import annotations

import csv
import io
from dataclasses import astuple

from polyseme.metrics.words import largest
from polyseme.runs.names import parent_titles
from polyseme.runs.view import TopicView

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Characters that start a formula; some spreadsheets also accept the full-width forms."""
WORDS_SHOWN, DOCUMENTS_SHOWN = 10, 3


def escape_formula(cell: str) -> str:
    """Return the text of a cell, quoted if a spreadsheet would read it as a formula."""
    return "'" + cell if cell.startswith(FORMULA_STARTS) else cell


def topics_in_order(view: TopicView) -> list[int]:
    """Return the topics by decreasing weight, junk topics last; at a finer level, in the order of their parents.

    Hidden topics are left out.
    """
    weights, hidden = view.fitted.topic_weights, view.hidden_topics
    listed = (int(topic) for topic in largest(weights, len(weights)) if int(topic) not in hidden)
    order = sorted(listed, key=lambda topic: topic in view.junk)
    if view.parents is None:
        return order
    above = topics_in_order(view.level(view.parents.level))
    place = {parent: number for number, parent in enumerate(above)}
    parents = view.parents.topics
    return sorted(order, key=lambda topic: place[int(parents[topic])])


def topics_csv(view: TopicView) -> str:
    """Return a CSV table of the topics by weight: topic, name, weight P(z), fit, words and most typical documents.

    `documents` are titles, separated by "; ", and `quotes` a sentence of each, separated by " | ". `junk` is the reason
    why a topic may not describe a subject; these topics are last. With a consensus, there are three columns with the
    reproducibility and its interval. The table of a finer level also has the topic of the
    level above, its title, and its share of the topic's tokens.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    above = [] if view.parents is None else ["parent", "parent_title", "parent_share"]
    titles_above = parent_titles(view)
    found = ["reproducibility", "reproducibility_least", "reproducibility_most"] if view.reproducibility else []
    writer.writerow(["topic", "name", "weight", "fit", "words", "documents", "quotes", "junk", *found, *above])
    weights, words, names = view.fitted.topic_weights, view.topic_words(WORDS_SHOWN), view.topic_titles
    typical = view.typical_documents(DOCUMENTS_SHOWN)
    for topic in topics_in_order(view):
        titles = "; ".join(document.title for document in typical[topic])
        quotes = " | ".join(document.quote for document in typical[topic])
        numbers = (f"{weights[topic]:.6f}", f"{view.typical.fit[topic]:.6f}")
        name, *texts = map(escape_formula, (names[topic], " ".join(words[topic]), titles, quotes))
        row = [topic, name, *numbers, *texts, view.junk[topic].reason if topic in view.junk else ""]
        if view.reproducibility:
            row += [f"{value:.4f}" for value in astuple(view.reproducibility[topic])]
        if view.parents is not None:
            title = escape_formula(titles_above[topic])
            row += [int(view.parents.topics[topic]), title, f"{view.parents.shares[topic]:.6f}"]
        writer.writerow(row)
    return text.getvalue()
