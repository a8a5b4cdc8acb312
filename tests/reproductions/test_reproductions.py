"""The reproductions run on small problems and have the expected verdicts, which are those of the README."""

import argparse
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from real_data import data_file
from verdicts import verdicts

HERE = Path(__file__).parents[2] / "reproductions"

EXPECTED = {
    "gaussier_goutte_2005": {
        "Scaling A, B": "true",
        "Property": "true",
        "Update rules": "true",
        "Fixed points": "true",
        "The fixed-point argument": "true for optima, not for all fixed points",
        "Local optima of NMF": "true",
        "Annealing and the start": "true",
        "Annealing and the number of components": "true to some extent",
        "Invariance": "true for diagonal; square only if non-negative",
        "Identifiability": "false: only the scale is",
        "Strong consistency (sect. 3)": "only if topics are identifiable and documents grow too",
    },
    "hong_2012": {
        "EM by tokens and by terms (eq. 8-14)": "true",
        "The package's EM": "same",
        "Jensen's bound (eq. 15-18)": "true without the R",
        "The best q (eq. 19-20)": "true without the R",
        "What the bound lacks (sect. 5)": "true",
        "The Q-function (eq. 32)": "true",
        "EM finds a local optimum (sect. 5)": "true",
        "Both formulations (eq. 21, 22)": "true",
        "Their EM (eq. 33-38)": "the same process",
        "Eq. 39 is a distribution": "false as printed",
        "lambda is the background's share": "true with P(d) only",
        "EM with a background": "true",
        "The background in formulation 2": "another model",
        "PLSA and LDA (sect. 1; Girolami and Kaban)": "true for the mode of the posterior, not for its mean",
        "Tensors (sect. 1; Peng)": "true: one objective with the same fixed points",
    },
    "shashanka_2009": {
        "PLSA as a simplex (fig. 1)": "true",
        "Naive translation (sect. 3.1)": "true",
        "The map (sect. 3.2)": "true",
        "Appendix A": "true",
        "T in two dimensions": "the text has the wrong sign",
        "The package's Real-PLSA": "same",
        "Example 1, five points": "true",
        "Example 1, mixture weights": "true to three digits",
        "Example 1, 1000 points": "of the same size",
        "Example 2: the bases are recovered": "similar errors, but no recovery",
        "Example 2: better than ICA": "on some data sets",
        "The smallest simplex (ours, the default)": "recovers the bases",
        "Complexity (sect. 4.1)": "true",
        "Semi-NMF (sect. 4.2)": "true",
        "Convex hull (sect. 4.2)": "true",
        "Non-negative data (sect. 4)": "true; better than VCA + FCLS",
        "Corners of non-negative data (ours)": "the constraint helps",
        "Standard learners (sect. 5)": "as good as standard methods of the same dimension",
    },
    "zhang_ding_tang": {
        "The package's solvers": "same",
        "Theorem 1": "true from F = CS, false from F = C",
        "Corollary 2": "true if sum X = 1",
        "Corollary 3": "true from G = HS, false from G = H",
        "Theorem 5": "true",
        "Corollary 6": "true from old values only",
        "Algorithm 1 as printed": "false as printed, true as Gauss-Seidel",
        "Algorithm 2 as printed": "false as printed, true corrected",
        "Algorithm 3 (sect. 4)": "false",
        "Algorithm 3 (sect. 5, 6)": "false",
        "Theorem 4 and its converse": "true",
        "Fixed row and column sums": "true",
        "F m times, G n times (sect. 5)": "false in general",
        "Equation 10": "false, except for NMF and normalized NMF",
        "NMF is faster (sect. 6)": "true compared with PLSI; little gain compared with EM",
        "Posterior probability normalization (sect. 6)": "true",
        "NMF as a model like LDA (sect. 6)": "true: with Gamma weights it is LDA, with random lengths",
    },
}


def printed(name, *options, **environment):
    """Return the output of a script in quick mode; numerical warnings are errors."""
    command = [sys.executable, "-W", "error::RuntimeWarning", str(HERE / f"{name}.py"), "--quick", *options]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", EXPECTED)
def test_quick_run_has_the_expected_verdicts(name, tmp_path):
    pytest.importorskip("matplotlib")
    output = printed(name, "--pictures", str(tmp_path))
    assert verdicts(output.split("## Verdicts\n")[1]) == EXPECTED[name]
    assert 1_000 < (tmp_path / f"{name}.png").stat().st_size < 150_000


def test_without_real_data_its_parts_are_skipped_by_name(tmp_path):
    output = printed("zhang_ding_tang", POLYSEME_DATA=str(tmp_path))
    assert "skipped: Associated Press" in output
    assert verdicts(output.split("## Verdicts\n")[1]) == EXPECTED["zhang_ding_tang"]


@pytest.mark.parametrize("name", EXPECTED)
def test_readme_has_the_same_verdicts(name):
    readme = (HERE / "README.md").read_text()
    block = readme.split(f"<!-- {name} -->\n")[1].split(f"<!-- end of {name} -->")[0]
    assert verdicts(block) == EXPECTED[name]
    assert (HERE / "pictures" / f"{name}.png").stat().st_size < 150_000


@pytest.mark.slow
def test_newsgroups_on_a_sample():
    data_file("text/news20.jsonl.gz")
    assert len(verdicts(printed("newsgroups").split("## Verdicts\n")[1])) == 7


@pytest.fixture
def reproductions(monkeypatch):
    """Return a function that imports a module of the folder."""
    monkeypatch.syspath_prepend(str(HERE))
    for name in ("formulas", "run_all", "support"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module


def test_every_script_is_run_and_has_its_table(reproductions):
    readme = (HERE / "README.md").read_text()
    named = re.findall(r"^\| `(\w+)\.py` \|", readme, re.MULTILINE)
    assert sorted(named) == sorted(reproductions("run_all").SCRIPTS)
    for name in named:
        assert (HERE / f"{name}.py").is_file()
        assert verdicts(reproductions("support").section(name))


@pytest.mark.parametrize(
    ("learned", "expected"),
    [((1215, 1238), "with priors of 1/K hardly, with learned priors clearly"), ((1262, 1285), "not reproduced")],
)
def test_the_verdict_on_lda_names_its_priors(reproductions, learned, expected):
    perplexities = {
        "PLSA": [1280, 1309],
        "PLSA, regularized": [1135, 1151],
        "LDA, priors 1/K": [1275, 1302],
        "LDA, learned priors": list(learned),
    }
    assert reproductions("newsgroups").judge_held_out(perplexities)[0].verdict == expected


def test_a_failing_script_is_reported(reproductions, tmp_path, monkeypatch, capsys):
    run_all = reproductions("run_all")
    (tmp_path / "good.py").write_text("import sys; print(sys.argv[1])")
    (tmp_path / "bad.py").write_text("raise SystemExit('README.md has another verdict on: A claim.')")
    monkeypatch.setattr(run_all, "HERE", tmp_path)
    monkeypatch.setattr(run_all, "SCRIPTS", ("bad", "good"))
    assert run_all.main(["--quick"]) == 1
    rows = [re.sub(r"\| \d+ \|", "|", line) for line in capsys.readouterr().out.splitlines()]
    assert "| good | as expected | --quick |" in rows
    assert "| bad | FAILED | README.md has another verdict on: A claim. |" in rows


class TestComparisonWithTheReadme:
    """Comparison of verdicts with the table in README.md."""

    @pytest.fixture
    def conclude(self, reproductions, tmp_path, monkeypatch):
        support = reproductions("support")
        monkeypatch.setattr(support, "README", tmp_path / "README.md")
        support.README.write_text("before\n<!-- one -->\n\n<!-- end of one -->\nafter\n")

        def conclude(ours, judged, *, quick=False, readme=False):
            options = argparse.Namespace(quick=quick, readme=readme)
            support.conclude("one", [support.Finding("A claim", "a | b", ours, judged)], options)

        conclude("error 1e-16", "true", readme=True)
        return conclude

    def test_the_same_table_is_reported(self, conclude, capsys):
        conclude("error 1e-16", "true")
        assert capsys.readouterr().out.endswith("README.md has this table.\n")

    def test_other_figures_are_named(self, conclude, capsys):
        conclude("error 2e-16", "true")
        assert "other figures for: A claim." in capsys.readouterr().out
        conclude("error 2e-16", "true", quick=True)
        assert capsys.readouterr().out.endswith("README.md has these verdicts.\n")

    def test_another_verdict_is_an_error(self, conclude, capsys):
        with pytest.raises(SystemExit, match="another verdict on: A claim"):
            conclude("error 1e-16", "false")
        conclude("error 1e-16", "false", quick=True)
        assert "This short form has other verdicts" in capsys.readouterr().out

    def test_text_around_the_table_is_not_changed(self, conclude, tmp_path):
        conclude("error 3", "false", readme=True)
        text = (tmp_path / "README.md").read_text()
        assert text.startswith("before\n<!-- one -->\n| claim |")
        assert text.endswith("| A claim | a \\| b | error 3 | false |\n<!-- end of one -->\nafter\n")
