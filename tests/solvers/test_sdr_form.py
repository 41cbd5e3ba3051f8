"""The proof of positive semi-definiteness behind every certified bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdpa.linalg.psd_proof import proved_psd
from gdpa.solvers.sdr_form import certified_dual, with_unit_diagonal


def exactly_psd(A):
    """Positive definiteness by rational elimination: no rounding at all."""
    rows = [[Fraction(float(x)) for x in row] for row in A]
    n = len(rows)
    for k in range(n):
        if rows[k][k] <= 0:
            return False
        for i in range(k + 1, n):
            ratio = rows[i][k] / rows[k][k]
            for j in range(k, n):
                rows[i][j] -= ratio * rows[k][j]
    return True


@given(st.integers(0, 100_000), st.integers(2, 7), st.integers(-17, -10))
def test_proof_is_never_wrong(seed, n, exponent):
    # Lowest eigenvalue within rounding of 0, on either side: the hard case.
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    values = rng.uniform(0.1, 1.0, n)
    values[0] = rng.choice([-1.0, 1.0]) * 10.0**exponent
    A = (Q * values) @ Q.T
    A = (A + A.T) / 2
    if proved_psd(A):
        assert exactly_psd(A)


def test_proof_succeeds_where_there_is_room():
    A = np.full((50, 50), -1.0) + 50.0 * np.eye(50)
    assert not proved_psd(A)  # singular: within rounding of not being psd
    assert proved_psd(A + 1e-9 * np.eye(50))
    assert not proved_psd(A - 1e-9 * np.eye(50))
    assert not proved_psd(np.zeros((3, 3)))


@given(st.integers(0, 100_000), st.integers(2, 7), st.floats(-1.0, 1.0))
def test_repaired_dual_is_feasible_and_little_was_added(seed, n, error):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(n, n))
    P = P + P.T
    np.fill_diagonal(P, 0.0)
    s = np.abs(P).sum(axis=1) + error
    raised = certified_dual(P, s)
    assert raised is not None
    assert exactly_psd(np.diag(raised) - P + 1e-300 * np.eye(n))
    lowest = np.linalg.eigvalsh(np.diag(s) - P)[0]
    assert (raised - s).max() <= max(-lowest, 0.0) + 1e-12 * np.abs(P).sum() + 1e-12


def test_unit_diagonal_keeps_psd():
    V = np.random.default_rng(0).normal(size=(6, 2))
    X = with_unit_diagonal(V @ V.T)
    assert X.diagonal() == pytest.approx(np.ones(6))
    assert np.linalg.eigvalsh(X)[0] > -1e-12
