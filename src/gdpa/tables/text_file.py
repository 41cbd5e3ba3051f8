"""CSV and its relatives: encoding, delimiter and quotes found by looking; read in blocks.

Numbers become numbers block by block; texts are numbered as they come. A column that turns out to
be text after blocks of numbers is read again from the start, as text.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from .looking import LOOK, WORDS, find_encoding, find_marks
from .numbers import FormatError, find_format
from .source import Source
from .table import Column, Table, TableError
from .texts import Growing, TextNumbers
from .words import MISSING_FORMS, is_missing_text, shown

__all__ = ["column_names", "decode_text", "read_text_file"]

BLOCK_CELLS = 50_000
MOST_EXPECTED = 2**22  # rows that room is made for before they have come
# Of one cell: whole books are read, a file that is one cell by mistake is refused.
MOST_CHARACTERS = 2**26
NAMELESS = "put a line of names before it, or say --no-header (header=False in Python)"


def read_text_file(
    source: Source,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    as_text: frozenset[str] = frozenset(),
    header: bool = True,
) -> Table:
    """Read a text table.

    Parameters
    ----------
    source : Source
        The file.
    delimiter : str, optional
        One character between cells; found by looking by default. Blanks in a row count as one.
    encoding : str, optional
        Encoding of the text; found by looking by default.
    as_text : frozenset of str
        Columns whose cells are kept as they are written.
    header : bool, default=True
        Whether the first line has the names of the columns; else they are called 1, 2, ...

    Returns
    -------
    Table
        The table; its notes say what was found.

    Raises
    ------
    TableError
        If it is no text, ragged, or has no rows.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise TableError(f"delimiter={delimiter!r} must be one character")
    form = _Form.find(source, delimiter, encoding)
    form.header = header
    names, columns, again = form.read(as_text)
    if not again and any(_proves_commas(column) for column in columns):
        # Where one column has decimal commas, the points of another may separate thousands.
        again = frozenset(
            n for n, c in zip(names, columns, strict=True) if c.texts is None and _has_fraction(c)
        )
    if again:
        names, columns, _ = form.read(as_text | again)
    return Table(names, tuple(columns), source.name, form.notes)


def _has_fraction(column: Column) -> bool:
    present = column.values[np.isfinite(column.values)]
    return bool((present % 1 != 0).any())


def _proves_commas(column: Column) -> bool:
    if column.texts is None:
        return False
    try:
        format, count = find_format(column.texts)
    except FormatError:
        return False
    return count == len(column.texts) and format.decimal == "," and format.sure


class _Form:
    """How a text file is written."""

    def __init__(self, source: Source, encoding: str, delimiter: str, quote: str) -> None:
        self.source, self.encoding = source, encoding
        self.delimiter, self.quote = delimiter, quote
        self.notes: tuple[str, ...] = ()
        self.skip = 0  # lines before the header
        self.header = True

    @classmethod
    def find(cls, source: Source, delimiter: str | None, encoding: str | None) -> _Form:
        found, note = find_encoding(source) if encoding is None else (encoding, "")
        try:
            codecs.lookup(found)
            with source.open() as stream:
                head = io.TextIOWrapper(stream, encoding=found, newline="").read(LOOK)
        except LookupError:
            raise TableError(f"encoding={encoding!r} is not known; try utf-8 or cp1252") from None
        except UnicodeError as error:
            raise TableError(f"{source.name} is not {found} text: {error}") from error
        if "\0" in head:
            raise TableError(f"{source.name} has NUL bytes: it is not a text file")
        notes = [note] if note else []
        form = cls(source, found, delimiter or ",", '"')
        first = head.splitlines()[0].strip() if head.strip() else ""
        if first.lower().startswith("sep=") and len(first) == 5:  # as spreadsheets write it
            form.skip, form.delimiter = 1, delimiter or first[4]
        elif head.strip():
            form.delimiter, form.quote = find_marks(head, delimiter)
        if delimiter is None and form.delimiter != ",":
            word = WORDS.get(form.delimiter, repr(form.delimiter))
            notes.append(f"cells are separated by {word}")
        if form.quote != '"':
            notes.append("texts are quoted by ' instead of \"")
        form.notes = tuple(notes)
        return form

    def rows(self) -> tuple[Any, TextIO]:
        stream = io.TextIOWrapper(self.source.open(), encoding=self.encoding, newline="")
        for _ in range(self.skip):
            stream.readline()
        # The limit is the module's, for all readers: it is raised, never lowered.
        csv.field_size_limit(max(csv.field_size_limit(), MOST_CHARACTERS))
        lines = (" ".join(line.split()) for line in stream) if self.delimiter == " " else stream
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote), stream

    def read(self, as_text: frozenset[str]) -> tuple[tuple[str, ...], list[Column], frozenset[str]]:
        """Names, columns, and those that must be read again as text."""
        reader, stream = self.rows()
        name = self.source.name
        with stream:
            try:
                first = next((row for row in reader if any(cell.strip() for cell in row)), None)
                if first is None:
                    raise TableError(f"{name} is empty")
                names, renamed = _header_names(first, name) if self.header else _places(first)
                self.notes += tuple(note for note in renamed if note not in self.notes)
                builders, expected = [_Builder(n in as_text) for n in names], 0
                rows = reader if self.header else chain([first], reader)
                for block in self._blocks(rows, len(names)):
                    expected = expected or self._expected_rows(len(block), stream)
                    for builder, cells in zip(builders, zip(*block, strict=True), strict=True):
                        builder.add(cells, expected)
            except csv.Error as error:
                raise TableError(f"{name}, line {reader.line_num}: {error}") from error
            except UnicodeError as error:
                raise TableError(f"{name} is not {self.encoding} text: {error}") from error
        if builders[0].size == 0:
            raise TableError(f"{name} has a header and no rows")
        again = frozenset(n for n, b in zip(names, builders, strict=True) if b.changed)
        return names, [] if again else [b.column() for b in builders], again

    def _expected_rows(self, n_rows: int, stream: TextIO) -> int:
        """About how many rows there are, judged by the bytes of the first ones; 1 if unknown."""
        if not self.source.size:
            return 1
        return min(1 + int(1.02 * n_rows * self.source.size / stream.buffer.tell()), MOST_EXPECTED)

    def _blocks(self, reader: Any, width: int) -> Iterator[list[list[str]]]:
        size = max(16, BLOCK_CELLS // width)
        while True:
            block = list(islice(reader, size))
            if not block:
                return
            if set(map(len, block)) != {width}:
                block = [row for row in block if not _blank(row, width)]
                if any(len(row) != width for row in block):
                    self._refuse(width)
            if block:
                yield block

    def _refuse(self, width: int) -> None:
        """Find the first row of another length, and say where it is."""
        reader, stream = self.rows()
        with stream:
            for row in reader:
                if len(row) != width and not _blank(row, width):
                    raise TableError(
                        f"{self.source.name}, line {reader.line_num + self.skip}: {len(row)} cells "
                        f"where the {'header' if self.header else 'first line'} has {width}"
                    )


def _blank(row: list[str], width: int) -> bool:
    return not row or (len(row) == 1 and not row[0].strip() and width > 1)


class _Builder:
    """One column while it is being read."""

    def __init__(self, text: bool) -> None:
        self.text, self.changed, self.size = text, False, 0
        self._numbers, self._texts = Growing("f8"), TextNumbers()

    def add(self, cells: tuple[str, ...], expected: int) -> None:
        self.size += len(cells)
        if not self.text:
            numbers = _numbers(cells)
            if numbers is not None:
                self._numbers.extend(numbers, expected)
                return
            self.text = True
            if self._numbers.size:
                self.changed = True  # what was read as numbers must be seen as it was written
                self._numbers = Growing("f8")
        if not self.changed:
            self._texts.add(cells, expected)

    def column(self) -> Column:
        if not self.text:
            return Column(self._numbers.values())
        return Column(*self._texts.settle())


def _numbers(cells: tuple[str, ...]) -> NDArray[np.float64] | None:
    """Cells as plain numbers, NaN where missing; None if one is something else."""
    try:
        numbers = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    except ValueError:
        try:
            numbers = np.fromiter(
                (np.nan if c in MISSING_FORMS or is_missing_text(c) else float(c) for c in cells),
                dtype=np.float64,
                count=len(cells),
            )
        except ValueError:
            return None
    return None if "_" in "".join(cells) else numbers


def _header_names(header: list[str], source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a file's columns, and a word where its first line looks like data."""
    cells = tuple(cell for cell in header if cell.strip())
    if 2 * sum(_numbers((cell,)) is not None for cell in cells) <= len(cells):
        return column_names(header, source)
    doubt = f"the first line ({', '.join(cells[:3])[:40]}...) looks like data, not like names"
    try:
        names, notes = column_names(header, source)
    except TableError as error:
        raise TableError(f"{error}; {doubt}: {NAMELESS}") from None
    return names, (*notes, f"{doubt}: {NAMELESS} if it is")


def _places(first: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns of a file without a header."""
    names = tuple(str(place) for place in range(1, len(first) + 1))
    return names, (f"no header: the columns are called 1 to {len(names)}",)


def column_names(header: list[str], source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns of a header, and a word where one had to be made up.

    Parameters
    ----------
    header : list of str
        The cells.
    source : str
        For messages.

    Returns
    -------
    names : tuple of str
        The names; columns without one are called by their place.
    notes : tuple of str
        Which were.

    Raises
    ------
    TableError
        If two columns have the same name.
    """
    given = [cell.strip() for cell in header]
    taken = set(given)
    names, notes = [], []
    seen: set[str] = set()
    for position, column in enumerate(given, 1):
        if not column:
            column = f"column {position}"
            while column in taken:
                column += "'"
            notes.append(f"column {position} has no name in the header: called {column!r}")
        if column in seen:
            raise TableError(f"{source}: two columns are called {shown(column)}; rename one")
        seen.add(column)
        names.append(column)
    return tuple(names), tuple(notes)


def decode_text(raw: bytes, name: str) -> str:
    """Decode UTF-8, or say in which line `name` is something else.

    Parameters
    ----------
    raw : bytes
        Content of the file.
    name : str
        Its name, for messages.

    Returns
    -------
    str
        The text, without a byte-order mark.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{name}, line {line}: byte {raw[error.start]:#04x} is not UTF-8; save it as UTF-8"
        ) from error
    if "\0" in text:
        raise TableError(f"{name} has NUL bytes: it is not a text file")
    return text
