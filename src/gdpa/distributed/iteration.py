"""Distributed conjugate gradients, controlled from the client.

:mod:`gdpa.distributed.conjugate_gradients` has the steps of a group. A round starts from the
residual of the current scores and ends if the residual, as updated by the steps, is small enough;
the next round computes it from the scores and confirms that. If the first steps show that many
would follow, the coarse level is added.

Every minute the state is written to the work folder. A run that was stopped continues there, and
Dask need not repeat earlier steps if a worker is lost.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..arrays import FloatArray
from . import coarse
from . import conjugate_gradients as steps
from .coarse import CoarseInverse, GroupPatches
from .components import Tags
from .conjugate_gradients import NOTHING, GroupSystem, Solve, State
from .folder import DamagedFileError, Folder
from .groups import Groups, total_of
from .rows import GroupRows

MAX_STEPS = 10_000
# A round must reduce the residual by this factor; otherwise rounding errors prevent more.
LEAST_REDUCTION = 0.5
# After this number of steps it is decided whether the coarse level pays: it does, if at the present
# rate more than MANY_STEPS are needed.
PROBE_STEPS = 40
MANY_STEPS = 150
# Steps between two reports of progress.
REPORT_EVERY = 8
# Hubs have no edges to hubs outside of their own rows.
NO_HUBS = np.empty((0, 0))


@dataclass(frozen=True)
class Convergence:
    """How a solve ended.

    Parameters
    ----------
    steps : int
        Number of steps; each multiplies the graph once.
    residual : float
        Largest relative residual of a column, computed from the final scores.
    converged : bool
        Whether the tolerance was met.
    coarse : bool
        Whether the coarse level was used.
    bytes_moved : int
        Bytes of values that travelled between workers.
    """

    steps: int
    residual: float
    converged: bool
    coarse: bool
    bytes_moved: int


@dataclass(frozen=True)
class Position:
    """Where an iteration is, besides its vectors. Arrays have one entry per column.

    Parameters
    ----------
    done : int
        Number of steps.
    size : list of float
        Squared norm of the right-hand side.
    first, square : list of float
        Squared norm of the residual at the beginning of the round, and now.
    rho : list of float
        Inner product of the residual and the preconditioned residual.
    beta : list of float
        Factor of the last direction in the next one.
    coarse : bool
        Whether the coarse level is in use.
    probing : bool
        Whether it may be added in this round.
    """

    done: int
    size: list[float]
    first: list[float]
    square: list[float]
    rho: list[float]
    beta: list[float]
    coarse: bool
    probing: bool

    @property
    def residual(self) -> float:
        """Largest relative residual of a column."""
        return float(np.sqrt(np.max(np.array(self.square) / np.array(self.size))))


def load_tags(rows: GroupRows) -> Tags:
    """Read the tags of the nodes of a group."""
    folder = Folder(rows.url)
    return np.concatenate([folder.read_array(f"tags/{part:05d}.npy") for part in rows.parts])


def scores_of(state: State) -> FloatArray:
    """Return the scores of a state."""
    return state.x


def precondition(system: GroupSystem, patches: GroupPatches | None, state: State) -> State:
    """Return the state with the residual preconditioned by what a part knows."""
    if patches is None:
        return state
    return replace(state, z=patches.correct(system, state.r))


def advance(
    system: GroupSystem, patches: GroupPatches | None, state: State, alpha: FloatArray
) -> State:
    """Return the state after a step of length alpha."""
    return precondition(system, patches, steps.advance(state, alpha))


def measure(
    rows: GroupRows, system: GroupSystem, patches: GroupPatches | None, state: State
) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """Return ``r' diag^-1 r``, ``r' z`` and the sums of r over patches, for each part."""
    squares = steps.residuals(rows, system, state)
    if patches is None:
        return [(square, square, NOTHING) for square in squares]
    products = steps.dots(rows, state.r, state.z)
    return list(zip(squares, products, coarse.restrict(rows, patches, state.r), strict=True))


def turn(
    system: GroupSystem,
    patches: GroupPatches | None,
    state: State,
    beta: FloatArray,
    small: FloatArray,
) -> State:
    """Return the state with the next direction; `small` is the solution of the coarse level."""
    return steps.turn(system, state, beta, None if patches is None else patches.prolong(small))


def state_file(name: str, slot: int, part: int) -> str:
    """Return the file name of the stored state of a part."""
    return f"checkpoint/{name.replace(' ', '-')}.{slot}.{part:05d}.npy"


def save_state(rows: GroupRows, state: State, name: str, slot: int) -> None:
    """Write scores, residual and direction of each part."""
    folder = Folder(rows.url)
    for part, span in zip(rows.parts, rows.spans, strict=True):
        vectors = np.stack([state.x[:, span], state.r[:, span], state.p[:, span]])
        folder.write_array(state_file(name, slot, part), vectors)


def load_state(rows: GroupRows, name: str, slot: int) -> State:
    """Read a state that :func:`save_state` wrote."""
    folder = Folder(rows.url)
    parts = [folder.read_array(state_file(name, slot, part)) for part in rows.parts]
    x, r, p = np.concatenate(parts, axis=2)
    return State(x, r, p)


class Iteration:
    """Solves one labelled system.

    Parameters
    ----------
    groups : Groups
        The rows of the graph.
    solve : Solve
        The system.
    tol : float
        Relative residual to reach.
    aim : float
        Relative residual at which the iteration ends, at most `tol`. If rounding errors prevent
        it, the iteration has still converged if it reached `tol`.
    tagged : bool
        Whether only nodes with a tag, which are connected to a label, are solved for.
    nodes : list of int
        Number of nodes of each part.
    interval : float
        Seconds between two stored states.
    """

    def __init__(
        self,
        groups: Groups,
        solve: Solve,
        tol: float,
        *,
        aim: float,
        tagged: bool,
        nodes: list[int],
        interval: float,
    ) -> None:
        self.groups = groups
        self.solve = solve
        self.tol = tol
        self.aim = aim
        self.nodes = nodes
        self.interval = interval
        self.folder = Folder(groups.url)
        self.systems = groups.each(steps.make_system, groups.rows, solve)
        self.hubs = steps.make_system(groups.hubs, solve)
        if tagged:
            tags = groups.each(load_tags, groups.rows)
            self.systems = groups.each(steps.make_system, groups.rows, solve, tags)
            if groups.n_hubs:
                self.hubs = steps.make_system(groups.hubs, solve, load_tags(groups.hubs))
        self.patches: list[Any] = [None for _ in groups.numbers]
        self.inverse: CoarseInverse | None = None
        self.small: FloatArray = NOTHING
        # The state of the groups (as futures) and that of the hubs.
        self.state: list[Any] = []
        self.hub_state = State(NOTHING, NOTHING, NOTHING)
        self.slot = 0

    def run(self) -> tuple[list[Any], FloatArray, Convergence]:
        """Return the scores of each group as futures, those of the hubs, and how it ended."""
        position = self._restore() or self._first()
        while True:
            start = position.residual
            position = self._round(position)
            is_slow = position.probing and self._is_slow(position)
            if is_slow:
                self._add_coarse()
            self._begin(self.groups.each(scores_of, self.state), self.hub_state.x)
            square, rho = self._measure()
            position = replace(
                position,
                first=square.tolist(),
                square=square.tolist(),
                rho=rho.tolist(),
                beta=np.zeros_like(square).tolist(),
                coarse=self.inverse is not None,
                probing=False,
            )
            converged = position.residual <= self.tol
            stuck = not is_slow and position.residual > LEAST_REDUCTION * start
            done = position.residual <= self.aim or stuck or position.done >= MAX_STEPS
            if done:
                self._forget()
                found = Convergence(
                    steps=position.done,
                    residual=position.residual,
                    converged=converged,
                    coarse=position.coarse,
                    bytes_moved=8 * self.groups.halo_size * len(position.size) * position.done,
                )
                return self.groups.each(scores_of, self.state), self.hub_state.x, found

    def _first(self) -> Position:
        """Start from the labels."""
        self._begin(
            self.groups.each(steps.first_scores, self.systems), steps.first_scores(self.hubs)
        )
        square, rho = self._measure()
        size = np.where(square > 0, square, 1.0)
        return Position(
            done=0,
            size=size.tolist(),
            first=square.tolist(),
            square=square.tolist(),
            rho=rho.tolist(),
            beta=np.zeros_like(square).tolist(),
            coarse=False,
            probing=sum(coarse.patch_counts(self.nodes)) > len(self.nodes),
        )

    def _begin(self, x: list[Any], hub_x: FloatArray) -> None:
        """Compute the residuals of scores."""
        groups = self.groups
        halo = groups.halo(steps.values_to_send, groups.rows, self.systems, x)
        from_parts = self._for_hubs(x, hub_x)
        hub_values = self.hubs.scaled(hub_x)
        self.state = groups.exchange(steps.begin, halo, groups.rows, self.systems, hub_values, x)
        self.state = groups.each(precondition, self.systems, self.patches, self.state)
        self.hub_state = steps.begin(groups.hubs, self.hubs, NO_HUBS, hub_x, from_parts=from_parts)

    def _for_hubs(self, values: list[Any], like: FloatArray) -> FloatArray:
        """Return what all parts add to the rows of the hubs."""
        if not self.groups.n_hubs:
            return np.zeros_like(like)
        parts = self.groups.by_part(steps.hub_sums, self.groups.rows, self.systems, values)
        return total_of(parts, like)

    def _measure(self) -> tuple[FloatArray, FloatArray]:
        """Return ``r' diag^-1 r`` and ``r' M r`` by column, and solve the coarse level."""
        groups = self.groups
        parts = groups.by_part(measure, groups.rows, self.systems, self.patches, self.state)
        of_hubs = steps.residuals(groups.hubs, self.hubs, self.hub_state)
        squares = [square for square, _, _ in parts]
        square = total_of([*squares, *of_hubs], squares[0])
        if self.inverse is None:
            return square, square
        rho = total_of([*(product for _, product, _ in parts), *of_hubs], square)
        restricted = np.hstack([sums for _, _, sums in parts])
        self.small = self.inverse.solve(restricted)
        return square, rho + np.einsum("ij,ij->i", restricted, self.small)

    def _round(self, position: Position) -> Position:
        """Take steps until the residual of each column is small enough."""
        size = np.array(position.size)
        target = (0.9 * self.aim) ** 2 * size
        first, square, rho, beta = (
            np.array(values)
            for values in (position.first, position.square, position.rho, position.beta)
        )
        done = begun = position.done
        written = time.monotonic()
        while done < MAX_STEPS:
            running = square > target
            now = replace(
                position,
                done=done,
                square=square.tolist(),
                rho=rho.tolist(),
                beta=beta.tolist(),
            )
            probed = position.probing and done == PROBE_STEPS and self._is_slow(now)
            if not running.any() or probed:
                break
            if time.monotonic() - written > self.interval and done > begun:
                self._save(now)
                written = time.monotonic()
            curvature = self._multiply(beta)
            # A column that has converged, or whose curvature is lost to rounding, stays as it is.
            moves = running & (curvature > 0)
            alpha = np.divide(rho, curvature, out=np.zeros_like(rho), where=moves)
            self.state = self.groups.each(advance, self.systems, self.patches, self.state, alpha)
            self.hub_state = steps.advance(self.hub_state, alpha)
            before = rho
            square, rho = self._measure()
            beta = np.divide(rho, before, out=np.zeros_like(rho), where=before > 0)
            done += 1
            if done % REPORT_EVERY == 0:
                self._report(first, square, target)
            if not moves.any():
                break
        return replace(position, done=done, square=square.tolist())

    def _multiply(self, beta: FloatArray) -> FloatArray:
        """Choose the next direction and multiply it; return its curvature by column."""
        groups = self.groups
        self.state = groups.each(turn, self.systems, self.patches, self.state, beta, self.small)
        self.hub_state = steps.turn(self.hubs, self.hub_state, beta)
        halo = groups.halo(steps.values_to_send, groups.rows, self.systems, self.state)
        from_parts = self._for_hubs(self.state, self.hub_state.p)
        hub_p = self.hubs.scaled(self.hub_state.p)
        self.state = groups.exchange(
            steps.multiply, halo, groups.rows, self.systems, hub_p, self.state
        )
        self.hub_state = steps.multiply(
            groups.hubs, self.hubs, NO_HUBS, self.hub_state, from_parts=from_parts
        )
        parts = groups.by_part(steps.curvatures, groups.rows, self.state)
        parts += steps.curvatures(groups.hubs, self.hub_state)
        return total_of(parts, beta)

    def _report(self, first: FloatArray, square: FloatArray, target: FloatArray) -> None:
        """Report progress: of the digits that the residual must lose, how many it has lost."""
        is_open = (first > target) & (target > 0)
        if is_open.any():
            whole = np.log(first[is_open] / target[is_open])
            left = np.log(np.maximum(square[is_open] / target[is_open], 1.0))
            share = float((1.0 - left / whole).min())
            self.groups.runner.progress(int(1000 * max(share, 0.0)), 1000)

    # -- the coarse level -------------------------------------------------------------------------

    def _is_slow(self, position: Position) -> bool:
        """Return whether the first steps show that many would follow."""
        if position.done < PROBE_STEPS or position.residual <= self.aim:
            return False
        lost = max(-np.log(position.residual), 1e-3)
        return bool(-np.log(self.aim) / lost * position.done > MANY_STEPS)

    def _add_coarse(self) -> None:
        """Divide the nodes into patches, and invert the small matrix."""
        groups = self.groups
        counts = tuple(coarse.patch_counts(self.nodes))
        sizes = tuple(coarse.level_sizes(self.nodes))
        self.patches = groups.each(coarse.make_patches, groups.rows, self.systems, counts, sizes)
        halo = groups.halo(coarse.patches_to_send, groups.rows, self.systems, self.patches)
        futures = groups.exchange(coarse.coarse_rows, halo, groups.rows, self.systems, self.patches)
        parts = [part for group in groups.runner.gather(futures) for part in group]
        matrix = np.vstack(parts)
        self.inverse = CoarseInverse((matrix + matrix.T) / 2)

    # -- stored states ----------------------------------------------------------------------------

    @property
    def _record(self) -> str:
        return f"checkpoint/{self.solve.name.replace(' ', '-')}.json"

    def _save(self, position: Position) -> None:
        """Write the state; then forget how it was computed."""
        groups = self.groups
        name = self.solve.name
        self.slot = 1 - self.slot
        groups.gather(save_state, groups.rows, self.state, name, self.slot)
        save_state(groups.hubs, self.hub_state, name, self.slot)
        self.folder.write_json(self._record, {"slot": self.slot, "position": asdict(position)})
        self.state = groups.each(load_state, groups.rows, name, self.slot)
        self.state = groups.each(precondition, self.systems, self.patches, self.state)

    def _restore(self) -> Position | None:
        """Continue from a stored state; return None if there is none that is intact."""
        try:
            stored = self.folder.read_json(self._record)
        except (FileNotFoundError, DamagedFileError):
            return None
        self.slot = stored["slot"]
        parts = range(self.groups.n_parts + (self.groups.n_hubs > 0))
        files = [state_file(self.solve.name, self.slot, part) for part in parts]
        if not all(map(self.folder.is_intact, files)):
            return None
        position = Position(**stored["position"])
        groups = self.groups
        self.state = groups.each(load_state, groups.rows, self.solve.name, self.slot)
        empty = np.zeros((len(position.size), 0))
        self.hub_state = State(empty, empty, empty)
        if groups.n_hubs:
            self.hub_state = load_state(groups.hubs, self.solve.name, self.slot)
        if position.coarse:
            self._add_coarse()
            self.state = groups.each(precondition, self.systems, self.patches, self.state)
        self._measure()
        return position

    def _forget(self) -> None:
        """Remove stored states."""
        parts = range(self.groups.n_parts + (self.groups.n_hubs > 0))
        name = self.solve.name
        files = [state_file(name, slot, part) for slot in (0, 1) for part in parts]
        self.folder.remove([self._record, *files])
