"""What a fit was asked for, and its documents: counted into its folder, or found there after a kill."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from polyseme.cli.reading import count_anew
from polyseme.errors import InputError
from polyseme.files import write_atomically
from polyseme.runs import Counted
from polyseme.runs.counted import read_json
from polyseme.runs.folder import UNFINISHED_FILE
from polyseme.runs.texts import TextWriter
from polyseme.text import Vectorizer, read


@dataclass(frozen=True)
class Documents:
    """What a command says of its documents, and of the fit that they are for."""

    inputs: list[str]
    reading: dict[str, Any]
    """arguments of `polyseme.text.read`"""
    counting: dict[str, Any]
    """language, phrases, min_df, max_df"""
    fitting: dict[str, Any]
    """n_components, background, seed, max_iter"""
    keep_texts: bool

    def counted(self, work: Path, notes: Console, *, resume: bool, quiet: bool) -> tuple[Counted, dict[str, Any]]:
        """The counted documents, and what run.json says of them. With `resume` they may be in the folder already."""
        asked = json.loads(json.dumps(asdict(self)))
        if resume and (work / UNFINISHED_FILE).is_file():
            found = read_json(work / UNFINISHED_FILE)
            if found["asked"] != asked:
                raise InputError(
                    f"The fit that was cut had other settings ({_difference(found['asked'], asked)}): "
                    "repeat its command with --resume, or begin anew without."
                )
            return Counted.load(work), found["facts"]
        start = time.perf_counter()
        reader = read(self.inputs, **self.reading)
        language = self.counting["language"]
        vectorizer = Vectorizer(**{**self.counting, "language": None if language == "none" else language})
        texts = TextWriter(work) if self.keep_texts else None
        counted = count_anew(reader, vectorizer, notes, texts=texts, quiet=quiet)
        counted.save(work)
        facts = {
            "inputs": self.inputs,
            "reading": self.reading,
            "counting": {**self.counting, "language": vectorizer.language_},
            "documents": counted.counts.shape[0],
            "words": counted.counts.shape[1],
            "tokens": int(counted.counts.sum()),
            "left_out": dict(reader.dropped),
            "problems": dict(reader.problems.counts),
            "seconds": {"reading": round(time.perf_counter() - start, 3)},
        }
        write_atomically(work / UNFINISHED_FILE, json.dumps({"asked": asked, "facts": facts}).encode())
        return counted, facts


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first setting that differs."""
    flat = [{**asked, **asked["reading"], **asked["counting"], **asked["fitting"]} for asked in (before, now)]
    differing = [name for name in flat[0] if not isinstance(flat[0][name], dict) and flat[0][name] != flat[1][name]]
    return f"{differing[0]}: {flat[0][differing[0]]}, now {flat[1][differing[0]]}"
