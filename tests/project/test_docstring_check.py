"""The docstring check of make lint reports missing parts and accepts the documented exceptions."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("numpydoc", reason="the check needs the dependency group lint")

SOURCE = '''
from dataclasses import dataclass

__all__ = ["Result", "Wrong", "incomplete", "right"]


def right(x):
    """Return x.

    Parameters
    ----------
    x : int
        A number.

    Returns
    -------
    int
        The number.
    """
    return x


def incomplete(x):
    """returns x"""
    return x


@dataclass
class Result:
    """A result.

    Attributes
    ----------
    value : float
        The value.
    """

    value: float

    @property
    def double(self):
        """Twice the value."""
        return 2 * self.value


class Wrong:
    """A class."""

    def method(self):
        return 1
'''


@pytest.fixture
def failures(monkeypatch, tmp_path):
    """Return a function that returns the lines that the check prints for a package with a given source."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "tools"))
    check = importlib.import_module("check_docstrings")

    def run(source):
        path = tmp_path / "polyseme_example.py"
        path.write_text(source, encoding="utf-8")
        module = ModuleType("polyseme_example")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "polyseme_example", module)
        exec(compile(source, str(path), "exec"), module.__dict__)
        return check.failures(("polyseme_example",))

    return run


def test_missing_parts_are_reported_with_their_code(failures):
    found = {line.split(": ")[1].removeprefix("polyseme_example.") for line in failures(SOURCE)}
    assert found == {"Wrong.method", "incomplete"}
    codes = {line.split(": ")[2][:4] for line in failures(SOURCE) if "incomplete" in line}
    assert codes == {"SS02", "SS03", "SS05", "PR01", "RT01"}


def test_attributes_of_a_dataclass_count_as_parameters(failures):
    source = SOURCE.replace("value : float", "other : float")
    (line,) = [line for line in failures(source) if "Result" in line]
    assert "PR01" in line
    assert "'value'" in line
