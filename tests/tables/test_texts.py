"""Texts by the thousand: numbered as they come, packed, and encoded in any order."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from gdpa.tables import TableEncoder, read_table, table_of, texts
from gdpa.tables.codes import TextCode
from gdpa.tables.texts import Growing, PackedTexts, TextNumbers


@pytest.fixture
def soon(monkeypatch):
    """Texts are packed from the fiftieth on, in blocks of a few."""
    monkeypatch.setattr(texts, "MANY", 50)
    monkeypatch.setattr(texts, "BLOCK_CHARACTERS", 200)


def numbered(cells):
    """What numbering them by hand gives."""
    place: dict[str, int] = {}
    codes = [
        -1 if c.strip() in ("", "NA") else place.setdefault(c.strip(), len(place)) for c in cells
    ]
    return codes, list(place)


@pytest.mark.parametrize("different", [3, 60, 130, 700, 3000])
def test_texts_are_numbered_in_the_order_they_come(soon, different):
    rng = np.random.default_rng(different)
    forms = ("w{}", " w{}", "w{} ", "", "NA", "\u00fc\n{}", "\0{}\ud800")
    cells = [
        forms[k].format(v)
        for k, v in zip(rng.integers(0, 7, 4000), rng.integers(0, different, 4000), strict=True)
    ]
    numbers = TextNumbers()
    start = 0
    while start < len(cells):
        size = int(rng.integers(1, 90))
        numbers.add(cells[start : start + size], expected=2000)
        start += size
    codes, found = numbers.settle()
    assert (codes.tolist(), list(found)) == numbered(cells)
    assert isinstance(found, PackedTexts) == (len(found) > 50)
    assert codes.dtype.itemsize == 4 if len(found) > 50 else codes.dtype == np.int8


def test_packed_texts_are_a_sequence(soon):
    given = [f"{i} " * (i % 7) for i in range(300)]
    packed = PackedTexts(given)
    assert len(packed) == 300
    assert list(packed) == given
    assert packed[17] == given[17]
    assert packed[-1] == given[-1]
    assert packed[250:10:-7] == given[250:10:-7]
    assert packed.index(given[8]) == given.index(given[8])
    packed.append("one more")
    assert (packed[300], packed[0], len(packed)) == ("one more", given[0], 301)
    assert list(pickle.loads(pickle.dumps(packed))) == [*given, "one more"]
    for beyond in (301, -302):
        with pytest.raises(IndexError, match="of 301"):
            packed[beyond]


def test_arrays_grow_and_widen():
    grown = Growing("i1")
    grown.extend(np.arange(5, dtype=np.int8), expected=7)
    grown.extend(np.arange(200, dtype=np.int16))
    grown.extend(np.array([70_000], dtype=np.int32))
    assert grown.values().tolist() == [*range(5), *range(200), 70_000]


def test_features_of_texts_do_not_depend_on_how_they_are_kept(soon, monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    words = rng.choice([f"word{i}" for i in range(30)], (400, 4))
    rows = [" ".join(w) for w in words[rng.integers(0, 400, 900)]]
    rows[7] = ""
    data = {"note": rows, "n": rng.normal(size=900).tolist()}
    (tmp_path / "t.csv").write_text(
        "note,n\n" + "".join(f"{a},{b!r}\n" for a, b in zip(*data.values(), strict=True))
    )
    table = read_table(tmp_path / "t.csv")
    assert isinstance(table.column("note").texts, PackedTexts)
    monkeypatch.setattr("gdpa.tables.codes.BLOCK", 37)
    packed = TableEncoder().fit_transform(table)
    monkeypatch.setattr(texts, "MANY", 10_000)
    monkeypatch.setattr("gdpa.tables.codes.BLOCK", 10_000)
    whole = table_of(data)
    assert isinstance(whole.column("note").texts, list)
    assert packed.tobytes() == TableEncoder().fit_transform(whole).tobytes()
    code = TextCode.fit(["ab", "cd"], np.array([1, 1]), 1, 0)
    out = np.full((3, len(code.suffixes)), np.nan)
    code.write([], np.full(3, -1, dtype=np.int8), out)
    assert (out == 0).all()


def test_parquet_is_read_column_by_column(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = arrow.table(
        {"a.b": [1, 2, 3], "a": ["x", None, "y"], "flag": [True, None, False], "": [0.5, None, 1]}
    )
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=2)
    table = read_table(tmp_path / "t.parquet")
    assert table.names == ("a.b", "a", "flag", "column 4")
    cells = [column.cells() for column in table.columns]
    assert cells == [["1", "2", "3"], ["x", "", "y"], ["True", "", "False"], ["0.5", "", "1"]]
