"""Processes forked from this one, which has everything imported: their start costs nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path


def forked(work: Callable[[], int], log: Path) -> int:
    """Start `work` in a child of its own session; return its process number."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(
                sign, signal.default_int_handler if sign == signal.SIGINT else signal.SIG_DFL
            )
        stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.closerange(3, 256)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        code = work()
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 255)


def ended(pid: int, seconds: float) -> int | None:
    """Exit code (negative: the signal) of a child, or None if it has not ended in time."""
    stop = time.monotonic() + seconds
    while True:
        got, status = os.waitpid(pid, os.WNOHANG)
        if got:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= stop:
            return None
        time.sleep(0.001)


def kill(pid: int, sign: int) -> None:
    """Send a signal to a child, if it is still there."""
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return
