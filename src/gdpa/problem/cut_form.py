"""Binary quadratic problems as maximum cuts with exact integer weights.

With ``w_ij = -4 P_ij`` the form ``x' P x`` is ``sum(P)`` plus the weight of the cut between the
variables at +1 and those at -1. So every formulation is a maximum cut plus a constant. Floating-
point numbers are binary fractions: in a common unit all weights are integers, and cuts, steps and
bounds are computed without rounding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .binary_quadratic import BinaryQuadratic
from .graph_problem import ReducedForm

Weights = dict[tuple[int, int], Fraction]

# Couplings per variable, and couplings in all, up to which odd cycles are tried by default.
_DENSEST = 4.0
_MOST = 60_000


def is_sparse(n_variables: int, n_couplings: int) -> bool:
    """Return whether there are few enough couplings for bounds by odd cycles."""
    return n_couplings <= min(_DENSEST * n_variables, _MOST)


@dataclass(frozen=True, eq=False)
class CutForm:
    """Maximise the weight of a cut; the value of the problem is the constant plus or minus it.

    Parameters
    ----------
    n : int
        Number of nodes; a hidden node that stands for the constant +1 is the last one.
    pairs : tuple of (int, int)
        Ends of the edges, the smaller one first, in ascending order.
    weights : tuple of int
        Weights of the edges in multiples of the unit, none of them zero.
    unit : Fraction
        What a weight of 1 is worth.
    constant : Fraction
        Value of the empty cut.
    sense : {"maximise", "minimise"}
        Whether the value is the constant plus the cut, or the constant minus the cut.
    n_variables : int
        Number of variables: n, or n - 1 if there is a hidden node.
    """

    n: int
    pairs: tuple[tuple[int, int], ...]
    weights: tuple[int, ...]
    unit: Fraction
    constant: Fraction
    sense: str
    n_variables: int

    @classmethod
    def of_weights(
        cls, n: int, weights: Weights, *, constant: Fraction, sense: str, n_variables: int
    ) -> CutForm:
        """Return the form of exact weights; zeros are left out."""
        pairs = sorted(pair for pair, weight in weights.items() if weight)
        values = [weights[pair] for pair in pairs]
        integers, unit = in_common_unit(values)
        return cls(n, tuple(pairs), tuple(integers), unit, constant, sense, n_variables)

    @classmethod
    def of_problem(cls, problem: BinaryQuadratic) -> CutForm:
        """Return the form of a problem, exactly as it is stored."""
        form = problem.reduced()
        empty = Fraction(problem.constant)
        sign = 1 if problem.sense == "maximise" else -1
        empty += sign * exact_sum(problem.P.data)
        n = problem.P.shape[0]
        weights = _weights(form.P)  # a hidden variable has the last row of P
        return cls.of_weights(
            n, weights, constant=empty, sense=problem.sense, n_variables=problem.n_nodes
        )

    @classmethod
    def of_reduced(cls, form: ReducedForm) -> CutForm:
        """Return the cut form of ``max x' P x``; its constant is ``sum(P)``."""
        n = form.P.shape[0]
        constant = exact_sum(form.P.data)
        weights = _weights(form.P)
        return cls.of_weights(n, weights, constant=constant, sense="maximise", n_variables=n)

    @cached_property
    def step(self) -> int:
        """Greatest common divisor of the weights of all cuts, in units; 0 without edges.

        The cut of one node is its degree d_i, and the cut of two nodes is d_i + d_j - 2 w_ij. All
        other cuts are sums of degrees minus doubled weights, so the greatest common divisor of
        degrees and doubled weights divides every cut, and no larger number does.
        """
        degree = [0] * self.n
        for (i, j), weight in zip(self.pairs, self.weights, strict=True):
            degree[i] += weight
            degree[j] += weight
        return gcd(*degree, *(2 * weight for weight in self.weights))

    def cut(self, signs: NDArray[np.int8]) -> int:
        """Return the weight of the cut of signs, in units."""
        side = np.asarray(signs).tolist()
        edges = zip(self.pairs, self.weights, strict=True)
        return sum(weight for (i, j), weight in edges if side[i] != side[j])

    def value(self, cut: int | Fraction) -> Fraction:
        """Return the value of the problem for the weight of a cut in units."""
        weight = cut * self.unit
        return self.constant + weight if self.sense == "maximise" else self.constant - weight

    def rounded_down(self, bound: Fraction) -> int | Fraction:
        """Return the largest weight that a cut can have if no cut exceeds the bound (in units)."""
        return bound // self.step * self.step if self.step else Fraction(0)

    def digest(self) -> str:
        """Return the SHA-256 of the problem in its canonical form."""
        lines = [f"{self.sense} {self.n_variables} {self.constant}"]
        lines += [
            f"{i} {j} {weight * self.unit}"
            for (i, j), weight in zip(self.pairs, self.weights, strict=True)
        ]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def exact_cut_form(
    kind: str, matrix: sp.csr_array, fields: Iterable[float] | None = None
) -> CutForm:
    """Return the cut form of a maximum cut, QUBO or Ising model, without rounding.

    Parameters
    ----------
    kind : {"max-cut", "qubo", "ising"}
        What the numbers mean.
    matrix : csr_array of shape (n, n)
        Weights of a cut, couplings of an Ising model (symmetric), or the matrix Q of a QUBO.
    fields : iterable of float, optional
        Fields of an Ising model.
    """
    n = matrix.shape[0]
    weights: Weights = {}
    constant = Fraction(0)

    def add(i: int, j: int, weight: Fraction) -> None:
        pair = (min(i, j), max(i, j))
        weights[pair] = weights.get(pair, Fraction(0)) + weight

    entries = matrix.tocoo()
    listed = zip(*(ends.tolist() for ends in entries.coords), entries.data.tolist(), strict=True)
    for i, j, number in listed:
        value = Fraction(number)
        if kind == "qubo":
            # u_i = 1 unless i is cut off from the hidden node n, which has u = 1.
            constant += value
            add(i, n, value if i == j else value / 2)
            if i != j:
                add(j, n, value / 2)
                add(i, j, value / 2)
        elif i < j:
            add(i, j, value if kind == "max-cut" else 2 * value)
            constant += 0 if kind == "max-cut" else value
    for i, number in enumerate(fields if fields is not None and kind == "ising" else ()):
        add(i, n, 2 * Fraction(number))
        constant += Fraction(number)
    hidden = any(weight and j == n for (_, j), weight in weights.items())
    return CutForm.of_weights(
        n + hidden,
        weights,
        constant=constant,
        sense="maximise" if kind == "max-cut" else "minimise",
        n_variables=n,
    )


def in_common_unit(values: list[Fraction]) -> tuple[list[int], Fraction]:
    """Return integers and the unit whose multiples the values are."""
    denominator = 1
    for value in values:
        denominator = denominator * value.denominator // gcd(denominator, value.denominator)
    integers = [value.numerator * (denominator // value.denominator) for value in values]
    return integers, Fraction(1, denominator)


def exact_sum(numbers: NDArray[np.float64]) -> Fraction:
    """Return the sum of floating-point numbers without rounding."""
    integers, unit = in_common_unit([Fraction(number) for number in numbers.tolist()])
    return sum(integers) * unit


def _weights(P: sp.csr_array) -> Weights:
    """Return the weights -4 P_ij of the pairs i < j."""
    upper = sp.triu(P, 1).tocoo()
    rows, columns = (ends.tolist() for ends in upper.coords)
    numbers = upper.data.tolist()
    return {
        (i, j): -4 * Fraction(number) for i, j, number in zip(rows, columns, numbers, strict=True)
    }
