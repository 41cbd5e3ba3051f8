"""Workers, client and scheduler killed in the middle: the run ends with the same bytes.

A few moments here; ten random ones per stage in ``python -m benchmarks --case distributed-kills``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from parquet_parts import clusters, content, fit, table_columns, write_parts

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")

OPTIONS = {"id_column": "id", "n_parts": 5, "self_loop": 0.03}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Input, and the predictions of a run that nobody disturbs, in this process."""
    folder = tmp_path_factory.mktemp("whole")
    pattern = write_parts(
        folder / "in", table_columns(*clusters(2600, 4)), [900, 900, 800], row_group_size=450
    )
    options = {**OPTIONS, "scheduler": "synchronous"}
    fit(pattern, "y", work=folder / "work", out=folder / "out", **options)
    return pattern, content(folder / "out")


def kill_a_worker():
    client = distributed.default_client()
    pids = sorted(client.run(os.getpid).values())
    os.kill(pids[0], signal.SIGKILL)


def test_a_worker_is_killed_in_shuffle_search_and_solve(whole, tmp_path):
    pattern, expected = whole
    moments = {
        ("encode rows", 1), ("sort into parts", 2), ("search neighbours", 1), ("build graph", 3),
    }  # fmt: skip
    killed = []

    def strike(event):
        in_solve = event.stage == "final scores" and event.done > 0
        if ((event.stage, event.done) in moments or in_solve) and event.stage not in killed:
            killed.append(event.stage)
            kill_a_worker()

    out = tmp_path / "out"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        options = {**OPTIONS, "scheduler": cluster.scheduler_address}
        result = fit(pattern, "y", work=tmp_path / "work", out=out, callback=strike, **options)
    assert len(killed) == 5
    assert result.converged
    assert content(out) == expected


def test_the_only_worker_is_killed_in_the_solve(whole, tmp_path):
    """What it held is computed again by the worker that takes its place."""
    pattern, expected = whole
    killed = []

    def strike(event):
        if event.stage == "final scores" and event.done > 0 and not killed:
            killed.append(event.stage)
            kill_a_worker()

    out = tmp_path / "out"
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        options = {**OPTIONS, "scheduler": cluster.scheduler_address}
        result = fit(pattern, "y", work=tmp_path / "work", out=out, callback=strike, **options)
    assert killed
    assert result.converged
    assert content(out) == expected


SCRIPT = """
import os, signal, sys
from gdpa.distributed import TableFitOptions, Workers, fit
if __name__ == "__main__":
    pattern, work, out, last = sys.argv[1:]
    def say(event):
        print(event.stage, event.done, sep=": ", flush=True)
        if f"{{event.stage}}: {{event.done}}" == last:
            os.kill(os.getpid(), signal.SIGKILL)
    options = TableFitOptions(**{options!r})
    fit(
        pattern, "y", work=work, out=out, options=options, workers=Workers(n_workers=2),
        callback=say,
    )
"""


def start(script, pattern, tmp_path, last=""):
    """Start the script; it kills itself at the moment `last`, however busy the machine is."""
    work, out = tmp_path / "work", tmp_path / "out"
    return subprocess.Popen(
        [sys.executable, str(script), pattern, str(work), str(out), last],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_client_and_scheduler_are_killed_and_the_same_command_goes_on(whole, tmp_path):
    """The scheduler lives in the client; workers that outlive it end by themselves."""
    pattern, expected = whole
    script = tmp_path / "run.py"
    script.write_text(SCRIPT.format(options=OPTIONS))
    process = start(script, pattern, tmp_path, last="search neighbours: 2")
    assert process.stdout is not None
    assert "search neighbours: 2\n" in iter(process.stdout.readline, "")
    assert process.wait() == -signal.SIGKILL
    process = start(script, pattern, tmp_path)
    assert process.stdout is not None
    after = [line.split(": ") for line in process.stdout]
    assert process.wait(timeout=120) == 0
    # Stages that were done are not entered again; of the open one what is done stays.
    assert after[0][0] == "search neighbours"
    assert int(after[0][1]) >= 1
    assert content(tmp_path / "out") == expected
    deadline = time.monotonic() + 30
    while alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not alive(process.pid)


def alive(group):
    """Whether a process of the group is still there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
