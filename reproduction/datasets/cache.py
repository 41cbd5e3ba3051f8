"""The plain CSV files of the cache: where they are, how they are read, written and checked.

A file is NAME.csv or NAME.csv.gz: a header ``f1,...,fD,label`` and one row per sample with the
label, -1 or 1, last. Numbers are written in the shortest form that reads back exactly, so a set has
one text and one checksum.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gdpa.files import written_whole

from .catalogue import Card

FloatArray = NDArray[np.float64]
SignArray = NDArray[np.int8]


class DataFileError(ValueError):
    """A data file is damaged, truncated, or not the data that it should be."""


def data_home(path: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the cache.

    Parameters
    ----------
    path : path-like, optional
        Use this folder. By default the environment variable ``GDPA_DATA_HOME``, else ``gdpa`` in
        the user's cache folder.

    Returns
    -------
    pathlib.Path
        The folder; it need not exist yet.
    """
    chosen = path if path is not None else os.environ.get("GDPA_DATA_HOME")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "gdpa"


def cached_file(name: str, home: Path) -> Path | None:
    """Return the file of a data set in the cache, or None."""
    paths = (home / f"{name}{suffix}" for suffix in (".csv", ".csv.gz"))
    return next((path for path in paths if path.is_file()), None)


def content_sha256(X: FloatArray, y: SignArray) -> str:
    """Return the fingerprint of features and labels, in this order."""
    h = hashlib.sha256(f"{X.shape[0]}x{X.shape[1]}\n".encode())
    # Adding 0.0 turns -0.0 into 0.0: the same number must have the same bytes.
    h.update(np.ascontiguousarray(X + 0.0, dtype="<f8").tobytes())
    h.update(np.ascontiguousarray(y, dtype=np.int8).tobytes())
    return h.hexdigest()


def matches(card: Card, X: FloatArray, y: SignArray) -> bool:
    """Return whether these are exactly the data of the catalogue."""
    return X.shape == card.shape and content_sha256(X, y) == card.content_sha256


def read_csv(path: Path, card: Card, *, verify: bool = True) -> tuple[FloatArray, SignArray]:
    """Read a file of the cache and check that it is what the catalogue says.

    Parameters
    ----------
    path : pathlib.Path
        The file; unpacked first if its name ends in ``.gz``.
    card : Card
        What is expected.
    verify : bool, default=True
        Whether to reject other numbers than those of the catalogue. Shape and labels are checked
        in any case.

    Returns
    -------
    X : ndarray of float64
        Features.
    y : ndarray of int8
        Labels.

    Raises
    ------
    DataFileError
        If the file is truncated, is not a table of numbers, or differs from the catalogue.
    """
    raw = path.read_bytes()
    try:
        text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataFileError(f"{path} is cut off or damaged ({error}); delete it") from error
    return parse_csv(text, path, card, verify=verify)


def parse_csv(
    text: bytes, path: Path | str, card: Card, *, verify: bool = True
) -> tuple[FloatArray, SignArray]:
    """Do what :func:`read_csv` does with the text of a file; `path` names it in messages."""
    header, _, body = text.partition(b"\n")
    expected = ",".join([*(f"f{i}" for i in range(1, card.n_features + 1)), "label"])
    try:
        if header.strip() != expected.encode():
            raise ValueError(f"line 1 is not the header f1,...,f{card.n_features},label")
        values = np.loadtxt(io.BytesIO(body), delimiter=",", ndmin=2, comments=None)
        X, y = np.ascontiguousarray(values[:, :-1]), values[:, -1].astype(np.int8)
        if X.shape != card.shape:
            raise ValueError(f"it has shape {X.shape}, expected {card.shape}; is it cut off?")
        if not (np.isfinite(X).all() and (np.abs(values[:, -1]) == 1).all()):
            raise ValueError("features must be finite, labels -1 or 1")
        # Other line ends or trailing zeros are no harm: what counts is the numbers.
        if verify and not matches(card, X, y):
            raise ValueError(
                "checksum differs: it holds other numbers than the catalogue, or in another order; "
                "verify=False uses it nevertheless"
            )
    except ValueError as error:
        raise DataFileError(
            f"{path} is not {card.name}: {error}. Delete it and run: "
            f"python -m reproduction datasets {card.name} --fetch"
        ) from error
    return X, y


def write_csv(path: Path, X: FloatArray, y: SignArray) -> None:
    """Write a data set in the layout of the cache, compressed if the name ends in ``.gz``."""
    lines = [",".join([*(f"f{i}" for i in range(1, X.shape[1] + 1)), "label"])]
    for row, sign in zip(X.tolist(), y.tolist(), strict=True):
        cells = (str(int(value)) if value == int(value) else repr(value) for value in row)
        lines.append(",".join([*cells, str(sign)]))
    text = ("\n".join(lines) + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as staged:  # all of it or nothing
        staged.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
