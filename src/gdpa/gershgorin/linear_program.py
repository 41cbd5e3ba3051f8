"""The linear programs of the linearisation: one from inside the psd cone, one from outside.

A switched (Z-)matrix with edge weights b_e >= 0 is psd iff it is a sum of 2x2 psd blocks on its
edges and a non-negative diagonal. A block with off-diagonal ``-b`` and ratio r is

    b [ r, -1 ; -1, 1/r ],    r = v_j / v_i for a scaling v,

so for fixed ratios psd becomes linear: the weight of each edge is shared among its blocks, and each
diagonal entry must pay for the blocks at its node. With one ratio per edge, from one v, these are
exactly the Gershgorin rows ``A_ii - sum_j |A_ij| v_j / v_i >= 0`` of the paper's LP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from .discs import FloatArray
from .family import AffineFamily

# HiGHS accepts nothing below 1e-10; the defaults (1e-7) would show in lambda_min.
OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
LARGEST_RATIO = 1e6


@dataclass(frozen=True)
class Blocks:
    """2x2 blocks that an edge's weight may be shared among.

    Parameters
    ----------
    edge : ndarray of shape (n_blocks,)
        Edge of each block; every edge has at least one.
    ratio : ndarray of shape (n_blocks,)
        Its ratio r.
    """

    edge: NDArray[np.intp]
    ratio: FloatArray

    @classmethod
    def from_scaling(cls, family: AffineFamily, v: FloatArray) -> Blocks:
        """One block per edge, with the ratio of one scaling."""
        size = np.abs(v)
        with np.errstate(over="ignore"):
            ratio = size[family.j] / size[family.i]
        return cls(np.arange(family.n_edges), np.clip(ratio, 1 / LARGEST_RATIO, LARGEST_RATIO))

    def joined(self, other: Blocks) -> Blocks:
        """These blocks and others."""
        edge = np.concatenate([self.edge, other.edge])
        return Blocks(edge, np.concatenate([self.ratio, other.ratio]))


@dataclass(frozen=True)
class ProgramResult:
    """Optimum of an inner program.

    Parameters
    ----------
    status : {"optimal", "infeasible", "unbounded", "failed"}
        What HiGHS found.
    message : str
        In its words.
    theta, share : ndarray
        Optimal parameters, and weight of each block.
    x : ndarray of shape (n_nodes,)
        Multipliers of the rows: diagonal of the dual matrix X.
    y : ndarray of shape (n_edges,)
        Multipliers of the edges: twice the off-diagonal of X (switched).
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

    Parameters
    ----------
    family : AffineFamily
        The matrices.
    c : ndarray of shape (n_parameters,)
        The costs.
    bounds : ndarray of shape (n_parameters, 2)
        Bounds of theta.
    blocks : Blocks
        The blocks allowed.

    Returns
    -------
    ProgramResult
        Every feasible point has ``A(theta)`` psd, to the tolerance of HiGHS.
    """
    m, count = family.n_parameters, blocks.edge.size
    index = np.arange(count)
    shared = sp.csr_array((np.ones(count), (blocks.edge, index)), shape=(family.n_edges, count))
    ends = np.concatenate([family.i[blocks.edge], family.j[blocks.edge]])
    price = np.concatenate([blocks.ratio, 1.0 / blocks.ratio])
    paid = sp.csr_array((price, (ends, np.tile(index, 2))), shape=(family.n_nodes, count))
    result = _solve(family, c, bounds, paid, shared)
    status = {0: "optimal", 2: "infeasible", 3: "unbounded"}.get(result.status, "failed")
    if status != "optimal":
        none = np.empty(0)
        return ProgramResult(status, str(result.message), none, none, none, none)
    x = np.maximum(-np.asarray(result.ineqlin.marginals)[: family.n_nodes], 0.0)
    y = np.asarray(result.eqlin.marginals) if family.n_edges else np.empty(0)
    return ProgramResult(status, str(result.message), result.x[:m], result.x[m:], x, y)


def outer_bound(family: AffineFamily, c: FloatArray, bounds: FloatArray, v: FloatArray) -> float:
    """Lower bound of the psd problem's optimum: an LP over a cone that contains all psd matrices.

    For psd A and a positive v, every X with ``0 <= X_ij <= min(X_ii v_j / v_i, X_jj v_i / v_j)`` on
    the edges has ``X_ij^2 <= X_ii X_jj``, hence ``<A, X> >= 0`` (switched A). The LP asks no more
    of A than that: a node must pay for its edges, but one end may pay for both,

        A_ii v_i >= sum_j q_ij v_j,   q_ij + q_ji = 2 b_ij,   q >= 0.

    It contains ``X = v v'``, so it is tight where v is the null vector of the optimum.

    Parameters
    ----------
    family, c, bounds
        As in :func:`inner_program`.
    v : ndarray of shape (n_nodes,)
        Positive scaling.

    Returns
    -------
    float
        The bound; minus infinity where the LP is unbounded or HiGHS fails, plus infinity where it
        is infeasible, which proves that no theta has a psd matrix.
    """
    n_edges = family.n_edges
    ratio = Blocks.from_scaling(family, v).ratio
    price, ends = np.concatenate([ratio, 1.0 / ratio]), np.concatenate([family.i, family.j])
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
    """Minimise ``c' theta`` where shares w >= 0 make up the edges and the diagonal pays for them.

    ``shared @ w`` is `times` the weights of the edges, ``paid @ w`` what each node pays. HiGHS
    tries again without presolve where presolve cannot tell unbounded from infeasible; its interior
    point is the last resort where the simplex method breaks down.
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
