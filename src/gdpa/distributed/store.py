"""Files of a work folder: local, or in an object store through fsspec.

Local files are written under another name and renamed, so that a name stands for a whole file. In
an object store a put is whole or not there, but nothing is renamed; a file counts only once the
record of its task (:mod:`gdpa.distributed.manifest`) names its size and checksum. Arrays are plain
``.npy`` files; rows of them are read without the rest.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import uuid
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import require

__all__ = ["Folder", "LocalFolder", "RemoteFolder", "open_folder"]

# The header of a .npy file of a few dimensions is this long; longer ones are read again.
HEADER = 128
UNFINISHED = ".unfinished-"


class Folder:
    """What tasks need of a folder: whole files by name, parts of them, sizes, removal."""

    def __init__(self, url: str) -> None:
        self.url = url

    def write(self, name: str, content: bytes | list[Any]) -> tuple[int, int]:
        """Write a file whole; returns its size and its CRC-32."""
        raise NotImplementedError

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Bytes of a file; ``FileNotFoundError`` if there is none."""
        raise NotImplementedError

    def read_into(self, name: str, start: int, out: memoryview) -> int:
        """Fill a buffer with bytes of a file; returns how many there were."""
        content = self.read(name, start, start + out.nbytes)
        out[: len(content)] = content
        return len(content)

    def size(self, name: str) -> int | None:
        """Size of a file in bytes, None if there is none."""
        raise NotImplementedError

    def names(self, under: str) -> list[str]:
        """Names of all files below a folder of this folder, sorted."""
        raise NotImplementedError

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, those that are not there passed over."""
        raise NotImplementedError

    def remove_tree(self, under: str) -> None:
        """Remove all files below a folder of this folder."""
        self.remove(self.names(under))

    def free_bytes(self) -> int | None:
        """Free space, None where it is not known."""
        return None

    def remove_unfinished(self) -> None:
        """Remove what killed processes left half-written."""

    def write_array(self, name: str, array: NDArray[Any]) -> tuple[int, int]:
        """Write an array as .npy."""
        if array.dtype.hasobject:
            raise TypeError(f"{name} would hold Python objects")
        array = np.ascontiguousarray(array)
        header = io.BytesIO()
        about = np.lib.format.header_data_from_array_1_0(array)
        np.lib.format.write_array_header_1_0(header, about)
        content: list[Any] = [header.getvalue()]
        if array.size:
            content.append(raw_bytes(array))
        return self.write(name, content)

    def read_array(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Read rows `start` to `stop` of a .npy file, by default all."""
        head = io.BytesIO(self.read(name, 0, HEADER))
        np.lib.format.read_magic(head)
        try:
            shape, _, dtype = np.lib.format.read_array_header_1_0(head)
        except ValueError:
            head = io.BytesIO(self.read(name, 0, 16 * HEADER))
            np.lib.format.read_magic(head)
            shape, _, dtype = np.lib.format.read_array_header_1_0(head)
        stop = shape[0] if stop is None else min(stop, shape[0])
        rest = shape[1:]
        row = dtype.itemsize * int(np.prod(rest, dtype=np.int64))
        at = head.tell()
        out = np.empty((max(0, stop - start), *rest), dtype=dtype)
        if out.nbytes and self.read_into(name, at + start * row, raw_bytes(out)) != out.nbytes:
            raise OSError(f"{self.url}/{name} is cut short")
        return out


class LocalFolder(Folder):
    """A folder of a file system that the client and all workers see under one path."""

    def _path(self, name: str) -> str:
        return os.path.join(self.url, name)

    def write(self, name: str, content: bytes | list[Any]) -> tuple[int, int]:
        """Write under another name, then rename."""
        pieces = content if isinstance(content, list) else [content]
        target = self._path(name)
        part = f"{target}{UNFINISHED}{uuid.uuid4().hex[:12]}"
        size = crc = 0
        try:
            with self._new(part) as file:
                for piece in pieces:
                    view = memoryview(piece)
                    crc = zlib.crc32(view, crc)
                    size += view.nbytes
                    while view.nbytes:  # a raw write may be short
                        view = view[file.write(view) :]
            os.replace(part, target)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise OSError(
                    error.errno,
                    "the disk is full; free some space and run the same command again, it goes on "
                    "where it stopped",
                    target,
                ) from error
            raise
        finally:
            if os.path.exists(part):
                os.unlink(part)
        return size, crc

    def _new(self, path: str) -> Any:
        try:
            return open(path, "xb", buffering=0)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return open(path, "xb", buffering=0)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Bytes of a file."""
        with open(self._path(name), "rb", buffering=0) as file:
            if start:
                file.seek(start)
            left = -1 if stop is None else stop - start
            pieces = []
            while left:
                piece = file.read(left)
                if not piece:
                    break
                pieces.append(piece)
                left -= len(piece) if left > 0 else 0
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_into(self, name: str, start: int, out: memoryview) -> int:
        """Fill a buffer."""
        done = 0
        with open(self._path(name), "rb", buffering=0) as file:
            file.seek(start)
            while done < out.nbytes and (got := file.readinto(out[done:])):
                done += got
        return done

    def size(self, name: str) -> int | None:
        """Size of a file."""
        try:
            return os.stat(self._path(name)).st_size
        except FileNotFoundError:
            return None

    def names(self, under: str) -> list[str]:
        """Names of all files below."""
        found = []
        for folder, _, files in os.walk(self._path(under)):
            inside = os.path.relpath(folder, self.url)
            found += [os.path.normpath(os.path.join(inside, f)) for f in files]
        return sorted(f.replace(os.sep, "/") for f in found if UNFINISHED not in f)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        for name in names:
            try:
                os.unlink(self._path(name))
            except FileNotFoundError:
                continue

    def remove_tree(self, under: str) -> None:
        """Remove a folder of this folder."""
        shutil.rmtree(self._path(under), ignore_errors=True)

    def free_bytes(self) -> int | None:
        """Free space of the disk."""
        place = self.url
        while not os.path.exists(place):
            place = os.path.dirname(os.path.abspath(place))
        return shutil.disk_usage(place).free

    def remove_unfinished(self) -> None:
        """Remove what killed processes left half-written."""
        for folder, _, files in os.walk(self.url):
            for file in files:
                if UNFINISHED in file:
                    os.unlink(os.path.join(folder, file))


class RemoteFolder(Folder):
    """A folder of an object store, or of anything else that fsspec knows."""

    def __init__(self, url: str) -> None:
        super().__init__(url.rstrip("/"))
        fsspec = require("fsspec", "distributed")
        self.system, self.root = fsspec.core.url_to_fs(self.url)

    def write(self, name: str, content: bytes | list[Any]) -> tuple[int, int]:
        """Put one object."""
        pieces = content if isinstance(content, list) else [content]
        whole = b"".join(bytes(memoryview(piece)) for piece in pieces)
        path = f"{self.root}/{name}"
        self.system.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        self.system.pipe_file(path, whole)
        return len(whole), zlib.crc32(whole)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Bytes of an object."""
        return bytes(self.system.cat_file(f"{self.root}/{name}", start=start, end=stop))

    def size(self, name: str) -> int | None:
        """Size of an object."""
        try:
            return int(self.system.info(f"{self.root}/{name}")["size"])
        except FileNotFoundError:
            return None

    def names(self, under: str) -> list[str]:
        """Names of all objects below."""
        try:
            found = self.system.find(f"{self.root}/{under}")
        except FileNotFoundError:
            return []
        return sorted(path.split(self.root.strip("/") + "/", 1)[1] for path in found)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects."""
        for name in names:
            try:
                self.system.rm_file(f"{self.root}/{name}")
            except FileNotFoundError:
                continue


def raw_bytes(array: NDArray[Any]) -> memoryview:
    """Bytes of a contiguous array, not copied."""
    view: Any = array.reshape(-1).view(np.uint8)
    return memoryview(view)


def open_folder(url: str) -> Folder:
    """Folder for a path or a URL such as ``s3://bucket/work``."""
    return RemoteFolder(url) if "://" in url else LocalFolder(os.path.abspath(url))
