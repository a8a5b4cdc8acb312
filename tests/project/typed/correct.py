"""Code of a user without type errors; `assert_type` shows that the types are known."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np
import polars as pl

import polyseme
from polyseme import LDA, NMF, PLSA, InputError, Run, load, open_run
from polyseme.explore.page import NotebookPage
from polyseme.extending import Prior
from polyseme.metrics import distinctive_words, evaluate
from polyseme.priors import Dirichlet, SeedWords
from polyseme.retrieval import SearchIndex
from polyseme.selection import select_n_topics
from polyseme.solvers import Tempered
from polyseme.text import Vectorizer, make_pipeline
from polyseme.typing import Evaluation, Hit, Results, Selection, TopicTable


def estimators(texts: list[str]) -> None:
    counts = Vectorizer(language="en", min_df=2).fit_transform(texts)
    model = PLSA(n_components=5, solver=Tempered(0.9), topic_word_prior=SeedWords({0: ["price"]}), random_state=0)
    assert_type(model.fit(counts), PLSA)
    assert_type(model.topics(), TopicTable)
    assert_type(model.topics().to_polars(), pl.DataFrame)
    assert_type(model.topics()[0].words, list[str])
    assert_type(model.perplexity(counts), float)
    assert_type(LDA(5).fit(np.eye(5)).perplexity(np.eye(5)), float)
    assert_type(polyseme.NMF(3), NMF)
    prior: Prior = Dirichlet(1.1)
    assert prior.monotone
    PLSA(2, topic_word_prior=Dirichlet(1.1)).save("model")
    make_pipeline(Vectorizer(), model).fit(texts)


def files(path: Path) -> None:
    model = load(path)
    model.transform(np.eye(3))
    if isinstance(model, PLSA):
        assert_type(model, PLSA)
    assert isinstance(model, polyseme.HierarchicalPLSA)
    model.topics()


def runs(folder: Path) -> str:
    try:
        run = polyseme.fit(folder, n_topics=5)
    except InputError as error:
        return str(error)
    assert_type(run, Run)
    assert_type(open_run(folder).path, Path)
    assert_type(run.documents, pl.DataFrame)
    assert_type(run.transform(["A text."])["topic"], pl.Series)
    results = run.search("price of oil", 5)
    assert_type(results, Results)
    assert_type(results[0], Hit)
    assert_type(run.evaluate(), Evaluation)
    assert_type(run.explore(), NotebookPage)
    assert_type(run.explore("page.html"), Path)
    assert_type(run.edit(rename={0: "Oil"}).undo(), Run)
    return results[0].title


def measures(model: PLSA, counts: pl.DataFrame) -> None:
    assert_type(evaluate(model, counts).diversity, float)
    assert_type(select_n_topics(counts), Selection)
    assert_type(select_n_topics(counts).chosen_to_read, int | None)
    distinctive_words(counts, ["a", "b"])
    assert_type(SearchIndex(counts, ["a", "b"]), SearchIndex)
