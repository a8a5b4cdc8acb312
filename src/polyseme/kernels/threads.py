"""Python threads over blocks of work, and the thread pools of other libraries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _libraries(kind: str) -> list[Any]:
    """The loaded libraries of a kind ("blas" or "openmp"); found once, which takes some milliseconds."""
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == kind]


def openmp_threads() -> int | None:
    """How many threads OpenMP would use for this thread's work; None if scikit-learn was built without OpenMP.

    The number follows OMP_NUM_THREADS, threadpoolctl's `threadpool_limits` and what joblib sets
    in its workers (`inner_max_num_threads`).
    """
    import sklearn  # noqa: F401, which loads the OpenMP library whose limits are read

    return min((library.get_num_threads() for library in _libraries("openmp")), default=None)


def _set_threads(library: Any, n_threads: int) -> None:
    """Sets the number of threads of a BLAS from any Python thread.

    From version 3.7 on, threadpoolctl lets one Python thread at a time change OpenBLAS and ignores the others without a
    word, so its inner function is called where it exists; `_BlasLimit` has the lock that makes this safe.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


class _BlasLimit:
    """A BLAS of one thread while at least one user needs it.

    OpenBLAS, in numpy's and scipy's wheels, has one number of threads for the whole process: the first user in sets it,
    the last one out restores it. If each user restored it alone, one would end the limit of the others, or restore a
    limit in place of what was there before. With OpenMP, and in other libraries, the number is each thread's own.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before: list[tuple[Any, int]] = []

    def enter(self) -> list[tuple[Any, int]]:
        """Returns what `leave` needs to restore for this thread."""
        with self._lock:
            if self._users == 0:
                self._before = _limited(library for library in _libraries("blas") if _is_shared(library))
            self._users += 1
        return _limited(library for library in _libraries("blas") if not _is_shared(library))

    def leave(self, own: list[tuple[Any, int]]) -> None:
        _restore(own)
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _restore(self._before)

    def reset_after_fork(self) -> None:
        """The other threads, and what they would have restored, do not exist in the child."""
        self._lock = Lock()
        if self._users:
            self._users = 0
            _restore(self._before)


def _is_shared(library: Any) -> bool:
    return library.internal_api == "openblas" and library.threading_layer != "openmp"


def _limited(libraries: Iterable[Any]) -> list[tuple[Any, int]]:
    """Sets each library to one thread; the numbers of threads that they had."""
    before = [(library, library.get_num_threads()) for library in libraries]
    for library, _ in before:
        _set_threads(library, 1)
    return before


def _restore(before: list[tuple[Any, int]]) -> None:
    for library, n_threads in before:
        _set_threads(library, n_threads)


_blas_limit = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limit.reset_after_fork)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS sums depend on its number of threads, so it gets one; the blocks run side by side instead.

    For the calling thread, and where BLAS has one number of threads for the process, for all.
    """
    own = _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave(own)


def side_by_side(function: Callable[[Item], Result], items: list[Item], n_threads: int) -> Iterator[Result]:
    """function(item) of each item, in order; n_threads at a time, each with a BLAS of one thread.

    The caller is one of the threads, and does the work alone if the system refuses others. No item is begun more than
    n_threads ahead of the one that is taken next: results wait in memory.
    """
    n_threads = max(1, n_threads)
    jobs: SimpleQueue[int | None] = SimpleQueue()
    results = [Future[Result]() for _ in items]

    def work() -> None:
        with single_threaded_blas():
            for number in iter(jobs.get, None):
                try:
                    results[number].set_result(function(items[number]))
                except BaseException as error:  # raised again where the result is taken
                    results[number].set_exception(error)

    with single_threaded_blas():
        threads = _started(work, min(n_threads, len(items)) - 1)
        try:
            begun = 0
            for number in range(len(items)):
                while begun < min(number + n_threads, len(items)):
                    jobs.put(begun)
                    begun += 1
                while not results[number].done() and (own := _next_of(jobs)) is not None:
                    results[own].set_result(function(items[own]))
                yield results[number].result()
                results[number] = Future()  # lets go of the result
        finally:
            while _next_of(jobs) is not None:
                pass
            for _ in threads:
                jobs.put(None)
            for thread in threads:
                thread.join()


def _started(work: Callable[[], None], n_threads: int) -> list[Thread]:
    """Up to n_threads threads; fewer if the system refuses more."""
    threads: list[Thread] = []
    while len(threads) < n_threads:
        thread = Thread(target=work, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            break
        threads.append(thread)
    return threads


def _next_of(jobs: SimpleQueue[int | None]) -> int | None:
    try:
        return jobs.get_nowait()
    except Empty:
        return None


def usable_cores() -> int:
    """The cores that this process may use: by its affinity, its cgroup, and LOKY_MAX_CPU_COUNT."""
    affinity = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return _cores_of(affinity, os.environ.get("LOKY_MAX_CPU_COUNT"))


@cache
def _cores_of(affinity: frozenset[int] | None, limit: str | None) -> int:
    """joblib's count, remembered: it opens files, which would take a good part of a small fit."""
    return int(joblib.cpu_count())


def effective_threads(n_jobs: int | None) -> int:
    """How many threads to use.

    None: as many as there are cores for this process (its affinity and cgroup limits, as joblib counts them), but no
    more than OpenMP would use (OMP_NUM_THREADS, `threadpool_limits`, joblib's `inner_max_num_threads`). A negative
    number counts back from there, as in scikit-learn. A positive number is taken as it is, up to four times the cores:
    beyond that threads cost memory and gain nothing, and results do not depend on their number.
    """
    if n_jobs == 1:
        return 1
    cores = usable_cores()
    if n_jobs is not None and n_jobs > 0:
        return min(n_jobs, 4 * cores)
    usable = min(cores, openmp_threads() or cores)
    return usable if n_jobs is None else max(1, usable + 1 + n_jobs)
