"""Files with labels and predictions, read back by the tools that they are for."""

from __future__ import annotations

import csv
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
    monkeypatch.setattr(type(controller.session), "_fit", None)
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
    assert len(names) == 30
    assert {name.split("/")[0] for name in names} == {"dark", "___light"}
    assert "folders" in exporter.kinds


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
