"""The plain CSV files of the cache: where they are, how they are read, written and checked.

A file is NAME.csv or NAME.csv.gz: a header ``f1,...,fD,label`` and one row per sample with the
label, -1 or 1, last. Numbers are written in the shortest form that reads back exactly, so a set has
one text and one checksum.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import sys
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..files import written_whole
from .cards import Entry

__all__ = [
    "DataFileError",
    "cached_file",
    "content_sha256",
    "data_home",
    "explain_os_error",
    "matches",
    "parse_csv",
    "read_csv",
    "rows_sha256",
    "write_csv",
]

FloatArray = NDArray[np.float64]
SignArray = NDArray[np.int8]


class DataFileError(ValueError):
    """A data file is damaged, cut off, or not the data that it should be."""


def data_home(path: str | os.PathLike[str] | None = None) -> Path:
    """Folder of the cache.

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
    """File of a data set in the cache, or None."""
    for suffix in (".csv", ".csv.gz"):
        path = home / f"{name}{suffix}"
        if path.is_file():
            return path
    return None


def _digest(X: FloatArray, y: SignArray) -> str:
    h = hashlib.sha256(f"{X.shape[0]}x{X.shape[1]}\n".encode())
    # Adding 0.0 turns -0.0 into 0.0: the same number must have the same bytes.
    h.update(np.ascontiguousarray(X + 0.0, dtype="<f8").tobytes())
    h.update(np.ascontiguousarray(y, dtype=np.int8).tobytes())
    return h.hexdigest()


def content_sha256(X: FloatArray, y: SignArray) -> str:
    """Fingerprint of features and labels, in this order."""
    return _digest(X, y)


def rows_sha256(X: FloatArray, y: SignArray) -> str:
    """Fingerprint of the samples whatever their order."""
    order = np.lexsort(np.column_stack([X, y]).T[::-1])
    return _digest(X[order], y[order])


def matches(entry: Entry, X: FloatArray, y: SignArray) -> bool:
    """Whether these are exactly the data of the catalogue."""
    return X.shape == entry.card.shape and content_sha256(X, y) == entry.content_sha256


def read_csv(path: Path, entry: Entry, *, verify: bool = True) -> tuple[FloatArray, SignArray]:
    """Read a file of the cache and check that it is what the catalogue says.

    Parameters
    ----------
    path : pathlib.Path
        The file; unpacked first if its name ends in ``.gz``.
    entry : Entry
        What is expected.
    verify : bool, default=True
        Whether other numbers than those of the catalogue are refused. Shape and labels are
        checked in any case.

    Returns
    -------
    X : ndarray of float64
        Features.
    y : ndarray of int8
        Labels.

    Raises
    ------
    DataFileError
        If the file is cut off, is not a table of numbers, or differs from the catalogue.
    """
    return parse_csv(_read_bytes(path), path, entry, verify=verify)


def parse_csv(
    text: bytes, path: Path | str, entry: Entry, *, verify: bool = True
) -> tuple[FloatArray, SignArray]:
    """Do what :func:`read_csv` does with the text of a file; `path` names it in messages."""
    n, d = entry.card.shape
    values = _parse(text, path, n, d)
    labels = values[:, d]
    wrong = np.flatnonzero(np.abs(labels) != 1)
    if wrong.size:
        raise DataFileError(
            f"{path}, line {wrong[0] + 2}: the label is {labels[wrong[0]]:g}; accepted: -1 and 1"
        )
    X, y = np.ascontiguousarray(values[:, :d]), labels.astype(np.int8)
    # Other line ends or trailing zeros are no harm: what counts is the numbers.
    same = not verify or hashlib.sha256(text).hexdigest() == entry.card.csv_sha256
    if not (same or matches(entry, X, y)):
        raise DataFileError(_difference(path, entry, X, y))
    return X, y


def _difference(path: Path | str, entry: Entry, X: FloatArray, y: SignArray) -> str:
    if rows_sha256(X, y) == entry.rows_sha256:
        what = "has the right samples in another order, which changes the paper's folds"
    elif content_sha256(X, -y) == entry.content_sha256:
        what = "has the signs of all labels reversed"
    else:
        what = "holds other numbers than the catalogue"
    return (
        f"checksum of {path} differs: the file {what} (expected SHA-256 of the CSV text: "
        f"{entry.card.csv_sha256}). Delete it and run gdpa.datasets.fetch({entry.card.name!r}), or "
        "pass verify=False to use it as it is"
    )


def _read_bytes(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataFileError(
            f"{path} is cut off or damaged ({error}); delete it and fetch it again"
        ) from error


def _parse(text: bytes, path: Path | str, n: int, d: int) -> FloatArray:
    header, _, body = text.partition(b"\n")
    names = header.decode("utf-8", "replace").strip().split(",")
    if names != [*(f"f{i}" for i in range(1, d + 1)), "label"]:
        raise DataFileError(
            f"{path}, line 1: expected the header f1,...,f{d},label, got {','.join(names)[:60]!r}"
        )
    if not body.strip():
        raise DataFileError(f"{path} has no samples; expected {n}")
    try:
        values = np.loadtxt(io.BytesIO(body), delimiter=",", ndmin=2, comments=None)
        regular = values.shape[1] == d + 1 and bool(np.isfinite(values).all())
    except ValueError:
        regular = False
    if not regular:
        raise DataFileError(_bad_line(body, path, d))
    if values.shape[0] != n:
        raise DataFileError(
            f"{path} ends at line {values.shape[0] + 1} with {values.shape[0]} samples; expected "
            f"{n} (line {n + 1}). It is {'cut off' if values.shape[0] < n else 'another file'}; "
            "delete it and fetch it again"
        )
    return np.asarray(values, dtype=np.float64)


def _bad_line(body: bytes, path: Path | str, d: int) -> str:
    """Find the first line that is not a sample; only called when there is one."""
    last = body.count(b"\n") + 2
    for number, line in enumerate(body.decode("utf-8", "replace").splitlines(), start=2):
        cells = line.split(",")
        if len(cells) != d + 1:
            cut = "; the file is cut off here" if number >= last - 1 else ""
            return f"{path}, line {number}: expected {d + 1} values, got {len(cells)}{cut}"
        for k, cell in enumerate(cells, start=1):
            try:
                finite = np.isfinite(float(cell))
            except ValueError:
                finite = False
            if not finite:
                return f"{path}, line {number}, column {k}: {cell[:30]!r} is not a finite number"
    return f"{path} is not a table of numbers"


def _cell(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def write_csv(path: Path, X: FloatArray, y: SignArray) -> None:
    """Write a data set in the layout of the cache; all of it or nothing.

    Parameters
    ----------
    path : pathlib.Path
        Where to; compressed if the name ends in ``.gz``.
    X : ndarray
        Features.
    y : ndarray
        Labels, -1 and 1.

    Raises
    ------
    OSError
        If there is no permission or no room; the message says what to do.
    """
    header = ",".join([*(f"f{i}" for i in range(1, X.shape[1] + 1)), "label"])
    rows = (
        ",".join([*map(_cell, row), str(sign)])
        for row, sign in zip(X.tolist(), y.tolist(), strict=True)
    )
    text = ("\n".join([header, *rows]) + "\n").encode()
    if path.suffix == ".gz":
        text = gzip.compress(text, mtime=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as staged:
            staged.write_bytes(text)
    except OSError as error:
        raise explain_os_error(error, path, len(text)) from error


def explain_os_error(error: OSError, path: Path, n_bytes: int | None = None) -> OSError:
    """Say what to do about a full disk or a missing permission."""
    need = f" ({n_bytes / 1e6:.1f} MB needed)" if n_bytes else ""
    advice = "set GDPA_DATA_HOME or data_home to another folder"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = f"no room on disk for {path.name}{need}; free some, or {advice}"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        message = f"no permission to write {path.name} in {path.parent}; {advice}"
    else:
        message = f"cannot write {path.name} in {path.parent}: {error.strerror}; {advice}"
    return type(error)(error.errno, message, str(path))
