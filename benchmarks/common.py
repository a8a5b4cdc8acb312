"""What the benchmarks share: data, clocks, and the lines that benchmarks/report.py gathers from what they print.

machine: ...      versions: ...        what the figures were measured on
ratio: what | peer | ours | theirs | times better
figure: what | value | bar
left out: what: why                    a peer or a part that cannot be had here
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
"""of ours and of every peer"""
SKIPPED = 77
"""exit code of a benchmark that cannot run here"""
PROC = Path("/proc/self")


def skip(reason: str) -> NoReturn:
    """Ends a benchmark that cannot run here, which is no failure."""
    print(reason, file=sys.stderr)
    raise SystemExit(SKIPPED)


def left_out(what: str, why: str) -> None:
    """Tells that a peer or a part of a benchmark is missing."""
    print(f"left out: {what}: {why}", flush=True)


def needed(path: Path) -> Path:
    """A file of the data; where it is absent the benchmark is skipped."""
    if not path.is_file():
        skip(f"There is no {path}: set POLYSEME_DATA to the folder that holds the data.")
    return path


def load_counts(path: Path) -> sp.csr_array:
    """Counts of a scipy .npz file, as float32 CSR."""
    return sp.csr_array(sp.load_npz(needed(path))).astype(np.float32)


def load_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a .jsonl.gz file."""
    with gzip.open(needed(path), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def can_import(module: str, package: str = "") -> bool:
    """Whether a peer is here and works with this Python and NumPy; if not, it is told as left out."""
    if module == "enstop":
        patch_numpy_for_enstop()
    try:
        import_module(module)
    except Exception as error:  # old packages fail in many ways on a new NumPy
        reason = str(error).strip().splitlines() or [type(error).__name__]
        left_out(package or module, f"it cannot be imported here ({reason[0]})")
        return False
    return True


def machine() -> dict[str, str]:
    """Processor, cores, memory, instruction set of our kernels, and Python."""
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
    """Prints what the figures were measured on."""
    print("machine: " + ", ".join(f"{name} {value}" for name, value in machine().items()))
    names = ("polyseme", "numpy", "scipy", "scikit-learn", *packages)
    print("versions: " + ", ".join(f"{name} {installed(name)}" for name in names), flush=True)


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def quantity(value: float, unit: str) -> str:
    """A value with its unit, in three digits: 17.2 ms for 0.0172 s."""
    if unit == "s" and value < 1:
        value, unit = (1e3 * value, "ms") if value >= 1e-3 else (1e6 * value, "us")
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def compared(what: str, peer: str, ours: float, theirs: float, unit: str = "s", *, at_least: bool = False) -> float:
    """Prints how many times better ours is: less of seconds or MB, more of a unit "a second" such as MB/s.

    at_least: theirs did not get there, and would have needed more.
    """
    ratio = ours / theirs if "/" in unit else theirs / ours
    more = ">" if at_least else ""
    digits = 0 if ratio >= 100 else 1 if ratio >= 10 else 2
    cells = (what, peer, quantity(ours, unit), more + quantity(theirs, unit), f"{more}{ratio:.{digits}f}x")
    print("ratio: " + " | ".join(cells), flush=True)
    return ratio


def figure(what: str, value: str, bar: str = "") -> None:
    """Prints a figure that has no peer, and the bar that it is held to, if any."""
    print(f"figure: {what} | {value} | {bar}", flush=True)


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def patch_numpy_for_enstop() -> None:
    """enstop 0.2.6 uses names that NumPy 2 has dropped."""
    for name, value in (("int", int), ("float", float), ("bool", bool), ("infty", np.inf)):
        if name not in vars(np):
            setattr(np, name, value)


def reset_peak_memory() -> None:
    """Makes this moment's memory the peak."""
    _proc("clear_refs").write_text("5")


def peak_memory() -> int:
    """Most bytes of memory held since the last reset."""
    return _status("VmHWM")


def anonymous_memory() -> int:
    """Bytes of this process that no file backs."""
    return _status("RssAnon")


def _status(field: str) -> int:
    lines = _proc("status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field)))


def _proc(name: str) -> Path:
    if not (PROC / name).exists():
        skip(f"Memory is read from {PROC}, which Linux has.")
    return PROC / name
