"""Simulated annotators: accuracy after 20 and 50 clicks, from no label at all.

    python -m benchmarks.labeling                # what is missing in benchmarks/labeling.json
    python -m benchmarks.labeling --again ours   # run this row again
    python -m benchmarks.labeling --write        # only print the results

Sets: digits and six of the tables of ``benchmarks/table_data.py`` (1,500 rows drawn by the seed,
columns scaled to 0 to 1), and 100,000 generated points; and three tables on which nothing was
chosen (vowel, phoneme and penguins), which are reported apart. An annotator who always knows the
answer labels the rows that a strategy asks for; the accuracy is that of the predictions for the
rows without a label. Rows:

- *ours*: ``LabelingSession`` as it is, its random checks included;
- *at random*, *k-means medoids*: other rows, the session's classifier;
- *modAL, margin*: modAL's margin sampling with scikit-learn's random forest, from five random rows.

``--coverage N`` runs N sessions of 50 clicks and counts how often the 90 % interval of the running
estimate holds the true accuracy; ``--wrong-labels`` flips labels and ranks them as the page does,
beside cleanlab; ``--latency`` times the next question at 100,000 and 1,000,000
rows while the classifier works in the background.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gdpa import LabelingSession
from gdpa.estimators.strategies import representatives

from . import annotators
from .machine import describe
from .table_data import encode, folder, read

HERE = Path(__file__).parent
STORE = HERE / "labeling.json"
TABLES = ("optdigits", "segment", "texture", "letter", "splice", "chess")
LARGE = "100,000 points"
SETS = ("digits", *TABLES, LARGE)
OTHERS = ("vowel", "phoneme", "penguins")  # taken without a look at the results
ROWS = 1500
FEWER = (
    500  # of a session whose interval is looked at: as many labels and checks, a third of the time
)
CLICKS = (20, 50)
OPTIONS = {"coverage": "--coverage 200", "wrong labels": "--wrong-labels", "latency": "--latency"}
SEEDS = 5


def load(name: str, seed: int, rows: int = ROWS) -> tuple[Any, Any]:
    """Features and classes of one set."""
    rng = np.random.default_rng(1000 + seed)
    if name == LARGE:
        return generated(100_000, seed)
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        keep = rng.permutation(y.size)[:rows]
        return X[keep], y[keep]
    columns, target = read(name)
    keep = rng.permutation(len(target))[:rows]
    X = encode([[cells[i] for i in keep] for cells in columns])
    return X, np.unique(np.array(target)[keep], return_inverse=True)[1]


def generated(n: int, seed: int) -> tuple[Any, Any]:
    """Eight classes of two clusters each, of unequal size, in ten dimensions."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=2.2, size=(16, 10))
    shares = rng.dirichlet(np.full(16, 2.0))
    cluster = rng.choice(16, n, p=shares)
    return centers[cluster] + rng.normal(size=(n, 10)), cluster % 8


def accuracy(session: LabelingSession, y: Any) -> float:
    """Of the predictions for the rows without a label."""
    rest = np.ones(y.size, dtype=bool)
    rest[list(session.labels)] = False
    return float((session.predictions() == y)[rest].mean())


def follow(session: LabelingSession, y: Any, order: Any = None) -> list[float]:
    """Label up to 50 rows, asked by the session or in the order given."""
    curve = []
    for click in range(1, max(CLICKS) + 1):
        row = int(session.next()[0]) if order is None else int(order[click - 1])
        session.label(row, int(y[row]))
        if click in CLICKS:
            curve.append(accuracy(session, y))
    return curve


def ours(X: Any, y: Any, seed: int) -> list[float]:
    """The session's own questions."""
    return follow(LabelingSession(X, random_state=seed), y)


def at_random(X: Any, y: Any, seed: int) -> list[float]:
    """Rows drawn evenly."""
    return follow(LabelingSession(X), y, np.random.default_rng(seed).permutation(y.size))


def medoids(X: Any, y: Any, seed: int) -> list[float]:
    """Rows nearest to the centres of k-means, as many as clicks."""
    session = LabelingSession(X)
    sample = np.random.default_rng(seed).permutation(y.size)[:5000]
    points = session.points[sample]
    curve = []
    for clicks in CLICKS:
        one = LabelingSession(X)
        for row in sample[representatives(points, clicks, seed=seed)]:
            one.label(int(row), int(y[row]))
        curve.append(accuracy(one, y))
    return curve


def modal(X: Any, y: Any, seed: int) -> list[float]:
    """modAL's margin sampling with a random forest."""
    from modAL.models import ActiveLearner
    from modAL.uncertainty import margin_sampling
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(seed)
    known = rng.permutation(y.size)[:5].tolist()
    open_rows = np.setdiff1d(np.arange(y.size), known)
    curve = []
    for clicks in range(6, max(CLICKS) + 1):
        # Made anew with every label: modAL's `teach` calls scikit-learn by arguments that are gone.
        forest = RandomForestClassifier(100, random_state=seed)
        learner = ActiveLearner(forest, margin_sampling, X_training=X[known], y_training=y[known])
        place = int(np.ravel(learner.query(X[open_rows])[0])[0])
        known.append(int(open_rows[place]))
        open_rows = np.delete(open_rows, place)
        if clicks in CLICKS:
            last = RandomForestClassifier(100, random_state=seed).fit(X[known], y[known])
            curve.append(float((last.predict(X[open_rows]) == y[open_rows]).mean()))
    return curve


STRATEGIES = {
    "ours": ours,
    "at random": at_random,
    "k-means medoids": medoids,
    "modAL, margin": modal,
}


def store() -> dict[str, dict[str, Any]]:
    """What has been measured."""
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def save(results: dict[str, dict[str, Any]]) -> None:
    """Write the store, whole or not at all."""
    lines = []
    for row, cells in results.items():
        body = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(cells.items()))
        lines.append(f" {json.dumps(row)}: {{\n  {body}\n }}")
    part = STORE.with_suffix(".part")
    part.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    os.replace(part, STORE)


def measure(rows: list[str], sets: list[str], again: bool, seeds: int) -> None:
    """Run what is missing."""
    results = store()
    commit = str(describe()["commit"])
    for row in rows:
        cells = results.setdefault(row, {})
        commits = results.setdefault("commits", {})
        if again:
            for key in [k for k in cells if k.split("/")[0] in sets]:
                del cells[key]
        for name in sets:
            for seed in range(seeds):
                if f"{name}/{seed}" not in cells:
                    X, y = load(name, seed)
                    curve = STRATEGIES[row](X, y, seed)
                    cells[f"{name}/{seed}"] = [round(100 * value, 2) for value in curve]
                    commits[row] = commit
                    save(results)
            curves = [cells[f"{name}/{seed}"] for seed in range(seeds)]
            print(f"{row}, {name}: {np.round(np.mean(curves, axis=0), 1).tolist()}", flush=True)


def page(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Simulated annotators",
        "",
        f"Accuracy in percent on the rows without a label, mean of {SEEDS} seeds, from no label at "
        "all. The constants of the strategy were chosen on these sets (not on the 100,000 points).",
        *results.get("measured", {"text": []})["text"],
    ]
    rows = [row for row in STRATEGIES if row in results]
    commits = results.get("commits", {})
    named = [f"{row} {commits[row]}" for row in rows if row in commits]
    lines += ["", f"Commits: {'; '.join(named)}."] if named else []
    for clicks, sets, where in (
        *((clicks, SETS, "") for clicks in CLICKS),
        *((clicks, OTHERS, ", other sets") for clicks in CLICKS),
    ):
        at = CLICKS.index(clicks)
        known = [s for s in sets if any(f"{s}/0" in results[row] for row in rows)]
        head = "| | " + " | ".join([*known, "mean"]) + " |"
        lines += ["", f"## {clicks} clicks{where}", "", head]
        lines += ["|---|" + "---|" * (len(known) + 1)]
        for row in rows:
            curves = [[v for k, v in results[row].items() if k.startswith(f"{s}/")] for s in known]
            means = [float(np.mean([v[at] for v in part])) if part else None for part in curves]
            whole = None if None in means else float(np.mean(means))
            # Fewer seeds than the others have are said.
            notes = [f" ({len(p)} seeds)" if 0 < len(p) < SEEDS else "" for p in curves]
            cells = [
                "-" if mean is None else f"{mean:.1f}{note}"
                for mean, note in zip((*means, whole), (*notes, ""), strict=True)
            ]
            lines.append(f"| {row} | " + " | ".join(cells) + " |")
    for title in ("coverage", "wrong labels", "latency"):
        if title in results:
            lines += ["", f"## {title.capitalize()}", "", *results[title]["text"], ""]
            lines += [
                f"`python -m benchmarks.labeling {OPTIONS[title]}` at commit {commits[title]}."
            ]
    if "annotators" in results:
        lines += ["", "## Annotators", "", annotators.paragraph(results["annotators"])]
    return "\n".join(lines) + "\n"


def coverage(sessions: int) -> list[str]:
    """How often the interval holds the true accuracy; goes on where it was stopped."""
    results: dict[str, Any] = store()
    commit = describe()["commit"]
    found = results.setdefault("sessions", {})
    names = ["digits", *(TABLES if folder() is not None else ())]
    wanted = [f"{names[i % len(names)]}/{100 + i // len(names)}" for i in range(sessions)]
    for key in wanted:
        if found.get(key, [None])[-1] != commit:
            name, seed = key.split("/")
            X, y = load(name, int(seed), FEWER)
            session = LabelingSession(X, random_state=int(seed))
            for _ in range(50):
                row = int(session.next()[0])
                session.label(row, int(y[row]))
            estimate = session.estimate()
            ends = (estimate.low, estimate.high, accuracy(session, y))
            found[key] = [*(round(value, 5) for value in ends), commit]
            save(results)
    hits = {key: found[key][0] <= found[key][2] <= found[key][1] for key in wanted}
    by_set = ", ".join(
        f"{name} {100 * np.mean([hit for key, hit in hits.items() if key.startswith(name)]):.0f}"
        for name in names
    )
    width = np.mean([found[key][1] - found[key][0] for key in wanted])
    return [
        f"{sessions} sessions of 50 clicks on {FEWER} rows: the 90 % interval holds the true "
        f"accuracy in {100 * np.mean(list(hits.values())):.1f} % ({by_set}); mean width "
        f"{100 * width:.0f} points."
    ]


def wrong_labels(seeds: int = 3) -> list[str]:
    """Average precision of finding flipped labels, beside cleanlab on the same predictions."""
    from cleanlab.filter import find_label_issues
    from sklearn.metrics import average_precision_score

    precision = []
    for name in ("digits", *TABLES):
        for seed in range(seeds):
            X, y = load(name, seed, 800)
            rng = np.random.default_rng(seed)
            rows = rng.permutation(y.size)[:300]
            flipped = rng.random(rows.size) < 0.05
            values = (y[rows] + flipped * rng.integers(1, y.max() + 1, rows.size)) % (y.max() + 1)
            session = LabelingSession(X)
            for row, value in zip(rows.tolist(), values.tolist(), strict=True):
                session.label(row, value)
            session.refresh()
            listed = [row for row, _, _ in session.suspicious()]
            score = {row: len(listed) - place for place, row in enumerate(listed)}
            P = np.array([session._unseen[row][1] for row in rows])
            codes = np.searchsorted(session.classes, values)
            theirs = np.zeros(rows.size)
            issues = find_label_issues(codes, P, return_indices_ranked_by="self_confidence")
            theirs[issues] = np.arange(issues.size, 0, -1)
            ours = [score.get(row, 0) for row in rows.tolist()]
            precision.append([average_precision_score(flipped, s) for s in (ours, theirs)])
    ours, theirs = np.mean(precision, axis=0)
    return [
        f"5 % of 300 labels flipped, {len(precision)} sessions: average precision {ours:.2f}; "
        f"cleanlab's find_label_issues on the same held-out predictions {theirs:.2f}."
    ]


def keep(session: LabelingSession, work: Any, stop: threading.Event) -> None:
    """Do a piece of work whenever the labels have changed."""
    done = -1
    while not stop.is_set():
        if session.labels and done != session.version:
            done = session.version
            work()
        time.sleep(0.01)


def latency() -> list[str]:
    """Time from an answer to the next question while the classifier follows in the background."""
    lines = []
    for n in (100_000, 1_000_000):
        X, y = generated(n, 0)
        session = LabelingSession(X.astype(np.float32))
        session.in_background()  # as the page has it
        stop = threading.Event()
        workers = [
            threading.Thread(target=keep, args=(session, task, stop), daemon=True)
            for task in (session.follow, session.refresh)
        ]
        for worker in workers:
            worker.start()
        times, work = [], []
        for _ in range(50):
            row = int(session.next()[0])
            start, busy = time.perf_counter(), time.thread_time()
            session.label(row, int(y[row]))
            session.next()
            times.append(time.perf_counter() - start)
            work.append(time.thread_time() - busy)
            time.sleep(0.3)
        stop.set()
        lines.append(
            f"- {n:,} rows: label and next question in {1e3 * np.median(times):.0f} ms "
            f"(median of 50), {1e3 * max(times):.0f} ms at most; {1e3 * np.median(work):.0f} and "
            f"{1e3 * max(work):.0f} ms of processor time."
        )
        print(lines[-1], flush=True)
    return lines


def keep_text(title: str, text: list[str]) -> None:
    """Store a section of the page, with its commit and the load of the machine."""
    machine = describe()
    load = machine["load_at_start"]
    results: dict[str, Any] = store()
    results[title] = {"text": text}
    at = "" if load is None else f", on {machine['cores']} cores with a load of {load[0]:g}"
    results.setdefault("commits", {})[title] = f"{machine['commit']}{at}"
    save(results)


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labeling", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=list(STRATEGIES), metavar="ROW")
    parser.add_argument("--sets", nargs="+", choices=(*SETS, *OTHERS), metavar="SET")
    parser.add_argument("--again", nargs="*", metavar="ROW", help="measure again; default: ours")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--coverage", type=int, metavar="N", help="sessions to count")
    parser.add_argument("--wrong-labels", action="store_true", help="flip labels and find them")
    parser.add_argument("--latency", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the page, measure nothing")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if options.coverage:
        keep_text("coverage", coverage(options.coverage))
    elif options.wrong_labels:
        keep_text("wrong labels", wrong_labels())
    elif options.latency:
        keep_text("latency", latency())
    elif not options.write:
        again = options.again
        rows = options.rows or (list(again or ["ours"]) if again is not None else list(STRATEGIES))
        sets = list(options.sets or (*SETS, *OTHERS))
        if folder() is None:
            print("no tables: set GDPA_DATA_HOME to a folder with tables/*.csv")
            sets = [name for name in sets if name not in (*TABLES, *OTHERS)]
        measure(rows, sets, again is not None, options.seeds)
    print(page(store()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
