"""Turn scores into predictions, in the files and the order of the input.

Each part turns its scores into classes and probabilities, sorted by row. Then each output file
collects its rows from all parts. Identifiers are read again from the input.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from ..estimators.probabilities import sharpen, to_shares
from ..version import __version__
from .cluster import Runner
from .folder import DamagedFileError, Folder, to_plain
from .inputs import Inputs, Piece
from .manifest import Output
from .plan import load_plan
from .solve import score_file

# Folder within the output for intermediate files, if no other is given.
WORK = "_work"
# The file that says which run an output folder belongs to, and its result if it has ended.
MARK = "_gdpa.json"


def predict_part(
    output: Output,
    *,
    part: int,
    solves: Sequence[str],
    filled: str | None,
    threshold: float,
    prior: list[float],
    sharpness: float,
    files: list[int],
    classes: bool,
) -> dict[str, Any]:
    """Write the classes and probabilities of a part, and its share of the model."""
    folder = output.folder
    F = np.hstack([folder.read_array(score_file(name, part)) for name in solves])
    if filled is not None:
        far = F.sum(axis=1) < threshold
        F[far] = threshold * folder.read_array(score_file(filled, part))[far]
    shares = to_shares(F, np.asarray(prior))
    labeled, label, row = folder.load(f"parts/{part:05d}", "labeled", "label", "row")
    code = np.full(F.shape[0], -1, dtype=np.int32)
    code[labeled] = folder.read_array("plan/plan.codes.npy")[label]
    best = np.where(code < 0, shares.argmax(axis=1), code)
    (degree,) = folder.load(f"rows/{part:05d}", "degree")
    (scale,) = folder.load(f"search/{part:05d}", "scale")
    output.save(f"model/{part:05d}", code=code, scores=F, degree=degree, scale=scale)
    return {
        "ends": write_answers(output, part, row, best, shares, sharpness, files, classes),
        "predicted": np.bincount(best[code < 0], minlength=len(prior)).tolist(),
        "unreached": int((F.max(axis=1, initial=0.0) <= 0).sum()),
    }


def write_answers(
    output: Output,
    part: int,
    row: NDArray[np.int64],
    best: NDArray[Any],
    shares: FloatArray,
    sharpness: float,
    files: list[int],
    classes: bool,
) -> list[int]:
    """Write predictions sorted by row; return where the rows of each input file start."""
    p = sharpen(shares, sharpness)
    order = np.argsort(row, kind="stable")
    row = row[order]
    best = best[order]
    p = p[order]
    p = p.astype(np.float32)
    answers = {"row": row, "best": best.astype(np.int32), "top": p[np.arange(best.size), best]}
    output.save(f"answers/{part:05d}", **answers, **({"all": p} if classes else {}))
    return [int(end) for end in np.searchsorted(row, files)]


def write_predictions(
    runner: Runner,
    inputs: Inputs,
    ends: list[list[int]],
    out: str,
    **about: Any,
) -> list[str]:
    """Write the prediction files; write them again if one was changed since.

    The other arguments are those of `_write_file`.
    """
    stage = "write predictions"
    folder = Folder(out)
    names = inputs.output_names()
    if not files_unchanged(folder, runner.manifest.stage(stage) or ()):
        runner.manifest.reopen(stage)
    firsts = np.cumsum([0, *inputs.rows]).tolist()
    by_file = [[piece for piece in inputs.pieces if piece.path == path] for path in inputs.paths]
    each = [
        {"number": i, "first": firsts[i], "pieces": by_file[i], "name": name}
        for i, name in enumerate(names)
    ]
    runner.stage(stage, _write_file, each, ends=ends, out=out, **about)
    return [f"{out}/{name}" for name in names]


def _write_file(
    output: Output,
    *,
    number: int,
    first: int,
    pieces: list[Piece],
    ends: list[list[int]],
    out: str,
    name: str,
    id_column: str | None,
    target_type: str,
    classes: bool,
    plan_url: str,
) -> dict[str, Any]:
    """Write the predictions of one input file as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = load_plan(plan_url).classes
    total = sum(piece.rows for piece in pieces)
    columns: dict[str, NDArray[Any]] = {
        "best": np.zeros(total, dtype=np.int32),
        "top": np.zeros(total, dtype=np.float32),
    }
    if classes:
        columns["all"] = np.zeros((total, len(labels)), dtype=np.float32)
    for part, own in enumerate(ends):
        if own[number] < own[number + 1]:
            start, stop = own[number : number + 2]
            rows, *answers = output.folder.load(
                f"answers/{part:05d}", "row", *columns, start=start, stop=stop
            )
            for values, answer in zip(columns.values(), answers, strict=True):
                values[rows - first] = answer
    values = class_values(labels, target_type)
    key = "row"
    ids = pa.array(np.arange(first, first + total))
    if id_column is not None:
        tables = [piece.read([id_column]) for piece in pieces]
        key = id_column
        ids = pa.concat_tables(tables).column(id_column)
    table = {
        key: ids,
        "prediction": values.take(pa.array(columns["best"])),
        "probability": pa.array(columns["top"]),
    }
    for c, label in enumerate(labels if classes else ()):
        table[f"probability_{label}"] = pa.array(columns["all"][:, c])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(table), sink, write_page_checksum=True)
    content = memoryview(sink.getvalue())
    Folder(out).write(name, content)
    return {"file": name, "crc": zlib.crc32(content)}


def files_unchanged(folder: Folder, written: Sequence[dict[str, Any]]) -> bool:
    """Return whether files still have the checksums with which they were written."""
    present = folder.names() if written else ()
    return all(
        record["file"] in present and zlib.crc32(folder.read(record["file"])) == record["crc"]
        for record in written
    )


def class_values(classes: Sequence[str], target_type: str) -> Any:
    """Return the classes as an Arrow array of the type of the given labels."""
    import pyarrow as pa

    values = pa.array(classes, type=pa.string())
    if target_type.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        values = values.cast(pa.type_for_alias(target_type))
    return values


def parameters_digest(parameters: Mapping[str, object]) -> str:
    """Return a digest by which a finished run recognises its own command."""
    text = json.dumps({"gdpa": __version__, **parameters}, default=to_plain, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def mark_finished(
    folder: Folder, run: str, digest: str, written: Sequence[dict[str, Any]], result: object
) -> None:
    """Record in the output folder that a run has ended, so that its work folder can be removed."""
    files = [{"file": record["file"], "crc": record["crc"]} for record in written]
    folder.write_json(MARK, {"run": run, "parameters": digest, "files": files, "result": result})


def finished_result(folder: Folder, digest: str) -> Any:
    """Return the result that :func:`mark_finished` recorded for the same command, if any.

    None if there is none, or a file with predictions has changed since.
    """
    try:
        mark = folder.read_json(MARK)
    except (FileNotFoundError, DamagedFileError):
        return None
    if mark.get("parameters") != digest or not files_unchanged(folder, mark["files"]):
        return None
    return mark["result"]


def check_out(folder: Folder, run: str) -> None:
    """Raise an error if the output folder has files of something else than this run."""
    names = [name for name in folder.names() if not name.startswith((f"{WORK}/", f"{WORK}."))]
    if not names:
        folder.write_json(MARK, {"run": run})
    elif MARK not in names or run not in folder.read(MARK).decode():
        raise ValueError(
            f"output folder {folder.url} already has {names[0]!r}, which is not from this run; "
            "choose an empty folder"
        )
