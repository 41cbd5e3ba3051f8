"""SDcut: the spectrahedron-based relaxation (Wang, Shen, van den Hengel 2013).

The SDR with the penalty ``sigma |M|_F^2`` added has a smooth dual in ``u = (y, z)``. With the
matrix of the dual, ``C(u) = [L + diag(y), g - h; (g - h)', y_apex]`` (g is z on labelled nodes, 0
else), and ``C_-`` its negative eigenvalue part,

    min_u  f(u) = |C_-(u)|_F^2 / (4 sigma) + 1'y + b'z,     b = 2 label,
    df/du_k = <C_-(u), K_k> / (2 sigma) + b_k,

where K_k is the k-th constraint matrix. L-BFGS-B minimises f, and each evaluation needs only the
negative eigenpairs of C(u). ``M = -C_- / (2 sigma)`` is never formed, because the gradient needs
only its diagonal and its last column. Labels are the signs of the first eigenvector v of C(u*),
oriented by ``label_1 v_1``.

Bound. Every feasible M of the SDR is positive semi-definite with trace N + 1, so for *any* u

    SDR >= -(1'y + b'z) + (N + 1) min(0, lmin(C(u))),

and it is certified if a Cholesky factorisation proves the eigenvalue, including rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg
import scipy.optimize

from ...arrays import FloatArray, NDArray
from ...linalg.psd_proof import proved_psd
from ...problem import GraphProblem
from ...problem.dual import DualVariables, oriented
from ...solution import BoundStatus
from ..base import Outcome, Run, Solver, StopSolver
from ..sdr_form import check_dense_size

DENSE_COPIES = 6  # dense matrices at the peak: C, C(u), its eigenvectors, LAPACK's workspace
PARTIAL_SHARE = 0.1  # below this share of negative eigenvalues only those are computed


@dataclass(frozen=True, kw_only=True)
class SDcut(Solver):
    """Solve the spectrahedron-based relaxation of the SDR.

    Parameters
    ----------
    tol : float, default=1e-3
        Largest entry of the gradient at which L-BFGS-B stops (C scaled to a mean diagonal of 1).
    max_iter : int, default=100
        Maximum number of L-BFGS-B iterations.
    sigma : float, default=100
        Weight of the penalty, for C scaled to a mean diagonal of 1. Smaller values are closer to
        the SDR but slower.
    corrections : int, default=200
        Number of corrections that L-BFGS-B keeps.
    """

    name = "sdcut"
    summary = "SDCut: semidefinite relaxation with a penalty, by L-BFGS-B"
    kind = "relaxation"
    positive = ("sigma",)
    whole: ClassVar[dict[str, int]] = {"corrections": 1}

    tol: float = 1e-3
    max_iter: int = 100
    sigma: float = 100.0
    corrections: int = 200

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        n = problem.n_nodes + 1
        check_dense_size(self.name, problem, n, 8.0 * DENSE_COPIES * n * n, "sdr-low-rank, glr-box")
        with run.stage("setup"):
            dual = _PenalisedDual.of(problem, self.sigma)
            last = dual.start()

        def progress(intermediate_result: scipy.optimize.OptimizeResult) -> None:
            last[:] = intermediate_result.x
            run.report(objective=float(intermediate_result.fun))

        try:
            with run.stage("l-bfgs-b"):
                result = scipy.optimize.minimize(
                    dual.value_and_gradient,
                    last.copy(),
                    jac=True,
                    method="L-BFGS-B",
                    callback=progress,
                    options={
                        "maxiter": self.max_iter,
                        "maxfun": 20 * self.max_iter,
                        "maxcor": self.corrections,
                        "gtol": self.tol,
                        "ftol": 1e7 * np.finfo(float).eps,
                    },
                )
            u = result.x
            converged = bool(result.success)
            message = str(result.message).strip().lower()
        except StopSolver:
            u = last
            converged = False
            message = "stopped by the callback"
        with run.stage("labels"):
            values, vectors = scipy.linalg.eigh(
                dual.matrix(u), subset_by_index=(0, 0), overwrite_a=True, check_finite=False
            )
        with run.stage("bound"):
            bound, status = dual.bound(u, float(values[0]))
        return Outcome(
            scores=oriented(problem, vectors[:, 0], sign="first"),
            lower_bound=bound,
            bound_status=status,
            iterations=len(run.history),
            converged=converged,
            message=message,
            dual=DualVariables(y=dual.scale * u[:n], z=dual.scale * u[n:]),
            info={"evaluations": dual.evaluations, "negative_eigenvalues": dual.negative},
        )


@dataclass
class _PenalisedDual:
    """f(u), its gradient and the bound, with C scaled to a mean diagonal of 1."""

    C: FloatArray
    known: NDArray[np.intp]
    labels: FloatArray
    sigma: float
    scale: float
    evaluations: int = 0
    negative: int = 0

    @classmethod
    def of(cls, problem: GraphProblem, sigma: float) -> _PenalisedDual:
        n = problem.n_nodes
        largest = max(float(problem.diagonal.max()), float(np.abs(problem.bias).max()))
        scale = largest * max(
            float((problem.diagonal / largest).mean()), float(np.abs(problem.bias / largest).max())
        )
        C = np.zeros((n + 1, n + 1))
        C[:n, :n] = problem.L.toarray() / scale
        C[:n, n] = C[n, :n] = -problem.bias / scale
        known = problem.labeled
        return cls(C, known, problem.labels[known].astype(np.float64), sigma, scale)

    @property
    def b(self) -> FloatArray:
        """Right-hand sides: 1 for each node and the apex, 2 label for each label."""
        return np.concatenate([np.ones(self.C.shape[0]), 2.0 * self.labels])

    def start(self) -> FloatArray:
        """Return the paper's start: y = 1 on labelled nodes, M at the apex, z = -label."""
        y = np.zeros(self.C.shape[0])
        y[self.known] = 1.0
        y[-1] = self.known.size
        return np.concatenate([y, -self.labels])

    def matrix(self, u: FloatArray) -> FloatArray:
        """Return C(u)."""
        n = self.C.shape[0]
        A = self.C.copy()
        A[np.diag_indices(n)] += u[:n]
        A[self.known, n - 1] += u[n:]
        A[n - 1, self.known] += u[n:]
        return A

    def value_and_gradient(self, u: FloatArray) -> tuple[float, FloatArray]:
        """Return f(u) and its gradient from the negative eigenpairs."""
        n = self.C.shape[0]
        # With many negative eigenvalues divide and conquer on all of them is faster.
        few = self.negative < PARTIAL_SHARE * n
        values, V = scipy.linalg.eigh(
            self.matrix(u),
            subset_by_value=(-np.inf, 0.0) if few else None,
            driver="evr" if few else "evd",
            overwrite_a=True,
            check_finite=False,
        )
        values, V = values[values < 0], V[:, values < 0]
        self.evaluations += 1
        self.negative = int(values.size)
        gradient = self.b
        f = float(values @ values) / (4.0 * self.sigma) + float(gradient @ u)
        weighted = V * values
        gradient[:n] += np.einsum("ij,ij->i", weighted, V) / (2.0 * self.sigma)
        gradient[n:] += (weighted[self.known] @ V[n - 1]) / self.sigma
        return f, gradient

    def bound(self, u: FloatArray, lmin: float) -> tuple[float, BoundStatus]:
        """Return the lower bound of the SDR at u, in units of the problem."""
        n = self.C.shape[0]
        terms = self.b * u
        eps = np.finfo(float).eps
        # Covers the rounding of the sum, of the scaling and of the entries of C(u).
        slack = 4.0 * eps * (u.size + 4) * float(np.abs(terms).sum() + np.abs(self.C).sum())
        proved = proved_smallest_eigenvalue(self.matrix(u), lmin)
        value = n * min(0.0, lmin if proved is None else proved) - float(terms.sum()) - slack
        return self.scale * value, "estimated" if proved is None else "certified"


def proved_smallest_eigenvalue(A: FloatArray, estimate: float) -> float | None:
    """Return a proved lower bound of the eigenvalues of a dense matrix, or None.

    The bound is below `estimate`, the computed smallest eigenvalue, only by rounding. The diagonal
    of A is overwritten.
    """
    n = A.shape[0]
    diagonal = A.diagonal().copy()
    size = float(np.abs(diagonal - estimate).sum() + np.abs(diagonal).max() + abs(estimate))
    margin = (n + 4) * np.finfo(float).eps * size
    for factor in (4.0, 32.0, 1e3, 1e6):
        s = estimate - factor * margin
        A[np.diag_indices(n)] = diagonal - s
        if proved_psd(A):
            return float(s - margin)  # the margin covers the rounding of `diagonal - s`
    return None
