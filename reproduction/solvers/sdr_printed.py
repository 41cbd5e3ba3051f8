"""The relaxation as the paper prints it: X_ii = 1 on unlabelled nodes only.

All implementations, the authors' too, ask it of all nodes. With ``x_l = xh_l`` given, the printed
form leaves the rows of ``R = X - x x'`` on labelled nodes free. Their optimum given the others is
the harmonic extension, so the problem is

    min  x'Lx + tr(S R_uu),   S = L_uu - L_ul L_ll^-1 L_lu,   R_uu psd, diag(R_uu) = 1 - x_u^2,

against ``tr(L_uu R_uu)`` of the other form: a weaker relaxation, as S <= L_uu. It is solved by low
rank factors: node i has a unit vector (x_i, r_i), ``R_uu = r r'``, and one vector at a time goes to
its minimum, ``(x_i, r_i) ~ (sum_j A_ij x_j + c_i, sum_j P_ij r_j)`` with ``P = D - S`` for a
diagonal D that keeps it from growing (a majorisation: the value never rises). A rank above
sqrt(2 n) has no spurious minimum but on a set of measure zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from gdpa.problem import GraphProblem
from gdpa.solvers.base import Outcome, Run, Solver, StopSolver
from gdpa.solvers.sdr_form import check_dense_size

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SDRPrinted(Solver):
    """Semidefinite relaxation in the paper's printed form, by low-rank factors.

    Parameters
    ----------
    tol : float, default=1e-8
        Relative decrease of the value over a sweep at which it stops.
    max_iter : int, default=2000
        Most sweeps.
    random_state : int, default=0
        Seed of the first factors.

    Notes
    -----
    Scores are the last column of M. ``info["sdr_value"]`` is the value of the relaxation, which has
    no certificate here.
    """

    name = "sdr-printed"
    summary = "semidefinite relaxation as the paper prints it (X_ii = 1 on unlabelled nodes only)"
    kind = "relaxation"

    tol: float = 1e-8
    max_iter: int = 2000
    random_state: int = 0

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        n = problem.unlabeled.size
        check_dense_size(self.name, problem, n, 40.0 * problem.n_nodes**2, "sdr-low-rank")
        with run.stage("reduce"):
            form = _Form.of(problem)
        with run.stage("solve"):
            V, value, sweeps, converged = self._descend(form, run)
        scores = problem.labels.astype(np.float64)
        scores[problem.unlabeled] = V[:, 0]
        message = f"{sweeps} sweeps" if converged else f"stopped after {sweeps} sweeps"
        return Outcome(
            scores=scores,
            iterations=sweeps,
            converged=converged,
            message=message,
            info={"sdr_value": value, "rank": V.shape[1]},
        )

    def _descend(self, form: _Form, run: Run) -> tuple[FloatArray, float, int, bool]:
        n = form.c.size
        rng = np.random.default_rng(self.random_state)
        V = rng.normal(size=(n, int(np.ceil(np.sqrt(2.0 * n))) + 2))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        value = form.value(V)
        for sweep in range(1, self.max_iter + 1):
            for i in range(n):
                v = form.P[i] @ V
                v[0] = form.A[i] @ V[:, 0] + form.c[i]
                length = float(np.sqrt(v @ v))
                if length > 0:
                    V[i] = v / length
            last, value = value, form.value(V)
            try:
                run.report(iteration=sweep, value=value)
            except StopSolver:
                return V, value, sweep, False
            if last - value <= self.tol * (1.0 + abs(value)):
                return V, value, sweep, True
        return V, value, self.max_iter, False


@dataclass(frozen=True)
class _Form:
    """``value = constant - x'Ax - 2 c'x - tr(R'P R)``, both matrices with a diagonal >= 0."""

    A: FloatArray
    P: FloatArray
    c: FloatArray
    constant: float

    @classmethod
    def of(cls, problem: GraphProblem) -> _Form:
        L = problem.L.toarray()
        u, known = problem.unlabeled, problem.labeled
        xh = problem.labels[known].astype(np.float64)
        L_uu, L_ul = L[np.ix_(u, u)], L[np.ix_(u, known)]
        c = problem.bias[u] - L_ul @ xh
        constant = float(xh @ L[np.ix_(known, known)] @ xh - 2.0 * problem.bias[known] @ xh)
        S = L_uu - L_ul @ _solve_psd(L[np.ix_(known, known)], L_ul.T)
        # One shift per node for both parts keeps |(x_i, r_i)| = 1 a constant of the value.
        shift = np.maximum(np.diag(L_uu), np.diag(S))
        A, P = np.diag(shift) - L_uu, np.diag(shift) - S
        return cls(A, P, c, constant + float(shift.sum()))

    def value(self, V: FloatArray) -> float:
        """Value of the relaxation at unit vectors."""
        x, R = V[:, 0], V[:, 1:]
        linear = x @ self.A @ x + 2.0 * self.c @ x
        return self.constant - float(linear) - float(np.einsum("ik,ik->", R, self.P @ R))


def _solve_psd(K: FloatArray, B: FloatArray) -> FloatArray:
    """K^-1 B; where a component is wholly labelled K is singular and B is 0 on it."""
    try:
        return np.asarray(cho_solve(cho_factor(K), B))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(K, B, rcond=None)[0])
