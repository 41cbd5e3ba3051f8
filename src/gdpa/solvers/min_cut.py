r"""The exact optimum of (P) for W >= 0: a minimum cut, by SciPy's maximum flow.

With couplings W >= 0 and evidence c (the couplings to the apex) the objective is

    constant - x' W x - 2 c' x = base + 4 cut(x),   base = constant - sum W - 2 sum |c| ,

where cut(x) adds up W_ij over pairs of different sign and |c_i| where x_i differs from the sign of
c_i: an s-t cut with capacities W_ij between nodes, c_i from the source where c_i > 0 and |c_i| to
the sink where c_i < 0. So (P) is polynomial; NP-hard is the signed case. THEORY: the exact optimum
is a reference and a certificate; as a classifier it is poor when labels are few.

*Integers.* SciPy's flow takes integer capacities. They are rounded down from ``capacity / unit``,
so the flow found is a flow of the true network and ``base + 4 unit flow`` a certified lower bound;
the cut found costs at most 4 unit more per edge cut. If that gap is not within the tolerance, a
further pass pushes what is left through the residual network, in a finer unit: only the gap is
left to be pushed, so capacities can be cut off there, and each pass gains some nine digits.

*Proof.* Cut and flow are sums of non-negative terms, so their difference is known to a few digits
less than their size, however large the other weights are; the objective itself, in which these
cancel, is not. The one thing that may be cancelled away is evidence: the couplings of a node to
labels of both signs. Labels are called optimal only if that and the gap are within the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from ..gershgorin.bounds import rounding_margin
from ..problem import BinaryQuadratic, GraphProblem, Problem
from .base import OtherMethodsError, Outcome, Run, Solver, StopSolver
from .switching import SwitchedForm, nearby_numbering, switched_form

FloatArray = NDArray[np.float64]

# Flow on an edge goes from -capacity to +capacity of the opposite edge, so residuals reach the sum
# of two capacities: that must stay below 2^31.
_LARGEST = 2**30 - 1
# Rounding of cut and flow, relative: NumPy's pairwise sums of up to 2^60 terms, twice, and the
# subtractions in a few passes.
_ROUNDING = 256.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class MinCut(Solver):
    """Exact optimum by an s-t minimum cut, for non-negative (or switchable) couplings.

    The objective is that of the labels; the lower bound is the flow's value. ``info`` has
    ``unit`` (of the last integer capacities) and ``rounding_gap``: by no more than
    this can another labelling be better.

    Parameters
    ----------
    tol : float, default=1e-9
        Accepted gap between cut and flow, relative to the cut.
    max_iter : int, default=80
        Most passes, each in a finer unit; weights that span d decades take some d / 9.
    """

    name = "min-cut"
    summary = "exact optimum for non-negative weights, by maximum flow"
    kind = "exact"
    binary_quadratic = True

    tol: float = 1e-9
    max_iter: int = 80

    def _check_problem(self, problem: Problem) -> None:
        """Refuse couplings that no switching of signs makes non-negative."""
        if not isinstance(problem, GraphProblem | BinaryQuadratic) or not problem.signed:
            super()._check_problem(problem)
            return
        if switched_form(problem.reduced()) is None:
            raise OtherMethodsError(
                f"method {self.name!r} needs couplings that are non-negative, or that become so by "
                "switching the signs of variables (a balanced graph), and these are not"
            )

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        with run.stage("reduce"):
            reduced = problem.reduced()
            form = switched_form(reduced)
        assert form is not None  # _check_problem saw to it
        with run.stage("order"):
            form, order = nearby_numbering(form)
        tie = problem.majority if isinstance(problem, GraphProblem) else 1
        network = _Network(form)
        base = form.constant - float(form.W.data.sum()) - 2.0 * float(np.abs(form.c).sum())
        best = np.where(form.c < 0, -1, 1).astype(np.int8)
        cost = network.cost(best)
        cancelled = _cancelled_evidence(problem)
        passes, converged, message = 0, False, f"max_iter={self.max_iter} reached"
        gap = cost
        try:
            for passes in range(1, self.max_iter + 1):
                with run.stage("flow"):
                    network.push(gap)
                with run.stage("cut"):
                    z = network.labels(tie)
                cost_here = network.cost(z)
                if cost_here <= cost:
                    best, cost = z, cost_here
                gap = max(cost - network.flow, 0.0)
                run.report(
                    iteration=passes,
                    objective=form.objective(best),
                    bound=base + 4.0 * network.flow,
                    unit=network.unit,
                )
                if gap + _ROUNDING * cost + cancelled <= self.tol * cost:
                    converged, message = True, "cut and flow agree"
                    break
                if gap <= _ROUNDING * cost:
                    # Nothing is left to be gained; a cut of nothing needs no tolerance.
                    converged = cancelled <= self.tol * cost
                    message = (
                        "cut and flow agree"
                        if converged
                        else "cut and flow agree, but couplings to labels of both signs cancel: "
                        "rounding may hide a better labelling"
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
            # The margin covers the rounding of sums, the minimum that of a bound that is exact.
            lower_bound=min(
                base + 4.0 * network.flow - rounding_margin(problem), problem.objective(labels)
            ),
            bound_status="certified",
            bound_kind="optimum",
            iterations=passes,
            converged=converged,
            message=message,
            info={
                "unit": network.unit,
                "rounding_gap": 4.0 * (gap + _ROUNDING * cost + cancelled),
            },
        )


def _cancelled_evidence(problem: Problem) -> float:
    """Bound what rounding in the couplings to the labels can do to the cut.

    Where a node's couplings to labels nearly cancel, the rounding of their sum is not small beside
    it; those errors are added up. Elsewhere it is a relative error of no consequence.
    """
    if not isinstance(problem, GraphProblem):
        return 0.0  # the anchor's couplings are given as they are
    known, free = problem.labeled, problem.unlabeled
    if known.size == 0 or free.size == 0:
        return 0.0
    to_labels = abs(problem.adjacency[free][:, known])
    terms = np.diff(to_labels.indptr) + (problem.bias[free] != 0)
    sizes = np.asarray(to_labels.sum(axis=1)).ravel() + np.abs(problem.bias[free])
    error = terms * np.finfo(np.float64).eps * sizes
    error[terms == 1] = 0.0
    return float(error[error > 1e-12 * np.abs(problem.vote)].sum())


class _Network:
    """The flow network in canonical order: nodes, then the source, then the sink.

    Every edge is stored in both directions (the reverse of a terminal's edge with capacity 0), so
    that flows, residuals and capacities share one pattern.
    """

    def __init__(self, form: SwitchedForm) -> None:
        W, n = form.W, form.c.size
        self.source, self.sink = n, n + 1
        degree = np.asarray(W.sum(axis=1)).ravel()
        # Evidence beyond the sum of all couplings decides the node; more would only coarsen the
        # unit. Twice that sum keeps the decision strict. What is cut off never flows.
        strength = np.minimum(np.abs(form.c), 2.0 * degree)
        self.decided = np.flatnonzero((np.abs(form.c) >= 2.0 * degree) & (form.c != 0))
        self.signs = np.sign(form.c).astype(np.int8)
        tied = np.flatnonzero((form.c != 0) & (degree > 0))
        up = form.c[tied] > 0
        hub = np.where(up, self.source, self.sink)
        rows = np.concatenate([np.repeat(np.arange(n), np.diff(W.indptr)), tied, hub])
        cols = np.concatenate([W.indices, hub, tied])
        into, out = np.where(up, 0.0, strength[tied]), np.where(up, strength[tied], 0.0)
        capacity = np.concatenate([W.data, into, out])
        rows, cols = rows.astype(np.int32), cols.astype(np.int32)
        # Explicit zeros are kept on the way from COO to CSR.
        self.residual = sp.csr_array((capacity, (rows, cols)), shape=(n + 2, n + 2))
        self.residual.sort_indices()
        self.form = form
        self.flow = 0.0
        self.unit = np.inf
        self.saturated = self.residual.data <= 0

    def push(self, missing: float) -> None:
        """Push as much flow as whole units allow through what is left of the capacities.

        Parameters
        ----------
        missing : float
            No more flow than this can be missing, so larger capacities are cut off there.
        """
        left = self.residual.data
        # A cut-off that is generous: the estimate of what is missing has rounding errors.
        top = min(float(left.max(initial=0.0)), 1.001 * missing + 1e-300)
        if top <= 0:
            return
        unit = max(min(self.unit / 2.0, top / _LARGEST), 5e-324)  # the least positive number
        # Beyond the largest integer a capacity is taken for that: still a flow of the network.
        whole = np.minimum(np.minimum(left, top) / unit, _LARGEST)
        capacities = sp.csr_array(
            (np.floor(whole).astype(np.int32), self.residual.indices, self.residual.indptr),
            shape=self.residual.shape,
        )
        flow = maximum_flow(capacities, self.source, self.sink, method="dinic").flow
        flow.sort_indices()
        flow = sp.csr_array(flow)
        same = np.array_equal(flow.indptr, capacities.indptr) and np.array_equal(
            flow.indices, capacities.indices
        )
        if not same:  # pragma: no cover - SciPy adds reverse edges only where there were none
            raise RuntimeError("the flow does not have the pattern of the capacities")
        out = flow.data[flow.indptr[self.source] : flow.indptr[self.source + 1]]
        self.flow += unit * float(out.sum(dtype=np.int64))
        self.saturated = flow.data >= capacities.data
        self.residual.data = np.maximum(left - unit * flow.data, 0.0)
        self.unit = unit

    def labels(self, tie: int) -> NDArray[np.int8]:
        """Read the side of the cut from what can still be reached; free nodes get `tie`."""
        n = self.source
        edges = (~self.saturated).astype(np.int8), self.residual.indices, self.residual.indptr
        graph = sp.csr_array(edges, shape=self.residual.shape)
        # From the source along the open edges, or from the sink against them.
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
        """Cut of a labelling: sums of what is cut, nothing else, so nothing cancels."""
        W = self.form.W
        inner = W.data[np.repeat(z, np.diff(W.indptr)) != z[W.indices]]
        return 0.5 * float(inner.sum()) + float(np.abs(self.form.c[self.signs * z < 0]).sum())
