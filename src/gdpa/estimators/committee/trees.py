"""A forest of extremely randomised trees as plain arrays: grown by scikit-learn, walked here.

All nodes of all trees lie one after the other. A node asks ``x[feature] <= threshold`` and sends
the sample to `left` or `right`; a leaf has feature -1 and the shares of the classes in it. Arrays
can be saved without pickle and checked when they are read: every child lies behind its parent and
within its tree, so that a walk always ends, and no index leaves its array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...folds import by_appearance

__all__ = ["CrossForest", "Forest", "cross_forest", "join_forests"]

FloatArray = NDArray[np.float64]

# Cells of one block of rows in a walk.
BLOCK = 2**21
# Single precision holds values of up to this power of two as they are; scikit-learn's trees take
# values within 1e-7 of each other for equal, so small columns are brought to the size of 1.
ORDINARY, SMALL = 60, -10
FLOAT32 = float(np.finfo(np.float32).max) / 4.0  # the range of a column is a number, too


@dataclass(frozen=True)
class Forest:
    """Trees as arrays.

    Parameters
    ----------
    roots : ndarray of int of shape (n_trees + 1,)
        Number of each tree's first node; at the end the number of nodes.
    feature : ndarray of int of shape (n_nodes,)
        Column that a node asks about, -1 in a leaf.
    threshold : ndarray of shape (n_nodes,)
        What it compares with.
    left, right : ndarray of int of shape (n_nodes,)
        Where the answers yes and no lead; the node itself in a leaf.
    value : ndarray of shape (n_nodes, n_classes)
        Shares of the classes.
    importances : ndarray of shape (n_features,)
        How much each column decides; they add up to 1, or are all 0.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: FloatArray
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    importances: FloatArray

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.roots.size - 1)

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Leaf of each sample in each tree, numbered within the tree.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of int32 of shape (n_samples, n_trees)
            Numbers of leaves.
        """
        asked = np.flatnonzero(np.bincount(self.feature[self.feature >= 0], minlength=1))
        place = np.zeros(int(asked.max(initial=0)) + 1, dtype=np.int32)
        place[asked] = np.arange(asked.size, dtype=np.int32)
        column = place[np.maximum(self.feature, 0)]
        size = np.abs(self.threshold[self.threshold != 0])
        wide = size.size and (size.max() > 2.0**ORDINARY or size.min() < 2.0**-ORDINARY)
        out = np.empty((X.shape[0], self.n_trees), dtype=np.int32)
        step = max(1, BLOCK // max(1, asked.size))
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step][:, asked]
            # Trees were grown on single precision: near a threshold that is what decides.
            dense = rows.toarray() if sp.issparse(rows) else rows
            cells = _single_digits(dense) if wide else as_single(dense)
            for t in range(self.n_trees):
                out[start : start + step, t] = self._walk(cells, column, t)
        return out

    def _walk(self, cells: NDArray[Any], column: NDArray[Any], t: int) -> NDArray[Any]:
        """Leaves of some rows in tree t."""
        root = int(self.roots[t])
        node = np.full(cells.shape[0], root, dtype=np.int32)
        moving = np.arange(cells.shape[0])
        for _ in range(int(self.roots[t + 1]) - root):  # children lie behind their parents
            at = node[moving]
            inside = self.feature[at] >= 0
            if not inside.all():
                moving, at = moving[inside], at[inside]
            if moving.size == 0:
                break
            yes = cells[moving, column[at]] <= self.threshold[at]
            node[moving] = np.where(yes, self.left[at], self.right[at])
        return np.asarray(node - root)

    def probabilities(self, leaves: NDArray[Any], trees: slice = slice(None)) -> FloatArray:
        """Mean share of the classes in the leaves.

        Parameters
        ----------
        leaves : ndarray of int of shape (n_samples, n_trees)
            From :meth:`leaves`.
        trees : slice, optional
            Which of the trees; all by default.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that add up to 1.
        """
        out = np.zeros((leaves.shape[0], self.value.shape[1]))
        asked = range(self.n_trees)[trees]
        for t in asked:
            out += self.value[self.roots[t] + leaves[:, t]]
        return out / max(len(asked), 1)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, to be saved."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], n_features: int, n_classes: int
    ) -> Forest:
        """Read what :meth:`arrays` gave, and believe none of it unseen.

        Parameters
        ----------
        arrays : mapping
            Arrays by name.
        n_features, n_classes : int
            What the forest must fit.

        Returns
        -------
        Forest
            The forest.

        Raises
        ------
        ValueError
            If an array is missing, of the wrong kind or shape, or leads out of the trees.
        """
        kinds = {
            "roots": "iu",
            "feature": "iu",
            "threshold": "f",
            "left": "iu",
            "right": "iu",
            "value": "f",
            "importances": "f",
        }
        for name, kind in kinds.items():
            if name not in arrays or arrays[name].dtype.kind not in kind:
                raise ValueError(f"the forest's array {name!r} is missing or of the wrong kind")
        roots = arrays["roots"].astype(np.int64)
        n = int(arrays["feature"].size)
        flat = all(arrays[name].shape == (n,) for name in ("feature", "threshold", "left", "right"))
        good = (
            flat
            and roots.ndim == 1
            and roots.size >= 2
            and roots[0] == 0
            and roots[-1] == n
            and bool((np.diff(roots) >= 1).all())
            and arrays["value"].shape == (n, n_classes)
            and arrays["importances"].shape == (n_features,)
        )
        if not good:
            raise ValueError("the forest's arrays do not fit together")
        feature = arrays["feature"].astype(np.int64)
        left, right = arrays["left"].astype(np.int64), arrays["right"].astype(np.int64)
        number = np.arange(n)
        end = np.repeat(roots[1:], np.diff(roots))
        leaf = feature == -1
        inside = (feature >= 0) & (feature < n_features)
        behind = (left > number) & (left < end) & (right > number) & (right < end)
        if not (leaf | (inside & behind)).all():
            raise ValueError("a node of the forest leads out of its tree or asks for no column")
        value, importances = arrays["value"], arrays["importances"]
        if not (np.isfinite(value).all() and np.isfinite(importances).all()):
            raise ValueError("the forest's shares or importances are not finite")
        if (value < 0).any() or (importances < 0).any() or np.isnan(arrays["threshold"]).any():
            raise ValueError("the forest has a negative share or importance, or no threshold")
        return cls(
            roots,
            feature.astype(np.int32),
            arrays["threshold"].astype(np.float64),
            np.where(leaf, number, left).astype(np.int32),
            np.where(leaf, number, right).astype(np.int32),
            value.astype(np.float32),
            importances.astype(np.float64),
        )


def column_units(X: Any) -> NDArray[np.int32]:
    """Power of two of each column's largest value; 0 where trees take it as it is."""
    if sp.issparse(X):
        size = abs(X).max(axis=0).toarray().ravel()
    else:
        size = np.maximum(X.max(axis=0), -X.min(axis=0))
    exponent = np.frexp(size)[1]
    ordinary = (size == 0) | ((exponent >= SMALL) & (exponent <= ORDINARY))
    return np.where(ordinary, 0, exponent).astype(np.int32)


def as_single(X: Any, units: NDArray[np.int32] | None = None) -> Any:
    """Single precision, as trees compare it; what does not fit becomes the largest number."""
    if units is None or not units.any():
        units = None
    if sp.issparse(X):
        X = sp.csr_array(X)
        data = X.data if units is None else np.ldexp(X.data, -units[X.indices])
        data = np.clip(data, -FLOAT32, FLOAT32).astype(np.float32)
        return sp.csr_array((data, X.indices, X.indptr), X.shape)
    with np.errstate(over="ignore"):
        cells = X if units is None else np.ldexp(X, -units)
    return np.clip(cells, -FLOAT32, FLOAT32).astype(np.float32)


def _single_digits(X: Any) -> FloatArray:
    """As many digits as single precision has, of numbers of any size."""
    mantissa, exponent = np.frexp(X)
    return np.asarray(np.ldexp(mantissa.astype(np.float32).astype(np.float64), exponent))


@dataclass(frozen=True)
class CrossForest:
    """A forest grown in groups of trees, each of which has never seen one fold of the labels.

    The trees of group f predict the labels of fold f; all of them together predict everything else.
    Nothing is grown twice.

    Parameters
    ----------
    growers : tuple of ExtraTreesClassifier
        scikit-learn's forests, one per fold (one in all, without folds).
    forest : Forest
        Their trees, in the same order, in the units of the data.
    units : ndarray of int of shape (n_features,)
        Powers of two that the columns were divided by.
    """

    growers: tuple[Any, ...]
    forest: Forest
    units: NDArray[np.int32]

    @property
    def trees_per_group(self) -> int:
        """Number of trees in each group."""
        return self.forest.n_trees // len(self.growers)

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """As :meth:`Forest.leaves`, by scikit-learn's compiled walk."""
        A = as_single(X, self.units)
        return np.hstack([g.apply(A).astype(np.int32) for g in self.growers])

    def group(self, f: int) -> slice:
        """Positions of the trees of group f."""
        return slice(f * self.trees_per_group, (f + 1) * self.trees_per_group)

    def importances(self, f: int) -> FloatArray:
        """How much each column decides in the trees of group f."""
        return found_importances(self.growers[f])


def found_importances(grower: Any) -> FloatArray:
    """Importances of columns; 0 where no split tells classes apart: scikit-learn divides by 0."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.asarray(grower.feature_importances_, dtype=np.float64), nan=0.0)


def cross_forest(
    X: Any,
    codes: NDArray[Any],
    folds: NDArray[Any] | None,
    n_classes: int,
    *,
    n_trees: int,
    random_state: int,
    n_jobs: int | None = None,
) -> CrossForest:
    """Grow extremely randomised trees on labelled samples.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_labels, n_features)
        Labelled samples.
    codes : ndarray of int of shape (n_labels,)
        Their classes.
    folds : ndarray of int of shape (n_labels,) or None
        Labels that a group of trees is to do without; None: all trees see all labels.
    n_classes : int
        Number of classes.
    n_trees : int
        Number of trees in all.
    random_state : int
        Seed.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    CrossForest
        The forest.
    """
    from sklearn.ensemble import ExtraTreesClassifier

    units = column_units(X)
    A = as_single(X, units)
    # A split of equal gain is taken or not by rounding, and so by the order of the classes: one
    # that does not depend on their names.
    place = by_appearance(codes)
    names = np.empty(n_classes, dtype=np.intp)
    names[place] = codes
    n_groups = 1 if folds is None else int(folds.max()) + 1
    growers = []
    for f in range(n_groups):
        seen = slice(None) if folds is None else np.flatnonzero(folds != f)
        grower = ExtraTreesClassifier(
            max(1, n_trees // n_groups), random_state=random_state + f, n_jobs=n_jobs
        )
        growers.append(grower.fit(A[seen], place[seen]))
    parts = [_as_arrays(g, n_classes, names, units) for g in growers]
    return CrossForest(tuple(growers), join_forests(parts), units)


def _as_arrays(
    grower: Any, n_classes: int, names: NDArray[np.intp], units: NDArray[np.int32]
) -> Forest:
    """Trees of one of scikit-learn's forests."""
    parts = []
    start = 0
    for tree in (estimator.tree_ for estimator in grower.estimators_):
        n = tree.node_count
        leaf = tree.children_left < 0
        number = np.arange(start, start + n)
        value = np.zeros((n, n_classes), dtype=np.float32)
        value[:, names[grower.classes_]] = tree.value[:, 0, :]
        value /= value.sum(axis=1, keepdims=True)
        parts.append(
            (
                np.where(leaf, -1, tree.feature),
                np.where(leaf, 0.0, np.ldexp(tree.threshold, units[np.maximum(tree.feature, 0)])),
                np.where(leaf, number, tree.children_left + start),
                np.where(leaf, number, tree.children_right + start),
                value,
            )
        )
        start += n
    feature, threshold, left, right, value = (np.concatenate(p) for p in zip(*parts, strict=True))
    sizes = [p[0].size for p in parts]
    return Forest(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        feature.astype(np.int32),
        threshold,
        left.astype(np.int32),
        right.astype(np.int32),
        value,
        found_importances(grower),
    )


def join_forests(forests: Sequence[Forest]) -> Forest:
    """One forest of the trees of several."""
    starts = np.cumsum([0, *(f.feature.size for f in forests)])
    moved = [
        replace(f, left=f.left + np.int32(s), right=f.right + np.int32(s), roots=f.roots + s)
        for f, s in zip(forests, starts[:-1], strict=True)
    ]

    def joined(name: str) -> Any:
        return np.concatenate([getattr(f, name) for f in moved])

    weights = [f.n_trees for f in forests]
    return Forest(
        np.concatenate([*(f.roots[:-1] for f in moved), starts[-1:]]),
        joined("feature"),
        joined("threshold"),
        joined("left"),
        joined("right"),
        joined("value"),
        np.average([f.importances for f in forests], axis=0, weights=weights),
    )
