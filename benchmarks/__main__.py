"""Run benchmarks: ``python -m benchmarks --list``, ``--case NAME...``, ``--store FILE``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from .cases import CASES
from .report import page, store_rows
from .runner import Store, run_case


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--case", nargs="+", metavar="NAME", help="these only; default: all usual")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="rows whose name contains TEXT, such as gdpa"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all works")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each measurement at most")
    parser.add_argument("--out", type=Path, default=Path("benchmarks-out"), metavar="DIR")
    parser.add_argument("--again", action="store_true", help="run finished cases again")
    parser.add_argument(
        "--store",
        type=Path,
        metavar="FILE",
        help="print the results in FILE and add them to benchmarks/speed.json",
    )
    options = parser.parse_args(argv)
    if options.list:
        for case in CASES.values():
            print(f"{case.name:22s}{'' if case.default else '(on request) '}{case.title}")
        return 0
    if options.store:
        data = json.loads(options.store.read_text(encoding="utf-8"))
        store_rows(data)
        print(page(data))
        return 0
    if options.repeats < 1:
        parser.error(f"--repeats {options.repeats} must be at least 1")
    names = options.case or [name for name, case in CASES.items() if case.default]
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"unknown case {', '.join(unknown)}; known: {', '.join(CASES)}")
    store = Store(options.out)
    start = time.perf_counter()
    for name in names:
        if store.finished(name, options.quick) and not options.again:
            print(f"{name}: kept from an earlier run (--again runs it again)")
            continue
        if options.again:
            store.rows.forget(name)
        record = run_case(
            CASES[name],
            store,
            quick=options.quick,
            only=options.only,
            repeats=options.repeats,
            say=lambda text: print(text, flush=True),
        )
        for claim in record["claims"]:
            verdict = {True: "holds", False: "FAILS", None: "not measured"}[claim["holds"]]
            value = "-" if claim["value"] is None else f"{claim['value']:.4g}"
            sign = ">=" if claim["at_least"] else "<="
            print(f"  {verdict}: {claim['text']}: {value} ({sign} {claim['bound']:g})", flush=True)
    print(f"{store.path}: {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
