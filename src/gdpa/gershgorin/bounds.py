"""Lower bounds of a labelled problem that Gershgorin discs prove, and vectors that align discs.

*The trivial bound.* On the reduced form (labelled nodes merged into one apex) the diagonal
``s_i = sum_j |P_ij|`` makes ``diag(s) - P`` diagonally dominant, so no labelling is below
``constant - sum |P|``. In words: every node pays at least the smaller side of its labelled
neighbours' vote.

*The relaxation's bound.* Put the nodes on half a circle, ``v_i = (x_i, y_i)`` with ``y_i > 0``. For
``s = W y / y`` the discs of ``A = diag(s) - W``, aligned by y, all begin at 0, so A is positive
semi-definite. For any x and e > 0, ``A + diag(e) >= diag(e)``, so with ``r = c - A x`` the apex
needs no more than ``x' A x + sum_i r_i^2 / e_i`` (plus terms that cancel). The best e is |r|, and

    SDR >= constant - sum s - x' A x - 2 |c - A x|_1 .

It costs two products, needs no eigenvalue, and is a proof, up to rounding that is added. Among all
s >= W y / y the smallest is the best: raising s_i by d lowers the bound by at least
``(1 - |x_i|)^2 d``. Scores of any method give the x to start from.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..linalg import first_eigenvector
from ..linalg.operator import EPS, inner_product
from ..problem import ClassProblem, GraphProblem, Problem
from .discs import raised_diagonal

FloatArray = NDArray[np.float64]


def trivial_bounds(
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
        margin = 4.0 * EPS * np.sqrt(adjacency.nnz + n) * magnitude
        bounds = total - edges - against - evidence - margin
    # Weights whose sum is beyond floating point prove nothing.
    return np.where(np.isfinite(bounds), bounds, -np.inf)


def trivial_bound(problem: GraphProblem) -> float:
    """Trivial bound of a binary problem, see :func:`trivial_bounds`.

    Parameters
    ----------
    problem : GraphProblem
        The problem.

    Returns
    -------
    float
        The bound.
    """
    known, bias = problem.labeled, problem.bias[:, None]
    signs = problem.labels[known, None].astype(np.float64)
    return float(trivial_bounds(problem.adjacency, problem.diagonal, known, signs, bias)[0])


def class_bounds(problem: ClassProblem) -> FloatArray:
    """Trivial bounds of each class against the rest; of two classes, of the second.

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
    signs = 2.0 * problem.targets[:, judged] - 1.0
    return trivial_bounds(problem.adjacency, problem.diagonal, problem.labeled, signs)


def tangent_bound(problem: GraphProblem, x: FloatArray) -> float:
    """Lower bound of the problem from the tangent of its convex objective at `x`.

    For every labelling b, ``f(b) >= f(x) + 2 g'(b - x)`` with ``g = L x - h``, and the right-hand
    side is smallest at ``b = -sign(g)`` on the free nodes. At the minimiser over the box it is the
    box relaxation's value; anywhere else it is still a proof.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    x : ndarray of shape (n_nodes,)
        Real values that agree with the labels.

    Returns
    -------
    float
        The bound, lowered by a bound on the rounding errors of the sums; -inf where weights are
        beyond floating point.
    """
    free = problem.unlabeled
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = problem.diagonal * x - problem.adjacency @ x - problem.bias
        value = float(x @ gradient - problem.bias @ x)
        tangent = np.abs(gradient[free]) + gradient[free] * x[free]
        size = float(np.abs(x).max(initial=1.0)) ** 2
        magnitude = size * float(problem.diagonal.sum() + problem.adjacency.data.sum())
        magnitude += size * float(np.abs(problem.bias).sum())
        terms = np.sqrt(problem.adjacency.nnz + problem.n_nodes)
        bound = float(value - 2.0 * float(tangent.sum()) - 8.0 * EPS * terms * magnitude)
    return bound if np.isfinite(bound) else -np.inf


def relaxation_bound(problem: GraphProblem, scores: FloatArray, *, sweeps: int = 3) -> float:
    """Certified lower bound of the semidefinite relaxation, from scores that are nearly right.

    Each sweep moves every node of the half circle to where its neighbours pull it.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    scores : ndarray of shape (n_nodes,)
        Where to start; best in [-1, 1], such as those of the harmonic function.
    sweeps : int, default=3
        Sweeps, one product with two columns each.

    Returns
    -------
    float
        The bound; -inf where weights are beyond floating point.
    """
    A, known, h = problem.adjacency, problem.labeled, problem.bias
    V = np.empty((problem.n_nodes, 2))
    np.clip(scores, -1.0, 1.0, out=V[:, 0])
    V[:, 1] = np.sqrt(np.maximum(1.0 - V[:, 0] ** 2, 1e-4))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for sweep in range(sweeps + 1):
            V[known, 0], V[known, 1] = problem.labels[known], 0.0
            pull = A @ V  # labelled nodes lie on the axis: W x + c without evidence, and W y
            if sweep < sweeps:
                pull[:, 0] += h
                pull /= np.hypot(pull[:, 0], pull[:, 1])[:, None]
                V[:, 0], V[:, 1] = pull[:, 0], np.maximum(pull[:, 1], 1e-9)
        free = problem.labels == 0
        (x, y), (Wx, Wy), c = V[free].T, pull[free].T, problem.vote
        bound = aligned_bound(A, c, problem.constant, x, y, Wx + h[free] - c, Wy)
        # Where the discs are far from aligned the sum is larger than the weights are.
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
    """Lower bound of the relaxation by discs aligned with y (see the module's docstring).

    Parameters
    ----------
    W : csr_array
        Non-negative couplings; only its longest row is looked at.
    c : ndarray of shape (n,)
        Couplings to the apex.
    constant : float
        Constant of the reduced form.
    x : ndarray of shape (n,)
        Any vector.
    y : ndarray of shape (n,)
        Any positive vector.
    Wx, Wy : ndarray of shape (n,)
        Their products with W.

    Returns
    -------
    float
        The bound, up to the rounding of its sums.
    """
    s = raised_diagonal(W, y, Wy)
    r = c - s * x + Wx
    return float(constant - (s * (1.0 + x * x) - x * Wx + 2.0 * np.abs(r)).sum())


def rounding_margin(problem: Problem) -> float:
    """Bound the rounding error of evaluating the objective or a bound of the problem.

    Any order of summing N terms in floating point is wrong by at most ``N eps`` times the sum of
    their sizes; the factor 8 covers the few sums of that size that a bound consists of.

    Parameters
    ----------
    problem : GraphProblem or BinaryQuadratic
        The problem.

    Returns
    -------
    float
        The margin, in units of the objective.
    """
    if isinstance(problem, GraphProblem):
        A = problem.adjacency
        size = 2.0 * float(problem.diagonal.sum()) + 2.0 * float(np.abs(problem.bias).sum())
    else:
        A, size = problem.P, 0.0
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
    random_state : int, default=0
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
    result = first_eigenvector(matrix(), v0=unit, tol=1e-8, random_state=random_state)
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
