"""Lower probabilities to what the agreement of members supports, if no label can be held out.

Without held-out labels nothing calibrates the members, and they are overconfident: the same few
labels may mislead all of them. Therefore the combined probabilities p of k classes are mixed with
equal ones,

    trust p + (1 - trust) / k,

so that their mean confidence does not exceed what the agreement of the members supports, and no
probability exceeds :data:`MOST_CONFIDENCE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ..arrays import FloatArray, NDArray

# Ratio of accuracy beyond chance to agreement beyond chance. Chosen on 16 tables and digits with
# one to three labels per class.
AGREEMENT_PART = 0.7
# Below the default threshold for confident predictions in reports, because with two classes members
# often agree on the wrong one.
MOST_CONFIDENCE = 0.74
LEAST_VOTE = 0.1  # minimum weight of a member in the agreement


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
