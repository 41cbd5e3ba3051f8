"""Command line: ``python -m reproduction EXPERIMENT ...`` and ``python -m reproduction datasets``.

Exit codes: 0 done, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .config import Config
from .datasets import cached_file, card, data_home, fetch, list_datasets
from .experiments import EXPERIMENTS
from .run import reproduce
from .runner import ProgressEvent


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _parser(about_data: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction" + (" datasets" if about_data else ""),
        description="List the paper's data sets; with a NAME, show its card."
        if about_data
        else "Reproduce the paper's tables and figures, beside the published numbers. The same "
        "command continues a run that was stopped.",
        epilog=None if about_data else "python -m reproduction datasets lists the data sets.",
    )
    add = parser.add_argument
    if about_data:
        add("name", nargs="?", help="show the card of one set")
        add("--fetch", action="store_true", help="put the set (or all) into the cache")
    else:
        only = "only these %s; may be repeated, or a,b,c"
        add("experiments", nargs="+", help=", ".join([*EXPERIMENTS, "all"]))
        add("--full", action="store_true", help="all ten splits per fold (hours)")
        add("--quick", dest="full", action="store_false", help="one split per fold (default)")
        add("--methods", type=_names, action="extend", help=only % "methods")
        add("--datasets", type=_names, action="extend", help=only % "data sets")
        add("--jobs", type=int, default=1, help="worker processes")
        add("--out", type=Path, default=Path("results"), help="folder of results and report")
        add("--time-limit", type=float, help="seconds per method and problem (20; --full: 60)")
        add("--max-size", type=int, help="largest problem of the cod-rna experiment")
        add("--docs", type=Path, help="folder whose REPRODUCTION.md also gets the tables")
        add("--retry-failed", action="store_true", help="compute rows that failed before again")
    add("--json", action="store_true", help="print one JSON document")
    add("-q", "--quiet", action="store_true", help="print errors only")
    return parser


class _Progress:
    """One line on stderr: rewritten on a terminal, every half minute elsewhere."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def __call__(self, event: ProgressEvent) -> None:
        now, terminal = time.monotonic(), sys.stderr.isatty()
        if not terminal and now - self.last < 30.0:
            return
        self.last = now
        minutes = "?" if event.remaining is None else f"{event.remaining / 60:.0f}"
        text = f"{event.done}/{event.total} rows, {minutes} min left  {'  '.join(event.current)}"
        line = f"\r\033[K{text[:100]}" if terminal else f"{text}\n"
        print(line, end="", file=sys.stderr, flush=True)


def _reproduce(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    config = Config(
        full=options.full,
        methods=tuple(options.methods) if options.methods else None,
        datasets=tuple(options.datasets) if options.datasets else None,
        max_size=options.max_size,
    )
    done = reproduce(
        options.experiments,
        out=options.out,
        config=config,
        jobs=options.jobs,
        time_limit=options.time_limit,
        retry_failed=options.retry_failed,
        progress=None if options.quiet else _Progress(),
        docs=options.docs,
    )
    n, lost, report = len(done.rows), len(done.lost), str(done.report)
    result = {"experiments": options.experiments, "rows": n, "without_result": lost}
    text = f"{n} rows, {lost} without a result (the report says why)\nreport: {report}"
    return {**result, "report": report}, text


def _datasets(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    cards = [card(name) for name in ([options.name] if options.name else list_datasets())]
    home = data_home()
    rows = []
    for c in cards:
        if options.fetch:
            fetch(c.name)
        file = cached_file(c.name, home)
        rows.append({**asdict(c), "cached": None if file is None else str(file)})
    if options.name:
        lines = [f"{key:15} {value}" for key, value in rows[0].items()]
    else:
        lines = [f"{'name':16}{'samples':>8}{'features':>9}  {'cached':10}source"]
        for c, row in zip(cards, rows, strict=True):
            cached = "yes" if row["cached"] else "-" if c.sources else "built in"
            lines.append(f"{c.name:16}{c.n_samples:8}{c.n_features:9}  {cached:10}{c.source}")
    result = {"data_home": str(home), "datasets": rows}
    return result, "\n".join([*lines, f"cache: {home}"])


def main() -> int:
    """Run the command line and return the exit code."""
    about_data = sys.argv[1:2] == ["datasets"]
    options = _parser(about_data).parse_args(sys.argv[2:] if about_data else None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that staged files are removed
    status, code = "done", 0
    try:
        result, text = _datasets(options) if about_data else _reproduce(options)
    except KeyboardInterrupt:
        status, code = "interrupted", 130
        text = "finished rows are kept, the same command continues from there"
    except (ValueError, OSError, RuntimeError, MemoryError, ImportError) as error:
        status, code, text = "error", 2, str(error)
    if code:
        result = {"message": text}
        print(f"{status}: {text}", file=sys.stderr)
    if options.json:
        print(json.dumps({"status": status, **result}, ensure_ascii=False))
    elif not code and not options.quiet:
        print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
