"""Citation networks: documents, their words and their links (Cora, Citeseer, PubMed).

The files of the LINQS group: one archive a network, with a text file of nodes and one of links. No
checksum of these archives is published, so what is read is checked against the known numbers of
nodes, words, classes and links. The networks are from Sen, Namata, Bilgic, Getoor, Gallagher and
Eliassi-Rad, "Collective classification in network data", AI Magazine 29(3), 2008, and Namata,
London, Getoor and Huang, "Query-driven active surveying for collective classification", MLG 2012.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gdpa.errors import nearest_name
from reproduction.datasets import DataFileError, data_home
from reproduction.datasets.download import download

__all__ = ["CitationNetwork", "load_citation"]

_HOME = "https://linqs-data.soe.ucsc.edu/public/"
_MOST_BYTES = 200_000_000


@dataclass(frozen=True)
class _Source:
    url: str
    nodes: str
    links: str
    shape: tuple[int, int]
    n_classes: int
    n_edges: int


_SOURCES: Mapping[str, _Source] = {
    "cora": _Source(_HOME + "lbc/cora.tgz", "cora.content", "cora.cites", (2708, 1433), 7, 5278),
    "citeseer": _Source(
        _HOME + "lbc/citeseer.tgz", "citeseer.content", "citeseer.cites", (3312, 3703), 6, 4536
    ),
    "pubmed": _Source(
        _HOME + "Pubmed-Diabetes.tgz",
        "Pubmed-Diabetes.NODE.paper.tab",
        "Pubmed-Diabetes.DIRECTED.cites.tab",
        (19717, 500),
        3,
        44324,
    ),
}


@dataclass(frozen=True)
class CitationNetwork:
    """Documents, their words and their links.

    Parameters
    ----------
    X : csr_array of shape (n_nodes, n_words)
        Which words a document has, or their TF-IDF weights.
    y : ndarray of str of shape (n_nodes,)
        Topics.
    adjacency : csr_array of shape (n_nodes, n_nodes)
        1 where one of two documents cites the other.
    names : ndarray of str of shape (n_nodes,)
        What the files call the documents.
    """

    X: sp.csr_array
    y: NDArray[np.str_]
    adjacency: sp.csr_array
    names: NDArray[np.str_]


def load_citation(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> CitationNetwork:
    """Load a citation network, from the cache or its public archive.

    Parameters
    ----------
    name : {"cora", "citeseer", "pubmed"}
        Which one.
    data_dir : path-like, optional
        Cache; :func:`reproduction.datasets.data_home` by default. It keeps the archive under its
        own name (``cora.tgz``).

    Returns
    -------
    CitationNetwork
        The network. Links to documents without words are left out, as are links to oneself.

    Raises
    ------
    ValueError
        If there is no such network.
    DownloadError
        If the archive is not there and cannot be fetched.
    DataFileError
        If the archive does not hold the network that is known under the name.
    """
    if name not in _SOURCES:
        raise ValueError(f"name={name!r}; {nearest_name(str(name), sorted(_SOURCES))}")
    source = _SOURCES[name]
    home = data_home() if data_dir is None else Path(data_dir)
    path = home / source.url.rpartition("/")[2]
    if not path.is_file():
        download(source.url, path)
    nodes, links = _members(path, (source.nodes, source.links))
    read = _read_pubmed if name == "pubmed" else _read_content
    network = read(nodes, links, path)
    found = (network.X.shape, np.unique(network.y).size, network.adjacency.nnz // 2)
    wanted = (source.shape, source.n_classes, source.n_edges)
    if found != wanted:
        raise DataFileError(
            f"{path} is not {name} as it is known: shape, classes and links are {found}, "
            f"expected {wanted}"
        )
    return network


def _members(path: Path, names: tuple[str, ...]) -> list[str]:
    """Text files of an archive, by their last names; nothing is unpacked to disk."""
    found: dict[str, str] = {}
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                last = member.name.rpartition("/")[2]
                if last in names and member.isfile():
                    if member.size > _MOST_BYTES:
                        raise DataFileError(f"{path}: {member.name} has {member.size} bytes")
                    stream = archive.extractfile(member)
                    assert stream is not None
                    found[last] = stream.read().decode("utf-8", errors="replace")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataFileError(f"{path} is not a readable archive: {error}") from error
    missing = [name for name in names if name not in found]
    if missing:
        raise DataFileError(f"{path} has no file {missing[0]}")
    return [found[name] for name in names]


def _read_content(nodes: str, links: str, path: Path) -> CitationNetwork:
    """Lines ``name 0 1 0 ... topic`` and ``cited citing``."""
    names, topics, rows = [], [], []
    for number, line in enumerate(io.StringIO(nodes), start=1):
        cells = line.split()
        if not cells:
            continue
        try:
            rows.append(np.array(cells[1:-1], dtype=np.float64))
        except ValueError as error:
            raise DataFileError(f"{path}, line {number} of the nodes: {error}") from error
        names.append(cells[0])
        topics.append(cells[-1])
    if not rows or len({row.size for row in rows}) != 1:
        raise DataFileError(f"{path}: the nodes have no or different numbers of words")
    pairs = [line.split() for line in io.StringIO(links) if line.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise DataFileError(f"{path}: a link needs two names")
    X = sp.csr_array(np.vstack(rows))
    return _network(X, names, topics, [(a, b) for a, b in pairs])


def _read_pubmed(nodes: str, links: str, path: Path) -> CitationNetwork:
    """Tabs; words as ``w-name=weight``, topics as ``label=1``; links as ``paper:name``."""
    names: list[str] = []
    topics: list[str] = []
    place: dict[str, int] = {}
    data: list[float] = []
    ends: tuple[list[int], list[int]] = ([], [])
    lines = [line for line in nodes.splitlines() if line.strip()]
    for cell in lines[1].split("\t") if len(lines) > 1 else []:
        if cell.startswith("numeric:"):
            place[cell.split(":")[1]] = len(place)
    for line in lines[2:]:
        cells = line.split("\t")
        given = dict(cell.partition("=")[::2] for cell in cells[1:] if "=" in cell)
        try:
            topics.append(given["label"])
            words = {place[w]: float(v) for w, v in given.items() if w in place}
        except (KeyError, ValueError) as error:
            raise DataFileError(f"{path}, node {cells[0]}: {error}") from error
        ends[0].extend([len(names)] * len(words))
        ends[1].extend(words)
        data.extend(words.values())
        names.append(cells[0])
    X = sp.csr_array((data, ends), shape=(len(names), len(place)))
    pairs = []
    for line in links.splitlines():
        papers = [c.partition(":")[2] for c in line.split("\t") if c.startswith("paper:")]
        if len(papers) == 2:
            pairs.append((papers[0], papers[1]))
    return _network(X, names, topics, pairs)


def _network(
    X: sp.csr_array, names: list[str], topics: list[str], pairs: list[tuple[str, str]]
) -> CitationNetwork:
    place = {name: i for i, name in enumerate(names)}
    ends = np.array(
        [(place[a], place[b]) for a, b in pairs if a in place and b in place and a != b],
        dtype=np.intp,
    ).reshape(-1, 2)
    n = len(names)
    ones = np.ones(ends.shape[0])
    W = sp.csr_array((ones, (ends[:, 0], ends[:, 1])), shape=(n, n))
    W = sp.csr_array(W + W.T)
    W.data[:] = 1.0
    return CitationNetwork(X, np.array(topics), W, np.array(names))
