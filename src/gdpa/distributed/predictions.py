"""Scores to predictions, in the order and the files of the input.

A part turns its scores into classes and probabilities and sorts them by row; each input file then
takes its rows from all parts. Identifiers never travel: they are read again from the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.probabilities import sharpen, to_shares
from .inputs import Piece
from .manifest import Output
from .sample import load_plan
from .shuffle import part_file
from .steps import checkpoint_file
from .store import Folder, open_folder

__all__ = ["answer", "count_faint", "model_file", "write_file"]

FloatArray = NDArray[np.float64]


def model_file(part: int, what: str) -> str:
    """Name of a file that predictions of new rows need."""
    return f"model/{part:05d}.{what}.npy"


def answer(
    output: Output,
    *,
    part: int,
    scores: list[str],
    prior: list[float],
    sharpness: float,
    threshold: float,
    filled: str | None,
    files: list[int],
    classes: bool,
) -> dict[str, Any]:
    """Classes and probabilities of the nodes of a part; the model of the part."""
    folder = output.folder
    F = np.hstack([folder.read_array(name) for name in scores])
    faint = F.sum(axis=1) < threshold
    if filled is not None:
        F[faint] = threshold * folder.read_array(filled)[faint]
    shares = to_shares(F, np.asarray(prior))
    labeled = folder.read_array(part_file(part, "labeled"))
    codes = folder.read_array("plan/codes.npy")[folder.read_array(part_file(part, "label"))]
    best = shares.argmax(axis=1)
    best[labeled] = codes
    code = np.full(best.size, -1, dtype=np.int32)
    code[labeled] = codes
    output.array(model_file(part, "code"), code)
    output.array(model_file(part, "scores"), F)
    output.array(model_file(part, "degree"), folder.read_array(f"rows/{part:05d}.degree.npy"))
    output.array(model_file(part, "scale"), folder.read_array(f"search/{part:05d}.scale.npy"))
    row = folder.read_array(part_file(part, "row"))
    ends = write_answers(
        output, f"answers/{part:05d}", row, best, shares, sharpness, files, classes
    )
    unknown = code < 0
    return {
        "ends": ends,
        "predicted": np.bincount(best[unknown], minlength=len(prior)).tolist(),
        "unreached": int((F.max(axis=1, initial=0.0) <= 0).sum()),
    }


def count_faint(
    output: Output, *, part: int, solves: Sequence[tuple[str, int]], threshold: float
) -> dict[str, Any]:
    """Nodes of a part whose scores drown in the error of the solve."""
    total = sum(
        output.folder.read_array(checkpoint_file(name, step, part, "x")).sum(axis=1)
        for name, step in solves
    )
    return {"faint": int(np.count_nonzero(np.asarray(total) < threshold))}


def write_answers(
    output: Output,
    base: str,
    row: NDArray[np.int64],
    best: NDArray[Any],
    shares: FloatArray,
    sharpness: float,
    files: list[int],
    classes: bool,
) -> list[int]:
    """Write answers sorted by row; returns where the rows of each file start."""
    p = sharpen(shares, sharpness)
    order = np.argsort(row, kind="stable")
    row, best, p = row[order], best[order], p[order]
    output.array(f"{base}.row.npy", row)
    output.array(f"{base}.best.npy", best.astype(np.int32))
    output.array(f"{base}.top.npy", p[np.arange(best.size), best].astype(np.float32))
    if classes:
        output.array(f"{base}.all.npy", p.astype(np.float32))
    return [int(end) for end in np.searchsorted(row, files)]


def write_file(
    output: Output,
    *,
    number: int,
    first: int,
    pieces: list[Piece],
    ends: list[list[int]],
    base: str,
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

    folder = output.folder
    labels = load_plan(plan_url).classes
    total = sum(piece.rows for piece in pieces)
    best, top = np.zeros(total, dtype=np.int32), np.zeros(total, dtype=np.float32)
    everything = np.zeros((total, len(labels)), dtype=np.float32) if classes else None
    for part, own in enumerate(ends):
        start, stop = own[number], own[number + 1]
        if start == stop:
            continue
        at = folder.read_array(f"{base}/{part:05d}.row.npy", start, stop) - first
        best[at] = folder.read_array(f"{base}/{part:05d}.best.npy", start, stop)
        top[at] = folder.read_array(f"{base}/{part:05d}.top.npy", start, stop)
        if everything is not None:
            everything[at] = folder.read_array(f"{base}/{part:05d}.all.npy", start, stop)
    values = label_array(labels, target_type)
    sink = pa.BufferOutputStream()
    writer: Any = None
    done = 0
    for piece in pieces:
        rows = slice(done, done + piece.rows)
        if id_column is None:
            key, ids = "row", pa.array(np.arange(first + done, first + done + piece.rows))
        else:
            key, ids = id_column, piece.read([id_column]).column(id_column)
        columns = {
            key: ids,
            "prediction": values.take(pa.array(best[rows])),
            "probability": pa.array(top[rows]),
        }
        if everything is not None:
            for c, label in enumerate(labels):
                columns[f"probability_{label}"] = pa.array(everything[rows, c])
        table = pa.table(columns)
        writer = pq.ParquetWriter(sink, table.schema) if writer is None else writer
        writer.write_table(table)
        done += piece.rows
    writer.close()
    target = open_folder(out)
    size, crc = target.write(name, [memoryview(sink.getvalue())])
    return {"file": name, "size": size, "crc": crc}


def label_array(labels: tuple[str, ...], target_type: str) -> Any:
    """Classes in the type of the target column."""
    import pyarrow as pa

    texts = pa.array(labels, type=pa.string())
    if target_type.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        return texts.cast(pa.type_for_alias(target_type))
    return texts


def check_out(folder: Folder, run: str) -> None:
    """Refuse an output folder that holds other files than those of this run."""
    names = folder.names("")
    if not names:
        folder.write("_gdpa.json", f'{{"run": "{run}"}}\n'.encode())
        return
    try:
        mine = run in folder.read("_gdpa.json").decode()
    except FileNotFoundError:
        mine = False
    if not mine:
        raise ValueError(
            f"output folder {folder.url} already holds {names[0]!r}, which is not of this run; "
            "choose an empty folder"
        )
