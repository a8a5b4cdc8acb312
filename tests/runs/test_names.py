"""Names of topics: made of phrases and words, given by people and by functions."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.runs.names import automatic_names, read_names, topic_documents_of_phrases

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
    assert list(run.info.automatic_names) == run.topic_titles
    assert [topic.name for topic in run.topics()] == run.topic_titles
    assert all(name in (run.path / "topics.csv").read_text(encoding="utf-8") for name in names)
    assert f"0 {run.topic_titles[0]}" in run.transform(["hard drive"]).columns
    assert run.search("drive", topic=names[0].upper()).hits


def test_plots_of_a_run_have_names(run: polyseme.Run) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from polyseme.plots import plot_map, plot_topics

    run.store.info = replace(run.info, topic_names={0: "Cost in $"}, hidden_words=("monitor", "budget"))
    panels, ax = plot_topics(run, n_words=3), plot_map(run)
    labels = {label.get_text() for panel in panels.flat for label in panel.get_yticklabels()}
    assert labels == {word for words in run.topic_words(3) for word in words}
    assert sorted(panel.get_title().split("   ")[0] for panel in panels.flat) == [
        r"0 Cost in \$",
        f"1 {run.topic_titles[1]}",
    ]
    assert [text.get_text() for text in ax.texts] == [r"0 Cost in \$", f"1 {run.topic_titles[1].split(', ')[0]}"]
    matplotlib.pyplot.close("all")


def test_names_are_read_not_made_again(run: polyseme.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.text.vectorizer.find_topic_phrases", lambda *_: pytest.fail("the texts were read"))
    opened = polyseme.open_run(run.path)
    assert opened.topic_titles == run.topic_titles
    renamed = opened.edit(rename={0: "First"})
    assert renamed.topic_titles == ["First", run.topic_titles[1]]
    assert renamed.edit(rename={0: ""}).topic_titles == run.topic_titles
    updated = renamed.update([text_of("computer", 3)])  # of the run in the folder
    assert updated.topic_titles == run.topic_titles


def test_new_names_without_texts_have_three_words(run: polyseme.Run) -> None:
    without = polyseme.fit(TEXTS, 2, keep_texts=False, max_df=1.0)
    assert without.topic_titles == run.topic_titles  # the texts were there when the topics were named
    edited = without.edit(ban=["drive"])
    computers = next(k for k, name in enumerate(without.topic_titles) if "hard drive" in name)
    assert edited.topic_titles[1 - computers] == without.topic_titles[1 - computers]
    assert edited.topic_titles[computers] == ", ".join(edited.topic_words(3)[computers])


def test_a_name_avoids_the_words_of_the_topic_above_and_other_names(run: polyseme.Run) -> None:
    unnamed = ["", ""]
    names = automatic_names(run.view, unnamed)
    children = automatic_names(run.view, unnamed, parents=names)
    for name, child in zip(names, children, strict=True):
        assert not {part.lower() for part in name.split(", ")} & {part.lower() for part in child.split(", ")}
    run.store.info = replace(run.info, topic_names={0: names[1].upper()})
    again = automatic_names(run.view, unnamed)
    assert again[1] == names[1] + again[1].removeprefix(names[1])
    assert len(again[1].split(", ")) == 4  # a further word
    assert automatic_names(run.view, ["kept", ""])[0] == "kept"


def test_equal_topics_get_different_names() -> None:
    with pytest.warns(UserWarning, match="near-duplicates"):
        run = polyseme.fit(["iron ore"] * 30, 3, max_df=1.0)
    assert len({name.casefold() for name in run.topic_titles}) == 3
    assert all(run.topic_titles)


def test_phrases_are_shared_by_the_posterior_of_their_words(run: polyseme.Run) -> None:
    phrases, theta = run.view.corpus.phrases.phrases, np.asarray(run.doc_topic, dtype=np.float64)
    found = topic_documents_of_phrases(phrases, run.view.fitted.topic_word, theta)
    phi = np.asarray(run.view.fitted.topic_word, dtype=np.float64)
    for place in range(len(phrases.names)):
        joint = theta[phrases.documents[[place]].indices] * np.prod(phi[:, phrases.columns[[place]].indices], axis=1)
        np.testing.assert_allclose(found[place], (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), phrases.documents.sum(axis=1), rtol=1e-9)


def test_names_of_large_runs_come_from_a_sample(run: polyseme.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.runs.corpus.MAX_DOCUMENTS", 50)
    opened = polyseme.open_run(run.path)
    assert len(opened.view.corpus.phrases.rows) == 50
    assert opened.view.corpus.phrases.phrases.documents.shape[1] == 50
    assert sorted(name.split(", ")[0] for name in automatic_names(opened.view)) == ["Prime Minister", "hard drive"]
    sample = opened.sample(60)
    assert sample.corpus.phrases.phrases.documents.shape[1] == 50


def test_a_given_name_stays_with_its_topic_in_a_refit(run: polyseme.Run) -> None:
    named = run.edit(rename={0: "Zero", 1: "One"})
    words = {named.topic_titles[k]: set(named.topic_words(5)[k]) for k in range(2)}
    for again in (named.edit(refit=True), polyseme.open_run(run.path).update([text_of("politics", 5)], refit=True)):
        assert sorted(again.info.topic_names.values()) == ["One", "Zero"]
        for topic, name in again.info.topic_names.items():
            assert len(words[name] & set(again.topic_words(5)[topic])) >= 3


def test_a_name_is_moved_with_its_words_and_lost_without_them(run: polyseme.Run) -> None:
    from copy import copy
    from dataclasses import replace

    from polyseme.runs.changes import names_after_refit

    after = copy(run.model)
    after._fitted = replace(run.view.fitted, topic_word=run.view.fitted.topic_word[::-1])
    assert names_after_refit({0: "a", 1: "b"}, [], run.model, after)["topic_names"] == {1: "a", 0: "b"}
    other = np.roll(run.view.fitted.topic_word, 1, axis=1)
    other[0] = run.view.fitted.topic_word[0]
    after._fitted = replace(run.view.fitted, topic_word=other)
    if 0.5 * np.abs(other[1] - run.view.fitted.topic_word[1]).sum() > 0.5:
        assert names_after_refit({0: "a", 1: "b"}, [], run.model, after)["topic_names"] == {0: "a"}


# namers


def test_a_function_names_topics_and_each_name_is_stored(run: polyseme.Run) -> None:
    calls = []

    def namer(words: list[str], documents: list[str], *, parent: str | None, siblings: list[str]) -> str:
        calls.append((words, documents, parent, siblings))
        stored = polyseme.open_run(run.path).info.topic_names
        return f' "Subject {len(stored)}"\n'

    named = run.name_topics(namer)
    order = np.argsort(-run.view.fitted.topic_weights, kind="stable").tolist()
    assert named.info.topic_names == {topic: f"Subject {place}" for place, topic in enumerate(order)}
    assert polyseme.open_run(run.path).topic_titles == named.topic_titles
    assert "Subject 1" in (run.path / "topics.csv").read_text(encoding="utf-8")
    words, documents, parent, siblings = calls[0]
    assert words == run.topic_words()[order[0]]
    assert len(documents) == 3
    assert all(PHRASES["computer" if "drive" in words else "politics"] in text for text in documents)
    assert parent is None
    assert siblings == [run.topic_titles[order[1]]]
    assert calls[1][3] == ["Subject 0"]
    assert named.info.edits[-1].rename == named.info.topic_names
    assert (
        named.name_topics(lambda *_, **__: pytest.fail("the topics have names")).info.topic_names
        == named.info.topic_names
    )
    again = named.name_topics(lambda *_, siblings, **__: f"Again {len(siblings)}", overwrite=True)
    assert set(again.info.topic_names.values()) == {"Again 1"}


BAD_NAMES = {
    "markup": "<script>alert(1)</script>",
    "several lines": "one\ntwo",
    "is empty": "  ",
    "not a string": None,
    "more than 80": "x" * 81,
}


@pytest.mark.parametrize("reason", BAD_NAMES)
def test_an_invalid_name_leaves_the_phrase(run: polyseme.Run, reason: str) -> None:
    with pytest.warns(UserWarning, match=rf"did not name all topics.*topic \d \(.*{reason}"):
        named = run.name_topics(lambda *_, **__: BAD_NAMES[reason])
    assert named.topic_titles == run.topic_titles


def test_a_function_that_raises_leaves_the_phrase_of_this_topic_only(run: polyseme.Run) -> None:
    def namer(words: list[str], documents: list[str], **_: object) -> str:
        if "drive" in words:
            raise ConnectionError("no\nanswer")
        return "Politics"

    with pytest.warns(UserWarning, match=r"topic \d \(ConnectionError: no answer\)"):
        named = run.name_topics(namer)
    computers = next(k for k, words in enumerate(run.topic_words()) if "drive" in words)
    assert named.topic_titles[computers] == run.topic_titles[computers]
    assert named.topic_titles[1 - computers] == "Politics"


def test_an_interrupt_keeps_the_names_so_far(run: polyseme.Run) -> None:
    answers = iter(["First"])

    def namer(*_: object, **__: object) -> str:
        try:
            return next(answers)
        except StopIteration:
            raise KeyboardInterrupt from None

    with pytest.warns(UserWarning, match="Ctrl-C stopped it before 1 topic"):
        named = run.name_topics(namer)
    assert list(named.info.topic_names.values()) == ["First"]
    assert polyseme.open_run(run.path).info.topic_names == named.info.topic_names
    rest = named.name_topics(lambda *_, **__: "Second")
    assert sorted(rest.info.topic_names.values()) == ["First", "Second"]


HANGING_NAMER = """
import sys, time
import polyseme

names = iter(["First"])

def namer(words, documents, *, parent, siblings):
    for name in names:
        return name
    print("waiting", flush=True)
    time.sleep(600)

print(polyseme.open_run(sys.argv[1]).name_topics(namer).info.topic_names)
"""


def test_ctrl_c_ends_a_namer_that_hangs_and_keeps_the_names_so_far(run: polyseme.Run) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGING_NAMER, str(run.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # workers of pytest ignore it
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Ctrl-C stopped it before 1 topic" in errors
    assert "First" in output
    assert list(polyseme.open_run(run.path).info.topic_names.values()) == ["First"]


def test_a_fit_takes_a_namer(tmp_path: Path) -> None:
    run = polyseme.fit(TEXTS, 2, namer=["One", None], max_df=1.0, output=tmp_path / "run")
    assert run.topic_titles == ["One", run.info.automatic_names[1]]
    temporary = polyseme.fit(TEXTS, 2, namer=lambda words, *_, **__: words[0].title(), max_df=1.0)
    assert temporary.topic_titles == [words[0].title() for words in temporary.topic_words(1)]
    with pytest.warns(UserWarning, match="keep their automatic names: namer= has a name for topic 99"):
        chosen = polyseme.fit(TEXTS, namer={99: "x"}, max_df=1.0)
    assert chosen.topic_titles == list(chosen.info.automatic_names)
    assert temporary.name_topics({0: ""}).topic_titles[0] == temporary.info.automatic_names[0]


@pytest.mark.parametrize(
    ("namer", "sentence"),
    [
        ({2: "x"}, "a name for topic 2, which does not exist: the run has topics 0 to 1"),
        ({-1: "x"}, "a name for topic -1"),
        ({"0": "x"}, "topic numbers as keys, got '0'"),
        (["x"], "one name for each of the 2 topics, got 1"),
        (b"names", "must be a function, a dict"),
        (3, "must be a function, a dict"),
        ({0: 5}, "topic 0 needs another name: the name is a int"),
    ],
)
def test_wrong_namers_are_refused_before_any_work(run: polyseme.Run, namer: object, sentence: str) -> None:
    with pytest.raises(polyseme.InputError, match=sentence):
        run.name_topics(namer)  # type: ignore[arg-type]
    with pytest.raises(polyseme.InputError, match=sentence):
        polyseme.fit((pytest.fail("a text was read") for _ in "a"), 2, namer=namer)  # type: ignore[arg-type]
    assert polyseme.open_run(run.path).info.topic_names == {}


def test_an_answer_to_the_prompt_is_read_back(run: polyseme.Run) -> None:
    prompt = run.naming_prompt()
    assert all(f"Words: {', '.join(words)}" in prompt for words in run.topic_words())
    assert prompt.count("Document: ") == 6
    answer = 'Here are the names:\n```\n0: "Space flight"\n- **Topic 1**: **Politics: the state**\n```\nDone.'
    assert read_names(answer).names == {0: "Space flight", 1: "Politics: the state"}
    assert read_names('```json\n{"1": "Politics"}\n```').names == {1: "Politics"}
    assert run.name_topics(answer).topic_titles == ["Space flight", "Politics: the state"]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("I cannot do this.", "There are no names"),
        ("0: a\n0: b", "Topic 0 has two names"),
        ("0: <b>a</b>", "Topic 0 needs another name: the name has markup"),
        ("{0: a}", "not a JSON object"),
        ('{"first": "a"}', "'first' is not the number of a topic"),
    ],
)
def test_answers_that_cannot_be_read(answer: str, sentence: str) -> None:
    with pytest.raises(polyseme.InputError, match=sentence):
        read_names(answer)


def test_a_banned_word_is_in_no_name_after_a_refit(run: polyseme.Run) -> None:
    banned = run.edit(ban=["drive"]).edit(refit=True)
    assert not any("drive" in name for name in banned.topic_titles)
    assert not any("drive" in name for name in automatic_names(banned.view, ["", ""]))


def test_months_and_numbers_are_in_no_name() -> None:
    texts = [text.replace("hard drive", "April 1986 pct") for text in TEXTS]
    names = polyseme.fit(texts, 2, max_df=1.0).topic_titles
    assert not any(part in name.lower() for part in ("april", "1986", "pct") for name in names)
    without_texts = polyseme.fit(texts, 2, max_df=1.0, keep_texts=False).edit(ban=["disk", "senate"])
    assert not any(part in name.lower() for part in ("april", "1986", "pct") for name in without_texts.topic_titles)


def test_a_longer_form_of_the_name_above_is_no_name(run: polyseme.Run) -> None:
    computers = next(k for k, name in enumerate(run.topic_titles) if "hard drive" in name)
    parents = ["", ""]
    parents[computers] = "hard drive"
    assert "hard" not in automatic_names(run.view, ["", ""], parents=parents)[computers]


@pytest.mark.parametrize(
    "text",
    [
        "1. Technology\n2. Sport",
        "1) Technology\n2) Sport",
        "| Topic | Name |\n|---|---|\n| 1 | Technology |\n| 2 | Sport |",
    ],
)
def test_names_are_read_from_lists_and_tables(text: str) -> None:
    assert read_names(text).names == {1: "Technology", 2: "Sport"}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Here they are.\n\n1. Technology\n2. Sport", ["names of 2 topics in lines 3-4.", "line 1, 'Here they are.'"]),
        ("| Topic | Name |\n|---|---|\n| 1 | Technology |\n| 2 | Sport |\n", ["in lines 3-4.", "line 1, '| Topic"]),
        ("**1: Technology**\n```\nor so\n```\n**2: Sport**", ["in lines 1, 5.", "line 3, 'or so'"]),
        ('Names:\n```json\n{"1": "Technology",\n"2": "Sport"}\n```\nDone', ["a JSON object.", "line 1, ", "line 6, "]),
        ("1: Technology\n2: Sport\n" + "no\n" * 7, ["in lines 1-2.", *["'no'"] * 5, "and 2 more lines"]),
    ],
)
def test_lines_with_and_without_names_are_told(text: str, lines: list[str]) -> None:
    answer = read_names(text)
    assert answer.names == {1: "Technology", 2: "Sport"}
    notes = answer.notes("answer.txt")
    assert len(notes) == len(lines)
    assert all(line in note for line, note in zip(lines, notes, strict=True)), notes
