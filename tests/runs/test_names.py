"""Names of topics: made of phrases and words, given by people and by functions."""

from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.runs.names import automatic_names, topic_documents_of_phrases

WORDS = {
    "computer": ["disk", "controller", "monitor", "keyboard", "printer", "cable", "screen", "cartridge"],
    "politics": ["election", "vote", "party", "parliament", "senate", "law", "budget", "campaign"],
}
PHRASES = {"computer": "hard drive", "politics": "Prime Minister"}


def text_of(subject: str, number: int) -> str:
    a, b, c, d = np.random.default_rng(number).choice(WORDS[subject], 4)
    return f"The {a} {PHRASES[subject]} {b}. A {c} {PHRASES[subject]} and the {d}."


TEXTS = [text_of(("computer", "politics")[number % 2], number) for number in range(80)]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> polyseme.Run:
    return polyseme.fit(TEXTS, 2, output=tmp_path_factory.mktemp("names") / "run", max_df=1.0)


@pytest.fixture
def run(fitted: polyseme.Run, tmp_path: Path) -> polyseme.Run:
    return fitted.save(tmp_path / "run")


def test_a_name_leads_with_a_phrase_of_the_topic(run: polyseme.Run) -> None:
    names = sorted(run.topic_titles, key=str.lower)
    assert [name.split(", ")[0] for name in names] == ["hard drive", "Prime Minister"]
    assert [len(name.split(", ")) for name in names] == [3, 3]
    assert len({part for name in names for part in name.split(", ")}) == 6
    assert run.about["automatic_names"] == run.topic_titles
    assert [topic.name for topic in run.topics()] == run.topic_titles
    assert all(name in (run.path / "topics.csv").read_text(encoding="utf-8") for name in names)
    assert f"0 {run.topic_titles[0]}" in run.transform(["hard drive"]).columns
    assert run.search("drive", topic=names[0].upper()).hits


def test_names_are_read_not_made_again(run: polyseme.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.text.vectorizer.find_topic_phrases", lambda *_: pytest.fail("the texts were read"))
    opened = polyseme.open_run(run.path)
    assert opened.topic_titles == run.topic_titles
    renamed = opened.edit(rename={0: "First"})
    assert renamed.topic_titles == ["First", run.topic_titles[1]]
    assert renamed.edit(rename={0: ""}).topic_titles == run.topic_titles
    updated = renamed.update([text_of("computer", 3)])  # of the run in the folder
    assert updated.topic_titles == run.topic_titles


def test_runs_without_names_or_texts_have_three_words(run: polyseme.Run) -> None:
    old = polyseme.open_run(run.path)
    del old.about["automatic_names"]
    assert old.topic_titles == [", ".join(words) for words in old.topic_words(3)]
    without = polyseme.fit(TEXTS, 2, keep_texts=False, max_df=1.0)
    assert without.topic_titles == run.topic_titles  # the texts were there when the topics were named
    edited = without.edit(ban=["drive"])
    computers = next(k for k, name in enumerate(without.topic_titles) if "hard drive" in name)
    assert edited.topic_titles[1 - computers] == without.topic_titles[1 - computers]
    assert edited.topic_titles[computers] == ", ".join(edited.topic_words(3)[computers])


def test_a_name_avoids_the_words_of_the_topic_above_and_other_names(run: polyseme.Run) -> None:
    names = automatic_names(run)
    children = automatic_names(run, parents=names)
    for name, child in zip(names, children, strict=True):
        assert not {part.lower() for part in name.split(", ")} & {part.lower() for part in child.split(", ")}
    run.about = {**run.about, "topic_names": {"0": names[1].upper()}}
    again = automatic_names(run)
    assert again[1] == names[1] + again[1].removeprefix(names[1])
    assert len(again[1].split(", ")) == 4  # a further word
    assert automatic_names(run, ["kept", None])[0] == "kept"


def test_equal_topics_get_different_names() -> None:
    run = polyseme.fit(["iron ore"] * 30, 3, max_df=1.0)
    assert len({name.casefold() for name in run.topic_titles}) == 3
    assert all(run.topic_titles)


def test_phrases_are_shared_by_the_posterior_of_their_words(run: polyseme.Run) -> None:
    phrases, theta = run.phrases.phrases, np.asarray(run.doc_topic, dtype=np.float64)
    found = topic_documents_of_phrases(phrases, run.fitted.topic_word, theta)
    phi = np.asarray(run.fitted.topic_word, dtype=np.float64)
    for place in range(len(phrases.names)):
        joint = theta[phrases.documents[[place]].indices] * np.prod(phi[:, phrases.columns[[place]].indices], axis=1)
        np.testing.assert_allclose(found[place], (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), phrases.documents.sum(axis=1), rtol=1e-9)


def test_names_of_large_runs_come_from_a_sample(run: polyseme.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.runs.run.MAX_DOCUMENTS", 50)
    opened = polyseme.open_run(run.path)
    assert len(opened.phrases.rows) == 50
    assert opened.phrases.phrases.documents.shape[1] == 50
    assert sorted(name.split(", ")[0] for name in automatic_names(opened)) == ["Prime Minister", "hard drive"]
    sample = opened.sample(60)
    assert sample.phrases.phrases.documents.shape[1] == 50


def test_a_given_name_stays_with_its_topic_in_a_refit(run: polyseme.Run) -> None:
    named = run.edit(rename={0: "Zero", 1: "One"})
    words = {named.topic_titles[k]: set(named.topic_words(5)[k]) for k in range(2)}
    for again in (named.edit(refit=True), polyseme.open_run(run.path).update([text_of("politics", 5)], refit=True)):
        assert sorted(again.topic_names.values()) == ["One", "Zero"]
        for topic, name in again.topic_names.items():
            assert len(words[name] & set(again.topic_words(5)[topic])) >= 3


def test_a_name_is_moved_with_its_words_and_lost_without_them(run: polyseme.Run) -> None:
    from copy import copy
    from dataclasses import replace

    from polyseme.runs.changes import names_after_refit

    after = copy(run.model)
    after.fitted_ = replace(run.fitted, topic_word=run.fitted.topic_word[::-1])
    assert names_after_refit({"0": "a", "1": "b"}, run.model, after)["topic_names"] == {"1": "a", "0": "b"}
    other = np.roll(run.fitted.topic_word, 1, axis=1)
    other[0] = run.fitted.topic_word[0]
    after.fitted_ = replace(run.fitted, topic_word=other)
    if 0.5 * np.abs(other[1] - run.fitted.topic_word[1]).sum() > 0.5:
        assert names_after_refit({"0": "a", "1": "b"}, run.model, after)["topic_names"] == {"0": "a"}
