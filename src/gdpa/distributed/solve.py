"""The distributed solve: Chebyshev iteration, which needs no inner products.

With the normalised Laplacian and a self-loop gamma the system, scaled by its diagonal, is

    I - D^-1/2 A D^-1/2,     A = S W S,  S = diag(degree)^-1/2,  D = 1 + gamma

Its spectrum lies in 1 -+ 1 / (1 + gamma), at any size (|A| <= 1). So the iteration needs about
``sqrt(2 / gamma) log(2 / tol) / 2`` steps, which is known in advance.

Steps run in single precision, which halves the memory traffic and the messages. They are grouped in
rounds: a round computes the residual in double precision, solves for a correction, and adds it to
the scores.

Each worker holds the rows of a group of parts. Before each step it receives the values of its halo
from the other workers. Dask moves them, and recomputes the values of a lost worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from .cluster import Runner
from .folder import Folder
from .manifest import Output
from .rows import GroupRows, in_order, load_group

Float32Array = NDArray[np.float32]

# The iteration needs about 100 steps to reach 1e-6 here, and 3 times as many for a tenth of it.
MIN_SELF_LOOP = 0.01


def steps_needed(self_loop: float, tol: float) -> int:
    """Return the number of steps that reduce the error by `tol`, for any graph."""
    root = np.sqrt((2.0 + self_loop) / self_loop)
    return int(np.ceil(np.log(2.0 / tol) / np.log((root + 1.0) / (root - 1.0))))


def coefficients(self_loop: float, n_steps: int) -> Iterator[tuple[float, float]]:
    """Yield the factors a, b of each step ``direction = a * direction + b * residual``."""
    # The spectrum lies in 1 -+ radius.
    radius = 1.0 / (1.0 + self_loop)
    yield 0.0, 1.0
    before = rho = radius
    for _ in range(n_steps - 1):
        before, rho = rho, 1.0 / (2.0 / radius - rho)
        yield rho * before, 2.0 * rho / radius


@dataclass(frozen=True)
class Solve:
    """One system with several right-hand sides.

    Parameters
    ----------
    name : str
        Name of the stage.
    self_loop : float
        gamma.
    columns : tuple of (int, int)
        For each right-hand side, the class whose labels are 1 (the others are 0), and the fold
        whose labels are held out (-1 for none).
    """

    name: str
    self_loop: float
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class State:
    """State of a round: the correction so far, its last change, and the residual before that."""

    total: Float32Array
    change: Float32Array
    residual: Float32Array

    def __sizeof__(self) -> int:
        """Return the size in bytes, by which Dask schedules transfers."""
        return 3 * self.total.nbytes


def _known(rows: GroupRows, solve: Solve) -> NDArray[np.bool_]:
    """Return which labels are not held out, for each column."""
    return np.array([rows.fold != fold for _, fold in solve.columns])


def first_scores(rows: GroupRows, solve: Solve) -> FloatArray:
    """Return the initial scores, one row per right-hand side: known labels, else 0."""
    x = np.zeros((len(solve.columns), rows.root.size))
    is_class = np.array([rows.code == code for code, _ in solve.columns])
    x[:, rows.labeled] = _known(rows, solve) & is_class
    return x


def begin_round(rows: GroupRows, solve: Solve, x: FloatArray, *halo: FloatArray) -> State:
    """Return a state with the residual of the scores; it is 0 at known labels."""
    residual = rows.product(x, _joined(halo, x))
    residual -= _diagonal(rows, solve) * x
    residual[:, rows.labeled] *= ~_known(rows, solve)
    zeros = np.zeros(x.shape, dtype=np.float32)
    return State(zeros, zeros, residual.astype(np.float32))


def take_step(
    rows: GroupRows, solve: Solve, factors: tuple[float, float], state: State, *halo: Float32Array
) -> State:
    """Take one step of a round; the first step needs no halo."""
    diagonal = _diagonal(rows, solve).astype(np.float32)
    momentum, length = np.float32(factors[0]), np.float32(factors[1])
    residual = state.residual
    if momentum:
        residual = rows.product(state.change, _joined(halo, state.change))
        residual -= diagonal * state.change
        residual[:, rows.labeled] *= ~_known(rows, solve)
        residual += state.residual
    change = residual * (length / diagonal)
    change += momentum * state.change
    return State(state.total + change, change, residual)


def squares(rows: GroupRows, solve: Solve, state: State) -> list[list[float]]:
    """Return the squared norm of the scaled residual, by part and column."""
    r = state.residual.astype(np.float64)
    weighted = r * r / _diagonal(rows, solve)
    return [weighted[:, low:high].sum(axis=1).tolist() for low, high in pairwise(rows.ends)]


def end_round(x: FloatArray, state: State) -> FloatArray:
    """Add the correction of a round to the scores."""
    return x + state.total


def share(rows: GroupRows, values: State | FloatArray, other: int) -> NDArray[Any]:
    """Return the scores, or last changes, that another group needs."""
    array = values.change if isinstance(values, State) else values
    return np.ascontiguousarray(array[:, rows.send[other]])


def _diagonal(rows: GroupRows, solve: Solve) -> FloatArray:
    """Return the diagonal of the system; a node without neighbours has only the self-loop."""
    return np.asarray((rows.root > 0) + np.float64(solve.self_loop))


def _joined(halo: Sequence[NDArray[Any]], like: NDArray[Any]) -> NDArray[Any]:
    return np.hstack([np.empty((like.shape[0], 0), like.dtype), *halo])


def label_scores(rows: GroupRows, x: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the label numbers of a group, and their scores."""
    return rows.label, x[:, rows.labeled].T


def score_file(name: str, part: int) -> str:
    """Return the file name of the scores of a part."""
    return f"scores/{name.replace(' ', '-')}.{part:05d}.npy"


def save_scores(rows: GroupRows, x: FloatArray, name: str) -> list[str]:
    """Write the scores of each part; return the file names."""
    output = Output(Folder(rows.url))
    for part, (low, high) in zip(rows.parts, pairwise(rows.ends), strict=True):
        output.array(score_file(name, part), x[:, low:high].T)
    return output.files


def read_shares(rows: GroupRows, names: Sequence[str], threshold: float) -> FloatArray:
    """Return class shares from the stored scores; 0 where scores are below the threshold."""
    folder = Folder(rows.url)
    F = np.vstack(
        [np.hstack([folder.read_array(score_file(n, part)) for n in names]) for part in rows.parts]
    )
    F = np.maximum(F, 0.0)
    total = F.sum(axis=1, keepdims=True)
    return np.where(total < threshold, 0.0, F / np.maximum(total, 1e-300)).T


def fill(rows: GroupRows, x: FloatArray, *halo: FloatArray) -> FloatArray:
    """Give nodes without shares the weighted mean of their neighbours' shares."""
    z = in_order(x, _joined(halo, x), rows.below)
    x = x.copy()
    for W, span in rows.blocks_in(np.dtype(np.float64)):
        empty = span.start + np.flatnonzero(x[:, span].max(axis=0, initial=0.0) <= 0)
        means = W[empty - span.start] @ z.T
        total = means.sum(axis=1)
        x[:, empty[total > 0]] = (means[total > 0] / total[total > 0, None]).T
    return x


def count_empty(rows: GroupRows, x: FloatArray) -> int:
    """Return the number of nodes without shares."""
    return int(np.count_nonzero(~x.any(axis=0)))


class Solver:
    """Controls the solve from the client: submits the calls for all groups of parts.

    Parameters
    ----------
    runner : Runner
        Runs the calls.
    starts : sequence of int
        First node of each part, and the number of nodes.
    halo : list of list of int
        For each part, the number of nodes of each other part that its rows are linked to.
    """

    def __init__(self, runner: Runner, starts: Sequence[int], halo: list[list[int]]) -> None:
        self.runner, self.starts, self.halo = runner, list(starts), np.array(halo)
        self.bounds: list[int] = []

    def _connect(self) -> None:
        """Assign a group of parts to each worker."""
        n_parts = len(self.starts) - 1
        n_groups = min(n_parts, self.runner.n_workers)
        bounds = [-(-group * n_parts // n_groups) for group in range(n_groups + 1)]
        if bounds == self.bounds:
            return
        self.bounds, url = bounds, self.runner.folder.url
        counts = np.add.reduceat(np.add.reduceat(self.halo, bounds[:-1], 0), bounds[:-1], 1)
        groups = range(n_groups)
        self.near = [[q for q in groups if q != p and counts[p, q]] for p in groups]
        self.rows = [self.runner.submit(load_group, url, p, bounds, self.starts) for p in groups]

    def _each(self, function: Callable[..., object], *arguments: object) -> list[Any]:
        """Submit a call for each group; of an argument that is a list, each group gets one item."""
        return [
            self.runner.submit(
                function, rows, *(a[p] if isinstance(a, list) else a for a in arguments)
            )
            for p, rows in enumerate(self.rows)
        ]

    def _exchange(
        self, function: Callable[..., object], arguments: Sequence[object], values: list[Any]
    ) -> list[Any]:
        """Submit a call for each group, with the values that it needs from other groups."""
        return [
            self.runner.submit(
                function, rows, *arguments, values[p],
                *(self.runner.submit(share, self.rows[q], values[q], p) for q in self.near[p]),
            )
            for p, rows in enumerate(self.rows)
        ]  # fmt: skip

    def _scores(self, solve: Solve, tol: float) -> tuple[list[Any], dict[str, Any]]:
        """Return the scores of each group as futures, and a summary of the solve."""
        self._connect()
        # In single precision a round can reduce the residual by 1e-5 at most, if gamma is 0.01.
        n_rounds = max(1, int(np.ceil(np.log(tol) / np.log(1e-4))))
        n_steps = steps_needed(solve.self_loop, tol ** (1.0 / n_rounds))
        x = self._each(first_scores, solve)
        first: FloatArray = np.empty(0)
        done, residual = 0, np.inf
        for _ in range(n_rounds + 1):  # one extra round
            state = self._exchange(begin_round, [solve], x)
            by_group = self.runner.gather(self._each(squares, solve, state))
            square = np.sum(np.concatenate(by_group), axis=0)  # the parts in their order
            first = first if first.size else square
            ratio = np.divide(square, first, out=np.zeros(first.size), where=first > 0)
            residual = float(np.sqrt(ratio.max(initial=0.0)))
            self.runner.progress(done, max(done, n_rounds * n_steps))
            if residual <= tol:
                break
            for step, factors in enumerate(coefficients(solve.self_loop, n_steps)):
                if step == 0:
                    state = self._each(take_step, solve, factors, state)
                else:
                    state = self._exchange(take_step, [solve, factors], state)
                if step % 16 == 15:  # limits the number of pending calls
                    self.runner.wait(state)
                    self.runner.progress(done + step + 1, n_rounds * n_steps)
            x = [self.runner.submit(end_round, *own) for own in zip(x, state, strict=True)]
            done += n_steps
        return x, {"steps": done, "residual": residual, "converged": residual <= tol}

    def label_scores(self, solve: Solve, tol: float) -> FloatArray:
        """Return the scores of all labelled nodes, one column per right-hand side."""

        def run(output: Output) -> dict[str, Any]:
            x, result = self._scores(solve, tol)
            by_group = self.runner.gather(self._each(label_scores, x))
            label, scores = map(np.concatenate, zip(*by_group, strict=True))
            output.array(score_file(solve.name, 0), scores[np.argsort(label)])
            return result

        self.runner.stage(solve.name, run, here=True)
        return self.runner.folder.read_array(score_file(solve.name, 0))

    def scores(self, solve: Solve, tol: float) -> dict[str, Any]:
        """Solve and write the scores of all nodes; return a summary of the solve."""

        def run(output: Output) -> dict[str, Any]:
            x, result = self._scores(solve, tol)
            self._save(output, solve.name, x)
            return result

        return self.runner.stage(solve.name, run, here=True)[0]

    def fill(self, name: str, solves: Sequence[str], threshold: float, limit: int = 10_000) -> bool:
        """Write shares for nodes too far from any label to have a score; return if there are any.

        Such nodes take the mean shares of their neighbours, ring by ring.
        """

        def run(output: Output) -> dict[str, Any]:
            self._connect()
            x = self._each(read_shares, tuple(solves), threshold)
            far = left = sum(self.runner.gather(self._each(count_empty, x)))
            for _ in range(limit if far else 0):
                x, before = self._exchange(fill, [], x), left
                left = sum(self.runner.gather(self._each(count_empty, x)))
                self.runner.progress(far - left, far)
                if left == before:
                    break
            if far:
                self._save(output, name, x)
            return {"far": far}

        return bool(self.runner.stage(name, run, here=True)[0]["far"])

    def _save(self, output: Output, name: str, x: list[Any]) -> None:
        for files in self.runner.gather(self._each(save_scores, x, name)):
            output.files += files
