"""Parquet parts: which files, whether they fit together, and rows of them as tables.

A piece is a run of row groups of one file, small enough for one task. Rows are numbered over all
files in the order of their names.
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

__all__ = ["Inputs", "Piece", "look"]

# Rows of a piece, unless one row group has more: a task reads, encodes and sorts them in memory.
PIECE_ROWS = 250_000


@dataclass(frozen=True)
class Piece:
    """Row groups of one file.

    Parameters
    ----------
    path : str
        The file.
    groups : tuple of int
        Numbers of the row groups, consecutive.
    first : int
        Number of its first row, over all files.
    rows : int
        How many rows.
    within : int
        Number of its first row within the file.
    """

    path: str
    groups: tuple[int, ...]
    first: int
    rows: int
    within: int

    def read(self, columns: Sequence[str]) -> Any:
        """Columns of the piece, as an Arrow table."""
        with open_parquet(self.path) as file:
            return file.read_row_groups(list(self.groups), columns=list(columns))

    def place(self, row: int) -> str:
        """File and row (counted from 1) for messages."""
        return f"{self.path}, row {self.within + row + 1}"


@dataclass(frozen=True)
class Inputs:
    """Parquet files that fit together.

    Parameters
    ----------
    paths : tuple of str
        The files, in order.
    rows : tuple of int
        Rows of each.
    schema : tuple of (str, str)
        Columns and their types.
    fingerprints : tuple of str
        Rows and checksum of the footer of each file: sizes, offsets and extremes of its columns.
    pieces : tuple of Piece
        The work.
    """

    paths: tuple[str, ...]
    rows: tuple[int, ...]
    schema: tuple[tuple[str, str], ...]
    fingerprints: tuple[str, ...]
    pieces: tuple[Piece, ...]

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return sum(self.rows)

    def column(self, name: str, what: str) -> str:
        """Type of a column, or an error that names the nearest."""
        types = dict(self.schema)
        if name not in types:
            raise TableError(
                f"{self.paths[0]} has no {what} {name!r}; {nearest_name(name, list(types))}"
            )
        return types[name]

    def names(self) -> list[str]:
        """Names of the files of predictions: those of the input, numbered where they repeat."""
        names = [path.rsplit("/", 1)[-1] for path in self.paths]
        if len(set(names)) == len(names):
            return names
        return [f"{i:05d}-{name}" for i, name in enumerate(names)]

    def pieces_of(self, file: int) -> list[Piece]:
        """Pieces of one file."""
        return [piece for piece in self.pieces if piece.path == self.paths[file]]


def open_parquet(path: str) -> Any:
    """Open a Parquet file of a file system or an object store."""
    parquet = require("pyarrow.parquet", "distributed")
    if "://" not in path:
        return parquet.ParquetFile(path)
    fsspec = require("fsspec", "distributed")
    system, inside = fsspec.core.url_to_fs(path)
    return parquet.ParquetFile(system.open(inside, "rb"))


def expand(patterns: str | Sequence[str]) -> list[str]:
    """Files that patterns, folders and names stand for, in order of their names."""
    found: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if "://" in pattern:
            fsspec = require("fsspec", "distributed")
            system, inside = fsspec.core.url_to_fs(pattern)
            if system.isdir(inside):
                inside = inside.rstrip("/") + "/*.parquet"
            here = [system.unstrip_protocol(p) for p in system.glob(inside)]
        elif os.path.isdir(pattern):
            here = glob.glob(os.path.join(glob.escape(pattern), "*.parquet"))
        else:
            here = [pattern] if os.path.exists(pattern) else glob.glob(pattern)
        if not here:
            raise TableError(f"no file matches {pattern!r}")
        found += [p if "://" in p else os.path.abspath(p) for p in here]
    return sorted(set(found))


def look(patterns: str | Sequence[str], *, piece_rows: int = PIECE_ROWS) -> Inputs:
    """Read the footers of all files and check that they fit together.

    Parameters
    ----------
    patterns : str or sequence of str
        Names, patterns with ``*`` or folders; paths, or URLs that fsspec knows.
    piece_rows : int, default=250000
        Rows of a piece.

    Returns
    -------
    Inputs
        The files. One without rows is passed over, unless there is no other.

    Raises
    ------
    TableError
        If there is no file, one cannot be read, or its columns differ from the first one's.
    """
    paths = expand(patterns)
    kept, rows, prints = [], [], []
    schema: tuple[tuple[str, str], ...] | None = None
    pieces: list[Piece] = []
    first = 0
    for path in paths:
        try:
            with open_parquet(path) as file:
                meta, arrow = file.metadata, file.schema_arrow
        except (OSError, ValueError) as error:
            raise TableError(f"{path} is not a readable Parquet file: {error}") from error
        here = tuple((field.name, str(field.type)) for field in arrow)
        if schema is None:
            schema = here
            _check_names(path, here)
        elif here != schema:
            raise TableError(_difference(paths[0], schema, path, here))
        sizes = [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]
        if not sum(sizes):
            continue
        kept.append(path)
        rows.append(sum(sizes))
        prints.append(f"{sum(sizes)}-{zlib.crc32(repr(meta.to_dict()).encode()):08x}")
        for groups, within, size in _runs(sizes, piece_rows):
            pieces.append(Piece(path, groups, first + within, size, within))
        first += rows[-1]
    if not kept:
        raise TableError(f"{paths[0]} and the {len(paths) - 1} other files have no rows")
    assert schema is not None
    return Inputs(tuple(kept), tuple(rows), schema, tuple(prints), tuple(pieces))


def _runs(sizes: Sequence[int], most: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Consecutive row groups of together at most `most` rows, where their sizes allow."""
    groups: list[int] = []
    start = total = 0
    for number, size in enumerate(sizes):
        if groups and total + size > most:
            yield tuple(groups), start, total
            start += total
            groups, total = [], 0
        if size:
            groups.append(number)
            total += size
    if groups:
        yield tuple(groups), start, total


def _check_names(path: str, schema: Sequence[tuple[str, str]]) -> None:
    names = [name for name, _ in schema]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise TableError(f"{path} has two columns called {min(twice)!r}; rename one")


def _difference(
    path: str, schema: Sequence[tuple[str, str]], other: str, here: Sequence[tuple[str, str]]
) -> str:
    ours, theirs = dict(schema), dict(here)
    for name in ours:
        if name not in theirs:
            return f"{other} has no column {name!r}, which {path} has; all parts need the same"
        if ours[name] != theirs[name]:
            return (
                f"column {name!r} is {theirs[name]} in {other} and {ours[name]} in {path}; all "
                "parts need the same types"
            )
    more = [name for name in theirs if name not in ours]
    if more:
        return f"{other} has a column {more[0]!r}, which {path} does not have"
    return f"the columns of {other} are in another order than those of {path}"
