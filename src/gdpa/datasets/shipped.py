"""Data sets that come with the package: small ones of UCI that are free to redistribute.

``paper-sets.zip`` has one CSV file per set in the layout of the cache, and ``TERMS.md`` with
creators, addresses and licence (CC BY 4.0). They are read from there and never written anywhere.
"""

from __future__ import annotations

import zipfile
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from .cache import parse_csv
from .cards import Entry

__all__ = ["SHIPPED", "read_shipped", "terms"]

SHIPPED = frozenset({
    "australian", "breast-cancer", "german", "haberman", "heart", "ILPD", "liver-disorders",
    "monk1", "planning", "voting", "sonar",
})  # fmt: skip


def _member(name: str) -> bytes:
    with (
        as_file(files("gdpa.datasets") / "paper-sets.zip") as path,
        zipfile.ZipFile(path) as zipped,
    ):
        return zipped.read(name)


def read_shipped(entry: Entry) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Read a shipped set and check it against its fingerprint."""
    name = f"{entry.card.name}.csv"
    return parse_csv(_member(name), f"paper-sets.zip/{name}", entry)


def terms() -> str:
    """Return creators, addresses and licence of the shipped sets."""
    return _member("TERMS.md").decode("utf-8")
