"""The content of a report, gathered from a fitted classifier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_iris

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.report import gather, render


@dataclass(frozen=True)
class Plan:
    """A column as the encoder describes it."""

    name: str
    n_features: int
    missing: int = 0
    content: str = ""

    def done(self):
        return "number"


def test_agreement_along_edges_by_definition():
    W = np.array([[0, 3.0, 1, 0], [3, 0, 0, 1], [1, 0, 0, 2], [0, 1, 2, 0]])
    model = GraphClassifier(graph="precomputed", unlabeled=None)
    model.fit(W, np.array(["a", "a", "b", "b"], dtype=object))
    graph = gather(model, None).graph
    assert graph.agreement == pytest.approx(5 / 7)  # weights 3 + 2 within, 1 + 1 across
    assert graph.predicted_agreement == pytest.approx(5 / 7)
    assert graph.chance == pytest.approx(0.5)
    assert (graph.n_components, graph.isolated) == (1, 0)


def test_models_by_weight_and_columns_by_importance():
    X, truth = load_iris(return_X_y=True)
    model = CommitteeClassifier().fit(X, np.where(np.arange(150) % 6 == 0, truth, -1))
    data = gather(model, X, columns=[Plan("sepal", 2), Plan("unused", 0), Plan("<b>", 2)])
    card = data.committee
    assert list(card.weights) == sorted(card.weights, reverse=True)
    assert card.columns == ("<b>", "sepal")
    assert card.importances[0] == pytest.approx(model.feature_importances_[2:].sum())
    assert sum(card.importances) == pytest.approx(1.0)
    assert data.cautions == ()
    html = render(data)
    for name in card.names:
        assert f">{name}<" in html
    assert ">sepal<" in html
    assert "&lt;b&gt;" in html
    assert set(gather(model, X).committee.columns) == {f"column {j}" for j in (1, 2, 3, 4)}
