"""Every command on runs with mutated files gives the correct answer, or ends with one line of error and an exit code.

A file that was damaged must not change an answer: the result must be that of the undamaged run. An attacker can correct
all digests after a change; for such a run, a command may give any answer, as long as it ends cleanly.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import chardet
import matplotlib.figure
import Stemmer

import cli_runner
from fuzz.driver import Case, UncleanError, WrongResult, in_child
from fuzz.mutations import mutate, mutate_bytes, mutate_in_place
from polyseme.cli import console as exit_codes
from polyseme.data import shard_files, shard_writer
from polyseme.errors import ModelFileError, ShardError
from polyseme.runs import documents, open_run, write
from polyseme.runs import store as folder
from polyseme.runs.models import MODELS
from polyseme.runs.store import work_folder
from polyseme.solvers import base as solving
from polyseme.solvers import checkpoints
from quick_files import reuse_the_reading_process
from run_answers import answer, difference
from sealed_files import change_array, change_json, seal

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
    "search for a phrase": ["search", "RUN", '"is a metal"', "--topic", "0", "--json"],
    "evaluate": ["evaluate", "RUN"],
    "evaluate new": ["evaluate", "RUN", "new.jsonl", "--json"],
    "evaluate in windows": ["evaluate", "RUN", "--windows", "--json"],
    "explore": ["explore", "RUN"],
    "explore texts": ["explore", "RUN", "--text", "full", "-o", "page.html"],
    "explore stability": ["explore", "RUN", "--stability", "2"],
    "edit names": ["edit", "RUN", "--rename", "1=Metals"],
    "edit topics": ["edit", "RUN", "--merge", "0,1", "--rename", "0=Both", "--ban", "iron"],
    "edit and refit": ["edit", "RUN", "--delete", "0", "--refit"],
    "update": ["update", "RUN", "new.jsonl"],
    "update and refit": ["update", "RUN", "new.jsonl", "--refit"],
    "compare": ["compare", "RUN", "whole"],
    "compare in JSON": ["compare", "whole", "RUN", "--json"],
    "resume": [*FIT, "--resume"],
    "fit over": ["fit", "new.jsonl", "-k", "2", "-o", "RUN", "--overwrite", "--no-page"],
}
"""Commands by name."""
WRITING = {"explore", "explore stability", "resume", "fit over"} | {
    name for name, arguments in COMMANDS.items() if arguments[0] in ("edit", "update")
}
"""Commands that write a run."""
EXIT_CODES = {exit_codes.FAILED, 2}
FINISHED: dict[str, list[str]] = {
    "plain": [],
    "shards": ["--shards"],
    **{name: ["--model", name] for name in ("lda", "ctm", "hierarchical", "nmf", "mixture")},
}
"""Kinds of runs, and the options of their fits."""
UNFINISHED: dict[str, tuple[list[str], str]] = {
    "counting shards": (["--shards"], "counting"),
    "fitting": ([], "fitting"),
    "fitting shards": (["--shards"], "fitting"),
    "fitted": ([], "fitted"),
    "fitted lda": (["--model", "lda"], "fitted"),
    "written": ([], "written"),
    "written shards": (["--shards"], "written"),
}
"""Kinds of fits that were killed: their options, and when they were killed."""
TWINS = "twins"
"""Folder of runs of the same shapes, from the same documents in another order."""

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


class Runs:
    """Fuzzer that runs commands on runs with mutated files."""

    name = "runs"
    cases = 20_000
    seconds = 20.0
    memory = 3 * 2**30
    batch = 50
    folder: Path

    def prepare(self, cases: Sequence[Case] | None) -> None:
        """Make small runs with all files that commands store in a run, fits that were killed, and twins of all."""
        base = self.folder / "base"
        kinds = {*FINISHED, *UNFINISHED} if cases is None else {"plain", *(case["run"] for case in cases)}
        with_twins = cases is None or any({"twin": True} in case.get("files", {}).values() for case in cases)
        places = {base: _documents(), **({base / TWINS: _documents()[::-1]} if with_twins else {})}
        for place, found in places.items():
            place.mkdir()
            (place / "docs.jsonl").write_text("".join(json.dumps(document) + "\n" for document in found), "utf-8")
            (place / "new.jsonl").write_text(NEW, "utf-8")
        # These run first: they fork, which polars, used by the others, does not survive.
        for name, (options, moment) in UNFINISHED.items():
            for place in places if name in kinds else ():
                _kill([*FIT, *options], moment, place)
                work_folder(place / "RUN").rename(place / name)
                for lock in place.glob(".*.lock"):
                    lock.unlink()
        for name, options in FINISHED.items():
            for place in places if name in kinds else ():
                _make([*FIT, *options], place)
                (place / "RUN").rename(place / name)

    def check(self) -> None:
        """Raise if a command fails on valid runs, or does not give the same answer twice."""
        for kind in (*FINISHED, *UNFINISHED):
            for name in _commands_of(kind):
                self._expected(kind, name)

    @cache  # noqa: B019, as there is one fuzzer
    def _files(self, kind: str) -> list[tuple[str, bytes]]:
        run = self.folder / "base" / kind
        return [(str(path.relative_to(run)), path.read_bytes()) for path in sorted(run.rglob("*")) if path.is_file()]

    def draw(self, random: Random) -> Case:
        """Return a file of a run that is mutated, removed or replaced, and a command."""
        kind = random.choice([*FINISHED, "plain", "shards"] if random.random() < 0.75 else list(UNFINISHED))
        files = self._files(kind)
        case: Case = {"run": kind, "command": random.choice(_commands_of(kind)), "files": {}}
        case["sealed"] = random.random() < 0.5
        for _ in range(random.choice((1, 1, 1, 2))):
            name, content = random.choice(files)
            how = random.random()
            mutated: Any = mutate(content, Path(name).suffix, random)
            if not case["sealed"] and random.random() < 0.5:  # which only a digest shows
                mutated = mutate_in_place(content, random)
            elif how < 0.15:
                mutated = mutate_bytes(content, random)
            elif how < 0.18:
                mutated = None
            elif how < 0.2:
                mutated = b""
            elif how < 0.23:
                mutated = random.choice(files)[1]
            elif how < 0.26:
                mutated = {"twin": True}
            elif how < 0.28:
                mutated = {"folder": True}
            elif how < 0.3:
                mutated = {"link": random.choice(("/dev/zero", "new.jsonl", name, "absent", "."))}
            case["files"][name] = mutated
        return case

    def run(self, case: Case) -> str:
        """Run a command on a run with these files, and compare its result with that of the run without the changes."""
        kind, name = case["run"], case["command"]
        expected = {} if case.get("sealed") else self._expected(kind, name)
        run = self._copy(kind)
        for file, content in case.get("files", {}).items():
            self._put(run, kind, file, content)
        if case.get("sealed"):
            seal(run)
        before = _content() if name in WRITING - {"resume"} else {}
        result = cli_runner.here(*_arguments(kind, name))
        ended_well = _checked(result, _arguments(kind, name))
        if not ended_well and before and _content() != before:
            raise WrongResult(f"{name} failed and changed the run")
        if ended_well and expected:
            _compare(self._answer(result, case), expected)
            if name in WRITING:
                _read_all(Path("RUN"))
        return f"{name}: {'well' if ended_well else 'refused'}{', sealed' if case.get('sealed') else ''}"

    def _copy(self, kind: str) -> Path:
        """Copy a run, or the work folder of one, and the other files of a case to the current folder."""
        run = work_folder(Path("RUN")) if kind in UNFINISHED else Path("RUN")
        base = self.folder / "base"
        shutil.copytree(base / kind, run)
        if kind in FINISHED:
            shutil.copytree(base / "plain", "whole")
        for name in ("docs.jsonl", "new.jsonl"):
            shutil.copyfile(base / name, name)
        _make_small("--shards" in _options(kind))
        return run

    def _put(self, run: Path, kind: str, name: str, content: Any) -> None:
        """Replace or change a file of a run.

        content : bytes; None removes it; {"fields": changes} of JSON; {"array": [name, place, number]} of safetensors;
        {"folder": True}, {"link": target} or {"twin": True} put a folder, a link or the file of the twin there.
        """
        path = run / name
        if isinstance(content, dict) and "fields" in content:
            change_json(path, **content["fields"])
            return
        if isinstance(content, dict) and "array" in content:
            change_array(path, *content["array"])
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content and "folder" in content:
            path.mkdir()
        elif content and "link" in content:
            path.symlink_to(content["link"])
        elif content and (twin := self.folder / "base" / TWINS / kind / name).is_file():
            shutil.copyfile(twin, path)

    def _expected(self, kind: str, name: str) -> dict[str, Any]:
        """Return the answer of a command on a run without changes."""
        file = self.folder / f"{kind}, {name}.json"
        if not file.exists():
            file.write_text(json.dumps(self._in_copy({"run": kind, "command": name})), "utf-8")
        answer: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return answer

    def _in_copy(self, case: Case) -> dict[str, Any]:
        """Run a command twice, each time on its own copy of a run, and return the answer."""
        answers = []
        for _ in range(2):
            place = self.folder / "whole"
            place.mkdir()
            with cli_runner.pytest.MonkeyPatch.context() as patch:
                patch.chdir(place)
                self._copy(case["run"])
                arguments = _arguments(case["run"], case["command"])
                result = cli_runner.here(*arguments)
                if not _checked(result, arguments):
                    raise WrongResult(f"{case} does not work before the mutation: {result.output}")
                answers.append(self._answer(result, case))
            shutil.rmtree(place)
        _compare(*answers)
        return answers[0]

    def _answer(self, result: Any, case: Case) -> dict[str, Any]:
        """Return the output of a command and the files that it wrote."""
        run = Path("RUN") if case["command"] in WRITING else None
        before = self.folder / "base" / case["run"] / "run.json" if case["run"] in FINISHED else None
        return answer(result, Path("weights.parquet"), Path("page.html"), run=run, before=before)


def _read_all(path: Path) -> None:
    """Raise WrongResult if a command has written a run that cannot be read."""
    run = open_run(path)
    try:
        _ = run.texts, run.documents, run.counts, [run.level(n_topics).model for n_topics in run.levels]
    except (ModelFileError, ShardError) as error:
        raise WrongResult(f"the new run cannot be read: {error}") from None


def _compare(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raise WrongResult if two answers differ."""
    problem = difference(found, expected)
    if problem is not None:
        raise WrongResult(problem)


def _commands_of(kind: str) -> list[str]:
    """Return the commands for a kind of run."""
    if kind in UNFINISHED:
        return ["resume"]
    model = MODELS.get(kind, MODELS["plsa"])
    names = set(COMMANDS) - {"resume"}
    if not model.estimator._edits_topics:
        names -= {name for name in names if {"--merge", "--delete"} & set(COMMANDS[name])}
    if kind == "nmf":  # which has no perplexity
        names -= {name for name in names if COMMANDS[name][0] == "evaluate"}
    if not model.estimator._refits:
        names -= {name for name in names if "--refit" in COMMANDS[name]}
    return sorted(names)


def _options(kind: str) -> list[str]:
    return UNFINISHED[kind][0] if kind in UNFINISHED else FINISHED[kind]


def _arguments(kind: str, name: str) -> list[str]:
    return [*COMMANDS[name], *(_options(kind) if name == "resume" else [])]


def _make_small(small: bool) -> None:
    """Make shards and blocks of documents so small that there are several, and fit from shards instead of memory."""
    sizes = (100, 1, 200, 50) if small else _SIZES
    shard_writer._MIN_NONZEROS, shard_writer._NONZEROS_PER_WORD = sizes[:2]
    documents.BLOCK, solving.LOADED_NONZEROS = sizes[2:]


_SIZES = (
    shard_writer._MIN_NONZEROS,
    shard_writer._NONZEROS_PER_WORD,
    documents.BLOCK,
    solving.LOADED_NONZEROS,
)


def _make(fit: list[str], place: Path) -> None:
    """Make a run in RUN, with an index and a name."""
    _make_small("--shards" in fit)
    for arguments in (
        fit,
        ["edit", "RUN", "--rename", "0=First"],
        ["search", "RUN", "metal", "--method", "plsi*"],
    ):
        result = cli_runner.run(*arguments, cwd=place)
        if result.exit_code:
            raise WrongResult(f"{arguments}: {result.output}")


def _kill(arguments: list[str], moment: str, place: Path) -> None:
    """Run a fit in a child that dies at some moment: "counting", "fitting", "fitted" or "written"."""

    def body() -> None:
        _make_small("--shards" in arguments)
        if moment == "counting":
            shard_files.Manifest.write = _dying(shard_files.Manifest.write, 1)  # type: ignore[method-assign]
        elif moment == "fitting":
            checkpoints.write_checkpoint = _dying(checkpoints.write_checkpoint, 1)
        elif moment == "fitted":
            write.RunDraft.finish = _dying(None, 0)  # type: ignore[method-assign]
        else:
            folder.flush_all = _dying(None, 0)
        cli_runner.run(*arguments, cwd=place)

    in_child(body)


def _dying(function: Callable[..., Any] | None, calls: int) -> Any:
    """Return a function that ends the process after some calls."""
    left = [calls]

    def called(*arguments: Any, **options: Any) -> None:
        if function is not None:
            function(*arguments, **options)
        left[0] -= 1
        if left[0] <= 0:
            os._exit(0)

    return called


def _content() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path("RUN").rglob("*") if path.is_file() and not path.is_symlink()}


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
    lines = [line for line in result.stderr.splitlines() if not line.endswith(" ...")]  # messages about progress
    errors = [line for line in lines if line.startswith("polyseme: ")]
    if result.exit_code not in EXIT_CODES or len(errors) != 1 or lines[-1] != errors[0] or len(errors[0]) > 2000:
        raise UncleanError(f"exit code {result.exit_code}: {result.stderr[-1000:]!r}")
    return False


reuse_the_reading_process()
fuzzer = Runs()
