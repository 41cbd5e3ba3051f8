"""Every command as a process: pipes, JSON, exit codes, interrupts."""

from __future__ import annotations

import csv
import io
import os
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from gdpa import list_methods

pty = pytest.importorskip("pty", reason="terminals of this kind are POSIX's")


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_methods_lists_the_registry_and_json_is_one_document(process):
    ended = process("methods", "--json")
    assert ended.code == 0
    assert [m["name"] for m in ended.document["methods"]] == [m.name for m in list_methods()]
    assert ended.document["status"] == "done"
    assert ended.err == ""


def test_datasets_shows_a_card(process):
    ended = process("datasets", "wdbc", "--json")
    assert ended.code == 0
    (card,) = ended.document["datasets"]
    assert (card["n_samples"], card["n_features"]) == (569, 30)


def test_solve_reads_a_pipe_and_writes_one(process, graph):
    edges, labels = graph
    ended = process("solve", "-", "--labels", labels, text=edges.read_text())
    assert ended.code == 0
    found = {row["node"]: row["label"] for row in rows_of(ended.out)}
    assert found == dict.fromkeys("abc", "left") | dict.fromkeys("def", "right")
    assert "objective" in ended.err  # messages are not data


def test_certify_gives_the_optimum_of_two_triangles(process, graph):
    ended = process("certify", *("edges.csv", "--labels", "labels.csv", "--json", "--quiet"))
    assert ended.code == 0
    assert ended.document["objective"] == pytest.approx(4 * 0.1)  # one cut edge of weight 0.1
    assert ended.document["gap"] == pytest.approx(0.0, abs=1e-6)
    assert ended.document["bound_status"] == "certified"
    assert ended.err == ""


def test_fit_predict_query_in_a_pipeline(process, table, truth, tmp_path):
    ended = process(
        *("fit", "-", "--target", "answer", "--id", "name", "--model", "m.npz", "--out", "-"),
        text=table.read_text(),
    )
    assert ended.code == 0, ended.err
    rows = rows_of(ended.out)
    assert [r["prediction"] for r in rows] == truth.tolist()
    assert [r["name"] for r in rows] == [f"r{i}" for i in range(60)]
    assert sum(r["known"] == "yes" for r in rows) == 10
    assert all(0.5 <= float(r["probability"]) <= 1 for r in rows)
    assert "filled with the median" in ended.err
    again = process("predict", "m.npz", "-", "--quiet", text=table.read_text())
    assert [r["prediction"] for r in rows_of(again.out)] == truth.tolist()
    assert again.err == ""
    asked = process("query", "m.npz", "-n", "3", "--json", "--quiet")
    chosen = asked.document["rows"]
    assert len(chosen) == 3
    known = {f"r{i}" for i in range(10)}
    assert not known & {c["row"] for c in chosen}
    lead = [c["probability"] - c["runner_up_probability"] for c in chosen]
    assert lead == sorted(lead)


def test_a_reader_that_leaves_early_is_no_error(graph, tmp_path):
    quoted = f"'{sys.executable}' -m gdpa.cli"
    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {quoted} datasets --quiet | head -n 1 >/dev/null"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in ended.stderr
    assert ended.returncode in (0, 141)


def test_not_converged_is_exit_code_1_and_still_answers(command, graph):
    ended = command(
        *("solve", *graph[:1], "--labels", graph[1], "--method", "sdr-low-rank"),
        *("--option", "max_iter=1", "--option", "tol=1e-14", "--json"),
    )
    assert ended.code == 1
    assert ended.document["status"] == "not converged"
    assert ended.document["converged"] is False
    assert len(ended.document["labeling"]) == 6


@pytest.fixture
def many_rows(tmp_path):
    """A table that takes long enough to be interrupted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8_000, 12))
    path = tmp_path / "many.csv"
    labels = np.where(np.arange(len(X)) < 200, np.where(X[:, 0] > 0, "a", "b"), "")
    with path.open("w") as file:
        file.write(",".join(f"x{j}" for j in range(12)) + ",y\n")
        for row, label in zip(X, labels, strict=True):
            file.write(",".join(f"{v:.4f}" for v in row) + f",{label}\n")
    return path


def test_ctrl_c_is_one_line_and_leaves_nothing_half_written(many_rows, start, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "p.csv").write_text("old")
    child = start(
        ["fit", many_rows, "-t", "y", "--out", folder / "p.csv", "--model", folder / "m.npz"],
        cwd=tmp_path,
    )
    seen = []
    for line in child.stderr:
        seen.append(line)
        if line.startswith("encoding"):
            break
    assert len(list(folder.glob(".gdpa-*"))) == 2  # it is in the middle of its work
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 130
    assert err.splitlines()[-1] == "gdpa: interrupted; nothing was written"
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if "interrupt" in line]) == 1
    assert out == ""
    assert [p.name for p in folder.iterdir()] == ["p.csv"]
    assert (folder / "p.csv").read_text() == "old"


def in_terminal(args, cwd, *, whole=False, **environment):
    """What a command writes to a terminal: stderr, or with `whole` stdout as well."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "gdpa.cli", *map(str, args)],
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


@pytest.mark.parametrize("no_color", [False, True])
def test_no_color_is_respected(tmp_path, no_color):
    environment = {"NO_COLOR": "1"} if no_color else {}
    code, seen = in_terminal(["query", "missing.npz"], tmp_path, **environment)
    assert code == 2
    assert ("\x1b[31m" in seen) is not no_color


def test_shell_completion_completes_names_of_methods(process):
    complete = {"_GDPA_COMPLETE": "complete_bash", "COMP_WORDS": "gdpa solve g --method sdr-"}
    ended = process(**complete, COMP_CWORD="4")
    assert ended.out.split() == [m.name for m in list_methods() if m.name.startswith("sdr-")]


def test_reproduce_is_registered(process):
    pytest.importorskip("gdpa.cli.reproduce")
    assert process("reproduce", "--help").code == 0


def test_reproduce_speaks_json_and_can_be_quiet(process, tmp_path):
    ended = process("reproduce", "lemma1", "--out", "r", "--json", "--quiet")
    assert ended.code == 0, ended.err
    assert ended.err == ""
    assert ended.document["experiments"] == ["lemma1"]
    assert ended.document["rows"] > 0
    assert (tmp_path / ended.document["report"]).is_file()
    wrong = process("reproduce", "table9", "--json", "--quiet")
    assert wrong.code == 2
    assert wrong.document["status"] == "error"


def test_json_carries_errors_too(process):
    ended = process("solve", "nothing.csv", "--labels", "x.csv", "--json")
    assert ended.code == 2
    assert ended.document["status"] == "error"
    assert "nothing.csv does not exist" in ended.document["message"]
    assert [line for line in ended.err.splitlines() if "error:" in line] == [
        "gdpa solve: error: nothing.csv does not exist"
    ]
