"""The environment that a reproduction ran in: commit, versions, processor."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from ..version import __version__

__all__ = ["commit", "environment", "stamp"]

_PACKAGES = (
    "numpy", "scipy", "scikit-learn", "clarabel", "scs", "faiss-cpu", "pyamg", "matplotlib",
)  # fmt: skip


@lru_cache(maxsize=1)
def commit() -> str:
    """Name the commit of the source, where the package runs from a Git checkout.

    Returns
    -------
    str
        Twelve digits, with "+" where tracked files of the package differ from them; "release" for
        an installed package.
    """
    folder = Path(__file__).resolve().parents[1]
    try:
        if not _git(folder, "ls-files", "--error-unmatch", "__init__.py"):
            return "release"
        found = _git(folder, "rev-parse", "--short=12", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", ".")
    except (OSError, subprocess.SubprocessError):
        return "release"
    return found + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=20
    ).stdout.strip()


def environment() -> dict[str, str]:
    """Describe the machine and the versions, without names of user, host or folders.

    Returns
    -------
    dict
        What -> text.
    """
    found = {
        "gdpa": __version__,
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
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


def stamp(facts: dict[str, str]) -> str:
    """One line that stands beside every table.

    Parameters
    ----------
    facts : dict
        What :func:`environment` gives.

    Returns
    -------
    str
        Commit, date and the versions that decide numbers.
    """
    versions = ", ".join(f"{name} {facts[name]}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"commit {facts['commit']}, {facts['date']}, gdpa {facts['gdpa']}, {versions}"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
