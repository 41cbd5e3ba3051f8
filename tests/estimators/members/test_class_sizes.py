"""Class sizes as a member: expected shares, and when they replace the neighbours."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa import CommitteeClassifier
from gdpa.errors import ConfidenceWarning
from gdpa.estimators.ensemble import MOST_OFFSET
from gdpa.estimators.few_labels import MOST_CONFIDENCE, mean_agreement, supported_trust
from gdpa.estimators.labels import LabelCoding
from gdpa.estimators.members.class_sizes import (
    BLOCK,
    MOST_NEIGHBORS,
    SLACK,
    ClassSizesMember,
    expected_shares,
    shared_neighbor_weights,
)
from gdpa.estimators.probabilities import cautions

pytestmark = pytest.mark.filterwarnings("ignore::gdpa.errors.ConfidenceWarning")


def coding(counts):
    codes = np.repeat(np.arange(len(counts)), counts)
    return LabelCoding(np.append(codes, -1).astype(np.int32), np.arange(len(counts)))


def clusters(shares, n=600, seed=0, counts=(1, 1, 1), distance=6.0):
    """Three clusters in five dimensions, one label in each or as many as said."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), (np.array(shares) * n).astype(int))
    X = distance * np.eye(5)[y] + rng.normal(size=(y.size, 5))
    labels = np.full(y.size, -1)
    for c in range(3):
        labels[rng.choice(np.flatnonzero(y == c), counts[c], replace=False)] = c
    return X, y, labels


def test_shares_come_from_the_user_else_from_unequal_counts():
    given = np.array([0.7, 0.2, 0.1])
    np.testing.assert_array_equal(expected_shares(coding([1, 5, 9]), given)[0], given)
    shares, slack = expected_shares(coding([5, 4, 5]), None)
    np.testing.assert_allclose(shares, 1 / 3)
    np.testing.assert_allclose(slack, SLACK)
    shares, slack = expected_shares(coding([4, 16, 20]), None)
    np.testing.assert_allclose(shares, [0.1, 0.4, 0.5])
    assert slack[0] == 1.5  # one standard deviation of four labels
    assert (np.diff(slack) <= 0).all()


def test_an_edge_between_clusters_loses_most_weight():
    clique = np.ones((4, 4)) - np.eye(4)
    A = np.kron(np.eye(2), clique)
    A[0, 4] = A[4, 0] = 1.0
    found = shared_neighbor_weights(sp.csr_array(A)).toarray()
    np.testing.assert_array_equal(found, found.T)
    assert found[1, 2] == 1.0  # the same neighbours
    assert found[0, 4] == pytest.approx((2 / 8) ** 2)  # the two themselves of eight
    assert ((found > 0) == (A > 0)).all()


def test_hubs_do_not_count_as_common_neighbors():
    n = BLOCK + MOST_NEIGHBORS
    spokes = np.arange(1, n)
    star = sp.csr_array((np.ones(n - 1), (np.zeros(n - 1, int), spokes)), shape=(n, n))
    W = sp.csr_array(star + star.T)
    found = shared_neighbor_weights(W)
    assert found.nnz == W.nnz
    assert (found.data > 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_unequal_classes_with_equal_labels_lose_nothing(seed):
    X, y, labels = clusters([0.9, 0.08, 0.02], seed=seed)
    model = CommitteeClassifier(n_jobs=1).fit(X, labels)
    assert model.committee_.of("class sizes") == 0
    assert model.committee_.rule == "fixed"
    assert (model.transduction_ == y).mean() > 0.98


@pytest.mark.parametrize("distance", [3.0, 6.0])
@pytest.mark.parametrize("counts", [(1, 1, 1), (1, 2, 3), (5, 5, 5), (2, 8, 4)])
def test_counts_that_do_not_follow_the_shares_lose_at_most_a_point(counts, distance, monkeypatch):
    X, y, labels = clusters([0.9, 0.09, 0.01], n=1000, counts=counts, distance=distance)
    found = CommitteeClassifier(n_jobs=1).fit(X, labels).transduction_
    monkeypatch.setattr(ClassSizesMember, "suits", lambda self, data: False)
    without = CommitteeClassifier(n_jobs=1).fit(X, labels).transduction_
    assert (found == y).mean() >= (without == y).mean() - 0.01


def test_class_shares_follow_the_other_members_where_a_graph_is_swamped():
    # Overlapping classes in many dimensions: the graph with one label a class has one winner.
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = rng.normal(size=(600, 20)) + 0.5 * y[:, None]
    labels = np.full(600, -1)
    labels[[0, 300]] = [0, 1]
    model = CommitteeClassifier(n_jobs=1).fit(X, labels)
    w = model.committee_
    assert w.rule == "fixed"
    assert 0 < np.abs(w.offset).max() <= MOST_OFFSET
    free = labels < 0
    members = {m.name: m.shares[free] for m in model.ensemble_.members}
    plain = replace(w, offset=None).combine([members.get(name) for name in w.names])
    others = np.mean([members[n].mean(axis=0) for n in ("forest", "linear", "kernel")], axis=0)
    found = model.predict_proba(X)[free].mean(axis=0)
    assert np.abs(found - others).max() < np.abs(plain.mean(axis=0) - others).max()
    wider = model.ensemble_.with_classes(np.array([0, 1, 2]))
    assert wider.weighting.offset.shape == (3,)


def test_few_labels_lower_probabilities_and_warn():
    X, _, labels = clusters([1 / 3, 1 / 3, 1 / 3])
    with pytest.warns(ConfidenceWarning, match="too few to hold any out"):
        model = CommitteeClassifier(n_jobs=1).fit(X, labels)
    free = labels < 0
    assert model.ensemble_.probabilities()[free].max() <= MOST_CONFIDENCE + 1e-9
    assert model.predict_proba(X[free] + 0.01).max() <= MOST_CONFIDENCE + 1e-9
    assert len(cautions(model.ensemble_)) == 1
    assert (model.predict_proba(X[~free]).max(axis=1) > 0.99).all()  # given labels are kept


def test_trust_falls_with_agreement():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(4, 0.1), 500)
    same, weights = p.argmax(axis=1), np.ones(2) / 2
    assert mean_agreement([same, same], weights) == 1.0
    other = np.where(rng.random(500) < 0.5, (same + 1) % 4, same)
    trusts = [
        supported_trust(p, [same, second], weights) for second in (same, other, (same + 1) % 4)
    ]
    assert trusts[0] > trusts[1] > trusts[2] == 0.0
    mixed = trusts[0] * p + (1 - trusts[0]) / 4
    assert mixed.max() <= MOST_CONFIDENCE + 1e-9
    np.testing.assert_array_equal(mixed.argmax(axis=1), same)
