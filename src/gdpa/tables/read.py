"""Read a table from a file, and the labels in its target column.

Errors name the file and, where possible, the line.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name, require
from ..memory import check_memory
from ..npz import read_npz
from .arrow_sizes import batch_sizes
from .cell_formats import plain_number
from .csv_reader import column_names, read_csv
from .frames import table_of
from .pictures import PICTURE_SUFFIXES
from .source import MAX_INFLATION, SAFE_SIZE, Source
from .table import (
    MISSING,
    Column,
    Table,
    TableError,
    errors_as_table_error,
    intern_labels,
    is_blank,
    shorten,
)
from .write import MAX_SHEET_ROWS

# Bytes per cell of a table in memory: a float64, or the code of a text.
CELL_BYTES = 8
# JSON lines of so many cells are always read; beyond, a row must fill one of MAX_GAPS cells.
SAFE_CELLS = 1_000_000
MAX_GAPS = 50
FORMATS = (
    *("csv", "tsv", "parquet", "feather", "excel"),
    *("json", "jsonl", "lines", "npz", "libsvm"),
)
SUFFIXES = {f".{name}": name for name in FORMATS}
SUFFIXES |= {".txt": "csv", ".tab": "tsv", ".pq": "parquet", ".arrow": "feather"}
SUFFIXES |= {".xlsx": "excel", ".xlsm": "excel", ".xls": "excel", ".ods": "excel"}
# Matches the non-empty cells and rows of a worksheet, with their position.
FILLED_CELL = re.compile(
    rb"<(?:\w+:)?(?:c|row)\s[^>]*?\br=[\"']([A-Z]{0,3})(\d{1,7})[\"'](?:[^>]*[^/>])?>"
)
SHEET_ROW = re.compile(rb"<(?:\w+:)?row[\s/>]")
SUFFIXES |= {".ndjson": "jsonl", ".svmlight": "libsvm", ".svm": "libsvm"}


def read_table(
    path: str | Path,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    as_text: frozenset[str] = frozenset(),
    target: str | None = None,
    header: bool = True,
    sheet: str | None = None,
    written: frozenset[str] | bool = False,
) -> Table:
    """Read a table.

    Parameters
    ----------
    path : str or Path
        The file, or ``"-"`` for standard input. Any file may be compressed (.gz, .bz2, .xz, .zip,
        .zst). A folder of Parquet files is one table. So is a folder of pictures (column ``file``)
        or text files (columns ``file`` and ``text``); the subfolder is the label of a file, in the
        column `target` (``label`` by default). Files outside subfolders have no label.
    format : str, optional
        "csv", "tsv", "parquet", "feather", "excel", "json" (an array of objects), "jsonl" (an
        object per line), "lines" (a text per line), "npz" or "libsvm". From the file extension by
        default; standard input is CSV.
    delimiter : str, optional
        Delimiter of a CSV file; detected by default (commas, semicolons, tabs, bars, or spaces
        between numbers).
    encoding : str, optional
        Encoding of a CSV file; detected by default.
    as_text : frozenset of str
        Columns of a CSV file to keep as text, even if all cells are numbers.
    target : str, optional
        Column with the labels, if any. Its cells are kept exactly as in the file: ``007`` is not
        ``7``, and white space counts. Only blank cells are unknown labels; NA is a class.
    header : bool, default=True
        Whether the first line of a CSV file is a header; otherwise columns are named 1, 2, ...
    sheet : str, optional
        Sheet of an Excel file; the first that is not empty by default.
    written : frozenset of str or bool, default=False
        Columns (True: all) whose cells are also kept exactly as in the file, to be written again;
        see :meth:`gdpa.tables.Table.written_cells`.

    Returns
    -------
    Table
        The table. The labels of LIBSVM and NPZ files are in the column ``target``.

    Raises
    ------
    TableError
        If the file is missing, empty or damaged, or its rows differ in length.
    """
    if format is not None and format not in FORMATS:
        raise TableError(f"format={format!r}; {nearest_name(format, list(FORMATS))}")
    if str(path) != "-" and Path(path).is_dir() and format in (None, "parquet"):
        return _read_folder(Path(path), target, written)
    source = Source(path)
    kind = format or SUFFIXES.get(source.suffix) or ("csv" if str(path) == "-" else None)
    if kind is None and source.compression:
        source.open().close()  # sets the extension of the file in a zip archive
        kind = SUFFIXES.get(source.suffix)
    if kind is None:
        raise TableError(
            f"the file extension of {source.name} is not known; give the format, one of: "
            f"{', '.join(FORMATS)}"
        )
    if sheet is not None and kind != "excel":
        raise TableError(f"{source.name}: sheet={sheet!r} is for Excel, not for {kind}")
    if kind in ("csv", "tsv"):
        return read_csv(
            source,
            delimiter=delimiter or ("\t" if kind == "tsv" else None),
            encoding=encoding,
            as_text=as_text,
            target=target,
            header=header,
            written=written,
        )
    if not header:
        raise TableError(f"{source.name}: header=False (--no-header) is for CSV, not for {kind}")
    with source.open() as stream:
        if kind in ("json", "jsonl"):
            objects = _json_lines if kind == "jsonl" else _json_array
            return _read_json(objects(stream, source.name), source.name, target, written)
        if kind == "lines":
            return _read_lines(stream, source.name, encoding)
        whole = stream if stream.seekable() else io.BytesIO(stream.read())
        titles = {"npz": "NPZ file of plain arrays", "libsvm": "LIBSVM file"}
        title = titles.get(kind, f"{kind.title()} file")
        with errors_as_table_error(f"{source.name} is not a readable {title}"):
            if kind == "libsvm":
                return _read_libsvm(whole.read(), source.name)
            if kind == "npz":
                return _read_npz(whole, source.name)
            if kind == "excel":
                return _read_excel(whole, source.name, target, written, sheet)
            if kind == "parquet":
                return _read_parquet({source.name: whole}, source.name, target, written)
            return _read_feather(whole, source.name, target, written)


def _named_table(
    frame: Any,
    header: list[Any],
    source: str,
    target: str | None,
    written: frozenset[str] | bool,
    notes: tuple[str, ...] = (),
) -> Table:
    """Convert a frame; column names are cleaned like those of a CSV header."""
    names, renamed = column_names([str(name) for name in header], source)
    table = table_of(frame, source, target=target, written=written)
    kept = {
        name: table.written[before]
        for name, before in zip(names, table.names, strict=True)
        if before in table.written
    }
    return Table(names, table.columns, source, notes + renamed, kept)


def _read_folder(folder: Path, target: str | None, written: frozenset[str] | bool) -> Table:
    """Read a folder of Parquet files, pictures or text files."""
    parts = sorted(
        p
        for p in folder.rglob("*")
        if p.suffix.lower() in (".parquet", ".pq") and not p.name.startswith((".", "_"))
    )
    if not parts:
        return _read_files(folder, target or "label")
    return _read_parquet({str(part): part for part in parts}, str(folder), target, written)


def _read_files(folder: Path, target: str) -> Table:
    """Read a folder of pictures or text files; subfolder names are labels."""
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    paths = [path for path in paths if not any(p.startswith((".", "_")) for p in path.parts)]
    pictures = [path for path in paths if path.suffix.lower() in PICTURE_SUFFIXES]
    texts = [path for path in paths if path.suffix.lower() in (".txt", ".text", ".md")]
    if bool(pictures) == bool(texts):
        raise TableError(
            f"{folder} is a folder with {len(pictures)} pictures and {len(texts)} text files; "
            "accepted are a table file and a folder of Parquet files, of pictures "
            f"({', '.join(PICTURE_SUFFIXES)}) or of text files (.txt, .text, .md), with labelled "
            "files in subfolders named after their class"
        )
    kept = pictures or texts
    columns = {"file": [path.as_posix() for path in kept]}
    if texts:
        columns["text"] = [_read_text(folder / path) for path in kept]
    columns[target] = [path.parts[0] if len(path.parts) > 1 else "" for path in kept]
    other = len(paths) - len(kept)
    notes: tuple[str, ...] = ()
    notes += (f"ignored {other} other files in {folder}",) if other else ()
    empty = sum(not text.strip() for text in columns.get("text", ()))
    notes += (f"{empty} of {len(kept)} text files are empty",) if empty else ()
    coded = (Column(*intern_labels(cells)) for cells in columns.values())
    return Table(tuple(columns), tuple(coded), str(folder), notes)


def _read_text(path: Path, most: int = 100_000) -> str:
    """Return the first characters of a text file."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(most)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from error


def _read_parquet(
    parts: Mapping[str, Path | BinaryIO],
    name: str,
    target: str | None,
    written: frozenset[str] | bool,
) -> Table:
    """Read the rows of all parts column by column, to save memory."""
    arrow = require("pyarrow", "tables")
    parquet = require("pyarrow.parquet", "tables")
    files: dict[str, Any] = {}
    undeclared: set[str] = set()  # columns of texts that the file does not call categories
    for part, opened in parts.items():
        with errors_as_table_error(f"{part} is not a readable Parquet file"):
            plain = parquet.ParquetFile(opened)
            texts = [
                field.name
                for field in plain.schema_arrow
                if field.type in (arrow.string(), arrow.large_string())
            ]
            # Texts are read as codes and distinct texts: a long text may occur in every row.
            files[part] = parquet.ParquetFile(opened, read_dictionary=texts)
            undeclared |= set(texts)
        given = files[next(iter(files))].schema_arrow.names
        names_here = files[part].schema_arrow.names
        if set(names_here) != set(given):
            first = Path(next(iter(files))).name
            raise TableError(f"{part} has different columns from {first}: {names_here[:20]}")
    if not given or not any(file.metadata.num_rows for file in files.values()):
        raise TableError(f"{name} has no rows")
    sizes = [
        opened.stat().st_size if isinstance(opened, Path) else _stream_size(opened)
        for opened in parts.values()
    ]
    n_rows = sum(file.metadata.num_rows for file in files.values())
    _check_cells(name, n_rows, len(given), sum(sizes))
    names, notes = column_names(list(map(str, given)), name)
    columns: list[Column] = []
    kept: dict[str, Column] = {}
    with errors_as_table_error(f"{name} is not a readable Parquet file"):
        for column, clean_name in zip(given, names, strict=True):
            read = [file.read(columns=[column]).select([column]) for file in files.values()]
            whole = arrow.concat_tables(read, promote_options="permissive").unify_dictionaries()
            table = table_of(whole, name, target=target, written=written)
            (found,) = table.columns
            columns.append(replace(found, declared=False) if column in undeclared else found)
            kept |= dict.fromkeys([clean_name], table.written[column]) if table.written else {}
            del read, whole, table
            arrow.default_memory_pool().release_unused()
    return Table(names, tuple(columns), name, notes, kept)


def _check_cells(name: str, rows: int, columns: int, size: int) -> None:
    """Refuse a table whose cells need far more memory than its file, or more than is free.

    Parameters
    ----------
    name : str
        Name of the file.
    rows, columns : int
        Size of the table.
    size : int
        Size of the file in bytes.
    """
    cells = rows * columns
    if cells * CELL_BYTES > max(SAFE_SIZE, MAX_INFLATION * size):
        raise TableError(
            f"{name} has {cells:,} cells ({rows:,} rows, {columns:,} columns) in {size:,} bytes, "
            f"more than {MAX_INFLATION} times its size; read a part of it"
        )
    check_memory(
        2.0 * CELL_BYTES * cells, f"{name} with {cells:,} cells", "use fewer rows or columns"
    )


def _stream_size(stream: BinaryIO) -> int:
    """Return the number of bytes of a stream that can be rewound."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    return size


def _check_extent(stream: BinaryIO, name: str) -> None:
    """Refuse a workbook that would not fit in memory.

    Its parts may inflate to far more than its size, or a few cells may be far apart.
    """
    if not zipfile.is_zipfile(stream):
        return
    packed = _stream_size(stream)
    with zipfile.ZipFile(stream) as book:
        inflated = sum(member.file_size for member in book.infolist())
        if inflated > max(SAFE_SIZE, MAX_INFLATION * packed):
            raise TableError(
                f"{name} inflates to {inflated:,} bytes, more than {MAX_INFLATION} times its size"
            )
        for member in filter(lambda part: part.endswith(".xml"), book.namelist()):
            with book.open(member) as opened:
                head = opened.read(2**16).replace(b"\0", b"")  # UTF-16 too
            if b"<!DOCTYPE" in head:  # could declare entities that expand to any size
                raise TableError(f"{name}: {member} has a document type, which is not accepted")
        for member in book.namelist():
            if not member.startswith("xl/worksheets/") or not member.endswith(".xml"):
                continue
            cells = 0
            rows = 0
            width = 0
            rest = b""
            n_rows = 0
            with book.open(member) as sheet:
                while part := sheet.read(2**20):
                    n_rows += len(SHEET_ROW.findall(part))
                    if n_rows > MAX_SHEET_ROWS:
                        raise TableError(
                            f"{name}: {member} has more than {MAX_SHEET_ROWS:,} rows, which no "
                            "worksheet can have"
                        )
                    found = list(FILLED_CELL.finditer(text := rest + part))
                    rest = text[found[-1].end() if found else -1000 :][-1000:]
                    cells += len(found)
                    rows = max([rows, *(int(cell[2]) for cell in found)])
                    width = max([width, *(_column_number(cell[1]) for cell in found)])
            if rows * width > max(10_000_000, 100 * cells):
                raise TableError(
                    f"{name}: {member} has {cells} filled cells in {rows} rows and {width} "
                    "columns; remove the isolated cells"
                )
    stream.seek(0)


def _column_number(letters: bytes) -> int:
    """Return the number of a spreadsheet column: A is 1, Z is 26, AA is 27."""
    return sum((c - 64) * 26**place for place, c in enumerate(reversed(letters)))


def _read_excel(
    stream: BinaryIO,
    name: str,
    target: str | None,
    written: frozenset[str] | bool,
    wanted: str | None,
) -> Table:
    """Read a sheet; by default the first that is not empty."""
    _check_extent(stream, name)
    # Without its default list of missing words pandas keeps texts such as "NA" and "None".
    book = require("pandas", "excel").read_excel(
        stream, sheet_name=None, dtype=object, keep_default_na=False, na_values=[""]
    )
    sheets = {title: sheet for title, sheet in book.items() if sheet.size}
    if not sheets:
        raise TableError(f"{name} has no rows")
    if wanted is not None and wanted not in sheets:
        listed = nearest_name(wanted, list(sheets))
        raise TableError(f"{name} has no sheet {wanted!r} with cells; {listed}")
    title = next(iter(sheets)) if wanted is None else wanted
    sheet = sheets[title]
    notes: tuple[str, ...] = ()
    if wanted is None and len(sheets) > 1:
        first = f"reading the first of {len(sheets)} sheets, {title!r}"
        notes = (f"{first}; --sheet NAME reads another",)
    header = ["" if str(c).startswith("Unnamed: ") else str(c) for c in sheet.columns]
    typed = {str(c): sheet[c] if c == target else sheet[c].infer_objects() for c in sheet.columns}
    return _named_table(typed, header, name, target, written, notes)


def _read_feather(
    stream: BinaryIO, name: str, target: str | None, written: frozenset[str] | bool
) -> Table:
    """Read a Feather file, after its declared sizes have been compared with its own size."""
    arrow = require("pyarrow", "tables")
    feather = require("pyarrow.feather", "tables")
    size = _stream_size(stream)
    if stream.read(6) == b"ARROW1":
        stream.seek(8)
        rows = 0
        inflated = 0
        columns = 1
        for message in arrow.ipc.MessageReader.open_stream(stream):
            if message.type == "schema":
                columns = max(1, len(arrow.ipc.read_schema(message)))
            else:
                found = batch_sizes(message.metadata.to_pybytes(), message.body)
                rows += found.rows
                inflated += found.n_bytes
        _check_cells(name, rows, columns, size)
        if inflated > max(SAFE_SIZE, MAX_INFLATION * size):
            raise TableError(
                f"{name} inflates to {inflated:,} bytes, more than {MAX_INFLATION} times its size"
            )
    stream.seek(0)
    frame = feather.read_table(stream)
    return _named_table(frame, frame.column_names, name, target, written)


def _json_lines(stream: BinaryIO, name: str) -> Iterator[tuple[str, Any]]:
    """Yield one JSON value per line, and where it is."""
    for number, line in enumerate(stream, 1):
        if line.strip():
            where = f"{name}, line {number}"
            with errors_as_table_error(f"{where}: not JSON", ValueError, RecursionError):
                row = json.loads(line)
            yield where, row


def _json_array(stream: BinaryIO, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the elements of a JSON array, and where they are.

    A file that is not one array is read as one value per line.
    """
    raw = stream.read()
    if raw.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"[":
        yield from _json_lines(io.BytesIO(raw), name)
        return
    with errors_as_table_error(f"{name}: not JSON", ValueError, RecursionError):
        rows = json.loads(raw)
    for number, row in enumerate(rows, 1):
        yield f"{name}, element {number}", row


def _flat(row: dict[str, Any], seen: Counter[str]) -> dict[str, Any]:
    """Return an object with its inner objects as columns ``outer.inner``, lists as text.

    `seen` counts these columns.
    """
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            seen[key] += 1
            flat |= {f"{key}.{name}": cell for name, cell in _flat(value, Counter()).items()}
        elif isinstance(value, list):
            seen[key] += 1
            flat[key] = ", ".join(v if isinstance(v, str) else json.dumps(v) for v in value)
        else:
            flat[key] = value
    return flat


def _read_json(
    objects: Iterator[tuple[str, Any]],
    name: str,
    target: str | None,
    written: frozenset[str] | bool,
) -> Table:
    """Read JSON objects as rows."""
    rows: list[dict[str, Any]] = []
    keys: dict[str, None] = {}
    nested: Counter[str] = Counter()
    filled = 0
    for where, row in objects:
        if not isinstance(row, dict):
            raise TableError(f"{where}: a JSON object {{...}} is needed")
        with errors_as_table_error(f"{where}: objects are nested too deeply", RecursionError):
            flat = _flat(row, nested)
        rows.append(flat)
        keys |= dict.fromkeys(flat)
        filled += len(flat)
        n_cells = len(rows) * len(keys)
        if n_cells > max(SAFE_CELLS, MAX_GAPS * filled):
            raise TableError(
                f"{where}: {len(rows):,} objects with {len(keys):,} different keys are {n_cells:,} "
                f"cells, of which only {filled:,} have a value; use the same keys in every line"
            )
    if not rows:
        raise TableError(f"{name} is empty")
    notes = tuple(
        f"column {shorten(key)}: {count} lists or objects are read as text or as columns "
        f"{shorten(key + '.NAME')}"
        for key, count in nested.most_common(5)
    )
    cells = {key: [row.get(key) for row in rows] for key in keys}
    return _named_table(cells, list(cells), name, target, written, notes)


def _read_lines(stream: BinaryIO, name: str, encoding: str | None) -> Table:
    """Read one text per line into the column ``text``; blank lines are left out."""
    with errors_as_table_error(f"{name} is not text", UnicodeDecodeError, LookupError):
        text = stream.read().decode(encoding or "utf-8-sig")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise TableError(f"{name} is empty")
    return table_of({"text": lines}, name)


def _read_npz(stream: BinaryIO, name: str) -> Table:
    """Read the arrays X and, if there is one, y."""
    arrays = read_npz(stream)
    if "X" not in arrays or arrays["X"].ndim != 2:
        raise TableError(f"{name} needs a two-dimensional array X; it has {sorted(arrays)}")
    X = arrays["X"]
    y = arrays.get("y")
    if y is not None and y.shape != (X.shape[0],):
        raise TableError(f"{name}: y has shape {y.shape}, X has {X.shape[0]} rows")
    return _matrix_table(X, None if y is None else y.tolist(), name)


def _read_libsvm(raw: bytes, name: str) -> Table:
    """Read a LIBSVM file; labels are kept as text."""
    from sklearn.datasets import load_svmlight_file

    X, _ = load_svmlight_file(io.BytesIO(raw))
    cells = (line.partition(b"#")[0].split(None, 1)[:1] for line in raw.splitlines())
    labels = [cell[0].decode() for cell in cells if cell]
    if X.shape[1] > 100 * X.nnz + 100_000:
        raise TableError(f"{name} has the index {X.shape[1]} but only {X.nnz} values")
    need = X.shape[1] * (8 * X.shape[0] + 1000)  # each column is an object with a name
    check_memory(need, f"{name} with {X.shape[1]} columns", "a smaller file is needed")
    return _matrix_table(X.toarray(), labels, name)


def _matrix_table(X: NDArray[Any], labels: list[Any] | None, name: str) -> Table:
    """Return a matrix and its labels as a table."""
    if X.shape[0] == 0:
        raise TableError(f"{name} has no rows")
    names = [f"f{j + 1}" for j in range(X.shape[1])]
    columns = [Column(column.astype(np.float64)) for column in X.T]
    if labels is not None:
        names.append("target")
        columns.append(Column(*intern_labels(labels)))
    return Table(tuple(names), tuple(columns), name)


def drop_predictions(table: Table, target: str, keep: Collection[str] = ()) -> Table:
    """Drop the output columns of an earlier ``gdpa label`` or ``gdpa fit``, with a note.

    They were computed from labels, so features made of them would leak these labels.

    Parameters
    ----------
    table : Table
        The table.
    target : str
        The target column.
    keep : collection of str
        Columns to keep in any case.

    Returns
    -------
    Table
        The table without these columns.
    """
    names = set(table.names)
    earlier = {f"{target}_predicted", f"{target}_probability", f"{target}_skipped"}
    if f"{target}_predicted" in names:
        earlier |= {f"{target}_by", f"{target}_at"}
        earlier |= {name for name in names if name.startswith(f"{target}_by_")}
    if names >= {"prediction", "probability", "margin", "unsure", "known"}:
        earlier |= {"prediction", "probability", "margin", "unsure", "known", "links"}
    dropped = sorted(names & earlier - set(keep), key=table.names.index)
    if not dropped:
        return table
    note = f"ignored columns written by an earlier run: {', '.join(map(shorten, dropped))}"
    return replace(table.without(dropped), notes=(*table.notes, note))


def read_target(
    table: Table,
    name: str,
    *,
    unlabeled: str | None = None,
    complete: bool = False,
    numbers_are_classes: bool = False,
) -> tuple[NDArray[np.object_], tuple[str, ...]]:
    """Return the labels of the rows, None where unknown.

    Parameters
    ----------
    table : Table
        The table, read with `name` as its target.
    name : str
        The target column.
    unlabeled : str, optional
        Marker of an unknown label, besides empty cells and missing values. Words such as "None"
        or "NA" are classes, and a message names them.
    complete : bool, default=False
        Whether a table with a label in every row is accepted.
    numbers_are_classes : bool, default=False
        Whether many different numbers are accepted as classes.

    Returns
    -------
    labels : ndarray of objects
        Text, exactly as in the file, or None.
    notes : tuple of str
        Messages for the user.

    Raises
    ------
    TableError
        If there is no such column, fewer than two classes, nothing to predict, or the column looks
        like numbers rather than classes.
    """
    column = table.column(name, "target column").as_text()
    texts = list(column.texts or ())
    marker = (unlabeled or "").strip()
    marked = [i for i, text in enumerate(texts) if is_blank(text)]
    blank = len(marked)
    if marker:  # compare as text, else as a number: -1 is also -1.0
        marked += [i for i, text in enumerate(texts) if text.strip() == marker]
        value = plain_number(marker)
        if value is not None and len(marked) == blank:
            marked += [i for i, text in enumerate(texts) if plain_number(text) == value]
    labels = np.array([*texts, None], dtype=object)[column.values]
    labels[np.isin(column.values, marked)] = None
    known = sorted(set(labels.tolist()) - {None})
    n, m = labels.size, int(np.count_nonzero(labels))  # no label is empty
    where = f"{table.source}, target column {shorten(name)}"
    if m == 0:
        raise TableError(
            f"{where}: no row has a label; at least two classes need one. To label rows in the "
            f"browser, run: gdpa label {table.source} --target {shorten(name)}"
        )
    no_marker = bool(marker) and len(marked) == blank
    hint = f"; no row has the marker {unlabeled!r}" * no_marker
    remarks = notes_on_labels(name, labels.tolist())
    hint += f"; {remarks[0]}" if remarks else ""
    if len(known) == 1:
        raise TableError(
            f"{where}: the only class is {known[0][:60]!r} ({m} rows); two are needed{hint}"
        )
    if looks_measured(known) and not numbers_are_classes:
        raise TableError(
            f"{where}: {len(known)} different numbers in {m} labelled rows, such as "
            f"{known[0][:20]} and {known[-1][:20]}, look like a measurement, and gdpa predicts "
            "classes. Replace the numbers by classes (low, medium, high), or use --column "
            f"{shlex.quote(name)}=category to make every number a class"
        )
    if len(known) > 1000 or (len(known) > 20 and 2 * len(known) > m):
        raise TableError(
            f"{where}: {len(known)} distinct labels in {m} labelled rows; these look like numbers "
            "or names, not classes"
        )
    if m == n and not complete:
        raise TableError(
            f"{where}: all {n} rows have a label: there is nothing to predict; leave cells empty "
            f"(or use --unlabeled MARKER), or use --model to save the classifier for new rows{hint}"
        )
    notes = [f"no row of target column {shorten(name)} has the marker {unlabeled!r}"] * no_marker
    return labels, (*notes, *remarks)


# With at most so many values numbers are ratings or codes of classes.
MOST_NUMBER_CLASSES = 20


def looks_measured(labels: Collection[str]) -> bool:
    """Return whether distinct labels are measured numbers rather than classes.

    Ratings (1 to 5) are classes, and so are integers that count from 0 or 1 with few gaps.

    Parameters
    ----------
    labels : collection of str
        The distinct labels.

    Returns
    -------
    bool
        Whether all are numbers, and too many to be classes.
    """
    numbers = [plain_number(label) for label in labels]
    found = np.array([number for number in numbers if number is not None])
    if found.size < len(numbers) or found.size <= MOST_NUMBER_CLASSES:
        return False
    if not np.isfinite(found).all() or (found % 1).any():
        return True
    counts_on = found.min() in (0, 1) and found.max() <= 2 * found.size
    return not counts_on


def notes_on_labels(name: str, labels: Sequence[str | None]) -> list[str]:
    """Return messages about classes that may be unknown labels, or differ in case or white space.

    Parameters
    ----------
    name : str
        The target column.
    labels : sequence of str or None
        The labels; None where unknown.

    Returns
    -------
    list of str
        The messages.
    """
    counts = Counter(label for label in labels if label is not None)
    notes = []
    suspects = "unknown unlabeled unlabelled undefined missing tbd todo n.a. - -- . .. ??? *"
    suspects += " -9 -99 -999 -9999 99999"  # common codes of unknown values
    for text, count in sorted(counts.items()):
        word = text.strip().lower()
        if word in MISSING | set(suspects.split()) or (text == "-1" and len(counts) > 2):
            notes.append(
                f"target column {shorten(name)}: {count} cells {text!r} are read "
                f"as a class; use --unlabeled {shlex.quote(text)} to treat them as unknown"
            )
        if text != text.strip() and text.strip() in counts:
            notes.append(
                f"target column {shorten(name)}: {text!r} and {text.strip()!r} are two classes "
                "that differ only in white space"
            )
    same: dict[str, list[str]] = {}
    for text in sorted(counts):
        same.setdefault(text.casefold(), []).append(text)
    for spelled in same.values():
        if len(spelled) > 1:
            listed = ", ".join(f"{text!r} ({counts[text]})" for text in spelled[:4])
            notes.append(f"target column {shorten(name)}: {listed} differ only in case")
    return notes


def notes_on_rows(table: Table, labels: Sequence[str | None]) -> list[str]:
    """Return messages about rows that are equal, with equal or with different labels.

    Parameters
    ----------
    table : Table
        The columns that predict, without names of rows and without the target.
    labels : sequence of str or None
        The labels; None where unknown.

    Returns
    -------
    list of str
        The messages.
    """
    draw = np.random.default_rng(0)
    number = np.zeros(table.n_rows, dtype=np.uint64)
    for column in table.columns:
        cells = np.asarray(column.values, dtype=np.float64) + 0.0  # -0 becomes 0
        cells[column.missing] = np.nan
        bits = cells.view(np.uint64)
        bits ^= bits >> np.uint64(31)
        number = (number ^ bits) * draw.integers(0, 2**63, dtype=np.uint64) * 2 + bits
    _, first, place, counts = np.unique(
        number, return_index=True, return_inverse=True, return_counts=True
    )
    notes = []
    repeated = table.n_rows - counts.size
    if repeated:
        notes.append(f"{repeated:,} rows repeat an earlier row")
    known = np.array([label is not None for label in labels], dtype=bool)
    codes = np.unique(np.array([str(label) for label in labels]), return_inverse=True)[1]
    pairs = np.unique(np.column_stack([place[known], codes[known]]), axis=0)
    groups, classes = np.unique(pairs[:, 0], return_counts=True)
    mixed = groups[classes > 1]
    if mixed.size:
        rows = int(np.isin(place[known], mixed).sum())
        notes.append(
            f"{rows:,} labelled rows equal a row with another label; the first is row "
            f"{int(first[mixed].min()) + 1}"
        )
    return notes
