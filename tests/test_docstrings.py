"""Examples in the docstrings of public names and of their methods: they run and print what they show."""

import doctest
import importlib
import inspect

import pytest
from matplotlib import pyplot

import polyseme

MODULES = ["polyseme", *(f"polyseme.{name}" for name in polyseme._SUBPACKAGES)]
SHOWN = {
    f"{module}.{name}": getattr(importlib.import_module(module), name)
    for module in MODULES
    for name in importlib.import_module(module).__all__
}
METHODS = {
    f"{method.__module__}.{method.__qualname__}": method
    for value in SHOWN.values()
    if isinstance(value, type)
    for _, method in inspect.getmembers(value, inspect.isroutine)
    if str(getattr(method, "__module__", None)).startswith("polyseme")
}
"""Methods of public classes under the names of the classes that define them."""
EXAMPLES = {name: value for name, value in (SHOWN | METHODS).items() if ">>>" in (inspect.getdoc(value) or "")}
RUN = {id(value): name for name, value in EXAMPLES.items()}.values()
"""One name for each object: some are public in two modules."""


def _is_exception(value):
    return isinstance(value, type) and issubclass(value, Exception)


def test_every_name_that_users_type_has_an_example():
    """Results, exceptions and the interface for extensions appear in the examples of other names."""
    typed = {name for name in SHOWN if name.rpartition(".")[0] not in ("polyseme.typing", "polyseme.extending")}
    callables = {name for name in typed if callable(SHOWN[name]) and not _is_exception(SHOWN[name])}
    assert sorted(callables - EXAMPLES.keys()) == []


@pytest.mark.parametrize("name", RUN)
def test_the_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("agg")
    (test,) = doctest.DocTestFinder(recurse=False).find(EXAMPLES[name], name, globs={})
    assert test.examples
    result = doctest.DocTestRunner().run(test)
    pyplot.close("all")
    assert result.failed == 0
