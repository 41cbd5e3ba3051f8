"""Any finite row has neighbours: those in its direction."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.graph.features import BoundingBox
from gdpa.graph.neighbors import NeighborIndex

SIZES = [1e7, 1e20, 1e100, 1e154, 1e200, 1.7e308]


def points(n=400, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
@pytest.mark.parametrize("d", [5, 30])
def test_far_rows_find_the_points_in_their_direction(algorithm, d, size):
    X = points(d=d)
    direction = np.random.default_rng(1).choice([-1.0, 1.0], d)
    found = NeighborIndex(X, algorithm=algorithm).query([size * direction], 5)
    assert np.isfinite(found.distances).all()
    assert np.unique(found.indices).size == 5
    along = X @ direction
    # The approximate ones look at the cells ahead, and round there to single precision.
    among = 5 if algorithm == "exact" else 40
    assert set(found.indices[0]) <= set(np.argsort(-along)[:among])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e155, 1e300])
@pytest.mark.parametrize("size", [*SIZES, 1e-310, 0.0])
def test_points_of_any_size(scale, size):
    X = scale * points(n=60, d=3)
    found = NeighborIndex(X).query(np.full((1, 3), size), 4)
    assert np.isfinite(found.distances).all()
    assert np.unique(found.indices).size == 4


def test_sparse_rows():
    X = sp.csr_array(points(n=60, d=8) * (points(n=60, d=8, seed=2) > 0))
    row = sp.csr_array(([1e300], ([0], [3])), shape=(1, 8))
    found = NeighborIndex(X).query(sp.vstack([row, X[[7]]], format="csr"), 3)
    assert np.isfinite(found.distances).all()
    np.testing.assert_array_equal(found.indices[0], np.argsort(-X.toarray()[:, 3])[:3])
    assert found.indices[1, 0] == 7
    assert found.distances[1, 0] == 0.0


def test_rows_that_are_not_far_are_not_touched():
    X = points()
    near = BoundingBox.of(X)
    rows = np.array([[1e4] * 5, [0.0] * 5])
    assert near.project(rows) is rows
    moved = near.project(np.array([[1e9] * 5, [0.5] * 5]))
    assert np.abs(moved[0] - near.center).max() == pytest.approx(near.reach)
    np.testing.assert_array_equal(moved[1], [0.5] * 5)


@pytest.mark.parametrize("place", [0.0, 3.0, -1e200])
def test_all_points_in_one_place(place):
    X = np.full((20, 2), place)
    found = NeighborIndex(X).query([[1e300, 0.0], [place, place]], 2)
    assert np.isfinite(found.distances).all()
    assert found.distances[1].max() == 0.0
