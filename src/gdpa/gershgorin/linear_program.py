"""The linear programs of the linearisation: an inner and an outer approximation of the psd cone.

A Z-matrix (after sign switching) with edge weights b_e >= 0 is psd if and only if it is the sum of
2x2 psd blocks on its edges and a non-negative diagonal. A block with off-diagonal ``-b`` and ratio
r is

    b [ r, -1 ; -1, 1/r ],    r = v_j / v_i for a scaling v,

so for fixed ratios the psd constraint is linear: the weight of each edge is distributed over its
blocks, and each diagonal entry must be at least the sum of the blocks' entries at its node. With
one ratio per edge, all from the same v, these are the Gershgorin rows of the paper's LP,
``A_ii - sum_j |A_ij| v_j / v_i >= 0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from ..arrays import FloatArray
from .family import AffineFamily

# The smallest tolerances that HiGHS accepts; its defaults (1e-7) would affect lambda_min.
OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
LARGEST_RATIO = 1e6


@dataclass(frozen=True)
class Blocks:
    """2x2 blocks over which the weight of an edge may be distributed.

    Parameters
    ----------
    edge : ndarray of shape (n_blocks,)
        Edge of each block. Every edge has at least one block.
    ratio : ndarray of shape (n_blocks,)
        Ratio r of each block.
    """

    edge: NDArray[np.intp]
    ratio: FloatArray

    @classmethod
    def from_scaling(cls, family: AffineFamily, v: FloatArray) -> Blocks:
        """Return one block per edge, with the ratios given by the scaling v."""
        size = np.abs(v)
        with np.errstate(over="ignore"):
            ratio = size[family.j] / size[family.i]
        return cls(np.arange(family.n_edges), np.clip(ratio, 1 / LARGEST_RATIO, LARGEST_RATIO))

    def joined(self, other: Blocks) -> Blocks:
        """Return these blocks followed by the others."""
        edge = np.concatenate([self.edge, other.edge])
        return Blocks(edge, np.concatenate([self.ratio, other.ratio]))

    def n_distinct(self) -> int:
        """Return the number of distinct blocks, up to rounding of the ratios."""
        rows = np.column_stack([self.edge, np.round(np.log(self.ratio), 12)])
        return len(np.unique(rows, axis=0))


@dataclass(frozen=True)
class ProgramResult:
    """Optimum of an inner program.

    Parameters
    ----------
    status : {"optimal", "infeasible", "unbounded", "failed"}
        Status reported by HiGHS.
    message : str
        Message of HiGHS.
    theta, share : ndarray
        Optimal parameters, and the weight of each block.
    x : ndarray of shape (n_nodes,)
        Multipliers of the rows, which are the diagonal of the dual matrix X.
    y : ndarray of shape (n_edges,)
        Multipliers of the edges, which are twice the off-diagonal entries of X after switching.
    """

    status: str
    message: str
    theta: FloatArray
    share: FloatArray
    x: FloatArray
    y: FloatArray


def inner_program(
    family: AffineFamily, c: FloatArray, bounds: FloatArray, blocks: Blocks
) -> ProgramResult:
    """Minimise ``c' theta`` over matrices that are sums of the given blocks.

    Every feasible point has a psd matrix ``A(theta)``, up to the tolerance of HiGHS.
    """
    m = family.n_parameters
    count = blocks.edge.size
    index = np.arange(count)
    shared = sp.csr_array((np.ones(count), (blocks.edge, index)), shape=(family.n_edges, count))
    ends = np.concatenate([family.i[blocks.edge], family.j[blocks.edge]])
    price = np.concatenate([blocks.ratio, 1.0 / blocks.ratio])
    paid = sp.csr_array((price, (ends, np.tile(index, 2))), shape=(family.n_nodes, count))
    result = _solve(family, c, bounds, paid, shared)
    status = {0: "optimal", 2: "infeasible", 3: "unbounded"}.get(result.status, "failed")
    if status != "optimal":
        return ProgramResult(status, str(result.message), *[np.empty(0)] * 4)
    x = np.maximum(-np.asarray(result.ineqlin.marginals)[: family.n_nodes], 0.0)
    y = np.asarray(result.eqlin.marginals) if family.n_edges else np.empty(0)
    return ProgramResult(status, str(result.message), result.x[:m], result.x[m:], x, y)


def outer_bound(family: AffineFamily, c: FloatArray, bounds: FloatArray, v: FloatArray) -> float:
    """Return a lower bound of the psd problem: the optimum over a cone that contains all psd A.

    For psd A and a positive v, every X with ``0 <= X_ij <= min(X_ii v_j / v_i, X_jj v_i / v_j)`` on
    the edges has ``X_ij^2 <= X_ii X_jj``, hence ``<A, X> >= 0`` (switched A). The LP
    requires only these inequalities: the edges must be paid for by the diagonal, but one end of an
    edge may pay for both,

        A_ii v_i >= sum_j q_ij v_j,   q_ij + q_ji = 2 b_ij,   q >= 0.

    Since ``X = v v'`` is one of these X, the bound is tight if v is the null vector of the optimal
    matrix. The bound is -inf if the LP is unbounded or HiGHS fails. It is +inf if the LP is
    infeasible, which proves that no theta gives a psd matrix.
    """
    n_edges = family.n_edges
    ratio = Blocks.from_scaling(family, v).ratio
    price = np.concatenate([ratio, 1.0 / ratio])
    ends = np.concatenate([family.i, family.j])
    shape = (family.n_nodes, 2 * n_edges)
    paid = sp.csr_array((price, (ends, np.arange(2 * n_edges))), shape=shape)
    one = sp.eye_array(n_edges, format="csr")
    result = _solve(family, c, bounds, paid, sp.hstack([one, one], format="csr"), times=2.0)
    if result.status == 0:
        return float(result.fun)
    return np.inf if result.status == 2 else -np.inf


def _solve(
    family: AffineFamily,
    c: FloatArray,
    bounds: FloatArray,
    paid: sp.csr_array,
    shared: sp.csr_array,
    times: float = 1.0,
) -> Any:
    """Minimise ``c' theta`` over theta and shares w >= 0 that make up the edges.

    ``shared @ w`` equals `times` the edge weights, and ``paid @ w`` is at most the diagonal. If
    presolve cannot tell an unbounded from an infeasible program, HiGHS runs again without presolve.
    If the simplex method fails, its interior-point method is used.
    """
    program: dict[str, Any] = {
        "c": np.concatenate([c, np.zeros(paid.shape[1])]),
        "A_ub": sp.block_array([[-family.D, paid], [family.R, None]], format="csr"),
        "b_ub": np.concatenate([family.d0, family.r0]),
        "bounds": np.vstack([bounds, np.tile([0.0, np.inf], (paid.shape[1], 1))]),
    }
    if family.n_edges:
        program["A_eq"] = sp.hstack([-times * family.B, shared], format="csr")
        program["b_eq"] = times * family.b0
    for method, options in (("highs", {}), ("highs", {"presolve": False}), ("highs-ipm", {})):
        result = linprog(**program, method=method, options={**OPTIONS, **options})
        if result.status in (0, 2, 3):
            break
    return result
