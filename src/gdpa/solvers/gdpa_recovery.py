"""Labels from a point of the dual: complementary slackness, or the first eigenvector of H.

With B = L + diag(y_1..N) and the edges q of the apex (``q_l = a xh_l``, ``q_u = h_u``), the rows of
the nodes in ``H (x, 1) = lambda (x, 1)`` read

    (B - lambda) x = q,                                                              (1)

and the row of the apex determines lambda:

    f(lambda) = y_(N+1) - q'x(lambda) - lambda = 0.                                  (2)

*Complementary slackness* of the relaxation, ``H (x, 1) = 0``, is (1) with lambda = 0. At the
optimal points of the split dual B is ``K + diag(a)``, where ``K = L - diag(L1)`` is the Laplacian
of the off-diagonal part of L. As a grows this is the harmonic function of K.

*The first eigenvector*, the paper's rule, is (1) with lambda the first eigenvalue of H. On
unlabelled nodes

    (B_uu - lambda) x_u = W_ul x_l + h_u,   x_l = xh_l + O(1/a):                     (3)

the same system with the *negative* self-loop -lambda. By interlacing lambda is at most the smallest
eigenvalue mu of B_uu. With the ratio ``rho = lambda / mu``, x_u and the harmonic function s_u (the
solution of (3) with the same x_l and lambda = 0) satisfy

    |x_u - s_u| <= rho / (1 - rho) |s_u|,                                            (4)

since ``x_u - s_u = lambda (B_uu - lambda)^-1 s_u``. Below rho = 1/2 the difference is smaller than
the harmonic function itself. Near rho = 1 the first eigenvector of B_uu, which has one sign,
dominates x_u, and all unlabelled nodes get one class.

:func:`smallest_eigenvalue_bound` bounds mu from below, hence rho from above, by aligned Gershgorin
discs. B_uu has no positive off-diagonal entry, so for every positive p the left-ends of its discs,
scaled by p, are ``(B_uu p)_i / p_i``. With ``B_uu p = 1`` the smallest of them is ``1 / max p``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from ..arrays import FloatArray
from ..linalg import first_eigenvector, solve_spd
from ..linalg.first_eigenvector import lobpcg
from ..linalg.operator import Difference, Matrix
from ..linalg.preconditioners import Preconditioner, cholesky, jacobi
from ..problem import GraphProblem
from ..problem.dual import DualVariables, apex_weights, build_H
from ..threads import one_thread
from .base import STOPPED

# Label weight in multiples of the largest degree of a labelled node, see safe_label_weight.
SAFE_WEIGHT = 100.0
# The eigenvector is used below this bound of rho: there it differs from the harmonic function by
# less than that function's own length, by (4).
SAFE_RATIO = 0.5
# Labelled rows are solved by sweeps if the weight of the label is this multiple of the other edges:
# a sweep then reduces the error by the same factor.
HEAVY = 10.0
MOST_SWEEPS = 20
# Relative residual of the unlabelled rows in the first sweep, and how it falls from sweep to sweep:
# about as fast as the error of the labelled rows, with label weights 10 to 100 times as large as
# the other edges.
FIRST_TOL = 1e-2
SWEEP_FACTOR = 0.03
# Fewer unlabelled nodes are solved by one Cholesky factor, as in gdpa.linalg.solve_spd.
FACTOR_ROWS = 500
# Eigenvectors of fewer rows are computed by LAPACK, which takes 0.6 ms for 100 rows. On neighbour
# graphs LOBPCG takes 1.2 ms there, on full graphs, where it converges in ten steps, 0.5 ms.
SMALL_ROWS = 120
SMALL_FULL_ROWS = 50
# A graph with this share of all pairs is full: its constant vector is nearly an eigenvector.
DENSE_SHARE = 0.25
# LOBPCG compares its vector with the constant one after this many steps.
FIRST_STEPS = 4
# After this many steps with Jacobi's preconditioner, the coarse system of
# gdpa.linalg.first_eigenvector takes over, which needs H as a matrix.
MOST_STEPS = 80


@dataclass(frozen=True)
class NodeSolution:
    """Solution of the rows of the nodes with lambda = 0.

    Parameters
    ----------
    x : ndarray of shape (n_nodes,)
        The solution; the entry of the apex is 1.
    residual : float
        Residual.
    converged : bool
        Whether the tolerance was met.
    products : int
        Number of products with the graph.
    message : str
        Why the solver stopped.
    """

    x: FloatArray
    residual: float
    converged: bool
    products: int
    message: str


class NodeRows:
    """The rows of the nodes in ``H (x, 1) = lambda (x, 1)``.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    dual : DualVariables
        The dual point.
    """

    def __init__(self, problem: GraphProblem, dual: DualVariables) -> None:
        self.problem = problem
        self.dual = dual
        self.q = apex_weights(problem, dual.z)
        self.diagonal = problem.diagonal + dual.y[:-1]

    @cached_property
    def unlabeled(self) -> Matrix:
        """The edges between unlabelled nodes."""
        u = self.problem.unlabeled
        return Matrix(self.problem.adjacency[u][:, u], checked=True)

    @cached_property
    def heavy(self) -> bool:
        """Whether the labels outweigh all other edges of the labelled nodes."""
        labeled = self.problem.labeled
        if not labeled.size:
            return False
        others = self.problem.labeled_rows.sum(axis=1)
        return bool((self.diagonal[labeled] >= HEAVY * others).all())

    @cached_property
    def constant_mode(self) -> float:
        """Rayleigh quotient of the constant vector in B_uu, an upper bound of mu."""
        free = self.problem.unlabeled
        return float((self.diagonal[free].sum() - self.unlabeled.matrix.sum()) / free.size)

    @cached_property
    def factor(self) -> Preconditioner | None:
        """The inverse of B_uu by its Cholesky factor, where B_uu is small."""
        diagonal = self.diagonal[self.problem.unlabeled]
        if diagonal.size >= FACTOR_ROWS or not (diagonal > 0).all():
            return None
        s = 1.0 / np.sqrt(diagonal)
        C = -self.unlabeled.toarray()
        C *= s[:, None]
        C *= s
        C[np.diag_indices_from(C)] += 1.0
        inverse = cholesky(C)
        return None if inverse is None else lambda r: s * inverse(s * r)

    def solve(self, *, tol: float, x0: FloatArray | None = None) -> NodeSolution:
        """Solve ``B x = q``, complementary slackness.

        Parameters
        ----------
        tol : float
            Residual relative to the right-hand side.
        x0 : ndarray of shape (n_nodes,), optional
            Initial guess.
        """
        if self.heavy:
            return self._sweeps(threshold=tol * float(np.linalg.norm(self.q)), x0=x0)
        operator = Difference(Matrix(self.problem.adjacency, checked=True), self.diagonal)
        found = solve_spd(operator, self.q, x0=x0, tol=tol)
        return NodeSolution(
            x=found.x,
            residual=found.residual,
            converged=found.converged,
            products=found.matvecs,
            message=found.message,
        )

    def solve_unlabeled(
        self, rhs: FloatArray, x0: FloatArray | None, tol: float
    ) -> tuple[FloatArray, float, int]:
        """Solve ``B_uu x = rhs``; return x, the norm of its residual, and the products."""
        if self.factor is not None:
            return self.factor(rhs), 0.0, 0
        block = Difference(self.unlabeled, self.diagonal[self.problem.unlabeled])
        found = solve_spd(block, rhs, x0=x0, tol=tol)
        return found.x, found.residual * float(np.linalg.norm(rhs)), found.matvecs

    def _sweeps(self, *, threshold: float, x0: FloatArray | None) -> NodeSolution:
        """Alternate between unlabelled rows and labelled rows, which the labels dominate."""
        labeled = self.problem.labeled
        free = self.problem.unlabeled
        rows = self.problem.labeled_rows
        weight = self.diagonal[labeled]
        x = self.problem.labels.astype(np.float64) if x0 is None else x0.copy()
        start = None if x0 is None else x[free]
        products = 0
        inner = FIRST_TOL
        message = f"not converged after {MOST_SWEEPS} sweeps over the labelled nodes"
        for _ in range(MOST_SWEEPS):
            pull = rows.T @ x[labeled]
            x[free], rest, matvecs = self.solve_unlabeled(self.q[free] + pull[free], start, inner)
            start = x[free]
            products += matvecs + 1
            excess = weight * x[labeled] - rows @ x - self.q[labeled]
            residual = float(np.hypot(np.linalg.norm(excess), rest))
            if residual <= threshold:
                return NodeSolution(x, residual, True, products, "tolerance met")
            x[labeled] -= excess / weight
            inner = max(SWEEP_FACTOR * inner, 1e-12)
        return NodeSolution(x, residual, False, products, message)


class BorderedOperator:
    """Products with H, and Jacobi's preconditioner of H, without storing H.

    Parameters
    ----------
    rows : NodeRows
        The rows of the nodes.

    Attributes
    ----------
    n : int
        Number of rows of H.
    products : int
        Number of products so far.
    """

    def __init__(self, rows: NodeRows) -> None:
        self.rows = rows
        self.n = rows.problem.n_nodes + 1
        self.products = 0
        self._jacobi = jacobi(np.append(rows.diagonal, rows.dual.y[-1]))

    def dot(self, v: FloatArray) -> FloatArray:
        """Return ``H v``."""
        self.products += 1
        rows = self.rows
        out = np.empty(self.n)
        x = v[:-1]
        apex = v[-1]
        np.multiply(rows.diagonal, x, out=out[:-1])
        out[:-1] -= rows.problem.adjacency @ x
        out[:-1] -= apex * rows.q
        out[-1] = rows.dual.y[-1] * apex - rows.q @ x
        return out

    def refresh(self, *_: object) -> None:
        """Keep the preconditioner."""

    def __call__(self, r: FloatArray) -> FloatArray:
        """Apply the preconditioner."""
        return np.asarray(self._jacobi(r))


def safe_label_weight(problem: GraphProblem) -> float:
    """Return the weight a of labels with which the first eigenvector of H keeps them.

    The row of a labelled node l gives ``v_l - xh_l v_(N+1) = (lambda v_l - (K v)_l) / a``, and
    ``|lambda v_l - (K v)_l| <= 2 d max |v|`` with the largest degree d of a labelled node. With
    a = 100 d the labels are kept up to 2 % of the largest entry.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    """
    degrees = problem.labeled_rows.sum(axis=1)
    return SAFE_WEIGHT * float(degrees.max(initial=0.0)) or 1.0


def smallest_eigenvalue_bound(rows: NodeRows, *, tol: float = 1e-3) -> float:
    """Return a lower bound of the smallest eigenvalue mu of B_uu, by aligned Gershgorin discs.

    Parameters
    ----------
    rows : NodeRows
        The rows of the nodes.
    tol : float, default=1e-3
        Relative residual of the vector p that aligns the discs. Any positive p gives a bound.

    Returns
    -------
    float
        The bound; 0 if the discs prove nothing.
    """
    free = rows.problem.unlabeled
    diagonal = rows.diagonal[free]
    if (diagonal <= 0).any():
        return 0.0
    with warnings.catch_warnings(action="ignore"):  # an imprecise p gives a weaker bound
        p, _, _ = rows.solve_unlabeled(np.ones(free.size), None, tol)
    if not (p > 0).all():
        return 0.0
    left_ends = diagonal - (rows.unlabeled.matrix @ p) / p
    return max(float(left_ends.min()), 0.0)


@dataclass(frozen=True)
class Eigenvector:
    """First eigenvector of H.

    Parameters
    ----------
    vector : ndarray of shape (n_nodes + 1,)
        Unit vector.
    value : float
        First eigenvalue lambda.
    converged : bool
        Whether the tolerance was met.
    products : int
        Number of products with the graph.
    message : str
        Why the solver stopped.
    method : str
        "dense" (LAPACK), "lobpcg" (without storing H) or "first_eigenvector".
    """

    vector: FloatArray
    value: float
    converged: bool
    products: int
    message: str
    method: str


def first_eigenvector_of_H(
    rows: NodeRows,
    *,
    tol: float = 1e-6,
    x0: FloatArray | None = None,
    give_up_above: float = np.inf,
    random_state: int = 0,
) -> Eigenvector:
    """Return the first eigenvector of H.

    Small matrices are given to LAPACK. With heavy labels LOBPCG starts from the vote of the
    labelled neighbours and works without storing H. Otherwise, and where that needs many steps,
    :func:`gdpa.linalg.first_eigenvector` continues.

    Parameters
    ----------
    rows : NodeRows
        The rows of the nodes.
    tol : float, default=1e-6
        Residual ``|H v - lambda v|`` of a unit vector over the mean diagonal of L;
        :func:`gdpa.linalg.first_eigenvector` uses 1e-9 over a low quantile of the row sums.
    x0 : ndarray of shape (n_nodes,), optional
        Initial guess with 1 at the apex.
    give_up_above : float, optional
        Stop, not converged, as soon as the eigenvalue near the current vector is larger.
    random_state : int, default=0
        Random seed without an initial guess and without labels.
    """
    problem = rows.problem
    n = problem.n_nodes
    if rows.q.any() and n < (SMALL_FULL_ROWS if _full(problem) else SMALL_ROWS):
        return _by_lapack(rows)
    if rows.heavy:
        found = _by_lobpcg(rows, tol, x0, give_up_above)
        if found.converged or found.value > give_up_above:
            return found
        x0 = found.vector[:-1] / (found.vector[-1] or 1.0)
    v0 = None if x0 is None else np.append(x0, 1.0)
    general = first_eigenvector(
        build_H(problem, rows.dual), v0=v0, tol=1e-9, random_state=random_state
    )
    return Eigenvector(
        vector=general.vector,
        value=general.value,
        converged=general.converged,
        products=general.matvecs,
        message=general.message,
        method="first_eigenvector",
    )


def _full(problem: GraphProblem) -> bool:
    """Return whether the graph has most of all pairs."""
    return bool(problem.adjacency.nnz >= DENSE_SHARE * problem.n_nodes**2)


def _by_lobpcg(
    rows: NodeRows, tol: float, x0: FloatArray | None, give_up_above: float
) -> Eigenvector:
    """Run LOBPCG on H; combine the vote with the constant vector where that is near the first."""
    problem = rows.problem
    H = BorderedOperator(rows)
    if x0 is None:
        x0 = problem.labels.astype(np.float64)
        free = problem.unlabeled
        votes = problem.labeled_rows.T @ x0[problem.labeled] + rows.q
        x0[free] = (votes / rows.diagonal)[free]
    v = np.append(x0, 1.0)
    v /= np.linalg.norm(v)
    constant = np.append((problem.labels == 0).astype(np.float64), 0.0)
    constant /= np.linalg.norm(constant)
    threshold = tol * float(problem.diagonal.mean())

    def too_large(report: Mapping[str, Any]) -> bool:
        return bool(report["value"] - report["residual"] > give_up_above)

    def hopeless(report: Mapping[str, Any]) -> bool:
        behind = report["iteration"] == FIRST_STEPS and report["value"] >= rows.constant_mode
        return behind or too_large(report)

    full = _full(problem)
    with one_thread():
        if not full:
            pair, _, note = lobpcg(H, v, H, threshold, MOST_STEPS, hopeless)
            v = pair.vector
        if full or (note == STOPPED and pair.value <= give_up_above):
            pair, _, note = lobpcg(H, v, H, threshold, MOST_STEPS, too_large, constant)
    return Eigenvector(
        vector=pair.vector,
        value=pair.value,
        converged=pair.residual <= threshold,
        products=H.products,
        message=f"{note}, residual {pair.residual:.2e} (threshold {threshold:.2e})",
        method="lobpcg",
    )


def _by_lapack(rows: NodeRows) -> Eigenvector:
    """Return the first eigenvector of H, built densely."""
    H = build_H(rows.problem, rows.dual).toarray()
    values, vectors = linalg.eigh(H, subset_by_index=[0, 0])
    return Eigenvector(
        vector=vectors[:, 0],
        value=float(values[0]),
        converged=True,
        products=0,
        message="LAPACK",
        method="dense",
    )
