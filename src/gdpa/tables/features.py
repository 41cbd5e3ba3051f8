"""Encodings of columns as features: one frozen dataclass per kind of column.

The features of each column have a total variance of about one, so that all columns contribute
equally to distances, however many features they have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from ..codec import storable
from .cell_formats import CYCLES, cycle_points, find_cycles
from .embedding import EmbeddingEncoding
from .pictures import PictureEncoding
from .texts import TextEncoding

# Chosen on 30 mixed tables from R packages and twelve from KEEL, with 5 and 20 labels per class,
# logistic regression and nearest neighbours.
STRAIGHT = 3.0  # larger standardised values are compressed to at most twice this


@storable("number-encoding")
@dataclass(frozen=True)
class NumberEncoding:
    """Standardise a number or rank; missing values are imputed and may get an indicator.

    Parameters
    ----------
    shift, scale : float
        Offset and divisor.
    fill : float
        Imputed value: the median.
    bend : bool
        Whether outliers are compressed.
    gap : float
        Value of the missing indicator; 0 for no indicator (fewer than 1 % of the values missing).
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
        """Fit to a column with NaN for missing values."""
        missing = np.isnan(values)
        present = values[~missing] if missing.any() else values
        low = float(present.min())
        high = float(present.max())
        shift, scale = (low, high - low) if how == "minmax" else (0.0, 1.0)
        if how in ("robust", "standard"):
            size = max(abs(low), abs(high)) or 1.0
            inner = present / size  # avoids overflow of squares
            first, third = np.quantile(inner, [0.25, 0.75])
            if how == "robust" and inner.size >= 8 and third > first:
                reach = 10.0 * (third - first)  # values beyond these fences do not set the scale
                inner = np.clip(inner, first - reach, third + reach)
            shift = float(inner.mean()) * size
            scale = float(inner.std()) * size
        if not 0 < scale < np.inf:
            scale = 1.0
        # No indicator for rare gaps: a nearly constant feature displaces others in a forest
        # (1.3 points on penguins with 20 labels).
        often = missing.any() and missing.mean() >= 0.01
        gap = 0.0 if not often else 0.5 if how != "none" else 1.0
        return cls(shift, scale, float(np.median(present)), how == "robust", gap)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the feature names."""
        return ("", " is missing") if self.gap else ("",)

    def encode(self, values: FloatArray, out: NDArray[Any]) -> None:
        """Write the features of a column into `out`."""
        missing = np.isnan(values)
        z = np.where(missing, self.fill, values) if missing.any() else values
        # Halves avoid overflow.
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
    """One-hot encode a category, scaled to unit total variance.

    Parameters
    ----------
    categories : tuple of str
        The categories; the empty text stands for missing cells.
    height : float
        Value of the indicator of a category. Two categories share one feature.
    rest : bool, default=False
        Whether all other values, also those of new rows, share one more indicator.
    """

    categories: tuple[str, ...]
    height: float
    rest: bool = False

    def __post_init__(self) -> None:
        if not self.categories or len(set(self.categories)) != len(self.categories):
            raise ValueError("categories must be distinct and not empty")
        if not 0 < self.height < np.inf:
            raise ValueError(f"height={self.height} must be positive")

    @classmethod
    def fit(
        cls, categories: tuple[str, ...], counts: NDArray[Any], how: str, others: int = 0
    ) -> CategoryEncoding:
        """Fit to the categories and their counts; `others` cells have another value."""
        if how in ("none", "minmax"):
            return cls(categories, 1.0, others > 0)
        share = np.append(counts, others) / (counts.sum() + others)
        spread = float(1.0 - (share**2).sum())  # total variance of the indicators
        # At most 2, so that rare categories do not become outliers.
        return cls(categories, float(min(1.0 / np.sqrt(max(spread, 1e-12)), 2.0)), others > 0)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the feature names."""
        names = list(map("={}".format, self.categories))
        if "" in self.categories:
            names[self.categories.index("")] = " is missing"
        if self.rest:
            return (*names, " is another value")
        return tuple(names[len(names) == 2 :])

    def encode(self, codes: NDArray[Any], out: NDArray[Any]) -> None:
        """Write features into `out`; the code -1 stands for an unknown category."""
        if self.rest:
            codes = np.where(codes < 0, len(self.categories), codes)
        elif len(self.categories) == 2:
            # One feature with the distance of two indicators, sqrt(2); unknown in the middle.
            level = np.array([0.0, np.sqrt(2.0), np.sqrt(0.5)]) * self.height
            out[:, 0] = level[codes]
            return
        out[:] = 0.0
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = self.height


@storable("date-encoding")
@dataclass(frozen=True)
class DateEncoding:
    """Encode a datetime by its time and its position in cycles.

    Parameters
    ----------
    time : NumberEncoding
        Encoding of the time.
    cycles : tuple of str
        "year", "week", "day".
    """

    time: NumberEncoding
    cycles: tuple[str, ...]

    def __post_init__(self) -> None:
        if not set(self.cycles) <= CYCLES.keys():
            raise ValueError(f"cycles={self.cycles}; accepted: {', '.join(CYCLES)}")

    @classmethod
    def fit(cls, seconds: FloatArray, how: str) -> DateEncoding:
        """Fit to seconds with NaN for missing values."""
        return cls(NumberEncoding.fit(seconds, how), find_cycles(seconds[~np.isnan(seconds)]))

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the feature names."""
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
        out /= np.sqrt(1.0 + len(self.cycles))  # unit total variance


Encoding = (
    NumberEncoding
    | CategoryEncoding
    | DateEncoding
    | TextEncoding
    | EmbeddingEncoding
    | PictureEncoding
)
