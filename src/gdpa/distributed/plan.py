"""The first stages: sample rows, collect labels, and make one plan for all tasks.

The plan holds the encoding of the columns, the weights of the features, the cells and the parts
that they belong to, and the classes.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import FloatArray, NDArray
from ..estimators.labels import stratified_folds
from ..graph.cell_space import CELL_POINTS, TRAINING_POINTS, CellCenters, CellSpace
from ..graph.neighbors import RECALL_SAMPLE
from ..graph.search import feature_scale
from ..system.left_out import LARGE_FOLDS
from ..tables import ColumnList, ColumnPlan, TableError, table_of
from .folder import Folder
from .inputs import Piece
from .manifest import Output

if TYPE_CHECKING:
    import pyarrow as pa


MAX_CLASSES = 1_000
METRICS = ("importance", "plain")


def sample_share(n_rows: int, least: int = 20_000, most: int = 4_000_000) -> float:
    """Return the share of rows to sample, enough to train the centres of all cells."""
    wanted = max(least, TRAINING_POINTS * n_rows // CELL_POINTS)
    return min(1.0, min(wanted, most) / n_rows)


def text_labels(
    column: pa.ChunkedArray, unlabeled: str | None
) -> tuple[NDArray[np.intp], list[str]]:
    """Return the labelled rows of an Arrow column, and their labels as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    known = pc.is_valid(column)
    if pa.types.is_floating(column.type):
        known = pc.and_(known, pc.invert(pc.is_nan(column.fill_null(0.0))))
    rows = np.flatnonzero(known.to_numpy())
    texts = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in column.take(pa.array(rows)).to_pylist()
    ]
    kept = [i for i, text in enumerate(texts) if text.strip() and text != unlabeled]
    return rows[kept], [texts[i] for i in kept]


def take_sample(
    output: Output,
    *,
    piece: Piece,
    number: int,
    features: list[str],
    options: dict[str, Any],
    n_rows: int,
    n_buckets: int,
    max_labeled: int = 20_000,
) -> dict[str, Any]:
    """Sample the rows of a piece, collect its labels, and sort its identifiers."""
    base = f"sample/{number:06d}"
    seed = options["random_state"]
    target = options["target"]
    id_column = options["id_column"]
    wanted = [*features, target, *([id_column] if id_column else [])]
    table = piece.read(list(dict.fromkeys(wanted)))
    _check_finite(table.select(features), piece)
    rng = np.random.default_rng([seed, number])
    count = min(piece.rows, int(np.ceil(sample_share(n_rows) * piece.rows)))
    labeled, texts = text_labels(table.column(target), options["unlabeled"])
    names = sorted(set(texts))
    if len(names) > MAX_CLASSES:
        raise TableError(
            f"{piece.path}, target column {target!r}: {len(names)} different labels; they look "
            "like numbers or names, not classes"
        )
    numbers = {text: i for i, text in enumerate(names)}
    queries = query_rows(n_rows, seed) - piece.first
    rows = {
        "rows": np.sort(rng.choice(piece.rows, count, replace=False)),
        "known": np.sort(rng.permutation(labeled)[:max_labeled]),
        "queries": queries[(queries >= 0) & (queries < piece.rows)],
    }
    for what, some in rows.items():
        _write_rows(output, f"{base}.{what}", table.select(features), some)
    output.save(
        base,
        labeled=labeled + piece.first,
        labels=np.array([numbers[text] for text in texts], dtype=np.int32),
        known_rows=rows["known"] + piece.first,
    )
    result: dict[str, Any] = {"labels": names}
    if id_column is not None:
        keys = np.sort(_id_keys(table.column(id_column), piece, id_column))
        edges = np.linspace(0, 2.0**64, n_buckets + 1)[1:-1].astype(np.uint64)
        result["ends"] = [0, *np.searchsorted(keys, edges).tolist(), int(keys.size)]
        output.save(base, ids=keys)
    return result


def query_rows(n_rows: int, seed: int) -> NDArray[np.int64]:
    """Return the sampled rows on which the recall of the search is measured."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n_rows, min(n_rows, RECALL_SAMPLE), replace=False))


def _check_finite(table: pa.Table, piece: Piece) -> None:
    """Raise an error for infinite numbers; missing ones are filled by the encoder."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            infinite = np.flatnonzero(pc.is_inf(column).fill_null(False).to_numpy())
            if infinite.size:
                raise TableError(
                    f"{piece.place(int(infinite[0]))}, column {name!r}: not a finite number"
                )


def _write_rows(output: Output, name: str, table: pa.Table, rows: NDArray[np.integer[Any]]) -> None:
    """Write rows as Parquet, stored as an array of bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table.take(pa.array(rows)), sink)
    output.array(f"{name}.parquet.npy", np.frombuffer(sink.getvalue(), np.uint8))


def _read_rows(folder: Folder, what: str, n_pieces: int) -> Any:
    """Read the rows that all pieces wrote."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"sample/{number:06d}.{what}.parquet.npy" for number in range(n_pieces)]
    return pa.concat_tables(
        [pq.read_table(pa.BufferReader(folder.read_array(name))) for name in names]
    )


def _id_keys(column: pa.ChunkedArray, piece: Piece, name: str) -> NDArray[np.uint64]:
    """Return a 64-bit key per identifier: mixed bits of integers, a hash of anything else."""
    import pyarrow as pa

    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise TableError(f"{piece.place(row)}: the identifier in column {name!r} is missing")
    if pa.types.is_integer(column.type):
        keys = column.to_numpy().astype(np.int64).view(np.uint64)
        with np.errstate(over="ignore"):  # the map is one to one, so keys stay distinct
            keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        return np.asarray(keys ^ (keys >> np.uint64(27)))
    hashes = (hashlib.blake2b(str(v).encode(), digest_size=8).digest() for v in column.to_pylist())
    return np.frombuffer(b"".join(hashes), dtype=np.uint64)


def check_ids(
    output: Output, *, bucket: int, pieces: Sequence[Piece], ends: list[list[int]], id_column: str
) -> dict[str, Any]:
    """Raise an error for duplicate identifiers; each task compares a range of keys."""
    runs = [
        output.folder.read_array(f"sample/{i:06d}.ids.npy", own[bucket], own[bucket + 1])
        for i, own in enumerate(ends)
    ]
    keys = np.sort(np.concatenate(runs))
    repeated = keys[1:][keys[1:] == keys[:-1]]
    seen: dict[str, str] = {}
    for piece in pieces if repeated.size else ():
        column = piece.read([id_column]).column(id_column)
        for row in np.flatnonzero(np.isin(_id_keys(column, piece, id_column), repeated)).tolist():
            text = str(column[row].as_py())
            if text in seen:
                raise TableError(
                    f"{piece.place(row)}: identifier {text!r} in column {id_column!r} already "
                    f"occurs in {seen[text]}; identifiers must be unique"
                )
            seen[text] = piece.place(row)
    return {}


@dataclass(frozen=True)
class Plan:
    """The information that all tasks share.

    Parameters
    ----------
    columns : ColumnList
        How columns are encoded.
    half : bool
        Whether features are stored in single precision.
    factors : ndarray of shape (n_features,)
        Weight of each feature.
    space : CellSpace
        The cells.
    bounds : ndarray of shape (n_parts + 1,)
        Part p holds the cells ``bounds[p]`` to ``bounds[p + 1]``.
    classes : tuple of str
        The classes, sorted.
    """

    columns: ColumnList
    half: bool
    factors: FloatArray
    space: CellSpace
    bounds: NDArray[np.intp]
    classes: tuple[str, ...]

    def features(self, table: pa.Table, source: str) -> NDArray[Any]:
        """Encode and weight the rows of an Arrow table."""
        X, _ = self.columns.encode(table_of(table, source), np.float32 if self.half else np.float64)
        bad = np.argwhere(~np.isfinite(X))
        if bad.size:
            row, column = bad[0].tolist()
            name = self.columns.feature_names[column]
            raise TableError(f"{source}, row {row + 1}, column {name!r}: not a finite number")
        return np.asarray(X * self.factors.astype(X.dtype))


def make_plan(
    output: Output,
    *,
    n_pieces: int,
    n_rows: int,
    labels: list[list[str]],
    options: dict[str, Any],
    source: str,
    n_parts: int,
) -> dict[str, Any]:
    """Fit the encoder, weight the features, choose cells and parts, and number the classes."""
    from ..tables.encoder import HALF_PRECISION, TableEncoder  # loads scikit-learn

    folder = output.folder
    seed = options["random_state"]
    where = f"{source}, target column {options['target']!r}"
    rows, codes, classes = _classes(folder, labels, where)
    sample, known, queries = (
        _read_rows(folder, what, n_pieces) for what in ("rows", "known", "queries")
    )
    encoder = TableEncoder(scale=options["scale"], random_state=seed)
    encoder.fit(table_of(sample, f"a sample of {sample.num_rows} rows of {source}"))
    # The precision depends on the size of the whole table, not of the sample.
    encoder.half_ = n_rows * encoder.columns_.n_features > HALF_PRECISION
    X, X_known, Q = (encoder.encode(table_of(t, source))[0] for t in (sample, known, queries))
    known_rows = [folder.load(f"sample/{i:06d}", "known_rows") for i in range(n_pieces)]
    known_codes = codes[np.searchsorted(rows, np.concatenate([*chain(*known_rows)]))]
    factors, note = _feature_weights(options["metric"], X_known, known_codes, seed)
    X, Q = X * factors.astype(X.dtype), Q * factors.astype(X.dtype)
    space = CellSpace.fit(X, feature_scale(X), seed, n_points=n_rows)
    n_cells = space.centers.n_cells
    total = np.concatenate([[0], np.cumsum(np.bincount(space.home(X), minlength=n_cells))])
    cuts = np.searchsorted(total, np.arange(1, n_parts) * total[-1] / n_parts)
    bounds = np.unique(np.concatenate([[0], np.clip(cuts, 1, n_cells), [n_cells]]))
    about = {"scale": space.scale, "unit": space.unit, "classes": classes, "key": uuid.uuid4().hex}
    output.json("plan/plan.json", {"encoder": encoder.to_plain(), **about})
    output.save(
        "plan/plan",
        offset=space.offset,
        centers=space.centers.centers,
        groups=space.centers.groups,
        ends=space.centers.ends,
        factors=factors,
        bounds=bounds,
        labeled=rows,
        codes=codes,
        folds=stratified_folds(codes, LARGE_FOLDS).astype(np.int32),
        queries=Q,
        reach=_reach(Q, X, options["n_neighbors"], space.scale),
    )
    counts = np.bincount(codes, minlength=len(classes)).tolist()
    return {
        "n_parts": int(bounds.size - 1),
        "n_features": int(X.shape[1]),
        "classes": dict(zip(classes, counts, strict=True)),
        "notes": [
            *encoder.notes_,
            f"the column encoding was learnt from a sample of {sample.num_rows} rows",
            note,
        ],
    }


def _reach(Q: NDArray[Any], X: NDArray[Any], k: int, scale: float) -> FloatArray:
    """Return for each query its distance to the k-th other point of the sample."""
    k = min(k, X.shape[0] - 1)
    near = [np.partition(np.linalg.norm((X - q) / scale, axis=1), k)[k] for q in Q]
    return np.array(near, dtype=np.float64) * scale * (1 + 1e-5)


def _feature_weights(
    metric: str, X: NDArray[Any], codes: NDArray[np.int32], seed: int, min_labels: int = 60
) -> tuple[FloatArray, str]:
    """Return the weight of each feature, and a note about how it was chosen."""
    if metric == "plain" or X.shape[1] == 1:
        return np.ones(X.shape[1]), "all features have the same weight"
    if codes.size < min_labels:
        note = f"all features have the same weight, because there are under {min_labels} labels"
        return np.ones(X.shape[1]), note
    from sklearn.ensemble import ExtraTreesClassifier

    rows = np.sort(np.random.default_rng(seed).permutation(codes.size)[:5_000])
    forest = ExtraTreesClassifier(100, random_state=seed).fit(X[rows], codes[rows])
    # A forest fitted on few labels overlooks features, so a fifth of the weight is shared evenly.
    factors = np.sqrt(forest.feature_importances_ + 0.2 / X.shape[1])
    factors /= np.sqrt(np.mean(np.square(factors)))
    return np.asarray(factors), "features are weighted by their importance in a random forest"


def _classes(
    folder: Folder, labels: list[list[str]], where: str
) -> tuple[NDArray[np.int64], NDArray[np.int32], list[str]]:
    """Return the labelled rows, their class numbers, and the classes."""
    classes = sorted({text for own in labels for text in own})
    place = {text: i for i, text in enumerate(classes)}
    rows = []
    codes = []
    for i, own in enumerate(labels):
        labeled, number = folder.load(f"sample/{i:06d}", "labeled", "labels")
        rows.append(labeled)
        codes.append(np.array([place[text] for text in own], dtype=np.int32)[number])
    code = np.concatenate(codes)
    check_classes(classes, code.size, where, "row")
    return np.concatenate(rows), code, classes


def check_classes(classes: list[str], n_labels: int, where: str, unit: str) -> None:
    """Raise an error unless there are at least two classes, and not too many.

    Parameters
    ----------
    classes : list of str
        The distinct labels.
    n_labels : int
        Number of labels.
    where, unit : str
        Place of the labels, and what has one, for the message.
    """
    if not classes:
        raise TableError(f"{where}: no {unit} has a label; at least two classes need one each")
    if len(classes) == 1:
        raise TableError(f"{where}: the only class is {classes[0]!r}; two are needed")
    if len(classes) > MAX_CLASSES or (len(classes) > 20 and 2 * len(classes) > n_labels):
        raise TableError(
            f"{where}: {len(classes)} different labels in {n_labels} labelled {unit}s; they look "
            "like numbers or names, not classes"
        )


def load_plan(url: str) -> Plan:
    """Read the plan of a work folder; it is cached for later tasks of the same process."""
    return _load_plan(url, Folder(url).read_json("plan/plan.json")["key"])


@lru_cache(maxsize=2)
def _load_plan(url: str, key: str) -> Plan:
    """Read a plan; the key distinguishes it from another plan at the same URL."""
    folder = Folder(url)
    about = folder.read_json("plan/plan.json")
    offset, centers, groups, ends, factors, bounds = folder.load(
        "plan/plan", "offset", "centers", "groups", "ends", "factors", "bounds"
    )
    return Plan(
        ColumnList(map(ColumnPlan.from_plain, about["encoder"]["columns"])),
        about["encoder"]["half"],
        factors,
        CellSpace(about["scale"], offset, about["unit"], CellCenters(centers, groups, ends)),
        bounds,
        tuple(about["classes"]),
    )
