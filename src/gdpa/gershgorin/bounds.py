"""Lower bounds of a labelled problem proved by Gershgorin discs, and vectors that align discs.

*Trivial bound.* In the reduced form, all labelled nodes are merged into one apex node. The diagonal
``s_i = sum_j |P_ij|`` makes ``diag(s) - P`` diagonally dominant, so the objective of every
labelling is at least ``constant - sum |P|``. In other words, each node pays at least for the edges
to the minority among its labelled neighbours.

*Relaxation bound.* Place the nodes on a half circle, ``v_i = (x_i, y_i)`` with ``y_i > 0``. For
``s = W y / y``, the left-ends of the discs of ``A = diag(s) - W``, aligned by y, are all 0, so A is
positive semi-definite. For any x and e > 0, ``A + diag(e) >= diag(e)``. With ``r = c - A x``, the
diagonal entry of the apex therefore need not exceed ``x' A x + sum_i r_i^2 / e_i`` (plus terms that
cancel). The best e is |r|, which gives

    SDR >= constant - sum s - x' A x - 2 |c - A x|_1 .

The bound costs two products, needs no eigenvalue, and is a proof once a rounding margin is
subtracted. The smallest admissible s, ``W y / y``, is the best: raising s_i by d lowers the bound
by at least ``(1 - |x_i|)^2 d``. The scores of any solver can serve as x.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..linalg import first_eigenvector
from ..linalg.operator import EPS, inner_product
from ..problem import ClassProblem, GraphProblem, Problem
from .discs import raised_diagonal


def trivial_bounds(
    adjacency: sp.csr_array,
    diagonal: FloatArray,
    labeled: NDArray[np.intp],
    signs: FloatArray,
    bias: FloatArray | None = None,
    *,
    rows: sp.csr_array | None = None,
) -> FloatArray:
    """Return proved lower bounds of ``x' L x - 2 h' x`` over signs x that agree with the labels.

    ``L = diag(diagonal) - adjacency``. Each column of `signs` (labels of the labelled nodes, +1 or
    -1) and of `bias` (h) is one problem. `rows` are the rows of the labelled nodes, if they are at
    hand. The bound is ``constant - sum |P|``, lowered by a bound on the rounding errors.
    """
    n = diagonal.size
    free = np.ones(n, dtype=bool)
    free[labeled] = False
    rows = adjacency[labeled] if rows is None else rows
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.asarray(rows.T @ signs).reshape(n, -1)
        inside = float((rows @ (~free).astype(np.float64)).sum())
        # Pairs of free nodes (all pairs minus the others), and signed pairs of labelled nodes.
        pairs = float(adjacency.data.sum()) - 2.0 * float(rows.data.sum()) + inside
        edges = pairs + (signs * sums[labeled]).sum(axis=0)
        votes = sums
        evidence = np.zeros(signs.shape[1])
        if bias is not None:
            votes = sums + bias
            evidence = 2.0 * (bias[labeled] * signs).sum(axis=0)
        against = 2.0 * np.abs(votes[free]).sum(axis=0)
        total = float(diagonal.sum())
        # The sum of the weights is at most `total`, since L is positive semi-definite.
        magnitude = 3.0 * total + np.abs(edges) + against + np.abs(evidence)
        longest = int(np.diff(adjacency.indptr).max(initial=0))
        margin = 4.0 * EPS * (n + longest + 20) * magnitude
        bounds = total - edges - against - evidence - margin
    # If the sum of the weights overflows, nothing is proved.
    return np.where(np.isfinite(bounds), bounds, -np.inf)


def trivial_bound(problem: GraphProblem) -> float:
    """Return the trivial bound of a binary problem, see :func:`trivial_bounds`."""
    known = problem.labeled
    bias = problem.bias[:, None]
    signs = problem.labels[known, None].astype(np.float64)
    rows = problem.labeled_rows
    found = trivial_bounds(problem.adjacency, problem.diagonal, known, signs, bias, rows=rows)
    return float(found[0])


def class_bounds(problem: ClassProblem) -> FloatArray:
    """Return the trivial bound of each class against the rest; for two classes, of the second."""
    classes = slice(1, 2) if problem.targets.shape[1] == 2 else slice(None)
    signs = 2.0 * problem.targets[:, classes] - 1.0
    return trivial_bounds(problem.adjacency, problem.diagonal, problem.labeled, signs)


def tangent_bound(problem: GraphProblem, x: FloatArray) -> float:
    """Return the lower bound given by the tangent of the convex objective at `x`.

    For every labelling b, ``f(b) >= f(x) + 2 g'(b - x)`` with ``g = L x - h``. The right-hand side
    is smallest at ``b = -sign(g)`` on the free nodes. The bound holds for any x that agrees with
    the labels; at the minimiser over the box it equals the value of the box relaxation. It includes
    a rounding margin and is -inf if the weights overflow.
    """
    free = problem.unlabeled
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = problem.diagonal * x - problem.adjacency @ x - problem.bias
        value = float(x @ gradient - problem.bias @ x)
        tangent = np.abs(gradient[free]) + gradient[free] * x[free]
        size = float(np.abs(x).max(initial=1.0)) ** 2
        magnitude = size * float(problem.diagonal.sum() + problem.adjacency.data.sum())
        magnitude += size * float(np.abs(problem.bias).sum())
        terms = problem.n_nodes + int(np.diff(problem.adjacency.indptr).max(initial=0)) + 20
        bound = float(value - 2.0 * float(tangent.sum()) - 8.0 * EPS * terms * magnitude)
    return bound if np.isfinite(bound) else -np.inf


def relaxation_bound(problem: GraphProblem, scores: FloatArray, *, sweeps: int = 3) -> float:
    """Return a proved lower bound of the semidefinite relaxation, from approximate scores.

    The scores should be in [-1, 1], like those of the harmonic function. Each sweep moves every
    node on the half circle to the weighted mean direction of its neighbours, and costs one product
    with two columns. The bound is -inf if the weights overflow.
    """
    A = problem.adjacency
    known = problem.labeled
    h = problem.bias
    V = np.empty((problem.n_nodes, 2))
    np.clip(scores, -1.0, 1.0, out=V[:, 0])
    V[:, 1] = np.sqrt(np.maximum(1.0 - V[:, 0] ** 2, 1e-4))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for sweep in range(sweeps + 1):
            V[known, 0], V[known, 1] = problem.labels[known], 0.0
            pull = A @ V  # columns W x + c (without h) and W y: labelled nodes have y = 0
            if sweep < sweeps:
                pull[:, 0] += h
                pull /= np.hypot(pull[:, 0], pull[:, 1])[:, None]
                V[:, 0], V[:, 1] = pull[:, 0], np.maximum(pull[:, 1], 1e-9)
        free = problem.labels == 0
        (x, y), (Wx, Wy), c = V[free].T, pull[free].T, problem.vote
        bound = aligned_bound(A, c, problem.constant, x, y, Wx + h[free] - c, Wy)
        # If the discs are far from aligned, the bound is larger than the sum of the weights.
        bound -= rounding_margin(problem) + 8.0 * problem.n_nodes * EPS * abs(bound)
    return bound if np.isfinite(bound) else -np.inf


def aligned_bound(
    W: sp.csr_array,
    c: FloatArray,
    constant: float,
    x: FloatArray,
    y: FloatArray,
    Wx: FloatArray,
    Wy: FloatArray,
) -> float:
    """Return the lower bound of the relaxation by discs aligned with y (see the module docstring).

    W and c are the couplings between free nodes and to the apex node. x may be any vector and y any
    positive vector. No rounding margin is subtracted.
    """
    s = raised_diagonal(W, y, Wy)
    r = c - s * x + Wx
    return float(constant - (s * (1.0 + x * x) - x * Wx + 2.0 * np.abs(r)).sum())


def rounding_margin(problem: Problem) -> float:
    """Return a bound on the rounding error of the objective or of a bound of the problem.

    The error of a floating-point sum of N terms, in any order, is at most ``N eps`` times the sum
    of their absolute values. The factor 8 covers the few such sums in a bound, and the sums by
    which the problem itself was stated.
    """
    if isinstance(problem, GraphProblem):
        A = problem.adjacency
        size = 2.0 * float(problem.diagonal.sum()) + 2.0 * float(np.abs(problem.bias).sum())
    else:
        A = problem.P
        size = abs(problem.constant)
    size += float(np.abs(A.data).sum())
    longest = int(np.diff(A.indptr).max(initial=0))
    return 8.0 * (problem.n_nodes + longest + 20) * EPS * size


def realign(
    product: Callable[[FloatArray], FloatArray],
    v: FloatArray,
    size: float,
    matrix: Callable[[], sp.csr_array],
    random_state: int = 0,
) -> tuple[FloatArray, float, int]:
    """Return the first eigenvector of a balanced matrix, without zeros, and its eigenvalue.

    If the previous vector `v` is still an eigenvector relative to the norm `size` of the matrix, it
    is returned. Otherwise `matrix` builds the matrix for the eigensolver. The third value is the
    number of iterations of the eigensolver.
    """
    unit = v / np.sqrt(inner_product(v, v))
    image = product(unit) / size  # relative, because weights may be near overflow
    value = inner_product(unit, image)
    rest = image - value * unit
    if inner_product(rest, rest) <= 1e-24 and (unit != 0).all():
        return unit, value * size, 0
    result = first_eigenvector(matrix(), v0=unit, tol=1e-8, random_state=random_state)
    return nowhere_zero(result.vector), float(result.value), int(result.iterations)


def nowhere_zero(v: FloatArray) -> FloatArray:
    """Return the absolute values of a first eigenvector, with zeros replaced by small values.

    `v` may vanish on a component (or on nodes whose weights to the others are tiny), but disc
    bounds need a positive vector.
    """
    sizes = np.abs(v)
    return np.asarray(np.maximum(sizes, 1e-10 * sizes.max()))
