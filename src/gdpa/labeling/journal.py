"""The log of a session: every label is written to disk before it is acknowledged.

The log has one JSON object per line. Lines are appended without buffering, synced, and never
rewritten. The first line identifies the data. A process that is killed during a write leaves at
most one incomplete line, which was never acknowledged; the next session removes it. A write that
fails, for example on a full disk, is removed at once, so a refused answer never reappears.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..files import lock_stream

KIND = "gdpa labels"
VERSION = 1


class Journal:
    """An append-only file of events.

    Parameters
    ----------
    path : path-like
        The file; created if it does not exist.
    about : dict
        Values that identify the data (rows, fingerprint). A log of different data is refused.

    Attributes
    ----------
    path : Path
        The file.
    events : list of dict
        The events of earlier sessions.

    Raises
    ------
    ValueError
        If the file is not a log of a session, belongs to different data, is damaged before its
        last line, or is in use by another process.
    """

    def __init__(self, path: str | os.PathLike[str], about: dict[str, Any]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"log={str(path)!r} is not a regular file")
        # Unbuffered: a buffer could write a refused event later, together with the next one.
        self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 (open as long as the session)
        self._needs_reopening = False
        self._place, self._size = os.path.abspath(self.path), 0
        try:
            try:
                lock_stream(self._file, wait=False)
            except OSError as error:
                raise self._refusal("is in use by another session") from error
            self.events = self._read(about)
        except BaseException:
            self._file.close()
            raise

    def _refusal(self, reason: str) -> ValueError:
        """Return an error that names the log."""
        return ValueError(f"log={str(self.path)!r} {reason}")

    def _read(self, about: dict[str, Any]) -> list[dict[str, Any]]:
        """Check the first line against `about`, and return the events of the others."""
        self._file.seek(0)
        content = self._file.read()
        end = content.rfind(b"\n") + 1
        lines = content[:end].splitlines()
        started = b'{"kind": "' + KIND.encode()[:1]
        head = self._parse(lines[0], 1) if lines else {"kind": KIND}
        if head.get("kind") != KIND or not (lines or not content or content.startswith(started)):
            raise self._refusal("is not a log of labels; it was not changed")
        if end < len(content) or not lines:  # an incomplete write, never acknowledged
            self._file.truncate(end)
            os.fsync(self._file.fileno())
        self._size = end
        if not lines:
            self._append({"kind": KIND, "version": VERSION, **about})
            _sync_folder(self.path.parent)
            return []
        if head.get("version") != VERSION:
            raise self._refusal(
                f"has version {head.get('version')!r}; this release reads version {VERSION}"
            )
        for name, value in about.items():
            if head.get(name) != value:
                raise self._refusal(
                    f"belongs to different data: {name} is {head.get(name)!r} there, {value!r} here"
                )
        return [self._parse(line, i) for i, line in enumerate(lines[1:], 2)]

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        """Parse a line of the log."""
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise self._refusal(f"is damaged, line {number}: {line[:60]!r}")
        return value

    def _append(self, event: dict[str, Any]) -> None:
        """Append a line; if that fails, truncate the log to the earlier lines."""
        line = json.dumps(event, ensure_ascii=True).encode() + b"\n"
        handle, end = self._file.fileno(), self._size
        self._check_in_place()
        try:
            written = 0
            while written < len(line):  # an unbuffered write may be partial
                written += self._file.write(line[written:])
            os.fsync(handle)
            self._size = end + len(line)
            self._check_in_place()
        except BaseException:
            self._size = end
            self._needs_reopening = True
            self._file.truncate(end)
            os.fsync(handle)
            self._needs_reopening = False
            raise

    def _check_in_place(self) -> None:
        """Raise OSError if the file was replaced, removed or changed."""
        found = os.stat(self._place) if os.path.exists(self._place) else None
        if (
            found is None
            or not os.path.samestat(found, os.fstat(self._file.fileno()))
            or found.st_size != self._size
        ):
            raise OSError(errno.ESTALE, f"{self.path} was removed or changed by another program")

    def write(self, event: dict[str, Any]) -> None:
        """Append an event; it is on disk when this method returns.

        Parameters
        ----------
        event : dict
            Plain data.

        Raises
        ------
        OSError
            If the event cannot be written. The log is then unchanged. If it cannot be restored,
            later events are refused until the log is opened again.
        """
        if self._needs_reopening:
            raise OSError(
                errno.EIO, "an earlier write failed and could not be undone; restart the session"
            )
        self._append(event)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a new file survives a crash; not possible on all systems."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
