"""Everything that can be wrong with what the user gives: exit code 2 and one line that helps."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

ROWS = "".join(f"{i},{i % 7},{'ab'[i % 2] if i < 10 else ''}\n" for i in range(30))
GOOD = "u,v,y\n" + ROWS


def refused(ended, *words):
    assert ended.code == 2, ended.err
    line = [text for text in ended.err.splitlines() if "error:" in text]
    assert len(line) == 1
    for word in words:
        assert word in line[0]
    assert "Traceback" not in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty"]),
        ("u,v,y\n", ["a header and no rows"]),
        ("u,u,y\n1,2,a\n", ["two columns are called 'u'"]),
        ("u,v,y\n1,2,a\n1,2\n", ["line 3", "2 cells where the header has 3"]),
        ("u,v,z\n1,2,a\n", ["no target column 'y'", "Accepted"]),
        ("u,v,y\n" + ROWS.replace("a", "").replace("b", ""), ["no row has a label"]),
        ("u,v,y\n" + ROWS.replace("b", "a"), ["the only class is 'a'"]),
        (
            "u,v,y\n" + "".join(f"{i},0,{'ab'[i % 2]}\n" for i in range(9)),
            ["all 9 rows", "--model"],
        ),
        (GOOD.replace("\n29,", "\nmany,"), ["column 'u'", "row 30", "'many'"]),
        ("u,v,y\n" + "".join(f"{i},0,c{i}\n" for i in range(50)), ["50 different labels"]),
        (GOOD.replace("\n3,", "\n1" + "0" * 400 + ","), ["column 'u'", "row 4", "infinite"]),
        ("a\0b,y\n1,2\n", ["NUL"]),
    ],
)
def test_fit_says_what_is_wrong_with_a_table(command, tmp_path, content, words):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(command("fit", path, "--target", "y", "--out", "p.csv"), *words)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


def test_target_not_found_names_the_nearest(command, table):
    refused(command("fit", table, "--target", "anser"), "did you mean 'answer'?")


def test_missing_file_names_the_nearest_and_a_directory_is_none(command, table, tmp_path):
    refused(command("fit", "row.csv", "-t", "y"), "does not exist", "did you mean 'rows.csv'?")
    refused(command("fit", tmp_path, "-t", "y", "--format", "csv"), "is a directory")


def test_thousands_of_categories_are_taken_as_text_with_a_word(command, tmp_path):
    lines = [f"{i % 5},{i},word of {i},{'ab'[i % 2] if i < 20 else ''}" for i in range(3_000)]
    (tmp_path / "t.csv").write_text("u,v,text,y\n" + "\n".join(lines))
    ended = command("fit", "t.csv", "-t", "y", "--out", "p.csv")
    assert ended.code == 0
    assert "'text' has 3,000 different texts: taken as text" in ended.err
    assert "'v' is left out: numbers the rows" in ended.err
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


def test_outputs_that_cannot_be_written_are_refused_before_the_work(command, table, tmp_path):
    fit = ("fit", table, "-t", "answer")
    refused(command(*fit, "--out", tmp_path), "--out", "is a folder")
    refused(command(*fit, "--model", "no/such/folder/m.npz"), "--model", "cannot be written")
    refused(command(*fit, "--out", table), "would overwrite the input")
    refused(command(*fit, "--out", "x", "--report", "x"), "--report", "already the file")
    refused(command(*fit, "--model", "-"), "--model", "needs a file name")
    refused(command("demo", "--out", table / "below.html"), "cannot be written")
    if os.geteuid():
        (tmp_path / "locked").mkdir(mode=0o500)
        refused(command(*fit, "--out", "locked/p.csv"), "Permission denied")


def test_a_link_is_replaced_not_followed(command, table, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.csv").write_text("precious")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "p.csv").symlink_to(outside / "precious.csv")
    (folder / "m.npz").symlink_to(outside / "new.npz")
    ended = command(
        *("fit", table, "-t", "answer", "--id", "name", "-q"),
        *("--out", folder / "p.csv", "--model", folder / "m.npz"),
    )
    assert ended.code == 0
    assert (outside / "precious.csv").read_text() == "precious"
    assert [p.name for p in outside.iterdir()] == ["precious.csv"]
    assert not (folder / "p.csv").is_symlink()
    assert (folder / "p.csv").read_text().startswith("name,prediction")


def test_a_device_is_written_to_not_replaced(command, table):
    assert (
        command("fit", table, "-t", "answer", "--id", "name", "-q", "--out", os.devnull).code == 0
    )
    assert os.path.exists(os.devnull)
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--rescale", "minmx"], ["--rescale 'minmx'", "minmax"]),
        (["--method", "gdap"], ["method", "gdap"]),
        (["--id", "nme"], ["no --id column 'nme'", "did you mean 'name'?"]),
        (["--drop", "colr"], ["no column 'colr'"]),
        (["--delimiter", "ab"], ["one character"]),
        (["--format", "xls"], ["format='xls'"]),
    ],
)
def test_options_of_fit_are_checked(command, table, args, words):
    refused(command("fit", table, "-t", "answer", *args), *words)


# -- graphs ---


@pytest.mark.parametrize(
    ("edges", "labels", "words"),
    [
        ("a,b,1\na,b,2\n", "a,x\nb,y\n", ["more than once"]),
        ("a,b,-1\n", "a,x\nb,y\n", ["edges.csv", "negative"]),
        ("a,b,one\nb,c,two\n", "a,x\n", ["weight 'two' is not a number"]),
        ("a,b,1\nb\n", "a,x\n", ["line 2", "1 cells"]),
        ("source,target\n", "a,x\n", ["no edges"]),
        ("a,b,1\n", "a,x\nz,y\n", ["no node 'z'"]),
        ("a,b,1\n", "a,x\na,y\n", ["the node a twice"]),
        ("a,b,1\n", "a,x\n", ["one class only ('x')"]),
        ("a,b,1\nb,c,1\n", "a,x\nb,y\nc,z\n", ["3 classes"]),
        ("a,b,1\n", "x\ny\nx\n", ["3 lines and the graph has 2 nodes"]),
        ("a,b,1\n", "a,\nb,\n", ["has no label"]),
    ],
)
def test_solve_says_what_is_wrong_with_a_graph(command, tmp_path, edges, labels, words):
    (tmp_path / "edges.csv").write_text(edges)
    (tmp_path / "labels.csv").write_text(labels)
    refused(command("solve", "edges.csv", "--labels", "labels.csv"), *words)


def test_options_of_methods_are_checked(command, graph):
    solve = ("solve", graph[0], "--labels", graph[1])
    refused(command(*solve, "--method", "gdpaa"), "did you mean 'gdpa'?")
    refused(command(*solve, "--option", "tool=1"), "no option 'tool'")
    refused(command(*solve, "--option", "tol"), "NAME=VALUE")
    refused(command(*solve, "--laplacian", "norm"), "laplacian")


def test_a_labelling_with_gaps_or_other_labels_is_no_labelling(command, graph, tmp_path):
    certify = ("certify", graph[0], "--labels", graph[1], "--labeling", "l.csv")
    (tmp_path / "l.csv").write_text("a,left\nb,left\n")
    refused(command(*certify), "no label for 4 nodes")
    (tmp_path / "l.csv").write_text("".join(f"{n},{'up'}\n" for n in "abcdef"))
    refused(command(*certify), "has the label 'up'")
    (tmp_path / "l.csv").write_text("".join(f"{n},right\n" for n in "abcdef"))
    refused(command(*certify), "known label")


# -- models ---


@pytest.fixture
def model(command, table):
    assert command("fit", table, "-t", "answer", "--id", "name", "--model", "m.npz", "-q").code == 0
    return table.parent / "m.npz"


def rewritten(path, change, monkeypatch=None, version=None):
    """The model with something changed and a valid checksum."""
    from gdpa.classifier import storage

    arrays, meta = storage.read_file(path)
    meta = {k: v for k, v in meta.items() if k not in ("format", "version")}
    change(arrays, meta)
    if version is not None:
        monkeypatch.setattr(storage, "VERSION", version)
    storage.write_file(path, arrays, meta)
    if version is not None:
        monkeypatch.undo()


def test_a_model_of_a_newer_version_is_refused(command, model, table, monkeypatch):
    rewritten(model, lambda arrays, meta: None, monkeypatch, version=99)
    refused(command("predict", model, table), "version 99", "install a newer gdpa")


def test_a_damaged_model_is_refused(command, model, table):
    raw = bytearray(model.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    model.write_bytes(bytes(raw))
    refused(command("query", model), "damaged")


class Bomb:
    """What a hostile pickle would hold: it runs code when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_a_model_file_cannot_run_code(command, table, tmp_path):
    np.savez(tmp_path / "evil.npz", json=np.array([Bomb(tmp_path / "ran")], dtype=object))
    refused(command("predict", "evil.npz", table), "evil.npz")
    import pickle

    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    refused(command("query", "pickle.npz"), "pickle.npz")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, meta: arrays["W_indices"].__setitem__(0, 10**6),
        lambda arrays, meta: arrays["W_indptr"].__setitem__(1, 10**6),
        lambda arrays, meta: arrays.pop("scores"),
        lambda arrays, meta: meta["extra"]["table"]["encoder"].update(columns=[{"kind": "number"}]),
        lambda arrays, meta: meta["extra"]["table"].update(ids=["one"]),
        lambda arrays, meta: meta["extra"]["table"].update(sure=7),
        lambda arrays, meta: meta["extra"].update(table=[]),
        lambda arrays, meta: meta.pop("params"),
    ],
)
def test_a_forged_model_is_refused_not_followed(command, model, table, change):
    rewritten(model, change)
    refused(command("predict", model, table), "m.npz")


def test_predict_needs_the_columns_of_fit(command, model, tmp_path):
    (tmp_path / "new.csv").write_text("width,colour\n1,red\n")
    refused(command("predict", model, "new.csv"), "no column 'height'")
    (tmp_path / "new.csv").write_text("width,height,colour\n1,tall,red\n")
    refused(command("predict", model, "new.csv"), "column 'height', row 1", "'tall'")


def test_an_unseen_category_is_said(command, model, tmp_path):
    (tmp_path / "new.csv").write_text("width,height,colour\n0,0,green\n")
    ended = command("predict", model, "new.csv")
    assert ended.code == 0
    assert "a category not seen before" in ended.err


# -- extras ---


def test_without_typer_one_line_names_the_extra(monkeypatch, capsys):
    from gdpa.cli import main

    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        main(["methods"])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "gdpa[cli]" in line


def test_a_missing_extra_of_a_format_is_named(command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    refused(command("fit", "t.parquet", "-t", "y"), "gdpa[parquet]")


def test_terminal_sequences_in_data_are_made_harmless(command, tmp_path):
    (tmp_path / "t.csv").write_text("u,\x1b[31mred\x07,y\n1,2,\x1b]0;title\x07\n")
    ended = command("fit", "t.csv", "-t", "z")
    refused(ended)
    assert "\x1b" not in ended.err
    assert "\x07" not in ended.err
