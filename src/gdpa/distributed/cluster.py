"""Run tasks: on a Dask cluster, or one after the other in this process.

A task is a function of a folder and plain arguments that writes files and ends with a record. It
may be run twice, or again after its worker was lost: the second run finds the record and returns.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import require
from ..threads import effective_jobs, one_thread
from .folder import Folder
from .manifest import Manifest, Output, Record, read_record, record_name, write_record

if TYPE_CHECKING:
    from distributed import Client

Task = Callable[..., dict[str, Any]]

# Dask has workers return every block above 128 kB to the system at once: taking it anew costs half
# of the time of a search of 200,000 points. One arena for all threads of a worker, of which one
# works: others leave holes.
ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": 2**26,
    "MALLOC_MMAP_THRESHOLD_": 2**24,
    "MALLOC_ARENA_MAX": 1,
}
# A task whose worker died so often is not tried again: it is the task that kills them.
MAX_FAILURES = 20


class TaskError(RuntimeError):
    """A task failed; the message names stage and task."""


@dataclass(frozen=True)
class Event:
    """Progress of a run.

    Parameters
    ----------
    stage : str
        The stage.
    done, total : int
        Tasks, or steps of a solve.
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
        return self.seconds * (self.total - self.done) / self.done if self.done else None


def release_memory() -> None:
    """Return freed memory to the system: after a million rows some 100 MB of a worker."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError, TypeError):  # of the GNU C library only
        ctypes.CDLL(None).malloc_trim(0)


def run_task(
    url: str, stage: str, task: int, function: Task, arguments: Mapping[str, object]
) -> Record:
    """Run one task, unless its record says that it is done."""
    folder = Folder(url)
    before = read_record(folder, stage, task)
    if before is not None:
        return before
    output = Output(folder)
    with one_thread():
        result = function(output, **arguments)
    record = Record(output.files, result)
    write_record(folder, stage, task, record)
    release_memory()
    return record


class InProcess:
    """A stand-in for Dask's client that runs everything in this process, at once."""

    def submit(self, function: Callable[..., Any], *arguments: object, **_: object) -> Any:
        """Return the result of a call."""
        return function(*arguments)

    def gather(self, results: list[Any]) -> list[Any]:
        """Return the results."""
        return results


class Runner:
    """Runs the stages of a run, and notes them in its manifest.

    Parameters
    ----------
    client : distributed.Client or InProcess
        Where to run.
    manifest : Manifest
        The manifest of the work folder, open.
    report : callable, optional
        Called with an :class:`Event` for each task that ends.
    """

    def __init__(
        self,
        client: Client | InProcess,
        manifest: Manifest,
        report: Callable[[Event], None] | None = None,
    ) -> None:
        self.client, self.manifest, self.folder = client, manifest, manifest.folder
        self._report = report or (lambda event: None)
        self.seconds: dict[str, float] = {}
        self.current, self._started = "", 0.0

    @property
    def n_workers(self) -> int:
        """Workers there are now."""
        if isinstance(self.client, InProcess):
            return 1
        return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    def stage(
        self,
        name: str,
        function: Task,
        each: Iterable[Mapping[str, object]] = ({},),
        *,
        here: bool = False,
        **common: object,
    ) -> list[dict[str, Any]]:
        """Run what is not done yet of a stage.

        Parameters
        ----------
        name : str
            The stage.
        function : callable
            ``function(output, **arguments) -> dict``; writes to the :class:`Output`.
        each : iterable of mappings
            Arguments of each task; the tasks are independent of each other.
        here : bool, default=False
            Run them in this process; they report their own progress.
        **common
            Arguments of all tasks.

        Returns
        -------
        list of dict
            The results.
        """
        finished = self.manifest.stage(name)
        if finished is not None:
            return finished
        tasks = [{**own, **common} for own in each]
        self.current, self._started = name, time.perf_counter()
        records: dict[int, Record] = {}
        for task in range(len(tasks)):
            record = read_record(self.folder, name, task)
            if record is not None and all(map(self.folder.is_intact, record.files)):
                records[task] = record
            else:
                self.folder.remove([record_name(name, task)])
        self.progress(len(records), len(tasks))
        waiting = {task: tasks[task] for task in range(len(tasks)) if task not in records}
        if here:
            for task, arguments in waiting.items():
                records[task] = run_task(self.folder.url, name, task, function, arguments)
        else:
            for task, record in self._run(name, function, waiting):
                records[task] = record
                self.progress(len(records), len(tasks))
        ordered = [records[task] for task in range(len(tasks))]
        self.manifest.seal(name, ordered)
        self.seconds[name] = time.perf_counter() - self._started
        return [record.result for record in ordered]

    def _run(
        self, stage: str, function: Task, tasks: Mapping[int, Mapping[str, object]]
    ) -> Iterator[tuple[int, Record]]:
        """Run tasks; yield each with its record when it ends."""
        url = self.folder.url
        if isinstance(self.client, InProcess):
            for task, arguments in tasks.items():
                with named_errors(stage):
                    record = run_task(url, stage, task, function, arguments)
                yield task, record
            return
        futures = {
            self.client.submit(run_task, url, stage, task, function, arguments, pure=False): task
            for task, arguments in tasks.items()
        }
        try:
            for future in require("distributed", "distributed").as_completed(list(futures)):
                with named_errors(stage):
                    record = future.result()
                yield futures[future], record
                future.release()
        except BaseException:
            self.client.cancel(list(futures))
            raise

    def progress(self, done: int, total: int) -> None:
        """Report how much of the current stage is done."""
        self._report(Event(self.current, done, total, time.perf_counter() - self._started))

    def submit(self, function: Callable[..., object], *arguments: object) -> Any:
        """Have a call run on a worker; return its future."""
        with named_errors(self.current):
            return self.client.submit(function, *arguments, pure=False)

    def gather(self, futures: list[Any]) -> list[Any]:
        """Return the results of calls."""
        with named_errors(self.current):
            return list(self.client.gather(futures))

    def wait(self, futures: list[Any]) -> None:
        """Wait until calls have ended."""
        if not isinstance(self.client, InProcess):
            require("distributed", "distributed").wait(futures)


@contextlib.contextmanager
def named_errors(stage: str) -> Iterator[None]:
    """Name the stage of an unexpected error; errors about the input stay as they are."""
    try:
        yield
    except (ValueError, MemoryError, OSError, KeyboardInterrupt):
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise TaskError(
                f"stage {stage!r}: the worker of one task was lost {MAX_FAILURES} times, probably "
                "because it ran out of memory; give workers more memory, or use more parts"
            ) from error
        raise TaskError(f"stage {stage!r}: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def connect(
    scheduler: str | None,
    n_workers: int | None,
    memory_limit: str | float | None = None,
    *,
    timeout: str = "30s",
) -> Iterator[Any]:
    """Connect to a scheduler, or start local processes; "synchronous" runs in this process."""
    if scheduler == "synchronous":
        yield InProcess()
        return
    distributed = require("distributed", "distributed")
    import dask

    settings = {
        "distributed.scheduler.allowed-failures": MAX_FAILURES,
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
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        if scheduler is None:
            try:
                cluster = distributed.LocalCluster(
                    n_workers=n_workers or effective_jobs(-1),
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    memory_limit=memory_limit or 0,
                    silence_logs=logging.CRITICAL,
                )
                client = distributed.Client(stack.enter_context(cluster))
            except (RuntimeError, OSError) as error:  # a worker was killed before it answered
                raise ConnectionError(
                    f"the local workers could not be started ({error}); run the command again, "
                    "with fewer workers if memory is short"
                ) from error
        else:
            try:
                client = distributed.Client(scheduler, timeout=timeout)
            except (OSError, ValueError) as error:
                raise ValueError(f"no scheduler answers at {scheduler!r}: {error}") from error
        with client:
            client.wait_for_workers(1)
            yield client
