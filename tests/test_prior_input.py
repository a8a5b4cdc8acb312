"""Priors that make no sense: each is refused in one sentence."""

import numpy as np
import pytest

from polyseme.errors import InputError
from polyseme.priors import (
    Decorrelation,
    Dirichlet,
    Entropic,
    SeedWords,
    Smoothing,
    Sparsing,
    Sum,
    TopicSelection,
    as_prior,
)
from prior_cases import COLUMNS, ROWS, counts, factor

TARGET = [0.1, 0.1, 0.2, 0.2, 0.3, 0.1]


def at_check(prior):
    return lambda: prior.check((ROWS, COLUMNS))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Dirichlet(0), "Dirichlet: alpha must be greater than zero, got 0."),
        (lambda: Dirichlet([1, -2.5]), "Dirichlet: alpha must be greater than zero, got -2.5."),
        (lambda: Dirichlet(np.nan), "Dirichlet: alpha must be a finite number, got nan."),
        (lambda: Dirichlet("1"), "Dirichlet: alpha must be a finite number, got '1'."),
        (lambda: Dirichlet([1, np.inf]), "Dirichlet: alpha must be finite numbers in one dimension, got [1, inf]."),
        (lambda: Dirichlet([[1, 2]]), "Dirichlet: alpha must be finite numbers in one dimension, got [[1, 2]]."),
        (lambda: Dirichlet([]), "Dirichlet: alpha must be finite numbers in one dimension, got []."),
        (lambda: Dirichlet(["a"]), "Dirichlet: alpha must be finite numbers in one dimension, got ['a']."),
        (lambda: Entropic(np.inf), "Entropic: beta must be a finite number, got inf."),
        (lambda: Entropic(None), "Entropic: beta must be a finite number, got None."),
        (lambda: Smoothing(-1), "Smoothing: strength must not be negative, got -1."),
        (lambda: Smoothing(True), "Smoothing: strength must be a finite number, got True."),
        (lambda: Sparsing(1, [0.5, -0.5]), "Sparsing: target must have no negative entry and a positive sum."),
        (lambda: Sparsing(1, [0, 0]), "Sparsing: target must have no negative entry and a positive sum."),
        (lambda: Decorrelation(-2), "Decorrelation: strength must not be negative, got -2."),
        (lambda: TopicSelection("much"), "TopicSelection: strength must be a finite number, got 'much'."),
        (
            lambda: TopicSelection(1).log_density(factor()),
            "TopicSelection needs the documents' lengths for its log density: use with_row_totals.",
        ),
        (lambda: SeedWords({0: ["a"]}, strength=-1), "SeedWords: strength must not be negative, got -1."),
        (lambda: SeedWords([["a"]]), "SeedWords: seeds must map topic numbers to lists of words, got [['a']]."),
        (lambda: SeedWords({}), "SeedWords: seeds must map topic numbers to lists of words, got {}."),
        (lambda: SeedWords({"law": ["a"]}), "SeedWords: a topic must be a whole number from 0 on, got 'law'."),
        (lambda: SeedWords({-1: ["a"]}), "SeedWords: a topic must be a whole number from 0 on, got -1."),
        (lambda: SeedWords({0: "law"}), "SeedWords: the words of topic 0 must be a list, got 'law'."),
        (lambda: SeedWords({0: [1.5]}), "SeedWords: a word must be a name or a column from 0 on, got 1.5."),
        (
            lambda: SeedWords({0: ["law", "lwa"], 1: ["gmae"]}, ["law", "game"]),
            "SeedWords: the vocabulary does not have 'lwa', 'gmae'.",
        ),
        (
            lambda: SeedWords({0: ["law"]}).maximise(counts(), factor()),
            "SeedWords needs the vocabulary, to know the columns of 'law': give vocabulary, or columns.",
        ),
        (at_check(SeedWords({4: [1]})), "SeedWords: there are seeds for topic 4, but topics end at 3."),
        (at_check(SeedWords({1: [2, 6]})), "SeedWords: column 6 is a seed word, but columns end at 5."),
        (
            at_check(Dirichlet([1, 2])),
            "Dirichlet: alpha has 2 entries, but the rows it acts on have 6: give one for each.",
        ),
        (
            at_check(Sum((Entropic(1), Smoothing(1, np.ones(7))))),
            "Smoothing: target has 7 entries, but the rows it acts on have 6: give one for each.",
        ),
        (
            at_check(TopicSelection(1).with_row_totals(np.ones(3))),
            "TopicSelection: there are 3 row totals, but 4 rows: give one for each.",
        ),
        (
            lambda: as_prior("flat"),
            "A prior must be None, a number (Dirichlet alpha), a Prior or a list of Priors, got 'flat'.",
        ),
        (
            lambda: as_prior(True),
            "A prior must be None, a number (Dirichlet alpha), a Prior or a list of Priors, got True.",
        ),
        (
            lambda: as_prior([0.1, 0.2]),
            "A list of priors holds priors only, got 0.1: a vector is Dirichlet([...]).",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message
