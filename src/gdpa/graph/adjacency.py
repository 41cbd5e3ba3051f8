"""Validation of adjacency matrices, and their Laplacians.

Every function that takes a graph passes it through :func:`check_adjacency`, which returns a CSR
array of float64: symmetric, finite, without explicit zeros, with sorted indices. The problem and
the solvers use Laplacians in the form ``diag(diagonal) - adjacency``, with an adjacency that has a
zero diagonal; :func:`laplacian_parts` returns the two parts without building the matrix.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..arrays import unmasked
from ..errors import unknown_choice

LAPLACIANS = ("combinatorial", "normalized")
MatrixLike: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix

# Largest difference of w_ij and w_ji that counts as rounding: relative to the larger of the two,
# and relative to the largest weight of either node.
ENTRY_ROUNDING = 1e-10
NODE_ROUNDING = 1e-14


def check_adjacency(
    W: MatrixLike, *, name: str = "W", signed: bool = False, keep_diagonal: bool = False
) -> sp.csr_array:
    """Validate an adjacency matrix and bring it to canonical form.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights.
    name : str, default="W"
        Name of the argument in error messages.
    signed : bool, default=False
        Whether negative weights are accepted.
    keep_diagonal : bool, default=False
        Whether to keep self-loops; by default the diagonal is dropped.

    Returns
    -------
    csr_array of float64
        Canonical copy: exactly symmetric, no explicit zeros, sorted indices. The input is never
        changed.

    Raises
    ------
    ValueError
        If the matrix is not square, not finite, not symmetric or empty, or has a negative weight
        and `signed` is False.
    """
    A = _to_csr(W, name)
    if A.shape[0] == 0:
        raise ValueError(f"{name} has no nodes (shape {A.shape}); at least one is needed")
    bad = np.flatnonzero(~np.isfinite(A.data))
    if bad.size:
        i, j = _position(A, int(bad[0]))
        value = "masked" if np.ma.isMaskedArray(W) else A.data[bad[0]]
        raise ValueError(f"{name}[{i}, {j}] is {value}; all weights must be finite numbers")
    if not signed and A.nnz and A.data.min() < 0:
        k = int(np.argmin(A.data))
        i, j = _position(A, k)
        raise ValueError(
            f"{name}[{i}, {j}] is {A.data[k]:g}; negative weights are not accepted here "
            "(state a signed problem as gdpa.BinaryQuadratic)"
        )
    if not keep_diagonal and A.diagonal().any():
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        A.data[rows == A.indices] = 0.0
    A.eliminate_zeros()
    return _symmetrised(A, name)


def _to_csr(W: MatrixLike, name: str) -> sp.csr_array:
    if isinstance(W, sp.sparray | sp.spmatrix):
        if np.issubdtype(W.dtype, np.complexfloating):
            raise ValueError(f"{name} is complex; real weights are needed")
        # Converted to float64 first: sums of duplicates could overflow small integers.
        A = sp.csr_array(W.astype(np.float64))
        A.sum_duplicates()
    else:
        _check_names(W, name)
        try:
            dense = unmasked(W)
            if np.iscomplexobj(dense):
                raise ValueError("complex")
            dense = dense.astype(np.float64, copy=False)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"{name} must be a real matrix (NumPy array or SciPy sparse), "
                f"got {type(W).__name__}"
            ) from error
        if dense.ndim != 2:
            raise ValueError(f"{name} must be a square matrix, got an array of shape {dense.shape}")
        A = sp.csr_array(dense)
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"{name} must be square, got shape {A.shape}")
    return A


def _check_names(W: Any, name: str) -> None:
    """Raise an error if the rows and columns of a data frame have the same names in two orders."""
    if not (hasattr(W, "iloc") and hasattr(W, "columns")):
        return
    rows = list(W.index)
    columns = list(W.columns)
    if rows != columns and set(rows) == set(columns):
        raise ValueError(
            f"the rows and columns of {name} have the same names in different orders; use "
            f"{name}[{name}.index]"
        )


def _position(A: sp.csr_array, k: int) -> tuple[int, int]:
    """Return the row and column of the k-th stored entry."""
    return int(np.searchsorted(A.indptr, k, side="right") - 1), int(A.indices[k])


def _symmetrised(A: sp.csr_array, name: str) -> sp.csr_array:
    """Return `A` exactly symmetric; raise an error that names an asymmetric entry."""
    T = A.T.tocsr()
    same_pattern = np.array_equal(A.indptr, T.indptr) and np.array_equal(A.indices, T.indices)
    if same_pattern and np.array_equal(A.data, T.data):
        return A
    with np.errstate(over="ignore"):
        difference = abs(A - T).tocoo()
    # The two entries of a pair may differ by their own rounding. Entries that are sums of larger
    # terms may also differ by the rounding of these, as far as it is small at both nodes.
    larger = abs(A).maximum(abs(T)).tocsr()
    largest = np.asarray(larger.max(axis=1).toarray()).ravel()
    rows, columns = difference.coords
    pair = np.asarray(larger[rows, columns]).ravel()
    rounding = ENTRY_ROUNDING * pair + NODE_ROUNDING * np.minimum(largest[rows], largest[columns])
    excess = difference.data - rounding
    if difference.nnz and excess.max() > 0:
        k = int(np.argmax(excess))
        i = int(rows[k])
        j = int(columns[k])
        raise ValueError(
            f"{name} must be symmetric, but {name}[{i}, {j}] = {A[i, j]:g} and "
            f"{name}[{j}, {i}] = {A[j, i]:g}; use ({name} + {name}.T) / 2"
        )
    mean = (A * 0.5 + T * 0.5).tocsr()
    mean.sort_indices()
    return mean


def csr_from_parts(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> sp.csr_array:
    """Return a CSR array of three parts without copying them.

    SciPy's constructor may copy the parts and convert 64-bit indices.

    Parameters
    ----------
    data, indices, indptr : ndarray
        The parts, with sorted indices and without duplicates.
    shape : tuple of int
        Shape of the matrix.

    Returns
    -------
    csr_array
        The matrix.
    """
    A = sp.csr_array(shape, dtype=data.dtype)
    A.data = data
    A.indices = indices
    A.indptr = indptr
    A.has_sorted_indices = True
    A.has_canonical_format = True
    return A


def degrees(W: sp.csr_array) -> NDArray[np.float64]:
    """Return the row sums of an adjacency matrix.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        Adjacency.

    Returns
    -------
    ndarray of shape (n_nodes,)
        The degrees.
    """
    return np.asarray(W.sum(axis=1), dtype=np.float64).ravel()


def component_labels(W: sp.csr_array) -> tuple[int, NDArray[np.int32]]:
    """Return the connected components of a graph.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        Symmetric adjacency.

    Returns
    -------
    n_components : int
        Number of components.
    component : ndarray of shape (n_nodes,)
        The component of each node.
    """
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    n = W.shape[0]
    if n:
        # Most graphs are connected, which one breadth-first search finds faster.
        start = int(np.argmax(np.diff(W.indptr)))
        if breadth_first_order(W, start, return_predecessors=False).size == n:
            return 1, np.zeros(n, dtype=np.int32)
    count, component = connected_components(W, directed=False)
    return int(count), component


def check_total(*parts: NDArray[np.float64]) -> None:
    """Raise an error if the numbers of a problem are so large that its objective could overflow."""
    with np.errstate(over="ignore"):
        total = sum(float(np.abs(part).sum()) for part in parts)
    if total > 1e304:
        raise ValueError(
            f"the numbers of the problem add up to {total:.3g}; divide all of them by a constant "
            "so that the sum is below 1e304"
        )


def laplacian_parts(
    W: sp.csr_array, kind: str = "combinatorial", *, signed: bool = False
) -> tuple[sp.csr_array, NDArray[np.float64]]:
    """Return the off-diagonal part and the diagonal of a Laplacian.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        Canonical adjacency with a zero diagonal.
    kind : {"combinatorial", "normalized"}, default="combinatorial"
        ``D - W`` or ``I - D^-1/2 W D^-1/2``. An isolated node has a zero row in both.
    signed : bool, default=False
        Whether degrees are sums of absolute weights. This is the signed Laplacian, which is
        positive semi-definite.

    Returns
    -------
    adjacency : csr_array
        ``A`` in ``L = diag(diagonal) - A``.
    diagonal : ndarray of shape (n_nodes,)
        The diagonal of L.
    """
    if kind not in LAPLACIANS:
        raise unknown_choice("laplacian", kind, LAPLACIANS)
    with np.errstate(over="ignore"):
        d = np.asarray((abs(W) if signed else W).sum(axis=1), dtype=np.float64).ravel()
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
    step = max(1, 100_000 * W.shape[0] // max(W.nnz, 1))  # blocks that fit in the cache
    for first in range(0, W.shape[0], step):
        ends = W.indptr[first : first + step + 1]
        part = slice(ends[0], ends[-1])
        rows = np.repeat(scale[first : first + step], np.diff(ends))
        columns = scale[W.indices[part]]
        # Multiply by the smaller factor first, to avoid overflow of large weights.
        np.multiply(W.data[part], np.minimum(rows, columns), out=data[part])
        data[part] *= np.maximum(rows, columns)
    A = sp.csr_array((data, W.indices, W.indptr), shape=W.shape)
    return A, connected.astype(np.float64)


def connected_to(W: sp.csr_array, nodes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which nodes are in a component with one of `nodes`.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        Adjacency.
    nodes : ndarray of bool of shape (n_nodes,)
        Nodes to start from.

    Returns
    -------
    ndarray of bool of shape (n_nodes,)
        True for nodes that can be reached.
    """
    count, component = component_labels(W)
    anchored = np.zeros(count, dtype=bool)
    anchored[component[nodes]] = True
    return np.asarray(anchored[component])


def laplacian(W: MatrixLike, kind: str = "combinatorial", *, signed: bool = False) -> sp.csr_array:
    """Build the Laplacian of a graph.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric weights; the diagonal is ignored.
    kind : {"combinatorial", "normalized"}, default="combinatorial"
        ``D - W`` or ``I - D^-1/2 W D^-1/2``.
    signed : bool, default=False
        Whether to accept negative weights (combinatorial only). The degree is the plain row sum, as
        in the generalised Laplacian of the paper.

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
    return (sp.diags_array(diagonal) - A).tocsr()
