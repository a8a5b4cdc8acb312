"""Shared code of the benchmarks: data, time, memory, and the lines of output that benchmarks/report.py collects.

machine: ...      versions: ...        where the figures were measured
ratio: what | peer | ours | theirs | times better
figure: what | value | required value
left out: what: why                    a peer or a part that this machine does not have
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("POLYSEME_DATA", ROOT.parent / "shared" / "data"))
NEWSGROUPS = DATA / "perf" / "newsgroups_df10.npz"
NEWS_TEXTS = DATA / "text" / "news20.jsonl.gz"
AP = DATA / "counts" / "ap_blei.npz"
COMMON_START = DATA / "perf" / "newsgroups_df10_k20_start.npz"

THREADS = 2
"""Number of threads of polyseme and of every peer."""
SKIPPED = 77
"""Exit code of a benchmark that cannot run on this machine."""
PROC = Path("/proc/self")


def skip(reason: str) -> NoReturn:
    """End a benchmark that cannot run on this machine; this is not a failure."""
    print(reason, file=sys.stderr)
    raise SystemExit(SKIPPED)


def report_left_out(what: str, why: str) -> None:
    """Print that a peer or a part of a benchmark is missing."""
    print(f"left out: {what}: {why}", flush=True)


def require_file(path: Path) -> Path:
    """Return the path of a data file, or skip the benchmark if it does not exist."""
    if not path.is_file():
        skip(f"There is no {path}: set POLYSEME_DATA to the folder that holds the data.")
    return path


def load_counts(path: Path) -> sp.csr_array:
    """Return the counts of a scipy .npz file as float32 CSR."""
    return sp.csr_array(sp.load_npz(require_file(path))).astype(np.float32)


def load_lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a .jsonl.gz file."""
    with gzip.open(require_file(path), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def can_import(module: str, package: str = "") -> bool:
    """Return whether a peer can be imported; if not, print that it is left out."""
    if module == "enstop":
        patch_numpy_for_enstop()
    try:
        import_module(module)
    except Exception as error:  # old packages fail in many ways on a new NumPy
        reason = str(error).strip().splitlines() or [type(error).__name__]
        report_left_out(package or module, f"it cannot be imported here ({reason[0]})")
        return False
    return True


def machine() -> dict[str, str]:
    """Return processor, cores, memory, instruction set of the kernels, and Python version."""
    from polyseme import _kernels

    model, memory = platform.processor() or platform.machine(), "unknown"
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "memory": memory,
        "instruction set": _kernels.best_isa(),
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    }


def describe_machine(*packages: str) -> None:
    """Print the machine and the versions of the packages."""
    print("machine: " + ", ".join(f"{name} {value}" for name, value in machine().items()))
    names = ("polyseme", "numpy", "scipy", "scikit-learn", *packages)
    print("versions: " + ", ".join(f"{name} {installed_version(name)}" for name in names), flush=True)


def installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def format_quantity(value: float, unit: str) -> str:
    """Return a value with its unit, in three digits: 17.2 ms for 0.0172 s."""
    if unit == "s" and value < 1:
        value, unit = (1e3 * value, "ms") if value >= 1e-3 else (1e6 * value, "us")
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def report_ratio(what: str, peer: str, ours: float, theirs: float, unit: str = "s", *, at_least: bool = False) -> float:
    """Print and return how many times better ours is: less for s and MB, more for rates such as MB/s.

    at_least: the peer did not reach the target within its time limit.
    """
    ratio = ours / theirs if "/" in unit else theirs / ours
    more = ">" if at_least else ""
    digits = 0 if ratio >= 100 else 1 if ratio >= 10 else 2
    cells = (
        what,
        peer,
        format_quantity(ours, unit),
        more + format_quantity(theirs, unit),
        f"{more}{ratio:.{digits}f}x",
    )
    print("ratio: " + " | ".join(cells), flush=True)
    return ratio


def report_figure(what: str, value: str, required: str = "") -> None:
    """Print a figure without a peer, and the value that it must reach, if any."""
    print(f"figure: {what} | {value} | {required}", flush=True)


def time_call(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def patch_numpy_for_enstop() -> None:
    """Define names that NumPy 2 has removed and enstop 0.2.6 uses."""
    for name, value in (("int", int), ("float", float), ("bool", bool), ("infty", np.inf)):
        if name not in vars(np):
            setattr(np, name, value)


def reset_peak_memory() -> None:
    """Reset the peak to the current memory."""
    _proc("clear_refs").write_text("5")


def peak_memory() -> int:
    """Return the peak memory in bytes since the last reset."""
    return _status("VmHWM")


def anonymous_memory() -> int:
    """Return the anonymous memory of this process in bytes."""
    return _status("RssAnon")


def _status(field: str) -> int:
    lines = _proc("status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field)))


def _proc(name: str) -> Path:
    if not (PROC / name).exists():
        skip(f"Memory is read from {PROC}, which exists on Linux only.")
    return PROC / name
