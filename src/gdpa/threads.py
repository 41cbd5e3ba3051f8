"""Threads: how many, and of whom.

One meaning of `n_jobs` for the whole package; one pool per number of threads; one
way to keep BLAS and LAPACK from starting theirs. Results never depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from numbers import Integral
from typing import Any, TypeVar

__all__ = ["at_most", "effective_jobs", "in_threads", "one_thread"]

Item = TypeVar("Item")
Result = TypeVar("Result")

# Threads without being asked: more wait for the memory.
MOST_THREADS = 8


def effective_jobs(n_jobs: Any) -> int:
    """Number of threads that `n_jobs` stands for, in search and solve alike.

    Parameters
    ----------
    n_jobs : int or None
        -1 is all processors that this process may use, -2 all but one. None is all, at most 8, and
        no more than the environment variable ``OMP_NUM_THREADS`` says, which joblib sets in its
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
    available = getattr(os, "sched_getaffinity", None)
    processors = len(available(0)) if available is not None else os.cpu_count() or 1
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        return min(processors, int(limit) if limit.isdigit() and int(limit) else MOST_THREADS)
    return int(n_jobs) if int(n_jobs) > 0 else max(1, processors + 1 + int(n_jobs))


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads)


if hasattr(os, "register_at_fork"):
    # A forked process inherits the pool without its threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> list[Result]:
    """Do independent pieces of work, `n_jobs` at a time, each with BLAS in one thread.

    Work must not ask for threads itself.

    Parameters
    ----------
    work : callable
        What to do with each item.
    items : iterable
        The pieces.
    n_jobs : int
        Threads; with 1 the caller does it all.

    Returns
    -------
    list
        The results, in the order of the items. After an error no further piece is begun.
    """
    pieces = list(items)
    with _blas().limit(limits=1):
        if n_jobs == 1 or len(pieces) <= 1:
            return list(map(work, pieces))
        begun: list[Future[Result]] = []
        try:
            for piece in pieces:
                begun.append(_pool(n_jobs).submit(work, piece))
            return list(map(Future.result, begun))
        finally:
            for future in begun:
                future.cancel()


@cache
def _blas() -> Any:
    """The libraries of NumPy and SciPy, looked up once: that takes longer than the work inside.

    Others that are loaded later, by packages that bring their own, are not what works inside.
    """
    import scipy.linalg  # noqa: F401 - loads SciPy's library, which must be among them
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def one_thread() -> AbstractContextManager[Any]:
    """Let BLAS and LAPACK work in one thread inside.

    LAPACK splits the factorisation of a matrix of a hundred rows over threads. They take longer to
    wake than the work takes, and keep a processor busy for a while after it; where none is free,
    the work takes a hundred times longer. Their number shows in the last digits, too.

    Returns
    -------
    context manager
        Puts the number of threads back at its end.
    """
    limit: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limit


def at_most(n_threads: int) -> AbstractContextManager[Any]:
    """Let all native libraries, BLAS and OpenMP, work in so many threads inside.

    Parameters
    ----------
    n_threads : int
        How many.

    Returns
    -------
    context manager
        Puts the numbers of threads back at its end.
    """
    from threadpoolctl import threadpool_limits

    limit: AbstractContextManager[Any] = threadpool_limits(n_threads)
    return limit
