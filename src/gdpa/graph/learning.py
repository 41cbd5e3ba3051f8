"""Learn a balanced signed graph from data by CLIME with signs prescribed by node colours.

Column i of a sparse inverse covariance is the solution l of a linear program (CLIME: Cai, Liu, Luo
2011), ``min |l|_1`` subject to ``|C l - e_i|_inf <= penalty``. Node colours ``beta`` prescribe the
signs of the entries: ``l_j`` has the opposite sign of ``beta_i beta_j``. Every program therefore
has non-negative variables, and the graph is balanced by construction. As in the adaptive lasso, the
final programs weight entry j by ``1 / (0.1 + partial correlation)``. The partial correlation is
computed from a shrunk covariance and set to 0 if its sign disagrees with the colours. The weights
preserve edges that unweighted CLIME drops.

Reference: H. Yokota, H. Higashi, Y. Tanaka, G. Cheung, "Efficient learning of balanced signed
graphs via iterative linear programming", arXiv 2409.07794.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..arrays import FloatArray
from ..checks import check_positive


@dataclass(frozen=True)
class BalancedGraph:
    """A balanced signed graph learned from data.

    Parameters
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        Signed weights: positive between equal colours, negative between different ones.
    precision : csr_array of shape (n_nodes, n_nodes)
        The generalised Laplacian, ``diagonal - adjacency``, which is positive definite and
        estimates the inverse covariance.
    colors : ndarray of int8 of shape (n_nodes,)
        Node colours, +1 or -1.
    """

    adjacency: sp.csr_array
    precision: sp.csr_array
    colors: NDArray[np.int8]


def learn_balanced_graph(
    X: ArrayLike | None = None,
    *,
    covariance: ArrayLike | None = None,
    penalty: float | None = None,
    colors: ArrayLike | None = None,
    max_sweeps: int = 5,
) -> BalancedGraph:
    """Learn a balanced signed graph from observations or from a covariance matrix.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_nodes), optional
        Observations, one node per column.
    covariance : array-like of shape (n_nodes, n_nodes), optional
        Covariance matrix, as an alternative to X.
    penalty : float, optional
        Largest allowed difference between ``C l`` and a unit vector, where C is the correlation
        matrix. Larger values give sparser graphs. The default is
        ``sqrt(log(n_nodes) / n_samples)``, or 0.1 if `covariance` is given. If a column has no
        solution with the prescribed signs, its penalty is increased as far as necessary.
    colors : array-like of shape (n_nodes,), optional
        Prescribed colours, +1 or -1. By default, a local search starts from the signs of the
        leading eigenvector of the correlation matrix and gives each node the colour whose linear
        program has the lower optimum.
    max_sweeps : int, default=5
        Maximum number of sweeps of the search.

    Returns
    -------
    BalancedGraph
        The learned graph.

    Raises
    ------
    ValueError
        If neither or both of X and covariance are given, or an argument is invalid.

    Examples
    --------
    >>> from gdpa.graph import learn_balanced_graph
    >>> graph = learn_balanced_graph(covariance=[[1, 0.8, -0.5], [0.8, 1, -0.6], [-0.5, -0.6, 1]])
    >>> graph.colors
    array([ 1,  1, -1], dtype=int8)
    """
    C, deviation, n_samples = _correlations(X, covariance)
    d = C.shape[0]
    if penalty is None:
        penalty = 0.1 if n_samples is None else float(np.sqrt(np.log(max(d, 2)) / n_samples))
    penalty = check_positive(penalty, "penalty")
    max_sweeps = check_positive(max_sweeps, "max_sweeps", 1)
    columns = np.zeros((d, d))
    if colors is not None:
        beta = np.asarray(colors, dtype=np.float64)
        if beta.shape != (d,) or not np.isin(beta, (-1.0, 1.0)).all():
            raise ValueError(f"colors must be {d} numbers, each +1 or -1; got {colors!r}")
    else:
        beta = np.where(np.linalg.eigh(C)[1][:, -1] < 0, -1.0, 1.0)
        beta *= beta[0]
        for _ in range(max_sweeps):
            before = beta.copy()
            for i in range(d):
                costs = [_column(C, i, sign * beta[i] * beta, penalty)[1] for sign in (1, -1)]
                beta[i] *= -1.0 if costs[1] < costs[0] * (1.0 - 1e-9) else 1.0
            if np.array_equal(beta, before):
                break
    shrink = min(penalty, 0.5)
    P = np.linalg.inv((1.0 - shrink) * C + shrink * np.eye(d))
    partial = -P / np.sqrt(np.outer(P.diagonal(), P.diagonal())) * np.outer(beta, beta)
    weights = 1.0 / (0.1 + np.maximum(partial, 0.0))
    np.fill_diagonal(weights, weights.min())
    for i in range(d):
        columns[:, i] = _column(C, i, beta[i] * beta, penalty, weights[i])[0]
    # Use the smaller of the two estimates of each entry. Both have the prescribed sign.
    size = np.minimum(np.abs(columns), np.abs(columns.T))
    off = np.outer(beta, beta) * (size - np.diag(size.diagonal()))
    diagonal = np.maximum(size.diagonal(), np.finfo(float).tiny)
    lowest = float(np.linalg.eigvalsh(np.diag(diagonal) - off)[0])
    diagonal = diagonal + max(0.0, 1e-6 * diagonal.max() - lowest)
    scale = 1.0 / deviation
    adjacency = sp.csr_array(off * np.outer(scale, scale))
    precision = sp.csr_array(sp.diags_array(diagonal * scale**2) - adjacency)
    return BalancedGraph(adjacency, precision, beta.astype(np.int8))


def _correlations(
    X: ArrayLike | None, covariance: ArrayLike | None
) -> tuple[FloatArray, FloatArray, int | None]:
    """Return correlations, standard deviations (1 for constant columns) and number of samples."""
    if (X is None) == (covariance is None):
        raise ValueError("pass either X or covariance")
    name, given = ("X", X) if covariance is None else ("covariance", covariance)
    A = np.asarray(given, dtype=np.float64)
    if A.ndim != 2 or A.size == 0 or (name == "X" and A.shape[0] < 2):
        raise ValueError(f"{name} must have two dimensions and at least two rows, got {A.shape}")
    if not np.isfinite(A).all():
        raise ValueError(f"{name} must be finite; it contains NaN or infinity")
    n_samples = A.shape[0] if name == "X" else None
    S = np.atleast_2d(np.cov(A, rowvar=False)) if name == "X" else A
    if S.shape[0] != S.shape[1] or not np.allclose(S, S.T, rtol=1e-8, atol=1e-12):
        raise ValueError(f"covariance must be symmetric, got shape {S.shape}")
    if (S.diagonal() < 0).any():
        raise ValueError("the diagonal of covariance must not be negative")
    deviation = np.where(S.diagonal() > 0, np.sqrt(S.diagonal()), 1.0)
    C = S / np.outer(deviation, deviation)
    np.fill_diagonal(C, 1.0)  # constant columns are uncorrelated with the others
    return C, deviation, n_samples


def _column(
    C: FloatArray, i: int, relative: FloatArray, penalty: float, weights: FloatArray | float = 1.0
) -> tuple[FloatArray, float]:
    """Return column i of the inverse, for colours relative to node i, and the optimal cost."""
    from scipy.optimize import linprog

    d = C.shape[0]
    signs = -relative
    signs[i] = 1.0
    unit = np.zeros(d)
    unit[i] = 1.0
    signed = C * signs
    # An additional variable increases the penalty if the signs leave no feasible point.
    rows = np.block([[signed, -np.ones((d, 1))], [-signed, -np.ones((d, 1))]])
    right = np.concatenate([penalty + unit, penalty - unit])
    costs = np.append(weights * np.ones(d), 1e3 * d * np.max(weights))
    result = linprog(costs, A_ub=rows, b_ub=right, method="highs")
    if result.status != 0:
        raise ValueError(f"the linear program of column {i} failed: {result.message}")
    return signs * result.x[:-1], float(result.fun)
