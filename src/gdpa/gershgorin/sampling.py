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
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import unknown_choice
from ..graph.adjacency import LAPLACIANS, check_adjacency
from ..linalg.operator import MatrixLike, check_positive

FloatArray = NDArray[np.float64]

# Hops that the growth is followed outwards. On neighbour graphs of 1,500 rows (seven tables) the
# bound did not change any more beyond twelve.
MOST_HOPS = 12
BLOCK = 512


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
    """

    nodes: NDArray[np.intp]
    bound: float
    scaling: FloatArray
    covered: int


def sample_nodes(
    W: MatrixLike,
    n: int,
    *,
    weight: float = 1.0,
    laplacian: str = "normalized",
    known: Iterable[int] = (),
) -> DiscSampling:
    """Choose nodes whose self-loops lift the smallest disc left-end of the Laplacian the most.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric, non-negative weights.
    n : int
        How many nodes.
    weight : float, default=1.0
        Self-loop a of a sampled node.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        Which Laplacian.
    known : array-like of int, optional
        Nodes that are sampled already; they cover, and are not chosen again.

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
    A = check_adjacency(W, name="W")
    size = A.shape[0]
    seen = np.unique(np.asarray(list(known), dtype=np.intp))
    if seen.size and (seen[0] < 0 or seen[-1] >= size):
        raise ValueError(f"known has {seen[[0, -1]].tolist()}; nodes are numbered 0 to {size - 1}")
    if check_positive(n, "n", 1) > size - seen.size:
        raise ValueError(f"n={n!r} must be a whole number from 1 to {size - seen.size}")
    weight = check_positive(weight, "weight")
    if laplacian not in LAPLACIANS:
        raise unknown_choice("laplacian", laplacian, LAPLACIANS)
    degree = np.asarray(A.sum(axis=1)).ravel()
    lonely = degree <= 0
    base = np.ones(size)
    if laplacian == "normalized":
        # diag(1/v) L diag(v) with v = sqrt(degree) has rows that add up to 0, like the other one.
        base = np.sqrt(np.where(lonely, 1.0, degree))
        A = sp.csr_array(sp.diags_array(1.0 / np.where(lonely, 1.0, degree)) @ A)
        degree = np.where(lonely, 0.0, 1.0)
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
        return DiscSampling(chosen, 0.0, base, covered)
    chosen, T, R = best
    members = np.concatenate([seen, chosen])
    shrink = np.asarray(R[:, members].max(axis=1).toarray()).ravel()
    return DiscSampling(chosen, T, base * (1.0 - shrink), size)


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
