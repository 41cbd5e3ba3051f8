"""Threads: how many, and of whom.

One meaning of `n_jobs` for the whole package, scikit-learn's; one pool per number of threads; one
way to keep BLAS and LAPACK from starting theirs. Results never depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from numbers import Integral
from typing import Any, TypeVar

__all__ = ["at_most", "effective_jobs", "in_threads", "one_thread"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def effective_jobs(n_jobs: Any) -> int:
    """Number of threads that `n_jobs` stands for, as everywhere in scikit-learn.

    Parameters
    ----------
    n_jobs : int or None
        None is 1, or what ``joblib.parallel_config`` says; -1 all processors, -2 all but one.

    Returns
    -------
    int
        At least 1.
    """
    if n_jobs is not None:
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
            raise ValueError(f"n_jobs must be a non-zero integer or None, got {n_jobs!r}")
        if int(n_jobs) > 0:
            return int(n_jobs)
    from joblib import effective_n_jobs  # here: takes a tenth of a second to import

    return int(effective_n_jobs(n_jobs))


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
        begun = [_pool(n_jobs).submit(work, piece) for piece in pieces]
        try:
            return [piece.result() for piece in begun]
        finally:
            for piece in begun:
                piece.cancel()


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
