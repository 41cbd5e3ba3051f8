"""What a classifier is given, checked: features, a graph, links beside features."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from ..errors import DegenerateProblemWarning
from ..graph import Links
from .graphs import check_rows, given_weights, precomputed_graph

__all__ = ["Checking"]


class Checking:
    """Checks of what `fit` and `predict` are given."""

    laplacian: str
    n_features_in_: int
    _links: Links | None = None

    def _check_precomputed(self, X: Any) -> Any:
        if sp.issparse(X) or isinstance(X, np.ndarray) or hasattr(X, "iloc"):
            A = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        else:
            A = precomputed_graph(X, self.laplacian).W
            self.n_features_in_ = A.shape[1]
        if A.shape[0] != A.shape[1]:
            raise ValueError(
                f"graph='precomputed' needs a square matrix of weights, X has shape {A.shape}"
            )
        return A

    def _check_links(self, adjacency: Any, n: int) -> sp.csr_array:
        """A graph of the fitted samples; what goes through cross-validation is kept."""
        self._links = adjacency if isinstance(adjacency, Links) else None
        if isinstance(adjacency, Links):
            W = adjacency.among()
        else:
            shape: Any = getattr(adjacency, "shape", ())
            if len(shape) == 2 and shape[0] == n != shape[1] > 3:
                raise ValueError(
                    f"adjacency has shape {shape}: its rows were picked, its columns not; for "
                    "cross-validation give gdpa.graph.Links(W), which picks both"
                )
            W = given_weights(adjacency, "adjacency", n)
        if W.shape[0] != n:
            raise ValueError(
                f"adjacency has {W.shape[0]} nodes, X has {n} rows; one each is needed"
            )
        if not W.nnz:
            warnings.warn(
                "adjacency has no links; the features decide alone",
                DegenerateProblemWarning,
                stacklevel=4,
            )
        return W

    def _check_new_links(self, adjacency: Any, n_rows: int | None, n_nodes: int) -> sp.csr_array:
        """Links of new rows to the fitted samples."""
        if isinstance(adjacency, Links):
            if self._links is None:
                raise ValueError("adjacency=Links needs a fit with Links of the same graph")
            links = adjacency.to(self._links)
        else:
            links = check_rows(adjacency, name="adjacency")
        wanted = (links.shape[0] if n_rows is None else n_rows, n_nodes)
        if links.shape != wanted:
            raise ValueError(
                f"adjacency has shape {links.shape}; links of new rows to the fitted samples have "
                f"shape {wanted}"
            )
        return links
