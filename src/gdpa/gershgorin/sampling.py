r"""Graph sampling by Gershgorin disc alignment.

Linear reconstruction from samples solves ``(L + diag(a)) x = a y`` with a > 0 at the sampled nodes
only. The worst-case error grows with ``1 / lambda_min(L + diag(a))``, and discs bound that
eigenvalue from below. With scalars ``s_i >= 1``, row i of ``S (L + diag(a)) S^-1`` has the left-end

    l_i(s) = L_ii + a_i - s_i sum_j W_ij / s_j,

and if every left-end is at least T, no eigenvalue is below T. At a sampled node, s_i can be
increased until the left-end equals T. This reduces the radii of its neighbours, whose s_j can then
be increased in turn, and so on outwards, until s_j would drop below 1. The nodes reached are
*covered* by the sample. A set of samples that covers all nodes proves ``lambda_min >= T``: if
several samples cover a node, the largest of their scalars keeps its left-end above T. For a given
T, the fewest samples are a minimum set cover, which is approximated greedily. Bisection finds the
largest T for which the given number of samples suffices.

The method follows Y. Bai, F. Wang, G. Cheung, Y. Nakatsukasa, W. Gao, "Fast graph sampling set
selection using Gershgorin disc alignment", IEEE Transactions on Signal Processing, 2020.

*Signed graphs* (C. Dinesh, G. Cheung, S. Bagheri, I. Bajic, "Efficient signed graph sampling via
balancing and Gershgorin disc perfect alignment", arXiv 2208.08726). The diagonal of L is
``sum_j |W_ij|``, so ``x' L x = sum |W_ij| (x_i - sign(W_ij) x_j)^2``. To
balance the graph, every edge that disagrees with the node colours either changes its sign
(augmentation) or is removed (removal). Switching signs by the colours then gives a positive graph.
The bound holds for the original graph: after switching, the augmented matrix is the comparison
matrix of L, and removal subtracts a positive semi-definite matrix from L.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..errors import ConvergenceWarning, unknown_choice
from ..graph.adjacency import LAPLACIANS, check_adjacency
from ..graph.signed import balance
from ..linalg import first_eigenvector, solve_spd
from ..linalg.operator import MatrixLike, check_positive

FloatArray = NDArray[np.float64]

# Maximum distance in hops between a sample and the nodes it covers. On neighbour graphs of 1,500
# rows (seven data sets), more than 12 hops did not change the bound.
MOST_HOPS = 12
BLOCK = 512
BALANCING = ("augmentation", "removal")


@dataclass(frozen=True)
class DiscSampling:
    """Sampled nodes and the bound they prove.

    Parameters
    ----------
    nodes : ndarray of int
        Sampled nodes, in decreasing order of the number of newly covered nodes.
    bound : float
        Lower bound of the smallest eigenvalue of ``L + diag(a)`` with a = `weight` at the samples.
        0 if the samples do not cover the graph (a component without a sample has eigenvalue 0).
    scaling : ndarray of shape (n_nodes,)
        Argument v of :func:`gdpa.gershgorin.discs` for which every left-end is at least `bound`.
    covered : int
        Number of nodes covered at `bound`, or by the greedy choice if the bound is 0.
    colors : ndarray of int8 of shape (n_nodes,)
        Node colours of the balanced graph; all +1 if no weight is negative.
    """

    nodes: NDArray[np.intp]
    bound: float
    scaling: FloatArray
    covered: int
    colors: NDArray[np.int8]


def sample_nodes(
    W: MatrixLike,
    n: int,
    *,
    weight: float = 1.0,
    laplacian: str = "normalized",
    known: Iterable[int] = (),
    balancing: str = "augmentation",
) -> DiscSampling:
    """Choose the nodes whose self-loops raise the smallest disc left-end of the Laplacian most.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights. A negative weight means that the signal has opposite signs.
    n : int
        Number of nodes to choose.
    weight : float, default=1.0
        Weight a of the self-loop at a sampled node.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        Type of Laplacian.
    known : array-like of int, optional
        Nodes already sampled. They cover other nodes and are not chosen again.
    balancing : {"augmentation", "removal"}, default="augmentation"
        How to treat edges of a signed graph that disagree with the node colours. For the same
        nodes, augmentation never proves a smaller bound; removal gives a sparser graph.

    Returns
    -------
    DiscSampling
        The new nodes, and the bound they prove together with `known`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa.gershgorin import sample_nodes
    >>> path = np.diag(np.ones(6), 1) + np.diag(np.ones(6), -1)
    >>> sample_nodes(path, 2).nodes.tolist()
    [2, 4]
    """
    A = check_adjacency(W, name="W", signed=True)
    size = A.shape[0]
    seen = np.unique(np.asarray(list(known), dtype=np.intp))
    if seen.size and (seen[0] < 0 or seen[-1] >= size):
        raise ValueError(f"known has {seen[[0, -1]].tolist()}; nodes are numbered 0 to {size - 1}")
    if check_positive(n, "n", 1) > size - seen.size:
        raise ValueError(f"n={n!r} must be a whole number from 1 to {size - seen.size}")
    weight = check_positive(weight, "weight")
    if laplacian not in LAPLACIANS:
        raise unknown_choice("laplacian", laplacian, LAPLACIANS)
    if balancing not in BALANCING:
        raise unknown_choice("balancing", balancing, BALANCING)
    degree = np.asarray(abs(A).sum(axis=1)).ravel()
    colors = node_colors(A) if (A.data < 0).any() else np.ones(size, dtype=np.int8)
    if balancing == "removal":
        row = np.repeat(np.arange(size), np.diff(A.indptr))
        keep = np.sign(A.data) * colors[row] * colors[A.indices] > 0
        A = sp.csr_array((A.data[keep], (row[keep], A.indices[keep])), shape=A.shape)
    A = abs(A)
    base: FloatArray = np.ones(size)
    if laplacian == "normalized":
        # Scaled by v = sqrt(degree), its rows sum to 0 like those of the combinatorial Laplacian.
        degree = np.where(degree > 0, degree, 1.0)
        base = np.sqrt(degree)
        A = sp.csr_array(sp.diags_array(1.0 / degree) @ A)
    base = base * colors.astype(np.float64)
    degree = np.asarray(A.sum(axis=1)).ravel()
    low, high = 0.0, weight
    best: tuple[NDArray[np.intp], float, sp.csc_array] | None = None
    for _ in range(14):
        # Geometric steps at first, because the bound is often much smaller than the weight.
        T = 0.5 * (low + high) if low > 0 else high / 4.0
        R = _growth(A, degree, weight, T)
        chosen, covered = _cover(R, seen, int(n))
        if covered == size:
            low, best = T, (chosen, T, R)
        else:
            high = T
    if best is None:
        R = _growth(A, degree, weight, high)
        chosen, covered = _cover(R, seen, int(n))
        return DiscSampling(chosen, 0.0, base, covered, colors)
    chosen, T, R = best
    members = np.concatenate([seen, chosen])
    shrink = np.asarray(R[:, members].max(axis=1).toarray()).ravel()
    return DiscSampling(chosen, T, base * (1.0 - shrink), size, colors)


def node_colors(W: sp.csr_array) -> NDArray[np.int8]:
    """Return node colours with which few edges of a signed graph disagree.

    For an unbalanced graph, these are the signs of the first eigenvector of the signed Laplacian.
    """
    exact = balance(W)
    if exact.balanced:
        return exact.colors
    L = signed_laplacian(W)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any colours are valid
        return np.where(first_eigenvector(L).vector < 0, -1, 1).astype(np.int8)


def signed_laplacian(W: sp.csr_array, kind: str = "combinatorial") -> sp.csr_array:
    """Return the signed Laplacian ``diag(sum |W|) - W``, or its normalised version."""
    degree = np.asarray(abs(W).sum(axis=1)).ravel()
    L = sp.csr_array(sp.diags_array(degree) - W)
    if kind == "normalized":
        scale = sp.diags_array(1.0 / np.sqrt(np.where(degree > 0, degree, 1.0)))
        L = sp.csr_array(scale @ L @ scale)
    return L


def reconstruct(
    W: MatrixLike,
    nodes: ArrayLike,
    values: ArrayLike,
    *,
    weight: float = 1.0,
    laplacian: str = "normalized",
) -> FloatArray:
    """Reconstruct a smooth signal from samples by solving ``(L + diag(a)) x = a y``.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights of either sign.
    nodes : array-like of int
        Sampled nodes, such as those of :func:`sample_nodes`.
    values : array-like of shape (n_samples,) or (n_samples, n_signals)
        Values of the signal at the sampled nodes.
    weight : float, default=1.0
        Weight a of the self-loop at a sampled node. Larger weights fit the samples more closely.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        Type of Laplacian.

    Returns
    -------
    ndarray of shape (n_nodes,) or (n_nodes, n_signals)
        The signal at all nodes; 0 on components without a sample.
    """
    A = check_adjacency(W, name="W", signed=True)
    where = np.asarray(nodes, dtype=np.intp)
    y = np.asarray(values, dtype=np.float64)
    if y.shape[:1] != where.shape or not np.isfinite(y).all():
        raise ValueError(f"values must be finite, one row per node ({where.size}), got {y.shape}")
    if where.size and not 0 <= where.min() <= where.max() < A.shape[0]:
        raise ValueError(
            f"nodes are numbered 0 to {A.shape[0] - 1}, got {where.min()} to {where.max()}"
        )
    if laplacian not in LAPLACIANS:
        raise unknown_choice("laplacian", laplacian, LAPLACIANS)
    loops = np.zeros(A.shape[0])
    loops[where] = check_positive(weight, "weight")
    right = np.zeros((A.shape[0], *y.shape[1:]))
    right[where] = weight * y
    return solve_spd(signed_laplacian(A, laplacian) + sp.diags_array(loops), right, tol=1e-10).x


def _growth(A: sp.csr_array, degree: FloatArray, a: float, T: float) -> sp.csc_array:
    """Return, in column i, ``1 - 1 / s`` for the nodes that a sample at node i covers for T.

    Scalars only increase from one hop to the next, and larger scalars of other rows only reduce the
    radius of a row. Thus a left-end that equals T when its scalar is set stays at or above T.
    """
    size = degree.size
    columns = []
    for start in range(0, size, BLOCK):
        here = np.arange(start, min(start + BLOCK, size))
        room = np.maximum(degree[here] + a - T, 1e-300)
        # An isolated node needs no scalar. The entry records that it covers itself.
        on_itself = np.where(degree[here] > 0, 1.0 - degree[here] / room, 0.0)
        R = sp.csc_array(
            (np.maximum(on_itself, 1e-300), (here, here - start)), shape=(size, here.size)
        )
        for _ in range(MOST_HOPS):
            previous, R = R, _hop(A, R, degree, here, a, T)
            if R.nnz == previous.nnz:
                break
        columns.append(R)
    return sp.csc_array(sp.hstack(columns, format="csc"))


def _hop(
    A: sp.csr_array, R: sp.csc_array, degree: FloatArray, here: NDArray[np.intp], a: float, T: float
) -> sp.csc_array:
    """Return the scalars of `_growth` after one more hop."""
    relief = (A @ R).tocoo()
    row, column = relief.coords
    loop = np.where(row == here[column], a, 0.0)
    # s = (L_ii + a_i - T) / sum_j W_ij / s_j, where the sum is the degree minus `relief`.
    room = degree[row] + loop - T
    left = np.maximum(degree[row] - relief.data, 1e-12 * np.maximum(degree[row], 1e-300))
    keep = room >= left
    shrink = 1.0 - left[keep] / room[keep]
    new = sp.csc_array((np.maximum(shrink, 1e-300), (row[keep], column[keep])), shape=R.shape)
    return sp.csc_array(new.maximum(R))


def _cover(R: sp.csc_array, known: NDArray[np.intp], n: int) -> tuple[NDArray[np.intp], int]:
    """Return n columns chosen by greedy set cover, and the number of covered nodes."""
    size = R.shape[0]
    done = np.zeros(size, dtype=bool)
    members = [R.indices[R.indptr[i] : R.indptr[i + 1]] for i in range(size)]
    taken = np.zeros(size, dtype=bool)
    for i in known:
        done[members[i]] = True
        done[i] = taken[i] = True
    # Gains only decrease, so a stale gain at the top of the heap is recomputed.
    heap = [(-max(len(m), 1), i) for i, m in enumerate(members) if not taken[i]]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < n and heap:
        _, i = heapq.heappop(heap)
        gain = int((~done[members[i]]).sum())
        if heap and -gain > heap[0][0]:
            heapq.heappush(heap, (-gain, i))
            continue
        chosen.append(i)
        done[members[i]] = True
        done[i] = True
    return np.array(chosen, dtype=np.intp), int(done.sum())
