"""reproductions/hofmann_1999.py on a small collection in the format it reads."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrieval_corpus

pytest.importorskip("ir_measures", reason="ir-measures is not installed (dependency group test)")

REPRODUCTIONS = Path(__file__).parents[2] / "reproductions"
SCRIPT = REPRODUCTIONS / "hofmann_1999.py"


def write_collection(folder):
    folder.mkdir(parents=True)
    counts = retrieval_corpus.counts().toarray()
    with gzip.open(folder / "docs.jsonl.gz", "wt", encoding="utf-8") as file:
        for name, row in enumerate(counts):
            words = [word for word, n in zip(retrieval_corpus.VOCABULARY, row, strict=True) for _ in range(n)]
            file.write(json.dumps({"id": str(name), "text": " ".join(words)}) + "\n")
    queries = {"1": "car road engine", "2": "prey forest", "3": "loan interest"}
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as file:
        for name, text in queries.items():
            file.write(json.dumps({"id": name, "text": text}) + "\n")
    lines = [f"{int(row) % 3 + 1}\t{row}\t{-1 if row < 3 else row % 4 + 1}" for row in range(len(counts) - 1)]
    (folder / "qrels.tsv").write_text("query_id\tdoc_id\trel\n" + "\n".join(lines) + "\n")


def run(*options, **environment):
    command = [sys.executable, "-W", "error::RuntimeWarning", str(SCRIPT), *options]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)


def test_it_prints_the_table_of_any_collection(tmp_path):
    pytest.importorskip("matplotlib")
    write_collection(tmp_path / "own")
    stored = tmp_path / "figures.json"
    common = ("--seeds", "0", "--keep", str(stored), "--pictures", str(tmp_path))
    first = run("--data", str(tmp_path), "--collections", "own", *common)
    assert first.returncode == 0, first.stderr
    rows = [line.strip("| ").split(" | ") for line in first.stdout.splitlines() if line.startswith("| ")]
    names = [row[0] for row in rows]
    for name in ("cos + tf", "PLSI* + tf", "PLSI* + tfidf", "BM25", "PLSI* + BM25", "PLSI + tf, best K"):
        row = rows[names.index(name)]
        assert 50 < float(row[1]) <= 100
        assert 50 < float(row[-1]) <= 100
    assert "### own: 60 documents" in first.stdout
    assert "| PLSI* beats LSI | tf: own " in first.stdout
    assert (tmp_path / "hofmann_1999.png").stat().st_size > 5000
    again = run("--data", str(tmp_path), *common)
    assert "fitted" not in again.stdout
    assert first.stdout.endswith(again.stdout)


def test_a_missing_collection_is_named(tmp_path):
    done = run("--collections", "nothing", POLYSEME_DATA=str(tmp_path))
    assert done.returncode == 2
    assert f"there is no nothing in {tmp_path}" in done.stderr
    assert "set POLYSEME_DATA" in done.stderr


def test_without_collections_it_is_skipped_by_name(tmp_path):
    done = run(POLYSEME_DATA=str(tmp_path))
    assert done.returncode == 0
    assert done.stdout.startswith(f"skipped: all, there is no collection in {tmp_path}")


def test_no_figure_is_attributed_to_the_paper():
    """The table of the paper could not be checked, so neither the script nor the page may quote it."""
    readme = (REPRODUCTIONS / "README.md").read_text()
    for text in (readme, SCRIPT.read_text()):
        assert "remembered" not in text
        assert "published" not in text.lower()
    block = readme.split("<!-- hofmann_1999 -->\n")[1].split("<!-- end of hofmann_1999 -->")[0]
    assert block.startswith("| comparison | ours | in our runs |\n")


def test_the_readme_has_both_tables():
    readme = (REPRODUCTIONS / "README.md").read_text()
    for name in ("med", "cran"):
        block = readme.split(f"<!-- hofmann_1999 {name} -->\n")[1].split(f"<!-- end of hofmann_1999 {name} -->")[0]
        assert "| PLSI* + tf |" in block
        assert "| PLSI* + BM25 |" in block
    assert (REPRODUCTIONS / "pictures" / "hofmann_1999.png").stat().st_size < 150_000
