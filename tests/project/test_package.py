"""The content of the package, and that the built wheel works alone."""

import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_types_and_the_explorer_ship():
    assert files("polyseme").joinpath("py.typed").is_file()
    assert files("polyseme").joinpath("explore", "assets", "app.js").is_file()


def test_the_version_is_written_in_pyproject_toml_and_its_copies_are_equal():
    import polyseme

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == polyseme.__version__
    sources = [*(ROOT / "src").rglob("*.py"), ROOT / "CMakeLists.txt", ROOT / "docs" / "conf.py"]
    quoted = re.compile(rf"[\"']{re.escape(project['version'])}[\"']")
    assert [path.name for path in sources if quoted.search(path.read_text(encoding="utf-8"))] == []
    for path, line in (
        ("CITATION.cff", "version: {}"),
        ("recipe/recipe.yaml", '  version: "{}"'),
        ("CHANGELOG.md", "## {}"),
    ):
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        assert any(found.removesuffix(" (unreleased)") == line.format(project["version"]) for found in lines), path


def test_every_dependency_has_a_lowest_version_that_can_be_tested():
    """`make test-lowest` installs these versions; the test group must not require higher ones."""
    tool = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "lowest_versions.py")], capture_output=True, text=True, check=True
    )
    described = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lowest = {line.partition("==")[0]: line.partition("==")[2] for line in tool.stdout.splitlines()}
    listed = [*described["project"]["dependencies"]]
    listed += [one for extra in described["project"]["optional-dependencies"].values() for one in extra]
    names = {one.partition(">=")[0] for one in listed if not one.startswith("polyseme[")}
    assert set(lowest) == names
    assert {"numpy", "typer", "cryptography"} < names
    for requirement in described["dependency-groups"]["test"]:
        name, _, bound = requirement.partition(">=")
        assert lowest.get(name, bound) == bound, name


@pytest.mark.slow
def test_the_wheel_works_alone(tmp_path):
    pytest.importorskip("build", minversion="1.0", reason="the package check needs the dependency group package")
    command = [sys.executable, str(ROOT / "tools" / "check_package.py"), "--output", str(tmp_path), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a fit works with" in done.stdout
    assert list(tmp_path.glob("*.whl"))


def test_the_list_of_public_names_is_up_to_date():
    tool = ROOT / "tools" / "public_names.py"
    assert subprocess.run([sys.executable, str(tool), "--check"]).returncode == 0, "run python tools/public_names.py"
