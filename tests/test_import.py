"""The modules that importing polyseme, and the first fit in a process, load."""

import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import polyseme
import polyseme.estimators
from polyseme import _SUBPACKAGES as SUBPACKAGES

PACKAGES = ["polyseme", "polyseme.estimators", *(f"polyseme.{name}" for name in SUBPACKAGES)]

PROGRAM = """
import json, sys, time
import sklearn.base, sklearn.utils.metaestimators, sklearn.utils.validation
if {fit}:
    import numpy
    from polyseme import PLSA
before = set(sys.modules)
started = time.perf_counter()
if {fit}:
    PLSA(2, random_state=0, tol=1.0).fit(numpy.eye(3))
else:
    from polyseme import PLSA
seconds = time.perf_counter() - started
new = [name for name in set(sys.modules) - before if getattr(sys.modules[name], "__spec__", None)]
json.dump({{"seconds": seconds, "modules": sorted(new)}}, sys.stdout)
"""


def brought_along(*, fit):
    """Return the new modules by package, without the standard library; the time is printed and not checked."""
    program = PROGRAM.format(fit=fit)
    output = subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True).stdout
    report = json.loads(output)
    print(f"{'first fit' if fit else 'import'}: {report['seconds']:.3f} s, {len(report['modules'])} modules")
    packages = {}
    for name in report["modules"]:
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names:
            packages.setdefault(top, []).append(name)
    return packages


def test_importing_polyseme_brings_little_beyond_scikit_learn():
    packages = brought_along(fit=False)
    assert "polyseme.estimators.plsa" in packages["polyseme"]
    assert set(packages) <= {"polyseme", "safetensors", "scipy"}
    assert not [name for name in packages["polyseme"] if name.startswith(("polyseme.cli", "polyseme.explore"))]


def test_importing_polyseme_alone_does_not_import_scikit_learn():
    program = "import sys, polyseme; print('sklearn' in sys.modules, 'numpy' in sys.modules, 'PLSA' in dir(polyseme))"
    output = subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True).stdout
    assert output.split() == ["False", "False", "True"]


def test_the_first_fit_brings_nothing():
    assert brought_along(fit=True) == {}


def test_the_public_names():
    for name in ("PLSA", "load", "InputError", "UnsupportedError", "ModelFileError", "ShardError", "MissingExtraError"):
        assert name in polyseme.__all__
    for name in polyseme.__all__:
        assert getattr(polyseme, name).__doc__


@pytest.mark.parametrize("package", PACKAGES)
def test_the_literal_list_of_names_is_what_a_package_imports(package):
    """Type checkers read the imports; names are imported at once or when they are first used."""
    module = importlib.import_module(package)
    body = ast.parse(inspect.getsource(module)).body
    literal = next(node.value for node in body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    assert sorted(ast.literal_eval(literal)) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        getattr(module, name)
    if Path(module.__file__).name == "__init__.py":
        assert imported_names(body) | defined_names(body) >= {*module.__all__}
        lazy = next((imported_names(node.body) for node in body if isinstance(node, ast.If)), set())
        assert {name for name in lazy if name != "__version__"} <= {*module.__all__, *SUBPACKAGES}


def imported_names(body):
    """Return the names that statements import, also those for type checkers."""
    names = set()
    for node in body:
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            names |= imported_names(node.body)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def defined_names(body):
    targets = [
        node.targets[0] if isinstance(node, ast.Assign) else node.target
        for node in body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_the_estimators_are_those_of_the_package():
    assert {*polyseme.estimators.__all__} <= {*polyseme.__all__}


def test_packages_are_attributes():
    program = "import polyseme; print(polyseme.metrics.top_words.__name__, polyseme.text.Vectorizer.__name__)"
    output = subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True).stdout
    assert output.split() == ["top_words", "Vectorizer"]


def test_errors_of_the_command_line_do_not_wait_for_scikit_learn(tmp_path):
    program = """
import sys
from polyseme.cli.app import main
sys.argv = ["polyseme", *sys.argv[1:]]
try:
    main()
except SystemExit as ended:
    print(ended.code, 'sklearn' in sys.modules, 'numpy' in sys.modules)
"""
    for arguments in (
        ["topics", "nowhere"],
        ["fit", "nowhere"],
        ["select", "nowhere"],
        ["fit", "-k", "x"],
        ["nothing"],
    ):
        ended = subprocess.run(
            [sys.executable, "-P", "-c", program, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        assert ended.stdout.split()[1:] == ["False", "False"], arguments
        assert ended.stderr.startswith("polyseme: ")
        assert ended.stderr.count("\n") == 1
