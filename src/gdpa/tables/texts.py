"""Texts as points: hashed character n-grams, weighted by rarity, in a few principal directions.

Texts that share pieces of words come close to each other, whatever their spelling; long texts also
count their words. The n-grams of all texts are hashed at once by arithmetic on an array of their
characters; the directions are those of a truncated SVD of a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..codec import check_numbers, storable

BUCKETS = 2**15
TEXT_BLOCK = 20_000  # texts whose features are computed at a time


def _blocks(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ranges of texts with about 65,536 characters each; 2,000 of a text count."""
    start = size = 0
    for i, text in enumerate(texts):
        size += min(len(text), 2000) + 2
        if size > 2**16:
            yield start, i + 1
            start, size = i + 1, 0
    if start < len(texts):
        yield start, len(texts)


def _count_ngrams(texts: Sequence[str]) -> sp.csr_array:
    """How often each bucket's n-grams occur in each text."""
    padded = [" " + " ".join(text[:2000].lower().split()) + " " for text in texts]
    lengths = np.array([len(text) for text in padded])
    chars = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    owner = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)
    space, multiplier = chars == 32, np.uint64(0x9E3779B97F4A7C15)
    rows, columns = [], []
    for size in (3, 4):
        if chars.size < size:
            continue
        count = chars.size - size + 1
        code = np.zeros(count, dtype=np.uint64)
        # An n-gram stays within its text, and has a space at its ends only.
        inside = owner[:count] == owner[size - 1 :]
        for k in range(size):
            part = slice(k, k + count)
            code = (code + chars[part].astype(np.uint64) + np.uint64(1)) * multiplier
            code ^= code >> np.uint64(29)
            if 0 < k < size - 1:
                inside &= ~space[part]
        rows.append(owner[:count][inside])
        columns.append((code[inside] >> np.uint64(20)).astype(np.int64) & (BUCKETS - 1))
    if not rows:
        return sp.csr_array((len(texts), BUCKETS))
    i, j = np.concatenate(rows), np.concatenate(columns).astype(np.int32)
    counts = sp.coo_array((np.ones(i.size, dtype=np.float32), (i, j)), (len(texts), BUCKETS))
    return counts.tocsr()


def _weigh(
    counts: sp.csr_array, buckets: NDArray[np.int32], rarity: NDArray[np.float32]
) -> sp.csr_array:
    """Logarithmic counts times rarity, every text brought to length one."""
    A = counts[:, buckets]
    A.data = (1.0 + np.log(A.data)).astype(np.float32)
    A.data *= rarity[A.indices]
    norms = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
    norms[norms == 0] = 1.0
    A.data /= np.repeat(norms, np.diff(A.indptr)).astype(np.float32)
    return A


@storable("text-encoding")
@dataclass(frozen=True)
class TextEncoding:
    """Texts: places along the main directions of their character n-grams.

    Parameters
    ----------
    buckets : ndarray of int
        Buckets of n-grams that are used.
    rarity : ndarray of float32
        Their weights: the logarithm of how few texts have them.
    directions : ndarray of float32 of shape (n_buckets, n_features)
        The directions.
    shift : ndarray
        Mean place.
    scale : float
        Divisor that makes the column count as one.
    """

    buckets: NDArray[np.int32]
    rarity: NDArray[np.float32]
    directions: NDArray[np.float32]
    shift: NDArray[np.float32]
    scale: float

    def __post_init__(self) -> None:
        check_numbers("buckets", self.buckets, (None,), at_least=0, at_most=BUCKETS - 1)
        check_numbers("rarity", self.rarity, self.buckets.shape)
        check_numbers("shift", self.shift, (None,))
        check_numbers("directions", self.directions, (self.buckets.size, self.shift.size))
        if not (np.diff(self.buckets) > 0).all() or not 0 < self.scale < np.inf:
            raise ValueError(f"buckets must be in order, scale={self.scale} positive")

    @classmethod
    def fit(
        cls, texts: Sequence[str], counts: NDArray[Any], n_features: int, random_state: int
    ) -> TextEncoding:
        """Learn from the different texts and how often they occur."""
        rng = np.random.default_rng(random_state)
        chosen = np.arange(len(texts))
        if chosen.size > 4000:
            chosen = np.sort(rng.choice(chosen.size, 4000, replace=False))
        sample = [texts[c] for c in chosen.tolist()]
        raw = sp.vstack([_count_ngrams(sample[a:b]) for a, b in _blocks(sample)]).tocsr()
        present = np.bincount(raw.indices, minlength=BUCKETS)
        least = 2 if chosen.size >= 20 else 1  # what one text alone has brings it near to none
        buckets = np.flatnonzero(present >= least).astype(np.int32)
        if buckets.size == 0:
            buckets = np.flatnonzero(present).astype(np.int32)
        rarity = (np.log((1.0 + chosen.size) / (1.0 + present[buckets])) + 1.0).astype(np.float32)
        A = _weigh(raw, buckets, rarity)
        times = np.sqrt(counts[chosen].astype(np.float64) / counts[chosen].mean())
        A = A.multiply(times[:, None]).tocsr() if np.ptp(times) > 0 else A
        k = min(n_features, min(A.shape) - 1)
        if k < 1:
            directions = np.ones((buckets.size, 1), dtype=np.float32)
        else:
            from sklearn.utils.extmath import randomized_svd  # takes a second to load

            _, _, V = randomized_svd(A, k, n_iter=2, n_oversamples=10, random_state=random_state)
            directions = np.ascontiguousarray(V.T, dtype=np.float32)
        step = max(1, len(texts) // 5_000)
        Z = _places(texts[::step], buckets, rarity, directions).astype(np.float64)
        weight = counts[::step] / counts[::step].sum()
        shift = (weight @ Z).astype(np.float32)
        total = float(weight @ ((Z - shift) ** 2).sum(axis=1))
        scale = float(np.sqrt(total)) if total > 0 else 1.0
        return cls(buckets, rarity, directions, shift, scale)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the features add to the column's."""
        return tuple(f" text {k + 1}" for k in range(self.shift.size))

    def encode(self, texts: Sequence[str], codes: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the features into `out`; missing texts are in the middle."""
        codes = codes.astype(np.int32, copy=False)
        # Rows in the order of their texts, so that these are read block by block.
        rows = np.argsort(codes, kind="stable").astype(np.int32)
        ends = np.cumsum(np.bincount(codes // TEXT_BLOCK + 1, minlength=2)).tolist()
        out[rows[: ends[0]]] = 0.0
        for number, (first, end) in enumerate(pairwise(ends)):
            start = number * TEXT_BLOCK
            some = texts[start : start + TEXT_BLOCK]
            Z = _places(some, self.buckets, self.rarity, self.directions) - self.shift
            Z /= np.float32(self.scale)
            for place in range(first, end, TEXT_BLOCK):
                part = rows[place : min(place + TEXT_BLOCK, end)]
                out[part] = Z[codes[part] - start]


def _places(
    texts: Sequence[str],
    buckets: NDArray[np.int32],
    rarity: NDArray[np.float32],
    directions: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Places of texts along the directions."""
    parts = [
        np.asarray(_weigh(_count_ngrams(texts[a:b]), buckets, rarity) @ directions)
        for a, b in _blocks(texts)
    ]
    return np.concatenate([np.empty((0, directions.shape[1]), dtype=np.float32), *parts])
