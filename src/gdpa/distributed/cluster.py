"""Run tasks on a Dask cluster, or one after the other in this process.

A task is a function that writes files to the work folder. When it is done, :func:`run_task` writes
its record. A task may be started twice, for example after its worker was lost: if there is a
record, it returns at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..checks import check_positive
from ..errors import require
from ..memory import available_memory
from ..threads import effective_jobs, one_thread
from ..version import __version__
from .folder import Folder
from .manifest import Manifest, Output, Record, read_record, record_name

if TYPE_CHECKING:
    from distributed import Client

Task = Callable[..., dict[str, Any]]

# Dask's defaults return every freed block above 128 kB to the system at once; allocating it again
# takes half of the time of a search. One arena avoids fragmentation: one thread does all the work.
ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": 2**26,
    "MALLOC_MMAP_THRESHOLD_": 2**24,
    "MALLOC_ARENA_MAX": 1,
}
# A task is not repeated after this many lost workers, because it is probably the cause.
MAX_FAILURES = 20


class TaskError(RuntimeError):
    """Raised if a task fails; the message names the stage."""


@dataclass(frozen=True)
class Event:
    """Progress of a run.

    Parameters
    ----------
    stage : str
        Name of the stage.
    done, total : int
        Finished and all tasks, or steps of a solve.
    seconds : float
        Time since the stage began.
    dashboard : str, default=""
        Address of the Dask dashboard, if there is one.
    """

    stage: str
    done: int
    total: int
    seconds: float
    dashboard: str = ""

    @property
    def left(self) -> float | None:
        """Estimated seconds to the end of the stage; None before the first task is done."""
        return self.seconds * (self.total - self.done) / self.done if self.done else None


def release_memory() -> None:
    """Return freed memory to the system."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError, TypeError):  # only the GNU C library has it
        ctypes.CDLL(None).malloc_trim(0)


def run_task(
    url: str, stage: str, task: int, function: Task, arguments: Mapping[str, object]
) -> Record:
    """Run one task, unless there is a record that it is done."""
    folder = Folder(url)
    if (done := read_record(folder, stage, task)) is not None:
        return done
    output = Output(folder)
    with one_thread():
        result = function(output, **arguments)
    record = Record(output.files, result)
    folder.write_json(record_name(stage, task), asdict(record))
    release_memory()
    return record


class InProcess:
    """A replacement for Dask's client that runs every call at once, in this process.

    Parameters
    ----------
    n_workers : int, default=1
        Number of groups that the parts of a graph are divided into, as if each had a worker.
    """

    def __init__(self, n_workers: int = 1) -> None:
        self.n_workers = n_workers

    def submit(self, function: Callable[..., Any], *arguments: object, **_: object) -> Any:
        """Call the function and return its result."""
        return function(*arguments)

    def gather(self, results: list[Any]) -> list[Any]:
        """Return the results."""
        return results


class Runner:
    """Runs the stages of a fit or prediction, and records them in the manifest.

    Parameters
    ----------
    client : distributed.Client or InProcess
        Where to run the tasks.
    manifest : Manifest
        The open manifest of the work folder.
    report : callable, optional
        Called with an :class:`Event` whenever a task ends.
    dashboard : bool, default=False
        Whether events have the address of the Dask dashboard.
    """

    def __init__(
        self,
        client: Client | InProcess,
        manifest: Manifest,
        report: Callable[[Event], None] | None = None,
        *,
        dashboard: bool = False,
    ) -> None:
        self.client = client
        self.manifest = manifest
        self.folder = manifest.folder
        self._report = report or (lambda event: None)
        self.seconds: dict[str, float] = {}
        self.current = ""
        self._started = 0.0
        self.dashboard = ""
        if dashboard and not isinstance(client, InProcess):
            self.dashboard = str(client.dashboard_link)

    @property
    def n_workers(self) -> int:
        """Number of workers that are connected now."""
        if isinstance(self.client, InProcess):
            return self.client.n_workers
        return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    @property
    def worker_memory(self) -> float:
        """Bytes of memory of each worker: its limit, or an equal share of what is available."""
        limits = []
        if not isinstance(self.client, InProcess):
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
            limits = [worker["memory_limit"] for worker in workers if worker["memory_limit"]]
        return float(min(limits, default=available_memory() / self.n_workers))

    def stage(
        self,
        name: str,
        function: Task,
        each: Iterable[Mapping[str, object]] = ({},),
        *,
        here: bool = False,
        **common: object,
    ) -> list[dict[str, Any]]:
        """Run the unfinished tasks of a stage, and return the results of all its tasks.

        Parameters
        ----------
        name : str
            Name of the stage.
        function : callable
            ``function(output, **arguments) -> dict``; writes to the :class:`Output`.
        each : iterable of mappings
            Arguments of each task; the tasks do not depend on each other.
        here : bool, default=False
            Whether to run the tasks in this process.
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
        tasks = [{**arguments, **common} for arguments in each]
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
        for task, record in self._run(name, function, waiting, here):
            records[task] = record
            self.progress(len(records), len(tasks))
        ordered = [records[task] for task in range(len(tasks))]
        self.manifest.seal(name, ordered)
        self.seconds[name] = time.perf_counter() - self._started
        return [record.result for record in ordered]

    def _run(
        self, stage: str, function: Task, tasks: Mapping[int, Mapping[str, object]], here: bool
    ) -> Iterator[tuple[int, Record]]:
        """Run tasks; yield the number and record of each when it ends."""
        url = self.folder.url
        if here or isinstance(self.client, InProcess):
            for task, arguments in tasks.items():
                # A stage in this process calls the user's callback, whose errors are not changed.
                with contextlib.nullcontext() if here else named_errors(stage):
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
        seconds = time.perf_counter() - self._started
        try:
            self._report(Event(self.current, done, total, seconds, self.dashboard))
        except Exception as error:
            error.from_callback = True  # type: ignore[attr-defined]
            raise

    def submit(self, function: Callable[..., object], *arguments: object) -> Any:
        """Start a call on a worker; return its future."""
        with named_errors(self.current):
            return self.client.submit(function, *arguments, pure=False)

    def gather(self, futures: list[Any]) -> list[Any]:
        """Return the results of calls."""
        with named_errors(self.current):
            return list(self.client.gather(futures))

    def wait(self, futures: list[Any]) -> None:
        """Wait for calls to end."""
        if not isinstance(self.client, InProcess):
            require("distributed", "distributed").wait(futures)


@contextlib.contextmanager
def named_errors(stage: str) -> Iterator[None]:
    """Add the stage to unexpected errors; errors about the input are not changed."""
    try:
        yield
    except (ValueError, MemoryError, OSError, KeyboardInterrupt):
        raise
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise TaskError(
                f"stage {stage!r}: one task lost its worker {MAX_FAILURES} times, probably because "
                "it ran out of memory; give workers more memory, or use more parts"
            ) from error
        raise TaskError(f"stage {stage!r}: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Where the tasks of a run are executed.

    Parameters
    ----------
    scheduler : str or distributed.Client, optional
        Address of a Dask scheduler, or a connected client. By default local worker processes are
        started; "synchronous" runs everything in this process.
    n_workers : int, optional
        Number of local worker processes; by default one per processor. With "synchronous", the
        number of groups of parts, as if each had a worker; by default 1.
    memory_limit : str or float, optional
        Memory of each local worker, in Dask's format, such as "3GB".
    dashboard : bool, default=False
        Whether the local workers have a Dask dashboard; its address is
        :attr:`Event.dashboard`. Needs the package bokeh.
    """

    scheduler: str | Client | None = None
    n_workers: int | None = None
    memory_limit: str | float | None = None
    dashboard: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        if self.n_workers is not None:
            check_positive(self.n_workers, "n_workers", 1)


def installed_version() -> str:
    """Return the version of gdpa of this process."""
    return __version__


def check_versions(client: Client) -> None:
    """Raise an error if a worker has another version of gdpa, whose parts could differ."""
    try:
        found = client.run(installed_version)
    except Exception as error:
        raise ValueError(
            f"a worker cannot load gdpa ({type(error).__name__}: {error}); install gdpa "
            f"{__version__} on all workers"
        ) from error
    for worker, version in found.items():
        if version != __version__:
            raise ValueError(
                f"worker {worker} has gdpa {version}, but the client has {__version__}; install "
                "the same version on all workers"
            )


@contextlib.contextmanager
def connect(workers: Workers, *, timeout: str = "30s") -> Iterator[Any]:
    """Connect to a scheduler, or start local workers; "synchronous" runs in this process."""
    scheduler = workers.scheduler
    if scheduler == "synchronous":
        yield InProcess(workers.n_workers or 1)
        return
    if scheduler is not None and not isinstance(scheduler, str):
        check_versions(scheduler)
        yield scheduler
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
        # By default each process wakes up 50 times a second, which costs 3 % of a core.
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "10s",
        **{f"distributed.nanny.pre-spawn-environ.{k}": v for k, v in ENVIRONMENT.items()},
    }
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        if scheduler is None:
            try:
                cluster = distributed.LocalCluster(
                    n_workers=workers.n_workers or effective_jobs(-1),
                    threads_per_worker=1,
                    processes=True,
                    # Any free port; without an address Dask warns if its usual one is in use.
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={} if workers.dashboard else {"dashboard": False},
                    memory_limit=workers.memory_limit or 0,
                    silence_logs=logging.CRITICAL,
                )
                client = distributed.Client(stack.enter_context(cluster))
            except (RuntimeError, OSError) as error:  # a worker was killed before it answered
                raise ConnectionError(
                    f"the local workers did not start ({error}); run the command again, with fewer "
                    "workers if memory is short"
                ) from error
        else:
            try:
                client = distributed.Client(scheduler, timeout=timeout)
            except (OSError, ValueError) as error:
                raise ValueError(f"no scheduler responds at {scheduler!r}: {error}") from error
        with client:
            client.wait_for_workers(1)
            if scheduler is not None:
                check_versions(client)
            yield client
