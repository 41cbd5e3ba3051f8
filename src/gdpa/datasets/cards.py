"""What a card of a data set says, and the fingerprints by which the set is recognised.

Three fingerprints identify a set. ``csv_sha256`` is that of the plain CSV file (header
f1..fD,label, one row per sample; of the unpacked text where it is compressed), so ``sha256sum`` can
check a cache by hand. ``content_sha256`` is that of the numbers themselves, whatever the text looks
like: a file parsed from its public source is accepted only if it gives exactly these numbers in
this order with these labels. ``rows_sha256`` is that of the samples in sorted order and tells "same
samples, other order" from "other data".
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Card", "Entry", "Source"]


@dataclass(frozen=True)
class Card:
    """What a reader should know about a data set.

    Parameters
    ----------
    name : str
        Name, as in the paper.
    source : str
        Where it comes from, in words.
    license : str
        Terms of the data.
    n_samples, n_features : int
        Shape.
    n_positive, n_negative : int
        Samples of class +1 and of class -1.
    classes : str
        What +1 and -1 stand for.
    urls : tuple of str
        Public addresses; empty where no download is needed.
    csv_sha256 : str
        SHA-256 of the plain CSV text.
    notes : str
        What is peculiar about it.
    """

    name: str
    source: str
    license: str
    n_samples: int
    n_features: int
    n_positive: int
    n_negative: int
    classes: str
    urls: tuple[str, ...]
    csv_sha256: str
    notes: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.n_samples, self.n_features


@dataclass(frozen=True)
class Source:
    """One public home: files that together give the set, and the format they are in.

    Where `members` names files, the one address is a zip archive and they lie in it, at any depth.
    """

    urls: tuple[str, ...]
    format: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """Card, homes in the order in which they are tried, and fingerprints."""

    card: Card
    sources: tuple[Source, ...]
    content_sha256: str
    rows_sha256: str
    compressed: bool = False
