"""The SDR dual: H, H_bar and H_tilde, and the bounds between them.

For a problem with labels ``xh`` on M nodes and evidence ``h`` on the unlabelled ones, a dual point
is ``y`` in R^(N+1) and ``z`` in R^M with ``z_i = -xh_i a_i``, ``a_i >= 0``. The dual objective is

    F(y, z) = 1'y + b'z,   b = 2 xh,

and -F is a lower bound of the relaxation, hence of the problem, wherever

    H = [ L + diag(y_1..N)  g ; g'  y_(N+1) ]   is positive semi-definite,

where ``g_i = z_i`` on labelled nodes and ``-h_i`` on the others. H_bar splits node N+1 in two, one
with the positive and one with the negative edges. The paper's Lemma 1, lmin(H_bar) <= lmin(H),
holds where lmin(H) >= 0 and can fail elsewhere; with v the first eigenvector of H,

    lmin(H_bar) <= lmin(H) / (1 + v_(N+1)^2)

holds everywhere, so if H_bar is positive semi-definite, H is too. H_tilde adds phi to the weight of
every edge of node N+1 (Lemma 2: lmin(H) <= lmin(H_tilde)).

The constraint on H_bar does not depend on the labels. With ``w = (1_N, 1, -1)``

    w' H_bar w = F + 1'L1 - 2 sum_u |h|,

so F >= 2 sum_u |h| - 1'L1 at every feasible point, with equality exactly where ``H_bar w = 0``:
``y_i = a_i - (L1)_i`` on labelled nodes, ``y_i = |h_i| - (L1)_i`` on the others, ``y_(N+1)`` the
sum of all edge weights of the apex, and ``a >= 0`` free. :func:`optimal_point` gives these points.
Evidence on a labelled node shifts the objective by a constant and is not part of any matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray
from ..checks import check_vector
from ..graph.adjacency import check_total, csr_from_parts
from ..linalg import first_eigenvector
from ..linalg.operator import inner_product
from .graph_problem import GraphProblem


@dataclass(frozen=True)
class DualVariables:
    """A point of the SDR dual.

    Parameters
    ----------
    y : ndarray of shape (n_nodes + 1,)
        Multipliers of ``X_ii = 1``; the last belongs to the apex.
    z : ndarray of shape (n_labeled,)
        Multipliers of the labels, in the order of ``problem.labeled``; ``z_i = -label_i * a_i``.
    """

    y: FloatArray
    z: FloatArray


def _check(problem: GraphProblem, dual: DualVariables) -> None:
    check_vector(dual.y, problem.n_nodes + 1, "dual.y")  # one per node and one for the apex
    check_vector(dual.z, problem.n_labeled, "dual.z")


def apex_weights(problem: GraphProblem, z: FloatArray) -> FloatArray:
    """Return the signed weight ``-g`` of the edge between each node and the apex.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    z : ndarray of shape (n_labeled,)
        Multipliers of the labels.

    Returns
    -------
    ndarray of shape (n_nodes,)
        ``-z_i`` on labelled nodes, ``h_i`` on the others.
    """
    weights = problem.bias.copy()
    weights[problem.labeled] = -z
    return weights


def _split_weights(problem: GraphProblem, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weights of the edges to the positive and to the negative half of the apex."""
    q = apex_weights(problem, z)
    side = np.where(problem.labels != 0, problem.labels, np.sign(problem.bias))
    return np.where(side > 0, q, 0.0), np.where(side < 0, q, 0.0)


def build_H(problem: GraphProblem, dual: DualVariables) -> sp.csr_array:
    """Build H, the (N+1) x (N+1) matrix of the dual.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    dual : DualVariables
        The dual point.

    Returns
    -------
    csr_array of shape (n_nodes + 1, n_nodes + 1)
        H.
    """
    _check(problem, dual)
    return _bordered(problem, dual, apex_weights(problem, dual.z)[:, None], dual.y[-1:])


def _bordered(
    problem: GraphProblem, dual: DualVariables, weights: FloatArray, corner: FloatArray
) -> sp.csr_array:
    """Return ``L + diag(y)``, bordered by one row per column of edge weights."""
    top = sp.csr_array(problem.L + sp.diags_array(dual.y[:-1]))
    right = sp.csr_array(-weights)
    last = sp.csr_array(np.hstack([-weights.T, np.diag(corner)]))
    # The border is inserted in one copy of the large block; SciPy's block_array makes several.
    at_ends = np.repeat(top.indptr[1:], np.diff(right.indptr))
    places = np.append(at_ends, np.full(last.nnz, top.nnz))
    columns = np.append(right.indices + top.shape[0], last.indices)
    data = np.insert(top.data, places, np.append(right.data, last.data))
    indices = np.insert(top.indices, places, columns)
    lengths = np.append(np.diff(top.indptr) + np.diff(right.indptr), np.diff(last.indptr))
    indptr = np.append(0, np.cumsum(lengths)).astype(indices.dtype)
    n = indptr.size - 1
    return csr_from_parts(data, indices, indptr, (n, n))


def build_H_bar(problem: GraphProblem, dual: DualVariables) -> sp.csr_array:
    """Build H_bar, whose apex is split into one node per sign of its edges.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    dual : DualVariables
        The dual point.

    Returns
    -------
    csr_array of shape (n_nodes + 2, n_nodes + 2)
        The generalised Laplacian of a balanced signed graph.
    """
    _check(problem, dual)
    positive, negative = _split_weights(problem, dual.z)
    kappa = float(positive.sum())
    corner = np.array([kappa, dual.y[-1] - kappa])
    return _bordered(problem, dual, np.column_stack([positive, negative]), corner)


def apply_H_bar(problem: GraphProblem, dual: DualVariables, v: FloatArray) -> FloatArray:
    """Multiply H_bar with a vector, in O(nnz), without building the matrix.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    dual : DualVariables
        The dual point.
    v : ndarray of shape (n_nodes + 2,)
        The vector.

    Returns
    -------
    ndarray of shape (n_nodes + 2,)
        ``H_bar v``.
    """
    n = problem.n_nodes
    x = v[:n]
    plus = v[n]
    minus = v[n + 1]
    up, down = _split_weights(problem, dual.z)
    kappa = up.sum()
    top = (problem.diagonal + dual.y[:n]) * x - problem.adjacency @ x - up * plus - down * minus
    first = kappa * plus - inner_product(up, x)
    second = (dual.y[-1] - kappa) * minus - inner_product(down, x)
    return np.concatenate([top, [first, second]])


def build_H_tilde(problem: GraphProblem, dual: DualVariables, phi: float) -> sp.csr_array:
    """Build H_tilde: H with `phi` added to the weight of every edge of the apex.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    dual : DualVariables
        The dual point.
    phi : float
        Non-negative weight. The graph is positive if phi is at least the largest absolute value of
        a negative edge weight.

    Returns
    -------
    csr_array of shape (n_nodes + 1, n_nodes + 1)
        H plus phi times the Laplacian of the star around the apex.
    """
    if not (np.isfinite(phi) and phi >= 0):
        raise ValueError(f"phi={phi!r} must be a finite number of at least 0")
    leaf = ((problem.labels != 0) | (problem.bias != 0)).astype(np.float64) * phi
    _check(problem, dual)
    raised = DualVariables(dual.y + np.append(leaf, leaf.sum()), dual.z)
    weights = apex_weights(problem, dual.z) + leaf
    return _bordered(problem, raised, weights[:, None], raised.y[-1:])


def dual_objective(problem: GraphProblem, dual: DualVariables) -> float:
    """Return the objective ``F = 1'y + b'z`` of the dual, which is minimised.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    dual : DualVariables
        The dual point.

    Returns
    -------
    float
        F. If H is positive semi-definite, ``-F - 2 sum_l h_i xh_i`` bounds the problem from below.
    """
    _check(problem, dual)
    signs = problem.labels[problem.labeled]
    return float(dual.y.sum() + 2.0 * (signs @ dual.z))


def oriented(
    problem: GraphProblem, v: FloatArray, sign: Literal["majority", "first"] = "majority"
) -> FloatArray:
    """Return the scores in an eigenvector of H, signed to agree with the known labels.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    v : ndarray of shape (n_nodes + 1,)
        The eigenvector.
    sign : {"majority", "first"}, default="majority"
        "majority" agrees with most of the known labels; if there are as many on either side, with
        the larger sum of ``|v_i|``. "first" agrees with the first known label, as the paper does:
        one label then decides the class of every node.

    Returns
    -------
    ndarray of shape (n_nodes,)
        ``v`` or ``-v`` without the apex. Without labels the apex determines the sign.
    """
    known = problem.labeled
    if known.size == 0:
        agreement = float(v[-1])
    elif sign == "first":
        agreement = float(problem.labels[known[0]] * v[known[0]])
    else:
        at_labels = problem.labels[known] * v[known]
        agreement = float(np.sign(at_labels).sum()) or float(at_labels.sum())
    return np.asarray(v[:-1] if agreement >= 0 else -v[:-1])


def _row_sums(problem: GraphProblem) -> FloatArray:
    """Return L 1, which is zero for the combinatorial Laplacian."""
    if problem.laplacian == "combinatorial":
        return np.zeros(problem.n_nodes)
    return np.asarray(problem.diagonal - problem.adjacency @ np.ones(problem.n_nodes))


def optimal_point(problem: GraphProblem, label_weight: float | FloatArray = 1.0) -> DualVariables:
    """Return the optimal point of the split dual with given label weights.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    label_weight : float or ndarray of shape (n_labeled,), default=1.0
        The free a >= 0. With 1 and the combinatorial Laplacian it is the start of the paper.

    Returns
    -------
    DualVariables
        ``y = (a or |h|) - L1``, ``y_(N+1)`` their sum, ``z = -xh a``.
    """
    a = np.broadcast_to(np.asarray(label_weight, dtype=np.float64), (problem.n_labeled,))
    if not np.isfinite(a).all() or (a < 0).any():
        raise ValueError("label_weight must be finite and not negative")
    q = np.abs(problem.bias)
    q[problem.labeled] = a
    check_total(problem.diagonal, q)
    y = np.append(q - _row_sums(problem), q.sum())
    return DualVariables(y=y, z=-problem.labels[problem.labeled] * a)


def paper_start(problem: GraphProblem, label_weight: float = 1.0) -> DualVariables:
    """Return the start of the paper: y = 1 on labelled nodes, 0 on the others, M at the apex.

    Parameters
    ----------
    problem : GraphProblem
        The problem; evidence enters as edges of the apex, as in :func:`optimal_point`.
    label_weight : float, default=1.0
        Replaces the 1.

    Returns
    -------
    DualVariables
        A feasible point; on the combinatorial Laplacian it is :func:`optimal_point`.
    """
    q = np.abs(problem.bias)
    q[problem.labeled] = label_weight
    check_total(problem.diagonal, q)
    z = np.asarray(-label_weight * problem.labels[problem.labeled], dtype=np.float64)
    return DualVariables(y=np.append(q, q.sum()), z=z)


def optimal_value(problem: GraphProblem) -> float:
    """Return the optimal value F(H_bar) of the split dual in closed form.

    Parameters
    ----------
    problem : GraphProblem
        The problem.

    Returns
    -------
    float
        ``2 sum_u |h_i| - 1'L1``.
    """
    return float(2.0 * np.abs(problem.bias[problem.unlabeled]).sum() - _row_sums(problem).sum())


def lemma1_gap(problem: GraphProblem, dual: DualVariables, *, tol: float = 1e-10) -> float:
    """Return ``lmin(H) - lmin(H_bar)``, which is non-negative if ``lmin(H) >= 0`` (Lemma 1).

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    dual : DualVariables
        The dual point.
    tol : float, default=1e-10
        Relative residual of the two eigenvectors.

    Returns
    -------
    float
        The difference.
    """
    matrices = build_H(problem, dual), build_H_bar(problem, dual)
    H, H_bar = (first_eigenvector(A, tol=tol).value for A in matrices)
    return float(H - H_bar)


@dataclass(frozen=True)
class ErrorBound:
    """The paper's bound on the cost of splitting the apex: F(H_bar) - F(H) <= `bound`.

    Parameters
    ----------
    F_bar : float
        Optimal value of the split dual.
    F_tilde : float
        Optimal value of the dual with H_tilde, over points whose graph is positive.
    phi : float
        Weight that was added.
    bound : float
        ``F_bar - F_tilde``.
    """

    F_bar: float
    F_tilde: float
    phi: float
    bound: float


def error_bound(problem: GraphProblem, phi: float | None = None) -> ErrorBound:
    """Bound the difference between the split dual and the SDR dual.

    The paper does not specify phi. With phi = 1, the largest ``|z|`` of its start, F_tilde is above
    F(H) in four of ten random instances, and there is no bound. The default is safe. The bound is
    then a constant plus the objective of the vote, ``x'Lx - 1'L1`` (without evidence), which is
    independent of the relaxation.

    Both optima have closed forms. That of H_tilde over positive graphs (``z_i <= phi`` on negative
    labels) is ``2 sum_u h - 1'L1 - 4 phi M_-``, reached where the edges of negative labels vanish.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    phi : float, optional
        Weight added to the edges of the apex. The SDR dual is in general not attained at a finite
        z, so no z* determines phi. The default is the smallest value for which F_tilde is below
        minus the objective of the vote, and therefore provably below F(H).

    Returns
    -------
    ErrorBound
        The two optima and their difference.

    Raises
    ------
    ValueError
        If `phi` leaves a negative edge of fixed weight (evidence) negative.
    """
    u = problem.unlabeled
    h = problem.bias[u]
    needed = float(np.maximum(-h, 0.0).max(initial=0.0))
    n_negative = int((problem.labels < 0).sum())
    row_sum = float(_row_sums(problem).sum())
    if phi is None:
        x = problem.labels.astype(np.float64)
        x[u] = np.where(problem.vote < 0, -1.0, 1.0)
        x[u[problem.vote == 0]] = problem.majority
        labelled_part = 2.0 * float(problem.bias[problem.labeled] @ x[problem.labeled])
        reachable = problem.objective(x) + labelled_part
        excess = reachable - row_sum + 2.0 * float(h.sum())
        phi = max(needed, excess / (4.0 * n_negative) if n_negative else 0.0)
    elif not phi >= needed:
        raise ValueError(
            f"phi={phi:g} leaves an edge of the apex negative; it must be at least {needed:g}"
        )
    F_bar = optimal_value(problem)
    F_tilde = 2.0 * float(h.sum()) - row_sum - 4.0 * phi * n_negative
    return ErrorBound(F_bar=F_bar, F_tilde=F_tilde, phi=float(phi), bound=F_bar - F_tilde)
