"""Hostile files of runs and models are one clear error, and nothing in them is executed.

An attacker can correct all digests, and so do these tests: they check that the content is refused. test_run_damage.py
tests damage that the digests show.
"""

import errno
import json
import os
import shutil
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

import polyseme
from cli_runner import TEXTS, run, write_folder
from polyseme import PLSA, HierarchicalPLSA
from polyseme.errors import InputError, ModelFileError, ShardError
from polyseme.io import files as untrusted
from polyseme.io import parquet
from polyseme.io.arrays import map_npy, read_safetensors, safetensors_parts
from polyseme.io.files import FileManifest, write_atomically
from polyseme.retrieval import SearchIndex
from polyseme.runs import documents, open_run
from polyseme.runs.documents import DocumentWriter
from polyseme.runs.info import ModelInfo, RunInfo
from polyseme.runs.store import FORMAT_VERSION, STAGES_FILE, VECTORIZER_FILE, write_sealed
from polyseme.runs.write import RunDraft
from polyseme.scale import ParquetFiles, open_shards, write_shards
from polyseme.solvers.checkpoints import Checkpoint, CheckpointContent, read_checkpoint, write_checkpoint
from polyseme.text import Document, Vectorizer
from sealed_files import change_array, change_json, rewrite_model, seal, seal_shards, write_with_own_digest

BACKTRACKS = r"(?:\w+\s?)+$"
HARMLESS = r"(?:[a-z]+-)?[a-z]{2,}"
"""Not a repeated set of characters, so it must be confirmed."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = write_folder(tmp_path_factory.mktemp("made"))
    assert run("fit", "docs", "-k", "2", "-o", "run", "-q", "--no-page", cwd=place).exit_code == 0
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """Return a folder with a run and a file of new documents."""
    shutil.copytree(made / "run", tmp_path / "run")
    (tmp_path / "new.txt").write_text("apples are fruit\niron is a metal\n", encoding="utf-8")
    return tmp_path


def fails(place: Path, *arguments: str) -> str:
    """Return the one line that a command fails with."""
    done = run(*arguments, cwd=place)
    assert done.exit_code == 1, done.output
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("polyseme: ")
    return lines[0]


def changed(place: Path, name: str, **changes: object) -> None:
    """Change fields of a JSON file of the run, with correct digests."""
    change_json(place / "run" / name, **changes)
    seal(place / "run")


# settings of the vectorizer


def saved(**parameters: object) -> dict:
    data = Vectorizer().fit(TEXTS).to_dict()
    return {**data, "parameters": {**data["parameters"], **parameters}}


WRONG_SETTINGS = [
    ("input", "filename"), ("input", "file"), ("n_jobs", 100_000), ("n_jobs", 0), ("n_jobs", True), ("n_jobs", "4"),
    ("n_jobs", 10**30), ("encoding", "../evil"), ("encoding", "base64"), ("decode_error", "xmlcharrefreplace"),
    ("strip_accents", "os.system"), ("tokenizer", "os.system"), ("preprocessor", {"object": "x"}), ("lowercase", 1),
    ("stop_words", 5), ("stop_words", [1]), ("token_pattern", 3), ("ngram_range", [1, 10**9]), ("ngram_range", [2, 1]),
    ("ngram_range", "12"), ("analyzer", "eval"), ("max_df", "x"), ("min_df", -1), ("min_df", True),
    ("max_features", 0), ("vocabulary", {"a": 0}), ("vocabulary", ["other"]), ("binary", None), ("dtype", "O"),
    ("dtype", "V1000000000"), ("dtype", "float64,(1000000000,)i4"), ("language", "klingon"), ("stem", "yes"),
    ("phrases", 7), ("phrases", []), ("new_setting", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG_SETTINGS)
def test_a_wrong_setting_of_the_vectorizer_is_named(name, value):
    with pytest.raises(ModelFileError, match=rf"not a saved Vectorizer: .*{name}"):
        Vectorizer.from_dict(saved(**{name: value}))


@pytest.mark.parametrize("name", sorted(Vectorizer().get_params()))
def test_every_setting_is_checked_and_needed(name):
    with pytest.raises(ModelFileError, match=name):
        Vectorizer.from_dict(saved(**{name: {"a": [1]}}))
    data = saved()
    del data["parameters"][name]
    with pytest.raises(ModelFileError, match=f"{name} is missing"):
        Vectorizer.from_dict(data)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocabulary", []), ("vocabulary", ["a", "a"]), ("vocabulary", [1]), ("vocabulary", "ab"), ("language", "x"),
        ("forms", {"a": 1}), ("shown", []), ("phrases", [[["a"]]]), ("phrases", [["ab"]]), ("format_version", True),
        ("format_version", -1), ("code", "import os"),
    ],
)  # fmt: skip
def test_a_wrong_field_of_the_vectorizer_is_named(name, value):
    with pytest.raises(ModelFileError, match=f"not a saved Vectorizer: .*{name}"):
        Vectorizer.from_dict({**saved(), name: value})


def test_a_setting_that_cannot_be_read_again_is_not_saved():
    vectorizer = Vectorizer(vocabulary=["a"], input="filename")
    vectorizer.fixed_vocabulary_, vectorizer.vocabulary_ = True, {"a": 0}
    with pytest.raises(InputError, match="cannot be saved: input must be one of 'content'"):
        vectorizer.to_dict()


def test_the_command_line_names_the_file_and_the_setting(place):
    data = json.loads((place / "run" / VECTORIZER_FILE).read_text(encoding="utf-8"))
    changed(place, VECTORIZER_FILE, parameters={**data["parameters"], "input": "filename"})
    line = fails(place, "search", "run", "/etc/hostname", "-q")
    assert "vectorizer.json" in line
    assert "input must be one of 'content', got 'filename'" in line


# token patterns


@pytest.mark.parametrize(
    "pattern",
    [BACKTRACKS, HARMLESS, "(a|a)*b", "x" * 10_000, r"\w{99999999999,}", rf"\w{{{'9' * 5000},}}", "[z-a]+", "(", ""],
)
def test_a_pattern_that_may_backtrack_must_be_confirmed(pattern):
    with pytest.raises(ModelFileError, match="trust_pattern=True"):
        Vectorizer.from_dict(saved(token_pattern=pattern))


@pytest.mark.parametrize("pattern", [r"(?u)\b\w\w+\b", r"\b[^\W\d_]{3,}\b", "[a-z]{3,}", r"\w+"])
def test_runs_of_one_set_of_characters_need_no_confirmation(pattern):
    assert Vectorizer.from_dict(saved(token_pattern=pattern)).token_pattern == pattern


def test_a_run_with_another_pattern_is_refused(place):
    data = json.loads((place / "run" / VECTORIZER_FILE).read_text(encoding="utf-8"))
    changed(
        place,
        VECTORIZER_FILE,
        language=None,
        parameters={**data["parameters"], "token_pattern": HARMLESS, "language": None},
    )
    commands = (("topics", "run"), ("search", "run", "fruit", "-q"), ("transform", "run", "new.txt", "-q"))
    for arguments in (*commands, ("explore", "run", "-q")):
        assert "is not known to be fast on every text" in fails(place, *arguments)


# JSON

BOMBS = {
    "nested": "[" * 100_000 + "]" * 100_000,
    "nested objects": '{"a":' * 500 + "1" + "}" * 500,
    "repeated names": '{"format_version": 1, "format_version": 99}',
    "not a number": '{"format_version": NaN}',
    "infinite": '{"format_version": 1, "tokens": 1e999}',
    "half a pair": '{"format_version": 1, "title": "\\ud800"}',
    "long number": '{"format_version": ' + "9" * 5000 + "}",
    "a list": "[1, 2]",
    "nothing": "",
    "zero bytes": "\0" * 100,
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
@pytest.mark.parametrize("name", ["run.json", VECTORIZER_FILE])
def test_invalid_json(place, name, bomb):
    (place / "run" / name).write_text(bomb, encoding="utf-8")
    seal(place / "run")
    with pytest.raises(ModelFileError, match=rf"{name} is damaged \("):
        assert open_run(place / "run").vectorizer


def test_json_that_is_not_utf_8(place):
    (place / "run" / "run.json").write_bytes(b'{"format_version": 1, "title": "\xff"}')
    assert "damaged" in fails(place, "topics", "run")


def test_surrogate_pairs_are_characters():
    assert untrusted.parse_json('{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "name",
    ["run.json", VECTORIZER_FILE, "documents.index", "documents.blocks", "model.safetensors", "doc_topic.npy",
     "shards/manifest.json", "shards/shard-000000.safetensors"],
)  # fmt: skip
def test_a_pipe_in_place_of_a_file_does_not_block(place, name):
    (place / "run" / name).unlink()
    os.mkfifo(place / "run" / name)
    assert name in fails(place, "topics", "run") or name == "run.json"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_the_index_is_replaced(place):
    os.mkfifo(place / "run" / "search.safetensors")
    assert run("search", "run", "iron", "-q", cwd=place).exit_code == 0
    assert (place / "run" / "search.safetensors").is_file()


MODEL = {"estimator": "PLSA", "name": "plsa", "n_topics": 2}
WRONG_FIELDS = [
    ("format_version", "1"), ("format_version", True), ("format_version", -1), ("title", 5), ("page_text", "all"),
    ("model", "PLSA"), ("model", {**MODEL, "estimator": 1}), ("model", {**MODEL, "n_topics": "x"}), ("model", {}),
    ("model", {**MODEL, "seeds": []}), ("model", {**MODEL, "mine": 1}),
    ("topic_names", ["a"]), ("in_memory", 1), ("banned_words", "x"),
    ("reproducibility", [{"share": 1.0, "least": 0.5, "most": 1.0}]), ("reproducibility", [1, 1]),
    ("fitted_to", [[0, 1]]), ("fitted_to", [[0, 1], [2, 2]]), ("fitted_to", [[0, 1], [0, 10**9]]),
    ("files", []), ("files", {"../x": {"size": 1, "sha256": "0" * 64}}), ("files", {"/x": {}}), ("files", {"x": {}}),
    ("files", {"x": {"size": -1, "sha256": "0" * 64}}), ("files", {"x": {"size": 1, "sha256": "0"}}),
    ("topic_names", {"²": "x"}), ("topic_names", {"-1": "x"}), ("topic_names", {"9" * 5000: "x"}),
    ("topic_names", {"0": 1}), ("automatic_names", {"0": "x"}), ("automatic_names", [None]), ("hidden_words", "x"),
    ("edits", {}), ("edits", [1]), ("updates", "x"), ("stability", ["x"]), ("duplicates", []),
    ("duplicates", {"found": "x"}), ("junk", []), ("repeated_lines", "x"), ("junk", {"0": "y"}),
    ("junk", {"x": {"kind": "few", "reason": "y"}}), ("junk", {"0": {"kind": "x", "reason": "y"}}),
    ("selection", []), ("selection", {"rows": [1]}), ("selection", {"rows": [{"n_topics": []}]}),
    ("selection", {"reason": 3}), ("counting", 1), ("language", 3),
    ("languages", {"english": "all"}), ("documents", -1), ("tokens", 0.5),
    ("seconds", {"reading": "x"}), ("versions", {"python": 3}), ("command", "x"), ("inputs", [1]), ("written", 3),
    ("reading", []), ("left_out", {"a": "b"}), ("problems", []), ("iterations", "x"), ("converged", 1),
    ("interrupted", "no"), ("words", None), ("shards", "x"), ("solver", 3),
    ("levels", []), ("levels", {"x": {"parents": [0], "nesting": [1]}}), ("levels", {"4": {"parents": [0]}}),
    ("levels", {"04": {"parents": [0], "nesting": [1]}}), ("levels", {"4": {"parents": [-1], "nesting": [1]}}),
    ("levels", {"4": {"parents": [0], "nesting": [2]}}),
    ("levels", {"4": {"parents": [0], "nesting": [1], "topic_names": {"x": "y"}}}),
    ("levels", {"1": {"parents": [0, 0], "nesting": [1]}}), ("levels", {"3": {"parents": [0, 0], "nesting": [1, 1]}}),
    ("levels", {"3": {"parents": [0, 0, 2], "nesting": [1, 1, 1]}}), ("topic_names", {"2": "x"}),
    ("automatic_names", ["a"]), ("junk", {"2": {"kind": "few", "reason": "y"}}), ("mine", 1),
    ("hidden_topics", [2]), ("hidden_topics", [-1]),
    ("seed_problems", "x"), ("before", 1), ("before", {"model": MODEL}),
    ("before", {"model": MODEL, "documents": 30, "words": 9}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG_FIELDS)
def test_a_wrong_field_of_the_run_is_named(place, name, value):
    change_json(place / "run" / "run.json", **{name: value})
    content = json.loads((place / "run" / "run.json").read_bytes())
    write_with_own_digest(place / "run" / "run.json", content)
    with pytest.raises(ModelFileError, match=rf"run\.json is damaged \('?{name}\S* (must|is)"):
        open_run(place / "run")


def test_every_field_of_the_run_is_checked():
    declared = {field.name for field in fields(RunInfo)}
    assert {name for name, _ in WRONG_FIELDS} == {"format_version", "files", "mine"} | declared


@pytest.mark.parametrize("name", ["files", "model", "documents", "words"])
def test_a_field_that_every_run_has_is_missing(place, name):
    content = json.loads((place / "run" / "run.json").read_bytes())
    del content[name]
    write_with_own_digest(place / "run" / "run.json", content)
    assert f"run.json is damaged ({name} is missing)" in fails(place, "topics", "run")


@pytest.mark.parametrize(
    ("version", "says"), [(FORMAT_VERSION + 1, "newer polyseme: update"), (1, "early version of polyseme: fit again")]
)
def test_a_run_of_another_version(place, version, says):
    changed(place, "run.json", format_version=version)
    assert says in fails(place, "topics", "run")


def test_a_file_that_run_json_does_not_list(place):
    content = json.loads((place / "run" / "run.json").read_bytes())
    del content["files"]["model.safetensors"]
    write_with_own_digest(place / "run" / "run.json", content)
    assert "model.safetensors is not listed in run.json" in fails(place, "topics", "run")


def test_a_field_that_cannot_be_read_again_is_not_written(tmp_path):
    with pytest.raises(InputError, match="title must be"):
        write_sealed(tmp_path / "run.json", RunInfo(ModelInfo("PLSA", "plsa"), 1, 1, title=3), FileManifest(tmp_path))
    assert list(tmp_path.iterdir()) == []


WRONG_STAGES = {
    "no settings": lambda content: content.pop("settings"),
    "settings are a list": lambda content: content.update(settings=[]),
    "stages are an object": lambda content: content.update(stages={}),
    "no files": lambda content: content.pop("files"),
    "a file elsewhere": lambda content: content["files"].update({"../x": {"size": 1, "sha256": "0" * 64}}),
    "documents are a text": lambda content: content["info"].update(documents="x"),
    "no documents": lambda content: content["info"].pop("documents"),
    "shards are negative": lambda content: content["info"].update(shards=-1),
    "topics are a text": lambda content: content["info"]["model"].update(n_topics="2"),
    "names are a list": lambda content: content["info"].update(topic_names=["a"]),
}


@pytest.fixture(scope="module")
def made_unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a fit that was cut before its tables were written."""
    place = write_folder(tmp_path_factory.mktemp("unfinished"))

    def cut(*_: object, **__: object) -> None:
        raise OSError("cut")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunDraft, "finish", cut)
        assert "--resume" in fails(place, *UNFINISHED)
    return place


UNFINISHED = ("fit", "docs", "-k", "2", "-o", "run", "-q", "--no-page")


@pytest.fixture
def unfinished(made_unfinished: Path, tmp_path: Path) -> Path:
    shutil.copytree(made_unfinished, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize("change", WRONG_STAGES.values(), ids=WRONG_STAGES.keys())
def test_wrong_stages_of_an_unfinished_fit(unfinished, change):
    path = unfinished / ".run.part" / STAGES_FILE
    content = json.loads(path.read_bytes())
    change(content)
    write_with_own_digest(path, content)
    line = fails(unfinished, *UNFINISHED, "--resume")
    assert "stages.json is damaged" in line
    assert len(line) < 1000


def test_a_wrong_model_of_an_unfinished_fit(unfinished):
    work = unfinished / ".run.part"
    rewrite_model(work / "model.safetensors", head(attributes="x"))
    seal(work)
    assert "model.safetensors is damaged" in fails(unfinished, *UNFINISHED, "--resume")


# files that do not fit together


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("topics", "run"), "its model has a different number of words"),
        (("search", "run", "iron", "--method", "bm25", "-q"), "its shards have a different number of words"),
    ],
)
def test_a_vocabulary_of_another_run(place, command, says):
    words = json.loads((place / "run" / VECTORIZER_FILE).read_text(encoding="utf-8"))["vocabulary"]
    changed(place, VECTORIZER_FILE, vocabulary=words[:-1])
    assert says in fails(place, *command)


def test_models_of_other_kinds(place):
    counts, path = open_run(place / "run").counts, place / "run" / "model.safetensors"
    polyseme.LSA(2).fit(counts).save(path)
    seal(place / "run")
    assert "its model is of the class LSA, which has no topics" in fails(place, "topics", "run")
    model = PLSA(2, random_state=0).fit(counts)
    model._training = None
    model.save(path)
    seal(place / "run")
    assert "its model has no training documents" in fails(place, "topics", "run")
    rewrite_model(path, without("log_likelihood_"))
    seal(place / "run")
    assert "its model has no log_likelihood_" in fails(place, "topics", "run")


def test_a_model_of_other_documents(place):
    counts = open_run(place / "run").counts
    PLSA(2, random_state=0).fit(counts[:-1]).save(place / "run" / "model.safetensors")
    seal(place / "run")
    assert "its model has a different number of documents" in fails(place, "topics", "run")


def write_documents(folder: Path, texts: list[str]) -> None:
    """Write the documents of a run."""
    with DocumentWriter(folder) as writer:
        for number, text in enumerate(texts):
            writer.add(Document(str(number), text))


def test_documents_of_another_run(place):
    write_documents(place / "run", ["one", "two"])
    seal(place / "run")
    assert "it has 2 of 30 documents" in fails(place, "topics", "run")
    assert "it has 2 of 30 documents" in fails(place, "search", "run", "iron", "-q")


def test_an_index_of_another_run(place):
    index = SearchIndex(np.eye(3), ["a", "b", "c"]).set_model(PLSA(2, random_state=0).fit(np.eye(3) + 1))
    right = run("search", "run", "iron", "--json", "-q", cwd=place)
    assert right.exit_code == 0
    for identity in ("", "x"):
        index.save(place / "run" / "search.safetensors", identity=identity)
        found = run("search", "run", "iron", "--json", "-q", cwd=place)
        assert (found.exit_code, found.stdout) == (0, right.stdout)  # the index was built again


# NumPy arrays


def npy(header: str, content: bytes = b"", *, magic: bytes = b"\x93NUMPY\x01\x00") -> bytes:
    return magic + len(header).to_bytes(2, "little") + header.encode() + content


NPY = {
    "nothing": b"",
    "cut magic": b"\x93NUM",
    "cut header": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n")[:30],
    "open bracket": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,\n"),
    "no literal": npy("__import__('os').system('true')\n"),
    "nested": npy("(" * 9000 + ")" * 9000 + "\n"),
    "object": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", b"\x80\x04."),
    "structured": npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }\n", b"\0" * 8),
    "unknown type": npy("{'descr': '<f9', 'fortran_order': False, 'shape': (1,), }\n", b"\0" * 9),
    "huge": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999999, 999999999), }\n", b"\0" * 8),
    "negative": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }\n", b"\0" * 8),
    "too short": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", b"\0" * 8),
    "too long": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", b"\0" * 24),
    "other version": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", b"\0" * 8).replace(b"\1", b"\t"),
}  # fmt: skip


@pytest.mark.parametrize("content", NPY.values(), ids=NPY.keys())
def test_a_damaged_npy_file(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"not a .npy file|its size|unknown type"):
        map_npy(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.zeros((0, 3)), np.float32(3),
     np.ones(4, dtype=bool), np.arange(3, dtype=">f4")],
)  # fmt: skip
def test_a_valid_npy_file(tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    found = map_npy(tmp_path / "x.npy")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype
    assert not found.size or not found.flags.writeable


class Payload:
    """Object whose pickle would run code."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


def test_a_pickle_in_a_run_is_not_loaded(place, tmp_path):
    path = place / "run" / "doc_topic.npy"
    np.save(path, np.array([Payload(tmp_path / "run-by-pickle")], dtype=object), allow_pickle=True)
    seal(place / "run")
    assert "doc_topic.npy is missing or damaged: it is not a .npy file" in fails(place, "topics", "run")
    assert not (tmp_path / "run-by-pickle").exists()


WRONG_ROWS = {
    "not finite": (np.array([[np.nan, 1.0]] * 30, dtype=np.float32), "is not finite"),
    "of other topics": (np.ones((30, 3), dtype=np.float32), "its shape or type is not that of the model"),
    "of other documents": (np.ones((29, 2), dtype=np.float32), "its shape or type is not that of the model"),
    "of integers": (np.ones((30, 2), dtype=np.int64), "its shape or type is not that of the model"),
}


@pytest.mark.parametrize(("rows", "says"), WRONG_ROWS.values(), ids=WRONG_ROWS.keys())
def test_wrong_rows_beside_the_model(place, rows, says):
    np.save(place / "run" / "doc_topic.npy", rows)
    seal(place / "run")
    assert says in fails(place, "topics", "run")


# shards


WRONG_MANIFESTS = [
    {"format_version": "1"}, {"words": -1}, {"words": 2**40}, {"dtype": "O"}, {"shards": {}}, {"shards": [1]},
    {"shards": [{"name": 3}]}, {"complete": "yes"}, {"word_totals": []}, {"vocabulary": {"name": "x"}},
    {"shard_nonzeros": "x"}, {"more": 1},
]  # fmt: skip


@pytest.mark.parametrize("change", WRONG_MANIFESTS, ids=str)
def test_a_wrong_manifest(place, change):
    changed(place, "shards/manifest.json", **change)
    assert "manifest.json is damaged" in fails(place, "topics", "run")


@pytest.mark.parametrize(
    ("name", "value"),
    [("name", "../shard"), ("name", "/etc/passwd"), ("size", "x"), ("documents", -1), ("tokens", "x"), ("sha256", 3)],
)
def test_a_wrong_entry_of_a_manifest(place, name, value):
    path = place / "run" / "shards" / "manifest.json"
    good = path.read_bytes()
    for part in ("shards", "word_totals"):
        content = json.loads(good)
        (content[part][0] if part == "shards" else content[part])[name] = value
        write_with_own_digest(path, content)
        with pytest.raises(ShardError, match="is damaged"):
            open_shards(path.parent)


def test_a_manifest_of_other_sizes(place):
    """The sizes of the shards are checked against their arrays, and those of the run against both."""
    path = place / "run" / "shards" / "manifest.json"
    good = json.loads(path.read_bytes())
    for change in ({"documents": 29}, {"documents": 31}, {"nonzeros": 1}):
        write_with_own_digest(path, {**good, "shards": [{**good["shards"][0], **change}]})
        seal(place / "run")
        fails(place, "topics", "run")


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [("indices", 0, 10**6), ("indptr", 2, -5), ("values", 1, np.nan), ("values", 1, -3), ("totals", 0, np.inf)],
)
def test_wrong_counts_of_a_run(place, name, index, value):
    change_array(place / "run" / "shards" / "shard-000000.safetensors", name, index, value)
    seal(place / "run")
    commands = (("topics", "run"), ("search", "run", "iron", "-q"), ("edit", "run", "--ban", "iron", "-q"))
    for command in (*commands, ("evaluate", "run", "-q")):
        assert "shard-000000.safetensors is not a shard" in fails(place, *command)


def test_a_vocabulary_of_shards_that_is_not_a_list_of_words(tmp_path):
    folder = tmp_path / "shards"
    write_shards([np.eye(3)], folder, vocabulary=["a", "b", "c"])
    (folder / "vocabulary.json").write_bytes(b"[1, 2, NaN]")
    seal_shards(folder)
    with pytest.raises(ShardError, match=r"vocabulary\.json is damaged"):
        assert open_shards(folder).vocabulary


# documents


def change(name: str, value: Any) -> Any:
    return lambda arrays: arrays.update({name: np.asarray(value)})


WRONG_INDEXES = {
    "no labels": (lambda arrays: arrays.pop("labels"), "it has no 'labels'"),
    "no ids": (lambda arrays: arrays.pop("id.rows"), "it has no 'id.rows'"),
    "no texts": (lambda arrays: arrays.pop("text.rows"), "it has neither texts nor excerpts"),
    "one day": (change("days", np.zeros(1, np.int32)), "days has another type or size"),
    "days of text": (change("days", np.zeros(30, np.float32)), "days has another type or size"),
    "an unknown label": (change("labels", np.full(30, 7, np.int32)), "a label has no name"),
    "a later first": (change("firsts", np.r_[1, 1, 2:30]), "does not belong to the first document"),
    "a first of a first": (change("firsts", np.r_[0, 0, 1, 3:30]), "does not belong to the first document"),
    "rows from 1": (change("id.rows", np.array([1, 30])), "id does not have a value for each document"),
    "too many rows": (change("id.rows", np.array([0, 31])), "id does not have a value for each document"),
    "no blocks": (change("id.blocks", np.zeros((0, 3), np.int64)), "id has arrays of other types or sizes"),
    "far away": (change("id.blocks", np.array([[2**62, 9, 9]])), "id has a block outside the file"),
    "before the file": (change("id.blocks", np.array([[-9, 9, 9]])), "id has a block outside the file"),
}


@pytest.mark.parametrize(("wrong", "says"), WRONG_INDEXES.values(), ids=WRONG_INDEXES.keys())
def test_an_index_of_documents_that_does_not_fit(place, wrong, says):
    path = place / "run" / "documents.index"
    metadata, arrays = read_safetensors(path)
    wrong(arrays)
    write_atomically(path, safetensors_parts(arrays, metadata))
    seal(place / "run")
    assert f"documents.index is damaged ({says}" in fails(place, "topics", "run").replace("a near-duplicate ", "")


def block(lengths: Any, content: bytes = b"") -> bytes:
    return zlib.compress(np.asarray(lengths, dtype="<i4").tobytes() + content)


BLOCKS = {
    "not compressed": b"x" * 50,
    "nothing": zlib.compress(b""),
    "too few values": block(np.zeros(19)),
    "values beyond the end": block(np.full(30, 100)),
    "a negative length": block(np.r_[2, -2, [0] * 28], b"xx"),
    "not text": block(np.r_[1, [0] * 29], b"\xff"),
    "a bomb": block(np.r_[2**20, [0] * 29], b"x" * 2**20),
}


@pytest.mark.parametrize("content", BLOCKS.values(), ids=BLOCKS.keys())
def test_a_hostile_block_of_documents(place, content, monkeypatch):
    monkeypatch.setattr(documents, "_MAX_BLOCK", 2**19)
    path = place / "run" / "documents.index"
    metadata, arrays = read_safetensors(path)
    arrays["id.blocks"] = np.array([[0, len(content), zlib.crc32(content)]])
    write_atomically(path, safetensors_parts(arrays, metadata))
    (place / "run" / "documents.blocks").write_bytes(content + bytes(2**16))
    seal(place / "run")
    assert "documents.blocks is damaged" in fails(place, "compare", "run", "run")


# Parquet


PROGRAMS = {
    "abort": "import os\nos.abort()",
    "panic": "import sys\nsys.stdin.readline()\nraise BaseException('panicked')",
    "half an answer": "import sys\nsys.stdin.readline()\nsys.stdout.write('F' + chr(16) + chr(0) * 7 + 'x')",
    "no end": "import time\ntime.sleep(1000)",
}


def reading_fails(folder: Path) -> str:
    """Return the message of the error for a Parquet file."""
    pytest.importorskip("fsspec", reason="needs polyseme[dask]")
    pl.DataFrame({"text": ["one", "two"]}).write_parquet(folder / "x.parquet")
    with pytest.raises(InputError) as refused:
        list(ParquetFiles(folder / "x.parquet", text="text"))
    return str(refused.value)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_reader_that_dies_or_hangs(tmp_path, monkeypatch, program):
    """polars panics or aborts the process for some damaged files, depending on its version."""
    monkeypatch.setattr(parquet, "_CHILD", program)
    monkeypatch.setattr(parquet, "_SECONDS", 1.0)
    assert "took too much memory or time, or stopped the reader" in reading_fails(tmp_path)


def test_a_panic_of_polars_is_an_error(tmp_path, monkeypatch):
    call = "table = pl.scan_parquet(path, glob=False)"
    assert call in parquet._CHILD
    panic = "raise pl.exceptions.PanicException('assertion failed')"
    monkeypatch.setattr(parquet, "_CHILD", parquet._CHILD.replace(call, panic))
    assert "x.parquet cannot be read (assertion failed)" in reading_fails(tmp_path)


def test_a_small_file_of_endless_empty_documents(tmp_path, monkeypatch):
    pytest.importorskip("fsspec", reason="needs polyseme[dask]")
    pl.select(pl.repeat(None, 300_000, dtype=pl.String).alias("text")).write_parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(parquet, "_MAX_BYTES", 2**20)
    with pytest.raises(InputError, match=r"x\.parquet cannot be read .*too large for the size of the file"):
        list(ParquetFiles(tmp_path / "x.parquet", text="text"))


def test_a_small_file_with_huge_lists_of_counts(tmp_path):
    pytest.importorskip("fsspec", reason="needs polyseme[dask]")
    frame = pl.select(pl.repeat([0] * 2**18, 600).alias("indices"), values=pl.repeat([1.0], 600))
    frame.write_parquet(tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 2**20
    with pytest.raises(InputError, match=r"x\.parquet cannot be read .*(too large for the size|too much memory)"):
        list(ParquetFiles(tmp_path / "x.parquet", indices="indices", values="values", n_words=1))


# a full disk


def test_a_full_disk_while_a_run_is_written(made, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(documents, "write_atomically", full)
    assert "No space left on device" in fails(made, "fit", "docs", "-k", "2", "-o", "new", "-q")
    assert not (made / "new").exists()
    assert not (made / ".new.part").exists()


# model files


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    PLSA(2, random_state=0).fit(np.eye(4) + 1).save(path)
    return path


def parameter(**values):
    return lambda header, tensors: header["parameters"].update(values)


def attribute(**values):
    return lambda header, tensors: header["attributes"].update(values)


def array(**values):
    return lambda header, tensors: tensors.update(values)


def fitted(**values):
    """Change fields of the fitted model that are not arrays."""
    return lambda header, tensors: header["attributes"]["fitted_"].update(values)


def inference(**values):
    """Change fields of the inference that are not arrays."""
    return lambda header, tensors: header["attributes"]["fitted_"]["inference"].update(values)


def fitted_array(**values):
    return array(**{f"fitted_.{name}": value for name, value in values.items()})


def document_array(**values):
    return array(**{f"documents_.{name}": value for name, value in values.items()})


def without(*names):
    """Remove attributes or arrays."""

    def change(header, tensors):
        for name in names:
            assert (header["attributes"] if name in header["attributes"] else tensors).pop(name) is not None

    return change


def head(**values):
    return lambda header, tensors: header.update(values)


def nested(depth: int):
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


def no_components(header, tensors):
    del tensors["fitted_.topic_word"]
    header["attributes"]["fitted_.topic_word"] = "abc"


def other_kind(kind: str, **arrays: np.ndarray):
    """Give a PLSA the inference of another model, complete and with the correct shapes."""

    def change(header, tensors):
        header["attributes"]["fitted_"]["inference"] = {"kind": kind}
        tensors.update({f"fitted_.inference.{name}": array for name, array in arrays.items()})

    return change


def background(share: float):
    def change(header, tensors):
        inference(background={"share": share, "joint": False})(header, tensors)
        tensors["fitted_.inference.background"] = np.full(4, 0.25)

    return change


WRONG_MODELS = {
    "class is a list": head(**{"class": ["PLSA"]}),
    "parameters are a list": head(parameters=[]),
    "attributes are a text": head(attributes="x"),
    "history is a number": head(history=3),
    "history that is not there": head(history=["objective", "other"]),
    "nested is a list": head(nested=[]),
    "nested without a class": head(nested={"model_": {}}),
    "version is a text": head(format_version="1"),
    "version is huge": head(format_version=-1),
    "unknown parameter": parameter(evil=1),
    "checkpoint": parameter(checkpoint="/tmp/anywhere"),
    "callback": parameter(callback="print"),
    "seed is a list": parameter(random_state=[0]),
    "threads are a text": parameter(n_jobs="4"),
    "iterations are a list": parameter(max_iter=[]),
    "tolerance is a text": parameter(tol="0"),
    "topics are a number with a point": parameter(n_components=2.5),
    "prior is a list": inference(prior=[]),
    "prior with other settings": inference(prior={"object": "Dirichlet", "settings": {"evil": 1}}),
    "temperature is a text": inference(temperature="1"),
    "inference is a list": fitted(inference=[]),
    "inference of no kind": inference(kind="other"),
    "inference with a list as kind": inference(kind=[]),
    "inference of another kind": inference(kind="dirichlet"),
    "unknown field of the inference": inference(evil=1),
    "fitted model is a list": attribute(fitted_=[]),
    "fitted model is a text": attribute(fitted_="x"),
    "no fitted model": without("fitted_"),
    "unknown array of the fitted model": fitted_array(evil=np.ones(4)),
    "tokens are a text": fitted(n_tokens="9"),
    "documents are a list": attribute(documents_=[]),
    "documents without their arrays": without("documents_.doc_topic"),
    "arrays of documents that are not there": attribute(documents_=None),
    "unknown array of the documents": document_array(evil=np.ones(4)),
    "unknown parameters of the documents": document_array(**{"parameters.evil": np.ones((4, 2))}),
    "components as an attribute": attribute(components_=[[1.0]]),
    "prior of other topics": fitted_array(document_prior=np.ones(3)),
    "prior of the wrong type": fitted_array(document_prior=np.ones(2, dtype=np.float32)),
    "prior that is not positive": fitted_array(document_prior=np.array([1.0, 0.0])),
    "prior that is not finite": fitted_array(document_prior=np.array([1.0, np.inf])),
    "active topics are numbers": fitted_array(active=np.ones(2)),
    "half of the document numbers": without("fitted_.word_documents.words"),
    "deep parameter": parameter(solver=nested(500)),
    "mapping with a list as key": parameter(init={"mapping": [[[], 1]]}),
    "mapping of numbers": parameter(init={"mapping": 5}),
    "object with other settings": parameter(solver={"object": "EM", "settings": {"evil": 1}}),
    "object without settings": parameter(solver={"object": "EM"}),
    "object with a list as name": parameter(solver={"object": [], "settings": {}}),
    "method": attribute(transform=3),
    "dunder": attribute(__class__="x"),
    "private": attribute(_model_=1),
    "components are a text": no_components,
    "number of words is a text": attribute(n_features_in_="4"),
    "number of words is wrong": attribute(n_features_in_=7),
    "iterations are negative": attribute(n_iter_=-1),
    "background above one": background(7.0),
    "background is one": background(1.0),
    "background without its words": inference(background={"share": 0.5, "joint": False}),
    "words are numbers": attribute(feature_names_in_=[1, 2, 3, 4]),
    "words of the fitted model are numbers": fitted(vocabulary=[1, 2, 3, 4]),
    "words of the fitted model are too few": fitted(vocabulary=["a", "b"]),
    "no weights": without("fitted_.topic_weights"),
    "components of integers": fitted_array(topic_word=np.ones((2, 4), dtype=np.int64)),
    "components of half floats": fitted_array(topic_word=np.ones((2, 4), dtype=np.float16)),
    "components of one axis": fitted_array(topic_word=np.ones(4)),
    "components of other words": fitted_array(topic_word=np.ones((2, 9))),
    "documents of other topics": document_array(doc_topic=np.ones((4, 7))),
    "components not finite": fitted_array(topic_word=np.full((2, 4), np.nan)),
    "weights of other documents": document_array(doc_weights=np.ones(9)),
    "history of two axes": array(**{"history_.objective": np.ones((2, 2))}),
    "prior is not a prior": inference(prior={"object": "EM", "settings": {}}),
    "inference of LDA": other_kind("dirichlet", topic_word=np.ones((2, 4)), alpha=np.ones(2), eta=np.ones(4)),
    "inference of a correlated model": other_kind("logistic-normal", mean=np.zeros(2), covariance=np.eye(2)),
    "unknown field of the fitted model": fitted(evil=1),
    "no documents": without("documents_", "documents_.doc_topic", "documents_.doc_weights", "documents_.background"),
    "not an object": lambda header, tensors: "[]",
    "deep": lambda header, tensors: "[" * 100_000 + "]" * 100_000,
    "repeated": lambda header, tensors: '{"format_version": 1, "format_version": 1}',
    "half a pair": lambda header, tensors: json.dumps(header)[:-1] + ', "x": "\\ud800"}',
}  # fmt: skip


@pytest.mark.parametrize("change", WRONG_MODELS.values(), ids=WRONG_MODELS.keys())
def test_a_model_file_with_a_correct_digest_and_wrong_content(model_file, change):
    rewrite_model(model_file, change)
    with pytest.raises(ModelFileError) as refused:
        polyseme.load(model_file)
    assert "\n" not in str(refused.value)


def test_a_tree_with_a_cycle(tmp_path):
    path = tmp_path / "tree.safetensors"
    HierarchicalPLSA(depth=1, branching=2, max_iter=500, random_state=0).fit(np.eye(4) + 1).save(path)
    assert polyseme.load(path).parents_.tolist() == [-1, 0, 0]
    rewrite_model(path, array(parents_=np.array([-1, 2, 1])))
    with pytest.raises(ModelFileError, match="cycle"):
        polyseme.load(path)


def raw(header: bytes, data: bytes = b"", *, length: int | None = None) -> bytes:
    return (len(header) if length is None else length).to_bytes(8, "little") + header + data


RAW = {
    "huge length": raw(b"{}", length=2**63),
    "length beyond the file": raw(b"{}", length=5000),
    "not JSON": raw(b"x" * 100),
    "deep": raw(b"[" * 50_000),
    "offset beyond the file": raw(b'{"a":{"dtype":"F64","shape":[99],"data_offsets":[0,792]}}', b"\0" * 8),
    "overlapping": raw(
        b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}',
        b"\0" * 8,
    ),
    "hole": raw(b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[8,16]}}', b"\0" * 16),
    "overflow": raw(b'{"a":{"dtype":"F64","shape":[4611686018427387904,8],"data_offsets":[0,8]}}', b"\0" * 8),
    "negative": raw(b'{"a":{"dtype":"F64","shape":[-1],"data_offsets":[0,8]}}', b"\0" * 8),
    "other shape": raw(b'{"a":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}}', b"\0" * 8),
}


@pytest.mark.parametrize("content", RAW.values(), ids=RAW.keys())
def test_an_invalid_safetensors_file(tmp_path, place, content):
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        polyseme.load(path)
    with pytest.raises(ModelFileError):
        SearchIndex.load(path)
    with pytest.raises(ModelFileError):
        read_checkpoint(path, "fit")
    (place / "run" / "shards" / "shard-000000.safetensors").write_bytes(content)
    seal(place / "run")
    with pytest.raises(ShardError):
        assert open_run(place / "run").counts.nnz


# checkpoints


def interrupted(folder: Path, X, stop_at: int = 3) -> PLSA:
    """Return the estimator of an interrupted fit that has a checkpoint."""

    class Stopped(Exception):
        pass

    def stop(entry):
        if entry["iteration"] == stop_at:
            raise Stopped

    model = PLSA(2, solver="em", random_state=0, max_iter=20, tol=0.0, checkpoint=Checkpoint(folder, 0.0))
    with pytest.raises(Stopped):
        model.set_params(callback=stop).fit(X)
    return model.set_params(callback=None)


def _other_shape(arrays):
    arrays["docs"]["point"] = arrays["docs"]["point"][:-1].copy()


def _other_type(arrays):
    arrays["words"]["point0"] = arrays["words"]["point0"].astype(np.int64)


def _not_finite(arrays):
    arrays["words"]["point0"] = np.full_like(arrays["words"]["point0"], np.nan)


def _no_theta(arrays):
    del arrays["docs"]["point"]


def _no_history(arrays):
    del arrays["history"]


def _uneven_history(arrays):
    arrays["history"]["seconds"] = np.zeros(9)


@pytest.mark.parametrize(
    "change",
    [_other_shape, _other_type, _not_finite, _no_theta, _no_history, _uneven_history],
    ids=lambda f: f.__name__,
)
def test_a_checkpoint_with_a_correct_digest_and_wrong_content(tmp_path, change):
    X = np.eye(5) + 1
    model = interrupted(tmp_path, X)
    (path,) = tmp_path.glob("*/checkpoint.safetensors")
    fit = path.parent.name
    found = read_checkpoint(path, fit)
    change(found.arrays)
    write_checkpoint(path, fit, found)
    with pytest.raises(ModelFileError, match="remove it to start again"):
        model.fit(X)


@pytest.mark.parametrize("size", [-1, 0, 1])
def test_a_checkpoint_with_damaged_rows(tmp_path, size):
    X = np.eye(5) + 1
    shards = write_shards([X], tmp_path / "shards", shard_nonzeros=10)
    model = interrupted(tmp_path / "states", shards)
    (file,) = (tmp_path / "states").glob("*/checkpoint.safetensors")
    (rows,) = read_checkpoint(file, file.parent.name).files.values()
    assert len(rows.entries) > 1
    for path in (rows.path(name) for name in rows.entries):
        content = path.read_bytes()
        for place in {len(content) - 1, 0, 8, len(content) // 2}:
            changed = bytearray(content)
            changed[place] ^= 1
            path.write_bytes((changed + b"x")[: len(content) + size])
            with pytest.raises(ModelFileError, match="remove the folder"):
                model.fit(shards)
        path.write_bytes(content)
    seen = []
    with pytest.warns(ConvergenceWarning):
        model.set_params(callback=lambda entry: seen.append(entry["iteration"])).fit(shards)
    assert seen[0] == 3


@pytest.mark.parametrize("folders", ["[1]", '{"a": 1}', "NaN", "[" * 50_000])
def test_a_checkpoint_with_wrong_folders(tmp_path, monkeypatch, folders):
    with monkeypatch.context() as patch:
        patch.setattr("polyseme.solvers.checkpoints.json.dumps", lambda _: folders)
        write_checkpoint(tmp_path / "x", "fit", CheckpointContent({}, {}))
    with pytest.raises(ModelFileError, match="is damaged"):
        read_checkpoint(tmp_path / "x", "fit")
