"""Threads of Python with one thread of BLAS each, because the sums of BLAS depend on its number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

# threads

Item = TypeVar("Item")

Result = TypeVar("Result")


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread inside the `with` block, because its sums depend on the number of threads.

    The limit holds for the calling thread, or for the process if BLAS has one number of threads per process.
    """
    own = _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave(own)


def map_in_threads(function: Callable[[Item], Result], items: list[Item], n_threads: int) -> Iterator[Result]:
    """Yield function(item) of each item, in order, computed by `n_threads` threads with single-threaded BLAS.

    The calling thread is one of them, and does all the work if the system refuses to start others. An item is started
    only when it is among the next `n_threads` items to be yielded, because finished results are held in memory.
    """
    n_threads = max(1, n_threads)
    jobs: SimpleQueue[int | None] = SimpleQueue()
    results = [Future[Result]() for _ in items]

    def work() -> None:
        with single_threaded_blas():
            for number in iter(jobs.get, None):
                try:
                    results[number].set_result(function(items[number]))
                except BaseException as error:  # raised again when the result is read
                    results[number].set_exception(error)

    with single_threaded_blas():
        threads = _start_threads(work, min(n_threads, len(items)) - 1)
        try:
            started = 0
            for number in range(len(items)):
                while started < min(number + n_threads, len(items)):
                    jobs.put(started)
                    started += 1
                while not results[number].done() and (own := _next_job(jobs)) is not None:
                    results[own].set_result(function(items[own]))
                yield results[number].result()
                results[number] = Future()  # frees the result
        finally:
            while _next_job(jobs) is not None:
                pass
            for _ in threads:
                jobs.put(None)
            for thread in threads:
                thread.join()


class _BlasLimit:
    """Limit of BLAS to one thread, as long as at least one caller needs it.

    OpenBLAS, as in the wheels of numpy and scipy, has one number of threads for the whole process. So the first caller
    sets it and the last one restores it. If each caller restored it, one could end the limit of another, or restore the
    limit instead of the original number. With OpenMP, and in other libraries, the number belongs to a thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before: list[tuple[Any, int]] = []

    def enter(self) -> list[tuple[Any, int]]:
        """Set the limit. Returns what `leave` has to restore for this thread."""
        with self._lock:
            if self._users == 0:
                self._before = _limit(library for library in _blas_libraries() if _is_shared(library))
            self._users += 1
        return _limit(library for library in _blas_libraries() if not _is_shared(library))

    def leave(self, own: list[tuple[Any, int]]) -> None:
        """Remove the limit of this caller."""
        _restore(own)
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _restore(self._before)

    def reset_after_fork(self) -> None:
        """Restore the number of threads in a forked child, where the threads that would do so do not exist."""
        self._lock = Lock()
        if self._users:
            self._users = 0
            _restore(self._before)


_blas_limit = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limit.reset_after_fork)


def _set_threads(library: Any, n_threads: int) -> None:
    """Set the number of threads of a BLAS library, from any Python thread.

    Since version 3.7, threadpoolctl lets only one Python thread at a time change OpenBLAS and silently ignores the
    others. So its inner function is called if it exists; the lock of `_BlasLimit` makes this safe.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


def _is_shared(library: Any) -> bool:
    """Return whether the library has one number of threads for the whole process."""
    return library.internal_api == "openblas" and library.threading_layer != "openmp"


def _limit(libraries: Iterable[Any]) -> list[tuple[Any, int]]:
    """Set each library to one thread. Returns the previous numbers of threads."""
    before = [(library, library.get_num_threads()) for library in libraries]
    for library, _ in before:
        _set_threads(library, 1)
    return before


def _restore(before: list[tuple[Any, int]]) -> None:
    for library, n_threads in before:
        _set_threads(library, n_threads)


@cache
def _blas_libraries() -> list[Any]:
    """Return the loaded BLAS libraries. Cached, because the search takes milliseconds."""
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def _start_threads(work: Callable[[], None], n_threads: int) -> list[Thread]:
    """Start up to `n_threads` threads; fewer if the system refuses more."""
    threads: list[Thread] = []
    while len(threads) < n_threads:
        thread = Thread(target=work, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            break
        threads.append(thread)
    return threads


def _next_job(jobs: SimpleQueue[int | None]) -> int | None:
    try:
        return jobs.get_nowait()
    except Empty:
        return None
