"""Compare rules set by set, with standard errors over sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .record import load
from .replay import Replay, Weights, measures

MEASURES = ("error", "balanced error", "log-loss", "AUC")
Predict = Callable[[Replay], Any]
# For each rule, labels and set: the mean of each measure over the draws.
Scores = dict[str, dict[str, dict[str, dict[str, float]]]]


def recorded(cache: Path, group: str, kind: str, leave_out: tuple[str, ...] = ()) -> list[Replay]:
    """Read all recorded tasks of a kind."""
    paths = sorted((cache / kind).glob(f"*/*/{group}.npz"))
    return [Replay(load(path), leave_out) for path in paths]


def by_weights(rule: Weights) -> Predict:
    """Return the combined probabilities by fixed numbers of the rule."""
    return lambda task: task.combine(rule)[0]


def by_set(rules: Mapping[str, Weights]) -> Predict:
    """Return the combined probabilities by the rule learned without the task's own set."""
    return lambda task: task.combine(rules[task.record.name])[0]


def best_member(tasks: Sequence[Replay]) -> Predict:
    """Return the member with the least error on the scored rows of each set: an upper limit."""
    errors: dict[tuple[str, str], dict[str, list[float]]] = {}
    for task in tasks:
        key = (task.record.name, task.record.labels)
        for i, name in enumerate(task.names):
            wrong = float((task.scored[i].argmax(axis=1) != task.record.truth).mean())
            errors.setdefault(key, {}).setdefault(name, []).append(wrong)

    def predict(task: Replay) -> Any:
        found = errors[task.record.name, task.record.labels]
        most = max(len(each) for each in found.values())
        best = min((n for n in found if len(found[n]) == most), key=lambda n: np.mean(found[n]))
        return task.scored[task.names.index(best)]

    return predict


def score(tasks: Sequence[Replay], rules: Mapping[str, Predict]) -> Scores:
    """Measure every rule on every task, and average over the draws of a set."""
    found: dict[str, dict[str, dict[str, list[dict[str, float]]]]] = {}
    for task in tasks:
        r = task.record
        for rule, predict in rules.items():
            one = measures(predict(task), r.truth)
            found.setdefault(rule, {}).setdefault(r.labels, {}).setdefault(r.name, []).append(one)
    return {
        rule: {
            labels: {
                name: {m: float(np.mean([d[m] for d in draws])) for m in MEASURES}
                for name, draws in sets.items()
            }
            for labels, sets in counts.items()
        }
        for rule, counts in found.items()
    }


def change_in_both_errors(
    tasks: Sequence[Replay], rule: Predict, base: Predict
) -> tuple[float, float]:
    """Return the mean change of (error + balanced error) / 2 over sets, and its standard error."""
    scores = score(tasks, {"rule": rule, "base": base})
    changes: dict[str, list[float]] = {}
    for labels, sets in scores["rule"].items():
        for name, one in sets.items():
            other = scores["base"][labels][name]
            both = [one[m] - other[m] for m in ("error", "balanced error")]
            changes.setdefault(name, []).append(float(np.mean(both)))
    each = np.array([np.mean(values) for values in changes.values()])
    noise = float(each.std(ddof=1) / np.sqrt(each.size)) if each.size > 1 else float("inf")
    return float(each.mean()), noise


def merge(*scores: Scores) -> Scores:
    """Join the scores of several groups."""
    joined: Scores = {}
    for one in scores:
        joined |= one
    return joined


def change(scores: Scores, rule: str, base: str, labels: str, measure: str) -> tuple[float, float]:
    """Return the mean change against another rule over sets, and its standard error."""
    ours, theirs = scores[rule][labels], scores[base][labels]
    names = sorted(ours.keys() & theirs.keys())
    each = np.array([ours[n][measure] - theirs[n][measure] for n in names])
    error = float(each.std(ddof=1) / np.sqrt(each.size)) if each.size > 1 else float("nan")
    return float(each.mean()), error


def mean_ranks(scores: Scores, rules: Sequence[str], labels: str, measure: str) -> dict[str, float]:
    """Return the mean rank of each rule over sets; 1 is best."""
    from scipy.stats import rankdata

    names = sorted(set.intersection(*(set(scores[rule][labels]) for rule in rules)))
    table = np.array([[scores[rule][labels][n][measure] for rule in rules] for n in names])
    ranks = rankdata(-table if measure == "AUC" else table, axis=1)
    return dict(zip(rules, ranks.mean(axis=0).tolist(), strict=True))


def lines(scores: Scores, base: str, labels: Sequence[str]) -> list[str]:
    """Return a table of means, with the change against `base` and its standard error."""
    out = []
    for count in labels:
        present = [rule for rule in scores if count in scores[rule]]
        if not present:
            continue
        n_sets = len(scores[present[0]][count])
        out += [
            f"\n{count} labels, {n_sets} sets (change against {base})\n",
            "| rule | " + " | ".join(MEASURES) + " |",
            "|---|" + "---|" * len(MEASURES),
        ]
        for rule in present:
            cells = []
            for measure in MEASURES:
                mean = np.mean([one[measure] for one in scores[rule][count].values()])
                gain, noise = change(scores, rule, base, count, measure)
                digits = 3 if measure == "log-loss" else 2
                cells.append(f"{mean:.{digits}f} ({gain:+.{digits}f} ± {noise:.{digits}f})")
            out.append(f"| {rule} | " + " | ".join(cells) + " |")
    return out
