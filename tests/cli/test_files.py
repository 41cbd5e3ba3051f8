"""Files of the commands: whole or not at all, only where they were told to."""

from __future__ import annotations

import os
import signal
import stat
import threading

import pytest


@pytest.mark.slow
def test_ctrl_c_is_one_line_and_leaves_nothing_half_written(many_rows, start, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "p.csv").write_text("old")
    child = start(
        ["fit", many_rows, "-t", "y", "--out", folder / "p.csv", "--model", folder / "m.npz"],
        cwd=tmp_path,
        COVERAGE_PROCESS_CONFIG=None,  # an interrupt can break a lock of coverage
    )
    seen = []
    for line in child.stderr:
        seen.append(line)
        if line.startswith("encoding"):
            break
    # It is in the middle of its work on predictions, model and model card.
    assert len(list(folder.glob(".gdpa-*"))) == 3
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 130
    assert err.splitlines()[-1] == "gdpa: interrupted; nothing was written"
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if "interrupt" in line]) == 1
    assert out == ""
    assert [p.name for p in folder.iterdir()] == ["p.csv"]
    assert (folder / "p.csv").read_text() == "old"


def test_outputs_that_cannot_be_written_are_refused_before_the_work(
    refused, command, table, tmp_path
):
    fit = ("fit", table, "-t", "answer")
    refused(command(*fit, "--out", tmp_path), "--out", "is a folder")
    refused(command(*fit, "--model", "no/such/folder/m.npz"), "--model", "cannot be written")
    refused(command(*fit, "--out", table), "would overwrite the input")
    refused(command(*fit, "--out", "x", "--report", "x"), "--report", "also the file")
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


@pytest.mark.skipif(os.name != "posix", reason="pipes of this kind are POSIX's")
def test_a_model_goes_through_a_pipe_and_the_pipe_stays(command, table, tmp_path):
    pipe, copy = tmp_path / "pipe", tmp_path / "copy.npz"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: copy.write_bytes(pipe.read_bytes()), daemon=True)
    reader.start()
    assert command("fit", table, "-t", "answer", "--model", pipe).code == 0
    reader.join(timeout=20)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert command("predict", copy, table).code == 0


def test_a_device_given_as_the_model_stays_a_device(command, table):
    assert command("fit", table, "-t", "answer", "--model", os.devnull).code == 0
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


def test_what_a_killed_run_left_is_gone_after_the_next(command, table, tmp_path):
    left = tmp_path / ".gdpa-abcdefgh"
    left.mkdir()
    (left / ".owner").write_text("1")
    (left / "p.csv").write_text("half")
    assert command("fit", table, "-t", "answer", "--out", "p.csv").code == 0
    assert not list(tmp_path.glob(".gdpa-*"))
