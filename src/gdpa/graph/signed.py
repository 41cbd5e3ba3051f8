"""Balance of signed graphs (Cartwright and Harary).

A signed graph is balanced if its nodes can be coloured +1 and -1 so that positive edges join equal
colours and negative edges join different colours. Equivalently, no cycle has an odd number of
negative edges. The Gershgorin discs of a generalised Laplacian can be aligned perfectly if its
graph is balanced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .adjacency import MatrixLike, check_adjacency, component_labels


@dataclass(frozen=True)
class BalanceResult:
    """Result of the balance test.

    Parameters
    ----------
    balanced : bool
        Whether the graph is balanced.
    colors : ndarray of int8 of shape (n_nodes,)
        +1 or -1 per node; the first node of each component is +1. For a balanced graph
        ``sign(A_ij) = colors_i colors_j`` on every edge; otherwise on the edges of a spanning
        forest.
    witness : ndarray of intp or None
        For an unbalanced graph, a cycle whose edge signs have the product -1; the first node is
        repeated at the end.
    """

    balanced: bool
    colors: NDArray[np.int8]
    witness: NDArray[np.intp] | None


def balance(A: MatrixLike, *, laplacian: bool = False) -> BalanceResult:
    """Test whether a signed graph is balanced.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights of any sign; the diagonal is ignored.
    laplacian : bool, default=False
        Whether A is a (generalised) Laplacian, such as H_bar: a positive weight is then a negative
        entry.

    Returns
    -------
    BalanceResult
        The result, the 2-colouring and, if unbalanced, a cycle that proves it.

    Examples
    --------
    >>> from gdpa.graph import balance
    >>> balance([[0, -1, 0], [-1, 0, 2], [0, 2, 0]]).colors
    array([ 1, -1, -1], dtype=int8)
    >>> balance([[0, -1, 1], [-1, 0, 1], [1, 1, 0]]).witness
    array([2, 0, 1, 2])
    """
    S = check_adjacency(A, name="A", signed=True)
    if laplacian:
        S = -S
    parent, sign = _spanning_forest(S)
    colors = _along_paths(parent, sign)
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    broken = np.flatnonzero(colors[rows] * colors[S.indices] * np.sign(S.data) < 0)
    if not broken.size:
        return BalanceResult(True, colors, None)
    u = int(S.indices[broken[0]])
    v = int(rows[broken[0]])
    return BalanceResult(False, colors, _cycle(parent, u, v))


def _spanning_forest(S: sp.csr_array) -> tuple[NDArray[np.intp], NDArray[np.int8]]:
    """Return the breadth-first parent of each node (a root's is itself) and the edge's sign."""
    from scipy.sparse.csgraph import breadth_first_order

    n = S.shape[0]
    _, component = component_labels(S)
    _, roots = np.unique(component, return_index=True)
    # An extra node, linked to a root of every component, so that one search visits them all.
    indptr = np.concatenate([S.indptr, [S.nnz + roots.size]])
    indices = np.concatenate([S.indices, roots]).astype(S.indices.dtype)
    linked = sp.csr_array((np.ones(indices.size), indices, indptr), shape=(n + 1, n + 1))
    _, predecessors = breadth_first_order(linked, n, directed=True, return_predecessors=True)
    parent = predecessors[:n].astype(np.intp)
    parent[roots] = roots
    sign = np.ones(n, dtype=np.int8)
    child = np.flatnonzero(parent != np.arange(n))
    if child.size:
        weights = np.asarray(S[child, parent[child]]).ravel()
        sign[child] = np.where(weights < 0, -1, 1)
    return parent, sign


def _along_paths(parent: NDArray[np.intp], sign: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the product of the signs from each node up to its root.

    Every round doubles the length of the paths, so a path of a million nodes needs 20 rounds.
    """
    product = sign.copy()
    above = parent.copy()
    while True:
        further = above[above]
        product = product * product[above]
        if np.array_equal(further, above):
            return product
        above = further


def _cycle(parent: NDArray[np.intp], u: int, v: int) -> NDArray[np.intp]:
    """Return the cycle that edge (u, v) closes in the forest."""
    up = _path(parent, u)
    down = _path(parent, v)
    while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
        up.pop()
        down.pop()
    return np.array([*up, *down[-2::-1], u], dtype=np.intp)


def _path(parent: NDArray[np.intp], node: int) -> list[int]:
    path = [node]
    while parent[node] != node:
        node = int(parent[node])
        path.append(node)
    return path
