"""Compute the missing rows of a results folder in worker processes, with a time limit per row.

A separate process can be killed, so a time limit holds whatever compiled code a method is in, and a
crash costs one row. Its numerical libraries use one thread, so results do not depend on how many
processes run side by side.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from .store import ResultsStore, Row, Task

CONTEXT: Any = multiprocessing.get_context("spawn")
_START_SECONDS = 120.0
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


@dataclass(frozen=True)
class WorkerKind:
    """How rows are computed.

    Parameters
    ----------
    compute : str
        ``module:function`` that a process calls with the experiment, the parameters, and a
        function to be called when the clock of the time limit starts; it returns the values.
    threads : int
        Threads of its numerical libraries.
    fresh : bool
        Whether every row gets a process of its own, so that its peak memory is its own.
    """

    compute: str = "reproduction.experiments:compute"
    threads: int = 1
    fresh: bool = False


@dataclass(frozen=True)
class ProgressEvent:
    """Progress of a run.

    Parameters
    ----------
    done, total : int
        Finished rows, and all rows of the run.
    computed : int
        Rows computed since the start of this run; the others were finished before.
    current : tuple of str
        What is being computed.
    remaining : float or None
        Estimate of the seconds left; None before the first row is finished.
    """

    done: int
    total: int
    computed: int
    current: tuple[str, ...]
    remaining: float | None


Progress = Callable[[ProgressEvent], Any]


def serve(connection: Connection, compute: str) -> None:
    """Run in a worker process: compute tasks until the connection closes.

    Parameters
    ----------
    connection : Connection
        Receives (experiment, params); sends what happened and the values.
    compute : str
        See :class:`WorkerKind`.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # compiled libraries may print
        os.dup2(null, stream)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides when its workers end
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    module, name = compute.split(":")
    function = getattr(importlib.import_module(module), name)
    connection.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            task = connection.recv()
            try:
                values = function(*task, lambda: connection.send("started"))
                json.dumps(values, allow_nan=False)
                connection.send(("ok", values, ""))
            except Exception as error:
                connection.send(("failed", {}, f"{type(error).__name__}: {error}"[:500]))


def _leave_with_parent() -> None:
    """End when the run is killed: nobody would read the answer."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


class _Worker:
    """One worker process and its current task."""

    def __init__(self, kind: WorkerKind) -> None:
        self.connection, theirs = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=serve, args=(theirs, kind.compute))
        before = dict(os.environ)
        os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(kind.threads)))
        try:
            self.process.start()  # it inherits the environment
        finally:
            os.environ.clear()
            os.environ.update(before)
        theirs.close()
        self.ready = False
        self.task: Task | None = None
        self.sent = 0.0
        self.deadline: float | None = time.monotonic() + _START_SECONDS

    def send(self, task: Task) -> None:
        self.task, self.deadline = task, None
        with contextlib.suppress(OSError):  # if it has died, reading from it says so
            self.connection.send((task.experiment, dict(task.params)))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def run_tasks(
    tasks: Sequence[Task],
    store: ResultsStore,
    *,
    jobs: int = 1,
    time_limit: float | None = None,
    retry_failed: bool = False,
    progress: Progress | None = None,
    worker: WorkerKind | None = None,
) -> None:
    """Compute the missing rows.

    Parameters
    ----------
    tasks : sequence of Task
        All rows of the run, including finished ones.
    store : ResultsStore
        Where the rows go.
    jobs : int, default=1
        Worker processes. Rows whose result is a time run one after the other.
    time_limit : float, optional
        Seconds that one method may take on one problem; then its process is killed and the row
        says so.
    retry_failed : bool, default=False
        Whether rows that failed before are computed again.
    progress : callable, optional
        Called with a :class:`ProgressEvent` at least every second, at most ten times a second,
        and at the end.
    worker : WorkerKind, optional
        What computes a row; by default the experiments of this package.
    """
    if isinstance(jobs, bool) or int(jobs) != jobs or jobs < 1:
        raise ValueError(f"jobs={jobs!r} is not accepted; a whole number of at least 1 is")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit={time_limit!r} is not accepted; seconds above 0 are")
    unique = list({task.key: task for task in tasks}.values())
    missing = [
        task
        for task in unique
        if not store.finished(task, time_limit=task.limit or time_limit, retry_failed=retry_failed)
    ]
    run = _Run(store, worker or WorkerKind(), time_limit, progress, len(unique), len(missing))
    # A series that broke off in an earlier run is broken off in this one.
    ahead = {task.key for task in missing}
    for task in unique:
        row = None if task.key in ahead else store.get(task)
        if row is not None:
            run.break_chain(task, row)
    try:
        run.batch([task for task in missing if not task.serial], int(jobs))
        run.batch([task for task in missing if task.serial], 1)
    finally:
        for last in run.workers:
            last.stop()
        run.workers.clear()
    run.report(force=True)


@dataclass
class _Run:
    """State of one call of :func:`run_tasks`."""

    store: ResultsStore
    kind: WorkerKind
    time_limit: float | None
    progress: Progress | None
    total: int
    left: int
    computed: int = 0
    jobs: int = 1
    last_report: float = 0.0
    spent: float = 0.0
    workers: list[_Worker] = field(default_factory=list)
    chains: dict[tuple[str, ...], str] = field(default_factory=dict)

    def batch(self, tasks: list[Task], jobs: int) -> None:
        self.jobs = jobs
        waiting = deque(tasks)
        while waiting or any(w.task is not None for w in self.workers):
            while len(self.workers) < min(jobs, len(waiting)):
                self.workers.append(_Worker(self.kind))
            for worker in self.workers:
                if worker.ready and worker.task is None:
                    self._give(worker, waiting)
            self.report()
            self._wait()
        while len(self.workers) > 1:
            self._drop(self.workers[-1])

    def _give(self, worker: _Worker, waiting: deque[Task]) -> None:
        while waiting:
            task = waiting.popleft()
            broken = self.chains.get(task.chain) if task.chain else None
            worker.sent = time.monotonic()
            if broken is None:
                worker.send(task)
                return
            self._finish(worker, task, "skipped", {}, broken)

    def break_chain(self, task: Task, row: Row) -> None:
        if task.chain and row.status in ("time-limit", "failed"):
            self.chains[task.chain] = f"a smaller problem of the series: {row.message}"

    def _wait(self) -> None:
        deadlines = [w.deadline for w in self.workers if w.deadline is not None]
        seconds = min([1.0, *(d - time.monotonic() for d in deadlines)])
        by_connection = {w.connection: w for w in self.workers}
        for connection in wait(list(by_connection), timeout=max(seconds, 0.001)):
            worker = by_connection[connection]
            try:
                answer = worker.connection.recv()
            except (EOFError, ConnectionError):
                self._lost(worker, "failed")
            else:
                self._answered(worker, answer)
        now = time.monotonic()
        for worker in [w for w in self.workers if w.deadline is not None and now >= w.deadline]:
            self._lost(worker, "time-limit")

    def _answered(self, worker: _Worker, answer: Any) -> None:
        worker.ready, worker.deadline, task = True, None, worker.task
        if task is not None and answer == "started":
            limit = self._limit(task)
            worker.deadline = None if limit is None else time.monotonic() + limit
        elif task is not None:
            worker.task = None
            if self.kind.fresh:
                self._drop(worker)
            self._finish(worker, task, *answer)

    def _lost(self, worker: _Worker, status: str) -> None:
        """Record that a process died or exceeded its time limit."""
        self._drop(worker)
        if worker.task is None:
            raise RuntimeError(
                f"a worker process ended or did not start within {_START_SECONDS:.0f} seconds; can "
                f"{self.kind.compute.split(':')[0]} be imported?"
            )
        text = f"the process ended with code {worker.process.exitcode} (out of memory, or a crash)"
        if status == "time-limit":
            text = f"exceeded the time limit of {self._limit(worker.task):g} s"
        self._finish(worker, worker.task, status, {}, text)

    def _limit(self, task: Task) -> float | None:
        return self.time_limit if task.limit is None else task.limit

    def _drop(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.stop()

    def _finish(
        self, worker: _Worker, task: Task, status: str, values: dict[str, Any], message: str
    ) -> None:
        row = Row(task.experiment, task.params, status, values, message, self._limit(task))
        self.store.append(row)
        self.break_chain(task, row)
        self.left -= 1
        self.computed += 1
        self.spent += time.monotonic() - worker.sent
        self.report()

    def report(self, force: bool = False) -> None:
        now = time.monotonic()
        if self.progress is None or (not force and now - self.last_report < 0.1):
            return
        self.last_report = now
        done, current = self.total - self.left, [w.task.label for w in self.workers if w.task]
        remaining = None if self.left else 0.0
        if self.left and self.computed:
            remaining = self.spent / self.computed * self.left / self.jobs
        event = ProgressEvent(done, self.total, self.computed, tuple(current), remaining)
        self.progress(event)
