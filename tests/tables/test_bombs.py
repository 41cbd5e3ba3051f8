"""Small files with huge tables are refused before their cells are allocated."""

from __future__ import annotations

import contextlib
import json
import re
import tracemalloc
import zipfile

import numpy as np
import pytest

from gdpa.tables import TableError, read_table
from gdpa.tables.arrow_sizes import batch_sizes

arrow = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = 40_000_000


def constant(n):
    """A column of n equal numbers that takes no memory here."""
    return arrow.chunked_array([arrow.array(np.zeros(1_000_000, np.int8))] * (n // 1_000_000))


def refused_cheaply(path, words):
    """Read a file that must be refused while less than 100 MB are allocated by Arrow and Python."""
    pool = arrow.default_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        with pytest.raises(TableError, match=words):
            read_table(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000_000
    assert pool.bytes_allocated() - before < 100_000_000


@pytest.mark.parametrize("suffix", ["feather", "parquet"])
def test_many_equal_rows_are_counted(tmp_path, suffix):
    table = arrow.table({f"c{j}": constant(ROWS) for j in range(4)})
    path = tmp_path / f"t.{suffix}"
    if suffix == "feather":
        feather.write_feather(table, path, compression="zstd", chunksize=ROWS)
    else:
        parquet.write_table(table, path, compression="zstd", row_group_size=ROWS)
    refused_cheaply(path, r"has 160,000,000 cells \(40,000,000 rows, 4 columns\)")


def test_long_texts_of_feather_are_counted(tmp_path):
    table = arrow.table({"s": arrow.array(["x" * 200_000] * 4000)})
    feather.write_feather(table, tmp_path / "t.feather", compression="zstd")
    refused_cheaply(tmp_path / "t.feather", "inflates to 800,0")


@pytest.mark.parametrize("suffix", ["feather", "parquet"])
@pytest.mark.parametrize("target", [None, "s"])
def test_a_long_text_in_every_row_is_stored_once(tmp_path, suffix, target):
    codes = arrow.array(np.arange(20_000, dtype=np.int32) % 2)
    texts = arrow.array(["x" * 200_000, " NA "])
    table = arrow.table({"s": arrow.DictionaryArray.from_arrays(codes, texts)})
    write = feather.write_feather if suffix == "feather" else parquet.write_table
    write(table, tmp_path / f"t.{suffix}")
    tracemalloc.start()
    try:
        column = read_table(tmp_path / f"t.{suffix}", target=target).column("s")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000
    assert list(column.texts) == ["x" * 200_000] + [" NA "] * (target is not None)
    assert column.values[:3].tolist() == [0, 1 if target else -1, 0]


def test_ordinary_parquet_texts_are_the_same_as_before(tmp_path):
    cells = ["b", " a ", None, "NA", "b", "a", ""] * 50
    parquet.write_table(arrow.table({"s": cells, "y": cells}), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", target="y", written=True)
    assert table.column("s").cells()[:7] == ["b", "a", "", "", "b", "a", ""]
    assert not table.column("s").declared
    assert list(table.column("s").texts) == ["b", "a"]
    assert table.column("y").cells()[:7] == ["b", " a ", "", "NA", "b", "a", ""]
    assert table.written_cells("s")[:7] == ["b", " a ", "", "NA", "b", "a", ""]


def test_json_lines_with_a_key_of_its_own_in_every_line(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps({f"k{i}": i}) for i in range(6000)))
    refused_cheaply(path, "different keys are 1,002,001 cells, of which only 1,001 have a value")
    path.write_text("\n".join(json.dumps({f"k{i % 40}": i, "y": "a"}) for i in range(40_000)))
    assert read_table(path).n_rows == 40_000  # many gaps, but most cells could be there


def test_a_workbook_that_inflates_is_refused(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/sharedStrings.xml", b"<sst>" + b" " * 1000)
        book.filelist[0].file_size = 2**31 - 1  # as the directory of a real bomb declares
    refused_cheaply(path, r"inflates to 2,147,483,647 bytes, more than 300 times")


def test_a_workbook_with_more_rows_than_a_sheet_has_is_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    openpyxl.Workbook().save(tmp_path / "good.xlsx")
    sheet = "xl/worksheets/sheet1.xml"
    with (
        zipfile.ZipFile(tmp_path / "good.xlsx") as good,
        zipfile.ZipFile(tmp_path / "evil.xlsx", "w", zipfile.ZIP_DEFLATED) as evil,
    ):
        for name in good.namelist():
            if name != sheet:
                evil.writestr(name, good.read(name))
        with evil.open(sheet, "w") as content:
            content.write(b"<worksheet><sheetData>")
            for _ in range(1100):
                content.write(b"<row><c><v>1</v></c></row>" * 1000)
            content.write(b"</sheetData></worksheet>")
    refused_cheaply(tmp_path / "evil.xlsx", "more than 1,048,576 rows")


def test_entities_of_a_workbook_are_not_expanded(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.active.append(["x", 1])
    book.save(tmp_path / "good.xlsx")
    entities = '<!ENTITY e0 "lol">' + "".join(
        f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 10)
    )
    changed = 0
    with (
        zipfile.ZipFile(tmp_path / "good.xlsx") as good,
        zipfile.ZipFile(tmp_path / "evil.xlsx", "w") as evil,
    ):
        for name in good.namelist():
            text = good.read(name).decode()
            if ">x<" in text:  # where the texts are depends on the version of openpyxl
                start = re.search(r"<(sst|worksheet)", text)
                text = text[start.start() :].replace(">x<", ">&e9;<")
                text = f"<!DOCTYPE {start[1]} [{entities}]>{text}"
                changed += 1
            evil.writestr(name, text)
    assert changed == 1
    refused_cheaply(tmp_path / "evil.xlsx", "has a document type, which is not accepted")


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_declared_sizes_of_feather_are_those_of_its_batches(tmp_path, compression):
    table = arrow.table({"a": list(range(10_000)), "s": ["abc", "d"] * 5000})
    feather.write_feather(table, tmp_path / "t.feather", compression=compression, chunksize=3000)
    with (tmp_path / "t.feather").open("rb") as stream:
        stream.seek(8)
        found = [
            batch_sizes(message.metadata.to_pybytes(), message.body)
            for message in arrow.ipc.MessageReader.open_stream(stream)
        ]
    assert sum(each.rows for each in found) == 10_000
    assert sum(each.n_bytes for each in found) >= table.nbytes - 64
    assert sum(each.n_bytes for each in found) <= table.nbytes + 10_000


def test_damaged_metadata_raise_an_error():
    rng = np.random.default_rng(0)
    for _ in range(300):
        with contextlib.suppress(ValueError):
            sizes = batch_sizes(rng.bytes(int(rng.integers(0, 80))), None)
            assert sizes.rows >= 0
    with pytest.raises(ValueError, match="damaged Arrow message"):
        batch_sizes(b"", None)
