"""Held-out labels against predictions."""

from __future__ import annotations

import numpy as np

from gdpa import CommitteeClassifier
from gdpa.report import gather, render
from gdpa.report.evaluation import Baselines, Rival, baselines


def test_the_page_counts_held_out_labels(hostile):
    text, _, model = hostile
    checked = model.evaluate()
    assert checked.truth.size == checked.predicted.size == 12
    right = int((checked.truth == checked.predicted).sum())
    assert f"{right} of 12 predictions were correct" in text
    few = CommitteeClassifier(n_neighbors=2).fit([[0.0], [1], [5], [6]], [0, -1, -1, 1])
    assert few.accuracy_ is None
    assert "Accuracy: unknown" in render(gather(few, np.array([[0.0], [1], [5], [6]])))


def labelled(n_labels, n_classes=2, seed=0, n=150):
    """Rows with one telling column, and a class that has one label only."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    X = np.column_stack([truth + 0.4 * rng.normal(size=n), rng.normal(size=(n, 3))])
    y = np.where(np.arange(n) < n_labels, truth, -1)
    return X, y


def test_all_are_compared_on_the_labels_of_the_headline():
    X, y = labelled(60, 3)
    y[0] = 7  # the only label of its class: wrong for everybody
    model = CommitteeClassifier(random_state=0).fit(X, y)
    checked = model.evaluate()
    found = baselines(model, X)
    assert found.ours == checked.accuracy.estimate
    assert found.n_labels == checked.truth.size
    assert [rival.name for rival in found.rivals] == [
        "logistic regression", "random forest", "gradient boosting",
    ]  # fmt: skip
    right = round(found.ours * found.n_labels)
    for rival in found.rivals:
        assert rival.better - rival.worse == right - round(rival.accuracy * found.n_labels)
        assert rival.accuracy <= 1.0 - (7 in y[checked.rows]) / found.n_labels
    assert "gdpa" in found.plain()["words"]


def test_predictions_of_others_have_not_seen_the_label():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 4)), rng.integers(0, 2, 120)
    model = CommitteeClassifier(random_state=0).fit(np.vstack([X, X]), np.append(y, [-1] * 120))
    found = baselines(model, np.vstack([X, X]))
    assert all(rival.accuracy < 0.68 for rival in found.rivals)  # chance; a leak gives 1


def test_the_sentence_says_when_another_is_better():
    ahead = Rival("random forest", 0.9, better=2, worse=30)
    behind = Rival("logistic regression", 0.5, better=30, worse=2)
    equal = Rival("gradient boosting", 0.72, better=10, worse=12)
    assert Baselines(0.7, 0.4, (ahead, behind), 100).verdict == (
        "random forest is more accurate than gdpa here"
    )
    assert "are more accurate" in Baselines(0.7, 0.4, (ahead, ahead), 100).verdict
    assert "is best, but" in Baselines(0.7, 0.4, (equal, behind), 100).verdict
    assert Baselines(0.7, 0.4, (behind,), 100).verdict == "gdpa is more accurate than all of them"
    assert "none is better" in Baselines(0.3, 0.6, (behind,), 100).verdict
