"""The loss over the settings, as the classifier minimised it."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa
from gdpa.plotting import SelectionDisplay


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
