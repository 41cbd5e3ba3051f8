"""New nodes: one more row each of the labelled system, with the scores of the others held."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["new_row_scores"]

FloatArray = NDArray[np.float64]


def new_row_scores(
    weights: sp.csr_array,
    scores: FloatArray,
    *,
    degrees: FloatArray,
    laplacian: str,
    self_loop: float,
    evidence_weight: float = 0.0,
    evidence: FloatArray | None = None,
) -> FloatArray:
    """Scores of new nodes: one more row each of the system, the other scores held.

    With weights w to the nodes,

        combinatorial:  F = (sum_j w_j F_j + e T) / (sum_j w_j + gamma + e)
        normalised:     F = (sum_j w_j / sqrt(d d_j) F_j + e T) / (1 + gamma + e),  d = sum_j w_j.

    Parameters
    ----------
    weights : csr_array of shape (n_rows, n_nodes)
        Weights between new rows and nodes.
    scores : ndarray of shape (n_nodes, n_columns)
        Scores of the nodes.
    degrees : ndarray of shape (n_nodes,)
        Degrees of the nodes.
    laplacian : {"normalized", "combinatorial"}
        Kind of the Laplacian.
    self_loop, evidence_weight : float
        gamma and e.
    evidence : ndarray of shape (n_rows, n_columns), optional
        T of the new rows.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The scores; 0 where a row has no weight to any node and there is no evidence.
    """
    total = np.asarray(weights.sum(axis=1), dtype=np.float64).ravel()
    linked = total > 0
    if laplacian == "combinatorial":
        top, below = np.asarray(weights @ scores), total + self_loop
    else:
        root = _inverse_root(degrees)
        top = np.asarray(weights @ (root[:, None] * scores)) * _inverse_root(total)[:, None]
        below = linked.astype(np.float64) + self_loop
    if evidence is not None:
        top = top + evidence_weight * evidence
        below = below + evidence_weight
    return np.asarray(top / np.where(below > 0, below, 1.0)[:, None])


def _inverse_root(degrees: FloatArray) -> FloatArray:
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros(degrees.size), where=degrees > 0)
