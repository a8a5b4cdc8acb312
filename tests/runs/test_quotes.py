"""Quotes of typical documents: the sentence that a topic explains best."""

import base64
import binascii
import csv

import numpy as np
import pytest
import scipy.sparse as sp

import polyseme
from polyseme.core.fitted import FittedTopics, TrainingDocuments
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.runs.quotes import MAX_LENGTH, find_quotes

WORDS = ["ship", "harbor", "cargo", "sailor", "butter", "onion", "soup", "garlic"]
SEA = "The ship left the harbor with a cargo of salt for a sailor."
SOUP = "She cooked a soup of butter, onion and garlic for all."


def count(texts):
    rows = [[sum(word.strip(".,。") == known for word in text.lower().split()) for known in WORDS] for text in texts]
    return sp.csr_array(np.array(rows, dtype=float).reshape(len(texts), len(WORDS)))


def quotes(texts, titles, topic=0, hidden=()):
    """Return quotes of documents that are half about the sea (topic 0) and half about the kitchen (topic 1)."""
    phi = np.repeat([[0.24, 0.01], [0.01, 0.24]], 4, axis=1)
    fitted = FittedTopics(
        phi, np.full(2, 0.5), np.full(8, 0.125), np.ones(2, dtype=bool), 1000.0, 50.0, MaximumLikelihood()
    )
    n = len(texts)
    documents = TrainingDocuments(np.full(n, 1 / n), np.full((n, 2), 0.5), np.zeros(n))
    rows = [list(range(n)), []][:: 1 if topic == 0 else -1]
    return find_quotes(fitted, documents, rows, texts.__getitem__, titles, count, hidden)[topic]


def quote(text, title="", topic=0, hidden=()):
    return quotes([text], [title], topic, hidden)[0]


def test_each_topic_quotes_its_own_sentence():
    text = f"It was a cold day, and nobody was there. {SOUP} {SEA} They slept."
    assert quote(text, topic=0) == SEA
    assert quote(text, topic=1) == SOUP


def test_a_quote_has_the_largest_score_by_the_formula():
    """Sentences of random words, whose scores are computed naively."""
    rng = np.random.default_rng(0)
    words = [rng.choice([*WORDS, "and", "of"], size) for size in rng.integers(6, 20, 30)]
    sentences = ["The " + " ".join(some) + "." for some in words]
    phi, theta = rng.dirichlet(np.ones(8), 2), np.array([[0.3, 0.7]])
    unigram = theta[0] @ phi
    fitted = FittedTopics(phi, theta[0], unigram, np.ones(2, dtype=bool), 500.0, 50.0, MaximumLikelihood())
    documents = TrainingDocuments(np.ones(1), theta, np.zeros(1))
    found = find_quotes(fitted, documents, [[0], [0]], lambda row: " ".join(sentences), [""], count)
    for topic in range(2):
        scores = []
        for some in words:
            columns = [WORDS.index(word) for word in sorted(set(some)) if word in WORDS]
            ratio = (500 * phi[topic] + 20) / (500 * unigram + 20)
            gains = [theta[0, topic] * phi[topic, w] / unigram[w] * np.log(ratio[w]) for w in columns]
            scores.append(sum(gains) / (len(some) + 1 + 10))
        assert found[topic] == [sentences[int(np.argmax(scores))]]
    assert found[0] != found[1]


def test_neither_a_fragment_nor_a_long_sentence_wins():
    long = "They said that " + "and then and there " * 8 + "the ship, the harbor, the cargo and the sailor were seen."
    assert quote(f"Ship harbor cargo.\n\n{long} {SEA}") == SEA
    assert quote(f"The ship ship ship ship ship ship ship ship ship. {SEA}") == SEA


def test_the_title_is_not_quoted():
    assert quote(f"{SEA}\n\nThe sailor was tired and went home early.", title=SEA.upper()) == (
        "The sailor was tired and went home early."
    )
    assert quote(SEA, title=SEA) == ""  # the title says it already


def test_two_documents_of_a_topic_have_different_quotes():
    other = "The sailor was tired and went home early."
    assert quotes([SEA, f"{SEA} {other}", SEA], ["", "", ""]) == [SEA, other, SEA]


def test_hidden_words_do_not_count():
    text = f"{SEA} The sailor was tired, and the soup was cold."
    hidden = [WORDS.index(word) for word in ("ship", "harbor", "cargo")]
    assert quote(text, hidden=hidden) != quote(text) == SEA


@pytest.mark.parametrize("mark", [" ", ", "])
def test_a_text_without_sentences_is_quoted_about_its_best_part(mark):
    words = ["salt"] * 200 + WORDS[:4] * 3 + ["salt"] * 200
    found = quote(mark.join(words))
    assert len(found) <= MAX_LENGTH
    assert found[:2] == "… "
    assert found[-2:] == " …"
    assert all(word in found for word in WORDS[:4])
    assert {word.strip(",") for word in found.strip("… ").split()} <= {"salt", *WORDS[:4]}  # no part of a word


@pytest.mark.parametrize(
    "lines",
    [
        [binascii.b2a_uu(bytes(range(row, row + 45))).decode().strip() for row in range(40)],
        [base64.b64encode(bytes(range(row, row + 45))).decode() for row in range(40)],
        [f"{row}   {row * 7 % 10}.5   ship   {row * row}   {row + 0.25}" for row in range(40)],
    ],
    ids=["uuencoded", "base64", "table"],
)
def test_encoded_data_and_tables_are_not_quoted(lines):
    assert quote("\n".join(lines)) == ""
    assert quote("\n".join([SEA, "", *lines])) == SEA


def test_an_empty_text_has_an_empty_quote():
    assert quote(" \n ") == ""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    texts = [f"{SEA} {'The ship and the cargo waited long. ' * (number % 3)}" for number in range(12)]
    texts += [f"{SOUP} {'The soup with garlic was hot again. ' * (number % 3)}" for number in range(12)]
    rows = [f"{number},=SUM({number}),{text!r}" for number, text in enumerate(texts)]
    path = tmp_path_factory.mktemp("quotes") / "texts.csv"
    path.write_text("\n".join(["id,title,text", *(row.replace("'", '"') for row in rows)]), encoding="utf-8")
    return polyseme.fit(path, 2, output=path.parent / "run", min_df=1, levels="none", page=False)


def test_a_run_returns_typical_documents_with_quotes(run):
    found = run.typical_documents(3)
    assert all(found)
    for topic, documents in enumerate(found):
        for document in documents:
            assert document.quote in run.texts[document.row]
            assert document.title == f"=SUM({document.row})"
            assert document.id == str(document.row)
            assert document.share == run.doc_topic[document.row, topic]
    assert [document.row for document in found[0]] == run.view.typical.documents[0][:3]
    sample = run.sample(6)
    assert all(
        document.quote in run.texts[sample.corpus.rows[document.row]]
        for documents in sample.typical_documents(1)
        for document in documents
    )


def test_the_table_of_topics_has_titles_and_quotes(run):
    with (run.path / "topics.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    typical = run.typical_documents(3)
    for row in rows:
        documents = typical[int(row["topic"])]
        assert row["quotes"] == " | ".join(document.quote for document in documents)
        assert row["documents"] == "'" + "; ".join(document.title for document in documents)


def test_a_run_without_texts_quotes_its_excerpts(run):
    bare = polyseme.fit([SEA + " Nobody knows why."] * 2 + [SOUP * 20], 2, keep_texts=False, min_df=1, levels="none")
    excerpts = bare.documents["excerpt"].to_list()
    quotes = [document for documents in bare.typical_documents() for document in documents]
    assert quotes
    assert all(document.quote.strip("… ") in excerpts[document.row] for document in quotes)
