"""The stages of a fit, in order.

    sample -> plan -> assign -> gather -> search -> rows -> tuning -> solve -> answers -> files

Each arrow is a stage of tasks that read files of the stages before it and write their own; see
:mod:`gdpa.distributed.manifest` for what is skipped when a run starts again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..estimators.ensemble import MEMBERS
from ..estimators.probabilities import fit_sharpness, labeled_prior
from ..estimators.tuning import Tuning
from ..tables import TableError
from .inputs import Inputs
from .manifest import Manifest, Record
from .options import MOST_POINTS, default_parts
from .predictions import answer, count_faint, write_file
from .rows import build_rows, write_counts
from .runner import Runner, Task
from .sample import BUCKET_IDS, check_ids, make_plan, sample_share, take_sample
from .search import choose_probes, draw_queries, find_true, most_alike, search_part
from .shuffle import assign, gather
from .solve import Solved, solve
from .steps import Column, Spec, checkpoint_file
from .store import open_folder
from .tuning import batches, choose_setting

__all__ = ["FitResult", "run_stages"]

# Members of the committee that work on parts; the others need all rows in one place.
HERE = ("neighbours", "importance")


@dataclass(frozen=True)
class FitResult:
    """What a distributed fit has done.

    Parameters
    ----------
    rows, labeled : int
        Rows, and those that had a label.
    classes : dict
        Labels of each class.
    predicted : dict
        Rows without a label that were given each class.
    parts : int
        Parts that the rows were cut into.
    features : int
        Features that the columns became.
    recall : float
        Share of true neighbours found, measured on a sample.
    cut : float
        Share of the edges that join different parts.
    self_loop, label_weight : float
        The setting in use.
    loss : float
        Its loss on left-out labels.
    tuning : str
        How it was chosen.
    sharpness : float
        Exponent of the probabilities.
    residual : float
        Relative residual of the solve.
    steps : int
        Steps of the solve.
    converged : bool
        Whether the tolerance was met.
    unreached : int
        Rows without a path to a label; they get the most frequent class.
    seconds : dict
        Time of each stage in this run (none of those that were done before).
    cpu : dict
        CPU time of the tasks of each stage and of the steps of each solve, in whichever run.
    notes : tuple of str
        What the user should know.
    files : tuple of str
        The predictions.
    """

    rows: int
    labeled: int
    classes: dict[str, int]
    predicted: dict[str, int]
    parts: int
    features: int
    recall: float
    cut: float
    self_loop: float
    label_weight: float
    loss: float
    tuning: str
    sharpness: float
    residual: float
    steps: int
    converged: bool
    unreached: int
    seconds: dict[str, float]
    cpu: dict[str, float]
    notes: tuple[str, ...]
    files: tuple[str, ...] = field(default=())


def _each(parts: Sequence[int] | range, function: Any, **arguments: Any) -> list[Task]:
    return [Task(f"{p:05d}", function, {"part": p, **arguments}) for p in parts]


def run_stages(
    runner: Runner, inputs: Inputs, features: list[str], target_type: str, keep: bool
) -> FitResult:
    """Run what is left to do of a fit; see :func:`gdpa.distributed.fit`."""
    manifest = runner.manifest
    asked = manifest.parameters
    seed, k = asked["random_state"], asked["n_neighbors"]
    starts, planned, notes = _points(runner, inputs, features, asked)
    parts = range(len(starts) - 1)
    if starts[-1] < 3:
        raise TableError(f"{inputs.paths[0]} has {starts[-1]} rows; at least 3 are needed")
    common = {"starts": starts, "n_neighbors": k}
    runner.stage("queries", [Task("0", draw_queries, {"seed": seed, **common})])
    runner.stage("truth", _each(parts, find_true, **common))
    probes = runner.stage(
        "probes", [Task("0", choose_probes, common | {"recall": asked["recall"]})]
    )
    found = probes["0"].result
    searched = runner.stage(
        "search",
        _each(parts, search_part, probes=found["probes"], fallback_scale=found["scale"], **common),
    )
    ends = [record.result["ends"] for record in searched.values()]
    rows = runner.stage("rows", _each(parts, build_rows, starts=starts, ends=ends))
    counts = np.array([np.diff(record.result["halo"]) for record in rows.values()]).T
    runner.stage("counts", [Task("0", write_counts, {"counts": counts.tolist()})])
    codes = runner.folder.read_array("plan/codes.npy")
    folds = runner.folder.read_array("plan/folds.npy")
    names = list(planned["classes"])
    tuning = choose_setting(
        runner, codes, folds, len(names), starts,
        label_weight=None if asked["label_weight"] is None else float(asked["label_weight"]),
        self_loop=asked["self_loop"],
    )  # fmt: skip
    solved, answers, sharpness = _answers(runner, tuning, codes, names, inputs, starts)
    written = _files(runner, inputs, answers, asked, target_type)
    nonzeros = sum(r.result["nonzeros"] for r in rows.values())
    result = FitResult(
        rows=inputs.n_rows,
        labeled=int(codes.size),
        classes=planned["classes"],
        predicted=dict(
            zip(names, np.sum([r.result["predicted"] for r in answers.values()], axis=0).tolist(),
                strict=True)
        ),
        parts=len(parts),
        features=planned["n_features"],
        recall=found["recall"],
        cut=sum(r.result["cut"] for r in rows.values()) / max(nonzeros, 1),
        self_loop=tuning.setting.self_loop,
        label_weight=tuning.setting.label_weight,
        loss=tuning.loss,
        tuning=tuning.source,
        sharpness=sharpness,
        residual=max(s.residual for s in solved),
        steps=max(s.step for s in solved),
        converged=all(s.converged for s in solved),
        unreached=sum(r.result["unreached"] for r in answers.values()),
        seconds=dict(runner.seconds),
        cpu=_cpu(manifest),
        notes=tuple(notes),
        files=tuple(written),
    )  # fmt: skip
    model = {
        "classes": names, "starts": starts, "features": features, "target_type": target_type,
        "prior": labeled_prior(codes, len(names)).tolist(), "sharpness": sharpness,
        "self_loop": result.self_loop, "label_weight": str(result.label_weight),
        "probes": found["probes"], "scale": found["scale"], "n_neighbors": k, "tol": asked["tol"],
        "source": inputs.paths[0],
    }  # fmt: skip
    manifest.note("model", model)
    if not keep:
        for stage in ("search", "rows", "truth", "queries", "sample"):
            manifest.discard(stage)
        for spec in (s for s in manifest.data["solves"] if not s.startswith("final")):
            manifest.discard(f"{spec}-{manifest.data['solves'][spec]['step']:05d}")
    return result


def _points(
    runner: Runner, inputs: Inputs, features: list[str], asked: Mapping[str, Any]
) -> tuple[list[int], dict[str, Any], list[str]]:
    """Stages up to the points of the parts: first node of each part, the plan, notes."""
    seed, id_column, target = asked["random_state"], asked["id_column"], asked["target"]
    pieces, n, manifest = list(inputs.pieces), inputs.n_rows, runner.manifest
    if "n_parts" not in manifest.data:  # the same when it goes on with other workers
        manifest.note("n_parts", asked["n_parts"] or default_parts(n, runner.n_workers))
    buckets = max(1, -(-n // BUCKET_IDS))
    common = {"features": features, "target": target, "unlabeled": asked["unlabeled"]}
    common |= {"id_column": id_column, "share": sample_share(n), "seed": seed, "buckets": buckets}
    sampled = runner.stage(
        "sample",
        [
            Task(f"{i:06d}", take_sample, {"piece": piece, "number": i, **common})
            for i, piece in enumerate(pieces)
        ],
    )
    if id_column is not None:
        ends = [record.result["ends"] for record in sampled.values()]
        about = {"pieces": pieces, "ends": ends, "id_column": id_column}
        runner.stage(
            "ids", [Task(f"{b:05d}", check_ids, {"bucket": b, **about}) for b in range(buckets)]
        )
    plan = {
        "n_pieces": len(pieces),
        "n_rows": n,
        "labels": [record.result["labels"] for record in sampled.values()],
        "target": target,
        "source": inputs.paths[0],
        "scale": asked["scale"],
        "metric": asked["metric"],
        "n_parts": manifest.data["n_parts"],
        "seed": seed,
    }
    # Here, where scikit-learn is loaded already: workers do without.
    planned = runner.stage("plan", [Task("0", make_plan, plan)], here=True)["0"].result
    url = runner.folder.url
    assigned = runner.stage(
        "assign",
        [
            Task(
                f"{i:06d}", assign,
                {"piece": piece, "number": i, "features": features, "plan_url": url,
                 "base": "assign"},
            )
            for i, piece in enumerate(pieces)
        ],
    )  # fmt: skip
    ends = [record.result["ends"] for record in assigned.values()]
    about = {"ends": ends, "base": "assign", "alike": most_alike(asked["n_neighbors"])}
    gathered = runner.stage("gather", _each(range(planned["n_parts"]), gather, **about))
    manifest.discard("assign")
    sizes = [record.result["points"] for record in gathered.values()]
    starts = [0, *np.cumsum(sizes).tolist()]
    missing = [name for name in MEMBERS if name not in HERE]
    notes = [
        *planned["notes"],
        f"columns were learnt from a sample of {planned['sample']} rows",
        f"members of the committee that are not available on parts: {', '.join(missing)}",
    ]
    largest = max(sizes)
    if largest > max(4 * n / len(sizes), MOST_POINTS):
        notes.append(
            f"one part holds {largest} of {n} rows: very many are alike in all features; it needs "
            "as much more memory"
        )
    return starts, planned, notes


def _answers(
    runner: Runner, tuning: Tuning, codes: Any, names: list[str], inputs: Inputs, starts: list[int]
) -> tuple[list[Solved], dict[str, Record], float]:
    """Final solve, nodes that it does not reach, classes and probabilities."""
    asked = runner.manifest.parameters
    tol, n_classes = asked["tol"], len(names)
    columns = [Column(tuning.setting.self_loop, c) for c in range(n_classes)]
    specs = batches("final", columns, tuning.setting.label_weight)
    solved = [solve(runner, spec, starts, tol) for spec in specs]
    parts = range(len(starts) - 1)
    ended = tuple((spec.name, done.step) for spec, done in zip(specs, solved, strict=True))
    threshold = 100.0 * tol
    faint = runner.stage("faint", _each(parts, count_faint, solves=ended, threshold=threshold))
    filled = None
    if any(record.result["faint"] for record in faint.values()):
        spec = Spec("fill", tuple(columns), fill=ended, threshold=threshold)
        filled = (spec.name, solve(runner, spec, starts, 0.5).step)
    runner.release()
    runner.folder.remove_tree("deep")
    checked = codes if tuning.checked is None else codes[tuning.checked]
    sharpness = fit_sharpness(tuning.left_out, checked)
    files = [0, *np.cumsum(inputs.rows).tolist()]
    tasks = [
        Task(
            f"{p:05d}", answer,
            {
                "part": p,
                "scores": [checkpoint_file(*end, p, "x") for end in ended],
                "prior": labeled_prior(codes, n_classes).tolist(),
                "sharpness": sharpness,
                "threshold": threshold,
                "filled": None if filled is None else checkpoint_file(*filled, p, "x"),
                "files": files,
                "classes": asked["class_probabilities"],
            },
        )
        for p in parts
    ]  # fmt: skip
    return solved, runner.stage("answers", tasks), sharpness


def _files(
    runner: Runner, inputs: Inputs, answers: dict[str, Record], asked: Mapping[str, Any],
    target_type: str,
) -> list[str]:  # fmt: skip
    """Predictions, file by file; those that were removed since are written again."""
    out = open_folder(asked["out"])
    done = runner.manifest.stage("files")
    if done and any(out.size(r.result["file"]) != r.result["size"] for r in done.values()):
        del runner.manifest.data["stages"]["files"]
    names = inputs.names()
    firsts = np.concatenate([[0], np.cumsum(inputs.rows)]).tolist()
    about = {
        "ends": [record.result["ends"] for record in answers.values()],
        "base": "answers",
        "out": asked["out"],
        "id_column": asked["id_column"],
        "target_type": target_type,
        "classes": asked["class_probabilities"],
        "plan_url": runner.folder.url,
    }
    tasks = [
        Task(
            f"{i:05d}", write_file,
            {"number": i, "first": firsts[i], "pieces": inputs.pieces_of(i), "name": names[i],
             **about},
        )
        for i in range(len(names))
    ]  # fmt: skip
    records = runner.stage("files", tasks)
    return [f"{asked['out']}/{record.result['file']}" for record in records.values()]


def _cpu(manifest: Manifest) -> dict[str, float]:
    """CPU seconds of the tasks of each stage, and of the steps of each solve."""
    tasks = {
        name: round(sum(t["result"].get("cpu", 0.0) for t in tasks.values()), 3)
        for name, tasks in manifest.data["stages"].items()
    }
    return tasks | {name: log.get("cpu", 0.0) for name, log in manifest.data["solves"].items()}
