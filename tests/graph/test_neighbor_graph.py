"""The sparse neighbour graph against its definition."""

from __future__ import annotations

import importlib
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gdpa.graph import neighbor_graph
from gdpa.graph.adjacency import check_adjacency, component_labels
from gdpa.graph.neighbor_graph import (
    assemble,
    kernel_weights,
    local_scales,
    median_scale,
    neighbor_graphs,
)
from gdpa.graph.neighbors import NeighborIndex


def naive(X, k, bandwidth):
    """Dense graph straight from the definition."""
    n = len(X)
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1)
    listed = np.zeros((n, n), dtype=bool)
    np.put_along_axis(listed, order[:, :k], True, axis=1)
    if bandwidth == "self-tuning":
        sigma = np.sort(D, axis=1)[:, min(7, n - 1) - 1]
    elif bandwidth == "median":
        sigma = np.full(n, np.median(D[listed]))
    else:
        sigma = np.full(n, bandwidth)
    np.fill_diagonal(D, 0)
    A = np.where(listed, np.exp(-(D**2) / np.outer(sigma, sigma)), 0)
    return np.maximum(A, A.T)


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(2, 40),
    st.integers(1, 12),
    st.sampled_from(["self-tuning", "median", 0.7]),
    st.sampled_from([2, 15]),
)
def test_graph_is_its_definition(seed, n, k, bandwidth, d):
    k = min(k, n - 1)
    X = np.random.default_rng(seed).normal(size=(n, d))
    W = neighbor_graph(X, k, bandwidth=bandwidth)
    expected = naive(X, k, bandwidth)
    assert isinstance(W, sp.csr_array)
    assert np.allclose(W.toarray(), expected, rtol=1e-10, atol=1e-300)
    check_canonical(W)


def check_canonical(W, dtype=np.float64):
    """What every solver relies on."""
    assert W.dtype == dtype
    assert (W.data > 0).all()
    assert (W.data <= 1).all()
    assert not W.diagonal().any()
    T = W.T.tocsr()
    assert np.array_equal(W.indices, T.indices)
    assert np.array_equal(W.data, T.data)
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    key = rows * W.shape[0] + W.indices.astype(np.int64)
    assert (np.diff(key) > 0).all()
    assert np.array_equal(check_adjacency(W).data, W.data)


@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
@pytest.mark.parametrize("bandwidth", ["self-tuning", "median", 1.0])
def test_all_points_identical_weigh_one(algorithm, bandwidth):
    W = neighbor_graph(np.full((500, 3), 2.5), 5, bandwidth=bandwidth, algorithm=algorithm)
    check_canonical(W)
    assert (W.data == 1).all()
    # The ring of duplicates holds together.
    assert component_labels(W)[0] == 1


@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
def test_heavy_duplicates_stay_finite(algorithm):
    rng = np.random.default_rng(0)
    X = np.vstack([np.repeat(rng.normal(size=(3, 2)), 300, axis=0), rng.normal(size=(200, 2))])
    graph = neighbor_graphs(X, [8], algorithm=algorithm)[0]
    check_canonical(graph.W)
    assert np.isfinite(graph.scales).all()
    assert (graph.scales > 0).all()


def test_scale_of_duplicates_is_their_smallest_positive_distance():
    distances = np.array(
        [
            [0, 0, 0, 0, 0, 0, 0, 3.0, 4.0],  # seven duplicates, then others
            [1, 2, 3, 4, 5, 6, 7.0, 8, 9],
            [0, 0, 0, 0, 0, 0, 0, 0, 0],  # nothing but duplicates: the median of the others
        ]
    )
    assert local_scales(distances).tolist() == [3, 7, 5]
    assert local_scales(distances, fallback=0.5).tolist() == [3, 7, 0.5]
    assert local_scales(distances[:, :2]).tolist() == [2, 2, 2]
    assert local_scales(np.zeros((2, 3))).tolist() == [1, 1]
    assert median_scale(np.array([0.0, 0.0, 2.0, 4.0])) == 3.0
    assert median_scale(np.zeros(3)) == 1.0


@pytest.mark.parametrize(("dtype", "floor"), [(np.float64, 1e-300), (np.float32, 1e-37)])
def test_no_edge_is_lost_to_underflow(dtype, floor):
    X = np.array([[0.0], [1.0], [1e6], [1e6 + 1]])
    W = neighbor_graph(X, 2, bandwidth=1.0, dtype=dtype)
    check_canonical(W, dtype)
    assert W[0, 2] == dtype(floor)
    assert W.nnz == (neighbor_graph(X, 2, bandwidth=1e6) != 0).nnz


def test_weights_at_the_ends_of_floating_point():
    d = np.array([0.0, 5e-324, 1e-300, 1.0, 1e300])
    for sigma in (5e-324, 1e-300, 1.0, 1e300):
        w = kernel_weights(d, sigma, sigma)
        assert np.isfinite(w).all()
        assert (w > 0).all()
        assert (np.diff(w) <= 0).all()
        assert w[0] == 1


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_self_tuning_does_not_see_the_unit(factor):
    X = np.random.default_rng(1).normal(size=(60, 3))
    expected = neighbor_graph(X, 5).toarray()
    assert np.allclose(neighbor_graph(factor * X, 5).toarray(), expected, rtol=1e-9)


def test_fewer_neighbors_than_the_scale_needs():
    X = np.random.default_rng(2).normal(size=(50, 2))
    graph = neighbor_graphs(X, [3])[0]
    seventh = NeighborIndex(X).neighbors(7).distances[:, 6]
    assert np.array_equal(graph.scales, seventh)
    assert graph.n_neighbors == 3


def test_single_precision_weights():
    X = np.random.default_rng(3).normal(size=(100, 4)).astype(np.float32)
    W = neighbor_graph(X, 6, dtype=np.float32)
    check_canonical(W, np.float32)
    assert np.allclose(W.toarray(), neighbor_graph(X, 6).toarray(), rtol=1e-6)


def test_wide_indices_when_forced(monkeypatch):
    X = np.random.default_rng(4).normal(size=(80, 2))
    narrow = neighbor_graph(X, 5)
    assert narrow.indices.dtype == np.int32
    for name in ("neighbors", "neighbor_graph"):
        module = importlib.import_module(f"gdpa.graph.{name}")
        monkeypatch.setattr(module, "get_index_dtype", lambda maxval: np.int64)
    wide = neighbor_graph(X, 5)
    assert wide.indices.dtype == wide.indptr.dtype == np.int64
    assert np.array_equal(wide.toarray(), narrow.toarray())


def test_assembly_takes_three_times_the_graph_at_most():
    X = np.random.default_rng(5).normal(size=(60_000, 2))
    found = NeighborIndex(X).neighbors(10)
    own = found.indices.nbytes + found.distances.nbytes
    scales = local_scales(found.distances)
    lists = [found.indices.copy(), found.distances.copy()]
    tracemalloc.start()
    W = assemble(lists, scales, np.float64)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    graph = W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
    # Blocks of work do not grow with the graph.
    assert peak < 3 * graph + 2**25
    assert own < 1.5 * graph


def test_a_hundred_thousand_components():
    X = np.repeat(np.arange(100_000.0), 3)[:, None] * 1000
    X += np.tile([0.0, 1.0, 2.0], 100_000)[:, None]
    W = neighbor_graph(X, 2)
    check_canonical(W)
    assert component_labels(W)[0] == 100_000


def test_threads_do_not_change_the_graph():
    X = np.random.default_rng(6).normal(size=(3000, 3))
    one, two = (neighbor_graph(X, 8, n_jobs=j) for j in (1, 2))
    assert np.array_equal(one.indices, two.indices)
    assert np.array_equal(one.data, two.data)


@pytest.mark.parametrize("bandwidth", ["self-tuning", "median", 0.8])
def test_new_points_are_attached_by_the_same_kernel(bandwidth):
    rng = np.random.default_rng(8)
    X, Q = rng.normal(size=(60, 2)), rng.normal(size=(5, 2))
    graph = neighbor_graphs(X, [4], bandwidth=bandwidth)[0]
    rows = graph.attach(Q)
    D = np.sqrt(((Q[:, None] - X[None]) ** 2).sum(-1))
    own = np.sort(D, axis=1)[:, 6] if bandwidth == "self-tuning" else np.full(5, graph.scales[0])
    K = np.exp(-(D**2) / np.outer(own, graph.scales))
    for i in range(5):
        nearest = np.sort(np.argsort(D[i])[:4])
        assert np.array_equal(rows[[i]].indices, nearest)
        assert np.allclose(rows[[i]].data, K[i, nearest], rtol=1e-12)


def test_attaching_to_identical_points():
    graph = neighbor_graphs(np.zeros((50, 2)), [3])[0]
    rows = graph.attach([[0.0, 0.0], [5.0, 0.0]])
    assert np.isfinite(rows.data).all()
    assert (rows.data > 0).all()
    assert (rows[[0]].data == 1).all()


def test_one_and_two_nodes():
    one = neighbor_graphs([[3.0]], [5])[0]
    assert one.W.shape == (1, 1)
    assert one.W.nnz == 0
    assert one.attach([[4.0]]).shape == (1, 1)
    two = neighbor_graph([[0.0], [1.0]], 1)
    assert np.allclose(two.toarray(), np.exp(-1) * np.array([[0, 1], [1, 0]]))


def test_too_many_neighbors_warn_once():
    with pytest.warns(UserWarning, match="n_neighbors=10 is more than the 3 other points") as seen:
        W = neighbor_graph(np.arange(4.0)[:, None])
    assert len(seen) == 1
    assert W.nnz == 12


def test_sparse_and_integer_features():
    X = np.random.default_rng(9).integers(0, 3, size=(60, 12))
    X[:, 0] = np.arange(60)
    dense = neighbor_graph(X.astype(float), 4, bandwidth=3.0)
    assert np.array_equal(neighbor_graph(X, 4, bandwidth=3.0).toarray(), dense.toarray())
    sparse = neighbor_graph(sp.csr_array(X), 4, bandwidth=3.0)
    check_canonical(sparse)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0}, "positive"),
        ({"bandwidth": "selftuning"}, "did you mean 'self-tuning'"),
        ({"dtype": np.int32}, "dtype must be float32 or float64"),
        ({"algorithm": "fast"}, "algorithm='fast' is not known"),
        ({"n_neighbors": 0}, "at least 1"),
        ({"n_neighbors": "all"}, "integer"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        neighbor_graph(np.zeros((20, 2)), **options)


def test_missing_values_are_refused_with_their_place():
    X = np.zeros((20, 3))
    X[4, 2] = np.nan
    with pytest.raises(ValueError, match="X has NaN in row 4, column 2"):
        neighbor_graph(X)


@pytest.mark.parametrize("bandwidth", ["self-tuning", "median", 0.7])
@pytest.mark.parametrize("counts", [(10, 15, 20), (20, 3, 10), (4,)])
def test_graphs_from_one_search_are_those_of_a_search_each(bandwidth, counts):
    X = np.random.default_rng(0).normal(size=(300, 3))
    graphs = neighbor_graphs(X, counts, bandwidth=bandwidth)
    assert [graph.n_neighbors for graph in graphs] == list(counts)
    for graph, k in zip(graphs, counts, strict=True):
        alone = neighbor_graphs(X, [k], bandwidth=bandwidth)[0]
        assert (graph.W != alone.W).nnz == 0
        np.testing.assert_array_equal(graph.scales, alone.scales)
        new = X[:20] + 0.01
        assert (graph.attach(new) != alone.attach(new)).nnz == 0
        assert graph.index is graphs[0].index
