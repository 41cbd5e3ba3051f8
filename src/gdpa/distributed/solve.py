"""The solve on parts, seen from the client: which calls, until when, and what is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chebyshev import Rounds
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


def _groups(n_parts: int, n_workers: int) -> tuple[int, ...]:
    """First part of each group, and the number of parts: a group for each worker."""
    n_groups = min(n_parts, n_workers)
    return tuple(-(-group * n_parts // n_groups) for group in range(n_groups + 1))


def _calls(
    url: str, spec: Spec, starts: tuple[int, ...], counts: NDArray[np.int64],
    since: int, steps: int, n_workers: int,
) -> list[Call]:  # fmt: skip
    """Calls from one checkpoint to the next."""
    bounds = _groups(len(starts) - 1, n_workers)
    groups = range(len(bounds) - 1)
    places = [Place(url, spec, g, bounds, starts, since) for g in groups]
    near: NDArray[np.bool_] = np.array(
        [[counts[p.parts][:, q.parts].any() for q in places] for p in places]
    )
    near[np.diag_indices(len(groups))] = False
    near |= near.T
    alone = [not row.any() for row in near]
    end = since + steps
    calls = [
        Call(f"{since}-{g}", begin, {"place": places[g]}, (), g) for g in groups if not alone[g]
    ]
    for step in range(since, end):
        for g in groups:
            # Nobody waits for those that are alone: they do all in one call.
            if alone[g] and step + 1 < end:
                continue
            first = since if alone[g] else step
            arguments = {"place": places[g], "first": first, "last": step + 1}
            arguments["keep"] = step + 1 == end
            after = () if alone[g] else (g, *np.flatnonzero(near[g]).tolist())
            waits = tuple(f"{step}-{q}" for q in after)
            calls.append(Call(f"{step + 1}-{g}", take_steps, arguments, waits, g))
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
        calls = _calls(folder.url, spec, tuple(starts), counts, since, steps, runner.n_workers)
        results = runner.calls(spec.name, calls)
        end = since + steps
        taken += sum(r.get("halo_bytes", 0) for r in results.values())
        log = {"step": end, "base": log["base"] or _sums(results, "first"),
               "last": _sums(results, "last")}  # fmt: skip
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
