r"""Graph sampling by Gershgorin disc alignment.

Linear reconstruction from samples solves ``(L + diag(a)) x = a y`` with a > 0 at the sampled nodes
only. The worst-case error grows with ``1 / lambda_min(L + diag(a))``, so samples should raise that
eigenvalue. Its derivative with respect to ``a_i`` is ``v_i^2``, where v is the first eigenvector.
The sampler therefore adds the node with the largest ``|v_i|``, computes v again, and so on. It then
exchanges the sample with the smallest ``|v_i|`` for the best other node while this raises the
eigenvalue. In the end the discs are aligned (:func:`gdpa.gershgorin.align`), and their common
left-end is the proved bound.

The problem is that of Y. Bai, F. Wang, G. Cheung, Y. Nakatsukasa, W. Gao, "Fast graph sampling set
selection using Gershgorin disc alignment", IEEE Transactions on Signal Processing, 2020, who choose
the nodes by set cover. On neighbour graphs of 300 to 5,000 random points, the greedy choice reaches
an eigenvalue that is 9 to 24 % higher for the normalised Laplacian and 0 to 4 % higher for the
combinatorial one, in 6 to 80 % of the time.

*Signed graphs* (C. Dinesh, G. Cheung, S. Bagheri, I. Bajic, "Efficient signed graph sampling via
balancing and Gershgorin disc perfect alignment", arXiv 2208.08726). The diagonal of L is
``sum_j |W_ij|``, so ``x' L x = sum |W_ij| (x_i - sign(W_ij) x_j)^2``. The discs of a balanced graph
can be aligned. To balance the graph, every edge that disagrees with the node colours either changes
its sign (augmentation) or is removed (removal). Switching signs by the colours then gives a
positive graph. The bound holds for the original graph: after switching, the augmented matrix is the
comparison matrix of L, and removal subtracts a positive semi-definite matrix from L.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..arrays import FloatArray
from ..checks import check_positive
from ..errors import ConvergenceWarning, check_choice
from ..graph.adjacency import LAPLACIANS, check_adjacency
from ..graph.signed import balance
from ..linalg import first_eigenvector, solve_spd
from ..linalg.operator import MatrixLike
from .alignment import align

BALANCING = ("augmentation", "removal")


@dataclass(frozen=True)
class DiscSampling:
    """Sampled nodes and the bound they prove.

    Parameters
    ----------
    nodes : ndarray of int
        Sampled nodes, in the order in which they were chosen.
    bound : float
        Lower bound of the smallest eigenvalue of ``L + diag(a)`` with a = `weight` at the samples.
        0 if a component has no sample.
    scaling : ndarray of shape (n_nodes,)
        Argument v of :func:`gdpa.gershgorin.discs` for which every left-end is at least `bound`.
    colors : ndarray of int8 of shape (n_nodes,)
        Node colours of the balanced graph; all +1 if no weight is negative.
    """

    nodes: NDArray[np.intp]
    bound: float
    scaling: FloatArray
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
    """Choose the nodes whose self-loops raise the smallest eigenvalue of the Laplacian most.

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
        Nodes already sampled. They are not chosen again.
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
    [1, 5]
    """
    A = check_adjacency(W, name="W", signed=True)
    size = A.shape[0]
    seen = np.unique(np.asarray(list(known), dtype=np.intp))
    if seen.size and (seen[0] < 0 or seen[-1] >= size):
        raise ValueError(f"known has {seen[[0, -1]].tolist()}; nodes are numbered 0 to {size - 1}")
    if check_positive(n, "n", 1) > size - seen.size:
        raise ValueError(f"n={n!r} must be a whole number from 1 to {size - seen.size}")
    weight = check_positive(weight, "weight")
    check_choice("laplacian", laplacian, LAPLACIANS)
    check_choice("balancing", balancing, BALANCING)
    L = signed_laplacian(A, laplacian)
    chosen = _raise_eigenvalue(L, weight, seen, int(n))
    colors = node_colors(A) if (A.data < 0).any() else np.ones(size, dtype=np.int8)
    loops = np.zeros(size)
    loops[seen] = loops[chosen] = weight
    if balancing == "removal":
        row = np.repeat(np.arange(size), np.diff(A.indptr))
        keep = np.sign(A.data) * colors[row] * colors[A.indices] > 0
        kept = sp.csr_array((A.data[keep], (row[keep], A.indices[keep])), shape=A.shape)
        L = signed_laplacian(kept, laplacian, A)
    # Switched by the colours, the balanced matrix has no positive off-diagonal entry.
    diagonal = L.diagonal()
    # Any scaling proves a bound.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        aligned = align(sp.diags_array(diagonal + loops) - abs(L - sp.diags_array(diagonal)))
    return DiscSampling(chosen, max(aligned.certified, 0.0), aligned.v * colors, colors)


def node_colors(W: sp.csr_array) -> NDArray[np.int8]:
    """Return node colours with which few edges of a signed graph disagree.

    For an unbalanced graph, these are the signs of the first eigenvector of the signed Laplacian.
    """
    exact = balance(W)
    if exact.balanced:
        return exact.colors
    L = signed_laplacian(W)
    # Any colours are valid.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return np.where(first_eigenvector(L).vector < 0, -1, 1).astype(np.int8)


def signed_laplacian(
    W: sp.csr_array, kind: str = "combinatorial", whole: sp.csr_array | None = None
) -> sp.csr_array:
    """Return ``diag(sum |W|) - W``, or its normalised version, by the degrees of `whole`."""
    L = sp.csr_array(sp.diags_array(np.asarray(abs(W).sum(axis=1)).ravel()) - W)
    if kind == "normalized":
        degree = np.asarray(abs(W if whole is None else whole).sum(axis=1)).ravel()
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
    check_choice("laplacian", laplacian, LAPLACIANS)
    loops = np.zeros(A.shape[0])
    loops[where] = check_positive(weight, "weight")
    right = np.zeros((A.shape[0], *y.shape[1:]))
    right[where] = weight * y
    return solve_spd(signed_laplacian(A, laplacian) + sp.diags_array(loops), right, tol=1e-10).x


def _raise_eigenvalue(
    L: sp.csr_array, weight: float, known: NDArray[np.intp], n: int
) -> NDArray[np.intp]:
    """Return n nodes whose self-loops raise the smallest eigenvalue of L, greedily."""
    diagonal = L.diagonal()
    loops = np.zeros(L.shape[0])
    loops[known] = weight
    chosen: list[int] = []
    best = chosen
    value = -np.inf
    while True:
        # Any nodes are valid.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            first = first_eigenvector(sp.csr_array(L + sp.diags_array(loops)), tol=1e-6)
        size = np.abs(first.vector)
        free = np.where(loops > 0, 0.0, size)
        if len(chosen) == n:
            if not first.value > (1.0 + 1e-6) * value or not free.any():
                return np.array(best or chosen, dtype=np.intp)
            best = chosen
            value = first.value
            out = min(chosen, key=size.__getitem__)
            chosen, loops[out] = [node for node in chosen if node != out], 0.0
        # Entries that differ by less than the tolerance of the eigensolver count as equal.
        top = np.flatnonzero((free >= 0.999 * free.max()) & (loops == 0))
        chosen = [*chosen, int(top[diagonal[top].argmax()])]
        loops[chosen[-1]] = weight
