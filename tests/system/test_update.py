"""add_labels: the same labels as a fresh fit, for a fraction of its work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path
from sklearn.datasets import make_blobs

from gdpa import GraphClassifier
from gdpa.estimators import GraphOptions
from gdpa.system import update
from gdpa.system.update import relax_locally, update_scores
from tests.system.small_systems import dense, graph, ring, system


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


def test_the_reported_residual_is_that_of_the_correction():
    W = graph(50, 2)
    d = np.asarray(W.sum(axis=1)) + 0.3
    free = np.arange(50) % 9 != 0
    b = np.zeros((50, 2))
    b[[1, 30], [0, 1]] = 1.0, -2.0
    size = np.array([3.0, 5.0])
    for tol in (1e-1, 1e-3, 1e-8):
        left = b.copy()
        found = relax_locally(W, d, free, left, size, tol=tol)
        K = np.diag(d) - W.toarray()
        true = np.where(free[:, None], b - K @ found.values, 0.0)
        np.testing.assert_allclose(left, true, atol=1e-12)
        norms = np.linalg.norm(true / np.sqrt(d)[:, None], axis=0) / size
        assert found.residual == pytest.approx(norms.max(), rel=1e-6)
        assert found.converged
        assert found.residual <= tol
        assert (found.values[~free] == 0).all()
    loose = relax_locally(W, d, free, b.copy(), size, tol=10.0)
    assert (loose.rounds, loose.iterations, loose.edge_visits, loose.active) == (0, 0, 0, 0)
    assert loose.converged


def test_a_factorisation_counts_as_one_read_per_column():
    W = ring(12)
    b = np.zeros((12, 2))
    b[0] = 1.0
    found = relax_locally(W, np.full(12, 1e3), np.ones(12, bool), b, np.ones(2), tol=1e-4)
    # One round on the seven nodes around the change: 12 inner entries, 14 in their rows.
    assert (found.rounds, found.iterations, found.active) == (1, 0, 7)
    assert found.edge_visits == (2 + 4 + 4) + 2 * 12 + 3 * 14


def test_the_smallest_residuals_are_ignored_together():
    """They may add up to 0.8 of the goal."""
    scaled = np.array([[0.0], [0.4], [-0.3], [0.5], [9.0]])
    goal = np.array([1.0])
    # 0.3^2 + 0.4^2 + 0.5^2 = 0.5 < 0.64
    np.testing.assert_array_equal(update._carriers(scaled, goal), [4])
    # 0.4^2 + 0.3^2 + 0.9^2 > 0.64
    scaled[3] = 0.9
    np.testing.assert_array_equal(update._carriers(scaled, goal), [3, 4])
    np.testing.assert_array_equal(update._carriers(scaled, goal / 100), [2, 1, 3, 4])
    np.testing.assert_array_equal(update._carriers(scaled * [[1.0, 0.0]], np.ones(2)), [3, 4])


@pytest.mark.parametrize("seed", range(3))
def test_the_active_set_grows_by_rings_of_free_nodes(seed):
    n = 80
    W = graph(n, seed, density=0.01)
    free = np.random.default_rng(seed).random(n) < 0.9
    start = np.flatnonzero(free)[[3, 40]]
    active = np.zeros(n, dtype=bool)
    visits = update._enlarge(W, active, start, free)
    inner = W.toarray() * free * free[:, None]
    hops = shortest_path(sp.csr_array(inner), unweighted=True, indices=start).min(axis=0)
    np.testing.assert_array_equal(active, hops <= update.RINGS)
    assert visits == np.diff(W.indptr)[hops < update.RINGS].sum()
    assert update._enlarge(W, active, start, free) == 0  # they are active already


@pytest.mark.parametrize("weight", [np.inf, 2.0])
@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("change", ["add", "remove", "correct", "all", "none"])
def test_an_update_is_the_solution_of_the_new_system(weight, evidence, change):
    options = {"self_loop": 0.2, "label_weight": weight}
    if evidence:
        options["evidence"] = 0.1 * np.random.default_rng(5).standard_normal((60, 3))
    before = system(60, 8, 3, **options)
    nodes = before.labeled
    targets = before.targets.copy()
    if change in ("correct", "all"):
        targets[3, 1] += 1.0
    if change in ("remove", "all"):
        nodes = np.delete(nodes, [0, 5])
        targets = np.delete(targets, [0, 5], axis=0)
    if change in ("add", "all"):
        spare = np.setdiff1d(np.arange(60), before.labeled)[:2]
        nodes = np.append(nodes, spare)
        targets = np.vstack([targets, np.ones((2, 3))])
    after = replace(before, labeled=nodes, targets=targets)
    scores = dense(before)
    found = update_scores(before, after, scores, tol=1e-11)
    np.testing.assert_allclose(found.values, dense(after), atol=1e-8)
    np.testing.assert_array_equal(scores, dense(before))  # the given scores are not changed
    assert found.converged
    if change == "none":
        assert (found.rounds, found.iterations, found.edge_visits, found.active) == (0, 0, 0, 0)
