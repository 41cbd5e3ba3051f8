r"""Frank-Wolfe over the psd matrices of a balanced signed graph of features.

M is the generalised Laplacian of a signed graph. Node colours ``beta_i`` in {+1, -1} determine the
sign of every off-diagonal entry, ``M_ij = -beta_i beta_j a_ij`` with ``a_ij >= 0``, so the graph is
balanced for every a. For a positive v, the disc left-ends give the linear constraints

    M_ii - sum_j a_ij v_j / v_i >= floor   for all i,     tr M <= trace.

They define a polytope with known vertices: ``floor I`` plus the remaining trace times one of the
matrices ``x x'``, where the unit vector x has one non-zero entry (a feature) or two (an edge, with
``x_i : x_j`` equal to ``sqrt(v_j) : sqrt(v_i)``). The linear program of a Frank-Wolfe step is
therefore solved by comparing the slopes ``x' G x``, where G is the gradient. The tests check that
HiGHS finds the same vertex.

If v is aligned with the first eigenvector of M, then M lies in the next polytope but cannot move
towards edges with other ratios. Each sweep therefore adds a second vertex per edge, the eigenvector
of the 2x2 block of G, which has the lowest slope of all ratios. For fixed colours, the iterates
then converge to the optimum over all psd matrices with these signs, and the Frank-Wolfe gap bounds
the distance from it.

Reference: C. Yang, G. Cheung, W. Hu, "Signed graph metric learning via Gershgorin disc perfect
alignment", IEEE Transactions on Pattern Analysis and Machine Intelligence 44 (2022).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..errors import ConvergenceWarning
from ..gershgorin import align
from ..linalg import first_eigenvector
from .objectives import Matrix, Objective


@dataclass(frozen=True)
class SignedGraph:
    """Balanced signed graph of the features, which represents a metric M.

    Parameters
    ----------
    diagonal : ndarray of shape (n_features,)
        Diagonal of M.
    colors : ndarray of shape (n_nodes,)
        Colours (+1 or -1) of the leading features, which are those that may have edges.
    weights : ndarray of shape (n_nodes, n_nodes)
        Absolute values of the entries of M above the diagonal, for these features.
    """

    diagonal: FloatArray
    colors: FloatArray
    weights: FloatArray

    def matrix(self) -> Matrix:
        """Return M, as a sparse array unless all features may have edges."""
        off = -self.weights * np.outer(self.colors, self.colors)
        d = self.diagonal.size
        k = self.colors.size
        if k == d:
            return np.asarray(off + off.T + np.diag(self.diagonal))
        upper = sp.csr_array(off)
        upper.resize((d, d))
        return sp.csr_array(upper + upper.T + sp.diags_array(self.diagonal))

    def scaling(self) -> FloatArray:
        """Return the absolute values of the first eigenvector of each component of M."""
        off = sp.csr_array(self.weights)
        A = sp.diags_array(self.diagonal[: self.colors.size]) - off - off.T
        # An inexact alignment is harmless: `_vertices` clips negative amounts to 0.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            return np.abs(align(A).v)


@dataclass
class Vertices:
    """Amounts of matrices ``x x'``, where x has entry `x` at feature i and `y` at feature j."""

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    x: FloatArray
    y: FloatArray
    amount: FloatArray

    def slopes(self, diagonal: FloatArray, G: FloatArray) -> FloatArray:
        """Return ``x' G x`` for each vertex."""
        slopes = diagonal[self.i] * self.x**2
        edge = np.flatnonzero(self.y)
        i = self.i[edge]
        j = self.j[edge]
        x = self.x[edge]
        y = self.y[edge]
        slopes[edge] += diagonal[j] * y**2 + 2.0 * x * y * G[i, j]
        return slopes

    def graph(self, graph: SignedGraph, floor: float) -> SignedGraph:
        """Return the graph of the weighted sum of the vertices, with the colours of `graph`."""
        d = graph.diagonal.size
        k = graph.colors.size
        diagonal = _sum(self.i, self.amount * self.x**2, d) + _sum(
            self.j, self.amount * self.y**2, d
        )
        edge = np.flatnonzero((self.y != 0.0) & (self.amount > 0.0))
        size = self.amount[edge] * np.abs(self.x[edge] * self.y[edge])
        weights = _sum(self.i[edge] * k + self.j[edge], size, k * k).reshape(k, k)
        return replace(graph, diagonal=floor + diagonal, weights=weights)


def _sum(index: NDArray[np.intp], x: FloatArray, n: int) -> FloatArray:
    """Return the sums of x per index."""
    return np.bincount(index, x, n).astype(np.float64, copy=False)


def edge_slopes(diagonal: FloatArray, G: FloatArray) -> FloatArray:
    """Return the lowest slope ``x' G x`` of each edge, the smaller eigenvalue of its block of G.

    The minimising x has ``x_i x_j G_ij < 0``, so the sign of the edge must agree with G_ij.
    """
    g = 0.5 * diagonal[: len(G)]
    half = g[:, None] - g
    slopes = (g[:, None] + g) - np.sqrt(half * half + G * G)
    np.fill_diagonal(slopes, np.inf)
    return slopes


class FrankWolfe:
    """Minimise a convex objective over the psd matrices of balanced signed graphs.

    Parameters
    ----------
    objective : Objective
        Objective to minimise.
    n_features, n_nodes : int
        Number of features, and number of leading features that may have edges.
    trace, floor : float
        Upper bound of the trace and lower bound of every disc left-end.

    Attributes
    ----------
    graph, value, gap : SignedGraph, float, float
        Best graph so far, its objective, and a bound on the possible decrease with its colours.
    history : list of float
        Objective after every sweep.
    steps, converged, interrupted : int, bool, bool
        Number of steps, and how the run ended.
    """

    def __init__(
        self, objective: Objective, n_features: int, n_nodes: int, trace: float, floor: float
    ) -> None:
        self.objective = objective
        self.floor = floor
        self.budget = trace - n_features * floor
        diagonal = np.full(n_features, trace / n_features)
        G = np.zeros((n_nodes, n_nodes))
        graph = SignedGraph(diagonal, np.ones(n_nodes), G)
        _, G = objective.gradient(objective.loss(objective.image(graph.matrix()))[1], n_nodes)
        # Choose colours that agree with the signs of the largest entries of G.
        # Only the signs are used.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            first = first_eigenvector(np.diag(G.diagonal()) - G, tol=1e-2, max_iter=30).vector
        self.graph = replace(graph, colors=np.where(first < 0, -1.0, 1.0))
        self.value = self.evaluate(self.graph)
        self.gap = np.inf
        self.history = [self.value]
        self.steps = 0
        self.converged = self.interrupted = False
        self.base = objective.image(sp.eye_array(n_features, format="csr") * floor)

    def evaluate(self, graph: SignedGraph) -> float:
        """Return the objective at a graph."""
        return self.objective.loss(self.objective.image(graph.matrix()))[0]

    def sweep(self, graph: SignedGraph, steps: int) -> tuple[SignedGraph, float, float, int]:
        """Align the discs and take steps; return the graph, value, gap and number of steps."""
        objective = self.objective
        k = graph.colors.size
        image = objective.image(graph.matrix())
        value, A = objective.loss(image)
        diagonal, G = objective.gradient(A, k)
        vertices = self._vertices(graph, diagonal, G)
        taken = 0
        while taken < steps:
            slopes = vertices.slopes(diagonal, G)
            # Moving smaller amounts would change the value only by rounding errors.
            used = vertices.amount > 1e-12 * self.budget
            total = float(vertices.amount.sum())
            mean = float(slopes @ vertices.amount)
            best = int(slopes.argmin())
            worst = int(np.where(used, slopes, -np.inf).argmax())
            # ``floor I`` is a vertex of slope 0, and its amount is the unused trace.
            up = 1.0 if slopes[best] < 0.0 else 0.0
            unused = self.budget - total > 1e-12 * self.budget and slopes[worst] <= 0.0
            high = 0.0 if unused else float(slopes[worst])
            low = up * float(slopes[best])
            if not high - low > 1e-12 * abs(low):
                break
            change = up * self._atom(vertices, best)
            # Move towards the best vertex, either from M or away from the worst vertex (pairwise).
            if mean - self.budget * low >= self.budget * high - mean:
                change = self.budget * change - (image - self.base)
                amount = -vertices.amount
                amount[best] += up * self.budget
                longest = 1.0
            else:
                amount = np.zeros_like(slopes)
                amount[best] = up
                longest = self.budget - total
                if not unused:
                    change = change - self._atom(vertices, worst)
                    amount[worst] -= 1.0
                    longest = float(vertices.amount[worst])
            step, after, derivatives = self._line_search(image, change, longest, value, A)
            if not after < value:
                break
            vertices.amount = np.maximum(vertices.amount + step * amount, 0.0)
            image = image + step * change
            value = after
            A = derivatives
            diagonal, G = objective.gradient(A, k)
            taken += 1
        moved = vertices.graph(graph, self.floor)
        agree = np.outer(graph.colors, graph.colors) * G > 0.0
        lowest = float(edge_slopes(diagonal, G).min(initial=0.0, where=agree))
        lowest = min(lowest, float(diagonal.min()))
        gap = float(vertices.slopes(diagonal, G) @ vertices.amount) - self.budget * lowest
        return moved, self.evaluate(moved), gap, taken

    def _atom(self, vertices: Vertices, which: int) -> FloatArray:
        """Return the image of one vertex."""
        features = np.array([vertices.i[which], vertices.j[which]])
        return self.objective.atom(features, np.array([vertices.x[which], vertices.y[which]]))

    def _vertices(self, graph: SignedGraph, diagonal: FloatArray, G: FloatArray) -> Vertices:
        """Return the features, current edges with aligned ratios, and edges that may enter."""
        d = graph.diagonal.size
        v = graph.scaling()
        i, j = np.nonzero(graph.weights)
        weight = graph.weights[i, j]
        ratio = v[j] / v[i]
        rest = graph.diagonal - self.floor
        rest -= _sum(i, weight * ratio, d) + _sum(j, weight / ratio, d)
        whole = ratio + 1.0 / ratio
        agree = np.outer(graph.colors, graph.colors) * G > 0.0
        low = edge_slopes(diagonal, G) < min(0.0, float(diagonal.min()))
        ni, nj = np.nonzero(np.triu(low & agree, 1))
        half = 0.5 * (diagonal[ni] - diagonal[nj])
        share = 0.5 - 0.5 * half / np.hypot(half, G[ni, nj])
        x = np.sqrt(share)
        y = np.sqrt(1.0 - share)
        sign = -graph.colors[np.concatenate([i, ni])] * graph.colors[np.concatenate([j, nj])]
        every = np.arange(d)
        return Vertices(
            np.concatenate([every, i, ni]),
            np.concatenate([every, j, nj]),
            np.concatenate([np.ones(d), np.sqrt(ratio / whole), x]),
            np.concatenate(
                [np.zeros(d), sign * np.concatenate([np.sqrt(1.0 / (ratio * whole)), y])]
            ),
            np.concatenate([np.maximum(rest, 0.0), weight * whole, np.zeros(ni.size)]),
        )

    def _line_search(
        self,
        image: FloatArray,
        change: FloatArray,
        longest: float,
        value: float,
        derivatives: FloatArray,
    ) -> tuple[float, float, FloatArray]:
        """Find a zero of the slope in [0, longest] by the Illinois method; return the best step."""
        best = (0.0, value, derivatives)
        step = longest
        low = [0.0, float(np.vdot(derivatives, change))]
        high = [longest, np.inf]
        flat = 0.1 * abs(low[1])
        for _ in range(20):
            after, derivatives = self.objective.loss(image + step * change)
            slope = float(np.vdot(derivatives, change))
            if after < best[1]:
                best = (step, after, derivatives)
            if (step == longest and slope <= 0.0) or abs(slope) <= flat:
                break
            if slope > 0.0:
                high = [step, slope]
                low[1] *= 0.5
            else:
                low = [step, slope]
                high[1] *= 0.5
            step = low[0] - low[1] * (high[0] - low[0]) / (high[1] - low[1])
        return best

    def revise_colors(self, tolerance: float, trials: int = 2) -> bool:
        """Flip colours that allow edges of lower slope; return whether this helped.

        Only slopes that can decrease the value by more than `tolerance` count. Nodes without edges
        are flipped at no cost. Of the other nodes, those with the lowest slopes lose their edges
        and are flipped. They keep the new colour if a sweep then reaches a lower value.
        """
        graph = self.graph
        k = self.graph.colors.size
        _, A = self.objective.loss(self.objective.image(graph.matrix()))
        diagonal, G = self.objective.gradient(A, k)
        slopes = edge_slopes(diagonal, G)
        floor = min(0.0, float(diagonal.min()))
        linked = np.asarray((graph.weights + graph.weights.T).any(axis=1))
        colors = graph.colors.copy()
        for node in np.flatnonzero(~linked):
            partner = int(slopes[node].argmin())  # best edge of either sign
            colors[node] = colors[partner] * (1.0 if G[node, partner] > 0 else -1.0)
        now, then = (np.outer(beta, beta) * G > 0.0 for beta in (graph.colors, colors))
        lowest = float(slopes.min(initial=floor, where=now))
        enough = tolerance / self.budget
        helped = bool(slopes.min(initial=floor, where=then) < lowest - enough)
        if helped:
            self.graph = replace(graph, colors=colors)
            now = then
            graph = self.graph
            lowest = float(slopes.min(initial=floor, where=then))
        forbidden = np.where(now, np.inf, slopes).min(axis=1)
        for node in np.argsort(forbidden, kind="stable")[:trials]:
            if not forbidden[node] < lowest - enough or not linked[node]:
                continue
            colors = graph.colors.copy()
            weights = graph.weights.copy()
            colors[node] *= -1.0
            weights[node] = weights[:, node] = 0.0
            trial = replace(graph, colors=colors, weights=weights)
            moved, value, gap, steps = self.sweep(trial, 15)
            self.steps += steps
            if value < self.value:
                self.graph = moved
                self.value = value
                self.gap = gap
                graph = moved
                helped = True
        return helped

    def run(self, max_iter: int, tol: float) -> FrankWolfe:
        """Sweep until the gap meets the tolerance and no colour changes; Ctrl-C stops early.

        The tolerance is `tol` times the sum of the value and 1 % of the initial value.
        """
        try:
            for _ in range(max_iter):
                graph, value, gap, steps = self.sweep(self.graph, 50)
                self.steps += steps
                fell = value < self.value
                if fell:
                    self.graph = graph
                    self.value = value
                    self.gap = gap
                tolerance = tol * (abs(self.value) + 0.01 * abs(self.history[0]))
                flipped = self.revise_colors(tolerance)
                self.history.append(self.value)
                self.converged = gap <= tolerance and not flipped
                if self.converged or not (fell or flipped):
                    break
        except KeyboardInterrupt:
            self.interrupted = True
        return self
