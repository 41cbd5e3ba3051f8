"""CommitteeDisplay: bars are weights; a single graph has none to show."""

import numpy as np
import pytest

import gdpa
from gdpa.plotting import CommitteeDisplay, SelectionDisplay


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
    with pytest.raises(ValueError, match="weights has shape"):
        CommitteeDisplay(["a", "b"], [1.0])
