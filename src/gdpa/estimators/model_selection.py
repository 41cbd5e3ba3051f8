"""Cross-validation splits that keep unlabelled rows in the training set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from .labels import encode_labels, stratified_folds


class SemiSupervisedKFold:
    """Split the labelled rows into k folds; unlabelled rows are always in the training set.

    Each labelled row is in exactly one test fold, and classes are spread evenly over the folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether to shuffle the labelled rows first.
    random_state : int, RandomState instance or None, default=None
        Random seed of the shuffle.
    unlabeled : object, default=-1
        Marker of an unknown label, as in :class:`~gdpa.CommitteeClassifier`.

    Examples
    --------
    >>> from gdpa import SemiSupervisedKFold
    >>> folds = SemiSupervisedKFold(n_splits=2)
    >>> for train, test in folds.split([[0.0]] * 6, [0, 0, 1, 1, -1, -1]):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 2 4 5] [1 3]

    Wrap a graph of the samples in :class:`gdpa.graph.Links`, which selects rows and columns:

    >>> from gdpa.graph import Links
    >>> links = Links([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
    >>> train, test = next(SemiSupervisedKFold(2).split([[0.0]] * 4, [0, 1, -1, 1]))
    >>> links[train].among().shape, links[test].to(links[train]).shape
    ((2, 2), (2, 2))
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Any = None,
        unlabeled: Any = -1,
    ) -> None:
        if isinstance(n_splits, bool) or int(n_splits) != n_splits or n_splits < 2:
            raise ValueError(f"n_splits={n_splits!r} must be an integer of at least 2")
        if not isinstance(shuffle, bool | np.bool_):
            raise ValueError(f"shuffle={shuffle!r} must be True or False")
        if not shuffle and random_state is not None:
            raise ValueError("random_state has no effect without shuffle=True; set it to None")
        self.n_splits = int(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state
        self.unlabeled = unlabeled

    def __repr__(self) -> str:
        return (
            f"SemiSupervisedKFold(n_splits={self.n_splits}, shuffle={self.shuffle}, "
            f"random_state={self.random_state!r}, unlabeled={self.unlabeled!r})"
        )

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        int
            `n_splits`.
        """
        return self.n_splits

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the training and test rows of each fold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; only the number of rows is used.
        y : array-like of shape (n_samples,)
            Labels, with the marker for unknown ones.
        groups : object
            Ignored.

        Yields
        ------
        train : ndarray of int
            All unlabelled rows and the labelled ones of the other folds, ascending.
        test : ndarray of int
            The labelled rows of this fold, ascending.

        Raises
        ------
        ValueError
            If there are fewer labelled rows than folds.
        """
        coding = encode_labels(y, self.unlabeled)
        n = _num_samples(X)
        if n != coding.codes.size:
            raise ValueError(f"X has {n} rows and y has {coding.codes.size}")
        labeled = coding.labeled
        if labeled.size < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits} folds need at least as many labelled rows; y has "
                f"{labeled.size}"
            )
        if self.shuffle:
            labeled = check_random_state(self.random_state).permutation(labeled)
        fold = stratified_folds(coding.codes[labeled], self.n_splits)
        for number in range(self.n_splits):
            test = np.sort(labeled[fold == number])
            inside = np.ones(n, dtype=bool)
            inside[test] = False
            yield np.flatnonzero(inside), test
