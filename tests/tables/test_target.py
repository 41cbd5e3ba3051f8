"""The target: what is missing, what is suspicious, what is no class."""

from __future__ import annotations

import pytest

from gdpa.tables import TableError, read_target, table_of
from gdpa.tables.read import notes_on_rows


def table(cells):
    return table_of({"x": list(range(len(cells))), "y": cells}, "t.csv", target="y")


@pytest.mark.parametrize("word", ["", "  ", None, float("nan")])
def test_empty_cells_are_unknown_labels(word):
    labels, notes = read_target(table(["a", "b", word, "a"]), "y")
    assert labels.tolist() == ["a", "b", None, "a"]
    assert notes == ()


@pytest.mark.parametrize("word", ["None", "NA", "nan", "null", "?", "-", "N/A"])
def test_a_class_may_be_called_like_a_missing_value_and_a_line_says_so(word):
    labels, notes = read_target(table(["a", word, word, None]), "y")
    assert labels.tolist() == ["a", word, word, None]
    assert f"2 cells {word!r} are read as a class; use --unlabeled " in notes[0]
    labels, notes = read_target(table(["a", "b", word, None]), "y", unlabeled=word)
    assert labels.tolist() == ["a", "b", None, None]
    assert notes == ()


def test_a_marker_is_unknown_too_and_a_suspect_is_said():
    labels, notes = read_target(table(["a", "b", "unknown", ""]), "y")
    assert labels.tolist() == ["a", "b", "unknown", None]
    assert "1 cells 'unknown' are read as a class" in notes[0]
    labels, notes = read_target(table(["a", "b", "unknown", ""]), "y", unlabeled="unknown")
    assert labels.tolist() == ["a", "b", None, None]
    assert notes == ()
    labels, notes = read_target(table(["a", "b", None]), "y", unlabeled="zzz")
    assert "has the marker 'zzz'" in notes[0]


def test_numbers_are_classes_and_minus_one_can_mark():
    labels, notes = read_target(table([0.0, 1.0, 2.0, -1.0]), "y", complete=True)
    assert labels.tolist() == ["0", "1", "2", "-1"]
    assert "1 cells '-1' are read as a class" in notes[0]
    labels, _ = read_target(table([0.0, 1.0, -1.0]), "y", unlabeled="-1.0")
    assert labels.tolist() == ["0", "1", None]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["", None], "no row has a label"),
        (["a", "a", ""], "the only class is 'a'"),
        (["a", "b"], "all 2 rows have a label"),
        ([f"c{i}" for i in range(30)] + [""], "30 distinct labels in 30 labelled rows"),
    ],
)
def test_targets_that_cannot_be_used(cells, message):
    with pytest.raises(TableError, match=message):
        read_target(table(cells), "y")


@pytest.mark.parametrize(
    ("values", "measured"),
    [
        ([f"{i / 10:.1f}" for i in range(30)], True),
        ([str(46 + 3 * i) for i in range(40)], True),
        ([str(18 + i) for i in range(50)], True),  # ages
        ([str(i) for i in range(1, 6)], False),  # ratings
        ([str(i / 2) for i in range(1, 11)], False),  # half stars
        ([str(i) for i in range(100)], False),  # numbered classes
        ([str(i) for i in range(1, 101, 2)], False),  # half of them
        ([f"class {i}" for i in range(50)], False),
    ],
)
def test_a_measurement_is_no_class(values, measured):
    cells = [*values, *values, *values, None]
    if measured:
        with pytest.raises(TableError, match="look like a measurement, and gdpa predicts classes"):
            read_target(table(cells), "y")
        labels, _ = read_target(table(cells), "y", numbers_are_classes=True)
    else:
        labels, _ = read_target(table(cells), "y")
    assert labels.tolist() == cells


def test_labels_that_differ_in_case_are_named():
    _, notes = read_target(table(["yes", "Yes", "YES", "no", "yes", None]), "y")
    assert notes == ("target column 'y': 'YES' (1), 'Yes' (1), 'yes' (2) differ only in case",)


def test_equal_rows_are_counted():
    rows = {
        "a": [1.0, 2.0, 1.0, -0.0, 0.0, None, None, 7.0],
        "b": ["x", "x", "x", "y", "y", "", "", "q"],
    }
    columns = table_of(rows, "t.csv")
    assert notes_on_rows(columns, [None] * 8) == ["3 rows repeat an earlier row"]
    labels = ["u", "u", "v", "u", "u", None, "u", None]
    assert notes_on_rows(columns, labels) == [
        "3 rows repeat an earlier row",
        "2 labelled rows equal a row with another label; the first is row 1",
    ]
    assert notes_on_rows(table_of({"a": [1.0, 2.0]}, "t"), ["u", None]) == []
