"""A fit is a solve: its record has the bound, status and time that gdpa.solve would give."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import gdpa
from gdpa import GraphClassifier
from gdpa.estimators import GraphOptions
from gdpa.gershgorin.bounds import trivial_bound

single = partial(GraphClassifier)  # one graph, no committee


def data(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, truth = make_blobs(240, centers=k, cluster_std=3.0, random_state=4)
    return X, np.where(np.arange(240) % 6 == 0, truth, -1), truth


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_the_record_is_that_of_the_solver_on_the_same_graph(k, laplacian):
    X, y, _ = data(k)
    model = single(options=GraphOptions(laplacian=laplacian, tol=1e-10)).fit(X, y)
    records = (model.solution_,) if k == 2 else model.solution_
    assert len(records) == (1 if k == 2 else k)
    for c, record in zip([1] if k == 2 else range(k), records, strict=True):
        labels = np.where(y < 0, 0, np.where(y == c, 1, -1))
        solved = gdpa.solve(
            gdpa.GraphProblem(model.graph_, labels, laplacian=laplacian),
            "harmonic",
            label_weight=model.label_weight_,
            self_loop=model.self_loop_,
            tol=1e-10,
        )
        assert record.method == "harmonic"
        assert record.bound_status == solved.bound_status == "certified"
        # Both come from scores that are solved to 1e-10.
        assert record.lower_bound == pytest.approx(solved.lower_bound, rel=1e-6)
        assert record.bound_kind == solved.bound_kind
        assert record.converged == solved.converged
        np.testing.assert_allclose(record.scores, solved.scores, atol=1e-8)
        assert record.lower_bound <= record.objective
        assert sum(record.seconds.values()) > 0
        if k == 2:
            np.testing.assert_array_equal(record.labels, solved.labels)
            assert record.objective == pytest.approx(solved.objective, rel=1e-12)


def test_the_bound_follows_more_labels():
    X, y, truth = data(2)
    model = single().fit(X, y)
    model.add_labels([1, 2, 3], truth[[1, 2, 3]])
    y[[1, 2, 3]] = truth[[1, 2, 3]]
    problem = gdpa.GraphProblem(model.graph_, np.where(y < 0, 0, 2 * y - 1), laplacian="normalized")
    best = gdpa.solve(problem, "min-cut").objective
    assert trivial_bound(problem) <= model.solution_.lower_bound <= best + 1e-9


@pytest.mark.parametrize("weight", [np.inf, 2.0])
def test_labels_can_be_taken_back_and_corrected(weight):
    X, y, truth = data(3)
    options = GraphOptions(tol=1e-10)
    model = single(n_neighbors=8, self_loop=0.1, label_weight=weight, options=options).fit(X, y)
    known = np.flatnonzero(y >= 0)
    gone, wrong, new = known[:2], known[2:4], np.flatnonzero(y < 0)[:2]
    labels = np.concatenate([[-1, -1], (truth[wrong] + 1) % 3, truth[new]])
    model.add_labels(np.concatenate([gone, wrong, new]), labels, tol=1e-9)
    y[np.concatenate([gone, wrong, new])] = labels
    assert (model.ensemble_.labels.codes == y).all()
    graph = model.ensemble_.first.graph
    K, b = np.diag(graph.diagonal + 0.1) - graph.adjacency.toarray(), np.zeros((240, 3))
    Y, now = np.eye(3)[np.maximum(y, 0)], np.flatnonzero(y >= 0)
    if np.isinf(weight):
        K[now], b[now] = np.eye(240)[now], Y[now]
    else:
        K[now, now] += weight
        b[now] += weight * Y[now]
    np.testing.assert_allclose(model.ensemble_.first.scores, np.linalg.solve(K, b), atol=1e-7)


def test_the_last_label_cannot_be_taken_back():
    X, y, _ = data(2)
    y = np.where(np.arange(240) < 8, y, -1)
    model = single().fit(X, y)
    known = np.flatnonzero(y >= 0)
    before = model.ensemble_
    with pytest.raises(ValueError, match="last label"):
        model.add_labels(known, np.full(known.size, -1))
    assert model.ensemble_ is before


@pytest.mark.parametrize("first", [["b", "d"], ["d"]])
def test_a_new_class_is_learnt_where_it_is_asked_for(first):
    X, _, truth = data(3)
    names = np.array(["b", "d", "a"], dtype=object)
    shown = [i for i in range(60) if names[truth[i]] in first]
    y = np.full(240, None)
    y[shown] = names[truth[shown]]
    options = {"unlabeled": None, "n_neighbors": 8, "self_loop": 0.1, "label_weight": np.inf}
    with pytest.warns() if len(first) == 1 else nullcontext():
        model = single(**options, options=GraphOptions(tol=1e-10)).fit(X, y)
    new = [i for i in range(60, 80) if names[truth[i]] not in first]
    with pytest.raises(ValueError, match="not one of the classes"):
        model.add_labels(new, names[truth[new]], new_classes=False)
    model.add_labels(new, names[truth[new]], tol=1e-9)
    y[new] = names[truth[new]]
    assert model.classes_.tolist() == sorted(set(y[y != None]))  # noqa: E711
    fresh = single(**options, options=GraphOptions(tol=1e-10)).fit(X, y)
    np.testing.assert_allclose(
        model.ensemble_.first.scores, fresh.ensemble_.first.scores, atol=1e-6
    )
    np.testing.assert_array_equal(model.transduction_, fresh.transduction_)
