"""The solve on parts: one call per worker and step, which takes its halo from the others.

A worker puts the rows of its parts together. After each call it writes what the others need, one
run of numbers per receiver; each reads its own run and nothing else. Where the halo is small a call
takes several steps (:mod:`gdpa.distributed.groups`). Scores stay in the worker that made them. One
that has none, because another was lost, starts from the last checkpoint and repeats the steps since
with the halos that are still there: nobody else is asked to repeat anything. Which parts are
together changes no digit. Parts that touch no others take all steps between two checkpoints in one
call.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..system import system_diagonal
from .chebyshev import BlockFilling, BlockSystem, Rounds, State
from .groups import Group, Loaded, load_group
from .manifest import Output
from .memory import give_back
from .store import Folder, open_folder, raw_bytes

__all__ = ["Column", "Place", "Spec", "begin", "checkpoint_file", "forget", "take_steps"]

FloatArray = NDArray[np.float64]


def checkpoint_file(name: str, step: int, part: int, what: str) -> str:
    """Name of a file of a checkpoint: "x" for scores, "d" for changes, "r" for residuals."""
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
    rounds : Rounds, optional
        Its steps; none for a filling.
    """

    name: str
    columns: tuple[Column, ...]
    label_weight: float = np.inf
    fill: tuple[tuple[str, int], ...] = ()
    threshold: float = 0.0
    rounds: Rounds | None = None

    @property
    def self_loops(self) -> tuple[float, ...]:
        """Self-loop of each column."""
        return tuple(column.self_loop for column in self.columns)

    def checkpoint(self, step: int, part: int, what: str) -> str:
        """Name of a file of a checkpoint."""
        return checkpoint_file(self.name, step, part, what)

    def halo(self, step: int, group: int) -> str:
        """Name of the file that a group of parts shares before a step."""
        return f"halo/{self.name}.{step:05d}.{group:05d}.bin"


@dataclass(frozen=True)
class Place:
    """Where a call works: the work folder, the solve, the parts, and the last checkpoint's step."""

    url: str
    spec: Spec
    group: Group
    since: int

    def exchanges(self, step: int) -> bool:
        """Whether the others are asked before a step: after every few, and where a round begins."""
        ago = step - self.since
        if self.spec.rounds is not None:
            ago = min(ago, step % self.spec.rounds.length)
        return ago % self.group.depth == 0


@dataclass
class _Held:
    """What a worker keeps of a group of parts between two calls."""

    group: Loaded
    spec: Spec | None = None
    system: BlockSystem | BlockFilling | None = None
    state: State | None = None
    step: int = -1
    outer: NDArray[Any] | None = None  # what the others shared last
    used: tuple[str, int] = ("", 0)
    offsets: dict[int, int] = field(default_factory=dict)  # of its run in what others send


# Groups of parts that this process works on, by work folder, group and precision.
_held: dict[tuple[str, Group, bool], _Held] = {}


def forget() -> None:
    """Let go of all parts."""
    _held.clear()
    give_back()


def _hold(folder: Folder, place: Place) -> _Held:
    """The group in this process; what was not asked for since the last checkpoint is let go."""
    now = (place.spec.name, place.since)
    key = (folder.url, place.group, place.spec.rounds is None)
    for other in [k for k in _held if k != key and _held[k].used != now]:
        del _held[other]
    if key not in _held:
        dtype = np.float64 if place.spec.rounds is None else np.float32
        _held[key] = _Held(load_group(folder, place.group, dtype))
        give_back()
    _held[key].used = now
    return _held[key]


def _system(
    folder: Folder, held: _Held, spec: Spec, group: Group
) -> tuple[BlockSystem | BlockFilling, State]:
    """The system on a group, and where its iteration starts: labels, and 0 elsewhere."""
    rows, labeled, label = held.group.rows, held.group.labeled, held.group.label
    n, k = rows.root.size, len(spec.columns)
    if spec.rounds is None:
        files = [[checkpoint_file(*f, part, "x") for f in spec.fill] for part in group.parts]
        x = np.vstack([np.hstack([folder.read_array(f) for f in own]) for own in files])
        np.maximum(x, 0.0, out=x)
        total = x.sum(axis=1, keepdims=True)
        x = np.where(total < spec.threshold, 0.0, x / np.maximum(total, 1e-300))
        return BlockFilling(rows), State.begin(x)
    codes = folder.read_array("plan/codes.npy")[label]
    folds = folder.read_array("plan/folds.npy")[label]
    known = np.array([folds != column.fold for column in spec.columns]).reshape(k, -1).T
    targets = np.stack([_targets(codes, c.target) for c in spec.columns], axis=1) * known
    diagonal = (rows.root > 0).astype(np.float64)  # of the normalised Laplacian
    finite = np.isfinite(spec.label_weight)
    if not finite and diagonal.all():
        total = 1.0 + np.array([spec.self_loops])
    else:
        total = np.empty((n, k), order="F")
        for j, column in enumerate(spec.columns):
            mine = labeled[known[:, j]]
            total[:, j] = system_diagonal(diagonal, mine, spec.label_weight, column.self_loop)
    x = np.zeros((n, k), order="F")
    deep = group.depth > 1
    if finite:
        rhs = np.zeros((n, k), order="F")
        rhs[labeled] = spec.label_weight * targets
        return BlockSystem(rows, spec.rounds, total, rhs, None, deep), State.begin(x)
    same = bool((known == known[:, :1]).all())
    free = np.ones((n, 1 if same else k), dtype=bool, order="F")
    free[labeled] = ~(known[:, :1] if same else known)
    x[labeled] = targets
    return BlockSystem(rows, spec.rounds, total, None, free, deep), State.begin(x)


def _targets(codes: NDArray[np.int32], target: int) -> FloatArray:
    if target < 0:
        return np.asarray(np.where(codes == 0, 1.0, -1.0))
    return np.asarray(codes == target, dtype=np.float64)


def _at(folder: Folder, held: _Held, place: Place, step: int) -> State:
    """State of a group before a step: as it is held, or repeated from the last checkpoint."""
    spec, since = place.spec, place.since
    if held.spec != spec or held.system is None:
        held.system = held.state = held.outer = None  # memory for the next one
        held.system, held.state = _system(folder, held, spec, place.group)
        held.spec, held.step = spec, 0
    if held.step > step or held.step < since:
        held.state = None
        held.state = _system(folder, held, spec, place.group)[1]
        for part, rows in zip(place.group.parts, held.group.rows.spans, strict=True):
            for what, values in _kept(held.state).items() if since else ():
                kept = folder.read_array(spec.checkpoint(since, part, what))
                values[slice(*rows)] = kept
        held.step = since
    while held.step < step:
        _advance(folder, held, place)
    assert held.state is not None
    return held.state


def _kept(state: State) -> dict[str, NDArray[Any]]:
    """What a checkpoint holds."""
    return {"x": state.x, "d": state.direction, "r": state.residual}


def _advance(folder: Folder, held: _Held, place: Place) -> int:
    """One step of a group; returns the bytes it took from others."""
    assert held.system is not None
    assert held.state is not None
    taken = 0
    if place.exchanges(held.step):
        halo = _take(folder, held, place)
        deep = held.group.fringe.any()
        if deep:
            held.system.receive(held.state, halo[held.group.fringe], held.step)
        held.outer, taken = halo[held.group.outer] if deep else halo, halo.nbytes
    assert held.outer is not None
    held.system.step(held.state, held.outer, held.step)
    held.step += 1
    return taken


def _take(folder: Folder, held: _Held, place: Place) -> NDArray[Any]:
    """What the others share with this group before its next step."""
    assert held.system is not None
    columns, kind = held.system.taken(held.step)
    k = len(place.spec.columns) if columns is None else columns
    take = held.group.take
    halo = np.empty((int(take[-1]), k), dtype=kind)
    width = k * kind.itemsize
    for other, size in enumerate(np.diff(take).tolist()):
        if size:
            first = _offset(folder, held, place, other) * width
            name = place.spec.halo(held.step, other)
            run = halo[take[other] : take[other + 1]]
            if folder.read_into(name, first, raw_bytes(run)) != run.nbytes:
                raise OSError(f"{folder.url}/{name} is cut short")
    return halo


def _offset(folder: Folder, held: _Held, place: Place, other: int) -> int:
    """Where the run for this group begins in what another one shares."""
    if other not in held.offsets:
        first = 8 * place.group.number
        content = folder.read(_ends_file(place, other), first, first + 8)
        held.offsets[other] = int(np.frombuffer(content, dtype=np.int64)[0])
    return held.offsets[other]


def _ends_file(place: Place, group: int) -> str:
    """Name of the file that says where the runs of a group begin."""
    return f"halo/{place.spec.name}.{group:05d}.ends"


def _share(folder: Folder, held: _Held, place: Place) -> None:
    """Write what the others need of this group before the next step."""
    send = held.group.send
    if send.size:
        assert held.system is not None
        assert held.state is not None
        shared = np.ascontiguousarray(held.system.shared(held.state, send, held.step))
        folder.write(place.spec.halo(held.step, place.group.number), [raw_bytes(shared)])


def begin(place: Place) -> dict[str, Any]:
    """Share the state of the last checkpoint, and where everyone finds it."""
    folder = open_folder(place.url)
    held = _hold(folder, place)
    _at(folder, held, place, place.since)
    folder.write(_ends_file(place, place.group.number), [raw_bytes(held.group.ends)])
    _share(folder, held, place)
    return {}


def take_steps(place: Place, first: int, last: int, keep: bool) -> dict[str, Any]:
    """Take steps, share the result, and at a checkpoint keep it.

    Returns
    -------
    dict
        "first", "last": squared residuals before the first and the last of the steps, by part and
        column; "halo_bytes": taken from others; "files": of each part's checkpoint; "cpu": seconds.
    """
    folder, start = open_folder(place.url), time.process_time()
    held = _hold(folder, place)
    state = _at(folder, held, place, first)
    assert held.system is not None
    taken = _advance(folder, held, place)
    squares = held.system.squares(state) if first == 0 else []
    for _ in range(first + 1, last):
        taken += _advance(folder, held, place)
    if not keep:
        _share(folder, held, place)
        cpu = time.process_time() - start
        return {"first": squares, "halo_bytes": taken, "cpu": cpu}
    files = []
    for part, rows in zip(place.group.parts, held.group.rows.spans, strict=True):
        output = Output(folder)
        for what, values in _kept(state).items():
            output.array(place.spec.checkpoint(last, part, what), values[slice(*rows)])
        files.append(output.files)
    found = {"first": squares, "last": held.system.squares(state), "halo_bytes": taken}
    return found | {"files": files, "cpu": time.process_time() - start}
