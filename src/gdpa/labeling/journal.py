"""The log of a session: every label is written to disk before it is acknowledged.

Lines are appended without buffering, synced, and never rewritten. Each has a number and a checksum
(:mod:`gdpa.labeling.records`). A process that is killed during a write leaves at most one
incomplete line, which was never acknowledged; the next session moves it to a file beside the log. A
write that fails, for example on a full disk, is removed at once, so a refused answer never
reappears.

A damaged line is never used and never removed: it stays where it is and is reported, until
:meth:`Journal.repair` writes the undamaged lines to a new log and keeps the old one beside it.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..files import lock_stream, written_whole
from .records import Accepts, Damage, NotALog, data_key, encode_header, encode_line, read_log

# What a log begins with; a shorter file was cut off while it was created.
_BEGINNINGS = (b'{"n": 0, "kind": "gdpa labels"', b'{"kind": "gdpa labels"')


class Journal:
    """An append-only file of events.

    Parameters
    ----------
    path : path-like
        The file; created if it does not exist.
    about : dict
        Values that identify the data (rows, fingerprint). A log of different data is refused.
    accepts : callable, optional
        Returns whether an event is valid; others count as damage.
    trust_data : bool, default=False
        Whether to read a log of an earlier release whose first line is damaged.

    Attributes
    ----------
    path : Path
        The file.
    events : list of dict
        The undamaged events in the file, each with its number ``n``.
    damage : list of Damage
        The lines that could not be used.
    notes : list of str
        Messages for the user: damaged lines, and where they are kept.

    Raises
    ------
    ValueError
        If the file is not a log of a session, belongs to different data, or is in use by another
        process.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        about: dict[str, Any],
        *,
        accepts: Accepts | None = None,
        trust_data: bool = False,
    ) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"log={str(path)!r} is not a regular file")
        self._about = dict(about)
        self._key = data_key(about)
        self._accepts = accepts
        self._trust_data = trust_data
        self._place = os.path.abspath(self.path)
        self._needs_reopening = False
        self._size = 0
        self._next = 1
        self._lost: list[int] = []
        self.events: list[dict[str, Any]] = []
        self.damage: list[Damage] = []
        self.notes: list[str] = []
        self._open()
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        """Open and lock the file."""
        # Unbuffered: a buffer could write a refused event later, together with the next one.
        self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 (open as long as the session)
        try:
            lock_stream(self._file, wait=False)
        except OSError as error:
            self._file.close()
            raise self._refusal("is in use by another session") from error

    def _refusal(self, reason: str) -> ValueError:
        """Return an error that names the log."""
        return ValueError(f"log={str(self.path)!r} {reason}")

    def _read(self) -> None:
        """Read the events; begin a new log if the file is empty."""
        self._file.seek(0)
        content = self._file.read()
        if _is_cut_off_beginning(content):
            self._begin(content)
            return
        try:
            log = read_log(content, self._about, accepts=self._accepts, trust_data=self._trust_data)
        except NotALog as error:
            raise self._refusal(str(error)) from error
        self.events = log.events
        self.damage = log.damage
        self._next = log.next_number
        self._lost = log.lost
        self._size = len(content)
        if self.damage:
            self._describe(len(log.events))
        if log.version == 1:
            kept = self._rewrite("version-1")
            self.notes.append(f"{self.path} now has checksums; the file as it was is {kept}")
        elif log.tail:
            self._move_aside(log.tail, end=log.end)
        elif not content.endswith(b"\n"):
            self._size += self._file.write(b"\n")
            os.fsync(self._file.fileno())

    def _begin(self, leftover: bytes) -> None:
        """Write the first line."""
        if leftover:
            self._file.truncate(0)
            os.fsync(self._file.fileno())
        self._append(encode_header(self._about))
        _sync_folder(self.path.parent)

    def _describe(self, used: int) -> None:
        """Add the damaged lines to the notes."""
        self.notes += [f"{self.path}, {damage}" for damage in self.damage[:20]]
        if len(self.damage) > 20:
            self.notes.append(f"{self.path}: {len(self.damage) - 20} more damaged lines")
        self.notes.append(
            f"{self.path}: {used} undamaged events are used; damaged lines are kept, not used"
        )

    def _move_aside(self, tail: bytes, *, end: int) -> None:
        """Move an incomplete last line to a file beside the log."""
        aside = self.path.with_name(self.path.name + ".damaged")
        with open(aside, "ab") as stream:
            stream.write(tail + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._file.truncate(end)
        os.fsync(self._file.fileno())
        self._size = end
        self.notes.append(
            f"{self.path}: the incomplete last line is kept in {aside}; an answer that was being "
            "saved when the program stopped was never confirmed"
        )

    def repair(self) -> Path | None:
        """Write the undamaged lines to a new log, and keep the old one beside it.

        Returns
        -------
        Path or None
            The old log; None if there was nothing to repair.
        """
        if not self.damage:
            return None
        kept = self._rewrite("damaged")
        self.damage = []
        return kept

    def _rewrite(self, suffix: str) -> Path:
        """Replace the file by one with the undamaged events; return a copy of the old file."""
        self._file.seek(0)
        content = self._file.read()
        kept = _free_name(self.path.with_name(f"{self.path.name}.{suffix}"))
        with written_whole(kept) as staged:
            staged.write_bytes(content)
        used = {int(event["n"]) for event in self.events}
        lost = sorted({*self._lost, *range(1, max(used, default=0))} - used)
        lines = [encode_header(self._about, lost)]
        lines += [encode_line(event, event["n"], self._key) for event in self.events]
        clean = b"".join(lines)
        with written_whole(self.path) as staged:
            staged.write_bytes(clean)
        _sync_folder(self.path.parent)
        self._file.close()
        self._open()
        self._size = len(clean)
        self._check_in_place()
        return kept

    def _append(self, line: bytes) -> None:
        """Append a line; if that fails, truncate the log to the earlier lines."""
        handle = self._file.fileno()
        end = self._size
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

    @property
    def next_number(self) -> int:
        """Number of the event that is written next."""
        return self._next

    def write(self, event: dict[str, Any]) -> dict[str, Any]:
        """Append an event; it is on disk when this method returns.

        Parameters
        ----------
        event : dict
            Plain data.

        Returns
        -------
        dict
            The event with its number ``n``.

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
        self._append(encode_line(event, self._next, self._key))
        saved = {**event, "n": self._next}
        self._next += 1
        self.events.append(saved)
        return saved

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _is_cut_off_beginning(content: bytes) -> bool:
    """Return whether a file is empty or has only a part of its first line."""
    begun = [content.startswith(b) or b.startswith(content) for b in _BEGINNINGS]
    return any(begun) and b"\n" not in content and b"}" not in content


def _free_name(path: Path) -> Path:
    """Return the path, with a number if it is taken."""
    if not path.exists():
        return path
    number = next(i for i in range(2, 10_000) if not path.with_name(f"{path.name}-{i}").exists())
    return path.with_name(f"{path.name}-{number}")


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a new file survives a crash; not possible on all systems."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
