"""How one column becomes features: one small record per kind of column.

Every record is plain data (numbers, texts, arrays), so that a model file can hold it without
pickle. The scale is common: over the rows, a column's features have a total variance of about one,
so that in distances one column counts as one column, however many features it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dates import cycle_points, find_cycles
from .ngrams import TextDirections

__all__ = ["CategoryCode", "Code", "DateCode", "NumberCode", "TextCode", "scale_of"]

FloatArray = NDArray[np.float64]
TAIL = 10.0  # quartile distances from the quartiles beyond which values do not set the scale
# These numbers were chosen on 30 mixed tables of R's collections and twelve of KEEL's (5 and 20
# labels a class; logistic regression, nearest neighbours). Fences at 3 lose where a tail is a
# class; a bend that begins at once loses where a line separates finely; categories of height 1
# lose one point against heights by variance.
STRAIGHT = 3.0  # standardised values beyond this are bent towards twice this
BLOCK = 20_000  # texts whose features are made at a time
TALLEST = 2.0  # a category that hardly anyone has is not an outlier
# Below this share of a column gaps are filled and not marked: a feature that is 0 nearly everywhere
# takes the place of others in a forest (penguins with 20 labels: 1.3 points).
RARE_GAPS = 0.01
GAP = 0.5  # height of "this cell was missing" beside a filled number; 0 to 1 do equally well


def scale_of(values: FloatArray, how: str) -> tuple[float, float]:
    """What to subtract from and divide by, for numbers that are present.

    Parameters
    ----------
    values : ndarray
        Numbers without gaps.
    how : {"robust", "standard", "minmax", "none"}
        "robust": the mean and deviation of the values, those farther than ten
        quartile distances from the quartiles put there.

    Returns
    -------
    shift, scale : float
        Both finite, the scale positive.
    """
    if how == "none" or values.size == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if how == "minmax":
        return low, high - low if high > low else 1.0
    size = max(abs(low), abs(high)) or 1.0
    values = values / size  # squares of 1e200 are beyond floating point
    if how == "robust" and values.size >= 8:
        first, third = np.quantile(values, [0.25, 0.75])
        if third > first:
            reach = TAIL * (third - first)
            values = np.clip(values, first - reach, third + reach)
    shift, scale = float(values.mean()) * size, float(values.std()) * size
    return shift, scale if scale > 0 and np.isfinite(scale) else 1.0


def bend(values: FloatArray) -> FloatArray:
    """Leave values up to `STRAIGHT` as they are and let larger ones approach twice that."""
    size = np.abs(values)
    far = size > STRAIGHT
    if not far.any():
        return values
    beyond = np.minimum((size[far] - STRAIGHT) / STRAIGHT, 1e9)
    bent = values.copy()
    bent[far] = np.copysign(STRAIGHT * (1.0 + beyond / np.sqrt(1.0 + beyond**2)), values[far])
    return bent


@dataclass(frozen=True)
class NumberCode:
    """A number, or a rank: standardised; a gap is filled, and said by one more feature.

    Parameters
    ----------
    shift, scale : float
        What is subtracted and divided by.
    fill : float
        What a gap is filled with: the median.
    bend : bool
        Whether outliers are bent towards the others.
    gap : float
        Height of the indicator of a gap; 0 for none (no gaps, or fewer than one in a hundred).
    """

    shift: float
    scale: float
    fill: float
    bend: bool = False
    gap: float = 0.0

    @classmethod
    def fit(cls, values: FloatArray, how: str) -> NumberCode:
        """Learn from a column with gaps as NaN."""
        missing = np.isnan(values)
        present = values[~missing] if missing.any() else values
        shift, scale = scale_of(present, how)
        often = missing.any() and missing.mean() >= RARE_GAPS
        gap = 0.0 if not often else GAP if how != "none" else 1.0
        return cls(shift, scale, float(np.median(present)), how == "robust", gap)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the features add to the column's."""
        return ("", " is missing") if self.gap else ("",)

    def write(self, values: FloatArray, out: NDArray[Any]) -> None:
        """Write the features of a column."""
        missing = np.isnan(values)
        z = np.where(missing, self.fill, values) if missing.any() else values
        # Halves, so that the range of floating point is never exceeded on the way.
        z = (0.5 * z - 0.5 * self.shift) / (0.5 * self.scale)
        out[:, 0] = bend(z) if self.bend else z
        if self.gap:
            out[:, 1] = self.gap * missing


@dataclass(frozen=True)
class CategoryCode:
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

    @classmethod
    def fit(cls, categories: tuple[str, ...], counts: NDArray[Any], how: str) -> CategoryCode:
        """Learn from the categories and how often they occur."""
        if how in ("none", "minmax"):
            return cls(categories, 1.0)
        share = counts / counts.sum()
        spread = float(1.0 - (share**2).sum())  # total variance of the indicators
        return cls(categories, float(min(1.0 / np.sqrt(max(spread, 1e-12)), TALLEST)))

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the features add to the column's."""
        names = tuple(f"={c}" if c else " is missing" for c in self.categories)
        return names[1:] if len(names) == 2 else names

    def write(self, codes: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the features; a code of -1 has none of the categories."""
        if len(self.categories) == 2:
            # One feature for two: sqrt(2) apart, as the corners would be; unknown in the middle.
            level = np.array([0.0, np.sqrt(2.0), np.sqrt(0.5)]) * self.height
            out[:, 0] = level[codes]
            return
        out[:] = 0.0
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = self.height


@dataclass(frozen=True)
class DateCode:
    """A moment: its place in time and in the cycles it goes through.

    Parameters
    ----------
    time : NumberCode
        The place in time.
    cycles : tuple of str
        "year", "week", "day".
    """

    time: NumberCode
    cycles: tuple[str, ...]

    @classmethod
    def fit(cls, seconds: FloatArray, how: str) -> DateCode:
        """Learn from seconds with gaps as NaN."""
        return cls(NumberCode.fit(seconds, how), find_cycles(seconds[~np.isnan(seconds)]))

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the features add to the column's."""
        circles = (f" {part} of {c}" for c in self.cycles for part in ("sine", "cosine"))
        return (*self.time.suffixes, *circles)

    def write(self, seconds: FloatArray, out: NDArray[Any]) -> None:
        """Write the features of a column."""
        n = len(self.time.suffixes)
        self.time.write(seconds, out[:, :n])
        known = ~np.isnan(seconds)
        out[:, n:] = 0.0
        for k, name in enumerate(self.cycles):
            out[known, n + 2 * k : n + 2 * k + 2] = cycle_points(seconds[known], name)
        out /= np.sqrt(1.0 + len(self.cycles))  # together they count as one column


@dataclass(frozen=True)
class TextCode:
    """Texts: places along the main directions of their character n-grams.

    Parameters
    ----------
    directions : TextDirections
        The directions.
    shift : ndarray
        Mean place.
    scale : float
        Divisor that makes the column count as one.
    """

    directions: TextDirections
    shift: NDArray[np.float32]
    scale: float

    @classmethod
    def fit(
        cls, texts: Sequence[str], counts: NDArray[Any], n_features: int, random_state: int
    ) -> TextCode:
        """Learn from the different texts and how often they occur."""
        directions = TextDirections.fit(texts, counts, n_features, random_state)
        step = max(1, len(texts) // 5_000)
        Z = directions.transform(texts[::step]).astype(np.float64)
        weight = counts[::step] / counts[::step].sum()
        shift = (weight @ Z).astype(np.float32)
        total = float(weight @ ((Z - shift) ** 2).sum(axis=1))
        return cls(directions, shift, float(np.sqrt(total)) if total > 0 else 1.0)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the features add to the column's."""
        return tuple(f" text {k + 1}" for k in range(self.shift.size))

    def write(self, texts: Sequence[str], codes: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the features; missing texts are in the middle."""
        if len(texts) <= BLOCK:
            Z = self._places(texts)
            Z = np.vstack([Z, np.zeros((1, Z.shape[1]), Z.dtype)])
            for start in range(0, codes.size, BLOCK):
                out[start : start + BLOCK] = Z[codes[start : start + BLOCK]]
            return
        # Rows in the order of their texts: these are packed, and cheap to read in order only.
        rows = np.argsort(codes, kind="stable").astype(np.int32)
        ends = np.cumsum(np.bincount(codes // BLOCK + 1, minlength=2)).tolist()
        out[rows[: ends[0]]] = 0.0
        for number, (first, end) in enumerate(pairwise(ends)):
            start = number * BLOCK
            Z = self._places(texts[start : start + BLOCK])
            for place in range(first, end, BLOCK):
                some = rows[place : min(place + BLOCK, end)]
                out[some] = Z[codes[some] - start]

    def _places(self, texts: Sequence[str]) -> NDArray[np.float32]:
        Z = self.directions.transform(texts) - self.shift
        Z /= np.float32(self.scale)
        return Z


Code = NumberCode | CategoryCode | DateCode | TextCode
