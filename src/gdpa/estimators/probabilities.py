"""Turn scores into probabilities: shares, sharpness fitted on held-out labels, class priors.

The share q of a class is its score divided by the sum of all scores. Probabilities are
``p ~ q^beta exp(b)``. The sharpness beta minimises the log-loss of held-out labels. The offsets b
make the class masses of the unlabelled samples match a prior. They are found by iterative
proportional fitting, which converges because the masses are the gradient of a convex function of b.

If the mean confidence of the unlabelled samples exceeds the cross-validated accuracy by more than
one standard error, the fit warns (:func:`confidence_of`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from ..errors import ConfidenceWarning, ConvergenceWarning, UnreachedWarning
from ..policy import DEFAULT_POLICY

FloatArray = NDArray[np.float64]

MOST_SHARPNESS = 64.0
# Smaller shares are raised to the first value, which keeps probabilities away from 0 and 1. The
# second is used in the loss of a member, so that a single confident error does not dominate it.
SMALLEST_SHARE = 1e-6
LEAST_SHARE = 0.01


def judged_labels(codes: NDArray[np.integer], n_classes: int) -> NDArray[np.bool_]:
    """Return which labels can be held out: those whose class has at least two labels."""
    return np.asarray(np.bincount(codes, minlength=n_classes)[codes] >= 2)


def left_out_loss(targets: FloatArray, scores: FloatArray) -> float:
    """Return the scale-free squared error ``1 - cos^2`` of held-out scores.

    Parameters
    ----------
    targets : ndarray of shape (n_labeled, n_classes)
        1 in the column of the sample's class, else 0.
    scores : ndarray of shape (n_labeled, n_classes)
        Scores computed without the sample's own label.

    Returns
    -------
    float
        0 for scores proportional to the labels, 1 for useless ones.
    """
    y = targets - targets.mean(axis=1, keepdims=True)
    f = scores - scores.mean(axis=1, keepdims=True)
    size = float((f * f).sum()) * float((y * y).sum())
    inner = max(float((f * y).sum()), 0.0)
    return 1.0 - inner * inner / size if size > 0 else 1.0


def to_shares(scores: FloatArray, prior: FloatArray) -> FloatArray:
    """Divide scores by their row sums.

    Parameters
    ----------
    scores : ndarray of shape (n_nodes, n_classes)
        Scores; negative rounding errors count as 0.
    prior : ndarray of shape (n_classes,)
        Shares of rows whose scores are all 0.
    """
    positive = np.maximum(scores, 0.0)
    top = positive.max(axis=1, keepdims=True)
    nothing = top <= 0
    positive = np.where(nothing, prior, positive / np.where(nothing, 1.0, top))
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def sharpen(
    shares: FloatArray,
    sharpness: float,
    offset: FloatArray | None = None,
    *,
    least: float = SMALLEST_SHARE,
) -> FloatArray:
    """Return the probabilities ``p ~ q^beta exp(offset)``.

    Parameters
    ----------
    shares : ndarray of shape (n_nodes, n_classes)
        Shares q.
    sharpness : float
        beta.
    offset : ndarray of shape (n_classes,), optional
        Shift of each class's log-probability.
    least : float, default=1e-6
        Smaller shares are raised to this.
    """
    logits = sharpness * np.log(np.maximum(shares, least))
    if offset is not None:
        logits += offset
    return np.asarray(softmax(logits, axis=1))


def fit_sharpness(
    left_out: FloatArray | None,
    codes: NDArray[np.integer],
    *,
    fewest: int = DEFAULT_POLICY.calibration_labels,
    doubt: float = 10.0,
) -> float:
    """Return the sharpness beta that minimises the log-loss of held-out labels.

    Parameters
    ----------
    left_out : ndarray of shape (n_labeled, n_classes) or None
        Held-out scores of the labelled nodes.
    codes : ndarray of int of shape (n_labeled,)
        Their classes.
    fewest : int, default=20
        With fewer held-out labels beta is 1.
    doubt : float, default=10
        Strength of a prior for beta = 1, in numbers of labels. It keeps a few correct predictions
        from making every probability 0 or 1.
    """
    if left_out is None or codes.size < fewest:
        return 1.0
    k = left_out.shape[1]
    shares = to_shares(left_out, np.full(k, 1.0 / k))
    logs = np.log(np.maximum(shares, SMALLEST_SHARE))
    at_label = logs[np.arange(codes.size), codes]
    penalty = doubt / codes.size

    def loss(log_beta: float) -> float:
        beta = np.exp(log_beta)
        scaled = beta * logs
        top = scaled.max(axis=1)
        total = top + np.log(np.exp(scaled - top[:, None]).sum(axis=1))
        return float((total - beta * at_label).mean() + penalty * log_beta**2)

    limit = float(np.log(MOST_SHARPNESS))
    from scipy.optimize import minimize_scalar  # not loaded by workers, which only sharpen

    best = minimize_scalar(loss, bounds=(-limit, limit), method="bounded")
    return float(np.exp(best.x))


def labeled_prior(codes: NDArray[np.integer], n_classes: int) -> FloatArray:
    """Return the share of each class among the labels."""
    counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
    return np.asarray(counts / counts.sum())


def check_prior(class_prior: ArrayLike, classes: NDArray[np.generic]) -> FloatArray:
    """Validate a prior with one share per class, in the order of `classes`."""
    try:
        prior = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError):
        prior = np.empty(0)
    if prior.shape != (classes.size,):
        raise ValueError(
            f"class_prior={class_prior!r} must be None, 'labeled' or one share per class "
            f"({classes.size}, in the order of {classes.tolist()!r})"
        )
    if not np.isfinite(prior).all() or (prior <= 0).any():
        raise ValueError(f"class_prior={class_prior!r} must be positive and finite")
    if abs(float(prior.sum()) - 1.0) > 1e-6:
        raise ValueError(f"class_prior={class_prior!r} adds up to {prior.sum():g}, not to 1")
    return np.asarray(prior / prior.sum())


def match_masses(
    probabilities: FloatArray, prior: FloatArray, *, tol: float = 1e-10, max_iter: int = 1000
) -> FloatArray:
    """Return the class offsets, with mean 0, that make mean probabilities equal to the prior.

    Parameters
    ----------
    probabilities : ndarray of shape (n_nodes, n_classes)
        Positive rows that add up to 1.
    prior : ndarray of shape (n_classes,)
        Positive, adding up to 1.
    tol : float, default=1e-10
        Largest deviation of a mass from its prior.
    max_iter : int, default=1000
        Maximum number of rounds.
    """
    offset = np.zeros(prior.size)
    if probabilities.shape[0] == 0:
        return offset
    scaled = probabilities.copy()
    for _ in range(max_iter):
        mass = scaled.mean(axis=0)
        if np.abs(mass - prior).max() <= tol:
            break
        factor = prior / np.maximum(mass, 1e-300)
        offset += np.log(factor)
        scaled = probabilities * np.exp(offset - offset.max())
        scaled /= scaled.sum(axis=1, keepdims=True)
    return np.asarray(offset - offset.mean())


@dataclass(frozen=True)
class Confidence:
    """Mean confidence compared with cross-validated accuracy.

    Parameters
    ----------
    mean : float
        Mean of the largest probability over the unlabelled samples.
    accuracy : float
        Cross-validated accuracy.
    standard_error : float
        Standard error of `accuracy`.
    n_left_out : int
        Number of held-out labels.
    lost : tuple
        Classes with at least two labels of which none was predicted correctly.
    of_sample : bool
        Whether the accuracy was measured on a subsample of the rows.
    """

    mean: float
    accuracy: float
    standard_error: float
    n_left_out: int
    lost: tuple[object, ...]
    of_sample: bool = False

    def sentences(self) -> list[str]:
        """Return warnings about the confidence; empty if there are none.

        The accuracy on a subsample never causes one, because smaller graphs are less accurate.
        """
        out = []
        if not self.of_sample and self.mean > self.accuracy + self.standard_error:
            out.append(
                f"unlabelled samples are predicted with a mean probability of {self.mean:.2f}, but "
                f"the cross-validated accuracy of {self.n_left_out} held-out labels is only "
                f"{self.accuracy:.2f} +- {self.standard_error:.2f}; expect the smaller number"
            )
        if self.lost:
            names = ", ".join(map(repr, self.lost[:5]))
            more = "" if len(self.lost) <= 5 else f" and {len(self.lost) - 5} more"
            out.append(
                f"no held-out label of class {names}{more} was predicted correctly: these classes "
                "need more labels, or features that tell them apart"
            )
        return out


def confidence_of(ensemble: Any) -> Confidence | None:
    """Compare confidence with cross-validated accuracy.

    Returns None if no label was held out or no sample is unlabelled.
    """
    held_out = ensemble.left_out()
    classes = ensemble.labels.classes
    free = ensemble.labels.codes < 0
    if held_out is None or classes.size < 2 or not free.any():
        return None
    codes = ensemble.labels.codes[held_out[0]]
    judged = judged_labels(codes, classes.size)
    m = int(judged.sum())
    if m == 0:
        return None
    right = (ensemble.winners(held_out[1]) == codes)[judged]
    hits = np.bincount(codes[judged], weights=right, minlength=classes.size)
    lost = np.intersect1d(codes[judged], np.flatnonzero(hits == 0))
    share = (right.sum() + 1.0) / (m + 2.0)  # keeps the standard error positive
    p = sharpen(ensemble.shares[free], ensemble.sharpness, ensemble.offset)
    return Confidence(
        float(p.max(axis=1).mean()),
        float(right.mean()),
        float(np.sqrt(share * (1.0 - share) / m)),
        m,
        tuple(classes[lost].tolist()),
        ensemble.tuning.source == "sample",
    )


def cautions(ensemble: Any) -> list[str]:
    """Return warnings about the confidence of a fitted ensemble."""
    weighting = ensemble.weighting
    labels = ensemble.labels
    if weighting is not None and weighting.losses is None and (labels.codes < 0).any():
        return [
            f"{labels.labeled.size} labels of {labels.classes.size} classes are too few to hold "
            "any out: the accuracy is not known, and probabilities are lowered to what the "
            "agreement of the members supports; label more rows"
        ]
    found = confidence_of(ensemble)
    return [] if found is None else found.sentences()


def warn_about(ensemble: Any, run: Any) -> None:
    """Warn about unreached samples, solves that did not converge, and overconfidence."""
    if ensemble.unreached.size:
        warnings.warn(
            f"{ensemble.unreached.size} of {ensemble.shares.shape[0]} samples are in components "
            "without a label; they get the prior class (see unreached_)",
            UnreachedWarning,
            stacklevel=4,
        )
    if not run.converged:
        warnings.warn(
            f"the scores did not converge: {run.message}; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=4,
        )
    for sentence in cautions(ensemble):
        warnings.warn(sentence, ConfidenceWarning, stacklevel=4)
