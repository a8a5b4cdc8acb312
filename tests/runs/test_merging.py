"""Merging of runs: topics, words, documents, names, levels and files; runs that cannot be merged."""

import json
from pathlib import Path

import numpy as np
import pytest

import polyseme
from cli_runner import run as run_command
from polyseme import InputError
from polyseme.datasets import synthetic_corpus
from polyseme.errors import UnsupportedError
from polyseme.metrics import align, label_agreement
from polyseme.runs import merge

PLANTED = synthetic_corpus(1, n_topics=7, n_words=400, random_state=0).topic_word


def rows_of(topics: list[int], n_documents: int, seed: int) -> list[dict[str, str]]:
    corpus = synthetic_corpus(n_documents, topic_word=PLANTED[topics], doc_topic_prior=0.15, random_state=seed)
    return [
        {"id": f"s{seed}-{row}", "text": document.text, "time": f"19{seed:02d}", "title": f"Title {seed} {row}"}
        for row, document in enumerate(corpus)
    ]


FIRST, SECOND = rows_of([0, 1, 2, 3], 300, 1), rows_of([1, 2, 3, 4, 5], 300, 2)


def fit(folder: Path, name: str, rows: list[dict[str, str]], n_topics: int, **options: object) -> polyseme.Run:
    file = folder / f"{name}.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return polyseme.fit(file, n_topics, output=folder / name, **{"language": None, **options})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("merging")
    fit(place, "first", FIRST, 4).name_topics({0: "Zero"})
    fit(place, "second", SECOND, 5).search(SECOND[0]["text"].split()[0])
    return place


@pytest.fixture(scope="module")
def runs(place: Path) -> list[polyseme.Run]:
    return [polyseme.open_run(place / name) for name in ("first", "second")]


@pytest.fixture(scope="module")
def merged(place: Path, runs: list[polyseme.Run]) -> polyseme.Run:
    return merge(runs, place / "merged")


def planted_of(run: polyseme.Run) -> list[int]:
    """Return the planted topic that each topic of a run is nearest to."""
    corpus = synthetic_corpus(1, topic_word=PLANTED)
    column = {word: number for number, word in enumerate(corpus.words)}
    topics = np.zeros((run.model.n_components, len(column)))
    topics[:, [column[word] for word in run.vocabulary]] = run.model.components_
    return [int(np.abs(PLANTED - topic).sum(axis=1).argmin()) for topic in topics]


def test_equal_topics_are_joined_by_weight_and_the_others_kept(runs: list[polyseme.Run], merged: polyseme.Run) -> None:
    first = runs[0]
    assert sorted(planted_of(merged)) == [0, 1, 2, 3, 4, 5]
    assert planted_of(merged)[:4] == planted_of(first)
    column = {word: number for number, word in enumerate(merged.vocabulary)}
    parts = []
    for run in runs:
        topics = np.zeros((run.model.n_components, len(column)))
        topics[:, [column[word] for word in run.vocabulary]] = run.model.components_
        parts.append((planted_of(run), topics, run.model.topic_weights_ * run.view.fitted.n_tokens))
    for k, planted in enumerate(planted_of(merged)):
        found = [
            (part[1][part[0].index(planted)], part[2][part[0].index(planted)]) for part in parts if planted in part[0]
        ]
        expected = sum(words * tokens for words, tokens in found) / sum(tokens for _, tokens in found)
        np.testing.assert_allclose(merged.model.components_[k], expected, atol=1e-6)
    assert merged.topic_titles[0] == "Zero"
    assert merged.topic_titles[:4] == first.topic_titles
    assert len(set(merged.topic_titles)) == 6
    assert [runs[0].info, runs[1].info] == [polyseme.open_run(run.path).info for run in runs]


def test_words_and_documents_are_united(runs: list[polyseme.Run], merged: polyseme.Run) -> None:
    first, second = runs
    assert set(merged.vocabulary) == {*first.vocabulary, *second.vocabulary}
    assert list(merged.vocabulary) == sorted(merged.vocabulary)
    documents = merged.documents
    rows = [*FIRST, *SECOND]
    assert documents["id"].to_list() == [row["id"] for row in rows]
    assert documents["title"].to_list() == [row["title"] for row in rows]
    assert documents["time"].to_list() == [row["time"] for row in rows]
    assert merged.texts == [row["text"] for row in rows]
    np.testing.assert_array_equal(merged.counts.toarray(), merged.vectorizer.transform(merged.texts).toarray())
    assert merged.places.shape == (600, 2)
    assert (merged.path / "explorer.html").is_file()
    assert (merged.path / "search.safetensors").is_file()
    ids = [hit.id for hit in merged.search(SECOND[5]["text"], 3)]
    assert ids[0] == SECOND[5]["id"]


def test_two_halves_agree_with_the_whole(tmp_path: Path) -> None:
    rows = rows_of([0, 1, 2, 3, 4], 600, 3)
    whole = fit(tmp_path, "whole", rows, 5)
    merged = merge([fit(tmp_path, "odd", rows[::2], 5), fit(tmp_path, "even", rows[1::2], 5)])
    assert merged.model.n_components == 5
    column = {word: number for number, word in enumerate(whole.vocabulary)}
    shared = [number for number, word in enumerate(merged.vocabulary) if word in column]
    topics = merged.model.components_[:, shared]
    _, distance = align(whole.model.components_[:, [column[merged.vocabulary[number]] for number in shared]], topics)
    assert distance.max() < 0.2
    assert merged.model.log_likelihood_ > whole.model.log_likelihood_ - 0.1
    order = {name: row for row, name in enumerate(merged.documents["id"])}
    same = merged.doc_topic[[order[row["id"]] for row in rows]]
    labels = whole.doc_topic.argmax(axis=1)
    assert label_agreement(same, labels).nmi > 0.85


def test_a_document_of_both_runs_is_kept_once_and_clashing_ids_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = fit(tmp_path, "first", FIRST[:100], 3, levels="none")
    rows = [*FIRST[80:100], *SECOND[:60]]
    rows[20] = {**rows[20], "id": FIRST[3]["id"]}
    file = tmp_path / "first.jsonl"  # a document is known by its id and its file
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    second = polyseme.fit(file, 3, output=tmp_path / "second", language=None, levels="none")
    merged = merge([first, second], verbose=1)
    assert merged.info.documents == 160
    ids = merged.documents["id"].to_list()
    assert ids.count(FIRST[3]["id"]) == 2
    assert len(set(merged.view.corpus.ids)) == 160
    assert merged.documents["source"][100] == f"second/{first.documents['source'][0]}"
    assert "1 document of" in capsys.readouterr().err


def test_runs_of_the_same_documents_are_merged() -> None:
    texts = ["red wine cheese bread", "bass guitar drums song", "car road wheel engine"] * 4
    three, one = (polyseme.fit(texts, n_topics, language=None, random_state=0) for n_topics in (3, 1))
    merged = merge([three, one])
    assert merged.info.documents == len(texts)
    assert merged.info.model.n_topics == 4  # the only topic of the second run overlaps with the others by a third
    assert merged.info.fitted_to == ((0, len(texts)),) * 4


def test_new_topics_are_found_in_a_merged_run(runs: list[polyseme.Run], merged: polyseme.Run) -> None:
    """The test needs the documents that each topic was fitted to."""
    spans = dict(zip(planted_of(merged), merged.info.fitted_to, strict=True))
    assert spans[0] == (0, 300)
    assert spans[5] == (300, 600)
    assert spans[2] == (0, 600)
    copy = merged.save(merged.path.with_name("copy"))
    updated = copy.update([row["text"] for row in rows_of([0, 1, 2, 3, 4, 6], 150, 4)], new_topics="auto")
    assert len(updated.info.updates[-1].new_topics) == 1


def test_stems_are_joined_whatever_form_is_shown(tmp_path: Path) -> None:
    one = ["dogs bark loudly and dogs run", "a cat sleeps", "dogs and cats", "running dogs bark"] * 6
    other = ["the dog barks", "a dog ran and a dog barked", "cats sleep and cats purr", "purring cats"] * 6
    runs = [
        polyseme.fit([f"{text} n{k}" for k, text in enumerate(texts)], 2, language="english", max_df=1.0, levels="none")
        for texts in (one, other)
    ]
    assert "dogs" in runs[0].vocabulary
    assert "dog" in runs[1].vocabulary
    merged = merge(runs)
    assert "dogs" in merged.vocabulary
    assert "dog" not in merged.vocabulary
    column = list(merged.vocabulary).index("dogs")
    expected = [sum(word.startswith("dog") for word in text.split()) for text in merged.texts]
    assert merged.counts[:, [column]].toarray().ravel().tolist() == expected


def test_edits_follow(tmp_path: Path) -> None:
    first = fit(tmp_path, "first", FIRST[:150], 3, levels="none")
    second = fit(tmp_path, "second", SECOND[:150], 3, levels="none")
    hidden, removed = first.vocabulary[3], first.vocabulary[5]
    first = first.edit(ban=[removed], refit=True).edit(ban=[hidden])
    merged = merge([first, second])
    assert removed not in merged.vocabulary
    assert merged.info.hidden_words == (hidden,)
    assert hidden in merged.vocabulary
    assert not {hidden, removed} & {word for words in merged.topic_words(50) for word in words}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": "lda"}, UnsupportedError, "only runs of plsa can be merged"),
        ({"background": 0.2}, UnsupportedError, "has a background or a temperature"),
        ({"keep_texts": False}, InputError, "does not store its texts"),
        ({"language": "english"}, InputError, "no language and english: merge runs of the same language"),
        ({"keep_numbers": True}, InputError, "have other word rules"),
        ({"phrases": True}, InputError, "have other word rules"),
    ],
)
def test_runs_that_cannot_be_merged(
    tmp_path: Path, runs: list[polyseme.Run], options: dict[str, object], error: type[Exception], message: str
) -> None:
    other = fit(tmp_path, "other", FIRST[:60], 2, **{"levels": None, **options})
    with pytest.raises(error, match=message):
        merge([runs[0], other], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    assert not list(tmp_path.glob(".*part"))


def test_phrases_and_single_runs_are_refused(tmp_path: Path, runs: list[polyseme.Run]) -> None:
    with pytest.raises(InputError, match="give at least two runs"):
        merge(runs[:1])
    other = [fit(tmp_path, name, FIRST[:60], 2, phrases=True, levels="none") for name in ("one", "two")]
    with pytest.raises(UnsupportedError, match="has phrases"):
        merge(other)


def test_the_command(place: Path, merged: polyseme.Run) -> None:
    result = run_command("merge", "first", "second", "-o", "both", cwd=place)
    assert result.exit_code == 0, result.stderr
    assert "3 topics of several runs joined; 0 documents of several runs kept once." in result.stdout
    both = polyseme.open_run(place / "both")
    np.testing.assert_array_equal(both.model.components_, merged.model.components_)
    result = run_command("merge", "first", "second", "-o", "both", cwd=place)
    assert result.exit_code == 1
    assert "both is already a run" in result.stderr
    found = json.loads(run_command("merge", "first", "first", "-o", "twice", "--json", cwd=place).stdout)
    assert [found["joined"], found["repeated"], found["documents"]] == [4, 300, 300]
