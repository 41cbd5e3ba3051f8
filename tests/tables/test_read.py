"""Tables from files: every format gives the same table; every broken file says what is wrong."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest

from gdpa.errors import MissingExtraError
from gdpa.tables import TableEncoder, TableError, read_table

CSV = "age,colour,height,kind\n31,red,1.5,a\n,blue,2.5,\n45,red,,b\n28,,3.5,a\n"


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def cells(table):
    return [column.cells() for column in table.columns]


EXPECTED = [
    ["31", "", "45", "28"],
    ["red", "blue", "red", ""],
    ["1.5", "2.5", "", "3.5"],
    ["a", "", "b", "a"],
]


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("t.csv", CSV, None),
        ("t.tsv", CSV.replace(",", "\t"), None),
        ("t.csv", CSV.replace(",", ";"), "delimiter is a semicolon"),
        ("t.csv", CSV.replace(",", "|"), "delimiter is a bar"),
        ("t.csv", "sep=;\n" + CSV.replace(",", ";"), "delimiter is a semicolon"),
        ("t.csv", "\ufeff" + CSV, None),
        ("t.csv", CSV.encode("utf-16"), "text in utf-16"),
        ("t.csv", CSV.replace("\n", "\r\n"), None),
        ("t.csv", CSV.replace("red", '"red"'), None),
        (
            "t.csv",
            CSV.replace("colour", "'colour'").replace("age,", "'age',"),
            "quote character is '",
        ),
        ("t.csv.gz", gzip.compress(CSV.encode(), mtime=0), None),
        ("t.csv.bz2", bz2.compress(CSV.encode()), None),
        ("t.txt.xz", lzma.compress(CSV.encode()), None),
        (
            "t.jsonl",
            '{"age": 31, "colour": "red", "height": 1.5, "kind": "a"}\n'
            '{"colour": "blue", "height": 2.5}\n\n'
            '{"age": 45, "colour": "red", "height": null, "kind": "b"}\n'
            '{"age": 28, "height": 3.5, "kind": "a"}\n',
            None,
        ),
    ],
)
def test_one_table_in_many_forms(tmp_path, name, content, word):
    table = read_table(write(tmp_path, name, content))
    assert table.names == ("age", "colour", "height", "kind")
    assert cells(table) == EXPECTED
    assert (word is None and table.notes == ()) or word in " ".join(table.notes)


def test_formats_of_other_libraries(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.read_csv(io.StringIO(CSV))
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_feather(tmp_path / "t.feather")
    (tmp_path / "parts").mkdir()
    frame[:1].to_parquet(tmp_path / "parts" / "a.parquet")
    frame[1:].to_parquet(tmp_path / "parts" / "b.parquet")
    for path in ("t.parquet", "t.feather", "parts"):
        assert cells(read_table(tmp_path / path)) == EXPECTED
    frame[["age"]].to_parquet(tmp_path / "parts" / "c.parquet")
    with pytest.raises(TableError, match=r"c\.parquet has different columns"):
        read_table(tmp_path / "parts")


def test_excel(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    pandas.read_csv(io.StringIO(CSV)).to_excel(tmp_path / "t.xlsx", index=False)
    assert cells(read_table(tmp_path / "t.xlsx")) == EXPECTED


def test_an_archive_of_one_file_is_that_file(tmp_path):
    for name, members in (("one.zip", ["t.csv"]), ("two.zip", ["t.csv", "u.csv"])):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(member, CSV)
    assert cells(read_table(tmp_path / "one.zip")) == EXPECTED
    with pytest.raises(TableError, match="holds 2 files; exactly one is needed"):
        read_table(tmp_path / "two.zip")


def test_a_compressed_bomb_is_refused_while_it_inflates(tmp_path, monkeypatch):
    import gdpa.tables.source

    monkeypatch.setattr(gdpa.tables.source, "SAFE_SIZE", 10_000)
    path = write(tmp_path, "t.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 200_000))
    with pytest.raises(TableError, match="inflates to more than 300 times its size"):
        read_table(path)


def test_another_encoding_is_found_and_said_with_its_line(tmp_path):
    path = write(tmp_path, "t.csv", "a,b\n1,x\n2,caf\u00e9\n".encode("latin-1"))
    table = read_table(path)
    assert table.column("b").cells() == ["x", "caf\u00e9"]
    assert "line 3 is not UTF-8" in table.notes[0]
    cyrillic = write(tmp_path, "c.csv", "a,b\n1,\u0434\u0430\n".encode("cp1251"))
    assert read_table(cyrillic, encoding="cp1251").column("b").cells() == ["\u0434\u0430"]
    with pytest.raises(TableError, match="encoding='cp9999' is not known"):
        read_table(cyrillic, encoding="cp9999")
    with pytest.raises(TableError, match="is not utf-8 text"):
        read_table(cyrillic, encoding="utf-8")


def test_a_column_that_turns_into_text_late_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr("gdpa.tables.csv_reader.BLOCK_BYTES", 64)
    lines = "".join(f"{i:03d},{i}\n" for i in range(100)) + "x1,100\n"
    table = read_table(write(tmp_path, "t.csv", "a,b\n" + lines))
    assert table.column("a").cells() == [f"{i:03d}" for i in range(100)] + ["x1"]
    assert table.column("b").texts is None


def test_points_are_thousands_where_another_column_has_decimal_commas(tmp_path):
    table = read_table(write(tmp_path, "t.csv", "a;b\n1,5;1.500\n2,25;2.000\n3;12.125\n"))
    X = TableEncoder(scale="none").fit_transform(table)
    assert X.tolist() == [[1.5, 1500.0], [2.25, 2000.0], [3.0, 12125.0]]


def test_npz_and_libsvm_bring_their_target(tmp_path):
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    np.savez(tmp_path / "t.npz", X=X, y=np.array(["p", "q"]))
    table = read_table(tmp_path / "t.npz")
    assert table.names == ("f1", "f2", "target")
    assert table.column("target").cells() == ["p", "q"]
    table = read_table(write(tmp_path, "t.libsvm", "1 1:1\n-1 2:2\n"))
    assert table.column("target").cells() == ["1", "-1"]
    assert np.column_stack([c.values for c in table.columns[:2]]).tolist() == X.tolist()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "\n\n", "is empty"),
        ("t.csv", "a,b\n", "has a header but no rows"),
        ("t.csv", "a,b\n1,2\n1,2,3\n", "line 3: 3 cells, the header has 2"),
        ("t.csv", 'a,b\n"1\n1",2\n1,2,3\n', "line 4: 3 cells, the header has 2"),
        ("t.csv", "a,a\n1,2\n", "two columns are named 'a'"),
        ("t.csv", "x" * 10_000 + ",b,b\n1,2,3\n", "two columns are named 'b'"),
        ("t.csv", ("x" * 10_000 + ",") * 2 + "\n1,2,3\n", r"are named 'x{57}\.\.\.'"),
        ("t.csv", "a\x1b[31m,a\x1b[31m\n1,2\n", r"named 'a\\x1b\[31m'"),
        ("t.csv", b"a,b\n\x00,2\n", "has NUL bytes"),
        ("t.csv.gz", "nonsense", "is not a readable gzip file"),
        (
            "t.csv.gz",
            gzip.compress(CSV.encode() * 50, mtime=0)[:-20],
            "is not a readable gzip file",
        ),
        ("t.jsonl", '{"a": 1}\n[1]\n', "line 2: a JSON object"),
        ("t.jsonl", '{"a": 1}\n{"a": \n', "line 2: not JSON"),
        ("t.parquet", "nonsense", "is not a readable Parquet file"),
        ("t.feather", "nonsense", "is not a readable Feather file"),
        ("t.npz", "nonsense", "is not a readable NPZ file"),
        ("t.libsvm", "a b c\n", "is not a readable LIBSVM file"),
        ("t.xyz", "a,b\n1,2\n", "file extension of .* is not known"),
    ],
)
def test_broken_files_are_refused(tmp_path, name, content, message):
    if name.endswith(("parquet", "feather")):
        pytest.importorskip("pyarrow")
    with pytest.raises(TableError, match=message):
        read_table(write(tmp_path, name, content))


def test_columns_without_a_name_are_called_by_their_place(tmp_path):
    table = read_table(write(tmp_path, "t.csv", ",column 3,,b\n0,1,2,3\n1,2,3,4\n"))
    assert table.names == ("column 1", "column 3", "column 3'", "b")
    assert "column 1 has no name" in table.notes[0]


def test_wrong_paths_and_options_are_refused(tmp_path):
    write(tmp_path, "data.csv", CSV)
    with pytest.raises(TableError, match=r"does not exist; did you mean 'data\.csv'"):
        read_table(tmp_path / "dta.csv")
    with pytest.raises(TableError, match="is a directory"):
        read_table(tmp_path, format="csv")
    with pytest.raises(TableError, match="accepted are a table file and a folder of Parquet"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="format='cvs'; did you mean 'csv'"):
        read_table(tmp_path / "data.csv", format="cvs")
    with pytest.raises(TableError, match="has no target 'kidn'; did you mean 'kind'"):
        read_table(tmp_path / "data.csv").column("kidn", "target")
    with pytest.raises(TableError, match="must be one character"):
        read_table(tmp_path / "data.csv", delimiter="::")


def test_npz_with_objects_is_refused_and_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    np.savez(tmp_path / "t.npz", X=np.array([[Trap()]], dtype=object))
    with pytest.raises(TableError, match="plain arrays"):
        read_table(tmp_path / "t.npz")


def test_a_missing_parquet_reader_names_the_extra(tmp_path, monkeypatch):
    import gdpa.errors

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(gdpa.errors.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"\.\[tables\]"):
        read_table(write(tmp_path, "t.parquet", "x"))


def test_a_first_line_of_data_is_doubted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("65,Female,0.7,1\n62,Male,10.9,2\n")
    assert any("looks like data, not like names" in note for note in read_table(path).notes)
    path.write_text("30,64,1,1\n30,62,3,1\n")
    with pytest.raises(TableError, match=r"two columns.*looks like data.*--no-header"):
        read_table(path)
    path.write_text("name,2020,weight\na,1,2\n")
    assert not any("looks like data" in note for note in read_table(path).notes)


def test_a_file_without_a_header_has_columns_called_by_their_place(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("5.1,3.5,setosa\n6.2,2.9,\n6.2,2.9,virginica\n")
    table = read_table(path, header=False)
    assert table.names == ("1", "2", "3")
    assert table.column("3").cells() == ["setosa", "", "virginica"]
    assert table.column("1").cells() == ["5.1", "6.2", "6.2"]
    assert "no header: the columns are named 1 to 3" in table.notes
    path.write_text("1,2\n3,4,5\n")
    with pytest.raises(TableError, match="line 2: 3 cells, the first line has 2"):
        read_table(path, header=False)
    with pytest.raises(TableError, match="is for CSV, not for jsonl"):
        read_table(write(tmp_path, "t.jsonl", '{"a": 1}'), header=False)


def test_cells_between_blanks(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("  5.1   3.5 \t 1e-3  1\n 62   2.9    4.7  2  \n\n7 8 9 1\n")
    table = read_table(path, header=False)
    assert [c.cells() for c in table.columns] == [
        ["5.1", "62", "7"],
        ["3.5", "2.9", "8"],
        ["0.001", "4.7", "9"],
        ["1", "2", "1"],
    ]
    assert "the delimiter is white space" in table.notes
    path.write_text("length width kind\n5.1 3.5 a\n6.2 2.9 b\n")
    assert read_table(path).names == ("length", "width", "kind")
    path.write_text('width  name\n3.5  "red rose"\n2.9  tulip\n')
    assert read_table(path, delimiter=" ").column("name").cells() == ["red rose", "tulip"]
    # Words between blanks are one text, as are rows of unequal length.
    for text in ("name\nanna smith\njohn miller\n", "n\n1 2\n1 2 3\n"):
        path.write_text(text)
        assert len(read_table(path).names) == 1


def test_an_encrypted_archive_is_refused(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("t.csv", CSV)
    raw = bytearray(buffer.getvalue())
    raw[6] |= 1  # the flag in both headers of the member
    raw[raw.find(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(TableError, match=r"is not a readable zip file.*encrypted"):
        read_table(write(tmp_path, "t.zip", bytes(raw)))


def test_an_index_beyond_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gdpa.memory.available_memory", lambda: 8 * 10**7)
    path = write(tmp_path, "t.libsvm", "1 100000:1\n-1 2:1\n")
    with pytest.raises(MemoryError, match="100000 columns needs about"):
        read_table(path)


def test_cells_longer_than_a_block_and_whole_numbers_beyond_floats(tmp_path):
    long = "x" * 3_000_000
    table = read_table(write(tmp_path, "t.csv", f"a,b\n1,{long}\n2,y\n"))
    assert table.column("b").cells() == [long, "y"]
    whole = "1" + "0" * 400
    table = read_table(write(tmp_path, "t.jsonl", f'{{"a": {whole}}}\n{{"a": 2}}\n'))
    assert table.column("a").cells() == [whole, "2"]


def test_the_target_is_kept_exactly_and_other_columns_are_trimmed(tmp_path):
    path = write(tmp_path, "t.csv", "a,y\n 007 , 007 \n7,7\n?, ? \n")
    table = read_table(path, target="y")
    assert table.column("a").cells() == ["7", "7", ""]
    assert table.column("y").cells() == [" 007 ", "7", " ? "]
    assert read_table(path, target="z").column("y").cells() == ["7", "7", ""]
    assert read_table(path, as_text=frozenset("y")).column("y").cells() == ["007", "7", ""]


def test_labels_of_libsvm_are_kept_exactly(tmp_path):
    path = write(tmp_path, "t.libsvm", "# none\n+1 1:1\n1234567 2:2 # x\n1234568 2:1\n")
    assert read_table(path).column("target").cells() == ["+1", "1234567", "1234568"]


@pytest.mark.parametrize("place", [(5000, 3000), (1_048_576, 16_384)])
def test_a_spreadsheet_of_two_cells_far_apart_is_refused(tmp_path, place):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active["A1"] = "a"
    book.active.cell(*place).value = 1
    book.save(tmp_path / "far.xlsx")
    with pytest.raises(TableError, match=f"{place[0]} rows and {place[1]} columns"):
        read_table(tmp_path / "far.xlsx")


@pytest.mark.slow
def test_a_far_cell_that_is_empty_does_no_harm(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, "x"], [2, "y"]):
        book.active.append(row)
    book.active.cell(1_048_576, 16_384).font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "t.xlsx")
    assert read_table(tmp_path / "t.xlsx").n_rows == 2


@pytest.mark.parametrize("index", [10**7, 10**8])
def test_a_lone_large_index_is_refused(tmp_path, index):
    (tmp_path / "t.svm").write_text(f"1 {index}:1\n0 1:1\n")
    with pytest.raises(TableError, match=f"the index {index} but only 2 values"):
        read_table(tmp_path / "t.svm")


def test_a_delimiter_inside_quoted_cells_does_not_count(tmp_path):
    # Commas would split these lines as evenly as tabs.
    path = write(tmp_path, "t.csv", 'id\t"a,b"\n0\t"-1,35"\n1\t"0,25"\n')
    table = read_table(path)
    assert table.names == ("id", "a,b")
    assert table.column("a,b").cells() == ["-1,35", "0,25"]
