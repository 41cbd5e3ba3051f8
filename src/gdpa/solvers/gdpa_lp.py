"""The linear program of one GDPA iteration, and three ways to solve it.

With v > 0 the first eigenvector of H_bar after switching signs, each row of ``S H_bar S^-1`` gives
one linear constraint. In the variables y_1..y_(N+1) and a_1..a_M:

    node i:  y_i - a_i v_apex/v_i  >=  sum_j A_ij v_j/v_i - L_ii  (+ |h_i| v_apex/v_i)
    apex +:  sum_+ a_i (1 - v_i/v_+)  >=  -sum_+ |h_i| (1 - v_i/v_+)
    apex -:  y_(N+1) - sum_+ a_i - sum_- a_i v_i/v_-  >=  sum_+ |h_i| + sum_- |h_i| v_i/v_-

and the objective is ``1'y - 2 1'a``. Each y occurs in one row with coefficient 1, so a determines
y. The remaining cost is ``r_i + 1/r_i - 2 >= 0`` per unit of a_i for a negative label (``r_i =
v_apex/v_i``) and ``r_i - 1`` for a positive label, with one coupling row. The ratios give the
optimum in O(nnz) (:func:`closed_form`). Without evidence it is a = 0. Therefore a simplex solver
erases the labels, and the closed form keeps the incumbent if that is optimal too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..problem import GraphProblem
from ..problem.dual import DualVariables
from .conic import clarabel_qp


@dataclass(frozen=True)
class LPPoint:
    """A solution of the LP.

    Parameters
    ----------
    y : ndarray of shape (n_nodes + 1,)
        Diagonal variables.
    a : ndarray of shape (n_labeled,)
        Label weights.
    objective : float
        ``1'y - 2 1'a``.
    kept : bool
        Whether it is the incumbent, which was already optimal.
    """

    y: FloatArray
    a: FloatArray
    objective: float
    kept: bool = False

    def dual(self, problem: GraphProblem) -> DualVariables:
        """Return the point as dual variables."""
        return DualVariables(y=self.y, z=-problem.labels[problem.labeled] * self.a)


@dataclass(frozen=True)
class _Rows:
    """Ratios of v and fixed right-hand sides, which all LP solvers need."""

    base: FloatArray  # right-hand side of each node's row
    ratio: FloatArray  # v_apex / v_i on labelled nodes
    positive: NDArray[np.bool_]  # which labels are +1
    coupling: float  # sum_+ |h_i| (1 - v_i / v_+)
    last: float  # right-hand side of the negative apex's row


def _rows(problem: GraphProblem, v: FloatArray) -> _Rows:
    n = problem.n_nodes
    w = np.abs(v)
    nodes = w[:n]
    plus = float(w[n])
    minus = float(w[n + 1])
    base = (problem.adjacency @ nodes) / nodes - problem.diagonal
    labeled = problem.labeled
    positive = problem.labels[labeled] > 0
    ratio = np.where(positive, plus, minus) / nodes[labeled]
    coupling = last = 0.0
    h = problem.bias.copy()
    h[labeled] = 0.0
    if h.any():
        up = np.maximum(h, 0.0)
        down = np.maximum(-h, 0.0)
        base = base + (up * plus + down * minus) / nodes
        coupling = float(up @ (1.0 - nodes / plus))
        last = float(up.sum() + down @ (nodes / minus))
    return _Rows(base=base, ratio=ratio, positive=positive, coupling=coupling, last=last)


def _complete(problem: GraphProblem, rows: _Rows, a: FloatArray) -> LPPoint:
    """Return the point with the optimal y for given a."""
    y = np.append(rows.base, rows.last)
    y[problem.labeled] += a * rows.ratio
    y[-1] += float(a @ np.where(rows.positive, 1.0, 1.0 / rows.ratio))
    return LPPoint(y=y, a=a, objective=float(y.sum() - 2.0 * a.sum()))


def closed_form(
    problem: GraphProblem, v: FloatArray, incumbent: LPPoint | None = None, *, tol: float = 1e-9
) -> LPPoint:
    """Solve the LP in closed form, in O(nnz).

    Parameters
    ----------
    problem : GraphProblem
        The problem.
    v : ndarray of shape (n_nodes + 2,)
        First eigenvector of H_bar; its signs are ignored.
    incumbent : LPPoint, optional
        Point to keep if it is as good as the optimum and feasible for this v.
    tol : float, default=1e-9
        Relative difference up to which the incumbent counts as optimal.
    """
    rows = _rows(problem, v)
    a = np.zeros(problem.n_labeled)
    if rows.coupling != 0.0:
        # Evidence adds or removes slack in the coupling row. Slack gains r per unit at a label with
        # ratio r < 1; missing slack costs r per unit at a label with r > 1.
        r = rows.ratio
        spare = rows.coupling > 0
        usable = rows.positive & ((r < 1.0) if spare else (r > 1.0))
        if usable.any():
            candidates = np.flatnonzero(usable)
            pick = candidates[np.argmax(r[candidates]) if spare else np.argmin(r[candidates])]
            a[pick] = abs(rows.coupling) * r[pick] / abs(r[pick] - 1.0)
    point = _complete(problem, rows, a)
    if incumbent is not None:
        scale = 1.0 + np.abs(incumbent.y).sum() + 2.0 * incumbent.a.sum()
        if incumbent.objective <= point.objective + tol * scale:
            return LPPoint(incumbent.y, incumbent.a, incumbent.objective, kept=True)
    return point


def constraints(
    problem: GraphProblem, v: FloatArray
) -> tuple[FloatArray, sp.csr_array, FloatArray]:
    """Return cost, G and g of the LP ``min cost' t  s.t.  G t >= g, a >= 0`` in ``t = (y, a)``."""
    rows = _rows(problem, v)
    n = problem.n_nodes
    m = problem.n_labeled
    columns = np.arange(m)
    y_node = sp.eye_array(n, n + 1)
    a_node = sp.csr_array((-rows.ratio, (problem.labeled, columns)), shape=(n, m))
    inverse = 1.0 / rows.ratio
    a_plus = np.where(rows.positive, 1.0 - inverse, 0.0)
    a_minus = np.where(rows.positive, -1.0, -inverse)
    y_apex = sp.csr_array(([1.0], ([1], [n])), shape=(2, n + 1))
    G = sp.block_array(
        [[y_node, a_node], [y_apex, sp.csr_array(np.vstack([a_plus, a_minus]))]], format="csr"
    )
    cost = np.append(np.ones(n + 1), np.full(m, -2.0))
    return cost, G, np.concatenate([rows.base, [-rows.coupling, rows.last]])


def highs(problem: GraphProblem, v: FloatArray) -> LPPoint:
    """Solve the LP by HiGHS' dual simplex, at a vertex (a = 0 without evidence)."""
    from scipy.optimize import linprog

    cost, G, g = constraints(problem, v)
    free = problem.n_nodes + 1
    bounds = np.column_stack([np.full(cost.size, -np.inf), np.full(cost.size, np.inf)])
    bounds[free:, 0] = 0.0
    result = linprog(cost, A_ub=-G, b_ub=-g, bounds=bounds, method="highs-ds")
    if result.x is None:
        raise ArithmeticError(f"HiGHS did not solve the LP: {result.message}")
    return LPPoint(y=result.x[:free], a=np.maximum(result.x[free:], 0.0), objective=result.fun)


def interior_point(problem: GraphProblem, v: FloatArray, *, tol: float = 1e-5) -> LPPoint:
    """Solve the LP by Clarabel without crossover, at a point inside the optimal face (a > 0)."""
    cost, G, g = constraints(problem, v)
    free = problem.n_nodes + 1
    signs = sp.eye_array(cost.size, format="csr")[free:]
    t, _ = clarabel_lp(cost, sp.vstack([G, signs]), np.append(g, np.zeros(signs.shape[0])), tol)
    return LPPoint(y=t[:free], a=np.maximum(t[free:], 0.0), objective=float(cost @ t))


def clarabel_lp(
    cost: FloatArray, G: sp.csr_array, g: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray]:
    """Minimise ``cost' t`` over ``G t >= g`` by Clarabel, and return t and slacks.

    The slacks are those of the central path at the last barrier parameter. They are positive even
    where ``G t - g`` is violated by the tolerance.
    """
    solution = clarabel_qp(None, cost, -G, -g, tol)
    if "Solved" not in str(solution.status):
        raise ArithmeticError(f"Clarabel did not solve the LP: {solution.status}")
    slack = np.asarray(solution.s)
    multiplier = np.asarray(solution.z)
    barrier = float(slack @ multiplier) / slack.size
    return np.asarray(solution.x, dtype=np.float64), barrier / multiplier


# Solves one program: a function of the problem, the first eigenvector of H_bar and the incumbent.
Engine: TypeAlias = Callable[[GraphProblem, FloatArray, LPPoint], LPPoint]
ENGINES: Mapping[str, Engine] = {
    "closed-form": closed_form,
    "highs": lambda problem, v, _: highs(problem, v),
    "interior-point": lambda problem, v, _: interior_point(problem, v),
}
