"""Compare the accuracy on held-out labels with other classifiers on the same columns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Rival:
    """Another classifier on the same held-out labels.

    Parameters
    ----------
    name : str
        Its name.
    accuracy : float
        Fraction of the held-out labels that it predicts correctly.
    better, worse : int
        Labels that only gdpa, or only the rival, predicts correctly.
    """

    name: str
    accuracy: float
    better: int
    worse: int

    @property
    def lead(self) -> int:
        """1 if gdpa is clearly more accurate, -1 if the rival is, else 0.

        Clearly means by more than two standard deviations of the difference of two classifiers
        that are equally accurate.
        """
        deviation = 2.0 * float(np.sqrt(self.better + self.worse))
        difference = self.better - self.worse
        return int(np.sign(difference)) if abs(difference) > deviation else 0


@dataclass(frozen=True)
class Baselines:
    """Accuracy on held-out labels: gdpa, other classifiers on the same columns, largest class.

    Parameters
    ----------
    ours, majority : float
        Accuracy of gdpa and of always predicting the largest class.
    rivals : tuple of Rival
        The other classifiers.
    n_labels : int
        Number of labels.
    """

    ours: float
    majority: float
    rivals: tuple[Rival, ...]
    n_labels: int

    @property
    def verdict(self) -> str:
        """The result of the comparison in words."""
        best = max(self.rivals, key=attrgetter("accuracy"))
        if max(self.ours, best.accuracy) <= self.majority:
            return "none is better than always predicting the largest class"
        ahead = [rival.name for rival in self.rivals if rival.lead < 0]
        if ahead:
            verb = "is" if len(ahead) == 1 else "are"
            return f"{' and '.join(ahead)} {verb} more accurate than gdpa here"
        if best.lead > 0:
            return "gdpa is more accurate than all of them"
        if best.accuracy > self.ours:
            return f"{best.name} is best, but the difference from gdpa may be chance"
        return f"no clear difference from {best.name}, the best of the others"

    @property
    def rows(self) -> list[tuple[str, float]]:
        """Names and accuracies, gdpa first."""
        others = [(rival.name, rival.accuracy) for rival in self.rivals]
        return [("gdpa", self.ours), *others, ("largest class", self.majority)]

    def plain(self) -> dict[str, Any]:
        """Return the comparison for JSON, with a sentence."""
        listed = ", ".join(f"{name} {100 * share:.1f} %" for name, share in self.rows)
        return {
            "gdpa": self.ours,
            **{rival.name.replace(" ", "_"): rival.accuracy for rival in self.rivals},
            "majority": self.majority,
            "labels": self.n_labels,
            "words": f"accuracy on {self.n_labels} held-out labels: {listed}; {self.verdict}",
        }


def fitted_points(graph: Any) -> Any:
    """Return the rescaled features that a fitted graph keeps; None for a precomputed graph."""
    return graph.points if graph.neighbors is None else graph.neighbors.index.X


# Rows that a rival is fitted to in each fold; more take longer than the fit itself.
MOST_ROWS = 3000
# With more classes, gradient boosting takes longer than everything else: it grows a tree per class
# and round.
MOST_BOOSTED = 20
ROUNDS = 100


def rivals(n_classes: int) -> dict[str, Any]:
    """Return the classifiers to compare with, by name, with the defaults of scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    found: dict[str, Any] = {
        "logistic regression": LogisticRegression(max_iter=200),
        "random forest": RandomForestClassifier(random_state=0, n_jobs=1),
    }
    if n_classes <= MOST_BOOSTED:
        found["gradient boosting"] = HistGradientBoostingClassifier(
            random_state=0, max_iter=ROUNDS, early_stopping=False
        )
    return found


def baselines(model: BaseEstimator, X: Any) -> Baselines | None:
    """Compare a fitted classifier with others on the same columns and the same held-out labels.

    The others are fitted in up to five folds, to at most 3,000 rows each, and predict every label
    that was held out. A label that is the only one of its class is wrong for all of them.

    Parameters
    ----------
    model : CommitteeClassifier
        A fitted classifier.
    X : ndarray or sparse matrix of shape (n_samples, n_features), or None
        Its features.

    Returns
    -------
    Baselines or None
        None without features, or with too few labels to hold any out.
    """
    if model.accuracy_ is None or X is None:
        return None
    checked = model.evaluate()
    codes = model.ensemble_.labels.codes
    labeled = np.flatnonzero(codes >= 0)
    counts = np.bincount(codes[labeled])
    if np.count_nonzero(counts >= 2) < 2:
        return None
    ours = checked.predicted == checked.truth
    compared = []
    for name, rival in rivals(int(np.count_nonzero(counts))).items():
        right = _held_out(rival, X, codes, labeled)[checked.rows] == checked.truth
        compared.append(
            Rival(
                name=name,
                accuracy=float(right.mean()),
                better=int((ours & ~right).sum()),
                worse=int((right & ~ours).sum()),
            )
        )
    largest = _held_out(None, X, codes, labeled)[checked.rows] == checked.truth
    return Baselines(
        ours=checked.accuracy.estimate,
        majority=float(largest.mean()),
        rivals=tuple(compared),
        n_labels=checked.n_labels,
    )


def _held_out(
    rival: Any, X: Any, codes: NDArray[Any], labeled: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the class that a rival predicts for each labelled row without its label.

    None stands for the largest class. Rows without a prediction have -2.
    """
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    found = np.full(codes.size, -2, dtype=np.intp)
    y = codes[labeled]
    counts = np.bincount(y)
    folds = StratifiedKFold(max(2, min(5, int(counts[counts >= 2].min()))))
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(action="ignore"):  # a class with fewer labels than folds
        for train, test in folds.split(np.zeros((y.size, 1)), y):
            fitted = labeled[train]
            held = labeled[test]
            if rival is None:
                found[held] = np.bincount(codes[fitted]).argmax()
                continue
            if fitted.size > MOST_ROWS:
                fitted = np.sort(rng.choice(fitted, MOST_ROWS, replace=False))
            if np.unique(codes[fitted]).size < 2:
                found[held] = codes[fitted[0]]
                continue
            fit = clone(rival).fit(_rows(X, fitted, rival), codes[fitted])
            found[held] = fit.predict(_rows(X, held, rival))
    return found


def _rows(X: Any, rows: NDArray[np.intp], rival: Any) -> Any:
    """Return rows of the features; gradient boosting takes no sparse matrix."""
    part = X[rows]
    if sp.issparse(part):
        return part.toarray() if "Boosting" in type(rival).__name__ else part
    return np.asarray(part, dtype=np.float64)
