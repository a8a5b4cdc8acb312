"""The modules that importing polyseme, and the first fit in a process, load."""

import json
import subprocess
import sys

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
    import polyseme

    for name in ("PLSA", "load", "InputError", "UnsupportedError", "ModelFileError", "ShardError", "MissingExtraError"):
        assert name in polyseme.__all__
    for name in polyseme.__all__:
        assert getattr(polyseme, name).__doc__


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
