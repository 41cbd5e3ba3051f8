"""Folds, splits, re-scaling and graph of the paper's Table 2, bit for bit.

Each fold of a data set is one problem, with ten splits into a labelled and an unlabelled half.
Matlab's generator with seed 0 is ``RandomState(5489)``, its ``randperm(n)`` is the argsort of n
uniform numbers, and ``crossvalind`` draws the folds class by class from one stream; so NumPy can
repeat every fold and every split. The closed-form harmonic labels on these splits give the GLR
column of the authors' results in 33 of 34 cells, which confirms it.

The graph is fully connected, ``W_ij = exp(-|f_i - f_j|^2)``, and the Laplacian normalised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from gdpa.errors import nearest_name
from gdpa.graph.rescale import Rescaler, rescale_minmax, varying_columns
from gdpa.problem import GraphProblem

from .datasets import Dataset, list_datasets

FloatArray = NDArray[np.float64]
SignArray = NDArray[np.int8]
IndexArray = NDArray[np.intp]

RESCALINGS = ("min-max", "standardization")
N_SPLITS = 10
PAPER_DATASETS = tuple(name for name in list_datasets() if name != "cod-rna")


def _check_rescaling(rescaling: str) -> None:
    if rescaling not in RESCALINGS:
        raise ValueError(
            f"rescaling={rescaling!r} is not known; {nearest_name(rescaling, list(RESCALINGS))}"
        )


def _randperm(generator: np.random.RandomState, n: int) -> IndexArray:
    """Matlab's ``randperm(n)``, counted from 0."""
    return np.argsort(generator.random_sample(n), kind="stable")


def fold_count(name: str, rescaling: str) -> int:
    """Return the number of folds that the authors used.

    Parameters
    ----------
    name : str
        Name of the data set.
    rescaling : {"min-max", "standardization"}
        Re-scaling of the features.

    Returns
    -------
    int
        5; 1 for colon-cancer; with standardisation 4 for german and 2 for heart.
    """
    _check_rescaling(rescaling)
    if name == "colon-cancer":
        return 1
    if rescaling == "standardization":
        return {"german": 4, "heart": 2}.get(name, 5)
    return 5


def folds(y: Any, n_folds: int = 5) -> IndexArray:
    """Assign each sample to a fold, class by class, as the authors did.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels in {-1, +1}.
    n_folds : int, default=5
        Number of folds.

    Returns
    -------
    ndarray of shape (n_samples,)
        Fold of each sample, 0 to ``n_folds - 1``. Within a class the sizes differ by at most one.
    """
    signs = np.asarray(y)
    if signs.ndim != 1 or not np.isin(signs, (-1, 1)).all():
        raise ValueError("y must be one-dimensional with values -1 and +1 only")
    if isinstance(n_folds, bool) or int(n_folds) != n_folds or n_folds < 1:
        raise ValueError(f"n_folds={n_folds!r} is not accepted; a whole number from 1 on is needed")
    generator = np.random.RandomState(5489)  # Matlab's seed 0
    assignment = np.zeros(signs.size, dtype=np.intp)
    for sign in (1, -1):
        members = np.flatnonzero(signs == sign)
        m = members.size
        if m:
            q = np.ceil(n_folds * np.arange(1, m + 1) / m).astype(np.intp) - 1
            fold_order = _randperm(generator, int(n_folds))
            assignment[members[_randperm(generator, m)]] = fold_order[q]
    return assignment


def split(n: int, seed: int) -> tuple[IndexArray, IndexArray]:
    """Split n samples into a labelled and an unlabelled half.

    Parameters
    ----------
    n : int
        Number of samples of the fold.
    seed : int
        Number of the split, 1 to 10 in the paper.

    Returns
    -------
    labeled : ndarray
        The first ``floor(n/2 + 1/2)`` of the random order.
    unlabeled : ndarray
        The others, in the random order.
    """
    if n < 2:
        raise ValueError(f"n={n} cannot be split; at least 2 samples are needed")
    order = _randperm(np.random.RandomState(seed), n)
    half = (n + 1) // 2
    return order[:half], order[half:]


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
    _check_rescaling(rescaling)
    min_max = rescaling == "min-max"
    if not min_max and X_labeled.shape[0] < 2:
        raise ValueError("standardization needs at least 2 labelled samples")
    keep = varying_columns(X_labeled, X_unlabeled) if min_max else varying_columns(X_labeled)
    if not keep.any():
        raise ValueError("every feature is constant in one half of the split; none is left")
    if min_max:
        return rescale_minmax(X_labeled[:, keep]), rescale_minmax(X_unlabeled[:, keep])
    scaler = Rescaler.fit(X_labeled, "standard")
    return scaler.transform(X_labeled), scaler.transform(X_unlabeled)


def full_graph(X: Any) -> FloatArray:
    """Return the dense weights ``W_ij = exp(-|f_i - f_j|^2)`` with a zero diagonal.

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
    features = np.asarray(X, dtype=np.float64)
    n = features.shape[0]
    gib = 8 * n * n / 1024**3
    if gib > 2:
        raise ValueError(
            f"the full graph of {n} samples takes {gib:.1f} GiB; at most 2 GiB are "
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
        Fold, counted from 0, and the number of folds.
    split : int
        Number of the split, 1 to 10; also its seed.
    indices : ndarray
        Rows of the data set that make up the fold, ascending.
    X : ndarray of shape (n, n_features_kept)
        Re-scaled features.
    labels : ndarray of int8
        Known labels; 0 on the unlabelled half.
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
            A label for each sample of the fold; entries of labelled samples are ignored.

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
    """Iterate over the paper's problems on one data set, fold by fold and split by split.

    Parameters
    ----------
    dataset : Dataset
        What :func:`reproduction.datasets.load` returns.
    rescaling : {"min-max", "standardization"}
        Re-scaling of the features.
    splits : iterable of int, optional
        Which splits of each fold; 1 to 10 by default.

    Returns
    -------
    iterator of PaperRun
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
                dataset.name, rescaling, fold, K, seed, indices, scaled, labels, y, labeled,
                unlabeled,
            )  # fmt: skip


def paper_denominator(dataset: Dataset, rescaling: str) -> int:
    """Return what the authors divide by: the unlabelled count of the data set's last run.

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
    """Return the mean error of a data set in percent, with the authors' denominator.

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
    """
    counts = np.asarray(errors, dtype=np.float64)
    if counts.ndim != 1 or counts.size == 0:
        raise ValueError("errors must be a non-empty sequence with one count per run")
    if n_unlabeled_last < 1:
        raise ValueError(f"n_unlabeled_last={n_unlabeled_last} is not accepted; 1 or more is")
    return float(100.0 * counts.mean() / n_unlabeled_last)
