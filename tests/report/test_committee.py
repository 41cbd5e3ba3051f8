"""Who decides, in the report: members by weight, columns by what their features add up to."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_iris

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.report.committee import cautions, committee_card, committee_section


@pytest.fixture(scope="module")
def model():
    X, truth = load_iris(return_X_y=True)
    return CommitteeClassifier().fit(X, np.where(np.arange(150) % 6 == 0, truth, -1))


@dataclass(frozen=True)
class Plan:
    name: str
    n_features: int


def test_members_by_weight_and_columns_by_importance(model):
    card = committee_card(model, [Plan("sepal", 2), Plan("left out", 0), Plan("petal", 2)])
    assert list(card.weights) == sorted(card.weights, reverse=True)
    assert card.columns == ("petal", "sepal")
    assert card.importances[0] == pytest.approx(model.feature_importances_[2:].sum())
    assert sum(card.importances) == pytest.approx(1.0)
    plain = committee_card(model)
    assert set(plain.columns) == {f"column {j}" for j in (1, 2, 3, 4)}
    html = committee_section(card)
    for name in card.names:
        assert f">{name}<" in html
    assert "petal" in html


def test_hostile_names_are_escaped(model):
    html = committee_section(committee_card(model, [Plan("<b>", 1), Plan("x", 3)]))
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


def test_one_graph_and_cautions(model):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(80, 3)), np.where(np.arange(80) < 40, rng.integers(0, 3, 80), -1)
    with pytest.warns(UserWarning, match="held-out"):
        noise = GraphClassifier().fit(X, labels)
    assert committee_card(noise) is None
    assert "One graph" in committee_section(None)
    said = cautions(noise)
    assert said
    assert all(s.endswith(".") and s[0].isupper() for s in said)
    assert cautions(model) == ()
