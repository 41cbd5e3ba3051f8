"""Open files, compressed files and standard input, more than once."""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import lzma
import sys
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..errors import require
from .table import TableError, errors_as_table_error

# Larger inflation ratios and sizes are refused as decompression bombs.
MAX_INFLATION = 300
SAFE_SIZE = 2**29


class Source:
    """A file that can be opened more than once.

    Parameters
    ----------
    path : str or Path
        The file; ``"-"`` is standard input, which is read once and kept.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.name = "standard input" if str(path) == "-" else str(path)
        *inner, self.suffix = ["", *map(str.lower, Path(path).suffixes)]
        known = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip", ".zst": "zstd"}
        self.compression = known.get(self.suffix)
        if self.compression:
            self.suffix = inner[-1]
        self._content: bytes | None = None
        if str(path) == "-":
            self._content = sys.stdin.buffer.read()
            if not self._content.strip():
                raise TableError(f"{self.name} is empty")
            for mark, kind in ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\0", "xz")):
                if self._content.startswith(mark):
                    self.compression = kind

    def rewrite(self, content: bytes) -> None:
        """Replace the content of the file, in memory."""
        self._content = content
        self.compression = None

    def open(self) -> BinaryIO:
        """Return a decompressed stream from the beginning."""
        raw: BinaryIO = (
            open_file(self.path, self.name) if self._content is None else io.BytesIO(self._content)
        )
        if self.compression is None:
            return raw
        size = 0
        if raw.seekable():
            size = raw.seek(0, io.SEEK_END)
            raw.seek(0)
        return cast(BinaryIO, io.BufferedReader(_GuardedStream(self, raw, size), 2**16))

    def read(self) -> bytes:
        """Return the whole decompressed content."""
        with self.open() as stream:
            return stream.read()

    def decompress(self, raw: BinaryIO) -> Any:
        """Return a decompressed stream of `raw`; a zip archive must hold one file."""
        if self.compression == "zstd":
            return require("pyarrow", "tables").CompressedInputStream(raw, "zstd")
        if self.compression != "zip":
            modules: dict[str | None, Any] = {"gzip": gzip, "bzip2": bz2, "xz": lzma}
            return modules[self.compression].open(raw)
        archive = zipfile.ZipFile(raw)
        members = [name for name in archive.namelist() if not name.startswith("__MACOSX")]
        members = [name for name in members if not name.endswith("/")]
        if len(members) != 1:
            raise TableError(f"{self.name} holds {len(members)} files; exactly one is needed")
        self.suffix = self.suffix or Path(members[0]).suffix.lower()
        return archive.open(members[0])


class _GuardedStream(io.RawIOBase):
    """A decompressed stream that raises TableError if it is damaged or a bomb."""

    def __init__(self, source: Source, raw: BinaryIO, packed: int) -> None:
        self._source, self._limit = source, max(SAFE_SIZE, MAX_INFLATION * packed)
        self._size = 0
        self._stream = self._guard(source.decompress, raw)

    def _guard(self, call: Any, argument: Any) -> Any:
        """Call a function; its errors become TableError."""
        name = self._source.name
        kind = self._source.compression
        with errors_as_table_error(f"{name} is not a readable {kind} file"):
            return call(argument)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._guard(self._stream.read, len(buffer))
        self._size += len(data)
        if self._size > self._limit:
            raise TableError(
                f"{self._source.name} inflates to more than {MAX_INFLATION} times its size; "
                "if that is intended, decompress it first"
            )
        buffer[: len(data)] = data
        return len(data)


def open_file(path: str | Path, name: str) -> BinaryIO:
    """Open a file, or standard input for ``"-"``; errors say why it cannot be read."""
    if str(path) == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    file = Path(path)
    if file.is_dir():
        raise TableError(f"{name} is a directory; a file is needed")
    if file.is_file() and file.stat().st_size == 0:
        raise TableError(f"{name} is empty")
    try:
        return file.open("rb")
    except FileNotFoundError:
        # Compared without the extension, which most files share.
        siblings = {p.stem: p.name for p in file.parent.glob("*") if p.is_file()}
        close = difflib.get_close_matches(file.stem, list(siblings)[:500], n=1, cutoff=0.7)
        hint = f"; did you mean {siblings[close[0]]!r}?" if close else ""
        raise TableError(f"{name} does not exist{hint}") from None
    except OSError as error:
        raise TableError(f"{name} cannot be opened: {error.strerror}") from error
