"""Confidence of members and of the committee, if no label can be held out.

Without held-out labels nothing calibrates the members. Scores that decay with the distance to a
label are nearly equal far from it, while other members are sure of everything. So all members get
the same mean confidence before they are averaged (:func:`equal_confidence`).

Together they are overconfident, because the same few labels may mislead all of them. Therefore the
combined probabilities p of k classes are mixed with equal ones,

    trust p + (1 - trust) / k,

so that their mean confidence does not exceed what the agreement of the members supports, and no
probability exceeds :data:`MOST_CONFIDENCE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ..arrays import FloatArray, NDArray
from .probabilities import LEAST_SHARE, sharpen

# Ratio of accuracy beyond chance to agreement beyond chance. Chosen on 16 tables and digits with
# one to three labels per class.
AGREEMENT_PART = 0.7
# Below the default threshold for confident predictions in reports, because with two classes members
# often agree on the wrong one.
MOST_CONFIDENCE = 0.74
LEAST_VOTE = 0.1  # minimum weight of a member in the agreement
# Rows from which the confidence of a member is computed, and its largest sharpness.
CONFIDENCE_ROWS = 5_000
MOST_SHARPNESS = 64.0


def equal_confidence(shares: Sequence[FloatArray]) -> FloatArray:
    """Return the sharpness of each member at which all have the same mean confidence.

    Parameters
    ----------
    shares : sequence of ndarray of shape (n_samples, n_classes)
        Shares of the members for the same unlabelled samples.

    Returns
    -------
    ndarray of shape (n_members,)
        Exponents; the common confidence is the mean of the members'.
    """
    n, k = shares[0].shape
    if n == 0 or k < 2 or len(shares) < 2:
        return np.ones(len(shares))
    step = -(-n // CONFIDENCE_ROWS)
    few = [p[::step] for p in shares]
    limit = float(np.log(MOST_SHARPNESS))

    def confidence(p: FloatArray, log_beta: float) -> float:
        return float(sharpen(p, float(np.exp(log_beta)), least=LEAST_SHARE).max(axis=1).mean())

    target = float(np.mean([confidence(p, 0.0) for p in few]))
    found = []
    for p in few:
        low = -limit
        high = limit
        for _ in range(30):  # the confidence grows with the sharpness
            middle = 0.5 * (low + high)
            if confidence(p, middle) < target:
                low = middle
            else:
                high = middle
        found.append(np.exp(0.5 * (low + high)))
    return np.array(found)


def mean_agreement(labelings: Sequence[NDArray[np.integer]], weights: FloatArray) -> float:
    """Return the mean share of samples on which two members agree; 1 with a single member."""
    votes = np.maximum(weights, LEAST_VOTE)
    total = agreed = 0.0
    for i, j in combinations(range(len(labelings)), 2):
        pair = float(votes[i] * votes[j])
        total += pair
        agreed += pair * float((labelings[i] == labelings[j]).mean())
    return agreed / total if total > 0 else 1.0


def supported_trust(
    probabilities: FloatArray, labelings: Sequence[NDArray[np.integer]], weights: FloatArray
) -> float:
    """Return the weight of the combined probabilities that the agreement of members supports.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Combined probabilities of unlabelled samples.
    labelings : sequence of ndarray of int of shape (n_samples,)
        Labels predicted by each member.
    weights : ndarray of shape (n_members,)
        Weights of the members.
    """
    n, k = probabilities.shape
    if n == 0 or k < 2:
        return 1.0
    beyond_chance = float(probabilities.max(axis=1).mean()) - 1.0 / k
    supported = AGREEMENT_PART * max(mean_agreement(labelings, weights) - 1.0 / k, 0.0)
    most = max(MOST_CONFIDENCE - 1.0 / k, 0.0) / (1.0 - 1.0 / k)
    return float(min(most, supported / beyond_chance)) if beyond_chance > 0 else float(most)
