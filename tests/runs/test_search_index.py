"""The index of a run: what it takes from the other files of the run, ids without a list, and damage to these files."""

import json
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.errors import ModelFileError, ShardError
from polyseme.retrieval import SearchIndex
from polyseme.retrieval.scores import METHODS
from polyseme.runs import documents
from polyseme.runs.documents import DocumentStore, DocumentWriter, unique_ids
from polyseme.runs.search_index import INDEX_FILE, RunIds, _id_table, read_run_index
from polyseme.runs.store import RunStore
from polyseme.text import Document

WORDS = ("red", "green", "blue", "fish", "bird", "tree", "stone", "cloud")
ROWS = [" ".join(np.random.default_rng(row).choice(WORDS, 3 + row % 9)) for row in range(200)] + ["", "unknown"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> polyseme.Run:
    place = tmp_path_factory.mktemp("search_index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyseme.runs.documents.BLOCK", 300)
        (place / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in ROWS), encoding="utf-8")
        return polyseme.fit(
            str(place / "in.jsonl"), n_topics=3, random_state=0, language=None, min_df=2, max_df=1.0, shards=True,
            output=place / "run",
        )  # fmt: skip


@pytest.fixture
def index(run: polyseme.Run, tmp_path: Path) -> SearchIndex:
    """Return an index with the same counts and weights, all of which its own file has."""
    view = run.view
    index = SearchIndex(
        run.counts, run.vocabulary, ids=view.corpus.ids, titles=list(view.corpus.names),
        excerpts=view.corpus.column("excerpt"), vectorizer=run.store.vectorizer,
    )  # fmt: skip
    index.set_model(run.model, run.doc_topic).save(tmp_path / "complete")
    return SearchIndex.load(tmp_path / "complete", vectorizer=run.store.vectorizer)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("lsi", "plsi*")])
def test_the_hits_are_those_of_a_complete_index(run: polyseme.Run, index: SearchIndex, method: str) -> None:
    run.search("red", 1, method=method)
    store = RunStore.open(run.path)
    found = read_run_index(store, run.path / INDEX_FILE)
    np.testing.assert_array_equal(found.main[:], run.doc_topic.argmax(axis=1))
    assert len(found.empty) == 2
    for query in ("red fish", "tree tree stone", " ".join(WORDS)):
        hits = found.words.search(query, 40, method=method)
        assert hits.to_dict(100) == index.search(query, 40, method=method).to_dict(100)
        np.testing.assert_array_equal(found.words.scores(query, method=method), index.scores(query, method=method))
    allowed = np.arange(len(ROWS)) % 3 == 1
    assert (
        found.words.search("bird", 9, method=method, allowed=allowed).to_dict()
        == index.search("bird", 9, method=method, allowed=allowed).to_dict()
    )
    name = found.words.ids[7]
    assert found.words.similar_documents(name, 9, method=method).to_dict(100) == index.similar_documents(
        name, 9, method=method
    ).to_dict(100)
    assert found.words.senses("red") == index.senses("red")
    assert [hit.to_dict(9) for hit in found.words.topic_documents(1, 5)] == [
        hit.to_dict(9) for hit in index.topic_documents(1, 5)
    ]
    np.testing.assert_array_equal(found.words.counts.toarray(), index.counts.toarray())


def test_the_file_has_nothing_that_other_files_have(run: polyseme.Run) -> None:
    (run.path / INDEX_FILE).unlink(missing_ok=True)
    run.search("red", 1)
    with pytest.raises(ModelFileError, match="is the index of a run: search the run"):
        SearchIndex.load(run.path / INDEX_FILE)
    content = (run.path / INDEX_FILE).read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    names = {name for name in header if not name.startswith(("length.", "rules.", "vocabulary.", "run."))}
    assert names == {
        "__metadata__", "checksums", "postings.indptr", "postings.documents", "postings.counts", "postings.impacts",
        "model.topic_word", "model.topic_weights", "model.background_word", "model.typical",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["doc_topic.npy", "documents.index", "shards/shard-000000.safetensors"])
def test_damage_to_the_other_files_is_found(run: polyseme.Run, tmp_path: Path, name: str) -> None:
    """A search that needs a damaged block does not use it, although it does not check the digest of the file."""
    run = run.save(tmp_path / "run")
    expected = run.search("red fish", 5).to_dict()
    path = run.path / name
    content = path.read_bytes()
    for place in range(0, len(content), max(1, len(content) // 9)):
        damaged = bytearray(content)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        try:
            found = polyseme.open_run(run.path).search("red fish", 5).to_dict()
        except (ModelFileError, ShardError):
            continue
        assert found == expected
    for size in (0, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises((ModelFileError, ShardError), match=path.name):
            polyseme.open_run(run.path).search("red fish", 5)


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "x"), ("b", "x"), ("c", None)],
        [("a", "x"), ("a", "y"), ("b", None)],
        [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y"), ("a", "x"), ("x", "x"), ("b#2", "x"), ("", "x"), ("", "x")],
        [(f"é{row % 40}", f"file {row % 3}") for row in range(120)],
        [("水" * (row % 5), None) for row in range(9)],
    ],
)
def test_ids_are_those_of_the_list(
    pairs: list[tuple[str, str | None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "BLOCK", 100)
    with DocumentWriter(tmp_path) as writer:
        for name, source in pairs:
            writer.add(Document(name, "text", None, (), None, source))
        store = writer.written()
    expected = unique_ids([name for name, _ in pairs], [source for _, source in pairs])
    for table in (_id_table(store), _id_table(DocumentStore(store.arrays, store.path, store.label_names))):
        ids = RunIds(store, *table)
        assert list(ids) == ids[:] == expected
        assert [ids.get(name, -1) for name in expected] == list(range(len(pairs)))
        for unknown in ("zebra", "x:a#9", "x:a#1", "x:a#x", "#2", "x:a#02"):
            assert unknown in expected or ids.get(unknown, -1) == -1


def test_a_hash_of_another_string_is_not_a_match(tmp_path: Path) -> None:
    with DocumentWriter(tmp_path) as writer:
        for name in ("a", "b", "c"):
            writer.add(Document(name, "text", None, (), None, None))
        store = writer.written()
    hashes, rows, _ = _id_table(store)
    same = RunIds(store, np.full_like(hashes, hashes[rows.tolist().index(1)]), rows, False)
    assert (same.get("b", -1), same.get("a", -1)) == (1, -1)
