"""Read and write the files of a work folder, on a local disk or in an object store.

An array is an ``.npy`` file, followed by a CRC-32 of each block of 16 kB. The last line of a JSON
file is its CRC-32. Checksums are verified on every read, even of a few rows of an array. Local
files are written under a temporary name and renamed, so a file with its final name is complete.
Checksums include the name of the file, so a file in the place of another is noticed as well.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from ..files import LockedError, lock

BLOCK = 2**14  # bytes that share a checksum
UNFINISHED = ".unfinished-"


class DamagedFileError(ValueError):
    """Raised if the checksum of a file in a work folder does not match its content."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is damaged: its checksum does not match its content. Start again with an "
            "empty work folder"
        )


class Folder:
    """A folder that the client and all workers can access.

    Parameters
    ----------
    url : str
        A path, or a URL supported by fsspec, such as ``s3://bucket/work``.
    """

    def __init__(self, url: str) -> None:
        self.is_local = "://" not in url
        self.url = os.path.abspath(url) if self.is_local else url.rstrip("/")
        fsspec = require("fsspec", "distributed")
        self._system, self._root = fsspec.core.url_to_fs(self.url)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def write(self, name: str, *pieces: bytes | memoryview) -> None:
        """Write a file completely or not at all."""
        path = self._path(name)
        if not self.is_local:
            self._system.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            self._system.pipe_file(path, b"".join(pieces))
            return
        unfinished = f"{path}{UNFINISHED}{uuid.uuid4().hex[:12]}"
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(unfinished, "xb") as file:
                file.writelines(pieces)
            os.replace(unfinished, path)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise OSError(
                    error.errno,
                    "the disk is full; free some space and run the same command again to continue",
                    path,
                ) from error
            raise
        finally:
            if os.path.exists(unfinished):
                os.unlink(unfinished)

    def read(self, name: str) -> bytes:
        """Return the content of a file, unchecked."""
        return bytes(self._system.cat_file(self._path(name)))

    def write_json(self, name: str, data: object) -> None:
        """Write data as JSON with a checksum."""
        text = json.dumps(data, default=to_plain).encode()
        self.write(name, text, b"\n%08x\n" % zlib.crc32(text, _seed(name)))

    def read_json(self, name: str) -> Any:
        """Read data that :meth:`write_json` wrote."""
        text, _, crc = self.read(name).rstrip(b"\n").rpartition(b"\n")
        if crc != b"%08x" % zlib.crc32(text, _seed(name)):
            raise DamagedFileError(f"{self.url}/{name}")
        return json.loads(text)

    def write_array(self, name: str, array: NDArray[Any]) -> None:
        """Write an array with checksums."""
        array = np.ascontiguousarray(array)
        file = io.BytesIO()
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        header = file.getvalue()
        raw: Any = array.reshape(-1).view(np.uint8) if array.size else b""
        data = memoryview(raw)
        first = BLOCK - len(header)
        sums = [zlib.crc32(data[:first], zlib.crc32(header, _seed(name)))]
        sums += [zlib.crc32(data[i : i + BLOCK]) for i in range(first, data.nbytes, BLOCK)]
        self.write(name, header, data, np.array(sums, dtype="<u4").tobytes())

    def read_array(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Read rows `start` to `stop` of an array; the result is read-only."""
        options = {} if self.is_local else {"cache_type": "none"}
        with self._system.open(self._path(name), "rb", **options) as file:
            head = file.read(BLOCK)
            try:
                shape, dtype, offset = _parse_header(head)
            except Exception as error:
                raise DamagedFileError(f"{self.url}/{name}") from error
            row = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
            end = offset + shape[0] * row
            stop = shape[0] if stop is None else min(stop, shape[0])
            low = offset + start * row
            high = offset + max(start, stop) * row
            blocks = _checked(file, head, _seed(name), end, low // BLOCK, -(-high // BLOCK))
            if blocks is None:
                raise DamagedFileError(f"{self.url}/{name}")
        values = np.frombuffer(blocks, np.uint8)[low % BLOCK :][: high - low]
        return np.asarray(values.view(dtype).reshape(max(0, stop - start), *shape[1:]))

    def load(
        self, base: str, *names: str, start: int = 0, stop: int | None = None
    ) -> Iterator[NDArray[Any]]:
        """Yield rows `start` to `stop` of several arrays that :meth:`Output.save` wrote."""
        return (self.read_array(f"{base}.{name}.npy", start, stop) for name in names)

    def is_intact(self, name: str) -> bool:
        """Return whether a file exists and matches its checksums."""
        try:
            (self.read_json if name.endswith(".json") else self.read_array)(name)
        except (DamagedFileError, FileNotFoundError):
            return False
        return True

    def names(self) -> list[str]:
        """Return the sorted names of all complete files."""
        return sorted(name for name in self._all_names() if UNFINISHED not in name)

    def _all_names(self) -> list[str]:
        try:
            paths = self._system.find(self._root)
        except FileNotFoundError:
            return []
        return [path.split(self._root.strip("/") + "/", 1)[1] for path in paths]

    def remove(self, names: Iterable[str]) -> None:
        """Remove files that exist."""
        for name in names:
            with suppress(FileNotFoundError):
                self._system.rm_file(self._path(name))

    def remove_all(self) -> None:
        """Remove the folder and everything in it."""
        if self._system.exists(self._root):
            self._system.rm(self._root, recursive=True)

    def remove_unfinished(self) -> None:
        """Remove incomplete files of killed processes."""
        self.remove(name for name in self._all_names() if UNFINISHED in name)

    def free_bytes(self) -> int | None:
        """Return the free space of a local disk; None for an object store."""
        if not self.is_local:
            return None
        place = self.url
        while not os.path.exists(place):
            place = os.path.dirname(place)
        return shutil.disk_usage(place).free


def _parse_header(head: bytes) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return the shape, type and offset of the data in an .npy file."""
    file = io.BytesIO(head)
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype, file.tell()


def _seed(name: str) -> int:
    """Return the initial value of the checksum of a file."""
    return zlib.crc32(name.encode())


def _checked(
    file: IO[bytes], head: bytes, seed: int, end: int, low: int, high: int
) -> bytes | None:
    """Return blocks `low` to `high` of the first `end` bytes; None if a checksum is wrong."""

    def sums(first: int, last: int) -> list[int]:
        file.seek(end + 4 * first)
        raw = file.read(4 * (last - first))
        return list(struct.unpack(f"<{len(raw) // 4}I", raw[: len(raw) // 4 * 4]))

    if sums(0, 1) != [zlib.crc32(head[:end], seed)]:
        return None
    if high <= 1:
        return head[:end]
    file.seek(low * BLOCK)
    content = file.read(min(high * BLOCK, end) - low * BLOCK)
    view = memoryview(content)
    seeds = [seed if low + i == 0 else 0 for i in range(-(-len(content) // BLOCK))]
    found = [zlib.crc32(view[i * BLOCK :][:BLOCK], start) for i, start in enumerate(seeds)]
    return content if found == sums(low, high) else None


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Lock a local work folder for this process."""
    if not folder.is_local:
        yield
        return
    os.makedirs(folder.url, exist_ok=True)
    try:
        with lock(folder.url + ".lock", wait=False):
            yield
    except LockedError as error:
        raise ValueError(f"another run is using {folder.url} ({error})") from error


def to_plain(value: object) -> object:
    """Convert a NumPy scalar to a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be written as JSON")
