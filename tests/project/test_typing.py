"""mypy and pyright find the errors in code of a user, and none in correct code."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from polyseme import estimators

TYPED = Path(__file__).parent / "typed"


def run(*command, folder):
    return subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True)


def expected_lines():
    """Return the numbers of the lines of errors.py that end with the comment `error`."""
    lines = (TYPED / "errors.py").read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, start=1) if line.rpartition("  # ")[2] == "error"}


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Return what mypy prints."""
    pytest.importorskip("mypy", reason="the check of types needs the dependency group lint")
    folder = tmp_path_factory.mktemp("mypy")
    return run("mypy", "--strict", "--config-file=", "--cache-dir", "cache", str(TYPED), folder=folder).stdout


@pytest.fixture(scope="module")
def pyright(tmp_path_factory):
    """Return the files and lines in which pyright finds errors."""
    pytest.importorskip("pyright", reason="the check of types needs the dependency group lint")
    folder = tmp_path_factory.mktemp("pyright")
    if run("pyright", "--version", folder=folder).returncode:
        pytest.skip("pyright cannot start: it downloads its npm package when it is first used")
    done = run("pyright", "--outputjson", "--pythonpath", sys.executable, str(TYPED), folder=folder)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {(Path(error["file"]).name, error["range"]["start"]["line"] + 1) for error in found}


def test_mypy_finds_the_errors_and_no_others(mypy):
    assert {int(found) for found in re.findall(r"errors\.py:(\d+): error:", mypy)} == expected_lines()
    assert "correct.py" not in mypy


def test_pyright_finds_the_errors_and_no_others(pyright):
    assert {line for name, line in pyright if name == "errors.py"} == expected_lines()
    assert {name for name, _ in pyright} == {"errors.py"}


def test_type_checkers_know_all_documented_attributes(tmp_path):
    pytest.importorskip("mypy", reason="the check of types needs the dependency group lint")
    lines = ["import polyseme"]
    for name in estimators.__all__:
        section = (
            inspect.getdoc(getattr(estimators, name)).partition("Attributes\n----------\n")[2].partition("\n\n")[0]
        )
        lines += [f"polyseme.{name}().{attribute}" for attribute in re.findall(r"^(\w+) : ", section, re.MULTILINE)]
    assert len(lines) > 100
    (tmp_path / "attributes.py").write_text("\n".join(lines), encoding="utf-8")
    done = run("mypy", "--strict", "--config-file=", "--cache-dir", "cache", "attributes.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout
