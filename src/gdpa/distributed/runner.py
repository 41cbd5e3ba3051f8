"""Runs the tasks of a stage: on a Dask cluster, or one after the other in this process.

A task is a function of a folder and plain arguments that writes files and ends with a record. It
may be run twice, or again after its worker was lost: the second run finds the record and returns.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import require
from .manifest import Manifest, Output, Record, read_record, write_record
from .memory import ENVIRONMENT, give_back, load_little
from .store import Folder, open_folder
from .watch import Watch, live_workers

__all__ = ["Call", "Event", "Runner", "Task", "TaskError", "connect"]

# A task whose worker died so often is not tried again: it is the task that kills them.
MOST_DEATHS = 20
# How long to wait for the scheduler to answer.
PATIENCE = "30s"

Report = Callable[["Event"], None]


class TaskError(RuntimeError):
    """A task failed; the message names stage and task."""


@dataclass(frozen=True)
class Event:
    """How far a run has come.

    Parameters
    ----------
    stage : str
        The stage.
    done, total : int
        Tasks of the stage.
    seconds : float
        Time spent in the stage so far.
    """

    stage: str
    done: int
    total: int
    seconds: float

    @property
    def left(self) -> float | None:
        """Estimated seconds to the end of the stage; None before the first task is done."""
        if not self.done:
            return None
        return self.seconds * (self.total - self.done) / self.done


@dataclass(frozen=True)
class Task:
    """A task of a stage.

    Parameters
    ----------
    name : str
        Its name within the stage.
    function : callable
        ``function(output, **arguments) -> dict``; writes to the :class:`Output`, returns what its
        record keeps.
    arguments : dict
        Plain data.
    """

    name: str
    function: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A step of a solve: no record, ordered by other calls.

    Parameters
    ----------
    key : str
        Its name.
    function : callable
        ``function(**arguments) -> small result``.
    arguments : dict
        Plain data.
    after : tuple of str
        Keys of the calls that must have ended.
    place : int
        Number of a worker (modulo the workers there are) that should run it.
    """

    key: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    after: tuple[str, ...] = ()
    place: int = 0


def run_task(
    url: str, stage: str, name: str, function: Callable[..., dict[str, Any]], arguments: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run one task, unless its record says that it is done."""
    from ..threads import one_thread

    load_little()
    folder = open_folder(url)
    before = read_record(folder, stage, name)
    if before is not None and before.complete(folder, checksums=False):
        return before.files, before.result
    start, cpu = time.perf_counter(), time.process_time()
    output = Output(folder)
    with one_thread():
        result = function(output, **arguments)
    result["seconds"] = round(time.perf_counter() - start, 4)
    result["cpu"] = round(time.process_time() - cpu, 4)
    record = Record(output.files, result)
    write_record(folder, stage, name, record)
    give_back()
    return record.files, record.result


def run_call(call: Call, *after: Any) -> Any:
    """Run one call; what comes before it is only waited for."""
    from ..threads import one_thread

    with one_thread():
        return call.function(**call.arguments)


class Runner:
    """Runs tasks one after the other in this process.

    Parameters
    ----------
    folder : Folder
        The work folder.
    manifest : Manifest
        Its manifest, open.
    report : callable, optional
        Told about each task that ends.
    """

    def __init__(self, folder: Folder, manifest: Manifest, report: Report | None = None) -> None:
        self.folder, self.manifest = folder, manifest
        self.report: Report = report or (lambda event: None)
        self.seconds: dict[str, float] = {}
        # Steps between two exchanges of a solve, for each way to group the parts.
        self.depths: dict[tuple[int, ...], int] = {}

    @property
    def n_workers(self) -> int:
        """Workers there are now."""
        return 1

    def stage(self, name: str, tasks: Sequence[Task], here: bool = False) -> dict[str, Record]:
        """Run what is not done yet of a stage.

        Parameters
        ----------
        name : str
            The stage.
        tasks : sequence of Task
            Its tasks, independent of each other.
        here : bool, default=False
            Run them in this process.

        Returns
        -------
        dict of Record
            The records, in the order of the tasks.
        """
        finished = self.manifest.stage(name)
        if finished is not None:
            return finished
        start = time.perf_counter()
        records: dict[str, Record] = {}
        for task in tasks:
            record = read_record(self.folder, name, task.name)
            if record is not None and record.complete(self.folder, checksums=True):
                records[task.name] = record
            elif record is not None:
                self.folder.remove([f"records/{name}/{task.name}.json"])
        waiting = [task for task in tasks if task.name not in records]
        self.report(Event(name, len(records), len(tasks), 0.0))
        run = partial(Runner._run, self) if here else self._run
        for task, (files, result) in run(name, waiting):
            records[task.name] = Record(files, result)
            spent = time.perf_counter() - start
            self.report(Event(name, len(records), len(tasks), spent))
        ordered = {task.name: records[task.name] for task in tasks}
        self.manifest.seal(name, ordered)
        self.spend(name, time.perf_counter() - start)
        return ordered

    def spend(self, stage: str, seconds: float) -> None:
        """Note the time that a stage took in this run."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def release(self) -> None:
        """Let workers forget what they hold."""
        from .steps import forget

        forget()

    def _run(self, stage: str, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
        for task in tasks:
            with _named(stage, task.name):
                yield (
                    task,
                    run_task(self.folder.url, stage, task.name, task.function, task.arguments),
                )

    def calls(self, stage: str, calls: Sequence[Call]) -> dict[str, Any]:
        """Run calls, each after those that it waits for; they are given in such an order.

        Returns
        -------
        dict
            The result of each.
        """
        results = {}
        for call in calls:
            with _named(stage, call.key):
                results[call.key] = run_call(call)
        return results


class DaskRunner(Runner):
    """Runs tasks on a Dask cluster; tasks of lost workers run again on others."""

    def __init__(self, client: Any, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.client = client

    @property
    def n_workers(self) -> int:
        """Workers there are now."""
        return max(1, len(live_workers(self.client)))

    def _run(self, stage: str, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
        as_completed: Any = require("distributed", "distributed").as_completed
        futures = {
            self.client.submit(
                run_task, self.folder.url, stage, task.name, task.function, task.arguments,
                pure=False, key=f"{stage}-{task.name}-{time.time_ns()}",
            ): task
            for task in tasks
        }  # fmt: skip
        try:
            for future in as_completed(list(futures)):
                task = futures[future]
                with _named(stage, task.name):
                    result = future.result()
                yield task, result
                future.release()
        except BaseException:
            self.client.cancel(list(futures))
            raise

    def release(self) -> None:
        """Let workers forget what they hold."""
        from .steps import forget

        self.client.run(forget)

    def calls(self, stage: str, calls: Sequence[Call]) -> dict[str, Any]:
        """Run calls on the workers that hold what they need, or on others if those are lost."""
        for _ in range(MOST_DEATHS + 1):
            workers, stamp = live_workers(self.client), time.time_ns()
            futures: dict[str, Any] = {}
            for call in calls:
                where: dict[str, Any] = {}
                if workers:
                    where = {"workers": [workers[call.place % len(workers)]]}
                    where["allow_other_workers"] = True
                futures[call.key] = self.client.submit(
                    run_call, call, *(futures[key] for key in call.after),
                    pure=False, key=f"{stage}-{call.key}-{stamp}", **where,
                )  # fmt: skip
            watch = Watch(self.client, list(futures.values()), workers)
            try:
                with _named(stage, "a step"), watch:
                    return dict(self.client.gather(futures))
            except BaseException as error:
                self.client.cancel(list(futures.values()))
                if not watch.stuck or isinstance(error, KeyboardInterrupt):
                    raise
        raise TaskError(f"stage {stage}: workers were lost in {MOST_DEATHS + 1} tries of one step")


@contextlib.contextmanager
def _named(stage: str, task: str) -> Iterator[None]:
    """Say in which stage and task an error happened; bad input stays a ValueError."""
    try:
        yield
    except (ValueError, MemoryError, OSError, KeyboardInterrupt, TaskError):
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise TaskError(
                f"stage {stage}, {task}: its worker was lost {MOST_DEATHS} times, probably for "
                "want of memory; give workers more memory, or use more parts"
            ) from error
        raise TaskError(f"stage {stage}, {task}: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def connect(
    scheduler: str | None, n_workers: int | None, memory_limit: str | float | None = None
) -> Iterator[Any]:
    """Connect to a cluster, or start one of local processes with one thread each.

    Parameters
    ----------
    scheduler : str or None
        Address of a scheduler; "synchronous" for none at all; None for a local cluster.
    n_workers : int or None
        Processes of a local cluster; by default one per processor.
    memory_limit : str or float, optional
        Memory per worker of a local cluster, as Dask takes it; by default no limit.

    Yields
    ------
    Client or None
        The client of the cluster; None for "synchronous".
    """
    if scheduler == "synchronous":
        yield None
        return
    distributed = require("distributed", "distributed")
    import dask

    from ..threads import effective_jobs

    settings: Mapping[str, Any] = {
        "distributed.scheduler.allowed-failures": MOST_DEATHS,
        "distributed.scheduler.work-stealing": False,
        "distributed.scheduler.active-memory-manager.start": False,
        "distributed.worker.daemon": True,
        "distributed.worker.profile.enabled": False,
        "distributed.admin.log-length": 0,
        # Clocks of each process that tick 50 times a second: 6 % of a core for two workers.
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "10s",
        **{f"distributed.nanny.pre-spawn-environ.{k}": v for k, v in ENVIRONMENT.items()},
    }
    with dask.config.set(settings):
        if scheduler is not None:
            try:
                client = distributed.Client(scheduler, timeout=PATIENCE)
            except (OSError, ValueError) as error:
                raise ValueError(f"no scheduler answers at {scheduler!r}: {error}") from error
            with client:
                client.wait_for_workers(1)
                yield client
            return
        with (
            distributed.LocalCluster(
                n_workers=n_workers or effective_jobs(-1),
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                memory_limit=memory_limit or 0,
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
