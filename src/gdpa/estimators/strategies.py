r"""How questions are chosen, as functions of what is known: no model, no session.

The default weighs, for some rows drawn at random, how much of the row's variance the labels so far
have left (:mod:`gdpa.estimators.sketch`), times how much the classifiers doubt the row:

    C_ii (1 - lead_i)^2,        lead = first probability minus the second.

Drawing the candidates at random is what keeps it honest: the best of *all* rows is an outlier or a
hub of the graph, and on some tables one class has all the hubs. The best of fifty keeps the
classes' shares near those of the data, prefers dense regions, and loses little. Within a batch each
choice conditions the next ones, so that no two ask the same thing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sketch import Conditioned

FloatArray = NDArray[np.float64]

# Candidates per question, and the power of the doubt, chosen on digits and six tables of 1,500 rows
# (optdigits, segment, texture, letter, splice, chess): 10 to 100 candidates are within a point of
# each other, all rows at once lose 25 points on splice.
# Tried instead of the variance, with three other seeds: sums of what a label settles over all rows,
# in several forms (67.3 to 69.9 % in the mean with 20 labels, 82.6 to 85.8 with 50), and medoids of
# k-means for the first eight questions (71.6 and 86.4), against 71.5 and 86.8; for sixteen,
# on the first three seeds, 75.3 and 86.9 against 71.8 and 87.7: good starts cost what comes after.
CANDIDATES = 50
POWER = 2.0
# Share of the rows from which on a component without a label is asked before anything else;
# smaller ones are often a handful of duplicates.
COMPONENT_SHARE = 0.01


def lead(probabilities: FloatArray) -> FloatArray:
    """Lead of the most probable class over the second, between 0 and 1.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
        Rows that add up to 1.

    Returns
    -------
    ndarray of shape (n_rows,)
        The lead; 0 with fewer than two classes.
    """
    if probabilities.shape[1] < 2:
        return np.zeros(probabilities.shape[0])
    top = np.partition(probabilities, -2, axis=1)
    return np.clip(top[:, -1] - top[:, -2], 0.0, 1.0)


def unlabeled_component(
    components: NDArray[np.intp], known: NDArray[np.intp], free: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Restrict the choice to the largest component without a label, if there is one of some size.

    Parameters
    ----------
    components : ndarray of int of shape (n_rows,)
        Component of each row.
    known : ndarray of int
        Labelled rows.
    free : ndarray of int
        Rows that may be asked.

    Returns
    -------
    ndarray of int
        The part of `free` in that component, or `free`.
    """
    size = np.bincount(components)
    size[components[known]] = 0
    open_size = size * (np.bincount(components[free], minlength=size.size) > 0)
    largest = int(np.argmax(open_size)) if open_size.size else 0
    if open_size.size == 0 or open_size[largest] < max(2, COMPONENT_SHARE * components.size):
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
    """Choose rows by the variance that is left, times the doubt.

    Parameters
    ----------
    field : Conditioned
        The field given the labels.
    components : ndarray of int of shape (n_sampled,)
        Component of each row; those without a label come first.
    known : ndarray of int
        Labelled rows of the sample.
    free : ndarray of int
        Rows of the sample that may be asked.
    doubt : ndarray of shape (n_sampled,)
        Between 0 and 1; ones before the first label.
    n : int
        How many.
    rng : numpy.random.Generator
        Draws the candidates.

    Returns
    -------
    ndarray of int
        Positions in the sample, at most n, the first choice first.
    """
    chosen: list[int] = []
    open_rows = free
    doubt = np.maximum(doubt, 1e-3)  # a floor: where all are sure, the variance alone decides
    while len(chosen) < n and open_rows.size:
        taken = np.concatenate([known, np.array(chosen, dtype=np.intp)])
        pool = unlabeled_component(components, taken, open_rows)
        few = pool
        if pool.size > CANDIDATES:
            few = np.sort(rng.choice(pool, CANDIDATES, replace=False))
        value = field.variances(few) * doubt[few] ** POWER
        pick = int(few[np.argmax(value)])
        chosen.append(pick)
        open_rows = open_rows[open_rows != pick]
        if len(chosen) < n:
            # What the next ones of the batch would ask as well, this one's answer may settle.
            doubt = doubt * (1.0 - field.correlations(pick))
            field = field.and_also(pick)
    return np.array(chosen, dtype=np.intp)


def choose_apart(
    field: Conditioned,
    place: NDArray[np.intp],
    short: NDArray[np.intp],
    doubt: FloatArray,
    n: int,
) -> NDArray[np.intp]:
    """Of a short list of nodes, one after the other, what the ones before say least about.

    Parameters
    ----------
    field : Conditioned
        Variances of the sampled rows, given the labels.
    place : ndarray of int of shape (n_nodes,)
        Sampled row that stands for each node.
    short : ndarray of int
        The short list.
    doubt : ndarray of shape (n_nodes,)
        One minus the lead.
    n : int
        How many, at most as many as the list has.

    Returns
    -------
    ndarray of int
        Nodes, the first choice first.
    """
    chosen: list[int] = []
    apart = np.ones(field.covariance.shape[0])
    while len(chosen) < n:
        at = place[short]
        value = field.variances(at) * np.maximum(doubt[short], 1e-3) * apart[at]
        best = int(np.argmax(value))
        chosen.append(int(short[best]))
        apart = apart * (1.0 - field.correlations(int(at[best])))
        field = field.and_also(int(at[best]))
        short = np.delete(short, best)
    return np.array(chosen, dtype=np.intp)


def representatives(points: Any, n: int, *, seed: int = 0) -> NDArray[np.intp]:
    """Rows nearest to the centres of k-means, those of large clusters first.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n_rows, n_features)
        Features on comparable scales.
    n : int
        How many.
    seed : int, default=0
        Seed of k-means.

    Returns
    -------
    ndarray of int
        Different rows, at most n.
    """
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
