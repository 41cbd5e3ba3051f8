"""Read picture files, and encode them by features learned from the pictures.

The features are those of :mod:`gdpa.graph.picture_features`, computed from pictures reduced to 32 x
32 pixels, and of these the principal components. A pretrained network is much better on photographs
(:mod:`gdpa.tables.embedding`).
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ..arrays import SingleArray
from ..codec import check_numbers, storable
from ..errors import require
from ..graph.picture_features import PictureFeatures
from .table import TableError

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp")
MOST_BYTES = 50_000_000
SIDE = 32  # pictures are reduced to squares with sides of this many pixels
# The type is detected from the first bytes, not from the name. SVG may contain scripts.
MAGIC = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/bmp": rb"BM",
    "image/webp": rb"RIFF....WEBP",
    "image/avif": rb"....ftypavi[fs]",
}


class ImageError(ValueError):
    """An image cannot be read; the message says why."""


def picture_folder(source: str) -> Path:
    """Return the folder that picture names of a table are relative to."""
    path = Path(source)
    return path if path.is_dir() else path.parent


def read_picture(folder: Path, name: str) -> tuple[bytes, str]:
    """Read an image file.

    Parameters
    ----------
    folder : Path
        The folder of the table. Files outside it are never read, not even through links.
    name : str
        Path of the image, relative to the folder.

    Returns
    -------
    content : bytes
        The file.
    kind : str
        The media type, from the first bytes.

    Raises
    ------
    ImageError
        If the file is missing, outside the folder, too large, or not an image.
    """
    name = name.strip()
    home = folder.resolve()
    # Checked first, because resolving a UNC path makes Windows contact its host.
    if PurePath(name).anchor and not PurePath(name).is_relative_to(home):
        raise ImageError("the path is outside the folder of the table")
    try:
        path = (home / name).resolve()
        inside = path.is_relative_to(home)
        readable = inside and path.is_file()
    except (OSError, ValueError, RuntimeError):  # invalid names, cyclic links
        inside = readable = False
    if not name or not inside:
        raise ImageError("the path is empty or outside the folder of the table")
    if not readable:
        raise ImageError("the file does not exist")
    if path.stat().st_size > MOST_BYTES:
        raise ImageError(f"the file is larger than {MOST_BYTES // 1_000_000} MB")
    content = path.read_bytes()
    return content, _media_type(content)


def _media_type(content: bytes) -> str:
    """Return the media type from the first bytes of a file."""
    for kind, start in MAGIC.items():
        if re.match(start, content, re.DOTALL):
            return kind
    raise ImageError("the file is not a PNG, JPEG, GIF, WebP, AVIF or BMP image")


def open_picture(content: bytes, side: int) -> Any:
    """Return an upright RGB picture, reduced if its shorter side exceeds 2 * `side`."""
    pillow = require("PIL.Image", "image")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            with pillow.open(io.BytesIO(content)) as image:
                image.draft("RGB", (side, side))
                upright = require("PIL.ImageOps", "image").exif_transpose(image).convert("RGB")
                return upright.reduce(max(1, min(upright.size) // side))
    except Exception as error:  # decoders raise any kind of error on damaged files
        raise ImageError(f"the image is damaged: {error}") from error


def _pixels(picture: Any) -> SingleArray:
    """Return the pixels of a picture as a flat row of numbers from 0 to 1."""
    return np.asarray(picture.resize((SIDE, SIDE)), dtype=np.float32).ravel() / 255.0


@storable("picture-encoding")
@dataclass(frozen=True)
class PictureEncoding:
    """Encode pictures by the principal components of their learned features.

    Parameters
    ----------
    features : PictureFeatures
        Features of pictures of 32 x 32 pixels.
    directions : ndarray of float32 of shape (n_learned, n_features)
        Principal directions.
    shift : ndarray of float32 of shape (n_features,)
        Mean of the components.
    """

    features: PictureFeatures
    directions: SingleArray
    shift: SingleArray

    def __post_init__(self) -> None:
        check_numbers("shift", self.shift, (None,))
        check_numbers("directions", self.directions, (self.features.shift.size, self.shift.size))

    @classmethod
    def fit(
        cls, names: Sequence[str], folder: Path, n_features: int, random_state: int
    ) -> PictureEncoding:
        """Fit to at most 2,000 of the pictures."""
        rng = np.random.default_rng(random_state)
        pictures = []
        reason = ""
        for k in rng.permutation(len(names))[:2000].tolist():
            try:
                content = read_picture(folder, names[k])[0]
                pictures.append(_pixels(open_picture(content, 384)))
            except ImageError as error:
                reason = reason or f"{names[k]}: {error}"
        if not pictures:
            raise TableError(f"no picture in {folder} can be read ({reason})")
        return cls.of_pixels(np.array(pictures), n_features, random_state)

    @classmethod
    def of_pixels(cls, rows: SingleArray, n_features: int, random_state: int) -> PictureEncoding:
        """Fit to pictures of 32 x 32 pixels, one flat row each."""
        from scipy.fft import dct

        features = PictureFeatures.fit(rows, (SIDE, SIDE, 3), random_state)
        learned = features.transform(rows)
        _, _, V = np.linalg.svd(learned - learned.mean(axis=0), full_matrices=False)
        # The rotation gives all features about the same variance.
        V = dct(V[:n_features], axis=0, norm="ortho")
        components = learned @ V.T
        centred = components - components.mean(axis=0)
        scale = float(np.sqrt((centred**2).sum(axis=1).mean())) or 1.0
        directions = np.ascontiguousarray(V.T / scale, dtype=np.float32)
        return cls(features, directions, learned.mean(axis=0) @ directions)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the feature names."""
        return tuple(f" picture {k + 1}" for k in range(self.shift.size))

    def __call__(self, pictures: list[Any]) -> SingleArray:
        """Return the features of pictures."""
        rows = np.array([_pixels(picture) for picture in pictures])
        return np.asarray(self.features.transform(rows) @ self.directions - self.shift)

    def place(self, vectors: SingleArray) -> SingleArray:
        """Return the features unchanged."""
        return vectors
