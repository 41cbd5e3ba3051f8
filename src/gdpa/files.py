"""Write files completely or not at all; locks that are released when their process ends.

Files are written in a private folder beside their target and moved at the end. The folder has a
random name and only its owner can access it. So two processes can write the same file (the last
one wins), symbolic links are not followed, and no other file is changed. A killed process leaves
its folder behind; the next process that writes in the same place removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

_PREFIX = ".gdpa-"
_OWNER = ".owner"  # locked while its folder is in use


class LockedError(OSError):
    """Raised if another process holds the lock."""


def is_special(path: Path) -> bool:
    """Return whether the path is a device or a pipe, not a regular file or folder.

    The package writes to it, because a file moved over it would replace it.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file so that readers see the old or the new content, never a part.

    Parameters
    ----------
    path : path-like
        The file. A link is replaced, not followed; a device or pipe receives the content.

    Yields
    ------
    Path
        Temporary file with the name of `path`; moved when the block ends without an error.

    Raises
    ------
    ValueError
        If `path` is a folder.
    """
    target = Path(path)
    if not target.name or target.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; a file name is needed")
    with StagingFolder(target) as staging:
        yield staging.file
        staging.publish()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text as UTF-8, completely or not at all, without changing line ends."""
    with written_whole(path) as staged:
        staged.write_text(text, encoding="utf-8", newline="")


class StagingFolder:
    """A private temporary folder beside a file to be written.

    Parameters
    ----------
    target : Path
        The file.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self._special = is_special(target)
        # Do not write temporary files in the folder of a device.
        place = Path(tempfile.gettempdir()) if self._special else target.parent
        if not place.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(place))
        _remove_abandoned(place)
        for _ in range(100):  # another process may remove the folder before it is locked
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
            with contextlib.suppress(FileNotFoundError, LockedError):
                self._hold = _locked_stream(self._folder / _OWNER, wait=False)
                break
        else:
            raise OSError(f"no temporary folder could be created in {place}")
        self.file = self._folder / target.name

    def publish(self) -> None:
        """Move the written file, if there is one, to the target."""
        if not self.file.exists():
            return
        if self._special:
            with self.file.open("rb") as content, self.target.open("wb") as out:
                shutil.copyfileobj(content, out)
            return
        with self.file.open("rb+") as written:
            os.fsync(written.fileno())
        _copy_access(self.target, self.file)
        os.replace(self.file, self.target)

    def remove(self) -> None:
        """Remove the folder and its content."""
        self._hold.close()  # first, because Windows cannot remove an open file
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> StagingFolder:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def _copy_access(target: Path, staged: Path) -> None:
    """Give a staged file the owner and the mode of the file that it replaces, if there is one.

    A link is replaced, not followed, so the file that it points to does not count. Only root can
    give a file to another owner; for others the file becomes theirs, with the same mode.
    """
    try:
        found = target.lstat()
    except OSError:
        return
    if not stat.S_ISREG(found.st_mode):
        return
    if hasattr(os, "chown"):  # before the mode, because chown resets parts of it
        for owner, group in ((found.st_uid, -1), (-1, found.st_gid)):
            with contextlib.suppress(OSError):
                os.chown(staged, owner, group)
    os.chmod(staged, stat.S_IMODE(found.st_mode))


def _remove_abandoned(place: Path) -> None:
    """Remove folders of killed processes; those in use are locked, new ones are empty."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(place)):
            if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
                continue
            folder = Path(entry.path)
            with contextlib.suppress(OSError):
                if (folder / _OWNER).is_file():
                    with _locked_stream(folder / _OWNER, wait=False):
                        shutil.rmtree(folder, ignore_errors=True)
                    shutil.rmtree(folder, ignore_errors=True)  # on Windows, now that it is closed
                else:
                    folder.rmdir()  # fails unless it is empty


@contextlib.contextmanager
def lock(path: str | os.PathLike[str], *, wait: bool = True) -> Iterator[None]:
    """Hold a lock that is released when this process ends, however it ends.

    Parameters
    ----------
    path : path-like
        Lock file; created, and removed at the end. It contains the number of the process.
    wait : bool, default=True
        Whether to wait until another process releases the lock.

    Raises
    ------
    LockedError
        If another process holds the lock for 3 seconds and `wait` is False; names the process.
    """
    with _patient_stream(Path(path), wait=wait):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)


# Child processes of a killed process may hold its lock for a moment longer.
_PATIENCE = 3.0
_TRIES = 30


def _patient_stream(path: Path, *, wait: bool) -> IO[str]:
    for _ in range(_TRIES):
        try:
            return _locked_stream(path, wait=wait)
        except LockedError:
            time.sleep(_PATIENCE / _TRIES)
    return _locked_stream(path, wait=wait)


def _locked_stream(path: Path, *, wait: bool) -> IO[str]:
    for _ in range(1000):
        stream = path.open("a+", encoding="utf-8")
        try:
            lock_stream(stream, wait=wait)
        except OSError as error:
            stream.seek(0)
            owner = stream.read(20).strip()
            stream.close()
            raise LockedError(f"process {owner or 'unknown'} holds {path}") from error
        if os.fstat(stream.fileno()).st_nlink:
            stream.seek(0)
            stream.truncate()
            stream.write(str(os.getpid()))
            stream.flush()
            return stream
        stream.close()  # the previous owner removed the file meanwhile
    raise LockedError(f"{path} was removed and locked again too often")


def lock_stream(stream: IO[Any], *, wait: bool) -> None:
    """Lock an open file until it is closed; raise OSError if another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        windows: Any = msvcrt
        handle = stream.fileno()
        place = os.lseek(handle, 0, os.SEEK_CUR)
        # Lock a byte far beyond the end, because locked bytes cannot be read.
        os.lseek(handle, 2**30, os.SEEK_SET)
        try:
            windows.locking(handle, windows.LK_LOCK if wait else windows.LK_NBLCK, 1)
        finally:
            os.lseek(handle, place, os.SEEK_SET)
        return
    fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
