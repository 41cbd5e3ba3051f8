"""A forest of extremely randomised trees: grown by scikit-learn, stored as arrays.

The nodes of all trees are stored one after the other. An inner node compares ``x[feature] <=
threshold`` and sends the sample to `left` or `right`; a leaf has feature -1 and holds class shares.
Every child comes after its parent and belongs to the same tree, so every walk ends.

The forest is grown in groups of trees, one group per fold, which has never seen the labels of that
fold. The trees of a group give the held-out probabilities of their fold; all trees together predict
new rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..codec import check_numbers, storable
from ..graph.features import Features
from ..graph.forest import balanced_columns
from ..threads import effective_jobs, in_threads
from .labels import by_appearance
from .members import Model
from .options import CheckedOptions

if TYPE_CHECKING:
    from sklearn.tree import ExtraTreeClassifier


Leaves = NDArray[np.int32]

BLOCK = 2**21  # cells per block of rows in a walk
FEW = 2_000  # rows up to which threads cost more than they save
# Powers of two between which a column's largest value is safe in single precision. Others are
# rescaled: scikit-learn's trees treat values within 1e-7 of each other as equal.
ORDINARY = 60
SMALL = -10
FLOAT32 = float(np.finfo(np.float32).max) / 4.0  # the range of a column must not overflow


@storable("forest")
@dataclass(frozen=True, eq=False)
class Forest(Model):
    """Trees as arrays.

    Parameters
    ----------
    roots : ndarray of int of shape (n_trees + 1,)
        Index of each tree's first node, followed by the number of nodes.
    feature : ndarray of int of shape (n_nodes,)
        Column that a node compares; -1 in a leaf.
    threshold : ndarray of shape (n_nodes,)
        Thresholds of the comparisons.
    left, right : ndarray of int of shape (n_nodes,)
        Next node if the comparison is true and if it is false; in a leaf the node itself.
    value : ndarray of shape (n_nodes, n_classes)
        Class shares.
    importances : ndarray of shape (n_features,)
        Importances of the columns; they add up to 1, or are all 0.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: FloatArray
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    importances: FloatArray

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n = self.feature.size
        roots = self.roots
        check_numbers("forest: roots", roots, (None,))
        for name in ("feature", "left", "right"):
            check_numbers(f"forest: {name}", getattr(self, name), (n,))
        check_numbers("forest: value", self.value, (n, None), at_least=0)
        check_numbers("forest: importances", self.importances, (None,), at_least=0)
        if self.threshold.shape != (n,) or np.isnan(self.threshold).any():
            raise ValueError("forest: threshold must have one number per node")
        whole = roots.size >= 2 and roots[0] == 0 and roots[-1] == n and (np.diff(roots) >= 1).all()
        if not whole:
            raise ValueError("forest: roots must ascend from 0 to the number of nodes")
        number = np.arange(n)
        end = np.repeat(roots[1:], np.diff(roots))
        leaf = (self.feature == -1) & (self.left == number) & (self.right == number)
        inner = (self.feature >= 0) & (self.feature < self.importances.size)
        for child in (self.left, self.right):
            inner &= (child > number) & (child < end)
        if not (leaf | inner).all():
            raise ValueError("forest: a node leads out of its tree or compares an unknown column")

    def predict(self, X: Features) -> FloatArray:
        """Return the mean class shares of the leaves that rows fall into."""
        return self.leaf_means(self.leaves(X))

    def leaf_means(
        self, leaves: Leaves, trees: slice = slice(None), value: NDArray[np.float32] | None = None
    ) -> FloatArray:
        """Return the mean over `trees` of the samples' leaf values, class shares by default."""
        values = self.value if value is None else value
        out = np.zeros((leaves.shape[0], values.shape[1]))
        numbers = range(self.roots.size - 1)[trees]
        for t in numbers:
            # Much faster than indexing.
            out += values[self.roots[t] :].take(leaves[:, t], axis=0, mode="clip")
        return out / max(len(numbers), 1)

    def leaves(self, X: Features) -> Leaves:
        """Return the leaf of each sample in each tree, numbered within the tree."""
        asked = np.unique(self.feature[self.feature >= 0])
        column = np.searchsorted(asked, self.feature)
        size = np.abs(self.threshold[self.threshold != 0])
        wide = size.size and (size.max() > 2.0**ORDINARY or size.min() < 2.0**-ORDINARY)
        out = np.empty((X.shape[0], self.roots.size - 1), dtype=np.int32)
        step = max(1, BLOCK // max(1, asked.size))
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step][:, asked]
            # Trees were grown in single precision, which decides near a threshold.
            dense = rows.toarray() if isinstance(rows, sp.csr_array) else rows
            cells = _single_digits(dense) if wide else as_single(dense)
            for t in range(self.roots.size - 1):
                out[start : start + step, t] = self._walk(cells, column, t)
        return out

    def _walk(self, cells: NDArray[np.floating], column: NDArray[np.intp], t: int) -> Leaves:
        """Return the leaves of rows in tree t."""
        root = int(self.roots[t])
        node = np.full(cells.shape[0], root, dtype=np.int32)
        moving = np.arange(cells.shape[0])
        for _ in range(int(self.roots[t + 1]) - root):  # children come after their parents
            at = node[moving]
            inside = self.feature[at] >= 0
            if not inside.all():
                moving = moving[inside]
                at = at[inside]
            if moving.size == 0:
                break
            yes = cells[moving, column[at]] <= self.threshold[at]
            node[moving] = np.where(yes, self.left[at], self.right[at])
        return np.asarray(node - root)


def column_units(X: Features) -> NDArray[np.int32]:
    """Return the exponent of each column's largest value; 0 if the column needs no rescaling."""
    if sp.issparse(X):
        size = abs(X).max(axis=0).toarray().ravel()
    else:
        size = np.maximum(X.max(axis=0), -X.min(axis=0))
    exponent = np.frexp(size)[1]
    ordinary = (size == 0) | ((exponent >= SMALL) & (exponent <= ORDINARY))
    return np.where(ordinary, 0, exponent).astype(np.int32)


def as_single(X: Features, units: NDArray[np.int32] | None = None) -> Features:
    """Return X in units of ``2**units`` and in single precision, clipped to its range."""
    units = None if units is None or not units.any() else units
    if sp.issparse(X):
        X = sp.csr_array(X)
        data = X.data if units is None else np.ldexp(X.data, -units[X.indices])
        data = np.clip(data, -FLOAT32, FLOAT32).astype(np.float32)
        return sp.csr_array((data, X.indices, X.indptr), X.shape)
    with np.errstate(over="ignore"):
        cells = X if units is None else np.ldexp(X, -units)
    return np.clip(cells, -FLOAT32, FLOAT32).astype(np.float32)


def _single_digits(X: NDArray[np.floating]) -> FloatArray:
    """Round numbers of any size to the digits of single precision."""
    mantissa, exponent = np.frexp(X)
    return np.asarray(np.ldexp(mantissa.astype(np.float32).astype(np.float64), exponent))


@dataclass(frozen=True, eq=False)
class CrossForest:
    """A forest grown in groups of trees, each of which has never seen one fold of the labels.

    Parameters
    ----------
    trees : list of ExtraTreeClassifier
        Trees of scikit-learn, group by group.
    forest : Forest
        The same trees, in the units of the data.
    units : ndarray of int of shape (n_features,)
        Exponents of the powers of two that the columns were divided by.
    n_groups : int
        Number of groups: one per fold, or one if there are no folds.
    n_jobs : int
        Number of threads.
    columns : ndarray of int
        The column that each column of the trees is; repeated, so that the features of one column of
        a table are drawn as often as another column.
    """

    trees: list[ExtraTreeClassifier]
    forest: Forest
    units: NDArray[np.int32]
    n_groups: int
    n_jobs: int
    columns: NDArray[np.intp]

    def leaves(self, X: Features) -> Leaves:
        """Return the same as :meth:`Forest.leaves`, by the compiled code of scikit-learn."""
        A = as_single(X, self.units)
        jobs = self.n_jobs if X.shape[0] > FEW else 1
        if self.columns.size > A.shape[1]:
            A = A[:, self.columns]
        trees = map(attrgetter("tree_"), self.trees)
        found = in_threads(methodcaller("apply", A), trees, jobs)
        return np.array(found, dtype=np.int32).T  # contiguous per tree, as it is read

    def group(self, f: int) -> slice:
        """Return the positions of the trees that have not seen fold f."""
        size = len(self.trees) // self.n_groups
        return slice(f * size, (f + 1) * size)


def cross_forest(
    X: Features,
    codes: NDArray[np.integer],
    folds: NDArray[np.integer] | None,
    n_classes: int,
    options: CheckedOptions,
    n_trees: int,
) -> CrossForest:
    """Grow extremely randomised trees on labelled samples, one group per fold."""
    from sklearn.tree import ExtraTreeClassifier

    units = column_units(X)
    A = as_single(X, units)
    groups = options.feature_groups
    columns = np.arange(A.shape[1])
    if groups is not None and groups.size == A.shape[1] and not sp.issparse(A):
        columns = balanced_columns(groups)
        A = A[:, columns]
    # Rounding decides between splits of equal gain, and it depends on the order of the classes. So
    # the order must not depend on their names.
    place = by_appearance(codes)
    names = np.empty(n_classes, dtype=np.intp)
    names[place] = codes
    n_groups = 1 if folds is None else int(folds.max()) + 1
    trees: list[ExtraTreeClassifier] = []
    nodes = []
    roots = [0]
    jobs = effective_jobs(options.n_jobs)
    for f in range(n_groups):
        seen = slice(None) if folds is None else np.flatnonzero(folds != f)
        rows = A[seen]
        classes = place[seen][:, None]
        draw = np.random.RandomState(options.random_state + f)
        found = []
        for _ in range(max(1, n_trees // n_groups)):
            seed = draw.randint(np.iinfo(np.int32).max)
            found.append(ExtraTreeClassifier(max_features="sqrt", random_state=seed))
        in_threads(partial(_grow, rows, classes), found, jobs if codes.size > FEW else 1)
        trees += found
    importances = np.zeros((n_groups, X.shape[1]))
    for number, estimator in enumerate(trees):
        tree = estimator.tree_
        start = roots[-1]
        n = estimator.tree_.node_count
        importances[number * n_groups // len(trees)] += np.bincount(
            columns, tree.compute_feature_importances(), X.shape[1]
        )
        leaf = tree.children_left < 0
        itself = np.arange(start, start + n)
        value = np.zeros((n, n_classes), dtype=np.float32)
        value[:, names[estimator.classes_.astype(np.intp)]] = tree.value[:, 0, :]
        value /= value.sum(axis=1, keepdims=True)
        feature = columns[np.maximum(tree.feature, 0)]
        exponent = units[feature]
        with np.errstate(over="ignore"):  # an infinite threshold becomes the largest number
            threshold = np.nan_to_num(np.ldexp(tree.threshold, exponent))
        nodes.append(
            (
                np.where(leaf, -1, feature).astype(np.int32),
                np.where(leaf, 0.0, threshold),
                np.where(leaf, itself, tree.children_left + start).astype(np.int32),
                np.where(leaf, itself, tree.children_right + start).astype(np.int32),
                value,
            )
        )
        roots.append(start + n)
    features, threshold, left, right, values = map(np.concatenate, zip(*nodes, strict=True))
    totals = importances.sum(axis=1, keepdims=True)  # 0 if no split separates classes
    mean = np.mean(importances / np.where(totals > 0, totals, 1.0), axis=0)
    first = np.array(roots, dtype=np.int64)
    forest = Forest(first, features, threshold, left, right, values, mean)
    return CrossForest(trees, forest, units, n_groups, jobs, columns)


def _grow(X: Features, classes: NDArray[np.integer], tree: ExtraTreeClassifier) -> None:
    """Grow a tree as ExtraTreesClassifier does; skip checks that take longer than the tree."""
    from sklearn import config_context

    with config_context(skip_parameter_validation=True):
        tree.fit(X, classes, check_input=False)
