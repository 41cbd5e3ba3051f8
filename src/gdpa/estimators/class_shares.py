"""Class shares of the unlabelled samples, if the labels do not show them.

Labels that were drawn class by class have equal counts, whatever the shares of the classes. The
probabilities then assume equal shares. Expectation-maximisation estimates the true ones from the
unlabelled samples: it repeats

    p ~ P (shares / labelled)^t,   shares = (mean of p + a labelled) / (1 + a)

with the probabilities P and the shares of the labels. The temperature t below 1 and the weight a of
the prior keep errors of P from being amplified. The log-probabilities of the classes are shifted by
``t log(shares / labelled)``.

The step relies on calibrated probabilities, so it is left out unless every class has several
held-out labels (:func:`labels_hide_shares`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, NDArray


@dataclass(frozen=True)
class ShareRule:
    """When and how far class shares are estimated.

    Parameters
    ----------
    fewest_labels : int
        Labels that every class must have. Chosen on 16 tables with 5 and 20 labels per class,
        leaving one out at a time.
    temper : float
        t.
    prior_weight : float
        a, relative to all unlabelled samples.
    """

    fewest_labels: int = 20
    temper: float = 0.5
    prior_weight: float = 0.3


DEFAULT_RULE = ShareRule()


def labels_hide_shares(counts: NDArray[np.integer], rule: ShareRule = DEFAULT_RULE) -> bool:
    """Return whether labels were apparently drawn class by class, and are enough to calibrate.

    Parameters
    ----------
    counts : ndarray of int of shape (n_classes,)
        Number of labels of each class.
    rule : ShareRule, optional
        How many labels a class must have.
    """
    return bool(counts.min() >= rule.fewest_labels and counts.max() - counts.min() <= 1)


def estimate_class_shares(
    probabilities: FloatArray,
    labelled: FloatArray,
    *,
    rule: ShareRule = DEFAULT_RULE,
    max_iter: int = 50,
    max_rows: int = 20_000,
) -> FloatArray:
    """Estimate the class shares of samples from probabilities that assume other shares.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        P, rows that add up to 1; an even subsample of at most `max_rows` is used.
    labelled : ndarray of shape (n_classes,)
        Positive shares of the labels.
    rule : ShareRule, optional
        Temperature and weight of the prior.
    max_iter : int, default=50
        Maximum number of rounds.
    max_rows : int, default=20000
        Maximum number of rows.
    """
    step = -(-probabilities.shape[0] // max_rows) or 1
    P = probabilities[::step]
    shares = labelled
    for _ in range(max_iter if P.shape[0] else 0):
        p = P * (shares / labelled) ** rule.temper
        mean = (p / p.sum(axis=1, keepdims=True)).mean(axis=0)
        before = shares
        shares = (mean + rule.prior_weight * labelled) / (1.0 + rule.prior_weight)
        if np.abs(shares - before).max() < 1e-9:
            break
    return shares


def class_offset(
    probabilities: FloatArray, counts: NDArray[np.integer], rule: ShareRule = DEFAULT_RULE
) -> FloatArray:
    """Return the shift of the classes' log-probabilities; zeros if the guard does not hold.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Calibrated probabilities of the unlabelled samples.
    counts : ndarray of int of shape (n_classes,)
        Number of labels of each class.
    rule : ShareRule, optional
        When and how far shares are estimated.
    """
    if not labels_hide_shares(counts, rule):
        return np.zeros(counts.size)
    labelled = counts / counts.sum()
    estimated = estimate_class_shares(probabilities, labelled, rule=rule)
    return np.asarray(rule.temper * np.log(estimated / labelled))
