"""The full graph against its formula, stored and as an operator."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gdpa.graph import full_graph, kernels
from gdpa.graph.features import row_blocks

features = st.tuples(st.integers(1, 15), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-5, 5, width=32))
)


def naive(X, scales):
    n = len(X)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                W[i, j] = np.exp(-np.sum((X[i] - X[j]) ** 2) / (scales[i] * scales[j]))
    return W


def naive_seventh(X):
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    return np.array([np.sort(np.delete(D[i], i))[min(7, len(X) - 1) - 1] for i in range(len(X))])


@given(features, st.floats(0.1, 10))
def test_fixed_bandwidth_is_the_formula(X, sigma):
    W = full_graph(X, bandwidth=sigma)
    assert np.allclose(W, naive(X, np.full(len(X), sigma)), rtol=1e-10, atol=1e-300)
    assert np.array_equal(W, W.T)


def test_default_is_the_kernel_of_the_paper():
    X = np.random.default_rng(0).random((20, 3))
    assert np.allclose(full_graph(X), naive(X, np.ones(20)), rtol=1e-13)


@pytest.mark.parametrize("n", [2, 5, 8, 40])
def test_self_tuning_is_the_distance_to_the_seventh_neighbor(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    W = full_graph(X, bandwidth="self-tuning")
    assert np.allclose(W, naive(X, naive_seventh(X)), rtol=1e-12)
    assert np.array_equal(W, W.T)


def test_median_is_the_median_pair():
    X = np.random.default_rng(2).normal(size=(30, 2))
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    sigma = np.median(D[np.triu_indices(30, 1)])
    assert np.allclose(full_graph(X, bandwidth="median"), naive(X, np.full(30, sigma)), rtol=1e-12)


def test_median_of_many_points_is_that_of_a_sample(monkeypatch):
    X = np.random.default_rng(3).normal(size=(400, 2))
    whole = kernels.node_scales(X, "median")[0]
    monkeypatch.setattr(kernels, "MEDIAN_SAMPLE", 200)
    sampled = kernels.node_scales(X, "median")[0]
    assert sampled != whole
    assert sampled == pytest.approx(whole, rel=0.1)


@pytest.mark.parametrize("bandwidth", [1.0, "median", "self-tuning"])
def test_identical_points_have_weight_one(bandwidth):
    W = full_graph(np.full((12, 2), 3.7), bandwidth=bandwidth)
    assert np.array_equal(W, 1 - np.eye(12))


@pytest.mark.parametrize("bandwidth", ["median", "self-tuning"])
@pytest.mark.parametrize("factor", [1e-200, 1e-30, 1e30, 1e200])
def test_tuned_bandwidths_are_scale_free(bandwidth, factor):
    X = np.random.default_rng(4).normal(size=(15, 3))
    expected = full_graph(X, bandwidth=bandwidth)
    assert np.allclose(full_graph(factor * X, bandwidth=bandwidth), expected, rtol=1e-9)


def test_huge_distances_give_zero_not_nan():
    W = full_graph([[0.0], [1e200], [-1e200]])
    assert np.array_equal(W, np.zeros((3, 3)))


@pytest.mark.parametrize("make", [sp.csr_array, sp.coo_matrix, np.asfortranarray])
def test_other_containers_give_the_same(make):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.5)
    assert np.allclose(full_graph(make(X)), full_graph(X), rtol=1e-12)


def test_single_precision():
    X = np.random.default_rng(6).normal(size=(20, 3)).astype(np.float32)
    W = full_graph(X, dtype=np.float32)
    assert W.dtype == np.float32
    assert np.allclose(W, full_graph(X), rtol=1e-6)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_blocks_of_rows_give_the_same_graph(monkeypatch, make):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 3)) + 1000.0 * (make is np.asarray)
    whole = full_graph(X, bandwidth=2.0)
    monkeypatch.setattr(kernels, "row_blocks", lambda n, _: row_blocks(n, 1, 16))
    blocks = full_graph(make(X), bandwidth=2.0)
    assert np.allclose(blocks, whole, rtol=1e-8, atol=1e-300)
    assert not blocks.diagonal().any()


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([[0.0], [np.nan]], {}, "row 1, column 0"),
        (sp.csr_array([[0.0, np.inf]]), {}, "row 0, column 1"),
        (np.zeros(3), {}, "two dimensions"),
        (np.zeros((0, 3)), {}, "at least one sample"),
        ([[1j]], {}, "real"),
        ([[1.0]], {"bandwidth": 0.0}, "positive"),
        ([[1.0]], {"bandwidth": -1.0}, "positive"),
        ([[1.0]], {"bandwidth": np.nan}, "positive"),
        ([[1.0]], {"bandwidth": np.inf}, "positive"),
        ([[1.0]], {"bandwidth": True}, "positive"),
        ([[1.0]], {"bandwidth": None}, "positive"),
        ([[1.0]], {"bandwidth": "selftuning"}, "did you mean 'self-tuning'"),
    ],
)
def test_bad_input_is_refused(X, options, message):
    with pytest.raises(ValueError, match=message):
        full_graph(X, **options)


def test_an_integer_type_is_refused():
    with pytest.raises(ValueError, match="dtype"):
        full_graph([[1.0]], dtype=np.int64)
