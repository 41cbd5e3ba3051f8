"""Metrics on held-out labels are those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from gdpa.evaluation import Evaluation, decide, error_costs
from gdpa.intervals import share_interval


def random_evaluation(seed: int, n_classes: int, n_labels: int = 60) -> Evaluation:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_labels)
    p = rng.dirichlet(np.ones(n_classes), n_labels)
    p[np.arange(n_labels), truth] += rng.random(n_labels)
    p = np.round(p / p.sum(axis=1, keepdims=True), 2)  # with ties
    p /= p.sum(axis=1, keepdims=True)
    classes = np.array([f"class {c}" for c in range(n_classes)])
    return Evaluation(
        classes=classes,
        rows=np.arange(n_labels),
        truth=truth,
        predicted=p.argmax(axis=1),
        probabilities=p,
        source="k-fold",
    )


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_metrics_are_those_of_scikit_learn(seed, n_classes):
    found = random_evaluation(seed, n_classes)
    truth = found.truth
    predicted = found.predicted
    p = found.probabilities
    assert found.accuracy.estimate == metrics.accuracy_score(truth, predicted)
    assert found.balanced_accuracy == pytest.approx(
        metrics.balanced_accuracy_score(truth, predicted)
    )
    labels = np.unique(truth)
    expected = metrics.precision_recall_fscore_support(
        truth, predicted, labels=labels, zero_division=0
    )
    ours = [(s.precision, s.recall, s.f1, s.n_labels) for s in found.per_class]
    np.testing.assert_allclose(np.array(ours).T, expected)
    np.testing.assert_array_equal(
        found.confusion, metrics.confusion_matrix(truth, predicted, labels=range(n_classes))
    )
    if n_classes == 2:
        area = metrics.roc_auc_score(truth, p[:, 1])
    else:
        area = metrics.roc_auc_score(truth, p, multi_class="ovr", labels=range(n_classes))
    assert found.auc == pytest.approx(area)
    assert found.log_loss == pytest.approx(metrics.log_loss(truth, p, labels=range(n_classes)))


def test_the_interval_is_that_of_a_proportion():
    found = random_evaluation(0, 3)
    right = int((found.truth == found.predicted).sum())
    accuracy = found.accuracy
    assert (accuracy.low, accuracy.high) == share_interval(right, 60, 0.95)
    assert accuracy.low < accuracy.estimate < accuracy.high
    assert accuracy.n_labels == 60


def test_classes_without_a_held_out_label_are_left_out_of_averages():
    found = Evaluation(
        classes=np.array(["a", "b", "c"]),
        rows=np.arange(2),
        truth=np.array([0, 1]),
        predicted=np.array([0, 1]),
        probabilities=np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]),
        source="k-fold",
    )
    assert [score.label for score in found.per_class] == ["a", "b"]
    assert found.balanced_accuracy == found.macro_f1 == found.macro_precision == 1.0


def test_one_class_has_no_area_under_the_curve():
    one = Evaluation(
        classes=np.array(["a", "b"]),
        rows=np.arange(2),
        truth=np.array([0, 0]),
        predicted=np.array([0, 1]),
        probabilities=np.array([[0.8, 0.2], [0.3, 0.7]]),
        source="k-fold",
    )
    assert one.auc is None
    assert "AUC" not in repr(one)


def test_text_and_card_show_the_same_numbers():
    found = random_evaluation(1, 3)
    assert str(found.accuracy) in repr(found)
    assert str(found.accuracy) in found._repr_html_()
    for score in found.per_class:
        assert f"{100 * score.f1:.1f} %" in repr(found)


def test_errors_of_ratings_are_counted_by_distance():
    truth = np.array([0, 1, 2, 3, 4, 4])
    predicted = np.array([0, 2, 2, 1, 0, 4])
    p = np.eye(5)[predicted]
    ratings = np.array(["1", "2", "3", "4", "5"])
    found = Evaluation(ratings, np.arange(6), truth, predicted, p, "k-fold")
    assert found.distances == [(0.0, 3), (1.0, 1), (2.0, 1), (4.0, 1)]
    assert ("mean distance", "1.167") in found.averages()
    words = Evaluation(np.array(list("abcde")), np.arange(6), truth, predicted, p, "k-fold")
    assert words.distances is None
    assert "mean distance" not in dict(words.averages())


def skewed(seed, n=400):
    """Calibrated probabilities of two classes, of which the second has a share of a tenth."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n) - 2.5
    share = 1.0 / (1.0 + np.exp(-score))
    truth = (rng.random(n) < share).astype(int)
    p = np.column_stack([1 - share, share])
    return Evaluation(np.array(["no", "yes"]), np.arange(n), truth, p.argmax(axis=1), p, "k-fold")


def test_decisions_for_a_metric_have_more_of_it():
    gains = {"balanced": [], "f1": []}
    for seed in range(8):
        found = skewed(seed)
        decided = found.decided_for("balanced")
        gains["balanced"].append(decided.balanced_accuracy - found.balanced_accuracy)
        gains["f1"].append(found.decided_for("f1").macro_f1 - found.macro_f1)
        assert decided.auc == found.auc
        assert found.decided_for("auc") is found
    assert np.mean(gains["balanced"]) > 0.05
    assert np.mean(gains["f1"]) > 0.02
    with pytest.raises(ValueError, match="metric='f2'"):
        skewed(0).decided_for("f2")


def test_the_costs_of_balanced_accuracy_divide_by_the_class_shares():
    found = skewed(1)
    shares = np.bincount(found.truth) / found.n_labels
    expected = (found.probabilities / shares).argmax(axis=1)
    np.testing.assert_array_equal(
        decide(found.probabilities, found.costs_for("balanced")), expected
    )


def test_decisions_have_the_least_expected_cost():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 50)
    costs = rng.random((4, 4))
    by_hand = [
        min(range(4), key=lambda j: sum(row[i] * costs[i, j] for i in range(4))) for row in p
    ]
    assert decide(p, costs).tolist() == by_hand
    np.testing.assert_array_equal(decide(p, error_costs(np.ones(4))), p.argmax(axis=1))
