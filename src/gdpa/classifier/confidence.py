"""Whether the probabilities can be believed: what left-out labels say about them.

A classifier that is wrong where it is sure is worse than one that says so. The labels that were
left out tell how often it is right; if the samples without label are predicted with more confidence
than that, by more than the noise of so few labels, the fit warns.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from ..errors import ConfidenceWarning, ConvergenceWarning, UnreachedWarning
from .state import FittedState

__all__ = ["Confidence", "confidence_of", "warn_about"]


@dataclass(frozen=True)
class Confidence:
    """Confidence beside accuracy.

    Parameters
    ----------
    mean : float
        Mean of the largest probability over the samples without label.
    accuracy : float
        Share of the left-out labels that were found again.
    standard_error : float
        Standard error of `accuracy`.
    n_left_out : int
        Number of labels left out.
    lost : tuple
        Classes with two labels or more, none of which was found again.
    of_sample : bool
        Whether labels were left out of a sample of the nodes.
    """

    mean: float
    accuracy: float
    standard_error: float
    n_left_out: int
    lost: tuple[object, ...]
    of_sample: bool = False

    @property
    def too_sure(self) -> bool:
        """Whether the confidence exceeds the accuracy by more than its standard error.

        Never where the accuracy is that of a sample: graphs of fewer nodes err more.
        """
        return not self.of_sample and self.mean > self.accuracy + self.standard_error

    def sentences(self) -> list[str]:
        """What there is to say, in words; empty if all is well."""
        out = []
        if self.too_sure:
            out.append(
                f"samples without label are predicted with a mean probability of {self.mean:.2f}, "
                f"but only {self.accuracy:.2f} +- {self.standard_error:.2f} of "
                f"{self.n_left_out} labels were found again when they were left out; expect "
                "the smaller number"
            )
        if self.lost:
            names = ", ".join(repr(c) for c in self.lost[:5])
            more = "" if len(self.lost) <= 5 else f" and {len(self.lost) - 5} more"
            out.append(
                f"no label of class {names}{more} was found again when it was left out: these "
                "classes need more labels, or features that tell them apart"
            )
        return out


def confidence_of(state: FittedState) -> Confidence | None:
    """Compare confidence and left-out accuracy.

    Parameters
    ----------
    state : FittedState
        A fitted state.

    Returns
    -------
    Confidence or None
        None where no label was left out, or no sample is without one.
    """
    found = state.left_out()
    free = state.coding.codes < 0
    if found is None or not free.any() or state.n_classes < 2:
        return None
    nodes, shares = found
    codes = state.coding.codes[nodes]
    counts = np.bincount(codes, minlength=state.n_classes)
    judged = counts[codes] >= 2  # the only label of a class cannot be found again
    m = int(judged.sum())
    if m == 0:
        return None
    right = (state.winners(shares) == codes)[judged]
    hits = np.bincount(codes[judged], weights=right, minlength=state.n_classes)
    share = (right.sum() + 1.0) / (m + 2.0)  # all right, or all wrong, has a standard error too
    p = state.probabilities(state.shares[free])
    classes = state.coding.classes
    return Confidence(
        float(p.max(axis=1).mean()),
        float(right.mean()),
        float(np.sqrt(share * (1.0 - share) / m)),
        m,
        tuple(classes[(counts >= 2) & (hits == 0)].tolist()),
        state.tuning.source == "sample",
    )


def warn_about(state: FittedState) -> None:
    """Say what the user of a fit has to know.

    Parameters
    ----------
    state : FittedState
        The fitted state.
    """
    if state.unreached.size:
        warnings.warn(
            f"{state.unreached.size} of {state.n_nodes} nodes are in components without a label; "
            "they get the prior class (see unreached_)",
            UnreachedWarning,
            stacklevel=4,
        )
    if not state.run.converged:
        warnings.warn(
            f"the scores did not converge: {state.run.message}; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=4,
        )
    found = confidence_of(state)
    for sentence in [] if found is None else found.sentences():
        warnings.warn(sentence, ConfidenceWarning, stacklevel=4)
