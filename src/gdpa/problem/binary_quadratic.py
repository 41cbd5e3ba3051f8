"""Binary quadratic problems with couplings of either sign.

Every formulation (a maximum cut, a QUBO, an Ising model) becomes ``max x' P x`` over signs, plus a
constant. Linear terms become couplings to one more variable, which is fixed at +1. Values are
reported in the units and direction of the original formulation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..checks import check_vector
from ..errors import require
from ..graph.adjacency import check_adjacency, check_total
from ..graph.convert import from_networkx
from ..linalg.operator import MatrixLike
from .exact_sums import exact_sums
from .graph_problem import GraphProblem, ReducedForm

Sense = Literal["minimise", "maximise"]
Domain = Literal["spin", "binary"]


class BinaryQuadratic:
    """Maximise ``x' P x`` over ``{-1, +1}^n``, or the problem of a class method.

    Parameters
    ----------
    P : array-like or sparse matrix of shape (n, n)
        Symmetric, of any sign. The trace is part of the value.
    anchor : int, default=0
        The variable that is fixed at +1, because x and -x have the same value.

    Attributes
    ----------
    P : csr_array
        The matrix, diagonal included. If there are linear terms, its last row belongs to a hidden
        variable that is fixed at +1.
    anchor : int
        Index of the row of P whose variable is fixed at +1.
    constant : float
        Added to the value.
    sense : {"maximise", "minimise"}
        Direction of the value.
    domain : {"spin", "binary"}
        Whether variables are -1 and +1 or 0 and 1.
    rounded : bool
        Whether P or the constant may differ from the numbers given by rounding errors.
    names : tuple or None
        Names of the variables, if there are any.

    Examples
    --------
    >>> import gdpa
    >>> form = gdpa.BinaryQuadratic([[0, 1], [1, 0]])
    >>> form.value([1, 1]), form.objective([1, 1])
    (2.0, -2.0)
    >>> gdpa.BinaryQuadratic.max_cut([[0, 1, 1], [1, 0, 1], [1, 1, 0]]).value([1, -1, 1])
    2.0
    >>> gdpa.BinaryQuadratic.qubo([[-1, 2], [0, -1]]).value([1, 0])
    -1.0
    """

    def __init__(self, P: MatrixLike, *, anchor: int = 0) -> None:
        self.P = check_adjacency(P, name="P", signed=True, keep_diagonal=True)
        check_total(self.P.data)
        n = self.P.shape[0]
        if not 0 <= int(anchor) < n:
            raise ValueError(f"anchor={anchor} is not a variable; accepted: 0 to {n - 1}")
        self.anchor = int(anchor)
        self.constant = 0.0
        self.hidden = False
        self.rounded = False
        self.sense: Sense = "maximise"
        self.domain: Domain = "spin"
        self.names: tuple[Hashable, ...] | None = None

    @classmethod
    def max_cut(cls, W: MatrixLike) -> BinaryQuadratic:
        """State the maximum cut: split the nodes so that the weight between the parts is largest.

        Parameters
        ----------
        W : array-like or sparse matrix of shape (n, n)
            Symmetric weights of any sign; the diagonal is ignored.

        Returns
        -------
        BinaryQuadratic
            The problem; its value is the weight of the cut.
        """
        weights = _checked(W, "W", keep_diagonal=False)
        problem = cls(weights * -0.25)
        problem.constant = float(weights.sum()) / 4.0
        return problem

    @classmethod
    def qubo(cls, Q: MatrixLike, *, constant: float = 0.0) -> BinaryQuadratic:
        """State the QUBO: minimise ``u' Q u + constant`` over zeros and ones.

        Parameters
        ----------
        Q : array-like or sparse matrix of shape (n, n)
            Any square matrix; ``Q_ij`` and ``Q_ji`` are added. The diagonal contains the linear
            terms.
        constant : float, default=0
            Added to the value.

        Returns
        -------
        BinaryQuadratic
            The problem, in the domain {0, 1}.
        """
        problem = cls._binary(_checked(Q, "Q", symmetric=False), constant)
        entries = sp.coo_array(Q).data if sp.issparse(Q) else np.asarray(Q, dtype=np.float64)
        problem.rounded = not exact_sums(entries, np.array([constant]))
        return problem

    @classmethod
    def _binary(cls, S: sp.csr_array, constant: float) -> BinaryQuadratic:
        """Return the problem of a symmetric Q, with u = (1 + x) / 2."""
        diagonal = S.diagonal()
        off = (S - sp.diags_array(diagonal)) * -0.25
        problem = cls._linear(off, S.sum(axis=1) * -0.25)
        problem.constant = float(S.sum() + diagonal.sum()) / 4.0 + _finite(constant)
        problem.sense = "minimise"
        problem.domain = "binary"
        return problem

    @classmethod
    def ising(cls, h: ArrayLike | None, J: MatrixLike, *, constant: float = 0.0) -> BinaryQuadratic:
        """State the Ising model: minimise ``sum_i h_i s_i + sum_(i<j) J_ij s_i s_j + constant``.

        Parameters
        ----------
        h : array-like of shape (n,) or None
            Fields; None for zero fields.
        J : array-like or sparse matrix of shape (n, n)
            Symmetric couplings; each pair counts once, the diagonal must be zero.
        constant : float, default=0
            Added to the value.

        Returns
        -------
        BinaryQuadratic
            The problem, in the domain {-1, +1}.
        """
        couplings = _checked(J, "J")
        if couplings.diagonal().any():
            i = int(np.flatnonzero(couplings.diagonal())[0])
            raise ValueError(f"J[{i}, {i}] is {couplings.diagonal()[i]:g}; pass fields as h")
        n = couplings.shape[0]
        fields = np.zeros(n) if h is None else check_vector(h, n, "h")
        problem = cls._linear(couplings * -0.5, fields * -0.5)
        problem.constant = _finite(constant)
        problem.sense = "minimise"
        return problem

    @classmethod
    def _linear(cls, P: sp.csr_array, linear: NDArray[np.float64]) -> BinaryQuadratic:
        """Return the problem with couplings `linear` to a hidden variable, if there are any."""
        if not linear.any():
            return cls(P)
        column = sp.csr_array(linear[:, None])
        whole = sp.block_array([[P, column], [column.T, None]], format="csr")
        problem = cls(whole, anchor=P.shape[0])
        problem.hidden = True
        return problem

    @classmethod
    def from_dimod(cls, model: Any) -> BinaryQuadratic:
        """Convert a ``dimod.BinaryQuadraticModel``, with its names and its offset."""
        names = list(model.variables)
        index = {name: k for k, name in enumerate(names)}
        pairs = [(index[u], index[v], float(b)) for (u, v), b in model.quadratic.items()]
        i, j, b = (np.array(part) for part in zip(*pairs, strict=True)) if pairs else ([], [], [])
        n = len(names)
        J = sp.coo_array((b, (i, j)), shape=(n, n)).tocsr()
        h = np.array([float(model.linear[name]) for name in names])
        if model.vartype.name == "BINARY":
            problem = cls.qubo(J + sp.diags_array(h), constant=float(model.offset))
        else:
            problem = cls.ising(h, J + J.T, constant=float(model.offset))
        problem.names = tuple(names)
        return problem

    def to_dimod(self) -> Any:
        """Return the ``dimod.BinaryQuadraticModel`` whose energy is :meth:`objective`."""
        dimod = require("dimod", "quadratic")
        names = self._names()
        linear, quadratic, constant = self._spin_terms()
        model = dimod.BinaryQuadraticModel(
            dict(zip(names, linear.tolist(), strict=True)),
            {(names[i], names[j]): b for i, j, b in quadratic},
            constant,
            "SPIN",
        )
        return model if self.domain == "spin" else model.change_vartype("BINARY", inplace=False)

    @classmethod
    def from_networkx(cls, graph: Any, *, weight: str = "weight") -> BinaryQuadratic:
        """State the maximum cut of a NetworkX graph; edges without a weight have weight 1."""
        named = from_networkx(graph, weight=weight, signed=True)
        problem = cls.max_cut(named.W)
        problem.names = tuple(named.nodes)
        return problem

    def to_networkx(self) -> Any:
        """Return a NetworkX graph of the terms of the :meth:`objective` over signs.

        An edge with ``weight`` b is the term ``b s_i s_j``, and a node with ``field`` h is the term
        ``h s_i``. Variables are signs even if the domain is {0, 1}.
        """
        graph = require("networkx", "quadratic").Graph()
        names = self._names()
        linear, quadratic, _ = self._spin_terms()
        graph.add_nodes_from((name, {"field": h}) for name, h in zip(names, linear, strict=True))
        graph.add_weighted_edges_from((names[i], names[j], b) for i, j, b in quadratic)
        return graph

    def _names(self) -> Sequence[Hashable]:
        return self.names if self.names is not None else range(self.n_nodes)

    def _spin_terms(self) -> tuple[NDArray[np.float64], list[tuple[int, int, float]], float]:
        """Return the fields, couplings and constant of the objective over signs."""
        form = self.reduced()
        n = self.n_nodes
        linear = np.zeros(n)
        P = form.P
        if self.hidden:
            linear = -2.0 * P[[n]].toarray().ravel()[:n]
            P = P[:n, :n]
        upper = sp.triu(P, 1).tocoo()
        pairs = zip(*upper.coords, -2.0 * upper.data, strict=True)
        return linear, [(int(i), int(j), float(b)) for i, j, b in pairs], form.constant

    def __repr__(self) -> str:
        return f"BinaryQuadratic(n_nodes={self.n_nodes}, n_edges={self.n_edges})"

    @property
    def n_nodes(self) -> int:
        """Number of variables."""
        return int(self.P.shape[0]) - self.hidden

    @property
    def n_edges(self) -> int:
        """Number of non-zero couplings, linear terms included."""
        return int((self.P.nnz - np.count_nonzero(self.P.diagonal())) // 2)

    @property
    def signed(self) -> bool:
        """Whether a coupling between two variables other than the anchor is negative."""
        off = self.reduced().P
        rows = np.repeat(np.arange(off.shape[0]), np.diff(off.indptr))
        inner = (rows != self.anchor) & (off.indices != self.anchor)
        return bool((off.data[inner] < 0).any())

    @property
    def step(self) -> float:
        """Largest number of which all differences of values are multiples; 0 if none is known."""
        return value_step(self.reduced().P)

    def signs(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the signs of all rows of P for an assignment of the variables."""
        values = check_vector(x, self.n_nodes, "x")
        values = 2.0 * values - 1.0 if self.domain == "binary" else values
        return np.append(values, 1.0) if self.hidden else values

    def assignment(self, signs: NDArray[Any]) -> NDArray[np.int8]:
        """Return the assignment for signs of the variables, with the anchor at +1."""
        labels = np.asarray(signs, dtype=np.int8)
        if not self.hidden and labels[self.anchor] < 0:
            labels = -labels
        return (labels + 1) // 2 if self.domain == "binary" else labels

    def value(self, x: ArrayLike) -> float:
        """Return the value of an assignment in the problem's units and direction."""
        z = self.signs(x)
        form = float(z @ (self.P @ z))
        return self.constant + (form if self.sense == "maximise" else -form)

    def objective(self, x: ArrayLike) -> float:
        """Return the value to minimise, which is minus the value of a maximisation problem."""
        value = self.value(x)
        return -value if self.sense == "maximise" else value

    def reduced(self) -> ReducedForm:
        """Return the reduced form: P without its diagonal, with the anchor as apex."""
        diagonal = self.P.diagonal()
        P = (self.P - sp.diags_array(diagonal)).tocsr() if diagonal.any() else self.P
        P.eliminate_zeros()
        nodes = np.delete(np.arange(self.P.shape[0]), self.anchor)
        shift = -self.constant if self.sense == "maximise" else self.constant
        return ReducedForm(
            P=P, constant=shift - float(diagonal.sum()), apex=self.anchor, nodes=nodes
        )

    def plain(self) -> tuple[BinaryQuadratic, float]:
        """Return ``max x' P x`` over all rows of P, and the constant to add to its objective."""
        if not self.hidden and self.domain == "spin" and self.constant == 0.0:
            return self, 0.0
        shift = -self.constant if self.sense == "maximise" else self.constant
        return BinaryQuadratic(self.P, anchor=self.anchor), shift

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Insert +1 for the anchor into the values of the other variables."""
        return values if self.hidden else np.insert(values, self.anchor, 1)

    def graph_problem(self) -> tuple[GraphProblem, float]:
        """Fix the anchor at +1, so that the couplings to it become evidence.

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


def value_step(P: sp.csr_array) -> float:
    """Return the largest number of which all differences of ``x' P x`` are multiples.

    Up to a constant, ``x' P x`` is the weight of a cut with ``w_ij = -4 P_ij``. The cut of one node
    is its degree, and the cut of two nodes i and j is the sum of their degrees minus ``2 w_ij``.
    All other cuts are sums of degrees minus doubled weights. So the step is the greatest common
    divisor of the degrees and the doubled weights.

    Parameters
    ----------
    P : csr_array of shape (n, n)
        Symmetric couplings with zero diagonal.

    Returns
    -------
    float
        The step; 0 if the couplings are not small multiples of a binary fraction.
    """
    entries = P.data
    small = entries.size and float(np.abs(entries).max()) < 2.0**50
    for exponent in range(31 if small else 0):
        # Multiples of a power of two are exact in floating point.
        for part in (entries[:100], entries):
            whole = np.ldexp(part, exponent)
            if not np.array_equal(whole, np.rint(whole)):
                break
        else:
            if np.abs(whole).sum() >= 2.0**50:
                return 0.0
            rows = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
            degrees = np.bincount(rows, weights=whole, minlength=P.shape[0])
            sums = np.concatenate((degrees, 2.0 * whole)).astype(np.int64)
            return 4.0 * float(np.ldexp(float(np.gcd.reduce(sums)), -exponent))
    return 0.0


def _checked(
    A: MatrixLike, name: str, *, symmetric: bool = True, keep_diagonal: bool = True
) -> sp.csr_array:
    """Validate a matrix of at least two variables; an asymmetric one is made (A + A') / 2."""
    if not symmetric:
        matrix = sp.csr_array(A) if sp.issparse(A) else np.asarray(A)
        if matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]:
            with suppress(TypeError):  # check_adjacency raises a better error
                A = matrix * 0.5 + matrix.T * 0.5  # halves: their sum cannot overflow
    checked = check_adjacency(A, name=name, signed=True, keep_diagonal=keep_diagonal)
    if checked.shape[0] < 2:
        raise ValueError(f"{name} has one variable; a quadratic problem has at least two")
    return checked


def _finite(constant: float) -> float:
    if not np.isfinite(constant):
        raise ValueError(f"constant={constant!r} must be a finite number")
    return float(constant)
