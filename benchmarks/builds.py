"""Time and memory of two commits on the same work, in alternating processes.

    python benchmarks/builds.py OLD NEW [--rounds 7] [--only NAME ...]

The commits are built as tools/compare_builds.py builds them. A round runs every case once with each build, each time in
a new process; medians and minima over the rounds are printed as ratios. Below 1, the new commit is faster or needs less
memory. Use an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from common import NEWSGROUPS, ROOT, THREADS, describe_machine, require_file

CASES = {
    "EM, K = 20": "PLSA(20, solver='em', max_iter=20, tol=0, random_state=0)",
    "EM, K = 50": "PLSA(50, solver='em', max_iter=15, tol=0, random_state=0)",
    "coordinate ascent, K = 50": "PLSA(50, max_iter=15, tol=0, random_state=0)",
    "accelerated EM with a background": "PLSA(20, background=0.2, max_iter=20, tol=0, random_state=0)",
    "variational LDA, K = 20": "LDA(20, max_iter=15, tol=0, random_state=0)",
    "online LDA, K = 20": "LDA(20, solver='online', max_iter=2, tol=0, random_state=0)",
    "tree": "HierarchicalPLSA(max_iter=10, tol=0, random_state=0)",
}
"""Cases: the work of benchmarks/sweep.py, solvers.py and lda.py without the peers."""

RUN = """
import json, resource, sys, time, warnings
import scipy.sparse as sp
from polyseme import LDA, PLSA, HierarchicalPLSA
warnings.filterwarnings("ignore")
X = sp.csr_array(sp.load_npz(sys.argv[1]))
model = eval(sys.argv[2]).set_params(n_jobs=int(sys.argv[3]))
type(model)().set_params(max_iter=1).fit(X[:50])
start = time.perf_counter()
model.fit(X)
fitted = time.perf_counter()
model.transform(X)
folded = time.perf_counter()
print(json.dumps([fitted - start, folded - fitted, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
COLUMNS = ("fit", "transform", "peak memory")


def run(build: Path, case: str) -> list[float]:
    """Return the seconds of fit and transform, and the peak memory in MB, of one process."""
    environment = {**os.environ, "PYTHONPATH": str(build)}
    command = [sys.executable, "-c", RUN, str(NEWSGROUPS), CASES[case], str(THREADS)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: list[float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Build both commits, run the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES), metavar="NAME")
    arguments = parser.parse_args()
    require_file(NEWSGROUPS)
    sys.path.append(str(ROOT / "tools"))
    from compare_builds import build, commit_hash

    builds = [build(commit_hash(name)) for name in (arguments.old, arguments.new)]
    describe_machine()
    print(f"{'new / old: median (minimum)':36}" + "".join(f"{column:>18}" for column in COLUMNS))
    for case in arguments.only:
        runs: list[list[list[float]]] = [[], []]
        for number in range(arguments.rounds):
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                runs[side].append(run(builds[side], case))
        cells = []
        for column in range(len(COLUMNS)):
            old, new = ([row[column] for row in side] for side in runs)
            cells.append(f"{statistics.median(new) / statistics.median(old):.3f} ({min(new) / min(old):.3f})")
        print(f"{case:36}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
