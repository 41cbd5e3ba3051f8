"""The content of a report, gathered from a fitted classifier."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.estimators import GraphOptions
from gdpa.report import gather, render
from gdpa.report.evaluation import Baselines, Rival


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
    y = np.where(np.arange(150) % 6 == 0, truth, -1)
    frame = dict(zip(("long", "wide", "<b>", "petal"), X.T, strict=True))
    frame["colour"] = np.array(["red", "green", "blue"])[np.arange(150) % 3]
    frame["same"] = np.zeros(150)
    model = CommitteeClassifier().fit(frame, y)
    # One value per input column, whatever it was encoded as; none for one that is left out.
    assert model.columns_.n_features > len(frame)
    assert model.feature_importances_.shape == model.feature_names_in_.shape == (6,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[5] == 0.0
    data = gather(model, None, columns=model.columns_)
    card = data.committee
    assert list(card.weights) == sorted(card.weights, reverse=True)
    assert set(card.columns[:2]) == {"<b>", "petal"}
    assert data.cautions == ()
    html = render(data)
    for name in card.names:
        assert f">{name}<" in html
    assert ">petal<" in html
    assert "&lt;b&gt;" in html
    array = CommitteeClassifier(options=GraphOptions(rescale="minmax"))
    array.fit(np.column_stack([X, np.zeros(150)]), y)
    assert array.feature_importances_.shape == (5,)
    assert set(gather(array, None).committee.columns) == {f"column {j}" for j in range(1, 6)}


@pytest.mark.parametrize(
    ("better", "worse", "words"),
    [(3, 0, "no clear"), (4, 1, "no clear"), (9, 0, "gdpa is"), (1, 12, "logistic regression is")],
)
def test_a_small_lead_is_no_verdict(better, worse, words):
    lead = (better - worse) / 15
    rival = Rival("logistic regression", 0.6, better, worse)
    found = Baselines(0.6 + lead, 0.1, (rival,), 15)
    assert found.verdict.startswith(words)
