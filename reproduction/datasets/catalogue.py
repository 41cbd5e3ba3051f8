"""The cards of the data sets, read from ``catalogue.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from gdpa.errors import nearest_name


@dataclass(frozen=True)
class Source:
    """One public home: files that together give the set, and their format."""

    urls: tuple[str, ...]
    format: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known about a data set.

    Parameters
    ----------
    name : str
        Name, as in the paper.
    source, license : str
        Where it comes from, and the terms of the data.
    n_samples, n_features, n_positive : int
        Shape, and the number of samples of class +1.
    classes, notes : str
        What +1 and -1 stand for; peculiarities.
    csv_sha256, content_sha256 : str
        SHA-256 of the plain CSV text, and of the numbers.
    sources : tuple of Source
        Public homes in the order in which they are tried; empty if no download is needed.
    urls : tuple of str
        Public homes of a set that needs no download.
    shipped, compressed : bool
        Whether ``paper-sets.zip`` contains it, and whether its file in the cache is compressed.
    """

    name: str
    source: str
    license: str
    n_samples: int
    n_features: int
    n_positive: int
    classes: str
    csv_sha256: str
    content_sha256: str
    sources: tuple[Source, ...] = ()
    urls: tuple[str, ...] = ()
    notes: str = ""
    shipped: bool = False
    compressed: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.n_samples, self.n_features


def _read_catalogue() -> dict[str, Card]:
    text = (files(__package__) / "catalogue.toml").read_text(encoding="utf-8")
    cards = {}
    for name, entry in tomllib.loads(text).items():
        sources = tuple(Source(tuple(s["urls"]), s["format"]) for s in entry.pop("sources", ()))
        cards[name] = Card(name=name, sources=sources, **entry)
    return cards


CATALOGUE = _read_catalogue()
SHIPPED = frozenset(name for name, card in CATALOGUE.items() if card.shipped)


def list_datasets() -> list[str]:
    """Return the names of all data sets, in the order of the paper's table, cod-rna last."""
    return list(CATALOGUE)


def card(name: str) -> Card:
    """Return the card of a data set; case does not matter."""
    by_lower = {known.lower(): found for known, found in CATALOGUE.items()}
    if name.lower() not in by_lower:
        raise ValueError(f"there is no data set {name!r}; {nearest_name(name, list(CATALOGUE))}")
    return by_lower[name.lower()]
