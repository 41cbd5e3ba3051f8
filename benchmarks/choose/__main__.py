"""Choose the defaults on many data sets, none of which judges what it chose.

    python -m benchmarks.choose record --cache DIR    # run members and other classifiers
    python -m benchmarks.choose learn --cache DIR     # learn the weights; --write stores them
    python -m benchmarks.choose report --cache DIR    # scores, and the page DECISIONS.md
    python -m benchmarks.choose report                # only write the page again

The data sets are in ``$GDPA_CORPUS`` and ``$GDPA_DATA_HOME``; without them nothing is run. The
cache is a folder outside the repository. A run that was stopped continues where it was.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from . import candidates, compare, graph_networks, learn, members, models, report
from .corpus import KINDS, LABELS, folders
from .record import Group, record
from .replay import Weights

GROUPS: dict[str, Group] = {
    "members": members.predictions,
    "committee": models.committee,
    "peers": models.peers,
    "catboost": models.catboost,
    "gcn": graph_networks.graph_networks,
    "splits": candidates.best_splits,
    "twice": candidates.smoothed_links,
    "pixels": candidates.pixel_members,
}
GROUP_KINDS = {
    "catboost": "table",
    "gcn": "links",
    "splits": "table",
    "twice": "links",
    "pixels": "pictures",
}


def provenance(cache: Path) -> dict[str, Any]:
    """Return how and where the numbers came about."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    counts = {
        kind: len(list((cache / kind).iterdir())) for kind in KINDS if (cache / kind).is_dir()
    }
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "command": "python -m benchmarks.choose learn --write",
        "commit": commit or "unknown",
        "date": datetime.date.today().isoformat(),
        "sets": ", ".join(f"{n} of kind {kind}" for kind, n in counts.items()),
        "load": load,
    }


def learned_weights(cache: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the rules that gain on left-out sets, and what every kind gains.

    A rule is learned from all sets of a kind. It replaces the stored one if rules that are learned
    without a set lower the mean of error and balanced error of that set by more than one standard
    error over sets.
    """
    from gdpa.estimators.weights import read_rules

    stored = read_rules()[0]
    found = {}
    gains = {}
    for kind in KINDS:
        tasks = compare.recorded(cache, "members", kind)
        if not tasks:
            continue
        rules = report.left_out_rules(tasks)
        now = stored[kind]
        as_stored = compare.by_weights(Weights(now.prior, now.b, now.c))
        change, noise = compare.change_in_both_errors(tasks, compare.by_set(rules), as_stored)
        gains[kind] = f"{len(rules)} sets, {len(tasks)} tasks, change {change:+.2f} ± {noise:.2f}"
        if change < -noise:
            lesson = learn.lesson_of(tasks)
            rule = learn.weights_of(lesson, learn.learn(lesson, penalty=report.PENALTY), kind)
            found[kind] = {
                "b": round(rule.b, 3),
                "c": round(rule.c, 3),
                "prior": {name: round(value, 2) for name, value in rule.prior.items()},
            }
        gains[kind] += ", learned" if kind in found else ", kept"
    return found, gains


def write_weights(found: dict[str, Any], about: dict[str, Any]) -> Path:
    """Store the learned rules; kinds without recorded sets keep theirs."""
    from gdpa.estimators.weights import FILE as path

    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["kinds"] |= found
    stored["provenance"] = about
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return path


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.choose",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("step", choices=("record", "learn", "report"))
    parser.add_argument("--cache", type=Path, metavar="DIR", help="recorded predictions")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--groups", nargs="+", choices=tuple(GROUPS), default=["members"])
    parser.add_argument("--labels", nargs="+", choices=LABELS, default=list(LABELS))
    parser.add_argument("--sets", nargs="+", default=[], metavar="NAME", help="only these sets")
    parser.add_argument("--leave-out", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=30.0, help="stop after this time")
    parser.add_argument("--write", action="store_true", help="store the learned weights")
    parser.add_argument(
        "--before", default="", metavar="COMMIT", help="commit of the recorded committee-old"
    )
    options = parser.parse_args(argv)
    if options.step != "report" and options.cache is None:
        parser.error("--cache is needed: a folder outside the repository")
    if options.step == "record":
        if not folders():
            print("skipped: no data; set GDPA_CORPUS or GDPA_DATA_HOME")
            return 0
        warnings.simplefilter("ignore")
        for kind in options.kinds:
            groups = {g: GROUPS[g] for g in options.groups if GROUP_KINDS.get(g, kind) == kind}
            record(
                options.cache,
                groups,
                kinds=(kind,),
                labels=tuple(options.labels),
                draws=options.draws,
                minutes=options.minutes,
                leave_out=tuple(options.leave_out),
                names=tuple(options.sets),
            )
    elif options.step == "learn":
        found, gains = learned_weights(options.cache)
        print(json.dumps({"kinds": found, "gains": gains}, indent=1))
        if options.write:
            print(write_weights(found, provenance(options.cache) | {"gains": gains}))
    else:
        if options.cache is not None:
            scores = report.collect(options.cache)
            scores["provenance"] = provenance(options.cache) | {"before": options.before}
            report.save(scores)
        stored = json.loads(report.STORE.read_text(encoding="utf-8"))
        report.PAGE.write_text(report.page(stored), encoding="utf-8")
        print(report.PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
