"""Held-out labels against predictions."""

from __future__ import annotations

import numpy as np

from gdpa import CommitteeClassifier
from gdpa.report import gather, render
from gdpa.report.evaluation import confusion, held_out_labels


def test_confusion_counts_held_out_labels(hostile):
    _, _, model = hostile
    checked = held_out_labels(model)
    counts = confusion(checked, 2)
    assert counts.sum() == 12
    for i in range(2):
        for j in range(2):
            assert counts[i, j] == ((checked.truth == i) & (checked.predicted == j)).sum()
    few = CommitteeClassifier(n_neighbors=2).fit([[0.0], [1], [5], [6]], [0, -1, -1, 1])
    assert held_out_labels(few) is None
    assert "too few labels" in render(gather(few, np.array([[0.0], [1], [5], [6]])))
