"""Readers of the public raw files; each gives features and two-valued raw labels.

The meaning of the raw labels is not interpreted here: the loader tries both signs and the
fingerprint decides.
"""

from __future__ import annotations

import bz2
import io
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .cache import DataFileError, FloatArray, SignArray

RawTable = tuple[FloatArray, NDArray[np.str_]]


def parse(format: str, files: list[bytes], n_features: int) -> list[tuple[FloatArray, SignArray]]:
    """Read the raw files of one source.

    Parameters
    ----------
    format : str
        Key of :data:`FORMATS`, or "columns": one file of features and one of labels.
    files : list of bytes
        Content of the files, in the order of the catalogue; bzip2 is unpacked.
    n_features : int
        Number of features expected.

    Returns
    -------
    list of (X, y)
        The parts, one per file (one for all files of columns); y is +1 for the first of the two
        raw labels in sorted order.

    Raises
    ------
    DataFileError
        If a file is not in its format.
    """
    texts = []
    for content in files:
        if content[:1024].lstrip().lower().startswith((b"<!doctype html", b"<html", b"<head")):
            raise DataFileError("the server answered with a web page, not with the file")
        try:
            plain = bz2.decompress(content) if content[:3] == b"BZh" else content
        except (OSError, EOFError, ValueError) as error:
            raise DataFileError(f"the bzip2 file is cut off or damaged ({error})") from error
        texts.append(plain.decode("latin-1"))
    if format == "columns":
        tables = [_columns(texts[0], texts[1], n_features)]
    else:
        tables = [FORMATS[format](text, n_features) for text in texts]
    values = np.unique(np.concatenate([labels for _, labels in tables]))
    if values.size != 2:
        raise DataFileError(f"expected two classes, got {values.size}: {values[:5].tolist()}")
    return [(X, np.where(raw == values[0], 1, -1).astype(np.int8)) for X, raw in tables]


def _lines(text: str) -> list[tuple[int, list[str]]]:
    """Words of the lines that are not empty, with their numbers."""
    numbered = ((k, line.split()) for k, line in enumerate(text.splitlines(), start=1))
    lines = [(k, words) for k, words in numbered if words]
    if not lines:
        raise DataFileError("the file has no samples")
    return lines


def _label(word: str) -> str:
    """One spelling per label: 1, 1.0 and +1 are the same."""
    try:
        return f"{float(word):g}"
    except ValueError:
        return word


def _columns(features: str, labels: str, n_features: int) -> RawTable:
    """One file of features and one of labels."""
    raw = np.array([_label(words[0]) for _, words in _lines(labels)])
    try:
        X = np.loadtxt(io.StringIO(features), ndmin=2)
    except ValueError as error:
        raise DataFileError(str(error)) from error
    if X.shape != (raw.size, n_features):
        raise DataFileError(f"the features have shape {X.shape}, not {(raw.size, n_features)}")
    return X, raw


def _libsvm(text: str, n_features: int, *, packed: bool = False) -> RawTable:
    """Label, then index:value pairs; missing pairs are 0."""
    lines = _lines(text)
    X = np.zeros((len(lines), n_features))
    for row, (k, (_, *pairs)) in zip(X, lines, strict=True):
        for place, pair in enumerate(pairs, start=1):
            try:
                index, value = pair.split(":")
                column, number = place if packed else int(index), float(value)
            except ValueError:
                raise DataFileError(f"line {k}: {pair[:30]!r} is not index:value") from None
            if not 1 <= column <= n_features:
                raise DataFileError(f"line {k}: feature {column}; expected 1 to {n_features}")
            row[column - 1] = number
    return X, np.array([_label(words[0]) for _, words in lines])


def _libsvm_packed(text: str, n_features: int) -> RawTable:
    """LIBSVM's pairs read without their indices: values to the left, zeros at the end."""
    return _libsvm(text, n_features, packed=True)


FORMATS: dict[str, Callable[[str, int], RawTable]] = {
    "libsvm": _libsvm,
    "libsvm-packed": _libsvm_packed,
}
