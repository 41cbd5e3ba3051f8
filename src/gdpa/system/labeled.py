"""The labelled linear system of graph-based classification.

    (L + diag(a + gamma + e)) F = a Y + e T

L is a graph Laplacian ``diag(diagonal) - A``, a the weight of the labels Y on labelled nodes, gamma
a self-loop that keeps their influence local, and e the weight of evidence T on all nodes. With an
infinite label weight, labels are kept: their rows are removed from the system, and ``A_ul Y`` moves
to the right-hand side. Limits: ``a = inf, gamma = 0`` is the harmonic function, ``gamma -> inf``
the one-step vote, and ``a -> 0``, with the constant removed, Poisson learning.

Iterations use products with the graph, because building the matrix costs as much as dozens of
products. The matrix is built only if more than a fourth of the nodes keep a label, or if a
preconditioner needs it.

A product with a large sparse matrix reads the vector at the neighbours of each row, which are often
not in the cache. So large graphs are reordered to bring neighbours together (:func:`arrange`);
``benchmarks/case_products.py`` measures the gain.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from ..arrays import FloatArray, NDArray
from ..errors import ConvergenceWarning
from ..linalg.operator import Difference, Matrix
from ..linalg.preconditioners import PreconditionerLike
from ..linalg.spd import SPDResult, solve_spd
from ..policy import DEFAULT_POLICY, Policy

# A graph is reordered if, of a sample of entries, fewer than NEAR_SHARE are within NEAR * n of the
# diagonal: 4 % are in a random order, 34 % in a breadth-first order (neighbours in 8 dimensions).
SAMPLE = 10_000
NEAR = 1 / 50
NEAR_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class ReorderedGraph:
    """An adjacency prepared for several solves, with its nodes in a cache-friendly order.

    Parameters
    ----------
    matrix : Matrix
        The adjacency, in `order`.
    order : ndarray of int, optional
        Node of each row; the original order by default.
    """

    matrix: Matrix
    order: NDArray[np.int32] | None = None


def is_scattered(A: sp.csr_array) -> bool:
    """Return whether few entries are near the diagonal, judged by a sample."""
    entries = np.linspace(0, max(A.nnz - 1, 0), min(SAMPLE, A.nnz)).astype(np.int64)
    rows = np.searchsorted(A.indptr, entries, side="right") - 1
    near = np.abs(rows - A.indices[entries].astype(np.int64)) < NEAR * A.shape[0]
    return bool(near.size and near.mean() < NEAR_SHARE)


def arrange(adjacency: sp.csr_array, policy: Policy = DEFAULT_POLICY) -> ReorderedGraph:
    """Prepare an adjacency for several solves, so that it is analysed only once.

    Parameters
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        Symmetric adjacency from :func:`gdpa.graph.adjacency.laplacian_parts`.
    policy : Policy
        Number of rows from which reordering pays.

    Returns
    -------
    ReorderedGraph
        The argument `arranged` of :class:`~gdpa.system.LabeledSystem`. It changes scores only by
        rounding.
    """
    n = adjacency.shape[0]
    order = None
    if policy.order_rows <= n < 2**31 and is_scattered(adjacency):
        start = int(np.argmax(np.diff(adjacency.indptr)))
        first = breadth_first_order(adjacency, start, return_predecessors=False)
        others = np.ones(n, dtype=bool)
        others[first] = False  # nodes of other components keep their order
        order = np.concatenate([first, np.flatnonzero(others)]).astype(np.int32)
        # Put rows of equal length together, which helps branch prediction.
        window = 1024
        whole = n - n % window
        lengths = np.minimum(np.diff(adjacency.indptr), 2**16 - 1).astype(np.uint16)
        places = np.argsort(lengths[order[:whole]].reshape(-1, window), axis=1, kind="stable")
        order[:whole] = np.take_along_axis(order[:whole].reshape(-1, window), places, 1).ravel()
        place = np.empty_like(order)
        place[order] = np.arange(n, dtype=order.dtype)
        rows = adjacency[order]
        parts = (rows.data, place[rows.indices], rows.indptr)
        adjacency = sp.csr_array(parts, shape=adjacency.shape)
    return ReorderedGraph(Matrix(adjacency, checked=True, policy=policy), order)


@dataclass(frozen=True, eq=False)
class LabeledSystem:
    """``(L + diag(a + gamma + e)) F = a Y + e T``.

    Parameters
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        A in ``L = diag(diagonal) - A``.
    diagonal : ndarray of shape (n_nodes,)
        Diagonal of L.
    labeled : ndarray of int of shape (n_labeled,)
        Labelled nodes.
    targets : ndarray of shape (n_labeled,) or (n_labeled, n_columns)
        Y, one column per class.
    label_weight : float or ndarray of shape (n_labeled,), default=inf
        a; infinite on all labels or on none.
    self_loop : float or ndarray of shape (n_nodes,), default=0
        gamma.
    evidence : ndarray of shape (n_nodes,) or (n_nodes, n_columns), optional
        ``e T``, as it enters the right-hand side.
    evidence_weight : float or ndarray of shape (n_nodes,), optional
        e; the sum of ``|e T|`` over the columns if not given.
    arranged : ReorderedGraph, optional
        `adjacency`, prepared for several systems on one graph.
    policy : Policy
        Size limits.
    n_jobs : int, optional
        Threads of the solves, see :func:`gdpa.threads.effective_jobs`.
    """

    adjacency: sp.csr_array
    diagonal: FloatArray
    labeled: NDArray[np.intp]
    targets: FloatArray
    label_weight: float | FloatArray = np.inf
    self_loop: float | FloatArray = 0.0
    evidence: FloatArray | None = None
    evidence_weight: float | FloatArray | None = None
    arranged: ReorderedGraph | None = None
    policy: Policy = DEFAULT_POLICY
    n_jobs: int | None = None

    @property
    def unit(self) -> float:
        """Mean diagonal of the Laplacian, the unit of self-loops and label weights."""
        top = float(self.diagonal.max(initial=0.0))
        # Relative to the largest, because the sum may overflow.
        return top * float((self.diagonal / top).mean()) if top > 0 else 1.0

    @cached_property
    def kept(self) -> NDArray[np.intp]:
        """Nodes whose labels are kept exactly: all labelled ones, or none."""
        infinite = np.isinf(self.label_weight)
        if infinite.any() and not infinite.all():
            raise ValueError("label_weight must be infinite on all labelled nodes or on none")
        return self.labeled if infinite.any() else self.labeled[:0]

    @cached_property
    def total(self) -> FloatArray:
        """Diagonal of the system."""
        weight = self.evidence_weight
        if weight is None:
            h = self.evidence
            weight = 0.0 if h is None else np.abs(h).reshape(h.shape[0], -1).sum(axis=1)
        total = np.asarray(self.diagonal + self.self_loop + weight)
        if np.isfinite(self.label_weight).all():
            total[self.labeled] += self.label_weight
        return total

    @cached_property
    def rhs(self) -> FloatArray:
        """Right-hand side; its values at kept labels are not used."""
        n = self.diagonal.size
        nodes = self.labeled
        Y = self.targets[:, None] if self.targets.ndim == 1 else self.targets
        h = self.evidence
        b = np.zeros((n, Y.shape[1])) if h is None else h.reshape(n, -1).copy()
        if not self.kept.size:
            b[nodes] += np.reshape(self.label_weight, (-1, 1)) * Y
        else:
            b += self.adjacency[nodes].T @ Y
        return np.asarray(b)

    @cached_property
    def unknown(self) -> NDArray[np.intp]:
        """The nodes to solve for: all, or those without a kept label."""
        free = np.ones(self.diagonal.size, dtype=bool)
        free[self.kept] = False
        return np.flatnonzero(free)

    def matrix(self) -> sp.csr_array:
        """Return the matrix on the unknown nodes."""
        inner = self.adjacency
        if self.kept.size:
            inner = inner[self.unknown][:, self.unknown]
        return (sp.diags_array(self.total[self.unknown]) - inner).tocsr()

    def solve(
        self,
        *,
        tol: float = 1e-6,
        max_iter: int | None = None,
        x0: FloatArray | None = None,
        preconditioner: PreconditionerLike = "auto",
        callback: Callable[[Mapping[str, Any]], Any] | None = None,
    ) -> SPDResult:
        """Solve for the scores of all nodes and all columns.

        Parameters
        ----------
        tol : float, default=1e-6
            Relative residual to reach.
        max_iter : int, optional
            Maximum number of iterations.
        x0 : ndarray of the shape of the scores, optional
            Initial scores.
        preconditioner : str or callable, default="auto"
            As in :func:`gdpa.linalg.solve_spd`.
        callback : callable, optional
            Called at each iteration; returning True stops.

        Returns
        -------
        SPDResult
            The scores as `x`, equal to the targets where labels are kept. If the iteration did not
            converge, `converged` is False; there is no warning.
        """
        n = self.diagonal.size
        rhs = self.rhs
        values = np.zeros((n, *self.targets.shape[1:]))
        values[self.kept] = self.targets[: self.kept.size]
        if self.kept.size == n:
            return SPDResult(values, 0.0, 0, 0, True, "none", "nothing to solve")
        A: Difference | sp.csr_array
        rows: slice | NDArray[np.integer[Any]]
        if not callable(preconditioner) and 4 * self.kept.size <= n:
            graph = self.arranged or arrange(self.adjacency, self.policy)
            total = self.total.copy()
            rhs = rhs.copy()
            total[self.kept] = rhs[self.kept] = 0.0  # not solved for; set to the labels below
            rows = slice(None) if graph.order is None else graph.order
            A = Difference(graph.matrix, total[rows])
        else:
            rows = self.unknown
            A = self.matrix()
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            result = solve_spd(
                A,
                rhs[rows],
                x0=None if x0 is None else np.asarray(x0).reshape(n, -1)[rows],
                tol=tol,
                max_iter=max_iter,
                preconditioner=preconditioner,
                n_jobs=self.n_jobs,
                callback=callback,
                policy=self.policy,
            )
        values[rows] = result.x.reshape(-1, *values.shape[1:])
        values[self.kept] = self.targets[: self.kept.size]
        return replace(result, x=values)
