"""Texts as points: TF-IDF of character n-grams and words, in its main directions.

Character n-grams have 2 to 5 characters within a word and the blanks around it; words also count in
pairs. All are hashed by arithmetic on an array of the characters, so a million texts need no
vocabulary in memory. With A = U S V' the TF-IDF matrix of a sample, a text a is placed at a V S:
the directions that many texts share count more. On two sets of sentences with 5 and 20 labels a
class, logistic regression on 60 to 200 such directions is 4.7 points more accurate than on A.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.fft import dct

from ..codec import check_numbers, storable

__all__ = ["TextEncoding"]

BUCKETS = 2**18  # of hashed n-grams: the first half for characters, the second for words
VOCABULARY = 2**15  # most buckets that are used
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
    chars = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    owner = np.repeat(np.arange(len(texts), dtype=np.int32), list(map(len, padded)))
    space, half = chars == 32, BUCKETS // 2
    rows, columns = [], []
    for size in (2, 3, 4, 5):
        count = max(chars.size - size + 1, 0)
        codes = np.zeros(count, dtype=np.uint64)
        # An n-gram stays within its text, and has a space at its ends only.
        inside = owner[:count] == owner[size - 1 :]
        for k in range(size):
            part = slice(k, k + count)
            codes = _scramble(codes + chars[part].astype(np.uint64) + np.uint64(1))
            if 0 < k < size - 1:
                inside &= ~space[part]
        rows.append(owner[:count][inside])
        columns.append((codes[inside] >> np.uint64(20)).astype(np.int32) & (half - 1))
    codes, owner = _hash_words(chars, owner)
    pairs = owner[1:] == owner[:-1]
    for n_words in (codes, _scramble(codes[:-1])[pairs] + codes[1:][pairs]):
        rows.append(owner if n_words is codes else owner[1:][pairs])
        columns.append((_scramble(n_words) >> np.uint64(20)).astype(np.int32) & (half - 1) | half)
    i, j = np.concatenate(rows), np.concatenate(columns)
    counts = sp.coo_array((np.ones(i.size, dtype=np.float32), (i, j)), (len(texts), BUCKETS))
    return counts.tocsr()


def _scramble(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    codes = codes * np.uint64(0x9E3779B97F4A7C15)
    return codes ^ (codes >> np.uint64(29))


def _hash_words(
    chars: NDArray[np.uint32], owner: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Hashes of the words, which are runs of letters and digits, and the text that each is in."""
    kinds, kind = np.unique(chars, return_inverse=True)
    letter = np.array([chr(c).isalnum() for c in kinds.tolist()], dtype=bool)[kind]
    first = letter.copy()
    first[1:] &= ~letter[:-1]
    starts = np.flatnonzero(first)
    if starts.size == 0:
        return np.empty(0, dtype=np.uint64), owner[:0]
    place = np.flatnonzero(letter)
    place -= starts[np.cumsum(first)[letter] - 1]
    powers = np.cumprod(np.full(int(place.max()) + 1, 0x100000001B3, dtype=np.uint64))
    terms = (chars[letter].astype(np.uint64) + np.uint64(1)) * powers[place]
    return np.add.reduceat(terms, np.flatnonzero(first[letter])), owner[starts]


def _weigh(
    counts: sp.csr_array, buckets: NDArray[np.int32], rarity: NDArray[np.float32]
) -> sp.csr_array:
    """Logarithmic counts times rarity; of every text characters and words have length one each."""
    A = counts[:, buckets]
    A.data = (1.0 + np.log(A.data)).astype(np.float32)
    A.data *= rarity[A.indices]
    group = 2 * np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    group += buckets[A.indices] >= BUCKETS // 2
    norms = np.sqrt(np.bincount(group, A.data**2, minlength=2 * A.shape[0]))
    A.data /= norms[group].astype(np.float32)
    return A


@storable("text-encoding")
@dataclass(frozen=True)
class TextEncoding:
    """Texts: places along the main directions of their n-grams and words.

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
        buckets = np.argsort(-present, kind="stable")[:VOCABULARY]
        common = buckets[present[buckets] >= least]
        buckets = np.sort(common if common.size else buckets[present[buckets] > 0]).astype(np.int32)
        rarity = (np.log((1.0 + chosen.size) / (1.0 + present[buckets])) + 1.0).astype(np.float32)
        A = _weigh(raw, buckets, rarity)
        times = np.sqrt(counts[chosen].astype(np.float64) / counts[chosen].mean())
        A = A.multiply(times[:, None]).tocsr() if np.ptp(times) > 0 else A
        k = min(n_features, min(A.shape) - 1)
        if k < 1:
            directions = np.ones((buckets.size, 1), dtype=np.float32)
        else:
            from sklearn.utils.extmath import randomized_svd  # takes a second to load

            _, S, V = randomized_svd(A, k, n_iter=2, n_oversamples=10, random_state=random_state)
            # The first direction is that of the mean: it counts no more than the second. Rotated,
            # all features have about the same variance: to standardise them changes nothing.
            V = dct((np.minimum(S, S[min(k - 1, 1)])[:, None] * V), axis=0, norm="ortho")
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
