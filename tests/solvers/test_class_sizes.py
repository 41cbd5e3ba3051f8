"""Threshold dynamics with class sizes: constraints, bounds, and what they are for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import gdpa
from gdpa.graph.adjacency import laplacian_parts
from gdpa.problem import ClassProblem
from gdpa.solvers.base import Run
from gdpa.solvers.class_sizes import (
    ClassSizes,
    bisect,
    cut_share,
    match_shares,
    resplit,
    walk_steps,
)
from gdpa.solvers.poisson import Poisson
from gdpa.system import LabeledSystem


def class_problem(W, codes):
    known = np.flatnonzero(codes >= 0)
    adjacency, diagonal = laplacian_parts(W, "normalized")
    targets = np.eye(codes.max() + 1)[codes[known]]
    return ClassProblem(W, "normalized", adjacency, diagonal, known, targets)


def test_factors_bring_shares_into_their_interval():
    rng = np.random.default_rng(0)
    for _ in range(50):
        k = int(rng.integers(2, 8))
        scores = rng.gamma(1.0, size=(3000, k)) * rng.gamma(1.0, size=k)
        shares = rng.dirichlet(np.full(k, 5.0)) + 0.02
        shares /= shares.sum()
        factors = match_shares(scores, shares / 1.2, shares * 1.2)
        found = np.bincount((scores * factors).argmax(axis=1), minlength=k) / 3000
        assert (found >= shares / 1.2 - 0.02).all()
        assert (found <= shares * 1.2 + 0.02).all()


def test_factors_stay_where_shares_are_right_already():
    scores = np.eye(3)[np.arange(99) % 3] + 0.1
    assert np.array_equal(match_shares(scores, np.full(3, 0.3), np.full(3, 0.4)), np.ones(3))


def test_cut_share_counts_the_weight_between_different_labels(random_graph):
    W = random_graph(20, 3)
    labels = np.arange(20) % 3
    dense = W.toarray()
    across = sum(dense[i, j] for i, j in itertools.product(range(20), repeat=2) if i % 3 != j % 3)
    assert np.isclose(cut_share(W, labels), across / dense.sum())
    assert cut_share(W, np.zeros(20, dtype=int)) == 0.0


def test_labels_are_kept_and_the_bound_holds_against_brute_force(random_graph):
    for seed in range(10):
        W = random_graph(9, seed)
        labels = np.zeros(9, dtype=int)
        labels[[0, 1]] = [1, -1]
        problem = gdpa.GraphProblem(W, labels)
        found = gdpa.solve(problem, method="class-sizes")
        assert found.labels[0] == 1
        assert found.labels[1] == -1
        best = min(
            problem.objective(np.array([1, -1, *rest]))
            for rest in itertools.product((-1, 1), repeat=7)
        )
        assert found.bound_status == "certified"
        assert found.lower_bound <= best + 1e-9 <= found.objective + 2e-9


@pytest.mark.parametrize(
    ("method", "scale", "factor"), [("class-sizes", 3.0, 0.9), ("poisson", 2.0, 1.0)]
)
def test_one_label_a_class_beats_the_harmonic_function_on_clusters(method, scale, factor):
    rng = np.random.default_rng(1)
    centres = rng.normal(scale=scale, size=(5, 5))
    truth = rng.integers(0, 5, 2000)
    W = gdpa.graph.neighbor_graph(centres[truth] + rng.normal(size=(2000, 5)), 10)
    errors = {method: [], "harmonic": []}
    for seed in range(5):
        codes = np.full(2000, -1)
        pick = np.random.default_rng(seed)
        for c in range(5):
            codes[pick.choice(np.flatnonzero(truth == c))] = c
        problem = class_problem(W, codes)
        parts = (problem.adjacency, problem.diagonal, problem.labeled, problem.targets)
        if method == "poisson":
            tried = Poisson().potential(problem, problem.targets).x
        else:
            tried = ClassSizes().rounds(problem, problem.targets, Run()).scores
        scores = {method: tried, "harmonic": LabeledSystem(*parts, self_loop=1e-9).solve().x}
        for name, found in errors.items():
            found.append(float((scores[name].argmax(axis=1) != truth).mean()))
    assert np.mean(errors[method]) < factor * np.mean(errors["harmonic"])


@pytest.mark.parametrize(
    "options", [{"slack": 0.5}, {"shares": [1.0, -1.0]}, {"shares": [np.nan, 1.0]}, {"steps": 0}]
)
def test_bad_options_name_the_argument(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ClassSizes(**options)


def test_shares_must_fit_the_classes():
    W = sp.csr_array(np.ones((6, 6)) - np.eye(6))
    codes = np.array([0, 1, 2, -1, -1, -1])
    problem = class_problem(W, codes)
    with pytest.raises(ValueError, match="shares has 2 entries"):
        ClassSizes(shares=[0.5, 0.5]).rounds(problem, problem.targets, Run())


def test_two_classes_that_share_two_clusters_are_split_again():
    # Each of the two wrong classes has half of both clusters, where rounds from there stay.
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 200)
    W = gdpa.graph.neighbor_graph(9.0 * np.eye(3)[truth] + rng.normal(size=(600, 3)), 8)
    W = sp.csr_array(W + 1e-3 * sp.random_array((600, 600), density=0.01, rng=rng))
    W = sp.csr_array((W + W.T) / 2)
    codes = np.full(600, -1)
    codes[[0, 200, 400]] = [0, 1, 2]
    problem = class_problem(W, codes)
    wrong = np.where(truth == 2, 2, np.arange(600) % 2)
    wrong[problem.labeled] = [0, 1, 2]
    limits = np.full(3, 1 / 4), np.full(3, 1 / 2)
    assert np.array_equal(resplit(problem, wrong, limits, 3, 10), truth)
    assert np.array_equal(resplit(problem, truth, limits, 3, 10), truth)
    assert np.array_equal(resplit(problem, wrong, limits, 0, 10), wrong)


def test_a_split_keeps_its_shares_or_is_none():
    n = 60
    path = sp.diags_array(np.ones(n - 1), offsets=1)
    W = sp.csr_array(path + path.T)
    now, limits = np.arange(n) % 2 == 0, np.array([0.4, 0.6])
    side = bisect(W, now, limits, 10)
    assert side is not None
    assert 0.35 <= side.mean() <= 0.65
    assert cut_share(W, side) < 0.5 * cut_share(W, now)
    assert bisect(W, np.arange(n) < n // 2, limits, 10) is None  # nothing is smaller


@pytest.mark.parametrize("n", [1, 2, 3, 10, 60])
def test_steps_of_the_random_walk_are_close_to_its_power(random_graph, n):
    W = random_graph(40, 5)
    walk = sp.csr_array(W / np.maximum(W.sum(axis=1), 1e-12)[:, None])
    V = np.random.default_rng(0).standard_normal((40, 3))
    exact = np.linalg.matrix_power(walk.toarray(), n) @ V
    error = np.abs(walk_steps(walk, V, n) - exact).max()
    assert error <= (1e-12 if n <= 3 else 0.06 * np.abs(V).max())


def test_a_hopeless_split_is_given_up(monkeypatch):
    clique = np.ones((30, 30)) - np.eye(30)
    W = sp.csr_array(sp.block_diag([clique, clique]))
    limits, now = np.array([0.4, 0.6]), np.arange(60) % 2 == 0
    side = bisect(W, now, limits, 10)
    assert side is not None
    assert cut_share(W, side) == 0.0
    monkeypatch.setattr("gdpa.solvers.class_sizes.HOPELESS", -1.0)
    assert bisect(W, now, limits, 10) is None
