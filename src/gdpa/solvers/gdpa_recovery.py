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
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from ..arrays import FloatArray
from ..linalg import first_eigenvector, solve_spd
from ..linalg.operator import Difference, Matrix
from ..problem import GraphProblem
from ..problem.dual import DualVariables, apex_weights, build_H

# Label weight in multiples of the largest degree of a labelled node, see safe_label_weight.
SAFE_WEIGHT = 100.0
# The eigenvector is used below this bound of rho: there it differs from the harmonic function by
# less than that function's own length, by (4).
SAFE_RATIO = 0.5
# With a bound of rho above this, computing the eigenvector would not bring it below SAFE_RATIO: on
# graphs of clouds the Rayleigh quotient exceeds lambda by a factor of at most 2 where rho < 1/2,
# and the disc bound is at least 0.6 mu.
HOPELESS_RATIO = 2.0
# Labelled rows are solved by sweeps if the weight of the label is this multiple of the other edges:
# a sweep then reduces the error by the same factor.
HEAVY = 10.0
MOST_SWEEPS = 20
# Relative residual of the unlabelled rows in the first sweep, and how it falls from sweep to sweep:
# about as fast as the error of the labelled rows, with label weights 10 to 100 times as large as
# the other edges.
FIRST_TOL = 1e-2
SWEEP_FACTOR = 0.03
# Matrices with fewer rows, or dense ones with fewer rows, are given to LAPACK (one eigenvector of
# 300 rows takes 3 ms, of a dense matrix of 600 rows 12 ms, LOBPCG on the latter 30 ms).
SMALL_ROWS = 300
DENSE_ROWS = 600
DENSE_SHARE = 0.25


@dataclass(frozen=True)
class NodeSolution:
    """Solution of the rows of the nodes for one shift.

    Parameters
    ----------
    x : ndarray of shape (n_nodes,)
        The solution; the entry of the apex is 1.
    eigenvalue : float
        lambda; 0 for complementary slackness.
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
    eigenvalue: float
    residual: float
    converged: bool
    products: int
    message: str

    @property
    def vector(self) -> FloatArray:
        """The unit vector ``(x, 1)``."""
        v = np.append(self.x, 1.0)
        return np.asarray(v / np.linalg.norm(v))


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
        known = self.problem.labeled
        others = self.problem.adjacency[known].sum(axis=1)
        return bool(known.size and (self.diagonal[known] >= HEAVY * others).all())

    def apex_residual(self, x: FloatArray) -> float:
        """Return ``y_(N+1) - q'x``, without cancellation where x agrees with heavy labels."""
        size = np.abs(self.q)
        return float(self.dual.y[-1] - size.sum() + (size * (1.0 - np.sign(self.q) * x)).sum())

    def rayleigh(self, x: FloatArray) -> float:
        """Return the Rayleigh quotient of ``(x, 1)`` in H, an upper bound of lambda."""
        product = self.diagonal * x - self.problem.adjacency @ x
        value = float(x @ (product - self.q)) + self.apex_residual(x)
        return value / (float(x @ x) + 1.0)

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
            eigenvalue=0.0,
            residual=found.residual,
            converged=found.converged,
            products=found.matvecs,
            message=found.message,
        )

    def solve_eigenvector(
        self, *, tol: float, least: float, x0: FloatArray | None = None
    ) -> NodeSolution:
        """Solve ``(B - lambda) x = q`` together with the row of the apex, for heavy labels.

        Parameters
        ----------
        tol : float
            Residual ``|D^-1/2 (H v - lambda v)| / |v|``, where D is the diagonal of H over the mean
            diagonal of L, and at least 1. The rows of labels and apex have large entries.
        least : float
            Lower bound of the smallest eigenvalue of B_uu; larger eigenvalues are not accepted.
        x0 : ndarray of shape (n_nodes,), optional
            Initial guess.
        """
        threshold = tol * float(self.problem.diagonal.mean())
        return self._sweeps(threshold=threshold, x0=x0, least=least)

    def _sweeps(
        self, *, threshold: float, x0: FloatArray | None, least: float | None = None
    ) -> NodeSolution:
        """Alternate between unlabelled rows and labelled rows, which the labels dominate.

        With `least` the row of the apex is solved too: after each sweep the shift becomes the
        Rayleigh quotient of ``(x, 1)``. This is a Newton step for (2), whose f is decreasing and
        concave below the smallest eigenvalue of B, so the shifts decrease to lambda.
        """
        known = self.problem.labeled
        free = self.problem.unlabeled
        adjacency = self.problem.adjacency
        fixed = np.zeros(self.problem.n_nodes)
        fixed[known] = self.problem.labels[known] if x0 is None else x0[known]
        moving = np.zeros(self.problem.n_nodes)
        moving[free] = 0.0 if x0 is None else x0[free]
        unit = float(self.problem.diagonal.mean())
        weight = np.maximum(self.diagonal / unit, 1.0)
        shift = 0.0
        products = 0
        inner = FIRST_TOL
        message = f"not converged after {MOST_SWEEPS} sweeps over the labelled nodes"
        for _ in range(MOST_SWEEPS):
            pull = adjacency @ fixed
            block = Difference(self.unlabeled, self.diagonal[free] - shift)
            found = solve_spd(block, self.q[free] + pull[free], x0=moving[free], tol=inner)
            moving[free] = found.x
            pull += adjacency @ moving
            products += found.matvecs + 2
            x = fixed + moving
            excess = self.diagonal * x - pull - self.q
            value = 0.0
            squares = float(excess @ excess)
            if least is not None:
                apex = self.apex_residual(x)
                length = float(x @ x) + 1.0
                value = (float(x @ excess) + apex) / length
                excess -= value * x
                last = (apex - value) ** 2 * unit / max(self.dual.y[-1], unit)
                squares = (float(excess @ (excess / weight)) + last) / length
            residual = float(np.sqrt(squares))
            if residual <= threshold:
                return NodeSolution(x, value, residual, True, products, "tolerance met")
            if least is not None and value >= least:
                message = "the eigenvalue may exceed the smallest one of the unlabelled nodes"
                break
            shift = value
            fixed[known] = (self.q[known] + pull[known]) / (self.diagonal[known] - shift)
            inner = max(SWEEP_FACTOR * inner, 1e-12)
        return NodeSolution(x, value, residual, False, products, message)


def safe_label_weight(problem: GraphProblem) -> float:
    """Return the weight a of labels with which the first eigenvector of H keeps them.

    The row of a labelled node l gives ``v_l - xh_l v_(N+1) = (lambda v_l - (K v)_l) / a``, and
    ``|(K v)_l| <= 2 d_l max |v|`` with the degree d_l, the sum of its weights in L. With a = 100
    times the largest d_l the labels are kept up to 2 % of the largest entry.

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    """
    degrees = problem.adjacency[problem.labeled].sum(axis=1)
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
        p = solve_spd(Difference(rows.unlabeled, diagonal), np.ones(free.size), tol=tol).x
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
        "dense" (LAPACK), "newton" or "lobpcg".
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
    least: float | None = None,
    x0: FloatArray | None = None,
    random_state: int = 0,
) -> Eigenvector:
    """Return the first eigenvector of H.

    Small matrices are given to LAPACK. With heavy labels the rows of the nodes are solved together
    with the eigenvalue, which costs little more than complementary slackness. Otherwise, and where
    that method cannot exclude other eigenvectors, LOBPCG starts from its last vector.

    Parameters
    ----------
    rows : NodeRows
        The rows of the nodes.
    tol : float, default=1e-6
        Residual of :meth:`NodeRows.solve_eigenvector`; LOBPCG uses 1e-9.
    least : float, optional
        Lower bound of the smallest eigenvalue of B_uu (:func:`smallest_eigenvalue_bound`).
    x0 : ndarray of shape (n_nodes,), optional
        Initial guess with 1 at the apex.
    random_state : int, default=0
        Random seed of LOBPCG without an initial guess.
    """
    problem = rows.problem
    n = problem.n_nodes
    dense = problem.adjacency.nnz >= DENSE_SHARE * n * n
    if rows.q.any() and n < (DENSE_ROWS if dense else SMALL_ROWS):
        return _by_lapack(rows)
    if rows.heavy:
        least = smallest_eigenvalue_bound(rows) if least is None else least
        with warnings.catch_warnings(action="ignore"):  # LOBPCG takes over and warns
            found = rows.solve_eigenvector(tol=tol, least=least, x0=x0)
        if found.converged:
            return Eigenvector(
                vector=found.vector,
                value=found.eigenvalue,
                converged=True,
                products=found.products,
                message=found.message,
                method="newton",
            )
        x0 = found.x
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
