"""A graph that can be indexed by rows, so that cross-validation splits it with the samples.

scikit-learn selects rows of every array that accompanies X. For an adjacency matrix the columns
must be selected, too: those of the same rows for a fit, those of the fitted nodes for a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .adjacency import MatrixLike, check_adjacency
from .convert import NamedGraph


@dataclass(frozen=True, init=False, eq=False)
class Links:
    """Links between samples, or between some of them.

    Parameters
    ----------
    W : array-like, sparse matrix or NamedGraph of shape (n_nodes, n_nodes)
        Symmetric non-negative weights of all nodes. For a NetworkX graph pass
        ``from_networkx(G, nodes=...)``, with the nodes in the order of the rows.
    nodes : array-like of int, optional
        The selected nodes; all by default. ``links[rows]`` selects some of them.

    Examples
    --------
    >>> from gdpa.graph import Links
    >>> links = Links([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> links[[0, 2]].shape
    (2, 2)
    >>> links[[1]].to(links[[0, 2]]).toarray().tolist()
    [[1.0, 2.0]]
    """

    W: sp.csr_array
    nodes: NDArray[np.intp]

    def __init__(self, W: MatrixLike | NamedGraph, nodes: ArrayLike | None = None) -> None:
        checked = W if isinstance(W, sp.csr_array) and nodes is not None else None
        if checked is None:
            weights = W.W if isinstance(W, NamedGraph) else W
            checked = check_adjacency(weights, name="adjacency")
        n = checked.shape[0]
        chosen = np.arange(n) if nodes is None else np.array(nodes, dtype=np.intp)
        if chosen.ndim != 1 or (chosen.size and not (0 <= chosen.min() <= chosen.max() < n)):
            raise ValueError(f"nodes must be node numbers from 0 to {n - 1}")
        object.__setattr__(self, "W", checked)
        object.__setattr__(self, "nodes", chosen)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix of links between the selected nodes."""
        return (self.nodes.size, self.nodes.size)

    def __len__(self) -> int:
        return int(self.nodes.size)

    def __getitem__(self, rows: Any) -> Links:
        return Links(self.W, self.nodes[rows])

    def among(self) -> sp.csr_array:
        """Return the graph of the selected nodes."""
        if self.nodes.size == self.W.shape[0] and (np.diff(self.nodes) == 1).all():
            return self.W
        return sp.csr_array(self.W[self.nodes][:, self.nodes])

    def to(self, others: Links) -> sp.csr_array:
        """Return the links from the selected nodes to other nodes of the same graph."""
        return sp.csr_array(self.W[self.nodes][:, others.nodes])
