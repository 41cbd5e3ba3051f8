"""Check estimates of memory against what is available, before allocating.

Functions that may allocate far more than their input, such as the full graph and the neighbour
search, call :func:`check_memory` first.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Leave a tenth of the available memory to other processes.
USABLE_SHARE = 0.9
# Smaller allocations are not checked.
MIN_CHECKED_BYTES = 2**26

_MEMINFO = Path("/proc/meminfo")
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def available_memory() -> int:
    """Return the bytes that this process can still allocate without swapping.

    Returns
    -------
    int
        The smaller of the free memory of the system and of its container (cgroup), or
        ``sys.maxsize`` if neither is known.
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
        # No limit is "max" in cgroup version 2, and a huge number in version 1.
        return max(int(limit.read_text()) - int(usage.read_text()), 0)
    except (OSError, ValueError):
        return None


def check_memory(n_bytes: float, what: str, advice: str) -> None:
    """Raise an error if work needs more memory than is available.

    Parameters
    ----------
    n_bytes : float
        Estimated peak memory in bytes.
    what : str
        What needs it, the subject of the error message.
    advice : str
        What the user can do instead.

    Raises
    ------
    MemoryError
        If more is needed than available; the message names both amounts.
    """
    available = available_memory()
    if n_bytes > USABLE_SHARE * available:
        raise MemoryError(
            f"{what} needs about {n_bytes / 1e9:.3g} GB, but only {available / 1e9:.3g} GB are "
            f"available; {advice}"
        )
