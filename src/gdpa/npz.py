"""Read and write NPZ archives; untrusted ones are checked before they are decompressed.

A small archive can expand to thousands of times its size. So the number, names, compression and
declared sizes of all members are checked first, and the header of each array is compared with the
size of its member. Nothing is unpickled.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from .errors import any_error_as_value_error
from .files import written_whole

MOST_MEMBERS = 1000
# Repeated numbers compress to a hundredth at most; decompression bombs to a thousandth.
LARGEST_RATIO = 100
ALWAYS_ALLOWED = 64 * 1024**2  # bytes; smaller archives may have any ratio
_HEADER_BYTES = 10_000


def write_npz(path: Any, arrays: dict[str, Any]) -> None:
    """Write arrays that :func:`read_npz` accepts, completely or not at all.

    Parameters
    ----------
    path : path-like
        The file.
    arrays : dict of str to array-like
        The arrays, without Python objects.
    """
    with written_whole(path) as staged:
        for save in (np.savez_compressed, np.savez):
            with staged.open("wb") as file:
                save(file, **arrays)
            with zipfile.ZipFile(staged) as archive:
                unpacked = sum(member.file_size for member in archive.infolist())
            if not _suspicious(unpacked, staged.stat().st_size):
                break  # otherwise save almost empty arrays uncompressed


def _suspicious(unpacked: int, packed: int) -> bool:
    return unpacked > ALWAYS_ALLOWED and unpacked > LARGEST_RATIO * packed


def read_npz(source: str | Path | IO[bytes]) -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of an NPZ file after checking its declared sizes.

    Parameters
    ----------
    source : path or binary file
        The archive.

    Returns
    -------
    dict of str to ndarray
        The arrays.

    Raises
    ------
    ValueError
        If the archive is invalid, damaged or a decompression bomb.
    """
    # Damage can cause zlib.error, BadZipFile, ValueError and others.
    with (
        any_error_as_value_error("not a readable archive of arrays"),
        zipfile.ZipFile(source) as archive,
    ):
        members = _checked_members(archive)
        return {name: _read(archive, member) for name, member in members.items()}


def _checked_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    entries = archive.infolist()
    if len(entries) > MOST_MEMBERS:
        raise ValueError(f"{len(entries)} arrays; at most {MOST_MEMBERS} are expected")
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = entry.filename.removesuffix(".npy")
        if name == entry.filename or not name or name in members:
            raise ValueError(f"the member {entry.filename!r} is not an array, or a duplicate")
        readable = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if entry.flag_bits & 1 or not readable:
            raise ValueError(f"the compression of the member {entry.filename!r} is not supported")
        members[name] = entry
    packed = sum(entry.compress_size for entry in entries)
    unpacked = sum(entry.file_size for entry in entries)
    if _suspicious(unpacked, packed):
        raise ValueError(
            f"{packed} bytes would expand to {unpacked}, more than {LARGEST_RATIO} times "
            "(store such arrays without compression)"
        )
    for name, entry in members.items():
        with archive.open(entry) as stream:
            shape, _, dtype = _header(stream)
            declared = stream.tell() + math.prod(shape) * dtype.itemsize
        if dtype.hasobject:
            raise ValueError(f"the array {name!r} has Python objects, which are not supported")
        if declared != entry.file_size:
            raise ValueError(
                f"the array {name!r} declares {declared} bytes but has {entry.file_size}"
            )
    return members


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(stream)
    if version == (1, 0):
        return npy.read_array_header_1_0(stream, max_header_size=_HEADER_BYTES)
    if version == (2, 0):
        return npy.read_array_header_2_0(stream, max_header_size=_HEADER_BYTES)
    raise ValueError(f"arrays of format {version} are not supported")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
    with archive.open(member) as stream:
        array = npy.read_array(stream, allow_pickle=False, max_header_size=_HEADER_BYTES)
        if stream.read(1):
            raise ValueError(f"{member.filename} continues after its end")
    return np.asarray(array)
