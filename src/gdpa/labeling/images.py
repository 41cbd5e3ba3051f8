"""Images of rows: files in the folder of the table or arrays of pixels; and features of them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from .rows import Images

__all__ = ["ArrayImages", "FileImages", "ImageError", "image_features", "png"]

MOST_BYTES = 50_000_000
SIDE = 12  # of the thumbnails
# First bytes of the files; their names are not trusted. SVG is left out, it can hold scripts.
MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)


class ImageError(ValueError):
    """An image that cannot be shown, and why."""


def _kind(content: bytes) -> str:
    for start, kind in MAGIC:
        if content.startswith(start):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if content[4:12] in (b"ftypavif", b"ftypavis"):
        return "image/avif"
    raise ImageError("the file is not a PNG, JPEG, GIF, WebP, AVIF or BMP image")


@dataclass(frozen=True)
class FileImages:
    """Image files named by a column of the table.

    Parameters
    ----------
    folder : Path
        The folder of the table. Nothing outside it is read, also not through links.
    names : sequence of str
        Path of each row's image, relative to the folder.
    """

    folder: Path
    names: Sequence[str]

    def get(self, row: int) -> tuple[bytes, str]:
        """Read an image.

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
        ImageError
            If it is missing, outside the folder, too large, or no image.
        """
        name = str(self.names[row]).strip()
        home = self.folder.resolve()
        # Checked before it is resolved: that alone makes Windows contact the host of a UNC path.
        if PurePath(name).anchor and not PurePath(name).is_relative_to(home):
            raise ImageError("the path leads out of the folder of the table")
        try:
            path = (home / name).resolve()
            inside = path.is_relative_to(home)
            readable = inside and path.is_file()
        except (OSError, ValueError, RuntimeError):  # names that no file system takes, circles
            inside = readable = False
        if not name or not inside:
            raise ImageError("the path is empty or leads out of the folder of the table")
        if not readable:
            raise ImageError("there is no such file")
        if path.stat().st_size > MOST_BYTES:
            raise ImageError(f"the file has more than {MOST_BYTES // 1_000_000} MB")
        content = path.read_bytes()
        return content, _kind(content)


@dataclass(frozen=True)
class ArrayImages:
    """Rows of numbers shown as images.

    Parameters
    ----------
    values : ndarray of shape (n_rows, height, width) or (n_rows, height, width, 3)
        Numbers; the smallest of all becomes black, the largest white.
    """

    values: NDArray[Any]

    def get(self, row: int) -> tuple[bytes, str]:
        """Draw a row; see :class:`FileImages`."""
        low, high = float(self.values.min()), float(self.values.max())
        scaled = (self.values[row].astype(np.float64) - low) / ((high - low) or 1.0)
        return png(np.round(255.0 * scaled).astype(np.uint8)), "image/png"


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode grey (height, width) or colour (height, width, 3) pixels as PNG."""
    file = io.BytesIO()
    require("PIL.Image", "label").fromarray(np.ascontiguousarray(pixels)).save(file, "PNG")
    return file.getvalue()


def image_features(images: Images, n_rows: int) -> tuple[NDArray[np.float64], int]:
    """Return features of images.

    Parameters
    ----------
    images : Images
        The images.
    n_rows : int
        How many.

    Returns
    -------
    features : ndarray of shape (n_rows, n_features)
        A thumbnail of 12 by 12 pixels and a histogram of eight levels for each colour. Zeros for
        images that cannot be read.
    broken : int
        Number of images that cannot be read.
    """
    require("PIL.Image", "label")
    features = np.zeros((n_rows, 3 * SIDE * SIDE + 3 * 8))
    broken = 0
    for row in range(n_rows):
        try:
            content, _ = images.get(row)
            features[row] = _describe(content)
        except Exception:  # decoders raise all kinds of errors on hostile files
            broken += 1
    return features, broken


def _describe(content: bytes) -> NDArray[np.float64]:
    pillow = require("PIL.Image", "label")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pillow.DecompressionBombWarning)
        with pillow.open(io.BytesIO(content)) as image:
            image.draft("RGB", (8 * SIDE, 8 * SIDE))
            small = image.convert("RGB").resize((4 * SIDE, 4 * SIDE))
    pixels = np.asarray(small, dtype=np.float64) / 255.0
    if pixels.shape != (4 * SIDE, 4 * SIDE, 3):
        raise ImageError("not a colour image")
    thumbnail = pixels.reshape(SIDE, 4, SIDE, 4, 3).mean(axis=(1, 3))
    levels = np.minimum((pixels * 8).astype(np.intp), 7)
    shares = [np.bincount(levels[..., c].ravel(), minlength=8) for c in range(3)]
    # The thumbnail has about the weight of three columns of the histogram.
    return np.concatenate([thumbnail.ravel() / SIDE, np.concatenate(shares) / levels[..., 0].size])
