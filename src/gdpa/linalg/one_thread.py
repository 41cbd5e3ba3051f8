"""Factors of small matrices without the threads of LAPACK.

LAPACK splits the factorisation of a matrix of a hundred rows over threads. They take longer to wake
than the work takes, and keep a processor busy for a while after it; where none is free, the work
takes a hundred times longer. Their number shows in the last digits, too.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["one_thread"]


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

    Returns
    -------
    context manager
        Puts the number of threads back at its end.
    """
    limit: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limit
