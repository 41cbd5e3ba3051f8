"""A graph prepared for several solves: its nodes in an order in which neighbours are near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray

from ..linalg.operator import Matrix
from ..linalg.ordering import near_order, permuted
from ..linalg.threads import effective_jobs
from ..policy import DEFAULT_POLICY, Policy

__all__ = ["Arranged", "arrange"]


@dataclass(frozen=True, eq=False)
class Arranged:
    """An adjacency prepared for several solves, its nodes in an order that the cache likes.

    Parameters
    ----------
    matrix : Matrix
        The adjacency, in `order`.
    order : ndarray of int, optional
        Node of each row; as given by default.
    """

    matrix: Matrix
    order: NDArray[Any] | None = None


def arrange(
    adjacency: sp.csr_array,
    order: Any = None,
    policy: Policy = DEFAULT_POLICY,
    n_jobs: int | None = None,
) -> Arranged:
    """Prepare an adjacency for several solves: what it costs to look through it is paid once.

    Parameters
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        Symmetric, as :func:`gdpa.graph.laplacian_parts` gives it.
    order : array-like of int of shape (n_nodes,), optional
        An order of the nodes in which neighbours are near each other, if one is known.
    policy : Policy
        From how many rows on an order pays.
    n_jobs : int, optional
        Threads.

    Returns
    -------
    Arranged
        For `arranged` of :class:`~gdpa.system.LabeledSystem`. Scores do not depend on it beyond
        rounding.
    """
    near = None
    if adjacency.shape[0] >= policy.order_rows:
        near = near_order(adjacency, order, policy)
    if near is not None:
        adjacency = permuted(adjacency, near, n_jobs=effective_jobs(n_jobs))
    return Arranged(Matrix(adjacency, checked=True, policy=policy), near)
