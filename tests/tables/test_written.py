"""What is written is what was read: random tables with hostile cells, in every format."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from gdpa.cli.files import table_content
from gdpa.cli.models import first_columns
from gdpa.tables import TableEncoder, TableError, read_table, read_target, table_of
from gdpa.tables.write import table_bytes, typed_cells, written_format

pytest.importorskip("pyarrow")

WORDS = [
    "None", "NA", "nan", "n/a", "-", "?", "null", "", " ", "- item", "@user", "=1+1", "+3%", "-12%",
    "-0,13", "1,5", "007", "1.50", "1e3", "true", "a,b", 'say "x"', "l1\nl2", " padded ", "\u00fc",
    "'x", "2020-01-31", "31.12.1999", "0", "-1", "inf", "1_000", "1 000", "C+", "#N/A", "\ttab",
]  # fmt: skip


def random_column(rng, n):
    """Cells of one of the kinds that people have in their files."""
    kind = rng.integers(7)
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
    few = rng.choice(WORDS, size=rng.integers(2, 8))
    return [str(word) for word in rng.choice(few if kind == 5 else WORDS, size=n)]


def random_cells(rng):
    n, width = int(rng.integers(3, 15)), int(rng.integers(1, 6))
    # A first column of numbers: a row of blank cells would be an empty line.
    return {"n": [str(i) for i in range(n)]} | {
        f"c{j}": random_column(rng, n) for j in range(width)
    }


def kinds(table):
    """The kind of each column; None if the table is refused."""
    try:
        return [plan.kind for plan in TableEncoder().fit(table).columns_]
    except TableError:
        return None


def test_two_thousand_tables_come_out_as_they_went_in(tmp_path):
    rng = np.random.default_rng(0)
    recognised = 0
    for case in range(2000):
        cells = random_cells(rng)
        rows = [list(cells), *(list(row) for row in zip(*cells.values(), strict=True))]
        data, out = tmp_path / "t.csv", tmp_path / "o.csv"
        delimiter = ",;\t"[case % 3]
        with data.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=delimiter).writerows(rows)
        table = read_table(data, written=True, delimiter=delimiter)
        given = first_columns(table, True, None, None)
        made = [("prediction", ["=x"] * table.n_rows)]
        content = table_content("csv", given, made, escape=bool(case % 2))
        written = csv.reader(io.StringIO(content.decode(), newline=""))
        assert [row[:-1] for row in written] == rows
        if case % 10 == 0:  # the slow half: how each column is recognised
            out.write_bytes(content)
            again = read_table(out, delimiter=",").without(["prediction"])
            assert kinds(again) == kinds(table)
            recognised += kinds(table) is not None
    assert recognised > 50


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet", "feather", "excel", "jsonl"])
def test_every_format_is_read_back(tmp_path, format):
    if format == "excel":
        pytest.importorskip("openpyxl")
    columns = {"text": ["=1+1", "None", None], "n": [1, 2, 3], "x": [0.5, None, -1.25]}
    suffix = {"excel": "xlsx"}.get(format, format)
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(table_bytes(format, columns))
    table = read_table(path, target="text")
    assert table.column("text").cells() == ["=1+1", "None", ""]
    assert typed_cells(table.column("n")) == [1, 2, 3]
    assert typed_cells(table.column("x")) == [0.5, None, -1.25]
    assert written_format(path) == format


def test_a_worksheet_says_what_it_cannot_hold():
    pytest.importorskip("openpyxl")
    with pytest.raises(TableError, match="control characters"):
        table_bytes("excel", {"a": ["\x01"]})
    with pytest.raises(TableError, match="1048576 rows and 1 columns do not fit"):
        table_bytes("excel", {"a": [1] * 2**20})
    with pytest.raises(TableError, match=r"cannot be written as \.docx; accepted are \.csv"):
        written_format("x.docx")


# -- the same table in every format ------------------------------------------------------------


def labelled_table(rng):
    """A table of texts and numbers with a target of hostile words, some of them unknown."""
    n = 24
    classes = rng.choice([w for w in WORDS if w.strip()], size=3, replace=False).tolist()
    labels = [str(classes[i % 3]) if i < 15 else None for i in range(n)]
    words = rng.choice(WORDS, size=5).tolist()
    texts = [str(words[j]) for j in rng.integers(0, 5, n)]
    numbers = [float(v) if rng.random() < 0.9 else None for v in rng.normal(size=n).round(3)]
    # Numbered rows: a worksheet does not have empty rows at its end.
    return {"row": list(range(n)), "text": texts, "number": numbers, "y": labels}


def as_formats(cells, folder):
    """The table as CSV, Parquet and Excel files, and as frames of pandas and polars."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for name in ("csv", "parquet", "excel"):
        path = folder / f"t.{'xlsx' if name == 'excel' else name}"
        path.write_bytes(table_bytes(name, cells))
        yield name, read_table(path, target="y", delimiter="," if name == "csv" else None)
    yield "pandas", table_of(pd.DataFrame(cells), target="y")
    yield "polars", table_of(pl.DataFrame(cells), target="y")


def test_three_hundred_tables_are_the_same_in_every_format(tmp_path):
    pytest.importorskip("openpyxl")
    rng = np.random.default_rng(1)
    encoded = 0
    for _ in range(300):
        found = {}
        for name, table in as_formats(labelled_table(rng), tmp_path):
            try:
                labels, notes = read_target(table, "y")
                X = TableEncoder().fit(table.without(["y"])).transform(table.without(["y"]))
            except TableError as error:
                found[name] = str(error).split(": ", 1)[-1]
            else:
                found[name] = (labels.tolist(), notes, X.tolist())
        first = found["csv"]
        assert all(other == first for other in found.values()), found
        encoded += isinstance(first, tuple)
    assert encoded > 100


def test_predictions_are_the_same_in_every_format(tmp_path):
    pytest.importorskip("openpyxl")
    gdpa = pytest.importorskip("gdpa")
    rng = np.random.default_rng(2)
    compared = 0
    while compared < 3:
        predicted = {}
        for name, table in as_formats(labelled_table(rng), tmp_path):
            try:
                labels, _ = read_target(table, "y")
                model = gdpa.CommitteeClassifier(unlabeled=None).fit(table.without(["y"]), labels)
            except TableError:
                break
            predicted[name] = model.transduction_.tolist()
        else:
            assert all(other == predicted["csv"] for other in predicted.values())
            compared += 1


def test_the_files_hold_the_bytes_of_the_cells():
    text = table_bytes("csv", {"a": WORDS}).decode()
    assert [row[0] if row else "" for row in csv.reader(io.StringIO(text, newline=""))][1:] == WORDS
