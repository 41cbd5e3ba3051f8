"""Threads of the package, of BLAS and of OpenMP.

`n_jobs` has the same meaning in the whole package, and there is one pool per number of threads.
Results never depend on the number of threads.
"""

from __future__ import annotations

import os
import sys
import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from numbers import Integral
from queue import SimpleQueue
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# The queue of each pool, by number of threads.
_JOBS: dict[int, SimpleQueue[Callable[[], None]]] = {}


def effective_jobs(n_jobs: Any) -> int:
    """Return the number of threads that `n_jobs` stands for.

    Parameters
    ----------
    n_jobs : int or None
        -1 uses all processors available to this process, -2 all but one. None uses all, but at most
        8, or the value of the environment variable ``OMP_NUM_THREADS``, which joblib sets in its
        worker processes.

    Returns
    -------
    int
        At least 1.
    """
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0
    ):
        raise ValueError(f"n_jobs must be a non-zero integer or None, got {n_jobs!r}")
    if sys.platform == "emscripten":  # there are no threads in a browser
        return 1
    available = getattr(os, "sched_getaffinity", None)
    processors = len(available(0)) if available is not None else os.cpu_count() or 1
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        # More than 8 threads rarely help, because memory is the bottleneck.
        return min(processors, int(limit) if limit.isdigit() and int(limit) else 8)
    return int(n_jobs) if int(n_jobs) > 0 else max(1, processors + 1 + int(n_jobs))


def _serve(jobs: SimpleQueue[Callable[[], None]], n_others: int = 0) -> None:
    """Run the jobs of a queue forever, and start other threads that do the same."""
    for _ in range(n_others):
        threading.Thread(target=_serve, args=(jobs,), daemon=True).start()
    while True:
        jobs.get()()


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> list[Result]:
    """Apply a function to independent items in `n_jobs` threads, each with single-threaded BLAS.

    After an error or an interrupt no further item is started, and running ones are awaited. So no
    thread works on the arrays of a call that has ended.

    Parameters
    ----------
    work : callable
        Function of an item; must not call `in_threads` itself.
    items : iterable
        The items.
    n_jobs : int
        Number of threads; 1 runs everything in the calling thread.

    Returns
    -------
    list
        The results, in the order of the items.
    """
    pieces = list(items)
    with one_thread():
        if n_jobs == 1 or len(pieces) <= 1:
            return list(map(work, pieces))
        # The caller waits in C code only. Futures use Condition.wait, where an interrupt can
        # release a lock twice, which causes another error or a deadlock.
        waiting = deque(enumerate(pieces))
        running = set[int]()
        lock = threading.Lock()
        results: list[Any] = [None] * len(pieces)
        errors = dict[int, BaseException]()
        ended = SimpleQueue[int]()

        def run() -> None:
            while True:
                with lock:
                    if not waiting:
                        return
                    i, piece = waiting.popleft()
                    running.add(i)
                try:
                    results[i] = work(piece)
                except BaseException as error:
                    errors[i] = error
                finally:
                    running.discard(i)
                    ended.put(i)

        try:
            if n_jobs not in _JOBS:
                jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
                start_new_thread(_serve, (jobs, n_jobs - 1))
                _JOBS[n_jobs] = jobs
            for _ in range(min(n_jobs, len(pieces))):
                _JOBS[n_jobs].put(run)
            for _ in pieces:
                ended.get()
                if errors:
                    raise errors.pop(min(errors))
            return results
        finally:
            with lock:
                waiting.clear()
            while running:
                ended.get()


@cache
def _blas() -> Any:
    """Return a controller of the BLAS libraries of NumPy and SciPy; finding them is slow.

    Libraries that other packages load later are not used by this package.
    """
    import scipy.linalg  # noqa: F401 - loads SciPy's BLAS
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class _Limit:
    """The blocks of code that keep BLAS single-threaded, and the limit that the last restores."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks: set[object] = set()
        self.limiter: Any = None


_LIMIT = _Limit()
_OPENMP = threading.RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread.

    LAPACK uses several threads even for a matrix of a hundred rows. Starting them takes longer than
    the work, they slow other processes down, and their number changes the last digits of results.

    The limit applies to the whole process. Of concurrent callers, the first sets it and the last
    one to leave restores the number of threads.
    """
    block = object()
    try:
        with _LIMIT.lock:
            if not _LIMIT.blocks:
                _LIMIT.limiter = _blas().limit(limits=1)
            _LIMIT.blocks.add(block)
        yield
    finally:  # also after an interrupt before the block began
        with _LIMIT.lock:
            _LIMIT.blocks.discard(block)
            if not _LIMIT.blocks and _LIMIT.limiter is not None:
                _LIMIT.limiter.restore_original_limits()
                _LIMIT.limiter = None


@contextmanager
def openmp_threads(n_threads: int) -> Iterator[None]:
    """Limit OpenMP to a number of threads; concurrent callers wait for each other.

    Parameters
    ----------
    n_threads : int
        Number of threads.
    """
    from threadpoolctl import threadpool_limits

    with _OPENMP, threadpool_limits(n_threads, user_api="openmp"):
        yield


def _after_fork() -> None:
    """Reset pools and locks in a forked process, which has no other threads to release them."""
    global _OPENMP
    _JOBS.clear()
    _LIMIT.lock = threading.Lock()
    _OPENMP = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
