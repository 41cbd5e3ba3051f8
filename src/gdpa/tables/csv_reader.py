"""Read CSV files: detect the dialect, then parse the cells with Arrow, block by block.

A column is numeric if every cell is a plain number or missing. A column whose first text appears
after blocks of numbers is read again from the start, as text.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from .cell_formats import FormatError, find_number_format, plain_number
from .source import Source
from .table import (
    MISSING,
    Column,
    Table,
    TableError,
    clean_labels,
    clean_texts,
    merge_texts,
    shorten,
    to_numpy,
)

SAMPLE_CHARACTERS = 2**16  # used to detect delimiter and quotes
BLOCK_BYTES = 2**20  # read at a time
MAX_ROW_BYTES = 2**27
DELIMITERS = {";": "a semicolon", "\t": "a tab", "|": "a bar", " ": "white space"}


@dataclass(frozen=True)
class CsvDialect:
    """Dialect of a CSV file; a space as delimiter stands for any white space."""

    encoding: str
    delimiter: str
    quote: str
    skip: int  # lines before the first row
    notes: tuple[str, ...]  # messages about an unusual dialect


def read_csv(
    source: Source,
    *,
    delimiter: str | None,
    encoding: str | None,
    as_text: frozenset[str],
    target: str | None,
    header: bool,
    written: frozenset[str] | bool = False,
) -> Table:
    """Read a CSV file; for the parameters see :func:`gdpa.tables.read_table`."""
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii()):
        raise TableError(f"delimiter={delimiter!r} must be one character (ASCII)")
    dialect = _detect_dialect(source, delimiter, encoding)
    try:
        if dialect.delimiter == " ":  # replace white space by single spaces
            with io.TextIOWrapper(source.open(), dialect.encoding) as lines:
                source.rewrite("\n".join(" ".join(line.split()) for line in lines).encode())
            dialect = replace(dialect, encoding="utf-8")
        _, first = next(_rows(source, dialect), (0, None))
        if first is None:
            raise TableError(f"{source.name} is empty")
        if header:
            names, notes = column_names(first, source.name, is_file=True)
        else:
            names = tuple(map(str, range(1, len(first) + 1)))
            notes = (f"no header: the columns are named 1 to {len(names)}",)
        as_text = as_text | {target} if target is not None else as_text
        columns = _read_columns(source, dialect, names, as_text, target, header)
        if any(map(_has_decimal_commas, columns)):
            # Then points in other columns may separate thousands.
            fractions = frozenset(
                name
                for name, column in zip(names, columns, strict=True)
                if column.texts is None and (np.abs(np.modf(column.values)[0]) > 0).any()
            )
            if fractions:
                columns = _read_columns(source, dialect, names, as_text | fractions, target, header)
        kept = _read_written(source, dialect, names, written, header) if written else {}
    except UnicodeError as error:
        raise TableError(f"{source.name} is not {dialect.encoding} text: {error}") from error
    return Table(names, tuple(columns), source.name, dialect.notes + notes, kept)


# -- the dialect ------------------------------------------------------------------------------


def _detect_dialect(source: Source, delimiter: str | None, encoding: str | None) -> CsvDialect:
    """Detect encoding, delimiter and quotes, unless they are given."""
    encoding, notes = (encoding, []) if encoding else _detect_encoding(source)
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
    blank = head[: len(head) - len(head.lstrip())]
    skip = blank.count("\n") or blank.count("\r")
    declared = re.match(r"\s*sep=([^\r\n])\s*?(?:[\r\n]|$)", head, re.IGNORECASE)
    if declared is not None:  # the line "sep=;" of spreadsheets
        skip = skip + 1
        mark = delimiter or declared[1]
        quote = '"'
    else:
        mark, quote = _detect_marks(head, delimiter)
    if delimiter is None and mark != ",":
        notes.append(f"the delimiter is {DELIMITERS.get(mark, repr(mark))}")
    if quote != '"':
        notes.append("the quote character is '")
    return CsvDialect(encoding, mark, quote, skip, tuple(notes))


def _detect_encoding(source: Source) -> tuple[str, list[str]]:
    """Return the encoding, and a message if it is not UTF-8."""
    with source.open() as stream:
        head = stream.read(4096)
        if head.startswith(codecs.BOM_UTF8):
            return "utf-8-sig", []
        for name in ("utf-32", "utf-16"):  # in this order: their marks begin with the same bytes
            marks = ("\ufeff".encode(f"{name}-le"), "\ufeff".encode(f"{name}-be"))
            if head.startswith(marks):
                return name, [f"text in {name}"]
        decoder = codecs.getincrementaldecoder("utf-8")()
        line = 1
        bad_line = 0
        encoding = "cp1252"
        while head:
            if b"\0" in head:
                raise TableError(f"{source.name} has NUL bytes: it is not a text file")
            if re.search(rb"[\x81\x8d\x8f\x90\x9d]", head):
                encoding = "latin-1"  # bytes that Windows-1252 does not define
            try:
                decoder.decode(b"" if bad_line else head)
            except UnicodeDecodeError as error:
                bad_line = line + head.count(b"\n", 0, error.start)
            line += head.count(b"\n")
            head = stream.read(2**20)
    if not bad_line:
        return "utf-8", []
    note = f"line {bad_line} is not UTF-8: reading Windows-1252; use --encoding if names look wrong"
    return encoding, [note]


def _detect_marks(head: str, delimiter: str | None) -> tuple[str, str]:
    """Return the delimiter and quote that split the first lines most evenly.

    Of two that split equally well, the one that cuts fewer quoted cells is right.
    """
    if len(head) >= SAMPLE_CHARACTERS:  # the last line may be incomplete
        head = head[: head.rfind("\n") + 1] or head
    best = (-1.0, 0, 0)
    chosen = (delimiter or ",", '"')
    for mark in delimiter or ",;\t|":
        for quote in "'\"":
            if quote == "'" and (f"'{mark}'" not in head or f'"{mark}"' in head):
                continue
            lines = filter(str.strip, io.StringIO(head, newline=""))
            rows = csv.reader(lines, delimiter=mark, quotechar=quote)
            with suppress(csv.Error):
                first = list(islice(rows, 200))
                widths = list(map(len, first)) or [0]
                even = widths.count(widths[0]) / len(widths) if widths[0] > 1 else 0.0
                cut = sum(cell.count(quote) % 2 for row in first for cell in row)
                if (even, widths[0], -cut) > best:
                    best = (even, widths[0], -cut)
                    chosen = (mark, quote)
    return (" ", '"') if best[0] < 1.0 and not delimiter and _blanks_separate(head) else chosen


def _blanks_separate(head: str) -> bool:
    """Return whether lines are rows of equal length, mostly numbers, separated by white space."""
    rows = [line.split() for line in head.splitlines() if line.strip()][:200]
    if len(rows) < 2 or len(rows[0]) < 2 or {len(row) for row in rows} != {len(rows[0])}:
        return False
    cells = [cell for row in rows[1:] for cell in row]
    return 2 * sum(plain_number(cell) is not None for cell in cells) >= len(cells)


# -- cells ------------------------------------------------------------------------------------


def _rows(source: Source, dialect: CsvDialect) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each row: slow, for the first row and for errors."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))  # raised, never lowered
    with io.TextIOWrapper(source.open(), dialect.encoding, newline="") as stream:
        lines = islice(stream, dialect.skip, None)
        reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote)
        try:
            for row in reader:
                if "".join(row).strip() or len(row) > 1:
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
    """Read all columns; those in `as_text`, and those with other cells than numbers, as text."""
    arrow = require("pyarrow", "tables")
    parts: dict[str, list[Any]] = defaultdict(list)
    text = set(as_text)
    late: set[str] = set()  # columns whose first text appeared after blocks of numbers
    # Larger blocks for wide tables: each block has a cost per column.
    block_bytes = block_bytes or min(max(BLOCK_BYTES, 2**12 * len(names)), MAX_ROW_BYTES)
    try:
        for batch in _text_batches(source, dialect, names, names, header, block_bytes):
            for name, cells in zip(names, batch.columns, strict=True):
                part = None if name in text else _parse_numbers(cells)
                if part is None:
                    if name not in text and parts[name]:
                        late.add(name)
                    text.add(name)
                    clean = clean_labels if name == target else clean_texts
                    part = clean(cells).dictionary_encode()
                parts[name].append(part)
    except arrow.ArrowInvalid as error:
        if "straddl" in str(error) and block_bytes < MAX_ROW_BYTES:  # a row exceeds a block
            return _read_columns(source, dialect, names, as_text, target, header, MAX_ROW_BYTES)
        for line, row in _rows(source, dialect) if "columns, got" in str(error) else ():
            if len(row) != len(names):
                other = f"the {'header' if header else 'first line'} has {len(names)}"
                raise TableError(f"{source.name}, line {line}: {len(row)} cells, {other}") from None
        raise TableError(f"{source.name} is not readable as CSV: {error}") from error
    if late:
        return _read_columns(source, dialect, names, as_text | late, target, header, block_bytes)
    columns = []
    for name in names:  # one by one, without a second copy of the table
        cells = parts.pop(name)
        columns.append(
            Column(*merge_texts(cells)) if name in text else Column(np.concatenate(cells))
        )
    arrow.default_memory_pool().release_unused()
    if columns[0].values.size == 0:
        raise TableError(f"{source.name} has a header but no rows")
    return columns


def _text_batches(
    source: Source,
    dialect: CsvDialect,
    names: tuple[str, ...],
    wanted: tuple[str, ...],
    header: bool,
    block_bytes: int,
) -> Iterator[Any]:
    """Yield the rows as Arrow batches of texts, with the wanted columns."""
    arrow = require("pyarrow", "tables")
    arrow_csv = require("pyarrow.csv", "tables")
    reading = arrow_csv.ReadOptions(
        use_threads=False,
        block_size=block_bytes,
        skip_rows=dialect.skip,
        column_names=names,
        encoding=dialect.encoding.removesuffix("-sig"),
    )
    parsing = arrow_csv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote,
        newlines_in_values=True,
        invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
    )
    types = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, arrow.large_string()), include_columns=wanted
    )
    skip = int(header)
    with source.open() as stream:
        for batch in arrow_csv.open_csv(stream, reading, parsing, types):
            yield batch.slice(skip)
            skip = max(0, skip - batch.num_rows)


def _read_written(
    source: Source,
    dialect: CsvDialect,
    names: tuple[str, ...],
    wanted: frozenset[str] | bool,
    header: bool,
) -> dict[str, Column]:
    """Read the cells of the wanted columns (True: all) exactly as they are in the file."""
    chosen = names if wanted is True else tuple(n for n in names if wanted and n in wanted)
    if not chosen:
        return {}
    parts: dict[str, list[Any]] = defaultdict(list)
    for batch in _text_batches(source, dialect, names, chosen, header, MAX_ROW_BYTES):
        for name, cells in zip(chosen, batch.columns, strict=True):
            parts[name].append(cells.dictionary_encode())
    return {name: Column(*merge_texts(parts.pop(name))) for name in chosen}


def _parse_numbers(cells: Any) -> NDArray[np.float64] | None:
    """Parse cells as plain numbers, NaN where missing; return None if a cell is not a number."""
    for clean in (False, True):  # few files need cleaning
        with suppress(require("pyarrow", "tables").ArrowInvalid):
            numbers = (clean_texts(cells) if clean else cells).cast("float64")
            return to_numpy(numbers, np.float64, np.nan)
    return None


def _has_decimal_commas(column: Column) -> bool:
    """Return whether all cells are numbers, some with an unambiguous decimal comma."""
    if column.texts is None:
        return False
    with suppress(FormatError):
        format, count = find_number_format(column.texts)
        return count == len(column.texts) and format.decimal == "," and format.certain
    return False


# -- names of columns -------------------------------------------------------------------------


def column_names(
    header: list[str], source: str, *, is_file: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the column names of a header, and messages; columns without a name are numbered.

    Parameters
    ----------
    header : list of str
        The cells of the header.
    source : str
        Name of the file, for messages.
    is_file : bool, default=False
        Whether the header is the first line of a text file, which might be data instead.

    Returns
    -------
    names : tuple of str
        The names.
    notes : tuple of str
        Messages about columns without a name and headers that look like data.

    Raises
    ------
    TableError
        If two columns have the same name.
    """
    names = list(map(str.strip, header))
    cells = list(filter(None, names))
    n_data = 0
    notes = []
    doubt = ""
    for cell in cells if is_file else ():
        n_data += plain_number(cell) is not None or cell.lower() in MISSING
    if 2 * n_data > len(cells):
        doubt = (
            f"the first line ({', '.join(cells[:3])[:40]}...) looks like data, not like names: add "
            "a header, or use --no-header (header=False in Python)"
        )
    for j, name in enumerate(names):
        if not name:
            names[j] = f"column {j + 1}"
            while names[j] in cells:
                names[j] += "'"
            notes.append(f"column {j + 1} has no name in the header; it is named {names[j]!r}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        hint = f"; {doubt}" if doubt else ""
        raise TableError(f"{source}: two columns are named {shorten(twice)}; rename one{hint}")
    return tuple(names), (*notes, doubt) if doubt else tuple(notes)
