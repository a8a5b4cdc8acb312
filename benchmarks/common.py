"""What the benchmarks share: data, the machine's name, and clocks."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("POLYSEME_DATA", ROOT.parent / "shared" / "data"))
NEWSGROUPS = DATA / "perf" / "newsgroups_df10.npz"
AP = DATA / "counts" / "ap_blei.npz"
COMMON_START = DATA / "perf" / "newsgroups_df10_k20_start.npz"


def load_counts(path: Path) -> sp.csr_array:
    """Counts of a scipy .npz file, as float32 CSR."""
    if not path.is_file():
        raise SystemExit(f"There is no {path}: set POLYSEME_DATA to the folder that holds the data.")
    return sp.csr_array(sp.load_npz(path)).astype(np.float32)


def describe_machine(*packages: str) -> None:
    """Prints what the figures were measured on."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    from polyseme import _kernels

    print(
        f"{model}, {os.cpu_count()} cores, instruction set used: {_kernels.best_isa()}, "
        f"Python {platform.python_version()}"
    )
    print(", ".join(f"{name} {installed(name)}" for name in ("polyseme", "numpy", "scipy", "scikit-learn", *packages)))


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


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
    """Makes this moment's memory the peak (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Most bytes of memory held since the last reset (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
