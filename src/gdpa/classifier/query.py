"""Which samples to label next.

*margin*: smallest lead of the most probable class over the second. *entropy*: largest entropy of
the probabilities. *expected-change*: largest expected change of all scores if the label of the node
became known. Fixing node i at e_c adds ``K_:i (e_c - F_i) / K_ii`` to the scores, so the expected
squared change is ``|K_:i|^2 / K_ii^2 * sum_c p_ic |e_c - F_i|^2``; it prefers uncertain nodes that
many others listen to. Columns of K are solved for a short list of the most uncertain nodes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import nearest_name
from ..linalg import solve_spd
from .state import FittedState

__all__ = ["STRATEGIES", "query_nodes", "uncertainty"]

FloatArray = NDArray[np.float64]

STRATEGIES = ("margin", "entropy", "expected-change")
# Nodes whose expected change is computed, beyond those asked for.
SHORT_LIST = 50
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


def query_nodes(state: FittedState, n: int, strategy: str) -> NDArray[np.intp]:
    """Choose unlabelled nodes to label next.

    Parameters
    ----------
    state : FittedState
        The fitted classifier.
    n : int
        How many.
    strategy : {"margin", "entropy", "expected-change"}
        How they are chosen.

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
    order = order[: n + SHORT_LIST]
    change = _expected_change(state, free[order], p[order])
    return free[order[np.argsort(-change, kind="stable")[:n]]]


def _expected_change(state: FittedState, nodes: NDArray[np.intp], p: FloatArray) -> FloatArray:
    setting, graph = state.setting, state.graph
    floor = 1e-9 * max(float(graph.diagonal.mean()), 1e-300)
    weight = setting.evidence_weight if state.evidence is not None else 0.0
    diagonal = graph.diagonal + max(setting.self_loop + weight, floor)
    known = state.coding.labeled
    clamped = np.isinf(setting.label_weight)
    keep = np.arange(graph.n_nodes)
    if clamped:
        keep = np.setdiff1d(keep, known, assume_unique=True)
    else:
        diagonal = diagonal.copy()
        diagonal[known] += setting.label_weight
    inner = graph.adjacency[keep][:, keep] if clamped else graph.adjacency
    system = (sp.diags_array(diagonal[keep]) - inner).tocsr()
    place = np.searchsorted(keep, nodes)
    reach = np.empty(nodes.size)
    for start in range(0, nodes.size, BLOCK):
        part = place[start : start + BLOCK]
        units = np.zeros((keep.size, part.size))
        units[part, np.arange(part.size)] = 1.0
        K = solve_spd(system, units, tol=1e-3).x
        pivot = np.maximum(K[part, np.arange(part.size)], 1e-300)
        reach[start : start + BLOCK] = (K * K).sum(axis=0) / pivot**2
    F = state.scores[nodes]
    # sum_c p_c |e_c - F|^2 = 1 - 2 p'F + |F|^2
    step = 1.0 - 2.0 * (p * F).sum(axis=1) + (F * F).sum(axis=1)
    return np.asarray(reach * step)
