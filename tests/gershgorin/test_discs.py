"""Gershgorin discs: what they enclose, before and after a similarity transform."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gdpa.gershgorin import discs

M = np.array([[2.0, -2, -1], [-2, 5, -2], [-1, -2, 4]])
seeds = st.integers(0, 2**32 - 1)


def random_symmetric(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    A = rng.normal(size=(n, n)) * (rng.random((n, n)) < rng.random())
    return A + A.T


def test_the_papers_example():
    d = discs(M)
    assert d.centers.tolist() == [2, 5, 4]
    assert d.radii.tolist() == [3, 4, 3]
    assert d.left_ends.tolist() == [-1, 1, 1]
    assert d.right_ends.tolist() == [5, 9, 7]
    assert d.lower_bound == -1
    assert d.right_ends.max() == 9


@given(seeds)
def test_eigenvalues_lie_between_the_bounds_whatever_the_scaling(seed):
    A = random_symmetric(seed)
    v = np.random.default_rng(seed).uniform(0.01, 10, len(A))
    eigenvalues = np.linalg.eigvalsh(A)
    slack = 1e-12 * (1 + np.abs(A).sum())
    for d in (discs(A), discs(A, v=v)):
        assert d.lower_bound <= eigenvalues[0] + slack
        assert d.right_ends.max() >= eigenvalues[-1] - slack
        # The theorem itself: each eigenvalue is in one of the discs.
        inside = np.abs(eigenvalues[:, None] - d.centers) <= d.radii + slack
        assert inside.any(axis=1).all()


@given(seeds)
def test_scaled_radii_are_those_of_the_similarity_transform(seed):
    A = random_symmetric(seed)
    rng = np.random.default_rng(seed)
    v = rng.uniform(0.1, 10, len(A)) * rng.choice([-1, 1], len(A))
    T = np.diag(1 / v) @ A @ np.diag(v)
    off = np.abs(T - np.diag(np.diag(T))).sum(axis=1)
    np.testing.assert_allclose(discs(A, v=v).radii, off, rtol=1e-12, atol=1e-300)


@given(seeds)
def test_sparse_equals_dense(seed):
    A = random_symmetric(seed)
    for kind in (sp.csr_array, sp.coo_matrix, sp.csc_array):
        np.testing.assert_array_equal(discs(kind(A)).left_ends, discs(A).left_ends)


def test_diagonal_matrix_has_points_for_discs():
    d = discs(np.diag([3.0, -1.0, 0.0]))
    assert d.radii.tolist() == [0, 0, 0]
    assert d.lower_bound == -1


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_extreme_entries_are_only_a_change_of_units(scale):
    d = discs(M * scale)
    np.testing.assert_allclose(d.left_ends / scale, [-1, 1, 1], rtol=1e-14)


def test_quotients_beyond_the_range_of_floats_do_not_spoil_the_product():
    # |A_01| v_1 / v_0 = 1e-300 * 1e400 = 1e100, although the quotient alone overflows.
    d = discs([[0, 1e-300], [1e-300, 0]], v=[1e-200, 1e200])
    np.testing.assert_allclose(d.radii[0], 1e100, rtol=1e-12)
    assert d.radii[1] == 0
    # Beyond: infinite, never NaN.
    assert discs([[1, 1], [1, 1]], v=[1e-300, 1e300]).left_ends[0] == -np.inf


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([[1, 2], [3, 1]], "symmetric"),
        ([[1, 2, 3]], "square"),
        ([[1, np.nan], [np.nan, 1]], "finite"),
        ([[1, np.inf], [np.inf, 1]], "finite"),
        (np.zeros((0, 0)), "at least one"),
        ([1, 2], "square"),
        ("text", "real matrix"),
    ],
)
def test_bad_matrices_are_named(A, message):
    with pytest.raises(ValueError, match=message):
        discs(A)


@pytest.mark.parametrize("v", [[1, 0, 1], [1, np.nan, 1], [1, 1], [[1, 1, 1]], "abc"])
def test_bad_scalings_are_named(v):
    with pytest.raises(ValueError, match=r"^v"):
        discs(M, v=v)
