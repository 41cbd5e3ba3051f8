"""Probabilities where there are too few labels to hold any out: what agreement of members supports.

Nothing calibrates the members there, and they are too sure: they share the few labels, which may
mislead them all. So the combined probabilities p of k classes are mixed with equal ones,

    trust p + (1 - trust) / k,

such that their mean confidence is no larger than the agreement of the members supports, and no
probability passes :data:`MOST_CONFIDENCE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Part of the agreement beyond chance that is accuracy beyond chance: 0.7 in the mean over 16 tables
# and digits with one to three labels a class (two draws each, where none could be held out).
AGREEMENT_PART = 0.7
# Less than what reports call sure by default: of two classes members often agree and are wrong.
MOST_CONFIDENCE = 0.74
LEAST_VOTE = 0.1  # members with less weight count so much in the agreement


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
    """Return the part of the combined probabilities that the agreement of members supports.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Combined probabilities of unlabelled samples.
    labelings : sequence of ndarray of int of shape (n_samples,)
        Labels by each member.
    weights : ndarray of shape (n_members,)
        Weights of the members.

    Returns
    -------
    float
        Between 0 and 1; 1 without samples or with one class.
    """
    n, k = probabilities.shape
    if n == 0 or k < 2:
        return 1.0
    beyond_chance = float(probabilities.max(axis=1).mean()) - 1.0 / k
    supported = AGREEMENT_PART * max(mean_agreement(labelings, weights) - 1.0 / k, 0.0)
    most = max(MOST_CONFIDENCE - 1.0 / k, 0.0) / (1.0 - 1.0 / k)
    return float(min(most, supported / beyond_chance)) if beyond_chance > 0 else float(most)
