"""First stages: a sample of the rows and all labels of each piece, then one plan for all.

The plan is what every later task needs to know: how columns become features, which cells there are
and which part each belongs to, and the numbers of the classes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.labels import stratified_folds
from ..graph.cell_space import CELL_POINTS, TRAINING_POINTS, CellCenters, CellSpace
from ..graph.search import feature_scale
from ..system.left_out import LARGE_FOLDS
from ..tables import ColumnList, ColumnPlan, TableError, table_of
from .inputs import Piece
from .manifest import Output
from .metric import choose_metric
from .store import Folder, open_folder

__all__ = ["Plan", "check_ids", "load_plan", "make_plan", "take_sample"]

# Rows that the encoder sees at least, and that centres are trained on at most.
LEAST_SAMPLE, MOST_SAMPLE = 20_000, 4_000_000
# Rows with a label that a metric is fitted on at most.
MOST_LABELED = 20_000
MOST_CLASSES = 1_000
# Identifiers that one task compares.
BUCKET_IDS = 20_000_000


def sample_share(n_rows: int) -> float:
    """Share of the rows that are sampled: enough for the centres of all cells."""
    wanted = max(LEAST_SAMPLE, TRAINING_POINTS * n_rows // CELL_POINTS)
    return min(1.0, min(wanted, MOST_SAMPLE) / n_rows)


def label_texts(column: Any, unlabeled: str | None) -> tuple[NDArray[np.intp], list[str]]:
    """Rows of an Arrow column that have a label, and the labels as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    known = pc.is_valid(column)
    if pa.types.is_floating(column.type):
        known = pc.and_(known, pc.invert(pc.is_nan(column.fill_null(0.0))))
    rows = np.flatnonzero(known.to_numpy(zero_copy_only=False))
    texts = [_label(v) for v in column.take(pa.array(rows)).to_pylist()]
    kept = [i for i, text in enumerate(texts) if text and text != unlabeled]
    return rows[kept], [texts[i] for i in kept]


def _label(value: Any) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value).strip()


def take_sample(
    output: Output,
    *,
    piece: Piece,
    number: int,
    features: list[str],
    target: str,
    unlabeled: str | None,
    id_column: str | None,
    share: float,
    seed: int,
    buckets: int,
) -> dict[str, Any]:
    """Sample the rows of a piece, gather its labels, and sort its identifiers."""
    base = f"sample/{number:06d}"
    wanted = [*features, target, *([id_column] if id_column else [])]
    table = piece.read(list(dict.fromkeys(wanted)))
    _check_finite(table.select(features), piece)
    rng = np.random.default_rng([seed, number])
    count = min(piece.rows, int(np.ceil(share * piece.rows)))
    rows = np.sort(rng.choice(piece.rows, count, replace=False))
    _write_rows(output, f"{base}.rows.parquet", table.select(features), rows)
    labeled, texts = label_texts(table.column(target), unlabeled)
    names = sorted(set(texts))
    if len(names) > MOST_CLASSES:
        raise TableError(
            f"{piece.path}, target column {target!r}: {len(names)} different labels; these look "
            "like numbers or names, not classes"
        )
    numbers = {text: i for i, text in enumerate(names)}
    output.array(f"{base}.labeled.npy", labeled + piece.first)
    output.array(f"{base}.labels.npy", np.array([numbers[t] for t in texts], dtype=np.int32))
    some = labeled
    if some.size > MOST_LABELED:
        some = np.sort(rng.choice(labeled, MOST_LABELED, replace=False))
    _write_rows(output, f"{base}.known.parquet", table.select(features), some)
    output.array(f"{base}.known.npy", some + piece.first)
    result: dict[str, Any] = {"rows": piece.rows, "labels": names}
    if id_column is not None:
        keys = _id_keys(table.column(id_column), piece, id_column)
        keys.sort()
        edges = np.linspace(0, 2.0**64, buckets + 1)[1:-1].astype(np.uint64)
        result["ends"] = [0, *np.searchsorted(keys, edges).tolist(), int(keys.size)]
        output.array(f"{base}.ids.npy", keys)
    return result


def _check_finite(table: Any, piece: Piece) -> None:
    """Refuse infinite numbers; missing ones are the encoder's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            infinite = pc.is_inf(column)
            if pc.any(infinite).as_py():
                row = int(np.flatnonzero(infinite.fill_null(False).to_numpy())[0])
                raise TableError(
                    f"{piece.place(row)}, column {name!r}: the value is infinite, not a finite "
                    "number"
                )


def _write_rows(output: Output, name: str, table: Any, rows: NDArray[np.intp]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table.take(pa.array(rows)), sink)
    output.files[name] = list(output.folder.write(name, [memoryview(sink.getvalue())]))


def read_rows(folder: Folder, name: str) -> Any:
    """Rows that a task kept as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.read_table(pa.BufferReader(folder.read(name)))


def _id_keys(column: Any, piece: Piece, name: str) -> NDArray[np.uint64]:
    """One number per identifier: mixed bits of whole numbers, a hash of anything else."""
    import pyarrow as pa

    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise TableError(f"{piece.place(row)}: the identifier in column {name!r} is missing")
    if pa.types.is_integer(column.type):
        keys = column.to_numpy().astype(np.int64).view(np.uint64).copy()
        with np.errstate(over="ignore"):  # one to one, so that different numbers stay different
            keys ^= keys >> np.uint64(30)
            keys *= np.uint64(0xBF58476D1CE4E5B9)
            keys ^= keys >> np.uint64(27)
        return np.asarray(keys)
    hashes = (hashlib.blake2b(str(v).encode(), digest_size=8).digest() for v in column.to_pylist())
    return np.frombuffer(b"".join(hashes), dtype=np.uint64).copy()


def check_ids(
    output: Output, *, bucket: int, pieces: list[Piece], ends: list[list[int]], id_column: str
) -> dict[str, Any]:
    """Refuse identifiers that occur twice; each task compares a range of hashes."""
    folder = output.folder
    keys = np.concatenate(
        [
            folder.read_array(f"sample/{number:06d}.ids.npy", own[bucket], own[bucket + 1])
            for number, own in enumerate(ends)
        ]
    )
    keys.sort()
    twice = keys[1:][keys[1:] == keys[:-1]]
    if twice.size:
        seen: dict[str, str] = {}
        for piece in pieces:
            column = piece.read([id_column]).column(id_column)
            here = np.flatnonzero(np.isin(_id_keys(column, piece, id_column), twice))
            for row in here.tolist():
                text = str(column[row].as_py())
                if text in seen:
                    raise TableError(
                        f"{piece.place(row)}: identifier {text!r} in column {id_column!r} occurs "
                        f"before, in {seen[text]}; identifiers must be unique"
                    )
                seen[text] = piece.place(row)
    return {"checked": int(keys.size)}


@dataclass(frozen=True)
class Plan:
    """What all tasks know.

    Parameters
    ----------
    columns : ColumnList
        Columns to features.
    half : bool
        Whether features are kept in single precision.
    factors : ndarray of shape (n_features,)
        The metric: what each feature is multiplied by.
    space : CellSpace
        The cells.
    bounds : ndarray of shape (n_parts + 1,)
        Part p holds the cells ``bounds[p]`` to ``bounds[p + 1]``.
    classes : tuple of str
        The classes, sorted.
    """

    columns: ColumnList
    half: bool
    factors: NDArray[np.float64]
    space: CellSpace
    bounds: NDArray[np.intp]
    classes: tuple[str, ...]

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return self.bounds.size - 1

    def features(self, table: Any, source: str) -> NDArray[Any]:
        """Rows of an Arrow table as features."""
        X, _ = self.columns.encode(table_of(table, source), np.float32 if self.half else np.float64)
        bad = np.argwhere(~np.isfinite(X))
        if bad.size:
            row, column = bad[0].tolist()
            name = self.columns.feature_names[column]
            raise TableError(f"{source}, row {row + 1}, column {name!r}: not a finite number")
        X *= self.factors.astype(X.dtype)
        return np.asarray(X)


def make_plan(
    output: Output,
    *,
    n_pieces: int,
    n_rows: int,
    labels: list[list[str]],
    target: str,
    source: str,
    scale: str,
    metric: str,
    n_parts: int,
    seed: int,
) -> dict[str, Any]:
    """Fit the encoder, choose cells, cut them into parts, number the classes."""
    import pyarrow as pa

    from ..tables.encoder import HALF_PRECISION, TableEncoder  # scikit-learn: for this task alone

    folder = output.folder
    base = [f"sample/{number:06d}" for number in range(n_pieces)]
    sample = pa.concat_tables([read_rows(folder, f"{b}.rows.parquet") for b in base])
    encoder = TableEncoder(scale=scale, random_state=seed)
    encoder.fit(table_of(sample, f"a sample of {sample.num_rows} rows of {source}"))
    # As one machine would: by the size of the whole table, not of the sample.
    encoder.half_ = n_rows * encoder.columns_.n_features > HALF_PRECISION
    X = encoder.encode(table_of(sample, source))[0]
    classes, counts, rows, codes = _classes(folder, base, labels, target, source)
    folds = stratified_folds(codes, LARGE_FOLDS).astype(np.int32)
    known = pa.concat_tables([read_rows(folder, f"{b}.known.parquet") for b in base])
    place = np.searchsorted(
        rows, np.concatenate([folder.read_array(f"{b}.known.npy") for b in base])
    )
    taught = encoder.encode(table_of(known, source))[0]
    factors, weighed = choose_metric(metric, X, taught, codes[place], folds[place], seed)
    X = X * factors.astype(X.dtype)
    space = CellSpace.fit(X, feature_scale(X), seed, n_points=n_rows)
    n_cells = space.centers.n_cells
    total = np.concatenate([[0], np.cumsum(np.bincount(space.home(X), minlength=n_cells))])
    cuts = np.searchsorted(total, np.arange(1, n_parts) * total[-1] / n_parts)
    bounds = np.unique(np.concatenate([[0], np.clip(cuts, 1, n_cells), [n_cells]]))
    output.json("plan/encoder.json", encoder.to_plain())
    output.json("plan/classes.json", list(classes))
    output.json("plan/space.json", {"scale": space.scale, "unit": space.unit})
    output.array("plan/offset.npy", space.offset)
    output.array("plan/centers.npy", space.centers.centers)
    output.array("plan/groups.npy", space.centers.groups)
    output.array("plan/ends.npy", space.centers.ends)
    output.array("plan/factors.npy", factors)
    output.array("plan/bounds.npy", bounds)
    output.array("plan/labeled.npy", rows)
    output.array("plan/codes.npy", codes)
    output.array("plan/folds.npy", folds)
    return {
        "n_parts": int(bounds.size - 1),
        "n_cells": n_cells,
        "n_features": int(X.shape[1]),
        "sample": int(sample.num_rows),
        "classes": dict(zip(classes, counts, strict=True)),
        "notes": [*encoder.notes_, weighed],
    }


def _classes(
    folder: Folder, base: list[str], labels: list[list[str]], target: str, source: str
) -> tuple[list[str], list[int], NDArray[np.int64], NDArray[np.int32]]:
    """All classes, how many labels each has, and the labelled rows with their numbers."""
    classes = sorted({text for own in labels for text in own})
    place = {text: i for i, text in enumerate(classes)}
    rows = [folder.read_array(f"{b}.labeled.npy") for b in base]
    codes = []
    for b, own in zip(base, labels, strict=True):
        numbers = np.array([place[text] for text in own], dtype=np.int32)
        codes.append(
            numbers[folder.read_array(f"{b}.labels.npy")] if own else np.empty(0, np.int32)
        )
    code = np.concatenate(codes)
    where = f"{source}, target column {target!r}"
    if not code.size:
        raise TableError(f"{where}: no row has a label; at least two classes need one each")
    if len(classes) == 1:
        raise TableError(f"{where}: the only class is {classes[0]!r}; two are needed")
    if len(classes) > MOST_CLASSES or (len(classes) > 20 and 2 * len(classes) > code.size):
        raise TableError(
            f"{where}: {len(classes)} different labels in {code.size} labelled rows; these look "
            "like numbers or names, not classes"
        )
    counts = np.bincount(code, minlength=len(classes)).tolist()
    return classes, counts, np.concatenate(rows), code


@lru_cache(maxsize=2)
def load_plan(url: str) -> Plan:
    """Read the plan of a work folder; kept by the process for the tasks that follow."""
    folder = open_folder(url)
    space = json.loads(folder.read("plan/space.json"))
    centers = CellCenters(
        folder.read_array("plan/centers.npy"),
        folder.read_array("plan/groups.npy"),
        folder.read_array("plan/ends.npy"),
    )
    encoder = json.loads(folder.read("plan/encoder.json"))
    return Plan(
        ColumnList(map(ColumnPlan.from_plain, encoder["columns"])),
        encoder["half"],
        folder.read_array("plan/factors.npy"),
        CellSpace(space["scale"], folder.read_array("plan/offset.npy"), space["unit"], centers),
        folder.read_array("plan/bounds.npy"),
        tuple(json.loads(folder.read("plan/classes.json"))),
    )
