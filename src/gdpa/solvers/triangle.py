"""Upper bounds of ``max x' P x``, tightened by triangle inequalities.

Signs satisfy ``1 + a x_i x_j + b x_i x_k + a b x_j x_k >= 0`` for a, b = +-1. With multipliers
g >= 0 for some of these inequalities and a diagonal y,

    x' P x <= 1'g + x' P_g x <= 1'g + 1'y + n max(0, lambda_max(P_g - diag(y))) ,

where P_g is P plus the couplings of the inequalities. L-BFGS-B finds y and g that minimise the
smooth function ``1'g + 1'y + |(P_g - diag(y))_+|^2 / (2 alpha)`` for a decreasing alpha (Malick,
Roupin 2013, as in BiqCrunch). Each evaluation takes one eigenvalue decomposition. Between
minimisations, inequalities that ``X = (P_g - diag(y))_+ / alpha`` violates are added, and those
with a zero multiplier are dropped. A Cholesky factorisation proves the eigenvalue in the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from ..arrays import FloatArray, NDArray
from .sdr_form import certified_dual

_SIGNS = np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Cuts:
    """Triangle inequalities with their multipliers."""

    nodes: NDArray[np.intp]  # (m, 3)
    signs: FloatArray  # (m, 3): of the pairs 01, 02, 12
    weight: FloatArray  # (m,)

    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the first and the second node of each edge of the triangles."""
        return self.nodes[:, (0, 0, 1)], self.nodes[:, (1, 2, 2)]

    def added(self, P: FloatArray, weight: FloatArray) -> FloatArray:
        """Return P plus the couplings of the inequalities."""
        n = P.shape[0]
        i, j = self.pairs()
        half = np.bincount(
            (i * n + j).ravel(),
            weights=(0.5 * self.signs * weight[:, None]).ravel(),
            minlength=n * n,
        ).reshape(n, n)
        return np.asarray(P + half + half.T)

    def slack(self, X: FloatArray) -> FloatArray:
        """Return the slack of each inequality at X."""
        i, j = self.pairs()
        return np.asarray(1.0 + (self.signs * X[i, j]).sum(axis=1))

    def merged(self, row: int, apex: int, sign: int) -> Cuts:
        """Return the inequalities after merging a row into the apex (the last row) with a sign."""
        both = (self.nodes == row).any(axis=1) & (self.nodes == apex).any(axis=1)
        nodes = self.nodes[~both]
        signs = self.signs[~both].copy()
        weight = self.weight[~both]
        moved = nodes == row
        for pair, ends in enumerate(((0, 1), (0, 2), (1, 2))):
            signs[moved[:, ends].any(axis=1), pair] *= sign
        nodes = np.where(moved, apex, nodes)
        nodes = nodes - (nodes > row)
        # Restore the order of the nodes, and permute the signs of the pairs accordingly.
        order = np.argsort(nodes, axis=1)
        left = order[:, (0, 0, 1)]
        right = order[:, (1, 2, 2)]
        pairs = np.minimum(left, right) + np.maximum(left, right) - 1
        return Cuts(
            np.take_along_axis(nodes, order, axis=1),
            np.take_along_axis(signs, pairs, axis=1),
            weight,
        )


@dataclass(frozen=True, eq=False)
class TriangleBound:
    """A proved upper bound of ``max x' P x``, and the matrix X that belongs to it.

    Parameters
    ----------
    bound : float
        No signs have a larger ``x' P x``.
    X : ndarray of shape (n, n)
        Nearly optimal matrix of the relaxation.
    n_triangles : int
        Number of inequalities with a positive multiplier.
    y, cuts
        The diagonal and the inequalities, which a similar problem may start from.
    """

    bound: float
    X: FloatArray
    n_triangles: int
    y: FloatArray
    cuts: Cuts


def triangle_bound(
    P: FloatArray,
    *,
    target: float = -np.inf,
    max_rounds: int = 40,
    triangles: bool = True,
    start: tuple[FloatArray, Cuts] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> TriangleBound:
    """Bound ``max x' P x`` from above.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Symmetric, zero diagonal, at least 2 rows.
    target : float, optional
        Stop as soon as the bound is below this value.
    max_rounds : int, default=40
        Maximum number of minimisations.
    triangles : bool, default=True
        Whether to use triangle inequalities; the bound of the semidefinite relaxation otherwise.
    start : tuple, optional
        Diagonal and inequalities of a similar problem, both in the units of P.
    should_stop : callable, optional
        Called after each round; the bound is returned if the result is true.
    """
    n = P.shape[0]
    size = float(np.abs(P).sum()) / n
    cuts = Cuts(np.empty((0, 3), dtype=np.intp), np.empty((0, 3)), np.empty(0))
    if size == 0.0:
        return TriangleBound(0.0, np.eye(n), 0, np.zeros(n), cuts)
    scaled = P / size
    y = np.abs(scaled).sum(axis=1) * 0.7
    alpha = 0.05
    if start is not None:
        y = start[0] / size
        alpha = 0.002
        cuts = Cuts(start[1].nodes, start[1].signs, start[1].weight / size)
    best = np.inf
    best_X = np.eye(n)
    kept = (y, cuts)
    slow = 0
    for _ in range(max_rounds):
        y, cuts, X, estimate = _minimise(scaled, y, cuts, alpha)
        # Stop if the distance to the target (or 0.2 % of the value) shrinks too slowly.
        goal = target / size if np.isfinite(target) else estimate * (1.0 - 2e-3)
        slow = slow + 1 if best - estimate < 0.05 * (estimate - goal) else 0
        if estimate < best:
            best = estimate
            best_X = X
            kept = (y, cuts)
        if size * best < target or slow >= 4 or (should_stop is not None and should_stop()):
            break
        added = 0
        if triangles and n > 2:
            cuts, added = _exchange(cuts, X, limit=5 * n)
        alpha = max(alpha * (0.8 if added > n else 0.5), 1e-5)
    y, cuts = kept
    cuts = Cuts(cuts.nodes, cuts.signs, cuts.weight * size)
    bound = _proved(scaled, y, kept[1]) * size
    return TriangleBound(bound, best_X, int(np.count_nonzero(cuts.weight)), y * size, cuts)


def _minimise(
    P: FloatArray, y: FloatArray, cuts: Cuts, alpha: float
) -> tuple[FloatArray, Cuts, FloatArray, float]:
    """Minimise the smooth dual function; return the point, X and the unproved bound there."""
    n = P.shape[0]
    last: dict[str, FloatArray] = {}

    def dual(point: FloatArray) -> tuple[float, FloatArray]:
        g = point[n:]
        A = cuts.added(P, g)
        A.ravel()[:: n + 1] -= point[:n]
        values, vectors = eigh(A, check_finite=False, driver="evd", overwrite_a=True)
        first = int(np.searchsorted(values, 0.0))
        part = vectors[:, first:]
        X = (part * (values[first:] / alpha)) @ part.T
        last["X"] = X
        value = float(point.sum()) + 0.5 / alpha * float(np.square(values[first:]).sum())
        return value, np.concatenate((1.0 - X.diagonal(), cuts.slack(X)))

    found = minimize(
        dual,
        np.concatenate((y, cuts.weight)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * n + [(0.0, None)] * cuts.weight.size,
        options={"maxiter": 40, "maxcor": 12, "gtol": 1e-3, "ftol": 1e-9},
    )
    y = found.x[:n].copy()
    g = np.maximum(found.x[n:], 0.0)
    cuts = Cuts(cuts.nodes, cuts.signs, g)
    A = cuts.added(P, g)
    A.ravel()[:: n + 1] -= y
    top = float(eigh(A, eigvals_only=True, subset_by_index=[n - 1, n - 1], check_finite=False)[0])
    return y, cuts, last["X"], float((y + max(top, 0.0)).sum() + g.sum())


def _proved(P: FloatArray, y: FloatArray, cuts: Cuts) -> float:
    """Return the bound that a factorisation proves after raising y, including rounding."""
    A = cuts.added(P, cuts.weight)
    proved = certified_dual(A, y)
    if proved is None:
        return float(np.abs(P).sum())
    total = float(proved.sum()) + float(cuts.weight.sum())
    # Entries of A are sums over up to n inequalities, each with a few units of rounding.
    size = float(np.abs(A).sum()) + 3.0 * float(cuts.weight.sum()) + float(np.abs(proved).sum())
    return total + 8.0 * (len(P) + 8) * float(np.finfo(np.float64).eps) * size


def _exchange(cuts: Cuts, X: FloatArray, *, limit: int) -> tuple[Cuts, int]:
    """Drop inactive inequalities and add the most violated ones."""
    keep = (cuts.weight > 1e-8) | (cuts.slack(X) < 0)
    nodes, signs = violated_triangles(X, limit)
    n = X.shape[0]
    old = _codes(cuts.nodes[keep], cuts.signs[keep], n)
    fresh = ~np.isin(_codes(nodes, signs, n), old)
    return (
        Cuts(
            np.concatenate((cuts.nodes[keep], nodes[fresh])),
            np.concatenate((cuts.signs[keep], signs[fresh])),
            np.concatenate((cuts.weight[keep], np.zeros(int(fresh.sum())))),
        ),
        int(fresh.sum()),
    )


def _codes(nodes: NDArray[np.intp], signs: FloatArray, n: int) -> NDArray[np.intp]:
    kind = (signs[:, 0] < 0) * 2 + (signs[:, 1] < 0)
    return np.asarray(((nodes[:, 0] * n + nodes[:, 1]) * n + nodes[:, 2]) * 4 + kind)


def violated_triangles(X: FloatArray, limit: int) -> tuple[NDArray[np.intp], FloatArray]:
    """Return nodes and signs of at most `limit` triangles with the most negative slack.

    Triangles with an entry that is not a number are left out.
    """
    n = X.shape[0]
    nodes = []
    signs = []
    slacks = []
    for i in range(n - 2):
        row = X[i, i + 1 :]
        block = X[i + 1 :, i + 1 :]
        j, k = np.triu_indices(n - i - 1, 1)
        for sign in _SIGNS:
            slack = 1.0 + sign[0] * row[j] + sign[1] * row[k] + sign[2] * block[j, k]
            bad = np.flatnonzero(slack < -0.02)
            if bad.size > limit:
                bad = bad[np.argpartition(slack[bad], limit)[:limit]]
            nodes.append(np.column_stack((np.full(bad.size, i), j[bad] + i + 1, k[bad] + i + 1)))
            signs.append(np.broadcast_to(sign, (bad.size, 3)))
            slacks.append(slack[bad])
    every = np.concatenate(nodes)
    slack = np.concatenate(slacks)
    all_signs = np.concatenate(signs)
    top = np.argsort(slack, kind="stable")[:limit]
    return every[top], all_signs[top]
