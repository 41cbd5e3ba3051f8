"""Pictures as features: small copies of them, and how their colours are shared out."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import require
from .items import Pictures
from .pictures import PictureError

__all__ = ["picture_features"]

SIDE = 12
LEVELS = 8


def picture_features(pictures: Pictures, n_rows: int) -> tuple[NDArray[np.float64], int]:
    """Describe pictures by numbers.

    Parameters
    ----------
    pictures : Pictures
        The pictures.
    n_rows : int
        How many.

    Returns
    -------
    features : ndarray of shape (n_rows, n_features)
        Colours of a 12 by 12 copy, and shares of eight levels of each colour. Zeros for pictures
        that cannot be read.
    broken : int
        Pictures that cannot be read.
    """
    images = require("PIL.Image", "label")
    features = np.zeros((n_rows, 3 * SIDE * SIDE + 3 * LEVELS))
    broken = 0
    for row in range(n_rows):
        try:
            content, _ = pictures.get(row)
            features[row] = _describe(images, content)
        except Exception:  # whatever a decoder says about a file that somebody made
            broken += 1
    return features, broken


def _describe(images: Any, content: bytes) -> NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", images.DecompressionBombWarning)
        with images.open(io.BytesIO(content)) as image:
            image.draft("RGB", (8 * SIDE, 8 * SIDE))
            small = image.convert("RGB").resize((4 * SIDE, 4 * SIDE))
    pixels = np.asarray(small, dtype=np.float64) / 255.0
    if pixels.shape != (4 * SIDE, 4 * SIDE, 3):
        raise PictureError("not a picture in colours")
    copy = pixels.reshape(SIDE, 4, SIDE, 4, 3).mean(axis=(1, 3))
    levels = np.minimum((pixels * LEVELS).astype(np.intp), LEVELS - 1)
    shares = [np.bincount(levels[..., c].ravel(), minlength=LEVELS) for c in range(3)]
    # The copy counts like three columns of the colours' shares.
    return np.concatenate([copy.ravel() / SIDE, np.concatenate(shares) / levels[..., 0].size])
