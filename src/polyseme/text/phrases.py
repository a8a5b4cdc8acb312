"""Phrases such as "san_francisco": neighbours that stand together far more often than by chance.

The measure is the normalised pointwise mutual information (Bouma 2009), from -1 over 0 (chance) to 1 (always together):

    NPMI(a, b) = log(P(a b) / (P(a) P(b))) / -log P(a b)

with probabilities per word of the corpus. Found phrases are joined, and the search is done once more, so that a
phrase has two to four words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.kernels import Floats
from polyseme.text.tokens import Integers, Sequences

DEFAULT_THRESHOLD = 0.5
LEAST_COUNT = 10
ROUNDS = 2
JOINT = "_"

Pair = tuple[str, str]


def npmi(joint: Integers, first: Integers, second: Integers, n_tokens: int) -> Floats:
    """Normalised pointwise mutual information of pairs that occur `joint` times; 1 where nothing else occurs."""
    p_joint = joint / n_tokens
    information = np.log(p_joint) - np.log(first / n_tokens) - np.log(second / n_tokens)
    surprise = -np.log(p_joint)
    return np.divide(information, surprise, out=np.ones(len(joint)), where=surprise > 0)


def find_phrases(sequences: Sequences, names: list[str], threshold: float) -> tuple[list[str], list[list[Pair]]]:
    """Joins the phrases in the sequences; returns the names with theirs at the end, and each round's joined pairs."""
    rounds: list[list[Pair]] = []
    first_new = 0
    for _ in range(ROUNDS):
        tokens = sequences.totals(len(names))
        pairs = sequences.pairs(LEAST_COUNT)
        pairs = pairs[(pairs[:, :2] >= first_new).any(axis=1)]  # the others have had their turn
        first_new = len(names)
        scores = npmi(pairs[:, 2], tokens[pairs[:, 0]], tokens[pairs[:, 1]], int(tokens.sum()))
        found = ((names[a], names[b]) for a, b in pairs[scores >= threshold, :2])
        rounds.append([pair for pair in found if all(pair)])  # an empty token is counted, but is no part of a phrase
        names = join_phrases(sequences, names, rounds[-1])
    return names, rounds


def join_phrases(sequences: Sequences, names: Sequence[str], phrases: Sequence[Pair]) -> list[str]:
    """Joins given phrases once; returns the names with those of the phrases that were not among them at the end."""
    names = list(names)
    place = {name: number for number, name in enumerate(names)}
    rows = []
    for first, second in phrases:
        if first in place and second in place:
            joined = first + JOINT + second
            if joined not in place:
                place[joined] = len(names)
                names.append(joined)
            rows.append((place[first], place[second], place[joined]))
    table = np.array(rows, dtype=np.int32).reshape(-1, 3)
    sequences.join(*(np.ascontiguousarray(column) for column in table.T))
    return names
