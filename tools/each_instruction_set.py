"""Run a command once for each instruction set of this machine, and fail if one of the runs fails.

Run: .venv/bin/python tools/each_instruction_set.py COMMAND ...
POLYSEME_ISA selects the kernels. For sets below the best one, OpenBLAS and NumPy are limited as well, so that a run
rounds as on an older processor.
"""

from __future__ import annotations

import os
import subprocess
import sys

from numpy._core import _multiarray_umath as numpy_build

from polyseme import _kernels

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
OPENBLAS_KERNELS = {"baseline": "Prescott", "avx2": "Haswell"}


def environments() -> dict[str, dict[str, str]]:
    """Return, for each instruction set of this machine, the variables that limit a process to it."""
    best = _kernels.best_isa()
    features = [name for name in numpy_build.__cpu_dispatch__ if numpy_build.__cpu_features__.get(name)]
    above_avx2 = [name for name in features if name.startswith("AVX512") or name == "X86_V4"]
    found = {}
    for name in INSTRUCTION_SETS[: INSTRUCTION_SETS.index(best) + 1]:
        found[name] = {"POLYSEME_ISA": name}
        if name != best:
            disabled = above_avx2 if name == "avx2" else features
            found[name] |= {
                "OPENBLAS_CORETYPE": OPENBLAS_KERNELS[name],
                "NPY_DISABLE_CPU_FEATURES": " ".join(disabled),
            }
    return found


def main(command: list[str]) -> int:
    failed = []
    for name, variables in environments().items():
        print(f"== {name}", flush=True)
        if subprocess.run(command, env=os.environ | variables, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed with {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
