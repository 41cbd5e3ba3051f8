"""The members of the committee, one at a time: the only module here that knows their interface.

:func:`predictions` returns, for every member that applies to a task, what it predicts for each
label without having seen it, and for the scored rows.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from gdpa import CommitteeClassifier
from gdpa.estimators.ensemble import MEMBERS, PRIOR_SHARPNESS
from gdpa.estimators.inputs import check_links
from gdpa.estimators.labels import stratified_folds
from gdpa.estimators.members.base import FitData, cross_validated_loss
from gdpa.estimators.members.links import LINK_MEMBERS
from gdpa.estimators.members.smoothed import SmoothedMember
from gdpa.estimators.probabilities import LEAST_SHARE, fit_sharpness, judged_labels, sharpen
from gdpa.policy import DEFAULT_POLICY

from .corpus import Task


@dataclass(frozen=True)
class Prediction:
    """What one model says about a task.

    Parameters
    ----------
    held_out : ndarray of shape (n_labels, n_classes) or None
        Probabilities of the labels, each by a model that has not seen it; None with too few labels.
    scored : ndarray of shape (n_scored, n_classes)
        Probabilities of the scored rows, by a model that has seen all labels.
    seconds : float
        CPU time.
    """

    held_out: Any
    scored: Any
    seconds: float


def label_folds(codes: Any) -> Any:
    """Return the fold of each label, as the committee holds them out; None with too few labels."""
    k = int(codes.max()) + 1
    several = codes[judged_labels(codes, k)]
    fewest = DEFAULT_POLICY.fewest_labels
    enough = np.unique(several).size >= 2 and several.size >= fewest
    return stratified_folds(codes, 5) if enough else None


def fit_data(task: Task) -> FitData:
    """Return the data as members see it."""
    estimator = CommitteeClassifier(n_jobs=1)
    _, X, labels, options, _ = estimator._prepare(task.data.X, task.codes)
    links = None
    if task.data.links is not None:
        links = check_links(task.data.links, X.shape[0])
    return FitData(
        X,
        labels,
        folds=label_folds(labels.codes[labels.labeled]),
        options=replace(options, class_prior=None),
        links=links,
    )


def members_of(data: FitData) -> list[Any]:
    """Return all members that can be fitted to the data."""
    kinds = list(MEMBERS.values())
    if data.links is not None:
        kinds = [*LINK_MEMBERS, *kinds]
    elif data.is_embedding or sp.issparse(data.X):
        kinds.insert(1, SmoothedMember)
    members = [kind() for kind in kinds]
    return [
        member
        for member in members
        if member.suits(data)
        and not (data.folds is None and member.needs_folds)
        and data.labeled.size <= member.labels_per_class * data.n_classes
    ]


def predictions(task: Task) -> dict[str, Prediction]:
    """Cross-fit and fit every member."""
    found = {}
    with warnings.catch_warnings(action="ignore"):
        data = fit_data(task)
        for member in members_of(data):
            start = time.process_time()
            held_out = None if data.folds is None else member.cross_fit(data)
            scored = member.fit(data).shares[task.scored]
            found[member.name] = Prediction(held_out, scored, time.process_time() - start)
    return found


# --- what the committee does with predictions


@dataclass(frozen=True)
class Sharpened:
    """Predictions of a member as the committee averages them.

    Parameters
    ----------
    held_out, scored : ndarray
        Sharpened probabilities of the labels and of the scored rows.
    loss : float
        Mean held-out log-loss.
    judged : int
        Number of labels that it is the mean over.
    """

    held_out: Any
    scored: Any
    loss: float
    judged: int


def sharpened(name: str, held_out: Any, scored: Any, known: Any) -> Sharpened:
    """Sharpen a member by its held-out labels."""
    scored = np.asarray(scored, dtype=np.float64)
    if held_out is None:
        beta = PRIOR_SHARPNESS.get(name, 1.0)
        return Sharpened(None, sharpen(scored, beta, least=LEAST_SHARE), np.nan, 0)
    held_out = np.asarray(held_out, dtype=np.float64)
    each, beta = cross_validated_loss(held_out, known)
    return Sharpened(
        sharpen(held_out, beta, least=LEAST_SHARE),
        sharpen(scored, beta, least=LEAST_SHARE),
        float(each.mean()),
        each.size,
    )


def final_sharpness(held_out: Any, scored: Any, known: Any) -> tuple[Any, Any]:
    """Calibrate the combined probabilities; returns those of the scored rows first."""
    beta = fit_sharpness(held_out, known)
    return sharpen(scored, beta), sharpen(held_out, beta)
