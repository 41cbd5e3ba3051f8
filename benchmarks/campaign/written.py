"""Tables that are written and read back: the cells and the kinds of the columns are the same."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gdpa.cli.files import table_content
from gdpa.cli.models import first_columns
from gdpa.tables import TableEncoder, TableError, read_table
from gdpa.tables.write import table_bytes, typed_cells

from .outcome import CLEAR, RIGHT, generator, must, quiet, refused

WORDS = [
    "None", "NA", "nan", "n/a", "-", "?", "null", "", " ", "- item", "@user", "=1+1", "+3%", "-12%",
    "-0,13", "1,5", "007", "1.50", "1e3", "true", "a,b", 'say "x"', "l1\nl2", " padded ", "\u00fc",
    "'x", "2020-01-31", "31.12.1999", "0", "-1", "inf", "1_000", "1 000", "C+", "#N/A", "\ttab",
    "a;b", "a|b", "\u2028", "\U0001f600", "'a','b'", '""', "sep=;", "\u202ex", "l1\r\nl2",
    "\ufeffx",
]  # fmt: skip
NAMES = [
    "a", "a b", "\u00e4", "=x", "-1", "x;y", "a\tb", 'q"t', "1.5", "links", "Row", "prediction",
    "unsure", "known", "probability", "\u202ex", "<b>", "a,b", "'", "None",
]  # fmt: skip


def random_column(rng: np.random.Generator, n: int) -> list[str]:
    """Cells of one kind that people have in their files."""
    kind = int(rng.integers(8))
    if kind == 0:
        return [f"{v:.3f}" for v in rng.normal(size=n)]
    if kind == 1:
        return [f"{v:.2f}".replace(".", ",") for v in rng.normal(size=n)]
    if kind == 2:
        return [f"{v:+d}%" for v in rng.integers(-50, 50, n)]
    if kind == 3:
        return [f"20{y:02d}-0{m}-1{d}" for y, m, d in rng.integers(1, 9, (n, 3))]
    if kind == 4:
        return [str(v) if rng.random() < 0.8 else "NA" for v in rng.integers(-9, 99, n)]
    if kind == 5:
        return [repr(float(v)) for v in 10.0 ** rng.uniform(-300, 300, n)]
    few = rng.choice(WORDS, size=int(rng.integers(2, 8)))
    return [str(word) for word in rng.choice(few if kind == 6 else WORDS, size=n)]


def kinds(table: Any) -> list[str] | None:
    """The kind of each column; None if the table is refused."""
    try:
        return [plan.kind for plan in TableEncoder().fit(table).columns_]
    except TableError:
        return None


def run(seed: int) -> str:
    """One table."""
    rng = generator("written", seed)
    n, width = int(rng.integers(2, 30)), int(rng.integers(1, 6))
    names = ["id", *(str(name) for name in rng.choice(NAMES, size=width, replace=False))]
    columns = [[str(i) for i in range(n)], *(random_column(rng, n) for _ in range(width))]
    if rng.random() < 0.3:
        return typed(rng, names, n)
    rows = [names, *(list(row) for row in zip(*columns, strict=True))]
    delimiter = str(rng.choice([",", ";", "\t", "|"]))
    encoding = str(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))
    quoting = csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=quoting).writerows(rows)
    with quiet(), tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "t.csv", Path(folder) / "o.csv"
        path.write_bytes(text.getvalue().encode(encoding))
        given = {} if rng.random() < 0.5 else {"delimiter": delimiter}
        try:
            table = read_table(path, written=True, **given)
        except ValueError as error:
            return refused(error)
        if len(table.names) != len(names):
            # The delimiter was guessed from hostile cells; the note says which.
            must(not given and table.notes, "columns are lost without a word")
            return CLEAR
        made = [("prediction", ["=x"] * n), ("probability", np.full(n, 0.5))]
        columns_given = first_columns(table, True, None, None)
        content = table_content("csv", columns_given, made, escape=bool(rng.random() < 0.5))
        found = list(csv.reader(io.StringIO(content.decode(), newline="")))
        must([row[: len(names)] for row in found[1:]] == rows[1:], "cells are changed")
        must(len(found[0]) == len(names) + 2, "a column is lost or replaced")
        out.write_bytes(content)
        last = found[0][len(names) :]
        again = read_table(out, delimiter=",").without(list(last))
        must(kinds(again) == kinds(table), "columns are recognised as another kind")
    return RIGHT


def typed(rng: np.random.Generator, names: list[str], n: int) -> str:
    """Numbers and texts in a format that has types."""
    columns: dict[str, list[Any]] = {}
    for name in names:
        kind = int(rng.integers(3))
        if kind == 0:
            values: list[Any] = [int(v) for v in rng.integers(-(2**40), 2**40, n)]
        elif kind == 1:
            values = [float(v) + 0.5 for v in np.round(rng.normal(size=n), 6)]
        else:
            values = [str(w) for w in rng.choice([w for w in WORDS if w.strip() == w and w], n)]
            if len(set(values)) < 2:
                values[0] = "other"
        columns[name] = values
    format = str(rng.choice(["parquet", "feather", "jsonl", "excel"]))
    with quiet(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{'xlsx' if format == 'excel' else format}"
        try:
            path.write_bytes(table_bytes(format, columns))
            table = read_table(path, written=True)
        except ValueError as error:
            return refused(error)
        must(len(table.names) == len(names), f"columns of {format} are lost")
        for name, read in zip(names, table.columns, strict=True):
            if isinstance(columns[name][0], str):
                continue  # texts that stand for missing cells are blank as features
            # A worksheet has 15 digits of a number.
            digits = 1e-15 if format == "excel" else 0.0
            same = np.allclose(typed_cells(read), columns[name], rtol=digits, atol=0.0)
            must(same, f"numbers of {format} are changed")
        for name, shown in zip(names, table.names, strict=True):
            if isinstance(columns[name][0], str):
                texts = columns[name]
                if format == "excel":  # XML has one kind of line end
                    texts = [text.replace("\r\n", "\n") for text in texts]
                must(table.written_cells(shown) == texts, f"texts of {format} are changed")
    return RIGHT
