"""Several classes on one graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph.adjacency import connected_to
from .graph_problem import GraphProblem, graph_problem

__all__ = ["ClassProblem"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassProblem:
    """Classes on one graph: each of them against the rest is a :class:`GraphProblem`.

    Nothing is checked: it is what the classifier makes of features and labels that it has checked.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        Symmetric, non-negative weights in canonical form.
    codes : ndarray of int of shape (n_nodes,)
        Class numbers, -1 where the label is unknown.
    n_classes : int
        Number of classes.
    laplacian : {"combinatorial", "normalized"}
        Which Laplacian measures smoothness.
    adjacency, diagonal
        Its parts, ``L = diag(diagonal) - adjacency``.
    evidence : ndarray of shape (n_nodes, n_classes), optional
        Probabilities T that every node is tied to.
    evidence_weight : float, default=0
        How strongly.
    """

    W: sp.csr_array
    codes: NDArray[np.int32]
    n_classes: int
    laplacian: str
    adjacency: sp.csr_array
    diagonal: FloatArray
    evidence: FloatArray | None = None
    evidence_weight: float = 0.0

    signed: ClassVar[bool] = False

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.diagonal.size)

    @cached_property
    def labeled(self) -> NDArray[np.intp]:
        """Indices of the labelled nodes, ascending."""
        return np.flatnonzero(self.codes >= 0)

    @cached_property
    def targets(self) -> FloatArray:
        """One row per label: 1 in the column of its class."""
        return np.asarray(np.eye(self.n_classes)[self.codes[self.labeled]])

    @property
    def judged(self) -> range:
        """The classes with a record of their own: with two, the second says all."""
        return range(1, 2) if self.n_classes == 2 else range(self.n_classes)

    @property
    def pull(self) -> FloatArray | None:
        """Evidence ``e T`` as it enters the system; None without."""
        if self.evidence is None or self.evidence_weight == 0:
            return None
        return np.asarray(self.evidence_weight * self.evidence)

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """Which nodes are connected to a label or to evidence."""
        if self.pull is not None:
            return np.ones(self.n_nodes, dtype=bool)
        return connected_to(self.W, self.codes >= 0)

    def against_rest(self, c: int) -> GraphProblem:
        """Class `c` as +1, every other as -1."""
        labels = np.where(self.codes < 0, 0, np.where(self.codes == c, 1, -1)).astype(np.int8)
        bias = np.zeros(self.n_nodes)
        if self.pull is not None:
            bias = 2.0 * self.pull[:, c] - self.pull.sum(axis=1)
        parts = (self.adjacency, self.diagonal)
        return graph_problem(self.W, labels, bias, self.laplacian, parts)
