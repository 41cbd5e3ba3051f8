"""The discs of a labelled problem: their bound, and the vector that keeps them aligned.

On the reduced form (labelled nodes merged into one apex) ``s_i = sum_j |P_ij|`` makes
``diag(s) - P`` diagonally dominant: no disc reaches below zero, so no labelling is below
``constant - sum |P|``. By the inequality of the means no scaling of the discs improves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..linalg import first_eigenvector
from ..linalg.operator import inner_product
from ..problem import ClassProblem

__all__ = ["class_bounds", "disc_bounds", "nowhere_zero", "realign"]

FloatArray = NDArray[np.float64]


def disc_bounds(
    adjacency: sp.csr_array,
    diagonal: FloatArray,
    labeled: NDArray[np.intp],
    signs: FloatArray,
    bias: FloatArray | None = None,
) -> FloatArray:
    """Certified lower bounds of ``x' L x - 2 h' x`` over signs x that agree with the labels.

    Reads the rows of labelled nodes, and adds up the entries of the others.

    Parameters
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        A in ``L = diag(diagonal) - A``.
    diagonal : ndarray of shape (n_nodes,)
        Diagonal of L.
    labeled : ndarray of int of shape (n_labeled,)
        Labelled nodes.
    signs : ndarray of shape (n_labeled, n_problems)
        Their labels, +1 or -1, one problem per column.
    bias : ndarray of shape (n_nodes, n_problems), optional
        Evidence h.

    Returns
    -------
    ndarray of shape (n_problems,)
        ``constant - sum |P|``, lowered by a bound on the rounding errors of the sums.
    """
    n = diagonal.size
    free = np.ones(n, dtype=bool)
    free[labeled] = False
    rows = adjacency[labeled]
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.asarray(rows.T @ signs).reshape(n, -1)
        inside = float(rows.data[~free[rows.indices]].sum())
        # Pairs of free nodes, from all pairs; pairs of labelled ones, with their signs.
        pairs = float(adjacency.data.sum()) - 2.0 * float(rows.data.sum()) + inside
        edges = pairs + (signs * sums[labeled]).sum(axis=0)
        votes, evidence = sums, np.zeros(signs.shape[1])
        if bias is not None:
            votes = sums + bias
            evidence = 2.0 * (bias[labeled] * signs).sum(axis=0)
        against = 2.0 * np.abs(votes[free]).sum(axis=0)
        total = float(diagonal.sum())
        # The weights of A add up to no more than `total`, since L is positive semi-definite.
        magnitude = 3.0 * total + np.abs(edges) + against + np.abs(evidence)
        margin = 4.0 * np.finfo(float).eps * np.sqrt(adjacency.nnz + n) * magnitude
        bounds = total - edges - against - evidence - margin
    # Weights whose sum is beyond floating point prove nothing.
    return np.where(np.isfinite(bounds), bounds, -np.inf)


def class_bounds(problem: ClassProblem) -> FloatArray:
    """Certified lower bounds of each class against the rest; of two classes, of the second.

    Parameters
    ----------
    problem : ClassProblem
        The classes.

    Returns
    -------
    ndarray
        One bound per class, or one for two classes.
    """
    judged = slice(1, 2) if problem.targets.shape[1] == 2 else slice(None)
    signs, bias = 2.0 * problem.targets[:, judged] - 1.0, None
    if problem.evidence is not None and problem.evidence_weight != 0:
        pull = problem.evidence_weight * problem.evidence
        bias = 2.0 * pull[:, judged] - pull.sum(axis=1, keepdims=True)
    return disc_bounds(problem.adjacency, problem.diagonal, problem.labeled, signs, bias)


def realign(
    product: Callable[[FloatArray], FloatArray],
    v: FloatArray,
    *,
    size: float,
    matrix: Callable[[], sp.csr_array],
    preconditioner: Any = "auto",
    random_state: int = 0,
) -> tuple[FloatArray, float, int]:
    """Vector that aligns the discs of a balanced matrix: `v` itself where it still does.

    Parameters
    ----------
    product : callable
        The matrix times a vector.
    v : ndarray of shape (n,)
        The vector of the matrix before.
    size : float
        Size of the matrix: alignment is asked for relative to it.
    matrix : callable
        Builds the matrix; called only where `v` does not serve.
    preconditioner, random_state
        Of :func:`gdpa.linalg.first_eigenvector`.

    Returns
    -------
    v : ndarray of shape (n,)
        First eigenvector, with no entry 0.
    lambda_min : float
        Its eigenvalue: where all discs end.
    iterations : int
        Iterations of the eigensolver; 0 if `v` was kept.
    """
    unit = v / np.sqrt(inner_product(v, v))
    image = product(unit) / size  # relative: weights may be near overflow
    value = inner_product(unit, image)
    rest = image - value * unit
    if inner_product(rest, rest) <= 1e-24 and (unit != 0).all():
        return unit, value * size, 0
    result = first_eigenvector(
        matrix(), v0=unit, tol=1e-8, preconditioner=preconditioner, random_state=random_state
    )
    return nowhere_zero(result.vector), float(result.value), int(result.iterations)


def nowhere_zero(v: FloatArray) -> FloatArray:
    """Sizes of a first eigenvector's entries, none of them 0.

    Any positive vector bounds the matrix from below; a component on which `v` vanishes (also where
    weights are too small to hold it to the others) still needs one.

    Parameters
    ----------
    v : ndarray of shape (n,)
        The eigenvector.

    Returns
    -------
    ndarray of shape (n,)
        Positive numbers.
    """
    sizes = np.abs(v)
    return np.asarray(np.maximum(sizes, 1e-10 * sizes.max()))
