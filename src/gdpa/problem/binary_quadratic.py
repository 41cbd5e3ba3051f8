"""Quadratic forms of signs, of couplings of either sign."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..graph.adjacency import check_adjacency, check_total
from ..linalg.operator import MatrixLike
from .graph_problem import GraphProblem, ReducedForm

__all__ = ["BinaryQuadratic"]


class BinaryQuadratic:
    """Maximise ``x' P x`` over ``{-1, +1}^n``.

    Parameters
    ----------
    P : array-like or sparse matrix of shape (n, n)
        Symmetric, of any sign. The diagonal adds its trace to the value.
    anchor : int, default=0
        The variable that is reported as +1: x and -x have the same value.

    Attributes
    ----------
    P : csr_array
        The matrix, diagonal included.
    anchor : int
        Index of the variable that is reported as +1.

    Examples
    --------
    >>> import gdpa
    >>> form = gdpa.BinaryQuadratic([[0, 1], [1, 0]])
    >>> form.value([1, 1]), form.objective([1, 1])
    (2.0, -2.0)
    """

    def __init__(self, P: MatrixLike, *, anchor: int = 0) -> None:
        self.P = check_adjacency(P, name="P", signed=True, keep_diagonal=True)
        check_total(self.P.data)
        n = self.P.shape[0]
        if not 0 <= int(anchor) < n:
            raise ValueError(f"anchor={anchor} is not a variable; accepted: 0 to {n - 1}")
        self.anchor = int(anchor)

    def __repr__(self) -> str:
        return f"BinaryQuadratic(n_nodes={self.n_nodes}, n_edges={self.n_edges})"

    @property
    def n_nodes(self) -> int:
        """Number of variables."""
        return int(self.P.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of non-zero couplings."""
        return int((self.P.nnz - np.count_nonzero(self.P.diagonal())) // 2)

    @property
    def signed(self) -> bool:
        """Whether a coupling between two variables other than the anchor is negative."""
        off = self.reduced().P
        rows = np.repeat(np.arange(self.n_nodes), np.diff(off.indptr))
        inner = (rows != self.anchor) & (off.indices != self.anchor)
        return bool((off.data[inner] < 0).any())

    def value(self, x: ArrayLike) -> float:
        """Value ``x' P x`` that is maximised."""
        x = np.asarray(x, dtype=np.float64)
        if x.shape != (self.n_nodes,):
            raise ValueError(f"x must have shape ({self.n_nodes},), got {x.shape}")
        return float(x @ (self.P @ x))

    def objective(self, x: ArrayLike) -> float:
        """Objective ``-x' P x`` that is minimised."""
        return -self.value(x)

    def reduced(self) -> ReducedForm:
        """Reduced form: the same matrix without its diagonal, the anchor as apex."""
        diagonal = self.P.diagonal()
        P = (self.P - sp.diags_array(diagonal)).tocsr() if diagonal.any() else self.P
        P.eliminate_zeros()
        nodes = np.delete(np.arange(self.n_nodes), self.anchor)
        return ReducedForm(P=P, constant=-float(diagonal.sum()), apex=self.anchor, nodes=nodes)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of all variables but the anchor, with +1 at the anchor."""
        return np.insert(values, self.anchor, 1)

    def graph_problem(self) -> tuple[GraphProblem, float]:
        """Fix the anchor at +1: the couplings to it become evidence.

        Returns
        -------
        problem : GraphProblem
            Problem on the other variables, with bias ``P[anchor, others]``.
        shift : float
            ``self.objective(x) = problem.objective(x_others) + shift``.

        Raises
        ------
        ValueError
            If a coupling between two of the others is negative, or the anchor has no coupling.
        """
        form = self.reduced()
        others = form.nodes
        bias = form.P[[self.anchor]].toarray().ravel()[others]
        inner = form.P[others][:, others]
        problem = GraphProblem(inner, np.zeros(others.size, dtype=np.int8), bias=bias)
        return problem, form.constant - float(problem.diagonal.sum())
