"""Find the Parquet files of a run, check that their columns agree, and read rows from them.

A piece is a sequence of row groups of one file, small enough for one task. Rows are numbered across
all files, sorted by name.

Every file is read once at the start, to compute a checksum of the file and of each column of each
row group. A task compares the latter before it uses a column, so a file that changes during a run,
or is damaged, is not used. Checksums of pages within the files are verified as well.
"""

from __future__ import annotations

import glob
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import nearest_name, require
from ..tables import TableError
from ..tables.table import errors_as_table_error
from ..threads import effective_jobs, in_threads

Schema = tuple[tuple[str, str], ...]
BLOCK_BYTES = 2**22  # read at once for a checksum


@dataclass(frozen=True)
class Chunk:
    """The bytes of one column of a row group.

    Parameters
    ----------
    column : str
        Name of the column.
    offset, size : int
        First byte and number of bytes in the file.
    crc : int
        CRC-32 of the bytes.
    """

    column: str
    offset: int
    size: int
    crc: int


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
    chunks : tuple of Chunk
        Checksums of the columns.
    """

    path: str
    groups: tuple[int, ...]
    first: int
    within: int
    rows: int
    chunks: tuple[Chunk, ...] = ()

    def read(self, columns: Sequence[str]) -> Any:
        """Return columns of the piece as an Arrow table, after comparing their checksums."""
        parquet = require("pyarrow.parquet", "distributed")
        self._check(set(columns))
        with (
            errors_as_table_error(f"{self.path} cannot be read", OSError),
            parquet.ParquetFile(_source(self.path), page_checksum_verification=True) as file,
        ):
            return file.read_row_groups(list(self.groups), columns=list(columns))

    def _check(self, columns: set[str]) -> None:
        """Raise an error if the bytes of a column differ from those at the start of the run."""
        with require("fsspec", "distributed").open(self.path, "rb") as file:
            for chunk in self.chunks:
                if chunk.column in columns:
                    file.seek(chunk.offset)
                    if zlib.crc32(file.read(chunk.size)) != chunk.crc:
                        raise TableError(
                            f"{self.path} has changed since the run began: the checksum of column "
                            f"{chunk.column!r}, from row {self.within + 1}, is different; restore "
                            "the file, or start again with an empty work folder"
                        )

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

    @property
    def identities(self) -> list[tuple[str, str]]:
        """Path and fingerprint of each file, by which a run recognises its input."""
        return list(zip(self.paths, self.fingerprints, strict=True))

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


def _chunk_places(metadata: Any, names: Sequence[str]) -> list[list[tuple[str, int, int]]]:
    """Return the column, first byte and size of each column of each row group."""
    found = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        places = []
        for i in range(group.num_columns):
            column = group.column(i)
            path = column.path_in_schema
            name = path if path in names else path.split(".")[0]  # of a nested column
            offset = column.data_page_offset
            if column.has_dictionary_page and column.dictionary_page_offset:
                offset = min(offset, column.dictionary_page_offset)
            places.append((name, offset, column.total_compressed_size))
        found.append(places)
    return found


def _checksums(path: str, spans: Sequence[tuple[int, int]]) -> tuple[str, list[int]]:
    """Return the size and CRC-32 of a file, and the CRC-32 of some spans of its bytes."""
    found = [0] * len(spans)
    size = crc = 0
    # The ends of the spans, in ascending order; spans do not overlap.
    order = sorted(range(len(spans)), key=lambda i: spans[i])
    with require("fsspec", "distributed").open(path, "rb") as file:
        for i in order:
            start, length = spans[i]
            for is_span, stop in ((False, start), (True, start + length)):
                while size < stop and (block := file.read(min(stop - size, BLOCK_BYTES))):
                    size += len(block)
                    crc = zlib.crc32(block, crc)
                    if is_span:
                        found[i] = zlib.crc32(block, found[i])
        while block := file.read(BLOCK_BYTES):
            size += len(block)
            crc = zlib.crc32(block, crc)
    return f"{size} bytes, CRC {crc:08x}", found


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
    places: list[list[list[tuple[str, int, int]]]] = []
    for path in paths:
        with (
            errors_as_table_error(f"{path} is not a readable Parquet file", OSError, ValueError),
            parquet.ParquetFile(_source(path)) as file,
        ):
            meta = file.metadata
            arrow = file.schema_arrow
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
        places.append(_chunk_places(meta, names))
        rows.append(sum(sizes))
        for groups, within, size in _runs(sizes, piece_rows):
            pieces.append(Piece(path, groups, first + within, within, size))
    if not kept or schema is None:
        raise TableError(f"{paths[0]} and the {len(paths) - 1} other files have no rows")

    def check(number: int) -> tuple[str, list[int]]:
        spans = [(offset, size) for group in places[number] for _, offset, size in group]
        return _checksums(kept[number], spans)

    checked = in_threads(check, list(range(len(kept))), effective_jobs(None))
    chunks = {
        path: _chunks(groups, crcs)
        for path, groups, (_, crcs) in zip(kept, places, checked, strict=True)
    }
    pieces = [
        replace(piece, chunks=tuple(c for g in piece.groups for c in chunks[piece.path][g]))
        for piece in pieces
    ]
    fingerprints = tuple(fingerprint for fingerprint, _ in checked)
    return Inputs(tuple(kept), tuple(rows), schema, fingerprints, tuple(pieces))


def _chunks(groups: list[list[tuple[str, int, int]]], crcs: Sequence[int]) -> list[list[Chunk]]:
    """Return the checked columns of each row group, given the checksums of all in order."""
    crc = iter(crcs)
    return [
        [Chunk(column, offset, size, next(crc)) for column, offset, size in places]
        for places in groups
    ]


def _runs(sizes: Sequence[int], limit: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Yield sequences of row groups with at most `limit` rows, first rows and numbers of rows."""
    groups: list[int] = []
    start = total = 0
    for number, size in enumerate(sizes):
        if groups and total + size > limit:
            yield tuple(groups), start, total
            start += total
            groups = []
            total = 0
        if size:
            groups.append(number)
            total += size
    yield tuple(groups), start, total


def _difference(path: str, schema: Schema, other: str, here: Schema) -> str:
    """Describe the first difference between the columns of two files."""
    ours = dict(schema)
    theirs = dict(here)
    for name in {**ours, **theirs}:
        if ours.get(name) != theirs.get(name):
            return (
                f"column {name!r} is {theirs.get(name, 'missing')} in {other} and "
                f"{ours.get(name, 'missing')} in {path}; all files need the same columns"
            )
    return f"the columns of {other} are not in the same order as those of {path}"
