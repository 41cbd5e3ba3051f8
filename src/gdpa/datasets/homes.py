"""The public homes of the data sets: addresses and terms of UCI, LIBSVM and OpenML."""

from __future__ import annotations

from .cards import Card, Entry, Source

__all__ = [
    "LIBSVM_TERMS",
    "describe",
    "from_libsvm",
    "from_openml",
    "from_uci",
    "from_uci_archive",
]

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
UCI_ARCHIVE = "https://archive.ics.uci.edu/static/public/"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
OPENML = "https://api.openml.org/data/download/"
UCI_TERMS = "CC BY 4.0 (UCI machine learning repository)"
LIBSVM_TERMS = "terms of the original source; LIBSVM data page asks to cite both"


def describe(
    name: str,
    shape: tuple[int, int],
    counts: tuple[int, int],
    classes: str,
    sources: list[Source],
    sha256: tuple[str, str, str],
    *,
    source: str,
    license: str = UCI_TERMS,
    notes: str = "",
    compressed: bool = False,
) -> Entry:
    """Put an entry together: card, homes and fingerprints (of the CSV, the numbers, the rows)."""
    urls = tuple(url for home in sources for url in home.urls)
    return Entry(
        Card(name, source, license, *shape, *counts, classes, urls, sha256[0], notes),
        tuple(sources),
        sha256[1],
        sha256[2],
        compressed,
    )


def from_uci(format: str, *paths: str) -> Source:
    """Files of UCI's old tree, each at its own address."""
    return Source(tuple(UCI + path for path in paths), format)


def from_uci_archive(format: str, archive: str, *members: str) -> Source:
    """UCI's other address of the same files: one zip archive."""
    return Source((f"{UCI_ARCHIVE}{archive}.zip",), format, members)


def from_libsvm(*files: str, format: str = "libsvm") -> Source:
    """Files of LIBSVM's page of binary sets."""
    return Source(tuple(LIBSVM + file for file in files), format)


def from_openml(path: str) -> Source:
    """A set as OpenML serves it."""
    return Source((OPENML + path,), "arff")
