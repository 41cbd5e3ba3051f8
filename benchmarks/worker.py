"""Run one measurement in its own process, so that its peak memory can be measured.

:mod:`reproduction.runner` starts the process; it answers what the function returned, and the peak
memory.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def peak_mb() -> float:
    """Largest resident memory of this process so far, in MB.

    The kernel's own figure (VmHWM) where there is one: ``ru_maxrss`` of a child may still be that
    of the process that started it.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1e3 * 1.024
    except OSError:
        pass
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1.024 / 1e3


def give_back() -> None:
    """Return freed memory to the system, where the C library keeps it (glibc)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def resident_mb() -> float:
    """Resident memory of this process now, in MB, freed memory not counted."""
    import psutil

    give_back()
    return float(psutil.Process().memory_info().rss) / 1e6


def forget_peak() -> None:
    """Let the peak start again from the present memory (Linux; elsewhere it goes on)."""
    give_back()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def wait(seconds: float) -> dict[str, Any]:
    """Sleep, to see that limits hold."""
    time.sleep(seconds)
    return {"seconds": seconds}


def measure(case: str, params: Mapping[str, Any], started: Callable[[], None]) -> dict[str, Any]:
    """Call the function that a task names.

    Parameters
    ----------
    case : str
        Name of the case; not needed.
    params : mapping
        ``function`` as ``module:name`` and ``arguments``.
    started : callable
        Starts the clock of the time limit.

    Returns
    -------
    dict
        What the function returned, peak memory and processor seconds.
    """
    module, name = params["function"].split(":")
    started()
    function = getattr(importlib.import_module(module), name)
    cpu = time.process_time()
    warnings.simplefilter("ignore")
    result = function(**params["arguments"])
    if isinstance(result, list):
        result = {"rows": result}
    result.setdefault("peak_mb", peak_mb())
    result.setdefault("process_cpu_s", time.process_time() - cpu)
    return dict(result)
