"""Several classes on one graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from .graph_problem import GraphProblem, graph_problem


@dataclass(frozen=True, eq=False)
class ClassProblem:
    """Several classes on one graph; each class against the rest is a :class:`GraphProblem`.

    The parameters are not validated, because the classifier has already checked them.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        Symmetric, non-negative weights in canonical form.
    laplacian : {"combinatorial", "normalized"}
        Which Laplacian measures smoothness.
    adjacency, diagonal
        Its parts, ``L = diag(diagonal) - adjacency``.
    labeled : ndarray of int of shape (n_labeled,)
        Labelled nodes, ascending.
    targets : ndarray of shape (n_labeled, n_classes)
        1 in the column of the label's class.
    """

    W: sp.csr_array
    laplacian: str
    adjacency: sp.csr_array
    diagonal: FloatArray
    labeled: NDArray[np.intp]
    targets: FloatArray

    def against_rest(self, c: int) -> GraphProblem:
        """Return the binary problem with class `c` as +1 and all others as -1."""
        labels = np.zeros(self.diagonal.size, dtype=np.int8)
        labels[self.labeled] = np.where(self.targets[:, c] > 0, 1, -1)
        bias = np.zeros(self.diagonal.size)
        return graph_problem(self.W, labels, bias, self.laplacian, (self.adjacency, self.diagonal))
