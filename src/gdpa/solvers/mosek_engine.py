"""The relaxation by MOSEK, where the package and a licence are present.

It is stated in primal form, ``max <P, X>, X_ii = 1, X psd``: one matrix variable and one row per
diagonal entry. The package is not an extra of ours because it is of no use without a licence.
"""

from __future__ import annotations

import importlib

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtraError, UnsupportedProblemError
from .conic import ConicResult

__all__ = ["solve_mosek"]


def solve_mosek(P: NDArray[np.float64], *, tol: float, max_iter: int) -> ConicResult:
    """Maximise ``<P, X>`` over correlation matrices by MOSEK's interior point.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Symmetric couplings.
    tol : float
        Relative tolerance of gap and feasibility.
    max_iter : int
        Most steps.

    Returns
    -------
    ConicResult
        ``x`` is the dual point s, ``X`` the primal matrix.

    Raises
    ------
    MissingExtraError
        If the package is not installed.
    UnsupportedProblemError
        If there is no valid licence.
    """
    try:
        mosek = importlib.import_module("mosek")
    except ImportError as error:
        raise MissingExtraError(
            "engine='mosek' needs the package 'mosek' and a licence: pip install mosek; "
            "engine='own' needs neither"
        ) from error
    n = P.shape[0]
    i, j = np.nonzero(np.tril(P))
    index = np.arange(n)
    try:
        with mosek.Env() as env, env.Task() as task:
            task.appendbarvars([n])
            task.appendcons(n)
            task.putbarcblocktriplet([0] * i.size, i.tolist(), j.tolist(), P[i, j].tolist())
            task.putbarablocktriplet(
                index.tolist(), [0] * n, index.tolist(), index.tolist(), [1.0] * n
            )
            task.putconboundlist(index.tolist(), [mosek.boundkey.fx] * n, [1.0] * n, [1.0] * n)
            task.putobjsense(mosek.objsense.maximize)
            task.putintparam(mosek.iparam.intpnt_max_iterations, int(max_iter))
            for name in ("rel_gap", "pfeas", "dfeas"):
                parameter = getattr(mosek.dparam, f"intpnt_co_tol_{name}")
                # MOSEK takes tolerances up to 1 only.
                task.putdouparam(parameter, min(float(tol), 1.0))
            task.optimize()
            kind = mosek.soltype.itr
            status = task.getsolsta(kind)
            triangle = np.asarray(task.getbarxj(kind, 0))
            s = np.asarray(task.gety(kind))
            steps = int(task.getintinf(mosek.iinfitem.intpnt_iter))
            optimal = status == mosek.solsta.optimal
    except mosek.Error as error:
        if "license" not in str(error).lower():
            raise
        raise UnsupportedProblemError(
            f"engine='mosek' has no valid licence ({error}); engine='own' needs none"
        ) from error
    X = np.empty((n, n), order="F")
    # Columns of the lower triangle are rows of the upper one.
    upper = np.triu_indices(n)
    X[upper] = triangle
    X.T[upper] = triangle
    return ConicResult(x=s, X=X, converged=optimal, status=str(status), iterations=steps)
