"""Junk topics: planted headers, boilerplate, copies and encoded files are marked, topics about subjects are not."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme
from cli_runner import here
from polyseme.errors import ModelFileError
from polyseme.explore.page_data import run_page_data
from polyseme.runs.junk import effective_documents
from sealed_files import change_json, seal

SUBJECTS, LENGTH = 4, 60
rng = np.random.default_rng(0)
WORDS = [f"{first}{second}{third}word" for first in "abcdefghij" for second in "klmnopqrstuvwxyz" for third in "abcdef"]
TOPICS = rng.dirichlet(np.full(len(WORDS), 0.1), SUBJECTS)
JUNK = [f"junk{first}{second}" for first in "abcd" for second in "efghij"]


def subjects(n_documents: int) -> list[list[str]]:
    generator = np.random.default_rng(1)
    mixtures = generator.dirichlet(np.full(SUBJECTS, 0.1), n_documents) @ TOPICS
    return [[WORDS[word] for word in generator.choice(len(WORDS), LENGTH, p=row)] for row in mixtures]


def nothing(texts: list[list[str]]) -> list[list[str]]:
    return texts


def headers(texts: list[list[str]]) -> list[list[str]]:
    """Begin half of the documents with twelve of the words of a header, in any order."""
    generator = np.random.default_rng(2)
    return [[*generator.permutation(JUNK)[:12], *text] if number % 2 else text for number, text in enumerate(texts)]


def boilerplate(texts: list[list[str]]) -> list[list[str]]:
    """Insert a passage of 24 words anywhere in every third document."""
    generator = np.random.default_rng(3)
    places = generator.integers(LENGTH, size=len(texts))
    return [
        text[:place] + JUNK + text[place:] if number % 3 == 0 else text
        for number, (text, place) in enumerate(zip(texts, places, strict=True))
    ]


def scattered(texts: list[list[str]]) -> list[list[str]]:
    """Insert the same words anywhere in every third document, in any order: a subject."""
    generator = np.random.default_rng(4)
    return [
        [str(word) for word in generator.permutation([*text, *JUNK])] if number % 3 == 0 else text
        for number, text in enumerate(texts)
    ]


def terms(texts: list[list[str]]) -> list[list[str]]:
    """Insert terms of three words anywhere in every third document: the terms of a subject."""
    generator = np.random.default_rng(6)
    words = [list(JUNK[start : start + 3]) for start in range(0, len(JUNK), 3)]
    return [
        [word for term in generator.permutation(len(words)) for word in (*words[term], *text[7 * term : 7 * term + 7])]
        if number % 3 == 0
        else text
        for number, text in enumerate(texts)
    ]


def copies(texts: list[list[str]]) -> list[list[str]]:
    """Repeat one document sixty times."""
    return texts + [[*JUNK, *JUNK[::-1]]] * 60


def encoded(texts: list[list[str]]) -> list[list[str]]:
    """Add thousands of unique words to two documents."""
    generator = np.random.default_rng(5)
    return texts + [[str(word) for word in generator.choice(JUNK, 4000)] for _ in range(2)]


def fitted(
    plant: Callable[[list[list[str]]], list[list[str]]], n_documents: int = 500, **settings: object
) -> polyseme.Run:
    texts = [" ".join(text) for text in plant(subjects(n_documents))]
    extra = 0 if plant is nothing else 1
    return polyseme.fit(
        texts, SUBJECTS + extra, language=None, max_df=1.0, random_state=0, max_iter=30, levels="none", **settings
    )


def junk_topic(run: polyseme.Run) -> int:
    column = [run.vocabulary.index(word) for word in JUNK if word in run.vocabulary]
    return int(run.model.components_[:, column].sum(axis=1).argmax())


@pytest.mark.parametrize(
    ("plant", "kind"), [(headers, "place"), (boilerplate, "repeated"), (copies, "copies"), (encoded, "few")]
)
def test_planted_junk_is_marked_and_subjects_are_not(plant: Callable, kind: str) -> None:
    run = fitted(plant)
    assert {topic: mark.kind for topic, mark in run.junk.items()} == {junk_topic(run): kind}


@pytest.mark.parametrize("plant", [nothing, scattered, terms])
def test_subjects_are_not_marked(plant: Callable) -> None:
    assert fitted(plant).junk == {}
    assert fitted(plant, 40).junk == {}


def test_short_texts_have_no_headers() -> None:
    """A few long texts with headers among titles say nothing about positions in titles."""

    def titles(texts: list[list[str]]) -> list[list[str]]:
        long = headers(texts)[: len(texts) // 4]
        return long + [text[start : start + 10] for text in texts for start in range(0, LENGTH, 10)]

    assert "place" not in {mark.kind for mark in fitted(titles).junk.values()}


@pytest.mark.parametrize(
    ("label", "is_marked"),
    [
        (lambda number: "form; paper" if number % 4 == 0 else "letter", False),
        (lambda number: "letter" if number % 3 else "paper", True),
        (lambda number: f"file {number}", True),
        (lambda number: "all", True),
        (lambda number: "", True),
    ],
)
def test_a_topic_that_matches_a_label_is_not_marked(label: Callable[[int], str], is_marked: bool) -> None:
    """Every fourth document is a form, whose passages are repeated."""
    texts = [[*JUNK, *text[:10]] if number % 4 == 0 else text for number, text in enumerate(subjects(200))]
    table = {"text": [" ".join(text) for text in texts], "label": [label(number) for number in range(200)]}
    run = polyseme.fit(
        pl.DataFrame(table), SUBJECTS + 1, text="text", label="label", language=None, max_df=1.0, max_iter=30,
        levels="none",
    )  # fmt: skip
    assert list(run.junk) == ([junk_topic(run)] if is_marked else [])


def test_shards_and_a_run_without_texts_mark_the_same() -> None:
    run = fitted(headers, shards=True, keep_texts=False)
    assert [mark.kind for mark in run.junk.values()] == ["place"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> polyseme.Run:
    return fitted(headers, output=tmp_path_factory.mktemp("junk") / "run")


def test_marked_topics_are_listed_last_with_the_reason(run: polyseme.Run) -> None:
    topic = junk_topic(run)
    rows = list(csv.DictReader((run.path / "topics.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["topic"] for row in rows][-1] == str(topic)
    assert [bool(row["junk"]) for row in rows] == [False] * SUBJECTS + [True]
    assert [row.id for row in run.topics()] == list(range(SUBJECTS + 1))
    printed = str(run.topics())
    assert f"Topic {topic} may not describe a subject: its words occur at the same positions" in printed
    assert "To remove words that are not about a subject: run.edit(ban=[...], refit=True)" in printed
    shown = here("topics", str(run.path)).stdout
    assert f"Topic {topic} may not describe a subject" in shown
    assert f"polyseme edit {run.path} --ban WORD,WORD --refit" in shown
    found = json.loads(here("topics", str(run.path), "--json").stdout)["topics"]
    assert [row["topic"] for row in found][-1] == topic
    assert run_page_data(run).junk == {topic: run.junk[topic].reason}


def test_edits_move_the_marks(run: polyseme.Run, tmp_path: Path) -> None:
    topic = junk_topic(run)
    first = 0 if topic else 1
    saved = run.save(tmp_path / "copy")
    deleted = saved.edit(delete=[first])
    assert list(deleted.junk) == [topic - (first < topic)]
    assert deleted.edit(delete=list(deleted.junk)).junk == {}


def test_the_suggested_edit_removes_the_topic(run: polyseme.Run, tmp_path: Path) -> None:
    words = [word for word in run.vocabulary if word.startswith("junk")]
    assert run.save(tmp_path / "copy").edit(ban=words, refit=True).junk == {}


def test_effective_documents() -> None:
    weights = np.array([[1.0, 0.5], [1.0, 0.0], [1.0, 0.5]])
    np.testing.assert_allclose(effective_documents(weights, np.full(3, 1 / 3)), [3, 2])


@pytest.mark.parametrize(
    "marks", [{"0": "no"}, {"x": {"kind": "few", "reason": ""}}, {"0": {"kind": "bad", "reason": ""}}]
)
def test_wrong_marks_are_refused(marks: dict, run: polyseme.Run, tmp_path: Path) -> None:
    saved = run.save(tmp_path / "copy")
    change_json(saved.path / "run.json", junk=marks)
    seal(saved.path)
    with pytest.raises(ModelFileError, match="junk"):
        polyseme.open_run(saved.path)
