"""Files with labels and predictions, read back by the tools that they are for."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import zipfile

import numpy as np
import pytest

from gdpa.labeling.server import LabelServer
from gdpa.labeling.tables import TableSource, open_table


@pytest.fixture
def labelled(tmp_path):
    """A table with the target in the middle, ten of forty rows labelled by two people."""
    rng = np.random.default_rng(0)
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "kind", "size"])
        for i in range(40):
            writer.writerow([f"n{i}", "cat" if i == 0 else "", f"{5 * (i % 2) + rng.normal():.3f}"])
    source = TableSource(str(tmp_path / "t.csv"), "kind", id_column="name")
    controller, exporter, _ = open_table(source, log=None)
    for row in range(1, 10):
        controller.answer("label", "ab"[row % 2], row, ["cat", "dog"][row % 2])
    controller.answer("skip", "a", 12)
    controller.session.refresh()
    return controller, exporter


def test_the_target_column_is_filled_in_where_it_stood(labelled):
    controller, exporter = labelled
    content, kind, name = exporter.make("table")
    assert (kind, name) == ("text/csv; charset=utf-8", "t-labelled.csv")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    added = ["kind_predicted", "kind_probability", "kind_skipped"]
    assert list(rows[0]) == ["name", "kind", "size", *added]
    assert [r["kind"] for r in rows[:3]] == ["cat", "dog", "cat"]
    assert all(r["kind"] == "" for r in rows[10:])
    assert [r["kind_predicted"] for r in rows] == controller.session.predictions().tolist()
    assert [i for i, r in enumerate(rows) if r["kind_skipped"]] == [12]
    assert all(0.5 <= float(r["kind_probability"]) <= 1 for r in rows)
    rows = list(csv.DictReader(io.StringIO(exporter.make("table", who=True)[0].decode())))
    assert [r["kind_by"] for r in rows[:3]] == ["", "b", "a"]
    assert rows[1]["kind_at"].startswith("20")
    assert (rows[1]["kind_by_a"], rows[1]["kind_by_b"]) == ("", "dog")


def test_answers_since_the_last_fit_are_in_the_file_without_another_fit(labelled, monkeypatch):
    controller, exporter = labelled
    monkeypatch.setattr(controller.session._predictor, "fit", None)
    controller.answer("label", "a", 20, "dog")
    row = list(csv.DictReader(io.StringIO(exporter.make("table")[0].decode())))[20]
    assert (row["kind"], row["kind_predicted"], row["kind_probability"]) == ("dog", "dog", "1.0")


def test_other_formats_hold_the_same(labelled):
    parquet = pytest.importorskip("pyarrow.parquet")
    _, exporter = labelled
    table = parquet.read_table(io.BytesIO(exporter.make("parquet")[0]))
    records = [json.loads(line) for line in exporter.make("jsonl")[0].splitlines()]
    assert table.to_pylist() == records
    assert isinstance(records[0]["size"], float)
    assert (records[1]["kind"], records[20]["kind"]) == ("dog", None)
    tasks = json.loads(exporter.make("labelstudio")[0])
    assert len(tasks) == 40
    choice = {"from_name": "kind", "to_name": "text", "type": "choices"}
    assert tasks[1]["annotations"] == [{"result": [choice | {"value": {"choices": ["dog"]}}]}]
    assert tasks[12]["annotations"] == []
    guess = tasks[20]["predictions"][0]
    assert guess["result"][0]["value"]["choices"] == [records[20]["kind_predicted"]]
    assert guess["score"] == records[20]["kind_probability"]


def test_pictures_go_to_a_folder_per_class(tmp_path):
    pytest.importorskip("PIL")
    pixels = np.repeat(np.arange(30) % 2, 16).reshape(30, 16) * 9
    header = ",".join(f"p{i}" for i in range(16))
    np.savetxt(tmp_path / "p.csv", pixels, fmt="%d", delimiter=",", header=header, comments="")
    source = TableSource(str(tmp_path / "p.csv"), "shade", shape=(4, 4))
    controller, exporter, _ = open_table(source, log=None)
    for row in range(6):
        controller.answer("label", "", row, ["dark", "../light"][row % 2])
    controller.session.refresh()
    names = zipfile.ZipFile(io.BytesIO(exporter.make("folders")[0])).namelist()
    assert names[-1] == "manifest.csv"
    assert len(names) == 31
    folders = {tuple(name.split("/")[:2]) for name in names[:-1]}
    assert folders == {
        (kind, name) for kind in ("labelled", "predicted") for name in ("dark", ".._light")
    }
    assert "folders" in exporter.kinds


CLASSES = [
    "C+",
    "C#",
    "c#",
    "C:",
    "C?",
    "..",
    "nul",
    "a/b",
    "a\\b",
    "x.",
    "caf\u00e9",
    "cafe\u0301",
    199 * "x" + ". y",
    199 * "x" + ". z",
    90 * "\u732b",
]


def test_pictures_keep_their_names_and_classes_their_folders(tmp_path):
    image = pytest.importorskip("PIL.Image")
    names = []
    for i in range(2 * len(CLASSES) + 6):
        name = f"{'ab'[i % 2]}/img_{i // 2:04d}.png"  # the same names in two folders
        (tmp_path / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (8, 8), (9 * i, 50, 20 * (i % 7))).save(tmp_path / "p" / name)
        names.append(name)
    (tmp_path / "p" / "lost.png").write_bytes(b"no picture")
    lines = [f"{name}," for name in [*names, "lost.png"]]
    lines[0] += "C+"
    (tmp_path / "p" / "t.csv").write_text("file,kind\n" + "\n".join(lines) + "\n")
    source = TableSource(str(tmp_path / "p" / "t.csv"), "kind", image="file")
    controller, exporter, _ = open_table(source, log=None)
    truth = {row: CLASSES[row % len(CLASSES)] for row in range(2 * len(CLASSES))}
    for row, value in truth.items():
        if row > 0:
            controller.answer("label", "ann" if row % 2 else "", row, value)
    controller.session.refresh()
    archive = zipfile.ZipFile(io.BytesIO(exporter.make("folders")[0]))
    manifest = list(csv.DictReader(io.StringIO(archive.read("manifest.csv").decode(), newline="")))
    assert [line["name"] for line in manifest] == [*names, "lost.png"]
    assert [line["label"] for line in manifest[: len(truth)]] == list(truth.values())
    assert [line["given_by"] for line in manifest[:3]] == ["file", "ann", "annotator"]
    paths = [line["file"] for line in manifest[:-1]]
    assert len({path.casefold() for path in paths}) == len(paths)
    assert manifest[-1]["file"] == ""
    folder_of = {}
    for line, name in zip(manifest[:-1], names, strict=True):
        kind, folder, *rest = line["file"].split("/")
        assert rest in ([name.split("/")[1]], name.split("/"))
        assert archive.read(line["file"]) == (tmp_path / "p" / name).read_bytes()
        assert kind == ("predicted" if line["given_by"] == "model" else "labelled")
        assert bool(line["probability"]) == (kind == "predicted")
        assert folder_of.setdefault(line["label"], folder) == folder
    assert len(set(map(str.casefold, folder_of.values()))) == len(folder_of)
    archive.extractall(tmp_path / "out")  # every name is one that the disk accepts
    for path, name in zip(paths, names, strict=True):
        assert (tmp_path / "out" / path).read_bytes() == (tmp_path / "p" / name).read_bytes()
    assert folder_of["C+"] == "C+"
    assert folder_of["C#"] == "C#"
    assert not {"", ".", "..", "nul"} & set(folder_of.values())


def test_cells_of_the_input_come_out_as_they_went_in(tmp_path):
    cells = ["-0,13", "-12%", "+3%", "- item", "@user", " NA ", "007", "1.50", "=1+1", "None"]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "v", "y"])
        for i in range(40):
            known = ["C+", "@x"][i % 2] if i < 10 else "todo"
            writer.writerow([cells[i % 10], f"{i % 2}.50", known])
    source = TableSource(str(tmp_path / "t.csv"), "y", unlabeled="todo")
    controller, exporter, _ = open_table(source, log=None)
    controller.answer("label", "=ann", 10, "@x")
    controller.session.refresh()
    with (tmp_path / "t.csv").open(newline="") as file:
        before = list(csv.DictReader(file))
    for escape in (False, True):
        made = dataclasses.replace(exporter, escape=escape).make("table", who=True)[0].decode()
        after = list(csv.DictReader(io.StringIO(made, newline="")))
        assert [row["a"] for row in after] == [row["a"] for row in before]
        assert [row["v"] for row in after] == [row["v"] for row in before]
        assert [row["y"] for row in after[11:]] == ["todo"] * 29
        mark = "'" if escape else ""
        assert after[10]["y"] == mark + "@x"
        assert after[10]["y_by"] == mark + "=ann"
        assert {row["y_predicted"] for row in after} <= {"C+", mark + "@x"}


def test_the_extension_sets_the_format(labelled, tmp_path):
    _, exporter = labelled
    assert exporter.kind_of(tmp_path / "x.JSONL") == "jsonl"
    with pytest.raises(ValueError, match=r"must be \.csv, \.parquet, \.jsonl, \.json$"):
        exporter.kind_of(tmp_path / "x.zip")  # no pictures


def test_beyond_this_machine_only_with_a_token(labelled):
    pytest.importorskip("uvicorn")
    with pytest.raises(ValueError, match="from other machines and needs a token"):
        LabelServer(*labelled, host="0.0.0.0")
    with pytest.raises(ValueError, match="token must be at least 16"):
        LabelServer(*labelled, token="short")
    with pytest.raises(ValueError, match="public_url='label'"):
        LabelServer(*labelled, public_url="label")
    server = LabelServer(*labelled, public_url="https://label.example.org/")
    assert server.url == f"https://label.example.org/{server.token}/"
    server._socket.close()
