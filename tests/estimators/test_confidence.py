"""Warnings of too much confidence: mean probability beside left-out accuracy."""

import warnings

import numpy as np
import pytest

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.errors import ConfidenceWarning
from gdpa.estimators.probabilities import Confidence, confidence_of


def test_sentences():
    fine = Confidence(0.8, 0.78, 0.05, 60, ())
    assert fine.sentences() == []
    assert Confidence(0.95, 0.71, 0.06, 60, (), of_sample=True).sentences() == []
    sure = Confidence(0.95, 0.71, 0.06, 60, ("a", "b"))
    said = sure.sentences()
    assert len(said) == 2
    assert "0.95" in said[0]
    assert "0.71 +- 0.06" in said[0]
    assert "'a', 'b'" in said[1]


def test_labels_that_say_nothing_are_warned_of():
    rng = np.random.default_rng(0)
    # Five tight clusters whose labels are dealt at random: neighbours agree, labels do not.
    X = np.repeat(np.arange(5), 40)[:, None] * 10.0 + rng.normal(size=(200, 3))
    labels = np.full(200, -1)
    known = rng.choice(200, 30, replace=False)
    labels[known] = np.arange(30) % 3
    with pytest.warns(ConfidenceWarning):
        model = GraphClassifier().fit(X, labels)
    found = confidence_of(model.ensemble_)
    assert found.n_left_out == 30
    assert found.accuracy < 0.6
    assert found.sentences()


def test_clear_classes_are_not():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 60)
    X = group[:, None] * 10.0 + rng.normal(size=(120, 3))
    labels = np.where(rng.random(120) < 0.3, group, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConfidenceWarning)
        for make in (CommitteeClassifier, GraphClassifier):
            model = make().fit(X, labels)
            found = confidence_of(model.ensemble_)
            assert found.accuracy == 1.0
            assert found.lost == ()


def test_nothing_to_say_without_left_out_labels():
    model = CommitteeClassifier().fit([[0.0], [1.0], [5.0], [6.0]], [0, -1, -1, 1])
    assert confidence_of(model.ensemble_) is None
