r"""Exact optimum of (P) for W >= 0: a minimum cut, by SciPy's maximum flow.

With couplings W >= 0 and evidence c (the couplings to the apex) the objective is

    constant - x' W x - 2 c' x = base + 4 cut(x),   base = constant - sum W - 2 sum |c| ,

where cut(x) is the sum of W_ij over pairs of different sign and of |c_i| where x_i differs from the
sign of c_i. This is an s-t cut with capacities W_ij between nodes, c_i from the source if c_i > 0,
and |c_i| to the sink if c_i < 0. So (P) is polynomial for W >= 0 and NP-hard only in the signed
case. The exact optimum is a reference and a certificate; with few labels it is a poor classifier.

*Integers.* SciPy's flow needs integer capacities. They are rounded down from ``capacity / unit``,
so the computed flow is a flow of the true network and ``base + 4 unit flow`` is a certified lower
bound. The cut found costs at most 4 unit more per edge cut. If this gap exceeds the tolerance,
another pass pushes the remaining flow through the residual network in a finer unit. Capacities can
be truncated at the gap, so each pass gains about nine digits.

*Proof.* Cut and flow are sums of non-negative terms, so their difference is accurate, however large
the other weights are. The objective itself is not, because large terms cancel. Only evidence may
suffer from cancellation: the couplings of a node to labels of both signs. Labels are called optimal
only if this error and the gap are within the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from ..arrays import NDArray
from ..gershgorin.bounds import rounding_margin
from ..problem import BinaryQuadratic, GraphProblem, Problem
from .base import OtherMethodsError, Outcome, Run, Solver, StopSolver
from .switching import SwitchedForm, nearby_numbering, switched_form

# Residuals reach the sum of the capacities of two opposite edges, which must stay below 2^31.
_LARGEST = 2**30 - 1
# Relative rounding of cut and flow: two pairwise sums of up to 2^60 terms, and the subtractions of
# a few passes.
_ROUNDING = 256.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class MinCut(Solver):
    """Find the exact optimum by an s-t minimum cut, for non-negative or switchable couplings.

    The lower bound is the value of the flow. ``info`` has ``unit``, the unit of the last integer
    capacities, and ``rounding_gap``, the most by which another labelling can be better.

    Parameters
    ----------
    tol : float, default=1e-9
        Accepted gap between cut and flow, relative to the cut.
    max_iter : int, default=80
        Maximum number of passes, each in a finer unit. Weights that span d decades take about d /
        9.
    """

    name = "min-cut"
    summary = "exact optimum for non-negative weights, by maximum flow"
    kind = "exact"
    bytes_per_edge = 134.0
    binary_quadratic = True

    tol: float = 1e-9
    max_iter: int = 80

    def _check_problem(self, problem: Problem) -> None:
        """Raise an error if switching signs cannot make the couplings non-negative."""
        if not isinstance(problem, GraphProblem | BinaryQuadratic) or not problem.signed:
            super()._check_problem(problem)
            return
        if switched_form(problem.reduced()) is None:
            raise OtherMethodsError(
                f"method {self.name!r} needs couplings that are non-negative, or become so by "
                "switching the signs of variables (a balanced graph), but these do not"
            )

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        with run.stage("reduce"):
            reduced = problem.reduced()
            form = switched_form(reduced)
        assert form is not None  # guaranteed by _check_problem
        with run.stage("order"):
            form, order = nearby_numbering(form)
        tie = problem.majority if isinstance(problem, GraphProblem) else 1
        network = _Network(form)
        base = form.constant - float(form.W.data.sum()) - 2.0 * float(np.abs(form.c).sum())
        best = np.where(form.c < 0, -1, 1).astype(np.int8)
        cost = network.cost(best)
        cancelled = _cancelled_evidence(problem)
        passes = 0
        converged = False
        message = f"max_iter={self.max_iter} reached"
        gap = cost
        try:
            for passes in range(1, self.max_iter + 1):
                with run.stage("flow"):
                    network.push(gap)
                with run.stage("cut"):
                    z = network.labels(tie)
                cost_here = network.cost(z)
                if cost_here <= cost:
                    best = z
                    cost = cost_here
                gap = max(cost - network.flow, 0.0)
                run.report(
                    iteration=passes,
                    objective=form.objective(best),
                    bound=base + 4.0 * network.flow,
                    unit=network.unit,
                )
                if gap + _ROUNDING * cost + cancelled <= self.tol * cost:
                    converged = True
                    message = "cut and flow agree"
                    break
                if gap <= _ROUNDING * cost:
                    # Further passes cannot improve the result.
                    converged = cancelled <= self.tol * cost
                    message = "cut and flow agree"
                    if not converged:
                        message += (
                            ", but couplings to labels of both signs cancel: rounding may hide a "
                            "better labelling"
                        )
                    break
        except StopSolver:
            message = "stopped by the callback"
        x = (best * form.signs).astype(np.int8)
        if order is not None:
            x[order] = x.copy()
        labels = problem.spread(x)
        return Outcome(
            scores=labels.astype(np.float64),
            labels=labels,
            # The margin covers the rounding of sums, the minimum that of an exact bound.
            lower_bound=min(
                base + 4.0 * network.flow - rounding_margin(problem), problem.objective(labels)
            ),
            bound_status="certified",
            bound_kind="optimum",
            iterations=passes,
            converged=converged,
            message=message,
            info={"unit": network.unit, "rounding_gap": 4.0 * (gap + _ROUNDING * cost + cancelled)},
        )


def _cancelled_evidence(problem: Problem) -> float:
    """Bound the effect on the cut of rounding in nearly cancelling couplings to labels."""
    if not isinstance(problem, GraphProblem):
        return 0.0  # the anchor's couplings are exact
    known = problem.labeled
    free = problem.unlabeled
    if known.size == 0 or free.size == 0:
        return 0.0
    to_labels = abs(problem.adjacency[free][:, known])
    terms = np.diff(to_labels.indptr) + (problem.bias[free] != 0)
    sizes = np.asarray(to_labels.sum(axis=1)).ravel() + np.abs(problem.bias[free])
    error = terms * np.finfo(np.float64).eps * sizes
    error[terms == 1] = 0.0
    return float(error[error > 1e-12 * np.abs(problem.vote)].sum())


class _Network:
    """Flow network with the nodes first, then the source, then the sink."""

    # Every edge is stored in both directions, possibly with capacity 0, so that flows, residuals
    # and capacities have the same sparsity pattern.

    def __init__(self, form: SwitchedForm) -> None:
        W = form.W
        n = form.c.size
        self.source = n
        self.sink = n + 1
        degree = np.asarray(W.sum(axis=1)).ravel()
        # Evidence larger than the sum of a node's couplings decides it. Truncating it at twice that
        # sum keeps the decision strict and the unit fine.
        strength = np.minimum(np.abs(form.c), 2.0 * degree)
        self.decided = np.flatnonzero((np.abs(form.c) >= 2.0 * degree) & (form.c != 0))
        self.signs = np.sign(form.c).astype(np.int8)
        tied = np.flatnonzero((form.c != 0) & (degree > 0))
        up = form.c[tied] > 0
        hub = np.where(up, self.source, self.sink)
        rows = np.concatenate([np.repeat(np.arange(n), np.diff(W.indptr)), tied, hub])
        cols = np.concatenate([W.indices, hub, tied])
        into = np.where(up, 0.0, strength[tied])
        out = np.where(up, strength[tied], 0.0)
        capacity = np.concatenate([W.data, into, out])
        rows = rows.astype(np.int32)
        cols = cols.astype(np.int32)
        # Explicit zeros are kept on the way from COO to CSR.
        self.residual = sp.csr_array((capacity, (rows, cols)), shape=(n + 2, n + 2))
        self.residual.sort_indices()
        self.form = form
        self.flow = 0.0
        self.unit = np.inf
        self.saturated = self.residual.data <= 0

    def push(self, missing: float) -> None:
        """Push integer flow through the residual capacities, truncated at the `missing` flow."""
        left = self.residual.data
        # The factor covers rounding errors in the estimate of the missing flow.
        top = min(float(left.max(initial=0.0)), 1.001 * missing + 1e-300)
        if top <= 0:
            return
        unit = max(min(self.unit / 2.0, top / _LARGEST), 5e-324)  # the smallest positive number
        # Truncated capacities still give a flow of the true network.
        whole = np.minimum(np.minimum(left, top) / unit, _LARGEST)
        capacities = sp.csr_array(
            (np.floor(whole).astype(np.int32), self.residual.indices, self.residual.indptr),
            shape=self.residual.shape,
        )
        flow = maximum_flow(capacities, self.source, self.sink, method="dinic").flow
        flow.sort_indices()  # the pattern is that of the capacities, which have all reverse edges
        out = flow.data[flow.indptr[self.source] : flow.indptr[self.source + 1]]
        self.flow += unit * float(out.sum(dtype=np.int64))
        self.saturated = flow.data >= capacities.data
        self.residual.data = np.maximum(left - unit * flow.data, 0.0)
        self.unit = unit

    def labels(self, tie: int) -> NDArray[np.int8]:
        """Return the sides of the cut from reachability; undetermined nodes get `tie`."""
        n = self.source
        edges = (~self.saturated).astype(np.int8), self.residual.indices, self.residual.indptr
        graph = sp.csr_array(edges, shape=self.residual.shape)
        # Search from the source along unsaturated edges, or from the sink against them.
        graph, start, side = (
            (graph.copy(), self.source, 1) if tie < 0 else (graph.T.tocsr(), self.sink, -1)
        )
        graph.eliminate_zeros()
        z = np.full(n + 2, -side, dtype=np.int8)
        z[breadth_first_order(graph, start, return_predecessors=False)] = side
        z = z[:n]
        z[self.decided] = self.signs[self.decided]
        return z

    def cost(self, z: NDArray[np.int8]) -> float:
        """Return the cut of a labelling as a sum of non-negative terms, without cancellation."""
        W = self.form.W
        inner = W.data[np.repeat(z, np.diff(W.indptr)) != z[W.indices]]
        return 0.5 * float(inner.sum()) + float(np.abs(self.form.c[self.signs * z < 0]).sum())
