"""CSV and its relatives: the dialect is detected, Arrow reads the cells block by block.

A column is numbers as long as every cell is a plain number or missing. A column that turns into
text after blocks of numbers is read again from the start, as text.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from .cell_formats import FormatError, find_number_format, plain_number
from .source import Source
from .table import (
    Column,
    Table,
    TableError,
    is_missing_text,
    merge_dictionaries,
    shorten,
    trim_arrow,
)

__all__ = ["column_names", "read_csv"]

SAMPLE_CHARACTERS = 2**16  # that delimiter and quotes are detected from
BLOCK_BYTES = 2**20  # read at a time
MAX_ROW_BYTES = 2**27
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}


@dataclass(frozen=True)
class CsvDialect:
    """How a text file is written.

    Parameters
    ----------
    encoding, delimiter, quote : str
        Encoding, and one character between cells and around them. A blank stands for any white
        space.
    skip : int
        Lines before the first row.
    notes : tuple of str
        What was detected that is unusual.
    """

    encoding: str
    delimiter: str
    quote: str = '"'
    skip: int = 0
    notes: tuple[str, ...] = ()


def read_csv(
    source: Source,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    as_text: frozenset[str] = frozenset(),
    target: str | None = None,
    header: bool = True,
) -> Table:
    """Read a text table; parameters as in :func:`gdpa.tables.read_table`."""
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii()):
        raise TableError(f"delimiter={delimiter!r} must be one character (ASCII)")
    dialect = _detect_dialect(source, delimiter, encoding)
    try:
        first = next((row for _, row in _rows(source, dialect)), None)
        if first is None:
            raise TableError(f"{source.name} is empty")
        if header:
            names, notes = _header_names(first, source.name)
        else:
            names = tuple(map(str, range(1, len(first) + 1)))
            notes = (f"no header: the columns are called 1 to {len(names)}",)
        as_text = as_text | {target} if target is not None else as_text
        columns = _read_columns(source, dialect, names, as_text, target, header)
        if any(_has_decimal_commas(column) for column in columns):
            # The points of another column may then separate thousands.
            again = frozenset(n for n, c in zip(names, columns, strict=True) if _has_fraction(c))
            if again:
                columns = _read_columns(source, dialect, names, as_text | again, target, header)
    except UnicodeError as error:
        raise TableError(f"{source.name} is not {dialect.encoding} text: {error}") from error
    return Table(names, tuple(columns), source.name, dialect.notes + notes)


# -- the dialect ------------------------------------------------------------------------------


def _detect_dialect(source: Source, delimiter: str | None, encoding: str | None) -> CsvDialect:
    if encoding is None:
        encoding, notes = _detect_encoding(source)
    else:
        notes = []
    try:
        codecs.lookup(encoding)
        with source.open() as stream:
            head = io.TextIOWrapper(stream, encoding, newline="").read(SAMPLE_CHARACTERS)
    except LookupError:
        raise TableError(f"encoding={encoding!r} is not known; try utf-8 or cp1252") from None
    except UnicodeError as error:
        raise TableError(f"{source.name} is not {encoding} text: {error}") from error
    if "\0" in head:
        raise TableError(f"{source.name} has NUL bytes: it is not a text file")
    lines = head.splitlines()
    skip = next((i for i, line in enumerate(lines) if line.strip()), 0)
    first = lines[skip].strip() if lines else ""
    quote = '"'
    if first[:4].lower() == "sep=" and len(first) == 5:  # as spreadsheets write it
        skip, mark = skip + 1, delimiter or first[4]
    else:
        mark, quote = _detect_marks(head, delimiter)
    if delimiter is None and mark != ",":
        notes.append(f"cells are separated by {DELIMITERS.get(mark, repr(mark))}")
    if quote != '"':
        notes.append("texts are quoted by ' instead of \"")
    return CsvDialect(encoding, mark, quote, skip, tuple(notes))


def _detect_encoding(source: Source) -> tuple[str, list[str]]:
    """Encoding of a file, and a note where it is not UTF-8."""
    with source.open() as stream:
        head = stream.read(4096)
        if head.startswith(codecs.BOM_UTF8):
            return "utf-8-sig", []
        for name in ("utf-32", "utf-16"):  # a mark of the first begins with one of the second
            marks = ("\ufeff".encode(f"{name}-le"), "\ufeff".encode(f"{name}-be"))
            if head.startswith(marks):
                return name, [f"text in {name}"]
        decoder = codecs.getincrementaldecoder("utf-8")()
        line, bad_line, encoding = 1, 0, "cp1252"
        while head:
            if b"\0" in head:
                raise TableError(f"{source.name} has NUL bytes: it is not a text file")
            if re.search(rb"[\x81\x8d\x8f\x90\x9d]", head):
                encoding = "latin-1"  # bytes that Windows-1252 does not have
            try:
                decoder.decode(b"" if bad_line else head)
            except UnicodeDecodeError as error:
                bad_line = line + head.count(b"\n", 0, error.start)
            line += head.count(b"\n")
            head = stream.read(2**20)
    if not bad_line:
        return "utf-8", []
    return encoding, [
        f"line {bad_line} is not UTF-8: the text is read as Windows-1252; if names look wrong, use "
        "--encoding"
    ]


def _detect_marks(head: str, delimiter: str | None) -> tuple[str, str]:
    """Delimiter and quote that cut the first lines into the most even rows."""
    if len(head) >= SAMPLE_CHARACTERS:  # the last line may be cut
        head = head[: head.rfind("\n") + 1] or head
    best, chosen = (-1.0, 0), (delimiter or ",", '"')
    for mark in [delimiter] if delimiter else [d for d in DELIMITERS if d != " "]:
        for quote in ("'", '"'):
            if quote == "'" and (f"'{mark}'" not in head or f'"{mark}"' in head):
                continue
            try:
                rows = csv.reader(io.StringIO(head, newline=""), delimiter=mark, quotechar=quote)
                widths = [len(row) for row in islice(rows, 200) if any(c.strip() for c in row)]
            except csv.Error:
                continue
            even = sum(w == widths[0] for w in widths) / len(widths) if widths else 0.0
            score = (even if widths and widths[0] > 1 else 0.0, widths[0] if widths else 0)
            if score > best:
                best, chosen = score, (mark, quote)
    return (" ", '"') if best[0] < 1.0 and not delimiter and _blanks_separate(head) else chosen


def _blanks_separate(head: str) -> bool:
    """Whether lines are rows of equal length between blanks, of numbers mostly."""
    rows = [line.split() for line in head.splitlines() if line.strip()][:200]
    if len(rows) < 2 or len(rows[0]) < 2 or {len(row) for row in rows} != {len(rows[0])}:
        return False
    cells = [cell for row in rows[1:] for cell in row]
    return 2 * sum(plain_number(cell) is not None for cell in cells) >= len(cells)


# -- cells ------------------------------------------------------------------------------------


def _rows(source: Source, dialect: CsvDialect) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of each row: slow, for the first row and for errors."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))  # raised, never lowered
    with io.TextIOWrapper(source.open(), dialect.encoding, newline="") as stream:
        for _ in range(dialect.skip):
            stream.readline()
        lines = (" ".join(line.split()) for line in stream) if dialect.delimiter == " " else stream
        reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote)
        try:
            for row in reader:
                if any(cell.strip() for cell in row) or len(row) > 1:
                    yield reader.line_num + dialect.skip, row
        except csv.Error as error:
            raise TableError(f"{source.name}, line {reader.line_num}: {error}") from error


def _read_columns(
    source: Source,
    dialect: CsvDialect,
    names: tuple[str, ...],
    as_text: frozenset[str],
    target: str | None,
    header: bool,
    block_bytes: int | None = None,
) -> list[Column]:
    arrow, pc = require("pyarrow", "tables"), require("pyarrow.compute", "tables")
    numbers = [GrowingArray() for _ in names]
    texts: list[list[Any]] = [[] for _ in names]
    text = set(as_text)
    late: set[str] = set()  # columns that turned into text after blocks of numbers
    skip = int(header)
    # Blocks of a wide table have many rows, too: a block costs a moment for every column.
    block_bytes = block_bytes or min(max(BLOCK_BYTES, 2**12 * len(names)), MAX_ROW_BYTES)
    try:
        for batch in _record_batches(source, dialect, len(names), block_bytes):
            rows, skip = batch.slice(skip), max(0, skip - batch.num_rows)
            for j, (name, cells) in enumerate(zip(names, rows.columns, strict=True)):
                parsed = None if name in text else _parse_numbers(cells)
                if parsed is not None:
                    numbers[j].extend(parsed)
                    continue
                text.add(name)
                late |= {name} if numbers[j].size else set()
                if name not in late:
                    trimmed, missing = trim_arrow(cells)
                    kept = pc.if_else(missing, None, cells) if name == target else trimmed
                    texts[j].append(kept.dictionary_encode())
    except arrow.ArrowInvalid as error:
        if "straddl" in str(error) and block_bytes < MAX_ROW_BYTES:  # a row longer than a block
            return _read_columns(source, dialect, names, as_text, target, header, MAX_ROW_BYTES)
        if "columns, got" in str(error):
            _raise_ragged(source, dialect, len(names), header)
        raise TableError(f"{source.name} is not readable as CSV: {error}") from error
    if late:
        return _read_columns(source, dialect, names, as_text | late, target, header, block_bytes)
    columns = []
    for j, name in enumerate(names):
        if name in text:
            columns.append(Column(*merge_dictionaries(texts[j])))
        else:
            columns.append(Column(numbers[j].values()))
        texts[j] = []
    arrow.default_memory_pool().release_unused()
    if len(columns[0]) == 0:
        raise TableError(f"{source.name} has a header and no rows")
    return columns


def _parse_numbers(cells: Any) -> NDArray[np.float64] | None:
    """Cells as plain numbers, NaN where missing; None if one is something else."""
    for trim in (False, True):  # few files need it
        with suppress(require("pyarrow", "tables").ArrowInvalid):
            numbers = (trim_arrow(cells)[0] if trim else cells).cast("float64")
            return np.asarray(numbers.to_numpy(zero_copy_only=False))
    return None


class GrowingArray:
    """Numbers that come a block at a time, in one array: memory that is not used costs nothing."""

    def __init__(self) -> None:
        self._room = np.empty(0)
        self.size = 0

    def extend(self, values: NDArray[np.float64]) -> None:
        """Append values."""
        end = self.size + values.size
        if end > self._room.size:
            room = np.empty(2 * end)
            room[: self.size] = self._room[: self.size]
            self._room = room
        self._room[self.size : end] = values
        self.size = end

    def values(self) -> NDArray[np.float64]:
        """The numbers so far."""
        return self._room[: self.size]


def _record_batches(
    source: Source, dialect: CsvDialect, width: int, block_bytes: int
) -> Iterator[Any]:
    """Blocks of rows as texts, the header among them."""
    arrow, arrow_csv = require("pyarrow", "tables"), require("pyarrow.csv", "tables")
    encoding, skip = dialect.encoding.removesuffix("-sig"), dialect.skip
    stream = source.open()
    if dialect.delimiter == " ":
        stream, encoding, skip = _single_blanks(stream, dialect), "utf-8", 0
    with stream:
        yield from arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=block_bytes,
                skip_rows=skip,
                autogenerate_column_names=True,
                encoding=encoding,
            ),
            arrow_csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote,
                newlines_in_values=True,
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            arrow_csv.ConvertOptions(
                column_types={f"f{j}": arrow.large_string() for j in range(width)}
            ),
        )


def _single_blanks(stream: BinaryIO, dialect: CsvDialect) -> BinaryIO:
    """The rows of a file with one blank between cells."""
    out = io.BytesIO()
    with io.TextIOWrapper(stream, dialect.encoding) as lines:
        for line in islice(lines, dialect.skip, None):
            out.write((" ".join(line.split()) + "\n").encode())
    out.seek(0)
    return out


def _raise_ragged(source: Source, dialect: CsvDialect, width: int, header: bool) -> None:
    """Raise an error that names the line of the first row of another length."""
    for line, row in _rows(source, dialect):
        if len(row) != width:
            raise TableError(
                f"{source.name}, line {line}: {len(row)} cells where the "
                f"{'header' if header else 'first line'} has {width}"
            )


def _has_fraction(column: Column) -> bool:
    if column.texts is not None:
        return False
    present = column.values[np.isfinite(column.values)]
    return bool((present % 1 != 0).any())


def _has_decimal_commas(column: Column) -> bool:
    if column.texts is None:
        return False
    try:
        format, count = find_number_format(column.texts)
    except FormatError:
        return False
    return count == len(column.texts) and format.decimal == "," and format.certain


# -- names of columns -------------------------------------------------------------------------


def _header_names(header: list[str], source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a file's columns, and a note where its first line looks like data."""
    cells = [cell.strip() for cell in header if cell.strip()]
    n_data = sum(plain_number(cell) is not None or is_missing_text(cell) for cell in cells)
    if 2 * n_data <= len(cells):
        return column_names(header, source)
    doubt = f"the first line ({', '.join(cells[:3])[:40]}...) looks like data, not like names"
    advice = "add a line of names, or use --no-header (header=False in Python)"
    try:
        names, notes = column_names(header, source)
    except TableError as error:
        raise TableError(f"{error}; {doubt}: {advice}") from None
    return names, (*notes, f"{doubt}: {advice} if it is")


def column_names(header: list[str], source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns of a header; columns without one are called by their place.

    Parameters
    ----------
    header : list of str
        The cells.
    source : str
        For messages.

    Returns
    -------
    names : tuple of str
        The names.
    notes : tuple of str
        Which columns had no name.

    Raises
    ------
    TableError
        If two columns have the same name.
    """
    given = list(map(str.strip, header))
    names: list[str] = []
    notes = []
    for position, column in enumerate(given, 1):
        if not column:
            column = f"column {position}"
            while column in given:
                column += "'"
            notes.append(f"column {position} has no name in the header: called {column!r}")
        names.append(column)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"{source}: two columns are called {shorten(twice)}; rename one")
    return tuple(names), tuple(notes)
