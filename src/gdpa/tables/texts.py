"""Encode texts: principal components of the TF-IDF of character n-grams and words.

Character n-grams have 2 to 5 characters within a word and the spaces around it; single words and
pairs of words are counted. All are hashed, so no vocabulary is kept in memory. If A = U S V' is the
TF-IDF matrix of a sample, the components of a text a are a V S: directions shared by many texts
have larger weights. On two data sets of sentences with 5 and 20 labels per class, logistic
regression on 60 to 200 such components is 4.7 points more accurate than on A; the settings were
chosen on these data sets.

The nearest texts of a in the full vocabulary are found more reliably than among components: the
features of a are the sum of its own components and of those of the texts two steps away,

    z(a) = c(a) + sum_j P_j(a) m_j,   m_j = sum_i P_i(a_j) c(a_i) / |c(a_i)|,

where P_j is proportional to the cosine similarity to the sampled text a_j, for the 30 nearest texts
that differ from a, and both terms have the same variance. The same holds for texts that are encoded
later, so nothing else needs to know the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..codec import check_numbers, storable

BUCKETS = 2**18  # hash buckets: the first half for characters, the second for words
VOCABULARY = 2**15  # maximal number of buckets in use
TEXT_BLOCK = 500  # texts encoded at a time
# Nearest texts; share of the texts above which an n-gram says nothing about similarity; limit on
# the n-grams of the texts that are searched, for time and the size of stored models. Chosen on TREC
# and Subj with 5 and 20 labels per class.
NEAREST = 30
COMMON = 0.2
MOST_ENTRIES = 2**20


def _count_ngrams(texts: Sequence[str]) -> sp.csr_array:
    """Count the n-grams of each text by bucket, in its first 2,000 characters."""
    from sklearn.feature_extraction.text import HashingVectorizer  # takes a second to load

    shared: dict[str, Any] = {"n_features": BUCKETS // 2, "alternate_sign": False, "norm": None}
    shared |= {"dtype": np.float32, "token_pattern": r"\b\w+\b"}
    counters = (
        HashingVectorizer(analyzer="char_wb", ngram_range=(2, 5), **shared),
        HashingVectorizer(analyzer="word", ngram_range=(1, 2), **shared),
    )
    cut = [text[:2000].encode("utf-8", "replace").decode() for text in texts]
    return sp.csr_array(sp.hstack([counter.transform(cut) for counter in counters]))


def _weigh(
    counts: sp.csr_array, buckets: NDArray[np.int32], rarity: NDArray[np.float32]
) -> sp.csr_array:
    """Return log counts times rarity; characters and words of a text are normalised separately."""
    A = counts[:, buckets]
    A.data = (1.0 + np.log(A.data)).astype(np.float32)
    A.data *= rarity[A.indices]
    group = 2 * np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    group += buckets[A.indices] >= BUCKETS // 2
    norms = np.sqrt(np.bincount(group, A.data**2, minlength=2 * A.shape[0]))
    A.data /= norms[group].astype(np.float32)
    return A


def _deviation(Z: NDArray[Any], weight: NDArray[Any]) -> float:
    """Return the root of the total variance of columns of mean 0; 1 if it is but rounding."""
    total = float(np.sqrt(weight @ (Z**2).sum(axis=1)))
    return total if total > 1e-6 else 1.0


def _nearest(A: sp.csr_array, anchors: sp.csr_array) -> sp.csr_array:
    """Return the weights of the most similar anchors of each text, without those equal to it."""
    count = min(NEAREST, -(-anchors.shape[0] // 10))
    # Common n-grams have no entries in the anchors, so they do not count in the length either.
    compared = np.bincount(anchors.indices, minlength=A.shape[1]) > 0
    length = np.sqrt(A.multiply(A) @ compared.astype(np.float32))
    similar = (A @ anchors.T).toarray() / np.where(length > 0, length, 1.0)[:, None]
    similar[similar > 1.0 - 1e-4] = 0.0
    near = np.argpartition(similar, -count, axis=1)[:, -count:]
    weights = np.take_along_axis(similar, near, axis=1)
    total = weights.sum(axis=1, keepdims=True)
    weights /= np.where(total > 0, total, 1.0)
    ends = np.arange(0, near.size + 1, count)
    return sp.csr_array((weights.ravel(), near.ravel(), ends), (A.shape[0], anchors.shape[0]))


@storable("text-encoding")
@dataclass(frozen=True)
class TextEncoding:
    """Encode texts by the principal components of their n-grams and words.

    Parameters
    ----------
    buckets : ndarray of int
        Buckets in use.
    rarity : ndarray of float32
        Inverse document frequencies of the buckets.
    directions : ndarray of float32 of shape (n_buckets, n_features)
        Principal directions.
    shift : ndarray
        Mean of the features.
    scale : float
        Divisor that gives the column unit total variance.
    anchors : csr_array of shape (n_anchors, n_buckets)
        TF-IDF of the sampled texts that similar texts are searched in, without common n-grams.
    means : ndarray of float32 of shape (n_anchors, n_features)
        What each of them adds to the features of similar texts.
    """

    buckets: NDArray[np.int32]
    rarity: NDArray[np.float32]
    directions: NDArray[np.float32]
    shift: NDArray[np.float32]
    scale: float
    anchors: sp.csr_array
    means: NDArray[np.float32]

    def __post_init__(self) -> None:
        check_numbers("buckets", self.buckets, (None,), at_least=0, at_most=BUCKETS - 1)
        check_numbers("rarity", self.rarity, self.buckets.shape)
        check_numbers("shift", self.shift, (None,))
        check_numbers("directions", self.directions, (self.buckets.size, self.shift.size))
        check_numbers("means", self.means, (None, self.shift.size))
        check_numbers("anchors", self.anchors.data, (None,), at_least=0, at_most=1.0 + 1e-3)
        if self.anchors.shape != (len(self.means), self.buckets.size) or not len(self.means):
            raise ValueError(f"the anchors have the shape {self.anchors.shape}")
        if not (np.diff(self.buckets) > 0).all() or not 0 < self.scale < np.inf:
            raise ValueError(f"buckets must be in order, scale={self.scale} positive")

    @classmethod
    def fit(
        cls, texts: Sequence[str], counts: NDArray[Any], n_features: int, random_state: int
    ) -> TextEncoding:
        """Fit to the distinct texts and their counts."""
        from sklearn.preprocessing import normalize  # takes a second to load

        rng = np.random.default_rng(random_state)
        chosen = np.arange(len(texts))
        if chosen.size > 4000:
            chosen = np.sort(rng.choice(chosen.size, 4000, replace=False))
        sample = [texts[c] for c in chosen.tolist()]
        raw = _count_ngrams(sample)
        present = np.bincount(raw.indices, minlength=BUCKETS)
        least = 2 if chosen.size >= 20 else 1  # n-grams of a single text carry no similarity
        common = np.argsort(-present, kind="stable")[:VOCABULARY].astype(np.int32)
        often = common[present[common] >= least]
        buckets = np.sort(often if often.size else common[present[common] > 0])
        rarity = (np.log((1.0 + chosen.size) / (1.0 + present[buckets])) + 1.0).astype(np.float32)
        A = _weigh(raw, buckets, rarity)
        times = np.sqrt(counts[chosen].astype(np.float64) / counts[chosen].mean())
        k = min(n_features, min(A.shape) - 1)
        if k < 1:
            directions = np.ones((buckets.size, 1), dtype=np.float32)
        else:
            from scipy.fft import dct
            from sklearn.utils.extmath import randomized_svd  # takes a second to load

            B = A.multiply(times[:, None]).tocsr()
            _, S, V = randomized_svd(B, k, n_iter=2, n_oversamples=10, random_state=random_state)
            # The first direction is that of the mean, so its weight is limited to the second. The
            # rotation gives all features about the same variance.
            V = dct((np.minimum(S, S[min(k - 1, 1)])[:, None] * V), axis=0, norm="ortho")
            directions = np.ascontiguousarray(V.T, dtype=np.float32)
        rare = A.multiply(present[buckets] <= max(COMMON * chosen.size, 2.0)).tocsr()
        rare.eliminate_zeros()
        most = MOST_ENTRIES if len(texts) <= 200_000 else MOST_ENTRIES // 4  # saves time
        some = slice(None, None, max(1, -(-rare.nnz // most)))
        anchors = sp.csr_array(normalize(rare[some]))
        weight = counts[chosen] / counts[chosen].sum()
        Z = (A @ directions).astype(np.float64)
        shift = weight @ Z
        scale = _deviation(Z - shift, weight)
        starts = range(0, chosen.size, TEXT_BLOCK)
        P = sp.csr_array(sp.vstack([_nearest(A[i : i + TEXT_BLOCK], anchors) for i in starts]))
        means = P[some] @ normalize(Z - shift)[some]
        means -= weight @ (P @ means)
        means /= _deviation(P @ means, weight)
        total = _deviation((Z - shift) / scale + P @ means, weight)
        means = (means / total).astype(np.float32)
        shift = shift.astype(np.float32)
        return cls(buckets, rarity, directions, shift, scale * total, anchors, means)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the feature names."""
        return tuple(f" text {k + 1}" for k in range(self.shift.size))

    def encode(self, texts: Sequence[str], codes: NDArray[Any], out: NDArray[Any]) -> None:
        """Write features into `out`; missing texts get the mean, zero."""
        codes = codes.astype(np.int32, copy=False)
        # Rows sorted by text, so that texts are encoded block by block.
        rows = np.argsort(codes, kind="stable").astype(np.int32)
        ends = np.cumsum(np.bincount(codes // TEXT_BLOCK + 1, minlength=2)).tolist()
        out[rows[: ends[0]]] = 0.0
        for number, (first, end) in enumerate(pairwise(ends)):
            if first == end:
                continue
            start = number * TEXT_BLOCK
            some = texts[start : start + TEXT_BLOCK]
            A = _weigh(_count_ngrams(some), self.buckets, self.rarity)
            Z = (A @ self.directions - self.shift) / np.float32(self.scale)
            Z += _nearest(A, self.anchors) @ self.means
            for place in range(first, end, TEXT_BLOCK):
                part = rows[place : min(place + TEXT_BLOCK, end)]
                out[part] = Z[codes[part] - start]
