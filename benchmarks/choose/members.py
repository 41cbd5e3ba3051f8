"""The members of the committee, one at a time: the only module here that knows their interface.

:func:`predictions` returns, for every member that applies to a task, what it predicts for each
label without having seen it, and for the scored rows. :func:`sharpened` does with them what the
committee does before it averages.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gdpa import CommitteeClassifier
from gdpa.estimators.committee import MEMBERS, fold_numbers, given_data, try_members
from gdpa.estimators.data import N_FOLDS, FitData, subsample
from gdpa.estimators.few_labels import equal_confidence
from gdpa.estimators.inputs import check_links
from gdpa.estimators.labels import stratified_folds
from gdpa.estimators.pictures import learn_pictures
from gdpa.estimators.probabilities import LEAST_SHARE, fit_sharpness, judged_labels, sharpen
from gdpa.estimators.trials import cross_validated_loss
from gdpa.estimators.views import Views
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
    enough = np.unique(several).size >= 2 and several.size >= DEFAULT_POLICY.fewest_labels
    return stratified_folds(codes, N_FOLDS) if enough else None


def fit_data(task: Task, *, features_of_pictures: bool = True) -> FitData:
    """Return the data as members see it; pictures through learned features or as pixels."""
    estimator = CommitteeClassifier(n_jobs=1)
    _, X, labels, options, _ = estimator._prepare(task.data.X, task.codes)
    links = None
    pictures = None
    if task.data.links is not None:
        links = check_links(task.data.links, X.shape[0])
    elif task.data.kind != "table" and features_of_pictures:
        pictures = learn_pictures(X, labels, options)
    if pictures is not None:
        X = pictures.transform(X)
    return given_data(X, labels, options, links, of_pictures=pictures is not None)


def predictions(task: Task, *, features_of_pictures: bool = True) -> dict[str, Prediction]:
    """Try and fit every member of the task's kind of data."""
    found = {}
    with warnings.catch_warnings(action="ignore"):
        data = fit_data(task, features_of_pictures=features_of_pictures)
        views = Views(data, fold_numbers(data))
        sample = subsample(data)
        on_sample = views.on_sample(sample)
        heads = {member.name: member.head for member in MEMBERS if data.kind in member.kinds}
        start = time.process_time()
        applied, trials = try_members(heads, views, on_sample, sample)
        trial_seconds = (time.process_time() - start) / max(len(applied), 1)
        for name, head in applied.items():
            start = time.process_time()
            trial = trials.get(name)
            setting = head.settings(views)[-1] if trial is None else trial.setting
            scored = head.fit(views, setting).shares[task.scored]
            seconds = trial_seconds + time.process_time() - start
            found[name] = Prediction(None if trial is None else trial.held_out, scored, seconds)
    return found


# --- what the committee does with predictions


@dataclass(frozen=True)
class Sharpened:
    """Predictions of the members as the committee averages them.

    Parameters
    ----------
    held_out : ndarray of shape (n_members, n_labels, n_classes) or None
        Sharpened probabilities of the labels; None with too few labels.
    scored : ndarray of shape (n_members, n_scored, n_classes)
        Sharpened probabilities of the scored rows.
    losses : ndarray of shape (n_members,) or None
        Mean held-out log-losses.
    judged : int
        Number of labels that they are means over.
    """

    held_out: Any
    scored: Any
    losses: Any
    judged: int


def sharpened(models: Mapping[str, Prediction], names: Sequence[str], known: Any) -> Sharpened:
    """Sharpen members by their held-out labels, or to equal confidence if there are none."""
    scored = [np.asarray(models[name].scored, dtype=np.float64) for name in names]
    held_out = [models[name].held_out for name in names]
    if any(p is None for p in held_out):
        sharpness = equal_confidence(scored)
        parts = [sharpen(p, b, least=LEAST_SHARE) for p, b in zip(scored, sharpness, strict=True)]
        return Sharpened(None, np.array(parts), None, 0)
    held_out = [np.asarray(p, dtype=np.float64) for p in held_out]
    each = [cross_validated_loss(p, known) for p in held_out]
    sharpness = np.array([beta for _, beta in each])

    def all_of(shares: Sequence[Any]) -> Any:
        pairs = zip(shares, sharpness, strict=True)
        return np.array([sharpen(p, beta, least=LEAST_SHARE) for p, beta in pairs])

    losses = np.array([loss.mean() for loss, _ in each])
    return Sharpened(all_of(held_out), all_of(scored), losses, each[0][0].size)


def final_sharpness(held_out: Any, scored: Any, known: Any) -> tuple[Any, Any]:
    """Calibrate the combined probabilities; returns those of the scored rows first."""
    beta = fit_sharpness(held_out, known, fewest=DEFAULT_POLICY.calibration_labels)
    return sharpen(scored, beta), sharpen(held_out, beta)
