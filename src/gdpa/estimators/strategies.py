r"""Strategies that choose the rows to label next, independent of models and sessions.

The default strategy draws candidate rows at random and takes the one with the largest product of
the variance that the labels leave (:mod:`gdpa.estimators.sketch`) and the squared uncertainty:

    C_ii (1 - lead_i)^2,        lead = largest probability minus the second largest.

Random candidates avoid a bias: the best of *all* rows is often an outlier or a hub of the graph,
and on some tables one class has all the hubs. The best of fifty keeps the class shares near those
of the data and prefers dense regions. Within a batch each choice conditions the next ones, so that
no two rows are redundant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from .sketch import Conditioned

# Candidates per row to label, and exponent of the uncertainty. Chosen on digits and six tables of
# 1,500 rows (optdigits, segment, texture, letter, splice, chess).
CANDIDATES = 50
POWER = 2.0
# A component without a label comes first if it has at least this share of the rows. Smaller ones
# are often a handful of duplicates.
COMPONENT_SHARE = 0.01


def lead(probabilities: FloatArray) -> FloatArray:
    """Return the lead of the most probable class over the second; 0 with fewer than two classes."""
    if probabilities.shape[1] < 2:
        return np.zeros(probabilities.shape[0])
    top = np.partition(probabilities, -2, axis=1)
    return np.clip(top[:, -1] - top[:, -2], 0.0, 1.0)


def unlabeled_component(
    components: NDArray[np.intp], known: NDArray[np.intp], free: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the rows of `free` in the largest component without a label, or all if it is small.

    Parameters
    ----------
    components : ndarray of int of shape (n_rows,)
        Component of each row.
    known : ndarray of int
        Labelled rows.
    free : ndarray of int
        Candidate rows.
    """
    if not components.size:
        return free
    size = np.bincount(components)
    size[components[known]] = 0
    open_size = size * (np.bincount(components[free], minlength=size.size) > 0)
    largest = int(np.argmax(open_size))
    if open_size[largest] < max(2, COMPONENT_SHARE * components.size):
        return free
    return np.asarray(free[components[free] == largest])


def choose_informative(
    field: Conditioned,
    components: NDArray[np.intp],
    known: NDArray[np.intp],
    free: NDArray[np.intp],
    doubt: FloatArray,
    n: int,
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """Choose rows by the remaining variance times the uncertainty, best first.

    Parameters
    ----------
    field : Conditioned
        The field given the labels.
    components : ndarray of int of shape (n_sampled,)
        Component of each row; large ones without a label come first.
    known : ndarray of int
        Labelled rows of the sample.
    free : ndarray of int
        Rows of the sample to choose from.
    doubt : ndarray of shape (n_sampled,)
        Uncertainty between 0 and 1; all 1 before the first label.
    n : int
        Maximum number of rows.
    rng : numpy.random.Generator
        Draws the candidates.
    """
    chosen: list[int] = []
    doubt = np.maximum(doubt, 1e-3)  # where all predictions are confident, the variance decides
    while len(chosen) < n and free.size:
        taken = np.concatenate([known, np.array(chosen, dtype=np.intp)])
        pool = unlabeled_component(components, taken, free)
        few = pool if pool.size <= CANDIDATES else np.sort(rng.choice(pool, CANDIDATES, False))
        value = field.variances(few) * doubt[few] ** POWER
        pick = int(few[np.argmax(value)])
        chosen.append(pick)
        free = free[free != pick]
        if len(chosen) < n:
            # The answer for this row also reduces the uncertainty of correlated rows.
            doubt = doubt * (1.0 - field.correlations(pick))
            field = field.condition_on(pick)
    return np.array(chosen, dtype=np.intp)


def representatives(points: Any, n: int, *, seed: int = 0) -> NDArray[np.intp]:
    """Return at most `n` rows, the nearest to each k-means centre, large clusters first."""
    from sklearn.cluster import KMeans

    n = min(n, points.shape[0])
    means = KMeans(n, n_init=1, random_state=seed).fit(points)
    distance = means.transform(points)
    size = np.bincount(means.labels_, minlength=n)
    chosen = []
    for cluster in np.argsort(-size, kind="stable"):
        members = np.flatnonzero(means.labels_ == cluster)
        if members.size:
            chosen.append(members[np.argmin(distance[members, cluster])])
    return np.array(chosen, dtype=np.intp)
