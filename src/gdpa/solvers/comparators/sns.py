"""SNS: stochastic neighbourhood search for binary quadratic problems (Lam and Liew 2022).

The method maximises ``x' Q x + 2 h' x`` over signs, some of them fixed, by alternating two steps.

*Deterministic search.* The KKT conditions of the binary problem make a maximiser a fixed point of
``x = sign(g)`` with the gradient ``g = Q x + h`` (Q without its diagonal). From x, the mixtures
``(1 - t) u + t x`` for t = 0, 0.2, .., 0.8, with u the gradient scaled to the length of x, are
rounded to signs, the fixed ones are put back, and the best is taken while it improves.

*Stochastic neighbourhood.* The objective is resampled: node i counts w_i times, where w is a
bootstrap sample. The next deterministic search starts from a random mixture of the resampled
gradient and point, thresholded at the value of a random node. The method ends when 50 such
neighbours give no improvement. They are searched as one block, so that products with Q are matrix
products.

There are two variants for a graph problem. ``"stated"`` minimises ``x' L x - 2 h' x`` (Q = -L).
``"authors"`` is the version in the published comparison, with Q = +L although the method maximises.
Then the labels of unlabelled nodes are reversed if the graph is informative. The published numbers
take the better of x and -x on the test labels; no such choice is made here. The authors' projection
stops a rounding error short of the most contradicted label, which therefore stays wrong inside the
search; the variant reproduces this. Both variants maximise a :class:`~gdpa.BinaryQuadratic`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ...arrays import FloatArray, NDArray
from ...problem import GraphProblem, Problem
from ..base import Outcome, Run, Solver, StopSolver

DENSE_SHARE = 0.1  # products with Q are dense above this share of non-zeros
DENSE_NODES = 4000  # and up to this number of nodes


@dataclass(frozen=True, kw_only=True)
class SNS(Solver):
    """Minimise by stochastic neighbourhood search.

    Parameters
    ----------
    max_iter : int, default=1000
        Maximum number of blocks of neighbours.
    variant : {"stated", "authors"}, default="stated"
        Minimise the objective, or maximise it as in the published comparison.
    neighbors : int, default=50
        The method ends after this many stochastic neighbours without improvement.
    mixtures : int, default=5
        Number of mixtures of gradient and point that each deterministic step tries.
    """

    name = "sns"
    summary = "stochastic neighbourhood search (Lam and Liew 2022)"
    kind = "heuristic"
    binary_quadratic = True
    signed = True
    choices: ClassVar[dict[str, Any]] = {"variant": ("stated", "authors")}
    whole: ClassVar[dict[str, int]] = {"neighbors": 1, "mixtures": 1}

    variant: str = "stated"
    neighbors: int = 50
    mixtures: int = 5

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        with run.stage("setup"):
            search = _search(problem, self.variant, self.mixtures)
            rng = np.random.default_rng(self.random_state)
        best: FloatArray | None = None
        blocks = 0
        converged = False
        try:
            with run.stage("search"):
                start = _starts(problem, search, self.x0)
                for point, value, improved in search.blocks(start, self.neighbors, rng):
                    best = point
                    converged = improved == 0
                    if converged or blocks == self.max_iter:
                        break
                    blocks += 1
                    run.report(form=value, improved=improved)
            message = f"still improving after {blocks} blocks"
            if converged:
                message = f"no improvement in {self.neighbors} neighbours"
        except StopSolver:
            message = f"stopped by the callback after {blocks} blocks"
        return Outcome(
            scores=np.asarray(best),
            iterations=blocks,
            converged=converged,
            message=message,
            info={"products": search.products},
        )


@dataclass
class Search:
    """Maximise ``x' Q x + 2 h' x`` over signs with some of them fixed, many points at a time."""

    Q: Any  # sparse or dense matrix
    h: FloatArray
    fixed: NDArray[np.intp]
    signs: FloatArray
    mixtures: int
    noise: float  # smaller differences of values are rounding errors
    leaves_one: bool = False
    products: int = 0

    def gradient(self, X: FloatArray) -> FloatArray:
        """Return ``Q X + h`` for the columns of X."""
        self.products += X.shape[1]
        return np.asarray(self.Q @ X) + self.h[:, None]

    def project(self, X: FloatArray, fallback: FloatArray) -> FloatArray:
        """Return the signs of the columns, `fallback` for zeros, with fixed nodes restored."""
        signs = np.where(X > 0, 1.0, np.where(X < 0, -1.0, fallback))
        signs[self.fixed] = self.signs[:, None]
        if self.leaves_one:
            agreement = X[self.fixed] * self.signs[:, None]
            worst = agreement.argmin(axis=0)
            columns = np.flatnonzero(agreement.min(axis=0) < 0)
            signs[self.fixed[worst[columns]], columns] *= -1.0
        return signs

    def blocks(
        self, start: FloatArray, count: int, rng: np.random.Generator
    ) -> Iterator[tuple[FloatArray, float, int]]:
        """Yield, without end, the best point, its value and the number of improved columns."""
        best = np.empty(0)
        value = -np.inf
        columns = start
        while True:
            points, values = self.climb(columns)
            improved = int(np.count_nonzero(values > value + self.noise))
            if improved:
                best = points[:, np.argmax(values)]
                value = float(values.max())
            yield best, value, improved
            columns = self.neighbors(best, count, rng)

    def climb(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Search deterministically from each column until no mixture improves."""
        X = X.copy()
        G = self.gradient(X)
        # The start need not be feasible. The first step is feasible and always accepted.
        values = np.full(X.shape[1], -np.inf)
        active = np.arange(X.shape[1])
        while active.size:
            x = X[:, active]
            g = G[:, active]
            u = g * _ratio(np.linalg.norm(x, axis=0), np.linalg.norm(g, axis=0))
            improved = np.zeros(active.size, dtype=bool)
            previous = np.zeros_like(x)  # differs from every candidate
            for k in range(self.mixtures):
                t = k / self.mixtures
                candidate = self.project((1.0 - t) * u + t * x, np.where(x < 0, -1.0, 1.0))
                changed = (candidate != previous).any(axis=0)
                previous = candidate
                if not changed.any():
                    continue
                tried = candidate[:, changed]
                where = active[changed]
                gradient = self.gradient(tried)
                new = np.einsum("ij,ij->j", tried, gradient + self.h[:, None])
                better = new > values[where] + self.noise
                X[:, where[better]] = tried[:, better]
                G[:, where[better]] = gradient[:, better]
                values[where[better]] = new[better]
                improved[np.flatnonzero(changed)[better]] = True
            active = active[improved]
        return X, values

    def neighbors(self, x: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Return stochastic neighbours of x as columns, by bootstrapping the nodes."""
        n = x.size
        w = rng.multinomial(n, np.full(n, 1.0 / n), size=count).T.astype(np.float64)
        u = w * (self.gradient(w * x[:, None]))
        v = np.where(u == 0, 0.0, w * x[:, None])
        u *= _ratio(np.linalg.norm(v, axis=0), np.linalg.norm(u, axis=0))
        t = rng.random(count)
        mixed = (1.0 - t) * u + t * v
        cut = np.take_along_axis(mixed, rng.integers(n, size=count)[None, :], axis=0)
        return np.asarray(np.where(u == 0, 0.0, np.sign(mixed - cut)))


def _ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.divide(a, b, out=np.ones_like(a), where=b > 0)


def _search(problem: Problem, variant: str, mixtures: int) -> Search:
    """Return the search for a problem, scaled to avoid overflow."""
    if isinstance(problem, GraphProblem):
        Q = problem.adjacency
        h = problem.bias
        if variant == "authors":
            Q = -Q
            h = -h
        fixed = problem.labeled
        signs = problem.labels[fixed].astype(np.float64)
    else:
        Q = problem.reduced().P
        h = np.zeros(problem.n_nodes)
        fixed = np.array([problem.anchor])
        signs = np.ones(1)
    scale = max(float(np.abs(Q.data).max(initial=0.0)), float(np.abs(h).max()))
    # SciPy divides by a scalar by multiplying with its reciprocal, which may overflow.
    Q = sp.csr_array((Q.data / scale, Q.indices, Q.indptr), shape=Q.shape)
    h = h / scale
    n = problem.n_nodes
    dense = n <= DENSE_NODES and Q.nnz > DENSE_SHARE * n * n
    leaves_one = variant == "authors" and isinstance(problem, GraphProblem) and fixed.size > 0
    noise = 1e-13 * float(abs(Q).sum() + 2.0 * np.abs(h).sum())
    return Search(Q.toarray() if dense else Q, h, fixed, signs, mixtures, noise, leaves_one)


def _starts(problem: Problem, search: Search, x0: FloatArray | None) -> FloatArray:
    """Spread the fixed signs from neighbour to neighbour by the sign of the gradient."""
    if x0 is not None:
        return np.asarray(x0, dtype=np.float64)[:, None]
    x = np.zeros((problem.n_nodes, 1))
    x[search.fixed, 0] = search.signs
    for _ in range(100):  # more distant nodes start at +1
        empty = x == 0
        x[empty] = np.sign(search.gradient(x))[empty]
        left = np.count_nonzero(x == 0)
        if left == 0 or left == np.count_nonzero(empty):
            break
    return x
