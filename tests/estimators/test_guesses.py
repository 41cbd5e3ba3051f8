"""Guesses: their weight is learned, wrong ones get none, and no label is evidence for itself."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa.estimators.guesses import (
    GuessColumn,
    as_guess_columns,
    combine,
    guess_evidence,
    guess_weights,
)


def sample(right, *, n=400, n_classes=4, seed=0):
    """Classes, guesses of which a share is right, and probabilities that are 70 % right."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    other = (y + rng.integers(1, n_classes, n)) % n_classes
    guess = np.where(rng.random(n) < right, y, other)
    model = np.where(rng.random(n) < 0.7, y, (y + 1) % n_classes)
    p = np.full((n, n_classes), 0.1)
    p[np.arange(n), model] = 0.7
    return y, guess, p


def learned(values, y, p, rows, confidence=None):
    column = GuessColumn("g", tuple(values), confidence)
    found = guess_evidence(column, rows, y[rows], p.shape[1])
    return found, guess_weights(p[rows], y[rows], [found.left_out])[0]


def test_good_guesses_help_whatever_their_names_are():
    y, guess, p = sample(0.9)
    rows = np.arange(60)
    names = np.array(["w", "x", "y", "z"])[(guess + 1) % 4]
    found, weight = learned(names, y, p, rows)
    assert weight >= 0.5
    rest = np.arange(60, 400)
    before = (p[rest].argmax(axis=1) == y[rest]).mean()
    after = (combine(p, weight * found.all_rows)[rest].argmax(axis=1) == y[rest]).mean()
    assert after > before + 0.1


@pytest.mark.parametrize("n_labels", [12, 40, 200])
def test_wrong_guesses_cost_next_to_nothing(n_labels):
    """Guesses that know nothing, guesses that are all the same, and one value per row."""
    losses = []
    for seed in range(20):
        y, guess, p = sample(0.25, seed=seed)
        rows = np.arange(n_labels)
        for values in (guess, np.zeros(400, int), np.arange(400)):
            found, weight = learned(values, y, p, rows)
            after = combine(p, weight * found.all_rows)
            rest = np.arange(n_labels, 400)
            right = [(q[rest].argmax(axis=1) == y[rest]).mean() for q in (p, after)]
            losses.append(right[0] - right[1])
    assert np.mean(losses) < 0.01


def test_a_label_is_no_evidence_for_itself():
    """One value per row would explain every label if it saw it."""
    y, _, p = sample(0.5)
    rows = np.arange(100)
    found, weight = learned(np.arange(400), y, p, rows)
    np.testing.assert_allclose(found.left_out, 0.0, atol=1e-12)
    assert weight == 0.0
    changed = y.copy()
    changed[7] = (y[7] + 1) % 4
    other, _ = learned(np.zeros(400, int), changed, p, rows)
    same, _ = learned(np.zeros(400, int), y, p, rows)
    counts = np.bincount(y[rows], minlength=4)
    assert counts.min() > 0
    # Row 7 without its label: the shares of the value do not depend on it, only those of all do.
    assert np.abs(other.left_out[7] - same.left_out[7]).max() < 0.1


def test_confidence_tells_good_guesses_from_bad_ones():
    rng = np.random.default_rng(3)
    y, _, p = sample(0.5, n=1500)
    sure = rng.random(1500)
    guess = np.where(rng.random(1500) < sure, y, (y + rng.integers(1, 4, 1500)) % 4)
    rows, rest = np.arange(300), np.arange(300, 1500)

    def accuracy(confidence):
        found, weight = learned(guess, y, p, rows, confidence)
        return (combine(p, weight * found.all_rows)[rest].argmax(axis=1) == y[rest]).mean()

    assert accuracy(sure) > accuracy(None) + 0.02


def test_missing_guesses_change_nothing():
    y, guess, p = sample(0.9)
    values = [None if row % 2 else int(g) for row, g in enumerate(guess)]
    found, weight = learned(values, y, p, np.arange(80))
    assert weight > 0
    np.testing.assert_array_equal(found.all_rows[1::2], 0.0)
    assert np.abs(found.all_rows[0::2]).max() > 0.1


def test_guesses_come_as_frames_mappings_and_lists():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"llm": ["a", None, "b"], "rule": ["", "a", float("nan")]})
    columns = as_guess_columns(frame, 3)
    assert [c.name for c in columns] == ["llm", "rule"]
    assert [c.values for c in columns] == [("a", None, "b"), (None, "a", None)]
    assert as_guess_columns({"llm": ["a", None, "b"]}, 3)[0] == columns[0]
    assert as_guess_columns(["a", None, "b"], 3)[0].values == columns[0].values
    assert as_guess_columns(None, 3) == as_guess_columns((), 3) == ()
    with pytest.raises(ValueError, match="3 values for 4 rows"):
        as_guess_columns(frame, 4)
