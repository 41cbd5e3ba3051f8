"""Which samples to label next.

*margin*: smallest lead of the most probable class over the second. *entropy*: largest entropy of
the probabilities. *expected-change*: largest expected change of all scores if the label of the node
became known. Fixing node i at e_c adds ``K_:i (e_c - F_i) / K_ii`` to the scores, so the expected
squared change is ``|K_:i|^2 / K_ii^2 * sum_c p_ic |e_c - F_i|^2``; it prefers uncertain nodes that
many others listen to. Columns of K are solved for a short list of the most uncertain nodes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name
from ..policy import DEFAULT_POLICY, Policy
from .state import FittedState

__all__ = ["STRATEGIES", "query_nodes", "uncertainty"]

FloatArray = NDArray[np.float64]

STRATEGIES = ("margin", "entropy", "expected-change")
# Columns that are solved for at once.
BLOCK = 16


def uncertainty(probabilities: FloatArray, strategy: str) -> FloatArray:
    """Uncertainty of each row of probabilities.

    Parameters
    ----------
    probabilities : ndarray of shape (n_nodes, n_classes)
        Rows that add up to 1.
    strategy : {"margin", "entropy"}
        Which one.

    Returns
    -------
    ndarray of shape (n_nodes,)
        Larger is more uncertain.
    """
    if probabilities.shape[1] < 2:
        return np.zeros(probabilities.shape[0])
    if strategy == "margin":
        top = np.partition(probabilities, -2, axis=1)
        return np.asarray(top[:, -2] - top[:, -1])
    p = np.maximum(probabilities, 1e-300)
    return np.asarray(-(p * np.log(p)).sum(axis=1))


def query_nodes(
    state: FittedState, n: int, strategy: str, *, policy: Policy = DEFAULT_POLICY
) -> NDArray[np.intp]:
    """Choose unlabelled nodes to label next.

    Parameters
    ----------
    state : FittedState
        The fitted classifier.
    n : int
        How many.
    strategy : {"margin", "entropy", "expected-change"}
        How they are chosen.
    policy : Policy
        How many nodes are looked at more closely.

    Returns
    -------
    ndarray of int
        The most valuable first; ties by number. At most as many as there are unlabelled nodes.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy={strategy!r}; {nearest_name(strategy, list(STRATEGIES))}")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n={n!r} must be a whole number of at least 1")
    free = np.flatnonzero(state.coding.codes < 0)
    p = state.probabilities()[free]
    simple = "entropy" if strategy == "expected-change" else strategy
    order = np.argsort(-uncertainty(p, simple), kind="stable")
    if strategy != "expected-change":
        return free[order[:n]]
    order = order[: n + policy.short_list]
    change = _expected_change(state, free[order], p[order])
    return free[order[np.argsort(-change, kind="stable")[:n]]]


def _expected_change(state: FittedState, nodes: NDArray[np.intp], p: FloatArray) -> FloatArray:
    system = state.system()
    floor = 1e-9 * max(float(system.diagonal.mean()), 1e-300)
    if float(system.self_loop) + float(system.evidence_weight or 0.0) < floor:
        system = replace(system, self_loop=floor)
    reach = np.empty(nodes.size)
    for start in range(0, nodes.size, BLOCK):
        part = nodes[start : start + BLOCK]
        K = system.inverse_columns(part)
        pivot = np.maximum(K[part, np.arange(part.size)], 1e-300)
        reach[start : start + BLOCK] = (K * K).sum(axis=0) / pivot**2
    F = state.scores[nodes]
    # sum_c p_c |e_c - F|^2 = 1 - 2 p'F + |F|^2
    step = 1.0 - 2.0 * (p * F).sum(axis=1) + (F * F).sum(axis=1)
    return np.asarray(reach * step)
