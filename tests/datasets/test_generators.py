"""Generators: shapes, determinism, and the mathematics of what they make."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from gdpa.datasets import (
    gaussian_clusters,
    linked_classes,
    make_moons_graph,
    moons,
    restoration,
)


@given(n=st.integers(2, 200), seed=st.integers(0, 2**31))
def test_moons_without_noise_lie_on_two_half_circles(n, seed):
    X, y = moons(n, noise=0.0, random_state=seed)
    assert X.shape == (n, 2)
    assert abs(int(y.sum())) <= 1
    upper, lower = X[y > 0], X[y < 0]
    np.testing.assert_allclose(np.hypot(*upper.T), 1.0)
    np.testing.assert_allclose(np.hypot(*(lower - [1.0, 0.5]).T), 1.0)
    assert (upper[:, 1] >= -1e-12).all()
    assert (lower[:, 1] <= 0.5 + 1e-12).all()


def test_moons_graph_has_the_labels_it_promises():
    problem, y = make_moons_graph(201, n_labeled=7, n_neighbors=5, random_state=3)
    known = problem.labels != 0
    assert problem.n_nodes == 201
    assert (problem.labels == 1).sum() == 4
    assert (problem.labels == -1).sum() == 3
    np.testing.assert_array_equal(problem.labels[known], y[known])
    assert (problem.diagonal >= 5).all()  # at least one's own nearest
    assert set(np.unique(problem.W.data)) == {1.0}


def test_separated_moons_are_two_components():
    problem, y = make_moons_graph(400, noise=0.0, n_neighbors=4, random_state=0)
    count, component = connected_components(problem.W, directed=False)
    assert count == 2
    assert len(set(component[y > 0])) == len(set(component[y < 0])) == 1


@given(
    n=st.integers(30, 300),
    d=st.integers(1, 9),
    n_classes=st.integers(2, 4),
    more=st.integers(0, 8),
    seed=st.integers(0, 2**31),
)
def test_clusters_are_balanced_and_deterministic(n, d, n_classes, more, seed):
    options = {"n_features": d, "n_clusters": n_classes + more, "n_classes": n_classes}
    X, y = gaussian_clusters(n, **options, random_state=seed)
    again, y_again = gaussian_clusters(n, **options, random_state=seed)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, y_again)
    assert X.shape == (n, d)
    assert len(np.unique(y)) == n_classes
    assert set(np.unique(y)) == ({-1, 1} if n_classes == 2 else set(range(n_classes)))


def test_clusters_have_unit_variance_about_their_centres():
    # Far apart, the clusters are the groups between wide gaps of the first coordinate.
    X, y = gaussian_clusters(40_000, separation=1e6, random_state=1)
    order = np.argsort(X[:, 0])
    cuts = np.flatnonzero(np.diff(X[order, 0]) > 100) + 1
    groups = np.split(order, cuts)
    assert len(groups) == 20
    assert {g.size for g in groups} == {2000}
    assert all(len(set(y[g])) == 1 for g in groups)
    variances = [X[g].var(axis=0, ddof=1) for g in groups]
    # Standard error of a pooled variance of 320,000 numbers: sqrt(2 / 320000) = 0.0025.
    assert abs(np.mean(variances) - 1.0) < 0.01


def test_float32_is_drawn_as_float32():
    X, y = gaussian_clusters(500, dtype=np.float32, random_state=0)
    assert X.dtype == np.float32
    assert y.dtype == np.int8


@given(
    n=st.integers(2, 40),
    hops=st.sampled_from([1, 2]),
    sigma=st.floats(0, 3),
    seed=st.integers(0, 2**31),
)
def test_restoration_matrix_is_the_papers(n, hops, sigma, seed):
    problem, signal = restoration(n, hops=hops, sigma=sigma, random_state=seed)
    P = problem.P.toarray()
    assert P.shape == (n + 1, n + 1)
    np.testing.assert_array_equal(P, P.T)
    assert P[0, 0] == 1.0
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    np.testing.assert_array_equal(P[1:, 1:], (distance >= 1) & (distance <= hops))
    assert abs(int(signal.sum())) == n % 2
    if sigma == 0:
        np.testing.assert_array_equal(P[0, 1:], signal)


def test_restoration_noise_has_the_standard_deviation_asked_for():
    problem, signal = restoration(50_000, sigma=1.5, random_state=0)
    noise = problem.P[[0]].toarray().ravel()[1:] - signal
    # Four standard errors of mean and standard deviation.
    assert abs(noise.mean()) < 4 * 1.5 / np.sqrt(noise.size)
    assert abs(noise.std() - 1.5) < 4 * 1.5 / np.sqrt(2 * noise.size)


@pytest.mark.parametrize(
    ("hops", "sigma", "published"),
    [
        (1, 1.0, 2.78),
        (1, 1.5, 11.01),
        (1, 2.0, 19.57),
        (2, 1.0, 0.86),
        (2, 1.5, 3.57),
        (2, 2, 9.13),
    ],
)
def test_closed_form_reproduces_the_papers_table_1(hops, sigma, published):
    # THEORY: y_i = sum_j |P_ij|, labels from the first eigenvector of H = diag(y) - P.
    wrong = []
    for seed in range(60):
        problem, signal = restoration(100, hops=hops, sigma=sigma, random_state=seed)
        P = problem.reduced().P.toarray()
        v = np.linalg.eigh(np.diag(np.abs(P).sum(axis=1)) - P)[1][:, 0]
        wrong.append(np.mean(np.sign(v[1:] * v[0]) != signal))
    assert abs(100 * np.mean(wrong) - published) < 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: moons(1), "n_samples=1 must be a whole number"),
        (lambda: moons(2.5), "n_samples=2.5"),
        (lambda: moons(10, noise=-1), "noise=-1"),
        (lambda: moons(10, noise=float("nan")), "noise=nan"),
        (lambda: make_moons_graph(10, n_labeled=11, n_neighbors=3), "n_labeled=11.*2 to 10"),
        (lambda: make_moons_graph(10, n_labeled=1), "n_labeled=1"),
        (lambda: make_moons_graph(10, n_neighbors=10, n_labeled=2), "n_neighbors=10.*1 to 9"),
        (lambda: linked_classes(2), "n_nodes=2 .*at least 3"),
        (lambda: linked_classes(9, homophily=1.5), "homophily=1.5"),
        (lambda: linked_classes(9, degree=-1.0), "degree=-1"),
        (lambda: gaussian_clusters(10), "n_samples=10 .*at least 20"),
        (lambda: gaussian_clusters(100, n_clusters=1), "n_clusters=1"),
        (lambda: gaussian_clusters(100, n_classes=1), "n_classes=1"),
        (lambda: gaussian_clusters(100, dtype=np.int64), "float32 or float64"),
        (lambda: gaussian_clusters(100, separation=float("inf")), "separation=inf"),
        (lambda: restoration(1), "n=1"),
        (lambda: restoration(10, hops=3), "hops=3 must be 1 or 2"),
        (lambda: restoration(10, sigma=-0.1), "sigma=-0.1"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("homophily", [0.0, 0.5, 0.9])
def test_links_join_classes_as_often_as_asked(homophily):
    X, y, W = linked_classes(4_000, n_classes=4, degree=8.0, homophily=homophily, random_state=2)
    assert X.shape == (4_000, 16)
    assert (W != W.T).nnz == 0
    assert not W.diagonal().any()
    np.testing.assert_array_equal(np.unique(W.data), 1.0)
    rows = np.repeat(np.arange(4_000), np.diff(W.indptr))
    same = (y[rows] == y[W.indices]).mean()
    assert abs(same - homophily) < 0.02
    assert abs(W.nnz / 4_000 - 8.0) < 0.1
    again = linked_classes(4_000, n_classes=4, degree=8.0, homophily=homophily, random_state=2)
    assert (again[2] != W).nnz == 0
    np.testing.assert_array_equal(again[0], X)


def test_features_without_separation_say_nothing():
    X, y, _ = linked_classes(20_000, separation=0.0, random_state=0)
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    assert np.abs(means).max() < 0.06
