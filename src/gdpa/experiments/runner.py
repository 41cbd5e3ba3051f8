"""Compute what is missing in a results folder, in worker processes, within a time limit per row."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .store import ResultsStore, Row, Task

__all__ = ["Progress", "ProgressEvent", "WorkerKind", "run_tasks"]

_START_SECONDS = 120.0
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@dataclass(frozen=True)
class WorkerKind:
    """How rows are computed.

    Parameters
    ----------
    module : str
        What the process runs; it must call :func:`gdpa.experiments.worker.serve`.
    threads : int
        Threads of its numerical libraries.
    fresh : bool
        Whether every row gets a process of its own, so that its memory is its own.
    folder : str, optional
        Where it runs.
    """

    module: str = "gdpa.experiments.worker"
    threads: int = 1
    fresh: bool = False
    folder: str | None = None


_EXPERIMENTS = WorkerKind()


@dataclass(frozen=True)
class ProgressEvent:
    """How far a run is.

    Parameters
    ----------
    done, total : int
        Rows that are there, rows that belong to the run.
    computed : int
        Rows computed since the start of this run; the others were there before.
    current : tuple of str
        What is being computed.
    elapsed : float
        Seconds since the start.
    remaining : float or None
        Estimate of the seconds left; None until there is something to estimate from.
    """

    done: int
    total: int
    computed: int
    current: tuple[str, ...]
    elapsed: float
    remaining: float | None


Progress = Callable[[ProgressEvent], Any]


class _Worker:
    """One worker process and the row it is at."""

    def __init__(
        self, kind: WorkerKind, inbox: queue.Queue[tuple[_Worker, dict[str, Any] | None]]
    ) -> None:
        environment = dict(os.environ)
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(kind.threads)))
        self.process = subprocess.Popen(
            [sys.executable, "-m", kind.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=kind.folder,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        self.inbox = inbox
        self.ready = False
        self.task: Task | None = None
        self.sent = 0.0
        self.deadline: float | None = time.monotonic() + _START_SECONDS
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            self.inbox.put((self, message))
        self.inbox.put((self, None))

    def send(self, task: Task) -> None:
        assert self.process.stdin is not None
        self.task, self.sent, self.deadline = task, time.monotonic(), None
        try:
            line = json.dumps({"experiment": task.experiment, "params": dict(task.params)})
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:  # it has died: the listener says so
            return

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class _Estimate:
    """Seconds left, from the mean time of each method so far."""

    def __init__(self) -> None:
        self.total: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])

    @staticmethod
    def _group(task: Task) -> tuple[str, str]:
        return task.experiment, str(task.params.get("method", ""))

    def add(self, task: Task, seconds: float) -> None:
        entry = self.total[self._group(task)]
        entry[0] += seconds
        entry[1] += 1

    def remaining(self, counts: dict[tuple[str, str], int], jobs: int) -> float | None:
        if not self.total:
            return None
        spent = sum(entry[0] for entry in self.total.values())
        overall = spent / sum(entry[1] for entry in self.total.values())
        seconds = 0.0
        for group, count in counts.items():
            entry = self.total.get(group)
            seconds += count * (entry[0] / entry[1] if entry else overall)
        return seconds / jobs


def run_tasks(
    tasks: Sequence[Task],
    store: ResultsStore,
    *,
    jobs: int = 1,
    time_limit: float | None = None,
    retry_failed: bool = False,
    progress: Progress | None = None,
    worker: WorkerKind = _EXPERIMENTS,
) -> None:
    """Compute the rows that are missing.

    Parameters
    ----------
    tasks : sequence of Task
        All rows of the run, finished ones included.
    store : ResultsStore
        Where they go.
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
        What computes a row; by default a process that knows the experiments.
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
    run = _Run(store, worker, time_limit, progress, len(unique), missing)
    # A series that broke off in an earlier run is broken off in this one.
    ahead = {task.key for task in missing}
    for task in unique:
        row = None if task.key in ahead else store.get(task)
        if row is not None and row.status in ("time-limit", "failed"):
            run.break_chain(task, row)
    try:
        run.batch([task for task in missing if not task.serial], int(jobs))
        run.batch([task for task in missing if task.serial], 1)
    finally:
        run.stop()
    run.report(force=True)


class _Run:
    """State of one call of :func:`run_tasks`."""

    def __init__(
        self,
        store: ResultsStore,
        kind: WorkerKind,
        time_limit: float | None,
        progress: Progress | None,
        total: int,
        missing: list[Task],
    ) -> None:
        self.store, self.kind, self.time_limit, self.progress = store, kind, time_limit, progress
        self.total, self.left = total, len(missing)
        self.start, self.computed, self.last_report = time.monotonic(), 0, 0.0
        self.inbox: queue.Queue[tuple[_Worker, dict[str, Any] | None]] = queue.Queue()
        self.workers: list[_Worker] = []
        self.chains: dict[tuple[str, ...], str] = {}
        self.estimate = _Estimate()
        self.counts: dict[tuple[str, str], int] = defaultdict(int)
        self.jobs = 1
        for task in missing:
            self.counts[self.estimate._group(task)] += 1

    def batch(self, tasks: list[Task], jobs: int) -> None:
        self.jobs = jobs
        waiting = list(reversed(tasks))
        while waiting or any(w.task is not None for w in self.workers):
            while len(self.workers) < min(jobs, len(waiting)):
                self.workers.append(_Worker(self.kind, self.inbox))
            for worker in self.workers[:jobs]:
                if worker.ready and worker.task is None:
                    self._give(worker, waiting)
            self.report()
            self._wait()
        for worker in self.workers[1:]:
            worker.stop()
        del self.workers[1:]

    def _give(self, worker: _Worker, waiting: list[Task]) -> None:
        while waiting:
            task = waiting.pop()
            broken = self._broken_chain(task)
            if broken is None:
                worker.send(task)
                return
            self._finish(task, self._row(task, "skipped", message=broken), 0.0)

    def _broken_chain(self, task: Task) -> str | None:
        if not task.chain:
            return None
        return self.chains.get(task.chain)

    def break_chain(self, task: Task, row: Row) -> None:
        if task.chain:
            self.chains[task.chain] = f"a smaller problem of the series: {row.message}"

    def _wait(self) -> None:
        deadlines = [w.deadline for w in self.workers if w.deadline is not None]
        wait = min([1.0, *(d - time.monotonic() for d in deadlines)])
        try:
            worker, message = self.inbox.get(timeout=max(wait, 0.001))
        except queue.Empty:
            self._enforce()
            return
        if worker not in self.workers:
            return  # the last words of one that was stopped
        if message is None:
            self._died(worker)
        elif message["event"] == "ready":
            worker.ready, worker.deadline = True, None
        elif message["event"] == "started":
            limit = self._limit(worker.task)
            if limit is not None:
                worker.deadline = time.monotonic() + limit
        elif worker.task is not None:
            task, worker.task, worker.deadline = worker.task, None, None
            row = self._row(task, message["status"], message["values"], message["message"])
            if self.kind.fresh:
                self._drop(worker)
            self._finish(task, row, time.monotonic() - worker.sent)
        self._enforce()

    def _limit(self, task: Task | None) -> float | None:
        return self.time_limit if task is None or task.limit is None else task.limit

    def _row(
        self, task: Task, status: str, values: Mapping[str, Any] | None = None, message: str = ""
    ) -> Row:
        return Row(task.experiment, task.params, status, values or {}, message, self._limit(task))

    def _enforce(self) -> None:
        now = time.monotonic()
        for worker in list(self.workers):
            if worker.deadline is None or now < worker.deadline:
                continue
            task = worker.task
            self._drop(worker)
            if task is None:
                raise RuntimeError(
                    f"a worker process did not start within {_START_SECONDS:.0f} seconds"
                )
            text = f"exceeded the time limit of {self._limit(task):g} s"
            row = self._row(task, "time-limit", message=text)
            self._finish(task, row, now - worker.sent)

    def _died(self, worker: _Worker) -> None:
        task = worker.task
        self._drop(worker)
        if task is None:
            raise RuntimeError(
                "a worker process ended before it was ready; "
                f"try: {os.path.basename(sys.executable)} -m {self.kind.module}"
            )
        code = worker.process.returncode
        text = f"the process ended with code {code} (out of memory, or a crash)"
        row = self._row(task, "failed", message=text)
        self._finish(task, row, time.monotonic() - worker.sent)

    def _drop(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.stop()

    def _finish(self, task: Task, row: Row, seconds: float) -> None:
        self.store.append(row)
        if row.status in ("time-limit", "failed"):
            self.break_chain(task, row)
        self.left -= 1
        self.computed += 1
        self.counts[self.estimate._group(task)] -= 1
        self.estimate.add(task, seconds)
        self.report()

    def report(self, force: bool = False) -> None:
        now = time.monotonic()
        if self.progress is None or (not force and now - self.last_report < 0.1):
            return
        self.last_report = now
        self.progress(
            ProgressEvent(
                done=self.total - self.left,
                total=self.total,
                computed=self.computed,
                current=tuple(w.task.label for w in self.workers if w.task is not None),
                elapsed=now - self.start,
                remaining=self.estimate.remaining(self.counts, self.jobs) if self.left else 0.0,
            )
        )

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()
        self.workers.clear()
