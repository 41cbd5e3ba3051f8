"""Results on disk: one line of JSON per row, written as soon as the row is computed.

A folder holds ``results.jsonl`` (append only, each line one write and one fsync) and ``.lock`` (one
run at a time). Each line names the version and the commit that wrote it. After a kill at any moment
the file ends in a whole line or in a part of one. The part is removed when the folder is opened
again, and only that row is computed again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from gdpa.files import LockedError, lock, written_whole
from gdpa.version import __version__

from .environment import commit


class ResultsFolderError(OSError):
    """A results folder that cannot be used: another version or run, no room, no permission."""


@dataclass(frozen=True)
class Task:
    """One row to be computed.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    params : mapping
        What identifies the row within it: strings and numbers.
    serial : bool, default=False
        Whether it must run alone, because its time is the result.
    chain : tuple of str, default=()
        Rows of one chain are run in order of size; after one that hit the time limit or failed,
        the larger ones are skipped.
    limit : float, optional
        A time limit of its own, instead of the run's.
    """

    experiment: str
    params: Mapping[str, Any]
    serial: bool = False
    chain: tuple[str, ...] = ()
    limit: float | None = None

    @property
    def key(self) -> str:
        """The row's identity as text."""
        return json.dumps({"experiment": self.experiment, **self.params}, sort_keys=True)

    @property
    def label(self) -> str:
        """Short text for a progress display."""
        parts = [str(v) for k, v in self.params.items() if k != "method"]
        return f"{self.experiment} {self.params.get('method', '')}: {' '.join(parts)}"


@dataclass(frozen=True)
class Row:
    """One computed row.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    params : mapping
        The task's parameters.
    status : {"ok", "failed", "time-limit", "skipped"}
        How the computation ended.
    values : mapping
        Numbers, if `status` is "ok".
    message : str
        The reason, if it is not.
    limit : float or None
        Time limit that was in force.
    """

    experiment: str
    params: Mapping[str, Any]
    status: str
    values: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    limit: float | None = None

    @property
    def key(self) -> str:
        """Identity of the task that it answers."""
        return Task(self.experiment, self.params).key

    def to_json(self) -> str:
        """Return one line of JSON, without its end."""
        origin = {"version": __version__, "commit": commit()}
        return json.dumps({**asdict(self), **origin}, sort_keys=True, allow_nan=False)


class ResultsStore:
    """A results folder, opened for one run.

    Parameters
    ----------
    folder : path-like
        The folder; created if it does not exist.

    Raises
    ------
    ResultsFolderError
        If it cannot be written, has no room, or belongs to another version or to another run.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "results.jsonl"
        self._lock = contextlib.ExitStack()
        self._file: int | None = None
        self._rows: dict[str, Row] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.enter_context(lock(self.folder / ".lock", wait=False))
            self._read()
            self._open()
        except LockedError as error:
            raise ResultsFolderError(
                f"another run is writing to {self.folder}; wait for it or give another folder "
                f"({error})"
            ) from error
        except OSError as error:
            self.close()
            raise self._explained(error) from error

    def __enter__(self) -> ResultsStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and release the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.close()

    def _open(self) -> None:
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def _read(self) -> None:
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            # A kill in the middle of a write: the row was not finished, so it does not count.
            with self.path.open("r+b") as stream:
                stream.truncate(whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            row = self._parsed(line, number)
            self._rows[row.key] = row

    def _parsed(self, line: bytes, number: int) -> Row:
        try:
            data = json.loads(line)
            row = Row(**{f.name: data[f.name] for f in fields(Row)})
            found = {key: data[key] for key in ("version", "commit")}
        except (ValueError, KeyError, TypeError) as error:
            raise ResultsFolderError(
                f"line {number} of {self.path} is not a result row; move the file away to start "
                "afresh"
            ) from error
        ours = {"version": __version__, "commit": commit()}
        if found != ours:
            raise ResultsFolderError(
                f"{self.path} has results of gdpa {found['version']}, commit {found['commit']}; "
                f"this is {ours['version']}, {ours['commit']}. Rows of two versions or commits "
                "must not stand in one table: give another folder or move it away"
            )
        return row

    def _explained(self, error: OSError) -> ResultsFolderError:
        if isinstance(error, ResultsFolderError):
            return error
        reason = f"{error.strerror or error}; finished rows are kept, give another folder"
        if error.errno == errno.ENOSPC:
            reason = "no room left on the disk; finished rows are kept, run again when there is"
        return ResultsFolderError(error.errno, f"results folder {self.folder}: {reason}")

    @property
    def rows(self) -> list[Row]:
        """All rows; of rows with one key the last."""
        return list(self._rows.values())

    def finished(self, task: Task, *, time_limit: float | None, retry_failed: bool = False) -> bool:
        """Return whether a row needs no computing.

        Parameters
        ----------
        task : Task
            The row.
        time_limit : float or None
            The limit of this run. A row that hit a smaller one is computed again.
        retry_failed : bool, default=False
            Whether a row that failed is computed again.

        Returns
        -------
        bool
            Whether it is finished.
        """
        row = self._rows.get(task.key)
        if row is None or row.status == "ok":
            return row is not None
        if row.status == "failed" or (row.status == "skipped" and retry_failed):
            return not retry_failed
        return row.limit is None or (time_limit is not None and time_limit <= row.limit)

    def get(self, task: Task) -> Row | None:
        """Return the row of a task, if there is one."""
        return self._rows.get(task.key)

    def select(self, tasks: Iterable[Task]) -> list[Row]:
        """Return the rows of the given tasks, in their order, without missing ones."""
        found = (self._rows.get(task.key) for task in tasks)
        return [row for row in found if row is not None]

    def forget(self, experiment: str) -> None:
        """Drop the rows of an experiment, so that they are computed again."""
        self._rows = {key: row for key, row in self._rows.items() if row.experiment != experiment}
        with written_whole(self.path) as staged:
            staged.write_text("".join(row.to_json() + "\n" for row in self.rows), encoding="utf-8")
        if self._file is not None:
            os.close(self._file)
        self._open()

    def append(self, row: Row) -> None:
        """Write a row; on return it is on disk."""
        if self._file is None:
            raise ValueError("the store is closed")
        data = (row.to_json() + "\n").encode()
        try:
            if os.write(self._file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError as error:
            raise self._explained(error) from error
        self._rows[row.key] = row
