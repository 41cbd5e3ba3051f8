"""BCR: biconvex relaxation (Shah, Yadav, Castillo, Jacobs, Studer, Goldstein 2016).

The method replaces the matrix of the SDR by x x', and every constraint ``<A_i, x x'> = b_i`` with
``A_i = L_i' L_i`` by an auxiliary vector ``q_i`` in a ball:

    min  x' C x + alpha/2 sum |q_i - L_i x|^2 - beta/2 sum |q_i|^2    over  |q_i|^2 <= b_i,

with ``C = [L -h; -h' 0]`` on the nodes and one apex, ``beta = |C|_F`` and ``alpha = 2 beta``. The
method alternates between q (``L_i x``, scaled and projected to the ball) and x (a linear system
with a fixed matrix). Since alpha > beta both steps are strictly convex, so the value never rises.

Two variants:

``"stated"``
    The problem as stated. The relaxation needs positive semi-definite A_i, but
    ``B_i = e_i e_a' + e_a e_i'`` is indefinite. With ``x_i^2 = x_a^2 = 1`` the label constraint is
    equivalent to ``(x_i + label_i x_a)^2 = 4``, which is positive semi-definite of rank one.
``"authors"``
    The version in the published comparison: C with its sign reversed, the indefinite ``label_i
    B_i`` with value 2 and its complex principal square root, and no factor alpha in the update of
    x. For real x the roots need not be formed: ``L^H L`` of ``+-B_i`` is the identity on nodes i
    and a, so everything stays real. The sign of the result is arbitrary. Here the apex determines
    it; the published numbers choose it by the test labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ...arrays import FloatArray
from ...errors import UnsupportedProblemError
from ...memory import USABLE_SHARE, available_memory
from ...problem import GraphProblem
from ..base import Outcome, Run, Solver, StopSolver

DENSE_SHARE = 0.1  # a dense factorisation is used above this share of non-zeros


@dataclass(frozen=True, kw_only=True)
class BCR(Solver):
    """Solve the biconvex relaxation of the SDR.

    Parameters
    ----------
    tol : float, default=1e-4
        Stop when the objective changes by at most this (C scaled to a mean diagonal of 1).
    max_iter : int, default=100
        Maximum number of rounds.
    variant : {"stated", "authors"}, default="stated"
        The problem as stated, or the version of the published comparison (sign of C reversed).
    """

    name = "bcr"
    summary = "biconvex relaxation (Shah et al. 2016)"
    kind = "heuristic"
    choices: ClassVar[dict[str, Any]] = {"variant": ("stated", "authors")}

    tol: float = 1e-4
    max_iter: int = 100
    variant: str = "stated"

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        with run.stage("setup"):
            C = _scaled_cost(problem)
            labels = problem.labels.astype(np.float64)
            beta = float(np.sqrt((C.data**2).sum()))
            x = _start(problem) if self.x0 is None else np.append(self.x0, 1.0)
            form = (_Stated if self.variant == "stated" else _Authors)(C, labels, beta)
        objective = np.inf
        rounds = 0
        converged = False
        try:
            with run.stage("rounds"):
                for _ in range(self.max_iter):
                    rounds += 1
                    x, value = form.round(x)
                    moved = abs(value - objective)
                    objective = value
                    run.report(objective=value, moved=moved)
                    if moved <= self.tol:
                        converged = True
                        break
            message = f"the objective changed by {moved:.2g} in round {rounds}"
        except StopSolver:
            message = f"stopped by the callback after {rounds} rounds"
        return Outcome(
            scores=x[:-1] if x[-1] >= 0 else -x[:-1],
            iterations=rounds,
            converged=converged,
            message=message,
            info={"relaxed_objective": objective, "apex": abs(float(x[-1]))},
        )


class _Stated:
    """Rounds of the relaxation with positive semi-definite constraints."""

    def __init__(self, C: sp.csr_array, labels: FloatArray, beta: float) -> None:
        known = np.flatnonzero(labels)
        n = C.shape[0]
        m = known.size
        rows = np.tile(np.arange(m), 2)
        columns = np.concatenate([known, np.full(m, n - 1)])
        values = np.concatenate([np.ones(m), labels[known]])
        pairs = sp.csr_array((values, (rows, columns)), shape=(m, n))
        self.C = C
        self.beta = beta
        self.alpha = 2.0 * beta
        self.constraints = sp.vstack([sp.eye_array(n), pairs], format="csr")  # one L_i a row
        self.radius = np.concatenate([np.ones(n), np.full(m, 2.0)])
        matrix = 2.0 * C + self.alpha * (self.constraints.T @ self.constraints)
        self.solve = _factorised(matrix, definite=True)

    def round(self, x: FloatArray) -> tuple[FloatArray, float]:
        """Update q and x, and return x and the objective."""
        stretch = self.alpha / (self.alpha - self.beta)
        q = np.clip(stretch * (self.constraints @ x), -self.radius, self.radius)
        x = self.solve(self.alpha * (self.constraints.T @ q))
        distance = q - self.constraints @ x
        value = (
            x @ (self.C @ x) + 0.5 * self.alpha * (distance @ distance) - 0.5 * self.beta * (q @ q)
        )
        return x, float(value)


class _Authors:
    """Rounds of the published comparison: C reversed, indefinite label constraints."""

    def __init__(self, C: sp.csr_array, labels: FloatArray, beta: float) -> None:
        n = C.shape[0]
        self.C = -C
        self.beta = beta
        self.alpha = 2.0 * beta
        self.known = np.flatnonzero(labels)
        column = sp.csr_array(np.append(labels, 0.0)[:, None])
        apex = sp.csr_array(([1.0], ([0], [n - 1])), shape=(1, n))
        coupling = column @ apex
        total = sp.eye_array(n) + coupling + coupling.T  # sum of all constraints
        self.solve = _factorised(self.alpha * total + self.C, definite=False)

    def round(self, x: FloatArray) -> tuple[FloatArray, float]:
        """Update q and x, and return x and the authors' objective (|q| is not squared in it)."""
        stretch = self.alpha / (self.alpha - self.beta)
        single = np.abs(x)  # |L_i x| of e_i e_i'
        pair = np.hypot(x[self.known], x[-1])  # |L_i x| of +-B_i
        single_q = np.minimum(stretch * single, 1.0)
        pair_q = np.minimum(stretch * pair, np.sqrt(2.0))
        # sum L_i^H q_i, q_i = |q_i| L_i x / |L_i x|, with L_i^H L_i the identity on i (and a).
        ratio = np.divide(pair_q, pair, out=np.full_like(pair, stretch), where=pair > 0)
        total = np.copysign(single_q, x)
        total[self.known] += ratio * x[self.known]
        total[-1] += ratio.sum() * x[-1]
        x = self.solve(total)
        value = x @ (self.C @ x) - 0.5 * self.beta * (single_q.sum() + pair_q.sum())
        return x, float(value)


def _scaled_cost(problem: GraphProblem) -> sp.csr_array:
    """Return ``[L -h; -h' 0]``, scaled to a mean diagonal of 1 without overflow."""
    largest = max(float(problem.diagonal.max()), float(np.abs(problem.bias).max()))
    scale = max(
        float((problem.diagonal / largest).mean()), float(np.abs(problem.bias / largest).max())
    )
    L = problem.L
    # SciPy divides by a scalar by multiplying with its reciprocal, which may overflow.
    L = sp.csr_array(((L.data / largest) / scale, L.indices, L.indptr), shape=L.shape)
    h = sp.csr_array(-((problem.bias / largest) / scale)[:, None])
    return sp.block_array([[L, h], [h.T, None]], format="csr")


def _start(problem: GraphProblem) -> FloatArray:
    """Return the scaled leading eigenvector of mean(value_i constraint_i) in closed form."""
    # The matrix is (I + 2 sum label_i B_i) / count. Its eigenvalue 1 + 2 sqrt(m) belongs to the
    # vector of the labels over sqrt(2 m), with 1 / sqrt(2) at the apex.
    m = problem.n_labeled
    value = (1.0 + 2.0 * np.sqrt(m)) / (problem.n_nodes + 1 + m)
    x = np.append(problem.labels / np.sqrt(2.0 * max(m, 1)), np.sqrt(0.5 if m else 1.0))
    return np.asarray(np.sqrt(value / 2.0) * x)


def _factorised(A: sp.csr_array, *, definite: bool) -> Callable[[FloatArray], FloatArray]:
    """Factorise A and return a function that solves with it."""
    n = A.shape[0]
    if A.nnz < DENSE_SHARE * n * n and n > 200:
        factor = splu(
            A.tocsc(),
            permc_spec="MMD_AT_PLUS_A" if definite else "COLAMD",
            options={"SymmetricMode": definite},
        )
        return lambda b: np.asarray(factor.solve(b))
    n_bytes = 16.0 * n * n
    available = USABLE_SHARE * available_memory()
    if n_bytes > available:
        raise UnsupportedProblemError(
            f"method 'bcr' needs about {n_bytes / 2**30:.3g} GiB for a dense system of {n} rows, "
            f"but only {available / 2**30:.3g} GiB are available; methods that can solve this "
            "problem: glr-box, harmonic, vote, gdpa, min-cut"
        )
    if definite:
        cholesky = scipy.linalg.cho_factor(A.toarray(), overwrite_a=True, check_finite=False)
        return lambda b: np.asarray(scipy.linalg.cho_solve(cholesky, b, check_finite=False))
    lu = scipy.linalg.lu_factor(A.toarray(), overwrite_a=True, check_finite=False)
    return lambda b: np.asarray(scipy.linalg.lu_solve(lu, b, check_finite=False))
