"""Examples in the docstrings of public names: they run and print what they show."""

import doctest
import importlib
import inspect

import pytest

import polyseme

MODULES = ["polyseme", *(f"polyseme.{name}" for name in polyseme._SUBPACKAGES)]
SHOWN = {
    f"{module}.{name}": getattr(importlib.import_module(module), name)
    for module in MODULES
    for name in importlib.import_module(module).__all__
}
EXAMPLES = {name: value for name, value in SHOWN.items() if ">>>" in (inspect.getdoc(value) or "")}


def test_most_names_that_users_type_have_examples():
    assert len(EXAMPLES) > 40


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(name):
    (test,) = doctest.DocTestFinder(recurse=False).find(EXAMPLES[name], name, globs={})
    assert test.examples
    result = doctest.DocTestRunner().run(test)
    assert result.failed == 0
