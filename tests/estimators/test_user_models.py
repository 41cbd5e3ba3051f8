"""The user's classifiers as members."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from gdpa import CommitteeClassifier


@pytest.fixture(scope="module")
def data():
    X, truth = make_classification(240, 8, n_informative=5, n_classes=3, random_state=0)
    return X, np.where(np.arange(240) % 4 == 0, truth, -1), truth


def test_the_test_labels_are_never_seen(data):
    """Changing what y would be on unlabelled samples cannot matter: it is not an input."""
    X, y, _ = data
    models = [LogisticRegression(), RandomForestClassifier(5)]
    first = CommitteeClassifier(models=models).fit(X, y)
    again = CommitteeClassifier(models=[clone(m) for m in models]).fit(X, y)
    assert (first.label_scores_ == again.label_scores_).all()  # seeds are set: fits repeat
    # A model that knows the labels it is fitted on by heart is not rewarded for that.
    from sklearn.tree import DecisionTreeClassifier

    X = np.random.default_rng(0).random((200, 5))
    noise = np.random.default_rng(1).integers(0, 2, 200)
    y = np.where(np.arange(200) < 100, noise, -1)
    learner = CommitteeClassifier(models=DecisionTreeClassifier()).fit(X, y)
    losses = dict(zip(learner.committee_.names, learner.committee_.losses, strict=True))
    assert losses["DecisionTreeClassifier"] > 0.6  # chance is log 2


def test_few_labels_and_rare_classes():
    X, truth = make_blobs(60, centers=3, cluster_std=0.5, random_state=0)
    y = np.full(60, -1)
    for c in range(3):
        y[np.flatnonzero(truth == c)[:1]] = c
    model = CommitteeClassifier(models=[LogisticRegression(), GaussianNB()]).fit(X, y)
    assert np.isfinite(model.label_scores_).all()
    assert (model.transduction_ == truth).mean() > 0.9
    two = np.where(truth == 0, 0, -1)
    two[np.flatnonzero(truth == 1)[0]] = 1
    assert np.isfinite(CommitteeClassifier(models=GaussianNB()).fit(X, two).label_scores_).all()


def test_unreached_samples_are_reached_by_models():
    X = np.concatenate([np.random.default_rng(0).normal(c, 0.1, (12, 1)) for c in (0, 50, 100)])
    y = np.full(36, -1)
    y[:4], y[12:16] = 0, 1
    model = CommitteeClassifier(n_neighbors=3, models=LogisticRegression()).fit(X, y)
    assert model.unreached_.size == 0
    assert (model.transduction_[24:] == 1).all()


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (LinearSVC(), "predict_proba"),
        (LogisticRegression, "instance"),
        ([LogisticRegression(), "forest"], "models='forest'"),
    ],
)
def test_bad_models(data, models, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        CommitteeClassifier(models=models).fit(X, y)


def test_models_never_make_the_held_out_loss_worse():
    X, truth = make_blobs(150, centers=3, cluster_std=2.0, random_state=0)
    y = np.where(np.arange(150) % 4 == 0, truth, -1)

    class Wrong(GaussianNB):
        def predict_proba(self, X):
            return np.roll(super().predict_proba(X), 1, axis=1)

    plain = CommitteeClassifier().fit(X, y).committee_
    for model in (GaussianNB(), Wrong()):
        found = CommitteeClassifier(models=model).fit(X, y).committee_
        assert found.loss <= plain.loss + 1e-12
