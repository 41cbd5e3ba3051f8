"""What the solvers of linear algebra give back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["EigenResult", "SPDResult"]


@dataclass(frozen=True)
class SPDResult:
    """Solution of a symmetric positive definite system.

    Parameters
    ----------
    x : ndarray
        Solution, of the shape of the right-hand side. Never NaN.
    residual : float
        Largest relative residual over the columns, computed from `x` at the end, in the norm in
        which the matrix has unit diagonal: ``|S (b - A x)| / |S b|``, ``S = diag(A)^-1/2``.
    iterations : int
        Iterations of conjugate gradients (0 for a factorisation).
    matvecs : int
        Products of the matrix with one vector.
    converged : bool
        Whether the tolerance was met.
    method : str
        "dense-cholesky", "dense-eigh" (singular), "cg", or "cholesky-cg": a factorisation, and as
        many steps as its rounding takes.
    message : str
        Why it stopped, in words.
    """

    x: NDArray[np.float64]
    residual: float
    iterations: int
    matvecs: int
    converged: bool
    method: str
    message: str


@dataclass(frozen=True)
class EigenResult:
    """First eigenpair of a symmetric matrix.

    Parameters
    ----------
    value : float
        Rayleigh quotient of `vector`: the smallest eigenvalue, from above.
    vector : ndarray of shape (n,)
        Unit vector. Its sign is fixed: the first entry that is not small is positive.
    residual : float
        ``|A v - value v|``, computed from `vector`.
    iterations : int
        Iterations of LOBPCG.
    matvecs : int
        Products of the matrix with one vector.
    converged : bool
        Whether ``residual <= tol * |A|``, with the largest absolute row sum as the norm (for an
        operator: an estimate by the power method).
    method : str
        What gave the vector: "dense", "start" (the given one was good enough), "lobpcg", "eigsh" or
        "shift-invert".
    message : str
        Why it stopped, in words.
    """

    value: float
    vector: NDArray[np.float64]
    residual: float
    iterations: int
    matvecs: int
    converged: bool
    method: str
    message: str
