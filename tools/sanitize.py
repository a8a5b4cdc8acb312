"""Test the compiled code under the address, undefined-behavior and thread sanitizers (``make sanitize``).

The extension modules are built for each sanitizer in build/sanitize-NAME and installed in a copy of the package there.
The interpreter is not instrumented, so the library of the sanitizer is preloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# float-cast-overflow is undefined, too, but not among the checks of "undefined".
FLAGS = {
    "address": "-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all",
    "thread": "-fsanitize=thread",
}
LIBRARIES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
SETTINGS = {
    # Python frees little when it exits. A refused allocation must reach the code, which handles it.
    "address": {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"},
    # The replay forks children.
    "thread": {"TSAN_OPTIONS": "allocator_may_return_null=1:die_after_fork=0:halt_on_error=1:exitcode=66"},
}
TESTS = (
    "test_kernels.py",
    "solvers/test_variational.py",
    "text/test_vectorizer.py",
    "text/test_languages.py",
    "text/test_vectorizer_sequences.py",
    "retrieval/test_postings.py",
    "retrieval/test_files.py",
)
REPLAYS = {"address": ("text", "estimators", "runs"), "thread": ("text", "estimators")}
"""Fuzzers whose stored cases reach compiled code. The cases of runs start threads of polars in forked processes, which
the thread sanitizer does not support."""


def compiler() -> str:
    """Return the C++ compiler: CXX, or the default one."""
    return os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or "c++"


def build(name: str) -> Path:
    """Build the modules with a sanitizer, and return a folder with the package to import."""
    folder = ROOT / "build" / f"sanitize-{name}"
    flags = f"-O1 -g -fno-omit-frame-pointer {FLAGS[name]}"
    configure = [
        "cmake",
        "-G",
        "Ninja",
        "-S",
        ROOT,
        "-B",
        folder,
        "-DCMAKE_BUILD_TYPE=None",
        f"-DCMAKE_CXX_FLAGS={flags}",
    ]
    configure += [f"-DCMAKE_CXX_COMPILER={compiler()}", f"-DPython_EXECUTABLE={sys.executable}"]
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    package = folder / "package"
    shutil.rmtree(package, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "_native")
    shutil.copytree(ROOT / "src" / "polyseme", package / "polyseme", ignore=ignored)
    for command in (configure, ["cmake", "--build", folder], ["cmake", "--install", folder, "--prefix", package]):
        subprocess.run(command, check=True, env=tools, stdout=subprocess.DEVNULL)
    return package


def environment(name: str, package: Path) -> dict[str, str]:
    """Return the variables of a process that imports the package."""
    paths = [
        subprocess.run(
            [compiler(), f"-print-file-name={library}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for library in LIBRARIES[name]
    ]
    known = {**os.environ, **SETTINGS[name], "LD_PRELOAD": " ".join(paths), "PYTHONPATH": str(package)}
    # The allocator of Python would hide freed memory.
    return {**known, "PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1", "POLYSEME_SANITIZER": name}


def main() -> int:
    """Run all sanitizers, or those named on the command line, and return the exit code."""
    for name in sys.argv[1:] or FLAGS:
        variables = environment(name, build(name))
        check = "import polyseme._kernels as k; print(k.__file__)"
        found = subprocess.run(
            [sys.executable, "-c", check], env=variables, check=True, capture_output=True, text=True
        ).stdout
        if f"sanitize-{name}" not in found:
            raise SystemExit(f"The module under test is {found.strip()}, not the one that was built.")
        tests = [ROOT / "tests" / test for test in TESTS]
        commands = [[sys.executable, "-m", "pytest", "-m", "not slow", "-p", "no:cacheprovider", *tests]]
        commands += [[sys.executable, ROOT / "tests" / "fuzz", replay, "--replay"] for replay in REPLAYS[name]]
        for command in commands:
            if code := subprocess.run(command, env=variables, cwd=ROOT).returncode:
                print(
                    f"Under the {name} sanitizer this failed with code {code}: {' '.join(map(str, command))}",
                    file=sys.stderr,
                )
                return 1
        print(f"{name} sanitizer: nothing found.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
