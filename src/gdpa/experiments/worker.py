"""A process that computes rows: a task per line on its input, an answer per line on its output.

A separate process can be killed, so that a time limit holds whatever compiled code a method is in,
and a crash costs one row. It uses one thread, so that results do not depend on how many work beside
it. :func:`serve` is the loop for any function of a task; run as a module it computes rows of the
experiments.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

__all__ = ["Compute", "main", "serve"]

# (name, parameters, to be called when the clock starts) -> values
Compute = Callable[[str, Mapping[str, Any], Callable[[], None]], dict[str, Any]]


def _leave_with_parent(parent: int) -> None:
    """End when the run is killed: nobody would read the answer."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _send(stream: IO[str], **message: Any) -> None:
    stream.write(json.dumps(message, allow_nan=False) + "\n")
    stream.flush()


def serve(load: Callable[[], Compute]) -> None:
    """Answer tasks until the input ends.

    Parameters
    ----------
    load : callable
        Imports what computes and returns it; called once, when the process listens.
    """
    # Compiled libraries may print; only answers may reach the pipe.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_leave_with_parent, args=(os.getppid(),), daemon=True).start()
    compute = load()
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


def _experiments() -> Compute:
    from .catalogue import compute  # the catalogue imports NumPy and more: after the pipe is set up

    return compute


def main() -> None:
    """Compute rows of the experiments."""
    serve(_experiments)


if __name__ == "__main__":
    main()
