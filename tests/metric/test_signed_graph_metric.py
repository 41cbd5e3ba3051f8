"""Metrics of balanced signed graphs: constraints, descent, the linear program, bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import check_grad, linprog

from benchmarks.cone_projection import learn_by_projection, project_onto_cone
from gdpa.errors import ConvergenceWarning
from gdpa.graph import balance
from gdpa.metric import OBJECTIVES, SignedGraphMetric
from gdpa.metric import frank_wolfe as fw
from gdpa.metric.objectives import DistanceObjective


def problem(seed, n=None, d=None):
    rng = np.random.default_rng(seed)
    n, d = n or int(rng.integers(4, 25)), d or int(rng.integers(1, 8))
    X, y = rng.normal(size=(n, d)), np.arange(n) % int(rng.integers(2, 4))
    X[:, 0] += y
    return X, y


@pytest.mark.parametrize("seed", range(50))
def test_constraints_balance_and_descent(seed):
    X, y = problem(seed)
    trace = X.shape[1] * (0.2 + seed % 3)
    metric = SignedGraphMetric(tuple(OBJECTIVES)[seed % 5], trace=trace, max_iter=3).fit(X, y)
    M = metric.metric_
    assert np.linalg.eigvalsh(M)[0] >= 1e-5 - 1e-10 * np.abs(M).max()
    assert np.trace(M) <= trace * (1 + 1e-9)
    assert balance(-M).balanced
    assert np.array_equal(M, M.T)
    signs = np.outer(metric.colors_, metric.colors_)
    assert (M * signs - np.diag(M.diagonal()) <= 0).all()
    assert all(after <= before for before, after in pairwise(metric.history_))
    assert metric.history_[-1] == metric.objective_
    # Distances under M are Euclidean distances of the transformed samples.
    Z = metric.transform(X)
    difference = X[0] - X[1]
    assert np.square(Z[0] - Z[1]).sum() == pytest.approx(difference @ M @ difference)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradient_is_the_derivative(name):
    X, y = problem(3, n=9, d=3)
    objective = DistanceObjective(name, X, y)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    M = root @ root.T + np.eye(3)

    def image(m):
        return objective.image(0.5 * (m.reshape(3, 3) + m.reshape(3, 3).T))

    def value(m):
        return objective.loss(image(m))[0]

    def gradient(m):
        derivatives = objective.loss(image(m))[1]
        return objective.gradient(derivatives, 3)[1].ravel()

    size = np.abs(gradient(M.ravel())).max() + 1.0
    assert check_grad(value, gradient, M.ravel()) <= 1e-5 * size


def test_lsml_is_the_sum_over_all_pairs_of_pairs():
    X, y = problem(5, n=10, d=2)
    objective = DistanceObjective("lsml", X, y)
    D = np.sqrt(objective.image(np.eye(2)))
    i, j = np.triu_indices(10, 1)
    near, far = D[i, j][y[i] == y[j]], D[i, j][y[i] != y[j]]
    direct = np.square(np.maximum(near[:, None] - far, 0)).sum()
    assert objective.loss(objective.image(np.eye(2)))[0] == pytest.approx(direct)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_vertex_solves_the_linear_program(seed):
    """HiGHS on the disc constraints of the paper finds the value of the lowest slope."""
    rng = np.random.default_rng(seed)
    d, trace, floor = 5, 3.0, 1e-2
    G, v = rng.normal(size=(d, d)), rng.uniform(0.5, 2, d)
    G, colors = G + G.T, rng.choice([-1.0, 1.0], d)
    i, j = np.triu_indices(d, 1)
    # Variables: diagonal, then absolute off-diagonals.
    costs = np.concatenate([G.diagonal(), -2 * colors[i] * colors[j] * G[i, j]])
    rows = np.zeros((d + 1, costs.size))
    rows[:d, :d] = -np.eye(d)
    rows[i, d + np.arange(i.size)] = v[j] / v[i]
    rows[j, d + np.arange(i.size)] = v[i] / v[j]
    rows[d, :d] = 1.0
    highs = linprog(costs, A_ub=rows, b_ub=np.append(np.full(d, -floor), trace))
    ratio = v[j] / v[i]
    whole = ratio + 1 / ratio
    vertices = fw.Vertices(
        np.concatenate([np.arange(d), i]),
        np.concatenate([np.arange(d), j]),
        np.concatenate([np.ones(d), np.sqrt(ratio / whole)]),
        np.concatenate([np.zeros(d), -colors[i] * colors[j] / np.sqrt(ratio * whole)]),
        np.zeros(d + i.size),
    )
    lowest = min(0.0, vertices.slopes(G.diagonal(), G).min())
    ours = floor * np.trace(G) + (trace - d * floor) * lowest
    assert ours == pytest.approx(highs.fun, rel=1e-8, abs=1e-8)
    # No ratio has a lower slope than the eigenvector of the 2x2 block.
    best = fw.edge_slopes(G.diagonal(), G)
    assert (best[i, j] <= vertices.slopes(G.diagonal(), G)[d:] + 1e-12).all()
    assert best[0, 1] == pytest.approx(np.linalg.eigvalsh(G[:2, :2])[0])


@pytest.mark.parametrize("name", ["glr", "mcml", "deml"])
def test_never_below_the_cone_and_close_to_it_with_two_features(name):
    # With two features every psd matrix is a balanced graph: the optima agree.
    X, y = problem(11, n=20, d=2)
    metric = SignedGraphMetric(name, max_iter=100, tol=1e-6).fit(X, y)
    objective = DistanceObjective(name, X, y)
    _, cone, history = learn_by_projection(objective, 2, trace=2.0, floor=1e-5, tol=1e-12)
    assert all(after <= before for before, after in pairwise(history))
    assert metric.objective_ == pytest.approx(cone, rel=1e-3)
    assert metric.objective_ - metric.gap_ <= cone + 1e-9 * abs(cone)


def test_projection_is_the_nearest_matrix():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 6))
    A = 2 * (A + A.T)
    P = project_onto_cone(A, 3.0, 0.1)
    assert np.linalg.eigvalsh(P)[0] >= 0.1 - 1e-12
    assert np.trace(P) <= 3.0 + 1e-12
    for _ in range(20):  # the angle at the projection is obtuse
        B = rng.normal(size=(6, 6))
        Q = 0.1 * np.eye(6) + (B @ B.T) * (2.4 / np.trace(B @ B.T)) * rng.random()
        assert ((A - P) * (Q - P)).sum() <= 1e-9


def test_a_callable_and_its_checks():
    X, y = problem(1, n=12, d=3)
    target = np.diag([1.0, 0.5, 0.2])

    def distance(M, X, y):
        return float(np.square(M - target).sum()), 2 * (M - target)

    metric = SignedGraphMetric(distance, max_iter=50, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(metric.metric_, target, atol=1e-2)
    with pytest.raises(ValueError, match="finite value and a finite gradient"):
        SignedGraphMetric(lambda M, X, y: (0.0, np.zeros(2))).fit(X, y)


def test_wide_data_get_few_pairs_and_a_sparse_metric():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3000)) / 50, np.arange(20) % 2
    X[:, 1234] += y
    metric = SignedGraphMetric(max_pairs=100, max_iter=2).fit(X, y)
    assert sp.issparse(metric.metric_)
    assert metric.metric_.diagonal().argmax() == 1234
    assert metric.metric_.nnz <= 3000 + 200
    Z = metric.transform(X)
    c = X[0] - X[1]
    assert np.square(Z[0] - Z[1]).sum() == pytest.approx(c @ (metric.metric_ @ c))


def test_ctrl_c_returns_the_best_metric_so_far(monkeypatch):
    X, y = problem(2, n=20, d=4)
    sweep, calls = fw.FrankWolfe.sweep, []

    def interrupted(self, graph, steps):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return sweep(self, graph, steps)

    monkeypatch.setattr(fw.FrankWolfe, "sweep", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        metric = SignedGraphMetric(tol=1e-9).fit(X, y)
    assert metric.objective_ < metric.history_[0]
    assert np.linalg.eigvalsh(metric.metric_)[0] >= 1e-5 - 1e-12


def test_degenerate_data_have_a_sound_answer():
    X, y = np.ones((6, 2)), np.arange(6) % 2  # constant columns, duplicated rows of two classes
    for name in OBJECTIVES:
        M = SignedGraphMetric(name).fit(X, y).metric_
        assert np.isfinite(M).all()
        assert np.linalg.eigvalsh(M)[0] > 0
    one = SignedGraphMetric().fit(np.arange(6.0)[:, None], y)
    assert one.metric_.shape == (1, 1)
    assert one.get_feature_names_out(["a"]).tolist() == ["a"]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_nearly_equal_rows_of_two_classes(name):
    X, y = problem(4, n=12, d=3)
    X[1] = X[0] + 1e-9
    y[:2] = 0, 1
    metric = SignedGraphMetric(name, max_iter=5).fit(X * 30, y)
    assert np.isfinite(metric.metric_).all()
    assert np.isfinite(metric.objective_)
    assert all(after <= before for before, after in pairwise(metric.history_))


def test_many_rows_are_subsampled_evenly():
    X, y = problem(0, n=24, d=2)
    metric = SignedGraphMetric(max_samples=6, random_state=1)
    codes = np.repeat([0, 1], [20, 4])
    rows = metric._rows(codes, 6)
    assert rows.size == 6
    assert np.bincount(codes[rows]).tolist() == [5, 1]
    assert np.array_equal(metric.fit(X, y).metric_, metric.fit(X, y).metric_)


X, Y = np.random.default_rng(0).normal(size=(8, 2)), np.arange(8) % 2


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({}, (X, np.zeros(8)), "only one class"),
        ({}, (np.where(X > 1, np.nan, X), Y), "NaN"),
        ({"objective": "glm"}, (X, Y), "did you mean 'glr'"),
        ({"trace": 0}, (X, Y), "trace=0"),
        ({"floor": 1.0}, (X, Y), "floor=1"),
        ({"max_pairs": -1}, (X, Y), "max_pairs=-1"),
        ({"max_iter": 0}, (X, Y), "max_iter=0"),
        ({"tol": 0}, (X, Y), "tol=0"),
        ({}, (X, np.linspace(0, 1, 8)), "continuous"),
    ],
)
def test_bad_input_is_named(options, data, message):
    with pytest.raises(ValueError, match=message):
        SignedGraphMetric(**options).fit(*data)
