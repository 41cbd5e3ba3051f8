"""Left-out scores against fits that really leave the label out; the choice and its fall-backs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gdpa.estimators import tuning
from gdpa.estimators.labels import stratified_folds
from gdpa.estimators.tuning import Given, Setting, left_out_loss, tune
from gdpa.graph.adjacency import laplacian_parts
from gdpa.system import LabeledSystem

NOTHING = tuning.NOTHING


def labelled_graph(random_graph, *, n=30, m=12, k=3, kind="normalized", seed=0):
    A, d = laplacian_parts(random_graph(n, seed), kind)
    rng = np.random.default_rng(seed + 1)
    nodes = np.sort(rng.choice(n, m, replace=False))
    codes = (np.arange(m) % k).astype(np.int32)
    return LabeledSystem(A, d, nodes, np.eye(k)[codes]), codes


def direct(graph: LabeledSystem, setting: Setting, skip: np.ndarray) -> np.ndarray:
    """Scores by dense algebra, with the labels of `skip` unknown."""
    n, k = graph.diagonal.size, graph.targets.shape[1]
    keep = ~np.isin(graph.labeled, skip)
    nodes, Y = graph.labeled[keep], graph.targets[keep]
    L = np.diag(graph.diagonal) - graph.adjacency.toarray()
    M = L + setting.self_loop * np.eye(n)
    b = np.zeros((n, k))
    if np.isinf(setting.label_weight):
        free = np.setdiff1d(np.arange(n), nodes)
        F = np.zeros((n, k))
        F[nodes] = Y
        F[free] = np.linalg.solve(
            M[np.ix_(free, free)], b[free] - M[np.ix_(free, nodes)] @ F[nodes]
        )
        return F
    M[nodes, nodes] += setting.label_weight
    b[nodes] += setting.label_weight * Y
    return np.linalg.solve(M, b)


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_closed_form_leaves_each_label_out(random_graph, kind):
    graph, codes = labelled_graph(random_graph, kind=kind)
    count = 0
    for setting, scores in tuning.left_out(graph, codes, NOTHING, exact=True):
        count += 1
        for i in (0, 5, 11):
            node = graph.labeled[i]
            expected = direct(graph, setting, np.array([node]))[node]
            np.testing.assert_allclose(scores[i], expected, rtol=1e-6, atol=1e-9)
    assert count >= 24


def test_folds_leave_their_labels_out(random_graph):
    graph, codes = labelled_graph(random_graph, n=40, m=20)
    fold = stratified_folds(codes, 5)
    for setting, scores in tuning.left_out(graph, codes, NOTHING, exact=False):
        held = graph.labeled[fold == 2]
        expected = direct(graph, setting, held)[held]
        np.testing.assert_allclose(scores[fold == 2], expected, rtol=1e-6, atol=1e-9)


def test_loss_is_scale_free_and_between_0_and_1():
    rng = np.random.default_rng(0)
    Y = np.eye(3)[rng.integers(0, 3, 20)]
    F = rng.random((20, 3))
    assert left_out_loss(Y, F) == pytest.approx(left_out_loss(Y, 1e-6 * F))
    assert left_out_loss(Y, F) == pytest.approx(left_out_loss(Y, F + 5.0))  # row mean
    assert 0 <= left_out_loss(Y, F) <= 1
    assert left_out_loss(Y, 3 * Y) == pytest.approx(0, abs=1e-12)
    assert left_out_loss(Y, -Y) == 1
    assert left_out_loss(Y, 0 * Y) == 1


def test_loss_is_the_squared_error_after_the_best_factor():
    rng = np.random.default_rng(1)
    Y = np.eye(2)[rng.integers(0, 2, 15)]
    F = Y + 0.3 * rng.standard_normal((15, 2))
    y, f = Y - Y.mean(1, keepdims=True), F - F.mean(1, keepdims=True)
    factors = np.linspace(0, 3, 30001)
    errors = (y**2).sum() - 2 * factors * (f * y).sum() + factors**2 * (f**2).sum()
    assert left_out_loss(Y, F) == pytest.approx(errors.min() / (y**2).sum(), abs=1e-6)


def test_the_choice_has_the_least_loss(random_graph):
    graph, codes = labelled_graph(random_graph, n=60, m=30)
    chosen = tune([graph], codes)
    every = {
        setting: left_out_loss(graph.targets, scores)
        for setting, scores in tuning.left_out(graph, codes, NOTHING, exact=True)
    }
    assert chosen.loss == pytest.approx(min(every.values()))
    assert chosen.source == "leave-one-out"
    assert chosen.tried == len(every)
    again = tune([graph], codes)
    assert again.setting == chosen.setting


def test_given_values_are_kept(random_graph):
    graph, codes = labelled_graph(random_graph, n=60, m=30)
    assert tune([graph], codes, Given(2.0, 0.7)).setting == Setting(2.0, 0.7)
    assert tune([graph], codes, Given(self_loop=0.4)).setting.self_loop == 0.4


def test_one_label_per_class_falls_back(random_graph):
    graph, codes = labelled_graph(random_graph, m=3)
    chosen = tune([graph], codes)
    assert chosen.source == "too few labels"
    assert chosen.setting == tuning.DEFAULT
    assert chosen.left_out is None


def test_label_of_a_class_with_one_label_is_not_judged(random_graph):
    """It cannot be predicted without itself: whatever is scored for it must not count."""
    graph, codes = labelled_graph(random_graph, n=40, m=20, k=2)
    codes = codes.copy()
    codes[4] = 2
    with_single = replace(graph, targets=np.eye(3)[codes])
    chosen = tune([with_single], codes, Given(np.inf))
    rest = np.delete(np.arange(20), 4)
    losses = [
        left_out_loss(with_single.targets[rest], scores[rest])
        for _, scores in tuning.left_out(with_single, codes, Given(np.inf), exact=True)
    ]
    assert chosen.loss == pytest.approx(min(losses))
