"""Score every rule on recorded predictions, and write the table of decisions.

All rules that are learned are scored with the set left out. The scores are stored in
``benchmarks/choose.json``; ``benchmarks/DECISIONS.md`` is written from that file alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from . import compare, learn, shares
from .compare import MEASURES, Scores
from .corpus import AT_RANDOM, KINDS
from .replay import Replay, Weights

HERE = Path(__file__).resolve().parents[1]
STORE = HERE / "choose.json"
PAGE = HERE / "DECISIONS.md"
PENALTY = 0.03
BEFORE = "committee before"
NOW = "committee"
LEARNED = "learned weights"
WITH_SHARES = "learned weights and class shares"
PLAIN = "no prior, b = 1, c = 0.5"
EQUAL = "equal weights"
BEST = "best member of each set"


@dataclass(frozen=True)
class Decision:
    """A line of the table of decisions.

    Parameters
    ----------
    question : str
        What was tried.
    kind : str
        Kind of data.
    rule, base : str
        The rule and what it is compared with.
    verdict : str
        What was decided.
    labels : tuple of str
        Numbers of labels that are shown.
    """

    question: str
    kind: str
    rule: str
    base: str
    verdict: str
    labels: tuple[str, ...] = ("5", "20")


def left_out_rules(tasks: Sequence[Replay], penalty: float = PENALTY) -> dict[str, Weights]:
    """Learn the weights once for every set, without it."""
    lesson = learn.lesson_of(tasks)
    kind = tasks[0].record.kind
    start = learn.learn(lesson, penalty=penalty)
    return {
        name: learn.weights_of(
            lesson, learn.learn(lesson, without=name, penalty=penalty, start=start), kind
        )
        for name in np.unique(lesson.sets).tolist()
    }


def predicted(name: str) -> compare.Predict:
    """Return a recorded model's own probabilities."""
    return lambda task: task.record.models[name].scored


def joined(
    tasks: Sequence[Replay], others: Sequence[Replay], names: Sequence[str], without: str = ""
) -> list[Replay]:
    """Add models of another group to the members, or exchange one of them."""
    by_task = {(t.record.name, t.record.labels, t.record.draw): t.record for t in others}
    found = []
    for task in tasks:
        r = task.record
        extra = by_task.get((r.name, r.labels, r.draw))
        if extra is not None:
            models = {n: m for n, m in r.models.items() if n != without}
            models |= {n: extra.models[n] for n in names if n in extra.models}
            found.append(Replay(replace(r, models=models)))
    return found


def better_of(
    tasks: Sequence[Replay], others: Sequence[Replay], candidate: str, member: str
) -> list[Replay]:
    """Exchange a member by a candidate wherever the held-out labels prefer the candidate."""
    both = joined(tasks, others, [candidate])
    found = []
    for task in both:
        models = dict(task.record.models)
        if task.losses is not None and member in models:
            loss = dict(zip(task.names, task.losses, strict=True))
            if loss[candidate] < loss[member]:
                models[member] = models[candidate]
        models.pop(candidate, None)
        found.append(Replay(replace(task.record, models=models)))
    return found


def members_of_kind(cache: Path, kind: str) -> Scores:
    """Score the rules of weights, the committee before and now, and other classifiers."""
    tasks = compare.recorded(cache, "members", kind)
    scores: Scores = {}
    if tasks:
        rules = left_out_rules(tasks)
        numbers = shares.ShareNumbers()
        scores |= compare.score(
            tasks,
            {
                EQUAL: compare.by_weights(Weights(b=0.0)),
                PLAIN: compare.by_weights(Weights()),
                LEARNED: compare.by_set(rules),
                WITH_SHARES: lambda t: shares.with_shares(t, rules[t.record.name], numbers),
                BEST: compare.best_member(tasks),
            },
        )
    for group, names in {
        "committee-old": {"committee": BEFORE},
        "committee": {"committee": NOW},
        "peers": None,
        "catboost": None,
        "gcn": None,
    }.items():
        recorded = compare.recorded(cache, group, kind)
        models = sorted({name for task in recorded for name in task.record.models})
        for name in models:
            shown = name if names is None else names[name]
            scores |= {shown: compare.score(recorded, {"": predicted(name)})[""]}
    return scores


def splits(cache: Path) -> Scores:
    """Score forests with best splits as a member: instead, by held-out labels, and as one more."""
    tasks = compare.recorded(cache, "members", "table")
    others = compare.recorded(cache, "splits", "table")
    if not others:
        return {}
    groups = {
        "forest as it is": joined(tasks, others, []),
        "best splits instead": joined(tasks, others, ["best splits"], without="forest"),
        "best splits where held-out labels prefer them": better_of(
            tasks, others, "best splits", "forest"
        ),
        "best splits as one more member": joined(tasks, others, ["best splits"]),
    }
    rule = compare.by_weights(Weights())
    return {name: compare.score(group, {"": rule})[""] for name, group in groups.items()}


def picture_features(cache: Path) -> Scores:
    """Score members on pixels and on features learned from the pictures."""
    features = compare.recorded(cache, "members", "pictures")
    pixels = compare.recorded(cache, "pixels", "pictures")
    if not pixels:
        return {}
    names = sorted({name for task in pixels for name in task.record.models})
    groups = {
        "pixels": pixels,
        "picture features": features,
        "pixels and picture features": joined(features, pixels, names),
    }
    rule = compare.by_weights(Weights())
    return {name: compare.score(group, {"": rule})[""] for name, group in groups.items()}


def links_smoothed(cache: Path) -> Scores:
    """Score the plain model on features smoothed twice as one more member."""
    tasks = compare.recorded(cache, "members", "links")
    others = compare.recorded(cache, "twice", "links")
    if not others:
        return {}
    names = sorted({name for task in others for name in task.record.models})
    rule = compare.by_weights(Weights())
    return {
        "members as they are": compare.score(joined(tasks, others, []), {"": rule})[""],
        "features smoothed twice as one more member": compare.score(
            joined(tasks, others, names[-1:]), {"": rule}
        )[""],
    }


def chosen_shares(cache: Path) -> dict[str, Any]:
    """Choose the numbers of the class shares with each set left out."""
    tasks: list[Replay] = []
    rules: dict[tuple[str, str], Weights] = {}
    for kind in KINDS:
        mine = compare.recorded(cache, "members", kind)
        if mine:
            rules |= {(kind, name): rule for name, rule in left_out_rules(mine).items()}
            tasks += [t for t in mine if t.record.labels not in ("1", "2", AT_RANDOM)]
    if not tasks:
        return {}
    losses = shares.both_errors(tasks, rules)
    by_set = [shares.chosen(losses, without=name) for name in losses]
    candidates = [None, *shares.candidates()]
    means = {
        str(c): round(float(np.mean([losses[name][c] for name in losses])), 4) for c in candidates
    }
    best = shares.chosen(losses)
    return {
        "sets": len(losses),
        "chosen": None if best is None else asdict(best),
        "sets that choose the same": sum(each == best for each in by_set),
        "mean of error and balanced error": means,
    }


def collect(cache: Path) -> dict[str, Any]:
    """Score everything that is recorded."""
    found: dict[str, Any] = {"kinds": {}, "candidates": {}}
    for kind in KINDS:
        scores = members_of_kind(cache, kind)
        if scores:
            found["kinds"][kind] = rounded(scores)
    for name, scores in {
        "table": splits(cache),
        "pictures": picture_features(cache),
        "links": links_smoothed(cache),
    }.items():
        if scores:
            found["candidates"][name] = rounded(scores)
    found["class shares"] = chosen_shares(cache)
    return found


def rounded(scores: Scores) -> Scores:
    """Round the scores for the file."""
    return {
        rule: {
            labels: {
                name: {m: round(value, 4 if m == "log-loss" else 2) for m, value in one.items()}
                for name, one in sets.items()
            }
            for labels, sets in counts.items()
        }
        for rule, counts in scores.items()
    }


DECISIONS = (
    Decision("Weights without any held-out loss", "table", EQUAL, PLAIN, "rejected"),
    Decision("Prior, b and c learned", "table", LEARNED, PLAIN, "rejected: no gain"),
    Decision("Prior, b and c learned", "embedding", LEARNED, PLAIN, "adopted"),
    Decision("Prior, b and c learned", "bag of words", LEARNED, PLAIN, "adopted"),
    Decision("Prior, b and c learned", "links", LEARNED, PLAIN, "adopted: the stored prior lost"),
    Decision("Prior, b and c learned", "pictures", LEARNED, PLAIN, "rejected: no gain"),
    Decision("Class shares with a guard", "table", WITH_SHARES, LEARNED, "adopted"),
    Decision("Class shares with a guard", "embedding", WITH_SHARES, LEARNED, "adopted"),
    Decision("Class shares with a guard", "bag of words", WITH_SHARES, LEARNED, "adopted"),
    Decision("Class shares with a guard", "links", WITH_SHARES, LEARNED, "adopted"),
    Decision("Class shares with a guard", "pictures", WITH_SHARES, LEARNED, "adopted"),
    Decision(
        "Trees with best splits among half of the columns instead of the forest",
        "table",
        "best splits instead",
        "forest as it is",
        "rejected",
    ),
    Decision(
        "Best splits where held-out labels prefer them",
        "table",
        "best splits where held-out labels prefer them",
        "forest as it is",
        "gains, not built in yet",
    ),
    Decision(
        "Best splits as one more member",
        "table",
        "best splits as one more member",
        "forest as it is",
        "rejected: more trees for the same gain",
    ),
    Decision(
        "Features learned from the pictures instead of pixels",
        "pictures",
        "picture features",
        "pixels",
        "adopted",
        ("1", "5", "20"),
    ),
    Decision(
        "Pixels beside the learned features",
        "pictures",
        "pixels and picture features",
        "picture features",
        "rejected",
        ("1", "5", "20"),
    ),
    Decision(
        "Logistic regression on features smoothed twice as one more member",
        "links",
        "features smoothed twice as one more member",
        "members as they are",
        "rejected",
    ),
    *(
        Decision(
            "Learned weights and class shares, replayed with the set left out",
            kind,
            WITH_SHARES,
            BEFORE,
            "measured",
        )
        for kind in ("embedding", "bag of words", "links")
    ),
    Decision("The committee as it is now", "table", NOW, BEFORE, "measured", ("1", "5", "20")),
    Decision("The committee as it is now", "embedding", NOW, BEFORE, "measured", ("1", "5", "20")),
    Decision("The committee as it is now", "bag of words", NOW, BEFORE, "measured", ("5", "20")),
    Decision("The committee as it is now", "links", NOW, BEFORE, "measured", ("1", "5", "20")),
    Decision("The committee as it is now", "pictures", NOW, BEFORE, "measured", ("1", "5", "20")),
)


def decision_lines(found: dict[str, Any]) -> list[str]:
    """Return one line per decision and number of labels that can be computed."""
    out = [
        "| what was tried | kind of data | sets | labels | error | balanced error | AUC "
        "| decision |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for d in DECISIONS:
        scores: Scores = found["kinds"].get(d.kind, {}) | found["candidates"].get(d.kind, {})
        for labels in d.labels:
            if labels in scores.get(d.rule, {}) and labels in scores.get(d.base, {}):
                sets = scores[d.rule][labels].keys() & scores[d.base][labels].keys()
                cells = []
                for measure in ("error", "balanced error", "AUC"):
                    gain, noise = compare.change(scores, d.rule, d.base, labels, measure)
                    cells.append(f"{gain:+.2f} ± {noise:.2f}")
                out.append(
                    f"| {d.question} (against: {d.base}) | {d.kind} | {len(sets)} | {labels} | "
                    + " | ".join(cells)
                    + f" | {d.verdict} |"
                )
    return out


def rank_lines(scores: Scores, rules: Sequence[str]) -> list[str]:
    """Return mean scores and mean ranks of whole classifiers."""
    out = []
    for labels in ("5", "20"):
        present = [rule for rule in rules if labels in scores.get(rule, {})]
        if len(present) < 2:
            continue
        names = set.intersection(*(set(scores[rule][labels]) for rule in present))
        out += [
            "",
            f"{labels} labels a class, {len(names)} sets: mean (mean rank)",
            "",
            "| | " + " | ".join(MEASURES) + " |",
            "|---|" + "---|" * len(MEASURES),
        ]
        ranks = {m: compare.mean_ranks(scores, present, labels, m) for m in MEASURES}
        for rule in present:
            cells = []
            for m in MEASURES:
                mean = np.mean([scores[rule][labels][name][m] for name in names])
                digits = 3 if m == "log-loss" else 1
                cells.append(f"{mean:.{digits}f} ({ranks[m][rule]:.2f})")
            out.append(f"| {rule} | " + " | ".join(cells) + " |")
    return out


def set_lines(scores: Scores, rules: Sequence[str], labels: str) -> list[str]:
    """Return the error of whole classifiers, set by set; a dash where one was not run."""
    present = [rule for rule in rules if labels in scores.get(rule, {})]
    if not present:
        return []
    errors = {
        rule: {name: f"{one['error']:.1f}" for name, one in scores[rule][labels].items()}
        for rule in present
    }
    out = ["", f"Error with {labels} labels a class, set by set", ""]
    out += ["| set | " + " | ".join(present) + " |", "|---|" + "---|" * len(present)]
    for name in sorted(set().union(*errors.values())):
        row = " | ".join(errors[rule].get(name, "-") for rule in present)
        out.append(f"| {name} | {row} |")
    return out


PEERS = {
    "table": ("random forest", "extra trees", "logistic regression", "catboost"),
    "embedding": ("logistic regression",),
    "bag of words": ("logistic regression",),
    "links": ("smoothed logistic regression", "logistic regression", "GCN", "APPNP"),
    "pictures": ("random forest", "extra trees", "logistic regression"),
}


def page(found: dict[str, Any]) -> str:
    """Return the page of decisions."""
    about = found.get("provenance", {})
    lines = [
        "# What the defaults were chosen by",
        "",
        "Written by `python -m benchmarks.choose report` from `benchmarks/choose.json`. Every rule",
        "with learned numbers is scored on sets that had no part in learning them (one set left",
        "out at a time). Changes are in percent points, mean over sets ± standard error over sets;",
        "for error and balanced error a negative number is a gain, for AUC a positive one.",
        "",
        f"Recorded at commit {about.get('commit', 'unknown')} on {about.get('date', 'unknown')}: "
        f"{about.get('sets', 'unknown')}. Load of the machine: {about.get('load', 'unknown')}. The",
        f"committee before is that of commit {about.get('before') or 'unknown'}; others, members",
        "on pixels, and candidates for members were recorded at that commit; CatBoost and some",
        "graph networks later, on the same draws.",
        "",
        "## Decisions",
        "",
        *decision_lines(found),
    ]
    numbers = found.get("class shares") or {}
    if numbers:
        lines += [
            "",
            "## Class shares",
            "",
            "Temperature, weight of the prior and guard, compared by the mean of error and "
            f"balanced error with 5 and 20 labels a class over {numbers['sets']} sets. Best: "
            f"{numbers['chosen']}; with one set left out, "
            f"{numbers['sets that choose the same']} of {numbers['sets']} choose the same. The "
            f"package uses {asdict(shares.ShareNumbers())}; the first ten differ by 0.03 points.",
            "",
            "| numbers | mean of error and balanced error |",
            "|---|---|",
        ]
        means = numbers["mean of error and balanced error"]
        for name in sorted(means, key=means.__getitem__):
            lines.append(f"| {name} | {means[name]:.3f} |")
    lines += [
        "",
        "## Beside other classifiers",
        "",
        f"The row *{NOW}* is the default classifier, whose weights for embeddings, bags of words",
        f"and links were learned from these sets. In the row *{WITH_SHARES}*, replayed",
        "from the recorded members, the set is left out.",
    ]
    for kind, scores in found["kinds"].items():
        rules = (NOW, WITH_SHARES, BEFORE, *PEERS.get(kind, ()))
        body = rank_lines(scores, rules)
        if kind in ("links", "embedding", "pictures"):
            body += set_lines(scores, rules, "20")
        if body:
            lines += ["", f"### {kind}", *body]
    return "\n".join([*lines, ""])


def save(found: dict[str, Any], path: Path = STORE) -> None:
    """Write the scores."""
    path.write_text(json.dumps(found, indent=None, separators=(",", ":")) + "\n", encoding="utf-8")
