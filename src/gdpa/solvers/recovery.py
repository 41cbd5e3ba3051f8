"""Linear recovery: scores from a dual point by one SPD system.

Complementary slackness of the SDP, ``H M = 0``, gives the last column of M directly:

    (L + diag(a + gamma + e)) x = a xh + h,

with label weight ``a`` on labelled nodes, self-loop ``gamma`` on all nodes, and evidence ``h`` that
weighs ``e`` (|h| unless said otherwise). Limits: ``a = inf, gamma = 0`` is the harmonic function;
``gamma -> inf`` the one-step vote; ``a -> 0`` with the constant removed Poisson learning. All
classes are right-hand sides of one block solve. An infinite label weight eliminates the labelled
nodes.

:func:`leave_one_out` gives, for the same system, what each labelled node would be told by the
others: with ``S = K^-1 diag(a)``, ``x_i without label i = (x_i - S_ii xh_i) / (1 - S_ii)``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import ConvergenceWarning
from ..linalg import solve_spd
from ..linalg.preconditioners import TwoLevel
from .implicit_system import ImplicitSystem, SharedAdjacency, as_columns, shared_operand

__all__ = ["Recovery", "leave_one_out", "linear_recovery", "recovery_system", "shared_operand"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Recovery:
    """Scores and how they were found.

    Parameters
    ----------
    scores : ndarray of shape (n_nodes,) or (n_nodes, n_columns)
        The solution of the system; the targets themselves where labels are clamped.
    residual : float
        Largest relative residual.
    iterations, matvecs : int
        Iterations of CG and products with the matrix.
    converged : bool
        Whether the tolerance was met.
    method, message : str
        Engine ("cholesky-cg": a factorisation, and as many steps as its rounding takes), and why it
        stopped.
    """

    scores: FloatArray
    residual: float
    iterations: int
    matvecs: int
    converged: bool
    method: str
    message: str


def recovery_system(
    adjacency: sp.csr_array,
    diagonal: FloatArray,
    labeled: NDArray[np.intp],
    targets: FloatArray,
    *,
    label_weight: float | FloatArray = np.inf,
    self_loop: float | FloatArray = 0.0,
    bias: FloatArray | None = None,
    bias_weight: FloatArray | None = None,
) -> tuple[sp.csr_array, FloatArray, NDArray[np.intp]]:
    """Build the SPD system of linear recovery.

    Parameters
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        A in ``L = diag(diagonal) - A``.
    diagonal : ndarray of shape (n_nodes,)
        Diagonal of L.
    labeled : ndarray of int of shape (n_labeled,)
        Labelled nodes.
    targets : ndarray of shape (n_labeled,) or (n_labeled, n_columns)
        What the labels say, one column per class.
    label_weight : float or ndarray of shape (n_labeled,), default=inf
        Weight a of the labels; infinite means that they are kept exactly.
    self_loop : float or ndarray of shape (n_nodes,), default=0
        Pull gamma towards 0.
    bias : ndarray of shape (n_nodes,) or (n_nodes, n_columns), optional
        Evidence h.
    bias_weight : ndarray of shape (n_nodes,), optional
        Weight e of the evidence; by default the sum of ``|h|`` over the columns.

    Returns
    -------
    K : csr_array
        The matrix, on the nodes that are unknown.
    rhs : ndarray of shape (n_unknown, n_columns)
        The right-hand sides.
    unknown : ndarray of int
        The nodes that the rows of K belong to: all, or the unlabelled ones.
    """
    n = diagonal.shape[0]
    columns = as_columns(targets)
    k = columns.shape[1]
    total = diagonal + self_loop
    rhs = np.zeros((n, k))
    if bias is not None:
        evidence = np.asarray(bias, dtype=np.float64).reshape(n, -1)
        rhs += evidence
        total = total + (np.abs(evidence).sum(axis=1) if bias_weight is None else bias_weight)
    a = np.broadcast_to(np.asarray(label_weight, dtype=np.float64), (labeled.size,))
    if np.isinf(a).all() and a.size:
        unknown = np.setdiff1d(np.arange(n), labeled, assume_unique=False)
        rows = adjacency[unknown]
        full = np.zeros((n, k))
        full[labeled] = columns
        K = (sp.diags_array(total[unknown]) - rows[:, unknown]).tocsr()
        return K, np.asarray(rows @ full + rhs[unknown]), unknown
    if np.isinf(a).any():
        raise ValueError("label_weight must be infinite on all labelled nodes or on none")
    total = total.copy()
    total[labeled] += a
    rhs[labeled] += a[:, None] * columns
    K = (sp.diags_array(total) - adjacency).tocsr()
    return K, rhs, np.arange(n)


def linear_recovery(
    adjacency: sp.csr_array,
    diagonal: FloatArray,
    labeled: NDArray[np.intp],
    targets: FloatArray,
    *,
    x0: FloatArray | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    preconditioner: Any = "auto",
    callback: Any = None,
    operand: SharedAdjacency | None = None,
    **system: Any,
) -> Recovery:
    """Solve for the scores of all nodes and all classes.

    Parameters
    ----------
    adjacency, diagonal, labeled, targets
        As in :func:`recovery_system`.
    x0 : ndarray of the shape of the scores, optional
        Where to start.
    tol : float, default=1e-6
        Relative residual to reach.
    max_iter : int, optional
        Most iterations of CG.
    preconditioner : str or callable, default="auto"
        As in :func:`gdpa.linalg.solve_spd`.
    callback : callable, optional
        Told about each iteration of the linear solver; returning True stops it.
    operand : SharedAdjacency, optional
        `adjacency` as :func:`shared_operand` prepared it, for several solves with one graph.
    **system
        `label_weight`, `self_loop`, `bias`, `bias_weight` of :func:`recovery_system`.

    Returns
    -------
    Recovery
        The scores.
    """
    n = diagonal.shape[0]
    start = None if x0 is None else np.asarray(x0, dtype=np.float64).reshape(n, -1)
    options = {"tol": tol, "max_iter": max_iter, "callback": callback}
    with warnings.catch_warnings():
        # The caller is told by `converged`, and warns in its own name.
        warnings.simplefilter("ignore", ConvergenceWarning)
        implicit = ImplicitSystem.of(
            adjacency, diagonal, labeled, targets, tol, preconditioner, system, operand
        )
        if implicit is not None:
            chosen = implicit.preconditioner(preconditioner, tol)
            result = solve_spd(
                implicit,
                implicit.rhs,
                x0=implicit.scaled(start),
                preconditioner=chosen,
                **options,
            )
            method = result.method if isinstance(chosen, str | TwoLevel) else "cholesky-cg"
            scores = implicit.unscaled(result.x)
        else:
            K, rhs, unknown = recovery_system(adjacency, diagonal, labeled, targets, **system)
            result = solve_spd(
                K,
                rhs,
                x0=None if start is None else start[unknown],
                preconditioner=preconditioner,
                **options,
            )
            scores = np.zeros((n, rhs.shape[1]))
            scores[labeled] = as_columns(targets)
            scores[unknown] = result.x
            method = result.method
    return Recovery(
        scores=scores.reshape((n, *targets.shape[1:])),
        residual=float(result.residual),
        iterations=int(result.iterations),
        matvecs=int(result.matvecs),
        converged=bool(result.converged),
        method=str(method),
        message=str(result.message),
    )


def leave_one_out(
    adjacency: sp.csr_array,
    diagonal: FloatArray,
    labeled: NDArray[np.intp],
    targets: FloatArray,
    *,
    tol: float = 1e-8,
    label_weight: float | FloatArray = np.inf,
    **system: Any,
) -> FloatArray:
    """Score of each labelled node as if its own label were unknown.

    One system with one right-hand side per labelled node: meant for up to some thousand labels.

    Parameters
    ----------
    adjacency, diagonal, labeled, targets
        As in :func:`recovery_system`.
    tol : float, default=1e-8
        Relative residual of the solve.
    label_weight : float or ndarray of shape (n_labeled,), default=inf
        Weight a of the labels.
    **system
        `self_loop`, `bias`, `bias_weight` of :func:`recovery_system`.

    Returns
    -------
    ndarray of the shape of `targets`
        The left-out scores; 0 where nothing else reaches the node.
    """
    m = labeled.size
    columns = targets.reshape(m, -1)
    a = np.broadcast_to(np.asarray(label_weight, dtype=np.float64), (m,))
    system = {"label_weight": label_weight, **system}
    K, rhs, unknown = recovery_system(adjacency, diagonal, labeled, targets, **system)
    if np.isinf(a).all():
        # Clamped: eliminate the unlabelled nodes; row i of the Schur complement is the system of
        # the labelled nodes alone, and leaving i out solves it for its own unknown.
        A_lu = adjacency[labeled][:, unknown]
        bias = system.get("bias")
        evidence = np.zeros((diagonal.size, columns.shape[1]))
        if bias is not None:
            evidence += np.asarray(bias, dtype=np.float64).reshape(diagonal.size, -1)
        weight = system.get("bias_weight")
        e = np.abs(evidence).sum(axis=1) if weight is None else np.asarray(weight)
        loops = np.broadcast_to(system.get("self_loop", 0.0), diagonal.shape)
        own = (diagonal + loops + e)[labeled]
        free = np.hstack([A_lu.T.toarray(), evidence[unknown]])
        inner = solve_spd(K, free, tol=tol).x if unknown.size else np.zeros((0, free.shape[1]))
        schur = np.diag(own) - adjacency[labeled][:, labeled].toarray() - A_lu @ inner[:, :m]
        drive = evidence[labeled] + A_lu @ inner[:, m:]
        pivot = np.diag(schur).copy()
        others = drive - schur @ columns + pivot[:, None] * columns
        safe = pivot > 1e-12 * own
        out = np.where(safe[:, None], others / np.where(safe, pivot, 1.0)[:, None], 0.0)
        return np.asarray(out).reshape(targets.shape)
    units = np.zeros((diagonal.size, m))
    units[labeled, np.arange(m)] = a
    solved = solve_spd(K, np.hstack([rhs, units]), tol=tol).x
    k = columns.shape[1]
    x, s = solved[labeled, :k], solved[labeled, k + np.arange(m)]
    rest = 1.0 - s
    safe = rest > 1e-12
    out = np.where(
        safe[:, None], (x - s[:, None] * columns) / np.where(safe, rest, 1.0)[:, None], 0.0
    )
    return np.asarray(out).reshape(targets.shape)
