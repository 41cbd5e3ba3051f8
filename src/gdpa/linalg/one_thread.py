"""Factors of small matrices without the threads of LAPACK.

LAPACK splits the factorisation of a matrix of a hundred rows over threads. They take longer to wake
than the work takes, and keep a processor busy for a while after it; where none is free, the work
takes a hundred times longer. Their number shows in the last digits, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["one_thread"]


@cache
def _blas() -> Any:
    """The libraries, looked up once: that takes longer than the work they are kept from."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class _Limit:
    """The limit in force, and how many ask for it: the first sets it, the last lifts it."""

    lock = Lock()
    users = 0
    limiter: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and LAPACK work in one thread inside."""
    with _Limit.lock:
        if _Limit.users == 0:
            _Limit.limiter = _blas().limit(limits=1)
        _Limit.users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if _Limit.users == 0:
                _Limit.limiter.restore_original_limits()
