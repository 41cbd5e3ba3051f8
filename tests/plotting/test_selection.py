"""The loss over the settings, as the classifier minimised it."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa
from gdpa.plotting import CommitteeDisplay, SelectionDisplay


def test_selection_repeats_the_loss_that_the_classifier_minimised(moons):
    """Two routes to one number: the eigen-decomposition of the tuning, and one system per pair."""
    _, _, model = moons
    display = SelectionDisplay.from_estimator(model)
    assert display.chosen[:2] == (model.self_loop_, model.label_weight_)
    assert display.chosen[2] == pytest.approx(model.tuning_.loss, abs=1e-4)
    assert display.losses.min() == pytest.approx(model.tuning_.loss, abs=1e-4)


def test_too_few_labels_to_leave_out_are_refused():
    X, _ = gdpa.datasets.moons(30, random_state=0)
    y = np.full(30, -1)
    y[:2] = [0, 1]
    model = gdpa.GraphClassifier().fit(X, y)
    with pytest.raises(ValueError, match="two labels"):
        SelectionDisplay.from_estimator(model)


def test_committee_bars_and_the_selection_of_its_graph():
    from sklearn.datasets import load_iris

    X, truth = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 8 == 0, truth, -1)
    model = gdpa.CommitteeClassifier().fit(X, y)
    shown = CommitteeDisplay.from_estimator(model)
    widths = sorted(bar.get_width() for bar in shown.ax_.patches)
    np.testing.assert_allclose(widths, np.sort(100 * model.committee_.weights))
    assert {t.get_text() for t in shown.ax_.get_yticklabels()} == set(model.committee_.names)
    star = SelectionDisplay.from_estimator(model).chosen
    assert star[0] == model.self_loop_
    one = gdpa.GraphClassifier().fit(X, y)
    with pytest.raises(ValueError, match="single graph"):
        CommitteeDisplay.from_estimator(one)
