"""Load a data set by name: from the cache, from this folder, or from its public home."""

from __future__ import annotations

import contextlib
import itertools
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import numpy as np

from gdpa.files import lock

from . import cache
from .cache import DataFileError, FloatArray, SignArray, cached_file, matches
from .catalogue import Card, Source, card
from .download import DownloadError, UnknownHostError, download
from .parse import parse

Samples = tuple[FloatArray, SignArray]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and labels of a binary data set.

    Parameters
    ----------
    X : ndarray of float64 of shape (n_samples, n_features)
        Features, rows in the order of the paper's authors.
    y : ndarray of int8 of shape (n_samples,)
        Labels in {-1, +1}.
    card : Card
        Source, licence, shape, classes.
    """

    X: FloatArray
    y: SignArray
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
        user's cache folder. Plain files NAME.csv or NAME.csv.gz may also be put there by hand.
    download : bool, default=True
        Whether to download the set if it is not in the cache.
    verify : bool, default=True
        Whether to reject a cached file with other numbers than the catalogue's.

    Returns
    -------
    Dataset
        Features, labels and card.

    Raises
    ------
    ValueError
        If there is no such set, or its file is truncated or differs from its checksum.
    FileNotFoundError
        If it is not in the cache and `download` is False.
    OSError
        If no public source can be reached or the cache cannot be written.
    """
    found = card(name)
    home = cache.data_home(data_home)
    path = cached_file(found.name, home)
    if path is None and not found.sources:
        return Dataset(*_built_in(found), found)
    if path is None and not download:
        raise FileNotFoundError(
            f"{found.name} is not in the cache {home} and download=False. {_by_hand(found, home)}"
        )
    path = path or fetch(name, data_home=home)
    return Dataset(*cache.read_csv(path, found, verify=verify), found)


def fetch(
    name: str, *, data_home: str | os.PathLike[str] | None = None, force: bool = False
) -> Path:
    """Put a data set into the cache, from its public home.

    An interrupted download continues where it stopped. The file is accepted only if it has exactly
    the numbers of the catalogue.

    Parameters
    ----------
    name : str
        Name of the set.
    data_home : path-like, optional
        Folder of the cache, see :func:`load`.
    force : bool, default=False
        Whether to replace a file that is in the cache already.

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
    found = card(name)
    home = cache.data_home(data_home)
    home.mkdir(parents=True, exist_ok=True)
    # One process at a time fetches a set: two that append to one file would spoil it.
    with lock(home / f".{found.name}.lock"):
        present = cached_file(found.name, home)
        if present is not None and not force:
            return present
        path = home / (found.name + (".csv.gz" if found.compressed else ".csv"))
        samples = _from_homes(found, home) if found.sources else _built_in(found)
        cache.write_csv(path, *samples)
    return path


def _built_in(card: Card) -> Samples:
    """Read a set that comes with this folder or with scikit-learn."""
    if card.shipped:
        name = f"{card.name}.csv"
        return cache.parse_csv(shipped_file(name), f"paper-sets.zip/{name}", card)
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    X = np.asarray(bunch.data, dtype=np.float64)
    y = np.where(bunch.target == 0, 1, -1).astype(np.int8)  # its target 0 is malignant, our +1
    if not matches(card, X, y):
        raise DataFileError("scikit-learn's breast cancer data are not those of the catalogue")
    return X, y


def shipped_file(name: str) -> bytes:
    """Return a file of ``paper-sets.zip``: a shipped set, or TERMS.md with creators and licence."""
    with as_file(files(__package__) / "paper-sets.zip") as path, zipfile.ZipFile(path) as archive:
        return archive.read(name)


def _raw_files(card: Card, source: Source, home: Path) -> list[Path]:
    """Return where the files of a source go, or are put by hand."""
    folder = home / "raw" / card.name / source.format
    return [folder / PurePosixPath(unquote(urlsplit(url).path)).name for url in source.urls]


def _by_hand(card: Card, home: Path) -> str:
    """Say what to download and where to put it."""
    lines = [f"To do it by hand, put {card.name}.csv (header f1..fD,label) into {home}, or"]
    for source in card.sources:
        for url, path in zip(source.urls, _raw_files(card, source, home), strict=True):
            lines.append(f"  download {url}\n    to {path}")
    return "\n".join([*lines, f"and run: python -m reproduction datasets {card.name} --fetch"])


def _from_homes(card: Card, home: Path) -> Samples:
    """Try the public homes in turn."""
    reasons: list[str] = []
    lost: dict[str, UnknownHostError] = {}
    for source in card.sources:
        host = str(urlsplit(source.urls[0]).hostname)
        paths = _raw_files(card, source, home)
        if host in lost and not all(path.is_file() for path in paths):
            continue
        try:
            return _from_source(card, source, paths)
        except UnknownHostError as error:
            lost[host] = error
        except (DownloadError, DataFileError) as error:
            reasons.append(str(error))
    if lost and not reasons:
        raise UnknownHostError(
            f"{card.name} is not in the cache {home}, and {next(iter(lost.values()))} (its public "
            f"addresses are listed by: python -m reproduction datasets {card.name})"
        )
    text = "\n".join(f"  - {reason}" for reason in [*reasons, *lost.values()])
    raise DownloadError(
        f"no public source of {card.name} could be used:\n{text}\n{_by_hand(card, home)}"
    )


def _from_source(card: Card, source: Source, paths: list[Path]) -> Samples:
    """Download, parse and check one public source; then remove what was downloaded."""
    ours = [path for path in paths if not path.is_file()]  # the others were put there by hand
    for url, path in zip(source.urls, paths, strict=True):
        download(url, path)
    try:
        contents = [path.read_bytes() for path in paths]
        tables = parse(source.format, contents, card.n_features)
        for X, y in _candidates(tables):
            if matches(card, X, y):
                return X, y
        raise DataFileError(f"checksum differs, or the shape {X.shape} from {card.shape}")
    except DataFileError as error:
        raise DataFileError(f"{', '.join(source.urls)}: {error}") from error
    finally:
        # A wrong file must not be taken for a finished download the next time.
        for path in ours:
            path.unlink(missing_ok=True)
        for empty in paths[0].parents[:3]:
            with contextlib.suppress(OSError):
                empty.rmdir()


def _candidates(tables: list[Samples]) -> Iterator[Samples]:
    """Yield every order of the parts with both signs of the labels; the checksum decides."""
    for order in itertools.permutations(tables):
        X, y = (np.concatenate(part) for part in zip(*order, strict=True))
        yield X, y
        yield X, (-y).astype(np.int8)
