"""Bytes of a file, plain, compressed or from standard input; readable more than once."""

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
from .table import TableError

__all__ = ["COMPRESSED", "Source", "open_file"]

COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip", ".zst": "zstd"}
# A text that is so much larger than its compressed file, and so large, is no table.
MOST_INFLATION = 300
ALWAYS_FINE = 2**29


class Source:
    """A file that can be opened again and again.

    Parameters
    ----------
    path : str or Path
        The file; ``"-"`` is standard input, read once and kept.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.name = "standard input" if str(path) == "-" else str(path)
        suffixes = [s.lower() for s in Path(path).suffixes]
        self.compression = COMPRESSED.get(suffixes[-1]) if suffixes else None
        inner = suffixes[:-1] if self.compression else suffixes
        self.suffix = inner[-1] if inner else ""
        self._kept: bytes | None = None
        if str(path) == "-":
            self._kept = sys.stdin.buffer.read()
            self.compression = _magic(self._kept[:6])
            if not self._kept.strip():
                raise TableError(f"{self.name} is empty")

    @property
    def size(self) -> int:
        """Bytes of what :meth:`open` reads; 0 if that is not known."""
        if self.compression is not None:
            return 0
        return len(self._kept) if self._kept is not None else Path(self.path).stat().st_size

    def open(self) -> BinaryIO:
        """A stream from the beginning, decompressed."""
        raw = io.BytesIO(self._kept) if self._kept is not None else open_file(self.path, self.name)
        if self.compression is None:
            return raw
        try:
            stream = self._inflate(raw)
        except (OSError, EOFError, zipfile.BadZipFile, lzma.LZMAError) as error:
            raise TableError(
                f"{self.name} is not a readable {self.compression} file: {error}"
            ) from error
        packed = len(self._kept) if self._kept is not None else Path(self.path).stat().st_size
        return cast(BinaryIO, io.BufferedReader(_Measured(stream, packed, self), 2**16))

    def _inflate(self, raw: BinaryIO) -> Any:
        if self.compression == "gzip":
            return gzip.GzipFile(fileobj=raw)
        if self.compression == "bzip2":
            return bz2.BZ2File(raw)
        if self.compression == "xz":
            return lzma.LZMAFile(raw)
        if self.compression == "zstd":
            return require("pyarrow", "parquet").CompressedInputStream(raw, "zstd")
        archive = zipfile.ZipFile(raw)
        members = [
            m
            for m in archive.infolist()
            if not m.is_dir() and not m.filename.startswith("__MACOSX")
        ]
        if len(members) != 1:
            raise TableError(f"{self.name} holds {len(members)} files; one table is needed")
        if not self.suffix:
            self.suffix = Path(members[0].filename).suffix.lower()
        return archive.open(members[0])


def _magic(head: bytes) -> str | None:
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"BZh"):
        return "bzip2"
    return "xz" if head.startswith(b"\xfd7zXZ\0") else None


class _Measured(io.RawIOBase):
    """A decompressed stream that ends in an error where it is damaged, or a bomb."""

    def __init__(self, stream: Any, packed: int, source: Source) -> None:
        self._stream, self._packed, self._source = stream, packed, source
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except TableError:
            raise
        except Exception as error:  # zlib.error and the like: whatever a damaged file provokes
            name, kind = self._source.name, self._source.compression
            raise TableError(f"{name} is not a readable {kind} file: {error}") from error
        self._size += len(data)
        if self._size > max(ALWAYS_FINE, MOST_INFLATION * self._packed):
            raise TableError(
                f"{self._source.name} inflates to more than {MOST_INFLATION} times its size; "
                "decompress it yourself if that is right"
            )
        buffer[: len(data)] = data
        return len(data)


def open_file(path: str | Path, name: str) -> BinaryIO:
    """Open a file (``"-"``: standard input), or say why it cannot be read."""
    if str(path) == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    file = Path(path)
    if file.is_dir():
        raise TableError(f"{name} is a directory; a file is needed")
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        folder = file.parent if file.parent.is_dir() else None
        siblings = [p.name for p in folder.iterdir() if p.is_file()][:500] if folder else []
        close = difflib.get_close_matches(file.name, siblings, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise TableError(f"{name} does not exist{hint}") from None
    except OSError as error:
        raise TableError(f"{name} cannot be opened: {error.strerror}") from error
    if file.stat().st_size == 0 and file.is_file():
        stream.close()
        raise TableError(f"{name} is empty")
    return stream
