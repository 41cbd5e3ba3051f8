"""Solve linear matrix inequalities with the conic solvers Clarabel and SCS.

Every semidefinite problem of the package has the form

    min  c'x   subject to  F0 + sum_k x_k F_k  psd,   x_k >= 0 for some k,

whose dual variable is a positive semi-definite matrix X. Both solvers expect ``A x + s = b``, s in
K. The matrix is stored as the vector of one triangle, column by column, with off-diagonal entries
multiplied by sqrt(2). Clarabel uses the upper triangle, SCS the lower one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..errors import require


@dataclass(frozen=True, eq=False)
class LMI:
    """A linear matrix inequality with a linear objective.

    Parameters
    ----------
    c : ndarray of shape (m,)
        Objective.
    F0 : ndarray of shape (n, n)
        Constant part, symmetric.
    variable, row, column, value : ndarray
        Entries of the F_k. Each off-diagonal pair is listed once, in either triangle.
    nonnegative : ndarray of int
        Variables constrained to be non-negative.
    """

    c: FloatArray
    F0: FloatArray
    variable: NDArray[np.intp]
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: FloatArray
    nonnegative: NDArray[np.intp]

    @property
    def n(self) -> int:
        """Number of rows of the matrix."""
        return int(self.F0.shape[0])


@dataclass(frozen=True, eq=False)
class ConicResult:
    """Result of a semidefinite solver.

    Parameters
    ----------
    x : ndarray
        The variables.
    X : ndarray of shape (n, n)
        Dual variable of the matrix inequality.
    iterations : int
        Number of iterations.
    converged : bool
        Whether the solver reports that it met its tolerance.
    message : str
        Why the solver stopped.
    """

    x: FloatArray
    X: FloatArray
    iterations: int
    converged: bool
    message: str


def clarabel_bytes(n: int) -> float:
    """Estimate the memory that Clarabel needs for one dense semidefinite cone of `n` rows.

    Clarabel factorises a dense block with one row per entry of the triangle. The factor has about
    n^4 / 8 entries.
    """
    return 14.0 * float(n) ** 4 + 1e8  # measured: 14 n^4 at n = 60 and 90


def scs_bytes(n: int) -> float:
    """Estimate the memory that SCS needs: vectors of the triangle and one dense eigenproblem."""
    return 320.0 * float(n) ** 2  # measured: 39 matrices of n rows at n = 1,500


def sdr_lmi(P: FloatArray) -> LMI:
    """State ``min 1's, diag(s) - P psd``; its dual variable is the X of the relaxation."""
    index = np.arange(P.shape[0])
    ones = np.ones(P.shape[0])
    return LMI(ones, -P, index, index, index, ones, np.empty(0, dtype=np.intp))


def _triangle(n: int, *, upper: bool) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Return rows, columns and factors of a triangle's entries, column by column."""
    # Columns of the upper triangle are rows of the lower one, in the order of tril_indices.
    i, j = np.tril_indices(n) if upper else np.triu_indices(n)
    return i, j, np.where(i == j, 1.0, np.sqrt(2.0))


def _cone_data(lmi: LMI, *, upper: bool) -> tuple[sp.csc_array, FloatArray, int]:
    """Return A, b and the number of rows ``x_k >= 0``, which come before the triangle."""
    n = lmi.n
    free = lmi.nonnegative.size
    i, j, factor = _triangle(n, upper=upper)
    place = np.empty((n, n), dtype=np.intp)
    place[i, j] = place[j, i] = np.arange(i.size)
    b = np.concatenate([np.zeros(free), factor * lmi.F0[i, j]])
    entries = place[lmi.row, lmi.column]
    rows = np.concatenate([np.arange(free), free + entries])
    columns = np.concatenate([lmi.nonnegative, lmi.variable])
    data = -np.concatenate([np.ones(free), factor[entries] * lmi.value])
    return sp.csc_array((data, (rows, columns)), shape=(b.size, lmi.c.size)), b, free


def _matrix(vector: FloatArray, n: int, *, upper: bool) -> FloatArray:
    """Return the symmetric matrix of a scaled triangle."""
    i, j, factor = _triangle(n, upper=upper)
    X = np.empty((n, n), order="F")
    X[i, j] = X[j, i] = np.asarray(vector, dtype=np.float64) / factor
    return X


def _legacy(A: sp.csc_array) -> Any:
    """Convert to the matrix type that both solvers require."""
    return sp.csc_matrix((A.data, A.indices.astype(np.int32), A.indptr), shape=A.shape)


def solve_clarabel(lmi: LMI, *, tol: float, max_iter: int) -> ConicResult:
    """Solve by Clarabel's interior-point method; :func:`clarabel_bytes` estimates its memory."""
    clarabel = require("clarabel", "sdp")
    A, b, free = _cone_data(lmi, upper=True)
    cones = [clarabel.NonnegativeConeT(free)] if free else []
    cones.append(clarabel.PSDTriangleConeT(lmi.n))
    result = clarabel_qp(None, lmi.c, A, b, tol, max_iter, cones)
    X = _matrix(np.asarray(result.z)[free:], lmi.n, upper=True)
    status = str(result.status)
    x = np.asarray(result.x)
    steps = int(result.iterations)
    return ConicResult(x, X, steps, status == "Solved", f"Clarabel: {status}")


def clarabel_qp(
    P: Any,
    q: FloatArray,
    A: sp.sparray,
    b: FloatArray,
    tol: float,
    max_iter: int = 200,
    cones: list[Any] | None = None,
) -> Any:
    """Minimise ``x' P x / 2 + q' x`` over ``A x <= b`` and return Clarabel's own result.

    `cones` replaces the non-negative cone of ``b - A x``. P may be None.
    """
    clarabel = require("clarabel", "sdp")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = int(max_iter)
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = float(tol)
    # Chordal decomposition would return the dual matrix in pieces.
    settings.chordal_decomposition_enable = False
    upper = sp.csc_matrix((q.size, q.size)) if P is None else sp.csc_matrix(sp.triu(P))
    cones = cones or [clarabel.NonnegativeConeT(b.size)]
    return clarabel.DefaultSolver(upper, q, _legacy(sp.csc_array(A)), b, cones, settings).solve()


def solve_scs(lmi: LMI, *, tol: float, max_iter: int) -> ConicResult:
    """Solve by SCS, an alternating-direction method."""
    scs = require("scs", "sdp")
    A, b, free = _cone_data(lmi, upper=False)
    cone = {"l": free, "s": [lmi.n]} if free else {"s": [lmi.n]}
    solver = scs.SCS(
        {"A": _legacy(A), "b": b, "c": lmi.c},
        cone,
        eps_abs=float(tol),
        eps_rel=float(tol),
        max_iters=int(max_iter),
        # Callers scale their data to 1. On the paper's problems SCS's adaptive scale then takes 2
        # to 12 times as many iterations as a fixed one.
        adaptive_scale=False,
        scale=1.0,
        verbose=False,
    )
    result = solver.solve()
    x = np.asarray(result["x"])
    X = _matrix(np.asarray(result["y"])[free:], lmi.n, upper=False)
    status = str(result["info"]["status"])
    steps = int(result["info"]["iter"])
    return ConicResult(x, X, steps, status == "solved", f"SCS: {status}")
