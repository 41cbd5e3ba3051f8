"""Results on disk: one line of JSON per row, written the moment it is there.

A folder holds ``results.jsonl`` (append only, each line one write and one fsync), ``run.json``
(which version wrote it) and ``.lock`` (one run at a time). After a kill at any moment the file ends
in a whole line or in a part of one; the part is cut off when the folder is opened again, and only
that row is computed again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from ..files import LockedError, lock, write_text, written_whole
from ..version import __version__
from .environment import commit

__all__ = ["ResultsFolderError", "ResultsStore", "Row", "Task"]

FORMAT = 2
_NEEDED_BYTES = 32 * 1024**2


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
        What identifies the row within it; strings, numbers and nothing else.
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
        What became of it.
    values : mapping
        Numbers, where `status` is "ok".
    message : str
        Why, where it is not.
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
        return json.dumps(
            {
                "experiment": self.experiment,
                "params": dict(self.params),
                "status": self.status,
                "values": dict(self.values),
                "message": self.message,
                "limit": self.limit,
                "version": __version__,
                "commit": commit(),
            },
            sort_keys=True,
            allow_nan=False,
        )


def _row(line: bytes, number: int, path: Path) -> Row:
    try:
        data = json.loads(line)
        row = Row(
            experiment=data["experiment"],
            params=data["params"],
            status=data["status"],
            values=data["values"],
            message=data["message"],
            limit=data["limit"],
        )
        version, source = data["version"], data["commit"]
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsFolderError(
            f"line {number} of {path} is not a result row; move the file away to start afresh"
        ) from error
    if version != __version__:
        raise ResultsFolderError(
            f"{path} has results of gdpa {version}, this is {__version__}; rows of two versions "
            "must not stand in one table: give another folder or move it away"
        )
    if source != commit():
        raise ResultsFolderError(
            f"{path} has results of commit {source}, this is {commit()}; rows of two commits must "
            "not stand in one table: give another folder or move it away"
        )
    return row


class ResultsStore:
    """A results folder, opened for one run.

    Parameters
    ----------
    folder : path-like
        The folder; made if it is not there.

    Raises
    ------
    ResultsFolderError
        If it cannot be written, has no room, belongs to another version or to a run that goes on.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "results.jsonl"
        self._lock = contextlib.ExitStack()
        self._file: int | None = None
        self._rows: dict[str, Row] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            self._check_version()
            self._read()
            _check_room(self.folder)
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        except ResultsFolderError:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise _explained(error, self.folder) from error

    def __enter__(self) -> ResultsStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _take_lock(self) -> None:
        try:
            self._lock.enter_context(lock(self.folder / ".lock", wait=False))
        except LockedError as error:
            raise ResultsFolderError(
                f"another run is writing to {self.folder}; wait for it or give another folder "
                f"({error})"
            ) from error

    def _check_version(self) -> None:
        manifest = self.folder / "run.json"
        if manifest.exists():
            try:
                data = json.loads(manifest.read_text(encoding="utf-8"))
                found, version = data["format"], data["gdpa"]
            except (ValueError, KeyError, TypeError) as error:
                raise ResultsFolderError(
                    f"{manifest} is not readable as the description of a results folder; give "
                    "another folder or move it away"
                ) from error
            if (found, version) != (FORMAT, __version__):
                raise ResultsFolderError(
                    f"{self.folder} has results of gdpa {version} (format {found}), this is "
                    f"{__version__} (format {FORMAT}); give another folder or move it away"
                )
            return
        write_text(manifest, json.dumps({"format": FORMAT, "gdpa": __version__}))

    def _read(self) -> None:
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            # A kill in the middle of a write: the row was not finished, so it is not there.
            with self.path.open("r+b") as stream:
                stream.truncate(whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            row = _row(line, number, self.path)
            self._rows[row.key] = row

    def close(self) -> None:
        """Close the files and let others in."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.close()

    @property
    def rows(self) -> list[Row]:
        """All rows; of rows with one key the last."""
        return list(self._rows.values())

    def finished(self, task: Task, *, time_limit: float | None, retry_failed: bool = False) -> bool:
        """Whether a row needs no computing.

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
            Whether it is there.
        """
        row = self._rows.get(task.key)
        if row is None:
            return False
        if row.status == "ok":
            return True
        if row.status == "failed":
            return not retry_failed
        if row.status == "skipped" and retry_failed:
            return False
        more = row.limit is not None and (time_limit is None or time_limit > row.limit)
        return not more

    def get(self, task: Task) -> Row | None:
        """Return the row of a task, if there is one."""
        return self._rows.get(task.key)

    def select(self, tasks: Iterable[Task]) -> list[Row]:
        """Return the rows of the given tasks, in their order; missing ones are left out."""
        found = (self._rows.get(task.key) for task in tasks)
        return [row for row in found if row is not None]

    def forget(self, experiment: str) -> None:
        """Drop the rows of an experiment, so that they are computed again."""
        self._rows = {key: row for key, row in self._rows.items() if row.experiment != experiment}
        with written_whole(self.path) as staged:
            staged.write_text("".join(row.to_json() + "\n" for row in self.rows), encoding="utf-8")
        if self._file is not None:
            os.close(self._file)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def append(self, row: Row) -> None:
        """Write a row; on return it is on disk.

        Parameters
        ----------
        row : Row
            The row.
        """
        if self._file is None:
            raise ValueError("the store is closed")
        data = (row.to_json() + "\n").encode()
        try:
            written = os.write(self._file, data)
            if written != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError as error:
            raise _explained(error, self.folder) from error
        self._rows[row.key] = row


def _check_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        raise ResultsFolderError(
            errno.ENOSPC,
            f"{folder} has {free / 1024**2:.0f} MiB left and {_NEEDED_BYTES / 1024**2:.0f} MiB are "
            "needed; free some room or give another folder",
        )


def _explained(error: OSError, folder: Path) -> ResultsFolderError:
    reason = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = "no permission to write there; give another folder with --out"
    elif error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        reason = "no room left on the disk; finished rows are kept, run again when there is room"
    elif error.errno in (errno.ENOTDIR, errno.EEXIST):
        reason = "it is, or lies below, a file; a folder is needed"
    explained = ResultsFolderError(f"results folder {folder}: {reason}")
    with contextlib.suppress(AttributeError):
        explained.errno = error.errno
    return explained
