"""The runner of the benchmarks, on the smallest of them; figures are not judged here."""

import importlib
import re
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def run_all(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, "run_all", raising=False)
    return importlib.import_module("run_all")


def test_every_script_is_run(run_all):
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - {"common", "run_all"}
    assert scripts == {Path(benchmark.path(name)).stem for name, benchmark in run_all.BENCHMARKS.items()}


def test_arguments_are_those_of_the_scripts(run_all):
    for name, benchmark in run_all.BENCHMARKS.items():
        script = (BENCHMARKS.parent / benchmark.path(name)).read_text(encoding="utf-8")
        known = set(re.findall(r'add_argument\("(--[\w-]+)"', script))
        for form in (benchmark.small, benchmark.full):
            assert set(re.findall(r"(?:^| )(--[\w-]+)", form)) <= known, name


def test_a_benchmark_is_run_and_reported(run_all, tmp_path):
    output = tmp_path / "RESULTS.md"
    (outcome,) = run_all.main(["--only", "reading_memory", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    if outcome.failure:  # memory is read from /proc
        assert f": {outcome.failure}" in text
    else:
        assert "`python benchmarks/reading_memory.py --gigabytes 0.1`" in text
        assert outcome.output.strip() in text
    assert "gensim" in text


def test_ratios_and_failures_are_told(run_all):
    outcome = run_all.Outcome("sweep", ["benchmarks/sweep.py"], "| ours | 10 ms |\n| theirs | 100 ms: 10.0x |\n", 3, "")
    broken = run_all.Outcome("text", ["benchmarks/text.py"], "", 1, "ValueError: no.")
    without = run_all.Outcome("lda", ["benchmarks/lda.py"], "", 1, "There is no x.npz: set POLYSEME_DATA.")
    text = run_all.report([outcome, broken, without], full=False)
    assert "| sweep | theirs , 100 ms: 10.0x |" in text
    assert "ours" not in text.split("## One EM")[0]
    assert "Failed: ValueError: no." in text
    assert "Skipped: There is no x.npz" in text
    assert run_all.ratios([broken]) == []
