"""Following the how-to pages: one new file and a few lines of registration add a prior, a solver or an estimator.

A page marks both with comments: `<!-- new file: PATH -->` before the block with the file, and `<!-- lines: PATH -->`
before the block with the lines: an import, which goes before `__all__` of PATH, and a name, which goes into it. The
test applies them to a copy of the package and uses the new member by name, as any user would.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import polyseme

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
MARKED = re.compile(r"^<!-- (new file|lines): src/polyseme/(\S+) -->\n```(?:python|py)\n(.*?)^```$", re.M | re.S)
EXPORTS = "__all__ = [\n"

DATA = "import numpy as np, polyseme\nX = np.random.default_rng(0).poisson(1.0, (40, 20))\n"
AGAIN = (
    "model.save('model')\nagain = polyseme.load('model')\nassert np.array_equal(again.transform(X), model.doc_topic_)\n"
)
USES = {
    "add_a_prior.md": DATA
    + "from polyseme.priors import KeepNear, MEMBERS\nassert KeepNear in MEMBERS\n"
    + "prior = KeepNear(np.full((2, 20), 0.05), 3.0)\n"
    + "model = polyseme.PLSA(2, topic_word_prior=prior, random_state=0, max_iter=500).fit(X)\n"
    + "assert model.converged_\n",
    "add_a_solver.md": DATA
    + "model = polyseme.PLSA(2, solver='alternating', random_state=0, max_iter=500).fit(X)\n"
    + "assert model.converged_\n"
    + "from polyseme.solvers import Alternating\n"
    + "model = polyseme.PLSA(2, solver=Alternating(rounds=2), random_state=0, max_iter=500).fit(X)\n"
    + AGAIN
    + "assert again.solver == Alternating(rounds=2)\n"
    + "try:\n    polyseme.PLSA(2, solver='plsi', background=0.1).fit(X)\n"
    + "except polyseme.UnsupportedError as error:\n    assert 'alternating' in str(error), error\n"
    + "else:\n    raise AssertionError\n",
    "add_an_estimator.md": DATA
    + "model = polyseme.ClusterTopics(3, random_state=0).fit(X)\n"
    + AGAIN
    + "assert 'ClusterTopics' in polyseme.__all__\n"
    + "assert len(model.topics()) == 3\n"
    + "assert type(again) is polyseme.ClusterTopics and again.score(X) == model.score(X)\n"
    + "from sklearn.pipeline import make_pipeline\n"
    + "assert make_pipeline(polyseme.ClusterTopics(3, random_state=0)).fit_transform(X).shape == (40, 3)\n",
}


@pytest.mark.parametrize("page", USES)
def test_one_file_and_its_names_add_a_member(page, tmp_path):
    package = tmp_path / "polyseme"
    shutil.copytree(Path(polyseme.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    marked = [(found[1], package / found[2], found[3]) for found in MARKED.finditer((PAGES / page).read_text("utf-8"))]
    assert {kind for kind, _, _ in marked} == {"lines", "new file"}
    for kind, path, content in marked:
        if kind == "new file":
            assert not path.exists()
            path.write_text(content, encoding="utf-8")
        else:
            before, after = path.read_text(encoding="utf-8").split(EXPORTS)
            *imports, name = content.splitlines(keepends=True)
            path.write_text("".join([before, *imports, EXPORTS, name, after]), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", USES[page]], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
