"""The comparison behind tools/compare_builds.py. No build is made here."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.append(str(TOOLS))

from compare_builds import report  # noqa: E402
from comparison.compare import Outcome, compare_outcomes, compare_value, compare_values  # noqa: E402
from comparison.values import Message, outcome_of, read_outcomes, write_outcomes  # noqa: E402

NUMBERS = np.linspace(0.0, 1.0, 6).reshape(2, 3)


def with_entry(value, dtype=np.float64):
    changed = NUMBERS.astype(dtype)
    changed[1, 1] = value
    return changed


def test_equal_bits_are_equal():
    assert compare_value(NUMBERS, NUMBERS.copy()) == ""
    assert compare_value(with_entry(np.nan), with_entry(np.nan)) == ""
    assert compare_value(np.asfortranarray(NUMBERS), NUMBERS) == ""
    assert compare_value("a", "a") == compare_value(None, None) == ""


def test_one_bit_is_a_difference():
    changed = NUMBERS.copy()
    changed[1, 1] = np.nextafter(changed[1, 1], 2)
    found = compare_value(NUMBERS, changed)
    assert found == "1 of 6 differ, by at most 1.11e-16 (relative 1.39e-16)"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (with_entry(0.0), with_entry(-0.0), "1 of 6 differ, in the sign of zero"),
        (with_entry(np.nan), with_entry(0.5), "one of them from nan to 0.5"),
        (with_entry(np.nan), with_entry(-np.nan), "1 of 6 differ"),
        (with_entry(1.0), with_entry(np.inf), "one of them from 1 to inf"),
        (NUMBERS, NUMBERS.astype(np.float32), "dtype float64 became float32"),
        (NUMBERS, NUMBERS.ravel(), "shape (2, 3) became (6,)"),
        (np.array(["a", "b"]), np.array(["a", "c"]), "1 of 2 differ, first np.str_('b') became np.str_('c')"),
        (np.array([True]), np.array([False]), "1 of 1 differ, by at most 1"),
        ("a", "b", "'a' became 'b'"),
        ("a", None, "'a' became None"),
        (None, np.array(1.0), "None became array(1.)"),
    ],
)
def test_differences_are_described(old, new, words):
    assert words in compare_value(old, new)


def test_missing_values_are_differences_and_new_values_are_added():
    old, new = {"a": NUMBERS, "b": "x"}, {"a": NUMBERS, "c": "x"}
    assert compare_values(old, new) == ["b: only in the old build"]
    found = compare_outcomes(outcome_of(old), outcome_of(new))
    assert found.differences == ["b: only in the old build"]
    assert found.added == ["c"]
    found = compare_outcomes(outcome_of({"a": NUMBERS}), outcome_of({"a": NUMBERS + 1, "c": "x"}))
    assert (len(found.differences), found.added) == (1, ["c"])


def test_the_report_lists_added_values_and_counts_only_differences(capsys):
    old, new = outcome_of({"a": NUMBERS}), outcome_of({"a": NUMBERS, "solver_": "em"})
    assert report({"plsa/em/one": compare_outcomes(old, new), "plsa/em/two": compare_outcomes(old, new)}) == 0
    printed = capsys.readouterr().out
    assert "added: 1 values are in the new build only (this does not count)\n    solver_ in 2 cases\n" in printed
    assert printed.endswith("2 cases, 2 values: all equal\n")
    assert report({"plsa/em/one": compare_outcomes(new, old)}) == 1
    assert "solver_: only in the old build" in capsys.readouterr().out


def test_outcomes_are_compared_by_values_and_types_of_errors():
    equal, other = outcome_of({"a": NUMBERS}), outcome_of({"a": NUMBERS + 1})
    refused = Outcome(messages={"error": "no"}, error="InputError")
    rewritten = Outcome(messages={"error": "No."}, error="InputError")
    assert compare_outcomes(equal, equal).differences == []
    assert compare_outcomes(equal, other).differences == ["a: 6 of 6 differ, by at most 1 (relative 1)"]
    assert compare_outcomes(refused, rewritten).differences == []
    assert compare_outcomes(refused, rewritten).messages == [("no", "No.")]
    assert "raises InputError" in compare_outcomes(refused, equal).differences[0]
    assert "raises InputError" in compare_outcomes(refused, Outcome(error="ShardError")).differences[0]
    assert compare_outcomes(None, equal).differences == ["only the new build has this case"]
    assert compare_outcomes(Outcome(skipped="no Dask"), Outcome(skipped="no Dask")).skipped == "no Dask"
    assert compare_outcomes(Outcome(skipped="no Dask"), equal).differences == ["only the old build skips it"]


def test_a_case_that_fails_with_both_builds_is_not_equal():
    failed = Outcome(failure="TypeError: x")
    assert len(compare_outcomes(failed, failed).differences) == 2


def test_results_become_flat_and_survive_their_files(tmp_path):
    result = {
        "history_": {"seconds": 1.0, "objective": NUMBERS},
        "background_share_": 0.5,
        "counts": sp.csr_array(NUMBERS),
        "words": ["a", "b"],
        "mixed": [1, None],
        "text": Message("for people"),
    }
    outcome = outcome_of(result)
    assert outcome.messages == {"text": "for people"}
    assert "history_.seconds" not in outcome.values
    assert outcome.values["word_background_"] == 0.5
    assert outcome.values["words.items"] == '["a", "b"]'
    write_outcomes({"case": outcome, "other": Outcome(error="InputError")}, tmp_path / "found")
    again = read_outcomes(tmp_path / "found")
    assert compare_outcomes(outcome, again["case"]).differences == []
    assert again["other"].error == "InputError"
    with pytest.raises(TypeError, match="cannot be compared"):
        outcome_of({"a": object()})


def test_cases_are_listed_without_polyseme():
    code = "import sys, compare_builds as c; c.main(['--list', '--only', 'plsa/em']); print('polyseme' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=TOOLS, capture_output=True, text=True, check=True)
    *names, imported = done.stdout.split()
    assert "plsa/em/prior=none/background=none/float32" in names
    assert imported == "False"
