"""Is the guarantee of labelling kept, and how many answers does it take?

    python -m benchmarks.guarantee --traces FOLDER            # record predictions, once
    python -m benchmarks.guarantee --traces FOLDER --measure coverage effort mix kills
    python -m benchmarks.guarantee --write                    # only print the results

A trace is a labelling session on a data set: the rows it asks for, and its predictions after 15 to
100 answers. Replayed sessions draw their own checks from them, with a seed of their own. The sets
include features without any information, rows sorted by class, and 5 % wrong labels.

*Coverage*: 2,000 sessions in which the model changes six times. At each look, the true share of
right predictions among the unlabelled rows is compared with what is proved. A session fails at a
fixed time (its last look), at the first crossing (when the goal is first said to be reached), or
for an adversary (at any look at all). The goals are chosen 5 points below the truth, half a point
above it, or not at all.

*Effort*: checks until 90 % is proved where exactly 95 % are right. A population of 5,000 rows is
drawn with replacement from the rows of a set, so that the last predictions of its trace have that
accuracy. *Even* draws the checks evenly without control variate, with the same bets and the same
guarantee; of the confidences, it knows the mean only. A set without wrong predictions is left out.

*Mix*: all answers, learning included, until a goal is proved. *As planned* learns first and holds
the predictions when checking them is expected to reach the goal sooner. *One check in five* never
holds them. *Only random checks* never chooses a row; its model is that of as many chosen rows,
which flatters it.

*Kills*: a session with three annotators is killed again and again; its log is compared with the
answers that were sent and acknowledged, and its certificate is verified.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gdpa import LabelingSession
from gdpa.labeling.accuracy import Predictions
from gdpa.labeling.answers import Answer
from gdpa.labeling.forecast import RECONSIDER, make_plan
from gdpa.labeling.goal import Goal
from gdpa.labeling.proof import Proof
from gdpa.labeling.question_selector import CHECK_EVERY, CHECKS_FROM
from gdpa.labeling.records import read_log
from gdpa.labeling.session_certificate import verify_certificate

from .labeling import OTHERS, TABLES, generated, load
from .machine import describe

HERE = Path(__file__).parent
STORE = HERE / "guarantee.json"
ROWS = 1500
SNAPSHOTS = (15, 20, 30, 40, 60, 80, 100)
# Answers at which a replayed session holds its predictions, and lets them go again.
HOLDS = ((40, 70), (100, 1000))
ANSWERS = 170
POPULATION = 5000
MOST_CHECKS = 2000
MOST_ANSWERS = 500
ANNOTATORS = ("Ann", "Ben", "Cleo")
POLICIES = ("as planned", "one check in five", "only random checks")
SETS = (
    *("digits", *TABLES, *OTHERS),
    *("generated points", "no information", "sorted by class", "5 % wrong labels"),
)
RISK = 0.05


def data(name: str) -> tuple[Any, Any]:
    """Features, and the answers that annotators give."""
    rng = np.random.default_rng(0)
    if name == "generated points":
        return generated(ROWS, 0)
    if name == "no information":
        X, y = load("digits", 1, ROWS)
        return rng.normal(size=X.shape), y % 2
    if name == "sorted by class":
        X, y = load("optdigits", 1, ROWS)
        order = np.argsort(y, kind="stable")
        return X[order], y[order]
    if name == "5 % wrong labels":
        X, y = load("segment", 1, ROWS)
        wrong = rng.random(y.size) < 0.05
        return X, np.where(wrong, (y + rng.integers(1, y.max() + 1, y.size)) % (y.max() + 1), y)
    return load(name, 0, ROWS)


@dataclass
class Trace:
    """A recorded session."""

    truth: Any
    asked: Any
    classes: list[Any]
    codes: list[Any]
    probabilities: list[Any]

    def predictions(self, number: int) -> Predictions:
        """The predictions of one snapshot."""
        return Predictions(
            number,
            self.classes[number],
            self.codes[number],
            self.probabilities[number],
            {},
        )

    def at(self, answers: int) -> int:
        """Number of the snapshot after so many answers."""
        return max(0, int(np.searchsorted(SNAPSHOTS, answers, side="right")) - 1)


def record(name: str, path: Path) -> None:
    """Run a session and store its predictions."""
    X, y = data(name)
    session = LabelingSession(X)
    asked = []
    parts: dict[str, Any] = {}
    for number in range(1, max(SNAPSHOTS) + 1):
        row = int(session.next()[0])
        session.label(row, int(y[row]))
        asked.append(row)
        if number in SNAPSHOTS:
            now = session.refresh()
            i = SNAPSHOTS.index(number)
            parts[f"classes{i}"] = now.classes
            # Without the labels: a row that is not labelled in a replay has the model's prediction.
            parts[f"codes{i}"] = np.argmax(now.probabilities, axis=1)
            parts[f"probabilities{i}"] = now.probabilities.astype(np.float32)
    np.savez_compressed(path, truth=y, asked=np.array(asked), **parts)


def read(path: Path) -> Trace:
    """Read a stored trace."""
    with np.load(path) as stored:
        numbers = range(len(SNAPSHOTS))
        return Trace(
            truth=stored["truth"],
            asked=stored["asked"],
            classes=[stored[f"classes{i}"] for i in numbers],
            codes=[stored[f"codes{i}"] for i in numbers],
            probabilities=[stored[f"probabilities{i}"].astype(np.float64) for i in numbers],
        )


def replay(trace: Trace, goal: Goal, seed: int) -> dict[str, Any]:
    """Replay a session with checks of its own; say at which looks a statement was false."""
    n = trace.truth.size
    rng = np.random.default_rng([seed, 11])
    cannot_tell = rng.random(n) < 0.01
    proof = Proof(n, goal, seed)
    answers: dict[int, Answer] = {}
    values = trace.truth.tolist()
    chosen = iter(trace.asked.tolist())
    number, held = 0, 0
    found = {"fixed": False, "crossing": None, "adversary": False, "looks": 0}
    for count in range(1, ANSWERS + 1):
        holds = any(start <= count < stop for start, stop in HOLDS)
        if not (holds and held):
            number = trace.at(count)
        held = holds
        now = trace.predictions(number)
        is_open = np.ones(n, dtype=bool)
        is_open[list(answers)] = False
        row = None
        if count > 15 and (holds or count % 5 == 0):
            if not proof.is_current(now, is_open) or holds != proof.holds:
                proof.apply(proof.model_event(now, hold=bool(holds), at=0), answers)
            event = proof.check_event(is_open, answers, busy=(), n=count)
            if event is not None:
                proof.apply(event, answers)
                row = int(event["row"])
        if row is None:
            row = next((r for r in chosen if is_open[r]), int(rng.choice(np.flatnonzero(is_open))))
        answers[row] = Answer(None if cannot_tell[row] else values[row], "check")
        if proof.rows:
            false, crossed = look(proof, trace, answers, now, cannot_tell)
            found["looks"] += 1
            found["fixed"] = false
            found["adversary"] |= false
            if crossed is not None and found["crossing"] is None:
                found["crossing"] = crossed
    return found


def look(
    proof: Proof, trace: Trace, answers: dict[int, Answer], now: Predictions, cannot_tell: Any
) -> tuple[bool, bool | None]:
    """Whether the truth is excluded now, and, if the goal is said to be reached, falsely so."""
    current = proof.current(now)
    evidence = proof.evidence(answers, current)
    left = np.ones(trace.truth.size, dtype=bool)
    left[list(answers)] = False
    wrong = (now.classes[now.codes] != trace.truth) | cannot_tell
    cost = float(wrong[left].sum())
    needed = np.log(1.0 / proof.goal.risk)
    false = evidence.log_capital(cost) >= needed
    if proof.goal.level is None:
        return bool(false), None
    allowed = proof.allowed(answers, current)
    if evidence.log_capital(allowed) < needed:
        return bool(false), None
    return bool(false), bool(cost > allowed)


def coverage(traces: dict[str, Trace], sessions: int) -> dict[str, dict[str, float]]:
    """Count the sessions with a false statement, by set and by stopping time."""
    results = {}
    for place, (name, trace) in enumerate(traces.items()):
        last = trace.predictions(len(SNAPSHOTS) - 1)
        truth = float(np.mean(last.classes[last.codes] == trace.truth))
        levels = [max(0.05, truth - 0.05), min(0.99, truth + 0.005), None]
        number = sessions // len(traces) + (place < sessions % len(traces))
        runs = [
            replay(trace, Goal(level=levels[i % 3], risk=RISK), 10_000 * place + i)
            for i in range(number)
        ]
        results[name] = {
            "sessions": number,
            "fixed": sum(r["fixed"] for r in runs),
            "crossing": sum(bool(r["crossing"]) for r in runs),
            "crossed": sum(r["crossing"] is not None for r in runs),
            "adversary": sum(r["adversary"] for r in runs),
            "looks": sum(r["looks"] for r in runs),
            "accuracy": truth,
        }
        print(name, results[name], flush=True)
    return results


def resampled(trace: Trace, accuracy: float, seed: int) -> tuple[Predictions, Any] | None:
    """The last predictions on rows drawn with replacement, of which the given share is right."""
    rng = np.random.default_rng([seed, 12])
    last = trace.predictions(len(SNAPSHOTS) - 1)
    right = last.classes[last.codes] == trace.truth
    if right.all():
        return None
    n_right = round(accuracy * POPULATION)
    keep = np.r_[
        rng.choice(np.flatnonzero(right), n_right),
        rng.choice(np.flatnonzero(~right), POPULATION - n_right),
    ]
    rng.shuffle(keep)
    part = Predictions(0, last.classes, last.codes[keep], last.probabilities[keep], {})
    return part, trace.truth[keep]


def even(predictions: Predictions) -> Predictions:
    """The same predictions with the mean confidence everywhere: one stratum, drawn evenly."""
    n, k = predictions.probabilities.shape
    confidence = float(predictions.confidence.mean())
    p = np.full((n, k), (1.0 - confidence) / max(1, k - 1))
    p[np.arange(n), predictions.codes] = confidence
    return Predictions(0, predictions.classes, predictions.codes, p, {})


def checks_until(predictions: Predictions, truth: Any, goal: Goal, seed: int) -> float:
    """Checks until the goal is proved, at most MOST_CHECKS."""
    n = truth.size
    proof = Proof(n, goal, seed)
    answers: dict[int, Answer] = {}
    values = truth.tolist()
    proof.apply(proof.model_event(predictions, hold=True, at=0), answers)
    current = proof.last
    for count in range(1, MOST_CHECKS):
        is_open = np.ones(n, dtype=bool)
        is_open[list(answers)] = False
        proof.apply(proof.check_event(is_open, answers, busy=(), n=count), answers)
        row = proof.rows[-1]
        answers[row] = Answer(values[row], "check")
        evidence = proof.evidence(answers, current)
        allowed = proof.allowed(answers, current)
        if evidence.log_capital(allowed) >= np.log(1.0 / goal.risk):
            return float(count)
    return float(MOST_CHECKS)


def effort(traces: dict[str, Trace], seeds: int) -> dict[str, dict[str, float]]:
    """Mean checks to prove 90 % where 95 % are right, ours and evenly drawn."""
    goal = Goal(level=0.9, risk=RISK)
    results = {}
    for place, (name, trace) in enumerate(traces.items()):
        ours, theirs = [], []
        for seed in range(seeds):
            rows = resampled(trace, 0.95, seed)
            if rows is None:
                break
            part, truth = rows
            ours.append(checks_until(part, truth, goal, 1000 * place + seed))
            theirs.append(checks_until(even(part), truth, goal, 1000 * place + seed))
        if not ours:
            print(f"{name}: no wrong prediction to draw from", flush=True)
            continue
        results[name] = {"ours": float(np.mean(ours)), "even": float(np.mean(theirs))}
        print(name, results[name], flush=True)
    return results


def answers_until(trace: Trace, goal: Goal, seed: int, policy: str) -> float:
    """All answers until the goal is proved, learning included, at most MOST_ANSWERS."""
    n = trace.truth.size
    rng = np.random.default_rng([seed, 13])
    proof = Proof(n, goal, seed)
    answers: dict[int, Answer] = {}
    values = trace.truth.tolist()
    chosen = iter(trace.asked.tolist())
    number = 0
    for count in range(1, MOST_ANSWERS):
        if not proof.holds or policy == "only random checks":
            number = trace.at(count)
        now = trace.predictions(number)
        if policy == "only random checks":
            now = even(now)
        is_open = proof.open_mask(answers, ())
        starts = policy == "only random checks"
        if policy == "as planned" and count > CHECKS_FROM:
            if proof.holds and len(answers) >= RECONSIDER * proof.held_labels:
                plan = make_plan(proof, now, answers)
                if plan is None or plan.learn:
                    proof.apply({"do": "release"}, answers)
                    number = trace.at(count)
                    now = trace.predictions(number)
            if not proof.holds:
                plan = make_plan(proof, now, answers)
                starts = plan is not None and not plan.learn
        row = None
        if count > CHECKS_FROM and (proof.holds or starts or count % CHECK_EVERY == 0):
            if starts or not proof.is_current(now, is_open):
                hold = starts or proof.holds
                event = proof.model_event(now, hold=hold, at=0)
                proof.apply({**event, "labels": len(answers)}, answers)
            event = proof.check_event(is_open, answers, busy=(), n=count)
            proof.apply(event, answers)
            row = int(event["row"])
        if row is None:
            row = next((r for r in chosen if is_open[r]), int(rng.choice(np.flatnonzero(is_open))))
        answers[row] = Answer(values[row], "check")
        if proof.rows:
            current = proof.current(now)
            capital = proof.evidence(answers, current).log_capital(proof.allowed(answers, current))
            if capital >= np.log(1.0 / goal.risk):
                return float(count)
    return float(MOST_ANSWERS)


def mix(traces: dict[str, Trace], seeds: int) -> dict[str, dict[str, float]]:
    """All answers that each policy takes."""
    results = {}
    for place, (name, trace) in enumerate(traces.items()):
        last = trace.predictions(len(SNAPSHOTS) - 1)
        truth = float(np.mean(last.classes[last.codes] == trace.truth))
        goal = Goal(level=max(0.05, truth - 0.05), risk=RISK)
        results[name] = {
            policy: float(
                np.mean([answers_until(trace, goal, 500 * place + s, policy) for s in range(seeds)])
            )
            for policy in POLICIES
        }
        print(name, results[name], flush=True)
    return results


def annotate(log: Path, X: Any, y: Any, report: int) -> None:
    """Label with several annotators until the process is killed; report every answer twice."""
    session = LabelingSession(X, log=log, goal=0.85)
    if session.labels:
        session.refresh()  # so that there are predictions to check from the start
    session.in_background()  # as the page has it

    def follow() -> None:
        while True:
            session.follow()
            if session.labels:
                session.refresh()
            time.sleep(0.01)

    def label(name: str) -> None:
        while True:
            rows = session.next(annotator=name)
            if not rows.size:
                return
            row, value = int(rows[0]), str(y[rows[0]])
            os.write(report, f"sent {row} {value} {name}\n".encode())
            session.label(row, value, annotator=name)
            os.write(report, f"saved {row} {value} {name}\n".encode())
            time.sleep(0.05)

    work = [threading.Thread(target=follow, daemon=True)]
    work += [threading.Thread(target=label, args=(n,), daemon=True) for n in ANNOTATORS]
    for thread in work:
        thread.start()
    time.sleep(600)


def kills(number: int) -> dict[str, Any]:
    """Kill a session with several annotators again and again; compare its log with the answers."""
    rng = np.random.default_rng(0)
    n = 40 * number  # more than are answered between two kills
    y = np.array(["left", "right"])[np.arange(n) % 2]
    X = rng.normal(size=(n, 3)) + 2.2 * (y == "right")[:, None]
    sent: set[str] = set()
    saved: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        for _ in range(number):
            readable, writable = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(readable)
                annotate(log, X, y, writable)
            os.close(writable)
            with open(readable, "rb") as stream:
                first = stream.readline()  # from now on, any moment may be the last
                time.sleep(float(rng.uniform(0.0, 0.5)))
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                for line in (first + stream.read()).decode().splitlines():
                    do, _, answer = line.partition(" ")
                    (sent if do == "sent" else saved).add(answer)
        with LabelingSession(X, log=log) as session:
            found = {f"{row} {a.value} {a.by}" for row, a in session.answers.items()}
            content = session.certificate()
            events = read_log(log.read_bytes(), content["about"]).events
            statement = verify_certificate(content, events)
            same = statement.text == session.statement().text
    return {
        "kills": number,
        "annotators": len(ANNOTATORS),
        "saved": len(saved),
        "lost": len(saved - found),
        "invented": len(found - sent),
        "checks": statement.checks,
        "certificate": "valid" if same else "another statement",
    }


def made(results: dict[str, Any], part: str) -> str:
    """The command and the commit of a part."""
    found = results[part]
    return f"`--measure {part}` at commit {found['commit']}, load {found['load']}."


def effort_lines(results: dict[str, Any]) -> list[str]:
    """The section about the checks that a proof takes."""
    part = results["effort"]
    ratios = [r["ours"] / r["even"] for r in part["sets"].values()]
    return [
        "## Effort",
        "",
        f"Checks to prove 90 % where 95 % are right, mean of {part['seeds']} sessions per set. The "
        f"median of the ratios over {len(ratios)} sets is {np.median(ratios):.2f}.",
        "",
        "| set | ours | drawn evenly | ratio |",
        "|---|---|---|---|",
        *(
            f"| {name} | {r['ours']:.0f} | {r['even']:.0f} | {r['ours'] / r['even']:.2f} |"
            for name, r in part["sets"].items()
        ),
        "",
        made(results, "effort"),
    ]


def mix_lines(results: dict[str, Any]) -> list[str]:
    """The section about the mix of questions."""
    part = results["mix"]
    cells = [[r[policy] for policy in POLICIES] for r in part["sets"].values()]
    return [
        "## Mix of questions",
        "",
        "All answers, learning included, until a goal 5 points below the last accuracy is proved; "
        f"mean of {part['seeds']} sessions, {MOST_ANSWERS} if it was not.",
        "",
        "| set | " + " | ".join(POLICIES) + " |",
        "|---|" + "---|" * len(POLICIES),
        *(
            f"| {name} | " + " | ".join(f"{v:.0f}" for v in row) + " |"
            for name, row in zip(part["sets"], cells, strict=True)
        ),
        "| median | " + " | ".join(f"{v:.0f}" for v in np.median(cells, axis=0)) + " |",
        "",
        made(results, "mix"),
    ]


def page(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    found = results["coverage"]["sets"]
    total = sum(r["sessions"] for r in found.values())
    looks = sum(r["looks"] for r in found.values())
    rows = ["sessions", "accuracy", "fixed", "crossing", "adversary"]
    lines = [
        "# The guarantee of labelling",
        "",
        "## Coverage",
        "",
        f"{total:,} replayed sessions, {looks:,} looks, risk {RISK:.0%} per session. Share of "
        "sessions in percent with a false statement at the stopping time; at most "
        f"{100 * RISK:.0f} are allowed. The accuracy is that of the last predictions.",
        "",
        "| set | sessions | accuracy | fixed time | first crossing | adversary |",
        "|---|---|---|---|---|---|",
    ]
    for name, r in found.items():
        shares = [100.0 * r[key] / r["sessions"] for key in rows[2:]]
        cells = [f"{r['sessions']}", f"{100 * r['accuracy']:.1f}", *(f"{s:.1f}" for s in shares)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    shares = [100.0 * sum(r[key] for r in found.values()) / total for key in rows[2:]]
    lines.append(f"| all | {total} | | " + " | ".join(f"{s:.1f}" for s in shares) + " |")
    lines += ["", made(results, "coverage")]
    if "effort" in results:
        lines += ["", *effort_lines(results)]
    if "mix" in results:
        lines += ["", *mix_lines(results)]
    if "kills" in results:
        part = results["kills"]["sets"]
        lines += ["", "## Kills", ""]
        lines.append(
            f"{part['annotators']} annotators in one session, killed {part['kills']} times: "
            f"{part['saved']:,} answers acknowledged, {part['lost']} lost, {part['invented']} "
            f"invented; {part['checks']} random checks. The certificate of the resumed session is "
            f"{part['certificate']}."
        )
        lines += ["", made(results, "kills")]
    return "\n".join(lines) + "\n"


def save(results: dict[str, Any]) -> None:
    """Write the store, whole or not at all."""
    part = STORE.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n")
    os.replace(part, STORE)


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--traces", type=Path, help="folder of the recorded predictions")
    parser.add_argument(
        "--measure",
        nargs="+",
        choices=("coverage", "effort", "mix", "kills"),
        default=(),
        metavar="PART",
    )
    parser.add_argument("--write", action="store_true", help="print the stored results")
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=21)
    options = parser.parse_args()
    if options.write:
        print(page(json.loads(STORE.read_text())))
        return
    if options.traces is None:
        parser.error("--traces FOLDER is needed")
    options.traces.mkdir(exist_ok=True)
    traces = {}
    for name in SETS:
        path = options.traces / f"{name.replace(' ', '-').replace('%', 'percent')}.npz"
        if not path.exists():
            record(name, path)
            print(f"recorded {name}", flush=True)
        traces[name] = read(path)
    for part in options.measure:
        machine = describe()
        if part == "coverage":
            sets: Any = coverage(traces, options.sessions)
        elif part == "kills":
            sets = kills(options.kills)
            print(sets)
        else:
            sets = {"effort": effort, "mix": mix}[part](traces, options.seeds)
        results = json.loads(STORE.read_text()) if STORE.exists() else {}
        load = machine["load_at_start"]
        results[part] = {
            "commit": str(machine["commit"]),
            "load": "unknown" if load is None else f"{load[0]:g}",
            "seeds": options.seeds,
            "sets": sets,
        }
        save(results)
        if "coverage" in results:
            print(page(results))


if __name__ == "__main__":
    main()
