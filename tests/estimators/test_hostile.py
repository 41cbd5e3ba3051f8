"""Inputs that a campaign of hostile ones found wanting: each is answered, or refused by name."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from gdpa import CommitteeClassifier, GDPAClassifier, GraphClassifier
from gdpa.errors import DegenerateProblemWarning
from gdpa.estimators import GraphOptions
from gdpa.estimators.base import BaseClassifier

single = partial(GraphClassifier)  # one graph, no committee


def normal_data(scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    truth = (X[:, 0] > 0).astype(int)
    return scale * X, np.where(np.arange(60) < 20, truth, -1)


@pytest.mark.parametrize("kind", ["full", "knn"])
@pytest.mark.parametrize("sparse", [False, True])
def test_predictions_do_not_depend_on_object_identity(kind, sparse, tmp_path):
    X, y = normal_data()
    X = sp.csr_array(X) if sparse else X
    model = single(graph=kind).fit(X, y)
    expected = model.predict_proba(X)
    others = {
        "copy": model.predict_proba(X.copy()),
        "pickle": pickle.loads(pickle.dumps(model)).predict_proba(X),
        "file": type(model).load(model.save(tmp_path / "model.npz")).predict_proba(X),
    }
    for name, found in others.items():
        np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=name)
    np.testing.assert_array_equal(model.predict(X.copy()), model.transduction_)


@pytest.mark.parametrize("scale", [1e-160, 1e-80, 1e80, 1e155])
@pytest.mark.parametrize("bandwidth", ["self-tuning", "median"])
def test_full_graphs_of_huge_and_tiny_features(scale, bandwidth):
    X, y = normal_data()
    new = np.random.default_rng(1).normal(size=(20, 5))
    plain = GraphClassifier(graph="full", options=GraphOptions(bandwidth=bandwidth)).fit(X, y)
    model = GraphClassifier(graph="full", options=GraphOptions(bandwidth=bandwidth)).fit(
        scale * X, y
    )
    for rows in (X, new):
        found = model.predict_proba(scale * rows)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, plain.predict_proba(rows), atol=1e-8)


def test_one_labelled_sample_with_a_model():
    X, _ = normal_data()
    y = np.full(60, -1)
    y[7] = 3
    with pytest.warns(DegenerateProblemWarning, match="only one class"):
        model = CommitteeClassifier(models=LogisticRegression()).fit(X, y)
    assert (model.predict(X) == 3).all()
    np.testing.assert_allclose(model.predict_proba(X), 1.0)


def attributes(model: BaseClassifier) -> dict[str, object]:
    names = ["classes_", "transduction_", "label_scores_", "n_features_in_", "n_iter_", "ensemble_"]
    return {name: getattr(model, name) for name in names}


def test_a_fit_that_fails_leaves_the_old_one():
    X, y = normal_data()
    model = single(n_neighbors=5).fit(X, y)
    before = attributes(model)
    wide = np.hstack([X, X])
    for bad in (np.full(60, -1), np.arange(59)):
        with pytest.raises(ValueError, match=r"no known label|inconsistent"):
            model.fit(wide, bad)
        assert all(attributes(model)[name] is value for name, value in before.items())
        np.testing.assert_array_equal(model.predict(X), model.transduction_)


@pytest.mark.parametrize("stage", ["graph", "tuning", "solve"])
def test_an_interrupt_in_any_stage_leaves_the_old_fit(stage):
    X, y = normal_data()
    model = single(n_neighbors=5).fit(X, y)
    before = attributes(model)
    seen = []

    def interrupt(event):
        seen.append(event["stage"])
        if event["stage"] == stage:
            raise KeyboardInterrupt

    # Large enough that the solve iterates.
    wide = np.random.default_rng(2).normal(size=(900, 7))
    labels = np.where(np.arange(900) < 40, (wide[:, 0] > 0).astype(int), -1)
    options = GraphOptions(callback=interrupt)
    model.set_params(options=options, label_weight=np.inf, self_loop=0.01)
    with pytest.raises(KeyboardInterrupt):
        model.fit(wide, labels)
    assert seen[-1] == stage
    assert all(attributes(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict(X), model.transduction_)


@pytest.mark.parametrize("options", [{}, {"label_weight": 0.3}, {"graph": "full"}])
def test_given_labels_are_kept_by_predict_too(options):
    X, truth = make_blobs(300, centers=3, cluster_std=2.5, random_state=1)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(300) < 0.3, rng.integers(0, 3, 300), truth)
    y = np.where(rng.random(300) < 0.5, noisy, -1)
    model = single(**options).fit(X, y)
    known = y >= 0
    np.testing.assert_array_equal(model.transduction_[known], y[known])
    np.testing.assert_array_equal(model.predict(X), model.transduction_)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.transduction_)


def test_a_weight_of_one_is_no_distance_of_zero():
    """Beside a huge bandwidth every weight rounds to 1, and no row is a fitted one."""
    X = np.linspace(0.0, 1.0, 20)[:, None]
    y = np.where(np.arange(20) == 0, 0, np.where(np.arange(20) == 19, 1, -1))
    model = single(n_neighbors=4, self_loop=0.1, options=GraphOptions(bandwidth=1e9)).fit(X, y)
    rows = np.array([[0.03], [0.97]])
    weights, same = model.ensemble_.first.graph.attach(rows)
    assert (weights.data == 1.0).all()
    assert same.nnz == 0
    F, d = model.ensemble_.first.scores, np.asarray(model.graph_.sum(axis=1)).ravel()
    w = weights.toarray()
    expected = (w / np.sqrt(np.outer(w.sum(axis=1), d))) @ F / 1.1
    shares = expected / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.ensemble_.predict(rows), shares, atol=1e-9)


@pytest.mark.parametrize(
    "make", [single, partial(GDPAClassifier, rescale="minmax")], ids=["harmonic", "tree"]
)
def test_names_of_the_classes_do_not_matter(make):
    X, truth = make_blobs(200, centers=5, cluster_std=3.0, random_state=3)
    y = np.full(200, -1)
    for c in range(5):  # equally many labels of each: nothing but names could order them
        y[np.flatnonzero(truth == c)[:4]] = c
    first = make().fit(X, y)
    for names in ([3, 1, 4, 0, 2], [4, 3, 2, 1, 0]):
        renamed = np.where(y < 0, -1, np.array(names)[y])
        other = make().fit(X, renamed)
        np.testing.assert_array_equal(other.transduction_, np.array(names)[first.transduction_])


@pytest.mark.parametrize("weight", [1e-300, 1e-150, 1e150, 1e306])
@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_extreme_weights_give_a_finite_objective_and_no_warning(weight, laplacian):
    rng = np.random.default_rng(0)
    half = np.triu(rng.random((40, 40)) < 0.2, 1) * rng.uniform(0.5, 1.0, (40, 40)) * weight
    ring = weight * (np.eye(40, k=1) + np.eye(40, k=39))
    W = sp.csr_array(np.maximum(half, ring) + np.maximum(half, ring).T)
    y = np.where(np.arange(40) < 12, np.arange(40) % 2, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = GraphClassifier(graph="precomputed", options=GraphOptions(laplacian=laplacian)).fit(
            W, y
        )
        objective, record = model.objective_, model.solution_
        assert np.isfinite(model.predict_proba(W)).all()
    assert np.isfinite(objective)
    assert objective > 0
    assert np.isfinite(record.objective)
    assert record.lower_bound <= record.objective
