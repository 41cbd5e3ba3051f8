"""Images of rows: files in the folder of the table, or arrays of pixels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from ..tables.pictures import ImageError, read_picture

__all__ = ["ArrayImages", "FileImages", "ImageError", "png"]


@dataclass(frozen=True)
class FileImages:
    """Image files listed in a column of the table.

    Parameters
    ----------
    folder : Path
        The folder of the table. Files outside it are never read, not even through links.
    names : sequence of str
        Path of the image of each row, relative to the folder.
    """

    folder: Path
    names: Sequence[str]

    def get(self, row: int) -> tuple[bytes, str]:
        """Return the image of a row; see :func:`gdpa.tables.pictures.read_picture`."""
        return read_picture(self.folder, str(self.names[row]))

    def name(self, row: int) -> str:
        """Return the path of the image of a row, as in the table."""
        return str(self.names[row])


@dataclass(frozen=True)
class ArrayImages:
    """Rows of numbers displayed as images.

    Parameters
    ----------
    values : ndarray of shape (n_rows, height, width) or (n_rows, height, width, 3)
        Numbers; the smallest is drawn black, the largest white.
    """

    values: NDArray[Any]

    def get(self, row: int) -> tuple[bytes, str]:
        """Return the image of a row as PNG."""
        low = float(self.values.min())
        high = float(self.values.max())
        scaled = (self.values[row].astype(np.float64) - low) / ((high - low) or 1.0)
        return png(np.round(255.0 * scaled).astype(np.uint8)), "image/png"

    def name(self, row: int) -> str:
        """Return a file name for the image of a row: its number."""
        return f"{row + 1}.png"


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode grey (height, width) or colour (height, width, 3) pixels as PNG."""
    file = io.BytesIO()
    require("PIL.Image", "label").fromarray(np.ascontiguousarray(pixels)).save(file, "PNG")
    return file.getvalue()
