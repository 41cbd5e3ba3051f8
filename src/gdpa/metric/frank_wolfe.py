r"""Frank-Wolfe on the psd matrices of a balanced signed graph of features.

M is the generalised Laplacian of a signed graph: node colours ``beta_i`` in {+1, -1} fix the sign
of every off-diagonal entry, ``M_ij = -beta_i beta_j a_ij`` with ``a_ij >= 0``, so the graph is
balanced whatever a. For a positive v the disc left-ends give linear constraints,

    M_ii - sum_j a_ij v_j / v_i >= floor   for all i,     tr M <= trace,

a polytope whose vertices are known: ``floor I`` plus the whole remaining trace on one of the
matrices ``x x'``, x of unit length with one entry (a feature) or two (an edge, ``x_i : x_j`` as
``sqrt(v_j) : sqrt(v_i)``). The linear program of a Frank-Wolfe step is therefore solved by a look
at the slopes ``x' G x``; HiGHS finds the same vertex (it does so in the tests).

Aligning v with the first eigenvector of M keeps M inside the next polytope, and M still cannot
move towards edges with another ratio. So each sweep offers every edge a second vertex as well, the
eigenvector of the 2x2 block of G: the lowest slope that any ratio has. Then the limit for fixed
colours is the optimum over all psd matrices with these signs, and the Frank-Wolfe gap bounds how
far it is.

Reference: C. Yang, G. Cheung, W. Hu, "Signed graph metric learning via Gershgorin disc perfect
alignment", IEEE Transactions on Pattern Analysis and Machine Intelligence 44 (2022).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import ConvergenceWarning
from ..gershgorin import align
from ..linalg import first_eigenvector
from .objectives import FloatArray, Matrix, Objective


@dataclass(frozen=True)
class SignedGraph:
    """A balanced signed graph of the features, and the metric it stands for.

    Parameters
    ----------
    diagonal : ndarray of shape (n_features,)
        Diagonal of M.
    colors : ndarray of shape (n_nodes,)
        +1 or -1 for the leading features, which may have edges.
    weights : ndarray of shape (n_nodes, n_nodes)
        Absolute off-diagonal entries of M among them, above the diagonal.
    """

    diagonal: FloatArray
    colors: FloatArray
    weights: FloatArray

    def matrix(self) -> Matrix:
        """Return M; sparse where not every feature may have edges."""
        off = -self.weights * np.outer(self.colors, self.colors)
        d, k = self.diagonal.size, self.colors.size
        if k == d:
            return np.asarray(off + off.T + np.diag(self.diagonal))
        upper = sp.csr_array(off)
        upper.resize((d, d))
        return sp.csr_array(upper + upper.T + sp.diags_array(self.diagonal))

    def scaling(self) -> FloatArray:
        """Return the sizes of the first eigenvector of each component of M."""
        off = sp.csr_array(self.weights)
        A = sp.diags_array(self.diagonal[: self.colors.size]) - off - off.T
        with warnings.catch_warnings():
            # A left-end that is not quite aligned shows in `_vertices` as a diagonal below 0.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.abs(align(A).v)


@dataclass
class Vertices:
    """Amounts of matrices ``x x'``, x with the entries `x` at feature i and `y` at feature j."""

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    x: FloatArray
    y: FloatArray
    amount: FloatArray

    def slopes(self, diagonal: FloatArray, G: FloatArray) -> FloatArray:
        """Return ``x' G x`` for each."""
        slopes = diagonal[self.i] * self.x**2
        edge = np.flatnonzero(self.y)
        i, j, x, y = self.i[edge], self.j[edge], self.x[edge], self.y[edge]
        slopes[edge] += diagonal[j] * y**2 + 2.0 * x * y * G[i, j]
        return slopes

    def graph(self, graph: SignedGraph, floor: float) -> SignedGraph:
        """Return the graph of the sum of all, with the colours of `graph`."""
        d, k = graph.diagonal.size, graph.colors.size
        diagonal = _sum(self.i, self.amount * self.x**2, d) + _sum(
            self.j, self.amount * self.y**2, d
        )
        edge = np.flatnonzero((self.y != 0.0) & (self.amount > 0.0))
        size = self.amount[edge] * np.abs(self.x[edge] * self.y[edge])
        weights = _sum(self.i[edge] * k + self.j[edge], size, k * k).reshape(k, k)
        return replace(graph, diagonal=floor + diagonal, weights=weights)


def _sum(index: NDArray[np.intp], x: FloatArray, n: int) -> FloatArray:
    return np.bincount(index, x, n).astype(np.float64, copy=False)


def edge_slopes(diagonal: FloatArray, G: FloatArray) -> FloatArray:
    """Lowest slope ``x' G x`` of each edge: the smaller eigenvalue of its 2x2 block of G.

    An x with this slope has ``x_i x_j G_ij < 0``: the edge must have the sign of G_ij.
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
        What to minimise.
    n_features, n_nodes : int
        Order of M, and how many leading features may have edges.
    trace, floor : float
        Upper bound of the trace and lower bound of every disc left-end.

    Attributes
    ----------
    graph, value, gap : SignedGraph, float, float
        The best graph so far, its objective, and how much lower it can be with its colours.
    history : list of float
        The objective after every sweep.
    steps, converged, interrupted : int, bool, bool
        Steps taken, and how the run ended.
    """

    def __init__(
        self, objective: Objective, n_features: int, n_nodes: int, trace: float, floor: float
    ) -> None:
        self.objective, self.floor = objective, floor
        self.budget = trace - n_features * floor
        diagonal, G = np.full(n_features, trace / n_features), np.zeros((n_nodes, n_nodes))
        graph = SignedGraph(diagonal, np.ones(n_nodes), G)
        _, G = objective.gradient(objective.loss(objective.image(graph.matrix()))[1], n_nodes)
        # Colours that agree with the signs of G on its heaviest edges.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # only its signs are used
            first = first_eigenvector(np.diag(G.diagonal()) - G, tol=1e-2, max_iter=30).vector
        self.graph = replace(graph, colors=np.where(first < 0, -1.0, 1.0))
        self.value, self.gap = self.evaluate(self.graph), np.inf
        self.history, self.steps = [self.value], 0
        self.converged = self.interrupted = False
        self.base = objective.image(sp.eye_array(n_features, format="csr") * floor)

    def evaluate(self, graph: SignedGraph) -> float:
        """Evaluate the objective."""
        return self.objective.loss(self.objective.image(graph.matrix()))[0]

    def sweep(self, graph: SignedGraph, steps: int) -> tuple[SignedGraph, float, float, int]:
        """Align the discs and take pairwise steps; returns graph, value, gap and steps taken."""
        objective, k = self.objective, graph.colors.size
        image = objective.image(graph.matrix())
        value, A = objective.loss(image)
        diagonal, G = objective.gradient(A, k)
        vertices = self._vertices(graph, diagonal, G)
        taken = 0
        while taken < steps:
            slopes = vertices.slopes(diagonal, G)
            # Less than this cannot be moved: the value would not change in its last digits.
            used = vertices.amount > 1e-12 * self.budget
            total, mean = float(vertices.amount.sum()), float(slopes @ vertices.amount)
            best, worst = int(slopes.argmin()), int(np.where(used, slopes, -np.inf).argmax())
            # The matrix ``floor I`` is a vertex too, of slope 0; the unused trace is its amount.
            up = 1.0 if slopes[best] < 0.0 else 0.0
            unused = self.budget - total > 1e-12 * self.budget and slopes[worst] <= 0.0
            high, low = (0.0 if unused else float(slopes[worst])), up * float(slopes[best])
            if not high - low > 1e-12 * abs(low):
                break
            change = up * self._atom(vertices, best)
            # Towards the best vertex from where M is, or from the worst vertex only.
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
            image, value, A = image + step * change, after, derivatives
            diagonal, G = objective.gradient(A, k)
            taken += 1
        moved = vertices.graph(graph, self.floor)
        agree = np.outer(graph.colors, graph.colors) * G > 0.0
        lowest = float(edge_slopes(diagonal, G).min(initial=0.0, where=agree))
        lowest = min(lowest, float(diagonal.min()))
        gap = float(vertices.slopes(diagonal, G) @ vertices.amount) - self.budget * lowest
        return moved, self.evaluate(moved), gap, taken

    def _atom(self, vertices: Vertices, which: int) -> FloatArray:
        features = np.array([vertices.i[which], vertices.j[which]])
        return self.objective.atom(features, np.array([vertices.x[which], vertices.y[which]]))

    def _vertices(self, graph: SignedGraph, diagonal: FloatArray, G: FloatArray) -> Vertices:
        """Features, edges in use with the aligned ratio, and edges that may enter."""
        d = graph.diagonal.size
        v = graph.scaling()
        i, j = np.nonzero(graph.weights)
        weight, ratio = graph.weights[i, j], v[j] / v[i]
        rest = graph.diagonal - self.floor
        rest -= _sum(i, weight * ratio, d) + _sum(j, weight / ratio, d)
        whole = ratio + 1.0 / ratio
        agree = np.outer(graph.colors, graph.colors) * G > 0.0
        low = edge_slopes(diagonal, G) < min(0.0, float(diagonal.min()))
        ni, nj = np.nonzero(np.triu(low & agree, 1))
        half = 0.5 * (diagonal[ni] - diagonal[nj])
        share = 0.5 - 0.5 * half / np.hypot(half, G[ni, nj])
        x, y = np.sqrt(share), np.sqrt(1.0 - share)
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
        """False position (Illinois) on the slope over [0, longest]; returns the best step seen."""
        best, step = (0.0, value, derivatives), longest
        low, high = [0.0, float(np.vdot(derivatives, change))], [longest, np.inf]
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
        """Flip the colours of nodes that would then have an edge of lower slope; True if it helps.

        Only slopes that may lower the value by more than `tolerance` count. A node without edges
        may be flipped freely. Of the others, those with the lowest slopes lose their edges, are
        flipped, and keep the new colour if a sweep then ends at a lower value.
        """
        graph, k = self.graph, self.graph.colors.size
        _, A = self.objective.loss(self.objective.image(graph.matrix()))
        diagonal, G = self.objective.gradient(A, k)
        slopes, floor = edge_slopes(diagonal, G), min(0.0, float(diagonal.min()))
        linked = np.asarray((graph.weights + graph.weights.T).any(axis=1))
        colors = graph.colors.copy()
        for node in np.flatnonzero(~linked):
            partner = int(slopes[node].argmin())  # the best edge, whatever its sign, decides
            colors[node] = colors[partner] * (1.0 if G[node, partner] > 0 else -1.0)
        now, then = (np.outer(beta, beta) * G > 0.0 for beta in (graph.colors, colors))
        lowest, enough = float(slopes.min(initial=floor, where=now)), tolerance / self.budget
        helped = bool(slopes.min(initial=floor, where=then) < lowest - enough)
        if helped:
            self.graph, now = replace(graph, colors=colors), then
            graph, lowest = self.graph, float(slopes.min(initial=floor, where=then))
        forbidden = np.where(now, np.inf, slopes).min(axis=1)
        for node in np.argsort(forbidden, kind="stable")[:trials]:
            if not forbidden[node] < lowest - enough or not linked[node]:
                continue
            colors, weights = graph.colors.copy(), graph.weights.copy()
            colors[node] *= -1.0
            weights[node] = weights[:, node] = 0.0
            trial = replace(graph, colors=colors, weights=weights)
            moved, value, gap, steps = self.sweep(trial, 15)
            self.steps += steps
            if value < self.value:
                self.graph, self.value, self.gap, graph = moved, value, gap, moved
                helped = True
        return helped

    def run(self, max_iter: int, tol: float) -> FrankWolfe:
        """Sweep until no colour helps and the gap is within the tolerance; Ctrl-C ends it early.

        The tolerance is `tol` times the value plus a hundredth of the first one.
        """
        try:
            for _ in range(max_iter):
                graph, value, gap, steps = self.sweep(self.graph, 50)
                self.steps += steps
                fell = value < self.value
                if fell:
                    self.graph, self.value, self.gap = graph, value, gap
                tolerance = tol * (abs(self.value) + 0.01 * abs(self.history[0]))
                flipped = self.revise_colors(tolerance)
                self.history.append(self.value)
                self.converged = gap <= tolerance and not flipped
                if self.converged or not (fell or flipped):
                    break
        except KeyboardInterrupt:
            self.interrupted = True
        return self
