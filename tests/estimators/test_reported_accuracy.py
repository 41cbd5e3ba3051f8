"""The accuracy that is reported belongs to the method that predicts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from gdpa import GraphClassifier, list_methods
from gdpa.graph import rescale_minmax

# Exact methods whose time grows exponentially, and an interior point on (N + 2) x (N + 2) matrices.
SLOW = ("branch-and-bound", "modified-dual-interior-point")


def half_labeled(n, seed=0):
    """Rows of breast cancer, of which every other label is known."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(y.size)[:n]
    known = np.arange(n) % 2 == 0
    return rescale_minmax(X)[rows], y[rows], known


@pytest.mark.parametrize("method", [info.name for info in list_methods()])
def test_reported_accuracy_is_that_of_the_method(method):
    if method in ("gdpa-published", *SLOW, "sdr-admm", "modified-dual-admm"):
        pytest.importorskip("clarabel", reason="the method needs the extra sdp")
        pytest.importorskip("scs", reason="the method needs the extra sdp")
    X, y, known = half_labeled(40 if method in SLOW else 80 if "admm" in method else 200)
    with warnings.catch_warnings(action="ignore"):
        model = GraphClassifier(method=method, n_neighbors=8).fit(X, np.where(known, y, -1))
    true = float((model.transduction_ == y)[~known].mean())
    if model.accuracy_ is None:
        assert model.tuning_.reason
        return
    checked = model.evaluate()
    m = checked.truth.size
    share = (true * (~known).sum() + 1.0) / ((~known).sum() + 2.0)
    error = np.sqrt(share * (1.0 - share) * (1.0 / m + 1.0 / (~known).sum()))
    assert abs(checked.accuracy.estimate - true) <= 4.0 * error


def test_a_method_that_finds_one_class_is_not_reported_as_accurate():
    X, y, known = half_labeled(200)
    with warnings.catch_warnings(action="ignore"):
        model = GraphClassifier(method="gdpa", n_neighbors=8).fit(X, np.where(known, y, -1))
    assert np.unique(model.transduction_[~known]).size == 1
    largest = np.bincount(y[known]).max() / known.sum()
    checked = model.evaluate()
    assert checked.accuracy.estimate <= largest + 1e-12
    assert model.tuning_.loss > 0.9
    # No probability is more confident than the held-out labels are right.
    assert model.predict_proba(X[~known]).max() <= 0.75


def test_held_out_predictions_are_those_of_refits():
    """Each fold is predicted by the same estimator, fitted without the labels of the fold."""
    X, y, known = half_labeled(120)
    labels = np.where(known, y, -1)
    with warnings.catch_warnings(action="ignore"):
        model = GraphClassifier(method="vote", n_neighbors=8).fit(X, labels)
        checked = model.evaluate()
        predicted = {}
        for row in checked.rows:
            # The vote at a node does not change if labels far from it are removed too, so leaving
            # one label out differs from leaving a fold out only through the other removed labels.
            without = labels.copy()
            without[row] = -1
            alone = GraphClassifier(method="vote", n_neighbors=8).fit(X, without)
            predicted[row] = alone.transduction_[row]
    one_by_one = np.array([predicted[row] for row in checked.rows])
    assert (one_by_one == checked.predicted).mean() >= 0.9


def test_a_class_with_one_label_can_be_left_out():
    X, y, known = half_labeled(60)
    labels = np.where(known, y, -1)
    labels[np.flatnonzero(known)[0]] = 7
    with warnings.catch_warnings(action="ignore"):
        model = GraphClassifier(method="vote", n_neighbors=8).fit(X, labels)
    checked = model.evaluate()
    assert checked.truth.size == known.sum()
    assert np.isfinite(model.tuning_.loss)


def test_without_held_out_labels_the_reason_is_given():
    X, y, _ = half_labeled(60)
    labels = np.where(np.arange(60) < 4, y, -1)
    with warnings.catch_warnings(action="ignore"):
        model = GraphClassifier(method="vote", n_neighbors=8).fit(X, labels)
    assert model.accuracy_ is None
    assert "too few labels" in model.tuning_.reason


def test_the_accuracy_is_that_of_the_evaluation():
    X, y, known = half_labeled(120)
    model = GraphClassifier().fit(X, np.where(known, y, -1))
    found = model.evaluate(level=0.9)
    assert found.accuracy.estimate == model.accuracy_.estimate
    assert found.accuracy.n_labels == known.sum() == found.confusion.sum()
    assert found.accuracy.high - found.accuracy.low < model.accuracy_.high - model.accuracy_.low
    assert repr(model) == f"GraphClassifier()\naccuracy: {model.accuracy_}"
    assert repr(GraphClassifier()) == "GraphClassifier()"
    few = GraphClassifier().fit(X[:3], [0, 1, -1])
    assert few.accuracy_ is None
    assert repr(few).endswith("accuracy: unknown, there are too few labels to hold any out")
    with pytest.raises(ValueError, match="the accuracy is unknown: there are too few labels"):
        few.evaluate()
