"""Build the sdist and a wheel from it, and test the wheel in fresh environments.

Run: .venv/bin/python tools/check_package.py [--output dist] [PYTHON ...]
PYTHON are interpreters; the default is every Python 3.11 to 3.14 that is found. For each one, the script builds a wheel
from the sdist, fits a model in an environment without optional packages, where the command line names its extra, and
runs `polyseme demo` with the extra `cli`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
IN_WHEEL = (
    "py.typed", "_kernels.pyi", "text/_counting.pyi", "retrieval/_postings.pyi", "explore/assets/app.js",
    "explore/assets/model/data.js",
)  # fmt: skip
IN_SDIST = ("pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md", "src/polyseme/_native/sweep.hpp")
MOST_BYTES = 3_000_000
"""Size of the largest wheel."""
UNWANTED = (".so", ".pyd", ".dylib", ".o", ".pyc", ".egg-info", ".venv", ".git", ".ci", "build", "dist")

MINIMAL = """
import importlib.util, pathlib, sys
import numpy as np
import polyseme
for absent in ("polars", "dask", "matplotlib", "typer"):
    assert importlib.util.find_spec(absent) is None, absent
model = polyseme.PLSA(2, random_state=0).fit(np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]]))
assert np.allclose(model.components_.sum(axis=1), 1)
model.save("model.safetensors")
assert np.array_equal(polyseme.load("model.safetensors").components_, model.components_)
assert (pathlib.Path(polyseme.__file__).parent / "py.typed").is_file()
print("a fit works with", ".".join(map(str, sys.version_info[:3])), "and numpy", np.__version__)
"""


def run(*command: str | Path, cwd: Path, fails: bool = False) -> str:
    """Return the output of a command, which must succeed, or fail if `fails`."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if (done.returncode != 0) is not fails:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def found() -> Iterator[str]:
    """Yield a working interpreter of each version, from the path or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)]
        for candidate in candidates:
            if candidate is not None and works(str(candidate), version):
                yield str(candidate)
                break
        else:
            print(f"skipped: there is no Python {version} with its headers")


def works(python: str, version: str) -> bool:
    program = (
        "import os, sys, sysconfig, ensurepip\n"
        "open(os.path.join(sysconfig.get_path('include'), 'Python.h')).close()\n"
        "print('%d.%d' % sys.version_info[:2])"
    )
    done = subprocess.run([python, "-c", program], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == version


def check_sdist(path: Path) -> None:
    """Exit with an error if the sdist lacks a file or contains build products."""
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    missing = [name for name in IN_SDIST if name not in names]
    unwanted = [name for name in names if any(part == end or part.endswith(end) for part in name.split("/")
                                              for end in UNWANTED)]  # fmt: skip
    if missing or unwanted:
        raise SystemExit(f"{path.name}: missing {missing}, unwanted {unwanted}")
    print(f"{path.name}: {len(names)} files, {path.stat().st_size / 1e6:.1f} MB")


def check_wheel(path: Path) -> None:
    """Exit with an error if the wheel lacks types or assets, contains C++ files, or is large."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    missing = [name for name in IN_WHEEL if f"polyseme/{name}" not in names]
    unwanted = [name for name in names if name.endswith((".cpp", ".hpp", ".o", ".pyc")) or name.startswith("tests/")]
    if missing or unwanted:
        raise SystemExit(f"{path.name}: missing {missing}, unwanted {unwanted}")
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{path.name}: {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}")
    print(f"{path.name}: {len(names)} files, {path.stat().st_size / 1e6:.1f} MB")


def environment(python: str, folder: Path) -> Path:
    """Create an environment and return its interpreter."""
    run(python, "-m", "venv", folder, cwd=folder.parent)
    return next(path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists())


def try_wheel(python: str, sdist: Path, output: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        inside = environment(python, folder / "fresh")
        run(inside, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "wheel", sdist, cwd=folder)
        (wheel,) = (folder / "wheel").glob("*.whl")
        check_wheel(wheel)
        run(inside, "-m", "pip", "install", "--quiet", wheel, cwd=folder)
        print(run(inside, "-c", MINIMAL, cwd=folder).strip())
        assert "polyseme[cli]" in run(inside, "-m", "polyseme.cli", cwd=folder, fails=True)
        run(inside, "-m", "pip", "install", "--quiet", f"{wheel}[cli]", cwd=folder)
        command = inside.parent / "polyseme"
        print(run(command, "demo", "--max-iter", "5", cwd=folder).strip().splitlines()[-1])
        assert (folder / "polyseme-demo" / "explorer.html").is_file()
        shutil.copy(wheel, output)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("python", nargs="*", help="interpreters (every Python 3.11 to 3.14 that is found)")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the sdist and the wheels (dist)")
    options = parser.parse_args(argv)
    output = options.output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", output, cwd=ROOT)
    sdist = max(output.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    check_sdist(sdist)
    for python in options.python or found():
        try_wheel(python, sdist, output)


if __name__ == "__main__":
    main()
