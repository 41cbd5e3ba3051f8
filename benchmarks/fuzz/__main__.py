"""``python -m benchmarks.fuzz --executions 1000000``: mutate, read, keep what reaches new lines.

Inputs that reached lines which no other had reached are kept in ``benchmarks/fuzz/corpus``, a JSON
file for each target, and are where the next run begins. A finding (an exception that is not the
package's refusal, an execution of more than ten seconds) is printed as an input that repeats it.

A run of all targets with at least 1,000,000 executions stores its totals in
``benchmarks/fuzz/totals.json`` (any run, with ``--out``), and ``python -m benchmarks.campaign.page
--fuzz`` writes them into ``docs/reliability.md``.
"""

from __future__ import annotations

import argparse
import base64
import copy
import json
import operator
import random
import resource
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from reproduction.environment import environment

from ..campaign.outcome import CLEAR, RIGHT, refused
from .targets import PLACE, Target, targets

CORPUS = Path(__file__).parent / "corpus"
TOTALS = Path(__file__).parent / "totals.json"
STORED = 1_000_000  # executions from which on a run of all targets is stored
SECONDS = 10
# Lines are recorded in one of so many executions: recording takes twenty times as long.
TRACED = 10


def mutated(rng: random.Random, corpus: list[bytes], target: Target) -> bytes:
    """Some input, changed in one to four places."""
    raw = bytearray(rng.choice(corpus))
    for _ in range(rng.randint(1, 4)):
        at, end = sorted((rng.randint(0, len(raw)), rng.randint(0, len(raw))))
        end = min(end, at + 64)
        match rng.randrange(6):
            case 0:
                raw[at:at] = rng.choice(target.words)
            case 1:
                raw[at:end] = b""
            case 2:
                raw[at:at] = raw[at:end]
            case 3:
                other = rng.choice(corpus)
                start = rng.randint(0, len(other))
                raw[at:end] = other[start : start + 64]
            case 4 if raw:
                raw[at % len(raw)] = rng.randrange(256)
            case _:
                raw[at:end] = rng.choice(target.words)
    return bytes(raw[:20_000])


def mutated_json(rng: random.Random, corpus: list[bytes], target: Target) -> bytes:
    """Some JSON, with one to four of its values changed."""
    tree = json.loads(rng.choice(corpus))
    for _ in range(rng.randint(1, 4)):
        places = [place for place in _places(tree) if place[0] is not tree or len(tree) > 1]
        if not places:
            break
        parent, key = rng.choice(places)
        match rng.randrange(5):
            case 0 if isinstance(parent, dict):
                parent[rng.choice(["", "$array", str(key) + "x"])] = parent.pop(key)
            case 1:
                del parent[key]
            case 2:
                parent[key] = copy.deepcopy(operator.getitem(*rng.choice(places)))
            case _:
                parent[key] = json.loads(rng.choice(target.words))
        if len(json.dumps(tree)) > 200_000:
            break
    return json.dumps(tree).encode()


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def execute(target: Target, raw: bytes) -> str:
    """RIGHT or CLEAR; anything else is raised."""
    try:
        target.read(raw)
    except (ValueError, MemoryError) as error:
        return refused(error) if type(error) is not MemoryError else CLEAR
    return RIGHT


def lines_of(target: Target, raw: bytes) -> set[tuple[str, int]]:
    """The lines of the package that reading enters."""
    found: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if "/gdpa/" not in name:
            return None
        found.add((name, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        execute(target, raw)
    finally:
        sys.settrace(None)
    return found


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def fuzz(name: str, target: Target, executions: int, seed: int) -> dict[str, Any]:
    """Fuzz one target; return what was seen."""
    rng = random.Random(f"{name} {seed}")
    path = CORPUS / f"{name}.json"
    stored = json.loads(path.read_text()) if path.exists() else []
    corpus = [*target.seeds, *map(base64.b64decode, stored)]
    seen: set[tuple[str, int]] = set()
    for raw in corpus:
        seen |= lines_of(target, raw)
    counts = {RIGHT: 0, CLEAR: 0}
    findings: list[dict[str, str]] = []
    start = time.process_time()
    for i in range(executions):
        raw = (mutated_json if target.json else mutated)(rng, corpus, target)
        signal.alarm(SECONDS)
        try:
            if i % TRACED == 0 and not (lines := lines_of(target, raw)) <= seen:
                seen |= lines
                corpus.append(raw)
            counts[execute(target, raw)] += 1
        except Exception as error:
            what = f"{type(error).__name__}: {str(error)[:200]}"
            findings.append({"error": what, "input": base64.b64encode(raw).decode()})
            print(f"{name}: {what}\n  {findings[-1]['input'][:2000]}", flush=True)
        finally:
            signal.alarm(0)
    CORPUS.mkdir(exist_ok=True)
    kept = corpus[len(target.seeds) :]
    path.write_text(json.dumps([base64.b64encode(raw).decode() for raw in kept], indent=0) + "\n")
    return {
        "executions": executions, **counts, "findings": findings, "lines": len(seen),
        "corpus": len(corpus), "seconds": round(time.process_time() - start, 1), "seed": seed,
    }  # fmt: skip


def totals(report: dict[str, Any], facts: dict[str, str]) -> dict[str, Any]:
    """Return what a run has seen, as it is stored; findings are counted and listed apart."""
    return {
        "commit": facts["commit"],
        "date": facts["date"],
        "targets": {
            name: {**row, "findings": len(row["findings"])} for name, row in report.items()
        },
        "findings": [
            {"target": name, **f} for name, row in report.items() for f in row["findings"]
        ],
    }


def main(words: list[str] | None = None) -> int:
    """Fuzz the targets; the exit code is 1 if there was a finding."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    every = targets()
    parser.add_argument("targets", nargs="*", help=f"any of {', '.join(every)} (default: all)")
    parser.add_argument("--executions", type=int, default=60_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--input", help="run one input (base64) of one target, with its traceback")
    parser.add_argument("--out", type=Path, help="store the totals in this file")
    args = parser.parse_args(words)
    if unknown := set(args.targets) - set(every):
        parser.error(f"unknown target: {', '.join(sorted(unknown))}")
    chosen = args.targets or list(every)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, resource.RLIM_INFINITY))
    try:
        if args.input:
            print(execute(every[chosen[0]], base64.b64decode(args.input)))
            return 0
        report = {}
        print("| target | executions | right | clear error | findings | lines | corpus | CPU s |")
        print("|---|---|---|---|---|---|---|---|")
        for name in chosen:
            report[name] = r = fuzz(
                name, every[name], -(-args.executions // len(chosen)), args.seed
            )
            print(
                f"| {name} | {r['executions']:,} | {r[RIGHT]:,} | {r[CLEAR]:,} "
                f"| {len(r['findings'])} | {r['lines']} | {r['corpus']} | {r['seconds']} |",
                flush=True,
            )
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)
    whole = not args.targets and args.executions >= STORED
    if out := args.out or (TOTALS if whole else None):
        out.write_text(json.dumps(totals(report, environment()), indent=1) + "\n")
    return int(any(r["findings"] for r in report.values()))


if __name__ == "__main__":
    sys.exit(main())
