"""Work on a stream in a thread of its own, a few pieces ahead of who takes them."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Full, Queue
from threading import Event, Thread

_DEPTH = 4
_PATIENCE = 0.1
"""Seconds after which a thread that nobody takes from looks whether it is still wanted."""


def ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces and the same exception, made while the taker is busy; decompressors let other threads run."""
    made: Queue[bytes | Exception | None] = Queue(_DEPTH)
    unwanted = Event()

    def hand_over(item: bytes | Exception | None) -> bool:
        while not unwanted.is_set():
            try:
                made.put(item, timeout=_PATIENCE)
            except Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            if all(map(hand_over, pieces)):
                hand_over(None)
        except Exception as error:
            hand_over(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        while (item := made.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        unwanted.set()
        thread.join()
