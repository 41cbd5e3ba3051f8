"""Other classifiers as evidence."""

from __future__ import annotations

import numpy as np
import pytest
from gdpa.estimators.evidence import gather_evidence, mixture_weights
from gdpa.folds import stratified_folds
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.estimators import GraphOptions


@pytest.fixture(scope="module")
def data():
    X, truth = make_classification(240, 8, n_informative=5, n_classes=3, random_state=0)
    return X, np.where(np.arange(240) % 4 == 0, truth, -1), truth


def test_labelled_samples_get_out_of_fold_predictions(data):
    X, y, _ = data
    nodes = np.flatnonzero(y >= 0)
    codes = y[nodes].astype(np.int32)
    found = gather_evidence([GaussianNB()], X, nodes, codes, 3)
    fold = stratified_folds(codes, 5)
    for number in range(5):
        inside = fold != number
        model = GaussianNB().fit(X[nodes[inside]], codes[inside])
        np.testing.assert_allclose(
            found.probabilities[nodes[~inside]], model.predict_proba(X[nodes[~inside]])
        )
    rest = np.flatnonzero(y < 0)
    whole = GaussianNB().fit(X[nodes], codes)
    np.testing.assert_allclose(found.probabilities[rest], whole.predict_proba(X[rest]))
    np.testing.assert_allclose(found.predict(X[:5]), whole.predict_proba(X[:5]))


def test_scores_solve_the_system_with_evidence(data):
    X, y, _ = data
    model = GraphClassifier(
        n_neighbors=8,
        self_loop=0.2,
        label_weight=2.0,
        models=GaussianNB(),
        evidence_weight=0.7,
        options=GraphOptions(tol=1e-10),
    ).fit(X, y)
    from gdpa.graph import laplacian

    L = laplacian(model.graph_, "normalized").toarray()
    a = np.where(y >= 0, 2.0, 0.0)
    Y = np.where((y >= 0)[:, None], np.eye(3)[np.maximum(y, 0)], 0.0)
    T = model.ensemble_.evidence.probabilities
    F = np.linalg.solve(L + np.diag(a + 0.9), a[:, None] * Y + 0.7 * T)
    np.testing.assert_allclose(model.ensemble_.scores, F, atol=1e-8)


def test_an_infinite_weight_of_evidence_is_the_model_itself(data):
    X, y, _ = data
    model = GraphClassifier(models=GaussianNB(), evidence_weight=1e9, label_weight=np.inf)
    model.fit(X, y)
    free = y < 0
    alone = GaussianNB().fit(X[~free], y[~free])
    assert (model.transduction_[free] == alone.predict(X[free])).all()
    rows = X + 0.05
    assert (model.predict(rows) == alone.predict(rows)).mean() > 0.99


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
    learner = GraphClassifier(models=DecisionTreeClassifier()).fit(X, y)
    known = y >= 0
    told = learner.ensemble_.evidence.probabilities[known].argmax(axis=1)
    assert (told == y[known]).mean() < 0.7


def test_mixture_prefers_the_better_model_but_not_wholly():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 200).astype(np.int32)
    good = np.where(np.eye(2)[codes] > 0, 0.9, 0.1)
    bad = np.full((200, 2), 0.5)
    weights = mixture_weights(np.stack([good, bad]), codes)
    assert weights.sum() == pytest.approx(1)
    assert 0.6 < weights[0] < 1
    equal = mixture_weights(np.stack([good, good]), codes)
    np.testing.assert_allclose(equal, 0.5)


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


def test_unreached_nodes_are_reached_by_evidence():
    X = np.concatenate([np.random.default_rng(0).normal(c, 0.1, (12, 1)) for c in (0, 50, 100)])
    y = np.full(36, -1)
    y[:4], y[12:16] = 0, 1
    model = CommitteeClassifier(n_neighbors=3, models=LogisticRegression()).fit(X, y)
    assert model.unreached_.size == 0
    assert (model.transduction_[24:] == 1).all()


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (LinearSVC(), "predict_proba"),
        (LogisticRegression, "instance"),
        ([LogisticRegression(), "forest"], "evidence='forest'"),
    ],
)
def test_bad_evidence(data, evidence, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        CommitteeClassifier(models=evidence).fit(X, y)


def test_precomputed_graph_has_no_features_for_evidence():
    with pytest.raises(ValueError, match="evidence needs features"):
        GraphClassifier(graph="precomputed", models=GaussianNB()).fit(np.eye(3), [0, 1, -1])


def test_evidence_never_makes_the_left_out_loss_worse():
    X, truth = make_blobs(150, centers=3, cluster_std=2.0, random_state=0)
    y = np.where(np.arange(150) % 4 == 0, truth, -1)

    class Wrong(GaussianNB):
        def predict_proba(self, X):
            return np.roll(super().predict_proba(X), 1, axis=1)

    for graph in ("knn", "full", "auto"):
        plain = GraphClassifier(graph=graph).fit(X, y)
        for model in (GaussianNB(), Wrong()):
            told = GraphClassifier(graph=graph, models=model).fit(X, y)
            if graph == "auto":
                assert told.committee_.loss <= plain.committee_.loss + 1e-12
            else:
                assert told.tuning_.loss <= plain.tuning_.loss + 1e-12
        assert (told.transduction_ == plain.transduction_).all()  # the last one is wrong
