"""The general linearisation: a psd constraint as a sequence of linear programs.

    minimise  c' theta   subject to   A(theta) = A0 + sum_k theta_k A_k  psd,  low <= theta <= high,

where the off-diagonal entries of A form a balanced signed graph with known edge signs (the
conjecture at the end of the paper). For a positive vector v, the rows
``A_ii - sum_j |A_ij| v_j / v_i >= 0`` are linear in theta and imply that A is psd. The two update
rules differ in how they choose the next LP.

``update="eigenvector"`` is the paper's rule: v is the first eigenvector of the current
``A(theta)``. The current theta stays feasible, so the objective never increases. But the method can
stall: if the optimum of the LP has lambda_min = 0 and null vector v, the next LP is identical, even
if a better v exists. If all rows can be made tight (for example, if theta is the diagonal), the
method stops after one LP, whatever the first v was.

``update="dual"`` is the default. At the optimum of an LP, the rows have multipliers ``X_ii`` and
the edges ``X_ij`` (after switching). They are optimal for the psd problem if and only if ``X_ij^2
<= X_ii X_jj`` on all edges. (For ``X = v v'`` this holds with equality, so the multipliers of the
rows are then the squares of the scaling.) If an edge violates this condition, the 2x2 block with
ratio ``sqrt(X_jj / X_ii)`` has the most negative reduced cost. It is added to the next LP. This is
column generation on an exact description of the cone (a Z-matrix is psd if and only if it is the
sum of 2x2 psd blocks and a non-negative diagonal): the objective never increases and converges to
the global optimum.

*Convex objectives* are approximated by tangents, one per LP (Kelley's cutting planes). With
``inner=True``, *unbalanced signs* are allowed: the blocks are psd for any signs, and the result is
the optimum over scaled diagonally dominant matrices, an inner approximation of the cone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..arrays import FloatArray
from ..checks import check_positive, check_vector
from ..errors import ConvergenceWarning, check_choice
from ..linalg.operator import MatrixLike
from .family import AffineFamily, check_bounds, check_constraints
from .linear_program import Blocks
from .program_sequence import Callback, LinearizationPoint, Oracle, Point, ProgramSequence

UPDATES = ("dual", "eigenvector")
# Violations up to this size, relative to the largest entry, are due to the tolerance of the LP.
PSD_TOLERANCE = 1e-8


@dataclass(frozen=True)
class LinearizationResult:
    """Result of :func:`linearize`.

    Parameters
    ----------
    theta : ndarray of shape (n_matrices,)
        Best parameters found.
    objective : float
        ``c' theta``, or the value of the convex objective.
    lower_bound : float
        Lower bound of the optimal objective, up to the tolerance of the LP solver (1e-10). It is
        -inf if no bound was found or the signs are not balanced.
    lambda_min : float
        Smallest eigenvalue of ``A(theta)``, which is negative only by rounding. If the signs are
        not balanced, the smallest eigenvalue of the comparison matrix, which is a lower bound.
    v : ndarray of shape (n_nodes,)
        First eigenvector of ``A(theta)``.
    iterations : int
        Number of linear programs solved, not counting the search for a start.
    converged : bool
        Whether the stopping rule was met. For "dual", also true if `gap` is at most `tol` (or 1e-8)
        relative to the objective. For "eigenvector", true means that the objective no longer
        decreases, not that it is optimal: see `gap`.
    message : str
        Why the method stopped.
    update : str
        Update rule.
    history : tuple of mappings
        For each iteration: iteration, objective, blocks (number of blocks in the LP) and, for
        "dual", violation (estimated distance from the optimum).
    blocks : Blocks or None
        Blocks of the last LP, used by a warm start.
    """

    theta: FloatArray
    objective: float
    lower_bound: float
    lambda_min: float
    v: FloatArray
    iterations: int
    converged: bool
    message: str
    update: str
    history: tuple[Mapping[str, Any], ...]
    blocks: Blocks | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """``objective - lower_bound``, an upper bound of the distance from the global optimum."""
        return self.objective - self.lower_bound


def linearize(
    c: ArrayLike | Oracle,
    A0: MatrixLike,
    matrices: Any,
    *,
    bounds: Any = None,
    constraints: Any = (),
    theta0: ArrayLike | None = None,
    warm_start: LinearizationResult | None = None,
    signs: MatrixLike | None = None,
    inner: bool = False,
    update: str = "dual",
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
) -> LinearizationResult:
    """Minimise ``c' theta`` subject to ``A0 + sum_k theta_k A_k`` psd, on a balanced pattern.

    Parameters
    ----------
    c : array-like of shape (n_matrices,) or callable
        Costs, or a convex function of theta that returns its value and its gradient. A function
        requires ``update="dual"``, and bounds on theta if the first tangents are unbounded below.
    A0 : array-like or sparse matrix of shape (n, n)
        Constant part, symmetric.
    matrices : sequence of array-likes or sparse matrices of shape (n, n), or sparse matrix
        The symmetric matrices A_k, at least one. They can also be given as one sparse matrix of
        shape (n * n, n_matrices), with the entries of A_k in column k.
    bounds : pair or sequence of pairs, optional
        One pair (low, high) for all parameters, or one pair per parameter. None means no bound.
    constraints : scipy.optimize.LinearConstraint or sequence of them, optional
        Linear constraints on theta.
    theta0 : array-like of shape (n_matrices,), optional
        Feasible start, which satisfies the bounds and the edge signs and has a psd ``A(theta0)``.
        By default, a start is computed by minimising t subject to ``A(theta) + t I`` psd.
    warm_start : LinearizationResult, optional
        Result of a similar problem with the same pattern. Its blocks are reused, and its theta if
        it is still feasible. (SciPy's interface to HiGHS does not accept a basis.)
    signs : array-like or sparse matrix of shape (n, n), optional
        Sign of each edge (i, j): +1 means ``A_ij <= 0`` and -1 means ``A_ij >= 0``. By default the
        signs are derived from the bounds, then from ``A(theta0)``, then from A0. The signs are
        constraints: the result satisfies them.
    inner : bool, default=False
        Allow unbalanced signs. The result is then the optimum over scaled diagonally dominant
        matrices, a subset of the psd matrices.
    update : {"dual", "eigenvector"}, default="dual"
        Rule that chooses the next LP. "dual" converges to the global optimum. "eigenvector", the
        paper's rule, stalls above it: by 2 % (median) and up to 49 % on the random test problems of
        this package, and by any amount for an unfavourable theta0.
    tol : float, default=1e-9
        Relative tolerance of the objective.
    max_iter : int, default=200
        Maximum number of linear programs.
    callback : callable, optional
        Called with each entry of the history. Return True to stop.

    Returns
    -------
    LinearizationResult
        Parameters, objective, lower bound of the optimum and history.

    Raises
    ------
    ValueError
        If an input is invalid, the signs are not balanced (the message names an odd cycle), theta0
        is not feasible, no feasible point exists, or the objective is unbounded below.

    Warns
    -----
    ConvergenceWarning
        If the stopping rule is not met.

    Examples
    --------
    Find the diagonal of smallest trace that makes the matrix of a path psd:

    >>> import numpy as np
    >>> from gdpa.gershgorin import linearize
    >>> A0 = -np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> e = np.eye(3)
    >>> result = linearize([1, 1, 1], A0, [np.outer(row, row) for row in e])
    >>> print(round(result.objective, 6))
    4.0
    """
    run, steps, start = _prepare(
        c,
        A0,
        matrices,
        bounds,
        constraints,
        theta0,
        warm_start,
        signs,
        inner,
        update,
        tol,
        max_iter,
        callback,
    )
    for _ in steps:
        pass
    return _result(run, update, start)


def linearization(
    c: ArrayLike | Oracle, A0: MatrixLike, matrices: Any, **options: Any
) -> Iterator[LinearizationPoint]:
    """Iterate over the linear programs of :func:`linearize`.

    Parameters
    ----------
    c, A0, matrices
        As in :func:`linearize`.
    **options
        Other parameters of :func:`linearize`.

    Yields
    ------
    LinearizationPoint
        Parameters, objective and multipliers; `v`, `lower_bound` and `gap` are computed on access.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa.gershgorin import linearization
    >>> A0 = -np.array([[0, 1], [1, 0]])
    >>> loops = [np.diag([1, 0]), np.diag([0, 1])]
    >>> for point in linearization([1, 4], A0, loops, theta0=[1, 1]):
    ...     pass
    >>> print(round(point.objective, 6), point.gap < 1e-6)
    4.0 True
    """
    yield from _prepare(c, A0, matrices, **options)[1]


def _prepare(
    c: ArrayLike | Oracle,
    A0: MatrixLike,
    matrices: Any,
    bounds: Any = None,
    constraints: Any = (),
    theta0: ArrayLike | None = None,
    warm_start: LinearizationResult | None = None,
    signs: MatrixLike | None = None,
    inner: bool = False,
    update: str = "dual",
    tol: float = 1e-9,
    max_iter: int = 200,
    callback: Callback | None = None,
) -> tuple[ProgramSequence, Iterator[LinearizationPoint], Point]:
    """Validate the arguments, find a start, and set up the sequence of programs."""
    matrices = matrices if sp.issparse(matrices) else list(matrices)
    m = matrices.shape[1] if sp.issparse(matrices) else len(matrices)
    if m == 0:
        raise ValueError("matrices is empty; pass at least one matrix")
    check_choice("update", update, UPDATES)
    if callable(c) and update != "dual":
        raise ValueError(f"update={update!r} takes a linear objective; pass update='dual'")
    tol = check_positive(tol, "tol")
    max_iter = check_positive(max_iter, "max_iter", 1)
    cost = c if callable(c) else check_vector(c, m, "c")
    box = check_bounds(bounds, m)
    given = None if theta0 is None else check_vector(theta0, m, "theta0")
    if given is None and warm_start is not None:
        given = check_vector(warm_start.theta, m, "warm_start.theta")
    family = AffineFamily.build(A0, matrices, bounds=box, theta0=given, signs=signs, inner=inner)
    family = family.with_rows(*check_constraints(constraints, m))
    try:
        if given is None:
            start, blocks = _find_start(family, box, tol, max_iter)
        else:
            start, blocks = _checked_start(family, box, given)
    except ValueError:
        if warm_start is None or theta0 is not None:
            raise
        start, blocks = _find_start(family, box, tol, max_iter)
    if warm_start is not None and warm_start.blocks is not None:
        if warm_start.blocks.edge.max(initial=-1) >= family.n_edges:
            raise ValueError("warm_start must have the same pattern as this problem")
        blocks = blocks.joined(warm_start.blocks)
    run = ProgramSequence(family, cost, box, tol, max_iter, callback)
    run.start(start.theta)
    steps = run.by_multipliers(blocks) if update == "dual" else run.by_eigenvector(start.v)
    return run, steps, start


def _size(family: AffineFamily, theta: FloatArray) -> float:
    """Return the largest absolute entry of ``A(theta)``."""
    largest = np.abs(family.diagonal(theta)).max(initial=0.0)
    return float(max(largest, np.abs(family.weights(theta)).max(initial=0.0)))


def _checked_start(
    family: AffineFamily, box: FloatArray, theta: FloatArray
) -> tuple[Point, Blocks]:
    """Return the given start and its blocks; raise ValueError if it is not feasible."""
    slack = PSD_TOLERANCE * max(1.0, float(np.abs(theta).max()))
    outside = np.flatnonzero((theta < box[:, 0] - slack) | (theta > box[:, 1] + slack))
    if outside.size:
        k = outside[0]
        raise ValueError(f"theta0[{k}] = {theta[k]:g} is outside its bounds {tuple(box[k])}")
    broken = np.flatnonzero(family.R @ theta - family.r0 > slack * (1.0 + np.abs(family.r0)))
    if broken.size:
        raise ValueError(f"theta0 breaks linear constraint {broken[0]}")
    size = _size(family, theta)
    weights = family.weights(theta)
    wrong = np.flatnonzero(weights < -PSD_TOLERANCE * size)
    if wrong.size:
        e = wrong[0]
        raise ValueError(
            f"theta0 breaks the sign of edge ({family.i[e]}, {family.j[e]}): its weight is "
            f"{family.signs[e] * weights[e]:g}"
        )
    point = Point.at(family, theta)
    if point.lambda_min < -PSD_TOLERANCE * size:
        raise ValueError(
            f"theta0 is not feasible: the smallest eigenvalue of A(theta0) is "
            f"{point.lambda_min:g}; omit theta0 to compute a start"
        )
    return point, Blocks.from_scaling(family, point.v)


def _find_start(
    family: AffineFamily, box: FloatArray, tol: float, max_iter: int
) -> tuple[Point, Blocks]:
    """Minimise t subject to ``A(theta) + t I`` psd (phase 1), until t is clearly negative."""
    zero = np.clip(np.zeros(family.n_parameters), box[:, 0], box[:, 1])
    if (family.weights(zero) >= 0).all() and (family.R @ zero <= family.r0).all():
        point = Point.at(family, zero)
        if point.lambda_min >= -64 * np.finfo(float).eps * _size(family, zero):
            return point, Blocks.from_scaling(family, point.v)
    size = max(_size(family, zero), float(np.abs(family.D.data).max(initial=0.0)))
    size = size or 1.0
    enough = -1e-3 * size
    run = ProgramSequence(
        family.extended(1.0),
        np.concatenate([np.zeros(family.n_parameters), [1.0]]),
        np.vstack([box, [-size, np.inf]]),
        tol,
        max_iter,
        lambda entry: entry["objective"] <= enough,
    )
    for _ in run.by_multipliers(Blocks.from_scaling(family, np.ones(family.n_nodes))):
        pass
    if run.theta is None or run.point is None or run.blocks is None:
        raise ValueError(f"no start was found ({run.message}); pass theta0")
    if run.objective > PSD_TOLERANCE * size:
        bound = run.point.lower_bound
        best = f"the best matrix has smallest eigenvalue {-run.objective:g}"
        if bound <= 0:
            raise ValueError(f"no start was found in {max_iter} LPs ({best}); pass theta0")
        raise ValueError(
            "the problem is infeasible: no theta within the bounds makes the matrix psd "
            f"({best}, and the upper bound is {-bound:g})"
        )
    point = Point.at(family, run.theta[:-1])
    return point, run.blocks.joined(Blocks.from_scaling(family, point.v))


def _result(run: ProgramSequence, update: str, start: Point) -> LinearizationResult:
    """Return the result of a finished run, and warn if it did not converge."""
    assert run.theta is not None
    point = Point.at(run.matrices, run.theta)
    if point.lambda_min < 0 < start.lambda_min:
        # Because of the tolerance of the LP, the point may lie slightly outside the cone. As
        # lambda_min is concave, a small step towards the start brings it back.
        step = point.lambda_min / (point.lambda_min - start.lambda_min)
        if step < 1e-6:
            theta = point.theta + step * (start.theta - point.theta)
            point = Point.at(run.matrices, theta, point.v)
    objective = run.evaluate(point.theta)
    bound = -np.inf if run.point is None else run.point.lower_bound
    if not run.converged and update == "dual" and run.point is not None:
        # Rounding errors are relative to the terms of the primal and the dual objective.
        size = abs(objective) if run.oracle else float(np.abs(run.c * point.theta).sum())
        size += float(run.point.multipliers @ np.abs(run.family.d0))
        if objective - bound <= max(run.tol, 1e-8) * size:
            run.converged = True
            run.message = "the lower bound proves optimality"
    if not run.converged:
        warnings.warn(run.message, ConvergenceWarning, stacklevel=3)
    return LinearizationResult(
        theta=point.theta,
        objective=objective,
        lower_bound=bound,
        lambda_min=point.lambda_min,
        v=point.v if run.family.colors is None else run.family.colors * point.v,
        iterations=len(run.history),
        converged=run.converged,
        message=run.message,
        update=update,
        history=tuple(run.history),
        blocks=run.blocks,
    )
