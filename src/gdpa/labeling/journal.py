"""The log of a session: every label is on disk before anything else happens.

One JSON object per line, appended without a buffer and fsynced, never rewritten. The first line
says which data the log belongs to. A process that is killed while it writes leaves at most one line
without its end; that line was never acknowledged, and the next session removes it. A write that
fails, for example on a full disk, is removed at once: a refused answer never appears later.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..files import lock_stream

__all__ = ["Journal"]

KIND = "gdpa labels"
VERSION = 1


class Journal:
    """An append-only file of events.

    Parameters
    ----------
    path : path-like
        The file; created if it does not exist.
    about : dict
        Plain data that identify the session (rows, fingerprint). A log with other data is
        refused.

    Attributes
    ----------
    path : Path
        The file.
    events : list of dict
        The events of earlier sessions.

    Raises
    ------
    ValueError
        If the file is no log of a session, belongs to other data, is damaged before its last line,
        or another process writes to it.
    """

    def __init__(self, path: str | os.PathLike[str], about: dict[str, Any]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"log={str(path)!r} is not a regular file")
        # Unbuffered: a buffer would write a refused event later, with the next one.
        self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 (open as long as the session)
        self._needs_reopening = False
        self._place, self._size = os.path.abspath(self.path), 0
        try:
            try:
                lock_stream(self._file, wait=False)
            except OSError as error:
                raise self._refusal("is in use: another session writes to it") from error
            self.events = self._read(about)
        except BaseException:
            self._file.close()
            raise

    def _refusal(self, reason: str) -> ValueError:
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
            raise self._refusal("is not a log of labels; it is left as it is")
        if end < len(content) or not lines:  # cut off while it was written: never acknowledged
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
                    f"belongs to other data: {name} is {head.get(name)!r} there and {value!r} here"
                )
        return [self._parse(line, i) for i, line in enumerate(lines[1:], 2)]

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise self._refusal(f"is damaged, line {number}: {line[:60]!r}")
        return value

    def _append(self, event: dict[str, Any]) -> None:
        """Append a line; if that fails, cut the log back to the lines before."""
        line = json.dumps(event, ensure_ascii=True).encode() + b"\n"
        handle, end = self._file.fileno(), self._size
        self._check_in_place()
        try:
            written = 0
            while written < len(line):  # an unbuffered write may take a part only
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
        """Raise OSError unless the file with this name is the one that is written, and whole."""
        found = os.stat(self._place) if os.path.exists(self._place) else None
        if (
            found is None
            or not os.path.samestat(found, os.fstat(self._file.fileno()))
            or found.st_size != self._size
        ):
            raise OSError(errno.ESTALE, f"{self.path} was removed or changed by another program")

    def write(self, event: dict[str, Any]) -> None:
        """Append an event; when this returns it is on disk.

        Parameters
        ----------
        event : dict
            Plain data.

        Raises
        ------
        OSError
            If the event cannot be written. The log is then as it was before; where not even that
            can be restored, every later event is refused until the log is opened again.
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
    """Make the new file's name durable, where folders can be synced."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
