"""Independent blocks of queries, several at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from .features import row_blocks

__all__ = ["in_threads", "join_blocks"]

# Points joined at a time: their comparisons take some 3 kB each, which should be little beside the
# graph.
JOIN_BLOCK = 8_192
JOIN_PARTS = 24
LEAST_JOIN_BLOCK = 4_096


def join_blocks(n_queries: int) -> list[slice]:
    """Blocks of queries that are joined with the cells at a time."""
    size = min(JOIN_BLOCK, max(LEAST_JOIN_BLOCK, n_queries // JOIN_PARTS))
    return list(row_blocks(n_queries, 1, size))


def in_threads(work: Callable[[slice], None], blocks: list[slice], n_jobs: int) -> None:
    """Do independent blocks of work, `n_jobs` at a time; products use one thread each."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        if n_jobs == 1 or len(blocks) == 1:
            for rows in blocks:
                work(rows)
            return
        with ThreadPoolExecutor(n_jobs) as pool:
            try:
                for done in [pool.submit(work, rows) for rows in blocks]:
                    done.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
