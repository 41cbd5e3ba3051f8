"""The solve on parts, seen from the client: which calls, until when, and what is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chebyshev import Rounds
from .groups import FRINGE, MOST_DEPTH, Group, group_bounds, look_around
from .manifest import Record
from .runner import Call, Event, Runner
from .steps import Place, Spec, begin, take_steps

__all__ = ["Solved", "solve"]

# Steps between two checkpoints, of which each writes 16 bytes per node and column: a tenth of the
# time of these steps.
STEPS = 16
# Most steps of filling nodes without a score: no graph of neighbours is that long.
FILL_STEPS = 10_000


@dataclass(frozen=True)
class Solved:
    """How a solve ended.

    Parameters
    ----------
    step : int
        The last step, whose checkpoint holds the scores.
    residual : float
        Largest relative residual of a column, one step before.
    converged : bool
        Whether it is within the tolerance.
    halo_bytes : int
        Bytes that all parts took from others in all steps of this run.
    """

    step: int
    residual: float
    converged: bool
    halo_bytes: int = 0


def _depth(
    runner: Runner, bounds: tuple[int, ...], starts: tuple[int, ...], counts: NDArray[np.int64]
) -> int:
    """Steps between two exchanges: more than one where few rows have to be solved twice for it."""
    if bounds in runner.depths or len(bounds) == 2:
        return runner.depths.get(bounds, 1)
    groups = [Group(g, bounds, starts) for g in range(len(bounds) - 1)]
    allowed = [FRINGE * (group.high - group.low) for group in groups]
    depth = 1
    for group, most in zip(groups, allowed, strict=True):
        near = counts[:, group.parts].sum() - counts[group.parts][:, group.parts].sum()
        if near > most:  # those that several parts share are counted twice, for want of better
            break
    else:
        url = runner.folder.url
        calls = [Call(f"{g.number}", look_around, {"url": url, "group": g}, (), g.number)
                 for g in groups]  # fmt: skip
        for sizes in zip(*runner.calls("around", calls).values(), strict=False):
            if all(size <= most for size, most in zip(sizes, allowed, strict=True)):
                depth += 1
    runner.depths[bounds] = min(depth, MOST_DEPTH)
    return runner.depths[bounds]


def _calls(
    url: str, spec: Spec, groups: list[Group], counts: NDArray[np.int64], since: int, steps: int
) -> list[Call]:
    """Calls from one checkpoint to the next."""
    places = [Place(url, spec, group, since) for group in groups]
    near: NDArray[np.bool_] = np.array(
        [[counts[p.parts][:, q.parts].any() for q in groups] for p in groups]
    )
    near[np.diag_indices(len(groups))] = False
    near |= near.T
    if groups[0].depth > 1:  # through others
        for _ in range(groups[0].depth):
            near = near | (near.astype(int) @ near > 0)
        near[np.diag_indices(len(groups))] = False
    end = since + steps
    times = [t for t in range(since, end) if places[0].exchanges(t)]
    calls = [
        Call(f"{since}-{p.group.number}", begin, {"place": p}, (), p.group.number)
        for p in places
        if near[p.group.number].any()
    ]
    for first, last in pairwise([*times, end]):
        for g, place in enumerate(places):
            # Nobody waits for those that are alone: they do all in one call.
            alone = not near[g].any()
            if alone and last < end:
                continue
            arguments = {"place": place, "first": since if alone else first, "last": last}
            arguments["keep"] = last == end
            after = () if alone else (g, *np.flatnonzero(near[g]).tolist())
            waits = tuple(f"{first}-{q}" for q in after)
            calls.append(Call(f"{last}-{g}", take_steps, arguments, waits, g))
    return calls


def solve(runner: Runner, spec: Spec, starts: Sequence[int], tol: float) -> Solved:
    """Solve, from the last checkpoint if there is one.

    Parameters
    ----------
    runner : Runner
        Runs the calls.
    spec : Spec
        The solve.
    starts : sequence of int
        First node of each part, and the number of nodes.
    tol : float
        Relative residual to reach.

    Returns
    -------
    Solved
        How it ended; the scores are in the files of the last checkpoint.
    """
    manifest, folder = runner.manifest, runner.folder
    counts = folder.read_array("rows/counts.npy")
    planned = limit = FILL_STEPS
    if not spec.fill:
        rounds = Rounds.of(spec.self_loops, tol)
        # One more, which begins with the residual in double precision; a round to spare.
        planned = rounds.number * rounds.length + 1
        limit, spec = planned + rounds.length, replace(spec, rounds=rounds)
    log = dict(manifest.data.get("solves", {})).get(spec.name, {"step": 0, "base": [], "last": []})
    taken, start = 0, time.perf_counter()
    while True:
        residual = float(sum(log["last"])) if spec.fill else _relative(log["last"], log["base"])
        if log["step"] and (residual <= tol or log["step"] >= limit):
            break
        since = int(log["step"])
        steps = min(STEPS, (planned if since < planned else limit) - since)
        bounds = group_bounds(len(starts) - 1, runner.n_workers)
        depth = 1 if spec.fill else _depth(runner, bounds, tuple(starts), counts)
        groups = [Group(g, bounds, tuple(starts), depth) for g in range(len(bounds) - 1)]
        calls = _calls(folder.url, spec, groups, counts, since, steps)
        results = runner.calls(spec.name, calls)
        end = since + steps
        taken += sum(r.get("halo_bytes", 0) for r in results.values())
        cpu = log.get("cpu", 0.0) + sum(r.get("cpu", 0.0) for r in results.values())
        log = {"step": end, "base": log["base"] or _sums(results, "first"),
               "last": _sums(results, "last"), "cpu": round(cpu, 4)}  # fmt: skip
        manifest.data.setdefault("solves", {})[spec.name] = log
        files = [kept for r in results.values() for kept in r.get("files", ())]
        records = {f"{p:05d}": Record(kept, {}) for p, kept in enumerate(files)}
        manifest.seal(f"{spec.name}-{end:05d}", records, instead_of=f"{spec.name}-{since:05d}")
        folder.remove_tree("halo")
        runner.report(Event(spec.name, end, max(end, planned), time.perf_counter() - start))
    runner.spend(spec.name, time.perf_counter() - start)
    return Solved(int(log["step"]), residual, residual <= tol, taken)


def _sums(results: dict[str, Any], when: str) -> list[float]:
    """Squared residuals, the parts always added in the same order."""
    parts = [squares for result in results.values() for squares in result.get(when, ())]
    total = np.zeros(len(parts[0]))
    for squares in parts:
        total += squares
    return [float(square) for square in total]


def _relative(squares: Sequence[float], first: Sequence[float]) -> float:
    """Largest relative residual of a column."""
    last, base = np.asarray(squares), np.asarray(first)
    some = base > 0
    return float(np.sqrt(last[some] / base[some]).max(initial=0.0)) if some.any() else 0.0
