"""What a report gathers about a fitted classifier."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa import GraphClassifier
from gdpa.report import gather


def test_agreement_along_edges_by_definition():
    W = np.array([[0, 3.0, 1, 0], [3, 0, 0, 1], [1, 0, 0, 2], [0, 1, 2, 0]])
    model = GraphClassifier(graph="precomputed", unlabeled=None)
    model.fit(W, np.array(["a", "a", "b", "b"], dtype=object))
    graph = gather(model, None).graph
    assert graph.agreement == pytest.approx(5 / 7)  # weights 3 + 2 within, 1 + 1 across
    assert graph.predicted_agreement == pytest.approx(5 / 7)
    assert graph.chance == pytest.approx(0.5)
    assert (graph.n_components, graph.isolated) == (1, 0)
