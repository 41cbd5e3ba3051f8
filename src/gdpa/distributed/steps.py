"""The solve on parts: one call per worker and step, which takes its halo from the others.

A worker puts the rows of its parts together. After each step it writes what the others need, one
run of numbers per receiver; each reads its own run and nothing else. Scores stay in the worker that
made them. A worker that has none, because another was lost, starts from the last checkpoint and
repeats the steps since with the halos that are still there: nobody else is asked to repeat
anything. Which parts are together changes no digit. Parts that touch no others take all steps
between two checkpoints in one call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph.adjacency import csr_from_parts
from ..system import system_diagonal
from .chebyshev import BlockFilling, BlockSystem, Rounds, Rows, State
from .manifest import Output
from .rows import load_shard, places
from .shuffle import part_file
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
    """Where a call works.

    Parameters
    ----------
    url : str
        The work folder.
    spec : Spec
        The solve.
    group : int
        Which group of parts.
    bounds : tuple of int
        First part of each group, and the number of parts.
    starts : tuple of int
        First node of each part, and the number of nodes.
    since : int
        Step of the last checkpoint.
    """

    url: str
    spec: Spec
    group: int
    bounds: tuple[int, ...]
    starts: tuple[int, ...]
    since: int

    @property
    def parts(self) -> range:
        """The parts of the group."""
        return range(*self.bounds[self.group : self.group + 2])


@dataclass
class _Held:
    """What a worker keeps of a group of parts between two calls."""

    rows: Rows
    take: NDArray[np.intp]  # where the halo begins that each group sends
    send: NDArray[np.intp]  # own rows that others need, group by group
    ends: NDArray[np.int64]  # where those of each group begin
    spec: Spec | None = None
    system: BlockSystem | BlockFilling | None = None
    state: State | None = None
    step: int = -1
    used: tuple[str, int] = ("", 0)
    offsets: dict[int, int] = field(default_factory=dict)  # of its run in what others send


# Groups of parts that this process works on, by work folder, groups, number and precision.
_held: dict[tuple[str, tuple[int, ...], int, bool], _Held] = {}


def forget() -> None:
    """Let go of all parts."""
    _held.clear()


def _hold(folder: Folder, place: Place) -> _Held:
    """The group in this process; what was not asked for since the last checkpoint is let go."""
    now = (place.spec.name, place.since)
    key = (folder.url, place.bounds, place.group, place.spec.rounds is None)
    for other in [k for k in _held if k != key and _held[k].used != now]:
        del _held[other]
    if key not in _held:
        _held[key] = _load(folder, place)
    _held[key].used = now
    return _held[key]


def _load(folder: Folder, place: Place) -> _Held:
    """Put the rows of a group together."""
    parts, starts, bounds = place.parts, place.starts, place.bounds
    low, high = starts[parts.start], starts[parts.stop]
    kind = np.float64 if place.spec.rounds is None else np.float32
    outside = []
    for part in parts:
        nodes = folder.read_array(f"rows/{part:05d}.halo.npy")
        outside.append(nodes[(nodes < low) | (nodes >= high)])
    halo = np.unique(np.concatenate(outside))
    below = int(np.searchsorted(halo, low))
    blocks, degree = [], []
    for part in parts:
        shard = load_shard(folder, part)
        own = np.arange(starts[part], starts[part + 1])
        before = np.searchsorted(shard.halo, own[:1])
        nodes = np.insert(shard.halo, np.repeat(before, own.size), own)
        place_of = places(nodes, low, high, halo)
        W = shard.W
        with np.errstate(under="ignore"):
            data = W.data.astype(kind, copy=False)
        shape = (own.size, high - low + halo.size)
        blocks.append(csr_from_parts(data, place_of[W.indices], W.indptr, shape))
        degree.append(shard.degree)

    def weights(number: int) -> FloatArray:
        return folder.read_array(f"rows/{parts[number]:05d}.data.npy")

    own_columns = slice(below, below + high - low)
    rows = Rows(tuple(blocks), own_columns, np.concatenate(degree), weights)
    counts = folder.read_array("rows/counts.npy")
    send = [
        _needed(folder, counts, parts, range(*bounds[g : g + 2])) - low
        for g in range(len(bounds) - 1)
    ]
    return _Held(
        rows,
        np.searchsorted(halo, np.asarray(starts)[list(bounds)]),
        np.concatenate(send).astype(np.intp),
        np.concatenate([[0], np.cumsum([nodes.size for nodes in send])]),
    )


def _needed(
    folder: Folder, counts: NDArray[np.int64], parts: range, others: range
) -> NDArray[np.int64]:
    """Nodes of a group of parts that another group has in its halo."""
    found = [np.empty(0, dtype=np.int64)]
    for other in others if parts != others else ():
        first, last = (int(counts[:part, other].sum()) for part in (parts.start, parts.stop))
        if first < last:
            found.append(folder.read_array(f"rows/{other:05d}.halo.npy", first, last))
    return np.unique(np.concatenate(found))


def _part_labels(folder: Folder, parts: range, ends: list[int]) -> tuple[Any, Any]:
    """Labelled rows of a group, and which of the labels they have."""
    rows = [
        folder.read_array(part_file(p, "labeled")) + e for p, e in zip(parts, ends, strict=False)
    ]
    return np.concatenate(rows), np.concatenate(
        [folder.read_array(part_file(p, "label")) for p in parts]
    )


def _system(
    folder: Folder, held: _Held, spec: Spec, parts: range
) -> tuple[BlockSystem | BlockFilling, State]:
    """The system on a group, and where its iteration starts: labels, and 0 elsewhere."""
    n, k = held.rows.degree.size, len(spec.columns)
    if spec.rounds is None:
        x = np.hstack(
            [
                np.vstack([folder.read_array(checkpoint_file(*f, part, "x")) for part in parts])
                for f in spec.fill
            ]
        )
        np.maximum(x, 0.0, out=x)
        total = x.sum(axis=1, keepdims=True)
        x = np.where(total < spec.threshold, 0.0, x / np.maximum(total, 1e-300))
        return BlockFilling(held.rows), State.begin(x)
    labeled, label = _part_labels(folder, parts, held.rows.ends)
    codes = folder.read_array("plan/codes.npy")[label]
    folds = folder.read_array("plan/folds.npy")[label]
    known = np.array([folds != column.fold for column in spec.columns]).reshape(k, -1).T
    targets = np.stack([_targets(codes, c.target) for c in spec.columns], axis=1) * known
    diagonal = (held.rows.degree > 0).astype(np.float64)  # of the normalised Laplacian
    finite = np.isfinite(spec.label_weight)
    if not finite and diagonal.all():
        total = 1.0 + np.array([spec.self_loops])
    else:
        total = np.empty((n, k), order="F")
        for j, column in enumerate(spec.columns):
            mine = labeled[known[:, j]]
            total[:, j] = system_diagonal(diagonal, mine, spec.label_weight, column.self_loop)
    x = np.zeros((n, k), order="F")
    if finite:
        rhs = np.zeros((n, k), order="F")
        rhs[labeled] = spec.label_weight * targets
        return BlockSystem(held.rows, spec.rounds, total, rhs, None), State.begin(x)
    same = bool((known == known[:, :1]).all())
    free = np.ones((n, 1 if same else k), dtype=bool, order="F")
    free[labeled] = ~(known[:, :1] if same else known)
    x[labeled] = targets
    return BlockSystem(held.rows, spec.rounds, total, None, free), State.begin(x)


def _targets(codes: NDArray[np.int32], target: int) -> FloatArray:
    if target < 0:
        return np.asarray(np.where(codes == 0, 1.0, -1.0))
    return np.asarray(codes == target, dtype=np.float64)


def _at(folder: Folder, held: _Held, place: Place, step: int) -> State:
    """State of a group before a step: as it is held, or repeated from the last checkpoint."""
    spec, since = place.spec, place.since
    if held.spec != spec or held.system is None:
        held.system, held.state = _system(folder, held, spec, place.parts)
        held.spec, held.step = spec, 0
    if held.step > step or held.step < since:
        if since:
            kept = (
                np.vstack([folder.read_array(spec.checkpoint(since, p, what)) for p in place.parts])
                for what in "xdr"
            )
            held.state = State(*map(np.asfortranarray, kept))
        else:
            held.state = _system(folder, held, spec, place.parts)[1]
        held.step = since
    while held.step < step:
        _advance(folder, held, place)
    assert held.state is not None
    return held.state


def _advance(folder: Folder, held: _Held, place: Place) -> int:
    """One step of a group; returns the bytes it took from others."""
    assert held.system is not None
    assert held.state is not None
    halo = _take(folder, held, place)
    held.system.step(held.state, halo, held.step)
    held.step += 1
    return halo.nbytes


def _take(folder: Folder, held: _Held, place: Place) -> NDArray[Any]:
    """What the others share with this group before its next step."""
    assert held.system is not None
    columns, kind = held.system.taken(held.step)
    k = len(place.spec.columns) if columns is None else columns
    halo = np.empty((int(held.take[-1]), k), dtype=kind)
    width = k * kind.itemsize
    for other, size in enumerate(np.diff(held.take).tolist()):
        if size:
            first = _offset(folder, held, place, other) * width
            name = place.spec.halo(held.step, other)
            content = folder.read(name, first, first + size * width)
            run = np.frombuffer(content, dtype=kind).reshape(size, k)
            halo[held.take[other] : held.take[other + 1]] = run
    return halo


def _offset(folder: Folder, held: _Held, place: Place, other: int) -> int:
    """Where the run for this group begins in what another one shares."""
    if other not in held.offsets:
        first = 8 * place.group
        content = folder.read(_ends_file(place, other), first, first + 8)
        held.offsets[other] = int(np.frombuffer(content, dtype=np.int64)[0])
    return held.offsets[other]


def _ends_file(place: Place, group: int) -> str:
    """Name of the file that says where the runs of a group begin."""
    return f"halo/{place.spec.name}.{group:05d}.ends"


def _share(folder: Folder, held: _Held, place: Place) -> None:
    """Write what the others need of this group before the next step."""
    if held.send.size:
        assert held.system is not None
        assert held.state is not None
        shared = np.ascontiguousarray(held.system.shared(held.state, held.send, held.step))
        folder.write(place.spec.halo(held.step, place.group), [raw_bytes(shared)])


def begin(place: Place) -> dict[str, Any]:
    """Share the state of the last checkpoint, and where everyone finds it."""
    folder = open_folder(place.url)
    held = _hold(folder, place)
    _at(folder, held, place, place.since)
    folder.write(_ends_file(place, place.group), [raw_bytes(held.ends.astype(np.int64))])
    _share(folder, held, place)
    return {}


def take_steps(place: Place, first: int, last: int, keep: bool) -> dict[str, Any]:
    """Take steps, share the result, and at a checkpoint keep it.

    Returns
    -------
    dict
        "first", "last": squared residuals before the first and the last of the steps, by part and
        column; "halo_bytes": taken from others; "files": of each part's checkpoint.
    """
    folder = open_folder(place.url)
    held = _hold(folder, place)
    state = _at(folder, held, place, first)
    assert held.system is not None
    taken = _advance(folder, held, place)
    squares = held.system.squares(state) if first == 0 else []
    for _ in range(first + 1, last):
        taken += _advance(folder, held, place)
    if not keep:
        _share(folder, held, place)
        return {"first": squares, "halo_bytes": taken}
    files = []
    for part, (start, stop) in zip(place.parts, pairwise(held.rows.ends), strict=True):
        output = Output(folder)
        kept: dict[str, NDArray[Any]] = {"x": state.x, "d": state.direction, "r": state.residual}
        for what, values in kept.items():
            output.array(place.spec.checkpoint(last, part, what), values[start:stop])
        files.append(output.files)
    found = {"first": squares, "last": held.system.squares(state), "halo_bytes": taken}
    return found | {"files": files}
