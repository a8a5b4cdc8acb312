"""Evaluation with judged queries: interpolated precision, unknown ids, and a real collection."""

import gzip
import json
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrieval_corpus
from polyseme import InputError
from polyseme.errors import MissingExtraError
from polyseme.retrieval import (
    evaluate_rankings,
    evaluate_search,
    rank_documents,
    write_qrels,
    write_trec_run,
)
from polyseme.retrieval.evaluation import (
    ELEVEN_POINTS,
    NINE_POINTS,
    interpolated_precision,
    randomization_test,
    read_qrels,
    read_trec_run,
    whole_ranking,
)
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


def test_intervals_are_those_of_a_bootstrap(index):
    """Compare with the same bootstrap in a loop; the values of a query never leave the interval of the queries."""
    result = evaluate_search(index, QUERIES, theme_judgments(), method="tfidf")
    values = np.array([result.by_query[name]["MAP"] for name in QUERIES])
    low, high = result.intervals()["MAP"]
    means = sorted(np.mean(choice) for choice in product(values, repeat=3))  # 27 equally likely samples
    assert means[0] <= low <= result["MAP"] <= high <= means[-1]
    assert result.intervals() == result.intervals(random_state=0)
    narrow = result.intervals(0.5)["MAP"]
    assert low <= narrow.low <= narrow.high <= high
    with pytest.raises(InputError, match="confidence must be a number between 0 and 1, got 95"):
        result.intervals(95)
    single = evaluate_search(index, {"q1": "car"}, theme_judgments(), method="tf")
    assert np.isnan(single.intervals()["MAP"].low)
    assert "needs two queries" in str(single)


def test_the_interval_covers_the_mean_of_the_population():
    """95% intervals of means of 40 draws from a beta distribution contain its mean in about 95% of 200 cases."""
    rng = np.random.default_rng(0)
    from polyseme.retrieval.evaluation import _bootstrap

    intervals = _bootstrap(rng.beta(1, 2, size=(40, 200)), 0.95, 0)
    inside = np.mean([low <= 1 / 3 <= high for low, high in intervals])
    assert 0.88 <= inside <= 0.99


def test_the_randomization_test_counts_all_signs():
    differences = [0.3, -0.1, 0.2, 0.0, 0.4]
    sums = [abs(np.dot(signs, differences)) for signs in product((1, -1), repeat=5)]
    expected = np.mean([total >= abs(sum(differences)) - 1e-12 for total in sums])
    assert randomization_test(differences) == pytest.approx(expected)
    assert randomization_test([0.0, 0.0]) == randomization_test([]) == 1.0
    assert randomization_test([0.1] * 16) == 2 / 2**16
    with pytest.raises(InputError, match="differences must be finite"):
        randomization_test([np.nan, 1.0])


def test_the_randomization_test_samples_signs_of_many_queries():
    rng = np.random.default_rng(0)
    differences = rng.normal(0.1, 0.5, size=60)
    by_chance = randomization_test(differences)
    assert by_chance == randomization_test(-differences, random_state=0)
    from scipy.stats import ttest_1samp

    assert by_chance == pytest.approx(ttest_1samp(differences, 0).pvalue, abs=0.01)
    assert randomization_test(differences + 10) == pytest.approx(1 / 100_001)


def test_tables_of_one_method_and_of_two(index):
    first = evaluate_search(index, QUERIES, theme_judgments(), method="tf")
    second = evaluate_search(index, {**QUERIES, "q2": "zebra"}, theme_judgments(), method="tfidf")
    lines = str(first).splitlines()
    assert lines[0] == "tf           mean  95% interval over 3 queries"
    assert lines[1] == f"MAP        {first['MAP']:6.3f}  {first.intervals()['MAP'].low:.3f} to " + (
        f"{first.intervals()['MAP'].high:.3f}"
    )
    comparison = first.compare(second)
    row = comparison["MAP"]
    assert row.difference == pytest.approx(second["MAP"] - first["MAP"])
    assert row.interval.low <= row.difference <= row.interval.high
    assert (row.higher, row.lower) == (
        sum(second.by_query[name]["MAP"] > first.by_query[name]["MAP"] for name in QUERIES),
        sum(second.by_query[name]["MAP"] < first.by_query[name]["MAP"] for name in QUERIES),
    )
    table = str(comparison).splitlines()
    assert table[0].split() == ["3", "queries", "tf", "tfidf", "difference", "95%", "interval", "p", "+/-"]
    assert table[1].split()[:4] == ["MAP", f"{first['MAP']:.3f}", f"{second['MAP']:.3f}", f"{row.difference:+.3f}"]
    assert first.compare(first)["MAP"].p_value == 1
    with pytest.raises(InputError, match="Both evaluations must have the same queries"):
        first.compare(evaluate_search(index, {"q1": "car"}, theme_judgments(), method="tf"))
    with pytest.raises(InputError, match="compare takes another SearchEvaluation, got dict"):
        first.compare({})


def test_trec_files_give_the_same_measures(index, tmp_path):
    queries = {**QUERIES, "nothing": "zebra"}
    qrels = theme_judgments() | {"nothing": {"d1": 1, "d2": -1}}
    qrels_file, run_file = tmp_path / "qrels.txt", tmp_path / "run.txt"
    write_qrels(qrels, qrels_file)
    assert read_qrels(qrels_file) == qrels
    rankings = rank_documents(index, queries, method="tfidf", depth=None)
    write_trec_run(rankings, run_file, tag="tfidf")
    stored = read_trec_run(run_file)
    assert {name: list(found.items()) for name, found in stored.items()} == {
        name: list(rankings[name].items()) for name in QUERIES
    }
    expected = evaluate_search(index, queries, qrels, method="tfidf")
    result = evaluate_rankings(stored, qrels_file, method="tfidf")
    assert evaluate_rankings(run_file, qrels_file, method="tfidf") == result
    assert result.by_query == expected.by_query
    assert result.n_queries == 4
    assert result.unknown_queries == ["nothing"]
    assert evaluate_search(index, queries, str(qrels_file), method="tfidf") == expected
    # ir-measures reads the files too; it breaks ties by id, which the recall of all documents does not see
    theirs = ir_measures.calc_aggregate(
        [ir_measures.R @ 100],
        list(ir_measures.read_trec_qrels(str(qrels_file))),
        list(ir_measures.read_trec_run(str(run_file))),
    )
    assert theirs[ir_measures.R @ 100] == pytest.approx(result["R@100"])
    assert len(rank_documents(index, QUERIES, method="tf", depth=2)["q1"]) == 2
    with pytest.raises(InputError, match="depth must be a whole number of at least 1, got 0"):
        rank_documents(index, QUERIES, method="tf", depth=0)
    with pytest.raises(InputError, match="the ids of rankings and qrels must be the same"):
        evaluate_rankings({"other": {"d1": 1.0}}, qrels)


def test_ties_of_a_trec_run_are_in_the_order_of_its_ranks(tmp_path):
    path = tmp_path / "run.txt"
    path.write_bytes("\ufeffq Q0 b 2 1.5 x\n\nq\tQ0 a 1 1.5 x\r\nq Q0 c 3 2 x".encode())
    assert list(read_trec_run(path)["q"]) == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        (read_qrels, b"1 0 d1 1\n1 0 d2\n", "line 2: expected the 4 fields query iteration document relevance, got 3"),
        (read_qrels, b"1 0 d1 yes", "line 1: the relevance must be a whole number, got 'yes'"),
        (read_qrels, b"1 0 d1 1\n1 0 d1 0", "line 2: the document 'd1' occurs twice for the query '1'"),
        (read_qrels, b"1 0 d1 1\n1 0 \xff 1", "line 2: the line is not UTF-8"),
        (read_trec_run, b"1 Q0 d1 1 0.5", "line 1: expected the 6 fields query Q0 document rank score tag, got 5"),
        (read_trec_run, b"1 Q0 d1 1 nan x", "line 1: the score must be a finite number, got 'nan'"),
        (read_trec_run, b"1 Q0 d1 first 1 x", "line 1: the rank must be a whole number, got 'first'"),
        (read_trec_run, b"1 Q0 d1 1 1 x\n1 Q0 d1 2 0 x", "line 2: the document 'd1' occurs twice"),
    ],
)
def test_malformed_lines_are_named(tmp_path, reader, content, message):
    path = tmp_path / "trec.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        reader(path)
    with pytest.raises(InputError, match=r"nowhere\.txt cannot be read: No such file"):
        reader(tmp_path / "nowhere.txt")


def test_ids_that_a_trec_file_cannot_hold_are_refused(tmp_path):
    path = tmp_path / "trec.txt"
    with pytest.raises(InputError, match="A document id in a TREC file must be one word without white space"):
        write_trec_run({"1": {"a b": 1.0}}, path)
    with pytest.raises(InputError, match="A query id in a TREC file must be one word"):
        write_qrels({"": {"a": 1}}, path)
    with pytest.raises(InputError, match="tag in a TREC file must be one word"):
        write_trec_run({"1": {"a": 1.0}}, path, tag="my method")
    assert not list(tmp_path.iterdir())


def test_the_extra_is_named(index, monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(
        MissingExtraError, match=r"^The evaluation of a search needs the extra 'search-evaluation': pip install"
    ):
        evaluate_search(index, QUERIES, theme_judgments(), method="tf")


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
    """This uses one of the five models; reproductions/hofmann_1999.py has the complete table."""
    index, queries, qrels = collection("med")
    index.fit_lsi(96, weighting="tf").fit_models((32,), random_state=0)
    found = {
        method: evaluate_search(index, queries, qrels, method=method)["9-point"] for method in ("tf", "lsi", "bm25")
    }
    found["plsi*"] = evaluate_search(index, queries, qrels, method="plsi*", term="tf")["9-point"]
    with_bm25 = evaluate_search(index, queries, qrels, method="plsi*", term="bm25")["MAP"]
    assert found["plsi*"] > found["lsi"] + 0.05
    assert found["plsi*"] > found["bm25"] + 0.05
    assert with_bm25 >= evaluate_search(index, queries, qrels, method="bm25")["MAP"]
