"""Choose the samples to label next.

The strategies are:

- *auto*: among random candidates, the sample with the largest product of variance given the labels
  and uncertainty (:mod:`gdpa.estimators.strategies`); *representatives* before the first label.
- *representatives*: the nodes nearest to cluster centres.
- *random*: uniformly at random.

Components without a label come first, and no two samples of a batch are redundant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..checks import check_positive
from ..errors import nearest_name
from .sketch import sketch_graph
from .strategies import choose_informative, lead, representatives

STRATEGIES = ("auto", "representatives", "random")
# Maximum number of rows that k-means clusters; more are subsampled.
CLUSTERED = 20_000


def query_nodes(
    W: sp.csr_array,
    points: Any,
    probabilities: FloatArray | None,
    labeled: NDArray[np.intp],
    aside: NDArray[np.intp],
    n: int,
    strategy: str,
    *,
    seed: int = 0,
) -> NDArray[np.intp]:
    """Choose unlabelled nodes to label next.

    Parameters
    ----------
    W : csr_array of shape (n_nodes, n_nodes)
        The graph.
    points : ndarray, csr_array or None
        Features of the nodes on comparable scales, if there are any.
    probabilities : ndarray of shape (n_nodes, n_classes) or None
        Predicted probabilities; None before the first fit.
    labeled : ndarray of int
        Nodes with a label.
    aside : ndarray of int
        Nodes that the user skipped.
    n : int
        Maximum number of nodes.
    strategy : {"auto", "representatives", "random"}
        Strategy.
    seed : int, default=0
        Random seed.

    Returns
    -------
    ndarray of int
        The chosen nodes, best first.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy={strategy!r}; {nearest_name(strategy, list(STRATEGIES))}")
    open_nodes = np.ones(W.shape[0], dtype=bool)
    open_nodes[labeled] = open_nodes[aside] = False
    free = np.flatnonzero(open_nodes)
    n = min(check_positive(n, "n", 1), free.size)
    rng = np.random.default_rng([seed, labeled.size])
    if n == 0 or strategy == "random":
        return rng.permutation(free)[:n]
    if strategy == "auto" and (probabilities is None or labeled.size == 0):
        strategy = "representatives"
    if strategy == "representatives" and points is not None:
        few = free if free.size <= CLUSTERED else np.sort(rng.choice(free, CLUSTERED, False))
        return _filled(few[representatives(points[few], n, seed=seed)], free, n, rng)
    sketch = sketch_graph(W, seed=seed)
    known = np.unique(sketch.place[labeled])
    field = sketch.given(known)
    doubt = np.ones(W.shape[0]) if probabilities is None else 1.0 - lead(probabilities)
    # Sampled nodes represent the nodes around them.
    stand = np.setdiff1d(np.flatnonzero(open_nodes[sketch.rows]), known)
    picks = choose_informative(field, sketch.components, known, stand, doubt[sketch.rows], n, rng)
    return _filled(sketch.rows[picks], free, n, rng)


def _filled(
    chosen: NDArray[np.intp], free: NDArray[np.intp], n: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Extend a choice to `n` nodes by random ones."""
    if chosen.size >= n:
        return chosen[:n]
    rest = np.setdiff1d(free, chosen)
    return np.concatenate([chosen, rng.permutation(rest)[: n - chosen.size]])
