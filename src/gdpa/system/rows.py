"""Scores of new nodes, and of nodes very far from any label, with all other scores fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from .labeled import LabeledSystem

# Rows with a larger weight are scaled down, so that their sum does not overflow.
HEAVIEST = 1e100


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
    """Return the scores of new nodes: each solves its own row, with the other scores fixed.

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
        The scores; 0 if a row has no link to any node and no evidence.
    """
    weights = _addable(weights)
    total = np.asarray(weights.sum(axis=1), dtype=np.float64).ravel()
    linked = total > 0
    if laplacian == "combinatorial":
        top = np.asarray(weights @ scores)
        below = total + self_loop
    else:
        root = inverse_root(degrees)
        top = np.asarray(weights @ (root[:, None] * scores)) * inverse_root(total)[:, None]
        below = linked.astype(np.float64) + self_loop
    if evidence is not None:
        top = top + evidence_weight * evidence
        below = below + evidence_weight
    return np.asarray(top / np.where(below > 0, below, 1.0)[:, None])


def attached_scores(
    weights: sp.csr_array,
    same: sp.csr_array | None,
    scores: FloatArray,
    shares: FloatArray,
    codes: NDArray[np.integer[Any]],
    threshold: float,
    **options: Any,
) -> FloatArray:
    """Return the scores of new rows, which may coincide with nodes or be far from any label.

    Parameters
    ----------
    weights : csr_array of shape (n_rows, n_nodes)
        Weights between new rows and nodes.
    same : csr_array of shape (n_rows, n_nodes) or None
        1 where a row coincides with a node. Such a row takes the labels of these nodes or, if they
        have none, their mean score.
    scores, shares : ndarray of shape (n_nodes, n_classes)
        Scores of the nodes, and shares, which are used where scores vanish.
    codes : ndarray of int of shape (n_nodes,)
        Classes of labelled nodes, negative for others.
    threshold : float
        Scores up to this are considered as vanished.
    **options
        Passed to :func:`new_row_scores`.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        The scores.
    """
    found = new_row_scores(weights, scores, **options)
    if same is not None:
        hit = np.flatnonzero(np.diff(same.indptr))
        found[hit] = (same[hit] @ scores) / np.diff(same.indptr)[hit, None]
    faint = np.flatnonzero(found.max(axis=1, initial=0.0) <= threshold)
    if faint.size:
        found[faint] = new_row_scores(weights[faint], shares, **options)
    if same is not None:
        known = np.flatnonzero(codes >= 0)
        given = same[:, known]
        hit = np.flatnonzero(np.diff(given.indptr))
        found[hit] = given[hit] @ np.eye(scores.shape[1])[codes[known]]
    return found


def _addable(weights: sp.csr_array) -> sp.csr_array:
    """Scale down rows of weights whose sum would overflow."""
    if weights.data.max(initial=0.0) <= HEAVIEST:
        return weights
    largest = weights.max(axis=1).toarray().ravel()
    return sp.csr_array(sp.diags_array(HEAVIEST / np.maximum(largest, HEAVIEST)) @ weights)


def inverse_root(degrees: FloatArray) -> FloatArray:
    """Return one over the square root of each degree, 0 for degree 0."""
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros(degrees.size), where=degrees > 0)


def with_far_nodes(
    adjacency: sp.csr_array,
    diagonal: FloatArray,
    labeled: NDArray[np.intp],
    scores: FloatArray,
    unreached: NDArray[np.intp],
    threshold: float,
    n_jobs: int | None = None,
) -> FloatArray:
    """Recompute the scores of nodes that are too far from every label.

    With a self-loop, scores decay with the distance from labels. Below `threshold`, rounding errors
    dominate: such nodes get the harmonic extension of the shares around them.

    Parameters
    ----------
    adjacency, diagonal, labeled
        As in :class:`~gdpa.system.LabeledSystem`.
    scores : ndarray of shape (n_nodes, n_columns)
        Scores.
    unreached : ndarray of int
        Nodes without a path to a label.
    threshold : float
        Sum of scores below which a node is far from any label.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    ndarray of shape (n_nodes, n_columns)
        Scores, replaced at far nodes; zero at unreached ones.
    """
    total = scores.sum(axis=1)
    out = scores.copy()
    far = total < threshold
    far[labeled] = far[unreached] = False
    out[unreached] = 0.0
    if not far.any() or not (total >= threshold).any():
        return out
    others = np.flatnonzero(~far)
    positive = np.maximum(out[others], 0.0)
    shares = positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300)
    harmonic = LabeledSystem(adjacency, diagonal, others, shares, n_jobs=n_jobs)
    out[far] = threshold * harmonic.solve(tol=1e-6).x[far]
    return out
