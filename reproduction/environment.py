"""The environment of a run: commit, versions, processor."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import gdpa

_ROOT = Path(__file__).resolve().parents[1]
_PACKAGES = ("numpy", "scipy", "scikit-learn", "clarabel", "scs", "pyamg", "matplotlib")


@lru_cache(maxsize=1)
def commit() -> str:
    """Name the commit of the source.

    Returns
    -------
    str
        Twelve digits, with "+" if tracked files of the package or of the reproduction differ from
        them, or if gdpa is imported from elsewhere; "release" outside a Git checkout.
    """
    try:
        _git("ls-files", "--error-unmatch", "reproduction/__init__.py")
        found = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "src", "reproduction")
    except (OSError, subprocess.SubprocessError):
        return "release"
    elsewhere = _ROOT not in Path(str(gdpa.__file__)).resolve().parents
    return found + ("+" if changed or elsewhere else "")


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True, timeout=20
    ).stdout.strip()


def environment() -> dict[str, str]:
    """Describe the machine and the versions, without names of user, host or folders."""
    return {
        "gdpa": gdpa.__version__,
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or "unknown"),
        **{name: _version(name) for name in _PACKAGES},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def stamp(facts: dict[str, str]) -> str:
    """Return one line that stands under every table: commit, date, versions."""
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
