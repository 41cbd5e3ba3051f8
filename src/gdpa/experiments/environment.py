"""The environment that a reproduction ran in: versions, processor, threads."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

from ..version import __version__

__all__ = ["environment"]

_PACKAGES = (
    "numpy", "scipy", "scikit-learn", "clarabel", "scs", "faiss-cpu", "pyamg", "matplotlib",
)  # fmt: skip


def environment() -> dict[str, str]:
    """Describe the machine and the versions, without names of user, host or folders.

    Returns
    -------
    dict
        What -> text.
    """
    found = {
        "gdpa": __version__,
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or "unknown"),
    }
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
