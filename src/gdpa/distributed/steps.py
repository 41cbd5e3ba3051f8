"""The solve on parts: one call per part and step, which takes its halo from the others.

After each step a part writes what the others need of its scores, one run of numbers per receiver;
each reads its own run and nothing else. Scores stay in the worker that made them. A worker that has
none, because another was lost, starts from the last checkpoint and repeats the steps since with
the halos that are still there: nobody else is asked to repeat anything. Parts that touch no other
take all steps between two checkpoints in one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..system import system_diagonal
from .chebyshev import BlockFilling, BlockSystem, State
from .manifest import Output
from .rows import Shard, load_shard
from .shuffle import part_file
from .store import Folder, open_folder, raw_bytes

__all__ = ["Column", "Place", "Spec", "begin", "checkpoint_file", "forget", "take_steps"]

FloatArray = NDArray[np.float64]


def checkpoint_file(name: str, step: int, part: int, what: str) -> str:
    """Name of a file of a checkpoint: "x" for scores, "d" for the last change."""
    return f"solve/{name}/{step:05d}.{part:05d}.{what}.npy"


@dataclass(frozen=True)
class Column:
    """One right-hand side.

    Parameters
    ----------
    self_loop : float
        gamma.
    target : int
        The class that is 1, the others 0; -1 for the first class minus the second.
    fold : int
        Labels of this fold are unknown to the column; -1: none.
    """

    self_loop: float
    target: int
    fold: int = -1


@dataclass(frozen=True)
class Spec:
    """A solve.

    Parameters
    ----------
    name : str
        Its name in the work folder.
    columns : tuple of Column
        The right-hand sides.
    label_weight : float
        Weight of the labels; infinite: they are kept.
    fill : tuple of (str, int)
        Solves, with their last steps, whose nodes without a score are to be filled; empty for a
        solve.
    threshold : float
        Sum of scores below which a node has none.
    """

    name: str
    columns: tuple[Column, ...]
    label_weight: float = np.inf
    fill: tuple[tuple[str, int], ...] = ()
    threshold: float = 0.0

    @property
    def self_loops(self) -> tuple[float, ...]:
        """Self-loop of each column."""
        return tuple(column.self_loop for column in self.columns)

    def checkpoint(self, step: int, part: int, what: str) -> str:
        """Name of a file of a checkpoint."""
        return checkpoint_file(self.name, step, part, what)

    def halo(self, step: int, part: int) -> str:
        """Name of the file that a part shares after a step."""
        return f"halo/{self.name}.{step:05d}.{part:05d}.bin"


@dataclass(frozen=True)
class Place:
    """Where a call works: folder, solve, part, the parts of its worker, and the checkpoint."""

    url: str
    spec: Spec
    part: int
    group: tuple[int, ...]
    starts: tuple[int, ...]
    since: int


@dataclass
class _Held:
    """What a worker keeps of a part between two calls."""

    shard: Shard
    counts: NDArray[np.int64]
    send: NDArray[np.intp]
    spec: Spec | None = None
    system: BlockSystem | BlockFilling | None = None
    state: State | None = None
    step: int = -1
    used: tuple[str, int] = ("", 0)


# Parts that this process works on, by work folder and number.
_held: dict[tuple[str, int], _Held] = {}


def forget() -> None:
    """Let go of all parts."""
    _held.clear()


def _hold(folder: Folder, place: Place) -> _Held:
    """The part in this process; parts that went to other workers since a checkpoint are let go."""
    part, starts = place.part, place.starts
    now = (place.spec.name, place.since)
    for url, other in list(_held):
        away = other not in (*place.group, part) and _held[url, other].used != now
        if url != folder.url or away:
            del _held[url, other]
    key = (folder.url, part)
    if key not in _held:
        counts = folder.read_array("rows/counts.npy")
        send = []
        for other in np.flatnonzero(counts[part]).tolist():
            start = int(counts[:part, other].sum())
            nodes = folder.read_array(
                f"rows/{other:05d}.halo.npy", start, start + int(counts[part, other])
            )
            send.append(nodes - starts[part])
        taken = np.concatenate(send) if send else np.empty(0, dtype=np.intp)
        _held[key] = _Held(load_shard(folder, part), counts, taken.astype(np.intp))
    _held[key].used = now
    return _held[key]


def _system(
    folder: Folder, held: _Held, spec: Spec, part: int
) -> tuple[BlockSystem | BlockFilling, State]:
    """The system on a part, and where its iteration starts: labels, and 0 elsewhere."""
    n, k = held.shard.degree.size, len(spec.columns)
    if spec.fill:
        x = np.hstack([folder.read_array(checkpoint_file(*f, part, "x")) for f in spec.fill])
        np.maximum(x, 0.0, out=x)
        total = x.sum(axis=1, keepdims=True)
        x = np.where(total < spec.threshold, 0.0, x / np.maximum(total, 1e-300))
        return BlockFilling(held.shard.W), State(x, np.zeros((0, k)))
    labeled = folder.read_array(part_file(part, "labeled"))
    label = folder.read_array(part_file(part, "label"))
    codes = folder.read_array("plan/codes.npy")[label]
    folds = folder.read_array("plan/folds.npy")[label]
    known = np.array([folds != column.fold for column in spec.columns]).reshape(k, -1).T
    targets = np.stack([_targets(codes, c.target) for c in spec.columns], axis=1) * known
    diagonal = (held.shard.degree > 0).astype(np.float64)  # of the normalised Laplacian
    total = np.stack(
        [
            system_diagonal(diagonal, labeled[own], spec.label_weight, column.self_loop)
            for own, column in zip(known.T, spec.columns, strict=True)
        ],
        axis=1,
    )
    x = np.zeros((n, k), order="F")
    if np.isinf(spec.label_weight):
        same = (known == known[:, :1]).all()
        free = np.ones((n, 1 if same else k))
        free[labeled] -= known[:, :1] if same else known
        x[labeled] = targets
        if diagonal.all():
            total = total[:1]
        system = BlockSystem(held.shard.W, held.shard.degree, total, None, free)
    else:
        rhs = np.zeros((n, k))
        rhs[labeled] = spec.label_weight * targets
        system = BlockSystem(held.shard.W, held.shard.degree, total, rhs, None)
    return system, State(x, np.zeros((n, k), order="F"))


def _targets(codes: NDArray[np.int32], target: int) -> FloatArray:
    if target < 0:
        return np.asarray(np.where(codes == 0, 1.0, -1.0))
    return np.asarray(codes == target, dtype=np.float64)


def _at(folder: Folder, held: _Held, spec: Spec, part: int, step: int, since: int) -> State:
    """State of a part after a step: as it is held, or repeated from the checkpoint `since`."""
    if held.spec != spec or held.system is None:
        held.system, held.state = _system(folder, held, spec, part)
        held.spec, held.step = spec, 0
    if held.step > step or held.step < since:
        if since:
            x, d = (folder.read_array(spec.checkpoint(since, part, what)) for what in "xd")
            held.state = State(np.asfortranarray(x), np.asfortranarray(d))
        else:
            held.state = _system(folder, held, spec, part)[1]
        held.step = since
    while held.step < step:
        _advance(folder, held, spec, part)
    assert held.state is not None
    return held.state


def _advance(folder: Folder, held: _Held, spec: Spec, part: int) -> tuple[FloatArray, int]:
    """One step of a part; returns squared residuals and the bytes it took from others."""
    assert held.system is not None
    assert held.state is not None
    halo, taken = _take(folder, held, spec, part)
    squares = held.system.step(held.state, halo, spec.self_loops, held.step)
    held.step += 1
    return squares, taken


def _take(folder: Folder, held: _Held, spec: Spec, part: int) -> tuple[FloatArray, int]:
    """What the others share with this part after its present step."""
    k = len(spec.columns)
    halo, start = np.empty((held.shard.halo.size, k)), 0
    for other in np.flatnonzero(held.counts[:, part]).tolist():
        first = int(held.counts[other, :part].sum()) * k * 8
        size = int(held.counts[other, part])
        content = folder.read(spec.halo(held.step, other), first, first + size * k * 8)
        halo[start : start + size] = np.frombuffer(content).reshape(size, k)
        start += size
    return halo, halo.nbytes


def _share(folder: Folder, held: _Held, spec: Spec, part: int) -> None:
    """Write what the others need of this part after its present step."""
    if held.send.size:
        assert held.system is not None
        assert held.state is not None
        shared = np.ascontiguousarray(held.system.shared(held.state.x, held.send))
        folder.write(spec.halo(held.step, part), [raw_bytes(shared)])


def begin(place: Place) -> dict[str, Any]:
    """Share the state of the last checkpoint."""
    folder = open_folder(place.url)
    held = _hold(folder, place)
    _at(folder, held, place.spec, place.part, place.since, place.since)
    _share(folder, held, place.spec, place.part)
    return {}


def take_steps(place: Place, first: int, last: int, keep: bool) -> dict[str, Any]:
    """Take steps, share the result, and at a checkpoint keep it."""
    folder = open_folder(place.url)
    held = _hold(folder, place)
    _at(folder, held, place.spec, place.part, first, place.since)
    squares, taken = [], 0
    for _ in range(first, last):
        own, read = _advance(folder, held, place.spec, place.part)
        squares.append(own.tolist())
        taken += read
    files = {}
    if keep:
        output = Output(folder)
        state = _at(folder, held, place.spec, place.part, last, place.since)
        output.array(place.spec.checkpoint(last, place.part, "x"), state.x)
        output.array(place.spec.checkpoint(last, place.part, "d"), state.direction)
        files = output.files
    else:
        _share(folder, held, place.spec, place.part)
    return {"squares": squares, "halo_bytes": taken, "files": files}
