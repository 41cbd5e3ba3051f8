"""A process that computes rows: a task per line on its input, an answer per line on its output.

A separate process can be killed, so that a time limit holds whatever compiled code a method is in,
and a crash costs one row. It uses one thread, so that results do not depend on how many work beside
it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import IO, Any

__all__ = ["main"]


def _leave_with_parent(parent: int) -> None:
    """End when the run is killed: nobody would read the answer."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _send(stream: IO[str], **message: Any) -> None:
    stream.write(json.dumps(message, allow_nan=False) + "\n")
    stream.flush()


def main() -> None:
    """Answer tasks until the input ends."""
    # Compiled libraries may print; only answers may reach the pipe.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_leave_with_parent, args=(os.getppid(),), daemon=True).start()
    from .catalogue import compute

    _send(answers, event="ready")
    for line in sys.stdin:
        task = json.loads(line)
        try:
            values = compute(
                task["experiment"], task["params"], lambda: _send(answers, event="started")
            )
            _send(answers, event="done", status="ok", values=values, message="")
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            _send(answers, event="done", status="failed", values={}, message=text[:500])


if __name__ == "__main__":
    main()
