"""Evaluation with judged queries: interpolated precision, unknown ids, and a real collection."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrieval_corpus
from polyseme import InputError
from polyseme.retrieval import evaluate_search
from polyseme.retrieval.evaluation import ELEVEN_POINTS, NINE_POINTS, interpolated_precision, whole_ranking
from real_data import DATA

ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed (dependency group test)")

QUERIES = {"q1": "car engine", "q2": "jaguar prey", "q3": "loan"}


@pytest.fixture(scope="module")
def index():
    return retrieval_corpus.index()


def theme_judgments():
    wanted = {"q1": "car", "q2": "animal", "q3": "money"}
    return {
        query: {f"d{row}": int(retrieval_corpus.theme_of(row) == theme) for row in range(59)}
        for query, theme in wanted.items()
    }


def test_interpolated_precision_of_an_example():
    """Three of four relevant documents at ranks 1, 3 and 6: precisions 1, 2/3, 1/2; the recall never reaches 1."""
    places = np.array([1, 3, 6])
    levels = np.array([0.0, 0.25, 0.26, 0.5, 0.75, 0.76, 1.0])
    expected = [1, 1, 2 / 3, 2 / 3, 1 / 2, 0, 0]
    np.testing.assert_allclose(interpolated_precision(places, 4, levels), expected)
    np.testing.assert_array_equal(interpolated_precision(np.array([], dtype=int), 4, levels), np.zeros(7))


@given(st.sets(st.integers(1, 60), max_size=12), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_interpolated_precision_is_that_of_ir_measures(found, missed):
    places = np.array(sorted(found), dtype=int)
    n_relevant = len(places) + missed
    if n_relevant == 0:
        with pytest.raises(InputError, match="at least one relevant"):
            interpolated_precision(places, 0, NINE_POINTS)
        return
    ours = interpolated_precision(places, n_relevant, ELEVEN_POINTS)
    np.testing.assert_allclose(ours, exact_interpolated_precision(places, n_relevant))
    names = [f"d{place}" for place in places] + [f"missed{i}" for i in range(missed)]
    run = {"q": {f"d{place}": float(-place) for place in range(1, 61)}}
    # trec_eval rounds in floats, int(level * relevant + 0.9): 0.7 of 3 becomes 2, which is not a recall of 0.7
    levels = [step / 10 for step in range(11) if int(step / 10 * n_relevant + 0.9) == -(-step * n_relevant // 10)]
    measures = [ir_measures.IPrec @ level for level in levels]
    theirs = ir_measures.calc_aggregate(measures, {"q": dict.fromkeys(names, 1)}, run)
    same = [round(10 * level) for level in levels]
    np.testing.assert_allclose(ours[same], [theirs[measure] for measure in measures], atol=1e-9)


def exact_interpolated_precision(places, n_relevant):
    """Return the interpolated precision at recall 0.0, 0.1 ... 1.0, with exact integer comparisons."""
    return [
        max([i / place for i, place in enumerate(places, 1) if 10 * i >= step * n_relevant], default=0.0)
        for step in range(11)
    ]


def test_measures_of_a_perfect_and_of_a_useless_ranking(index):
    perfect = evaluate_search(
        index, {"q1": "car automobile engine wheel driver road brake"}, theme_judgments(), method="tf"
    )
    assert perfect["MAP"] == pytest.approx(1)
    assert perfect["9-point"] == perfect["11-point"] == pytest.approx(1)
    assert perfect["P@10"] == perfect["nDCG@10"] == perfect["R@100"] == pytest.approx(1)
    useless = evaluate_search(index, {"q1": "zebra"}, theme_judgments(), method="tf")
    assert set(useless.measures.values()) == {0.0}


def test_means_are_over_the_judged_queries(index):
    result = evaluate_search(index, QUERIES, theme_judgments(), method="tfidf")
    assert result.n_queries == 3
    assert set(result.by_query) == set(QUERIES)
    for name, value in result.measures.items():
        assert value == pytest.approx(np.mean([result.by_query[query][name] for query in QUERIES]))
        assert result[name] == value


def test_average_precision_is_that_of_the_search_results(index):
    """Also with ties, and with graded or negative judgments; above 0 is relevant."""
    qrels = {"q1": {"d0": 3, "d9": 1, "d12": -1, "d1": 0}}
    result = evaluate_search(index, QUERIES, qrels, method="tf")
    ranking = [hit.id for hit in index.search(QUERIES["q1"], 100, method="tf")]
    places = sorted(ranking.index(name) + 1 for name in ("d0", "d9"))
    assert result["MAP"] == pytest.approx((1 / places[0] + 2 / places[1]) / 2)
    assert result.unjudged_queries == ["q2", "q3"]


def test_unknown_ids_are_reported_and_count_as_not_found(index):
    qrels = theme_judgments()
    known = evaluate_search(index, QUERIES, qrels, method="tf")
    qrels["q1"]["nowhere"] = 1
    qrels["q9"] = {"d1": 1}
    result = evaluate_search(index, QUERIES, qrels, method="tf")
    assert result.unknown_documents == ["nowhere"]
    assert result.unknown_queries == ["q9"]
    assert result.n_queries == 3
    assert result["MAP"] < known["MAP"]
    assert known.unknown_documents == known.unknown_queries == known.unjudged_queries == []
    with pytest.raises(InputError, match="No query has a relevant document"):
        evaluate_search(index, QUERIES, {"q9": {"d1": 1}})
    with pytest.raises(InputError, match="No query has a relevant document"):
        evaluate_search(index, {}, {})


def test_ids_may_be_numbers(index):
    assert evaluate_search(index, {1: "car"}, {1: {"d0": 1}}, method="tf").n_queries == 1


def test_a_whole_ranking_includes_negative_scores():
    assert whole_ranking(np.array([0.5, -0.1, 0.0, 0.5, 0.7])).tolist() == [4, 0, 3, 1]


def collection(name):
    folder = DATA / "ir" / name
    if not (folder / "docs.jsonl.gz").is_file():
        pytest.skip(f"no {folder} (set POLYSEME_DATA to the data folder)")
    from sklearn.feature_extraction.text import CountVectorizer

    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
        docs = [json.loads(line) for line in file]
    queries = {row["id"]: row["text"] for row in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())}
    qrels = {}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, doc, rel = line.split("\t")
        qrels.setdefault(query, {})[doc] = int(int(rel) != 0)
    vectorizer = CountVectorizer(stop_words="english")
    X = vectorizer.fit_transform([doc["text"] for doc in docs])
    from polyseme.retrieval import SearchIndex

    return SearchIndex(X, vectorizer.get_feature_names_out(), ids=[doc["id"] for doc in docs]), queries, qrels


@pytest.mark.slow
def test_plsi_beats_term_matching_and_lsi_on_medline():
    """With one of the five models; reproductions/hofmann_1999.py has the whole table."""
    index, queries, qrels = collection("med")
    index.fit_lsi(96, weighting="tf").fit_models((32,), random_state=0)
    found = {
        method: evaluate_search(index, queries, qrels, method=method)["9-point"] for method in ("tf", "lsi", "bm25")
    }
    found["plsi*"] = evaluate_search(index, queries, qrels, term="tf")["9-point"]
    with_bm25 = evaluate_search(index, queries, qrels, term="bm25")["MAP"]
    assert found["plsi*"] > found["lsi"] + 0.05
    assert found["plsi*"] > found["bm25"] + 0.05
    assert with_bm25 >= evaluate_search(index, queries, qrels, method="bm25")["MAP"]
