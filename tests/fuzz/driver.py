"""Run the cases of a fuzzer in forked processes with limits on memory and time, and store the distinct failures.

Everything is imported once, in this process. A forked child runs a batch of cases. If it dies (a signal, too much
time), the case that it was running has failed, and another child continues with the next case. Case number n depends
only on the seed and on n, so a number is enough to repeat it.
"""

from __future__ import annotations

import argparse
import base64
import faulthandler
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

Case = dict[str, Any]
"""Description of a case: JSON values and bytes."""

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
FOUND = Path("build/fuzz")


class Fuzzer(Protocol):
    """Protocol of a fuzzer: how a case is drawn and how it is run."""

    name: str
    cases: int
    """Number of cases of a full run."""
    seconds: float
    """Limit on the processor time of a case."""
    memory: int
    """Limit on the memory of a case in bytes, beyond that of its process at the start."""
    batch: int
    """Number of cases of one child."""
    folder: Path
    """Folder for the files of `prepare`; set by the driver."""

    def prepare(self, cases: Sequence[Case] | None) -> None:
        """Make the files that these cases need, or, if None, those of any case. Runs in a child."""

    def check(self) -> None:
        """Raise if the cases would fail before anything is mutated. Runs in a child, after `prepare`."""

    def draw(self, random: Random) -> Case:
        """Return a random case. Runs in a child."""

    def run(self, case: Case) -> str:
        """Run a case in the current, empty folder and return the name of its outcome; raise if the case fails."""


class WrongResult(AssertionError):
    """Raised if a case succeeded with a wrong result."""


class UncleanError(AssertionError):
    """Raised if a command failed in another way than with one line and an exit code."""


@dataclass
class Failure:
    """A failed case and its failure."""

    kind: str
    """"crash", "hang", "memory", or the name of an exception."""
    signature: str
    """Equal for failures that probably have the same cause."""
    detail: str
    name: str
    """Number or file of the case."""
    case: Case | None = None
    times: int = 1


@dataclass
class Outcome:
    """Results of the cases of a fuzzer."""

    fuzzer: str
    cases: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Failure] = field(default_factory=dict)

    def add(self, failure: Failure) -> None:
        """Count a failure; keep the smallest case of each signature."""
        known = self.failures.setdefault(failure.signature, failure)
        if known is failure:
            return
        if failure.case is not None and (known.case is None or len(encode(failure.case)) < len(encode(known.case))):
            known.case, known.name, known.detail = failure.case, failure.name, failure.detail
        known.times += 1

    @property
    def failed(self) -> int:
        """Number of failed cases."""
        return sum(failure.times for failure in self.failures.values())

    def __str__(self) -> str:
        lines = [f"  {number:>8}  {kind}" for kind, number in sorted(self.kinds.items())]
        for failure in self.failures.values():
            lines += [f"  FAILED {failure.times} times: {failure.signature} (case {failure.name})"]
        lines += [
            f"{self.fuzzer}: {self.cases} cases, {self.failed} failures ({len(self.failures)} distinct), "
            f"{self.seconds:.0f} seconds"
        ]
        return "\n".join(lines)


# cases as files


def encode(case: Case) -> str:
    """Return a case as JSON; bytes are stored as text if they are text, else compressed."""

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            try:
                text = value.decode("utf-8")
            except UnicodeDecodeError:
                text = None
            packed = base64.b85encode(zlib.compress(value, 9)).decode()
            return (
                {"bytes of text": text}
                if text is not None and len(json.dumps(text)) <= len(packed) + 100
                else {"compressed bytes": packed}
            )
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        return value

    return json.dumps(plain(case), indent=1)


def decode(text: str) -> Case:
    """Return the case that `encode` wrote."""

    def content(value: dict[str, Any]) -> Any:
        if value.keys() == {"bytes of text"}:
            return value["bytes of text"].encode("utf-8")
        if value.keys() == {"compressed bytes"}:
            return zlib.decompress(base64.b85decode(value["compressed bytes"]))
        return value

    case: Case = json.loads(text, object_hook=content)
    return case


# the child


def _limit(fuzzer: Fuzzer, log: Path) -> None:
    """Limit the memory of this process, and send its output, and the stack if it dies, to a file."""
    os.setsid()  # so that its children can be ended with it
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    faulthandler.enable(file=output, all_threads=False)
    for timer in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(timer, signal.SIG_DFL)
        faulthandler.register(timer, file=output, all_threads=False, chain=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "POLYSEME_SANITIZER" not in os.environ:  # sanitizers reserve terabytes of addresses
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + fuzzer.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warnings.simplefilter("ignore")


def _run_alone(fuzzer: Fuzzer, case: Case, place: Path) -> str:
    """Run a case in its own folder with a time limit."""
    place.mkdir()
    before = Path.cwd()
    os.chdir(place)
    # Processor time is limited, because other work on the machine does not affect it; wall time ends a case that waits.
    signal.setitimer(signal.ITIMER_PROF, fuzzer.seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * fuzzer.seconds)
    try:
        return fuzzer.run(case)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.chdir(before)
        shutil.rmtree(place, ignore_errors=True)


def _described(error: BaseException) -> tuple[str, str, str]:
    """Return kind, signature and traceback of an exception; the signature contains the position in polyseme."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    frames = [frame for part in chain for frame in traceback.extract_tb(part.__traceback__)]
    ours = [frame for frame in frames if "/polyseme/" in frame.filename]
    where = f"{ours[-1].filename.rpartition('/polyseme/')[2]}:{ours[-1].name}" if ours else "outside"
    kind = "memory" if any(isinstance(part, MemoryError) for part in chain) else type(chain[-1]).__name__
    message = re.sub(r"\d+|'[^']*'|\"[^\"]*\"|\S*/\S*", "_", (str(chain[-1]).splitlines() or [""])[0])[:80]
    return kind, f"{kind} at {where}: {message}", "".join(traceback.format_exception(error))


def _child(fuzzer: Fuzzer, names: list[str], case_of: Callable[[str], Case], folder: Path, pipe: int) -> None:
    """Run cases one after the other, and report each one in a line."""
    _limit(fuzzer, folder / "log")
    for name in names:
        report: list[str] = []
        try:
            report = ["", _run_alone(fuzzer, case_of(name), folder / "case")]
        except BaseException as error:  # a panic of a library is not an Exception
            report = list(_described(error))
        line = json.dumps(report).encode() + b"\n"
        while line:
            line = line[os.write(pipe, line) :]


def _forked(body: Callable[[], None]) -> int:
    """Return the process id of a child that runs `body` and ends."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        body()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def in_child(body: Callable[[], None]) -> None:
    """Run `body` in a child and wait for it."""
    _, status = os.waitpid(_forked(body), 0)
    if status:
        raise RuntimeError(f"a child that prepares cases ended with status {status}")


def _death(status: int, log: Path) -> tuple[str, str, str]:
    """Return kind, signature and stack of a child that died."""
    text = re.sub(r"\n.*Extension modules: .*", "", log.read_text("utf-8", "replace"))
    stack = re.findall(r'File "[^"]*/polyseme/([^"]+)", line \d+ in (\w+)', text)
    where = f"{stack[0][0]}:{stack[0][1]}" if stack else "outside"
    if not os.WIFSIGNALED(status):
        return "crash", f"exit with code {os.waitstatus_to_exitcode(status)} at {where}", text[-4000:]
    number = signal.Signals(os.WTERMSIG(status))
    kind = "hang" if number in (signal.SIGPROF, signal.SIGALRM) else "crash"
    return kind, f"{kind} ({number.name}) at {where}", text[-4000:]


# the parent


def run_cases(
    fuzzer: Fuzzer,
    batches: Iterable[list[str]],
    case_of: Callable[[str], Case],
    folder: Path,
    seconds: float = float("inf"),
) -> Outcome:
    """Run the cases of all batches, each in a child, until the time is over."""
    outcome, start = Outcome(fuzzer.name), time.monotonic()
    for batch in batches:
        names = batch
        while names and time.monotonic() - start < seconds:
            done = _run_batch(fuzzer, names, case_of, folder, outcome)
            names = names[done:]
        outcome.seconds = time.monotonic() - start
        if outcome.seconds >= seconds:
            break
    return outcome


def _run_batch(fuzzer: Fuzzer, names: list[str], case_of: Callable[[str], Case], folder: Path, outcome: Outcome) -> int:
    """Run the cases of one child, and return how many it ran."""
    receive, send = os.pipe()

    def body() -> None:
        os.close(receive)
        _child(fuzzer, names, case_of, folder, send)

    child = _forked(body)
    os.close(send)
    done = 0
    with open(receive, encoding="utf-8") as lines:
        for line in lines:
            kind, *rest = json.loads(line)
            done += 1
            outcome.cases += 1
            if kind:
                _note(fuzzer, Failure(kind, rest[0], rest[1], names[done - 1]), case_of, folder, outcome)
            else:
                outcome.kinds[rest[0]] += 1
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    shutil.rmtree(folder / "case", ignore_errors=True)
    if done < len(names):
        outcome.cases += 1
        _note(fuzzer, Failure(*_death(status, folder / "log"), names[done]), case_of, folder, outcome)
        done += 1
    return done


def _note(fuzzer: Fuzzer, failure: Failure, case_of: Callable[[str], Case], folder: Path, outcome: Outcome) -> None:
    """Add a failure and its case; a child draws the case again, because some cases need libraries that cannot fork."""
    file = folder / "drawn.json"
    file.unlink(missing_ok=True)
    in_child(lambda: file.write_text(encode(case_of(failure.name)), "utf-8") and None)
    failure.case = decode(file.read_text("utf-8"))
    outcome.kinds[f"FAILED: {failure.kind}"] += 1
    outcome.add(failure)


def store(outcome: Outcome, folder: Path) -> None:
    """Write the failures: each case as JSON for --replay, and a description."""
    for failure in outcome.failures.values():
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "-", failure.signature).strip("-").lower()[:90]
        if failure.case is not None:
            (folder / f"{name}.json").write_text(encode(failure.case) + "\n", "utf-8")
        (folder / f"{name}.txt").write_text(f"case {failure.name}, {failure.times} times\n{failure.detail}\n", "utf-8")


def _numbered(fuzzer: Fuzzer, first: int, cases: int) -> Iterator[list[str]]:
    for start in range(first, first + cases, fuzzer.batch):
        yield [str(number) for number in range(start, min(start + fuzzer.batch, first + cases))]


def scratch() -> str | None:
    """Return a folder in memory if there is one, because cases write many small files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def run_fuzzer(fuzzer: Fuzzer, options: argparse.Namespace) -> int:
    """Run the cases that the command line selects, print the results, and return the exit code."""

    def drawn(name: str) -> Case:
        return fuzzer.draw(Random(f"{options.seed} {name}"))

    def stored(name: str) -> Case:
        return decode(Path(name).read_text("utf-8"))

    with tempfile.TemporaryDirectory(dir=scratch(), prefix="polyseme-fuzz-") as temporary:
        fuzzer.folder = folder = Path(temporary)
        files = options.replay or sorted((CORPUS / fuzzer.name).glob("*.json"))
        names = [str(Path(file).resolve()) for file in files]

        def prepare() -> None:
            os.chdir(folder)
            fuzzer.prepare(None if options.replay is None else [stored(name) for name in names])
            if options.replay is None:
                fuzzer.check()

        in_child(prepare)
        if options.replay is None:
            cases = fuzzer.cases if options.cases is None else options.cases
            seconds = float("inf") if options.seconds is None else options.seconds
            outcome = run_cases(fuzzer, _numbered(fuzzer, options.first, cases), drawn, folder, seconds)
            store(outcome, FOUND / fuzzer.name)
        else:
            outcome = run_cases(fuzzer, [names], stored, folder)
            for failure in outcome.failures.values():
                print(f"{failure.name}: {failure.signature}\n{failure.detail}")
    print(outcome, flush=True)
    return 1 if outcome.failures else 0
