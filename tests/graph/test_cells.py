"""Search by cells: exact in what it visits, and what it visits is counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from gdpa.graph import cell_space, neighbor_graph, neighbors
from gdpa.graph.cell_space import CellSpace
from gdpa.graph.cells import CellJoin, enough_probes
from gdpa.graph.neighbors import NeighborIndex
from gdpa.policy import Policy


def cells_of(join):
    """The cell of each point, in the order of the join."""
    return np.repeat(np.arange(join.n_cells, dtype=np.int32), np.diff(join.ends))


def nearest_neighbors(X, n_neighbors, **options):
    return NeighborIndex(X, **options).neighbors(n_neighbors)


def joined(X: np.ndarray, seed: int) -> CellJoin:
    space = CellSpace.fit(X, 1.0, seed)
    return CellJoin.of(X, space, space.home(X))


@pytest.fixture(autouse=True)
def small_cells(monkeypatch):
    monkeypatch.setattr(cell_space, "CELL_POINTS", 30)


def points(n=1500, d=6, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (4 * rng.normal(size=(8, d))[rng.integers(0, 8, n)] + rng.normal(size=(n, d))).astype(
        dtype
    )


def cell_of(join):
    found = np.empty(join.order.size, dtype=int)
    found[join.order] = cells_of(join)
    return found


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 400), d=st.integers(1, 9), k=st.integers(1, 12), seed=st.integers(0, 2**16))
def test_all_cells_are_exact(n, d, k, seed):
    X = points(n, d, seed)
    k = min(k, n)
    join = joined(X, seed)
    join.n_probe = join.n_cells
    found = np.empty((n, k), dtype=int)
    found[join.order] = join.join(slice(0, n), k)
    D = cdist(X, X)
    expected = np.sort(D, axis=1)[:, :k]
    assert np.allclose(np.take_along_axis(D, found, 1), expected, atol=1e-2)
    assert all(np.unique(row).size == k for row in found)
    assert np.array_equal(np.sort(join.order), np.arange(n))


@pytest.mark.parametrize("probes", [1, 2, 5, 11])
def test_nothing_is_missed_in_the_cells_visited(probes):
    X = points()
    join = joined(X, 3)
    join.n_probe = probes
    k = 8
    found = np.empty((X.shape[0], k), dtype=int)
    found[join.order] = join.join(slice(0, X.shape[0]), k)
    D = cdist(X, X)
    cell = cell_of(join)
    visited = join.space.visited(join.points[:, :-1], cells_of(join), probes)
    for place, i in enumerate(join.order):
        inside = np.flatnonzero(np.isin(cell, visited[place]))
        if inside.size >= k:
            expected = np.sort(D[i, inside])[:k]
            assert np.allclose(np.sort(D[i, found[i]]), expected, rtol=1e-4, atol=1e-3)


def test_own_cell_is_the_nearest_centre_and_visited_first():
    X = points()
    join = joined(X, 1)
    D = cdist(join.space.placed(X), join.space.centers.centers)
    nearest = D.min(axis=1)
    assert np.allclose(D[np.arange(len(X)), cell_of(join)], nearest, atol=1e-5)
    visited = join.space.visited(join.points[:, :-1], cells_of(join), 6)
    assert np.array_equal(visited[:, 0], cells_of(join))
    assert all(np.unique(row).size == 6 for row in visited)


def test_count_of_cells_needed():
    X = points(600, 3)
    join = joined(X, 1)
    D = cdist(join.space.placed(X[:40]), join.space.centers.centers)
    asked = np.arange(120).reshape(40, 3)
    needed, scanned = join.probes_needed(X[:40], asked)
    cell = cell_of(join)
    for i in range(40):
        for j in range(3):
            assert needed[i, j] == 1 + (D[i] < D[i, cell[asked[i, j]]]).sum()
    first = np.bincount(cell, minlength=join.n_cells)[D.argmin(axis=1)].mean()
    assert scanned[0] == pytest.approx(first)
    assert scanned[-1] == pytest.approx(600)


def test_enough_probes_is_the_least_number_within_the_limit():
    needed = np.array([[1, 1, 2, 3, 9]])
    scanned = np.array([10.0, 20.0, 30.0, 40.0])
    assert enough_probes(needed, scanned, 0.8, np.inf) == (3, 4)
    assert enough_probes(needed, scanned, 0.6, np.inf) == (2, 4)
    assert enough_probes(needed, scanned, 0.8, 20.0) == (2, 2)
    assert enough_probes(needed, scanned, 0.8, 5.0) == (1, 1)


def test_tight_clusters_far_apart_keep_their_digits():
    """Distances within a cluster are 1e-6 of those between: too small for single precision."""
    rng = np.random.default_rng(0)
    centers = 1e4 * rng.normal(size=(20, 5))
    X = np.repeat(centers, 60, axis=0) + 1e-2 * rng.normal(size=(1200, 5))
    result = nearest_neighbors(X, 5, algorithm="approximate")
    exact = nearest_neighbors(X, 5, algorithm="exact")
    assert result.algorithm == "cells"
    assert (result.distances <= exact.distances[:, -1:] * (1 + 1e-12)).mean() >= 0.97


def test_cells_with_fewer_points_than_neighbors():
    X = np.vstack([points(300, 2), 1e3 * np.random.default_rng(1).normal(size=(40, 2))])
    result = nearest_neighbors(X, 25, algorithm="approximate", recall=0.5)
    assert result.indices.min() >= 0
    assert np.isfinite(result.distances).all()
    assert all(np.unique(row).size == 25 for row in result.indices)
    assert not (result.indices == np.arange(340)[:, None]).any()


def test_new_points_and_fitted_points_have_the_same_neighbors():
    X = points()
    index = NeighborIndex(X, algorithm="approximate")
    own = index.neighbors(5)
    new = index.query(X, 6)
    assert np.array_equal(new.indices[:, 0], np.arange(len(X)))
    assert (new.distances[:, 0] == 0).all()
    same = (new.indices[:, 1:] == own.indices).mean()
    assert same >= 0.999


def test_blocks_and_threads_do_not_change_the_graph(monkeypatch):
    monkeypatch.setattr(neighbors, "JOIN_BLOCK", 128)
    X = points(dtype=np.float32)
    one = neighbor_graph(X, 7, algorithm="approximate", n_jobs=1)
    two = neighbor_graph(X, 7, algorithm="approximate", n_jobs=2)
    assert (one != two).nnz == 0


def test_an_error_in_a_thread_is_not_lost(monkeypatch):
    monkeypatch.setattr(neighbors, "JOIN_BLOCK", 128)

    def broken(*_):
        raise RuntimeError("broken block")

    monkeypatch.setattr(CellJoin, "join", broken)
    with pytest.raises(RuntimeError, match="broken block"):
        nearest_neighbors(points(), 5, algorithm="approximate", n_jobs=2)


def test_limit_of_work_in_many_dimensions_and_recall_on_request():
    """Without structure in 25 dimensions the default stops early and says so; asked, it goes on."""
    X = np.random.default_rng(0).normal(size=(3000, 25))
    few = Policy(scanned_points=300)
    limited = NeighborIndex(X, algorithm="approximate", policy=few).neighbors(10)
    assert limited.recall < 0.7
    asked = nearest_neighbors(X, 10, algorithm="approximate", recall=0.9)
    assert 0.9 <= asked.recall < 1
    truth = nearest_neighbors(X, 10, algorithm="exact").distances[:, -1:] * (1 + 1e-12)
    for result in (limited, asked):
        assert result.recall == pytest.approx((result.distances <= truth).mean(), abs=0.03)


@pytest.mark.parametrize("recall", [0, -0.1, 1.5, "high", np.nan])
def test_bad_recall(recall):
    with pytest.raises(ValueError, match=r"recall must be a number in \(0, 1\]"):
        nearest_neighbors(points(50), 3, recall=recall)


def test_two_levels_of_cells_find_what_one_level_finds(monkeypatch):
    """Points look for their cell in a few groups; those that miss the nearest lose little."""
    X = points(6000, 4)
    one = CellSpace.fit(X, 1.0, 0)
    monkeypatch.setattr(cell_space, "ONE_GROUP", 20)
    two = CellSpace.fit(X, 1.0, 0)
    centers = two.centers
    assert one.centers.groups.shape[0] == 1
    assert centers.groups.shape[0] == round(np.sqrt(4 * 200))
    assert centers.n_cells == one.centers.n_cells == 200
    assert centers.ends[0] == 0
    assert centers.ends[-1] == 200
    home = two.home(X)
    assert np.array_equal(home, two.home(X, n_jobs=2))
    D = cdist(two.placed(X), centers.centers)
    assert (home == D.argmin(axis=1)).mean() > 0.95
    assert np.median(D[np.arange(6000), home] / D.min(axis=1)) == pytest.approx(1.0)
    near = centers.around(np.arange(200), 40)
    between = cdist(centers.centers, centers.centers)
    true = np.argsort(between, axis=1)[:, :20]
    assert np.mean([np.isin(t, n).mean() for t, n in zip(true, near, strict=True)]) > 0.98
    assert all(i in row for i, row in enumerate(near))
    result = nearest_neighbors(X, 8, algorithm="approximate")
    exact = nearest_neighbors(X, 8, algorithm="exact")
    assert (result.distances <= exact.distances[:, -1:]).mean() > 0.96
    assert abs((result.distances <= exact.distances[:, -1:]).mean() - result.recall) < 0.02


def test_cells_trained_on_a_sample_are_those_of_all_points():
    X = points(3000, 3)
    space = CellSpace.fit(X[::4], 1.0, 0, n_points=3000)
    assert space.centers.n_cells == 100
    sizes = np.bincount(space.home(X), minlength=100)
    assert sizes.sum() == 3000
    assert sizes.max() < 6 * sizes.mean()
