"""Shared parts of the semidefinite methods: the dense reduced form and its certificate.

The relaxation on the reduced form (labelled nodes merged into one apex) and its dual are

    (SDR)   min  constant - <P, X>   subject to  X_ii = 1,  X psd,
    (dual)  max  constant - 1's      subject to  diag(s) - P psd.

A computed s is only nearly feasible. :func:`certified_dual` raises it until a Cholesky
factorisation *proves* feasibility, including rounding. Then ``constant - 1's`` is a lower bound of
the relaxation and of the problem, whatever the solver did.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ..arrays import FloatArray, NDArray
from ..errors import UnsupportedProblemError
from ..linalg.operator import EPS
from ..linalg.psd_proof import proved_psd
from ..memory import USABLE_SHARE, available_memory
from ..problem import GraphProblem, Problem
from .base import Outcome, Run, Solver
from .conic import ConicResult


@dataclass(frozen=True, eq=False)
class DenseForm:
    """Reduced form with a dense, scaled matrix.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Couplings divided by `scale`, symmetric, zero diagonal, columns contiguous.
    scale : float
        A power of two, so that scaling is exact. The mean absolute row sum of P is near 1.
    constant : float
        Contribution of the merged nodes, not scaled.
    apex : int
        Index of the node whose value is fixed to +1.
    nodes : ndarray
        Nodes of the problem behind the other rows.
    """

    P: FloatArray
    scale: float
    constant: float
    apex: int
    nodes: NDArray[np.intp]

    @property
    def n(self) -> int:
        """Number of rows, the apex included."""
        return int(self.P.shape[0])

    def values(self, primal: float, dual: float) -> dict[str, float]:
        """Return the values of ``<P, X>`` and ``1's`` in units of the problem, and their gap."""
        upper, lower = (self.constant - self.scale * value for value in (primal, dual))
        return {"primal": upper, "dual": lower, "gap": upper - lower}


def check_dense_size(method: str, problem: Problem, n: int, n_bytes: float, advice: str) -> None:
    """Raise an error, before anything is allocated, if a dense problem does not fit in memory.

    Parameters
    ----------
    method : str
        Name of the method.
    problem : GraphProblem or BinaryQuadratic
        The problem.
    n : int
        Rows of the semidefinite matrix.
    n_bytes : float
        Estimated peak memory.
    advice : str
        Methods that can solve the problem, most similar first.
    """
    if n_bytes < 2**26:  # small enough for any machine
        return
    available = USABLE_SHARE * available_memory()
    if n_bytes > available:
        others = f"{advice}, min-cut (exact), harmonic" if not problem.signed else advice
        raise UnsupportedProblemError(
            f"method {method!r} needs about {n_bytes / 2**30:.3g} GiB for a semidefinite matrix of "
            f"{n} rows, but only {available / 2**30:.3g} GiB are available; methods that can solve "
            f"this problem: {others}"
        )


def dense_form(problem: Problem) -> DenseForm:
    """Return the reduced form of a problem as a dense, scaled matrix."""
    form = problem.reduced()
    P = np.asfortranarray(form.P.toarray(order="F"))
    mean = float(np.abs(form.P.data).sum()) / P.shape[0]
    # The floor keeps the scale positive for subnormal weights.
    scale = float(2.0 ** np.ceil(np.log2(max(mean, 1e-290))))
    P /= scale
    return DenseForm(P, scale, form.constant, form.apex, form.nodes)


def proved_shift(A: FloatArray) -> float | None:
    """Raise the diagonal of a nearly psd `A` by a small shift until it is provably psd.

    Returns the shift, or None if no proof succeeded. `A` is changed in place; its columns must be
    contiguous.
    """
    if proved_psd(A):
        return 0.0
    n = A.shape[0]
    diagonal = A.ravel("K")[:: n + 1]
    original = diagonal.copy()
    lowest = float(eigh(A, eigvals_only=True, subset_by_index=[0, 0], check_finite=False)[0])
    base = max(-lowest, 0.0)
    margin = (n + 2) * EPS * (float(np.abs(original).sum()) + n * base) + n * n * 1e-300
    for _ in range(20):
        margin *= 2.0
        shift = float(base + margin)
        diagonal[:] = original + shift
        if proved_psd(A):
            return shift
    return None


def certified_dual(P: FloatArray, s: FloatArray) -> FloatArray | None:
    """Raise s slightly until ``diag(s) - P`` is provably psd; None if no proof succeeded."""
    A = np.asfortranarray(-P)
    A.ravel("K")[:: P.shape[0] + 1] += s
    shift = proved_shift(A)
    # The diagonal of A, not s + shift, because the proof is about these exact numbers.
    return None if shift is None else A.diagonal().copy()


def with_unit_diagonal(X: FloatArray) -> FloatArray:
    """Scale a positive semi-definite X to ``X_ii = 1``, a feasible point of the relaxation."""
    d = 1.0 / np.sqrt(np.maximum(X.diagonal(), 1e-12))
    return np.asarray(d[:, None] * X * d)


@dataclass(frozen=True, kw_only=True)
class DenseSDR(Solver):
    """Base of the dense methods: reduce, solve, certify.

    Scores are the apex column of X. ``info["sdr_value"]`` is the value of the relaxation at X.
    """

    kind = "relaxation"
    binary_quadratic = True
    signed = True

    keep_matrix: bool = False

    @abstractmethod
    def _bytes(self, n: int) -> float:
        """Estimate the memory for `n` rows."""

    @abstractmethod
    def _find(self, form: DenseForm, run: Run) -> ConicResult:
        """Solve the relaxation: x is the dual point s of the scaled form, X the primal point."""

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        n = problem.n_nodes
        if isinstance(problem, GraphProblem):
            n = int(problem.unlabeled.size) + 1
        check_dense_size(self.name, problem, n, self._bytes(n), "sdr-low-rank")
        with run.stage("reduce"):
            form = dense_form(problem)
        with run.stage("solve"):
            point = self._find(form, run)
        with run.stage("certify"):
            return self._outcome(problem, form, point)

    def _outcome(self, problem: Problem, form: DenseForm, point: ConicResult) -> Outcome:
        """Round X to scores and turn s into a bound."""
        X = point.X
        s = point.x
        bound = -np.inf
        feasible = certified_dual(form.P, s)
        if feasible is not None:
            s = feasible
            total = float(feasible.sum()) * form.scale
            # Rounding of the sums behind constant, P and 1's.
            size = abs(form.constant) + abs(total) + float(np.abs(form.P).sum()) * form.scale
            bound = form.constant - total - 4.0 * EPS * (problem.n_nodes + 2) * size
        info = {
            "sdr_value": form.constant - float(form.P.ravel("K") @ X.T.ravel("K")) * form.scale,
            # 1 exactly where X has rank one, so that rounding loses nothing.
            "effective_rank": float(form.n**2 / max(float((X * X).sum()), 1e-300)),
        }
        return Outcome.of(
            point,
            problem.spread(np.delete(X[:, form.apex], form.apex)),
            lower_bound=bound,
            bound_status="certified",
            dual={"s": s * form.scale},
            info=info | ({"X": X} if self.keep_matrix else {}),
        )
