"""Solve the semidefinite relaxation by ADMM (SCS); the paper used CDCS.

SCS gets the reduced form as ``min 1's, diag(s) - P psd``, whose dual variable is the X of the
relaxation. ADMM leaves residuals, so both points are repaired: X is scaled to a unit diagonal, and
s is raised until a factorisation proves it feasible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..base import Run
from ..conic import ConicResult, scs_bytes, sdr_lmi, solve_scs
from ..sdr_form import DenseForm, DenseSDR, with_unit_diagonal


@dataclass(frozen=True, kw_only=True)
class SDRADMM(DenseSDR):
    """Solve the semidefinite relaxation by ADMM, with a certified bound.

    Parameters
    ----------
    tol : float, default=1e-5
        Absolute and relative tolerance of SCS.
    max_iter : int, default=20000
        Maximum number of SCS iterations.
    keep_matrix : bool, default=False
        Keep the matrix X of the reduced form as ``info["X"]``.

    Notes
    -----
    Scores are the apex column of X. ``info["sdr_value"]`` is the value of the relaxation at X.
    """

    name = "sdr-admm"
    summary = "semidefinite relaxation, ADMM (SCS), certified bound"
    extras = (("scs", "sdp"),)

    tol: float = 1e-5
    max_iter: int = 20000

    def _bytes(self, n: int) -> float:
        return scs_bytes(n)

    def _find(self, form: DenseForm, run: Run) -> ConicResult:
        result = solve_scs(sdr_lmi(form.P), tol=self.tol, max_iter=self.max_iter)
        if not (np.isfinite(result.x).all() and np.isfinite(result.X).all()):
            # After very few iterations SCS may have no point. Row sums of absolute values are
            # feasible by Gershgorin's theorem, and the unit matrix is a point of the relaxation.
            result = replace(
                result,
                x=np.abs(form.P).sum(axis=1),
                X=np.eye(form.P.shape[0]),
                converged=False,
                message=f"{result.message}, no point was found in {result.iterations} iterations",
            )
        result = replace(result, X=with_unit_diagonal(result.X))
        if run.watch(form.values(float((form.P * result.X).sum()), float(result.x.sum()))):
            result = replace(result, converged=False, message="stopped by the callback")
        return result
