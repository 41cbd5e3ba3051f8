"""CommitteeClassifier() with its committee: what a user does with it."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_circles
from sklearn.linear_model import LogisticRegression

import gdpa
from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.estimators import GraphOptions
from gdpa.estimators.committee import Member, fit_committee
from gdpa.estimators.heads.harmonic import Harmonic
from gdpa.estimators.heads.kernel import Kernel
from gdpa.estimators.labels import encode_labels
from gdpa.estimators.options import CheckedOptions
from gdpa.estimators.views import COLUMNS, NEIGHBOR_GRAPH
from gdpa.estimators.weights import WeightRule
from gdpa.policy import Policy


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    labels = np.full(y.size, -1)
    rng = np.random.default_rng(0)
    for c in range(3):
        known = rng.choice(np.flatnonzero(y == c), 10, replace=False)
        labels[known] = c
    return X, y, labels


@pytest.fixture
def fitted(iris):
    return CommitteeClassifier().fit(iris[0], iris[2])


def test_default_is_a_committee(iris, fitted):
    _, y, labels = iris
    found = fitted.committee_
    assert set(found.names) == {
        "neighbours",
        "forest graph",
        "forest",
        "linear",
        "kernel",
        "self-trained",
        "gaussian",
        "whitened",
        "forest kernel",
    }
    assert found.weights.sum() == pytest.approx(1.0)
    assert (fitted.transduction_ == y)[labels < 0].mean() > 0.93
    assert np.array_equal(fitted.transduction_[labels >= 0], labels[labels >= 0])
    assert fitted.feature_importances_.shape == (4,)
    assert fitted.feature_importances_[2:].sum() > 0.5  # the petals
    assert 0 <= fitted.tuning_.loss <= 1
    assert fitted.tuning_.source == "k-fold"


def test_a_member_that_hardly_counts_is_not_fitted_to_many_samples(monkeypatch):
    X, y = make_circles(600, factor=0.4, noise=0.02, random_state=0)
    labels = np.where(np.arange(600) < 60, y, -1)
    monkeypatch.setattr(CommitteeClassifier, "_policy", Policy(judged_nodes=200))
    model = CommitteeClassifier().fit(X, labels)
    weights = model.committee_
    assert weights.of("linear") == 0  # a line does not separate circles
    assert "linear" not in model.ensemble_.members
    assert np.isfinite(weights.losses[weights.names.index("linear")])  # its loss is known
    assert weights.weights[weights.weights > 0].min() > 0.04
    assert (model.transduction_ == y).mean() > 0.99


def test_adding_a_member_is_one_line(iris):
    X, y, labels = iris
    two = (
        Member("neighbours", Harmonic(NEIGHBOR_GRAPH), ("table",)),
        Member("rough kernel", Kernel(widths=(1.0,), ridges=(0.3,)), ("table",)),
    )
    coding = encode_labels(labels)
    found = fit_committee(X, coding, CheckedOptions(), members=two)
    assert found.weighting.names == ("neighbours", "rough kernel")
    assert set(found.members) == {"neighbours", "rough kernel"}
    assert (found.codes == y).mean() > 0.85


def test_the_rule_for_weights_can_be_given(iris):
    X, _, labels = iris
    told = WeightRule(prior={"forest": 50.0})
    found = fit_committee(X, encode_labels(labels), CheckedOptions(), rule=told)
    assert found.weighting.of("forest") > 0.99


def test_one_graph_on_request(iris):
    model = GraphClassifier().fit(iris[0], iris[2])
    assert model.committee_ is None
    assert not hasattr(model, "feature_importances_")


def test_fits_repeat(iris, fitted):
    again = CommitteeClassifier(n_jobs=2).fit(iris[0], iris[2])
    assert np.array_equal(again.label_scores_, fitted.label_scores_)
    other = CommitteeClassifier(random_state=1).fit(iris[0], iris[2])
    assert not np.array_equal(other.label_scores_, fitted.label_scores_)


def test_rows_of_the_fit_are_answered_as_in_the_fit(iris, fitted):
    assert np.array_equal(fitted.predict(iris[0]), fitted.transduction_)
    p = fitted.predict_proba(iris[0] + 0.01)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p.argmax(axis=1) == iris[1]).mean() > 0.9


def test_concentric_classes_are_solved_by_the_member_that_can():
    X, y = make_circles(300, noise=0.08, factor=0.5, random_state=0)
    labels = np.full(300, -1)
    labels[:40] = y[:40]
    model = CommitteeClassifier().fit(X, labels)
    assert (model.transduction_ == y).mean() > 0.9
    found = dict(zip(model.committee_.names, model.committee_.losses, strict=True))
    assert found["kernel"] < found["linear"] - 0.2


def test_saved_and_pickled_alike(tmp_path, iris, fitted):
    path = fitted.save(tmp_path / "model.npz")
    loaded = CommitteeClassifier.load(path)
    back = pickle.loads(pickle.dumps(fitted))
    X = iris[0] + np.random.default_rng(1).normal(scale=0.2, size=iris[0].shape)
    for other in (loaded, back):
        np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))
        assert np.array_equal(other.transduction_, fitted.transduction_)
        assert other.committee_.names == fitted.committee_.names
        np.testing.assert_array_equal(other.feature_importances_, fitted.feature_importances_)
    free = np.flatnonzero(iris[2] < 0)[:3]
    one, two = fitted_copy(fitted), loaded
    one.add_labels(free, iris[1][free])
    two.add_labels(free, iris[1][free])
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-9)


def fitted_copy(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("damage", ["weights", "member", "leaves", "forest_left"])
def test_damaged_committees_are_refused(tmp_path, fitted, damage):
    ensemble = fitted.ensemble_
    members = dict(ensemble.members)
    weights = ensemble.member_weights
    if damage == "weights":
        weights = replace(weights, weights=weights.weights - 1.0)
    elif damage == "member":
        weights = replace(weights, names=tuple("abcdefghijk"[: len(weights.names)]))
    elif damage == "leaves":
        member = members["forest graph"]
        graph = replace(member.graph, leaves=member.graph.leaves[:, 1:])
        members["forest graph"] = replace(member, graph=graph)
    else:
        member = members["forest"]
        forest = replace(member.model, left=member.model.left * 0)
        members["forest"] = replace(member, model=forest)
    broken = fitted_copy(fitted)
    broken.ensemble_ = replace(ensemble, members=members, member_weights=weights)
    with pytest.raises(ValueError, match=r"weight|leaves|forest|trees"):
        broken.save(tmp_path / "bad.npz")


def test_more_labels_move_scores_and_keep_members(iris, fitted):
    model = fitted_copy(fitted)
    before = model.label_scores_.copy()
    wrong = np.flatnonzero(model.transduction_ != iris[1])
    nodes = wrong if wrong.size else np.flatnonzero(iris[2] < 0)[:1]
    model.add_labels(nodes, iris[1][nodes])
    assert (model.transduction_[nodes] == iris[1][nodes]).all()
    assert np.abs(model.label_scores_ - before).max() > 1e-6
    assert model.committee_.names == fitted.committee_.names
    np.testing.assert_array_equal(model.committee_.weights, fitted.committee_.weights)
    model.add_labels(nodes, [-1] * nodes.size)
    np.testing.assert_allclose(model.label_scores_, before, atol=5e-3)
    model.add_labels([0], [7], new_classes=True)
    assert model.classes_.tolist() == [0, 1, 2, 7]
    assert model.predict(iris[0][:1]).tolist() == [7]
    assert model.predict_proba(iris[0]).shape == (150, 4)


def test_queries_priors_and_abstention(iris):
    X, _, labels = iris
    model = CommitteeClassifier(class_prior=[0.2, 0.2, 0.6], abstain_below=0.6).fit(X, labels)
    free = labels < 0
    p = model.ensemble_.probabilities()[free]
    np.testing.assert_allclose(p.mean(axis=0), [0.2, 0.2, 0.6], atol=1e-6)
    assert set(model.query(4)) <= set(np.flatnonzero(free))
    for strategy in ("auto", "representatives"):
        assert model.query(2, strategy).size == 2
    said = model.predict(X)
    assert ((said == -1) == (model.predict_proba(X).max(axis=1) < 0.6)).all()


def test_one_label_a_class(iris):
    X, y, _ = iris
    labels = np.full(y.size, -1)
    labels[[10, 70, 120]] = y[[10, 70, 120]]
    model = CommitteeClassifier().fit(X, labels)
    assert model.committee_.losses is None
    assert (model.transduction_ == y).mean() > 0.8
    assert model.tuning_.source == "too few labels"


def test_two_rows_and_one_class():
    assert gdpa.classify([[0.0], [5.0]], [0, 1]).tolist() == [0, 1]
    with pytest.warns(gdpa.errors.DegenerateProblemWarning):
        assert gdpa.classify([[0.0], [5.0], [6.0]], [3, -1, -1]).tolist() == [3, 3, 3]
    assert gdpa.classify([[0.0], [0.1], [5.0]], [0, -1, 1]).tolist() == [0, 0, 1]


def test_constant_and_sparse_features(iris):
    X, y, labels = iris
    wide = np.hstack([X, np.ones((150, 2)), np.zeros((150, 1))])
    model = CommitteeClassifier().fit(wide, labels)
    assert (model.transduction_ == y).mean() > 0.9
    thin = sp.csr_array(np.where(wide > 1.5, wide, 0.0))
    model = CommitteeClassifier().fit(thin, labels)
    assert (model.transduction_ == y).mean() > 0.85
    assert model.predict(thin[:5]).shape == (5,)
    assert CommitteeClassifier().fit(np.zeros((30, 2)), np.arange(30) % 4 - 1).predict_proba(
        np.ones((2, 2))
    ).shape == (2, 3)


def test_bad_evidence_does_not_spoil_it(iris):
    X, _, labels = iris

    class Wrong(LogisticRegression):
        def predict_proba(self, X):
            p = super().predict_proba(X)
            return np.roll(p, 1, axis=1)

    plain = CommitteeClassifier().fit(X, labels)
    model = CommitteeClassifier(models=[Wrong(max_iter=500)]).fit(X, labels)
    found = model.committee_
    assert found.names[-1] == "Wrong"
    assert found.loss <= plain.committee_.loss + 1e-12
    assert found.loss_without_models == pytest.approx(plain.committee_.loss)
    assert np.array_equal(model.transduction_, plain.transduction_)


def test_good_evidence_votes_and_is_not_saved(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 10))
    y = (X @ np.linspace(-1, 1, 10) > 0).astype(int)
    labels = np.where(np.arange(150) < 60, y, -1)
    model = CommitteeClassifier(models=LogisticRegression(C=10.0)).fit(X, labels)
    weights = dict(zip(model.committee_.names, model.committee_.weights, strict=True))
    assert weights["LogisticRegression"] > 0.1
    assert model.predict(X[:3]).shape == (3,)
    with pytest.raises(ValueError, match="cannot be stored without pickle"):
        model.save(tmp_path / "m.npz")


def test_many_nodes_are_judged_on_a_sample(monkeypatch):
    X, y = gdpa.datasets.gaussian_clusters(1500, n_features=6, separation=2.0, random_state=0)
    codes = np.full(1500, -1)
    rng = np.random.default_rng(0)
    known = rng.choice(1500, 120, replace=False)
    codes[known] = (y > 0)[known]
    limits = Policy(judged_nodes=500, judged_labels=100, exact_leaves=300, forest_trees=50)
    monkeypatch.setattr(CommitteeClassifier, "_policy", limits)
    events = []
    model = CommitteeClassifier(
        options=GraphOptions(callback=lambda e: events.append(dict(e)) and None)
    ).fit(X, codes)
    free = codes < 0
    assert (model.transduction_ == (y > 0))[free].mean() > 0.85
    assert model.tuning_.checked.size == 100
    assert model.tuning_.source == "sample"
    found = model.ensemble_.left_out()
    assert found[0].size == 100
    stages = [e["stage"] for e in events]
    assert stages.index("graph") < stages.index("member") < stages.index("tuning")
    judged = [e["member"] for e in events if e.get("action") == "cross-validated"]
    assert {"neighbours", "forest", "linear", "kernel"} <= set(judged)
    assert np.isfinite(model.predict_proba(X[:20] + 0.1)).all()


def test_many_labels_judge_the_whole_graph(monkeypatch):
    """A fine chessboard: only neighbours see it, and only with labels everywhere."""
    X = np.random.default_rng(0).random((3000, 2))
    y = (np.floor(14 * X).sum(axis=1) % 2).astype(int)
    labels = np.where(np.arange(3000) % 10 == 0, -1, y)
    limits = Policy(judged_nodes=400, judged_labels=200, forest_trees=20, forest_labels=200)
    monkeypatch.setattr(CommitteeClassifier, "_policy", limits)
    model = CommitteeClassifier().fit(X, labels)
    weights = dict(zip(model.committee_.names, model.committee_.weights, strict=True))
    assert weights["neighbours"] > 0.9
    assert (model.transduction_ == y)[labels < 0].mean() > 0.75


def test_leaves_as_points_and_their_file(tmp_path, monkeypatch, iris):
    X, y, labels = iris
    monkeypatch.setattr(CommitteeClassifier, "_policy", Policy(exact_leaves=50, forest_trees=50))
    model = CommitteeClassifier().fit(X, labels)
    assert model.ensemble_.members["forest graph"].columns.embedding is not None
    assert (model.transduction_ == y).mean() > 0.9
    loaded = CommitteeClassifier.load(model.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(loaded.predict_proba(X + 0.05), model.predict_proba(X + 0.05))


def test_repeated_rows_with_unlike_labels():
    """No split tells the classes apart: the forest has no importances."""
    rows = np.array([[-1.9, -0.7, 0.3, -1.3], [-0.1, -0.5, 1.8, 0.0], [-1.2, 0.2, 0.3, 0.2]])
    X = rows[[0, 1, 1, 1, 1, 0, 1, 1, 2, 1, 2, 0]]
    y = np.array([1, 0, -1, 0, 1, 0, 0, 1, -1, -1, -1, 0])
    shares = CommitteeClassifier().fit(X, y).predict_proba(X)
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_far_rows_of_sparse_features():
    """An important column is stretched: what was just finite stays so."""
    X = sp.csr_array(np.linspace(0.1, 0.9, 20)[:, None])
    y = np.where(np.arange(20) % 4 < 3, np.arange(20) // 10, -1)
    far = sp.csr_array([[1.79e308], [-1.79e308]])
    shares = CommitteeClassifier().fit(X, y).predict_proba(far)
    assert np.isfinite(shares).all()


@pytest.mark.filterwarnings("error")
def test_every_row_has_a_label_and_no_label_can_be_held_out():
    X = np.array([[0.0, 1.0], [4.0, 3.0], [9.0, 1.0]])
    model = CommitteeClassifier().fit(X, [0, 1, 2])
    assert model.transduction_.tolist() == [0, 1, 2]
    assert np.isfinite(model.predict_proba(X)).all()


def test_samples_that_no_label_reaches_are_answered_by_another_member():
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    X = rng.normal(0, 0.1, (60, 2)) + 3.0 * truth[:, None]
    island = rng.normal(0, 0.1, (20, 2)) + 30.0  # no neighbour in the rest
    y = np.append(np.where(np.arange(60) < 20, truth, -1), np.full(20, -1))
    members = (
        Member("neighbours", Harmonic(NEIGHBOR_GRAPH), ("table",)),
        Member("kernel", Kernel(COLUMNS), ("table",)),
    )
    rule = WeightRule(prior={"neighbours": 50.0})  # alone, it would leave the island out
    found = fit_committee(
        np.vstack([X, island]), encode_labels(y, -1), CheckedOptions(), members=members, rule=rule
    )
    assert found.members["neighbours"].abstaining.tolist() == list(range(60, 80))
    assert found.unreached.size == 0
    assert found.weighting.of("kernel") == pytest.approx(0.01)
