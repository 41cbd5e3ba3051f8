"""``python -m benchmarks.campaign``: attack, count, print the seed of every failure."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import shlex
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reproduction.environment import environment

from . import engine
from .outcome import CLEAR, RIGHT, WRONG

# Share of the time of each kind.
SHARES = {
    "fits": 0.20,
    "links": 0.07,
    "tables": 0.07,
    "labels": 0.02,
    "sessions": 0.03,
    "serving": 0.03,
    "full_disk": 0.02,
    "solves": 0.12,
    "signed": 0.04,
    "files": 0.08,
    "resume": 0.04,
    "flips": 0.05,
    "commands": 0.04,
    "interrupts": 0.05,
    "together": 0.04,
    "containers": 0.02,
    "nodes": 0.01,
    "written": 0.02,
    "batches": 0.02,
    "journals": 0.01,
    "exports": 0.02,
}


# Cases of each kind among 100,000: all of them, in about 40 minutes of one processor.
CASES = {
    "fits": 3000, "links": 60, "tables": 1500, "labels": 100, "sessions": 600, "serving": 100,
    "full_disk": 2000, "solves": 45_000, "signed": 30_000, "files": 7500, "resume": 20,
    "flips": 1000, "commands": 4, "interrupts": 108, "together": 8, "containers": 1000,
    "nodes": 2000, "written": 2000, "batches": 400, "journals": 3500, "exports": 100,
}  # fmt: skip

# What else is counted.
MORE = ("cycles", "after_rows", "interrupts", "refusals", "flips")


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default 30)")
    parser.add_argument(
        "--count", nargs="*", default=[], metavar="KIND=N", help="cases in place of minutes"
    )
    parser.add_argument("--cases", type=int, help="so many cases of all kinds, in place of minutes")
    parser.add_argument("--only", nargs="*", choices=list(SHARES), help="these kinds of attack")
    parser.add_argument("--seed", type=int, help="one case of one kind, with its traceback")
    parser.add_argument("--start", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--compare", type=int, default=0, metavar="N", help="other packages too")
    parser.add_argument("--out", type=Path, help="keep the counts as JSON in this file")
    return parser.parse_args(words)


def aim(kind: str, seed: int) -> int:
    """Run one case here, so that its traceback is seen."""
    start = time.perf_counter()
    try:
        outcome = importlib.import_module(f"{__package__}.{kind}").run(seed)
    except Exception:
        traceback.print_exc()
        outcome = WRONG
    print(f"{kind} {seed}: {outcome} ({time.perf_counter() - start:.2f} s)")
    return int(outcome == WRONG)


def attack(kind: str, options: argparse.Namespace, count: int | None) -> dict[str, Any]:
    """All cases of one kind."""
    importlib.import_module(f"{__package__}.{kind}")  # before the fork: once for all
    seconds = 60.0 * options.minutes * SHARES[kind]
    start = time.perf_counter()
    seeds = (
        range(options.start, options.start + count)
        if count is not None
        else itertools.takewhile(
            lambda _: time.perf_counter() - start < seconds, itertools.count(options.start)
        )
    )
    outcomes: Counter[str] = Counter()
    more: Counter[str] = Counter()
    wrong = []
    shown = time.perf_counter()
    for result in _until_interrupted(engine.results(kind, seeds, jobs=options.jobs)):
        outcomes[result.outcome] += 1
        if result.outcome == WRONG:
            wrong.append({"seed": result.seed, "detail": result.detail})
            print(f"WRONG {kind} --seed {result.seed}: {result.detail}", flush=True)
        else:
            for pair in filter(None, result.detail.split("|")):
                name, _, value = pair.partition("=")
                more[name] += int(value)
        if time.perf_counter() - shown > 30:
            shown = time.perf_counter()
            print(f"{kind}: {dict(outcomes)} {dict(more)}", file=sys.stderr, flush=True)
    return {
        "tried": sum(outcomes.values()),
        "right": outcomes[RIGHT],
        "clear error": outcomes[CLEAR],
        "wrong": outcomes[WRONG],
        "seconds": round(time.perf_counter() - start, 1),
        "failures": wrong,
        **more,
    }


def _until_interrupted(results: Iterator[engine.Result]) -> Iterator[engine.Result]:
    """Ctrl-C ends a kind of attack; what was counted is kept."""
    with contextlib.suppress(KeyboardInterrupt):
        yield from results


def table(counts: dict[str, dict[str, Any]]) -> str:
    """The counts in Markdown."""
    lines = [
        "| attack | tried | right | clear error | wrong | minutes |",
        "|---|---|---|---|---|---|",
    ]
    for kind, row in counts.items():
        more = "".join(f", {row[k]:,} {k.replace('_', ' ')}" for k in MORE if k in row)
        lines.append(
            f"| {kind} | {row['tried']:,}{more} | {row['right']:,} | {row['clear error']:,} "
            f"| {row['wrong']:,} | {row['seconds'] / 60:.1f} |"
        )
    return "\n".join(lines)


def keep(document: dict[str, Any], path: Path | None) -> None:
    """Write what has been counted so far: a run that is ended loses nothing."""
    if path is not None:
        path.write_text(json.dumps(document, indent=1) + "\n")


def main(words: list[str] | None = None) -> int:
    """Run the campaign; the exit code says whether something was wrong."""
    options = arguments(words)
    kinds = options.only or list(SHARES)
    if options.seed is not None:
        if len(kinds) != 1:
            raise SystemExit("--seed needs --only with one kind")
        return aim(kinds[0], options.seed)
    for sign in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore the first
        signal.signal(sign, signal.default_int_handler)
    wanted = {k: int(n) for k, _, n in (pair.partition("=") for pair in options.count)}
    if options.cases:
        total = sum(CASES.values())
        wanted = {k: max(1, round(n * options.cases / total)) for k, n in CASES.items()} | wanted
    if wanted:
        kinds = [kind for kind in kinds if kind in wanted]
    counts: dict[str, dict[str, Any]] = {}
    words = list(sys.argv[1:] if words is None else words)
    if "--out" in words:  # where it is kept is nobody's business
        del words[words.index("--out") : words.index("--out") + 2]
    document: dict[str, Any] = {
        "command": shlex.join(["python", "-m", "benchmarks.campaign", *words]),
        "environment": environment(),
        "counts": counts,
    }
    for kind in kinds:
        counts[kind] = attack(kind, options, wanted.get(kind))
        keep(document, options.out)
    print(table(counts))
    if options.compare:
        from . import compared

        document["compared"] = compared.count(options.compare)
        keep(document, options.out)
        for name, row in document["compared"].items():
            print(name, row)
    return int(any(row["wrong"] for row in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
