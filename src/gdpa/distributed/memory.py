"""Memory of workers: kept within a task, given back between tasks; what they need not load."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import lru_cache
from importlib.abc import MetaPathFinder
from typing import Any

__all__ = ["ENVIRONMENT", "give_back", "load_little"]

# Dask has workers give every block above 128 kB back at once, and take it anew: the pages that this
# fills with zeros cost half of the time of a search of 200,000 points. Blocks of up to 16 MB stay.
# One arena for all threads of a worker, of which one works: others leave holes.
ALLOCATOR = {"MALLOC_TRIM_THRESHOLD_": 2**26, "MALLOC_MMAP_THRESHOLD_": 2**24}
ALLOCATOR["MALLOC_ARENA_MAX"] = 1
# Says that a worker process works for us alone.
OURS = "GDPA_LOCAL_WORKER"
ENVIRONMENT = {**ALLOCATOR, OURS: 1}


def give_back() -> None:
    """Return what was freed to the system: after a million rows some 100 MB of a worker."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@lru_cache(maxsize=1)
def load_little() -> None:
    """Hide pandas in our own workers: pyarrow would load it, 45 MB, wherever it meets an array."""
    if OURS in os.environ and "pandas" not in sys.modules:
        sys.meta_path.insert(0, _Hidden())


class _Hidden(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Refuse pandas, leave everything else to the other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)


@lru_cache(maxsize=1)
def _trim() -> Any:
    """The call of the GNU C library; None with another one."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
