"""The same cells give the same features whichever library or file holds them."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.errors import MissingExtraError
from gdpa.tables import TableEncoder, TableError, is_frame, read_table, table_of

FORMS = ("mapping", "pandas", "polars", "arrow", "csv", "parquet", "feather", "polars parquet")


@pytest.fixture(scope="module")
def features(tmp_path_factory, make_mixed):
    """Features of one mixed table in every form."""
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("forms")
    rows = make_mixed()
    frame = pandas.DataFrame(rows)
    frame["ordered"] = pandas.Categorical(
        frame["size"], categories=["low", "medium", "high"], ordered=True
    )
    frame["maybe"] = frame["flag"].astype("boolean")
    frame.loc[7, ["ordered", "maybe", "when"]] = None
    rows = {name: frame[name] for name in frame.columns}
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    frame.to_feather(folder / "t.feather")
    polar = polars.from_pandas(frame)
    polar.write_parquet(folder / "p.parquet")
    given = {
        "mapping": rows,
        "pandas": frame,
        "polars": polar,
        "arrow": arrow.Table.from_pandas(frame),
        "csv": read_table(folder / "t.csv"),
        "parquet": read_table(folder / "t.parquet"),
        "feather": read_table(folder / "t.feather"),
        "polars parquet": read_table(folder / "p.parquet"),
    }
    return {form: TableEncoder().fit_transform(table) for form, table in given.items()}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(FORMS, 2)))
def test_forms_agree_to_the_last_bit(features, first, second):
    assert np.array_equal(features[first], features[second])


def test_what_is_a_frame():
    assert is_frame({"a": [1]})
    assert not is_frame({})
    assert not is_frame([[1.0]])
    assert not is_frame(sp.dok_array((2, 2)))
    assert not is_frame(np.zeros((2, 2)))
    pandas = pytest.importorskip("pandas")
    assert is_frame(pandas.DataFrame({"a": [1]}))
    assert not is_frame(pandas.Series([1]))


def test_frames_that_cannot_be_used():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TableError, match="two columns are named 'a'"):
        table_of(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(TableError, match="has no rows"):
        table_of(pandas.DataFrame({"a": []}))
    with pytest.raises(TableError, match="different lengths"):
        table_of({"a": [1], "b": [1, 2]})
    with pytest.raises(TableError, match="a list as a cell"):
        table_of(pandas.DataFrame({"a": [[1], [2]]}))
    with pytest.raises(TableError, match="complex"):
        table_of({"a": np.array([1j])})
    polars = pytest.importorskip("polars")
    with pytest.raises(TableError, match="collect"):
        table_of(polars.DataFrame({"a": [1]}).lazy())


def test_types_of_other_libraries():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    table = table_of(
        pandas.DataFrame(
            {
                "nullable": pandas.array([1, None, 3], dtype="Int64"),
                "zone": pandas.date_range("2020-01-01", periods=3, tz="Europe/Paris"),
                "span": pandas.to_timedelta([1, 2, None], unit="s"),
                "objects": [1, None, 2.5],
                "text": ["a", None, "b"],
                "bytes": [b"a", b"b", None],
            }
        )
    )
    assert table.column("nullable").cells() == ["1", "", "3"]
    assert table.column("zone").cells()[0] == "2019-12-31T23:00:00"
    assert table.column("span").cells() == ["1", "2", ""]
    assert table.column("objects").cells() == ["1", "", "2.5"]
    assert table.column("text").cells() == ["a", "", "b"]
    assert table.column("bytes").cells() == ["a", "b", ""]
    frame = polars.DataFrame(
        {
            "enum": polars.Series(["b", "a", None], dtype=polars.Enum(["b", "a"])),
            "categorical": polars.Series(["b", "a", None], dtype=polars.Categorical),
            "date": polars.Series(["2020-01-01", None, "2020-01-03"]).str.to_date(),
            "int": polars.Series([1, None, 3]),
        }
    )
    table = table_of(frame)
    assert table.column("enum").ordered
    assert table.column("enum").texts == ["b", "a"]
    assert table.column("categorical").cells() == ["b", "a", ""]
    assert table.column("date").cells() == ["2020-01-01", "", "2020-01-03"]
    assert table.column("int").cells() == ["1", "", "3"]


def test_a_list_of_numpy_scalars_is_a_column_of_numbers():
    table = table_of(
        {
            "x": [np.float64(0.5), None, np.float32(2.0)],
            "n": [np.int64(1), np.int8(2), 3],
            "b": [np.True_, np.False_, None],
            "s": [np.str_("a"), "b", None],
        }
    )
    x, n, b, s = table.columns
    np.testing.assert_array_equal(x.values, [0.5, np.nan, 2.0])
    np.testing.assert_array_equal(n.values, [1.0, 2.0, 3.0])
    assert b.texts == ["False", "True"]
    assert s.texts == ["a", "b"]


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow"])
def test_rows_in_blocks_are_encoded_as_all_at_once(form, make_mixed, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_mixed())
    encoder = TableEncoder().fit(frame)
    later = pandas.DataFrame(make_mixed(seed=1))
    later.loc[[10, 200, 290], "colour"] = ["pink", "grey", "pink"]
    convert = {
        "pandas": lambda frame: frame,
        "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
        "arrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(frame),
    }[form]
    whole, notes = encoder.encode(convert(later))
    monkeypatch.setattr("gdpa.tables.frames.BLOCK_ROWS", 70)
    parts, again = encoder.encode(convert(later))
    assert np.array_equal(whole, parts)
    assert notes == again == ("column 'colour': 3 cells have an unknown category",)
    later["number"] = later["number"].astype(str)
    later.loc[250, "number"] = "wet"
    with pytest.raises(TableError, match="column 'number', row 251: 'wet' is not a finite number"):
        encoder.encode(convert(later))


def test_a_missing_library_names_the_extra(monkeypatch, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.5, 2.5]})
    (tmp_path / "t.csv").write_text("a\n1.5\n")
    monkeypatch.setitem(sys.modules, "narwhals", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"'narwhals'.*\.\[tables\]"):
        table_of(frame)
    with pytest.raises(MissingExtraError, match=r"'pyarrow.*\.\[tables\]"):
        read_table(tmp_path / "t.csv")
    columns = {"a": frame["a"].to_numpy(), "b": ["x", None], "c": range(2)}
    assert table_of(columns).column("b").cells() == ["x", ""]  # arrays and lists need nothing
