"""How new documents differ from those of a run."""

import json
from pathlib import Path

import numpy as np
import pytest

import polyseme
from cli_runner import run as run_command
from polyseme.core.shard import sparse_counts
from polyseme.datasets import synthetic_corpus
from polyseme.runs.drift import FIT, NEW_TOPICS, UPDATE, drift_of, reference_of

PLANTED = synthetic_corpus(1, n_topics=7, n_words=400, random_state=0).topic_word


def texts_of(topics: list[int], n_documents: int, seed: int) -> list[str]:
    corpus = synthetic_corpus(n_documents, topic_word=PLANTED[topics], doc_topic_prior=0.15, random_state=seed)
    return [document.text for document in corpus]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> polyseme.Run:
    place = tmp_path_factory.mktemp("drift") / "run"
    return polyseme.fit(texts_of(list(range(5)), 400, 1), 5, output=place, language=None, page=False)


def drift(run: polyseme.Run, texts: list[str]):
    return drift_of(run, run.vectorizer.transform(texts), texts)


def test_documents_of_the_same_topics_can_be_added(run: polyseme.Run) -> None:
    found = drift(run, texts_of(list(range(5)), 150, 2))
    assert found.advice == UPDATE
    assert found.n_new == 0
    assert found.ratio[0] < found.perplexity / found.old_perplexity < found.ratio[1]
    assert 0.9 < found.perplexity / found.old_perplexity < 1.1
    assert found.unknown < 0.05
    assert found.changed_topics == []


def test_a_new_topic_and_a_faded_one_are_found(run: polyseme.Run) -> None:
    found = drift(run, texts_of([0, 1, 2, 3, 5], 150, 3))
    assert found.advice == NEW_TOPICS
    assert found.n_new == 1
    assert found.perplexity > found.old_perplexity
    assert len(found.shares.faded) == 1
    assert found.shares.faded[0] in found.changed_topics


def test_words_that_the_run_does_not_have_need_a_new_fit(run: polyseme.Run) -> None:
    texts = [" ".join([*text.split()[:10], *["zeppelin", "airship"] * 5]) for text in texts_of(list(range(5)), 60, 4)]
    found = drift(run, texts)
    assert found.advice == FIT
    assert found.unknown == pytest.approx(0.5, abs=0.05)
    assert set(found.new_words[:2]) == {"zeppelin", "airship"}


def test_the_reference_has_a_fifth_of_the_documents_and_all_words(run: polyseme.Run) -> None:
    reference = reference_of(run)
    assert reference.counts.n_docs == 80
    np.testing.assert_allclose(reference.topic_word.sum(axis=1), 1, rtol=1e-5)
    assert (reference.topic_word[:, run.model.unigram_ > 0] > 0).all()
    rows = sparse_counts(run.counts, np.dtype(np.float32)).matrix().toarray()
    taken = reference.counts.matrix().toarray()
    assert {row.tobytes() for row in taken.astype(np.float32)} <= {row.tobytes() for row in rows.astype(np.float32)}


def test_evaluate_prints_the_comparison(run: polyseme.Run) -> None:
    place = Path(run.path).parent
    (place / "new.txt").write_text("\n".join(texts_of([0, 1, 2, 3, 5], 150, 5)), encoding="utf-8")
    result = run_command("evaluate", "run", "new.txt", "--json", cwd=place)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["drift"]
    assert found["advice"] == NEW_TOPICS
    assert [topic["topic"] for topic in found["topics"]] == list(range(5))
    shown = run_command("evaluate", "run", "new.txt", cwd=place).stdout
    assert "Recommended: polyseme update run --new-topics auto." in shown
    assert "Topics that fade: " in shown
    assert json.loads(run_command("evaluate", "run", "--json", cwd=place).stdout)["drift"] is None


def test_other_models_are_not_compared() -> None:
    texts = texts_of([0, 1], 60, 6)
    lda = polyseme.fit(texts, 2, model="lda", language=None)
    assert drift_of(lda, lda.vectorizer.transform(texts)) is None
