"""Options of a distributed fit, checked before anything is read or written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np

from ..errors import nearest_name
from ..files import LockedError, lock
from ..tables.encoder import SCALES
from .chebyshev import LEAST_SELF_LOOP
from .metric import METRICS
from .store import Folder

__all__ = ["check_options", "check_space", "default_parts", "locked"]

# Points of a part: so many that one worker has memory for the search of them, and where several
# share the work, so few that each gets some parts of its own and none waits long for the last.
MOST_POINTS, LEAST_POINTS = 250_000, 50_000
PARTS_PER_WORKER, MOST_PARTS = 8, 512


def default_parts(n_rows: int, n_workers: int) -> int:
    """Parts for a number of rows and of workers."""
    fewest = -(-n_rows // MOST_POINTS)
    if n_workers > 1:
        shared = min(PARTS_PER_WORKER * n_workers, max(n_workers, n_rows // LEAST_POINTS))
        fewest = max(fewest, shared)
    return max(1, min(MOST_PARTS, fewest))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def check_options(
    scale: str,
    metric: str,
    n_neighbors: Any,
    recall: Any,
    label_weight: Any,
    self_loop: Any,
    n_parts: Any,
    tol: Any,
    random_state: Any,
    n_workers: Any,
) -> dict[str, Any]:
    """Options that decide the result, checked."""
    if scale not in SCALES:
        raise ValueError(f"scale={scale!r} is not known; {nearest_name(scale, list(SCALES))}")
    if metric not in METRICS:
        raise ValueError(f"metric={metric!r} is not known; {nearest_name(metric, list(METRICS))}")
    counts = {"n_neighbors": n_neighbors, "n_parts": n_parts, "n_workers": n_workers}
    for name, value in counts.items():
        if value is not None and (not isinstance(value, Integral) or value < 1):
            raise ValueError(f"{name}={value!r} must be a whole number, at least 1")
    if not isinstance(random_state, Integral) or random_state < 0:
        raise ValueError(f"random_state={random_state!r} must be a whole number, at least 0")
    if recall is not None and not (_is_number(recall) and 0 < recall <= 1):
        raise ValueError(f"recall={recall!r} must be in (0, 1]")
    if not (_is_number(tol) and 0 < tol < 1):
        raise ValueError(f"tol={tol!r} must be between 0 and 1")
    if label_weight is not None and not (_is_number(label_weight) and label_weight > 0):
        raise ValueError(f"label_weight={label_weight!r} must be positive")
    if self_loop is not None and not (_is_number(self_loop) and self_loop < np.inf):
        raise ValueError(f"self_loop={self_loop!r} must be a number, at least {LEAST_SELF_LOOP}")
    if self_loop is not None and self_loop < LEAST_SELF_LOOP:
        raise ValueError(
            f"self_loop={self_loop!r}: parts are solved by Jacobi steps, which are enough for "
            f"{LEAST_SELF_LOOP} and more; leave it out to have it chosen, or fit on one machine "
            "(gdpa.CommitteeClassifier), which has a coarse system for smaller ones"
        )
    return {
        "scale": scale,
        "metric": metric,
        "n_neighbors": int(n_neighbors),
        "recall": None if recall is None else float(recall),
        "label_weight": None if label_weight is None else str(float(label_weight)),
        "self_loop": None if self_loop is None else float(self_loop),
        "n_parts": None if n_parts is None else int(n_parts),
        "tol": float(tol),
        "random_state": int(random_state),
    }


def check_space(folder: Folder, n_rows: int, n_columns: int, n_neighbors: int) -> None:
    """Refuse work that does not fit on the disk."""
    need = n_rows * (20.0 * n_columns + 45.0 * n_neighbors + 200.0)
    free = folder.free_bytes()
    if free is not None and need > free:
        raise OSError(
            f"work folder {folder.url} needs about {need / 1e9:.3g} GB, {free / 1e9:.3g} GB are "
            "free; choose another disk"
        )


@contextlib.contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Hold a local work folder for this process."""
    if "://" in folder.url:
        yield
        return
    os.makedirs(folder.url, exist_ok=True)
    try:
        with lock(folder.url.rstrip("/") + ".lock", wait=False):
            yield
    except LockedError as error:
        raise ValueError(f"another run works in {folder.url} ({error})") from error
