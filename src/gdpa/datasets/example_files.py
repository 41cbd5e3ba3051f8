"""Small files to try the commands with: ``gdpa example``.

plants
    Fisher's irises, from scikit-learn; 30 of 120 species are given, 30 more plants are new.
reviews
    60 short reviews, written for this package; the mood of 24 is given.
photos
    200 handwritten digits, from scikit-learn, as pictures; 60 are in folders named by their class.
papers
    The Federalist Papers of 1787 and 1788: titles and authors, and which paper continues another.
    The author is given for 45 papers. That of twelve is disputed to this day.
cut
    The borders between the 48 contiguous states of the USA, as a graph, and the side of six states
    in the Civil War.

All of them are in the public domain, or have the licence of scikit-learn (BSD).
"""

from __future__ import annotations

import csv
import io
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..arrays import NDArray
from ..csv_text import csv_text
from ..errors import nearest_name

FOLDER = Path(__file__).with_name("examples")


def _plants() -> dict[str, bytes]:
    from sklearn.datasets import load_iris

    data = load_iris()
    order = np.random.default_rng(0).permutation(data.target.size)
    species = data.target_names[data.target[order]]
    columns: dict[str, Sequence[object]] = {"name": [f"plant {i + 1}" for i in range(order.size)]}
    for j, name in enumerate(("sepal_length", "sepal_width", "petal_length", "petal_width")):
        columns[name] = data.data[order, j].tolist()
    labels = [str(s) if i < 30 else "" for i, s in enumerate(species)]
    old = {name: cells[:120] for name, cells in columns.items()}
    new = {name: cells[120:] for name, cells in columns.items()}
    return {
        "plants.csv": _table({**old, "species": labels[:120]}),
        "new-plants.csv": _table(new),
    }


def _reviews() -> dict[str, bytes]:
    rows = _rows("reviews.csv")
    mood = [row["mood"] if i < 24 else "" for i, row in enumerate(rows)]
    return {"reviews.csv": _table({"review": [row["review"] for row in rows], "mood": mood})}


def _photos() -> dict[str, bytes]:
    from sklearn.datasets import load_digits

    data = load_digits()
    chosen = np.flatnonzero(data.target < 5)[:200]
    files: dict[str, bytes] = {}
    names: list[object] = []
    digits: list[object] = []
    for i, row in enumerate(chosen.tolist()):
        digit = int(data.target[row])
        known = i < 60
        names.append(f"{digit}/{i:03d}.png" if known else f"{i:03d}.png")
        digits.append(digit if known else "")
        files[f"photos/{names[-1]}"] = png(255 - 255 * data.images[row] / 16, 4)
    listed = _table({"file": [f"photos/{name}" for name in names], "digit": digits})
    pixels = io.BytesIO()
    np.savez(pixels, X=data.data[chosen], y=np.array([str(digit) for digit in digits]))
    return {**files, "photos.csv": listed, "digits.npz": pixels.getvalue()}


def _papers() -> dict[str, bytes]:
    rows = _rows("federalist.csv")
    columns: dict[str, Sequence[object]] = {
        "paper": [row["paper"] for row in rows],
        "title": [row["title"] for row in rows],
    }
    n_old = 76
    known = np.random.default_rng(0).permutation(n_old)[:50].tolist()
    authors = [row["author"] if i in known else "" for i, row in enumerate(rows[:n_old])]
    links = [(row["paper"], row["continues"]) for row in rows if row["continues"]]
    old = [(a, b) for a, b in links if int(a) <= n_old]
    new = [(a, b) for a, b in links if int(a) > n_old >= int(b)]
    papers = {name: cells[:n_old] for name, cells in columns.items()}
    return {
        "papers.csv": _table({**papers, "author": authors}),
        "continues.txt": "".join(f"{a} {b}\n" for a, b in old).encode(),
        "new-papers.csv": _table({name: cells[n_old:] for name, cells in columns.items()}),
        "new-continues.txt": "".join(f"{a} {b}\n" for a, b in new).encode(),
    }


def _cut() -> dict[str, bytes]:
    sides = {"NY": "Union", "OH": "Union", "IL": "Union"}
    sides |= {"VA": "Confederacy", "GA": "Confederacy", "TX": "Confederacy"}
    known = {"node": list(sides), "label": list(sides.values())}
    return {
        "borders.txt": (FOLDER / "borders.txt").read_bytes(),
        "sides.csv": _table(known),
    }


EXAMPLES: Mapping[str, Callable[[], dict[str, bytes]]] = {
    "plants": _plants,
    "reviews": _reviews,
    "photos": _photos,
    "papers": _papers,
    "cut": _cut,
}


def example_files(name: str) -> dict[str, bytes]:
    """Return the files of an example.

    Parameters
    ----------
    name : {"plants", "reviews", "photos", "papers", "cut"}
        The example.

    Returns
    -------
    dict of str to bytes
        Contents by path.

    Raises
    ------
    ValueError
        If there is no such example.

    Examples
    --------
    >>> from gdpa.datasets import example_files
    >>> print(example_files("plants")["plants.csv"].decode()[:60])
    name,sepal_length,sepal_width,petal_length,petal_width,speci
    """
    if name not in EXAMPLES:
        raise ValueError(f"name={name!r} is no example; {nearest_name(name, list(EXAMPLES))}")
    return EXAMPLES[name]()


def png(pixels: NDArray[np.floating], times: int = 1) -> bytes:
    """Return a grey picture as a PNG file.

    Parameters
    ----------
    pixels : ndarray of shape (height, width)
        Brightness from 0 to 255.
    times : int, default=1
        Factor by which the picture is enlarged.

    Returns
    -------
    bytes
        The file.
    """
    grey = np.kron(np.round(pixels), np.ones((times, times))).astype(np.uint8)
    height, width = grey.shape
    rows = b"".join(b"\0" + row.tobytes() for row in grey)  # 0: no filter

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, grey
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _rows(name: str) -> list[dict[str, str]]:
    """Read a table that is part of the package."""
    return list(csv.DictReader(io.StringIO((FOLDER / name).read_text("utf-8"))))


def _table(columns: Mapping[str, Sequence[object]]) -> bytes:
    return csv_text(list(columns), list(columns.values())).encode()
