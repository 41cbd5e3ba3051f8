"""add_labels: the same labels as a fresh fit, for a fraction of its work."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from gdpa import GraphClassifier
from gdpa.estimators import GraphOptions
from gdpa.system.update import relax_locally


@pytest.mark.parametrize("label_weight", [np.inf, 2.0])
@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_adding_labels_equals_fitting_with_them(label_weight, laplacian):
    X, truth = make_blobs(700, centers=4, cluster_std=2.0, random_state=0)
    y = np.full(700, -1)
    y[::35] = truth[::35]
    options = {
        "n_neighbors": 8,
        "self_loop": 0.05,
        "label_weight": label_weight,
        "options": GraphOptions(laplacian=laplacian, tol=1e-10),
    }
    model = GraphClassifier(**options).fit(X, y)
    new = np.array([3, 111, 402, 688])
    model.add_labels(new, truth[new], tol=1e-9)
    y[new] = truth[new]
    fresh = GraphClassifier(**options).fit(X, y)
    np.testing.assert_allclose(
        model.ensemble_.first.scores, fresh.ensemble_.first.scores, atol=1e-6
    )
    assert (model.transduction_ == fresh.transduction_).all()
    assert (model.transduction_[new] == truth[new]).all()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("label_weight", [np.inf, 2.0])
def test_a_corrected_label(label_weight, classes):
    X, truth = make_blobs(600, centers=classes, cluster_std=1.0, random_state=1)
    y = np.full(600, -1)
    y[::30] = truth[::30]
    right = y.copy()
    y[60] = (truth[60] + 1) % classes
    options = {"n_neighbors": 8, "self_loop": 0.05, "label_weight": label_weight}
    options["options"] = GraphOptions(tol=1e-10)
    model = GraphClassifier(**options).fit(X, y).add_labels(60, right[60], tol=1e-9)
    fresh = GraphClassifier(**options).fit(X, right)
    np.testing.assert_allclose(
        model.ensemble_.first.scores, fresh.ensemble_.first.scores, atol=1e-6
    )


def test_ten_labels_on_100000_nodes_cost_less_than_half_a_fresh_solve():
    rng = np.random.default_rng(0)
    n = 100_000
    group = rng.integers(0, 4, n)
    X = (2.5 * rng.standard_normal((4, 3)))[group] + rng.standard_normal((n, 3))
    truth = group % 2
    known = rng.choice(n, n // 100, replace=False)
    y = np.full(n, -1)
    y[known] = truth[known]
    options = {"n_neighbors": 10, "label_weight": np.inf, "self_loop": 0.01}
    model = GraphClassifier(**options).fit(X, y)
    new = rng.choice(np.flatnonzero(y == -1), 10, replace=False)
    y[new] = truth[new]
    fresh = GraphClassifier(graph="precomputed", label_weight=np.inf, self_loop=0.01)
    fresh.fit(model.graph_, y)
    cost = fresh.ensemble_.first.run.edge_visits
    assert cost >= 20 * model.graph_.nnz  # a real solve, not a shortcut
    model.add_labels(new, truth[new])
    assert model.ensemble_.first.run.converged
    assert model.ensemble_.first.run.edge_visits <= 0.25 * cost
    # The same labels, except where the two classes are nearly level.
    differ = model.transduction_ != fresh.transduction_
    lead = np.abs(fresh.label_scores_[:, 1] - fresh.label_scores_[:, 0])
    assert lead[differ].max(initial=0.0) < 0.01
    assert differ.sum() < 1e-3 * n
    assert np.abs(model.ensemble_.first.scores - fresh.ensemble_.first.scores).max() < 0.01


def test_relaxation_solves_the_system_on_the_free_nodes(random_graph):
    W = random_graph(60, 3)
    d = np.asarray(W.sum(axis=1)).ravel() + 0.1
    free = np.arange(60) % 7 != 0
    residual = np.zeros((60, 2))
    residual[[1, 2]] = [[1.0, -1.0], [0.5, 2.0]]
    size = np.array([1.0, 1.0])
    result = relax_locally(W, d, free, residual.copy(), size, tol=1e-10)
    M = (sp.diags_array(d) - W).toarray()[np.ix_(free, free)]
    np.testing.assert_allclose(result.values[free], np.linalg.solve(M, residual[free]), atol=1e-8)
    assert (result.values[~free] == 0).all()
    assert result.converged


def test_a_local_change_stays_local():
    """On a long path a strong self-loop ends the influence after a few nodes."""
    n = 5000
    W = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).tocsr()
    residual = np.zeros((n, 1))
    residual[2500] = 1.0
    result = relax_locally(W, np.full(n, 4.0), np.ones(n, bool), residual, np.ones(1), tol=1e-6)
    assert result.converged
    assert result.active < 100
    assert result.edge_visits < 2 * W.nnz


def test_many_small_updates_end_in_a_full_solve():
    X, truth = make_blobs(600, centers=2, cluster_std=2.0, random_state=3)
    y = np.full(600, -1)
    y[::20] = truth[::20]
    model = GraphClassifier(n_neighbors=8, self_loop=0.05, label_weight=np.inf).fit(X, y)
    for i in range(1, 8):
        model.add_labels(i, truth[i], tol=1e-2)
        y[i] = truth[i]
    fresh = GraphClassifier(n_neighbors=8, self_loop=0.05, label_weight=np.inf).fit(X, y)
    assert model.ensemble_.first.run.drift <= 5e-2
    np.testing.assert_allclose(
        model.ensemble_.first.scores, fresh.ensemble_.first.scores, atol=0.05
    )


@pytest.mark.parametrize("options", [{"method": "vote"}, {"method": "min-cut"}])
def test_other_methods_are_solved_again(options):
    X, truth = make_blobs(90, centers=3, cluster_std=1.0, random_state=0)
    y = np.where(np.arange(90) % 9 == 0, truth, -1)
    model = GraphClassifier(n_neighbors=6, **options).fit(X, y)
    model.add_labels([1, 2], truth[[1, 2]])
    assert (model.transduction_[[1, 2]] == truth[[1, 2]]).all()


@pytest.fixture
def fitted():
    X, y = make_blobs(40, centers=2, random_state=0)
    return GraphClassifier().fit(X, np.where(np.arange(40) < 10, y, -1))


@pytest.mark.parametrize(
    ("indices", "labels", "message"),
    [
        ([40], [0], "indices has 40; the fitted samples are numbered 0 to 39"),
        ([-1], [0], "indices has -1"),
        ([1.5], [0], "integers"),
        ([[1]], [0], "integers"),
        ([20, 21], [0], "labels has 1 entries, indices has 2"),
        ([20, 20], [0, 1], "two classes for sample 20"),
        ([20], [7], "not one of the classes"),
    ],
)
def test_bad_updates(fitted, indices, labels, message):
    before = fitted.transduction_.copy()
    with pytest.raises(ValueError, match=message):
        fitted.add_labels(indices, labels, new_classes=False)
    assert (fitted.transduction_ == before).all()


def test_nothing_to_add(fitted):
    before = fitted.ensemble_
    assert fitted.add_labels([], []).ensemble_ is before
    with pytest.raises(ValueError, match="tol=2"):
        fitted.add_labels(20, 0, tol=2)


def test_a_correction_where_nothing_else_speaks():
    # Without a right-hand side of its own the goal is next to nothing: its square is no number.
    n = 6
    W = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1], format="csr")
    residual = np.zeros((n, 2))
    residual[2] = 1.0
    with np.errstate(all="raise", under="ignore"):
        found = relax_locally(
            W, np.full(n, 3.0), np.ones(n, dtype=bool), residual.copy(), np.zeros(2), tol=1e-6
        )
    exact = np.linalg.solve(3.0 * np.eye(n) - W.toarray(), residual)
    np.testing.assert_allclose(found.values, exact, atol=1e-9)
