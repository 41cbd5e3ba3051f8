"""Scores of new rows: one more row of the same system, with the fitted scores held.

A new node with weights w to the fitted ones has, in ``(L + gamma + e) F = e T``,

    combinatorial:  F = (sum_j w_j F_j + e T) / (sum_j w_j + gamma + e)
    normalised:     F = (sum_j w_j / sqrt(d d_j) F_j + e T) / (1 + gamma + e),   d = sum_j w_j.

A row that coincides with fitted points is no new node: it takes their (mean) score.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .graphs import ClassifierGraph
from .tuning import Setting

__all__ = ["row_scores"]

FloatArray = NDArray[np.float64]


def row_scores(
    graph: ClassifierGraph,
    weights: sp.csr_array,
    scores: FloatArray,
    setting: Setting,
    evidence: FloatArray | None = None,
) -> FloatArray:
    """Scores of new rows.

    Parameters
    ----------
    graph : ClassifierGraph
        The fitted graph.
    weights : csr_array of shape (n_rows, n_nodes)
        Weights between new rows and nodes.
    scores : ndarray of shape (n_nodes, n_classes)
        Fitted scores.
    setting : Setting
        Self-loop and evidence weight.
    evidence : ndarray of shape (n_rows, n_classes), optional
        What the models say about the new rows.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        The scores; 0 where a row has no weight to any node and there is no evidence.
    """
    own = np.asarray(weights.sum(axis=1), dtype=np.float64).ravel()
    linked = own > 0
    if graph.laplacian == "combinatorial":
        top = np.asarray(weights @ scores)
        below = own + setting.self_loop
    else:
        root = np.zeros(graph.n_nodes)
        positive = graph.degrees > 0
        root[positive] = 1.0 / np.sqrt(graph.degrees[positive])
        factor = np.zeros(own.size)
        factor[linked] = 1.0 / np.sqrt(own[linked])
        top = np.asarray(weights @ (root[:, None] * scores)) * factor[:, None]
        below = linked.astype(np.float64) + setting.self_loop
    if evidence is not None:
        top = top + setting.evidence_weight * evidence
        below = below + setting.evidence_weight
    out = top / np.where(below > 0, below, 1.0)[:, None]
    if graph.kind != "precomputed" and weights.nnz:
        # A weight of exactly 1 is a distance of exactly 0.
        same = sp.csr_array(
            ((weights.data >= 1.0).astype(np.float64), weights.indices, weights.indptr),
            shape=weights.shape,
        )
        count = np.asarray(same.sum(axis=1)).ravel()
        hit = count > 0
        if hit.any():
            out[hit] = np.asarray(same[hit] @ scores) / count[hit, None]
    return out
