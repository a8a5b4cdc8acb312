"""Past failures of the fuzzers stay fixed, and their driver detects every kind of failure."""

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fuzz import driver
from fuzz.mutations import BY_SUFFIX, mutate

if sys.platform != "linux":
    pytest.skip("the fuzzers fork, and limit memory as Linux does", allow_module_level=True)

TESTS = Path(__file__).resolve().parent.parent
FUZZERS = ("runs", "readers", "estimators", "text")


@pytest.mark.parametrize("fuzzer", FUZZERS)
def test_past_failures_stay_fixed(fuzzer: str) -> None:
    cases = len(list((driver.CORPUS / fuzzer).glob("*.json")))
    assert cases
    command = [sys.executable, str(TESTS / "fuzz"), fuzzer, "--replay"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{fuzzer}: {cases} cases, 0 failures" in result.stdout


class Ends:
    """Fuzzer whose cases end as they state."""

    name = "ends"
    cases = 8
    seconds = 0.5
    memory = 2**30
    batch = 3
    folder: Path
    ends = ("well", "crash", "well", "hang", "error", "memory", "exit", "panic")

    def prepare(self, cases: Sequence[driver.Case] | None) -> None:
        (self.folder / "prepared").touch()

    def check(self) -> None:
        raise AssertionError("the cases of a replay are not drawn")

    def draw(self, random: Random) -> driver.Case:
        return {"number": random.random()}

    def run(self, case: driver.Case) -> str:
        assert (self.folder / "prepared").exists()
        end = case["end"]
        if end == "crash":
            ctypes.string_at(8)
        elif end == "hang":
            while True:
                time.process_time()
        elif end == "error":
            raise KeyError("x")
        elif end == "memory":
            np.ones(2**40, dtype=np.uint8)
        elif end == "exit":
            os._exit(3)
        elif end == "panic":
            raise BaseException("panicked")
        return "ended well"


def test_the_driver_detects_every_kind_of_failure(tmp_path: Path) -> None:
    fuzzer = Ends()
    fuzzer.folder = tmp_path
    driver.in_child(lambda: fuzzer.prepare(None))
    batches = [list(fuzzer.ends[:3]), list(fuzzer.ends[3:])]
    outcome = driver.run_cases(fuzzer, batches, lambda name: {"end": name}, tmp_path)
    assert outcome.cases == 8
    assert outcome.kinds == {
        "ended well": 2, "FAILED: crash": 2, "FAILED: hang": 1, "FAILED: KeyError": 1, "FAILED: memory": 1,
        "FAILED: BaseException": 1,
    }  # fmt: skip
    assert [failure.case for failure in outcome.failures.values()] == [
        {"end": end} for end in ("crash", "hang", "error", "memory", "exit", "panic")
    ]
    driver.store(outcome, tmp_path / "found")
    stored = sorted((tmp_path / "found").glob("*.json"))
    assert len(stored) == 6
    assert all(driver.decode(file.read_text()) in [{"end": end} for end in fuzzer.ends] for file in stored)


def test_the_exit_code_is_one_if_a_case_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "case.json"
    options = SimpleNamespace(seed=0, replay=[file])
    for end, code in (("well", 0), ("error", 1)):
        file.write_text(json.dumps({"end": end}))
        assert driver.run_fuzzer(Ends(), options) == code
    assert "ends: 1 cases, 1 failures (1 distinct)" in capfd.readouterr().out


def test_cases_are_stored_unchanged() -> None:
    case = {
        "content": b"\xff\0text",
        "name": "a",
        "files": {"b": "ö".encode(), "c": None},
        "list": [1, b"", b"\xff" * 2000],
    }
    assert driver.decode(driver.encode(case)) == case


@pytest.mark.parametrize("suffix", [".txt", *(suffix for suffix in BY_SUFFIX if suffix != ".parquet")])
def test_mutations_depend_on_the_seed_alone(suffix: str) -> None:
    content = b'\x10\0\0\0\0\0\0\0{"a": [1, "b"]}   data' if suffix == ".safetensors" else b'{"a": [1, "b"]}'
    changed = [mutate(content, suffix, Random(seed)) for seed in range(50)]
    assert changed == [mutate(content, suffix, Random(seed)) for seed in range(50)]
    assert len(set(changed)) > 25
