"""Held-out labels against predictions."""

from __future__ import annotations

import numpy as np

from gdpa import CommitteeClassifier
from gdpa.report import gather, render
from gdpa.report.evaluation import held_out_labels


def test_the_page_counts_held_out_labels(hostile):
    text, _, model = hostile
    checked = held_out_labels(model)
    assert checked.truth.size == checked.predicted.size == 12
    right = int((checked.truth == checked.predicted).sum())
    assert f"{right} of 12 predictions were correct" in text
    few = CommitteeClassifier(n_neighbors=2).fit([[0.0], [1], [5], [6]], [0, -1, -1, 1])
    assert held_out_labels(few) is None
    assert "Accuracy: unknown" in render(gather(few, np.array([[0.0], [1], [5], [6]])))
