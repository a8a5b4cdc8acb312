"""The models of the command line: their options, trees of a given number of leaves, and seed words."""

import gzip
import json
import re
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

import polyseme
from polyseme import InputError
from polyseme.core.tree import as_tree
from polyseme.datasets import synthetic_corpus
from polyseme.io import models as storage
from polyseme.runs.models import MODELS, even_tree, make_model, text_model
from polyseme.runs.seed_words import SEED_SHARE, read_seeds, seed_columns, seed_prior
from polyseme.scale import write_shards
from polyseme.text import Vectorizer
from real_data import data_file

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = sp.csr_array(
    synthetic_corpus(80, n_words=40, n_topics=4, length=30, topic_word_prior=0.05, random_state=1)
    .counts()
    .astype(np.float64)
)
TOTALS = np.asarray(X.sum(axis=0)).ravel()
EVERY = pytest.mark.parametrize("name", MODELS)
LABELS = ["a", "b", "c", None] * 20
Y = np.array([-1 if label is None else label for label in LABELS], dtype=object)
NEEDS = {"labels": {"labels": LABELS}}
"""Arguments without which a model is refused."""


@EVERY
def test_every_model_is_fitted_stored_and_loaded(name, tmp_path):
    model = make_model(name, 4, max_iter=5, random_state=3, **NEEDS.get(name, {}))
    assert type(model) is MODELS[name].estimator
    assert model.max_iter == 5
    assert model.random_state == 3
    model.fit(X, Y, feature_names=[f"w{column}" for column in range(40)])
    assert model._fitted.n_topics == 4
    storage.save(model, tmp_path / "model.safetensors", documents_beside=True)
    loaded = polyseme.load(tmp_path / "model.safetensors")
    assert loaded.with_documents(X[:30])._training.doc_topic.shape == (30, 4)


@EVERY
def test_models_declare_whether_they_are_fitted_from_shards(name, tmp_path):
    shards = write_shards([X], tmp_path / "shards", shard_nonzeros=X.nnz // 2)
    model = make_model(name, 4, max_iter=2, **NEEDS.get(name, {}))
    if MODELS[name].from_shards:
        assert model.fit(shards, Y)._training.doc_topic.shape == (80, 4)
    else:
        with pytest.raises(InputError, match="takes no shards"):
            model.fit(shards, Y)
    assert MODELS[name].estimator._edits_topics == (name in ("plsa", "lda", "nmf", "mixture"))
    assert MODELS[name].estimator._refits == (name not in ("hierarchical", "labels"))


@EVERY
def test_models_declare_whether_they_take_a_checkpoint(name, tmp_path):
    if MODELS[name].takes_checkpoint:
        make_model(name, 3, checkpoint=tmp_path / "state", max_iter=2).fit(X)
        assert any((tmp_path / "state").iterdir())
    else:
        with pytest.raises(InputError, match=f"checkpoint= is not an option of model={name}"):
            make_model(name, 3, checkpoint=tmp_path)


OPTIONS = {"background": 0.2, "depth": 1, "branching": 2, "seeds": {"a": [1]}, "checkpoint": "folder"}


@EVERY
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_a_model_does_not_have_is_an_error(name, option):
    given = {option: OPTIONS[option]}
    if option in MODELS[name].options:
        n_topics = 4 if option != "branching" else None
        make_model(name, n_topics, word_totals=TOTALS, **given)
        return
    with pytest.raises(InputError) as error:
        make_model(name, 4, word_totals=TOTALS, **given)
    owners = [other for other in MODELS if option in MODELS[other].options]
    assert str(error.value) == (
        f"{option}= is not an option of model={name}: leave it out, or use "
        + " or ".join(f"model={owner}" for owner in owners) + "."
    )  # fmt: skip


def test_options_reach_the_model():
    assert make_model("plsa", 4, background=0.2, n_jobs=2).get_params()["background"] == 0.2
    assert make_model("plsa", 4, n_jobs=2).n_jobs == 2
    assert make_model("lda", 4).max_iter == polyseme.LDA().max_iter
    for n_topics in (0, -1, 2.5, None, True, "4"):
        with pytest.raises(InputError, match="n_components"):
            make_model("plsa", n_topics)
    with pytest.raises(InputError, match="max_iter must be a whole number"):
        make_model("lda", 4, max_iter=0)
    with pytest.raises(
        InputError, match="model= must be one of plsa, lda, nmf, hierarchical, ctm, mixture, labels, got 'lsa'"
    ):
        text_model("lsa")


# trees


@pytest.mark.parametrize("depth", [None, 1, 2, 3, 4, 5])
def test_a_tree_has_the_number_of_leaves_that_was_asked_for(depth):
    for n_leaves in [*range(1, 90), 100, 144, 250, 999]:
        if depth is not None and depth > 1 and n_leaves < 2**depth:
            with pytest.raises(InputError, match=rf"depth={depth} needs at least 2\^{depth} topics"):
                even_tree(n_leaves, depth)
            continue
        tree = as_tree(even_tree(n_leaves, depth), 0, 0, ())
        levels = dict(tree.depth_first())
        assert len(tree.leaves) == n_leaves
        wanted = depth or (1 if n_leaves < 4 else 2)
        assert {levels[leaf] for leaf in tree.leaves} == {wanted}
        for level in range(wanted):
            children = [len(tree.children[node]) for node, at in levels.items() if at == level]
            assert max(children) - min(children) <= 1
            assert min(children) >= min(2, n_leaves)


def test_the_numbers_of_children_are_balanced():
    for n_leaves, sizes in ((9, [3]), (10, [3, 4]), (20, [5]), (100, [10])):
        tree = as_tree(even_tree(n_leaves), 0, 0, ())
        found = Counter(len(tree.children[child]) for child in tree.children[tree.root])
        assert sorted(found) == sizes


@pytest.mark.parametrize(
    ("n_topics", "options", "n_leaves", "depth"),
    [
        (7, {}, 7, 2),
        (3, {}, 3, 1),
        (12, {"depth": 3}, 12, 3),
        (5, {"depth": 1}, 5, 1),
        (None, {"branching": 3}, 9, 2),
        (None, {"branching": 2, "depth": 3}, 8, 3),
        (8, {"branching": 2, "depth": 3}, 8, 3),
        (None, {"branching": [4, 2]}, 8, 2),
        (12, {"branching": (2, 3, 2)}, 12, 3),
        (6, {"branching": [2, 3], "depth": 2}, 6, 2),
    ],
)
def test_options_of_a_tree(n_topics, options, n_leaves, depth):
    model = make_model("hierarchical", n_topics, **options)
    tree = as_tree(model.tree, model.depth, model.branching, model.silent)
    assert len(tree.leaves) == n_leaves
    assert max(dict(tree.depth_first()).values()) == depth


@pytest.mark.parametrize(
    ("n_topics", "options", "message"),
    [
        (10, {"branching": 3}, "n_topics=10 and branching= contradict each other: the tree has 9 leaves"),
        (10, {"branching": [2, 5], "depth": 3}, "depth=3 and branching= contradict each other"),
        (None, {"branching": []}, "contradict"),
        (None, {"branching": 0}, "branching must be a whole number of at least 1, got 0"),
        (None, {"branching": [2, 1.5]}, "branching must be a whole number"),
        (None, {"branching": 1000, "depth": 9}, "more than 1000000 nodes"),
        (None, {}, "n_topics= is missing: give the number of leaves of the tree, or branching="),
        (None, {"depth": 2}, "n_topics= is missing"),
        (8, {"depth": 0}, "depth must be a whole number of at least 1, got 0"),
        (8, {"depth": 4}, "depth=4 needs at least 2^4 topics"),
        (8, {"depth": 10**9}, "choose a smaller depth="),
        (10**8, {}, "n_topics= is too large for a tree"),
    ],
)
def test_options_of_a_tree_that_contradict_each_other(n_topics, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make_model("hierarchical", n_topics, **options)


# seed words


TEXTS = ["The team won the match.", "A doctor sees patients.", "Matches of two teams in New York", "New York doctors"]


def test_seed_words_are_found_by_the_rules_of_the_vectorizer():
    vectorizer = Vectorizer(language="english").fit(TEXTS)
    words = list(vectorizer.get_feature_names_out())
    seeds = {"Sport": ["MATCHES", "team", "teams", "goal"], "Health": ["Doctor", "the"]}
    found = seed_columns(seeds, vectorizer)
    assert list(found.columns) == ["Sport", "Health"]
    assert [[words[column] for column in columns] for columns in found.columns.values()] == [
        [words[vectorizer.transform(["match"]).indices[0]], words[vectorizer.transform(["team"]).indices[0]]],
        [words[vectorizer.transform(["doctor"]).indices[0]]],
    ]
    assert found.unknown == {"Sport": ["goal"], "Health": ["the"]}


def test_a_seed_of_several_words():
    vectorizer = Vectorizer(language=None).fit(TEXTS)
    found = seed_columns({"place": ["new york"]}, vectorizer)
    assert found.columns["place"] == sorted(vectorizer.vocabulary_[word] for word in ("new", "york"))


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ({}, "seeds= has no topics"),
        ({"Sport": ["goal", "ball"]}, "none of the words of 'Sport' (goal, ball)"),
        ({"Sport": ["team"], "Empty": []}, "none of the words of 'Empty' (no words)"),
        ({"Sport": ["team"], "Work": ["team"]}, "'team' is given for 'Sport' and for 'Work'"),
        (
            {"Sport": ["team"], "Work": ["teams"]},
            "'teams' (counted as the same word as 'team') is given for 'Sport' and for 'Work'",
        ),
    ],
)
def test_wrong_seed_words(seeds, message):
    with pytest.raises(InputError, match=re.escape(message)) as error:
        seed_columns(seeds, Vectorizer(language="english").fit(TEXTS))
    assert "\n" not in str(error.value)


def test_the_strength_grows_with_the_corpus():
    seeds = {"a": [1, 2], "b": [7]}
    prior = seed_prior(seeds, 5, TOTALS)
    assert prior.seeds == {0: (1, 2), 1: (7,)}
    assert prior.strength == pytest.approx(SEED_SHARE * X.sum() / 5)
    assert seed_prior(seeds, 5, 10 * TOTALS).strength == pytest.approx(10 * prior.strength)
    with pytest.raises(InputError, match="seeds= names 2 topics, but n_topics=1: raise n_topics="):
        make_model("plsa", 1, seeds=seeds, word_totals=TOTALS)
    with pytest.raises(InputError, match="seeds= needs word_totals"):
        make_model("plsa", 2, seeds=seeds)


@pytest.mark.parametrize("name", [name for name in MODELS if "seeds" in MODELS[name].options])
@pytest.mark.parametrize("seed", range(3))
def test_named_topics_come_first_in_their_order(name, seed):
    """Every named topic, in any order, is the topic of the corpus that has its seed words."""
    rng, true = np.random.default_rng(7), np.kron(np.eye(4), np.full(10, 0.09)) + 0.0025
    counts = np.array([rng.multinomial(60, weights @ true) for weights in rng.dirichlet(np.full(4, 0.2), 200)])
    for order in ([0, 1, 2], [3, 0, 1]):
        seeds = {f"topic {topic}": [10 * topic, 10 * topic + 5] for topic in order}
        model = make_model(name, 5, seeds=seeds, word_totals=counts.sum(axis=0), random_state=seed)
        topics = model.fit(counts).components_
        nearest = [np.abs(true - row).sum(axis=1).argmin() for row in topics[:3]]
        assert nearest == order


def test_named_topics_of_news():
    """A start with a random half lost a named topic to posts of encoded files with three of four seeds."""
    with gzip.open(data_file("text/news20.jsonl.gz"), "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for number, line in enumerate(file) if number % 6 == 0]
    vectorizer = Vectorizer(language="english", min_df=5, max_df=0.3)
    counts, labels = vectorizer.fit_transform([row["text"] for row in rows]), np.array([row["label"] for row in rows])
    seeds = {
        "rec.sport.hockey": ["hockey", "nhl", "goalie"], "rec.sport.baseball": ["baseball", "pitcher", "batting"],
        "sci.space": ["orbit", "shuttle", "nasa"], "sci.med": ["disease", "patient", "doctor"],
        "sci.crypt": ["encryption", "clipper", "key"], "talk.politics.guns": ["gun", "firearm", "weapon"],
        "talk.politics.mideast": ["israel", "armenian", "turkish"],
    }  # fmt: skip
    found = seed_columns(seeds, vectorizer)
    totals = np.asarray(counts.sum(axis=0)).ravel()
    model = make_model("plsa", 20, seeds=found.columns, word_totals=totals, random_state=1, max_iter=50).fit(counts)
    for topic, name in enumerate(seeds):
        mass = model.doc_weights_ * model.doc_topic_[:, topic]
        assert mass[labels == name].sum() / mass.sum() > 0.35


# files of seed words


@pytest.mark.parametrize(
    "text",
    [
        "Sport: match, team\nLaw and order: court ,judge,\n",
        "# topics\n\n  Sport :  match,team\r\n  # more\nLaw and order: court, judge",
        "\ufeffSport: match, team\nLaw and order: court, judge\n",
        '{"Sport": ["match", " team "], "Law and order": ["court", "judge", ""]}',
        '\ufeff\n {"Sport":\n ["match", "team"], "Law and order": ["court", "judge"]}\n',
    ],
)
def test_seed_words_are_read(tmp_path, text):
    (tmp_path / "seeds").write_bytes(text.encode())
    found = read_seeds(tmp_path / "seeds")
    assert found == {"Sport": ["match", "team"], "Law and order": ["court", "judge"]}
    assert list(found) == ["Sport", "Law and order"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Sport: match\nteam\n", "line 2 must be a name, a colon and words"),
        (b"Sport: match\n: team\n", "line 2 must be a name"),
        (b"# names\nSport:\n", "line 2 must be a name"),
        (b"Sport: a\n\nSport: b\n", "line 3 repeats the topic 'Sport'"),
        (b"Sport: a\nOrt: M\xfcnchen\n", "line 2 of"),
        (b"", "has no topics"),
        (b"# nothing\n", "has no topics"),
        (b"{}", "has no topics"),
        (b'{"Sport": "match"}', "must be an object"),
        (b'{"Sport": [1]}', "must be an object"),
        (b'{"Sport": []}', "the topic 'Sport' needs a name and at least one word"),
        (b'{"": ["a"]}', "needs a name"),
        (b'{"a": ["b"], " a": ["c"]}', "a name occurs twice"),
        (b'{"a": ["b"], "a": ["c"]}', "a name occurs twice"),
        (b'{"a": ["b"]', "is not a file of seed words"),
        (b"{" * 100_000, "is not a file of seed words"),
    ],
)
def test_wrong_files_of_seed_words(tmp_path, content, message):
    (tmp_path / "seeds").write_bytes(content)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        read_seeds(tmp_path / "seeds")
    assert str(error.value).startswith("seeds=: ")
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="seeds=: "):
            read_seeds(path)
    with (tmp_path / "large").open("wb") as file:
        file.truncate((1 << 24) + 1)
    with pytest.raises(InputError, match="larger than 16 MiB"):
        read_seeds(tmp_path / "large")
