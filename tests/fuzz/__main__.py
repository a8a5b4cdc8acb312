"""``python tests/fuzz NAME``: run a fuzzer, or all of them."""

import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(TESTS), str(TESTS / "helpers")]  # to import the package fuzz and the helpers
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(threads, "1")  # with fewer threads, a fork is faster and a case needs less memory
if "POLYSEME_SANITIZER" in os.environ:
    os.environ.pop("LD_PRELOAD", None)  # child processes limit their memory, which sanitizers do not support

from fuzz.main import main  # noqa: E402

sys.exit(main())
