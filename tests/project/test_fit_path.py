"""How many source files a fit runs through: a reader of `PLSA().fit(X)` has to open these."""

import subprocess
import sys

CODE = """
import sys
from pathlib import Path
import numpy as np, scipy.sparse as sp
import polyseme
from polyseme import PLSA

root = Path(polyseme.__file__).parent
X = sp.csr_array(np.random.default_rng(0).poisson(0.5, (50, 40)))
model, files = PLSA(3, random_state=0), set()

def record(frame, event, arg):
    path = Path(frame.f_code.co_filename)
    if event == "call" and root in path.parents and frame.f_code.co_name != "<module>":
        files.add(path.relative_to(root).as_posix())

sys.setprofile(record)
model.fit(X)
sys.setprofile(None)
print(*sorted(files), sep="\\n")
"""

FILES = {
    "core/fitted.py", "core/fold_in.py", "core/model.py", "core/shard.py", "data/corpus.py", "estimators/base.py",
    "estimators/plsa.py", "kernels/counts.py", "progress.py", "solvers/ascent.py", "solvers/base.py",
    "solvers/coordinate.py", "solvers/initialize.py", "utils.py",
}  # fmt: skip
"""At most fourteen: move code together, rather than add a file here."""


def test_a_fit_of_plsa_runs_through_few_files():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(FILES) <= 14
    assert set(done.stdout.split()) == FILES
