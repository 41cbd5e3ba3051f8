"""Nearest neighbours against exhaustive search."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.spatial
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gdpa.codec import pack, unpack
from gdpa.graph import cell_space, neighbors
from gdpa.graph.features import thin_duplicates
from gdpa.graph.neighbors import NeighborIndex
from gdpa.graph.search import choose_algorithm


def nearest_neighbors(X, n_neighbors, **options):
    return NeighborIndex(X, **options).neighbors(n_neighbors)


def oracle(Q, X, k, *, own=False):
    D = np.sqrt(((np.asarray(Q, float)[:, None] - np.asarray(X, float)[None]) ** 2).sum(-1))
    if own:
        np.fill_diagonal(D, np.inf)
    return np.sort(D, axis=1)[:, :k]


def check_lists(result, X, k):
    """Real, distinct, sorted neighbours, none of them the point itself."""
    n = len(X)
    assert result.indices.shape == result.distances.shape == (n, k)
    assert (result.indices != np.arange(n)[:, None]).all()
    assert ((result.indices >= 0) & (result.indices < n)).all()
    assert (np.diff(np.sort(result.indices, axis=1), axis=1) > 0).all()
    assert (np.diff(result.distances, axis=1) >= 0).all()
    X = np.asarray(X, dtype=np.float64)
    actual = np.linalg.norm(X[:, None] - X[result.indices], axis=-1)
    assert np.allclose(result.distances, actual, rtol=1e-12, atol=0)


@pytest.fixture(params=["kd-tree", "brute-force"])
def exact(request, monkeypatch):
    """Either exact search, whatever the dimension."""
    monkeypatch.setattr(neighbors, "choose_algorithm", lambda *_, **__: request.param)
    return request.param


# Few different values: ties and duplicates in almost every example.
grids = st.tuples(st.integers(2, 30), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-2, 2).map(float))
)


@settings(max_examples=60)
@given(grids, st.integers(1, 8), st.sampled_from(["kd-tree", "brute-force"]))
def test_exact_search_with_ties_and_duplicates(X, k, kind):
    k = min(k, len(X) - 1)
    index = NeighborIndex(X)
    index.algorithm = kind
    result = index.neighbors(k)
    check_lists(result, X, k)
    assert np.array_equal(result.distances, oracle(X, X, k, own=True))
    assert result.recall == 1.0


@pytest.mark.parametrize("d", [1, 2, 8, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exact_search_of_random_points(exact, d, dtype):
    X = np.random.default_rng(d).normal(size=(300, d)).astype(dtype)
    result = nearest_neighbors(X, 9)
    assert result.algorithm == exact
    check_lists(result, X, 9)
    assert np.allclose(result.distances, oracle(X, X, 9, own=True), rtol=1e-12)


def test_tight_clusters_far_from_the_origin(exact):
    # The products |x|^2 - 2 x'y + |y|^2 keep no digit of these distances.
    rng = np.random.default_rng(0)
    X = np.vstack([c + 1e-3 * rng.normal(size=(60, 12)) for c in (-1e8, 1e8, 3e8)])
    result = nearest_neighbors(X, 5)
    assert np.allclose(result.distances, oracle(X, X, 5, own=True), rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-250, 1e-30, 1e30, 1e250])
@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
def test_extreme_features(factor, algorithm):
    X = np.random.default_rng(1).normal(size=(200, 3))
    expected = nearest_neighbors(X, 4, algorithm=algorithm)
    result = nearest_neighbors(factor * X, 4, algorithm=algorithm)
    assert np.allclose(result.distances / factor, expected.distances, rtol=1e-9)


@pytest.mark.parametrize("d", [4, 10])
def test_approximate_search_reports_its_recall(monkeypatch, d):
    monkeypatch.setattr(cell_space, "CELL_POINTS", 50)
    X = np.random.default_rng(d).normal(size=(2000, d))
    result = nearest_neighbors(X, 10, algorithm="approximate")
    assert result.algorithm == "cells"
    check_lists(result, X, 10)
    kth = oracle(X, X, 10, own=True)[:, -1:]
    recall = (result.distances <= kth * (1 + 1e-12)).mean()
    assert result.recall >= 0.98
    assert result.recall == pytest.approx(recall, abs=0.015)
    assert recall >= 0.97


@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
@pytest.mark.parametrize("d", [3, 20])
def test_threads_do_not_change_the_answer(algorithm, d):
    X = np.random.default_rng(2).integers(0, 6, size=(4000, d)).astype(np.float32)
    one = nearest_neighbors(X, 6, algorithm=algorithm, n_jobs=1)
    two = nearest_neighbors(X, 6, algorithm=algorithm, n_jobs=2)
    assert np.array_equal(one.indices, two.indices)
    assert np.array_equal(one.distances, two.distances)
    assert one.recall == two.recall


@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
def test_all_points_identical(algorithm):
    X = np.full((3000, 4), 0.1)
    result = nearest_neighbors(X, 10, algorithm=algorithm)
    check_lists(result, X, 10)
    assert not result.distances.any()


@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
def test_heavy_duplicates(algorithm):
    rng = np.random.default_rng(3)
    X = np.vstack([np.repeat(rng.normal(size=(4, 3)), 400, axis=0), rng.normal(size=(300, 3))])
    X = X[rng.permutation(len(X))]
    result = nearest_neighbors(X, 10, algorithm=algorithm)
    check_lists(result, X, 10)
    if algorithm == "exact":
        assert np.allclose(result.distances, oracle(X, X, 10, own=True), rtol=1e-13, atol=0)
    crowded = result.distances[:, -1] == 0
    assert crowded.sum() == 1600


def test_thinning_keeps_what_is_needed():
    X = np.array([[0.0], [1.0], [0.0], [-0.0], [2.0], [0.0], [1.0]])
    thinned = thin_duplicates(X, 2)
    assert thinned.kept.tolist() == [0, 1, 2, 4, 6]
    members, ends = thinned.groups
    assert members.tolist() == [0, 2, 3, 5]
    assert ends.tolist() == [0, 4]
    assert thin_duplicates(X, 4).kept is None


def test_different_rows_with_the_same_key_are_told_apart(monkeypatch):
    # With factors of 0 all rows have one key.
    no_factors = SimpleNamespace(uniform=lambda low, high, d: np.zeros(d))
    monkeypatch.setattr(np.random, "default_rng", lambda seed: no_factors)
    X = np.array([[0.0]] * 5 + [[1.0]] * 2 + [[2.0]] * 6)
    members, ends = thin_duplicates(X, 3).groups
    assert sorted(np.diff(ends).tolist()) == [5, 6]
    assert set(members.tolist()) == {0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12}


@pytest.mark.parametrize("d", [2, 30])
def test_new_points(d):
    rng = np.random.default_rng(4)
    X, Q = rng.normal(size=(250, d)), rng.normal(size=(40, d))
    index = NeighborIndex(X)
    result = index.query(Q, 7)
    assert np.allclose(result.distances, oracle(Q, X, 7), rtol=1e-12)
    # A fitted point asked as a new one finds itself.
    again = index.query(X[:5], 1)
    assert again.indices.ravel().tolist() == [0, 1, 2, 3, 4]
    assert not again.distances.any()
    assert index.query(Q, 250).indices.shape == (40, 250)


def test_new_points_among_heavy_duplicates():
    X = np.vstack([np.zeros((500, 2)), np.ones((3, 2))])
    result = NeighborIndex(X).query([[0.9, 0.9]], 8)
    assert np.allclose(result.distances, oracle([[0.9, 0.9]], X, 8))
    assert len(set(result.indices[0].tolist())) == 8


@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
def test_an_index_survives_pickling(algorithm):
    X = np.random.default_rng(5).normal(size=(500, 6))
    index = NeighborIndex(X, algorithm=algorithm)
    before = index.neighbors(4)
    after = pickle.loads(pickle.dumps(index)).neighbors(4)
    assert np.array_equal(before.indices, after.indices)
    assert before.recall == after.recall


@pytest.mark.parametrize(
    "make", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], lambda X: X.tolist()]
)
@pytest.mark.parametrize("d", [3, 20])
def test_layout_does_not_matter(make, d):
    X = np.random.default_rng(6).normal(size=(100, d))
    assert np.array_equal(nearest_neighbors(make(X), 5).indices, nearest_neighbors(X, 5).indices)


def test_integers_and_constant_features():
    X = np.random.default_rng(7).integers(0, 100, size=(80, 3))
    X[:, 1] = 7
    expected = oracle(X, X, 5, own=True)
    assert np.allclose(nearest_neighbors(X, 5).distances, expected, rtol=1e-12)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_features(container):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(150, 40)) * (rng.random((150, 40)) < 0.2)
    X[10:20] = X[10]
    X[30] = 0
    index = NeighborIndex(container(X))
    result = index.neighbors(6)
    check_lists(result, X, 6)
    assert np.allclose(result.distances, oracle(X, X, 6, own=True), rtol=1e-9, atol=1e-12)
    assert np.allclose(index.query(sp.csr_array(X[:3]), 2).distances, oracle(X[:3], X, 2))
    with pytest.raises(ValueError, match="both be dense or both be sparse"):
        index.query(X[:3], 2)


@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
@pytest.mark.parametrize("d", [3, 24])
def test_memory_mapped_features(tmp_path, monkeypatch, algorithm, d):
    monkeypatch.setattr("gdpa.graph.features.BLOCK_BYTES", 4096)
    X = np.random.default_rng(9).normal(size=(700, d)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    index = NeighborIndex(mapped, algorithm=algorithm)
    assert np.shares_memory(index.X, mapped)
    expected = nearest_neighbors(X, 5, algorithm=algorithm)
    assert np.array_equal(index.neighbors(5).indices, expected.indices)


def test_one_and_two_points():
    with pytest.warns(UserWarning, match="n_neighbors=3 is more than the 0 other points"):
        assert nearest_neighbors([[1.0]], 3).indices.shape == (1, 0)
    assert nearest_neighbors([[1.0], [5.0]], 1).indices.ravel().tolist() == [1, 0]


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_approximate_search_of_very_few_points(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    result = nearest_neighbors(X, n - 1, algorithm="approximate")
    check_lists(result, X, n - 1)
    assert np.allclose(result.distances, oracle(X, X, n - 1, own=True), rtol=1e-12)


def test_too_many_neighbors_are_cut_with_a_warning():
    X = np.arange(6.0)[:, None]
    with pytest.warns(UserWarning, match="n_neighbors=6 is more than the 5 other points; 5"):
        assert nearest_neighbors(X, 6).indices.shape == (6, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nearest_neighbors(X, 5)


def test_choice_by_size_and_dimension():
    assert choose_algorithm(1000, 5) == "kd-tree"
    assert choose_algorithm(1000, 100) == "brute-force"
    assert choose_algorithm(10**7, 2) == "kd-tree"
    assert choose_algorithm(10**6, 50, sparse=True) == "brute-force"
    assert choose_algorithm(10**6, 8) == choose_algorithm(10**6, 50) == "cells"
    assert choose_algorithm(1000, 8, algorithm="approximate") == "cells"
    assert choose_algorithm(10**6, 8, algorithm="exact") == "kd-tree"
    for name in ("kd-tree", "brute-force", "cells"):
        assert choose_algorithm(1000, 8, algorithm=name) == name
    assert choose_algorithm(1000, 8, sparse=True, algorithm="cells") == "brute-force"


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([[0.0], [np.nan]], {}, "row 1, column 0"),
        ([[0.0, np.inf], [0.0, 1.0]], {}, "row 0, column 1"),
        (np.zeros(5), {}, "two dimensions"),
        (np.zeros((0, 2)), {}, "at least one sample"),
        (np.zeros((3, 0)), {}, "at least one sample"),
        ([["a"], ["b"]], {}, "real"),
        ([[0.0], [1.0]], {"n_neighbors": 0}, "at least 1, got 0"),
        ([[0.0], [1.0]], {"n_neighbors": 1.5}, "integer"),
        ([[0.0], [1.0]], {"n_neighbors": True}, "integer"),
        ([[0.0], [1.0]], {"algorithm": "exakt"}, "did you mean 'exact'"),
        ([[0.0], [1.0]], {"n_jobs": 0}, "n_jobs"),
        ([[0.0], [1.0]], {"n_jobs": 1.5}, "n_jobs"),
        ([[0.0], [1.0]], {"random_state": -1}, "negative"),
        ([[0.0], [1.0]], {"random_state": "x"}, "random_state"),
    ],
)
def test_bad_input_is_refused(X, options, message):
    with pytest.raises(ValueError, match=message):
        nearest_neighbors(X, **({"n_neighbors": 1} | options))


def test_bad_query_is_refused():
    index = NeighborIndex(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="3 features, but 2 are expected"):
        index.query(np.zeros((1, 3)), 1)
    with pytest.raises(ValueError, match="row 0, column 1"):
        index.query([[0.0, np.nan]], 1)
    with pytest.warns(UserWarning, match="n_neighbors=9 is more than the 4 fitted points"):
        assert index.query([[0.0, 0.0]], 9).indices.shape == (1, 4)


def test_a_copy_finds_what_the_original_finds():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(3000, 12)), rng.normal(size=(200, 12))
    index = NeighborIndex(X, algorithm="approximate")
    index.neighbors(40)  # the search is tuned for these
    copy = pickle.loads(pickle.dumps(index))
    stored = unpack(NeighborIndex, *pack(index))
    want = index.query(Q, 5)
    for other in (copy, stored):
        np.testing.assert_array_equal(other.query(Q, 5).indices, want.indices)


def test_the_tree_never_starts_threads_of_its_own(monkeypatch):
    """SciPy's threads run on after an interrupt and write into arrays that are freed."""
    workers = []

    class Spy(scipy.spatial.cKDTree):
        def query(self, *args, **options):
            workers.append(options.get("workers", 1))
            return super().query(*args, **options)

    monkeypatch.setattr(scipy.spatial, "cKDTree", Spy)
    X = np.random.default_rng(0).normal(size=(5000, 3))
    index = NeighborIndex(X, n_jobs=3)
    index.neighbors(5)
    index.query(X + 0.1, 5)
    assert len(workers) > 2
    assert set(workers) == {1}


INTERRUPTED = """
import signal, time
import numpy as np
from gdpa.graph.neighbors import NeighborIndex

signal.signal(signal.SIGALRM, signal.default_int_handler)
X = np.random.default_rng(0).normal(size=(8_000, 5))
start = time.perf_counter()
NeighborIndex(X, n_jobs=4).neighbors(8)
took = time.perf_counter() - start
stopped = 0
for turn in range(30):
    try:
        signal.setitimer(signal.ITIMER_REAL, took * (turn % 10 + 1) / 12)
        NeighborIndex(X, n_jobs=4).neighbors(8)  # tree and arrays are freed by the interrupt
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        stopped += 1
print(stopped)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_interrupted_searches_do_not_crash(monkeypatch):
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # it may hang when interrupted
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
