"""Features of pictures, learned from the pictures themselves without labels and without a network.

Coates, Ng and Lee, "An analysis of single-layer networks in unsupervised feature learning"
(AISTATS 2011): small patches are normalised and whitened, k-means finds typical patches (the
dictionary), and each position of a picture is described by how much nearer than the mean distance
it is to every typical patch,

    f_k = max(0, mean distance - distance to patch k).

The features are the means of f over the cells of a 3 x 3 grid. The numbers below were compared on
six sets of pictures (letters, digits, flowers, hand signs, X-rays, photographs).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import NDArray, SingleArray
from ..codec import check_numbers, storable

# Side of a patch, in pixels.
PATCH = 6
# Number of typical patches.
DICTIONARY = 128
# The means are taken over a grid of this many rows and columns.
GRID = 3
# Patches are taken at every pixel, or at every second, third, ... if there were more positions.
MOST_POSITIONS = 600
# Patches and pictures that the dictionary is learned from.
SAMPLED_PATCHES = 30_000
SAMPLED_PICTURES = 5_000
# Added to the variance of a patch whose pixels are between 0 and 1, so that noise in flat patches
# is not amplified, and to the variances of the whitened directions (Coates, Ng and Lee).
PATCH_NOISE = 10 / 255**2
WHITENING_NOISE = 0.1
# Rows of numbers are taken for pictures only if the sides are at least this long.
LEAST_SIDE = 16
# Rows that are read to tell whether they are pictures.
SHAPE_ROWS = 1_000
# Pixels one below the other have at least this mean correlation in pictures.
LEAST_CORRELATION = 0.3

Shape = tuple[int, int, int]


def picture_shape(X: NDArray[Any]) -> Shape | None:
    """Return the height, width and channels of the pictures in the rows, or None.

    Rows are taken for pictures if they have the length of a square picture with one or three
    channels (the channels of a pixel side by side), and if a pixel is more correlated with the
    pixel below than with the one half a row further on. A curve would be less correlated with it.

    Parameters
    ----------
    X : ndarray of shape (n_pictures, n_columns)
        Rows of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa.graph.picture_features import picture_shape
    >>> rng = np.random.default_rng(0)
    >>> blobs = np.kron(rng.random((50, 5, 5)), np.ones((1, 4, 4)))
    >>> picture_shape(blobs.reshape(50, 400))
    (20, 20, 1)
    >>> picture_shape(rng.random((50, 400))) is None
    True
    """
    n, d = X.shape
    for channels in (1, 3):
        side = round(np.sqrt(d / channels))
        if side >= LEAST_SIDE and side * side * channels == d and n > 1:
            A = np.asarray(X[:: max(1, n // SHAPE_ROWS)], dtype=np.float64)
            below = mean_correlation(A, side * channels)
            beside = mean_correlation(A, (side // 2) * channels)
            if below >= LEAST_CORRELATION and below > beside:
                return side, side, channels
    return None


def mean_correlation(A: NDArray[np.float64], lag: int) -> float:
    """Return the mean correlation of columns that are `lag` apart, without constant columns."""
    with np.errstate(all="ignore"):
        U = (A - A.mean(axis=0)) / A.std(axis=0)
        each = (U[:, lag:] * U[:, :-lag]).mean(axis=0)
    each = each[np.isfinite(each)]
    return float(each.mean()) if each.size else 0.0


@storable("picture features")
@dataclass(frozen=True, eq=False)
class PictureFeatures:
    """A dictionary of patches, and the scale of the features.

    Parameters
    ----------
    shape : tuple of int
        Height, width and channels of a picture.
    low, high : float
        Range of the pixel values.
    middle : ndarray of shape (n_values,)
        Mean of the normalised patches.
    whitening : ndarray of shape (n_values, n_values)
        Whitening matrix of the patches.
    dictionary : ndarray of shape (n_patches, n_values)
        Typical whitened patches.
    shift, scale : ndarray of shape (n_features,)
        Mean and standard deviation of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa.graph.picture_features import PictureFeatures
    >>> pictures = np.random.default_rng(0).random((40, 16 * 16))
    >>> PictureFeatures.fit(pictures, (16, 16, 1)).transform(pictures).shape
    (40, 1152)
    """

    shape: Shape
    low: float
    high: float
    middle: SingleArray
    whitening: SingleArray
    dictionary: SingleArray
    shift: SingleArray
    scale: SingleArray

    def __post_init__(self) -> None:
        d = PATCH * PATCH * self.shape[2]
        check_numbers("middle", self.middle, (d,))
        check_numbers("whitening", self.whitening, (d, d))
        check_numbers("dictionary", self.dictionary, (None, d))
        n_features = GRID * GRID * self.dictionary.shape[0]
        check_numbers("shift", self.shift, (n_features,))
        check_numbers("scale", self.scale, (n_features,), at_least=0)
        if not (min(self.shape[:2]) >= PATCH and self.shape[2] >= 1 and self.high > self.low):
            raise ValueError(f"pictures of shape {self.shape} or their range of values are wrong")

    @classmethod
    def fit(cls, rows: NDArray[Any], shape: Shape, random_state: int = 0) -> PictureFeatures:
        """Learn the dictionary from pictures.

        Parameters
        ----------
        rows : ndarray of shape (n_pictures, height * width * channels)
            The pictures, one flat row each.
        shape : tuple of int
            Height, width and channels.
        random_state : int, default=0
            Seed of the sampled patches and of k-means.
        """
        from sklearn.cluster import MiniBatchKMeans

        rng = np.random.default_rng(random_state)
        kept = rng.permutation(rows.shape[0])[:SAMPLED_PICTURES]
        sample = rows[np.sort(kept)]
        low = float(sample.min())
        high = float(sample.max())
        if high <= low:
            high = low + 1.0
        pictures = to_pictures(sample, shape, low, high)
        per_picture = -(-SAMPLED_PATCHES // pictures.shape[0])
        patches = normalize_patches(random_patches(pictures, per_picture, rng))
        middle = patches.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(patches, rowvar=False))
        whitening = (vectors / np.sqrt(values + WHITENING_NOISE)) @ vectors.T
        whitening = whitening.astype(np.float32)
        kmeans = MiniBatchKMeans(
            min(DICTIONARY, patches.shape[0]), n_init=1, batch_size=2_048, random_state=random_state
        )
        dictionary = kmeans.fit((patches - middle) @ whitening).cluster_centers_
        n_features = GRID * GRID * dictionary.shape[0]
        plain = cls(
            shape=shape,
            low=low,
            high=high,
            middle=middle,
            whitening=whitening,
            dictionary=dictionary.astype(np.float32),
            shift=np.zeros(n_features, dtype=np.float32),
            scale=np.ones(n_features, dtype=np.float32),
        )
        found = plain.transform(sample)
        deviation = found.std(axis=0)
        return cls(
            shape=shape,
            low=low,
            high=high,
            middle=plain.middle,
            whitening=whitening,
            dictionary=plain.dictionary,
            shift=found.mean(axis=0),
            scale=np.where(deviation > 1e-6, deviation, np.float32(1.0)),
        )

    @property
    def step(self) -> int:
        """Distance of the positions at which patches are taken, in pixels."""
        step = 1
        height, width = self.shape[0] - PATCH, self.shape[1] - PATCH
        while (height // step + 1) * (width // step + 1) > MOST_POSITIONS:
            step += 1
        return step

    @property
    def columns(self) -> NDArray[np.bool_]:
        """Which columns of a row are used: all of its pixels."""
        return np.ones(int(np.prod(self.shape)), dtype=bool)

    def transform(self, rows: NDArray[Any]) -> SingleArray:
        """Return the features of pictures, with about mean 0 and standard deviation 1.

        Pictures are encoded one by one, so that the features of a picture do not depend on the
        others, not even by rounding.
        """
        found = np.empty((rows.shape[0], self.shift.size), dtype=np.float32)
        for i in range(rows.shape[0]):
            picture = to_pictures(rows[i : i + 1], self.shape, self.low, self.high)
            found[i] = self._pooled(picture[0])
        return (found - self.shift) / self.scale

    def _pooled(self, picture: SingleArray) -> SingleArray:
        """Return the mean activations of each cell of the grid."""
        windows = patches_of(picture[None])[0, :: self.step, :: self.step]
        height, width = windows.shape[:2]
        patches = normalize_patches(windows.reshape(height * width, -1))
        points = (patches - self.middle) @ self.whitening
        squares = (points * points).sum(axis=1)[:, None] + (self.dictionary**2).sum(axis=1)
        distance = np.sqrt(np.maximum(squares - 2.0 * (points @ self.dictionary.T), 0.0))
        active = np.maximum(distance.mean(axis=1, keepdims=True) - distance, 0.0)
        active = active.reshape(height, width, -1)
        cells = [
            active[rows, columns].mean(axis=(0, 1)) for rows, columns in cells_of(height, width)
        ]
        return np.concatenate(cells)

    def pixel_shares(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return a number per feature as numbers per column: those of each cell on its pixels."""
        total = np.asarray(values, dtype=np.float64).reshape(GRID * GRID, -1).sum(axis=1)
        shares = np.zeros(self.shape)
        for value, (rows, columns) in zip(total, cells_of(*self.shape[:2]), strict=True):
            shares[rows, columns] = value / shares[rows, columns].size
        return shares.ravel()


def cells_of(height: int, width: int) -> list[tuple[slice, slice]]:
    """Return the rows and columns of the cells of the grid."""
    row_ends = np.linspace(0, height, GRID + 1).astype(int).tolist()
    column_ends = np.linspace(0, width, GRID + 1).astype(int).tolist()
    return [
        (slice(top, bottom), slice(left, right))
        for top, bottom in pairwise(row_ends)
        for left, right in pairwise(column_ends)
    ]


def to_pictures(rows: NDArray[Any], shape: Shape, low: float, high: float) -> SingleArray:
    """Return pictures of shape (n, height, width, channels) with values from 0 to 1."""
    pictures = np.asarray(rows, dtype=np.float32).reshape(rows.shape[0], *shape)
    return (pictures - np.float32(low)) / np.float32(high - low)


def patches_of(pictures: SingleArray) -> SingleArray:
    """Return a view of all patches, (n, rows, columns, channels, PATCH, PATCH)."""
    return np.lib.stride_tricks.sliding_window_view(pictures, (PATCH, PATCH), axis=(1, 2))


def random_patches(
    pictures: SingleArray, per_picture: int, rng: np.random.Generator
) -> SingleArray:
    """Return flat patches from random positions of every picture."""
    windows = patches_of(pictures)
    n, height, width = windows.shape[:3]
    picture = np.repeat(np.arange(n), per_picture)
    row = rng.integers(0, height, picture.size)
    column = rng.integers(0, width, picture.size)
    return windows[picture, row, column].reshape(picture.size, -1)


def normalize_patches(patches: SingleArray) -> SingleArray:
    """Return patches with mean 0 and, unless they are flat, about unit variance."""
    centred = patches - patches.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + np.float32(PATCH_NOISE)))
