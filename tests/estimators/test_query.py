"""What to label next: from no label on, diverse, components first, skips left out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.estimators.query import STRATEGIES
from gdpa.estimators.sketch import SELF_LOOP, sketch_graph, sketch_rows
from gdpa.estimators.strategies import lead, representatives, unlabeled_component
from gdpa.graph import neighbor_graph


@pytest.fixture(scope="module")
def few():
    X, truth = make_blobs(240, centers=3, cluster_std=2.0, random_state=0)
    y = np.where(np.arange(240) % 24 == 0, truth, -1)
    return X, truth, y, GraphClassifier(n_neighbors=10).fit(X, y)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_queries_are_unlabelled_different_and_repeat(few, strategy):
    _, _, y, model = few
    asked = model.query(6, strategy=strategy)
    assert len(set(asked.tolist())) == 6
    assert (y[asked] == -1).all()
    assert (asked == model.query(6, strategy=strategy)).all()
    assert sorted(model.query(500, strategy=strategy)) == np.flatnonzero(y < 0).tolist()


def test_they_ask_where_the_classifier_doubts(few):
    _, _, y, model = few
    doubt = 1 - lead(model.ensemble_.probabilities())
    assert doubt[model.query(10)].mean() > 1.5 * doubt[y < 0].mean()


@pytest.mark.parametrize("strategy", ["auto", "representatives"])
def test_a_batch_does_not_ask_ten_copies_of_one_tie(strategy):
    rng = np.random.default_rng(0)
    ends = np.r_[rng.normal(-5, 1, (60, 2)), rng.normal(5, 1, (60, 2))]
    X = np.r_[ends, rng.normal(0, 0.01, (60, 2)), rng.normal(0, 1.5, (60, 2))]
    y = np.full(240, -1)
    y[:8], y[60:68] = 0, 1
    model = GraphClassifier(n_neighbors=8).fit(X, y)
    asked = model.query(10, strategy)
    assert ((asked >= 120) & (asked < 180)).sum() <= 5


@pytest.mark.parametrize("strategy", ["representatives", "auto"])
@pytest.mark.parametrize("graph", ["knn", "precomputed"])
def test_from_no_label_at_all(strategy, graph):
    X, truth = make_blobs(120, centers=4, cluster_std=0.4, random_state=4)
    data = X if graph == "knn" else neighbor_graph(X, 6)
    asked = GraphClassifier(graph=graph).query(4, strategy, X=data)
    assert sorted(truth[asked]) == [0, 1, 2, 3]
    assert GraphClassifier(graph=graph).query(4, "random", X=data).size == 4


def test_components_without_a_label_come_first():
    X, part = make_blobs(160, centers=4, cluster_std=0.3, random_state=4)
    y = np.where((part < 2) & (np.arange(160) % 3 == 0), part, -1)
    with pytest.warns(UserWarning, match="components without a label"):
        model = GraphClassifier(n_neighbors=5).fit(X, y)
    assert sorted(part[model.query(2)]) == [2, 3]
    components = np.array([0] * 50 + [1] * 30 + [2] * 30 + [3])
    free = np.arange(1, 111)
    chosen = unlabeled_component(components, np.array([0, 60]), free)
    assert set(components[chosen]) == {2}
    all_known = np.array([0, 60, 90])
    assert unlabeled_component(components, all_known, free).size == free.size  # one node is no part


def test_skipped_samples_are_not_asked_and_labels_take_them_up(few, tmp_path):
    X, truth, y, _ = few
    model = GraphClassifier(n_neighbors=10).fit(X, y)
    first = model.query(5)
    model.skip(first)
    assert not set(model.query(235 - 5).tolist()) & set(first.tolist())
    model.save(tmp_path / "m.npz")
    assert GraphClassifier.load(tmp_path / "m.npz").skipped_.tolist() == sorted(first.tolist())
    model.add_labels(first[:1], truth[first[:1]])
    assert model.skipped_.tolist() == sorted(first[1:].tolist())
    model.fit(X, y)
    assert model.skipped_.size == 0
    with pytest.raises(ValueError, match="numbered 0 to 239"):
        model.skip([240])


def test_add_labels_takes_new_classes_corrects_and_takes_back(few):
    X, truth, y, _ = few
    model = GraphClassifier(n_neighbors=10).fit(X, y)
    before = model.label_scores_
    model.add_labels([5, 7], [9, 9])
    assert model.classes_.tolist() == [0, 1, 2, 9]
    assert model.transduction_[5] == 9
    assert model.label_scores_.shape == (240, 4)
    model.add_labels([5], [int(truth[5])])
    assert model.transduction_[5] == truth[5]
    model.add_labels([5, 7], [-1, -1], tol=1e-9)
    np.testing.assert_allclose(model.label_scores_[:, :3], before, atol=1e-4)
    with pytest.raises(ValueError, match="8"):
        model.add_labels([3], [8], new_classes=False)


def test_the_committee_is_asked_too():
    X, truth = make_blobs(150, centers=3, cluster_std=2.0, random_state=0)
    y = np.where(np.arange(150) % 10 == 0, truth, -1)
    model = CommitteeClassifier().fit(X, y)
    asked = model.query(4)
    assert (y[asked] == -1).all()
    model.add_labels(asked, truth[asked]).skip(model.query(1))
    assert (model.transduction_[asked] == truth[asked]).all()
    assert model.skipped_.size == 1


@pytest.mark.parametrize(
    ("n", "strategy", "message"), [(0, "auto", "n=0"), (1, "entropy", "strategy='entropy'")]
)
def test_bad_queries(few, n, strategy, message):
    with pytest.raises(ValueError, match=message):
        few[3].query(n, strategy)


# -- the sample -----------------------------------------------------------------------------------


def test_the_field_given_labels_is_the_solved_system():
    """Mean and variance given labels are those of the clamped system, solved directly."""
    X = np.random.default_rng(0).normal(size=(80, 3))
    sketch = sketch_rows(X)
    known = np.array([3, 40, 77])
    field = sketch.given(known)
    A = np.linalg.inv(sketch.covariance)
    rest = np.setdiff1d(np.arange(80), known)
    inner = np.linalg.inv(A[np.ix_(rest, rest)])
    targets = np.eye(2)[[0, 1, 0]]
    expected = -inner @ A[np.ix_(rest, known)] @ targets
    np.testing.assert_allclose(field.scores(targets)[rest], expected, atol=1e-6)
    np.testing.assert_allclose(field.variances(rest), np.diag(inner), atol=1e-6)
    np.testing.assert_allclose(field.variances(known), 0, atol=1e-6)
    more = sketch.given(np.array([3, 40, 77, 10]))
    both = field.condition_on(10)
    np.testing.assert_allclose(both.variances(rest), more.variances(rest), atol=1e-6)


def test_rows_outside_the_sample_are_noisy_means_of_their_neighbours():
    X = np.random.default_rng(0).normal(size=(300, 2))
    sketch = sketch_rows(X, size=100, seed=1)
    assert sketch.rows.size == 100
    weights = sketch.weights(X[:5])
    np.testing.assert_allclose(weights.sum(axis=1), 1 / (1 + SELF_LOOP))
    assert ((weights > 0).sum(axis=1) <= 10).all()
    field = sketch.given(np.array([2]), weights)
    # The oracle: condition the joint covariance of the sample and the five rows.
    K = sketch.covariance
    joint = np.block([[K, K @ weights.T], [weights @ K, weights @ K @ weights.T + np.eye(5)]])
    known = np.array([2, 100, 101, 102, 103, 104])
    gain = joint[:100, known] @ np.linalg.inv(joint[np.ix_(known, known)]) @ joint[known, :100]
    expected = np.diag(K - gain)
    np.testing.assert_allclose(field.variances(np.arange(100)), expected, atol=1e-6)


def test_a_sample_of_a_graph_stands_for_all_of_it():
    X, part = make_blobs(900, centers=[[0, 0], [9, 0], [0, 9]], cluster_std=0.5, random_state=5)
    W = neighbor_graph(X, 6)
    sketch = sketch_graph(W, size=60, seed=0)
    assert sketch.place.shape == (900,)
    assert (part[sketch.rows][sketch.place] == part).all()
    # Tiny components that no sampled node is in have one of their own.
    lonely = sp.block_diag([W, np.array([[0.0, 1], [1, 0]])], format="csr")
    with_pair = sketch_graph(sp.csr_array(lonely), size=60, seed=0)
    assert with_pair.rows[with_pair.place[-1]] >= 900
    assert with_pair.place[-1] == with_pair.place[-2]


def test_representatives_are_different_rows():
    X, truth = make_blobs(90, centers=3, cluster_std=0.2, random_state=1)
    assert sorted(truth[representatives(X, 3)]) == [0, 1, 2]
    copies = np.repeat(X[:2], 5, axis=0)
    with pytest.warns(UserWarning, match="distinct clusters"):
        chosen = representatives(copies, 5)
    assert np.unique(chosen).size == chosen.size
