"""How much a reader takes before it refuses."""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.errors import InputError


@dataclass(frozen=True)
class Limits:
    """Bounds against damaged and hostile files; each refusal is counted and named among the reader's problems.

    document : most bytes (characters, once decoded) of one document, row or page.
    ratio : most bytes that a byte of a compressed file may expand to, judged once 64 MiB have come out.
    expanded : most bytes that one compressed file may expand to.
    memory, seconds : PDF, Word, HTML and Parquet files are read in a process of their own: most bytes of memory that
        it may take for a file, and most seconds for a document, or for the next rows of a table. The memory is
        bounded on Linux and macOS, not on Windows.
    """

    document: int = 64 * 2**20
    ratio: float = 250.0
    expanded: int = 2**40
    memory: int = 2 * 2**30
    seconds: float = 300.0

    def __post_init__(self) -> None:
        for name in ("document", "ratio", "expanded", "memory", "seconds"):
            if not getattr(self, name) > 0:
                raise InputError(f"Limits: {name} must be above 0, not {getattr(self, name)!r}.")
