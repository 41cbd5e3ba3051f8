"""Class sizes: expected shares, and when the labelling is supported."""

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa import CommitteeClassifier
from gdpa.errors import ConfidenceWarning
from gdpa.estimators.committee import MEMBERS, fit_committee
from gdpa.estimators.few_labels import (
    MOST_CONFIDENCE,
    equal_confidence,
    mean_agreement,
    supported_trust,
)
from gdpa.estimators.heads.class_sizes import (
    BLOCK,
    MOST_NEIGHBORS,
    SLACK,
    expected_shares,
    shared_neighbor_weights,
)
from gdpa.estimators.labels import LabelCoding, encode_labels
from gdpa.estimators.options import CheckedOptions
from gdpa.estimators.probabilities import cautions, sharpen

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
    assert model.committee_.rule == "prior"
    assert (model.transduction_ == y).mean() > 0.98


@pytest.mark.parametrize("distance", [3.0, 6.0])
@pytest.mark.parametrize("counts", [(1, 1, 1), (1, 2, 3), (5, 5, 5), (2, 8, 4)])
def test_counts_that_do_not_follow_the_shares_lose_at_most_a_point(counts, distance):
    X, y, labels = clusters([0.9, 0.09, 0.01], n=1000, counts=counts, distance=distance)
    others = [member for member in MEMBERS if member.name != "class sizes"]
    found, without = (
        fit_committee(X, encode_labels(labels), CheckedOptions(n_jobs=1), members=members).codes
        for members in (MEMBERS, others)
    )
    assert (found == y).mean() >= (without == y).mean() - 0.01


def test_few_labels_lower_probabilities_and_warn():
    X, _, labels = clusters([1 / 3, 1 / 3, 1 / 3])
    with pytest.warns(ConfidenceWarning, match="too few to hold any out"):
        model = CommitteeClassifier(n_jobs=1).fit(X, labels)
    free = labels < 0
    assert model.ensemble_.probabilities()[free].max() <= MOST_CONFIDENCE + 1e-9
    assert model.predict_proba(X[free] + 0.01).max() <= MOST_CONFIDENCE + 1e-9
    assert len(cautions(model.ensemble_)) == 1
    assert (model.predict_proba(X[~free]).max(axis=1) > 0.99).all()  # given labels are kept


def test_members_get_the_same_confidence():
    rng = np.random.default_rng(0)
    sure = rng.dirichlet(np.full(3, 0.3), 400)
    unsure = sure**0.1 / (sure**0.1).sum(axis=1, keepdims=True)
    first, second = equal_confidence([sure, unsure])
    assert first < 1 < second
    confidences = [
        sharpen(p, b, least=0.01).max(axis=1).mean() for p, b in ((sure, first), (unsure, second))
    ]
    assert confidences[0] == pytest.approx(confidences[1], abs=1e-3)
    assert np.mean([sure.max(axis=1).mean(), unsure.max(axis=1).mean()]) == pytest.approx(
        confidences[0], abs=0.02
    )
    np.testing.assert_array_equal(equal_confidence([sure]), [1.0])


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
