"""The solve on parts, seen from the client: which calls, until when, and what is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chebyshev import steps_needed
from .manifest import Record
from .runner import Call, Event, Runner
from .steps import Place, Spec, begin, take_steps

__all__ = ["Solved", "solve"]

# Steps between two checkpoints, of which each writes 16 bytes per node and column.
STEPS = 8
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


def _calls(
    url: str, spec: Spec, starts: tuple[int, ...], counts: NDArray[np.int64],
    since: int, steps: int, n_workers: int,
) -> list[Call]:  # fmt: skip
    """Calls from one checkpoint to the next."""
    n_parts = len(starts) - 1
    worker = [part * n_workers // n_parts for part in range(n_parts)]
    groups = [tuple(q for q in range(n_parts) if worker[q] == w) for w in range(n_workers)]
    places = [Place(url, spec, p, groups[worker[p]], starts, since) for p in range(n_parts)]
    alone = [not counts[:, p].any() and not counts[p].any() for p in range(n_parts)]
    calls = [
        Call(f"{since}-{p}", begin, {"place": places[p]}, (), worker[p])
        for p in range(n_parts)
        if not alone[p]
    ]
    for step in range(since, since + steps):
        last = step + 1 == since + steps
        for p in range(n_parts):
            if alone[p]:
                continue
            near = [q for q in range(n_parts) if counts[q, p] or q == p]
            calls.append(
                Call(
                    f"{step + 1}-{p}",
                    take_steps,
                    {"place": places[p], "first": step, "last": step + 1, "keep": last},
                    tuple(f"{step}-{q}" for q in near),
                    worker[p],
                )
            )
    end = since + steps
    calls += [
        Call(
            f"{end}-{p}",
            take_steps,
            {"place": places[p], "first": since, "last": end, "keep": True},
            (),
            worker[p],
        )
        for p in range(n_parts)
        if alone[p]
    ]
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
    limit = FILL_STEPS
    if not spec.fill:
        limit = max(steps_needed(gamma, tol) for gamma in spec.self_loops) + STEPS
    log = dict(manifest.data.get("solves", {})).get(spec.name, {"step": 0, "base": [], "last": []})
    n_parts, taken, start = len(starts) - 1, 0, time.perf_counter()
    while True:
        residual = float(sum(log["last"])) if spec.fill else _relative(log["last"], log["base"])
        if log["step"] and (residual <= tol or log["step"] >= limit):
            break
        since = int(log["step"])
        steps = min(STEPS, limit - since)
        calls = _calls(folder.url, spec, tuple(starts), counts, since, steps, runner.n_workers)
        results = runner.calls(spec.name, calls)
        end = since + steps
        squares = _sums(results, since, end, n_parts)
        taken += sum(r.get("halo_bytes", 0) for r in results.values())
        log = {"step": end, "base": log["base"] or squares[0], "last": squares[-1]}
        manifest.data.setdefault("solves", {})[spec.name] = log
        records = {f"{p:05d}": Record(results[f"{end}-{p}"]["files"], {}) for p in range(n_parts)}
        manifest.seal(f"{spec.name}-{end:05d}", records, instead_of=f"{spec.name}-{since:05d}")
        folder.remove_tree("halo")
        runner.report(Event(spec.name, end, limit, time.perf_counter() - start))
    runner.spend(spec.name, time.perf_counter() - start)
    return Solved(int(log["step"]), residual, residual <= tol, taken)


def _sums(results: dict[str, Any], since: int, end: int, n_parts: int) -> list[list[float]]:
    """Squared residuals of all parts, step by step, always added in the same order."""
    total: Any = 0.0
    for p in range(n_parts):
        keys = [f"{step}-{p}" for step in range(since + 1, end + 1)]
        calls = [results[key]["squares"] for key in keys if key in results]
        total = total + np.array([step for call in calls for step in call])
    return [list(map(float, step)) for step in total]


def _relative(squares: Sequence[float], first: Sequence[float]) -> float:
    """Largest relative residual of a column."""
    last, base = np.asarray(squares), np.asarray(first)
    some = base > 0
    return float(np.sqrt(last[some] / base[some]).max(initial=0.0)) if some.any() else 0.0
