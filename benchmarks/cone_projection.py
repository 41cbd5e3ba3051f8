"""Projection onto the semidefinite cone, which aligned discs avoid, for comparison."""

from __future__ import annotations

import numpy as np

from gdpa.arrays import FloatArray
from gdpa.metric.objectives import Objective


def project_onto_cone(M: FloatArray, trace: float, floor: float) -> FloatArray:
    """Return the nearest matrix with eigenvalues of at least `floor` and trace of at most `trace`.

    Parameters
    ----------
    M : ndarray of shape (n, n)
        Symmetric.
    trace, floor : float
        The constraints.

    Returns
    -------
    ndarray of shape (n, n)
        The projection, by one eigen-decomposition.
    """
    values, vectors = np.linalg.eigh(M)
    rest, room = np.maximum(values - floor, 0.0), trace - floor * values.size
    if rest.sum() > room:
        down = np.sort(values - floor)[::-1]
        excess = (np.cumsum(down) - room) / np.arange(1, down.size + 1)
        rest = np.maximum(values - floor - excess[np.flatnonzero(down > excess)[-1]], 0.0)
    return np.asarray((vectors * (rest + floor)) @ vectors.T)


def learn_by_projection(
    objective: Objective,
    n_features: int,
    *,
    trace: float,
    floor: float,
    max_iter: int = 1000,
    tol: float = 1e-5,
) -> tuple[FloatArray, float, list[float]]:
    """Minimise a convex objective over the cone by projected gradients with a backtracking step.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    n_features : int
        Order of M.
    trace, floor : float
        Upper bound of the trace, lower bound of the eigenvalues.
    max_iter : int, default=1000
        Most steps.
    tol : float, default=1e-5
        Stop when a step lowers the value by less than `tol`, absolute or relative.

    Returns
    -------
    M : ndarray of shape (n_features, n_features)
        The metric.
    value : float
        Its objective.
    history : list of float
        The value after every step.
    """
    M = np.eye(n_features) * (trace / n_features)
    value, A = objective.loss(objective.image(M))
    step, history = 1.0, [value]
    for _ in range(max_iter):
        G = objective.gradient(A, n_features)[1]
        while True:
            moved = project_onto_cone(M - step * G, trace, floor)
            after, derivatives = objective.loss(objective.image(moved))
            if after < value or step < 1e-12:
                break
            step *= 0.5
        if not after < value:
            break
        fell, M, value, A, step = value - after, moved, after, derivatives, 1.5 * step
        history.append(value)
        if fell <= tol * max(1.0, abs(value)):
            break
    return M, value, history
