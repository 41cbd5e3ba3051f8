"""Tables: every format gives the same features; every broken file says what is wrong with it."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from gdpa.errors import MissingExtraError
from gdpa.tables import FeatureEncoder, TableError, read_table

CSV = "age,colour,height,kind\n31,red,1.5,a\n,blue,2.5,\n45,red,,b\n28,,3.5,a\n"


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_csv_tsv_and_parquet_are_the_same_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.StringIO(CSV))
    frame.to_parquet(tmp_path / "t.parquet")
    tables = [
        read_table(write(tmp_path, "t.csv", CSV)),
        read_table(write(tmp_path, "t.tsv", CSV.replace(",", "\t"))),
        read_table(write(tmp_path, "s.csv", CSV.replace(",", ";")), delimiter=";"),
        read_table(tmp_path / "t.parquet"),
    ]
    encoded = []
    for table in tables:
        encoder = FeatureEncoder.fit(table.without(["kind"]))
        assert encoder.feature_names == ("age", "colour=blue", "colour=red", "height")
        encoded.append(encoder.transform(table)[0])
    expected = [[31, 0, 1, 1.5], [31, 1, 0, 2.5], [45, 0, 1, 2.5], [28, 0, 0, 3.5]]
    for X in encoded:
        assert X.tolist() == expected  # medians of 28, 31, 45 and of 1.5, 2.5, 3.5


def test_npz_and_libsvm_bring_their_target(tmp_path):
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    np.savez(tmp_path / "t.npz", X=X, y=np.array(["p", "q"]))
    table = read_table(tmp_path / "t.npz")
    assert table.names == ("f1", "f2", "target")
    assert table.column("target").tolist() == ["p", "q"]
    table = read_table(write(tmp_path, "t.libsvm", "1 1:1\n-1 2:2\n"))
    assert table.column("target").tolist() == ["1", "-1"]
    assert np.column_stack(table.columns[:2]).tolist() == X.tolist()


def test_notes_say_what_was_imputed_and_left_out(tmp_path):
    many = "\n".join(f"id-{i},{i},x" for i in range(300))
    table = read_table(write(tmp_path, "t.csv", "id,v,empty\n" + many.replace("x", "")))
    encoder = FeatureEncoder.fit(table)
    assert encoder.feature_names == ("v",)
    assert any("'id' has 300 different texts" in note for note in encoder.notes)
    assert any("'empty' is empty" in note for note in encoder.notes)
    gaps = FeatureEncoder.fit(read_table(write(tmp_path, "g.csv", CSV)))
    assert any("'age': 1 missing cells filled with the median (31)" in n for n in gaps.notes)


def test_an_encoder_survives_json(tmp_path):
    table = read_table(write(tmp_path, "t.csv", CSV))
    encoder = FeatureEncoder.fit(table)
    again = FeatureEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert np.array_equal(encoder.transform(table)[0], again.transform(table)[0])
    for broken in ({}, {"columns": [3]}, {"columns": [{"kind": "number", "median": "x"}]}):
        with pytest.raises(ValueError, match=r"description"):
            FeatureEncoder.from_dict(broken)


def test_new_rows_may_have_unseen_categories_but_not_text_for_numbers(tmp_path):
    encoder = FeatureEncoder.fit(read_table(write(tmp_path, "t.csv", CSV)))
    new = read_table(write(tmp_path, "n.csv", "kind,height,colour,age\na,1,green,3\n"))
    X, notes = encoder.transform(new)
    assert X[0, 1:3].tolist() == [0, 0]
    assert "1 cells have a category not seen before" in notes[0]
    with pytest.raises(TableError, match="'tall' is not a finite number"):
        encoder.transform(
            read_table(write(tmp_path, "w.csv", "kind,height,colour,age\na,tall,r,3"))
        )
    with pytest.raises(TableError, match="has no column 'age'"):
        encoder.transform(read_table(write(tmp_path, "m.csv", "kind,height,colour\na,1,red\n")))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "\n\n", "is empty"),
        ("t.csv", "a,b\n", "has a header and no rows"),
        ("t.csv", "a,b\n1,2\n1,2,3\n", "line 3: 3 cells where the header has 2"),
        ("t.csv", "a;b\n1;2\n", "its header has semicolons: set the delimiter to ';'"),
        ("t.csv", "a,a\n1,2\n", "two columns are called 'a'"),
        ("t.csv", "a,\n1,2\n", "column 2 has no name"),
        ("t.csv", b"a,b\n1,2\n\xe9,2\n", "line 3: byte 0xe9 is not UTF-8"),
        ("t.csv", b"a,b\n\x00,2\n", "has NUL bytes"),
        ("t.parquet", "nonsense", "is not a readable Parquet file"),
        ("t.npz", "nonsense", "is not a readable NPZ file"),
        ("t.libsvm", "a b c\n", "is not a readable LIBSVM file"),
        ("t.xyz", "a,b\n1,2\n", "does not tell its format"),
    ],
)
def test_broken_files_are_refused(tmp_path, name, content, message):
    with pytest.raises(TableError, match=message):
        read_table(write(tmp_path, name, content))


def test_wrong_paths_and_options_are_refused(tmp_path):
    write(tmp_path, "data.csv", CSV)
    with pytest.raises(TableError, match=r"does not exist; did you mean 'data\.csv'"):
        read_table(tmp_path / "dta.csv")
    with pytest.raises(TableError, match="is a directory"):
        read_table(tmp_path, format="csv")
    with pytest.raises(TableError, match="format='cvs'; did you mean 'csv'"):
        read_table(tmp_path / "data.csv", format="cvs")
    with pytest.raises(TableError, match="has no target 'kidn'; did you mean 'kind'"):
        read_table(tmp_path / "data.csv").column("kidn", "target")
    with pytest.raises(TableError, match="must be one character"):
        read_table(tmp_path / "data.csv", delimiter="::")


def test_columns_that_mix_numbers_and_text_name_the_cell(tmp_path):
    rows = "\n".join(["v", *map(str, range(50)), "4o", *map(str, range(20))])
    with pytest.raises(TableError, match="70 cells are numbers, but row 51 has '4o'"):
        FeatureEncoder.fit(read_table(write(tmp_path, "t.csv", rows)))
    with pytest.raises(TableError, match="row 2: the value is infinite"):
        FeatureEncoder.fit(read_table(write(tmp_path, "i.csv", "v\n1\ninf\n")))
    with pytest.raises(TableError, match="has no usable feature column"):
        FeatureEncoder.fit(read_table(write(tmp_path, "e.csv", "v,w\n,\n,\n")))


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
    with pytest.raises(MissingExtraError, match=r"gdpa\[parquet\]"):
        read_table(write(tmp_path, "t.parquet", "x"))


def test_huge_integers_keep_their_size(tmp_path):
    table = read_table(write(tmp_path, "t.csv", "v\n123456789012345678901234567890\n1\n"))
    X, _ = FeatureEncoder.fit(table).transform(table)
    assert X[0, 0] == 123456789012345678901234567890.0
