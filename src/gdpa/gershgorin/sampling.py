r"""Which nodes to sample: Gershgorin disc alignment as a sampler.

Linear recovery from samples solves ``(L + diag(a)) x = a y`` with a > 0 at the sampled nodes only;
the worst error grows with ``1 / lambda_min(L + diag(a))``. Discs bound that eigenvalue from below:
with scalars ``s_i >= 1`` row i of ``S (L + diag(a)) S^-1`` has the left-end

    l_i(s) = L_ii + a_i - s_i sum_j W_ij / s_j,

and if every left-end is at least T, no eigenvalue is below T. A sampled node has room to spare: its
s_i may grow until its left-end is down at T. That shortens the radii of its neighbours, whose s_j
may grow in turn, and so on outwards, until the growth ends at s_j = 1: the nodes reached are
*covered* by the sample. A set of samples that covers all nodes proves ``lambda_min >= T``, because
the largest of the scalars that several samples give a node keeps its left-end above T. So for a
given T the fewest samples are a set cover, solved greedily, and bisection finds the largest T for
which a given number of samples is enough.

The idea is that of Y. Bai, F. Wang, G. Cheung, Y. Nakatsukasa, W. Gao, "Fast graph sampling set
selection using Gershgorin disc alignment", IEEE Transactions on Signal Processing, 2020.

*Signed graphs* (C. Dinesh, G. Cheung, S. Bagheri, I. Bajic, "Efficient signed graph sampling via
balancing and Gershgorin disc perfect alignment", arXiv 2208.08726). The diagonal of L is
``sum_j |W_ij|``, so ``x' L x = sum |W_ij| (x_i - sign(W_ij) x_j)^2``. An edge disagrees with the
node colours, or not. The graph becomes balanced by changing the sign of every edge that disagrees
(augmentation) or by leaving it out (removal); switching signs by the colours makes it a positive
graph. The bound holds in the graph as given: the augmented matrix is, switched, the comparison
matrix of L, and removal takes a positive semi-definite part from L.
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

# Hops that the growth is followed outwards. On neighbour graphs of 1,500 rows (seven tables) the
# bound did not change any more beyond twelve.
MOST_HOPS = 12
BLOCK = 512
BALANCING = ("augmentation", "removal")


@dataclass(frozen=True)
class DiscSampling:
    """Sampled nodes and the bound that they prove.

    Parameters
    ----------
    nodes : ndarray of int
        The samples, the one that covers most nodes first.
    bound : float
        Lower bound of the smallest eigenvalue of ``L + diag(a)`` with a = `weight` at the samples.
        0 where the samples do not cover the graph (a component without a sample has eigenvalue 0).
    scaling : ndarray of shape (n_nodes,)
        v for :func:`gdpa.gershgorin.discs`: with it every left-end is at least `bound`.
    covered : int
        Nodes covered at `bound`, or by the greedy choice where the bound is 0.
    colors : ndarray of int8 of shape (n_nodes,)
        Node colours of the balanced graph; all +1 where no weight is negative.
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
    """Choose nodes whose self-loops lift the smallest disc left-end of the Laplacian the most.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights; negative ones say that the signal differs in sign.
    n : int
        How many nodes.
    weight : float, default=1.0
        Self-loop a of a sampled node.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        Which Laplacian.
    known : array-like of int, optional
        Nodes that are sampled already; they cover, and are not chosen again.
    balancing : {"augmentation", "removal"}, default="augmentation"
        What happens to edges of a signed graph that disagree with its colours. Augmentation never
        proves a smaller bound for the same nodes; removal leaves a sparser graph.

    Returns
    -------
    DiscSampling
        The new nodes, and the bound that they prove together with `known`.

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
        # diag(1/v) L diag(v) with v = sqrt(degree) has rows that add up to 0, like the other one.
        degree = np.where(degree > 0, degree, 1.0)
        base = np.sqrt(degree)
        A = sp.csr_array(sp.diags_array(1.0 / degree) @ A)
    base = base * colors.astype(np.float64)
    degree = np.asarray(A.sum(axis=1)).ravel()
    low, high = 0.0, weight
    best: tuple[NDArray[np.intp], float, sp.csc_array] | None = None
    for _ in range(14):
        # Geometric at first: the answer is often small against the weight.
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
    """Node colours that few edges of a signed graph disagree with.

    Exact where the graph is balanced; otherwise the signs of the first eigenvector of the signed
    Laplacian.
    """
    exact = balance(W)
    if exact.balanced:
        return exact.colors
    L = signed_laplacian(W)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any colours will do
        return np.where(first_eigenvector(L).vector < 0, -1, 1).astype(np.int8)


def signed_laplacian(W: sp.csr_array, kind: str = "combinatorial") -> sp.csr_array:
    """Laplacian of a graph with weights of either sign, ``diag(sum |W|) - W`` or normalised."""
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
    """Recover a smooth signal from samples: solve ``(L + diag(a)) x = a y``.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights of either sign.
    nodes : array-like of int
        Sampled nodes, such as those of :func:`sample_nodes`.
    values : array-like of shape (n_samples,) or (n_samples, n_signals)
        Signal at the samples.
    weight : float, default=1.0
        Self-loop a of a sampled node: larger trusts the samples more.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        Which Laplacian.

    Returns
    -------
    ndarray of shape (n_nodes,) or (n_nodes, n_signals)
        The signal everywhere; 0 on components without a sample.
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
    """Column i: 1 - 1 / s of the nodes that node i, if sampled, covers at the threshold T.

    Scalars only grow from one hop to the next, and those of the other rows only shorten a row's
    radius, so a left-end that was at T when its scalar was set stays at or above T.
    """
    size = degree.size
    columns = []
    for start in range(0, size, BLOCK):
        here = np.arange(start, min(start + BLOCK, size))
        room = np.maximum(degree[here] + a - T, 1e-300)
        # A node without neighbours needs no scalar; the entry says that it covers itself.
        on_itself = np.where(degree[here] > 0, 1.0 - degree[here] / room, 0.0)
        unit = sp.csc_array(
            (np.maximum(on_itself, 1e-300), (here, here - start)), shape=(size, here.size)
        )
        R = unit
        for _ in range(MOST_HOPS):
            grown = _hop(A, R, degree, here, a, T)
            settled = grown.nnz == R.nnz
            R = grown
            if settled:
                break
        columns.append(R)
    return sp.csc_array(sp.hstack(columns, format="csc"))


def _hop(
    A: sp.csr_array, R: sp.csc_array, degree: FloatArray, here: NDArray[np.intp], a: float, T: float
) -> sp.csc_array:
    relief = (A @ R).tocoo()
    row, column = relief.coords
    loop = np.where(row == here[column], a, 0.0)
    # s = (L_ii + a_i - T) / sum_j W_ij / s_j, the sum being the degree less what the scalars saved.
    room = degree[row] + loop - T
    left = np.maximum(degree[row] - relief.data, 1e-12 * np.maximum(degree[row], 1e-300))
    keep = room >= left
    shrink = 1.0 - left[keep] / room[keep]
    shape = R.shape
    new = sp.csc_array((np.maximum(shrink, 1e-300), (row[keep], column[keep])), shape=shape)
    return sp.csc_array(new.maximum(R))


def _cover(R: sp.csc_array, known: NDArray[np.intp], n: int) -> tuple[NDArray[np.intp], int]:
    """Greedy set cover by at most n columns, the rest filled up; and how many nodes are covered."""
    size = R.shape[0]
    done = np.zeros(size, dtype=bool)
    members = [R.indices[R.indptr[i] : R.indptr[i + 1]] for i in range(size)]
    taken = np.zeros(size, dtype=bool)
    for i in known:
        done[members[i]] = True
        done[i] = taken[i] = True
    # Gains only fall while nodes get covered: a stale one at the top is looked at again.
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
