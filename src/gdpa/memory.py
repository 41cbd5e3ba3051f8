"""Check estimates of memory against what is available, before allocating.

Functions that may allocate far more than their input, such as the full graph and the neighbour
search, call :func:`check_memory` first.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

# Leave a tenth of the available memory to other processes.
USABLE_SHARE = 0.9
# Smaller allocations are not checked.
MIN_CHECKED_BYTES = 2**26

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")  # address space in pages, and more
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
        The smallest of the free memory of the system, of its container (cgroup) and of the limits
        of the process (``ulimit -v``), or ``sys.maxsize`` if none is known.
    """
    limits = [_system_memory(), _process_memory()]
    limits += [_container_memory(*files) for files in _CGROUPS]
    return min((limit for limit in limits if limit is not None), default=sys.maxsize)


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


def _process_memory() -> int | None:
    """Return the address space that the process may still use, if it is limited."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    used = 0
    with suppress(OSError, ValueError, IndexError):
        used = int(_STATM.read_text().split()[0]) * resource.getpagesize()
    return max(limit - used, 0)


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
