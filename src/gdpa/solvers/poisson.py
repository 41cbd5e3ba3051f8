"""Poisson learning: labels are sources and sinks on the graph.

    L u = sum_j (y_j - mean y) delta_j        (Calder, Cook, Thorpe, Slepcev 2020)

With one label per class the harmonic function is nearly constant away from the labels, and tiny
differences decide the largest score. Poisson learning removes the constant. It is the limit of the
labelled system with centred targets and a small label weight, on the combinatorial Laplacian.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..gershgorin.bounds import relaxation_bound
from ..graph.adjacency import component_labels, degrees
from ..linalg.spd import SPDResult
from ..policy import DEFAULT_POLICY, Policy
from ..problem import ClassProblem, GraphProblem
from ..system import LabeledSystem
from .base import Callback, OtherMethodsError, Outcome, Run, Solver

# The potential is unique only up to a constant, so labels get a small weight, relative to the mean
# degree, and all nodes a self-loop, relative to that weight.
LABEL_WEIGHT = 1e-6
SELF_LOOP = 1e-9
# Potentials beyond this number of standard deviations are cut off before the exponential.
LARGEST_POTENTIAL = 30.0


@dataclass(frozen=True, kw_only=True)
class Poisson(Solver):
    """Solve Poisson's equation with the labels as sources.

    Parameters
    ----------
    policy : Policy
        Size limits of the linear solve.
    n_jobs : int, optional
        Threads of the linear solve; results do not depend on it.
    tol, max_iter, x0, callback, random_state
        As in :class:`~gdpa.solvers.Solver`; `x0` is not used.
    """

    name: ClassVar[str] = "poisson"
    summary: ClassVar[str] = "Poisson learning: labels are sources on the graph, for few labels"
    kind: ClassVar[str] = "limit"
    bytes_per_edge: ClassVar[float] = 26.0

    tol: float = 1e-4
    policy: Policy = DEFAULT_POLICY
    n_jobs: int | None = None

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        refuse_bias(problem, self.name)
        signs = problem.labels[problem.labeled, None].astype(np.float64)
        with run.stage("solve"):
            result = self.potential(problem, signs, callback=run.watch)
        u = result.x[:, 0]
        with run.stage("bound"):
            bound = relaxation_bound(problem, u / max(float(np.abs(u).max()), 1e-300))
        return Outcome.of(
            result,
            u,
            lower_bound=bound,
            bound_status="certified" if np.isfinite(bound) else "none",
            info={"residual": result.residual, "matvecs": result.matvecs},
        )

    def potential(
        self,
        problem: GraphProblem | ClassProblem,
        targets: FloatArray,
        *,
        callback: Callback | None = None,
    ) -> SPDResult:
        """Return the solution u of Poisson's equation, one column per column of `targets`.

        Weights are divided by the power of two nearest to the largest degree, so that u neither
        overflows nor underflows.
        """
        W = unit_weights(problem.W)
        d = degrees(W)
        component = component_labels(W)[1]
        # The equation of a component has a solution only if its sources balance.
        at = component[problem.labeled]
        means = component_means(targets, at, np.ones(at.size), int(component.max()) + 1)
        centred = targets - means[at]
        weight = LABEL_WEIGHT * max(float(d.mean()), 1e-300)
        system = LabeledSystem(
            W,
            d,
            problem.labeled,
            centred,
            label_weight=weight,
            self_loop=SELF_LOOP * weight,
            policy=self.policy,
            n_jobs=self.n_jobs,
        )
        result = system.solve(tol=self.tol, max_iter=self.max_iter, callback=callback)
        u = (result.x - component_means(result.x, component, d)[component]) / weight
        # The solution is unique up to a constant per component, which its labels determine.
        present = np.bincount(at, minlength=means.shape[0]) > 0
        offset = np.where(present[:, None], means - targets.mean(axis=0), 0.0)
        return replace(result, x=u + max(float(np.abs(u).max()), 1.0) * offset[component])


def refuse_bias(problem: GraphProblem, method: str) -> None:
    """Raise an error if a problem has linear terms, which this method does not support."""
    if problem.bias.any():
        raise OtherMethodsError(f"method {method!r} supports labels only, not a bias")


def unit_weights(W: sp.csr_array) -> sp.csr_array:
    """Divide weights by a power of two so that the largest degree is between 1/2 and 1."""
    with np.errstate(over="ignore"):
        largest = float(degrees(W).max(initial=0.0))
    exponent = int(np.frexp(largest)[1]) if 0.0 < largest < np.inf else 0
    data = np.ldexp(W.data, -exponent)
    return sp.csr_array((data, W.indices, W.indptr), shape=W.shape)


def component_means(
    values: FloatArray, component: NDArray[np.int32], weights: FloatArray, n: int = 0
) -> FloatArray:
    """Return the weighted mean of each column in each component (at least `n` of them)."""
    total = np.maximum(np.bincount(component, weights=weights, minlength=n), 1e-300)
    sums = [np.bincount(component, weights=weights * v, minlength=n) for v in values.T]
    return np.asarray(np.column_stack(sums) / total[:, None])


def positive_scores(potential: FloatArray, deviation: float | None = None) -> FloatArray:
    """Turn potentials, divided by their standard deviation, into positive scores by exp.

    Parameters
    ----------
    potential : ndarray
        Potentials of some nodes.
    deviation : float, optional
        Standard deviation of the potentials of all nodes, if these are only some of them.
    """
    scale = float(potential.std()) if deviation is None else deviation
    if scale == 0.0:
        return np.ones_like(potential)
    return np.asarray(np.exp(np.clip(potential / scale, -LARGEST_POTENTIAL, LARGEST_POTENTIAL)))
