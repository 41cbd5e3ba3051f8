"""Load a data set by name: from the cache, from scikit-learn, or from its public home."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from ..files import lock
from .cache import (
    DataFileError,
    cached_file,
    data_home,
    explain_os_error,
    matches,
    read_csv,
    rows_sha256,
    write_csv,
)
from .cards import Card, Entry, Source
from .catalogue import find
from .download import DownloadError, UnknownHostError, download
from .parse import parse
from .shipped import SHIPPED, read_shipped

__all__ = ["Dataset", "fetch", "load"]

FloatArray = NDArray[np.float64]
SignArray = NDArray[np.int8]
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and labels of a binary data set.

    Parameters
    ----------
    X : ndarray of float64 of shape (n_samples, n_features)
        Features, rows in the order of the paper's authors.
    y : ndarray of int8 of shape (n_samples,)
        Labels in {-1, +1}.
    feature_names : tuple of str
        Names of the columns.
    card : Card
        Source, licence, shape, classes.
    """

    X: FloatArray
    y: SignArray
    feature_names: tuple[str, ...]
    card: Card

    @property
    def name(self) -> str:
        """Name of the set."""
        return self.card.name


def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    verify: bool = True,
) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : str
        Name of the set, see :func:`list_datasets`.
    data_home : path-like, optional
        Folder of the cache; by default the environment variable ``GDPA_DATA_HOME``, else the
        user's cache folder. Plain files NAME.csv or NAME.csv.gz that were put there by hand are
        as good as downloaded ones.
    download : bool, default=True
        Whether to download the set if it is not in the cache.
    verify : bool, default=True
        Whether a cached file with other numbers than the catalogue's is refused.

    Returns
    -------
    Dataset
        Features, labels and card.

    Raises
    ------
    ValueError
        If there is no such set, or its file is cut off or differs from its checksum.
    FileNotFoundError
        If it is not in the cache and `download` is False.
    OSError
        If no public source can be reached or the cache cannot be written.

    Examples
    --------
    >>> from gdpa.datasets import load
    >>> wdbc = load("WDBC")
    >>> wdbc.X.shape, int((wdbc.y > 0).sum())
    ((569, 30), 212)
    """
    entry = find(name)
    home = _home(data_home)
    path = cached_file(entry.card.name, home)
    if path is not None:
        X, y = read_csv(path, entry, verify=verify)
    elif _built_in(entry):
        X, y = _without_network(entry)
    elif not download:
        raise FileNotFoundError(
            f"{entry.card.name} is not in the cache {home} and download=False. "
            + _by_hand(entry, home)
        )
    else:
        X, y = read_csv(fetch(name, data_home=home), entry)
    names = tuple(f"f{i}" for i in range(1, X.shape[1] + 1))
    return Dataset(X=X, y=y, feature_names=names, card=entry.card)


def fetch(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    force: bool = False,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> Path:
    """Put a data set into the cache, from its public home.

    An interrupted download goes on where it stopped. What comes is accepted only if it has exactly
    the numbers of the catalogue.

    Parameters
    ----------
    name : str
        Name of the set.
    data_home : path-like, optional
        Folder of the cache, see :func:`load`.
    force : bool, default=False
        Whether to replace a file that is there already.
    timeout : float, default=30
        Seconds to wait for a server's answer.
    progress : callable, optional
        Called with the bytes so far and the total of the current file.

    Returns
    -------
    pathlib.Path
        The file in the cache.

    Raises
    ------
    ValueError
        If there is no such set.
    DownloadError
        If no source gave the data; says what to download by hand and where to put it.
    OSError
        If the cache cannot be written.
    """
    entry = find(name)
    home = _home(data_home)
    present = cached_file(entry.card.name, home)
    if present is not None and not force:
        return present
    path = home / (entry.card.name + (".csv.gz" if entry.compressed else ".csv"))
    if _built_in(entry):
        write_csv(path, *_without_network(entry))
        return path
    _check_writable(home)
    # One process at a time fetches a set: two that append to one file would spoil it.
    with lock(home / f".{entry.card.name}.lock"):
        arrived = cached_file(entry.card.name, home)
        if arrived is not None and not force:  # another process fetched it meanwhile
            return arrived
        return _fetch_from_homes(entry, home, path, timeout, progress)


def _fetch_from_homes(
    entry: Entry, home: Path, path: Path, timeout: float, progress: Progress | None
) -> Path:
    reasons: list[str] = []
    lost: dict[str, UnknownHostError] = {}
    for source in entry.sources:
        host = str(urlsplit(source.urls[0]).hostname)
        folder = home / "raw" / entry.card.name / source.format
        try:
            if host in lost and not _all_there(source, folder):
                continue
            X, y = _from_source(entry, source, folder, timeout, progress)
        except UnknownHostError as error:
            lost[host] = error
            continue
        except (DownloadError, DataFileError) as error:
            reasons.append(f"  - {error}")
            continue
        write_csv(path, X, y)
        return path
    if lost and not reasons:
        raise UnknownHostError(
            f"{entry.card.name} is not in the cache {home}, and {_first(lost)} (its public "
            f"addresses are listed by: gdpa datasets {entry.card.name})"
        )
    reasons += [f"  - {error}" for error in lost.values()]
    raise DownloadError(
        f"no public source of {entry.card.name} could be used:\n"
        + "\n".join(reasons)
        + "\n"
        + _by_hand(entry, home)
    )


def _first(errors: dict[str, UnknownHostError]) -> str:
    return str(next(iter(errors.values())))


def _all_there(source: Source, folder: Path) -> bool:
    return all((folder / _file_name(url)).is_file() for url in source.urls)


def _home(path: str | os.PathLike[str] | None) -> Path:
    return data_home(path)


def _check_writable(home: Path) -> None:
    """Ask before the download, not after it."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        # A name of its own: several threads may ask at once.
        with tempfile.TemporaryFile(dir=home, prefix=".write-test-"):
            pass
    except OSError as error:
        raise explain_os_error(error, home / "data") from error


def _by_hand(entry: Entry, home: Path) -> str:
    """Say what to download and where to put it."""
    if not entry.sources:
        return ""
    lines = [f"To do it by hand, put {entry.card.name}.csv (header f1..fD,label) into {home}, or"]
    for source in entry.sources:
        folder = home / "raw" / entry.card.name / source.format
        for url in source.urls:
            lines.append(f"  download {url}\n    to {folder / _file_name(url)}")
    return "\n".join(lines) + f"\nand call gdpa.datasets.fetch({entry.card.name!r}) again."


def _file_name(url: str) -> str:
    return PurePosixPath(unquote(urlsplit(url).path)).name


def _built_in(entry: Entry) -> bool:
    return not entry.sources or entry.card.name in SHIPPED


def _without_network(entry: Entry) -> tuple[FloatArray, SignArray]:
    """Read a set that comes with this package or with scikit-learn."""
    return _from_sklearn(entry) if not entry.sources else read_shipped(entry)


def _from_sklearn(entry: Entry) -> tuple[FloatArray, SignArray]:
    """WDBC as scikit-learn ships it; its target 0 is malignant, our +1."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    X = np.asarray(bunch.data, dtype=np.float64)
    y = np.where(bunch.target == 0, 1, -1).astype(np.int8)
    if not matches(entry, X, y):
        raise DataFileError("scikit-learn's breast cancer data are not those of the catalogue")
    return X, y


def _from_source(
    entry: Entry, source: Source, folder: Path, timeout: float, progress: Progress | None
) -> tuple[FloatArray, SignArray]:
    """Download, parse and check one public source; what was downloaded does not stay."""
    paths = [folder / _file_name(url) for url in source.urls]
    ours = [path for path in paths if not path.is_file()]  # the others were put there by hand
    for url, path in zip(source.urls, paths, strict=True):
        download(url, path, timeout=timeout, progress=progress)
    try:
        contents = [p.read_bytes() for p in paths]
        if source.members:
            contents = _unzip(contents[0], source.members)
        tables = parse(source.format, contents, entry.card.n_features)
        for X, y in _candidates(tables):
            if matches(entry, X, y):
                return X, y
        raise DataFileError(_mismatch(entry, tables))
    except DataFileError as error:
        raise DataFileError(f"{', '.join(source.urls)}: {error}") from error
    finally:
        # A wrong file must not be taken for a finished download the next time.
        for path in ours:
            path.unlink(missing_ok=True)
        for empty in (folder, folder.parent, folder.parent.parent):
            with contextlib.suppress(OSError):
                empty.rmdir()


def _unzip(content: bytes, members: tuple[str, ...]) -> list[bytes]:
    """Files of an archive by their names, whatever folder of it they are in."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = {PurePosixPath(name).name: name for name in archive.namelist()}
            missing = [member for member in members if member not in names]
            if missing:
                raise DataFileError(
                    f"the archive has no {missing[0]}; it has {', '.join(sorted(names))[:200]}"
                )
            return [archive.read(names[member]) for member in members]
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error) as error:
        page = content[:1024].lstrip().lower().startswith((b"<!doctype html", b"<html"))
        what = "a web page" if page else "not a zip archive, or one that is cut off"
        raise DataFileError(f"the server answered with {what} ({error})") from error


def _candidates(
    tables: list[tuple[FloatArray, SignArray]],
) -> Iterator[tuple[FloatArray, SignArray]]:
    """Every order of the parts and both signs of the labels; the checksum decides."""
    for order in itertools.permutations(tables):
        X = np.concatenate([part for part, _ in order])
        y = np.concatenate([signs for _, signs in order])
        yield X, y
        yield X, (-y).astype(np.int8)


def _mismatch(entry: Entry, tables: list[tuple[FloatArray, SignArray]]) -> str:
    X = np.concatenate([part for part, _ in tables])
    y = np.concatenate([signs for _, signs in tables])
    if X.shape != entry.card.shape:
        return f"the file has shape {X.shape}, expected {entry.card.shape}"
    counts = sorted([int((y > 0).sum()), int((y < 0).sum())])
    expected = sorted([entry.card.n_positive, entry.card.n_negative])
    if counts != expected:
        return f"the classes have {counts} samples, expected {expected}"
    if entry.rows_sha256 in (rows_sha256(X, y), rows_sha256(X, (-y).astype(np.int8))):
        return "checksum differs: the right samples, but in another order than the authors'"
    return f"checksum differs (expected SHA-256 of the numbers: {entry.content_sha256})"
