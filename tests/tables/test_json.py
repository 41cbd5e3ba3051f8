"""JSON arrays, nested objects, texts line by line, and sheets of a workbook."""

from __future__ import annotations

import json

import pytest

from gdpa.tables import TableError, read_table


def cells(table):
    return {name: table.column(name).cells() for name in table.names}


def test_an_array_of_objects_is_a_table(tmp_path):
    rows = [{"a": 1, "b": "x"}, {"a": 2.5}, {"b": "z", "a": None}]
    (tmp_path / "t.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = cells(read_table(tmp_path / "t.json"))
    assert found == cells(read_table(tmp_path / "t.jsonl"))
    assert found == {"a": ["1", "2.5", ""], "b": ["x", "", "z"]}
    (tmp_path / "l.json").write_text("\n".join(map(json.dumps, rows)))  # lines under that name
    assert cells(read_table(tmp_path / "l.json")) == found


def test_nested_objects_are_columns_and_lists_are_text_with_a_word(tmp_path):
    rows = [{"a": {"b": 1, "c": {"d": "x"}}, "tags": ["u", 2]}, {"a": {"b": 2}, "tags": []}]
    (tmp_path / "t.json").write_text(json.dumps(rows))
    table = read_table(tmp_path / "t.json")
    assert cells(table) == {"a.b": ["1", "2"], "a.c.d": ["x", ""], "tags": ["u, 2", ""]}
    assert [note.split(":")[0] for note in table.notes] == ["column 'a'", "column 'tags'"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not JSON"),
        ("[1, 2]", "element 1: a JSON object"),
        ("[]", "is empty"),
        ('{"a": [1]', "line 1: not JSON"),
        ("[" * 100_000, "not JSON"),
        ('[{"a":' * 500 + "1" + "}]" * 500 + "]", "not JSON"),
    ],
)
def test_damaged_files_are_refused(tmp_path, text, message):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "t.json")


def test_one_text_per_line(tmp_path):
    (tmp_path / "t.txt").write_text("first, of two\n\n  second \n")
    assert cells(read_table(tmp_path / "t.txt", format="lines")) == {
        "text": ["first, of two", "second"]
    }


def test_a_sheet_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    with pandas.ExcelWriter(tmp_path / "t.xlsx") as book:
        pandas.DataFrame({"a": [1, 2]}).to_excel(book, sheet_name="one", index=False)
        pandas.DataFrame({"b": [3, 4]}).to_excel(book, sheet_name="two", index=False)
    assert read_table(tmp_path / "t.xlsx").names == ("a",)
    assert read_table(tmp_path / "t.xlsx", sheet="two").names == ("b",)
    with pytest.raises(TableError, match="has no sheet 'too' with cells; did you mean 'two'"):
        read_table(tmp_path / "t.xlsx", sheet="too")
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match="is for Excel, not for csv"):
        read_table(tmp_path / "t.csv", sheet="two")
