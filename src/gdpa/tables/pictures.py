"""Read picture files, and encode them by features learned from the pictures.

The features are those of Coates, Ng and Lee (2011): patches of 8 x 8 pixels are normalised and
whitened, k-means finds 100 typical patches, and the similarities to these are averaged over each
quarter of a picture. The features are the principal components of these averages. On 1,500
photographs of CIFAR-10 with 5 and 20 labels per class, the default classifier has an accuracy of 29
and 40 %, and 22 and 28 % on thumbnails of 16 x 16 pixels with colour histograms (three draws; the
settings were chosen on these data). A pretrained network is much better
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
from .table import TableError

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp")
MOST_BYTES = 50_000_000
SIDE, PATCH, STEP = 32, 8, 2  # side of a picture, side of a patch, stride, in pixels
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
    name, home = name.strip(), folder.resolve()
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
    """Return the pixels of a picture as numbers from 0 to 1."""
    return np.asarray(picture.resize((SIDE, SIDE)), dtype=np.float32) / 255.0


def _patches(pixels: SingleArray) -> SingleArray:
    """Return the normalised patches of a picture, of shape (rows, columns, values)."""
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (PATCH, PATCH), axis=(0, 1))
    flat = windows[::STEP, ::STEP].reshape(*windows[::STEP, ::STEP].shape[:2], -1)
    flat = flat - flat.mean(axis=-1, keepdims=True)
    return np.asarray(flat / np.sqrt(flat.var(axis=-1, keepdims=True) + 1e-4))


@storable("picture-encoding")
@dataclass(frozen=True)
class PictureEncoding:
    """Encode pictures by the principal components of their patch similarities.

    Parameters
    ----------
    whitening : ndarray of float32 of shape (n_values, n_values)
        Whitening matrix of the patches.
    middle : ndarray of float32 of shape (n_values,)
        Mean of the whitened patches.
    centers : ndarray of float32 of shape (n_centers, n_values)
        Typical whitened patches.
    directions : ndarray of float32 of shape (4 * n_centers, n_features)
        Principal directions.
    shift : ndarray of float32 of shape (n_features,)
        Mean of the features.
    """

    whitening: SingleArray
    middle: SingleArray
    centers: SingleArray
    directions: SingleArray
    shift: SingleArray

    def __post_init__(self) -> None:
        d = 3 * PATCH * PATCH
        check_numbers("whitening", self.whitening, (d, d))
        check_numbers("middle", self.middle, (d,))
        check_numbers("centers", self.centers, (None, d))
        check_numbers("shift", self.shift, (None,))
        check_numbers("directions", self.directions, (4 * len(self.centers), self.shift.size))

    @classmethod
    def fit(
        cls, names: Sequence[str], folder: Path, n_features: int, random_state: int
    ) -> PictureEncoding:
        """Fit to at most 2,000 of the pictures."""
        from scipy.fft import dct
        from sklearn.cluster import MiniBatchKMeans

        rng = np.random.default_rng(random_state)
        pictures, reason = [], ""
        for k in rng.permutation(len(names))[:2000].tolist():
            try:
                content = read_picture(folder, names[k])[0]
                pictures.append(_pixels(open_picture(content, 384)))
            except ImageError as error:
                reason = reason or f"{names[k]}: {error}"
        if not pictures:
            raise TableError(f"no picture in {folder} can be read ({reason})")
        some = -(-50_000 // len(pictures))
        chosen = []
        for picture in pictures:
            patches = _patches(picture).reshape(-1, 3 * PATCH * PATCH)
            chosen.append(patches[rng.permutation(len(patches))[:some]])
        sample = np.concatenate(chosen)
        values, vectors = np.linalg.eigh(np.cov(sample, rowvar=False))
        whitening = ((vectors / np.sqrt(values + 0.1)) @ vectors.T).astype(np.float32)
        sample = sample @ whitening
        middle = sample.mean(axis=0)
        kmeans = MiniBatchKMeans(100, n_init=1, batch_size=2048, random_state=random_state)
        centers = kmeans.fit(sample - middle).cluster_centers_.astype(np.float32)
        counts = np.array([_count_patches(p, whitening, middle, centers) for p in pictures])
        spread = counts.std(axis=0)
        mean, spread = counts.mean(axis=0), spread + 1e-3 * spread.max() + 1e-12
        _, _, V = np.linalg.svd((counts - mean) / spread, full_matrices=False)
        # The rotation gives all features about the same variance.
        V = dct(V[:n_features], axis=0, norm="ortho") / spread
        scale = np.sqrt((((counts - mean) @ V.T) ** 2).sum(axis=1).mean()) or 1.0
        directions = np.ascontiguousarray(V.T / scale, dtype=np.float32)
        return cls(whitening, middle, centers, directions, mean @ directions)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the feature names."""
        return tuple(f" picture {k + 1}" for k in range(self.shift.size))

    def __call__(self, pictures: list[Any]) -> SingleArray:
        """Return the features of pictures."""
        about = (self.whitening, self.middle, self.centers)
        counts = np.array([_count_patches(_pixels(picture), *about) for picture in pictures])
        return np.asarray(counts @ self.directions - self.shift)

    def place(self, vectors: SingleArray) -> SingleArray:
        """Return the features unchanged."""
        return vectors


def _count_patches(
    pixels: SingleArray, whitening: SingleArray, middle: SingleArray, centers: SingleArray
) -> SingleArray:
    """Return the mean similarity of patches to each centre, for each quarter of a picture."""
    patches = _patches(pixels)
    A = patches.reshape(-1, patches.shape[-1]) @ whitening - middle
    squares = (A * A).sum(axis=1)[:, None] + (centers * centers).sum(axis=1) - 2 * A @ centers.T
    distance = np.sqrt(np.maximum(squares, 0))
    near = np.maximum(distance.mean(axis=1, keepdims=True) - distance, 0)
    near = near.reshape(*patches.shape[:2], -1)
    h, w = near.shape[0] // 2, near.shape[1] // 2
    quarters = (near[:h, :w], near[:h, w:], near[h:, :w], near[h:, w:])
    return np.concatenate([quarter.mean(axis=(0, 1)) for quarter in quarters])
