"""Calls that nobody takes over are noticed.

A call is given to the worker that holds what it needs, and may run on others. One whose worker was
lost while there was no other stays with the lost one for ever: Dask offers it to a later worker
only if that bears the same address.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["Watch", "live_workers"]

SECONDS = 1.0  # between two looks
IDLE_LOOKS = 3  # in a row without any call at work: nobody will take them


def live_workers(client: Any) -> list[str]:
    """Addresses of the workers there are now."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


class Watch:
    """Within this context, calls that nobody takes over are cancelled, and `stuck` says so.

    Parameters
    ----------
    client : Client
        Client of the cluster.
    futures : list of Future
        The calls.
    workers : list of str
        Addresses that they were given to.
    """

    def __init__(self, client: Any, futures: list[Any], workers: list[str]) -> None:
        self.client, self.futures, self.workers = client, futures, set(workers)
        self.stuck = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        idle = 0
        while idle < IDLE_LOOKS:
            if self._ended.wait(SECONDS):
                return
            now = set(live_workers(self.client))
            pending = {future.key for future in self.futures if future.status == "pending"}
            if not now or self.workers <= now or not pending:
                continue
            at_work = self.client.processing().values()
            idle = 0 if any(pending.intersection(keys) for keys in at_work) else idle + 1
        self.stuck = True
        self.client.cancel(self.futures)
