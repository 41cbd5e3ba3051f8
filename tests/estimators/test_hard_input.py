"""Constant, repeated, missing, too few: answered or refused by name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.errors import ConfidenceWarning, DegenerateProblemWarning
from gdpa.estimators import GraphOptions


@pytest.fixture(scope="module")
def blobs():
    X, truth = make_blobs(150, centers=3, cluster_std=0.8, random_state=0)
    y = np.where(np.arange(150) % 6 == 0, truth, -1)
    return X, y, truth


def test_constant_features():
    model = CommitteeClassifier().fit(np.ones((30, 3)), [0] * 3 + [1] * 2 + [-1] * 25)
    assert np.isfinite(model.label_scores_).all()
    assert np.isin(model.predict(np.ones((2, 3))), [0, 1]).all()


def test_hundreds_of_duplicates():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]], 300, axis=0)
    y = np.full(900, -1)
    y[[0, 300, 600]] = [0, 0, 1]
    model = CommitteeClassifier(n_neighbors=5).fit(X, y)
    assert np.isfinite(model.label_scores_).all()
    assert model.transduction_[0] == 0
    assert (model.transduction_[600:] == 1).all()
    assert np.isfinite(model.predict_proba(X[::100])).all()


@pytest.mark.parametrize("make", [CommitteeClassifier, GraphClassifier])
def test_one_sample_per_class(make):
    X, _ = make_blobs(4, centers=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make().fit(X, np.arange(4))
    assert model.transduction_.tolist() == [0, 1, 2, 3]


def test_one_class():
    with pytest.warns(DegenerateProblemWarning, match="one class"):
        model = CommitteeClassifier().fit([[0.0], [1.0], [2.0]], [7, -1, -1])
    assert model.transduction_.tolist() == [7, 7, 7]
    assert model.predict_proba([[5.0]]).tolist() == [[1.0]]


def test_zero_labels():
    with pytest.raises(ValueError, match="no known label"):
        CommitteeClassifier().fit([[0.0], [1.0]], [-1, -1])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite_are_named(value):
    X = np.zeros((5, 3))
    X[3, 1] = value
    with pytest.raises(ValueError, match="row 3, column 1"):
        CommitteeClassifier().fit(X, [0, 1, -1, -1, -1])
    model = CommitteeClassifier().fit(np.random.default_rng(0).random((5, 3)), [0, 1, -1, -1, -1])
    with pytest.raises(ValueError, match="row 3, column 1"):
        model.predict(X)


def test_more_neighbours_than_samples():
    X, y = make_blobs(12, centers=2, random_state=0)
    with pytest.warns(UserWarning, match="n_neighbors=50"):
        model = CommitteeClassifier(n_neighbors=50).fit(X, np.where(np.arange(12) < 6, y, -1))
    assert model.n_neighbors_ == 11
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConfidenceWarning)  # six labels are few, which is said
        assert CommitteeClassifier().fit(X, np.where(np.arange(12) < 6, y, -1)).n_neighbors_ <= 11


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="X has 3 rows, y has 2"):
        CommitteeClassifier().fit([[0.0], [1.0], [2.0]], [0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph": "complete"}, "'graph' parameter"),
        ({"n_neighbors": 0}, "'n_neighbors' parameter"),
        ({"n_neighbors": "many"}, "'n_neighbors' parameter"),
        ({"method": "gdpo"}, "'method' parameter"),
        ({"label_weight": 0}, "'label_weight' parameter"),
        ({"self_loop": -0.1}, "'self_loop' parameter"),
        ({"self_loop": np.inf}, "'self_loop' parameter"),
        ({"abstain_below": 2}, "'abstain_below' parameter"),
        ({"class_prior": [0.5, 0.2, 0.1]}, "class_prior"),
        ({"class_prior": [0.7, 0.2]}, "adds up to"),
        ({"class_prior": [1.0, 0.0]}, "positive"),
        ({"options": {"tol": 1e-3}}, "'options' parameter"),
    ],
)
def test_bad_parameters(options, message):
    X, y = make_blobs(20, centers=2, random_state=0)
    with pytest.raises(ValueError, match=message):
        GraphClassifier(**options).fit(X, np.where(np.arange(20) < 8, y, -1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": -1.0}, "bandwidth"),
        ({"rescale": "l2"}, "rescale='l2'"),
        ({"laplacian": "random-walk"}, "laplacian='random-walk'"),
        ({"algorithm": "faiss"}, "algorithm='faiss'"),
        ({"tol": 0}, "tol=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"callback": 3}, "callback=3"),
        ({"method_options": 3}, "method_options=3"),
    ],
)
def test_bad_options_for_experts(options, message):
    with pytest.raises(ValueError, match=message):
        GraphOptions(**options)


def test_bad_options_of_a_method():
    X, y = make_blobs(20, centers=2, random_state=0)
    y = np.where(np.arange(20) < 8, y, -1)
    options = GraphOptions(method_options={"speed": 9})
    with pytest.raises(ValueError, match="no option 'speed'"):
        GraphClassifier(method="vote", options=options).fit(X, y)
    with pytest.raises(ValueError, match="cannot be used with method='harmonic'"):
        GraphClassifier(options=options).fit(X, y)
    with pytest.raises(ValueError, match="models=3"):
        CommitteeClassifier(models=3).fit(X, y)


@pytest.mark.parametrize("scale", [1e153, 1e154, 3e154, 1e200, 1e300, 1e307, 1.7e308])
@pytest.mark.parametrize("estimator", [CommitteeClassifier, GraphClassifier])
def test_features_near_the_largest_number(estimator, scale):
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 2
    X = np.clip(rng.normal(codes[:, None] - 0.5, 0.3, (60, 3)), -1.0, 1.0) * scale
    y = np.where(np.arange(60) < 20, codes, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning)
        model = estimator().fit(X, y)
        P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-9)
    assert (model.transduction_[:20] == codes[:20]).all()
