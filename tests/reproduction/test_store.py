"""Results on disk: whole rows only, one run at a time, one version."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction import store as store_module
from reproduction.store import ResultsFolderError, ResultsStore, Row, Task

ROOT = Path(__file__).resolve().parents[2]


def make_row(number: int, status: str = "ok", limit: float | None = None) -> Row:
    params = {"dataset": "sonar", "split": number, "method": "vote"}
    return Row("table2", params, status, {"errors": number}, limit=limit)


def task_of(row: Row) -> Task:
    return Task(row.experiment, row.params)


def test_rows_come_back_as_they_were_written(tmp_path):
    rows = [make_row(i) for i in range(5)]
    with ResultsStore(tmp_path) as store:
        for row in rows:
            store.append(row)
    with ResultsStore(tmp_path) as store:
        assert store.rows == rows
        assert store.select([task_of(rows[3]), task_of(rows[1])]) == [rows[3], rows[1]]


def test_a_row_is_on_disk_when_append_returns(tmp_path):
    with ResultsStore(tmp_path) as store:
        store.append(make_row(1))
        lines = (tmp_path / "results.jsonl").read_text().splitlines()
        assert json.loads(lines[0])["values"] == {"errors": 1}


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_row_cut_off_by_a_kill_is_dropped_and_the_others_kept(tmp_path, cut):
    with ResultsStore(tmp_path) as store:
        for number in range(3):
            store.append(make_row(number))
    path = tmp_path / "results.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    with ResultsStore(tmp_path) as store:
        assert store.rows == [make_row(0), make_row(1)]
        store.append(make_row(2))
    assert path.read_bytes() == content


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    with ResultsStore(tmp_path) as store:
        store.append(make_row(1))
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"{not json\n" + path.read_bytes())
    with pytest.raises(ResultsFolderError, match="line 1 of"):
        ResultsStore(tmp_path)


def test_identity_does_not_depend_on_the_order_of_parameters():
    assert Task("a", {"x": 1, "y": 2}).key == Task("a", {"y": 2, "x": 1}).key
    assert Task("a", {"x": 1}).key != Task("b", {"x": 1}).key


def test_a_second_run_into_the_folder_is_refused_and_the_first_goes_on(tmp_path):
    with ResultsStore(tmp_path) as first:
        code = (
            "import sys; from reproduction.store import ResultsStore, ResultsFolderError\n"
            "try: ResultsStore(sys.argv[1])\n"
            "except ResultsFolderError as error: print(error); sys.exit(7)\n"
        )
        second = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 7
        assert "another run" in second.stdout
        assert str(os.getpid()) in second.stdout
        first.append(make_row(1))
    with ResultsStore(tmp_path) as third:
        assert third.rows == [make_row(1)]


def test_rows_of_another_version_are_refused(tmp_path):
    with ResultsStore(tmp_path) as store:
        store.append(make_row(1))
    path = tmp_path / "results.jsonl"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"version": "0.0.1"}) + "\n")
    before = path.read_bytes()
    with pytest.raises(ResultsFolderError, match=r"results of gdpa 0\.0\.1"):
        ResultsStore(tmp_path)
    assert path.read_bytes() == before


def test_rows_of_another_commit_are_refused(tmp_path, monkeypatch):
    with ResultsStore(tmp_path) as store:
        store.append(Row("toy", {"a": 1}, "ok", {"x": 1.0}))
    monkeypatch.setattr(store_module, "commit", lambda: "0123456789ab")
    with pytest.raises(ResultsFolderError, match="Rows of two versions or commits must not"):
        ResultsStore(tmp_path)


def test_forgotten_rows_are_computed_again_and_the_others_kept(tmp_path):
    with ResultsStore(tmp_path) as store:
        for name in ("a", "b"):
            store.append(Row(name, {"n": 1}, "ok", {"x": 1.0}))
        store.forget("a")
        assert not store.finished(Task("a", {"n": 1}), time_limit=None)
        store.append(Row("a", {"n": 2}, "ok", {"x": 2.0}))
    with ResultsStore(tmp_path) as store:
        assert [(row.experiment, row.params["n"]) for row in store.rows] == [("b", 1), ("a", 2)]


def test_a_refused_folder_is_unlocked_again(tmp_path):
    (tmp_path / "results.jsonl").write_text("{}\n")
    with pytest.raises(ResultsFolderError):
        ResultsStore(tmp_path)
    (tmp_path / "results.jsonl").unlink()
    ResultsStore(tmp_path).close()


def test_no_room_during_the_run_keeps_the_rows(tmp_path, monkeypatch):
    with ResultsStore(tmp_path) as store:
        store.append(make_row(1))
        original = os.write

        def full(fd: int, data: bytes) -> int:
            original(fd, data[:10])  # a part gets through, as on a real disk
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(store_module.os, "write", full)
        with pytest.raises(ResultsFolderError, match="no room left"):
            store.append(make_row(2))
        monkeypatch.undo()
    with ResultsStore(tmp_path) as store:
        assert store.rows == [make_row(1)]


def test_a_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsFolderError, match="give another folder"):
        ResultsStore(tmp_path / "file" / "results")


def test_no_permission_to_write(tmp_path, monkeypatch):
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(store_module.Path, "mkdir", refuse)
    with pytest.raises(ResultsFolderError, match="Permission denied"):
        ResultsStore(tmp_path / "results")


def test_what_counts_as_finished(tmp_path):
    rows = {s: make_row(i, s, 10.0) for i, s in enumerate(("ok", "failed", "time-limit"))}
    with ResultsStore(tmp_path) as store:
        for row in rows.values():
            store.append(row)
        assert store.finished(task_of(rows["ok"]), time_limit=99.0, retry_failed=True)
        assert store.finished(task_of(rows["failed"]), time_limit=99.0)
        assert not store.finished(task_of(rows["failed"]), time_limit=1.0, retry_failed=True)
        assert store.finished(task_of(rows["time-limit"]), time_limit=10.0)
        assert not store.finished(task_of(rows["time-limit"]), time_limit=11.0)
        assert not store.finished(task_of(make_row(9)), time_limit=None)
