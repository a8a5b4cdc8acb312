"""What a fit was asked for, and its documents: counted into its folder, or found there after a kill."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from polyseme.cli.console import Console
from polyseme.cli.reading import count_anew
from polyseme.errors import InputError
from polyseme.files import write_atomically
from polyseme.runs import Counted
from polyseme.runs.counted import damaged, read_json
from polyseme.runs.fields import COUNTED, FACTS
from polyseme.runs.folder import UNFINISHED_FILE
from polyseme.runs.texts import TextWriter
from polyseme.text import Reader, Vectorizer, read


@dataclass(frozen=True)
class Documents:
    """What a command says of its documents, and of the fit that they are for."""

    inputs: list[str]
    reading: dict[str, Any]
    """arguments of `polyseme.text.read`"""
    counting: dict[str, Any]
    """arguments of `Vectorizer`"""
    fitting: dict[str, Any]
    """n_components, background, seed, max_iter"""
    keep_texts: bool
    shards: bool
    """whether the counts go to files"""

    def counted(self, work: Path, notes: Console, *, resume: bool, quiet: bool) -> tuple[Counted, dict[str, Any]]:
        """The counted documents, and what run.json says of them. With `resume` they may be in the folder already."""
        facts = self.facts_in(work) if resume else None
        if facts is not None:
            return Counted.load(work), facts
        start = time.perf_counter()
        reader, vectorizer = self.reader(), self.vectorizer()
        texts = TextWriter(work) if self.keep_texts else None
        counted = count_anew(reader, vectorizer, notes, texts=texts, quiet=quiet)
        counted.save(work)
        sizes = {
            "documents": counted.counts.shape[0],
            "words": counted.counts.shape[1],
            "tokens": int(counted.counts.sum()),
        }
        return counted, self.keep_facts(work, reader, vectorizer, sizes, time.perf_counter() - start)

    def reader(self) -> Reader:
        return read(self.inputs, **self.reading)

    def vectorizer(self) -> Vectorizer:
        return Vectorizer(**self.counting)

    def facts_in(self, work: Path) -> dict[str, Any] | None:
        """What `keep_facts` put there; None if it did not, InputError if it was asked for something else."""
        if not (work / UNFINISHED_FILE).is_file():
            return None
        found = read_json(work / UNFINISHED_FILE, COUNTED, required=tuple(COUNTED))
        check_facts(found["facts"], work / UNFINISHED_FILE)
        if found["asked"] != self._asked:
            raise InputError(
                f"The fit that was cut had other settings ({_difference(found['asked'], self._asked)}): "
                "repeat its command with --resume, or begin anew without."
            )
        facts: dict[str, Any] = found["facts"]
        return facts

    def keep_facts(
        self, work: Path, reader: Reader, vectorizer: Vectorizer, sizes: dict[str, int], seconds: float
    ) -> dict[str, Any]:
        """What run.json says of the documents; from now on a fit that is killed does not read them again."""
        facts = {
            "inputs": self.inputs,
            "reading": self.reading,
            "counting": {**self.counting, "language": vectorizer.language_},
            **sizes,
            "left_out": dict(reader.dropped),
            "problems": dict(reader.problems.counts),
            "seconds": {"reading": round(seconds, 3)},
        }
        write_atomically(work / UNFINISHED_FILE, json.dumps({"asked": self._asked, "facts": facts}).encode())
        return facts

    @property
    def _asked(self) -> dict[str, Any]:
        asked: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return asked


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first setting that differs."""
    flat = [{**asked, **asked["reading"], **asked["counting"], **asked["fitting"]} for asked in (before, now)]
    differing = [name for name in flat[1] if not isinstance(flat[1][name], dict) and flat[0].get(name) != flat[1][name]]
    if not differing:
        return "of another version"
    return f"{differing[0]}: {flat[0].get(differing[0])}, now {flat[1][differing[0]]}"


def check_facts(facts: dict[str, Any], path: Path) -> None:
    """Raises ModelFileError if the file does not say all that the rest of the fit needs to know."""
    missing = [name for name in FACTS if name not in facts]
    if missing or "language" not in facts["counting"]:
        raise damaged(path, ValueError(f"{(missing or ['language'])[0]} is missing"))
