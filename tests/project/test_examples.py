"""The examples run on small data, draw their pictures, and have the stated results."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

EXAMPLES = Path(__file__).parents[2] / "examples"

pytest.importorskip("matplotlib")


def run(name, *options):
    """Return the result of the main function of an example."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]([str(option) for option in options])


def drawn(path):
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_groups_of_posts_are_found(tmp_path, capsys):
    rng = np.random.default_rng(0)
    groups = {"rec.boats": "sail anchor hull mast tide crew", "sci.bio": "cell gene protein enzyme tissue mutation"}
    file = tmp_path / "posts.jsonl"
    with file.open("w", encoding="utf-8") as posts:
        for label in [*groups] * 40:
            text = " ".join(rng.choice(groups[label].split(), 12)) + " question about people"
            posts.write(json.dumps({"text": text, "label": label}) + "\n")
    model, found = run("newsgroups", file, "-k", 2, "--min-df", 2, "--pictures", tmp_path)
    assert model.doc_topic_.shape == (80, 2)
    assert found.purity == 1
    assert drawn(tmp_path / "newsgroups.png")
    assert "80 documents" in capsys.readouterr().out


@pytest.mark.slow
def test_real_newsgroups(tmp_path, real_file):
    found = run("newsgroups", real_file("text/news20.jsonl.gz"), "--pictures", tmp_path)[1]
    assert found.nmi > 0.3


def test_a_background_takes_the_function_words(tmp_path, capsys):
    rng = np.random.default_rng(0)
    words = ["the", "of", "and", "to", *(f"word{number}" for number in range(46))]
    topics = rng.dirichlet(np.full(46, 0.2), 3)
    common = np.array([0.3, 0.25, 0.25, 0.2])
    shares = rng.dirichlet(np.full(3, 0.3), 150) @ topics
    X = np.hstack([rng.multinomial(60, common, 150), [rng.multinomial(60, row) for row in shares]])
    sp.save_npz(tmp_path / "counts.npz", sp.csr_array(X))
    (tmp_path / "counts.vocab.txt").write_text("\n".join(words), encoding="utf-8")
    found = run("background", tmp_path / "counts.npz", "-k", 3, "--pictures", tmp_path)
    assert sum(found[0.9]) < sum(found[0.0]) == 12
    assert drawn(tmp_path / "background.png")
    assert "background = 0: 12 of 30 top words are function words" in capsys.readouterr().out


def test_docstrings_divide_by_package(tmp_path):
    packages, shares = run("docstrings", "json", "email", "-k", 3, "--pictures", tmp_path)
    assert packages == ["email", "json"]
    assert shares.sum() == pytest.approx(1)
    assert drawn(tmp_path / "docstrings.png")


def test_faces_are_recognized_by_their_parts(tmp_path, capsys):
    rng = np.random.default_rng(0)
    parts = rng.random((6, 64)) ** 4
    people = np.repeat(np.arange(8), 4)
    X = 100 * rng.dirichlet(np.full(6, 0.5), 8)[people] @ parts + rng.random((32, 64))
    np.savez(tmp_path / "faces.npz", X=X, y=people)
    result = run("faces", tmp_path / "faces.npz", "-k", 6, "--pictures", tmp_path)
    assert result["PLSA"] > 0.9
    assert result["error"] < 0.01
    assert drawn(tmp_path / "faces.png")
    assert "32 pictures of 8 people" in capsys.readouterr().out


def test_the_smallest_triangle_is_the_truth(tmp_path):
    found, likelihoods = run("triangle", "--documents", 200, "--pictures", tmp_path)
    *plain, smallest = found
    assert np.ptp(likelihoods) < 1e-4
    assert smallest.worst < 0.03
    assert max(each.worst for each in plain) > 3 * smallest.worst
    assert drawn(tmp_path / "triangle.png")


@pytest.mark.parametrize("name", ["newsgroups", "faces", "background"])
def test_a_missing_file_is_named(name, tmp_path):
    with pytest.raises(SystemExit, match="set POLYSEME_DATA"):
        run(name, tmp_path / "nothing")
