"""Say no before the memory is gone: estimates are checked against what is free.

Functions that may allocate far more than their input (the full graph, the neighbour search) state
their need in bytes to :func:`check_memory` first. Only the operating system's own files are read.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# A process that takes the very last byte is killed; a tenth is left to everything else.
USABLE_SHARE = 0.9
# Needs below are not worth a look at what is free: a process without so much is lost anyway.
WORTH_A_LOOK = 2**26

_MEMINFO = Path("/proc/meminfo")
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def available_memory() -> int:
    """Bytes that this process can still allocate without swapping.

    Returns
    -------
    int
        The least of what the system and its container (cgroup) report as free. Where neither
        reports anything, ``sys.maxsize``: an unknown limit refuses nothing.
    """
    least = sys.maxsize if (system := _system_memory()) is None else system
    for files in _CGROUPS:
        if (container := _container_memory(*files)) is not None:
            least = min(least, container)
    return least


def _system_memory() -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container_memory(limit: Path, usage: Path) -> int | None:
    try:
        # "max" (version 2) is no number and means no limit; version 1 writes a huge number.
        return max(int(limit.read_text()) - int(usage.read_text()), 0)
    except (OSError, ValueError):
        return None


def check_memory(n_bytes: float, what: str, advice: str) -> None:
    """Refuse work whose memory does not fit.

    Parameters
    ----------
    n_bytes : float
        Estimated peak need in bytes.
    what : str
        What needs it, as the subject of the message.
    advice : str
        What to do instead.

    Raises
    ------
    MemoryError
        If more is needed than is available; the message names both amounts.
    """
    available = available_memory()
    if n_bytes > USABLE_SHARE * available:
        raise MemoryError(
            f"{what} needs about {n_bytes / 1e9:.3g} GB and {available / 1e9:.3g} GB are "
            f"available; {advice}"
        )
