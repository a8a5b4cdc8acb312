"""The runner of the benchmarks and its report, on artificial outcomes and on the smallest benchmark."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# Modules of scripts, and scripts that need a commit to compare with or a cluster.
HELPERS = {"builds", "cluster_plan", "common", "fits", "report", "run_all", "scale_peers", "solver_peers"}

PRINTED = """machine: processor X, cores 2
versions: polyseme 0.1.0
20 documents
ratio: one EM iteration, K = 20 | scikit-learn NMF mu | 17.2 ms | 647 ms | 37.6x
ratio: to a gap | enstop | 1.00 s | >12.0 s | >12.0x
figure: share of sgemm's speed | 12% | at least 10%
left out: bigartm: it cannot be imported here (No module named 'six')
"""


@pytest.fixture
def modules(monkeypatch):
    """Return a function that imports a module of the folder by name, as the scripts do."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in HELPERS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module


@pytest.fixture
def run_all(modules):
    return modules("run_all")


@pytest.fixture
def outcomes(modules):
    """Return one successful, one skipped and one failed outcome."""
    outcome = modules("report").Outcome
    missing = modules("common").DATA / "x.npz"
    return [
        outcome("sweep", "One EM iteration", "benchmarks/sweep.py --rounds 2", PRINTED, 60.0),
        outcome("lda", "LDA", "benchmarks/lda.py", "", 1.0, 77, f"There is no {missing}: set POLYSEME_DATA."),
        outcome("text", "Counting words", "benchmarks/text.py", "half of it\n", 29.0, 1, "ValueError: no."),
    ]


def test_every_script_is_run(run_all):
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - HELPERS
    assert scripts == {Path(benchmark.path(name)).stem for name, benchmark in run_all.BENCHMARKS.items()}


def test_arguments_are_those_of_the_scripts(run_all):
    for name, benchmark in run_all.BENCHMARKS.items():
        script = (BENCHMARKS.parent / benchmark.path(name)).read_text(encoding="utf-8")
        known = set(re.findall(r'add_argument\("(--[\w-]+)"', script))
        for form in (benchmark.small, benchmark.full):
            assert set(re.findall(r"(?:^| )(--[\w-]+)", form)) <= known, name


def test_ratios_and_figures_are_read_from_the_output(modules, outcomes):
    report = modules("report")
    first, second = report.ratios(outcomes)
    assert first == ("sweep", "one EM iteration, K = 20", "scikit-learn NMF mu", "17.2 ms", "647 ms", "37.6x")
    assert (first.value, second.value) == (37.6, 12.0)
    assert report.figures(outcomes) == [("sweep", "share of sgemm's speed", "12%", "at least 10%")]


def test_the_report_lists_ratios_skips_and_failures(modules, outcomes):
    report = modules("report")
    text = report.report(outcomes, full=False, peers=["gensim"], pictures=["ratios.png"], date="2026-01-31")
    assert "Written by `make bench` (the small form) on 2026-01-31, in 1.5 minutes." in text
    assert "| sweep | one EM iteration, K = 20 | scikit-learn NMF mu | 17.2 ms | 647 ms | 37.6x |\n" in text
    assert "| sweep | to a gap | enstop | 1.00 s | >12.0 s | >12.0x |\n" in text
    assert "| sweep | share of sgemm's speed | 12% | at least 10% |\n" in text
    assert "- lda was skipped: There is no $POLYSEME_DATA/x.npz: set POLYSEME_DATA.\n" in text
    assert "- text failed: ValueError: no.\n" in text
    assert "- sweep left out bigartm: it cannot be imported here" in text
    assert "![All ratios](pictures/ratios.png)" in text
    assert re.search(r"\| versions \| polyseme [\w.+]+, numpy .*, gensim [\w. ]+ \|", text)
    printed = text.split("## Output")[1]
    assert "`python benchmarks/sweep.py --rounds 2`, 60 seconds." in printed
    assert "20 documents" in printed
    assert "half of it" in printed
    assert "processor X" not in printed
    assert str(BENCHMARKS.parent) not in text


def test_the_report_of_the_full_form_with_nothing_left_out(modules, outcomes):
    outcome = modules("report").Outcome
    text = modules("report").report([outcome("sweep", "One", "a.py", "fine\n", 6.0)], full=True, peers=[], pictures=[])
    assert "`make bench BENCH_OPTIONS=--full` (the full form)" in text
    assert "## Left out\n\nNothing.\n" in text
    assert "## Comparison with other packages" not in text


def test_ratios_are_drawn(modules, outcomes, tmp_path):
    report = modules("report")
    picture = tmp_path / "pictures" / "ratios.png"
    report.draw_ratios(report.ratios(outcomes), picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("ours", "theirs", "unit", "line"),
    [
        (0.0172, 0.647, "s", "17.2 ms | 647 ms | 37.6x"),
        (2.0, 1.0, "s", "2.00 s | 1.00 s | 0.50x"),
        (0.000025, 0.5, "s", "25.0 us | 500 ms | 20000x"),
        (50.0, 8.0, "MB/s", "50.0 MB/s | 8.00 MB/s | 6.25x"),
        (10.0, 120.0, "MB", "10.0 MB | 120 MB | 12.0x"),
    ],
)
def test_a_ratio_states_how_many_times_better(modules, capsys, ours, theirs, unit, line):
    modules("common").report_ratio("work", "peer", ours, theirs, unit)
    assert capsys.readouterr().out == f"ratio: work | peer | {line}\n"


def test_a_peer_that_missed_the_target_has_a_lower_bound(modules, capsys):
    modules("common").report_ratio("work", "peer", 1.0, 15.0, at_least=True)
    assert capsys.readouterr().out == "ratio: work | peer | 1.00 s | >15.0 s | >15.0x\n"


def test_a_peer_that_cannot_be_imported_is_left_out(modules, capsys, tmp_path, monkeypatch):
    (tmp_path / "broken_peer.py").write_text("raise AttributeError('np.float is gone\\nand more')")
    monkeypatch.syspath_prepend(str(tmp_path))
    can_import = modules("common").can_import
    assert can_import("json")
    assert not can_import("broken_peer", "broken")
    assert not can_import("no_such_peer")
    assert capsys.readouterr().out == (
        "left out: broken: it cannot be imported here (np.float is gone)\n"
        "left out: no_such_peer: it cannot be imported here (No module named 'no_such_peer')\n"
    )


@pytest.fixture
def run_code(run_all, tmp_path, monkeypatch):
    """Return a function that runs code as a benchmark."""

    def run(code, limit=60.0):
        script = tmp_path / "script.py"
        script.write_text(code)
        monkeypatch.setattr(run_all.Benchmark, "path", lambda self, name: str(script))
        monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS))
        monkeypatch.setitem(
            run_all.BENCHMARKS, "artificial", run_all.Benchmark("Artificial", "--picture {pictures}/a.png")
        )
        return run_all.run("artificial", False, limit, tmp_path / "pictures")

    return run


def test_peers_have_the_same_number_of_threads(run_code):
    outcome = run_code(
        "import os, sys; print(os.environ['OMP_NUM_THREADS'], os.environ['NUMBA_NUM_THREADS'], sys.argv)"
    )
    assert outcome.code == 0
    assert outcome.output.startswith("2 2 ")
    assert "pictures/a.png" in outcome.output


def test_a_benchmark_without_its_data_is_skipped(run_code):
    outcome = run_code(
        "from pathlib import Path; from common import require_file; require_file(Path('absent.npz')); print(1)"
    )
    assert outcome.skipped
    assert not outcome.failed
    assert outcome.output == ""
    assert outcome.message == "There is no absent.npz: set POLYSEME_DATA to the folder that holds the data."


def test_a_benchmark_that_breaks_has_failed(run_code):
    outcome = run_code("print('first', flush=True); import no_such_module")
    assert outcome.failed
    assert not outcome.skipped
    assert outcome.output == "first\n"
    assert outcome.message == "ModuleNotFoundError: No module named 'no_such_module'"


def test_a_benchmark_that_takes_too_long_is_stopped_with_its_children(run_code):
    code = "import subprocess, sys; print('first', flush=True); subprocess.run(['sleep', '60'])"
    outcome = run_code(code, limit=1.5)
    assert outcome.failed
    assert outcome.seconds < 30
    assert outcome.message == "it was stopped after 2 seconds"
    assert outcome.output == "first\n"


def test_a_benchmark_is_run_and_reported(run_all, tmp_path):
    output = tmp_path / "RESULTS.md"
    (outcome,) = run_all.main(["--only", "reading_memory", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert not outcome.failed
    assert "`python benchmarks/reading_memory.py --gigabytes 0.1`" in text
    assert "gensim" in text
    if outcome.skipped:  # without /proc
        assert f"reading_memory was skipped: {outcome.message}" in text
    else:
        assert re.search(r"\| reading_memory \| reading JSON lines \| \d+ MB per CPU second \|  \|", text)


def test_an_iteration_of_a_cluster_is_e_steps_sums_and_topics(modules):
    plan = modules("cluster_plan")
    rates = plan.Rates(nanoseconds=100.0, merge=1e9, m_step=2e9, transfer=1e9)
    size = plan.Size(topics=16, words=1000, documents=100, shard_nonzeros=[10**6] * 8)
    sums = 8 * 1000 * 16
    alone = plan.iteration(size, 1, rates, 1e9)
    assert alone.e_steps == pytest.approx(8 * (0.1 + sums / 1e9))
    assert (alone.tree, alone.topics_out) == (pytest.approx(sums / 2e9), 0)
    four = plan.iteration(size, 4, rates, 1e8)
    assert four.e_steps == pytest.approx(alone.e_steps / 4)
    assert four.tree == pytest.approx(3 * (sums / 1e8 + sums / 1e9) + sums / 2e9)
    assert four.topics_out == pytest.approx(2 * (sums / 2) / 1e8)
    slow = plan.iteration(size, 4, rates, 1e8, np.r_[np.ones(6), 0.5, 0.5])
    assert slow.seconds > four.seconds
