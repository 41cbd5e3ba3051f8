"""Folds, splits, re-scaling and graph of the paper's Table 2, bit for bit.

Each fold of a data set is one problem, with ten splits into a labelled and an unlabelled half
(:mod:`~gdpa.experiments.splits`). The closed-form harmonic labels on these splits give the GLR
column of the authors' results in 33 of 34 cells, which is how we know.

The graph is fully connected, ``W_ij = exp(-|f_i - f_j|^2)``, and the Laplacian normalised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..datasets import Dataset, list_datasets
from ..graph.rescale import Rescaler, rescale_minmax, varying_columns
from ..problem import GraphProblem
from .splits import N_SPLITS, RESCALINGS, check_rescaling, fold_count, folds, split

__all__ = [
    "COD_RNA_SIZES",
    "N_SPLITS",
    "PAPER_DATASETS",
    "RESCALINGS",
    "PaperRun",
    "error_percent",
    "fold_count",
    "folds",
    "full_graph",
    "paper_denominator",
    "paper_problems",
    "rescale_parts",
    "split",
]

FloatArray = NDArray[np.float64]
SignArray = NDArray[np.int8]
IndexArray = NDArray[np.intp]

PAPER_DATASETS = tuple(name for name in list_datasets() if name != "cod-rna")
COD_RNA_SIZES = (4, 14, 48, 95, 488, 970, 4891, 9766, 24432)

_DENSE_LIMIT = 2 * 1024**3


def rescale_parts(
    X_labeled: FloatArray, X_unlabeled: FloatArray, rescaling: str
) -> tuple[FloatArray, FloatArray]:
    """Re-scale the two halves of a split as the authors did.

    Parameters
    ----------
    X_labeled, X_unlabeled : ndarray
        Features of the labelled and of the unlabelled samples.
    rescaling : {"min-max", "standardization"}
        ``min-max`` maps each half to [0, 1] by its own extremes. ``standardization`` takes mean
        and standard deviation (ddof 1) of the labelled half and then divides each sample by its
        l2 norm.

    Returns
    -------
    X_labeled, X_unlabeled : ndarray
        Without the columns that would be 0/0. A sample at the mean has no direction; it becomes 0.

    Raises
    ------
    ValueError
        If no column is left.
    """
    check_rescaling(rescaling)
    if rescaling == "min-max":
        keep = varying_columns(X_labeled, X_unlabeled)
        _check_columns(keep)
        return rescale_minmax(X_labeled[:, keep]), rescale_minmax(X_unlabeled[:, keep])
    if X_labeled.shape[0] < 2:
        raise ValueError("standardization needs at least 2 labelled samples")
    _check_columns(varying_columns(X_labeled))
    scaler = Rescaler.fit(X_labeled, "standard")
    return scaler.transform(X_labeled), scaler.transform(X_unlabeled)


def _check_columns(keep: NDArray[np.bool_]) -> None:
    if not keep.any():
        raise ValueError("every feature is constant in one half of the split; none is left")


def full_graph(X: Any) -> FloatArray:
    """Fully connected graph ``W_ij = exp(-|f_i - f_j|^2)`` with a zero diagonal.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Re-scaled features.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)
        Dense weights.

    Raises
    ------
    ValueError
        If the dense matrix would take more than 2 GiB.
    """
    from scipy.spatial.distance import pdist, squareform

    features = np.asarray(X, dtype=np.float64)
    n = features.shape[0]
    if 8 * n * n > _DENSE_LIMIT:
        raise ValueError(
            f"the full graph of {n} samples takes {8 * n * n / 1024**3:.1f} GiB; at most 2 GiB are "
            "accepted (build a neighbour graph instead)"
        )
    # Differences first, squares then: |a|^2 + |b|^2 - 2ab would lose the digits of small distances.
    return np.asarray(squareform(np.exp(-pdist(features, "sqeuclidean"))))


@dataclass(frozen=True, eq=False)
class PaperRun:
    """One problem of the paper's Table 2: a fold of a data set with one of its splits.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    rescaling : str
        Re-scaling of the features.
    fold, n_folds : int
        Fold, counted from 0, and how many there are.
    split : int
        Number of the split, 1 to 10; it is the seed too.
    indices : ndarray
        Rows of the data set that make up the fold, ascending.
    X : ndarray of shape (n, n_features_kept)
        Re-scaled features.
    labels : ndarray of int8
        Known labels; 0 where the label is hidden.
    y : ndarray of int8
        True labels.
    labeled, unlabeled : ndarray
        Positions within the fold, in the random order of the split.
    """

    dataset: str
    rescaling: str
    fold: int
    n_folds: int
    split: int
    indices: IndexArray
    X: FloatArray
    labels: SignArray
    y: SignArray
    labeled: IndexArray
    unlabeled: IndexArray

    @property
    def n_unlabeled(self) -> int:
        """Number of samples to classify."""
        return int(self.unlabeled.size)

    @cached_property
    def W(self) -> FloatArray:
        """The paper's full graph, dense."""
        return full_graph(self.X)

    def problem(self, laplacian: str = "normalized") -> GraphProblem:
        """State the run as a problem on the paper's full graph.

        Parameters
        ----------
        laplacian : {"normalized", "combinatorial"}, default="normalized"
            Which Laplacian; the authors ran the normalised one.

        Returns
        -------
        GraphProblem
            Nodes in the order of `indices`.
        """
        return GraphProblem(self.W, self.labels, laplacian=laplacian)

    def errors(self, predicted: Any) -> int:
        """Count the wrong labels among the unlabelled samples.

        Parameters
        ----------
        predicted : array-like of shape (n,)
            A label for each sample of the fold; entries of labelled samples are not looked at.

        Returns
        -------
        int
            Number of errors.
        """
        signs = np.asarray(predicted)
        if signs.shape != self.y.shape:
            raise ValueError(f"predicted must have shape {self.y.shape}, got {signs.shape}")
        return int(np.count_nonzero(signs[self.unlabeled] != self.y[self.unlabeled]))


def paper_problems(
    dataset: Dataset, rescaling: str, *, splits: Iterable[int] | None = None
) -> Iterator[PaperRun]:
    """Go through the paper's problems on one data set, fold by fold and split by split.

    Parameters
    ----------
    dataset : Dataset
        What :func:`gdpa.datasets.load` gives.
    rescaling : {"min-max", "standardization"}
        Re-scaling of the features.
    splits : iterable of int, optional
        Which splits of each fold; 1 to 10 by default.

    Yields
    ------
    PaperRun
        The runs, in the authors' order.
    """
    K = fold_count(dataset.name, rescaling)
    seeds = tuple(range(1, N_SPLITS + 1)) if splits is None else tuple(splits)
    for seed in seeds:
        if not 1 <= seed <= N_SPLITS:
            raise ValueError(f"splits has {seed}; the paper's splits are 1 to {N_SPLITS}")
    return _runs(dataset, rescaling, K, seeds)


def _runs(dataset: Dataset, rescaling: str, K: int, seeds: tuple[int, ...]) -> Iterator[PaperRun]:
    assignment = folds(dataset.y, K)
    for fold in range(K):
        indices = np.flatnonzero(assignment == fold)
        X, y = dataset.X[indices], dataset.y[indices]
        for seed in seeds:
            labeled, unlabeled = split(indices.size, seed)
            parts = rescale_parts(X[labeled], X[unlabeled], rescaling)
            scaled = np.empty((indices.size, parts[0].shape[1]))
            scaled[labeled], scaled[unlabeled] = parts
            labels = np.zeros_like(y)
            labels[labeled] = y[labeled]
            yield PaperRun(
                dataset=dataset.name,
                rescaling=rescaling,
                fold=fold,
                n_folds=K,
                split=seed,
                indices=indices,
                X=scaled,
                labels=labels,
                y=y,
                labeled=labeled,
                unlabeled=unlabeled,
            )


def paper_denominator(dataset: Dataset, rescaling: str) -> int:
    """Unlabelled count of the data set's last run: what the authors divide by.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    rescaling : {"min-max", "standardization"}
        Re-scaling of the features.

    Returns
    -------
    int
        Unlabelled samples of the last fold; the same for all its splits.
    """
    K = fold_count(dataset.name, rescaling)
    return int(np.count_nonzero(folds(dataset.y, K) == K - 1)) // 2


def error_percent(errors: Sequence[int] | NDArray[Any], n_unlabeled_last: int) -> float:
    """Mean error of a data set in percent, with the authors' denominator.

    They divide the count of *every* run by the unlabelled count of the *last* run; folds differ by
    a sample or two, so this is not the mean of the runs' error rates.

    Parameters
    ----------
    errors : sequence of int
        Number of errors per run.
    n_unlabeled_last : int
        Unlabelled count of the last run, see :func:`paper_denominator`.

    Returns
    -------
    float
        Percent.

    Examples
    --------
    >>> from gdpa.experiments import error_percent
    >>> error_percent([3, 5], 40)
    10.0
    """
    counts = np.asarray(errors, dtype=np.float64)
    if counts.ndim != 1 or counts.size == 0:
        raise ValueError("errors must be a non-empty sequence with one count per run")
    if n_unlabeled_last < 1:
        raise ValueError(f"n_unlabeled_last={n_unlabeled_last} is not accepted; 1 or more is")
    return float(100.0 * counts.mean() / n_unlabeled_last)
