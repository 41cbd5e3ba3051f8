"""The exact oracles of the linearisation, by Clarabel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp


def _solve(c, rows, right, cones, n_zero_padding):
    clarabel = pytest.importorskip("clarabel", reason="the oracle is Clarabel (extra sdp)")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    q = np.concatenate([c, np.zeros(n_zero_padding)])
    P = sp.csc_matrix((q.size, q.size))
    solver = clarabel.DefaultSolver(
        P, q, sp.csc_matrix(np.vstack(rows)), np.concatenate(right), cones(clarabel), settings
    )
    solution = solver.solve()
    # "Almost" solved means reduced accuracy (5e-5 at worst); its gap is checked below instead.
    assert str(solution.status) in ("Solved", "AlmostSolved")
    assert abs(solution.obj_val - solution.obj_val_dual) <= 1e-8 * (1 + abs(solution.obj_val))
    return solution.obj_val


def _linear_rows(bounds, signed_off, width):
    """Bounds and edge signs as ``G x <= h``."""
    G, h = [], []
    for k, (low, high) in enumerate(bounds):
        for end, sign in ((high, 1.0), (low, -1.0)):
            if end is not None and np.isfinite(end):
                row = np.zeros(width)
                row[k] = sign
                G.append(row)
                h.append(sign * end)
    for constant, coefficients in signed_off:
        row = np.zeros(width)
        row[: coefficients.size] = coefficients
        G.append(row)
        h.append(-constant)
    return np.array(G).reshape(-1, width), np.array(h)


def _edges(A0, matrices):
    pattern = (A0 != 0) | np.any([A != 0 for A in matrices], axis=0)
    return np.argwhere(np.triu(pattern, 1))


@pytest.fixture(scope="session")
def sdd_oracle():
    """Optimum over scaled diagonally dominant matrices, as a SOCP.

    ``A = sum over edges of a 2x2 psd block + a non-negative diagonal``, where `colors` switch all
    off-diagonal entries to be non-positive.
    """

    def oracle(c, A0, matrices, bounds, colors):
        switch = np.outer(colors, colors)
        A0, matrices = A0 * switch, [A * switch for A in matrices]
        n, m, edges = len(A0), len(c), _edges(A0, matrices)
        E = len(edges)
        width = m + 2 * E  # theta, then the two diagonal entries of every block
        i, j = edges.T
        off0, off = A0[i, j], np.array([A[i, j] for A in matrices]).T
        G, h = _linear_rows(bounds, zip(off0, off, strict=True), width)
        pay = np.zeros((n, width))
        pay[:, :m] = -np.array([np.diag(A) for A in matrices]).T
        np.add.at(pay, (i, m + np.arange(E)), 1.0)
        np.add.at(pay, (j, m + E + np.arange(E)), 1.0)
        rows, right = [G, pay], [h, np.diag(A0)]
        for e in range(E):
            # |(2 A_ij, p - q)| <= p + q  means  p q >= A_ij^2.
            block = np.zeros((3, width))
            block[0, [m + e, m + E + e]] = -1
            block[1, :m] = -2 * off[e]
            block[2, m + e], block[2, m + E + e] = -1, 1
            rows.append(block)
            right.append(np.array([0, 2 * off0[e], 0]))

        def cones(clarabel):
            return [clarabel.NonnegativeConeT(len(h) + n)] + [clarabel.SecondOrderConeT(3)] * E

        return _solve(c, rows, right, cones, 2 * E)

    return oracle


@pytest.fixture(scope="session")
def psd_oracle():
    """The same optimum by the semidefinite cone itself, edge signs included."""

    def oracle(c, A0, matrices, bounds, colors):
        n, m, edges = len(A0), len(c), _edges(A0, matrices)
        signs = [colors[i] * colors[j] for i, j in edges]
        off = [
            (s * A0[i, j], s * np.array([A[i, j] for A in matrices]))
            for s, (i, j) in zip(signs, edges, strict=True)
        ]
        G, h = _linear_rows(bounds, off, m)
        columns, lines = np.tril_indices(n)  # column-stacked upper triangle
        root = np.where(lines == columns, 1.0, np.sqrt(2.0))
        cone = -np.array([A[lines, columns] * root for A in matrices]).T

        def cones(clarabel):
            return [clarabel.NonnegativeConeT(len(h)), clarabel.PSDTriangleConeT(n)]

        return _solve(c, [G, cone], [h, A0[lines, columns] * root], cones, 0)

    return oracle
