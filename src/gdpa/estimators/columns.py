"""The points that members look at, and how they are computed from new rows.

- :class:`Standardised`: columns of mean 0 and standard deviation 1.
- :class:`Whitened`: uncorrelated columns of the same variance.
- :class:`Leaves`: the leaves of a forest, or points whose inner products say how many leaves two
  samples share.
- :class:`SmoothedColumns`: features mixed with those of the neighbours in a graph.
- :class:`NeighborColumns`: a node's own features, and what is known about its neighbours.
- :class:`FewerWords`: words projected onto few directions before any of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..codec import check_numbers, storable
from ..graph.features import Features, check_features
from ..graph.forest import LeafEmbedding
from ..graph.rescale import Rescaler
from ..graph.smoothing import Smoother, unit_rows
from ..linalg.row_products import row_products
from .forest import Forest
from .members import Columns
from .sample_graph import SampleGraph

# Logarithms are taken of columns with a larger skewness. Chosen on 14 KEEL tables not used for
# other defaults, of 0.5, 1 and 2, and checked on 14 more.
SKEWED = 1.0
SKEWNESS_ROWS = 10_000  # rows from which the skewness is estimated
# Entries are clipped here before products, so that squares stay finite.
FAR = 1e150


def standard_scaling(X: Features) -> Rescaler:
    """Return the scaling to standard deviation 1 and, if the features are dense, to mean 0.

    Logarithms are taken of skewed dense columns first: a few extreme values would otherwise decide
    linear models, covariances and distances. Values are measured from the end where most of them
    are, in units of their median. So the result does not depend on the unit and the zero of a
    column, and columns with two values do not change.
    """
    logs = np.zeros((2, X.shape[1]))
    if isinstance(X, sp.csr_array):
        mean, scale, varies = _sparse_moments(X)
        skewness = np.zeros(X.shape[1])
    else:
        mean, scale, skewness, varies = _dense_moments(np.asarray(X))
    varies &= np.isfinite(scale) & np.isfinite(mean) & (scale > 0)
    for j in np.flatnonzero(varies & (np.abs(skewness) > SKEWED)):
        x = np.asarray(X[:, j], dtype=np.float64)
        origin = x.min() if skewness[j] > 0 else x.max()
        far = np.abs(x - origin)
        unit = float(np.median(far[far > 0]))
        with np.errstate(over="ignore"):
            x = np.copysign(np.log1p(np.minimum(far / unit, 1e300)), skewness[j])
        logs[:, j] = origin, unit
        mean[j] = x.mean()
        scale[j] = x.std()
    columns = varies if varies.any() else np.ones(X.shape[1], dtype=bool)
    return Rescaler(
        kind="standard",
        columns=columns,
        shift=np.where(varies, mean, 0.0)[columns],
        scale=np.where(varies, scale, 1.0)[columns],
        unit_norm=False,
        logs=logs[:, columns],
    )


def _sparse_moments(X: sp.csr_array) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return shifts (0, so that zeros stay zeros), deviations, and which columns vary."""
    with np.errstate(over="ignore"):
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    means = np.asarray(X.mean(axis=0)).ravel()
    scale = np.sqrt(np.maximum(squares - means * means, 0.0))
    return np.zeros(X.shape[1]), scale, scale > 1e-6 * np.sqrt(squares)


def _dense_moments(
    A: NDArray[np.floating],
) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return means, deviations and skewness of the columns, and which of them vary."""
    varies = A.max(axis=0) > A.min(axis=0)
    with np.errstate(all="ignore"):
        mean = A.mean(axis=0, dtype=np.float64)
        scale = A.std(axis=0, dtype=np.float64)
        part = A[:: max(1, A.shape[0] // SKEWNESS_ROWS)]
        skewness = (((part - mean) / scale) ** 3).mean(axis=0)
    return mean, scale, skewness, varies


def rescale_columns(scaling: Rescaler, X: Features) -> Features:
    """Return rescaled features; sparse ones stay sparse."""
    if isinstance(X, np.ndarray):
        return scaling.transform(X)
    with np.errstate(over="ignore"):
        Z = sp.csr_array(X[:, scaling.columns] @ sp.diags_array(1.0 / scaling.scale))
    Z.data = np.clip(Z.data, -1e300, 1e300)  # no infinite entries
    return Z


@storable("standardised")
@dataclass(frozen=True, eq=False)
class Standardised(Columns):
    """Standardised columns.

    Parameters
    ----------
    scaling : Rescaler
        Shift and scale of the columns.
    """

    scaling: Rescaler

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return standardised rows."""
        assert X is not None
        return rescale_columns(self.scaling, X)


@storable("whitened")
@dataclass(frozen=True, eq=False)
class Whitened(Columns):
    """Whitened columns: uncorrelated, with the same variance.

        Z -> (Z - mean) V (D + floor)^-1/2,   cov(Z) = V D V^T

    Without whitening, several correlated columns outweigh a single one. After whitening all
    directions count equally, including those of small variance, in which classes often differ.

    Parameters
    ----------
    scaling : Rescaler
        Shift and scale of the columns.
    mix : ndarray of shape (n_kept, n_mixed)
        Linear map of the scaled columns.
    """

    scaling: Rescaler
    mix: FloatArray

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("mix", self.mix, (int(self.scaling.scale.size), None))

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return whitened rows."""
        assert X is not None
        points = rescale_columns(self.scaling, X)
        return row_products(np.clip(points, -FAR, FAR), self.mix)


@storable("leaves")
@dataclass(frozen=True, eq=False)
class Leaves(Columns):
    """Leaves of a forest.

    Parameters
    ----------
    forest : Forest
        The forest.
    embedding : LeafEmbedding or None
        Points that replace the leaves; None for the leaves themselves.
    """

    forest: Forest
    embedding: LeafEmbedding | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        if self.embedding is not None:
            first = self.embedding.first
            check_numbers("first", first, (self.forest.roots.size,))
            check_numbers("vectors", self.embedding.vectors, (int(first[-1]), None))
            if first[0] != 0 or (np.diff(first) <= 0).any():
                raise ValueError("the leaves' points do not fit the forest")

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return the leaves of rows, or their points."""
        assert X is not None
        leaves = self.forest.leaves(X)
        return leaves if self.embedding is None else self.embedding.transform(leaves)


@storable("smoothed columns")
@dataclass(frozen=True, eq=False)
class SmoothedColumns(Columns):
    """Features smoothed along a graph.

    Parameters
    ----------
    smoother : Smoother
        The graph and the features of its nodes.
    pull : float
        Weight of the neighbours.
    steps : int
        Number of steps.
    nearest : SampleGraph or None
        The neighbour graph that new rows are attached to; None if the user gave links.
    """

    smoother: Smoother
    pull: float
    steps: int
    nearest: SampleGraph | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        if not (0 <= self.pull <= 1 and 0 <= self.steps <= 100):
            raise ValueError(
                f"pull={self.pull!r} must be in [0, 1], steps={self.steps!r} in [0, 100]"
            )

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return smoothed features of new rows."""
        if self.nearest is not None:
            assert X is not None
            links = self.nearest.attach(X)[0]
        return self.smoother.new_points(X, links, self.pull, self.steps)


@storable("neighbour columns")
@dataclass(frozen=True, eq=False)
class NeighborColumns(Columns):
    """Columns that describe a node and its neighbours.

    They are the node's own features, the mean of its neighbours' features, the logarithm of the
    number of its links and, if `with_labels`, the class shares among the labelled nodes one and two
    links away. A node's own label is never counted.

    Parameters
    ----------
    smoother : Smoother
        Links and features.
    targets : ndarray of shape (n_nodes, n_classes)
        Class indicators of the labelled nodes; 0 for others.
    with_labels : bool
        Whether there are columns for the labels.
    """

    smoother: Smoother
    targets: FloatArray
    with_labels: bool = True

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("targets", self.targets, (self.smoother.W.shape[0], None), at_least=0)

    @cached_property
    def across(self) -> sp.csr_array:
        """Links, divided by the sum of each row."""
        return link_shares(self.smoother, self.smoother.W)

    def _extra(self, P: sp.csr_array, near: FloatArray, far: FloatArray) -> FloatArray:
        """Return the columns other than features, before scaling."""
        degree = np.log1p(np.diff(P.indptr))[:, None]
        return np.hstack([degree, near, far]) if self.with_labels else degree

    @cached_property
    def _node_extra(self) -> tuple[FloatArray, FloatArray]:
        """The columns of all nodes other than features, and their standard deviations."""
        P = self.across
        back = np.asarray(P.multiply(P.T).sum(axis=1)).ravel()
        near = P @ self.targets
        extra = self._extra(P, near, P @ near - back[:, None] * self.targets)
        deviation = extra.std(axis=0)
        return extra, np.where(deviation > 1e-12, deviation, 1.0)

    def _join(self, own: Features, mean: Features, extra: FloatArray) -> Features:
        """Return all columns side by side."""
        extra = extra / self._node_extra[1]
        if isinstance(own, np.ndarray):
            return np.hstack([own, mean, extra])
        return check_features(sp.hstack([own, mean, sp.csr_array(extra)]))

    def all_rows(self, mean: Features) -> Features:
        """Return the columns of all nodes, given the mean features of their neighbours."""
        return self._join(self.smoother.start, mean, self._node_extra[0])

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return the columns of new rows; the neighbours' mean replaces missing features."""
        if links is None:
            assert X is not None
            links = sp.csr_array((X.shape[0], self.targets.shape[0]))
        P = link_shares(self.smoother, links)
        mean = neighbor_mean(P, self.smoother.start)
        extra = self._extra(P, P @ self.targets, P @ (self.across @ self.targets))
        return self._join(mean if X is None else self.smoother.first(X), mean, extra)


@storable("fewer words")
@dataclass(frozen=True, eq=False)
class FewerWords(Columns):
    """Words projected onto few directions, and columns that are computed from the projections.

    Words are weighted by their rarity, rows are scaled to unit length, and the directions are the
    leading right singular vectors of the samples' rows.

    Parameters
    ----------
    rarity : ndarray of shape (n_features,)
        Weights of the words.
    directions : ndarray of shape (n_features, n_kept)
        The directions.
    inner : Columns or None
        What is computed from the projections; None for the projections themselves.
    """

    rarity: FloatArray
    directions: FloatArray
    inner: Columns | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        check_numbers("rarity", self.rarity, (None,), at_least=0)
        check_numbers("directions", self.directions, (self.rarity.size, None))

    def project(self, X: Features) -> FloatArray:
        """Return the projections of rows."""
        rows = unit_rows(sp.csr_array(X, dtype=np.float64) @ sp.diags_array(self.rarity))
        return np.asarray(rows @ self.directions)

    def new(self, X: Features | None, links: sp.csr_array | None) -> Features:
        """Return the columns of new rows."""
        projected = None if X is None else self.project(X)
        if self.inner is None:
            assert projected is not None
            return projected
        return self.inner.new(projected, links)

    @classmethod
    def fit(cls, X: sp.csr_array, count: int, random_state: int) -> FewerWords:
        """Find the directions by a randomised singular value decomposition."""
        from sklearn.utils.extmath import randomized_svd

        n, d = X.shape
        rarity = 1.0 + np.log((1.0 + n) / (1.0 + np.bincount(X.indices, minlength=d)))
        rows = unit_rows(sp.csr_array(X, dtype=np.float64) @ sp.diags_array(rarity))
        count = min(count, n - 1, d - 1)
        found = randomized_svd(rows, count, n_iter=2, random_state=random_state)
        return cls(rarity, np.asarray(found[2].T, dtype=np.float64))


def link_shares(smoother: Smoother, links: sp.csr_array) -> sp.csr_array:
    """Return links divided by the sum of each row."""
    links = smoother.relative(links)
    total = np.asarray(links.sum(axis=1)).ravel()
    return sp.csr_array(sp.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ links)


def neighbor_mean(P: sp.csr_array, features: Features) -> Features:
    """Return the mean of the neighbours' features; sparse rows are scaled to unit length."""
    mean = P @ features
    return unit_rows(mean) if sp.issparse(mean) else mean
