"""Calibration, class priors, and which samples to ask for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import log_loss

from gdpa import CommitteeClassifier
from gdpa.estimators.class_shares import estimate_class_shares, shift_evidence
from gdpa.estimators.probabilities import (
    fit_sharpness,
    match_masses,
    sharpen,
    to_shares,
)

positive = arrays(np.float64, (8, 3), elements=st.floats(0, 1))


@given(positive)
def test_shares_are_a_distribution(scores):
    prior = np.array([0.5, 0.3, 0.2])
    q = to_shares(scores, prior)
    np.testing.assert_allclose(q.sum(axis=1), 1)
    assert (q >= 0).all()
    for row, share in zip(scores, q, strict=True):
        if row.max() > 0:
            assert share[row.argmax()] == share.max()
        else:
            np.testing.assert_allclose(share, prior)


@given(positive, st.floats(0.1, 20))
def test_sharpening_keeps_the_order(scores, beta):
    q = to_shares(scores, np.full(3, 1 / 3))
    p = sharpen(q, beta)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p > 0).all()
    for i in range(8):
        assert p[i, q[i].argmax()] == p[i].max()
    np.testing.assert_allclose(sharpen(np.full((1, 3), 1 / 3), beta), 1 / 3)


def test_sharpness_minimises_the_log_loss():
    rng = np.random.default_rng(0)
    q = rng.dirichlet([2.0, 2.0, 2.0], 4000)
    p = sharpen(q, 3.0)
    codes = np.array([rng.choice(3, p=row) for row in p], dtype=np.int32)
    assert fit_sharpness(q, codes) == pytest.approx(3.0, rel=0.1)
    assert fit_sharpness(q[:5], codes[:5]) == 1.0
    assert fit_sharpness(None, codes) == 1.0


def test_calibration_on_left_out_labels_improves_the_log_loss_elsewhere():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:500], truth[:500]
    y = np.where(np.arange(500) % 5 == 0, truth, -1)
    model = CommitteeClassifier(n_neighbors=10).fit(X, y)
    free = y < 0
    plain = log_loss(truth[free], model.label_scores_[free])
    assert log_loss(truth[free], model.predict_proba(X)[free]) < 0.9 * plain


@given(arrays(np.float64, (30, 3), elements=st.floats(0.01, 1)))
def test_masses_match_the_prior(raw):
    p = raw / raw.sum(axis=1, keepdims=True)
    prior = np.array([0.6, 0.3, 0.1])
    offset = match_masses(p, prior)
    shifted = sharpen(p, 1.0, offset)
    np.testing.assert_allclose(shifted.mean(axis=0), prior, atol=1e-6)
    assert offset.mean() == pytest.approx(0, abs=1e-9)


def test_class_prior_moves_the_thresholds():
    X, truth = make_blobs([150, 50], centers=[[0, 0], [2.2, 0]], random_state=0)
    known = np.concatenate([np.flatnonzero(truth == c)[:15] for c in (0, 1)])
    y = np.full(200, -1)  # the labels say half and half
    y[known] = truth[known]
    free = y < 0
    model = CommitteeClassifier(class_prior=[0.8, 0.2]).fit(X, y)
    p = model.ensemble_.probabilities()[free]
    np.testing.assert_allclose(p.mean(axis=0), [0.8, 0.2], atol=1e-6)
    plain = CommitteeClassifier().fit(X, y)
    assert (model.transduction_[free] == 1).sum() < (plain.transduction_[free] == 1).sum()
    labelled = CommitteeClassifier(class_prior="labeled").fit(X, y)
    shares = np.bincount(y[~free]) / (~free).sum()
    mass = labelled.ensemble_.probabilities()[free].mean(axis=0)
    np.testing.assert_allclose(mass, shares, atol=1e-6)
    assert (model.predict(X[free]) == model.transduction_[free]).all()


def overlapping(share, n_labels, seed=0):
    """Two overlapping classes, one with this share, and as many labels of each."""
    rng = np.random.default_rng(seed)
    y = (np.arange(1500) < share * 1500).astype(int)
    X = rng.normal(size=(1500, 4)) + 1.2 * y[:, None]
    labels = np.full(y.size, -1)
    for c in range(2):
        labels[rng.choice(np.flatnonzero(y == c), n_labels, replace=False)] = c
    return X, y, labels


def test_class_shares_are_estimated_where_equal_counts_hide_them():
    X, y, labels = overlapping(0.85, 25)
    model = CommitteeClassifier(n_jobs=1).fit(X, labels)
    ensemble, free = model.ensemble_, labels < 0
    plain = ensemble.shares.argmax(axis=1)
    assert ensemble.offset[1] > ensemble.offset[0]
    assert (model.transduction_ == y)[free].mean() > (plain == y)[free].mean()
    np.testing.assert_allclose(model.class_shares_, ensemble.probabilities().mean(axis=0))
    assert model.class_shares_[1] > sharpen(ensemble.shares, ensemble.sharpness).mean(axis=0)[1]


def test_class_shares_are_not_estimated_from_unequal_labels():
    X, _, labels = overlapping(0.85, 25)
    labels[np.flatnonzero(labels == 0)[:2]] = -1
    assert not CommitteeClassifier(n_jobs=1).fit(X, labels).ensemble_.offset.any()


def test_no_class_is_shifted_without_evidence():
    """The labels have the shares of the samples, or the features say nothing about the classes."""
    X, _, labels = overlapping(0.5, 25)
    noise = np.random.default_rng(5).normal(size=X.shape)
    shifts = [
        np.abs(CommitteeClassifier(n_jobs=1).fit(rows, y).ensemble_.offset).max()
        for rows, y in ((X, labels), (noise, overlapping(0.85, 25)[2]))
    ]
    X, _, labels = overlapping(0.85, 25)
    shift = np.abs(CommitteeClassifier(n_jobs=1).fit(X, labels).ensemble_.offset).max()
    assert max(shifts) < 0.25 * shift


def mean_evidence(share, per_class, skill, n_draws=40):
    """Evidence of a shift from posteriors for equal shares of two Gaussian classes."""
    found = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        codes = np.repeat([0, 1], per_class)
        truth = (rng.random(2_000) < share).astype(int)
        parts = []
        for y in (truth, codes):
            p = 1.0 / (1.0 + np.exp(-2.0 * skill * (skill * (2 * y - 1) + rng.normal(size=y.size))))
            parts.append(np.column_stack([1.0 - p, p]))
        found.append(shift_evidence(*parts, codes))
    return float(np.mean(found))


@pytest.mark.parametrize("per_class", [5, 20])
def test_evidence_of_a_shift_is_in_units_of_the_noise(per_class):
    """Without a shift its mean is about k - 1 = 1; it grows with the labels and with the skill."""
    assert mean_evidence(0.5, per_class, 1.0) == pytest.approx(1.0, abs=0.8)
    assert mean_evidence(0.1, per_class, 0.05) < 3.0
    assert mean_evidence(0.1, per_class, 1.0) > 5.0
    assert mean_evidence(0.1, 4 * per_class, 1.0) > 2.0 * mean_evidence(0.1, per_class, 1.0)


def test_estimated_shares_lie_between_the_labels_and_the_samples():
    prior = np.full(3, 1 / 3)
    p = np.repeat([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]], [700, 200, 100], 0)
    shares = estimate_class_shares(p, prior)
    assert shares.sum() == pytest.approx(1.0)
    assert 0.5 < shares[0] < 0.7
    assert 0.1 < shares[2] < 1 / 3
    np.testing.assert_allclose(estimate_class_shares(p[:0], prior), prior)
