"""gdpa fit: what is wrong with a table is said in one line."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pytest

ROWS = "".join(f"{i},{i % 7},{'ab'[i % 2] if i < 10 else ''}\n" for i in range(30))


GOOD = "u,v,y\n" + ROWS


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty"]),
        ("u,v,y\n", ["a header but no rows"]),
        ("u,u,y\n1,2,a\n", ["two columns are named 'u'"]),
        ("u,v,y\n1,2,a\n1,2\n", ["line 3", "2 cells, the header has 3"]),
        ("u,v,z\n1,2,a\n", ["no target column 'y'", "Accepted"]),
        (
            "u,v,y\n" + ROWS.replace("a", "").replace("b", ""),
            ["no row has a label", "gdpa label", "--target 'y'"],
        ),
        ("u,v,y\n" + ROWS.replace("b", "a"), ["the only class is 'a'"]),
        (
            "u,v,y\n" + "".join(f"{i},0,{'ab'[i % 2]}\n" for i in range(9)),
            ["all 9 rows", "--model"],
        ),
        (GOOD.replace("\n29,", "\nmany,"), ["column 'u'", "row 30", "'many'"]),
        ("u,v,y\n" + "".join(f"{i},0,c{i}\n" for i in range(50)), ["50 distinct labels"]),
        (GOOD.replace("\n3,", "\n1" + "0" * 400 + ","), ["column 'u'", "row 4", "finite number"]),
        ("a\0b,y\n1,2\n", ["NUL"]),
    ],
)
def test_fit_says_what_is_wrong_with_a_table(refused, command, tmp_path, content, words):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(command("fit", path, "--target", "y", "--out", "p.csv"), *words)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


def test_target_not_found_names_the_nearest(refused, command, table):
    refused(command("fit", table, "--target", "anser"), "did you mean 'answer'?")


def test_missing_file_names_the_nearest_and_a_directory_is_none(refused, command, table, tmp_path):
    refused(command("fit", "row.csv", "-t", "y"), "does not exist", "did you mean 'rows.csv'?")
    refused(command("fit", tmp_path, "-t", "y", "--format", "csv"), "is a directory")


def test_only_close_names_are_suggested(refused, command, tmp_path):
    (tmp_path / "tmp-tae.csv").write_text(GOOD)
    ended = command("fit", "nope.csv", "-t", "y")
    refused(ended, "does not exist")
    assert "did you mean" not in ended.err
    ended = command("fit", "tmp-tae.csv", "-t", "species")
    refused(ended, "Accepted: u, v, y")
    assert "did you mean" not in ended.err


def test_thousands_of_categories_are_taken_as_text_with_a_word(command, tmp_path):
    drawn = np.random.default_rng(0).integers(0, 2, 3_000)
    known = ["ab"[c] if i % 50 == 0 else "" for i, c in enumerate(drawn)]
    lines = [f"{i % 5},{i},the word of number {i},k{i:x}q,{y}" for i, y in enumerate(known)]
    (tmp_path / "t.csv").write_text("u,v,text,code,y\n" + "\n".join(lines))
    ended = command("fit", "t.csv", "-t", "y", "--out", "p.csv")
    assert ended.code == 0
    assert "features of words and character n-grams" in ended.err
    assert "(3,000 distinct texts)" in ended.err
    assert "column 'code': left out: held-out labels are predicted no better with it" in ended.err
    assert "'v': left out: numbers the rows" in ended.err
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 3_001


def test_huge_integers_are_numbers(command, tmp_path):
    lines = [f"{10**60 + i * 10**59},{'ab'[i % 2] if i < 4 else ''}" for i in range(12)]
    (tmp_path / "t.csv").write_text("u,y\n" + "\n".join(lines))
    assert command("fit", "t.csv", "-t", "y", "--out", "p.csv", "-q").code == 0


def test_all_rows_labelled_makes_a_model(command, tmp_path):
    text = "u,y\n" + "".join(f"{i + 20 * (i % 2)},{'ab'[i % 2]}\n" for i in range(12))
    (tmp_path / "t.csv").write_text(text)
    assert command("fit", "t.csv", "-t", "y", "--model", "m.npz", "-q").code == 0
    (tmp_path / "new.csv").write_text("u\n5\n27\n")
    ended = command("predict", "m.npz", "new.csv", "-q")
    assert [line.split(",")[1] for line in ended.out.splitlines()] == ["prediction", "a", "b"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--method", "gdap"], ["method", "gdap"]),
        (["--id", "nme"], ["no --id column 'nme'", "did you mean 'name'?"]),
        (["--drop", "colr"], ["no column 'colr'"]),
        (["--delimiter", "ab"], ["one character"]),
        (["--format", "xls"], ["format='xls'"]),
    ],
)
def test_options_of_fit_are_checked(refused, command, table, args, words):
    refused(command("fit", table, "-t", "answer", *args), *words)


def test_a_missing_extra_of_a_format_is_named(refused, command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    refused(command("fit", "t.parquet", "-t", "y"), ".[tables]")


def test_a_file_of_numbers_between_blanks_without_a_header(command, tmp_path):
    rows = [
        f"{i % 2 * 9 + i / 50}   {i % 2 * 5 + i % 3}  {1 + i % 2 if i < 12 else '?'}"
        for i in range(40)
    ]
    (tmp_path / "data.txt").write_text("\n".join(rows) + "\n")
    fit = command(
        "fit",
        "data.txt",
        "--no-header",
        "--target",
        "3",
        "--unlabeled",
        "?",
        "--out",
        "p.csv",
        "--model",
        "m.gdpa",
        "--report",
        "r.html",
    )
    assert fit.code == 0, fit.err
    assert "no header: the columns are named 1 to 3" in fit.err
    assert "--no-header" in (tmp_path / "r.html").read_text()
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == [str(1 + i % 2) for i in range(40)]
    (tmp_path / "new.txt").write_text("0.1 1 ?\n9.2 6 ?\n")
    new = command("predict", "m.gdpa", "new.txt", "--no-header", "--out", "n.csv")
    assert new.code == 0, new.err
    lines = (tmp_path / "n.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == ["1", "2"]


def labels_of(path):
    """Label of every known row in a table of predictions."""
    with path.open(newline="") as lines:
        return [row["prediction"] for row in csv.DictReader(lines) if row["known"] == "yes"]


LABELS = [
    ("007", "7"),
    ("01234", "00501"),
    ("1.10", "1.1"),
    ("1.0", "1"),
    ("12345678901234567890", "12345678901234567891"),
    ("+1", "-1"),
    ("1e3", "1000"),
    ("0x10", "16"),
    ("TRUE", "true"),
    ("2020-01-01", "2020-1-1"),
    ("a", " a"),
    ("1,5", "1.5"),
]


@pytest.mark.slow
@pytest.mark.parametrize("pair", LABELS)
def test_a_label_is_in_the_output_what_it_was_in_the_file(command, tmp_path, pair):
    rows = [[i % 2 * 9 + i / 50, i % 3, pair[i % 2] if i < 12 else ""] for i in range(40)]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["u", "v", "y"], *rows])
    kind = ("--column", "y=text") if pair[0].isdigit() else ()
    ended = command("fit", "t.csv", "-t", "y", *kind, "--out", "p.csv", "--model", "m.npz", "-q")
    assert ended.code == 0, ended.err
    assert labels_of(tmp_path / "p.csv") == [pair[i % 2] for i in range(12)]
    ended = command("predict", "m.npz", "t.csv", "--out", "q.csv", "-q")
    assert ended.code == 0, ended.err
    with (tmp_path / "q.csv").open(newline="") as lines:
        assert {row["prediction"] for row in csv.DictReader(lines)} == set(pair)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.parquet", "t.xlsx", "t.jsonl"])
def test_labels_of_typed_files_keep_their_value(command, tmp_path, name):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip("openpyxl")
    cases = {"whole": (7, 12), "text": ("007", "7"), "flag": (True, False)}
    if name != "t.xlsx":  # a spreadsheet has 15 digits
        cases["long"] = (9007199254740993, 9007199254740992)
    frame = pandas.DataFrame({"u": [i % 2 * 9 + i / 50 for i in range(40)]})
    for label, pair in cases.items():
        cells = [pair[i % 2] if i < 12 else None for i in range(40)]
        kind = {"whole": "Int64", "long": "Int64", "flag": "boolean"}.get(label, object)
        frame["y"] = pandas.array(cells, dtype=kind)
        if name == "t.parquet":
            frame.to_parquet(tmp_path / name)
        elif name == "t.xlsx":
            frame.astype({"y": object}).to_excel(tmp_path / name, index=False)
        else:
            rows = [{"u": u, "y": y} for u, y in zip(frame["u"], cells, strict=True)]
            (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
        ended = command("fit", name, "-t", "y", "--out", "p.csv", "-q")
        assert ended.code == 0, ended.err
        assert labels_of(tmp_path / "p.csv") == [str(pair[i % 2]) for i in range(12)], label


def test_gaps_and_markers_of_the_target_are_unlabelled(command, tmp_path):
    marks = ["", " ", "-1.0", "-1.0"]
    rows = [f"{i % 2 * 9 + i / 50},{'ab'[i % 2] if i < 12 else marks[i % 4]}" for i in range(40)]
    (tmp_path / "t.csv").write_text("u,y\n" + "\n".join(rows))
    ended = command("fit", "t.csv", "-t", "y", "--unlabeled", "-1", "--out", "p.csv", "-q")
    assert ended.code == 0, ended.err
    assert labels_of(tmp_path / "p.csv") == ["ab"[i % 2] for i in range(12)]


def test_names_of_rows_are_not_rewritten(command, tmp_path):
    rows = [f"{i:03d},{i % 2 * 9 + i / 50},{'ab'[i % 2] if i < 12 else ''}" for i in range(40)]
    (tmp_path / "t.csv").write_text("id,u,y\n" + "\n".join(rows))
    assert command("fit", "t.csv", "-t", "y", "--id", "id", "--out", "p.csv", "-q").code == 0
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == [f"{i:03d}" for i in range(40)]
