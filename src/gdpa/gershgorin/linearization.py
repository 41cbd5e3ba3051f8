"""The general linearisation: a psd constraint as a sequence of linear programs.

    minimise  c' theta   subject to   A(theta) = A0 + sum_k theta_k A_k  psd,  low <= theta <= high,

where the pattern of A is a balanced signed graph with known edge signs (the conjecture that closes
the paper). For a positive vector v the rows ``A_ii - sum_j |A_ij| v_j / v_i >= 0`` are linear in
theta and imply psd; the two rules differ in how the next LP is chosen.

``update="eigenvector"``, the paper's: v is the first eigenvector of the current ``A(theta)``. The
current theta stays feasible, so the objective never rises. But the method stalls: as soon as the
LP's optimum has lambda_min = 0 with the same v as its null vector, the next LP is the same one, and
nothing in the rule asks whether a better v exists. Whatever the first v was, a problem whose rows
can all be made tight (theta on the diagonal, say) is finished after a single LP.

``update="dual"``, the default: at an LP's optimum the rows have multipliers ``X_ii`` and the edges
``X_ij`` (switched). They are optimal for the psd problem iff ``X_ij^2 <= X_ii X_jj`` on all edges,
which holds with equality for ``X = v v'``: the LP's multipliers must be the scaling's own squares.
Where an edge violates it, the 2x2 block with ratio ``sqrt(X_jj / X_ii)`` is the one that the LP
would pay most for, and it is offered to the next LP beside the blocks in use. It is column
generation on the exact description of the cone (a Z-matrix is psd iff it is a sum of 2x2 psd blocks
and a non-negative diagonal): the objective never rises and its limit is the global optimum.

*Convex objectives* enter by their tangents, one per LP (Kelley's cutting planes). *Signs that are
not balanced* may be allowed with ``inner=True``: the blocks are psd whatever their signs, and the
result is the optimum over scaled diagonally dominant matrices, an inner approximation of the cone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..errors import ConvergenceWarning, unknown_choice
from ..linalg.operator import MatrixLike, check_positive
from .discs import FloatArray
from .family import AffineFamily, check_bounds, check_constraints, check_theta
from .linear_program import Blocks
from .program_sequence import (
    Callback,
    InfeasibleError,
    LinearizationPoint,
    Oracle,
    Point,
    ProgramSequence,
)

UPDATES = ("dual", "eigenvector")
# Negative by less than this (relative to the largest entry) is what the LP's tolerance leaves.
PSD_TOLERANCE = 1e-8


@dataclass(frozen=True)
class LinearizationResult:
    """Outcome of :func:`linearize`.

    Parameters
    ----------
    theta : ndarray of shape (n_matrices,)
        The best parameters found.
    objective : float
        ``c' theta``, or the value of the convex objective.
    lower_bound : float
        No feasible point has a smaller objective, up to the tolerance of the LP solver (1e-10).
        Minus infinity where no bound was found, and always where signs are not balanced.
    lambda_min : float
        Smallest eigenvalue of ``A(theta)``; below zero by no more than rounding. Where signs are
        not balanced, that of its comparison matrix, a lower bound.
    v : ndarray of shape (n_nodes,)
        First eigenvector of ``A(theta)``.
    iterations : int
        Linear programs solved, without those that found a start.
    converged : bool
        Whether the update's stopping rule was met or, for "dual", `gap` is at most `tol` or 1e-8 of
        the objective's size. For "eigenvector" this says that the objective no longer moves, not
        that it is optimal: see `gap`.
    message : str
        Why it stopped.
    update : str
        The rule used.
    history : tuple of mappings
        Per iteration: iteration, objective, blocks (columns of the LP), and for "dual"
        violation, the estimated distance from the optimum.
    blocks : Blocks or None
        Blocks of the last LP, for a warm start.
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
        """``objective - lower_bound``: how far from the global optimum it can be at most."""
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
    """Minimise ``c' theta`` subject to ``A0 + sum_k theta_k A_k`` psd on a balanced pattern.

    Parameters
    ----------
    c : array-like of shape (n_matrices,) or callable
        Costs, or a convex function of theta that returns its value and its gradient (for
        ``update="dual"``; theta must be bounded where the function's tangents do not bound it).
    A0 : array-like or sparse matrix of shape (n, n)
        Symmetric constant part.
    matrices : sequence of array-likes or sparse matrices of shape (n, n), or sparse matrix
        The symmetric A_k, at least one; or all of them as one sparse matrix of shape
        (n * n, n_matrices) whose columns are their entries.
    bounds : pair or sequence of pairs, optional
        (low, high) for all parameters, or one pair each; None for no bound.
    constraints : scipy.optimize.LinearConstraint or sequence of them, optional
        Linear constraints on theta.
    theta0 : array-like of shape (n_matrices,), optional
        Feasible start: within the bounds, with the edge signs, ``A(theta0)`` psd. If not given, one
        is looked for by the same method on ``min t`` subject to ``A(theta) + t I`` psd.
    warm_start : LinearizationResult, optional
        Result of a similar problem with the same pattern: its theta where that is still feasible,
        and its blocks. (SciPy's interface to HiGHS takes no basis.)
    signs : array-like or sparse matrix of shape (n, n), optional
        Sign of the edge (i, j), +1 where ``A_ij <= 0`` and -1 where ``A_ij >= 0``. By default it is
        read off the bounds where they decide it, then off ``A(theta0)``, then off A0. Signs are
        constraints: they hold at the result.
    inner : bool, default=False
        Allow signs that are not balanced: then the optimum is over scaled diagonally dominant
        matrices, which are psd but not all psd matrices.
    update : {"dual", "eigenvector"}, default="dual"
        How the next LP is chosen. "dual" reaches the global optimum; "eigenvector" is the paper's
        rule, which stalls above it: by 2 % at the median and 49 % at most on the random test
        problems of this package, and arbitrarily far from an unlucky theta0.
    tol : float, default=1e-9
        Relative tolerance of the objective.
    max_iter : int, default=200
        Most linear programs.
    callback : callable, optional
        Called with each entry of the history; returning True stops.

    Returns
    -------
    LinearizationResult
        Parameters, objective, a lower bound of the optimum, history.

    Raises
    ------
    ValueError
        If an input is malformed, the signs are not balanced (an odd cycle is named), theta0 is not
        feasible, no feasible point exists, or the objective is unbounded below.

    Warns
    -----
    ConvergenceWarning
        If the stopping rule was not met.

    Examples
    --------
    The smallest trace that makes a path's matrix psd:

    >>> import numpy as np
    >>> from gdpa.gershgorin import linearize
    >>> A0 = -np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> e = np.eye(3)
    >>> result = linearize([1, 1, 1], A0, [np.outer(row, row) for row in e])
    >>> print(round(result.objective, 6))
    4.0
    """
    run, steps, start = _prepare(
        c, A0, matrices, bounds, constraints, theta0, warm_start, signs, inner, update, tol,
        max_iter, callback,
    )  # fmt: skip
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
        As there.
    **options
        Its other parameters.

    Yields
    ------
    LinearizationPoint
        Parameters, objective and multipliers; `v`, `lower_bound` and `gap` when asked for.

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
    """Check everything, find a start, and set up the sequence of programs."""
    matrices = matrices if sp.issparse(matrices) else list(matrices)
    m = matrices.shape[1] if sp.issparse(matrices) else len(matrices)
    if m == 0:
        raise ValueError("matrices is empty; at least one parameter is needed")
    if update not in UPDATES:
        raise unknown_choice("update", update, UPDATES)
    if callable(c) and update != "dual":
        raise ValueError(f"update={update!r} takes a linear objective; a convex one takes 'dual'")
    tol = check_positive(tol, "tol")
    max_iter = check_positive(max_iter, "max_iter", 1)
    cost = c if callable(c) else check_theta(c, m, "c")
    box = check_bounds(bounds, m)
    given = None if theta0 is None else check_theta(theta0, m, "theta0")
    if given is None and warm_start is not None:
        given = check_theta(warm_start.theta, m, "warm_start")
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
            raise ValueError("warm_start has another pattern than this problem")
        blocks = blocks.joined(warm_start.blocks)
    run = ProgramSequence(family, cost, box, tol, max_iter, callback)
    run.start(start.theta)
    steps = run.by_multipliers(blocks) if update == "dual" else run.by_eigenvector(start.v)
    return run, steps, start


def _size(family: AffineFamily, theta: FloatArray) -> float:
    """Largest entry of ``A(theta)``: what rounding is relative to."""
    largest = np.abs(family.diagonal(theta)).max(initial=0.0)
    return float(max(largest, np.abs(family.weights(theta)).max(initial=0.0)))


def _checked_start(
    family: AffineFamily, box: FloatArray, theta: FloatArray
) -> tuple[Point, Blocks]:
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
            f"{point.lambda_min:g}; leave theta0 out to have a start looked for"
        )
    return point, Blocks.from_scaling(family, point.v)


def _find_start(
    family: AffineFamily, box: FloatArray, tol: float, max_iter: int
) -> tuple[Point, Blocks]:
    """Phase 1: the smallest t with ``A(theta) + t I`` psd, stopped once it is clearly negative."""
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
    ones = np.ones(family.n_nodes)
    try:
        for _ in run.by_multipliers(Blocks.from_scaling(family, ones)):
            pass
    except InfeasibleError as error:
        raise ValueError(
            "no theta within the bounds gives every edge its sign, so the problem is infeasible"
        ) from error
    if run.theta is None or run.point is None or run.blocks is None:
        raise ValueError(f"no start was found ({run.message}); give theta0")
    if run.objective > PSD_TOLERANCE * size:
        bound = run.point.lower_bound
        found = f"the best found has smallest eigenvalue {-run.objective:g}"
        if bound <= 0:
            raise ValueError(f"no start was found in {max_iter} LPs ({found}); give theta0")
        raise ValueError(
            "the problem is infeasible: no theta within the bounds makes the matrix psd "
            f"({found}, and more than {-bound:g} is not possible)"
        )
    point = Point.at(family, run.theta[:-1])
    return point, run.blocks.joined(Blocks.from_scaling(family, point.v))


def _result(run: ProgramSequence, update: str, start: Point) -> LinearizationResult:
    assert run.theta is not None
    tail = np.zeros(run.family.n_parameters - run.theta.size)
    point = Point.at(run.family, np.append(run.theta, tail))
    point = replace(point, theta=run.theta)
    if point.lambda_min < 0 < start.lambda_min:
        # The LP's tolerance leaves the cone by a little; lambda_min is concave, so a small step
        # towards an inner point brings it back.
        step = point.lambda_min / (point.lambda_min - start.lambda_min)
        if step < 1e-6:
            theta = point.theta + step * (start.theta - point.theta)
            point = replace(Point.at(run.family, np.append(theta, tail), point.v), theta=theta)
    objective = run.evaluate(point.theta)
    bound = -np.inf if run.point is None else run.point.lower_bound
    if not run.converged and update == "dual" and run.point is not None:
        # The terms that primal and dual objective are sums of: rounding is relative to them.
        size = abs(objective) if run.oracle else float(np.abs(run.c * point.theta).sum())
        size += float(run.point.multipliers @ np.abs(run.family.d0))
        if objective - bound <= max(run.tol, 1e-8) * size:
            run.converged, run.message = True, "the lower bound proves the objective"
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
