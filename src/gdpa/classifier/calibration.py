"""Scores to probabilities: shares, sharpened by what left-out labels say.

The scores F >= 0 of a node add up to at most 1; what matters are their shares ``q = F / sum F``.
The probabilities are ``p ~ q^beta``: beta = 1 takes the shares at their word, a larger one sharpens
them. beta is the minimiser of the log-loss of left-out labels (convex in beta). The order of the
classes never changes, so predicted labels and probabilities agree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

__all__ = ["FEWEST_LABELS", "fit_sharpness", "sharpen", "to_shares"]

FloatArray = NDArray[np.float64]

# Labels that must have been left out before their log-loss is trusted.
FEWEST_LABELS = 20
MOST_SHARPNESS = 64.0
# A share of 0 is never more than "not seen": it keeps probabilities off 0 and 1.
SMALLEST_SHARE = 1e-6


def to_shares(scores: FloatArray, prior: FloatArray) -> FloatArray:
    """Shares of the classes in non-negative scores.

    Parameters
    ----------
    scores : ndarray of shape (n_nodes, n_classes)
        Scores; rounding below 0 is cut.
    prior : ndarray of shape (n_classes,)
        Shares of a node without any score.

    Returns
    -------
    ndarray of shape (n_nodes, n_classes)
        Rows that add up to 1.
    """
    positive = np.maximum(scores, 0.0)
    top = positive.max(axis=1, keepdims=True)
    nothing = top <= 0
    positive = np.where(nothing, prior, positive / np.where(nothing, 1.0, top))
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def sharpen(shares: FloatArray, sharpness: float, offset: FloatArray | None = None) -> FloatArray:
    """Probabilities ``p ~ q^beta exp(offset)``.

    Parameters
    ----------
    shares : ndarray of shape (n_nodes, n_classes)
        Shares q.
    sharpness : float
        beta.
    offset : ndarray of shape (n_classes,), optional
        Shift of each class's threshold.

    Returns
    -------
    ndarray of shape (n_nodes, n_classes)
        Rows that add up to 1.
    """
    logits = sharpness * np.log(np.maximum(shares, SMALLEST_SHARE))
    if offset is not None:
        logits += offset
    logits -= logits.max(axis=1, keepdims=True)
    p = np.exp(logits)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def fit_sharpness(left_out: FloatArray | None, codes: NDArray[np.int32]) -> float:
    """Sharpness beta that fits left-out labels best.

    Parameters
    ----------
    left_out : ndarray of shape (n_labeled, n_classes) or None
        Scores of the labelled nodes without their own label.
    codes : ndarray of int of shape (n_labeled,)
        Their classes.

    Returns
    -------
    float
        beta; 1 where there are fewer than 20 labels.
    """
    if left_out is None or codes.size < FEWEST_LABELS:
        return 1.0
    k = left_out.shape[1]
    shares = to_shares(left_out, np.full(k, 1.0 / k))
    logs = np.log(np.maximum(shares, SMALLEST_SHARE))
    own = logs[np.arange(codes.size), codes]
    # As if ten labels spoke for the plain shares: a few labels that all happen to be right must
    # not make every probability 0 or 1.
    penalty = 10.0 / codes.size

    def loss(log_beta: float) -> float:
        beta = np.exp(log_beta)
        scaled = beta * logs
        top = scaled.max(axis=1)
        total = top + np.log(np.exp(scaled - top[:, None]).sum(axis=1))
        return float((total - beta * own).mean() + penalty * log_beta**2)

    limit = float(np.log(MOST_SHARPNESS))
    found = minimize_scalar(loss, bounds=(-limit, limit), method="bounded")
    return float(np.exp(found.x))
