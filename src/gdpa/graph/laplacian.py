"""Graph Laplacians: combinatorial, normalised, generalised with self-loops.

Each is ``diag(diagonal) - adjacency`` with an adjacency that has a zero diagonal, which is the form
that the problem and the solvers use: :func:`laplacian_parts` gives the two parts without building
the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import nearest_name
from .adjacency import check_adjacency, degrees

__all__ = ["LAPLACIANS", "laplacian", "laplacian_parts"]

LAPLACIANS = ("combinatorial", "normalized")
# Entries that are worked on at a time.
BLOCK = 100_000


def laplacian_parts(
    W: sp.csr_array, kind: str = "combinatorial"
) -> tuple[sp.csr_array, NDArray[np.float64]]:
    """Off-diagonal part and diagonal of a Laplacian.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        Canonical adjacency with a zero diagonal.
    kind : {"combinatorial", "normalized"}, default="combinatorial"
        ``D - W`` or ``I - D^-1/2 W D^-1/2``. An isolated node has a zero row in both.

    Returns
    -------
    adjacency : csr_array
        ``A`` in ``L = diag(diagonal) - A``.
    diagonal : ndarray of shape (n_nodes,)
        The diagonal of L.
    """
    if kind not in LAPLACIANS:
        raise ValueError(f"laplacian={kind!r} is not known; {nearest_name(kind, list(LAPLACIANS))}")
    with np.errstate(over="ignore"):
        d = degrees(W)
    if not np.isfinite(d).all():
        node = int(np.flatnonzero(~np.isfinite(d))[0])
        raise ValueError(
            f"the weights of node {node} add up to {d[node]}; divide W by a constant so that "
            "degrees stay below 1e308"
        )
    if kind == "combinatorial":
        return W, d
    connected = d > 0
    scale = np.zeros_like(d)
    scale[connected] = 1.0 / np.sqrt(d[connected])
    data = np.empty_like(W.data)
    step = max(1, BLOCK * W.shape[0] // max(W.nnz, 1))
    for first in range(0, W.shape[0], step):  # in parts that stay in the cache
        ends = W.indptr[first : first + step + 1]
        part = slice(ends[0], ends[-1])
        rows = np.repeat(scale[first : first + step], np.diff(ends))
        columns = scale[W.indices[part]]
        # The smaller factor first: a weight of 1e300 between nodes of degree 1e300 must not
        # overflow.
        np.multiply(W.data[part], np.minimum(rows, columns), out=data[part])
        data[part] *= np.maximum(rows, columns)
    A = sp.csr_array((data, W.indices, W.indptr), shape=W.shape)
    return A, connected.astype(np.float64)


def laplacian(
    W: Any, kind: str = "combinatorial", *, self_loops: Any = None, signed: bool = False
) -> sp.csr_array:
    """Build the Laplacian of a graph.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights; a diagonal is ignored (give it as `self_loops`).
    kind : {"combinatorial", "normalized"}, default="combinatorial"
        ``D - W`` or ``I - D^-1/2 W D^-1/2``.
    self_loops : float or array-like of shape (n_nodes,), optional
        Weights u added to the diagonal: the generalised Laplacian ``L + diag(u)``.
    signed : bool, default=False
        Accept negative weights (combinatorial only). The degree is then the plain row sum, as the
        generalised Laplacian of the paper has it.

    Returns
    -------
    csr_array
        The Laplacian.

    Examples
    --------
    >>> from gdpa.graph import laplacian
    >>> laplacian([[0, 2], [2, 0]]).toarray()
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    if signed and kind != "combinatorial":
        raise ValueError("signed=True takes kind='combinatorial' only")
    A, diagonal = laplacian_parts(check_adjacency(W, signed=signed), kind)
    if self_loops is not None:
        u = np.asarray(self_loops, dtype=np.float64)
        if u.ndim not in (0, 1) or (u.ndim == 1 and u.shape[0] != A.shape[0]):
            raise ValueError(
                f"self_loops must be a number or have one entry per node ({A.shape[0]}), "
                f"got shape {u.shape}"
            )
        if not np.isfinite(u).all():
            raise ValueError("self_loops must be finite")
        diagonal = diagonal + u
    return (sp.diags_array(diagonal) - A).tocsr()
