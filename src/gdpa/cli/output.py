"""Output of the commands: data on stdout, messages and progress on stderr, and exit codes.

Each command runs inside :class:`Output`. Warnings of the package become lines on stderr. Bad input
becomes one line and exit code 2, Ctrl-C one line and 130. A result that did not converge has exit
code 1. With ``--json`` stdout carries exactly one JSON document, also for errors.
"""

from __future__ import annotations

import json
import os
import sys
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import typer
from rich.box import HEAVY_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..errors import ConvergenceWarning, DegenerateProblemWarning, UnreachedWarning

DONE = 0
NOT_CONVERGED = 1
BAD_INPUT = 2
INTERNAL = 70
INTERRUPTED = 130
PIPE_CLOSED = 141


def clean(text: object) -> str:
    """Return text on one line, with control characters escaped: a terminal would obey them."""
    words = " ".join(str(text).split())
    if words.isprintable():
        return words
    return "".join(
        c
        if unicodedata.category(c) not in ("Cc", "Cf", "Cs")
        else c.encode("unicode_escape", "surrogatepass").decode()
        for c in words
    )


def to_json(value: object) -> str:
    """Return a value as JSON: arrays as lists, NaN and infinity as null, other objects as text."""
    text = json.dumps(value, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v))
    finite = json.loads(text, parse_constant=lambda name: None)
    return json.dumps(finite, ensure_ascii=False)


class Output:
    """Output of one command, as a context manager.

    Parameters
    ----------
    command : str
        Name of the command, for messages.
    json : bool
        Whether stdout carries one JSON document and nothing else.
    quiet : bool
        Whether to print errors only.
    """

    def __init__(self, command: str, *, json: bool = False, quiet: bool = False) -> None:
        self.command = command
        self.json = json
        self.quiet = quiet
        self.console = Console(stderr=True, highlight=False)
        self.converged = True
        self.result: dict[str, Any] = {}
        self.warnings: list[str] = []
        self._context = ExitStack()
        self._last: list[Callable[[], None]] = []
        self._start = time.perf_counter()

    # -- messages -------------------------------------------------------------------------------

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style), soft_wrap=True)

    def note(self, *texts: object) -> None:
        """Print messages, one per line, unless the command is quiet."""
        for text in () if self.quiet else texts:
            self._say(clean(text))

    def at_end(self, show: Callable[[], None]) -> None:
        """Call `show` after the command has succeeded and the progress bar is gone."""
        self._last.append(show)

    # -- data -----------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Write data to stdout."""
        sys.stdout.write(text)

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a table to stdout, with borders on a terminal and in plain columns elsewhere."""
        terminal = sys.stdout.isatty()
        drawn = Table(box=HEAVY_HEAD if terminal else None, header_style="bold", pad_edge=terminal)
        for header in headers:
            drawn.add_column(Text(clean(header)), overflow="fold")
        for row in rows:
            drawn.add_row(*(Text(clean(cell)) for cell in row))
        # Do not wrap lines in a file or a pipe.
        Console(highlight=False, width=None if terminal else 10_000).print(drawn)

    # -- context --------------------------------------------------------------------------------

    def __enter__(self) -> Output:
        self._context.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=UserWarning, module=r"gdpa(\..*)?$")
        for category in (ConvergenceWarning, DegenerateProblemWarning, UnreachedWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = self._show_warning
        return self

    def _show_warning(self, message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, ConvergenceWarning):
            self.converged = False
        self.warnings.append(clean(message))
        if not self.quiet:
            self._say(f"warning: {clean(message)}", "yellow")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._context.close()
        if isinstance(error, SystemExit | typer.Exit):
            return
        try:
            raise typer.Exit(self._finish(error)) from None
        except BrokenPipeError:
            # The reader has closed the pipe (`| head`), which is not an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(PIPE_CLOSED) from None
        except OSError as problem:  # standard output is closed, or its disk is full
            self._say(f"gdpa {self.command}: error: {clean(problem.strerror or problem)}", "red")
            raise typer.Exit(BAD_INPUT) from None

    def _finish(self, error: BaseException | None) -> int:
        if isinstance(error, BrokenPipeError):
            raise error
        if error is None:
            for show in self._last:
                show()
            code = DONE if self.converged else NOT_CONVERGED
            if self.json:
                self._document("done" if self.converged else "not converged", self.result)
            sys.stdout.flush()
            return code
        if isinstance(error, KeyboardInterrupt):
            self._say(f"gdpa: interrupted; {clean(error) or 'nothing was written'}")
            return INTERRUPTED
        if os.environ.get("GDPA_DEBUG"):
            self.console.print_exception()
        if isinstance(error, MemoryError):
            text = f"not enough memory: {error}"
            code = BAD_INPUT
        elif isinstance(error, ValueError | TypeError | OSError | ImportError):
            text = clean(error)
            code = BAD_INPUT
        else:
            text = f"{type(error).__name__}: {error} (a bug in gdpa; GDPA_DEBUG=1 shows where)"
            code = INTERNAL
        self._say(f"gdpa {self.command}: error: {clean(text)}", "red")
        self._document("error", {"message": clean(text)})
        sys.stdout.flush()
        return code

    def _document(self, status: str, values: dict[str, Any]) -> None:
        if not self.json:
            return
        from ..version import __version__

        document = {
            "command": self.command,
            "gdpa": __version__,
            "status": status,
            **values,
            "warnings": self.warnings,
            "total_seconds": round(time.perf_counter() - self._start, 3),
        }
        self.write(to_json(document) + "\n")


class Stages:
    """Progress of a command: a bar on a terminal, one line per stage elsewhere.

    Parameters
    ----------
    output : Output
        Where to show them (stderr).
    """

    def __init__(self, output: Output) -> None:
        self.output = output
        self.seconds: dict[str, float] = {}
        self._name = self._detail = ""
        self._since = 0.0
        self._task = TaskID(0)
        self._drawn = output.console.is_terminal and not output.quiet
        self._bar = Progress(
            SpinnerColumn(finished_text="+"),
            TextColumn("{task.description:<9}", markup=False),
            BarColumn(bar_width=18),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
            console=output.console,
            # The bar is on stderr; older versions of rich replace stdout by an object without
            # a working isatty.
            redirect_stdout=False,
            disable=not self._drawn,
        )

    def start(self, name: str, detail: str = "") -> None:
        """End the current stage and start another."""
        self._end()
        self._name, self._since = name, time.perf_counter()
        # Without a total the bar pulses.
        self._task = self._bar.add_task(name, total=None, detail="")
        self.detail(detail)

    def detail(self, text: str, fraction: float | None = None) -> None:
        """Show a detail of the current stage; of a long text the end, as in paths."""
        line, most = clean(text), 34  # fits an 80-column terminal
        self._detail = line if len(line) <= most else "..." + line[3 - most :]
        self._bar.update(self._task, detail=self._detail)
        if fraction is not None:
            self._bar.update(self._task, total=1.0, completed=min(fraction, 0.99))

    def _end(self) -> None:
        if not self._name:
            return
        spent = time.perf_counter() - self._since
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + spent
        self._bar.update(self._task, total=1.0, completed=1.0)
        if not self._drawn:
            more = f" ({self._detail})" if self._detail else ""
            self.output.note(f"{self._name}: {spent:.1f} s{more}")
        self._name = ""

    def __enter__(self) -> Stages:
        self._bar.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._end()
        if self._drawn:  # older versions of rich end a disabled bar with an empty line
            self._bar.stop()
