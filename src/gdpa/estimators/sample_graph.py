"""A graph of the samples: how it is built, its Laplacian, and how new rows are attached to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray, unmasked
from ..codec import check_numbers, storable
from ..graph import full_graph
from ..graph.adjacency import check_adjacency, degrees, laplacian_parts
from ..graph.features import BoundingBox, Features, check_features
from ..graph.forest import leaf_weights
from ..graph.kernels import distances, node_scales
from ..graph.neighbor_graph import (
    SCALE_NEIGHBOR,
    NeighborGraph,
    check_bandwidth,
    kernel_weights,
    local_scales,
    neighbor_graphs,
)
from ..memory import check_memory
from ..problem import ClassProblem
from ..solvers.registry import get_solver
from ..system import LabeledSystem, ReorderedGraph
from .labels import LabelCoding
from .options import CheckedOptions, Laplacian
from .tuning import Setting


@storable("graph")
@dataclass(frozen=True, eq=False)
class SampleGraph:
    """A graph of the samples, its Laplacian, and the data needed to attach new rows.

    Parameters
    ----------
    kind : {"knn", "full", "precomputed", "forest"}
        How the graph was built.
    W : csr_array of shape (n_samples, n_samples)
        Weights.
    laplacian : {"normalized", "combinatorial"}
        Kind of the Laplacian ``diag(diagonal) - adjacency``.
    neighbors : NeighborGraph or None
        Neighbour search of a k-nearest-neighbour graph.
    points, scales, bandwidth
        Features and bandwidths of a full graph.
    leaves, kept
        Leaves of the samples, and edges kept per sample, of a forest graph.
    """

    kind: Literal["knn", "full", "precomputed", "forest"]
    W: sp.csr_array
    laplacian: Laplacian
    neighbors: NeighborGraph | None = field(default=None, repr=False)
    points: NDArray[np.floating] | sp.csr_array | None = field(default=None, repr=False)
    scales: FloatArray | None = field(default=None, repr=False)
    bandwidth: str | float | None = None
    leaves: NDArray[np.integer] | None = field(default=None, repr=False)
    kept: int | None = None

    @cached_property
    def signed(self) -> bool:
        """Whether a weight is negative."""
        return bool(self.W.data.min(initial=0.0) < 0)

    @cached_property
    def _laplacian_parts(self) -> tuple[sp.csr_array, FloatArray]:
        """Adjacency and diagonal of the Laplacian."""
        return laplacian_parts(self.W, self.laplacian, signed=self.signed)

    @property
    def adjacency(self) -> sp.csr_array:
        """Off-diagonal part of the Laplacian, with the opposite sign."""
        return self._laplacian_parts[0]

    @property
    def diagonal(self) -> FloatArray:
        """Diagonal of the Laplacian."""
        return self._laplacian_parts[1]

    @cached_property
    def unit(self) -> float:
        """Mean diagonal, the unit of self-loops."""
        # Divided by the largest entry first, because the sum may overflow.
        top = float(self.diagonal.max(initial=0.0))
        return top * float((self.diagonal / top).mean()) if top > 0 else 1.0

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.W.shape[0])

    @property
    def n_neighbors(self) -> int | None:
        """Number of neighbours per sample; None if the graph is not a neighbour graph."""
        return self.kept if self.neighbors is None else self.neighbors.n_neighbors

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n = self.W.shape[0]
        check_adjacency(self.W, name="W", signed=self.kind == "precomputed")
        parts = {"knn": self.neighbors, "full": self.points, "forest": self.leaves}
        if any((part is not None) != (kind == self.kind) for kind, part in parts.items()):
            raise ValueError(f"a {self.kind} graph lacks a part or has one too many")
        if self.neighbors is not None and self.neighbors.W.shape != self.W.shape:
            raise ValueError("the neighbours are not those of the graph")
        if self.points is not None and (self.scales is None or self.bandwidth is None):
            raise ValueError("a full graph needs scales and a bandwidth")
        if self.scales is not None and self.points is not None:
            check_features(self.points, name="points")
            check_numbers("scales", self.scales, (n,), at_least=np.finfo(float).tiny)
            check_bandwidth(self.bandwidth)
            if self.points.shape[0] != n:
                raise ValueError("the points are not those of the graph")
        if self.leaves is not None:
            check_numbers("leaves", self.leaves, (n, None), at_least=0)
            if self.kept is None or self.kept < 1:
                raise ValueError(f"kept={self.kept!r} must be at least 1")

    @property
    def features(self) -> Features | None:
        """Features in which neighbours are searched."""
        return self.points if self.neighbors is None else self.neighbors.index.X

    @cached_property
    def degrees(self) -> FloatArray:
        """Row sums of the absolute weights."""
        return degrees(abs(self.W) if self.signed else self.W)

    def problem(self, labels: LabelCoding) -> ClassProblem:
        """Return the labelled problem on this graph for the solvers."""
        known = labels.labeled
        targets = np.eye(labels.classes.size)[labels.codes[known]]
        parts = (self.W, self.laplacian, self.adjacency, self.diagonal)
        return ClassProblem(*parts, known, targets)

    def system(
        self,
        labeled: NDArray[np.intp],
        targets: FloatArray,
        setting: Setting,
        options: CheckedOptions,
        arranged: ReorderedGraph | None = None,
        *,
        evidence: FloatArray | None = None,
        evidence_weight: float = 0.0,
    ) -> LabeledSystem:
        """Return the labelled system; optional evidence pulls every sample to probabilities."""
        loop = setting.self_loop
        if loop == 0 and evidence is None:
            # Without a label the system of a component is singular. This makes its scores 0.
            loop = 1e-12 * self.unit
        return LabeledSystem(
            self.adjacency,
            self.diagonal,
            labeled,
            targets,
            label_weight=setting.label_weight,
            self_loop=loop,
            evidence=None if evidence is None else evidence_weight * evidence,
            evidence_weight=evidence_weight,
            arranged=arranged,
            policy=options.policy,
            n_jobs=options.n_jobs,
        )

    def attach(self, X: Features) -> tuple[sp.csr_array, sp.csr_array | None]:
        """Return the weights between new rows and samples, and which of them coincide.

        The second result is None for a precomputed graph, whose rows are weights, and for a forest
        graph, whose rows are leaves.
        """
        if self.kind == "precomputed":
            return check_link_rows(X), None
        if self.leaves is not None:
            return leaf_weights(X, self.leaves, self.kept or 1), None
        near = self.neighbors
        weights = self._attach_full(X) if near is None else near.attach(X)
        return weights, _coincident(weights, X, self.features)

    def _attach_full(self, X: Features) -> sp.csr_array:
        assert self.scales is not None
        check_memory(
            40.0 * X.shape[0] * self.n_nodes,
            f"the weights of {X.shape[0]} new rows in a full graph of {self.n_nodes} nodes",
            "predict in parts or use graph='knn'",
        )
        d, unit = distances(BoundingBox.of(self.points).project(X), self.points)
        if self.bandwidth == "self-tuning":
            k = min(SCALE_NEIGHBOR, d.shape[1])
            nearest = np.sort(np.partition(d, k - 1, axis=1)[:, :k], axis=1)
            scales = local_scales(nearest, fallback=float(np.median(self.scales)) / unit)
        else:
            scales = np.full(d.shape[0], self.scales[0] / unit)
        weights = kernel_weights(d, scales[:, None], self.scales[None, :] / unit, floor=False)
        return sp.csr_array(weights)


def graph_candidates(
    X: Features, options: CheckedOptions, counts: Sequence[int]
) -> list[SampleGraph]:
    """Build the graph of the features, or one graph for each number of neighbours."""
    laplacian = options.laplacian
    if options.graph == "precomputed":
        return [given_graph(X, laplacian)]
    if options.graph == "full":
        n = X.shape[0]
        width = options.bandwidth
        # Measured: the graph, its Laplacian and the systems of the tuning, then the method.
        per_pair = 45.0 + 0.5 * get_solver(options.method).bytes_per_edge
        check_memory(
            per_pair * n * n, f"the full graph of {n} nodes", "use graph='knn', which is sparse"
        )
        W = check_adjacency(full_graph(X, bandwidth=width, n_jobs=options.n_jobs))
        scales = node_scales(X, width, n_jobs=options.n_jobs)
        return [SampleGraph("full", W, laplacian, None, X, scales, width)]
    built = neighbor_graphs(
        X,
        counts,
        bandwidth=options.bandwidth,
        algorithm=options.algorithm,
        n_jobs=options.n_jobs,
        random_state=options.random_state,
        policy=options.policy,
    )
    return [SampleGraph("knn", near.W, laplacian, near) for near in built]


def given_graph(W: sp.csr_array, laplacian: Laplacian) -> SampleGraph:
    """Return the graph of checked weights given by the user."""
    return SampleGraph("precomputed", W, laplacian)


def check_link_rows(X: Any, name: str = "X") -> sp.csr_array:
    """Validate the weights of new rows to the fitted samples."""
    # Converted to float64 first: sums of duplicates could overflow small integers.
    given = X.astype(np.float64) if isinstance(X, sp.sparray | sp.spmatrix) else unmasked(X)
    rows = sp.csr_array(given, dtype=np.float64)
    rows.sum_duplicates()
    if rows.nnz and (not np.isfinite(rows.data).all() or rows.data.min() < 0):
        raise ValueError(f"{name} holds weights to the fitted nodes: they must be finite and >= 0")
    rows.eliminate_zeros()
    return rows


def _coincident(weights: sp.csr_array, X: Features, points: Features | None) -> sp.csr_array:
    """Return which stored weights belong to a sample with exactly the same features."""
    # A weight of 1 does not imply equal features, so features of near pairs are compared.
    near = weights.data > 1.0 - 1e-6
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))[near]
    columns = weights.indices[near]
    if rows.size == 0:
        equal = np.zeros(0, dtype=bool)
    elif sp.issparse(X) or sp.issparse(points):
        difference = sp.csr_array(X)[rows] - sp.csr_array(points)[columns]
        equal = np.asarray(abs(difference).max(axis=1).toarray()).ravel() == 0
    else:
        equal = (np.asarray(X)[rows] == np.asarray(points)[columns]).all(axis=1)
    return sp.csr_array(
        (np.ones(int(equal.sum())), (rows[equal], columns[equal])), shape=weights.shape
    )
