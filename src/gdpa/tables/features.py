"""How one column becomes features: one frozen record per kind of column.

The scale is common: over the rows, the features of a column have a total variance of about one, so
that a column counts as one column in distances, however many features it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codec import storable
from .cell_formats import CYCLES, cycle_points, find_cycles
from .embedding import EmbeddingEncoding
from .pictures import PictureEncoding
from .texts import TextEncoding

FloatArray = NDArray[np.float64]
# These numbers were chosen on 30 mixed tables of R's collections and twelve of KEEL's (5 and 20
# labels a class; logistic regression, nearest neighbours). Fences at 3 lose where a tail is a
# class; bending from 0 on loses where a line separates finely; categories of height 1 lose one
# point against heights by variance.
STRAIGHT = 3.0  # standardised values beyond this are bent towards twice this


@storable("number-encoding")
@dataclass(frozen=True)
class NumberEncoding:
    """A number, or a rank: standardised; a gap is filled, and marked by one more feature.

    Parameters
    ----------
    shift, scale : float
        What is subtracted and divided by.
    fill : float
        What a gap is filled with: the median.
    bend : bool
        Whether outliers are bent towards the others.
    gap : float
        Value of the feature that marks a gap; 0 for none (no gaps, or fewer than one in a hundred).
    """

    shift: float
    scale: float
    fill: float
    bend: bool = False
    gap: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite([self.shift, self.fill]).all() and 0 <= self.gap < np.inf):
            raise ValueError(f"shift={self.shift}, fill={self.fill}, gap={self.gap}")
        if not 0 < self.scale < np.inf:
            raise ValueError(f"scale={self.scale} must be positive")

    @classmethod
    def fit(cls, values: FloatArray, how: str) -> NumberEncoding:
        """Learn from a column with gaps as NaN."""
        missing = np.isnan(values)
        present = values[~missing] if missing.any() else values
        low, high = float(present.min()), float(present.max())
        shift, scale = (low, high - low) if how == "minmax" else (0.0, 1.0)
        if how in ("robust", "standard"):
            size = max(abs(low), abs(high)) or 1.0
            inner = present / size  # squares of 1e200 are beyond floating point
            first, third = np.quantile(inner, [0.25, 0.75])
            if how == "robust" and inner.size >= 8 and third > first:
                reach = 10.0 * (third - first)  # values beyond these fences do not set the scale
                inner = np.clip(inner, first - reach, third + reach)
            shift, scale = float(inner.mean()) * size, float(inner.std()) * size
        if not 0 < scale < np.inf:
            scale = 1.0
        # Rare gaps are not marked: a feature that is 0 nearly everywhere takes the place of others
        # in a forest (penguins with 20 labels: 1.3 points).
        often = missing.any() and missing.mean() >= 0.01
        gap = 0.0 if not often else 0.5 if how != "none" else 1.0
        return cls(shift, scale, float(np.median(present)), how == "robust", gap)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the features add to the column's."""
        return ("", " is missing") if self.gap else ("",)

    def encode(self, values: FloatArray, out: NDArray[Any]) -> None:
        """Write the features of a column into `out`."""
        missing = np.isnan(values)
        z = np.where(missing, self.fill, values) if missing.any() else values
        # Halves, so that the range of floating point is never exceeded on the way.
        z = (0.5 * z - 0.5 * self.shift) / (0.5 * self.scale)
        far = np.flatnonzero(np.abs(z) > STRAIGHT) if self.bend else ()
        if len(far):
            beyond = np.minimum((np.abs(z[far]) - STRAIGHT) / STRAIGHT, 1e9)
            z[far] = np.copysign(STRAIGHT * (1.0 + beyond / np.sqrt(1.0 + beyond**2)), z[far])
        out[:, 0] = z
        if self.gap:
            out[:, 1] = self.gap * missing


@storable("category-encoding")
@dataclass(frozen=True)
class CategoryEncoding:
    """A category: one feature each, of the height that makes the column count as one.

    Parameters
    ----------
    categories : tuple of str
        The categories; the empty one stands for missing cells.
    height : float
        Value of the feature of the row's category. Two categories share one feature.
    """

    categories: tuple[str, ...]
    height: float

    def __post_init__(self) -> None:
        if not self.categories or len(set(self.categories)) != len(self.categories):
            raise ValueError("categories must be different, and there must be one")
        if not 0 < self.height < np.inf:
            raise ValueError(f"height={self.height} must be positive")

    @classmethod
    def fit(cls, categories: tuple[str, ...], counts: NDArray[Any], how: str) -> CategoryEncoding:
        """Learn from the categories and how often they occur."""
        if how in ("none", "minmax"):
            return cls(categories, 1.0)
        share = counts / counts.sum()
        spread = float(1.0 - (share**2).sum())  # total variance of the indicators
        # At most 2: a category that hardly any row has is not an outlier.
        return cls(categories, float(min(1.0 / np.sqrt(max(spread, 1e-12)), 2.0)))

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the features add to the column's."""
        names = list(map("={}".format, self.categories))
        if "" in self.categories:
            names[self.categories.index("")] = " is missing"
        return tuple(names[len(names) == 2 :])

    def encode(self, codes: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the features into `out`; a code of -1 has none of the categories."""
        if len(self.categories) == 2:
            # One feature for two: sqrt(2) apart, as the corners would be; unknown in the middle.
            level = np.array([0.0, np.sqrt(2.0), np.sqrt(0.5)]) * self.height
            out[:, 0] = level[codes]
            return
        out[:] = 0.0
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = self.height


@storable("date-encoding")
@dataclass(frozen=True)
class DateEncoding:
    """A moment: its place in time, and in the cycles that the column varies in.

    Parameters
    ----------
    time : NumberEncoding
        The place in time.
    cycles : tuple of str
        "year", "week", "day".
    """

    time: NumberEncoding
    cycles: tuple[str, ...]

    def __post_init__(self) -> None:
        if not set(self.cycles) <= CYCLES.keys():
            raise ValueError(f"cycles={self.cycles} are not known")

    @classmethod
    def fit(cls, seconds: FloatArray, how: str) -> DateEncoding:
        """Learn from seconds with gaps as NaN."""
        return cls(NumberEncoding.fit(seconds, how), find_cycles(seconds[~np.isnan(seconds)]))

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the features add to the column's."""
        circles = (f" {part} of {c}" for c in self.cycles for part in ("sine", "cosine"))
        return (*self.time.suffixes, *circles)

    def encode(self, seconds: FloatArray, out: NDArray[Any]) -> None:
        """Write the features of a column into `out`."""
        n = len(self.time.suffixes)
        self.time.encode(seconds, out[:, :n])
        known = ~np.isnan(seconds)
        out[:, n:] = 0.0
        for k, name in enumerate(self.cycles):
            out[known, n + 2 * k : n + 2 * k + 2] = cycle_points(seconds[known], name)
        out /= np.sqrt(1.0 + len(self.cycles))  # together they count as one column


Encoding = (
    NumberEncoding | CategoryEncoding | DateEncoding | TextEncoding
    | EmbeddingEncoding | PictureEncoding
)  # fmt: skip
