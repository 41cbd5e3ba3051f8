"""How a text file is written, found by looking: its encoding, what separates cells, what quotes."""

from __future__ import annotations

import codecs
import csv
import io
import re
from itertools import islice

from .source import Source
from .table import TableError

__all__ = ["LOOK", "WORDS", "find_encoding", "find_marks"]

LOOK = 2**16  # characters that delimiter and quotes are found from
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
WORDS = {**DELIMITERS, " ": "blanks"}
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def find_encoding(source: Source) -> tuple[str, str]:
    """Encoding of a file, and a word about it where it is not UTF-8."""
    with source.open() as stream:
        head = stream.read(4096)
        for mark, name in MARKS:
            if head.startswith(mark):
                return name, "" if name == "utf-8-sig" else f"text in {name}"
        if b"\0" in head:
            even, odd = head[0::2].count(0), head[1::2].count(0)
            if min(even, odd) == 0 and max(even, odd) > len(head) // 4:
                name = "utf-16-le" if odd else "utf-16-be"
                return name, f"text in {name}"
            raise TableError(f"{source.name} has NUL bytes: it is not a text file")
        decoder = codecs.getincrementaldecoder("utf-8")()
        line, bad = 1, 0
        while head:
            try:
                decoder.decode(head)
            except UnicodeDecodeError as error:
                bad = error.start
                break
            line += head.count(b"\n")
            head = stream.read(2**20)
            if b"\0" in head:
                raise TableError(f"{source.name} has NUL bytes: it is not a text file")
        else:
            return "utf-8", ""
    line += head.count(b"\n", 0, bad)
    return "cp1252" if _fits(source, "cp1252") else "latin-1", (
        f"line {line} is not UTF-8: the text is read as Windows-1252; if names look wrong, say "
        "--encoding"
    )


def _fits(source: Source, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with source.open() as stream:
        try:
            while block := stream.read(2**20):
                decoder.decode(block)
        except UnicodeDecodeError:
            return False
    return True


def find_marks(head: str, delimiter: str | None) -> tuple[str, str]:
    """Delimiter and quote that cut the first lines into the most even rows."""
    if len(head) >= LOOK:  # the last line may be cut
        head = head[: head.rfind("\n") + 1] or head
    best: tuple[float, int, int] | None = None
    chosen = (delimiter or ",", '"')
    for rank, mark in enumerate([delimiter] if delimiter else list(DELIMITERS)):
        for quote in ("'", '"'):
            if quote == "'" and not _quoted(head, mark, quote):
                continue
            try:
                lines = csv.reader(io.StringIO(head, newline=""), delimiter=mark, quotechar=quote)
                widths = [len(row) for row in islice(lines, 200) if any(c.strip() for c in row)]
            except csv.Error:
                continue
            if not widths:
                continue
            even = sum(w == widths[0] for w in widths) / len(widths)
            score = (even if widths[0] > 1 else 0.0, widths[0], -rank)
            if best is None or score > best:
                best, chosen = score, (mark, quote)
    uneven = best is None or best[0] < 1.0
    return (" ", '"') if uneven and not delimiter and _by_blanks(head) else chosen


def _by_blanks(head: str) -> bool:
    """Whether lines are rows of cells between blanks: as many in all of them, mostly numbers."""
    rows = [line.split() for line in head.splitlines() if line.strip()][:200]
    if len(rows) < 2 or len(rows[0]) < 2 or {len(row) for row in rows} != {len(rows[0])}:
        return False
    cells = [cell for row in rows[1:] for cell in row]
    return 2 * sum(NUMBER.fullmatch(cell) is not None for cell in cells) >= len(cells)


def _quoted(head: str, mark: str, quote: str) -> bool:
    """Whether cells are put in these quotes: they open after a mark and close before one."""
    return f"{quote}{mark}{quote}" in head and f'"{mark}"' not in head
