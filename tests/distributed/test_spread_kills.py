"""A spread that is disturbed ends with the bytes of one that is not, or says what to do.

Kills at random times, sixty of them: ``python -m benchmarks --case spread-kills``.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from parquet_parts import content
from test_forecast import write_grid
from test_spread import HERE

from gdpa.distributed import SpreadOptions, Workers, cluster, spread
from gdpa.distributed.folder import Folder

# Six parts on two workers: each worker has a group of three.
OPTIONS = SpreadOptions(n_parts=6, scores=True, self_loop=0.05)


class Crash(BaseException):
    """Stands for a process that ends without a chance to clean up."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Edges and labels of a grid, and the predictions of a run that nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    edges, labels = write_grid(folder, 40)
    spread(edges, labels, out=folder / "out", options=OPTIONS, workers=HERE)
    return edges, labels, content(folder / "out")


def run(whole, folder, workers=HERE, **more):
    edges, labels, _ = whole
    about = {"out": folder / "out", "work": folder / "work", "options": OPTIONS, **more}
    return spread(edges, labels, workers=workers, **about)


@pytest.mark.slow
def test_a_crash_between_any_two_files_is_continued(whole, tmp_path, monkeypatch):
    """In the middle of a task with several parts too: some of its files are there, others not."""
    write = Folder.write
    count = [0]
    stop_at = [0]

    def counting(self, name, *pieces):
        count[0] += 1
        if count[0] == stop_at[0]:
            raise Crash
        write(self, name, *pieces)

    monkeypatch.setattr(Folder, "write", counting)
    workers = Workers(scheduler="synchronous", n_workers=2)
    run(whole, tmp_path / "quiet", workers)
    total = count[0]
    assert total > 100
    for number in range(3, total, total // 12):
        folder = tmp_path / str(number)
        count[0], stop_at[0] = 0, number
        with pytest.raises(Crash):
            run(whole, folder, workers)
        stop_at[0] = 0
        assert run(whole, folder, workers).converged
        assert content(folder / "out") == whole[2]
        shutil.rmtree(folder)


@pytest.mark.parametrize("removed", [False, True])
def test_a_client_killed_at_the_very_end_has_finished(whole, tmp_path, monkeypatch, removed):
    """Before or after it has removed the work folder; the same command returns the result."""
    remove_all = Folder.remove_all

    def crash(self):
        if removed:
            remove_all(self)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "remove_all", crash)
        with pytest.raises(Crash):
            run(whole, tmp_path)
    events = []
    again = run(whole, tmp_path, callback=events.append)
    assert not events
    assert again.converged
    assert not (tmp_path / "work").exists()
    assert content(tmp_path / "out") == whole[2]
    assert [os.path.basename(file) for file in again.files] == sorted(whole[2])
    (tmp_path / "out" / "part-00001.parquet").write_bytes(b"changed")
    with pytest.raises(ValueError, match="which is not from this run; choose an empty folder"):
        run(whole, tmp_path)


@pytest.mark.parametrize("size", [600, 3000, 8000, 15000])
def test_a_full_disk_is_named_and_the_run_goes_on_later(whole, tmp_path, size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with pytest.raises(OSError, match="the disk is full; free some space and run the same"):
            run(whole, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    run(whole, tmp_path)
    assert content(tmp_path / "out") == whole[2]


@pytest.mark.parametrize(
    ("stage", "lost"),
    [
        ("split edges", "plan/plan.bounds.npy"),
        ("components", "rows/00003.data.npy"),
        ("scores", "tags/00002.npy"),
        ("write predictions", "scores/scores.00004.npy"),
        ("write predictions", "parts/00001.labeled.npy"),
    ],
)
def test_a_lost_part_is_computed_again(whole, tmp_path, stage, lost):
    """The run that loses it says so; the next one computes it again."""

    def lose(event):
        path = tmp_path / "work" / lost
        if event.stage == stage and path.exists() and not gone:
            gone.append(path)
            path.unlink()

    gone = []
    with pytest.raises(ValueError, match="was lost during the run; run the same command again"):
        run(whole, tmp_path, callback=lose)
    assert gone
    run(whole, tmp_path)
    assert content(tmp_path / "out") == whole[2]


def stop_in(stage):
    def halt(event):
        if event.stage == stage:
            raise KeyboardInterrupt

    return halt


def test_another_version_of_the_package_is_refused(whole, tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        run(whole, tmp_path, callback=stop_in("components"))
    monkeypatch.setattr("gdpa.distributed.manifest.__version__", "9.9")
    with pytest.raises(ValueError, match=r"was begun by gdpa .*, but this is gdpa 9\.9; continue"):
        run(whole, tmp_path)


class OldWorkers:
    """A client one of whose workers has another version of the package."""

    def run(self, function):
        return {"tcp://a": function(), "tcp://b": "0.0.1"}


class WorkersWithout:
    """A client whose workers lack the package."""

    def run(self, function):
        raise ModuleNotFoundError("No module named 'gdpa'")


def test_workers_with_another_version_are_named():
    with pytest.raises(ValueError, match=r"worker tcp://b has gdpa 0\.0\.1, but the client has"):
        cluster.check_versions(OldWorkers())
    with pytest.raises(ValueError, match=r"cannot load gdpa .* install gdpa .* on all workers"):
        cluster.check_versions(WorkersWithout())


@pytest.fixture
def threads():
    """Start a function's cluster of two workers, which are threads of this process."""
    distributed = pytest.importorskip("distributed")
    import dask

    def start(settings):
        with dask.config.set(settings):
            return distributed.Client(
                n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None,
                memory_limit="4GB",
            )  # fmt: skip

    return start


@pytest.mark.slow
def test_memory_that_is_spilled_to_disk_changes_nothing(whole, tmp_path, threads):
    """Workers that may hold 4 kB move everything else to disk and read it again."""
    spilled = []

    def watch(event):
        if event.stage == "scores":
            spilled.extend(len(worker.data.slow) for worker in client.cluster.workers.values())

    with threads({"distributed.worker.memory.target": 1e-6}) as client:
        run(whole, tmp_path, Workers(scheduler=client), callback=watch)
    assert max(spilled) > 0
    assert content(tmp_path / "out") == whole[2]


@pytest.mark.slow
def test_a_slow_worker_changes_nothing(whole, tmp_path, threads):
    distributed = pytest.importorskip("distributed")

    class Delay(distributed.WorkerPlugin):
        """Delays every task of one worker."""

        def setup(self, worker):
            self.is_slow = worker.name == 0

        def transition(self, key, start, finish, **_):
            if self.is_slow and finish == "executing":
                import time

                time.sleep(0.01)

    with threads({}) as client:
        client.register_plugin(Delay())
        run(whole, tmp_path, Workers(scheduler=client))
    assert content(tmp_path / "out") == whole[2]


@pytest.mark.slow
def test_workers_are_killed_in_every_stage(whole, tmp_path):
    """Among others while a worker holds the state of three parts, twice in the same solve."""
    distributed = pytest.importorskip("distributed")
    moments = {"sample edges": 1, "split edges": 1, "build rows": 3, "write predictions": 2}
    killed = []

    def strike(event):
        in_solve = event.stage == "scores" and event.done > 0 and killed.count("scores") < 2
        if in_solve or (moments.get(event.stage) == event.done and event.stage not in killed):
            killed.append(event.stage)
            pids = sorted(distributed.default_client().run(os.getpid).values())
            os.kill(pids[0], signal.SIGKILL)

    result = run(whole, tmp_path, Workers(n_workers=2), callback=strike)
    assert sorted(killed) == sorted([*moments, "scores", "scores"])
    assert result.converged
    assert content(tmp_path / "out") == whole[2]


SCRIPT = """
import os, signal, sys
from gdpa.distributed import SpreadOptions, Workers, spread
if __name__ == "__main__":
    edges, labels, folder, last = sys.argv[1:]
    def say(event):
        print(event.stage, flush=True)
        if event.stage == last:
            os.kill(os.getpid(), signal.SIGKILL)
    spread(
        edges, labels, out=folder + "/out", work=folder + "/work",
        options=SpreadOptions(n_parts=6, scores=True, self_loop=0.05),
        workers=Workers(scheduler="synchronous", n_workers=2), callback=say,
    )
"""


@pytest.mark.slow
def test_a_killed_client_goes_on_where_it_was(whole, tmp_path):
    """Stages that were done are not entered again."""
    edges, labels, expected = whole
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    stages = ("split edges", "build rows", "components", "scores", "write predictions")
    for last in (*stages, "none"):
        done = subprocess.run(
            [sys.executable, str(script), edges, labels, str(tmp_path), last],
            capture_output=True,
            text=True,
            check=False,
        )
        said = list(dict.fromkeys(done.stdout.split("\n")[:-1]))
        if last == "none":
            assert done.returncode == 0, done.stderr
            assert said == ["write predictions"]
        else:
            assert done.returncode == -signal.SIGKILL, done.stderr
            assert said[-1] == last
            assert not set(said) & set(stages[: max(stages.index(last) - 1, 0)])
    assert content(tmp_path / "out") == expected
    assert np.all([len(raw) > 0 for raw in expected.values()])
