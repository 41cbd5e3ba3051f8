"""Run cases in processes that can be killed: a hang or a crash costs one case, and is counted."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .outcome import WRONG

# Seconds of processor time after which a case counts as a hang; a busy machine is no hang, so the
# clock on the wall has more patience.
LIMITS = dict.fromkeys(
    ("fits", "links", "tables", "sessions", "solves", "signed", "files", "containers", "nodes",
     "written", "batches", "journals", "exports"),
    10.0,
)  # fmt: skip
OTHERS = 60.0  # cases that start processes themselves
PATIENCE = 60.0


@dataclass(frozen=True)
class Result:
    """What a case came to."""

    kind: str
    seed: int
    outcome: str
    detail: str
    seconds: float


def limit_of(kind: str) -> float:
    """Seconds after which a case counts as a hang."""
    return LIMITS.get(kind, OTHERS)


def one_case(kind: str, seed: int) -> tuple[str, str]:
    """Run a case here and now."""
    run = importlib.import_module(f"{__package__}.{kind}").run
    try:
        outcome, _, detail = run(seed).partition("|")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(where.filename)}:{where.lineno}"
        return WRONG, f"{type(error).__name__}: {str(error)[:300]} ({place})"
    return outcome, detail


class _Worker:
    """A forked process that answers seeds with outcomes."""

    def __init__(self, kind: str) -> None:
        task_out, self.tasks = os.pipe()
        self.answers, answer_in = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.tasks)
            os.close(self.answers)
            try:
                self._serve(kind, task_out, answer_in)
            finally:
                os._exit(0)
        os.close(task_out)
        os.close(answer_in)
        self.seed: int | None = None
        self.since = 0.0

    @staticmethod
    def _serve(kind: str, task_out: int, answer_in: int) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with os.fdopen(task_out) as tasks:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends the process
            for line in tasks:
                signal.setitimer(signal.ITIMER_PROF, limit_of(kind))
                answer = json.dumps(one_case(kind, int(line)))
                signal.setitimer(signal.ITIMER_PROF, 0)
                os.write(answer_in, answer.encode() + b"\n")

    def give(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        os.write(self.tasks, f"{seed}\n".encode())

    def stop(self) -> int:
        os.close(self.tasks)
        os.close(self.answers)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def results(kind: str, seeds: Iterable[int], *, jobs: int = 1) -> Iterator[Result]:
    """Run the cases of the seeds, in any order."""
    waiting = iter(seeds)
    workers = [_Worker(kind) for _ in range(jobs)]
    try:
        for worker in list(workers):
            _next(worker, waiting)
        while any(worker.seed is not None for worker in workers):
            ready, _, _ = select.select([w.answers for w in workers], [], [], 0.5)
            for k, worker in enumerate(list(workers)):
                if worker.seed is None:
                    continue
                spent = time.monotonic() - worker.since
                if worker.answers in ready:
                    line = _line(worker.answers)
                    seed, worker.seed = worker.seed, None
                    if line:
                        outcome, detail = json.loads(line)
                    else:
                        code = worker.stop()
                        outcome, detail = WRONG, f"the process crashed with {code}"
                        if code == -signal.SIGPROF:
                            detail = f"hangs: more than {limit_of(kind):g} s of processor time"
                        workers[k] = worker = _Worker(kind)
                    yield Result(kind, seed, outcome, detail, spent)
                    _next(worker, waiting)
                elif spent > PATIENCE * limit_of(kind):
                    seed = worker.seed
                    worker.stop()
                    workers[k] = worker = _Worker(kind)
                    yield Result(kind, seed, WRONG, f"hangs for {spent:.1f} s", spent)
                    _next(worker, waiting)
    finally:
        for worker in workers:
            worker.stop()


def _next(worker: _Worker, waiting: Iterator[int]) -> None:
    seed = next(waiting, None)
    if seed is not None:
        worker.give(seed)


def _line(stream: int) -> bytes:
    content = b""
    while not content.endswith(b"\n"):
        part = os.read(stream, 1 << 16)
        if not part:
            return b""
        content += part
    return content
