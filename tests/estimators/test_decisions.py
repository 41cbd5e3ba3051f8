"""Predictions decided for balanced accuracy or by costs, on a class that is rare."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa import CommitteeClassifier
from gdpa.evaluation import decide


@pytest.fixture(scope="module")
def rare():
    """Two overlapping groups; one row in eight is of the second."""
    rng = np.random.default_rng(0)
    y = (np.arange(480) % 8 == 0).astype(int)
    X = rng.normal(size=(480, 2)) + 1.2 * y[:, None]
    known = np.arange(480) < 240
    return X, y, np.where(known, y, -1), known


def recalls(model, y, known):
    found = model.transduction_[~known]
    return [float((found == c)[y[~known] == c].mean()) for c in (0, 1)]


def test_balanced_decisions_find_more_of_the_rare_class(rare, tmp_path):
    X, y, labels, known = rare
    model = CommitteeClassifier().fit(X, labels)
    before = model.evaluate()
    P = model.predict_proba(X)
    plain = recalls(model, y, known)
    assert model.decide_by("balanced") is model
    balanced = recalls(model, y, known)
    assert np.mean(balanced) > np.mean(plain) + 0.05
    found = model.evaluate()
    assert found.balanced_accuracy > before.balanced_accuracy + 0.05
    # Held-out labels are decided by costs that other labels chose, so the estimate holds.
    assert abs(found.balanced_accuracy - np.mean(balanced)) < 0.12
    assert found.auc == before.auc
    np.testing.assert_array_equal(model.predict_proba(X), P)
    np.testing.assert_array_equal(model.predict(X[~known]), model.transduction_[~known])
    assert (model.transduction_[known] == y[known]).all()
    again = CommitteeClassifier.load(model.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert repr(again) == repr(model)
    assert again.extra_ == {}
    model.add_labels([300], [1])
    assert model.metric_ == "balanced"
    model.decide_by("accuracy")
    assert recalls(model, y, known)[1] <= balanced[1]
    assert CommitteeClassifier().fit(X, labels).costs_ is None


def test_costs_are_expected_costs(rare):
    X, _, labels, known = rare
    costs = np.array([[0.0, 1.0], [9.0, 0.0]])
    model = CommitteeClassifier().fit(X, labels).decide_by(costs=costs)
    expected = decide(model.predict_proba(X[~known]), costs)
    np.testing.assert_array_equal(model.predict(X[~known]), expected)
    with pytest.raises(ValueError, match=r"costs must be non-negative numbers of shape \(2, 2\)"):
        model.decide_by(costs=[1.0, 2.0])
    with pytest.raises(ValueError, match="metric='f2'"):
        model.decide_by("f2")
    model.fit(X, labels)
    assert model.costs_ is None
