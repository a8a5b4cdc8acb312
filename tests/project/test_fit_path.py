"""The source files that a fit runs through, which a reader of `PLSA().fit(X)` or `polyseme fit folder` has to open."""

import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random

RECORDER = """
import inspect, os, sys, threading
import polyseme

root = os.path.dirname(polyseme.__file__) + os.sep
codes = set()

def record(frame, event, arg):
    '''Note a call. Nothing else of the function is traced, because None is returned.'''
    codes.add(frame.f_code)

def recorded(call):
    '''Print the files of the functions that are called. The bodies of modules and classes are not functions.'''
    threading.settrace(record)
    sys.settrace(record)
    try:
        call()
    finally:
        sys.settrace(None)
        functions = (code.co_filename for code in codes if code.co_flags & inspect.CO_OPTIMIZED)
        print(*sorted({name.removeprefix(root).replace(os.sep, "/") for name in functions if name.startswith(root)}))
"""

FIT = """
import numpy as np, scipy.sparse as sp
from polyseme import PLSA

X = sp.csr_array(np.random.default_rng(0).poisson(0.5, (50, 40)))
model = PLSA(3, random_state=0)
recorded(lambda: model.fit(X))
"""

FIT_FOLDER = """
import contextlib
from polyseme.cli.app import main

def fit(output):
    sys.argv = ["polyseme", "fit", "texts", "-o", output, "--quiet"]
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), contextlib.suppress(SystemExit):
        main()

fit("first")  # imports: modules call functions, too
recorded(lambda: fit("second"))
"""

FILES = {
    "core/fitted.py", "core/fold_in.py", "core/model.py", "core/shard.py", "data/corpus.py", "estimators/base.py",
    "estimators/plsa.py", "kernels.py", "progress.py", "solvers/ascent.py", "solvers/base.py",
    "solvers/coordinate.py", "solvers/initialize.py", "utils.py",
}  # fmt: skip
"""At most fourteen: combine code instead of adding a file here."""

FILES_OF_A_FOLDER = FILES | {
    "cli/app.py", "cli/commands/fit.py", "cli/console.py", "cli/options.py", "core/dirichlet.py", "data/disk.py",
    "data/shard_writer.py", "explore/page.py", "explore/page_data.py", "io/arrays.py", "io/files.py", "io/models.py",
    "metrics/coherence.py", "metrics/topics.py", "metrics/words.py", "runs/documents.py", "runs/fit.py",
    "runs/folder.py", "runs/junk.py", "runs/models.py", "runs/names.py", "runs/run.py", "runs/write.py",
    "selection/levels.py", "selection/reading.py", "solvers/checkpoints.py", "text/duplicates.py", "text/languages.py",
    "text/phrases.py", "text/readers/decoding.py", "text/readers/inputs.py", "text/readers/reader.py",
    "text/readers/text.py", "text/tokens.py", "text/vectorizer.py", "text/words.py",
}  # fmt: skip
"""At most fifty: all that `polyseme fit folder` needs, from the options to the page."""

METAL = ["iron", "copper", "zinc", "silver", "gold", "tin", "lead", "nickel"]
FRUIT = ["apple", "pear", "plum", "cherry", "fig", "lemon", "grape"]


def files_of(code: str, folder: Path) -> set[str]:
    done = subprocess.run([sys.executable, "-c", RECORDER + code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_fit_of_plsa_runs_through_few_files(tmp_path: Path) -> None:
    assert len(FILES) <= 14
    assert files_of(FIT, tmp_path) == FILES


def test_a_fit_of_a_folder_runs_through_few_files(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for number in range(40):
        words = METAL if number % 2 else FRUIT
        text = " ".join(Random(number).choices(words, k=30))
        (tmp_path / "texts" / f"{number}.txt").write_text(text, encoding="utf-8")
    found = files_of(FIT_FOLDER, tmp_path)
    assert os.listdir(tmp_path / "second")
    assert found == FILES_OF_A_FOLDER
    assert len(FILES_OF_A_FOLDER) <= 50


def test_architecture_lists_the_files_of_both_fits() -> None:
    page = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| (?:step \| file|stage \| files) \|\n((?:\|.*\n)+)", page, re.M)
    fit, folder = (set(re.findall(r"`([\w/]+\.py)`", table)) for table in tables)
    assert fit == FILES
    assert fit | folder == FILES_OF_A_FOLDER
