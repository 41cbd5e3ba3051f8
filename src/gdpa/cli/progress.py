"""How far a command has come: a moving bar on a terminal, one line per stage elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from .output import Output, clean

__all__ = ["Stages"]


class Stages:
    """Stages of a command, in the order in which they are started.

    Parameters
    ----------
    output : Output
        Where to show them (stderr).
    total : int
        How many there will be.
    """

    def __init__(self, output: Output, total: int) -> None:
        self.output, self.total = output, total
        self.seconds: dict[str, float] = {}
        self._name = ""
        self._detail = ""
        self._since = 0.0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if output.console.is_terminal and not output.quiet:
            self._bar = Progress(
                SpinnerColumn(finished_text="+"),
                TextColumn("{task.fields[place]} {task.description:<9}", markup=False),
                BarColumn(bar_width=18),
                TimeElapsedColumn(),
                TextColumn("{task.fields[detail]}", markup=False),
                console=output.console,
                # The bar is on stderr: data for stdout stay there, and an older rich's stand-in for
                # it does not know whether it is a terminal.
                redirect_stdout=False,
            )

    def start(self, name: str, detail: str = "") -> None:
        """End the stage before, and start another."""
        self._end()
        self._name, self._detail, self._since = name, _short(detail), time.perf_counter()
        if self._bar is not None:
            place = f"{len(self.seconds) + 1}/{self.total}"
            # No total: the bar pulses as long as the stage lasts.
            self._task = self._bar.add_task(name, total=None, place=place, detail=self._detail)

    def detail(self, text: str, fraction: float | None = None) -> None:
        """Say more about the current stage."""
        self._detail = _short(text)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, detail=self._detail)
            if fraction is not None:
                self._bar.update(self._task, total=1.0, completed=min(fraction, 0.99))

    def _end(self) -> None:
        if not self._name:
            return
        spent = time.perf_counter() - self._since
        self.seconds[self._name] = self.seconds.get(self._name, 0.0) + spent
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=1.0, completed=1.0)
        elif self._bar is None:
            more = f" ({self._detail})" if self._detail else ""
            self.output.note(f"{self._name}: {spent:.1f} s{more}")
        self._name, self._task = "", None

    def __enter__(self) -> Stages:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._end()
        if self._bar is not None:
            self._bar.stop()


def _short(text: str, most: int = 34) -> str:
    """The end of a long text: of a path, the file's name. A line must fit a narrow terminal."""
    line = clean(text)
    return line if len(line) <= most else "..." + line[3 - most :]
