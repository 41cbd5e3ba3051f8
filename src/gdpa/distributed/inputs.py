"""Find the Parquet files of a run, check that their columns agree, and read rows from them.

A piece is a sequence of row groups of one file, small enough for one task. Rows are numbered across
all files, sorted by name.
"""

from __future__ import annotations

import glob
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import nearest_name, require
from ..tables import TableError
from ..tables.table import errors_as_table_error
from ..threads import effective_jobs, in_threads

Schema = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Piece:
    """Consecutive row groups of one file.

    Parameters
    ----------
    path : str
        The file.
    groups : tuple of int
        Numbers of the row groups.
    first, within : int
        Number of the first row, across all files and within the file.
    rows : int
        Number of rows.
    """

    path: str
    groups: tuple[int, ...]
    first: int
    within: int
    rows: int

    def read(self, columns: Sequence[str]) -> Any:
        """Return columns of the piece as an Arrow table."""
        parquet = require("pyarrow.parquet", "distributed")
        with parquet.ParquetFile(_source(self.path)) as file:
            return file.read_row_groups(list(self.groups), columns=list(columns))

    def place(self, row: int) -> str:
        """Return the file and row (counted from 1), for error messages."""
        return f"{self.path}, row {self.within + row + 1}"


@dataclass(frozen=True)
class Inputs:
    """Parquet files with the same columns.

    Parameters
    ----------
    paths : tuple of str
        The files, in order.
    rows : tuple of int
        Number of rows of each file.
    schema : tuple of (str, str)
        Columns and their types.
    fingerprints : tuple of str
        Size and checksum of each file.
    pieces : tuple of Piece
        The pieces of all files.
    """

    paths: tuple[str, ...]
    rows: tuple[int, ...]
    schema: Schema
    fingerprints: tuple[str, ...]
    pieces: tuple[Piece, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows of all files."""
        return sum(self.rows)

    def column_type(self, name: str, what: str = "column") -> str:
        """Return the type of a column; the error for an unknown one suggests a similar name."""
        types = dict(self.schema)
        if name not in types:
            raise TableError(
                f"{self.paths[0]} has no {what} {name!r}; {nearest_name(name, list(types))}"
            )
        return types[name]

    def output_names(self) -> list[str]:
        """Return the names of the prediction files: those of the input, numbered if not unique."""
        names = [path.rsplit("/", 1)[-1] for path in self.paths]
        if len(set(names)) == len(names):
            return names
        return [f"{i:05d}-{name}" for i, name in enumerate(names)]


def _source(path: str) -> Any:
    """Return a path, or an open file of an object store, for PyArrow to read."""
    return require("fsspec", "distributed").open(path, "rb").open() if "://" in path else path


def _fingerprint(path: str) -> str:
    """Return the size and CRC-32 of a file."""
    size = crc = 0
    with require("fsspec", "distributed").open(path, "rb") as file:
        while block := file.read(2**22):
            size, crc = size + len(block), zlib.crc32(block, crc)
    return f"{size} bytes, CRC {crc:08x}"


def _expand(patterns: str | Sequence[str]) -> list[str]:
    """Return the sorted paths of the files that patterns, folders and names stand for."""
    paths: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if "://" in pattern:
            system, inside = require("fsspec", "distributed").core.url_to_fs(pattern)
            if system.isdir(inside):
                inside = inside.rstrip("/") + "/*.parquet"
            here = [system.unstrip_protocol(p) for p in system.glob(inside)]
        elif os.path.isdir(pattern):
            here = glob.glob(os.path.join(glob.escape(pattern), "*.parquet"))
        else:
            here = [pattern] if os.path.exists(pattern) else glob.glob(pattern)
        if not here:
            raise TableError(f"no file matches {pattern!r}")
        paths += [p if "://" in p else os.path.abspath(p) for p in here]
    return sorted(set(paths))


def open_inputs(patterns: str | Sequence[str], *, piece_rows: int = 250_000) -> Inputs:
    """Read the footers of all files, check that their columns agree, and compute checksums.

    Parameters
    ----------
    patterns : str or sequence of str
        File names, patterns with ``*`` or folders; paths, or URLs supported by fsspec.
    piece_rows : int, default=250000
        Maximum number of rows of a piece, unless one row group has more.

    Returns
    -------
    Inputs
        The files that have rows.

    Raises
    ------
    TableError
        If there is no file with rows, a file cannot be read, or its columns differ.
    """
    parquet = require("pyarrow.parquet", "distributed")
    paths = _expand(patterns)
    kept: list[str] = []
    rows: list[int] = []
    schema: Schema | None = None
    pieces: list[Piece] = []
    for path in paths:
        with (
            errors_as_table_error(f"{path} is not a readable Parquet file", OSError, ValueError),
            parquet.ParquetFile(_source(path)) as file,
        ):
            meta, arrow = file.metadata, file.schema_arrow
        here = tuple((field.name, str(field.type)) for field in arrow)
        schema = schema or here
        names = [name for name, _ in here]
        for name in names:
            if names.count(name) > 1:
                raise TableError(f"{path} has two columns called {name!r}; rename one")
        if here != schema:
            raise TableError(_difference(paths[0], schema, path, here))
        sizes = [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]
        if not sum(sizes):
            continue
        first = sum(rows)
        kept.append(path)
        rows.append(sum(sizes))
        for groups, within, size in _runs(sizes, piece_rows):
            pieces.append(Piece(path, groups, first + within, within, size))
    if not kept or schema is None:
        raise TableError(f"{paths[0]} and the {len(paths) - 1} other files have no rows")
    fingerprints = in_threads(_fingerprint, kept, effective_jobs(None))
    return Inputs(tuple(kept), tuple(rows), schema, tuple(fingerprints), tuple(pieces))


def _runs(sizes: Sequence[int], limit: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Yield sequences of row groups with at most `limit` rows, first rows and numbers of rows."""
    groups: list[int] = []
    start = total = 0
    for number, size in enumerate(sizes):
        if groups and total + size > limit:
            yield tuple(groups), start, total
            start += total
            groups, total = [], 0
        if size:
            groups.append(number)
            total += size
    yield tuple(groups), start, total


def _difference(path: str, schema: Schema, other: str, here: Schema) -> str:
    """Describe the first difference between the columns of two files."""
    ours, theirs = dict(schema), dict(here)
    for name in {**ours, **theirs}:
        if ours.get(name) != theirs.get(name):
            return (
                f"column {name!r} is {theirs.get(name, 'missing')} in {other} and "
                f"{ours.get(name, 'missing')} in {path}; all files need the same columns"
            )
    return f"the columns of {other} are not in the same order as those of {path}"
