"""Files for the readers, grown by Atheris (libFuzzer) toward lines of the readers that no file has reached yet."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fuzz.driver import CORPUS, FOUND, Failure, Outcome, _described, decode, scratch, store

GROWN = FOUND.absolute() / "grown"
"""the files that reached something new; they stay, and the next run begins with them"""


def run_guided(options: argparse.Namespace) -> int:
    """Generate files until the time or the number of cases is reached; return the exit code."""
    try:
        import atheris  # noqa: F401
    except ImportError:
        print("guided: Atheris is not installed (pip install atheris), so that no case was run")
        return 0
    outcome, start = Outcome("guided"), time.monotonic()
    GROWN.mkdir(parents=True, exist_ok=True)
    (FOUND / "guided").mkdir(parents=True, exist_ok=True)
    seconds = options.seconds or 600.0
    cases = options.cases or 10**9
    while outcome.cases < cases and (left := seconds - (time.monotonic() - start)) > 1:
        outcome.cases += _grow(outcome, left, cases - outcome.cases, options.seed + len(outcome.failures))
        if len(outcome.failures) > 20:
            break
    outcome.seconds = time.monotonic() - start
    outcome.kinds["files that reached something new, in all runs"] = len(list(GROWN.iterdir()))
    store(outcome, FOUND / "guided")
    print(outcome, flush=True)
    return 1 if outcome.failures else 0


def _grow(outcome: Outcome, seconds: float, cases: int, seed: int) -> int:
    """Run libFuzzer until a case fails, and return the number of cases."""
    artifacts = FOUND.absolute() / "guided" / "libfuzzer-"
    limits = [
        f"-max_total_time={int(seconds) + 1}",
        f"-runs={cases}",
        "-timeout=20",
        "-rss_limit_mb=3000",
        "-max_len=20000",
    ]
    command = [
        sys.executable,
        "-m",
        "fuzz.guided",
        str(GROWN),
        *limits,
        f"-seed={seed + 1}",
        f"-artifact_prefix={artifacts}",
    ]
    tests = CORPUS.parent.parent
    paths = [str(tests), str(tests / "helpers"), *map(os.path.abspath, sys.path[1:])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.TemporaryDirectory(dir=scratch(), prefix="polyseme-fuzz-") as place:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=variables, cwd=place)
    text = result.stdout + result.stderr
    done = max([int(number) for number in re.findall(r"^#(\d+)\s", text, re.MULTILINE)], default=0)
    if result.returncode:
        found = re.search(r"^SIGNATURE (.*)$", text, re.MULTILINE)
        ended = re.search(r"libFuzzer: ([a-z -]+)", text)
        signature = found[1] if found else f"crash: {ended[1] if ended else result.returncode}"
        artifact = re.search(rf"{re.escape(str(artifacts))}\S+", text)
        case = case_of(Path(artifact[0]).read_bytes()) if artifact else None
        outcome.kinds["FAILED"] += 1
        outcome.add(Failure("crash", signature, text[-4000:], artifact[0] if artifact else "unknown", case))
        done += 1
    return done


# in the process of libFuzzer

FORMATS = ("csv", "docx", "files", "html", "jsonl", "lines", "parquet", "pdf", "tsv", "wiki")
SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zst")


def case_of(data: bytes) -> dict[str, Any]:
    """Return the case of some bytes: the first two choose format and compression, the others are the file."""
    format = FORMATS[data[0] % len(FORMATS)] if data else "lines"
    suffix = SUFFIXES[data[1] % len(SUFFIXES)] if len(data) > 1 else ""
    return {"name": "input" + suffix, "format": format, "content": data[2:]}


def data_of(case: dict[str, Any]) -> bytes:
    """Return the bytes from which `case_of` makes this case."""
    suffix = "." + case["name"].rpartition(".")[2]
    return bytes([FORMATS.index(case["format"]), SUFFIXES.index(suffix) if suffix in SUFFIXES else 0]) + case["content"]


def main() -> None:
    """Run libFuzzer on the readers."""
    import atheris

    with atheris.instrument_imports(include=["polyseme.text.readers", "pypdf"], enable_loader_override=False):
        from fuzz import readers
        from polyseme.text.readers import reader
    reader.ISOLATED = frozenset()  # coverage is seen in this process alone
    for format in FORMATS:
        for number, (suffix, content) in enumerate(readers.seeds(format)):
            seed = data_of({"name": "whole" + suffix, "format": format, "content": content})
            (Path(sys.argv[1]) / f"whole-{format}-{number}").write_bytes(seed)
    for file in sorted((CORPUS / "readers").glob("*.json")):
        (Path(sys.argv[1]) / file.stem).write_bytes(data_of(decode(file.read_text("utf-8"))))

    def one(data: bytes) -> None:
        try:
            readers.fuzzer.run(case_of(data))
        except BaseException as error:
            print(f"SIGNATURE {_described(error)[1]}", file=sys.stderr, flush=True)
            raise

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
