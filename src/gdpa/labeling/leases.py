"""Rows that are shown to an annotator and not answered yet: nobody else is asked them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .answers import Answer

# Time in seconds after which an unanswered check is shown to somebody else. Until it is answered,
# it counts as wrong, so it must not wait for somebody who has left.
CHECK_SECONDS = 60.0


@dataclass(frozen=True)
class Lease:
    """A row reserved for an annotator: for whom, why, and until when."""

    annotator: str
    purpose: str
    until: float


class Leases:
    """The reserved rows of a session.

    Parameters
    ----------
    seconds : float
        Time for which a row is reserved.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._by_row: dict[int, Lease] = {}

    def drop_expired(self, answers: Mapping[int, Answer], annotator: str) -> None:
        """Drop answered rows, and expired ones of annotators other than the one who asks."""
        now = time.monotonic()
        self._by_row = {
            row: lease
            for row, lease in self._by_row.items()
            if (row in answers) == (lease.purpose == "second")
            and (lease.annotator == annotator or lease.until > now)
        }

    def current(self) -> dict[int, Lease]:
        """Return the reserved rows."""
        return dict(self._by_row)

    def get(self, row: int) -> Lease | None:
        """Return the lease of a row, or None."""
        return self._by_row.get(row)

    def reserve(self, rows: Iterable[tuple[int, str]], annotator: str) -> None:
        """Reserve rows, given with the purpose of the question."""
        now = time.monotonic()
        for row, purpose in rows:
            seconds = self.seconds
            if purpose == "check":
                seconds = min(seconds, CHECK_SECONDS)
            self._by_row[row] = Lease(annotator, purpose, now + seconds)

    def put_first(self, row: int, purpose: str, annotator: str) -> None:
        """Reserve a row that is asked again before all others."""
        lease = Lease(annotator, purpose, time.monotonic() + self.seconds)
        self._by_row = {row: lease, **self._by_row}

    def release(self, row: int) -> None:
        """Drop the lease of a row, if there is one."""
        self._by_row.pop(row, None)
