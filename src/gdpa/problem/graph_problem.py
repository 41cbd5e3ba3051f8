"""Binary classification on a graph: the paper's problem and its reduced form.

    (P)   min  x' L x - 2 h' x    subject to  x_i in {-1, +1},  x_i = label_i where it is known,

where L is a graph Laplacian and h is optional evidence (bias) per node. In the *reduced form*
labelled nodes are merged into one apex with value +1, and the objective is ``constant - x' P x``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..checks import check_vector
from ..graph.adjacency import check_adjacency, check_total, connected_to, laplacian_parts
from ..graph.signed import BalanceResult, balance
from ..linalg.operator import MatrixLike, inner_product
from ..notebook import card

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int8]
Parts: TypeAlias = tuple[sp.csr_array, FloatArray]  # adjacency and diagonal of a Laplacian


@dataclass(frozen=True)
class ReducedForm:
    """The problem with its labelled nodes merged into one apex.

    For binary x with ``x[apex] = +1`` the objective of the problem is ``constant - x' P x``.

    Parameters
    ----------
    P : csr_array of shape (n, n)
        Symmetric, zero diagonal. For a graph problem it is ``[A_uu c; c' 0]``, where c is the
        vote of labels and evidence at each unlabelled node.
    constant : float
        Contribution of the merged nodes.
    apex : int
        Index of the node whose value is fixed to +1.
    nodes : ndarray
        Indices, in the problem, of the nodes other than the apex, in the order of the rows of P.
    """

    P: sp.csr_array
    constant: float
    apex: int
    nodes: NDArray[np.intp]

    def objective(self, x: FloatArray | IntArray) -> float:
        """Return the objective at a reduced sign vector, which includes the apex."""
        x = np.asarray(x, dtype=np.float64)
        return float(self.constant - x @ (self.P @ x))

    def normalised(self) -> tuple[ReducedForm, int]:
        """Divide by a power of two if squares would overflow or underflow; return the exponent."""
        size = max(abs(self.constant), float(np.abs(self.P.data).max(initial=0.0)))
        if size == 0 or 1e-100 <= size <= 1e100:
            return self, 0
        power = int(np.frexp(size)[1])
        parts = (np.ldexp(self.P.data, -power), self.P.indices, self.P.indptr)
        P = sp.csr_array(parts, shape=self.P.shape)
        return replace(self, P=P, constant=float(np.ldexp(self.constant, -power))), power


@dataclass(frozen=True, init=False, eq=False, repr=False)
class GraphProblem:
    """Binary classification of the nodes of a graph with a few known labels.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_nodes, n_nodes), or None
        Symmetric weights; None with a Laplacian of your own, which determines them. The diagonal is
        dropped, because ``x_i^2 = 1`` makes it a constant. With a negative weight the objective is
        smaller if the two nodes differ. L is then the signed Laplacian, whose degrees are sums of
        absolute weights, and methods for non-negative weights raise an error.
    labels : array-like of shape (n_nodes,)
        +1, -1, or 0 where the label is unknown; at any positions.
    bias : array-like of shape (n_nodes,), optional
        Evidence h per node in units of edge weight: positive favours +1, negative -1. A bias of h
        acts as an edge of weight ``|h|`` to a node with label sign(h). On a labelled node it only
        shifts the objective.
    laplacian : {"combinatorial", "normalized"} or matrix, default="combinatorial"
        Which Laplacian measures smoothness: one of the two of `W`, or your own as a symmetric
        (sparse) matrix L. Its off-diagonal entries are minus the weights of the edges, its diagonal
        may be anything that is not negative, such as degrees plus self-loops. The attribute is then
        "given".

    Attributes
    ----------
    W : csr_array
        The weights, in canonical form.
    labels : ndarray of int8
        The labels.
    bias : ndarray of float64
        The evidence; zeros if none was given.
    adjacency : csr_array
        A in ``L = diag(diagonal) - A``.
    diagonal : ndarray
        The diagonal of L.

    Raises
    ------
    ValueError
        If `W` is not a valid adjacency, `labels` has other values than -1, 0, 1 or another length,
        or neither a label nor evidence is given.

    Examples
    --------
    >>> import gdpa
    >>> problem = gdpa.GraphProblem([[0, 1, 0], [1, 0, 2], [0, 2, 0]], [1, 0, -1])
    >>> problem.n_nodes, problem.n_labeled
    (3, 2)
    >>> problem.objective([1, -1, -1])
    4.0
    """

    W: sp.csr_array
    labels: IntArray
    bias: FloatArray
    laplacian: str
    adjacency: sp.csr_array
    diagonal: FloatArray

    def __init__(
        self,
        W: MatrixLike | None,
        labels: ArrayLike,
        *,
        bias: ArrayLike | None = None,
        laplacian: str | MatrixLike = "combinatorial",
    ) -> None:
        if isinstance(laplacian, str):
            weights = check_adjacency(W, signed=True)
            parts = laplacian_parts(weights, laplacian, signed=True)
        else:
            parts = given_laplacian(laplacian)
            weights = parts[0] if W is None else check_adjacency(W, signed=True)
            if weights.shape != parts[0].shape:
                raise ValueError(
                    f"laplacian has shape {parts[0].shape}, W has shape {weights.shape}"
                )
            laplacian = "given"
        n = weights.shape[0]
        known = _check_labels(labels, n)
        evidence = np.zeros(n) if bias is None else check_vector(bias, n, "bias").copy()
        if not known.any() and not evidence.any():
            raise ValueError(
                "labels has no known label (all entries are 0) and there is no bias; at least one "
                "+1 or -1 is needed"
            )
        check_total(parts[1], evidence)
        self._set(weights, known, evidence, laplacian, parts)

    def _set(
        self, W: sp.csr_array, labels: IntArray, bias: FloatArray, laplacian: str, parts: Parts
    ) -> None:
        adjacency, diagonal = parts
        values = {
            "W": W,
            "labels": labels,
            "bias": bias,
            "laplacian": laplacian,
            "adjacency": adjacency,
            "diagonal": diagonal,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the class is frozen

    def __repr__(self) -> str:
        return (
            f"GraphProblem(n_nodes={self.n_nodes}, n_edges={self.n_edges}, "
            f"n_labeled={self.n_labeled}, laplacian={self.laplacian!r})"
        )

    def _repr_html_(self) -> str:
        facts = [
            ("nodes", f"{self.n_nodes:,}"),
            ("edges", f"{self.n_edges:,}"),
            (
                "labels",
                f"{int((self.labels > 0).sum()):,} of +1, {int((self.labels < 0).sum()):,} of -1",
            ),
            ("Laplacian", self.laplacian),
        ]
        if self.bias.any():
            facts.append(("nodes with evidence", f"{int((self.bias != 0).sum()):,}"))
        return card("GraphProblem", facts)

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return int(self.W.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.W.nnz // 2)

    @property
    def n_labeled(self) -> int:
        """Number of labelled nodes M."""
        return int(self.labeled.size)

    @cached_property
    def signed(self) -> bool:
        """Whether a weight is negative."""
        return bool(self.W.data.min(initial=0.0) < 0)

    @cached_property
    def balance(self) -> BalanceResult:
        """Whether the signs of all weights can be satisfied, ignoring labels."""
        return balance(self.W)

    @cached_property
    def labeled(self) -> NDArray[np.intp]:
        """Indices of the labelled nodes, ascending."""
        return np.flatnonzero(self.labels)

    @cached_property
    def unlabeled(self) -> NDArray[np.intp]:
        """Indices of the unlabelled nodes, ascending."""
        return np.flatnonzero(self.labels == 0)

    @cached_property
    def labeled_rows(self) -> sp.csr_array:
        """Rows of `adjacency` at the labelled nodes."""
        return self.adjacency[self.labeled]

    @cached_property
    def L(self) -> sp.csr_array:
        """The Laplacian."""
        return (sp.diags_array(self.diagonal) - self.adjacency).tocsr()

    @cached_property
    def label_sums(self) -> FloatArray:
        """Weighted sum ``A xh`` of the labels of each node's neighbours."""
        return np.asarray(self.adjacency @ self.labels.astype(np.float64))

    @cached_property
    def vote(self) -> FloatArray:
        """Vote c of labelled neighbours and evidence at each *unlabelled* node."""
        return np.asarray((self.label_sums + self.bias)[self.unlabeled])

    @cached_property
    def constant(self) -> float:
        """Constant of the reduced form: the diagonal and the terms of the labelled nodes."""
        x = self.labels.astype(np.float64)
        fixed = inner_product(x, self.label_sums) + 2.0 * inner_product(self.bias, x)
        return float(self.diagonal.sum()) - fixed

    @cached_property
    def majority(self) -> int:
        """The more frequent label, or the sign of the evidence without labels; +1 on a tie."""
        total = int(self.labels.sum(dtype=np.int64))
        if self.labeled.size == 0:
            return 1 if float(self.bias.sum()) >= 0 else -1
        return 1 if total >= 0 else -1

    @property
    def only_class(self) -> int | None:
        """The only class among labels and evidence, or None if there are two."""
        up = bool((self.labels > 0).any() or (self.bias > 0).any())
        down = bool((self.labels < 0).any() or (self.bias < 0).any())
        return None if up and down else (1 if up else -1)

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """Which nodes are connected to a label or to evidence."""
        return connected_to(self.W, (self.labels != 0) | (self.bias != 0))

    def objective(self, x: ArrayLike) -> float:
        """Return the objective ``x' L x - 2 h' x`` at a labelling or any real vector.

        Parameters
        ----------
        x : array-like of shape (n_nodes,)
            Signs, or real values.

        Returns
        -------
        float
            The objective; the largest number if it overflows.
        """
        x = np.asarray(x, dtype=np.float64)
        if x.shape != (self.n_nodes,):
            raise ValueError(f"x must have shape ({self.n_nodes},), got {x.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            value = self._objective(x)
            if not np.isfinite(value):
                # Sums of weights near the largest number may overflow, so they are scaled.
                value = np.ldexp(self.scaled(2.0**-64)._objective(x), 64)
        return float(np.nan_to_num(value))

    def _objective(self, x: FloatArray) -> float:
        smooth = inner_product(self.diagonal, x * x) - inner_product(x, self.adjacency @ x)
        return smooth - 2.0 * inner_product(self.bias, x)

    def reduced(self) -> ReducedForm:
        """Merge the labelled nodes into one apex (the last node of the reduced form).

        Returns
        -------
        ReducedForm
            ``P = [A_uu c; c' 0]`` and the constant, with equal optimum.
        """
        u = self.unlabeled
        A = self.adjacency
        c = sp.csr_array(self.vote[:, None])
        A_uu = A if u.size == self.n_nodes else A[u][:, u]
        P = sp.block_array([[A_uu, c], [c.T, None]], format="csr")
        P.sort_indices()
        return ReducedForm(P=P, constant=self.constant, apex=int(u.size), nodes=u)

    def restricted(self, nodes: NDArray[np.bool_]) -> GraphProblem:
        """Return the same problem on a union of components.

        Parameters
        ----------
        nodes : ndarray of bool of shape (n_nodes,)
            Which nodes to keep; no edge may lead out of them.

        Returns
        -------
        GraphProblem
            The smaller problem, weights of the Laplacian unchanged.
        """
        keep = np.flatnonzero(nodes)
        W = self.W[keep][:, keep]
        parts = (self.adjacency[keep][:, keep], self.diagonal[keep])
        return graph_problem(W, self.labels[keep], self.bias[keep], self.laplacian, parts)

    def with_labels(self, labels: ArrayLike) -> GraphProblem:
        """Return the problem with other labels; the graph is not checked again."""
        known = _check_labels(labels, self.n_nodes)
        parts = (self.adjacency, self.diagonal)
        return graph_problem(self.W, known, self.bias, self.laplacian, parts)

    def scaled(self, factor: float) -> GraphProblem:
        """Return the problem with Laplacian and evidence multiplied by a number; W stays."""
        parts = (self.adjacency * factor, self.diagonal * factor)
        return graph_problem(self.W, self.labels, self.bias * factor, self.laplacian, parts)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Combine values of the unlabelled nodes, in the order of the reduced form, with labels."""
        whole: NDArray[Any] = self.labels.astype(values.dtype)
        whole[self.unlabeled] = values
        return whole


def given_laplacian(L: MatrixLike) -> Parts:
    """Check a Laplacian of the user; return its off-diagonal weights and its diagonal.

    Parameters
    ----------
    L : array-like or sparse matrix of shape (n_nodes, n_nodes)
        Symmetric, finite, with a diagonal that is not negative.
    """
    if not (sp.issparse(L) or isinstance(L, np.ndarray | list | tuple)):
        raise ValueError(
            f"laplacian={L!r} must be 'combinatorial', 'normalized' or a symmetric matrix (an "
            "operator has no entries from which discs could be computed)"
        )
    matrix = sp.csr_array(L, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"laplacian must be a square matrix, got shape {matrix.shape}")
    diagonal = np.asarray(matrix.diagonal(), dtype=np.float64)
    if not np.isfinite(matrix.data).all() or (diagonal < 0).any():
        raise ValueError("laplacian must be finite, with a diagonal that is not negative")
    weights = sp.csr_array(sp.diags_array(diagonal) - matrix)
    weights.setdiag(0.0)
    weights.eliminate_zeros()
    return check_adjacency(weights, name="laplacian", signed=True), diagonal


def graph_problem(
    W: sp.csr_array, labels: IntArray, bias: FloatArray, laplacian: str, parts: Parts
) -> GraphProblem:
    """Return a problem from parts that are already checked."""
    problem = object.__new__(GraphProblem)
    problem._set(W, labels, bias, laplacian, parts)
    return problem


def _check_labels(labels: ArrayLike, n: int) -> IntArray:
    values = check_vector(labels, n, "labels")
    wrong = np.flatnonzero(~np.isin(values, (-1.0, 0.0, 1.0)))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"labels[{i}] is {values[i]:g}; accepted: +1, -1, or 0 for unknown "
            "(gdpa.CommitteeClassifier takes labels of any kind)"
        )
    return values.astype(np.int8)
