"""What the labels themselves say about a fitted classifier: each one predicted without itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LeftOut", "confusion", "left_out_labels"]


@dataclass(frozen=True)
class LeftOut:
    """Labels, and what they were predicted to be without their own help.

    Parameters
    ----------
    truth, predicted : ndarray of int
        Class numbers, one per labelled row that was left out.
    rows : ndarray of int
        These rows.
    source : str
        "leave-one-out", "k-fold" or "one fold".
    """

    truth: NDArray[np.intp]
    predicted: NDArray[np.intp]
    rows: NDArray[np.intp]
    source: str


def left_out_labels(model: Any) -> LeftOut | None:
    """Predictions of left-out labels, as tuning made them.

    Parameters
    ----------
    model : GDPAClassifier
        A fitted classifier.

    Returns
    -------
    LeftOut or None
        None where there were too few labels to leave any out.
    """
    state = model._fitted
    scores = state.tuning.left_out
    labeled = state.coding.labeled
    if state.tuning.checked is not None:
        labeled = labeled[state.tuning.checked]
    if scores is None or scores.shape[0] != labeled.size:
        return None
    from ..classifier.calibration import to_shares
    from ..classifier.state import winners

    shares = to_shares(scores, state.prior)
    best = winners(shares, state.sharpness, state.offset)
    return LeftOut(state.coding.codes[labeled].astype(np.intp), best, labeled, state.tuning.source)


def confusion(left_out: LeftOut, n_classes: int) -> NDArray[np.int64]:
    """Counts: row is the true class, column the predicted one."""
    flat = left_out.truth * n_classes + left_out.predicted
    counts = np.bincount(flat, minlength=n_classes * n_classes)
    return np.asarray(counts.reshape(n_classes, n_classes))
