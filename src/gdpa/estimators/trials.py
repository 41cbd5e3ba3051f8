"""Try a head on held-out labels: every label is predicted by a fit that has not seen it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..arrays import FloatArray, NDArray
from ..threads import one_thread
from .data import Fold
from .probabilities import LEAST_SHARE, fit_sharpness, judged_labels, sharpen

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Trial:
    """How a member did on held-out labels.

    Parameters
    ----------
    setting : object
        The setting with the lowest held-out loss.
    fold_settings : tuple
        For each fold, the setting with the lowest loss on all other folds.
    held_out : ndarray of shape (n_judged, n_classes)
        Held-out probabilities. Those of each fold come from the setting that is best on the other
        folds: the best of many settings looks better than it is on the labels that chose it.
    """

    setting: Any
    fold_settings: tuple[Any, ...]
    held_out: FloatArray


@one_thread()
def try_settings(
    held_out: Any,
    settings: Sequence[Any],
    folds: Sequence[Fold],
    codes: NDArray[np.integer],
    k: int,
) -> Trial:
    """Predict every fold by each setting, and choose the setting with the lowest held-out loss.

    Parameters
    ----------
    held_out : callable
        Returns the probabilities of a fold for a setting and the fold.
    settings : sequence
        The settings.
    folds : sequence of Fold
        The folds; labels that are in none of them are not predicted.
    codes : ndarray of int of shape (n_labels,)
        Classes of the labels.
    k : int
        Number of classes.
    """
    number = np.full(codes.size, -1)
    for fold in folds:
        number[fold.held] = fold.number
    judged = number >= 0
    found = {setting: np.empty((np.count_nonzero(judged), k)) for setting in settings}
    for fold in folds:
        for setting in settings:
            found[setting][fold.held[judged]] = held_out(setting, fold)
    return best_of(found, codes[judged], number[judged])


def cross_validated_loss(
    held_out: FloatArray, codes: NDArray[np.integer]
) -> tuple[FloatArray, float]:
    """Return the log-loss of each held-out label after sharpening, and the sharpness.

    The only label of a class is not counted: a model cannot predict it without having seen it.
    """
    judged = judged_labels(codes, held_out.shape[1])
    beta = fit_sharpness(np.maximum(held_out[judged], LEAST_SHARE), codes[judged], fewest=8)
    p = sharpen(held_out[judged], beta, least=LEAST_SHARE)
    return np.asarray(-np.log(p[np.arange(p.shape[0]), codes[judged]])), beta


def best_of(
    candidates: Mapping[Key, FloatArray],
    codes: NDArray[np.integer],
    folds: NDArray[np.integer],
) -> Trial:
    """Return the trial of the candidate with the lowest held-out loss; of equal ones the first.

    Parameters
    ----------
    candidates : mapping of setting to ndarray of shape (n_labels, n_classes)
        Held-out probabilities of each setting.
    codes : ndarray of int of shape (n_labels,)
        Classes of the labels.
    folds : ndarray of int of shape (n_labels,)
        Their folds.
    """
    keys = list(candidates)
    n_folds = int(folds.max()) + 1
    if len(keys) == 1:
        return Trial(keys[0], (keys[0],) * n_folds, candidates[keys[0]])
    losses = np.array([cross_validated_loss(p, codes)[0] for p in candidates.values()])
    best = keys[int(losses.mean(axis=1).argmin())]
    inside = folds[judged_labels(codes, candidates[best].shape[1])]
    held_out = candidates[best].copy()
    chosen = [best] * n_folds
    for f in range(n_folds):
        if (inside != f).any():
            chosen[f] = keys[int(losses[:, inside != f].mean(axis=1).argmin())]
            held_out[folds == f] = candidates[chosen[f]][folds == f]
    return Trial(best, tuple(chosen), held_out)
