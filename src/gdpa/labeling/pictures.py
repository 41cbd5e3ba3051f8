"""Pictures of rows: files beside the table, never outside its folder, and arrays as PNG."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArrayPictures", "FilePictures", "PictureError", "png"]

MOST_BYTES = 50_000_000
# How the files begin: what a picture is called says nothing about what is in it. SVG is left out,
# it can hold scripts.
KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)


class PictureError(ValueError):
    """A picture that cannot be shown, and why."""


def _kind(content: bytes) -> str:
    for start, kind in KINDS:
        if content.startswith(start):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if content[4:12] in (b"ftypavif", b"ftypavis"):
        return "image/avif"
    raise PictureError("the file is not a PNG, JPEG, GIF, WebP, AVIF or BMP picture")


@dataclass(frozen=True)
class FilePictures:
    """Picture files named by a column of the table.

    Parameters
    ----------
    folder : Path
        The folder of the table. Nothing outside it is read, also not through links.
    names : sequence of str
        Path of each row's picture, relative to the folder.
    """

    folder: Path
    names: Any

    def get(self, row: int) -> tuple[bytes, str]:
        """Read a picture.

        Parameters
        ----------
        row : int
            The row.

        Returns
        -------
        content : bytes
            The file.
        kind : str
            Its media type, from its first bytes.

        Raises
        ------
        PictureError
            If it is missing, outside the folder, too large, or no picture.
        """
        name = str(self.names[row]).strip()
        home = self.folder.resolve()
        try:
            path = (home / name).resolve()
            inside = path.is_relative_to(home)
            readable = inside and path.is_file()
        except (OSError, ValueError, RuntimeError):  # names that no file system takes, circles
            inside = readable = False
        if not name or not inside:
            raise PictureError("the path is empty or leads out of the folder of the table")
        if not readable:
            raise PictureError("there is no such file")
        if path.stat().st_size > MOST_BYTES:
            raise PictureError(f"the file has more than {MOST_BYTES // 1_000_000} MB")
        content = path.read_bytes()
        return content, _kind(content)


@dataclass(frozen=True)
class ArrayPictures:
    """Rows of numbers shown as pictures.

    Parameters
    ----------
    values : ndarray of shape (n_rows, height, width) or (n_rows, height, width, 3)
        Numbers; the smallest of all becomes black, the largest white.
    """

    values: NDArray[Any]

    def get(self, row: int) -> tuple[bytes, str]:
        """Draw a row; see :class:`FilePictures`."""
        low, high = float(self.values.min()), float(self.values.max())
        scaled = (self.values[row].astype(np.float64) - low) / ((high - low) or 1.0)
        return png(np.round(255.0 * scaled).astype(np.uint8)), "image/png"


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode grey or colour pixels as PNG.

    Parameters
    ----------
    pixels : ndarray of shape (height, width) or (height, width, 3)
        0 to 255.

    Returns
    -------
    bytes
        The file.
    """
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    lines = pixels.reshape(height, -1)
    raw = np.hstack([np.zeros((height, 1), dtype=np.uint8), lines]).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    out = b"\x89PNG\r\n\x1a\n"
    for name, data in parts:
        out += struct.pack(">I", len(data)) + name + data
        out += struct.pack(">I", zlib.crc32(name + data))
    return out
