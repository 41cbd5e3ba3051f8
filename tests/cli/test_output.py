"""What a command says and how it ends: terminal, pipe, JSON, colours."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time

import pytest

pty = pytest.importorskip("pty", reason="terminals of this kind are POSIX's")


def test_a_reader_that_leaves_early_is_no_error(graph, tmp_path):
    quoted = f"'{sys.executable}' -m gdpa"
    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {quoted} methods --quiet | head -n 1 >/dev/null"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in ended.stderr
    assert ended.returncode in (0, 141)


def in_terminal(args, cwd, *, whole=False, **environment):
    """What a command writes to a terminal: stderr, or with `whole` stdout as well."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "gdpa", *map(str, args)],
        cwd=cwd,
        stdout=slave if whole else subprocess.DEVNULL,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", "OMP_NUM_THREADS": "1", **environment},
    )
    os.close(slave)
    seen = b""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                chunk = os.read(master, 65536)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        elif child.poll() is not None:
            break
    os.close(master)
    return child.wait(timeout=60), seen.decode(errors="replace")


@pytest.mark.slow
def test_a_terminal_gets_a_moving_bar_and_then_the_first_rows(many_rows, tmp_path):
    code, seen = in_terminal(["fit", many_rows, "-t", "y"], tmp_path, whole=True)
    assert code == 0
    for stage in ("reading", "encoding", "graph", "tuning", "solve", "writing"):
        assert stage in seen
    frames = {line for line in seen.splitlines() if "graph" in line}
    assert len(frames) > 2  # the same stage, drawn differently: it moves
    table = seen.index("prediction")
    assert "\x1b[1A" in seen[:table]  # the bar is drawn over itself
    assert "\x1b[1A" not in seen[table:]  # but never over the table
    assert "more rows" in seen[table:]
    assert not re.search(r"\d+/\d+ (reading|writing)", seen)  # "8/7 writing"


@pytest.mark.parametrize("no_color", [False, True])
def test_no_color_is_respected(tmp_path, no_color):
    environment = {"NO_COLOR": "1"} if no_color else {}
    code, seen = in_terminal(["query", "missing.npz"], tmp_path, **environment)
    assert code == 2
    assert ("\x1b[31m" in seen) is not no_color


def test_json_carries_errors_too(process):
    ended = process("solve", "nothing.csv", "--labels", "x.csv", "--json")
    assert ended.code == 2
    assert ended.document["status"] == "error"
    assert "nothing.csv does not exist" in ended.document["message"]
    assert [line for line in ended.err.splitlines() if "error:" in line] == [
        "gdpa solve: error: nothing.csv does not exist"
    ]


def test_terminal_sequences_in_data_are_made_harmless(refused, command, tmp_path):
    (tmp_path / "t.csv").write_text("u,\x1b[31mred\x07,y\n1,2,\x1b]0;title\x07\n")
    ended = command("fit", "t.csv", "-t", "z")
    refused(ended)
    assert "\x1b" not in ended.err
    assert "\x07" not in ended.err


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-", "2>&-"])
def test_closed_streams_do_not_matter_if_the_output_has_a_file(closed, tmp_path):
    rows = [f"{i % 2 * 9 + i / 50},{'ab'[i % 2] if i < 20 else ''}" for i in range(40)]
    (tmp_path / "t.csv").write_text("u,y\n" + "\n".join(rows))
    fit = f"'{sys.executable}' -m gdpa fit t.csv -t y --out o.csv --model m.npz {closed}"
    ended = subprocess.run(
        ["bash", "-c", fit], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 41
    assert (tmp_path / "t.csv").read_text() == "u,y\n" + "\n".join(rows)


@pytest.mark.parametrize("option", ["", "--json"])
def test_closed_output_without_a_file_is_said(option, tmp_path):
    rows = [f"{i % 2 * 9 + i / 50},{'ab'[i % 2] if i < 20 else ''}" for i in range(40)]
    (tmp_path / "t.csv").write_text("u,y\n" + "\n".join(rows))
    fit = f"'{sys.executable}' -m gdpa fit t.csv -t y {option} >&-"
    ended = subprocess.run(
        ["bash", "-c", fit], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 2
    assert "standard output is closed; use --out FILE" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("to_file", [False, True])
def test_a_full_disk_is_an_error_in_one_line(to_file, tmp_path):
    rows = [f"{i % 2 * 9 + i / 50},{'ab'[i % 2] if i < 20 else ''}" for i in range(40)]
    (tmp_path / "t.csv").write_text("u,y\n" + "\n".join(rows))
    where = "--out /dev/full" if to_file else "> /dev/full"
    ended = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m gdpa fit t.csv -t y -q {where}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "No space left on device" in ended.stderr
