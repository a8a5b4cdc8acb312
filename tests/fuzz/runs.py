"""Every command on runs with mutated files succeeds, or ends with one line of error and an exit code."""

import json
import os
import shutil
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import chardet
import matplotlib.figure
import Stemmer

import cli_runner
from fuzz.driver import Case, UncleanError, WrongResult, in_child
from fuzz.mutations import mutate, mutate_bytes
from polyseme.cli import console as exit_codes
from polyseme.io import parquet
from polyseme.runs import folder
from polyseme.runs.folder import work_folder

IMPORTED_BEFORE_THE_FORK = (chardet, matplotlib.figure, Stemmer)

NEW = '{"text": "copper and iron", "id": "n1"}\n{"text": "new zinc metal", "id": "n2", "time": "2001-02-03"}\n'
FIT = ["fit", "docs.jsonl", "-k", "3", "-o", "RUN", "--max-df", "0.9", "--no-page", "--phrases", "--checkpoint", "0"]
COMMANDS: dict[str, list[str]] = {
    "topics": ["topics", "RUN"],
    "topics in JSON": ["topics", "RUN", "--json", "--words", "3"],
    "transform": ["transform", "RUN", "new.jsonl"],
    "transform to Parquet": ["transform", "RUN", "new.jsonl", "-o", "weights.parquet"],
    "search": ["search", "RUN", "metal"],
    "search by all models": ["search", "RUN", "metal plums", "--method", "plsi*", "--json"],
    "search by words": ["search", "RUN", "metal", "--method", "bm25", "--json"],
    "search by LSI": ["search", "RUN", "metal", "--method", "lsi"],
    "search like": ["search", "RUN", "d0", "--like"],
    "evaluate": ["evaluate", "RUN"],
    "evaluate new": ["evaluate", "RUN", "new.jsonl", "--json"],
    "evaluate in windows": ["evaluate", "RUN", "--windows", "--json"],
    "explore": ["explore", "RUN"],
    "explore texts": ["explore", "RUN", "--text", "full", "-o", "page.html"],
    "explore stability": ["explore", "RUN", "--stability", "2"],
    "edit names": ["edit", "RUN", "--rename", "1=Metals"],
    "edit topics": ["edit", "RUN", "--merge", "0,1", "--ban", "iron"],
    "edit and refine": ["edit", "RUN", "--drop", "0", "--refine"],
    "update": ["update", "RUN", "new.jsonl"],
    "update and refine": ["update", "RUN", "new.jsonl", "--refine"],
    "compare": ["compare", "RUN", "whole"],
    "compare in JSON": ["compare", "whole", "RUN", "--json"],
    "resume": [*FIT, "--resume"],
    "resume shards": [*FIT, "--shards", "--resume"],
    "fit over": ["fit", "new.jsonl", "-k", "2", "-o", "RUN", "--overwrite", "--no-page"],
}
"""Commands by name."""
CHANGES = {name for name, arguments in COMMANDS.items() if arguments[0] in ("edit", "update")}
EXIT_CODES = {exit_codes.FAILED, 2}
FINISHED, UNFINISHED = ("plain", "shards"), ("unfinished", "unfinished shards")


WORDS = {
    "fruit": ["apples", "pears", "plums", "cherries", "orchard", "ripe", "sweet", "harvest"],
    "metal": ["iron", "copper", "zinc", "metal", "mine", "ore", "smelted", "heavy"],
    "sea": ["ship", "sail", "harbor", "storm", "waves", "anchor", "sailor", "wind"],
}


def _documents() -> list[dict[str, Any]]:
    """Return documents of three subjects, with labels and dates."""
    random, subjects = Random(0), sorted(WORDS)
    documents = []
    for number in range(24):
        subject = subjects[number % 3]
        words = [*random.choices(WORDS[subject], k=12), *random.choices(WORDS[random.choice(subjects)], k=4)]
        if subject == "sea":
            words += ["new", "york"] * 2
        about = {"id": f"d{number}", "title": f"About {subject}", "label": subject, "date": f"20{number:02d}-01-01"}
        documents.append({**about, "text": " ".join(words)})
    return documents


def reuse_the_reading_process() -> None:
    """Let all cases of a batch read Parquet files in one process, because starting it takes most of the time."""
    start = parquet.ParquetReader.__enter__
    running: list[Any] = []

    def enter(self: Any) -> Any:
        if running and running[0].poll() is None:
            self._process = running[0]
        else:
            start(self)
            running[:] = [self._process]
        return self

    parquet.ParquetReader.__enter__ = enter  # type: ignore[method-assign]
    parquet.ParquetReader.__exit__ = lambda self, *_: None  # type: ignore[method-assign]


class Runs:
    """Fuzzer that runs commands on runs with mutated files."""

    name = "runs"
    cases = 20_000
    seconds = 20.0
    memory = 3 * 2**30
    batch = 50
    folder: Path

    def prepare(self) -> None:
        """Make small runs with all files that commands store in a run, and fits that were killed."""
        base = self.folder / "base"
        base.mkdir()
        (base / "docs.jsonl").write_text("".join(json.dumps(document) + "\n" for document in _documents()), "utf-8")
        (base / "new.jsonl").write_text(NEW, "utf-8")
        # These run first: they fork, which polars, used by the others, does not survive.
        for name in UNFINISHED:
            _kill_before_the_end([*FIT, "--shards"] if "shards" in name else FIT, base)
            work_folder(base / "RUN").rename(base / name)
            for lock in base.glob(".*.lock"):
                lock.unlink()
        for name in FINISHED:
            shards = ["--shards"] if name == "shards" else []
            for arguments in (
                [*FIT, *shards],
                ["search", "RUN", "metal", "--method", "plsi*"],
                ["edit", "RUN", "--rename", "0=First"],
            ):
                result = cli_runner.run(*arguments, cwd=base)
                if result.exit_code:
                    raise WrongResult(f"{arguments}: {result.output}")
            (base / "RUN" / "explorer.html").unlink(missing_ok=True)  # no command reads it
            (base / "RUN").rename(base / name)

    def check(self) -> None:
        """Raise if a command fails on valid runs."""
        for kind in (*FINISHED, *UNFINISHED):
            for name in _commands_of(kind):
                outcome = self._in_copy({"run": kind, "command": name})
                if not outcome.endswith("well"):
                    raise WrongResult(f"{name} does not work before the mutation: {outcome}")

    def _in_copy(self, case: Case) -> str:
        place = self.folder / "whole"
        place.mkdir()
        with cli_runner.pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            outcome = self.run(case)
        shutil.rmtree(place)
        return outcome

    @cache  # noqa: B019, as there is one fuzzer
    def _files(self, kind: str) -> list[tuple[str, bytes]]:
        run = self.folder / "base" / kind
        return [(str(path.relative_to(run)), path.read_bytes()) for path in sorted(run.rglob("*")) if path.is_file()]

    def draw(self, random: Random) -> Case:
        """Return a file of a run that is mutated, removed or replaced, and a command."""
        kind = random.choice(FINISHED) if random.random() < 0.9 else random.choice(UNFINISHED)
        files = self._files(kind)
        case: Case = {"run": kind, "command": random.choice(_commands_of(kind)), "files": {}}
        for _ in range(random.choice((1, 1, 1, 2))):
            name, content = random.choice(files)
            how = random.random()
            mutated: bytes | None = mutate(content, Path(name).suffix, random)
            if how < 0.15:
                mutated = mutate_bytes(content, random)
            elif how < 0.18:
                mutated = None
            elif how < 0.2:
                mutated = b""
            elif how < 0.23:
                mutated = random.choice(files)[1]
            case["files"][name] = mutated
        return case

    def run(self, case: Case) -> str:
        """Run a command on a run with these files."""
        run = work_folder(Path("RUN")) if case["run"] in UNFINISHED else Path("RUN")
        shutil.copytree(self.folder / "base" / case["run"], run)
        for name, content in case.get("files", {}).items():
            path = run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
        arguments = COMMANDS[case["command"]]
        if "whole" in arguments:
            shutil.copytree(self.folder / "base" / "plain", "whole")
        for name in ("docs.jsonl", "new.jsonl"):
            shutil.copyfile(self.folder / "base" / name, name)
        before = _content() if case["command"] in CHANGES else {}
        ended_well = _checked(cli_runner.here(*arguments), arguments)
        if not ended_well and before and _content() != before:
            raise WrongResult(f"{case['command']} failed and changed the run")
        return f"{case['command']}: {'well' if ended_well else 'refused'}"


def _commands_of(kind: str) -> list[str]:
    """Return the commands for a kind of run."""
    resume = {"unfinished": "resume", "unfinished shards": "resume shards"}
    if kind in resume:
        return [resume[kind]]
    return sorted(set(COMMANDS) - set(resume.values()))


def _kill_before_the_end(arguments: list[str], place: Path) -> None:
    """Run a fit in a child that dies after counting and fitting, before the work folder is complete."""

    def body() -> None:
        folder.flush_all = lambda _: os._exit(0)  # type: ignore[assignment]
        cli_runner.run(*arguments, cwd=place)

    in_child(body)


def _content() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path("RUN").rglob("*") if path.is_file()}


def _no_constant(name: str) -> Any:
    raise WrongResult(f"{name} in JSON")


def _checked(result: Any, arguments: list[str]) -> bool:
    """Return whether a command succeeded; raise if it failed with other output than one line of error."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code == 0 or (result.exit_code == exit_codes.INTERRUPTED and "--resume" in arguments):
        if "--json" in arguments and result.stdout.strip():
            json.loads(result.stdout, parse_constant=_no_constant)
        return True
    lines = [line for line in result.stderr.splitlines() if not line.endswith(" ...")]  # what it was doing
    errors = [line for line in lines if line.startswith("polyseme: ")]
    if result.exit_code not in EXIT_CODES or len(errors) != 1 or lines[-1] != errors[0] or len(errors[0]) > 2000:
        raise UncleanError(f"exit code {result.exit_code}: {result.stderr[-1000:]!r}")
    return False


reuse_the_reading_process()
fuzzer = Runs()
